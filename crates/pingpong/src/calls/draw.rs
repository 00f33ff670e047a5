//! Draws calls.

use crate::case::{Family, Merge};
use crate::merge::UNMERGEABLE;
use crate::mistake::{BadTable, BadTarget, Gone, Mistake, Opening, REFUSED_CHANGES, Stopping, openings};
use crate::operation::{Key, Operation, Record, Value};
use crate::worker::Request;
use outcrop_base::random::SplitMix as Random;
use std::cmp::Ordering;

/// One call, or a few that belong together.
#[derive(Clone, Debug)]
pub enum Call {
    /// A request that the worker of the other harness knows, too; directories are each engine's.
    Ask(Request),
    /// Closes, opens in a way that fails, opens again.
    OpenWrongly(Opening),
    /// Builds a batch and writes it.
    Batch { items: Vec<Item>, sync: bool, wal: bool },
    /// Writes a batch of these bytes.
    Bytes(Vec<u8>),
    /// Ingests a table with these keys.
    Ingest { family: usize, records: Vec<String>, behind: bool, no_sequence: bool },
    /// Every row.
    Rows(usize),
    /// Changes an option.
    Set { family: usize, name: String, value: String },
    /// Closes and opens.
    Reopen,
    /// Closes, reads without merge operators, opens again.
    Mergeless,
}

/// A part of building a batch.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Item {
    Record(Record),
    LogData(Vec<u8>),
    SavePoint,
    Rollback,
    Pop,
    Clear,
}

/// Options and calls.
#[derive(Clone, Debug)]
pub struct Case {
    /// Of the database.
    pub options: Vec<String>,
    /// Options of column families that only this case has.
    pub family_options: Vec<(usize, String)>,
    /// In this order.
    pub calls: Vec<Call>,
}

impl Call {
    /// True if RocksDB writes no more after it; its log is then not worth reading.
    pub fn stops_writes(&self) -> bool {
        matches!(
            self,
            Call::Bytes(_)
                | Call::Ask(Request::Mistake {
                    mistake: Mistake::RangeBackwards { .. } | Mistake::AfterDrop(Gone::Put),
                    ..
                })
        )
    }

    /// True if it writes an operand that the first column family's operator refuses.
    fn writes_refused_operand(&self) -> bool {
        let refused = Value::Text(Key(UNMERGEABLE.to_vec()));
        let Call::Batch { items, .. } = self else { return false };
        items.iter().any(|item| matches!(item, Item::Record(Record::Merge(_, _, value)) if *value == refused))
    }

    /// True if it changes whether column family `family` is compacted without a call.
    fn changes_auto_compactions(&self, family: usize) -> bool {
        matches!(self, Call::Set { family: of, name, .. } if *of == family && name == "disable_auto_compactions")
    }

    /// True if the database is closed and opened by it.
    pub fn opens(&self) -> bool {
        matches!(self, Call::Reopen | Call::Mergeless | Call::OpenWrongly(_))
    }
}

/// Column families of every case: one appends, one adds, one has no merge operator.
pub fn families() -> Vec<Family> {
    vec![
        Family { merge: Merge::Append, ..Family::plain("default") },
        Family { merge: Merge::Add, ..Family::plain("adds") },
        Family::plain("plain"),
    ]
}

/// Every key there is.
pub fn keys() -> Vec<String> {
    (0..12).map(|n| format!("key{n:02}")).collect()
}

