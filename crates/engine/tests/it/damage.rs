//! Whole databases with one file damaged: a read gives an error that names the file, or the rows that were written.
//!
//! ```text
//! files of a database -> one damage -> open, get, scan both ways -> error | all rows | (WAL) a legal part
//! ```
//! A WAL may lose its end, as after a crash; the recovery mode decides which rows may be missing. A MANIFEST
//! may too: a record that the file ends in is what a crash leaves, so a state the database once had is legal.
//!
//! By default a sample of all bytes is damaged; `OUTCROP_DAMAGE=all` takes every byte.

use crate::harness::{Rng, creating, seed};
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Files of a database: names and contents.
pub type Files = BTreeMap<String, Vec<u8>>;
/// (column family, key) to value.
pub type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

const MODES: [WalRecoveryMode; 4] = [
    WalRecoveryMode::AbsoluteConsistency,
    WalRecoveryMode::TolerateCorruptedTailRecords,
    WalRecoveryMode::PointInTimeRecovery,
    WalRecoveryMode::SkipAnyCorruptedRecords,
];
/// Longest that one damaged database may take; far beyond what a slow machine needs.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A bit of the byte at this offset.
    Flip(usize, u8),
    /// The byte at this offset becomes zero.
    Zero(usize),
    /// This many bytes are left.
    Truncate(usize),
    /// This many bytes follow.
    Append(usize),
    Delete,
}

impl Damage {
    /// The file's new contents, if it is still there.
    fn apply(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        match self {
            Damage::Flip(at, mask) => bytes[at] ^= mask,
            Damage::Zero(at) => bytes[at] = 0,
            Damage::Truncate(len) => bytes.truncate(len),
            Damage::Append(len) => bytes.extend((0..len).map(|i| (i * 37 + 11) as u8)),
            Damage::Delete => return None,
        }
        Some(bytes)
    }

    /// All damages of a file of `len` bytes, about `sample` of them by byte unless all were asked for.
    fn all(len: usize, sample: usize, rng: &mut Rng) -> Vec<Damage> {
        let exhaustive = std::env::var("OUTCROP_DAMAGE").is_ok_and(|value| value == "all");
        let stride = if exhaustive { 1 } else { (len / sample).max(1) };
        let mut damages = vec![Damage::Delete, Damage::Append(1), Damage::Append(7), Damage::Append(4096)];
        let mut at = rng.below(stride as u64) as usize;
        while at < len {
            damages.push(Damage::Flip(at, 1 << rng.below(8)));
            match rng.below(if exhaustive { 1 } else { 3 }) {
                0 => damages.extend([Damage::Zero(at), Damage::Truncate(at)]),
                1 => damages.push(Damage::Zero(at)),
                _ => damages.push(Damage::Truncate(at)),
            }
            // Not a plain stride: formats repeat with periods of their own.
            at += 1 + rng.below(2 * stride as u64 - 1) as usize;
        }
        damages
    }
}

/// A database in files, and what is legal to be read from it.
struct Case {
    files: Files,
    families: Vec<String>,
    rows: Rows,
    /// Every value a key ever had.
    values: BTreeMap<(String, Vec<u8>), BTreeSet<Vec<u8>>>,
    /// The rows after each write, from the oldest that only tables hold.
    states: Vec<Rows>,
}

fn read_files(fs: &MemoryFs) -> Files {
    let named = |(path, _): (std::path::PathBuf, usize)| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let contents = fs.read_all(&path).unwrap();
        (name, contents)
    };
    let wanted = |name: &str| name != "LOCK" && !name.starts_with("LOG");
    fs.files().into_iter().map(named).filter(|(name, _)| wanted(name)).collect()
}

fn write_files(files: &Files) -> MemoryFs {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).unwrap();
    for (name, contents) in files {
        let mut file = fs.create(&Path::new("/db").join(name), OpenWrite::default()).unwrap();
        file.append(contents).unwrap();
        file.close().unwrap();
    }
    fs
}

fn options() -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        disable_auto_compactions: true,
        ..ColumnFamilyOptions::default()
    };
    options.table.block_size = 256;
    options.table.filter_policy = FilterPolicy::Bloom { bits_per_key: 10.0 };
    options
}

fn descriptors(families: &[String]) -> Vec<ColumnFamilyDescriptor> {
    let describe = |name: &String| crate::harness::descriptor(name, &options());
    families.iter().map(describe).collect()
}

