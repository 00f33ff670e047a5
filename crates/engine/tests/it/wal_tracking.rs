//! `track_and_verify_wals_in_manifest`: a WAL that was synced and is gone, or shorter, is noticed when the database opens. With
//! `track_and_verify_wals` so is one that was not synced, if another follows it.

use crate::harness::{contents, creating, descriptor};
use crate::wrapped_files::passed_on;
use outcrop::options::DbOptions;
use outcrop::*;
use outcrop_env::file_system::{FileLock, FileSystem, ReadFile, WriteFile};
use outcrop_env::{OpenRead, OpenWrite};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn tracking(on: bool) -> DbOptions {
    DbOptions { track_and_verify_wals_in_manifest: on, ..creating() }
}

fn try_open(env: &Env, on: bool) -> Result<Db> {
    with_other(env, &tracking(on)).open()
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
fn a_copy_that_was_flushed_misses_no_wal() {
    let env = Env::memory();
    let db = with_a_synced_wal(&env);
    // The flush makes the tracked WAL needless, and it is not copied.
    db.create_checkpoint("/copy").unwrap();
    let backups = BackupEngine::open(BackupEngineOptions::new("/backups"), &env).unwrap();
    let flushed = CreateBackupOptions { flush_before_backup: true, ..CreateBackupOptions::default() };
    db.put_with(b"c", b"3", &WriteOptions::default()).unwrap();
    backups.create_backup_with(&db, &flushed).unwrap();
    backups.restore_latest_backup("/restored", "/restored").unwrap();
    for (path, rows) in [("/copy", 2), ("/restored", 3)] {
        let copy = with_other_at(&env, path, &tracking(true)).open().unwrap();
        assert_eq!(
            contents(&copy, copy.default_column_family(), &ReadOptions::default()).len(),
            rows,
            "{path}"
        );
    }
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

fn with_other(env: &Env, options: &DbOptions) -> DbBuilder {
    with_other_at(env, "/db", options)
}

fn with_other_at(env: &Env, path: &str, options: &DbOptions) -> DbBuilder {
    let families = ["default", "other"].map(|name| descriptor(name, &ColumnFamilyOptions::default()));
    Db::builder(path).options(options.clone()).env(env.clone()).column_families(families.to_vec())
}

/// Makes two WALs that no table has anything of, the second with its predecessor.
fn make_two_wals(env: &Env, options: &DbOptions) -> Vec<PathBuf> {
    let db = with_other(env, options).open().unwrap();
    let other = db.column_family("other").unwrap();
    for row in ["a", "b"] {
        db.put_cf(&other, row, "in the first WAL").unwrap();
    }
    db.put("x", "flushed").unwrap();
    db.flush().unwrap();
    db.put_cf(&other, "c", "in the second").unwrap();
    db.put_cf(&other, "d", "in the second").unwrap();
    drop((other, db));
    let files = wals(env);
    assert_eq!(files.len(), 2);
    files
}

/// A database with two such WALs, changed and opened in `mode`.
fn chained(mode: WalRecoveryMode, change: impl FnOnce(&Env, &[PathBuf])) -> (Env, Result<Db>) {
    let env = Env::memory();
    let options = DbOptions { track_and_verify_wals: true, ..creating() };
    change(&env, &make_two_wals(&env, &options));
    // Without the option: WALs are verified by what they say.
    let options = DbOptions { wal_recovery_mode: mode, track_and_verify_wals: false, ..options };
    let result = with_other(&env, &options).open();
    (env, result)
}

/// The rows of "other" after the first WAL was changed; `None` if the database does not open, and says that of the first WAL.
fn rows_left(mode: WalRecoveryMode, change: impl FnOnce(&Env, &[PathBuf])) -> Option<String> {
    let (_env, result) = chained(mode, change);
    match result {
        Ok(db) => {
            let other = db.column_family("other").unwrap();
            let rows = contents(&db, &other, &ReadOptions::default()).into_keys();
            Some(rows.map(|key| String::from_utf8(key).unwrap()).collect())
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert!(error.to_string().contains("the WAL before it"), "{error}");
            None
        }
    }
}

#[test]
fn a_wal_that_was_never_synced_is_missed_by_the_one_after_it() {
    use WalRecoveryMode::{
        AbsoluteConsistency, PointInTimeRecovery, SkipAnyCorruptedRecords, TolerateCorruptedTailRecords,
    };
    let unchanged = |_: &Env, _: &[PathBuf]| {};
    let gone = |env: &Env, files: &[PathBuf]| env.fs.remove_file(&files[0]).unwrap();
    // Neatly, after a record: nothing else shows that another was there.
    let shorter = |env: &Env, files: &[PathBuf]| {
        let whole = env.fs.read_all(&files[0]).unwrap();
        let record = 11 + usize::from(u16::from_le_bytes([whole[4], whole[5]]));
        assert!(whole.len() > record);
        env.fs.replace(&files[0], "/db/tmp".as_ref(), &whole[..record]).unwrap();
    };
    let empty = |env: &Env, files: &[PathBuf]| env.fs.replace(&files[0], "/db/tmp".as_ref(), b"").unwrap();
    for mode in [PointInTimeRecovery, AbsoluteConsistency, TolerateCorruptedTailRecords] {
        assert_eq!(rows_left(mode, unchanged).as_deref(), Some("abcd"), "{mode:?}");
    }
    // Under point in time, too: the table of "default" has a row that was written after those.
    for mode in [PointInTimeRecovery, AbsoluteConsistency, TolerateCorruptedTailRecords] {
        assert_eq!(rows_left(mode, gone), None, "{mode:?}");
        assert_eq!(rows_left(mode, shorter), None, "{mode:?}");
        assert_eq!(rows_left(mode, empty), None, "{mode:?}");
    }
    assert_eq!(rows_left(SkipAnyCorruptedRecords, gone).as_deref(), Some("cd"));
    assert_eq!(rows_left(SkipAnyCorruptedRecords, shorter).as_deref(), Some("acd"));
}

#[test]
fn a_wal_that_only_a_dropped_family_needed_is_not_missed() {
    let env = Env::memory();
    let options = DbOptions { track_and_verify_wals: true, ..creating() };
    let open = |names: &[&str]| {
        let families = names.iter().map(|name| descriptor(name, &ColumnFamilyOptions::default()));
        let families: Vec<_> = families.collect();
        Db::builder("/db").options(options.clone()).env(env.clone()).column_families(families).open()
    };
    // Nothing is ever written to "default": in the MANIFEST it needs every WAL.
    let db = open(&["default", "flushed", "dropped"]).unwrap();
    let (flushed, dropped) = (db.column_family("flushed").unwrap(), db.column_family("dropped").unwrap());
    db.put_cf(&dropped, "x", "1").unwrap();
    db.put_cf(&flushed, "a", "in a table").unwrap();
    db.flush_cf(&flushed).unwrap();
    let first = wals(&env)[0].clone();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    db.put_cf_with(&flushed, "b", "in the second WAL", &synced).unwrap();
    assert_eq!(wals(&env).len(), 2, "the first is needed");
    db.drop_column_family(&dropped).unwrap();
    drop(dropped);
    drop((flushed, db));
    assert!(!wals(&env).contains(&first), "nobody needs it");
    let db = open(&["default", "flushed"]).unwrap();
    let flushed = db.column_family("flushed").unwrap();
    assert_eq!(contents(&db, &flushed, &ReadOptions::default()).len(), 2);
}

/// A column family that nothing was written to needs none, and then has the lowest number of all once something is.
#[test]
fn a_new_manifest_and_a_checkpoint_ask_for_no_wal_that_was_removed() {
    let env = Env::memory();
    let options = DbOptions { track_and_verify_wals: true, ..creating() };
    let open = |path: &str, options: &DbOptions, names: &[&str]| {
        let families = names.iter().map(|name| descriptor(name, &ColumnFamilyOptions::default()));
        let families: Vec<_> = families.collect();
        Db::builder(path).options(options.clone()).env(env.clone()).column_families(families).open()
    };
    let db = open("/db", &options, &["default", "late"]).unwrap();
    let first = wals(&env)[0].clone();
    db.put("a", "in a table").unwrap();
    db.flush().unwrap();
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    let late = db.column_family("late").unwrap();
    db.put_cf(&late, "b", "in the second WAL").unwrap();
    // With its WALs.
    db.create_checkpoint_with("/copy", u64::MAX).unwrap();
    // Each change begins another MANIFEST.
    db.set_db_options(&[("max_manifest_file_size", "1")]).unwrap();
    db.create_column_family("new").unwrap();
    drop((late, db));
    assert!(!wals(&env).contains(&first), "nobody needs it");
    for (path, names) in [("/db", &["default", "late", "new"][..]), ("/copy", &["default", "late"])] {
        let db = open(path, &options, names).unwrap();
        assert!(db.get_cf(&db.column_family("late").unwrap(), "b").unwrap().is_some(), "{path}");
    }
}

/// A file system in which the first opening of one file finds another written to.
struct GrowingFs {
    inner: Arc<dyn FileSystem>,
    /// The file that is opened; the one that grows, and its contents from then on.
    growth: Mutex<Option<(PathBuf, PathBuf, Vec<u8>)>>,
}

impl FileSystem for GrowingFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        let mut growth = self.growth.lock().unwrap();
        if let Some((_, grown, contents)) = growth.take_if(|(opened, ..)| opened == path) {
            self.inner.replace(&grown, "/db/tmp".as_ref(), &contents)?;
        }
        self.inner.open_read(path, options)
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.inner.create(path, options)
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.inner.reuse(old, path, options)
    }

    passed_on!();
}

