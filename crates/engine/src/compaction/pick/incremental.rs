//! Universal compaction of the oldest runs piece by piece: `compaction_options_universal.incremental`.
//!
//! ```text
//! L4:      | d f |                        taken along: lies within what is merged, and so does all below it
//! L5: | a b | c d e | f g | h |  i | j |  the next to oldest run: the window of its tables that costs least
//! L6:    | a | b d | e g |  | i k |       the oldest run: what the window overlaps
//! ```
//! A window has about half of `max_compaction_bytes` with what it overlaps; the other half is for what comes along. Its cost are bytes of
//! the oldest run per byte of its own.
//!
//! Invariant: what is left above the output is newer than everything that was merged of its keys.
//! Does no IO and changes nothing. Source: RocksDB `UniversalCompactionBuilder::PickIncrementalForReduceSizeAmp`.

use super::input::{Files, PickInput, clean_cut, is_bottommost, key_range, sorted_without_overlap};
use super::leveled;
use super::runs::SortedRun;
use crate::compaction::{Compaction, LevelFiles, Reason, Work};
use outcrop_base::Comparator;
use outcrop_base::keys::user_key;
use outcrop_manifest::TableFile;
use outcrop_options::{ColumnFamilyOptions, derive};
use std::ops::Range;
use std::sync::Arc;

/// A part of the two oldest of `runs`, with what lies above it. `None` if a part costs more than `most` bytes of the oldest run per byte, or
/// the newer of them is on L0.
pub fn pick(input: &PickInput<'_>, runs: &[SortedRun], most: f64) -> Option<Compaction> {
    let [newer @ .., next, oldest] = runs else { return None };
    if next.level == 0 {
        return None;
    }
    let limit = max_compaction_bytes(input.options) / 2;
    let window = cheapest_window(input.comparator, &next.files, &oldest.files, limit, most)?;
    let start = clean_cut(input, next.level, next.files[window].to_vec());
    let lower = leveled::complete(input, next.level, start, oldest.level, Reason::SizeAmplification)?;
    let mut inputs = above(input, newer, &lower.inputs[0].files);
    inputs.extend(lower.inputs);
    let files: Files = inputs.iter().flat_map(|level| level.files.iter().cloned()).collect();
    let universal = &input.options.compaction_options_universal;
    let may_move = universal.allow_trivial_move && sorted_without_overlap(input.comparator, &files);
    let bottommost = is_bottommost(input, oldest.level, &files);
    Some(Compaction {
        inputs,
        bottommost,
        work: if may_move { Work::Move } else { Work::Merge },
        compression: derive::compression_for_level(input.options, oldest.level, bottommost),
        grandparents: Vec::new(),
        max_grandparent_overlap: max_overlap(input.options),
        ..lower
    })
}

/// Bytes of the next older run that a table may overlap before it is cut, where runs are compacted in parts.
///
/// Source: RocksDB `UniversalCompactionBuilder::GetMaxOverlappingBytes`.
pub fn max_overlap(options: &ColumnFamilyOptions) -> u64 {
    (options.target_file_size_base / 2).saturating_mul(3)
}

fn max_compaction_bytes(options: &ColumnFamilyOptions) -> u64 {
    match options.max_compaction_bytes {
        0 => options.target_file_size_base.saturating_mul(25),
        bytes => bytes,
    }
}

/// The tables of `files` to merge with those of `oldest` that they overlap: just over `limit` bytes together, unless there are no more, and
/// with the fewest bytes of `oldest` per byte of `files`, which must be fewer than `most`.
fn cheapest_window(
    comparator: &Comparator,
    files: &[Arc<TableFile>],
    oldest: &[Arc<TableFile>],
    limit: u64,
    most: f64,
) -> Option<Range<usize>> {
    let before = |left: &[u8], right: &[u8]| comparator.compare_internal(left, right).is_lt();
    let (mut best, mut least) = (None, most);
    let (mut start, mut size) = (0, 0);
    // Tables of `oldest` that overlap the window: from `first`, up to `last`, which counts if `last_counted`.
    let (mut first, mut last, mut last_counted, mut overlapped) = (0, 0, false, 0u64);
    for (end, file) in files.iter().enumerate() {
        let mut skipped = 0;
        while last < oldest.len() && before(&oldest[last].largest, &file.smallest) {
            if !last_counted {
                overlapped += oldest[last].size;
            }
            (last, last_counted) = (last + 1, false);
            skipped += 1;
        }
        if skipped > 1 {
            // A table of `oldest` lies in the gap before this one: the window need not go over it.
            start = end;
        }
        if start == end {
            (size, overlapped, first, last_counted) = (0, 0, last, false);
        }
        size += file.size;
        while last < oldest.len() && before(&oldest[last].smallest, &file.largest) {
            if !last_counted {
                overlapped += oldest[last].size;
                last_counted = true;
            }
            if before(&file.largest, &oldest[last].largest) {
                break;
            }
            (last, last_counted) = (last + 1, false);
        }
        if size + overlapped <= limit && end + 1 < files.len() {
            continue;
        }
        let cost = overlapped as f64 / size.max(1) as f64;
        if cost < least {
            (best, least) = (Some(start..end + 1), cost);
        }
        while size + overlapped > limit && start <= end {
            size -= files[start].size;
            start += 1;
            let Some(file) = files.get(start) else { break };
            while first < oldest.len() && first <= last && before(&oldest[first].largest, &file.smallest) {
                overlapped = overlapped.saturating_sub(oldest[first].size);
                first += 1;
            }
        }
    }
    best
}

/// The tables of `runs`, newest first and next to the run of `lower`, that lie within what is below them, in ascending order of levels.
fn above(input: &PickInput<'_>, runs: &[SortedRun], lower: &[Arc<TableFile>]) -> Vec<LevelFiles> {
    let mut taken = Vec::new();
    let Some((mut begin, mut end)) = key_range(input.comparator, lower) else { return taken };
    for run in runs.iter().rev() {
        if run.level == 0 || run.busy {
            break;
        }
        let inside = within(input.comparator, run, &begin, &end);
        let overlaps = |file: &Arc<TableFile>| {
            !file.ends_before(input.comparator, &begin) && !file.starts_after(input.comparator, &end)
        };
        match key_range(input.comparator, &inside) {
            Some(range) => {
                (begin, end) = range;
                taken.push(LevelFiles { level: run.level, files: inside });
            }
            // Newer tables must not pass what stays here.
            None if run.files.iter().any(overlaps) => break,
            None => {}
        }
    }
    taken.reverse();
    taken
}

/// The tables of `run` from `begin` to `end`, both inclusive, that share no user key with the others.
fn within(comparator: &Comparator, run: &SortedRun, begin: &[u8], end: &[u8]) -> Files {
    let inside = |file: &Arc<TableFile>| {
        comparator.compare(user_key(&file.smallest), begin).is_ge()
            && comparator.compare(user_key(&file.largest), end).is_le()
    };
    let Some(mut from) = run.files.iter().position(inside) else { return Vec::new() };
    let mut to = from + run.files[from..].iter().take_while(|file| inside(file)).count();
    let touches = |left: usize| {
        let (left, right) = (&run.files[left], &run.files[left + 1]);
        !left.ends_before(comparator, user_key(&right.smallest))
    };
    while from < to && from > 0 && touches(from - 1) {
        from += 1;
    }
    while to > from && to < run.files.len() && touches(to - 1) {
        to -= 1;
    }
    run.files[from..to].to_vec()
}