/// A case.
pub fn case(random: &mut Random) -> Case {
    const OPTIONS: &[&str] = &[
        "allow_ingest_behind=true",
        "atomic_flush=true",
        "manual_wal_flush=true",
        "avoid_flush_during_shutdown=true",
        "avoid_flush_during_recovery=true",
        "enable_pipelined_write=true",
        "unordered_write=true",
        "two_write_queues=true",
        "max_successive_merges=2",
        "wal_compression=kZSTD",
        "allow_concurrent_memtable_write=false",
    ];
    let mut options = Vec::new();
    if random.one_in(2) {
        options.push(random.pick(OPTIONS).to_string());
    }
    let drawn: Vec<Call> = (0..12).map(|_| call(random)).collect();
    let mut calls = Vec::new();
    for call in drawn {
        if let Call::Ingest { family, .. } = call {
            // Outcrop flushes before a file goes to L0, RocksDB only what the file overlaps: WALs go at other times.
            calls.push(Call::Ask(Request::Do(Operation::Flush { family, wait: true })));
        }
        calls.push(call);
    }
    if options.iter().any(|option| option == "atomic_flush=true") {
        // Outcrop flushes all column families there, RocksDB those that are named.
        for call in &mut calls {
            if let Call::Ask(Request::Do(Operation::Flush { .. })) = call {
                *call = Call::Ask(Request::FlushTogether { wait: true });
            }
        }
    }
    // A compaction that meets a refused operand ends all writes in both engines, but they do not pick the same tables of L0:
    // only calls may start one there.
    let mut family_options = Vec::new();
    if calls.iter().any(Call::writes_refused_operand) {
        family_options.push((0, "disable_auto_compactions=true".into()));
        calls.retain(|call| !call.changes_auto_compactions(0));
    }
    // RocksDB writes no more after these.
    let last = match random.below(4) {
        0 => Call::Ask(mistake(Mistake::AfterDrop(Gone::Put))),
        1 => Call::Ask(mistake(Mistake::RangeBackwards {
            family: random.index(3),
            begin: Key(b"key09".to_vec()),
            end: Key(b"key03".to_vec()),
        })),
        // Batches that cannot be decoded are in `mistake.rs`: RocksDB may take all memory there is for one.
        _ => {
            match random.pick(&[Stopping::UnknownFamily, Stopping::UnknownRecord, Stopping::Merge]).batch() {
                Some(bytes) => Call::Bytes(bytes),
                None => Call::Reopen,
            }
        }
    };
    calls.push(last);
    Case { options, family_options, calls }
}

fn mistake(mistake: Mistake) -> Request {
    Request::Mistake { mistake, scratch: String::new() }
}

fn key(random: &mut Random) -> Key {
    Key(random.pick(&keys()).into_bytes())
}

fn record(random: &mut Random) -> Record {
    let family = random.index(3);
    match random.below(10) {
        0..4 => Record::Put(family, key(random), Value::Number(random.below(100))),
        4 | 5 => deletion(family, key(random)),
        6 => {
            let (a, b) = (key(random), key(random));
            match a.cmp(&b) {
                Ordering::Less => Record::DeleteRange(family, a, b),
                // A range with nothing in it has a number of its own; RocksDB forgets that when it replays the WAL, and
                // gives the number of the record after it twice.
                Ordering::Equal => deletion(family, a),
                Ordering::Greater => Record::DeleteRange(family, b, a),
            }
        }
        7 => Record::Put(random.index(3), key(random), Value::Text(Key(b"seven b".to_vec()))),
        // The third has no operator, but a batch with it stops RocksDB.
        8 => Record::Merge(0, key(random), Value::Text(Key(random.pick(&[&b"m"[..], UNMERGEABLE]).to_vec()))),
        _ => {
            Record::Merge(1, key(random), random.pick(&[Value::Number(3), Value::Text(Key(b"odd".to_vec()))]))
        }
    }
}

/// A deletion in the way that the key is deleted by: RocksDB ends a flush with an error where both ways meet at one key.
fn deletion(family: usize, key: Key) -> Record {
    // Not where operands are: RocksDB promises nothing for a single deletion over one. Its flush drops both, so that what
    // is below is seen again; Outcrop's single deletion stays.
    let singly = family == 2 && key.0.last().is_some_and(|digit| digit % 2 == 0);
    if singly { Record::SingleDelete(family, key) } else { Record::Delete(family, key) }
}

fn items(random: &mut Random) -> Vec<Item> {
    let mut items = Vec::new();
    for _ in 0..random.below(7) {
        items.push(match random.below(12) {
            0 => Item::LogData(b"for the log".to_vec()),
            1 | 2 => Item::SavePoint,
            3 => Item::Rollback,
            4 => Item::Pop,
            5 if random.one_in(4) => Item::Clear,
            _ => Item::Record(record(random)),
        });
    }
    items
}

