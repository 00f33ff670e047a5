//! Targets of tables: whole files, and each kind of block in a table built around it.

use crate::assemble::{Assembly, IndexKind, small_block, split_part};
use crate::checks::{Strictness, check_table};

/// Contents of a data block: the one block of its table.
pub fn block(input: &[u8]) {
    check_table(&Assembly::new(input, 0).finish(), Strictness::OneBlock);
}

/// First byte: how the index is coded. The rest: contents of the index block, or of the top of an index.
pub fn index(input: &[u8]) {
    let Some((first, contents)) = input.split_first() else { return };
    let kind = IndexKind { index_type: first & 3, user_keys: first & 4 != 0, deltas: first & 8 != 0 };
    check_table(&Assembly::new(&small_block(), 0).index(contents, kind).finish(), Strictness::Any);
}

/// First byte: whether the rest is a whole filter or the index of its partitions.
pub fn filter(input: &[u8]) {
    let Some((first, contents)) = input.split_first() else { return };
    let name = match first & 1 {
        0 => &b"fullfilter.rocksdb.BuiltinBloomFilter"[..],
        _ => b"partitionedfilter.rocksdb.BuiltinBloomFilter",
    };
    let table = Assembly::new(&small_block(), 0).meta(name, contents).finish();
    check_table(&table, Strictness::Any);
}

/// Contents of the block of range tombstones.
pub fn range_del(input: &[u8]) {
    let table = Assembly::new(&small_block(), 0).meta(b"rocksdb.range_del", input).finish();
    check_table(&table, Strictness::OneBlock);
}

/// Contents of the properties block.
pub fn properties(input: &[u8]) {
    check_table(&Assembly::new(&small_block(), 0).properties(input).finish(), Strictness::Any);
}

/// Contents of the metaindex block.
pub fn metaindex(input: &[u8]) {
    check_table(&Assembly::new(&small_block(), 0).finish_with_metaindex(input), Strictness::Any);
}

/// First byte: codec. Then a dictionary after its length, empty for none; then the stored data block.
pub fn compressed(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let (dictionary, stored) = split_part(rest);
    let assembly = Assembly::new(stored, first & 7);
    let table = match dictionary {
        [] => assembly.finish(),
        bytes => assembly.meta(b"rocksdb.compression_dict", bytes).finish(),
    };
    check_table(&table, Strictness::OneBlock);
}

/// A whole table.
pub fn table(input: &[u8]) {
    check_table(input, Strictness::Any);
}
