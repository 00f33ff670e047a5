//! The cost of many range tombstones for an iterator, counted in comparisons.

use crate::harness::creating;
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as MemoryOrdering};

/// Bytes in their order, each comparison counted.
struct Counting(AtomicU64);

impl UserComparator for Counting {
    fn name(&self) -> &str {
        "test.Counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // Relaxed: one thread compares at a time.
        self.0.fetch_add(1, MemoryOrdering::Relaxed);
        a.cmp(b)
    }
}

impl Counting {
    /// Comparisons while `act` runs.
    fn during(&self, act: impl FnOnce()) -> u64 {
        let before = self.0.load(MemoryOrdering::Relaxed);
        act();
        self.0.load(MemoryOrdering::Relaxed) - before
    }
}

const RANGES: u32 = 50_000;

fn key(n: u32) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

fn open(env: &Env, counting: &Arc<Counting>) -> Db {
    let options = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    let parts =
        ColumnFamilyParts { comparator: Comparator::User(counting.clone()), ..ColumnFamilyParts::default() };
    let descriptor = ColumnFamilyDescriptor::default_with(options, parts);
    Db::builder("/db").options(creating()).env(env.clone()).column_family(descriptor).open().unwrap()
}

/// The first iterator after a change, to the row after all ranges but one, and on to the end.
fn first_iterator(db: &Db, counting: &Counting, when: &str) {
    let cost = counting.during(|| {
        let mut cursor = db.cursor().unwrap();
        cursor.seek(&key(2 * RANGES - 2));
        assert_eq!(cursor.key(), key(2 * RANGES), "{when}");
        cursor.next();
        assert!(!cursor.valid());
        cursor.status().unwrap();
    });
    // A binary search or two in each memtable and table, and not a look at every range.
    assert!(cost < 1_000, "{when}: {cost} comparisons");
}

#[test]
fn the_first_iterator_after_a_change_does_not_look_at_every_range() {
    let counting = Arc::new(Counting(AtomicU64::new(0)));
    let env = Env::memory();
    let db = open(&env, &counting);
    for n in 0..RANGES {
        db.delete_range(key(2 * n), key(2 * n + 1)).unwrap();
    }
    db.put(key(2 * RANGES - 2), "hidden by nothing").unwrap();
    db.delete_range(key(2 * RANGES - 2), key(2 * RANGES - 1)).unwrap();
    db.put(key(2 * RANGES), "v").unwrap();
    first_iterator(&db, &counting, "in the memtable");
    db.flush().unwrap();
    first_iterator(&db, &counting, "after a flush");
    db.put(key(0), "hides nothing").unwrap();
    db.delete_range(key(0), key(1)).unwrap();
    db.flush().unwrap();
    first_iterator(&db, &counting, "with two tables");
    db.compact_range(None, None).unwrap();
    first_iterator(&db, &counting, "after a compaction");
}