fn open(files: &Files, families: &[String], mode: WalRecoveryMode) -> Result<Db> {
    let env = Env::with_file_system(Arc::new(write_files(files)));
    let options = DbOptions { create_if_missing: false, wal_recovery_mode: mode, ..DbOptions::default() };
    Db::builder("/db").options(options).env(env).column_families(descriptors(families)).open()
}

/// Asked about every row that is shown, also before an error ends a scan: each must be true.
pub type Allowed<'a> = &'a dyn Fn(&str, &[u8], &[u8]) -> bool;

/// Every row, by forward scan, by backward scan and by get, which must agree.
pub fn read(
    db: &Db,
    families: &[String],
    keys: &BTreeSet<(String, Vec<u8>)>,
    allowed: Allowed<'_>,
) -> Result<Rows> {
    let rows = scan(db, families, allowed);
    let shown = rows.as_ref().map(|rows| rows.keys().cloned().collect::<BTreeSet<_>>()).unwrap_or_default();
    for (name, key) in keys.iter().chain(&shown) {
        let cf = db.column_family(name).expect("it was opened");
        let got = db.get_cf(&cf, key)?;
        match &rows {
            Ok(rows) => {
                let scanned = rows.get(&(name.clone(), key.clone()));
                assert_eq!(got.as_deref(), scanned.map(Vec::as_slice), "get and scan");
            }
            Err(_) => assert!(got.is_none_or(|got| allowed(name, key, &got)), "get gives a wrong value"),
        }
    }
    rows
}

/// Every row, by forward and backward scan.
fn scan(db: &Db, families: &[String], allowed: Allowed<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    for name in families {
        let cf = db.column_family(name).expect("it was opened");
        let mut iter = db.cursor_cf(&cf)?;
        let check = |iter: &Cursor| {
            let (key, value) = (iter.key(), iter.value());
            assert!(allowed(name, key, value), "a wrong row is shown: {key:?}");
        };
        let mut last: Option<Vec<u8>> = None;
        iter.seek_to_first();
        while iter.valid() {
            check(&iter);
            assert!(last.as_deref().is_none_or(|last| last < iter.key()), "keys ascend");
            last = Some(iter.key().to_vec());
            rows.insert((name.clone(), iter.key().to_vec()), iter.value().to_vec());
            iter.next();
        }
        let forwards = iter.status();
        let mut backward = Vec::new();
        iter.seek_to_last();
        while iter.valid() {
            check(&iter);
            backward.push(((name.clone(), iter.key().to_vec()), iter.value().to_vec()));
            iter.prev();
        }
        let backwards = iter.status();
        zigzag(&mut iter, check);
        iter.status().and(forwards).and(backwards)?;
        backward.reverse();
        let forward: Vec<_> = rows.iter().filter(|((family, _), _)| family == name).collect();
        assert!(forward.into_iter().eq(backward.iter().map(|(key, value)| (key, value))), "both ways agree");
    }
    Ok(rows)
}

/// Three steps on, two back, and so on: wherever a source fails, the iterator may be about to turn.
fn zigzag(iter: &mut Cursor, check: impl Fn(&Cursor)) {
    iter.seek_to_first();
    for step in 0.. {
        if !iter.valid() {
            return;
        }
        check(iter);
        if step % 5 < 3 { iter.next() } else { iter.prev() }
    }
}

/// A database with tables on several levels, a MANIFEST of several edits, and two WALs with unflushed writes in
/// two column families.
fn build() -> Case {
    // WALs whose every byte is a record's.
    build_with(DbOptions { allow_fallocate: false, ..creating() })
}

fn build_with(options: DbOptions) -> Case {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let families = vec!["default".to_string(), "two".to_string()];
    let db =
        Db::builder("/db").options(options).env(env).column_families(descriptors(&families)).open().unwrap();
    let handles: Vec<ColumnFamilyHandle> =
        families.iter().map(|name| db.column_family(name).unwrap()).collect();
    let mut case = Case {
        files: Files::new(),
        families: families.clone(),
        rows: Rows::new(),
        values: BTreeMap::new(),
        states: Vec::new(),
    };
    let mut rng = Rng::new(5);
    for i in 0..220u64 {
        let family = (rng.below(3) == 0) as usize;
        let key = format!("key{:03}", rng.below(60)).into_bytes();
        let place = (families[family].clone(), key.clone());
        if i % 9 == 8 {
            db.delete_cf(&handles[family], &key).unwrap();
            case.rows.remove(&place);
        } else {
            let value = format!("{i:04}-{}", "v".repeat(rng.below(40) as usize)).into_bytes();
            db.put_cf(&handles[family], &key, &value).unwrap();
            case.values.entry(place.clone()).or_default().insert(value.clone());
            case.rows.insert(place, value);
        }
        if i == 60 || i == 120 {
            db.flush_cfs(&handles, Wait::UntilDone).unwrap();
            if i == 60 {
                db.compact_range_cf_with(&handles[0], None, None, &BottommostLevelCompaction::Force.into())
                    .unwrap();
            }
            case.states.clear();
        }
        if i == 170 {
            // The WAL so far stays, for the other column family.
            db.flush_cfs(&handles[..1], Wait::UntilDone).unwrap();
        }
        case.states.push(case.rows.clone());
    }
    drop(handles);
    drop(db);
    case.files = read_files(&fs);
    case
}

