//! Counts the bytes that the calling thread read and wrote of tables and logs.

use std::cell::Cell;

thread_local! {
    static STATS: Cell<IoStats> = const { Cell::new(IoStats { bytes_read: 0, bytes_written: 0 }) };
}

/// Bytes that the calling thread moved, whatever its perf level, since it began or [`IoStats::reset`].
///
/// ```
/// use outcrop_monitor::IoStats;
///
/// IoStats::reset();
/// assert_eq!(IoStats::get().bytes_read, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Read from tables.
    pub bytes_read: u64,
    /// Appended to WALs, in group commits those of others as well. Counted while somebody watches: statistics, or some thread's perf
    /// context.
    pub bytes_written: u64,
}

impl IoStats {
    /// So far.
    pub fn get() -> IoStats {
        STATS.get()
    }

    /// Begins anew.
    pub fn reset() {
        STATS.set(IoStats::default());
    }

    /// `bytes` were read.
    pub fn add_read(bytes: u64) {
        let now = STATS.get();
        STATS.set(IoStats { bytes_read: now.bytes_read + bytes, ..now });
    }

    /// `bytes` were written.
    pub fn add_written(bytes: u64) {
        let now = STATS.get();
        STATS.set(IoStats { bytes_written: now.bytes_written + bytes, ..now });
    }
}
