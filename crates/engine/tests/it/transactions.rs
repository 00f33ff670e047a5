//! Transactions on whole databases: two-phase commit with power lost at any point, WALs that stay and go, conflicts found in memory,
//! histories of many threads searched for cycles, and money that neither comes nor goes when a process is killed.

use crate::harness::{Rng, contents, creating, descriptor, seed};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn forced() -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    }
}

fn synced() -> WriteOptions {
    WriteOptions { sync: true, ..WriteOptions::default() }
}

fn families(options: &ColumnFamilyOptions) -> Vec<ColumnFamilyDescriptor> {
    vec![descriptor("default", options), descriptor("other", options)]
}

fn creating_all() -> DbOptions {
    DbOptions { create_missing_column_families: true, ..creating() }
}

fn open(env: &Env, options: &ColumnFamilyOptions) -> Result<TransactionDb> {
    open_as(env, creating_all(), options)
}

fn open_as(env: &Env, db_options: DbOptions, options: &ColumnFamilyOptions) -> Result<TransactionDb> {
    let transactions =
        TransactionDbOptions { transaction_lock_timeout: 100, ..TransactionDbOptions::default() };
    let builder = Db::builder("/db").options(db_options).env(env.clone());
    TransactionDb::open_with(builder.column_families(families(options)), transactions)
}

fn small() -> ColumnFamilyOptions {
    ColumnFamilyOptions { write_buffer_size: 64 << 10, ..ColumnFamilyOptions::default() }
}

fn read(db: &Db, cf: &ColumnFamilyHandle, key: &[u8]) -> Option<Vec<u8>> {
    db.get_cf(cf, key).unwrap().map(|value| value.to_vec())
}

// ---- two-phase commit

/// The fate of transaction `i` once it is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Commit,
    Rollback,
    Undecided,
}

fn fate(i: u64) -> Fate {
    match i % 4 {
        0 | 1 => Fate::Commit,
        2 => Fate::Rollback,
        _ => Fate::Undecided,
    }
}

/// How far a transaction came, as acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Tried,
    Prepared,
    Deciding,
    Decided,
}

const TRANSACTIONS: u64 = 24;

fn name(i: u64) -> Vec<u8> {
    format!("txn{i:02}").into_bytes()
}

fn value(i: u64) -> Vec<u8> {
    format!("{i}-{}", "v".repeat(4000)).into_bytes()
}

/// Prepares and decides, some of them much later, between writes and flushes. Ends at the first error.
fn two_phase_history(db: &TransactionDb, steps: &mut Vec<Step>) -> Result<()> {
    let (default, other) = (db.db().default_column_family().clone(), db.db().column_family("other").unwrap());
    let mut waiting: Vec<(u64, Transaction)> = Vec::new();
    for i in 0..TRANSACTIONS {
        let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
        steps.push(Step::Tried);
        txn.set_name(name(i))?;
        txn.put_cf(&default, name(i), value(i))?;
        txn.put_cf(&other, name(i), value(i))?;
        txn.prepare()?;
        steps[i as usize] = Step::Prepared;
        waiting.push((i, txn));
        db.put_cf_with(&default, "plain", i.to_le_bytes(), &synced())?;
        if i % 5 == 2 {
            db.db().flush_cf(if i % 2 == 0 { &default } else { &other })?;
        }
        if i % 3 == 2 {
            for (i, mut txn) in waiting.drain(..) {
                steps[i as usize] = if fate(i) == Fate::Undecided { Step::Prepared } else { Step::Deciding };
                match fate(i) {
                    Fate::Commit => txn.commit()?,
                    Fate::Rollback => txn.rollback()?,
                    Fate::Undecided => continue,
                }
                steps[i as usize] = Step::Decided;
            }
        }
        if i == 14 {
            db.db().flush_cfs(&[default.clone(), other.clone()], Wait::UntilDone)?;
        }
    }
    Ok(())
}

