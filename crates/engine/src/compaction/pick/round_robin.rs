//! The leveled picker's rounds (`compaction_pri=kRoundRobin`): a level is compacted from its first table to its last, then
//! again.
//!
//! ```text
//! level    a..c  d..f  g..i  j..l        cursor g: take g..i, and j..l too if the level is still too large without g..i
//!                      ^---------->      the cursor goes to the key after the last that was taken, or to the first
//! ```
//! The cursor is in the MANIFEST, so that a round goes on after the database was opened again, by whichever engine.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `SetupOtherFilesWithRoundRobinExpansion`.

use super::input::{Files, PickInput, clean_cut, max_compaction_bytes, overlapping_range};
use crate::compaction::{Compaction, Work};
use outcrop_manifest::TableFile;
use std::cmp::Ordering;
use std::sync::Arc;

/// The tables of `level`, which should have `max_bytes`, that are next. None while one of them is busy: no other is taken
/// before it.
pub fn next(input: &PickInput<'_>, level: usize, max_bytes: u64) -> Option<Files> {
    let files = &input.version.levels[level].files;
    let first = files.get(first_of_round(input, level))?;
    if input.is_busy(first) {
        return None;
    }
    Some(expand(input, level, clean_cut(input, level, vec![first.clone()]), max_bytes))
}

/// Threads beyond `max_subcompactions` that a compaction of a round may be split over, of `idle` ones that have nothing
/// else to do: one for each table that it takes.
///
/// Source: RocksDB `CompactionJob::GenSubcompactionBoundaries`.
pub fn extra_subcompactions(compaction: &Compaction, most: u32, idle: usize) -> u32 {
    if compaction.next_cursor.is_none() || compaction.work != Work::Merge {
        return 0;
    }
    let tables = compaction.inputs[0].files.len().saturating_sub(most as usize);
    tables.min(idle) as u32
}

/// `start` and as many tables after it as bring the level down to `max_bytes`, while the compaction stays small enough and
/// nothing is busy. Tables that can be moved alone are moved alone.
fn expand(input: &PickInput<'_>, level: usize, start: Files, max_bytes: u64) -> Files {
    let files = &input.version.levels[level].files;
    let size = |files: &[Arc<TableFile>]| files.iter().map(|file| file.size).sum::<u64>();
    let idle: u64 = files.iter().filter(|file| !input.is_busy(file)).map(|file| file.size).sum();
    let excess = idle.saturating_sub(max_bytes);
    let output = |start: &Files| clean_cut(input, level + 1, overlapping_range(input, level + 1, start));
    if output(&start).is_empty() {
        return start;
    }
    let mut best = start;
    while size(&best) < excess {
        let Some(next) = after(files, &best).and_then(|index| files.get(index)) else { break };
        let grown = clean_cut(input, level, [best.clone(), vec![next.clone()]].concat());
        let below = output(&grown);
        let bytes = size(&grown).saturating_add(size(&below));
        if input.any_busy(&grown) || input.any_busy(&below) || bytes > max_compaction_bytes(input, level) {
            break;
        }
        best = grown;
    }
    best
}

/// The place after the last of `some` in `files`.
fn after(files: &[Arc<TableFile>], some: &[Arc<TableFile>]) -> Option<usize> {
    let last = some.last()?;
    Some(files.iter().position(|file| Arc::ptr_eq(file, last))? + 1)
}

/// The table that the next compaction of `level` begins with: the first at or after the cursor.
///
/// Source: RocksDB `db/version_set.cc`, `SortFileByRoundRobin`.
fn first_of_round(input: &PickInput<'_>, level: usize) -> usize {
    let files = &input.version.levels[level].files;
    let cursor = input.version.compact_cursors.get(&(level as u32));
    let before = |cursor: &Vec<u8>, file: &Arc<TableFile>| {
        input.comparator.compare_internal(&file.smallest, cursor) == Ordering::Less
    };
    // Past the last table the round begins anew.
    cursor.map_or(0, |cursor| files.partition_point(|file| before(cursor, file)) % files.len().max(1))
}

/// Where the round goes on after `taken` of `level`: the smallest key of the next table, or of the first.
///
/// Source: RocksDB `db/version_set.h`, `GetNextCompactCursor`.
pub fn key_after(input: &PickInput<'_>, level: usize, taken: &[Arc<TableFile>]) -> Option<Vec<u8>> {
    let files = &input.version.levels[level].files;
    Some(files[after(files, taken)? % files.len()].smallest.to_vec())
}
