//! Compactions and deletions of tables that a caller picks: everything but `compact_range`.
//!
//! They run on the caller's thread, and take their tables under the state lock like any other job.

use super::job::{self, CompactionJob};
use super::level_shape::{LevelShape, usable_levels};
use super::output::check_wanted;
use super::pick::{self, Files, PickInput, level_files};
use super::run;
use super::{Compaction, LevelFiles, Reason, Work};
use crate::column_family::ColumnFamilyHandle;
use crate::events::compaction::told_to_caller;
use crate::events::info::CompactionJobInfo;
use crate::jobs::{JobContext, OnJob};
use crate::obsolete_files::{purge_obsolete_files, purge_obsolete_files_now};
use crate::paths;
use crate::state::CfState;
use outcrop_base::keys::user_key;
use outcrop_base::{Comparator, Error, ErrorKind, Result};
use outcrop_manifest::{FileNumber, TableFile, VersionEdit};
use outcrop_options::{CompressionType, derive};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A range of user keys for [`crate::Db::delete_files_in_ranges`]; `None` is unbounded.
///
/// ```
/// # use outcrop::{RangeEnd, UserKeyRange};
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let old: UserKeyRange<'_> = (None, Some(b"2020"));
/// db.delete_files_in_ranges(&[old], RangeEnd::Exclusive)?;
/// # outcrop::Result::Ok(())
/// ```
pub type UserKeyRange<'k> = (Option<&'k [u8]>, Option<&'k [u8]>);

/// Whether the end of a range belongs to it.
///
/// ```
/// # use outcrop::{Db, Env, RangeEnd};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.delete_files_in_ranges(&[(Some(b"2024"), Some(b"2025"))], RangeEnd::Exclusive)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// It does.
    Inclusive,
    /// It does not.
    Exclusive,
}

/// How [`crate::Db::compact_files_with`] works.
///
/// Source: RocksDB `include/rocksdb/options.h`, `CompactionOptions`.
///
/// ```
/// # use outcrop::CompactFilesOptions;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("a", "1")?;
/// # db.flush()?;
/// let options = CompactFilesOptions { allow_trivial_move: true, ..CompactFilesOptions::default() };
/// let tables: Vec<u64> = db.live_files().iter().map(|file| file.number).collect();
/// db.compact_files_with(&tables, 1, &options)?;
/// assert_eq!(db.live_files()[0].level, 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CompactFilesOptions {
    /// Codec of the new tables; `None`: the output level's. Default `None`.
    pub compression: Option<CompressionType>,
    /// Size at which a new table is cut, in bytes; `None`: the output level's. On L0 there is one table in any case.
    /// Default `None`.
    pub output_file_size_limit: Option<u64>,
    /// Threads it may be split over; `None`: as `max_subcompactions` of the database says. Default `None`.
    pub max_subcompactions: Option<u32>,
    /// Which of `cf_paths`, or `db_paths`, the new tables go to. Default `None`: the only one there is.
    pub output_path_id: Option<u32>,
    /// Tables that can be linked into the output level as they are, are. Default false: they are rewritten.
    pub allow_trivial_move: bool,
    /// Set at any time, it ends the compaction with Incomplete and nothing changed. Default `None`.
    pub canceled: Option<Arc<AtomicBool>>,
}

