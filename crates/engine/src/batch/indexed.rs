//! A write batch with an index: what was put into it can be read before it is written.
//!
//! ```text
//! put a, put b, merge b    ->  batch: all records, in order     what is written
//!                              index: a; b newest first         what is read: alone, or over a database
//! ```
//! The batch keeps every record. With [`IndexedBatchOptions::overwrite_key`] the index has one entry for what was put or
//! deleted under a key, which moves to the newest record; merge operands have entries of their own.
//!
//! Concurrency: the contents are shared with iterators, which see what is added while they live.
//! Next: `indexed/writes.rs`, `indexed/reads.rs`; `key_index.rs`; `overlay.rs` for iterators. Source: RocksDB `utilities/write_batch_with_index`.

use super::codec::{self, Op, Record, WriteBatch};
use super::key_index::{Entry, KeyIndex};
use super::save_point::SavePoint;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::read::merge::{self, MergeOperands, Merged};
use outcrop_base::{CfId, Comparator, Error, ErrorKind, MergeOperator, Result, wide_columns};
use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How an [`IndexedBatch`] keeps what is put into it.
///
/// ```
/// # use outcrop::*;
/// let options = IndexedBatchOptions { max_bytes: 20, ..IndexedBatchOptions::default() };
/// let batch = IndexedBatch::new(options);
/// assert_eq!(batch.put("key", [0; 100]).unwrap_err().kind(), ErrorKind::Aborted);
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexedBatchOptions {
    /// The index has one entry for what was put or deleted under a key. Reads give the same; default false.
    pub overwrite_key: bool,
    /// Longest batch, in bytes of its wire form; 0, the default: no limit. A record that would exceed it is not added.
    pub max_bytes: usize,
    /// Order of keys that come without a column family.
    pub backup_comparator: Comparator,
}

/// A [`WriteBatch`] that can be read.
///
/// ```
/// # use outcrop::*;
/// let batch = IndexedBatch::new(IndexedBatchOptions::default());
/// batch.put("apple", "red")?;
/// assert_eq!(batch.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # outcrop::Result::Ok(())
/// ```
pub struct IndexedBatch {
    pub(super) contents: Arc<RwLock<Contents>>,
}

impl Default for IndexedBatch {
    fn default() -> Self {
        IndexedBatch::new(IndexedBatchOptions::default())
    }
}

/// The column family of a record: what a handle is turned into, or the parts of one that no handle names. Where the caller has none, keys
/// are in the order of the batch's backup comparator and nothing can be merged.
///
/// ```
/// # use outcrop::*;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let batch = IndexedBatch::default();
/// batch.put_cf(db.default_column_family(), "apple", "red")?;
/// assert_eq!(batch.count(), 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy)]
pub struct Family<'f> {
    /// Its id.
    pub id: CfId,
    /// Its order of keys.
    pub comparator: Option<&'f Comparator>,
    /// Its merge operator.
    operator: std::result::Result<&'f dyn MergeOperator, &'static str>,
}

impl Family<'_> {
    /// The default column family, of which nothing else is known.
    pub const DEFAULT: Family<'static> =
        Family { id: CfId(0), comparator: None, operator: Err("Must provide a column family") };
}

impl<'f> From<&'f ColumnFamily> for Family<'f> {
    fn from(cf: &'f ColumnFamily) -> Family<'f> {
        Family::new(cf.id(), &cf.keys, cf.merge_operator.as_deref())
    }
}

impl<'f> From<&'f ColumnFamilyHandle> for Family<'f> {
    fn from(cf: &'f ColumnFamilyHandle) -> Family<'f> {
        Family::from(&**cf)
    }
}

