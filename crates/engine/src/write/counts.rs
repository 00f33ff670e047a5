//! Which tickers, histograms and counters of the thread a write changes, beside the counters of `rocksdb.dbstats`.
//!
//! Source: RocksDB `db/db_impl/db_impl_write.cc`.

use outcrop_monitor::{Counter, HistogramKind, IoStats, PerfMetric, PerfTimer, Ticker, Watch};

/// The time of a write less these is that of the steps before and after.
pub const PARTS_OF_A_WRITE: &[PerfMetric] =
    &[PerfMetric::WriteWalTime, PerfMetric::WriteMemtableTime, PerfMetric::WriteDelayTime];

/// The watchers of a write.
#[derive(Clone, Copy)]
pub struct Counted<'w> {
    /// The leader's part of the statistics, where nobody wants more.
    pub stats: Option<Counter<'w>>,
    /// All who watch, where more is wanted; then `stats` is `None`.
    pub watch: Watch<'w>,
}

impl<'w> From<Watch<'w>> for Counted<'w> {
    #[inline]
    fn from(watch: Watch<'w>) -> Counted<'w> {
        Counted { stats: None, watch }
    }
}

impl Counted<'_> {
    /// True if anybody does.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.stats.is_some() || self.watch.is_on()
    }

    /// Adds to tickers.
    #[inline(always)]
    fn count_all<const N: usize>(self, tickers: [(Ticker, u64); N]) {
        if let Some(stats) = self.stats {
            stats.count_all(tickers);
        } else if let Some(stats) = self.watch.stats() {
            stats.count_all(tickers);
        }
    }
}

/// A group of `writes` with `keys` records, of `bytes` in the WAL's form, was written by the calling thread.
#[inline(always)]
pub fn group(counted: Counted<'_>, writes: u64, keys: u64, bytes: u64) {
    counted.count_all([
        (Ticker::NumberKeysWritten, keys),
        (Ticker::BytesWritten, bytes),
        (Ticker::WriteDoneBySelf, 1),
        (Ticker::WriteDoneByOther, writes - 1),
    ]);
    match counted.stats {
        Some(stats) => stats.record_write(bytes),
        None => counted.watch.record(HistogramKind::BytesPerWrite, bytes),
    }
}

/// A record of `bytes` with `writes` was appended to the WAL.
#[inline(always)]
pub fn logged(counted: Counted<'_>, timer: PerfTimer<'_>, writes: u64, bytes: u64, synced: bool) {
    timer.nanos(PerfMetric::WriteWalTime);
    IoStats::add_written(bytes);
    counted.count_all([
        (Ticker::WalFileBytes, bytes),
        (Ticker::WriteWithWal, writes),
        (Ticker::WalFileSynced, u64::from(synced)),
    ]);
}

/// A writer was held back for `micros`, slowed and stopped together.
#[cold]
pub fn stalled(watch: Watch<'_>, micros: u64) {
    watch.count(Ticker::StallMicros, micros);
    watch.record(HistogramKind::WriteStall, micros);
}
