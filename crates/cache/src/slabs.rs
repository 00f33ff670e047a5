//! Memory for frames: slabs of equal frames, carved from mappings of the engine's own.
//!
//! A frame belongs to the size class that wastes least; above 2 KiB classes are a 32nd of a power of two apart. A slab
//! whose frames are all free can be given to another class. The number of slabs is fixed by the capacity.
//! Few blocks of a size, such as the last ones of tables, do not get a slab: they borrow frames up to twice as large.
//!
//! When the capacity shrinks, memory goes back to the operating system: that of empty slabs, and of a slab with a few frames that
//! somebody holds the pages between them. Such a slab is hollow: it gives out no frame any more until it is empty.
//!
//! The first touch of a slab takes the operating system 0.1 ms, or 7 where a host has to find the memory first. So once the
//! cache grows, the next few slabs are made resident by somebody else, before a reader needs them.
//!
//! Concurrency: behind one lock, taken on misses only; never held while memory is made resident.

use outcrop_env::{Mapping, PAGE};
use std::collections::BTreeMap;
use std::ops::Range;

/// Largest frame kept in slabs, as a part of the slab.
const SLAB_SHARE: usize = 2;
/// Smallest frame.
const MIN_FRAME: usize = 512;
/// Largest slab: a huge page.
const MAX_SLAB: usize = 2 << 20;
/// Smallest slab.
const MIN_SLAB: usize = 64 << 10;
/// Slabs kept ready while the cache grows.
const READY: usize = 2;
/// A cache of fewer slabs has no memory made ready: it may already hold all that will be read.
const GROWING: usize = 4;

/// No slot: the frame is free.
pub const FREE: u32 = u32::MAX;

/// A frame: its slab and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId {
    /// Slab number.
    pub slab: u32,
    /// Frame number in the slab.
    pub frame: u32,
}

/// All slabs of a cache.
pub struct Slabs {
    slab_bytes: usize,
    max_slabs: usize,
    mappings: Vec<Mapping>,
    slabs: Vec<Slab>,
    /// Start address of each slab.
    by_address: BTreeMap<usize, u32>,
    /// Empty slabs, which belong to no class.
    spare: Vec<u32>,
    /// The same, whose memory was given back.
    gone: Vec<u32>,
    /// Number of hollow slabs, and the bytes of their pages that are left.
    hollow: (usize, usize),
    /// Resident memory for slabs to come.
    ready: Vec<Mapping>,
    /// Per class, slabs that may have a free frame.
    partial: Vec<Vec<u32>>,
    /// Per class, its blocks that are in frames of larger classes.
    borrowed: Vec<u32>,
    /// Where the search for a slab to clear goes on.
    hand: usize,
    /// Looks for blocks to evict.
    pub looks: Looks,
}

/// Whether to look for a block to evict. After looks that found all blocks pinned the next misses do without one: after the first one miss, then two,
/// four and so on up to [`Looks::MOST`]. A look that finds an unpinned block ends that.
#[derive(Default)]
pub struct Looks {
    /// Misses that do without a look, after the next one that finds nothing.
    next: u32,
    /// Misses that still do without.
    left: u32,
}

impl Looks {
    /// So many misses in a row do without a look, at most.
    pub const MOST: u32 = 64;

    /// Whether this miss does without.
    pub fn skip(&mut self) -> bool {
        let skips = self.left > 0;
        self.left = self.left.saturating_sub(1);
        skips
    }

    /// A look has ended.
    pub fn ended(&mut self, all_pinned: bool) {
        self.next = if all_pinned { (self.next * 2).clamp(1, Looks::MOST) } else { 0 };
        self.left = self.next;
    }
}

struct Slab {
    start: *mut u8,
    class: usize,
    frame_bytes: usize,
    /// Slot number of the owner of each frame, or [`FREE`].
    owners: Vec<u32>,
    free: Vec<u32>,
    /// Listed in `partial`.
    listed: bool,
    /// Bytes of its pages that are left, if it is hollow.
    hollow: Option<usize>,
}

impl Slab {
    /// For each page, whether a frame in use touches it.
    fn pages_in_use(&self, slab_bytes: usize) -> Vec<bool> {
        let mut frames = vec![true; self.owners.len()];
        // Those that are being filled have no owner yet, and are not free.
        self.free.iter().for_each(|&frame| frames[frame as usize] = false);
        let mut pages = vec![false; slab_bytes / PAGE];
        for (frame, _) in frames.iter().enumerate().filter(|(_, used)| **used) {
            pages[self.pages_of(frame)].fill(true);
        }
        pages
    }

