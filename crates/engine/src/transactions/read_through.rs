//! Reading an indexed batch over a database: what the batch says of a key, and the database for what it does not say.

use crate::batch::indexed::{BatchValue, Family, IndexedBatch};
use crate::batch::overlay::{Bounds, FamilyParts, Overlay, RowSource};
use crate::column_family::ColumnFamilyHandle;
use crate::db::Db;
use crate::read::cursor::Cursor;
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use crate::write::options::WriteOptions;
use outcrop_base::Result;

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

impl IndexedBatch {
    /// The value of `key` in column family `cf` of `db` as it would be if this batch were written.
    ///
    /// # Errors
    /// As [`Db::get_cf`] and [`IndexedBatch::get`]; operands without anything below them are merged into nothing.
    pub fn get_over(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<PinnedValue>> {
        let operands = match self.look_up(&**cf, key)? {
            BatchValue::Value(value) => return Ok(Some(PinnedValue::owned(value))),
            BatchValue::Deleted => return Ok(None),
            BatchValue::Absent => return db.get_cf_with(cf, key, options),
            BatchValue::Merging(operands) => operands,
        };
        let base = db.get_cf_with(cf, key, options)?;
        let merged = Family::from(&**cf).merge(key, base.as_deref(), &operands)?;
        Ok(Some(PinnedValue::owned(merged)))
    }

    /// [`IndexedBatch::get_over`] of several keys; what the database is asked for it gives as of one moment.
    pub fn multi_get_over(
        &self,
        db: &Db,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let said: Vec<Result<BatchValue>> = pairs.iter().map(|(cf, key)| self.look_up(&***cf, key)).collect();
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
                let merged = Family::from(&**cf).merge(key, base.as_deref(), &operands)?;
                Ok(Some(PinnedValue::owned(merged)))
            }
        };
        said.into_iter().zip(pairs).map(result).collect()
    }

    /// An iterator over column family `cf` of `db` with this batch laid over it. The database is seen as of now, or as
    /// `options` say; the batch as it is while the iterator moves.
    ///
    /// # Errors
    /// As [`Db::iter_cf`].
    pub fn iter_over(
        &self,
        db: &Db,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
    ) -> Result<Overlay<Cursor>> {
        let bounds =
            Bounds { lower: options.iterate_lower_bound.clone(), upper: options.iterate_upper_bound.clone() };
        Ok(self.overlay(Some(FamilyParts::from(&**cf)), db.cursor_cf_with(cf, options)?, bounds))
    }

    /// Commits the batch to `db`, atomically. It stays as it is, and can be written again.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_to(&self, db: &Db, options: &WriteOptions) -> Result<()> {
        self.with_batch(|batch| db.write_with(batch, options))
    }
}
