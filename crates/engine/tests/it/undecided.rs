//! Transactions that are prepared and not decided: when they are durable, which WALs they need, which names
//! are taken.

use crate::harness::{creating, descriptor};
use outcrop::*;
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

fn open_with(env: &Env, options: DbOptions, names: &[&str]) -> Result<TransactionDb> {
    let options = DbOptions { create_missing_column_families: true, ..options };
    let small = ColumnFamilyOptions { write_buffer_size: 64 << 10, ..ColumnFamilyOptions::default() };
    let families = names.iter().map(|name| descriptor(name, &small));
    let builder = Db::builder("/db").options(options).env(env.clone()).column_families(families);
    TransactionDb::open_with(builder, TransactionDbOptions::default())
}

fn open(env: &Env, names: &[&str]) -> Result<TransactionDb> {
    open_with(env, creating(), names)
}

fn prepared(db: &TransactionDb, options: &WriteOptions, name: &str) -> Transaction {
    let mut txn = db.begin_with(options, &TransactionOptions::default());
    txn.set_name(name.as_bytes()).unwrap();
    txn.put(name, "v").unwrap();
    txn.prepare().unwrap();
    txn
}

fn synced() -> WriteOptions {
    WriteOptions { sync: true, ..WriteOptions::default() }
}

fn there(db: &TransactionDb, key: &str) -> bool {
    db.db().get(key).unwrap().is_some()
}

#[test]
fn a_synced_decision_makes_durable_what_was_prepared_by_a_process_that_died() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, &["default"]).unwrap();
    let txn = prepared(&db, &WriteOptions::default(), "t");
    // The process dies; its memory is never looked at again.
    std::mem::forget((txn, db));
    fs.kill();
    let db = open(&env, &["default"]).unwrap();
    db.prepared_transactions().unwrap()[0].commit().unwrap();
    std::mem::forget(db);
    fs.crash();
    let db = open(&env, &["default"]).unwrap();
    assert!(there(&db, "t"), "the commit was synced");
    assert!(db.prepared_transactions().unwrap().is_empty());
}

#[test]
fn wals_stay_below_their_limit_though_a_memtable_needs_an_old_one() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let options = DbOptions { max_total_wal_size: 200 << 10, ..creating() };
    let db = open_with(&env, options, &["default", "busy"]).unwrap();
    let busy = db.db().column_family("busy").unwrap();
    let fill = |kib: usize| {
        for _ in 0..kib {
            db.put_cf(&busy, "k", [b'v'; 1024]).unwrap();
        }
        db.db().flush_cf(&busy).unwrap();
    };
    let mut txn = prepared(&db, &synced(), "t");
    fill(100);
    fill(100);
    // Into a memtable of another family, which nothing else fills.
    txn.commit().unwrap();
    let oldest = || db.db().property_int("rocksdb.min-log-number-to-keep").unwrap();
    let before = oldest();
    for _ in 0..8 {
        fill(100);
    }
    db.db().wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    assert!(
        oldest() > before,
        "the memtable that needs WAL {before} is flushed once WALs are larger than allowed"
    );
    assert!(there(&db, "t"));
}

#[test]
fn a_name_is_taken_until_its_transaction_is_decided() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &["default"]).unwrap();
    drop(prepared(&db, &synced(), "t"));
    let mut other = db.begin_with(&synced(), &TransactionOptions::default());
    let refused = other.set_name(b"t").unwrap_err();
    assert_eq!(refused.to_string(), "Invalid argument: Duplicate txn name t");
    db.prepared_transactions().unwrap()[0].rollback().unwrap();
    other.set_name(b"t").unwrap();
}

#[test]
fn a_failed_commit_frees_a_name_once() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &["default"]).unwrap();
    let options = TransactionOptions { skip_prepare: true, ..TransactionOptions::default() };
    // Recycled WALs and writes without one: refused when it is committed.
    let bad = WriteOptions { sync: true, disable_wal: true, ..WriteOptions::default() };
    let mut failing = db.begin_with(&bad, &options);
    failing.set_name(b"t").unwrap();
    failing.put("k", "v").unwrap();
    assert!(failing.commit().is_err());
    let mut other = db.begin_with(&synced(), &options);
    assert!(other.set_name(b"t").is_err(), "until it is dropped");
    drop(failing);
    other.set_name(b"t").unwrap();
    let mut third = db.begin_with(&synced(), &options);
    assert!(third.set_name(b"t").is_err(), "the name is another's");
}

