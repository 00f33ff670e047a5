//! One behaviour per test.

use crate::harness::{Append, Rng, contents, creating, descriptor, open, small_options, until};
use outcrop::options::{ColumnFamilyOptions, DbOptions};
use outcrop::*;
use outcrop_env::OpenWrite;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit};
use std::path::Path;
use std::sync::Arc;

fn text(value: Option<PinnedValue>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn get(db: &Db, key: &str) -> Option<String> {
    text(db.get(key.as_bytes()).unwrap())
}

fn put(db: &Db, key: &str, value: &str) {
    db.put(key.as_bytes(), value.as_bytes()).unwrap();
}

fn force(db: &Db) {
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
}

#[test]
fn a_value_is_read_from_memtable_l0_and_the_last_level_and_after_reopening() {
    let env = Env::memory();
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    put(&db, "apple", "red");
    put(&db, "banana", "yellow");
    db.delete(b"banana").unwrap();
    let check = |db: &Db| {
        assert_eq!(get(db, "apple").as_deref(), Some("red"));
        assert_eq!(get(db, "banana"), None);
        assert_eq!(get(db, "cherry"), None);
        assert_eq!(contents(db, db.default_column_family(), &ReadOptions::default()).len(), 1);
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    force(&db);
    check(&db);
    assert_eq!(
        db.property_cf(db.default_column_family(), "rocksdb.num-files-at-level6").as_deref(),
        Some("1")
    );
    drop(db);
    check(&open(&env, &ColumnFamilyOptions::default()).unwrap());
}

#[test]
fn a_snapshot_sees_its_moment_through_flush_and_compaction() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    put(&db, "k", "1");
    put(&db, "gone", "x");
    let snapshot = db.snapshot();
    put(&db, "k", "2");
    db.delete(b"gone").unwrap();
    for _ in 0..2 {
        let at = ReadOptions::at(&snapshot);
        assert_eq!(text(db.get_with(b"k", &at).unwrap()).as_deref(), Some("1"));
        assert_eq!(contents(&db, db.default_column_family(), &at).len(), 2);
        assert_eq!(get(&db, "k").as_deref(), Some("2"));
        assert_eq!(get(&db, "gone"), None);
        force(&db);
    }
    drop(snapshot);
    force(&db);
    assert_eq!(db.property_int_cf(db.default_column_family(), "rocksdb.estimate-num-keys"), Some(1));
}

#[test]
fn a_deletion_in_memory_counts_against_the_keys_in_tables() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    let keys = || db.property_int_cf(db.default_column_family(), "rocksdb.estimate-num-keys");
    (0..7).for_each(|key| put(&db, &format!("k{key}"), "v"));
    force(&db);
    assert_eq!(keys(), Some(7));
    db.delete(b"k1").unwrap();
    assert_eq!(keys(), Some(6));
    db.flush_cf(db.default_column_family()).unwrap();
    assert_eq!(keys(), Some(6));
}

#[test]
fn merge_operands_combine_wherever_they_are() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    let cf = db.default_column_family().clone();
    let merge = |operand: &str| db.merge_cf(&cf, b"m", operand.as_bytes()).unwrap();
    merge("a");
    db.flush_cf(&cf).unwrap();
    merge("b");
    let snapshot = db.snapshot();
    merge("c");
    assert_eq!(get(&db, "m").as_deref(), Some("a,b,c"));
    assert_eq!(contents(&db, &cf, &ReadOptions::default())[&b"m"[..]], b"a,b,c");
    force(&db);
    assert_eq!(get(&db, "m").as_deref(), Some("a,b,c"));
    assert_eq!(text(db.get_with(b"m", &ReadOptions::at(&snapshot)).unwrap()).as_deref(), Some("a,b"));
    put(&db, "m", "z");
    merge("y");
    assert_eq!(get(&db, "m").as_deref(), Some("z,y"));
}

