//! Which tickers and histograms a compaction changes.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc`, `RecordDroppedKeys`, `RecordCompactionIOStats`.

use super::Reason;
use super::job::CompactionJob;
use super::stream::StreamStats;
use crate::context::DbContext;
use crate::stats::LevelStats;
use outcrop_monitor::{HistogramKind, Ticker, Watch};

/// The counts that the parts of a compaction reported.
pub struct CompactionCounts {
    /// Entries.
    pub records: StreamStats,
    /// How many there were.
    pub parts: u64,
    /// Read from files.
    pub bytes_read: u64,
}

/// A compaction has ended.
pub fn compacted(ctx: &DbContext, job: &CompactionJob, stats: &LevelStats, counts: &CompactionCounts) {
    let CompactionCounts { records, parts, bytes_read } = counts;
    let watching = ctx.monitor.begin();
    let Some(counted) = Watch::from(&watching).stats() else { return };
    for (ticker, n) in [
        (Ticker::CompactReadBytes, *bytes_read),
        (Ticker::CompactWriteBytes, stats.bytes_written),
        (Ticker::CompactionCpuTotalTime, stats.cpu_micros),
        (Ticker::CompactionKeyDropNewerEntry, records.dropped_hidden),
        (Ticker::CompactionKeyDropObsolete, records.dropped_obsolete),
        (Ticker::CompactionKeyDropRangeDel, records.dropped_range_del),
        (Ticker::CompactionKeyDropUser, records.dropped_by_filter),
        (Ticker::CompactionOptimizedDelDropObsolete, records.dropped_optimized),
        (Ticker::BlobDbGcNumKeysRelocated, records.blobs_moved),
        (Ticker::BlobDbGcBytesRelocated, records.blob_bytes_moved),
    ] {
        counted.count(ticker, n);
    }
    counted.record_time(HistogramKind::CompactionTime, stats.micros);
    counted.record_time(HistogramKind::CompactionCpuTime, stats.cpu_micros);
    if job.compaction.reason != Reason::Manual {
        counted
            .record(HistogramKind::NumFilesInSingleCompaction, job.compaction.input_files().count() as u64);
    }
    if *parts > 1 {
        counted.record(HistogramKind::NumSubcompactionsScheduled, *parts);
    }
}
