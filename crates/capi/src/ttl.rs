//! `rocksdb_open_with_ttl` and its like: databases whose values expire. All else is done by the functions of plain databases.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, hand_out, report, text};
use crate::opening::{Families, open_by};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_int};
use outcrop::{Error, TtlDb};

/// See [`TtlDb::open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_with_ttl(
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, open_by(options, name, None, errptr, |builder| TtlDb::open(builder, ttl)))
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
    errptr: Errptr,
) -> *mut rocksdb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        let ttl = |name: &str| families.position(name).map_or(0, |at| *ttls.add(at));
        open_by(options, name, Some(families), errptr, |builder| match ttls.is_null() {
            false => TtlDb::open_with(builder, ttl),
            true => Err(no_ttls()),
        })
    })
}

fn no_ttls() -> Error {
    Error::invalid_argument("ttls size has to be the same as number of column families")
}

/// InvalidArgument of a database that was opened without a TTL, where RocksDB writes to memory that is not its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family_with_ttl(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    ttl: c_int,
    errptr: Errptr,
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