impl<'f> Family<'f> {
    /// A column family with these parts.
    pub fn new(id: CfId, comparator: &'f Comparator, operator: Option<&'f dyn MergeOperator>) -> Family<'f> {
        let operator = operator.ok_or("Merge operator must be set for column family");
        Family { id, comparator: Some(comparator), operator }
    }

    /// `base` with `operands`.
    ///
    /// # Errors
    /// InvalidArgument without a merge operator.
    pub fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &MergeOperands) -> Result<Vec<u8>> {
        let base = base.map_or(merge::Base::None, |base| merge::Base::Plain(base.into()));
        self.merged(key, &base, operands)
    }

    /// The value, or default column, of `base` with `operands`.
    fn merged(&self, key: &[u8], base: &merge::Base<'_>, operands: &MergeOperands) -> Result<Vec<u8>> {
        let operator = self.operator.map_err(Error::invalid_argument)?;
        match operands.apply(Some(operator), key, base)? {
            Merged::Plain(value) => Ok(value),
            Merged::Entity(entity) => default_column(&entity),
        }
    }
}

/// The sum of the records of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Merge operands above the base.
    pub operands: MergeOperands,
    /// The record below them.
    pub base: Base,
}

/// The record below merge operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The batch does not say.
    #[default]
    Open,
    /// Nothing.
    Deleted,
    /// A value.
    Value(Vec<u8>),
    /// A wide-column entity, encoded.
    Entity(Vec<u8>),
}

/// The effect of a batch on a key.
///
/// ```
/// # use outcrop::*;
/// let batch = IndexedBatch::new(IndexedBatchOptions::default());
/// batch.delete("apple")?;
/// assert_eq!(batch.look_up("apple")?, BatchValue::Deleted);
/// assert_eq!(batch.look_up("pear")?, BatchValue::Absent);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchValue {
    /// Nothing.
    Absent,
    /// That it is deleted.
    Deleted,
    /// Its value; of a wide-column entity the default column.
    Value(Vec<u8>),
    /// Operands to be merged with the value of the database.
    Merging(MergeOperands),
}

impl Found {
    /// True if the records hide the key and nothing else.
    pub fn is_deleted(&self) -> bool {
        self.base == Base::Deleted && self.operands.is_empty()
    }

    /// The value, or what it takes to know it.
    ///
    /// # Errors
    /// InvalidArgument if it needs a merge operator that is not there; Corruption if an entity does not decode.
    pub fn value(self, family: Family<'_>, key: &[u8]) -> Result<BatchValue> {
        let merged = |base: merge::Base<'_>| family.merged(key, &base, &self.operands);
        let plain = self.operands.is_empty();
        Ok(match self.base {
            Base::Open if plain => BatchValue::Absent,
            Base::Open => BatchValue::Merging(self.operands),
            Base::Deleted if plain => BatchValue::Deleted,
            Base::Deleted => BatchValue::Value(merged(merge::Base::None)?),
            Base::Value(value) if plain => BatchValue::Value(value),
            Base::Value(value) => BatchValue::Value(merged(merge::Base::Plain(value.into()))?),
            Base::Entity(entity) if plain => BatchValue::Value(default_column(&entity)?),
            Base::Entity(entity) => BatchValue::Value(merged(merge::Base::Entity(entity.into()))?),
        })
    }
}

/// The default column of `entity`; empty if it has none.
fn default_column(entity: &[u8]) -> Result<Vec<u8>> {
    Ok(wide_columns::default_column(entity)?.map_or(Vec::new(), |column| column.value.to_vec()))
}

/// State that a batch and its iterators share.
pub struct Contents {
    batch: WriteBatch,
    indexes: BTreeMap<CfId, KeyIndex>,
    options: IndexedBatchOptions,
    save_points: Vec<SavePoint>,
    /// An empty batch begins with a no-op.
    reserves_marker: bool,
}

impl Contents {
    fn clear(&mut self) {
        self.batch.clear();
        if self.reserves_marker {
            self.batch.reserve_marker();
        }
        self.indexes.clear();
        self.save_points.clear();
    }

    /// The index of column family `id`, with the bytes of the batch, if it has records.
    pub fn index(&self, id: CfId) -> Option<(&KeyIndex, &[u8])> {
        self.indexes.get(&id).map(|index| (index, self.batch.as_bytes()))
    }

