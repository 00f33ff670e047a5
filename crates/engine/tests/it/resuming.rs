//! Databases that recover from errors by themselves, one error at a time; `crash_features.rs` has all others.

use crate::harness::{contents, creating, descriptor};
use outcrop::options::{ColumnFamilyOptions, DbOptions};
use outcrop::*;
use outcrop_env::clock::ManualClock;
use outcrop_env::faulty::{EIO, ENOSPC, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

struct Fixture {
    fs: FaultyFs,
    clock: Arc<ManualClock>,
    db: Db,
}

fn fixture(db_options: DbOptions, options: &ColumnFamilyOptions) -> Fixture {
    fixture_with(db_options, options, Vec::new())
}

fn fixture_with(
    db_options: DbOptions,
    options: &ColumnFamilyOptions,
    listeners: Vec<Arc<dyn EventListener>>,
) -> Fixture {
    let fs = FaultyFs::new(MemoryFs::new());
    let clock = Arc::new(ManualClock::at(1_700_000_000_000_000));
    let env = Env { clock: clock.clone(), ..Env::with_file_system(Arc::new(fs.clone())) };
    let builder =
        Db::builder("/db").options(db_options).env(env).column_family(descriptor("default", options));
    let builder = listeners.into_iter().fold(builder, |builder, listener| builder.listener(listener));
    let db = builder.open().unwrap();
    Fixture { fs, clock, db }
}

impl Fixture {
    /// Lets `seconds` pass, simulated, one after the other, and has upkeep look at the clock each time.
    fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            self.db.continue_background_work();
            std::thread::yield_now();
        }
    }

    fn put(&self, key: &str) -> Result<()> {
        self.db.put(key.as_bytes(), [7; 100])
    }

    fn flush(&self) -> Result<()> {
        self.db.flush_cf(self.db.default_column_family())
    }

    fn rows(&self) -> usize {
        contents(&self.db, self.db.default_column_family(), &ReadOptions::default()).len()
    }

    fn background_errors(&self) -> u64 {
        self.db.property_int_cf(self.db.default_column_family(), "rocksdb.background-errors").unwrap()
    }

    fn wait_until(&self, what: impl Fn(&Fixture) -> bool) {
        while !what(self) {
            self.pass(1);
        }
    }
}

#[test]
fn a_full_disk_that_is_no_longer_full_takes_writes_again() {
    let at = fixture(creating(), &ColumnFamilyOptions::default());
    at.put("a").unwrap();
    at.fs.faults().limit_space(10);
    let refused = at.put("b").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    at.pass(100);
    assert_eq!(at.db.background_error().map(|error| error.kind()), Some(ErrorKind::NoSpace));
    assert_eq!(at.put("c").unwrap_err().kind(), ErrorKind::NoSpace);
    at.fs.faults().heal();
    at.wait_until(|at| at.db.background_error().is_none());
    at.put("d").unwrap();
    assert_eq!(at.rows(), 2);
}

#[test]
fn a_failed_compaction_stops_no_writes_and_is_tried_again() {
    for errno in [EIO, ENOSPC] {
        let options = ColumnFamilyOptions {
            disable_auto_compactions: true,
            level0_file_num_compaction_trigger: 2,
            ..ColumnFamilyOptions::default()
        };
        let at = fixture(creating(), &options);
        for key in ["a", "b", "c"] {
            at.put("same").unwrap();
            at.put(key).unwrap();
            at.flush().unwrap();
        }
        at.fs.faults().only(Some(".sst"));
        at.fs.faults().fail_at(at.fs.faults().changes(), errno, true);
        let cf = at.db.default_column_family().clone();
        at.db.set_options_cf(&cf, &[("disable_auto_compactions", "false")]).unwrap();
        at.wait_until(|at| at.background_errors() >= 3);
        assert!(at.db.background_error().is_none());
        let other = at.db.create_column_family("other").unwrap();
        assert_eq!(at.db.property_int_cf(&other, "rocksdb.background-errors"), Some(0), "counted once");
        at.put("d").unwrap();
        at.fs.faults().heal();
        let on_level_0 = "rocksdb.num-files-at-level0";
        at.wait_until(|at| at.db.property_cf(&cf, on_level_0).as_deref() == Some("0"));
        assert_eq!(at.rows(), 5);
    }
}

/// A filter that panics once two level 0 tables are there to be merged.
struct Panicking;

impl CompactionFilter for Panicking {
    fn name(&self) -> &str {
        "test.Panicking"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        panic!("a filter that panics")
    }
}

