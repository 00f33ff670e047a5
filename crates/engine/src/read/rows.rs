//! An iterator over the rows of a column family.

use super::cursor::Cursor;
use super::ends::{CursorSource, Ends};
use super::key_range::KeyBounds;
use super::options::ReadOptions;
use super::value::PinnedValue;
use crate::column_family::ColumnFamilyHandle;
use crate::context::DbContext;
use crate::superversion::SuperVersion;
use outcrop_base::{Result, SeqNum};
use std::iter::FusedIterator;
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
pub type Row = super::ends::Row;

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
    ends: Ends<Committed>,
}

impl Iter {
    /// Over the range `bounds` of `committed`; an error is its only item.
    pub(crate) fn new(committed: Committed, bounds: Result<KeyBounds>, options: &ReadOptions) -> Iter {
        Iter { ends: Ends::new(committed, bounds, options) }
    }
}

impl Iterator for Iter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.ends.next()
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Result<Row>> {
        self.ends.next_back()
    }
}

impl FusedIterator for Iter {}

/// The committed rows of a column family as of one moment.
pub struct Committed {
    ctx: Arc<DbContext>,
    cf: ColumnFamilyHandle,
    /// Keeps memtables and tables alive until cursors are made, and for both.
    view: Option<Arc<SuperVersion>>,
    /// Newer entries are not seen.
    seq: SeqNum,
}

impl Committed {
    /// Of `cf`, whose sources are `view`, as of `seq`.
    pub(crate) fn new(
        ctx: &Arc<DbContext>,
        cf: &ColumnFamilyHandle,
        view: Arc<SuperVersion>,
        seq: SeqNum,
    ) -> Committed {
        Committed { ctx: ctx.clone(), cf: cf.clone(), view: Some(view), seq }
    }
}

impl CursorSource for Committed {
    type Cursor = Cursor;

    fn family(&self) -> &ColumnFamilyHandle {
        &self.cf
    }

    fn cursor(&self, options: &ReadOptions) -> Result<Cursor> {
        let view = self.view.as_ref().expect("kept until dropped");
        Cursor::new(&self.ctx, view.clone(), self.seq, &self.cf, options)
    }

    fn value(cursor: &Cursor) -> PinnedValue {
        cursor.pinned_value()
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        // As of a cursor: the view may be the last holder of memtables and tables that are no longer current.
        if let Some(view) = self.view.take() {
            self.ctx.background.release_view(view);
        }
    }
}