/// Checks what is there against what was acknowledged; then commits all that wait, and checks again after another opening.
fn check_two_phase(env: &Env, steps: &[Step], what: &str) {
    let mut committed = BTreeSet::new();
    for round in 0..3 {
        let db = open(env, &small()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (default, other) =
            (db.db().default_column_family().clone(), db.db().column_family("other").unwrap());
        let mut prepared: BTreeMap<Vec<u8>, Transaction> =
            db.prepared_transactions().unwrap().into_iter().map(|txn| (txn.name().to_vec(), txn)).collect();
        for (i, step) in steps.iter().enumerate() {
            let (i, key) = (i as u64, name(i as u64));
            let visible = [&default, &other].map(|cf| read(db.db(), cf, &key));
            assert_eq!(visible[0], visible[1], "{what}: half of transaction {i} is there");
            let there = visible[0].is_some();
            assert!(!there || visible[0].as_ref() == Some(&value(i)), "{what}: {i}");
            let waits = prepared.contains_key(&key);
            assert!(!(there && waits), "{what}: {i} waits and is there");
            let allowed = match (step, fate(i)) {
                _ if round > 0 => there == committed.contains(&i) && (!waits || round == 1),
                (Step::Tried, _) => !there,
                (Step::Prepared, _) => waits,
                (Step::Deciding, Fate::Commit) => waits || there,
                (Step::Deciding, _) => !there,
                (Step::Decided, Fate::Commit) => there,
                (Step::Decided, _) => !there && !waits,
            };
            assert!(
                allowed,
                "{what}, opening {round}: transaction {i} ({step:?}, {:?}): there {there}, waits {waits}",
                fate(i)
            );
            if there {
                committed.insert(i);
            }
        }
        // Opened twice without a decision, then decided.
        if round == 1 {
            for (key, txn) in &mut prepared {
                txn.commit().unwrap();
                committed.insert(std::str::from_utf8(&key[3..]).unwrap().parse().unwrap());
            }
        }
        drop(prepared);
    }
}

#[test]
fn power_lost_at_any_point_of_two_phase_commit_loses_nothing_that_was_prepared() {
    let fresh = || {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        (fs, env)
    };
    let (fs, env) = fresh();
    let mut steps = Vec::new();
    two_phase_history(&open(&env, &small()).unwrap(), &mut steps).unwrap();
    let changes = fs.faults().changes();
    assert_eq!(steps.len() as u64, TRANSACTIONS);
    check_two_phase(&env, &steps, "without a fault");
    let every = if std::env::var_os("OUTCROP_CRASH").is_some() { 1 } else { 4 };
    let seed = seed("two_phase", 5);
    for point in (seed % every..changes + 3).step_by(every as usize) {
        for torn in [None, Some(1)] {
            let (fs, env) = fresh();
            fs.faults().fail_at(point, EIO, true);
            let mut steps = Vec::new();
            if let Ok(db) = open(&env, &small()) {
                // It fails at that point, and must.
                let _ = two_phase_history(&db, &mut steps);
            }
            match torn {
                Some(draw) => fs.memory().crash_torn(seed ^ (point * 2 + draw)),
                None => fs.memory().crash(),
            }
            fs.faults().heal();
            check_two_phase(&env, &steps, &format!("point {point}, torn {torn:?}"));
        }
    }
}

#[test]
fn what_is_prepared_survives_an_error_that_the_database_comes_back_from() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, &small()).unwrap();
    let cf = db.db().default_column_family().clone();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"t").unwrap();
    txn.put_cf(&cf, b"k", b"v").unwrap();
    txn.prepare().unwrap();
    // The commit's record fails: it is prepared still, and the WAL that may hold the record is never replayed.
    fs.faults().fail_at(fs.faults().changes(), EIO, false);
    assert!(txn.commit().is_err());
    assert_eq!(txn.state(), TransactionState::Prepared);
    fs.faults().heal();
    while db.db().background_error().is_some() {
        let _ = db.db().resume();
    }
    drop(txn);
    drop(db);
    fs.memory().crash();
    let db = open(&env, &small()).unwrap();
    let mut prepared = db.prepared_transactions().unwrap();
    assert_eq!(prepared.len(), 1);
    assert_eq!(read(db.db(), db.db().default_column_family(), b"k"), None);
    prepared[0].commit().unwrap();
    assert_eq!(read(db.db(), db.db().default_column_family(), b"k"), Some(b"v".to_vec()));
}

#[test]
fn an_optimistic_transaction_commits_after_a_write_that_failed() {
    // Memtables that are in tables are forgotten at once.
    let options =
        ColumnFamilyOptions { max_write_buffer_size_to_maintain: 1, ..ColumnFamilyOptions::default() };
    for (rows, name) in [(0, "default"), (1, "default"), (3, "default"), (1, "created")] {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let builder = Db::builder("/db").options(creating_all()).env(env);
        let builder = builder.column_family(descriptor("default", &options));
        let db = OptimisticTransactionDb::open_with(builder, OptimisticTransactionDbOptions::default());
        let db = db.unwrap();
        (0..rows).for_each(|row: u8| db.db().put([row], "v").unwrap());
        // Numbers are given out that no reader ever sees.
        fs.faults().only(Some(".log"));
        fs.faults().fail_at(fs.faults().changes(), EIO, false);
        let mut failing = WriteBatch::new();
        ["a", "b", "c"].iter().for_each(|key| failing.put(key, "never"));
        db.db().write_with(&mut failing, &synced()).unwrap_err();
        fs.faults().heal();
        while db.db().background_error().is_some() {
            let _ = db.db().resume();
        }
        let created = db.db().create_column_family(descriptor("created", &options)).unwrap();
        let cf = if name == "created" { &created } else { db.db().default_column_family() };
        let mut txn = db.begin();
        txn.put_cf(cf, "txn", "v").unwrap();
        txn.commit().unwrap_or_else(|error| panic!("{rows} rows, {name}: {error}"));
    }
}