#[test]
fn an_error_that_comes_while_a_database_resumes_is_not_lost() {
    let options =
        ColumnFamilyOptions { level0_file_num_compaction_trigger: 2, ..ColumnFamilyOptions::default() };
    // The compaction that the flush of the resuming makes due may end before the resuming does, or after.
    for _ in 0..20 {
        let fs = FaultyFs::new(MemoryFs::new());
        let db_options = DbOptions { max_bgerror_resume_count: 0, ..creating() };
        let parts = ColumnFamilyParts {
            compaction_filter: Some(Arc::new(Panicking)),
            ..ColumnFamilyParts::default()
        };
        let db = Db::builder("/db")
            .options(db_options)
            .env(Env::with_file_system(Arc::new(fs.clone())))
            .column_family(ColumnFamilyDescriptor::default_with(options.clone(), parts))
            .open()
            .unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        // Over the table before: what lies apart is moved, without the filter.
        db.put("a", "2").unwrap();
        fs.faults().only(Some(".log"));
        fs.faults().fail_at(fs.faults().changes(), EIO, true);
        db.put("c", "1").unwrap_err();
        fs.faults().heal();
        let resumed = db.resume();
        while db.background_error().is_none() {
            std::thread::yield_now();
        }
        let refused = db.put("d", "1").unwrap_err();
        assert!(refused.to_string().contains("panics"), "{refused}");
        if let Err(error) = resumed {
            assert!(error.is_same(&refused), "{error}");
        }
    }
}

/// With `manual_wal_flush` they wait in memory, of which closing writes them.
#[test]
fn buffered_records_of_the_wal_that_resuming_replaces_are_not_lost() {
    let buffered = DbOptions { manual_wal_flush: true, ..creating() };
    let at = fixture(buffered.clone(), &ColumnFamilyOptions::default());
    at.put("a").unwrap();
    at.put("b").unwrap();
    at.fs.faults().only(Some(".sst"));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
    assert_eq!(at.flush().unwrap_err().kind(), ErrorKind::IoError);
    at.wait_until(|at| at.background_errors() >= 3);
    let Fixture { fs, db, .. } = at;
    drop(db);
    fs.faults().heal();
    let env = Env::with_file_system(Arc::new(fs));
    let db = Db::builder("/db").options(buffered).env(env).open().unwrap();
    assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()).len(), 2);
}

/// A database that an attempt to resume has given another WAL, before its flush failed, with a row that was written before.
fn resumed_in_part(options: DbOptions, fails: &str) -> Fixture {
    let at = fixture(DbOptions { max_bgerror_resume_count: 0, ..options }, &ColumnFamilyOptions::default());
    at.put("a").unwrap();
    at.fs.faults().only(Some(fails));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
    at.put("refused").and_then(|()| at.flush()).unwrap_err();
    at.fs.faults().only(Some(".sst"));
    for _ in 0..3 {
        assert_eq!(at.db.resume().unwrap_err().kind(), ErrorKind::IoError);
    }
    at
}

fn reopened(fs: &FaultyFs) -> Db {
    fs.faults().heal();
    Db::builder("/db").options(creating()).env(Env::with_file_system(Arc::new(fs.clone()))).open().unwrap()
}

/// Their WAL could not be written when it had to be, nor a table after that: they are in no file.
#[test]
fn a_database_says_that_buffered_records_are_lost_with_the_wal_that_resuming_replaces() {
    let at = resumed_in_part(DbOptions { manual_wal_flush: true, ..creating() }, ".log");
    assert_eq!(at.rows(), 1);
    assert_eq!(at.db.flush_wal().unwrap_err().kind(), ErrorKind::IoError);
    let Fixture { fs, db, .. } = at;
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::IoError);
    assert_eq!(reopened(&fs).get("a").unwrap(), None);
}

#[test]
fn once_a_database_has_resumed_the_wal_that_it_replaced_is_not_asked_for() {
    let at = resumed_in_part(DbOptions { manual_wal_flush: true, ..creating() }, ".log");
    at.fs.faults().heal();
    at.db.resume().unwrap();
    at.db.flush_wal().unwrap();
    at.db.sync_wal().unwrap();
    let Fixture { fs, db, .. } = at;
    db.close().unwrap();
    assert!(reopened(&fs).get("a").unwrap().is_some());
}

