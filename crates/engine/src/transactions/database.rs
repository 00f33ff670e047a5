//! A database with transactions that lock keys.

use super::locks::{LockInfo, LockManager, LockOptions, LockRequest, Owner, TransactionState};
use super::options::{TransactionDbOptions, TransactionOptions, WritePolicy};
use super::pessimistic::new_owner;
use super::shared::{Pessimistic, new_id};
use super::transaction::{Manager, Transaction};
use super::waits::Deadlock;
use crate::batch::codec::{Op, WriteBatch, check_sizes};
use crate::batch::indexed::{IndexedBatch, IndexedBatchOptions};
use crate::builder::DbBuilder;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::db::Db;
use crate::features::export_import::{ExportedColumnFamily, ImportColumnFamilyOptions};
use crate::forms::shorter_forms;
use crate::write::options::WriteOptions;
use outcrop_base::{CfId, Error, FileNumber, Result};
use outcrop_options::kept;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A database with transactions that lock the keys they touch; RocksDB's `TransactionDB`.
///
/// On disk it is a database like any other. Dropping it and everything that came of it closes it.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// txn.put("apple", "red")?;
/// assert!(db.db().get("apple")?.is_none());
/// txn.commit()?;
/// assert!(db.db().get("apple")?.is_some());
/// # outcrop::Result::Ok(())
/// ```
pub struct TransactionDb {
    shared: Arc<Pessimistic>,
}

/// Column families keep flushed memtables in memory, to be asked whether a key was written lately.
pub(super) fn keep_history(column_families: &mut [ColumnFamilyDescriptor]) {
    for descriptor in column_families {
        if descriptor.options.max_write_buffer_size_to_maintain == 0 {
            descriptor.options.max_write_buffer_size_to_maintain = -1;
        }
    }
}

/// # Single writes
///
/// `put`, `merge`, `delete` and `write` are transactions of their own: they lock their keys, are committed and unlock them. Each has the four
/// forms of [`Db::put`]: `put(key, value)` in the default column family, `put_cf(&cf, key, value)` in another, and both with options last:
/// `put_with`, `put_cf_with`. Reads are those of [`TransactionDb::db`].
///
/// # Errors of single writes
/// TimedOut if a key is locked for longer than [`TransactionDbOptions::default_lock_timeout`]; those of [`Db::put`].
impl TransactionDb {
    /// Opens the database at `path`, which must exist and have no column family but "default", under default options: as [`Db::open`]. For
    /// all else there is [`TransactionDb::open_with`].
    ///
    /// # Errors
    /// As [`TransactionDb::open_with`].
    pub fn open(path: impl AsRef<Path>) -> Result<TransactionDb> {
        TransactionDb::open_with(Db::builder(path), TransactionDbOptions::default())
    }

    /// Opens the database that `builder` describes. Transactions that were prepared and not decided are there:
    /// [`TransactionDb::prepared_transactions`].
    ///
    /// # Errors
    /// As [`DbBuilder::open`]; NotSupported for a write policy other than [`WritePolicy::Committed`], and with `unordered_write`.
    pub fn open_with(mut builder: DbBuilder, transactions: TransactionDbOptions) -> Result<TransactionDb> {
        if transactions.write_policy != WritePolicy::Committed {
            let policy = match transactions.write_policy {
                WritePolicy::Prepared => "WRITE_PREPARED",
                _ => "WRITE_UNPREPARED",
            };
            return Err(Error::not_supported(format!("the write policy {policy}; there is WRITE_COMMITTED")));
        }
        if builder.db_options().kept.flag("unordered_write", false) {
            return Err(Error::not_supported("WRITE_COMMITTED is incompatible with unordered_writes"));
        }
        // Nothing of Outcrop's asks for it: RocksDB does, when it opens the database as one without transactions.
        builder.db_options_mut().kept.set(kept::DB_KEPT, "allow_2pc", "true")?;
        let db = Arc::new(builder.with_families(keep_history).open()?);
        let locks = LockManager::new(
            LockOptions {
                max_num_locks: transactions.max_num_locks,
                num_stripes: transactions.num_stripes,
                max_num_deadlocks: transactions.max_num_deadlocks as usize,
            },
            db.core().ctx.env.clock.clone(),
        );
        db.column_families().iter().for_each(|cf| locks.add_family(cf.id()));
        let shared = Pessimistic { db, locks, options: transactions, names: Default::default() };
        Ok(TransactionDb { shared: Arc::new(shared) })
    }

