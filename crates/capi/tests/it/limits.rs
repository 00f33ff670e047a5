//! Limits beside RocksDB's: the same calls on both libraries, and the same that they refuse or let wait. Of time there are lower bounds
//! alone: a busy machine takes longer.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_level0_file_num_compaction_trigger: fn(Object, c_int);
    rocksdb_options_set_level0_slowdown_writes_trigger: fn(Object, c_int);
    rocksdb_options_set_manual_wal_flush: fn(Object, c_uchar);
    rocksdb_options_set_ratelimiter: fn(Object, Object);
    rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
    rocksdb_ratelimiter_create: fn(i64, i64, i32) -> Object;
    rocksdb_ratelimiter_create_with_mode: fn(i64, i64, i32, c_int, bool) -> Object;
    rocksdb_ratelimiter_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_destroy: fn(Object);
    rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
    rocksdb_writeoptions_set_low_pri: fn(Object, c_uchar);
    rocksdb_writeoptions_set_no_slowdown: fn(Object, c_uchar);
    rocksdb_writeoptions_set_rate_limiter_priority: fn(Object, c_int);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_destroy: fn(Object);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_options_set_write_buffer_manager: fn(Object, Object);
    rocksdb_options_set_max_write_buffer_number: fn(Object, c_int);
    rocksdb_write_buffer_manager_create: fn(size_t, bool) -> Object;
    rocksdb_write_buffer_manager_create_with_cache: fn(size_t, Object, bool) -> Object;
    rocksdb_write_buffer_manager_destroy: fn(Object);
    rocksdb_write_buffer_manager_memory_usage: fn(Object) -> size_t;
    rocksdb_write_buffer_manager_mutable_memtable_memory_usage: fn(Object) -> size_t;
    rocksdb_write_buffer_manager_dummy_entries_in_cache_usage: fn(Object) -> size_t;
    rocksdb_cache_create_lru: fn(size_t) -> Object;
    rocksdb_cache_destroy: fn(Object);
    rocksdb_cache_get_usage: fn(Object) -> size_t;
    rocksdb_cache_get_pinned_usage: fn(Object) -> size_t;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_destroy: fn(Object);
    rocksdb_options_set_sst_file_manager: fn(Object, Object);
    rocksdb_sst_file_manager_create: fn(Object) -> Object;
    rocksdb_sst_file_manager_destroy: fn(Object);
    rocksdb_sst_file_manager_set_max_allowed_space_usage: fn(Object, u64);
    rocksdb_sst_file_manager_is_max_allowed_space_reached: fn(Object) -> bool;
    rocksdb_sst_file_manager_get_total_size: fn(Object) -> u64;
    rocksdb_sst_file_manager_get_total_trash_size: fn(Object) -> u64;
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second: fn(Object, i64);
    rocksdb_sst_file_manager_set_max_trash_db_ratio: fn(Object, f64);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_create_default_env: fn() -> Object;
    rocksdb_cache_create_lru_with_strict_capacity_limit: fn(size_t) -> Object;
    rocksdb_cache_get_capacity: fn(Object) -> size_t;
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_block_cache: fn(Object, Object);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_readoptions_set_fill_cache: fn(Object, c_uchar);
    rocksdb_get_pinned: fn(Object, Object, Bytes, size_t, Errptr) -> Object;
    rocksdb_pinnableslice_destroy: fn(Object);
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_free: fn(*mut c_void);
    rocksdb_transactiondb_options_create: fn() -> Object;
    rocksdb_transactiondb_options_destroy: fn(Object);
    rocksdb_transactiondb_open: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_transactiondb_close: fn(Object);
    rocksdb_transactiondb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transactiondb_flush: fn(Object, Object, Errptr);
    rocksdb_transaction_options_create: fn() -> Object;
    rocksdb_transaction_options_destroy: fn(Object);
    rocksdb_transaction_begin: fn(Object, Object, Object, Object) -> Object;
    rocksdb_transaction_set_name: fn(Object, Bytes, size_t, Errptr);
    rocksdb_transaction_put: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transaction_prepare: fn(Object, Errptr);
    rocksdb_transaction_commit: fn(Object, Errptr);
    rocksdb_transaction_rollback: fn(Object, Errptr);
    rocksdb_transaction_destroy: fn(Object);
}

