//! From one version and edits to the next version, checking the rules of the tree.
//!
//! The rules matter beyond this engine: current RocksDB opens a column family that breaks them *empty* and
//! deletes its tables, without an error.
//! Source: RocksDB `db/version_builder.cc`, `CheckConsistency`.

use crate::blob_file::{self, BlobFiles};
use crate::version::{Drawn, Level};
use crate::{FileNumber, TableFile, Version, VersionEdit};
use outcrop_base::{Comparator, Error, Result};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// No column family has more levels.
const MOST_LEVELS: usize = 1 << 10;

/// Builds one version.
pub struct VersionBuilder {
    comparator: Comparator,
    levels: Vec<BTreeMap<FileNumber, Arc<TableFile>>>,
    blob_files: BlobFiles,
    compact_cursors: BTreeMap<u32, Vec<u8>>,
}

impl VersionBuilder {
    /// Starts from `base`, with at least `num_levels` levels.
    pub fn new(base: &Version, comparator: &Comparator, num_levels: usize) -> VersionBuilder {
        let mut levels: Vec<BTreeMap<_, _>> = base
            .levels
            .iter()
            .map(|level| level.files.iter().map(|file| (file.number, file.clone())).collect())
            .collect();
        levels.resize_with(num_levels.max(levels.len()), BTreeMap::new);
        VersionBuilder {
            comparator: comparator.clone(),
            levels,
            blob_files: base.blob_files.clone(),
            compact_cursors: base.compact_cursors.clone(),
        }
    }

    /// Applies `edit`: blob files come, then their garbage, tables leave, tables come.
    ///
    /// # Errors
    /// Corruption if a table leaves a level it is not on, comes twice, or comes to a level that is not there.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        for (level, key) in edit.compact_cursors.iter().filter(|(level, _)| *level < MOST_LEVELS as u32) {
            self.compact_cursors.insert(*level, key.clone());
        }
        for file in &edit.new_blob_files {
            blob_file::add(&mut self.blob_files, file)?;
        }
        for (number, garbage) in &edit.blob_garbage {
            blob_file::add_garbage(&mut self.blob_files, *number, *garbage)?;
        }
        for (level, number) in &edit.deleted_files {
            let removed = self.levels.get_mut(*level as usize).and_then(|files| files.remove(number));
            if removed.is_none() {
                return Err(Error::corruption(format!(
                    "table {} to delete is not on level {level}",
                    number.0
                )));
            }
        }
        for (level, file) in &edit.new_files {
            if self.levels.iter().any(|files| files.contains_key(&file.number)) {
                return Err(Error::corruption(format!("table {} is added twice", file.number.0)));
            }
            // A level beyond the configured number may empty again before the last edit.
            let index = *level as usize;
            if index >= MOST_LEVELS {
                return Err(Error::corruption(format!("table {} is on level {level}", file.number.0)));
            }
            if index >= self.levels.len() {
                self.levels.resize_with(index + 1, BTreeMap::new);
            }
            self.levels[index].insert(file.number, file.clone());
        }
        Ok(())
    }

    /// The version, with trailing levels beyond the first `num_levels` dropped if empty.
    ///
    /// # Errors
    /// With `force_consistency_checks`, Corruption naming levels and tables that break a rule.
    pub fn build(mut self, force_consistency_checks: bool) -> Result<Version> {
        let tables = || self.levels.iter().flat_map(|files| files.values());
        let oldest_named = tables().filter_map(|file| file.oldest_blob_file).min();
        blob_file::retain_needed(&mut self.blob_files, oldest_named);
        if let Some(lost) =
            tables().find(|file| file.oldest_blob_file.is_some_and(|n| !self.blob_files.contains_key(&n)))
            && force_consistency_checks
        {
            return Err(Error::corruption(format!(
                "table {} refers to a blob file that is not there",
                Drawn(lost)
            )));
        }
        let mut version = Version {
            blob_files: self.blob_files,
            compact_cursors: self.compact_cursors,
            ..Version::default()
        };
        let last = self.levels.len() - 1;
        for (level, files) in self.levels.into_iter().enumerate() {
            files.values().for_each(|file| file.runtime.placement.set_in_last_level(level == last));
            let mut files: Vec<Arc<TableFile>> = files.into_values().collect();
            if level == 0 {
                sort_l0(&mut files);
            } else {
                files.sort_by(|a, b| {
                    let keys = self.comparator.compare_internal(&a.smallest, &b.smallest);
                    keys.then(a.number.cmp(&b.number))
                });
            }
            if force_consistency_checks {
                check_level(&self.comparator, level, &files)?;
            }
            version.levels.push(Level::new(files, &self.comparator));
        }
        Ok(version)
    }

    /// Highest level that has a table.
    pub fn last_level(&self) -> Option<usize> {
        self.levels.iter().rposition(|files| !files.is_empty())
    }
}

/// Newest first: by epoch if all tables have one, else by sequence numbers.
fn sort_l0(files: &mut [Arc<TableFile>]) {
    let by_epoch = files.iter().all(|file| file.epoch != 0);
    files.sort_by_key(|file| {
        let epoch = if by_epoch { file.epoch } else { 0 };
        Reverse((epoch, file.largest_seq, file.smallest_seq, file.number))
    });
}

fn check_level(comparator: &Comparator, level: usize, files: &[Arc<TableFile>]) -> Result<()> {
    for pair in files.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let broken = if level == 0 {
            a.epoch != 0 && a.epoch == b.epoch && overlap(comparator, a, b)
        } else {
            comparator.compare_internal(&a.largest, &b.smallest) != Ordering::Less
        };
        if broken {
            return Err(Error::corruption(format!(
                "level {level}: tables {} and {} overlap",
                Drawn(a),
                Drawn(b)
            )));
        }
    }
    Ok(())
}

fn overlap(comparator: &Comparator, a: &TableFile, b: &TableFile) -> bool {
    comparator.compare_internal(&a.smallest, &b.largest) != Ordering::Greater
        && comparator.compare_internal(&b.smallest, &a.largest) != Ordering::Greater
}
