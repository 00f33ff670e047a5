//! The table of descriptors, and the protocol by which hits need no lock.
//!
//! ```text
//! meta:  | state:1 | clock:2 | references:29 | length:32 |
//! ```
//! - A reader adds a reference first and looks after: if the slot was live and holds its key, the reference
//!   keeps the frame; if not, it takes the reference back.
//! - Eviction changes a live slot without references to empty by one compare-exchange. A reader that adds its
//!   reference later finds the slot empty; one that added it before makes the exchange fail.
//! - An empty slot is made live by adding the live bits, so that references added in passing are not lost.
//!
//! `models/` runs the protocol of one slot in every order of steps.
//!
//! Buckets come into use as entries come, one at a time (linear hashing): a cache that is not full has few descriptors in
//! memory. Half of a bucket's entries then move to the new one. A lookup of one of them meanwhile may miss it, and
//! reads a block again that was cached; an entry that somebody holds stays where no lookup finds it until it is evicted.
//! ```text
//! in use = 2^k + s:   buckets 0..s and 2^k..2^k+s by k + 1 bits of the hash, buckets s..2^k by k bits
//! ```
//! Source of the idea: RocksDB `cache/clock_cache.h`.

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use outcrop_env::{Mapping, prefetch};
use std::ptr;

/// Slots of a bucket.
pub const WAYS: usize = 16;

const LENGTH_BITS: u32 = 32;
const REFERENCE: u64 = 1 << LENGTH_BITS;
const REFERENCES: u64 = ((1 << 29) - 1) << LENGTH_BITS;
const CLOCK_ONE: u64 = 1 << 61;
const CLOCK: u64 = 3 << 61;
const LIVE: u64 = 1 << 63;

/// One descriptor.
#[repr(C)]
pub struct Slot {
    meta: AtomicU64,
    file: AtomicU64,
    offset: AtomicU64,
    frame: AtomicPtr<u8>,
}

/// The tags of a bucket's slots: upper half of the key's hash ([`marked`]), never 0; 0 is empty.
#[repr(C, align(64))]
struct Tags([AtomicU32; WAYS]);

impl Tags {
    /// The ways with this tag. Looks at all: where an entry is in its bucket is nothing a processor could foresee.
    #[inline]
    fn ways_with(&self, tag: u32) -> impl Iterator<Item = usize> {
        // Relaxed: a hint; `Slot::acquire` decides.
        let stored = self.0.iter().map(|stored| u32::from(stored.load(Ordering::Relaxed) == tag));
        let mut ways = stored.enumerate().fold(0, |ways, (way, equal)| ways | equal << way);
        std::iter::from_fn(move || {
            let way = ways.trailing_zeros();
            // Without the lowest bit that is set.
            ways &= ways.wrapping_sub(1);
            (way < u32::BITS).then_some(way as usize)
        })
    }
}

/// Frame and length of a slot a reference was taken on.
pub struct Hit {
    /// The slot, to be released.
    pub slot: *const Slot,
    /// Its frame.
    pub frame: *const u8,
    /// Length of the contents, in bytes.
    pub len: u32,
}

