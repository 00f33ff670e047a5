//! LevelDB's C functions under RocksDB's names, so that the same load drives it.
//!
//! ```text
//! same signature       rocksdb_delete -> leveldb_delete                  no code in between
//! other shape          rocksdb_get_pinned -> leveldb_get                 a function here
//! no such thing        rocksdb_options_set_num_levels -> ignored         LevelDB has one setting, its own
//! ```
//! Differences that remain: LevelDB writes its log always, compresses with Snappy or not at all, copies each value
//! it returns, and does not say whether compaction is due.
//! Concurrency: one library for each process, set once; the functions may be called from any thread, as LevelDB's.

use crate::ffi::{Bytes, Errptr, Object};
use libc::{c_char, c_int, c_void, size_t};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Functions whose signatures are those of the RocksDB function of the same ending.
const SAME: &[&str] = &[
    "options_create",
    "options_destroy",
    "options_set_create_if_missing",
    "options_set_write_buffer_size",
    "cache_create_lru",
    "cache_destroy",
    "open",
    "close",
    "destroy_db",
    "writeoptions_create",
    "writeoptions_destroy",
    "writeoptions_set_sync",
    "readoptions_create",
    "readoptions_destroy",
    "delete",
    "create_iterator",
    "iter_destroy",
    "iter_seek",
    "iter_seek_to_first",
    "iter_next",
    "iter_prev",
    "iter_seek_to_last",
    "iter_valid",
    "iter_key",
    "iter_value",
    "iter_get_error",
    "writebatch_create",
    "writebatch_destroy",
    "writebatch_clear",
    "writebatch_put",
    "writebatch_delete",
    "write",
    "property_value",
    "compact_range",
    "free",
];

/// The functions that the ones below call.
struct Level {
    get: unsafe extern "C" fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char,
    free: unsafe extern "C" fn(*mut c_void),
    compact_range: unsafe extern "C" fn(Object, Bytes, size_t, Bytes, size_t),
    set_block_size: unsafe extern "C" fn(Object, size_t),
    set_cache: unsafe extern "C" fn(Object, Object),
    set_filter: unsafe extern "C" fn(Object, Object),
    set_compression: unsafe extern "C" fn(Object, c_int),
    create_bloom: unsafe extern "C" fn(c_int) -> Object,
}

static LEVEL: OnceLock<Level> = OnceLock::new();

fn level() -> &'static Level {
    LEVEL.get().expect("the table of functions was made before any is called")
}

/// The address that stands for the RocksDB function `name`, in a library whose symbols `symbol` finds.
///
/// # Safety
/// Each address `symbol` gives must be that of LevelDB's function of that name, and stay valid.
pub(crate) unsafe fn address(name: &str, symbol: &dyn Fn(&str) -> Option<*const ()>) -> Option<*const ()> {
    if LEVEL.get().is_none() {
        // SAFETY: the caller's promise; signatures are those of LevelDB's `c.h`.
        let functions = unsafe {
            Level {
                get: std::mem::transmute::<
                    *const (),
                    unsafe extern "C" fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char,
                >(symbol("leveldb_get")?),
                free: std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void)>(symbol(
                    "leveldb_free",
                )?),
                compact_range: std::mem::transmute::<
                    *const (),
                    unsafe extern "C" fn(Object, Bytes, size_t, Bytes, size_t),
                >(symbol("leveldb_compact_range")?),
                set_block_size: std::mem::transmute::<*const (), unsafe extern "C" fn(Object, size_t)>(
                    symbol("leveldb_options_set_block_size")?,
                ),
                set_cache: std::mem::transmute::<*const (), unsafe extern "C" fn(Object, Object)>(symbol(
                    "leveldb_options_set_cache",
                )?),
                set_filter: std::mem::transmute::<*const (), unsafe extern "C" fn(Object, Object)>(symbol(
                    "leveldb_options_set_filter_policy",
                )?),
                set_compression: std::mem::transmute::<*const (), unsafe extern "C" fn(Object, c_int)>(
                    symbol("leveldb_options_set_compression")?,
                ),
                create_bloom: std::mem::transmute::<*const (), unsafe extern "C" fn(c_int) -> Object>(
                    symbol("leveldb_filterpolicy_create_bloom")?,
                ),
            }
        };
        // A second thread would store the same.
        let _ = LEVEL.set(functions);
    }
    let ending = name.strip_prefix("rocksdb_")?;
    if SAME.contains(&ending) {
        return symbol(&format!("leveldb_{ending}"));
    }
    ours(ending)
}

/// Functions of this file.
fn ours(ending: &str) -> Option<*const ()> {
    Some(match ending {
        "get_pinned" => get_pinned as *const (),
        "pinnableslice_value" => pinned_value as *const (),
        "pinnableslice_destroy" => pinned_destroy as *const (),
        "property_int" => property_int as *const (),
        "flush" => flush as *const (),
        "flushoptions_create" => no_object as *const (),
        "options_set_compression" => set_compression as *const (),
        "options_set_block_based_table_factory" => set_table as *const (),
        "block_based_options_create" => table_create as *const (),
        "block_based_options_destroy" => table_destroy as *const (),
        "block_based_options_set_block_size" => table_block_size as *const (),
        "block_based_options_set_block_cache" => table_cache as *const (),
        "block_based_options_set_filter_policy" => table_filter as *const (),
        "filterpolicy_create_bloom_full" => create_bloom as *const (),
        "options_set_max_bytes_for_level_multiplier" => ignore_double as *const (),
        // Settings without a counterpart, and the destructor of no object: integers and pointers all travel alike.
        "flushoptions_destroy" | "writeoptions_disable_WAL" => ignore as *const (),
        setting if setting.starts_with("options_set_") || setting.starts_with("block_based_options_set_") => {
            ignore as *const ()
        }
        _ => return None,
    })
}

