//! `rocksdb_open_with_ttl` and its like: databases whose values expire. All else is done by the functions of plain databases.

use crate::db::{families_of, names_of, opened_out, rocksdb_column_family_handle_t, rocksdb_t, with_default};
use crate::memory::{hand_out, report, text};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_int};
use outcrop::{Error, TtlDb};

/// See [`TtlDb::open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_with_ttl(
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let options = &*options;
        let opened = options
            .descriptor("default")
            .and_then(|family| TtlDb::open(options.builder(text(name)).column_family(family), ttl));
        opened_out(errptr, opened, &[], std::ptr::null_mut())
    })
}

fn no_ttls() -> Error {
    Error::invalid_argument("ttls size has to be the same as number of column families")
}

/// Each column family with the TTL at its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families_with_ttl(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    ttls: *const c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let options = &*options;
        let named = names_of(count, names);
        let ttl = |name: &str| named.iter().position(|known| known == name).map_or(0, |at| *ttls.add(at));
        let opened = options
            .settings
            .check()
            .and_then(|()| if ttls.is_null() { Err(no_ttls()) } else { Ok(()) })
            .and_then(|()| families_of(count, names, cf_options))
            .and_then(with_default)
            .and_then(|families| {
                TtlDb::open_with(options.builder(text(name)).column_families(families), ttl)
            });
        opened_out(errptr, opened, &named, handles)
    })
}

/// InvalidArgument of a database that was opened without a TTL, where RocksDB writes to memory that is not its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family_with_ttl(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    boundary!(errptr, {
        let created = (*options).descriptor(&text(name)).and_then(|descriptor| match &(*db).1 {
            Some(db) => db.create_column_family(&descriptor, ttl),
            None => Err(Error::invalid_argument("the database was not opened with a TTL")),
        });
        report(errptr, created)
            .map_or(std::ptr::null_mut(), |handle| hand_out(rocksdb_column_family_handle_t(handle)))
    })
}
