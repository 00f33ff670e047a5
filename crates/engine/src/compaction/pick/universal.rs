//! The universal picker: merges neighbouring sorted runs.
//!
//! ```text
//! newest                            oldest
//! L0: 9   L0: 8   L0: 7   L4: ...   L6: ...      each L0 table is a run, each level below is one
//!     |--- merged --|                            the output goes right above the next older run, here into L3;
//!     |------------- merged ---------|           with the oldest run included, into the last level
//! ```
//! Invariant: inputs are whole runs next to each other, so that of two runs the newer one always lies above; those of `incremental.rs`
//! are parts of them.
//! Does no IO and changes nothing. Source: RocksDB `db/compaction/compaction_picker_universal.cc`.

use super::incremental;
use super::input::{Files, PickInput, is_bottommost, passed, sorted_without_overlap};
use super::runs::{SortedRun, sorted_runs};
use super::style::{Manual, Style};
use crate::compaction::level_shape::usable_levels;
use crate::compaction::{Compaction, LevelFiles, Reason, Work};
use outcrop_manifest::TableFile;
use outcrop_options::{CompactionStopStyle, CompressionType, derive};
use std::ops::Range;
use std::sync::Arc;

/// `CompactionStyle::Universal`.
pub struct Universal;

impl Style for Universal {
    fn pick(&self, input: &PickInput<'_>) -> Option<Compaction> {
        pick(input)
    }

    /// All sorted runs.
    fn stall_runs(&self, input: &PickInput<'_>) -> usize {
        sorted_runs(input).len()
    }

    fn manual(&self) -> Manual {
        Manual::Everything
    }
}

/// Everything of the column family into the last level, or back into it. `None` if there is nothing, or a table is busy.
pub fn everything(input: &PickInput<'_>) -> Option<Compaction> {
    let runs = sorted_runs(input);
    if runs.is_empty() { None } else { merge(input, &runs, 0..runs.len(), Reason::Manual) }
}

/// The most urgent merge that can run beside those already running.
fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let runs = sorted_runs(input);
    // Below 0: their number starts none.
    let trigger = usize::try_from(input.options.level0_file_num_compaction_trigger);
    let trigger = trigger.ok().map(|trigger| trigger.max(1)).filter(|trigger| runs.len() >= *trigger);
    pick_periodic(input, &runs)
        .or_else(|| trigger.and_then(|trigger| pick_by_size(input, &runs, trigger)))
        .or_else(|| pick_marked(input, &runs))
}

fn pick_by_size(input: &PickInput<'_>, runs: &[SortedRun], trigger: usize) -> Option<Compaction> {
    let ratio = input.options.compaction_options_universal.size_ratio;
    pick_amplified(input, runs)
        .or_else(|| pick_similar(input, runs, Some(ratio), usize::MAX, Reason::SizeRatio))
        .or_else(|| {
            let idle = runs.iter().filter(|run| !run.busy).count();
            let allowed = max_runs(input, runs, trigger);
            let surplus = idle.checked_sub(allowed).filter(|surplus| *surplus > 0)?;
            pick_similar(input, runs, None, surplus + 1, Reason::SortedRuns)
        })
}

/// Source: RocksDB `UniversalCompactionBuilder::PickCompactionToReduceSizeAmp`.
const MOST_FOR_A_PART: f64 = 1.8;