/// The results of a damage that are legal besides an error that names the file and the undamaged rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Legal {
    /// Nothing.
    Nothing,
    /// The rows as they were after some write.
    Prefix,
    /// For each key a value it had, or none.
    Subset,
}

/// Where the records of a log start; it has one block and whole records only, and perhaps a mark after them.
pub fn records(log: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at + 7 <= log.len() && (header_len(log, at) == 7 || log[at + 7..at + 11] == log[7..11]) {
        starts.push(at);
        at += header_len(log, at) + usize::from(u16::from_le_bytes([log[at + 4], log[at + 5]]));
    }
    starts
}

/// Length of the record header at `at`: with the log's number in it or not.
fn header_len(log: &[u8], at: usize) -> usize {
    if matches!(log[at + 6], 5..=8) { 11 } else { 7 }
}

fn manifest_of(files: &Files) -> &str {
    files.keys().find(|name| name.starts_with("MANIFEST")).expect("there is one")
}

fn legal(files: &Files, name: &str, damage: Damage, mode: WalRecoveryMode) -> Legal {
    if name.starts_with("MANIFEST") {
        // An end that a crash can leave is no damage: the record the file ends in, and all before it if it
        // is cut off.
        let last = *records(&files[name]).last().expect("it has edits");
        return match damage {
            Damage::Flip(at, _) | Damage::Zero(at) if at < last => Legal::Nothing,
            Damage::Append(_) => Legal::Nothing,
            _ => Legal::Subset,
        };
    }
    if !name.ends_with(".log") {
        return Legal::Nothing;
    }
    let last_wal = files.keys().rfind(|name| name.ends_with(".log")).map_or("", String::as_str);
    // Nothing says how long a WAL was: one that ends between two records, or is gone, was shorter.
    let shortened = matches!(damage, Damage::Truncate(_) | Damage::Delete);
    match mode {
        WalRecoveryMode::SkipAnyCorruptedRecords => Legal::Subset,
        _ if shortened && name != last_wal => Legal::Subset,
        WalRecoveryMode::AbsoluteConsistency if !shortened => Legal::Nothing,
        WalRecoveryMode::TolerateCorruptedTailRecords if name != last_wal => Legal::Subset,
        _ => Legal::Prefix,
    }
}

/// Opens the damaged database and judges the result: true if it was an error.
fn check(case: &Case, name: &str, damage: Damage, mode: WalRecoveryMode) -> bool {
    let mut files = case.files.clone();
    match damage.apply(&case.files[name]) {
        Some(contents) => drop(files.insert(name.to_string(), contents)),
        None => drop(files.remove(name)),
    }
    let keys: BTreeSet<_> = case.values.keys().cloned().collect();
    let strict = legal(&case.files, name, damage, mode) == Legal::Nothing;
    let allowed = |family: &str, key: &[u8], value: &[u8]| {
        let place = (family.to_string(), key.to_vec());
        match strict {
            true => case.rows.get(&place).is_some_and(|row| row == value),
            false => case.values.get(&place).is_some_and(|values| values.contains(value)),
        }
    };
    let outcome =
        open(&files, &case.families, mode).and_then(|db| read(&db, &case.families, &keys, &allowed));
    let rows = match outcome {
        Ok(rows) => rows,
        Err(error) => {
            let text = error.to_string();
            // A CURRENT that decodes to another name leads to that file, which is missing.
            let followed = name == "CURRENT" && text.contains("MANIFEST-");
            // A MANIFEST that lost its end is of a time when other tables and column families were there.
            let older = name.starts_with("MANIFEST")
                && legal(&case.files, name, damage, mode) == Legal::Subset
                && (text.contains(".sst") || text.contains("column family"));
            // Without CURRENT there is no database, which is said of its directory.
            let none = name == "CURRENT" && matches!(damage, Damage::Delete) && text.contains("/db");
            assert!(
                text.contains(name) || followed || older || none,
                "the error does not name {name}: {text}"
            );
            return true;
        }
    };
    if rows == case.rows {
        return false;
    }
    let allowed = match legal(&case.files, name, damage, mode) {
        Legal::Nothing => false,
        Legal::Prefix => case.states.contains(&rows),
        Legal::Subset => rows
            .iter()
            .all(|(place, value)| case.values.get(place).is_some_and(|values| values.contains(value))),
    };
    assert!(allowed, "wrong rows: {} rows, not {}", rows.len(), case.rows.len());
    false
}

