//! `rocksdb_writebatch_*`.

use crate::db::rocksdb_column_family_handle_t;
use crate::memory::{give_back, hand_out, slice};
use libc::{c_char, c_int, size_t};
use outcrop::WriteBatch;

pub struct rocksdb_writebatch_t(pub(crate) WriteBatch);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t {
    hand_out(rocksdb_writebatch_t(WriteBatch::new()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(batch) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t) {
    // SAFETY: the contract of the C API.
    unsafe { &mut *batch }.0.clear();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_count(batch: *mut rocksdb_writebatch_t) -> c_int {
    // SAFETY: the contract of the C API.
    unsafe { &*batch }.0.count() as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_data(
    batch: *mut rocksdb_writebatch_t,
    len: *mut size_t,
) -> *const c_char {
    // SAFETY: the contract of the C API; the bytes stay valid until the batch changes.
    unsafe {
        let bytes = (*batch).0.as_bytes();
        *len = bytes.len();
        bytes.as_ptr().cast()
    }
}

/// Writes of key and value: to the default column family, and to a named one.
macro_rules! key_value {
    ($($method:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            // SAFETY: the contract of the C API.
            unsafe { (*batch).0.$method(0, slice(key, key_len), slice(value, value_len)) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            // SAFETY: the contract of the C API.
            unsafe { (*batch).0.$method((*cf).0.id(), slice(key, key_len), slice(value, value_len)) }
        }
    )*};
}

key_value! {
    put: rocksdb_writebatch_put rocksdb_writebatch_put_cf;
    merge: rocksdb_writebatch_merge rocksdb_writebatch_merge_cf;
    delete_range: rocksdb_writebatch_delete_range rocksdb_writebatch_delete_range_cf;
}

/// Writes of a key alone.
macro_rules! key_only {
    ($($method:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(batch: *mut rocksdb_writebatch_t, key: *const c_char, key_len: size_t) {
            // SAFETY: the contract of the C API.
            unsafe { (*batch).0.$method(0, slice(key, key_len)) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
        ) {
            // SAFETY: the contract of the C API.
            unsafe { (*batch).0.$method((*cf).0.id(), slice(key, key_len)) }
        }
    )*};
}

key_only! {
    delete: rocksdb_writebatch_delete rocksdb_writebatch_delete_cf;
    single_delete: rocksdb_writebatch_singledelete rocksdb_writebatch_singledelete_cf;
}