/// A library, and where its databases are.
struct Side {
    name: &'static str,
    api: Api,
    dir: tempfile::TempDir,
}

/// Ours, and RocksDB 11.8.1 if it is there.
fn sides() -> Vec<Side> {
    let side = |(name, path): (_, std::path::PathBuf)| Side {
        name,
        api: Api::load(&path),
        dir: tempfile::tempdir().unwrap(),
    };
    libraries().into_iter().map(side).collect()
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// The results of each side's calls, one after the other, for both to be compared.
impl Side {
    /// The text in `error`, or "".
    fn told(&self, error: *mut c_char) -> String {
        // SAFETY: null, or a text of the library, which frees it.
        unsafe { error_text(error, self.api.rocksdb_free) }.unwrap_or_default()
    }

    /// Options of a database that compresses nothing and compacts nothing by itself.
    fn options(&self) -> Object {
        // SAFETY: objects of the library, here and below.
        unsafe {
            let options = (self.api.rocksdb_options_create)();
            (self.api.rocksdb_options_set_create_if_missing)(options, 1);
            (self.api.rocksdb_options_set_compression)(options, 0);
            (self.api.rocksdb_options_set_disable_auto_compactions)(options, 1);
            options
        }
    }

    fn open(&self, options: Object, name: &str) -> Object {
        let path = c_path(&self.dir.path().join(name));
        let mut error = null_mut();
        // SAFETY: objects and texts of the library, used while they live.
        let db = unsafe { (self.api.rocksdb_open)(options, path.as_ptr(), &mut error) };
        assert_eq!(self.told(error), "", "{}: open {name}", self.name);
        db
    }

    fn put(&self, db: Object, write: Object, key: &str, value: &[u8]) -> String {
        let mut error = null_mut();
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let (key, value) = (key.as_bytes(), value);
            (self.api.rocksdb_put)(
                db,
                write,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &mut error,
            );
        }
        self.told(error)
    }

    /// So many values of 16 KiB.
    fn fill(&self, db: Object, values: u32) {
        // SAFETY: objects and texts of the library, used while they live.
        let write = unsafe { (self.api.rocksdb_writeoptions_create)() };
        for i in 0..values {
            assert_eq!(self.put(db, write, &format!("{i:08}"), &[i as u8; 16 << 10]), "", "{}", self.name);
        }
        // SAFETY: objects and texts of the library, used while they live.
        unsafe { (self.api.rocksdb_writeoptions_destroy)(write) };
    }

    fn flush(&self, db: Object) -> String {
        let mut error = null_mut();
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            (self.api.rocksdb_flush)(db, options, &mut error);
            (self.api.rocksdb_flushoptions_destroy)(options);
        }
        self.told(error)
    }

    fn compact(&self, db: Object) {
        // SAFETY: objects and texts of the library, used while they live.
        unsafe { (self.api.rocksdb_compact_range)(db, null(), 0, null(), 0) }
    }
}

/// Eight mebibytes per second, in refills of 10 ms.
const RATE: i64 = 8 << 20;
/// The least time that a mebibyte takes at that rate: the first refill is there at once.
const LEAST: Duration = Duration::from_millis(110);

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[test]
fn a_limiter_paces_what_databases_flush_together() {
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let limiter = (api.rocksdb_ratelimiter_create)(RATE, 10_000, 10);
            let options = side.options();
            (api.rocksdb_options_set_ratelimiter)(options, limiter);
            (api.rocksdb_ratelimiter_destroy)(limiter);
            let dbs = [side.open(options, "one"), side.open(options, "two")];
            (api.rocksdb_options_destroy)(options);
            dbs.iter().for_each(|db| side.fill(*db, 32));
            let took = timed(|| dbs.iter().for_each(|db| assert_eq!(side.flush(*db), "")));
            assert!(took >= LEAST, "{}: a mebibyte of two databases in {took:?}", side.name);
            dbs.iter().for_each(|db| (api.rocksdb_close)(*db));
        }
    }
}

