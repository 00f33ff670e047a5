//! Reading an indexed batch over a database: what the batch says of a key, and the database for what it does not say.

use crate::batch::indexed::{BatchValue, Family, IndexedBatch};
use crate::batch::overlay::{Bounds, FamilyParts, Overlay, RowSource};
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::db::Db;
use crate::read::cursor::Cursor;
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use crate::write::options::WriteOptions;
use outcrop_base::{Error, Result};

impl RowSource for Cursor {
    fn valid(&self) -> bool {
        Cursor::valid(self)
    }

    fn status(&self) -> Result<()> {
        Cursor::status(self)
    }

    fn key(&self) -> &[u8] {
        Cursor::key(self)
    }

    fn value(&self) -> &[u8] {
        Cursor::value(self)
    }

    fn seek_to_first(&mut self) {
        Cursor::seek_to_first(self);
    }

    fn seek_to_last(&mut self) {
        Cursor::seek_to_last(self);
    }

    fn seek(&mut self, target: &[u8]) {
        Cursor::seek(self, target);
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        Cursor::seek_for_prev(self, target);
    }

    fn next(&mut self) {
        Cursor::next(self);
    }

    fn prev(&mut self) {
        Cursor::prev(self);
    }
}

/// Checks that a read says its timestamp, also where the batch alone has the key.
///
/// # Errors
/// InvalidArgument if keys of `cf` have timestamps and `options` none.
fn check_timestamp(cf: &ColumnFamily, options: &ReadOptions) -> Result<()> {
    if cf.has_timestamps() && options.timestamp.is_none() {
        return Err(Error::invalid_argument("Must specify timestamp"));
    }
    Ok(())
}

/// # Over a database
///
/// `get_over`, `multi_get_over` and `cursor_over` read the batch laid over a database: what they find is what the database would have if the
/// batch were written. Each has the four forms of [`Db::get`], with the database first: `get_over(&db, key)`, `get_over_cf(&db, &cf, key)`,
/// `get_over_with(&db, key, &options)`, `get_over_cf_with(&db, &cf, key, &options)`.
///
/// ```
/// # use outcrop::*;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("apple", "green")?;
/// db.put("pear", "yellow")?;
/// let batch = IndexedBatch::default();
/// batch.put("apple", "red")?;
/// assert_eq!(batch.get_over(&db, "apple")?.as_deref(), Some(&b"red"[..]));
/// assert_eq!(batch.get_over(&db, "pear")?.as_deref(), Some(&b"yellow"[..]));
/// batch.write_to(&db)?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # outcrop::Result::Ok(())
/// ```
impl IndexedBatch {
    /// The value of `key` as it would be in `db` if this batch were written. Operands without anything below them are merged into
    /// nothing.
    ///
    /// # Errors
    /// As [`Db::get`] and [`IndexedBatch::look_up`].
    pub fn get_over(&self, db: &Db, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.get_over_slice(db, db.default_column_family(), key.as_ref(), ReadOptions::by_default())
    }