    /// The pages that a frame touches.
    fn pages_of(&self, frame: usize) -> Range<usize> {
        let start = frame * self.frame_bytes;
        start / PAGE..(start + self.frame_bytes).div_ceil(PAGE)
    }
}

// SAFETY: a slab's memory is owned by the mappings beside it; access to frames is governed by the table.
unsafe impl Send for Slabs {}

impl Slabs {
    /// Slabs of together at most `capacity` bytes, and at least one.
    pub fn new(capacity: usize) -> Slabs {
        let slab_bytes = (capacity / 64).next_power_of_two().clamp(MIN_SLAB, MAX_SLAB);
        Slabs {
            slab_bytes,
            max_slabs: (capacity / slab_bytes).max(1),
            mappings: Vec::new(),
            slabs: Vec::new(),
            by_address: BTreeMap::new(),
            spare: Vec::new(),
            gone: Vec::new(),
            hollow: (0, 0),
            ready: Vec::new(),
            partial: vec![Vec::new(); class_of(slab_bytes) + 1],
            borrowed: vec![0; class_of(slab_bytes) + 1],
            hand: 0,
            looks: Looks::default(),
        }
    }

    /// Changes the capacity. Slabs beyond it are given back as they become empty.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.max_slabs = (capacity / self.slab_bytes).max(1);
        self.fit();
    }

    /// Gives back memory that is beyond the capacity and holds nothing.
    fn fit(&mut self) {
        while self.live_slabs() + self.spare.len() + self.ready.len() > self.max_slabs {
            if self.ready.pop().is_some() {
                continue;
            }
            let Some(index) = self.spare.pop() else { return };
            // SAFETY: the slab is empty: nobody reads or writes a frame of it.
            unsafe { self.mappings[index as usize].give_back_from(0) };
            self.gone.push(index);
        }
    }

    /// True if slabs take more than the capacity allows.
    pub fn over_capacity(&self) -> bool {
        self.live_slabs() > self.max_slabs
    }

    /// The slabs with frames in use. Hollow ones count with the pages that are left of them.
    fn live_slabs(&self) -> usize {
        let (hollow, bytes) = self.hollow;
        self.slabs.len() - self.spare.len() - self.gone.len() - hollow + bytes.div_ceil(self.slab_bytes)
    }

    /// Bytes of memory held in slabs.
    pub fn mapped_bytes(&self) -> usize {
        let (hollow, bytes) = self.hollow;
        let whole = self.slabs.len() - self.gone.len() - hollow + self.ready.len();
        whole * self.slab_bytes + bytes
    }

    /// Gives back the pages of slab `index` that no frame in use touches, if that has not been done.
    pub fn hollow(&mut self, index: u32) {
        let slab = &mut self.slabs[index as usize];
        if slab.hollow.is_some() || slab.free.len() == slab.owners.len() {
            return;
        }
        let pages = slab.pages_in_use(self.slab_bytes);
        let left = pages.iter().filter(|used| **used).count() * PAGE;
        slab.hollow = Some(left);
        if std::mem::take(&mut slab.listed) {
            self.partial[slab.class].retain(|&listed| listed != index);
        }
        self.hollow = (self.hollow.0 + 1, self.hollow.1 + left);
        self.give_back_unused(index, &pages, 0..pages.len());
    }

    /// Gives back those of the pages in `range` that are not in use.
    fn give_back_unused(&self, index: u32, in_use: &[bool], range: Range<usize>) -> usize {
        let mut given = 0;
        for page in range.filter(|page| !in_use[*page]) {
            // SAFETY: no frame in use touches the page, and a hollow slab gives out no frame.
            unsafe { self.mappings[index as usize].give_back(page * PAGE..(page + 1) * PAGE) };
            given += PAGE;
        }
        given
    }

    /// Slabs made so far.
    pub fn count(&self) -> usize {
        self.slabs.len()
    }

    /// Bytes of a slab.
    pub fn slab_bytes(&self) -> usize {
        self.slab_bytes
    }

    /// How many slabs more should be ready, of those that the capacity still allows.
    pub fn missing_ready(&self) -> usize {
        if self.live_slabs() < GROWING {
            return 0;
        }
        let to_come = self.max_slabs.saturating_sub(self.live_slabs() + self.spare.len());
        READY.min(to_come).saturating_sub(self.spare.len() + self.gone.len() + self.ready.len())
    }

    /// Takes resident memory for the next slab, which [`Slabs::missing_ready`] asked for; gives it back if that was too late.
    pub fn add_ready(&mut self, mapping: Mapping) -> Option<Mapping> {
        debug_assert_eq!(mapping.len(), self.slab_bytes);
        if self.missing_ready() == 0 {
            return Some(mapping);
        }
        self.ready.push(mapping);
        None
    }

    /// True if frames of `len` bytes come from slabs.
    pub fn serves(&self, len: usize) -> bool {
        len <= self.slab_bytes / SLAB_SHARE
    }

    /// Bytes a frame for `len` bytes takes.
    pub fn frame_bytes(&self, len: usize) -> usize {
        let class = class_of(len);
        self.slab_bytes / (self.slab_bytes / class_bytes(class)) / 64 * 64
    }

    /// A free frame for `len` bytes, if there is one or a new slab is allowed.
    pub fn allocate(&mut self, len: usize) -> Option<(FrameId, *mut u8)> {
        let class = class_of(len);
        if let Some(own) = self.take(class).or_else(|| self.borrow(class)) {
            return Some(own);
        }
        if self.live_slabs() >= self.max_slabs {
            return None;
        }
        self.add_slab(class);
        self.take(class)
    }

    /// A free frame of `class`.
    fn take(&mut self, class: usize) -> Option<(FrameId, *mut u8)> {
        while let Some(&index) = self.partial[class].last() {
            let slab = &mut self.slabs[index as usize];
            if slab.class == class
                && let Some(frame) = slab.free.pop()
            {
                let address = slab.start.wrapping_add(frame as usize * slab.frame_bytes);
                return Some((FrameId { slab: index, frame }, address));
            }
            slab.listed = false;
            self.partial[class].pop();
        }
        None
    }

    /// A free frame of a larger class, unless the blocks of `class` that have one would fill a good part of a slab.
    fn borrow(&mut self, class: usize) -> Option<(FrameId, *mut u8)> {
        let frames = self.slab_bytes / class_bytes(class);
        if self.borrowed[class] as usize >= frames / 4 {
            return None;
        }
        let largest = class_of(2 * class_bytes(class)).min(self.partial.len() - 1);
        let found = (class + 1..=largest).find_map(|larger| self.take(larger))?;
        self.borrowed[class] += 1;
        Some(found)
    }

    fn add_slab(&mut self, class: usize) {
        let frame_bytes = self.frame_bytes(class_bytes(class));
        let frames = (self.slab_bytes / frame_bytes) as u32;
        let index = match self.spare.pop().or_else(|| self.gone.pop()) {
            Some(index) => index,
            None => {
                let mapping = self.ready.pop().unwrap_or_else(|| Mapping::new(self.slab_bytes));
                let start = mapping.as_ptr();
                self.mappings.push(mapping);
                let index = self.slabs.len() as u32;
                self.by_address.insert(start as usize, index);
                self.slabs.push(Slab {
                    start,
                    class,
                    frame_bytes,
                    owners: Vec::new(),
                    free: Vec::new(),
                    listed: false,
                    hollow: None,
                });
                index
            }
        };
        let slab = &mut self.slabs[index as usize];
        slab.class = class;
        slab.frame_bytes = frame_bytes;
        slab.owners = vec![FREE; frames as usize];
        slab.free = (0..frames).rev().collect();
        slab.listed = true;
        self.partial[class].push(index);
        self.fit();
    }

    /// Notes that slot `owner` holds the frame.
    pub fn set_owner(&mut self, frame: FrameId, owner: u32) {
        self.slabs[frame.slab as usize].owners[frame.frame as usize] = owner;
    }

    /// Frees a frame that was allocated for `len` bytes. An empty slab becomes spare.
    pub fn free(&mut self, frame: FrameId, len: usize) {
        let slab = &mut self.slabs[frame.slab as usize];
        let class = class_of(len);
        if slab.class != class {
            self.borrowed[class] -= 1;
        }
        slab.owners[frame.frame as usize] = FREE;
        slab.free.push(frame.frame);
        if slab.free.len() == slab.owners.len() {
            let class = slab.class;
            if std::mem::take(&mut slab.listed) {
                self.partial[class].retain(|&index| index != frame.slab);
            }
            match slab.hollow.take() {
                Some(left) => {
                    self.hollow = (self.hollow.0 - 1, self.hollow.1 - left);
                    // SAFETY: the slab is empty.
                    unsafe { self.mappings[frame.slab as usize].give_back_from(0) };
                    self.gone.push(frame.slab);
                }
                None => {
                    self.spare.push(frame.slab);
                    self.fit();
                }
            }
        } else if let Some(left) = slab.hollow {
            let (in_use, freed) = (slab.pages_in_use(self.slab_bytes), slab.pages_of(frame.frame as usize));
            let given = self.give_back_unused(frame.slab, &in_use, freed);
            self.slabs[frame.slab as usize].hollow = Some(left - given);
            self.hollow.1 -= given;
        } else if !std::mem::replace(&mut slab.listed, true) {
            self.partial[slab.class].push(frame.slab);
        }
    }

    /// The frame at `address`, which was allocated here for `len` bytes.
    pub fn frame_at(&self, address: *mut u8) -> Option<FrameId> {
        let (&start, &index) = self.by_address.range(..=address as usize).next_back()?;
        if address as usize - start >= self.slab_bytes {
            return None;
        }
        let slab = &self.slabs[index as usize];
        let frame = (address as usize - start) / slab.frame_bytes;
        Some(FrameId { slab: index, frame: frame as u32 })
    }

    /// A slab that is not of the class of `len` bytes, and the owners of its frames, to be evicted so that the
    /// slab becomes spare. Slabs are taken in turn.
    pub fn slab_to_clear(&mut self, len: usize) -> Option<(u32, Vec<u32>)> {
        let class = class_of(len);
        for _ in 0..self.slabs.len() {
            let index = self.hand % self.slabs.len();
            self.hand = index + 1;
            let slab = &self.slabs[index];
            if slab.class != class && slab.free.len() < slab.owners.len() {
                let owners = slab.owners.iter().copied().filter(|&owner| owner != FREE).collect();
                return Some((index as u32, owners));
            }
        }
        None
    }
}

