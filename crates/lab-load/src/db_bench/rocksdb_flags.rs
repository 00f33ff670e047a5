//! The flags of RocksDB's own tool that this one does not have. `docs/db_bench.md` lists all flags: a test makes it.
//!
//! Source: the names that `tools/db_bench_tool.cc` of RocksDB 6.28.2, 7.4.4, 8.1.1, 8.10.0, 10.4.2, 11.1.2 and 11.8.1 defines;
//! `cargo xtask scripts` compares them with what those of 6.28.2, 10.4.2 and 11.8.1 define.

/// Names of flags that are refused.
#[rustfmt::skip]
const MISSING: &[&str] = &[
    "adaptive_readahead", "advise_random_on_open", "allow_data_in_errors", "arena_block_size",
    "async_io", "async_wal_precreate", "auto_prefix_mode", "auto_readahead_size",
    "auto_refresh_iterator_with_snapshot", "backup_dir", "backup_rate_limit",
    "base_background_compactions", "benchmark_read_rate_limit", "blob_cache_numshardbits",
    "blob_cache_size", "blob_db_bytes_per_sync",
    "blob_db_compression_type", "blob_db_enable_gc", "blob_db_file_size", "blob_db_gc_cutoff",
    "blob_db_is_fifo", "blob_db_max_db_size", "blob_db_max_ttl_range", "blob_db_min_blob_size",
    "blob_db_ttl_range_secs", "blob_direct_write_partitions", "block_cache_trace_file",
    "block_cache_trace_max_trace_file_size_in_bytes", "block_cache_trace_sampling_frequency",
    "block_protection_bytes_per_key", "bloom_locality", "cache_uri", "charge_blob_cache",
    "charge_compression_dictionary_building_buffer", "charge_file_metadata",
    "charge_filter_construction", "charge_table_reader", "check_flush_compaction_key_order",
    "column_family_distribution", "compaction_fadvice", "compressed_cache_size",
    "compressed_secondary_cache_compress_format_version", "compressed_secondary_cache_compression_level",
    "compressed_secondary_cache_compression_type", "compressed_secondary_cache_high_pri_pool_ratio",
    "compressed_secondary_cache_low_pri_pool_ratio", "compressed_secondary_cache_numshardbits",
    "compressed_secondary_cache_size", "compression_manager",
    "coro_jobs_per_thread",
    "cost_write_buffer_to_cache", "cuckoo_hash_ratio",
    "decouple_partitioned_filters", "deletepercent", "deletes", "disable_seek_compaction",
    "disposable_entries_batch_size", "disposable_entries_delete_delay", "disposable_entries_value_size",
    "dump_malloc_stats", "embedded_blob_min_size", "enable_blob_direct_write", "enable_cpu_prio",
    "enable_io_prio", "enable_numa", "enable_pipelined_write",
    "enable_write_thread_adaptive_yield", "env_uri", "expand_range_tombstones",
    "experimental_mempurge_threshold", "expire_style", "explicit_snapshot",
    "fatal_shutdown_watchdog_seconds", "fault_injection_read_after_reads", "fifo_age_for_warm",
    "fifo_compaction_allow_compaction", "fifo_compaction_max_data_files_size_mb",
    "fifo_compaction_max_table_files_size_mb", "fifo_compaction_ttl",
    "fifo_compaction_use_kv_ratio_compaction", "file_checksum", "file_opening_threads",
    "finish_after_writes", "fs_uri", "hash_bucket_count", "hdfs",
    "identity_as_first_hash", "index_block_search_type", "index_with_first_key",
    "ingest_external_file_batch_size", "ingest_external_file_file_opening_threads",
    "ingest_external_file_fill_cache", "ingest_external_file_num_batches",
    "ingest_external_file_prefetch_lmax_index_and_filter_blocks", "ingest_external_file_use_file_info",
    "initial_auto_readahead_size", "inplace_update_num_locks", "io_dispatcher_max_prefetch_memory_bytes",
    "io_uring_enabled", "key_id_range", "leader_path", "log_readahead_size", "max_auto_readahead_size",
    "max_bytes_for_level_multiplier_additional", "max_compaction_trigger_wakeup_seconds",
    "max_manifest_space_amp_pct", "max_num_range_tombstones",
    "max_scan_distance", "max_write_buffer_number_to_maintain",
    "memtable_batch_lookup_optimization", "memtable_insert_with_hint_prefix_size",
    "memtable_op_scan_flush_trigger", "memtable_protection_bytes_per_key", "memtable_use_huge_page",
    "memtable_veirfy_per_key_checksum_on_seek", "memtable_verify_per_key_checksum_on_seek",
    "min_tombstones_for_range_conversion", "mix_accesses", "mmap_write", "multiread_stride",
    "multiscan_coalesce_threshold", "multiscan_max_prefetch_size", "multiscan_size", "multiscan_stride",
    "multiscan_use_async_io", "new_table_reader_for_compaction_inputs", "num_bottom_pri_threads",
    "num_column_families", "num_deletion_threads", "num_file_reads_for_auto_readahead",
    "num_high_pri_threads", "num_hot_column_families", "num_low_pri_threads", "num_multi_db",
    "num_short_wide_columns", "num_wide_columns", "numdistinct", "open_as_follower", "open_files_async",
    "openandcompact_allow_resumption", "openandcompact_cancel_after_millseconds",
    "openandcompact_test_cancel_on_odd", "ops_between_duration_checks", "optimize_multiget_for_io",
    "options_file", "overwrite_probability", "overwrite_window_size", "paranoid_memory_checks",
    "partition_index", "perf_level", "persist_stats_to_disk", "persistent_entries_batch_size",
    "persistent_entries_value_size", "preclude_last_level_data_seconds", "prefix_same_as_start",
    "preserve_internal_time_seconds", "print_malloc_stats",
    "random_access_max_buffer_size", "range_tombstone_width", "rate_limit_auto_wal_flush",
    "rate_limit_bg_reads", "rate_limit_user_ops", "rate_limiter_auto_tuned",
    "rate_limiter_bytes_per_sec", "rate_limiter_refill_period_us", "rate_limiter_single_burst_bytes",
    "read_cache_direct_read", "read_cache_direct_write", "read_cache_path",
    "read_cache_size", "read_triggered_compaction_threshold", "read_with_latest_user_timestamp",
    "readahead_size", "readonly", "report_file_operations", "report_open_timing",
    "restore_dir", "restore_rate_limit", "row_cache_size", "sample_for_compression",
    "secondary_cache_uri", "secondary_path", "secondary_update_interval", "seek_missing_prefix",
    "seek_nexts_to_delete", "show_table_properties", "simcache_size",
    "simulate_hdd", "simulate_hybrid_fs_file", "simulate_hybrid_hdd_multipliers", "sine_mix_rate_noise",
    "sine_write_rate", "sine_write_rate_interval_milliseconds", "skip_list_lookahead",
    "skip_stats_update_on_db_open", "slow_usecs", "statistics_string",
    "stats_history_buffer_size", "stats_interval", "stats_level", "stats_persist_period_sec", "stddev",
    "super_block_alignment_size",
    "super_block_alignment_space_overhead_ratio", "table_cache_numshardbits",
    "thread_status_per_interval", "tiered_adm_policy", "time_range", "tolerate_io_errors_for_remote_dbs",
    "total_order_seek", "trace_file", "trace_replay_fast_forward", "trace_replay_threads",
    "transaction_lock_timeout", "transaction_set_snapshot", "transaction_sleep",
    "truth_db", "uncache_aggressiveness", "uniform_cv_threshold",
    "universal_reduce_file_locking", "unordered_write", "use_adaptive_mutex",
    "use_blob_db", "use_block_based_filter", "use_cache_jemalloc_no_dump_allocator",
    "use_cache_memkind_kmem_allocator", "use_clock_cache", "use_compressed_secondary_cache",
    "use_cuckoo_table", "use_direct_io_for_compaction_reads",
    "use_existing_keys", "use_hash_search", "use_keep_filter", "use_multiscan",
    "use_plain_table", "use_ribbon_filter", "use_secondary_db", "use_single_deletes",
    "use_stderr_info_logger", "use_tailing_iterator", "use_tiered_cache", "use_trie_index",
    "use_uint64_comparator", "user_timestamp_size",
    "verify_manifest_content_on_close",
    "write_batch_protection_bytes_per_key", "write_thread_max_yield_usec",
    "write_thread_slow_yield_usec", "writes_before_delete_range", "writes_per_range_tombstone",
];

