//! `atomic_flush`: power is lost at every change while column families are written past the WAL. The rows afterwards
//! are all that were written up to one point, in all of them, no earlier than the last flush that was acknowledged.

use crate::harness::{Rows, contents, creating, descriptor};
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

const FAMILIES: [&str; 3] = ["default", "one", "two"];
const WRITES: usize = 90;

fn open(env: &Env, atomic_flush: bool) -> Result<Db> {
    let options = ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        level0_file_num_compaction_trigger: 2,
        ..ColumnFamilyOptions::default()
    };
    let families = FAMILIES.map(|name| descriptor(name, &options)).to_vec();
    Db::builder("/db")
        .options(DbOptions { atomic_flush, ..creating() })
        .env(env.clone())
        .column_families(families)
        .open()
}

/// The rows that write `i` adds, with their column families: every seventh write goes to all of them.
fn rows_of(i: usize) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let families = if i.is_multiple_of(7) { vec![0, 1, 2] } else { vec![i * i % 3] };
    let row = |family| (family, format!("key{i:03}").into_bytes(), vec![i as u8; 4800 * (1 + i % 2)]);
    families.into_iter().map(row).collect()
}

/// The rows after the first `n` writes.
fn state(n: usize) -> [Rows; 3] {
    let mut rows = [Rows::new(), Rows::new(), Rows::new()];
    for (family, key, value) in (0..n).flat_map(rows_of) {
        rows[family].insert(key, value);
    }
    rows
}

/// Writes until something fails. Gives how many writes were acknowledged, and how many before the last flush that was.
fn run(db: &Db) -> (usize, usize) {
    let families = FAMILIES.map(|name| db.column_family(name).unwrap());
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let mut flushed = 0;
    for i in 0..WRITES {
        let mut batch = WriteBatch::new();
        rows_of(i).iter().for_each(|(family, key, value)| batch.put_cf(&families[*family], key, value));
        if db.write_with(&mut batch, &unlogged).is_err() {
            return (i, flushed);
        }
        if i % 20 == 19 {
            // One is named, all are flushed.
            if db.flush_cf(&families[i % 3]).is_err() {
                return (i + 1, flushed);
            }
            flushed = i + 1;
        }
        // A column family that goes while a flush of it and the others may run.
        if i == 50 {
            let dropped = db.create_column_family(descriptor("dropped", &ColumnFamilyOptions::default()));
            let gone = dropped.and_then(|cf| {
                db.put_cf_with(&cf, b"k", b"v", &unlogged)?;
                db.flush_cfs(std::slice::from_ref(&cf), Wait::No)?;
                db.drop_column_family(&cf)
            });
            if gone.is_err() {
                return (i + 1, flushed);
            }
        }
    }
    (WRITES, flushed)
}

/// Loses power at change `point`; gives whether one point explains all column families, with the rows found.
fn lose_power(point: u64, atomic_flush: bool) -> std::result::Result<usize, String> {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    fs.faults().fail_at(point, EIO, true);
    let (acknowledged, flushed) = open(&env, atomic_flush).map_or((0, 0), |db| run(&db));
    fs.memory().crash();
    fs.faults().heal();
    let db = match open(&env, atomic_flush) {
        // It was created and dropped in between: a request that names it deals with the rest.
        Err(error) if error.to_string().contains("dropped") => return Ok(flushed),
        other => other.map_err(|error| format!("point {point}: {error}"))?,
    };
    let found = FAMILIES.map(|name| contents(&db, &db.column_family(name).unwrap(), &ReadOptions::default()));
    let at_least = if atomic_flush { flushed } else { 0 };
    let sizes = found.each_ref().map(Rows::len);
    (at_least..=acknowledged.saturating_add(1).min(WRITES)).find(|&n| state(n) == found).ok_or_else(|| {
        format!("point {point}: {sizes:?} rows are of no state from {at_least} to {acknowledged} writes")
    })
}

#[test]
fn unlogged_writes_come_back_up_to_one_point_in_all_column_families() {
    let mut seen = std::collections::BTreeSet::new();
    let fs = FaultyFs::new(MemoryFs::new());
    let undisturbed = open(&Env::with_file_system(Arc::new(fs.clone())), true).map(|db| run(&db));
    assert_eq!(undisturbed.unwrap().0, WRITES);
    let changes = fs.faults().changes();
    println!("{changes} changes");
    // Each point of some flushes, and later ones here and there.
    for point in (0..420).chain((420..changes + 5).step_by(4)) {
        seen.insert(lose_power(point, true).unwrap_or_else(|error| panic!("{error}")));
    }
    assert!(seen.len() > 5, "flushes made several states durable: {seen:?}");
}

#[test]
fn a_flush_of_a_column_family_that_is_empty_is_one_of_all() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, true).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put_with(b"k", b"v", &unlogged).unwrap();
    db.flush_cfs(&[db.column_family("two").unwrap()], Wait::UntilDone).unwrap();
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    drop(db);
    fs.memory().crash();
    fs.faults().heal();
    let db = open(&env, true).unwrap();
    assert!(db.get(b"k").unwrap().is_some());
}

#[test]
fn without_atomic_flush_column_families_come_back_apart() {
    assert!((0..260).any(|point| lose_power(point, false).is_err()));
}
