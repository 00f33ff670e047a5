//! [`Cache`]: the table and the slabs together, and what is evicted when.
//!
//! Eviction is a clock: a hand goes round the slots, cooling warm ones and evicting cold ones. New data
//! blocks start cold, so that a scan evicts its own blocks first; index and filter blocks start warm.
//!
//! Concurrency: hits take no lock. Inserts and evictions hold `slabs`, for the copy of nothing: the caller's
//! `fill` runs outside. Keepers are called without it.

use crate::charge::Role;
use crate::pinned::{Pinned, standalone, standalone_charged};
use crate::slabs::{FrameId, Slabs};
use crate::survey::Survey;
use crate::table::{FileMarks, Table, WAYS, marked};
use outcrop_env::Mapping;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Names a block: the file, by a number unique in the cache, and the block's offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// From [`Cache::new_file_id`].
    pub file: u64,
    /// Offset in the file; the two upper bits, which no file is so long to need, say which [`Kind`] it is of.
    pub offset: u64,
}

/// The type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of a table.
    Data,
    /// The index of a table.
    Index,
    /// The filter of a table, or a part of it.
    Filter,
    /// A value of a blob file.
    Blob,
}

impl Kind {
    /// All, in the order of their numbers.
    pub const ALL: [Kind; 4] = [Kind::Data, Kind::Index, Kind::Filter, Kind::Blob];
}

impl CacheKey {
    #[inline]
    fn hash(self) -> u64 {
        let product = u128::from(self.offset ^ 0x9E37_79B9_7F4A_7C15)
            * u128::from(self.file.wrapping_mul(0xA076_1D64_78BD_642F) | 1);
        marked((product as u64 ^ (product >> 64) as u64).wrapping_mul(0xE703_7ED1_A0B4_28DB), self.file)
    }
}

fn hash_of(file: u64, offset: u64) -> u64 {
    CacheKey { file, offset }.hash()
}

/// How long a new block may stay without being asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Starts warm: index and filter blocks.
    High,
    /// Starts cold: data blocks.
    Low,
}

/// Settings of a cache.
///
/// ```
/// # use outcrop_cache as outcrop;
/// use outcrop::CacheOptions;
///
/// let options = CacheOptions { capacity: 256 << 20, estimated_entry_charge: 0 };
/// # assert_eq!(options.capacity >> 20, 256);
/// ```
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Bytes of memory for blocks.
    pub capacity: usize,
    /// Expected bytes per block, from which the number of descriptors follows; 0: 4 KiB. If blocks are much
    /// smaller, descriptors run out before memory does.
    pub estimated_entry_charge: usize,
}

/// A listener to the growth of a cache: it has another thread call [`Cache::prepare_slab`] until that gives false. Readers
/// call it between two blocks, so it should only wake that thread.
pub type GrowthListener = dyn Fn() + Send + Sync;

/// A block cache. Shared as `Arc<Cache>`, by any number of databases.
///
/// ```
/// # use outcrop_cache as outcrop;
/// use outcrop::{Cache, CacheOptions};
///
/// // One for all column families, and databases, that are given it.
/// let cache = Cache::new(CacheOptions { capacity: 256 << 20, estimated_entry_charge: 0 });
/// let shared = cache.clone();
/// # assert!(std::sync::Arc::ptr_eq(&cache, &shared));
/// ```
pub struct Cache {
    table: Table,
    slabs: Mutex<Slabs>,
    listeners: Mutex<Vec<Weak<GrowthListener>>>,
    capacity: AtomicUsize,
    /// Bytes of the frames in use.
    usage: AtomicUsize,
    entries: AtomicUsize,
    /// Next slot the clock looks at.
    hand: AtomicUsize,
    /// Bytes promised to holders that keep their pins for long.
    held: AtomicUsize,
    /// Bytes of the capacity that others use, by [`Role`].
    reserved: [AtomicUsize; Role::ALL.len()],
    /// Bytes of blocks that iterators are on, if they are charged.
    iterator_pins: AtomicUsize,
    /// Tables, iterators and jobs charge it with their memory.
    charged: bool,
    /// Readers fail whose block is not admitted.
    strict: AtomicBool,
    /// Bytes of frames outside of slabs, if the capacity is strict.
    alone: Arc<AtomicUsize>,
    inserts: AtomicU64,
    evictions: AtomicU64,
    standalone_inserts: AtomicU64,
    /// See [`Cache::outlived`].
    outlived: Arc<AtomicBool>,
    /// Its contents when somebody looked last.
    pub(crate) surveyed: Mutex<Survey>,
}