#[test]
fn compactions_are_paced_as_the_mode_says() {
    // RocksDB's numbers: reads, writes, both. Two files of half a mebibyte are read, one is written.
    for (mode, half_mebibytes) in [(0, 2), (1, 1), (2, 3)] {
        for side in sides() {
            let api = &side.api;
            // SAFETY: objects and texts of the library, used while they live.
            unsafe {
                let limiter = (api.rocksdb_ratelimiter_create_with_mode)(RATE, 10_000, 10, mode, false);
                let options = side.options();
                let plain = side.open(options, &format!("mode{mode}"));
                side.fill(plain, 32);
                assert_eq!(side.flush(plain), "");
                side.fill(plain, 32);
                assert_eq!(side.flush(plain), "");
                (api.rocksdb_close)(plain);
                (api.rocksdb_options_set_ratelimiter)(options, limiter);
                (api.rocksdb_ratelimiter_destroy)(limiter);
                let db = side.open(options, &format!("mode{mode}"));
                let took = timed(|| side.compact(db));
                assert!(took >= half_mebibytes * LEAST / 2, "{}: mode {mode} in {took:?}", side.name);
                (api.rocksdb_options_destroy)(options);
                (api.rocksdb_close)(db);
            }
        }
    }
}

#[test]
fn a_limiter_of_an_option_string_acts() {
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let (base, options) = (side.options(), side.options());
            let mut error = null_mut();
            let text = c"rate_limiter_bytes_per_sec=8388608";
            (api.rocksdb_get_options_from_string)(base, text.as_ptr(), options, &mut error);
            assert_eq!(side.told(error), "", "{}", side.name);
            let db = side.open(options, "string");
            side.fill(db, 64);
            let took = timed(|| assert_eq!(side.flush(db), ""));
            // Refills of 100 ms: bytes beyond the first one wait for the second.
            assert!(took >= Duration::from_millis(90), "{}: {took:?}", side.name);
            (api.rocksdb_close)(db);
            (api.rocksdb_options_destroy)(options);
            (api.rocksdb_options_destroy)(base);
        }
    }
}

#[test]
fn a_write_that_asks_for_it_is_paced_and_no_other() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let limiter = (api.rocksdb_ratelimiter_create)(RATE, 10_000, 10);
            let options = side.options();
            (api.rocksdb_options_set_ratelimiter)(options, limiter);
            (api.rocksdb_ratelimiter_destroy)(limiter);
            let db = side.open(options, "wal");
            let write = (api.rocksdb_writeoptions_create)();
            let mut told = Vec::new();
            (api.rocksdb_writeoptions_set_rate_limiter_priority)(write, 3);
            let paced = timed(|| {
                for i in 0..64 {
                    assert_eq!(side.put(db, write, &format!("{i}"), &[7; 16 << 10]), "", "{}", side.name);
                }
            });
            assert!(paced >= LEAST, "{}: {paced:?}", side.name);
            for priority in [0, 1, 2] {
                (api.rocksdb_writeoptions_set_rate_limiter_priority)(write, priority);
                told.push(side.put(db, write, "a", b"b"));
            }
            (api.rocksdb_writeoptions_set_rate_limiter_priority)(write, 3);
            (api.rocksdb_writeoptions_disable_WAL)(write, 1);
            told.push(side.put(db, write, "a", b"b"));
            (api.rocksdb_writeoptions_set_rate_limiter_priority)(write, 4);
            told.push(side.put(db, write, "a", b"b"));
            (api.rocksdb_close)(db);
            (api.rocksdb_options_set_manual_wal_flush)(options, 1);
            let db = side.open(options, "manual");
            (api.rocksdb_writeoptions_disable_WAL)(write, 0);
            (api.rocksdb_writeoptions_set_rate_limiter_priority)(write, 3);
            told.push(side.put(db, write, "a", b"b"));
            (api.rocksdb_close)(db);
            (api.rocksdb_writeoptions_destroy)(write);
            (api.rocksdb_options_destroy)(options);
            answers.push(told);
        }
    }
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:#?}");
    assert_eq!(answers[0][4], "");
}

