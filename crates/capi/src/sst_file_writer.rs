//! `rocksdb_sstfilewriter_*` and ingestion.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{give_back, hand_out, report, set_error, slice, text};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_uchar, size_t};
use outcrop::{Error, IngestExternalFileOptions, Result, SstFileWriter};
use std::path::PathBuf;

/// Accepted where RocksDB takes one; its settings have no counterpart here.
pub struct rocksdb_envoptions_t;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_envoptions_create() -> *mut rocksdb_envoptions_t {
    hand_out(rocksdb_envoptions_t)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_envoptions_destroy(options: *mut rocksdb_envoptions_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(options) }
}

pub struct rocksdb_sstfilewriter_t {
    options: rocksdb_options_t,
    open: Option<SstFileWriter>,
    /// Of the file that was finished last.
    file_size: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_create(
    _env: *const rocksdb_envoptions_t,
    options: *const rocksdb_options_t,
) -> *mut rocksdb_sstfilewriter_t {
    // SAFETY: the contract of the C API.
    let options = unsafe { (*options).clone() };
    hand_out(rocksdb_sstfilewriter_t { options, open: None, file_size: 0 })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_open(
    writer: *mut rocksdb_sstfilewriter_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let writer = &mut *writer;
        let descriptor = writer.options.descriptor("default");
        writer.open = report(errptr, SstFileWriter::create(text(name), &writer.options.env(), &descriptor));
    }
}

/// Runs `add` on the open file.
unsafe fn with_open(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
    add: impl FnOnce(&mut SstFileWriter) -> Result<()>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match &mut (*writer).open {
            Some(open) => {
                report(errptr, add(open));
            }
            None => set_error(errptr, &Error::invalid_argument("File is not opened")),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_put(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { with_open(writer, errptr, |open| open.put(slice(key, keylen), slice(val, vallen))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_add(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { rocksdb_sstfilewriter_put(writer, key, keylen, val, vallen, errptr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_merge(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { with_open(writer, errptr, |open| open.merge(slice(key, keylen), slice(val, vallen))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { with_open(writer, errptr, |open| open.delete(slice(key, keylen))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete_range(
    writer: *mut rocksdb_sstfilewriter_t,
    begin_key: *const c_char,
    begin_keylen: size_t,
    end_key: *const c_char,
    end_keylen: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let (begin, end) = (slice(begin_key, begin_keylen), slice(end_key, end_keylen));
        with_open(writer, errptr, |open| open.delete_range(begin, end));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_finish(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        match (*writer).open.take() {
            Some(open) => {
                if let Some(info) = report(errptr, open.finish()) {
                    (*writer).file_size = info.file_size;
                }
            }
            None => set_error(errptr, &Error::invalid_argument("File is not opened")),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_file_size(
    writer: *mut rocksdb_sstfilewriter_t,
    file_size: *mut u64,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let writer = &*writer;
        *file_size = writer.open.as_ref().map_or(writer.file_size, SstFileWriter::file_size);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_destroy(writer: *mut rocksdb_sstfilewriter_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(writer) }
}

pub struct rocksdb_ingestexternalfileoptions_t(IngestExternalFileOptions);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingestexternalfileoptions_create() -> *mut rocksdb_ingestexternalfileoptions_t
{
    hand_out(rocksdb_ingestexternalfileoptions_t(IngestExternalFileOptions::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingestexternalfileoptions_destroy(
    options: *mut rocksdb_ingestexternalfileoptions_t,
) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(options) }
}

macro_rules! setters {
    ($($name:ident => $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_ingestexternalfileoptions_t, value: c_uchar) {
            // SAFETY: the contract of the C API.
            unsafe { (*options).0.$field = value != 0 };
        }
    )*};
}

setters! {
    rocksdb_ingestexternalfileoptions_set_move_files => move_files;
    rocksdb_ingestexternalfileoptions_set_snapshot_consistency => snapshot_consistency;
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno => allow_global_seqno;
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush => allow_blocking_flush;
    rocksdb_ingestexternalfileoptions_set_ingest_behind => ingest_behind;
    rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level => fail_if_not_bottommost_level;
}

unsafe fn paths(list: *const *const c_char, len: size_t) -> Vec<PathBuf> {
    // SAFETY: the caller passes `len` NUL-terminated strings.
    (0..len).map(|i| unsafe { text(*list.add(i)) }.into()).collect()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file(
    db: *mut rocksdb_t,
    file_list: *const *const c_char,
    list_len: size_t,
    options: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let db = &(*db).0;
        let paths = paths(file_list, list_len);
        report(errptr, db.ingest_external_files(db.default_column_family(), &paths, &(*options).0));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut rocksdb_t,
    handle: *mut rocksdb_column_family_handle_t,
    file_list: *const *const c_char,
    list_len: size_t,
    options: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let paths = paths(file_list, list_len);
        report(errptr, (*db).0.ingest_external_files(&(*handle).0, &paths, &(*options).0));
    }
}
