//! An iterator of rows, from both ends, over one or two cursors.
//!
//! ```text
//! start                                            end
//!   |--- front: next() --->   ...   <--- back: next_back() ---|
//! ```
//! Each end is a [`Cursor`] that is made when it is first asked; both see the same view and sequence number. Once both are used, the keys
//! they stand on are compared before each row, so that none comes twice.

use super::cursor::Cursor;
use super::key_range::{self, KeyBounds};
use super::options::ReadOptions;
use super::value::PinnedValue;
use crate::column_family::ColumnFamilyHandle;
use crate::context::DbContext;
use crate::superversion::SuperVersion;
use outcrop_base::{Error, PrefixExtractor, Result, SeqNum};
use std::cmp::Ordering;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;

/// A key and its value: [`Iter`]'s item.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("a", "1")?;
/// let rows: outcrop::Result<Vec<outcrop::Row>> = db.iter().collect();
/// let (key, value) = &rows?[0];
/// assert_eq!((&key[..], &value[..]), (&b"a"[..], &b"1"[..]));
/// # outcrop::Result::Ok(())
/// ```
pub type Row = (Vec<u8>, PinnedValue);

/// The rows of a range of one column family, in order, as of the moment of the call that made it. Runs from both ends: `rev()` costs
/// what the backward steps cost, and nothing else.
///
/// Of each row the key is copied into one `Vec`. The value is pinned in the block that has it, not copied, if it comes from a
/// table; it is copied if it comes from a memtable, a blob file, a merge or a wide-column entity. A [`PinnedValue`] keeps its block in
/// memory while it lives: call [`PinnedValue::into_vec`] on the few values to keep of a long scan.
///
/// Under [`ReadOptions::prefix_same_as_start`] it gives the same rows from both ends. Under a comparator or a prefix extractor of the
/// application's own, where the end of a prefix cannot be known, a step from the back is then a NotSupported error.
///
/// An error is the last item. The iterator keeps the tables it reads from being removed while it lives.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// for (key, value) in [("user/1", "ann"), ("user/2", "bob"), ("zone", "x")] {
///     db.put(key, value)?;
/// }
/// let mut names = Vec::new();
/// for row in db.prefix("user/") {
///     let (key, value) = row?;
///     assert!(key.starts_with(b"user/"));
///     names.push(String::from_utf8_lossy(&value).into_owned());
/// }
/// assert_eq!(names, ["ann", "bob"]);
///
/// let (last, _) = db.iter().rev().next().expect("there are rows")?;
/// assert_eq!(last, b"zone");
/// # outcrop::Result::Ok(())
/// ```
pub struct Iter {
    ctx: Arc<DbContext>,
    cf: ColumnFamilyHandle,
    /// Keeps memtables and tables alive until cursors are made, and for both.
    view: Option<Arc<SuperVersion>>,
    seq: SeqNum,
    /// With the bounds of the range.
    options: ReadOptions,
    /// The lower bound does not belong to the range. Only where no key follows it directly.
    skip_first: bool,
    /// The last key of the range, where that is no upper bound.
    last: Option<Vec<u8>>,
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// Nothing more comes, but for this.
    ended: bool,
    failed: Option<Error>,
}

/// The range and options of an iterator.
pub struct Scan {
    /// The column family.
    pub cf: ColumnFamilyHandle,
    /// Its sources.
    pub view: Arc<SuperVersion>,
    /// Newer entries are not seen.
    pub seq: SeqNum,
    /// First and last key, beside the bounds of the options.
    pub bounds: KeyBounds,
}

