//! Settings of block-based tables and of how they are read.

use crate::Prepopulate;
use crate::kept::Kept;
use outcrop_base::checksum::ChecksumType;

/// Which filter new tables get.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{BlockBasedTableOptions, ColumnFamilyOptions, FilterPolicy};
///
/// let table = BlockBasedTableOptions {
///     filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
///     ..BlockBasedTableOptions::default()
/// };
/// let options = ColumnFamilyOptions { table, ..ColumnFamilyOptions::default() };
/// # assert_ne!(options.table.filter_policy, FilterPolicy::None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FilterPolicy {
    /// No filter: RocksDB's default.
    #[default]
    None,
    /// FastLocalBloom with this many bits per key.
    Bloom {
        /// Bits per key; 1 to 100.
        bits_per_key: f64,
    },
    /// The bloom filter of format_version 4 and older, in tables of any version.
    LegacyBloom {
        /// Bits per key; 1 to 100.
        bits_per_key: f64,
    },
    /// Ribbon: the false positives of a bloom filter with this many bits per key, in about 30 % less space.
    Ribbon {
        /// Bits per key that a bloom filter would take; 1 to 100.
        bits_per_key: f64,
        /// Tables for levels below this number get a bloom filter, which is faster to build. Flush counts as
        /// level -1. Default 0: flush writes bloom filters, compaction ribbons. -1: all are ribbons.
        bloom_before_level: i32,
    },
}

/// Layout of the index; the discriminant is the number in a table's properties.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{BlockBasedTableOptions, IndexType};
///
/// let table = BlockBasedTableOptions { index_type: IndexType::TwoLevel, ..BlockBasedTableOptions::default() };
/// # assert_ne!(table, BlockBasedTableOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexType {
    /// One block of separators.
    #[default]
    BinarySearch = 0,
    /// One block of separators, and blocks that name for each prefix its first data block. Needs a prefix
    /// extractor.
    HashSearch = 1,
    /// Blocks of separators of `metadata_block_size`, and one block above them.
    TwoLevel = 2,
    /// One block of separators with the first key of each data block.
    BinarySearchWithFirstKey = 3,
}

/// How short the separators of an index are. Source: RocksDB `IndexShorteningMode`.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{BlockBasedTableOptions, IndexShortening};
///
/// let exact = IndexShortening::None;
/// let table = BlockBasedTableOptions { index_shortening: exact, ..BlockBasedTableOptions::default() };
/// # assert_ne!(table, BlockBasedTableOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexShortening {
    /// The last key of each block.
    None,
    /// The shortest key between two blocks; the last key of the last one.
    #[default]
    Separators,
    /// The shortest key after the last block, too.
    SeparatorsAndSuccessor,
}

/// How data blocks are searched by RocksDB's lookups.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{BlockBasedTableOptions, DataBlockIndexType};
///
/// let hashed = DataBlockIndexType::BinaryAndHash;
/// let table = BlockBasedTableOptions { data_block_index_type: hashed, ..BlockBasedTableOptions::default() };
/// # assert_ne!(table, BlockBasedTableOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataBlockIndexType {
    /// By restart points.
    #[default]
    BinarySearch,
    /// A hash table of user keys stands after the restart points. This engine's own lookups have a better
    /// directory in memory and do not need it.
    BinaryAndHash,
}

