//! The sorted order: a skiplist of arena nodes.
//!
//! ```text
//! node:  prefix:u64  trailer:u64  key_len:u32  value_len:u32  info:u32  next[height]:u32
//!        internal key bytes, value bytes            (or a pointer to both, if spilled)
//! ```
//! The first 8 key bytes sit in the node as a number that compares like the key, so that most steps of a
//! search decide without touching key bytes. A node costs 32 bytes and its internal key, at height 1.
//!
//! Concurrency: `next` references are stored with Release and loaded with Acquire, which publishes the node
//! they name. Levels are linked bottom up; a search that misses an upper level still arrives at level 0.
//! Source of the shape: RocksDB `memtable/inlineskiplist.h` (branching 4, height 12).

use crate::arena::{Arena, NULL, Ref};
use crate::sync::{AtomicU32, Ordering};
use outcrop_base::Comparator;
use outcrop_base::keys::Trailer;
use outcrop_env::prefetch;
use std::cmp::Ordering as Order;

/// Levels of the list.
pub const MAX_HEIGHT: usize = 12;

/// Offset of `next[0]` in a node: right after the header, but for loom, whose atomics are larger.
const NEXT_OFFSET: usize = size_of::<Header>().next_multiple_of(align_of::<AtomicU32>());
/// Bytes of a `next` reference.
const SLOT: usize = size_of::<AtomicU32>();
/// Bit of `info` that says that key and value lie outside the arena.
const SPILLED: u32 = 1 << 31;

/// The fixed part of a node. Packed, so that it ends where `next[0]` begins, which others change.
#[repr(C, packed(4))]
struct Header {
    prefix: u64,
    trailer: Trailer,
    key_len: u32,
    value_len: u32,
    info: u32,
}

/// Levels that a search from a path climbs before it gives up: a few hundred nodes.
const NEAR_LEVELS: usize = 4;

/// Where a search came by: for each level the last node it passed there, or the head. A hint for the next search, verified
/// before use.
pub type Path = [Ref; MAX_HEIGHT];

/// The key that a search looks for.
#[derive(Clone, Copy)]
pub struct Target<'k> {
    /// [`Comparator::prefix`] of the user key.
    pub prefix: u64,
    /// User key.
    pub user_key: &'k [u8],
    /// Packed sequence number and type.
    pub trailer: Trailer,
}

/// A node, with the arena its references are in.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    arena: &'a Arena,
    start: *const u8,
}

