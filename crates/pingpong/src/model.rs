//! The rows that must be there: every column family as a map from key to its versions.
//!
//! A version is the row after one write, so a merge is computed when it is written and a range deletion is a
//! deletion of each key. A sequence number counts writes (a batch is one), and what any snapshot, iterator or
//! crash may show is the newest version at or below some number.
//!
//! Invariant: `written` of a family is the newest number that a crash must not lose.
//!
//! Next: `rules.rs` decides which operations make sense in a state.

use crate::case::{Family, Merge, Phase};
use crate::merge::join;
use crate::operation::{Durability, Ending, Key, Move, Operation, Record, View, shown};
use std::collections::BTreeMap;

/// A row as workers show it.
pub type Row = (String, String);

/// A row after a write: the write's number, and the value or none.
type Version = (u64, Option<Vec<u8>>);

#[derive(Clone, Debug, Default)]
struct Rows {
    /// Oldest first.
    versions: BTreeMap<Key, Vec<Version>>,
    /// Writes up to here survive SIGKILL.
    written: u64,
    /// There are writes outside the WAL since the last flush.
    unlogged: bool,
}

/// An iterator: the rows it sees and where it is.
#[derive(Clone, Debug)]
struct Cursor {
    rows: Vec<(Key, Vec<u8>)>,
    reverse: bool,
    at: Option<usize>,
    /// Length of the prefix that limits it after a seek.
    prefix_len: Option<usize>,
}

/// The state of a database.
#[derive(Clone, Debug)]
pub struct Model {
    families: Vec<Family>,
    rows: BTreeMap<usize, Rows>,
    sequence: u64,
    snapshots: BTreeMap<usize, u64>,
    iterators: BTreeMap<usize, Cursor>,
    /// The records that prepared transactions will write, by name. It outlives closing and SIGKILL.
    prepared: BTreeMap<String, Vec<Record>>,
    /// WAL records wait in the engine's memory until they are flushed.
    manual_wal_flush: bool,
    /// Nothing goes to the WAL, and all column families are flushed together: SIGKILL takes them back to one point.
    flushed_together: bool,
}

impl Model {
    /// A new database.
    pub fn new(families: &[Family], initial: &[usize]) -> Model {
        Model {
            families: families.to_vec(),
            rows: initial.iter().map(|&index| (index, Rows::default())).collect(),
            sequence: 0,
            snapshots: BTreeMap::new(),
            iterators: BTreeMap::new(),
            prepared: BTreeMap::new(),
            manual_wal_flush: false,
            flushed_together: false,
        }
    }

    /// Indexes of the column families that exist.
    pub fn existing(&self) -> Vec<usize> {
        self.rows.keys().copied().collect()
    }

    /// The description of a column family.
    pub fn family(&self, family: usize) -> &Family {
        &self.families[family]
    }

    /// Number of the newest write.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Open iterators.
    pub fn has_iterator(&self, slot: usize) -> bool {
        self.iterators.contains_key(&slot)
    }

    /// Whether any iterator is open.
    pub fn has_iterators(&self) -> bool {
        !self.iterators.is_empty()
    }

    /// Whether a snapshot is held in this slot.
    pub fn has_snapshot(&self, slot: usize) -> bool {
        self.snapshots.contains_key(&slot)
    }

    /// The transactions that are prepared, with what they will write.
    pub fn prepared(&self) -> &BTreeMap<String, Vec<Record>> {
        &self.prepared
    }

    /// Whether SIGKILL would lose writes that are in no WAL, of some column families and not of others.
    pub fn has_unlogged(&self) -> bool {
        !self.flushed_together && self.has_unflushed()
    }

    /// Whether there are writes that are in no WAL and not flushed.
    pub fn has_unflushed(&self) -> bool {
        self.rows.values().any(|rows| rows.unlogged)
    }

    /// Whether WAL records wait in the engine's memory.
    pub fn has_buffered(&self) -> bool {
        self.manual_wal_flush && self.rows.values().any(|rows| rows.written < self.sequence)
    }

    /// Whether all column families are flushed together, and nothing is logged.
    pub fn is_flushed_together(&self) -> bool {
        self.flushed_together
    }

    /// Begins a phase with these options: nothing is held.
    pub fn open(&mut self, phase: &Phase) {
        self.manual_wal_flush = phase.has("manual_wal_flush=true");
        self.flushed_together = phase.unlogged && phase.has("atomic_flush=true");
        self.release_all();
    }

    fn release_all(&mut self) {
        self.snapshots.clear();
        self.iterators.clear();
        for rows in self.rows.values_mut() {
            // Older versions can never be seen again: what is left is what a crash may go back to.
            for versions in rows.versions.values_mut() {
                let newest_written = versions.iter().rposition(|(seq, _)| *seq <= rows.written);
                versions.drain(..newest_written.unwrap_or(0));
            }
            rows.versions.retain(|_, versions| versions.len() > 1 || versions[0].1.is_some());
        }
    }

