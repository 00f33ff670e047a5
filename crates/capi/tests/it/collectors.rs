//! Compaction on deletion and partitioned tables beside RocksDB's: the same rows, and the same tables afterwards.

use crate::library::{Bytes, Errptr, Object, c_functions};
use libc::{c_char, c_int, c_uchar, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_level_compaction_dynamic_level_bytes: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_add_compact_on_deletion_collector_factory: fn(Object, size_t, size_t);
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio: fn(Object, size_t, size_t, f64);
    rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size: fn(Object, size_t, size_t, f64, u64);
    rocksdb_sst_partitioner_fixed_prefix_factory_create: fn(size_t) -> Object;
    rocksdb_sst_partitioner_factory_destroy: fn(Object);
    rocksdb_options_set_sst_partitioner_factory: fn(Object, Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_level: fn(Object, c_int) -> c_int;
    rocksdb_livefiles_smallestkey: fn(Object, c_int, *mut size_t) -> Bytes;
    rocksdb_livefiles_largestkey: fn(Object, c_int, *mut size_t) -> Bytes;
    rocksdb_livefiles_destroy: fn(Object);
}

struct Session<'a> {
    api: &'a Api,
    db: Object,
}

impl<'a> Session<'a> {
    fn open(api: &'a Api, dir: &Path, configure: impl FnOnce(&Api, Object)) -> Session<'a> {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 0);
            configure(api, options);
            let mut session = Session { api, db: null_mut() };
            session.db = session.call(|e| (api.rocksdb_open)(options, path.as_ptr(), e));
            (api.rocksdb_options_destroy)(options);
            session
        }
    }

    fn call<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        let mut error: *mut c_char = null_mut();
        let given = call(&raw mut error);
        // SAFETY: null or a message.
        assert!(error.is_null(), "{:?}", unsafe { CStr::from_ptr(error) });
        given
    }

    fn put(&self, key: &str) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            let (key, len) = (key.as_ptr().cast(), key.len());
            (self.api.rocksdb_put)(self.db, (self.api.rocksdb_writeoptions_create)(), key, len, key, len, e);
        });
    }

    fn delete(&self, key: &str) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            let write = (self.api.rocksdb_writeoptions_create)();
            (self.api.rocksdb_delete)(self.db, write, key.as_ptr().cast(), key.len(), e);
        });
    }

    fn flush(&self) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            (self.api.rocksdb_flush)(self.db, (self.api.rocksdb_flushoptions_create)(), e);
        });
    }

    fn compact(&self) {
        // SAFETY: live objects.
        unsafe { (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0) };
    }

    fn wait_until_idle(&self) {
        // SAFETY: live objects.
        self.call(|e| unsafe {
            let options = (self.api.rocksdb_wait_for_compact_options_create)();
            (self.api.rocksdb_wait_for_compact)(self.db, options, e);
        });
    }

    /// Level, first and last key of each table.
    fn tables(&self) -> Vec<String> {
        // SAFETY: live objects.
        unsafe {
            let a = self.api;
            let files = (a.rocksdb_livefiles)(self.db);
            let key = |get: unsafe extern "C" fn(Object, c_int, *mut size_t) -> Bytes, at| {
                let mut len = 0;
                let key = get(files, at, &raw mut len);
                String::from_utf8_lossy(std::slice::from_raw_parts(key.cast::<u8>(), len)).into_owned()
            };
            let mut tables: Vec<String> = (0..(a.rocksdb_livefiles_count)(files))
                .map(|at| {
                    let level = (a.rocksdb_livefiles_level)(files, at);
                    let (first, last) =
                        (key(a.rocksdb_livefiles_smallestkey, at), key(a.rocksdb_livefiles_largestkey, at));
                    format!("L{level} {first}..{last}")
                })
                .collect();
            (a.rocksdb_livefiles_destroy)(files);
            tables.sort();
            tables
        }
    }

    fn close(self) {
        // SAFETY: a live database.
        unsafe { (self.api.rocksdb_close)(self.db) };
    }
}

/// The compactions of a table with `deletions` deletions between values, under collectors that `configure`
/// adds.
fn after_deletions(deletions: usize, configure: fn(&Api, Object)) -> Vec<String> {
    Api::same_on_both(|api, dir| {
        let session = Session::open(api, dir, configure);
        for key in ["a", "z"] {
            session.put(key);
        }
        session.flush();
        session.compact();
        session.put("b");
        (0..deletions).for_each(|number| session.delete(&format!("c{number:04}")));
        session.put("y");
        session.flush();
        session.wait_until_idle();
        let tables = session.tables();
        session.close();
        tables
    })
}

#[test]
fn deletions_that_stand_together_are_compacted() {
    // SAFETY: live options.
    let window: fn(&Api, Object) = |api, options| unsafe {
        (api.rocksdb_options_add_compact_on_deletion_collector_factory)(options, 128, 50)
    };
    assert_eq!(after_deletions(50, window), ["L1 a..z"]);
    assert_eq!(after_deletions(49, window), ["L0 b..y", "L1 a..z"]);
}

#[test]
fn a_share_of_deletions_is_compacted() {
    // SAFETY: live options.
    let ratio: fn(&Api, Object) = |api, options| unsafe {
        (api.rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio)(options, 0, 0, 0.5);
    };
    assert_eq!(after_deletions(2, ratio), ["L1 a..z"]);
    assert_eq!(after_deletions(1, ratio), ["L0 b..y", "L1 a..z"]);
}

#[test]
fn small_tables_are_left_alone() {
    // SAFETY: live options.
    let large: fn(&Api, Object) = |api, options| unsafe {
        (api.rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size)(
            options,
            128,
            5,
            0.1,
            1 << 20,
        );
    };
    assert_eq!(after_deletions(50, large), ["L0 b..y", "L1 a..z"]);
}

#[test]
fn tables_end_where_the_prefix_does() {
    let tables = Api::same_on_both(|api, dir| {
        // SAFETY: live objects.
        let session = Session::open(api, dir, |api, options| unsafe {
            let factory = (api.rocksdb_sst_partitioner_fixed_prefix_factory_create)(2);
            (api.rocksdb_options_set_sst_partitioner_factory)(options, factory);
            (api.rocksdb_sst_partitioner_factory_destroy)(factory);
            (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
        });
        for key in ["a", "aa1", "aa2", "ab", "abc", "b", "ba1", "ba2", "ca"] {
            session.put(key);
        }
        session.flush();
        let flushed = session.tables();
        session.compact();
        let tables = (flushed, session.tables());
        session.close();
        tables
    });
    assert_eq!(tables.0, ["L0 a..ca"]);
    assert_eq!(tables.1, ["L1 a..a", "L1 aa1..aa2", "L1 ab..abc", "L1 b..b", "L1 ba1..ba2", "L1 ca..ca"]);
}
