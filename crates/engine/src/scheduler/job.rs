//! A unit of background work, and running it.

use super::upkeep;
use crate::background_errors::{Reason, Severity};
use crate::compaction::job::{self as compaction_job, CompactionJob};
use crate::compaction::manual_request::ManualCompaction;
use crate::compaction::run as compaction;
use crate::core::Core;
use crate::flush::decided::FlushJob;
use crate::flush::job as flush;
use crate::jobs::{JobContext, OnJob};
use crate::obsolete_files::purge_obsolete_files;
use crate::panic::caught;
use crate::quarantine::find as quarantine;
use crate::scrub::step as scrub;
use crate::stopping;
use outcrop_base::{Error, ErrorKind};
use outcrop_cache::Cache;
use outcrop_memtable::{MemTable, PrefaultRange};
use std::sync::Arc;

/// Work for one thread. Everything that it takes from the shared state was taken when it was picked.
pub enum Job {
    /// Memtables to tables.
    Flush(FlushJob),
    /// Tables to tables, and the request that it is a step of.
    Compaction(Box<CompactionJob>, Option<Arc<ManualCompaction>>),
    /// Views and files that nobody needs any more.
    Purge,
    /// Memory that writers are done with.
    DropWindows,
    /// Memory for the cache to grow by.
    PrepareSlabs(Arc<Cache>),
    /// Memory that writers of this memtable come to next.
    Prefault(Arc<MemTable>, PrefaultRange),
    /// Memory for a memtable of this write buffer size.
    PrepareMemtable(u64),
    /// The checks that only time makes due.
    TimedCheck,
    /// Some MiB of a file to verify.
    Scrub,
    /// Whether what failed can be tried again.
    LookForRetry,
    /// Bringing the database back after an error.
    Resume,
}

impl Job {
    /// True for what only keeps the house in order, and changes no data.
    pub fn is_upkeep(&self) -> bool {
        match self {
            Job::DropWindows
            | Job::PrepareSlabs(_)
            | Job::Prefault(..)
            | Job::PrepareMemtable(_)
            | Job::Scrub
            | Job::TimedCheck => true,
            Job::Flush(_) | Job::Compaction(..) | Job::Purge | Job::LookForRetry | Job::Resume => false,
        }
    }

    /// Runs it. Only what brings the whole database on needs more than the [`JobContext`].
    pub fn run(self, core: &Core) {
        let jobs = &core.jobs;
        let _on_job = OnJob::of(&jobs.ctx);
        match self {
            Job::Flush(job) => run_flush(jobs, &job),
            Job::Compaction(job, manual) => run_compaction(jobs, *job, manual),
            Job::Purge => purge_obsolete_files(jobs),
            Job::DropWindows => jobs.ctx.background.drop_windows(),
            Job::PrepareSlabs(cache) => while cache.prepare_slab() {},
            Job::Prefault(memtable, ahead) => memtable.prefault(&ahead),
            Job::PrepareMemtable(size) => jobs.ctx.memtable_pool.prepare(size),
            Job::TimedCheck => upkeep::timed_check(core),
            Job::Scrub => scrub::step(jobs),
            Job::LookForRetry => jobs.versions.look_for_retry(),
            Job::Resume => stopping::resume_by_itself(core),
        }
    }
}

/// Runs a flush and ends it in the shared state, whether it failed or not.
pub fn run_flush(jobs: &JobContext, job: &FlushJob) {
    let versions = &jobs.versions;
    let result = jobs.observed(&job.info(), || caught("flush", || flush::run(jobs, job)));
    // A caller may wait for it: without the column family that was dropped under them the others are flushed all the same, and so
    // are all where a listener takes the error away.
    let again = result.is_err();
    if let Err(error) = result {
        // Only one that a listener took away: it is tried again, but not at once.
        if versions.report_failure(Reason::Flush, "flush", &error) == Some(Severity::Soft) {
            versions.pause_flushes();
        }
    }
    let mut state = versions.state.lock();
    state.running_flushes -= 1;
    for part in &job.parts {
        if let Some(cf) = state.column_families.get_mut(&part.cf.id()) {
            cf.flush_running = false;
            cf.flushes_ended += 1;
            cf.flush_requested |= again && !cf.sealed.is_empty();
        }
    }
    versions.job_ended(&mut state);
    drop(state);
    jobs.ctx.tell_stalls();
    jobs.ctx.trim_heap();
}

/// Runs a compaction and ends it in the shared state, whether it failed or not. A caller that waits for it goes on once the job holds
/// no table any more: files that it made obsolete can be removed then.
pub fn run_compaction(jobs: &JobContext, job: CompactionJob, manual: Option<Arc<ManualCompaction>>) {
    let versions = &jobs.versions;
    let run = || compaction::run_telling(jobs, &job).map(drop);
    let result = jobs.observed(&job.info(), run);
    let was_canceled = |error: &&Error| manual.as_ref().is_some_and(|request| request.was_canceled(error));
    let too_large = result.as_ref().err().filter(|error| error.kind() == ErrorKind::CompactionTooLarge);
    if let (Some(error), None) = (too_large, &manual) {
        // The limit may be raised, or data go.
        versions.pause_compactions(error, 0);
    }
    let failed = result.as_ref().err().filter(|error| too_large.is_none() && !was_canceled(error));
    let mut damaged = Vec::new();
    if let Some(error) = failed {
        let severity = versions.report_failure(Reason::Compaction, "compaction", error);
        if severity == Some(Severity::Soft) {
            damaged = quarantine::damaged_inputs(jobs, &job, error);
        }
        // The next one does without the damaged tables.
        if severity == Some(Severity::Soft) && damaged.is_empty() {
            versions.pause_compactions(error, job.compaction.input_bytes());
        }
    }
    let job = job.release();
    let mut state = versions.state.lock();
    state.pool_compactions -= 1;
    compaction_job::end(versions, &mut state, &job);
    quarantine::hold(&mut state, &mut damaged);
    drop(state);
    quarantine::tell(&jobs.ctx, &damaged);
    if let Some(request) = manual {
        let _state = versions.state.lock();
        request.finish(result);
        versions.state_changed.notify_all();
    }
    jobs.ctx.tell_stalls();
    jobs.ctx.trim_heap();
}