impl<'a> Node<'a> {
    #[inline]
    fn header(&self) -> &'a Header {
        // SAFETY: `start` is the 8-byte aligned start of a node, complete before any reference to it was
        // published, and immutable since; the arena outlives 'a.
        unsafe { &*self.start.cast::<Header>() }
    }

    /// The header of a node that was reached, not made here.
    #[inline]
    fn published_header(&self) -> &'a Header {
        // loom follows atomics alone: it fails if this one, which was made with the node's bytes, is not published here.
        #[cfg(loom)]
        self.next_slot(0).load(Ordering::Relaxed);
        self.header()
    }

    #[inline]
    fn height(&self) -> usize {
        (self.header().info & !SPILLED) as usize
    }

    /// The slot of a level that the node is linked on, or was made ready for by `set_next`.
    #[inline]
    fn next_slot(&self, level: usize) -> &'a AtomicU32 {
        // SAFETY: `slot_address` gives an aligned slot that is only ever accessed as an atomic once the node is
        // linked on its level; the arena outlives 'a.
        unsafe { &*self.slot_address(level) }
    }

    #[inline]
    fn slot_address(&self, level: usize) -> *const AtomicU32 {
        debug_assert!(level < self.height());
        self.start.wrapping_add(NEXT_OFFSET + SLOT * level).cast()
    }

    /// Sets the reference of a level that the node is not linked on.
    #[inline]
    fn set_next(&self, level: usize, next: Ref) {
        // SAFETY: the node has `height` aligned slots from NEXT_OFFSET on. Others arrive at this one through the link
        // on its level, which is not there yet: only the caller, who inserts the node, knows it.
        unsafe { self.slot_address(level).cast_mut().write(AtomicU32::new(next)) }
    }

    /// Start of the internal key.
    #[inline]
    fn key_start(&self) -> *const u8 {
        let header = self.header();
        let inline = self.start.wrapping_add(NEXT_OFFSET + SLOT * self.height());
        if header.info & SPILLED == 0 {
            return inline;
        }
        // SAFETY: a spilled node holds a pointer in place of its key bytes, possibly unaligned.
        unsafe { inline.cast::<*const u8>().read_unaligned() }
    }

    /// The internal key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        let len = self.published_header().key_len as usize + Trailer::LEN;
        // SAFETY: `key_len` and the trailer were written from `key_start` on before the node was published.
        unsafe { std::slice::from_raw_parts(self.key_start(), len) }
    }

    /// The user key.
    #[inline]
    pub fn user_key(&self) -> &'a [u8] {
        // SAFETY: as in `key`.
        unsafe { std::slice::from_raw_parts(self.key_start(), self.published_header().key_len as usize) }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        let header = self.published_header();
        // SAFETY: the value was written right after the internal key before the node was published.
        unsafe {
            let start = self.key_start().add(header.key_len as usize + Trailer::LEN);
            std::slice::from_raw_parts(start, header.value_len as usize)
        }
    }

    /// Packed sequence number and type.
    #[inline]
    pub fn trailer(&self) -> Trailer {
        self.published_header().trailer
    }

    /// [`Comparator::prefix`] of the user key.
    #[inline]
    pub fn prefix(&self) -> u64 {
        self.published_header().prefix
    }

    /// The next node in order.
    #[inline]
    pub fn next(&self) -> Ref {
        // Acquire: pairs with the Release of the link; publishes the next node's bytes.
        self.next_slot(0).load(Ordering::Acquire)
    }

    /// Asks for the node's first line to be fetched.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self.start);
    }
}

/// The list.
pub struct SkipList {
    comparator: Comparator,
    arena: Arena,
    head: Ref,
    /// Highest level in use.
    height: AtomicU32,
    /// Per level, the node inserted last: where an ascending insert goes. A hint, verified before use.
    last_inserted: [AtomicU32; MAX_HEIGHT],
}

impl SkipList {
    /// An empty list in `arena`.
    pub fn new(comparator: Comparator, arena: Arena) -> SkipList {
        let head = arena.allocate(NEXT_OFFSET + SLOT * MAX_HEIGHT);
        let start = arena.pointer(head);
        let header =
            Header { prefix: 0, trailer: Trailer::MIN, key_len: 0, value_len: 0, info: MAX_HEIGHT as u32 };
        // SAFETY: the allocation is large enough, aligned, and not shared yet.
        unsafe { start.cast::<Header>().write(header) };
        let node = Node { arena: &arena, start };
        (0..MAX_HEIGHT).for_each(|level| node.set_next(level, NULL));
        SkipList {
            comparator,
            arena,
            head,
            height: AtomicU32::new(1),
            last_inserted: std::array::from_fn(|_| AtomicU32::new(head)),
        }
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The key order.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// The node `reference` names, which must not be null and must come from this list.
    #[inline]
    pub fn node(&self, reference: Ref) -> Node<'_> {
        Node { arena: &self.arena, start: self.arena.pointer(reference) }
    }

