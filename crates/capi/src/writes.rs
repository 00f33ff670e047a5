//! `rocksdb_put`, `rocksdb_delete`, `rocksdb_merge`, `rocksdb_write` and their like.

use crate::batch::rocksdb_writebatch_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{report, slice};
use crate::write_options::rocksdb_writeoptions_t;
use libc::{c_char, size_t};

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
            boundary!(errptr, {
                let (db, cf) = (&*db, (*db).0.default_column_family());
                let (key, value) = (slice(key, key_len), slice(value, value_len));
                let written = (*options).get().and_then(|options| match &db.1 {
                    None => db.0.$method(cf, key, value, options),
                    Some(db) => db.$method(cf, key, value, options),
                });
                report(errptr, written);
            })
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
            boundary!(errptr, {
                let (db, cf) = (&*db, &(*cf).0);
                let (key, value) = (slice(key, key_len), slice(value, value_len));
                let written = (*options).get().and_then(|options| match &db.1 {
                    None => db.0.$method(cf, key, value, options),
                    Some(db) => db.$method(cf, key, value, options),
                });
                report(errptr, written);
            })
        }
    )*};
}

key_value! {
    put_cf_with: rocksdb_put rocksdb_put_cf;
    merge_cf_with: rocksdb_merge rocksdb_merge_cf;
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
            boundary!(errptr, {
                let db = &(*db).0;
                let written = (*options)
                    .get()
                    .and_then(|options| db.$method(db.default_column_family(), slice(key, key_len), options));
                report(errptr, written);
            })
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
            boundary!(errptr, {
                let key = slice(key, key_len);
                let written = (*options).get().and_then(|options| (*db).0.$method(&(*cf).0, key, options));
                report(errptr, written);
            })
        }
    )*};
}

key_only! {
    delete_cf_with: rocksdb_delete rocksdb_delete_cf;
    single_delete_cf_with: rocksdb_singledelete rocksdb_singledelete_cf;
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
    boundary!(errptr, {
        let (begin, end) = (slice(begin, begin_len), slice(end, end_len));
        let written =
            (*options).get().and_then(|options| (*db).0.delete_range_cf_with(&(*cf).0, begin, end, options));
        report(errptr, written);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let batch = &mut *batch;
        let written = (*options).get().and_then(|options| {
            batch.check()?;
            match &(*db).1 {
                None => (*db).0.write_with(&mut batch.batch, options),
                Some(db) => db.write_with(&batch.batch, options),
            }
        });
        report(errptr, written);
    })
}
