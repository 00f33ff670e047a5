//! Range tombstones: one entry that hides a whole range of keys.
//!
//! ```text
//! written:    [a ........ m)@7                      fragments:  [a .. f) 7
//!                   [f ........... z)@9                         [f .. m) 9 7
//!                                                               [m .. z) 9
//! ```
//! Tombstones as written overlap in any way. [`Fragments`] are the same cut at each other's ends: disjoint and
//! sorted, each with the sequence numbers of all tombstones over it, so that one binary search answers what hides
//! a key.
//!
//! A tombstone hides a key with a smaller sequence number. In a table it acts only within the table's boundaries:
//! [`RangeTombstone::clipped`].
//! Source: RocksDB `db/range_tombstone_fragmenter.cc`, `db/range_del_aggregator.h`.

use crate::keys::{ParsedKey, internal_key, pack, split};
use crate::{Comparator, SeqNum, ValueType};
use std::cmp::Ordering;

/// Hides every key in `begin..end` with a smaller sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key.
    pub begin: Vec<u8>,
    /// The user key behind the last.
    pub end: Vec<u8>,
    /// When it was written.
    pub seq: SeqNum,
}

impl RangeTombstone {
    /// The internal key of its begin.
    pub fn start_key(&self) -> Vec<u8> {
        internal_key(&self.begin, self.seq, ValueType::RangeDeletion)
    }

    /// The internal key that bounds a file ending with it: before every real key with the end's user key.
    pub fn end_key(&self) -> Vec<u8> {
        internal_key(&self.end, SeqNum::MAX, ValueType::RangeDeletion)
    }

    /// Internal key order of their begins.
    pub fn order(&self, other: &RangeTombstone, comparator: &Comparator) -> Ordering {
        let packed = |tombstone: &RangeTombstone| pack(tombstone.seq, ValueType::RangeDeletion);
        comparator.compare_parts((&self.begin, packed(self)), (&other.begin, packed(other)))
    }

    /// What of it acts in a table with these boundaries (internal keys); `None` if nothing does.
    ///
    /// The largest user key is left out even where it belongs to a real entry: then the next table begins with the
    /// same user key and brings the tombstone for it.
    pub fn clipped(
        &self,
        comparator: &Comparator,
        smallest: &[u8],
        largest: &[u8],
    ) -> Option<RangeTombstone> {
        let (smallest, largest) = (split(smallest).0, split(largest).0);
        let begin = later(comparator, &self.begin, smallest);
        let end = if comparator.compare(&self.end, largest).is_lt() { &self.end } else { largest };
        comparator.compare(begin, end).is_lt().then(|| RangeTombstone {
            begin: begin.to_vec(),
            end: end.to_vec(),
            seq: self.seq,
        })
    }
}

fn later<'k>(comparator: &Comparator, a: &'k [u8], b: &'k [u8]) -> &'k [u8] {
    if comparator.compare(a, b).is_lt() { b } else { a }
}

/// True if a table's largest internal key only bounds a tombstone: no entry with its user key is in the table.
pub fn is_tombstone_end(largest: &[u8]) -> bool {
    ParsedKey::parse(largest)
        .is_ok_and(|key| key.seq == SeqNum::MAX && key.value_type == ValueType::RangeDeletion)
}

/// A range and the sequence numbers of all tombstones over it, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First user key.
    pub begin: Vec<u8>,
    /// The user key behind the last.
    pub end: Vec<u8>,
    /// Sequence numbers, descending, at least one.
    pub seqs: Vec<SeqNum>,
}

impl Fragment {
    /// The newest tombstone at or below `at_most`; zero if there is none.
    #[inline]
    pub fn newest(&self, at_most: SeqNum) -> SeqNum {
        let index = self.seqs.partition_point(|seq| *seq > at_most);
        self.seqs.get(index).copied().unwrap_or(SeqNum::ZERO)
    }
}

/// Disjoint, sorted fragments of a set of tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    fragments: Vec<Fragment>,
}

impl Fragments {
    /// Cuts `tombstones` at each other's ends.
    pub fn new(tombstones: &[RangeTombstone], comparator: &Comparator) -> Fragments {
        let mut cuts: Vec<&[u8]> = tombstones.iter().flat_map(|t| [&t.begin[..], &t.end[..]]).collect();
        cuts.sort_by(|a, b| comparator.compare(a, b));
        cuts.dedup_by(|a, b| comparator.compare(a, b).is_eq());
        let mut by_begin: Vec<&RangeTombstone> = tombstones.iter().collect();
        by_begin.sort_by(|a, b| comparator.compare(&a.begin, &b.begin));
        let mut waiting = by_begin.into_iter().peekable();
        let mut open: Vec<&RangeTombstone> = Vec::new();
        let mut fragments = Vec::new();
        for pair in cuts.windows(2) {
            let (begin, end) = (pair[0], pair[1]);
            open.retain(|t| comparator.compare(&t.end, begin).is_gt());
            while let Some(next) = waiting.next_if(|t| comparator.compare(&t.begin, begin).is_le()) {
                if comparator.compare(&next.end, begin).is_gt() {
                    open.push(next);
                }
            }
            if open.is_empty() {
                continue;
            }
            let mut seqs: Vec<SeqNum> = open.iter().map(|t| t.seq).collect();
            seqs.sort_unstable_by(|a, b| b.cmp(a));
            seqs.dedup();
            fragments.push(Fragment { begin: begin.to_vec(), end: end.to_vec(), seqs });
        }
        Fragments { fragments }
    }

