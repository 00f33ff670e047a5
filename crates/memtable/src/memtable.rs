//! [`MemTable`]: skiplist and hash index together, and the iterator over it.

use crate::arena::{Arena, NULL, PrefaultRange, Ref};
use crate::hash_index::{HashIndex, IndexLookup, Relation};
use crate::pool::{MemTablePool, MemoryAccount};
use crate::prefix_bloom::PrefixBloom;
use crate::range_tombstones::RangeTombstones;
use crate::skiplist::{Node, Path, SkipList};
use crate::sync::{AtomicU64, Ordering};
use outcrop_base::keys::Trailer;
use outcrop_base::xxph3::xxph3_64;
use outcrop_base::{
    Comparator, FileNumber, Fragments, LookupKey, PrefixExtractor, RangeTombstone, SeqNum, ValueType,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Recent writes of one column family. See the crate documentation.
pub struct MemTable {
    list: SkipList,
    /// `None` under a user-supplied order, which may call different bytes equal.
    index: Option<HashIndex>,
    write_buffer_size: usize,
    entries: AtomicU64,
    deletes: AtomicU64,
    /// The sequence number that was inserted first; `u64::MAX` while it is empty.
    first_seq: AtomicU64,
    range_tombstones: RangeTombstones,
    prefixes: Option<PrefixBloom>,
    /// The last sequence number given before it took writes; `u64::MAX` while nobody said so.
    born: AtomicU64,
    /// The oldest WAL with a prepared transaction whose writes are here; [`FileNumber::MAX`] if there is none.
    prepared_wal: AtomicU64,
    accounted: Option<Accounted>,
}

/// The bytes of a memtable that its account was told of.
struct Accounted {
    account: Arc<dyn MemoryAccount>,
    bytes: AtomicU64,
    /// 1: it takes no more writes.
    sealed: AtomicU64,
    /// 1: it is in tables.
    flushed: AtomicU64,
    /// Index and filter count as a whole from the first entry on.
    exact: bool,
}

impl Accounted {
    /// Once.
    fn seal(&self) {
        // Relaxed, here and below: the leader of the write group alone counts and seals, and dropping comes after both.
        if self.sealed.swap(1, Ordering::Relaxed) == 0 {
            self.account.sealed(self.bytes.load(Ordering::Relaxed));
        }
    }
}

impl Drop for Accounted {
    fn drop(&mut self) {
        self.seal();
        let flushed = self.flushed.load(Ordering::Relaxed) == 1;
        self.account.freed(self.bytes.load(Ordering::Relaxed), flushed);
    }
}

impl MemTable {
    /// An empty memtable that should be sealed at about `write_buffer_size` bytes, in memory from `pool`.
    pub fn new(comparator: Comparator, write_buffer_size: u64, pool: &Arc<MemTablePool>) -> MemTable {
        let budget = pool.account().map_or(u64::MAX, |account| account.budget());
        let size = clamped(write_buffer_size.min(budget));
        let indexed = !matches!(comparator, Comparator::User(_));
        let arena = Arena::new(size, pool.clone());
        // Both go over to huge pages at once, when the arena asks for it.
        let index = indexed.then(|| HashIndex::new(size, arena.is_lean(), pool.clone()));
        MemTable {
            list: SkipList::new(comparator, arena),
            index,
            write_buffer_size: size,
            entries: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            first_seq: AtomicU64::new(u64::MAX),
            range_tombstones: RangeTombstones::new(0),
            prefixes: None,
            born: AtomicU64::new(u64::MAX),
            prepared_wal: AtomicU64::new(u64::MAX),
            accounted: pool.account().map(|account| Accounted {
                account: account.clone(),
                bytes: AtomicU64::new(0),
                sealed: AtomicU64::new(0),
                flushed: AtomicU64::new(0),
                exact: pool.chunk_bytes().is_some(),
            }),
        }
    }

    /// The same, which should be sealed after `most` range deletions, too; 0: however many.
    pub fn with_max_range_deletions(self, most: u32) -> MemTable {
        MemTable { range_tombstones: RangeTombstones::new(most), ..self }
    }

    /// True if it should be sealed for its range deletions, whatever else it holds.
    pub fn has_enough_range_deletions(&self) -> bool {
        self.range_tombstones.are_enough()
    }

    /// Says that it holds everything written after `seq`, until it is sealed.
    pub fn set_born(&self, seq: SeqNum) {
        // Relaxed: so for all of these four; they are set before the memtable is published, or under the lock that readers take.
        self.born.store(seq.0, Ordering::Relaxed);
    }

    /// The number given to [`MemTable::set_born`].
    pub fn born(&self) -> Option<SeqNum> {
        let born = self.born.load(Ordering::Relaxed);
        (born != u64::MAX).then_some(SeqNum(born))
    }

    /// Writes of a transaction that was prepared in `wal` are here: that WAL is needed until this memtable is in tables.
    pub fn note_prepared_wal(&self, wal: FileNumber) {
        let oldest = wal.min(self.oldest_prepared_wal());
        self.prepared_wal.store(oldest.0, Ordering::Relaxed);
    }

    /// The oldest WAL that [`MemTable::note_prepared_wal`] was told; [`FileNumber::MAX`] if there is none.
    pub fn oldest_prepared_wal(&self) -> FileNumber {
        FileNumber(self.prepared_wal.load(Ordering::Relaxed))
    }

    /// The same, still empty, with a bloom filter of `bytes` over the prefixes of its keys.
    pub fn with_prefix_bloom(self, extractor: PrefixExtractor, bytes: usize) -> MemTable {
        MemTable { prefixes: Some(PrefixBloom::new(extractor, bytes)), ..self }
    }

    /// Adds one version of a key. Any number of threads may insert at once; (`seq`, `value_type`) must be
    /// new for the key. A lookup that starts after the call returned finds it.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer; the write path refuses those before.
    #[inline]
    pub fn insert(&self, seq: SeqNum, value_type: ValueType, user_key: &[u8], value: &[u8]) {
        assert!(user_key.len() < u32::MAX as usize - 8 && value.len() <= u32::MAX as usize);
        let trailer = Trailer::new(seq, value_type);
        if let Some(prefixes) = &self.prefixes {
            prefixes.add(&user_key[..user_key.len().saturating_sub(self.list.comparator().timestamp_len())]);
        }
        let hash = xxph3_64(user_key);
        let target = self.list.target(user_key, trailer);
        // Heights need independent bits: the hash alone would give all versions of a key one height.
        let random = (hash ^ trailer.to_bits()).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let node = self.list.insert(&target, value, random | 1 << 40);
        if let Some(index) = &self.index {
            index.publish(hash, node, |other| {
                let other = self.list.node(other);
                if other.prefix() != target.prefix || other.user_key() != user_key {
                    Relation::OtherKey
                } else if other.trailer() > trailer {
                    Relation::Newer
                } else {
                    Relation::Older
                }
            });
        }
        self.count_entry(seq);
        if matches!(
            value_type,
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
        ) {
            self.deletes.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn count_entry(&self, seq: SeqNum) {
        // Relaxed: counts order nothing.
        if self.entries.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_seq.store(seq.0, Ordering::Relaxed);
        }
    }

    /// Adds a range tombstone. A lookup that starts after the call returned finds it.
    pub fn insert_range_tombstone(&self, seq: SeqNum, begin: &[u8], end: &[u8]) {
        let tombstone = RangeTombstone { begin: begin.to_vec(), end: end.to_vec(), seq };
        self.range_tombstones.insert(&tombstone, self.list.comparator());
        self.count_entry(seq);
        self.deletes.fetch_add(1, Ordering::Relaxed);
    }

    /// The range tombstones inserted so far, in a few sets of disjoint fragments that may overlap each other; none, and
    /// nothing allocated, if there are none.
    #[inline]
    pub fn range_tombstones(&self) -> Vec<Arc<Fragments>> {
        self.range_tombstones.sets()
    }

    /// Sequence number of the newest range tombstone at or below `at_most` over `user_key`; zero if there is none.
    #[inline]
    pub fn covering(&self, user_key: &[u8], at_most: SeqNum) -> SeqNum {
        self.range_tombstones.covering(self.list.comparator(), user_key, at_most)
    }

    /// Passes the versions of the key with sequence numbers up to `snapshot` to `visit`, newest first, until
    /// it breaks.
    #[inline]
    pub fn get<'a>(
        &'a self,
        key: &LookupKey<'_>,
        snapshot: SeqNum,
        mut visit: impl FnMut(SeqNum, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        let mut reference = self.find(key, snapshot);
        while reference != NULL {
            let node = self.list.node(reference);
            if !self.is_of_key(node, key.user_key) {
                return;
            }
            let seq = node.trailer().seq();
            if seq <= snapshot {
                let value_type = node.trailer().value_type().expect("inserted with a valid type");
                if visit(seq, value_type, node.value()).is_break() {
                    return;
                }
            }
            reference = node.next();
        }
    }

    /// A node of the key from which all versions up to `snapshot` are reached, or null.
    #[inline]
    fn find(&self, key: &LookupKey<'_>, snapshot: SeqNum) -> Ref {
        let Some(index) = &self.index else { return self.search(key, snapshot) };
        match index.find(key.hash, |node| self.is_of_key(self.list.node(node), key.user_key)) {
            IndexLookup::Node(node) => node,
            IndexLookup::Absent => NULL,
            IndexLookup::Unknown => self.search(key, snapshot),
        }
    }

    #[cold]
    fn search(&self, key: &LookupKey<'_>, snapshot: SeqNum) -> Ref {
        self.list.seek(&self.list.target(key.user_key, Trailer::new(snapshot, ValueType::FOR_SEEK)))
    }

    #[inline]
    fn is_of_key(&self, node: Node<'_>, user_key: &[u8]) -> bool {
        match self.list.comparator() {
            Comparator::User(order) => order.compare(node.user_key(), user_key).is_eq(),
            _ => node.user_key() == user_key,
        }
    }

    /// Asks for what a lookup of the key with this [`LookupKey::hash`] touches first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(index) = &self.index {
            index.prefetch(hash);
        }
    }

    /// An iterator over all versions of all keys. It sees inserts made while it lives.
    pub fn iter(self: &Arc<Self>) -> MemTableIter {
        MemTableIter { memtable: self.clone(), node: NULL, before: self.list.path() }
    }

    /// True if it holds a key from `begin` to `end` (inclusive if `included`), or a range tombstone over one.
    pub fn overlaps(&self, begin: &[u8], end: &[u8], included: bool) -> bool {
        let comparator = self.list.comparator();
        let inside = |key: &[u8]| match comparator.compare(key, end) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => included,
            std::cmp::Ordering::Greater => false,
        };
        let first = self.list.seek(&self.list.target(begin, Trailer::MAX));
        if first != NULL && inside(self.list.node(first).user_key()) {
            return true;
        }
        self.range_tombstones()
            .iter()
            .any(|set| set.iter().any(|f| comparator.compare(&f.end, begin).is_gt() && inside(&f.begin)))
    }

    /// Bytes the memtable takes: entries, index and filter. This number counts against memory budgets.
    pub fn memory_usage(&self) -> usize {
        self.data_size() as usize
            + self.index.as_ref().map_or(0, HashIndex::size_bytes)
            + self.prefixes.as_ref().map_or(0, PrefixBloom::size_bytes)
    }

    /// Tells the account, if there is one, how much it has grown. For the one that writes. Of index and filter as much counts as entries
    /// fill of the write buffer: the rest of their memory was not touched.
    pub fn count_memory(&self) {
        let Some(accounted) = &self.accounted else { return };
        let (data, all) = (self.data_size(), self.memory_usage() as u64);
        let touched = if accounted.exact { u64::MAX } else { data };
        let beside = u128::from(all - data) * u128::from(touched) / self.write_buffer_size.max(1) as u128;
        let bytes = data + u64::try_from(beside).unwrap_or(u64::MAX).min(all - data);
        // Relaxed: see `Accounted::seal`.
        let before = accounted.bytes.load(Ordering::Relaxed);
        if bytes > before && accounted.sealed.load(Ordering::Relaxed) == 0 {
            accounted.bytes.store(bytes, Ordering::Relaxed);
            accounted.account.grew(bytes - before);
        }
    }

    /// Tells the account that it takes no more writes.
    pub fn count_sealed(&self) {
        if let Some(accounted) = &self.accounted {
            accounted.seal();
        }
    }

    /// Tells the account that it is in tables.
    pub fn count_flushed(&self) {
        if let Some(accounted) = &self.accounted
            && accounted.flushed.swap(1, Ordering::Relaxed) == 0
        {
            accounted.seal();
            accounted.account.flushed(accounted.bytes.load(Ordering::Relaxed));
        }
    }

    /// True once the entries fill the write buffer, or there are as many range deletions as there may be.
    #[inline]
    pub fn should_seal(&self) -> bool {
        self.list.arena().used_bytes() + self.range_tombstones.size_bytes() >= self.write_buffer_size
            || self.range_tombstones.are_enough()
    }

    /// True once the entries fill three quarters of it: the one that follows should be made ready.
    #[inline]
    pub fn is_nearly_full(&self) -> bool {
        self.list.arena().used_bytes() >= self.write_buffer_size / 4 * 3
    }

    /// Memory that entries will soon come to and that is not resident; each part is named once, for
    /// [`MemTable::prefault`] on another thread. Mostly nothing.
    #[inline]
    pub fn prefault_range(&self) -> Option<PrefaultRange> {
        self.list.arena().ahead()
    }

    /// Makes it resident; entries may come meanwhile. Memory that has ordinary pages so far, because few entries came, has huge ones from here on.
    pub fn prefault(&self, ahead: &PrefaultRange) {
        self.list.arena().prefault(ahead);
        if let Some(index) = &self.index {
            index.use_huge_pages();
        }
    }

    /// Gives the memory that no entry takes yet back to the operating system; it comes again as entries come, at a page fault
    /// each time.
    pub fn give_back_unused(&self) {
        self.list.arena().give_back_unused();
    }

    /// The type of entries that delete their key.
    #[inline]
    pub fn deletion(&self) -> ValueType {
        match self.list.comparator().timestamp_len() {
            0 => ValueType::Deletion,
            _ => ValueType::DeletionWithTimestamp,
        }
    }

    /// The key order.
    pub fn comparator(&self) -> &Comparator {
        self.list.comparator()
    }

    /// Versions inserted.
    pub fn num_entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Range tombstones among them.
    pub fn num_range_deletions(&self) -> u64 {
        self.range_tombstones.len() as u64
    }

    /// Deletions among them, of keys and of ranges.
    pub fn num_deletes(&self) -> u64 {
        self.deletes.load(Ordering::Relaxed)
    }

    /// Bytes of all entries, with what the list adds to each.
    pub fn data_size(&self) -> u64 {
        (self.list.arena().used_bytes() + self.range_tombstones.size_bytes()) as u64
    }

    /// True if it holds an entry with a sequence number above `seq`. Looks at all.
    pub fn holds_newer_than(&self, seq: SeqNum) -> bool {
        self.nodes().any(|node| node.trailer().seq() > seq)
            || self.range_tombstones().iter().any(|set| set.iter().any(|f| f.newest(SeqNum::MAX) > seq))
    }

    /// The sequence number that was inserted first, which is the smallest, as they are given in order; `None` if it is empty.
    /// Source: RocksDB `MemTable::GetFirstSequenceNumber`.
    pub fn first_seq(&self) -> Option<SeqNum> {
        let first = self.first_seq.load(Ordering::Relaxed);
        (first != u64::MAX).then_some(SeqNum(first))
    }

    /// Inserts everything with sequence numbers up to `seq` into `target` as well.
    pub fn copy_up_to(&self, seq: SeqNum, target: &MemTable) {
        for node in self.nodes().filter(|node| node.trailer().seq() <= seq) {
            let value_type = node.trailer().value_type().expect("inserted with a valid type");
            target.insert(node.trailer().seq(), value_type, node.user_key(), node.value());
        }
        for set in self.range_tombstones() {
            for tombstone in set.tombstones().filter(|tombstone| tombstone.seq <= seq) {
                target.insert_range_tombstone(tombstone.seq, &tombstone.begin, &tombstone.end);
            }
        }
        if !target.is_empty() {
            // Copied in the order of keys.
            let first = self.first_seq.load(Ordering::Relaxed).min(target.first_seq.load(Ordering::Relaxed));
            target.first_seq.store(first, Ordering::Relaxed);
        }
    }

    /// All nodes, in order.
    fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let node_at = |reference: Ref| (reference != NULL).then(|| self.list.node(reference));
        std::iter::successors(node_at(self.list.first()), move |node| node_at(node.next()))
    }

    /// True if nothing was inserted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.first() == NULL && self.range_tombstones.size_bytes() == 0
    }
}