fn call(random: &mut Random) -> Call {
    let family = random.index(3);
    let own = |operation| Call::Ask(Request::Do(operation));
    match random.below(33) {
        0..10 => Call::Batch { items: items(random), sync: random.one_in(4), wal: !random.one_in(5) },
        10..12 => own(Operation::Flush { family, wait: true }),
        12 => Call::Ask(Request::FlushTogether { wait: true }),
        13 => {
            own(Operation::CompactRange { family, begin: None, end: None, bottommost: 2, exclusive: false })
        }
        14..17 => {
            let all = keys();
            let (from, count) = (random.index(all.len()), 1 + random.index(3));
            Call::Ingest {
                family,
                records: all[from..(from + count).min(all.len())].to_vec(),
                behind: random.one_in(4),
                no_sequence: random.one_in(4),
            }
        }
        17..19 => Call::Reopen,
        19 => Call::Mergeless,
        20..22 => Call::Rows(family),
        30..33 => {
            let (name, values) = random.pick(CHANGES);
            Call::Set { family, name: name.into(), value: random.pick(values).into() }
        }
        22 => {
            let (name, value) = random.pick(REFUSED_CHANGES);
            Call::Ask(mistake(Mistake::SetOption { family, name: name.into(), value: value.into() }))
        }
        23..25 => Call::OpenWrongly(random.pick(&openings())),
        25 => own(Operation::FlushWal { sync: random.one_in(2) }),
        26 => Call::Ask(Request::Checkpoint { path: String::new(), log_size_for_flush: 0 }),
        _ => Call::Ask(mistake(refused(random))),
    }
}

/// Options that may be changed, with values of which some are taken and some refused. Not drawn are what Outcrop
/// refuses on purpose: numbers that wrap round, and text after a number.
const CHANGES: &[(&str, &[&str])] = &[
    // Not so small that memtables fill: they do so at other moments.
    ("write_buffer_size", &["1048576", "4096K", "1M", "18446744073709551616", ""]),
    ("level0_file_num_compaction_trigger", &["2", "-3", "2147483648", ""]),
    ("disable_auto_compactions", &["true", "false", "1", "0", "yes", "TRUE"]),
    ("max_bytes_for_level_multiplier", &["8", "8.5", "1e1", "eight"]),
    ("paranoid_file_checks", &["true", "2"]),
    ("compression", &["kNoCompression", "kLZ4Compression", "lz4"]),
    ("ttl", &["100", "1000000"]),
    ("max_sequential_skip_in_iterations", &["0", "9"]),
    (
        "block_based_table_factory",
        &["{block_size=8192;}", "{block_size=8192", "block_size=8192;", "{{block_size=8192}}", "{=8192}"],
    ),
    ("compaction_options_fifo", &["{max_table_files_size=5;}", "{ttl=5;}", "{max_table_files_size=x;}"]),
    ("memtable_prefix_bloom_size_ratio", &["0.1", "2"]),
];

/// A mistake after which the engine goes on.
fn refused(random: &mut Random) -> Mistake {
    let family = random.index(3);
    match random.below(12) {
        0 => Mistake::CreateExisting { family },
        1 => Mistake::CreateNameless,
        2 => Mistake::DropDefault,
        3 => Mistake::AfterDrop(random.pick(&[Gone::Drop, Gone::Flush, Gone::SetOptions, Gone::Ingest])),
        4 => Mistake::SyncedUnlogged { family },
        5 | 6 => Mistake::Ingest { family, table: random.pick(&BadTable::ALL), key: key(random) },
        7 => Mistake::Checkpoint(random.pick(&[BadTarget::Directory, BadTarget::File, BadTarget::Nameless])),
        8 => Mistake::UpdatesOfTheFuture,
        9 => Mistake::Timestamp { family },
        10 => Mistake::MergeWithoutOperator { family: 2 },
        _ => Mistake::Destroy,
    }
}
