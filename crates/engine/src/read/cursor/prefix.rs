//! A cursor and prefixes of keys.
//!
//! With `prefix_same_as_start` the cursor ends where the prefix of its target ends. Without, and with `total_order_seek` not set,
//! a seek asks the filters of prefixes and leaves sources out that hold no key with the target's: within the prefix nothing is
//! missing, and at its end the cursor takes the others in ([`PrefixMode::leave`]).

use crate::read::merging_iter::MergingIter;
use crate::read::within::Within;
use outcrop_base::keys::Trailer;
use outcrop_base::{Comparator, PrefixExtractor};

/// See the module.
pub(super) struct PrefixMode {
    /// None if prefixes do not matter to this cursor.
    extractor: Option<PrefixExtractor>,
    /// The cursor ends at the end of the prefix that it was positioned by.
    bound: bool,
    /// Seeks ask filters.
    filters: bool,
    /// The prefix it stays within, or beyond which sources may be missing.
    prefix: Option<Vec<u8>>,
    /// While sources are missing: where the seek went.
    target: Vec<u8>,
    /// While sources are missing: nothing beyond the prefix is before the upper bound.
    ends_at_upper: bool,
}

impl PrefixMode {
    /// `bound` is `prefix_same_as_start`, `total_order` is `total_order_seek`; `order` and `extractor` are the column family's.
    pub(super) fn new(
        bound: bool,
        total_order: bool,
        order: &Comparator,
        extractor: Option<&PrefixExtractor>,
    ) -> PrefixMode {
        // Under another order keys with a prefix may lie apart.
        let filters = !total_order && !matches!(order, Comparator::User(_));
        PrefixMode {
            extractor: extractor.filter(|_| bound || filters).cloned(),
            bound,
            filters,
            prefix: None,
            target: Vec::new(),
            ends_at_upper: false,
        }
    }

    /// True if the cursor ends with a prefix.
    #[inline]
    pub(super) fn is_bound(&self) -> bool {
        self.bound
    }

    /// Before the cursor goes to an end of the key space.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.prefix = None;
    }

    /// Before the cursor steps backward, for which the merging iterator takes all sources in.
    #[inline]
    pub(super) fn step_backward(&mut self) {
        if !self.bound {
            self.prefix = None;
        }
    }

    /// Binds the cursor to the prefix of `target`, if it is one that ends with a prefix.
    #[inline]
    pub(super) fn bind(&mut self, target: &[u8]) {
        let extractor = self.extractor.as_ref().filter(|_| self.bound);
        let prefix = extractor.and_then(|extractor| extractor.transform(target));
        self.prefix = prefix.map(<[u8]>::to_vec);
    }

    /// True if `user_key` is outside the prefix.
    #[inline]
    pub(super) fn is_outside(&self, user_key: &[u8]) -> bool {
        match (&self.prefix, &self.extractor) {
            (Some(prefix), Some(extractor)) => extractor.transform(user_key) != Some(prefix),
            _ => false,
        }
    }

    /// Moves `merged` to (`start`, `trailer`), without the sources that filters exclude; `upper` and `order` are the
    /// cursor's.
    #[inline]
    pub(super) fn seek(
        &mut self,
        merged: &mut MergingIter,
        target: (&[u8], Trailer),
        upper: Option<&[u8]>,
        order: &Comparator,
    ) {
        match self.extractor {
            None => merged.seek(target.0, target.1),
            Some(_) => self.seek_by_prefix(merged, target, upper, order),
        }
    }

    #[inline(never)]
    fn seek_by_prefix(
        &mut self,
        merged: &mut MergingIter,
        (start, trailer): (&[u8], Trailer),
        upper: Option<&[u8]>,
        order: &Comparator,
    ) {
        let extractor = self.extractor.as_ref().filter(|_| self.filters);
        let prefix = extractor.and_then(|extractor| extractor.transform(start));
        // A target without prefix has nothing to stay within.
        let wanted = |prefix: &&[u8]| !self.bound || self.prefix.as_deref() == Some(*prefix);
        let (Some(extractor), Some(prefix)) = (extractor, prefix.filter(wanted)) else {
            return merged.seek(start, trailer);
        };
        let within = Within { extractor, prefix };
        merged.seek_within(start, trailer, &within);
        if merged.has_excluded() && !self.bound {
            self.ends_at_upper = upper.is_some_and(|upper| ends_within(upper, &within, order));
            self.prefix = Some(prefix.to_vec());
            self.target.clear();
            self.target.extend_from_slice(start);
        }
    }

    /// At the end of what is complete: `merged` takes the missing sources in. False if there is nothing more to see.
    #[cold]
    pub(super) fn leave(&mut self, merged: &mut MergingIter, trailer: Trailer) -> bool {
        if self.bound || self.ends_at_upper || self.prefix.take().is_none() {
            return false;
        }
        // None are missing any more if the merging iterator was moved by a seek meanwhile.
        merged.include_excluded(&self.target, trailer);
        true
    }
}

/// True if no key without the prefix lies between a key with it and `upper`.
fn ends_within(upper: &[u8], within: &Within<'_>, order: &Comparator) -> bool {
    let whole = within.extractor.full_len() == Some(within.prefix.len());
    let follows = || {
        let Some((last, rest)) = within.prefix.split_last() else { return false };
        let next = last.checked_add(1);
        next.is_some_and(|next| upper.split_last() == Some((&next, rest)))
    };
    within.has(upper) || (whole && order.is_bytewise() && follows())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(bound: bool, total_order: bool) -> PrefixMode {
        PrefixMode::new(bound, total_order, &Comparator::Bytewise, Some(&PrefixExtractor::Fixed(2)))
    }

    #[test]
    fn only_a_bound_cursor_stays_within_the_prefix_of_its_target() {
        for (bound, outside) in [(true, true), (false, false)] {
            let mut prefixes = mode(bound, false);
            prefixes.bind(b"ab1");
            assert!(!prefixes.is_outside(b"ab2"));
            assert_eq!(prefixes.is_outside(b"ac1"), outside);
            // A target that has no prefix binds to nothing.
            prefixes.bind(b"a");
            assert!(!prefixes.is_outside(b"ac1"));
        }
    }

    #[test]
    fn a_step_backward_leaves_what_was_excluded_but_not_a_bound_prefix() {
        let mut prefixes = mode(true, false);
        prefixes.bind(b"ab1");
        prefixes.step_backward();
        assert!(prefixes.is_outside(b"ac1"));
        prefixes.clear();
        assert!(!prefixes.is_outside(b"ac1"));
    }

    #[test]
    fn an_upper_bound_ends_a_prefix_if_no_other_key_is_before_it() {
        let within = Within { extractor: &PrefixExtractor::Fixed(2), prefix: b"ab" };
        for (upper, ends) in [("ab7", true), ("ac", true), ("ac0", false), ("ad", false), ("b", false)] {
            assert_eq!(ends_within(upper.as_bytes(), &within, &Comparator::Bytewise), ends, "{upper}");
        }
        // Of a capped prefix shorter keys with it may follow elsewhere.
        let capped = Within { extractor: &PrefixExtractor::Capped(4), prefix: b"ab" };
        assert!(!ends_within(b"ac", &capped, &Comparator::Bytewise));
    }

    #[test]
    fn without_filters_and_unbound_there_is_no_extractor() {
        assert!(mode(false, true).extractor.is_none());
        assert!(mode(false, false).extractor.is_some());
        assert!(mode(true, true).extractor.is_some());
    }
}
