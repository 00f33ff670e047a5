//! `track_and_verify_wals_in_manifest`: a WAL that was synced and is gone, or shorter, is noticed when the database opens.

use crate::harness::{contents, creating, descriptor};
use outcrop::options::DbOptions;
use outcrop::*;
use std::path::PathBuf;

fn tracking(on: bool) -> DbOptions {
    DbOptions { track_and_verify_wals_in_manifest: on, ..creating() }
}

fn try_open(env: &Env, on: bool) -> Result<Db> {
    let families = ["default", "other"].map(|name| descriptor(name, &ColumnFamilyOptions::default()));
    Db::builder("/db").options(tracking(on)).env(env.clone()).column_families(families.to_vec()).open()
}

fn wals(env: &Env) -> Vec<PathBuf> {
    let mut names: Vec<String> = env.fs.list("/db".as_ref()).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names.into_iter().map(|name| PathBuf::from("/db").join(name)).collect()
}

/// A database whose first WAL is closed, synced and still needed by the family "other".
fn with_a_synced_wal(env: &Env) -> Db {
    let db = try_open(env, true).unwrap();
    let (write, other) = (WriteOptions::default(), db.column_family("other").unwrap());
    db.put_cf_with(&other, b"kept", b"in the first WAL", &write).unwrap();
    db.put_with(b"a", b"1", &write).unwrap();
    db.flush().unwrap();
    db.put_with(b"b", b"2", &WriteOptions { sync: true, ..write }).unwrap();
    db
}

#[test]
fn a_tracked_wal_that_is_missing_or_cut_is_named() {
    let env = Env::memory();
    drop(with_a_synced_wal(&env));
    let first = wals(&env)[0].clone();
    let name = first.file_name().unwrap().to_str().unwrap().to_string();
    let whole = env.fs.read_all(&first).unwrap();
    env.fs.replace(&first, "/db/tmp".as_ref(), &whole[..whole.len() - 1]).unwrap();
    let error = try_open(&env, true).err().expect("it is cut");
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains(&name), "{error}");
    env.fs.remove_file(&first).unwrap();
    let error = try_open(&env, true).err().expect("it is missing");
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains(&name), "{error}");
    env.fs.replace(&first, "/db/tmp".as_ref(), &whole).unwrap();
    let db = try_open(&env, true).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(contents(&db, &other, &ReadOptions::default()).len(), 1);
    assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()).len(), 2);
}

#[test]
fn without_the_option_nothing_is_verified_and_the_tracking_ends() {
    let env = Env::memory();
    drop(with_a_synced_wal(&env));
    env.fs.remove_file(&wals(&env)[0]).unwrap();
    drop(try_open(&env, false).unwrap());
    drop(try_open(&env, true).unwrap());
}

#[test]
fn wals_that_are_not_needed_may_go() {
    let env = Env::memory();
    let mut db = with_a_synced_wal(&env);
    for round in 0..5u8 {
        let families = [db.default_column_family().clone(), db.column_family("other").unwrap()];
        for cf in &families {
            db.put_cf_with(cf, [round], b"x", &WriteOptions { sync: true, ..WriteOptions::default() })
                .unwrap();
            db.flush_cf(cf).unwrap();
        }
        if round % 2 == 1 {
            drop(families);
            drop(db);
            db = try_open(&env, true).unwrap();
        }
    }
    // The last flushes leave at most the WALs written since the oldest unflushed entry.
    assert!(wals(&env).len() <= 3, "{:?}", wals(&env));
    drop(db);
    let db = try_open(&env, true).unwrap();
    assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()).len(), 7);
}