#[test]
fn power_lost_while_a_database_resumes_does_not_both_commit_and_keep_what_is_prepared() {
    // Column families with a sealed memtable when the commit fails, and with rows in the active one.
    for (sealed, active) in
        [("", ""), ("", "default"), ("default", ""), ("other", "default"), ("other", "default other")]
    {
        resume_without_power(sealed, active);
    }
}

/// Repairs before the opening.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    None,
    Whole,
    /// The last table is lost.
    WithoutTable,
}

fn resume_without_power(sealed: &str, active: &str) {
    // A memtable that is full waits for another one.
    let options =
        ColumnFamilyOptions { min_write_buffer_number_to_merge: 2, max_write_buffer_number: 4, ..small() };
    // It resumes when it is asked to.
    let open = |env: &Env, options: &ColumnFamilyOptions| {
        open_as(env, DbOptions { max_bgerror_resume_count: 0, ..creating_all() }, options)
    };
    let run = |point: Option<u64>| {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let db = open(&env, &options).unwrap();
        let [cf, other] = ["default", "other"].map(|name| db.db().column_family(name).unwrap());
        let mut txns = ["t", "u"].map(|name| {
            let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
            txn.set_name(name.as_bytes()).unwrap();
            txn.put_cf(&cf, format!("default {name}"), "v").unwrap();
            txn.put_cf(&other, format!("other {name}"), "v").unwrap();
            txn.prepare().unwrap();
            txn
        });
        for name in sealed.split_whitespace() {
            let cf = db.db().column_family(name).unwrap();
            let sealed = || db.db().property_int_cf(&cf, "rocksdb.num-immutable-mem-table").unwrap() > 0;
            while !sealed() {
                db.put_cf_with(&cf, "before", [b'v'; 4096], &synced()).unwrap();
            }
        }
        for name in active.split_whitespace() {
            let cf = db.db().column_family(name).unwrap();
            db.put_cf_with(&cf, "before", "v", &synced()).unwrap();
        }
        // The commit is in the WAL, and cannot be synced. The file may have it or not.
        fs.faults().only(Some(".log"));
        fs.faults().fail_at(fs.faults().changes() + 1, EIO, false);
        assert!(txns[0].commit().is_err());
        fs.faults().heal();
        fs.faults().only(None);
        let before = fs.faults().changes();
        if let Some(point) = point {
            fs.faults().fail_at(before + point, EIO, true);
        }
        let resumed = db.db().resume();
        let changes = fs.faults().changes() - before;
        fs.faults().fail_at(0, EIO, true);
        drop((txns, db));
        (fs, env, resumed, changes)
    };
    let (_, _, resumed, changes) = run(None);
    resumed.unwrap();
    let (mut committed, mut waited) = (0, 0);
    for point in 0..changes + 1 {
        // With all that the process wrote, and with what was synced.
        for (killed, repair) in [
            (true, Repair::None),
            (false, Repair::None),
            (true, Repair::Whole),
            (false, Repair::Whole),
            (true, Repair::WithoutTable),
        ] {
            let (fs, env, ..) = run(Some(point));
            if killed {
                fs.memory().kill()
            } else {
                fs.memory().crash()
            }
            fs.faults().heal();
            if repair == Repair::WithoutTable {
                let names = fs.list(Path::new("/db")).unwrap();
                let Some(table) = names.iter().filter(|name| name.ends_with(".sst")).max() else { continue };
                fs.remove_file(&Path::new("/db").join(table)).unwrap();
            }
            if repair != Repair::None {
                let builder = Db::builder("/db").env(env.clone()).column_families(families(&options));
                builder.repair(&RepairOptions::default()).unwrap();
            }
            for opening in 0..3 {
                let what = format!(
                    "{sealed:?}, {active:?}: point {point}, killed {killed}, {repair:?}, opening {opening}"
                );
                let db = open(&env, &options).unwrap();
                let [cf, other] = ["default", "other"].map(|name| db.db().column_family(name).unwrap());
                let mut found = db.prepared_transactions().unwrap();
                let names: Vec<_> = found.iter().map(|txn| txn.name().to_vec()).collect();
                let there = |name: &str| {
                    let of = |cf, of: &str| read(db.db(), cf, format!("{of} {name}").as_bytes()).is_some();
                    assert_eq!(of(&cf, "default"), of(&other, "other"), "{what}: half of {name} is there");
                    of(&cf, "default")
                };
                let waits = |name: &str| names.contains(&name.as_bytes().to_vec());
                assert!(there("t") != waits("t"), "{what}: t is there {}, waits {}", there("t"), waits("t"));
                assert!(waits("u") != there("u") && waits("u") == (opening < 2), "{what}: {names:?}");
                match (opening, there("t")) {
                    (0, true) => committed += 1,
                    (0, false) => waited += 1,
                    _ => {}
                }
                // Without a decision it is the same again; then the other is decided alone.
                if opening == 1 {
                    found.iter_mut().filter(|txn| txn.name() == b"u").for_each(|txn| txn.commit().unwrap());
                }
            }
        }
    }
    assert!(committed > 0 && waited > 0, "committed {committed}, waited {waited}");
}

