//! `rocksdb_write_buffer_manager_*`: one account of the memory of memtables, for the databases that share it.

use crate::cache::rocksdb_cache_t;
use crate::memory::{give_back, hand_out};
use crate::options::rocksdb_options_t;
use libc::size_t;
use outcrop::WriteBufferManager;
use std::sync::Arc;

pub struct rocksdb_write_buffer_manager_t(Arc<WriteBufferManager>);

fn managed(manager: WriteBufferManager, allow_stall: bool) -> *mut rocksdb_write_buffer_manager_t {
    manager.set_allow_stall(allow_stall);
    hand_out(rocksdb_write_buffer_manager_t(Arc::new(manager)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create(
    buffer_size: size_t,
    allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    boundary!(managed(WriteBufferManager::new(buffer_size as u64), allow_stall))
}

/// With a null cache memory is charged to none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    buffer_size: size_t,
    cache: *const rocksdb_cache_t,
    allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    boundary!({
        let size = buffer_size as u64;
        let manager = match cache.as_ref() {
            Some(cache) => WriteBufferManager::with_cache(size, cache.0.clone()),
            None => WriteBufferManager::new(size),
        };
        managed(manager, allow_stall)
    })
}

/// Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_destroy(manager: *mut rocksdb_write_buffer_manager_t) {
    boundary!(give_back(manager))
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_write_buffer_manager(
    options: *mut rocksdb_options_t,
    manager: *mut rocksdb_write_buffer_manager_t,
) {
    boundary!({
        (*options).objects.write_buffer_manager = manager.as_ref().map(|manager| manager.0.clone());
    })
}

/// Functions over the manager.
macro_rules! manager {
    ($($name:ident($($arg:ident: $type:ty)?) $(-> $ret:ty)? |$manager:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(manager: *mut rocksdb_write_buffer_manager_t $(, $arg: $type)?) $(-> $ret)? {
            boundary!({
                let $manager = &*(*manager).0;
                $body
            })
        }
    )*};
}

manager! {
    rocksdb_write_buffer_manager_enabled() -> bool |m| m.buffer_size() > 0;
    rocksdb_write_buffer_manager_cost_to_cache() -> bool |m| m.costs_to_cache();
    rocksdb_write_buffer_manager_buffer_size() -> size_t |m| m.buffer_size() as size_t;
    rocksdb_write_buffer_manager_memory_usage() -> size_t |m| m.memory_usage() as size_t;
    rocksdb_write_buffer_manager_mutable_memtable_memory_usage() -> size_t |m|
        m.mutable_memtable_memory_usage() as size_t;
    rocksdb_write_buffer_manager_dummy_entries_in_cache_usage() -> size_t |m| m.charged_to_cache() as size_t;
    rocksdb_write_buffer_manager_set_buffer_size(new_size: size_t) |m| m.set_buffer_size(new_size as u64);
    rocksdb_write_buffer_manager_set_allow_stall(allow: bool) |m| m.set_allow_stall(allow);
}
