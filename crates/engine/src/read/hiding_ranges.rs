//! The rows that range tombstones hide from an iterator.
//!
//! ```text
//! memtable, a run     ----[####)-----------[##)------        a layer each: sets of fragments that do not overlap
//! L0, a table         -----------[#########)---------
//! L1, all tables      -[##)[###)-------------------[#)
//!                          '--' known: keys of which the same can be said
//! ```
//! Nothing is put together when an iterator is made: it keeps the fragments as memtables and tables have them. An
//! iterator asks for key after key in order, so what was found out around the last key mostly holds for the next: that
//! takes two comparisons. Where it does not, only the layers are searched of which it does not.
//!
//! Inside a hidden range, sources that cannot hold anything newer than the tombstone jump to its end instead of being
//! read entry by entry.

use super::layer::Layer;
use super::merging_iter::MergingIter;
use crate::column_family::ColumnFamily;
use crate::superversion::SuperVersion;
use crate::table_cache::TableCache;
use outcrop_base::{Bound, Comparator, Result, SeqNum};

/// Keys of which the same can be said: from `begin` to before `end`, each `None` unbounded.
#[derive(Clone, Debug)]
struct Known {
    begin: Option<Bound>,
    end: Option<Bound>,
    /// The newest tombstone that the snapshot sees over them; zero if there is none.
    newest: SeqNum,
}

impl Known {
    #[inline]
    fn holds(&self, comparator: &Comparator, user_key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| comparator.compare(user_key, end).is_lt())
            && self.begin.as_ref().is_none_or(|begin| comparator.compare(begin, user_key).is_le())
    }
}

/// The range tombstones one iterator must respect.
pub struct HidingRanges {
    /// Each with what is known of it around the key it was asked for last.
    layers: Vec<(Layer, Option<Known>)>,
    comparator: Comparator,
    snapshot: SeqNum,
    /// The answer of all layers together around the last key.
    known: Option<Known>,
}

impl HidingRanges {
    /// Those of `layers` that an iterator at `snapshot` sees.
    pub fn new(layers: Vec<Layer>, comparator: Comparator, snapshot: SeqNum) -> HidingRanges {
        let layers = layers.into_iter().map(|layer| (layer, None)).collect();
        HidingRanges { layers, comparator, snapshot, known: None }
    }

    /// True if the version `seq` of `user_key` is hidden.
    #[inline]
    pub fn hide(&mut self, user_key: &[u8], seq: SeqNum) -> bool {
        !self.layers.is_empty() && self.newest_over(user_key) > seq
    }

    /// Apart, so that iterators without range tombstones stay small where they call this.
    #[inline(never)]
    fn newest_over(&mut self, user_key: &[u8]) -> SeqNum {
        match &self.known {
            Some(known) if known.holds(&self.comparator, user_key) => known.newest,
            _ => self.search(user_key),
        }
    }

    fn search(&mut self, user_key: &[u8]) -> SeqNum {
        let comparator = &self.comparator;
        let mut all = Known { begin: None, end: None, newest: SeqNum::ZERO };
        for (layer, known) in &mut self.layers {
            if known.as_ref().is_none_or(|known| !known.holds(comparator, user_key)) {
                let span = layer.span(comparator, user_key);
                let newest = span.fragment.map_or(SeqNum::ZERO, |fragment| fragment.newest(self.snapshot));
                *known = Some(Known { begin: span.begin.cloned(), end: span.end.cloned(), newest });
            }
            let Some(known) = known else { continue };
            all.newest = all.newest.max(known.newest);
            if let Some(begin) = &known.begin
                && all.begin.as_ref().is_none_or(|other| comparator.compare(other, begin).is_lt())
            {
                all.begin = Some(begin.clone());
            }
            if let Some(end) = &known.end
                && all.end.as_ref().is_none_or(|other| comparator.compare(end, other).is_lt())
            {
                all.end = Some(end.clone());
            }
        }
        let newest = all.newest;
        self.known = Some(all);
        newest
    }

    /// Moves `merged`, whose entry was just found to be hidden, forward: at least by one entry, and over what the
    /// same tombstone hides.
    pub fn pass_forward(&self, merged: &mut MergingIter) {
        let newest = self.known.as_ref().map_or(SeqNum::ZERO, |known| known.newest);
        // The tombstone may reach further than what all layers together say.
        let hiding = self.layers.iter().filter_map(|(_, known)| known.as_ref());
        let end = hiding.filter(|known| known.newest == newest).find_map(|known| known.end.as_ref());
        match end {
            Some(end) if newest != SeqNum::ZERO => merged.skip_older(end, newest),
            _ => merged.next(),
        }
    }
}

