//! `rocksdb_sst_file_manager_*`: the space that tables and blob files of databases take on disk together.

use crate::env::rocksdb_env_t;
use crate::memory::{give_back, hand_out};
use crate::options::rocksdb_options_t;
use outcrop::SstFileManager;
use std::sync::Arc;

pub struct rocksdb_sst_file_manager_t(pub Arc<SstFileManager>);

/// Files are removed in the environment of the database that they are of.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_create(
    _env: *mut rocksdb_env_t,
) -> *mut rocksdb_sst_file_manager_t {
    boundary!(hand_out(rocksdb_sst_file_manager_t(Arc::default())))
}

/// Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_manager_destroy(manager: *mut rocksdb_sst_file_manager_t) {
    boundary!(give_back(manager))
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_sst_file_manager(
    options: *mut rocksdb_options_t,
    manager: *mut rocksdb_sst_file_manager_t,
) {
    boundary!((*options).objects.sst_file_manager = manager.as_ref().map(|manager| manager.0.clone()))
}

/// Functions over the manager.
macro_rules! sst_file_manager {
    ($($name:ident($($arg:ident: $type:ty)?) $(-> $ret:ty)? |$manager:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(manager: *mut rocksdb_sst_file_manager_t $(, $arg: $type)?) $(-> $ret)? {
            boundary!({
                let $manager = &*(*manager).0;
                $body
            })
        }
    )*};
}

sst_file_manager! {
    rocksdb_sst_file_manager_set_max_allowed_space_usage(max_allowed_space: u64) |m|
        m.set_max_allowed_space(max_allowed_space);
    rocksdb_sst_file_manager_set_compaction_buffer_size(size: u64) |m| m.set_compaction_buffer(size);
    rocksdb_sst_file_manager_is_max_allowed_space_reached() -> bool |m| m.is_max_allowed_space_reached();
    rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions() -> bool |m|
        m.is_max_allowed_space_reached_including_compactions();
    rocksdb_sst_file_manager_get_total_size() -> u64 |m| m.total_size();
    rocksdb_sst_file_manager_get_total_trash_size() -> u64 |m| m.trash_size();
    rocksdb_sst_file_manager_get_delete_rate_bytes_per_second() -> i64 |m| m.delete_rate();
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(delete_rate: i64) |m| m.set_delete_rate(delete_rate);
    rocksdb_sst_file_manager_get_max_trash_db_ratio() -> f64 |m| m.max_trash_ratio();
    rocksdb_sst_file_manager_set_max_trash_db_ratio(ratio: f64) |m| m.set_max_trash_ratio(ratio);
}
