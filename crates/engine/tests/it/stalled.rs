//! Writes that are slowed or stopped: nothing but writes waits for them.
//!
//! The engine reads its clock when a writer begins to wait, and sleeps by it; a clock of the tests says so and holds the
//! sleeper. No test waits for time: a minute passes only if somebody waits for ever.

use crate::harness::creating;
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use outcrop_env::clock::{Clock, SystemClock};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long nothing takes unless it takes for ever.
const FOR_EVER: Duration = Duration::from_secs(60);

/// The threads whose use of the clock counts.
const WRITER: &str = "writer";

/// A clock that tells when a thread called [`WRITER`] looks at it, and lets it sleep until it is told to wake up.
struct StallClock {
    system: SystemClock,
    looked: Mutex<Sender<()>>,
    sleeps: Mutex<Sender<()>>,
    wake: Mutex<Receiver<()>>,
}

/// The other ends of the clock's channels.
struct Watch {
    looked: Receiver<()>,
    sleeps: Receiver<()>,
    wake: Sender<()>,
}

fn is_writer() -> bool {
    std::thread::current().name() == Some(WRITER)
}

impl Clock for StallClock {
    fn now_micros(&self) -> u64 {
        self.system.now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        if is_writer() {
            let _ = self.looked.lock().unwrap().send(());
        }
        self.system.monotonic_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.system.thread_cpu_nanos()
    }

    fn sleep(&self, duration: Duration) {
        if is_writer() {
            let _ = self.sleeps.lock().unwrap().send(());
            // An error: the test is over.
            let _ = self.wake.lock().unwrap().recv();
        } else {
            self.system.sleep(duration);
        }
    }
}

fn watched() -> (Env, Watch) {
    let ((looked, on_look), (sleeps, on_sleep), (waker, wake)) = (channel(), channel(), channel());
    let clock = StallClock {
        system: SystemClock::default(),
        looked: Mutex::new(looked),
        sleeps: Mutex::new(sleeps),
        wake: Mutex::new(wake),
    };
    let watch = Watch { looked: on_look, sleeps: on_sleep, wake: waker };
    (Env { clock: Arc::new(clock), ..Env::memory() }, watch)
}

/// Options under which two tables in L0 slow writes down, or stop them.
fn options(stop: bool) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        level0_file_num_compaction_trigger: 2,
        level0_slowdown_writes_trigger: 2,
        level0_stop_writes_trigger: if stop { 2 } else { 100 },
        ..ColumnFamilyOptions::default()
    }
}

fn open(env: &Env, options: &ColumnFamilyOptions) -> Arc<Db> {
    let family = |name: &str, options: &ColumnFamilyOptions| ColumnFamilyDescriptor {
        name: name.into(),
        options: options.clone(),
        ..ColumnFamilyDescriptor::default()
    };
    let families = vec![family("default", options), family("other", &ColumnFamilyOptions::default())];
    Arc::new(
        Db::builder("/db").options(creating()).env(env.clone()).column_families(families).open().unwrap(),
    )
}

fn put(db: &Db, key: &[u8]) -> Result<()> {
    db.put(key, b"value")
}

fn put_or_fail(db: &Db, key: &[u8]) -> ErrorKind {
    let options = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    db.put_with(key, b"value", &options).expect_err("it would have to wait").kind()
}

/// Compactions rest, and L0 has two tables.
fn stall(db: &Db) {
    db.pause_background_work();
    for key in [b"1", b"2"] {
        put(db, key).unwrap();
        flush(db, db.default_column_family());
    }
}

fn flush(db: &Db, cf: &ColumnFamilyHandle) {
    db.flush_cf(cf).unwrap();
}

/// Runs `call` in a thread called `name`.
fn thread<T: Send + 'static>(name: &str, call: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::Builder::new().name(name.to_string()).spawn(call).unwrap()
}

/// Runs `call` in a thread; it must end.
fn ends(what: &str, call: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let thread = thread("caller", move || {
        call();
        let _ = done.send(());
    });
    let outcome = ended.recv_timeout(FOR_EVER);
    assert!(outcome != Err(RecvTimeoutError::Timeout), "{what} waits for ever");
    thread.join().unwrap();
}

