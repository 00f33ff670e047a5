//! Databases whose values expire, beside RocksDB's: what is read, stored and dropped, and files that go from one to the other.
//!
//! Nothing waits for time to pass: values are written past the layer, with times of long ago.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    Bytes,
    size_t,
    Bytes,
    size_t,
    *mut *mut c_char,
    *mut size_t,
    *mut c_uchar,
) -> c_uchar;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_compaction_filter: fn(Object, Object);
    rocksdb_compactionfilter_create: fn(*mut c_void, unsafe extern "C" fn(*mut c_void), Filter, unsafe extern "C" fn(*mut c_void) -> Bytes) -> Object;
    rocksdb_compactionfilter_destroy: fn(Object);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_open_with_ttl: fn(Object, Bytes, c_int, Errptr) -> Object;
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_open_column_families_with_ttl: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, *const c_int, Errptr) -> Object;
    rocksdb_create_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_create_column_family_with_ttl: fn(Object, Object, Bytes, c_int, Errptr) -> Object;
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_merge: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get: fn(Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_key_may_exist: fn(Object, Object, Bytes, size_t, *mut *mut c_char, *mut size_t, Bytes, size_t, *mut c_uchar) -> c_uchar;
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_merge: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete: fn(Object, Bytes, size_t);
    rocksdb_writebatch_delete_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_put_log_data: fn(Object, Bytes, size_t);
    rocksdb_writebatch_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_destroy: fn(Object);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_compact_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_free: fn(*mut c_void);
}

/// 2017: later than what is damage, long before now.
const LONG_AGO: i32 = 1_500_000_000;

fn now() -> i32 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i32
}

fn with_time(value: &str, time: i32) -> Vec<u8> {
    [value.as_bytes(), &time.to_le_bytes()].concat()
}

/// Takes what is asked of it down in `ASKED`; changes what begins with c, removes what begins with r.
unsafe extern "C" fn filter(
    _state: *mut c_void,
    _level: c_int,
    key: Bytes,
    key_len: size_t,
    value: Bytes,
    value_len: size_t,
    new: *mut *mut c_char,
    new_len: *mut size_t,
    changed: *mut c_uchar,
) -> c_uchar {
    // SAFETY: as they were given.
    unsafe {
        let (key, value) = (bytes_of(key, key_len), bytes_of(value, value_len));
        ASKED.lock().unwrap().push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
        if value.first() == Some(&b'c') {
            (*new, *new_len, *changed) = (c"changed".as_ptr().cast_mut(), 7, 1);
        }
        (value.first() == Some(&b'r')).into()
    }
}

static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn nothing(_state: *mut c_void) {}

unsafe extern "C" fn filter_name(_state: *mut c_void) -> Bytes {
    c"test.filter".as_ptr()
}

unsafe fn bytes_of<'b>(start: Bytes, len: size_t) -> &'b [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: bytes of the library's.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

struct Session<'a> {
    api: &'a Api,
    db: Object,
    options: Object,
    read: Object,
    write: Object,
}

fn error_of(api: &Api, call: impl FnOnce(Errptr)) -> String {
    let mut error = null_mut();
    call(&raw mut error);
    // SAFETY: a message of this library, or null.
    unsafe { error_text(error, api.rocksdb_free) }.unwrap_or_default()
}

fn pointer(text: &[u8]) -> (Bytes, size_t) {
    (text.as_ptr().cast(), text.len())
}

impl<'a> Session<'a> {
    /// `None`: without a TTL.
    fn open(api: &'a Api, dir: &Path, ttl: Option<c_int>) -> Session<'a> {
        // SAFETY: live objects.
        unsafe { Session::open_under(api, dir, ttl, (api.rocksdb_options_create)()) }
    }

    unsafe fn open_under(api: &'a Api, dir: &Path, ttl: Option<c_int>, options: Object) -> Session<'a> {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        let mut db = null_mut();
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_uint64add_merge_operator)(options);
            let error = error_of(api, |e| {
                db = match ttl {
                    Some(ttl) => (api.rocksdb_open_with_ttl)(options, path.as_ptr(), ttl, e),
                    None => (api.rocksdb_open)(options, path.as_ptr(), e),
                };
            });
            assert_eq!(error, "");
            let (read, write) = ((api.rocksdb_readoptions_create)(), (api.rocksdb_writeoptions_create)());
            Session { api, db, options, read, write }
        }
    }