#[test]
fn the_wal_that_resuming_replaces_is_synced_if_it_can_be() {
    let at = resumed_in_part(creating(), ".sst");
    at.db.sync_wal().unwrap();
    let Fixture { fs, db, .. } = at;
    std::mem::forget(db);
    fs.memory().crash();
    assert!(reopened(&fs).get("a").unwrap().is_some());
}

#[test]
fn a_wal_that_failed_is_no_error_of_closing_where_nothing_waits_in_buffers() {
    let at = resumed_in_part(creating(), ".log");
    at.db.flush_wal().unwrap();
    let Fixture { fs, db, .. } = at;
    db.close().unwrap();
    assert!(reopened(&fs).get("a").unwrap().is_some());
}

#[test]
fn closing_says_that_rows_in_no_wal_are_lost_and_that_alone() {
    let options = DbOptions { max_bgerror_resume_count: 0, ..creating() };
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for lost in [false, true] {
        let at = fixture(options.clone(), &ColumnFamilyOptions::default());
        at.db.put_with("a", "1", &unlogged).unwrap();
        at.flush().unwrap();
        let failing = if lost { ".sst" } else { "MANIFEST" };
        at.fs.faults().only(Some(failing));
        if lost {
            at.db.put_with("b", "2", &unlogged).unwrap();
        }
        at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
        match lost {
            true => at.flush().unwrap_err(),
            false => at.db.create_column_family("other").err().unwrap(),
        };
        assert!(at.db.background_error().is_some(), "{lost}");
        at.fs.faults().heal();
        let Fixture { fs, db, .. } = at;
        assert_eq!(db.close().is_err(), lost);
        assert!(reopened(&fs).get("b").unwrap().is_none());
    }
}

#[test]
fn cancelling_background_work_flushes_what_is_in_no_wal() {
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for fails in [false, true] {
        let at = fixture(creating(), &ColumnFamilyOptions::default());
        at.db.put_with("a", "1", &unlogged).unwrap();
        if fails {
            at.fs.faults().only(Some(".sst"));
            at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
        }
        at.db.cancel_all_background_work(Wait::UntilDone);
        at.fs.faults().heal();
        let Fixture { fs, db, .. } = at;
        assert_eq!(db.close().is_err(), fails);
        assert_eq!(reopened(&fs).get("a").unwrap().is_none(), fails);
    }
}

#[test]
fn a_sync_says_that_the_wal_that_resuming_replaces_cannot_be_synced() {
    let at = resumed_in_part(creating(), ".log");
    assert_eq!(at.db.sync_wal().unwrap_err().kind(), ErrorKind::IoError);
}

/// Notes how databases resume, and says whether they shall by themselves.
struct Recovery {
    by_itself: bool,
    told: Mutex<Vec<String>>,
}

impl EventListener for Recovery {
    fn error_recovery_begin(
        &self,
        db: &Arc<Db>,
        reason: BackgroundErrorReason,
        error: &Error,
        auto_recovery: &mut bool,
    ) {
        assert!(db.background_error().unwrap().is_same(error));
        self.told.lock().unwrap().push(format!("begins: {reason:?}, {:?}", error.kind()));
        *auto_recovery = self.by_itself;
    }

    fn error_recovery_end(&self, db: &Arc<Db>, recovery: &BackgroundErrorRecoveryInfo) {
        let (old, new) = (recovery.old_bg_error.kind(), recovery.new_bg_error.as_ref().map(Error::kind));
        if new.is_none() {
            db.put("from the callback", "1").unwrap();
        }
        self.told.lock().unwrap().push(format!("ends: {old:?}, {new:?}"));
    }
}

