//! Properties beside RocksDB's: the same keys in the same texts after the same operations, and the same numbers where both
//! write the same.

use crate::library::{Bytes, Errptr, Object, c_functions, outcrop_library, reference_libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_enable_statistics: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_get_default_column_family_handle: fn(Object) -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_delete_range_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_create_snapshot: fn(Object) -> Object;
    rocksdb_release_snapshot: fn(Object, Object);
    rocksdb_property_value: fn(Object, Bytes) -> *mut c_char;
    rocksdb_property_value_cf: fn(Object, Object, Bytes) -> *mut c_char;
    rocksdb_property_int: fn(Object, Bytes, *mut u64) -> c_int;
    rocksdb_property_int_cf: fn(Object, Object, Bytes, *mut u64) -> c_int;
    rocksdb_free: fn(*mut c_void);
}

/// Both say the same, to the last digit.
const EQUAL: [&str; 15] = [
    "num-blob-files",
    "blob-stats",
    "total-blob-file-size",
    "live-blob-file-size",
    "live-blob-file-garbage-size",
    "obsolete-sst-files-size",
    "min-obsolete-sst-number-to-keep",
    "db-write-stall-stats",
    "num-snapshots",
    "aggregated-table-properties-at-level7",
    "aggregated-table-properties-at-level",
    "aggregated-table-properties-at-levelx",
    "compression-ratio-at-level9",
    "compression-ratio-at-level",
    "no-such-property",
];

/// Both say so, with numbers of their own.
const ALIKE: [&str; 19] = [
    "cfstats",
    "cfstats-no-file-histogram",
    "dbstats",
    "stats",
    "sstables",
    "levelstats",
    "cf-write-stall-stats",
    "cf-file-histogram",
    "options-statistics",
    "aggregated-table-properties",
    "aggregated-table-properties-at-level0",
    "aggregated-table-properties-at-level6",
    "block-cache-entry-stats",
    "fast-block-cache-entry-stats",
    "oldest-snapshot-time",
    "current-super-version-number",
    "compression-ratio-at-level0",
    "compression-ratio-at-level6",
    "total-sst-files-size",
];

/// Numbers of tables that both write alike.
const TABLE_NUMBERS: [&str; 6] = [
    "# entries",
    "# deletions",
    "# merge operands",
    "# range deletions",
    "raw key size",
    "raw average key size",
];

/// A text and a number, as the C API gives them.
type Answer = (Option<String>, Option<u64>);

struct Session<'a> {
    api: &'a Api,
    db: Object,
    write: Object,
}

