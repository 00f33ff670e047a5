//! Compaction styles, ages, parts, and what callers may ask for.

use crate::harness::{Rng, Rows, contents, creating, descriptor, open, seed, until};
use outcrop::options::{ColumnFamilyOptions, CompactionStyle, CompressionType, UniversalCompactionOptions};
use outcrop::*;
use outcrop_env::clock::SystemClock;
use outcrop_env::threads::{JoinHandle, SystemThreads, Task};
use outcrop_env::{Clock, Threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A clock whose date a test moves.
#[derive(Default)]
struct TestClock {
    system: SystemClock,
    ahead_micros: AtomicU64,
}

impl TestClock {
    fn advance(&self, seconds: u64) {
        self.ahead_micros.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_micros(&self) -> u64 {
        self.system.now_micros() + self.ahead_micros.load(Ordering::Relaxed)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.system.monotonic_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.system.thread_cpu_nanos()
    }

    fn sleep(&self, duration: Duration) {
        self.system.sleep(duration);
    }
}

/// Counts the threads that run parts of compactions.
#[derive(Default)]
struct CountingThreads {
    parts: AtomicU64,
}

impl Threads for CountingThreads {
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        self.parts.fetch_add(u64::from(name == "outcrop:sub"), Ordering::Relaxed);
        SystemThreads.spawn(name, task)
    }

    fn parallelism(&self) -> usize {
        SystemThreads.parallelism()
    }
}

fn with_clock() -> (Env, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    (Env { clock: clock.clone(), ..Env::memory() }, clock)
}

fn put(db: &Db, key: &str, value: &[u8]) {
    db.put(key.as_bytes(), value).unwrap();
}

fn delete(db: &Db, key: &str) {
    db.delete(key.as_bytes()).unwrap();
}

fn flush(db: &Db) {
    db.flush().unwrap();
}

fn wait_until_idle(db: &Db) {
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
}

fn rows(db: &Db) -> Rows {
    contents(db, db.default_column_family(), &ReadOptions::default())
}

fn files_at(db: &Db, level: usize) -> u64 {
    let name = format!("rocksdb.num-files-at-level{level}");
    db.property_cf(db.default_column_family(), &name).unwrap().parse().unwrap()
}

/// The tables as (level, number), in the order of the levels.
fn tables(db: &Db) -> Vec<(usize, u64)> {
    let text = db.property("rocksdb.sstables").unwrap();
    let (mut level, mut found) = (0, Vec::new());
    for line in text.lines() {
        match line.strip_prefix("--- level ") {
            Some(rest) => level = rest.split_once(' ').unwrap().0.parse().unwrap(),
            None => found.push((level, line.trim_start().split_once(':').unwrap().0.parse().unwrap())),
        }
    }
    found
}

fn styled(style: CompactionStyle) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        compaction_style: style,
        compression: CompressionType::None,
        level_compaction_dynamic_level_bytes: false,
        ..ColumnFamilyOptions::default()
    }
}

#[test]
fn universal_compaction_bounds_the_number_of_runs() {
    let mut rng = Rng::new(seed("universal", 5));
    let db = open(&Env::memory(), &styled(CompactionStyle::Universal)).unwrap();
    let mut model = Rows::new();
    for round in 0..60 {
        for _ in 0..100 {
            let (key, value) = (format!("{:04}", rng.below(2000)), format!("{round}-{}", rng.next()));
            put(&db, &key, value.as_bytes());
            model.insert(key.into_bytes(), value.into_bytes());
        }
        flush(&db);
        wait_until_idle(&db);
        let runs = files_at(&db, 0) + (1..7).filter(|level| files_at(&db, *level) > 0).count() as u64;
        assert!(runs <= 5, "{runs} sorted runs after round {round}");
    }
    assert_eq!(rows(&db), model);
    db.compact_range_cf(db.default_column_family(), None, None).unwrap();
    assert!(tables(&db).iter().all(|(level, _)| *level == 6), "{:?}", tables(&db));
    assert_eq!(rows(&db), model);
}

