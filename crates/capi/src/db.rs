//! `rocksdb_open*`, and column families of an open database.

use crate::memory::{
    Errptr, copy_out, copy_out_text, copy_out_texts, give_back, give_back_texts, hand_out, report, text,
};
use crate::opening::{Families, open_by};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::{ColumnFamilyHandle, Db, DbBuilder, Env, RepairOptions, TtlDb};
use std::sync::Arc;

/// A database, and the layer above it if its values expire.
pub struct rocksdb_t(pub Arc<Db>, pub(crate) Option<Arc<TtlDb>>);

impl From<Arc<Db>> for rocksdb_t {
    fn from(db: Arc<Db>) -> rocksdb_t {
        rocksdb_t(db, None)
    }
}

impl From<Db> for rocksdb_t {
    fn from(db: Db) -> rocksdb_t {
        Arc::new(db).into()
    }
}

impl From<TtlDb> for rocksdb_t {
    fn from(db: TtlDb) -> rocksdb_t {
        rocksdb_t(db.db().clone(), Some(Arc::new(db)))
    }
}

pub struct rocksdb_column_family_handle_t(pub ColumnFamilyHandle);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, open_by(options, name, None, errptr, DbBuilder::open))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_by(options, name, Some(families), errptr, DbBuilder::open)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_for_read_only(
    options: *const rocksdb_options_t,
    name: *const c_char,
    error_if_wal_file_exists: c_uchar,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let strict = error_if_wal_file_exists != 0;
        open_by(options, name, None, errptr, |builder| {
            builder.error_if_wal_file_exists(strict).open_read_only()
        })
    })
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
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        let strict = error_if_wal_file_exists != 0;
        open_by(options, name, Some(families), errptr, |builder| {
            builder.error_if_wal_file_exists(strict).open_read_only()
        })
    })
}

/// Nothing is written to `secondary_path`: a secondary here keeps no log of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary(
    options: *const rocksdb_options_t,
    name: *const c_char,
    _secondary_path: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, open_by(options, name, None, errptr, DbBuilder::open_secondary))
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
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_by(options, name, Some(families), errptr, DbBuilder::open_secondary)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_try_catch_up_with_primary(db: *mut rocksdb_t, errptr: *mut *mut c_char) {
    boundary!(errptr, {
        report(errptr, (*db).0.try_catch_up_with_primary());
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_close(db: *mut rocksdb_t) {
    boundary!(give_back(db))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_destroy_db(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let options = &*options;
        report(errptr, Db::destroy_in(text(name), &options.database(), &options.env()));
    })
}

/// As RocksDB's `RepairDB(dbname, options)`: all column families under the same options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_repair_db(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let options = &*options;
        let repaired = options.descriptor("default").and_then(|family| {
            let repair = RepairOptions { unknown_families: Some(family.clone()) };
            options.builder(text(name))?.column_family(family).repair(&repair)
        });
        report(errptr, repaired.map(drop));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: *mut size_t,
    errptr: *mut *mut c_char,
) -> *mut *mut c_char {
    boundary!(errptr, {
        *count = 0;
        let env = options.as_ref().map_or_else(Env::posix, rocksdb_options_t::env);
        let Some(names) = report(errptr, Db::list_column_families_in(text(name), &env)) else {
            return std::ptr::null_mut();
        };
        *count = names.len();
        copy_out_texts(&names)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, count: size_t) {
    boundary!(give_back_texts(list, count))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    boundary!(errptr, {
        let created = (*options).descriptor(&text(name)).and_then(|descriptor| match &(*db).1 {
            None => (*db).0.create_column_family(&descriptor),
            Some(db) => db.create_column_family(&descriptor, 0),
        });
        report(errptr, created)
            .map_or(std::ptr::null_mut(), |handle| hand_out(rocksdb_column_family_handle_t(handle)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_drop_column_family(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        report(errptr, (*db).0.drop_column_family(&(*cf).0));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_destroy(cf: *mut rocksdb_column_family_handle_t) {
    boundary!(give_back(cf))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_id(cf: *mut rocksdb_column_family_handle_t) -> u32 {
    boundary!((*cf).0.id().0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_name(
    cf: *mut rocksdb_column_family_handle_t,
    len: *mut size_t,
) -> *mut c_char {
    boundary!({
        let name = (*cf).0.name();
        *len = name.len();
        copy_out_text(name)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_default_column_family_handle(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_handle_t {
    boundary!(hand_out(rocksdb_column_family_handle_t((*db).0.default_column_family().clone())))
}

/// The handles, in a list that `rocksdb_create_column_families_destroy` frees; `*created` says how many. After an
/// error those before it exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    count: c_int,
    names: *const *const c_char,
    created: *mut size_t,
    errptr: Errptr,
) -> *mut *mut rocksdb_column_family_handle_t {
    boundary!(errptr, {
        let count = count.max(0) as usize;
        let list = libc::calloc(count.max(1), size_of::<*mut rocksdb_column_family_handle_t>())
            .cast::<*mut rocksdb_column_family_handle_t>();
        *created = 0;
        for i in 0..count {
            let handle = rocksdb_create_column_family(db, options, *names.add(i), errptr);
            if handle.is_null() {
                break;
            }
            *list.add(i) = handle;
            *created += 1;
        }
        list
    })
}

/// Frees the list; the handles in it are freed one by one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families_destroy(
    list: *mut *mut rocksdb_column_family_handle_t,
) {
    boundary!(libc::free(list.cast()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_db_identity(db: *mut rocksdb_t, len: *mut size_t) -> *mut c_char {
    boundary!({
        let identity = (*db).0.identity();
        *len = identity.len();
        copy_out(identity.as_bytes())
    })
}
