//! The memory of memtables that are gone, for those to come.
//!
//! A fresh mapping costs a page fault at each first touch, on the writer's thread: 5 to 30 ms for a memtable of
//! 16 MiB where the host is slow to give memory, more than filling it takes. So mappings go around: when a
//! memtable dies its memory comes here as it is, and a background thread makes the next set ready, zeroed and
//! resident, while the current one is being filled ([`MemTablePool::prepare`]).
//!
//! Invariant: what [`MemTablePool::take`] gives is zeroed.
//! Concurrency: the lock is never held while memory is zeroed, mapped or unmapped.

use crate::memtable::mapping_sizes;
use outcrop_env::Mapping;
use std::sync::{Mutex, PoisonError};

/// Memory of one database's memtables.
pub struct MemTablePool {
    limit_bytes: usize,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    mapping: Mapping,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

impl MemTablePool {
    /// A pool that holds on to at most `memtables` unused memtables of `write_buffer_size` bytes.
    pub fn for_memtables(write_buffer_size: u64, memtables: usize) -> MemTablePool {
        let set: usize = mapping_sizes(write_buffer_size).into_iter().map(Mapping::rounded).sum();
        MemTablePool::new(set.saturating_mul(memtables))
    }

    /// A pool that holds on to at most `limit_bytes` that nobody uses.
    pub fn new(limit_bytes: usize) -> MemTablePool {
        MemTablePool { limit_bytes, idle: Mutex::default() }
    }

    /// A zeroed mapping of `len` bytes, rounded up as [`Mapping::new`] does.
    pub(crate) fn take(&self, len: usize) -> Mapping {
        let len = Mapping::rounded(len);
        let found = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |idle: &Idle| idle.mapping.len() == len;
            let clean = idle.iter().position(|i| fits(i) && i.dirty == 0);
            clean.or_else(|| idle.iter().position(fits)).map(|index| idle.swap_remove(index))
        };
        match found {
            Some(Idle { mut mapping, dirty }) => {
                mapping.zero(dirty);
                mapping
            }
            None => Mapping::new(len),
        }
    }

    /// Takes a mapping back whose first `dirty` bytes were used.
    pub(crate) fn give(&self, mapping: Mapping, dirty: usize) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = idle.iter().map(|idle| idle.mapping.len()).sum();
        if held + mapping.len() <= self.limit_bytes {
            idle.push(Idle { mapping, dirty });
            return;
        }
        drop(idle);
        drop(mapping);
    }

    /// Makes sure that the next memtable of `write_buffer_size` bytes finds its memory zeroed and resident.
    pub fn prepare(&self, write_buffer_size: u64) {
        for len in mapping_sizes(write_buffer_size) {
            let len = Mapping::rounded(len);
            let found = {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.iter().any(|idle| idle.mapping.len() == len && idle.dirty == 0) {
                    continue;
                }
                let index = idle.iter().position(|idle| idle.mapping.len() == len);
                index.map(|index| idle.swap_remove(index))
            };
            let mapping = match found {
                Some(Idle { mut mapping, dirty }) => {
                    mapping.zero(dirty);
                    mapping
                }
                None => {
                    let mut mapping = Mapping::new(len);
                    mapping.make_resident();
                    mapping
                }
            };
            self.give(mapping, 0);
        }
    }

    /// Bytes held that nobody uses.
    pub fn idle_bytes(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|idle| idle.mapping.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mapping: &Mapping) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes that nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(mapping.as_ptr(), mapping.len()) }
    }

    #[test]
    fn memory_comes_back_zeroed_and_within_the_limit() {
        let pool = MemTablePool::new(3 << 20);
        let (first, second) = (pool.take(2 << 20), pool.take(2 << 20));
        let address = first.as_ptr();
        // SAFETY: within the mapping, which nobody else uses.
        unsafe { std::ptr::write_bytes(address, 7, 1000) };
        pool.give(first, 1000);
        pool.give(second, 0);
        assert_eq!(pool.idle_bytes(), 2 << 20);
        assert_eq!(pool.take(4096).len(), 4096);
        let again = pool.take(2 << 20);
        assert_eq!(again.as_ptr(), address);
        assert!(bytes(&again).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn preparing_twice_holds_one_set() {
        let pool = MemTablePool::new(64 << 20);
        pool.prepare(8 << 20);
        let held = pool.idle_bytes();
        assert!(held >= 8 << 20);
        pool.prepare(8 << 20);
        assert_eq!(pool.idle_bytes(), held);
    }
}
