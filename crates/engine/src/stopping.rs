//! How a database stops: by an error, until it resumes by itself or is resumed, or for good, when it is closed.
//!
//! ```text
//! error -> latched with its severity (failures.rs, background_errors.rs) -> writes refused, no job starts
//!       -> the error may pass: a thread of the lane for resuming tries, at once and then from time to time
//! resume: new MANIFEST -> new WAL -> everything in memory sealed -> flushed as one -> old WALs left -> writes go on
//! ```
//! Invariant: the worst error stays until `resume`, which lets writes go on last of all.

use crate::background_errors::{AutoResume, Severity};
use crate::core::Core;
use crate::events::Event;
use crate::events::info::BackgroundErrorRecoveryInfo;
use crate::events::reasons::FlushReason;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::obsolete_files::{drop_kept_wals, purge_obsolete_files, remove_doubtful_outputs};
use crate::options_file;
use crate::quarantine::find as quarantine;
use crate::write::pipeline::WriteCore;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_monitor::{Ticker, Watch};
use std::sync::atomic::Ordering;

/// Background threads end what they do, compactions at once; waiters are let go with ShutdownInProgress.
pub fn stop_background_work(core: &Core) {
    let mut state = core.versions.state.lock();
    state.shutting_down = true;
    core.ctx.closing.store(true, Ordering::Relaxed);
    core.versions.refuse_writes(true);
    core.versions.wake(&mut state);
    core.versions.state_changed.notify_all();
}

/// See [`crate::Db::cancel_all_background_work`], which waits for what runs.
pub fn cancel_background_work(core: &Core) {
    // Rows that an error keeps in memory are told of by closing.
    let _ = flush_unlogged(core);
    stop_background_work(core);
}

/// See [`crate::Db::close`]; a second call does nothing.
pub fn close(core: &Core) -> Result<()> {
    if core.ctx.is_forked() || core.lock.lock().is_none() {
        return Ok(());
    }
    log_line!(core.ctx, "Shutdown: canceling all background work");
    let flushed = flush_unlogged(core);
    stop_background_work(core);
    core.ctx.background.leave();
    core.ctx.scrub.close_file();
    options_file::note_if_outdated(core);
    let written = core.commit.exclude_writers().end_wals(&core.ctx);
    let verified = core.versions.verify_manifest();
    // Files that readers held at the last check may be free by now.
    core.versions.state.lock().purge_wanted = true;
    purge_obsolete_files(&core.jobs);
    drop_kept_wals(&core.jobs);
    if let Some(manager) = &core.ctx.objects.sst_file_manager {
        core.ctx.data_dirs.load().iter().for_each(|dir| manager.forget_all(&core.ctx.env.fs, dir));
    }
    log_line!(core.ctx, "Shutdown complete");
    {
        // Nobody is in the middle of changing the directory when it is given up.
        let _options = core.options_file.lock();
        let _writing = core.commit.exclude_writers();
        let _manifest = core.versions.manifest.lock();
        core.ctx.closed.store(true, Ordering::Relaxed);
    }
    core.ctx.claims.lock().clear();
    *core.lock.lock() = None;
    flushed.and(written).and(verified)
}

/// Flushes what is in no WAL.
///
/// # Errors
/// Those of the flush; the one that the database stopped for, if rows are in memory that may be in no WAL.
fn flush_unlogged(core: &Core) -> Result<()> {
    if core.ctx.live.load().avoid_flush_during_shutdown || !core.commit.exclude_writers().unlogged {
        return Ok(());
    }
    let (shutting_down, failed) = {
        let state = core.versions.state.lock();
        (state.shutting_down, state.background_error.clone())
    };
    match failed {
        Some(error) if has_rows_in_memory(core) => Err(error),
        Some(_) => Ok(()),
        None if shutting_down => Ok(()),
        None => core.commit.flush(&core.column_family_ids(), FlushReason::ShutDown, true),
    }
}

fn has_rows_in_memory(core: &Core) -> bool {
    core.registry.load().values().any(|cf| {
        let view = cf.superversion.load();
        !view.memtable.is_empty() || !view.sealed.is_empty()
    })
}

/// Tries to resume, and plans the next attempt if it fails.
pub fn resume_by_itself(core: &Core) {
    let Some((plan, failed)) = begin_to_resume(core) else { return };
    let has_space = !plan.for_space || core.versions.has_space(core.versions.bytes_to_resume());
    let resumed = if has_space { Some(resume(core)) } else { None };
    let went_well = matches!(resumed, Some(Ok(())));
    let watching = core.ctx.monitor.begin();
    let watch = Watch::from(&watching);
    watch.count(Ticker::ErrorHandlerAutoresumeRetryTotalCount, u64::from(resumed.is_some()));
    watch.count(Ticker::ErrorHandlerAutoresumeSuccessCount, u64::from(went_well));
    if let Some(Err(error)) = &resumed {
        log_at!(core.ctx, LogLevel::Error, "resuming failed: {error}");
    }
    let mut state = core.versions.state.lock();
    let now = core.ctx.env.clock.monotonic_nanos();
    let interval = core.ctx.options.bgerror_resume_retry_interval;
    let is_hard = state.severity == Some(Severity::Hard) && !state.shutting_down;
    let error = state.background_error.clone().filter(|_| is_hard);
    state.auto_resume = match (error, resumed) {
        (None, _) => None,
        (Some(_), None) => Some(plan.later(now)),
        (Some(error), Some(Err(_))) => plan.next(&error, now, interval),
        // It went well, and then something else failed: an error of its own, for which all attempts are left.
        (Some(error), Some(Ok(()))) => {
            let due = now.saturating_add(interval.saturating_mul(1000));
            let reason = state.auto_resume.map_or(plan.reason, |plan| plan.reason);
            AutoResume::first(reason, &error, due, core.ctx.options.max_bgerror_resume_count)
        }
    };
    core.versions.plan_retry(&mut state);
    if state.auto_resume.is_none() {
        // A thread that waits for it may look again.
        core.versions.state_changed.notify_all();
        let left = state.background_error.clone();
        drop(state);
        if let Some(left) = left.filter(|_| !went_well) {
            tell_end(core, failed, Some(left));
        }
    }
}

