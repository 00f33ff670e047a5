//! The receiver of events, and the events that wait until locks are released.

use super::info::{
    BackgroundErrorRecoveryInfo, CompactionJobInfo, ExternalFileIngestionInfo, FlushJobInfo, MemTableInfo,
    SubcompactionJobInfo, TableFileCreationInfo, TableFileCreationStartedInfo, TableFileDeletionInfo,
    WriteStallInfo,
};
use super::reasons::BackgroundErrorReason;
use crate::scrub::options::DamageInfo;
use outcrop_base::Error;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize};
use std::sync::{Arc, OnceLock};

/// One thing that happens.
pub enum Event<'a> {
    /// A flush begins to write the table of a column family.
    FlushBegin(&'a FlushJobInfo),
    /// That table is installed.
    FlushCompleted(&'a FlushJobInfo),
    /// A compaction begins.
    CompactionBegin(&'a CompactionJobInfo),
    /// It has ended; its outputs are installed, or removed.
    CompactionCompleted(&'a CompactionJobInfo),
    /// A part of a compaction begins.
    SubcompactionBegin(&'a SubcompactionJobInfo),
    /// It has ended.
    SubcompactionCompleted(&'a SubcompactionJobInfo),
    /// A table is about to be written.
    TableFileCreationStarted(&'a TableFileCreationStartedInfo),
    /// It was written, or could not be; it is not installed yet.
    TableFileCreated(&'a TableFileCreationInfo),
    /// A table that no version has is removed.
    TableFileDeleted(&'a TableFileDeletionInfo),
    /// A file was ingested.
    FileIngested(&'a ExternalFileIngestionInfo),
    /// An error that no caller can answer for; taken away, it stops nothing.
    BackgroundError(BackgroundErrorReason, &'a mut Option<Error>),
    /// The database is about to try for the first time to resume from an error by itself; set to false, it does not.
    ErrorRecoveryBegin(BackgroundErrorReason, &'a Error, &'a mut bool),
    /// It has resumed, or tries no more.
    ErrorRecoveryEnd(&'a BackgroundErrorRecoveryInfo),
    /// Writers are held back otherwise than before.
    StallChanged(&'a WriteStallInfo),
    /// A memtable is about to take no more writes.
    MemTableSealed(&'a MemTableInfo),
    /// A file is found to be damaged.
    DamageFound(&'a DamageInfo),
    /// A file cannot be read.
    UnreadableFound(&'a DamageInfo),
}

/// Receives every event. It catches its own panics.
pub trait EventSink: Send + Sync {
    /// `event` happens.
    fn tell(&self, event: Event<'_>);
}

/// The sink of one database, and what is to be told once locks are released.
#[derive(Default)]
pub struct Events {
    pub(super) sink: OnceLock<Arc<dyn EventSink>>,
    pub(super) next_job: AtomicI32,
    /// Changes of stalls, met with the state locked.
    pub(super) stalls: Mutex<Vec<WriteStallInfo>>,
    /// How many those are: looked at without the lock.
    pub(super) waiting: AtomicUsize,
}
