//! Snapshots: sequence numbers that flush and compaction must keep readable.

use outcrop_base::SeqNum;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The live snapshots of a database: how many hold each sequence number.
#[derive(Debug, Default)]
pub struct SnapshotList {
    live: Mutex<BTreeMap<SeqNum, usize>>,
}

/// A consistent view of the database at one moment. Dropping it lets old versions of keys go.
#[derive(Debug)]
pub struct Snapshot {
    seq: SeqNum,
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
            *holders -= 1;
            if *holders == 0 {
                live.remove(&self.seq);
            }
        }
    }
}

impl SnapshotList {
    /// Takes a snapshot of what `visible` says, read while no job can be collecting the list.
    pub fn take(self: &Arc<Self>, visible: impl FnOnce() -> SeqNum) -> Snapshot {
        let mut live = self.live.lock();
        let seq = visible();
        *live.entry(seq).or_insert(0) += 1;
        Snapshot { seq, list: self.clone() }
    }

    /// The sequence numbers held, ascending, without repeats.
    pub fn sequences(&self) -> Vec<SeqNum> {
        self.live.lock().keys().copied().collect()
    }

    /// Number of live snapshots.
    pub fn count(&self) -> usize {
        self.live.lock().values().sum()
    }

    /// The oldest sequence number held.
    pub fn oldest(&self) -> Option<SeqNum> {
        self.live.lock().keys().next().copied()
    }
}
