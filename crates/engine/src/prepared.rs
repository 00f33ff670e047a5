//! Transactions that were prepared but neither committed nor rolled back when a WAL ended.
//!
//! ```text
//! WAL: ... | Begin put k v End(xid) | ... | Commit(xid) | ...
//!            prepared: kept apart           happens here
//! ```
//! The prepared writes are not visible, and the WAL they are in is not removed. A database that is opened without transactions
//! keeps them, so that whoever opens it next as a [`crate::TransactionDb`] can still decide.
//! Invariant: a WAL that holds an unresolved prepared transaction is in `min_log_number_to_keep`'s range.
//! Source: RocksDB `db/write_batch.cc`, `MarkBeginPrepare`, `MarkCommit`.

use crate::batch::apply::insert;
use crate::batch::codec::{self, Item, Marker, Record, WriteBatch};
use outcrop_base::{CfId, Error, FileNumber, Result, SeqNum};
use outcrop_memtable::MemTable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prepared transactions by name.
#[derive(Debug, Default)]
pub struct PreparedTransactions {
    waiting: BTreeMap<Vec<u8>, Prepared>,
    /// One was prepared, now or in a WAL that was replayed.
    any: bool,
    /// The WAL that resuming has written all into again, until the older ones are not needed.
    again: Option<FileNumber>,
}

#[derive(Debug)]
struct Prepared {
    /// The WAL it is in.
    wal: FileNumber,
    writes: Arc<WriteBatch>,
    /// A transaction object has it in hand.
    owned: bool,
}

