//! Statistics and counters of the thread beside RocksDB's: one script of operations on both libraries.
//!
//! Exactly the same must be what the operations alone decide: keys and bytes read and written, where a get was decided, what
//! filters said, moves of iterators, syncs. Counters that depend on how an engine stores rows have a bound and a
//! reason in [`NEAR`].

use crate::library::{Bytes, Errptr, Lookups, Object, c_functions, outcrop_library, reference};
use libc::{c_char, c_double, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_paranoid_checks: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_filter_policy: fn(Object, Object);
    rocksdb_block_based_options_set_block_cache: fn(Object, Object);
    rocksdb_block_based_options_set_whole_key_filtering: fn(Object, c_uchar);
    rocksdb_slicetransform_create_fixed_prefix: fn(size_t) -> Object;
    rocksdb_options_set_prefix_extractor: fn(Object, Object);
    rocksdb_options_set_num_levels: fn(Object, c_int);
    rocksdb_options_set_memtable_max_range_deletions: fn(Object, u32);
    rocksdb_get_default_column_family_handle: fn(Object) -> Object;
    rocksdb_delete_range_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_readoptions_set_rate_limiter_priority: fn(Object, c_int);
    rocksdb_ratelimiter_create_with_mode: fn(i64, i64, c_int, c_int, bool) -> Object;
    rocksdb_block_based_options_set_no_block_cache: fn(Object, c_uchar);
    rocksdb_filterpolicy_create_bloom_full: fn(c_double) -> Object;
    rocksdb_cache_create_lru: fn(size_t) -> Object;
    rocksdb_options_enable_statistics: fn(Object);
    rocksdb_options_set_statistics_level: fn(Object, c_int);
    rocksdb_options_get_statistics_level: fn(Object) -> c_int;
    rocksdb_options_statistics_get_string: fn(Object) -> *mut c_char;
    rocksdb_options_statistics_get_ticker_count: fn(Object, u32) -> u64;
    rocksdb_options_statistics_get_histogram_data: fn(Object, u32, Object);
    rocksdb_statistics_histogram_data_create: fn() -> Object;
    rocksdb_statistics_histogram_data_destroy: fn(Object);
    rocksdb_statistics_histogram_data_get_median: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_p95: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_p99: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_average: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_std_dev: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_max: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_min: fn(Object) -> c_double;
    rocksdb_statistics_histogram_data_get_count: fn(Object) -> u64;
    rocksdb_statistics_histogram_data_get_sum: fn(Object) -> u64;
    rocksdb_set_perf_level: fn(c_int);
    rocksdb_perfcontext_create: fn() -> Object;
    rocksdb_perfcontext_reset: fn(Object);
    rocksdb_perfcontext_report: fn(Object, c_uchar) -> *mut c_char;
    rocksdb_perfcontext_metric: fn(Object, c_int) -> u64;
    rocksdb_perfcontext_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_set_sync: fn(Object, c_uchar);
    rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get: fn(Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_property_value: fn(Object, Bytes) -> *mut c_char;
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_options_set_atomic_flush: fn(Object, c_uchar);
    rocksdb_options_set_ratelimiter: fn(Object, Object);
    rocksdb_ratelimiter_create: fn(i64, i64, c_int) -> Object;
    rocksdb_merge: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_checkpoint_object_create: fn(Object, Errptr) -> Object;
    rocksdb_checkpoint_create: fn(Object, Bytes, u64, Errptr);
    rocksdb_backup_engine_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_backup_engine_create_new_backup: fn(Object, Object, Errptr);
    rocksdb_backup_engine_close: fn(Object);
    rocksdb_get_updates_since: fn(Object, u64, Object, Errptr) -> Object;
    rocksdb_wal_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

/// Tickers that are the same.
const EQUAL: [&str; 44] = [
    "number.keys.written",
    "number.keys.read",
    "number.keys.updated",
    "bytes.written",
    "bytes.read",
    "memtable.hit",
    "memtable.miss",
    "l0.hit",
    "l1.hit",
    "l2andup.hit",
    "bloom.filter.useful",
    "bloom.filter.full.positive",
    "bloom.filter.full.true.positive",
    "number.db.seek",
    "number.db.seek.found",
    "number.db.next",
    "number.db.next.found",
    "number.db.prev",
    "number.db.prev.found",
    "db.iter.bytes.read",
    "num.iterator.created",
    "num.iterator.deleted",
    "number.multiget.get",
    "number.multiget.keys.read",
    "number.multiget.keys.found",
    "number.multiget.bytes.read",
    "wal.synced",
    "wal.bytes",
    "write.self",
    "write.other",
    "write.wal",
    "stall.micros",
    "no.file.errors",
    "block.cache.add.failures",
    "block.cache.index.miss",
    "block.cache.index.hit",
    "block.cache.filter.miss",
    "block.cache.filter.hit",
    "compaction.key.drop.new",
    "compaction.key.drop.obsolete",
    "compaction.key.drop.range_del",
    "compaction.key.drop.user",
    "memtable.payload.bytes.at.flush",
    "memtable.garbage.bytes.at.flush",
];

/// Tickers that may differ by so many percent, and why.
const NEAR: [(&str, f64, &str); 11] = [
    (
        "block.cache.miss",
        50.0,
        "blocks are cut a few rows apart, and compactions read past the cache from the third block on",
    ),
    ("block.cache.hit", 20.0, "the same"),
    ("block.cache.add", 20.0, "the same"),
    ("block.cache.data.miss", 50.0, "the same"),
    ("block.cache.data.hit", 20.0, "the same"),
    ("block.cache.data.add", 20.0, "the same"),
    (
        "block.cache.bytes.read",
        25.0,
        "a frame has a directory, a block of RocksDB's has its allocator's overhead",
    ),
    ("block.cache.bytes.write", 25.0, "the same"),
    ("block.cache.data.bytes.insert", 25.0, "the same"),
    ("flush.write.bytes", 15.0, "properties of tables have texts of their own"),
    ("compact.write.bytes", 15.0, "as for flushes"),
];

/// Tickers of features that are the same.
const EQUAL_OF_FEATURES: [&str; 18] = [
    "checkpoint.read.bytes",
    "checkpoint.write.bytes",
    "atomic_flush.request.reason.other",
    "atomic_flush.request.reason.write_buffer_full",
    "atomic_flush.request.reason.write_buffer_manager",
    "number.merge.failures",
    "blobdb.blob.file.bytes.written",
    "blobdb.blob.file.synced",
    "number.rate_limiter.drains",
    "rate.limiter.bytes.read",
    "rate.limiter.requests.read",
    "rate.limiter.delayed.requests.write",
    "rate.limiter.total.wait.micros.write",
    "getupdatessince.calls",
    "flush.reason.write_buffer_full",
    "error.handler.bg.error.count",
    "number.block.compressed",
    "number.block_compression_rejected",
];

/// The same with a percentage, and why.
const NEAR_OF_FEATURES: [(&str, f64, &str); 6] = [
    ("rate.limiter.bytes.write", 20.0, "properties of tables have texts of their own"),
    ("backup.write.bytes", 20.0, "as have OPTIONS files and MANIFESTs"),
    ("backup.read.bytes", 60.0, "RocksDB reads tables once more before, for their checksums"),
    ("merge.operation.time.nanos", f64::MAX, "a time"),
    ("rate.limiter.requests.write", f64::MAX, "one for each write to a file, as large as buffers are"),
    ("bytes.compression_bypassed", 25.0, "blocks are cut a few rows apart"),
];

/// Histograms with the same number of values.
const COUNTED: [&str; 12] = [
    "db.get.micros",
    "db.write.micros",
    "db.multiget.micros",
    "db.seek.micros",
    "bytes.per.read",
    "bytes.per.write",
    "bytes.per.multiget",
    "numfiles.in.singlecompaction",
    "db.flush.micros",
    "compaction.times.micros",
    "wal.file.sync.micros",
    "db.write.stall",
];

/// Histograms that are the same in every figure: those of sizes, and empty ones.
const SAME: [&str; 5] = [
    "bytes.per.read",
    "bytes.per.write",
    "bytes.per.multiget",
    "numfiles.in.singlecompaction",
    "db.write.stall",
];

/// Counters of the thread that are the same, with their numbers in the C API.
const THREAD: [(&str, c_int); 10] = [
    ("get_read_bytes", 7),
    ("multiget_read_bytes", 8),
    ("iter_read_bytes", 9),
    ("internal_delete_skipped_count", 11),
    ("internal_recent_skipped_count", 12),
    ("get_from_memtable_count", 16),
    ("bloom_sst_hit_count", 44),
    ("bloom_sst_miss_count", 45),
    ("block_cache_index_hit_count", -1),
    ("block_cache_filter_hit_count", -1),
];

struct Session {
    api: Api,
    options: Object,
    db: Object,
    write: Object,
    read: Object,
    dir: tempfile::TempDir,
}

fn key(row: usize) -> String {
    format!("key{row:06}")
}

impl Session {
    fn open(library: &Path, level: c_int) -> Session {
        Session::open_with(library, level, |_, _, _| {})
    }

    /// With what `change` does to the options and those of tables.
    fn open_with(library: &Path, level: c_int, change: impl FnOnce(&Api, Object, Object)) -> Session {
        let api = Api::load(library);
        let dir = tempfile::tempdir().unwrap();
        let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
        let mut error = null_mut();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_compression)(options, 0);
            (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
            let table = (api.rocksdb_block_based_options_create)();
            let filter = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
            let cache = (api.rocksdb_cache_create_lru)(8 << 20);
            (api.rocksdb_block_based_options_set_block_cache)(table, cache);
            change(&api, options, table);
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            (api.rocksdb_options_enable_statistics)(options);
            assert_eq!((api.rocksdb_options_get_statistics_level)(options), 3);
            (api.rocksdb_options_set_statistics_level)(options, level);
            assert_eq!((api.rocksdb_options_get_statistics_level)(options), level);
            let db = (api.rocksdb_open)(options, path.as_ptr(), &raw mut error);
            assert!(error.is_null());
            let write = (api.rocksdb_writeoptions_create)();
            let read = (api.rocksdb_readoptions_create)();
            Session { api, options, db, write, read, dir }
        }
    }

    fn call(&self, call: impl FnOnce(&Api, Errptr)) {
        let mut error = null_mut();
        call(&self.api, &raw mut error);
        // SAFETY: null or a NUL-terminated message.
        assert!(error.is_null(), "{}", unsafe { CStr::from_ptr(error) }.to_string_lossy());
    }

    fn put(&self, write: Object, row: usize, value: &[u8]) {
        let key = key(row);
        // SAFETY: live objects and slices.
        self.call(|api, error| unsafe {
            let value = (value.as_ptr().cast(), value.len());
            (api.rocksdb_put)(self.db, write, key.as_ptr().cast(), key.len(), value.0, value.1, error);
        });
    }

    fn get(&self, row: usize) {
        self.get_key(&key(row));
    }

    fn get_key(&self, key: &str) {
        let mut len = 0;
        // SAFETY: live objects and slices; the value is malloc'ed.
        self.call(|api, error| unsafe {
            let value =
                (api.rocksdb_get)(self.db, self.read, key.as_ptr().cast(), key.len(), &raw mut len, error);
            (api.rocksdb_free)(value.cast());
        });
    }

    fn flush(&self) {
        // SAFETY: live objects.
        self.call(|api, error| unsafe {
            (api.rocksdb_flush)(self.db, (api.rocksdb_flushoptions_create)(), error);
        });
    }

    fn multi_get(&self, rows: impl Iterator<Item = usize>) {
        let keys: Vec<String> = rows.map(key).collect();
        let mut of = Lookups::of(&keys);
        // SAFETY: arrays of so many; values are malloc'ed.
        unsafe {
            (self.api.rocksdb_multi_get)(
                self.db,
                self.read,
                keys.len(),
                of.keys.as_ptr(),
                of.lens.as_ptr(),
                of.values.as_mut_ptr(),
                of.value_lens.as_mut_ptr(),
                of.errors.as_mut_ptr(),
            );
            of.values.into_iter().for_each(|value| (self.api.rocksdb_free)(value.cast()));
        }
    }

    fn scan(&self) {
        let (from, absent) = (key(200), key(1) + "5");
        // SAFETY: live objects and slices.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db, self.read);
            (self.api.rocksdb_iter_seek)(iter, from.as_ptr().cast(), from.len());
            (0..60).for_each(|_| (self.api.rocksdb_iter_next)(iter));
            (0..20).for_each(|_| (self.api.rocksdb_iter_prev)(iter));
            (self.api.rocksdb_iter_seek_for_prev)(iter, absent.as_ptr().cast(), absent.len());
            (self.api.rocksdb_iter_seek_to_first)(iter);
            (self.api.rocksdb_iter_seek_to_last)(iter);
            (self.api.rocksdb_iter_next)(iter);
            assert_eq!((self.api.rocksdb_iter_valid)(iter), 0);
            (self.api.rocksdb_iter_seek)(iter, c"zzz".as_ptr(), 3);
            (self.api.rocksdb_iter_destroy)(iter);
        }
    }

    /// Reads rows that are there, rows that are not, and rows that were deleted.
    fn read_all(&self) {
        (0..500).step_by(3).for_each(|row| self.get(row));
        // Absent ones lie between others: RocksDB asks the filters of L0 about all keys, this engine about those in its range.
        (0..400).step_by(2).for_each(|row| self.get_key(&(key(row) + "5")));
        self.multi_get((0..500).step_by(25));
        self.scan();
    }

    fn play(&self) {
        // SAFETY: live objects and slices.
        unsafe {
            let unlogged = (self.api.rocksdb_writeoptions_create)();
            (self.api.rocksdb_writeoptions_disable_WAL)(unlogged, 1);
            let synced = (self.api.rocksdb_writeoptions_create)();
            (self.api.rocksdb_writeoptions_set_sync)(synced, 1);
            for row in 0..500 {
                self.put(if row % 50 == 7 { unlogged } else { self.write }, row, &[b'v'; 120][..row % 120]);
            }
            self.put(synced, 500, b"synced");
            self.read_all();
            self.flush();
            self.read_all();
            let batch = (self.api.rocksdb_writebatch_create)();
            for row in (100..110).chain([0, 500]) {
                let key = key(row);
                (self.api.rocksdb_writebatch_put)(batch, key.as_ptr().cast(), key.len(), c"new".as_ptr(), 3);
            }
            self.call(|api, error| (api.rocksdb_write)(self.db, self.write, batch, error));
            for row in 210..216 {
                let key = key(row);
                self.call(|api, error| {
                    (api.rocksdb_delete)(self.db, self.write, key.as_ptr().cast(), key.len(), error)
                });
            }
            self.read_all();
            self.flush();
            self.read_all();
            (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0);
            self.read_all();
        }
    }

    /// Merges, blob files, atomic flushes, a checkpoint and a backup.
    fn play_features(&self) {
        let path = |name: &str| CString::new(self.dir.path().join(name).to_str().unwrap()).unwrap();
        let operand = 7_u64.to_le_bytes();
        let merge = |row: usize| {
            let key = key(row);
            // SAFETY: live objects and slices.
            self.call(|api, error| unsafe {
                let key = (key.as_ptr().cast(), key.len());
                let operand = (operand.as_ptr().cast(), operand.len());
                (api.rocksdb_merge)(self.db, self.write, key.0, key.1, operand.0, operand.1, error);
            });
        };
        for row in 0..2000 {
            self.put(self.write, row, &[b'v'; 200]);
        }
        for row in 2000..2050 {
            self.put(self.write, row, &[b'b'; 3000]);
        }
        (0..4).for_each(|_| merge(3000));
        self.put(self.write, 3001, &operand);
        (0..2).for_each(|_| merge(3001));
        let read = || {
            (3000..3002).for_each(|row| self.get(row));
            self.multi_get(3000..3002);
            self.scan_from(3000);
        };
        read();
        self.flush();
        read();
        merge(3000);
        read();
        self.flush();
        for row in 0..2000 {
            self.put(self.write, row, &[b'w'; 200]);
        }
        // SAFETY: live objects, and names that end with NUL.
        unsafe {
            let checkpoint = path("checkpoint");
            self.call(|api, error| {
                let object = (api.rocksdb_checkpoint_object_create)(self.db, error);
                (api.rocksdb_checkpoint_create)(object, checkpoint.as_ptr(), u64::MAX, error);
            });
            let backups = path("backups");
            self.call(|api, error| {
                let engine = (api.rocksdb_backup_engine_open)(self.options, backups.as_ptr(), error);
                (api.rocksdb_backup_engine_create_new_backup)(engine, self.db, error);
                (api.rocksdb_backup_engine_close)(engine);
            });
            self.call(|api, error| {
                let updates = (api.rocksdb_get_updates_since)(self.db, 1, null_mut(), error);
                (api.rocksdb_wal_iter_destroy)(updates);
            });
        }
    }

    /// Two rows from `row` on.
    fn scan_from(&self, row: usize) {
        let key = key(row);
        // SAFETY: live objects and slices.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db, self.read);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            (self.api.rocksdb_iter_next)(iter);
            (self.api.rocksdb_iter_destroy)(iter);
        }
    }

    /// One seek, of an iterator that is made for it.
    fn seek(&self, row: usize) {
        let key = key(row);
        // SAFETY: live objects and slices.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db, self.read);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            (self.api.rocksdb_iter_destroy)(iter);
        }
    }

    fn text(&self, text: *mut c_char) -> String {
        // SAFETY: a malloc'ed text.
        unsafe {
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.rocksdb_free)(text.cast());
            copy
        }
    }

    fn statistics(&self) -> String {
        // SAFETY: live options and database.
        let text = || self.text(unsafe { (self.api.rocksdb_options_statistics_get_string)(self.options) });
        let property = || {
            let name = c"rocksdb.options-statistics";
            // SAFETY: a live database.
            self.text(unsafe { (self.api.rocksdb_property_value)(self.db, name.as_ptr()) })
        };
        // A job that is over for those who waited for it may still count what it cleans up.
        let (mut before, mut between, mut after) = (text(), property(), text());
        while before != after {
            (before, between, after) = (after, property(), text());
        }
        assert_eq!(between, before);
        between
    }

    /// The nine figures of a histogram.
    fn histogram(&self, number: u32) -> Vec<f64> {
        let api = &self.api;
        // SAFETY: live objects.
        unsafe {
            let data = (api.rocksdb_statistics_histogram_data_create)();
            (api.rocksdb_options_statistics_get_histogram_data)(self.options, number, data);
            let figures = vec![
                (api.rocksdb_statistics_histogram_data_get_median)(data),
                (api.rocksdb_statistics_histogram_data_get_p95)(data),
                (api.rocksdb_statistics_histogram_data_get_p99)(data),
                (api.rocksdb_statistics_histogram_data_get_average)(data),
                (api.rocksdb_statistics_histogram_data_get_std_dev)(data),
                (api.rocksdb_statistics_histogram_data_get_max)(data),
                (api.rocksdb_statistics_histogram_data_get_min)(data),
                (api.rocksdb_statistics_histogram_data_get_count)(data) as f64,
                (api.rocksdb_statistics_histogram_data_get_sum)(data) as f64,
            ];
            (api.rocksdb_statistics_histogram_data_destroy)(data);
            figures
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.api.rocksdb_close)(self.db) }
    }
}

