//! `compact_range`: compactions that a caller asks for and waits for.
//!
//! Leveled: the caller walks down the levels; each step is one request that a background thread runs as soon as the
//! tables it needs are free. Universal: one request takes everything, whatever the range. FIFO and None merge nothing
//! on request. No automatic compaction of the column family starts while a request that takes everything waits: there
//! could be one running at any time.

use super::job::CompactionJob;
use super::level_shape::{LevelShape, usable_levels};
use super::manual_request::{BottommostLevelCompaction, CompactRangeOptions, ManualCompaction, Scope};
use super::output::{canceled_error, check_wanted};
use super::pick::{self, Manual, leveled, universal};
use super::requests;
use super::{Compaction, Reason, Work};
use crate::column_family::ColumnFamilyHandle;
use crate::core::Core;
use crate::events::reasons::FlushReason;
use crate::history;
use crate::paths;
use crate::state::{CfState, DbState};
use crate::version_set::VersionSet;
use outcrop_base::{Error, ErrorKind, Result, Timestamp};
use outcrop_manifest::{FileNumber, TableFile, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The result of looking for a manual request to run.
pub enum ManualPick {
    /// Run this.
    Run(Arc<ManualCompaction>, Box<CompactionJob>),
    /// A request had nothing to do and is finished.
    Finished,
    /// No request, or tables it needs are taken.
    Nothing,
}

/// Takes the oldest manual request that can run. `threads` is the `max_subcompactions` of the database.
pub fn pick(state: &mut DbState, threads: u32) -> ManualPick {
    let Some(request) = state.manual.iter().find(|request| request.is_waiting()).cloned() else {
        return ManualPick::Nothing;
    };
    if request.exclusive && state.running_compactions > 0 {
        return ManualPick::Nothing;
    }
    let Some(cf) = state.column_families.get(&request.cf_id) else {
        request.finish(Err(Error::new(ErrorKind::ColumnFamilyDropped, "compact_range")));
        return ManualPick::Finished;
    };
    if cf.ingesting > 0 {
        return ManualPick::Nothing;
    }
    match inputs(cf, &request) {
        Inputs::Empty => {
            request.finish(Ok(()));
            ManualPick::Finished
        }
        Inputs::Taken => match damage_in_the_way(cf, &request) {
            Some(error) => {
                request.finish(Err(error));
                ManualPick::Finished
            }
            None => ManualPick::Nothing,
        },
        Inputs::Ready(mut compaction) => {
            if request.trim.is_some() {
                compaction.work = Work::Merge;
            }
            compaction.path_id = Some(request.path_id);
            let job = CompactionJob {
                canceled: Some(request.canceled.clone()),
                trim: request.trim,
                blob_collection: request.blob_collection,
                ..CompactionJob::new(compaction, cf, request.max_subcompactions.unwrap_or(threads))
            };
            request.start();
            ManualPick::Run(request, Box::new(job))
        }
    }
}

/// The error of a request whose tables are taken, if nobody but the quarantine has any: no job will let go of those. It names a table of
/// the range, if one is there.
fn damage_in_the_way(cf: &CfState, request: &ManualCompaction) -> Option<Error> {
    if cf.busy.len() > cf.quarantined.len() {
        return None;
    }
    let (begin, end) = match &request.scope {
        Scope::Level { begin, end, .. } => (begin.as_deref(), end.as_deref()),
        Scope::Everything => (None, None),
    };
    let options = cf.cf.options.load();
    let input = cf.pick_input(&options);
    let levels = 0..cf.version.levels.len();
    let inside =
        levels.flat_map(|level| pick::overlapping(&input, level, begin, end)).map(|file| file.number);
    cf.quarantine_error(inside).or_else(|| cf.quarantine_error(cf.quarantined.keys().copied()))
}

enum Inputs {
    Empty,
    Taken,
    Ready(Compaction),
}

fn inputs(cf: &CfState, request: &ManualCompaction) -> Inputs {
    let options = cf.cf.options.load();
    let input = cf.pick_input(&options);
    let ready = |compaction: Option<Compaction>| compaction.map_or(Inputs::Taken, Inputs::Ready);
    let Scope::Level { start, output, begin, end, below } = &request.scope else {
        let empty = cf.version.num_files() == 0;
        return if empty { Inputs::Empty } else { ready(universal::everything(&input)) };
    };
    let mut files = pick::overlapping(&input, *start, begin.as_deref(), end.as_deref());
    files.retain(|file| below.is_none_or(|below| file.number < below));
    if files.is_empty() {
        return Inputs::Empty;
    }
    if *start == 0 {
        // L0 tables overlap: an older one left behind would end up above a newer one.
        files = cf.version.levels[0].files.to_vec();
    }
    // Between the request and now another compaction may have filled a level in between: older rows there must not end up
    // above these.
    let passed = (start + 1..*output).find(|level| !cf.version.levels[*level].files.is_empty());
    let output = &passed.unwrap_or(*output);
    ready(if start == output {
        leveled::rewrite(&input, *start, files, Reason::Manual)
    } else {
        // RocksDB may have split the versions of the last key of the range over two tables.
        let files = pick::clean_cut(&input, *start, files);
        leveled::complete(&input, *start, files, *output, Reason::Manual)
    })
}

/// The wishes of a caller besides the range.
#[derive(Clone, Copy)]
struct How<'a> {
    options: &'a CompactRangeOptions,
    /// Versions with newer timestamps are dropped.
    trim: Option<Timestamp>,
    /// The caller's own way to end it.
    canceled: Option<&'a Arc<AtomicBool>>,
}