    /// The database. Writes to it directly pass by all locks.
    pub fn db(&self) -> &Arc<Db> {
        &self.shared.db
    }

    /// Begins a transaction, under default options.
    pub fn begin(&self) -> Transaction {
        self.begin_with(&WriteOptions::default(), &TransactionOptions::default())
    }

    /// [`TransactionDb::begin`] under `options`; `write_options` say how durable its commit is.
    pub fn begin_with(&self, write_options: &WriteOptions, options: &TransactionOptions) -> Transaction {
        let owner = new_owner(&self.shared, options);
        let batch = IndexedBatch::with_marker(IndexedBatchOptions {
            overwrite_key: true,
            ..IndexedBatchOptions::default()
        });
        let manager = Manager::Pessimistic(self.shared.clone());
        let mut transaction = Transaction::new(manager, owner, batch, write_options);
        transaction.configure(&self.shared, options);
        transaction
    }

    /// Transactions that are prepared and not decided, and that nobody has in hand: they were left so when the database was closed
    /// or crashed, or were dropped. They hold no locks; decide them before others touch their keys. Their decisions are synced.
    /// Writes to a column family that is gone are left out.
    ///
    /// # Errors
    /// Corruption if the writes of one make no sense; then all are still there for the next call.
    pub fn prepared_transactions(&self) -> Result<Vec<Transaction>> {
        let versions = &self.shared.db.core().versions;
        let found = versions.state.lock().prepared.take_over();
        let rebuilt: Vec<_> =
            found.iter().map(|(name, wal, writes)| (name, self.rebuild(name, *wal, writes))).collect();
        if rebuilt.iter().any(|(_, transaction)| transaction.is_err()) {
            let failed = rebuilt.iter().filter(|(_, transaction)| transaction.is_err());
            let mut state = versions.state.lock();
            // The others give themselves back when they are dropped.
            failed.for_each(|(name, _)| state.prepared.leave(name));
        }
        rebuilt.into_iter().map(|(_, transaction)| transaction).collect()
    }

    /// The one of [`TransactionDb::prepared_transactions`] with this name; `None` if there is none, or somebody has it in hand.
    ///
    /// # Errors
    /// Corruption if its writes make no sense; then it is still there for the next call.
    pub fn prepared_transaction(&self, name: impl AsRef<[u8]>) -> Result<Option<Transaction>> {
        let (name, versions) = (name.as_ref(), &self.shared.db.core().versions);
        let found = versions.state.lock().prepared.take_over_one(name);
        let Some((wal, writes)) = found else { return Ok(None) };
        let rebuilt = self.rebuild(name, wal, &writes);
        if rebuilt.is_err() {
            versions.state.lock().prepared.leave(name);
        }
        rebuilt.map(Some)
    }

    fn rebuild(&self, name: &[u8], wal: FileNumber, writes: &WriteBatch) -> Result<Transaction> {
        let options = TransactionOptions { skip_concurrency_control: true, ..TransactionOptions::default() };
        let write_options = WriteOptions { sync: true, ..WriteOptions::default() };
        let mut transaction = self.begin_with(&write_options, &options);
        transaction.take_name(&self.shared, name)?;
        let mut known = WriteBatch::new();
        for record in writes.iter() {
            let record = record?;
            if self.shared.db.core().column_family(record.cf).is_some() {
                known.push(record);
            }
        }
        transaction.rebuild_from(&known)?;
        transaction.log_number = wal.0;
        transaction.owner.set_state(TransactionState::Prepared);
        Ok(transaction)
    }

