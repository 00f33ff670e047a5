//! Settings of one column family.

use crate::kept::Kept;
use crate::{
    BlockBasedTableOptions, CompressionOptions, CompressionType, DbPath, FifoCompactionOptions,
    UniversalCompactionOptions,
};
use outcrop_base::PrefixExtractor;

/// The shape compaction keeps.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{ColumnFamilyOptions, CompactionStyle};
///
/// let log = ColumnFamilyOptions { compaction_style: CompactionStyle::Fifo, ..ColumnFamilyOptions::default() };
/// # assert_eq!(log.compaction_style, CompactionStyle::Fifo);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CompactionStyle {
    /// Leveled: RocksDB's default.
    #[default]
    Level = 0,
    /// Sorted runs of similar age are merged once they have similar sizes: fewer bytes written, more space and reads.
    Universal = 1,
    /// The oldest tables are deleted once the data is too large or too old.
    Fifo = 2,
    /// Nothing is compacted but on request.
    None = 3,
}

/// As `ttl` or `periodic_compaction_seconds`: the value that suits the compaction style. Source: RocksDB's special value.
pub const AGE_BY_STYLE: u64 = u64::MAX - 1;

/// Which file of an oversized level is compacted first.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{ColumnFamilyOptions, CompactionPri};
///
/// let oldest = CompactionPri::OldestLargestSeqFirst;
/// let options = ColumnFamilyOptions { compaction_pri: oldest, ..ColumnFamilyOptions::default() };
/// # assert_ne!(options, ColumnFamilyOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CompactionPri {
    /// Larger files first, deletions weighing extra.
    ByCompensatedSize = 0,
    /// The file whose newest write is oldest.
    OldestLargestSeqFirst = 1,
    /// The file whose oldest write is oldest.
    OldestSmallestSeqFirst = 2,
    /// The file with the least overlap in the next level relative to its size: RocksDB's default.
    #[default]
    MinOverlappingRatio = 3,
    /// From one end of the level to the other, and again from the first: the file after the one compacted last.
    RoundRobin = 4,
}

/// When what is written goes to the cache without having been read.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{BlockBasedTableOptions, Prepopulate};
///
/// let warm = Prepopulate::FlushOnly;
/// let table = BlockBasedTableOptions { prepopulate_block_cache: warm, ..BlockBasedTableOptions::default() };
/// # assert_ne!(table, BlockBasedTableOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Prepopulate {
    /// Never: RocksDB's default.
    #[default]
    Disable = 0,
    /// When a memtable is flushed.
    FlushOnly = 1,
    /// When a memtable is flushed or a compaction writes.
    FlushAndCompaction = 2,
}

