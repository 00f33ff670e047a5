//! The cost of one operation of a whole database, with everything it reads cached: nanoseconds, or one operation at a
//! time for `cargo xtask instructions`, which runs it under callgrind. Files are real: a WAL's cost depends on how it
//! is written.
//!
//! ```text
//! cargo bench -p outcrop                                  nanoseconds of each operation
//! operations --only NAME --times N                        runs it N times, reads twice that; prints nothing
//!     --statistics LEVEL                                  with statistics at a level of RocksDB's, 0 to 5
//!     --perf LEVEL                                        with a perf context of the thread at one, 1 to 6
//! ```
//! `cargo test` runs everything on a few rows, to see that it works.

use outcrop::options::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompressionType, DbOptions, FilterPolicy,
};
use outcrop::{
    BottommostLevelCompaction, ColumnFamilyDescriptor, ColumnFamilyParts, Db, Env, PerfContext, PerfLevel,
    Statistics, StatsLevel, WriteOptions,
};
use outcrop_cache::{Cache, CacheOptions};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// One operation: its name, what the database holds before, and how it is done `times` times.
struct Operation {
    name: &'static str,
    rows: Rows,
    run: fn(&Db, u64, u64),
}

/// Where the rows are when an operation starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// There are none.
    None,
    /// There are none, in 50 column families.
    NoneOfMany,
    /// In the memtable.
    MemTable,
    /// In the tables of one level, their blocks cached.
    Tables,
}

const OPERATIONS: [Operation; 12] = [
    Operation { name: "put", rows: Rows::None, run: |db, _, times| put(db, times, false) },
    Operation { name: "put_no_wal", rows: Rows::None, run: |db, _, times| put(db, times, true) },
    Operation { name: "put_no_wal_50_cfs", rows: Rows::NoneOfMany, run: |db, _, times| put(db, times, true) },
    Operation { name: "fill_and_compact", rows: Rows::None, run: fill_and_compact },
    Operation { name: "get_memtable", rows: Rows::MemTable, run: get },
    Operation { name: "get", rows: Rows::Tables, run: get },
    Operation { name: "get_missing", rows: Rows::Tables, run: get_missing },
    Operation { name: "multi_get_10", rows: Rows::Tables, run: multi_get },
    Operation { name: "seek_10_next", rows: Rows::Tables, run: seek_next },
    Operation { name: "seek_10_prev", rows: Rows::Tables, run: seek_prev },
    Operation { name: "next", rows: Rows::Tables, run: next },
    Operation { name: "prev", rows: Rows::Tables, run: prev },
];

const VALUE: [u8; 400] = [7; 400];

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn scramble(i: u64, n: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) % n
}

/// A database in a directory that is removed with it.
struct Prepared {
    db: Db,
    _dir: tempfile::TempDir,
}

