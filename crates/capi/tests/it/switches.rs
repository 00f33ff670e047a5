//! Limits, callbacks and switches that somebody sets for a reason, beside RocksDB: the same calls, and what can be noticed of them.

mod blob_cache;

use crate::library::{
    Bytes, Errptr, Object, c_functions, error_of, libraries, outcrop_library, reference, succeeding,
};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null;

c_functions! {
    rocksdb_free: fn(*mut c_void);
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_enable_statistics: fn(Object);
    rocksdb_options_set_avoid_flush_during_recovery: fn(Object, c_uchar);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_options_statistics_get_ticker_count: fn(Object, u32) -> u64;
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_blob_cache: fn(Object, Object);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_block_cache: fn(Object, Object);
    rocksdb_cache_create_lru: fn(size_t) -> Object;
    rocksdb_cache_get_usage: fn(Object) -> size_t;
    rocksdb_cache_get_occupancy_count: fn(Object) -> size_t;
    rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_property_int: fn(Object, Bytes, *mut u64) -> c_int;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_readoptions_set_pin_data: fn(Object, c_uchar);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_destroy: fn(Object);
    rocksdb_compactoptions_create: fn() -> Object;
    rocksdb_compactoptions_set_bottommost_level_compaction: fn(Object, c_uchar);
    rocksdb_compactoptions_set_blob_garbage_collection_policy: fn(Object, c_int);
    rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff: fn(Object, f64);
    rocksdb_compact_range_opt: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_size_approximation_options_create: fn() -> Object;
    rocksdb_size_approximation_options_set_include_files: fn(Object, c_uchar);
    rocksdb_size_approximation_options_set_include_blob_files: fn(Object, c_uchar);
    rocksdb_approximate_sizes_with_options: fn(Object, Object, c_int, *const Bytes, *const size_t, *const Bytes, *const size_t, *mut u64, Errptr);
    rocksdb_get_default_column_family_handle: fn(Object) -> Object;
    rocksdb_delete_range_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
}

/// An open database of a library. Its options and other objects are left to the process: tests are short.
struct Session<'a> {
    api: &'a Api,
    options: Object,
    db: Object,
}

impl<'a> Session<'a> {
    /// Opens with statistics, without compression and automatic compactions, and with what `change` sets.
    fn open(api: &'a Api, path: &Path, change: impl FnOnce(&Api, Object)) -> Session<'a> {
        // SAFETY: live objects of the library.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_compression)(options, 0);
            (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
            (api.rocksdb_options_enable_statistics)(options);
            change(api, options);
            Session { api, options, db: open(api, options, path) }
        }
    }

    fn ticker(&self, number: u32) -> u64 {
        // SAFETY: live options.
        unsafe { (self.api.rocksdb_options_statistics_get_ticker_count)(self.options, number) }
    }

    fn property(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: a live database.
        let found = unsafe { (self.api.rocksdb_property_int)(self.db, name.as_ptr(), &raw mut value) };
        (found == 0).then_some(value)
    }

    fn put(&self, key: &str, value: &[u8]) {
        // SAFETY: a live database and live slices.
        succeeding(self.api.rocksdb_free, |error| unsafe {
            let write = (self.api.rocksdb_writeoptions_create)();
            let (key, key_len) = (key.as_ptr().cast(), key.len());
            (self.api.rocksdb_put)(self.db, write, key, key_len, value.as_ptr().cast(), value.len(), error);
        });
    }

    /// The value of `key`, or the error.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let mut found = None;
        // SAFETY: a live database; the value is malloc'ed.
        let error = error_of(self.api.rocksdb_free, |error| unsafe {
            let read = (self.api.rocksdb_readoptions_create)();
            let mut len = 0;
            let value =
                (self.api.rocksdb_get)(self.db, read, key.as_ptr().cast(), key.len(), &raw mut len, error);
            if !value.is_null() {
                found = Some(std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec());
                (self.api.rocksdb_free)(value.cast());
            }
        });
        if error.is_empty() { Ok(found) } else { Err(error) }
    }

    fn flush(&self) {
        // SAFETY: a live database.
        succeeding(self.api.rocksdb_free, |error| unsafe {
            (self.api.rocksdb_flush)(self.db, (self.api.rocksdb_flushoptions_create)(), error);
        });
    }

    fn compact(&self) {
        // SAFETY: a live database.
        unsafe { (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0) }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: a live database, used no more.
        unsafe { (self.api.rocksdb_close)(self.db) }
    }
}

fn open(api: &Api, options: Object, path: &Path) -> Object {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: live options.
    succeeding(api.rocksdb_free, |error| unsafe { (api.rocksdb_open)(options, path.as_ptr(), error) })
}