impl Iter {
    /// Over `scan`.
    pub(crate) fn new(ctx: &Arc<DbContext>, scan: Scan, options: &ReadOptions) -> Iter {
        let Scan { cf, view, seq, bounds: (start, end) } = scan;
        // A prefix of the application's is that of the key which was given, not of the one after it.
        let keeps_start = options.prefix_same_as_start
            && matches!(cf.options.load().prefix_extractor, Some(PrefixExtractor::User(_)));
        let has_next_key = cf.keys.is_bytewise() && !keeps_start;
        let mut iter = Iter {
            ctx: ctx.clone(),
            cf,
            view: Some(view),
            seq,
            // The view is pinned: nothing else needs to keep what the sequence number sees.
            options: ReadOptions { snapshot: None, ..options.clone() },
            skip_first: false,
            last: None,
            front: None,
            back: None,
            ended: false,
            failed: None,
        };
        let first = iter.first_key(&start);
        match start {
            Bound::Unbounded => {}
            Bound::Included(key) => iter.raise_lower(key, false),
            Bound::Excluded(key) if has_next_key => iter.raise_lower(directly_after(key), false),
            Bound::Excluded(key) => iter.raise_lower(key, true),
        }
        iter.reduce_end(end);
        if let Some(first) = first {
            iter.end_with_prefix_of(&first);
        }
        iter
    }

    /// With `prefix_same_as_start`: the key whose prefix all rows have, if the range begins with one.
    fn first_key(&self, start: &Bound<Vec<u8>>) -> Option<Vec<u8>> {
        let bound = self.options.iterate_lower_bound.as_ref().filter(|_| self.options.prefix_same_as_start);
        let start = match start {
            Bound::Included(key) | Bound::Excluded(key) if self.options.prefix_same_as_start => Some(key),
            _ => None,
        };
        let keys = [start, bound].into_iter().flatten();
        keys.max_by(|a, b| self.cf.keys.compare(a, b)).cloned()
    }

    /// Makes the end of the prefix of `first` the end of the range, where there is a key to say so.
    fn end_with_prefix_of(&mut self, first: &[u8]) {
        let options = self.cf.options.load();
        if self.cf.keys.is_user() || matches!(options.prefix_extractor, Some(PrefixExtractor::User(_))) {
            // Cursors going forward see for themselves where it ends.
            return;
        }
        self.options.prefix_same_as_start = false;
        let Some(extractor) = &options.prefix_extractor else { return };
        let Some(prefix) = extractor.transform(first) else { return };
        let end = match extractor.full_len() == Some(prefix.len()) {
            true => key_range::of_prefix(prefix, &self.cf.keys).map_or(Bound::Unbounded, |bounds| bounds.1),
            // Of a prefix that is shorter there is one key.
            false => Bound::Included(prefix.to_vec()),
        };
        self.reduce_end(end);
    }

    /// One that gives `error` and ends.
    pub(crate) fn failing(
        ctx: &Arc<DbContext>,
        cf: &ColumnFamilyHandle,
        view: Arc<SuperVersion>,
        error: Error,
    ) -> Iter {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let scan = Scan { cf: cf.clone(), view, seq: SeqNum::ZERO, bounds };
        let mut iter = Iter::new(ctx, scan, &ReadOptions::default());
        (iter.failed, iter.ended) = (Some(error), true);
        iter
    }

    /// Rows before `key` do not belong to the range, nor, with `skip`, does `key`.
    fn raise_lower(&mut self, key: Vec<u8>, skip: bool) {
        let bound = self.options.iterate_lower_bound.as_deref();
        let order = bound.map_or(Ordering::Greater, |bound| self.cf.keys.compare(&key, bound));
        if order.is_ge() {
            self.skip_first = skip;
            self.options.iterate_lower_bound = Some(key);
        }
    }

    /// Rows beyond `end` do not belong to the range.
    fn reduce_end(&mut self, end: Bound<Vec<u8>>) {
        match end {
            Bound::Unbounded => {}
            Bound::Excluded(key) => self.reduce_upper(key),
            Bound::Included(key) if self.cf.keys.is_bytewise() => self.reduce_upper(directly_after(key)),
            Bound::Included(key) => {
                if self.last.as_ref().is_none_or(|last| self.before(&key, last)) {
                    self.last = Some(key);
                }
            }
        }
    }

    /// Rows from `key` on do not belong to the range.
    fn reduce_upper(&mut self, key: Vec<u8>) {
        let bound = self.options.iterate_upper_bound.as_deref();
        if bound.is_none_or(|bound| self.cf.keys.compare(&key, bound).is_lt()) {
            self.options.iterate_upper_bound = Some(key);
        }
    }