    /// The order of keys where nothing else is known.
    pub fn backup_comparator(&self) -> &Comparator {
        &self.options.backup_comparator
    }

    /// The sum of the records of `key` in column family `id`.
    pub fn find(&self, id: CfId, key: &[u8]) -> Found {
        let mut found = Found::default();
        let Some((index, rep)) = self.index(id) else { return found };
        let of_key = |entry: &Entry| index.comparator.compare(entry.key(rep), key).is_eq();
        for entry in index.entries_from(index.at_or_after(rep, key)).take_while(of_key) {
            match record_at(rep, entry.offset).op {
                Op::Merge { operand, .. } => {
                    found.operands.push_older(operand);
                    continue;
                }
                Op::Put { value, .. } => found.base = Base::Value(value.to_vec()),
                Op::PutEntity { entity, .. } => found.base = Base::Entity(entity.to_vec()),
                Op::Delete { .. } | Op::SingleDelete { .. } => found.base = Base::Deleted,
                Op::DeleteRange { .. } => unreachable!("ranges are not put into the index"),
            }
            break;
        }
        found
    }

    /// Adds what `put` puts into the batch, and indexes it.
    fn add(
        &mut self,
        family: Family<'_>,
        put: impl FnOnce(&mut WriteBatch, CfId) -> Result<()>,
    ) -> Result<()> {
        let before = self.batch.save_point();
        let offset = self.batch.size_bytes();
        put(&mut self.batch, family.id)?;
        self.check_size(before)?;
        self.index_record(family.id, family.comparator, offset);
        Ok(())
    }

    /// Takes back what was added since `before` if the batch is too long with it.
    fn check_size(&mut self, before: SavePoint) -> Result<()> {
        if self.options.max_bytes > 0 && self.batch.size_bytes() > self.options.max_bytes {
            self.batch.rollback_to(before);
            return Err(Error::new(ErrorKind::Aborted, "Memory limit reached"));
        }
        Ok(())
    }

    fn index_record(&mut self, id: CfId, comparator: Option<&Comparator>, offset: usize) {
        let rep = self.batch.as_bytes();
        let op = record_at(rep, offset).op;
        let entry = Entry::new(rep, offset, key_of(&op));
        let new = || KeyIndex::new(comparator.unwrap_or(&self.options.backup_comparator).clone());
        let index = self.indexes.entry(id).or_insert_with(new);
        let position = index.at_or_after(rep, entry.key(rep));
        let same = |newest: Entry| index.comparator.compare(newest.key(rep), entry.key(rep)).is_eq();
        let known = index.entry(position).is_some_and(same);
        if known && self.options.overwrite_key && !matches!(op, Op::Merge { .. }) {
            index.replace(position, entry);
        } else {
            index.insert(position, entry);
        }
    }

    /// Makes the index from the batch.
    fn rebuild(&mut self) {
        let orders: BTreeMap<CfId, Comparator> =
            self.indexes.iter().map(|(id, index)| (*id, index.comparator.clone())).collect();
        self.indexes.clear();
        let mut places = Vec::new();
        let mut records = codec::records(self.batch.as_bytes()).expect("a batch in memory has its header");
        let mut offset = codec::HEADER_LEN;
        while let Some(record) = records.next() {
            let record = record.expect("only whole records were added");
            // Log data before the record is passed over when it is read from here.
            places.push((record.cf, offset));
            offset = self.batch.size_bytes() - records.rest_len();
        }
        for (cf, offset) in places {
            self.index_record(cf, orders.get(&cf), offset);
        }
    }
}

/// The record at `offset` of the batch `rep`, or the first after log data there.
pub(super) fn record_at(rep: &[u8], offset: usize) -> Record<'_> {
    codec::records_from(rep, offset).next().expect("the index is of this batch").expect("it was added whole")
}

pub(super) fn key_of<'a>(op: &Op<'a>) -> &'a [u8] {
    match *op {
        Op::Put { key, .. } | Op::Merge { key, .. } | Op::PutEntity { key, .. } => key,
        Op::Delete { key } | Op::SingleDelete { key } => key,
        Op::DeleteRange { begin, .. } => begin,
    }
}

