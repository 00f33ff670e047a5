//! The parts that flushes, compactions and the removal of files work with, and the observer that sees them
//! begin and end.

use crate::context::DbContext;
use crate::info_log::log_line;
use crate::snapshots::SnapshotList;
use crate::version_set::VersionSet;
use crate::write::wal::ClosedWals;
use outcrop_base::{CfId, Error, ErrorKind, Result};
use std::cell::Cell;
use std::sync::Arc;

/// The owners a job may touch. A job needs no database: tests make these by themselves.
#[derive(Clone)]
pub struct JobContext {
    /// The surroundings.
    pub ctx: Arc<DbContext>,
    /// The structure, where results are installed.
    pub versions: Arc<VersionSet>,
    /// WALs to sync before what a flush makes durable may outlive them.
    pub closed_wals: Arc<ClosedWals>,
    /// The snapshots that must stay readable.
    pub snapshots: Arc<SnapshotList>,
    /// The observer of the begin and end of jobs.
    pub observer: Arc<dyn JobObserver>,
}

/// The kind of work that a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Memtables become tables.
    Flush,
    /// Tables become other tables, or move, or go.
    Compaction,
}

/// A job that begins or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// The kind of the job.
    pub kind: JobKind,
    /// Ids of the column families it is for.
    pub column_families: Vec<CfId>,
    /// A description of the job, for people.
    pub what: String,
}

/// Observes flushes and compactions, on the thread that runs them, with no lock held. Time spent in the observer
/// delays the job.
pub trait JobObserver: Send + Sync {
    /// The job begins.
    fn began(&self, job: &JobInfo);

    /// The job has ended; its outputs are installed, or removed.
    fn ended(&self, job: &JobInfo, result: &Result<()>);
}

/// Writes the beginning of each job to LOG; jobs write their own ends there, with figures.
pub struct LogObserver(pub Arc<DbContext>);

impl JobObserver for LogObserver {
    fn began(&self, job: &JobInfo) {
        log_line!(self.0, "{:?} begins: {}", job.kind, job.what);
    }

    fn ended(&self, _: &JobInfo, _: &Result<()>) {}
}

thread_local! {
    /// The database that the calling thread does a job of, by the address of its context; 0: none.
    static WORKS_FOR: Cell<usize> = const { Cell::new(0) };
}

/// Marks the calling thread as one that does a job of a database, until it is dropped.
pub struct OnJob {
    before: usize,
}

impl OnJob {
    /// A job of the database of `ctx` begins on this thread.
    pub fn of(ctx: &Arc<DbContext>) -> OnJob {
        OnJob { before: WORKS_FOR.replace(Arc::as_ptr(ctx) as usize) }
    }
}

impl Drop for OnJob {
    fn drop(&mut self) {
        WORKS_FOR.set(self.before);
    }
}

/// Whether the calling thread does a job of the database of `ctx`: a listener called, and nothing may wait for jobs.
pub fn is_on_job(ctx: &Arc<DbContext>) -> bool {
    WORKS_FOR.get() == Arc::as_ptr(ctx) as usize
}

/// Refuses what waits for the jobs of `ctx` to end, on a thread that does one of them: a listener called it.
///
/// # Errors
/// Busy.
pub fn refuse_on_job(ctx: &Arc<DbContext>, what: &str) -> Result<()> {
    if !is_on_job(ctx) {
        return Ok(());
    }
    let text = format!("{what} waits for jobs to end, and was called by a listener on the thread of one");
    Err(Error::new(ErrorKind::Busy, text))
}

impl JobContext {
    /// Runs `job` between the two calls of the observer.
    pub fn observed<T>(&self, info: &JobInfo, job: impl FnOnce() -> Result<T>) -> Result<T> {
        self.observer.began(info);
        let result = job();
        let ended = result.as_ref().map(|_| ()).map_err(Clone::clone);
        self.observer.ended(info, &ended);
        result
    }
}
