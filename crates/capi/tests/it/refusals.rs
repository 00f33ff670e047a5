//! The caller sees each refusal: as an error, or in words, never as a write that is lost or a crash.

use crate::library::error_text;
use libc::c_char;
use outcrop_capi::*;
use std::ffi::CString;
use std::ptr::null_mut;

fn text(error: *mut c_char) -> String {
    // SAFETY: null, or a message of the library.
    unsafe { error_text(error, rocksdb_free) }.expect("no error")
}

#[test]
fn readers_do_not_create_column_families() {
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().to_str().unwrap()).unwrap();
    let names = [c"default".as_ptr(), c"unknown".as_ptr()];
    let mut handles = [null_mut(); 2];
    // SAFETY: the contract of the C API.
    unsafe {
        let mut error = null_mut();
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, settings::Flag(1));
        rocksdb_close(rocksdb_open(options, path.as_ptr(), &mut error));
        assert!(error.is_null());
        let given = [options.cast_const(), options];
        for create in [0, 1] {
            rocksdb_options_set_create_missing_column_families(options, settings::Flag(create));
            let (at, of) = (path.as_ptr(), given.as_ptr());
            let handles = handles.as_mut_ptr();
            let mut error = null_mut();
            let read_only = rocksdb_open_for_read_only_column_families(
                options,
                at,
                2,
                names.as_ptr(),
                of,
                handles,
                0,
                &mut error,
            );
            assert!(read_only.is_null());
            // As RocksDB 11.8.1 says it.
            let said = text(error);
            assert_eq!(
                said.to_lowercase().find("invalid argument: column family not found: unknown"),
                Some(0)
            );
            let mut error = null_mut();
            let secondary = rocksdb_open_as_secondary_column_families(
                options,
                at,
                at,
                2,
                names.as_ptr(),
                of,
                handles,
                &mut error,
            );
            assert!(secondary.is_null());
            assert!(text(error).starts_with("Invalid argument: "));
        }
        rocksdb_options_destroy(options);
    }
    assert_eq!(handles, [null_mut(); 2]);
}
