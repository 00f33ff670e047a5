//! The archive of WALs beside RocksDB's: what goes into it, what is read out of it, what leaves it, and directories handed over.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries};
use libc::{c_char, c_int, c_uchar, size_t};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::time::{Duration, SystemTime};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_WAL_ttl_seconds: fn(Object, u64);
    rocksdb_options_set_WAL_size_limit_MB: fn(Object, u64);
    rocksdb_options_get_WAL_ttl_seconds: fn(Object) -> u64;
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_get_updates_since: fn(Object, u64, Object, Errptr) -> Object;
    rocksdb_wal_iter_valid: fn(Object) -> c_uchar;
    rocksdb_wal_iter_next: fn(Object);
    rocksdb_wal_iter_status: fn(Object, Errptr);
    rocksdb_wal_iter_get_batch: fn(Object, *mut u64) -> Object;
    rocksdb_wal_iter_destroy: fn(Object);
    rocksdb_writebatch_count: fn(Object) -> c_int;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_get_sorted_wal_files: fn(Object, Errptr) -> Object;
    rocksdb_get_current_wal_file: fn(Object, Errptr) -> Object;
    rocksdb_wal_file_destroy: fn(Object);
    rocksdb_wal_files_destroy: fn(Object);
    rocksdb_wal_files_count: fn(Object) -> size_t;
    rocksdb_wal_files_get_wal_file: fn(Object, size_t) -> Object;
    rocksdb_wal_file_path_name: fn(Object) -> Bytes;
    rocksdb_wal_file_log_number: fn(Object) -> u64;
    rocksdb_wal_file_type: fn(Object) -> c_int;
    rocksdb_wal_file_start_sequence: fn(Object) -> u64;
    rocksdb_wal_file_size_file_bytes: fn(Object) -> u64;
    rocksdb_free: fn(*mut libc::c_void);
}

struct Session<'a> {
    api: &'a Api,
    dir: &'a Path,
    options: Object,
    db: Object,
}