#[test]
fn writes_of_low_priority_wait_while_compactions_fall_behind() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let options = side.options();
            (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 2);
            (api.rocksdb_options_set_level0_slowdown_writes_trigger)(options, 20);
            let db = side.open(options, "low");
            let write = (api.rocksdb_writeoptions_create)();
            (api.rocksdb_writeoptions_set_low_pri)(write, 1);
            (api.rocksdb_writeoptions_set_no_slowdown)(write, 1);
            let mut told = Vec::new();
            for round in 0..6 {
                told.push((round, side.put(db, write, "low", b"value")));
                side.fill(db, 1);
                assert_eq!(side.flush(db), "");
            }
            (api.rocksdb_writeoptions_set_no_slowdown)(write, 0);
            // A mebibyte per second, in refills of 100 ms.
            let took = timed(|| {
                for i in 0..16 {
                    assert_eq!(side.put(db, write, &format!("{i}"), &[7; 16 << 10]), "", "{}", side.name);
                }
            });
            assert!(took >= Duration::from_millis(180), "{}: {took:?}", side.name);
            (api.rocksdb_close)(db);
            (api.rocksdb_writeoptions_destroy)(write);
            (api.rocksdb_options_destroy)(options);
            answers.push(told);
        }
    }
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:#?}");
    assert!(answers[0].iter().any(|(_, text)| !text.is_empty()), "{answers:#?}");
}

#[test]
fn what_is_prepared_waits_as_writes_of_low_priority_do_and_what_is_decided_does_not() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let options = side.options();
            (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, 2);
            (api.rocksdb_options_set_level0_slowdown_writes_trigger)(options, 20);
            let transactions = (api.rocksdb_transactiondb_options_create)();
            let path = c_path(&side.dir.path().join("prepared"));
            let mut error = null_mut();
            let db = (api.rocksdb_transactiondb_open)(options, transactions, path.as_ptr(), &mut error);
            assert_eq!(side.told(error), "", "{}", side.name);
            let write = (api.rocksdb_writeoptions_create)();
            (api.rocksdb_writeoptions_set_low_pri)(write, 1);
            (api.rocksdb_writeoptions_set_no_slowdown)(write, 1);
            let plain = (api.rocksdb_writeoptions_create)();
            let transaction_options = (api.rocksdb_transaction_options_create)();
            let prepare = |name: &str| {
                let transaction = (api.rocksdb_transaction_begin)(db, write, transaction_options, null_mut());
                let name = name.as_bytes();
                let mut errors = [null_mut(); 3];
                let (text, len) = (name.as_ptr().cast(), name.len());
                (api.rocksdb_transaction_set_name)(transaction, text, len, &mut errors[0]);
                (api.rocksdb_transaction_put)(transaction, text, len, text, len, &mut errors[1]);
                (api.rocksdb_transaction_prepare)(transaction, &mut errors[2]);
                (transaction, errors.map(|error| side.told(error)))
            };
            let decide = |act: unsafe extern "C" fn(Object, Errptr), transaction: Object| {
                let mut error = null_mut();
                act(transaction, &mut error);
                (api.rocksdb_transaction_destroy)(transaction);
                side.told(error)
            };
            let ((one, told_one), (two, told_two)) = (prepare("one"), prepare("two"));
            for i in 0..6 {
                let (mut errors, key) = ([null_mut(); 2], format!("{i}"));
                let (text, len) = (key.as_ptr().cast(), key.len());
                (api.rocksdb_transactiondb_put)(db, plain, text, len, text, len, &mut errors[0]);
                let flush = (api.rocksdb_flushoptions_create)();
                (api.rocksdb_transactiondb_flush)(db, flush, &mut errors[1]);
                (api.rocksdb_flushoptions_destroy)(flush);
                assert_eq!(errors.map(|error| side.told(error)), ["", ""], "{}", side.name);
            }
            let (three, told_three) = prepare("three");
            let decided = [
                decide(api.rocksdb_transaction_commit, one),
                decide(api.rocksdb_transaction_rollback, two),
                decide(api.rocksdb_transaction_rollback, three),
            ];
            answers.push((told_one, told_two, told_three, decided));
            (api.rocksdb_transactiondb_close)(db);
            (api.rocksdb_transaction_options_destroy)(transaction_options);
            (api.rocksdb_transactiondb_options_destroy)(transactions);
            [write, plain].into_iter().for_each(|write| (api.rocksdb_writeoptions_destroy)(write));
            (api.rocksdb_options_destroy)(options);
        }
    }
    assert_eq!(answers[0].2[2], "Result incomplete: Low priority write stall");
    assert_eq!(answers[0].3[..2], ["", ""]);
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:#?}");
}

