//! Blob files and wide columns: large values outside tables, values that are sets of columns.

use crate::harness::{contents, creating, descriptor, until};
use crate::made::load;
use outcrop::*;
use std::path::Path;
use std::sync::Arc;

fn options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 100,
        blob_file_size: 10_000,
        enable_blob_garbage_collection: true,
        blob_garbage_collection_age_cutoff: 0.5,
        ..ColumnFamilyOptions::default()
    }
}

fn open(env: &Env) -> Db {
    Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(descriptor("default", &options()))
        .open()
        .unwrap()
}

fn blob_files(env: &Env) -> usize {
    env.fs.list("/db".as_ref()).unwrap().iter().filter(|name| name.ends_with(".blob")).count()
}

#[test]
fn garbage_goes_and_values_stay() {
    let env = Env::memory();
    let db = open(&env);
    let cf = db.default_column_family().clone();
    let mut most = 0;
    for round in 0..6u8 {
        for i in 0..100 {
            let value = vec![round; if i % 4 == 0 { 20 } else { 400 }];
            db.put(format!("key{i:03}").as_bytes(), &value).unwrap();
        }
        db.flush_cf(&cf).unwrap();
        most = most.max(blob_files(&env));
        let held = db.get(b"key001").unwrap().unwrap();
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        assert_eq!(held[..], vec![round; 400], "a value that was read outlives its file");
        let rows = contents(&db, &cf, &ReadOptions::default());
        assert!(rows.len() == 100 && rows.values().all(|value| value[0] == round), "round {round}");
    }
    // 75 values of 400 bytes need four files of 10,000. Upkeep removes the others when it comes to it.
    until("removing blob files", || blob_files(&env) <= 8);
    assert!((4..=8).contains(&blob_files(&env)), "{} blob files, {most} at most", blob_files(&env));
    drop(db);
    let db = open(&env);
    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
    assert!(rows.len() == 100 && rows.values().all(|value| value[0] == 5));
    for key in rows.keys() {
        db.delete(key).unwrap();
    }
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    drop(cf);
    drop(db);
    drop(open(&env));
    assert_eq!(blob_files(&env), 0, "nothing refers to a blob file any more");
}

