//! The cursor users see: one entry per live user key, as of one sequence number.
//!
//! It walks the merged internal keys and resolves versions: the newest visible one decides, deletions hide,
//! merge operands are combined.
//!
//! Invariant: the user key shown is in `key`. Going forward with [`Position::AtEntry`] the merging iterator stands on the
//! entry shown; in all other cases its value is held in `value`, and the merging iterator stands past it in the
//! direction of travel.

use super::cursor_counts::{Moved, Tally};
use super::cursor_stamps::Stamped;
use super::hiding_ranges::{HidingRanges, layers_of};
use super::level_iter::LevelIter;
use super::merge::{Base, MergeOperands, Merged};
use super::merging_iter::MergingIter;
use super::options::{ReadOptions, TableFilter};
use super::source::Source;
use super::stamped::read_timestamp;
use super::value::{PinnedValue, WideColumns};
use super::{blob, counts, merge, tier};
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::context::DbContext;
use crate::superversion::SuperVersion;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Error, Result, SeqNum, ValueType, wide_columns};
use outcrop_cache::Pinned;
use outcrop_manifest::TableFile;
use outcrop_monitor::{Ticker, Watch};
use outcrop_table::{Loading, TableIterOptions};
use prefix::PrefixMode;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Where the entry shown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// There is none.
    Invalid,
    /// Under the merging iterator, its user key in `key` as well.
    AtEntry,
    /// In `key` and `value`; the merging iterator is past it, forward.
    SavedForward,
    /// In `key`, and `value` or `held`; the merging iterator is past it, backward.
    SavedBackward,
    /// In `key` and `value`, of a column family with user-defined timestamps.
    Stamped,
}

/// How the stored bytes of the entry shown are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The value.
    Plain,
    /// A wide-column entity, which was found to decode and has its values in it.
    Entity,
    /// A wide-column entity with values in blob files; it is in `value` with them.
    FetchedEntity,
    /// A reference to a blob file; the value is in `value`.
    Fetched,
    /// The value, which is in `held`.
    Held,
}

/// A value in a block that is kept, for the merging iterator has gone on.
struct Held {
    block: Pinned,
    value: Range<usize>,
}

/// A position among the user keys of one column family, seeing the state of one moment: for callers that seek. [`crate::Iter`] is
/// for those that take rows one after the other.
///
/// After each positioning call check [`Cursor::valid`]; when it is false, [`Cursor::status`] tells
/// the end from an error. Key and value are borrowed until the next move; the key is copied into the cursor, the value is not
/// where it lies in a block or memtable.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("a", "1")?; db.put("c", "3")?; db.put("e", "5")?;
/// let mut cursor = db.cursor()?;
/// cursor.seek(b"b");
/// assert_eq!(cursor.key(), b"c");
/// cursor.prev();
/// assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &b"1"[..]));
/// cursor.prev();
/// assert!(!cursor.valid());
/// cursor.status()?; // The end, not an error.
/// # outcrop::Result::Ok(())
/// ```
pub struct Cursor {
    ctx: Arc<DbContext>,
    cf: ColumnFamilyHandle,
    /// Keeps the memtables and tables alive.
    view: Option<Arc<SuperVersion>>,
    merged: MergingIter,
    tombstones: HidingRanges,
    snapshot: SeqNum,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    prefixes: PrefixMode,
    /// Versions passed one by one before a seek past the key.
    max_skip: u64,
    /// Entries a positioning call may pass over.
    max_skipped: u64,
    /// The key at which so many were passed last.
    passed_key: Vec<u8>,
    position: Position,
    shape: Shape,
    loading: Loading,
    key: Vec<u8>,
    value: Vec<u8>,
    held: Option<Held>,
    status: Result<()>,
    /// If keys have user-defined timestamps.
    stamped: Option<Box<Stamped>>,
    /// If somebody watches.
    tally: Option<Box<Tally>>,
}

