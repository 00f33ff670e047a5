//! Functions that older headers of RocksDB declare and that of 11.8.1 does not: bindings made for those link.
//!
//! Where an argument list changed, one symbol serves both callers:
//!
//! ```text
//! slicetransform_create          had `in_range` before `name`: `slice_transform.rs`
//! options_set_plain_table_factory  had four arguments less, all at the end and not looked at
//! enable_file_deletions          had `force` before `errptr`, in which nothing is stored
//! ```

use crate::boundary::warn;
use crate::cache::rocksdb_cache_t;
use crate::db::rocksdb_t;
use crate::options::rocksdb_options_t;
use crate::read_options::rocksdb_readoptions_t;
use crate::table_options::rocksdb_block_based_table_options_t;
use crate::writebatch_wi::rocksdb_writebatch_wi_t;
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::Error;

/// Numbers that RocksDB itself dropped, or that had no effect any more: kept for their getters.
macro_rules! dropped {
    ($($name:literal $set:ident($type:ty) $(get $get:ident)? = $default:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(options: *mut rocksdb_options_t, value: $type) {
            boundary!((*options).settings.keep(crate::settings::Fate::Accepted, $name, $default, value))
        }

        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(options: *mut rocksdb_options_t) -> $type {
            boundary!((*options).settings.kept($name, $default))
        })?
    )*};
}

dropped! {
    "skip_checking_sst_file_sizes_on_db_open" rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(c_uchar)
        get rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open = 0;
    "access_hint_on_compaction_start" rocksdb_options_set_access_hint_on_compaction_start(c_int)
        get rocksdb_options_get_access_hint_on_compaction_start = 1;
    "max_write_buffer_number_to_maintain" rocksdb_options_set_max_write_buffer_number_to_maintain(c_int)
        get rocksdb_options_get_max_write_buffer_number_to_maintain = 0;
}

/// There is no cache of compressed blocks; it would only save reads.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_set_block_cache_compressed(
    _options: *mut rocksdb_block_based_table_options_t,
    _cache: *mut rocksdb_cache_t,
) {
}

/// Without effect in RocksDB, too.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_managed(_options: *mut rocksdb_readoptions_t, _managed: c_uchar) {}

/// Refused: a file taken out by its name can bring deleted keys back.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_delete_file(_db: *mut rocksdb_t, _name: *const c_char) {
    boundary!(warn(Error::not_supported("rocksdb_delete_file: use rocksdb_delete_file_in_range")))
}

/// Refused: older headers declare it, and no library of RocksDB's ever had it, so that there is nothing it could do the same as.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create_from(
    _rep: *const c_char,
    _size: size_t,
) -> *mut rocksdb_writebatch_wi_t {
    boundary!({
        let why = "rocksdb_writebatch_wi_create_from, which RocksDB declares and has not: use rocksdb_writebatch_wi_create";
        warn(Error::not_supported(why));
        std::ptr::null_mut()
    })
}
