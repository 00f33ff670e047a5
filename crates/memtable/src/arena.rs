//! A bump allocator whose memory is named by 32-bit references.
//!
//! ```text
//! reference = chunk index : 8 bits | offset in 8-byte units : 24 bits        0 is null
//! ```
//! A chunk holds at most 128 MiB. The first is as large as the memtable should become, so that nearly all
//! memtables have one chunk. Entries too large for a chunk's tail are allocated on their own (`spill`).
//!
//! Memory that was not made ready before is made resident a few MiB ahead of those who allocate, by whoever is told
//! ([`Arena::ahead`]): a page fault in a mapping of huge pages takes 0.1 ms, or 7 where a host has to find the memory.
//!
//! Concurrency: allocating is one fetch-add; only a chunk change takes a lock.

use crate::pool::MemTablePool;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering};
use outcrop_env::{Mapping, populate};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Allocation granularity.
const UNIT: usize = 8;
/// Bits of a reference that give the offset.
const OFFSET_BITS: u32 = 24;
/// Largest chunk.
const MAX_CHUNK: usize = UNIT << OFFSET_BITS;
/// Number of chunks a reference can name.
const MAX_CHUNKS: usize = if cfg!(loom) { 4 } else { 256 };

/// Bytes made resident ahead at a time; the next are asked for when half of them are left.
const AHEAD: usize = 4 << 20;
/// Chunks below this are faulted in as they are used: a huge page.
const LEAST_AHEAD: usize = 2 << 20;
/// Until so much is used, the first chunk has ordinary pages, and so has the index: a memtable of few entries takes little more memory than
/// they do.
const LEAN: usize = 256 << 10;

/// Memory of an arena that should become resident; of the first chunk also: its first huge page takes the place of ordinary ones.
#[derive(Debug)]
pub struct PrefaultRange {
    chunk: usize,
    bytes: Range<usize>,
}

/// Names memory in an [`Arena`].
pub type Ref = u32;

/// Names nothing.
pub const NULL: Ref = 0;

/// Memory that is freed all at once.
pub struct Arena {
    chunks: [AtomicPtr<u8>; MAX_CHUNKS],
    /// Chunk index in the upper half, units used in the lower. The lower half may run past the chunk's end.
    cursor: AtomicU64,
    /// Units in the current chunk.
    chunk_units: usize,
    used_bytes: AtomicUsize,
    /// Bytes of the current chunk, from its start, that are resident or asked for.
    resident: AtomicUsize,
    /// The first chunk.
    first: ManuallyDrop<Mapping>,
    owned: Mutex<Owned>,
    pool: Arc<MemTablePool>,
}

#[derive(Default)]
struct Owned {
    /// The chunks after the first.
    mappings: Vec<Mapping>,
    /// Not boxes: moving a box claims its memory as its own, which would end what points into it.
    spilled: Vec<Vec<u8>>,
}

impl Arena {
    /// An arena that expects to hold about `expected_bytes`.
    pub fn new(expected_bytes: usize, pool: Arc<MemTablePool>) -> Arena {
        let chunk_bytes = pool.chunk_bytes().unwrap_or_else(|| Arena::chunk_bytes(expected_bytes));
        let (mapping, resident) = pool.take(chunk_bytes, LEAST_AHEAD);
        let chunk_units = mapping.len().min(MAX_CHUNK) / UNIT;
        let arena = Arena {
            chunks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            // Unit 0 of chunk 0 is never given out: its reference is NULL.
            cursor: AtomicU64::new(1),
            chunk_units,
            used_bytes: AtomicUsize::new(0),
            resident: AtomicUsize::new(resident),
            first: ManuallyDrop::new(mapping),
            owned: Mutex::default(),
            pool,
        };
        arena.chunks[0].store(arena.first.as_ptr(), Ordering::Relaxed);
        arena
    }

    /// Bytes of the first chunk of such an arena.
    pub fn chunk_bytes(expected_bytes: usize) -> usize {
        expected_bytes.saturating_add(expected_bytes / 16 + (64 << 10)).min(MAX_CHUNK)
    }

    /// Allocates `len` bytes, 8-byte aligned, at most a chunk. Their contents mean nothing.
    #[inline]
    pub fn allocate(&self, len: usize) -> Ref {
        let units = len.div_ceil(UNIT);
        // Relaxed: a sum.
        self.used_bytes.fetch_add(units * UNIT, Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release in `add_chunk`; publishes the address of the chunk. The memory is published
            // by whoever links it.
            let cursor = self.cursor.fetch_add(units as u64, Ordering::Acquire);
            let (chunk, start) = ((cursor >> 32) as usize, cursor as u32 as usize);
            if start + units <= self.chunk_units {
                return ((chunk as u32) << OFFSET_BITS) | start as u32;
            }
            self.add_chunk(chunk, units);
        }
    }