/// Settings of one column family: plain data, written to the OPTIONS file.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{ColumnFamilyOptions, CompressionType};
///
/// let options = ColumnFamilyOptions {
///     write_buffer_size: 128 << 20,
///     compression: CompressionType::Lz4,
///     ..ColumnFamilyOptions::default()
/// };
/// # assert_eq!(options.write_buffer_size >> 20, 128);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnFamilyOptions {
    /// Size at which the memtable is sealed and queued for flush. Bytes; default 64 MiB.
    pub write_buffer_size: u64,
    /// Memtables, active and sealed, that may exist before writes stop; default 2.
    pub max_write_buffer_number: i32,
    /// Sealed memtables that are flushed together; default 1.
    pub min_write_buffer_number_to_merge: i32,
    /// Codec of blocks; default LZ4.
    pub compression: CompressionType,
    /// Codec per level; empty: `compression` everywhere.
    pub compression_per_level: Vec<CompressionType>,
    /// Codec of the bottommost level; `None`: as the level's.
    pub bottommost_compression: Option<CompressionType>,
    /// Codec settings.
    pub compression_opts: CompressionOptions,
    /// Codec settings where `bottommost_compression` is used, if they are `enabled`.
    pub bottommost_compression_opts: CompressionOptions,
    /// Codec settings of blob files.
    pub blob_compression_opts: CompressionOptions,
    /// Levels; default 7.
    pub num_levels: i32,
    /// L0 files that start a compaction; below 0 their number starts none. Default 4.
    pub level0_file_num_compaction_trigger: i32,
    /// L0 files at which writes are slowed; default 20.
    pub level0_slowdown_writes_trigger: i32,
    /// L0 files at which writes stop; default 36.
    pub level0_stop_writes_trigger: i32,
    /// Size of a compaction output at L1. Bytes; default 64 MiB.
    pub target_file_size_base: u64,
    /// Growth of `target_file_size_base` per level; default 1.
    pub target_file_size_multiplier: i32,
    /// Target size of L1 (of the base level with dynamic level bytes). Bytes; default 256 MiB.
    pub max_bytes_for_level_base: u64,
    /// Growth of the level target per level; default 10.
    pub max_bytes_for_level_multiplier: f64,
    /// Level targets are derived from the largest level; default true.
    pub level_compaction_dynamic_level_bytes: bool,
    /// Upper bound of one compaction's input. Bytes; 0: 25 x target file size.
    pub max_compaction_bytes: u64,
    /// Estimated debt at which writes are slowed. Bytes; default 64 GiB; 0: never.
    pub soft_pending_compaction_bytes_limit: u64,
    /// Estimated debt at which writes stop. Bytes; default 256 GiB; 0: never.
    pub hard_pending_compaction_bytes_limit: u64,
    /// Compactions run only on request; default false.
    pub disable_auto_compactions: bool,
    /// Compaction style.
    pub compaction_style: CompactionStyle,
    /// Which file goes first.
    pub compaction_pri: CompactionPri,
    /// Settings of universal compaction.
    pub compaction_options_universal: UniversalCompactionOptions,
    /// Settings of FIFO compaction.
    pub compaction_options_fifo: FifoCompactionOptions,
    /// Age at which data is compacted on towards the last level (leveled) or deleted (FIFO); universal compaction
    /// takes it as `periodic_compaction_seconds`. Seconds; 0: never; default [`AGE_BY_STYLE`]: 30 days.
    pub ttl: u64,
    /// Age at which a table is rewritten, by which compaction filters and new settings reach it. Seconds; 0: never;
    /// default [`AGE_BY_STYLE`]: 30 days for universal, and for leveled with a compaction filter; otherwise never.
    pub periodic_compaction_seconds: u64,
    /// Age before which a table of the last level is not rewritten only because snapshots that kept deletions and old
    /// versions in it are gone. Seconds; default 0.
    pub bottommost_file_compaction_delay: u32,
    /// No filters in the bottommost level; default false.
    pub optimize_filters_for_hits: bool,
    /// LSM invariants are checked when a version is built; default true.
    pub force_consistency_checks: bool,
    /// Values of at least `min_blob_size` are written to blob files, and tables refer to them. Default false.
    pub enable_blob_files: bool,
    /// Smallest value that goes to a blob file. Bytes; default 0: all.
    pub min_blob_size: u64,
    /// Size at which a blob file ends. Bytes; default 256 MiB.
    pub blob_file_size: u64,
    /// Codec of blob files; default none.
    pub blob_compression_type: CompressionType,
    /// Compactions move values out of old blob files, so that those can go. Default false.
    pub enable_blob_garbage_collection: bool,
    /// Share of blob files, the oldest, that values are moved out of; 0 to 1, default 0.25.
    pub blob_garbage_collection_age_cutoff: f64,
    /// Share of garbage in the oldest blob files, those that the oldest table refers to, from which on the tables that
    /// refer to them are compacted for no other reason. Only if the files are within the age cutoff. 0 to 1; default 1:
    /// never.
    pub blob_garbage_collection_force_threshold: f64,
    /// Bytes that a compaction reads at a time from a blob file it moves values out of. 0: one value. Default 0.
    pub blob_compaction_readahead_size: u64,
    /// Which values written to blob files go at once to the cache that reads look for them in: the blob cache, or the block
    /// cache if there is none.
    pub prepopulate_blob_cache: Prepopulate,
    /// First level whose tables refer to blob files; flush counts as level 0. Default 0.
    pub blob_file_starting_level: i32,
    /// Files may be ingested behind all data: the last level is kept for them, and nothing that hides older data is
    /// dropped. Default false.
    pub allow_ingest_behind: bool,
    /// Name of the key order, `leveldb.BytewiseComparator` or `rocksdb.ReverseBytewiseComparator`; an object given by the
    /// application comes first. `None`: bytewise.
    pub comparator: Option<String>,
    /// Name of the rule for merge operands, one of RocksDB's own (`uint64add`, `stringappend`, `put`, `max`,
    /// `bytesxor`, `sortlist`); an object given by the application comes first.
    pub merge_operator: Option<String>,
    /// Which part of a key prefix filters, hash indexes and `prefix_same_as_start` are about; `None`: no prefixes.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Size of a bloom filter over the prefixes in a memtable, by which seeks within a prefix leave memtables out, as a
    /// share of `write_buffer_size`; needs a prefix extractor. 0 to 0.25, default 0: none.
    pub memtable_prefix_bloom_size_ratio: f64,
    /// Versions of one key that an iterator passes one by one before it seeks past them. Default 8.
    pub max_sequential_skip_in_iterations: u64,
    /// Operands of one key in the memtable from which on a further one is merged when it is written, into a value.
    /// 0: never. Default 0.
    pub max_successive_merges: u64,
    /// For `max_successive_merges` values are read from the disk, too; false leaves the operand as it is where they are
    /// not in memory. Default false.
    pub strict_max_successive_merges: bool,
    /// Each table is read again once it is written, and compared with what was to be in it. Default false.
    pub paranoid_file_checks: bool,
    /// Flushes and compactions measure how long they write and sync files, for LOG and for listeners. Default false.
    pub report_bg_io_stats: bool,
    /// Values go to blob files when they are written. Kept only: they go there when they are flushed. Default false.
    pub enable_blob_direct_write: bool,
    /// Blob files written at a time by `enable_blob_direct_write`. Kept only. Default 1.
    pub blob_direct_write_partitions: u32,
    /// Pieces of memory that RocksDB's memtables take. Kept only. Bytes; 0: an eighth of the write buffer, at most 1 MiB.
    pub arena_block_size: u64,
    /// Flushed memtables that RocksDB keeps for its transactions. Kept only. Bytes; below 0: as many as there may be.
    pub max_write_buffer_size_to_maintain: i64,
    /// Table settings.
    pub table: BlockBasedTableOptions,
    /// Where its tables and blob files are, as [`DbOptions::db_paths`](crate::DbOptions::db_paths) says. Default: none, which is those.
    pub cf_paths: Vec<DbPath>,
    /// Settings that nothing here acts on.
    pub kept: Kept,
}

