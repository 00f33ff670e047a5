//! Which tickers, histograms and counters of the thread a read changes. Nothing here is called unless somebody watches.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc`, `db/memtable.cc`, `db/version_set_sync_and_async.h`.

use outcrop_base::{ErrorKind, Result};
use outcrop_monitor::{HistogramKind, PerfMetric, PerfTimer, StatsTimer, Ticker, Watch};

/// Memtables were asked, so many of them, which decided or did not. Of keys that are read together the first counts them.
#[inline]
pub(super) fn memtables(watch: Watch<'_>, timer: PerfTimer<'_>, decided: bool, asked: u64) {
    watch.count(if decided { Ticker::MemtableHit } else { Ticker::MemtableMiss }, 1);
    timer.nanos(PerfMetric::GetFromMemtableTime);
    watch.perf(PerfMetric::GetFromMemtableCount, asked);
}

/// A value was found in a table of the level that `level` says, which is not asked if nobody wants to know.
#[inline]
pub(super) fn found_in_table(watch: Watch<'_>, level: impl FnOnce() -> usize) {
    let Some(stats) = watch.stats() else { return };
    let hit = match level() {
        0 => Ticker::GetHitL0,
        1 => Ticker::GetHitL1,
        _ => Ticker::GetHitL2AndUp,
    };
    stats.count(hit, 1);
}

/// `apply` merges so many operands of a key that is read.
///
/// Source: RocksDB `db/merge_helper.cc`, `MergeHelper::TimedFullMergeCommonImpl`.
#[inline]
pub(super) fn merged<T>(watch: Watch<'_>, operands: usize, apply: impl FnOnce() -> Result<T>) -> Result<T> {
    if !watch.is_on() {
        return apply();
    }
    watch.record(HistogramKind::ReadNumMergeOperands, operands as u64);
    let timer = watch.timer();
    let merged = apply();
    timer.count_nanos(Ticker::MergeOperationTotalTime);
    timer.perf_nanos(PerfMetric::MergeOperatorTimeNanos);
    if merged.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corruption) {
        watch.count(Ticker::NumberMergeFailures, 1);
    }
    merged
}

/// A key was read that has a value of so many bytes, or none.
#[inline]
pub fn key_read(watch: Watch<'_>, timer: StatsTimer<'_>, found: Option<usize>) {
    let bytes = found.unwrap_or(0) as u64;
    watch.perf(PerfMetric::GetReadBytes, bytes);
    timer.micros(HistogramKind::DbGet);
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::NumberKeysRead, 1);
    stats.count(Ticker::BytesRead, bytes);
    stats.record(HistogramKind::BytesPerRead, bytes);
}

/// Keys were read together; `len` is the length of a value that was found.
#[cold]
pub fn keys_read<T>(
    watch: Watch<'_>,
    timer: StatsTimer<'_>,
    results: &[Result<Option<T>>],
    len: impl Fn(&T) -> usize,
) {
    let values = || results.iter().filter_map(|result| result.as_ref().ok()?.as_ref());
    let bytes = values().map(|value| len(value) as u64).sum();
    watch.perf(PerfMetric::MultigetReadBytes, bytes);
    timer.micros(HistogramKind::DbMultiget);
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::NumberMultigetCalls, 1);
    stats.count(Ticker::NumberMultigetKeysRead, results.len() as u64);
    stats.count(Ticker::NumberMultigetKeysFound, values().count() as u64);
    stats.count(Ticker::NumberMultigetBytesRead, bytes);
    stats.record(HistogramKind::BytesPerMultiget, bytes);
}
