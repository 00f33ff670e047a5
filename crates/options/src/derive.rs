//! What follows from options for one level: pure functions, used by pickers and jobs.

use crate::{ColumnFamilyOptions, CompressionType};

/// Size at which outputs to `level` are cut, in bytes.
pub fn target_file_size(options: &ColumnFamilyOptions, level: usize) -> u64 {
    let mut size = options.target_file_size_base;
    for _ in 1..level {
        size = size.saturating_mul(options.target_file_size_multiplier.max(1) as u64);
    }
    size
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn file_sizes_grow_by_the_multiplier() {
        let options = ColumnFamilyOptions {
            target_file_size_base: 10,
            target_file_size_multiplier: 3,
            ..ColumnFamilyOptions::default()
        };
        assert_eq!([0, 1, 2, 3].map(|level| target_file_size(&options, level)), [10, 10, 30, 90]);
    }
}
