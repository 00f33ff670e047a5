//! How a database stops: by an error, until it is resumed, or for good, when it is closed.
//!
//! Invariant: the first error stays until `resume`, which lets writes go on last of all.

use crate::db::DbInner;
use crate::info_log::log_line;
use crate::state::DbState;
use outcrop_base::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

impl DbInner {
    /// Latches a background error: the first one stays. Writers waiting for room are let go.
    pub fn set_background_error(&self, state: &mut DbState, error: Error) {
        if state.background_error.is_none() {
            log_line!(self.ctx, "writes stop: {error}");
            state.background_error = Some(error);
        }
        self.write_refused.store(true, Ordering::Relaxed);
        self.state_changed.notify_all();
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
        if self.lock.lock().is_none() {
            return Ok(());
        }
        let flushed = self.flush_unlogged();
        self.stop_background_work();
        self.background.join();
        self.note_options_if_outdated();
        let written = self.write_core.lock().wal.end();
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

    /// See [`crate::Db::resume`].
    pub fn resume(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.wait_for_failed_jobs();
        let mut core = self.write_core.lock();
        {
            let state = self.state.lock();
            match &state.background_error {
                None => return Ok(()),
                Some(error) if error.kind() == ErrorKind::Corruption => return Err(error.clone()),
                Some(_) => {}
            }
            if state.shutting_down {
                return Err(Error::new(ErrorKind::ShutdownInProgress, "resume"));
            }
        }
        // Before the error is cleared: a job that starts then must not meet the files that failed.
        self.restart_manifest()?;
        self.replace_failed_wal(&mut core)?;
        self.discard_unpublished(&mut core)?;
        self.state.lock().background_error = None;
        let ids = core.targets.ids();
        self.seal(&mut core, &ids)?;
        self.request_flush(&ids);
        self.wait_for_flush(&ids)?;
        self.leave_old_wals()?;
        self.write_refused.store(false, Ordering::Relaxed);
        log_line!(self.ctx, "resumed");
        Ok(())
    }
}
