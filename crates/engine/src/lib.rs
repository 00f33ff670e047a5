//! Outcrop: an embedded LSM-tree key-value store that opens RocksDB databases.
//!
//! ```text
//! put:  db > write/pipeline (group, stall, WAL, memtables) > publish
//! get:  db > read/get > memtables > version > table_cache > table
//! flush, compaction: scheduler > pick > job > stream > output > version_set
//! open: open > recovery > core
//! ```
//! Start at [`Db`], then `core.rs`, which owns the parts. The map of all crates is ARCHITECTURE.md; the locks and their order are there too.
#![forbid(unsafe_code)]

mod background;
mod background_errors;
mod batch;
mod column_family;
mod compaction;
mod context;
mod copy_file;
mod core;
mod db;
mod failures;
mod features;
mod file_properties;
mod flush;
mod identity;
mod in_force;
mod info_log;
mod inspect;
mod jobs;
mod manifest_file;
mod obsolete_files;
mod open;
mod options_file;
mod panic;
mod pending_outputs;
mod prepared;
mod properties;
mod read;
mod recovery;
mod scheduler;
mod snapshots;
mod sst_file_writer;
mod state;
mod stats;
mod stopping;
mod superversion;
mod sync;
mod table_cache;
#[cfg(test)]
mod testing;
mod transactions;
mod version_set;
mod wal_tracking;
mod write;

pub use batch::codec::{Op, Record, WriteBatch};
pub use batch::indexed::{BatchGuard, BatchValue, Family, IndexedBatch, IndexedBatchOptions};
pub use batch::overlay::{Bounds, Cursor, FamilyParts, Overlay};
pub use batch::save_point::SavePoint;
pub use column_family::{
    ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyParts, DEFAULT_COLUMN_FAMILY,
};
pub use compaction::manual_request::{BottommostLevelCompaction, CompactRangeOptions};
pub use compaction::requests::{CompactFilesOptions, UserKeyRange};
pub use db::Db;
pub use features::ingest::IngestExternalFileOptions;
pub use features::updates::UpdatesSince;
pub use features::waiting::WaitForCompactOptions;
pub use inspect::{CounterSource, Counters, LiveFile, SizeApproximation};
pub use outcrop_base::{
    CompactionFilter, CompactionFilterFactory, Comparator, Error, ErrorKind, FilterContext, FilterDecision,
    MergeOperator, PrefixExtractor, Result, SeqNum, UserComparator,
};
pub use outcrop_cache::{Cache, CacheOptions};
pub use outcrop_env::Env;
pub use outcrop_env::scheduler::Lane;
pub use outcrop_options as options;
pub use outcrop_options::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompactionStyle, CompressionType, DbOptions, FilterPolicy,
    WalRecoveryMode,
};
pub use read::iter::DbIterator;
pub use read::options::ReadOptions;
pub use read::value::{PinnedValue, WideColumns};
pub use snapshots::Snapshot;
pub use sst_file_writer::{ExternalFileInfo, SstFileWriter};
pub use transactions::buckets::LockBuckets;
pub use transactions::database::TransactionDb;
pub use transactions::locks::{LockInfo, TransactionState, Waiting};
pub use transactions::optimistic::{OptimisticTransactionDb, TakeSnapshot};
pub use transactions::options::{
    OptimisticTransactionDbOptions, TransactionDbOptions, TransactionOptions, ValidatePolicy, WritePolicy,
};
pub use transactions::transaction::{LockMode, OperationCounts, SnapshotNotifier, Transaction, Validate};
pub use transactions::waits::{Deadlock, DeadlockStep};
pub use write::options::WriteOptions;
