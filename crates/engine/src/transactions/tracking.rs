//! The keys that a transaction has touched, and since when each is known not to have changed.
//!
//! ```text
//! all:          a {seq, reads, writes, exclusive}  b {..}
//! save point 1:                                    b {..}      what was done since, counted again
//! ```
//! Going back to a save point takes back what was counted since; a key of which nothing is left is not tracked any more.
//! Source: RocksDB `utilities/transactions/lock/point/point_lock_tracker.cc`.

use outcrop_base::{CfId, SeqNum};
use std::collections::BTreeMap;

/// A key of a column family.
pub type TrackedKey = (CfId, Vec<u8>);

/// All that is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The lowest sequence number since which the key is known not to have changed.
    pub seq: SeqNum,
    /// Times it was read for an update.
    pub reads: u32,
    /// Times it was written.
    pub writes: u32,
    /// It is held alone.
    pub exclusive: bool,
}

/// How a key is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read to be updated.
    Read,
    /// It is written.
    Write,
}

/// All keys, and those touched since each save point.
#[derive(Debug, Default)]
pub struct Tracker {
    all: BTreeMap<TrackedKey, Tracked>,
    layers: Vec<BTreeMap<TrackedKey, Tracked>>,
}

fn add(keys: &mut BTreeMap<TrackedKey, Tracked>, key: TrackedKey, more: Tracked) {
    keys.entry(key)
        .and_modify(|known| {
            known.seq = known.seq.min(more.seq);
            known.reads += more.reads;
            known.writes += more.writes;
            known.exclusive |= more.exclusive;
        })
        .or_insert(more);
}

impl Tracker {
    /// All that is known of `key`.
    pub fn get(&self, cf: CfId, key: &[u8]) -> Option<Tracked> {
        // Few keys: the copy costs less than a map that can be asked without one.
        self.all.get(&(cf, key.to_vec())).copied()
    }

    /// Counts an access.
    pub fn track(&mut self, cf: CfId, key: &[u8], seq: SeqNum, access: Access, exclusive: bool) {
        let (reads, writes) = if access == Access::Read { (1, 0) } else { (0, 1) };
        let more = Tracked { seq, reads, writes, exclusive };
        if let Some(layer) = self.layers.last_mut() {
            add(layer, (cf, key.to_vec()), more);
        }
        add(&mut self.all, (cf, key.to_vec()), more);
    }

    /// Takes back one read that was counted since the last save point, if there is one; true if nothing is left of the key.
    pub fn untrack_read(&mut self, cf: CfId, key: &[u8]) -> bool {
        let key = (cf, key.to_vec());
        /// `None` if no read was counted; else whether nothing is left.
        fn take(keys: &mut BTreeMap<TrackedKey, Tracked>, key: &TrackedKey) -> Option<bool> {
            let known = keys.get_mut(key)?;
            known.reads = known.reads.checked_sub(1)?;
            let gone = known.reads == 0 && known.writes == 0;
            if gone {
                keys.remove(key);
            }
            Some(gone)
        }
        if let Some(layer) = self.layers.last_mut()
            && take(layer, &key).is_none()
        {
            return false;
        }
        take(&mut self.all, &key).unwrap_or(false)
    }

    /// Later accesses are counted apart.
    pub fn set_save_point(&mut self) {
        self.layers.push(BTreeMap::new());
    }

    /// Takes back what was counted since the last save point; gives the keys of which nothing is left.
    pub fn rollback_to_save_point(&mut self) -> Vec<TrackedKey> {
        let mut gone = Vec::new();
        for (key, since) in self.layers.pop().unwrap_or_default() {
            let Some(known) = self.all.get_mut(&key) else { continue };
            known.reads -= since.reads;
            known.writes -= since.writes;
            if known.reads == 0 && known.writes == 0 {
                self.all.remove(&key);
                gone.push(key);
            }
        }
        gone
    }

    /// Accesses that were counted since the last save point belong to the one before.
    pub fn pop_save_point(&mut self) {
        let top = self.layers.pop().unwrap_or_default();
        if let Some(below) = self.layers.last_mut() {
            top.into_iter().for_each(|(key, more)| add(below, key, more));
        }
    }

    /// Forgets all; gives the keys there were.
    pub fn clear(&mut self) -> impl Iterator<Item = TrackedKey> + use<> {
        self.layers.clear();
        std::mem::take(&mut self.all).into_keys()
    }

    /// The keys, by column family, with what is known of them.
    pub fn iter(&self) -> impl Iterator<Item = (&TrackedKey, &Tracked)> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_before_a_save_point_stays() {
        let mut tracker = Tracker::default();
        tracker.track(CfId(0), b"a", SeqNum(5), Access::Write, true);
        tracker.set_save_point();
        tracker.track(CfId(0), b"a", SeqNum(3), Access::Read, false);
        tracker.track(CfId(0), b"b", SeqNum(6), Access::Read, false);
        let known = tracker.get(CfId(0), b"a").unwrap();
        assert_eq!(known, Tracked { seq: SeqNum(3), reads: 1, writes: 1, exclusive: true });
        assert_eq!(tracker.rollback_to_save_point(), [(CfId(0), b"b".to_vec())]);
        assert_eq!(tracker.get(CfId(0), b"a").unwrap().reads, 0);
        assert_eq!((tracker.len(), tracker.get(CfId(1), b"a")), (1, None));
    }

    #[test]
    fn a_popped_save_point_leaves_its_keys_to_the_one_below() {
        let mut tracker = Tracker::default();
        tracker.set_save_point();
        tracker.set_save_point();
        tracker.track(CfId(0), b"a", SeqNum(1), Access::Read, true);
        tracker.pop_save_point();
        assert_eq!(tracker.rollback_to_save_point().len(), 1);
    }

    #[test]
    fn a_read_is_taken_back_only_where_it_was_counted() {
        let mut tracker = Tracker::default();
        tracker.track(CfId(0), b"a", SeqNum(1), Access::Read, true);
        tracker.set_save_point();
        assert!(!tracker.untrack_read(CfId(0), b"a"), "it was read before the save point");
        tracker.track(CfId(0), b"a", SeqNum(1), Access::Read, true);
        assert!(!tracker.untrack_read(CfId(0), b"a"), "one read is left");
        tracker.pop_save_point();
        tracker.set_save_point();
        tracker.track(CfId(0), b"a", SeqNum(1), Access::Write, true);
        assert!(!tracker.untrack_read(CfId(0), b"a"), "the read is from before the save point");
        assert_eq!(tracker.get(CfId(0), b"a").unwrap().reads, 1);
        assert!(tracker.rollback_to_save_point().is_empty(), "it was read before");
        tracker.track(CfId(0), b"b", SeqNum(1), Access::Write, true);
        tracker.track(CfId(0), b"b", SeqNum(1), Access::Read, true);
        assert!(!tracker.untrack_read(CfId(0), b"b"), "it was written");
        assert!(tracker.untrack_read(CfId(0), b"a"));
    }
}