#[test]
fn a_batch_over_column_families_is_atomic_and_survives() {
    let env = Env::memory();
    let options = ColumnFamilyOptions::default();
    let families = || vec![descriptor("default", &options), descriptor("two", &options)];
    let db =
        Db::builder("/db").options(creating()).env(env.clone()).column_families(families()).open().unwrap();
    let two = db.column_family("two").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1");
    batch.put_cf(&two, b"a", b"2");
    db.write_with(&mut batch, &WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
    assert_eq!(batch.count(), 2);
    let gone = db.create_column_family("gone").unwrap();
    db.drop_column_family(&gone).unwrap();
    batch.put_cf(&gone, b"x", b"y");
    assert_eq!(db.write(&mut batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop((db, two));
    let error = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(descriptor("default", &options))
        .open()
        .err()
        .unwrap();
    assert!(error.to_string().contains("two"), "{error}");
    let db =
        Db::builder("/db").options(creating()).env(env.clone()).column_families(families()).open().unwrap();
    let two = db.column_family("two").unwrap();
    assert_eq!(text(db.get_cf(&two, b"a").unwrap()).as_deref(), Some("2"));
    assert_eq!(get(&db, "a").as_deref(), Some("1"));
    db.drop_column_family(&two).unwrap();
    assert_eq!(db.put_cf(&two, b"a", b"3").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.drop_column_family(&two).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // Requests to the column family itself have a class of their own, as in RocksDB.
    let two = std::slice::from_ref(&two);
    assert_eq!(db.flush_cfs(two, Wait::UntilDone).unwrap_err().kind(), ErrorKind::ColumnFamilyDropped);
    let change = [("write_buffer_size", "100000")];
    assert_eq!(db.set_options_cf(&two[0], &change).unwrap_err().kind(), ErrorKind::ColumnFamilyDropped);
    drop(db);
    assert_eq!(Db::list_column_families_in("/db", &env).unwrap(), ["default"]);
}

#[test]
fn iterators_respect_bounds_in_both_directions() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        put(&db, key, key);
    }
    db.flush().unwrap();
    put(&db, "c", "C");
    let options = ReadOptions {
        iterate_lower_bound: Some(b"b".to_vec()),
        iterate_upper_bound: Some(b"e".to_vec()),
        ..ReadOptions::default()
    };
    let rows = contents(&db, db.default_column_family(), &options);
    assert_eq!(rows.keys().map(|k| k[0]).collect::<Vec<_>>(), b"bcd");
    let mut iter = db.cursor_with(&options).unwrap();
    iter.seek(b"a");
    assert_eq!(iter.key(), b"b");
    iter.seek_for_prev(b"z");
    assert_eq!(iter.key(), b"d");
    iter.prev();
    assert_eq!((iter.key(), iter.value()), (&b"c"[..], &b"C"[..]));
    iter.next();
    assert_eq!(iter.key(), b"d");
    iter.next();
    assert!(!iter.valid());
    iter.seek(b"e");
    assert!(!iter.valid());
}

#[test]
fn a_second_open_is_refused_with_the_path() {
    let env = Env::memory();
    let _db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    let error = open(&env, &ColumnFamilyOptions::default()).err().unwrap();
    assert!(error.kind() == ErrorKind::IoError && error.to_string().contains("/db/LOCK"), "{error}");
}

#[test]
fn what_does_not_exist_or_should_not_is_refused() {
    let env = Env::memory();
    let none = DbOptions::default();
    let error = Db::builder("/none").options(none.clone()).env(env.clone()).open().err().unwrap();
    assert!(error.to_string().contains("create_if_missing"), "{error}");
    drop(open(&env, &ColumnFamilyOptions::default()).unwrap());
    let exists = DbOptions { error_if_exists: true, ..creating() };
    let error = Db::builder("/db").options(exists).env(env.clone()).open().err().unwrap();
    assert!(error.to_string().contains("error_if_exists"), "{error}");
    let mut options = ColumnFamilyOptions::default();
    options.table.format_version = 9;
    let error = open(&env, &options).err().unwrap();
    assert!(error.to_string().contains("Unsupported BlockBasedTable format_version"), "{error}");
    let parts = ColumnFamilyParts { comparator: Comparator::ReverseBytewise, ..ColumnFamilyParts::default() };
    let reversed = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts);
    let error = Db::builder("/db").options(creating()).env(env).column_family(reversed).open().err().unwrap();
    assert!(error.to_string().contains("leveldb.BytewiseComparator"), "{error}");
}

#[test]
fn a_merge_without_operator_is_refused() {
    let env = Env::memory();
    let plain =
        ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), ColumnFamilyParts::default());
    let db =
        Db::builder("/db").options(creating()).env(env.clone()).column_family(plain.clone()).open().unwrap();
    let cf = db.default_column_family().clone();
    let error = db.merge_cf(&cf, b"k", b"v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let mut batch = WriteBatch::new();
    batch.merge(b"k", b"v");
    let error = db.write(&mut batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    drop((db, cf));
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    db.merge_cf(db.default_column_family(), b"k", b"v").unwrap();
    db.flush().unwrap();
    drop(db);
    let db = Db::builder("/db").options(creating()).env(env).column_family(plain).open().unwrap();
    let error = db.get(b"k").unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: merge_operator is not properly initialized.");
}

#[test]
fn destroy_removes_only_what_a_database_owns() {
    let env = Env::memory();
    drop(open(&env, &ColumnFamilyOptions::default()).unwrap());
    env.fs.replace("/db/notes.txt".as_ref(), "/db/tmp".as_ref(), b"mine").unwrap();
    Db::destroy_in("/db", &DbOptions::default(), &env).unwrap();
    assert_eq!(env.fs.list("/db".as_ref()).unwrap(), ["notes.txt"]);
}

#[test]
fn destroy_removes_only_wals_from_a_directory_of_wals() {
    let env = Env::memory();
    let create = |name: &str| {
        env.fs.create(name.as_ref(), OpenWrite::default()).unwrap().close().unwrap();
    };
    env.fs.create_dir_all("/wals/archive".as_ref()).unwrap();
    let others = ["000123.sst", "CURRENT", "MANIFEST-000005", "OPTIONS-000007", "old.trash"];
    others.iter().for_each(|name| create(&format!("/wals/{name}")));
    create("/wals/archive/000123.sst");
    create("/wals/archive/000002.log");
    create("/wals/000003.log.trash");
    let options = DbOptions { wal_dir: Some("/wals".into()), ..creating() };
    let db = Db::builder("/db").options(options.clone()).env(env.clone()).open().unwrap();
    put(&db, "a", "1");
    drop(db);
    assert!(env.fs.list("/wals".as_ref()).unwrap().len() > others.len() + 2);
    Db::destroy_in("/db", &options, &env).unwrap();
    assert!(!env.fs.exists("/db".as_ref()).unwrap());
    let mut left = env.fs.list("/wals".as_ref()).unwrap();
    left.retain(|name| name != "archive");
    left.sort();
    assert_eq!(left, others);
    assert_eq!(env.fs.list("/wals/archive".as_ref()).unwrap(), ["000123.sst"]);

    // The same directory by another name.
    let options = DbOptions { wal_dir: Some("/db/../db".into()), ..creating() };
    drop(Db::builder("/db").options(creating()).env(env.clone()).open().unwrap());
    Db::destroy_in("/db", &options, &env).unwrap();
    assert!(!env.fs.exists("/db".as_ref()).unwrap());
}

#[test]
fn files_with_numbers_near_the_largest_keep_no_database_from_opening() {
    let env = Env::memory();
    put(&open(&env, &ColumnFamilyOptions::default()).unwrap(), "a", "1");
    let strays = ["4611686018427387904.sst", "4611686018427387903.blob", "2305843009213693953.log"];
    for stray in strays {
        env.fs.create(&Path::new("/db").join(stray), OpenWrite::default()).unwrap().close().unwrap();
    }
    for _ in 0..3 {
        let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
        assert_eq!(get(&db, "a").as_deref(), Some("1"));
        put(&db, "b", "2");
        db.flush().unwrap();
        db.close().unwrap();
        assert!(strays.iter().all(|stray| env.fs.exists(&Path::new("/db").join(stray)).unwrap()));
    }
    // Nothing of theirs is in the way of a repair.
    env.fs.remove_file("/db/CURRENT".as_ref()).unwrap();
    Db::builder("/db").env(env.clone()).repair(&RepairOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&open(&env, &ColumnFamilyOptions::default()).unwrap(), "b").as_deref(), Some("2"));
    }
}

