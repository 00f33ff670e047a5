//! Operations count in several ways: with a few instructions, where a thread has counters of its own and no times are wanted; for several who
//! watch; in counters that threads share. The figures are the same.

use crate::harness::{creating, descriptor};
use outcrop::options::{BlockBasedTableOptions, ColumnFamilyOptions, CompressionType, FilterPolicy};
use outcrop::{ColumnFamilyParts, Db, Env, PerfContext, PerfLevel, Statistics, StatsLevel, Ticker};
use outcrop_base::PrefixExtractor;
use outcrop_cache::{Cache, CacheOptions};
use std::process::Command;
use std::sync::{Arc, Barrier};

/// The way that a child process is to count.
const WAY: &str = "OUTCROP_COUNTING_WAY";

/// Ways that differ in nothing but who counts.
const WAYS: [&str; 4] = ["alone", "with times", "with a perf context", "in shared counters"];

fn key(row: usize) -> String {
    format!("{row:06}")
}

fn open(statistics: &Arc<Statistics>, whole_keys: bool, in_cache: bool) -> Db {
    let options = ColumnFamilyOptions {
        compression: CompressionType::None,
        disable_auto_compactions: true,
        prefix_extractor: Some(PrefixExtractor::Fixed(4)),
        merge_operator: Some("uint64add".into()),
        table: BlockBasedTableOptions {
            block_size: 1000,
            filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
            whole_key_filtering: whole_keys,
            cache_index_and_filter_blocks: in_cache,
            ..BlockBasedTableOptions::default()
        },
        ..ColumnFamilyOptions::default()
    };
    let cache = Cache::new(CacheOptions { capacity: 8 << 20, estimated_entry_charge: 1 << 10 });
    let mut family = descriptor("default", &options);
    family.parts = ColumnFamilyParts { block_cache: Some(cache), ..ColumnFamilyParts::default() };
    let builder = Db::builder("/db").options(creating()).env(Env::memory()).column_family(family);
    builder.statistics(statistics.clone()).open().unwrap()
}

/// Rows of many sizes in memtable, L0, L1 and L2, with deletions and operands between; then reads of all kinds.
fn operate(db: &Db) {
    let value = |row: usize| vec![7; row * 37 % 1500];
    for (level, class) in [(2, 0), (1, 1), (0, 2), (9, 3)] {
        // Tables of L0 lack every other prefix.
        for row in (class..600).step_by(4).filter(|row| level > 0 || row / 100 % 2 == 0) {
            match row % 7 {
                0 => db.merge(key(row), (row as u64).to_le_bytes()).unwrap(),
                1 => db.delete(key(row)).unwrap(),
                _ => db.put(key(row), value(row)).unwrap(),
            }
        }
        match level {
            9 => {}
            0 => db.flush().unwrap(),
            level => {
                db.flush().unwrap();
                let files: Vec<u64> =
                    db.live_files().iter().filter(|file| file.level == 0).map(|file| file.number).collect();
                db.compact_files(&files, level).unwrap();
            }
        }
    }
    let keys: Vec<String> = (0..700).map(key).collect();
    for key in &keys {
        drop(db.get(key).unwrap());
    }
    keys.chunks(13).for_each(|keys| drop(db.multi_get(keys)));
    let mut cursor = db.cursor().unwrap();
    cursor.seek(b"000100");
    (0..100).for_each(|_| {
        if cursor.valid() {
            cursor.next()
        }
    });
    (0..50).for_each(|_| {
        if cursor.valid() {
            cursor.prev()
        }
    });
    cursor.seek_to_first();
    while cursor.valid() {
        cursor.next();
    }
    cursor.seek_to_last();
    while cursor.valid() {
        cursor.prev();
    }
}

/// All that was counted but for times.
fn counted(statistics: &Statistics) -> String {
    let is_of_time = |line: &&str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        ["micros", "nanos", "time", "times"].iter().any(|word| name.contains(word))
    };
    statistics.text().lines().filter(|line| !is_of_time(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The figures of a thread that does everything.
fn script() -> String {
    let mut all = String::new();
    for (whole_keys, in_cache) in [(true, false), (true, true), (false, false)] {
        let statistics = Arc::new(Statistics::new());
        let level = if std::env::var(WAY).as_deref() == Ok(WAYS[1]) {
            StatsLevel::All
        } else {
            StatsLevel::ExceptTimers
        };
        statistics.set_level(level);
        let db = open(&statistics, whole_keys, in_cache);
        operate(&db);
        drop(db);
        all.push_str(&counted(&statistics));
    }
    all
}

/// Runs `work` on a thread that has no counters of its own, as as many others hold them as can.
fn without_own_counters<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    const OTHERS: usize = 100;
    let (ready, done) = (Barrier::new(OTHERS + 1), Barrier::new(OTHERS + 1));
    std::thread::scope(|scope| {
        for _ in 0..OTHERS {
            scope.spawn(|| {
                Statistics::new().count(Ticker::NoFileOpens, 1);
                ready.wait();
                done.wait();
            });
        }
        ready.wait();
        let answer = scope.spawn(work).join();
        done.wait();
        answer.unwrap()
    })
}

/// No test of its own: what [`every_way_of_counting_counts_the_same`] runs, in a process where nobody else counts.
#[test]
fn child_that_counts() {
    let Ok(way) = std::env::var(WAY) else { return };
    let text = match way.as_str() {
        "with a perf context" => {
            PerfContext::set_level(PerfLevel::COUNTS);
            script()
        }
        "in shared counters" => without_own_counters(script),
        _ => script(),
    };
    println!("BEGIN\n{text}END");
}

#[test]
fn every_way_of_counting_counts_the_same() {
    let texts = WAYS.map(|way| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["counting_ways::child_that_counts", "--exact", "--nocapture", "--test-threads=1"])
            .env(WAY, way)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let begun = text.split_once("BEGIN\n").unwrap_or_else(|| panic!("{way}: {text}")).1;
        begun.split_once("END").unwrap().0.to_string()
    });
    for name in
        ["bytes.read", "l1.hit", "bloom.filter.prefix.useful", "block.cache.data.hit", "bytes.per.write"]
    {
        let is_counted = |line: &str| line.contains(name) && !line.contains("COUNT : 0");
        assert!(texts[0].lines().any(is_counted), "the script counts no {name}");
    }
    for (way, text) in WAYS.iter().zip(&texts).skip(1) {
        for (expected, line) in texts[0].lines().zip(text.lines()) {
            assert_eq!(line, expected, "{way}");
        }
        assert_eq!(text.lines().count(), texts[0].lines().count());
    }
}
