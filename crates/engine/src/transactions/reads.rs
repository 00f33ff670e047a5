//! Reads of a transaction: its own writes over what others have committed, plain and for update.

use super::rows::TransactionRows;
use super::tracking::Access;
use super::transaction::{LockMode, Transaction, Validate};
use crate::batch::overlay::Overlay;
use crate::column_family::ColumnFamilyHandle;
use crate::forms::shorter_forms;
use crate::read::cursor::Cursor;
use crate::read::ends::within_prefix;
use crate::read::key_range::{KeyBounds, KeyRange};
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use outcrop_base::{Error, Result};

/// # Reading
///
/// A read sees what this transaction would leave: its own writes over what others have committed, also after it began. To read as of one
/// moment, give [`ReadOptions`] a snapshot; [`Transaction::set_snapshot`] alone changes no read. Plain reads lock nothing; what is read to
/// be written is read by [`Transaction::get_for_update`].
///
/// Scans are iterators of rows from both ends, or cursors. Each read has four forms: `get(key)` in the default column family, `get_cf(&cf, key)` in another, and both with options last:
/// `get_with`, `get_cf_with`.
///
/// # Errors of a transaction's reads
/// Those of [`crate::Db::get`]; InvalidArgument if merge operands need an operator that the column family does not have.
///
/// # Errors of reads for update
/// Those of reads, and of [writes](#errors-of-a-transactions-writes), but for what concerns the batch.
impl Transaction {
    shorter_forms! {
        /// The value of `key`.
        ///
        /// # Errors
        /// [Those of its reads](#errors-of-a-transactions-reads).
        Transaction: get, get_cf, get_with
            => get_cf_with(&self, key: impl AsRef<[u8]>; ReadOptions) -> Result<Option<PinnedValue>>
    }