/// See [`crate::Db::compact_range_cf_until`].
pub fn compact_range(
    core: &Core,
    cf: &ColumnFamilyHandle,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    options: &CompactRangeOptions,
    canceled: Option<&Arc<AtomicBool>>,
) -> Result<()> {
    core.ctx.check_owns(cf)?;
    check_wanted(canceled.map(|canceled| &**canceled))?;
    paths::check_path(&cf.options.load(), options.target_path_id)?;
    if let Some(low) = options.full_history_low {
        if begin.is_some() || end.is_some() {
            return Err(Error::invalid_argument("Cannot specify compaction range with full_history_ts_low"));
        }
        history::increase_low(&core.versions, cf, low)?;
    }
    let bound = |key: Option<&[u8]>| key.map(|key| cf.stored_bound(key).into_owned());
    let (begin, end) = (bound(begin), bound(end));
    compact(core, cf, (begin.as_deref(), end.as_deref()), How { options, trim: None, canceled })
}

/// Compacts the range of stored keys.
fn compact(
    core: &Core,
    cf: &ColumnFamilyHandle,
    (begin, end): (Option<&[u8]>, Option<&[u8]>),
    how: How<'_>,
) -> Result<()> {
    refuse_if_disabled(&core.versions.state.lock())?;
    core.commit.flush(&[cf.id()], FlushReason::ManualCompaction, true)?;
    match pick::style_of(cf.options.load().compaction_style).manual() {
        Manual::Range => {
            let level = compact_levels(&core.versions, cf, (begin, end), how)?;
            match level {
                Some(level) if how.options.change_level => {
                    requests::move_level(&core.jobs, cf, level, how.options.target_level)
                }
                _ => Ok(()),
            }
        }
        Manual::Everything => run_manual(&core.versions, cf, Scope::Everything, how),
        Manual::Nothing if how.trim.is_some() => {
            Err(Error::not_supported("trimming the history of a column family that is not compacted"))
        }
        Manual::Nothing => Ok(()),
    }
}

/// How often a history is trimmed again because automatic compactions wrote tables meanwhile.
const TRIMS: usize = 100;

/// Rewrites everything in `cf` without the versions whose timestamps are above `newest`.
pub fn trim_history(core: &Core, cf: &ColumnFamilyHandle, newest: Timestamp) -> Result<()> {
    for _ in 0..TRIMS {
        let options = &BottommostLevelCompaction::Force.into();
        compact(core, cf, (None, None), How { options, trim: Some(newest), canceled: None })?;
        if !holds_newer(core, cf, newest)? {
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::TryAgain, "compactions write the history anew while it is trimmed"))
}