#[test]
fn universal_compaction_works_on_one_level() {
    let options = ColumnFamilyOptions { num_levels: 1, ..styled(CompactionStyle::Universal) };
    let env = Env::memory();
    let db = open(&env, &options).unwrap();
    let mut model = Rows::new();
    for round in 0..30 {
        for key in 0..20 {
            let key = format!("{:02}", (key * 7 + round) % 50);
            if (round + key.len()) % 5 == 0 {
                delete(&db, &key);
                model.remove(key.as_bytes());
            } else {
                put(&db, &key, format!("{round}").as_bytes());
                model.insert(key.into_bytes(), format!("{round}").into_bytes());
            }
        }
        flush(&db);
    }
    wait_until_idle(&db);
    assert!(files_at(&db, 0) <= 5);
    db.compact_range_cf(db.default_column_family(), None, None).unwrap();
    assert_eq!(files_at(&db, 0), 1);
    drop(db);
    let db = open(&env, &options).unwrap();
    assert_eq!(rows(&db), model);
}

#[test]
fn deletions_go_when_universal_compaction_reaches_the_oldest_run() {
    let db = open(&Env::memory(), &styled(CompactionStyle::Universal)).unwrap();
    let cf = db.default_column_family().clone();
    (0..100).for_each(|key| put(&db, &format!("{key:03}"), b"v"));
    flush(&db);
    let snapshot = db.snapshot();
    (0..50).for_each(|key| delete(&db, &format!("{key:03}")));
    db.delete_range_cf(&cf, b"060", b"090").unwrap();
    db.compact_range_cf(&cf, None, None).unwrap();
    assert_eq!(contents(&db, &cf, &ReadOptions::at(&snapshot)).len(), 100, "the snapshot keeps its rows");
    assert_eq!(rows(&db).len(), 20);
    drop(snapshot);
    db.compact_range_cf(&cf, None, None).unwrap();
    assert_eq!(rows(&db).len(), 20);
    assert_eq!(
        db.property_int_cf(&cf, "rocksdb.estimate-num-keys"),
        Some(20),
        "nothing but live rows is left"
    );
}

#[test]
fn a_database_of_one_style_opens_under_every_other() {
    let mut rng = Rng::new(seed("styles", 9));
    let env = Env::memory();
    let mut model = Rows::new();
    use CompactionStyle::{Fifo, Level, None, Universal};
    for style in [Level, Universal, Level, Fifo, Universal, None, Level, Universal, Fifo, Level] {
        let db = open(&env, &styled(style)).unwrap();
        assert_eq!(rows(&db), model, "opened as {style:?}");
        for _ in 0..6 {
            for _ in 0..50 {
                let (key, value) = (format!("{:03}", rng.below(400)), format!("{}", rng.next()));
                put(&db, &key, value.as_bytes());
                model.insert(key.into_bytes(), value.into_bytes());
            }
            flush(&db);
        }
        wait_until_idle(&db);
        if rng.one_in(2) {
            db.compact_range_cf_with(
                db.default_column_family(),
                Option::None,
                Option::None,
                &BottommostLevelCompaction::Force.into(),
            )
            .unwrap();
        }
        assert_eq!(rows(&db), model, "written as {style:?}");
    }
}

#[test]
fn without_a_style_only_callers_compact() {
    let db = open(&Env::memory(), &styled(CompactionStyle::None)).unwrap();
    let cf = db.default_column_family().clone();
    for round in 0..8 {
        put(&db, "k", format!("{round}").as_bytes());
        flush(&db);
    }
    wait_until_idle(&db);
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(files_at(&db, 0), 8);
    let newest_two: Vec<u64> = tables(&db).iter().take(2).map(|(_, number)| *number).collect();
    db.compact_files_cf(&cf, &newest_two, 0).unwrap();
    assert_eq!(files_at(&db, 0), 7);
    let newest = tables(&db)[0].1;
    db.compact_files_cf(&cf, &[newest], 3).unwrap();
    assert_eq!(
        tables(&db).iter().map(|(level, _)| *level).collect::<Vec<_>>(),
        [3],
        "older tables came along"
    );
    assert_eq!(rows(&db)[&b"k"[..]], b"7");
}

