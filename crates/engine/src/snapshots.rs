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

/// A consistent view of the database at one moment. Dropping it lets old versions of keys go.
#[derive(Debug)]
pub struct Snapshot {
    seq: SeqNum,
    taken_seconds: u64,
    list: Arc<SnapshotList>,
}

impl Snapshot {
    /// The last write the snapshot sees.
    pub fn sequence(&self) -> SeqNum {
        self.seq
    }
}

impl Drop for Snapshot {
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
        Snapshot { seq, taken_seconds, list: self.clone() }
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