/// Settings of one column family's tables: plain data, written to the OPTIONS file.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{BlockBasedTableOptions, ColumnFamilyOptions};
///
/// let table = BlockBasedTableOptions { block_size: 16 << 10, ..BlockBasedTableOptions::default() };
/// let options = ColumnFamilyOptions { table, ..ColumnFamilyOptions::default() };
/// # assert_eq!(options.table.block_size, 16384);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockBasedTableOptions {
    /// Uncompressed size at which a data block is cut. Bytes; default 4096. Source: `block_size`.
    pub block_size: u64,
    /// A block is cut early when it is filled to within this percentage and the next entry would exceed
    /// `block_size`. 0 to 100; default 10. Source: `block_size_deviation`.
    pub block_size_deviation: i32,
    /// Entries between restart points of a data block; default 16. Source: `block_restart_interval`.
    pub block_restart_interval: i32,
    /// Entries between restart points of an index block; default 1. Source: `index_block_restart_interval`.
    pub index_block_restart_interval: i32,
    /// Table format, 2 to 7; 5 is what this engine writes by default (RocksDB reads it from 6.6 on, 6 from 8.6
    /// on, 7 from 10.4 on).
    /// Source: `format_version`.
    pub format_version: u32,
    /// Block checksum; default XXH3. Source: `checksum`.
    pub checksum: ChecksumType,
    /// Index layout. Source: `index_type`.
    pub index_type: IndexType,
    /// Uncompressed size of a partition of a two-level index, and of a partitioned filter. Bytes; default 4096.
    /// Source: `metadata_block_size`.
    pub metadata_block_size: u64,
    /// The filter is cut into partitions; only with a two-level index. Default false.
    /// Source: `partition_filters`.
    pub partition_filters: bool,
    /// Index blocks are compressed like data blocks. Default true. Source: `enable_index_compression`.
    pub enable_index_compression: bool,
    /// Length of separators. Source: `index_shortening`.
    pub index_shortening: IndexShortening,
    /// Hash tables in data blocks. Source: `data_block_index_type`.
    pub data_block_index_type: DataBlockIndexType,
    /// Keys per bucket of these hash tables; above 0 to 1; default 0.75.
    /// Source: `data_block_hash_table_util_ratio`.
    pub data_block_hash_table_util_ratio: f64,
    /// Keys share prefixes with the key before; false stores all keys whole. Default true.
    /// Source: `use_delta_encoding`.
    pub use_delta_encoding: bool,
    /// Data blocks hold all keys, then all values. Only RocksDB 11 and later reads such tables. Default false.
    /// Source: `separate_key_value_in_data_block`.
    pub separate_key_value_in_data_block: bool,
    /// Each compressed block is decompressed again and compared before it is written. Default false.
    /// Source: `verify_compression`.
    pub verify_compression: bool,
    /// Data blocks are padded so that none lies across a boundary of the smaller of `block_size` and 4 KiB; only for a
    /// `block_size` that is a power of two, and without compression. Default false. Source: `block_align`.
    pub block_align: bool,
    /// Filter of new tables. Source: `filter_policy`.
    pub filter_policy: FilterPolicy,
    /// Whole user keys are added to the filter; default true. Source: `whole_key_filtering`.
    pub whole_key_filtering: bool,
    /// Index and filter blocks live in the block cache and can be evicted; false keeps them in memory for
    /// as long as the table is open. Default false. Source: `cache_index_and_filter_blocks`.
    pub cache_index_and_filter_blocks: bool,
    /// With `cache_index_and_filter_blocks`: those of tables written by flush stay in the cache whatever they take.
    /// Those of other tables stay as long as such pins take at most half of the cache. Default false.
    /// Source: `pin_l0_filter_and_index_blocks_in_cache`.
    pub pin_l0_filter_and_index_blocks_in_cache: bool,
    /// Which data blocks of new tables go to the block cache at once. Source: `prepopulate_block_cache`.
    pub prepopulate_block_cache: Prepopulate,
    /// Bytes that a bit stands for of those by which statistics estimate read amplification, how many of the bytes read of data blocks
    /// are looked at; a power of 2, or it is the next smaller one. 0: nobody wants to know. Default 0. Source:
    /// `read_amp_bytes_per_bit`.
    pub read_amp_bytes_per_bit: u32,
    /// No block cache at all: each read loads its block. Default false. Source: `no_block_cache`.
    pub no_block_cache: bool,
    /// Size of a block cache of its own, where the application gives none. Bytes; `None`: 32 MiB. Written to no OPTIONS
    /// file. Source: `block_cache`.
    pub block_cache_bytes: Option<u64>,
    /// Settings that nothing here acts on.
    pub kept: Kept,
}

impl Default for BlockBasedTableOptions {
    fn default() -> Self {
        BlockBasedTableOptions {
            block_size: 4096,
            block_size_deviation: 10,
            block_restart_interval: 16,
            index_block_restart_interval: 1,
            format_version: 5,
            checksum: ChecksumType::Xxh3,
            index_type: IndexType::BinarySearch,
            metadata_block_size: 4096,
            partition_filters: false,
            enable_index_compression: true,
            index_shortening: IndexShortening::Separators,
            data_block_index_type: DataBlockIndexType::BinarySearch,
            data_block_hash_table_util_ratio: 0.75,
            use_delta_encoding: true,
            separate_key_value_in_data_block: false,
            verify_compression: false,
            block_align: false,
            filter_policy: FilterPolicy::None,
            whole_key_filtering: true,
            cache_index_and_filter_blocks: false,
            pin_l0_filter_and_index_blocks_in_cache: false,
            prepopulate_block_cache: Prepopulate::Disable,
            read_amp_bytes_per_bit: 0,
            no_block_cache: false,
            block_cache_bytes: None,
            kept: Kept::default(),
        }
    }
}