#[test]
fn a_database_that_has_used_up_the_ids_of_column_families_says_so() {
    let env = Env::memory();
    drop(open(&env, &ColumnFamilyOptions::default()).unwrap());
    let edit = VersionEdit {
        log_number: Some(FileNumber::NONE),
        next_file_number: Some(FileNumber(100)),
        last_sequence: Some(Default::default()),
        max_column_family: Some(CfId(u32::MAX - 2)),
        ..VersionEdit::default()
    };
    ManifestWriter::create(&*env.fs, "/db".as_ref(), FileNumber(99), &[edit]).unwrap();
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    let last = db.create_column_family("last").unwrap();
    assert_eq!(last.id(), CfId(u32::MAX - 1));
    let refused = db.create_column_family("one more").err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    db.put_cf(&last, "a", "1").unwrap();
    assert_eq!(db.get_cf(&last, "a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_full_disk_stops_writes_and_loses_nothing_acknowledged() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options = small_options(&mut Rng::new(5));
    let db = open(&env, &options).unwrap();
    fs.faults().limit_space(200_000);
    let mut acknowledged = 0;
    let error = loop {
        let key = format!("key{acknowledged:06}");
        match db.put(key.as_bytes(), [7; 100]) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 100_000, "the device must fill up");
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(db.put(b"more", b"").unwrap_err().kind(), ErrorKind::NoSpace);
    let rows = |db: &Db| contents(db, db.default_column_family(), &ReadOptions::default()).len();
    assert!(rows(&db) >= acknowledged);
    fs.faults().heal();
    db.resume().unwrap();
    put(&db, "more", "room");
    drop(db);
    let db = open(&env, &options).unwrap();
    assert!(rows(&db) > acknowledged);
    assert_eq!(get(&db, "more").as_deref(), Some("room"));
}

#[test]
fn a_failed_wal_sync_is_final_until_resumed() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    let sync = WriteOptions { sync: true, ..WriteOptions::default() };
    db.put_with(b"before", b"1", &sync).unwrap();
    fs.faults().only(Some(".log"));
    fs.faults().fail_at(fs.faults().changes() + 1, EIO, false);
    assert_eq!(db.put_with(b"failed", b"1", &sync).unwrap_err().kind(), ErrorKind::IoError);
    assert_eq!(
        db.put_with(b"after", b"1", &sync).unwrap_err().kind(),
        ErrorKind::IoError,
        "no retry makes it good"
    );
    assert!(db.background_error().is_some());
    assert_eq!(get(&db, "failed"), None, "what was not acknowledged is not visible");
    assert_eq!(get(&db, "before").as_deref(), Some("1"));
    fs.faults().heal();
    fs.faults().only(None);
    db.resume().unwrap();
    db.put_with(b"after", b"2", &sync).unwrap();
    drop(db);
    fs.memory().crash();
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    assert_eq!(get(&db, "before").as_deref(), Some("1"));
    assert_eq!(get(&db, "after").as_deref(), Some("2"));
}

#[test]
fn a_broken_table_is_named_and_never_gives_wrong_rows() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options = ColumnFamilyOptions::default();
    let db = open(&env, &options).unwrap();
    for i in 0..500 {
        put(&db, &format!("key{i:04}"), &format!("value{i}"));
    }
    db.flush().unwrap();
    drop(db);
    let table =
        fs.files().into_iter().find(|(path, _)| path.extension().is_some_and(|e| e == "sst")).unwrap();
    for offset in (0..table.1).step_by(97) {
        fs.flip_byte(&table.0, offset, 0x10);
        let outcome = open(&env, &options).and_then(|db| {
            let mut iter = db.cursor()?;
            iter.seek_to_first();
            while iter.valid() {
                let number = std::str::from_utf8(&iter.key()[3..]).unwrap().parse::<u32>().unwrap();
                assert_eq!(iter.value(), format!("value{number}").as_bytes());
                iter.next();
            }
            iter.status()
        });
        if let Err(error) = outcome {
            assert!(error.to_string().contains(".sst"), "byte {offset}: {error}");
        }
        fs.flip_byte(&table.0, offset, 0x10);
    }
    let size = table.1;
    fs.truncate(&table.0, size - 1);
    let error = open(&env, &options).err().unwrap();
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains("MANIFEST says"), "{error}");
}

