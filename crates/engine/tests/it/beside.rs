//! Databases beside a database: checkpoints, read-only openings, secondaries.

use crate::harness::{LEAST_MEMTABLE, Rows, StopOnDrop, contents, creating, descriptor, work_done};
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn small() -> ColumnFamilyOptions {
    ColumnFamilyOptions { write_buffer_size: LEAST_MEMTABLE, ..ColumnFamilyOptions::default() }
}

fn families(names: &[&str]) -> Vec<ColumnFamilyDescriptor> {
    names.iter().map(|name| descriptor(name, &small())).collect()
}

fn rows(db: &Db, family: &str) -> Rows {
    contents(db, &db.column_family(family).unwrap(), &ReadOptions::default())
}

fn put(db: &Db, from: u32, to: u32) {
    for i in from..to {
        db.put(format!("key{i:05}").as_bytes(), [b'v'; 400]).unwrap();
    }
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(families(&["default", "other"]))
        .open()
        .unwrap();
    put(&db, 0, 1000);
    for (target, log_size_for_flush) in [("/flushed", 0), ("/with-wals", u64::MAX)] {
        let before = rows(&db, "default");
        db.create_checkpoint_with(target, log_size_for_flush).unwrap();
        put(&db, 1000, 1200);
        let copy = Db::builder(target)
            .options(DbOptions::default())
            .env(env.clone())
            .column_families(families(&["default", "other"]))
            .open()
            .unwrap();
        assert_eq!(rows(&copy, "default"), before, "{target}");
        put(&copy, 5000, 5500);
        let cf = copy.default_column_family().clone();
        copy.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        assert_eq!(rows(&copy, "default").len(), before.len() + 500);
        assert_eq!(rows(&db, "default").len(), 1200, "{target}: the original goes on untouched");
    }
    let work = work_done(&db, &env, "/db");
    assert!(work.memtables >= 7, "memtables fill between checkpoints: {work:?}");
    let error = db.create_checkpoint("/flushed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn checkpoints_hold_whole_batches_while_others_write() {
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(families(&["default", "other"]))
        .open()
        .unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A failed assertion must end the writer too, or the scope would wait for it for ever.
        let _stopping = StopOnDrop(&stop);
        let writer = scope.spawn(|| {
            let both = [db.default_column_family().clone(), db.column_family("other").unwrap()];
            for i in 0u32.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let mut batch = WriteBatch::new();
                both.iter().for_each(|cf| batch.put_cf(cf, i.to_be_bytes(), [7; 100]));
                db.write(&mut batch).unwrap();
            }
        });
        for round in 0..6 {
            let target = format!("/copy{round}");
            db.create_checkpoint_with(&target, if round % 2 == 0 { 0 } else { 1 << 30 }).unwrap();
            let copy = Db::builder(&target)
                .options(DbOptions::default())
                .env(env.clone())
                .column_families(families(&["default", "other"]))
                .open()
                .unwrap();
            let keys = |family| rows(&copy, family).into_keys().collect::<Vec<_>>();
            let (left, right) = (keys("default"), keys("other"));
            assert_eq!(left, right, "round {round}: a batch is whole or absent");
            let prefix: Vec<_> = (0..left.len() as u32).map(|i| i.to_be_bytes().to_vec()).collect();
            assert_eq!(left, prefix, "round {round}: a prefix of history");
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let work = work_done(&db, &env, "/db");
    println!("{work:?}");
}

#[test]
fn a_failed_checkpoint_leaves_nothing_behind() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(families(&["default"]))
        .open()
        .unwrap();
    put(&db, 0, 500);
    fs.faults().only(Some("/copy"));
    // The first change makes room for the new directory and may fail.
    let mut failures = 1;
    loop {
        fs.faults().fail_at(fs.faults().changes() + failures, EIO, false);
        if db.create_checkpoint("/copy").is_ok() {
            break;
        }
        failures += 1;
        fs.faults().heal();
        let left = fs.memory().files().iter().filter(|(path, _)| !path.starts_with("/db")).count();
        assert_eq!(left, 0, "failure {failures}");
    }
    fs.faults().heal();
    assert!(failures > 5, "every step was made to fail once: {failures}");
    let copy = Db::builder("/copy")
        .options(DbOptions::default())
        .env(env)
        .column_families(families(&["default"]))
        .open()
        .unwrap();
    assert_eq!(rows(&copy, "default"), rows(&db, "default"));
}

