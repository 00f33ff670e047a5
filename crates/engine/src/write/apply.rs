//! Inserting a batch into memtables. The write path and recovery both end here.

use super::batch::{self, Op};
use outcrop_base::{Result, SeqNum, ValueType};
use outcrop_memtable::MemTable;

/// Inserts the records of the wire-form batch `bytes`, the first under sequence number `first`, into the
/// memtable `memtable_of` names for their column family. A `None` skips the record, which still takes its
/// sequence number. Returns how many records there were.
///
/// # Errors
/// As [`batch::records`]; records before the bad one are then already inserted.
pub fn apply<'m>(
    bytes: &[u8],
    first: SeqNum,
    mut memtable_of: impl FnMut(u32) -> Option<&'m MemTable>,
) -> Result<u64> {
    let mut count = 0;
    for record in batch::records(bytes)? {
        let record = record?;
        if let Some(memtable) = memtable_of(record.cf) {
            insert(memtable, first.plus(count), record.op);
        }
        count += 1;
    }
    Ok(count)
}

/// Inserts one write under `seq`.
#[inline]
pub fn insert(memtable: &MemTable, seq: SeqNum, op: Op<'_>) {
    match op {
        Op::Put { key, value } => memtable.insert(seq, ValueType::Value, key, value),
        Op::Delete { key } => memtable.insert(seq, ValueType::Deletion, key, &[]),
        Op::SingleDelete { key } => memtable.insert(seq, ValueType::SingleDeletion, key, &[]),
        Op::DeleteRange { begin, end } => {
            // An empty range takes its sequence number and does nothing else.
            if memtable.comparator().compare(begin, end).is_lt() {
                memtable.insert_range_tombstone(seq, begin, end);
            }
        }
        Op::PutEntity { key, entity } => memtable.insert(seq, ValueType::WideColumnEntity, key, entity),
        Op::Merge { key, operand } => memtable.insert(seq, ValueType::Merge, key, operand),
    }
}
