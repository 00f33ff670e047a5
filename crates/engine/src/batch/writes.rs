//! Filling a batch: each write in the default column family, and in one that a handle names.

use super::codec::{WriteBatch, check_sizes};
use crate::column_family::ColumnFamilyHandle;
use outcrop_base::{CfId, Result};

/// # Panics
/// Each method panics if a key, value or operand is longer than 4 GiB, which a batch cannot hold.
impl WriteBatch {
    /// Sets `key` to `value`.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = checked(key.as_ref(), value.as_ref());
        self.put_id(CfId::DEFAULT, key, value);
    }

    /// [`WriteBatch::put`] in column family `cf`.
    pub fn put_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = checked(key.as_ref(), value.as_ref());
        self.put_id(cf.id(), key, value);
    }

    /// Deletes `key`; that it does not exist is no error.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.delete_id(CfId::DEFAULT, checked(key.as_ref(), &[]).0);
    }

    /// [`WriteBatch::delete`] in column family `cf`.
    pub fn delete_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) {
        self.delete_id(cf.id(), checked(key.as_ref(), &[]).0);
    }

    /// Deletes the single earlier put of `key`: cheaper than [`WriteBatch::delete`], as both vanish when a compaction meets them. The
    /// caller promises that there is at most one put since the last delete, and no merge.
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) {
        self.single_delete_id(CfId::DEFAULT, checked(key.as_ref(), &[]).0);
    }

    /// [`WriteBatch::single_delete`] in column family `cf`.
    pub fn single_delete_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) {
        self.single_delete_id(cf.id(), checked(key.as_ref(), &[]).0);
    }

    /// Deletes every key from `begin` up to `end`, exclusive. Writing the batch fails with InvalidArgument if `end` comes before
    /// `begin`.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) {
        let (begin, end) = checked(begin.as_ref(), end.as_ref());
        self.delete_range_id(CfId::DEFAULT, begin, end);
    }

    /// [`WriteBatch::delete_range`] in column family `cf`.
    pub fn delete_range_cf(
        &mut self,
        cf: &ColumnFamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) {
        let (begin, end) = checked(begin.as_ref(), end.as_ref());
        self.delete_range_id(cf.id(), begin, end);
    }

    /// Adds `operand` to `key`. Writing the batch fails with InvalidArgument if the column family has no merge operator.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        let (key, operand) = checked(key.as_ref(), operand.as_ref());
        self.merge_id(CfId::DEFAULT, key, operand);
    }

    /// [`WriteBatch::merge`] in column family `cf`.
    pub fn merge_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        let (key, operand) = checked(key.as_ref(), operand.as_ref());
        self.merge_id(cf.id(), key, operand);
    }

    /// Sets `key` to a wide-column entity of `columns`, (name, value) each, in any order. The column with the empty name is what
    /// readers of plain values see.
    ///
    /// # Errors
    /// InvalidArgument if a name comes twice, or the columns together are longer than 4 GiB; nothing is then added.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_id(CfId::DEFAULT, checked(key.as_ref(), &[]).0, &slices(columns))
    }

    /// [`WriteBatch::put_entity`] in column family `cf`.
    ///
    /// # Errors
    /// InvalidArgument if a name comes twice, or the columns together are longer than 4 GiB; nothing is then added.
    pub fn put_entity_cf<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_id(cf.id(), checked(key.as_ref(), &[]).0, &slices(columns))
    }
}

/// Columns as the codec takes them.
pub(crate) fn slices<N: AsRef<[u8]>, V: AsRef<[u8]>>(columns: &[(N, V)]) -> Vec<(&[u8], &[u8])> {
    columns.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect()
}

#[inline]
#[track_caller]
fn checked<'a>(key: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if let Err(error) = check_sizes(key, value) {
        panic!("{error}");
    }
    (key, value)
}