/// Each line's name, and its number after "COUNT :".
fn counts(text: &str) -> Vec<(String, u64)> {
    let count = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        let count = rest.split_once("COUNT : ").unwrap().1.split(' ').next().unwrap();
        (name.trim_start_matches("rocksdb.").to_string(), count.parse().unwrap())
    };
    text.lines().map(count).collect()
}

/// Both libraries: this one, and RocksDB 11.8.1 if it is there.
fn judged() -> Option<[std::path::PathBuf; 2]> {
    Some([outcrop_library(), reference()?])
}

#[test]
fn tickers_and_histograms_count_what_rocksdb_counts() {
    let Some(libraries) = judged() else { return };
    let sessions = libraries.map(|library| Session::open(&library, 3));
    sessions.iter().for_each(Session::play);
    let texts = sessions.each_ref().map(|session| session.statistics());
    let shape = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.chars().filter(|c| !c.is_ascii_digit()).collect()).collect()
    };
    // Digits are in names too: these are compared below.
    assert_eq!(shape(&texts[0]), shape(&texts[1]));
    let [ours, theirs] = texts.each_ref().map(|text| counts(text));
    let names = |counts: &[(String, u64)]| counts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    let numbers: BTreeMap<String, usize> = names(&ours).into_iter().zip(0..).collect();
    let mut wrong = Vec::new();
    for name in EQUAL.iter().chain(&COUNTED) {
        let at = numbers[*name];
        if ours[at].1 != theirs[at].1 {
            wrong.push(format!("{name}: {} and not {}", ours[at].1, theirs[at].1));
        }
    }
    for (name, percent, why) in NEAR {
        let (ours, theirs) = (ours[numbers[name]].1 as f64, theirs[numbers[name]].1 as f64);
        if (ours - theirs).abs() > theirs * percent / 100.0 || (ours == 0.0) != (theirs == 0.0) {
            wrong.push(format!("{name}: {ours} and not {theirs}, though {percent} % may be ({why})"));
        }
    }
    for name in SAME {
        let number = (numbers[name] - 263) as u32;
        let [ours, theirs] = sessions.each_ref().map(|session| session.histogram(number));
        if ours != theirs {
            wrong.push(format!("{name}: {ours:?} and not {theirs:?}"));
        }
    }
    for name in EQUAL {
        let number = numbers[name] as u32;
        // SAFETY: live options.
        let ticker = |session: &Session| unsafe {
            (session.api.rocksdb_options_statistics_get_ticker_count)(session.options, number)
        };
        assert_eq!(ticker(&sessions[0]), ours[numbers[name]].1, "{name} by number and in the text");
        assert_eq!(ticker(&sessions[1]), theirs[numbers[name]].1, "{name} by number and in the text");
    }
    assert!(wrong.is_empty(), "{}\n\n{}", wrong.join("\n"), beside(&ours, &theirs));
}

