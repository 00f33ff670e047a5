//! User-defined timestamps beside RocksDB: drawn histories with the same answers, versions and errors to the letter, on databases of one
//! library alone and on such that both take turns on.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop_base::random::SplitMix;
use std::cmp::Ordering;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{null, null_mut};

mod indexed;

type Compare = unsafe extern "C" fn(*mut c_void, Bytes, size_t, Bytes, size_t) -> c_int;
type CompareWithout =
    unsafe extern "C" fn(*mut c_void, Bytes, size_t, c_uchar, Bytes, size_t, c_uchar) -> c_int;
type TextOf = unsafe extern "C" fn(*mut c_void) -> Bytes;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_comparator: fn(Object, Object);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_filter_policy: fn(Object, Object);
    rocksdb_block_based_options_set_partition_filters: fn(Object, c_uchar);
    rocksdb_block_based_options_set_index_type: fn(Object, c_int);
    rocksdb_block_based_options_set_block_size: fn(Object, size_t);
    rocksdb_block_based_options_set_metadata_block_size: fn(Object, u64);
    rocksdb_filterpolicy_create_bloom_full: fn(f64) -> Object;
    rocksdb_comparator_with_ts_create: fn(*mut c_void, unsafe extern "C" fn(*mut c_void), Compare, Compare, CompareWithout, TextOf, size_t) -> Object;
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_open_and_trim_history: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, *mut c_char, size_t, Errptr) -> Object;
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_readoptions_set_timestamp: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_iter_start_ts: fn(Object, Bytes, size_t);
    rocksdb_put_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_put_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_singledelete_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_get_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, *mut size_t, *mut *mut c_char, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get_cf_with_ts: fn(Object, Object, *const Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_count: fn(Object) -> c_int;
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_put_cf_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_cf_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_update_timestamps: fn(Object, Bytes, size_t, *mut c_void, unsafe extern "C" fn(*mut c_void, u32) -> size_t, Errptr);
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_writebatch_wi_create: fn(size_t, c_uchar) -> Object;
    rocksdb_writebatch_wi_create_with_params: fn(Object, size_t, c_uchar, size_t, size_t) -> Object;
    rocksdb_writebatch_wi_destroy: fn(Object);
    rocksdb_writebatch_wi_clear: fn(Object);
    rocksdb_writebatch_wi_count: fn(Object) -> c_int;
    rocksdb_writebatch_wi_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_writebatch_wi_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_delete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_wi_singledelete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_wi_set_save_point: fn(Object);
    rocksdb_writebatch_wi_rollback_to_save_point: fn(Object, Errptr);
    rocksdb_writebatch_wi_update_timestamps: fn(Object, Bytes, size_t, *mut c_void, unsafe extern "C" fn(*mut c_void, u32) -> size_t, Errptr);
    rocksdb_writebatch_wi_get_from_batch: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_get_from_batch_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_get_from_batch_and_db_cf: fn(Object, Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_create_iterator_with_base_cf: fn(Object, Object, Object) -> Object;
    rocksdb_write_writebatch_wi: fn(Object, Object, Object, Errptr);
    rocksdb_increase_full_history_ts_low: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_get_full_history_ts_low: fn(Object, Object, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_timestamp: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_compactoptions_create: fn() -> Object;
    rocksdb_compactoptions_destroy: fn(Object);
    rocksdb_compactoptions_set_bottommost_level_compaction: fn(Object, c_uchar);
    rocksdb_compactoptions_set_full_history_ts_low: fn(Object, *mut c_char, size_t);
    rocksdb_compact_range_cf_opt: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_free: fn(*mut c_void);
}

fn drawn_key(draw: &mut SplitMix) -> Vec<u8> {
    let number = draw.below(25);
    match draw.below(2) {
        0 => format!("k{number}").into_bytes(),
        _ => format!("a-longer-key-{number:04}").into_bytes(),
    }
}

unsafe fn bytes_of<'b>(start: Bytes, len: size_t) -> &'b [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: bytes of the library's.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

fn number(timestamp: &[u8]) -> u64 {
    u64::from_le_bytes(timestamp.try_into().unwrap())
}

fn order(order: Ordering) -> c_int {
    order as c_int
}

unsafe extern "C" fn compare(_: *mut c_void, a: Bytes, a_len: size_t, b: Bytes, b_len: size_t) -> c_int {
    // SAFETY: as they were given.
    let (a, b) = unsafe { (bytes_of(a, a_len), bytes_of(b, b_len)) };
    let ((a, a_ts), (b, b_ts)) = (a.split_at(a.len() - 8), b.split_at(b.len() - 8));
    order(a.cmp(b).then_with(|| number(b_ts).cmp(&number(a_ts))))
}

unsafe extern "C" fn compare_ts(_: *mut c_void, a: Bytes, a_len: size_t, b: Bytes, b_len: size_t) -> c_int {
    // SAFETY: as they were given.
    let (a, b) = unsafe { (bytes_of(a, a_len), bytes_of(b, b_len)) };
    order(number(a).cmp(&number(b)))
}

unsafe extern "C" fn compare_without(
    _: *mut c_void,
    a: Bytes,
    a_len: size_t,
    a_has: c_uchar,
    b: Bytes,
    b_len: size_t,
    b_has: c_uchar,
) -> c_int {
    let len = |len: size_t, has: c_uchar| if has != 0 { len - 8 } else { len };
    // SAFETY: as they were given.
    let (a, b) = unsafe { (bytes_of(a, len(a_len, a_has)), bytes_of(b, len(b_len, b_has))) };
    order(a.cmp(b))
}

unsafe extern "C" fn name(_: *mut c_void) -> Bytes {
    c"leveldb.BytewiseComparator.u64ts".as_ptr()
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// The column families with timestamps: "stamped", which has id 1.
unsafe extern "C" fn ts_size(_: *mut c_void, cf: u32) -> size_t {
    if cf == 1 { 8 } else { 0 }
}

fn pointer(text: &[u8]) -> (Bytes, size_t) {
    (text.as_ptr().cast(), text.len())
}

/// An open database: "default" without timestamps, "stamped" with them.
struct Session<'a> {
    api: &'a Api,
    db: Object,
    default: Object,
    stamped: Object,
    write: Object,
}

impl<'a> Session<'a> {
    fn open(api: &'a Api, dir: &Path, partitioned: bool, trim: Option<u64>) -> Session<'a> {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        // SAFETY: live objects and NUL-terminated texts; RocksDB refers to a comparator for as long as it is open, so none is given back.
        unsafe {
            let family = |stamped: bool| {
                let options = (api.rocksdb_options_create)();
                (api.rocksdb_options_set_create_if_missing)(options, 1);
                (api.rocksdb_options_set_create_missing_column_families)(options, 1);
                (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
                let table = (api.rocksdb_block_based_options_create)();
                let filter = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
                (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
                (api.rocksdb_block_based_options_set_block_size)(table, 200);
                if partitioned {
                    (api.rocksdb_block_based_options_set_partition_filters)(table, 1);
                    (api.rocksdb_block_based_options_set_index_type)(table, 2);
                    (api.rocksdb_block_based_options_set_metadata_block_size)(table, 64);
                }
                (api.rocksdb_options_set_block_based_table_factory)(options, table);
                if stamped {
                    (api.rocksdb_options_set_comparator)(options, comparator(api, 8));
                }
                options
            };
            let options = [family(false), family(true)];
            let names = [c"default".as_ptr(), c"stamped".as_ptr()];
            let mut handles = [null_mut(); 2];
            let mut db = null_mut();
            let (names, of, handles_at) = (names.as_ptr(), options.as_ptr(), handles.as_mut_ptr());
            let error = error_of(api, |e| {
                db = match trim.map(u64::to_le_bytes) {
                    Some(mut newest) => (api.rocksdb_open_and_trim_history)(
                        options[0],
                        path.as_ptr(),
                        2,
                        names,
                        of,
                        handles_at,
                        newest.as_mut_ptr().cast(),
                        8,
                        e,
                    ),
                    None => (api.rocksdb_open_column_families)(
                        options[0],
                        path.as_ptr(),
                        2,
                        names,
                        of,
                        handles_at,
                        e,
                    ),
                };
            });
            assert_eq!(error, "");
            let write = (api.rocksdb_writeoptions_create)();
            Session { api, db, default: handles[0], stamped: handles[1], write }
        }
    }

    fn close(self) {
        // SAFETY: live objects.
        unsafe {
            (self.api.rocksdb_column_family_handle_destroy)(self.default);
            (self.api.rocksdb_column_family_handle_destroy)(self.stamped);
            (self.api.rocksdb_close)(self.db);
        }
    }

    fn put(&self, key: &[u8], ts: u64, value: &[u8]) -> String {
        let ts = ts.to_le_bytes();
        let ((k, kl), (t, tl), (v, vl)) = (pointer(key), pointer(&ts), pointer(value));
        // SAFETY: live objects.
        error_of(self.api, |e| unsafe {
            (self.api.rocksdb_put_cf_with_ts)(self.db, self.write, self.stamped, k, kl, t, tl, v, vl, e);
        })
    }

    fn delete(&self, key: &[u8], ts: u64) -> String {
        let ts = ts.to_le_bytes();
        let ((k, kl), (t, tl)) = (pointer(key), pointer(&ts));
        // SAFETY: live objects.
        error_of(self.api, |e| unsafe {
            (self.api.rocksdb_delete_cf_with_ts)(self.db, self.write, self.stamped, k, kl, t, tl, e);
        })
    }

    /// Writes of a batch, some of which get their timestamps last.
    fn batch(&self, draw: &mut SplitMix, ts: u64) -> String {
        let api = self.api;
        let late = draw.below(2) == 0;
        let stamp = ts.to_le_bytes();
        // SAFETY: live objects.
        unsafe {
            let batch = (api.rocksdb_writebatch_create)();
            for _ in 0..1 + draw.below(4) {
                let (key, deletes) = (drawn_key(draw), draw.below(4) == 0);
                let value = format!("b{ts}");
                let ((k, kl), (t, tl), (v, vl)) = (pointer(&key), pointer(&stamp), pointer(value.as_bytes()));
                match (late, deletes) {
                    (true, true) => (api.rocksdb_writebatch_delete_cf)(batch, self.stamped, k, kl),
                    (true, false) => (api.rocksdb_writebatch_put_cf)(batch, self.stamped, k, kl, v, vl),
                    (false, true) => {
                        (api.rocksdb_writebatch_delete_cf_with_ts)(batch, self.stamped, k, kl, t, tl);
                    }
                    (false, false) => {
                        (api.rocksdb_writebatch_put_cf_with_ts)(batch, self.stamped, k, kl, t, tl, v, vl);
                    }
                }
                (api.rocksdb_writebatch_put_cf)(batch, self.default, k, kl, v, vl);
            }
            let write = |e| (api.rocksdb_write)(self.db, self.write, batch, e);
            let mut log = format!("count {}", (api.rocksdb_writebatch_count)(batch));
            if late {
                log += &format!(" early {}", error_of(api, write));
                let (t, tl) = pointer(&stamp);
                log += &error_of(api, |e| {
                    (api.rocksdb_writebatch_update_timestamps)(batch, t, tl, null_mut(), ts_size, e);
                });
            }
            log += &error_of(api, write);
            (api.rocksdb_writebatch_destroy)(batch);
            log
        }
    }

    /// Calls `with` with options that read at `ts`, and from `start` on.
    fn reading<T>(&self, ts: u64, start: Option<u64>, with: impl FnOnce(Object) -> T) -> T {
        let (ts, start) = (ts.to_le_bytes(), start.map(u64::to_le_bytes));
        // SAFETY: live objects; the bytes outlive the options.
        unsafe {
            let options = (self.api.rocksdb_readoptions_create)();
            (self.api.rocksdb_readoptions_set_timestamp)(options, ts.as_ptr().cast(), 8);
            if let Some(start) = &start {
                (self.api.rocksdb_readoptions_set_iter_start_ts)(options, start.as_ptr().cast(), 8);
            }
            let result = with(options);
            (self.api.rocksdb_readoptions_destroy)(options);
            result
        }
    }

    unsafe fn taken(&self, bytes: *mut c_char, len: size_t) -> String {
        // SAFETY: malloc'ed, of that length, or null.
        unsafe {
            if bytes.is_null() {
                return "none".to_string();
            }
            let text = bytes_of(bytes, len).escape_ascii().to_string();
            (self.api.rocksdb_free)(bytes.cast());
            text
        }
    }

    fn get(&self, key: &[u8], at: u64) -> String {
        let (mut len, mut ts, mut ts_len) = (0, null_mut(), 0);
        let (k, kl) = pointer(key);
        self.reading(at, None, |options| {
            let mut value = null_mut();
            // SAFETY: live objects.
            let error = error_of(self.api, |e| unsafe {
                value = (self.api.rocksdb_get_cf_with_ts)(
                    self.db,
                    options,
                    self.stamped,
                    k,
                    kl,
                    &raw mut len,
                    &raw mut ts,
                    &raw mut ts_len,
                    e,
                );
            });
            // SAFETY: as the call gave them.
            let (value, ts) = unsafe { (self.taken(value, len), self.taken(ts, ts_len)) };
            format!("{} at {at}: {value} of {ts} {error}", key.escape_ascii())
        })
    }

    fn multi_get(&self, keys: &[Vec<u8>], at: u64) -> String {
        let count = keys.len();
        let pointers: Vec<Bytes> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lens: Vec<size_t> = keys.iter().map(Vec::len).collect();
        let cfs = vec![self.stamped; count];
        let (mut values, mut value_lens) = (vec![null_mut(); count], vec![0; count]);
        let (mut stamps, mut stamp_lens) = (vec![null_mut(); count], vec![0; count]);
        let mut errs = vec![null_mut(); count];
        self.reading(at, None, |options| {
            // SAFETY: live objects, and arrays of that length.
            unsafe {
                (self.api.rocksdb_multi_get_cf_with_ts)(
                    self.db,
                    options,
                    cfs.as_ptr(),
                    count,
                    pointers.as_ptr(),
                    lens.as_ptr(),
                    values.as_mut_ptr(),
                    value_lens.as_mut_ptr(),
                    stamps.as_mut_ptr(),
                    stamp_lens.as_mut_ptr(),
                    errs.as_mut_ptr(),
                );
            }
        });
        let each = (0..count).map(|i| {
            // SAFETY: as the call gave them.
            unsafe {
                let error = error_text(errs[i], self.api.rocksdb_free).unwrap_or_default();
                let value = self.taken(values[i], value_lens[i]);
                format!("{value} of {} {error}", self.taken(stamps[i], stamp_lens[i]))
            }
        });
        each.collect::<Vec<_>>().join(", ")
    }

    fn shown(&self, iter: Object) -> String {
        let part = |get: unsafe extern "C" fn(Object, *mut size_t) -> Bytes| {
            let mut len = 0;
            // SAFETY: a valid iterator.
            unsafe { bytes_of(get(iter, &raw mut len), len) }.escape_ascii().to_string()
        };
        let api = self.api;
        let (key, value) = (part(api.rocksdb_iter_key), part(api.rocksdb_iter_value));
        format!("{key}@{}={value}", part(api.rocksdb_iter_timestamp))
    }

    /// The entries that iterators show both ways, and around some keys.
    fn scan(&self, draw: &mut SplitMix, at: u64, start: Option<u64>) -> Vec<String> {
        let api = self.api;
        let mut log = vec![format!("scan at {at} from {start:?}")];
        self.reading(at, start, |options| {
            // SAFETY: live objects.
            unsafe {
                let iter = (api.rocksdb_create_iterator_cf)(self.db, options, self.stamped);
                (api.rocksdb_iter_seek_to_first)(iter);
                while (api.rocksdb_iter_valid)(iter) != 0 {
                    log.push(self.shown(iter));
                    (api.rocksdb_iter_next)(iter);
                }
                // Going backward RocksDB shows deletions from before `start`: only where there are none it can be compared.
                let both_ways = start.is_none_or(|start| start == 0);
                log.push("back".to_string());
                if both_ways {
                    (api.rocksdb_iter_seek_to_last)(iter);
                }
                while both_ways && (api.rocksdb_iter_valid)(iter) != 0 {
                    log.push(self.shown(iter));
                    (api.rocksdb_iter_prev)(iter);
                }
                for _ in 0..4 {
                    let (target, back) = (drawn_key(draw), draw.below(2) == 0 && both_ways);
                    let (k, kl) = pointer(&target);
                    log.push(format!("around {} {back}", target.escape_ascii()));
                    match back {
                        true => (api.rocksdb_iter_seek_for_prev)(iter, k, kl),
                        false => (api.rocksdb_iter_seek)(iter, k, kl),
                    }
                    for _ in 0..4 {
                        if (api.rocksdb_iter_valid)(iter) == 0 {
                            break;
                        }
                        log.push(self.shown(iter));
                        match draw.below(2) {
                            1 if both_ways => (api.rocksdb_iter_prev)(iter),
                            _ => (api.rocksdb_iter_next)(iter),
                        }
                    }
                }
                log.push(error_of(api, |e| (api.rocksdb_iter_get_error)(iter, e)));
                (api.rocksdb_iter_destroy)(iter);
            }
        });
        log
    }

    fn flush(&self) {
        // SAFETY: live objects.
        let error = error_of(self.api, |e| unsafe {
            (self.api.rocksdb_flush_cf)(self.db, (self.api.rocksdb_flushoptions_create)(), self.stamped, e);
        });
        assert_eq!(error, "");
    }

    /// Rewrites everything; with `low`, without history below it.
    fn compact(&self, low: Option<u64>) {
        let mut low = low.map(u64::to_le_bytes);
        // SAFETY: live objects; the bytes outlive the options.
        unsafe {
            let options = (self.api.rocksdb_compactoptions_create)();
            (self.api.rocksdb_compactoptions_set_bottommost_level_compaction)(options, 2);
            if let Some(low) = &mut low {
                let low = low.as_mut_ptr().cast();
                (self.api.rocksdb_compactoptions_set_full_history_ts_low)(options, low, 8);
            }
            (self.api.rocksdb_compact_range_cf_opt)(self.db, self.stamped, options, null(), 0, null(), 0);
            (self.api.rocksdb_compactoptions_destroy)(options);
        }
    }

    fn increase_low(&self, low: &[u8]) -> String {
        let (l, ll) = pointer(low);
        // SAFETY: live objects.
        error_of(self.api, |e| unsafe {
            (self.api.rocksdb_increase_full_history_ts_low)(self.db, self.stamped, l, ll, e);
        })
    }

    fn low(&self, cf: Object) -> String {
        let (mut len, mut low) = (0, null_mut());
        // SAFETY: live objects.
        let error = error_of(self.api, |e| unsafe {
            low = (self.api.rocksdb_get_full_history_ts_low)(self.db, cf, &raw mut len, e);
        });
        // SAFETY: as the call gave it.
        format!("{} {error}", unsafe { self.taken(low, len) })
    }
}

unsafe fn comparator(api: &Api, len: size_t) -> Object {
    // SAFETY: functions that live as long as the program.
    unsafe {
        (api.rocksdb_comparator_with_ts_create)(
            null_mut(),
            nothing,
            compare,
            compare_ts,
            compare_without,
            name,
            len,
        )
    }
}

fn error_of(api: &Api, call: impl FnOnce(Errptr)) -> String {
    let mut error = null_mut();
    call(&raw mut error);
    // SAFETY: a message of this library, or null.
    unsafe { error_text(error, api.rocksdb_free) }.unwrap_or_default()
}

/// Plays a history in turns of `apis`; gives what was answered.
fn play(apis: &[&Api], seed: u64, dir: &Path) -> Vec<String> {
    let mut draw = SplitMix::new(seed);
    let partitioned = draw.below(2) == 0;
    let collapses = draw.below(2) == 0;
    let (mut log, mut now, mut low) = (Vec::new(), 100u64, 0);
    for turn in 0..6 {
        let trim = (turn == 4 && draw.below(2) == 0).then(|| now - draw.below(10));
        let session = Session::open(apis[turn % apis.len()], dir, partitioned, trim);
        if let Some(trim) = trim {
            log.push(format!("trimmed to {trim}"));
            now = trim.max(100);
        }
        log.push(format!("turn {turn}: low {}", session.low(session.stamped)));
        for _ in 0..40 {
            now += draw.below(3);
            let (key, at) = (drawn_key(&mut draw), (low.max(95)) + draw.below(now - low.max(95) + 2));
            match draw.below(30) {
                0..10 => log.push(session.put(&key, now, format!("v{now}").as_bytes())),
                10..13 => log.push(session.delete(&key, now)),
                13..16 => log.push(session.batch(&mut draw, now)),
                16..20 => log.push(session.get(&key, at)),
                20..22 => {
                    let keys: Vec<_> = (0..5).map(|_| drawn_key(&mut draw)).collect();
                    log.push(session.multi_get(&keys, at));
                }
                22..24 => log.extend(session.scan(&mut draw, at, None)),
                24..26 => {
                    let start = low + draw.below(at - low + 1);
                    log.extend(session.scan(&mut draw, at, Some(start)));
                }
                26..28 => session.flush(),
                28 if collapses => {
                    low = low.max(now - draw.below(15));
                    log.push(session.increase_low(&low.to_le_bytes()));
                }
                28 => session.compact(None),
                _ => {
                    if collapses {
                        low = low.max(now - draw.below(15));
                    }
                    session.compact(collapses.then_some(low));
                    // Everything that is left, as it is stored.
                    log.extend(session.scan(&mut draw, u64::MAX, Some(0)));
                }
            }
        }
        session.close();
    }
    log
}

#[test]
fn drawn_histories_have_the_same_answers_and_go_from_one_library_to_the_other() {
    let apis: Vec<_> = libraries().iter().map(|(_, path)| ManuallyDrop::new(Api::load(path))).collect();
    let first = std::env::var("OUTCROP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + 6 {
        println!("history {seed} (OUTCROP_SEED={seed})");
        let [ours, theirs] = &apis[..] else {
            let dir = tempfile::tempdir().unwrap();
            play(&[&apis[0]], seed, &dir.path().join("db"));
            continue;
        };
        let turns: [&[&Api]; 4] = [&[theirs], &[ours], &[ours, theirs], &[theirs, ours]];
        let logs = turns.map(|apis| {
            let dir = tempfile::tempdir().unwrap();
            play(apis, seed, &dir.path().join("db"))
        });
        for (who, log) in ["ours", "ours, then RocksDB", "RocksDB, then ours"].iter().zip(&logs[1..]) {
            for (at, (given, expected)) in log.iter().zip(&logs[0]).enumerate() {
                let before = logs[0][at.saturating_sub(8)..at].join("\n");
                assert_eq!(given, expected, "history {seed}, {who}, after\n{before}");
            }
            assert_eq!(log.len(), logs[0].len(), "history {seed}, {who}");
        }
    }
}

#[test]
fn misfitting_calls_fail_in_the_same_words() {
    let script = |api: &Api, dir: &Path| {
        let session = Session::open(api, dir, false, None);
        // SAFETY: it has no preconditions.
        let read = unsafe { (api.rocksdb_readoptions_create)() };
        let (db, write) = (session.db, session.write);
        let (stamped, default) = (session.stamped, session.default);
        let ((k, kl), (v, vl)) = (pointer(b"key"), pointer(b"value"));
        let (four, eight) = (1u32.to_le_bytes(), 7u64.to_le_bytes());
        let ((t4, t4l), (t8, t8l)) = (pointer(&four), pointer(&eight));
        let mut len = 0;
        let mut log = Vec::new();
        let mut said = |call: &mut dyn FnMut(Errptr)| log.push(error_of(api, call));
        // SAFETY: live objects.
        unsafe {
            said(&mut |e| (api.rocksdb_put_cf_with_ts)(db, write, stamped, k, kl, t4, t4l, v, vl, e));
            said(&mut |e| (api.rocksdb_put_cf_with_ts)(db, write, default, k, kl, t8, t8l, v, vl, e));
            said(&mut |e| (api.rocksdb_put_with_ts)(db, write, k, kl, t8, t8l, v, vl, e));
            said(&mut |e| (api.rocksdb_delete_with_ts)(db, write, k, kl, t8, t8l, e));
            said(&mut |e| (api.rocksdb_singledelete_cf_with_ts)(db, write, stamped, k, kl, t4, t4l, e));
            said(&mut |e| {
                (api.rocksdb_get_cf)(db, read, stamped, k, kl, &raw mut len, e);
            });
            said(&mut |e| {
                let iter = (api.rocksdb_create_iterator_cf)(db, read, stamped);
                (api.rocksdb_iter_get_error)(iter, e);
                (api.rocksdb_iter_destroy)(iter);
            });
            said(&mut |e| (api.rocksdb_increase_full_history_ts_low)(db, stamped, t4, t4l, e));
            said(&mut |e| (api.rocksdb_increase_full_history_ts_low)(db, default, t8, t8l, e));
            (api.rocksdb_readoptions_set_timestamp)(read, t8, t8l);
            said(&mut |e| {
                (api.rocksdb_get)(db, read, k, kl, &raw mut len, e);
            });
            (api.rocksdb_readoptions_set_timestamp)(read, t4, t4l);
            said(&mut |e| {
                (api.rocksdb_get_cf)(db, read, stamped, k, kl, &raw mut len, e);
            });
            log.push(session.low(default));
            log.push(session.increase_low(&9u64.to_le_bytes()));
            log.push(session.increase_low(&5u64.to_le_bytes()));
            log.push(session.put(b"key", 10, b"value"));
            log.push(session.get(b"key", 8));
            session.flush();
            log.push(session.get(b"key", 8));
            log.push(session.get(b"key", 10));
            let batch = (api.rocksdb_writebatch_create)();
            (api.rocksdb_writebatch_put_cf_with_ts)(batch, stamped, k, kl, t4, t4l, v, vl);
            (api.rocksdb_writebatch_put_cf_with_ts)(batch, default, k, kl, t8, t8l, v, vl);
            log.push(format!("{} writes", (api.rocksdb_writebatch_count)(batch)));
            (api.rocksdb_writebatch_put_cf)(batch, stamped, k, kl, v, vl);
            log.push(error_of(api, |e| (api.rocksdb_write)(db, write, batch, e)));
            log.push(error_of(api, |e| {
                (api.rocksdb_writebatch_update_timestamps)(batch, t4, t4l, null_mut(), ts_size, e);
            }));
            (api.rocksdb_writebatch_destroy)(batch);
        }
        session.close();
        log
    };
    let log = Api::same_on_both(script);
    assert_eq!(log[0], "Invalid argument: Timestamp sizes mismatch: expect 8, 4 given");
}
