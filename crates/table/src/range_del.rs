//! Range tombstones of a table: the block `rocksdb.range_del`.
//!
//! ```text
//! entry = internal key (begin, sequence number, 0x0F) -> end user key, exclusive
//! ```
//! Stored in internal key order, each entry a restart point, never compressed. They are read as stored: they
//! may overlap, and they act only within the boundaries the MANIFEST has for the file; both are the caller's
//! business. Older RocksDB wrote them in no order, so none is relied on.
//! Source: RocksDB `db/range_tombstone_fragmenter.cc`.

use crate::block_builder::BlockBuilder;
use crate::properties::decode_pairs;
pub use outcrop_base::RangeTombstone;
use outcrop_base::keys::ParsedKey;
use outcrop_base::{Comparator, Error, Result, ValueType};
use std::cmp::Ordering;

/// Decodes the block. Tombstones that cover nothing are left out.
///
/// # Errors
/// Corruption saying what does not decode, without the file's name.
pub fn decode(block: &[u8], comparator: &Comparator) -> Result<Vec<RangeTombstone>> {
    let mut tombstones = Vec::new();
    for (key, end) in decode_pairs(block)? {
        let key = ParsedKey::parse(&key)?;
        if key.value_type != ValueType::RangeDeletion {
            return Err(Error::corruption(format!("a range tombstone of type {:?}", key.value_type)));
        }
        if comparator.compare(key.user_key, end) == Ordering::Less {
            tombstones.push(RangeTombstone { begin: key.user_key.to_vec(), end: end.to_vec(), seq: key.seq });
        }
    }
    Ok(tombstones)
}

/// Sorts the tombstones of a table and gives their block.
pub fn encode(tombstones: &mut [RangeTombstone], comparator: &Comparator) -> Vec<u8> {
    tombstones.sort_by(|a, b| a.order(b, comparator));
    let mut builder = BlockBuilder::new(1);
    for tombstone in tombstones {
        builder.add(&tombstone.start_key(), &tombstone.end);
    }
    builder.finish().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::SeqNum;
    use outcrop_base::keys::internal_key;

    fn tombstone(begin: &str, end: &str, seq: u64) -> RangeTombstone {
        RangeTombstone { begin: begin.into(), end: end.into(), seq: SeqNum(seq) }
    }

    #[test]
    fn tombstones_come_back_sorted() {
        let order = Comparator::Bytewise;
        let mut given = vec![tombstone("b", "z", 3), tombstone("a", "c", 1), tombstone("b", "d", 9)];
        let block = encode(&mut given, &order);
        let expected = [tombstone("a", "c", 1), tombstone("b", "d", 9), tombstone("b", "z", 3)];
        assert_eq!(decode(&block, &order).unwrap(), expected);
    }

    #[test]
    fn blocks_in_no_order_and_empty_ranges_are_read() {
        let mut builder = BlockBuilder::new(1);
        for (begin, end, seq) in [("m", "p", 4), ("a", "b", 7), ("x", "x", 2), ("z", "y", 2)] {
            builder.add(&tombstone(begin, end, seq).start_key(), end.as_bytes());
        }
        let expected = [tombstone("m", "p", 4), tombstone("a", "b", 7)];
        assert_eq!(decode(builder.finish(), &Comparator::Bytewise).unwrap(), expected);
    }

    #[test]
    fn other_entries_are_corruption() {
        let mut builder = BlockBuilder::new(1);
        builder.add(&internal_key(b"a", SeqNum(1), ValueType::Value), b"b");
        assert!(decode(builder.finish(), &Comparator::Bytewise).is_err());
        let mut builder = BlockBuilder::new(1);
        builder.add(b"short", b"b");
        assert!(decode(builder.finish(), &Comparator::Bytewise).is_err());
    }
}