/// Whether RocksDB's tool has the flag `name`, and this one does not.
pub(super) fn is_known(name: &str) -> bool {
    MISSING.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::benchmarks::{self, BENCHMARKS};
    use super::super::flags::{ACCEPTED, FLAGS, Flag};
    use super::super::passed::{PASSED, Passed};
    use super::*;
    use std::fmt::Write;

    /// The page: every flag of RocksDB's tool and what it does here.
    fn reference() -> String {
        let mut text = String::from(
            "# db_bench\n\n\
         `outcrop db_bench FLAGS` is RocksDB's benchmark tool; so is the program under the name `db_bench`. For scripts that look for that name:\n\n\
         ```sh\n\
         ln -s \"$(command -v outcrop)\" ~/bin/db_bench     # or into the directory in which benchmark.sh finds ./db_bench\n\
         ```\n\n\
         The same binary drives RocksDB with `--library=/usr/lib/x86_64-linux-gnu/librocksdb.so`. `cargo xtask scripts` runs RocksDB's\n\
         own `benchmark.sh` and `benchmark_compare.sh`, unmodified, on it and on Debian's db_bench.\n\n\
         Made from the tables in `crates/lab-load/src/db_bench` by `REWRITE=1 cargo test -p outcrop-lab-load`.\n\
         A flag is `--name=value`; a bare `--name` is `true`, and `--noname` switches off. Switches are on by true, t, yes, y and 1, off by\n\
         false, f, no, n and 0, in any case; any other value is refused. Names listed in `--undefok` are not complained about.\n\n\
         ## Flags that act\n\n| flag | default | meaning |\n|---|---|---|\n",
        );
        for Flag(name, default, meaning) in FLAGS {
            let _ = writeln!(text, "| {name} | {} | {meaning} |", or_empty(default));
        }
        text += "\n## Flags handed to the engine as its option\n\n\
             One that is not given leaves the option as the library has it, but for `delayed_write_rate`, which RocksDB's tool always sets.\n\
             One that is given at its default is handed on if the library knows the option, any other in any case.\n\n\
             | flag | default | option |\n|---|---|---|\n";
        for Passed(name, default, _, option, _) in PASSED {
            let _ = writeln!(text, "| {name} | {} | {option} |", or_empty(default));
        }
        text += "\n## Flags of RocksDB's tool that change nothing here\n\n\
             The engine has one behaviour for all their values, or the flag is about the tool's own output.\n\n";
        text += &wrapped(ACCEPTED);
        text += "\n## Flags of RocksDB's tool that are refused\n\n\
             `--name is a flag of RocksDB's db_bench that this one does not have`, and nothing is run.\n\n";
        text += &wrapped(MISSING);
        text += "\n## Benchmarks\n\n\
             Names for `--benchmarks`, with commas between. `NAME[X3]` runs one three times and prints means, a median and 95 % intervals\n\
             as RocksDB's tool does; `NAME[W1]` runs it once before, to warm up; `NAME[X3-W1]` does both.\n\n\
             | benchmark | meaning |\n|---|---|\n";
        for (name, meaning) in BENCHMARKS {
            let _ = writeln!(text, "| {name} | {meaning} |");
        }
        text += "\n## Benchmarks of RocksDB's tool that are refused\n\n\
             `NAME is a benchmark of RocksDB's db_bench that this one does not have`, and nothing after it is run.\n\n";
        text += &wrapped(benchmarks::MISSING);
        text
    }

    fn or_empty(default: &str) -> &str {
        if default.is_empty() { "(empty)" } else { default }
    }

    /// Names in lines of at most 110 characters.
    fn wrapped(names: &[&str]) -> String {
        let (mut text, mut column) = (String::new(), 0);
        for name in names {
            let separator = match column {
                0 => "",
                _ if column + name.len() + 2 > 110 => {
                    column = 0;
                    ",\n"
                }
                _ => ", ",
            };
            column += separator.len() + name.len();
            text = text + separator + name;
        }
        text + "\n"
    }

    #[test]
    fn no_flag_is_both_there_and_missing() {
        let has = |name: &&&str| {
            FLAGS.iter().any(|flag| flag.0 == **name)
                || PASSED.iter().any(|flag| flag.0 == **name)
                || ACCEPTED.contains(*name)
        };
        assert_eq!(MISSING.iter().filter(has).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn the_page_is_that_of_the_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/db_bench.md");
        if std::env::var_os("REWRITE").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "docs/db_bench.md is out of date: REWRITE=1 cargo test -p outcrop-lab-load"
        );
    }
}