/// Runs `work` and fails if it panics, or goes without a word for too long. It says what it is about to do.
fn watched(work: impl FnOnce(&dyn Fn(String)) + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || work(&|what| drop(sender.send(what))));
    let mut last = String::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(what) => last = what,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs: {last}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    worker.join().unwrap_or_else(|_| panic!("at {last}"));
}

/// Damages every file whose name `wanted` accepts.
fn damage_files(case: Case, test: &'static str, default_seed: u64, sample: usize, wanted: fn(&str) -> bool) {
    let mut rng = Rng::new(seed(test, default_seed));
    watched(move |say| {
        let (mut errors, mut runs) = (0, 0);
        let names: Vec<String> = case.files.keys().filter(|name| wanted(name)).cloned().collect();
        assert!(!names.is_empty());
        for name in names {
            let modes = if name.ends_with(".log") { &MODES[..] } else { &MODES[2..3] };
            for damage in Damage::all(case.files[&name].len(), sample, &mut rng) {
                for mode in modes {
                    say(format!("{name}: {damage:?}, {mode:?}"));
                    errors += usize::from(check(&case, &name, damage, *mode));
                    runs += 1;
                }
            }
        }
        println!("{test}: {runs} damaged databases, {errors} refused");
        assert!(runs > 0 && (errors > 0 || test == "damaged notes"));
    });
}

#[test]
fn the_database_has_every_kind_of_file_and_reads_as_written() {
    let case = build();
    let count = |of: fn(&str) -> bool| case.files.keys().filter(|name| of(name)).count();
    assert!(count(|name| name.ends_with(".sst")) >= 4, "{:?}", case.files.keys());
    assert_eq!(count(|name| name.ends_with(".log")), 2, "{:?}", case.files.keys());
    for kind in ["CURRENT", "IDENTITY", "MANIFEST-", "OPTIONS-"] {
        assert!(case.files.keys().any(|name| name.starts_with(kind)), "{kind}");
    }
    assert!(records(&case.files[manifest_of(&case.files)]).len() >= 5, "edits");
    for mode in MODES {
        let db = open(&case.files, &case.families, mode).unwrap();
        assert_eq!(
            read(&db, &case.families, &BTreeSet::new(), &|_, _, _| true).unwrap(),
            case.rows,
            "{mode:?}"
        );
    }
}

#[test]
fn damaged_tables_are_noticed() {
    damage_files(build(), "damaged tables", 11, 60, |name| name.ends_with(".sst"));
}

#[test]
fn damaged_manifests_and_their_names_are_noticed() {
    let wanted = |name: &str| name.starts_with("MANIFEST") || name == "CURRENT";
    damage_files(build(), "damaged manifests", 12, 500, wanted);
}

#[test]
fn files_that_are_only_notes_change_nothing() {
    let wanted = |name: &str| name.starts_with("OPTIONS") || name == "IDENTITY";
    damage_files(build(), "damaged notes", 13, 20, wanted);
}

#[test]
fn damaged_wals_give_what_the_recovery_mode_promises() {
    damage_files(build(), "damaged wals", 14, 120, |name| name.ends_with(".log"));
}

/// Contents of WAL and MANIFEST that nobody wrote, under checksums that match: any error, no panic. A MANIFEST
/// that lies about where a table begins and ends makes get and scan differ, so only scans are made.
#[test]
fn forged_records_never_panic() {
    let mut rng = Rng::new(seed("forged records", 15));
    watched(move |say| {
        forge_records(build(), &mut rng, say);
        forge_records(build_with(creating()), &mut rng, say);
    });
}

