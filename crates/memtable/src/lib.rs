//! The memtable: recent writes, sorted, in memory the engine owns.
//!
//! ```text
//! hash index:  user key -> newest node            point lookups: one line if absent
//!                            |
//! skiplist:    ... node -> node -> node ...       order: iteration, older versions
//!                            |
//! arena:       nodes and their keys and values, never moved, freed all at once
//! ```
//! Invariants:
//! - A node is complete before it is linked, and linked at level 0 before the hash index points to it.
//! - Equal user keys are adjacent, newest first; the hash index points to the newest, or to one from which a
//!   reader of any published sequence number reaches all it may see: a version that is linked but not yet
//!   in the index belongs to an insert that has not returned, and readers do not see its number yet.
//! - Nothing is removed, so a reader needs no protection beyond keeping the memtable alive.
//!
//! Concurrency: any number of readers and inserters; nobody waits.
//! Memory comes from a [`MemTablePool`] and goes back there.
//! Next: `arena.rs`, `skiplist.rs`, `hash_index.rs`, then [`MemTable`].

mod arena;
mod hash_index;
mod memtable;
mod pool;
mod prefix_bloom;
mod range_tombstones;
mod skiplist;
mod sync;

pub use arena::PrefaultRange;
pub use memtable::{MemTable, MemTableIter};
pub use pool::{MemTablePool, MemoryAccount};

#[cfg(test)]
mod tests;
