//! Every option at the ends of its type, on a file system in memory: the database is opened or refused, and one that is opened
//! takes writes, flushes, compacts, closes and has its rows when it is opened again.
//!
//! A case runs in a thread that says what it is about to do; [`HANG`] without a word is a hang. Between two words lie a few
//! writes, one flush or one compaction of 40 KiB in memory: milliseconds of processor time, ten thousand times less.

use crate::harness::creating;
use outcrop::options::{CompactionStyle, DbOptions};
use outcrop::*;
use outcrop_options::rows::{CF_ROWS, DB_ROWS, Row, TABLE_ROWS};
use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const HANG: Duration = Duration::from_secs(60);

const VALUES: &[&str] = &[
    "-2147483648",
    "-5",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "40",
    "100",
    "65535",
    "1000000",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551613",
    "18446744073709551614",
    "18446744073709551615",
    "0.5",
    "1e300",
    "-1e300",
    "true",
    "false",
];

/// Options under which much happens in little data.
fn small() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        level0_file_num_compaction_trigger: 2,
        target_file_size_base: 4 << 10,
        max_bytes_for_level_base: 8 << 10,
        ..ColumnFamilyOptions::default()
    }
}

type Said = Sender<String>;

fn row(n: usize) -> ([u8; 8], [u8; 100]) {
    let mut value = [b'v'; 100];
    value[..8].copy_from_slice(format!("{n:08}").as_bytes());
    let mut key = *b"key00000";
    key[3..].copy_from_slice(format!("{:05}", n * 7919 % 97).as_bytes());
    (key, value)
}

/// Opens, writes, reads, compacts, closes and reads again; the text says what went wrong. A refusal is no mistake.
fn use_database(db: &DbOptions, cf: &ColumnFamilyOptions, said: &Said) -> std::result::Result<(), String> {
    const ROWS: usize = 400;
    let say = |what: &str| said.send(what.to_string()).map_err(|_| "nobody listens".to_string());
    let env = Env::memory();
    let family = || vec![ColumnFamilyDescriptor::default_with(cf.clone(), ColumnFamilyParts::default())];
    say("open")?;
    let Ok(open) = Db::builder("/db").options(db.clone()).env(env.clone()).column_families(family()).open()
    else {
        return Ok(());
    };
    for n in 0..ROWS {
        if n % 10 == 0 {
            say(&format!("put {n}"))?;
        }
        let (key, value) = row(n);
        open.put(key, value).map_err(|error| format!("put {n}: {error}"))?;
        // More tables than the default triggers let be.
        if n % 10 == 9 {
            say(&format!("flush {n}"))?;
            let flushed = open.flush_cf(open.default_column_family());
            flushed.map_err(|error| format!("flush {n}: {error}"))?;
        }
    }
    let keeps = cf.compaction_style != CompactionStyle::Fifo;
    let read = |db: &Db, when: &str| {
        for n in ROWS - 97..ROWS {
            let (key, value) = row(n);
            let found = db.get(key).map_err(|error| format!("get {when}: {error}"))?;
            if keeps && found.as_deref() != Some(&value[..]) {
                return Err(format!("get {when}: row {n} is {found:?}"));
            }
        }
        Ok(())
    };
    say("read")?;
    read(&open, "before compacting")?;
    say("compact")?;
    let cf_handle = open.default_column_family().clone();
    let compacted =
        open.compact_range_cf_with(&cf_handle, None, None, &BottommostLevelCompaction::default().into());
    compacted.map_err(|error| format!("compact_range: {error}"))?;
    read(&open, "after compacting")?;
    drop(cf_handle);
    say("close")?;
    open.close().map_err(|error| format!("close: {error}"))?;
    say("open again")?;
    let again = Db::builder("/db")
        .options(DbOptions { error_if_exists: false, ..db.clone() })
        .env(env)
        .column_families(family())
        .open();
    let again = again.map_err(|error| format!("open again: {error}"))?;
    read(&again, "once open again")?;
    say("close again")?;
    again.close().map_err(|error| format!("close again: {error}"))
}

/// Runs a case and watches it.
fn watch(title: &str, db: DbOptions, cf: ColumnFamilyOptions) {
    let (said, heard) = channel();
    let thread = std::thread::spawn(move || use_database(&db, &cf, &said));
    let mut last = String::from("nothing");
    loop {
        match heard.recv_timeout(HANG) {
            Ok(word) => last = word,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("{title}: hangs at {last}"),
        }
    }
    match thread.join() {
        Ok(Ok(())) => {}
        Ok(Err(what)) => panic!("{title}: {what}"),
        Err(_) => panic!("{title}: panics at {last}"),
    }
}

/// `base` with each of the [`VALUES`] that the option takes; of texts that mean one value the first, and none that means `base`'s own.
fn settings<T: Clone>(row: &Row<T>, base: &T) -> Vec<(&'static str, T)> {
    let mut seen = BTreeSet::from([(row.get)(base)]);
    let setting = |value: &&'static str| {
        let mut options = base.clone();
        (row.set)(&mut options, value).ok()?;
        seen.insert((row.get)(&options)).then_some((*value, options))
    };
    VALUES.iter().filter_map(setting).collect()
}

