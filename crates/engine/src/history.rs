//! How far back the history of versions reaches, where keys have user-defined timestamps: `full_history_ts_low`.
//!
//! Invariant: it only rises. It is durable in the MANIFEST before a compaction may use it. Readers are told with the next change of their
//! tables, as from then on versions may be gone.

use crate::column_family::ColumnFamily;
use crate::version_set::VersionSet;
use outcrop_base::{Error, ErrorKind, Result, SeqNum, Timestamp};
use outcrop_manifest::VersionEdit;

/// Raises it to `low`, durably.
///
/// # Errors
/// As [`crate::Db::increase_full_history_low`].
///
/// Source: RocksDB `DBImpl::IncreaseFullHistoryTsLowImpl`.
pub fn increase_low(versions: &VersionSet, cf: &ColumnFamily, low: Timestamp) -> Result<()> {
    let current = low_of(cf)?;
    let order = &cf.comparator;
    if let Some(current) = current.filter(|current| order.compare_timestamps(low, *current).is_lt()) {
        let (current, low) = (order.timestamp_text(current), order.timestamp_text(low));
        let what = format!("Current full_history_ts_low: {current} is higher than provided ts: {low}\n");
        return Err(Error::invalid_argument(what));
    }
    let edits = || {
        let raced = cf.full_history_low.load().as_deref().copied();
        if raced.is_some_and(|raced| order.compare_timestamps(low, raced).is_lt()) {
            let what = "full_history_ts_low is set to be higher than the requested timestamp";
            return Err(Error::new(ErrorKind::TryAgain, what));
        }
        let mut edit = VersionEdit::for_column_family(cf.id());
        edit.full_history_low = Some(low);
        // It brings no entries: what was written so far may not be durable.
        Ok((vec![edit], SeqNum::default()))
    };
    versions.log_prepared(edits, |_| {})
}

/// As it is now; `None`: everything is kept.
///
/// # Errors
/// InvalidArgument if keys have no timestamps.
pub fn low_of(cf: &ColumnFamily) -> Result<Option<Timestamp>> {
    if !cf.has_timestamps() {
        return Err(Error::invalid_argument("Timestamp is not enabled in this column family"));
    }
    Ok(cf.full_history_low.load().as_deref().copied())
}
