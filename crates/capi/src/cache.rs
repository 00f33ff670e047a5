//! `rocksdb_cache_*`.

use crate::memory::{give_back, hand_out};
use libc::size_t;
use outcrop::{Cache, CacheOptions};
use std::sync::Arc;

pub struct rocksdb_cache_t(pub(crate) Arc<Cache>);

fn create(capacity: size_t, estimated_entry_charge: usize) -> *mut rocksdb_cache_t {
    hand_out(rocksdb_cache_t(Cache::new(CacheOptions { capacity, estimated_entry_charge })))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(capacity: size_t) -> *mut rocksdb_cache_t {
    create(capacity, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock(
    capacity: size_t,
    estimated_entry_charge: size_t,
) -> *mut rocksdb_cache_t {
    create(capacity, estimated_entry_charge)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(cache) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_set_capacity(cache: *mut rocksdb_cache_t, capacity: size_t) {
    // SAFETY: the contract of the C API.
    unsafe { &*cache }.0.set_capacity(capacity);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_capacity(cache: *const rocksdb_cache_t) -> size_t {
    // SAFETY: the contract of the C API.
    unsafe { &*cache }.0.capacity()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_usage(cache: *const rocksdb_cache_t) -> size_t {
    // SAFETY: the contract of the C API.
    unsafe { &*cache }.0.usage()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_pinned_usage(cache: *const rocksdb_cache_t) -> size_t {
    // SAFETY: the contract of the C API.
    unsafe { &*cache }.0.pinned_usage()
}
