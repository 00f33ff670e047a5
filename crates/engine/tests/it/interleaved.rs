//! Calls and jobs that meet at moments which a gate holds, and what a kill or a loss of power leaves then.

use crate::harness::creating;
use crate::wrapped_files::passed_on;
use outcrop::options::*;
use outcrop::*;
use outcrop_env::file_system::{FileLock, ReadFile, WriteFile};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileSystem, OpenRead, OpenWrite};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

fn synced() -> WriteOptions {
    WriteOptions { sync: true, ..WriteOptions::default() }
}

fn no_wait(db: &Db, cf: &ColumnFamilyHandle) {
    db.flush_cfs(std::slice::from_ref(cf), Wait::No).unwrap();
}

/// As much as `thread` needs to end, if it waits for nobody.
fn give_time_to<T>(thread: &std::thread::JoinHandle<T>) {
    give_time_for(|| thread.is_finished());
}

/// As much as it takes for what must not happen; where it does not, all of it goes by.
fn give_time_for(happened: impl Fn() -> bool) {
    for _ in 0..300 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Names whose holders wait.
#[derive(Default)]
struct Gate {
    closed: Mutex<Vec<String>>,
    waiting: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Gate {
    fn close(&self, name: &str) {
        self.closed.lock().unwrap().push(name.to_string());
    }

    fn open(&self, name: &str) {
        self.closed.lock().unwrap().retain(|n| n != name);
        self.changed.notify_all();
    }

    fn pass(&self, what: &str) {
        let mut closed = self.closed.lock().unwrap();
        while closed.iter().any(|name| what.contains(name.as_str())) {
            self.waiting.lock().unwrap().push(what.to_string());
            closed = self.changed.wait(closed).unwrap();
        }
    }

    fn until_waits(&self, name: &str) {
        for _ in 0..10_000 {
            if self.waiting.lock().unwrap().iter().any(|n| n.contains(name)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("nobody waits for {name}: {:?}", self.waiting.lock().unwrap());
    }
}

struct FlushGate(Arc<Gate>);

impl EventListener for FlushGate {
    fn flush_begin(&self, _db: &Arc<Db>, flush: &FlushJobInfo) {
        self.0.pass(&format!("flush:{}", flush.cf_name));
    }
}

#[derive(Clone, Default)]
struct GatedFs {
    inner: MemoryFs,
    gate: Arc<Gate>,
}

struct GatedFile {
    inner: Box<dyn WriteFile>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl WriteFile for GatedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.append(bytes)
    }
    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.inner.append_marked(bytes, end)
    }
    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
    fn sync(&mut self) -> Result<()> {
        self.gate.pass(&format!("sync:{}", self.path.display()));
        self.inner.sync()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn path(&self) -> &Path {
        &self.path
    }
    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }
}

impl FileSystem for GatedFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        let thread = std::thread::current().name().unwrap_or("").to_string();
        self.gate.pass(&format!("read:{thread}:{}", path.display()));
        self.inner.open_read(path, options)
    }
    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let inner = self.inner.create(path, options)?;
        Ok(Box::new(GatedFile { inner, path: path.to_path_buf(), gate: self.gate.clone() }))
    }
    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let inner = self.inner.reuse(old, path, options)?;
        Ok(Box::new(GatedFile { inner, path: path.to_path_buf(), gate: self.gate.clone() }))
    }
    passed_on!();
}

#[test]
fn a_decision_on_what_an_older_wal_prepared_survives_openings_that_do_not_flush() {
    let env = Env::with_file_system(Arc::new(MemoryFs::new()));
    {
        let builder = Db::builder("/db").options(creating()).env(env.clone());
        let db = TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap();
        let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
        txn.set_name(b"t").unwrap();
        txn.put("k", "v").unwrap();
        txn.prepare().unwrap();
        db.db().put("other", "1").unwrap();
        db.db().flush().unwrap();
        txn.commit().unwrap();
        drop(txn);
        assert!(db.db().get("k").unwrap().is_some());
    }
    let plain = || {
        let mut options = creating();
        options.kept.set(outcrop_options::kept::DB_KEPT, "avoid_flush_during_recovery", "true").unwrap();
        Db::builder("/db").options(options).env(env.clone()).open().unwrap()
    };
    for opening in 1..4 {
        let db = plain();
        let found = db.get("k").unwrap().is_some();
        db.close().unwrap();
        assert!(found, "opening {opening}");
    }
}