/// Frames up to this size are multiples of a cache line.
const FINE: usize = 2 << 10;
const LINE: usize = 64;
/// Classes of each power of two above.
const PARTS: usize = 32;

/// The size class of `len` bytes.
fn class_of(len: usize) -> usize {
    let len = len.max(MIN_FRAME);
    if len <= FINE {
        return len.div_ceil(LINE);
    }
    let octave = (len - 1).ilog2();
    let step = (1 << octave) / PARTS;
    let part = (len - (1 << octave)).div_ceil(step);
    FINE / LINE + (octave - FINE.ilog2()) as usize * PARTS + part
}

/// Bytes of a frame of `class`.
fn class_bytes(class: usize) -> usize {
    let Some(above) = class.checked_sub(FINE / LINE + 1) else { return class * LINE };
    let power = FINE << (above / PARTS);
    power + (above % PARTS + 1) * (power / PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_lengths_and_waste_little() {
        for len in (1..3000).chain((3000..200_000).step_by(37)) {
            let bytes = class_bytes(class_of(len));
            assert!(bytes >= len, "{len} bytes in a frame of {bytes}");
            assert!(
                len <= MIN_FRAME || bytes < len + len / PARTS + LINE,
                "{len} bytes in a frame of {bytes}"
            );
            assert_eq!(class_of(bytes), class_of(len));
            assert_eq!(bytes % LINE, 0);
        }
    }

    #[test]
    fn few_blocks_of_a_size_borrow_frames_and_many_get_their_own() {
        let mut slabs = Slabs::new(64 << 20);
        let slab_bytes = slabs.slab_bytes;
        slabs.allocate(8400).unwrap();
        let odd: Vec<FrameId> = (0..8).map(|i| slabs.allocate(4500 + i * 400).unwrap().0).collect();
        assert_eq!(slabs.mapped_bytes(), slab_bytes, "all in one slab");
        assert!(slabs.allocate(3000).is_some());
        assert_eq!(slabs.mapped_bytes(), 2 * slab_bytes, "not in frames more than twice as large");
        for (i, frame) in odd.into_iter().enumerate() {
            slabs.free(frame, 4500 + i * 400);
        }
        assert!(slabs.borrowed.iter().all(|&count| count == 0));
        let per_slab = slab_bytes / class_bytes(class_of(5000));
        let many: Vec<FrameId> = (0..per_slab).map(|_| slabs.allocate(5000).unwrap().0).collect();
        assert_eq!(slabs.borrowed[class_of(5000)] as usize, per_slab / 4);
        assert_eq!(slabs.mapped_bytes(), 3 * slab_bytes);
        many.into_iter().for_each(|frame| slabs.free(frame, 5000));
        assert_eq!(slabs.borrowed[class_of(5000)], 0);
    }

    #[test]
    fn an_empty_slab_serves_another_class() {
        let mut slabs = Slabs::new(64 << 10);
        let mut small = Vec::new();
        while let Some((frame, _)) = slabs.allocate(1000) {
            small.push(frame);
        }
        assert!(slabs.allocate(5000).is_none());
        for frame in small {
            slabs.free(frame, 1000);
        }
        assert!(slabs.allocate(5000).is_some());
        assert_eq!(slabs.mapped_bytes(), 64 << 10);
    }
}
