//! The machine loses power, or an operation fails, at every single point of a short history. What was
//! acknowledged as synced is there afterwards, and what is there is a prefix of the history.

use crate::harness::{Rng, Rows, contents, open, seed, small_options};
use outcrop::*;
use outcrop_env::faulty::{EIO, ENOSPC, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

/// One write of the history: a key with its position, so that rows tell which writes are there.
fn key(i: u64) -> Vec<u8> {
    format!("key{:03}", i * 7 % 40).into_bytes()
}

fn value(i: u64) -> Vec<u8> {
    format!("{i:06}-{}", "x".repeat((i % 90) as usize)).into_bytes()
}

const WRITES: u64 = 120;

/// The rows after the first `n` writes.
fn rows_after(n: u64) -> Rows {
    let mut rows = Rows::new();
    for i in 0..n {
        if i % 11 == 10 {
            rows.remove(&key(i));
        } else {
            rows.insert(key(i), value(i));
        }
    }
    rows
}

/// Runs the history until it ends or an operation fails. Returns how many writes were acknowledged, and up to
/// which the last synced one reaches.
fn run_history(db: &Db) -> (u64, u64) {
    let (mut acknowledged, mut synced) = (0, 0);
    for i in 0..WRITES {
        let options = WriteOptions { sync: i % 5 == 4, ..WriteOptions::default() };
        let written =
            if i % 11 == 10 { db.delete(&options, &key(i)) } else { db.put(&options, &key(i), &value(i)) };
        if written.is_err() {
            break;
        }
        acknowledged = i + 1;
        if options.sync {
            synced = i + 1;
        }
        if i % 40 == 39 && db.flush(&[db.default_column_family().clone()], true).is_err() {
            break;
        }
        if i == 90 {
            let cf = db.default_column_family().clone();
            if db.compact_range(&cf, None, None, BottommostLevelCompaction::Skip).is_err() {
                break;
            }
        }
    }
    (acknowledged, synced)
}

/// Checks that the reopened database holds the rows after some number of writes between the bounds.
fn check_prefix(env: &Env, options: &ColumnFamilyOptions, at_least: u64, at_most: u64, what: &str) {
    let db = open(env, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
    let matching = (at_least..=at_most.min(WRITES)).find(|&n| rows_after(n) == rows);
    assert!(matching.is_some(), "{what}: {} rows are of no prefix from {at_least} to {at_most}", rows.len());
    db.put(&WriteOptions::default(), b"after", b"crash").unwrap();
}

fn history_options(seed: u64) -> ColumnFamilyOptions {
    let mut options = small_options(&mut Rng(seed));
    options.write_buffer_size = 4 << 10;
    options
}

#[test]
fn a_crash_at_any_point_leaves_a_prefix_with_all_that_was_synced() {
    let seed = seed("crash", 3);
    let options = history_options(seed);
    let total = {
        let fs = FaultyFs::new(MemoryFs::new());
        let db = open(&Env::with_file_system(Arc::new(fs.clone())), &options).unwrap();
        assert_eq!(run_history(&db), (WRITES, WRITES));
        drop(db);
        fs.faults().changes()
    };
    for point in 0..total + 5 {
        for torn in [false, true] {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            // From this point on nothing reaches the device: as if the machine had stopped.
            fs.faults().fail_at(point, EIO, true);
            let (acknowledged, synced) = match open(&env, &options) {
                Ok(db) => run_history(&db),
                Err(_) => (0, 0),
            };
            if torn {
                fs.memory().crash_torn(seed ^ point)
            } else {
                fs.memory().crash()
            }
            fs.faults().heal();
            check_prefix(&env, &options, synced, acknowledged + 1, &format!("point {point}, torn {torn}"));
        }
    }
}

#[test]
fn one_failed_operation_loses_nothing_acknowledged() {
    let seed = seed("fault", 4);
    let options = history_options(seed);
    for errno in [EIO, ENOSPC] {
        for point in (0..400).step_by(3) {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            fs.faults().fail_at(point, errno, false);
            let acknowledged = match open(&env, &options) {
                Ok(db) => run_history(&db).0,
                Err(_) => 0,
            };
            fs.memory().kill();
            fs.faults().heal();
            let what = format!("point {point}, errno {errno}");
            check_prefix(&env, &options, acknowledged, acknowledged + 1, &what);
        }
    }
}