    /// Ends a phase by closing the database: everything is written.
    pub fn close(&mut self) {
        for rows in self.rows.values_mut() {
            rows.written = self.sequence;
            rows.unlogged = false;
        }
        self.release_all();
    }

    /// The newest value of a key.
    pub fn get(&self, family: usize, key: &Key) -> Option<&Vec<u8>> {
        self.get_at(family, key, u64::MAX)
    }

    fn get_at(&self, family: usize, key: &Key, sequence: u64) -> Option<&Vec<u8>> {
        visible(self.rows.get(&family)?.versions.get(key)?, sequence)
    }

    /// All rows in the family's order, as of a sequence number.
    fn rows_at(&self, family: usize, sequence: u64) -> Vec<(Key, Vec<u8>)> {
        let Some(rows) = self.rows.get(&family) else { return Vec::new() };
        let visible = rows
            .versions
            .iter()
            .filter_map(|(key, versions)| Some((key.clone(), visible(versions, sequence)?.clone())));
        let mut all: Vec<_> = visible.collect();
        if self.families[family].reverse {
            all.reverse();
        }
        all
    }

    /// All rows, in the family's order.
    pub fn rows(&self, family: usize) -> Vec<(Key, Vec<u8>)> {
        self.rows_at(family, u64::MAX)
    }

    /// All rows as a worker shows them.
    pub fn shown_rows(&self, family: usize, sequence: u64) -> Vec<Row> {
        self.rows_at(family, sequence).iter().map(|(key, value)| (key.text(), shown(value))).collect()
    }

    /// Keys that were ever used and are not there now, at most `limit`.
    pub fn absent_keys(&self, family: usize, limit: usize) -> Vec<Key> {
        let Some(rows) = self.rows.get(&family) else { return Vec::new() };
        let absent = rows.versions.iter().filter(|(_, versions)| visible(versions, u64::MAX).is_none());
        absent.map(|(key, _)| key.clone()).take(limit).collect()
    }

