//! An order that calls different bytes the same key: the newest version is the key's, whatever its bytes.

use crate::harness::CaseFold;
use outcrop::options::{ColumnFamilyOptions, DbOptions};
use outcrop::*;
use std::sync::Arc;

/// Blocks of one or two entries, so that versions of a key are spread over several.
fn open(env: &Env) -> Db {
    let mut options = ColumnFamilyOptions {
        disable_auto_compactions: true,
        merge_operator: Some("stringappend".into()),
        ..ColumnFamilyOptions::default()
    };
    options.table.block_size = 30;
    let comparator = Comparator::User(Arc::new(CaseFold));
    let parts = ColumnFamilyParts { comparator, ..ColumnFamilyParts::default() };
    let db_options = DbOptions { create_if_missing: true, ..DbOptions::default() };
    let descriptor = ColumnFamilyDescriptor::default_with(options, parts);
    Db::builder("/db").options(db_options).env(env.clone()).column_family(descriptor).open().unwrap()
}

/// The rows that a scan forward, a scan backward and gets of every key in both cases find, in lower case.
fn check(db: &Db, expected: &[(&str, &str)], when: &str) {
    let cf = db.default_column_family();
    let read = ReadOptions::default();
    let lower = |bytes: &[u8]| String::from_utf8(bytes.to_ascii_lowercase()).unwrap();
    let mut iter = db.cursor_cf_with(cf, &read).unwrap();
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    iter.seek_to_first();
    while iter.valid() {
        forward.push((lower(iter.key()), lower(iter.value())));
        iter.next();
    }
    iter.seek_to_last();
    while iter.valid() {
        backward.insert(0, (lower(iter.key()), lower(iter.value())));
        iter.prev();
    }
    iter.status().unwrap();
    let expected: Vec<_> = expected.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    assert_eq!(forward, expected, "{when}, forward");
    assert_eq!(backward, expected, "{when}, backward");
    for key in ["a", "b", "c", "d", "e"] {
        let wanted = expected.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
        for asked in [key.to_string(), key.to_uppercase()] {
            let found = db.get_with(asked.as_bytes(), &read).unwrap().map(|value| lower(&value));
            assert_eq!(found, wanted, "{when}, get {asked}");
        }
    }
}

#[test]
fn the_newest_of_different_bytes_is_the_keys_version_everywhere() {
    let env = Env::memory();
    let db = open(&env);
    let write = WriteOptions::default();
    let cf = db.default_column_family().clone();
    // A snapshot keeps all versions through flush and compaction.
    let snapshot = db.snapshot();
    for (key, value) in [("a", "1"), ("B", "1"), ("b", "2"), ("A", "2"), ("d", "1"), ("E", "1"), ("c", "1")] {
        db.put_with(key.as_bytes(), value.as_bytes(), &write).unwrap();
    }
    db.delete_with(b"C", &write).unwrap();
    db.single_delete_cf_with(&cf, b"D", &write).unwrap();
    db.merge_cf_with(&cf, b"e", b"2", &write).unwrap();
    db.merge_cf_with(&cf, b"E", b"3", &write).unwrap();
    let expected = [("a", "2"), ("b", "2"), ("e", "1,2,3")];
    check(&db, &expected, "in the memtable");
    db.flush_cf(&cf).unwrap();
    check(&db, &expected, "in L0");
    db.put_with(b"a", b"3", &write).unwrap();
    let expected = [("a", "3"), ("b", "2"), ("e", "1,2,3")];
    check(&db, &expected, "in both");
    db.flush_cf(&cf).unwrap();
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check(&db, &expected, "compacted under a snapshot");
    drop(snapshot);
    db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    check(&db, &expected, "compacted");
    assert_eq!(db.property_int_cf(&cf, "rocksdb.estimate-num-keys"), Some(3), "no old version is left");
    drop(cf);
    db.close().unwrap();
    check(&open(&env), &expected, "reopened");
}
