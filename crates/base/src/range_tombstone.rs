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

use crate::keys::{ParsedKey, Trailer, internal_key, split};
use crate::{Comparator, SeqNum, ValueType};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Hides every key in `begin..end` with a smaller sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key.
    pub begin: Vec<u8>,
    /// The user key after the last.
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
        let trailer = |tombstone: &RangeTombstone| Trailer::new(tombstone.seq, ValueType::RangeDeletion);
        comparator.compare_parts((&self.begin, trailer(self)), (&other.begin, trailer(other)))
    }

    /// The part of it that acts in a table with these boundaries (internal keys); `None` if no part does.
    ///
    /// The largest user key is left out even where it belongs to a real entry: then the next table begins with the
    /// same user key and brings the tombstone for it.
    pub fn clipped(
        &self,
        comparator: &Comparator,
        smallest: &[u8],
        largest: &[u8],
    ) -> Option<RangeTombstone> {
        let (begin, end, seq) = self.clipped_part(comparator, smallest, largest)?;
        Some(RangeTombstone { begin: begin.to_vec(), end: end.to_vec(), seq })
    }

    fn clipped_part<'k>(
        &'k self,
        comparator: &Comparator,
        smallest: &'k [u8],
        largest: &'k [u8],
    ) -> Option<Part<'k>> {
        let (smallest, largest) = (split(smallest).0, split(largest).0);
        let begin = later(comparator, &self.begin, smallest);
        let end = if comparator.compare(&self.end, largest).is_lt() { &self.end } else { largest };
        comparator.compare(begin, end).is_lt().then_some((begin, end, self.seq))
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

/// A user key at which a fragment begins or ends. Fragments made of each other share theirs.
pub type Bound = Arc<[u8]>;

/// A range and the sequence numbers of all tombstones over it, newest first. Cloning it copies nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First user key.
    pub begin: Bound,
    /// The user key after the last.
    pub end: Bound,
    /// Sequence numbers, descending, at least one.
    pub seqs: Arc<[SeqNum]>,
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

/// The keys around one key over which the same tombstones lie, those of one fragment or none.
#[derive(Clone, Copy, Debug)]
pub struct Span<'f> {
    /// The first of them; `None`: there is no fragment before.
    pub begin: Option<&'f Bound>,
    /// The one after the last; `None`: there is no fragment after.
    pub end: Option<&'f Bound>,
    /// The fragment that covers them.
    pub fragment: Option<&'f Fragment>,
}

/// A tombstone by reference: begin, end, sequence number.
type Part<'t> = (&'t [u8], &'t [u8], SeqNum);

impl Fragments {
    /// Cuts `tombstones` at each other's ends.
    pub fn new(tombstones: &[RangeTombstone], comparator: &Comparator) -> Fragments {
        let parts = tombstones.iter().map(|t| (&t.begin[..], &t.end[..], t.seq));
        Fragments::of(parts.collect(), comparator)
    }

    /// The parts of `tombstones` that act in a table with these boundaries (internal keys), cut at each
    /// other's ends.
    pub fn clipped(
        tombstones: &[RangeTombstone],
        comparator: &Comparator,
        smallest: &[u8],
        largest: &[u8],
    ) -> Fragments {
        let within = |t| RangeTombstone::clipped_part(t, comparator, smallest, largest);
        Fragments::of(tombstones.iter().filter_map(within).collect(), comparator)
    }

    /// The fragments of one tombstone.
    pub fn one(tombstone: &RangeTombstone, comparator: &Comparator) -> Fragments {
        Fragments::of(vec![(&tombstone.begin, &tombstone.end, tombstone.seq)], comparator)
    }

    fn of(mut parts: Vec<Part<'_>>, comparator: &Comparator) -> Fragments {
        parts.retain(|(begin, end, _)| comparator.compare(begin, end).is_lt());
        let fragments = match are_fragments(&parts, comparator) {
            true => gathered(&parts, comparator),
            false => cut(parts, comparator),
        };
        Fragments { fragments }
    }

