//! Which tickers, histograms and counters of the thread a read changes. Nothing here is called unless somebody watches.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc`, `db/memtable.cc`, `db/version_set_sync_and_async.h`.

use super::value::PinnedValue;
use outcrop_base::Result;
use outcrop_monitor::{HistogramKind, PerfMetric, Ticker, Timer, Watch};

/// Memtables were asked, so many of them, which decided or did not. Of keys that are read together the first counts them.
#[cold]
pub(super) fn memtables(watch: Watch<'_>, timer: Timer<'_>, decided: bool, asked: u64) {
    watch.count(if decided { Ticker::MemtableHit } else { Ticker::MemtableMiss }, 1);
    timer.perf_nanos(PerfMetric::GetFromMemtableTime);
    watch.perf(PerfMetric::GetFromMemtableCount, asked);
}

/// A table of `level` was asked, whose filter did not rule the key out.
#[cold]
pub(super) fn table(watch: Watch<'_>, level: usize, matched: bool, filters_keys: bool, found: bool) {
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::BloomFilterFullTruePositive, u64::from(matched && filters_keys));
    if found {
        let hit = match level {
            0 => Ticker::GetHitL0,
            1 => Ticker::GetHitL1,
            _ => Ticker::GetHitL2AndUp,
        };
        stats.count(hit, 1);
    }
}

/// A key was read that has a value of so many bytes, or none.
#[cold]
pub fn key_read(watch: Watch<'_>, timer: Timer<'_>, found: Option<usize>) {
    let bytes = found.unwrap_or(0) as u64;
    watch.perf(PerfMetric::GetReadBytes, bytes);
    timer.micros(HistogramKind::DbGet);
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::NumberKeysRead, 1);
    stats.count(Ticker::BytesRead, bytes);
    stats.record(HistogramKind::BytesPerRead, bytes);
}

/// Keys were read together.
#[cold]
pub fn keys_read(watch: Watch<'_>, timer: Timer<'_>, results: &[Result<Option<PinnedValue>>]) {
    let values = || results.iter().filter_map(|result| result.as_ref().ok()?.as_ref());
    let bytes = values().map(|value| value.len() as u64).sum();
    watch.perf(PerfMetric::MultigetReadBytes, bytes);
    timer.micros(HistogramKind::DbMultiget);
    let Some(stats) = watch.stats() else { return };
    stats.count(Ticker::NumberMultigetCalls, 1);
    stats.count(Ticker::NumberMultigetKeysRead, results.len() as u64);
    stats.count(Ticker::NumberMultigetKeysFound, values().count() as u64);
    stats.count(Ticker::NumberMultigetBytesRead, bytes);
    stats.record(HistogramKind::BytesPerMultiget, bytes);
}
