//! The memtable against a sorted map, alone and from many threads.

use crate::{MemTable, MemTableIter, MemTablePool, MemoryAccount};
use outcrop_base::keys::{Trailer, internal_key, split};
use outcrop_base::{Comparator, LookupKey, SeqNum, UserComparator, ValueType};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A small generator, enough to vary tests by seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn pool() -> Arc<MemTablePool> {
    Arc::new(MemTablePool::new(1 << 20))
}

fn newest(memtable: &MemTable, key: &[u8], snapshot: u64) -> Option<(u64, Vec<u8>)> {
    let mut found = None;
    memtable.get(&LookupKey::new(key), SeqNum(snapshot), |seq, _, value| {
        found = Some((seq.0, value.to_vec()));
        ControlFlow::Break(())
    });
    found
}

fn forward(iter: &mut MemTableIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut out = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        out.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    out
}

/// The internal key in an order that a map keeps: user key, then newest first.
type Entry = (Vec<u8>, std::cmp::Reverse<u64>);

fn check_against_model(comparator: Comparator, write_buffer_size: u64, seed: u64, inserts: u64) {
    let reversed = matches!(comparator, Comparator::ReverseBytewise);
    let memtable = Arc::new(MemTable::new(comparator, write_buffer_size, &pool()));
    let mut model: BTreeMap<Entry, Vec<u8>> = BTreeMap::new();
    let mut rng = Rng(seed);
    for seq in 1..=inserts {
        let key_number = rng.next() % (inserts / 3).max(1);
        let key = format!("key{key_number:05}").into_bytes();
        let key = if rng.next().is_multiple_of(9) { key[..(rng.next() % 9) as usize].to_vec() } else { key };
        let value = vec![seq as u8; (rng.next() % 90) as usize];
        memtable.insert(SeqNum(seq), ValueType::Value, &key, &value);
        model.insert((key, std::cmp::Reverse(seq)), value);
    }
    let mut expected: Vec<(Vec<u8>, Vec<u8>)> = model
        .iter()
        .map(|((key, seq), value)| (internal_key(key, SeqNum(seq.0), ValueType::Value), value.clone()))
        .collect();
    if reversed {
        expected.sort_by(|a, b| Comparator::ReverseBytewise.compare_internal(&a.0, &b.0));
    }
    let mut iter = memtable.iter();
    assert_eq!(forward(&mut iter), expected, "seed {seed}");

    iter.seek_to_last();
    for (key, value) in expected.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (key.as_slice(), value.as_slice()), "seed {seed}");
        iter.prev();
    }
    assert!(!iter.valid());

    for _ in 0..inserts.min(300) {
        let (ikey, _) = &expected[(rng.next() % expected.len() as u64) as usize];
        let (key, trailer) = split(ikey);
        iter.seek(key, trailer);
        assert_eq!(iter.key(), ikey);
        iter.seek_for_prev(key, trailer);
        assert_eq!(iter.key(), ikey);
        let snapshot = rng.next() % (inserts + 1);
        let visible = model
            .range((key.to_vec(), std::cmp::Reverse(snapshot))..)
            .next()
            .filter(|((other, _), _)| other == key)
            .map(|((_, seq), value)| (seq.0, value.clone()));
        assert_eq!(newest(&memtable, key, snapshot), visible, "key {key:?} at {snapshot}, seed {seed}");
    }
    assert_eq!(newest(&memtable, b"key99999-absent", inserts), None);
    assert_eq!(memtable.num_entries(), inserts);
}

const INSERTS: u64 = if cfg!(miri) { 60 } else { 3000 };

#[test]
fn agrees_with_a_sorted_map() {
    for seed in 1..5 {
        check_against_model(Comparator::Bytewise, 1 << 20, seed, INSERTS);
        check_against_model(Comparator::ReverseBytewise, 1 << 20, seed, INSERTS);
    }
}