#[test]
fn a_database_opened_without_transactions_keeps_what_is_prepared() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    {
        let db = open(&env, &small()).unwrap();
        let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
        txn.set_name(b"t").unwrap();
        txn.put(b"k", b"v").unwrap();
        txn.prepare().unwrap();
    }
    // Twice: the second opening finds the column families beyond the WAL.
    for _ in 0..3 {
        let db = Db::builder("/db")
            .options(creating())
            .env(env.clone())
            .column_families(families(&small()))
            .open()
            .unwrap();
        assert_eq!(db.prepared_transactions(), [b"t"]);
        db.put_with(b"other", b"x", &synced()).unwrap();
        db.flush().unwrap();
    }
    let db = open(&env, &small()).unwrap();
    let mut prepared = db.prepared_transactions().unwrap();
    prepared[0].commit().unwrap();
    assert_eq!(read(db.db(), db.db().default_column_family(), b"k"), Some(b"v".to_vec()));
}

#[test]
fn wals_stay_for_what_is_prepared_and_for_memtables_that_got_it() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &small()).unwrap();
    let cf = db.db().default_column_family().clone();
    let needed = || db.db().property_int_cf(&cf, "rocksdb.min-log-number-to-keep").unwrap();
    let flush = || {
        db.put_cf_with(&cf, "x", "x", &synced()).unwrap();
        db.db().flush_cf(&cf).unwrap();
    };
    let first = needed();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"t").unwrap();
    txn.put_cf(&cf, b"k", b"v").unwrap();
    txn.prepare().unwrap();
    flush();
    flush();
    assert_eq!(needed(), first, "it is prepared there");
    txn.commit().unwrap();
    assert_eq!(needed(), first, "the memtable has it, and the commit is in another WAL");
    db.db().flush_cf(&cf).unwrap();
    assert!(needed() > first);
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"u").unwrap();
    txn.put_cf(&cf, b"k", b"w").unwrap();
    txn.prepare().unwrap();
    let second = needed();
    flush();
    assert_eq!(needed(), second);
    txn.rollback().unwrap();
    assert!(needed() > second, "nothing needs it");
}

#[test]
fn a_checkpoint_has_what_is_prepared() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &small()).unwrap();
    let cf = db.db().default_column_family().clone();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"t").unwrap();
    txn.put_cf(&cf, b"k", b"v").unwrap();
    txn.prepare().unwrap();
    db.put_cf_with(&cf, b"x", b"1", &synced()).unwrap();
    for log_size_for_flush in [0, u64::MAX] {
        let target = format!("/copy{log_size_for_flush}");
        db.db().create_checkpoint_with(&target, log_size_for_flush).unwrap();
        let builder = Db::builder(&target).options(creating()).env(env.clone());
        let builder = builder.column_families(families(&small()));
        let copy = TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap();
        assert_eq!(read(copy.db(), copy.db().default_column_family(), b"x"), Some(b"1".to_vec()));
        let mut prepared = copy.prepared_transactions().unwrap();
        prepared[0].commit().unwrap();
        assert_eq!(read(copy.db(), copy.db().default_column_family(), b"k"), Some(b"v".to_vec()));
    }
    txn.rollback().unwrap();
}

// ---- conflicts

