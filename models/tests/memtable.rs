//! Models of the memtable: two threads insert, one reads.
#![cfg(loom)]

use loom::thread;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
use outcrop_models::arena::{Arena, NULL};
use outcrop_models::memtable::MemTable;
use outcrop_models::pool::MemTablePool;
use outcrop_models::skiplist::SkipList;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Runs `model` in every order with at most so many switches of threads that run on.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The number that makes [`SkipList::insert`] choose a height of 1 or 2.
const HEIGHTS: [u64; 3] = [0, 0b01, 0b100];

/// That of every entry of a list.
fn trailer() -> Trailer {
    Trailer::new(SeqNum::ZERO, ValueType::Value)
}

/// All keys of the list with their values, as a reader without a lock sees them.
fn scan(list: &SkipList) -> Vec<(u8, u8)> {
    let mut seen = Vec::new();
    let mut reference = list.first();
    while reference != NULL {
        let node = list.node(reference);
        seen.push((node.user_key()[0], node.value()[0]));
        reference = node.next();
    }
    seen
}

fn insert(list: &SkipList, key: u8, height: usize) {
    list.insert(&list.target(&[key], trailer()), &[key + 100], HEIGHTS[height]);
    assert!(scan(list).contains(&(key, key + 100)), "an insert that returned is seen");
}

#[test]
fn a_scan_sees_whole_nodes_in_order() {
    explore(3, || {
        let list = SkipList::new(Comparator::Bytewise, Arena::new(0, Arc::new(MemTablePool)));
        list.insert(&list.target(&[5], trailer()), &[105], HEIGHTS[2]);
        let list = Arc::new(list);
        let writers = [(3, 2), (4, 2)].map(|(key, height)| {
            let list = list.clone();
            thread::spawn(move || insert(&list, key, height))
        });
        let seen = scan(&list);
        assert!(seen.is_sorted(), "{seen:?}");
        assert!(seen.iter().all(|(key, value)| *value == key + 100), "{seen:?}");
        assert!(seen.contains(&(5, 105)));
        let found = list.seek(&list.target(&[4], trailer()));
        assert!(list.node(found).user_key()[0] >= 4);
        list.node(found).next();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(scan(&list), [(3, 103), (4, 104), (5, 105)]);
    });
}

fn newest(memtable: &MemTable, key: &[u8], snapshot: u64) -> Option<u64> {
    let mut found = None;
    memtable.get(&LookupKey::new(key), SeqNum(snapshot), |seq, _, value| {
        assert_eq!(value, [seq.0 as u8], "a version with another's value");
        found = Some(seq.0);
        ControlFlow::Break(())
    });
    found
}

#[test]
fn the_hash_index_leads_to_every_version_that_is_published() {
    explore(3, || {
        let memtable = MemTable::new(Comparator::Bytewise, 0, &Arc::new(MemTablePool));
        let memtable = Arc::new(memtable);
        let writers = [1, 2].map(|seq| {
            let memtable = memtable.clone();
            thread::spawn(move || {
                memtable.insert(SeqNum(seq), ValueType::Value, b"k", &[seq as u8]);
                assert_eq!(newest(&memtable, b"k", seq), Some(seq), "an insert that returned is found");
            })
        });
        assert!(newest(&memtable, b"k", 2).is_none_or(|seq| seq <= 2));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!((newest(&memtable, b"k", 1), newest(&memtable, b"k", 9)), (Some(1), Some(2)));
        let mut iter = memtable.iter();
        iter.seek_to_first();
        assert_eq!(split(iter.key()).1.seq(), SeqNum(2), "newest first");
    });
}

#[test]
fn a_new_chunk_is_there_before_its_memory_is_given_out() {
    explore(3, || {
        let arena = Arc::new(Arena::new(0, Arc::new(MemTablePool)));
        // The first chunk is nearly full: both threads find no room in it, and the second has room for both.
        let len = Arena::chunk_bytes(0) / 3;
        (0..2).for_each(|_| _ = arena.allocate(len));
        let use_it = move |arena: &Arena, tag: u8| {
            let reference = arena.allocate(len);
            let start = arena.pointer(reference);
            // An offset in a chunk of address 0.
            assert!(start as usize > 1 << 30, "memory that is not there yet");
            // SAFETY: `len` bytes that were given out to this thread alone, which the next line checks.
            unsafe { start.write_bytes(tag, len) };
            (start as usize, reference)
        };
        let arena_of_thread = arena.clone();
        let thread = thread::spawn(move || use_it(&arena_of_thread, 1));
        let (ours, our_reference) = use_it(&arena, 2);
        let (theirs, their_reference) = thread.join().unwrap();
        assert!(ours.abs_diff(theirs) >= len && our_reference != their_reference, "given out twice");
    });
}

#[test]
fn a_range_tombstone_is_found_once_its_number_is_published() {
    explore(3, || {
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 0, &Arc::new(MemTablePool)));
        let published = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let (memtable_of_thread, published_of_thread) = (memtable.clone(), published.clone());
        let writer = thread::spawn(move || {
            for seq in 1..=3 {
                memtable_of_thread.insert_range_tombstone(SeqNum(seq), b"a", &[b'e' - seq as u8]);
                published_of_thread.store(seq, loom::sync::atomic::Ordering::Release);
            }
        });
        let snapshot = published.load(loom::sync::atomic::Ordering::Acquire);
        assert_eq!(memtable.covering(b"a", SeqNum(snapshot)), SeqNum(snapshot));
        // Tombstones after the snapshot are not seen, whether they are there yet or not.
        assert_eq!(memtable.covering(b"b", SeqNum(snapshot)), SeqNum(snapshot.min(2)));
        writer.join().unwrap();
        assert_eq!(memtable.covering(b"a", SeqNum(9)), SeqNum(3));
    });
}
