//! The leveled picker.
//!
//! Takes the level that is furthest over its target, chooses a table there, adds what must come along, and
//! decides where outputs are cut. Does no IO and changes nothing; the caller marks the result's inputs.
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `compaction_picker.cc`.

use crate::compaction::level_shape::LevelShape;
use crate::compaction::{Compaction, Reason};
use outcrop_base::Comparator;
use outcrop_base::keys::user_key;
use outcrop_manifest::{FileMetaData, Version};
use outcrop_options::{ColumnFamilyOptions, CompactionPri, derive};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

type Files = Vec<Arc<FileMetaData>>;

/// The part of a column family a picker needs.
pub struct PickInput<'a> {
    /// Column family id, carried into the result.
    pub cf_id: u32,
    /// Its tables.
    pub version: &'a Version,
    /// Its key order.
    pub comparator: &'a Comparator,
    /// Its settings.
    pub options: &'a ColumnFamilyOptions,
}

/// The most urgent compaction that can run beside those already running, if any level is due.
pub fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let shape = LevelShape::of(input.version, input.options);
    for (score, level) in shape.scores(input.version, input.options) {
        if score < 1.0 {
            break;
        }
        let picked = if level == 0 { pick_l0(input, &shape) } else { pick_level(input, level) };
        if picked.is_some() {
            return picked;
        }
    }
    None
}

/// All of L0 into the base level; only one such compaction runs at a time, because L0 tables overlap.
fn pick_l0(input: &PickInput<'_>, shape: &LevelShape) -> Option<Compaction> {
    let files = &input.version.levels[0].files;
    if files.is_empty() || files.iter().any(|file| taken(file)) {
        return pick_intra_l0(input);
    }
    let picked = complete(input, 0, files.to_vec(), shape.base_level, Reason::L0Files);
    picked.or_else(|| pick_intra_l0(input))
}

/// While the base level is busy, the newest idle L0 tables are merged into one, so that reads touch fewer.
///
/// Source: RocksDB `FindIntraL0Compaction`.
fn pick_intra_l0(input: &PickInput<'_>) -> Option<Compaction> {
    const MIN_FILES: usize = 4;
    let files = &input.version.levels[0].files;
    let trigger = input.options.level0_file_num_compaction_trigger.max(1) as usize;
    if files.len() < trigger + 2 {
        return None;
    }
    // Newest first; a run that starts anywhere but at the newest idle table would jump over newer data.
    let idle: Files = files.iter().take_while(|file| !taken(file)).cloned().collect();
    if idle.len() < MIN_FILES {
        return None;
    }
    let limit = max_compaction_bytes(input, 0);
    let mut size = 0;
    let run: Files = idle
        .into_iter()
        .take_while(|file| {
            size += file.size;
            size <= limit
        })
        .collect();
    if run.len() < MIN_FILES {
        return None;
    }
    Some(Compaction {
        cf_id: input.cf_id,
        reason: Reason::L0Files,
        start_level: 0,
        output_level: 0,
        inputs: [run, Vec::new()],
        grandparents: Vec::new(),
        bottommost: false,
        trivial_move: false,
        target_file_size: u64::MAX,
        max_grandparent_overlap: u64::MAX,
    })
}

/// One table of `level`, with what must come along, into the next level.
fn pick_level(input: &PickInput<'_>, level: usize) -> Option<Compaction> {
    let output_level = level + 1;
    for file in by_priority(input, level) {
        if taken(&file) {
            continue;
        }
        let start = clean_cut(input, level, vec![file]);
        if let Some(compaction) = complete(input, level, start, output_level, Reason::LevelSize) {
            return Some(compaction);
        }
    }
    None
}

/// Adds the output level's tables, grows the start level where that costs nothing, and fills in the rest.
/// `None` if any table needed is taken.
pub fn complete(
    input: &PickInput<'_>,
    start_level: usize,
    mut start: Files,
    output_level: usize,
    reason: Reason,
) -> Option<Compaction> {
    if start.iter().any(taken_arc) {
        return None;
    }
    let mut output = overlapping_range(input, output_level, &start);
    if output.iter().any(taken_arc) {
        return None;
    }
    if start_level > 0 && !output.is_empty() {
        let grown = grow_start(input, start_level, &start, output_level, &output);
        if let Some(grown) = grown {
            start = grown;
        }
    }
    if output_level > 0 {
        output = clean_cut(input, output_level, output);
        if output.iter().any(taken_arc) {
            return None;
        }
    }
    let all: Files = start.iter().chain(&output).cloned().collect();
    let grandparents = if output_level + 1 < input.version.levels.len() {
        overlapping_range(input, output_level + 1, &all)
    } else {
        Vec::new()
    };
    let max_grandparent_overlap = max_compaction_bytes(input, output_level);
    let trivial_move = reason != Reason::Manual
        && output.is_empty()
        && sorted_without_overlap(input.comparator, &start)
        && same_codec(input, start_level, output_level)
        && start.iter().all(|file| {
            overlap_bytes(input, output_level + 1, std::slice::from_ref(file)) <= max_grandparent_overlap
        });
    let bottommost = is_bottommost(input, output_level, &all);
    Some(Compaction {
        cf_id: input.cf_id,
        reason,
        start_level,
        output_level,
        inputs: [start, output],
        grandparents,
        bottommost,
        trivial_move,
        target_file_size: derive::target_file_size(input.options, output_level),
        max_grandparent_overlap,
    })
}

