//! A flush that was decided: which memtables of which column families.

use crate::column_family::ColumnFamily;
use crate::jobs::{JobInfo, JobKind};
use crate::state::SealedMemTable;
use std::sync::Arc;

/// A flush that was decided.
pub struct FlushJob {
    /// One, or with `atomic_flush` all that have something to write.
    pub parts: Vec<FlushPart>,
}

impl FlushJob {
    /// The description of this flush for an observer.
    pub fn info(&self) -> JobInfo {
        let of = |part: &FlushPart| format!("[{}] {} memtables", part.cf.name(), part.memtables.len());
        JobInfo {
            kind: JobKind::Flush,
            column_families: self.parts.iter().map(|part| part.cf.id()).collect(),
            what: self.parts.iter().map(of).collect::<Vec<_>>().join(", "),
        }
    }
}

/// The part of a flush that concerns one column family.
pub struct FlushPart {
    /// The column family.
    pub cf: Arc<ColumnFamily>,
    /// Its sealed memtables to write, oldest first.
    pub memtables: Vec<SealedMemTable>,
    /// Epoch of the table.
    pub epoch: u64,
}
