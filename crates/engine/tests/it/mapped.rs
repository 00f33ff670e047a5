//! `allow_mmap_reads`: tables and blob files are mapped while they are open, and read from there.

use crate::harness::{creating, descriptor, until};
use outcrop::*;
use std::path::Path;

const ROWS: u32 = 3000;

fn open(dir: &Path, options: DbOptions, cf: &ColumnFamilyOptions) -> Result<Db> {
    Db::builder(dir).options(options).env(Env::posix()).column_family(descriptor("default", cf)).open()
}

fn mapped() -> DbOptions {
    DbOptions { allow_mmap_reads: true, ..creating() }
}

/// A block cache that holds next to nothing, so that blocks are read again and again.
fn uncached() -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions::default();
    options.table.no_block_cache = true;
    options
}

/// The files of the database in `dir` that this process has mapped, those that were removed too, once each.
fn mapped_files(dir: &Path, kind: &str) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_dir = |line: &str| line.split_once(dir.to_str().unwrap()).map(|(_, name)| name.to_string());
    maps.lines().filter_map(of_dir).filter(|name| name.contains(kind)).collect()
}

fn key(row: u32) -> String {
    format!("key{row:06}")
}

fn value(row: u32, round: u32) -> Vec<u8> {
    format!("{row} in round {round} {}", "x".repeat(row as usize % 200)).into_bytes()
}

fn write(db: &Db, round: u32) {
    (0..ROWS).for_each(|row| db.put(key(row), value(row, round)).unwrap());
    db.flush().unwrap();
}

/// Reads every row in every way.
fn check(db: &Db, round: u32) {
    let expected = || (0..ROWS).map(|row| (key(row).into_bytes(), value(row, round)));
    for (key, value) in expected() {
        assert_eq!(db.get(&key).unwrap().as_deref(), Some(&value[..]));
    }
    let keys: Vec<String> = (0..ROWS).map(key).collect();
    for (found, (_, value)) in db.multi_get(&keys).into_iter().zip(expected()) {
        assert_eq!(found.unwrap().as_deref(), Some(&value[..]));
    }
    for readahead_size in [0, 1 << 20] {
        let options = ReadOptions { readahead_size, ..ReadOptions::default() };
        assert!(
            db.iter_with(&options)
                .map(|row| row.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .eq(expected())
        );
    }
    db.verify_checksums().unwrap();
}

#[test]
fn all_rows_are_read_from_mappings_that_go_with_their_files() {
    for enable_blob_files in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let cf = ColumnFamilyOptions { enable_blob_files, min_blob_size: 100, ..uncached() };
        let db = open(&path, mapped(), &cf).unwrap();
        for round in 0..3 {
            write(&db, round);
            check(&db, round);
        }
        let kinds = if enable_blob_files { &[".sst", ".blob"][..] } else { &[".sst"] };
        for kind in kinds {
            assert!(!mapped_files(&path, kind).is_empty(), "{kind}");
        }
        db.compact_range(None, None).unwrap();
        check(&db, 2);
        let files = |kind: &str| {
            let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_str().unwrap().ends_with(kind)).count()
        };
        // Files that compaction replaced are unmapped when upkeep has removed them: none that was deleted stays.
        until("unmapping what compaction replaced", || {
            kinds.iter().all(|kind| {
                let mapped = mapped_files(&path, kind);
                mapped.len() == files(kind) && mapped.iter().all(|name| !name.contains("deleted"))
            })
        });
        drop(db);
        assert_eq!(mapped_files(&path, ""), [""; 0]);
        // The same files without.
        let db = open(&path, creating(), &cf).unwrap();
        check(&db, 2);
        assert_eq!(mapped_files(&path, ".sst"), [""; 0]);
    }
}

#[test]
fn a_table_that_lost_its_end_is_corruption() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path, mapped(), &uncached()).unwrap();
    write(&db, 0);
    drop(db);
    let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let table = names.into_iter().find(|name| name.extension().is_some_and(|kind| kind == "sst")).unwrap();
    let whole = std::fs::read(&table).unwrap();
    for len in [0, 1, 52, 53, 4096, 4097, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&table, &whole[..len]).unwrap();
        let error =
            open(&path, mapped(), &uncached()).and_then(|db| db.get(key(ROWS / 2)).map(drop)).unwrap_err();
        assert!(error.kind() == ErrorKind::Corruption, "{len}: {error}");
        assert!(error.to_string().contains(table.file_name().unwrap().to_str().unwrap()), "{len}: {error}");
    }
    std::fs::write(&table, &whole).unwrap();
    check(&open(&path, mapped(), &uncached()).unwrap(), 0);
}

#[test]
fn mapped_reads_exclude_direct_ones() {
    let dir = tempfile::tempdir().unwrap();
    let error =
        open(dir.path(), DbOptions { use_direct_reads: true, ..mapped() }, &uncached()).err().unwrap();
    assert!(
        error.kind() == ErrorKind::NotSupported && error.to_string().contains("allow_mmap_reads"),
        "{error}"
    );
}
