//! Connects a database to the environment's threads: joins them, and answers when a lane asks for work.

use super::next_job::{next_job, until_next_check, wanted_threads};
use crate::background_errors::{Reason, Severity};
use crate::core::Core;
use crate::info_log::{LogLevel, log_at};
use crate::obsolete_files;
use crate::panic::caught;
use crate::version_set::VersionSet;
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
    let caches = obsolete_files::caches(&versions.state.lock());
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
            work_failed(&self.versions, &error);
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
                Err(error) => work_failed(&self.versions, &error),
                Ok(()) => {}
            }
        }))
    }

    fn next_check(&self) -> Duration {
        until_next_check(&self.ctx)
    }
}

fn work_failed(versions: &VersionSet, error: &Error) {
    if versions.report_failure(Reason::Write, "background work", error) == Some(Severity::Soft) {
        versions.pause_picking();
    }
    versions.job_ended(&mut versions.state.lock());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::Parts;
    use outcrop_base::{CfId, ErrorKind};

    #[test]
    fn what_cannot_be_picked_rests_if_a_listener_takes_the_error_away() {
        let parts = Parts::new();
        let told = parts.listen_for_errors(true);
        parts.put("a", "1");
        parts.seal(&[CfId::DEFAULT]);
        let picks = |lane| next_job(&parts.versions, lane).is_some();
        work_failed(&parts.versions, &Error::new(ErrorKind::Aborted, "a panic of a comparator"));
        assert_eq!(told.take().len(), 1);
        assert!(!parts.versions.refuses_writes());
        assert!(!picks(Lane::Flush) && !picks(Lane::Compaction));
        {
            let mut state = parts.versions.state.lock();
            assert!(state.compaction_pause.is_some_and(|pause| pause.of_picking));
            let pause = state.compaction_pause.as_mut().unwrap();
            pause.until_nanos = 0;
            state.flush_pause = Some(0);
        }
        parts.versions.look_for_retry();
        assert!(picks(Lane::Flush), "it is tried again");
        assert!(parts.versions.state.lock().compaction_pause.is_none());
    }
}