    /// Applies an operation that succeeded.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { records, durability, .. } => self.write(records, *durability),
            Operation::Transact { name, records, synced, end } => match end {
                Ending::RollBack => {}
                Ending::Prepare => {
                    self.prepared.insert(name.clone(), records.clone());
                }
                Ending::Commit | Ending::BothPhases => {
                    self.write(records, if *synced { Durability::Synced } else { Durability::Logged });
                }
            },
            Operation::Resolve { name, commit } => {
                let records = self.prepared.remove(name).unwrap_or_default();
                if *commit {
                    self.write(&records, Durability::Logged);
                }
            }
            // The table is durable by itself; the memtable stays where it is.
            Operation::Ingest { records, .. } => self.write(records, Durability::Logged),
            Operation::Flush { family, wait: true } => self.flushed(*family),
            Operation::FlushWal { .. } => self.logged(),
            Operation::TakeSnapshot { slot } => {
                self.snapshots.insert(*slot, self.sequence);
            }
            Operation::ReleaseSnapshot { slot } => {
                self.snapshots.remove(slot);
            }
            Operation::OpenIterator { slot, view } => {
                let cursor = self.cursor(view);
                self.iterators.insert(*slot, cursor);
            }
            Operation::CloseIterator { slot } => {
                self.iterators.remove(slot);
            }
            Operation::CreateFamily { family } => {
                let rows = Rows { written: self.sequence, ..Rows::default() };
                self.rows.insert(*family, rows);
            }
            Operation::DropFamily { family } => {
                self.rows.remove(family);
            }
            _ => {}
        }
    }

    /// Applies a write whose answer SIGKILL prevented: it may or may not be there.
    pub fn apply_unanswered(&mut self, operation: &Operation) {
        let written: BTreeMap<usize, u64> =
            self.rows.iter().map(|(&family, rows)| (family, rows.written)).collect();
        self.apply(operation);
        for (family, rows) in &mut self.rows {
            rows.written = written[family];
        }
    }

    fn flushed(&mut self, family: usize) {
        let together = self.flushed_together;
        for (_, rows) in self.rows.iter_mut().filter(|(of, _)| together || **of == family) {
            rows.written = self.sequence;
            rows.unlogged = false;
        }
    }

    /// Everything that went to the WAL is with the operating system.
    fn logged(&mut self) {
        for rows in self.rows.values_mut().filter(|rows| !rows.unlogged) {
            rows.written = self.sequence;
        }
    }

    fn write(&mut self, records: &[Record], durability: Durability) {
        self.sequence += 1;
        for record in records {
            self.record(record);
            if durability == Durability::Unlogged
                && let Some(rows) = record.family().and_then(|family| self.rows.get_mut(&family))
            {
                rows.unlogged = true;
            }
        }
        if durability == Durability::Synced || (durability == Durability::Logged && !self.manual_wal_flush) {
            self.logged();
        }
    }

    /// Applies one record of the write that is being applied, so that the next sees it.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Put(family, key, value) => self.set(*family, key, Some(value.bytes())),
            Record::Delete(family, key) | Record::SingleDelete(family, key) => self.set(*family, key, None),
            Record::Merge(family, key, operand) => {
                let merged = self.merged(*family, key, &operand.bytes());
                self.set(*family, key, Some(merged));
            }
            Record::DeleteRange(family, begin, end) => {
                for (key, _) in self.rows_at(*family, u64::MAX) {
                    if self.between(*family, &key, Some(begin), Some(end)) {
                        self.set(*family, &key, None);
                    }
                }
            }
            Record::PutEntity(family, key, columns) => {
                // Lookups and iterators show the column without a name; without one the value is empty.
                let default = columns.iter().find(|(name, _)| name.0.is_empty());
                let value = default.map_or_else(Vec::new, |(_, value)| value.bytes());
                self.set(*family, key, Some(value));
            }
            Record::Fill { family, prefix, first, count, len, seed } => {
                for (key, value) in Record::filled(prefix, *first, *count, *len, *seed) {
                    self.set(*family, &key, Some(value.bytes()));
                }
            }
            Record::LogData(_) => {}
        }
    }

    fn merged(&self, family: usize, key: &Key, operand: &[u8]) -> Vec<u8> {
        let existing = self.get(family, key);
        match self.families[family].merge {
            Merge::Add => {
                let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
                let sum = existing.map_or(0, |bytes| number(bytes)).wrapping_add(number(operand));
                sum.to_le_bytes().to_vec()
            }
            Merge::Append | Merge::None => match existing {
                Some(value) => join(&[value, operand]),
                None => operand.to_vec(),
            },
        }
    }

    fn set(&mut self, family: usize, key: &Key, value: Option<Vec<u8>>) {
        let sequence = self.sequence;
        let Some(rows) = self.rows.get_mut(&family) else { return };
        let versions = rows.versions.entry(key.clone()).or_default();
        match versions.last_mut() {
            Some((newest, last)) if *newest == sequence => *last = value,
            _ => versions.push((sequence, value)),
        }
    }

    /// Whether a key is between bounds in the family's order.
    pub fn between(&self, family: usize, key: &Key, lower: Option<&Key>, upper: Option<&Key>) -> bool {
        let reverse = self.families[family].reverse;
        let before = |a: &Key, b: &Key| if reverse { a > b } else { a < b };
        lower.is_none_or(|lower| !before(key, lower)) && upper.is_none_or(|upper| before(key, upper))
    }

    fn sequence_of(&self, view: &View) -> u64 {
        view.snapshot.map_or(u64::MAX, |slot| self.snapshots[&slot])
    }

    /// The values that a lookup must find.
    pub fn values(&self, view: &View, keys: &[Key]) -> Vec<Option<String>> {
        let sequence = self.sequence_of(view);
        keys.iter().map(|key| self.get_at(view.family, key, sequence).map(|value| shown(value))).collect()
    }

    fn cursor(&self, view: &View) -> Cursor {
        let mut rows = self.rows_at(view.family, self.sequence_of(view));
        rows.retain(|(key, _)| self.between(view.family, key, view.lower.as_ref(), view.upper.as_ref()));
        let family = &self.families[view.family];
        let prefix_len = family.prefix_len().filter(|_| view.same_prefix);
        Cursor { rows, reverse: family.reverse, at: None, prefix_len }
    }

    /// Where an iterator that is opened now must be after each move.
    pub fn walk(&self, view: &View, moves: &[Move]) -> Vec<Option<Row>> {
        self.cursor(view).walk(moves)
    }

    /// Where an open iterator must be after each move.
    pub fn move_iterator(&mut self, slot: usize, moves: &[Move]) -> Vec<Option<Row>> {
        self.iterators.get_mut(&slot).map_or_else(Vec::new, |cursor| cursor.walk(moves))
    }

    /// After SIGKILL: finds a state that explains `found` (all rows of every family), between what must have
    /// been written and `upto`, and goes back to it. Writes are in one log, so all families go back to the same
    /// write; only with a WAL that is flushed by hand may a flushed family be ahead of the others.
    pub fn recover(&mut self, found: &BTreeMap<usize, Vec<Row>>) -> Result<(), String> {
        let lowest = self.rows.values().map(|rows| rows.written).min().unwrap_or(self.sequence);
        let explains = |family: usize, sequence: u64| self.shown_rows(family, sequence) == found[&family];
        let mut chosen: BTreeMap<usize, u64> = BTreeMap::new();
        if let Some(common) = (lowest..=self.sequence).rev().find(|&sequence| {
            self.rows.iter().all(|(&family, rows)| explains(family, sequence.max(rows.written)))
        }) {
            chosen.extend(self.rows.iter().map(|(&family, rows)| (family, common.max(rows.written))));
        } else {
            for (&family, rows) in &self.rows {
                let Some(sequence) = (rows.written..=self.sequence).rev().find(|&s| explains(family, s))
                else {
                    return Err(self.unexplained(family, &found[&family]));
                };
                chosen.insert(family, sequence);
            }
            if !self.manual_wal_flush || self.flushed_together {
                return Err(format!("no single point of the log explains all column families: {chosen:?}"));
            }
        }
        for (family, sequence) in chosen {
            let rows = self.rows.get_mut(&family).expect("it was just looked at");
            for versions in rows.versions.values_mut() {
                versions.retain(|(seq, _)| *seq <= sequence);
            }
            rows.versions.retain(|_, versions| !versions.is_empty());
            rows.written = self.sequence;
            rows.unlogged = false;
        }
        self.release_all();
        Ok(())
    }

    fn unexplained(&self, family: usize, found: &[Row]) -> String {
        let must = self.shown_rows(family, self.rows[&family].written);
        let newest = self.shown_rows(family, u64::MAX);
        let oldest = difference(&must, found).unwrap_or_default();
        let newest = difference(&newest, found).unwrap_or_default();
        format!(
            "family {family} is at no point between what must be written ({oldest}) and the end ({newest})"
        )
    }
}

