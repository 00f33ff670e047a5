//! The write path: one path for put, delete, merge and batch, and one failure rule.
//!
//! ```text
//! write -> lead, or wait in line (group.rs, contention.rs) -> lead:
//!          make room (room.rs, stall.rs, switch.rs) -> number -> WAL (wal.rs) -> memtables (apply.rs) -> publish
//! ```
//! Failure rule: if the WAL append or sync fails, nothing of the group is visible, every member gets the
//! error, and the database refuses writes until resumed: whether the bytes reached the file is unknown. A panic of a
//! comparator or merge operator fails its group in the same way; `rollback.rs` takes back what is in memtables by then.
//!
//! Concurrency: [`WriteCore`] belongs to the leader. Publishing the last sequence number makes the whole
//! group visible to readers at once.

pub mod apply;
pub mod batch;
mod contention;
mod early_merge;
pub mod group;
mod rollback;
mod room;
pub mod save_point;
pub mod stall;
pub mod switch;
mod targets;
pub mod wal;

pub use batch::{Op, WriteBatch};
pub use targets::{Target, Targets};

use crate::background::panicked;
use crate::db::DbInner;
use crate::state::DbState;
use contention::Contended;
use group::{Group, Request, Turn, Writer};
use outcrop_base::{Error, Result, SeqNum};
use stall::StallCondition;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::{Wal, recycled_wals};

/// How one write is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The write is durable when the call returns: its WAL record was synced. Otherwise it survives a
    /// crash of the process but perhaps not of the machine. Default false.
    pub sync: bool,
    /// The write skips the WAL and is lost in a crash before its memtable is flushed. Default false.
    pub disable_wal: bool,
    /// Fail with Incomplete rather than wait when writes are slowed or stopped. Default false.
    pub no_slowdown: bool,
}

/// What the leader of the write group owns.
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
}

thread_local! {
    /// The batch single puts and deletes are encoded in, reused by its thread.
    static SCRATCH: Cell<Option<WriteBatch>> = const { Cell::new(None) };
}

/// Scratch batches that grew beyond this are not kept.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

/// Runs `fill` on this thread's scratch batch, then `commit`.
pub fn with_scratch_batch(
    fill: impl FnOnce(&mut WriteBatch),
    commit: impl FnOnce(&mut WriteBatch) -> Result<()>,
) -> Result<()> {
    let mut batch = SCRATCH.take().unwrap_or_default();
    batch.clear();
    fill(&mut batch);
    let result = commit(&mut batch);
    if batch.size_bytes() <= SCRATCH_KEPT_BYTES {
        SCRATCH.set(Some(batch));
    }
    result
}

