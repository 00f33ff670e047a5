//! Every option as plain data under RocksDB's names.
//!
//! Objects with behaviour (comparator, merge operator) do not live here: they travel in the engine's `ColumnFamilyParts`. The exception is a prefix
//! extractor, of the application too, which `set_options` may replace.
#![forbid(unsafe_code)]

pub mod column_family;
pub mod compaction;
pub mod compression;
pub mod db;
pub mod derive;
pub mod dump;
pub mod file;
pub mod kept;
pub mod offpeak;
pub mod paths;
pub mod recorded_paths;
pub mod rows;
pub mod sanitize;
pub mod styles;
pub mod table;
pub mod validate;

pub use column_family::{ColumnFamilyOptions, CompactionPri, CompactionStyle, Prepopulate};
pub use compaction::{CompactionStopStyle, FifoCompactionOptions, UniversalCompactionOptions};
pub use compression::{CompressionOptions, CompressionType};
pub use db::{DbOptions, FileChecksumGenFactory, WalRecoveryMode};
pub use paths::DbPath;
pub use recorded_paths::RecordedPaths;
pub use table::{BlockBasedTableOptions, DataBlockIndexType, FilterPolicy, IndexShortening, IndexType};

/// The checksum with this number in RocksDB's headers.
///
/// # Errors
/// Corruption for a number that names none.
pub fn checksum_from_byte(byte: u8) -> outcrop_base::Result<outcrop_base::checksum::ChecksumType> {
    outcrop_base::checksum::ChecksumType::from_byte(byte)
}
