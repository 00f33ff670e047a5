//! The machine loses power, or an operation fails, at every single point of a short history. Writes that
//! were acknowledged as synced are there afterwards, and the rows there are a prefix of the history.

use crate::harness::{
    LEAST_MEMTABLE, Rng, Rows, active_entries, contents, creating, database_options, descriptor, open, seed,
    small_options, work_done,
};
use outcrop::*;
use outcrop_env::faulty::{EIO, ENOSPC, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

/// One write of the history: a key with its position, so that rows tell which writes are there.
fn key(i: u64) -> Vec<u8> {
    format!("key{:03}", i * 7 % 40).into_bytes()
}

/// So long that some tens of writes fill a memtable.
fn value(i: u64) -> Vec<u8> {
    format!("{i:06}-{}", "x".repeat((i * 37 % 90 * 120) as usize)).into_bytes()
}

const WRITES: u64 = 120;

/// Of them, memtables that are flushed on demand; those that fill come on top.
const FLUSHES: u64 = 3;

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
        let written = if i % 11 == 10 {
            db.delete_with(key(i), &options)
        } else {
            db.put_with(key(i), value(i), &options)
        };
        if written.is_err() {
            break;
        }
        acknowledged = i + 1;
        if options.sync {
            synced = i + 1;
        }
        if i % 40 == 39 && db.flush().is_err() {
            break;
        }
        if i == 90 {
            let cf = db.default_column_family().clone();
            if db.compact_range_cf(&cf, None, None).is_err() {
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
    db.put(b"after", b"crash").unwrap();
}

fn history_options(seed: u64) -> ColumnFamilyOptions {
    let mut options = small_options(&mut Rng::new(seed));
    options.write_buffer_size = LEAST_MEMTABLE;
    options
}

#[test]
fn a_crash_at_any_point_leaves_a_prefix_with_all_that_was_synced() {
    let seed = seed("crash", 3);
    let options = history_options(seed);
    let total = {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let db = open(&env, &options).unwrap();
        assert_eq!(run_history(&db), (WRITES, WRITES));
        let changes = fs.faults().changes();
        let work = work_done(&db, &env, "/db");
        println!("{changes} changes, {work:?}");
        assert!(work.memtables >= FLUSHES + 4, "memtables are filled by writes: {work:?}");
        changes
    };
    // Each third point of this seed; `cargo xtask crashes` has many.
    let every = if std::env::var("OUTCROP_CRASH").is_ok_and(|value| value == "all") { 1 } else { 3 };
    let points: Vec<u64> = (seed % every..total + 5).step_by(every as usize).collect();
    println!("{} cases", points.len() * 4);
    for point in points {
        for torn in [None, Some(1), Some(2), Some(3)] {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            // From this point on nothing reaches the device: as if the machine had stopped.
            fs.faults().fail_at(point, EIO, true);
            let (acknowledged, synced) = match open(&env, &options) {
                Ok(db) => run_history(&db),
                Err(_) => (0, 0),
            };
            match torn {
                Some(draw) => fs.memory().crash_torn(seed ^ (point * 4 + draw)),
                None => fs.memory().crash(),
            }
            fs.faults().heal();
            check_prefix(&env, &options, synced, acknowledged + 1, &format!("point {point}, torn {torn:?}"));
        }
    }
}

/// Writes of the history from `from` to `to`; returns how many are acknowledged and up to which the last synced one reaches.
fn write_some(db: &Db, from: u64, to: u64) -> (u64, u64) {
    let (mut acknowledged, mut synced) = (from, 0);
    for i in from..to {
        let options = WriteOptions { sync: i % 5 == 4, ..WriteOptions::default() };
        let written = match i % 11 {
            10 => db.delete_with(key(i), &options),
            _ => db.put_with(key(i), value(i), &options),
        };
        if written.is_err() {
            break;
        }
        acknowledged = i + 1;
        if options.sync {
            synced = i + 1;
        }
    }
    (acknowledged, synced)
}

#[test]
fn recovered_writes_that_stay_in_memory_last_through_crashes() {
    let seed = seed("kept in memory", 5);
    let (mut kept, mut flushed) = (0, 0);
    for memtable in [64 << 20, LEAST_MEMTABLE] {
        let open = |env: &Env, options: &ColumnFamilyOptions| {
            let mut db_options = database_options(options);
            let rows = outcrop_options::kept::DB_KEPT;
            db_options.kept.set(rows, "avoid_flush_during_recovery", "true")?;
            Db::builder("/db")
                .options(db_options)
                .env(env.clone())
                .column_family(descriptor("default", options))
                .open()
        };
        for point in 0..70 {
            let options =
                ColumnFamilyOptions { write_buffer_size: memtable, ..history_options(seed + point) };
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            let crash = |draw: u64| match draw % 4 {
                0 => fs.memory().crash(),
                draw => fs.memory().crash_torn(seed ^ (point * 16 + draw)),
            };
            // How many writes of the history are there: the least and the most.
            let (mut least, mut most) = (0, 0);
            // Each opening ends with a crash: while it opens, in the middle of its writes, or after them.
            for opening in 0..4 {
                let so_far = fs.faults().changes();
                fs.faults().fail_at(so_far + 10 + point * (opening + 1) % 71, EIO, true);
                if let Ok(db) = open(&env, &options) {
                    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
                    let found = (least..=most).find(|n| rows_after(*n) == rows);
                    let found = found.unwrap_or_else(|| {
                        panic!("point {point}, opening {opening}: no prefix from {least} to {most}")
                    });
                    let in_memory = active_entries(&db, db.default_column_family()) > 0;
                    kept += usize::from(found > 0 && in_memory);
                    flushed += usize::from(found > 0 && !in_memory);
                    let (acknowledged, synced) = write_some(&db, found, (found + 25).min(WRITES));
                    // An opening makes durable what it found.
                    least = found.max(synced);
                    most = (acknowledged + 1).min(WRITES);
                }
                crash(point + opening);
                fs.faults().heal();
            }
            let db = open(&env, &options).unwrap_or_else(|error| panic!("point {point}: {error}"));
            let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
            let found = (least..=most).find(|n| rows_after(*n) == rows);
            assert!(found.is_some(), "point {point}: no prefix from {least} to {most}");
            db.flush().unwrap();
            assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()), rows);
        }
    }
    println!("{kept} openings kept what they replayed in memory, {flushed} flushed it");
    assert!(kept > 60 && flushed > 5, "{kept} kept, {flushed} flushed");
}

