//! The result of a compaction.

use super::blobs::Fetched;
use super::stream::StreamStats;
use outcrop_env::WriteNanos;
use outcrop_manifest::{BlobFile, FileNumber, Garbage, TableFile};
use std::sync::Arc;

/// The files and counts of a finished compaction.
#[derive(Default)]
pub struct Ran {
    /// The tables it put into the output level.
    pub tables: Vec<Arc<TableFile>>,
    /// New blob files.
    pub blob_files: Vec<Arc<BlobFile>>,
    /// Garbage that it left in older ones.
    pub blob_garbage: Vec<(FileNumber, Garbage)>,
    /// Entries read and written.
    pub records: StreamStats,
    /// Values read from blob files.
    pub blobs_fetched: Fetched,
    /// Microseconds it took.
    pub micros: u64,
    /// Microseconds of processor time.
    pub cpu_micros: u64,
    /// Times of writing files, if the options asked for them.
    pub write_nanos: Option<WriteNanos>,
}