#[test]
fn keys_of_an_imported_column_family_have_locks() {
    let db = open(&Env::memory(), &small()).unwrap();
    let other = db.db().column_family("other").unwrap();
    db.put_cf(&other, "a", "1").unwrap();
    let exported = db.db().export_column_family(&other, "/export").unwrap();
    let imported =
        db.create_column_family_with_import("new", ImportColumnFamilyOptions::default(), &[&exported]);
    let cf = imported.unwrap();
    db.put_cf(&cf, "b", "1").unwrap();
    let (mut first, mut second) = (db.begin(), db.begin());
    first.put_cf(&cf, "a", "2").unwrap();
    assert_eq!(second.put_cf(&cf, "a", "3").unwrap_err().kind(), ErrorKind::TimedOut);
    first.commit().unwrap();
    assert_eq!(read(db.db(), &cf, b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(read(db.db(), &other, b"a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_snapshot_finds_what_was_written_after_it_wherever_it_is() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &small()).unwrap();
    let cf = db.db().default_column_family().clone();
    let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::default() };
    let busy = |txn: &mut Transaction, key: &[u8]| txn.put_cf(&cf, key, b"mine").unwrap_err().to_string();
    db.put_cf_with(&cf, b"before", b"1", &synced()).unwrap();
    for flushes in 0..3 {
        // A deletion of what never was may be compacted away: it changed nothing.
        db.put_cf_with(&cf, b"deleted", b"1", &synced()).unwrap();
        let mut txn = db.begin_with(&synced(), &options);
        db.put_cf_with(&cf, b"put", b"1", &synced()).unwrap();
        db.delete_cf_with(&cf, b"deleted", &synced()).unwrap();
        for _ in 0..flushes {
            db.db().flush_cf(&cf).unwrap();
            // So much that memory does not reach back.
            for i in 0..200u64 {
                db.put_cf_with(&cf, i.to_be_bytes(), [0; 4000], &synced()).unwrap();
            }
        }
        assert_eq!(busy(&mut txn, b"put"), "Resource busy: ");
        assert_eq!(busy(&mut txn, b"deleted"), "Resource busy: ");
        txn.put_cf(&cf, b"before", b"mine").unwrap();
        assert!(
            db.locks().iter().map(|lock| &lock.key[..]).eq([b"before"]),
            "what was refused is not locked"
        );
        txn.commit().unwrap();
    }
}

#[test]
fn a_put_that_was_deleted_once_leaves_a_trace_for_older_snapshots() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    // Memory does not reach back: tables have to tell.
    let options = ColumnFamilyOptions { max_write_buffer_size_to_maintain: 1, ..small() };
    let db = open(&env, &options).unwrap();
    let cf = db.db().default_column_family().clone();
    for snapshot in [true, false] {
        let options = TransactionOptions { set_snapshot: snapshot, ..TransactionOptions::default() };
        let mut txn = db.begin_with(&synced(), &options);
        for key in [&b"k"[..], b"l"] {
            db.put_cf_with(&cf, key, b"1", &synced()).unwrap();
            db.db().single_delete_cf_with(&cf, key, &synced()).unwrap();
        }
        db.db().flush_cf(&cf).unwrap();
        db.db().compact_range_cf_with(&cf, None, None, &forced()).unwrap();
        assert_eq!(read(db.db(), &cf, b"k"), None);
        match snapshot {
            true => assert_eq!(txn.put_cf(&cf, b"k", b"mine").unwrap_err().to_string(), "Resource busy: "),
            false => txn.put_cf(&cf, b"k", b"mine").unwrap(),
        }
        drop(txn);
    }
    db.db().compact_range_cf_with(&cf, None, None, &forced()).unwrap();
    let entries = db.db().property_int_cf(&cf, "rocksdb.estimate-num-keys");
    assert_eq!(entries, Some(0), "nobody asks any more");
}

#[test]
fn optimistic_transactions_find_conflicts_in_memory_or_say_that_they_cannot() {
    for policy in [ValidatePolicy::Serial, ValidatePolicy::Parallel] {
        let env = Env::with_file_system(Arc::new(MemoryFs::new()));
        let options = OptimisticTransactionDbOptions { validate_policy: policy, ..Default::default() };
        let cf_options = ColumnFamilyOptions { max_write_buffer_number: 2, ..small() };
        let builder = Db::builder("/db").options(creating()).env(env);
        let builder = builder.column_family(descriptor("default", &cf_options));
        let db = OptimisticTransactionDb::open_with(builder, options).unwrap();
        let cf = db.db().default_column_family().clone();
        let put = |key: &[u8]| db.db().put_with(key, [0; 4000], &synced()).unwrap();
        put(b"k");
        let mut txn = db.begin_with(&synced(), TakeSnapshot::No);
        txn.put_cf(&cf, b"k", b"mine").unwrap();
        put(b"k");
        db.db().flush_cf(&cf).unwrap();
        let error = txn.commit().unwrap_err();
        assert_eq!(error.to_string(), "Resource busy: ", "it is in memory after the flush");
        assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Busy, "nothing was lost");
        txn.rollback().unwrap();
        txn.put_cf(&cf, b"k", b"mine").unwrap();
        db.db().flush_cf(&cf).unwrap();
        txn.commit().unwrap();
        assert_eq!(read(db.db(), &cf, b"k"), Some(b"mine".to_vec()));
        // As long as nobody touches the key, memory decides whether that is known.
        txn.put_cf(&cf, b"k", b"again").unwrap();
        for i in 0..400u64 {
            put(&i.to_be_bytes());
        }
        db.db().flush_cf(&cf).unwrap();
        let error = txn.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TryAgain);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "Operation failed. Try again.: Transaction could not check for conflicts for operation at "
            ),
            "{text}"
        );
        assert!(text.ends_with(".  Increasing the value of the max_write_buffer_size_to_maintain option could reduce the frequency of this error."), "{text}");
    }
}