/// Where files end each by itself, an older WAL may be lost that nobody synced, and a newer one be there: rows of unsynced writes
/// come with gaps then. That is a known limit (docs/reliability.md). All that was synced is there, and no key has a value of before.
#[test]
fn what_was_synced_lasts_where_files_end_each_by_itself() {
    let seed = seed("files apart", 7);
    let options = history_options(seed);
    let mut cases = 0;
    for point in (seed % 9..820).step_by(9) {
        for draw in 0..4 {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            fs.faults().fail_at(point, EIO, true);
            let (acknowledged, synced) = match open(&env, &options) {
                Ok(db) => run_history(&db),
                Err(_) => (0, 0),
            };
            fs.memory().crash_apart(seed ^ (point * 4 + draw));
            fs.faults().heal();
            let what = format!("point {point}, draw {draw}");
            let db = open(&env, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
            let later = (synced..=(acknowledged + 1).min(WRITES)).map(rows_after).collect::<Vec<_>>();
            for key in (0..WRITES).map(key) {
                let found = rows.get(&key);
                assert!(later.iter().any(|rows| rows.get(&key) == found), "{what}: {key:?}, {synced} synced");
            }
            cases += 1;
        }
    }
    println!("{cases} cases");
}

/// Keys so long that an edit of the MANIFEST goes across sectors, pages and, with two column families, blocks of the log.
fn long_key(i: u64, len: usize) -> Vec<u8> {
    format!("{i:04}{}", "k".repeat(len)).into_bytes()
}

/// Flushes after each write, with both column families in one atomic group of edits. Returns how many were acknowledged.
fn run_flushes(env: &Env, key_len: usize) -> u64 {
    let options = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    let mut acknowledged = 0;
    let opened =
        Db::builder("/db").options(flushing()).env(env.clone()).column_families(families_of(&options)).open();
    let Ok(db) = opened else { return acknowledged };
    for i in 0..8 {
        for name in ["default", "two"] {
            let cf = db.column_family(name).unwrap();
            // An error shows in the flush.
            let _ = db.put_cf(&cf, long_key(i, key_len), b"value");
        }
        if db.flush_cfs(&db.column_families(), Wait::UntilDone).is_err() {
            break;
        }
        acknowledged = i + 1;
    }
    acknowledged
}

fn flushing() -> DbOptions {
    DbOptions { atomic_flush: true, ..creating() }
}

fn families_of(options: &ColumnFamilyOptions) -> Vec<ColumnFamilyDescriptor> {
    ["default", "two"].map(|name| descriptor(name, options)).into()
}

/// The last write of a MANIFEST was never acknowledged, whatever sectors of it are there: the database opens without it.
#[test]
fn a_torn_last_write_of_the_manifest_is_its_end() {
    let seed = seed("torn manifest", 5);
    let total = |key_len: usize| {
        let fs = FaultyFs::new(MemoryFs::new());
        fs.faults().only(Some("MANIFEST"));
        assert_eq!(run_flushes(&Env::with_file_system(Arc::new(fs.clone())), key_len), 8);
        fs.faults().changes()
    };
    for key_len in [30, 300, 3000] {
        let points = total(key_len);
        println!("{} cases", points * 12);
        for point in 0..points {
            for draw in 0..12 {
                let fs = FaultyFs::new(MemoryFs::new());
                let env = Env::with_file_system(Arc::new(fs.clone()));
                fs.faults().only(Some("MANIFEST"));
                fs.faults().fail_at(point, EIO, true);
                let acknowledged = run_flushes(&env, key_len);
                fs.memory().crash_torn(seed.wrapping_add((point * 12 + draw) << 20 ^ key_len as u64));
                fs.faults().heal();
                let what = format!("keys of {key_len} bytes, change {point} of MANIFESTs, draw {draw}");
                let families = families_of(&ColumnFamilyOptions::default());
                let db = Db::builder("/db")
                    .options(flushing())
                    .env(env)
                    .column_families(families)
                    .open()
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                for i in 0..acknowledged {
                    for cf in db.column_families() {
                        let got = db.get_cf(&cf, long_key(i, key_len)).unwrap();
                        assert_eq!(got.as_deref(), Some(&b"value"[..]), "{what}: {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn one_failed_operation_loses_nothing_acknowledged() {
    let seed = seed("fault", 4);
    let options = history_options(seed);
    for errno in [EIO, ENOSPC] {
        for point in (0..850).step_by(7) {
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

/// Leaves a table, a closed WAL and an open one that nobody has synced, and a MANIFEST that was written last. Returns how many
/// rows there are.
fn leave_two_unsynced_wals(env: &Env, fs: &FaultyFs, track: bool) -> u64 {
    // Three memtables have to be full before one is flushed.
    let options = ColumnFamilyOptions {
        write_buffer_size: LEAST_MEMTABLE,
        max_write_buffer_number: 6,
        min_write_buffer_number_to_merge: 3,
        ..ColumnFamilyOptions::default()
    };
    let db = open_tracking(env, &options, track);
    let cf = db.default_column_family().clone();
    db.put(b"row000", b"flushed").unwrap();
    db.flush_cf(&cf).unwrap();
    let (mut rows, mut filled, mut after) = (1, 0, 0);
    while after < 3 {
        let before = active_entries(&db, &cf);
        let value = vec![b'v'; 6000];
        db.put(format!("row{rows:03}").as_bytes(), &value).unwrap();
        filled += u64::from(active_entries(&db, &cf) <= before);
        after += filled;
        rows += 1;
    }
    assert_eq!(filled, 1);
    let tables: Vec<u64> = db.live_files().iter().map(|file| file.number).collect();
    db.compact_files_cf(&cf, &tables, 1).unwrap();
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    rows
}

/// Opens a database whose WALs name the ones before them, if they are to.
fn open_tracking(env: &Env, options: &ColumnFamilyOptions, track: bool) -> Db {
    let of_db = DbOptions { track_and_verify_wals: track, ..database_options(options) };
    let default = descriptor("default", options);
    Db::builder("/db").options(of_db).env(env.clone()).column_family(default).open().unwrap()
}

/// Loses power by `crash` while two WALs are not synced, many times: the rows there are always a prefix of those written.
fn no_gap_is_left(name: &str, default_seed: u64, track: bool, crash: impl Fn(&MemoryFs, u64)) {
    let seed = seed(name, default_seed);
    let mut fewer = 0;
    for draw in 0..400 {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let rows = leave_two_unsynced_wals(&env, &fs, track);
        crash(fs.memory(), seed.wrapping_add(draw << 20));
        fs.faults().heal();
        // WALs are verified by what they say of each other, whatever the option is now.
        let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
        let left = contents(&db, db.default_column_family(), &ReadOptions::default());
        let prefix: Vec<Vec<u8>> = (0..left.len()).map(|row| format!("row{row:03}").into_bytes()).collect();
        assert_eq!(left.into_keys().collect::<Vec<_>>(), prefix, "draw {draw} of {rows} rows");
        assert!(!prefix.is_empty(), "draw {draw}: the table is there");
        fewer += u64::from((prefix.len() as u64) < rows);
    }
    assert!(fewer > 100, "power takes something: {fewer}");
}

/// The power may take a whole WAL and leave the one after it: that one is not recovered then, or rows would be there and
/// earlier ones not. The number that the MANIFEST has last does not make good for it.
#[test]
fn a_wal_after_one_that_was_lost_is_not_recovered() {
    no_gap_is_left("lost WAL", 6, false, MemoryFs::crash_torn);
}

/// The same where the older WAL may end anywhere, even neatly or before its first byte: the newer one says how long it was.
#[test]
fn a_wal_after_one_that_lost_its_end_is_not_recovered_if_wals_name_each_other() {
    no_gap_is_left("shortened WAL", 600225562, true, MemoryFs::crash_apart);
}