    fn close(self) {
        // SAFETY: live objects.
        unsafe {
            (self.api.rocksdb_close)(self.db);
            (self.api.rocksdb_options_destroy)(self.options);
        }
    }

    fn done(&self, call: impl FnOnce(Errptr)) {
        assert_eq!(error_of(self.api, call), "");
    }

    fn put(&self, key: &str, value: &[u8]) {
        let ((k, kl), (v, vl)) = (pointer(key.as_bytes()), pointer(value));
        // SAFETY: live objects.
        self.done(|e| unsafe { (self.api.rocksdb_put)(self.db, self.write, k, kl, v, vl, e) });
    }

    fn add(&self, key: &str, number: u64) {
        let number = number.to_le_bytes();
        let ((k, kl), (v, vl)) = (pointer(key.as_bytes()), pointer(&number));
        // SAFETY: live objects.
        self.done(|e| unsafe { (self.api.rocksdb_merge)(self.db, self.write, k, kl, v, vl, e) });
    }

    unsafe fn taken(&self, value: *mut c_char, len: size_t) -> Option<Vec<u8>> {
        // SAFETY: malloc'ed, of that length, or null.
        unsafe {
            let taken = (!value.is_null()).then(|| bytes_of(value, len).to_vec());
            if !value.is_null() {
                (self.api.rocksdb_free)(value.cast());
            }
            taken
        }
    }

    fn raw(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let ((k, kl), mut len, mut value) = (pointer(key.as_bytes()), 0, null_mut());
        // SAFETY: live objects.
        unsafe {
            let error = error_of(self.api, |e| {
                value = (self.api.rocksdb_get)(self.db, self.read, k, kl, &raw mut len, e);
            });
            let value = self.taken(value, len);
            if error.is_empty() { Ok(value) } else { Err(error) }
        }
    }

    /// By `get`, `multi_get` and `key_may_exist`.
    fn get(&self, key: &str) -> String {
        let ((k, kl), mut len, mut value, mut error) = (pointer(key.as_bytes()), 0, null_mut(), null_mut());
        let (mut may_value, mut may_len, mut found) = (null_mut(), 0, 0);
        // SAFETY: live objects, arrays of one.
        unsafe {
            let (k, kl) = (&raw const k, &raw const kl);
            (self.api.rocksdb_multi_get)(
                self.db,
                self.read,
                1,
                k,
                kl,
                &raw mut value,
                &raw mut len,
                &raw mut error,
            );
            let many =
                error_text(error, self.api.rocksdb_free).map_or_else(|| Ok(self.taken(value, len)), Err);
            let (may_value_at, may_len_at) = (&raw mut may_value, &raw mut may_len);
            let may = (self.api.rocksdb_key_may_exist)(
                self.db,
                self.read,
                *k,
                *kl,
                may_value_at,
                may_len_at,
                null(),
                0,
                &raw mut found,
            );
            let one = self.raw(key);
            assert_eq!(one, many);
            // RocksDB's found what is in the memtable only; what is shown must be the value.
            let shown = self.taken(may_value, may_len).filter(|_| found != 0);
            assert!(shown.is_none() || Ok(shown) == one);
            let text = one.map(|value| value.map(|value| value.escape_ascii().to_string()));
            // Through the C API RocksDB answers that any key may exist.
            assert!(may != 0 || !matches!(text, Ok(Some(_))), "{key}");
            format!("{text:?}")
        }
    }

