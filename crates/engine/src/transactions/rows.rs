//! An iterator over the rows that a transaction would leave.

use crate::batch::indexed::IndexedBatch;
use crate::batch::overlay::{Bounds, FamilyParts, Overlay, RowSource};
use crate::column_family::ColumnFamilyHandle;
use crate::read::cursor::Cursor;
use crate::read::ends::{CursorSource, Ends};
use crate::read::key_range::KeyBounds;
use crate::read::options::ReadOptions;
use crate::read::rows::{Committed, Row};
use crate::read::value::PinnedValue;
use outcrop_base::{Error, Result};
use std::iter::FusedIterator;

/// The rows of a range as a [`crate::Transaction`] would leave them, in order: its own writes over what was committed when the iterator was
/// made. Runs from both ends. A write of the transaction while the iterator lives is seen if it lies ahead of the end that moves; after the
/// transaction was committed or rolled back, also to a save point, the rows are those of neither state.
///
/// Keys and values are copied, or pinned, as by [`crate::Iter`]. An error is the last item.
///
/// ```
/// # use outcrop::{Db, Env, Row, TransactionDb};
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// let db = TransactionDb::open_with(builder, Default::default())?;
/// db.put("job/1", "done")?;
/// db.put("job/2", "open")?;
/// let mut transaction = db.begin();
/// transaction.put("job/3", "new")?;
/// for row in transaction.prefix("job/") {
///     let (key, value) = row?;
///     if &value[..] == b"done" {
///         transaction.delete(key)?;
///     }
/// }
/// let left: outcrop::Result<Vec<Row>> = transaction.iter().rev().collect();
/// assert_eq!(left?.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), [b"job/3", b"job/2"]);
/// # outcrop::Result::Ok(())
/// ```
pub struct TransactionRows {
    ends: Ends<Uncommitted>,
}

impl TransactionRows {
    /// Over the range `bounds` of `committed` with `batch` laid over it; an error is its only item.
    pub(super) fn new(
        committed: Committed,
        batch: &IndexedBatch,
        bounds: Result<KeyBounds>,
        options: &ReadOptions,
    ) -> TransactionRows {
        // A prefix of the base is not one of the batch.
        let bounds = match options.prefix_same_as_start {
            true => {
                Err(Error::not_supported("prefix_same_as_start of a transaction's iterator: prefix has it"))
            }
            false => bounds,
        };
        TransactionRows { ends: Ends::new(Uncommitted { committed, batch: batch.shared() }, bounds, options) }
    }
}

impl Iterator for TransactionRows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.ends.next()
    }
}

impl DoubleEndedIterator for TransactionRows {
    fn next_back(&mut self) -> Option<Result<Row>> {
        self.ends.next_back()
    }
}

impl FusedIterator for TransactionRows {}

/// The committed rows, and a batch to lay over them.
struct Uncommitted {
    committed: Committed,
    batch: IndexedBatch,
}

impl CursorSource for Uncommitted {
    type Cursor = Overlay<Cursor>;

    fn family(&self) -> &ColumnFamilyHandle {
        self.committed.family()
    }

    fn cursor(&self, options: &ReadOptions) -> Result<Overlay<Cursor>> {
        let family = FamilyParts::from(self.family());
        Ok(self.batch.overlay(Some(family), self.committed.cursor(options)?, Bounds::of(options)))
    }

    fn value(cursor: &Overlay<Cursor>) -> PinnedValue {
        match cursor.shown_base() {
            Some(base) => base.pinned_value(),
            None => PinnedValue::owned(cursor.value().to_vec()),
        }
    }
}