#[test]
fn a_damaged_or_missing_blob_file_is_named() {
    let env = Env::memory();
    let db = open(&env);
    db.put(b"k", [7; 500]).unwrap();
    db.flush().unwrap();
    drop(db);
    let name = env.fs.list("/db".as_ref()).unwrap().into_iter().find(|name| name.ends_with(".blob")).unwrap();
    let path = std::path::Path::new("/db").join(&name);
    let whole = env.fs.read_all(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    env.fs.replace(&path, "/db/tmp".as_ref(), &damaged).unwrap();
    let error = open(&env).get(b"k").unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains(&name), "{error}");
    env.fs.replace(&path, "/db/tmp".as_ref(), &whole[..60]).unwrap();
    let error = open(&env).get(b"k").unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
    env.fs.remove_file(&path).unwrap();
    let error = open(&env).get(b"k").unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn entities_keep_their_columns_through_flush_and_compaction() {
    let env = Env::memory();
    let db = open(&env);
    let cf = db.default_column_family().clone();
    let write = WriteOptions::default();
    let read = ReadOptions::default();
    let columns = [(&b"size"[..], &b"7"[..]), (b"", b"plain"), (b"colour", b"red")];
    db.put_entity_cf_with(&cf, b"e", &columns, &write).unwrap();
    db.put_with(b"p", b"value", &write).unwrap();
    assert!(db.put_entity_cf_with(&cf, b"twice", &[(b"a", b"1"), (b"a", b"2")], &write).is_err());
    let check = |stage: &str| {
        let entity = db.get_entity_cf_with(&cf, b"e", &read).unwrap().unwrap();
        let expected = [(&b""[..], &b"plain"[..]), (b"colour", b"red"), (b"size", b"7")];
        assert!(entity.iter().eq(expected), "{stage}: {entity:?}");
        assert_eq!(db.get_with(b"e", &read).unwrap().as_deref(), Some(&b"plain"[..]), "{stage}");
        let plain = db.get_entity_cf_with(&cf, b"p", &read).unwrap().unwrap();
        assert!(plain.iter().eq([(&b""[..], &b"value"[..])]), "{stage}");
        let mut iter = db.cursor_with(&read).unwrap();
        iter.seek_to_last();
        assert_eq!((iter.key(), iter.value()), (&b"p"[..], &b"value"[..]), "{stage}");
        iter.prev();
        assert_eq!((iter.key(), iter.value()), (&b"e"[..], &b"plain"[..]), "{stage}");
        assert_eq!(iter.columns().unwrap().len(), 3, "{stage}");
    };
    check("memtable");
    db.flush_cf(&cf).unwrap();
    check("table");
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check("bottom");
    db.merge_cf_with(&cf, b"e", b"more", &write).unwrap();
    let entity = db.get_entity_cf_with(&cf, b"e", &read).unwrap().unwrap();
    assert_eq!(entity.iter().next(), Some((&b""[..], &b"plain,more"[..])));
    assert_eq!(entity.len(), 3, "a merge leaves the other columns");
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(db.get_entity_cf_with(&cf, b"e", &read).unwrap().unwrap(), entity);
}

/// An entity whose larger columns are in blob files, as RocksDB 11.8.1 writes it.
#[test]
fn columns_in_blob_files_are_read_moved_and_merged() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/made/11.8.1-put-entity-in-blob");
    let env = Env::with_file_system(Arc::new(load(&dir)));
    let kept = ColumnFamilyOptions { enable_blob_garbage_collection: false, ..options() };
    let open = |options: &ColumnFamilyOptions| {
        Db::builder("/db")
            .options(DbOptions::default())
            .env(env.clone())
            .column_family(descriptor("default", options))
            .open()
            .unwrap()
    };
    let (read, wide) = (ReadOptions::default(), [b"wide0", b"wide1", b"wide2"]);
    let columns_of = |db: &Db, key: &[u8]| {
        let entity = db.get_entity_cf_with(db.default_column_family(), key, &read).unwrap().unwrap();
        entity.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>()
    };
    let check = |db: &Db, expected: &[Vec<(Vec<u8>, Vec<u8>)>]| {
        let mut iter = db.cursor_with(&read).unwrap();
        for (key, columns) in wide.iter().zip(expected) {
            assert_eq!(&columns_of(db, *key), columns);
            assert_eq!(db.get_with(*key, &read).unwrap().as_deref(), Some(&columns[0].1[..]));
            iter.seek(*key);
            assert_eq!((iter.key(), iter.value()), (&key[..], &columns[0].1[..]));
            let shown = iter.columns().unwrap();
            assert!(shown.iter().eq(columns.iter().map(|(name, value)| (&name[..], &value[..]))));
        }
        iter.seek_to_last();
        assert_eq!((iter.key(), iter.value()), (&wide[2][..], &expected[2][0].1[..]));
    };
    let db = open(&kept);
    let expected: Vec<_> = wide.iter().map(|key| columns_of(&db, *key)).collect();
    for columns in &expected {
        let lens: Vec<usize> = columns.iter().map(|(_, value)| value.len()).collect();
        assert_eq!(lens, [50, 8, 50]);
    }
    check(&db, &expected);
    let cf = db.default_column_family().clone();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check(&db, &expected);
    assert!(blob_files(&env) >= 2, "references are kept");
    drop(cf);
    drop(db);
    let moving =
        ColumnFamilyOptions { blob_garbage_collection_age_cutoff: 1.0, min_blob_size: 1000, ..options() };
    let db = open(&moving);
    let cf = db.default_column_family().clone();
    db.merge_cf(&cf, b"wide1", b"more").unwrap();
    let mut merged = expected.clone();
    merged[1][0].1.extend_from_slice(b",more");
    check(&db, &merged);
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check(&db, &merged);
    drop(cf);
    drop(db);
    let db = open(&moving);
    check(&db, &merged);
    assert_eq!(blob_files(&env), 0, "all values moved out");
}