    fn rows(&self) -> Vec<String> {
        let api = self.api;
        let (mut rows, mut back) = (Vec::new(), Vec::new());
        // SAFETY: live objects.
        unsafe {
            let iter = (api.rocksdb_create_iterator)(self.db, self.read);
            let row = || {
                let (mut key_len, mut len) = (0, 0);
                let key = bytes_of((api.rocksdb_iter_key)(iter, &raw mut key_len), key_len);
                let value = bytes_of((api.rocksdb_iter_value)(iter, &raw mut len), len);
                format!("{}={}", key.escape_ascii(), value.escape_ascii())
            };
            (api.rocksdb_iter_seek_to_first)(iter);
            while (api.rocksdb_iter_valid)(iter) != 0 {
                rows.push(row());
                (api.rocksdb_iter_next)(iter);
            }
            (api.rocksdb_iter_seek_to_last)(iter);
            while (api.rocksdb_iter_valid)(iter) != 0 {
                back.push(row());
                (api.rocksdb_iter_prev)(iter);
            }
            (api.rocksdb_iter_destroy)(iter);
        }
        back.reverse();
        assert_eq!(rows, back);
        rows
    }

    fn flush(&self) {
        // SAFETY: live objects.
        self.done(|e| unsafe {
            (self.api.rocksdb_flush)(self.db, (self.api.rocksdb_flushoptions_create)(), e);
        });
    }

    fn compact(&self) {
        // SAFETY: a live database; null is no bound.
        unsafe { (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0) }
    }
}

/// The value of a row, with its time read from the bytes: `now`, or the number.
fn timed(stored: &[u8], began: i32) -> String {
    let (value, time) = stored.split_last_chunk::<4>().expect("a time");
    let time = i32::from_le_bytes(*time);
    let time = if (began..=now()).contains(&time) { "now".to_string() } else { time.to_string() };
    format!("{} at {time}", value.escape_ascii())
}