impl Default for ColumnFamilyOptions {
    fn default() -> Self {
        ColumnFamilyOptions {
            write_buffer_size: 64 << 20,
            max_write_buffer_number: 2,
            min_write_buffer_number_to_merge: 1,
            compression: CompressionType::Lz4,
            compression_per_level: Vec::new(),
            bottommost_compression: None,
            compression_opts: CompressionOptions::default(),
            bottommost_compression_opts: CompressionOptions::default(),
            blob_compression_opts: CompressionOptions::default(),
            num_levels: 7,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 20,
            level0_stop_writes_trigger: 36,
            target_file_size_base: 64 << 20,
            target_file_size_multiplier: 1,
            max_bytes_for_level_base: 256 << 20,
            max_bytes_for_level_multiplier: 10.0,
            level_compaction_dynamic_level_bytes: true,
            max_compaction_bytes: 0,
            soft_pending_compaction_bytes_limit: 64 << 30,
            hard_pending_compaction_bytes_limit: 256 << 30,
            disable_auto_compactions: false,
            compaction_style: CompactionStyle::Level,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            compaction_options_universal: UniversalCompactionOptions::default(),
            compaction_options_fifo: FifoCompactionOptions::default(),
            ttl: AGE_BY_STYLE,
            periodic_compaction_seconds: AGE_BY_STYLE,
            bottommost_file_compaction_delay: 0,
            optimize_filters_for_hits: false,
            force_consistency_checks: true,
            enable_blob_files: false,
            min_blob_size: 0,
            blob_file_size: 256 << 20,
            blob_compression_type: CompressionType::None,
            enable_blob_garbage_collection: false,
            blob_garbage_collection_age_cutoff: 0.25,
            blob_garbage_collection_force_threshold: 1.0,
            blob_compaction_readahead_size: 0,
            prepopulate_blob_cache: Prepopulate::Disable,
            blob_file_starting_level: 0,
            allow_ingest_behind: false,
            comparator: None,
            merge_operator: None,
            prefix_extractor: None,
            memtable_prefix_bloom_size_ratio: 0.0,
            max_sequential_skip_in_iterations: 8,
            max_successive_merges: 0,
            strict_max_successive_merges: false,
            paranoid_file_checks: false,
            report_bg_io_stats: false,
            enable_blob_direct_write: false,
            blob_direct_write_partitions: 1,
            arena_block_size: 0,
            max_write_buffer_size_to_maintain: 0,
            table: BlockBasedTableOptions::default(),
            cf_paths: Vec::new(),
            kept: Kept::default(),
        }
    }
}
