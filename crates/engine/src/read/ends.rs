//! Rows from both ends of a range, over one or two cursors.
//!
//! ```text
//! start                                            end
//!   |--- front: next() --->   ...   <--- back: next_back() ---|
//! ```
//! Each end is a cursor that is made when it is first asked; both see the same rows. Once both are used, the keys they stand on are
//! compared before each row, so that none comes twice.

use super::key_range::{self, KeyBounds};
use super::options::ReadOptions;
use super::value::PinnedValue;
use crate::batch::overlay::RowSource;
use crate::column_family::ColumnFamilyHandle;
use outcrop_base::{Error, PrefixExtractor, Result};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

/// A key and its value.
pub type Row = (Vec<u8>, PinnedValue);

/// Makes the cursors of both ends, which see the same rows.
pub trait CursorSource {
    /// A cursor, and its value without a copy where it has that.
    type Cursor: RowSource;

    /// The column family that the rows are of.
    fn family(&self) -> &ColumnFamilyHandle;

    /// A cursor within the bounds of `options`, not yet positioned.
    fn cursor(&self, options: &ReadOptions) -> Result<Self::Cursor>;

    /// The value that `cursor` stands at.
    fn value(cursor: &Self::Cursor) -> PinnedValue;
}

/// Both ends of a range.
pub struct Ends<S: CursorSource> {
    source: S,
    /// With the bounds of the range.
    options: ReadOptions,
    /// The lower bound does not belong to the range. Only where no key follows it directly.
    skip_first: bool,
    /// The last key of the range, where that is no upper bound.
    last: Option<Vec<u8>>,
    front: Option<S::Cursor>,
    back: Option<S::Cursor>,
    /// Nothing more comes, but for this.
    ended: bool,
    failed: Option<Error>,
}

impl<S: CursorSource> Ends<S> {
    /// Of the range `bounds`, within those of `options`; an error is the only item.
    pub fn new(source: S, bounds: Result<KeyBounds>, options: &ReadOptions) -> Ends<S> {
        let (failed, (start, end)) = match bounds {
            Ok(bounds) => (None, bounds),
            Err(error) => (Some(error), (Bound::Unbounded, Bound::Unbounded)),
        };
        let cf = source.family();
        // A prefix of the application's is that of the key which was given, not of the one after it.
        let keeps_start = options.prefix_same_as_start
            && matches!(cf.options.load().prefix_extractor, Some(PrefixExtractor::User(_)));
        let has_next_key = cf.keys.is_bytewise() && !keeps_start;
        let mut ends = Ends {
            source,
            // The source pins the rows that are seen: nothing else needs to keep what the sequence number sees.
            options: ReadOptions { snapshot: None, ..options.clone() },
            skip_first: false,
            last: None,
            front: None,
            back: None,
            ended: failed.is_some(),
            failed,
        };
        let first = ends.first_key(&start);
        match start {
            Bound::Unbounded => {}
            Bound::Included(key) => ends.raise_lower(key, false),
            Bound::Excluded(key) if has_next_key => ends.raise_lower(directly_after(key), false),
            Bound::Excluded(key) => ends.raise_lower(key, true),
        }
        ends.reduce_end(end);
        if let Some(first) = first {
            ends.end_with_prefix_of(&first);
        }
        ends
    }

    /// The next row from the front.
    pub fn next(&mut self) -> Option<Result<Row>> {
        if self.ended {
            return self.failed.take().map(Err);
        }
        let advanced = self.advance_front();
        self.item(advanced)
    }

    /// The next row from the back.
    pub fn next_back(&mut self) -> Option<Result<Row>> {
        if self.ended {
            return self.failed.take().map(Err);
        }
        let advanced = self.advance_back();
        self.item(advanced)
    }

    /// With `prefix_same_as_start`: the key whose prefix all rows have, if the range begins with one.
    fn first_key(&self, start: &Bound<Vec<u8>>) -> Option<Vec<u8>> {
        let bound = self.options.iterate_lower_bound.as_ref().filter(|_| self.options.prefix_same_as_start);
        let start = match start {
            Bound::Included(key) | Bound::Excluded(key) if self.options.prefix_same_as_start => Some(key),
            _ => None,
        };
        let keys = [start, bound].into_iter().flatten();
        keys.max_by(|a, b| self.source.family().keys.compare(a, b)).cloned()
    }

