//! Taking finished table files in.

use crate::harness::{Rng, Rows, contents, creating, descriptor, seed, small_options};
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::path::PathBuf;
use std::sync::Arc;

fn rows(db: &Db, options: &ReadOptions) -> Rows {
    contents(db, db.default_column_family(), options)
}

fn family(options: &ColumnFamilyOptions) -> ColumnFamilyDescriptor {
    descriptor("default", options)
}

fn open(env: &Env, options: &ColumnFamilyOptions) -> Db {
    env.fs.create_dir_all("/out".as_ref()).unwrap();
    Db::builder("/db").options(creating()).env(env.clone()).column_family(family(options)).open().unwrap()
}

fn file(env: &Env, name: &str, options: &ColumnFamilyOptions, rows: &[(&str, &str)]) -> PathBuf {
    let path = PathBuf::from(format!("/out/{name}"));
    let mut writer = SstFileWriter::create(&path, env, &family(options)).unwrap();
    for (key, value) in rows {
        writer.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    let info = writer.finish().unwrap();
    assert_eq!(info.num_entries, rows.len() as u64);
    path
}

fn ingest(db: &Db, paths: &[PathBuf], options: &IngestExternalFileOptions) -> Result<()> {
    db.ingest_external_files_cf_with(db.default_column_family(), paths, options)
}

fn level_of_files(db: &Db) -> Vec<usize> {
    let files =
        |level| db.property_int_cf(db.default_column_family(), &format!("rocksdb.num-files-at-level{level}"));
    let text =
        |level| db.property_cf(db.default_column_family(), &format!("rocksdb.num-files-at-level{level}"));
    (0..7).map(|level| files(level).or_else(|| text(level)?.parse().ok()).unwrap_or(0) as usize).collect()
}

#[test]
fn ingested_keys_hide_older_ones_and_not_newer_ones() {
    let env = Env::memory();
    let options = ColumnFamilyOptions::default();
    let db = open(&env, &options);
    let put = |key: &[u8], value: &[u8]| db.put(key, value).unwrap();
    put(b"a", b"old");
    put(b"c", b"old");
    let snapshot = db.snapshot();
    let path = file(&env, "one.sst", &options, &[("b", "new"), ("c", "new"), ("d", "new")]);
    ingest(&db, std::slice::from_ref(&path), &IngestExternalFileOptions::default()).unwrap();
    let text = |options: &ReadOptions| -> Vec<String> {
        let pair = |(key, value): (Vec<u8>, Vec<u8>)| {
            format!("{}={}", String::from_utf8(key).unwrap(), String::from_utf8(value).unwrap())
        };
        rows(&db, options).into_iter().map(pair).collect()
    };
    assert_eq!(text(&ReadOptions::default()), ["a=old", "b=new", "c=new", "d=new"]);
    assert_eq!(text(&ReadOptions::at(&snapshot)), ["a=old", "c=old"], "a snapshot does not see it");
    assert_eq!(db.get_with(b"c", &ReadOptions::at(&snapshot)).unwrap().as_deref(), Some(&b"old"[..]));
    put(b"d", b"newest");
    assert_eq!(text(&ReadOptions::default()), ["a=old", "b=new", "c=new", "d=newest"]);
    drop(snapshot);
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(text(&ReadOptions::default()), ["a=old", "b=new", "c=new", "d=newest"]);
    assert!(env.fs.exists(&path).unwrap(), "a copied file stays where it was");
}

#[test]
fn files_go_as_deep_as_they_can() {
    let env = Env::memory();
    let options = ColumnFamilyOptions::default();
    let db = open(&env, &options);
    let default = IngestExternalFileOptions::default();
    ingest(&db, &[file(&env, "1.sst", &options, &[("m", "1")])], &default).unwrap();
    assert_eq!(level_of_files(&db), [0, 0, 0, 0, 0, 0, 1], "an empty database takes it at the bottom");
    ingest(&db, &[file(&env, "2.sst", &options, &[("a", "1"), ("b", "1")])], &default).unwrap();
    assert_eq!(level_of_files(&db)[6], 2, "beside, not over");
    ingest(&db, &[file(&env, "3.sst", &options, &[("b", "2"), ("z", "2")])], &default).unwrap();
    assert_eq!(level_of_files(&db)[6], 2);
    assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    let over = [
        file(&env, "4.sst", &options, &[("b", "3"), ("y", "3")]),
        file(&env, "5.sst", &options, &[("c", "4"), ("y", "4")]),
    ];
    ingest(&db, &over, &default).unwrap();
    assert_eq!(db.get(b"y").unwrap().as_deref(), Some(&b"4"[..]), "the later wins");
    let deep = IngestExternalFileOptions { fail_if_not_bottommost_level: true, ..default };
    let error = ingest(&db, &[file(&env, "6.sst", &options, &[("b", "5")])], &deep).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TryAgain);
}

