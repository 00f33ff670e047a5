//! Small databases whose tables have every format version, index, filter, checksum and compression.

use super::{FAMILY, Small};
use crate::damage::Rows;
use crate::harness::{creating, descriptor};
use outcrop::options::{BlockBasedTableOptions, DataBlockIndexType, IndexType};
use outcrop::*;
use outcrop_base::checksum::ChecksumType;
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

const BLOOM: FilterPolicy = FilterPolicy::Bloom { bits_per_key: 10.0 };
const RIBBON: FilterPolicy = FilterPolicy::Ribbon { bits_per_key: 10.0, bloom_before_level: -1 };

/// One database per shape: each format version, and each kind of every part at least once.
///
/// With each comes how many bytes of its table no reader checks, besides those that fill up the footer.
pub fn tables() -> Vec<(Small, usize)> {
    use CompressionType as C;
    type Change = fn(&mut ColumnFamilyOptions);
    let shape = |what: &str, format_version: u32, compression: C, unused: usize, change: Change| {
        let mut options = ColumnFamilyOptions {
            write_buffer_size: 64 << 10,
            disable_auto_compactions: true,
            compression,
            table: BlockBasedTableOptions { block_size: 200, format_version, ..Default::default() },
            ..ColumnFamilyOptions::default()
        };
        change(&mut options);
        (build(&format!("format {format_version}, {what}"), options), unused)
    };
    vec![
        shape("no compression, legacy bloom", 2, C::None, 0, |o| {
            o.table.filter_policy = BLOOM;
            o.table.checksum = ChecksumType::Crc32c;
        }),
        shape("snappy, xxhash", 3, C::Snappy, 0, |o| o.table.checksum = ChecksumType::XxHash),
        // A hash index is two blocks beside the index, which this reader does without.
        shape("lz4, hash index, xxhash64", 4, C::Lz4, 16, |o| {
            o.table.checksum = ChecksumType::XxHash64;
            o.table.index_type = IndexType::HashSearch;
            o.prefix_extractor = Some(PrefixExtractor::Fixed(3));
        }),
        shape("zstd with dictionary, bloom", 5, C::Zstd, 0, |o| {
            o.table.filter_policy = BLOOM;
            o.compression_opts.max_dict_bytes = 200;
        }),
        // A filter partition that cannot be read lets every key through, as in RocksDB.
        shape("partitioned index and filter", 5, C::None, 74, |o| {
            o.table.index_type = IndexType::TwoLevel;
            o.table.partition_filters = true;
            o.table.metadata_block_size = 100;
            o.table.filter_policy = BLOOM;
        }),
        shape("zlib, ribbon, first keys", 6, C::Zlib, 0, |o| {
            o.table.filter_policy = RIBBON;
            o.table.index_type = IndexType::BinarySearchWithFirstKey;
        }),
        shape("bzip2, hashes in data blocks", 7, C::BZip2, 0, |o| {
            o.table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        }),
        shape("keys and values apart", 7, C::None, 0, |o| o.table.separate_key_value_in_data_block = true),
        shape("blobs", 5, C::None, 0, |o| {
            o.enable_blob_files = true;
            o.min_blob_size = 40;
        }),
        shape("compressed blobs", 6, C::Lz4, 0, |o| {
            o.enable_blob_files = true;
            o.min_blob_size = 40;
            o.blob_compression_type = C::Lz4;
        }),
    ]
}

/// Writes a table of values, deletions, operands and a range deletion, closes the database, and reads it back.
fn build(what: &str, options: ColumnFamilyOptions) -> Small {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Db::builder("/db")
        .options(creating())
        .env(env)
        .column_family(descriptor(FAMILY, &options))
        .open()
        .unwrap();
    let cf = db.default_column_family().clone();
    let write = WriteOptions::default();
    let mut rows = Rows::new();
    for i in 0..24u32 {
        let key = format!("key{i:02}").into_bytes();
        match i {
            5 | 12 => db.delete_with(&key, &write).unwrap(),
            7 => db.merge_cf_with(&cf, &key, b"operand", &write).unwrap(),
            _ => {
                let value = format!("{i}-{}", "value".repeat(i as usize % 11)).into_bytes();
                db.put_with(&key, &value, &write).unwrap();
            }
        }
    }
    db.delete_range_cf_with(&cf, b"key15", b"key17", &write).unwrap();
    db.put_with(b"key16", b"after the range", &write).unwrap();
    db.flush_cf(&cf).unwrap();
    let mut keys = std::collections::BTreeSet::new();
    for i in 0..24 {
        let key = format!("key{i:02}").into_bytes();
        if let Some(value) = db.get(&key).unwrap() {
            rows.insert((FAMILY.to_string(), key.clone()), value.to_vec());
        }
        keys.insert((FAMILY.to_string(), key));
    }
    assert_eq!(rows.len(), 21, "24 keys without two deletions and one in the range");
    drop(cf);
    db.close().unwrap();
    let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
    Small { what: what.to_string(), fs, options, rows, keys, cache }
}
