//! Which tickers and counters of the thread change when a block is looked up, read, cached or decompressed.
//!
//! Source: RocksDB `table/block_based/block_based_table_reader.cc`, `table/block_fetcher.cc`.

use crate::source::Form;
use outcrop_cache::Pinned;
use outcrop_monitor::{DetailedTimer, HistogramKind, IoStats, PerfMetric, PerfTimer, Ticker, Timer, Watch};

/// A block was in the cache.
#[inline]
pub fn hit(watch: Watch<'_>, form: Form, bytes: usize) {
    let (of_kind, bytes) = (
        match form {
            Form::Data => Ticker::BlockCacheDataHit,
            Form::Index => Ticker::BlockCacheIndexHit,
            Form::Plain => Ticker::BlockCacheFilterHit,
        },
        bytes as u64,
    );
    if let Some(stats) = watch.stats() {
        stats.count(Ticker::BlockCacheHit, 1);
        stats.count(of_kind, 1);
        stats.count(Ticker::BlockCacheBytesRead, bytes);
    }
    watch.perf(PerfMetric::BlockCacheHitCount, 1);
    watch.perf(PerfMetric::BlockCacheReadByte, bytes);
    match form {
        Form::Data => {}
        Form::Index => {
            watch.perf(PerfMetric::BlockCacheIndexHitCount, 1);
            watch.perf(PerfMetric::BlockCacheIndexReadByte, bytes);
        }
        Form::Plain => {
            watch.perf(PerfMetric::BlockCacheFilterHitCount, 1);
            watch.perf(PerfMetric::BlockCacheFilterReadByte, bytes);
        }
    }
}

/// A block was not in the cache.
#[cold]
pub fn miss(watch: Watch<'_>, form: Form) {
    watch.count(Ticker::BlockCacheMiss, 1);
    let of_kind = match form {
        Form::Data => Ticker::BlockCacheDataMiss,
        Form::Index => Ticker::BlockCacheIndexMiss,
        Form::Plain => Ticker::BlockCacheFilterMiss,
    };
    watch.count(of_kind, 1);
}

/// A block was to go into the cache.
pub fn inserted(watch: Watch<'_>, form: Form, placed: &Pinned) {
    let Some(stats) = watch.stats() else { return };
    if placed.is_standalone() {
        return stats.count(Ticker::BlockCacheAddFailures, 1);
    }
    let (added, inserted) = match form {
        Form::Data => (Ticker::BlockCacheDataAdd, Ticker::BlockCacheDataBytesInsert),
        Form::Index => (Ticker::BlockCacheIndexAdd, Ticker::BlockCacheIndexBytesInsert),
        Form::Plain => (Ticker::BlockCacheFilterAdd, Ticker::BlockCacheFilterBytesInsert),
    };
    let bytes = placed.len() as u64;
    for (ticker, n) in
        [(Ticker::BlockCacheAdd, 1), (Ticker::BlockCacheBytesWrite, bytes), (added, 1), (inserted, bytes)]
    {
        stats.count(ticker, n);
    }
}

/// `bytes` were read from a table.
pub fn read(watch: Watch<'_>, timer: Timer<'_>, bytes: usize) {
    IoStats::add_read(bytes as u64);
    timer.micros(HistogramKind::SstReadMicros);
    timer.perf_nanos(PerfMetric::BlockReadTime);
    watch.perf(PerfMetric::BlockReadCount, 1);
    watch.perf(PerfMetric::BlockReadByte, bytes as u64);
}

/// `bytes` were read from a table together with others: how long it took is nobody's.
pub fn read_in_batch(watch: Watch<'_>, bytes: usize) {
    IoStats::add_read(bytes as u64);
    watch.perf(PerfMetric::BlockReadCount, 1);
    watch.perf(PerfMetric::BlockReadByte, bytes as u64);
}

/// A data block of `bytes` is had from what was read.
pub fn loaded_data(watch: Watch<'_>, bytes: usize) {
    watch.perf(PerfMetric::DataBlockReadByte, bytes as u64);
}

/// A block about the table was read.
pub fn read_meta(watch: Watch<'_>, timer: PerfTimer<'_>, form: Form) {
    match form {
        Form::Data => {}
        Form::Index => {
            watch.perf(PerfMetric::IndexBlockReadCount, 1);
            timer.nanos(PerfMetric::ReadIndexBlockNanos);
        }
        Form::Plain => {
            watch.perf(PerfMetric::FilterBlockReadCount, 1);
            timer.nanos(PerfMetric::ReadFilterBlockNanos);
        }
    }
}

/// The checksum of a block was compared, and is that of its bytes or not.
pub fn verified(watch: Watch<'_>, timer: PerfTimer<'_>, matches: bool) {
    watch.count(Ticker::BlockChecksumComputeCount, 1);
    watch.count(Ticker::BlockChecksumMismatchCount, u64::from(!matches));
    timer.nanos(PerfMetric::BlockChecksumTime);
}

/// A block was decompressed.
pub fn decompressed(watch: Watch<'_>, timer: DetailedTimer<'_>, from: usize, to: usize) {
    timer.perf_nanos(PerfMetric::BlockDecompressTime);
    timer.stats_nanos(HistogramKind::DecompressionTimesNanos);
    watch.perf(PerfMetric::BlockDecompressCount, 1);
    watch.count(Ticker::NumberBlockDecompressed, 1);
    watch.count(Ticker::BytesDecompressedFrom, from as u64);
    watch.count(Ticker::BytesDecompressedTo, to as u64);
}

/// The subject of a question to a filter.
#[derive(Clone, Copy)]
pub enum Asked {
    /// A key that a lookup looks for.
    Key,
    /// Its prefix, for whole keys are not in the filter.
    PrefixOfKey,
    /// The prefix that a seek stays within.
    PrefixOfSeek,
}

/// A filter was asked, and did not rule the table out, or did.
#[inline]
pub fn asked_filter(watch: Watch<'_>, about: Asked, may_contain: bool) {
    if let Some(stats) = watch.stats() {
        match (about, may_contain) {
            (Asked::Key, true) => stats.count(Ticker::BloomFilterFullPositive, 1),
            (Asked::Key, false) => stats.count(Ticker::BloomFilterUseful, 1),
            (Asked::PrefixOfKey, _) => {
                stats.count(Ticker::BloomFilterPrefixChecked, 1);
                stats.count(Ticker::BloomFilterPrefixUseful, u64::from(!may_contain));
            }
            // RocksDB counts these by level, which a table does not know.
            (Asked::PrefixOfSeek, _) => {}
        }
    }
    let metric = if may_contain { PerfMetric::BloomSstHitCount } else { PerfMetric::BloomSstMissCount };
    watch.perf(metric, 1);
}

/// A filter, of whole keys or of prefixes, let a lookup through that found its key.
#[inline]
pub fn was_right(watch: Watch<'_>, of_keys: bool) {
    watch.count(
        if of_keys { Ticker::BloomFilterFullTruePositive } else { Ticker::BloomFilterPrefixTruePositive },
        1,
    );
}