#[test]
fn features_count_what_rocksdb_counts() {
    let Some(libraries) = judged() else { return };
    let sessions = libraries.map(|library| {
        Session::open_with(&library, 3, |api, options, _| {
            // SAFETY: live options.
            unsafe {
                (api.rocksdb_options_set_uint64add_merge_operator)(options);
                (api.rocksdb_options_set_enable_blob_files)(options, 1);
                (api.rocksdb_options_set_min_blob_size)(options, 1000);
                (api.rocksdb_options_set_atomic_flush)(options, 1);
                // So much that nobody waits.
                let limiter = (api.rocksdb_ratelimiter_create)(10 << 30, 100_000, 10);
                (api.rocksdb_options_set_ratelimiter)(options, limiter);
            }
        })
    });
    sessions.iter().for_each(Session::play_features);
    let [ours, theirs] = sessions.each_ref().map(|session| counts(&session.statistics()));
    let numbers: BTreeMap<&str, usize> =
        ours.iter().enumerate().map(|(number, (name, _))| (name.as_str(), number)).collect();
    let mut wrong = Vec::new();
    for name in EQUAL_OF_FEATURES {
        let at = numbers[name];
        if ours[at].1 != theirs[at].1 {
            wrong.push(format!("{name}: {} and not {}", ours[at].1, theirs[at].1));
        }
    }
    for (name, percent, why) in NEAR_OF_FEATURES {
        let (ours, theirs) = (ours[numbers[name]].1 as f64, theirs[numbers[name]].1 as f64);
        if (ours - theirs).abs() > theirs * percent / 100.0 || ours == 0.0 || theirs == 0.0 {
            wrong.push(format!("{name}: {ours} and not {theirs}, though {percent} % may be ({why})"));
        }
    }
    let number = (numbers["read.num.merge_operands"] - 263) as u32;
    let [merged, theirs_merged] = sessions.each_ref().map(|session| session.histogram(number));
    if merged != theirs_merged {
        wrong.push(format!("read.num.merge_operands: {merged:?} and not {theirs_merged:?}"));
    }
    assert!(wrong.is_empty(), "{}\n\n{}", wrong.join("\n"), beside(&ours, &theirs));
}

