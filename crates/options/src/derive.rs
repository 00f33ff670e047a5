//! Values derived from options for one level: pure functions, used by pickers and jobs.

use crate::column_family::AGE_BY_STYLE;
use crate::styles::{self, stricter};
use crate::{ColumnFamilyOptions, CompressionOptions, CompressionType};

const THIRTY_DAYS: u64 = 30 * 24 * 60 * 60;

/// Size at which outputs to `level` are cut, in bytes.
pub fn target_file_size(options: &ColumnFamilyOptions, level: usize) -> u64 {
    let mut size = options.target_file_size_base;
    for _ in 1..level {
        size = size.saturating_mul(options.target_file_size_multiplier.max(1) as u64);
    }
    // A file has at least one row: there is no end of files of no size.
    size.max(1)
}

/// Codec of tables written to `level`; `bottommost` if nothing older lies below them.
pub fn compression_for_level(
    options: &ColumnFamilyOptions,
    level: usize,
    bottommost: bool,
) -> CompressionType {
    if let (true, Some(codec)) = (bottommost, options.bottommost_compression) {
        return codec;
    }
    match options.compression_per_level.as_slice() {
        [] => options.compression,
        levels => levels[level.min(levels.len() - 1)],
    }
}

/// Settings of the codec of tables; `bottommost` if nothing older lies below them.
///
/// Source: RocksDB `db/compaction/compaction_picker.cc`, `GetCompressionOptions`.
pub fn compression_opts(options: &ColumnFamilyOptions, bottommost: bool) -> &CompressionOptions {
    let own = &options.bottommost_compression_opts;
    if bottommost && options.bottommost_compression.is_some() && own.enabled {
        own
    } else {
        &options.compression_opts
    }
}

/// Age at which data moves on or is deleted, in seconds; 0: never.
///
/// Source: RocksDB `db/column_family.cc`, `SanitizeCfOptions`.
pub fn ttl(options: &ColumnFamilyOptions) -> u64 {
    match (styles::of(options).default_ttl, options.ttl) {
        (None, _) => 0,
        (Some(by_style), AGE_BY_STYLE) => by_style,
        (Some(_), seconds) => seconds,
    }
}

/// Age at which a table is rewritten, in seconds; 0: never. The stricter of this and `ttl` where both mean the same.
pub fn periodic_compaction_seconds(options: &ColumnFamilyOptions, has_filter: bool) -> u64 {
    let Some(by_style) = styles::of(options).default_period else { return 0 };
    let own = match options.periodic_compaction_seconds {
        AGE_BY_STYLE => by_style[usize::from(has_filter)],
        seconds => seconds,
    };
    match (styles::of(options).ttl_is_period, options.ttl) {
        (false, _) => own,
        (true, AGE_BY_STYLE) => stricter(own, THIRTY_DAYS),
        (true, ttl) => stricter(own, ttl),
    }
}

impl ColumnFamilyOptions {
    /// The factor besides the multiplier by which the level after `level` is larger, where levels have fixed sizes; a
    /// value that is not above 0 makes it 0, as in RocksDB. Source: `max_bytes_for_level_multiplier_additional`.
    pub fn additional_multiplier(&self, level: usize) -> f64 {
        let numbers = self.kept.get("max_bytes_for_level_multiplier_additional").unwrap_or_default();
        let number = numbers.split(':').nth(level).and_then(|number| number.parse::<i32>().ok());
        f64::from(number.unwrap_or(1).max(0))
    }

    /// The new tables of compactions are read back and compared with what was written: `verify_output_flags` asks for some check of them.
    /// Of RocksDB's checks each finds what the one here finds. Source: `VerifyOutputFlags`.
    pub fn verifies_compactions(&self) -> bool {
        const CHECKS: u64 = 0b111;
        const LOCAL_COMPACTIONS: u64 = 1 << 10;
        let flags = self.kept.number("verify_output_flags").unwrap_or(0);
        flags & LOCAL_COMPACTIONS != 0 && flags & CHECKS != 0
    }

    /// Range deletions after which a memtable is flushed; 0: however many. Source: `memtable_max_range_deletions`.
    pub fn max_range_deletions(&self) -> u32 {
        self.kept.number("memtable_max_range_deletions").unwrap_or(0) as u32
    }

    /// Capacity in bytes of the cache for values in blob files that a string of options asks for. Source: `blob_cache`.
    pub fn blob_cache_bytes(&self) -> Option<usize> {
        self.kept.number("blob_cache").and_then(|bytes| usize::try_from(bytes).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompactionStyle;

    #[test]
    fn the_last_entry_serves_all_deeper_levels() {
        let mut options = ColumnFamilyOptions::default();
        assert_eq!(compression_for_level(&options, 3, false), CompressionType::Lz4);
        options.compression_per_level = vec![CompressionType::None, CompressionType::Zstd];
        options.bottommost_compression = Some(CompressionType::Snappy);
        assert_eq!(compression_for_level(&options, 0, false), CompressionType::None);
        assert_eq!(compression_for_level(&options, 6, false), CompressionType::Zstd);
        assert_eq!(compression_for_level(&options, 6, true), CompressionType::Snappy);
    }

    #[test]
    fn the_bottommost_level_has_settings_of_its_own_if_they_are_enabled() {
        let mut options = ColumnFamilyOptions::default();
        options.bottommost_compression_opts.level = 9;
        let level = |options: &ColumnFamilyOptions, bottommost| compression_opts(options, bottommost).level;
        options.bottommost_compression_opts.enabled = true;
        assert_eq!(level(&options, true), 32767, "without a codec of its own");
        options.bottommost_compression = Some(CompressionType::Zstd);
        assert_eq!((level(&options, true), level(&options, false)), (9, 32767));
        options.bottommost_compression_opts.enabled = false;
        assert_eq!(level(&options, true), 32767);
    }

    #[test]
    fn file_sizes_grow_by_the_multiplier() {
        let options = ColumnFamilyOptions {
            target_file_size_base: 10,
            target_file_size_multiplier: 3,
            ..ColumnFamilyOptions::default()
        };
        assert_eq!([0, 1, 2, 3].map(|level| target_file_size(&options, level)), [10, 10, 30, 90]);
    }

    #[test]
    fn ages_follow_the_style() {
        let mut options = ColumnFamilyOptions::default();
        assert_eq!((ttl(&options), periodic_compaction_seconds(&options, false)), (THIRTY_DAYS, 0));
        assert_eq!(periodic_compaction_seconds(&options, true), THIRTY_DAYS);
        options.compaction_style = CompactionStyle::Universal;
        assert_eq!((ttl(&options), periodic_compaction_seconds(&options, false)), (0, THIRTY_DAYS));
        options.ttl = 60;
        assert_eq!(periodic_compaction_seconds(&options, false), 60);
        options.periodic_compaction_seconds = 0;
        assert_eq!(periodic_compaction_seconds(&options, false), 60);
        options.compaction_style = CompactionStyle::Fifo;
        assert_eq!((ttl(&options), periodic_compaction_seconds(&options, true)), (60, 0));
    }

    #[test]
    fn outputs_are_verified_if_a_check_and_local_compactions_are_asked_for() {
        let verifies = |flags: u32| {
            let mut options = ColumnFamilyOptions::default();
            options.kept.set(crate::kept::CF_KEPT, "verify_output_flags", &flags.to_string()).unwrap();
            options.verifies_compactions()
        };
        assert!([1 << 10 | 1, 1 << 10 | 2, 1 << 10 | 4, u32::MAX].into_iter().all(verifies));
        assert!(![0, 7, 1 << 10, 1 << 11 | 7].into_iter().any(verifies));
    }
}