impl DbInner {
    /// Commits `batch`: atomically, in the order of arrival, visible to reads when it returns.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        if options.disable_wal && recycled_wals(&self.ctx.options) > 0 {
            // Sequence numbers that are in no WAL would part the recycled ones, see `switch_wal`.
            return Err(Error::invalid_argument("disable_wal does not go with recycle_log_file_num"));
        }
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument("sync writes have to enable the WAL"));
        }
        if self.write_queue.try_lead() {
            return self.write_alone(options, batch);
        }
        let patience = match self.contend(options) {
            Contended::Leads => return self.write_alone(options, batch),
            Contended::Waits { patience } => patience,
        };
        let request = Request { bytes: batch.take_bytes(), options: *options };
        let turn = self.write_queue.wait_in_line(request, patience);
        contention::was_served();
        match turn {
            Turn::Done(result, bytes) => {
                batch.restore_bytes(bytes);
                result
            }
            Turn::Lead(mut own) => {
                let mut followers = self.write_queue.gather(&own);
                let result = self.lead_unharmed(options, &mut own.bytes, &mut followers);
                for (writer, request) in followers {
                    writer.finish(result.clone(), request.bytes);
                }
                batch.restore_bytes(own.bytes);
                self.end_lead(options);
                result
            }
        }
    }

    /// Commits `batch` in a group of its own. The caller leads, and does not after.
    #[inline]
    fn write_alone(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        let mut own = batch.take_bytes();
        let result = self.lead_unharmed(options, &mut own, &mut []);
        batch.restore_bytes(own);
        self.end_lead(options);
        result
    }

    /// Ends the caller's lead; others that called are committed before, where that takes no longer than the commit.
    #[inline]
    fn end_lead(&self, options: &WriteOptions) {
        let commit = |group: &mut Group| {
            let ((_, first), others) = group.split_first_mut().expect("nobody commits nothing");
            self.lead_unharmed(&first.options, &mut first.bytes, others)
        };
        // The caller's write is done: it is not to wait for room for others.
        let has_room = self.stall.condition() == StallCondition::Normal;
        if self.write_queue.end_lead(options, has_room.then_some(commit)) {
            contention::step_back(self.ctx.env.clock.monotonic_nanos());
        }
    }

    /// Commits one group, and comes back whatever happens: the caller owes its followers an answer, and the line a leader.
    #[inline]
    fn lead_unharmed(
        &self,
        options: &WriteOptions,
        own: &mut [u8],
        followers: &mut [(Arc<Writer>, Request)],
    ) -> Result<()> {
        // What a panic leaves half done is behind the failure that is latched: `resume` puts it in order.
        let ended = catch_unwind(AssertUnwindSafe(|| self.lead(options, own, followers)));
        ended.unwrap_or_else(|panic| Err(self.fail_writes(panicked("write", &*panic))))
    }

    /// Commits one group. The caller leads.
    fn lead(
        &self,
        options: &WriteOptions,
        own: &mut [u8],
        followers: &mut [(Arc<Writer>, Request)],
    ) -> Result<()> {
        let group_bytes = own.len() + followers.iter().map(|(_, r)| r.bytes.len()).sum::<usize>();
        let mut core = self.core_with_room(options, group_bytes as u64)?;

        // Whoever is not to be committed is refused up to here: nothing has a number yet, and nobody else writes.
        let first = core.last_seq.plus(1);
        let count = number_group(first, own, followers);
        // Taken before the WAL write: numbers of a group that fails may be in the file and are never reused.
        let last = SeqNum(first.plus(count).0 - 1);
        core.last_seq = last;
        if options.disable_wal {
            core.unlogged = true;
        } else {
            self.log_group(&mut core, options, own, followers, count)?;
        }
        self.apply_group(&mut core.targets, own, followers)?;
        core.seal_wanted |= self.any_memtable_full(&mut core.targets);
        // Release: pairs with the Acquire in visible_seq(); publishes the memtable entries of the group.
        self.visible_seq.store(last.0, Ordering::Release);
        self.count_group(group_bytes, count, followers.len());
        Ok(())
    }

    /// Appends the group as one WAL record, and syncs if asked.
    #[inline]
    fn log_group(
        &self,
        core: &mut WriteCore,
        options: &WriteOptions,
        own: &[u8],
        followers: &[(Arc<Writer>, Request)],
        count: u64,
    ) -> Result<()> {
        let before = core.wal.len();
        let appended = if followers.is_empty() {
            core.wal.append(&[own])
        } else {
            let mut header = [0u8; batch::HEADER_LEN];
            header[..8].copy_from_slice(&own[..8]);
            header[8..].copy_from_slice(&(count as u32).to_le_bytes());
            let mut parts: Vec<&[u8]> = Vec::with_capacity(followers.len() + 2);
            parts.push(&header);
            parts.push(&own[batch::HEADER_LEN..]);
            parts.extend(followers.iter().map(|(_, request)| &request.bytes[batch::HEADER_LEN..]));
            core.wal.append(&parts)
        };
        appended.map_err(|error| self.fail_writes(error))?;
        self.background.let_go(core.wal.passed_memory());
        self.stats.wal_bytes.add_single_writer(core.wal.len() - before);
        if options.sync {
            self.sync_closed_wals()
                .and_then(|()| core.wal.sync(&self.ctx))
                .map_err(|e| self.fail_writes(e))?;
            self.stats.wal_syncs.add_single_writer(1);
        }
        Ok(())
    }

    /// Inserts the group's batches, in order.
    fn apply_group(
        &self,
        targets: &mut Targets,
        own: &[u8],
        followers: &[(Arc<Writer>, Request)],
    ) -> Result<()> {
        let batches = std::iter::once(own).chain(followers.iter().map(|(_, request)| &request.bytes[..]));
        let first = batch::sequence_of(own);
        targets.begin_group();
        for bytes in batches {
            apply::apply(bytes, batch::sequence_of(bytes), |id, seq, op| {
                let Some(target) = targets.written_by(first, id) else { return };
                if let Op::Merge { key, operand } = op
                    && let Some(value) = self.merge_early(target, seq, key, operand)
                {
                    return apply::insert(&target.memtable, seq, Op::Put { key, value: &value });
                }
                apply::insert(&target.memtable, seq, op);
            })?;
        }
        Ok(())
    }

    /// True if a memtable must be sealed before the next group. Asks for memory for the next one in time.
    #[inline]
    fn any_memtable_full(&self, targets: &mut Targets) -> bool {
        let mut full = false;
        let limit = self.ctx.options.db_write_buffer_size;
        targets.end_group(limit > 0, |target| {
            full |= target.memtable.should_seal();
            if !target.next_prepared && target.memtable.is_nearly_full() {
                target.next_prepared = true;
                let size = target.cf.options.load().write_buffer_size;
                self.ask_upkeep(|state| state.memtables_wanted.push(size));
            }
            if let Some(ahead) = target.memtable.memory_ahead() {
                let memtable = Arc::downgrade(&target.memtable);
                self.ask_upkeep(|state| state.memory_wanted.push((memtable, ahead)));
            }
        });
        full || (limit > 0 && targets.memory_bytes() > limit)
    }

    #[cold]
    fn ask_upkeep(&self, ask: impl FnOnce(&mut DbState)) {
        let mut state = self.state.lock();
        ask(&mut state);
        self.background.wake_upkeep(&mut state);
    }

    fn count_group(&self, bytes: usize, count: u64, followers: usize) {
        self.stats.writes.add_single_writer(1 + followers as u64);
        self.stats.keys_written.add_single_writer(count);
        self.stats.bytes_written.add_single_writer(bytes as u64);
        self.stats.groups.add_single_writer(1);
    }

    /// Makes every WAL record written so far durable.
    pub fn sync_wal(&self) -> Result<()> {
        let mut core = self.write_core.lock();
        if self.write_refused.load(Ordering::Relaxed) {
            return Err(self.refusal());
        }
        self.sync_closed_wals()
            .and_then(|()| core.wal.sync(&self.ctx))
            .map_err(|error| self.fail_writes(error))
    }

    /// Hands WAL records buffered under `manual_wal_flush` to the operating system.
    pub fn flush_wal(&self) -> Result<()> {
        let mut core = self.write_core.lock();
        if self.write_refused.load(Ordering::Relaxed) {
            return Err(self.refusal());
        }
        core.wal.flush().map_err(|error| self.fail_writes(error))
    }

    /// Makes WALs that were closed before they were synced durable, so that no synced record can follow a
    /// hole.
    pub fn sync_closed_wals(&self) -> Result<()> {
        let synced = self.closed_wals.sync(&self.ctx)?;
        self.track_synced_wals(&synced)
    }
}

/// Writes consecutive sequence numbers into the headers of the group's batches; returns the record count.
fn number_group(first: SeqNum, own: &mut [u8], followers: &mut [(Arc<Writer>, Request)]) -> u64 {
    let mut count = 0;
    let mut number = |bytes: &mut [u8]| {
        bytes[..8].copy_from_slice(&first.plus(count).0.to_le_bytes());
        count += u64::from(batch::count_of(bytes));
    };
    number(own);
    for (_, request) in followers {
        number(&mut request.bytes);
    }
    count
}
