//! `rocksdb_open*` and what is done with an open database.

use crate::batch::rocksdb_writebatch_t;
use crate::iterator::rocksdb_iterator_t;
use crate::memory::{copy_out, copy_out_text, give_back, hand_out, report, set_error, slice, text};
use crate::options::rocksdb_options_t;
use crate::read_write_options::{
    rocksdb_compactoptions_t, rocksdb_flushoptions_t, rocksdb_readoptions_t, rocksdb_snapshot_t,
    rocksdb_wait_for_compact_options_t, rocksdb_writeoptions_t,
};
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyHandle, CompactRangeOptions, Db, Env, Error, PinnedValue, Result,
};

pub struct rocksdb_t(pub(crate) Db);
pub struct rocksdb_column_family_handle_t(pub(crate) ColumnFamilyHandle);
pub struct rocksdb_pinnableslice_t(PinnedValue);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        let opened =
            Db::open(text(name), options.db.clone(), options.env(), vec![options.descriptor("default")]);
        report(errptr, opened).map_or(std::ptr::null_mut(), |db| hand_out(rocksdb_t(db)))
    }
}

/// The column families named, each under its options.
unsafe fn families_of(
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
) -> Vec<ColumnFamilyDescriptor> {
    // SAFETY: the caller passes `count` names and options.
    (0..count.max(0) as usize)
        .map(|i| unsafe { (**cf_options.add(i)).descriptor(&text(*names.add(i))) })
        .collect()
}

/// Hands out what was opened, with a handle for each name.
unsafe fn opened_out(
    errptr: *mut *mut c_char,
    opened: Result<Db>,
    names: &[String],
    handles: *mut *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_t {
    // SAFETY: the caller passes as many places for handles as names.
    unsafe {
        let Some(db) = report(errptr, opened) else { return std::ptr::null_mut() };
        for (i, name) in names.iter().enumerate() {
            let handle = db.column_family(name).expect("it was just opened");
            *handles.add(i) = hand_out(rocksdb_column_family_handle_t(handle));
        }
        hand_out(rocksdb_t(db))
    }
}

fn names_of(families: &[ColumnFamilyDescriptor]) -> Vec<String> {
    families.iter().map(|family| family.name.clone()).collect()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API: `count` names, options and places for handles.
    unsafe {
        let options = &*options;
        let families = families_of(count, names, cf_options);
        let names = names_of(&families);
        opened_out(errptr, Db::open(text(name), options.db.clone(), options.env(), families), &names, handles)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_for_read_only(
    options: *const rocksdb_options_t,
    name: *const c_char,
    error_if_wal_file_exists: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        let families = vec![options.descriptor("default")];
        let strict = error_if_wal_file_exists != 0;
        let opened = Db::open_for_read_only(text(name), options.db.clone(), options.env(), families, strict);
        opened_out(errptr, opened, &[], std::ptr::null_mut())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_for_read_only_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    error_if_wal_file_exists: c_uchar,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        let families = families_of(count, names, cf_options);
        let names = names_of(&families);
        let strict = error_if_wal_file_exists != 0;
        let opened = Db::open_for_read_only(text(name), options.db.clone(), options.env(), families, strict);
        opened_out(errptr, opened, &names, handles)
    }
}

/// Nothing is written to `secondary_path`: a secondary here keeps no log of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary(
    options: *const rocksdb_options_t,
    name: *const c_char,
    _secondary_path: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        let families = vec![options.descriptor("default")];
        let opened = Db::open_as_secondary(text(name), options.db.clone(), options.env(), families);
        opened_out(errptr, opened, &[], std::ptr::null_mut())
    }
}

