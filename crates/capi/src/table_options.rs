//! `rocksdb_block_based_options_*` and `rocksdb_filterpolicy_*`.

use crate::cache::rocksdb_cache_t;
use crate::memory::{give_back, hand_out};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_double, c_int, size_t};
use outcrop::{BlockBasedTableOptions, Cache, FilterPolicy};
use std::sync::Arc;

#[derive(Default)]
pub struct rocksdb_block_based_table_options_t {
    pub(crate) options: BlockBasedTableOptions,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) settings: Settings,
}

pub struct rocksdb_filterpolicy_t(FilterPolicy);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t {
    boundary!(hand_out(rocksdb_block_based_table_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_destroy(
    options: *mut rocksdb_block_based_table_options_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_block_based_table_options_t:
    "block_size" [options.block_size]
        set rocksdb_block_based_options_set_block_size(size_t)
        get rocksdb_block_based_options_get_block_size -> u64;
    "block_size_deviation" [options.block_size_deviation]
        set rocksdb_block_based_options_set_block_size_deviation(c_int)
        get rocksdb_block_based_options_get_block_size_deviation -> c_int;
    "format_version" [options.format_version]
        set rocksdb_block_based_options_set_format_version(c_int)
        get rocksdb_block_based_options_get_format_version -> u32;
    "index_type" [options.index_type]
        set rocksdb_block_based_options_set_index_type(c_int)
        get rocksdb_block_based_options_get_index_type -> c_int;
    "metadata_block_size" [options.metadata_block_size]
        set rocksdb_block_based_options_set_metadata_block_size(u64)
        get rocksdb_block_based_options_get_metadata_block_size -> u64;
    "partition_filters" [options.partition_filters]
        set rocksdb_block_based_options_set_partition_filters(Flag)
        get rocksdb_block_based_options_get_partition_filters -> Flag;
    "enable_index_compression" [options.enable_index_compression]
        set rocksdb_block_based_options_set_enable_index_compression(Flag)
        get rocksdb_block_based_options_get_enable_index_compression -> Flag;
    "index_shortening" [options.index_shortening]
        set rocksdb_block_based_options_set_index_shortening(c_int)
        get rocksdb_block_based_options_get_index_shortening -> c_int;
    "data_block_index_type" [options.data_block_index_type]
        set rocksdb_block_based_options_set_data_block_index_type(c_int)
        get rocksdb_block_based_options_get_data_block_index_type -> c_int;
    "data_block_hash_table_util_ratio" [options.data_block_hash_table_util_ratio]
        set rocksdb_block_based_options_set_data_block_hash_table_util_ratio(c_double)
        get rocksdb_block_based_options_get_data_block_hash_table_util_ratio -> c_double;
    "use_delta_encoding" [options.use_delta_encoding]
        set rocksdb_block_based_options_set_use_delta_encoding(Flag)
        get rocksdb_block_based_options_get_use_delta_encoding -> Flag;
    "verify_compression" [options.verify_compression]
        set rocksdb_block_based_options_set_verify_compression(Flag)
        get rocksdb_block_based_options_get_verify_compression -> Flag;
    "whole_key_filtering" [options.whole_key_filtering]
        set rocksdb_block_based_options_set_whole_key_filtering(Flag)
        get rocksdb_block_based_options_get_whole_key_filtering -> Flag;
    "cache_index_and_filter_blocks" [options.cache_index_and_filter_blocks]
        set rocksdb_block_based_options_set_cache_index_and_filter_blocks(Flag)
        get rocksdb_block_based_options_get_cache_index_and_filter_blocks -> Flag;
    "pin_l0_filter_and_index_blocks_in_cache" [options.pin_l0_filter_and_index_blocks_in_cache]
        set rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(Flag)
        get rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache -> Flag;
    "block_align" [options.block_align]
        set rocksdb_block_based_options_set_block_align(Flag)
        get rocksdb_block_based_options_get_block_align -> Flag;
    "prepopulate_block_cache" [options.prepopulate_block_cache]
        set rocksdb_block_based_options_set_prepopulate_block_cache(c_int)
        get rocksdb_block_based_options_get_prepopulate_block_cache -> c_int;
    "read_amp_bytes_per_bit" [options.read_amp_bytes_per_bit]
        set rocksdb_block_based_options_set_read_amp_bytes_per_bit(u32)
        get rocksdb_block_based_options_get_read_amp_bytes_per_bit -> u32;
    "no_block_cache" [options.no_block_cache]
        set rocksdb_block_based_options_set_no_block_cache(Flag)
        get rocksdb_block_based_options_get_no_block_cache -> Flag;
    "separate_key_value_in_data_block" [options.separate_key_value_in_data_block]
        set rocksdb_block_based_options_set_separate_key_value_in_data_block(Flag)
        get rocksdb_block_based_options_get_separate_key_value_in_data_block -> Flag;
    "data_block_hash_ratio" [options.data_block_hash_table_util_ratio]
        set rocksdb_block_based_options_set_data_block_hash_ratio(c_double);
    "block_restart_interval" [options.block_restart_interval]
        get rocksdb_block_based_options_get_block_restart_interval -> c_int;
    "index_block_restart_interval" [options.index_block_restart_interval]
        get rocksdb_block_based_options_get_index_block_restart_interval -> c_int;
}

kept_settings! { rocksdb_block_based_table_options_t, TABLE_NOTES:
    Acts "how iterators read ahead" {
        "max_auto_readahead_size" size_t = 262144;
            set rocksdb_block_based_options_set_max_auto_readahead_size get rocksdb_block_based_options_get_max_auto_readahead_size -> size_t;
        "initial_auto_readahead_size" size_t = 8192;
            set rocksdb_block_based_options_set_initial_auto_readahead_size get rocksdb_block_based_options_get_initial_auto_readahead_size -> size_t;
        "num_file_reads_for_auto_readahead" u64 = 2;
            set rocksdb_block_based_options_set_num_file_reads_for_auto_readahead get rocksdb_block_based_options_get_num_file_reads_for_auto_readahead -> u64;
    }
    Accepted "tunes RocksDB's reads; the answer is the same" {
        "index_block_search_type" c_int = 0;
            set rocksdb_block_based_options_set_index_block_search_type get rocksdb_block_based_options_get_index_block_search_type -> c_int;
    }
    Accepted "indexes and filters always stay longer in the cache than data; an open table has its index whole, and loads partitions of its filter when they are asked for" {
        "cache_index_and_filter_blocks_with_high_priority" Flag = Flag(1);
            set rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority get rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority -> Flag;
        "pin_top_level_index_and_filter" Flag = Flag(1);
            set rocksdb_block_based_options_set_pin_top_level_index_and_filter get rocksdb_block_based_options_get_pin_top_level_index_and_filter -> Flag;
        "top_level_index_pinning_tier" c_int = 0;
            set rocksdb_block_based_options_set_top_level_index_pinning_tier;
    }
    Acts "index and filter that stay pinned" {
        "partition_pinning_tier" c_int = 0;
            set rocksdb_block_based_options_set_partition_pinning_tier;
        "unpartitioned_pinning_tier" c_int = 0;
            set rocksdb_block_based_options_set_unpartitioned_pinning_tier;
    }
    Accepted "tunes the layout of RocksDB's new tables; those written here are read by every version" {
        "decouple_partitioned_filters" Flag = Flag(1);
            set rocksdb_block_based_options_set_decouple_partitioned_filters get rocksdb_block_based_options_get_decouple_partitioned_filters -> Flag;
        "optimize_filters_for_memory" Flag = Flag(1);
            set rocksdb_block_based_options_set_optimize_filters_for_memory get rocksdb_block_based_options_get_optimize_filters_for_memory -> Flag;
        "detect_filter_construct_corruption" Flag = Flag(0);
            set rocksdb_block_based_options_set_detect_filter_construct_corruption get rocksdb_block_based_options_get_detect_filter_construct_corruption -> Flag;
        "uniform_cv_threshold" c_double = -1.0;
            set rocksdb_block_based_options_set_uniform_cv_threshold get rocksdb_block_based_options_get_uniform_cv_threshold -> c_double;
        "super_block_alignment_size" size_t = 0;
            set rocksdb_block_based_options_set_super_block_alignment_size get rocksdb_block_based_options_get_super_block_alignment_size -> size_t;
        "super_block_alignment_space_overhead_ratio" size_t = 128;
            set rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio get rocksdb_block_based_options_get_super_block_alignment_space_overhead_ratio -> size_t;
    }
    Checked "user-defined indexes are not supported" {
        "use_udi_as_primary_index" Flag = Flag(0);
            set rocksdb_block_based_options_set_use_udi_as_primary_index get rocksdb_block_based_options_get_use_udi_as_primary_index -> Flag;
        "fail_if_no_udi_on_open" Flag = Flag(0);
            set rocksdb_block_based_options_set_fail_if_no_udi_on_open get rocksdb_block_based_options_get_fail_if_no_udi_on_open -> Flag;
    }
}

refused! { USER_DEFINED_INDEX_NOTES:
    "user-defined indexes are not supported" {
        rocksdb_block_based_options_set_user_defined_index_factory_from_string(
            *mut rocksdb_block_based_table_options_t, *const c_char, size_t) @ errptr;
        rocksdb_block_based_options_clear_user_defined_index_factory(*mut rocksdb_block_based_table_options_t);
        rocksdb_block_based_options_get_user_defined_index_factory_name(
            *mut rocksdb_block_based_table_options_t, *mut size_t) -> *const c_char;
    }
}

/// As given: a number below 1 is corrected when a database is opened.
macro_rules! restart_intervals {
    ($($name:ident $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_block_based_table_options_t, value: c_int) {
            boundary!((*options).options.$field = value)
        }
    )*};
}

restart_intervals! {
    rocksdb_block_based_options_set_block_restart_interval block_restart_interval;
    rocksdb_block_based_options_set_index_block_restart_interval index_block_restart_interval;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_checksum(
    options: *mut rocksdb_block_based_table_options_t,
    checksum: c_char,
) {
    boundary!({
        let options = &mut *options;
        match outcrop_options::checksum_from_byte(checksum as u8) {
            Ok(known) => {
                options.options.checksum = known;
                options.settings.allow("checksum");
            }
            Err(_) => options.settings.refuse("checksum", checksum),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_get_checksum(
    options: *mut rocksdb_block_based_table_options_t,
) -> c_int {
    boundary!((*options).options.checksum as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_block_cache(
    options: *mut rocksdb_block_based_table_options_t,
    cache: *mut rocksdb_cache_t,
) {
    boundary!({
        // The cache is shared, the caller keeps its own reference.
        (*options).cache = cache.as_ref().map(|cache| cache.0.clone());
    })
}

/// Takes ownership of `policy`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_block_based_options_set_filter_policy(
    options: *mut rocksdb_block_based_table_options_t,
    policy: *mut rocksdb_filterpolicy_t,
) {
    boundary!({
        (*options).options.filter_policy = policy.as_ref().map_or(FilterPolicy::None, |policy| policy.0);
        give_back(policy);
    })
}

fn bloom(bits_per_key: c_double) -> *mut rocksdb_filterpolicy_t {
    hand_out(rocksdb_filterpolicy_t(FilterPolicy::Bloom { bits_per_key }))
}

fn ribbon(bits_per_key: c_double, bloom_before_level: c_int) -> *mut rocksdb_filterpolicy_t {
    hand_out(rocksdb_filterpolicy_t(FilterPolicy::Ribbon { bits_per_key, bloom_before_level }))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom(bits_per_key: c_double) -> *mut rocksdb_filterpolicy_t {
    boundary!(bloom(bits_per_key))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_bloom_full(
    bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    boundary!(bloom(bits_per_key))
}

/// Ribbon filters from L1 on, bloom filters for what a flush writes: RocksDB's default.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon(
    bloom_equivalent_bits_per_key: c_double,
) -> *mut rocksdb_filterpolicy_t {
    boundary!(ribbon(bloom_equivalent_bits_per_key, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_filterpolicy_create_ribbon_hybrid(
    bloom_equivalent_bits_per_key: c_double,
    bloom_before_level: c_int,
) -> *mut rocksdb_filterpolicy_t {
    boundary!(ribbon(bloom_equivalent_bits_per_key, bloom_before_level))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_filterpolicy_destroy(policy: *mut rocksdb_filterpolicy_t) {
    boundary!(give_back(policy))
}