    /// The fragments of several sets together.
    pub fn union<'s>(sets: impl IntoIterator<Item = &'s Fragments>, comparator: &Comparator) -> Fragments {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty()).peekable();
        let Some(first) = sets.next() else { return Fragments::default() };
        if sets.peek().is_none() {
            return first.clone();
        }
        let all: Vec<RangeTombstone> =
            std::iter::once(first).chain(sets).flat_map(|set| set.tombstones()).collect();
        Fragments::new(&all, comparator)
    }

    /// True if nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fragment> {
        self.fragments.iter()
    }

    /// The fragment over `user_key`.
    #[inline]
    pub fn find(&self, comparator: &Comparator, user_key: &[u8]) -> Option<&Fragment> {
        let after = self.fragments.partition_point(|f| comparator.compare(&f.begin, user_key).is_le());
        let fragment = self.fragments.get(after.checked_sub(1)?)?;
        comparator.compare(user_key, &fragment.end).is_lt().then_some(fragment)
    }

    /// Sequence number of the newest tombstone at or below `at_most` over `user_key`; zero if there is none.
    #[inline]
    pub fn covering(&self, comparator: &Comparator, user_key: &[u8], at_most: SeqNum) -> SeqNum {
        self.find(comparator, user_key).map_or(SeqNum::ZERO, |fragment| fragment.newest(at_most))
    }

    /// The tombstones these fragments come to: one per fragment and sequence number.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.fragments.iter().flat_map(|f| {
            f.seqs.iter().map(|seq| RangeTombstone { begin: f.begin.clone(), end: f.end.clone(), seq: *seq })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(begin: &str, end: &str, seq: u64) -> RangeTombstone {
        RangeTombstone { begin: begin.into(), end: end.into(), seq: SeqNum(seq) }
    }

    fn drawn(fragments: &Fragments) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let seqs = |f: &Fragment| f.seqs.iter().map(|seq| seq.to_string()).collect::<Vec<_>>().join(",");
        fragments.iter().map(|f| format!("[{} {}){} ", text(&f.begin), text(&f.end), seqs(f))).collect()
    }

    #[test]
    fn overlapping_tombstones_are_cut_at_each_others_ends() {
        let order = Comparator::Bytewise;
        let set =
            [tombstone("a", "m", 7), tombstone("f", "z", 9), tombstone("x", "y", 3), tombstone("a", "m", 7)];
        let fragments = Fragments::new(&set, &order);
        assert_eq!(drawn(&fragments), "[a f)7 [f m)9,7 [m x)9 [x y)9,3 [y z)9 ");
        assert_eq!(fragments.covering(&order, b"g", SeqNum::MAX), SeqNum(9));
        assert_eq!(fragments.covering(&order, b"g", SeqNum(8)), SeqNum(7));
        assert_eq!(fragments.covering(&order, b"g", SeqNum(6)), SeqNum::ZERO);
        assert_eq!(fragments.covering(&order, b"z", SeqNum::MAX), SeqNum::ZERO);
        assert_eq!(fragments.covering(&order, b"A", SeqNum::MAX), SeqNum::ZERO);
    }

    #[test]
    fn gaps_stay_gaps_and_empty_ranges_vanish() {
        let set = [tombstone("a", "b", 1), tombstone("d", "e", 2), tombstone("c", "c", 9)];
        assert_eq!(drawn(&Fragments::new(&set, &Comparator::Bytewise)), "[a b)1 [d e)2 ");
    }

    #[test]
    fn fragments_answer_like_the_tombstones_they_are_made_of() {
        let mut seed = 88172645463325252u64;
        let mut next = |bound: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % bound
        };
        for _ in 0..200 {
            let mut set: Vec<RangeTombstone> = Vec::new();
            for seq in 0..next(12) {
                let (a, b) = (next(16) as u8, next(16) as u8);
                set.push(RangeTombstone { begin: vec![a.min(b)], end: vec![a.max(b)], seq: SeqNum(seq + 1) });
            }
            for order in [Comparator::Bytewise, Comparator::ReverseBytewise] {
                let set: Vec<_> = set
                    .iter()
                    .map(|t| match order {
                        Comparator::Bytewise => t.clone(),
                        _ => RangeTombstone { begin: t.end.clone(), end: t.begin.clone(), seq: t.seq },
                    })
                    .collect();
                let fragments = Fragments::new(&set, &order);
                for key in 0..16u8 {
                    for at_most in 0..13 {
                        let over = |t: &&RangeTombstone| {
                            order.compare(&t.begin, &[key]).is_le() && order.compare(&[key], &t.end).is_lt()
                        };
                        let seqs = set.iter().filter(over).map(|t| t.seq).filter(|s| s.0 <= at_most);
                        let expected = seqs.max().unwrap_or(SeqNum::ZERO);
                        assert_eq!(
                            fragments.covering(&order, &[key], SeqNum(at_most)),
                            expected,
                            "{set:?} {key}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_tombstone_acts_within_its_table_only() {
        let order = Comparator::Bytewise;
        let whole = tombstone("b", "x", 5);
        let key = |text: &str, seq| internal_key(text.as_bytes(), SeqNum(seq), ValueType::Value);
        assert_eq!(whole.clipped(&order, &key("d", 9), &key("m", 2)), Some(tombstone("d", "m", 5)));
        assert_eq!(whole.clipped(&order, &key("a", 9), &key("z", 2)), Some(whole.clone()));
        assert_eq!(whole.clipped(&order, &key("x", 9), &key("z", 2)), None);
        assert!(is_tombstone_end(&whole.end_key()) && !is_tombstone_end(&key("x", 3)));
    }
}