#[test]
fn writers_on_many_threads_all_get_their_writes() {
    let db = Arc::new(open(&Env::memory(), &small_options(&mut Rng::new(8))).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = db.clone();
            scope.spawn(move || {
                for i in 0..2000 {
                    let key = format!("{thread}-{i:05}");
                    let options = WriteOptions { sync: i % 50 == 0, ..WriteOptions::default() };
                    db.put_with(key.as_bytes(), key.as_bytes(), &options).unwrap();
                    assert_eq!(
                        get(&db, &key).as_deref(),
                        Some(key.as_str()),
                        "a write is visible when it returns"
                    );
                }
            });
        }
    });
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
    assert_eq!(rows.len(), 8000);
    assert!(rows.iter().all(|(key, value)| key == value));
}

#[test]
fn obsolete_files_go_when_the_last_iterator_does() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, &ColumnFamilyOptions::default()).unwrap();
    let count = |extension: &str| {
        fs.files().iter().filter(|(path, _)| path.extension().is_some_and(|e| e == extension)).count()
    };
    for i in 0..3 {
        put(&db, "k", &i.to_string());
        db.flush().unwrap();
    }
    let mut iter = db.cursor().unwrap();
    force(&db);
    assert!(count("sst") > 1, "the iterator keeps its tables");
    iter.seek_to_first();
    assert_eq!(iter.value(), b"2");
    drop(iter);
    // Background threads may still be removing what they found obsolete.
    until("removing all but one table and one WAL", || (count("sst"), count("log")) == (1, 1));
}