#[test]
fn what_is_read_is_checked_and_what_has_expired_goes_with_a_compaction() {
    let told = Api::same_on_both(|api, dir| {
        let plain = Session::open(api, dir, None);
        plain.put("fresh", &with_time("f", now()));
        plain.put("old", &with_time("o", LONG_AGO));
        plain.put("ancient", &with_time("a", 1000));
        plain.put("later than 2038", &with_time("l", -5));
        plain.put("short", b"abc");
        plain.put("empty", b"");
        plain.close();
        let keys = ["fresh", "old", "ancient", "later than 2038", "short", "empty", "none"];
        let db = Session::open(api, dir, Some(3600));
        let mut told: Vec<String> = keys.iter().map(|key| db.get(key)).collect();
        db.flush();
        told.extend(keys.iter().map(|key| db.get(key)));
        // RocksDB reads what is not there for these two.
        for key in ["short", "empty"] {
            let (k, kl) = pointer(key.as_bytes());
            // SAFETY: live objects.
            db.done(|e| unsafe { (api.rocksdb_delete)(db.db, db.write, k, kl, e) });
        }
        told.extend(db.rows());
        db.compact();
        told.extend(db.rows());
        db.close();
        let never = Session::open(api, dir, Some(-1));
        never.put("old again", b"");
        told.extend(never.rows());
        never.close();
        told
    });
    assert_eq!(told[0], r#"Ok(Some("f"))"#);
    assert_eq!(told.last().unwrap(), "old again=");
}

#[test]
fn values_and_operands_are_stored_with_the_time_they_were_written() {
    let told = Api::same_on_both(|api, dir| {
        let began = now();
        let db = Session::open(api, dir, Some(3600));
        db.put("a", b"1");
        db.put("empty", b"");
        db.put("gone", b"1");
        db.add("n", 5);
        db.add("n", 6);
        // SAFETY: live objects.
        let written = unsafe {
            let batch = (api.rocksdb_writebatch_create)();
            let seven = 7u64.to_le_bytes();
            let one = |text: &'static str| pointer(text.as_bytes());
            let ((b, bl), (n, nl), (g, gl)) = (one("b"), one("n"), one("gone"));
            (api.rocksdb_writebatch_put)(batch, b, bl, b, bl);
            (api.rocksdb_writebatch_put_log_data)(batch, b, bl);
            (api.rocksdb_writebatch_merge)(batch, n, nl, seven.as_ptr().cast(), 8);
            (api.rocksdb_writebatch_delete)(batch, g, gl);
            let ((c, cl), (d, dl)) = (one("c"), one("d"));
            (api.rocksdb_writebatch_put)(batch, c, cl, c, cl);
            (api.rocksdb_writebatch_delete_range)(batch, c, cl, d, dl);
            db.done(|e| (api.rocksdb_write)(db.db, db.write, batch, e));
            let mut len = 0;
            let bytes = bytes_of((api.rocksdb_writebatch_data)(batch, &raw mut len), len)[12..].to_vec();
            (api.rocksdb_writebatch_destroy)(batch);
            bytes
        };
        let mut told = vec![format!("{}", written.escape_ascii())];
        told.extend(db.rows());
        db.close();
        let plain = Session::open(api, dir, None);
        let stored = |key: &str| timed(&plain.raw(key).unwrap().unwrap(), began);
        told.extend(["a", "empty", "b"].map(stored));
        plain.close();
        let db = Session::open(api, dir, Some(3600));
        db.compact();
        told.extend(db.rows());
        db.close();
        let plain = Session::open(api, dir, None);
        told.push(timed(&plain.raw("n").unwrap().unwrap(), began));
        plain.close();
        told
    });
    assert!(told.contains(&"a=1".to_string()) && told.contains(&"1 at now".to_string()), "{told:?}");
}

#[test]
fn a_merge_makes_what_has_expired_new_and_the_filter_sees_no_times() {
    let told = Api::same_on_both(|api, dir| {
        let began = now();
        let plain = Session::open(api, dir, None);
        let number = |number: u64, time: i32| [&number.to_le_bytes()[..], &time.to_le_bytes()].concat();
        plain.put("merged", &number(3, LONG_AGO));
        plain.put("not merged", &number(3, LONG_AGO));
        for (key, time) in
            [("change", now()), ("remove", now()), ("keep", now()), ("change too late", LONG_AGO)]
        {
            plain.put(key, &with_time(key, time));
        }
        plain.put("change of 2020", &with_time("change", 1_590_000_000));
        plain.close();
        ASKED.lock().unwrap().clear();
        // SAFETY: live objects.
        let (db, filter) = unsafe {
            let options = (api.rocksdb_options_create)();
            let filter = (api.rocksdb_compactionfilter_create)(null_mut(), nothing, filter, filter_name);
            (api.rocksdb_options_set_compaction_filter)(options, filter);
            // Longer ago than 2020, less than 2017.
            let ttl = now() - 1_580_000_000;
            (Session::open_under(api, dir, Some(ttl), options), filter)
        };
        db.add("merged", 4);
        db.compact();
        let mut told = db.rows();
        let mut asked = std::mem::take(&mut *ASKED.lock().unwrap());
        asked.sort();
        asked.dedup();
        told.extend(asked);
        db.close();
        // SAFETY: no database has it any more.
        unsafe { (api.rocksdb_compactionfilter_destroy)(filter) };
        let plain = Session::open(api, dir, None);
        told.extend(
            ["merged", "change", "change of 2020"].map(|key| timed(&plain.raw(key).unwrap().unwrap(), began)),
        );
        plain.close();
        told
    });
    assert!(told.contains(&"changed at 1590000000".to_string()), "{told:?}");
}

#[test]
fn each_column_family_has_a_time_of_its_own() {
    Api::same_on_both(|api, dir| {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        let names = [c"default", c"short", c"ever"].map(|name| name.as_ptr());
        let (mut told, mut handles) = (Vec::new(), [null_mut(); 3]);
        // SAFETY: live objects and arrays of three.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_create_missing_column_families)(options, 1);
            let (write, read) = ((api.rocksdb_writeoptions_create)(), (api.rocksdb_readoptions_create)());
            let all = [options; 3];
            let mut db = null_mut();
            let error = error_of(api, |e| {
                db = (api.rocksdb_open_column_families)(
                    options,
                    path.as_ptr(),
                    3,
                    names.as_ptr(),
                    all.as_ptr(),
                    handles.as_mut_ptr(),
                    e,
                );
            });
            told.push(error);
            let (k, kl) = pointer(b"k");
            let old = with_time("old", LONG_AGO);
            let (v, vl) = pointer(&old);
            for handle in handles {
                told.push(error_of(api, |e| (api.rocksdb_put_cf)(db, write, handle, k, kl, v, vl, e)));
                (api.rocksdb_column_family_handle_destroy)(handle);
            }
            (api.rocksdb_close)(db);
            let error = error_of(api, |e| {
                db = (api.rocksdb_open_column_families_with_ttl)(
                    options,
                    path.as_ptr(),
                    3,
                    names.as_ptr(),
                    all.as_ptr(),
                    handles.as_mut_ptr(),
                    [1 << 30, 1, 0].as_ptr(),
                    e,
                );
            });
            told.push(error);
            let mut created = Vec::new();
            let error = error_of(api, |e| {
                created.push((api.rocksdb_create_column_family_with_ttl)(
                    db,
                    options,
                    c"made".as_ptr(),
                    1,
                    e,
                ));
            });
            told.push(error);
            let error = error_of(api, |e| {
                created.push((api.rocksdb_create_column_family)(db, options, c"plain".as_ptr(), e));
            });
            told.push(error);
            let error = error_of(api, |e| {
                // RocksDB gives a handle to nothing.
                (api.rocksdb_create_column_family_with_ttl)(db, options, c"made".as_ptr(), 1, e);
            });
            told.push(error.split(": ").next().unwrap().to_string());
            for handle in handles.into_iter().chain(created) {
                (api.rocksdb_compact_range_cf)(db, handle, null(), 0, null(), 0);
                let (mut len, mut value) = (0, null_mut());
                told.push(error_of(api, |e| {
                    value = (api.rocksdb_get_cf)(db, read, handle, k, kl, &raw mut len, e)
                }));
                told.push(format!(
                    "{:?}",
                    (!value.is_null()).then(|| bytes_of(value, len).escape_ascii().to_string())
                ));
                told.push(error_of(api, |e| (api.rocksdb_put_cf)(db, write, handle, k, kl, k, kl, e)));
                value = (api.rocksdb_get_cf)(db, read, handle, k, kl, &raw mut len, null_mut());
                told.push(bytes_of(value, len).escape_ascii().to_string());
                (api.rocksdb_column_family_handle_destroy)(handle);
            }
            (api.rocksdb_close)(db);
        }
        told
    });
}

