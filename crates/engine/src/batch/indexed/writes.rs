//! Filling an indexed batch: each write in the default column family, and in one that a handle names.

use super::{Family, IndexedBatch};
use crate::batch::codec::{check_sizes, check_value_len};
use crate::batch::writes::slices;
use outcrop_base::{CfId, Error, Result, Timestamp};

/// # Writing
///
/// Each write has two forms: `put(key, value)` in the default column family, `put_cf(&cf, key, value)` in another. The batch does not know the
/// default column family of any database: its keys are in the order of [`crate::IndexedBatchOptions::backup_comparator`], and what is merged
/// there cannot be read from the batch alone. Give its handle to the second form where it has an order or a merge operator of its own.
///
/// In a column family whose keys have timestamps each write awaits its own, which [`IndexedBatch::update_timestamps`] gives to all; the batch
/// can be read before, and cannot be written. For the default column family the batch must have been made with its comparator as the backup
/// comparator.
///
/// # Errors of an indexed batch's writes
/// All of them fail, with the batch as it was before, by:
/// - Aborted: it would be longer than [`crate::IndexedBatchOptions::max_bytes`].
/// - InvalidArgument: key, value or operand is longer than 4 GiB; or of the default column family, which is given by its handle, and of the
///   backup comparator only one has timestamps.
impl IndexedBatch {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_slices(Family::DEFAULT, key.as_ref(), value.as_ref())
    }

    /// [`IndexedBatch::put`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn put_cf<'f>(
        &self,
        cf: impl Into<Family<'f>>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_slices(cf.into(), key.as_ref(), value.as_ref())
    }

    fn put_slices(&self, family: Family<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        check_sizes(key, value)?;
        self.contents.write().add(family, key, |batch, cf, key| {
            batch.put_id(cf, key, value);
            Ok(())
        })
    }

    /// Adds a merge operand to `key`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_slices(Family::DEFAULT, key.as_ref(), operand.as_ref())
    }

    /// [`IndexedBatch::merge`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn merge_cf<'f>(
        &self,
        cf: impl Into<Family<'f>>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_slices(cf.into(), key.as_ref(), operand.as_ref())
    }

    fn merge_slices(&self, family: Family<'_>, key: &[u8], operand: &[u8]) -> Result<()> {
        check_sizes(key, operand)?;
        self.contents.write().add(family, key, |batch, cf, key| {
            batch.merge_id(cf, key, operand);
            Ok(())
        })
    }

    /// Deletes `key`; that it does not exist is no error.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(Family::DEFAULT, key.as_ref())
    }

    /// [`IndexedBatch::delete`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn delete_cf<'f>(&self, cf: impl Into<Family<'f>>, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_slice(cf.into(), key.as_ref())
    }

    fn delete_slice(&self, family: Family<'_>, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        self.contents.write().add(family, key, |batch, cf, key| {
            batch.delete_id(cf, key);
            Ok(())
        })
    }

    /// Deletes the one earlier put of `key`: see [`crate::WriteBatch::single_delete`] for what the caller promises.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_slice(Family::DEFAULT, key.as_ref())
    }

    /// [`IndexedBatch::single_delete`] in column family `cf`.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn single_delete_cf<'f>(&self, cf: impl Into<Family<'f>>, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_slice(cf.into(), key.as_ref())
    }

    fn single_delete_slice(&self, family: Family<'_>, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        self.contents.write().add(family, key, |batch, cf, key| {
            batch.single_delete_id(cf, key);
            Ok(())
        })
    }

    /// Sets `key` to a wide-column entity of `columns`, (name, value) each, in any order. The column with the empty name is what
    /// readers of plain values see.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes); InvalidArgument if a name comes twice, or the columns together are longer
    /// than 4 GiB.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_slices(Family::DEFAULT, key.as_ref(), &slices(columns))
    }

    /// [`IndexedBatch::put_entity`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn put_entity_cf<'f, N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        cf: impl Into<Family<'f>>,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_slices(cf.into(), key.as_ref(), &slices(columns))
    }

    fn put_entity_slices(&self, family: Family<'_>, key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<()> {
        check_sizes(key, &[])?;
        self.contents.write().add(family, key, |batch, cf, key| batch.put_entity_id(cf, key, columns))
    }

    /// Ranges cannot be deleted by an indexed batch.
    ///
    /// # Errors
    /// NotSupported; the batch is as it was.
    pub fn delete_range(&self, _begin: impl AsRef<[u8]>, _end: impl AsRef<[u8]>) -> Result<()> {
        Err(no_ranges())
    }

    /// [`IndexedBatch::delete_range`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn delete_range_cf<'f>(
        &self,
        _cf: impl Into<Family<'f>>,
        _begin: impl AsRef<[u8]>,
        _end: impl AsRef<[u8]>,
    ) -> Result<()> {
        Err(no_ranges())
    }

    /// Gives all writes in column families that `has_timestamps` names, by id, this timestamp. Reads of the batch find what they found.
    ///
    /// ```
    /// # use outcrop::*;
    /// # let prices = ColumnFamilyDescriptor::new("prices").with_comparator(Comparator::bytewise_with_timestamps());
    /// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
    /// # let db = builder.column_family(prices).create_missing_column_families(true).open()?;
    /// # let prices = db.column_family("prices").expect("it was opened");
    /// let batch = IndexedBatch::default();
    /// batch.put_cf(&prices, "apple", "3")?;
    /// assert!(batch.write_to(&db).is_err(), "its timestamp is not known yet");
    /// batch.update_timestamps(10.into(), |cf| cf == prices.id())?;
    /// batch.write_to(&db)?;
    /// let at_ten = ReadOptions::at_timestamp(10.into());
    /// assert_eq!(db.get_cf_with(&prices, "apple", &at_ten)?.as_deref(), Some(&b"3"[..]));
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// Corruption if a key is too short for one; nothing is then changed.
    pub fn update_timestamps(
        &self,
        timestamp: Timestamp,
        has_timestamps: impl Fn(CfId) -> bool,
    ) -> Result<()> {
        self.contents.write().update_timestamps(timestamp, has_timestamps)
    }

    /// Adds a blob that goes to the WAL only.
    ///
    /// # Errors
    /// [Those of its writes](#errors-of-an-indexed-batchs-writes).
    pub fn put_log_data(&self, blob: impl AsRef<[u8]>) -> Result<()> {
        let blob = blob.as_ref();
        check_value_len(blob.len())?;
        let mut contents = self.contents.write();
        let before = contents.batch.save_point();
        contents.batch.put_log_data(blob);
        contents.check_size(before)
    }
}

fn no_ranges() -> Error {
    Error::not_supported("DeleteRange unsupported in WriteBatchWithIndex")
}
