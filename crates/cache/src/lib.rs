//! The block cache: decoded blocks in memory the engine owns, found without a lock.
//!
//! ```text
//! key --hash--> bucket: 16 tags (one line)  --tag--> slot: meta, key, frame  --> frame in a slab
//! meta = state | clock | references | length
//! ```
//! A hit reads one line of tags, takes a reference on one slot and gets the frame's address. A miss is filled
//! by the caller and inserted under one lock, that of the slabs. Frames come from slabs of equal frames;
//! a slab that empties can serve another size, so that memory stays within the capacity whatever sizes come.
//!
//! Invariants:
//! - A frame is freed or reused only after its slot left the live state with no references.
//! - Contents of a live frame never change.
//! - No slab beyond the capacity is made, but there is always one. Where the capacity shrinks, slabs beyond it are
//!   given back as they become empty. A block that cannot be admitted gets memory of its own, until unpinned.
//!
//! Next: `table.rs` for the lock-free protocol, `slabs.rs` for memory, then [`Cache`].

mod cache;
mod charge;
mod pinned;
mod slabs;
mod survey;
mod sync;
mod table;

pub use cache::{Cache, CacheKey, CacheOptions, GrowthListener, Kind, Priority};
pub use charge::{Charge, Role};
pub use pinned::{Pinned, standalone};
pub use survey::{Freshness, Survey};

#[cfg(test)]
mod tests;