#[test]
fn callers_say_how_chosen_tables_are_compacted() {
    let db = open(&Env::memory(), &styled(CompactionStyle::None)).unwrap();
    let cf = db.default_column_family().clone();
    for key in 0..400 {
        put(&db, &format!("{key:03}"), &[key as u8; 1000]);
    }
    flush(&db);
    let l0 = tables(&db)[0].1;
    let with = |files: &[u64], level, options: CompactFilesOptions| {
        db.compact_files_cf_with(&cf, files, level, &options)
    };
    let canceled = Arc::new(AtomicBool::new(true));
    let unwanted = CompactFilesOptions { canceled: Some(canceled.clone()), ..Default::default() };
    let error = with(&[l0], 3, unwanted.clone()).unwrap_err();
    assert_eq!((error.kind(), tables(&db)), (ErrorKind::Incomplete, vec![(0, l0)]), "{error}");
    canceled.store(false, Ordering::Relaxed);

    let moved = with(&[l0], 2, CompactFilesOptions { allow_trivial_move: true, ..unwanted.clone() }).unwrap();
    assert_eq!((moved, tables(&db)), (vec![l0], vec![(2, l0)]), "linked as it is");

    let cut = CompactFilesOptions { output_file_size_limit: Some(50_000), ..unwanted.clone() };
    let pieces = with(&[l0], 3, cut).unwrap();
    assert!((7..=10).contains(&pieces.len()), "{pieces:?}");
    assert_eq!(tables(&db), pieces.iter().map(|number| (3, *number)).collect::<Vec<_>>());

    let whole = CompactFilesOptions { output_file_size_limit: Some(u64::MAX), ..unwanted };
    let compressed = CompactFilesOptions { compression: Some(CompressionType::Lz4), ..whole.clone() };
    let bytes = || db.property_int_cf(&cf, "rocksdb.total-sst-files-size").unwrap();
    let before = bytes();
    let other_codec = CompactFilesOptions { allow_trivial_move: true, ..compressed };
    let one = with(&pieces, 4, other_codec).unwrap();
    assert_eq!((one.len(), tables(&db)), (1, vec![(4, one[0])]));
    assert!(bytes() < before / 4, "{} of {before}", bytes());
    assert!(with(&one, 4, whole).is_ok_and(|again| again != one), "rewritten where it is");
    assert_eq!(rows(&db).len(), 400);
}

#[test]
fn a_compaction_of_chosen_tables_ends_while_it_runs_when_it_is_canceled() {
    let db = open(&Env::memory(), &styled(CompactionStyle::None)).unwrap();
    let cf = db.default_column_family().clone();
    for key in 0..20_000 {
        put(&db, &format!("{key:05}"), &[1; 100]);
    }
    flush(&db);
    let mut files: Vec<u64> = tables(&db).into_iter().map(|(_, number)| number).collect();
    let canceled = Arc::new(AtomicBool::new(false));
    let options = CompactFilesOptions { canceled: Some(canceled.clone()), ..Default::default() };
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        canceled.store(true, Ordering::Relaxed);
    });
    // Again and again, so that one is under way whatever the machine.
    let error = loop {
        match db.compact_files_cf_with(&cf, &files, 1, &options) {
            Ok(written) => files = written,
            Err(error) => break error,
        }
    };
    stopper.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    let left: Vec<u64> = tables(&db).into_iter().map(|(_, number)| number).collect();
    assert_eq!(left, files, "what the last whole one wrote is all there is");
    assert_eq!(rows(&db).len(), 20_000);
}