/// Changes `options` as a string says.
fn set(api: &Api, options: Object, string: &CStr) {
    // SAFETY: live options, which may be both of them.
    succeeding(api.rocksdb_free, |error| unsafe {
        (api.rocksdb_get_options_from_string)(options, string.as_ptr(), options, error);
    });
}

/// Bytes of tables, and entries of the memtable.
const WHERE_ROWS_ARE: [&CStr; 2] = [c"rocksdb.live-sst-files-size", c"rocksdb.num-entries-active-mem-table"];

#[test]
fn recovery_leaves_rows_in_memory_if_it_is_told_to() {
    let found = Api::same_on_both(|api, path| {
        let open = |avoid: u8, buffer: size_t| {
            // SAFETY: live options.
            Session::open(api, path, |api, options| unsafe {
                (api.rocksdb_options_set_avoid_flush_during_recovery)(options, avoid);
                (api.rocksdb_options_set_write_buffer_size)(options, buffer);
            })
        };
        let mut steps = Vec::new();
        // The fourth time the memtable is smaller than the rows: they are flushed.
        let buffers = [64 << 20, 64 << 20, 64 << 20, 64 << 10];
        for (opening, buffer) in buffers.into_iter().enumerate() {
            let session = open(1, buffer);
            let [tables, entries] = WHERE_ROWS_ARE.map(|name| session.property(name).unwrap());
            steps.push((tables > 0, entries));
            let rows = |opening: usize| (0..100).map(move |row| format!("{opening} {row}"));
            for key in (0..opening).flat_map(rows) {
                assert_eq!(session.get(&key).unwrap().as_deref(), Some(&[7; 1000][..]), "{key}");
            }
            rows(opening).for_each(|key| session.put(&key, &[7; 1000]));
        }
        let session = open(0, 64 << 20);
        steps.push((
            session.property(WHERE_ROWS_ARE[0]) > Some(0),
            session.property(WHERE_ROWS_ARE[1]).unwrap(),
        ));
        steps
    });
    assert_eq!(found, [(false, 0), (false, 100), (false, 200), (true, 0), (true, 0)]);
}

/// The shares of blob files that manual compactions are to collect, RocksDB's numbers of the policy before them.
const COLLECTIONS: [(c_int, f64); 5] = [(2, 1.0), (1, 1.0), (0, -1.0), (0, 1.0), (0, 0.0)];

#[test]
fn a_manual_compaction_collects_blob_files_if_it_is_told_to() {
    Api::same_on_both(|api, path| {
        let session = Session::open(api, path, |api, options| {
            set(api, options, c"enable_blob_files=true;min_blob_size=100")
        });
        COLLECTIONS.map(|(policy, share)| {
            (0..100).for_each(|row| session.put(&format!("key{row}"), &[7; 1000]));
            session.flush();
            (0..100).step_by(4).for_each(|row| session.put(&format!("key{row}"), b""));
            session.flush();
            // SAFETY: live objects.
            unsafe {
                let options = (api.rocksdb_compactoptions_create)();
                (api.rocksdb_compactoptions_set_bottommost_level_compaction)(options, 2);
                (api.rocksdb_compactoptions_set_blob_garbage_collection_policy)(options, policy);
                (api.rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff)(options, share);
                (api.rocksdb_compact_range_opt)(session.db, options, null(), 0, null(), 0);
            }
            [
                c"rocksdb.num-blob-files",
                c"rocksdb.live-blob-file-size",
                c"rocksdb.live-blob-file-garbage-size",
            ]
            .map(|name| session.property(name))
        })
    });
}

#[test]
fn sizes_of_ranges_count_blob_files_if_they_are_told_to() {
    for (name, library) in libraries() {
        let api = std::mem::ManuallyDrop::new(Api::load(&library));
        let dir = tempfile::tempdir().unwrap();
        let session = Session::open(&api, &dir.path().join("db"), |api, options| {
            set(api, options, c"enable_blob_files=true;min_blob_size=100");
        });
        (0..10_000).for_each(|row| session.put(&format!("key{row:05}"), &[7; 120]));
        session.flush();
        let sizes = |files: u8, blobs: u8| {
            let (starts, limits) = ([c"key00000", c"key02500"], [c"key99999", c"key05000"]);
            let (starts, limits) = (starts.map(CStr::as_ptr), limits.map(CStr::as_ptr));
            let mut sizes = [0; 2];
            // SAFETY: live objects, and as many keys as it says.
            succeeding(api.rocksdb_free, |error| unsafe {
                let options = (api.rocksdb_size_approximation_options_create)();
                (api.rocksdb_size_approximation_options_set_include_files)(options, files);
                (api.rocksdb_size_approximation_options_set_include_blob_files)(options, blobs);
                let (starts, limits) = (starts.as_ptr(), limits.as_ptr());
                let lens = [8; 2].as_ptr();
                let sizes = sizes.as_mut_ptr();
                (api.rocksdb_approximate_sizes_with_options)(
                    session.db, options, 2, starts, lens, limits, lens, sizes, error,
                );
            });
            sizes
        };
        let (tables, both, blobs) = (sizes(1, 0), sizes(1, 1), sizes(0, 1));
        let all = session.property(c"rocksdb.total-blob-file-size").unwrap();
        assert_eq!(both[0] - tables[0], all, "{name}");
        assert_eq!([0, 1].map(|at| both[at] - tables[at]), blobs, "{name}");
        assert!(blobs[1] > all / 5 && blobs[1] < all * 3 / 10, "{name}: {blobs:?} of {all}");
    }
}