/// Everything down to the oldest run, or with `incremental` a part of it, if what is newer than that has grown large against it.
fn pick_amplified(input: &PickInput<'_>, runs: &[SortedRun]) -> Option<Compaction> {
    let (oldest, newer) = runs.split_last()?;
    if oldest.busy {
        return None;
    }
    let idle = newer.iter().rev().take_while(|run| !run.busy).count();
    let first = newer.len() - idle;
    let newer_bytes: u64 = newer[first..].iter().map(|run| run.size).sum();
    let percent = u128::from(input.options.compaction_options_universal.max_size_amplification_percent);
    let amplified = u128::from(newer_bytes) * 100 >= percent * u128::from(oldest.size);
    if idle == 0 || !amplified {
        return None;
    }
    if input.options.compaction_options_universal.incremental {
        // A part leaves out the newest runs. One that costs more than 1.8 times what the whole does per byte is not worth it.
        let most = oldest.size as f64 / newer_bytes.max(1) as f64 * MOST_FOR_A_PART;
        if let Some(part) = incremental::pick(input, runs, most) {
            return Some(part);
        }
    }
    merge(input, runs, first..runs.len(), Reason::SizeAmplification)
}

/// The newest idle runs of which each is at most `ratio` percent larger than those before it, `None` for any size.
fn pick_similar(
    input: &PickInput<'_>,
    runs: &[SortedRun],
    ratio: Option<u32>,
    at_most: usize,
    reason: Reason,
) -> Option<Compaction> {
    let options = &input.options.compaction_options_universal;
    let at_least = (options.min_merge_width as usize).max(2);
    // Were the least width above the most, runs would never be merged, and writers stopped by their number for ever.
    let at_most = at_most.min((options.max_merge_width as usize).max(at_least));
    let within = |size: u64, limit: u64| match ratio {
        Some(ratio) => u128::from(size) * 100 <= u128::from(limit) * (100 + u128::from(ratio)),
        None => true,
    };
    for (first, run) in runs.iter().enumerate().filter(|(_, run)| !run.busy) {
        let mut size = run.size;
        let mut count = 1;
        for next in runs[first + 1..].iter().take_while(|run| !run.busy) {
            if count >= at_most || !within(next.size, size) {
                break;
            }
            match options.stop_style {
                CompactionStopStyle::SimilarSize if !within(size, next.size) => break,
                CompactionStopStyle::SimilarSize => size = next.size,
                CompactionStopStyle::TotalSize => size += next.size,
            }
            count += 1;
        }
        if count >= at_least {
            return merge(input, runs, first..first + count, reason);
        }
    }
    None
}

/// Sorted runs that may exist before some are merged whatever their sizes.
fn max_runs(input: &PickInput<'_>, runs: &[SortedRun], trigger: usize) -> usize {
    let options = &input.options.compaction_options_universal;
    if options.max_read_amp != 0 {
        return usize::try_from(options.max_read_amp).unwrap_or(trigger);
    }
    // The runs there would be if each were as large as size_ratio lets it be before it is merged.
    let largest = runs.iter().map(|run| run.size).max().unwrap_or(0) as f64;
    let growth = f64::from(options.size_ratio) / 100.0 + 1.0;
    let mut size = input.options.write_buffer_size.max(1) as f64;
    let (mut total, mut count) = (0.0, 1);
    while size < largest {
        total += size;
        // From the third run on this doubles at least.
        size = growth * total;
        count += 1;
    }
    count
}

/// All idle runs down to the oldest, if a table in them has reached its age.
fn pick_periodic(input: &PickInput<'_>, runs: &[SortedRun]) -> Option<Compaction> {
    if input.marks.periodic.is_empty() {
        return None;
    }
    let idle = runs.iter().rev().take_while(|run| !run.busy).count();
    let first = runs.len() - idle;
    let old = |file: &Arc<TableFile>| input.marks.periodic.contains(&file.number);
    // Newer runs without an old table need not be rewritten for it.
    let first = first + runs[first..].iter().position(|run| run.files.iter().any(old))?;
    merge(input, runs, first..runs.len(), Reason::Periodic)
}

