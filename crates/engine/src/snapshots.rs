//! Snapshots: sequence numbers that flush and compaction must keep readable.

use outcrop_base::{Error, Result, SeqNum};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The live snapshots of a database: when each was taken, by the sequence number it holds.
#[derive(Debug, Default)]
pub struct SnapshotList {
    live: Mutex<Live>,
    /// None is held off any more.
    allowed: Condvar,
}

/// While it lives, no snapshot is taken.
#[derive(Debug)]
pub struct HeldOff<'l> {
    list: &'l SnapshotList,
}

impl Drop for HeldOff<'_> {
    fn drop(&mut self) {
        self.list.live.lock().held_off -= 1;
        self.list.allowed.notify_all();
    }
}

#[derive(Debug, Default)]
struct Live {
    taken: BTreeMap<SeqNum, Vec<u64>>,
    /// Of them, how many are boundaries of conflicts.
    boundaries: BTreeMap<SeqNum, usize>,
    /// How many want that none is taken.
    held_off: usize,
}

/// The snapshots that flushes and compactions have to keep.
#[derive(Clone, Debug, Default)]
pub struct LiveSnapshots {
    /// The sequence numbers held, ascending, without repeats.
    pub sequences: Vec<SeqNum>,
    /// The oldest that somebody compares the newest version of a key with: writes after it leave a trace.
    pub conflict_boundary: Option<SeqNum>,
}

/// A consistent view of the database at one moment: reads with it in [`crate::ReadOptions`] see the writes before that, and none
/// after. It keeps the versions of keys that it sees, so space is not freed while it lives; dropping it and all its clones frees
/// them. Cloning costs one reference count.
///
/// A read at a moment that is held no more is impossible: options own their snapshot, and nothing else names a moment.
///
/// ```
/// # use outcrop::{Db, Env, ReadOptions};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// let before = db.snapshot();
/// db.put("apple", "green")?;
/// assert_eq!(db.get_with("apple", &ReadOptions::at(&before))?.as_deref(), Some(&b"red"[..]));
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"green"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    held: Arc<Held>,
}

/// Finds a [`Snapshot`] as long as somebody else holds it, and keeps nothing: for callers that hand out names of snapshots which others
/// own, such as those of transactions.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let snapshot = db.snapshot();
/// let name = snapshot.downgrade();
/// assert_eq!(name.upgrade().map(|found| found.sequence()), Some(snapshot.sequence()));
/// drop(snapshot);
/// assert!(name.upgrade().is_none());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakSnapshot {
    held: Weak<Held>,
}

impl WeakSnapshot {
    /// The snapshot; `None` once the last clone of it was dropped.
    pub fn upgrade(&self) -> Option<Snapshot> {
        self.held.upgrade().map(|held| Snapshot { held })
    }

    /// Whether it is a name of `snapshot`, and not of another at the same moment.
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        std::ptr::eq(self.held.as_ptr(), Arc::as_ptr(&snapshot.held))
    }
}

/// A number in the list, until this is dropped or released.
#[derive(Debug)]
struct Held {
    seq: SeqNum,
    taken_seconds: u64,
    is_boundary: bool,
    released: AtomicBool,
    list: Arc<SnapshotList>,
}

impl Snapshot {
    /// The last write the snapshot sees.
    pub fn sequence(&self) -> SeqNum {
        self.held.seq
    }

    /// A name for the snapshot that does not keep it.
    pub fn downgrade(&self) -> WeakSnapshot {
        WeakSnapshot { held: Arc::downgrade(&self.held) }
    }

    /// Ends the snapshot for all its clones: for callers that cannot know where these are, such as the C API. Iterators that read at
    /// it go on. Rust code drops it instead.
    ///
    /// A read at one of the clones that begins afterwards fails with InvalidArgument.
    pub fn release(self) {
        self.held.release();
    }

    /// The number to read at, in a view that was taken before this is asked.
    ///
    /// # Errors
    /// InvalidArgument if it was released, or is not of the database whose snapshots `list` has.
    #[inline(never)]
    pub(crate) fn readable(&self, list: &Arc<SnapshotList>) -> Result<SeqNum> {
        if !Arc::ptr_eq(&self.held.list, list) {
            return Err(Error::invalid_argument("the snapshot is of another database"));
        }
        // Acquire: pairs with the AcqRel in release(); if it is not set, the view was taken while the number was in the list.
        if self.held.released.load(Ordering::Acquire) {
            return Err(Error::invalid_argument("the snapshot was released"));
        }
        Ok(self.held.seq)
    }
}