#[test]
fn databases_that_share_a_manager_share_its_memory() {
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let manager = (api.rocksdb_write_buffer_manager_create)(8 << 20, false);
            let options = side.options();
            (api.rocksdb_options_set_write_buffer_manager)(options, manager);
            let dbs: Vec<Object> = (0..4).map(|i| side.open(options, &format!("shared{i}"))).collect();
            let write = (api.rocksdb_writeoptions_create)();
            let mut most = 0;
            for i in 0..2000 {
                let told = side.put(dbs[i % 4], write, &format!("{i:06}"), &[i as u8; 16 << 10]);
                assert_eq!(told, "", "{}", side.name);
                let active = (api.rocksdb_write_buffer_manager_mutable_memtable_memory_usage)(manager);
                most = most.max(active);
                assert!((api.rocksdb_write_buffer_manager_memory_usage)(manager) >= active, "{}", side.name);
            }
            assert!(most > 4 << 20, "{}: {most} bytes take writes", side.name);
            // One write more than the limit. RocksDB goes on writing while flushes are under way: to twice the limit here.
            assert!(side.name != "outcrop" || most < 9 << 20, "{}: {most} bytes take writes", side.name);
            dbs.iter().for_each(|db| (api.rocksdb_close)(*db));
            let left = (api.rocksdb_write_buffer_manager_memory_usage)(manager);
            assert_eq!(left, 0, "{}: nothing is open", side.name);
            (api.rocksdb_write_buffer_manager_destroy)(manager);
            (api.rocksdb_writeoptions_destroy)(write);
            (api.rocksdb_options_destroy)(options);
        }
    }
}

#[test]
fn memory_of_memtables_is_charged_to_the_cache() {
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let cache = (api.rocksdb_cache_create_lru)(64 << 20);
            let manager = (api.rocksdb_write_buffer_manager_create_with_cache)(0, cache, false);
            let options = side.options();
            (api.rocksdb_options_set_write_buffer_manager)(options, manager);
            let db = side.open(options, "charged");
            side.fill(db, 256);
            let used = (api.rocksdb_write_buffer_manager_memory_usage)(manager);
            let charged = (api.rocksdb_write_buffer_manager_dummy_entries_in_cache_usage)(manager);
            assert!(used > 4 << 20 && charged >= used, "{}: {used} used, {charged} charged", side.name);
            assert_eq!(charged % (256 << 10), 0, "{}", side.name);
            assert!(charged - used <= 256 << 10, "{}: {used} used, {charged} charged", side.name);
            assert!((api.rocksdb_cache_get_usage)(cache) >= charged, "{}", side.name);
            assert!((api.rocksdb_cache_get_pinned_usage)(cache) >= charged, "{}", side.name);
            (api.rocksdb_close)(db);
            (api.rocksdb_options_destroy)(options);
            (api.rocksdb_write_buffer_manager_destroy)(manager);
            assert!((api.rocksdb_cache_get_usage)(cache) < 256 << 10, "{}", side.name);
            (api.rocksdb_cache_destroy)(cache);
        }
    }
}

