//! Which tickers, histograms and counters of the thread a read changes. Only `merged` is called where nobody watches.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc`, `db/memtable.cc`, `db/version_set_sync_and_async.h`.

use outcrop_base::keys::split;
use outcrop_base::{Comparator, ErrorKind, Result};
use outcrop_manifest::{Level, TableFile, Version};
use outcrop_monitor::{Counter, HistogramKind, Local, PerfMetric, StatsTimer, Ticker, Watch};

/// `apply` merges so many operands of a key that is read.
///
/// Source: RocksDB `db/merge_helper.cc`, `MergeHelper::TimedFullMergeCommonImpl`.
#[inline]
pub(super) fn merged<T>(watch: Watch<'_>, operands: usize, apply: impl FnOnce() -> Result<T>) -> Result<T> {
    if !watch.is_on() {
        return apply();
    }
    watch.record(HistogramKind::ReadNumMergeOperands, operands as u64);
    merging(watch, apply)
}

/// The application's merge operator works, for a read or a job.
///
/// Source: RocksDB `db/merge_helper.cc`.
pub fn merging<T>(watch: Watch<'_>, apply: impl FnOnce() -> Result<T>) -> Result<T> {
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
#[inline(always)]
pub fn key_read(stats: Counter<'_>, found: Option<usize>) {
    let bytes = found.unwrap_or(0) as u64;
    stats.count_all([(Ticker::NumberKeysRead, 1), (Ticker::BytesRead, bytes)]);
    stats.record_read(bytes);
}

/// The same, for all who watch.
pub fn key_read_watched(watch: Watch<'_>, timer: StatsTimer<'_>, found: Option<usize>) {
    let bytes = found.unwrap_or(0) as u64;
    watch.perf(PerfMetric::GetReadBytes, bytes);
    timer.micros(HistogramKind::DbGet);
    let Some(stats) = watch.stats() else { return };
    stats.count_all([(Ticker::NumberKeysRead, 1), (Ticker::BytesRead, bytes)]);
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
    let (mut found, mut bytes) = (0, 0);
    for value in results.iter().filter_map(|result| result.as_ref().ok()?.as_ref()) {
        found += 1;
        bytes += len(value) as u64;
    }
    watch.perf(PerfMetric::MultigetReadBytes, bytes);
    timer.micros(HistogramKind::DbMultiget);
    let Some(stats) = watch.stats() else { return };
    stats.count_all([
        (Ticker::NumberMultigetCalls, 1),
        (Ticker::NumberMultigetKeysRead, results.len() as u64),
        (Ticker::NumberMultigetKeysFound, found),
        (Ticker::NumberMultigetBytesRead, bytes),
    ]);
    stats.record(HistogramKind::BytesPerMultiget, bytes);
}

/// For keys that were read together blocks of these tables were read from their files.
///
/// Source: RocksDB `db/version_set.cc`, `Version::MultiGet`, which goes level by level.
#[cold]
pub fn levels_read(stats: Local<'_>, version: &Version, order: &Comparator, tables: &[&TableFile]) {
    if tables.is_empty() {
        stats.record(HistogramKind::NumLevelReadPerMultiget, 0);
        return;
    }
    let mut unique = tables.to_vec();
    unique.sort_unstable_by_key(|table| std::ptr::from_ref(*table));
    unique.dedup_by_key(|table| std::ptr::from_ref(*table));
    let mut read = vec![0; version.levels.len()];
    for table in unique {
        read[level_of(version, order, table)] += 1;
    }
    let mut levels_read = 0;
    for (number, read) in read.into_iter().enumerate() {
        // Tables of L0 are asked one after the other, as levels are.
        let levels = if number == 0 { read } else { u64::from(read > 0) };
        (0..levels).for_each(|_| stats.record(HistogramKind::NumSstReadPerLevel, read / levels));
        levels_read += levels;
    }
    stats.record(HistogramKind::NumLevelReadPerMultiget, levels_read);
}

/// The level of one of the version's tables.
fn level_of(version: &Version, order: &Comparator, table: &TableFile) -> usize {
    let (key, trailer) = split(&table.smallest);
    let is_there = |level: &Level| {
        level.files.get(level.find(order, key, trailer)).is_some_and(|file| std::ptr::eq(&**file, table))
    };
    (1..version.levels.len()).find(|level| is_there(&version.levels[*level])).unwrap_or(0)
}