#[test]
fn fifo_deletes_the_oldest_tables_beyond_its_size() {
    let mut options = styled(CompactionStyle::Fifo);
    options.compaction_options_fifo.max_table_files_size = 100_000;
    options.level0_stop_writes_trigger = 3;
    let db = open(&Env::memory(), &options).unwrap();
    for round in 0..30 {
        put(&db, &format!("{round:02}"), &[7; 10_000]);
        flush(&db);
    }
    wait_until_idle(&db);
    let cf = db.default_column_family();
    assert!(db.property_int_cf(cf, "rocksdb.total-sst-files-size").unwrap() <= 100_000);
    let left: Vec<Vec<u8>> = rows(&db).into_keys().collect();
    assert!((7..=9).contains(&left.len()), "{left:?}");
    assert_eq!(left.last().unwrap(), b"29");
    db.set_options_cf(cf, &[("compaction_options_fifo", "{max_table_files_size=50000}")]).unwrap();
    wait_until_idle(&db);
    assert!((3..=4).contains(&rows(&db).len()), "the new limit holds at once");
}

#[test]
fn fifo_deletes_tables_that_have_reached_their_ttl() {
    let (env, clock) = with_clock();
    let options = ColumnFamilyOptions { ttl: 1000, ..styled(CompactionStyle::Fifo) };
    let statistics = Arc::new(Statistics::new());
    let builder = Db::builder("/db").options(creating()).env(env).statistics(statistics.clone());
    let db = builder.column_family(descriptor("default", &options)).open().unwrap();
    put(&db, "old", b"1");
    flush(&db);
    clock.advance(600);
    put(&db, "young", b"2");
    flush(&db);
    clock.advance(600);
    until("the deletion", || files_at(&db, 0) == 1);
    assert_eq!(rows(&db).into_keys().collect::<Vec<_>>(), [b"young"]);
    drop(db);
    assert_eq!(statistics.ticker(Ticker::FifoTtlCompactions), 1);
}

#[test]
fn fifo_merges_small_tables_if_allowed() {
    let mut options = styled(CompactionStyle::Fifo);
    options.compaction_options_fifo.allow_compaction = true;
    let db = open(&Env::memory(), &options).unwrap();
    for round in 0..16 {
        put(&db, &format!("{:02}", round % 5), format!("{round}").as_bytes());
        flush(&db);
    }
    wait_until_idle(&db);
    assert!(files_at(&db, 0) < 10, "{} tables", files_at(&db, 0));
    assert_eq!(rows(&db)[&b"00"[..]], b"15");
}

#[test]
fn leveled_data_of_age_moves_to_the_last_level() {
    let (env, clock) = with_clock();
    let options = ColumnFamilyOptions { ttl: 1000, ..styled(CompactionStyle::Level) };
    let db = open(&env, &options).unwrap();
    let cf = db.default_column_family().clone();
    (0..100).for_each(|key| put(&db, &format!("{key:03}"), b"v"));
    db.compact_range_cf(&cf, None, None).unwrap();
    let full = CompactRangeOptions { change_level: true, target_level: Some(4), ..Default::default() };
    db.compact_range_cf_with(&cf, None, None, &full).unwrap();
    assert_eq!(files_at(&db, 4), 1);
    (0..100).for_each(|key| delete(&db, &format!("{key:03}")));
    flush(&db);
    wait_until_idle(&db);
    assert_eq!(files_at(&db, 0), 1);
    clock.advance(1100);
    // Level by level the deletions meet what they delete.
    until("the way down", || tables(&db).is_empty());
    assert!(rows(&db).is_empty());
}