fn dropped_family(seed: u64, drops: bool) -> Option<bool> {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let gate = Arc::new(Gate::default());
    gate.close("flush:tmp");
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .listener(Arc::new(FlushGate(gate.clone())))
        .open()
        .unwrap();
    let tmp = db.create_column_family("tmp").unwrap();
    for i in 0..20 {
        db.put_cf(&tmp, format!("k{i}"), vec![b'x'; 3000]).unwrap();
    }
    no_wait(&db, &tmp);
    gate.until_waits("flush:tmp");
    if drops {
        db.drop_column_family(&tmp).unwrap();
    }
    db.put_with("synced", "1", &synced()).unwrap();
    assert!(db.background_error().is_none());
    std::mem::forget((db, tmp));
    fs.crash_torn(seed);
    let reopened = Db::builder("/db").options(creating()).env(env.clone());
    let reopened = if drops { reopened } else { reopened.column_family("tmp") };
    let db = reopened.open().ok()?;
    let found = db.get("synced").unwrap().is_some();
    std::mem::forget(db);
    Some(found)
}

#[test]
fn a_synced_write_survives_although_a_dropped_column_family_left_an_unsynced_wal() {
    let count = |drops: bool| {
        let results: Vec<_> = (0..20).map(|seed| dropped_family(seed, drops)).collect();
        let of = |wanted| results.iter().filter(|found| **found == wanted).count();
        (of(Some(true)), of(Some(false)), of(None))
    };
    // There, lost, refused.
    assert_eq!(count(false), (20, 0, 0));
    assert_eq!(count(true), (20, 0, 0));
}