/// Buckets whose blocks of obsolete files are erased under one lock.
const ERASE_STEP: usize = 64;

/// Numbers of files given out so far.
static FILES: AtomicU64 = AtomicU64::new(0);

/// Slots the clock looks at before it gives up on finding a frame of the right size.
const MAX_SWEEP: usize = 4096;

impl Cache {
    /// An empty cache.
    pub fn new(options: CacheOptions) -> Arc<Cache> {
        Arc::new(Cache::empty(options, false))
    }

    /// The same, whose capacity is strict, and limits the other memory of those who use it as well: see [`crate::Charge`].
    pub fn charging(options: CacheOptions) -> Arc<Cache> {
        Arc::new(Cache::empty(options, true))
    }

    fn empty(options: CacheOptions, charged: bool) -> Cache {
        let charge =
            if options.estimated_entry_charge == 0 { 4 << 10 } else { options.estimated_entry_charge };
        let slabs = Slabs::new(options.capacity);
        Cache {
            table: Table::new((options.capacity / charge).max(64)),
            slabs: Mutex::new(slabs),
            listeners: Mutex::default(),
            capacity: AtomicUsize::new(options.capacity),
            usage: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            reserved: Default::default(),
            iterator_pins: AtomicUsize::new(0),
            charged,
            strict: AtomicBool::new(charged),
            alone: Arc::default(),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            standalone_inserts: AtomicU64::new(0),
            outlived: Arc::default(),
            surveyed: Mutex::default(),
        }
    }