// ---- serialisability

/// A transaction that was committed: the values it read of each key, and the keys it put its number after.
struct Committed {
    id: u64,
    reads: Vec<(u64, Vec<u64>)>,
    appends: Vec<u64>,
}

fn list_of(value: Option<&[u8]>) -> Vec<u64> {
    let value = value.unwrap_or_default();
    value.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// The order of the committed transactions that all they read agrees with, or a cycle. A key's list shows which
/// transactions wrote before which, which read of which, and which read before which wrote.
fn check_serialisable(
    history: &[Committed],
    last: &BTreeMap<u64, Vec<u64>>,
) -> std::result::Result<(), String> {
    let known: BTreeSet<u64> = history.iter().map(|txn| txn.id).collect();
    let mut after: BTreeMap<u64, BTreeSet<u64>> = known.iter().map(|id| (*id, BTreeSet::new())).collect();
    let mut edge = |from: u64, to: u64| {
        if from != to {
            after.get_mut(&from).unwrap().insert(to);
        }
    };
    for (key, list) in last {
        if let Some(stranger) = list.iter().find(|id| !known.contains(id)) {
            return Err(format!("key {key}: {stranger} was not committed"));
        }
        list.windows(2).for_each(|pair| edge(pair[0], pair[1]));
    }
    for txn in history {
        for key in &txn.appends {
            if last[key].iter().filter(|id| **id == txn.id).count() != 1 {
                return Err(format!("key {key}: the write of {} is lost", txn.id));
            }
        }
        for (key, seen) in &txn.reads {
            let list = last.get(key).map_or(&[][..], Vec::as_slice);
            if !list.starts_with(seen) {
                return Err(format!("{} read {seen:?} of key {key}, which became {list:?}", txn.id));
            }
            if let Some(writer) = seen.last() {
                edge(*writer, txn.id);
            }
            if let Some(next) = list.get(seen.len()) {
                edge(txn.id, *next);
            }
        }
    }
    // Transactions with nothing before them are removed; those left are in cycles or after one.
    let mut before: BTreeMap<u64, usize> = after.keys().map(|id| (*id, 0)).collect();
    after.values().flatten().for_each(|to| *before.get_mut(to).unwrap() += 1);
    let mut free: Vec<u64> = before.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    let mut gone = 0;
    while let Some(id) = free.pop() {
        gone += 1;
        for to in &after[&id] {
            let count = before.get_mut(to).unwrap();
            *count -= 1;
            if *count == 0 {
                free.push(*to);
            }
        }
    }
    match gone == after.len() {
        true => Ok(()),
        false => {
            let stuck: Vec<u64> =
                before.into_iter().filter(|(_, count)| *count > 0).map(|(id, _)| id).collect();
            Err(format!("a cycle among {stuck:?}"))
        }
    }
}

#[test]
fn the_search_finds_cycles_lost_writes_and_dirty_reads() {
    let txn = |id, reads: &[(u64, &[u64])], appends: &[u64]| Committed {
        id,
        reads: reads.iter().map(|(key, seen)| (*key, seen.to_vec())).collect(),
        appends: appends.to_vec(),
    };
    let last = |lists: &[(u64, &[u64])]| lists.iter().map(|(key, list)| (*key, list.to_vec())).collect();
    let good = [txn(1, &[(0, &[])], &[0]), txn(2, &[(0, &[1])], &[0])];
    assert!(check_serialisable(&good, &last(&[(0, &[1, 2])])).is_ok());
    // Both read the other's key before the other wrote: write skew.
    let skew = [txn(1, &[(0, &[])], &[1]), txn(2, &[(1, &[])], &[0])];
    assert!(check_serialisable(&skew, &last(&[(0, &[2]), (1, &[1])])).unwrap_err().contains("cycle"));
    assert!(check_serialisable(&good, &last(&[(0, &[2])])).unwrap_err().contains("lost"));
    let dirty = [txn(1, &[(0, &[9])], &[])];
    assert!(check_serialisable(&dirty, &last(&[(0, &[])])).unwrap_err().contains("became"));
}

const KEYS: u64 = 6;

/// One transaction: reads some keys to update them, and puts its number after some. `None` if it was refused.
fn run_one(mut txn: Transaction, cf: &ColumnFamilyHandle, id: u64, rng: &mut Rng) -> Option<Committed> {
    let (mut reads, mut appends): (Vec<(u64, Vec<u64>)>, Vec<u64>) = (Vec::new(), Vec::new());
    for _ in 0..1 + rng.below(4) {
        let key = rng.below(KEYS);
        let mode = if rng.one_in(2) { LockMode::Shared } else { LockMode::Exclusive };
        let value = txn.get_for_update_cf(cf, key.to_be_bytes(), mode).ok()?;
        let mut seen = list_of(value.as_deref());
        if seen.last() == Some(&id) {
            seen.pop();
        } else if !reads.iter().any(|(known, _)| *known == key) {
            reads.push((key, seen.clone()));
        }
        if rng.one_in(2) && !appends.contains(&key) {
            seen.push(id);
            let value: Vec<u8> = seen.iter().flat_map(|id| id.to_le_bytes()).collect();
            txn.put_cf(cf, key.to_be_bytes(), value).ok()?;
            appends.push(key);
        }
        if rng.one_in(8) {
            std::thread::yield_now();
        }
    }
    if rng.one_in(10) {
        txn.rollback().unwrap();
        return None;
    }
    let named = rng.one_in(3) && txn.set_name(id.to_le_bytes()).is_ok();
    if named {
        txn.prepare().ok()?;
    }
    txn.commit().ok()?;
    Some(Committed { id, reads, appends })
}

fn check_threads(
    threads: u64,
    seed: u64,
    db: &Arc<Db>,
    begin: impl Fn(&mut Rng) -> Transaction + Sync,
) -> usize {
    let cf = db.default_column_family().clone();
    let (history, next) = (Mutex::new(Vec::new()), AtomicU64::new(1));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (history, next, cf, begin) = (&history, &next, &cf, &begin);
            scope.spawn(move || {
                let mut rng = Rng::new(seed ^ (thread * 7919 + 1));
                for _ in 0..150 {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    if let Some(done) = run_one(begin(&mut rng), cf, id, &mut rng) {
                        history.lock().unwrap().push(done);
                    }
                }
            });
        }
    });
    let rows = contents(db, &cf, &ReadOptions::default());
    let last = rows
        .iter()
        .map(|(key, value)| (u64::from_be_bytes(key[..].try_into().unwrap()), list_of(Some(value))));
    let history = history.into_inner().unwrap();
    let checked = check_serialisable(&history, &last.collect());
    assert!(checked.is_ok(), "seed {seed}, {threads} threads: {checked:?}");
    history.len()
}

