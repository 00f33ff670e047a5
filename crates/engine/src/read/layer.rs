//! Range tombstones of one source, as memtables and tables have them.

use outcrop_base::{Comparator, Fragments, Span};
use std::sync::Arc;

/// Range tombstones of a source, in sets that are apart and in order.
#[derive(Clone, Debug)]
pub enum Layer {
    /// Of a run of a memtable, or of a table.
    One(Arc<Fragments>),
    /// Of the tables of a level, none of them empty.
    Level(Arc<[Arc<Fragments>]>),
}

impl Layer {
    /// The span of this layer around `user_key`.
    pub fn span(&self, comparator: &Comparator, user_key: &[u8]) -> Span<'_> {
        let sets = match self {
            Layer::One(set) => return set.span(comparator, user_key),
            Layer::Level(sets) => sets,
        };
        let begun = |set: &Arc<Fragments>| {
            set.begin().is_some_and(|begin| comparator.compare(begin, user_key).is_le())
        };
        let after = sets.partition_point(begun);
        let next = sets.get(after).and_then(|set| set.begin());
        let Some(last) = after.checked_sub(1) else { return Span { begin: None, end: next, fragment: None } };
        let span = sets[last].span(comparator, user_key);
        Span { end: span.end.or(next), ..span }
    }
}