#[test]
fn a_level_is_not_moved_while_its_tables_are_being_deleted() {
    let fs = GatedFs::default();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Arc::new(Db::builder("/db").options(creating()).env(env).open().unwrap());
    for key in ["a", "b"] {
        db.put(key, "1").unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    fs.gate.close("sync:/db/MANIFEST");
    let deleting = {
        let db = db.clone();
        std::thread::spawn(move || {
            db.delete_files_in_ranges(&[(None, Some(&b"z"[..]))], RangeEnd::Exclusive).unwrap();
        })
    };
    fs.gate.until_waits("sync:/db/MANIFEST");
    let moving = {
        let db = db.clone();
        std::thread::spawn(move || {
            let options =
                CompactRangeOptions { change_level: true, target_level: Some(2), ..Default::default() };
            db.compact_range_with(None, None, &options)
        })
    };
    let moved = moving.join();
    fs.gate.open("sync:/db/MANIFEST");
    deleting.join().unwrap();
    let wait = WaitForCompactOptions { timeout: Some(Duration::from_secs(5)), ..Default::default() };
    let waited = db.wait_for_compact(&wait);
    assert!(moved.is_ok() && waited.is_ok());
}

#[test]
fn of_two_threads_that_catch_up_none_takes_a_secondary_back() {
    let fs = GatedFs::default();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Db::builder("/db").options(creating()).env(env.clone()).open().unwrap();
    db.put("a", "1").unwrap();
    let secondary = Arc::new(Db::builder("/db").env(env.clone()).open_secondary().unwrap());
    db.put("b", "1").unwrap();
    db.flush().unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    db.put("c", "1").unwrap();
    db.flush().unwrap();
    let table = db.live_files().iter().map(|file| file.number).max().unwrap();
    let name = format!("read:slow:/db/{table:06}.sst");
    fs.gate.close(&name);
    let slow = {
        let secondary = secondary.clone();
        std::thread::Builder::new()
            .name("slow".into())
            .spawn(move || secondary.try_catch_up_with_primary())
            .unwrap()
    };
    fs.gate.until_waits(&name);
    db.put("d", "1").unwrap();
    let other = {
        let secondary = secondary.clone();
        std::thread::spawn(move || secondary.try_catch_up_with_primary())
    };
    // It would end first, if it did not wait for the slow one.
    give_time_to(&other);
    fs.gate.open(&name);
    slow.join().unwrap().unwrap();
    other.join().unwrap().unwrap();
    assert!(secondary.get("d").unwrap().is_some());
}

#[test]
fn a_secondary_refuses_timestamps_whose_versions_may_be_gone() {
    let env = Env::memory();
    let family =
        || ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    let db = Db::builder("/db").env(env.clone()).options(creating()).column_family(family()).open().unwrap();
    for stamp in [1u64, 2, 5] {
        db.put_at("k", stamp.into(), format!("v{stamp}")).unwrap();
    }
    db.flush().unwrap();
    let secondary = Db::builder("/db").env(env).column_family(family()).open_secondary().unwrap();
    let at = |stamp: u64| ReadOptions::at_timestamp(stamp.into());
    assert_eq!(secondary.get_with("k", &at(1)).unwrap().as_deref(), Some(&b"v1"[..]));
    let cf = db.default_column_family().clone();
    let options =
        CompactRangeOptions { full_history_low: Some(4.into()), ..BottommostLevelCompaction::Force.into() };
    db.compact_range_cf_with(&cf, None, None, &options).unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    let found = secondary.get_with("k", &at(1)).map(|v| v.map(|v| v.to_vec()));
    assert!(found.is_err());
}

#[test]
fn a_wal_that_was_removed_is_not_tracked_again() {
    let fs = GatedFs::default();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options =
        DbOptions { track_and_verify_wals_in_manifest: true, max_background_jobs: 32, ..creating() };
    let db = Arc::new(
        Db::builder("/db")
            .options(options.clone())
            .env(env.clone())
            .listener(Arc::new(FlushGate(fs.gate.clone())))
            .column_families(["default", "b", "c"])
            .open()
            .unwrap(),
    );
    let a = db.default_column_family().clone();
    let (b, c) = (db.column_family("b").unwrap(), db.column_family("c").unwrap());
    let current = || db.current_wal_file().unwrap();
    let name = |number: u64| format!("sync:/db/{number:06}.log");
    let w0 = current().number;
    fs.gate.close(&name(w0));
    fs.gate.close("flush:b");
    fs.gate.close("flush:c");
    db.put_cf(&a, "a1", "1").unwrap();
    no_wait(&db, &a);
    fs.gate.until_waits(&name(w0));
    let w1 = current().number;
    db.put_cf(&b, "b1", "1").unwrap();
    no_wait(&db, &b);
    db.put_cf(&c, "c1", "1").unwrap();
    no_wait(&db, &c);
    fs.gate.until_waits("flush:b");
    fs.gate.until_waits("flush:c");
    fs.gate.close(&name(w1));
    fs.gate.open(&name(w0));
    // The flush of a ends.
    while db.property_cf(&a, "rocksdb.num-files-at-level0").as_deref() == Some("0") {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(300));
    fs.gate.open("flush:c");
    fs.gate.until_waits(&name(w1));
    db.drop_column_family(&b).unwrap();
    db.put_cf(&a, "a2", "1").unwrap();
    fs.gate.open(&name(w1));
    while db.property_cf(&c, "rocksdb.num-files-at-level0").as_deref() == Some("0") {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(300));
    fs.gate.open("flush:b");
    std::mem::forget((db, a, b, c));
    fs.inner.kill();
    let opened =
        Db::builder("/db").options(options).env(env).column_families(["default", "c"]).open().map(|db| {
            std::mem::forget(db);
        });
    assert!(opened.is_ok());
}

fn raised_low(seed: u64, raises: bool) -> (bool, bool) {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let gate = Arc::new(Gate::default());
    gate.close("flush:default");
    let family =
        || ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(family())
        .listener(Arc::new(FlushGate(gate.clone())))
        .open()
        .unwrap();
    db.put_at("k1", 1.into(), vec![b'x'; 20_000]).unwrap();
    no_wait(&db, db.default_column_family());
    gate.until_waits("flush:default");
    db.put_at("k2", 2.into(), "2").unwrap();
    if raises {
        db.increase_full_history_low(db.default_column_family(), 1.into()).unwrap();
    }
    std::mem::forget(db);
    fs.crash_torn(seed);
    let db = Db::builder("/db").options(creating()).env(env.clone()).column_family(family()).open().unwrap();
    let at = ReadOptions::at_timestamp(9.into());
    let found = |key: &str| db.get_with(key, &at).unwrap().is_some();
    let found = (found("k1"), found("k2"));
    std::mem::forget(db);
    found
}

#[test]
fn raising_the_low_timestamp_makes_no_gaps() {
    for raises in [false, true] {
        let gaps = (0..100).filter(|seed| raised_low(*seed, raises) == (false, true)).count();
        assert_eq!(gaps, 0);
    }
}

#[test]
fn a_snapshot_that_is_taken_during_an_ingestion_stays_as_it_was() {
    let fs = GatedFs::default();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Arc::new(Db::builder("/db").options(creating()).env(env.clone()).open().unwrap());
    let mut writer = SstFileWriter::create("/db/new.sst", &env, &ColumnFamilyDescriptor::default()).unwrap();
    writer.put(b"a", b"1").unwrap();
    writer.finish().unwrap();
    fs.gate.close("sync:/db/MANIFEST");
    let ingesting = {
        let db = db.clone();
        std::thread::spawn(move || db.ingest_external_files(&["/db/new.sst"]).unwrap())
    };
    fs.gate.until_waits("sync:/db/MANIFEST");
    let reading = {
        let db = db.clone();
        std::thread::spawn(move || {
            let snapshot = db.snapshot();
            let there = db.get_with("a", &ReadOptions::at(&snapshot)).unwrap().is_some();
            (snapshot, there)
        })
    };
    give_time_to(&reading);
    fs.gate.open("sync:/db/MANIFEST");
    ingesting.join().unwrap();
    let (snapshot, before) = reading.join().unwrap();
    let after = db.get_with("a", &ReadOptions::at(&snapshot)).unwrap().is_some();
    assert_eq!(before, after);
}

thread_local! {
    static ARMED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

struct Panics;

impl UserComparator for Panics {
    fn name(&self) -> &str {
        "test.Panics"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        if ARMED.get() && (a.starts_with(b"boom") || b.starts_with(b"boom")) {
            std::panic::resume_unwind(Box::new("sprung"));
        }
        a.cmp(b)
    }
}

#[test]
fn nothing_is_sealed_between_a_panic_and_its_error() {
    let parts =
        ColumnFamilyParts { comparator: Comparator::User(Arc::new(Panics)), ..ColumnFamilyParts::default() };
    let db = Db::builder("/db")
        .options(creating())
        .env(Env::with_file_system(Arc::new(MemoryFs::new())))
        .column_family(ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts))
        .open()
        .unwrap();
    let (mut shown, mut rounds) = (0, 0);
    for round in 0..1000 {
        let stop = AtomicBool::new(false);
        let mut refused = false;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _ = db.flush_cfs(db.column_families().as_slice(), Wait::No);
                    }
                });
            }
            std::thread::sleep(Duration::from_micros(200));
            ARMED.set(true);
            let mut batch = WriteBatch::new();
            batch.put(format!("part{round}"), "1");
            batch.put("boom", "2");
            refused = db.write(&mut batch).is_err();
            ARMED.set(false);
            stop.store(true, Ordering::Relaxed);
        });
        rounds += usize::from(refused);
        let there = || db.get(format!("part{round}")).unwrap().is_some();
        if db.background_error().is_some() {
            db.resume().unwrap();
        }
        db.put("after", "1").unwrap();
        if refused && there() {
            shown += 1;
        }
    }
    assert!(rounds > 0);
    assert_eq!(shown, 0);
}

