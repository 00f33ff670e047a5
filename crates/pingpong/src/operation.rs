//! The commands to an engine as data: generated, written to replay files, sent to workers, shrunk.
//!
//! Everything prints as one line of JSON that a person can read: keys are text with `\xNN` escapes, long values
//! are described instead of spelled out.
//!
//! Next: `model.rs` says what each operation means, `worker.rs` does it to an engine.

use crate::mistake::Mistake;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A user key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub Vec<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl Key {
    /// Its text in files and messages.
    pub fn text(&self) -> String {
        self.0.escape_ascii().to_string()
    }

    /// The key that [`Key::text`] prints as `text`.
    pub fn from_text(text: &str) -> Option<Key> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            let (&kind, tail) = rest.split_first()?;
            rest = tail;
            bytes.push(match kind {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let (hex, tail) = rest.split_at_checked(2)?;
                    rest = tail;
                    u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
                }
                other => other,
            });
        }
        Some(Key(bytes))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        let text = String::deserialize(deserializer)?;
        Key::from_text(&text).ok_or_else(|| serde::de::Error::custom(format!("bad key {text:?}")))
    }
}

/// A value, described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// These bytes.
    Text(Key),
    /// Eight bytes, little-endian: what the adding merge operator works on.
    Number(u64),
    /// So many bytes that compress well, different for each seed.
    Fill(usize, u64),
    /// So many bytes that do not compress.
    Noise(usize, u64),
}

impl Value {
    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Text(text) => text.0.clone(),
            Value::Number(number) => number.to_le_bytes().to_vec(),
            Value::Fill(len, seed) => {
                let pattern = format!("<{seed}>......");
                pattern.bytes().cycle().take(*len).collect()
            }
            Value::Noise(len, seed) => {
                let mut random = outcrop_base::random::SplitMix::new(*seed);
                let words = std::iter::repeat_with(|| random.next());
                words.flat_map(u64::to_le_bytes).take(*len).collect()
            }
        }
    }
}

/// How bytes appear in answers and messages: short ones in full, long ones by length, hash and beginning.
pub fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= 40 {
        return bytes.escape_ascii().to_string();
    }
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{}...({} bytes, hash {:016x})", bytes[..12].escape_ascii(), bytes.len(), hasher.finish())
}

/// One change of a write. The number is the column family's index in [`crate::case::Case::families`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Record {
    Put(usize, Key, Value),
    Delete(usize, Key),
    /// Only for keys put once since they were last deleted.
    SingleDelete(usize, Key),
    Merge(usize, Key, Value),
    /// From the first key (inclusive) to the second (exclusive).
    DeleteRange(usize, Key, Key),
    /// A wide-column entity: name and value of each column, sorted by name.
    PutEntity(usize, Key, Vec<(Key, Value)>),
    /// Put of `count` keys `prefix` + a number in eight digits, from `first` on; the value's seed counts up.
    Fill {
        family: usize,
        prefix: Key,
        first: u64,
        count: u64,
        len: usize,
        seed: u64,
    },
    /// Bytes that are in the WAL and nowhere else.
    LogData(Key),
}

impl Record {
    /// The column family it changes.
    pub fn family(&self) -> Option<usize> {
        match self {
            Record::Put(family, ..)
            | Record::Delete(family, _)
            | Record::SingleDelete(family, _)
            | Record::Merge(family, ..)
            | Record::DeleteRange(family, ..)
            | Record::PutEntity(family, ..)
            | Record::Fill { family, .. } => Some(*family),
            Record::LogData(_) => None,
        }
    }

    /// The keys and values of a [`Record::Fill`].
    pub fn filled(prefix: &Key, first: u64, count: u64, len: usize, seed: u64) -> Vec<(Key, Value)> {
        (0..count)
            .map(|i| {
                let mut key = prefix.0.clone();
                key.extend_from_slice(format!("{:08}", first + i).as_bytes());
                let seed = seed + i;
                let value =
                    if seed.is_multiple_of(4) { Value::Noise(len, seed) } else { Value::Fill(len, seed) };
                (Key(key), value)
            })
            .collect()
    }
}

/// How a write reaches the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the WAL; the operating system has it when the call returns (unless the WAL is flushed by hand).
    Logged,
    /// In the WAL, and synced.
    Synced,
    /// Not in the WAL: lost unless it is flushed.
    Unlogged,
}

/// One move of an iterator. `Next` and `Prev` of an iterator that is at no row do nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Move {
    First,
    Last,
    Next,
    Prev,
    Seek(Key),
    SeekForPrev(Key),
}

