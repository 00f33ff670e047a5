//! `rocksdb_cache_*`.

use crate::memory::{give_back, hand_out};
use crate::resources::rocksdb_memory_allocator_t;
use crate::settings::{Fate, Note};
use libc::{c_int, size_t};
use outcrop::{Cache, CacheOptions};
use std::sync::Arc;

pub struct rocksdb_cache_t(pub Arc<Cache>);

fn create(capacity: size_t, estimated_entry_charge: usize) -> *mut rocksdb_cache_t {
    hand_out(rocksdb_cache_t(Cache::new(CacheOptions { capacity, estimated_entry_charge })))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru(capacity: size_t) -> *mut rocksdb_cache_t {
    boundary!(create(capacity, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_hyper_clock(
    capacity: size_t,
    estimated_entry_charge: size_t,
) -> *mut rocksdb_cache_t {
    boundary!(create(capacity, estimated_entry_charge))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t) {
    boundary!(give_back(cache))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_set_capacity(cache: *mut rocksdb_cache_t, capacity: size_t) {
    boundary!((*cache).0.set_capacity(capacity))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_capacity(cache: *const rocksdb_cache_t) -> size_t {
    boundary!((*cache).0.capacity())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_usage(cache: *const rocksdb_cache_t) -> size_t {
    boundary!((*cache).0.usage())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_pinned_usage(cache: *const rocksdb_cache_t) -> size_t {
    boundary!((*cache).0.pinned_usage())
}

/// A read fails whose block finds no room beside what is pinned.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_create_lru_with_strict_capacity_limit(
    capacity: size_t,
) -> *mut rocksdb_cache_t {
    boundary!({
        let cache = Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 });
        cache.set_strict_capacity_limit(true);
        hand_out(rocksdb_cache_t(cache))
    })
}

/// The memory of a cache that is disowned is given back all the same: the process is about to end anyway.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cache_disown_data(_cache: *mut rocksdb_cache_t) {}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_occupancy_count(cache: *const rocksdb_cache_t) -> size_t {
    boundary!((*cache).0.entry_count())
}

/// There is no table of addresses: the number of entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_cache_get_table_address_count(cache: *const rocksdb_cache_t) -> size_t {
    boundary!((*cache).0.entry_count())
}

pub struct rocksdb_lru_cache_options_t(CacheOptions);
pub struct rocksdb_hyper_clock_cache_options_t(CacheOptions);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_lru_cache_options_create() -> *mut rocksdb_lru_cache_options_t {
    boundary!(hand_out(rocksdb_lru_cache_options_t(CacheOptions { capacity: 0, estimated_entry_charge: 0 })))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_hyper_clock_cache_options_create(
    capacity: size_t,
    estimated_entry_charge: size_t,
) -> *mut rocksdb_hyper_clock_cache_options_t {
    boundary!(hand_out(rocksdb_hyper_clock_cache_options_t(CacheOptions {
        capacity,
        estimated_entry_charge
    })))
}

macro_rules! cache_options {
    ($($type:ident: $destroy:ident $create_cache:ident $capacity:ident $shards:ident $allocator:ident;)*) => {
        pub(crate) const CACHE_NOTES: &[Note] = &[
            $(
                Note { function: stringify!($shards), fate: Fate::Accepted, why: "the cache shards itself" },
                Note { function: stringify!($allocator), fate: Fate::Accepted,
                    why: "the cache has memory of its own; no allocator can be created" },
            )*
            Note { function: "rocksdb_cache_disown_data", fate: Fate::Accepted,
                why: "the memory is given back all the same" },
        ];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $destroy(options: *mut $type) {
                boundary!(give_back(options))
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $create_cache(options: *const $type) -> *mut rocksdb_cache_t {
                boundary!({
                    let options = &(*options).0;
                    create(options.capacity, options.estimated_entry_charge)
                })
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $capacity(options: *mut $type, capacity: size_t) {
                boundary!((*options).0.capacity = capacity)
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn $shards(_options: *mut $type, _bits: c_int) {}

            #[unsafe(no_mangle)]
            pub extern "C" fn $allocator(_options: *mut $type, _allocator: *mut rocksdb_memory_allocator_t) {}
        )*
    };
}

cache_options! {
    rocksdb_lru_cache_options_t: rocksdb_lru_cache_options_destroy rocksdb_cache_create_lru_opts
        rocksdb_lru_cache_options_set_capacity rocksdb_lru_cache_options_set_num_shard_bits
        rocksdb_lru_cache_options_set_memory_allocator;
    rocksdb_hyper_clock_cache_options_t: rocksdb_hyper_clock_cache_options_destroy
        rocksdb_cache_create_hyper_clock_opts rocksdb_hyper_clock_cache_options_set_capacity
        rocksdb_hyper_clock_cache_options_set_num_shard_bits
        rocksdb_hyper_clock_cache_options_set_memory_allocator;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
    options: *mut rocksdb_hyper_clock_cache_options_t,
    estimated_entry_charge: size_t,
) {
    boundary!((*options).0.estimated_entry_charge = estimated_entry_charge)
}
