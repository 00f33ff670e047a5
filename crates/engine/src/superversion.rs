//! What one read sees: the active memtable, the sealed ones, and the tables.
//!
//! Concurrency: a `SuperVersion` is immutable. Readers borrow the current one through [`ArcSwap`], which
//! marks the borrow in a slot owned by the reading thread: no counter shared between threads is written
//! on the read path. A flush, a compaction or a memtable switch installs a new one; the old lives until
//! its last borrower is done.

use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::read::table_cache;
use arc_swap::ArcSwap;
use outcrop_base::{Fragments, Result};
use outcrop_manifest::Version;
use outcrop_memtable::MemTable;
use std::sync::{Arc, OnceLock};

/// The consistent set of sources a read consults, newest first.
pub struct SuperVersion {
    /// The memtable that receives writes.
    pub memtable: Arc<MemTable>,
    /// Memtables waiting for or in flush, newest first.
    pub sealed: Vec<Arc<MemTable>>,
    /// The tables.
    pub version: Arc<Version>,
    /// Range tombstones of everything but the active memtable, made by the first iterator that needs them.
    settled_tombstones: OnceLock<Option<Arc<Fragments>>>,
}

impl SuperVersion {
    /// The view of these sources.
    pub fn new(memtable: Arc<MemTable>, sealed: Vec<Arc<MemTable>>, version: Arc<Version>) -> SuperVersion {
        SuperVersion { memtable, sealed, version, settled_tombstones: OnceLock::new() }
    }

    /// Fragments of all range tombstones, the active memtable's apart: at most two sets.
    ///
    /// # Errors
    /// Those of opening a table for the first time.
    pub fn range_tombstones(&self, ctx: &DbContext, cf: &ColumnFamily) -> Result<Vec<Arc<Fragments>>> {
        let settled = match self.settled_tombstones.get() {
            Some(settled) => settled,
            None => {
                let made = self.settle_tombstones(ctx, cf)?;
                self.settled_tombstones.get_or_init(|| made)
            }
        };
        Ok(self.memtable.range_tombstones().into_iter().chain(settled.clone()).collect())
    }

    fn settle_tombstones(&self, ctx: &DbContext, cf: &ColumnFamily) -> Result<Option<Arc<Fragments>>> {
        let mut sets: Vec<Arc<Fragments>> =
            self.sealed.iter().filter_map(|memtable| memtable.range_tombstones()).collect();
        for (_, file) in self.version.files() {
            sets.extend(table_cache::range_tombstones(ctx, cf, file)?.cloned());
        }
        if sets.len() <= 1 {
            return Ok(sets.pop());
        }
        Ok(Some(Arc::new(Fragments::union(sets.iter().map(|set| &**set), &cf.comparator))))
    }
}

/// The current [`SuperVersion`] of a column family.
pub type SuperVersionCell = ArcSwap<SuperVersion>;

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
    use outcrop_memtable::MemTablePool;
    use std::ops::ControlFlow;

    fn view(number: u64, pool: &Arc<MemTablePool>) -> Arc<SuperVersion> {
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 0, pool));
        memtable.insert(SeqNum(number), ValueType::Value, b"k", &number.to_le_bytes());
        Arc::new(SuperVersion::new(memtable, Vec::new(), Arc::new(Version::empty(1))))
    }

    /// What the view holds, which must be whole while the view is held.
    fn number_of(view: &SuperVersion) -> u64 {
        let mut found = 0;
        view.memtable.get(&LookupKey::new(b"k"), SeqNum(u64::MAX >> 8), |seq, _, value| {
            assert_eq!(value, seq.0.to_le_bytes());
            found = seq.0;
            ControlFlow::Break(())
        });
        found
    }

    #[test]
    fn a_view_stays_whole_while_it_is_read_and_goes_with_its_last_reader() {
        let pool = Arc::new(MemTablePool::new(0));
        let cell = SuperVersionCell::new(view(1, &pool));
        let last = if cfg!(miri) { 12 } else { 3000 };
        let weak = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let (mut newest, mut kept) = (0, None);
                    while newest < last {
                        let borrowed = cell.load();
                        let number = number_of(&borrowed);
                        assert!(number >= newest, "views go back");
                        newest = number;
                        // What an iterator does: it keeps its view while others come and go.
                        if number.is_multiple_of(3) {
                            kept = Some(cell.load_full());
                        }
                        assert_eq!(number_of(&borrowed), number);
                        kept.iter().for_each(|view| assert!(number_of(view) > 0));
                    }
                });
            }
            let mut replaced = Vec::new();
            for number in 2..=last {
                replaced.push(Arc::downgrade(&cell.swap(view(number, &pool))));
            }
            replaced
        });
        assert!(weak.iter().all(|view| view.upgrade().is_none()), "somebody still holds a view");
    }
}
