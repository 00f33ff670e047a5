//! Sealing memtables and starting a new WAL.
//!
//! Invariant: a sealed memtable's data is in WALs below its `next_wal` only, and the structure changes under
//! the state lock in one step, so that a reader sees each record in exactly one memtable.

use super::pipeline::{CommitPipeline, WriteCore};
use super::targets::Target;
use super::wal::Wal;
use crate::column_family::new_memtable;
use crate::events::Event;
use crate::events::info::MemTableInfo;
use crate::events::reasons::FlushReason;
use crate::info_log::log_line;
use crate::state::{CfState, DbState, LiveWal, SealedMemTable};
use outcrop_base::{CfId, FileNumber, Result};
use outcrop_memtable::MemTable;
use outcrop_monitor::Ticker;
use std::sync::Arc;

/// The ticker of an atomic flush for `reason`.
///
/// Source: RocksDB `RecordAtomicFlushRequestReason`.
fn atomic_request(reason: FlushReason) -> Ticker {
    match reason {
        FlushReason::WriteBufferFull => Ticker::AtomicFlushRequestReasonWriteBufferFull,
        FlushReason::WriteBufferManager => Ticker::AtomicFlushRequestReasonWriteBufferManager,
        FlushReason::MemtableMaxRangeDeletions => Ticker::AtomicFlushRequestReasonMemtableMaxRangeDeletions,
        _ => Ticker::AtomicFlushRequestReasonOther,
    }
}

impl CommitPipeline {
    /// Seals what is full, and what holds back WALs that are too large together.
    pub fn seal_full_memtables(&self, core: &mut WriteCore) -> Result<()> {
        let mut reason = FlushReason::WriteBufferFull;
        let full = || core.targets.iter().filter(|target| target.memtable.should_seal());
        let mut ids: Vec<CfId> = full().map(|target| target.cf.id()).collect();
        if ids.is_empty() {
            reason = FlushReason::WalFull;
        } else if full().all(|target| target.memtable.has_enough_range_deletions()) {
            reason = FlushReason::MemtableMaxRangeDeletions;
        }
        ids.extend(self.holders_of_oldest_wal(core));
        ids.sort_unstable();
        ids.dedup();
        core.seal_wanted = false;
        self.seal(core, &ids, reason)
    }

    /// Seals the memtables of `ids` that hold anything, for `reason`, and starts a new WAL if the current one was used. With
    /// `atomic_flush` all are sealed if one is: together they hold all rows up to one point of time.
    pub fn seal(&self, core: &mut WriteCore, ids: &[CfId], reason: FlushReason) -> Result<()> {
        let all = self.ctx.options.atomic_flush && !ids.is_empty();
        let chosen = |target: &Target| all || ids.contains(&target.cf.id());
        let sealing: Vec<usize> = (0..core.targets.len())
            .filter(|&i| chosen(&core.targets[i]) && !core.targets[i].memtable.is_empty())
            .collect();
        if sealing.is_empty() {
            return Ok(());
        }
        if all {
            self.ctx.count(atomic_request(reason), 1);
        }
        self.switch_wal(core)?;
        // No write is under way: numbers above this are of writes that failed, and no reader ever sees them.
        let born = self.versions.visible_seq();
        // Before the state is locked: memory that was not made ready in time takes its time.
        let fresh: Vec<Arc<MemTable>> = sealing
            .iter()
            .map(|&index| {
                let cf = &core.targets[index].cf;
                let fresh = new_memtable(&cf.options.load(), &cf.comparator, &self.ctx.memtable_pool);
                fresh.set_born(born);
                fresh
            })
            .collect();
        let last_seq = core.last_seq;
        // Before a flush can begin.
        sealing.iter().for_each(|index| self.tell_sealed(&core.targets[*index]));
        let mut state = self.versions.state.lock();
        for (index, fresh) in sealing.into_iter().zip(fresh) {
            let full = core.targets.replace(index, fresh.clone());
            let id = core.targets[index].cf.id();
            let Some(cf) = state.column_families.get_mut(&id) else { continue };
            cf.memtable = fresh;
            cf.sealed.push(SealedMemTable { memtable: full, next_wal: core.wal.number(), last_seq, reason });
            cf.trim_history();
            cf.install_superversion();
        }
        self.versions.update_stalls(&mut state);
        self.versions.wake(&mut state);
        drop(state);
        log_line!(self.ctx, "New memtable created with log file: #{}", core.wal.number());
        self.ctx.tell_stalls();
        Ok(())
    }

