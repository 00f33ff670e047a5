//! Outcrop: an embedded LSM-tree key-value store that opens RocksDB databases, and leaves them so that RocksDB opens them.
//!
//! # Five minutes
//!
//! A database is a directory. Keys and values are bytes; anything that is [`AsRef<[u8]>`](AsRef) will do. Keys are in order.
//!
//! ```
//! use outcrop::{Db, Env, ReadOptions, WriteBatch, WriteOptions};
//!
//! # fn main() -> outcrop::Result<()> {
//! // Left out, `env` is files on disk; here everything is in memory.
//! let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
//!
//! // Writes and reads. A write survives a crash of the process; with `sync`, of the machine.
//! db.put("fruit/apple", "red")?;
//! db.put_with("fruit/plum", "blue", &WriteOptions { sync: true, ..WriteOptions::default() })?;
//! assert_eq!(db.get("fruit/apple")?.as_deref(), Some(&b"red"[..]));
//! assert!(db.get("fruit/fig")?.is_none());
//!
//! // Many writes, all or none.
//! let mut batch = WriteBatch::new();
//! batch.delete("fruit/apple");
//! batch.put("fruit/pear", "green");
//! db.write(&mut batch)?;
//!
//! // Scans are iterators, from either end.
//! for row in db.prefix("fruit/") {
//!     let (key, value) = row?;
//!     println!("{} is {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
//! }
//! let last = db.range(.."g").next_back().expect("there is fruit")?;
//! assert_eq!(last.0, b"fruit/plum");
//!
//! // A snapshot is a moment to read at, whatever is written meanwhile.
//! let moment = ReadOptions::at(&db.snapshot());
//! db.delete_range("a", "z")?;
//! assert_eq!((db.iter().count(), db.iter_with(&moment).count()), (0, 2));
//!
//! // A column family is a key space of its own; a batch can write to several.
//! let users = db.create_column_family("users")?;
//! db.put_cf(&users, "7", "ann")?;
//! assert!(db.get("7")?.is_none());
//!
//! // Dropping it closes it too; `close` says what went wrong.
//! db.close()
//! # }
//! ```
//!
//! # Where things are
//!
//! | for | see |
//! |---|---|
//! | opening, creating, reading only, following a writer | [`Db::builder`], [`DbBuilder`] |
//! | writing | [`Db::put`], [`Db::delete`], [`Db::merge`], [`WriteBatch`], [`WriteOptions`] |
//! | reading | [`Db::get`], [`Db::multi_get`], [`ReadOptions`], [`Snapshot`], [`PinnedValue`] |
//! | scanning | [`Db::iter`], [`Db::range`], [`Db::prefix`], [`Iter`]; to seek: [`Db::cursor`], [`Cursor`] |
//! | counters and lists without reading first | [`MergeOperator`] |
//! | copies, bulk loading, replication | [`Db::create_checkpoint`], [`BackupEngine`], [`SstFileWriter`], [`Db::updates_since`] |
//! | being told what happens | [`EventListener`], [`DbBuilder::listener`] |
//! | settings | [`DbOptions`], [`ColumnFamilyOptions`], [`BlockBasedTableOptions`], [`Cache`] |
//!
//! Every read, write and scan has the same forms: `put(key, value)` in the default column family, `put_cf(&cf, key, value)` in another, and both with options
//! last: `put_with`, `put_cf_with`. Runnable programs are in `examples/`: a counter with a merge operator, column families, a scan at a
//! snapshot, checkpoint and restore, opening a RocksDB directory.
//!
//! # Errors
//!
//! A missing key is `None`. Each function lists its errors and what to do; [`ErrorKind`] is what a program decides by. After a failed write to its files
//! the database refuses writes and keeps everything acknowledged readable; it recovers by itself from errors that pass, and by
//! [`Db::resume`] from others.
//!
//! # Inside
//!
//! ```text
//! put:  db > write/pipeline (group, stall, WAL, memtables) > publish
//! get:  db > read/get > memtables > version > table_cache > table
//! scan: db/scans > read/rows > read/cursor > read/merging_iter > memtables, tables
//! flush, compaction: scheduler > pick > job > stream > output > version_set
//! open: builder > open > recovery > core
//! ```
//! Start at [`Db`], then `core.rs`, which owns the parts. The map of all crates is ARCHITECTURE.md; the locks and their order are there too.
#![forbid(unsafe_code)]

