//! The side-index: user key to the node of its newest version, by open addressing.
//!
//! ```text
//! slot = tag: upper half of the key's hash | node reference       0 is empty
//! ```
//! A lookup of an absent key reads one cache line. When the table fills up, or a key finds no slot near
//! its place, `overflow` is set for good, and a lookup that finds nothing asks the skiplist: the answer never
//! depends on the index, only its cost.
//!
//! Concurrency: slots change only by compare-exchange, from empty to a key's first node and then to newer
//! nodes of the same key.

use crate::arena::{NULL, Ref};
use crate::pool::MemTablePool;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use outcrop_env::{Mapping, prefetch};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Memtable bytes per slot: the table stays at most half full if entries take twice this.
const BYTES_PER_SLOT: usize = 128;
/// A key lies at most this many slots from its place.
const MAX_PROBES: usize = 48;

/// The index.
pub struct HashIndex {
    slots: ManuallyDrop<Mapping>,
    pool: Arc<MemTablePool>,
    mask: usize,
    overflow: AtomicBool,
}

/// The result of a lookup.
pub enum IndexLookup {
    /// The newest node of the key.
    Node(Ref),
    /// The key is not in the memtable.
    Absent,
    /// The index does not know.
    Unknown,
}

impl HashIndex {
    /// An index for a memtable of about `expected_bytes`. If it `is_lean`, new memory has ordinary pages until
    /// [`HashIndex::use_huge_pages`].
    pub fn new(expected_bytes: usize, is_lean: bool, pool: Arc<MemTablePool>) -> HashIndex {
        let table_bytes = HashIndex::table_bytes(expected_bytes);
        HashIndex {
            slots: ManuallyDrop::new(pool.take_zeroed(table_bytes, if is_lean { table_bytes } else { 0 })),
            pool,
            mask: table_bytes / 8 - 1,
            overflow: AtomicBool::new(false),
        }
    }

    /// Bytes of the table of such an index.
    pub fn table_bytes(expected_bytes: usize) -> usize {
        (expected_bytes / BYTES_PER_SLOT).clamp(512, 1 << 28).next_power_of_two() * 8
    }

    /// Bytes of the table.
    pub fn size_bytes(&self) -> usize {
        (self.mask + 1) * 8
    }

    /// Has them for all slots, where so many fit.
    pub fn use_huge_pages(&self) {
        self.slots.use_huge_pages();
    }

    #[inline]
    fn slot(&self, index: usize) -> &AtomicU64 {
        let index = index & self.mask;
        // SAFETY: the mapping holds mask + 1 zeroed, aligned slots that are only accessed as atomics.
        unsafe { &*self.slots.as_ptr().cast::<AtomicU64>().add(index) }
    }

    /// Asks for the line of the key's place.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(std::ptr::from_ref(self.slot(hash as usize)));
    }

    /// Finds the node of a key; `is_key` tells whether a node is of the key.
    #[inline]
    pub fn find(&self, hash: u64, mut is_key: impl FnMut(Ref) -> bool) -> IndexLookup {
        for probe in 0..MAX_PROBES {
            // Acquire: pairs with the Release in `publish`; publishes the node.
            let slot = self.slot(hash as usize + probe).load(Ordering::Acquire);
            if slot == 0 {
                break;
            }
            if tag_of(slot) == tag_of(hash) && is_key(slot as Ref) {
                return IndexLookup::Node(slot as Ref);
            }
        }
        // Acquire: pairs with the Release in `publish`.
        if self.overflow.load(Ordering::Acquire) { IndexLookup::Unknown } else { IndexLookup::Absent }
    }

    /// Makes `node` the one found for its key, unless a newer one is. `compare` says how a node relates to
    /// `node`: another key, or the same and then whether it is newer.
    #[inline]
    pub fn publish(&self, hash: u64, node: Ref, mut compare: impl FnMut(Ref) -> Relation) {
        debug_assert!(node != NULL);
        let new = (hash & TAG_MASK) | u64::from(node);
        let mut probe = 0;
        while probe < MAX_PROBES {
            let slot = self.slot(hash as usize + probe);
            let current = slot.load(Ordering::Acquire);
            let replace = if current == 0 {
                true
            } else if tag_of(current) != tag_of(hash) {
                false
            } else {
                match compare(current as Ref) {
                    Relation::OtherKey => false,
                    Relation::Newer => return,
                    Relation::Older => true,
                }
            };
            if !replace {
                probe += 1;
            } else if slot.compare_exchange(current, new, Ordering::Release, Ordering::Relaxed).is_ok() {
                // Release: pairs with the Acquire in `find`; publishes the node.
                return;
            }
        }
        // Release: pairs with the Acquire in `find`: a lookup that starts after this insert returned sees it.
        self.overflow.store(true, Ordering::Release);
    }
}

impl Drop for HashIndex {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and not used again.
        let slots = unsafe { ManuallyDrop::take(&mut self.slots) };
        let dirty = slots.len();
        self.pool.give(slots, dirty);
    }
}

/// How a node in the index relates to one being published.
pub enum Relation {
    /// Of another key.
    OtherKey,
    /// Of the same key, and newer.
    Newer,
    /// Of the same key, and older.
    Older,
}

const TAG_MASK: u64 = 0xFFFF_FFFF << 32;

#[inline]
fn tag_of(value: u64) -> u64 {
    value & TAG_MASK
}