/// See [`crate::Db::delete_files_in_ranges`].
pub fn delete_files_in_ranges(
    jobs: &JobContext,
    cf: &ColumnFamilyHandle,
    ranges: &[UserKeyRange<'_>],
    range_end: RangeEnd,
) -> Result<()> {
    jobs.versions.refuse_if_read_only()?;
    let taken: Vec<LevelFiles> = {
        let mut state = jobs.versions.state.lock();
        let cf_state = state.cf_mut(cf)?;
        let inside = |file: &Arc<TableFile>| {
            !cf_state.is_taken(file.number)
                && ranges
                    .iter()
                    .any(|range| contains(&cf.rows, range, range_end == RangeEnd::Inclusive, file))
        };
        let levels = cf_state.version.levels.iter().enumerate().skip(1);
        let found: Vec<LevelFiles> = levels
            .filter_map(|(number, level)| {
                level_files(number, level.files.iter().filter(|file| inside(file)).cloned().collect())
            })
            .collect();
        // No compaction takes them from here on.
        let numbers = found.iter().flat_map(|level| &level.files).map(|file| file.number);
        for number in numbers {
            cf_state.take_table(number);
        }
        found
    };
    if taken.is_empty() {
        return Ok(());
    }
    let mut edit = VersionEdit::for_column_family(cf.id());
    for LevelFiles { level, files } in &taken {
        edit.deleted_files.extend(files.iter().map(|file| (*level as u32, file.number)));
    }
    let installed = jobs.versions.log_and_apply(vec![edit], |_| {});
    {
        let mut state = jobs.versions.state.lock();
        if let Ok(cf_state) = state.cf_mut(cf) {
            for file in taken.iter().flat_map(|level| &level.files) {
                cf_state.busy.remove(&file.number);
            }
        }
        jobs.versions.wake(&mut state);
    }
    installed?;
    // Held, they would stay.
    drop(taken);
    purge_obsolete_files_now(jobs);
    Ok(())
}

/// See [`crate::Db::suggest_compact_range`].
pub fn suggest_compact_range(
    jobs: &JobContext,
    cf: &ColumnFamilyHandle,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Result<()> {
    jobs.versions.refuse_if_read_only()?;
    let mut state = jobs.versions.state.lock();
    let cf_state = state.cf_mut(cf)?;
    let options = cf.options.load();
    let input = cf_state.pick_input(&options);
    let levels = 0..usable_levels(&cf_state.version, &options);
    let numbers: Vec<FileNumber> = levels
        .flat_map(|level| pick::overlapping(&input, level, begin, end))
        .map(|file| file.number)
        .collect();
    cf_state.suggested.extend(numbers.iter().copied());
    cf_state.marks.requested.extend(numbers);
    cf_state.refresh_debt();
    jobs.versions.wake(&mut state);
    Ok(())
}

/// See [`crate::Db::compact_files_with`].
pub fn compact_files(
    jobs: &JobContext,
    cf: &ColumnFamilyHandle,
    files: &[u64],
    output_level: usize,
    wanted: &CompactFilesOptions,
    wants_info: bool,
) -> Result<RanForCaller> {
    check_wanted(wanted.canceled.as_deref())?;
    let how = HowToRun {
        max_subcompactions: wanted.max_subcompactions.unwrap_or(jobs.ctx.live.load().max_subcompactions),
        canceled: wanted.canceled.clone(),
        wants_info,
    };
    run_on_caller(jobs, cf, how, |cf_state| {
        let options = cf.options.load();
        let input = cf_state.pick_input(&options);
        if output_level >= usable_levels(&cf_state.version, &options) {
            return Err(Error::invalid_argument(format!("there is no level {output_level} to compact to")));
        }
        if wanted.output_path_id.is_none() && options.cf_paths.len() > 1 {
            let what = "Automatic output path selection is not yet supported in CompactFiles()";
            return Err(Error::not_supported(what));
        }
        let path_id = wanted.output_path_id.unwrap_or(0);
        paths::check_path(&options, path_id)?;
        let inputs = widened(&input, files, output_level)?;
        let wanted_tables = inputs.iter().flat_map(|level| level.files.iter().map(|file| file.number));
        if let Some(error) = cf_state.quarantine_error(wanted_tables) {
            return Err(error);
        }
        let all: Files = inputs.iter().flat_map(|level| level.files.iter().cloned()).collect();
        if input.is_written(pick::passed(inputs[0].level, output_level), &all) {
            return Err(Error::new(
                ErrorKind::Aborted,
                "a running compaction writes keys of the same range to the output level or one above it",
            ));
        }
        let bottommost = pick::is_bottommost(&input, output_level, &all);
        let of_level = derive::compression_for_level(&options, output_level, bottommost);
        let compression = wanted.compression.unwrap_or(of_level);
        let moves =
            wanted.allow_trivial_move && can_move(cf, &input, &inputs, output_level, wanted.compression);
        Ok(Some(Compaction {
            cf_id: cf.id(),
            reason: Reason::Manual,
            inputs,
            output_level,
            grandparents: Vec::new(),
            bottommost,
            work: if moves { Work::Move } else { Work::Merge },
            compression,
            target_file_size: match (output_level, wanted.output_file_size_limit) {
                (0, _) => u64::MAX,
                (_, Some(limit)) => limit,
                (_, None) => derive::target_file_size(&options, output_level),
            },
            max_grandparent_overlap: u64::MAX,
            path_id: Some(path_id),
            next_cursor: None,
        }))
    })
}

/// Moves all tables of `level` to `target`, or to the smallest level they fit, without rewriting them.
pub fn move_level(
    jobs: &JobContext,
    cf: &ColumnFamilyHandle,
    level: usize,
    target: Option<usize>,
) -> Result<()> {
    // Nothing is written that could be split, or be no longer wanted.
    let how = HowToRun { max_subcompactions: 1, canceled: None, wants_info: false };
    let moved = run_on_caller(jobs, cf, how, |cf_state| {
        let options = cf.options.load();
        let version = &cf_state.version;
        let files = version.levels[level].files.to_vec();
        let target = target.unwrap_or_else(|| smallest_fitting(cf_state, level));
        if files.is_empty() || target == level {
            return Ok(None);
        }
        if target >= usable_levels(version, &options) {
            return Err(Error::invalid_argument(format!("there is no level {target} to move to")));
        }
        // Files that are being deleted by their ranges are taken without one.
        if !cf_state.running.is_empty() || files.iter().any(|file| cf_state.is_taken(file.number)) {
            return Err(Error::new(ErrorKind::Aborted, "other compactions run"));
        }
        let between = if target < level { target..level } else { level + 1..target + 1 };
        if let Some(used) = between.clone().find(|level| !version.levels[*level].files.is_empty()) {
            return Err(Error::not_supported(format!(
                "level {level} cannot move to {target}: level {used} is not empty"
            )));
        }
        let overlap = level == 0 && !pick::sorted_without_overlap(&cf.rows, &files);
        if overlap || (target == 0 && files.len() > 1) {
            return Err(Error::not_supported("tables of L0 are sorted runs of their own"));
        }
        Ok(Some(Compaction {
            cf_id: cf.id(),
            reason: Reason::Refit,
            inputs: vec![LevelFiles { level, files }],
            output_level: target,
            grandparents: Vec::new(),
            bottommost: false,
            work: Work::Move,
            compression: derive::compression_for_level(&options, target, false),
            target_file_size: u64::MAX,
            max_grandparent_overlap: u64::MAX,
            path_id: None,
            next_cursor: None,
        }))
    });
    moved.map(drop)
}

/// Picks under the state lock and runs the result here. A failure is the
/// caller's alone, unless it is the MANIFEST's.
fn run_on_caller(
    jobs: &JobContext,
    cf: &ColumnFamilyHandle,
    how: HowToRun,
    pick: impl FnOnce(&CfState) -> Result<Option<Compaction>>,
) -> Result<RanForCaller> {
    jobs.versions.refuse_if_read_only()?;
    let job = {
        let mut state = jobs.versions.state.lock();
        if let Some(error) = &state.background_error {
            return Err(error.clone());
        }
        if state.shutting_down || state.paused > 0 {
            return Err(Error::new(ErrorKind::Aborted, "background work is stopped"));
        }
        let cf_state = state.cf_mut(cf)?;
        if cf_state.ingesting > 0 {
            return Err(Error::new(ErrorKind::Aborted, "files are being ingested"));
        }
        let Some(compaction) = pick(cf_state)? else { return Ok(RanForCaller::default()) };
        let job = CompactionJob {
            canceled: how.canceled,
            ..CompactionJob::new(compaction, cf_state, how.max_subcompactions)
        };
        job::start(&mut state, &job);
        job
    };
    let _on_job = OnJob::of(&jobs.ctx);
    let result = jobs.observed(&job.info(), || run::run(jobs, &job));
    let told = result.map(|ran| RanForCaller {
        info: how.wants_info.then(|| told_to_caller(jobs, &job, &ran)),
        tables: ran.tables.iter().map(|file| file.number).collect(),
    });
    let job = job.release();
    job::end(&jobs.versions, &mut jobs.versions.state.lock(), &job);
    jobs.ctx.tell_stalls();
    purge_obsolete_files(jobs);
    told
}

/// The report to the caller of a compaction.
#[derive(Default)]
pub struct RanForCaller {
    /// The tables it put into the output level.
    pub tables: Vec<FileNumber>,
    /// The report that a listener would get, if the caller asked for it.
    pub info: Option<CompactionJobInfo>,
}

/// How the caller wants a job to be run.
struct HowToRun {
    max_subcompactions: u32,
    canceled: Option<Arc<AtomicBool>>,
    /// The caller wants to know more than the new tables.
    wants_info: bool,
}

/// Whether the tables of `inputs` can be linked into `output_level` as they are, for one who asks for `codec`.
///
/// Source: RocksDB `db/compaction/compaction.cc`, `IsTrivialMove`.
fn can_move(
    cf: &ColumnFamilyHandle,
    input: &PickInput<'_>,
    inputs: &[LevelFiles],
    output_level: usize,
    codec: Option<CompressionType>,
) -> bool {
    let [LevelFiles { level, files }] = inputs else { return false };
    let is_filtered = cf.compaction_filter.is_some() || cf.compaction_filter_factory.is_some();
    let own = derive::compression_for_level(input.options, *level, false);
    *level != output_level
        && !is_filtered
        && pick::sorted_without_overlap(&cf.rows, files)
        && codec.map_or_else(|| pick::same_codec(input, *level, output_level), |codec| codec == own)
}

/// True if nothing of the table lies outside `range`.
fn contains(
    comparator: &Comparator,
    (begin, end): &UserKeyRange<'_>,
    include_end: bool,
    file: &TableFile,
) -> bool {
    let (last, included) = file.end();
    let starts_inside = begin.is_none_or(|begin| comparator.compare(user_key(&file.smallest), begin).is_ge());
    let ends_inside = end.is_none_or(|end| match comparator.compare(last, end) {
        std::cmp::Ordering::Less => true,
        // A table that is bounded by a tombstone ends before the key.
        std::cmp::Ordering::Equal => include_end || !included,
        std::cmp::Ordering::Greater => false,
    });
    starts_inside && ends_inside
}

/// The smallest level that the tables of `level` fit, with nothing between.
fn smallest_fitting(cf: &CfState, level: usize) -> usize {
    let options = cf.cf.options.load();
    let mut fixed = (**options).clone();
    fixed.level_compaction_dynamic_level_bytes = false;
    let shape = LevelShape::of(&cf.version, &fixed);
    let mut target = level;
    while target > 1
        && cf.version.levels[target - 1].files.is_empty()
        && cf.version.levels[level].size <= shape.max_bytes[target - 1]
    {
        target -= 1;
    }
    target
}

/// The tables numbered `files` with all that must come along so that the output level stays in order: the older tables
/// of L0 that overlap, the tables between, and those of the output level.
fn widened(input: &PickInput<'_>, files: &[u64], output_level: usize) -> Result<Vec<LevelFiles>> {
    let levels = &input.version.levels;
    let asked = |file: &Arc<TableFile>| files.contains(&file.number.0);
    let found: Vec<usize> =
        input.version.files().filter(|(_, file)| asked(file)).map(|(level, _)| level).collect();
    let (Some(&start), Some(&deepest)) = (found.iter().min(), found.iter().max()) else {
        return Err(Error::invalid_argument("no tables to compact were given"));
    };
    if found.len() != files.len() {
        return Err(Error::invalid_argument("some tables do not exist, or are given twice"));
    }
    if deepest > output_level {
        return Err(Error::invalid_argument(format!(
            "a table is on level {deepest}, below the output level {output_level}"
        )));
    }
    let mut inputs: Vec<LevelFiles> = Vec::new();
    for (number, level) in levels.iter().enumerate().take(output_level + 1).skip(start) {
        let mut picked: Files = inputs.iter().flat_map(|level| level.files.iter().cloned()).collect();
        picked.extend(level.files.iter().filter(|file| asked(file)).cloned());
        let here = if number == 0 {
            l0_run(input, &picked, output_level)
        } else {
            pick::clean_cut(input, number, pick::overlapping_range(input, number, &picked))
        };
        inputs.extend(level_files(number, here));
    }
    if inputs.iter().any(|level| level.files.iter().any(|file| input.is_taken(file))) {
        return Err(Error::new(ErrorKind::Aborted, "a table is being compacted already"));
    }
    Ok(inputs)
}

/// The tables of L0 from the newest of `picked` to the oldest; all older ones if they leave L0.
fn l0_run(input: &PickInput<'_>, picked: &Files, output_level: usize) -> Files {
    let l0 = &input.version.levels[0].files;
    let position = |file: &Arc<TableFile>| l0.iter().position(|other| Arc::ptr_eq(other, file));
    let places: Vec<usize> = picked.iter().filter_map(position).collect();
    let Some(&newest) = places.iter().min() else { return Vec::new() };
    let oldest =
        if output_level == 0 { places.iter().max().map_or(newest, |last| *last) } else { l0.len() - 1 };
    l0[newest..=oldest].to_vec()
}