/// All range tombstones of `view`, as memtables and tables have them.
///
/// # Errors
/// Those of opening a table for the first time.
pub fn layers_of(view: &SuperVersion, tables: &TableCache, cf: &ColumnFamily) -> Result<Vec<Layer>> {
    let fixed = view.fixed_tombstones(|| list_fixed(view, tables, cf))?;
    let active = view.memtable.range_tombstones().into_iter().map(Layer::One);
    Ok(active.chain(fixed.iter().cloned()).collect())
}

/// Those of everything but the active memtable.
fn list_fixed(view: &SuperVersion, tables: &TableCache, cf: &ColumnFamily) -> Result<Vec<Layer>> {
    let sealed = view.sealed.iter().flat_map(|memtable| memtable.range_tombstones());
    let mut layers: Vec<Layer> = sealed.map(Layer::One).collect();
    for (number, level) in view.version.levels.iter().enumerate() {
        let mut sets = Vec::new();
        for file in level.files.iter() {
            sets.extend(tables.range_tombstones(cf, file)?.cloned());
        }
        match number {
            // Its tables overlap.
            0 => layers.extend(sets.into_iter().map(Layer::One)),
            _ if sets.is_empty() => {}
            _ => layers.push(Layer::Level(sets.into())),
        }
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::Fragments;
    use outcrop_base::{RangeTombstone, UserComparator};
    use std::cmp::Ordering;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Bytewise, and counts.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl UserComparator for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            self.0.fetch_add(1, Relaxed);
            a.cmp(b)
        }
    }

    fn key(number: u64) -> [u8; 8] {
        number.to_be_bytes()
    }

    fn tombstone(begin: u64, end: u64, seq: u64) -> RangeTombstone {
        RangeTombstone { begin: key(begin).to_vec(), end: key(end).to_vec(), seq: SeqNum(seq) }
    }

    fn set(tombstones: &[RangeTombstone]) -> Arc<Fragments> {
        Arc::new(Fragments::new(tombstones, &Comparator::Bytewise))
    }

    #[test]
    fn layers_answer_like_all_tombstones_together_in_any_order_of_keys() {
        let mut seed = 88_172_645_463_325_252u64;
        let mut next = |bound: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % bound
        };
        for _ in 0..200 {
            let (mut all, mut layers) = (Vec::new(), Vec::new());
            for _ in 0..next(5) {
                // A level: tables apart, with gaps and without.
                let (mut sets, mut at) = (Vec::new(), next(8));
                while at < 40 {
                    let end = at + 1 + next(10);
                    let within: Vec<_> =
                        (0..1 + next(3)).map(|_| tombstone(at + next(end - at), end, 1 + next(20))).collect();
                    sets.push(set(&within));
                    all.extend(within);
                    at = end + next(3);
                }
                layers.push(match next(2) {
                    0 => Layer::Level(sets.into()),
                    _ => {
                        let sets: Vec<&Fragments> = sets.iter().map(|set| &**set).collect();
                        Layer::One(Arc::new(Fragments::union(sets, &Comparator::Bytewise)))
                    }
                });
            }
            let snapshot = SeqNum(next(22));
            let mut ranges = HidingRanges::new(layers, Comparator::Bytewise, snapshot);
            let (mut at, mut step) = (next(45), 1);
            for _ in 0..200 {
                let sought = key(at);
                let over = |t: &&RangeTombstone| {
                    t.begin[..] <= sought[..] && sought[..] < t.end[..] && t.seq <= snapshot
                };
                let newest = all.iter().filter(over).map(|t| t.seq).max().unwrap_or(SeqNum::ZERO);
                for seq in 0..22 {
                    assert_eq!(
                        ranges.hide(&key(at), SeqNum(seq)),
                        newest > SeqNum(seq),
                        "{all:?} {at} {seq}"
                    );
                }
                match next(12) {
                    0 => at = next(45),
                    1 => step = 46 - step,
                    _ => at = (at + step) % 46,
                }
            }
        }
    }

    #[test]
    fn what_is_known_of_a_key_answers_for_its_neighbours() {
        let counter = Arc::new(Counting::default());
        let tombstones: Vec<_> = (0..20_000).map(|n| tombstone(n * 100, n * 100 + 50, 1 + n)).collect();
        let layers = tombstones.chunks(2_000).map(|some| Layer::One(set(some))).collect();
        let mut ranges = HidingRanges::new(layers, Comparator::User(counter.clone()), SeqNum::MAX);
        for n in 0..2_000_000 {
            assert_eq!(ranges.hide(&key(n), SeqNum::ZERO), n % 100 < 50);
        }
        // Two for most keys; at 40,000 ends ten layers are asked, of which one is searched.
        let made = counter.0.load(Relaxed);
        assert!(made < 2_000_000 * 2 + 40_000 * 60, "{made} comparisons");
    }
}
