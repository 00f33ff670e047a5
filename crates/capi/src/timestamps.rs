//! Functions of user-defined timestamps: `rocksdb_*_with_ts` and `rocksdb_*_full_history_ts_low`.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, copy_out, copy_out_text, report, slice};
use crate::opening::{Families, open_by};
use crate::options::rocksdb_options_t;
use crate::read_options::rocksdb_readoptions_t;
use crate::write_options::rocksdb_writeoptions_t;
use libc::{c_char, c_int, size_t};
use outcrop::{ColumnFamilyHandle, Db, Error, PinnedValue, Result, Timestamp, WriteOptions};

type Version = (PinnedValue, Timestamp);

/// Writes in `cf`, or the default column family, at the timestamp of these bytes.
unsafe fn write_at(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    cf: Option<*mut rocksdb_column_family_handle_t>,
    (ts, ts_len): (*const c_char, size_t),
    errptr: Errptr,
    write: impl FnOnce(&Db, &ColumnFamilyHandle, Timestamp, &WriteOptions) -> Result<()>,
) {
    // SAFETY: the caller's objects and bytes, as C programs pass them.
    unsafe {
        let db = &(*db).0;
        let cf = cf.map_or(db.default_column_family(), |cf| &(*cf).0);
        let written = cf.timestamp(slice(ts, ts_len)).and_then(|ts| write(db, cf, ts, (*options).get()?));
        report(errptr, written);
    }
}

