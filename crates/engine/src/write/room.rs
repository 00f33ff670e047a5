//! Before a group is written: waiting while writes are slowed or stopped, and sealing memtables that are full.
//!
//! Invariant: nobody waits here with `write_core` held. A stop ends when a compaction or a flush does, which may be never:
//! meanwhile others flush, close, change options and column families. So after each wait everything is looked at anew.
//! The leader keeps its lead: other writers wait in line, or fail if they asked not to wait.
//! Source: RocksDB `db/db_impl/db_impl_write.cc`, `DelayWrite`; `db/write_thread.cc`, `BeginWriteStall`.

use super::stall::StallCondition;
use super::{WriteCore, WriteOptions};
use crate::context::closing_error;
use crate::db::DbInner;
use outcrop_base::{Error, ErrorKind, Result};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Shorter waits of slowed writers cost less than the sleep: they add up in the pacer and are slept off together.
const SHORTEST_SLEEP_NANOS: u64 = 200_000;
/// A slowed writer looks this often whether it still has to wait.
const SLEEP_SLICE_NANOS: u64 = 1_000_000;

impl DbInner {
    /// Takes `write_core` for a group of `bytes`, once there is room for it. The caller leads.
    ///
    /// # Errors
    /// The background error; ShutdownInProgress; Incomplete if it would wait and `options` say not to.
    #[inline]
    pub(super) fn core_with_room(
        &self,
        options: &WriteOptions,
        bytes: u64,
    ) -> Result<MutexGuard<'_, WriteCore>> {
        // HOLDS write_core across the WAL write, from here to the end of the group: it excludes who must exclude writers
        // (switch, create and drop of column families, resume).
        let core = self.write_core.lock();
        // Relaxed: set under the state lock before the failure is reported; a write that slips by fails on
        // its own or is as good as one that came before.
        let refused = self.write_refused.load(Ordering::Relaxed);
        if refused || core.seal_wanted || self.stall.condition() != StallCondition::Normal {
            return self.make_room(core, options, bytes);
        }
        Ok(core)
    }

    #[cold]
    fn make_room<'d>(
        &'d self,
        mut core: MutexGuard<'d, WriteCore>,
        options: &WriteOptions,
        bytes: u64,
    ) -> Result<MutexGuard<'d, WriteCore>> {
        let mut slowed = false;
        loop {
            if self.write_refused.load(Ordering::Relaxed) {
                drop(core);
                return Err(self.refusal());
            }
            match self.stall.condition() {
                StallCondition::Stopped => {
                    drop(core);
                    self.wait_until_not_stopped(options)?;
                    core = self.write_core.lock();
                }
                StallCondition::Delayed if !slowed => {
                    slowed = true;
                    let nanos = self.stall.delay_nanos(bytes, self.ctx.env.clock.monotonic_nanos());
                    if nanos > 0 {
                        drop(core);
                        self.sleep_slowed(options, nanos)?;
                        core = self.write_core.lock();
                    }
                }
                _ if core.seal_wanted => self.seal_full_memtables(&mut core)?,
                _ => return Ok(core),
            }
        }
    }

    /// Waits `nanos`, or until writes are not slowed any more.
    fn sleep_slowed(&self, options: &WriteOptions, nanos: u64) -> Result<()> {
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "writes are slowed (no_slowdown is set)"));
        }
        if nanos < SHORTEST_SLEEP_NANOS {
            return Ok(());
        }
        let _stalled = Stalled::new(self);
        let mut left = nanos;
        while left > 0
            && self.stall.condition() == StallCondition::Delayed
            && !self.write_refused.load(Ordering::Relaxed)
        {
            let slice = left.min(SLEEP_SLICE_NANOS);
            self.ctx.env.clock.sleep(Duration::from_nanos(slice));
            left -= slice;
        }
        self.stats.stall_micros.add((nanos - left) / 1000);
        Ok(())
    }

    #[cold]
    fn wait_until_not_stopped(&self, options: &WriteOptions) -> Result<()> {
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "writes are stopped (no_slowdown is set)"));
        }
        let _stalled = Stalled::new(self);
        let start = self.ctx.env.clock.monotonic_nanos();
        let mut state = self.state.lock();
        while self.stall.condition() == StallCondition::Stopped {
            if let Some(error) = &state.background_error {
                return Err(error.clone());
            }
            if state.shutting_down {
                return Err(closing_error());
            }
            self.state_changed.wait(&mut state);
        }
        self.stats.stall_micros.add((self.ctx.env.clock.monotonic_nanos() - start) / 1000);
        Ok(())
    }
}

/// While it lives the leader waits for room, and whoever asked not to wait does not stand in line after it.
struct Stalled<'d>(&'d DbInner);

impl<'d> Stalled<'d> {
    fn new(db: &'d DbInner) -> Stalled<'d> {
        db.write_queue.begin_stall();
        Stalled(db)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.write_queue.end_stall();
    }
}
