//! A transaction: writes that are kept apart until they are committed together, and reads that see them.
//!
//! ```text
//! put, delete, ..    touch the key (lock it, or remember since when it is known)  ->  batch
//! get, iterators     batch, over the database
//! commit             the batch is written; locks go
//! prepare            the batch is in the WAL; commit or roll back decide, also after a crash
//! ```
//! Concurrency: one thread at a time. Others look at its [`Owner`] alone.
//! Next: `writes.rs` and `reads.rs`, its operations; `pessimistic.rs` and `optimistic.rs`, how keys are touched and how it is
//! committed.
//! Source: RocksDB `utilities/transactions/transaction_base.cc`.

use super::locks::{Owner, TransactionState, Waiting};
use super::options::{TakeSnapshot, TransactionOptions};
use super::shared::{Optimistic, Pessimistic};
use super::tracking::{Access, Tracked, Tracker};
use crate::batch::codec::{Op, WriteBatch};
use crate::batch::indexed::{IndexedBatch, no_save_point};
use crate::column_family::ColumnFamily;
use crate::db::Db;
use crate::snapshots::Snapshot;
use crate::write::options::WriteOptions;
use outcrop_base::{CfId, Error, Result};
use std::sync::Arc;

/// Whether others may hold a key too.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// txn.get_for_update("apple", LockMode::Shared)?;
/// assert!(!db.locks()[0].exclusive);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Others may hold it to read.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// Whether a key must not have changed since the transaction's snapshot.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::default() };
/// let mut txn = db.begin_with(&WriteOptions::default(), &options);
/// db.put("apple", "red")?;
/// let error = txn.get_for_update("apple", LockMode::Exclusive).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Busy);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validate {
    /// It must not.
    Snapshot,
    /// It may: what matters is the present.
    Nothing,
}

/// Told of a snapshot that a transaction took by itself; see [`Transaction::set_snapshot_on_next_operation`].
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// # use std::sync::Arc;
/// let told: SnapshotNotifier = Arc::new(|snapshot| println!("reads at {}", snapshot.sequence()));
/// let mut txn = db.begin();
/// txn.set_snapshot_on_next_operation(Some(told));
/// txn.put("apple", "red")?;
/// assert!(txn.snapshot().is_some());
/// # outcrop::Result::Ok(())
/// ```
pub type SnapshotNotifier = Arc<dyn Fn(&Snapshot) + Send + Sync>;

/// How a transaction is kept apart from others.
#[derive(Clone)]
pub(super) enum Manager {
    /// It locks keys.
    Pessimistic(Arc<Pessimistic>),
    /// It is checked when it is committed.
    Optimistic(Arc<Optimistic>),
}

/// How many operations of each kind a transaction has in its batch.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// txn.put("apple", "red")?;
/// assert_eq!(txn.counts(), OperationCounts { puts: 1, ..OperationCounts::default() });
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Puts.
    pub puts: u64,
    /// Puts of wide-column entities.
    pub put_entities: u64,
    /// Deletions and single deletions.
    pub deletes: u64,
    /// Merge operands.
    pub merges: u64,
}

/// The part of a transaction that a save point restores besides batch and keys.
struct SavePoint {
    snapshot: Option<Snapshot>,
    wanted: Option<Option<SnapshotNotifier>>,
    counts: OperationCounts,
}

/// A transaction of a [`crate::TransactionDb`] or an [`crate::OptimisticTransactionDb`].
///
/// Dropped before it is committed, nothing of it happens. One that is prepared is then as after a crash:
/// [`crate::TransactionDb::prepared_transactions`] gives it.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// let old = txn.get_for_update("counter", LockMode::Exclusive)?;
/// assert!(old.is_none());
/// txn.put("counter", "1")?;
/// txn.commit()?;
/// assert_eq!(txn.state(), TransactionState::Committed);
/// # outcrop::Result::Ok(())
/// ```
pub struct Transaction {
    pub(super) manager: Manager,
    pub(super) db: Arc<Db>,
    pub(super) owner: Arc<Owner>,
    pub(super) name: Vec<u8>,
    pub(super) batch: IndexedBatch,
    pub(super) commit_time: WriteBatch,
    pub(super) tracker: Tracker,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) write_options: WriteOptions,
    /// In microseconds; below 0: for ever.
    pub(super) lock_timeout: i64,
    pub(super) skip_concurrency_control: bool,
    pub(super) skip_prepare: bool,
    /// See [`Transaction::log_number`].
    pub(super) log_number: u64,
    /// A snapshot is to be taken before the next key is touched.
    wanted: Option<Option<SnapshotNotifier>>,
    save_points: Vec<SavePoint>,
    pub(super) counts: OperationCounts,
    pub(super) indexing: bool,
    started_micros: u64,
}

