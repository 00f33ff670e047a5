//! Outcrop: an embedded LSM-tree key-value store that opens RocksDB databases.
//!
//! ```text
//! put:  db > write (group, stall, WAL, memtables) > publish
//! get:  db > read/get > superversion > memtables > version > table
//! flush, compaction: background > pick > job > stream > output > versions > superversion
//! open: open > recovery > versions
//! ```
//! Start at [`Db`]. The map of all crates is ARCHITECTURE.md; the locks and their order are there too.
#![forbid(unsafe_code)]

mod background;
mod background_errors;
mod checkpoint;
mod column_families;
mod column_family;
mod compaction;
mod context;
mod db;
mod file_properties;
mod flush;
mod info_log;
mod ingest;
mod inspect;
mod obsolete_files;
mod open;
mod prepared;
mod properties;
mod read;
mod read_only;
mod recovery;
mod snapshots;
mod sst_file_writer;
mod state;
mod stats;
mod stopping;
mod superversion;
mod sync;
mod updates;
mod versions;
mod wal_tracking;
mod write;

pub use column_family::{
    ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyParts, DEFAULT_COLUMN_FAMILY,
};
pub use compaction::manual::{BottommostLevelCompaction, CompactRangeOptions};
pub use compaction::requests::{CompactFilesOptions, UserKeyRange};
pub use db::{Db, WaitForCompactOptions};
pub use ingest::IngestExternalFileOptions;
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
pub use read::{PinnedValue, ReadOptions, WideColumns};
pub use snapshots::Snapshot;
pub use sst_file_writer::{ExternalFileInfo, SstFileWriter};
pub use updates::UpdatesSince;
pub use write::batch::{Op, Record};
pub use write::save_point::SavePoint;
pub use write::{WriteBatch, WriteOptions};