/// Backward moves begin where the last search came by: from there, from far away, and with entries inserted meanwhile.
#[test]
fn random_moves_agree_with_a_sorted_map_while_it_grows() {
    for seed in 1..if cfg!(miri) { 2 } else { 30 } {
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 1 << 18, &pool()));
        let mut model: BTreeMap<Entry, ()> = BTreeMap::new();
        let mut rng = Rng(seed);
        let mut iter = memtable.iter();
        let mut at: Option<Entry> = None;
        for seq in 1..=INSERTS / 2 {
            let entry = (format!("{:04}", rng.next() % 400).into_bytes(), std::cmp::Reverse(seq));
            memtable.insert(SeqNum(seq), ValueType::Value, &entry.0, b"");
            model.insert(entry, ());
            for _ in 0..rng.next() % 4 {
                let goal = (
                    format!("{:04}", rng.next() % 400).into_bytes(),
                    std::cmp::Reverse(rng.next() % (seq + 2)),
                );
                let trailer = Trailer::new(SeqNum(goal.1.0), ValueType::Value);
                at = match (rng.next() % 8, at.take()) {
                    (0, _) => {
                        iter.seek(&goal.0, trailer);
                        model.range(goal..).next()
                    }
                    (1, _) => {
                        iter.seek_for_prev(&goal.0, trailer);
                        model.range(..=goal).next_back()
                    }
                    (2, Some(here)) => {
                        iter.next();
                        model.range((Bound::Excluded(here), Bound::Unbounded)).next()
                    }
                    (3, Some(here)) => {
                        // As when an iterator turns around.
                        iter.seek_for_prev(&here.0, Trailer::new(SeqNum(here.1.0), ValueType::Value));
                        model.range(..=here).next_back()
                    }
                    (_, Some(here)) => {
                        iter.prev();
                        model.range(..here).next_back()
                    }
                    (_, None) => {
                        iter.seek_to_last();
                        model.iter().next_back()
                    }
                }
                .map(|(entry, ())| entry.clone());
                let found = iter.valid().then(|| iter.key().to_vec());
                let expected =
                    at.as_ref().map(|(key, seq)| internal_key(key, SeqNum(seq.0), ValueType::Value));
                assert_eq!(found, expected, "seed {seed}, {seq} entries");
            }
        }
    }
}

#[test]
fn outgrows_its_first_chunk_and_its_index() {
    check_against_model(Comparator::Bytewise, 4096, 7, INSERTS);
}

/// Compares ASCII letters without regard to case.
struct CaseFold;

impl UserComparator for CaseFold {
    fn name(&self) -> &str {
        "test.CaseFold"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn a_user_order_may_call_different_bytes_equal() {
    let memtable = MemTable::new(Comparator::User(Arc::new(CaseFold)), 1 << 16, &pool());
    memtable.insert(SeqNum(1), ValueType::Value, b"Apple", b"1");
    memtable.insert(SeqNum(2), ValueType::Value, b"aPPLE", b"2");
    assert_eq!(newest(&memtable, b"APPLE", 9), Some((2, b"2".to_vec())));
    assert_eq!(newest(&memtable, b"APPLE", 1), Some((1, b"1".to_vec())));
}

#[test]
fn empty_and_huge_entries_are_kept_whole() {
    let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 1 << 16, &pool()));
    let huge = vec![0xAB; if cfg!(miri) { 40_000 } else { 3 << 20 }];
    memtable.insert(SeqNum(1), ValueType::Value, b"", b"");
    memtable.insert(SeqNum(2), ValueType::Value, &huge, b"small");
    memtable.insert(SeqNum(3), ValueType::Value, b"k", &huge);
    assert_eq!(newest(&memtable, b"", 9), Some((1, Vec::new())));
    assert_eq!(newest(&memtable, &huge, 9), Some((2, b"small".to_vec())));
    assert_eq!(newest(&memtable, b"k", 9).unwrap().1, huge);
    assert_eq!(forward(&mut memtable.iter()).len(), 3);
    assert!(memtable.should_seal());
    assert!(memtable.memory_usage() >= 2 * huge.len());
}

#[test]
fn all_versions_are_visited_newest_first_below_the_snapshot() {
    let memtable = MemTable::new(Comparator::Bytewise, 1 << 16, &pool());
    for seq in [3u64, 1, 4, 2] {
        memtable.insert(SeqNum(seq), ValueType::Merge, b"k", &[seq as u8]);
    }
    memtable.insert(SeqNum(9), ValueType::Deletion, b"l", b"");
    let mut seen = Vec::new();
    memtable.get(&LookupKey::new(b"k"), SeqNum(3), |seq, value_type, value| {
        assert_eq!((value_type, value), (ValueType::Merge, &[seq.0 as u8][..]));
        seen.push(seq.0);
        ControlFlow::Continue(())
    });
    assert_eq!(seen, [3, 2, 1]);
    assert_eq!(memtable.num_deletes(), 1);
}

