//! Read options outlive the snapshot that was set in them: a read by them fails with an error, and none returns newer data.

use crate::library::error_text;
use libc::{c_char, size_t};
use outcrop_capi::*;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// The text that a function left in its `errptr`.
unsafe fn told(error: *mut c_char) -> Option<String> {
    // SAFETY: null, or a text of the library, which frees it.
    unsafe { error_text(error, rocksdb_free) }
}

#[test]
fn reads_at_a_released_snapshot_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
    let key = b"a".as_ptr().cast::<c_char>();
    // SAFETY: objects are made and destroyed by the C API, and used in between.
    unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, true.into());
        let mut error = null_mut();
        let db = rocksdb_open(options, path.as_ptr(), &mut error);
        assert_eq!(told(error), None);
        let (write, read) = (rocksdb_writeoptions_create(), rocksdb_readoptions_create());
        let put = |value: &[u8]| {
            let mut error = null_mut();
            rocksdb_put(db, write, key, 1, value.as_ptr().cast(), value.len(), &mut error);
            assert_eq!(told(error), None);
        };
        let get = || {
            let (mut len, mut error): (size_t, _) = (0, null_mut());
            let value = rocksdb_get(db, read, key, 1, &mut len, &mut error);
            match told(error) {
                Some(text) => Err(text),
                None => {
                    let bytes = std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec();
                    rocksdb_free(value.cast());
                    Ok(bytes)
                }
            }
        };
        put(b"old");
        let snapshot = rocksdb_create_snapshot(db);
        rocksdb_readoptions_set_snapshot(read, snapshot);
        put(b"new");
        assert_eq!(get(), Ok(b"old".to_vec()));
        let before = rocksdb_create_iterator(db, read);
        rocksdb_release_snapshot(db, snapshot);
        rocksdb_compact_range(db, null(), 0, null(), 0);

        let text = get().unwrap_err();
        assert!(text.contains("released"), "{text}");
        let iter = rocksdb_create_iterator(db, read);
        rocksdb_iter_seek_to_first(iter);
        assert_eq!(rocksdb_iter_valid(iter), 0);
        let mut error = null_mut();
        rocksdb_iter_get_error(iter, &mut error);
        assert!(told(error).is_some_and(|text| text.contains("released")));
        rocksdb_iter_destroy(iter);

        // One that was made before goes on, as in RocksDB.
        rocksdb_iter_seek_to_first(before);
        let mut len = 0;
        let value = rocksdb_iter_value(before, &mut len);
        assert_eq!(std::slice::from_raw_parts(value.cast::<u8>(), len), b"old");
        rocksdb_iter_destroy(before);

        // Nothing is held for the options' sake, and they are used again.
        let property = rocksdb_property_value(db, c"rocksdb.num-snapshots".as_ptr());
        assert_eq!(CStr::from_ptr(property).to_str(), Ok("0"));
        rocksdb_free(property.cast());
        rocksdb_readoptions_set_snapshot(read, null());
        assert_eq!(get(), Ok(b"new".to_vec()));
        rocksdb_readoptions_destroy(read);
        rocksdb_writeoptions_destroy(write);
        rocksdb_close(db);
        rocksdb_options_destroy(options);
    }
}
