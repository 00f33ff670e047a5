//! Which tickers and counters of the thread change when a block is looked up, read, cached or decompressed.
//!
//! Source: RocksDB `table/block_based/block_based_table_reader.cc`, `table/block_fetcher.cc`.

use crate::format::FOOTER_LEN;
use crate::placement::Placement;
use crate::source::Form;
use outcrop_cache::Pinned;
use outcrop_monitor::{
    Counting, DetailedTimer, HistogramKind, IoStats, PerfMetric, PerfTimer, Purpose, ReadCount, Ticker,
    Timer, Watch,
};

/// A block was in the cache.
#[inline(always)]
pub fn hit(counting: Counting<'_>, form: Form, bytes: usize) {
    let (hit, bytes_hit) = match form {
        Form::Data => (ReadCount::DataHit, ReadCount::DataHitBytes),
        Form::Index => (ReadCount::IndexHit, ReadCount::IndexHitBytes),
        Form::Plain => (ReadCount::FilterHit, ReadCount::FilterHitBytes),
    };
    counting.add(hit, 1);
    counting.add(bytes_hit, bytes as u64);
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

/// A read asked the file of a table for `bytes`.
///
/// Source: RocksDB `file/random_access_file_reader.cc`, `RecordIOStats`.
fn asked_file(watch: Watch<'_>, placement: &Placement, bytes: usize) {
    IoStats::add_read(bytes as u64);
    let Some(stats) = watch.stats() else { return };
    let (count, of_bytes) = match placement.is_in_last_level() {
        true => (Ticker::LastLevelReadCount, Ticker::LastLevelReadBytes),
        false => (Ticker::NonLastLevelReadCount, Ticker::NonLastLevelReadBytes),
    };
    stats.count_all([(count, 1), (of_bytes, bytes as u64)]);
}

/// The footer of a table was read, which tells where its blocks are.
pub fn read_at_end(watch: Watch<'_>, placement: &Placement) {
    asked_file(watch, placement, FOOTER_LEN);
}

/// `bytes` were read from a table.
pub fn read(watch: Watch<'_>, timer: Timer<'_>, placement: &Placement, bytes: usize) {
    asked_file(watch, placement, bytes);
    timer.micros_of([HistogramKind::SstReadMicros, time_of_reads(Purpose::current())]);
    timer.perf_nanos(PerfMetric::BlockReadTime);
    watch.perf(PerfMetric::BlockReadCount, 1);
    watch.perf(PerfMetric::BlockReadByte, bytes as u64);
}

/// The histogram of reads for a purpose.
///
/// Source: RocksDB `file/random_access_file_reader.cc`, `GetFileReadHistograms`.
fn time_of_reads(purpose: Purpose) -> HistogramKind {
    match purpose {
        Purpose::Get => HistogramKind::FileReadGetMicros,
        Purpose::Multiget => HistogramKind::FileReadMultigetMicros,
        Purpose::Iterate => HistogramKind::FileReadDbIteratorMicros,
        Purpose::Flush => HistogramKind::FileReadFlushMicros,
        Purpose::Compaction => HistogramKind::FileReadCompactionMicros,
        Purpose::Open => HistogramKind::FileReadDbOpenMicros,
    }
}

/// `bytes` were read from a table together with others: how long it took is nobody's.
pub fn read_in_batch(watch: Watch<'_>, placement: &Placement, bytes: usize) {
    asked_file(watch, placement, bytes);
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
}

/// A filter was asked, and did not rule the table out, or did.
#[inline(always)]
pub fn asked_filter(counting: Counting<'_>, about: Asked, may_contain: bool) {
    let what = match (about, may_contain) {
        (Asked::Key, true) => ReadCount::FilterPositive,
        (Asked::Key, false) => ReadCount::FilterUseful,
        (Asked::PrefixOfKey, true) => ReadCount::PrefixPositive,
        (Asked::PrefixOfKey, false) => ReadCount::PrefixUseful,
    };
    counting.add(what, 1);
}

/// A filter was asked about the prefix that a seek stays within.
pub fn asked_filter_of_seek(counting: Counting<'_>, placement: &Placement, may_contain: bool) {
    let what = match (placement.is_in_last_level(), may_contain) {
        (false, true) => ReadCount::SeekPositive,
        (false, false) => ReadCount::SeekUseful,
        (true, true) => ReadCount::LastLevelSeekPositive,
        (true, false) => ReadCount::LastLevelSeekUseful,
    };
    counting.add(what, 1);
}

/// The count of a lookup that found its key in a table: its filter was right, if it has one, of whole keys or of prefixes.
pub fn right(filter_has_whole_keys: Option<bool>) -> ReadCount {
    match filter_has_whole_keys {
        Some(true) => ReadCount::FilterRight,
        Some(false) => ReadCount::PrefixRight,
        None => ReadCount::Nothing,
    }
}