impl Recovery {
    fn new(by_itself: bool) -> Arc<Recovery> {
        Arc::new(Recovery { by_itself, told: Mutex::new(Vec::new()) })
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[test]
fn listeners_are_told_once_that_a_database_resumes_and_that_it_has() {
    let recovery = Recovery::new(true);
    let at = fixture_with(creating(), &ColumnFamilyOptions::default(), vec![recovery.clone()]);
    at.put("a").unwrap();
    at.fs.faults().limit_space(10);
    at.put("b").unwrap_err();
    at.pass(100);
    let begins = "begins: WriteCallback, NoSpace";
    at.wait_until(|_| !recovery.told().is_empty());
    assert_eq!(recovery.told(), [begins]);
    at.fs.faults().heal();
    at.wait_until(|_| recovery.told().len() > 1);
    assert_eq!(recovery.told(), [begins, "ends: NoSpace, None"]);
    assert_eq!(at.rows(), 2);
}

#[test]
fn a_listener_can_leave_resuming_to_the_application() {
    let recovery = Recovery::new(false);
    let at = fixture_with(creating(), &ColumnFamilyOptions::default(), vec![recovery.clone()]);
    at.fs.faults().only(Some(".log"));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
    at.put("a").unwrap_err();
    at.wait_until(|_| !recovery.told().is_empty());
    at.fs.faults().heal();
    at.pass(100);
    at.put("b").unwrap_err();
    at.db.resume().unwrap();
    assert_eq!(recovery.told(), ["begins: WriteCallback, IoError", "ends: IoError, None"]);
    at.put("c").unwrap();
}

/// Waits where it is asked for the first time, so that the application can act meanwhile; does not want that resumed by itself.
struct Waiting {
    asked: mpsc::Sender<()>,
    answer: Mutex<mpsc::Receiver<()>>,
    told: Recovery,
}

impl EventListener for Waiting {
    fn error_recovery_begin(
        &self,
        db: &Arc<Db>,
        reason: BackgroundErrorReason,
        error: &Error,
        auto_recovery: &mut bool,
    ) {
        self.told.error_recovery_begin(db, reason, error, auto_recovery);
        if self.told.told().len() == 1 {
            self.asked.send(()).unwrap();
            self.answer.lock().unwrap().recv().unwrap();
            *auto_recovery = false;
        }
    }

    fn error_recovery_end(&self, db: &Arc<Db>, recovery: &BackgroundErrorRecoveryInfo) {
        self.told.error_recovery_end(db, recovery);
    }
}

#[test]
fn listeners_are_asked_anew_about_an_error_that_comes_while_they_are_asked() {
    let (asked, when_asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let told = Recovery { by_itself: true, told: Mutex::new(Vec::new()) };
    let waiting = Arc::new(Waiting { asked, answer: Mutex::new(answered), told });
    let at = fixture_with(creating(), &ColumnFamilyOptions::default(), vec![waiting.clone()]);
    let told = || waiting.told.told();
    at.fs.faults().only(Some(".log"));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
    at.put("a").unwrap_err();
    at.pass(1);
    when_asked.recv().unwrap();
    at.fs.faults().heal();
    at.db.resume().unwrap();
    at.put("b").unwrap();
    at.fs.faults().only(Some(".sst"));
    at.fs.faults().fail_at(at.fs.faults().changes(), ENOSPC, true);
    at.flush().unwrap_err();
    answer.send(()).unwrap();
    let expected = [
        "begins: WriteCallback, IoError",
        "ends: IoError, None",
        "begins: Flush, NoSpace",
        "ends: NoSpace, None",
    ];
    at.wait_until(|_| told().len() >= 3);
    assert_eq!(told(), expected[..3]);
    at.put("c").unwrap_err();
    at.fs.faults().heal();
    at.wait_until(|_| told().len() > 3);
    assert_eq!(told(), expected);
    at.put("d").unwrap();
    assert_eq!(at.rows(), 3, "with the listener's own");
}

#[test]
fn an_attempt_that_the_application_was_quicker_than_leaves_the_next_error_its_own() {
    let recovery = Recovery::new(true);
    let at = fixture_with(creating(), &ColumnFamilyOptions::default(), vec![recovery.clone()]);
    let fail = |kind: &str| {
        at.fs.faults().only(Some(".sst"));
        at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
        at.put(kind).unwrap();
        at.flush().unwrap_err();
        at.wait_until(|at| at.background_errors() >= 2);
        at.fs.faults().heal();
    };
    fail("a");
    // The next attempt is planned, and the application does not wait for it.
    at.db.resume().unwrap();
    at.pass(100);
    at.put("b").unwrap();
    fail("c");
    at.wait_until(|at| at.put("d").is_ok());
    let once = ["begins: Flush, IoError", "ends: IoError, None"];
    at.wait_until(|_| recovery.told().len() >= 4);
    assert_eq!(recovery.told(), [once, once].concat());
}

#[test]
fn listeners_are_told_that_a_database_gives_up() {
    let recovery = Recovery::new(true);
    let db_options = DbOptions { max_bgerror_resume_count: 2, ..creating() };
    let at = fixture_with(db_options, &ColumnFamilyOptions::default(), vec![recovery.clone()]);
    at.put("a").unwrap();
    at.fs.faults().only(Some(".sst"));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
    at.flush().unwrap_err();
    at.wait_until(|_| recovery.told().len() > 1);
    assert_eq!(recovery.told(), ["begins: Flush, IoError", "ends: IoError, Some(IoError)"]);
    at.put("b").unwrap_err();
}

/// Has everything fail as soon as a database says that it has resumed.
struct Failing {
    fs: Mutex<Option<FaultyFs>>,
    told: Recovery,
}

impl EventListener for Failing {
    fn error_recovery_end(&self, db: &Arc<Db>, recovery: &BackgroundErrorRecoveryInfo) {
        if let Some(fs) = self.fs.lock().unwrap().take() {
            fs.faults().only(Some("0000"));
            fs.faults().fail_at(fs.faults().changes(), EIO, true);
            db.put("from the callback", "1").unwrap_err();
        }
        let (old, new) = (recovery.old_bg_error.kind(), recovery.new_bg_error.as_ref().map(Error::kind));
        self.told.told.lock().unwrap().push(format!("ends: {old:?}, {new:?}"));
    }
}

#[test]
fn an_error_that_comes_as_a_database_has_resumed_has_as_many_attempts_as_any() {
    let told = Recovery { by_itself: true, told: Mutex::new(Vec::new()) };
    let failing = Arc::new(Failing { fs: Mutex::new(None), told });
    let db_options = DbOptions { max_bgerror_resume_count: 3, ..creating() };
    let at = fixture_with(db_options, &ColumnFamilyOptions::default(), vec![failing.clone()]);
    *failing.fs.lock().unwrap() = Some(at.fs.clone());
    at.fs.faults().only(Some(".log"));
    at.fs.faults().fail_at(at.fs.faults().changes(), EIO, false);
    at.put("a").unwrap_err();
    let told = || failing.told.told();
    at.wait_until(|_| !told().is_empty());
    assert_eq!(told(), ["ends: IoError, None"]);
    for _ in 0..1000 {
        at.pass(1);
        std::thread::sleep(Duration::from_millis(1));
        if told().len() > 1 {
            break;
        }
    }
    assert_eq!(told(), ["ends: IoError, None", "ends: IoError, Some(IoError)"], "it gives up");
    at.fs.faults().heal();
    at.put("b").unwrap_err();
    at.db.resume().unwrap();
    at.put("c").unwrap();
}

#[test]
fn attempts_are_limited_and_none_are_made_if_none_are_wanted() {
    let failing = |most: i32| {
        let db_options = DbOptions {
            max_bgerror_resume_count: most,
            bgerror_resume_retry_interval: 2_000_000,
            ..creating()
        };
        let at = fixture(db_options, &ColumnFamilyOptions::default());
        at.put("a").unwrap();
        // Of files with numbers: all but LOG.
        at.fs.faults().only(Some("0000"));
        at.fs.faults().fail_at(at.fs.faults().changes(), EIO, true);
        at.put("b").unwrap_err();
        at
    };
    let recovers = |at: &Fixture| {
        at.fs.faults().heal();
        at.pass(100);
        at.put("c").unwrap_err();
        at.db.resume().unwrap();
        at.put("d").unwrap();
        assert_eq!(at.rows(), 2);
    };
    let none = failing(0);
    none.pass(100);
    let after_put = none.fs.faults().changes();
    none.db.resume().unwrap_err();
    let of_attempt = none.fs.faults().changes() - after_put;
    assert!(of_attempt > 0);
    recovers(&none);
    let three = failing(3);
    three.wait_until(|at| at.fs.faults().changes() >= after_put + 3 * of_attempt);
    three.pass(100);
    assert_eq!(three.fs.faults().changes(), after_put + 3 * of_attempt);
    recovers(&three);
}

#[test]
fn corruption_is_not_resumed_from() {
    let at =
        fixture(creating(), &ColumnFamilyOptions { disable_auto_compactions: true, ..Default::default() });
    for _ in 0..2 {
        at.put("a").unwrap();
        at.flush().unwrap();
    }
    let files = at.fs.memory().files();
    let (table, _) = files.iter().find(|(path, _)| path.extension().is_some_and(|e| e == "sst")).unwrap();
    at.fs.memory().flip_byte(table, 3, 0xFF);
    let cf = at.db.default_column_family().clone();
    at.db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap_err();
    assert_eq!(at.db.background_error().unwrap().kind(), ErrorKind::Corruption);
    at.pass(20);
    assert_eq!(at.put("b").unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(at.db.resume().unwrap_err().kind(), ErrorKind::Corruption);
}