#[test]
fn options_of_the_database() {
    for row in DB_ROWS.iter().filter(|row| row.name != "wal_dir") {
        for (value, db) in settings(row, &creating()) {
            let db = DbOptions { create_if_missing: true, ..db };
            watch(&format!("{}={value}", row.name), db, small());
        }
    }
}

#[test]
fn options_of_a_column_family() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal, CompactionStyle::Fifo] {
        let base = ColumnFamilyOptions { compaction_style: style, ..small() };
        watch(&format!("{style:?}"), creating(), base.clone());
        for row in CF_ROWS.iter().filter(|row| !matches!(row.name, "comparator" | "merge_operator")) {
            // Most of the values do to the other styles what they do to the first.
            let step = if style == CompactionStyle::Level { 1 } else { 3 };
            for (value, cf) in settings(row, &base).into_iter().step_by(step) {
                watch(&format!("{style:?} {}={value}", row.name), creating(), cf);
            }
        }
    }
}

/// A switch may take a level away, or ask for one: what is right with seven levels may not be with one or two.
#[test]
fn switches_of_a_column_family_with_few_levels() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal, CompactionStyle::Fifo] {
        for num_levels in [1, 2, 3] {
            for row in CF_ROWS {
                let few = ColumnFamilyOptions { compaction_style: style, num_levels, ..small() };
                let is_switch = |value: &str| ["true", "false"].contains(&value);
                let mut cf = few.clone();
                let turned = if (row.get)(&few) == "true" { "false" } else { "true" };
                if is_switch(&(row.get)(&few)) && (row.set)(&mut cf, turned).is_ok() {
                    watch(
                        &format!("{style:?} num_levels={num_levels} {}={turned}", row.name),
                        creating(),
                        cf,
                    );
                }
            }
        }
    }
}

/// The other level is kept for what is ingested behind: tables are merged in L0, and become as few as the trigger says.
#[test]
fn two_levels_of_which_one_is_kept_for_data_behind() {
    for (trigger, most) in [(1, 1), (4, 3)] {
        let cf = ColumnFamilyOptions {
            num_levels: 2,
            allow_ingest_behind: true,
            level0_file_num_compaction_trigger: trigger,
            ..small()
        };
        watch(&format!("trigger {trigger}"), creating(), cf.clone());
        let family = ColumnFamilyDescriptor::default_with(cf, ColumnFamilyParts::default());
        let db =
            Db::builder("/db").options(creating()).env(Env::memory()).column_family(family).open().unwrap();
        for n in 0..30 {
            let (key, value) = row(n);
            db.put(key, value).unwrap();
            db.flush().unwrap();
        }
        db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
        let tables = db.live_files();
        assert!(tables.iter().all(|table| table.level == 0));
        assert!(tables.len() <= most, "{} tables, and {trigger} start a compaction", tables.len());
        db.compact_range(None, None).unwrap();
        assert_eq!(db.live_files().len(), 1);
        for n in 0..30 {
            let (key, value) = row(n);
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        }
    }
}

#[test]
fn options_of_tables() {
    for row in TABLE_ROWS {
        for (value, table) in settings(row, &small().table) {
            watch(&format!("{}={value}", row.name), creating(), ColumnFamilyOptions { table, ..small() });
        }
    }
}

#[test]
fn numbers_that_are_none() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, f64::MIN] {
        let fields: [fn(&mut ColumnFamilyOptions) -> &mut f64; 5] = [
            |cf| &mut cf.max_bytes_for_level_multiplier,
            |cf| &mut cf.memtable_prefix_bloom_size_ratio,
            |cf| &mut cf.blob_garbage_collection_age_cutoff,
            |cf| &mut cf.blob_garbage_collection_force_threshold,
            |cf| &mut cf.table.data_block_hash_table_util_ratio,
        ];
        for (index, field) in fields.iter().enumerate() {
            for dynamic in [false, true] {
                let mut cf = ColumnFamilyOptions {
                    level_compaction_dynamic_level_bytes: dynamic,
                    enable_blob_files: index >= 2,
                    enable_blob_garbage_collection: index >= 2,
                    prefix_extractor: Some(outcrop_base::PrefixExtractor::Fixed(4)),
                    ..small()
                };
                cf.table.data_block_index_type = outcrop::options::DataBlockIndexType::BinaryAndHash;
                *field(&mut cf) = value;
                watch(&format!("field {index} is {value}, dynamic {dynamic}"), creating(), cf);
            }
        }
        for policy in [
            outcrop::options::FilterPolicy::Bloom { bits_per_key: value },
            outcrop::options::FilterPolicy::LegacyBloom { bits_per_key: value },
            outcrop::options::FilterPolicy::Ribbon { bits_per_key: value, bloom_before_level: i32::MIN },
        ] {
            let mut cf = small();
            cf.table.filter_policy = policy;
            watch(&format!("{policy:?}"), creating(), cf);
        }
    }
}
