//! `compact_range`: compactions that a caller asks for and waits for.
//!
//! Leveled: the caller walks down the levels; each step is one request that a background thread runs as soon as the
//! tables it needs are free. Universal: one request takes everything, whatever the range. FIFO and None merge nothing
//! on request. No automatic compaction of the column family starts while a request that takes everything waits: there
//! could be one running at any time.

use super::job::CompactionJob;
use super::level_shape::{LevelShape, usable_levels};
use super::pick::{self, leveled};
use super::{Compaction, Reason};
use crate::column_family::ColumnFamilyHandle;
use crate::db::DbInner;
use crate::state::{CfState, DbState};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_manifest::{FileMetaData, Version};
use outcrop_options::CompactionStyle;
use parking_lot::Mutex;
use std::sync::Arc;

/// How `compact_range` treats the last level that holds data of the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BottommostLevelCompaction {
    /// Its tables are rewritten only where something is merged into them: RocksDB's default without a
    /// compaction filter.
    #[default]
    Skip,
    /// Its tables are rewritten in any case.
    Force,
}

/// How `compact_range` works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactRangeOptions {
    /// What happens to the last level with data of the range. Default `Skip`.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// Afterwards move all tables of the level the range ended in to `target_level`, without rewriting them. Leveled
    /// only. Default false.
    pub change_level: bool,
    /// Where to; `None`: the smallest level that the size fits. The levels up to it must be empty. Default `None`.
    pub target_level: Option<usize>,
    /// No other compaction of the database runs at the same time. Default false.
    pub exclusive_manual_compaction: bool,
    /// Threads each step may be split over; `None`: as `max_subcompactions` of the database says. Default `None`.
    pub max_subcompactions: Option<u32>,
}

/// The tables of one step.
#[derive(Clone)]
enum Scope {
    /// Those of a level that overlap the range, with what must come along, into another.
    Level { start: usize, output: usize, begin: Option<Vec<u8>>, end: Option<Vec<u8>> },
    /// All sorted runs.
    Everything,
}

/// One step of a manual compaction.
pub struct ManualCompaction {
    cf_id: u32,
    scope: Scope,
    exclusive: bool,
    max_subcompactions: Option<u32>,
    outcome: Mutex<Outcome>,
}

enum Outcome {
    Waiting,
    Running,
    Done(Result<()>),
}

impl ManualCompaction {
    /// Records how the step ended.
    pub fn finish(&self, result: Result<()>) {
        *self.outcome.lock() = Outcome::Done(result);
    }

    /// True if no automatic compaction of column family `cf_id` may start while this waits or runs.
    pub fn holds_back(&self, cf_id: u32) -> bool {
        self.exclusive
            || (self.cf_id == cf_id && matches!(self.scope, Scope::Everything) && self.is_waiting())
    }

    fn is_waiting(&self) -> bool {
        matches!(&*self.outcome.lock(), Outcome::Waiting)
    }

    fn result(&self) -> Option<Result<()>> {
        match &*self.outcome.lock() {
            Outcome::Done(result) => Some(result.clone()),
            _ => None,
        }
    }
}

/// What a waiting request can do now.
pub enum ManualPick {
    /// Run this.
    Run(Arc<ManualCompaction>, CompactionJob),
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
        Inputs::Taken => ManualPick::Nothing,
        Inputs::Ready(compaction) => {
            let job = CompactionJob::new(compaction, cf, request.max_subcompactions.unwrap_or(threads));
            *request.outcome.lock() = Outcome::Running;
            ManualPick::Run(request, job)
        }
    }
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
    let Scope::Level { start, output, begin, end } = &request.scope else {
        let empty = cf.version.num_files() == 0;
        return if empty { Inputs::Empty } else { ready(pick::everything(&input)) };
    };
    let mut files = pick::overlapping(&input, *start, begin.as_deref(), end.as_deref());
    if files.is_empty() {
        return Inputs::Empty;
    }
    if *start == 0 {
        // L0 tables overlap: an older one left behind would end up above a newer one.
        files = cf.version.levels[0].files.to_vec();
    }
    ready(if start == output {
        leveled::rewrite(&input, *start, files, Reason::Manual)
    } else {
        leveled::complete(&input, *start, files, *output, Reason::Manual)
    })
}

impl DbInner {
    /// See [`crate::Db::compact_range_with`].
    pub fn compact_range(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.flush(&[cf.id()], true)?;
        match cf.options.load().compaction_style {
            CompactionStyle::Level => {
                let level = self.compact_levels(cf, begin, end, options)?;
                match level {
                    Some(level) if options.change_level => self.move_level(cf, level, options.target_level),
                    _ => Ok(()),
                }
            }
            CompactionStyle::Universal => self.run_manual(cf, Scope::Everything, options),
            CompactionStyle::Fifo | CompactionStyle::None => Ok(()),
        }
    }

    /// Compacts the range down to the last level that holds data of it, and returns that; `None` if there is none.
    fn compact_levels(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<Option<usize>> {
        let step = |start: usize, output: usize| {
            let (begin, end) = (begin.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
            self.run_manual(cf, Scope::Level { start, output, begin, end }, options)
        };
        let mut level = 0;
        let mut last_written = None;
        loop {
            let (version, shape) = self.shape_of(cf)?;
            let last = last_level_with(&version, cf, begin, end);
            let Some(last) = last else { return Ok(None) };
            let last = last.min(usable_levels(&version, &cf.options.load()) - 1);
            let output_level = if level == 0 { shape.base_level } else { level + 1 };
            if level >= last && level != 0 {
                break;
            }
            if has_tables(&version, cf, level, begin, end) {
                step(level, output_level)?;
                last_written = Some(output_level);
            }
            level = output_level;
        }
        let force = options.bottommost_level_compaction == BottommostLevelCompaction::Force;
        if force && last_written != Some(level) {
            step(level, level)?;
        }
        Ok(Some(level))
    }

    fn shape_of(&self, cf: &ColumnFamilyHandle) -> Result<(Arc<Version>, LevelShape)> {
        let state = self.state.lock();
        let found = state.column_families.get(&cf.id());
        let cf_state =
            found.ok_or_else(|| Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string()))?;
        Ok((cf_state.version.clone(), LevelShape::of(&cf_state.version, &cf.options.load())))
    }

    fn run_manual(&self, cf: &ColumnFamilyHandle, scope: Scope, options: &CompactRangeOptions) -> Result<()> {
        let request = Arc::new(ManualCompaction {
            cf_id: cf.id(),
            scope,
            exclusive: options.exclusive_manual_compaction,
            max_subcompactions: options.max_subcompactions,
            outcome: Mutex::new(Outcome::Waiting),
        });
        let mut state = self.state.lock();
        state.manual.push_back(request.clone());
        self.background.wake(&mut state);
        let result = loop {
            if let Some(result) = request.result() {
                break result;
            }
            if request.is_waiting() {
                if let Some(error) = &state.background_error {
                    break Err(error.clone());
                }
                if state.shutting_down {
                    break Err(Error::new(ErrorKind::ShutdownInProgress, "compact_range"));
                }
            }
            self.state_changed.wait(&mut state);
        };
        state.manual.retain(|other| !Arc::ptr_eq(other, &request));
        // What it held back may start.
        self.background.wake(&mut state);
        result
    }
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
    let inside = |file: &Arc<FileMetaData>| {
        !begin.is_some_and(|begin| file.ends_before(&cf.comparator, begin))
            && !end.is_some_and(|end| file.starts_after(&cf.comparator, end))
    };
    version.levels.get(level).is_some_and(|level| level.files.iter().any(inside))
}
