//! An iterator over a database with an indexed batch laid over it.
//!
//! ```text
//! base   a1    c1 d1          the database
//! delta     b2 c2 d-          the batch: newest records of each key
//! shown  a1 b2 c2
//! ```
//! Invariant: the side that is not shown stands at its first key beyond the key shown, in the direction of travel, or at the
//! same key ([`Overlay::equal`]). A batch that grows is seen from where the delta stands, and after a turn from the key shown. A value is
//! the one that was there when the iterator was moved. With `prefix_same_as_start` the base keeps to a prefix, the batch to none, as RocksDB's.
//!
//! Source: RocksDB `utilities/write_batch_with_index/write_batch_with_index_internal.cc`, `BaseDeltaIterator`.

use super::indexed::{Base, Contents, Family, Found, IndexedBatch};
use super::key_index::{Entry, KeyIndex};
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::read::options::ReadOptions;
use outcrop_base::{CfId, Comparator, Error, MergeOperator, Result};
use parking_lot::RwLock;
use std::cmp::Ordering;
use std::sync::Arc;

/// A cursor over the rows below an indexed batch, with which the batch is merged.
///
/// ```
/// # use outcrop::*;
/// fn count(rows: &mut impl RowSource) -> usize {
///     rows.seek_to_first();
///     let mut count = 0;
///     while rows.valid() {
///         count += 1;
///         rows.next();
///     }
///     count
/// }
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// assert_eq!(count(&mut db.cursor()?), 1);
/// # outcrop::Result::Ok(())
/// ```
pub trait RowSource {
    /// True if positioned on an entry.
    fn valid(&self) -> bool;
    /// The error that made it invalid, if there was one.
    fn status(&self) -> Result<()>;
    /// The key; while it is valid.
    fn key(&self) -> &[u8];
    /// The value; while it is valid.
    fn value(&self) -> &[u8];
    /// To the first entry.
    fn seek_to_first(&mut self);
    /// To the last entry.
    fn seek_to_last(&mut self);
    /// To the first entry at or after `target`.
    fn seek(&mut self, target: &[u8]);
    /// To the last entry at or before `target`.
    fn seek_for_prev(&mut self, target: &[u8]);
    /// To the entry after; while it is valid.
    fn next(&mut self);
    /// To the entry before; while it is valid.
    fn prev(&mut self);
}

/// The keys that an iterator keeps to.
///
/// ```
/// # use outcrop::*;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let batch = IndexedBatch::default();
/// batch.put("a", "1")?;
/// batch.put("z", "2")?;
/// let bounds = Bounds { upper: Some(b"m".to_vec()), ..Bounds::default() };
/// let family = FamilyParts::from(db.default_column_family());
/// let mut rows = batch.overlay(Some(family), db.cursor()?, bounds);
/// rows.seek_to_last();
/// assert_eq!(rows.key(), b"a");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// The smallest.
    pub lower: Option<Vec<u8>>,
    /// The one after the largest.
    pub upper: Option<Vec<u8>>,
}

impl Bounds {
    /// Those of `options`.
    pub(crate) fn of(options: &ReadOptions) -> Bounds {
        Bounds { lower: options.iterate_lower_bound.clone(), upper: options.iterate_upper_bound.clone() }
    }
}

/// Which side an entry is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Base,
    Delta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// The column family that an iterator is over.
///
/// ```
/// # use outcrop::*;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let family = FamilyParts::from(db.default_column_family());
/// assert_eq!((family.id, family.operator.is_none()), (CfId::DEFAULT, true));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct FamilyParts {
    /// Its id.
    pub id: CfId,
    /// Its order of keys.
    pub comparator: Comparator,
    /// Its merge operator.
    pub operator: Option<Arc<dyn MergeOperator>>,
}

impl From<&ColumnFamily> for FamilyParts {
    fn from(cf: &ColumnFamily) -> FamilyParts {
        FamilyParts { id: cf.id(), comparator: cf.keys.clone(), operator: cf.merge_operator.clone() }
    }
}

impl From<&ColumnFamilyHandle> for FamilyParts {
    fn from(cf: &ColumnFamilyHandle) -> FamilyParts {
        FamilyParts::from(&**cf)
    }
}

/// An iterator over `C` with a batch laid over it; see [`IndexedBatch::overlay`].
///
/// ```
/// # use outcrop::*;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "old")?;
/// let batch = IndexedBatch::default();
/// batch.put("a", "new")?;
/// let family = FamilyParts::from(db.default_column_family());
/// let mut rows = batch.overlay(Some(family), db.cursor()?, Bounds::default());
/// rows.seek_to_first();
/// assert_eq!(rows.value(), b"new");
/// # outcrop::Result::Ok(())
/// ```
pub struct Overlay<C> {
    base: C,
    delta: Delta,
    family: Option<FamilyParts>,
    comparator: Comparator,
    direction: Direction,
    shown: Side,
    /// Both sides stand at the same key.
    equal: bool,
    /// The value, if the delta is shown.
    value: Vec<u8>,
    failed: Option<Error>,
}