    /// A number for a file that no other file of this process has, in this cache or another; never 0.
    pub fn new_file_id() -> u64 {
        // Relaxed: only that numbers differ matters.
        FILES.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The block under `key`, pinned.
    #[inline]
    pub fn lookup(&self, key: CacheKey) -> Option<Pinned> {
        let hit = self.table.acquire(key.hash(), key.file, key.offset)?;
        // SAFETY: `acquire` took a reference for us on a live slot with this frame.
        Some(unsafe { Pinned::of_slot(hit.slot, hit.frame, hit.len as usize) })
    }

    /// Asks for what [`Cache::lookup`] of `key` touches first.
    #[inline]
    pub fn prefetch(&self, key: CacheKey) {
        self.table.prefetch(key.hash());
    }

    /// Asks for what [`Cache::lookup`] of `key` touches next, after [`Cache::prefetch`] had time.
    #[inline]
    pub fn prefetch_slot(&self, key: CacheKey) {
        self.table.prefetch_slot(key.hash());
    }

    /// Asks for what is at `offsets` of what [`Cache::lookup`] of `key` gives, after [`Cache::prefetch_slot`] had time.
    #[inline]
    pub fn prefetch_frame(&self, key: CacheKey, offsets: &[usize]) {
        self.table.prefetch_frame(key.hash(), offsets);
    }

    /// Adds a block of `len` bytes, written by `fill`, and pins it.
    ///
    /// If another thread added the key meanwhile, that block is returned. If the block cannot be admitted,
    /// because too much is pinned or it is larger than a slab serves, it gets memory of its own until unpinned.
    pub fn insert(
        &self,
        key: CacheKey,
        priority: Priority,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Pinned {
        let Some((frame, address)) = self.allocate(len) else {
            return self.insert_alone(len, fill);
        };
        // SAFETY: the frame holds at least `len` initialised bytes and belongs to nobody else until published.
        fill(unsafe { std::slice::from_raw_parts_mut(address, len) });
        self.publish(key, priority, len, frame, address)
    }

    /// A frame outside of slabs. With a strict capacity it takes room from the slabs.
    #[cold]
    fn insert_alone(&self, len: usize, fill: impl FnOnce(&mut [u8])) -> Pinned {
        self.standalone_inserts.fetch_add(1, Ordering::Relaxed);
        if !self.has_strict_capacity_limit() {
            return standalone(len, fill);
        }
        self.alone.fetch_add(len, Ordering::Relaxed);
        let mut slabs = self.slabs();
        self.fit_slabs(&mut slabs);
        self.shrink(&mut slabs);
        drop(slabs);
        standalone_charged(len, &self.alone, fill)
    }

    /// Leaves to the slabs what others do not use of the capacity.
    fn fit_slabs(&self, slabs: &mut Slabs) {
        // Relaxed: capacity and reservations change under the lock that the caller holds; the rest is looked at again.
        slabs.set_capacity(self.capacity().saturating_sub(self.others()));
    }

    /// Bytes of the capacity that are not of blocks in slabs.
    fn others(&self) -> usize {
        self.reserved() + self.alone.load(Ordering::Relaxed)
    }

    /// Evicts blocks, and gives their memory back, until slabs are within the capacity or all that is left is pinned.
    fn shrink(&self, slabs: &mut Slabs) {
        for _ in 0..slabs.count() {
            if !slabs.over_capacity() {
                return;
            }
            let Some((slab, owners)) = slabs.slab_to_clear(usize::MAX) else { return };
            for owner in owners {
                self.evict(slabs, owner as usize, false);
            }
            if slabs.over_capacity() {
                slabs.hollow(slab);
            }
        }
    }

    fn publish(
        &self,
        key: CacheKey,
        priority: Priority,
        len: usize,
        frame: FrameId,
        address: *mut u8,
    ) -> Pinned {
        let hash = key.hash();
        let mut slabs = self.slabs();
        if let Some(earlier) = self.lookup(key) {
            self.give_back(&mut slabs, frame, len);
            return earlier;
        }
        // Relaxed: changed under the lock held here.
        for moved in self.table.grow(self.entries.load(Ordering::Relaxed) + 1, hash_of) {
            let frame = slabs.frame_at(moved.frame).expect("a slot's frame is in a slab");
            slabs.set_owner(frame, moved.index as u32);
        }
        let clock = if priority == Priority::High { 2 } else { 0 };
        let mut published = self.table.publish(hash, (key.file, key.offset), address, len as u32, clock);
        if published.is_none() && self.evict_from_bucket(&mut slabs, self.table.bucket_of(hash)) {
            published = self.table.publish(hash, (key.file, key.offset), address, len as u32, clock);
        }
        let Some(slot) = published else {
            // Every slot of the bucket is pinned: the contents move to memory of their own.
            // SAFETY: the frame was just written and is still ours.
            let contents = unsafe { std::slice::from_raw_parts(address, len) };
            let copy = |bytes: &mut [u8]| bytes.copy_from_slice(contents);
            let pinned = if self.has_strict_capacity_limit() {
                self.alone.fetch_add(len, Ordering::Relaxed);
                standalone_charged(len, &self.alone, copy)
            } else {
                standalone(len, copy)
            };
            self.give_back(&mut slabs, frame, len);
            self.standalone_inserts.fetch_add(1, Ordering::Relaxed);
            return pinned;
        };
        slabs.set_owner(frame, self.table.index_of(slot) as u32);
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.inserts.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `publish` made the slot live with this frame and one reference, which is ours.
        unsafe { Pinned::of_slot(slot, address, len) }
    }

    fn slabs(&self) -> MutexGuard<'_, Slabs> {
        self.slabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame for `len` bytes, evicting as needed.
    fn allocate(&self, len: usize) -> Option<(FrameId, *mut u8)> {
        let mut slabs = self.slabs();
        if !slabs.serves(len) || u32::try_from(len).is_err() {
            return None;
        }
        if self.has_strict_capacity_limit() {
            self.fit_slabs(&mut slabs);
        }
        self.shrink(&mut slabs);
        let (frame_bytes, slabs_before) = (slabs.frame_bytes(len), slabs.count());
        let allocated = slabs.allocate(len).or_else(|| self.make_room(&mut slabs, len))?;
        self.usage.fetch_add(frame_bytes, Ordering::Relaxed);
        let grows = slabs.count() > slabs_before && slabs.missing_ready() > 0;
        drop(slabs);
        if grows {
            self.tell_listener();
        }
        Some(allocated)
    }

    /// Has `listener` called whenever the cache has grown and the memory it would grow by next is not ready, as long as the
    /// listener lives. Of several, one is called. Without any, readers wait for the memory of their misses.
    pub fn add_growth_listener(&self, listener: &Arc<GrowthListener>) {
        self.listeners().push(Arc::downgrade(listener));
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<GrowthListener>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn tell_listener(&self) {
        let listener = {
            let mut listeners = self.listeners();
            listeners.retain(|listener| listener.strong_count() > 0);
            listeners.first().and_then(Weak::upgrade)
        };
        if let Some(listener) = listener {
            listener();
        }
    }

    /// Makes memory resident for the cache to grow by, milliseconds of work where a host has to find it first. True if
    /// there is more to make.
    pub fn prepare_slab(&self) -> bool {
        let bytes = {
            let slabs = self.slabs();
            if slabs.missing_ready() == 0 {
                return false;
            }
            slabs.slab_bytes()
        };
        let mut mapping = Mapping::new(bytes);
        mapping.prefault();
        let mut slabs = self.slabs();
        let too_late = slabs.add_ready(mapping);
        let more = slabs.missing_ready() > 0;
        drop(slabs);
        drop(too_late);
        more
    }

    /// A frame for `len` bytes of what is evicted. Where one reader pins more than the cache holds, all is pinned for a while, and each look at it as long
    /// as the one before: after looks that found nothing else, some misses do without ([`Looks`]).
    fn make_room(&self, slabs: &mut Slabs, len: usize) -> Option<(FrameId, *mut u8)> {
        // A read that fails for lack of room must have looked for it.
        if slabs.looks.skip() && !self.has_strict_capacity_limit() {
            return None;
        }
        let mut all_pinned = true;
        let allocated = self.sweep(slabs, len, &mut all_pinned).or_else(|| {
            self.clear_slabs(slabs, len);
            slabs.allocate(len)
        });
        slabs.looks.ended(all_pinned && allocated.is_none());
        allocated
    }

    /// Turns the clock until a frame for `len` bytes is free, or it has turned long enough.
    fn sweep(&self, slabs: &mut Slabs, len: usize, all_pinned: &mut bool) -> Option<(FrameId, *mut u8)> {
        let slots = self.table.buckets() * WAYS;
        let mut looked_at_live = 0;
        // A slot cools at most three times before it goes, so four rounds see every unpinned slot evicted.
        for _ in 0..slots.saturating_mul(4) {
            let index = self.hand.fetch_add(1, Ordering::Relaxed) % slots;
            let slot = self.table.slot_at(index);
            if slot.live_len().is_none() {
                continue;
            }
            looked_at_live += 1;
            *all_pinned &= slot.is_referenced();
            if self.evict(slabs, index, true)
                && let Some(allocated) = slabs.allocate(len)
            {
                return Some(allocated);
            }
            if looked_at_live > MAX_SWEEP {
                break;
            }
        }
        None
    }

    /// How many slots the clock has looked at.
    #[cfg(test)]
    pub(crate) fn turned(&self) -> usize {
        self.hand.load(Ordering::Relaxed)
    }

    /// Evicts all frames of slabs of other sizes until one is empty, so that it can serve `len` bytes.
    fn clear_slabs(&self, slabs: &mut Slabs, len: usize) {
        const MAX_SLABS: usize = 8;
        for _ in 0..MAX_SLABS {
            let Some((_, owners)) = slabs.slab_to_clear(len) else { return };
            let cleared = owners.iter().filter(|&&owner| self.evict(slabs, owner as usize, false)).count();
            if cleared == owners.len() {
                return;
            }
        }
    }

    fn evict_from_bucket(&self, slabs: &mut Slabs, bucket: usize) -> bool {
        let first = bucket * WAYS;
        let coldest_first = [true, true, true, false];
        coldest_first
            .into_iter()
            .any(|respect_clock| (first..first + WAYS).any(|index| self.evict(slabs, index, respect_clock)))
    }

    fn evict(&self, slabs: &mut Slabs, index: usize, respect_clock: bool) -> bool {
        let Some((address, len)) = self.table.evict(index, respect_clock) else { return false };
        let frame = slabs.frame_at(address).expect("a slot's frame is in a slab");
        self.give_back(slabs, frame, len as usize);
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.evictions.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn give_back(&self, slabs: &mut Slabs, frame: FrameId, len: usize) {
        self.usage.fetch_sub(slabs.frame_bytes(len), Ordering::Relaxed);
        slabs.free(frame, len);
    }

    /// Asks to keep a pin on `len` bytes for long, such as a table's index. Granted up to half of the capacity, a quarter where others are
    /// charged for what they take of it, or always with `insist`; then [`Cache::end_hold`] must follow when the pin goes.
    pub fn try_hold(&self, len: usize, insist: bool) -> bool {
        // Relaxed: a bound on a sum; nothing is published through it.
        let held = self.held.fetch_add(len, Ordering::Relaxed);
        let most = self.capacity() / if self.charged { 4 } else { 2 };
        if insist || held + len <= most {
            return true;
        }
        self.end_hold(len);
        false
    }

    /// Gives back what [`Cache::try_hold`] granted.
    pub fn end_hold(&self, len: usize) {
        self.held.fetch_sub(len, Ordering::Relaxed);
    }

    /// Evicts the unpinned blocks of files that are gone, so that their memory serves others at once. Pinned
    /// blocks are removed when they are unpinned and cold. Looks at every descriptor in use: 0.4 ms per
    /// gigabyte of blocks of 8 KiB. Nobody may be reading the files any more.
    pub fn erase_files(&self, files: &HashSet<u64>) {
        let marks = FileMarks::of(files);
        let mut found = Vec::new();
        let mut next = 0;
        // Entries that move meanwhile move towards the end.
        while next < self.table.buckets() {
            let first = next;
            next += ERASE_STEP;
            // Without the lock: the last insert of a block happened before its last reader released the file.
            for bucket in first..(first + ERASE_STEP).min(self.table.buckets()) {
                found.extend(self.table.slots_marked(bucket, &marks));
            }
            if found.is_empty() {
                continue;
            }
            // Taken anew for each part: inserts need not wait for all of it.
            let mut slabs = self.slabs();
            for index in found.drain(..) {
                let slot = self.table.slot_at(index);
                if slot.live_len().is_some() && files.contains(&slot.file()) {
                    self.evict(&mut slabs, index, false);
                }
            }
        }
    }

    /// Evicts everything that is not pinned.
    pub fn clear(&self) {
        let mut slabs = self.slabs();
        for index in 0..self.table.buckets() * WAYS {
            self.evict(&mut slabs, index, false);
        }
    }

    /// Bytes of memory for blocks.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the capacity. Memory beyond a smaller one is freed as blocks come in.
    pub fn set_capacity(&self, capacity: usize) {
        let mut slabs = self.slabs();
        self.capacity.store(capacity, Ordering::Relaxed);
        self.fit_slabs(&mut slabs);
    }

    /// Memory of others that counts as the cache's: `before` bytes of it are `now` bytes. Blocks make room for it.
    pub fn change_reserved(&self, role: Role, before: usize, now: usize) {
        let mut slabs = self.slabs();
        // Relaxed: changed under the lock held here.
        let of_role = &self.reserved[role as usize];
        let reserved = of_role.load(Ordering::Relaxed).saturating_sub(before) + now;
        of_role.store(reserved, Ordering::Relaxed);
        self.fit_slabs(&mut slabs);
        self.shrink(&mut slabs);
    }

    /// Bytes of the capacity that others use.
    pub fn reserved(&self) -> usize {
        Role::ALL.into_iter().map(|role| self.reserved_by(role)).sum()
    }

    /// Those of one of them.
    pub fn reserved_by(&self, role: Role) -> usize {
        self.reserved[role as usize].load(Ordering::Relaxed)
    }

    /// Bytes of blocks that iterators are on, which are not among those reserved.
    pub(crate) fn iterator_pins(&self) -> usize {
        self.iterator_pins.load(Ordering::Relaxed)
    }

    pub(crate) fn change_iterator_pins(&self, before: usize, now: usize) {
        // Relaxed: a bound on a sum, as `held`.
        self.iterator_pins.fetch_add(now, Ordering::Relaxed);
        self.iterator_pins.fetch_sub(before, Ordering::Relaxed);
    }

    /// True if it was made with [`Cache::charging`].
    #[inline]
    pub fn is_charged(&self) -> bool {
        self.charged
    }

    /// Whether a read fails whose block finds no room because all is pinned. Default false: the block has memory of its own until it is
    /// unpinned, beyond the capacity.
    pub fn set_strict_capacity_limit(&self, strict: bool) {
        // Relaxed: a flag that orders nothing.
        self.strict.store(strict, Ordering::Relaxed);
    }

    /// Whether reads fail, or do without the cache, rather than that it grows beyond its capacity.
    pub fn has_strict_capacity_limit(&self) -> bool {
        // Relaxed: as above.
        self.strict.load(Ordering::Relaxed)
    }

    /// True if a block that [`Cache::insert`] gave must not be used: with it more would be used than a strict capacity.
    pub fn refuses(&self, block: &Pinned) -> bool {
        if !block.is_standalone() || !self.has_strict_capacity_limit() {
            return false;
        }
        // Others are charged by memory, of which pinned blocks may keep more than they are.
        match self.charged {
            true => self.memory_of_blocks() + self.reserved() > self.capacity(),
            false => self.usage() > self.capacity(),
        }
    }

    /// Bytes taken by blocks, and by others.
    pub fn usage(&self) -> usize {
        self.usage.load(Ordering::Relaxed) + self.others()
    }

    /// Bytes of pinned blocks, and those that others use. Looks at every descriptor.
    pub fn pinned_usage(&self) -> usize {
        let slots = (0..self.table.buckets() * WAYS).map(|index| self.table.slot_at(index));
        slots
            .filter(|slot| slot.is_referenced())
            .filter_map(|slot| slot.live_len())
            .map(|len| len as usize)
            .sum::<usize>()
            + self.others()
    }

    /// Number and bytes of the blocks of each kind. Looks at every descriptor: see [`Cache::survey`].
    pub(crate) fn usage_by_kind(&self) -> [(u64, u64); Kind::ALL.len()] {
        let mut usage = [(0, 0); Kind::ALL.len()];
        for slot in (0..self.table.buckets() * WAYS).map(|index| self.table.slot_at(index)) {
            if let Some(len) = slot.live_len() {
                let (count, bytes) = &mut usage[(slot.offset() >> 62) as usize];
                *count += 1;
                *bytes += u64::from(len);
            }
        }
        usage
    }

    /// Number of blocks.
    pub fn entry_count(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Blocks its table has room for.
    pub fn table_size(&self) -> usize {
        self.table.buckets() * WAYS
    }

    /// Bytes of memory that blocks take: all of their slabs, and frames outside of these. Descriptors come to it.
    pub fn memory_of_blocks(&self) -> usize {
        self.slabs().mapped_bytes() + self.alone.load(Ordering::Relaxed)
    }

    /// Bytes of memory taken from the operating system, descriptors included.
    pub fn mapped_bytes(&self) -> usize {
        self.slabs().mapped_bytes() + self.table.size_bytes()
    }

    /// Blocks added so far.
    pub fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Relaxed)
    }

    /// Blocks evicted so far.
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Blocks that could not be admitted so far.
    pub fn standalone_inserts(&self) -> u64 {
        self.standalone_inserts.load(Ordering::Relaxed)
    }
}

impl Cache {
    /// Becomes true if the cache is dropped while blocks in it are pinned, so that their memory stays for good. An owner of
    /// pins and of a cache drops the pins first; tests ask here whether that is so.
    pub fn outlived(&self) -> Arc<AtomicBool> {
        self.outlived.clone()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let slots = self.table.buckets() * WAYS;
        if (0..slots).any(|index| self.table.slot_at(index).is_referenced()) {
            // Relaxed: read by the thread that dropped it, or one that was told.
            self.outlived.store(true, Ordering::Relaxed);
            // Pins outlive the cache: the frames they point to must stay. See `Pinned`.
            let placeholder = Table::new(1);
            std::mem::forget(std::mem::replace(&mut self.table, placeholder));
            let empty = Slabs::new(0);
            std::mem::forget(std::mem::replace(&mut *self.slabs(), empty));
        }
    }
}
