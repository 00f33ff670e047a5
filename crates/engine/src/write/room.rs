//! Before a group is written: waiting while writes are slowed or stopped, and sealing memtables that are full.
//!
//! Invariant: nobody waits here with `CommitPipeline::core` held. A stop ends when a compaction or a flush does, which may be never:
//! meanwhile others flush, close, change options and column families. So after each wait everything is looked at anew.
//! The leader keeps its lead: other writers wait in line, or fail if they asked not to wait.
//! Source: RocksDB `db/db_impl/db_impl_write.cc`, `DelayWrite`; `db/write_thread.cc`, `BeginWriteStall`.

use super::counts;
use super::group::WriteQueue;
use super::options::WriteOptions;
use super::pipeline::{CommitPipeline, WriteCore};
use super::stall_condition::StallCondition;
use crate::write_buffer_manager::WriteBufferManager;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_monitor::{PerfMetric, Watch};
use parking_lot::MutexGuard;
use std::time::Duration;

/// Shorter waits of slowed writers cost less than the sleep: they add up in the pacer and are slept off together.
const SHORTEST_SLEEP_NANOS: u64 = 200_000;
/// A slowed writer looks this often whether it still has to wait.
const SLEEP_SLICE_NANOS: u64 = 1_000_000;

impl CommitPipeline {
    /// Takes `CommitPipeline::core` for a group of `bytes`, once there is room for it. The caller leads.
    ///
    /// # Errors
    /// The background error; ShutdownInProgress; Incomplete if it would wait and `options` say not to; Aborted if a memory budget has no room.
    #[inline]
    pub(super) fn core_with_room(
        &self,
        options: &WriteOptions,
        bytes: u64,
    ) -> Result<MutexGuard<'_, WriteCore>> {
        // HOLDS CommitPipeline::core across the WAL write, from here to the end of the group: it excludes who must exclude writers
        // (switch, create and drop of column families, resume).
        let core = self.exclude_writers();
        let refused = self.versions.refuses_writes();
        if refused
            || core.seal_wanted
            || self.versions.stall.condition() != StallCondition::Normal
            || self.is_short_of_memory(bytes)
        {
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
        let (mut slowed, mut flushed) = (false, false);
        let mut held = HeldBack { commit: self, micros: 0 };
        loop {
            if self.versions.refuses_writes() {
                // Resuming waits for the lock, and may be over before the error is read.
                drop(core);
                if let Some(error) = self.versions.refusal() {
                    return Err(error);
                }
                core = self.exclude_writers();
                continue;
            }
            match self.versions.stall.condition() {
                StallCondition::Stopped => {
                    drop(core);
                    self.wait_until_not_stopped(options, &mut held)?;
                    core = self.exclude_writers();
                }
                StallCondition::Delayed if !slowed => {
                    slowed = true;
                    let nanos = self.versions.stall.delay_nanos(bytes, self.ctx.env.clock.monotonic_nanos());
                    if nanos > 0 {
                        drop(core);
                        self.sleep_slowed(options, nanos, &mut held)?;
                        core = self.exclude_writers();
                    }
                }
                _ if core.seal_wanted => self.seal_full_memtables(&mut core)?,
                _ => match &self.ctx.objects.write_buffer_manager {
                    Some(manager) if manager.is_too_large(bytes) => {
                        let most = manager.largest_write();
                        return Err(Error::new(
                            ErrorKind::Aborted,
                            format!(
                                "Memory limit reached: a write of {bytes} bytes, memory_budget allows {most}"
                            ),
                        ));
                    }
                    Some(manager) if !flushed && manager.should_flush() => {
                        flushed = true;
                        let over_limit = manager.mutable_memtable_memory_usage() > manager.buffer_size();
                        self.flush_oldest_memtable(&mut core, over_limit)?;
                    }
                    Some(manager) if manager.should_stall() => {
                        drop(core);
                        self.wait_for_memory(options, manager)?;
                        core = self.exclude_writers();
                    }
                    _ => return Ok(core),
                },
            }
        }
    }

    /// True if memtables of all databases that share a manager take too much, or would with `bytes` more.
    #[inline]
    fn is_short_of_memory(&self, bytes: u64) -> bool {
        let manager = self.ctx.objects.write_buffer_manager.as_ref();
        manager.is_some_and(|manager| {
            manager.should_flush() || manager.should_stall() || manager.is_too_large(bytes)
        })
    }

