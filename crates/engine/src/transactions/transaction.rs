//! A transaction: writes that are kept apart until they are committed together, and reads that see them.
//!
//! ```text
//! put, delete, ..    touch the key (lock it, or remember since when it is known)  ->  batch
//! get, iterators     batch, over the database
//! commit             the batch is written; locks go
//! prepare            the batch is in the WAL; commit or roll back decide, also after a crash
//! ```
//! Concurrency: one thread at a time. Others look at its [`Owner`] alone.
//! Next: `pessimistic.rs` and `optimistic.rs`, how keys are touched and how it is committed.
//! Source: RocksDB `utilities/transactions/transaction_base.cc`.

use super::locks::{Owner, TransactionState, Waiting};
use super::shared::{Optimistic, Pessimistic};
use super::tracking::{Access, Tracked, Tracker};
use crate::batch::codec::{Op, WriteBatch, check_sizes};
use crate::batch::indexed::{IndexedBatch, no_save_point};
use crate::batch::overlay::Overlay;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::db::Db;
use crate::read::cursor::Cursor;
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use crate::snapshots::Snapshot;
use crate::write::options::WriteOptions;
use outcrop_base::{Error, Result};
use std::sync::Arc;

/// Whether others may hold a key too.
///
/// ```
/// # use outcrop::*;
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let db = TransactionDb::open("/db", options, TransactionDbOptions::default(), Env::memory(), vec![])?;
/// # let cf = db.db().default_column_family().clone();
/// # let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// let mut txn = db.begin(&write, &TransactionOptions::default());
/// txn.get_for_update(&cf, &read, b"apple", LockMode::Shared)?;
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
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let db = TransactionDb::open("/db", options, TransactionDbOptions::default(), Env::memory(), vec![])?;
/// # let cf = db.db().default_column_family().clone();
/// # let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// let mut txn = db.begin(&write, &TransactionOptions { set_snapshot: true, ..TransactionOptions::default() });
/// db.put(&cf, &write, b"apple", b"red")?;
/// let error = txn.get_for_update(&cf, &read, b"apple", LockMode::Exclusive).unwrap_err();
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
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let db = TransactionDb::open("/db", options, TransactionDbOptions::default(), Env::memory(), vec![])?;
/// # let cf = db.db().default_column_family().clone();
/// # let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// # use std::sync::Arc;
/// let told: SnapshotNotifier = Arc::new(|snapshot| println!("reads at {}", snapshot.sequence()));
/// let mut txn = db.begin(&write, &TransactionOptions::default());
/// txn.set_snapshot_on_next_operation(Some(told));
/// txn.put(&cf, b"apple", b"red")?;
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
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let db = TransactionDb::open("/db", options, TransactionDbOptions::default(), Env::memory(), vec![])?;
/// # let cf = db.db().default_column_family().clone();
/// # let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// let mut txn = db.begin(&write, &TransactionOptions::default());
/// txn.put(&cf, b"apple", b"red")?;
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