    /// Makes the end of the prefix of `first` the end of the range, where there is a key to say so.
    fn end_with_prefix_of(&mut self, first: &[u8]) {
        let options = self.source.family().options.load();
        if self.source.family().keys.is_user()
            || matches!(options.prefix_extractor, Some(PrefixExtractor::User(_)))
        {
            // Cursors going forward see for themselves where it ends.
            return;
        }
        self.options.prefix_same_as_start = false;
        let Some(extractor) = &options.prefix_extractor else { return };
        let Some(prefix) = extractor.transform(first) else { return };
        let end = match extractor.full_len() == Some(prefix.len()) {
            true => key_range::of_prefix(prefix, &self.source.family().keys)
                .map_or(Bound::Unbounded, |bounds| bounds.1),
            // Of a prefix that is shorter there is one key.
            false => Bound::Included(prefix.to_vec()),
        };
        self.reduce_end(end);
    }

    /// Rows before `key` do not belong to the range, nor, with `skip`, does `key`.
    fn raise_lower(&mut self, key: Vec<u8>, skip: bool) {
        let bound = self.options.iterate_lower_bound.as_deref();
        let order = bound.map_or(Ordering::Greater, |bound| self.source.family().keys.compare(&key, bound));
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
            Bound::Included(key) if self.source.family().keys.is_bytewise() => {
                self.reduce_upper(directly_after(key))
            }
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
        if bound.is_none_or(|bound| self.source.family().keys.compare(&key, bound).is_lt()) {
            self.options.iterate_upper_bound = Some(key);
        }
    }

    /// A cursor on the first row of the range.
    fn at_first(&self) -> Result<S::Cursor> {
        let mut cursor = self.source.cursor(&self.options)?;
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
    fn at_last(&mut self) -> Result<S::Cursor> {
        if self.options.prefix_same_as_start {
            let options = self.source.family().options.load();
            if self.source.family().keys.is_user() && options.prefix_extractor.is_some() {
                return Err(Error::not_supported(format!(
                    "prefix_same_as_start from the back: under the order {} keys with one prefix need not lie together",
                    self.source.family().keys.name()
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
        let mut cursor = self.source.cursor(&self.options)?;
        match &self.last {
            Some(last) => cursor.seek_for_prev(last),
            None => cursor.seek_to_last(),
        }
        Ok(cursor)
    }

    /// The lower bound, which does not belong to the range.
    fn is_skipped(&self, key: &[u8]) -> bool {
        let lower = self.options.iterate_lower_bound.as_deref().filter(|_| self.skip_first);
        lower.is_some_and(|lower| self.source.family().keys.same(key, lower))
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
        Ok((!met && !past).then(|| row::<S>(front)))
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
        Ok((!met && !self.is_skipped(back.key())).then(|| row::<S>(back)))
    }

    #[inline]
    fn before(&self, a: &[u8], b: &[u8]) -> bool {
        self.source.family().keys.compare(a, b).is_lt()
    }

    /// The item for the result of a step; nothing follows the end or an error.
    fn item(&mut self, advanced: Result<Option<Row>>) -> Option<Result<Row>> {
        let item = advanced.transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

fn row<S: CursorSource>(cursor: &S::Cursor) -> Row {
    (cursor.key().to_vec(), S::value(cursor))
}

/// The key that follows in the bytewise order, with none between.
fn directly_after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Where the keys that begin with `prefix` are, and the options to scan them by: the range ends with the prefix, whatever the prefix extractor says.
pub fn within_prefix<'o>(
    cf: &ColumnFamilyHandle,
    prefix: &[u8],
    options: &'o ReadOptions,
) -> (Result<KeyBounds>, Cow<'o, ReadOptions>) {
    let options = match options.prefix_same_as_start {
        false => Cow::Borrowed(options),
        true => Cow::Owned(ReadOptions { prefix_same_as_start: false, ..options.clone() }),
    };
    (key_range::of_prefix(prefix, &cf.keys), options)
}