#[test]
fn what_cannot_be_ingested_is_refused_and_changes_nothing() {
    let env = Env::memory();
    let options = ColumnFamilyOptions::default();
    let db = open(&env, &options);
    db.put(b"k", b"old").unwrap();
    let default = IngestExternalFileOptions::default();
    let path = file(&env, "1.sst", &options, &[("k", "new")]);
    let refused = |paths: &[PathBuf], options: &IngestExternalFileOptions, what: &str| {
        let error = ingest(&db, paths, options).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"old"[..]));
    };
    refused(&[], &default, "no files");
    refused(&["/out/none.sst".into()], &default, "/out/none.sst");
    let blocking = IngestExternalFileOptions { allow_blocking_flush: false, ..default };
    refused(std::slice::from_ref(&path), &blocking, "allow_blocking_flush");
    let unnumbered = IngestExternalFileOptions { allow_global_seqno: false, ..default };
    refused(std::slice::from_ref(&path), &unnumbered, "Global seqno");
    let behind = IngestExternalFileOptions { ingest_behind: true, ..default };
    refused(std::slice::from_ref(&path), &behind, "allow_ingest_behind");
    let own = env.fs.list("/db".as_ref()).unwrap().into_iter().find(|name| name.ends_with(".sst"));
    if let Some(own) = own {
        refused(&[PathBuf::from("/db").join(own)], &default, "not made for ingestion");
    }
    let mut bytes = env.fs.read_all(&path).unwrap();
    bytes[3] ^= 0x20;
    env.fs.replace("/out/broken.sst".as_ref(), "/out/tmp".as_ref(), &bytes).unwrap();
    let verify = IngestExternalFileOptions { verify_checksums_before_ingest: true, ..default };
    refused(&["/out/broken.sst".into()], &verify, "checksum");
    let mut writer = SstFileWriter::create("/out/order.sst", &env, &family(&options)).unwrap();
    writer.put(b"b", b"").unwrap();
    assert!(writer.put(b"b", b"").is_err() && writer.put(b"a", b"").is_err());
    let empty = SstFileWriter::create("/out/empty.sst", &env, &family(&options)).unwrap();
    assert!(empty.finish().is_err());
}