#[test]
fn tables_of_age_are_written_anew() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let (env, clock) = with_clock();
        let options = ColumnFamilyOptions { periodic_compaction_seconds: 1000, ttl: 0, ..styled(style) };
        let db = open(&env, &options).unwrap();
        put(&db, "k", b"v");
        db.compact_range_cf_with(
            db.default_column_family(),
            None,
            None,
            &BottommostLevelCompaction::Force.into(),
        )
        .unwrap();
        let before = tables(&db);
        clock.advance(900);
        std::thread::sleep(Duration::from_millis(1200));
        assert_eq!(tables(&db), before, "not yet old enough");
        clock.advance(200);
        until("the rewrite", || tables(&db) != before);
        wait_until_idle(&db);
        let after = tables(&db);
        assert_eq!(after.len(), 1);
        std::thread::sleep(Duration::from_millis(1200));
        assert_eq!(tables(&db), after, "written once");
    }
}

#[test]
fn garbage_of_the_last_level_goes_once_its_snapshots_have_gone() {
    let db = open(&Env::memory(), &styled(CompactionStyle::Level)).unwrap();
    let cf = db.default_column_family().clone();
    (0..100).for_each(|key| put(&db, &format!("{key:03}"), b"old"));
    let snapshot = db.snapshot();
    (0..100).for_each(|key| put(&db, &format!("{key:03}"), b"new"));
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(db.property_int_cf(&cf, "rocksdb.estimate-num-keys"), Some(200));
    drop(snapshot);
    until("the rewrite", || db.property_int_cf(&cf, "rocksdb.estimate-num-keys") == Some(100));
    wait_until_idle(&db);
    let after = tables(&db);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(tables(&db), after, "written once");
    assert!(rows(&db).values().all(|value| value == b"new"));
}

#[test]
fn a_deletion_newer_than_a_snapshot_goes_if_the_snapshot_sees_nothing_of_its_key() {
    let db = open(&Env::memory(), &styled(CompactionStyle::Level)).unwrap();
    let cf = db.default_column_family().clone();
    put(&db, "seen", b"1");
    let snapshot = db.snapshot();
    put(&db, "unseen", b"1");
    delete(&db, "unseen");
    delete(&db, "seen");
    put(&db, "last", b"1");
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    // Left: "last", and "seen" with its deletion, which counts against it.
    assert_eq!(contents(&db, &cf, &ReadOptions::at(&snapshot)).len(), 1);
    assert_eq!(rows(&db).into_keys().collect::<Vec<_>>(), [b"last"]);
    let entries = db.property_int_cf(&cf, "rocksdb.estimate-num-keys");
    // 3 entries, one a deletion: 3 - 2; had the deletion of "unseen" stayed, it would be 4 - 4.
    assert_eq!(entries, Some(1));
}