#[test]
fn memtables_that_wait_for_others_are_not_waited_for() {
    let options = ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        max_write_buffer_number: 4,
        min_write_buffer_number_to_merge: 2,
        ..ColumnFamilyOptions::default()
    };
    let db = Db::builder("/db")
        .options(creating())
        .env(Env::memory())
        .column_family(ColumnFamilyDescriptor::default_with(options, Default::default()))
        .open()
        .unwrap();
    let sealed = || db.property_int("rocksdb.num-immutable-mem-table").unwrap();
    let mut i = 0;
    while sealed() == 0 {
        db.put(format!("k{i}"), vec![b'x'; 1000]).unwrap();
        i += 1;
    }
    let wait = WaitForCompactOptions { timeout: Some(Duration::from_secs(5)), ..Default::default() };
    let waited = db.wait_for_compact(&wait);
    assert!(waited.is_ok());
}

/// Kills a process after the writes of `act`; the database is opened again so that what it replays stays in memory.
fn killed(fs: &MemoryFs, act: impl FnOnce(&Db)) {
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let mut options = creating();
    options.kept.set(outcrop_options::kept::DB_KEPT, "avoid_flush_during_recovery", "true").unwrap();
    let db = Db::builder("/db").options(options).env(env).open().unwrap();
    act(&db);
    std::mem::forget(db);
    fs.kill();
}

