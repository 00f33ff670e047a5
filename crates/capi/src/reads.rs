//! `rocksdb_get*`, `rocksdb_multi_get*`, and the creation of iterators and snapshots.

use crate::boundary::{ErrorSink, as_result};
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::iterator::rocksdb_iterator_t;
use crate::memory::{Errptr, copy_out, copy_out_text, give_back, hand_out, report, slice};
use crate::read_options::{rocksdb_readoptions_t, rocksdb_snapshot_t};
use libc::{c_char, c_uchar, size_t};
use outcrop::{ColumnFamilyHandle, Error, ErrorKind, PinnedValue, Result, TtlDb};
use std::ops::Deref;

pub struct rocksdb_pinnableslice_t(PinnedValue);

/// A key or value with its length.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct rocksdb_slice_t {
    /// Its first byte.
    pub data: *const c_char,
    /// Its length in bytes.
    pub size: size_t,
}

unsafe fn get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: Option<&ColumnFamilyHandle>,
    (key, key_len): (*const c_char, size_t),
) -> Result<Option<PinnedValue>> {
    // SAFETY: the caller's contract.
    unsafe {
        let (db, is_stamped) = (&(*db).0, (*db).1.is_some());
        let found = db.get_cf_with(
            cf.unwrap_or_else(|| db.default_column_family()),
            slice(key, key_len),
            (*options).get()?,
        );
        if is_stamped { TtlDb::without_stamp(found) } else { found }
    }
}