/// The newest value at or below a sequence number.
fn visible(versions: &[Version], sequence: u64) -> Option<&Vec<u8>> {
    versions.iter().rev().find(|(seq, _)| *seq <= sequence)?.1.as_ref()
}

impl Cursor {
    fn walk(&mut self, moves: &[Move]) -> Vec<Option<Row>> {
        let mut limit: Option<Vec<u8>> = None;
        let mut positions = Vec::new();
        for step in moves {
            let before = |a: &Key, b: &Key| if self.reverse { a > b } else { a < b };
            self.at = match step {
                Move::First => (!self.rows.is_empty()).then_some(0),
                Move::Last => self.rows.len().checked_sub(1),
                Move::Next => self.at.map(|at| at + 1).filter(|at| *at < self.rows.len()),
                Move::Prev => self.at.and_then(|at| at.checked_sub(1)),
                Move::Seek(key) => self.rows.iter().position(|(row, _)| !before(row, key)),
                Move::SeekForPrev(key) => self.rows.iter().rposition(|(row, _)| !before(key, row)),
            };
            if let (Some(len), Move::Seek(key)) = (self.prefix_len, step) {
                limit = key.0.get(..len).map(<[u8]>::to_vec);
            }
            if let (Some(at), Some(prefix)) = (self.at, &limit)
                && !self.rows[at].0.0.starts_with(prefix)
            {
                self.at = None;
            }
            positions.push(self.at.map(|at| {
                let (key, value) = &self.rows[at];
                (key.text(), shown(value))
            }));
        }
        positions
    }
}

/// How rows that were found differ from those expected, for people; `None`: they do not.
pub fn difference(expected: &[Row], found: &[Row]) -> Option<String> {
    if expected == found {
        return None;
    }
    let of = |rows: &[Row]| -> BTreeMap<String, String> { rows.iter().cloned().collect() };
    let (wanted, got) = (of(expected), of(found));
    let missing: Vec<_> = wanted.iter().filter(|(key, _)| !got.contains_key(*key)).collect();
    let extra: Vec<_> = got.iter().filter(|(key, _)| !wanted.contains_key(*key)).collect();
    let changed: Vec<_> = wanted
        .iter()
        .filter_map(|(k, v)| got.get(k).filter(|found| *found != v).map(|found| (k, v, found)))
        .collect();
    let mut text = format!("{} rows expected, {} found", expected.len(), found.len());
    if let Some((key, value)) = missing.first() {
        text += &format!("; {} missing, the first {key}: {value}", missing.len());
    }
    if let Some((key, value)) = extra.first() {
        text += &format!("; {} too many, the first {key}: {value}", extra.len());
    }
    if let Some((key, wanted, found)) = changed.first() {
        text += &format!("; {} differ, the first {key}: {wanted} expected, {found} found", changed.len());
    }
    if missing.is_empty() && extra.is_empty() && changed.is_empty() {
        text += "; the order differs, or a row is there twice";
    }
    Some(text)
}

#[cfg(test)]
mod tests;