#[test]
fn a_write_past_the_wal_hides_none_after_it_from_a_replay_into_memory() {
    let fs = MemoryFs::new();
    killed(&fs, |db| db.put("a", "1").unwrap());
    killed(&fs, |db| {
        let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        db.put_with("b", "1", &unlogged).unwrap();
        db.put_with("c", "1", &synced()).unwrap();
    });
    killed(&fs, |db| {
        let there = |key: &str| db.get(key).unwrap().is_some();
        assert!(there("a") && there("c"));
    });
}

#[test]
fn an_ingestion_hides_no_write_after_it_from_a_replay_into_memory() {
    let fs = MemoryFs::new();
    killed(&fs, |db| db.put("a", "1").unwrap());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let mut writer = SstFileWriter::create("/db/new.sst", &env, &ColumnFamilyDescriptor::default()).unwrap();
    writer.put(b"x", b"1").unwrap();
    writer.finish().unwrap();
    killed(&fs, |db| {
        let _snapshot = db.snapshot();
        db.ingest_external_files(&["/db/new.sst"]).unwrap();
        db.put_with("c", "1", &synced()).unwrap();
    });
    killed(&fs, |db| {
        let there = |key: &str| db.get(key).unwrap().is_some();
        assert!(there("a") && there("x") && there("c"));
    });
}

struct TakesAway;

impl EventListener for TakesAway {
    fn background_error(&self, _: BackgroundErrorReason, status: &mut Option<Error>) {
        *status = None;
    }
}

#[test]
fn a_flush_that_fails_is_tried_again_for_whoever_waits() {
    use outcrop_env::faulty::{EIO, FaultyFs};
    let fs = FaultyFs::new(MemoryFs::new());
    let options = ColumnFamilyOptions {
        max_write_buffer_number: 4,
        min_write_buffer_number_to_merge: 2,
        ..ColumnFamilyOptions::default()
    };
    let db = Arc::new(
        Db::builder("/db")
            .options(creating())
            .env(Env::with_file_system(Arc::new(fs.clone())))
            .listener(Arc::new(TakesAway))
            .column_family(ColumnFamilyDescriptor::default_with(options, Default::default()))
            .open()
            .unwrap(),
    );
    db.put("a", "1").unwrap();
    fs.faults().only(Some(".sst"));
    fs.faults().fail_at(fs.faults().changes(), EIO, false);
    let (done, ended) = std::sync::mpsc::channel();
    let flushing = db.clone();
    std::thread::spawn(move || done.send(flushing.flush()));
    let ended = ended.recv_timeout(Duration::from_secs(10));
    assert!(ended.is_ok());
}

#[test]
fn a_column_family_of_another_database_is_not_exported() {
    let env = Env::memory();
    let open = |path: &str| Db::builder(path).options(creating()).env(env.clone()).open().unwrap();
    let (one, two) = (open("/one"), open("/two"));
    one.put("one", "1").unwrap();
    two.put("two", "2").unwrap();
    one.flush().unwrap();
    two.flush().unwrap();
    let exported = one.export_column_family(two.default_column_family(), "/export");
    assert!(exported.is_err());
}

/// Whether a transaction that is prepared waits after attempts to resume that failed, and then a loss of power.
fn waits_after_attempts(seed: u64) -> bool {
    use outcrop_env::faulty::{EIO, FaultyFs};
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let open = |options: DbOptions| {
        let builder = Db::builder("/db").options(options).env(env.clone());
        TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap()
    };
    let db = open(DbOptions { max_bgerror_resume_count: 0, ..creating() });
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"t").unwrap();
    txn.put("k", "v").unwrap();
    txn.prepare().unwrap();
    // From here on the memtable needs a newer WAL than the transaction.
    db.db().put("flushed", "1").unwrap();
    db.db().flush().unwrap();
    db.db().put("unsynced", vec![b'x'; 20_000]).unwrap();
    fs.faults().only(Some(".log"));
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    db.db().put_with("failed", "1", &synced()).unwrap_err();
    fs.faults().only(Some(".sst"));
    for _ in 0..3 {
        assert_eq!(db.db().resume().unwrap_err().kind(), ErrorKind::IoError);
    }
    std::mem::forget((txn, db));
    fs.memory().crash_torn(seed);
    fs.faults().heal();
    let db = open(creating());
    let waiting = db.prepared_transactions().unwrap();
    waiting.iter().map(|txn| txn.name()).eq([b"t"])
}