    /// Tells listeners that the memtable of `target` takes no more writes: none comes, the caller excludes writers.
    fn tell_sealed(&self, target: &Target) {
        if !self.ctx.listens() {
            return;
        }
        let memtable = &target.memtable;
        self.ctx.tell(Event::MemTableSealed(&MemTableInfo {
            cf_name: target.cf.name().to_string(),
            first_seqno: memtable.first_seq().unwrap_or_default(),
            earliest_seqno: memtable.born().unwrap_or_default(),
            num_entries: memtable.num_entries(),
            num_deletes: memtable.num_deletes(),
        }));
    }

    /// Starts a new WAL file unless the current one is unused.
    fn switch_wal(&self, core: &mut WriteCore) -> Result<()> {
        if core.wal.is_empty() {
            return Ok(());
        }
        self.ctx.check_not_closed()?;
        let number = self.ctx.new_file_number();
        let recycled = self.recyclable_wal();
        let mut fresh =
            Wal::create(&self.ctx, number, recycled).map_err(|error| self.versions.fail_writes(error))?;
        fresh.name_timestamps(&core.targets.stamped());
        core.wal.end().map_err(|error| self.versions.fail_writes(error))?;
        fresh.name_predecessor(&core.wal);
        let mut old = std::mem::replace(&mut core.wal, fresh);
        self.ctx.background.defer_drop(old.retired_window());
        let (old_number, old_len) = (old.number(), old.len());
        // A synced one, too, is for the next sync to write down, if WALs are tracked.
        if !old.is_synced() || self.ctx.options.track_and_verify_wals_in_manifest {
            self.closed_wals.push(old);
        }
        let mut state = self.versions.state.lock();
        if let Some(live) = state.live_wals.iter_mut().find(|wal| wal.number == old_number) {
            live.size_bytes = old_len;
        }
        state.live_wals.push_back(LiveWal { number, size_bytes: 0, is_own: true });
        release_idle_column_families(&mut state, number);
        self.versions.set_current_wal(number, &mut state);
        Ok(())
    }

    /// Seals the memtables of column families `ids`; with `wait`, returns when they are in tables.
    ///
    /// # Errors
    /// The background error; the error of writing the tables.
    pub fn flush(&self, ids: &[CfId], reason: FlushReason, wait: bool) -> Result<()> {
        let mut ids = ids.to_vec();
        {
            let mut core = self.exclude_writers();
            self.check_no_error()?;
            if self.ctx.options.atomic_flush && !ids.is_empty() {
                // Those that are named may have nothing to write, and the others have.
                ids = core.targets.ids();
            }
            self.seal(&mut core, &ids, reason)?;
        }
        self.versions.request_flush(&ids);
        if wait { self.versions.wait_for_flush(&ids) } else { Ok(()) }
    }

    /// Seals the memtables of `ids` and returns when they are in tables, with writers excluded all the time.
    pub fn flush_excluded(&self, core: &mut WriteCore, ids: &[CfId], reason: FlushReason) -> Result<()> {
        self.seal(core, ids, reason)?;
        self.versions.request_flush(ids);
        self.versions.wait_for_flush(ids)
    }

    /// Fails with the background error, if there is one, and once the database is closed.
    pub fn check_no_error(&self) -> Result<()> {
        self.ctx.check_not_closed()?;
        if self.versions.refuses_writes()
            && let Some(error) = &self.versions.state.lock().background_error
        {
            return Err(error.clone());
        }
        Ok(())
    }

    /// Starts a new WAL in place of one whose tail is unknown. A record that failed may still be in the old
    /// file: its sequence numbers are not used again, and the caller flushes everything and then calls
    /// [`VersionSet::advance_min_wal`], so that the old file is never replayed. Until then
    /// [`WriteCore::replaced_wals`] have what is in memory and not synced: they can be synced, or say that they cannot.
    pub fn replace_failed_wal(&self, core: &mut WriteCore) -> Result<()> {
        core.seal_wanted = false;
        // One that is untouched is that of an attempt to resume that failed later on.
        let failed = if core.wal.is_untouched() { None } else { Some(self.replace_wal(core)?) };
        let replaced = self.closed_wals.take_all().into_iter().chain(failed);
        // No write has come since the first attempt: WALs of later ones are not needed.
        if core.replaced_wals.is_empty() {
            core.replaced_wals.extend(replaced);
        }
        Ok(())
    }