#[test]
fn read_only_databases_show_everything_and_change_nothing() {
    let memory = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(memory.clone()));
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(families(&["default", "other"]))
        .open()
        .unwrap();
    put(&db, 0, 700);
    let expected = rows(&db, "default");
    // Beside the writer, with one column family left out.
    let reader = Db::builder("/db")
        .options(DbOptions::default())
        .env(env.clone())
        .column_families(families(&["default"]))
        .open_read_only();
    let reader = reader.unwrap();
    assert_eq!(rows(&reader, "default"), expected);
    let cf = reader.default_column_family().clone();
    for refused in [
        reader.put(b"k", b"v"),
        reader.flush_cf(&cf),
        reader.compact_range_cf(&cf, None, None),
        reader.set_options_cf(&cf, &[("level0_stop_writes_trigger", "40")]),
        reader.resume(),
        reader.create_checkpoint("/copy"),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotSupported);
    }
    drop(db);
    let before = memory.files();
    let again = Db::builder("/db")
        .options(DbOptions::default())
        .env(env.clone())
        .column_families(families(&["default"]))
        .open_read_only();
    assert_eq!(rows(&again.unwrap(), "default"), expected);
    assert_eq!(memory.files(), before, "nothing was written");
    let refused = Db::builder("/db")
        .options(DbOptions::default())
        .env(env)
        .column_families(families(&["default"]))
        .error_if_wal_file_exists(true)
        .open_read_only();
    assert!(refused.err().unwrap().to_string().contains("error_if_wal_file_exists"));
}

/// Open tables stay open when a secondary catches up: it reads no block again that is in its cache.
#[test]
fn a_secondary_opens_each_table_once() {
    let env = Env::memory();
    let family = || {
        let mut options = small();
        (options.enable_blob_files, options.min_blob_size) = (true, 300);
        ColumnFamilyDescriptor::new("default").with_options(options)
    };
    let db = Db::builder("/db").options(creating()).env(env.clone()).column_family(family()).open().unwrap();
    put(&db, 0, 500);
    db.flush().unwrap();
    for max_open_files in [-1, 100] {
        let statistics = Arc::new(Statistics::new());
        let secondary = Db::builder("/db")
            .options(DbOptions { max_open_files, ..DbOptions::default() })
            .env(env.clone())
            .column_family(family())
            .statistics(statistics.clone())
            .open_secondary()
            .unwrap();
        let count = |ticker| statistics.ticker(ticker);
        // The second time blocks are cached, too, that the first only passed through.
        for _ in 0..2 {
            assert_eq!(rows(&secondary, "default"), rows(&db, "default"));
        }
        let (opens, misses) = (count(Ticker::NoFileOpens), count(Ticker::BlockCacheDataMiss));
        assert!(opens > 0 && misses > 0, "{opens} files opened, {misses} blocks read");
        for _ in 0..3 {
            secondary.try_catch_up_with_primary().unwrap();
            assert_eq!(rows(&secondary, "default"), rows(&db, "default"));
        }
        assert_eq!(
            (count(Ticker::NoFileOpens), count(Ticker::BlockCacheDataMiss)),
            (opens, misses),
            "max_open_files {max_open_files}: nothing is new"
        );
        // A new table is opened, those before stay open; one that is moved to another level is the same.
        put(&db, 500, 600);
        db.flush().unwrap();
        secondary.try_catch_up_with_primary().unwrap();
        assert_eq!(rows(&secondary, "default"), rows(&db, "default"));
        let more = count(Ticker::NoFileOpens) - opens;
        assert!(
            (1..=3).contains(&more),
            "max_open_files {max_open_files}: {more} opened for a table and its blobs"
        );
    }
}