    /// The fragments of several sets together.
    pub fn union<'s>(sets: impl IntoIterator<Item = &'s Fragments>, comparator: &Comparator) -> Fragments {
        let mut sets: Vec<Cow<'s, Fragments>> =
            sets.into_iter().filter(|set| !set.is_empty()).map(Cow::Borrowed).collect();
        // In pairs, so that each fragment is merged as often as there are doublings.
        while sets.len() > 1 {
            let merged = |pair: &[Cow<'s, Fragments>]| match pair {
                [a, b] => Cow::Owned(a.merged(b, comparator)),
                rest => rest[0].clone(),
            };
            sets = sets.chunks(2).map(merged).collect();
        }
        sets.pop().map(Cow::into_owned).unwrap_or_default()
    }

    /// The fragments of both sets together, in time proportional to their number.
    pub fn merged(&self, other: &Fragments, comparator: &Comparator) -> Fragments {
        let mut out = Vec::with_capacity(self.len() + other.len());
        let (mut a, mut b) = (Rest::of(self), Rest::of(other));
        while let (Some(x), Some(y)) = (a.first(), b.first()) {
            if comparator.compare(&x.end, &y.begin).is_le() {
                out.push(a.take());
            } else if comparator.compare(&y.end, &x.begin).is_le() {
                out.push(b.take());
            } else {
                match comparator.compare(&x.begin, &y.begin) {
                    Ordering::Less => out.push(a.cut_at(&y.begin.clone())),
                    Ordering::Greater => out.push(b.cut_at(&x.begin.clone())),
                    Ordering::Equal => {
                        let seqs = both(&x.seqs, &y.seqs);
                        let piece = match comparator.compare(&x.end, &y.end) {
                            Ordering::Less => {
                                b.cut_at(&x.end.clone());
                                a.take()
                            }
                            Ordering::Greater => {
                                a.cut_at(&y.end.clone());
                                b.take()
                            }
                            Ordering::Equal => {
                                b.take();
                                a.take()
                            }
                        };
                        out.push(Fragment { seqs, ..piece });
                    }
                }
            }
        }
        a.append_to(&mut out);
        b.append_to(&mut out);
        Fragments { fragments: out }
    }

    /// True if nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    /// The fragments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fragment> {
        self.fragments.iter()
    }

    /// How many fragments begin at or before `user_key`.
    #[inline]
    fn begun(&self, comparator: &Comparator, user_key: &[u8]) -> usize {
        self.fragments.partition_point(|f| comparator.compare(&f.begin, user_key).is_le())
    }

    /// The fragment over `user_key`.
    #[inline]
    pub fn find(&self, comparator: &Comparator, user_key: &[u8]) -> Option<&Fragment> {
        let fragment = self.fragments.get(self.begun(comparator, user_key).checked_sub(1)?)?;
        comparator.compare(user_key, &fragment.end).is_lt().then_some(fragment)
    }

    /// The keys around `user_key` of which the same can be said.
    pub fn span(&self, comparator: &Comparator, user_key: &[u8]) -> Span<'_> {
        let begun = self.begun(comparator, user_key);
        let last = begun.checked_sub(1).map(|last| &self.fragments[last]);
        match last {
            Some(over) if comparator.compare(user_key, &over.end).is_lt() => {
                Span { begin: Some(&over.begin), end: Some(&over.end), fragment: Some(over) }
            }
            last => {
                let end = self.fragments.get(begun).map(|next| &next.begin);
                Span { begin: last.map(|last| &last.end), end, fragment: None }
            }
        }
    }

    /// The first user key of all.
    pub fn begin(&self) -> Option<&Bound> {
        self.fragments.first().map(|first| &first.begin)
    }

    /// The user key after the last of all.
    pub fn end(&self) -> Option<&Bound> {
        self.fragments.last().map(|last| &last.end)
    }

    /// Sequence number of the newest tombstone at or below `at_most` over `user_key`; zero if there is none.
    #[inline]
    pub fn covering(&self, comparator: &Comparator, user_key: &[u8], at_most: SeqNum) -> SeqNum {
        self.find(comparator, user_key).map_or(SeqNum::ZERO, |fragment| fragment.newest(at_most))
    }

    /// The tombstones these fragments come to: one per fragment and sequence number.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.fragments.iter().flat_map(|f| {
            f.seqs.iter().map(|seq| RangeTombstone {
                begin: f.begin.to_vec(),
                end: f.end.to_vec(),
                seq: *seq,
            })
        })
    }
}

/// The rest of a set while it is merged.
struct Rest<'f> {
    fragments: &'f [Fragment],
    /// The first of them, if a part of it was taken.
    cut: Option<Fragment>,
}