/// What a save point restores besides batch and keys.
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
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let db = TransactionDb::open("/db", options, TransactionDbOptions::default(), Env::memory(), vec![])?;
/// # let cf = db.db().default_column_family().clone();
/// # let (write, read) = (WriteOptions::default(), ReadOptions::default());
/// let mut txn = db.begin(&write, &TransactionOptions::default());
/// let old = txn.get_for_update(&cf, &read, b"counter", LockMode::Exclusive)?;
/// assert!(old.is_none());
/// txn.put(&cf, b"counter", b"1")?;
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
    /// A snapshot is to be taken before the next key is touched.
    wanted: Option<Option<SnapshotNotifier>>,
    save_points: Vec<SavePoint>,
    counts: OperationCounts,
    indexing: bool,
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
            wanted: None,
            save_points: Vec::new(),
            counts: OperationCounts::default(),
            indexing: true,
            started_micros: db.core().ctx.env.clock.now_micros(),
            db,
        }
    }

    /// Its number; no other of this process has it. 0 for optimistic transactions.
    pub fn id(&self) -> u64 {
        self.owner.id
    }

    /// The name it was given; empty without.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it has come to.
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

    /// What it waits for, or has waited for last in vain.
    pub fn waiting(&self) -> Option<Waiting> {
        self.owner.waiting()
    }

    /// Its batch. What is added here is written with it, and neither locked nor checked.
    pub fn batch(&self) -> &IndexedBatch {
        &self.batch
    }

    /// A batch that is written before its own when it is committed after it was prepared; that is in the WAL only then.
    pub fn commit_time_batch(&mut self) -> &mut WriteBatch {
        &mut self.commit_time
    }

    /// How its writes are made durable.
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

    /// Sets `key` to `value` in column family `cf`.
    ///
    /// # Errors
    /// Of a transaction with locks: TimedOut if another holds the key for too long; Busy if waiting for it would be a deadlock,
    /// or if it was written after the transaction's snapshot; InvalidArgument if it is prepared. Aborted if its batch would be
    /// longer than it may. Its batch is then as before.
    pub fn put(&mut self, cf: &ColumnFamilyHandle, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(cf, key, value, Validate::Snapshot)
    }

    /// The same, without looking whether the key was written after the snapshot.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_untracked(&mut self, cf: &ColumnFamilyHandle, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(cf, key, value, Validate::Nothing)
    }

    fn put_as(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        value: &[u8],
        validate: Validate,
    ) -> Result<()> {
        check_sizes(key, value)?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.put(&**cf, key, value)?,
            false => self.add_unindexed(|batch| batch.put_id(cf.id(), key, value))?,
        }
        self.counts.puts += 1;
        Ok(())
    }

    /// Sets `key` to the wide-column entity of `columns`.
    ///
    /// # Errors
    /// As [`Transaction::put`]; InvalidArgument if a name comes twice.
    pub fn put_entity(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        columns: &[(&[u8], &[u8])],
    ) -> Result<()> {
        self.touch_to_write(cf, key, Validate::Snapshot)?;
        match self.indexing {
            true => self.batch.put_entity(&**cf, key, columns)?,
            false => self.batch.add_unindexed(|batch| batch.put_entity_id(cf.id(), key, columns))?,
        }
        self.counts.put_entities += 1;
        Ok(())
    }

    /// Adds a merge operand to `key` in column family `cf`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge(&mut self, cf: &ColumnFamilyHandle, key: &[u8], operand: &[u8]) -> Result<()> {
        self.merge_as(cf, key, operand, Validate::Snapshot)
    }

    /// The same, without looking whether the key was written after the snapshot.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge_untracked(&mut self, cf: &ColumnFamilyHandle, key: &[u8], operand: &[u8]) -> Result<()> {
        self.merge_as(cf, key, operand, Validate::Nothing)
    }

    fn merge_as(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        operand: &[u8],
        validate: Validate,
    ) -> Result<()> {
        check_sizes(key, operand)?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.merge(&**cf, key, operand)?,
            false => self.add_unindexed(|batch| batch.merge_id(cf.id(), key, operand))?,
        }
        self.counts.merges += 1;
        Ok(())
    }

    /// Deletes `key` in column family `cf`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, cf: &ColumnFamilyHandle, key: &[u8]) -> Result<()> {
        self.delete_as(cf, key, Validate::Snapshot)
    }

    /// The same, without looking whether the key was written after the snapshot.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_untracked(&mut self, cf: &ColumnFamilyHandle, key: &[u8]) -> Result<()> {
        self.delete_as(cf, key, Validate::Nothing)
    }

    fn delete_as(&mut self, cf: &ColumnFamilyHandle, key: &[u8], validate: Validate) -> Result<()> {
        check_sizes(key, &[])?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.delete(&**cf, key)?,
            false => self.add_unindexed(|batch| batch.delete_id(cf.id(), key))?,
        }
        self.counts.deletes += 1;
        Ok(())
    }

    /// Deletes the one earlier put of `key`; see [`WriteBatch::single_delete`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, cf: &ColumnFamilyHandle, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        self.touch_to_write(cf, key, Validate::Snapshot)?;
        match self.indexing {
            true => self.batch.single_delete(&**cf, key)?,
            false => self.add_unindexed(|batch| batch.single_delete_id(cf.id(), key))?,
        }
        self.counts.deletes += 1;
        Ok(())
    }

    /// Adds a blob that goes to the WAL only.
    ///
    /// # Errors
    /// Aborted if the batch would be longer than it may.
    pub fn put_log_data(&mut self, blob: &[u8]) -> Result<()> {
        self.batch.put_log_data(blob)
    }

    fn add_unindexed(&self, put: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        self.batch.add_unindexed(|batch| {
            put(batch);
            Ok(())
        })
    }

    /// The value of `key` in column family `cf`, as this transaction would leave it. What others commit meanwhile is seen,
    /// unless `options` have a snapshot.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn get(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<PinnedValue>> {
        self.batch.get_over(&self.db, cf, options, key)
    }

    /// [`Transaction::get`] of several keys.
    pub fn multi_get(
        &self,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over(&self.db, options, pairs)
    }

    /// [`Transaction::get`] of a key that is about to be updated: it is locked, or checked when the transaction is committed.
    ///
    /// # Errors
    /// As [`Transaction::put`] and [`Transaction::get`].
    pub fn get_for_update(
        &mut self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<PinnedValue>> {
        self.touch(cf, key, Access::Read, mode, Validate::Snapshot)?;
        self.get(cf, options, key)
    }

    /// The same, without looking whether the key was written after the transaction's snapshot. An optimistic transaction does
    /// not check it at all.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`]; InvalidArgument if `options` have a snapshot.
    pub fn get_for_update_unvalidated(
        &mut self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<PinnedValue>> {
        if options.snapshot.is_some() {
            return Err(Error::invalid_argument(
                "If do_validate is false then GetForUpdate with snapshot is not defined.",
            ));
        }
        self.touch(cf, key, Access::Read, mode, Validate::Nothing)?;
        self.get(cf, options, key)
    }

    /// [`Transaction::get_for_update`] of several keys, each for itself alone. If one cannot be had, each gets that error; those
    /// before it stay locked.
    pub fn multi_get_for_update(
        &mut self,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        for (cf, key) in pairs {
            let touched = self.touch(cf, key, Access::Read, LockMode::Exclusive, Validate::Snapshot);
            if let Err(error) = touched {
                return pairs.iter().map(|_| Err(error.clone())).collect();
            }
        }
        self.multi_get(options, pairs)
    }

    /// Takes one [`Transaction::get_for_update`] of `key` back. The key is unlocked if nothing else was done with it, since the
    /// last save point if there is one.
    pub fn undo_get_for_update(&mut self, cf: &ColumnFamilyHandle, key: &[u8]) {
        if self.tracker.untrack_read(cf.id(), key) {
            self.unlock([(cf.id(), key.to_vec())]);
        }
    }

    /// An iterator over column family `cf` as this transaction would leave it. It sees what the transaction writes while it lives;
    /// it must not be used after the transaction was committed or rolled back, also to a save point.
    ///
    /// # Errors
    /// As [`Db::iter_cf`].
    pub fn iter(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<Overlay<Cursor>> {
        self.batch.iter_over(&self.db, cf, options)
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
                Op::Put { key, value } => self.put(&cf, key, value)?,
                Op::Merge { key, operand } => self.merge(&cf, key, operand)?,
                Op::Delete { key } => self.delete(&cf, key)?,
                Op::SingleDelete { key } => self.single_delete(&cf, key)?,
                Op::PutEntity { key, entity } => {
                    let columns = outcrop_base::wide_columns::decode(entity)?;
                    let columns: Vec<_> = columns.iter().map(|column| (column.name, column.value)).collect();
                    self.put_entity(&cf, key, &columns)?;
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
    pub fn set_name(&mut self, name: &[u8]) -> Result<()> {
        match self.manager.clone() {
            Manager::Pessimistic(shared) => self.set_name_in(&shared, name),
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
        self.owner = owner;
        self.indexing = true;
        self.write_options = *write_options;
        self.started_micros = self.db.core().ctx.env.clock.now_micros();
    }

    fn unlock(&self, keys: impl IntoIterator<Item = (u32, Vec<u8>)>) {
        if let Manager::Pessimistic(shared) = &self.manager {
            keys.into_iter().for_each(|(cf, key)| shared.locks.unlock(&self.owner, cf, &key));
        }
    }

    fn touch_to_write(&mut self, cf: &ColumnFamily, key: &[u8], validate: Validate) -> Result<()> {
        if self.state() == TransactionState::Prepared {
            // RocksDB takes it, and loses it in a crash.
            return Err(Error::invalid_argument("Transaction has already been prepared."));
        }
        self.touch(cf, key, Access::Write, LockMode::Exclusive, validate)
    }

    /// Makes sure that nobody changes the key before the transaction ends, or that this is noticed.
    fn touch(
        &mut self,
        cf: &ColumnFamily,
        key: &[u8],
        access: Access,
        mode: LockMode,
        validate: Validate,
    ) -> Result<()> {
        self.db.core().ctx.check_owns(cf)?;
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

    pub(super) fn tracked(&self, cf: u32, key: &[u8]) -> Option<Tracked> {
        self.tracker.get(cf, key)
    }
}

fn unknown_family(id: u32) -> Error {
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