/// Everything but writes, on a database with a writer that waits.
fn all_but_writes(db: &Arc<Db>) {
    let of = |call: fn(&Db)| {
        let db = db.clone();
        move || call(&db)
    };
    ends("flush_wal", of(|db| db.flush_wal().unwrap()));
    ends("sync_wal", of(|db| db.sync_wal().unwrap()));
    ends("a write that must not wait", of(|db| assert_eq!(put_or_fail(db, b"no"), ErrorKind::Incomplete)));
    ends("flush", of(|db| flush(db, &db.column_family("other").unwrap())));
    ends(
        "compact_range",
        of(|db| {
            let other = db.column_family("other").unwrap();
            // Nothing is there to compact: compactions rest.
            db.compact_range_cf_with(&other, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        }),
    );
    ends(
        "creating and dropping column families",
        of(|db| {
            let descriptor =
                ColumnFamilyDescriptor { name: "new".into(), ..ColumnFamilyDescriptor::default() };
            let new = db.create_column_family(&descriptor).unwrap();
            db.drop_column_family(&new).unwrap();
        }),
    );
    ends(
        "set_options",
        of(|db| {
            let other = db.column_family("other").unwrap();
            db.set_options_cf(&other, &[("max_write_buffer_number", "3")]).unwrap();
        }),
    );
    ends("a checkpoint", of(|db| db.create_checkpoint("/checkpoint").unwrap()));
    ends("flush of what is slowed", of(|db| flush(db, db.default_column_family())));
}

#[test]
fn a_stopped_writer_stops_nothing_else_and_goes_on_when_compactions_do() {
    let (env, watch) = watched();
    let db = open(&env, &options(true));
    stall(&db);
    let of_writer = db.clone();
    let writer = thread(WRITER, move || put(&of_writer, b"3"));
    watch.looked.recv().unwrap();
    all_but_writes(&db);
    assert!(db.get(b"3").unwrap().is_none(), "the writer still waits");
    db.continue_background_work();
    ends("the writer", move || writer.join().unwrap().unwrap());
    assert!(db.get(b"3").unwrap().is_some());
    assert!(db.get(b"no").unwrap().is_none());
}

#[test]
fn a_stopped_writer_goes_on_when_options_say_so() {
    let (env, watch) = watched();
    let db = open(&env, &options(true));
    stall(&db);
    let of_writer = db.clone();
    let writer = thread(WRITER, move || put(&of_writer, b"3"));
    watch.looked.recv().unwrap();
    let of_caller = db.clone();
    ends("set_options", move || {
        let cf = of_caller.default_column_family();
        of_caller.set_options_cf(cf, &[("disable_auto_compactions", "true")]).unwrap();
    });
    ends("the writer", move || writer.join().unwrap().unwrap());
}

#[test]
fn a_stopped_writer_is_told_that_the_database_closes() {
    let (env, watch) = watched();
    let db = open(&env, &options(true));
    stall(&db);
    // One waits for room, the others for it; which is which does not matter.
    let writers: Vec<_> = [b"3", b"4", b"5"]
        .into_iter()
        .map(|key| {
            let db = db.clone();
            thread(WRITER, move || put(&db, key).unwrap_err().kind())
        })
        .collect();
    watch.looked.recv().unwrap();
    let of_caller = db.clone();
    ends("cancelling", move || of_caller.cancel_all_background_work(Wait::UntilDone));
    for writer in writers {
        ends("a writer", move || assert_eq!(writer.join().unwrap(), ErrorKind::ShutdownInProgress));
    }
    ends("closing", move || Arc::into_inner(db).expect("all threads have ended").close().unwrap());
    let db = open(&env, &ColumnFamilyOptions::default());
    assert!(db.get(b"2").unwrap().is_some());
    assert!(db.get(b"3").unwrap().is_none());
}

#[test]
fn a_slowed_writer_sleeps_and_nobody_with_it() {
    let (env, watch) = watched();
    let db = open(&env, &options(false));
    // 16 KiB per second are the least: the next write waits for the cost of this one.
    stall(&db);
    let (of_writer, large) = (db.clone(), vec![7; 1 << 20]);
    let writer = thread(WRITER, move || {
        let first = of_writer.put(b"3", &large);
        first.and_then(|()| put(&of_writer, b"4"))
    });
    watch.sleeps.recv().unwrap();
    all_but_writes(&db);
    assert!(db.get(b"4").unwrap().is_none(), "the writer still sleeps");
    // Closing does not wait until it has slept enough.
    let of_caller = db.clone();
    ends("cancelling", move || of_caller.cancel_all_background_work(Wait::UntilDone));
    drop(watch.wake);
    ends("the writer", move || {
        assert_eq!(writer.join().unwrap().unwrap_err().kind(), ErrorKind::ShutdownInProgress)
    });
}

#[test]
fn a_write_that_is_slowed_and_then_stopped_is_counted_once() {
    let (env, watch) = watched();
    let statistics = Arc::new(Statistics::new());
    let family = ColumnFamilyDescriptor {
        name: "default".into(),
        options: options(false),
        ..ColumnFamilyDescriptor::default()
    };
    let db = Db::builder("/db").options(creating()).env(env).statistics(statistics.clone());
    let db = Arc::new(db.column_families(vec![family]).open().unwrap());
    stall(&db);
    let (of_writer, large) = (db.clone(), vec![7; 1 << 20]);
    let writer = thread(WRITER, move || {
        let first = of_writer.put(b"3", &large);
        first.and_then(|()| put(&of_writer, b"4"))
    });
    watch.sleeps.recv().unwrap();
    let set = |name, value| db.set_options_cf(db.default_column_family(), &[(name, value)]).unwrap();
    set("level0_stop_writes_trigger", "2");
    while watch.looked.try_recv().is_ok() {}
    // The sleep ends, and finds writes stopped: the clock is read before it waits for that.
    drop(watch.wake);
    watch.looked.recv().unwrap();
    set("disable_auto_compactions", "true");
    ends("the writer", move || writer.join().unwrap().unwrap());
    assert_eq!(statistics.histogram(HistogramKind::WriteStall).count(), 1);
    let micros = statistics.ticker(Ticker::StallMicros);
    assert_eq!(statistics.histogram(HistogramKind::WriteStall).sum(), micros);
    assert!(micros > 0);
}
