//! Two-phase commit: a prepared batch is in the WAL and nowhere else, until it is decided.
//!
//! ```text
//! prepare    WAL: seq S, count n: Begin ops.. End(name)      no number is used, the memtables get nothing
//! commit     WAL: seq T, count m: [ops..] Commit(name)       memtables: the ops under T.., then the prepared ones
//! roll back  WAL: seq T, count 0: Rollback(name)
//! ```
//! Invariant: a WAL stays as long as something prepared in it is undecided, or is in a memtable: a commit registers the WAL
//! with the memtables, and ends the first reason, in one step under the state lock, before another group can seal them.
//! Concurrency: each of these is the only write of its group. Source: RocksDB `db/db_impl/db_impl_write.cc`.

use super::group::{Request, Turn};
use super::options::WriteOptions;
use super::pipeline::{CommitPipeline, WriteCore};
use crate::batch::codec::{self, Marker, WriteBatch};
use outcrop_base::{CfId, Error, FileNumber, Result, SeqNum};
use outcrop_monitor::Watch;
use std::collections::BTreeSet;
use std::sync::Arc;

impl CommitPipeline {
    /// Writes down that the transaction `name` will write `writes`, if it is committed. On return that survives a crash of the
    /// process; with `options.sync` one of the machine. Gives the WAL that it is in.
    ///
    /// # Errors
    /// As [`CommitPipeline::write`], of which `low_pri` is one reason; InvalidArgument if something of that name is prepared and
    /// not decided.
    pub fn prepare(
        &self,
        options: &WriteOptions,
        name: &[u8],
        writes: &Arc<WriteBatch>,
    ) -> Result<FileNumber> {
        // A batch that is in no WAL is not prepared.
        let options = WriteOptions { disable_wal: false, ..*options };
        let mut record = codec::prepared_record(writes, name);
        self.lead_alone(&options, record.len(), |core| {
            if self.versions.state.lock().prepared.get(name).is_some() {
                return Err(Error::invalid_argument("Duplicate txn name"));
            }
            record[..8].copy_from_slice(&core.last_seq.plus(1).0.to_le_bytes());
            self.log_group(core, &options, &record, &[], 0, Watch::from(&self.ctx.monitor.begin()).into())?;
            let mut state = self.versions.state.lock();
            let wal = core.wal.number();
            state.prepared.add(name, wal, writes.clone());
            Ok(wal)
        })
    }

    /// Commits what was prepared as `name`, and `first` before it. Visible on return.
    ///
    /// # Errors
    /// As [`CommitPipeline::write`]: it is prepared as before. NotFound if nothing of that name is.
    pub fn commit_prepared(&self, options: &WriteOptions, name: &[u8], first: &WriteBatch) -> Result<()> {
        let options = deciding(options);
        let mut record = codec::marker_record(first, Marker::Commit(name));
        self.lead_alone(&options, record.len(), |core| {
            let (wal, writes) = self.versions.state.lock().prepared.get(name).ok_or_else(not_prepared)?;
            let number = core.last_seq.plus(1);
            record[..8].copy_from_slice(&number.0.to_le_bytes());
            let prepared_number = number.plus(u64::from(first.count()));
            let last = SeqNum(prepared_number.plus(u64::from(writes.count())).0 - 1);
            // Taken before the WAL write: as for any group.
            core.last_seq = last;
            self.log_group(core, &options, &record, &[], 0, Watch::from(&self.ctx.monitor.begin()).into())?;
            core.targets.begin_group();
            self.apply_batch(&mut core.targets, first.as_bytes(), number, number)?;
            self.apply_batch(&mut core.targets, writes.as_bytes(), prepared_number, number)?;
            core.seal_wanted |= self.any_memtable_full(&mut core.targets);
            self.decide(name, wal, &writes)?;
            self.versions.publish(last);
            let watching = self.ctx.monitor.begin();
            let (bytes, keys) = (record.len(), u64::from(first.count() + writes.count()));
            self.count_group(bytes, keys, 0, Watch::from(&watching).into());
            Ok(())
        })
    }

