//! Errors that no caller can answer for: latching them, and when what failed is tried again.
//!
//! ```text
//! error -> latched with its severity (background_errors.rs) -> writes refused, no job starts
//!       -> the error may pass: a thread of the lane for resuming tries, at once and then from time to time (stopping.rs)
//! ```
//! Invariant: the worst error stays until the database resumes, which lets writes go on last of all. LOG is written
//! after the state was unlocked.

use crate::background_errors::{
    AutoResume, COMPACTION_PAUSE, CompactionPause, Reason, SPACE_POLL, Severity, StoppedWrites, severity,
};
use crate::context::closing_error;
use crate::events::Event;
use crate::events::reasons::BackgroundErrorReason;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::state::DbState;
use crate::version_set::VersionSet;
use outcrop_base::{Error, ErrorKind};
use outcrop_env::scheduler::Lane;
use outcrop_monitor::{Ticker, Watch};
use std::time::Duration;

/// How soon an attempt to resume is looked for again if no thread could be started for it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl VersionSet {
    /// Latches `error`: writes are refused from here on until resumed.
    pub fn fail_writes(&self, error: Error) -> Error {
        self.fail_writes_of(BackgroundErrorReason::WriteCallback, error)
    }

    /// The same where not the WAL met it. Listeners are told, and cannot take it away: the tail of the file is unknown.
    fn fail_writes_of(&self, reason: BackgroundErrorReason, error: Error) -> Error {
        let stopped = self.stop_writes_untold(reason, error);
        self.tell_stopped(stopped)
    }

    /// Latches `error`, which listeners are yet to be told of with [`VersionSet::tell_stopped`]: a lock is held that they may need.
    pub fn stop_writes_untold(&self, reason: BackgroundErrorReason, error: Error) -> StoppedWrites {
        let severity = severity(Reason::Write, &error, self.ctx.options.paranoid_checks);
        let is_new = self.ctx.listens() && self.note_told(&error);
        let latched =
            severity > Severity::Soft && self.latch(&mut self.state.lock(), severity, reason, &error);
        if latched {
            self.count_error(severity, &error);
        }
        StoppedWrites { reason, error, is_new, latched: latched.then_some(severity) }
    }

    /// Tells LOG and listeners what stopped writes.
    pub fn tell_stopped(&self, stopped: StoppedWrites) -> Error {
        let StoppedWrites { reason, error, is_new, latched } = stopped;
        if let Some(severity) = latched {
            self.note_stopped(severity, &error);
        }
        if is_new {
            self.ctx.tell(Event::BackgroundError(reason, &mut Some(error.clone())));
        }
        error
    }

    /// Notes that listeners are told of `error`; false if they were already.
    fn note_told(&self, error: &Error) -> bool {
        let mut state = self.state.lock();
        let is_new = !state.told_errors.iter().any(|told| told.is_same(error));
        if is_new {
            state.told_errors.push(error.clone());
        }
        is_new
    }

    /// Notes in LOG that `what` failed, and stops what has to stop. `None` if the database closes or the column family was
    /// dropped: that is no failure.
    pub fn report_failure(&self, reason: Reason, what: &str, error: &Error) -> Option<Severity> {
        log_at!(self.ctx, LogLevel::Error, "{what} failed: {error}");
        if matches!(error.kind(), ErrorKind::ShutdownInProgress | ErrorKind::ColumnFamilyDropped) {
            return None;
        }
        if self.is_taken_away(reason, error) {
            log_line!(self.ctx, "{what}: a listener took the error away");
            return Some(Severity::Soft);
        }
        let counted = {
            let mut state = self.state.lock();
            state.background_errors += 1;
            state.background_error.as_ref().is_some_and(|latched| latched.is_same(error))
        };
        let severity = severity(reason, error, self.ctx.options.paranoid_checks);
        if !counted {
            self.count_error(severity, error);
        }
        self.stop_writes(severity, reason.into(), error);
        Some(severity)
    }

    /// An error was met that no caller can answer for. "Retryable" are those of IO that the database gets over by itself.
    fn count_error(&self, severity: Severity, error: &Error) {
        let watching = self.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        watch.count(Ticker::ErrorHandlerBgErrorCount, 1);
        if matches!(error.kind(), ErrorKind::IoError | ErrorKind::NoSpace) {
            watch.count(Ticker::ErrorHandlerBgIoErrorCount, 1);
            watch.count(Ticker::ErrorHandlerBgRetryableIoErrorCount, u64::from(severity <= Severity::Hard));
        }
    }

    /// Tells listeners of `error` unless they were told where it was met; true if one of them took it away.
    fn is_taken_away(&self, reason: Reason, error: &Error) -> bool {
        let told = |told: &Error| told.is_same(error);
        if !self.ctx.listens() || self.state.lock().told_errors.iter().any(told) {
            return false;
        }
        let mut status = Some(error.clone());
        self.ctx.tell(Event::BackgroundError(reason.into(), &mut status));
        status.is_none()
    }

    fn stop_writes(&self, severity: Severity, reason: BackgroundErrorReason, error: &Error) {
        if severity > Severity::Soft && self.latch(&mut self.state.lock(), severity, reason, error) {
            self.note_stopped(severity, error);
        }
    }

    /// After the lock: see `DbState`.
    fn note_stopped(&self, severity: Severity, error: &Error) {
        log_at!(self.ctx, LogLevel::Error, "writes stop ({severity:?}): {error}");
    }

    /// The error that writes stop with, if tables take all the space that they may and no listener takes the error away. For a flush
    /// that has written its tables: listeners are told while nothing is locked, and before anything stops.
    pub fn space_error(&self) -> Option<Error> {
        let error = self.ctx.check_space().err()?;
        if self.is_taken_away(Reason::Flush, &error) {
            log_line!(self.ctx, "flush: a listener took the error away: {error}");
            return None;
        }
        Some(error)
    }

    /// Stops writes with what [`VersionSet::space_error`] gave.
    pub fn stop_writes_without_space(&self, state: &mut DbState, error: &Error) {
        state.background_errors += 1;
        self.latch(state, Severity::Hard, BackgroundErrorReason::Flush, error);
    }

    /// Makes `error` the background error, if there is none as bad. Writers waiting for room are let go.
    fn latch(
        &self,
        state: &mut DbState,
        severity: Severity,
        reason: BackgroundErrorReason,
        error: &Error,
    ) -> bool {
        self.refuse_writes(true);
        self.state_changed.notify_all();
        if state.background_error.is_some() && state.severity.is_none_or(|held| held >= severity) {
            return false;
        }
        state.background_error = Some(error.clone());
        state.severity = Some(severity);
        if severity > Severity::Hard {
            // Only the application can resume, even if the attempt that is running ended without saying so: by a panic.
            state.auto_resume = None;
        } else if let Some(resume) = state.auto_resume.as_mut().filter(|resume| resume.running) {
            // The attempt that is running plans the next one when it ends.
            resume.reason = reason;
        } else {
            let now = self.ctx.env.clock.monotonic_nanos();
            let attempts = self.ctx.options.max_bgerror_resume_count;
            if state.auto_resume.is_none() {
                state.auto_resume = AutoResume::first(reason, error, now, attempts);
                let planned = u64::from(state.auto_resume.is_some());
                Watch::from(&self.ctx.monitor.begin()).count(Ticker::ErrorHandlerAutoresumeCount, planned);
            }
        }
        self.plan_retry(state);
        true
    }

    /// The error a refused write gets; `None` if the database has resumed meanwhile, or is about to, which excludes writers until it has.
    pub fn refusal(&self) -> Option<Error> {
        let state = self.state.lock();
        match &state.background_error {
            Some(error) => Some(error.clone()),
            None if state.resuming || !self.refuses_writes() => None,
            None => Some(closing_error()),
        }
    }

    /// Waits for the jobs that were running when an error stopped everything; none starts before it is cleared. The one
    /// that failed says so once more when it ends: if the error were cleared before, that would stop writes again.
    pub fn wait_for_failed_jobs(&self) {
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
        self.plan_retry(state);
        true
    }

    /// True unless it is known that fewer than `bytes` can be written.
    pub fn has_space(&self, bytes: u64) -> bool {
        if self.ctx.check_space().is_err() {
            return false;
        }
        let dirs = [&self.ctx.path, &self.ctx.wal_dir];
        dirs.iter().all(|dir| match self.ctx.env.fs.free_space(dir) {
            Ok(Some(free)) => free >= bytes,
            // Where the file system does not say, the attempt to resume shows it.
            Ok(None) | Err(_) => true,
        })
    }

    /// Bytes that must be free to resume: what is in memory, at most the largest write buffer. Source: RocksDB
    /// `SstFileManagerImpl::ReserveDiskBuffer`, which always asks for that.
    pub fn bytes_to_resume(&self) -> u64 {
        let state = self.state.lock();
        let memtables = state.column_families.values().flat_map(|cf| {
            let sealed = cf.sealed.iter().map(|sealed| &sealed.memtable);
            sealed.chain([&cf.memtable]).filter(|memtable| !memtable.is_empty())
        });
        let in_memory: u64 = memtables.map(|memtable| memtable.memory_usage() as u64).sum();
        let sizes = state.column_families.values().map(|cf| cf.cf.options.load().write_buffer_size);
        in_memory.min(sizes.max().unwrap_or(0))
    }

    /// Automatic compactions rest after one of `input_bytes` has failed with `error`.
    pub fn pause_compactions(&self, error: &Error, input_bytes: u64) {
        let now = self.ctx.env.clock.monotonic_nanos();
        let mut state = self.state.lock();
        state.compaction_pause = Some(CompactionPause::after(error, input_bytes, now));
        self.plan_retry(&mut state);
    }

    /// Flushes rest for a while after one has failed with an error that a listener took away.
    pub fn pause_flushes(&self) {
        let mut state = self.state.lock();
        state.flush_pause = Some(self.ctx.env.clock.monotonic_nanos() + COMPACTION_PAUSE.as_nanos() as u64);
        self.plan_retry(&mut state);
    }

    /// Flushes and compactions rest for a while after a panic outside of a job that a listener took away: picking the same again
    /// would fail again at once.
    pub fn pause_picking(&self) {
        self.pause_flushes();
        let now = self.ctx.env.clock.monotonic_nanos();
        let mut state = self.state.lock();
        state.compaction_pause = Some(CompactionPause::after_picking(now));
        self.plan_retry(&mut state);
    }

    /// Has upkeep look at what failed when time has come.
    pub fn plan_retry(&self, state: &mut DbState) {
        let resume = state.auto_resume.filter(|resume| !resume.running).map(|resume| resume.due_nanos);
        let pause = state.compaction_pause.map(|pause| pause.until_nanos);
        let next =
            resume.into_iter().chain(pause).chain(state.flush_pause).min().map_or(0, |nanos| nanos.max(1));
        self.ctx.background.set_retry(next);
    }

    /// Lets what failed be tried again, if time has come and there is the space for it.
    pub fn look_for_retry(&self) {
        let now = self.ctx.env.clock.monotonic_nanos();
        let pause = self.state.lock().compaction_pause.filter(|pause| pause.until_nanos <= now);
        let may_go_on = pause.is_some_and(|pause| self.has_space(pause.needed_bytes));
        let mut state = self.state.lock();
        if let Some(pause) = pause.filter(|pause| state.compaction_pause == Some(*pause)) {
            state.compaction_pause = match may_go_on {
                true => None,
                false => Some(CompactionPause { until_nanos: now + SPACE_POLL.as_nanos() as u64, ..pause }),
            };
            self.wake(&mut state);
        }
        if state.flush_pause.is_some_and(|until| until <= now) {
            state.flush_pause = None;
            self.wake(&mut state);
        }
        self.plan_retry(&mut state);
        if state.auto_resume.is_some_and(|resume| !resume.running && resume.due_nanos <= now) {
            // Set again by whoever takes it; if no thread could be started, it is tried once more.
            self.ctx.background.set_retry(now + LOOK_AGAIN.as_nanos() as u64);
            self.ctx.background.wake_lane(Lane::Resume);
        }
    }
}

#[cfg(test)]
mod tests;
