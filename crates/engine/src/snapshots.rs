//! Snapshots: sequence numbers that flush and compaction must keep readable.

use outcrop_base::SeqNum;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The live snapshots of a database: when each was taken, by the sequence number it holds.
#[derive(Debug, Default)]
pub struct SnapshotList {
    live: Mutex<BTreeMap<SeqNum, Vec<u64>>>,
}

/// A consistent view of the database at one moment. Dropping it and all its clones lets old versions of keys go.
#[derive(Clone, Debug)]
pub struct Snapshot {
    held: Arc<Held>,
}

/// A number in the list, for as long as this lives.
#[derive(Debug)]
struct Held {
    seq: SeqNum,
    taken_seconds: u64,
    list: Arc<SnapshotList>,
}

impl Snapshot {
    /// The last write the snapshot sees.
    pub fn sequence(&self) -> SeqNum {
        self.held.seq
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut live = self.list.live.lock();
        if let Some(holders) = live.get_mut(&self.seq) {
            if let Some(place) = holders.iter().position(|taken| *taken == self.taken_seconds) {
                holders.remove(place);
            }
            if holders.is_empty() {
                live.remove(&self.seq);
            }
        }
    }
}

impl SnapshotList {
    /// Takes a snapshot of what `visible` says, read while no job can be collecting the list. `taken_seconds`: now, since the
    /// epoch.
    pub fn take(self: &Arc<Self>, taken_seconds: u64, visible: impl FnOnce() -> SeqNum) -> Snapshot {
        let mut live = self.live.lock();
        let seq = visible();
        live.entry(seq).or_default().push(taken_seconds);
        drop(live);
        Snapshot { held: Arc::new(Held { seq, taken_seconds, list: self.clone() }) }
    }

    /// The sequence numbers held, ascending, without repeats.
    pub fn sequences(&self) -> Vec<SeqNum> {
        self.live.lock().keys().copied().collect()
    }

    /// Number of live snapshots.
    pub fn count(&self) -> usize {
        self.live.lock().values().map(Vec::len).sum()
    }

    /// The oldest sequence number held.
    pub fn oldest(&self) -> Option<SeqNum> {
        self.live.lock().keys().next().copied()
    }

    /// When the oldest was taken, in seconds since the epoch.
    pub fn oldest_seconds(&self) -> Option<u64> {
        self.live.lock().values().next().and_then(|taken| taken.first().copied())
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
}