    fn cursor(&self) -> Result<Cursor> {
        let view = self.view.as_ref().expect("kept until dropped");
        Cursor::new(&self.ctx, view.clone(), self.seq, &self.cf, &self.options)
    }

    /// A cursor on the first row of the range.
    fn at_first(&self) -> Result<Cursor> {
        let mut cursor = self.cursor()?;
        match &self.options.iterate_lower_bound {
            // Not to the first within the bounds: a seek asks the filters of prefixes.
            Some(lower) => cursor.seek(lower),
            None => cursor.seek_to_first(),
        }
        while cursor.valid() && self.is_skipped(cursor.key()) {
            cursor.next();
        }
        Ok(cursor)
    }

    /// A cursor on the last row of the range.
    fn at_last(&mut self) -> Result<Cursor> {
        if self.options.prefix_same_as_start {
            let options = self.cf.options.load();
            if self.cf.keys.is_user() && options.prefix_extractor.is_some() {
                return Err(Error::not_supported(format!(
                    "prefix_same_as_start from the back: under the order {} keys with one prefix need not lie together",
                    self.cf.keys.name()
                )));
            }
            if let Some(PrefixExtractor::User(user)) = &options.prefix_extractor {
                return Err(Error::not_supported(format!(
                    "prefix_same_as_start from the back: the prefix extractor {} does not tell where a prefix ends",
                    user.name()
                )));
            }
            let first = self.at_first()?;
            first.status()?;
            if first.valid() {
                self.end_with_prefix_of(first.key());
            }
        }
        let mut cursor = self.cursor()?;
        match &self.last {
            Some(last) => cursor.seek_for_prev(last),
            None => cursor.seek_to_last(),
        }
        Ok(cursor)
    }

    /// The lower bound, which does not belong to the range.
    fn is_skipped(&self, key: &[u8]) -> bool {
        let lower = self.options.iterate_lower_bound.as_deref().filter(|_| self.skip_first);
        lower.is_some_and(|lower| self.cf.keys.same(key, lower))
    }

    fn advance_front(&mut self) -> Result<Option<Row>> {
        match &mut self.front {
            Some(front) => front.next(),
            None => self.front = Some(self.at_first()?),
        }
        let front = self.front.as_ref().expect("made above");
        if !front.valid() {
            return front.status().map(|()| None);
        }
        let met = self.back.as_ref().is_some_and(|back| !self.before(front.key(), back.key()));
        let past = self.last.as_ref().is_some_and(|last| self.before(last, front.key()));
        Ok((!met && !past).then(|| row(front)))
    }

    fn advance_back(&mut self) -> Result<Option<Row>> {
        match &mut self.back {
            Some(back) => back.prev(),
            None => self.back = Some(self.at_last()?),
        }
        let back = self.back.as_ref().expect("made above");
        if !back.valid() {
            return back.status().map(|()| None);
        }
        let met = self.front.as_ref().is_some_and(|front| !self.before(front.key(), back.key()));
        Ok((!met && !self.is_skipped(back.key())).then(|| row(back)))
    }

    #[inline]
    fn before(&self, a: &[u8], b: &[u8]) -> bool {
        self.cf.keys.compare(a, b).is_lt()
    }

    /// The item for the result of a step; nothing follows the end or an error.
    fn item(&mut self, advanced: Result<Option<Row>>) -> Option<Result<Row>> {
        let item = advanced.transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

fn row(cursor: &Cursor) -> Row {
    (cursor.key().to_vec(), cursor.pinned_value())
}

/// The key that follows in the bytewise order, with none between.
fn directly_after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

impl Iterator for Iter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.ended {
            return self.failed.take().map(Err);
        }
        let advanced = self.advance_front();
        self.item(advanced)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Result<Row>> {
        if self.ended {
            return self.failed.take().map(Err);
        }
        let advanced = self.advance_back();
        self.item(advanced)
    }
}

impl FusedIterator for Iter {}

impl Drop for Iter {
    fn drop(&mut self) {
        // As of a cursor: the view may be the last holder of memtables and tables that are no longer current.
        if let Some(view) = self.view.take() {
            self.ctx.background.release_view(view);
        }
    }
}
