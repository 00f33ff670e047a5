//! Nanoseconds per memtable operation, on a table of 64 MiB with pairs of 20 and 400 bytes.
//!
//! `cargo bench -p outcrop-memtable`; run by `cargo test` on a few entries to see that it works.

use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
use outcrop_memtable::{MemTable, MemTablePool};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn scramble(i: u64, n: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) % n
}

fn report(what: &str, count: u64, start: Instant) {
    println!("{what:<24} {:>8.1} ns/op", start.elapsed().as_nanos() as f64 / count as f64);
}

/// An insert as a database does it, whose upkeep makes memory resident.
fn insert(memtable: &MemTable, i: u64, key: &[u8], value: &[u8]) {
    memtable.insert(SeqNum(i + 1), ValueType::Value, key, value);
    if let Some(ahead) = memtable.prefault_range() {
        memtable.prefault(&ahead);
    }
}

fn main() {
    let tiny = !std::env::args().any(|argument| argument == "--bench");
    let count: u64 = if tiny { 2_000 } else { 140_000 };
    let value = [7u8; 400];
    let pool = Arc::new(MemTablePool::new(0));

    let memtable = MemTable::new(Comparator::Bytewise, 64 << 20, &pool);
    let start = Instant::now();
    for i in 0..count {
        insert(&memtable, i, &key(i), &value);
    }
    report("insert ascending", count, start);

    let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 64 << 20, &pool));
    let start = Instant::now();
    for i in 0..count {
        insert(&memtable, i, &key(scramble(i, 1 << 40)), &value);
    }
    report("insert random", count, start);

    let mut hits = 0;
    let start = Instant::now();
    for i in 0..count {
        let key = key(scramble(scramble(i, count), 1 << 40));
        memtable.get(&LookupKey::new(&key), SeqNum::MAX, |_, _, value| {
            hits += u64::from(black_box(value)[0] == 7);
            ControlFlow::Break(())
        });
    }
    report("get, present", count, start);
    assert_eq!(hits, count, "every key inserted is found");

    let start = Instant::now();
    for i in 0..count {
        let key = key((1 << 41) + scramble(i, 1 << 40));
        memtable.get(&LookupKey::new(&key), SeqNum::MAX, |_, _, _| panic!("absent key found"));
    }
    report("get, absent", count, start);

    let mut iter = memtable.iter();
    let start = Instant::now();
    iter.seek_to_first();
    let mut seen = 0;
    while iter.valid() {
        seen += u64::from(black_box(iter.value())[0] == 7);
        iter.next();
    }
    report("next", count, start);
    assert_eq!(seen, count, "the iterator sees every entry");
}