#[test]
fn a_column_family_that_was_dropped_hides_no_prepared_transaction() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = open(&env, &["default", "doomed"]).unwrap();
    let doomed = db.db().column_family("doomed").unwrap();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"a").unwrap();
    txn.put_cf(&doomed, "gone", "v").unwrap();
    txn.put("kept", "v").unwrap();
    txn.prepare().unwrap();
    drop((txn, prepared(&db, &synced(), "b")));
    db.drop_column_family(&doomed).unwrap();
    drop(doomed);
    for _ in 0..2 {
        let names: Vec<_> = db.prepared_transactions().unwrap().iter().map(|t| t.name().to_vec()).collect();
        assert_eq!(names, [b"a", b"b"], "each time they were left");
    }
    drop(db);
    let db = open(&env, &["default"]).unwrap();
    let mut found = db.prepared_transactions().unwrap();
    found.iter_mut().for_each(|txn| txn.commit().unwrap());
    assert!(there(&db, "kept") && there(&db, "b"));
}

#[test]
fn writes_outside_of_transactions_lock_though_batches_do_not() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let transactions = TransactionDbOptions {
        skip_concurrency_control: true,
        default_lock_timeout: 0,
        ..TransactionDbOptions::default()
    };
    let db = TransactionDb::open_with(Db::builder("/db").options(creating()).env(env), transactions).unwrap();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.put("k", "1").unwrap();
    assert_eq!(db.put_with("k", "2", &synced()).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(db.delete("k").unwrap_err().kind(), ErrorKind::TimedOut);
    let mut batch = WriteBatch::new();
    batch.put("k", "2");
    db.write(&mut batch).unwrap();
}

#[test]
fn unordered_writes_are_refused() {
    let mut options = creating();
    options.kept.set(outcrop_options::kept::DB_KEPT, "unordered_write", "true").unwrap();
    let refused = TransactionDb::open_with(
        Db::builder("/db").options(options).env(Env::memory()),
        TransactionDbOptions::default(),
    );
    let text = refused.err().unwrap().to_string();
    assert_eq!(text, "Not implemented: WRITE_COMMITTED is incompatible with unordered_writes");
}

#[test]
fn an_iterator_passes_by_what_the_batch_has_lost_since() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    let db = Db::builder("/db").options(creating()).env(env).open().unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "base").unwrap();
    }
    let batch =
        IndexedBatch::new(IndexedBatchOptions { overwrite_key: true, ..IndexedBatchOptions::default() });
    batch.set_save_point();
    batch.put("b", "batch").unwrap();
    batch.put("bb", "batch").unwrap();
    let base = db.cursor().unwrap();
    let mut rows =
        batch.overlay(Some(FamilyParts::from(db.default_column_family())), base, Bounds::default());
    rows.seek_to_first();
    assert_eq!(rows.key(), b"a");
    batch.rollback_to_save_point().unwrap();
    rows.next();
    assert_eq!((rows.key(), rows.value()), (&b"b"[..], &b"base"[..]));
    rows.next();
    assert_eq!(rows.key(), b"c");
}

#[test]
fn a_transaction_that_was_rolled_back_does_not_wait_again_once_the_wal_that_says_so_is_gone() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    // Of two obsolete WALs the older one stays, to be recycled.
    let options = DbOptions { recycle_log_file_num: 1, ..creating() };
    let db = open_with(&env, options.clone(), &["default", "old"]).unwrap();
    let old = db.db().column_family("old").unwrap();
    // It needs the first WAL: no flush of the other one tells the MANIFEST that this is done with.
    db.put_cf(&old, "k", "v").unwrap();
    let mut txn = prepared(&db, &synced(), "t");
    let next_wal = || {
        db.put("k", "v").unwrap();
        db.db().flush().unwrap();
    };
    next_wal();
    txn.rollback().unwrap();
    next_wal();
    db.db().drop_column_family(&old).unwrap();
    db.db().wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    drop((txn, old));
    drop(db);
    let db = open_with(&env, options, &["default"]).unwrap();
    assert!(db.prepared_transactions().unwrap().is_empty());
    assert!(!there(&db, "t"));
}
