//! `rocksdb_options_*` for what the engine has no field for: accepted where that is harmless, checked at open where it
//! is not.

use crate::options::rocksdb_options_t;
use crate::settings::{Fate, Flag, Note};
use libc::{c_double, c_int, c_uint, size_t};

kept_settings! { rocksdb_options_t, OPTIONS_NOTES:
    Accepted "tunes how RocksDB opens files and reads, with threads that there are not here" {
        "read_io_executor_threads" c_int = 1;
            set rocksdb_options_set_read_io_executor_threads get rocksdb_options_get_read_io_executor_threads -> c_int;
        "open_files_async" Flag = Flag(0);
            set rocksdb_options_set_open_files_async get rocksdb_options_get_open_files_async -> Flag;
    }
    Accepted "tunes RocksDB's write path; there is one here, with the guarantees of the strictest setting" {
        "enable_pipelined_write" Flag = Flag(0);
            set rocksdb_options_set_enable_pipelined_write get rocksdb_options_get_enable_pipelined_write -> Flag;
        "unordered_write" Flag = Flag(0);
            set rocksdb_options_set_unordered_write get rocksdb_options_get_unordered_write -> Flag;
        "allow_concurrent_memtable_write" Flag = Flag(1);
            set rocksdb_options_set_allow_concurrent_memtable_write get rocksdb_options_get_allow_concurrent_memtable_write -> Flag;
        "two_write_queues" Flag = Flag(0);
            set rocksdb_options_set_two_write_queues get rocksdb_options_get_two_write_queues -> Flag;
        "enable_write_thread_adaptive_yield" Flag = Flag(1);
            set rocksdb_options_set_enable_write_thread_adaptive_yield get rocksdb_options_get_enable_write_thread_adaptive_yield -> Flag;
        "write_thread_max_yield_usec" u64 = 100;
            set rocksdb_options_set_write_thread_max_yield_usec get rocksdb_options_get_write_thread_max_yield_usec -> u64;
        "write_thread_slow_yield_usec" u64 = 3;
            set rocksdb_options_set_write_thread_slow_yield_usec get rocksdb_options_get_write_thread_slow_yield_usec -> u64;
        "use_adaptive_mutex" Flag = Flag(0);
            set rocksdb_options_set_use_adaptive_mutex get rocksdb_options_get_use_adaptive_mutex -> Flag;
    }
    Accepted "tunes RocksDB's memtables; there is one kind here, with ordered iteration and all snapshots" {
        "arena_block_size" size_t = 0;
            set rocksdb_options_set_arena_block_size get rocksdb_options_get_arena_block_size -> size_t;
        "memtable_huge_page_size" size_t = 0;
            set rocksdb_options_set_memtable_huge_page_size get rocksdb_options_get_memtable_huge_page_size -> size_t;
        "experimental_mempurge_threshold" c_double = 0.0;
            set rocksdb_options_set_experimental_mempurge_threshold get rocksdb_options_get_experimental_mempurge_threshold -> c_double;
        "memtable_op_scan_flush_trigger" u32 = 0;
            set rocksdb_options_set_memtable_op_scan_flush_trigger get rocksdb_options_get_memtable_op_scan_flush_trigger -> u32;
        "memtable_avg_op_scan_flush_trigger" u32 = 0;
            set rocksdb_options_set_memtable_avg_op_scan_flush_trigger get rocksdb_options_get_memtable_avg_op_scan_flush_trigger -> u32;
        "memtable_batch_lookup_optimization" Flag = Flag(0);
            set rocksdb_options_set_memtable_batch_lookup_optimization get rocksdb_options_get_memtable_batch_lookup_optimization -> Flag;
        "min_tombstones_for_range_conversion" u32 = 0;
            set rocksdb_options_set_min_tombstones_for_range_conversion get rocksdb_options_get_min_tombstones_for_range_conversion -> u32;
    }
    Accepted "tunes how files are read and written, not what is in them" {
        "strict_bytes_per_sync" Flag = Flag(0);
            set rocksdb_options_set_strict_bytes_per_sync get rocksdb_options_get_strict_bytes_per_sync -> Flag;
        "advise_random_on_open" Flag = Flag(1);
            set rocksdb_options_set_advise_random_on_open get rocksdb_options_get_advise_random_on_open -> Flag;
        "table_cache_numshardbits" c_int = 6;
            set rocksdb_options_set_table_cache_numshardbits get rocksdb_options_get_table_cache_numshardbits -> c_int;
        "async_wal_precreate" Flag = Flag(0);
            set rocksdb_options_set_async_wal_precreate get rocksdb_options_get_async_wal_precreate -> Flag;
        "log_readahead_size" size_t = 0;
            set rocksdb_options_set_log_readahead_size get rocksdb_options_get_log_readahead_size -> size_t;
        "use_direct_io_for_compaction_reads" Flag = Flag(0);
            set rocksdb_options_set_use_direct_io_for_compaction_reads get rocksdb_options_get_use_direct_io_for_compaction_reads -> Flag;
        "fast_sst_open" Flag = Flag(0);
            set rocksdb_options_set_fast_sst_open get rocksdb_options_get_fast_sst_open -> Flag;
        "avoid_unnecessary_blocking_io" Flag = Flag(0);
            set rocksdb_options_set_avoid_unnecessary_blocking_io get rocksdb_options_get_avoid_unnecessary_blocking_io -> Flag;
        "background_close_inactive_wals" Flag = Flag(0);
            set rocksdb_options_set_background_close_inactive_wals get rocksdb_options_get_background_close_inactive_wals -> Flag;
    }
    Acts "jobs at once" {
        "max_background_compactions" c_int = -1;
            set rocksdb_options_set_max_background_compactions get rocksdb_options_get_max_background_compactions -> c_int;
        "max_background_flushes" c_int = -1;
            set rocksdb_options_set_max_background_flushes get rocksdb_options_get_max_background_flushes -> c_int;
    }
    Acts "threads that open tables" {
        "max_file_opening_threads" c_int = 16;
            set rocksdb_options_set_max_file_opening_threads get rocksdb_options_get_max_file_opening_threads -> c_int;
    }
    Acts "limits" {
        "max_write_batch_group_size_bytes" u64 = 1048576;
            set rocksdb_options_set_max_write_batch_group_size_bytes get rocksdb_options_get_max_write_batch_group_size_bytes -> u64;
        "memtable_max_range_deletions" u32 = 0;
            set rocksdb_options_set_memtable_max_range_deletions get rocksdb_options_get_memtable_max_range_deletions -> u32;
    }
    Acts "what was read and written is verified" {
        "flush_verify_memtable_count" Flag = Flag(1);
            set rocksdb_options_set_flush_verify_memtable_count get rocksdb_options_get_flush_verify_memtable_count -> Flag;
        "compaction_verify_record_count" Flag = Flag(1);
            set rocksdb_options_set_compaction_verify_record_count get rocksdb_options_get_compaction_verify_record_count -> Flag;
        "verify_manifest_content_on_close" Flag = Flag(0);
            set rocksdb_options_set_verify_manifest_content_on_close get rocksdb_options_get_verify_manifest_content_on_close -> Flag;
    }
    Acts "compactions read back what they wrote" {
        "verify_output_flags" c_int = 0;
            set rocksdb_options_set_verify_output_flags get rocksdb_options_get_verify_output_flags -> c_int;
    }
    Acts "where the writes of a WAL that is replayed go" {
        "avoid_flush_during_recovery" Flag = Flag(0);
            set rocksdb_options_set_avoid_flush_during_recovery get rocksdb_options_get_avoid_flush_during_recovery -> Flag;
    }
    Accepted "each table is opened by the number and identity that the MANIFEST has of it, and refused if it has another" {
        "verify_sst_unique_id_in_manifest" Flag = Flag(1);
            set rocksdb_options_set_verify_sst_unique_id_in_manifest get rocksdb_options_get_verify_sst_unique_id_in_manifest -> Flag;
    }
    Accepted "what is known of a table is read when the table is opened, which happens in any case" {
        "skip_stats_update_on_db_open" Flag = Flag(0);
            set rocksdb_options_set_skip_stats_update_on_db_open get rocksdb_options_get_skip_stats_update_on_db_open -> Flag;
    }
    Accepted "an estimate that is for people: the properties of tables have 0, as RocksDB's have by default" {
        "sample_for_compression" u64 = 0;
            set rocksdb_options_set_sample_for_compression get rocksdb_options_get_sample_for_compression -> u64;
    }
    Accepted "who runs which job is asked of RocksDB through C++ and Java alone; events and LOG tell it" {
        "enable_thread_tracking" Flag = Flag(0);
            set rocksdb_options_set_enable_thread_tracking get rocksdb_options_get_enable_thread_tracking -> Flag;
    }
    Accepted "a single deletion over a deletion brings nothing back: the older deletion stays in force" {
        "enforce_single_del_contracts" Flag = Flag(1);
            set rocksdb_options_set_enforce_single_del_contracts get rocksdb_options_get_enforce_single_del_contracts -> Flag;
    }
    Accepted "blocks of files that are gone leave the cache at once" {
        "uncache_aggressiveness" u32 = 0;
            set rocksdb_options_set_uncache_aggressiveness get rocksdb_options_get_uncache_aggressiveness -> u32;
    }
    Accepted "the MANIFEST is written anew by size alone (max_manifest_file_size); a database opens from any of its sizes" {
        "max_manifest_space_amp_pct" c_int = 500;
            set rocksdb_options_set_max_manifest_space_amp_pct get rocksdb_options_get_max_manifest_space_amp_pct -> c_int;
        "reuse_manifest_on_open" Flag = Flag(0);
            set rocksdb_options_set_reuse_manifest_on_open get rocksdb_options_get_reuse_manifest_on_open -> Flag;
        "optimize_manifest_for_recovery" Flag = Flag(0);
            set rocksdb_options_set_optimize_manifest_for_recovery get rocksdb_options_get_optimize_manifest_for_recovery -> Flag;
        "manifest_preallocation_size" size_t = 4194304;
            set rocksdb_options_set_manifest_preallocation_size get rocksdb_options_get_manifest_preallocation_size -> size_t;
    }
    Accepted "a file is opened for one process: descriptors are closed in those that it starts" {
        "is_fd_close_on_exec" Flag = Flag(1);
            set rocksdb_options_set_is_fd_close_on_exec get rocksdb_options_get_is_fd_close_on_exec -> Flag;
    }
    Accepted "an obsolete file is removed as soon as nobody reads it, and what was left behind when the database opens" {
        "delete_obsolete_files_period_micros" u64 = 21600000000;
            set rocksdb_options_set_delete_obsolete_files_period_micros get rocksdb_options_get_delete_obsolete_files_period_micros -> u64;
    }
    Accepted "memory is taken as keys come: overwriting a key takes as much as a new one, whatever this says; reads are the same" {
        "inplace_update_support" Flag = Flag(0);
            set rocksdb_options_set_inplace_update_support get rocksdb_options_get_inplace_update_support -> Flag;
        "inplace_update_num_locks" size_t = 10000;
            set rocksdb_options_set_inplace_update_num_locks get rocksdb_options_get_inplace_update_num_locks -> size_t;
    }
    Accepted "memtables have an index of whole keys, which a filter could only repeat" {
        "memtable_whole_key_filtering" Flag = Flag(0);
            set rocksdb_options_set_memtable_whole_key_filtering get rocksdb_options_get_memtable_whole_key_filtering -> Flag;
        "bloom_locality" u32 = 0;
            set rocksdb_options_set_bloom_locality get rocksdb_options_get_bloom_locality -> u32;
    }
    Accepted "tables are written with calls and not by stores into mapped pages: the bytes are the same, and durable at the same moments; RocksDB maps neither WAL nor MANIFEST" {
        "allow_mmap_writes" Flag = Flag(0);
            set rocksdb_options_set_allow_mmap_writes get rocksdb_options_get_allow_mmap_writes -> Flag;
    }
    Acts "LOG" {
        "info_log_level" c_int = 1;
            set rocksdb_options_set_info_log_level get rocksdb_options_get_info_log_level -> c_int;
        "max_log_file_size" size_t = 0;
            set rocksdb_options_set_max_log_file_size get rocksdb_options_get_max_log_file_size -> size_t;
        "log_file_time_to_roll" size_t = 0;
            set rocksdb_options_set_log_file_time_to_roll get rocksdb_options_get_log_file_time_to_roll -> size_t;
    }
    Accepted "LOG tells of memory what properties do" {
        "dump_malloc_stats" Flag = Flag(0);
            set rocksdb_options_set_dump_malloc_stats get rocksdb_options_get_dump_malloc_stats -> Flag;
        "allow_data_in_errors" Flag = Flag(0);
            set rocksdb_options_set_allow_data_in_errors get rocksdb_options_get_allow_data_in_errors -> Flag;
    }
    Accepted "the history of statistics is read through C++ and Java alone" {
        "stats_persist_period_sec" c_uint = 600;
            set rocksdb_options_set_stats_persist_period_sec get rocksdb_options_get_stats_persist_period_sec -> c_uint;
        "persist_stats_to_disk" Flag = Flag(0);
            set rocksdb_options_set_persist_stats_to_disk get rocksdb_options_get_persist_stats_to_disk -> Flag;
        "stats_history_buffer_size" size_t = 1048576;
            set rocksdb_options_set_stats_history_buffer_size get rocksdb_options_get_stats_history_buffer_size -> size_t;
    }
    Accepted "tunes when RocksDB compacts; what a read returns does not depend on it" {
        "read_triggered_compaction_threshold" c_double = 0.0;
            set rocksdb_options_set_read_triggered_compaction_threshold get rocksdb_options_get_read_triggered_compaction_threshold -> c_double;
        "max_compaction_trigger_wakeup_seconds" u64 = 43200;
            set rocksdb_options_set_max_compaction_trigger_wakeup_seconds get rocksdb_options_get_max_compaction_trigger_wakeup_seconds -> u64;
        "target_file_size_is_upper_bound" Flag = Flag(0);
            set rocksdb_options_set_target_file_size_is_upper_bound get rocksdb_options_get_target_file_size_is_upper_bound -> Flag;
        "preclude_last_level_data_seconds" u64 = 0;
            set rocksdb_options_set_preclude_last_level_data_seconds get rocksdb_options_get_preclude_last_level_data_seconds -> u64;
        "preserve_internal_time_seconds" u64 = 0;
            set rocksdb_options_set_preserve_internal_time_seconds get rocksdb_options_get_preserve_internal_time_seconds -> u64;
    }
    Accepted "a hint for storage that has tiers" {
        "last_level_temperature" c_int = 0;
            set rocksdb_options_set_last_level_temperature get rocksdb_options_get_last_level_temperature -> c_int;
        "default_write_temperature" c_int = 0;
            set rocksdb_options_set_default_write_temperature get rocksdb_options_get_default_write_temperature -> c_int;
        "default_temperature" c_int = 0;
            set rocksdb_options_set_default_temperature get rocksdb_options_get_default_temperature -> c_int;
        "metadata_write_temperature" c_int = 0;
            set rocksdb_options_set_metadata_write_temperature get rocksdb_options_get_metadata_write_temperature -> c_int;
        "wal_write_temperature" c_int = 0;
            set rocksdb_options_set_wal_write_temperature get rocksdb_options_get_wal_write_temperature -> c_int;
        "lowest_used_cache_tier" c_int = 2;
            set rocksdb_options_set_lowest_used_cache_tier get rocksdb_options_get_lowest_used_cache_tier -> c_int;
    }
    Accepted "an additional check of RocksDB's own memory or of its own outputs; block checksums are always verified on reading" {
        "paranoid_memory_checks" Flag = Flag(0);
            set rocksdb_options_set_paranoid_memory_checks get rocksdb_options_get_paranoid_memory_checks -> Flag;
        "memtable_protection_bytes_per_key" u32 = 0;
            set rocksdb_options_set_memtable_protection_bytes_per_key get rocksdb_options_get_memtable_protection_bytes_per_key -> u32;
        "block_protection_bytes_per_key" u8 = 0;
            set rocksdb_options_set_block_protection_bytes_per_key get rocksdb_options_get_block_protection_bytes_per_key -> u8;
        "memtable_verify_per_key_checksum_on_seek" Flag = Flag(0);
            set rocksdb_options_set_memtable_verify_per_key_checksum_on_seek get rocksdb_options_get_memtable_verify_per_key_checksum_on_seek -> Flag;
    }
    Accepted "what it asks for is always so here" {
        "enforce_write_buffer_manager_during_recovery" Flag = Flag(1);
            set rocksdb_options_set_enforce_write_buffer_manager_during_recovery get rocksdb_options_get_enforce_write_buffer_manager_during_recovery -> Flag;
        "prefix_seek_opt_in_only" Flag = Flag(0);
            set rocksdb_options_set_prefix_seek_opt_in_only get rocksdb_options_get_prefix_seek_opt_in_only -> Flag;
    }
    Accepted "about followers, which cannot be opened" {
        "follower_refresh_catchup_period_ms" u64 = 10000;
            set rocksdb_options_set_follower_refresh_catchup_period_ms get rocksdb_options_get_follower_refresh_catchup_period_ms -> u64;
        "follower_catchup_retry_count" u64 = 10;
            set rocksdb_options_set_follower_catchup_retry_count get rocksdb_options_get_follower_catchup_retry_count -> u64;
        "follower_catchup_retry_wait_ms" u64 = 100;
            set rocksdb_options_set_follower_catchup_retry_wait_ms get rocksdb_options_get_follower_catchup_retry_wait_ms -> u64;
    }
    Accepted "tunes how RocksDB handles blob files; the values read are the same" {
        "enable_blob_direct_write" Flag = Flag(0);
            set rocksdb_options_set_enable_blob_direct_write get rocksdb_options_get_enable_blob_direct_write -> Flag;
        "blob_direct_write_partitions" u32 = 1;
            set rocksdb_options_set_blob_direct_write_partitions get rocksdb_options_get_blob_direct_write_partitions -> u32;
    }
    Accepted "matters only to user-defined timestamps: a column family that has them does not open if they are not persisted" {
        "persist_user_defined_timestamps" Flag = Flag(1);
            set rocksdb_options_set_persist_user_defined_timestamps get rocksdb_options_get_persist_user_defined_timestamps -> Flag;
    }
    Accepted "any database keeps prepared transactions, and flushes when it recovers" {
        "allow_2pc" Flag = Flag(0);
            set rocksdb_options_set_allow_2pc get rocksdb_options_get_allow_2pc -> Flag;
    }
    Checked "the promise it makes is not kept here" {
        "best_efforts_recovery" Flag = Flag(0);
            set rocksdb_options_set_best_efforts_recovery get rocksdb_options_get_best_efforts_recovery -> Flag;
        "disallow_memtable_writes" Flag = Flag(0);
            set rocksdb_options_set_disallow_memtable_writes get rocksdb_options_get_disallow_memtable_writes -> Flag;
    }
    Accepted "one thread compresses a table; dictionaries are always trained" {
        "parallel_threads" c_int = 1;
            set rocksdb_options_set_compression_options_parallel_threads
            get rocksdb_options_get_compression_options_parallel_threads -> c_int;
        "use_zstd_dict_trainer" Flag = Flag(1);
            set rocksdb_options_set_compression_options_use_zstd_dict_trainer
            get rocksdb_options_get_compression_options_use_zstd_dict_trainer -> Flag;
    }
}