/// The sources of a view as one stream.
pub(super) fn merge_view(
    ctx: &DbContext,
    view: &SuperVersion,
    cf: &Arc<ColumnFamily>,
    options: &ReadOptions,
) -> Result<MergingIter> {
    let table_options = TableIterOptions {
        loading: options.loading(),
        readahead_bytes: options.readahead_size,
        ..TableIterOptions::default()
    };
    let mut sources = MergingIter::list_for_sources();
    sources.reserve(view.sealed.len() + view.version.levels[0].files.len() + 4);
    if !view.memtable.is_empty() {
        sources.push(Source::Mem(view.memtable.iter()));
    }
    sources.extend(view.sealed.iter().map(|memtable| Source::Mem(memtable.iter())));
    for file in view.version.levels[0].files.iter() {
        let table = ctx.tables.open(cf, file)?;
        if options.table_filter.as_ref().is_none_or(|filter| filter.takes(table.properties())) {
            sources.push(Source::Table(table.iter(table_options.clone()), file.largest_seq));
        }
    }
    for level in view.version.levels[1..].iter().filter(|level| !level.files.is_empty()) {
        let mut files: Arc<[_]> = level.shared_files();
        if let Some(filter) = &options.table_filter {
            files = filtered(ctx, cf, &files, filter)?;
        }
        sources.push(Source::Level(LevelIter::new(
            ctx.tables.clone(),
            cf.clone(),
            files,
            table_options.clone(),
        )));
    }
    Ok(MergingIter::new(cf.comparator.clone(), sources))
}

/// The tables that `filter` takes.
fn filtered(
    ctx: &DbContext,
    cf: &ColumnFamily,
    files: &[Arc<TableFile>],
    filter: &TableFilter,
) -> Result<Arc<[Arc<TableFile>]>> {
    let mut taken = Vec::new();
    for file in files {
        if filter.takes(ctx.tables.open(cf, file)?.properties()) {
            taken.push(file.clone());
        }
    }
    Ok(taken.into())
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Some(tally) = self.tally.take() {
            tally.end(&self.ctx.monitor);
        }
        // The view may be the last holder of memtables and tables that are no longer current.
        if let Some(view) = self.view.take() {
            self.ctx.background.release_view(view);
        }
    }
}

impl Cursor {
    /// An iterator over `view` of `cf` at `snapshot`, which was taken after the view or is held by a live one. Not
    /// positioned.
    pub(crate) fn new(
        ctx: &Arc<DbContext>,
        view: Arc<SuperVersion>,
        snapshot: SeqNum,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
    ) -> Result<Cursor> {
        let view = tier::of_iterators(view, options)?;
        let read = read_timestamp(cf, &view, options)?;
        let bound = |key: &Option<Vec<u8>>| key.as_deref().map(|key| cf.stored_bound(key).into_owned());
        let column_options = cf.options.load();
        let merged = merge_view(ctx, &view, cf, options)?;
        let layers = match options.ignore_range_deletions {
            true => Vec::new(),
            false => layers_of(&view, &ctx.tables, cf)?,
        };
        let tombstones = HidingRanges::new(layers, cf.comparator.clone(), snapshot);
        Ok(Cursor {
            ctx: ctx.clone(),
            cf: cf.clone(),
            view: Some(view),
            merged,
            tombstones,
            snapshot,
            lower: bound(&options.iterate_lower_bound),
            upper: bound(&options.iterate_upper_bound),
            prefixes: PrefixMode::new(
                options.prefix_same_as_start,
                options.total_order_seek,
                &cf.comparator,
                column_options.prefix_extractor.as_ref(),
            ),
            max_skip: column_options.max_sequential_skip_in_iterations,
            max_skipped: options.most_skipped(),
            passed_key: Vec::new(),
            position: Position::Invalid,
            shape: Shape::Plain,
            loading: options.loading(),
            // Room for most keys.
            key: Vec::with_capacity(64),
            value: Vec::new(),
            held: None,
            status: Ok(()),
            stamped: read.map(|read| Stamped::new(read, options.iter_start_timestamp)),
            tally: Tally::begin(&ctx.monitor),
        })
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.position != Position::Invalid
    }

    /// The error that made the iterator invalid, if there was one.
    pub fn status(&self) -> Result<()> {
        self.status.clone()?;
        self.merged.status()
    }