mod background;
mod background_errors;
mod backup;
mod batch;
mod builder;
mod claim;
mod collectors;
mod column_family;
mod compaction;
mod context;
mod copy_file;
mod core;
mod db;
mod event_log;
mod events;
mod failures;
mod features;
mod file_checksum;
mod file_properties;
mod flush;
mod forms;
mod history;
mod identity;
mod in_force;
mod info_log;
mod input_counts;
mod inspect;
mod jobs;
mod limiter_counts;
mod listener;
mod live_files;
mod manifest_file;
mod memory_budget;
mod metrics;
mod objects;
mod obsolete_file;
mod obsolete_files;
mod open;
mod options_file;
mod panic;
mod partitioner;
mod path_owners;
mod paths;
mod pending_outputs;
mod prepared;
mod properties;
mod property_maps;
mod quarantine;
mod read;
mod recovery;
mod repair;
mod scheduler;
mod scrub;
mod snapshots;
mod space;
mod sst_file_manager;
mod sst_file_reader;
mod sst_file_writer;
mod state;
mod stats;
mod stats_text;
mod stopping;
mod superversion;
mod sync;
mod table_bounds;
mod table_cache;
#[cfg(test)]
mod testing;
mod transactions;
mod ttl;
mod version_set;
mod wal_archive;
mod wal_tracking;
mod write;
mod write_buffer_manager;