const TRAINED: &str = "dictionaries are always trained; of the setter its second argument counts, which says whether options of the bottommost level hold";
/// The setter is in `options.rs`.
pub(crate) const BOTTOMMOST_NOTES: &[Note] = &[
    Note {
        function: "rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer",
        fate: Fate::Accepted,
        why: TRAINED,
    },
    Note {
        function: "rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer",
        fate: Fate::Accepted,
        why: TRAINED,
    },
];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(
    options: *mut rocksdb_options_t,
) -> Flag {
    boundary!(Flag::from((*options).cf.bottommost_compression_opts.use_zstd_dict_trainer))
}

/// A set of small numbers, kept for its getters.
macro_rules! number_sets {
    ($notes:ident: $why:literal { $($name:literal = $default:literal:
        $clear:ident $add:ident $remove:ident $contains:ident $count:ident;)* }) => {
        pub(crate) const $notes: &[Note] = &[$(
            Note { function: stringify!($clear), fate: Fate::Accepted, why: $why },
            Note { function: stringify!($add), fate: Fate::Accepted, why: $why },
            Note { function: stringify!($remove), fate: Fate::Accepted, why: $why },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $clear(options: *mut rocksdb_options_t) {
                boundary!(change_set(options, $name, $default, |_| 0))
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $add(options: *mut rocksdb_options_t, number: c_int) {
                boundary!(change_set(options, $name, $default, |set| set | bit(number)))
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $remove(options: *mut rocksdb_options_t, number: c_int) {
                boundary!(change_set(options, $name, $default, |set| set & !bit(number)))
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $contains(options: *mut rocksdb_options_t, number: c_int) -> Flag {
                boundary!(Flag::from((*options).settings.kept::<u64>($name, $default) & bit(number) != 0))
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $count(options: *mut rocksdb_options_t) -> size_t {
                boundary!((*options).settings.kept::<u64>($name, $default).count_ones() as size_t)
            }
        )*
    };
}

fn bit(number: c_int) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1u64.checked_shl(number)).unwrap_or(0)
}

unsafe fn change_set(
    options: *mut rocksdb_options_t,
    name: &'static str,
    default: u64,
    change: impl FnOnce(u64) -> u64,
) {
    // SAFETY: the caller passes live options.
    let settings = unsafe { &mut (*options).settings };
    let set = settings.kept(name, default);
    settings.keep(Fate::Accepted, name, default, change(set));
}

number_sets! { SET_NOTES: "a hint to file systems that the engine does not use" {
    "checksum_handoff_file_types" = 0:
        rocksdb_options_checksum_handoff_file_types_clear
        rocksdb_options_checksum_handoff_file_types_add
        rocksdb_options_checksum_handoff_file_types_remove
        rocksdb_options_checksum_handoff_file_types_contains
        rocksdb_options_checksum_handoff_file_types_count;
    "calculate_sst_write_lifetime_hint_set" = 1:
        rocksdb_options_calculate_sst_write_lifetime_hint_set_clear
        rocksdb_options_calculate_sst_write_lifetime_hint_set_add
        rocksdb_options_calculate_sst_write_lifetime_hint_set_remove
        rocksdb_options_calculate_sst_write_lifetime_hint_set_contains
        rocksdb_options_calculate_sst_write_lifetime_hint_set_count;
} }