    /// Goes on with a new WAL, and gives the one before.
    fn replace_wal(&self, core: &mut WriteCore) -> Result<Wal> {
        let number = self.ctx.new_file_number();
        let created = Wal::create(&self.ctx, number, None);
        let created = created.map_err(|error| self.versions.fail_writes(error))?;
        // With `manual_wal_flush` records wait in its buffer: should the flush that follows fail too, they are nowhere else.
        let mut old = std::mem::replace(&mut core.wal, created);
        old.end_if_whole(&self.ctx);
        let published = self.versions.visible_seq();
        if core.last_seq > published {
            let first = published.plus(1);
            let record = old.record_of(first).map(|offset| (old.number(), offset));
            self.ctx.failed_writes.add(first, core.last_seq, record);
        }
        core.wal.name_timestamps(&core.targets.stamped());
        let mut state = self.versions.state.lock();
        state.live_wals.push_back(LiveWal { number, size_bytes: 0, is_own: true });
        self.versions.set_current_wal(number, &mut state);
        Ok(old)
    }

    /// An obsolete WAL to recycle. None while files are to stay: somebody may be copying them.
    fn recyclable_wal(&self) -> Option<FileNumber> {
        let mut state = self.versions.state.lock();
        if state.keeps_files() { None } else { state.recyclable_wals.pop() }
    }

    /// Flushes the memtable that has taken writes for longest, of a column family that is not being flushed: all memtables that a
    /// [`crate::WriteBufferManager`] knows of take too much.
    ///
    /// With `even_if_flushing` also of one that is: writers then wait for that flush rather than go on beyond the limit.
    pub fn flush_oldest_memtable(&self, core: &mut WriteCore, even_if_flushing: bool) -> Result<()> {
        let oldest = {
            let state = self.versions.state.lock();
            let idle = |id: CfId| {
                even_if_flushing || state.column_families.get(&id).is_some_and(|cf| cf.sealed.is_empty())
            };
            let targets = core.targets.iter();
            let candidates = targets.filter(|target| !target.memtable.is_empty() && idle(target.cf.id()));
            candidates.min_by_key(|target| target.memtable.born()).map(|target| target.cf.id())
        };
        let Some(id) = oldest else { return Ok(()) };
        self.seal(core, &[id], FlushReason::WriteBufferManager)?;
        let ids = if self.ctx.options.atomic_flush { core.targets.ids() } else { vec![id] };
        self.versions.request_flush(&ids);
        Ok(())
    }

    /// With `max_total_wal_size` exceeded: the column families that still need the oldest WAL.
    fn holders_of_oldest_wal(&self, core: &WriteCore) -> Vec<CfId> {
        let state = self.versions.state.lock();
        let total: u64 = state.live_wals.iter().map(|wal| wal.size_bytes).sum::<u64>() + core.wal.len();
        if total <= self.max_total_wal_size(&state) {
            return Vec::new();
        }
        let oldest = state.live_wals.front().map(|wal| wal.number).unwrap_or_default();
        let needs = |cf: &CfState| cf.log_number.min(cf.oldest_prepared_wal(|_| true));
        state.column_families.values().filter(|cf| needs(cf) <= oldest).map(|cf| cf.cf.id()).collect()
    }

    /// `max_total_wal_size`, or four times what all memtables may hold.
    fn max_total_wal_size(&self, state: &DbState) -> u64 {
        let limit = self.ctx.live.load().max_total_wal_size;
        if limit > 0 {
            return limit;
        }
        let memtables = state.column_families.values().map(|cf| {
            let options = cf.cf.options.load();
            options.write_buffer_size.saturating_mul(options.max_write_buffer_number.max(1) as u64)
        });
        memtables.fold(0u64, u64::saturating_add).saturating_mul(4)
    }
}

/// Column families with nothing in memory need no WAL before the new one.
fn release_idle_column_families(state: &mut DbState, wal: FileNumber) {
    for cf in state.column_families.values_mut() {
        if cf.sealed.is_empty() && cf.memtable.is_empty() {
            cf.log_number = wal;
        }
    }
}
