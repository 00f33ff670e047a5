//! The FIFO picker: deletes the oldest tables once there is too much data or it is too old.
//!
//! Data that another style left below L0 is older than all of L0 and goes first, deepest level first. Does no IO and
//! changes nothing. Source: RocksDB `db/compaction/compaction_picker_fifo.cc`.

use super::input::{Files, PickInput, max_compaction_bytes};
use super::style::{Manual, Style};
use crate::compaction::{Compaction, LevelFiles, Reason, Work};
use outcrop_options::derive;

/// `CompactionStyle::Fifo`.
pub struct Fifo;

impl Style for Fifo {
    /// The most urgent deletion or merge; deletions run one at a time.
    fn pick(&self, input: &PickInput<'_>) -> Option<Compaction> {
        if input.version.files().any(|(_, file)| input.is_taken(file)) {
            return None;
        }
        pick_expired(input).or_else(|| pick_surplus(input)).or_else(|| pick_small(input))
    }

    /// It never slows writes.
    fn stall_runs(&self, _input: &PickInput<'_>) -> usize {
        0
    }

    fn manual(&self) -> Manual {
        Manual::Nothing
    }
}

/// The oldest tables of L0 that have reached `ttl`, if deleting them is enough for the size as well.
fn pick_expired(input: &PickInput<'_>) -> Option<Compaction> {
    let expired = &input.marks.expired;
    let l0 = &input.version.levels[0].files;
    let files: Files = l0.iter().rev().take_while(|file| expired.contains(&file.number)).cloned().collect();
    let (total, limit) = total_and_limit(input);
    let left = total.saturating_sub(files.iter().map(|file| file.size).sum::<u64>());
    if files.is_empty() || left > limit {
        return None;
    }
    Some(drop_files(input, 0, files, Reason::DataAge))
}

/// Bytes that count, and how many there may be: of tables, or with `max_data_files_size` of blob files too.
fn total_and_limit(input: &PickInput<'_>) -> (u64, u64) {
    let options = &input.options.compaction_options_fifo;
    let tables = input.version.total_bytes();
    if options.max_data_files_size == 0 {
        return (tables, options.max_table_files_size);
    }
    let blobs = input.version.blob_files.values().map(|blob| blob.file.total_bytes).sum::<u64>();
    (tables.saturating_add(blobs), options.max_data_files_size)
}

/// As many of the oldest tables as there are bytes too many.
fn pick_surplus(input: &PickInput<'_>) -> Option<Compaction> {
    let (mut total, limit) = total_and_limit(input);
    if total <= limit {
        return None;
    }
    let level = input.version.levels.iter().rposition(|level| !level.files.is_empty())?;
    let all = &input.version.levels[level].files;
    // Within a level below L0 nobody knows which table is oldest: they go in key order.
    let oldest_first: Files = if level == 0 { all.iter().rev().cloned().collect() } else { all.to_vec() };
    let surplus = oldest_first.into_iter().take_while(|file| {
        let go_on = total > limit;
        total = total.saturating_sub(file.size);
        go_on
    });
    Some(drop_files(input, level, surplus.collect(), Reason::TotalSize))
}

fn drop_files(input: &PickInput<'_>, level: usize, files: Files, reason: Reason) -> Compaction {
    Compaction { work: Work::Drop, ..l0_to_l0(input, LevelFiles { level, files }, reason) }
}

/// The newest tables of L0 that are still small, merged into one if there are enough of them.
///
/// Tables as large as a memtable stay as they are: merged again and again they would never get old.
/// Source: RocksDB `FindIntraL0Compaction`.
fn pick_small(input: &PickInput<'_>) -> Option<Compaction> {
    let options = input.options;
    if !options.compaction_options_fifo.allow_compaction {
        return None;
    }
    // Those newer than a damaged one, which only goes as a whole.
    let files = &input.version.levels[0].files;
    let l0 = &files[..files.iter().take_while(|file| !input.is_busy(file)).count()];
    let limit = max_compaction_bytes(input, 0);
    let mut bytes = l0.first()?.size;
    let (mut count, mut per_table_saved) = (1, u64::MAX);
    for file in &l0[1..] {
        bytes += file.size;
        let saved = bytes / count as u64;
        if saved > per_table_saved || bytes > limit {
            break;
        }
        per_table_saved = saved;
        count += 1;
    }
    let trigger = usize::try_from(options.level0_file_num_compaction_trigger).ok()?;
    let enough = count >= trigger.max(2);
    let small = per_table_saved < options.write_buffer_size / 10 * 11;
    let files = l0[..count].to_vec();
    (enough && small).then(|| l0_to_l0(input, LevelFiles { level: 0, files }, Reason::SmallTables))
}

fn l0_to_l0(input: &PickInput<'_>, files: LevelFiles, reason: Reason) -> Compaction {
    Compaction {
        cf_id: input.cf_id,
        reason,
        output_level: files.level,
        inputs: vec![files],
        grandparents: Vec::new(),
        bottommost: false,
        work: Work::Merge,
        compression: derive::compression_for_level(input.options, 0, false),
        target_file_size: u64::MAX,
        max_grandparent_overlap: u64::MAX,
        path_id: None,
        next_cursor: None,
    }
}