/// One library writes with a TTL, the other reads, changes and compacts, and the first reads again.
#[test]
fn databases_with_ttl_go_from_one_to_the_other() {
    let libraries = libraries();
    for (first, writer) in &libraries {
        for (second, reader) in libraries.iter().filter(|(name, _)| name != first) {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().join("db");
            let writer = std::mem::ManuallyDrop::new(Api::load(writer));
            let reader = std::mem::ManuallyDrop::new(Api::load(reader));
            let plain = Session::open(&writer, &dir, None);
            plain.put("old", &with_time("o", LONG_AGO));
            plain.close();
            let db = Session::open(&writer, &dir, Some(3600));
            db.put("a", b"1");
            db.add("n", 1);
            db.flush();
            db.put("b", b"2");
            db.add("n", 2);
            db.close();
            let db = Session::open(&reader, &dir, Some(3600));
            let number = |number: u64| format!("n={}", number.to_le_bytes().escape_ascii());
            let rows = |n: u64, o: &str| {
                let rows = ["a=1".to_string(), "b=2".to_string(), number(n), o.to_string()];
                rows.into_iter().filter(|row| !row.is_empty()).collect::<Vec<_>>()
            };
            assert_eq!(db.rows(), rows(3, "old=o"), "{first} to {second}");
            db.add("n", 4);
            db.compact();
            assert_eq!(db.rows(), rows(7, ""), "{first} to {second}");
            db.close();
            let db = Session::open(&writer, &dir, Some(3600));
            assert_eq!(db.rows(), rows(7, ""), "{first} to {second} and back");
            db.close();
        }
    }
}