#[test]
fn a_compaction_in_parts_writes_what_it_would_write_in_one() {
    let mut rng = Rng::new(seed("parts", 3));
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let mut db_options = creating();
        db_options.max_subcompactions = 4;
        let mut options = styled(style);
        options.target_file_size_base = 16 << 10;
        options.table.block_size = 512;
        options.disable_auto_compactions = true;
        let threads = Arc::new(CountingThreads::default());
        let env = Env { threads: threads.clone(), ..Env::memory() };
        let db = Db::builder("/db")
            .options(db_options)
            .env(env.clone())
            .column_family(descriptor("default", &options))
            .open()
            .unwrap();
        let cf = db.default_column_family().clone();
        let (mut model, mut held) = (Rows::new(), None);
        for round in 0..6 {
            for _ in 0..300 {
                let key = format!("{:04}", rng.below(1000)).into_bytes();
                let value = vec![rng.next() as u8; 100];
                if rng.one_in(5) {
                    db.merge_cf(&cf, &key, b"m").unwrap();
                    let merged = |old: Option<Vec<u8>>| match old {
                        Some(old) => [&old[..], b",m"].concat(),
                        None => b"m".to_vec(),
                    };
                    let old = model.remove(&key);
                    model.insert(key, merged(old));
                } else {
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            let from = rng.below(900);
            let (begin, end) = (format!("{from:04}").into_bytes(), format!("{:04}", from + 90).into_bytes());
            db.delete_range_cf(&cf, &begin, &end).unwrap();
            model.retain(|key, _| *key < begin || *key >= end);
            if round == 3 {
                held = Some((db.snapshot(), model.clone()));
            }
            flush(&db);
        }
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        assert!(tables(&db).len() > 3, "{:?}", tables(&db));
        assert_eq!(threads.parts.load(Ordering::Relaxed), 3, "one part runs on the thread of the job");
        assert_eq!(rows(&db), model);
        let (snapshot, then) = held.unwrap();
        assert_eq!(contents(&db, &cf, &ReadOptions::at(&snapshot)), then);
        drop(snapshot);
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        assert_eq!(db.property_int_cf(&cf, "rocksdb.estimate-num-keys"), Some(model.len() as u64));
        drop(db);
        let db = open(&env, &options).unwrap();
        assert_eq!(rows(&db), model);
    }
}

#[test]
fn whole_tables_in_a_range_are_deleted_at_once() {
    let options = ColumnFamilyOptions { target_file_size_base: 10_000, ..styled(CompactionStyle::Level) };
    let db = open(&Env::memory(), &options).unwrap();
    let cf = db.default_column_family().clone();
    (0..100).for_each(|key| put(&db, &format!("{key:03}"), &[1; 1000]));
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    let before = tables(&db).len();
    assert!(before >= 8);
    put(&db, "050", b"in L0");
    flush(&db);
    db.delete_files_in_ranges_cf(&cf, &[(Some(b"030"), Some(b"070"))], RangeEnd::Inclusive).unwrap();
    let left = rows(&db);
    assert_eq!(left[&b"050"[..]], b"in L0", "L0 stays");
    assert!(left.contains_key(&b"029"[..]) && left.contains_key(&b"071"[..]));
    assert!(left.len() < 85, "{} rows left", left.len());
    db.delete_files_in_ranges_cf(&cf, &[(None, Some(b"000")), (Some(b"072"), None)], RangeEnd::Exclusive)
        .unwrap();
    db.delete_files_in_ranges_cf(&cf, &[(None, None)], RangeEnd::Inclusive).unwrap();
    assert_eq!(rows(&db).into_keys().collect::<Vec<_>>(), [b"050"]);
    assert_eq!(tables(&db).len(), 1);
}

#[test]
fn suggested_ranges_are_compacted_in_the_background() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let db = open(&Env::memory(), &styled(style)).unwrap();
        let cf = db.default_column_family().clone();
        put(&db, "a", b"1");
        flush(&db);
        put(&db, "a", b"2");
        flush(&db);
        wait_until_idle(&db);
        assert_eq!(tables(&db).len(), 2);
        db.suggest_compact_range_cf(&cf, Some(b"x"), None).unwrap();
        wait_until_idle(&db);
        assert_eq!(tables(&db).len(), 2, "nothing overlaps");
        db.suggest_compact_range_cf(&cf, None, Some(b"b")).unwrap();
        wait_until_idle(&db);
        assert_eq!(tables(&db).len(), 1);
        assert_eq!(rows(&db)[&b"a"[..]], b"2");
    }
}

#[test]
fn levels_are_moved_only_over_empty_ones() {
    let db = open(&Env::memory(), &styled(CompactionStyle::Level)).unwrap();
    let cf = db.default_column_family().clone();
    for key in ["a", "c"] {
        put(&db, key, b"1");
        flush(&db);
    }
    db.promote_l0_cf(&cf, 3).unwrap();
    assert_eq!(files_at(&db, 3), 2);
    put(&db, "b", b"2");
    flush(&db);
    let refused = db.promote_l0_cf(&cf, 5).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    assert!(db.promote_l0_cf(&cf, 7).is_err());
    db.promote_l0_cf(&cf, 2).unwrap();
    assert_eq!((files_at(&db, 2), rows(&db).len()), (1, 3));
    let error = db.compact_files_cf(&cf, &[12345], 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let deepest = tables(&db).last().unwrap().1;
    assert!(db.compact_files_cf(&cf, &[deepest], 2).is_err(), "nothing goes up");
    let options = CompactRangeOptions { change_level: true, ..CompactRangeOptions::default() };
    db.compact_range_cf_with(&cf, None, None, &options).unwrap();
    assert_eq!((files_at(&db, 1), rows(&db).len()), (3, 3), "everything fits L1");
}

#[test]
fn an_exclusive_compaction_runs_beside_writers_and_ends() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let options = ColumnFamilyOptions { write_buffer_size: 64 << 10, ..styled(style) };
        let db = open(&Env::memory(), &options).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..4000).for_each(|key| put(&db, &format!("{key:05}"), &[3; 100])));
            let exclusive = CompactRangeOptions { exclusive_manual_compaction: true, ..Default::default() };
            for _ in 0..5 {
                db.compact_range_cf_with(db.default_column_family(), None, None, &exclusive).unwrap();
            }
        });
        assert_eq!(rows(&db).len(), 4000);
    }
}