#[test]
fn a_secondary_follows_its_primary() {
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(families(&["default"]))
        .open()
        .unwrap();
    put(&db, 0, 100);
    let secondary = Db::builder("/db")
        .options(DbOptions::default())
        .env(env.clone())
        .column_families(families(&["default"]))
        .open_secondary()
        .unwrap();
    assert_eq!(rows(&secondary, "default"), rows(&db, "default"));
    let mut iter = secondary.cursor().unwrap();
    for round in 1..8 {
        put(&db, round * 100, round * 100 + 300);
        db.delete(format!("key{:05}", round * 3).as_bytes()).unwrap();
        if round % 3 == 0 {
            let cf = db.default_column_family().clone();
            db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        }
        secondary.try_catch_up_with_primary().unwrap();
        assert_eq!(rows(&secondary, "default"), rows(&db, "default"), "round {round}");
    }
    let work = work_done(&db, &env, "/db");
    assert!(work.memtables >= 14, "memtables fill while it follows: {work:?}");
    iter.seek_to_first();
    let mut seen = 0;
    while iter.valid() {
        seen += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(seen, 100, "an iterator stays where it was made");
    assert!(db.try_catch_up_with_primary().is_err());
}

/// How many keys [`Overwriting`] has.
const RING: u64 = 500;

/// Writes one batch after the other, batch `i` giving key `i % RING` the value `i` in both column families, with memtables so
/// small that flushes, new WALs and obsolete files never end.
struct Overwriting {
    path: String,
    env: Env,
    /// Bytes of a MANIFEST after which there is another.
    max_manifest_file_size: u64,
}

impl Overwriting {
    fn families(&self) -> Vec<ColumnFamilyDescriptor> {
        families(&["default", "other"])
    }

    /// Writes until `stop`, saying how many batches are acknowledged.
    fn write(&self, db: &Db, stop: &AtomicBool, acknowledged: &AtomicU64) {
        let both = [db.default_column_family().clone(), db.column_family("other").unwrap()];
        for i in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut batch = WriteBatch::new();
            let value = format!("{i:020}{}", "x".repeat(220));
            for cf in &both {
                batch.put_cf(cf, (i % RING).to_be_bytes(), &value);
            }
            // One column family is flushed ahead of the other.
            batch.put_cf(&both[1], b"more", value.repeat(1 + i as usize % 3));
            db.write(&mut batch).unwrap();
            // Release: pairs with the Acquire of the reader.
            acknowledged.store(i + 1, Ordering::Release);
        }
    }

    /// Checks that `db` shows the rows after some number of batches, at least `least`.
    fn check(&self, db: &Db, least: u64, what: &str) {
        let number = |value: &[u8]| String::from_utf8_lossy(&value[..20]).parse::<u64>().unwrap();
        let mut counts = Vec::new();
        for family in ["default", "other"] {
            let mut rows = rows(db, family);
            rows.remove(&b"more"[..]);
            let count = rows.values().map(|value| number(value) + 1).max().unwrap_or(0);
            assert!(count >= least, "{what}: {family}: {count} batches, {least} were acknowledged");
            assert_eq!(rows.len() as u64, count.min(RING), "{what}: {family}: rows");
            for (key, value) in &rows {
                let key = u64::from_be_bytes(key.as_slice().try_into().unwrap());
                let last = (count - 1 - key) / RING * RING + key;
                assert_eq!(number(value), last, "{what}: {family}: key {key} of {count} batches");
            }
            counts.push(count);
        }
        assert_eq!(counts[0], counts[1], "{what}: batches are whole");
    }

    /// Opens beside the writer, again and again.
    fn read_beside(&self) {
        let max_manifest_file_size = self.max_manifest_file_size;
        let db = Db::builder(&self.path)
            .options(DbOptions { max_manifest_file_size, ..creating() })
            .env(self.env.clone())
            .column_families(self.families())
            .open()
            .unwrap();
        let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
        // Acquire: pairs with the Release of the writer.
        let least = || acknowledged.load(Ordering::Acquire);
        std::thread::scope(|scope| {
            let _stopping = StopOnDrop(&stop);
            scope.spawn(|| self.write(&db, &stop, &acknowledged));
            while least() < 3 * RING {
                std::thread::yield_now();
            }
            let options = || DbOptions { max_open_files: -1, ..DbOptions::default() };
            let secondary = Db::builder(&self.path)
                .options(options())
                .env(self.env.clone())
                .column_families(self.families())
                .open_secondary()
                .unwrap();
            for round in 0..60 {
                let from = least();
                let opened = Db::builder(&self.path)
                    .options(options())
                    .env(self.env.clone())
                    .column_families(self.families())
                    .open_read_only();
                self.check(&opened.unwrap(), from, &format!("read only, round {round}"));
                let from = least();
                secondary.try_catch_up_with_primary().unwrap();
                self.check(&secondary, from, &format!("secondary, round {round}"));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let work = work_done(&db, &self.env, &self.path);
        println!("{} batches, {work:?}", least());
        // The first 1,500 batches alone fill six memtables of the one column family and eleven of the other.
        assert!(work.memtables >= 16 && work.compactions > 0, "{work:?}");
    }
}

#[test]
fn what_is_read_beside_a_writer_is_a_prefix_in_memory() {
    // One MANIFEST after the other: the readers find that theirs is not the database's any more.
    Overwriting { path: "/db".into(), env: Env::memory(), max_manifest_file_size: 8 << 10 }.read_beside();
}

#[test]
fn what_is_read_beside_a_writer_is_a_prefix_on_the_real_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db").to_str().unwrap().to_string();
    Overwriting { path, env: Env::posix(), max_manifest_file_size: 1 << 30 }.read_beside();
}

#[test]
fn updates_are_read_from_the_wals_as_they_are_written() {
    let env = Env::memory();
    // Nothing is flushed, so that every WAL stays.
    let options = ColumnFamilyOptions { write_buffer_size: 64 << 20, ..ColumnFamilyOptions::default() };
    let db = Db::builder("/db")
        .options(creating())
        .env(env)
        .column_family(descriptor("default", &options))
        .open()
        .unwrap();
    put(&db, 0, 50);
    let since = db.latest_sequence_number();
    assert_eq!(db.updates_since(since.plus(1)).err().unwrap().kind(), ErrorKind::NotFound);
    let mut updates = db.updates_since(since).unwrap();
    assert_eq!(updates.next_batch().unwrap().unwrap().0, since);
    assert!(updates.next_batch().unwrap().is_none(), "nothing was written since");
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1");
    batch.delete(b"b");
    db.write(&mut batch).unwrap();
    db.put(b"c", b"3").unwrap();
    let (first, read) = updates.next_batch().unwrap().unwrap();
    assert_eq!((first, read.count()), (since.plus(1), 2));
    let ops: Vec<_> = read.iter().map(|record| format!("{:?}", record.unwrap().op)).collect();
    assert!(ops[0].starts_with("Put") && ops[1].starts_with("Delete"), "{ops:?}");
    assert_eq!(updates.next_batch().unwrap().unwrap().0, since.plus(3));
    assert!(updates.next_batch().unwrap().is_none());
    put(&db, 50, 60);
    let mut seen = 0;
    while let Some((_, batch)) = updates.next_batch().unwrap() {
        seen += batch.count();
    }
    assert_eq!(seen, 10);
    let mut all = db.updates_since(SeqNum(1)).unwrap();
    let mut count = 0;
    while let Some((first, batch)) = all.next_batch().unwrap() {
        assert_eq!(first.0, count + 1);
        count += u64::from(batch.count());
    }
    assert_eq!(count, db.latest_sequence_number().0);
    assert_eq!(db.updates_since(SeqNum(1000)).err().unwrap().kind(), ErrorKind::NotFound);
    let cf = db.default_column_family().clone();
    db.flush_cf(&cf).unwrap();
    put(&db, 60, 61);
    // Batches that are gone before the first that is there are no error.
    let last = db.latest_sequence_number();
    let mut left = db.updates_since(SeqNum(1)).unwrap();
    let mut newest = None;
    while let Some((first, _)) = left.next_batch().unwrap() {
        newest = Some(first);
    }
    assert_eq!(newest, Some(last));
    // A batch that is missing after it is an error, and stays one.
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put_with(b"unlogged", b"1", &unlogged).unwrap();
    assert_eq!(left.next_batch().unwrap_err().kind(), ErrorKind::TryAgain);
    let mut over_gap = db.updates_since(last).unwrap();
    assert_eq!(over_gap.next_batch().unwrap().unwrap().0, last);
    put(&db, 61, 62);
    for updates in [&mut left, &mut over_gap] {
        let kind = updates.next_batch().unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::TryAgain | ErrorKind::NotFound), "{kind:?}");
        assert_eq!(updates.next_batch().unwrap_err().kind(), kind);
    }
    // The number that was not logged is not asked for: it begins after it.
    assert_eq!(db.updates_since(last.plus(1)).unwrap().next_batch().unwrap().unwrap().0, last.plus(2));
}