#[test]
fn threads_with_locks_are_serialisable() {
    let seed = seed("locks", 11);
    for threads in [2, 4, 8] {
        let env = Env::with_file_system(Arc::new(MemoryFs::new()));
        let db = open(&env, &small()).unwrap();
        let committed = check_threads(threads, seed, db.db(), |rng| {
            let options = TransactionOptions {
                deadlock_detect: !rng.one_in(4),
                lock_timeout: if rng.one_in(3) { 0 } else { 20 },
                set_snapshot: rng.one_in(3),
                ..TransactionOptions::default()
            };
            db.begin_with(&WriteOptions::default(), &options)
        });
        assert!(committed > 20, "only {committed} of {threads} threads");
        assert!(db.locks().is_empty());
    }
}

#[test]
fn optimistic_threads_are_serialisable() {
    let seed = seed("optimistic", 12);
    for policy in [ValidatePolicy::Serial, ValidatePolicy::Parallel] {
        for threads in [2, 4, 8] {
            let env = Env::with_file_system(Arc::new(MemoryFs::new()));
            let options = OptimisticTransactionDbOptions { validate_policy: policy, ..Default::default() };
            let builder = Db::builder("/db").options(creating()).env(env);
            let builder = builder.column_family(descriptor("default", &small()));
            let db = OptimisticTransactionDb::open_with(builder, options).unwrap();
            let committed = check_threads(threads, seed, db.db(), |rng| {
                let snapshot = if rng.one_in(3) { TakeSnapshot::AtBegin } else { TakeSnapshot::No };
                db.begin_with(&WriteOptions::default(), snapshot)
            });
            assert!(committed > 20, "only {committed} of {threads} threads");
        }
    }
}

// ---- kill -9

/// Set in the child process: the directory it writes to.
const CHILD: &str = "OUTCROP_BANK_TEST_DIR";
const ACCOUNTS: u64 = 20;
const OPENING_BALANCE: u64 = 1000;

fn bank(dir: &str) -> TransactionDb {
    let transactions = TransactionDbOptions::default();
    let builder = Db::builder(dir).options(creating_all()).column_families(families(&small()));
    TransactionDb::open_with(builder, transactions).unwrap()
}