/// True if a table of `cf` has, or may have, versions with timestamps above `newest`.
fn holds_newer(core: &Core, cf: &ColumnFamilyHandle, newest: Timestamp) -> Result<bool> {
    let version = cf.superversion.load_full().version.clone();
    for (_, file) in version.files() {
        let table = core.ctx.tables.open(cf, file)?;
        let largest = table.properties().newest_timestamp();
        if largest.is_none_or(|largest| cf.comparator.compare_timestamps(largest, newest).is_gt()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Compacts the range down to the last level that holds data of it, and returns that; `None` if there is none.
fn compact_levels(
    versions: &VersionSet,
    cf: &ColumnFamilyHandle,
    (begin, end): (Option<&[u8]>, Option<&[u8]>),
    how: How<'_>,
) -> Result<Option<usize>> {
    let step = |start: usize, output: usize, below: Option<FileNumber>| {
        let (begin, end) = (begin.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        run_manual(versions, cf, Scope::Level { start, output, begin, end, below }, how)
    };
    let before = versions.ctx.next_file_number();
    let mut level = 0;
    loop {
        let (version, shape) = shape_of(versions, cf)?;
        let last = last_level_with(&version, cf, begin, end);
        let Some(last) = last else { return Ok(None) };
        let last = last.min(usable_levels(&version, &cf.options.load()) - 1);
        let output_level = if level == 0 { shape.base_level } else { level + 1 };
        if level >= last && level != 0 {
            break;
        }
        if has_tables(&version, cf, level, begin, end) {
            step(level, output_level, None)?;
        }
        if output_level == level {
            // L0 is all that compactions fill.
            break;
        }
        // Tables went less deep if another compaction had filled a level in between.
        let (version, _) = shape_of(versions, cf)?;
        let between = (level + 1..output_level).find(|level| has_tables(&version, cf, *level, begin, end));
        level = between.unwrap_or(output_level);
    }
    if how.options.bottommost_level_compaction == BottommostLevelCompaction::Force {
        // Those that no step has written anew: the steps merged them with nothing, or moved them as they were.
        step(level, level, Some(before).filter(|_| how.trim.is_none()))?;
    }
    Ok(Some(level))
}

fn shape_of(versions: &VersionSet, cf: &ColumnFamilyHandle) -> Result<(Arc<Version>, LevelShape)> {
    let state = versions.state.lock();
    let found = state.column_families.get(&cf.id());
    let cf_state = found.ok_or_else(|| Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string()))?;
    Ok((cf_state.version.clone(), LevelShape::of(&cf_state.version, &cf.options.load())))
}

/// How often a request that waits looks whether its caller still wants it.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

fn run_manual(versions: &VersionSet, cf: &ColumnFamilyHandle, scope: Scope, how: How<'_>) -> Result<()> {
    let request = ManualCompaction::new(cf.id(), scope, how.options).trimming(how.trim);
    let request = Arc::new(request.canceled_by(how.canceled));
    let mut state = versions.state.lock();
    refuse_if_disabled(&state)?;
    state.manual.push_back(request.clone());
    versions.wake(&mut state);
    let result = loop {
        if let Some(result) = request.result() {
            break result;
        }
        if request.is_waiting() {
            if let Err(error) = check_wanted(Some(&request.canceled)) {
                break Err(error);
            }
            if let Some(error) = &state.background_error {
                break Err(error.clone());
            }
            if state.shutting_down {
                break Err(Error::new(ErrorKind::ShutdownInProgress, "compact_range"));
            }
        }
        match how.canceled {
            // Nobody signals that a caller has set it.
            Some(_) if request.is_waiting() => {
                versions.state_changed.wait_for(&mut state, LOOK_AGAIN);
            }
            _ => versions.state_changed.wait(&mut state),
        }
    };
    state.manual.retain(|other| !Arc::ptr_eq(other, &request));
    // Jobs that the request held back may start, and the caller of `disable` waits for the last request.
    versions.wake(&mut state);
    versions.state_changed.notify_all();
    result
}

/// See [`crate::Db::disable_manual_compaction`].
pub fn disable(versions: &VersionSet) {
    let mut state = versions.state.lock();
    state.manual_disabled += 1;
    // Relaxed: asked again and again.
    state.manual.iter().for_each(|request| request.canceled.store(true, Ordering::Relaxed));
    versions.state_changed.notify_all();
    while !state.manual.is_empty() {
        versions.state_changed.wait(&mut state);
    }
}

/// See [`crate::Db::enable_manual_compaction`].
pub fn enable(versions: &VersionSet) {
    let mut state = versions.state.lock();
    state.manual_disabled = state.manual_disabled.saturating_sub(1);
}

fn refuse_if_disabled(state: &DbState) -> Result<()> {
    if state.manual_disabled > 0 { Err(canceled_error()) } else { Ok(()) }
}

/// The deepest level with a table that overlaps the range.
fn last_level_with(
    version: &Version,
    cf: &ColumnFamilyHandle,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Option<usize> {
    (0..version.levels.len()).rev().find(|&level| has_tables(version, cf, level, begin, end))
}

/// True if `level` has a table that overlaps the range.
fn has_tables(
    version: &Version,
    cf: &ColumnFamilyHandle,
    level: usize,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) -> bool {
    let inside = |file: &Arc<TableFile>| {
        !begin.is_some_and(|begin| file.ends_before(&cf.rows, begin))
            && !end.is_some_and(|end| file.starts_after(&cf.rows, end))
    };
    version.levels.get(level).is_some_and(|level| level.files.iter().any(inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::testing::parts::Parts;
    use outcrop_base::CfId;
    use outcrop_env::Env;
    use outcrop_manifest::Version;
    use std::thread;

    #[test]
    fn a_compaction_that_waits_for_its_turn_ends_when_its_caller_does_not_want_it_any_more() {
        let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open().unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        // Nothing runs: the request waits.
        db.pause_background_work();
        let canceled = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let options = CompactRangeOptions::default();
                db.compact_range_cf_until(db.default_column_family(), None, None, &options, &canceled)
            });
            while db.core().versions.state.lock().manual.is_empty() {
                thread::yield_now();
            }
            canceled.store(true, Ordering::Relaxed);
            assert_eq!(caller.join().unwrap().unwrap_err().kind(), ErrorKind::Incomplete);
        });
        assert!(db.core().versions.state.lock().manual.is_empty());
        db.continue_background_work();
        db.compact_range(None, None).unwrap();
        assert_eq!(db.property("rocksdb.num-files-at-level0").as_deref(), Some("0"));
    }

    #[test]
    fn a_key_over_two_tables_stays_together_when_a_part_is_compacted() {
        let parts = Parts::new();
        let mut state = parts.versions.state.lock();
        let cf = state.column_families.get_mut(&CfId::DEFAULT).unwrap();
        cf.version = Arc::new(Version::parse("L1: 1[a..k] 2[k..m] 3[n..z]\nL2: 4[b..c]", 7));
        let taken = |begin: Option<&str>, end: Option<&str>, output: usize| {
            let bound = |key: Option<&str>| key.map(|key| key.as_bytes().to_vec());
            let scope = Scope::Level { start: 1, output, begin: bound(begin), end: bound(end), below: None };
            let request = ManualCompaction::new(CfId::DEFAULT, scope, &CompactRangeOptions::default());
            match inputs(cf, &request) {
                Inputs::Ready(compaction) => {
                    compaction.input_files().map(|file| file.number.0).collect::<Vec<_>>()
                }
                Inputs::Empty | Inputs::Taken => Vec::new(),
            }
        };
        assert_eq!(taken(None, Some("j"), 2), [1, 2, 4]);
        assert_eq!(taken(Some("l"), Some("m"), 2), [1, 2, 4]);
        assert_eq!(taken(Some("n"), None, 2), [3]);
        assert_eq!(taken(Some("d"), Some("e"), 1), [1, 2]);
    }
}
