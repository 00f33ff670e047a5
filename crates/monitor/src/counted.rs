//! The tickers and histograms that the engine changes; all others are there under their names and stay 0.

use crate::{HistogramKind, Ticker};

impl Ticker {
    /// True if the engine counts it.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            Ticker::BlockCacheMiss
                | Ticker::BlockCacheHit
                | Ticker::BlockCacheAdd
                | Ticker::BlockCacheAddFailures
                | Ticker::BlockCacheIndexMiss
                | Ticker::BlockCacheIndexHit
                | Ticker::BlockCacheIndexAdd
                | Ticker::BlockCacheIndexBytesInsert
                | Ticker::BlockCacheFilterMiss
                | Ticker::BlockCacheFilterHit
                | Ticker::BlockCacheFilterAdd
                | Ticker::BlockCacheFilterBytesInsert
                | Ticker::BlockCacheDataMiss
                | Ticker::BlockCacheDataHit
                | Ticker::BlockCacheDataAdd
                | Ticker::BlockCacheDataBytesInsert
                | Ticker::BlockCacheBytesRead
                | Ticker::BlockCacheBytesWrite
                | Ticker::BloomFilterUseful
                | Ticker::BloomFilterFullPositive
                | Ticker::BloomFilterFullTruePositive
                | Ticker::BloomFilterPrefixChecked
                | Ticker::BloomFilterPrefixUseful
                | Ticker::BloomFilterPrefixTruePositive
                | Ticker::MemtableHit
                | Ticker::MemtableMiss
                | Ticker::LastLevelReadBytes
                | Ticker::LastLevelReadCount
                | Ticker::NonLastLevelReadBytes
                | Ticker::NonLastLevelReadCount
                | Ticker::LastLevelSeekFiltered
                | Ticker::LastLevelSeekFilterMatch
                | Ticker::NonLastLevelSeekFiltered
                | Ticker::NonLastLevelSeekFilterMatch
                | Ticker::GetHitL0
                | Ticker::GetHitL1
                | Ticker::GetHitL2AndUp
                | Ticker::CompactionCancelled
                | Ticker::CompactionKeyDropNewerEntry
                | Ticker::CompactionKeyDropObsolete
                | Ticker::CompactionKeyDropRangeDel
                | Ticker::CompactionKeyDropUser
                | Ticker::CompactionOptimizedDelDropObsolete
                | Ticker::NumberKeysWritten
                | Ticker::NumberKeysRead
                | Ticker::BytesWritten
                | Ticker::BytesRead
                | Ticker::ReadAmpEstimateUsefulBytes
                | Ticker::ReadAmpTotalReadBytes
                | Ticker::NumberDbSeek
                | Ticker::NumberDbNext
                | Ticker::NumberDbPrev
                | Ticker::NumberDbSeekFound
                | Ticker::NumberDbNextFound
                | Ticker::NumberDbPrevFound
                | Ticker::IterBytesRead
                | Ticker::NumberIterSkip
                | Ticker::NumberOfReseeksInIteration
                | Ticker::NoIteratorCreated
                | Ticker::NoIteratorDeleted
                | Ticker::NoFileOpens
                | Ticker::NoFileErrors
                | Ticker::StallMicros
                | Ticker::NumberMultigetCalls
                | Ticker::NumberMultigetKeysRead
                | Ticker::NumberMultigetBytesRead
                | Ticker::NumberMultigetKeysFound
                | Ticker::WalFileSynced
                | Ticker::WalFileBytes
                | Ticker::WriteDoneBySelf
                | Ticker::WriteDoneByOther
                | Ticker::WriteWithWal
                | Ticker::CompactReadBytes
                | Ticker::CompactWriteBytes
                | Ticker::FlushWriteBytes
                | Ticker::MemtablePayloadBytesAtFlush
                | Ticker::MemtableGarbageBytesAtFlush
                | Ticker::NumberBlockDecompressed
                | Ticker::BytesDecompressedFrom
                | Ticker::BytesDecompressedTo
                | Ticker::CompactionCpuTotalTime
                | Ticker::BlobDbBlobFileBytesRead
                | Ticker::BlobDbBlobFileSynced
                | Ticker::BlobDbGcNumKeysRelocated
                | Ticker::BlobDbGcBytesRelocated
                | Ticker::BlobDbCacheMiss
                | Ticker::BlobDbCacheHit
                | Ticker::BlobDbCacheAdd
                | Ticker::BlobDbCacheBytesRead
                | Ticker::BlobDbCacheBytesWrite
                | Ticker::BlockChecksumComputeCount
                | Ticker::BlockChecksumMismatchCount
                | Ticker::NumberBlockCompressed
                | Ticker::BytesCompressedFrom
                | Ticker::BytesCompressedTo
                | Ticker::NumberBlockCompressionRejected
                | Ticker::BytesCompressionRejected
                | Ticker::NumberBlockCompressionBypassed
                | Ticker::BytesCompressionBypassed
                | Ticker::CompactReadBytesMarked
                | Ticker::CompactReadBytesPeriodic
                | Ticker::CompactReadBytesTtl
                | Ticker::CompactWriteBytesMarked
                | Ticker::CompactWriteBytesPeriodic
                | Ticker::CompactWriteBytesTtl
                | Ticker::FifoMaxSizeCompactions
                | Ticker::FifoTtlCompactions
                | Ticker::FlushReasonWriteBufferFull
                | Ticker::FlushReasonMemtableMaxRangeDeletions
                | Ticker::AtomicFlushRequestReasonMemtableMaxRangeDeletions
                | Ticker::FlushReasonWriteBufferManager
                | Ticker::GetUpdatesSinceCalls
                | Ticker::FilesMarkedTrash
                | Ticker::FilesDeletedFromTrashQueue
                | Ticker::FilesDeletedImmediately
                | Ticker::ErrorHandlerBgErrorCount
                | Ticker::ErrorHandlerBgIoErrorCount
                | Ticker::ErrorHandlerBgRetryableIoErrorCount
                | Ticker::ErrorHandlerAutoresumeCount
                | Ticker::ErrorHandlerAutoresumeRetryTotalCount
                | Ticker::ErrorHandlerAutoresumeSuccessCount
                | Ticker::VerifyChecksumReadBytes
                | Ticker::NumberMergeFailures
                | Ticker::MergeOperationTotalTime
                | Ticker::NumberRateLimiterDrains
                | Ticker::RateLimiterBytesRead
                | Ticker::RateLimiterBytesWrite
                | Ticker::RateLimiterRequestsRead
                | Ticker::RateLimiterRequestsWrite
                | Ticker::RateLimiterDelayedRequestsRead
                | Ticker::RateLimiterDelayedRequestsWrite
                | Ticker::RateLimiterTotalWaitMicrosRead
                | Ticker::RateLimiterTotalWaitMicrosWrite
                | Ticker::BlobDbBlobFileBytesWritten
                | Ticker::BackupReadBytes
                | Ticker::BackupWriteBytes
                | Ticker::CheckpointReadBytes
                | Ticker::CheckpointWriteBytes
                | Ticker::AtomicFlushRequestReasonWriteBufferFull
                | Ticker::AtomicFlushRequestReasonWriteBufferManager
                | Ticker::AtomicFlushRequestReasonOther
        )
    }
}