impl Slot {
    /// One outside of any table.
    #[cfg(loom)]
    pub fn empty() -> Slot {
        Slot {
            meta: AtomicU64::new(0),
            file: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            frame: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Takes one more reference. The caller holds one.
    pub fn add_reference(&self) {
        // Relaxed: the caller's own reference keeps everything in place.
        self.meta.fetch_add(REFERENCE, Ordering::Relaxed);
    }

    /// Gives a reference back.
    #[inline]
    pub fn release(&self) {
        // Release: reads of the frame happen before an eviction that sees the reference gone.
        self.meta.fetch_sub(REFERENCE, Ordering::Release);
    }

    /// Takes a reference if the slot holds the key.
    #[inline]
    pub fn acquire(&self, file: u64, offset: u64) -> Option<Hit> {
        // Acquire: pairs with the Release in `fill`; publishes key, frame and contents.
        let meta = self.meta.fetch_add(REFERENCE, Ordering::Acquire);
        if meta & LIVE != 0
            && self.file.load(Ordering::Relaxed) == file
            && self.offset.load(Ordering::Relaxed) == offset
        {
            if meta & CLOCK != CLOCK {
                self.warm(meta + REFERENCE);
            }
            return Some(Hit { slot: self, frame: self.frame.load(Ordering::Relaxed), len: meta as u32 });
        }
        self.release();
        None
    }

    /// Raises the clock by one, unless somebody else changed the slot: a lost count is harmless.
    fn warm(&self, meta: u64) {
        let raised = meta + CLOCK_ONE;
        let _ = self.meta.compare_exchange(meta, raised, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes an empty slot live with one reference. The caller holds the lock of the slabs.
    pub fn fill(&self, file: u64, offset: u64, frame: *mut u8, len: u32, clock: u64) {
        self.file.store(file, Ordering::Relaxed);
        self.offset.store(offset, Ordering::Relaxed);
        self.frame.store(frame, Ordering::Relaxed);
        let live = LIVE | (clock * CLOCK_ONE) | REFERENCE | u64::from(len);
        // Release: pairs with the Acquire in `acquire`.
        self.meta.fetch_add(live, Ordering::Release);
    }

    /// Empties the slot if it is live and unreferenced: its frame and length. With `respect_clock` a warm slot
    /// only cools by one. The caller holds the lock of the slabs.
    pub fn evict(&self, respect_clock: bool) -> Option<(*mut u8, u32)> {
        let meta = self.meta.load(Ordering::Relaxed);
        if meta & LIVE == 0 || meta & REFERENCES != 0 {
            return None;
        }
        if respect_clock && meta & CLOCK != 0 {
            let cooler = meta - CLOCK_ONE;
            let _ = self.meta.compare_exchange(meta, cooler, Ordering::Relaxed, Ordering::Relaxed);
            return None;
        }
        let frame = self.frame.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `release`; the last reader is done with the frame.
        self.meta.compare_exchange(meta, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some((frame, meta as u32))
    }

    /// Length of the contents, if live.
    pub fn live_len(&self) -> Option<u32> {
        let meta = self.meta.load(Ordering::Relaxed);
        (meta & LIVE != 0).then_some(meta as u32)
    }

    /// True if somebody holds a reference.
    pub fn is_referenced(&self) -> bool {
        self.meta.load(Ordering::Relaxed) & REFERENCES != 0
    }

    /// The file part of the key; meaningful while live.
    pub fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    /// The offset part of the key; meaningful while live.
    pub fn offset(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// How warm it is, as [`Slot::fill`] takes it.
    fn clock(&self) -> u64 {
        (self.meta.load(Ordering::Relaxed) & CLOCK) / CLOCK_ONE
    }
}

/// All slots, in buckets.
pub struct Table {
    tags: Mapping,
    slots: Mapping,
    /// Buckets there is memory for: a power of two.
    capacity: usize,
    /// Buckets in use; it only grows, under the lock of whoever publishes.
    in_use: AtomicUsize,
}

/// Buckets in use from the start.
const FIRST_BUCKETS: usize = 16;

/// Buckets that `entries` should have: between 4 and 8 entries in each. From 7 on buckets are split, so that none has more
/// than 8 on average, and few of those more than there are ways.
fn buckets_for(entries: usize) -> usize {
    let even = 1 << (entries / 4).max(1).ilog2();
    even + entries.saturating_sub(even * 7).min(even)
}

/// The bucket of a hash among so many.
#[inline]
fn bucket_among(in_use: usize, hash: u64) -> usize {
    // The lower half: tags are of the upper half. Its higher bits are mixed better.
    let number = (hash as u32).swap_bytes() as usize;
    let mask = in_use.next_power_of_two() - 1;
    let bucket = number & mask;
    if bucket < in_use { bucket } else { bucket & (mask >> 1) }
}

/// An entry that moved to another slot.
pub struct Moved {
    /// Its frame.
    pub frame: *mut u8,
    /// The number of its slot now.
    pub index: usize,
}

impl Table {
    /// A table with room for `entries`, at a load of at most 3/5.
    pub fn new(entries: usize) -> Table {
        let capacity = (entries * 5 / 3).div_ceil(WAYS).clamp(1, 1 << 31).next_power_of_two();
        Table {
            tags: Mapping::new(capacity * size_of::<Tags>()),
            slots: Mapping::new(capacity * WAYS * size_of::<Slot>()),
            capacity,
            in_use: AtomicUsize::new(capacity.min(FIRST_BUCKETS)),
        }
    }

    /// Number of buckets in use: none after them has entries.
    #[inline]
    pub fn buckets(&self) -> usize {
        // Relaxed: a thread that sees an older number may miss an entry, see the module's documentation.
        self.in_use.load(Ordering::Relaxed)
    }

    /// Bytes of the part in use.
    pub fn size_bytes(&self) -> usize {
        self.buckets() * (size_of::<Tags>() + WAYS * size_of::<Slot>())
    }

    /// The bucket of a hash.
    #[inline]
    pub fn bucket_of(&self, hash: u64) -> usize {
        bucket_among(self.buckets(), hash)
    }

    /// Takes one more bucket into use if `entries` want it, and gives what moved there. `hash` is that of a file's block. The
    /// caller holds the lock of whoever publishes.
    pub fn grow(&self, entries: usize, hash: impl Fn(u64, u64) -> u64) -> impl Iterator<Item = Moved> {
        let added = self.buckets();
        let mut moved = [const { None }; WAYS];
        if added < buckets_for(entries).min(self.capacity) {
            let from = added - (added + 1).next_power_of_two() / 2;
            for (way, moved) in moved.iter_mut().enumerate() {
                *moved = self.move_to(added, from, way, &hash);
            }
            self.in_use.store(added + 1, Ordering::Relaxed);
        }
        moved.into_iter().flatten()
    }

    /// Moves an entry to the same way of bucket `added`, if it belongs there and nobody holds it.
    fn move_to(
        &self,
        added: usize,
        from: usize,
        way: usize,
        hash: impl Fn(u64, u64) -> u64,
    ) -> Option<Moved> {
        let slot = self.slot(from, way);
        slot.live_len()?;
        let (file, offset) = (slot.file(), slot.offset());
        let hash = hash(file, offset);
        if bucket_among(added + 1, hash) != added {
            return None;
        }
        let clock = slot.clock();
        let (frame, len) = self.evict(from * WAYS + way, false)?;
        let to = self.slot(added, way);
        to.fill(file, offset, frame, len, clock);
        to.release();
        self.tags(added).0[way].store(tag_of(hash), Ordering::Relaxed);
        Some(Moved { frame, index: added * WAYS + way })
    }

    #[inline]
    fn tags(&self, bucket: usize) -> &Tags {
        assert!(bucket < self.capacity);
        // SAFETY: the mapping holds `capacity` zeroed `Tags`, aligned and accessed as atomics only.
        unsafe { &*self.tags.as_ptr().cast::<Tags>().add(bucket) }
    }

    /// The slot `way` of `bucket`.
    #[inline]
    pub fn slot(&self, bucket: usize, way: usize) -> &Slot {
        assert!(bucket < self.capacity && way < WAYS);
        // SAFETY: the mapping holds capacity * WAYS zeroed slots, aligned and accessed as atomics only.
        unsafe { &*self.slots.as_ptr().cast::<Slot>().add(bucket * WAYS + way) }
    }

    /// Numbers of the slots of `bucket` that may be of the files of `marks`. Reads the line of tags alone.
    pub fn slots_marked(&self, bucket: usize, marks: &FileMarks) -> impl Iterator<Item = usize> {
        let tags = self.tags(bucket).0.iter().map(|tag| tag.load(Ordering::Relaxed));
        let ways = tags.enumerate().filter(|(_, tag)| *tag != 0 && marks.has(*tag));
        ways.map(move |(way, _)| bucket * WAYS + way)
    }

    /// The slot with this number, counted over all buckets.
    pub fn slot_at(&self, index: usize) -> &Slot {
        self.slot(index / WAYS, index % WAYS)
    }

    /// Finds the key and takes a reference on its slot.
    #[inline]
    pub fn acquire(&self, hash: u64, file: u64, offset: u64) -> Option<Hit> {
        let bucket = self.bucket_of(hash);
        self.tags(bucket).ways_with(tag_of(hash)).find_map(|way| self.slot(bucket, way).acquire(file, offset))
    }

    /// Asks for the lines that finding a key touches first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(ptr::from_ref(self.tags(self.bucket_of(hash))));
    }

    /// Asks for the slots that may hold the key, once what [`Table::prefetch`] asked for is there.
    #[inline]
    pub fn prefetch_slot(&self, hash: u64) {
        let bucket = self.bucket_of(hash);
        for way in self.tags(bucket).ways_with(tag_of(hash)) {
            prefetch(ptr::from_ref(self.slot(bucket, way)));
        }
    }

    /// Asks for what is at `offsets` of the frame that may be the key's, once what [`Table::prefetch_slot`] asked for is
    /// there. Nothing is pinned: if the frame is another's or shorter, a line was prefetched for nothing.
    #[inline]
    pub fn prefetch_frame(&self, hash: u64, offsets: &[usize]) {
        let bucket = self.bucket_of(hash);
        for way in self.tags(bucket).ways_with(tag_of(hash)) {
            let frame = self.slot(bucket, way).frame.load(Ordering::Relaxed);
            offsets.iter().for_each(|&offset| prefetch(frame.wrapping_add(offset)));
        }
    }

    /// Publishes a frame under the key in an empty way of its bucket, with one reference. `None` if the bucket
    /// is full. The caller holds the lock of the slabs and knows that the key is absent.
    pub fn publish(&self, hash: u64, key: (u64, u64), frame: *mut u8, len: u32, clock: u64) -> Option<&Slot> {
        let bucket = self.bucket_of(hash);
        let tags = self.tags(bucket);
        let way = tags.0.iter().position(|tag| tag.load(Ordering::Relaxed) == 0)?;
        let slot = self.slot(bucket, way);
        slot.fill(key.0, key.1, frame, len, clock);
        tags.0[way].store(tag_of(hash), Ordering::Relaxed);
        Some(slot)
    }

    /// Evicts slot `index` if it can be. The caller holds the lock of the slabs.
    pub fn evict(&self, index: usize, respect_clock: bool) -> Option<(*mut u8, u32)> {
        let evicted = self.slot_at(index).evict(respect_clock)?;
        self.tags(index / WAYS).0[index % WAYS].store(0, Ordering::Relaxed);
        Some(evicted)
    }

    /// The number of `slot`, which is in this table.
    pub fn index_of(&self, slot: &Slot) -> usize {
        (ptr::from_ref(slot) as usize - self.slots.as_ptr() as usize) / size_of::<Slot>()
    }
}

#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// How many of a file's bits are in the tags of its blocks. The rest of the hash tells the keys of a bucket apart.
const MARK_BITS: u32 = 12;
const MARK_MASK: u64 = (1 << MARK_BITS) - 1;
/// Where they are in a hash: in the tag, above the bit that every tag has.
const MARK_SHIFT: u32 = 33;

/// `hash` of a key of `file`, with some of the file's bits in its tag: a search for the blocks of a file need not read
/// every slot.
#[inline]
pub fn marked(hash: u64, file: u64) -> u64 {
    (hash & !(MARK_MASK << MARK_SHIFT)) | ((file & MARK_MASK) << MARK_SHIFT)
}

/// A set of files, by the bits that tags have of them.
pub struct FileMarks([u64; 1 << (MARK_BITS - 6)]);

impl FileMarks {
    /// Of `files`.
    pub fn of<'f>(files: impl IntoIterator<Item = &'f u64>) -> FileMarks {
        let mut words = [0; _];
        for file in files {
            let mark = (file & MARK_MASK) as usize;
            words[mark / 64] |= 1 << (mark % 64);
        }
        FileMarks(words)
    }

    /// True if a block under `tag` may be of one of them.
    #[inline]
    fn has(&self, tag: u32) -> bool {
        let mark = (u64::from(tag) >> (MARK_SHIFT - 32) & MARK_MASK) as usize;
        self.0[mark / 64] >> (mark % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_with_entries_and_are_never_crowded() {
        let mut last = 0;
        for entries in 0..100_000 {
            let buckets = buckets_for(entries);
            assert!(buckets == last || buckets == last + 1, "{entries} entries: {last}, then {buckets}");
            last = buckets;
            // Those that were not split yet have the most.
            let crowd = entries as f64 / (buckets + 1).next_power_of_two() as f64 * 2.0;
            assert!(crowd <= 8.1, "{entries} entries, {buckets} buckets, {crowd} in some");
        }
        let mut hash = 1u64;
        for in_use in 1..500 {
            hash = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ in_use as u64;
            let (before, after) = (bucket_among(in_use, hash), bucket_among(in_use + 1, hash));
            assert!(before < in_use);
            assert!(after == before || after == in_use, "an entry stays or goes to the new bucket");
        }
    }
}