#[test]
fn files_ingested_behind_lie_under_everything() {
    let env = Env::memory();
    let options = ColumnFamilyOptions { allow_ingest_behind: true, ..ColumnFamilyOptions::default() };
    let db = open(&env, &options);
    for key in [b"b", b"c"] {
        db.put(key, b"kept").unwrap();
    }
    db.delete(b"d").unwrap();
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    let behind = IngestExternalFileOptions { ingest_behind: true, ..IngestExternalFileOptions::default() };
    let path = file(&env, "1.sst", &options, &[("a", "x"), ("b", "x"), ("d", "x"), ("e", "x")]);
    ingest(&db, &[path], &behind).unwrap();
    let expected: Rows = [("a", "x"), ("b", "kept"), ("c", "kept"), ("e", "x")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    assert_eq!(rows(&db, &ReadOptions::default()), expected, "the deletion still hides d");
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(rows(&db, &ReadOptions::default()), expected);
    drop(db);
    assert_eq!(rows(&open(&env, &options), &ReadOptions::default()), expected);
}

#[test]
fn moved_files_are_gone_and_failures_leave_the_database_as_it_was() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let options = ColumnFamilyOptions::default();
    let db = open(&env, &options);
    db.put(b"k", b"old").unwrap();
    db.flush().unwrap();
    let path = file(&env, "1.sst", &options, &[("k", "new")]);
    fs.faults().only(Some(".sst"));
    fs.faults().fail_at(fs.faults().changes(), EIO, false);
    assert!(ingest(&db, std::slice::from_ref(&path), &IngestExternalFileOptions::default()).is_err());
    fs.faults().heal();
    fs.faults().only(None);
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"old"[..]));
    let moving = IngestExternalFileOptions { move_files: true, ..IngestExternalFileOptions::default() };
    ingest(&db, std::slice::from_ref(&path), &moving).unwrap();
    assert!(!env.fs.exists(&path).unwrap());
    drop(db);
    let db = open(&env, &options);
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn ingestions_among_random_writes_agree_with_a_map() {
    let first = seed("ingest", 7);
    for seed in first..first + 4 {
        let mut rng = Rng::new(seed);
        let env = Env::memory();
        let options = small_options(&mut rng);
        let mut db = open(&env, &options);
        let mut model = Rows::new();
        let key = |n: u64| format!("key{n:04}").into_bytes();
        for step in 0..600 {
            match rng.below(20) {
                0 => {
                    let path = PathBuf::from(format!("/out/{seed}-{step}.sst"));
                    let mut writer = SstFileWriter::create(&path, &env, &family(&options)).unwrap();
                    let (from, width) = (rng.below(400), 1 + rng.below(30));
                    if rng.one_in(3) {
                        let (begin, end) = (key(from.saturating_sub(5)), key(from + 7));
                        writer.delete_range(&begin, &end).unwrap();
                        model.retain(|k, _| *k < begin || *k >= end);
                    }
                    for n in from..from + width {
                        match rng.below(4) {
                            0 => {
                                writer.delete(&key(n)).unwrap();
                                model.remove(&key(n));
                            }
                            _ => {
                                let value = vec![step as u8; 50];
                                writer.put(&key(n), &value).unwrap();
                                model.insert(key(n), value);
                            }
                        }
                    }
                    writer.finish().unwrap();
                    let options = IngestExternalFileOptions {
                        move_files: rng.one_in(2),
                        ..IngestExternalFileOptions::default()
                    };
                    ingest(&db, &[path], &options).unwrap();
                }
                1 if rng.one_in(6) => {
                    drop(db);
                    db = open(&env, &options);
                }
                2 if rng.one_in(4) => {
                    let cf = db.default_column_family().clone();
                    db.compact_range_cf(&cf, None, None).unwrap();
                }
                3 => {
                    assert_eq!(rows(&db, &ReadOptions::default()), model, "seed {seed} step {step}");
                }
                _ => {
                    let key = key(rng.below(400));
                    db.put(&key, [step as u8; 80]).unwrap();
                    model.insert(key, vec![step as u8; 80]);
                }
            }
        }
        assert_eq!(rows(&db, &ReadOptions::default()), model, "seed {seed}");
        for (key, value) in &model {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        }
    }
}

#[test]
fn tables_of_the_first_level_do_not_lie_in_each_others_time() {
    // RocksDB 6 and 7 order them by their sequence numbers, and take such tables for damage.
    for style in [CompactionStyle::Fifo, CompactionStyle::Universal, CompactionStyle::Level] {
        let mut options = ColumnFamilyOptions {
            compaction_style: style,
            level0_file_num_compaction_trigger: 2,
            ..ColumnFamilyOptions::default()
        };
        options.compaction_options_fifo.allow_compaction = true;
        let env = Env::memory();
        let db = open(&env, &options);
        let cf = db.default_column_family().clone();
        let put = |key: &str| db.put(key.as_bytes(), b"v").unwrap();
        for round in 0..4 {
            put("a");
            put("m");
            db.flush_cf(&cf).unwrap();
            // These wait in memory while a table of a later number meets the older ones.
            put("x");
            put("y");
            let path = file(&env, &format!("table{round}"), &options, &[("b", "1"), ("c", "2")]);
            ingest(&db, &[path], &IngestExternalFileOptions::default()).unwrap();
            db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
            put("z");
            db.flush_cf(&cf).unwrap();
            let mut times: Vec<(u64, u64)> = db
                .live_files()
                .iter()
                .filter(|file| file.level == 0)
                .map(|file| (file.smallest_seq, file.largest_seq))
                .collect();
            times.sort_unstable();
            assert!(
                times.windows(2).all(|pair| pair[0].1 < pair[1].0),
                "{style:?}, round {round}: {times:?}"
            );
        }
    }
}