    /// Creates a column family, as [`Db::create_column_family`].
    ///
    /// # Errors
    /// As there.
    pub fn create_column_family(&self, descriptor: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
        self.create_with(descriptor.clone(), |descriptor| self.shared.db.create_column_family(&descriptor))
    }

    /// Creates a column family of exported tables, as [`Db::create_column_family_with_import`].
    ///
    /// # Errors
    /// As there.
    pub fn create_column_family_with_import(
        &self,
        family: impl Into<ColumnFamilyDescriptor>,
        options: ImportColumnFamilyOptions,
        exports: &[&ExportedColumnFamily],
    ) -> Result<ColumnFamilyHandle> {
        self.create_with(family.into(), |descriptor| {
            self.shared.db.create_column_family_with_import(descriptor, options, exports)
        })
    }

    /// Has `create` make a column family that keeps the history that conflicts are looked for in, and gives it locks.
    fn create_with(
        &self,
        mut descriptor: ColumnFamilyDescriptor,
        create: impl FnOnce(ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle>,
    ) -> Result<ColumnFamilyHandle> {
        keep_history(std::slice::from_mut(&mut descriptor));
        let cf = create(descriptor)?;
        self.shared.locks.add_family(cf.id());
        Ok(cf)
    }

    /// Drops a column family and its locks, as [`Db::drop_column_family`].
    ///
    /// # Errors
    /// As there.
    pub fn drop_column_family(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        self.shared.db.drop_column_family(cf)?;
        self.shared.locks.remove_family(cf.id());
        Ok(())
    }

    shorter_forms! {
        /// Sets `key` to `value`: a transaction of its own.
        ///
        /// # Errors
        /// [Those of single writes](#errors-of-single-writes).
        TransactionDb: put, put_cf, put_with
            => put_cf_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`TransactionDb::put`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of single writes](#errors-of-single-writes).
    pub fn put_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_sizes(key, value)?;
        self.write_one(options, cf, key, |batch| batch.put_id(cf.id(), key, value))
    }

    shorter_forms! {
        /// Adds a merge operand to `key`: a transaction of its own.
        ///
        /// # Errors
        /// [Those of single writes](#errors-of-single-writes).
        TransactionDb: merge, merge_cf, merge_with
            => merge_cf_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`TransactionDb::merge`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of single writes](#errors-of-single-writes).
    pub fn merge_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        check_sizes(key, operand)?;
        self.write_one(options, cf, key, |batch| batch.merge_id(cf.id(), key, operand))
    }

    shorter_forms! {
        /// Deletes `key`; that it does not exist is no error: a transaction of its own.
        ///
        /// # Errors
        /// [Those of single writes](#errors-of-single-writes).
        TransactionDb: delete, delete_cf, delete_with
            => delete_cf_with(&self, key: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`TransactionDb::delete`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of single writes](#errors-of-single-writes).
    pub fn delete_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        check_sizes(key, &[])?;
        self.write_one(options, cf, key, |batch| batch.delete_id(cf.id(), key))
    }

    fn default_family(&self) -> &ColumnFamilyHandle {
        self.shared.db.default_column_family()
    }

    fn write_one(
        &self,
        options: &WriteOptions,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        fill: impl FnOnce(&mut WriteBatch),
    ) -> Result<()> {
        self.shared.db.core().ctx.check_owns(cf)?;
        let mut batch = WriteBatch::new();
        batch.reserve_marker();
        fill(&mut batch);
        self.write_locked(options, [(cf.id(), key.to_vec())].into(), &mut batch)
    }

    /// Commits `batch`, as a transaction of its own: its keys are locked in their order. It stays as it is, as with [`Db::write`].
    ///
    /// # Errors
    /// [Those of single writes](#errors-of-single-writes); InvalidArgument for deletions of ranges, which cannot be locked.
    pub fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// [`TransactionDb::write`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn write_with(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        let mut keys = BTreeSet::new();
        for record in batch.iter() {
            let record = record?;
            let key = match record.op {
                Op::Put { key, .. } | Op::PutEntity { key, .. } | Op::Merge { key, .. } => key,
                Op::Delete { key } | Op::SingleDelete { key } => key,
                Op::DeleteRange { .. } => {
                    return Err(Error::invalid_argument("DeleteRangeCF not implemented"));
                }
            };
            keys.insert((record.cf, key.to_vec()));
        }
        if self.shared.options.skip_concurrency_control {
            return self.shared.db.write_with(batch, options);
        }
        self.write_locked(options, keys, batch)
    }

    fn write_locked(
        &self,
        options: &WriteOptions,
        keys: BTreeSet<(CfId, Vec<u8>)>,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let timeout = self.shared.options.default_lock_timeout.saturating_mul(1000);
        let held = HeldKeys::lock(&self.shared.locks, keys, timeout)?;
        let written = self.shared.db.write_with(batch, options);
        drop(held);
        written
    }

    /// The locks that are held, by column family and key.
    pub fn locks(&self) -> Vec<LockInfo> {
        self.shared.locks.locks()
    }

    /// Remembers `count` deadlocks from here on, in place of `max_num_deadlocks` of the options; the oldest beyond that are forgotten.
    pub fn set_deadlock_buffer_size(&self, count: usize) {
        self.shared.locks.set_deadlock_buffer_size(count);
    }

    /// The deadlocks that are remembered, the last one first.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.shared.locks.deadlocks()
    }
}

