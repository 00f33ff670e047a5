//! The commit pipeline: one path for put, delete, merge and batch, and one failure rule.
//!
//! ```text
//! write -> lead, or wait in line (group.rs, contention.rs) -> lead:
//!          make room (room.rs, stall.rs, switch.rs) -> admit -> number -> WAL (wal.rs) -> memtables (batch/apply.rs) -> publish
//! ```
//! Failure rule: if the WAL append or sync fails, nothing of the group is visible, every member gets the
//! error, and the database refuses writes until resumed: whether the bytes reached the file is unknown. A panic of a
//! comparator or merge operator fails its group in the same way; `rollback.rs` takes back what is in memtables by then.
//!
//! Concurrency: [`WriteCore`] belongs to the leader. Publishing the last sequence number makes the whole
//! group visible to readers at once.

use super::contention::{self, Contended, contend};
use super::counts::{self, Counted};
use super::group::{Group, Request, Turn, WriteQueue, Writer};
use super::options::WriteOptions;
use super::stall_condition::StallCondition;
use super::targets::Targets;
use super::wal::{ClosedWals, Wal, recycled_wals};
use crate::batch::apply;
use crate::batch::codec::{self, Op, WriteBatch};
use crate::context::DbContext;
use crate::panic::{caught, panicked};
use crate::stats::DbStats;
use crate::version_set::VersionSet;
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_env::{IoKind, IoPriority};
use outcrop_monitor::{Asked, HistogramKind, PerfMetric, Ticker, Watch};
use parking_lot::{Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The parts that the leader of the write group owns.
pub struct WriteCore {
    /// The WAL being written.
    pub wal: Wal,
    /// The last sequence number given out.
    pub last_seq: SeqNum,
    /// Where records go.
    pub targets: Targets,
    /// A memtable is full: seal before the next group.
    pub seal_wanted: bool,
    /// Writes that are in no WAL since the last time everything was flushed.
    pub unlogged: bool,
    /// WALs that are not synced in whose place resuming has put another, oldest first, until what is in memory is in tables: it is in no other
    /// file that could be synced.
    pub replaced_wals: Vec<Wal>,
}

impl WriteCore {
    /// Hands what is buffered of WALs that are needed to the operating system.
    fn flush_wals(&mut self, ctx: &DbContext) -> Result<()> {
        self.flush_replaced_wals(ctx)?;
        self.wal.flush()
    }

    /// The same of those that resuming has replaced. One that failed is an error only where something waits in buffers.
    fn flush_replaced_wals(&mut self, ctx: &DbContext) -> Result<()> {
        if !ctx.options.manual_wal_flush {
            return Ok(());
        }
        self.replaced_wals.iter_mut().try_for_each(Wal::flush)
    }

    /// Makes the WALs durable that resuming has replaced. The MANIFEST does not track them: of one that failed nobody knows the end.
    fn sync_replaced_wals(&mut self, ctx: &DbContext) -> Result<()> {
        let mut unsynced = self.replaced_wals.iter_mut().filter(|wal| !wal.is_synced());
        unsynced.try_for_each(|wal| wal.sync(ctx))
    }

    /// Ends the WAL for good.
    ///
    /// # Errors
    /// Of that one, or with `manual_wal_flush` of one that resuming has replaced: what it buffered is lost.
    pub fn end_wals(&mut self, ctx: &DbContext) -> Result<()> {
        let replaced = self.flush_replaced_wals(ctx);
        self.wal.end().and(replaced)
    }
}

/// Commits write batches: the one way data gets into WAL and memtables.
pub struct CommitPipeline {
    pub(super) ctx: Arc<DbContext>,
    pub(super) versions: Arc<VersionSet>,
    pub(super) queue: WriteQueue,
    core: Mutex<WriteCore>,
    pub(super) closed_wals: Arc<ClosedWals>,
    /// Every write has to be in a WAL.
    needs_wal: bool,
    /// Counts the writes.
    pub stats: DbStats,
}

/// The facts for a check that may refuse a batch that is about to be committed.
#[derive(Clone, Copy, Debug)]
pub struct Committing {
    /// The last sequence number given out: everything up to it is in the memtables, and nothing follows before this group.
    pub last_seq: SeqNum,
}

impl CommitPipeline {
    /// A pipeline that goes on with `core`.
    pub fn new(versions: Arc<VersionSet>, closed_wals: Arc<ClosedWals>, core: WriteCore) -> CommitPipeline {
        let max_group_bytes = versions.ctx.options.kept.number("max_write_batch_group_size_bytes");
        let max_group_bytes = max_group_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        CommitPipeline {
            ctx: versions.ctx.clone(),
            needs_wal: recycled_wals(&versions.ctx.options) > 0,
            versions,
            queue: max_group_bytes.map_or_else(WriteQueue::default, WriteQueue::with_max_group_bytes),
            core: Mutex::new(core),
            closed_wals,
            stats: DbStats::default(),
        }
    }

    /// Excludes writers for as long as the guard lives.
    pub fn exclude_writers(&self) -> MutexGuard<'_, WriteCore> {
        self.core.lock()
    }

    /// Commits `batch`: atomically, in the order of arrival, visible to reads when it returns.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let stats = match self.ctx.monitor.asked() {
            Asked::Nobody => None,
            Asked::Counts(stats) => Some(stats),
            Asked::Times(_) | Asked::More => return self.write_measured(options, batch),
        };
        self.write_counted(options, batch, Counted { stats, watch: Watch::OFF })
    }

    /// [`CommitPipeline::write`], of which times are wanted.
    #[inline(never)]
    fn write_measured(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let Asked::Times(stats) = self.ctx.monitor.asked() else {
            let watching = self.ctx.monitor.begin();
            let watch = Watch::from(&watching);
            let timer = watch.stats_timer();
            let result = self.write_for_all(options, batch, watch.into());
            timer.micros(HistogramKind::DbWrite);
            return result;
        };
        let clock = &*self.ctx.monitor.clock;
        let began = clock.monotonic_nanos();
        let result = self.write_for_all(options, batch, Counted { stats: Some(stats), watch: Watch::OFF });
        let nanos = clock.monotonic_nanos().saturating_sub(began);
        stats.record_time(HistogramKind::DbWrite, nanos / 1000);
        result
    }

    #[inline(never)]
    fn write_for_all(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        counted: Counted<'_>,
    ) -> Result<()> {
        self.write_counted(options, batch, counted)
    }

    #[inline(always)]
    fn write_counted(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        counted: Counted<'_>,
    ) -> Result<()> {
        match self.check_options(options, batch.size_bytes()) {
            Ok(()) if self.queue.try_lead() => self.write_alone(options, batch, counted),
            Ok(()) => self.write_with_others(options, batch, counted),
            refused => refused,
        }
    }

    /// Commits `batch` while others write.
    #[inline(never)]
    fn write_with_others(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        counted: Counted<'_>,
    ) -> Result<()> {
        let clock = &*self.ctx.env.clock;
        let patience = match contend(&self.queue, options, clock) {
            Contended::Leads => {
                let result = self.write_alone(options, batch, counted);
                contention::ended(clock.monotonic_nanos());
                return result;
            }
            Contended::Waits { patience } => patience,
        };
        let request = Request { bytes: batch.take_bytes(), options: *options, alone: false };
        let turn = self.queue.wait_in_line(request, patience);
        contention::was_served();
        match turn {
            Turn::Done(result, bytes) => {
                batch.restore_bytes(bytes);
                result
            }
            Turn::Lead(mut own) => {
                let mut followers = self.queue.gather(&own);
                let result = self.lead_group(options, &mut own.bytes, &mut followers);
                for (writer, request) in followers {
                    writer.finish(result.clone(), request.bytes);
                }
                batch.restore_bytes(own.bytes);
                self.end_lead(options, batch.size_bytes());
                result
            }
        }
    }

    /// As [`CommitPipeline::write`], if `admit` lets the batch in. It is asked when there is room for the batch and no other write
    /// can come between, before anything of it is in the WAL, and must not write itself. The batch is in no group with others.
    ///
    /// # Errors
    /// The error of `admit`; then nothing was written, and others are not touched.
    pub fn write_if(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        admit: impl FnOnce(Committing) -> Result<()>,
    ) -> Result<()> {
        let watching = self.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        self.check_options(options, batch.size_bytes())?;
        let mut own = batch.take_bytes();
        // Looking again first, as a put does: a waiting writer that is alone cannot be served by another.
        if !self.queue.try_lead() && !self.queue.spin_for_lead() {
            let request = Request { bytes: own, options: *options, alone: true };
            match self.queue.wait_in_line(request, None) {
                Turn::Lead(request) => own = request.bytes,
                Turn::Done(result, bytes) => {
                    batch.restore_bytes(bytes);
                    return result;
                }
            }
        }
        // A panic of the application's: nothing was done yet that it could leave half done.
        let admit = |group| caught("admission", || admit(group));
        let result =
            self.catching_panics(|held| self.lead(options, &mut own, &mut [], admit, watch.into(), held));
        batch.restore_bytes(own);
        self.end_lead(options, batch.size_bytes());
        timer.micros(HistogramKind::DbWrite);
        result
    }

    /// Refuses what cannot be done, and lets a write of `bytes` wait that is content to.
    #[inline]
    pub(super) fn check_options(&self, options: &WriteOptions, bytes: usize) -> Result<()> {
        if options.disable_wal && self.needs_wal {
            // Sequence numbers that are in no WAL would part the recycled ones, see `switch_wal`.
            return Err(Error::invalid_argument(
                "WriteOptions::disableWAL option is not supported if DBOptions::recycle_log_file_num > 0",
            ));
        }
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument("Sync writes has to enable WAL."));
        }
        if options.rate_limiter_priority.is_some() || options.low_pri {
            return self.check_pace(options, bytes);
        }
        Ok(())
    }

    /// Commits `batch` in a group of its own. The caller leads, and does not after.
    #[inline]
    fn write_alone(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        counted: Counted<'_>,
    ) -> Result<()> {
        let mut own = batch.take_bytes();
        let result =
            self.catching_panics(|held| self.lead(options, &mut own, &mut [], anything, counted, held));
        batch.restore_bytes(own);
        self.end_lead(options, batch.size_bytes());
        result
    }

    /// Ends the caller's lead; others that called, or whose turn it is, are committed before, where that takes no longer than the commit.
    #[inline]
    pub(super) fn end_lead(&self, options: &WriteOptions, bytes: usize) {
        if !self.queue.try_end_lead() {
            self.end_lead_with_others(options, bytes);
        }
    }

    #[inline(never)]
    fn end_lead_with_others(&self, options: &WriteOptions, bytes: usize) {
        let commit = |group: &mut Group| {
            let ((_, first), others) = group.split_first_mut().expect("nobody commits nothing");
            self.lead_group(&first.options, &mut first.bytes, others)
        };
        // The caller's write is done: it is not to wait for room for others.
        let has_room = self.versions.stall.condition() == StallCondition::Normal;
        if self.queue.end_lead(options, bytes, has_room.then_some(commit)) {
            contention::step_back(self.ctx.env.clock.monotonic_nanos());
        }
    }

    /// Commits a group of several, or of others. The caller leads.
    #[inline(never)]
    fn lead_group(
        &self,
        options: &WriteOptions,
        own: &mut [u8],
        followers: &mut [(Arc<Writer>, Request)],
    ) -> Result<()> {
        let watching = self.ctx.monitor.begin();
        let counted = Watch::from(&watching).into();
        self.catching_panics(|held| self.lead(options, own, followers, anything, counted, held))
    }

    /// Has `commit` commit one group, and returns whatever happens: the caller owes its followers an answer, and the line a leader.
    /// The lock that `commit` puts into its argument is held until then.
    #[inline]
    pub(super) fn catching_panics<'s, T>(
        &'s self,
        commit: impl FnOnce(&mut Option<MutexGuard<'s, WriteCore>>) -> Result<T>,
    ) -> Result<T> {
        let mut held = None;
        // Work that a panic left half done is covered by the latched failure: `resume` puts it in order. Nobody has the lock in between,
        // who would seal the memtable as it is.
        let ended = catch_unwind(AssertUnwindSafe(|| commit(&mut held)));
        ended.unwrap_or_else(|panic| Err(self.versions.fail_writes(panicked("write", &*panic))))
    }

    /// Commits one group. The caller leads, and lets go of `held` when the group has ended, however.
    ///
    /// Inlined always: what is left for a group of one is a straight line.
    #[inline(always)]
    fn lead<'s>(
        &'s self,
        options: &WriteOptions,
        own: &mut [u8],
        followers: &mut [(Arc<Writer>, Request)],
        admit: impl FnOnce(Committing) -> Result<()>,
        counted: Counted<'_>,
        held: &mut Option<MutexGuard<'s, WriteCore>>,
    ) -> Result<()> {
        let watch = counted.watch;
        let timer = watch.perf_timer_without(counts::PARTS_OF_A_WRITE);
        let group_bytes = own.len() + followers.iter().map(|(_, r)| r.bytes.len()).sum::<usize>();
        let core = &mut **held.insert(self.core_with_room(options, group_bytes as u64)?);

        // Refused up to here: nothing has a number yet, and nobody else writes.
        admit(Committing { last_seq: core.last_seq })?;
        let first = core.last_seq.plus(1);
        let count = number_group(first, own, followers);
        // Taken before the WAL write: numbers of a group that fails may be in the file and are never reused.
        let last = SeqNum(first.plus(count).0 - 1);
        core.last_seq = last;
        if options.disable_wal {
            self.note_unlogged(core);
        } else {
            self.log_group(core, options, own, followers, count, counted)?;
        }
        let applying = watch.perf_timer();
        self.apply_group(&mut core.targets, own, followers)?;
        applying.nanos(PerfMetric::WriteMemtableTime);
        core.seal_wanted |= self.any_memtable_full(&mut core.targets);
        self.versions.publish(last);
        self.count_group(group_bytes, count, followers.len(), counted);
        timer.nanos(PerfMetric::WritePreAndPostProcessTime);
        Ok(())
    }

    /// Source: RocksDB `DBImpl::WriteImpl`.
    #[cold]
    fn check_pace(&self, options: &WriteOptions, bytes: usize) -> Result<()> {
        if let Some(priority) = options.rate_limiter_priority {
            if priority != IoPriority::User {
                return Err(Error::invalid_argument(
                    "WriteOptions::rate_limiter_priority only allows Env::IO_TOTAL and Env::IO_USER due to \
                     implementation constraints",
                ));
            }
            if options.disable_wal || self.ctx.options.manual_wal_flush {
                return Err(Error::invalid_argument(
                    "WriteOptions::rate_limiter_priority currently only supports rate-limiting automatic WAL flush, which \
                     requires `WriteOptions::disableWAL` and `DBOptions::manual_wal_flush` both set to false",
                ));
            }
        }
        if options.low_pri && self.versions.stall.falls_behind() {
            self.wait_behind(options, bytes)
        } else {
            Ok(())
        }
    }

    /// A write of low priority waits for tokens. Source: RocksDB `DBImpl::ThrottleLowPriWritesIfNeeded`.
    fn wait_behind(&self, options: &WriteOptions, bytes: usize) -> Result<()> {
        if options.no_slowdown {
            return Err(Error::new(ErrorKind::Incomplete, "Low priority write stall"));
        }
        let watching = self.ctx.monitor.begin();
        let timer = Watch::from(&watching).timer();
        let limiter = self.versions.stall.low_priority(&self.ctx.env.clock);
        limiter.request(bytes as u64, IoPriority::High, IoKind::Write);
        timer.perf_wait(PerfMetric::WriteDelayTime);
        Ok(())
    }

    /// A group is written without a WAL.
    #[inline]
    fn note_unlogged(&self, core: &mut WriteCore) {
        if !core.unlogged {
            core.unlogged = true;
            // Relaxed: readers learn of the group after this, by its number.
            self.ctx.has_unlogged.store(true, Ordering::Relaxed);
        }
    }

    /// Waits for tokens for a WAL record of `bytes`: once for the whole group, whose members all asked for that `priority`.
    /// Source: RocksDB `WriteGroupToWAL`, which writes the record at the leader's priority.
    #[cold]
    fn pace_record(&self, priority: IoPriority, bytes: u64) {
        if let Some(limiter) = &self.ctx.pacing.limiter {
            let observer = self.ctx.pacing.observer.iter();
            let granted = |granted| observer.clone().for_each(|observer| observer.granted(granted));
            limiter.request_observed(bytes, priority, IoKind::Write, &granted);
        }
    }

    /// Appends the group as one WAL record, and syncs if asked.
    #[inline]
    pub(super) fn log_group(
        &self,
        core: &mut WriteCore,
        options: &WriteOptions,
        own: &[u8],
        followers: &[(Arc<Writer>, Request)],
        count: u64,
        counted: Counted<'_>,
    ) -> Result<()> {
        let timer = counted.watch.perf_timer();
        let before = core.wal.len();
        if let Some(priority) = options.rate_limiter_priority {
            self.pace_record(priority, record_bytes(own, followers));
        }
        let appended = if followers.is_empty() {
            core.wal.append(&[own])
        } else {
            let mut header = [0u8; codec::HEADER_LEN];
            header[..8].copy_from_slice(&own[..8]);
            header[8..].copy_from_slice(&(count as u32).to_le_bytes());
            let mut parts: Vec<&[u8]> = Vec::with_capacity(followers.len() + 2);
            parts.push(&header);
            parts.push(&own[codec::HEADER_LEN..]);
            parts.extend(followers.iter().map(|(_, request)| &request.bytes[codec::HEADER_LEN..]));
            core.wal.append(&parts)
        };
        appended.map_err(|error| self.versions.fail_writes(error))?;
        self.ctx.background.defer_drop(core.wal.retired_window());
        self.stats.wal_bytes.add_single_writer(core.wal.len() - before);
        if options.sync {
            self.closed_wals
                .sync_and_track(&self.versions)
                .and_then(|()| core.wal.sync(&self.ctx))
                .map_err(|e| self.versions.fail_writes(e))?;
            self.stats.wal_syncs.add_single_writer(1);
        }
        if counted.is_on() {
            let bytes = record_bytes(own, followers);
            counts::logged(counted, timer, 1 + followers.len() as u64, bytes, options.sync);
        }
        Ok(())
    }

    /// Inserts the group's batches, in order.
    #[inline]
    fn apply_group(
        &self,
        targets: &mut Targets,
        own: &[u8],
        followers: &[(Arc<Writer>, Request)],
    ) -> Result<()> {
        let batches = std::iter::once(own).chain(followers.iter().map(|(_, request)| &request.bytes[..]));
        let first = codec::sequence_of(own);
        targets.begin_group();
        for bytes in batches {
            self.apply_batch(targets, bytes, codec::sequence_of(bytes), first)?;
        }
        Ok(())
    }

    /// Inserts one batch from number `seq` on, of the group that begins with number `first`.
    #[inline]
    pub(super) fn apply_batch(
        &self,
        targets: &mut Targets,
        bytes: &[u8],
        seq: SeqNum,
        first: SeqNum,
    ) -> Result<()> {
        apply::apply(bytes, seq, |id, seq, op| {
            let Some(target) = targets.written_by(first, id) else { return };
            if let Op::Merge { key, operand } = op
                && let Some(value) = self.merge_early(target, seq, key, operand)
            {
                return apply::insert(&target.memtable, seq, Op::Put { key, value: &value });
            }
            apply::insert(&target.memtable, seq, op);
        })
        .map(drop)
    }

    /// True if a memtable must be sealed before the next group. Asks for memory for the next one in time.
    #[inline]
    pub(super) fn any_memtable_full(&self, targets: &mut Targets) -> bool {
        let mut full = false;
        let managed = self.ctx.objects.write_buffer_manager.is_some();
        targets.end_group(|target| {
            if managed {
                target.memtable.count_memory();
            }
            full |= target.memtable.should_seal();
            if !target.next_prepared && target.memtable.is_nearly_full() {
                target.next_prepared = true;
                let size = target.cf.options.load().write_buffer_size;
                self.ctx.background.want_memtable(size);
            }
            if let Some(ahead) = target.memtable.prefault_range() {
                self.ctx.background.want_prefault(&target.memtable, ahead);
            }
        });
        full
    }

    #[inline(always)]
    pub(super) fn count_group(&self, bytes: usize, count: u64, followers: usize, counted: Counted<'_>) {
        self.stats.writes.add_single_writer(1 + followers as u64);
        self.stats.keys_written.add_single_writer(count);
        self.stats.bytes_written.add_single_writer(bytes as u64);
        self.stats.groups.add_single_writer(1);
        // Followers' headers are not written.
        let bytes = bytes - followers * codec::HEADER_LEN;
        counts::group(counted, 1 + followers as u64, count, bytes as u64);
    }

    /// Makes what the WALs were given so far durable, where it is not yet, while the caller excludes writers.
    pub fn sync_unsynced_excluded(&self, core: &mut WriteCore) -> Result<()> {
        let closed = self.closed_wals.sync_and_track(&self.versions);
        let synced =
            closed.and_then(|()| if core.wal.is_synced() { Ok(()) } else { core.wal.sync(&self.ctx) });
        synced.map_err(|error| self.versions.fail_writes(error))
    }

    /// Makes every WAL record written so far durable, also where a background error refuses more of them.
    pub fn sync_wal(&self) -> Result<()> {
        self.versions.refuse_if_read_only_or_closed()?;
        let mut core = self.core.lock();
        core.sync_replaced_wals(&self.ctx)
            .and_then(|()| self.closed_wals.sync_and_track(&self.versions))
            .and_then(|()| core.wal.sync(&self.ctx))
            .map_err(|error| self.versions.fail_writes(error))?;
        self.ctx.count(Ticker::WalFileSynced, 1);
        Ok(())
    }

    /// Hands WAL records buffered under `manual_wal_flush` to the operating system.
    pub fn flush_wal(&self) -> Result<()> {
        self.versions.refuse_if_read_only_or_closed()?;
        let mut core = self.core.lock();
        core.flush_wals(&self.ctx).map_err(|error| self.versions.fail_writes(error))
    }
}

/// Lets every group in.
#[inline]
fn anything(_: Committing) -> Result<()> {
    Ok(())
}

/// Bytes of the group's record: followers' headers are not written.
fn record_bytes(own: &[u8], followers: &[(Arc<Writer>, Request)]) -> u64 {
    if followers.is_empty() {
        return own.len() as u64;
    }
    let payload = followers.iter().map(|(_, request)| request.bytes.len() - codec::HEADER_LEN);
    (own.len() + payload.sum::<usize>()) as u64
}

/// Writes consecutive sequence numbers into the headers of the group's batches; returns the record count.
#[inline]
fn number_group(first: SeqNum, own: &mut [u8], followers: &mut [(Arc<Writer>, Request)]) -> u64 {
    let mut count = 0;
    let mut number = |bytes: &mut [u8]| {
        bytes[..8].copy_from_slice(&first.plus(count).0.to_le_bytes());
        count += u64::from(codec::count_of(bytes));
    };
    number(own);
    for (_, request) in followers {
        number(&mut request.bytes);
    }
    count
}

#[cfg(test)]
mod tests;