impl Session<'_> {
    fn call(&self, call: impl FnOnce(Errptr)) {
        let mut error = null_mut();
        call(&raw mut error);
        // SAFETY: null or a NUL-terminated message.
        assert!(error.is_null(), "{}", unsafe { CStr::from_ptr(error) }.to_string_lossy());
    }

    fn ask(&self, name: &str) -> Answer {
        let name = CString::new(format!("rocksdb.{name}")).unwrap();
        let name = name.as_ptr();
        // SAFETY: live objects and a NUL-terminated name; texts are malloc'ed.
        unsafe {
            let family = (self.api.rocksdb_get_default_column_family_handle)(self.db);
            let text = |value: *mut c_char| {
                (!value.is_null()).then(|| {
                    let text = CStr::from_ptr(value).to_string_lossy().into_owned();
                    (self.api.rocksdb_free)(value.cast());
                    text
                })
            };
            let (mut number, mut of_family) = (0, 0);
            let found = (self.api.rocksdb_property_int)(self.db, name, &raw mut number) == 0;
            let also = (self.api.rocksdb_property_int_cf)(self.db, family, name, &raw mut of_family) == 0;
            assert_eq!((found, number), (also, of_family));
            let value = text((self.api.rocksdb_property_value)(self.db, name));
            let also = text((self.api.rocksdb_property_value_cf)(self.db, family, name));
            assert_eq!(value.as_deref().map(lines), also.as_deref().map(lines));
            (value, found.then_some(number))
        }
    }

    /// Small values and values for blob files under 60 keys, some of them deleted.
    fn fill(&self, round: usize) {
        for row in 0..50 {
            let key = format!("k{:05}", row + round * 10);
            let (key, len) = (key.as_ptr().cast(), key.len());
            let value = vec![b'x'; if row % 2 == 0 { 50 } else { 300 }];
            let value = (value.as_ptr().cast(), value.len());
            // SAFETY: live objects and slices.
            self.call(|e| unsafe {
                (self.api.rocksdb_put)(self.db, self.write, key, len, value.0, value.1, e)
            });
        }
        // SAFETY: live objects and slices.
        unsafe {
            self.call(|e| (self.api.rocksdb_delete)(self.db, self.write, c"k00007".as_ptr(), 6, e));
            let family = (self.api.rocksdb_get_default_column_family_handle)(self.db);
            let (begin, end) = (c"k00020".as_ptr(), c"k00022".as_ptr());
            self.call(|e| {
                (self.api.rocksdb_delete_range_cf)(self.db, self.write, family, begin, 6, end, 6, e)
            });
            let options = (self.api.rocksdb_flushoptions_create)();
            self.call(|e| (self.api.rocksdb_flush)(self.db, options, e));
        }
        self.wait_until_quiet();
    }

    /// The number of a property that may be changing: `ask` asks twice.
    fn number(&self, name: &CStr) -> u64 {
        let mut number = 0;
        // SAFETY: a live database and a NUL-terminated name.
        let found = unsafe { (self.api.rocksdb_property_int)(self.db, name.as_ptr(), &raw mut number) };
        assert_eq!(found, 0, "{name:?}");
        number
    }

    /// Returns when obsolete files are gone and one version is left.
    fn wait_until_quiet(&self) {
        while self.number(c"rocksdb.obsolete-sst-files-size") != 0
            || self.number(c"rocksdb.num-live-versions") != 1
        {
            std::thread::yield_now();
        }
    }
}

/// Digits, and what is no number of either engine, left out: names remain.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for part in text.split_inclusive([' ', '=', ';', '(', ',', ')']) {
        let number = part.starts_with(|c: char| c.is_ascii_digit() || c == '-') || part.contains('@');
        shape += if number { "#" } else { part };
    }
    shape
}

/// Lines without their numbers, and without what one of the engines leaves out: the cache, which RocksDB looks at from time to
/// time only, and times of file reads.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_histogram = false;
    for line in text.lines() {
        is_histogram = line.starts_with("** File Read") || is_histogram && !line.starts_with("** DB Stats");
        if !is_histogram && !line.starts_with("Block cache ") {
            lines.push(without_numbers(line));
        }
    }
    lines
}

/// Digits are `#`, and spaces in a row are one: columns are as wide as what is in them.
fn without_numbers(line: &str) -> String {
    let mut plain = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if !(plain.ends_with(c) && matches!(c, '#' | ' ' | '-')) {
            plain.push(c);
        }
    }
    plain
}

/// Texts of many lines, compared one by one.
const BY_LINES: [&str; 6] =
    ["cfstats", "cfstats-no-file-histogram", "dbstats", "stats", "sstables", "levelstats"];

/// The rows of an aggregate that both must have.
fn table_numbers(text: &str) -> Vec<(String, Option<String>)> {
    let row = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        // Which key form an index has, each engine says by itself.
        let name = name.split("(user-key?").next().unwrap_or_default();
        (name.to_string(), TABLE_NUMBERS.contains(&name).then(|| value.to_string()))
    };
    text.split("; ").map(row).collect()
}