#[test]
fn writers_stall_while_a_reader_keeps_the_memory() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let manager = (api.rocksdb_write_buffer_manager_create)(2 << 20, true);
            let options = side.options();
            (api.rocksdb_options_set_max_write_buffer_number)(options, 8);
            (api.rocksdb_options_set_write_buffer_manager)(options, manager);
            let db = side.open(options, "stall");
            let (write, read) = ((api.rocksdb_writeoptions_create)(), (api.rocksdb_readoptions_create)());
            (api.rocksdb_writeoptions_set_no_slowdown)(write, 1);
            let mut iterators = Vec::new();
            let mut told = String::new();
            for i in 0..1000 {
                told = side.put(db, write, &format!("{i:06}"), &[7; 16 << 10]);
                if !told.is_empty() {
                    break;
                }
                iterators.push((api.rocksdb_create_iterator)(db, read));
            }
            let used = (api.rocksdb_write_buffer_manager_memory_usage)(manager);
            assert!(used >= 2 << 20, "{}: {used}, {told}", side.name);
            answers.push(told);
            iterators.into_iter().for_each(|iterator| (api.rocksdb_iter_destroy)(iterator));
            assert_eq!(side.flush(db), "", "{}", side.name);
            (api.rocksdb_writeoptions_set_no_slowdown)(write, 0);
            assert_eq!(side.put(db, write, "again", b"goes"), "", "{}", side.name);
            (api.rocksdb_close)(db);
            (api.rocksdb_write_buffer_manager_destroy)(manager);
            (api.rocksdb_writeoptions_destroy)(write);
            (api.rocksdb_options_destroy)(options);
        }
    }
    assert_eq!(answers[0], "Result incomplete: Write stall");
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:?}");
}

/// Waits for what happens in the background.
fn wait_until(happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sizes of the files in `dir` whose names end so.
fn bytes_of(dir: &Path, ends: &[&str]) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let chosen = entries.filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        ends.iter().any(|end| name.ends_with(end))
    });
    chosen.map(|entry| entry.metadata().unwrap().len()).sum()
}

#[test]
fn writes_stop_once_the_space_that_is_allowed_is_used() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let manager = (api.rocksdb_sst_file_manager_create)((api.rocksdb_create_default_env)());
            let options = side.options();
            (api.rocksdb_options_set_sst_file_manager)(options, manager);
            let db = side.open(options, "space");
            let write = (api.rocksdb_writeoptions_create)();
            let mut told = Vec::new();
            side.fill(db, 16);
            told.push(side.flush(db));
            let total = (api.rocksdb_sst_file_manager_get_total_size)(manager);
            assert_eq!(total, bytes_of(&side.dir.path().join("space"), &[".sst"]), "{}", side.name);
            (api.rocksdb_sst_file_manager_set_max_allowed_space_usage)(manager, total + 1);
            assert!(!(api.rocksdb_sst_file_manager_is_max_allowed_space_reached)(manager));
            told.push(side.put(db, write, "one", b"more"));
            side.flush(db);
            assert!((api.rocksdb_sst_file_manager_is_max_allowed_space_reached)(manager), "{}", side.name);
            told.push(side.put(db, write, "another", b"one"));
            (api.rocksdb_close)(db);
            let left = (api.rocksdb_sst_file_manager_get_total_size)(manager);
            assert_eq!(left, 0, "{}: nothing is open", side.name);
            // It opens, with no error, and counts what is there.
            (api.rocksdb_sst_file_manager_set_max_allowed_space_usage)(manager, 0);
            let db = side.open(options, "space");
            assert!((api.rocksdb_sst_file_manager_get_total_size)(manager) >= total, "{}", side.name);
            told.push(side.put(db, write, "another", b"one"));
            (api.rocksdb_close)(db);
            (api.rocksdb_options_destroy)(options);
            (api.rocksdb_sst_file_manager_destroy)(manager);
            (api.rocksdb_writeoptions_destroy)(write);
            answers.push(told);
        }
    }
    assert_eq!(answers[0][2], "IO error: Space limit reached: Max allowed space was reached");
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:#?}");
}