fn balance(value: Option<&[u8]>) -> u64 {
    value.map_or(OPENING_BALANCE, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

/// Moves money between two accounts, in one phase or two.
fn transfer(db: &TransactionDb, id: u64, rng: &mut Rng) -> Result<()> {
    let cfs = [db.db().default_column_family().clone(), db.db().column_family("other").unwrap()];
    let options = TransactionOptions { deadlock_detect: true, ..TransactionOptions::default() };
    let mut txn = db.begin_with(&WriteOptions::default(), &options);
    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let amount = rng.below(50);
    let mut change = |account: u64, change: &dyn Fn(u64) -> u64| {
        let (cf, key) = (&cfs[(account % 2) as usize], account.to_be_bytes());
        let value = txn.get_for_update_cf(cf, key, LockMode::Exclusive)?;
        let mut value = change(balance(value.as_deref())).to_le_bytes().to_vec();
        // So long that memtables fill.
        value.resize(300, 0);
        txn.put_cf(cf, key, value)
    };
    // Accounts may be overdrawn: numbers wrap round, and their sum does not change.
    change(from, &|balance| balance.wrapping_sub(amount))?;
    change(to, &|balance| balance.wrapping_add(amount))?;
    if id.is_multiple_of(2) {
        txn.set_name(format!("{}-{id}", std::process::id()).as_bytes())?;
        txn.prepare()?;
        if id.is_multiple_of(8) {
            std::thread::yield_now();
        }
    }
    txn.commit()
}

/// The child: two threads move money for ever.
#[test]
fn bank_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let db = bank(&dir);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(u64::from(std::process::id()) * 2 + thread);
                for id in 0u64.. {
                    // A transaction that lost a deadlock is dropped, and another tried.
                    let _ = transfer(db, id * 2 + thread, &mut rng);
                    if id.is_multiple_of(100) {
                        println!("moved {id}");
                    }
                }
            });
        }
    });
}

#[test]
fn money_neither_comes_nor_goes_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db").to_str().unwrap().to_string();
    let mut undecided = 0;
    for round in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["transactions::bank_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, &dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..12 + round * 5 {
            assert!(lines.next().is_some_and(|line| line.is_ok()), "the child ended by itself");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let db = bank(&dir);
        for (number, mut txn) in db.prepared_transactions().unwrap().into_iter().enumerate() {
            undecided += 1;
            if number.is_multiple_of(2) { txn.commit().unwrap() } else { txn.rollback().unwrap() }
        }
        let cfs = [db.db().default_column_family().clone(), db.db().column_family("other").unwrap()];
        let total: u64 = (0..ACCOUNTS)
            .map(|account| {
                let value = read(db.db(), &cfs[(account % 2) as usize], &account.to_be_bytes());
                balance(value.as_deref())
            })
            .fold(0, u64::wrapping_add);
        assert_eq!(total, ACCOUNTS * OPENING_BALANCE, "round {round}");
    }
    println!("{undecided} transactions were prepared and undecided");
}

/// Rows of drawn ranges, taken from both ends in turn, are those of a map with the same writes.
#[test]
fn rows_of_a_transaction_are_what_it_would_leave() {
    for seed in 0..40 {
        let mut draw = Rng::new(seed);
        let key = |draw: &mut Rng| format!("{:02}", draw.below(40));
        let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
        let db = TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap();
        let mut rows = BTreeMap::new();
        for number in 0..draw.below(40) {
            let key = key(&mut draw);
            db.put(&key, format!("below {number}")).unwrap();
            rows.insert(key, format!("below {number}"));
            if draw.one_in(10) {
                db.db().flush().unwrap();
            }
        }
        let mut transaction = db.begin();
        for number in 0..draw.below(30) {
            let key = key(&mut draw);
            if draw.one_in(3) {
                transaction.delete(&key).unwrap();
                rows.remove(&key);
            } else {
                transaction.put(&key, format!("above {number}")).unwrap();
                rows.insert(key, format!("above {number}"));
            }
        }
        for _ in 0..20 {
            let (mut from, mut to) = (key(&mut draw), key(&mut draw));
            if from > to {
                std::mem::swap(&mut from, &mut to);
            }
            let prefix = draw.below(4).to_string();
            let (scanned, expected): (_, Vec<_>) = match draw.below(3) {
                0 => (transaction.iter(), rows.iter().collect()),
                1 => (transaction.range(&from..&to), rows.range(from..to).collect()),
                _ => (
                    transaction.prefix(&prefix),
                    rows.iter().filter(|(key, _)| key.starts_with(&prefix)).collect(),
                ),
            };
            let (mut scanned, mut expected) = (scanned, expected.into_iter());
            loop {
                let (row, wanted) = match draw.below(2) {
                    0 => (scanned.next(), expected.next()),
                    _ => (scanned.next_back(), expected.next_back()),
                };
                let row = row.map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap());
                let wanted =
                    wanted.map(|(key, value)| (key.clone().into_bytes(), value.clone().into_bytes()));
                assert_eq!(row, wanted, "seed {seed}");
                if row.is_none() {
                    break;
                }
            }
        }
        let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
        let refused: Result<Vec<_>> = transaction.iter_with(&options).collect();
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::NotSupported);
        assert_eq!(transaction.prefix_with("1", &options).count(), transaction.prefix("1").count());
    }
}
