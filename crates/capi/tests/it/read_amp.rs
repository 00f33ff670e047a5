//! The estimate of read amplification beside RocksDB's: of the bytes of data blocks that are read, those that are looked at.

use crate::library::{Bytes, Errptr, Object, c_functions, succeeding};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::{CStr, CString};
use std::path::Path;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_enable_statistics: fn(Object);
    rocksdb_options_statistics_get_string: fn(Object) -> *mut c_char;
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_set_read_amp_bytes_per_bit: fn(Object, u32);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get: fn(Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

fn key(number: u32) -> String {
    format!("key{number:05}")
}

/// Bytes looked at and read after each step of a script, with a bit for so many bytes.
fn counts(api: &Api, dir: &Path, bytes_per_bit: u32) -> Vec<(&'static str, u64, u64)> {
    let path = CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: live objects, and pointers to live bytes.
    unsafe {
        let table = (api.rocksdb_block_based_options_create)();
        (api.rocksdb_block_based_options_set_read_amp_bytes_per_bit)(table, bytes_per_bit);
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_compression)(options, 0);
        (api.rocksdb_options_enable_statistics)(options);
        (api.rocksdb_options_set_block_based_table_factory)(options, table);
        let db = succeeding(api.rocksdb_free, |e| (api.rocksdb_open)(options, path.as_ptr(), e));
        let writing = (api.rocksdb_writeoptions_create)();
        for number in 0..2000 {
            let (key, value) = (key(number), [b'v'; 100]);
            let (from, len) = (value.as_ptr().cast(), value.len());
            succeeding(api.rocksdb_free, |e| {
                (api.rocksdb_put)(db, writing, key.as_ptr().cast(), key.len(), from, len, e);
            });
        }
        let flushing = (api.rocksdb_flushoptions_create)();
        succeeding(api.rocksdb_free, |e| (api.rocksdb_flush)(db, flushing, e));
        let mut told = Vec::new();
        let mut note = |step| {
            let text = (api.rocksdb_options_statistics_get_string)(options);
            let statistics = CStr::from_ptr(text).to_str().unwrap().to_string();
            (api.rocksdb_free)(text.cast());
            let ticker = |name: &str| {
                let line = statistics.lines().find(|line| line.starts_with(name)).expect("it is there");
                line.rsplit(' ').next().unwrap().parse().unwrap()
            };
            told.push((
                step,
                ticker("rocksdb.read.amp.estimate.useful.bytes "),
                ticker("rocksdb.read.amp.total.read.bytes "),
            ));
        };
        let reading = (api.rocksdb_readoptions_create)();
        let get = |number: u32| {
            let (key, mut len) = (key(number), 0);
            let value = succeeding(api.rocksdb_free, |e| {
                (api.rocksdb_get)(db, reading, key.as_ptr().cast(), key.len(), &raw mut len, e)
            });
            assert_eq!(len, 100);
            (api.rocksdb_free)(value.cast());
        };
        note("written");
        get(7);
        note("one get");
        get(7);
        note("the same get");
        get(8);
        get(1999);
        note("other gets");
        let keys = [key(700), key(701), key(900)];
        let pointers: Vec<Bytes> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lens = keys.each_ref().map(String::len);
        let (mut values, mut found, mut errors) =
            ([std::ptr::null_mut(); 3], [0; 3], [std::ptr::null_mut(); 3]);
        (api.rocksdb_multi_get)(
            db,
            reading,
            3,
            pointers.as_ptr(),
            lens.as_ptr(),
            values.as_mut_ptr(),
            found.as_mut_ptr(),
            errors.as_mut_ptr(),
        );
        assert_eq!(found, [100; 3]);
        values.iter().for_each(|value| (api.rocksdb_free)(value.cast()));
        note("many gets");
        let walk = |from: u32, steps: u32, step: unsafe extern "C" fn(Object)| {
            let (iter, key) = ((api.rocksdb_create_iterator)(db, reading), key(from));
            (api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            for _ in 0..steps {
                assert_eq!((api.rocksdb_iter_valid)(iter), 1);
                step(iter);
            }
            (api.rocksdb_iter_destroy)(iter);
        };
        walk(1500, 3, api.rocksdb_iter_next);
        note("a short scan");
        walk(1490, 300, api.rocksdb_iter_next);
        note("a long scan over the same");
        walk(1200, 100, api.rocksdb_iter_prev);
        note("a scan backward");
        (api.rocksdb_close)(db);
        told
    }
}

#[test]
fn bytes_that_are_looked_at_are_those_of_rocksdb() {
    // With a bit for each byte there is nothing left to chance.
    let counts_by_byte = Api::same_on_both(|api, dir| {
        let mut steps = counts(api, dir, 1);
        // RocksDB looks at some entries more where an iterator turns.
        let turned = steps.last_mut().unwrap();
        turned.1 = turned.1 / 1000 * 1000;
        steps
    });
    assert!(counts_by_byte.iter().skip(1).all(|(_, useful, total)| 0 < *useful && useful < total));
    assert!(Api::same_on_both(|api, dir| counts(api, dir, 0)).iter().all(|step| (step.1, step.2) == (0, 0)));
}

#[test]
fn a_bit_for_many_bytes_estimates_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let api = Api::load(&crate::library::outcrop_library());
    let exact = counts(&api, &dir.path().join("exact"), 1).pop().unwrap();
    let estimated = counts(&api, &dir.path().join("estimated"), 32).pop().unwrap();
    let ratio = estimated.1 as f64 / exact.1 as f64;
    assert!((0.9..1.1).contains(&ratio), "{exact:?} {estimated:?}");
    assert_eq!(exact.2, estimated.2);
}
