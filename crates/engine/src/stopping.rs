//! How a database stops: by an error, until it resumes by itself or is resumed, or for good, when it is closed.
//!
//! ```text
//! error -> latched with its severity (background_errors.rs) -> writes refused, no job starts
//!       -> the error may pass: a thread of the lane for resuming tries, at once and then from time to time
//! resume: new MANIFEST -> new WAL -> everything in memory sealed -> flushed as one -> old WALs left -> writes go on
//! ```
//! Invariant: the worst error stays until `resume`, which lets writes go on last of all.

use crate::background_errors::{AutoResume, Reason, Severity, severity};
use crate::context::closing_error;
use crate::db::DbInner;
use crate::info_log::log_line;
use crate::state::DbState;
use crate::write::WriteCore;
use outcrop_base::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

impl DbInner {
    /// Latches `error`: writes are refused from here on until resumed.
    pub fn fail_writes(&self, error: Error) -> Error {
        let severity = severity(Reason::Write, &error, self.ctx.options.paranoid_checks);
        self.stop_writes(severity, &error);
        error
    }

    /// Writes down that `what` failed, and stops what has to stop. `None` if nobody did wrong.
    pub fn report_failure(&self, reason: Reason, what: &str, error: &Error) -> Option<Severity> {
        log_line!(self.ctx, "{what} failed: {error}");
        if matches!(error.kind(), ErrorKind::ShutdownInProgress | ErrorKind::ColumnFamilyDropped) {
            return None;
        }
        self.state.lock().background_errors += 1;
        let severity = severity(reason, error, self.ctx.options.paranoid_checks);
        self.stop_writes(severity, error);
        Some(severity)
    }

    fn stop_writes(&self, severity: Severity, error: &Error) {
        if severity > Severity::Soft && self.latch(&mut self.state.lock(), severity, error) {
            // After the lock: see `DbState`.
            log_line!(self.ctx, "writes stop ({severity:?}): {error}");
        }
    }

    /// Makes `error` the background error, if there is none as bad. Writers waiting for room are let go.
    fn latch(&self, state: &mut DbState, severity: Severity, error: &Error) -> bool {
        self.write_refused.store(true, Ordering::Relaxed);
        self.state_changed.notify_all();
        if state.background_error.is_some() && state.severity.is_none_or(|held| held >= severity) {
            return false;
        }
        state.background_error = Some(error.clone());
        state.severity = Some(severity);
        // One that is being tried is looked at when it ends.
        if !state.auto_resume.is_some_and(|resume| resume.running) {
            let now = self.ctx.env.clock.monotonic_nanos();
            let attempts = self.ctx.options.max_bgerror_resume_count;
            let planned = || state.auto_resume.or_else(|| AutoResume::first(error, now, attempts));
            state.auto_resume = if severity == Severity::Hard { planned() } else { None };
            self.background.set_retry(state);
        }
        true
    }

    /// The error a refused write gets.
    pub fn refusal(&self) -> Error {
        let state = self.state.lock();
        match &state.background_error {
            Some(error) => error.clone(),
            None => closing_error(),
        }
    }

    /// Background threads end what they do, compactions at once; waiters are let go with ShutdownInProgress.
    pub fn stop_background_work(&self) {
        let mut state = self.state.lock();
        state.shutting_down = true;
        self.ctx.closing.store(true, Ordering::Relaxed);
        self.write_refused.store(true, Ordering::Relaxed);
        self.background.wake(&mut state);
        self.state_changed.notify_all();
    }

    /// See [`crate::Db::close`]; a second call does nothing.
    pub fn close(&self) -> Result<()> {
        if self.ctx.is_forked() || self.lock.lock().is_none() {
            return Ok(());
        }
        let flushed = self.flush_unlogged();
        self.stop_background_work();
        self.background.join();
        self.note_options_if_outdated();
        let written = self.write_core.lock().wal.end();
        // What readers held when it was last looked at may be free by now.
        self.state.lock().purge_wanted = true;
        self.purge_obsolete_files();
        self.drop_kept_wals();
        log_line!(self.ctx, "closed");
        *self.lock.lock() = None;
        flushed.and(written)
    }

    /// Flushes what is in no WAL.
    fn flush_unlogged(&self) -> Result<()> {
        if self.ctx.options.avoid_flush_during_shutdown || !self.write_core.lock().unlogged {
            return Ok(());
        }
        if self.state.lock().shutting_down || self.state.lock().background_error.is_some() {
            return Ok(());
        }
        let ids: Vec<u32> = self.registry.load().keys().copied().collect();
        self.flush(&ids, true)
    }