pub use backup::engine::BackupEngine;
pub use backup::info::{BackupFile, BackupInfo};
pub use backup::meta::{BackupMeta, MetaFile};
pub use backup::options::{
    BackupEngineOptions, CreateBackupOptions, ExcludeFile, Progress, RestoreMode, RestoreOptions,
    SharedFileCheck, SharedFileNaming,
};
pub use batch::codec::{Op, Record, WriteBatch};
pub use batch::entries::BatchEntries;
pub use batch::indexed::{BatchGuard, BatchValue, Family, IndexedBatch, IndexedBatchOptions};
pub use batch::overlay::{Bounds, FamilyParts, Overlay, RowSource};
pub use batch::save_point::SavePoint;
pub use batch::wal_items::{WalItem, wal_items};
pub use builder::DbBuilder;
pub use collectors::{
    CompactOnDeletion, EntryKind, TablePropertiesCollector, TablePropertiesCollectorFactory,
};
pub use column_family::{
    ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyParts, DEFAULT_COLUMN_FAMILY,
};
pub use compaction::manual_request::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions,
};
pub use compaction::requests::{CompactFilesOptions, RangeEnd, UserKeyRange};
pub use db::Db;
pub use events::info::{
    BackgroundErrorRecoveryInfo, BlobFileAdditionInfo, BlobFileGarbageInfo, CompactionFileInfo,
    CompactionJobInfo, CompactionJobStats, ExternalFileIngestionInfo, FlushJobInfo, MemTableInfo,
    SubcompactionJobInfo, TableFileCreationInfo, TableFileCreationStartedInfo, TableFileDeletionInfo,
    WriteStallInfo,
};
pub use events::reasons::{BackgroundErrorReason, CompactionReason, FlushReason, TableFileCreationReason};
pub use features::export_import::{ExportedColumnFamily, ExportedFile, ImportColumnFamilyOptions};
pub use features::ingest::IngestExternalFileOptions;
pub use features::updates::UpdatesSince;
pub use features::waiting::{Wait, WaitForCompactOptions};
pub use features::wal_files::WalFile;
pub use file_checksum::FileChecksum;
pub use info_log::{LogLevel, Logger, log_stamp};
pub use inspect::{CounterSource, Counters, LiveFile, MemTableStats, SizeApproximation};
pub use listener::EventListener;
pub use live_files::{LiveFileStorage, LiveFiles, LiveFilesOptions, StorageFileKind};
pub use memory_budget::{MemoryBudget, MemoryUsage};
pub use objects::DbObjects;
pub use outcrop_base::timestamp::TIMESTAMP_LEN;
pub use outcrop_base::{
    CfId, CompactionFilter, CompactionFilterFactory, Comparator, Error, ErrorKind, FilterContext,
    FilterDecision, MergeOperator, PrefixExtractor, Result, SeqNum, Timestamp, UserComparator,
    UserPrefixExtractor,
};
pub use outcrop_cache::{Cache, CacheOptions};
pub use outcrop_env::Env;
pub use outcrop_env::scheduler::{Lane, Scheduler, ThreadStatus};
pub use outcrop_env::{IoKind, IoPriority, RateLimiter, RateLimiterMode, RateLimiterOptions};
pub use outcrop_monitor::{
    HistogramData, HistogramKind, IoStats, PerfContext, PerfLevel, PerfMetric, Statistics, StatsLevel, Ticker,
};
pub use outcrop_options::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompactionStyle, CompressionType, DbOptions, DbPath,
    FileChecksumGenFactory, FilterPolicy, RecordedPaths, WalRecoveryMode,
};
pub use outcrop_table::TableProperties;
pub use partitioner::{FixedPrefixPartitioner, PartitionerContext, SstPartitioner, SstPartitionerFactory};
pub use read::cursor::Cursor;
pub use read::key_range::{KeyBounds, KeyRange};
pub use read::merge::MergeOperands;
pub use read::options::{ReadOptions, ReadTier, TableFilter};
pub use read::rows::{Iter, Row};
pub use read::value::{PinnedValue, WideColumns};
pub use read::versions::KeyVersion;
pub use repair::RepairOptions;
pub use repair::report::{MovedFile, RepairReport, RepairedFamily, RepairedWal, StructureFound};
pub use repair::salvage::report::{DoubtfulRange, SalvageReport, SalvagedFile};
pub use repair::salvage::{SalvageOptions, SalvageProgress};
pub use scrub::options::{DamageInfo, ScrubOptions, ScrubProgress};
pub use snapshots::{Snapshot, WeakSnapshot};
pub use sst_file_manager::SstFileManager;
pub use sst_file_reader::{SstFileCursor, SstFileReader};
pub use sst_file_writer::{ExternalFileInfo, SstFileWriter};
pub use transactions::buckets::LockBuckets;
pub use transactions::database::TransactionDb;
pub use transactions::locks::{LockInfo, TransactionState, Waiting};
pub use transactions::optimistic::OptimisticTransactionDb;
pub use transactions::options::{
    OptimisticTransactionDbOptions, TakeSnapshot, TransactionDbOptions, TransactionOptions, ValidatePolicy,
    WritePolicy,
};
pub use transactions::rows::TransactionRows;
pub use transactions::transaction::{LockMode, OperationCounts, SnapshotNotifier, Transaction, Validate};
pub use transactions::waits::{Deadlock, DeadlockStep};
pub use ttl::database::TtlDb;
pub use ttl::rows::TtlRows;
pub use ttl::stamp::split_ttl_value;
pub use write::options::WriteOptions;
pub use write::stall_condition::StallCondition;
pub use write_buffer_manager::WriteBufferManager;

/// Every settings type; those used most are at the front, too.
pub mod options {
    pub use outcrop_base::checksum::ChecksumType;
    pub use outcrop_options::file::LoadedOptions;
    pub use outcrop_options::{
        BlockBasedTableOptions, ColumnFamilyOptions, CompactionPri, CompactionStopStyle, CompactionStyle,
        CompressionOptions, CompressionType, DataBlockIndexType, DbOptions, DbPath, FifoCompactionOptions,
        FileChecksumGenFactory, FilterPolicy, IndexShortening, IndexType, Prepopulate,
        UniversalCompactionOptions, WalRecoveryMode,
    };
}

/// The example of README.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of docs/paths.md compiles, and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/paths.md")]
struct Paths;

/// The examples of docs/timestamps.md compile, and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/timestamps.md")]
struct Timestamps;

/// The examples of docs/transactions.md compile, and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/transactions.md")]
struct Transactions;