impl HistogramKind {
    /// True if the engine counts it.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            HistogramKind::DbGet
                | HistogramKind::DbWrite
                | HistogramKind::CompactionTime
                | HistogramKind::CompactionCpuTime
                | HistogramKind::TableSyncMicros
                | HistogramKind::CompactionOutfileSyncMicros
                | HistogramKind::WalFileSyncMicros
                | HistogramKind::ManifestFileSyncMicros
                | HistogramKind::TableOpenIoMicros
                | HistogramKind::DbMultiget
                | HistogramKind::NumFilesInSingleCompaction
                | HistogramKind::DbSeek
                | HistogramKind::WriteStall
                | HistogramKind::SstReadMicros
                | HistogramKind::FileReadGetMicros
                | HistogramKind::FileReadMultigetMicros
                | HistogramKind::FileReadDbIteratorMicros
                | HistogramKind::FileReadFlushMicros
                | HistogramKind::FileReadCompactionMicros
                | HistogramKind::FileReadDbOpenMicros
                | HistogramKind::NumSubcompactionsScheduled
                | HistogramKind::BytesPerRead
                | HistogramKind::BytesPerWrite
                | HistogramKind::BytesPerMultiget
                | HistogramKind::DecompressionTimesNanos
                | HistogramKind::BlobDbBlobFileReadMicros
                | HistogramKind::BlobDbBlobFileSyncMicros
                | HistogramKind::FlushTime
                | HistogramKind::FlushMemtableMemoryBytes
                | HistogramKind::FlushMemtableTotalDataSize
                | HistogramKind::FlushWriteBufferFullMemtableMemoryBytes
                | HistogramKind::FlushWriteBufferManagerMemtableMemoryBytes
                | HistogramKind::IngestExternalFilePrepareTime
                | HistogramKind::IngestExternalFileRunTime
                | HistogramKind::ReadNumMergeOperands
                | HistogramKind::NumSstReadPerLevel
                | HistogramKind::NumLevelReadPerMultiget
                | HistogramKind::RateLimiterWaitMicrosRead
                | HistogramKind::RateLimiterWaitMicrosWrite
        )
    }
}