#[test]
fn files_wait_as_trash_for_their_removal_at_a_rate() {
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let manager = (api.rocksdb_sst_file_manager_create)((api.rocksdb_create_default_env)());
            (api.rocksdb_sst_file_manager_set_delete_rate_bytes_per_second)(manager, 1);
            (api.rocksdb_sst_file_manager_set_max_trash_db_ratio)(manager, 1000.0);
            let options = side.options();
            (api.rocksdb_options_set_sst_file_manager)(options, manager);
            let db = side.open(options, "trash");
            for _ in 0..4 {
                side.fill(db, 16);
                assert_eq!(side.flush(db), "");
            }
            side.compact(db);
            let mut error = null_mut();
            (api.rocksdb_wait_for_compact)(db, (api.rocksdb_wait_for_compact_options_create)(), &mut error);
            assert_eq!(side.told(error), "", "{}", side.name);
            let dir = side.dir.path().join("trash");
            // Readers may have held the old tables. One of four may be gone: the first is removed at once, and then the rate is
            // used up for days.
            let waits =
                || (api.rocksdb_sst_file_manager_get_total_trash_size)(manager) >= 3 * 16 * (16 << 10);
            wait_until(|| waits() && bytes_of(&dir, &[".trash"]) >= 3 * 16 * (16 << 10));
            (api.rocksdb_close)(db);
            // Without the manager they go when it is opened.
            (api.rocksdb_options_destroy)(options);
            let options = side.options();
            let db = side.open(options, "trash");
            assert_eq!(bytes_of(&dir, &[".trash"]), 0, "{}", side.name);
            (api.rocksdb_close)(db);
            (api.rocksdb_options_destroy)(options);
        }
    }
}

#[test]
fn a_strict_cache_refuses_what_finds_no_room_beside_pins() {
    let mut answers = Vec::new();
    for side in sides() {
        let api = &side.api;
        // SAFETY: objects and texts of the library, used while they live.
        unsafe {
            let cache = (api.rocksdb_cache_create_lru_with_strict_capacity_limit)(1 << 20);
            let table = (api.rocksdb_block_based_options_create)();
            (api.rocksdb_block_based_options_set_block_cache)(table, cache);
            let options = side.options();
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            let db = side.open(options, "strict");
            side.fill(db, 1500);
            assert_eq!(side.flush(db), "");
            let read = (api.rocksdb_readoptions_create)();
            let get = |key: u32, read: Object| {
                let (key, mut error) = (format!("{key:08}"), null_mut());
                let pin = (api.rocksdb_get_pinned)(db, read, key.as_ptr().cast(), key.len(), &mut error);
                (pin, side.told(error))
            };
            let mut pins = Vec::new();
            let mut texts = std::collections::BTreeSet::new();
            let mut refused = 0;
            for key in 0..1500 {
                let (pin, text) = get(key, read);
                if text.is_empty() {
                    pins.push(pin);
                } else {
                    refused += 1;
                    texts.insert(text);
                }
            }
            assert!(refused > 1400 && refused < 1500, "{}: {refused} of 1500", side.name);
            let usage = (api.rocksdb_cache_get_usage)(cache);
            assert!(usage <= (api.rocksdb_cache_get_capacity)(cache), "{}: {usage}", side.name);
            // The first is pinned, the last is not there.
            let mut told = vec![get(0, read).1, get(1499, read).1];
            let iterator = (api.rocksdb_create_iterator)(db, read);
            (api.rocksdb_iter_seek)(iterator, b"00001499".as_ptr().cast(), 8);
            let mut error = null_mut();
            (api.rocksdb_iter_get_error)(iterator, &mut error);
            told.push(format!("{} {}", (api.rocksdb_iter_valid)(iterator), side.told(error)));
            (api.rocksdb_iter_destroy)(iterator);
            (api.rocksdb_readoptions_set_fill_cache)(read, 0);
            told.push(get(1499, read).1);
            (api.rocksdb_readoptions_set_fill_cache)(read, 1);
            pins.into_iter().for_each(|pin| (api.rocksdb_pinnableslice_destroy)(pin));
            told.push(get(1499, read).1);
            told.extend(texts);
            answers.push(told);
        }
    }
    assert!(answers.iter().all(|told| *told == answers[0]), "{answers:#?}");
    assert_eq!(answers[0][4], "", "there is room again");
}
