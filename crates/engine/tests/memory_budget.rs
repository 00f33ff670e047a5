//! Under every workload the memory of a process stays within the budget of its database, and grows with the budget.
//!
//! The processes that are measured are children of this one: each has one database, and tells how much anonymous memory it had at most
//! under each workload, beyond what it had before. Files that are mapped, such as the program itself, do not count.

use outcrop::*;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Set in a child: its budget, in MiB.
const CHILD: &str = "OUTCROP_MEMORY_BUDGET_TEST_MIB";
/// The budget that all workloads are tried with.
const SMALLER: &str = "32";
/// Several times that.
const ROWS: u64 = 90_000;
const VALUE_BYTES: usize = 1000;
const FAMILIES: usize = 6;

/// Anonymous memory of this process that is resident, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux 4.5");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib << 10
}

/// Looks at the memory of the process all the time, on a thread of its own.
struct Sampler {
    before: u64,
    most: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sampler {
    fn start() -> Sampler {
        let (most, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (most.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max(resident_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Sampler { before: resident_bytes(), most, done, thread: Some(thread) }
    }

    /// Most growth since the last call, in bytes.
    fn take(&self) -> u64 {
        let most = self.most.swap(0, Ordering::Relaxed).max(resident_bytes());
        most.saturating_sub(self.before)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.take().map(|thread| thread.join());
    }
}

/// Values that do not compress, of any seed.
fn fill(value: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for bytes in value.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.copy_from_slice(&state.to_le_bytes()[..bytes.len()]);
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Puts rows `from..to` into the column families in turn. False if there was no memory at some point: the rest is not written.
#[must_use]
fn put(db: &Db, families: &[ColumnFamilyHandle], from: u64, to: u64, value_bytes: usize) -> bool {
    let mut value = vec![0; value_bytes];
    for start in (from..to).step_by(20) {
        let mut batch = WriteBatch::new();
        for number in start..(start + 20).min(to) {
            fill(&mut value, number);
            batch.put_cf(&families[(number / 20) as usize % families.len()], key(number), &value);
        }
        match db.write(&mut batch) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Aborted => return false,
            Err(error) => panic!("{error}"),
        }
    }
    true
}

fn open(dir: &str, budget: &Arc<MemoryBudget>) -> Db {
    let blobs = ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 4000,
        enable_blob_garbage_collection: true,
        ..options()
    };
    let mut builder = Db::builder(dir)
        .create_if_missing(true)
        .create_missing_column_families(true)
        .objects(DbObjects { memory_budget: Some(budget.clone()), ..DbObjects::default() })
        .default_column_family(options())
        .column_family(ColumnFamilyDescriptor::new("blobs").with_options(blobs));
    for number in 0..FAMILIES {
        builder =
            builder.column_family(ColumnFamilyDescriptor::new(format!("cf{number}")).with_options(options()));
    }
    builder.open().unwrap()
}

/// Many tables, with filters.
fn options() -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions {
        target_file_size_base: 2 << 20,
        max_bytes_for_level_base: 8 << 20,
        compression: CompressionType::None,
        ..ColumnFamilyOptions::default()
    };
    options.table.filter_policy = FilterPolicy::Bloom { bits_per_key: 10.0 };
    options
}

/// The child: puts the database under one workload after the other, and says what it took.
#[test]
fn child_that_is_measured() {
    let Ok(mib) = std::env::var(CHILD) else { return };
    let dir = tempfile::tempdir().unwrap();
    let budget = MemoryBudget::new(mib.parse::<u64>().unwrap() << 20).unwrap();
    let sampler = Sampler::start();
    // After the name of the test.
    println!();
    let tell = |workload: &str| {
        println!("{workload}: {}", sampler.take());
        assert!(budget.usage().total() <= budget.bytes(), "{workload}: {:?}", budget.usage());
    };
    let db = open(dir.path().to_str().unwrap(), &budget);
    let default = db.default_column_family().clone();

    let default_only = [default.clone()];
    assert!(put(&db, &default_only, 0, ROWS, VALUE_BYTES));
    tell("fill");
    assert!(put(&db, &default_only, 0, ROWS / 2, VALUE_BYTES));
    tell("overwrite");
    for number in 0..ROWS / 4 {
        assert!(db.get(key(number * 7919 % ROWS)).unwrap().is_some());
    }
    tell("random reads");
    let keys: Vec<[u8; 16]> = (0..2000).map(|number| key(number * 31 % ROWS)).collect();
    for keys in keys.chunks(100) {
        assert!(db.multi_get(keys).into_iter().all(|found| found.unwrap().is_some()));
    }
    tell("many gets");
    for fill_cache in [true, false] {
        let options = ReadOptions { fill_cache, ..ReadOptions::default() };
        let rows = db.iter_cf_with(&default, &options).inspect(|row| assert!(row.is_ok())).count();
        assert_eq!(rows as u64, ROWS);
    }
    tell("scans");
    if mib != SMALLER {
        return;
    }
    // An iterator takes memory for each table of L0: so many as there are when nothing is left to compact.
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    // More than there is room for: those that find none say so.
    let mut cursors = Vec::new();
    for number in 0..2000 {
        let options = ReadOptions { fill_cache: number % 2 == 0, ..ReadOptions::default() };
        let mut cursor = db.cursor_cf_with(&default, &options).unwrap();
        cursor.seek(&key(number));
        for _ in 0..30 {
            if cursor.valid() {
                cursor.next();
            }
        }
        match cursor.status() {
            Ok(()) => cursors.push(cursor),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Aborted, "{error}"),
        }
    }
    println!("iterators: {}", cursors.len());
    tell("many iterators");
    assert!(put(&db, &default_only, 0, ROWS / 4, VALUE_BYTES));
    tell("writes beside them");
    drop(cursors);
    // Each keeps the memtables of its time.
    let mut cursors = Vec::new();
    let is_full = (0..50).any(|part| {
        cursors.push(db.cursor_cf_with(&default, &ReadOptions::default()).unwrap());
        !put(&db, &default_only, part * 2000, (part + 1) * 2000, VALUE_BYTES)
    });
    assert!(is_full, "{} iterators keep too little", cursors.len());
    tell("iterators that keep memtables");
    drop(cursors);
    assert!(put(&db, &default_only, 0, 2000, VALUE_BYTES), "they are dropped");
    db.compact_range(None, None).unwrap();
    tell("compaction");
    let families: Vec<ColumnFamilyHandle> =
        (0..FAMILIES).map(|number| db.column_family(&format!("cf{number}")).unwrap()).collect();
    assert!(put(&db, &families, 0, ROWS / 4, VALUE_BYTES));
    tell("several column families");
    let blobs = db.column_family("blobs").unwrap();
    assert!(put(&db, std::slice::from_ref(&blobs), 0, 2400, 20_000));
    for number in 0..2400 {
        let found = db.get_cf(&blobs, key(number)).unwrap();
        assert_eq!(found.expect("it was put").len(), 20_000);
    }
    db.compact_range_cf(&blobs, None, None).unwrap();
    tell("blobs");
    drop((blobs, families, default, default_only));
    db.close().unwrap();
    tell("closed");
}

/// The most memory that a child with so many MiB took under each workload, in bytes.
fn measured(mib: &str) -> BTreeMap<String, u64> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_is_measured", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, mib)
        .output()
        .unwrap();
    let (out, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{out}{errors}");
    let lines = out.lines().filter_map(|line| line.split_once(": "));
    lines.filter_map(|(name, number)| Some((name.to_string(), number.parse().ok()?))).collect()
}

#[test]
fn resident_memory_stays_within_the_budget() {
    let budget = SMALLER.parse::<u64>().unwrap() << 20;
    let measured = measured(SMALLER);
    assert!(measured.len() >= 12 && measured["iterators"] > 300, "{measured:?}");
    for (workload, bytes) in &measured {
        assert!(*bytes <= budget / 10 * 11, "{workload}: {bytes} bytes of {budget}\n{measured:#?}");
    }
}

/// The assertion of the other test can fail, and a budget is there to be used.
#[test]
fn a_larger_budget_is_used() {
    let measured = measured("128");
    for workload in ["random reads", "scans"] {
        assert!(measured[workload] > 64 << 20, "{workload}: {measured:#?}");
    }
}