impl<'a> Session<'a> {
    fn open(api: &'a Api, dir: &'a Path, ttl: u64, limit: u64) -> Session<'a> {
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_WAL_ttl_seconds)(options, ttl);
            (api.rocksdb_options_set_WAL_size_limit_MB)(options, limit);
            assert_eq!((api.rocksdb_options_get_WAL_ttl_seconds)(options), ttl);
            let mut session = Session { api, dir, options, db: null_mut() };
            session.db = session.call(|e| (api.rocksdb_open)(options, session.path().as_ptr(), e));
            session
        }
    }

    fn path(&self) -> CString {
        CString::new(self.dir.to_str().unwrap()).unwrap()
    }

    fn call<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        let mut error = null_mut();
        let given = call(&raw mut error);
        assert_eq!(self.text(error), "");
        given
    }

    fn text(&self, error: *mut c_char) -> String {
        // SAFETY: null, or a message of the library.
        unsafe { error_text(error, self.api.rocksdb_free) }.unwrap_or_default()
    }

    /// Writes a value of `len` bytes and flushes, so that the WAL is not needed any more; waits until it is archived.
    fn fill_one(&self, key: &str, len: usize) {
        let before = archived(self.dir).len();
        self.write(key, len);
        while archived(self.dir).len() == before {
            std::thread::yield_now();
        }
    }

    /// Writes a value of `len` bytes and flushes.
    fn write(&self, key: &str, len: usize) {
        let value = vec![b'v'; len];
        // SAFETY: live objects.
        unsafe {
            let write = (self.api.rocksdb_writeoptions_create)();
            let (k, v) = ((key.as_ptr().cast(), key.len()), (value.as_ptr().cast(), len));
            self.call(|e| (self.api.rocksdb_put)(self.db, write, k.0, k.1, v.0, v.1, e));
            self.call(|e| (self.api.rocksdb_flush)(self.db, (self.api.rocksdb_flushoptions_create)(), e));
        }
    }

    /// All since `seq`: number and count of each batch, and what ends them.
    fn since(&self, seq: u64) -> String {
        let (mut told, mut error) = (String::new(), null_mut());
        // SAFETY: live objects.
        unsafe {
            let iter = (self.api.rocksdb_get_updates_since)(self.db, seq, null_mut(), &raw mut error);
            if !error.is_null() {
                return self.text(error);
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
        told + " " + &self.text(error)
    }

    /// Kind, first number and whether there is something in each WAL file; numbers differ between the engines.
    fn files(&self) -> Vec<String> {
        // SAFETY: live objects.
        unsafe {
            let a = self.api;
            let files = self.call(|e| (a.rocksdb_get_sorted_wal_files)(self.db, e));
            let told = (0..(a.rocksdb_wal_files_count)(files)).map(|at| {
                let file = (a.rocksdb_wal_files_get_wal_file)(files, at);
                let path = CStr::from_ptr((a.rocksdb_wal_file_path_name)(file)).to_str().unwrap().to_string();
                let number = format!("{:06}", (a.rocksdb_wal_file_log_number)(file));
                let path = path.replace(&number, "N");
                format!(
                    "{path} {} {} {}",
                    (a.rocksdb_wal_file_type)(file),
                    (a.rocksdb_wal_file_start_sequence)(file),
                    (a.rocksdb_wal_file_size_file_bytes)(file) > 0
                )
            });
            let told = told.collect();
            (a.rocksdb_wal_files_destroy)(files);
            let current = self.call(|e| (a.rocksdb_get_current_wal_file)(self.db, e));
            assert_eq!((a.rocksdb_wal_file_type)(current), 1);
            (a.rocksdb_wal_file_destroy)(current);
            told
        }
    }

    fn close(self) {
        // SAFETY: live objects.
        unsafe {
            (self.api.rocksdb_close)(self.db);
            (self.api.rocksdb_options_destroy)(self.options);
        }
    }
}

/// The WALs in the archive, ascending.
fn archived(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("archive")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn obsolete_wals_are_archived_listed_and_read() {
    Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir, 10_000, 0);
        for key in ["a", "b", "c"] {
            session.fill_one(key, 10);
        }
        // SAFETY: live objects.
        unsafe {
            let write = (api.rocksdb_writeoptions_create)();
            session.call(|e| (api.rocksdb_put)(session.db, write, c"d".as_ptr(), 1, c"d".as_ptr(), 1, e));
        }
        let told: Vec<String> = (0..6).map(|seq| session.since(seq)).collect();
        assert_eq!(told[1], " 1+1 2+1 3+1 4+1 ");
        let files = session.files();
        session.close();
        // Entries of the WAL in use are recovered, and the WAL archived: nothing is lost to readers.
        let session = Session::open(api, dir, 10_000, 0);
        while archived(dir).len() < 4 {
            std::thread::yield_now();
        }
        let again = (session.since(1), archived(dir).len());
        session.close();
        // Without the option they stay, and are not read into the database.
        let session = Session::open(api, dir, 0, 0);
        let left = archived(dir).len();
        session.close();
        (told, files, again, left)
    });
}

#[test]
fn what_is_too_old_or_too_much_goes() {
    Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir, 10_000, 0);
        for key in ["a", "b", "c"] {
            session.fill_one(key, 600 << 10);
        }
        session.close();
        let files = archived(dir);
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
        std::fs::File::options().write(true).open(&files[0]).unwrap().set_modified(old).unwrap();
        let session = Session::open(api, dir, 10_000, 0);
        // A WAL that is archived has the archive looked through.
        session.write("d", 10);
        while files[0].exists() {
            std::thread::yield_now();
        }
        let after_ttl = (files[1].exists(), files[2].exists(), session.since(2));
        session.close();
        // Room for one of the largest: those of 600 KiB make way for the newest.
        let session = Session::open(api, dir, 0, 1);
        session.write("e", 10);
        while files[1].exists() || files[2].exists() {
            std::thread::yield_now();
        }
        let after_limit = session.since(5);
        session.close();
        (after_ttl, after_limit)
    });
}

#[test]
fn archives_are_handed_over() {
    let libraries = libraries();
    let [ours, theirs] = &libraries[..] else { return };
    for (first, second) in [(ours, theirs), (theirs, ours)] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("db");
        let (writer, reader) = (Api::load(&first.1), Api::load(&second.1));
        let session = Session::open(&writer, &dir, 10_000, 0);
        for key in ["a", "b", "c"] {
            session.fill_one(key, 10);
        }
        session.close();
        let session = Session::open(&reader, &dir, 10_000, 0);
        session.fill_one("d", 10);
        assert_eq!(session.since(1), " 1+1 2+1 3+1 4+1 ", "{first:?} then {second:?}");
        assert_eq!(session.since(3), " 3+1 4+1 ");
        session.close();
        std::mem::forget((writer, reader));
    }
}