impl Transaction {
    pub(super) fn new(
        manager: Manager,
        owner: Arc<Owner>,
        batch: IndexedBatch,
        write_options: &WriteOptions,
    ) -> Transaction {
        let db = match &manager {
            Manager::Pessimistic(shared) => shared.db.clone(),
            Manager::Optimistic(shared) => shared.db.clone(),
        };
        Transaction {
            manager,
            owner,
            name: Vec::new(),
            batch,
            commit_time: WriteBatch::new(),
            tracker: Tracker::default(),
            snapshot: None,
            write_options: *write_options,
            lock_timeout: 0,
            skip_concurrency_control: false,
            skip_prepare: true,
            log_number: 0,
            wanted: None,
            save_points: Vec::new(),
            counts: OperationCounts::default(),
            indexing: true,
            started_micros: db.core().ctx.env.clock.now_micros(),
            db,
        }
    }

    /// Begins anew under default options, as the `begin` of its database would; what was not committed is gone.
    pub fn reinitialize(&mut self) {
        match &self.manager {
            Manager::Pessimistic(_) => {
                self.reinitialize_with(&WriteOptions::default(), &TransactionOptions::default());
            }
            Manager::Optimistic(_) => {
                self.reinitialize_optimistic_with(&WriteOptions::default(), TakeSnapshot::No);
            }
        }
    }

    /// Its number; no other of this process has it. 0 for optimistic transactions.
    pub fn id(&self) -> u64 {
        self.owner.id
    }

    /// The database that it is of.
    pub fn database(&self) -> &Arc<Db> {
        &self.db
    }

    /// The number of the WAL that it was prepared in, or what [`Transaction::set_log_number`] said since; 0 if neither was.
    pub fn log_number(&self) -> u64 {
        self.log_number
    }

    /// Sets what [`Transaction::log_number`] gives, and nothing else: which WALs are kept does not depend on it.
    pub fn set_log_number(&mut self, number: u64) {
        self.log_number = number;
    }

    /// The name it was given; empty without.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How far it has come.
    pub fn state(&self) -> TransactionState {
        self.owner.state()
    }

    /// How long it is there, in milliseconds.
    pub fn elapsed_millis(&self) -> u64 {
        self.db.core().ctx.env.clock.now_micros().saturating_sub(self.started_micros) / 1000
    }

    /// How many operations of each kind are in its batch.
    pub fn counts(&self) -> OperationCounts {
        self.counts
    }

    /// How many keys it has touched.
    pub fn num_keys(&self) -> usize {
        self.tracker.len()
    }

    /// The lock that it waits for, or has waited for last in vain.
    pub fn waiting(&self) -> Option<Waiting> {
        self.owner.waiting()
    }

    /// Its batch. Records that are added here are written with it, and their keys neither locked nor checked.
    pub fn batch(&self) -> &IndexedBatch {
        &self.batch
    }

    /// A batch that is written before its own when it is committed after it was prepared; that is in the WAL only then.
    pub fn commit_time_batch(&mut self) -> &mut WriteBatch {
        &mut self.commit_time
    }

    /// How its writes are made durable.
    pub fn write_options(&self) -> &WriteOptions {
        &self.write_options
    }

    /// True if it looks for deadlocks before it waits for a lock.
    pub fn detects_deadlocks(&self) -> bool {
        self.owner.deadlock_depth.is_some()
    }

    /// Changes how its writes are made durable.
    pub fn set_write_options(&mut self, options: &WriteOptions) {
        self.write_options = *options;
    }

    /// How long it waits for locks from here on, in milliseconds; 0: not at all, below 0: for ever.
    pub fn set_lock_timeout(&mut self, millis: i64) {
        self.lock_timeout = millis.saturating_mul(1000);
    }

    /// Writes are not indexed from here on, which saves time; reads of this transaction do not see them.
    pub fn disable_indexing(&mut self) {
        self.indexing = false;
    }

    /// Undoes [`Transaction::disable_indexing`].
    pub fn enable_indexing(&mut self) {
        self.indexing = true;
    }