/// The attempt that is to be made and the error that it is about. `None` if a listener does not want the database to resume by itself.
fn begin_to_resume(core: &Core) -> Option<(AutoResume, Error)> {
    let (plan, error) = {
        let mut state = core.versions.state.lock();
        match (state.auto_resume, &state.background_error) {
            (Some(plan), Some(error)) => (plan, error.clone()),
            // The application has resumed.
            _ => {
                state.auto_resume = None;
                core.versions.plan_retry(&mut state);
                return None;
            }
        }
    };
    if plan.told || !core.ctx.listens() {
        return Some((plan, error));
    }
    let mut wanted = true;
    core.ctx.tell(Event::ErrorRecoveryBegin(plan.reason, &error, &mut wanted));
    let mut state = core.versions.state.lock();
    let left = state.background_error.clone();
    if !left.as_ref().is_some_and(|left| left.is_same(&error)) {
        // The application has resumed meanwhile, and another error may have come, or a worse one did.
        let now = core.ctx.env.clock.monotonic_nanos();
        let attempts = core.ctx.options.max_bgerror_resume_count;
        // Without a plan nothing can be done about it.
        let plan = state.auto_resume.zip(left.as_ref());
        state.auto_resume = plan.and_then(|(plan, left)| AutoResume::first(plan.reason, left, now, attempts));
        core.versions.plan_retry(&mut state);
        let is_worse = left.is_some() && state.auto_resume.is_none();
        drop(state);
        if is_worse {
            tell_end(core, error, left);
        }
        return None;
    }
    if wanted {
        let plan = state.auto_resume.as_mut()?;
        plan.told = true;
        return Some((*plan, error));
    }
    state.auto_resume = None;
    core.versions.plan_retry(&mut state);
    core.versions.state_changed.notify_all();
    drop(state);
    log_line!(core.ctx, "a listener leaves it to the application to resume");
    None
}

/// Listeners are told that the database has resumed from `old`, or has `left` and tries no more.
fn tell_end(core: &Core, old: Error, left: Option<Error>) {
    if core.ctx.listens() {
        let info = BackgroundErrorRecoveryInfo { old_bg_error: old, new_bg_error: left };
        core.ctx.tell(Event::ErrorRecoveryEnd(&info));
    }
}

/// See [`crate::Db::resume`].
pub fn resume(core: &Core) -> Result<()> {
    core.versions.refuse_if_read_only()?;
    quarantine::release_all(&core.versions);
    core.versions.wait_for_failed_jobs();
    let mut writing = core.commit.exclude_writers();
    let error = {
        let mut state = core.versions.state.lock();
        // The jobs that met them have ended.
        state.told_errors.clear();
        let Some(error) = state.background_error.clone() else { return Ok(()) };
        if state.severity == Some(Severity::Unrecoverable) {
            return Err(error);
        }
        if state.shutting_down {
            return Err(Error::new(ErrorKind::ShutdownInProgress, "resume"));
        }
        error
    };
    let resumed = start_anew(core, &mut writing);
    {
        let mut state = core.versions.state.lock();
        state.resuming = false;
        resumed?;
        // Something may have failed since the error was cleared, or the database closes: writes stay refused.
        if let Some(error) = &state.background_error {
            return Err(error.clone());
        }
        if state.shutting_down {
            return Err(Error::new(ErrorKind::ShutdownInProgress, "resume"));
        }
        // An attempt that is running ends it itself.
        state.auto_resume = state.auto_resume.filter(|attempt| attempt.running);
        core.versions.plan_retry(&mut state);
        core.versions.refuse_writes(false);
    }
    drop(writing);
    log_line!(core.ctx, "resumed");
    tell_end(core, error, None);
    Ok(())
}

fn start_anew(core: &Core, writing: &mut WriteCore) -> Result<()> {
    // Before the error is cleared: a job that starts then must not meet the files that failed.
    core.versions.restart_manifest()?;
    remove_doubtful_outputs(&core.versions);
    core.commit.replace_failed_wal(writing)?;
    // Sealing begins another WAL.
    core.commit.log_prepared_again(writing)?;
    core.commit.discard_unpublished(writing)?;
    let ids = writing.targets.ids();
    core.commit.seal(writing, &ids, FlushReason::ErrorRecovery)?;
    {
        // In one step: were one column family flushed before the others were sealed, a batch could be in the tables of one
        // and nowhere of the other.
        let mut state = core.versions.state.lock();
        (state.background_error, state.severity, state.resuming) = (None, None, true);
    }
    core.versions.request_flush(&ids);
    core.versions.wait_for_flush(&ids)?;
    writing.replaced_wals.clear();
    core.versions.advance_min_wal()
}