impl<'f> Rest<'f> {
    fn of(set: &'f Fragments) -> Rest<'f> {
        Rest { fragments: &set.fragments, cut: None }
    }

    #[inline]
    fn first(&self) -> Option<&Fragment> {
        self.cut.as_ref().or_else(|| self.fragments.first())
    }

    /// The first. There must be one.
    fn take(&mut self) -> Fragment {
        let whole = &self.fragments[0];
        self.fragments = &self.fragments[1..];
        self.cut.take().unwrap_or_else(|| whole.clone())
    }

    /// The part of the first before `at`, which lies within it.
    fn cut_at(&mut self, at: &Bound) -> Fragment {
        let first = self.cut.take().unwrap_or_else(|| self.fragments[0].clone());
        self.cut = Some(Fragment { begin: at.clone(), ..first.clone() });
        Fragment { end: at.clone(), ..first }
    }

    fn append_to(mut self, out: &mut Vec<Fragment>) {
        if self.cut.is_some() {
            out.push(self.take());
        }
        out.extend_from_slice(self.fragments);
    }
}

/// Descending, without repeats, of two such lists.
fn both(a: &[SeqNum], b: &[SeqNum]) -> Arc<[SeqNum]> {
    let mut all = [a, b].concat();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all.into()
}

/// True if each two neighbours are apart and in order, or have the same range: so RocksDB and this engine write tables.
fn are_fragments(parts: &[Part<'_>], comparator: &Comparator) -> bool {
    parts.windows(2).all(|pair| {
        let ((begin, end, _), (next_begin, next_end, _)) = (pair[0], pair[1]);
        comparator.compare(end, next_begin).is_le() || (begin == next_begin && end == next_end)
    })
}

/// Parts that are fragments already.
fn gathered(parts: &[Part<'_>], comparator: &Comparator) -> Vec<Fragment> {
    let same = |a: &Part<'_>, b: &Part<'_>| comparator.compare(a.1, b.0).is_gt();
    let fragment = |parts: &[Part<'_>]| Fragment {
        begin: parts[0].0.into(),
        end: parts[0].1.into(),
        seqs: match parts {
            [(_, _, seq)] => [*seq].into(),
            parts => descending(parts.iter().map(|(_, _, seq)| *seq)),
        },
    };
    parts.chunk_by(same).map(fragment).collect()
}

fn descending(seqs: impl Iterator<Item = SeqNum>) -> Arc<[SeqNum]> {
    both(&seqs.collect::<Vec<_>>(), &[])
}

/// Parts that overlap in any way, cut at each other's ends.
fn cut(mut parts: Vec<Part<'_>>, comparator: &Comparator) -> Vec<Fragment> {
    let mut cuts: Vec<&[u8]> = parts.iter().flat_map(|(begin, end, _)| [*begin, *end]).collect();
    cuts.sort_by(|a, b| comparator.compare(a, b));
    cuts.dedup_by(|a, b| comparator.compare(a, b).is_eq());
    let cuts: Vec<Bound> = cuts.into_iter().map(Bound::from).collect();
    parts.sort_by(|a, b| comparator.compare(a.0, b.0));
    let mut waiting = parts.into_iter().peekable();
    let mut open: Vec<Part<'_>> = Vec::new();
    let mut fragments = Vec::new();
    for pair in cuts.windows(2) {
        let (begin, end) = (&pair[0], &pair[1]);
        open.retain(|(_, end, _)| comparator.compare(end, begin).is_gt());
        while let Some(next) = waiting.next_if(|part| comparator.compare(part.0, begin).is_le()) {
            open.push(next);
        }
        if !open.is_empty() {
            let seqs = descending(open.iter().map(|(_, _, seq)| *seq));
            fragments.push(Fragment { begin: begin.clone(), end: end.clone(), seqs });
        }
    }
    fragments
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
                assert_eq!(runs_of(&set, &order), fragments, "{set:?}");
                assert_eq!(Fragments::new(&fragments.tombstones().collect::<Vec<_>>(), &order), fragments);
                for key in 0..16u8 {
                    check_span(&fragments, &order, &[key]);
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

    /// The same, of one set per tombstone.
    fn runs_of(set: &[RangeTombstone], order: &Comparator) -> Fragments {
        let runs: Vec<Fragments> = set.iter().map(|tombstone| Fragments::one(tombstone, order)).collect();
        Fragments::union(&runs, order)
    }

    /// The span that is found around `key` is true of `key`, and of all keys in it.
    fn check_span(fragments: &Fragments, order: &Comparator, key: &[u8]) {
        let span = fragments.span(order, key);
        assert_eq!(span.fragment, fragments.find(order, key));
        for other in 0..16u8 {
            let after = span.begin.is_none_or(|begin| order.compare(begin, &[other]).is_le());
            let before = span.end.is_none_or(|end| order.compare(&[other], end).is_lt());
            if after && before {
                assert_eq!(fragments.find(order, &[other]), span.fragment, "{fragments:?} {key:?} {other}");
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