extern "C" fn ignore(_object: Object, _value: u64) {}

extern "C" fn ignore_double(_object: Object, _value: f64) {}

extern "C" fn no_object() -> Object {
    null_mut()
}

/// A value that LevelDB copied for us.
struct Copied {
    bytes: *mut c_char,
    len: size_t,
}

unsafe extern "C" fn get_pinned(
    db: Object,
    options: Object,
    key: Bytes,
    key_len: size_t,
    error: Errptr,
) -> Object {
    let mut len = 0;
    // SAFETY: the caller's objects, and a place for the length.
    let bytes = unsafe { (level().get)(db, options, key, key_len, &raw mut len, error) };
    if bytes.is_null() { null_mut() } else { Box::into_raw(Box::new(Copied { bytes, len })).cast() }
}

unsafe extern "C" fn pinned_value(value: Object, len: *mut size_t) -> Bytes {
    // SAFETY: an object of `get_pinned` that was not destroyed, and a place for the length.
    unsafe {
        let value = &*value.cast::<Copied>();
        *len = value.len;
        value.bytes
    }
}

unsafe extern "C" fn pinned_destroy(value: Object) {
    // SAFETY: an object of `get_pinned`, destroyed once; its bytes are LevelDB's to free.
    unsafe {
        let value = Box::from_raw(value.cast::<Copied>());
        (level().free)(value.bytes.cast());
    }
}

/// LevelDB has no numeric properties.
extern "C" fn property_int(_db: Object, _name: Bytes, _number: *mut u64) -> c_int {
    1
}

/// Compacts a range that holds nothing: LevelDB flushes its memtable first, and waits for that.
unsafe extern "C" fn flush(db: Object, _options: Object, _error: Errptr) {
    // SAFETY: a live database and a static key.
    unsafe { (level().compact_range)(db, c"".as_ptr(), 0, c"".as_ptr(), 0) }
}

/// Any codec becomes Snappy, which is LevelDB's only one.
unsafe extern "C" fn set_compression(options: Object, codec: c_int) {
    // SAFETY: the caller's options.
    unsafe { (level().set_compression)(options, codec.min(1)) }
}

/// Settings that RocksDB keeps in table options and LevelDB in its options.
struct Table {
    block_size: size_t,
    cache: Object,
    filter: Object,
}

extern "C" fn table_create() -> Object {
    Box::into_raw(Box::new(Table { block_size: 4096, cache: null_mut(), filter: null_mut() })).cast()
}

unsafe extern "C" fn table_destroy(table: Object) {
    // SAFETY: an object of `table_create`, destroyed once.
    drop(unsafe { Box::from_raw(table.cast::<Table>()) });
}

unsafe extern "C" fn table_block_size(table: Object, size: size_t) {
    // SAFETY: an object of `table_create`.
    unsafe { (*table.cast::<Table>()).block_size = size }
}

unsafe extern "C" fn table_cache(table: Object, cache: Object) {
    // SAFETY: an object of `table_create`.
    unsafe { (*table.cast::<Table>()).cache = cache }
}

unsafe extern "C" fn table_filter(table: Object, filter: Object) {
    // SAFETY: an object of `table_create`.
    unsafe { (*table.cast::<Table>()).filter = filter }
}

unsafe extern "C" fn set_table(options: Object, table: Object) {
    // SAFETY: the caller's options and an object of `table_create`. The filter policy lives as long as the process:
    // LevelDB leaves it to its user, and RocksDB's users have handed it over.
    unsafe {
        let table = &*table.cast::<Table>();
        (level().set_block_size)(options, table.block_size);
        if !table.cache.is_null() {
            (level().set_cache)(options, table.cache);
        }
        if !table.filter.is_null() {
            (level().set_filter)(options, table.filter);
        }
    }
}

unsafe extern "C" fn create_bloom(bits: c_int, _exact: f64) -> Object {
    // SAFETY: no objects are involved.
    unsafe { (level().create_bloom)(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::RocksApi;

    #[test]
    fn every_function_that_is_needed_has_a_counterpart() {
        // Never called: only their presence is looked at.
        let symbol = |_: &str| Some(no_object as *const ());
        // SAFETY: none of the addresses is called.
        let table = unsafe { RocksApi::from_symbols(|name| address(name, &symbol)) };
        assert!(table.is_ok_and(
            |table| table.rocksdb_get_options_from_string.is_none() && table.rocksdb_multi_get.is_none()
        ));
    }

    #[test]
    fn a_value_that_was_not_found_is_null() {
        assert!(ours("no_such_function").is_none());
        assert_eq!(property_int(null_mut(), std::ptr::null(), null_mut()), 1);
    }
}
