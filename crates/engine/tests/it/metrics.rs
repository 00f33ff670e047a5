//! The OpenMetrics text, read by a small parser of the form's rules, and what it says after a few operations.

use outcrop::{Db, Env, Statistics, StatsLevel};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