#[test]
fn concurrent_inserts_of_the_same_keys_are_all_found() {
    let (threads, per_thread): (u64, u64) = if cfg!(miri) { (3, 40) } else { (4, 20_000) };
    let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 1 << 20, &pool()));
    let keys = per_thread / 4;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let memtable = &memtable;
            scope.spawn(move || {
                for i in 0..per_thread {
                    let seq = 1 + i * threads + thread;
                    let key = (i % keys).to_be_bytes();
                    memtable.insert(SeqNum(seq), ValueType::Value, &key, &seq.to_le_bytes());
                    let (found, value) = newest(memtable, &key, seq).expect("just inserted");
                    assert_eq!(value, found.to_le_bytes());
                    assert_eq!(found, seq, "the version inserted last must be seen at its own number");
                }
            });
        }
        let memtable = &memtable;
        scope.spawn(move || {
            for _ in 0..if cfg!(miri) { 2 } else { 20 } {
                let mut iter = memtable.iter();
                iter.seek_to_first();
                let mut last: Option<Vec<u8>> = None;
                while iter.valid() {
                    if let Some(last) = &last {
                        assert!(Comparator::Bytewise.compare_internal(last, iter.key()).is_lt());
                    }
                    last = Some(iter.key().to_vec());
                    iter.next();
                }
            }
        });
    });
    assert_eq!(memtable.num_entries(), threads * per_thread);
    for key in 0..keys {
        let newest_seq = (0..per_thread)
            .filter(|i| i % keys == key)
            .flat_map(|i| (0..threads).map(move |thread| 1 + i * threads + thread))
            .max()
            .unwrap();
        assert_eq!(newest(&memtable, &key.to_be_bytes(), u64::MAX >> 8).unwrap().0, newest_seq);
    }
    let mut iter = memtable.iter();
    iter.seek(&0u64.to_be_bytes(), Trailer::new(SeqNum::MAX, ValueType::FOR_SEEK));
    assert!(iter.valid());
}

#[test]
fn giving_back_what_is_unused_disturbs_no_insert() {
    let memtable = MemTable::new(Comparator::Bytewise, 4 << 20, &pool());
    let count = if cfg!(miri) { 50 } else { 6000u32 };
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let memtable = &memtable;
            scope.spawn(move || {
                for i in 0..count {
                    let key = (i * 3 + thread).to_be_bytes();
                    memtable.insert(SeqNum(1), ValueType::Value, &key, &key.repeat(20));
                }
            });
        }
        for _ in 0..200 {
            memtable.give_back_unused();
            std::thread::yield_now();
        }
    });
    for i in 0..count * 3 {
        let key = i.to_be_bytes();
        assert_eq!(newest(&memtable, &key, 1), Some((1, key.repeat(20))));
    }
}

/// Bytes of this process that are in memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn memory_that_is_not_used_can_be_given_back() {
    const SIZE: u64 = 512 << 20;
    let pool = Arc::new(MemTablePool::for_memtables(SIZE, 1));
    pool.prepare(SIZE);
    let memtable = MemTable::new(Comparator::Bytewise, SIZE, &pool);
    let before = resident_bytes();
    memtable.insert(SeqNum(1), ValueType::Value, b"key", b"value");
    memtable.give_back_unused();
    // Tests beside this one take some, too.
    let given_back = before.saturating_sub(resident_bytes());
    assert!(given_back > 64 << 20, "only {given_back} bytes");
    memtable.insert(SeqNum(2), ValueType::Value, b"another", b"one");
    assert_eq!(newest(&memtable, b"key", 2), Some((1, b"value".to_vec())));
    assert_eq!(newest(&memtable, b"another", 2), Some((2, b"one".to_vec())));
    // It comes again a part at a time, each named once, ahead of the entries: of those after the first.
    let before = resident_bytes();
    let mut seqs = 3..20_000;
    let (few, ahead) = seqs
        .by_ref()
        .find_map(|seq| {
            memtable.insert(SeqNum(seq), ValueType::Value, b"another", &[7; 1000]);
            memtable.prefault_range().map(|ahead| (seq, ahead))
        })
        .unwrap();
    assert!((900..1100).contains(&few), "after {few} entries of 1 kB: half of 2 MiB");
    assert!(memtable.prefault_range().is_none(), "named once");
    memtable.prefault(&ahead);
    assert_eq!(newest(&memtable, b"key", 2), Some((1, b"value".to_vec())));
    let mut parts = 0;
    for seq in seqs {
        memtable.insert(SeqNum(seq), ValueType::Value, b"key", &[7; 1000]);
        while let Some(ahead) = memtable.prefault_range() {
            memtable.prefault(&ahead);
            parts += 1;
        }
    }
    assert!((8..=12).contains(&parts), "20 MB in {parts} parts of half of 4 MiB");
    assert!(resident_bytes() < before + (256 << 20), "not all of it");

    let ready = Arc::new(MemTablePool::for_memtables(8 << 20, 1));
    ready.prepare(8 << 20);
    assert!(MemTable::new(Comparator::Bytewise, 8 << 20, &ready).prefault_range().is_none());
    let fresh = Arc::new(MemTablePool::new(0));
    let asks = |write_buffer_size: u64, entries: u64| {
        let memtable = MemTable::new(Comparator::Bytewise, write_buffer_size, &fresh);
        (1..=entries).any(|seq| {
            memtable.insert(SeqNum(seq), ValueType::Value, b"key", &[7; 1000]);
            memtable.prefault_range().is_some()
        })
    };
    assert!(!asks(8 << 20, 200), "few entries");
    assert!(asks(8 << 20, 300));
    assert!(!asks(64 << 10, 300), "too small");
}