    /// The user key. Panics unless valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.valid(), "key() of an iterator that is not valid");
        &self.key
    }

    /// The value; of a wide-column entity the default column. Panics unless valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.shape {
            Shape::Plain => self.stored(),
            Shape::Held => {
                self.assert_valid();
                self.held_value()
            }
            Shape::Fetched => self.fetched(),
            Shape::Entity => default_column(self.stored()),
            Shape::FetchedEntity => default_column(self.fetched()),
        }
    }

    /// The value, as something to keep: it pins the block that has it rather than copying it, where it lies in one. Copies values
    /// in memtables, of merges, of blob files and of wide-column entities. Panics unless valid.
    pub fn pinned_value(&self) -> PinnedValue {
        match (self.shape, self.position) {
            (Shape::Held, _) => {
                self.assert_valid();
                let held = self.held.as_ref().expect("the shape says that it is there");
                PinnedValue::in_block(&held.block, self.held_value())
            }
            (Shape::Plain, Position::AtEntry) => match self.merged.pinned_block() {
                Some(block) => PinnedValue::in_block(block, self.merged.value()),
                None => PinnedValue::owned(self.merged.value().to_vec()),
            },
            _ => PinnedValue::owned(self.value().to_vec()),
        }
    }

    /// A value that was kept or fetched for an earlier row may be there still.
    fn assert_valid(&self) {
        assert!(self.valid(), "value() of an iterator that is not valid");
    }

    /// The value that was kept with its block, also of a key that is being resolved.
    fn held_value(&self) -> &[u8] {
        let held = self.held.as_ref().expect("the shape says that it is there");
        &held.block[held.value.clone()]
    }

    /// The columns of the entry; a plain value is one column with the empty name. Panics unless valid.
    pub fn columns(&self) -> Result<WideColumns> {
        match self.shape {
            Shape::Entity => WideColumns::decode(self.stored()),
            Shape::FetchedEntity => WideColumns::decode(self.fetched()),
            _ => Ok(WideColumns::plain(self.value())),
        }
    }

    /// The value that was fetched from blob files for the entry shown. Panics unless valid.
    fn fetched(&self) -> &[u8] {
        self.assert_valid();
        &self.value
    }

    /// The bytes of the entry shown.
    #[inline]
    fn stored(&self) -> &[u8] {
        match self.position {
            Position::AtEntry => self.merged.value(),
            Position::SavedForward | Position::SavedBackward | Position::Stamped => &self.value,
            Position::Invalid => panic!("value() of an iterator that is not valid"),
        }
    }

    /// To the first entry within the bounds.
    pub fn seek_to_first(&mut self) {
        self.counted_seek(false, Cursor::find_first);
    }

    fn find_first(&mut self) {
        if self.stamped.is_some() {
            return self.stamped_first();
        }
        self.status = Ok(());
        self.prefixes.clear();
        match self.lower.take() {
            Some(lower) => {
                self.merged.seek(&lower, Trailer::new(self.snapshot, ValueType::FOR_SEEK));
                self.lower = Some(lower);
            }
            None => self.merged.seek_to_first(),
        }
        self.find_forward(false);
        self.bind_to_prefix_shown();
    }

    /// To the last entry within the bounds.
    pub fn seek_to_last(&mut self) {
        self.counted_seek(false, Cursor::find_last);
    }

    fn find_last(&mut self) {
        if self.stamped.is_some() {
            return self.stamped_last();
        }
        self.status = Ok(());
        self.prefixes.clear();
        match self.upper.take() {
            Some(upper) => {
                // The bound itself is excluded: the largest footer sorts before all its versions.
                self.merged.seek_for_prev(&upper, Trailer::MAX);
                self.upper = Some(upper);
            }
            None => self.merged.seek_to_last(),
        }
        self.find_backward(0);
        self.bind_to_prefix_shown();
    }

    /// To the first entry at or after `target`.
    pub fn seek(&mut self, target: &[u8]) {
        self.counted_seek(true, |cursor| cursor.find_at_or_after(target));
    }

    fn find_at_or_after(&mut self, target: &[u8]) {
        if self.stamped.is_some() {
            return self.stamped_seek(target);
        }
        self.status = Ok(());
        self.prefixes.bind(target);
        match self.lower.take() {
            Some(lower) => {
                let start = if self.before(target, &lower) { &lower } else { target };
                self.seek_merged(start);
                self.lower = Some(lower);
            }
            None => self.seek_merged(target),
        }
        self.find_forward(false);
    }

    /// Moves the merging iterator to `start`, without the sources that filters of prefixes exclude.
    fn seek_merged(&mut self, start: &[u8]) {
        let target = (start, Trailer::new(self.snapshot, ValueType::FOR_SEEK));
        self.prefixes.seek(&mut self.merged, target, self.upper.as_deref(), &self.cf.comparator);
    }

    /// At the end of what filters of prefixes left complete: takes the missing sources in. False if there is nothing more to see.
    #[cold]
    fn leave_prefix(&mut self) -> bool {
        self.prefixes.leave(&mut self.merged, Trailer::new(self.snapshot, ValueType::FOR_SEEK))
    }

    /// To the last entry at or before `target`.
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        self.counted_seek(true, |cursor| cursor.find_at_or_before(target));
    }

    fn find_at_or_before(&mut self, target: &[u8]) {
        if self.stamped.is_some() {
            return self.stamped_seek_for_prev(target);
        }
        self.status = Ok(());
        if self.upper.as_deref().is_some_and(|upper| !self.before(target, upper)) {
            self.find_last();
            self.prefixes.bind(target);
            if self.valid() && self.prefixes.is_outside(self.key()) {
                self.position = Position::Invalid;
            }
            return;
        }
        self.prefixes.bind(target);
        self.merged.seek_for_prev(target, Trailer::new(SeqNum::ZERO, ValueType::FOR_SEEK_BACKWARD));
        self.find_backward(0);
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        match self.position {
            Position::AtEntry => self.merged.next(),
            Position::SavedForward => {}
            Position::SavedBackward => {
                // The merging iterator is before all versions of the shown key, or has run off the front.
                if self.merged.valid() { self.merged.next() } else { self.merged.seek_to_first() }
            }
            Position::Stamped => {
                self.stamped_next();
                return self.count(Moved::Next);
            }
            Position::Invalid => panic!("next() of an iterator that is not valid"),
        }
        self.find_forward(true);
        if let Some(tally) = &mut self.tally {
            // Of nearly every step no more is to be counted.
            let is_plain = self.position == Position::AtEntry && self.shape == Shape::Plain;
            if !is_plain || !tally.stepped(|| self.key.len() + self.merged.value_len()) {
                self.count(Moved::Next);
            }
        }
    }

    /// To the previous entry. Panics unless valid.
    pub fn prev(&mut self) {
        self.prefixes.step_backward();
        let stepped = match self.position {
            Position::AtEntry => self.step_before_saved_key(),
            Position::SavedForward => {
                if !self.merged.valid() {
                    self.merged.seek_to_last();
                }
                self.step_before_saved_key()
            }
            Position::SavedBackward => Ok(0),
            Position::Stamped => {
                self.stamped_prev();
                return self.count(Moved::Prev);
            }
            Position::Invalid => panic!("prev() of an iterator that is not valid"),
        };
        match stepped {
            Ok(skipped) => self.find_backward(skipped),
            Err(error) => (self.position, self.status) = (Position::Invalid, Err(error)),
        }
        if let Some(tally) = &mut self.tally {
            let held = self
                .held
                .as_ref()
                .filter(|_| self.shape == Shape::Held && self.position != Position::Invalid);
            let counted = held.is_some_and(|held| tally.stepped_back(|| self.key.len() + held.value.len()));
            if !counted {
                self.count(Moved::Prev);
            }
        }
    }

    /// Seeks, and counts it if somebody watches; with `timed` its time too.
    #[inline]
    fn counted_seek(&mut self, timed: bool, seek: impl FnOnce(&mut Cursor)) {
        let began = if timed && self.tally.is_some() { Tally::clock(&self.ctx.monitor) } else { 0 };
        seek(self);
        if self.tally.is_some() {
            let sources = self.merged.sources();
            self.count(Moved::Seek { began, sources });
        }
    }

    #[cold]
    fn count(&mut self, how: Moved) {
        let shown = self.valid().then(|| self.key().len() + self.value().len());
        if let Some(tally) = &mut self.tally {
            tally.moved(&self.ctx.monitor, how, shown);
        }
    }

    /// Whether this is the key that is being resolved.
    #[inline]
    fn is_key(&self, user_key: &[u8]) -> bool {
        self.cf.comparator.same(user_key, &self.key)
    }

    #[inline]
    fn before(&self, a: &[u8], b: &[u8]) -> bool {
        self.cf.comparator.compare(a, b) == Ordering::Less
    }

    /// From an end of the key space, the prefix to stay within is that of the entry found.
    fn bind_to_prefix_shown(&mut self) {
        if self.prefixes.is_bound() && self.valid() {
            self.prefixes.bind(&self.key);
        }
    }

    /// Shows the first live key at or after the merging iterator's position; with `skip_saved`, versions of
    /// `key` are passed over.
    #[inline]
    fn find_forward(&mut self, mut skip_saved: bool) {
        self.position = Position::Invalid;
        let (mut passed, mut skipped) = (0, 0);
        loop {
            if !self.merged.valid() {
                if self.merged.has_excluded() && self.merged.status().is_ok() && self.leave_prefix() {
                    continue;
                }
                return;
            }
            let (user_key, trailer) = split(self.merged.key());
            if trailer.seq() > self.snapshot || (skip_saved && self.is_key(user_key)) {
                passed += 1;
                let counted = !self.is_limited() || !self.hides_entry();
                if let Some(tally) = &mut self.tally {
                    let recent = trailer.seq() > self.snapshot;
                    tally.recent_skipped += u64::from(recent);
                    tally.entries_skipped += u64::from(!recent);
                }
                if passed > self.max_skip {
                    passed = 0;
                    self.passed_many(skip_saved);
                } else {
                    self.merged.next();
                }
                skipped += u64::from(counted);
                if skipped > self.max_skipped && self.fail_on_skips() {
                    return;
                }
                continue;
            }
            if self.upper.as_deref().is_some_and(|upper| !self.before(user_key, upper))
                || self.prefixes.is_outside(user_key)
            {
                if self.leave_prefix() {
                    continue;
                }
                return;
            }
            match trailer.value_type() {
                Some(_) if self.tombstones.hide(user_key, trailer.seq()) => {
                    self.key.clear();
                    self.key.extend_from_slice(user_key);
                    skip_saved = true;
                    self.tombstones.pass_forward(&mut self.merged);
                }
                Some(ValueType::Value) => {
                    self.key.clear();
                    self.key.extend_from_slice(user_key);
                    self.position = Position::AtEntry;
                    self.shape = Shape::Plain;
                    return;
                }
                Some(ValueType::WideColumnEntity) => return self.show_entity(),
                Some(ValueType::BlobIndex) => return self.show_blob(),
                Some(ValueType::Deletion | ValueType::SingleDeletion) => {
                    self.key.clear();
                    self.key.extend_from_slice(user_key);
                    skip_saved = true;
                    if let Some(tally) = &mut self.tally {
                        tally.deletes_skipped += 1;
                    }
                    self.merged.next();
                    skipped += 1;
                    if skipped > self.max_skipped && self.fail_on_skips() {
                        return;
                    }
                }
                Some(ValueType::Merge) => return self.merge_forward(),
                other => return self.fail_on_type(other),
            }
        }
    }

    /// Leaves a version that is not for this reader, after many of them: by a seek if they were of one key, past all
    /// versions of `key` or to the first of another key that the snapshot has.
    #[cold]
    fn passed_many(&mut self, skip_saved: bool) {
        let (user_key, _) = split(self.merged.key());
        if skip_saved && self.is_key(user_key) {
            self.count_reseek();
            self.merged.seek(&self.key, Trailer::new(SeqNum::ZERO, ValueType::Deletion));
            if self.merged.valid() && self.is_key(split(self.merged.key()).0) {
                self.merged.next();
            }
        } else if user_key == self.passed_key.as_slice() && !self.merged.has_excluded() {
            self.count_reseek();
            self.merged.seek(&self.passed_key, Trailer::new(self.snapshot, ValueType::FOR_SEEK));
        } else {
            self.passed_key.clear();
            self.passed_key.extend_from_slice(user_key);
            self.merged.next();
        }
    }

    /// Rare enough to be told at once, as RocksDB does.
    fn count_reseek(&self) {
        if self.tally.is_some()
            && let Some(statistics) = &self.ctx.monitor.statistics
        {
            statistics.count(Ticker::NumberOfReseeksInIteration, 1);
        }
    }

    /// Shows the entity under the merging iterator, if it decodes.
    fn show_entity(&mut self) {
        self.save_key();
        let entity = self.merged.value();
        if wide_columns::may_have_blobs(entity) {
            return self.show_entity_with_blobs();
        }
        match wide_columns::default_column(entity) {
            Ok(_) => (self.position, self.shape) = (Position::AtEntry, Shape::Entity),
            Err(error) => self.status = Err(error),
        }
    }

    #[cold]
    fn show_entity_with_blobs(&mut self) {
        match self.with_values(split(self.merged.key()).0, self.merged.value()) {
            Ok(entity) => {
                self.value = entity;
                (self.position, self.shape) = (Position::AtEntry, Shape::FetchedEntity);
            }
            Err(error) => self.status = Err(error),
        }
    }

    /// The entity of `user_key` with the values that are in blob files.
    fn with_values(&self, user_key: &[u8], entity: &[u8]) -> Result<Vec<u8>> {
        wide_columns::with_values(entity, |index| self.fetch(user_key, index)).map(Cow::into_owned)
    }

    /// Shows the entry under the merging iterator with its value from a blob file.
    fn show_blob(&mut self) {
        self.save_key();
        match self.fetch(&self.key, self.merged.value()) {
            Ok(value) => {
                self.value = value;
                (self.position, self.shape) = (Position::AtEntry, Shape::Fetched);
            }
            Err(error) => self.status = Err(error),
        }
    }

    /// Takes down the user key under the merging iterator.
    fn save_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(split(self.merged.key()).0);
    }

    fn fetch(&self, user_key: &[u8], index: &[u8]) -> Result<Vec<u8>> {
        let view = self.view.as_ref().expect("kept until dropped");
        let files = &view.version.blob_files;
        blob::fetch(&self.ctx.tables, &self.cf, files, user_key, index, self.loading)
            .map(PinnedValue::into_vec)
    }

    /// Combines the operands of the key under the merging iterator, which ends past its versions.
    fn merge_forward(&mut self) {
        self.save_key();
        let mut operands = MergeOperands::default();
        let mut base = Base::None;
        while self.merged.valid() {
            let (user_key, trailer) = split(self.merged.key());
            if !self.is_key(user_key) {
                break;
            }
            if self.tombstones.hide(user_key, trailer.seq()) {
                break;
            }
            match trailer.value_type() {
                Some(ValueType::Merge) => {
                    operands.push_older(self.merged.value());
                    if let Some(tally) = &mut self.tally {
                        tally.operands += 1;
                    }
                }
                Some(ValueType::Value) => base = Base::Plain(self.merged.value().to_vec().into()),
                Some(ValueType::WideColumnEntity) => match self.with_values(user_key, self.merged.value()) {
                    Ok(entity) => base = Base::Entity(entity.into()),
                    Err(error) => {
                        self.status = Err(error);
                        return;
                    }
                },
                Some(ValueType::BlobIndex) => match self.fetch(user_key, self.merged.value()) {
                    Ok(value) => base = Base::Plain(value.into()),
                    Err(error) => {
                        self.status = Err(error);
                        return;
                    }
                },
                Some(ValueType::Deletion | ValueType::SingleDeletion) => {}
                other => return self.fail_on_type(other),
            }
            let more = trailer.type_byte() == ValueType::Merge as u8;
            self.merged.next();
            if !more {
                break;
            }
        }
        while self.merged.valid() && self.is_key(split(self.merged.key()).0) {
            self.merged.next();
        }
        // Without all operands there is nothing true to show.
        if self.merged.status().is_ok() {
            self.show_merged(&base, &operands, Position::SavedForward);
        }
    }

    fn show_merged(&mut self, base: &Base<'_>, operands: &MergeOperands, position: Position) {
        let operator = merge::operator_of(&self.cf).ok_or_else(merge::missing_operator_of_iterator);
        let watching = self.ctx.monitor.begin();
        let apply = |operator| {
            let apply = || operands.apply(Some(operator), &self.key, base);
            counts::merged(Watch::from(&watching), operands.len(), apply)
        };
        match operator.and_then(apply) {
            Ok(merged) => {
                (self.value, self.shape) = match merged {
                    Merged::Plain(value) => (value, Shape::Plain),
                    Merged::Entity(entity) => (entity, Shape::Entity),
                };
                self.position = position;
            }
            Err(error) => {
                self.status = Err(error);
                self.position = Position::Invalid;
            }
        }
    }

    fn fail_on_type(&mut self, value_type: Option<ValueType>) {
        self.status = Err(type_error(value_type));
        self.position = Position::Invalid;
    }
}

/// The value of an entity's default column; empty if it has none.
fn default_column(entity: &[u8]) -> &[u8] {
    let column = wide_columns::default_column(entity).unwrap_or_default();
    column.map_or(&[], |column| column.value)
}

fn type_error(value_type: Option<ValueType>) -> Error {
    match value_type {
        Some(value_type) => merge::unsupported_type(value_type),
        None => Error::corruption("an internal key has an unknown value type"),
    }
}

mod backward;
mod prefix;
mod skips;
mod stamped;
#[cfg(test)]
mod tests;