/// A WAL that was read to its end and is removed before the next look is passed over.
#[test]
fn updates_go_on_after_a_wal_that_is_gone() {
    let env = Env::memory();
    let db = Db::builder("/db").env(env).create_if_missing(true).open().unwrap();
    put(&db, 0, 10);
    let mut updates = db.updates_since(SeqNum(1)).unwrap();
    for expected in 1..=10 {
        assert_eq!(updates.next_batch().unwrap().unwrap().0, SeqNum(expected));
    }
    let first = db.wal_files().unwrap()[0].number;
    db.flush().unwrap();
    put(&db, 10, 12);
    let is_there = |number| db.wal_files().unwrap().iter().any(|wal| wal.number == number);
    crate::harness::until("the WAL is removed", || !is_there(first));
    for expected in 11..=12 {
        assert_eq!(updates.next_batch().unwrap().unwrap().0, SeqNum(expected));
    }
    assert!(updates.next_batch().unwrap().is_none());
}

#[test]
fn the_newest_options_file_is_loaded() {
    let env = Env::memory();
    let options = ColumnFamilyOptions { num_levels: 5, ..ColumnFamilyOptions::default() };
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(descriptor("default", &options))
        .open()
        .unwrap();
    db.set_options_cf(db.default_column_family(), &[("level0_stop_writes_trigger", "77")]).unwrap();
    let loaded = Db::load_latest_options_in("/db", &env).unwrap();
    assert_eq!(loaded.families[0].1.num_levels, 5);
    assert_eq!(loaded.families[0].1.level0_stop_writes_trigger, 77);
    assert_eq!(loaded.ignored, []);
    assert_eq!(Db::load_latest_options_in("/", &env).err().unwrap().kind(), ErrorKind::NotFound);
}