    /// Waits for the jobs that were running when an error stopped everything; none starts before it is cleared. The one
    /// that failed says so once more when it ends: if the error were cleared before, that would stop writes again.
    fn wait_for_failed_jobs(&self) {
        let mut state = self.state.lock();
        while state.background_error.is_some()
            && !state.shutting_down
            && state.running_flushes + state.running_compactions > 0
        {
            self.state_changed.wait(&mut state);
        }
    }

    /// Takes the attempt to resume that is due; false if none is.
    pub fn next_resume(&self, state: &mut DbState) -> bool {
        let now = self.ctx.env.clock.monotonic_nanos();
        let due = state.auto_resume.as_mut().filter(|resume| !resume.running && resume.due_nanos <= now);
        let Some(resume) = due else { return false };
        resume.running = true;
        self.background.set_retry(state);
        true
    }

    /// Tries to resume, and plans the next attempt if it fails.
    pub fn resume_by_itself(&self) {
        let Some(plan) = self.state.lock().auto_resume else { return };
        let has_space = !plan.for_space || self.has_space(self.bytes_to_resume());
        let resumed = if has_space { Some(self.resume()) } else { None };
        if let Some(Err(error)) = &resumed {
            log_line!(self.ctx, "resuming failed: {error}");
        }
        let mut state = self.state.lock();
        let now = self.ctx.env.clock.monotonic_nanos();
        let interval = self.ctx.options.bgerror_resume_retry_interval;
        let is_hard = state.severity == Some(Severity::Hard) && !state.shutting_down;
        let error = state.background_error.clone().filter(|_| is_hard);
        state.auto_resume = match (error, resumed) {
            (None, _) => None,
            (Some(_), None) => Some(plan.later(now)),
            (Some(error), Some(Err(_))) => plan.next(&error, now, interval),
            // It went well, and then something else failed.
            (Some(error), Some(Ok(()))) => {
                AutoResume::first(&error, now.saturating_add(interval.saturating_mul(1000)), i32::MAX)
            }
        };
        self.background.set_retry(&mut state);
        if state.auto_resume.is_none() {
            // Whoever waits for it may look again.
            self.state_changed.notify_all();
        }
    }

    /// True unless it is known that fewer than `bytes` can be written.
    pub fn has_space(&self, bytes: u64) -> bool {
        let dirs = [&self.ctx.path, &self.ctx.wal_dir];
        dirs.iter().all(|dir| match self.ctx.env.fs.free_space(dir) {
            Ok(Some(free)) => free >= bytes,
            // What cannot be asked is found out by trying.
            Ok(None) | Err(_) => true,
        })
    }

    /// Bytes that must be free to resume: what is in memory, at most the largest write buffer. Source: RocksDB
    /// `SstFileManagerImpl::ReserveDiskBuffer`, which always asks for that.
    fn bytes_to_resume(&self) -> u64 {
        let state = self.state.lock();
        let memtables = state.column_families.values().flat_map(|cf| {
            let sealed = cf.sealed.iter().map(|sealed| &sealed.memtable);
            sealed.chain([&cf.memtable]).filter(|memtable| !memtable.is_empty())
        });
        let in_memory: u64 = memtables.map(|memtable| memtable.memory_usage() as u64).sum();
        let sizes = state.column_families.values().map(|cf| cf.cf.options.load().write_buffer_size);
        in_memory.min(sizes.max().unwrap_or(0))
    }

    /// See [`crate::Db::resume`].
    pub fn resume(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.wait_for_failed_jobs();
        let mut core = self.write_core.lock();
        {
            let state = self.state.lock();
            match &state.background_error {
                None => return Ok(()),
                Some(error) if state.severity == Some(Severity::Unrecoverable) => return Err(error.clone()),
                Some(_) => {}
            }
            if state.shutting_down {
                return Err(Error::new(ErrorKind::ShutdownInProgress, "resume"));
            }
        }
        let resumed = self.start_anew(&mut core);
        self.state.lock().resuming = false;
        resumed?;
        self.write_refused.store(false, Ordering::Relaxed);
        log_line!(self.ctx, "resumed");
        Ok(())
    }

    fn start_anew(&self, core: &mut WriteCore) -> Result<()> {
        // Before the error is cleared: a job that starts then must not meet the files that failed.
        self.restart_manifest()?;
        self.remove_quarantined();
        self.replace_failed_wal(core)?;
        self.discard_unpublished(core)?;
        let ids = core.targets.ids();
        self.seal(core, &ids)?;
        {
            // In one step: were one column family flushed before the others were sealed, a batch could be in the tables of one
            // and nowhere of the other.
            let mut state = self.state.lock();
            (state.background_error, state.severity, state.resuming) = (None, None, true);
        }
        self.request_flush(&ids);
        self.wait_for_flush(&ids)?;
        self.leave_old_wals()
    }
}