#[test]
fn options_no_picker_could_follow_are_refused() {
    let refused_as = |kind, change: fn(&mut UniversalCompactionOptions)| {
        let mut options = styled(CompactionStyle::Universal);
        change(&mut options.compaction_options_universal);
        let error = open(&Env::memory(), &options).map(drop).unwrap_err();
        assert_eq!(error.kind(), kind);
        error.to_string()
    };
    assert!(refused_as(ErrorKind::NotSupported, |o| o.max_read_amp = -2).contains("max_read_amp"));
    let db = open(&Env::memory(), &styled(CompactionStyle::Universal)).unwrap();
    let cf = db.default_column_family();
    let change = [("compaction_options_universal", "{max_read_amp=1}")];
    assert!(db.set_options_cf(cf, &change).is_err(), "below the trigger");
    // As RocksDB takes them: the least width wins, and everything is compressed.
    let change = [(
        "compaction_options_universal",
        "{min_merge_width=9;max_merge_width=8;compression_size_percent=101}",
    )];
    db.set_options_cf(cf, &change).unwrap();
    db.set_options_cf(cf, &[("compaction_options_universal", "{max_merge_width=8}")]).unwrap();
}

/// Keeps everything, and notes the keys that it is asked about.
#[derive(Default)]
struct Asked(std::sync::Mutex<Vec<u8>>);

impl CompactionFilter for Asked {
    fn name(&self) -> &str {
        "test.Asked"
    }

    fn filter(&self, _level: usize, key: &[u8], _value: &[u8]) -> FilterDecision {
        self.0.lock().unwrap().extend_from_slice(key);
        FilterDecision::Keep
    }
}

/// Tables of the last level that the steps merge with nothing, and tables that they move, are rewritten as well, and none twice.
#[test]
fn a_forced_compaction_rewrites_every_table_of_its_range_once() {
    let asked = Arc::new(Asked::default());
    let family = ColumnFamilyDescriptor::new("default").with_compaction_filter(asked.clone());
    let db =
        Db::builder("/db").create_if_missing(true).env(Env::memory()).column_family(family).open().unwrap();
    let force = BottommostLevelCompaction::Force.into();
    let told = || {
        let mut keys = std::mem::take(&mut *asked.0.lock().unwrap());
        keys.sort_unstable();
        String::from_utf8(keys).unwrap()
    };
    let write = |keys: &str| {
        keys.chars().for_each(|key| db.put(key.to_string(), "").unwrap());
        db.flush().unwrap();
    };
    write("ab");
    db.compact_range_with(None, None, &force).unwrap();
    assert_eq!(told(), "ab", "a table that could be moved");
    write("xy");
    db.compact_range_with(None, None, &force).unwrap();
    assert_eq!(told(), "abxy", "beside a table that nothing is merged into");
    write("b");
    db.compact_range_with(None, None, &force).unwrap();
    assert_eq!(told(), "abxy", "one is merged, the other is not");
    db.compact_range_with(Some(b"x"), None, &force).unwrap();
    assert_eq!(told(), "xy", "of the range alone");
}