    /// Takes a snapshot: keys that were written after it cannot be touched from here on. Reads see the present still, unless
    /// their options have it.
    pub fn set_snapshot(&mut self) {
        self.snapshot = Some(self.db.core().conflict_snapshot());
        self.wanted = None;
    }

    /// Takes a snapshot just before the next key is touched, and tells `notifier`.
    pub fn set_snapshot_on_next_operation(&mut self, notifier: Option<SnapshotNotifier>) {
        self.wanted = Some(notifier);
    }

    /// The snapshot it has.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Forgets the snapshot. Keys that were touched stay as they are known.
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
        self.wanted = None;
    }

    pub(super) fn take_wanted_snapshot(&mut self) {
        if let Some(notifier) = self.wanted.take() {
            self.set_snapshot();
            if let (Some(notifier), Some(snapshot)) = (notifier, &self.snapshot) {
                notifier(snapshot);
            }
        }
    }

    /// Marks the present state, for [`Transaction::rollback_to_save_point`].
    pub fn set_save_point(&mut self) {
        self.save_points.push(SavePoint {
            snapshot: self.snapshot.clone(),
            wanted: self.wanted.clone(),
            counts: self.counts,
        });
        self.batch.set_save_point();
        self.tracker.set_save_point();
    }

    /// Takes back what was done since the last save point, which is forgotten. Keys that were touched only since are unlocked.
    ///
    /// # Errors
    /// NotFound if there is none; InvalidArgument if it is too late.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        if matches!(self.manager, Manager::Pessimistic(_)) && self.state() != TransactionState::Started {
            return Err(Error::invalid_argument("Transaction is beyond state for rollback."));
        }
        if self.save_points.is_empty() {
            return Err(no_save_point());
        }
        // First: it fails if the batch was changed past this transaction.
        self.batch.rollback_to_save_point()?;
        let point = self.save_points.pop().ok_or_else(no_save_point)?;
        (self.snapshot, self.wanted, self.counts) = (point.snapshot, point.wanted, point.counts);
        let gone = self.tracker.rollback_to_save_point();
        self.unlock(gone);
        Ok(())
    }

    /// Forgets the last save point.
    ///
    /// # Errors
    /// NotFound if there is none.
    pub fn pop_save_point(&mut self) -> Result<()> {
        if self.save_points.is_empty() {
            return Err(no_save_point());
        }
        self.batch.pop_save_point()?;
        self.save_points.pop();
        self.tracker.pop_save_point();
        Ok(())
    }

    /// Does again what `batch` has, as if each write of it were called. Log data is left out.
    ///
    /// # Errors
    /// As [`Transaction::put`]; InvalidArgument for records that no transaction can have.
    pub fn rebuild_from(&mut self, batch: &WriteBatch) -> Result<()> {
        for record in batch.iter() {
            let record = record?;
            let cf = self.db.core().column_family(record.cf).ok_or_else(|| unknown_family(record.cf))?;
            match record.op {
                Op::Put { key, value } => self.put_cf(&cf, key, value)?,
                Op::Merge { key, operand } => self.merge_cf(&cf, key, operand)?,
                Op::Delete { key } => self.delete_cf(&cf, key)?,
                Op::SingleDelete { key } => self.single_delete_cf(&cf, key)?,
                Op::PutEntity { key, entity } => {
                    let columns = outcrop_base::wide_columns::decode(entity)?;
                    let columns: Vec<_> = columns.iter().map(|column| (column.name, column.value)).collect();
                    self.put_entity_cf(&cf, key, &columns)?;
                }
                Op::DeleteRange { .. } => {
                    return Err(Error::invalid_argument("DeleteRangeCF not implemented"));
                }
            }
        }
        Ok(())
    }

    /// Gives the transaction a name, which it needs to be prepared.
    ///
    /// # Errors
    /// InvalidArgument if it has one, if another has this one, if that is empty or longer than 512 bytes, or if it is too late.
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        match self.manager.clone() {
            Manager::Pessimistic(shared) => self.set_name_in(&shared, name.as_ref()),
            Manager::Optimistic(_) => {
                Err(Error::invalid_argument("Optimistic transactions cannot be named."))
            }
        }
    }

    /// Writes the transaction to the WAL, undecided: it survives a crash, and does not expire. Sync if its write options say so.
    ///
    /// # Errors
    /// InvalidArgument without a name or if it is too late; Expired; those of writing the WAL.
    pub fn prepare(&mut self) -> Result<()> {
        match self.manager.clone() {
            Manager::Pessimistic(shared) => self.prepare_in(&shared),
            Manager::Optimistic(_) => {
                Err(Error::invalid_argument("Two phase commit not supported for optimistic transactions."))
            }
        }
    }

    /// Commits: on return its writes are visible, all at one moment, and durable as its write options say. Locks are released.
    ///
    /// # Errors
    /// Of a transaction with locks: Expired; InvalidArgument if it is too late, or was to be prepared; those of the write: one that
    /// was prepared is so still, of another nothing is left. Of an optimistic one: Busy if a key was written meanwhile, TryAgain if
    /// memory does not reach back far enough to know; it is as before.
    pub fn commit(&mut self) -> Result<()> {
        match self.manager.clone() {
            Manager::Pessimistic(shared) => self.commit_in(&shared),
            Manager::Optimistic(shared) => self.commit_optimistic(&shared),
        }
    }

    /// Takes everything back and releases the locks. One that was prepared never happens.
    ///
    /// # Errors
    /// InvalidArgument if it is too late; those of writing the WAL: it is prepared as before.
    pub fn rollback(&mut self) -> Result<()> {
        match self.manager.clone() {
            Manager::Pessimistic(shared) => self.rollback_in(&shared),
            Manager::Optimistic(_) => {
                self.clear();
                Ok(())
            }
        }
    }

    /// Empties it: batch, keys, locks, save points.
    pub(super) fn clear(&mut self) {
        let keys = self.tracker.clear();
        self.unlock(keys);
        self.batch.clear();
        self.commit_time.clear();
        self.save_points.clear();
        self.counts = OperationCounts::default();
    }

    /// Makes it as if it had just begun.
    pub(super) fn begin_anew(&mut self, owner: Arc<Owner>, write_options: &WriteOptions) {
        self.clear();
        self.clear_snapshot();
        self.name.clear();
        self.log_number = 0;
        self.owner = owner;
        self.indexing = true;
        self.write_options = *write_options;
        self.started_micros = self.db.core().ctx.env.clock.now_micros();
    }

    pub(super) fn unlock(&self, keys: impl IntoIterator<Item = (CfId, Vec<u8>)>) {
        if let Manager::Pessimistic(shared) = &self.manager {
            keys.into_iter().for_each(|(cf, key)| shared.locks.unlock(&self.owner, cf, &key));
        }
    }

    pub(super) fn touch_to_write(&mut self, cf: &ColumnFamily, key: &[u8], validate: Validate) -> Result<()> {
        if self.state() == TransactionState::Prepared {
            // RocksDB takes it, and loses it in a crash.
            return Err(Error::invalid_argument("Transaction has already been prepared."));
        }
        self.touch(cf, key, Access::Write, LockMode::Exclusive, validate)
    }

    /// Makes sure that nobody changes the key before the transaction ends, or that this is noticed.
    pub(super) fn touch(
        &mut self,
        cf: &ColumnFamily,
        key: &[u8],
        access: Access,
        mode: LockMode,
        validate: Validate,
    ) -> Result<()> {
        self.db.core().ctx.check_owns(cf)?;
        if cf.has_timestamps() {
            let what = "transactions over a column family with user-defined timestamps";
            return Err(Error::not_supported(format!("{what} ({})", cf.name())));
        }
        match self.manager.clone() {
            Manager::Pessimistic(_) if self.skip_concurrency_control => Ok(()),
            Manager::Pessimistic(shared) => self.lock(&shared, cf, key, access, mode, validate),
            Manager::Optimistic(_) if validate == Validate::Nothing => Ok(()),
            Manager::Optimistic(_) => {
                self.take_wanted_snapshot();
                let seq = match &self.snapshot {
                    Some(snapshot) => snapshot.sequence(),
                    None => self.db.latest_sequence_number(),
                };
                self.tracker.track(cf.id(), key, seq, access, mode == LockMode::Exclusive);
                Ok(())
            }
        }
    }

    pub(super) fn tracked(&self, cf: CfId, key: &[u8]) -> Option<Tracked> {
        self.tracker.get(cf, key)
    }
}

fn unknown_family(id: CfId) -> Error {
    Error::invalid_argument(format!("column family {id} does not exist"))
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let keys = self.tracker.clear();
        self.unlock(keys);
        if let Manager::Pessimistic(shared) = self.manager.clone() {
            self.leave(&shared);
        }
    }
}
