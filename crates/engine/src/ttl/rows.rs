//! Rows without their stamps.

use super::stamp::split_ttl_value;
use crate::read::rows::{Iter, Row};
use crate::read::value::PinnedValue;
use outcrop_base::Result;
use std::iter::FusedIterator;

/// The rows of a range of a [`crate::TtlDb`], in order, as [`Iter`] gives them, without the times at the end of their values. Runs from both
/// ends. Values that have expired and that no compaction has met yet are among them.
///
/// An error is the last item: those of [`Iter`], and Corruption if a value has no stamp.
///
/// ```
/// # use outcrop::{Db, Env, TtlDb};
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// let db = TtlDb::open(builder, 3600)?;
/// db.put("a", "one")?;
/// db.put("b", "two")?;
/// let rows: outcrop::Result<Vec<_>> = db.iter().rev().collect();
/// assert_eq!(&rows?[0].1[..], b"two");
/// # outcrop::Result::Ok(())
/// ```
pub struct TtlRows {
    rows: Iter,
    ended: bool,
}

impl TtlRows {
    pub(super) fn new(rows: Iter) -> TtlRows {
        TtlRows { rows, ended: false }
    }

    fn item(&mut self, row: Option<Result<Row>>) -> Option<Result<Row>> {
        let row = row.filter(|_| !self.ended)?;
        let row = row.and_then(|(key, stored)| Ok((key, value_of(&stored)?)));
        self.ended = row.is_err();
        Some(row)
    }
}

/// The value that is stored with a stamp, in the same memory.
pub(super) fn value_of(stored: &PinnedValue) -> Result<PinnedValue> {
    split_ttl_value(stored).map(|(value, _)| stored.part(value))
}

impl Iterator for TtlRows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let row = self.rows.next();
        self.item(row)
    }
}

impl DoubleEndedIterator for TtlRows {
    fn next_back(&mut self) -> Option<Result<Row>> {
        let row = self.rows.next_back();
        self.item(row)
    }
}

impl FusedIterator for TtlRows {}