    /// Replaces the full chunk `full`, unless another thread has.
    #[cold]
    fn add_chunk(&self, full: usize, units: usize) {
        assert!(units <= self.chunk_units, "allocation of {units} units is larger than a chunk");
        let mut owned = self.owned.lock();
        if (self.cursor.load(Ordering::Relaxed) >> 32) as usize != full {
            return;
        }
        let next = full + 1;
        assert!(next < MAX_CHUNKS, "a memtable cannot exceed {MAX_CHUNKS} chunks");
        let (mapping, resident) = self.pool.take(self.chunk_units * UNIT, 0);
        // Relaxed: the cursor publishes it.
        self.chunks[next].store(mapping.as_ptr(), Ordering::Relaxed);
        owned.mappings.push(mapping);
        // Relaxed: as everywhere, what is resident only saves time.
        self.resident.store(resident, Ordering::Relaxed);
        // Release: pairs with the Acquire in `allocate`. A swap, though nobody asks what was there: loom does not know
        // that a plain store comes after the additions of others.
        self.cursor.swap((next as u64) << 32, Ordering::Release);
    }

    /// The range that should be made resident now, before it is allocated; each part is named once. Mostly
    /// nothing.
    #[inline]
    pub fn ahead(&self) -> Option<PrefaultRange> {
        let chunk_bytes = self.chunk_units * UNIT;
        let resident = self.resident.load(Ordering::Relaxed);
        if resident >= chunk_bytes || chunk_bytes < LEAST_AHEAD {
            return None;
        }
        let cursor = self.cursor.load(Ordering::Relaxed);
        let (chunk, used) = ((cursor >> 32) as usize, cursor as u32 as usize * UNIT);
        if used + AHEAD / 2 <= resident {
            return None;
        }
        if chunk == 0 && used < LEAST_AHEAD / 2 {
            if used < LEAN || resident > 0 {
                return None;
            }
            // Its first huge page, which has entries already.
            self.resident.store(LEAST_AHEAD, Ordering::Relaxed);
            return Some(PrefaultRange { chunk, bytes: 0..0 });
        }
        let end = (used + AHEAD).min(chunk_bytes);
        self.resident.store(end, Ordering::Relaxed);
        let bytes = resident.max(used)..end;
        (!bytes.is_empty()).then_some(PrefaultRange { chunk, bytes })
    }

    /// True until the first chunk has huge pages only: few entries are in it.
    pub fn is_lean(&self) -> bool {
        self.first.is_lean()
    }

    /// Makes `ahead` resident, from any thread, while others allocate and write.
    pub fn prefault(&self, ahead: &PrefaultRange) {
        if ahead.chunk == 0 {
            self.first.use_huge_pages();
        }
        let base = self.chunks[ahead.chunk].load(Ordering::Relaxed);
        populate(base.wrapping_add(ahead.bytes.start), ahead.bytes.len());
    }

    /// Gives the memory that nobody allocated yet back to the operating system; it comes again as it is written to.
    pub fn give_back_unused(&self) {
        let owned = self.owned.lock();
        // Only who holds the lock changes the chunk's number.
        let chunk = self.cursor.load(Ordering::Relaxed) >> 32;
        // As if the chunk were full: a thread that allocates now waits for the lock in `add_chunk`. It then starts a chunk
        // though there is room again, which is rare and does no harm.
        // Acquire: memory allocated before is not touched here, the memory after it was not written to.
        let cursor = self.cursor.swap(chunk << 32 | self.chunk_units as u64, Ordering::AcqRel);
        let used = cursor as u32 as usize;
        if used < self.chunk_units {
            let mapping = owned.mappings.last().unwrap_or(&self.first);
            // SAFETY: `allocate` gave out nothing after the cursor, and gives out nothing until it is set back below.
            unsafe { mapping.give_back_from(used * UNIT) };
            self.resident.store(used * UNIT, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `allocate`. Additions since are of those who found the chunk full.
        self.cursor.swap(cursor, Ordering::Release);
    }

    /// Largest allocation that [`Arena::allocate`] serves; larger ones are spilled.
    pub fn largest_allocation(&self) -> usize {
        (self.chunk_units * UNIT / 8).min(1 << 20)
    }

    /// Copies `parts` one after the other into memory of their own.
    pub fn spill(&self, parts: &[&[u8]]) -> *const u8 {
        let bytes = parts.concat();
        self.used_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let address = bytes.as_ptr();
        self.owned.lock().spilled.push(bytes);
        address
    }

    /// Where `reference` is. It must come from [`Arena::allocate`] of this arena.
    #[inline]
    pub fn pointer(&self, reference: Ref) -> *mut u8 {
        let (chunk, offset) = (reference >> OFFSET_BITS, reference & ((1 << OFFSET_BITS) - 1));
        // Relaxed: a thread has its reference from `allocate`, or through a Release of a thread that has.
        let base = self.chunks[chunk as usize].load(Ordering::Relaxed);
        base.wrapping_add(offset as usize * UNIT)
    }

    /// Bytes given out.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let owned = self.owned.get_mut();
        // Relaxed: `&mut self` shows that nobody allocates any more.
        let used = self.cursor.load(Ordering::Relaxed) as u32 as usize * UNIT;
        let last = owned.mappings.len();
        // SAFETY: taken once, here, and not used again.
        let first = unsafe { ManuallyDrop::take(&mut self.first) };
        for (index, mapping) in std::iter::once(first).chain(owned.mappings.drain(..)).enumerate() {
            let dirty = if index == last { used.min(mapping.len()) } else { mapping.len() };
            self.pool.give(mapping, dirty);
        }
    }
}