impl IndexedBatch {
    /// An iterator over `base`, whose keys are in the order of `family`, with this batch laid over it; both keep to `bounds`,
    /// the base by itself. Without a column family keys are in the order of the backup comparator, and merge operands
    /// cannot be applied.
    pub fn overlay<C: RowSource>(&self, family: Option<FamilyParts>, base: C, bounds: Bounds) -> Overlay<C> {
        let comparator = match &family {
            Some(family) => family.comparator.clone(),
            None => self.contents.read().backup_order(),
        };
        let id = family.as_ref().map_or(CfId::DEFAULT, |family| family.id);
        Overlay {
            base,
            delta: Delta { contents: self.contents.clone(), id, bounds, key: Vec::new(), valid: false },
            family,
            comparator,
            direction: Direction::Forward,
            shown: Side::Base,
            equal: false,
            value: Vec::new(),
            failed: None,
        }
    }
}

impl<C: RowSource> Overlay<C> {
    /// The base, if its entry is shown, and none of the batch's.
    pub fn shown_base(&self) -> Option<&C> {
        (self.shown == Side::Base).then_some(&self.base)
    }

    fn after_seek(&mut self, direction: Direction) {
        self.direction = direction;
        self.select_shown();
    }

    /// Turns to `direction`: the side that is not shown has to stand at the key shown, or beyond it.
    ///
    /// Where it stood tells nothing: the batch may have grown between the two, and a base that has ended may have ended with its prefix. RocksDB
    /// steps it once from there, or takes it to the other end.
    fn switch_direction(&mut self, direction: Direction) {
        self.direction = direction;
        match self.shown {
            Side::Base => self.delta.place(direction, self.base.key()),
            // The base does not grow: its neighbour is beyond the key shown, unless it stands at that.
            Side::Delta if self.equal => {}
            Side::Delta if self.base.valid() => self.step_base(),
            Side::Delta if direction == Direction::Forward => self.base.seek(&self.delta.key),
            Side::Delta => self.base.seek_for_prev(&self.delta.key),
        }
        self.equal = self.base.valid()
            && self.delta.valid
            && self.comparator.compare(&self.delta.key, self.base.key()).is_eq();
    }

    fn step_base(&mut self) {
        match self.direction {
            Direction::Forward => self.base.next(),
            Direction::Backward => self.base.prev(),
        }
    }

    fn step_delta(&mut self) {
        match self.direction {
            Direction::Forward => self.delta.next(),
            Direction::Backward => self.delta.prev(),
        }
    }

    fn step(&mut self, direction: Direction) {
        if self.direction != direction {
            self.switch_direction(direction);
        }
        if self.equal || self.shown == Side::Base {
            self.step_base();
        }
        if self.equal || self.shown == Side::Delta {
            self.step_delta();
        }
        self.select_shown();
    }

    /// Selects the side whose entry comes first, and skips entries that the delta deletes.
    fn select_shown(&mut self) {
        self.failed = None;
        loop {
            self.equal = false;
            let base_valid = self.base.valid();
            if !base_valid && self.base.status().is_err() {
                self.shown = Side::Base;
                return;
            }
            if !self.delta.valid {
                self.shown = Side::Base;
                return;
            }
            if base_valid {
                let order = self.comparator.compare(&self.delta.key, self.base.key());
                let order = if self.direction == Direction::Forward { order } else { order.reverse() };
                if order == Ordering::Greater {
                    self.shown = Side::Base;
                    return;
                }
                self.equal = order == Ordering::Equal;
            }
            let found = self.delta.find();
            if found == Found::default() {
                // The batch was cleared, or went back to a save point, since this key was found.
                self.step_delta();
                continue;
            }
            if !found.is_deleted() {
                self.shown = Side::Delta;
                self.show(found);
                return;
            }
            if self.equal {
                self.step_base();
            }
            self.step_delta();
        }
    }

    /// Makes the value from the delta's records.
    fn show(&mut self, mut found: Found) {
        if found.base == Base::Open {
            found.base = if self.equal { Base::Value(self.base.value().to_vec()) } else { Base::Deleted };
        }
        let family = self.family.as_ref().map_or(Family::DEFAULT, |family| {
            Family::new(family.id, &family.comparator, family.operator.as_deref())
        });
        match found.value(family, &self.delta.key) {
            Ok(super::indexed::BatchValue::Value(value)) => self.value = value,
            Ok(other) => unreachable!("the base is known: {other:?}"),
            Err(error) => self.failed = Some(error),
        }
    }