    /// Rolls back the batch that was prepared as `name`.
    ///
    /// # Errors
    /// As [`CommitPipeline::commit_prepared`].
    pub fn rollback_prepared(&self, options: &WriteOptions, name: &[u8]) -> Result<()> {
        let options = deciding(options);
        let mut record = codec::marker_record(&WriteBatch::new(), Marker::Rollback(name));
        self.lead_alone(&options, record.len(), |core| {
            let mut known = self.versions.state.lock().prepared.get(name).is_some();
            if known {
                record[..8].copy_from_slice(&core.last_seq.plus(1).0.to_le_bytes());
                self.log_group(
                    core,
                    &options,
                    &record,
                    &[],
                    0,
                    Watch::from(&self.ctx.monitor.begin()).into(),
                )?;
                known = self.versions.state.lock().prepared.remove(name);
            }
            if known { Ok(()) } else { Err(not_prepared()) }
        })
    }

    /// The memtables that got `writes` need `wal` from here on, and what was prepared as `name` does not.
    fn decide(&self, name: &[u8], wal: FileNumber, writes: &WriteBatch) -> Result<()> {
        let families = writes.iter().map(|record| Ok(record?.cf)).collect::<Result<BTreeSet<CfId>>>()?;
        let mut state = self.versions.state.lock();
        for id in families {
            if let Some(cf) = state.column_families.get(&id) {
                cf.memtable.note_prepared_wal(wal);
            }
        }
        state.prepared.remove(name);
        Ok(())
    }

    /// Writes down again, in the WAL being written, all that is prepared and not decided: those it is in now have an unknown
    /// tail, which nobody must replay. Those are kept until an edit of the MANIFEST says that all that was in memory is in tables and
    /// what is prepared is here: until then a replay begins in one of them, and passes over what is written here
    /// ([`codec::is_prepared_again`]), as their tail may have the commit of such a transaction, which failed.
    pub fn log_prepared_again(&self, core: &mut WriteCore) -> Result<()> {
        let prepared = self.versions.state.lock().prepared.list();
        if prepared.is_empty() {
            return Ok(());
        }
        let failed = |error: Error| self.versions.fail_writes(error);
        for (name, writes) in &prepared {
            let mut record = codec::prepared_again_record(writes, name);
            record[..8].copy_from_slice(&core.last_seq.plus(1).0.to_le_bytes());
            core.wal.append(&[&record]).map_err(failed)?;
        }
        core.wal.sync(&self.ctx).map_err(failed)?;
        self.versions.state.lock().prepared.are_again_in(core.wal.number());
        Ok(())
    }

    /// Runs `act` as the only write of a group of `bytes`.
    fn lead_alone<T>(
        &self,
        options: &WriteOptions,
        bytes: usize,
        act: impl FnOnce(&mut WriteCore) -> Result<T>,
    ) -> Result<T> {
        self.check_options(options, bytes)?;
        if !self.queue.try_lead() {
            let request = Request { bytes: Vec::new(), options: *options, alone: true };
            if let Turn::Done(result, _) = self.queue.wait_in_line(request, None) {
                // Nobody else can do it: it was refused.
                return Err(result.expect_err("it is committed by its own caller"));
            }
        }
        let result =
            self.catching_panics(|held| act(held.insert(self.core_with_room(options, bytes as u64)?)));
        self.end_lead(options, bytes);
        result
    }
}

/// How a decision is written: into the WAL, and whatever its priority at once, as it ends what holds locks and WALs back.
/// Source: RocksDB `DBImpl::ThrottleLowPriWritesIfNeeded`.
fn deciding(options: &WriteOptions) -> WriteOptions {
    WriteOptions { disable_wal: false, low_pri: false, ..*options }
}

fn not_prepared() -> Error {
    Error::not_found("nothing is prepared under that name")
}
