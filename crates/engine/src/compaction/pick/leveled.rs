//! The leveled picker.
//!
//! Takes the level that is furthest over its target, chooses a table there, adds what must come along, and
//! decides where outputs are cut. Does no IO and changes nothing; the caller marks the result's inputs.
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `compaction_picker.cc`.

use super::input::{
    Files, PickInput, clean_cut, is_bottommost, level_files, max_compaction_bytes, overlap_bytes,
    overlapping_range, passed, same_codec, sorted_without_overlap,
};
use super::round_robin;
use super::style::{Debt, Manual, Style};
use crate::compaction::level_shape::{LevelShape, usable_levels};
use crate::compaction::{Compaction, LevelFiles, Reason, Work};
use outcrop_base::keys::user_key;
use outcrop_manifest::{FileNumber, TableFile};
use outcrop_options::{CompactionPri, derive};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `CompactionStyle::Level`.
pub struct Leveled;

impl Style for Leveled {
    fn pick(&self, input: &PickInput<'_>) -> Option<Compaction> {
        pick(input)
    }

    fn debt(&self, input: &PickInput<'_>) -> Debt {
        let (version, options) = (input.version, input.options);
        let shape = LevelShape::of(version, options);
        let urgent =
            shape.scores(version, options, input.busy).first().is_some_and(|(score, _)| *score >= 1.0);
        // Tables that are merged in L0 stay there: one alone may reach the trigger, and nothing makes it less.
        let urgent = urgent && (shape.base_level > 0 || pick_within_l0(input).is_some());
        Debt {
            needs_compaction: urgent || pick_marked(input, &shape).is_some(),
            pending_bytes: shape.pending_bytes(version, options),
            stall_runs: self.stall_runs(input),
        }
    }

    fn manual(&self) -> Manual {
        Manual::Range
    }
}

/// The most urgent compaction that can run beside those already running, if any level is due.
fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let shape = LevelShape::of(input.version, input.options);
    for (score, level) in shape.scores(input.version, input.options, input.busy) {
        if score < 1.0 {
            break;
        }
        let picked = match level {
            0 => pick_l0(input, &shape),
            _ if is_by_rounds(input) => pick_round(input, level, shape.max_bytes[level]),
            _ => pick_level(input, level),
        };
        if picked.is_some() {
            return picked;
        }
    }
    pick_marked(input, &shape)
}

/// The next tables of the round through `level`.
fn pick_round(input: &PickInput<'_>, level: usize, max_bytes: u64) -> Option<Compaction> {
    let start = round_robin::next(input, level, max_bytes)?;
    let mut compaction = complete(input, level, start, level + 1, Reason::LevelSize)?;
    compaction.next_cursor = round_robin::key_after(input, level, &compaction.inputs[0].files);
    Some(compaction)
}

/// A table that wants to be compacted although every level has its size.
///
/// Source: RocksDB `LevelCompactionBuilder::SetupInitialFiles`.
fn pick_marked(input: &PickInput<'_>, shape: &LevelShape) -> Option<Compaction> {
    let marks = input.marks;
    let groups = [
        (&marks.requested, Reason::Marked),
        (&marks.bottommost, Reason::Bottommost),
        (&marks.expired, Reason::Ttl),
        (&marks.periodic, Reason::Periodic),
        (&marks.blob_garbage, Reason::BlobGarbage),
    ];
    groups.into_iter().find_map(|(files, reason)| pick_from(input, shape, files, reason))
}

fn pick_from(
    input: &PickInput<'_>,
    shape: &LevelShape,
    marked: &BTreeSet<FileNumber>,
    reason: Reason,
) -> Option<Compaction> {
    if marked.is_empty() {
        return None;
    }
    let last = last_level(input);
    let (l0, within_l0) = (&input.version.levels[0].files, shape.base_level == 0);
    let wanted = |file: &Arc<TableFile>| marked.contains(&file.number) && !input.is_busy(file);
    input.version.files().filter(|(_, file)| wanted(file)).find_map(|(level, file)| match level {
        // Old or marked, one table alone would be written anew and be old or marked again.
        0 if within_l0 && (reason == Reason::Ttl || reason == Reason::Marked && l0.len() == 1) => None,
        0 if within_l0 => rewrite(input, 0, l0.to_vec(), reason),
        0 => complete(input, 0, l0.to_vec(), shape.base_level, reason),
        _ => {
            let start = clean_cut(input, level, vec![file.clone()]);
            if reason == Reason::Ttl && level >= last {
                // A mark from before the table was moved here.
                None
            } else if matches!(reason, Reason::Bottommost | Reason::BlobGarbage) || level >= last {
                rewrite(input, level, start, reason)
            } else {
                complete(input, level, start, level + 1, reason)
            }
        }
    })
}

