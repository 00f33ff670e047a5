//! `compact_range`: compactions that a caller asks for and waits for.
//!
//! The caller walks down the levels; each step is one request that a background thread runs as soon as the
//! tables it needs are free.

use super::job::CompactionJob;
use super::level_shape::{LevelShape, usable_levels};
use super::pick::leveled::{self, PickInput};
use super::{Compaction, Reason};
use crate::column_family::ColumnFamilyHandle;
use crate::db::DbInner;
use crate::state::{CfState, DbState};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_manifest::Version;
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

/// One step of a manual compaction.
pub struct ManualCompaction {
    cf_id: u32,
    start_level: usize,
    output_level: usize,
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
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

/// Takes the oldest manual request that can run.
pub fn pick(state: &mut DbState) -> ManualPick {
    let Some(request) = state.manual.iter().find(|request| request.is_waiting()).cloned() else {
        return ManualPick::Nothing;
    };
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
            *request.outcome.lock() = Outcome::Running;
            let job = CompactionJob { compaction, cf: cf.cf.clone(), version: cf.version.clone() };
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
    let input = PickInput {
        cf_id: request.cf_id,
        version: &cf.version,
        comparator: &cf.cf.comparator,
        options: &options,
    };
    let (begin, end) = (request.begin.as_deref(), request.end.as_deref());
    let mut files = leveled::overlapping(&input, request.start_level, begin, end);
    if files.is_empty() {
        return Inputs::Empty;
    }
    if request.start_level == 0 {
        // L0 tables overlap: an older one left behind would end up above a newer one.
        files = cf.version.levels[0].files.to_vec();
    }
    if request.start_level == request.output_level {
        return rewrite(&input, request.start_level, files);
    }
    match leveled::complete(&input, request.start_level, files, request.output_level, Reason::Manual) {
        Some(compaction) => Inputs::Ready(compaction),
        None => Inputs::Taken,
    }
}

/// Rewrites tables within the last level.
fn rewrite(input: &PickInput<'_>, level: usize, files: Vec<Arc<outcrop_manifest::FileMetaData>>) -> Inputs {
    let mut compaction = match leveled::complete(input, level, files.clone(), level, Reason::Manual) {
        Some(compaction) => compaction,
        None => return Inputs::Taken,
    };
    // Start and output level are one: the output level's tables are the start level's.
    compaction.inputs = [std::mem::take(&mut compaction.inputs[1]), Vec::new()];
    Inputs::Ready(compaction)
}

impl DbInner {
    /// Compacts everything between `begin` and `end` (inclusive; `None` is unbounded) down to the last level
    /// that holds data of the range. Returns when it is done and installed.
    pub fn compact_range(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        bottommost: BottommostLevelCompaction,
    ) -> Result<()> {
        self.flush(&[cf.id()], true)?;
        let mut level = 0;
        let mut last_written = None;
        loop {
            let (version, shape) = self.shape_of(cf)?;
            let last = last_level_with(&version, cf, begin, end);
            let Some(last) = last else { return Ok(()) };
            let last = last.min(usable_levels(&version, &cf.options.load()) - 1);
            let output_level = if level == 0 { shape.base_level } else { level + 1 };
            if level >= last && level != 0 {
                break;
            }
            if has_tables(&version, cf, level, begin, end) {
                self.run_manual(cf, level, output_level, begin, end)?;
                last_written = Some(output_level);
            }
            level = output_level;
        }
        if bottommost == BottommostLevelCompaction::Force && last_written != Some(level) {
            self.run_manual(cf, level, level, begin, end)?;
        }
        Ok(())
    }

    fn shape_of(&self, cf: &ColumnFamilyHandle) -> Result<(Arc<Version>, LevelShape)> {
        let state = self.state.lock();
        let found = state.column_families.get(&cf.id());
        let cf_state =
            found.ok_or_else(|| Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string()))?;
        Ok((cf_state.version.clone(), LevelShape::of(&cf_state.version, &cf.options.load())))
    }

    fn run_manual(
        &self,
        cf: &ColumnFamilyHandle,
        start_level: usize,
        output_level: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let request = Arc::new(ManualCompaction {
            cf_id: cf.id(),
            start_level,
            output_level,
            begin: begin.map(<[u8]>::to_vec),
            end: end.map(<[u8]>::to_vec),
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
    let options = cf.options.load();
    let input = PickInput { cf_id: cf.id(), version, comparator: &cf.comparator, options: &options };
    !leveled::overlapping(&input, level, begin, end).is_empty()
}
