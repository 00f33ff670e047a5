//! `rocksdb_readoptions_set_verify_checksums`, beside RocksDB's: which reads fail of a damaged table, and the data that others give.

use crate::library::{Bytes, Errptr, Object, c_functions, error_of, succeeding};
use libc::{c_char, c_int, c_uchar, size_t};
use std::ffi::CString;
use std::path::{Path, PathBuf};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_set_verify_checksums: fn(Object, c_uchar);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut libc::c_void);
}

const VALUE: &[u8] = b"the only value";

fn file_of(dir: &Path, kind: &str) -> PathBuf {
    let mut paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == kind)).unwrap()
}

/// The word before the text of an error, which is another one for each library.
fn kind_of(error: &str) -> String {
    error.split(':').next().unwrap().to_string()
}

/// The answers of a get and of an iterator under options that verify or do not.
fn read(api: &Api, db: Object, verify: u8) -> [String; 2] {
    // SAFETY: live objects; values have the lengths that they are given with.
    unsafe {
        let options = (api.rocksdb_readoptions_create)();
        (api.rocksdb_readoptions_set_verify_checksums)(options, verify);
        let (mut len, mut value) = (0, std::ptr::null_mut());
        let error = error_of(api.rocksdb_free, |errptr| {
            value = (api.rocksdb_get)(db, options, c"key".as_ptr(), 3, &raw mut len, errptr);
        });
        let text = |value: Bytes, len: usize| {
            String::from_utf8_lossy(std::slice::from_raw_parts(value.cast::<u8>(), len)).into_owned()
        };
        let got = if value.is_null() { kind_of(&error) } else { text(value, len) };
        let iter = (api.rocksdb_create_iterator)(db, options);
        (api.rocksdb_iter_seek_to_first)(iter);
        let first = if (api.rocksdb_iter_valid)(iter) != 0 {
            let value = (api.rocksdb_iter_value)(iter, &raw mut len);
            text(value, len)
        } else {
            kind_of(&error_of(api.rocksdb_free, |errptr| (api.rocksdb_iter_get_error)(iter, errptr)))
        };
        (api.rocksdb_iter_destroy)(iter);
        [got, first]
    }
}

fn read_damaged(kind: &str) -> [[String; 2]; 2] {
    Api::same_on_both(|api, dir| {
        let path = CString::new(dir.to_str().unwrap()).unwrap();
        // SAFETY: live objects and NUL-terminated strings.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_compression)(options, 0);
            (api.rocksdb_options_set_enable_blob_files)(options, u8::from(kind == "blob"));
            let open = || succeeding(api.rocksdb_free, |e| (api.rocksdb_open)(options, path.as_ptr(), e));
            let db = open();
            let (key, value) = (c"key".as_ptr(), VALUE.as_ptr().cast());
            let write = (api.rocksdb_writeoptions_create)();
            succeeding(api.rocksdb_free, |e| (api.rocksdb_put)(db, write, key, 3, value, VALUE.len(), e));
            let flush = (api.rocksdb_flushoptions_create)();
            succeeding(api.rocksdb_free, |e| (api.rocksdb_flush)(db, flush, e));
            (api.rocksdb_close)(db);
            let file = file_of(dir, kind);
            let mut bytes = std::fs::read(&file).unwrap();
            let at = bytes.windows(VALUE.len()).position(|window| window == VALUE).unwrap();
            bytes[at..at + 3].copy_from_slice(b"THE");
            std::fs::write(&file, bytes).unwrap();
            let db = open();
            let answers = [read(api, db, 1), read(api, db, 0)];
            (api.rocksdb_close)(db);
            answers
        }
    })
}

#[test]
fn damaged_values_are_given_by_reads_that_do_not_verify() {
    for kind in ["sst", "blob"] {
        let [verified, unverified] = read_damaged(kind);
        assert_eq!(verified, ["Corruption", "Corruption"], "{kind}");
        assert_eq!(unverified, ["THE only value", "THE only value"], "{kind}");
    }
}
