//! Several directories for the tables of a column family, and which one a new table goes to.
//!
//! Source: RocksDB `LevelCompactionBuilder::GetPathId`, `UniversalCompactionBuilder::GetPathId`.

use crate::ColumnFamilyOptions;
use crate::styles::{self, Placing};
use std::path::PathBuf;

/// A directory for tables.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{DbOptions, DbPath};
///
/// // The newer levels on the fast device, up to 10 GB; the rest on the other.
/// let db_paths = vec![DbPath::new("/fast/db", 10 << 30), DbPath::new("/large/db", u64::MAX)];
/// let options = DbOptions { db_paths, ..DbOptions::default() };
/// # assert_eq!(options.db_paths.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbPath {
    /// The directory. It is made if it does not exist.
    pub path: PathBuf,
    /// Bytes that should be in it, about. The last path takes what does not fit into the others.
    pub target_size: u64,
}

impl DbPath {
    /// A directory, and the bytes that should be in it.
    pub fn new(path: impl Into<PathBuf>, target_size: u64) -> DbPath {
        DbPath { path: path.into(), target_size }
    }
}

/// Which of `cf_paths` the outputs of a compaction of `bytes` to `level` go to.
pub fn path_for(options: &ColumnFamilyOptions, level: usize, bytes: u64) -> u32 {
    if options.cf_paths.len() < 2 {
        return 0;
    }
    match styles::of(options).placing {
        Placing::ByLevel => path_for_level(options, level),
        Placing::ByRun => path_for_run(options, bytes),
        Placing::First => 0,
    }
}

/// The first path that has room for the level after all levels above it: levels have their target sizes, L0 that of L1.
fn path_for_level(options: &ColumnFamilyOptions, level: usize) -> u32 {
    let last = options.cf_paths.len() - 1;
    let (mut path, mut current) = (0, 0);
    let mut room = options.cf_paths[0].target_size;
    let mut size = options.max_bytes_for_level_base;
    while path < last {
        if size > room {
            path += 1;
            room = options.cf_paths[path].target_size;
            continue;
        }
        if current == level {
            return path as u32;
        }
        room -= size;
        if current > 0 {
            size = (size as f64
                * options.max_bytes_for_level_multiplier
                * options.additional_multiplier(current)) as u64;
        }
        current += 1;
    }
    last as u32
}

/// The first path that the run fits into, with room beside it for the runs that will be merged with it next.
fn path_for_run(options: &ColumnFamilyOptions, bytes: u64) -> u32 {
    let percent = 100 - u64::from(options.compaction_options_universal.size_ratio).min(100);
    let future = u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX);
    let last = options.cf_paths.len() - 1;
    let mut passed = 0_u64;
    for (number, path) in options.cf_paths[..last].iter().enumerate() {
        let target = path.target_size;
        if target > bytes && passed.saturating_add(target - bytes) > future {
            return number as u32;
        }
        passed = passed.saturating_add(target);
    }
    last as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompactionStyle;

    fn options(style: CompactionStyle, targets: &[u64]) -> ColumnFamilyOptions {
        ColumnFamilyOptions {
            compaction_style: style,
            max_bytes_for_level_base: 100,
            max_bytes_for_level_multiplier: 10.0,
            cf_paths: targets.iter().map(|target| DbPath::new("/p", *target)).collect(),
            ..ColumnFamilyOptions::default()
        }
    }

    #[test]
    fn levels_fill_one_path_after_the_other() {
        let paths = |targets: &[u64]| -> Vec<u32> {
            let options = options(CompactionStyle::Level, targets);
            (0..5).map(|level| path_for(&options, level, 0)).collect()
        };
        assert_eq!(paths(&[]), [0; 5]);
        assert_eq!(paths(&[0]), [0; 5]);
        // L0 and L1 have 100 each, L2 1000, L3 10 000.
        assert_eq!(paths(&[200, 0]), [0, 0, 1, 1, 1]);
        assert_eq!(paths(&[199, 0]), [0, 1, 1, 1, 1]);
        assert_eq!(paths(&[1200, 10_000, 0]), [0, 0, 0, 1, 2]);
        assert_eq!(paths(&[0, 0, 0]), [2; 5]);
    }

    #[test]
    fn runs_go_where_what_comes_next_fits_too() {
        let path = |targets: &[u64], bytes| path_for(&options(CompactionStyle::Universal, targets), 0, bytes);
        // size_ratio is 1: 99 bytes must have room beside 100.
        assert_eq!(path(&[200, 0], 100), 0);
        assert_eq!(path(&[199, 0], 100), 1);
        assert_eq!(path(&[50, 200, 0], 100), 1);
        assert_eq!(path(&[50, 100, 0], 100), 2);
        assert_eq!(path_for(&options(CompactionStyle::Fifo, &[1, 2]), 3, 100), 0);
    }
}