/// All that is not 0, for people.
fn beside(ours: &[(String, u64)], theirs: &[(String, u64)]) -> String {
    let all = ours.iter().zip(theirs).filter(|(a, b)| a.1 + b.1 > 0);
    all.map(|((name, a), (_, b))| format!("{name:<50} {a:>10} {b:>10}\n")).collect()
}

#[test]
fn levels_leave_out_what_they_leave_out_in_rocksdb() {
    let Some(libraries) = judged() else { return };
    for level in 0..=5 {
        let [ours, theirs] = libraries.each_ref().map(|library| {
            let session = Session::open(library, level);
            session.play();
            counts(&session.statistics())
        });
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let watched = EQUAL.contains(&ours.0.as_str()) || COUNTED.contains(&ours.0.as_str());
            if watched {
                assert_eq!(ours, theirs, "level {level}");
            }
        }
    }
}

#[test]
fn a_thread_counts_for_itself_what_rocksdb_counts() {
    let Some(libraries) = judged() else { return };
    let [ours, theirs] = libraries.map(|library| {
        std::thread::spawn(move || {
            let is_ours = library == outcrop_library();
            let session = Session::open(&library, 0);
            let api = &session.api;
            // SAFETY: live objects.
            unsafe {
                (api.rocksdb_set_perf_level)(2);
                let context = (api.rocksdb_perfcontext_create)();
                (api.rocksdb_perfcontext_reset)(context);
                assert_eq!(session.text((api.rocksdb_perfcontext_report)(context, 1)), "");
                session.play();
                let report = session.text((api.rocksdb_perfcontext_report)(context, 0));
                let all: Vec<(String, u64)> = report
                    .split(", ")
                    .map(|pair| pair.split_once(" = ").unwrap())
                    .map(|(name, value)| (name.to_string(), value.parse().unwrap()))
                    .collect();
                for (name, number) in THREAD.iter().filter(|(_, number)| *number >= 0) {
                    let value = (api.rocksdb_perfcontext_metric)(context, *number);
                    assert!(all.contains(&(name.to_string(), value)), "{name}: {value}");
                }
                assert_eq!((api.rocksdb_perfcontext_metric)(context, 84), 0);
                assert_eq!((api.rocksdb_perfcontext_metric)(context, -1), 0);
                (api.rocksdb_perfcontext_reset)(context);
                (api.rocksdb_set_perf_level)(1);
                session.read_all();
                let report = session.text((api.rocksdb_perfcontext_report)(context, 1));
                // RocksDB counts what filters say to a multi_get at any level.
                let counted = if is_ours { "" } else { "bloom_sst_hit_count = 20" };
                assert_eq!(report, counted, "it is off");
                (api.rocksdb_perfcontext_destroy)(context);
                all
            }
        })
        .join()
        .unwrap()
    });
    let names = |all: &[(String, u64)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    let of = |all: &[(String, u64)], name: &str| all.iter().find(|(known, _)| known == name).unwrap().1;
    let wrong: Vec<String> = THREAD
        .iter()
        .filter(|(name, _)| of(&ours, name) != of(&theirs, name))
        .map(|(name, _)| format!("{name}: {} and not {}", of(&ours, name), of(&theirs, name)))
        .collect();
    assert!(wrong.is_empty(), "{}\n\n{}", wrong.join("\n"), beside(&ours, &theirs));
}

/// Tickers of filters of prefixes.
const OF_PREFIXES: [&str; 7] = [
    "bloom.filter.prefix.checked",
    "bloom.filter.prefix.useful",
    "bloom.filter.prefix.true.positive",
    "bloom.filter.useful",
    "bloom.filter.full.positive",
    "bloom.filter.full.true.positive",
    "number.keys.read",
];

#[test]
fn filters_of_prefixes_count_what_they_do_in_rocksdb() {
    let Some(libraries) = judged() else { return };
    let [ours, theirs] = libraries.map(|library| {
        std::thread::spawn(move || {
            // SAFETY: live objects; the prefix extractor goes with the options.
            let session = Session::open_with(&library, 3, |api, options, table| unsafe {
                (api.rocksdb_block_based_options_set_whole_key_filtering)(table, 0);
                let eight = (api.rocksdb_slicetransform_create_fixed_prefix)(8);
                (api.rocksdb_options_set_prefix_extractor)(options, eight);
            });
            for row in (0..1000).filter(|row| row / 10 % 2 == 0).step_by(2) {
                session.put(session.write, row, b"value");
            }
            session.flush();
            let api = &session.api;
            // SAFETY: live objects.
            unsafe {
                (api.rocksdb_set_perf_level)(2);
                let context = (api.rocksdb_perfcontext_create)();
                (api.rocksdb_perfcontext_reset)(context);
                // There; with a prefix that is there; with one that is not; without a prefix.
                (0..900).step_by(3).for_each(|row| session.get(row));
                session.get_key("key0");
                session.multi_get((0..900).step_by(7));
                let iter = (api.rocksdb_create_iterator)(session.db, session.read);
                for row in (0..900).step_by(11) {
                    let key = key(row);
                    (api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
                }
                (api.rocksdb_iter_destroy)(iter);
                let asked = [44, 45].map(|number| (api.rocksdb_perfcontext_metric)(context, number));
                (api.rocksdb_perfcontext_destroy)(context);
                (api.rocksdb_set_perf_level)(1);
                let all = counts(&session.statistics());
                let of = |name: &&str| all.iter().find(|(known, _)| known == *name).unwrap().1;
                (OF_PREFIXES.iter().map(of).collect::<Vec<u64>>(), asked)
            }
        })
        .join()
        .unwrap()
    });
    assert!(theirs.0[..3].iter().all(|count| *count > 0), "{theirs:?}");
    assert_eq!(ours, theirs, "{OF_PREFIXES:?} and what a thread asked, with success and without");
}

/// Tickers of reads by level.
const BY_LEVEL: [&str; 8] = [
    "last.level.read.count",
    "last.level.read.bytes",
    "non.last.level.read.count",
    "non.last.level.read.bytes",
    "last.level.seek.filtered",
    "last.level.seek.filter.match",
    "non.last.level.seek.filtered",
    "non.last.level.seek.filter.match",
];

/// Histograms of reads by level, of several keys together.
const KEYS_BY_LEVEL: [&str; 2] = ["num.sst.read.per.level", "num.level.read.per.multiget"];

#[test]
fn reads_are_counted_by_level() {
    let Some(libraries) = judged() else { return };
    let [ours, theirs] = libraries.map(|library| {
        // SAFETY: live options; the prefix extractor goes with them.
        let session = Session::open_with(&library, 3, |api, options, table| unsafe {
            (api.rocksdb_options_set_num_levels)(options, 2);
            // Every block is read from its file.
            (api.rocksdb_block_based_options_set_no_block_cache)(table, 1);
            let eight = (api.rocksdb_slicetransform_create_fixed_prefix)(8);
            (api.rocksdb_options_set_prefix_extractor)(options, eight);
        });
        let write = |rows: std::ops::Range<usize>| {
            rows.filter(|row| row / 10 % 2 == 0).for_each(|row| session.put(session.write, row, b"value"));
            session.flush();
        };
        // Twice: RocksDB counts a table that is moved as one of the level where it was opened.
        (0..2).for_each(|_| write(0..60));
        // SAFETY: a live database.
        unsafe { (session.api.rocksdb_compact_range)(session.db, null(), 0, null(), 0) };
        // One block each.
        (1..4).for_each(|hundred| write(hundred * 100..hundred * 100 + 60));
        let all = || counts(&session.statistics());
        let tickers = || {
            let all = all();
            BY_LEVEL.map(|name| all.iter().find(|(known, _)| known == name).unwrap().1)
        };
        let mut steps = Vec::new();
        let mut step = |name: &'static str, work: &dyn Fn()| {
            let before = tickers();
            work();
            let after = tickers();
            steps.push((name, std::array::from_fn::<u64, 8, _>(|at| after[at] - before[at])));
        };
        step("gets in the last level", &|| (0..10).for_each(|row| session.get(row)));
        step("gets in the first", &|| (100..115).for_each(|row| session.get(row)));
        step("a key that is not there", &|| session.get_key("key000001x"));
        step("several keys of one level", &|| session.multi_get(0..3));
        step("several keys of all", &|| session.multi_get([1, 2, 101, 102, 201, 202].into_iter()));
        step("several keys that no table has", &|| session.multi_get(9000..9003));
        step("seeks of rows in the last level", &|| (0..3).for_each(|ten| session.seek(ten * 20)));
        step("seeks of rows in the first", &|| (0..5).for_each(|row| session.seek(120 + row)));
        let before_strangers = tickers();
        // Rows after these are looked for in all tables here, and not in RocksDB: of them filters alone are the same.
        (0..40).step_by(7).for_each(|row| session.seek(row + 10));
        let after_strangers = tickers();
        let filtered = [4, 5, 6, 7].map(|at| after_strangers[at] - before_strangers[at]);
        let number = |name: &str| all().iter().position(|(known, _)| known == name).unwrap() - 263;
        let histograms = KEYS_BY_LEVEL.map(|name| session.histogram(number(name) as u32));
        (steps, filtered, histograms)
    });
    assert_eq!(ours, theirs, "left: ours, right: RocksDB");
    for (at, name) in BY_LEVEL.iter().enumerate() {
        let counted = ours.0.iter().map(|(_, counts)| counts[at]).sum::<u64>();
        let counted = counted + at.checked_sub(4).map_or(0, |at| ours.1[at]);
        assert!(counted > 0, "{name} is not counted");
    }
}

/// Tickers of flushes for range deletions.
const FOR_RANGE_DELETIONS: [&str; 3] = [
    "flush.reason.memtable_max_range_deletions",
    "atomic_flush.request.reason.memtable_max_range_deletions",
    "flush.reason.write_buffer_full",
];

#[test]
fn flushes_for_range_deletions_are_counted() {
    let Some(libraries) = judged() else { return };
    for atomic in [0, 1] {
        let [ours, theirs] = libraries.each_ref().map(|library| {
            // SAFETY: live options.
            let session = Session::open_with(library, 3, |api, options, _| unsafe {
                (api.rocksdb_options_set_atomic_flush)(options, atomic);
                (api.rocksdb_options_set_memtable_max_range_deletions)(options, 4);
            });
            let api = &session.api;
            // The write after the fourth deletion has the memtable flushed.
            for row in 0..5 {
                let (begin, end) = (key(row * 10), key(row * 10 + 5));
                // SAFETY: live objects and slices.
                session.call(|api, error| unsafe {
                    let cf = (api.rocksdb_get_default_column_family_handle)(session.db);
                    let (begin, end) =
                        ((begin.as_ptr().cast(), begin.len()), (end.as_ptr().cast(), end.len()));
                    let write = session.write;
                    (api.rocksdb_delete_range_cf)(
                        session.db, write, cf, begin.0, begin.1, end.0, end.1, error,
                    );
                });
            }
            let tables = || {
                let name = c"rocksdb.num-files-at-level0";
                // SAFETY: a live database.
                session.text(unsafe { (api.rocksdb_property_value)(session.db, name.as_ptr()) })
            };
            while tables() != "1" {
                std::thread::yield_now();
            }
            let all = counts(&session.statistics());
            FOR_RANGE_DELETIONS.map(|name| all.iter().find(|(known, _)| known == name).unwrap().1)
        });
        assert_eq!(ours, theirs, "left: ours, right: RocksDB; atomic flushes: {atomic}");
        assert_eq!(ours[0], 1, "{ours:?}");
    }
}

#[test]
fn reads_with_a_priority_ask_the_limiter_as_in_rocksdb() {
    let Some(libraries) = judged() else { return };
    // RocksDB's numbers: reads, writes, both.
    for mode in [0, 1, 2] {
        let [ours, theirs] = libraries.each_ref().map(|library| {
            // SAFETY: live options.
            let session = Session::open_with(library, 3, |api, options, table| unsafe {
                (api.rocksdb_block_based_options_set_no_block_cache)(table, 1);
                (api.rocksdb_options_set_enable_blob_files)(options, 1);
                (api.rocksdb_options_set_min_blob_size)(options, 1000);
                // So much that nobody waits.
                let limiter = (api.rocksdb_ratelimiter_create_with_mode)(10 << 30, 100_000, 10, mode, false);
                (api.rocksdb_options_set_ratelimiter)(options, limiter);
            });
            (0..20).for_each(|row| session.put(session.write, row, b"value"));
            session.put(session.write, 20, &[b'b'; 3000]);
            session.flush();
            // Opens the blob file: RocksDB then asks for its ends, too.
            session.get(20);
            let bytes = || {
                let all = counts(&session.statistics());
                all.iter().find(|(known, _)| known == "rate.limiter.bytes.read").unwrap().1
            };
            let mut steps = Vec::new();
            let mut step = |name: &'static str, work: &dyn Fn()| {
                let before = bytes();
                work();
                steps.push((name, bytes() - before));
            };
            for priority in 0..=4 {
                // SAFETY: live options.
                unsafe {
                    (session.api.rocksdb_readoptions_set_rate_limiter_priority)(session.read, priority)
                };
                step("a get", &|| session.get(1));
                step("a value in a blob file", &|| session.get(20));
                step("a key that is not there", &|| session.get_key("key000001x"));
                step("a seek", &|| session.seek(3));
            }
            // RocksDB asks for tokens for several keys together, too, and does not count them.
            let before = bytes();
            // SAFETY: live options.
            unsafe { (session.api.rocksdb_readoptions_set_rate_limiter_priority)(session.read, 3) };
            session.multi_get(2..5);
            (steps, bytes() - before)
        });
        assert_eq!(ours.0, theirs.0, "left: ours, right: RocksDB; mode {mode}");
        let sum: u64 = ours.0.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!((sum > 0, ours.1 > 0), (mode != 1, mode != 1), "{ours:?}");
    }
}

