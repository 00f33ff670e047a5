//! The input of pickers, and the questions that all styles ask of it.

use crate::compaction::marks::Marks;
use crate::compaction::{LevelFiles, RunningCompaction};
use outcrop_base::keys::user_key;
use outcrop_base::{CfId, Comparator, Error};
use outcrop_manifest::{FileNumber, TableFile, Version};
use outcrop_options::{ColumnFamilyOptions, derive};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Tables in their level's order.
pub type Files = Vec<Arc<TableFile>>;

/// The part of a column family a picker needs.
pub struct PickInput<'a> {
    /// Column family id, carried into the result.
    pub cf_id: CfId,
    /// Its tables.
    pub version: &'a Version,
    /// Its key order.
    pub comparator: &'a Comparator,
    /// Its settings.
    pub options: &'a ColumnFamilyOptions,
    /// Tables that want to be compacted whatever the sizes are.
    pub marks: &'a Marks,
    /// Tables that another job has, or that are in quarantine.
    pub busy: &'a BTreeSet<FileNumber>,
    /// Tables in quarantine: only deleting them is possible.
    pub quarantined: &'a BTreeMap<FileNumber, Error>,
    /// The ranges that running compactions write.
    pub running: &'a [RunningCompaction],
}

impl PickInput<'_> {
    /// True if another job has the table, or it is in quarantine.
    pub fn is_busy(&self, file: &TableFile) -> bool {
        self.busy.contains(&file.number)
    }

    /// True if another job has the table.
    pub fn is_taken(&self, file: &TableFile) -> bool {
        self.is_busy(file) && !self.quarantined.contains_key(&file.number)
    }

    /// True if a running compaction may put a table over the range of `files` into one of `levels`: also where it has no input.
    pub fn is_written(&self, levels: RangeInclusive<usize>, files: &[Arc<TableFile>]) -> bool {
        let Some((begin, end)) = key_range(self.comparator, files) else { return false };
        self.running.iter().any(|job| job.writes(self.comparator, levels.clone(), &begin, &end))
    }

    /// True if [`PickInput::is_busy`] is true of one of the tables.
    pub fn any_busy(&self, files: &[Arc<TableFile>]) -> bool {
        files.iter().any(|file| self.is_busy(file))
    }
}

/// `files` of one level, as the inputs of a compaction.
pub fn level_files(level: usize, files: Files) -> Option<LevelFiles> {
    (!files.is_empty()).then_some(LevelFiles { level, files })
}

/// `files`, a contiguous run of `level`, widened until no neighbour shares a user key with it.
///
/// RocksDB may split the versions of one user key over two tables; moving only one of them would put an
/// older version above a newer one.
pub fn clean_cut(input: &PickInput<'_>, level: usize, files: Files) -> Files {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return files };
    if level == 0 {
        return files;
    }
    let comparator = input.comparator;
    let all = &input.version.levels[level].files;
    let position = |file: &Arc<TableFile>| all.iter().position(|f| Arc::ptr_eq(f, file));
    let (Some(mut from), Some(mut to)) = (position(first), position(last)) else { return files };
    let touch = |left: &TableFile, right: &TableFile| {
        let (end, included) = left.end();
        included && comparator.compare(end, user_key(&right.smallest)) == Ordering::Equal
    };
    while from > 0 && touch(&all[from - 1], &all[from]) {
        from -= 1;
    }
    while to + 1 < all.len() && touch(&all[to], &all[to + 1]) {
        to += 1;
    }
    all[from..=to].to_vec()
}

/// The tables of `level` that overlap the key range of `files`.
pub fn overlapping_range(input: &PickInput<'_>, level: usize, files: &[Arc<TableFile>]) -> Files {
    let Some((begin, end)) = key_range(input.comparator, files) else { return Vec::new() };
    overlapping(input, level, Some(&begin), Some(&end))
}

/// The tables of `level` that overlap [`begin`, `end`], both inclusive; `None` is unbounded.
pub fn overlapping(input: &PickInput<'_>, level: usize, begin: Option<&[u8]>, end: Option<&[u8]>) -> Files {
    let comparator = input.comparator;
    let inside = |file: &&Arc<TableFile>| {
        !begin.is_some_and(|begin| file.ends_before(comparator, begin))
            && !end.is_some_and(|end| file.starts_after(comparator, end))
    };
    match input.version.levels.get(level) {
        Some(level) => level.files.iter().filter(inside).cloned().collect(),
        None => Vec::new(),
    }
}

/// Smallest and largest user key of `files`.
pub fn key_range(comparator: &Comparator, files: &[Arc<TableFile>]) -> Option<(Vec<u8>, Vec<u8>)> {
    let smallest = files.iter().map(|f| user_key(&f.smallest)).min_by(|a, b| comparator.compare(a, b))?;
    let largest = files.iter().map(|f| user_key(&f.largest)).max_by(|a, b| comparator.compare(a, b))?;
    Some((smallest.to_vec(), largest.to_vec()))
}

pub fn overlap_bytes(input: &PickInput<'_>, level: usize, files: &[Arc<TableFile>]) -> u64 {
    overlapping_range(input, level, files).iter().map(|file| file.size).sum()
}

/// True if nothing outside `files`, the inputs, can hold older data of their key range: no table below `output_level`
/// overlaps it, and an output to L0 includes the oldest table there.
pub fn is_bottommost(input: &PickInput<'_>, output_level: usize, files: &[Arc<TableFile>]) -> bool {
    let levels = &input.version.levels;
    let oldest_included =
        || levels[0].files.last().is_some_and(|last| files.iter().any(|f| Arc::ptr_eq(f, last)));
    (output_level > 0 || oldest_included())
        && (output_level + 1..levels.len()).all(|level| overlapping_range(input, level, files).is_empty())
}

/// True if the tables, sorted by key, share no user key: they can be moved as they are.
pub fn sorted_without_overlap(comparator: &Comparator, files: &[Arc<TableFile>]) -> bool {
    let mut sorted: Vec<&Arc<TableFile>> = files.iter().collect();
    sorted.sort_by(|a, b| comparator.compare_internal(&a.smallest, &b.smallest));
    sorted.windows(2).all(|pair| pair[0].ends_before(comparator, user_key(&pair[1].smallest)))
}

/// The levels that rows of `start_level` pass on their way, and the one they come to.
pub fn passed(start_level: usize, output_level: usize) -> RangeInclusive<usize> {
    output_level.min(start_level + 1)..=output_level
}

/// True if a table moved between the levels has the codec it would be written with.
pub fn same_codec(input: &PickInput<'_>, start_level: usize, output_level: usize) -> bool {
    let codec = |level| derive::compression_for_level(input.options, level, false);
    codec(start_level) == codec(output_level)
}

pub fn max_compaction_bytes(input: &PickInput<'_>, output_level: usize) -> u64 {
    match input.options.max_compaction_bytes {
        0 => derive::target_file_size(input.options, output_level).saturating_mul(25),
        bytes => bytes,
    }
}