impl Held {
    /// Takes the number out of the list, once.
    fn release(&self) {
        // AcqRel: pairs with the Acquire in readable(), and of two that release one does it.
        if self.released.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut live = self.list.live.lock();
        let Live { taken: live, boundaries, .. } = &mut *live;
        if self.is_boundary
            && let Some(count) = boundaries.get_mut(&self.seq)
        {
            *count -= 1;
            if *count == 0 {
                boundaries.remove(&self.seq);
            }
        }
        if let Some(holders) = live.get_mut(&self.seq) {
            if let Some(position) = holders.iter().position(|taken| *taken == self.taken_seconds) {
                holders.remove(position);
            }
            if holders.is_empty() {
                live.remove(&self.seq);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

impl SnapshotList {
    /// Takes a snapshot of what `visible` says, read while no job can be collecting the list. `taken_seconds`: now, since the
    /// epoch.
    pub fn take(self: &Arc<Self>, taken_seconds: u64, visible: impl FnOnce() -> SeqNum) -> Snapshot {
        self.take_as(false, taken_seconds, visible)
    }

    /// The same for a transaction, which compares the newest version of keys with it.
    ///
    /// Source: RocksDB `DBImpl::GetSnapshotForWriteConflictBoundary`.
    pub fn take_boundary(self: &Arc<Self>, taken_seconds: u64, visible: impl FnOnce() -> SeqNum) -> Snapshot {
        self.take_as(true, taken_seconds, visible)
    }

    fn take_as(
        self: &Arc<Self>,
        is_boundary: bool,
        taken_seconds: u64,
        visible: impl FnOnce() -> SeqNum,
    ) -> Snapshot {
        let mut live = self.live.lock();
        while live.held_off > 0 {
            self.allowed.wait(&mut live);
        }
        let seq = visible();
        live.taken.entry(seq).or_default().push(taken_seconds);
        if is_boundary {
            *live.boundaries.entry(seq).or_default() += 1;
        }
        drop(live);
        let released = AtomicBool::new(false);
        Snapshot { held: Arc::new(Held { seq, taken_seconds, is_boundary, released, list: self.clone() }) }
    }

    /// The sequence numbers held, ascending, without repeats.
    #[cfg(test)]
    pub fn sequences(&self) -> Vec<SeqNum> {
        self.live().sequences
    }

    /// The snapshots that flushes and compactions that start now have to keep.
    pub fn live(&self) -> LiveSnapshots {
        let live = self.live.lock();
        LiveSnapshots {
            sequences: live.taken.keys().copied().collect(),
            conflict_boundary: live.boundaries.keys().next().copied(),
        }
    }

    /// Has every snapshot wait that would be taken now; `None`: there is one already. For what becomes visible without a number of its own, to
    /// snapshots as well.
    pub fn hold_off(&self) -> Option<HeldOff<'_>> {
        let mut live = self.live.lock();
        if !live.taken.is_empty() {
            return None;
        }
        live.held_off += 1;
        Some(HeldOff { list: self })
    }

    /// Number of live snapshots.
    pub fn count(&self) -> usize {
        self.live.lock().taken.values().map(Vec::len).sum()
    }

    /// The oldest sequence number held.
    pub fn oldest(&self) -> Option<SeqNum> {
        self.live.lock().taken.keys().next().copied()
    }

    /// When the oldest was taken, in seconds since the epoch.
    pub fn oldest_seconds(&self) -> Option<u64> {
        self.live.lock().taken.values().next().and_then(|taken| taken.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(list: &Arc<SnapshotList>, seq: u64, seconds: u64) -> Snapshot {
        list.take(seconds, || SeqNum(seq))
    }

    #[test]
    fn the_same_number_is_held_until_its_last_snapshot_goes() {
        let list = Arc::new(SnapshotList::default());
        let (first, second) = (take(&list, 5, 10), take(&list, 5, 11));
        assert_eq!((list.sequences(), list.count()), (vec![SeqNum(5)], 2));
        drop(first);
        assert_eq!((list.sequences(), list.count()), (vec![SeqNum(5)], 1));
        assert_eq!(list.oldest_seconds(), Some(11));
        drop(second);
        assert_eq!((list.oldest(), list.oldest_seconds(), list.count()), (None, None, 0));
    }

    #[test]
    fn numbers_ascend_whatever_the_order_of_their_snapshots() {
        let list = Arc::new(SnapshotList::default());
        let held: Vec<Snapshot> = [7, 3, 9].into_iter().map(|seq| take(&list, seq, 100 + seq)).collect();
        assert_eq!(list.sequences(), [SeqNum(3), SeqNum(7), SeqNum(9)]);
        assert_eq!((list.oldest(), list.oldest_seconds()), (Some(SeqNum(3)), Some(103)));
        drop(held);
        assert!(list.sequences().is_empty());
    }

    #[test]
    fn a_clone_holds_the_number_too() {
        let list = Arc::new(SnapshotList::default());
        let snapshot = take(&list, 5, 0);
        let clone = snapshot.clone();
        drop(snapshot);
        assert_eq!((clone.sequence(), list.sequences(), list.count()), (SeqNum(5), vec![SeqNum(5)], 1));
        drop(clone);
        assert!(list.sequences().is_empty());
    }

    #[test]
    fn a_release_ends_all_clones_and_frees_the_number_once() {
        let list = Arc::new(SnapshotList::default());
        let (other, clone) = (take(&list, 5, 0), take(&list, 5, 0));
        let held = clone.clone();
        clone.release();
        assert_eq!((list.sequences(), list.count()), (vec![SeqNum(5)], 1));
        assert!(held.readable(&list).unwrap_err().to_string().contains("released"));
        drop(held);
        assert_eq!((other.readable(&list).unwrap(), list.count()), (SeqNum(5), 1));
    }

    #[test]
    fn a_snapshot_is_of_one_database() {
        let (list, other) = (Arc::new(SnapshotList::default()), Arc::new(SnapshotList::default()));
        assert!(take(&list, 5, 0).readable(&other).unwrap_err().to_string().contains("another database"));
    }
}
