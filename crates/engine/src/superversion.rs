//! What one read sees: the active memtable, the sealed ones, and the tables.
//!
//! Concurrency: a `SuperVersion` is immutable. Readers borrow the current one through [`ArcSwap`], which
//! marks the borrow in a slot owned by the reading thread: no counter shared between threads is written
//! on the read path. A flush, a compaction or a memtable switch installs a new one; the old lives until
//! its last borrower is done.

use arc_swap::ArcSwap;
use outcrop_manifest::Version;
use outcrop_memtable::MemTable;
use std::sync::Arc;

/// The consistent set of sources a read consults, newest first.
pub struct SuperVersion {
    /// The memtable that receives writes.
    pub memtable: Arc<MemTable>,
    /// Memtables waiting for or in flush, newest first.
    pub sealed: Vec<Arc<MemTable>>,
    /// The tables.
    pub version: Arc<Version>,
}

/// The current [`SuperVersion`] of a column family.
pub type SuperVersionCell = ArcSwap<SuperVersion>;
