//! Writes of a transaction: each in the default column family, and in one that a handle names.

use super::transaction::{Transaction, Validate};
use crate::batch::codec::{WriteBatch, check_sizes};
use crate::batch::writes::slices;
use crate::column_family::ColumnFamilyHandle;
use outcrop_base::Result;

/// # Writing
///
/// A write goes into the transaction's batch; nobody else sees it before [`Transaction::commit`]. Each has two forms: `put(key, value)` in
/// the default column family, `put_cf(&cf, key, value)` in another. How durable it becomes is said once, where the transaction begins:
/// [`Transaction::set_write_options`].
///
/// # Errors of a transaction's writes
/// All of them fail, with the batch as it was before, by:
/// - TimedOut: another transaction holds the key for too long. Busy: waiting for it would be a deadlock, or the key was written after
///   the transaction's snapshot. Both only of transactions that lock keys; optimistic ones learn of conflicts at commit.
/// - Aborted: its batch would be longer than [`crate::TransactionOptions::max_write_batch_size`], or too many keys are locked.
/// - InvalidArgument: the transaction is prepared, key or value is longer than 4 GiB, or the column family is of another database.
impl Transaction {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_slices(&self.default_family().clone(), key.as_ref(), value.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::put`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn put_cf(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_slices(cf, key.as_ref(), value.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::put`], whether or not the key was written after the snapshot.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn put_untracked(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_slices(&self.default_family().clone(), key.as_ref(), value.as_ref(), Validate::Nothing)
    }

    /// [`Transaction::put_untracked`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn put_untracked_cf(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_slices(cf, key.as_ref(), value.as_ref(), Validate::Nothing)
    }

    fn put_slices(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        value: &[u8],
        validate: Validate,
    ) -> Result<()> {
        check_sizes(key, value)?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.put_cf(cf, key, value)?,
            false => self.add_unindexed(|batch| batch.put_id(cf.id(), key, value))?,
        }
        self.counts.puts += 1;
        Ok(())
    }

    /// Sets `key` to a wide-column entity of `columns`, (name, value) each, in any order. The column with the empty name is what
    /// readers of plain values see.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes); InvalidArgument if a name comes twice.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_slices(&self.default_family().clone(), key.as_ref(), &slices(columns))
    }

    /// [`Transaction::put_entity`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn put_entity_cf<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_slices(cf, key.as_ref(), &slices(columns))
    }

    fn put_entity_slices(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        columns: &[(&[u8], &[u8])],
    ) -> Result<()> {
        self.touch_to_write(cf, key, Validate::Snapshot)?;
        match self.indexing {
            true => self.batch.put_entity_cf(cf, key, columns)?,
            false => self.batch.add_unindexed(|batch| batch.put_entity_id(cf.id(), key, columns))?,
        }
        self.counts.put_entities += 1;
        Ok(())
    }

    /// Adds a merge operand to `key`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_slices(&self.default_family().clone(), key.as_ref(), operand.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::merge`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn merge_cf(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_slices(cf, key.as_ref(), operand.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::merge`], whether or not the key was written after the snapshot.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn merge_untracked(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_slices(&self.default_family().clone(), key.as_ref(), operand.as_ref(), Validate::Nothing)
    }

    /// [`Transaction::merge_untracked`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn merge_untracked_cf(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_slices(cf, key.as_ref(), operand.as_ref(), Validate::Nothing)
    }

    fn merge_slices(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        operand: &[u8],
        validate: Validate,
    ) -> Result<()> {
        check_sizes(key, operand)?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.merge_cf(cf, key, operand)?,
            false => self.add_unindexed(|batch| batch.merge_id(cf.id(), key, operand))?,
        }
        self.counts.merges += 1;
        Ok(())
    }

    /// Deletes `key`; that it does not exist is no error.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(&self.default_family().clone(), key.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::delete`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn delete_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(cf, key.as_ref(), Validate::Snapshot)
    }

    /// [`Transaction::delete`], whether or not the key was written after the snapshot.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn delete_untracked(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(&self.default_family().clone(), key.as_ref(), Validate::Nothing)
    }

    /// [`Transaction::delete_untracked`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn delete_untracked_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(cf, key.as_ref(), Validate::Nothing)
    }

    fn delete_slice(&mut self, cf: &ColumnFamilyHandle, key: &[u8], validate: Validate) -> Result<()> {
        check_sizes(key, &[])?;
        self.touch_to_write(cf, key, validate)?;
        match self.indexing {
            true => self.batch.delete_cf(cf, key)?,
            false => self.add_unindexed(|batch| batch.delete_id(cf.id(), key))?,
        }
        self.counts.deletes += 1;
        Ok(())
    }

    /// Deletes the one earlier put of `key`: see [`WriteBatch::single_delete`] for what the caller promises.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_slice(&self.default_family().clone(), key.as_ref())
    }

    /// [`Transaction::single_delete`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-a-transactions-writes).
    pub fn single_delete_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_slice(cf, key.as_ref())
    }

    fn single_delete_slice(&mut self, cf: &ColumnFamilyHandle, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        self.touch_to_write(cf, key, Validate::Snapshot)?;
        match self.indexing {
            true => self.batch.single_delete_cf(cf, key)?,
            false => self.add_unindexed(|batch| batch.single_delete_id(cf.id(), key))?,
        }
        self.counts.deletes += 1;
        Ok(())
    }

    /// Adds a blob that goes to the WAL only.
    ///
    /// # Errors
    /// Aborted if the batch would be longer than it may.
    pub fn put_log_data(&mut self, blob: impl AsRef<[u8]>) -> Result<()> {
        self.batch.put_log_data(blob)
    }

    fn add_unindexed(&self, put: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        self.batch.add_unindexed(|batch| {
            put(batch);
            Ok(())
        })
    }

    pub(super) fn default_family(&self) -> &ColumnFamilyHandle {
        self.db.default_column_family()
    }
}
