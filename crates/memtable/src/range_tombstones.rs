//! The range tombstones of a memtable.
//!
//! ```text
//! 11 tombstones inserted:   [ fragments of 8 ]  [ of 2 ]  [ of 1 ]      the newest run last
//! the next two:             [ fragments of 8 ]  [ of 4 ]  ...
//! ```
//! They lie in runs, each of which holds its tombstones as fragments. An insert adds a run of one, and merges the last runs
//! while they are no larger, so that a tombstone is merged as often as the memtable's number of them doubles, and a lookup
//! makes as many binary searches at most.
//!
//! Concurrency: a memtable without range tombstones costs a reader one load of a word that is never written. With some, a
//! reader borrows the runs as they are published, without a lock: runs are immutable. Inserts take turns.

use crate::sync::{AtomicUsize, Mutex, Ordering, Published};
use outcrop_base::{Comparator, Fragments, RangeTombstone, SeqNum};
use std::sync::Arc;

/// Bytes that each tombstone takes besides its keys, about.
const OVERHEAD: usize = 128;

/// [`RangeTombstones::left`] without a limit.
const NO_LIMIT: usize = usize::MAX;

/// See the module documentation.
pub struct RangeTombstones {
    /// Bytes of all tombstones, about; 0 if there are none.
    bytes: AtomicUsize,
    runs: Published<Vec<Run>>,
    /// How many may still come before the memtable is to be sealed; 0: there are enough, [`NO_LIMIT`]: however many.
    left: AtomicUsize,
    /// Held by who inserts.
    turn: Mutex<()>,
}

#[derive(Clone)]
struct Run {
    fragments: Arc<Fragments>,
    /// How many were inserted into it.
    tombstones: usize,
}

impl RangeTombstones {
    /// None yet; after `most` of them there are enough. 0: however many.
    pub fn new(most: u32) -> RangeTombstones {
        RangeTombstones {
            bytes: AtomicUsize::new(0),
            runs: Published::default(),
            left: AtomicUsize::new(if most == 0 { NO_LIMIT } else { most as usize }),
            turn: Mutex::default(),
        }
    }

    /// True if there are as many as there may be.
    #[inline]
    pub fn are_enough(&self) -> bool {
        // Relaxed: a number that orders nothing.
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Adds one. A lookup that starts after the call returned finds it.
    pub fn insert(&self, tombstone: &RangeTombstone, comparator: &Comparator) {
        let bytes = OVERHEAD + tombstone.begin.len() + tombstone.end.len();
        let turn = self.turn.lock();
        let mut runs = Vec::clone(&self.runs.load());
        let mut new = Run { fragments: Arc::new(Fragments::one(tombstone, comparator)), tombstones: 1 };
        while let Some(last) = runs.pop_if(|last| last.tombstones <= new.tombstones) {
            new.fragments = Arc::new(last.fragments.merged(&new.fragments, comparator));
            new.tombstones += last.tombstones;
        }
        runs.push(new);
        self.runs.publish(runs);
        // Relaxed: changed by who has the turn alone.
        let left = self.left.load(Ordering::Relaxed);
        if left != NO_LIMIT {
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        }
        drop(turn);
        // Release: pairs with the Acquire in `is_empty`: a reader that sees the bytes finds the runs.
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// True if there are none.
    #[inline]
    fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release in `insert`.
        self.bytes.load(Ordering::Acquire) == 0
    }

    /// Sequence number of the newest tombstone at or below `at_most` over `user_key`; zero if there is none.
    #[inline]
    pub fn covering(&self, comparator: &Comparator, user_key: &[u8], at_most: SeqNum) -> SeqNum {
        if self.is_empty() { SeqNum::ZERO } else { self.search(comparator, user_key, at_most) }
    }

    #[cold]
    fn search(&self, comparator: &Comparator, user_key: &[u8], at_most: SeqNum) -> SeqNum {
        let over = |run: &Run| run.fragments.covering(comparator, user_key, at_most);
        self.runs.load().iter().map(over).max().unwrap_or(SeqNum::ZERO)
    }

    /// The fragments of all, in sets that may overlap each other: as many as their number has doublings, at most.
    #[inline]
    pub fn sets(&self) -> Vec<Arc<Fragments>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.runs.load().iter().map(|run| run.fragments.clone()).collect()
    }