fn forge_records(case: Case, rng: &mut Rng, say: &dyn Fn(String)) {
    let mut panics = Vec::new();
    for (name, original) in &case.files {
        let wal = name.ends_with(".log");
        if !wal && !name.starts_with("MANIFEST") {
            continue;
        }
        for start in records(original) {
            for _ in 0..if wal { 4 } else { 25 } {
                let (forged, what) = forge(original, start, rng);
                say(format!("{name}: {what}"));
                let mut files = case.files.clone();
                files.insert(name.clone(), forged);
                let run = || {
                    let _ = open(&files, &case.families, WalRecoveryMode::PointInTimeRecovery)
                        .and_then(|db| scan(&db, &case.families, &|_, _, _| true));
                };
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                    panics.push(format!("{name}: {what}"));
                }
            }
        }
    }
    assert!(panics.is_empty(), "{panics:#?}");
}

/// Changes a few bytes of the record at `start`, and its checksum; says what it did.
fn forge(original: &[u8], start: usize, rng: &mut Rng) -> (Vec<u8>, String) {
    let mut log = original.to_vec();
    let len = usize::from(u16::from_le_bytes([log[start + 4], log[start + 5]]));
    // Numbers stand at the front of both kinds of records; edges break more than bits do.
    let within = if rng.one_in(2) { len.min(12) } else { len };
    let (at, width) = (rng.below(within as u64) as usize, rng.pick(&[1, 1, 4, 8]));
    let byte = rng.pick(&[0, 1, 0x7F, 0x80, 0xFF]);
    let body = start + header_len(&log, start);
    log[body + at..body + len.min(at + width)].fill(byte);
    let crc = outcrop_base::checksum::crc32c(&log[start + 6..body + len]);
    log[start..start + 4].copy_from_slice(&outcrop_base::checksum::mask(crc).to_le_bytes());
    (log, format!("record at {start}, {width} bytes at {at} become {byte:#x}"))
}

/// Databases that RocksDB wrote. Which writes led to them is not known here; which rows they hold is.
#[test]
fn damaged_databases_of_rocksdb_are_noticed() {
    let mut rng = Rng::new(seed("damaged databases of RocksDB", 16));
    watched(move |say| {
        for database in [
            "6.29.5-basic",
            "11.8.1-basic-unflushed",
            "11.8.1-fv7-lz4",
            "11.8.1-partitioned",
            "11.8.1-range-del",
        ] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(database);
            let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
            let files: Files = entries
                .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
                .collect();
            let families = vec!["default".to_string()];
            let mode = WalRecoveryMode::AbsoluteConsistency;
            let rows = open(&files, &families, mode).unwrap();
            let rows = read(&rows, &families, &BTreeSet::new(), &|_, _, _| true).unwrap();
            let keys = rows.keys().cloned().collect();
            for (name, original) in files.iter().filter(|(name, _)| !name.starts_with("OPTIONS")) {
                for damage in Damage::all(original.len(), 40, &mut rng) {
                    say(format!("{database}/{name}: {damage:?}"));
                    let mut damaged = files.clone();
                    match damage.apply(original) {
                        Some(contents) => drop(damaged.insert(name.clone(), contents)),
                        None => drop(damaged.remove(name)),
                    }
                    // A WAL or MANIFEST that is cut off may show an older value.
                    let older = name.ends_with(".log") || name.starts_with("MANIFEST");
                    let allowed = |family: &str, key: &[u8], value: &[u8]| {
                        let row = rows.get(&(family.to_string(), key.to_vec()));
                        older || row.is_some_and(|row| row == value)
                    };
                    let outcome =
                        open(&damaged, &families, mode).and_then(|db| read(&db, &families, &keys, &allowed));
                    let cut = matches!(damage, Damage::Truncate(_) | Damage::Delete);
                    match outcome {
                        // A log that ends early may be one that was never longer.
                        Ok(_) if cut && (name.ends_with(".log") || name.starts_with("MANIFEST")) => {}
                        Ok(read) if name.starts_with("MANIFEST") && read.is_empty() => {
                            // The only edit that adds a table is the last.
                            assert!(matches!(damage, Damage::Flip(at, _) | Damage::Zero(at)
                                if at >= *records(original).last().unwrap()));
                        }
                        Ok(read) => assert_eq!(read, rows, "{database}/{name}: {damage:?}"),
                        Err(error) => {
                            let text = error.to_string();
                            let named = text.contains(name.as_str()) || name == "CURRENT" || cut;
                            assert!(named, "the error does not name {name}: {text}");
                        }
                    }
                }
            }
        }
    });
}