#[test]
fn what_is_prepared_survives_attempts_to_resume_that_fail_and_then_a_loss_of_power() {
    let lost: Vec<u64> = (0..40).filter(|seed| !waits_after_attempts(*seed)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn what_is_prepared_survives_resuming_and_openings_after_it() {
    use outcrop_env::faulty::{EIO, FaultyFs};
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let open = || {
        let builder = Db::builder("/db").options(creating()).env(env.clone());
        TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap()
    };
    let db = open();
    let mut txn = db.begin_with(&synced(), &TransactionOptions::default());
    txn.set_name(b"t").unwrap();
    txn.put("k", "v").unwrap();
    txn.prepare().unwrap();
    db.db().put("unflushed", "1").unwrap();
    fs.faults().only(Some(".log"));
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    db.db().put_with("failed", "1", &synced()).unwrap_err();
    fs.faults().heal();
    db.db().resume().unwrap();
    for _ in 0..3 {
        db.db().put("after", "1").unwrap();
        db.db().flush().unwrap();
    }
    drop((txn, db));
    for _ in 0..2 {
        let db = open();
        assert!(db.prepared_transactions().unwrap().iter().map(|txn| txn.name()).eq([b"t"]));
    }
}

/// Holds a compaction that comes to a key that begins with "a".
struct CompactionGate(Arc<Gate>);

impl CompactionFilter for CompactionGate {
    fn name(&self) -> &str {
        "CompactionGate"
    }
    fn filter(&self, _: usize, key: &[u8], _: &[u8]) -> FilterDecision {
        if key.starts_with(b"a") {
            self.0.pass("compaction");
        }
        FilterDecision::Keep
    }
}

#[test]
fn nothing_is_put_between_the_inputs_of_a_running_compaction() {
    for checks in [true, false] {
        let gate = Arc::new(Gate::default());
        let options = ColumnFamilyOptions {
            level0_file_num_compaction_trigger: 2,
            force_consistency_checks: checks,
            ..ColumnFamilyOptions::default()
        };
        let filter: Arc<dyn CompactionFilter> = Arc::new(CompactionGate(gate.clone()));
        let parts = ColumnFamilyParts { compaction_filter: Some(filter), ..ColumnFamilyParts::default() };
        let family = ColumnFamilyDescriptor::default_with(options, parts);
        let options = DbOptions { max_background_jobs: 8, ..creating() };
        let builder = Db::builder("/db").options(options).env(Env::memory()).column_family(family);
        let db = builder.open().unwrap();
        for keys in [["a", "b"], ["x", "y"]] {
            keys.iter().for_each(|key| db.put(key, "old").unwrap());
            db.flush().unwrap();
            db.compact_range(None, None).unwrap();
        }
        gate.close("compaction");
        std::thread::scope(|scope| {
            let whole = || db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into());
            let whole = scope.spawn(whole);
            gate.until_waits("compaction");
            for key in ["m1", "m2"] {
                db.put(key, "new").unwrap();
                db.flush().unwrap();
            }
            let l0 = || db.live_files().into_iter().filter(|file| file.level == 0).collect::<Vec<_>>();
            // A compaction of them by itself would begin and end in this time.
            give_time_for(|| l0().len() < 2);
            let numbers: Vec<u64> = l0().iter().map(|file| file.number).collect();
            let by_caller = db.compact_files(&numbers, 6);
            gate.open("compaction");
            assert_eq!(numbers.len(), 2, "they were put between the inputs");
            let error = by_caller.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
            whole.join().unwrap().unwrap();
        });
        db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
        db.put("n", "new").unwrap();
        db.compact_range(None, None).unwrap();
        for (key, value) in
            [("a", "old"), ("b", "old"), ("m1", "new"), ("m2", "new"), ("n", "new"), ("y", "old")]
        {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
        }
        assert_eq!(db.iter().map(Result::unwrap).count(), 7);
    }
}
