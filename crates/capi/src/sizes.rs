//! How much space ranges and databases take: `rocksdb_approximate_sizes*`, `rocksdb_approximate_memory_usage_*`.

use crate::cache::rocksdb_cache_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, give_back, hand_out, report, slice};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_double, c_int, size_t};
use outcrop::{Cache, ColumnFamilyHandle, Db, SizeApproximation};
use std::sync::Arc;

pub struct rocksdb_size_approximation_options_t {
    what: SizeApproximation,
    settings: Settings,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_size_approximation_options_create() -> *mut rocksdb_size_approximation_options_t {
    boundary!({
        hand_out(rocksdb_size_approximation_options_t {
            what: Default::default(),
            settings: Default::default(),
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_size_approximation_options_destroy(
    options: *mut rocksdb_size_approximation_options_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_size_approximation_options_t:
    "include_memtables" [what.include_memtables]
        set rocksdb_size_approximation_options_set_include_memtables(Flag)
        get rocksdb_size_approximation_options_get_include_memtables -> Flag;
    "include_files" [what.include_files]
        set rocksdb_size_approximation_options_set_include_files(Flag)
        get rocksdb_size_approximation_options_get_include_files -> Flag;
    "include_blob_files" [what.include_blob_files]
        set rocksdb_size_approximation_options_set_include_blob_files(Flag)
        get rocksdb_size_approximation_options_get_include_blob_files -> Flag;
}

kept_settings! { rocksdb_size_approximation_options_t, SIZE_NOTES:
    Accepted "the error is that of the block boundaries" {
        "files_size_error_margin" c_double = -1.0;
            set rocksdb_size_approximation_options_set_files_size_error_margin get rocksdb_size_approximation_options_get_files_size_error_margin -> c_double;
    }
}

/// `count` keys and their lengths.
type Keys = (*const *const c_char, *const size_t);

unsafe fn ranges<'k>(count: c_int, starts: Keys, limits: Keys) -> Vec<(&'k [u8], &'k [u8])> {
    // SAFETY: the caller passes `count` starts and limits.
    let key = |keys: Keys, at: usize| unsafe { slice(*keys.0.add(at), *keys.1.add(at)) };
    (0..count.max(0) as usize).map(|at| (key(starts, at), key(limits, at))).collect()
}

unsafe fn approximate_sizes(
    db: &Db,
    cf: &ColumnFamilyHandle,
    what: SizeApproximation,
    ranges: &[(&[u8], &[u8])],
    sizes: *mut u64,
    errptr: Errptr,
) {
    // SAFETY: the caller passes a place for a size for each range.
    unsafe {
        if let Some(found) = report(errptr, db.approximate_sizes_cf_with(cf, ranges, what)) {
            sizes.copy_from_nonoverlapping(found.as_ptr(), found.len());
        }
    }
}

const MEMTABLES: u8 = 1;
const FILES: u8 = 2;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes(
    db: *mut rocksdb_t,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    limits: *const *const c_char,
    limit_lens: *const size_t,
    sizes: *mut u64,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, what) = (&(*db).0, SizeApproximation::default());
        let cf = db.default_column_family();
        let ranges = ranges(count, (starts, start_lens), (limits, limit_lens));
        approximate_sizes(db, cf, what, &ranges, sizes, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    limits: *const *const c_char,
    limit_lens: *const size_t,
    sizes: *mut u64,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, cf, what) = (&(*db).0, &(*cf).0, SizeApproximation::default());
        let ranges = ranges(count, (starts, start_lens), (limits, limit_lens));
        approximate_sizes(db, cf, what, &ranges, sizes, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_flags(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    limits: *const *const c_char,
    limit_lens: *const size_t,
    include_flags: u8,
    sizes: *mut u64,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let what = SizeApproximation {
            include_memtables: include_flags & MEMTABLES != 0,
            include_files: include_flags & FILES != 0,
            include_blob_files: false,
        };
        let (db, cf) = (&(*db).0, &(*cf).0);
        let ranges = ranges(count, (starts, start_lens), (limits, limit_lens));
        approximate_sizes(db, cf, what, &ranges, sizes, errptr);
    })
}

unsafe fn what_of(options: *const rocksdb_size_approximation_options_t) -> SizeApproximation {
    // SAFETY: the caller passes live options, or null for the defaults.
    unsafe { options.as_ref() }.map_or_else(SizeApproximation::default, |options| options.what)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_size_approximation_options_t,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    limits: *const *const c_char,
    limit_lens: *const size_t,
    sizes: *mut u64,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, what) = (&(*db).0, what_of(options));
        let cf = db.default_column_family();
        let ranges = ranges(count, (starts, start_lens), (limits, limit_lens));
        approximate_sizes(db, cf, what, &ranges, sizes, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_options(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_size_approximation_options_t,
    count: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    limits: *const *const c_char,
    limit_lens: *const size_t,
    sizes: *mut u64,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (db, cf, what) = (&(*db).0, &(*cf).0, what_of(options));
        let ranges = ranges(count, (starts, start_lens), (limits, limit_lens));
        approximate_sizes(db, cf, what, &ranges, sizes, errptr);
    })
}

// ---- memory

/// The objects to count: databases, which must outlive this, and caches.
#[derive(Default)]
pub struct rocksdb_memory_consumers_t {
    databases: Vec<*mut rocksdb_t>,
    caches: Vec<Arc<Cache>>,
}

/// Bytes, as of the moment it was created.
#[derive(Default)]
pub struct rocksdb_memory_usage_t {
    memtables: u64,
    unflushed: u64,
    readers: u64,
    caches: u64,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_consumers_create() -> *mut rocksdb_memory_consumers_t {
    boundary!(hand_out(rocksdb_memory_consumers_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_destroy(consumers: *mut rocksdb_memory_consumers_t) {
    boundary!(give_back(consumers))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_add_db(
    consumers: *mut rocksdb_memory_consumers_t,
    db: *mut rocksdb_t,
) {
    boundary!((*consumers).databases.push(db))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_memory_consumers_add_cache(
    consumers: *mut rocksdb_memory_consumers_t,
    cache: *mut rocksdb_cache_t,
) {
    boundary!((*consumers).caches.extend(cache.as_ref().map(|cache| cache.0.clone())))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_memory_usage_create(
    consumers: *mut rocksdb_memory_consumers_t,
    errptr: Errptr,
) -> *mut rocksdb_memory_usage_t {
    boundary!(errptr, {
        let consumers = &*consumers;
        let mut usage = rocksdb_memory_usage_t::default();
        for &db in &consumers.databases {
            // Databases outlive the consumers.
            let db = &(*db).0;
            for cf in db.column_families() {
                let bytes = |name: &str| db.property_int_cf(&cf, name).unwrap_or(0);
                usage.memtables += bytes("rocksdb.size-all-mem-tables");
                usage.unflushed += bytes("rocksdb.cur-size-all-mem-tables");
                usage.readers += bytes("rocksdb.estimate-table-readers-mem");
            }
        }
        usage.caches = consumers.caches.iter().map(|cache| cache.usage() as u64).sum();
        hand_out(usage)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_memory_usage_destroy(usage: *mut rocksdb_memory_usage_t) {
    boundary!(give_back(usage))
}

macro_rules! usages {
    ($($name:ident $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(usage: *mut rocksdb_memory_usage_t) -> u64 {
            boundary!((*usage).$field)
        }
    )*};
}

usages! {
    rocksdb_approximate_memory_usage_get_mem_table_total memtables;
    rocksdb_approximate_memory_usage_get_mem_table_unflushed unflushed;
    rocksdb_approximate_memory_usage_get_mem_table_readers_total readers;
    rocksdb_approximate_memory_usage_get_cache_total caches;
}
