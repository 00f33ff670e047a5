//! The records of an indexed batch in the order of their keys, one by one.

use super::codec::{Op, Record};
use super::indexed::{Contents, IndexedBatch, key_of, record_at};
use super::key_index::{Entry, KeyIndex, Position};
use outcrop_base::CfId;
use parking_lot::RwLock;
use std::sync::Arc;

/// A position among the records of one column family in an [`IndexedBatch`], newest first of those of one key. It sees what is added to the
/// batch while it is there.
///
/// ```
/// # use outcrop::*;
/// let batch = IndexedBatch::default();
/// batch.put("b", "2")?;
/// batch.delete("a")?;
/// let mut entries = batch.entries(CfId::DEFAULT);
/// entries.seek_to_first();
/// assert!(entries.with(|record| record.op == Op::Delete { key: b"a" }).unwrap());
/// entries.next();
/// assert!(entries.with(|record| record.op == Op::Put { key: b"b", value: b"2" }).unwrap());
/// entries.next();
/// assert!(!entries.is_valid());
/// # outcrop::Result::Ok(())
/// ```
pub struct BatchEntries {
    contents: Arc<RwLock<Contents>>,
    family: CfId,
    /// Key, and where the record starts.
    at: Option<(Vec<u8>, usize)>,
}

impl IndexedBatch {
    /// The records of the column family whose id is `family`; not positioned.
    pub fn entries(&self, family: CfId) -> BatchEntries {
        BatchEntries { contents: self.contents.clone(), family, at: None }
    }
}

impl BatchEntries {
    /// True if it is at a record.
    pub fn is_valid(&self) -> bool {
        self.at.is_some()
    }

    /// To the first record.
    pub fn seek_to_first(&mut self) {
        self.go(|index, _| index.entry(index.start()));
    }

    /// To the last record.
    pub fn seek_to_last(&mut self) {
        self.go(|index, _| index.entry_before(index.end()));
    }

    /// To the first record whose key is `key` or after it.
    pub fn seek(&mut self, key: &[u8]) {
        self.go(|index, rep| index.entry(index.at_or_after(rep, key)));
    }

    /// To the last record whose key is `key` or before it.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.go(|index, rep| index.entry_before(index.after(rep, key)));
    }

    /// To the next record, if it is at one.
    pub fn next(&mut self) {
        self.go_on(|index, _, position| index.entries_from(position).nth(1));
    }

    /// To the record before, if it is at one.
    pub fn prev(&mut self) {
        self.go_on(|index, _, position| index.entry_before(position));
    }

    /// Gives what `see` makes of the record; `None` if it is at none. The batch is locked meanwhile: `see` must not change it.
    pub fn with<T>(&self, see: impl FnOnce(Record<'_>) -> T) -> Option<T> {
        let at = self.at.as_ref()?;
        let contents = self.contents.read();
        let (index, rep) = contents.index(self.family)?;
        let entry = index.entry(position_of(index, rep, at)?)?;
        Some(see(record_at(rep, entry.offset)))
    }

    fn go(&mut self, find: impl FnOnce(&KeyIndex, &[u8]) -> Option<Entry>) {
        let contents = self.contents.read();
        self.at = contents
            .index(self.family)
            .and_then(|(index, rep)| find(index, rep).map(|entry| (entry.key(rep).to_vec(), entry.offset)));
    }

    /// From where the record is now: others may have come before it.
    fn go_on(&mut self, find: impl FnOnce(&KeyIndex, &[u8], Position) -> Option<Entry>) {
        let Some(at) = self.at.take() else { return };
        self.go(|index, rep| find(index, rep, position_of(index, rep, &at)?));
    }
}

/// Where the entry of a key is that begins at an offset, or the one that has taken its place (`overwrite_key`). `None` if the batch
/// was cleared or rolled back meanwhile.
fn position_of(index: &KeyIndex, rep: &[u8], (key, offset): &(Vec<u8>, usize)) -> Option<Position> {
    let first = index.at_or_after(rep, key);
    let of_key = |entry: &Entry| index.comparator.compare(entry.key(rep), key).is_eq();
    let not_older =
        index.entries_from(first).take_while(|entry| of_key(entry) && entry.offset >= *offset).count();
    Some(index.advanced(first, not_older.checked_sub(1)?))
}

impl<'a> Op<'a> {
    /// The key, or the first key of a range.
    pub fn key(&self) -> &'a [u8] {
        key_of(self)
    }

    /// The part that goes with the key: a value, a merge operand, an entity, or the end of a range.
    pub fn value(&self) -> Option<&'a [u8]> {
        match *self {
            Op::Put { value, .. } => Some(value),
            Op::Merge { operand, .. } => Some(operand),
            Op::PutEntity { entity, .. } => Some(entity),
            Op::DeleteRange { end, .. } => Some(end),
            Op::Delete { .. } | Op::SingleDelete { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexedBatchOptions;

    fn texts(entries: &BatchEntries) -> (String, Option<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        entries.with(|record| (text(record.op.key()), record.op.value().map(text))).expect("it is at one")
    }

    #[test]
    fn records_come_in_order_from_both_ends_newest_first() {
        let batch = IndexedBatch::default();
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3"), ("c", "4")] {
            batch.put(key, value).unwrap();
        }
        batch.delete("b").unwrap();
        let mut entries = batch.entries(CfId(0));
        assert!(!entries.is_valid() && entries.with(|_| ()).is_none());
        let mut forward = Vec::new();
        entries.seek_to_first();
        while entries.is_valid() {
            forward.push(texts(&entries));
            entries.next();
        }
        let row = |key: &str, value: Option<&str>| (key.to_string(), value.map(str::to_string));
        let expected = [
            row("a", Some("2")),
            row("b", None),
            row("b", Some("3")),
            row("b", Some("1")),
            row("c", Some("4")),
        ];
        assert_eq!(forward, expected);
        let mut backward = Vec::new();
        entries.seek_to_last();
        while entries.is_valid() {
            backward.push(texts(&entries));
            entries.prev();
        }
        backward.reverse();
        assert_eq!(backward, expected);
        entries.seek(b"bb");
        assert_eq!(texts(&entries).0, "c");
        entries.seek_for_prev(b"bb");
        assert_eq!(texts(&entries), row("b", Some("1")));
        assert!(batch.entries(CfId(1)).with(|_| ()).is_none());
    }

    #[test]
    fn a_position_goes_on_after_others_came_before_it() {
        let batch = IndexedBatch::new(IndexedBatchOptions { overwrite_key: true, ..Default::default() });
        batch.put("b", "1").unwrap();
        batch.put("d", "2").unwrap();
        let mut entries = batch.entries(CfId(0));
        entries.seek(b"b");
        batch.put("a", "3").unwrap();
        batch.put("b", "4").unwrap();
        batch.put("c", "5").unwrap();
        entries.next();
        assert_eq!(texts(&entries).0, "c");
        entries.seek_to_last();
        entries.prev();
        assert_eq!(texts(&entries).0, "c");
        batch.clear();
        assert!(entries.with(|_| ()).is_none());
        entries.next();
        assert!(!entries.is_valid());
    }
}
