//! `rocksdb_block_based_options_*` and `rocksdb_filterpolicy_*`.

use crate::cache::rocksdb_cache_t;
use crate::memory::{give_back, hand_out};
use libc::{c_char, c_double, c_int, c_uchar, size_t};
use outcrop::{BlockBasedTableOptions, Cache, FilterPolicy};
use std::sync::Arc;

#[derive(Default)]
pub struct rocksdb_block_based_table_options_t {
    pub(crate) options: BlockBasedTableOptions,
    pub(crate) cache: Option<Arc<Cache>>,
}

pub struct rocksdb_filterpolicy_t(FilterPolicy);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t {
    hand_out(rocksdb_block_based_table_options_t::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_destroy(
    options: *mut rocksdb_block_based_table_options_t,
) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(options) }
}

/// Setters: C name, C type, and what it does to `$options`.
macro_rules! setters {
    ($($name:ident($value:ident: $type:ty) |$options:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_block_based_table_options_t, $value: $type) {
            // SAFETY: the contract of the C API.
            let $options = unsafe { &mut *options };
            $body;
        }
    )*};
}

setters! {
    rocksdb_block_based_options_set_block_size(value: size_t) |o| o.options.block_size = value as u64;
    rocksdb_block_based_options_set_block_size_deviation(value: c_int)
        |o| o.options.block_size_deviation = value.max(0) as u32;
    rocksdb_block_based_options_set_block_restart_interval(value: c_int)
        |o| o.options.block_restart_interval = value.max(1) as u32;
    rocksdb_block_based_options_set_index_block_restart_interval(value: c_int)
        |o| o.options.index_block_restart_interval = value.max(1) as u32;
    rocksdb_block_based_options_set_no_block_cache(value: c_uchar) |o| o.options.no_block_cache = value != 0;
    rocksdb_block_based_options_set_whole_key_filtering(value: c_uchar)
        |o| o.options.whole_key_filtering = value != 0;
    rocksdb_block_based_options_set_format_version(value: c_int)
        |o| o.options.format_version = value.max(0) as u32;
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(value: c_uchar)
        |o| o.options.cache_index_and_filter_blocks = value != 0;
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(value: c_uchar)
        |o| o.options.pin_l0_filter_and_index_blocks_in_cache = value != 0;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_checksum(
    options: *mut rocksdb_block_based_table_options_t,
    checksum: c_char,
) {
    // SAFETY: the contract of the C API.
    let options = unsafe { &mut *options };
    if let Ok(checksum) = outcrop::options::checksum_from_byte(checksum as u8) {
        options.options.checksum = checksum;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_block_cache(
    options: *mut rocksdb_block_based_table_options_t,
    cache: *mut rocksdb_cache_t,
) {
    // SAFETY: the contract of the C API; the cache is shared, the caller keeps its own reference.
    unsafe { (*options).cache = cache.as_ref().map(|cache| cache.0.clone()) };
}

/// Takes ownership of `policy`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_filter_policy(
    options: *mut rocksdb_block_based_table_options_t,
    policy: *mut rocksdb_filterpolicy_t,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        (*options).options.filter_policy = policy.as_ref().map_or(FilterPolicy::None, |policy| policy.0);
        give_back(policy);
    }
}

fn bloom(bits_per_key: c_double) -> *mut rocksdb_filterpolicy_t {
    hand_out(rocksdb_filterpolicy_t(FilterPolicy::Bloom { bits_per_key }))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom(bits_per_key: c_double) -> *mut rocksdb_filterpolicy_t {
    bloom(bits_per_key)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom_full(
    bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    bloom(bits_per_key)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_filterpolicy_destroy(policy: *mut rocksdb_filterpolicy_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(policy) }
}