    /// [`Transaction::get`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of its reads](#errors-of-a-transactions-reads).
    pub fn get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.batch.get_over_cf_with(&self.db, cf, key, options)
    }

    /// The value of each of `keys`; what others have committed is seen as of one moment.
    ///
    /// # Errors
    /// Each key has its own: [those of its reads](#errors-of-a-transactions-reads).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over(&self.db, keys)
    }

    /// [`Transaction::multi_get`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[K],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over_cf(&self.db, cf, keys)
    }

    /// [`Transaction::multi_get`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_with(&self, keys: &[&[u8]], options: &ReadOptions) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over_with(&self.db, keys, options)
    }

    /// [`Transaction::multi_get`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over_cf_with(&self.db, cf, keys, options)
    }

    /// The value of each (column family, key); what others have committed is seen as of one moment.
    ///
    /// # Errors
    /// Each key has its own: [those of its reads](#errors-of-a-transactions-reads).
    pub fn multi_get_pairs(
        &self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_pairs_over(&self.db, pairs)
    }

    /// [`Transaction::multi_get_pairs`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_with(
        &self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_pairs_over_with(&self.db, pairs, options)
    }

    shorter_forms! {
        /// The value of a key that is about to be updated: the key is locked in `mode`, or checked when the transaction is committed.
        ///
        /// # Errors
        /// [Those of reads for update](#errors-of-reads-for-update).
        Transaction: get_for_update, get_for_update_cf, get_for_update_with
            => get_for_update_cf_with(&mut self, key: impl AsRef<[u8]>, mode: LockMode; ReadOptions) -> Result<Option<PinnedValue>>
    }

    /// [`Transaction::get_for_update`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of reads for update](#errors-of-reads-for-update).
    pub fn get_for_update_cf_with(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        mode: LockMode,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        let key = key.as_ref();
        self.touch(cf, key, Access::Read, mode, Validate::Snapshot)?;
        self.get_cf_with(cf, key, options)
    }

    shorter_forms! {
        /// [`Transaction::get_for_update`], whether or not the key was written after the transaction's snapshot. An optimistic transaction
        /// does not check it at all.
        ///
        /// # Errors
        /// [Those of reads for update](#errors-of-reads-for-update).
        Transaction: get_for_update_unvalidated, get_for_update_unvalidated_cf, get_for_update_unvalidated_with
            => get_for_update_unvalidated_cf_with(&mut self, key: impl AsRef<[u8]>, mode: LockMode; ReadOptions) -> Result<Option<PinnedValue>>
    }

    /// [`Transaction::get_for_update_unvalidated`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of reads for update](#errors-of-reads-for-update); InvalidArgument if `options` have a snapshot.
    pub fn get_for_update_unvalidated_cf_with(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        mode: LockMode,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        if options.snapshot.is_some() {
            return Err(Error::invalid_argument(
                "If do_validate is false then GetForUpdate with snapshot is not defined.",
            ));
        }
        let key = key.as_ref();
        self.touch(cf, key, Access::Read, mode, Validate::Nothing)?;
        self.get_cf_with(cf, key, options)
    }

    /// [`Transaction::get_for_update`] of several keys, exclusive. If one cannot be had, each gets that error; those before it stay
    /// locked.
    ///
    /// # Errors
    /// [Those of reads for update](#errors-of-reads-for-update).
    pub fn multi_get_for_update<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_for_update_cf(&self.default_family().clone(), keys)
    }

    /// [`Transaction::multi_get_for_update`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_for_update_cf<K: AsRef<[u8]>>(
        &mut self,
        cf: &ColumnFamilyHandle,
        keys: &[K],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.multi_get_for_update_cf_with(cf, &keys, ReadOptions::by_default())
    }

    /// [`Transaction::multi_get_for_update`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_for_update_with(
        &mut self,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_for_update_cf_with(&self.default_family().clone(), keys, options)
    }

    /// [`Transaction::multi_get_for_update`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_for_update_cf_with(
        &mut self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let pairs: Vec<_> = keys.iter().map(|key| (cf, *key)).collect();
        self.multi_get_pairs_for_update_with(&pairs, options)
    }

    /// [`Transaction::multi_get_for_update`] of (column family, key) each.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_for_update(
        &mut self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_pairs_for_update_with(pairs, ReadOptions::by_default())
    }

    /// [`Transaction::multi_get_pairs_for_update`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_for_update_with(
        &mut self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        for (cf, key) in pairs {
            let touched = self.touch(cf, key, Access::Read, LockMode::Exclusive, Validate::Snapshot);
            if let Err(error) = touched {
                return pairs.iter().map(|_| Err(error.clone())).collect();
            }
        }
        self.multi_get_pairs_with(pairs, options)
    }

    /// Takes one [`Transaction::get_for_update`] of `key` back. The key is unlocked if nothing else was done with it, since the
    /// last save point if there is one.
    pub fn undo_get_for_update(&mut self, key: impl AsRef<[u8]>) {
        self.undo_get_for_update_cf(&self.default_family().clone(), key);
    }

    /// [`Transaction::undo_get_for_update`] in column family `cf`.
    pub fn undo_get_for_update_cf(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if self.tracker.untrack_read(cf.id(), key) {
            self.unlock([(cf.id(), key.to_vec())]);
        }
    }

    shorter_forms! {
        /// All rows that this transaction would leave, in key order.
        Transaction: iter, iter_cf, iter_with
            => iter_cf_with(&self; ReadOptions) -> TransactionRows
    }

    /// [`Transaction::iter`] in column family `cf` under `options`, whose bounds hold.
    pub fn iter_cf_with(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> TransactionRows {
        self.range_cf_with(cf, .., options)
    }

    shorter_forms! {
        /// The rows of a range of keys, as `"a".."b"` or `..=key`, that this transaction would leave, in key order.
        Transaction: range, range_cf, range_with
            => range_cf_with(&self, range: impl KeyRange; ReadOptions) -> TransactionRows
    }

    /// [`Transaction::range`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn range_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        range: impl KeyRange,
        options: &ReadOptions,
    ) -> TransactionRows {
        self.scan(cf, Ok(range.into_bounds()), options)
    }

    shorter_forms! {
        /// The rows whose keys begin with `prefix` that this transaction would leave, in key order.
        ///
        /// Under a comparator of the application's own such keys need not lie together: its only item is then a NotSupported error.
        Transaction: prefix, prefix_cf, prefix_with
            => prefix_cf_with(&self, prefix: impl AsRef<[u8]>; ReadOptions) -> TransactionRows
    }

    /// [`Transaction::prefix`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn prefix_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        prefix: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> TransactionRows {
        let (bounds, options) = within_prefix(cf, prefix.as_ref(), options);
        self.scan(cf, bounds, &options)
    }

    fn scan(
        &self,
        cf: &ColumnFamilyHandle,
        bounds: Result<KeyBounds>,
        options: &ReadOptions,
    ) -> TransactionRows {
        let (committed, begun) = self.db.committed(cf, options);
        TransactionRows::new(committed, &self.batch, begun.and(bounds), options)
    }

    shorter_forms! {
        /// A cursor over what this transaction would leave. It sees what the transaction writes while the cursor lives; it must not be
        /// used after the transaction was committed or rolled back, also to a save point.
        ///
        /// # Errors
        /// As [`crate::Db::cursor`].
        Transaction: cursor, cursor_cf, cursor_with
            => cursor_cf_with(&self; ReadOptions) -> Result<Overlay<Cursor>>
    }

    /// [`Transaction::cursor`] in column family `cf` under `options`, whose bounds hold.
    ///
    /// # Errors
    /// As there.
    pub fn cursor_cf_with(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<Overlay<Cursor>> {
        self.batch.cursor_over_cf_with(&self.db, cf, options)
    }
}