    fn move_on(&mut self, direction: Direction, name: &str) {
        if self.valid() {
            self.step(direction);
        } else {
            self.failed = Some(Error::not_supported(format!("{name}() on invalid iterator")));
        }
    }
}

impl<C: RowSource> RowSource for Overlay<C> {
    fn valid(&self) -> bool {
        let positioned = match self.shown {
            Side::Base => self.base.valid(),
            Side::Delta => self.delta.valid,
        };
        positioned && self.status().is_ok()
    }

    fn status(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.base.status(),
        }
    }

    fn key(&self) -> &[u8] {
        match self.shown {
            Side::Base => self.base.key(),
            Side::Delta => &self.delta.key,
        }
    }

    fn value(&self) -> &[u8] {
        match self.shown {
            Side::Base => self.base.value(),
            Side::Delta => &self.value,
        }
    }

    fn seek_to_first(&mut self) {
        self.base.seek_to_first();
        self.delta.seek_to_first();
        self.after_seek(Direction::Forward);
    }

    fn seek_to_last(&mut self) {
        self.base.seek_to_last();
        self.delta.seek_to_last();
        self.after_seek(Direction::Backward);
    }

    fn seek(&mut self, target: &[u8]) {
        self.base.seek(target);
        self.delta.seek(target);
        self.after_seek(Direction::Forward);
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.base.seek_for_prev(target);
        self.delta.seek_for_prev(target);
        self.after_seek(Direction::Backward);
    }

    /// To the entry after. If there is none shown, the status says so.
    fn next(&mut self) {
        self.move_on(Direction::Forward, "Next");
    }

    /// To the entry before. If there is none shown, the status says so.
    fn prev(&mut self) {
        self.move_on(Direction::Backward, "Prev");
    }
}

/// The keys of a batch, each once. It remembers the key it stands at, so that records may be added.
struct Delta {
    contents: Arc<RwLock<Contents>>,
    id: CfId,
    bounds: Bounds,
    key: Vec<u8>,
    valid: bool,
}

impl Delta {
    /// Moves to the entry that `place` finds, if it is within the bounds.
    fn go(&mut self, place: impl FnOnce(&KeyIndex, &[u8], &Delta) -> Option<Entry>) {
        let contents = self.contents.clone();
        let contents = contents.read();
        self.valid = false;
        let Some((index, rep)) = contents.index(self.id) else { return };
        let Some(entry) = place(index, rep, self) else { return };
        let key = entry.key(rep);
        let below = |bound: &Vec<u8>| index.comparator.compare(key, bound).is_lt();
        if self.bounds.lower.as_ref().is_some_and(below) || !self.bounds.upper.as_ref().is_none_or(below) {
            return;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.valid = true;
    }

    fn find(&self) -> Found {
        self.contents.read().find(self.id, &self.key)
    }

    fn seek_to_first(&mut self) {
        self.go(|index, rep, this| {
            let lower = this.bounds.lower.as_ref();
            index.entry(lower.map_or(index.start(), |lower| index.at_or_after(rep, lower)))
        });
    }

    fn seek_to_last(&mut self) {
        self.go(|index, rep, this| {
            let upper = this.bounds.upper.as_ref();
            index.entry_before(upper.map_or(index.end(), |upper| index.at_or_after(rep, upper)))
        });
    }

    fn seek(&mut self, target: &[u8]) {
        self.go(|index, rep, this| {
            let lower = this.bounds.lower.as_deref();
            let lower = lower.filter(|lower| index.comparator.compare(target, lower).is_lt());
            index.entry(index.at_or_after(rep, lower.unwrap_or(target)))
        });
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.go(|index, rep, this| {
            let upper = this.bounds.upper.as_deref();
            let upper = upper.filter(|upper| index.comparator.compare(target, upper).is_ge());
            index.entry_before(upper.map_or_else(|| index.after(rep, target), |u| index.at_or_after(rep, u)))
        });
    }

    /// To `key`, or the first entry from there in `direction`.
    fn place(&mut self, direction: Direction, key: &[u8]) {
        match direction {
            Direction::Forward => self.seek(key),
            Direction::Backward => self.seek_for_prev(key),
        }
    }

    fn next(&mut self) {
        if self.valid {
            self.go(|index, rep, this| index.entry(index.after(rep, &this.key)));
        }
    }

    fn prev(&mut self) {
        if self.valid {
            self.go(|index, rep, this| index.entry_before(index.at_or_after(rep, &this.key)));
        }
    }
}