#[test]
fn the_blocks_of_dead_tables_leave_the_cache() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    let cf = db.default_column_family().clone();
    let usage = || -> u64 { db.property_cf(&cf, "rocksdb.block-cache-usage").unwrap().parse().unwrap() };
    let mut least = u64::MAX;
    for round in 0..4 {
        for i in 0..500 {
            put(&db, &format!("k{i:04}"), &format!("{round}{}", "v".repeat(1000)));
        }
        db.flush_cf(&cf).unwrap();
        force(&db);
        assert_eq!(contents(&db, &cf, &ReadOptions::default()).len(), 500);
        least = least.min(usage());
        assert!(least >= 500 << 10, "{least} bytes for 500 KiB of blocks read");
        until("forgetting the blocks of obsolete tables", || usage() <= least * 3 / 2);
    }
}

#[test]
fn many_gets_at_once_read_their_blocks_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(5);
    for round in 0..6 {
        let cf = small_options(&mut rng);
        let path = dir.path().join(round.to_string());
        let open = |options: DbOptions| {
            Db::builder(&path)
                .options(options)
                .env(Env::posix())
                .column_family(descriptor("default", &cf))
                .open()
                .unwrap()
        };
        let db = open(creating());
        let mut expected = std::collections::BTreeMap::new();
        for i in 0..3000 {
            let (key, value) =
                (format!("k{:04}", rng.below(2000)), format!("{i}{}", "v".repeat(rng.below(300) as usize)));
            put(&db, &key, &value);
            expected.insert(key, value);
        }
        db.flush().unwrap();
        drop(db);
        // Cold: the blocks of a call come from several levels, some of them twice.
        let direct = path.to_str().is_some_and(|path| !path.starts_with("/dev/shm")) && round % 2 == 0;
        let db = open(DbOptions { use_direct_reads: direct, ..DbOptions::default() });
        for _ in 0..20 {
            let keys: Vec<String> = (0..rng.below(100)).map(|_| format!("k{:04}", rng.below(2200))).collect();
            let slices: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            let fill_cache = rng.one_in(2);
            let options = ReadOptions { fill_cache, ..ReadOptions::default() };
            let got = db.multi_get_cf_with(db.default_column_family(), &slices, &options);
            for (key, value) in keys.iter().zip(got) {
                assert_eq!(text(value.unwrap()).as_ref(), expected.get(key), "{key}");
            }
        }
    }
}