/// Keys that are locked for as long as this lives.
struct HeldKeys<'l> {
    locks: &'l LockManager,
    owner: Arc<Owner>,
    keys: Vec<(CfId, Vec<u8>)>,
}

impl<'l> HeldKeys<'l> {
    fn lock(
        locks: &'l LockManager,
        keys: BTreeSet<(CfId, Vec<u8>)>,
        timeout_micros: i64,
    ) -> Result<HeldKeys<'l>> {
        let mut held = HeldKeys { locks, owner: Owner::new(new_id(), 0, None), keys: Vec::new() };
        for (column_family, key) in keys {
            let request = LockRequest { column_family, key: &key, exclusive: true };
            locks.lock(&held.owner, request, timeout_micros)?;
            held.keys.push((column_family, key));
        }
        Ok(held)
    }
}

impl Drop for HeldKeys<'_> {
    fn drop(&mut self) {
        self.keys.iter().for_each(|(cf, key)| self.locks.unlock(&self.owner, *cf, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::Env;

    #[test]
    fn a_prepared_transaction_is_found_by_its_name_unless_somebody_has_it() {
        let env = Env::memory();
        let open = || {
            let builder = Db::builder("/db").env(env.clone()).create_if_missing(true);
            TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap()
        };
        let db = open();
        let mut txn = db.begin();
        txn.set_name("one").unwrap();
        txn.put("a", "1").unwrap();
        assert_eq!(txn.log_number(), 0);
        txn.prepare().unwrap();
        let wal = txn.log_number();
        assert!(wal > 0);
        txn.set_log_number(7);
        assert_eq!(txn.log_number(), 7);
        assert!(db.prepared_transaction("one").unwrap().is_none(), "it is in hand");
        drop(txn);
        assert!(db.prepared_transaction("two").unwrap().is_none());
        let found = db.prepared_transaction("one").unwrap().unwrap();
        assert_eq!((found.name(), found.log_number()), (&b"one"[..], wal));
        assert!(db.prepared_transactions().unwrap().is_empty(), "it is in hand again");
        drop(found);
        drop(db);
        let db = open();
        let mut found = db.prepared_transaction("one").unwrap().unwrap();
        assert!(found.log_number() > 0);
        found.commit().unwrap();
        assert_eq!(db.db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
        assert!(db.prepared_transaction("one").unwrap().is_none());
        found.reinitialize();
        assert_eq!(found.log_number(), 0);
    }
}