/// Tickers of files.
const OF_FILES: [&str; 2] = ["no.file.opens", "no.file.errors"];

#[test]
fn opened_and_damaged_files_are_counted() {
    let Some(libraries) = judged() else { return };
    let [ours, theirs] = libraries.map(|library| {
        // SAFETY: live options.
        let mut session = Session::open_with(&library, 3, |api, options, _| unsafe {
            (api.rocksdb_options_set_paranoid_checks)(options, 0);
        });
        let of_files = |session: &Session| {
            let all = counts(&session.statistics());
            OF_FILES.map(|name| all.iter().find(|(known, _)| known == name).unwrap().1)
        };
        let tables = |session: &Session| {
            let mut tables: Vec<_> = std::fs::read_dir(session.dir.path().join("db"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
                .collect();
            tables.sort();
            tables
        };
        let mut steps = Vec::new();
        for hundred in 0..2 {
            (0..10).for_each(|row| session.put(session.write, hundred * 100 + row, b"value"));
            session.flush();
            (0..10).for_each(|row| session.get(hundred * 100 + row));
        }
        steps.push(("flushed", of_files(&session)));
        let reopen = |session: &mut Session| {
            let path = CString::new(session.dir.path().join("db").to_str().unwrap()).unwrap();
            let mut error = null_mut();
            // SAFETY: live objects, and a NUL-terminated path.
            unsafe {
                (session.api.rocksdb_close)(session.db);
                session.db = (session.api.rocksdb_open)(session.options, path.as_ptr(), &raw mut error);
            }
            assert!(error.is_null());
        };
        reopen(&mut session);
        steps.push(("opened again", of_files(&session)));
        // Its last bytes say that it is a table.
        let damaged = &tables(&session)[0];
        let mut bytes = std::fs::read(damaged).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(damaged, bytes).unwrap();
        reopen(&mut session);
        // RocksDB opens no table after the damaged one; the next read does.
        steps.push(("opened with a damaged table", [0, of_files(&session)[1]]));
        let fails = |row: usize| {
            let (key, mut len, mut error) = (key(row), 0, null_mut());
            // SAFETY: live objects and slices; value and message are malloc'ed.
            unsafe {
                let (db, read) = (session.db, session.read);
                let value = (session.api.rocksdb_get)(
                    db,
                    read,
                    key.as_ptr().cast(),
                    key.len(),
                    &raw mut len,
                    &raw mut error,
                );
                (session.api.rocksdb_free)(value.cast());
                (session.api.rocksdb_free)(error.cast());
            }
            !error.is_null()
        };
        assert!((0..3).all(fails) && !(100..103).any(fails));
        steps.push(("read from it", of_files(&session)));
        steps
    });
    assert_eq!(ours, theirs, "left: ours, right: RocksDB");
    assert!(ours.last().unwrap().1[1] > 0, "{ours:?}");
}
