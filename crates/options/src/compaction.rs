//! Settings of compaction styles other than leveled.

use outcrop_base::{Error, Result};

/// How universal compaction decides that a sorted run is too large to come along.
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
    /// What a run is compared with.
    pub stop_style: CompactionStopStyle,
    /// Inputs that do not overlap are relinked instead of rewritten; default false.
    pub allow_trivial_move: bool,
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
        }
    }
}

/// Settings of FIFO compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FifoCompactionOptions {
    /// The oldest tables are deleted while all together are larger than this. Bytes; default 1 GiB.
    pub max_table_files_size: u64,
    /// Small L0 tables are merged, so that there are fewer; default false.
    pub allow_compaction: bool,
}

impl Default for FifoCompactionOptions {
    fn default() -> Self {
        FifoCompactionOptions { max_table_files_size: 1 << 30, allow_compaction: false }
    }
}

/// Refuses values that no picker could follow.
///
/// # Errors
/// InvalidArgument naming the option.
pub fn check(universal: &UniversalCompactionOptions) -> Result<()> {
    if universal.max_merge_width < universal.min_merge_width.max(2) {
        return Err(Error::invalid_argument(format!(
            "compaction_options_universal.max_merge_width is {}, min_merge_width is {}",
            universal.max_merge_width, universal.min_merge_width
        )));
    }
    if !(-1..=100).contains(&universal.compression_size_percent) {
        return Err(Error::invalid_argument(format!(
            "compaction_options_universal.compression_size_percent is {}, must be -1 to 100",
            universal.compression_size_percent
        )));
    }
    if universal.max_read_amp < -1 {
        return Err(Error::not_supported(format!(
            "compaction_options_universal.max_read_amp is {}, must be at least -1",
            universal.max_read_amp
        )));
    }
    Ok(())
}