/// Its end was in memory (`manual_wal_flush`) when the first WAL was read, and is there when the second says how long it is.
#[test]
fn a_wal_that_a_writer_ends_while_it_is_read_is_read_again() {
    use WalRecoveryMode::{AbsoluteConsistency, PointInTimeRecovery, TolerateCorruptedTailRecords};
    for mode in [PointInTimeRecovery, AbsoluteConsistency, TolerateCorruptedTailRecords] {
        let env = Env::memory();
        let options = DbOptions { track_and_verify_wals: true, wal_recovery_mode: mode, ..creating() };
        let files = make_two_wals(&env, &options);
        let whole = env.fs.read_all(&files[0]).unwrap();
        // A type of 5 or more is that of a record in a log that may be recycled.
        let header = if whole[6] >= 5 { 11 } else { 7 };
        let record = header + usize::from(u16::from_le_bytes([whole[4], whole[5]]));
        assert!(whole.len() > record);
        env.fs.replace(&files[0], "/db/tmp".as_ref(), &whole[..record]).unwrap();
        let growth = Mutex::new(Some((files[1].clone(), files[0].clone(), whole)));
        let env = Env::with_file_system(Arc::new(GrowingFs { inner: env.fs.clone(), growth }));
        let db = with_other(&env, &options).open_read_only().unwrap();
        let other = db.column_family("other").unwrap();
        assert_eq!(contents(&db, &other, &ReadOptions::default()).len(), 4, "{mode:?}");
    }
}
