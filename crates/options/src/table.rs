//! Settings of block-based tables and of how they are read.

use outcrop_base::checksum::ChecksumType;

/// Which filter new tables get.
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
}

/// Layout of the index block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexType {
    /// One block of separators.
    #[default]
    BinarySearch = 0,
}

/// Settings of one column family's tables: plain data, written to the OPTIONS file.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockBasedTableOptions {
    /// Uncompressed size at which a data block is cut. Bytes; default 4096. Source: `block_size`.
    pub block_size: u64,
    /// A block is cut early when it is filled to within this percentage and the next entry would exceed
    /// `block_size`. 0 to 100; default 10. Source: `block_size_deviation`.
    pub block_size_deviation: u32,
    /// Entries between restart points of a data block; default 16. Source: `block_restart_interval`.
    pub block_restart_interval: u32,
    /// Entries between restart points of an index block; default 1. Source: `index_block_restart_interval`.
    pub index_block_restart_interval: u32,
    /// Table format; 5 is what this engine writes by default (RocksDB reads it from 6.6 on).
    /// Source: `format_version`.
    pub format_version: u32,
    /// Block checksum; default XXH3. Source: `checksum`.
    pub checksum: ChecksumType,
    /// Index layout. Source: `index_type`.
    pub index_type: IndexType,
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
    /// No block cache at all: each read loads its block. Default false. Source: `no_block_cache`.
    pub no_block_cache: bool,
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
            filter_policy: FilterPolicy::None,
            whole_key_filtering: true,
            cache_index_and_filter_blocks: false,
            pin_l0_filter_and_index_blocks_in_cache: false,
            no_block_cache: false,
        }
    }
}
