//! Settings of compaction styles other than leveled.

/// How universal compaction decides that a sorted run is too large to come along.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{CompactionStopStyle, UniversalCompactionOptions};
///
/// let alike = CompactionStopStyle::SimilarSize;
/// let options = UniversalCompactionOptions { stop_style: alike, ..UniversalCompactionOptions::default() };
/// # assert_ne!(options, UniversalCompactionOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CompactionStopStyle {
    /// Compared with the run before it.
    SimilarSize = 0,
    /// Compared with all runs before it together: RocksDB's default.
    #[default]
    TotalSize = 1,
}

/// Settings of universal compaction.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{ColumnFamilyOptions, CompactionStyle, UniversalCompactionOptions};
///
/// let options = ColumnFamilyOptions {
///     compaction_style: CompactionStyle::Universal,
///     compaction_options_universal: UniversalCompactionOptions {
///         max_size_amplification_percent: 100,
///         ..UniversalCompactionOptions::default()
///     },
///     ..ColumnFamilyOptions::default()
/// };
/// # assert_ne!(options, ColumnFamilyOptions::default());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniversalCompactionOptions {
    /// How much larger the next sorted run may be than those before it and still come along. Percent; default 1.
    pub size_ratio: u32,
    /// Sorted runs merged at least, if sizes decide; default 2.
    pub min_merge_width: u32,
    /// Sorted runs merged at most, if sizes decide; default no limit.
    pub max_merge_width: u32,
    /// Everything is merged once the newer runs come to this share of the oldest. Percent; default 200.
    pub max_size_amplification_percent: u32,
    /// Outputs are left uncompressed if the runs older than them come to this share of the data already: the oldest
    /// data is compressed, at least this share of it. Percent; -1: everything is compressed. Default -1.
    pub compression_size_percent: i32,
    /// Sorted runs allowed before runs are merged whatever their sizes: -1: as many as
    /// `level0_file_num_compaction_trigger`; 0: as many as size ratios make of the data. Default -1.
    pub max_read_amp: i32,
    /// The size that a run is compared with.
    pub stop_style: CompactionStopStyle,
    /// Inputs that do not overlap are relinked instead of rewritten; default false.
    pub allow_trivial_move: bool,
    /// Newer runs that have grown large are merged into the oldest piece by piece, each of about `max_compaction_bytes`. Only
    /// tables of the last two sorted runs, and what lies above them, go by pieces: with one level besides L0 there are none.
    /// Default false.
    pub incremental: bool,
    /// RocksDB decides anew about a compaction that waits for a thread of its bottom priority, instead of keeping its files from others.
    /// Kept only: a compaction is decided here when its thread begins it.
    /// Default true.
    pub reduce_file_locking: bool,
}

impl Default for UniversalCompactionOptions {
    fn default() -> Self {
        UniversalCompactionOptions {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX,
            max_size_amplification_percent: 200,
            compression_size_percent: -1,
            max_read_amp: -1,
            stop_style: CompactionStopStyle::TotalSize,
            allow_trivial_move: false,
            incremental: false,
            reduce_file_locking: true,
        }
    }
}

/// Settings of FIFO compaction.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{ColumnFamilyOptions, CompactionStyle, FifoCompactionOptions};
///
/// // The last 10 GiB that were written.
/// let options = ColumnFamilyOptions {
///     compaction_style: CompactionStyle::Fifo,
///     compaction_options_fifo: FifoCompactionOptions {
///         max_table_files_size: 10 << 30,
///         ..FifoCompactionOptions::default()
///     },
///     ..ColumnFamilyOptions::default()
/// };
/// # assert_ne!(options, ColumnFamilyOptions::default());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FifoCompactionOptions {
    /// The oldest tables are deleted while all together are larger than this. Bytes; default 1 GiB.
    pub max_table_files_size: u64,
    /// Small L0 tables are merged, so that there are fewer; default false.
    pub allow_compaction: bool,
    /// If set, what counts are tables and blob files together, up to this many bytes, and not `max_table_files_size`.
    /// Bytes; default 0.
    pub max_data_files_size: u64,
    /// About storage that has tiers. Kept only.
    pub age_for_warm: u64,
    /// About storage that has tiers. Kept only.
    pub allow_trivial_copy_when_change_temperature: bool,
    /// About storage that has tiers. Kept only. Bytes; default 4096.
    pub trivial_copy_buffer_size: u64,
    /// How RocksDB sizes compactions within FIFO. Kept only. Default false.
    pub use_kv_ratio_compaction: bool,
}

impl Default for FifoCompactionOptions {
    fn default() -> Self {
        FifoCompactionOptions {
            max_table_files_size: 1 << 30,
            allow_compaction: false,
            max_data_files_size: 0,
            age_for_warm: 0,
            allow_trivial_copy_when_change_temperature: false,
            trivial_copy_buffer_size: 4096,
            use_kv_ratio_compaction: false,
        }
    }
}