/// As [`rocksdb_open_as_secondary`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    _secondary_path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        let families = families_of(count, names, cf_options);
        let names = names_of(&families);
        let opened = Db::open_as_secondary(text(name), options.db.clone(), options.env(), families);
        opened_out(errptr, opened, &names, handles)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_try_catch_up_with_primary(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.try_catch_up_with_primary()) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_close(db: *mut rocksdb_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(db) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_destroy_db(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let options = &*options;
        report(errptr, Db::destroy(text(name), &options.db, &options.env()));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: *mut size_t,
    errptr: *mut *mut c_char,
) -> *mut *mut c_char {
    // SAFETY: the contract of the C API.
    unsafe {
        *count = 0;
        let env = options.as_ref().map_or_else(Env::posix, rocksdb_options_t::env);
        let Some(names) = report(errptr, Db::list_column_families(text(name), &env)) else {
            return std::ptr::null_mut();
        };
        let list = libc::malloc(names.len().max(1) * size_of::<*mut c_char>()).cast::<*mut c_char>();
        for (i, name) in names.iter().enumerate() {
            *list.add(i) = copy_out_text(name);
        }
        *count = names.len();
        list
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, count: size_t) {
    // SAFETY: the contract of the C API: a list from `rocksdb_list_column_families`.
    unsafe {
        for i in 0..count {
            libc::free((*list.add(i)).cast());
        }
        libc::free(list.cast());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the C API.
    unsafe {
        let descriptor = (*options).descriptor(&text(name));
        let created = (*db).0.create_column_family(&descriptor);
        report(errptr, created)
            .map_or(std::ptr::null_mut(), |handle| hand_out(rocksdb_column_family_handle_t(handle)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_drop_column_family(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.drop_column_family(&(*cf).0)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_destroy(cf: *mut rocksdb_column_family_handle_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(cf) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_id(cf: *mut rocksdb_column_family_handle_t) -> u32 {
    // SAFETY: the contract of the C API.
    unsafe { &*cf }.0.id()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_name(
    cf: *mut rocksdb_column_family_handle_t,
    len: *mut size_t,
) -> *mut c_char {
    // SAFETY: the contract of the C API.
    unsafe {
        let name = (*cf).0.name();
        *len = name.len();
        copy_out_text(name)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_default_column_family_handle(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the C API.
    hand_out(rocksdb_column_family_handle_t(unsafe { &*db }.0.default_column_family().clone()))
}

/// Writes of key and value.
macro_rules! key_value {
    ($($method:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
            errptr: *mut *mut c_char,
        ) {
            // SAFETY: the contract of the C API.
            unsafe {
                let db = &(*db).0;
                let (key, value) = (slice(key, key_len), slice(value, value_len));
                report(errptr, db.$method(db.default_column_family(), &(*options).0, key, value));
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
            errptr: *mut *mut c_char,
        ) {
            // SAFETY: the contract of the C API.
            unsafe {
                let (key, value) = (slice(key, key_len), slice(value, value_len));
                report(errptr, (*db).0.$method(&(*cf).0, &(*options).0, key, value));
            }
        }
    )*};
}

key_value! {
    put_cf: rocksdb_put rocksdb_put_cf;
    merge_cf: rocksdb_merge rocksdb_merge_cf;
}

/// Writes of a key alone.
macro_rules! key_only {
    ($($method:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            key: *const c_char,
            key_len: size_t,
            errptr: *mut *mut c_char,
        ) {
            // SAFETY: the contract of the C API.
            unsafe {
                let db = &(*db).0;
                report(errptr, db.$method(db.default_column_family(), &(*options).0, slice(key, key_len)));
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            errptr: *mut *mut c_char,
        ) {
            // SAFETY: the contract of the C API.
            unsafe { report(errptr, (*db).0.$method(&(*cf).0, &(*options).0, slice(key, key_len))) };
        }
    )*};
}

key_only! {
    delete_cf: rocksdb_delete rocksdb_delete_cf;
    single_delete_cf: rocksdb_singledelete rocksdb_singledelete_cf;
}

/// See [`outcrop::Db::delete_range_cf`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_range_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let (begin, end) = (slice(begin, begin_len), slice(end, end_len));
        report(errptr, (*db).0.delete_range_cf(&(*cf).0, &(*options).0, begin, end));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.write(&(*options).0, &mut (*batch).0)) };
}

/// A `malloc`ed copy of a value that was read; null if there is none.
unsafe fn value_out(
    errptr: *mut *mut c_char,
    len: *mut size_t,
    value: Result<Option<PinnedValue>>,
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
    // SAFETY: the contract of the C API.
    unsafe { value_out(errptr, value_len, (*db).0.get(&(*options).0, slice(key, key_len))) }
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
    // SAFETY: the contract of the C API.
    unsafe { value_out(errptr, value_len, (*db).0.get_cf(&(*cf).0, &(*options).0, slice(key, key_len))) }
}

unsafe fn pinned_out(
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
    // SAFETY: the contract of the C API.
    unsafe { pinned_out(errptr, (*db).0.get(&(*options).0, slice(key, key_len))) }
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
    // SAFETY: the contract of the C API.
    unsafe { pinned_out(errptr, (*db).0.get_cf(&(*cf).0, &(*options).0, slice(key, key_len))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_destroy(value: *mut rocksdb_pinnableslice_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnableslice_value(
    value: *const rocksdb_pinnableslice_t,
    len: *mut size_t,
) -> *const c_char {
    // SAFETY: the contract of the C API; null gives null.
    unsafe {
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
    // SAFETY: the contract of the C API.
    unsafe {
        let db = &(*db).0;
        let keys = keys_in(count, keys, key_lens);
        let results = db.multi_get_cf(db.default_column_family(), &(*options).0, &keys);
        values_out(results, values, value_lens, errs);
    }
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
    // SAFETY: the contract of the C API.
    unsafe {
        let keys = keys_in(count, keys, key_lens);
        let results = keys
            .iter()
            .enumerate()
            .map(|(i, key)| (*db).0.get_cf(&(**cfs.add(i)).0, &(*options).0, key))
            .collect();
        values_out(results, values, value_lens, errs);
    }
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
    // SAFETY: the contract of the C API.
    unsafe {
        let keys = keys_in(count, keys, key_lens);
        for (i, result) in (*db).0.multi_get_cf(&(*cf).0, &(*options).0, &keys).into_iter().enumerate() {
            *errs.add(i) = std::ptr::null_mut();
            *values.add(i) = pinned_out(errs.add(i), result);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the C API.
    hand_out(rocksdb_iterator_t::new(unsafe { (*db).0.iter(&(*options).0) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the C API.
    hand_out(rocksdb_iterator_t::new(unsafe { (*db).0.iter_cf(&(*cf).0, &(*options).0) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_snapshot(db: *mut rocksdb_t) -> *const rocksdb_snapshot_t {
    // SAFETY: the contract of the C API.
    hand_out(rocksdb_snapshot_t(unsafe { &*db }.0.snapshot()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_release_snapshot(_db: *mut rocksdb_t, snapshot: *const rocksdb_snapshot_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(snapshot.cast_mut()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_snapshot_get_sequence_number(snapshot: *const rocksdb_snapshot_t) -> u64 {
    // SAFETY: the contract of the C API.
    unsafe { &*snapshot }.0.sequence().0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_latest_sequence_number(db: *mut rocksdb_t) -> u64 {
    // SAFETY: the contract of the C API.
    unsafe { &*db }.0.latest_sequence_number().0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let db = &(*db).0;
        report(errptr, db.flush(&[db.default_column_family().clone()], (*options).wait));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.flush(&[(*cf).0.clone()], (*options).wait)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, errptr: *mut *mut c_char) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.flush_wal(sync != 0)) };
}

unsafe fn compact(
    db: *mut rocksdb_t,
    cf: &ColumnFamilyHandle,
    begin: (*const c_char, size_t),
    end: (*const c_char, size_t),
    options: &CompactRangeOptions,
) -> Result<()> {
    // SAFETY: the caller's contract: null bounds are unbounded.
    unsafe {
        let bound = |(key, len): (*const c_char, size_t)| (!key.is_null()).then(|| slice(key, len));
        (*db).0.compact_range_with(cf, bound(begin), bound(end), options)
    }
}

/// As in RocksDB this has no way to report an error; a failed compaction shows as a background error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let cf = (*db).0.default_column_family().clone();
        let _ = compact(db, &cf, (begin, begin_len), (end, end_len), &CompactRangeOptions::default());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let _ = compact(db, &(*cf).0, (begin, begin_len), (end, end_len), &CompactRangeOptions::default());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_opt(
    db: *mut rocksdb_t,
    options: *mut rocksdb_compactoptions_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let cf = (*db).0.default_column_family().clone();
        let _ = compact(db, &cf, (begin, begin_len), (end, end_len), &(*options).0);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_range_cf_opt(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *mut rocksdb_compactoptions_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let _ = compact(db, &(*cf).0, (begin, begin_len), (end, end_len), &(*options).0);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact(
    db: *mut rocksdb_t,
    options: *mut rocksdb_wait_for_compact_options_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { report(errptr, (*db).0.wait_for_compact(&(*options).0)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cancel_all_background_work(db: *mut rocksdb_t, wait: c_uchar) {
    // SAFETY: the contract of the C API.
    unsafe { &*db }.0.cancel_all_background_work(wait != 0);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_file_deletions(db: *mut rocksdb_t, _errptr: *mut *mut c_char) {
    // SAFETY: the contract of the C API.
    unsafe { &*db }.0.disable_file_deletions();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, _errptr: *mut *mut c_char) {
    // SAFETY: the contract of the C API.
    unsafe { &*db }.0.enable_file_deletions();
}

unsafe fn property(db: *mut rocksdb_t, cf: &ColumnFamilyHandle, name: *const c_char) -> *mut c_char {
    // SAFETY: the caller's contract.
    unsafe { (*db).0.property(cf, &text(name)).map_or(std::ptr::null_mut(), |value| copy_out_text(&value)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value(db: *mut rocksdb_t, name: *const c_char) -> *mut c_char {
    // SAFETY: the contract of the C API.
    unsafe {
        let cf = (*db).0.default_column_family().clone();
        property(db, &cf, name)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the contract of the C API.
    unsafe { property(db, &(*cf).0, name) }
}

unsafe fn property_int(
    db: *mut rocksdb_t,
    cf: &ColumnFamilyHandle,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        match (*db).0.property_int(cf, &text(name)) {
            Some(value) => {
                *out = value;
                0
            }
            None => -1,
        }
    }
}

/// 0 if the property exists, else -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int(
    db: *mut rocksdb_t,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the contract of the C API.
    unsafe {
        let cf = (*db).0.default_column_family().clone();
        property_int(db, &cf, name, out)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the contract of the C API.
    unsafe { property_int(db, &(*cf).0, name, out) }
}

unsafe fn change_options(
    db: *mut rocksdb_t,
    cf: &ColumnFamilyHandle,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller's contract: `count` names and values.
    unsafe {
        let count = count.max(0) as usize;
        let pairs: Vec<(String, String)> =
            (0..count).map(|i| (text(*names.add(i)), text(*values.add(i)))).collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        if pairs.is_empty() {
            return set_error(errptr, &Error::invalid_argument("empty options"));
        }
        report(errptr, (*db).0.set_options(cf, &pairs));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options(
    db: *mut rocksdb_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let cf = (*db).0.default_column_family().clone();
        change_options(db, &cf, count, names, values, errptr);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe { change_options(db, &(*cf).0, count, names, values, errptr) }
}
