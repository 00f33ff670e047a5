//! The memtables that writes go to, one per column family, and which of them a group wrote to.
//!
//! Invariant: ordered by id, the default column family first.
//! Concurrency: part of [`super::pipeline::WriteCore`]. A group pays for the column families it writes to, not for those that exist.

use crate::column_family::ColumnFamily;
use outcrop_base::{CfId, SeqNum};
use outcrop_memtable::MemTable;
use std::sync::Arc;

/// A column family's active memtable.
pub struct Target {
    /// The column family.
    pub cf: Arc<ColumnFamily>,
    /// Its active memtable.
    pub memtable: Arc<MemTable>,
    /// Memory for the next one was asked for.
    pub next_prepared: bool,
    /// The first sequence number of the group that wrote to it last.
    written_by: SeqNum,
}

impl Target {
    /// Writes to `cf` go to `memtable`.
    pub fn new(cf: Arc<ColumnFamily>, memtable: Arc<MemTable>) -> Target {
        Target { cf, memtable, next_prepared: false, written_by: SeqNum::ZERO }
    }
}

/// All column families' active memtables.
pub struct Targets {
    list: Vec<Target>,
    /// Indexes of those that the last group wrote to.
    written: Vec<usize>,
}

impl Targets {
    /// `list` is ordered by id.
    pub fn new(list: Vec<Target>) -> Targets {
        Targets { list, written: Vec::new() }
    }

    /// All of them, by id.
    pub fn iter(&self) -> std::slice::Iter<'_, Target> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Those whose keys end with timestamps: id, and length of a timestamp.
    pub fn stamped(&self) -> Vec<(CfId, u16)> {
        let lens = self.list.iter().map(|target| (target.cf.id(), target.cf.comparator.timestamp_len()));
        lens.filter(|(_, len)| *len > 0).map(|(id, len)| (id, len as u16)).collect()
    }

    /// The ids of all.
    pub fn ids(&self) -> Vec<CfId> {
        self.list.iter().map(|target| target.cf.id()).collect()
    }

    /// Adds that of a new column family, whose id is above all others.
    pub fn push(&mut self, target: Target) {
        self.list.push(target);
    }

    /// Removes that of column family `id`.
    pub fn remove(&mut self, id: CfId) {
        if let Ok(index) = self.list.binary_search_by_key(&id, |target| target.cf.id()) {
            self.list.remove(index).memtable.count_sealed();
        }
    }

    /// Puts the empty `fresh` in place of the memtable at `index`, which it returns.
    pub fn replace(&mut self, index: usize, fresh: Arc<MemTable>) -> Arc<MemTable> {
        let fresh = Target::new(self.list[index].cf.clone(), fresh);
        let old = std::mem::replace(&mut self.list[index], fresh);
        old.memtable.count_sealed();
        old.memtable
    }

    /// Begins a group: nothing was written by it.
    #[inline]
    pub fn begin_group(&mut self) {
        self.written.clear();
    }

    /// The memtable of column family `id`, which the group that begins with number `first` writes to; `None` if the column
    /// family was dropped.
    #[inline]
    pub fn written_by(&mut self, first: SeqNum, id: CfId) -> Option<&Target> {
        let index = match id {
            CfId(0) => 0,
            _ => self.list.binary_search_by_key(&id, |target| target.cf.id()).ok()?,
        };
        let target = &mut self.list[index];
        if target.written_by != first {
            target.written_by = first;
            self.written.push(index);
        }
        Some(target)
    }

    /// Passes those that the group wrote to to `visit`.
    #[inline]
    pub fn end_group(&mut self, mut visit: impl FnMut(&mut Target)) {
        for &index in &self.written {
            visit(&mut self.list[index]);
        }
    }
}

impl std::ops::Index<usize> for Targets {
    type Output = Target;

    fn index(&self, index: usize) -> &Target {
        &self.list[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::{Parts, plain_options};
    use outcrop_base::ValueType;
    use outcrop_memtable::MemTablePool;
    use outcrop_options::DbOptions;

    fn targets(count: usize) -> (Parts, Targets) {
        let families = (0..count).map(|_| (plain_options(), Default::default())).collect();
        let parts = Parts::with(DbOptions::default(), families);
        let state = parts.versions.state.lock();
        let list = state.column_families.values().map(|cf| Target::new(cf.cf.clone(), cf.memtable.clone()));
        let targets = Targets::new(list.collect());
        drop(state);
        (parts, targets)
    }

    #[test]
    fn a_group_visits_what_it_wrote_to_and_once() {
        let (_parts, mut targets) = targets(4);
        targets.begin_group();
        for id in [2, 0, 2] {
            assert_eq!(targets.written_by(SeqNum(1), CfId(id)).unwrap().cf.id(), CfId(id));
        }
        assert!(targets.written_by(SeqNum(1), CfId(9)).is_none(), "dropped");
        let mut visited = Vec::new();
        targets.end_group(|target| visited.push(target.cf.id()));
        assert_eq!(visited, [CfId(2), CfId(0)]);
        targets.begin_group();
        targets.written_by(SeqNum(5), CfId(3));
        let mut visited = Vec::new();
        targets.end_group(|target| visited.push(target.cf.id()));
        assert_eq!(visited, [CfId(3)], "the next group begins anew");
    }

    #[test]
    fn the_account_knows_what_takes_writes_and_what_is_dropped() {
        let manager = Arc::new(crate::WriteBufferManager::new(1 << 30));
        let pool = Arc::new(MemTablePool::new(0).with_account(Some(manager.clone())));
        let fresh = || Arc::new(MemTable::new(Default::default(), 1 << 16, &pool));
        let (_parts, mut targets) = targets(2);
        targets.replace(1, fresh());
        let target = targets.written_by(SeqNum(1), CfId(1)).unwrap();
        target.memtable.insert(SeqNum(1), ValueType::Value, b"k", &vec![7; 1 << 17]);
        targets.end_group(|target| target.memtable.count_memory());
        let used = manager.memory_usage();
        assert!(used > 1 << 17, "{used}");
        assert_eq!(manager.mutable_memtable_memory_usage(), used);
        let full = targets.replace(1, fresh());
        assert_eq!((full.num_entries(), manager.mutable_memtable_memory_usage()), (1, 0));
        assert_eq!(manager.memory_usage(), used, "it is read and waits for its flush");
        drop(full);
        assert_eq!(manager.memory_usage(), 0);
        targets.remove(CfId(1));
        assert_eq!(targets.ids(), [CfId(0)]);
    }

    #[test]
    fn a_new_column_family_comes_last() {
        let (parts, mut targets) = targets(1);
        let other = Parts::with(
            DbOptions::default(),
            vec![(plain_options(), Default::default()), (plain_options(), Default::default())],
        );
        let cf = other.cf(CfId(1));
        targets.push(Target::new(cf.clone(), cf.superversion.load().memtable.clone()));
        assert_eq!(targets.ids(), [CfId(0), CfId(1)]);
        assert!(Arc::ptr_eq(&targets[0].cf, &parts.cf(CfId::DEFAULT)));
    }
}
