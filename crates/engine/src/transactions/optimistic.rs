//! A database with transactions that are checked when they are committed.
//!
//! Each remembers since when it knows the keys it touched. When it is committed, memtables tell whether one of them was written
//! since; how far they reach back is what `max_write_buffer_size_to_maintain` says.
//! Source: RocksDB `utilities/transactions/optimistic_transaction.cc`.

use super::buckets::LockBuckets;
use super::database::keep_history;
use super::locks::Owner;
use super::options::{OptimisticTransactionDbOptions, TakeSnapshot, ValidatePolicy};
use super::shared::{Optimistic, new_id};
use super::transaction::{Manager, Transaction};
use super::validation::{Reach, check_unchanged};
use crate::batch::codec::{Op, WriteBatch};
use crate::batch::indexed::{IndexedBatch, IndexedBatchOptions};
use crate::builder::DbBuilder;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::db::Db;
use crate::superversion::SuperVersion;
use crate::write::options::WriteOptions;
use outcrop_base::{CfId, Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A database with transactions that lock nothing and fail to commit if others were faster; RocksDB's `OptimisticTransactionDB`.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = OptimisticTransactionDb::open_with(builder, OptimisticTransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// txn.put("apple", "red")?;
/// db.db().put("apple", "green")?;
/// assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Busy);
/// # outcrop::Result::Ok(())
/// ```
pub struct OptimisticTransactionDb {
    shared: Arc<Optimistic>,
}

impl OptimisticTransactionDb {
    /// Opens the database at `path`, which must exist and have no column family but "default", under default options: as [`Db::open`]. For
    /// all else there is [`OptimisticTransactionDb::open_with`].
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<OptimisticTransactionDb> {
        OptimisticTransactionDb::open_with(Db::builder(path), OptimisticTransactionDbOptions::default())
    }

    /// Opens the database that `builder` describes.
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open_with(
        builder: DbBuilder,
        transactions: OptimisticTransactionDbOptions,
    ) -> Result<OptimisticTransactionDb> {
        let db = Arc::new(builder.with_families(keep_history).open()?);
        let own = || Arc::new(LockBuckets::new(transactions.occ_lock_buckets as usize));
        let buckets = transactions.shared_lock_buckets.unwrap_or_else(own);
        let shared = Optimistic { db, policy: transactions.validate_policy, buckets, id: new_id() };
        Ok(OptimisticTransactionDb { shared: Arc::new(shared) })
    }

    /// The database. With [`ValidatePolicy::Parallel`] a write to it that falls between check and write of a transaction is not
    /// noticed.
    pub fn db(&self) -> &Arc<Db> {
        &self.shared.db
    }

    /// Begins a transaction, under default options and without a snapshot.
    pub fn begin(&self) -> Transaction {
        self.begin_with(&WriteOptions::default(), TakeSnapshot::No)
    }

    /// [`OptimisticTransactionDb::begin`]; `write_options` say how durable its commit is. With [`TakeSnapshot::AtBegin`], keys that were
    /// written after this moment cannot be committed.
    pub fn begin_with(&self, write_options: &WriteOptions, snapshot: TakeSnapshot) -> Transaction {
        let batch =
            IndexedBatch::new(IndexedBatchOptions { overwrite_key: true, ..IndexedBatchOptions::default() });
        let manager = Manager::Optimistic(self.shared.clone());
        let mut transaction = Transaction::new(manager, Owner::new(0, 0, None), batch, write_options);
        if snapshot == TakeSnapshot::AtBegin {
            transaction.set_snapshot();
        }
        transaction
    }

    /// Creates a column family, as [`Db::create_column_family`].
    ///
    /// # Errors
    /// As there.
    pub fn create_column_family(&self, descriptor: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
        let mut descriptor = [descriptor.clone()];
        keep_history(&mut descriptor);
        self.shared.db.create_column_family(&descriptor[0])
    }

    /// Commits `batch`, as [`Db::write`].
    ///
    /// # Errors
    /// As there; NotSupported for deletions of ranges, which transactions would not notice.
    pub fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// [`OptimisticTransactionDb::write`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn write_with(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        for record in batch.iter() {
            if matches!(record?.op, Op::DeleteRange { .. }) {
                return Err(Error::not_supported(""));
            }
        }
        self.shared.db.write_with(batch, options)
    }
}

impl Transaction {
    /// Begins an optimistic transaction anew, as [`OptimisticTransactionDb::begin_with`] would; what was not committed is gone.
    pub fn reinitialize_optimistic_with(&mut self, write_options: &WriteOptions, snapshot: TakeSnapshot) {
        self.begin_anew(Owner::new(0, 0, None), write_options);
        if snapshot == TakeSnapshot::AtBegin {
            self.set_snapshot();
        }
    }

    pub(super) fn commit_optimistic(&mut self, shared: &Optimistic) -> Result<()> {
        match shared.policy {
            ValidatePolicy::Serial => self.batch.with_batch(|batch| {
                shared.db.write_if(batch, &self.write_options, |_| self.check_keys(shared))
            })?,
            ValidatePolicy::Parallel => {
                let _held = shared.buckets.lock(&self.buckets_of_keys(shared));
                self.check_keys(shared)?;
                self.batch.write_to_with(&shared.db, &self.write_options)?;
            }
        }
        self.clear();
        Ok(())
    }

    fn buckets_of_keys(&self, shared: &Optimistic) -> BTreeSet<usize> {
        // The same key of another column family or database is another key.
        // A number and not an address: the order of locks is the same in a process that does the same.
        let seed = |cf: CfId| shared.id.wrapping_add(0xB83C_07FB_C6CE_D699_u64.wrapping_mul(u64::from(cf.0)));
        self.tracker.iter().map(|((cf, key), _)| shared.buckets.bucket_of(seed(*cf), key)).collect()
    }

    /// Fails if a key was written since it is known.
    fn check_keys(&self, shared: &Optimistic) -> Result<()> {
        let mut current: Option<(CfId, ColumnFamilyHandle, Arc<SuperVersion>)> = None;
        for ((id, key), tracked) in self.tracker.iter() {
            if current.as_ref().is_none_or(|(known, ..)| known != id) {
                let cf = shared.db.core().column_family(*id);
                let gone = || Error::invalid_argument(format!("Could not access column family {id}"));
                let cf = cf.ok_or_else(gone)?;
                let sources = cf.superversion.load_full();
                current = Some((*id, cf, sources));
            }
            let (_, cf, sources) = current.as_ref().expect("it was set above");
            check_unchanged(cf, sources, key, tracked.seq, Reach::Memory)?;
        }
        Ok(())
    }
}
