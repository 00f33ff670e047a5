//! Operations on an open database besides reading and writing: flushes, compactions, properties, options.

use crate::boundary::{as_result, warn};
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, copy_out_text, report, set_error, slice, text};
use crate::read_options::rocksdb_readoptions_t;
use crate::write_options::{
    rocksdb_compactoptions_t, rocksdb_flushoptions_t, rocksdb_flushwaloptions_t,
    rocksdb_wait_for_compact_options_t,
};
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::{ColumnFamilyHandle, Db, Error, Result, Wait};

fn wait(until_done: bool) -> Wait {
    if until_done { Wait::UntilDone } else { Wait::No }
}

fn flush_wal(db: &Db, sync: bool) -> Result<()> {
    if sync { db.sync_wal() } else { db.flush_wal() }
}

unsafe fn flush(db: &Db, options: *const rocksdb_flushoptions_t, cfs: &[ColumnFamilyHandle], errptr: Errptr) {
    // SAFETY: the caller's contract.
    unsafe {
        let options = &*options;
        let wait = match (options.wait, options.listener_wait) {
            (true, true) => Wait::UntilTold,
            (wait_done, _) => wait(wait_done),
        };
        report(errptr, options.settings.check().and_then(|()| db.flush_cfs(cfs, wait)));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let db = &(*db).0;
        flush(db, options, &[db.default_column_family().clone()], errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        flush(&(*db).0, options, &[(*cf).0.clone()], errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, errptr: *mut *mut c_char) {
    boundary!(errptr, {
        report(errptr, flush_wal(&(*db).0, sync != 0));
    })
}

/// As [`rocksdb_compact_range_cf_opt`], which has no place for the error.
///
/// # Errors
/// Those of the compaction, and NotSupported for options that the engine cannot honour.
pub unsafe fn compact_range(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_compactoptions_t,
    begin: (*const c_char, size_t),
    end: (*const c_char, size_t),
) -> Result<()> {
    // SAFETY: the caller's contract, which is that of the C functions.
    unsafe { compact(&(*db).0, &(*cf).0, options, begin, end) }
}

/// Compacts as `options` say; null is RocksDB's default.
unsafe fn compact(
    db: &Db,
    cf: &ColumnFamilyHandle,
    options: *const rocksdb_compactoptions_t,
    begin: (*const c_char, size_t),
    end: (*const c_char, size_t),
) -> Result<()> {
    let default = rocksdb_compactoptions_t::default();
    // SAFETY: the caller's contract: null bounds are unbounded.
    unsafe {
        let options = options.as_ref().unwrap_or(&default);
        options.settings.check()?;
        let filtered = cf.compaction_filter.is_some() || cf.compaction_filter_factory.is_some();
        let bound = |(key, len): (*const c_char, size_t)| (!key.is_null()).then(|| slice(key, len));
        let (begin, end, how) = (bound(begin), bound(end), options.get(filtered));
        match &options.canceled {
            Some(canceled) => db.compact_range_cf_until(cf, begin, end, &how, canceled),
            None => db.compact_range_cf_with(cf, begin, end, &how),
        }
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
    boundary!({
        let db = &(*db).0;
        let _ = compact(db, db.default_column_family(), std::ptr::null(), (begin, begin_len), (end, end_len));
    })
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
    boundary!({
        let _ = compact(&(*db).0, &(*cf).0, std::ptr::null(), (begin, begin_len), (end, end_len));
    })
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
    boundary!({
        let db = &(*db).0;
        let _ = compact(db, db.default_column_family(), options, (begin, begin_len), (end, end_len));
    })
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
    boundary!({
        let _ = compact(&(*db).0, &(*cf).0, options, (begin, begin_len), (end, end_len));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wait_for_compact(
    db: *mut rocksdb_t,
    options: *mut rocksdb_wait_for_compact_options_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let options = &*options;
        let waited = options.settings.check().and_then(|()| (*db).0.wait_for_compact(&options.options));
        report(errptr, waited);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cancel_all_background_work(db: *mut rocksdb_t, until_done: c_uchar) {
    boundary!((*db).0.cancel_all_background_work(wait(until_done != 0)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_file_deletions(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    boundary!(errptr, (*db).0.disable_file_deletions())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    boundary!(errptr, (*db).0.enable_file_deletions())
}

unsafe fn property(db: *mut rocksdb_t, cf: &ColumnFamilyHandle, name: *const c_char) -> *mut c_char {
    // SAFETY: the caller's contract.
    unsafe {
        let (db, name) = (&*db, text(name));
        let value = db.0.property_cf(cf, &name);
        value.map_or(std::ptr::null_mut(), |value| copy_out_text(&value))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value(db: *mut rocksdb_t, name: *const c_char) -> *mut c_char {
    boundary!({
        let cf = (*db).0.default_column_family().clone();
        property(db, &cf, name)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_value_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    name: *const c_char,
) -> *mut c_char {
    boundary!(property(db, &(*cf).0, name))
}

unsafe fn property_int(
    db: *mut rocksdb_t,
    cf: &ColumnFamilyHandle,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    // SAFETY: the caller's contract.
    let found = as_result("rocksdb_property_int", || unsafe { Ok((*db).0.property_int_cf(cf, &text(name))) });
    match found.inspect_err(|error| warn(error)).ok().flatten() {
        Some(value) => {
            // SAFETY: as above.
            unsafe { *out = value };
            0
        }
        None => -1,
    }
}

/// 0 if the property exists, else -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int(
    db: *mut rocksdb_t,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    boundary!({
        let cf = (*db).0.default_column_family().clone();
        property_int(db, &cf, name, out)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_property_int_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    name: *const c_char,
    out: *mut u64,
) -> c_int {
    boundary!(property_int(db, &(*cf).0, name, out))
}

/// Names and values of options.
///
/// # Safety
/// There are `count` of each.
unsafe fn pairs_of(
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
) -> Vec<(String, String)> {
    // SAFETY: the caller's contract.
    (0..count.max(0) as usize).map(|i| unsafe { (text(*names.add(i)), text(*values.add(i))) }).collect()
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
        let pairs = pairs_of(count, names, values);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        if pairs.is_empty() {
            return set_error(errptr, &Error::invalid_argument("empty options"));
        }
        report(errptr, (*db).0.set_options_cf(cf, &pairs));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_db_options(
    db: *mut rocksdb_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let pairs = pairs_of(count, names, values);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        report(errptr, (*db).0.set_db_options(&pairs));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options(
    db: *mut rocksdb_t,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let cf = (*db).0.default_column_family().clone();
        change_options(db, &cf, count, names, values, errptr);
    })
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
    boundary!(errptr, change_options(db, &(*cf).0, count, names, values, errptr))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cfs(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    cfs: *mut *mut rocksdb_column_family_handle_t,
    count: c_int,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let cfs: Vec<_> = (0..count.max(0) as usize).map(|i| (**cfs.add(i)).0.clone()).collect();
        flush(&(*db).0, options, &cfs, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_wal_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushwaloptions_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let sync = options.as_ref().is_some_and(|options| options.sync);
        report(errptr, flush_wal(&(*db).0, sync));
    })
}

/// Waits for running compactions, and lets none start until `rocksdb_continue_background_work`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pause_background_work(db: *mut rocksdb_t, errptr: Errptr) {
    boundary!(errptr, (*db).0.pause_background_work())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_continue_background_work(db: *mut rocksdb_t, errptr: Errptr) {
    boundary!(errptr, (*db).0.continue_background_work())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_checksum(db: *mut rocksdb_t, errptr: Errptr) {
    boundary!(errptr, {
        report(errptr, (*db).0.verify_checksums());
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_checksum_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let allowed = options.as_ref().map_or(Ok(()), |options| options.get().map(|_| ()));
        report(errptr, allowed.and_then(|()| (*db).0.verify_checksums()));
    })
}

/// Waits for running compactions, and lets none start until `rocksdb_resume_all_compactions`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_abort_all_compactions(db: *mut rocksdb_t) {
    boundary!((*db).0.pause_background_work())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_resume_all_compactions(db: *mut rocksdb_t) {
    boundary!((*db).0.continue_background_work())
}

/// Ends manual compactions that wait or run, and lets none start until `rocksdb_enable_manual_compaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_disable_manual_compaction(db: *mut rocksdb_t) {
    boundary!((*db).0.disable_manual_compaction())
}

/// Undoes one `rocksdb_disable_manual_compaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_enable_manual_compaction(db: *mut rocksdb_t) {
    boundary!((*db).0.enable_manual_compaction())
}
