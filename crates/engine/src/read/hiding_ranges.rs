//! What range tombstones hide from an iterator.
//!
//! An iterator asks for key after key in order, so the fragment that held the last key is looked at first.
//! Inside a hidden range, sources that cannot hold anything newer than the tombstone jump to its end instead of
//! being read entry by entry.

use super::merging_iter::MergingIter;
use outcrop_base::{Comparator, Fragment, Fragments, SeqNum};
use std::sync::Arc;

/// The range tombstones one iterator must respect.
pub struct HidingRanges {
    sets: Vec<Arc<Fragments>>,
    comparator: Comparator,
    snapshot: SeqNum,
    /// The fragment that hid the last hidden key: set, and its copy.
    last: Option<Fragment>,
}

impl HidingRanges {
    /// Those of `sets` that an iterator at `snapshot` sees.
    pub fn new(sets: Vec<Arc<Fragments>>, comparator: Comparator, snapshot: SeqNum) -> HidingRanges {
        HidingRanges { sets, comparator, snapshot, last: None }
    }

    /// True if the version `seq` of `user_key` is hidden.
    #[inline]
    pub fn hide(&mut self, user_key: &[u8], seq: SeqNum) -> bool {
        !self.sets.is_empty() && self.search(user_key, seq)
    }

    fn search(&mut self, user_key: &[u8], seq: SeqNum) -> bool {
        if let Some(last) = &self.last
            && self.comparator.compare(user_key, &last.begin).is_ge()
            && self.comparator.compare(user_key, &last.end).is_lt()
            && last.newest(self.snapshot) > seq
        {
            return true;
        }
        for set in &self.sets {
            let fragment = set.find(&self.comparator, user_key);
            if let Some(fragment) = fragment.filter(|fragment| fragment.newest(self.snapshot) > seq) {
                self.last = Some(fragment.clone());
                return true;
            }
        }
        false
    }

    /// Moves `merged`, whose entry was just found to be hidden, forward: at least by one entry, and over what the
    /// same tombstone hides.
    pub fn pass_forward(&self, merged: &mut MergingIter) {
        match &self.last {
            Some(hidden) => merged.skip_older(&hidden.end, hidden.newest(self.snapshot)),
            None => merged.next(),
        }
    }
}
