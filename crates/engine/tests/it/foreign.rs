//! Databases and tables that RocksDB wrote: read completely, or refused by name and left as they were.

use crate::harness::{Rows, contents, creating, descriptor};
use outcrop::options::DbOptions;
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::path::Path;
use std::sync::Arc;

fn load(name: &str) -> MemoryFs {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).unwrap();
    for entry in std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let entry = entry.unwrap();
        let mut file = fs.create(&Path::new("/db").join(entry.file_name()), OpenWrite::default()).unwrap();
        file.append(&std::fs::read(entry.path()).unwrap()).unwrap();
        file.close().unwrap();
    }
    fs
}

fn open(fs: &MemoryFs, families: &[&str]) -> Result<Db> {
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options = ColumnFamilyOptions::default();
    let families = families.iter().map(|name| descriptor(name, &options));
    Db::builder("/db")
        .options(DbOptions { create_if_missing: false, ..creating() })
        .env(env)
        .column_families(families)
        .open()
}

#[test]
fn databases_of_rocksdb_are_read_from_tables_and_wals() {
    for version in ["6.29.5", "10.4.2", "11.8.1"] {
        for state in ["basic", "basic-unflushed"] {
            let name = format!("{version}-{state}");
            let db = open(&load(&name), &["default"]).unwrap_or_else(|error| panic!("{name}: {error}"));
            let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
            let keys: Vec<&[u8]> = rows.keys().map(Vec::as_slice).collect();
            let mut expected = vec![&b"apple"[..], b"cherry", b"count"];
            if state == "basic" && version != "6.29.5" {
                // Written after the flush; the copy of 6.29.5 was taken before it reached the file.
                expected.push(b"date");
            }
            assert_eq!(keys, expected, "{name}");
            assert_eq!(rows[&b"apple"[..]], b"red", "{name}");
        }
    }
}