    /// How many were inserted.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.runs.load().iter().map(|run| run.tombstones).sum() }
    }

    /// Bytes of all tombstones, about.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use outcrop_base::UserComparator;
    use std::sync::atomic::AtomicU64;

    /// Bytewise, and counts.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl UserComparator for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            self.0.fetch_add(1, Ordering::Relaxed);
            a.cmp(b)
        }
    }

    fn tombstone(begin: u64, len: u64, seq: u64) -> RangeTombstone {
        let (begin, end) = (begin.to_be_bytes().to_vec(), (begin + len).to_be_bytes().to_vec());
        RangeTombstone { begin, end, seq: SeqNum(seq) }
    }

    /// Comparisons that one insert with a lookup after it takes at the end of `count` of them, on the average of many.
    fn comparisons(count: u64, begin: impl Fn(u64) -> u64) -> u64 {
        let counter = Arc::new(Counting::default());
        let order = Comparator::User(counter.clone());
        let set = RangeTombstones::new(0);
        let mut before = 0;
        for seq in 1..=count {
            if seq == count / 2 + 1 {
                before = counter.0.load(Ordering::Relaxed);
            }
            let new = tombstone(begin(seq), 5, seq);
            set.insert(&new, &order);
            assert_eq!(set.covering(&order, &new.begin, SeqNum::MAX), SeqNum(seq));
        }
        (counter.0.load(Ordering::Relaxed) - before) / (count / 2)
    }

    #[test]
    fn an_insert_and_a_lookup_cost_little_however_many_there_are() {
        let counts: [u64; 3] = if cfg!(miri) { [32, 64, 128] } else { [500, 4_000, 32_000] };
        for begin in [(|n| n * 10) as fn(u64) -> u64, |n| u64::MAX / 4 - n * 10, |n| n * 7919 % 65_537 * 10] {
            for count in counts {
                let doublings = u64::from(u64::BITS - count.leading_zeros());
                let made = comparisons(count, begin);
                // Merging: four at each doubling at most. A lookup: a binary search in each of half the runs.
                let most = 4 * doublings + doublings * doublings / 2;
                assert!(made <= most, "{made} comparisons at {count} tombstones, {most} are thought right");
            }
        }
    }

    #[test]
    fn lookups_answer_like_a_list_while_others_insert() {
        let order = Comparator::Bytewise;
        let (set, last) = (RangeTombstones::new(0), if cfg!(miri) { 12 } else { 600 });
        let made = |seq: u64| tombstone(seq * 37 % 50, 1 + seq % 9, seq);
        let published = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seq in 1..=last {
                    set.insert(&made(seq), &order);
                    published.store(seq, Ordering::Release);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut snapshot = 0;
                    while snapshot < last {
                        snapshot = published.load(Ordering::Acquire);
                        for key in 0..60u64 {
                            let key = key.to_be_bytes();
                            let over = |t: &RangeTombstone| t.begin[..] <= key[..] && key[..] < t.end[..];
                            let newest = (1..=snapshot).rev().find(|seq| over(&made(*seq))).unwrap_or(0);
                            let found = set.covering(&order, &key, SeqNum(snapshot));
                            assert_eq!(found, SeqNum(newest), "{key:?} at {snapshot}");
                        }
                    }
                });
            }
        });
        let all = Fragments::union(set.sets().iter().map(|set| &**set), &order);
        assert_eq!(all, Fragments::new(&(1..=last).map(made).collect::<Vec<_>>(), &order));
    }
}