/// Tables of `level` in the order they should be compacted.
fn by_priority(input: &PickInput<'_>, level: usize) -> Files {
    let mut files: Files = input.version.levels[level].files.to_vec();
    match input.options.compaction_pri {
        CompactionPri::ByCompensatedSize => files.sort_by_key(|file| std::cmp::Reverse(file.size)),
        CompactionPri::OldestLargestSeqFirst => files.sort_by_key(|file| file.largest_seq),
        CompactionPri::OldestSmallestSeqFirst => files.sort_by_key(|file| file.smallest_seq),
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
    let ratio = |file: &Arc<FileMetaData>| {
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

/// `files`, a contiguous run of `level`, widened until no neighbour shares a user key with it.
///
/// RocksDB may split the versions of one user key over two tables; moving only one of them would put an
/// older version above a newer one.
fn clean_cut(input: &PickInput<'_>, level: usize, files: Files) -> Files {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return files };
    if level == 0 {
        return files;
    }
    let comparator = input.comparator;
    let all = &input.version.levels[level].files;
    let position = |file: &Arc<FileMetaData>| all.iter().position(|f| Arc::ptr_eq(f, file));
    let (Some(mut from), Some(mut to)) = (position(first), position(last)) else { return files };
    let touch = |left: &FileMetaData, right: &FileMetaData| {
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

/// More tables of the start level that fit under the same output tables, if the whole stays small enough.
fn grow_start(
    input: &PickInput<'_>,
    start_level: usize,
    start: &Files,
    output_level: usize,
    output: &Files,
) -> Option<Files> {
    let all: Files = start.iter().chain(output).cloned().collect();
    let grown = clean_cut(input, start_level, overlapping_range(input, start_level, &all));
    if grown.len() <= start.len() || grown.iter().any(taken_arc) {
        return None;
    }
    let bytes: u64 = grown.iter().chain(output).map(|file| file.size).sum();
    let unchanged = overlapping_range(input, output_level, &grown).len() == output.len();
    (unchanged && bytes < max_compaction_bytes(input, start_level)).then_some(grown)
}

/// The tables of `level` that overlap the key range of `files`.
pub fn overlapping_range(input: &PickInput<'_>, level: usize, files: &[Arc<FileMetaData>]) -> Files {
    let Some((begin, end)) = key_range(input.comparator, files) else { return Vec::new() };
    overlapping(input, level, Some(&begin), Some(&end))
}

/// The tables of `level` that overlap [`begin`, `end`], both inclusive; `None` is unbounded.
pub fn overlapping(input: &PickInput<'_>, level: usize, begin: Option<&[u8]>, end: Option<&[u8]>) -> Files {
    let comparator = input.comparator;
    let inside = |file: &&Arc<FileMetaData>| {
        !begin.is_some_and(|begin| file.ends_before(comparator, begin))
            && !end.is_some_and(|end| file.starts_after(comparator, end))
    };
    match input.version.levels.get(level) {
        Some(level) => level.files.iter().filter(inside).cloned().collect(),
        None => Vec::new(),
    }
}

/// Smallest and largest user key of `files`.
pub fn key_range(comparator: &Comparator, files: &[Arc<FileMetaData>]) -> Option<(Vec<u8>, Vec<u8>)> {
    let smallest = files.iter().map(|f| user_key(&f.smallest)).min_by(|a, b| comparator.compare(a, b))?;
    let largest = files.iter().map(|f| user_key(&f.largest)).max_by(|a, b| comparator.compare(a, b))?;
    Some((smallest.to_vec(), largest.to_vec()))
}

fn overlap_bytes(input: &PickInput<'_>, level: usize, files: &[Arc<FileMetaData>]) -> u64 {
    overlapping_range(input, level, files).iter().map(|file| file.size).sum()
}

/// True if no table below `output_level`, and none in it outside the inputs, overlaps the inputs' range.
pub fn is_bottommost(input: &PickInput<'_>, output_level: usize, files: &[Arc<FileMetaData>]) -> bool {
    output_level > 0
        && (output_level + 1..input.version.levels.len())
            .all(|level| overlapping_range(input, level, files).is_empty())
}

/// True if the tables, sorted by key, share no user key: they can be moved as they are.
fn sorted_without_overlap(comparator: &Comparator, files: &Files) -> bool {
    let mut sorted: Vec<&Arc<FileMetaData>> = files.iter().collect();
    sorted.sort_by(|a, b| comparator.compare_internal(&a.smallest, &b.smallest));
    sorted.windows(2).all(|pair| pair[0].ends_before(comparator, user_key(&pair[1].smallest)))
}

/// True if a table moved between the levels has the codec it would be written with.
fn same_codec(input: &PickInput<'_>, start_level: usize, output_level: usize) -> bool {
    let codec = |level| derive::compression_for_level(input.options, level, false);
    codec(start_level) == codec(output_level)
}

fn max_compaction_bytes(input: &PickInput<'_>, output_level: usize) -> u64 {
    match input.options.max_compaction_bytes {
        0 => derive::target_file_size(input.options, output_level).saturating_mul(25),
        bytes => bytes,
    }
}

fn taken(file: &FileMetaData) -> bool {
    file.being_compacted.load(atomic::Ordering::Relaxed)
}

fn taken_arc(file: &Arc<FileMetaData>) -> bool {
    taken(file)
}