/// Lengths of the mappings a memtable of `write_buffer_size` bytes begins with.
pub(crate) fn mapping_sizes(write_buffer_size: u64) -> [usize; 2] {
    let size = clamped(write_buffer_size);
    [Arena::chunk_bytes(size), HashIndex::table_bytes(size)]
}

fn clamped(write_buffer_size: u64) -> usize {
    usize::try_from(write_buffer_size).unwrap_or(usize::MAX / 4)
}

/// Iterator over a memtable in internal key order. Keys and values it gives lie in the memtable.
pub struct MemTableIter {
    memtable: Arc<MemTable>,
    node: Ref,
    /// Where the last search came by: nodes know what follows them, and what is before them is near that.
    before: Path,
}

impl MemTableIter {
    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.node != NULL
    }

    #[inline]
    fn node(&self) -> Node<'_> {
        assert!(self.node != NULL, "iterator is not valid");
        self.memtable.list.node(self.node)
    }

    /// The internal key. Panics unless valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The value. Panics unless valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.node().value()
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.node = self.memtable.list.first();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.node = self.memtable.list.last();
    }

    /// To the first entry at or after (`user_key`, `trailer`).
    pub fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        let list = &self.memtable.list;
        self.node = list.search(&list.target(user_key, trailer), &mut self.before);
    }

    /// As [`MemTableIter::seek`]; false if it is known that no key has `prefix`, which `user_key` has by `extractor`: the
    /// iterator is then not positioned.
    pub fn seek_within(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
        extractor: &PrefixExtractor,
        prefix: &[u8],
    ) -> bool {
        if self.memtable.prefixes.as_ref().is_some_and(|bloom| !bloom.may_contain(extractor, prefix)) {
            self.node = NULL;
            return false;
        }
        self.seek(user_key, trailer);
        true
    }

    /// To the last entry at or before (`user_key`, `trailer`).
    pub fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        let list = &self.memtable.list;
        let target = list.target(user_key, trailer);
        let at_or_after = list.search_near(&target, &mut self.before);
        let is_target = at_or_after != NULL && {
            let node = list.node(at_or_after);
            node.trailer() == trailer && node.user_key() == user_key
        };
        self.node = if is_target { at_or_after } else { list.last_before(&self.before) };
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        self.node = self.node().next();
        if self.node != NULL {
            // The node after is fetched while this one is looked at.
            let after = self.node().next();
            if after != NULL {
                self.memtable.list.node(after).prefetch();
            }
        }
    }

    /// To the previous entry. Panics unless valid. Costs a short search.
    pub fn prev(&mut self) {
        let list = &self.memtable.list;
        let node = list.node(self.node);
        list.search_near(&list.target(node.user_key(), node.trailer()), &mut self.before);
        self.node = list.last_before(&self.before);
    }
}
