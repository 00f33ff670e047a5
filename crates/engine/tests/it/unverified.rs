//! Reads with `verify_checksums` off: damage that decodes is taken for data, by them alone.

use crate::harness::{creating, descriptor};
use outcrop::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// It compresses.
const VALUE: &[u8] = &[b'v'; 200];

fn open(env: &Env, options: &ColumnFamilyOptions) -> Db {
    open_counted(env, options, None)
}

fn open_counted(env: &Env, options: &ColumnFamilyOptions, statistics: Option<Arc<Statistics>>) -> Db {
    Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .statistics(statistics)
        .column_family(descriptor("default", options))
        .open()
        .unwrap()
}

/// A database with one row, and the path of its only file that ends in `kind`.
fn with_one_row(options: &ColumnFamilyOptions, kind: &str) -> (Env, PathBuf) {
    let env = Env::memory();
    let db = open(&env, options);
    db.put("key", VALUE).unwrap();
    db.flush().unwrap();
    drop(db);
    let names = env.fs.list("/db".as_ref()).unwrap();
    let name = names.iter().find(|name| name.ends_with(kind)).unwrap();
    (env, Path::new("/db").join(name))
}

fn damage(env: &Env, path: &Path, at: usize) {
    let mut bytes = env.fs.read_all(path).unwrap();
    bytes[at] ^= 1;
    env.fs.replace(path, "/db/tmp".as_ref(), &bytes).unwrap();
}

/// The value of the row in every way there is to read it.
fn read(db: &Db, options: &ReadOptions) -> Vec<Result<Option<Vec<u8>>>> {
    let owned = |found: Option<PinnedValue>| found.map(|value| value.to_vec());
    let mut ways = vec![db.get_with("key", options).map(owned)];
    ways.extend(db.multi_get_with(&[b"key", b"key"], options).into_iter().map(|found| found.map(owned)));
    for readahead_size in [0, 4096] {
        let options = ReadOptions { readahead_size, ..options.clone() };
        let mut cursor = db.cursor_with(&options).unwrap();
        for seek in [Cursor::seek_to_first, Cursor::seek_to_last] {
            seek(&mut cursor);
            ways.push(match cursor.valid() {
                true => Ok(Some(cursor.value().to_vec())),
                false => cursor.status().map(|()| None),
            });
        }
        let rows: Result<Vec<_>> = db.iter_with(&options).collect();
        ways.push(rows.map(|rows| rows.into_iter().next().map(|(_, value)| value.to_vec())));
    }
    ways
}

fn unverified() -> ReadOptions {
    ReadOptions { verify_checksums: false, ..ReadOptions::default() }
}

fn assert_corrupt(ways: Vec<Result<Option<Vec<u8>>>>, file: &Path, what: &str) {
    let name = file.file_name().unwrap().to_str().unwrap();
    for (way, read) in ways.into_iter().enumerate() {
        let error = read.expect_err(what);
        assert!(
            error.kind() == ErrorKind::Corruption && error.to_string().contains(name),
            "{what}, {way}: {error}"
        );
    }
}

fn assert_value(ways: Vec<Result<Option<Vec<u8>>>>, value: &[u8], what: &str) {
    for (way, read) in ways.into_iter().enumerate() {
        assert_eq!(
            read.unwrap_or_else(|error| panic!("{what}, {way}: {error}")).as_deref(),
            Some(value),
            "{what}, {way}"
        );
    }
}

/// Damaged at `at`, the file is read with true, false and true again: an error, `value`, and an error.
fn try_damage(options: &ColumnFamilyOptions, (env, path): &(Env, PathBuf), at: usize, value: &[u8]) {
    let what = format!("{:?} {}", options.compression, path.display());
    damage(env, path, at);
    let db = open(env, options);
    for turn in ["first", "after an unverified read"] {
        assert_corrupt(read(&db, &ReadOptions::default()), path, &format!("{what}, {turn}"));
        assert_value(read(&db, &unverified()), value, &what);
    }
    drop(db);
    damage(env, path, at);
    // Of a whole file each read is the same, and one that verifies finds what it kept.
    let db = open(env, options);
    assert_value(read(&db, &unverified()), VALUE, &what);
    assert_value(read(&db, &ReadOptions::default()), VALUE, &what);
    assert_value(read(&db, &ReadOptions { tier: ReadTier::Cached, ..ReadOptions::default() }), VALUE, &what);
    assert_value(read(&db, &ReadOptions { tier: ReadTier::Cached, ..unverified() }), VALUE, &what);
}

#[test]
fn a_block_with_a_wrong_checksum_is_read_if_nobody_compares_it() {
    for compression in [CompressionType::None, CompressionType::Lz4] {
        for format_version in [5, 7] {
            let mut options = ColumnFamilyOptions { compression, ..ColumnFamilyOptions::default() };
            options.table.format_version = format_version;
            let made = with_one_row(&options, ".sst");
            // The data block stands first, and the last byte of its trailer is the checksum's.
            let db = open(&made.0, &options);
            let tables = db.properties_of_tables_cf(db.default_column_family(), None).unwrap();
            let end = tables[&made.1].data_size as usize;
            drop(db);
            try_damage(&options, &made, end - 1, VALUE);
        }
    }
}

#[test]
fn damage_that_decodes_is_given_as_it_is() {
    let options =
        ColumnFamilyOptions { compression: CompressionType::None, ..ColumnFamilyOptions::default() };
    let made = with_one_row(&options, ".sst");
    let bytes = made.0.fs.read_all(&made.1).unwrap();
    let at = bytes.windows(VALUE.len()).position(|window| window == VALUE).unwrap();
    let mut damaged = VALUE.to_vec();
    damaged[0] ^= 1;
    try_damage(&options, &made, at, &damaged);
}

#[test]
fn values_of_blob_files_are_read_without_their_records() {
    for blob_compression_type in [CompressionType::None, CompressionType::Lz4] {
        let options = ColumnFamilyOptions {
            enable_blob_files: true,
            blob_compression_type,
            ..ColumnFamilyOptions::default()
        };
        let made = with_one_row(&options, ".blob");
        // A header of 30 bytes, then the record: lengths and expiry, checksums of header and value, key and value.
        for at in [30, 30 + 24, 30 + 28, 30 + 32] {
            try_damage(&options, &made, at, VALUE);
        }
    }
}

#[test]
fn no_checksum_is_computed_for_an_unverified_block() {
    let options = ColumnFamilyOptions::default();
    let (env, _) = with_one_row(&options, ".sst");
    let statistics = Arc::new(Statistics::new());
    let db = open_counted(&env, &options, Some(statistics.clone()));
    let computed = |options: &ReadOptions| {
        let before = statistics.ticker(Ticker::BlockChecksumComputeCount);
        db.get_with("key", options).unwrap();
        statistics.ticker(Ticker::BlockChecksumComputeCount) - before
    };
    assert_eq!([computed(&unverified()), computed(&unverified())], [0, 0]);
    assert_eq!([computed(&ReadOptions::default()), computed(&ReadOptions::default())], [1, 0]);
}
