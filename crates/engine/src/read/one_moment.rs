//! Views of several column families, all of one moment.
//!
//! ```text
//! views of all   sequence number   the same views?
//! ------|---------------|----------------|------> time
//!       '--- if all are current still, each was current when the number was read
//! ```
//! A view taken alone may lack what was written after its memtable was sealed. Beside another column family's, under a
//! sequence number read later, that would show a batch in one and not in the other.
//!
//! Concurrency: no lock, unless views change again and again, or the database only follows another.
//! Source: RocksDB `DBImpl::MultiCFSnapshot`.

use super::iter::DbIterator;
use super::multi_get::{self, GroupGet};
use super::{PinnedValue, ReadOptions};
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::db::DbInner;
use crate::superversion::SuperVersion;
use arc_swap::Guard;
use outcrop_base::{Result, SeqNum};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Attempts without a lock. Source: RocksDB `DBImpl::MultiCFSnapshot`.
const ATTEMPTS: usize = 3;

type View = Guard<Arc<SuperVersion>>;

impl DbInner {
    /// The view of each of `families`, and the sequence number to read them at: `snapshot`, or the latest.
    fn views(&self, families: &[&ColumnFamily], snapshot: Option<SeqNum>) -> (Vec<View>, SeqNum) {
        let load = || families.iter().map(|cf| cf.superversion.load()).collect::<Vec<_>>();
        if let Some(snapshot) = snapshot {
            // It was taken before the views, and keeps what it sees.
            return (load(), snapshot);
        }
        // One that follows another database replaces several views in a row: those in between are of no moment. Relaxed:
        // set before anybody reads.
        let follows = self.write_refused.load(Ordering::Relaxed);
        for _ in 0..if follows { 0 } else { ATTEMPTS } {
            // Views before the number: a flush in between could otherwise drop what this number must see.
            let views = load();
            let seq = self.visible_seq();
            let current = |(cf, view): (&&ColumnFamily, &View)| Arc::ptr_eq(&cf.superversion.load(), view);
            // A view that is held is at no other view's address: the same address is the same view.
            if families.iter().zip(&views).all(current) {
                return (views, seq);
            }
        }
        // Views change under this lock alone.
        let _state = self.state.lock();
        (load(), self.visible_seq())
    }

    /// See [`crate::Db::multi_get_pairs`].
    pub(crate) fn multi_get_pairs(
        &self,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let mut families: Vec<&ColumnFamily> = Vec::new();
        let of: Vec<usize> = pairs.iter().map(|(cf, _)| place_of(&mut families, cf)).collect();
        let (views, snapshot) = self.views(&families, options.snapshot);
        let mut results: Vec<_> = pairs.iter().map(|_| Ok(None)).collect();
        for (number, (cf, view)) in families.iter().zip(&views).enumerate() {
            let places: Vec<usize> = (0..pairs.len()).filter(|&pair| of[pair] == number).collect();
            let keys: Vec<&[u8]> = places.iter().map(|&pair| pairs[pair].1).collect();
            let group = GroupGet { db: self, cf, view, options, snapshot };
            let found = multi_get::in_groups(&group, &keys);
            places.into_iter().zip(found).for_each(|(pair, value)| results[pair] = value);
        }
        results
    }

    /// See [`crate::Db::iterators`].
    pub(crate) fn iterators(
        self: &Arc<Self>,
        families: &[&ColumnFamilyHandle],
        options: &ReadOptions,
    ) -> Result<Vec<DbIterator>> {
        let all: Vec<&ColumnFamily> = families.iter().map(|cf| &***cf).collect();
        let (views, snapshot) = self.views(&all, options.snapshot);
        let views = views.iter().map(|view| Arc::clone(view));
        families.iter().zip(views).map(|(cf, view)| self.iter_over(view, snapshot, cf, options)).collect()
    }
}

/// The place of `cf` in `families`, which it is added to if it is not there.
fn place_of<'f>(families: &mut Vec<&'f ColumnFamily>, cf: &'f ColumnFamilyHandle) -> usize {
    let same = |known: &&ColumnFamily| std::ptr::eq(*known, &**cf);
    // Callers mostly group keys by column family.
    families.iter().rposition(same).unwrap_or_else(|| {
        families.push(cf);
        families.len() - 1
    })
}
