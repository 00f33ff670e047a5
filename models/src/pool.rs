//! The part of the memtable's `crate::pool` that models need: memory for one memtable of a model.

use crate::sync::AtomicU64;
use outcrop_env::Mapping;

/// Nobody keeps accounts here.
pub trait MemoryAccount: Send + Sync {
    fn budget(&self) -> u64;
    fn grew(&self, bytes: u64);
    fn sealed(&self, bytes: u64);
    fn flushed(&self, bytes: u64);
    fn freed(&self, bytes: u64, flushed: bool);
}

/// Gives fresh memory.
pub struct MemTablePool;

impl MemTablePool {
    /// None.
    pub fn account(&self) -> Option<&std::sync::Arc<dyn MemoryAccount>> {
        None
    }

    /// Chunks follow from the size of the memtable.
    pub fn chunk_bytes(&self) -> Option<usize> {
        None
    }

    /// Memory for nodes, which make their own atomics in it.
    pub fn take(&self, len: usize, lean: usize) -> (Mapping, usize) {
        (Mapping::lean(len, lean), 0)
    }

    /// Memory for the slots of a hash index: atomics that loom follows, all 0.
    pub fn take_zeroed(&self, len: usize, lean: usize) -> Mapping {
        let mapping = Mapping::lean(len, lean);
        let slots = mapping.as_ptr().cast::<AtomicU64>();
        for slot in 0..len / size_of::<AtomicU64>() {
            // SAFETY: within the mapping, which nobody else knows; its alignment is more than enough.
            unsafe { slots.add(slot).write(AtomicU64::new(0)) };
        }
        mapping
    }

    /// Takes memory back.
    pub fn give(&self, _mapping: Mapping, _dirty: usize) {}
}

// The index takes the size of a slot for 8 bytes.
const _: () = assert!(size_of::<AtomicU64>() == 8);
