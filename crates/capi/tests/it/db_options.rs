//! `rocksdb_set_db_options` beside RocksDB's: every name of its options of the database, with good and bad values; the texts of errors and what
//! the OPTIONS file says afterwards.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference};
use libc::{c_char, c_int, c_uchar, c_void};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_set_db_options: fn(Object, c_int, *const Bytes, *const Bytes, Errptr);
    rocksdb_free: fn(*mut c_void);
}

struct Side {
    name: String,
    api: Api,
    dir: tempfile::TempDir,
    db: Object,
}

impl Side {
    fn open(name: &str, library: &Path) -> Side {
        let (api, dir) = (Api::load(library), tempfile::tempdir().unwrap());
        let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: objects of the library, here and below.
        let db = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_open)(options, path.as_ptr(), &mut error)
        };
        assert!(error.is_null());
        Side { name: name.to_string(), api, dir, db }
    }

    fn set(&self, pairs: &[(&str, &str)]) -> String {
        let texts: Vec<(CString, CString)> =
            pairs.iter().map(|(n, v)| (CString::new(*n).unwrap(), CString::new(*v).unwrap())).collect();
        let names: Vec<Bytes> = texts.iter().map(|(name, _)| name.as_ptr()).collect();
        let values: Vec<Bytes> = texts.iter().map(|(_, value)| value.as_ptr()).collect();
        let (names, values) =
            if pairs.is_empty() { (null(), null()) } else { (names.as_ptr(), values.as_ptr()) };
        let mut error: *mut c_char = null_mut();
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            (self.api.rocksdb_set_db_options)(self.db, pairs.len() as c_int, names, values, &mut error);
            error_text(error, self.api.rocksdb_free).unwrap_or_default()
        }
    }

    /// Options of the database in the newest OPTIONS file.
    fn written(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.dir.path().join("db")).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
        let newest = files.filter(|path| name(path).starts_with("OPTIONS-")).max_by_key(name).unwrap();
        let text = std::fs::read_to_string(newest).unwrap();
        let section = text.split("[DBOptions]").nth(1).unwrap().split("[CFOptions").next().unwrap();
        let pairs = section.lines().filter_map(|line| line.trim().split_once('='));
        // RocksDB escapes colons, and reads them either way.
        pairs.map(|(name, value)| (name.to_string(), value.replace('\\', ""))).collect()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: objects and texts of the library, used while they live.
        unsafe { (self.api.rocksdb_close)(self.db) }
    }
}

fn sides() -> Option<(Side, Side)> {
    Some((Side::open("outcrop", &outcrop_library()), Side::open("11.8.1", &reference()?)))
}

/// The options that can change: a value that is not the default, and how OPTIONS has it.
const MUTABLE: [(&str, &str); 25] = [
    ("avoid_flush_during_shutdown", "true"),
    ("bytes_per_sync", "2097152"),
    ("compaction_readahead_size", "65536"),
    ("daily_offpeak_time_utc", "10:00-11:00"),
    ("delayed_write_rate", "1048576"),
    ("delete_obsolete_files_period_micros", "1000000"),
    ("fast_sst_open", "true"),
    ("manifest_preallocation_size", "65536"),
    ("max_background_compactions", "3"),
    ("max_background_flushes", "2"),
    ("max_background_jobs", "7"),
    ("max_compaction_trigger_wakeup_seconds", "100"),
    ("max_manifest_file_size", "65536"),
    ("max_manifest_space_amp_pct", "100"),
    ("max_open_files", "100"),
    ("max_subcompactions", "3"),
    ("max_total_wal_size", "1048576"),
    ("optimize_manifest_for_recovery", "true"),
    ("stats_dump_period_sec", "7"),
    ("stats_history_buffer_size", "65536"),
    ("stats_persist_period_sec", "0"),
    ("strict_bytes_per_sync", "true"),
    ("verify_manifest_content_on_close", "true"),
    ("wal_bytes_per_sync", "65536"),
    ("writable_file_max_buffer_size", "65536"),
];

#[test]
fn the_same_options_change_and_the_file_says_so() {
    let Some((ours, theirs)) = sides() else { return };
    for (name, value) in MUTABLE {
        for side in [&ours, &theirs] {
            assert_eq!(side.set(&[(name, value)]), "", "{}: {name}", side.name);
        }
        let (written, expected) = (ours.written(), theirs.written());
        assert_eq!(written.get(name), expected.get(name), "{name}");
        assert!(written.contains_key(name), "{name}");
    }
    // Together, and with what follows from one.
    for side in [&ours, &theirs] {
        assert_eq!(side.set(&[("bytes_per_sync", "0"), ("max_background_jobs", "4")]), "", "{}", side.name);
        let written = side.written();
        assert_eq!(written["bytes_per_sync"], "1048576", "{}", side.name);
        assert_eq!(written["max_background_jobs"], "4", "{}", side.name);
    }
}

#[test]
fn what_cannot_change_is_refused_in_the_same_words() {
    let Some((ours, theirs)) = sides() else { return };
    let mut names: Vec<String> = theirs.written().into_keys().collect();
    names.retain(|name| !MUTABLE.iter().any(|(known, _)| known == name));
    assert!(names.len() > 60, "{names:?}");
    names.extend(["write_buffer_size", "no_such_option", ""].map(String::from));
    for name in &names {
        let value = theirs.written().get(name).cloned().unwrap_or_else(|| "1".to_string());
        assert_eq!(ours.set(&[(name, &value)]), theirs.set(&[(name, &value)]), "{name}");
    }
    assert_eq!(ours.set(&[]), theirs.set(&[]));
}

#[test]
fn a_bad_value_changes_nothing() {
    let Some((ours, theirs)) = sides() else { return };
    let class = |text: &str| text.split_once(": ").map(|(class, _)| class.to_string());
    for (name, value) in [
        ("max_open_files", "many"),
        ("stats_dump_period_sec", "-1"),
        ("max_total_wal_size", "18446744073709551616"),
        ("daily_offpeak_time_utc", "25:00-26:00"),
        ("daily_offpeak_time_utc", "10:00"),
        ("avoid_flush_during_shutdown", "perhaps"),
    ] {
        let before = ours.written();
        let pairs = [("max_background_jobs", "13"), (name, value)];
        let (own, other) = (ours.set(&pairs), theirs.set(&pairs));
        assert_eq!(class(&own), class(&other), "{name}={value}: {own} | {other}");
        assert!(!own.is_empty(), "{name}={value}");
        assert_eq!(ours.written(), before, "{name}={value}");
    }
}
