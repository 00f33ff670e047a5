//! Which tickers and histograms a compaction changes.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc`, `RecordDroppedKeys`, `RecordCompactionIOStats`.

use super::Reason;
use super::job::CompactionJob;
use super::stream::StreamStats;
use crate::context::DbContext;
use crate::stats::LevelStats;
use outcrop_manifest::BlobFile;
use outcrop_monitor::{HistogramKind, Ticker, Watch};
use outcrop_table::StoredBlocks;
use std::sync::Arc;

/// Header and footer of a blob file, bytes.
const BLOB_FRAME: u64 = 30 + 32;

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
    let of_reason = match job.compaction.reason {
        Reason::Marked => Some((Ticker::CompactReadBytesMarked, Ticker::CompactWriteBytesMarked)),
        Reason::Periodic => Some((Ticker::CompactReadBytesPeriodic, Ticker::CompactWriteBytesPeriodic)),
        Reason::Ttl => Some((Ticker::CompactReadBytesTtl, Ticker::CompactWriteBytesTtl)),
        _ => None,
    };
    if let Some((read, written)) = of_reason {
        counted.count(read, *bytes_read);
        counted.count(written, stats.bytes_written);
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

/// Blob files were written, with their headers and footers.
///
/// Source: RocksDB `db/blob/blob_log_writer.cc`.
pub fn blob_files_written(watch: Watch<'_>, files: &[Arc<BlobFile>]) {
    let bytes = |file: &Arc<BlobFile>| file.total_bytes + BLOB_FRAME;
    watch.count(Ticker::BlobDbBlobFileBytesWritten, files.iter().map(bytes).sum());
}

/// Tables were dropped with the data in them, for `reason`.
pub fn dropped(ctx: &DbContext, reason: Reason) {
    let ticker = match reason {
        Reason::TotalSize => Ticker::FifoMaxSizeCompactions,
        Reason::DataAge => Ticker::FifoTtlCompactions,
        _ => return,
    };
    Watch::from(&ctx.monitor.begin()).count(ticker, 1);
}

/// A table was written, by a flush or a compaction, whose blocks were stored so.
///
/// Source: RocksDB `table/block_based/block_based_table_builder.cc`.
pub fn table_written(watch: Watch<'_>, blocks: &StoredBlocks) {
    let Some(counted) = watch.stats() else { return };
    for (ticker, n) in [
        (Ticker::NumberBlockCompressed, blocks.compressed),
        (Ticker::BytesCompressedFrom, blocks.compressed_from),
        (Ticker::BytesCompressedTo, blocks.compressed_to),
        (Ticker::NumberBlockCompressionRejected, blocks.rejected),
        (Ticker::BytesCompressionRejected, blocks.rejected_bytes),
        (Ticker::NumberBlockCompressionBypassed, blocks.bypassed),
        (Ticker::BytesCompressionBypassed, blocks.bypassed_bytes),
    ] {
        counted.count(ticker, n);
    }
}
