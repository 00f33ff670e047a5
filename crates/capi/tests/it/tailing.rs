//! A tailing iterator is made anew each time it is positioned: an error of that is the error of that time.

use crate::library::error_text;
use libc::c_char;
use outcrop_capi::*;
use std::ffi::CString;
use std::path::PathBuf;
use std::ptr::null_mut;

/// The text that a function left in its `errptr`.
unsafe fn told(error: *mut c_char) -> Option<String> {
    // SAFETY: null, or a text of the library, which frees it.
    unsafe { error_text(error, rocksdb_free) }
}

#[test]
fn a_tailing_iterator_goes_on_once_its_tables_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let c_path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: objects are made and destroyed by the C API, and used in between.
    unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, true.into());
        rocksdb_options_set_disable_auto_compactions(options, true.into());
        // So few that of many tables the first are closed again.
        rocksdb_options_set_max_open_files(options, 20);
        let mut error = null_mut();
        let db = rocksdb_open(options, c_path.as_ptr(), &mut error);
        assert_eq!(told(error), None);
        let (write, flush) = (rocksdb_writeoptions_create(), rocksdb_flushoptions_create());
        for key in 0..60u8 {
            let mut error = null_mut();
            rocksdb_put(db, write, (&raw const key).cast(), 1, (&raw const key).cast(), 1, &mut error);
            rocksdb_flush(db, flush, &mut error);
            assert_eq!(told(error), None);
        }
        let read = rocksdb_readoptions_create();
        rocksdb_readoptions_set_tailing(read, true.into());
        let iter = rocksdb_create_iterator(db, read);
        let status = |iter: *mut rocksdb_iterator_t| {
            let mut error = null_mut();
            rocksdb_iter_get_error(iter, &mut error);
            told(error)
        };
        rocksdb_iter_seek_to_first(iter);
        assert_eq!((rocksdb_iter_valid(iter), status(iter)), (1, None));

        let tables = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let oldest: PathBuf =
            tables.filter(|path| path.extension().is_some_and(|e| e == "sst")).min().unwrap();
        let aside = path.join("aside");
        std::fs::rename(&oldest, &aside).unwrap();
        for _ in 0..2 {
            rocksdb_iter_seek_to_first(iter);
            assert_eq!(rocksdb_iter_valid(iter), 0);
            assert!(status(iter).is_some_and(|text| text.contains(".sst")), "the table is not there");
        }
        std::fs::rename(&aside, &oldest).unwrap();
        for again in [rocksdb_iter_seek_to_first, rocksdb_iter_seek_to_last] {
            again(iter);
            assert_eq!((rocksdb_iter_valid(iter), status(iter)), (1, None), "the table is there again");
        }
        rocksdb_iter_next(iter);
        assert_eq!((rocksdb_iter_valid(iter), status(iter)), (0, None));

        rocksdb_iter_destroy(iter);
        rocksdb_readoptions_destroy(read);
        rocksdb_writeoptions_destroy(write);
        rocksdb_flushoptions_destroy(flush);
        rocksdb_close(db);
        rocksdb_options_destroy(options);
    }
}