unsafe fn multi_get(
    db: &rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: &ColumnFamilyHandle,
    keys: &[&[u8]],
) -> Vec<Result<Option<PinnedValue>>> {
    // SAFETY: the caller's contract.
    match unsafe { (*options).get() } {
        Ok(options) => unstamped(db, db.0.multi_get_cf_with(cf, keys, options)),
        Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// The results of a multi-get of the database, as its layer gives them.
fn unstamped(db: &rocksdb_t, found: Vec<Result<Option<PinnedValue>>>) -> Vec<Result<Option<PinnedValue>>> {
    match &db.1 {
        None => found,
        Some(_) => found.into_iter().map(TtlDb::without_stamp).collect(),
    }
}

/// A `malloc`ed copy of a value that was read; null if there is none.
pub(crate) unsafe fn value_out(
    errptr: *mut *mut c_char,
    len: *mut size_t,
    value: Result<Option<impl Deref<Target = [u8]>>>,
) -> *mut c_char {
    // SAFETY: the caller's contract.
    unsafe {
        match report(errptr, value).flatten() {
            Some(value) => {
                *len = value.len();
                copy_out(&value)
            }
            None => {
                *len = 0;
                std::ptr::null_mut()
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    boundary!(errptr, value_out(errptr, value_len, get(db, options, None, (key, key_len))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    boundary!(errptr, value_out(errptr, value_len, get(db, options, Some(&(*cf).0), (key, key_len))))
}

pub(crate) unsafe fn pinned_out(
    errptr: *mut *mut c_char,
    value: Result<Option<PinnedValue>>,
) -> *mut rocksdb_pinnableslice_t {
    // SAFETY: the caller's contract.
    let value = unsafe { report(errptr, value) }.flatten();
    value.map_or(std::ptr::null_mut(), |value| hand_out(rocksdb_pinnableslice_t(value)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    boundary!(errptr, pinned_out(errptr, get(db, options, None, (key, key_len))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_pinnableslice_t {
    boundary!(errptr, pinned_out(errptr, get(db, options, Some(&(*cf).0), (key, key_len))))
}

/// As [`rocksdb_get_pinned_cf`], with the value as the engine gives it; a panic is the caller's.
///
/// # Safety
/// As the C API: what the pointers point to is alive.
///
/// # Errors
/// Those of the read.
pub unsafe fn get_value(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: &[u8],
) -> Result<Option<PinnedValue>> {
    // SAFETY: the caller's contract.
    unsafe { get(db, options, Some(&(*cf).0), (key.as_ptr().cast(), key.len())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_destroy(value: *mut rocksdb_pinnableslice_t) {
    boundary!(give_back(value))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_value(
    value: *const rocksdb_pinnableslice_t,
    len: *mut size_t,
) -> *const c_char {
    boundary!({
        // Null gives null.
        match value.as_ref() {
            Some(value) => {
                *len = value.0.len();
                value.0.as_ptr().cast()
            }
            None => {
                *len = 0;
                std::ptr::null()
            }
        }
    })
}

/// The arrays of a multi-get, which gets a panic as the error of each key.
struct EachKey<T> {
    count: size_t,
    values: *mut *mut T,
    errs: *mut *mut c_char,
}

impl<T> Clone for EachKey<T> {
    fn clone(&self) -> EachKey<T> {
        *self
    }
}

impl<T> Copy for EachKey<T> {}

impl<T> ErrorSink for EachKey<T> {
    unsafe fn tell(self, error: &Error) {
        for i in 0..self.count {
            // SAFETY: the caller's contract: the arrays have one place per key.
            unsafe {
                *self.values.add(i) = std::ptr::null_mut();
                *self.errs.add(i) = copy_out_text(&error.to_string());
            }
        }
    }
}

/// Stores the results of a multi-get in C arrays.
unsafe fn values_out(
    results: Vec<Result<Option<PinnedValue>>>,
    values: *mut *mut c_char,
    lens: *mut size_t,
    errs: *mut *mut c_char,
) {
    for (i, result) in results.into_iter().enumerate() {
        // SAFETY: the caller's arrays have one place per key.
        unsafe {
            *errs.add(i) = std::ptr::null_mut();
            *values.add(i) = value_out(errs.add(i), lens.add(i), result);
        }
    }
}

unsafe fn keys_in<'a>(count: size_t, keys: *const *const c_char, lens: *const size_t) -> Vec<&'a [u8]> {
    // SAFETY: the caller passes `count` keys with their lengths.
    unsafe { (0..count).map(|i| slice(*keys.add(i), *lens.add(i))).collect() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    count: size_t,
    keys: *const *const c_char,
    key_lens: *const size_t,
    values: *mut *mut c_char,
    value_lens: *mut size_t,
    errs: *mut *mut c_char,
) {
    boundary!(EachKey { count, values, errs }, {
        let keys = keys_in(count, keys, key_lens);
        let results = multi_get(&*db, options, (*db).0.default_column_family(), &keys);
        values_out(results, values, value_lens, errs);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cfs: *const *const rocksdb_column_family_handle_t,
    count: size_t,
    keys: *const *const c_char,
    key_lens: *const size_t,
    values: *mut *mut c_char,
    value_lens: *mut size_t,
    errs: *mut *mut c_char,
) {
    boundary!(EachKey { count, values, errs }, {
        let keys = keys_in(count, keys, key_lens);
        let results = match (*options).get() {
            Ok(options) => {
                let pairs: Vec<_> =
                    keys.iter().enumerate().map(|(i, key)| (&(**cfs.add(i)).0, *key)).collect();
                unstamped(&*db, (*db).0.multi_get_pairs_with(&pairs, options))
            }
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        };
        values_out(results, values, value_lens, errs);
    })
}

/// All keys from one column family; results are pinned, null where there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    count: size_t,
    keys: *const *const c_char,
    key_lens: *const size_t,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    boundary!(EachKey { count, values, errs }, {
        let keys = keys_in(count, keys, key_lens);
        all_pinned_out(multi_get(&*db, options, &(*cf).0, &keys), values, errs);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    boundary!({
        let (db, options) = (&*db, &*options);
        hand_out(rocksdb_iterator_t::new(db, db.0.default_column_family(), options))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    boundary!(hand_out(rocksdb_iterator_t::new(&*db, &(*cf).0, &*options)))
}

/// One iterator for each column family, all of one moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterators(
    db: *mut rocksdb_t,
    options: *mut rocksdb_readoptions_t,
    cfs: *mut *mut rocksdb_column_family_handle_t,
    iterators: *mut *mut rocksdb_iterator_t,
    size: size_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, options) = (&*db, &*options);
        let Some(given) = report(errptr, options.get()) else { return };
        let families: Vec<&ColumnFamilyHandle> = (0..size).map(|i| &(**cfs.add(i)).0).collect();
        let made = db.0.cursors_with(&families, given);
        for (i, iter) in report(errptr, made).into_iter().flatten().enumerate() {
            *iterators.add(i) = hand_out(rocksdb_iterator_t::of(iter, db, &(**cfs.add(i)).0, options));
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_snapshot(db: *mut rocksdb_t) -> *const rocksdb_snapshot_t {
    boundary!(hand_out(rocksdb_snapshot_t((*db).0.snapshot())))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_release_snapshot(_db: *mut rocksdb_t, snapshot: *const rocksdb_snapshot_t) {
    boundary!({
        if !snapshot.is_null() {
            // Read options may still have a clone: a read by them fails from now on.
            (*snapshot).0.clone().release();
        }
        give_back(snapshot.cast_mut());
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_snapshot_get_sequence_number(snapshot: *const rocksdb_snapshot_t) -> u64 {
    boundary!((*snapshot).0.sequence().0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_latest_sequence_number(db: *mut rocksdb_t) -> u64 {
    boundary!((*db).0.latest_sequence_number().0)
}

unsafe fn all_pinned_out(
    results: Vec<Result<Option<PinnedValue>>>,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
) {
    for (i, result) in results.into_iter().enumerate() {
        // SAFETY: the caller's arrays have one place per key.
        unsafe {
            *errs.add(i) = std::ptr::null_mut();
            *values.add(i) = pinned_out(errs.add(i), result);
        }
    }
}

/// As [`rocksdb_batched_multi_get_cf`], with the keys as slices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf_slice(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    count: size_t,
    keys: *const rocksdb_slice_t,
    values: *mut *mut rocksdb_pinnableslice_t,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    boundary!(EachKey { count, values, errs }, {
        let keys: Vec<&[u8]> = (0..count).map(|i| slice((*keys.add(i)).data, (*keys.add(i)).size)).collect();
        all_pinned_out(multi_get(&*db, options, &(*cf).0, &keys), values, errs);
    })
}

/// As RocksDB says of a database whose values expire: one without a time is not there.
fn without_unstamped(db: &rocksdb_t, found: Result<Option<PinnedValue>>) -> Result<Option<PinnedValue>> {
    match found {
        Err(error) if db.1.is_some() && error.kind() == ErrorKind::Corruption => Ok(None),
        found => found,
    }
}

/// Answers by a lookup that may read tables. A key that cannot be looked up may exist.
unsafe fn may_exist(
    found: Result<Option<PinnedValue>>,
    value: *mut *mut c_char,
    value_len: *mut size_t,
    value_found: *mut c_uchar,
) -> c_uchar {
    let present = found.as_ref().ok().and_then(Option::as_ref);
    // SAFETY: the caller passes places for the value, or null where it wants none.
    unsafe {
        if let Some(value_found) = value_found.as_mut() {
            *value_found = present.is_some().into();
            if let (Some(present), false) = (present, value.is_null()) {
                *value = copy_out(present);
                *value_len = present.len();
            }
        }
    }
    (found.is_err() || present.is_some()).into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    value: *mut *mut c_char,
    value_len: *mut size_t,
    _timestamp: *const c_char,
    _timestamp_len: size_t,
    value_found: *mut c_uchar,
) -> c_uchar {
    boundary!({
        let found = as_result("rocksdb_key_may_exist", || get(db, options, None, (key, key_len)));
        may_exist(without_unstamped(&*db, found), value, value_len, value_found)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    value: *mut *mut c_char,
    value_len: *mut size_t,
    _timestamp: *const c_char,
    _timestamp_len: size_t,
    value_found: *mut c_uchar,
) -> c_uchar {
    boundary!({
        let found =
            as_result("rocksdb_key_may_exist_cf", || get(db, options, Some(&(*cf).0), (key, key_len)));
        may_exist(without_unstamped(&*db, found), value, value_len, value_found)
    })
}

pub struct rocksdb_pinnable_handle_t(PinnedValue);

unsafe fn handle_out(errptr: Errptr, value: Result<Option<PinnedValue>>) -> *mut rocksdb_pinnable_handle_t {
    // SAFETY: the caller's contract.
    let value = unsafe { report(errptr, value) }.flatten();
    value.map_or(std::ptr::null_mut(), |value| hand_out(rocksdb_pinnable_handle_t(value)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    errptr: Errptr,
) -> *mut rocksdb_pinnable_handle_t {
    boundary!(errptr, handle_out(errptr, get(db, options, None, (key, key_len))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_cf_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    errptr: Errptr,
) -> *mut rocksdb_pinnable_handle_t {
    boundary!(errptr, handle_out(errptr, get(db, options, Some(&(*cf).0), (key, key_len))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_handle_get_value(
    handle: *const rocksdb_pinnable_handle_t,
    len: *mut size_t,
) -> *const c_char {
    boundary!({
        // Null gives null.
        let value = handle.as_ref().map(|handle| &handle.0);
        *len = value.map_or(0, |value| value.len());
        value.map_or(std::ptr::null(), |value| value.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_handle_destroy(handle: *mut rocksdb_pinnable_handle_t) {
    boundary!(give_back(handle))
}

/// 1 if the value was copied; 0 if there is none, or it does not fit: `*value_len` says what it takes.
unsafe fn copy_into(
    errptr: Errptr,
    value: Result<Option<PinnedValue>>,
    (buffer, buffer_size): (*mut c_char, size_t),
    value_len: *mut size_t,
    found: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the caller passes a buffer of `buffer_size` bytes and places for the rest.
    unsafe {
        let value = report(errptr, value).flatten();
        *found = value.is_some().into();
        *value_len = value.as_ref().map_or(0, |value| value.len());
        match value {
            Some(value) if value.len() <= buffer_size => {
                buffer.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len());
                1
            }
            _ => 0,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    buffer: *mut c_char,
    buffer_size: size_t,
    value_len: *mut size_t,
    found: *mut c_uchar,
    errptr: Errptr,
) -> c_uchar {
    boundary!(errptr, {
        let value = get(db, options, None, (key, key_len));
        copy_into(errptr, value, (buffer, buffer_size), value_len, found)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    buffer: *mut c_char,
    buffer_size: size_t,
    value_len: *mut size_t,
    found: *mut c_uchar,
    errptr: Errptr,
) -> c_uchar {
    boundary!(errptr, {
        let value = get(db, options, Some(&(*cf).0), (key, key_len));
        copy_into(errptr, value, (buffer, buffer_size), value_len, found)
    })
}