/// The deepest level with tables, of those compaction fills.
fn last_level(input: &PickInput<'_>) -> usize {
    let levels = &input.version.levels[..usable_levels(input.version, input.options)];
    levels.iter().rposition(|level| !level.files.is_empty()).unwrap_or(0)
}

/// `files` of `level` back into it, those of L0 all of them. `None` if a table is busy.
pub fn rewrite(input: &PickInput<'_>, level: usize, files: Files, reason: Reason) -> Option<Compaction> {
    let mut compaction = complete(input, level, files, level, reason)?;
    // Start and output level are one: the output level's tables are the start level's.
    if compaction.inputs.len() > 1 {
        compaction.inputs.remove(0);
    }
    compaction.work = Work::Merge;
    if level == 0 {
        // One table: several would be as many sorted runs.
        compaction.target_file_size = u64::MAX;
        compaction.grandparents.clear();
    }
    Some(compaction)
}

/// All of L0 into the base level; only one such compaction runs at a time, because L0 tables overlap.
fn pick_l0(input: &PickInput<'_>, shape: &LevelShape) -> Option<Compaction> {
    if shape.base_level == 0 {
        return pick_within_l0(input);
    }
    let files = &input.version.levels[0].files;
    if files.is_empty() || input.any_busy(files) {
        return pick_intra_l0(input);
    }
    let picked = complete(input, 0, files.to_vec(), shape.base_level, Reason::L0Files);
    picked
        .map(|compaction| deepen(input, shape, compaction))
        .or_else(|| pick_l0_above_damage(input, shape))
        .or_else(|| pick_intra_l0(input))
}

/// All of L0 into the level above the base level, which is empty: a table in quarantine may be in the way for ever. The other tables go on
/// to the base level from there, one by one.
fn pick_l0_above_damage(input: &PickInput<'_>, shape: &LevelShape) -> Option<Compaction> {
    let base = &input.version.levels[shape.base_level].files;
    let in_the_way = base.iter().any(|file| input.quarantined.contains_key(&file.number));
    if !in_the_way || shape.base_level < 2 {
        return None;
    }
    complete(input, 0, input.version.levels[0].files.to_vec(), shape.base_level - 1, Reason::L0Files)
}

/// Takes the level below the output along, where writing what the output level has too much only to move it on would cost
/// more. So it is in databases whose last levels are not much larger than the base level.
fn deepen(input: &PickInput<'_>, shape: &LevelShape, compaction: Compaction) -> Compaction {
    /// Bytes of the level below per byte of the others at most: L0 waits for all of them.
    const LARGEST: u64 = 2;
    let level = compaction.output_level;
    let below = level + 1;
    if compaction.work != Work::Merge || level == 0 || below >= shape.max_bytes.len() {
        return compaction;
    }
    let all: Files = compaction.input_files().cloned().collect();
    let added = clean_cut(input, below, overlapping_range(input, below, &all));
    let bytes = |files: &[Arc<TableFile>]| files.iter().map(|file| file.size).sum::<u64>();
    let (merged, added_bytes) = (bytes(&all), bytes(&added));
    let incoming = bytes(&compaction.inputs[0].files);
    let excess = (incoming + input.version.levels[level].size).saturating_sub(shape.max_bytes[level]);
    // Later the excess would be written once more, with its share of the level below.
    let share = u128::from(added_bytes) * u128::from(merged.saturating_sub(excess));
    if share >= u128::from(excess) * u128::from(merged)
        || added_bytes > LARGEST * merged
        || merged + added_bytes > max_compaction_bytes(input, below)
        || input.any_busy(&added)
    {
        return compaction;
    }
    let all: Files = all.into_iter().chain(added.iter().cloned()).collect();
    if input.is_written(below..=below, &all) {
        return compaction;
    }
    let inputs = compaction.inputs.into_iter().chain(level_files(below, added)).collect();
    merge(input, compaction.reason, inputs, below, &all)
}