#[test]
fn a_memtable_is_flushed_after_so_many_range_deletions() {
    let _ = Api::same_on_both(|api, path| {
        let session =
            Session::open(api, path, |api, options| set(api, options, c"memtable_max_range_deletions=3"));
        // A memtable is sealed before the next write: it shows in the number of entries, however busy flushes are.
        let entries = || session.property(c"rocksdb.num-entries-active-mem-table").unwrap();
        let written: Vec<[u64; 2]> = (0..11)
            .map(|row| {
                let begin = format!("key{row:02}");
                // SAFETY: live objects and slices.
                succeeding(api.rocksdb_free, |error| unsafe {
                    let family = (api.rocksdb_get_default_column_family_handle)(session.db);
                    let write = (api.rocksdb_writeoptions_create)();
                    let (key, len) = (begin.as_ptr().cast(), begin.len());
                    (api.rocksdb_delete_range_cf)(
                        session.db,
                        write,
                        family,
                        key,
                        len,
                        c"kez".as_ptr(),
                        3,
                        error,
                    );
                });
                let deleted = entries();
                session.put(&begin, b"value");
                [deleted, entries()]
            })
            .collect();
        assert_eq!(written[..3], [[1, 2], [3, 4], [5, 1]]);
        (written, session.get("key03"), session.get("key10"))
    });
}

#[test]
fn a_database_with_rocksdbs_history_of_statistics_opens_by_its_other_families() {
    let Some(reference) = reference() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let [theirs, ours] =
        [reference, outcrop_library()].map(|path| std::mem::ManuallyDrop::new(Api::load(&path)));
    let persisting = |api: &Api, options| set(api, options, c"persist_stats_to_disk=true");
    Session::open(&theirs, &path, persisting).put("key", b"value");
    for change in [persisting, |_: &Api, _| {}] {
        let session = Session::open(&ours, &path, change);
        assert_eq!(session.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        session.put("other", b"row");
        session.compact();
    }
    let session = Session::open(&theirs, &path, persisting);
    assert_eq!(session.get("other").unwrap().as_deref(), Some(&b"row"[..]));
}

#[test]
fn keys_of_an_iterator_that_pins_its_data_stay_where_they_are() {
    Api::same_on_both(|api, path| {
        let session = Session::open(api, path, |api, options| {
            // Where each key is written out, RocksDB promises it too.
            set(api, options, c"block_based_table_factory={use_delta_encoding=false;block_size=200}");
        });
        (0..500).for_each(|row| session.put(&format!("key{row:03}"), b"value"));
        session.flush();
        // SAFETY: live objects; keys are read before the iterator is destroyed.
        unsafe {
            let read = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_pin_data)(read, 1);
            let iter = (api.rocksdb_create_iterator)(session.db, read);
            let mut keys = Vec::new();
            (api.rocksdb_iter_seek_to_first)(iter);
            while (api.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                keys.push(((api.rocksdb_iter_key)(iter, &raw mut len).cast::<u8>(), len));
                (api.rocksdb_iter_next)(iter);
            }
            let keys: Vec<Vec<u8>> =
                keys.into_iter().map(|(key, len)| std::slice::from_raw_parts(key, len).to_vec()).collect();
            (api.rocksdb_iter_destroy)(iter);
            assert!((0..500).all(|row| keys[row] == format!("key{row:03}").as_bytes()));
            keys.len()
        }
    });
}

#[test]
fn tables_name_the_host_that_is_set() {
    Api::same_on_both(|api, path| {
        let session = Session::open(api, path, |api, options| set(api, options, c"db_host_id=rack-7"));
        session.put("key", b"value");
        session.flush();
        let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let table = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "sst")).unwrap();
        let bytes = std::fs::read(table).unwrap();
        assert!(bytes.windows(6).any(|window| window == b"rack-7"));
    });
}