impl IndexedBatch {
    /// An empty batch.
    pub fn new(options: IndexedBatchOptions) -> IndexedBatch {
        let contents = Contents {
            batch: WriteBatch::new(),
            indexes: BTreeMap::new(),
            options,
            save_points: Vec::new(),
            reserves_marker: false,
        };
        IndexedBatch { contents: Arc::new(RwLock::new(contents)) }
    }

    /// Another handle on the same contents.
    pub(crate) fn shared(&self) -> IndexedBatch {
        IndexedBatch { contents: self.contents.clone() }
    }

    /// An empty batch that begins with a no-op: the mark of a prepared transaction can take its place.
    pub(crate) fn with_marker(options: IndexedBatchOptions) -> IndexedBatch {
        let batch = IndexedBatch::new(options);
        let mut contents = batch.contents.write();
        contents.reserves_marker = true;
        contents.clear();
        drop(contents);
        batch
    }

    /// Changes [`IndexedBatchOptions::max_bytes`], for what is added from here on.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.contents.write().options.max_bytes = max_bytes;
    }

    /// Empties batch and index, and forgets the save points.
    pub fn clear(&self) {
        self.contents.write().clear();
    }

    /// Number of writes in the batch.
    pub fn count(&self) -> u32 {
        self.contents.read().batch.count()
    }

    /// Size of the batch's wire form, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.contents.read().batch.size_bytes()
    }

    /// The batch, locked against changes for as long as this is held.
    pub fn batch(&self) -> BatchGuard<'_> {
        BatchGuard(self.contents.read())
    }

    /// Gives the batch to `write`, which may number it and must not change its records.
    pub(crate) fn with_batch<T>(&self, write: impl FnOnce(&mut WriteBatch) -> T) -> T {
        write(&mut self.contents.write().batch)
    }

    /// Adds records to the batch that reads do not see.
    pub(crate) fn add_unindexed(&self, put: impl FnOnce(&mut WriteBatch) -> Result<()>) -> Result<()> {
        let mut contents = self.contents.write();
        let before = contents.batch.save_point();
        put(&mut contents.batch)?;
        contents.check_size(before)
    }

    /// Marks the present state, for [`IndexedBatch::rollback_to_save_point`].
    pub fn set_save_point(&self) {
        let mut contents = self.contents.write();
        let point = contents.batch.save_point();
        contents.save_points.push(point);
    }

    /// Takes back what was added since the last save point, which is forgotten.
    ///
    /// # Errors
    /// NotFound if there is none.
    pub fn rollback_to_save_point(&self) -> Result<()> {
        let mut contents = self.contents.write();
        let point = contents.save_points.pop().ok_or_else(no_save_point)?;
        contents.batch.rollback_to(point);
        contents.rebuild();
        Ok(())
    }

    /// Forgets the last save point.
    ///
    /// # Errors
    /// NotFound if there is none.
    pub fn pop_save_point(&self) -> Result<()> {
        self.contents.write().save_points.pop().map(drop).ok_or_else(no_save_point)
    }
}

/// The error where there is no save point.
pub fn no_save_point() -> Error {
    Error::new(ErrorKind::NotFound, "")
}

/// An [`IndexedBatch`]'s batch, to be read.
///
/// ```
/// # use outcrop::*;
/// let batch = IndexedBatch::new(IndexedBatchOptions::default());
/// batch.put("apple", "red")?;
/// assert_eq!(batch.batch().iter().count(), 1);
/// # outcrop::Result::Ok(())
/// ```
pub struct BatchGuard<'b>(RwLockReadGuard<'b, Contents>);

impl std::ops::Deref for BatchGuard<'_> {
    type Target = WriteBatch;

    fn deref(&self) -> &WriteBatch {
        &self.0.batch
    }
}

mod reads;
#[cfg(test)]
mod tests;
mod writes;
