//! Why things happen, by RocksDB's numbers.

use crate::compaction::Reason;

/// Why memtables are flushed. The numbers are RocksDB's.
///
/// ```
/// assert_eq!(outcrop::FlushReason::ManualFlush as u32, 10);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum FlushReason {
    /// None of the others.
    #[default]
    Others = 0,
    /// A checkpoint, or a list of files, that is to have everything.
    GetLiveFiles = 1,
    /// The database closes with data that is in no WAL.
    ShutDown = 2,
    /// A file is ingested whose keys memtables have.
    ExternalFileIngestion = 3,
    /// Everything of a range is to be compacted.
    ManualCompaction = 4,
    /// All memtables together are larger than allowed.
    WriteBufferManager = 5,
    /// A memtable is full.
    WriteBufferFull = 6,
    /// Somebody asked for it.
    ManualFlush = 10,
    /// The database resumes after an error.
    ErrorRecovery = 11,
    /// The WALs are larger than allowed.
    WalFull = 13,
    /// A memtable has as many range deletions as it may.
    MemtableMaxRangeDeletions = 15,
}

/// Why a table is written. The numbers are RocksDB's.
///
/// ```
/// assert_eq!(outcrop::TableFileCreationReason::Compaction as u32, 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum TableFileCreationReason {
    /// Memtables are written.
    Flush = 0,
    /// Tables are merged.
    Compaction = 1,
    /// None of the others.
    #[default]
    Misc = 3,
}

/// Why tables are compacted. The numbers are RocksDB's.
///
/// ```
/// assert_eq!(outcrop::CompactionReason::ManualCompaction as u32, 9);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum CompactionReason {
    /// None of the others.
    #[default]
    Unknown = 0,
    /// Too many tables in L0.
    LevelL0FilesNum = 1,
    /// A level is over its target size.
    LevelMaxLevelSize = 2,
    /// Universal: the newer sorted runs are large against the oldest.
    UniversalSizeAmplification = 3,
    /// Universal: neighbouring sorted runs have similar sizes.
    UniversalSizeRatio = 4,
    /// Universal: too many sorted runs.
    UniversalSortedRunNum = 5,
    /// FIFO: the tables are larger than allowed.
    FifoMaxSize = 6,
    /// FIFO: small tables are merged.
    FifoReduceNumFiles = 7,
    /// FIFO: tables have reached their `ttl`.
    FifoTtl = 8,
    /// Somebody asked for it.
    ManualCompaction = 9,
    /// A table asked for it, or somebody suggested it.
    FilesMarkedForCompaction = 10,
    /// Snapshots that kept garbage in the last level are gone.
    BottommostFiles = 11,
    /// Tables have reached their `ttl`.
    Ttl = 12,
    /// Tables have reached their `periodic_compaction_seconds`.
    PeriodicCompaction = 15,
    /// Blob files of which too much is garbage.
    ForcedBlobGc = 17,
    /// Tables move to another level as they are, at somebody's wish.
    RefitLevel = 19,
}

impl CompactionReason {
    /// The name that LOG has it under. Source: RocksDB `GetCompactionReasonString`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CompactionReason::Unknown => "Unknown",
            CompactionReason::LevelL0FilesNum => "LevelL0FilesNum",
            CompactionReason::LevelMaxLevelSize => "LevelMaxLevelSize",
            CompactionReason::UniversalSizeAmplification => "UniversalSizeAmplification",
            CompactionReason::UniversalSizeRatio => "UniversalSizeRatio",
            CompactionReason::UniversalSortedRunNum => "UniversalSortedRunNum",
            CompactionReason::FifoMaxSize => "FIFOMaxSize",
            CompactionReason::FifoReduceNumFiles => "FIFOReduceNumFiles",
            CompactionReason::FifoTtl => "FIFOTtl",
            CompactionReason::ManualCompaction => "ManualCompaction",
            CompactionReason::FilesMarkedForCompaction => "FilesMarkedForCompaction",
            CompactionReason::BottommostFiles => "BottommostFiles",
            CompactionReason::Ttl => "Ttl",
            CompactionReason::PeriodicCompaction => "PeriodicCompaction",
            CompactionReason::ForcedBlobGc => "ForcedBlobGC",
            CompactionReason::RefitLevel => "RefitLevel",
        }
    }

    pub(crate) fn of(reason: Reason) -> CompactionReason {
        match reason {
            Reason::SmallTables => CompactionReason::FifoReduceNumFiles,
            Reason::L0Files => CompactionReason::LevelL0FilesNum,
            Reason::LevelSize => CompactionReason::LevelMaxLevelSize,
            Reason::SizeAmplification => CompactionReason::UniversalSizeAmplification,
            Reason::SizeRatio => CompactionReason::UniversalSizeRatio,
            Reason::SortedRuns => CompactionReason::UniversalSortedRunNum,
            Reason::TotalSize => CompactionReason::FifoMaxSize,
            Reason::DataAge => CompactionReason::FifoTtl,
            Reason::Ttl => CompactionReason::Ttl,
            Reason::Periodic => CompactionReason::PeriodicCompaction,
            Reason::Bottommost => CompactionReason::BottommostFiles,
            Reason::Marked => CompactionReason::FilesMarkedForCompaction,
            Reason::BlobGarbage => CompactionReason::ForcedBlobGc,
            Reason::Manual => CompactionReason::ManualCompaction,
            Reason::Refit => CompactionReason::RefitLevel,
        }
    }
}

/// The operation that met an error that no caller can answer for. The numbers are RocksDB's.
///
/// ```
/// assert_eq!(outcrop::BackgroundErrorReason::ManifestWrite as u32, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BackgroundErrorReason {
    /// Writing memtables to tables.
    Flush = 0,
    /// A compaction.
    Compaction = 1,
    /// The WAL.
    WriteCallback = 2,
    /// A memtable.
    MemTable = 3,
    /// The MANIFEST.
    ManifestWrite = 4,
}