    /// [`IndexedBatch::get_over`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn get_over_cf(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PinnedValue>> {
        self.get_over_slice(db, cf, key.as_ref(), ReadOptions::by_default())
    }

    /// [`IndexedBatch::get_over`] with the database read under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn get_over_with(
        &self,
        db: &Db,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.get_over_slice(db, db.default_column_family(), key.as_ref(), options)
    }

    /// [`IndexedBatch::get_over`] in column family `cf`, with the database read under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn get_over_cf_with(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.get_over_slice(db, cf, key.as_ref(), options)
    }

    fn get_over_slice(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        check_timestamp(cf, options)?;
        let operands = match self.look_up_cf(cf, key)? {
            BatchValue::Value(value) => return Ok(Some(PinnedValue::owned(value))),
            BatchValue::Deleted => return Ok(None),
            BatchValue::Absent => return db.get_cf_with(cf, key, options),
            BatchValue::Merging(operands) => operands,
        };
        let base = db.get_cf_with(cf, key, options)?;
        let merged = Family::from(cf).merge(key, base.as_deref(), &operands)?;
        Ok(Some(PinnedValue::owned(merged)))
    }

    /// [`IndexedBatch::get_over`] of several keys. The database gives what it is asked for as of one moment.
    ///
    /// # Errors
    /// Each key has its own: as [`IndexedBatch::get_over`].
    pub fn multi_get_over<K: AsRef<[u8]>>(&self, db: &Db, keys: &[K]) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_over_cf(db, db.default_column_family(), keys)
    }

    /// [`IndexedBatch::multi_get_over`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_over_cf<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        keys: &[K],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.multi_get_over_cf_with(db, cf, &keys, ReadOptions::by_default())
    }

    /// [`IndexedBatch::multi_get_over`] with the database read under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_over_with(
        &self,
        db: &Db,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_over_cf_with(db, db.default_column_family(), keys, options)
    }

    /// [`IndexedBatch::multi_get_over`] in column family `cf`, with the database read under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_over_cf_with(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let pairs: Vec<_> = keys.iter().map(|key| (cf, *key)).collect();
        self.multi_get_pairs_over_with(db, &pairs, options)
    }

    /// [`IndexedBatch::multi_get_over`] of (column family, key) each.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_over(
        &self,
        db: &Db,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_pairs_over_with(db, pairs, ReadOptions::by_default())
    }

    /// [`IndexedBatch::multi_get_pairs_over`] with the database read under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_over_with(
        &self,
        db: &Db,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let look_up = |(cf, key): &(&ColumnFamilyHandle, &[u8])| {
            check_timestamp(cf, options).and_then(|()| self.look_up_cf(*cf, key))
        };
        let said: Vec<Result<BatchValue>> = pairs.iter().map(look_up).collect();
        let asked =
            |said: &Result<BatchValue>| matches!(said, Ok(BatchValue::Absent | BatchValue::Merging(_)));
        let places: Vec<usize> = (0..pairs.len()).filter(|&place| asked(&said[place])).collect();
        let below: Vec<_> = places.iter().map(|&place| pairs[place]).collect();
        let mut below = db.multi_get_pairs_with(&below, options).into_iter();
        let result = |(said, &(cf, key)): (Result<BatchValue>, &(&ColumnFamilyHandle, &[u8]))| match said? {
            BatchValue::Value(value) => Ok(Some(PinnedValue::owned(value))),
            BatchValue::Deleted => Ok(None),
            BatchValue::Absent => below.next().expect("it was asked for"),
            BatchValue::Merging(operands) => {
                let base = below.next().expect("it was asked for")?;
                let merged = Family::from(cf).merge(key, base.as_deref(), &operands)?;
                Ok(Some(PinnedValue::owned(merged)))
            }
        };
        said.into_iter().zip(pairs).map(result).collect()
    }

    /// A cursor over `db` with this batch laid over it. The database is seen as of now; the batch as it is while the cursor moves.
    ///
    /// # Errors
    /// As [`Db::cursor`].
    pub fn cursor_over(&self, db: &Db) -> Result<Overlay<Cursor>> {
        self.cursor_over_cf_with(db, db.default_column_family(), ReadOptions::by_default())
    }

    /// [`IndexedBatch::cursor_over`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn cursor_over_cf(&self, db: &Db, cf: &ColumnFamilyHandle) -> Result<Overlay<Cursor>> {
        self.cursor_over_cf_with(db, cf, ReadOptions::by_default())
    }

    /// [`IndexedBatch::cursor_over`] under `options`: their bounds hold for both, and the database is seen as of their snapshot.
    ///
    /// # Errors
    /// As there.
    pub fn cursor_over_with(&self, db: &Db, options: &ReadOptions) -> Result<Overlay<Cursor>> {
        self.cursor_over_cf_with(db, db.default_column_family(), options)
    }

    /// [`IndexedBatch::cursor_over_with`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn cursor_over_cf_with(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
    ) -> Result<Overlay<Cursor>> {
        Ok(self.overlay(Some(FamilyParts::from(cf)), db.cursor_cf_with(cf, options)?, Bounds::of(options)))
    }

    /// Commits the batch to `db`, atomically. It stays as it is, and can be written again.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_to(&self, db: &Db) -> Result<()> {
        self.write_to_with(db, &WriteOptions::default())
    }

    /// [`IndexedBatch::write_to`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn write_to_with(&self, db: &Db, options: &WriteOptions) -> Result<()> {
        self.with_batch(|batch| db.write_with(batch, options))
    }
}