fn open(column_families: usize) -> Prepared {
    let options = ColumnFamilyOptions {
        write_buffer_size: 64 << 20,
        compression: CompressionType::None,
        table: BlockBasedTableOptions {
            block_size: 8192,
            filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
            ..BlockBasedTableOptions::default()
        },
        ..ColumnFamilyOptions::default()
    };
    let cache = Cache::new(CacheOptions { capacity: 256 << 20, estimated_entry_charge: 8 << 10 });
    let parts = ColumnFamilyParts { block_cache: Some(cache), ..ColumnFamilyParts::default() };
    let family = ColumnFamilyDescriptor { name: "default".to_string(), options, parts };
    let others = (1..column_families).map(|number| ColumnFamilyDescriptor {
        name: number.to_string(),
        options: ColumnFamilyOptions { write_buffer_size: 64 << 10, ..ColumnFamilyOptions::default() },
        ..ColumnFamilyDescriptor::default()
    });
    let families = std::iter::once(family).chain(others);
    let creating = DbOptions {
        create_if_missing: true,
        create_missing_column_families: true,
        avoid_flush_during_shutdown: true,
        ..DbOptions::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut builder = Db::builder(dir.path()).options(creating).env(Env::posix()).column_families(families);
    if let Some(statistics) = statistics() {
        builder = builder.statistics(statistics);
    }
    Prepared { db: builder.open().unwrap(), _dir: dir }
}

/// Whether operations are counted: as the command line says.
fn statistics() -> Option<Arc<Statistics>> {
    if let Some(level) = argument("--perf") {
        PerfContext::set_level(PerfLevel(level.parse().expect("--perf LEVEL")));
    }
    let level = argument("--statistics")?.parse().expect("--statistics LEVEL");
    let statistics = Statistics::new();
    statistics.set_level(StatsLevel::from_number(level));
    Some(Arc::new(statistics))
}

fn prepared(rows: Rows, count: u64) -> Prepared {
    let prepared = open(if rows == Rows::NoneOfMany { 50 } else { 1 });
    let db = &prepared.db;
    if matches!(rows, Rows::None | Rows::NoneOfMany) {
        return prepared;
    }
    put(db, count, true);
    if rows == Rows::Tables {
        let family = db.default_column_family().clone();
        db.compact_range_cf_with(&family, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        next(db, count, count);
    }
    prepared
}

fn put(db: &Db, times: u64, disable_wal: bool) {
    let options = WriteOptions { disable_wal, ..WriteOptions::default() };
    for i in 0..times {
        // Every number once, in no order.
        db.put_with(key(i.wrapping_mul(0x9E37_79B9) % (1 << 32)), VALUE, &options).unwrap();
    }
}

fn fill_and_compact(db: &Db, _: u64, times: u64) {
    put(db, times, true);
    let family = db.default_column_family().clone();
    db.compact_range_cf_with(&family, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
}

fn stored(i: u64, rows: u64) -> [u8; 20] {
    key(scramble(i, rows).wrapping_mul(0x9E37_79B9) % (1 << 32))
}

fn get(db: &Db, rows: u64, times: u64) {
    for i in 0..times {
        let value = db.get(stored(i, rows)).unwrap();
        assert_eq!(black_box(value).map(|value| value.len()), Some(VALUE.len()));
    }
}

fn get_missing(db: &Db, rows: u64, times: u64) {
    for i in 0..times {
        let mut key = stored(i, rows);
        key[19] = b'1';
        assert!(black_box(db.get(key).unwrap()).is_none());
    }
}

fn multi_get(db: &Db, rows: u64, times: u64) {
    for i in 0..times {
        let keys: [[u8; 20]; 10] = std::array::from_fn(|at| stored(i * 10 + at as u64, rows));
        let slices = keys.each_ref().map(|key| &key[..]);
        let values = db.multi_get_cf(db.default_column_family(), &slices);
        assert!(black_box(values).iter().all(|value| value.as_ref().unwrap().is_some()));
    }
}

fn seek_next(db: &Db, rows: u64, times: u64) {
    for i in 0..times {
        let mut iter = db.cursor().unwrap();
        iter.seek(&stored(i, rows));
        for _ in 0..10 {
            if !iter.valid() {
                break;
            }
            black_box((iter.key(), iter.value()));
            iter.next();
        }
    }
}

fn seek_prev(db: &Db, rows: u64, times: u64) {
    for i in 0..times {
        let mut iter = db.cursor().unwrap();
        iter.seek_for_prev(&stored(i, rows));
        for _ in 0..10 {
            if !iter.valid() {
                break;
            }
            black_box((iter.key(), iter.value()));
            iter.prev();
        }
    }
}

fn next(db: &Db, _: u64, times: u64) {
    let mut iter = db.cursor().unwrap();
    iter.seek_to_first();
    for _ in 0..times {
        if !iter.valid() {
            iter.seek_to_first();
        }
        black_box((iter.key(), iter.value()));
        iter.next();
    }
}

fn prev(db: &Db, _: u64, times: u64) {
    let mut iter = db.cursor().unwrap();
    iter.seek_to_last();
    for _ in 0..times {
        if !iter.valid() {
            iter.seek_to_last();
        }
        black_box((iter.key(), iter.value()));
        iter.prev();
    }
}

/// The part that callgrind counts.
#[inline(never)]
fn measured(operation: &Operation, db: &Db, rows: u64, times: u64) {
    (operation.run)(db, rows, times);
}

/// The value after `flag` on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != flag).nth(1)
}

fn main() {
    if let Some(name) = argument("--only") {
        let operation =
            OPERATIONS.iter().find(|operation| operation.name == name).expect("a known operation");
        let times = argument("--times").and_then(|text| text.parse().ok()).expect("--times N");
        const ROWS: u64 = 5_000;
        let prepared = prepared(operation.rows, ROWS);
        if !matches!(operation.rows, Rows::None | Rows::NoneOfMany) {
            (operation.run)(&prepared.db, ROWS, times);
        }
        measured(operation, &prepared.db, ROWS, times);
        return;
    }
    if std::env::args().any(|argument| argument == "--list") {
        OPERATIONS.iter().for_each(|operation| println!("{}", operation.name));
        return;
    }
    let whole = std::env::args().any(|argument| argument == "--bench");
    let (rows, times) = if whole { (100_000, 200_000) } else { (200, 100) };
    for operation in OPERATIONS {
        let prepared = prepared(operation.rows, rows);
        (operation.run)(&prepared.db, rows, times / 10);
        let start = Instant::now();
        measured(&operation, &prepared.db, rows, times);
        println!("{:<18} {:>8.1} ns/op", operation.name, start.elapsed().as_nanos() as f64 / times as f64);
    }
}
