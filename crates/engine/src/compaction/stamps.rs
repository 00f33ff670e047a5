//! The difference that user-defined timestamps make to the entries that a compaction keeps.
//!
//! ```text
//! versions of a row, newest first      9  8 | 5  3  1        full_history_ts_low = 7
//!                                 kept ^  ^   ^              the newest below it; 3 and 1 go, where no snapshot is between
//! ```
//! Versions at or above the low timestamp are rows of their own for the rules of [`super::stream`]; those below it are versions
//! of one.
//! Source: RocksDB `db/compaction/compaction_iterator.cc`, `NextFromInput`.

use crate::column_family::ColumnFamily;
use outcrop_base::timestamp::{TIMESTAMP_LEN, split_timestamp};
use outcrop_base::{Comparator, Timestamp};
use outcrop_table::TableProperties;

/// The rules of a column family whose keys have timestamps.
pub struct StampRules {
    order: Comparator,
    rows: Comparator,
    /// Versions below it may go but for the newest of each row; `None`: all stay.
    low: Option<Timestamp>,
    /// Versions above it go.
    trim: Option<Timestamp>,
}

impl StampRules {
    /// Those of `cf`, if its keys have timestamps. With `trim`, versions newer than that go.
    pub fn of(cf: &ColumnFamily, trim: Option<Timestamp>) -> Option<StampRules> {
        cf.has_timestamps().then(|| StampRules {
            order: cf.comparator.clone(),
            rows: cf.rows.clone(),
            low: cf.full_history_low.load().as_deref().copied(),
            trim,
        })
    }

    /// True if the version may be treated as history.
    pub fn is_history(&self, user_key: &[u8]) -> bool {
        let stamp = split_timestamp(user_key).map(|(_, stamp)| stamp);
        self.low.zip(stamp).is_some_and(|(low, stamp)| self.order.compare_timestamps(stamp, low).is_lt())
    }

    /// True if every version in the table of these properties may be treated as history.
    pub fn is_all_history(&self, properties: &TableProperties) -> bool {
        self.low
            .zip(properties.newest_timestamp())
            .is_some_and(|(low, newest)| self.order.compare_timestamps(newest, low).is_lt())
    }

    /// True if the version is newer than what is kept.
    pub fn is_trimmed(&self, user_key: &[u8]) -> bool {
        let stamp = split_timestamp(user_key).map(|(_, stamp)| stamp);
        self.trim.zip(stamp).is_some_and(|(trim, stamp)| self.order.compare_timestamps(stamp, trim).is_gt())
    }

    /// True if both are versions of one row.
    pub fn same_row(&self, a: &[u8], b: &[u8]) -> bool {
        self.rows.same(a, b)
    }

    /// True if `user_key` is a version of the same row as `last`, and both are history.
    pub fn continues(&self, last: &[u8], user_key: &[u8]) -> bool {
        self.is_history(user_key) && self.is_history(last) && self.same_row(last, user_key)
    }

    /// The order of rows.
    pub fn rows(&self) -> &Comparator {
        &self.rows
    }
}

/// Sets the timestamp of a stored user key to the oldest there is.
pub fn forget_timestamp(user_key: &mut [u8]) {
    if let Some(timestamp) = user_key.last_chunk_mut::<TIMESTAMP_LEN>() {
        timestamp.copy_from_slice(Timestamp::MIN.as_bytes());
    }
}