#[test]
fn the_first_sequence_number_is_known_without_looking_at_the_entries() {
    let memtable = || MemTable::new(Comparator::Bytewise, 1 << 20, &pool());
    let source = memtable();
    assert_eq!(source.first_seq(), None);
    source.insert_range_tombstone(SeqNum(5), b"m", b"n");
    source.insert(SeqNum(6), ValueType::Value, b"z", b"1");
    source.insert(SeqNum(7), ValueType::Value, b"a", b"2");
    assert_eq!(source.first_seq(), Some(SeqNum(5)));
    // A copy is made in another order than that of the numbers.
    let copy = memtable();
    source.copy_up_to(SeqNum(7), &copy);
    assert_eq!(copy.first_seq(), Some(SeqNum(5)));
    let nothing = memtable();
    source.copy_up_to(SeqNum(4), &nothing);
    assert_eq!(nothing.first_seq(), None);
}

/// Counts what it is told: bytes in use, of those the ones that are flushed.
#[derive(Default)]
struct Account(std::sync::Mutex<(u64, u64)>);

impl MemoryAccount for Account {
    fn budget(&self) -> u64 {
        8 << 20
    }

    fn grew(&self, bytes: u64) {
        self.0.lock().unwrap().0 += bytes;
    }

    fn sealed(&self, _bytes: u64) {}

    fn flushed(&self, bytes: u64) {
        self.0.lock().unwrap().1 += bytes;
    }

    fn freed(&self, bytes: u64, flushed: bool) {
        let mut told = self.0.lock().unwrap();
        told.0 -= bytes;
        told.1 -= if flushed { bytes } else { 0 };
    }
}

#[test]
fn an_exact_pool_holds_nothing_and_its_account_knows_what_is_flushed() {
    let account = Arc::new(Account::default());
    let told = || *account.0.lock().unwrap();
    let pool = Arc::new(MemTablePool::exact(account.clone()));
    pool.prepare(64 << 20);
    assert_eq!(pool.idle_bytes(), 0);
    let memtables = [(); 2].map(|()| {
        let memtable = MemTable::new(Comparator::Bytewise, 64 << 20, &pool);
        for seq in 1..10_000u64 {
            // More than a chunk, some too large for one.
            let value = [7; 40_000];
            let len = if seq % 1000 == 0 { value.len() } else { 100 };
            memtable.insert(SeqNum(seq), ValueType::Value, &seq.to_be_bytes(), &value[..len]);
        }
        memtable.count_memory();
        memtable
    });
    let bytes = memtables[0].memory_usage() as u64;
    assert!(bytes > 1 << 20);
    assert_eq!(told(), (2 * bytes, 0), "the index counts as a whole");
    assert_eq!(
        newest(&memtables[0], &3000u64.to_be_bytes(), 10_000).map(|found| found.1.len()),
        Some(40_000)
    );
    let [first, second] = memtables;
    first.count_flushed();
    first.count_flushed();
    assert_eq!(told(), (2 * bytes, bytes), "counted once");
    drop(first);
    assert_eq!(told(), (bytes, 0));
    drop(second);
    assert_eq!((told(), pool.idle_bytes()), ((0, 0), 0));
}