/// Writes with a timestamp, of a key and what comes after it: to the default column family, and to a named one.
macro_rules! writes_at {
    ($($method:ident: $name:ident $name_cf:ident ($($value:ident $value_len:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            key: *const c_char,
            key_len: size_t,
            ts: *const c_char,
            ts_len: size_t,
            $($value: *const c_char, $value_len: size_t,)?
            errptr: Errptr,
        ) {
            boundary!(errptr, write_at(db, options, None, (ts, ts_len), errptr, |db, cf, ts, options| {
                db.$method(cf, slice(key, key_len), ts, $(slice($value, $value_len),)? options)
            }))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            db: *mut rocksdb_t,
            options: *const rocksdb_writeoptions_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            ts: *const c_char,
            ts_len: size_t,
            $($value: *const c_char, $value_len: size_t,)?
            errptr: Errptr,
        ) {
            boundary!(errptr, write_at(db, options, Some(cf), (ts, ts_len), errptr, |db, cf, ts, options| {
                db.$method(cf, slice(key, key_len), ts, $(slice($value, $value_len),)? options)
            }))
        }
    )*};
}

writes_at! {
    put_cf_at_with: rocksdb_put_with_ts rocksdb_put_cf_with_ts (value value_len);
    delete_cf_at_with: rocksdb_delete_with_ts rocksdb_delete_cf_with_ts ();
    single_delete_cf_at_with: rocksdb_singledelete_with_ts rocksdb_singledelete_cf_with_ts ();
}

/// Hands out a version: its value, and its timestamp at `ts`.
unsafe fn version_out(
    found: Option<Version>,
    value_len: *mut size_t,
    ts: *mut *mut c_char,
    ts_len: *mut size_t,
) -> *mut c_char {
    // SAFETY: the caller passes places for all of them.
    unsafe {
        match found {
            Some((value, timestamp)) => {
                *value_len = value.len();
                *ts_len = timestamp.as_bytes().len();
                *ts = copy_out(timestamp.as_bytes());
                copy_out(&value)
            }
            None => {
                (*value_len, *ts_len) = (0, 0);
                std::ptr::null_mut()
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    ts: *mut *mut c_char,
    ts_len: *mut size_t,
    errptr: Errptr,
) -> *mut c_char {
    boundary!(errptr, {
        let read = |options| (*db).0.get_version_with(slice(key, key_len), options);
        let found = report(errptr, (*options).get().and_then(read)).flatten();
        version_out(found, value_len, ts, ts_len)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    ts: *mut *mut c_char,
    ts_len: *mut size_t,
    errptr: Errptr,
) -> *mut c_char {
    boundary!(errptr, {
        let read = |options| (*db).0.get_version_cf_with(&(*cf).0, slice(key, key_len), options);
        let found = report(errptr, (*options).get().and_then(read)).flatten();
        version_out(found, value_len, ts, ts_len)
    })
}

/// Where a multi-get leaves its results: one place for each key.
#[derive(Clone, Copy)]
struct Places {
    values: *mut *mut c_char,
    value_lens: *mut size_t,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut size_t,
    errs: *mut *mut c_char,
}

impl Places {
    unsafe fn put(self, at: usize, found: Result<Option<Version>>) {
        // SAFETY: the caller's arrays have one place per key.
        unsafe {
            let (value, error) = match found {
                Ok(found) => (found, std::ptr::null_mut()),
                Err(error) => (None, copy_out_text(&error.to_string())),
            };
            *self.errs.add(at) = error;
            *self.timestamps.add(at) = std::ptr::null_mut();
            let (ts, ts_len) = (self.timestamps.add(at), self.timestamp_lens.add(at));
            *self.values.add(at) = version_out(value, self.value_lens.add(at), ts, ts_len);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    count: size_t,
    keys: *const *const c_char,
    key_lens: *const size_t,
    values: *mut *mut c_char,
    value_lens: *mut size_t,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut size_t,
    errs: *mut *mut c_char,
) {
    boundary!({
        let places = Places { values, value_lens, timestamps, timestamp_lens, errs };
        let db = &(*db).0;
        let keys: Vec<&[u8]> = (0..count).map(|i| slice(*keys.add(i), *key_lens.add(i))).collect();
        let found = match (*options).get() {
            Ok(options) => db.multi_get_versions_cf_with(db.default_column_family(), &keys, options),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        };
        found.into_iter().enumerate().for_each(|(i, found)| places.put(i, found));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cfs: *const *const rocksdb_column_family_handle_t,
    count: size_t,
    keys: *const *const c_char,
    key_lens: *const size_t,
    values: *mut *mut c_char,
    value_lens: *mut size_t,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut size_t,
    errs: *mut *mut c_char,
) {
    boundary!({
        let places = Places { values, value_lens, timestamps, timestamp_lens, errs };
        // One snapshot, unless there is one: all keys are read as of one moment.
        let options = (*options).get().map(|options| {
            let mut options = options.clone();
            options.snapshot.get_or_insert_with(|| (*db).0.snapshot());
            options
        });
        for i in 0..count {
            let read = |options| {
                let key = slice(*keys.add(i), *key_lens.add(i));
                (*db).0.get_version_cf_with(&(**cfs.add(i)).0, key, options)
            };
            places.put(i, options.as_ref().map_err(Clone::clone).and_then(read));
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_increase_full_history_ts_low(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    low: *const c_char,
    low_len: size_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, cf) = (&(*db).0, &(*cf).0);
        let raised = db.full_history_low(cf).and_then(|_| {
            let low = Timestamp::from_bytes(slice(low, low_len));
            let low = low.map_err(|_| Error::invalid_argument("ts_low size mismatch"))?;
            db.increase_full_history_low(cf, low)
        });
        report(errptr, raised);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_full_history_ts_low(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    low_len: *mut size_t,
    errptr: Errptr,
) -> *mut c_char {
    boundary!(errptr, {
        match report(errptr, (*db).0.full_history_low(&(*cf).0)) {
            Some(low) => {
                let bytes = low.as_ref().map_or(&[][..], Timestamp::as_bytes);
                *low_len = bytes.len();
                copy_out(bytes)
            }
            None => {
                *low_len = 0;
                std::ptr::null_mut()
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_trim_history(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    newest: *mut c_char,
    newest_len: size_t,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_by(options, name, Some(families), errptr, |builder| {
            builder.open_and_trim_history(Timestamp::from_bytes(slice(newest, newest_len))?)
        })
    })
}