/// A replica is given the writes that readers of this database see.
#[test]
fn updates_are_without_a_write_that_failed() {
    let all = |updates: &mut UpdatesSince| {
        let mut keys = Vec::new();
        let ended = loop {
            match updates.next_batch() {
                Ok(Some((_, batch))) => {
                    keys.extend(batch.iter().map(|record| match record.unwrap().op {
                        Op::Put { key, .. } => String::from_utf8_lossy(key).into_owned(),
                        other => panic!("{other:?}"),
                    }));
                }
                Ok(None) => break None,
                Err(error) => break Some(error.kind()),
            }
        };
        (keys.join(" "), ended)
    };
    // With an archive all WALs stay; the record is there or not.
    for (archive, appended) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let what = format!("archive {archive}, appended {appended}");
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let wal_ttl_seconds = if archive { 1000 } else { 0 };
        let options = DbOptions { create_if_missing: true, wal_ttl_seconds, ..DbOptions::default() };
        let open = || Db::builder("/db").options(options.clone()).env(env.clone()).open().unwrap();
        let db = open();
        db.put("a", "1").unwrap();
        let mut early = db.updates_since(SeqNum(1)).unwrap();
        assert!(early.next_batch().unwrap().is_some());
        db.put("b", "2").unwrap();
        fs.faults().only(Some(".log"));
        fs.faults().fail_at(fs.faults().changes() + appended, EIO, false);
        let mut failing = WriteBatch::new();
        ["c", "d"].iter().for_each(|key| failing.put(key, "never"));
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        db.write_with(&mut failing, &synced).unwrap_err();
        assert_eq!(all(&mut early), ("b".into(), None), "{what}");
        fs.faults().heal();
        while db.background_error().is_some() {
            let _ = db.resume();
        }
        db.put("e", "3").unwrap();
        assert_eq!(all(&mut early), ("e".into(), None), "{what}");
        let late = all(&mut db.updates_since(SeqNum(1)).unwrap());
        // The first WAL may be gone before it is asked for, if nothing keeps it.
        assert!(
            late == ("a b e".into(), None) || (!archive && late == ("e".into(), None)),
            "{what}: {late:?}"
        );
        drop((early, db));
        if archive {
            // Nobody knows any more that these numbers were given out.
            let later = all(&mut open().updates_since(SeqNum(1)).unwrap());
            assert_eq!(later, ("a b".into(), Some(ErrorKind::NotFound)), "{what}");
        }
    }
}
