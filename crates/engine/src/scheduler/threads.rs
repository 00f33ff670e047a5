//! Connects a database to the environment's threads: joins them, and answers when a lane asks for work.

use super::next_job::{next_job, wanted_threads};
use crate::background_errors::Reason;
use crate::core::Core;
use crate::info_log::{LogLevel, log_at};
use crate::obsolete_files::block_caches;
use crate::panic::caught;
use outcrop_base::{Error, Result};
use outcrop_env::scheduler::{Job, Lane, Worker};
use std::sync::Arc;
use std::time::Duration;

/// Has the threads of the environment work for `core`.
pub fn start(core: &Arc<Core>) -> Result<()> {
    let worker: Arc<dyn Worker> = core.clone();
    let (ctx, versions) = (&core.ctx, &core.versions);
    let wanted = wanted_threads(&ctx.options);
    let membership = ctx.env.scheduler.join(Arc::downgrade(&worker), ctx.env.threads.clone(), wanted)?;
    ctx.background.joined(membership);
    let caches = block_caches(&versions.state.lock());
    caches.iter().for_each(|cache| ctx.background.watch_growth(cache));
    ctx.background.wake();
    Ok(())
}

/// Lets the environment have as many threads as the options now ask for, and wakes them.
pub fn options_changed(core: &Core) {
    let wanted = wanted_threads(&core.ctx.live.load());
    core.ctx.env.scheduler.raise_limit(Lane::Flush, wanted.flushes);
    core.ctx.env.scheduler.raise_limit(Lane::Compaction, wanted.compactions);
    core.versions.wake(&mut core.versions.state.lock());
}

impl Worker for Core {
    /// A panic outside of a job, as of a comparator that is asked what to compact, stops writes as a failed job does. One of upkeep
    /// leaves no data behind that could be wrong: LOG says so, and writes go on.
    fn next_job(self: Arc<Self>, lane: Lane) -> Option<Job> {
        let picked = caught("background work", || Ok(next_job(&self.versions, lane)));
        let job = picked.unwrap_or_else(|error| {
            work_failed(&self, &error);
            None
        })?;
        let is_upkeep = job.is_upkeep();
        Some(Box::new(move || {
            let done = caught("background work", || {
                job.run(&self);
                Ok(())
            });
            match done {
                Err(error) if is_upkeep => {
                    log_at!(self.ctx, LogLevel::Error, "upkeep failed: {error}");
                    self.versions.job_ended(&mut self.versions.state.lock());
                }
                Err(error) => work_failed(&self, &error),
                Ok(()) => {}
            }
        }))
    }

    fn next_check(&self) -> Duration {
        let now = self.ctx.env.clock.monotonic_nanos();
        Duration::from_nanos(self.ctx.background.next_look_nanos().saturating_sub(now))
    }
}

fn work_failed(core: &Core, error: &Error) {
    core.versions.report_failure(Reason::Write, "background work", error);
    core.versions.job_ended(&mut core.versions.state.lock());
}
