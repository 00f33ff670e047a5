//! The sources of one read: the active memtable, the sealed ones, and the tables.
//!
//! Concurrency: a `SuperVersion` is immutable. Readers borrow the current one through [`ArcSwap`], which
//! marks the borrow in a slot owned by the reading thread: no counter shared between threads is written
//! on the read path. A flush, a compaction or a memtable switch installs a new one; the old lives until
//! its last borrower is done.

use crate::read::layer::Layer;
use arc_swap::ArcSwap;
use outcrop_base::{Result, SeqNum, Timestamp};
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
    /// Memtables that are in tables already, newest first: they tell which keys were written lately. Reads do not look at them.
    pub history: Vec<Arc<MemTable>>,
    /// Reads at timestamps below this are refused: versions may be gone.
    pub full_history_low: Option<Timestamp>,
    /// Range tombstones of everything but the active memtable, listed by the first iterator that asks.
    fixed_tombstones: OnceLock<Vec<Layer>>,
}

impl SuperVersion {
    /// The view of these sources.
    pub fn new(memtable: Arc<MemTable>, sealed: Vec<Arc<MemTable>>, version: Arc<Version>) -> SuperVersion {
        let (history, fixed_tombstones) = (Vec::new(), OnceLock::new());
        SuperVersion { memtable, sealed, version, history, full_history_low: None, fixed_tombstones }
    }

    /// The same, with memtables that are in tables already.
    pub fn with_history(self, history: Vec<Arc<MemTable>>) -> SuperVersion {
        SuperVersion { history, ..self }
    }

    /// The same, of a column family whose history of versions is whole from `low` on.
    pub fn with_history_from(self, low: Option<Timestamp>) -> SuperVersion {
        SuperVersion { full_history_low: low, ..self }
    }

    /// The memtables alone.
    pub fn without_tables(&self) -> SuperVersion {
        let levels = self.version.levels.len();
        SuperVersion::new(self.memtable.clone(), self.sealed.clone(), Arc::new(Version::empty(levels)))
            .with_history_from(self.full_history_low)
    }

    /// The tables alone, with a memtable that is `empty`.
    pub fn without_memtables(&self, empty: Arc<MemTable>) -> SuperVersion {
        SuperVersion::new(empty, Vec::new(), self.version.clone()).with_history_from(self.full_history_low)
    }

    /// The memtables, newest first, those that are in tables already last.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<MemTable>> {
        std::iter::once(&self.memtable).chain(&self.sealed).chain(&self.history)
    }

    /// Everything written after this number is in [`SuperVersion::memtables`]; `None` if that is not known.
    pub fn memtables_since(&self) -> Option<SeqNum> {
        self.memtables().last().and_then(|oldest| oldest.born())
    }

    /// Range tombstones of everything but the active memtable, which `list` gives to whoever asks first.
    pub fn fixed_tombstones(&self, list: impl FnOnce() -> Result<Vec<Layer>>) -> Result<&[Layer]> {
        if let Some(known) = self.fixed_tombstones.get() {
            return Ok(known);
        }
        let listed = list()?;
        Ok(self.fixed_tombstones.get_or_init(|| listed))
    }
}

/// The current [`SuperVersion`] of a column family.
pub type SuperVersionCell = ArcSwap<SuperVersion>;

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::{Comparator, LookupKey, ValueType};
    use outcrop_memtable::MemTablePool;
    use std::ops::ControlFlow;

    fn view(number: u64, pool: &Arc<MemTablePool>) -> Arc<SuperVersion> {
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 0, pool));
        memtable.insert(SeqNum(number), ValueType::Value, b"k", &number.to_le_bytes());
        Arc::new(SuperVersion::new(memtable, Vec::new(), Arc::new(Version::empty(1))))
    }

    /// The number that the view holds, which must be whole while the view is held.
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
                        // As an iterator does: it keeps its view while others come and go.
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