#[test]
fn options_change_while_open() {
    let db = open(&Env::memory(), &ColumnFamilyOptions::default()).unwrap();
    let cf = db.default_column_family().clone();
    db.set_options_cf(&cf, &[("level0_file_num_compaction_trigger", "2")]).unwrap();
    assert!(db.set_options_cf(&cf, &[("num_levels", "3")]).is_err());
    for i in 0..4 {
        put(&db, &format!("k{i}"), "v");
        db.flush_cf(&cf).unwrap();
    }
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    let l0: u64 = db.property_cf(&cf, "rocksdb.num-files-at-level0").unwrap().parse().unwrap();
    assert!(l0 < 2, "{l0} tables in L0");
    let _ = Append;
}

/// Removes keys that end in an odd digit and appends a mark to keys ending in 4.
struct OddOut;

impl CompactionFilter for OddOut {
    fn name(&self) -> &str {
        "OddOut"
    }

    fn filter(&self, _level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        match key.last() {
            Some(digit) if digit % 2 == 1 => FilterDecision::Remove,
            Some(b'4') => FilterDecision::ChangeValue([value, b"!"].concat()),
            _ => FilterDecision::Keep,
        }
    }
}

#[test]
fn a_compaction_filter_removes_and_changes_values() {
    let parts = ColumnFamilyParts {
        compaction_filter: Some(std::sync::Arc::new(OddOut)),
        ..ColumnFamilyParts::default()
    };
    let family = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts);
    let db = Db::builder("/db").options(creating()).env(Env::memory()).column_family(family).open().unwrap();
    let cf = db.default_column_family().clone();
    let write = WriteOptions::default();
    // Older versions at the bottom, so that removals have something to hide on their way down.
    for round in 0..2 {
        for i in 0..200 {
            db.put_with(format!("k{i:03}").as_bytes(), format!("v{round}").as_bytes(), &write).unwrap();
        }
        db.flush_cf(&cf).unwrap();
    }
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    let rows = contents(&db, &cf, &ReadOptions::default());
    assert_eq!(rows.len(), 100);
    assert_eq!(rows[&b"k002"[..]], b"v1");
    assert_eq!(rows[&b"k014"[..]].strip_prefix(b"v1").unwrap().iter().filter(|b| **b == b'!').count() % 3, 1);
    assert!(db.get(b"k003").unwrap().is_none());
}

#[test]
fn deletions_of_files_are_enabled_as_often_as_they_were_disabled_or_by_force() {
    let db = Db::builder("/db").options(creating()).env(Env::memory()).open().unwrap();
    let enabled = || db.property_int("rocksdb.is-file-deletions-enabled");
    db.disable_file_deletions();
    db.disable_file_deletions();
    db.enable_file_deletions();
    assert_eq!(enabled(), Some(0));
    db.disable_file_deletions();
    db.force_enable_file_deletions();
    assert_eq!(enabled(), Some(1));
}

/// Keeps everything, a millisecond for each.
struct Slow(std::sync::atomic::AtomicUsize);

impl CompactionFilter for Slow {
    fn name(&self) -> &str {
        "Slow"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(1));
        FilterDecision::Keep
    }
}

/// Keeps everything, once it may.
#[derive(Default)]
struct Held {
    seen: std::sync::atomic::AtomicUsize,
    may_go: std::sync::atomic::AtomicBool,
}

impl CompactionFilter for Held {
    fn name(&self) -> &str {
        "Held"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        self.seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        until("the test's word", || self.may_go.load(std::sync::atomic::Ordering::Relaxed));
        FilterDecision::Keep
    }
}