fn played(library: &Path, statistics: bool) -> Vec<(String, Answer)> {
    let api = Api::load(library);
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
    let mut error = null_mut();
    // SAFETY: live objects and a NUL-terminated path.
    let session = unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_compression)(options, 0);
        (api.rocksdb_options_set_enable_blob_files)(options, 1);
        (api.rocksdb_options_set_min_blob_size)(options, 100);
        if statistics {
            (api.rocksdb_options_enable_statistics)(options);
        }
        let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
        assert!(error.is_null());
        Session { api: &api, db, write: (api.rocksdb_writeoptions_create)() }
    };
    let mut told = Vec::new();
    let mut snapshot = null_mut();
    for round in 0..4 {
        let names = EQUAL.iter().chain(&ALIKE);
        told.extend(names.map(|name| (format!("round {round}: {name}"), session.ask(name))));
        session.fill(round);
        // SAFETY: live objects.
        unsafe {
            match round {
                1 => (api.rocksdb_compact_range)(session.db, null(), 0, null(), 0),
                2 => snapshot = (api.rocksdb_create_snapshot)(session.db),
                _ => {}
            }
        }
        session.wait_until_quiet();
    }
    // SAFETY: nobody uses them any more.
    unsafe {
        (api.rocksdb_release_snapshot)(session.db, snapshot);
        (api.rocksdb_close)(session.db);
    }
    told
}

#[test]
fn properties_are_those_of_rocksdb() {
    for (version, path) in reference_libraries().into_iter().filter(|(version, _)| version.starts_with("11."))
    {
        for statistics in [false, true] {
            let (ours, theirs) = (played(&outcrop_library(), statistics), played(&path, statistics));
            assert_eq!(ours.len(), theirs.len());
            for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
                let what = format!("{name}, RocksDB {version}\n{ours:?}\n{theirs:?}");
                let property = name.split(": ").nth(1).unwrap();
                assert_eq!(ours.1.is_some(), theirs.1.is_some(), "{what}");
                match (&ours.0, &theirs.0) {
                    _ if EQUAL.contains(&property) => assert_eq!(ours, theirs, "{what}"),
                    (Some(ours), Some(theirs)) if property.starts_with("aggregated") => {
                        assert_eq!(table_numbers(ours), table_numbers(theirs), "{what}");
                    }
                    // Reads of files are not timed here: there is the header, and no level.
                    (Some(ours), Some(theirs)) if property == "cf-file-histogram" => {
                        assert_eq!(
                            ours.as_str(),
                            theirs.split_inclusive('\n').take(2).collect::<String>(),
                            "{what}"
                        );
                    }
                    // The statistics each engine keeps are its own; lines have one form.
                    (Some(ours), Some(_)) if property == "options-statistics" => {
                        assert!(ours.lines().all(|line| line.contains(" COUNT : ")), "{what}");
                    }
                    (Some(ours), Some(theirs)) if property.ends_with("block-cache-entry-stats") => {
                        let head = |text: &str| shape(text.split("portion):").next().unwrap());
                        let head = |text: &str| head(&text.replace("Outcrop@", "AutoHyperClockCache@"));
                        assert_eq!(head(ours), head(theirs), "{what}");
                    }
                    (Some(ours), Some(theirs)) if BY_LINES.contains(&property) => {
                        assert_eq!(lines(ours), lines(theirs), "{what}");
                    }
                    (Some(ours), Some(theirs)) => assert_eq!(shape(ours), shape(theirs), "{what}"),
                    (ours, theirs) => assert_eq!(ours, theirs, "{what}"),
                }
            }
            let number = |name: &str| {
                let found = ours.iter().find(|(known, _)| known == name);
                found.and_then(|(_, answer)| answer.1).unwrap()
            };
            assert_eq!(number("round 0: oldest-snapshot-time"), 0);
            assert!(number("round 3: oldest-snapshot-time") > 1_700_000_000);
            assert!(
                number("round 3: current-super-version-number")
                    > number("round 0: current-super-version-number")
            );
        }
    }
}