    /// Within a memory budget: flushes memtables if those of all databases that share it take too much, though nobody writes to this one.
    ///
    /// # Errors
    /// As of writing.
    pub fn flush_for_others(&self) -> Result<()> {
        let Some(manager) = &self.ctx.objects.write_buffer_manager else { return Ok(()) };
        if self.versions.refuses_writes() {
            return Ok(());
        }
        if manager.should_stall() {
            self.give_up_memory();
        }
        match manager.should_flush() {
            true => {
                let mut core = self.exclude_writers();
                // A group may have failed meanwhile.
                if self.versions.refuses_writes() {
                    return Ok(());
                }
                self.flush_oldest_memtable(&mut core, false)
            }
            false => Ok(()),
        }
    }

    /// Within a memory budget whose writers wait: flushes memtables that wait for others to be flushed with, and drops those that are
    /// flushed and kept for transactions.
    fn give_up_memory(&self) {
        if self.ctx.objects.memory_budget.is_none() {
            return;
        }
        let mut state = self.versions.state.lock();
        for cf in state.column_families.values_mut() {
            cf.flush_requested |= !cf.sealed.is_empty();
            cf.drop_history();
        }
        self.versions.wake(&mut state);
    }

    /// Waits until memtables were dropped, this database's or others'.
    fn wait_for_memory(&self, options: &WriteOptions, manager: &WriteBufferManager) -> Result<()> {
        self.stats.memory_stops.add(1);
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "Write stall"));
        }
        self.give_up_memory();
        let _stalled = Stalled::new(&self.queue);
        let start = self.ctx.env.clock.monotonic_nanos();
        let waited = manager.wait_for_memory(|| self.versions.refuses_writes());
        self.stats.stall_micros.add((self.ctx.env.clock.monotonic_nanos() - start) / 1000);
        waited
    }

    /// Waits `nanos`, or until writes are not slowed any more.
    fn sleep_slowed(&self, options: &WriteOptions, nanos: u64, held: &mut HeldBack<'_>) -> Result<()> {
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "Write stall"));
        }
        if nanos < SHORTEST_SLEEP_NANOS {
            return Ok(());
        }
        let watching = self.ctx.monitor.begin();
        let timer = Watch::from(&watching).timer();
        let _stalled = Stalled::new(&self.queue);
        let mut left = nanos;
        while left > 0
            && self.versions.stall.condition() == StallCondition::Delayed
            && !self.versions.refuses_writes()
        {
            let slice = left.min(SLEEP_SLICE_NANOS);
            self.ctx.env.clock.sleep(Duration::from_nanos(slice));
            left -= slice;
        }
        held.micros += (nanos - left) / 1000;
        timer.perf_wait(PerfMetric::WriteDelayTime);
        Ok(())
    }

    #[cold]
    fn wait_until_not_stopped(&self, options: &WriteOptions, held: &mut HeldBack<'_>) -> Result<()> {
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "Write stall"));
        }
        let watching = self.ctx.monitor.begin();
        let timer = Watch::from(&watching).timer();
        let _stalled = Stalled::new(&self.queue);
        let start = self.ctx.env.clock.monotonic_nanos();
        let mut state = self.versions.state.lock();
        let mut working = Ok(());
        while working.is_ok() && self.versions.stall.condition() == StallCondition::Stopped {
            working = state.check_working();
            if working.is_ok() {
                self.versions.state_changed.wait(&mut state);
            }
        }
        drop(state);
        held.micros += (self.ctx.env.clock.monotonic_nanos() - start) / 1000;
        timer.perf_wait(PerfMetric::WriteDelayTime);
        working
    }
}

/// For how long one write was slowed and stopped: counted once, when it goes on or fails.
struct HeldBack<'d> {
    commit: &'d CommitPipeline,
    micros: u64,
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        if self.micros > 0 {
            self.commit.stats.stall_micros.add(self.micros);
            let watching = self.commit.ctx.monitor.begin();
            counts::stalled(Watch::from(&watching), self.micros);
        }
    }
}

/// While it lives the leader waits for room, and whoever asked not to wait does not stand in line after it.
struct Stalled<'d>(&'d WriteQueue);

impl<'d> Stalled<'d> {
    fn new(queue: &'d WriteQueue) -> Stalled<'d> {
        queue.begin_stall();
        Stalled(queue)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.end_stall();
    }
}