/// The newest idle run with a table that asked for it: with the next older run, or on a single level with all idle older runs.
/// Never the oldest run: rewritten alone it would come out as it was, and ask again.
fn pick_marked(input: &PickInput<'_>, runs: &[SortedRun]) -> Option<Compaction> {
    if input.marks.requested.is_empty() {
        return None;
    }
    let (_, newer) = runs.split_last()?;
    let asked = |run: &SortedRun| run.files.iter().any(|file| input.marks.requested.contains(&file.number));
    let single_level = usable_levels(input.version, input.options) == 1;
    newer.iter().enumerate().filter(|(_, run)| !run.busy && asked(run)).find_map(|(first, _)| {
        let idle = runs[first..].iter().take_while(|run| !run.busy).count();
        let count = if single_level { idle } else { idle.min(2) };
        (count >= 2).then(|| merge(input, runs, first..first + count, Reason::Marked)).flatten()
    })
}

/// Merges the runs of `range`. `None` if one of them is busy, or where they go is being written.
pub fn merge(
    input: &PickInput<'_>,
    runs: &[SortedRun],
    range: Range<usize>,
    reason: Reason,
) -> Option<Compaction> {
    let (picked, older) = (&runs[range.clone()], &runs[range.end..]);
    if picked.iter().any(|run| run.busy) {
        return None;
    }
    let last_level = usable_levels(input.version, input.options) - 1;
    let output_level = match older.first() {
        None => last_level,
        Some(next) => next.level.saturating_sub(1),
    };
    let inputs = by_level(picked);
    let files: Files = inputs.iter().flat_map(|level| level.files.iter().cloned()).collect();
    // Files that were ingested may be between the keys of what is merged.
    if input.is_written(passed(inputs[0].level, output_level), &files) {
        return None;
    }
    let bottommost = is_bottommost(input, output_level, &files);
    let universal = &input.options.compaction_options_universal;
    let may_move = universal.allow_trivial_move
        && output_level > 0
        && !matches!(reason, Reason::Periodic | Reason::Marked | Reason::Manual)
        && sorted_without_overlap(input.comparator, &files);
    let compression = if leave_uncompressed(input, runs, older) {
        CompressionType::None
    } else {
        derive::compression_for_level(input.options, output_level, bottommost)
    };
    Some(Compaction {
        cf_id: input.cf_id,
        reason,
        inputs,
        output_level,
        grandparents: grandparents(input, older),
        bottommost,
        work: if may_move { Work::Move } else { Work::Merge },
        compression,
        // A run on L0 is one table.
        target_file_size: if output_level > 0 {
            derive::target_file_size(input.options, output_level)
        } else {
            u64::MAX
        },
        max_grandparent_overlap: incremental::max_overlap(input.options),
        path_id: None,
        next_cursor: None,
    })
}

/// The tables that outputs are cut along. Only a merge of parts gains from it: others take the level below as a whole.
fn grandparents(input: &PickInput<'_>, older: &[SortedRun]) -> Files {
    match older.first() {
        Some(next) if input.options.compaction_options_universal.incremental && next.level > 1 => {
            next.files.clone()
        }
        _ => Vec::new(),
    }
}

/// The tables of neighbouring runs by level.
fn by_level(runs: &[SortedRun]) -> Vec<LevelFiles> {
    let mut inputs: Vec<LevelFiles> = Vec::new();
    for run in runs {
        match inputs.last_mut().filter(|last| last.level == run.level) {
            Some(last) => last.files.extend(run.files.iter().cloned()),
            None => inputs.push(LevelFiles { level: run.level, files: run.files.clone() }),
        }
    }
    inputs
}

/// True if the runs older than the output come to `compression_size_percent` of the data: those are the compressed
/// ones, and what is newer stays as it is.
fn leave_uncompressed(input: &PickInput<'_>, runs: &[SortedRun], older: &[SortedRun]) -> bool {
    let Ok(percent) = u128::try_from(input.options.compaction_options_universal.compression_size_percent)
    else {
        return false;
    };
    let bytes = |runs: &[SortedRun]| runs.iter().map(|run| u128::from(run.size)).sum::<u128>();
    !older.is_empty() && bytes(older) * 100 >= bytes(runs) * percent
}
