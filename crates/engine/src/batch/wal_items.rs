//! The items of a record in a WAL, for programs that look at WALs from outside: writes, marks of two-phase commit, and items that a
//! replay passes over.
//!
//! Source: RocksDB `WriteBatch::Iterate`.

use super::codec::{self, Item, Marker, Record, Records};
use outcrop_base::{Error, Result};

/// One item of a record in a WAL, as [`wal_items`] gives it.
///
/// ```
/// # use outcrop::{WalItem, WriteBatch, wal_items};
/// # let mut batch = WriteBatch::new();
/// # batch.put_log_data(b"from: backup 7");
/// // What an application noted beside its writes.
/// let noted = |item| match item {
///     WalItem::LogData(blob) => Some(blob.to_vec()),
///     _ => None,
/// };
/// let notes: Vec<Vec<u8>> = wal_items(batch.as_bytes())?.flatten().filter_map(noted).collect();
/// assert_eq!(notes, [b"from: backup 7"]);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalItem<'a> {
    /// A counted write.
    Write(Record<'a>),
    /// A blob that means nothing to the database.
    LogData(&'a [u8]),
    /// Room that a batch of a transaction leaves for the mark that it is prepared.
    Noop,
    /// The writes up to the next end are prepared, not committed.
    BeginPrepare,
    /// Ends the writes that are prepared as the transaction of this name.
    EndPrepare(&'a [u8]),
    /// The transaction that was prepared under this name is committed here.
    Commit(&'a [u8]),
    /// The transaction that was prepared under this name is rolled back here.
    Rollback(&'a [u8]),
}

/// The items of `record`, a whole record in a WAL, in order; RocksDB's `WriteBatch::Iterate`. A [`crate::WriteBatch`] is such a record,
/// too, and those of transactions in two phases have marks besides.
///
/// ```
/// # use outcrop::*;
/// # let mut batch = WriteBatch::new();
/// # batch.put("a", "1");
/// let mut names = Vec::new();
/// for item in wal_items(batch.as_bytes())? {
///     match item? {
///         WalItem::Commit(name) => names.push(name),
///         _ => continue,
///     }
/// }
/// assert!(names.is_empty(), "it commits no transaction");
/// # outcrop::Result::Ok(())
/// ```
///
/// # Errors
/// Corruption if there is no header. Each item: Corruption if it does not decode, or after the last if the header has another
/// count of writes; NotSupported naming the feature of one that Outcrop does not have. It is the last then.
pub fn wal_items(record: &[u8]) -> Result<impl Iterator<Item = Result<WalItem<'_>>>> {
    let items = codec::records(record)?;
    Ok(Items { items: Some(items), expected: codec::count_of(record), counted: 0 })
}

struct Items<'a> {
    /// `None` after an error.
    items: Option<Records<'a>>,
    expected: u32,
    counted: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<WalItem<'a>>;

    fn next(&mut self) -> Option<Result<WalItem<'a>>> {
        let items = self.items.as_mut()?;
        if let Some(blob) = items.next_log_data() {
            return Some(Ok(WalItem::LogData(blob)));
        }
        if items.next_noop() {
            return Some(Ok(WalItem::Noop));
        }
        match items.next_item() {
            Some(Ok(Item::Write(record))) => {
                self.counted += 1;
                Some(Ok(WalItem::Write(record)))
            }
            Some(Ok(Item::Marker(marker))) => Some(Ok(match marker {
                Marker::BeginPrepare => WalItem::BeginPrepare,
                Marker::EndPrepare(name) => WalItem::EndPrepare(name),
                Marker::Commit(name) => WalItem::Commit(name),
                Marker::Rollback(name) => WalItem::Rollback(name),
            })),
            Some(Err(error)) => {
                self.items = None;
                Some(Err(error))
            }
            None => {
                self.items = None;
                let wrong = || Err(Error::corruption("WriteBatch has wrong count"));
                (self.counted != self.expected).then(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::codec::{Op, WriteBatch, marker_record, prepared_record};
    use outcrop_base::{CfId, ErrorKind};

    fn items(record: &[u8]) -> Vec<WalItem<'_>> {
        wal_items(record).unwrap().map(|item| item.unwrap()).collect()
    }

    #[test]
    fn all_that_a_transaction_in_two_phases_writes_is_given() {
        let mut writes = WriteBatch::new();
        writes.reserve_marker();
        writes.put_id(CfId(3), b"a", b"1");
        writes.put_log_data(b"note");
        let put = WalItem::Write(Record { cf: CfId(3), op: Op::Put { key: b"a", value: b"1" } });
        assert_eq!(items(writes.as_bytes()), [WalItem::Noop, put, WalItem::LogData(b"note")]);
        assert_eq!(
            items(&prepared_record(&writes, b"t")),
            [WalItem::BeginPrepare, put, WalItem::LogData(b"note"), WalItem::EndPrepare(b"t")]
        );
        let empty = WriteBatch::new();
        assert_eq!(items(&marker_record(&empty, Marker::Commit(b"t"))), [WalItem::Commit(b"t")]);
        assert_eq!(items(&marker_record(&empty, Marker::Rollback(b"t"))), [WalItem::Rollback(b"t")]);
    }

    #[test]
    fn an_error_is_the_last_item() {
        let mut writes = WriteBatch::new();
        writes.put_id(CfId::DEFAULT, b"a", b"1");
        let whole = prepared_record(&writes, b"name");
        let error = |record: &[u8]| {
            let mut items = wal_items(record).map_err(|error| error.kind())?;
            let error = items.find_map(|item| item.err());
            assert!(items.next().is_none(), "{}", record.escape_ascii());
            Ok(error.map(|error| (error.kind(), error.to_string())))
        };
        assert_eq!(error(&whole), Ok(None));
        assert_eq!(error(&whole[..11]), Err(ErrorKind::Corruption), "no header");
        for len in 12..whole.len() {
            let found = error(&whole[..len]).unwrap();
            // The end of what is prepared may be missing: it is for a replay to say so.
            let kind = found.map(|(kind, _)| kind);
            let lacks_end = len == whole.len() - 6;
            assert_eq!(kind, (!lacks_end).then_some(ErrorKind::Corruption), "cut at {len}");
        }
        let mut miscounted = whole.clone();
        miscounted[8] = 2;
        assert!(error(&miscounted).unwrap().unwrap().1.contains("wrong count"));
        let timed = [&whole[..12], b"\x18\x01p\x01q"].concat();
        assert_eq!(error(&timed).unwrap().unwrap().0, ErrorKind::NotSupported);
    }
}