/// The newest tables of L0 where no other level is to be filled: the only other one is kept for data that is ingested behind.
fn pick_within_l0(input: &PickInput<'_>) -> Option<Compaction> {
    let files = &input.version.levels[0].files;
    // Those newer than a table that is being compacted are merged meanwhile.
    let idle = files.iter().take_while(|file| !input.is_busy(file)).count();
    let run = cheapest_run(&files[..idle], u64::MAX).to_vec();
    let inputs = vec![LevelFiles { level: 0, files: run.clone() }];
    (run.len() > 1).then(|| Compaction {
        target_file_size: u64::MAX,
        grandparents: Vec::new(),
        ..merge(input, Reason::L0Files, inputs, 0, &run)
    })
}

/// While the base level is busy, the newest idle L0 tables are merged into one, so that reads touch fewer.
///
/// Source: RocksDB `FindIntraL0Compaction`.
fn pick_intra_l0(input: &PickInput<'_>) -> Option<Compaction> {
    const MIN_FILES: usize = 4;
    let files = &input.version.levels[0].files;
    let trigger = usize::try_from(input.options.level0_file_num_compaction_trigger).ok()?;
    if files.len() < trigger.max(1) + 2 {
        return None;
    }
    // Newest first; a run that starts anywhere but at the newest idle table would jump over newer data.
    let idle: Files = files.iter().take_while(|file| !input.is_busy(file)).cloned().collect();
    if idle.len() < MIN_FILES {
        return None;
    }
    let run = cheapest_run(&idle, max_compaction_bytes(input, 0));
    if run.len() < MIN_FILES {
        return None;
    }
    Some(Compaction {
        cf_id: input.cf_id,
        reason: Reason::L0Files,
        inputs: vec![LevelFiles { level: 0, files: run.to_vec() }],
        output_level: 0,
        grandparents: Vec::new(),
        bottommost: false,
        work: Work::Merge,
        compression: derive::compression_for_level(input.options, 0, false),
        target_file_size: u64::MAX,
        max_grandparent_overlap: u64::MAX,
        path_id: None,
        next_cursor: None,
    })
}

/// The newest of `files`, newest first, that take fewest bytes for each table they make less: a large one that was merged
/// before is left alone. Not more than `limit` bytes.
fn cheapest_run(files: &[Arc<TableFile>], limit: u64) -> &[Arc<TableFile>] {
    let (mut bytes, mut best) = (0, u64::MAX);
    for (fewer, file) in files.iter().enumerate() {
        bytes += file.size;
        let for_each = bytes.checked_div(fewer as u64).unwrap_or(u64::MAX);
        if for_each > best || bytes > limit {
            return &files[..fewer];
        }
        best = for_each;
    }
    files
}

/// One table of `level`, with what must come along, into the next level.
fn pick_level(input: &PickInput<'_>, level: usize) -> Option<Compaction> {
    let output_level = level + 1;
    for file in by_priority(input, level) {
        if input.is_busy(&file) {
            continue;
        }
        let start = clean_cut(input, level, vec![file]);
        if let Some(compaction) = complete(input, level, start, output_level, Reason::LevelSize) {
            return Some(compaction);
        }
    }
    None
}

/// True if the levels are compacted in rounds, from one end to the other.
fn is_by_rounds(input: &PickInput<'_>) -> bool {
    input.options.compaction_pri == CompactionPri::RoundRobin
}

/// Adds the output level's tables, grows the start level where that costs nothing, and fills in the rest.
/// `None` if any table needed is busy.
pub fn complete(
    input: &PickInput<'_>,
    start_level: usize,
    mut start: Files,
    output_level: usize,
    reason: Reason,
) -> Option<Compaction> {
    if input.any_busy(&start) {
        return None;
    }
    let mut output = overlapping_range(input, output_level, &start);
    if input.any_busy(&output) {
        return None;
    }
    if start_level > 0 && !output.is_empty() {
        let to_the_right = is_by_rounds(input) && reason == Reason::LevelSize;
        let grown = grow_start(input, start_level, &start, output_level, &output, to_the_right);
        if let Some(grown) = grown {
            start = grown;
        }
    }
    if output_level > 0 {
        output = clean_cut(input, output_level, output);
        if input.any_busy(&output) {
            return None;
        }
    }
    let all: Files = start.iter().chain(&output).cloned().collect();
    // Into the output level, where tables would overlap, or above it, where older rows would hide newer ones.
    if input.is_written(passed(start_level, output_level), &all) {
        return None;
    }
    let rewrites = matches!(reason, Reason::Manual | Reason::Periodic | Reason::Marked | Reason::BlobGarbage);
    let may_move = !rewrites
        && output.is_empty()
        && sorted_without_overlap(input.comparator, &start)
        && same_codec(input, start_level, output_level)
        && start.iter().all(|file| {
            overlap_bytes(input, output_level + 1, std::slice::from_ref(file))
                <= max_compaction_bytes(input, output_level)
        });
    let inputs = [level_files(start_level, start), level_files(output_level, output)];
    let merge = merge(input, reason, inputs.into_iter().flatten().collect(), output_level, &all);
    Some(Compaction { work: if may_move { Work::Move } else { Work::Merge }, ..merge })
}

