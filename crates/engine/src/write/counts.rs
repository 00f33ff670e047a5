//! Which tickers, histograms and counters of the thread a write changes, beside the counters of `rocksdb.dbstats`.
//!
//! Source: RocksDB `db/db_impl/db_impl_write.cc`.

use outcrop_monitor::{HistogramKind, IoStats, PerfMetric, PerfTimer, Ticker, Watch};

/// The time of a write less these is that of the steps before and after.
pub const PARTS_OF_A_WRITE: &[PerfMetric] =
    &[PerfMetric::WriteWalTime, PerfMetric::WriteMemtableTime, PerfMetric::WriteDelayTime];

/// A group of `writes` with `keys` records, of `bytes` in the WAL's form, was written by the calling thread.
#[inline]
pub fn group(watch: Watch<'_>, writes: u64, keys: u64, bytes: u64) {
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::NumberKeysWritten, keys);
    stats.count(Ticker::BytesWritten, bytes);
    stats.count(Ticker::WriteDoneBySelf, 1);
    stats.count(Ticker::WriteDoneByOther, writes - 1);
    stats.record(HistogramKind::BytesPerWrite, bytes);
}

/// A record of `bytes` with `writes` was appended to the WAL.
#[inline]
pub fn logged(watch: Watch<'_>, timer: PerfTimer<'_>, writes: u64, bytes: u64, synced: bool) {
    timer.nanos(PerfMetric::WriteWalTime);
    IoStats::add_written(bytes);
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::WalFileBytes, bytes);
    stats.count(Ticker::WriteWithWal, writes);
    stats.count(Ticker::WalFileSynced, u64::from(synced));
}

/// A writer was held back for `micros`, slowed and stopped together.
#[cold]
pub fn stalled(watch: Watch<'_>, micros: u64) {
    watch.count(Ticker::StallMicros, micros);
    watch.record(HistogramKind::WriteStall, micros);
}
