//! `rocksdb_get_updates_since` beside RocksDB's: after each step of random scripts of batches, some of them past the WAL,
//! flushes and reopenings, everything since every number, to the error that ends it.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference_libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_count: fn(Object) -> c_int;
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_get_latest_sequence_number: fn(Object) -> u64;
    rocksdb_get_updates_since: fn(Object, u64, Object, Errptr) -> Object;
    rocksdb_wal_iter_valid: fn(Object) -> c_uchar;
    rocksdb_wal_iter_next: fn(Object);
    rocksdb_wal_iter_status: fn(Object, Errptr);
    rocksdb_wal_iter_get_batch: fn(Object, *mut u64) -> Object;
    rocksdb_wal_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Rows of one batch, and whether it is logged.
    Write(usize, bool),
    Flush,
    Reopen,
}

fn script(mut seed: u64) -> Vec<Step> {
    let mut next = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    };
    let step = |_| match next(10) {
        0..6 => Step::Write(1 + next(3) as usize, true),
        6..8 => Step::Write(1 + next(3) as usize, false),
        8 => Step::Flush,
        _ => Step::Reopen,
    };
    (0..16).map(step).collect()
}

struct Session<'a> {
    api: &'a Api,
    path: CString,
    db: Object,
    rows: usize,
}

impl<'a> Session<'a> {
    fn open(api: &'a Api, path: &Path) -> Session<'a> {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let mut session = Session { api, path, db: null_mut(), rows: 0 };
        session.db = session.reopened();
        session
    }

    fn reopened(&self) -> Object {
        let mut error = null_mut();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (self.api.rocksdb_options_create)();
            (self.api.rocksdb_options_set_create_if_missing)(options, 1);
            let db = (self.api.rocksdb_open)(options, self.path.as_ptr(), &raw mut error);
            assert_eq!(self.class(error), "");
            db
        }
    }

    /// The class of an error, empty if there is none.
    fn class(&self, error: *mut c_char) -> String {
        // SAFETY: null, or a message of the library.
        let text = unsafe { error_text(error, self.api.rocksdb_free) }.unwrap_or_default();
        text.split(": ").next().unwrap_or_default().to_string()
    }

    fn run(&mut self, step: Step) {
        let mut error = null_mut();
        // SAFETY: live objects and slices.
        unsafe {
            match step {
                Step::Write(rows, logged) => {
                    let options = (self.api.rocksdb_writeoptions_create)();
                    (self.api.rocksdb_writeoptions_disable_WAL)(options, c_int::from(!logged));
                    let batch = (self.api.rocksdb_writebatch_create)();
                    for _ in 0..rows {
                        let key = format!("{:04}", self.rows);
                        let (key, len) = (key.as_ptr().cast(), key.len());
                        (self.api.rocksdb_writebatch_put)(batch, key, len, key, len);
                        self.rows += 1;
                    }
                    (self.api.rocksdb_write)(self.db, options, batch, &raw mut error);
                    (self.api.rocksdb_writebatch_destroy)(batch);
                }
                Step::Flush => {
                    let options = (self.api.rocksdb_flushoptions_create)();
                    (self.api.rocksdb_flush)(self.db, options, &raw mut error);
                    // The WAL goes in the background.
                    while self.since(0) != " end" {
                        std::thread::yield_now();
                    }
                }
                Step::Reopen => {
                    (self.api.rocksdb_close)(self.db);
                    self.db = self.reopened();
                    while self.since(0) != " end" {
                        std::thread::yield_now();
                    }
                }
            }
        }
        assert_eq!(self.class(error), "", "{step:?}");
    }

    /// Batches since `seq`: number and rows of each, and what ends them.
    fn since(&self, seq: u64) -> String {
        let (mut told, mut error) = (String::new(), null_mut());
        // SAFETY: live objects; an iterator is not used after an error.
        unsafe {
            let iter = (self.api.rocksdb_get_updates_since)(self.db, seq, null_mut(), &raw mut error);
            if !error.is_null() {
                return format!(" no iterator: {}", self.class(error));
            }
            while (self.api.rocksdb_wal_iter_valid)(iter) != 0 {
                let mut first = 0;
                let batch = (self.api.rocksdb_wal_iter_get_batch)(iter, &raw mut first);
                told += &format!(" {first}+{}", (self.api.rocksdb_writebatch_count)(batch));
                (self.api.rocksdb_writebatch_destroy)(batch);
                (self.api.rocksdb_wal_iter_next)(iter);
            }
            (self.api.rocksdb_wal_iter_status)(iter, &raw mut error);
            (self.api.rocksdb_wal_iter_destroy)(iter);
        }
        let class = self.class(error);
        told + if class.is_empty() { " end" } else { " " } + &class
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.api.rocksdb_close)(self.db) }
    }
}

/// The report after each step.
fn played(api: &Api, script: &[Step]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::open(api, &dir.path().join("db"));
    let mut told = Vec::new();
    for (number, step) in script.iter().enumerate() {
        session.run(*step);
        // SAFETY: a live database.
        let last = unsafe { (api.rocksdb_get_latest_sequence_number)(session.db) };
        told.extend(
            (0..last + 3).map(|seq| format!("{number} {step:?}, since {seq}:{}", session.since(seq))),
        );
    }
    told
}

#[test]
fn updates_since_any_number_are_those_of_rocksdb() {
    let outcrop = Api::load(&outcrop_library());
    for seed in 1..=30 {
        let script = script(seed);
        let ours = played(&outcrop, &script);
        for (version, path) in
            reference_libraries().into_iter().filter(|(version, _)| version.starts_with("11."))
        {
            let theirs = played(&Api::load(&path), &script);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs, "RocksDB {version}, seed {seed}, {script:?}");
            }
            assert_eq!(ours.len(), theirs.len());
        }
    }
}