#[test]
fn recycled_and_compressed_wals_are_replayed() {
    for name in ["11.8.1-wal-zstd", "11.8.1-wal-plain-fragmented"] {
        let db = open(&load(name), &["default"]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
        assert_eq!(rows[&b"big"[..]].len(), 48_000, "{name}");
    }
    for name in ["11.8.1-wal-recyclable", "11.8.1-wal-predecessor-info"] {
        let db = open(&load(name), &["default"]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(db.get(b"z").unwrap().as_deref(), Some(&b"2"[..]), "{name}");
    }
}

#[test]
fn range_tombstones_of_rocksdb_hide_what_they_should() {
    let keys = |db: &Db, family: &str| -> Vec<Vec<u8>> {
        contents(db, &db.column_family(family).unwrap(), &ReadOptions::default()).into_keys().collect()
    };
    let db = open(&load("11.8.1-range-del"), &["default"]).unwrap();
    assert_eq!(keys(&db, "default"), [b"a", b"m"]);
    assert!(db.get(b"c").unwrap().is_none());
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(keys(&db, "default"), [b"a", b"m"]);
    let db = open(&load("11.8.1-cf-batch"), &["default", "cf one"]).unwrap();
    assert_eq!(keys(&db, "default"), [b"dflt"]);
    assert_eq!(keys(&db, "cf one"), [b"m", b"x"]);
}

#[test]
fn every_kind_of_table_of_rocksdb_is_read() {
    for kind in [
        "data-hash-index",
        "first-key-index",
        "fv2-bloom10",
        "fv4-bloom10",
        "fv5-bloom10",
        "fv5-snappy-xxhash64",
        "fv6-bloom10",
        "fv6-zlib-xxhash",
        "fv7-bloom10",
        "fv7-lz4",
        "fv7-zstd-dict-compacted",
        "hash-search-index",
        "partitioned",
        "ribbon10",
        "separated-kv",
    ] {
        let name = format!("11.8.1-{kind}");
        let db = open(&load(&name), &["default"]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Rows = (0..300)
            .map(|i| (format!("key{i:06}").into_bytes(), format!("value-{i}").into_bytes()))
            .collect();
        assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()), expected, "{name}");
        for (key, value) in &expected {
            let got = db.get(key).unwrap();
            assert_eq!(got.as_deref(), Some(&value[..]), "{name}");
        }
        assert!(db.get(b"key000300").unwrap().is_none(), "{name}");
    }
    let db = open(&load("11.8.1-ingested"), &["default"]).unwrap();
    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
    let text: Vec<(&str, &str)> = rows
        .iter()
        .map(|(key, value)| (std::str::from_utf8(key).unwrap(), std::str::from_utf8(value).unwrap()))
        .collect();
    assert_eq!(text, [("k0", "old"), ("k1", "NEW"), ("k2", "old"), ("k3", "NEW"), ("k4", "old")]);
}

#[test]
fn blob_files_of_rocksdb_are_read() {
    let db = open(&load("11.8.1-blob"), &["default"]).unwrap();
    let cf = db.default_column_family().clone();
    let mut expected: Rows = (0..5).map(|i| (format!("k{i}").into_bytes(), vec![b'V'; 100 + i])).collect();
    expected.insert(b"small".to_vec(), b"s".to_vec());
    assert_eq!(contents(&db, &cf, &ReadOptions::default()), expected);
    assert_eq!(db.get(b"k3").unwrap().unwrap().len(), 103);
    db.delete(b"k0").unwrap();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    expected.remove(&b"k0"[..]);
    assert_eq!(contents(&db, &cf, &ReadOptions::default()), expected);
}

#[test]
fn what_this_engine_lacks_is_refused_by_name_before_anything_is_written() {
    let fs = load("11.8.1-udt");
    let before = fs.files();
    let error = open(&fs, &["default"]).err().expect("it must be refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("timestamps"), "{error}");
    let after: Vec<_> = fs.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect();
    assert_eq!(after, before, "nothing was written");
}

#[test]
fn timestamps_of_rocksdb_are_read() {
    let fs = load("11.8.1-udt");
    let open = || {
        let stamped = descriptor("default", &ColumnFamilyOptions::default())
            .with_comparator(Comparator::bytewise_with_timestamps());
        let builder = Db::builder("/db").env(Env::with_file_system(Arc::new(fs.clone())));
        builder.column_family(stamped).open().unwrap()
    };
    let check = |db: &Db| {
        let at = |stamp: u64| {
            let options = ReadOptions::at_timestamp(stamp.into());
            let text = |(key, value): Row| {
                format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
            };
            db.iter_with(&options).map(|row| text(row.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(at(4), [""; 0]);
        assert_eq!(at(5), ["key1=v5"]);
        assert_eq!(at(9), ["key1=v9", "key2=v7"]);
        assert_eq!(at(11), ["key1=v9"]);
    };
    let db = open();
    check(&db);
    db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check(&db);
    drop(db);
    check(&open());
}

#[test]
fn direct_io_gives_the_same_rows() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let open = |direct: bool| {
        let options = DbOptions {
            use_direct_reads: direct,
            use_direct_io_for_flush_and_compaction: direct,
            ..creating()
        };
        let cf = ColumnFamilyOptions { write_buffer_size: 64 << 10, ..ColumnFamilyOptions::default() };
        Db::builder(&dir).options(options).env(Env::posix()).column_family(descriptor("default", &cf)).open()
    };
    let db = match open(true) {
        Ok(db) => db,
        Err(error) if error.kind() == ErrorKind::InvalidArgument => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    for i in 0..3000u32 {
        db.put(i.to_be_bytes(), [i as u8; 150]).unwrap();
    }
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    let rows = contents(&db, &cf, &ReadOptions::default());
    assert_eq!(rows.len(), 3000);
    db.close().unwrap();
    let db = open(false).unwrap();
    assert_eq!(contents(&db, db.default_column_family(), &ReadOptions::default()), rows);
}

/// Damage to one of two WALs, under each recovery mode: rows recovered, or `None` if the open fails.
#[test]
fn recovery_modes_treat_damage_as_rocksdb_does() {
    use WalRecoveryMode::*;
    let modes =
        [TolerateCorruptedTailRecords, AbsoluteConsistency, PointInTimeRecovery, SkipAnyCorruptedRecords];
    // The damage, and what is left of five records in each of the WALs A and B.
    type Damage = fn(&MemoryFs, &Path, &Path);
    type Left = Option<(u32, u32)>;
    let cases: [(&str, Damage, [Left; 4]); 5] = [
        ("none", |_, _, _| {}, [Some((5, 5)), Some((5, 5)), Some((5, 5)), Some((5, 5))]),
        (
            "last record of A cut",
            |fs, a, _| fs.truncate(a, fs.file_size(a).unwrap() as usize - 1),
            [Some((4, 5)), None, Some((4, 0)), Some((4, 5))],
        ),
        (
            "last record of B cut",
            |fs, _, b| fs.truncate(b, fs.file_size(b).unwrap() as usize - 1),
            [Some((5, 4)), None, Some((5, 4)), Some((5, 4))],
        ),
        (
            "bit flip in last record of A",
            |fs, a, _| fs.flip_byte(a, fs.file_size(a).unwrap() as usize - 1, 1),
            [None, None, Some((4, 0)), Some((4, 5))],
        ),
        (
            "bit flip in third record of A",
            |fs, a, _| fs.flip_byte(a, fs.file_size(a).unwrap() as usize / 2 + 20, 1),
            [None, None, Some((2, 0)), Some((2, 5))],
        ),
    ];
    for (what, damage, expected) in cases {
        for (mode, expected) in modes.into_iter().zip(expected) {
            let fs = two_wals(true);
            let wals: Vec<_> = fs
                .files()
                .into_iter()
                .map(|(path, _)| path)
                .filter(|p| p.extension().is_some_and(|e| e == "log"))
                .collect();
            assert_eq!(wals.len(), 2, "two WALs are left to replay");
            damage(&fs, &wals[0], &wals[1]);
            let env = Env::with_file_system(Arc::new(fs));
            let options = DbOptions { wal_recovery_mode: mode, ..DbOptions::default() };
            let families = vec![descriptor("default", &ColumnFamilyOptions::default())];
            let found =
                Db::builder("/db").options(options).env(env).column_families(families).open().ok().map(
                    |db| {
                        let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
                        let of = |wal: u8| rows.keys().filter(|key| key[0] == wal).count() as u32;
                        (of(b'a'), of(b'b'))
                    },
                );
            assert_eq!(found, expected, "{what}, {mode:?}");
        }
    }
}

#[test]
fn a_column_family_ahead_of_a_damaged_wal_fails_the_open() {
    let fs = two_wals(false);
    let wal =
        fs.files().into_iter().map(|(path, _)| path).find(|p| p.extension().is_some_and(|e| e == "log"));
    let wal = wal.unwrap();
    fs.truncate(&wal, fs.file_size(&wal).unwrap() as usize - 1);
    let error = open(&fs, &["default", "idle"]).err().unwrap();
    assert!(error.to_string().contains("idle is ahead"), "{error}");
}

/// A killed database whose rows are in two WALs: five records each, in WAL order.
fn two_wals(drop_idle: bool) -> MemoryFs {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options = ColumnFamilyOptions::default();
    let families = || vec![descriptor("default", &options), descriptor("idle", &options)];
    // The table of outcomes is of logs that end where their files do.
    let plain = DbOptions { allow_fallocate: false, ..creating() };
    let db = Db::builder("/db").options(plain).env(env.clone()).column_families(families()).open().unwrap();
    let put = |cf: &ColumnFamilyHandle, key: &[u8]| db.put_cf(cf, key, [7; 40]).unwrap();
    let (default, idle) = (db.default_column_family().clone(), db.column_family("idle").unwrap());
    put(&idle, b"x");
    for i in 0..5u8 {
        put(&default, &[b'a', i]);
    }
    // Sealing the other column family starts a new WAL; the first one is still needed.
    db.flush_cf(&idle).unwrap();
    if drop_idle {
        db.drop_column_family(&idle).unwrap();
    }
    for i in 0..5u8 {
        put(&default, &[b'b', i]);
    }
    let copy = MemoryFs::new();
    copy.create_dir_all(Path::new("/db")).unwrap();
    for (path, _) in fs.files() {
        let mut file = copy.create(&path, OpenWrite::default()).unwrap();
        file.append(&fs.read_all(&path).unwrap()).unwrap();
        file.close().unwrap();
    }
    copy
}