impl PreparedTransactions {
    /// Names of those that wait.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.waiting.keys().map(Vec::as_slice)
    }

    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if one was ever prepared here: a WAL may have a decision and an older one the transaction that it is about, and neither
    /// is in a memtable. The MANIFEST has to say that both are done with before either goes.
    pub fn has_any(&self) -> bool {
        self.any
    }

    /// The WAL that `name` is in, and its writes.
    pub fn get(&self, name: &[u8]) -> Option<(FileNumber, Arc<WriteBatch>)> {
        self.waiting.get(name).map(|prepared| (prepared.wal, prepared.writes.clone()))
    }

    /// `name` was prepared in `wal`, by a transaction that goes on.
    pub fn add(&mut self, name: &[u8], wal: FileNumber, writes: Arc<WriteBatch>) {
        self.any = true;
        let owned = self.waiting.get(name).is_none_or(|known| known.owned);
        self.waiting.insert(name.to_vec(), Prepared { wal, writes, owned });
    }

    /// All that wait are in `wal`, too.
    pub fn are_again_in(&mut self, wal: FileNumber) {
        self.again = Some(wal);
    }

    /// No WAL before `needed` is replayed any more: all that wait are where they were written again, if they were and it is not older.
    pub fn leave_before(&mut self, needed: FileNumber) {
        if let Some(wal) = self.again.take_if(|wal| *wal <= needed) {
            self.waiting.values_mut().for_each(|prepared| prepared.wal = wal);
        }
    }

    /// `name` was decided; false if it did not wait.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        self.waiting.remove(name).is_some()
    }

    /// All that wait, with their writes.
    pub fn list(&self) -> Vec<(Vec<u8>, Arc<WriteBatch>)> {
        self.waiting.iter().map(|(name, prepared)| (name.clone(), prepared.writes.clone())).collect()
    }

    /// Those that no transaction object has in hand; they are in hand from here on.
    pub fn take_over(&mut self) -> Vec<(Vec<u8>, FileNumber, Arc<WriteBatch>)> {
        let free = self.waiting.iter_mut().filter(|(_, prepared)| !prepared.owned);
        free.map(|(name, prepared)| {
            prepared.owned = true;
            (name.clone(), prepared.wal, prepared.writes.clone())
        })
        .collect()
    }

    /// The same for `name` alone, if it is one of them.
    pub fn take_over_one(&mut self, name: &[u8]) -> Option<(FileNumber, Arc<WriteBatch>)> {
        let prepared = self.waiting.get_mut(name).filter(|prepared| !prepared.owned)?;
        prepared.owned = true;
        Some((prepared.wal, prepared.writes.clone()))
    }

    /// No transaction object has `name` in hand any more.
    pub fn leave(&mut self, name: &[u8]) {
        if let Some(prepared) = self.waiting.get_mut(name) {
            prepared.owned = false;
        }
    }

    /// The oldest WAL that one is in.
    pub fn oldest_wal(&self) -> Option<FileNumber> {
        self.waiting.values().map(|prepared| prepared.wal).min()
    }

    /// The oldest WAL that has to be replayed, if what is in memory needs none before `in_memory`.
    pub fn oldest_needed(&self, in_memory: FileNumber) -> FileNumber {
        let oldest =
            self.oldest_wal().map(|oldest| self.again.filter(|again| *again <= in_memory).unwrap_or(oldest));
        in_memory.min(oldest.unwrap_or(FileNumber::MAX))
    }

    /// Applies a batch of WAL `wal`, as [`crate::batch::apply::apply`] does, and follows its markers.
    ///
    /// # Errors
    /// Corruption if the markers make no sense.
    pub fn replay<'m>(
        &mut self,
        bytes: &[u8],
        first: SeqNum,
        wal: FileNumber,
        memtable_of: impl Fn(CfId) -> Option<&'m MemTable>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut apply = |record: Record<'_>| {
            if let Some(memtable) = memtable_of(record.cf) {
                insert(memtable, first.plus(count), record.op);
                // Nobody else writes yet: there is no pause to avoid, but pages to be taken many at a time.
                if let Some(ahead) = memtable.prefault_range() {
                    memtable.prefault(&ahead);
                }
            }
            count += 1;
        };
        let mut preparing: Option<WriteBatch> = None;
        let mut records = codec::records(bytes)?;
        while let Some(item) = records.next_item() {
            match (item?, &mut preparing) {
                (Item::Write(record), Some(writes)) => writes.push(record),
                (Item::Write(record), None) => apply(record),
                (Item::Marker(Marker::BeginPrepare), None) => preparing = Some(WriteBatch::new()),
                (Item::Marker(Marker::EndPrepare(name)), Some(_)) => {
                    self.any = true;
                    let writes = preparing.take().unwrap_or_default();
                    self.waiting
                        .insert(name.to_vec(), Prepared { wal, writes: Arc::new(writes), owned: false });
                }
                (Item::Marker(Marker::Commit(name)), None) => {
                    // One that is not known was prepared in a WAL that is gone: its writes are in tables.
                    if let Some(prepared) = self.waiting.remove(name) {
                        for record in prepared.writes.iter() {
                            apply(record?);
                        }
                    }
                }
                (Item::Marker(Marker::Rollback(name)), None) => {
                    self.waiting.remove(name);
                }
                (Item::Marker(marker), _) => {
                    return Err(Error::corruption(format!(
                        "a write batch has {marker:?} where it cannot be"
                    )));
                }
            }
        }
        match preparing {
            None => Ok(count),
            Some(_) => Err(Error::corruption("a write batch ends inside a prepared transaction")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::codec::HEADER_LEN;
    use outcrop_base::{Comparator, LookupKey};
    use outcrop_memtable::MemTablePool;
    use std::ops::ControlFlow;
    use std::sync::Arc;

    const BEGIN: &[u8] = b"\x09";

    fn marker(tag: u8, name: &str) -> Vec<u8> {
        [&[tag, name.len() as u8], name.as_bytes()].concat()
    }

    fn put(key: &str, value: &str) -> Vec<u8> {
        let mut batch = WriteBatch::new();
        batch.put_id(CfId::DEFAULT, key.as_bytes(), value.as_bytes());
        batch.as_bytes()[HEADER_LEN..].to_vec()
    }

    fn record(parts: &[&[u8]]) -> Vec<u8> {
        [&[0; HEADER_LEN][..], &parts.concat()].concat()
    }

    fn value(memtable: &MemTable, key: &str) -> Option<(u64, Vec<u8>)> {
        let mut found = None;
        memtable.get(&LookupKey::new(key.as_bytes()), SeqNum::MAX, |seq, _, value| {
            found = Some((seq.0, value.to_vec()));
            ControlFlow::Break(())
        });
        found
    }

    #[test]
    fn prepared_writes_happen_where_they_are_committed_or_never() {
        let memtable = MemTable::new(Comparator::Bytewise, 1 << 16, &Arc::new(MemTablePool::new(0)));
        let mut prepared = PreparedTransactions::default();
        let mut replay = |bytes: &[u8], first: u64, wal| {
            prepared.replay(bytes, SeqNum(first), FileNumber(wal), |_| Some(&memtable)).unwrap()
        };
        assert_eq!(replay(&record(&[BEGIN, &put("a", "1"), &put("b", "2"), &marker(0x0A, "t1")]), 5, 7), 0);
        assert_eq!(replay(&record(&[BEGIN, &put("c", "3"), &marker(0x0A, "t2")]), 5, 8), 0);
        assert_eq!(replay(&record(&[BEGIN, &put("d", "4"), &marker(0x0A, "t3")]), 5, 9), 0);
        assert_eq!(value(&memtable, "a"), None);
        assert_eq!(replay(&record(&[&marker(0x0B, "t1")]), 20, 9), 2, "a commit takes its writes' numbers");
        assert_eq!(replay(&record(&[&marker(0x0C, "t2")]), 22, 9), 0);
        assert_eq!(
            (value(&memtable, "a"), value(&memtable, "b")),
            (Some((20, b"1".into())), Some((21, b"2".into())))
        );
        assert_eq!((value(&memtable, "c"), value(&memtable, "d")), (None, None));
        assert!(prepared.has_any() && !PreparedTransactions::default().has_any());
        assert_eq!(prepared.names().collect::<Vec<_>>(), [b"t3"]);
        assert_eq!(prepared.oldest_wal(), Some(FileNumber(9)));
    }

    #[test]
    fn what_was_written_again_needs_no_older_wal_once_memory_needs_none() {
        let wal = |number: u64| FileNumber(number);
        let mut prepared = PreparedTransactions::default();
        prepared.are_again_in(wal(9));
        assert_eq!(prepared.oldest_needed(wal(12)), wal(12), "nothing waits");
        prepared.add(b"t", wal(4), Arc::default());
        assert_eq!([8, 9, 12].map(|in_memory| prepared.oldest_needed(wal(in_memory)).0), [4, 9, 9]);
        prepared.leave_before(wal(8));
        assert_eq!(prepared.oldest_wal(), Some(wal(4)));
        prepared.leave_before(wal(9));
        assert_eq!(prepared.oldest_wal(), Some(wal(9)));
        prepared.add(b"u", wal(11), Arc::default());
        prepared.leave_before(wal(12));
        assert_eq!(prepared.get(b"u").unwrap().0, wal(11), "it was written there first");
    }

    #[test]
    fn markers_out_of_place_are_corruption() {
        let mut prepared = PreparedTransactions::default();
        for parts in [&[BEGIN][..], &[&marker(0x0A, "t")], &[BEGIN, BEGIN], &[BEGIN, &marker(0x0B, "t")]] {
            assert!(
                prepared.replay(&record(parts), SeqNum(1), FileNumber(1), |_| None).is_err(),
                "{parts:?}"
            );
        }
    }
}