    /// A search target.
    #[inline]
    pub fn target<'k>(&self, user_key: &'k [u8], trailer: Trailer) -> Target<'k> {
        Target { prefix: self.comparator.prefix(user_key), user_key, trailer }
    }

    /// Order of `node`'s key against `target`.
    #[inline]
    fn compare(&self, node: Node<'_>, target: &Target<'_>) -> Order {
        match node.prefix().cmp(&target.prefix) {
            Order::Equal => self.compare_keys(node, target),
            decided => decided,
        }
    }

    /// True if `node` comes before `target`.
    #[inline]
    fn is_before(&self, node: Node<'_>, target: &Target<'_>) -> bool {
        let prefix = node.prefix();
        if prefix != target.prefix {
            return prefix < target.prefix;
        }
        self.compare_keys(node, target) == Order::Less
    }

    /// Order of `node`'s key against `target`, whose prefixes are equal.
    #[inline]
    fn compare_keys(&self, node: Node<'_>, target: &Target<'_>) -> Order {
        let keys = self.comparator.compare(node.user_key(), target.user_key);
        keys.then_with(|| target.trailer.cmp(&node.trailer()))
    }

    /// Adds an entry and returns its node. `random` decides its height.
    pub fn insert(&self, target: &Target<'_>, value: &[u8], random: u64) -> Ref {
        let height = random_height(random);
        let reference = self.new_node(target, value, height);
        let node = self.node(reference);
        // Relaxed: only a hint where to start; a search that starts too low is slower, not wrong.
        if height as u32 > self.height.load(Ordering::Relaxed) {
            self.height.fetch_max(height as u32, Ordering::Relaxed);
        }
        let mut before = self.path();
        let next = match self.ascending_place(target, height, &mut before) {
            Some(next) => next,
            None => self.search(target, &mut before),
        };
        self.link(node, reference, target, 0, (&mut before[0], next));
        for (level, place) in before.iter_mut().enumerate().take(height).skip(1) {
            let (found, next) = self.advance(*place, target, level);
            *place = found;
            self.link(node, reference, target, level, (place, next));
        }
        reference
    }

    /// If the entry goes right after the last inserted nodes on all its levels: finds its place without a
    /// search, and gives what follows it on the lowest.
    #[inline]
    fn ascending_place(&self, target: &Target<'_>, height: usize, before: &mut Path) -> Option<Ref> {
        let mut follows = NULL;
        for level in (0..height).rev() {
            // Acquire: pairs with the Release in `link`. A hint, but its node is looked at.
            let hint = self.last_inserted[level].load(Ordering::Acquire);
            follows = self.follower(hint, target, level)?;
            before[level] = hint;
        }
        Some(follows)
    }

    /// The node after `before` on `level`, if `target` belongs between the two.
    #[inline]
    fn follower(&self, before: Ref, target: &Target<'_>, level: usize) -> Option<Ref> {
        let node = self.node(before);
        if before != self.head && !self.is_before(node, target) {
            return None;
        }
        let next = node.next_slot(level).load(Ordering::Acquire);
        (next == NULL || self.compare(self.node(next), target) == Order::Greater).then_some(next)
    }

    /// The path of no search.
    pub fn path(&self) -> Path {
        [self.head; MAX_HEIGHT]
    }

    /// The first node at or after `target`, or null. Fills in, for each level, the last node before `target`.
    #[inline]
    pub fn search(&self, target: &Target<'_>, before: &mut Path) -> Ref {
        let levels = self.height.load(Ordering::Relaxed) as usize;
        self.descend(self.head, NULL, target, &mut before[..levels])
    }

    /// As [`SkipList::search`], in fewer steps if `target` is not far from where `before` leads.
    pub fn search_near(&self, target: &Target<'_>, before: &mut Path) -> Ref {
        let is_before = |node: Ref| node == self.head || self.is_before(self.node(node), target);
        for level in 0..NEAR_LEVELS {
            let start = before[level];
            if is_before(start) {
                let next = self.node(start).next_slot(level).load(Ordering::Acquire);
                if next == NULL || !is_before(next) {
                    return self.descend(start, next, target, &mut before[..level]);
                }
            }
        }
        self.search(target, before)
    }

    /// The first node at or after `target`, or null, from the levels of `before` on down, which it fills in. `start` is before
    /// `target`, `bound` null or not before it.
    #[inline]
    fn descend(&self, start: Ref, bound: Ref, target: &Target<'_>, before: &mut [Ref]) -> Ref {
        // A node that is known not to be before the target is not compared again on the levels below.
        let (mut current, mut bound, mut node) = (start, bound, self.node(start));
        for (level, place) in before.iter_mut().enumerate().rev() {
            loop {
                let next = node.next_slot(level).load(Ordering::Acquire);
                if next == bound || next == NULL {
                    bound = next;
                    break;
                }
                let following = self.node(next);
                if !self.is_before(following, target) {
                    bound = next;
                    break;
                }
                (current, node) = (next, following);
            }
            *place = current;
        }
        bound
    }

    /// On `level`, from `current`: (last node before `target`, first not before it).
    #[inline]
    fn advance(&self, mut current: Ref, target: &Target<'_>, level: usize) -> (Ref, Ref) {
        let mut node = self.node(current);
        loop {
            let next = node.next_slot(level).load(Ordering::Acquire);
            if next == NULL {
                return (current, next);
            }
            let following = self.node(next);
            if !self.is_before(following, target) {
                return (current, next);
            }
            (current, node) = (next, following);
        }
    }

    /// Links `node` on `level` between `place` and what follows it, which move on if others insert there meanwhile.
    #[inline]
    fn link(
        &self,
        node: Node<'_>,
        reference: Ref,
        target: &Target<'_>,
        level: usize,
        (place, mut next): (&mut Ref, Ref),
    ) {
        loop {
            // Published by the exchange below.
            node.set_next(level, next);
            let slot = self.node(*place).next_slot(level);
            // Release: pairs with the Acquire of every traversal; publishes the node's bytes.
            if slot.compare_exchange(next, reference, Ordering::Release, Ordering::Relaxed).is_ok() {
                break;
            }
            (*place, next) = self.advance(*place, target, level);
        }
        // Release: pairs with the Acquire in `ascending_place`; publishes the node's bytes.
        self.last_inserted[level].store(reference, Ordering::Release);
    }

    /// Writes a node, linked nowhere.
    fn new_node(&self, target: &Target<'_>, value: &[u8], height: usize) -> Ref {
        let key_len = target.user_key.len() + Trailer::LEN;
        let fixed = NEXT_OFFSET + SLOT * height;
        let spilled = key_len + value.len() > self.arena.largest_allocation() - fixed;
        let payload = if spilled { size_of::<*const u8>() } else { key_len + value.len() };
        let reference = self.arena.allocate(fixed + payload);
        let start = self.arena.pointer(reference);
        let trailer = target.trailer.to_bytes();
        // SAFETY: the allocation holds `fixed + payload` bytes, is 8-byte aligned, and nobody else knows it
        // yet; source and target do not overlap.
        unsafe {
            start.cast::<Header>().write(Header {
                prefix: target.prefix,
                trailer: target.trailer,
                key_len: target.user_key.len() as u32,
                value_len: value.len() as u32,
                info: height as u32 | if spilled { SPILLED } else { 0 },
            });
            let payload = start.add(fixed);
            if spilled {
                let outside = self.arena.spill(&[target.user_key, &trailer, value]);
                payload.cast::<*const u8>().write_unaligned(outside);
            } else {
                let user_key = target.user_key;
                std::ptr::copy_nonoverlapping(user_key.as_ptr(), payload, user_key.len());
                std::ptr::copy_nonoverlapping(trailer.as_ptr(), payload.add(user_key.len()), Trailer::LEN);
                std::ptr::copy_nonoverlapping(value.as_ptr(), payload.add(key_len), value.len());
            }
        }
        reference
    }

    /// The first node at or after `target`, or null.
    pub fn seek(&self, target: &Target<'_>) -> Ref {
        self.search(target, &mut self.path())
    }

    /// The last node before the place that `before` was filled in for, or null.
    pub fn last_before(&self, before: &Path) -> Ref {
        if before[0] == self.head { NULL } else { before[0] }
    }

    /// The first node, or null.
    pub fn first(&self) -> Ref {
        self.node(self.head).next()
    }

    /// The last node, or null.
    pub fn last(&self) -> Ref {
        let mut current = self.head;
        for level in (0..self.height.load(Ordering::Relaxed) as usize).rev() {
            loop {
                let next = self.node(current).next_slot(level).load(Ordering::Acquire);
                if next == NULL {
                    break;
                }
                current = next;
            }
        }
        if current == self.head { NULL } else { current }
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in an arena of {} bytes", self.key(), self.arena.used_bytes())
    }
}

/// A height with one in four nodes reaching each further level.
#[inline]
fn random_height(random: u64) -> usize {
    (1 + random.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
}