/// The compaction of `inputs`, whose tables are `all`, into `output_level`.
fn merge(
    input: &PickInput<'_>,
    reason: Reason,
    inputs: Vec<LevelFiles>,
    output_level: usize,
    all: &[Arc<TableFile>],
) -> Compaction {
    let bottommost = is_bottommost(input, output_level, all);
    Compaction {
        cf_id: input.cf_id,
        reason,
        inputs,
        output_level,
        // None where there is no such level.
        grandparents: overlapping_range(input, output_level + 1, all),
        bottommost,
        work: Work::Merge,
        compression: derive::compression_for_level(input.options, output_level, bottommost),
        target_file_size: derive::target_file_size(input.options, output_level),
        max_grandparent_overlap: max_compaction_bytes(input, output_level),
        path_id: None,
        next_cursor: None,
    }
}

/// Tables of `level` in the order they should be compacted.
fn by_priority(input: &PickInput<'_>, level: usize) -> Files {
    let mut files: Files = input.version.levels[level].files.to_vec();
    match input.options.compaction_pri {
        CompactionPri::ByCompensatedSize => files.sort_by_key(|file| std::cmp::Reverse(file.size)),
        CompactionPri::OldestLargestSeqFirst => files.sort_by_key(|file| file.largest_seq),
        CompactionPri::OldestSmallestSeqFirst => files.sort_by_key(|file| file.smallest_seq),
        // Not by this order, but by `round_robin`.
        CompactionPri::RoundRobin => {}
        CompactionPri::MinOverlappingRatio => {
            let ratios = overlapping_ratios(input, level);
            let mut order: Vec<usize> = (0..files.len()).collect();
            order.sort_by_key(|&index| ratios[index]);
            files = order.into_iter().map(|index| files[index].clone()).collect();
        }
    }
    files
}

/// For each table of `level`: bytes it overlaps in the next level per byte of its own, in 1/1024.
///
/// Both levels are sorted, so one pass over both is enough.
fn overlapping_ratios(input: &PickInput<'_>, level: usize) -> Vec<u64> {
    let comparator = input.comparator;
    let next = &input.version.levels[level + 1].files;
    let mut first = 0;
    let ratio = |file: &Arc<TableFile>| {
        while first < next.len()
            && comparator.compare(user_key(&next[first].largest), user_key(&file.smallest)) == Ordering::Less
        {
            first += 1;
        }
        let overlap: u64 = next[first..]
            .iter()
            .take_while(|n| {
                comparator.compare(user_key(&n.smallest), user_key(&file.largest)) != Ordering::Greater
            })
            .map(|n| n.size)
            .sum();
        (u128::from(overlap) * 1024 / u128::from(file.size.max(1))) as u64
    };
    input.version.levels[level].files.iter().map(ratio).collect()
}

/// More tables of the start level that fit under the same output tables, if the whole stays small enough. `to_the_right`:
/// only such with larger keys, or a round would take them twice.
fn grow_start(
    input: &PickInput<'_>,
    start_level: usize,
    start: &Files,
    output_level: usize,
    output: &Files,
    to_the_right: bool,
) -> Option<Files> {
    let all: Files = start.iter().chain(output).cloned().collect();
    let mut grown = overlapping_range(input, start_level, &all);
    if to_the_right {
        let first = start.first()?;
        grown.drain(..grown.iter().position(|file| Arc::ptr_eq(file, first))?);
    }
    let grown = clean_cut(input, start_level, grown);
    if grown.len() <= start.len() || input.any_busy(&grown) {
        return None;
    }
    let bytes: u64 = grown.iter().chain(output).map(|file| file.size).sum();
    let unchanged = overlapping_range(input, output_level, &grown).len() == output.len();
    (unchanged && bytes < max_compaction_bytes(input, start_level)).then_some(grown)
}
