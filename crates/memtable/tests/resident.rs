//! How much memory of the process memtables take: alone in a process of its own.

#![cfg(all(target_os = "linux", not(miri)))]

use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
use outcrop_memtable::{MemTable, MemTablePool};
use std::ops::ControlFlow;
use std::sync::Arc;

const WRITE_BUFFER: u64 = 64 << 20;

/// Anonymous memory of this process that is resident, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux 4.5");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib << 10
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// True if the row is there.
fn has(memtable: &MemTable, number: u64) -> bool {
    let mut found = false;
    memtable.get(&LookupKey::new(&key(number)), SeqNum::MAX, |_, _, value| {
        found = value == [number as u8; 100];
        ControlFlow::Break(())
    });
    found
}

#[test]
fn memtables_of_few_entries_are_small_and_growing_ones_keep_all_they_have() {
    let pool = Arc::new(MemTablePool::for_memtables(WRITE_BUFFER, 1));
    let insert = |memtable: &MemTable, number: u64| {
        memtable.insert(SeqNum(number + 1), ValueType::Value, &key(number), &[number as u8; 100]);
    };

    // As many as a database of many column families has.
    let before = resident_bytes();
    let few: Vec<MemTable> =
        (0..50).map(|_| MemTable::new(Comparator::Bytewise, WRITE_BUFFER, &pool)).collect();
    for memtable in &few {
        (0..100).for_each(|number| insert(memtable, number));
        assert!(memtable.prefault_range().is_none(), "nothing is made ready for them");
    }
    let each = resident_bytes().saturating_sub(before) / few.len() as u64;
    assert!(each < 512 << 10, "{each} bytes for 100 entries of 100 bytes");
    drop(few);

    // One that grows goes over to huge pages while it is written to and read.
    let memtable = Arc::new(MemTable::new(Comparator::Bytewise, WRITE_BUFFER, &pool));
    let mut asked = 0;
    for number in 0..100_000 {
        insert(&memtable, number);
        if let Some(ahead) = memtable.prefault_range() {
            asked += 1;
            let other = memtable.clone();
            let upkeep = std::thread::spawn(move || other.prefault(&ahead));
            while !upkeep.is_finished() {
                assert!(has(&memtable, number) && has(&memtable, number / 2), "{number}");
            }
            upkeep.join().unwrap();
        }
    }
    assert!(asked > 2, "asked {asked} times");
    assert!((0..100_000).all(|number| has(&memtable, number)));

    // Its memory is used again, and is there already.
    drop(memtable);
    assert!(pool.idle_bytes() > WRITE_BUFFER as usize);
    let again = MemTable::new(Comparator::Bytewise, WRITE_BUFFER, &pool);
    assert_eq!(pool.idle_bytes(), 0);
    insert(&again, 7);
    assert!(has(&again, 7) && !has(&again, 8));
}
