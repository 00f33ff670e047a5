//! Every name of RocksDB's option tables (`option_names.txt`, from `db_options.cc`, `cf_options.cc` and
//! `block_based_table_factory.cc` of 11.8.1) in option strings, in those of tables, and in `set_options`, beside RocksDB: with the
//! first value that it takes for the name, or that none is taken. Values, and what stands in the OPTIONS file afterwards, are the
//! subject of `cargo xtask options`; setters and getters of `settings.rs`.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference_libraries};
use libc::{c_char, c_int, c_uchar, c_void};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_set_options: fn(Object, c_int, *const Bytes, *const Bytes, Errptr);
    rocksdb_free: fn(*mut c_void);
}

/// Tried in this order: the first that RocksDB takes is compared.
const VALUES: [&str; 6] = ["nullptr", "true", "1", "kNoCompression", "{}", ""];

/// Options that RocksDB accepts and this engine refuses, and why.
const REFUSED: &[(&str, &str)] = &[
    ("block_based_table_factory=nullptr", "a table format there must be"),
    ("table_factory=nullptr", "a table format there must be"),
    ("set block_based_table_factory=true", "RocksDB takes the word for nothing"),
    ("memtable=nullptr", "a memtable there must be"),
    ("memtable_factory=nullptr", "a memtable there must be"),
    ("compaction_options_fifo=1", "a bare number, as versions before 5 wrote it"),
    ("set compaction_options_fifo=1", "a bare number, as versions before 5 wrote it"),
    ("set compression_manager=true", "RocksDB passes over names that it does not know"),
    ("set prefix_extractor=true", "RocksDB passes over names that it does not know"),
    ("env=true", "RocksDB passes over names that it does not know"),
    ("listeners=nullptr", "objects of the program come through functions"),
    ("table_properties_collectors=nullptr", "objects of the program come through functions"),
];

/// Settings that crash RocksDB.
const FATAL: &[&str] = &["env=nullptr", "set table_factory=true", "set table_factory=1"];

/// Those of an open database that it may not survive: objects are taken away from it.
fn is_fatal(setting: &str) -> bool {
    let of_open = setting.strip_prefix("set ").and_then(|pair| pair.split_once('='));
    FATAL.contains(&setting) || of_open.is_some_and(|(_, value)| !matches!(value, "true" | "1"))
}

/// Names of tables are known without the braces, too; and this one takes one number for all of them.
fn is_taken_on_purpose(setting: &str, of_tables: bool) -> bool {
    of_tables || setting.ends_with("blob_compression_opts=1")
}

struct Engine {
    api: Api,
    db: Object,
    _dir: tempfile::TempDir,
}

impl Engine {
    fn open(library: &Path) -> Engine {
        let (api, dir) = (Api::load(library), tempfile::tempdir().unwrap());
        let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: live objects and a NUL-terminated path.
        let db = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
            (api.rocksdb_options_destroy)(options);
            db
        };
        assert!(error.is_null());
        Engine { api, db, _dir: dir }
    }

    /// The error of a setting, if any: `name=value`, for a table `{name=value}`, of the open database `set name=value`.
    fn error(&self, setting: &str) -> Option<String> {
        let mut error: *mut c_char = null_mut();
        // SAFETY: live objects and NUL-terminated texts; the message is malloc'ed.
        unsafe {
            if let Some(pair) = setting.strip_prefix("set ") {
                let (name, value) = pair.split_once('=').unwrap();
                let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
                let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
                (self.api.rocksdb_set_options)(self.db, 1, names.as_ptr(), values.as_ptr(), &raw mut error);
            } else {
                let text = match setting.starts_with('{') {
                    true => format!("block_based_table_factory={setting}"),
                    false => setting.to_string(),
                };
                let text = CString::new(text).unwrap();
                let (base, made) = ((self.api.rocksdb_options_create)(), (self.api.rocksdb_options_create)());
                (self.api.rocksdb_get_options_from_string)(base, text.as_ptr(), made, &raw mut error);
                (self.api.rocksdb_options_destroy)(base);
                (self.api.rocksdb_options_destroy)(made);
            }
            error_text(error, self.api.rocksdb_free)
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.api.rocksdb_close)(self.db) };
    }
}

#[test]
fn names_that_rocksdb_takes_are_taken() {
    let newest = reference_libraries().into_iter().find(|(version, _)| version.starts_with("11."));
    let Some((_, library)) = newest else { return };
    let (ours, theirs) = (Engine::open(&outcrop_library()), Engine::open(&library));
    let (mut compared, mut wrong, mut unused) = (0, Vec::new(), REFUSED.to_vec());
    for name in include_str!("option_names.txt").lines() {
        let taken = |form: &dyn Fn(&str) -> String| {
            let settings = VALUES.map(form).into_iter().filter(|setting| !is_fatal(setting));
            settings.into_iter().find(|setting| theirs.error(setting).is_none())
        };
        let of_table = taken(&|value| format!("{{{name}={value}}}"));
        let (of_tables, found) = (
            of_table.is_some(),
            [
                of_table,
                taken(&|value| format!("{name}={value}")),
                taken(&|value| format!("set {name}={value}")),
            ],
        );
        for setting in found.iter().flatten() {
            compared += 1;
            let listed = unused.iter().position(|(refused, _)| refused == setting);
            match (ours.error(setting), listed) {
                (None, None) => {}
                (None, Some(_)) => wrong.push(format!("{setting} is taken: it leaves the list")),
                (Some(_), Some(at)) => drop(unused.swap_remove(at)),
                (Some(error), None) => wrong.push(format!("{setting}: {error}")),
            }
        }
        for (form, found) in [("", &found[1]), ("set ", &found[2])] {
            let settings = VALUES.map(|value| format!("{form}{name}={value}"));
            let ours = settings.iter().find(|setting| found.is_none() && ours.error(setting).is_none());
            wrong.extend(
                ours.filter(|setting| !is_taken_on_purpose(setting, of_tables) && !is_fatal(setting))
                    .map(|setting| format!("{setting} is taken, by RocksDB with no value")),
            );
        }
    }
    wrong.extend(unused.iter().map(|(refused, _)| format!("{refused} is in the list for nothing")));
    assert!(wrong.is_empty(), "{compared} compared: {wrong:#?}");
    assert!(compared > 300, "{compared}");
}
