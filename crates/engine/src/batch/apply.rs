//! Inserting a batch into memtables. The write path and recovery both end here.

use super::codec::{self, Op};
use outcrop_base::{CfId, Result, SeqNum, ValueType};
use outcrop_memtable::MemTable;

/// Passes the records of the wire-form batch `bytes` to `write`, each with its column family and sequence number, the
/// first of which is `first`. Returns how many records there were.
///
/// # Errors
/// As [`codec::records`]; records before the bad one are then already passed.
#[inline]
pub fn apply(bytes: &[u8], first: SeqNum, mut write: impl FnMut(CfId, SeqNum, Op<'_>)) -> Result<u64> {
    let mut count = 0;
    for record in codec::records(bytes)? {
        let record = record?;
        write(record.cf, first.plus(count), record.op);
        count += 1;
    }
    Ok(count)
}

/// Inserts one write under `seq`.
#[inline]
pub fn insert(memtable: &MemTable, seq: SeqNum, op: Op<'_>) {
    match op {
        Op::Put { key, value } => memtable.insert(seq, ValueType::Value, key, value),
        Op::Delete { key } => memtable.insert(seq, memtable.deletion(), key, &[]),
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