/// The state that an iterator or a lookup looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Column family.
    pub family: usize,
    /// Snapshot, by slot; none: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<usize>,
    /// Inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<Key>,
    /// Exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<Key>,
    /// Only rows with the prefix of the sought key, by the family's prefix extractor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_prefix: bool,
}

/// Which function looks keys up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Lookup {
    Get,
    GetPinned,
    MultiGet,
    BatchedMultiGet,
}

/// How a transaction ends in the phase that begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Committed without being prepared.
    Commit,
    /// Rolled back without being prepared.
    RollBack,
    /// Prepared, and committed at once.
    BothPhases,
    /// Prepared, and left for an [`Operation::Resolve`], maybe of another engine, maybe after a crash.
    Prepare,
}

/// One step of a phase. A `family` is a column family's index in [`crate::case::Case::families`]; slots hold
/// snapshots and iterators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Operation {
    /// A write of one or more records, atomic.
    Write {
        /// In order.
        records: Vec<Record>,
        /// Where it must be when the call returns.
        durability: Durability,
        /// By the function of the one record (`rocksdb_put_cf`), not by a batch.
        direct: bool,
    },
    /// Looks up keys.
    Get { view: View, keys: Vec<Key>, by: Lookup },
    /// Opens an iterator, moves it, closes it.
    Walk { view: View, moves: Vec<Move> },
    /// Opens an iterator that lives on in a slot.
    OpenIterator { slot: usize, view: View },
    /// Moves it.
    MoveIterator { slot: usize, moves: Vec<Move> },
    /// Closes it.
    CloseIterator { slot: usize },
    /// Takes a snapshot into a slot.
    TakeSnapshot { slot: usize },
    /// Gives it back.
    ReleaseSnapshot { slot: usize },
    /// Flushes column families' memtables.
    Flush { family: usize, wait: bool },
    /// Hands the WAL's buffer to the operating system.
    FlushWal { sync: bool },
    /// Compacts a range; no bound: everything on that side. `bottommost` is RocksDB's number of the enum.
    CompactRange { family: usize, begin: Option<Key>, end: Option<Key>, bottommost: u8, exclusive: bool },
    /// Waits until nothing runs or is due in the background.
    Wait,
    /// Writes a table outside the database and ingests it. `by_other`: the table is written by the engine that
    /// works next.
    Ingest { family: usize, records: Vec<Record>, move_file: bool, by_other: bool },
    /// Makes a checkpoint, which the engine that works next opens, compares and compacts.
    Checkpoint { log_size_for_flush: u64 },
    /// A transaction with a name writes records, and ends so.
    Transact { name: String, records: Vec<Record>, synced: bool, end: Ending },
    /// Commits the prepared transaction of this name, or rolls it back.
    Resolve { name: String, commit: bool },
    /// Makes a backup in the directory that all engines share; then the engine that works next verifies every backup there.
    Backup { flush: bool },
    /// Restores a backup, the newest but `nth`; the engine that works next opens and compares it. `by_other`: it restores it too.
    Restore { nth: usize, by_other: bool },
    /// Deletes all backups but the newest. `by_other`: the engine that works next does.
    PurgeBackups { keep: usize, by_other: bool },
    /// Creates the column family of this index.
    CreateFamily { family: usize },
    /// Drops it.
    DropFamily { family: usize },
    /// Changes an option while the database is open.
    SetOptions { family: usize, name: String, value: String },
    /// The engine that works next tries to open the database and must be told that it is locked.
    OpenTwice,
    /// A call that fails, with an error of the right class.
    Mistake(Mistake),
    /// Compares every row of every column family.
    CompareAll,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_their_text() {
        let every: Vec<u8> = (0..=255).collect();
        for bytes in [&b""[..], b"plain", b"\"\\\n\t\r'", &every] {
            let key = Key(bytes.to_vec());
            assert_eq!(Key::from_text(&key.text()), Some(key.clone()));
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<Key>(&json).unwrap(), key);
        }
        assert_eq!(Key::from_text("\\x1"), None);
        assert_eq!(Key::from_text("\\"), None);
    }

    #[test]
    fn values_have_the_bytes_they_describe() {
        assert_eq!(Value::Number(258).bytes(), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Value::Fill(5, 7).bytes(), b"<7>..");
        let (a, b) = (Value::Noise(100, 1).bytes(), Value::Noise(100, 2).bytes());
        assert!(a.len() == 100 && b.len() == 100 && a != b);
    }

    #[test]
    fn long_values_are_told_apart_by_their_hash() {
        let (a, b) = (shown(&[1; 100]), shown(&[1; 101]));
        assert!(a != b && a.len() < 120, "{a} {b}");
        assert_eq!(shown(b"short"), "short");
    }
}
