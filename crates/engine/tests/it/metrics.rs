//! The OpenMetrics text, read by a small parser of the form's rules, and what it says after a few operations.

use outcrop::{
    Cache, CacheOptions, ColumnFamilyDescriptor, ColumnFamilyParts, Db, Env, Statistics, StatsLevel,
};
use outcrop_env::Clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Samples by name with labels, after all of the form was checked.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with EOF");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeMap::new());
    let (mut name, mut kind) = (String::new(), String::new());
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "TYPE", of, what] => {
                (name, kind) = (of.to_string(), what.to_string());
                assert!(["gauge", "counter", "histogram"].contains(what), "{line}");
                assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
                assert!(!name.ends_with("_total"), "{line}");
                assert!(families.insert(name.clone()), "{name} is there twice");
            }
            ["#", "UNIT", of, unit] => assert!(*of == name && name.ends_with(&format!("_{unit}")), "{line}"),
            ["#", "HELP", of, help] => assert!(*of == name && help.ends_with('.'), "{line}"),
            _ => {
                let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
                let (series_name, labels) = match series.split_once('{') {
                    Some((name, labels)) => {
                        (name, labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}")))
                    }
                    None => (series, ""),
                };
                let suffix =
                    series_name.strip_prefix(&*name).unwrap_or_else(|| panic!("{line} below {name}"));
                let allowed: &[&str] = match &*kind {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(allowed.contains(&suffix), "{line}");
                assert_eq!(labels.matches('"').count() % 2, 0, "{line}");
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
                assert!(samples.insert(series.to_string(), value).is_none(), "{line} twice");
            }
        }
    }
    samples
}

#[test]
fn the_text_has_the_form_and_says_what_was_done() {
    let statistics = Arc::new(Statistics::new());
    statistics.set_level(StatsLevel::All);
    let db = Db::builder("/db")
        .env(Env::memory())
        .create_if_missing(true)
        .create_missing_column_families(true)
        .column_family("a \"quoted\" one")
        .statistics(statistics)
        .open()
        .unwrap();
    for row in 0..100 {
        db.put(format!("{row:03}"), [7; 100]).unwrap();
    }
    db.get("005").unwrap().unwrap();
    db.flush().unwrap();
    db.get("005").unwrap().unwrap();
    assert_eq!(db.get("nothing").unwrap(), None);
    let samples = parse(&db.metrics());
    let of = |name: &str| samples[name];
    assert_eq!(of("outcrop_keys_written_total"), 100.0);
    assert_eq!(of("rocksdb_number_keys_written_total"), 100.0);
    assert_eq!(of("rocksdb_number_keys_read_total"), 3.0);
    assert_eq!(of("rocksdb_memtable_hit_total"), 1.0);
    assert_eq!(of("rocksdb_l0_hit_total"), 1.0);
    assert_eq!(of("rocksdb_read_bytes_total"), 200.0);
    assert_eq!(of("rocksdb_db_get_seconds_count"), 3.0);
    assert_eq!(of("rocksdb_per_read_bytes_bucket{le=\"+Inf\"}"), 3.0);
    assert_eq!(of("rocksdb_per_read_bytes_sum"), 200.0);
    assert_eq!(of("outcrop_level_files{column_family=\"default\",level=\"0\"}"), 1.0);
    assert_eq!(of("outcrop_level_files{column_family=\"a \\\"quoted\\\" one\",level=\"0\"}"), 0.0);
    assert_eq!(of("outcrop_write_stopped"), 0.0);
}

#[test]
fn without_statistics_sizes_and_writes_are_there() {
    let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open().unwrap();
    db.put("a", "1").unwrap();
    let samples = parse(&db.metrics());
    assert_eq!(samples["outcrop_writes_total"], 1.0);
    assert!(samples.keys().all(|name| name.starts_with("outcrop_")));
}

/// A clock that is moved by hand, and calls somebody when it is asked next.
#[derive(Default)]
struct ByHand {
    seconds: AtomicU64,
    call: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for ByHand {
    fn now_micros(&self) -> u64 {
        let call = self.call.lock().unwrap().take();
        call.into_iter().for_each(|call| call());
        self.seconds.load(Ordering::Relaxed) * 1_000_000
    }
    fn monotonic_nanos(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed) * 1_000_000_000
    }
    fn thread_cpu_nanos(&self) -> u64 {
        0
    }
    fn sleep(&self, _: Duration) {}
}

/// Two column families that share a cache, and their clock.
fn sharing_a_cache() -> (Arc<Db>, Arc<ByHand>) {
    let clock = Arc::new(ByHand::default());
    clock.seconds.store(1_000_000, Ordering::Relaxed);
    let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
    let families = ["default", "other"].map(|name| ColumnFamilyDescriptor {
        name: name.to_string(),
        parts: ColumnFamilyParts { block_cache: Some(cache.clone()), ..ColumnFamilyParts::default() },
        ..ColumnFamilyDescriptor::default()
    });
    let db = Db::builder("/db")
        .env(Env { clock: clock.clone(), ..Env::memory() })
        .create_if_missing(true)
        .create_missing_column_families(true)
        .column_families(families)
        .open()
        .unwrap();
    (Arc::new(db), clock)
}

#[test]
fn column_families_that_share_a_cache_look_at_its_blocks_once() {
    let (db, clock) = sharing_a_cache();
    let other = db.column_family("other").unwrap();
    let of_cache = |name: &str| {
        [db.default_column_family(), &other].map(|cf| {
            let text = db.property_cf(cf, name).unwrap();
            let at = text.find("collections: ").unwrap();
            text[at..].lines().next().unwrap().to_string()
        })
    };
    let line = |looks: u64, copies: u64, since: u64| {
        format!("collections: {looks} last_copies: {copies} last_secs: 0 secs_since: {since}")
    };
    assert_eq!(of_cache("rocksdb.stats"), [line(1, 0, 0), line(1, 1, 0)]);
    clock.seconds.fetch_add(100, Ordering::Relaxed);
    assert_eq!(of_cache("rocksdb.cfstats"), [line(1, 2, 100), line(1, 3, 100)]);
    assert_eq!(of_cache("rocksdb.fast-block-cache-entry-stats"), [line(1, 4, 100), line(1, 5, 100)]);
    assert_eq!(of_cache("rocksdb.block-cache-entry-stats"), [line(2, 0, 0), line(2, 1, 0)]);
    let samples = parse(&db.metrics());
    let pinned = |cf: &str| samples[&format!("outcrop_block_cache_pinned_bytes{{column_family=\"{cf}\"}}")];
    assert_eq!(pinned("default"), pinned("other"));
}

#[test]
fn nothing_waits_for_the_look_at_all_blocks() {
    let (db, clock) = sharing_a_cache();
    let (done, seen) = std::sync::mpsc::channel();
    let beside = db.clone();
    // The look begins with a question for the time. Meanwhile another thread asks for what the locked state knows.
    *clock.call.lock().unwrap() = Some(Box::new(move || {
        let other = std::thread::spawn(move || {
            done.send(beside.property_int("rocksdb.num-running-flushes")).unwrap();
        });
        drop(other);
        let answer = seen.recv_timeout(Duration::from_secs(60)).expect("the state is locked meanwhile");
        assert_eq!(answer, Some(0));
    }));
    db.property("rocksdb.cfstats").unwrap();
    assert!(clock.call.lock().unwrap().is_none(), "it was asked");
}