#[test]
fn a_manual_compaction_that_is_disabled_ends_and_none_starts() {
    const ROWS: usize = 20_000;
    let held = Arc::new(Held::default());
    let parts = ColumnFamilyParts { compaction_filter: Some(held.clone()), ..ColumnFamilyParts::default() };
    let options = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    let family = vec![ColumnFamilyDescriptor::default_with(options.clone(), parts)];
    let db =
        Db::builder("/db").options(creating()).env(Env::memory()).column_families(family).open().unwrap();
    let empty = db.create_column_family(descriptor("empty", &options)).unwrap();
    let cf = db.default_column_family().clone();
    for i in 0..ROWS {
        put(&db, &format!("k{i:05}"), "v");
    }
    db.flush_cf(&cf).unwrap();
    let seen = || held.seen.load(std::sync::atomic::Ordering::Relaxed);
    let compact = |cf| db.compact_range_cf_with(cf, None, None, &BottommostLevelCompaction::Force.into());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| compact(&cf));
        until("the compaction", || seen() > 0);
        // It returns when the compaction has ended, which is held.
        scope.spawn(|| db.disable_manual_compaction());
        until("the refusal", || compact(&empty).is_err());
        held.may_go.store(true, std::sync::atomic::Ordering::Relaxed);
        let error = running.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "Result incomplete: Manual compaction paused");
    });
    let before = seen();
    assert!(before < ROWS, "it ran to its end");
    assert_eq!(compact(&cf).unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!(seen(), before);
    assert_eq!(db.property_int_cf(&cf, "rocksdb.background-errors"), Some(0), "nobody did wrong");
    put(&db, "k", "writes go on");
    db.enable_manual_compaction();
    compact(&cf).unwrap();
    assert!(seen() >= before + ROWS);
    assert_eq!(contents(&db, &cf, &ReadOptions::default()).len(), ROWS + 1);
}

#[test]
fn closing_does_not_wait_for_the_end_of_a_compaction() {
    const ROWS: usize = 30_000;
    let slow = Arc::new(Slow(0.into()));
    let parts = ColumnFamilyParts { compaction_filter: Some(slow.clone()), ..ColumnFamilyParts::default() };
    let options =
        ColumnFamilyOptions { level0_file_num_compaction_trigger: 2, ..ColumnFamilyOptions::default() };
    let family = |parts| vec![ColumnFamilyDescriptor::default_with(options.clone(), parts)];
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(family(parts))
        .open()
        .unwrap();
    let cf = db.default_column_family().clone();
    for half in 0..2 {
        for i in (half..ROWS).step_by(2) {
            put(&db, &format!("k{i:05}"), "v");
        }
        db.flush_cf(&cf).unwrap();
    }
    until("the compaction", || slow.0.load(std::sync::atomic::Ordering::Relaxed) > 0);
    db.close().unwrap();
    let seen = slow.0.load(std::sync::atomic::Ordering::Relaxed);
    assert!(seen < ROWS, "the compaction ran to its end");
    let tables = || {
        let names = env.fs.list(std::path::Path::new("/db")).unwrap();
        names.iter().filter(|name| name.ends_with(".sst")).count()
    };
    assert_eq!(tables(), 2, "what the compaction wrote is gone");
    let options = ColumnFamilyOptions { disable_auto_compactions: true, ..options.clone() };
    let family = vec![ColumnFamilyDescriptor::default_with(options, ColumnFamilyParts::default())];
    let db = Db::builder("/db").options(creating()).env(env.clone()).column_families(family).open().unwrap();
    let cf = db.default_column_family().clone();
    assert_eq!(contents(&db, &cf, &ReadOptions::default()).len(), ROWS);
}

#[test]
fn built_in_merge_operators_are_found_by_name() {
    let options =
        ColumnFamilyOptions { merge_operator: Some("stringappend".into()), ..ColumnFamilyOptions::default() };
    let family = |options: &ColumnFamilyOptions| {
        vec![ColumnFamilyDescriptor::default_with(options.clone(), ColumnFamilyParts::default())]
    };
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(family(&options))
        .open()
        .unwrap();
    let cf = db.default_column_family().clone();
    for operand in [b"a", b"b", b"c"] {
        db.merge_cf(&cf, b"k", operand).unwrap();
        db.flush_cf(&cf).unwrap();
    }
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"a,b,c"[..]));
    drop(db);
    let unknown =
        ColumnFamilyOptions { merge_operator: Some("mine".into()), ..ColumnFamilyOptions::default() };
    let error = Db::builder("/db")
        .options(creating())
        .env(env)
        .column_families(family(&unknown))
        .open()
        .err()
        .unwrap();
    assert!(error.to_string().contains("no built-in merge operator mine"), "{error}");
}
