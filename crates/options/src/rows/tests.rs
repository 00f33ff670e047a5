//! No option is forgotten: each field of each struct has one row, which sets it and nothing else.
//!
//! The structs are taken apart without `..`, so a field that is added does not compile here before it is listed.

use super::*;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Texts of which each option takes one that changes it.
const TEXTS: &[&str] = &[
    "true",
    "false",
    "0",
    "1",
    "3",
    "0.25",
    "kZSTD",
    "kLZ4Compression:kZSTD",
    "kAbsoluteConsistency",
    "kCompactionStyleUniversal",
    "kOldestSmallestSeqFirst",
    "kCompactionStopStyleSimilarSize",
    "kFlushOnly",
    "kCRC32c",
    "kTwoLevelIndexSearch",
    "kNoShortening",
    "kDataBlockBinaryAndHash",
    "bloomfilter:5:false",
    "rocksdb.FixedPrefix.4",
    "{level=5;}",
    "{size_ratio=9;}",
    "{age_for_warm=9;}",
    "/elsewhere",
    "FileChecksumGenCrc32cFactory",
];

/// Changes the option of `row` from its default.
fn changed<T: Default + Clone + PartialEq + Debug>(row: &Row<T>) -> T {
    let default = T::default();
    let tried = TEXTS.iter().map(|text| {
        let mut options = default.clone();
        (row.set)(&mut options, text).map(|()| options)
    });
    tried
        .filter_map(Result::ok)
        .find(|options| *options != default)
        .unwrap_or_else(|| panic!("no text changes {}: add one to TEXTS", row.name))
}

/// The rows whose values differ.
fn differing<T>(rows: &[Row<T>], a: &T, b: &T) -> Vec<&'static str> {
    rows.iter().filter(|row| (row.get)(a) != (row.get)(b)).map(|row| row.name).collect()
}

/// Takes `$type` apart, with the names of rows where they are not those of the fields, and the fields that have none.
macro_rules! every_field_has_its_row {
    ($type:ident, $rows:ident; $($field:ident $(=> $name:literal)?),* $(,)? ; without $($other:ident),* $(,)?) => {{
        let default = $type::default();
        let mut named = BTreeSet::new();
        $(
            let name = every_field_has_its_row!(@name $field $($name)?);
            assert!(named.insert(name), "{name} is listed twice");
            let row = $rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} has no row"));
            let options = changed(row);
            assert!(options.$field != default.$field, "the row of {name} does not set it");
            assert_eq!(differing($rows, &options, &default), [name], "the row of {name} sets what is another's");
        )*
        let rows: Vec<&str> = $rows.iter().map(|row| row.name).collect();
        assert_eq!(rows.len(), named.len(), "rows without a field, or two of one");
        // Without `..`: a new field has to be listed above.
        let $type { $($field: _,)* $($other: _,)* } = default;
    }};
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

#[test]
fn options_of_the_database() {
    every_field_has_its_row!(DbOptions, DB_ROWS;
        create_if_missing, create_missing_column_families, error_if_exists, paranoid_checks, max_open_files,
        max_total_wal_size, max_background_jobs, max_bgerror_resume_count, bgerror_resume_retry_interval,
        max_subcompactions, wal_dir, track_and_verify_wals_in_manifest, track_and_verify_wals,
        wal_recovery_mode, bytes_per_sync,
        wal_bytes_per_sync, use_fsync, use_direct_reads, allow_mmap_reads, allow_fallocate,
        use_direct_io_for_flush_and_compaction, delayed_write_rate, manual_wal_flush, recycle_log_file_num,
        wal_ttl_seconds => "WAL_ttl_seconds", wal_size_limit_mb => "WAL_size_limit_MB", wal_compression,
        avoid_flush_during_shutdown, max_manifest_file_size, keep_log_file_num, compaction_readahead_size,
        writable_file_max_buffer_size, atomic_flush, db_write_buffer_size, stats_dump_period_sec,
        allow_ingest_behind, write_dbid_to_manifest, write_identity_file,
        file_checksum_gen_factory,
        ; without
        // In no OPTIONS file of RocksDB's either.
        db_paths,
        // Options that are only kept have rows of their own in `kept.rs`.
        kept,
    );
}

#[test]
fn options_of_a_column_family() {
    every_field_has_its_row!(ColumnFamilyOptions, CF_ROWS;
        write_buffer_size, max_write_buffer_number, min_write_buffer_number_to_merge, compression,
        compression_per_level, bottommost_compression, compression_opts, bottommost_compression_opts,
        blob_compression_opts, num_levels, level0_file_num_compaction_trigger,
        level0_slowdown_writes_trigger, level0_stop_writes_trigger, target_file_size_base,
        target_file_size_multiplier, max_bytes_for_level_base, max_bytes_for_level_multiplier,
        level_compaction_dynamic_level_bytes, max_compaction_bytes, soft_pending_compaction_bytes_limit,
        hard_pending_compaction_bytes_limit, disable_auto_compactions, compaction_style, compaction_pri,
        compaction_options_universal, compaction_options_fifo, ttl, periodic_compaction_seconds,
        bottommost_file_compaction_delay, optimize_filters_for_hits, force_consistency_checks,
        enable_blob_files, min_blob_size, blob_file_size, blob_compression_type,
        enable_blob_garbage_collection, blob_garbage_collection_age_cutoff,
        blob_garbage_collection_force_threshold, blob_compaction_readahead_size, prepopulate_blob_cache,
        blob_file_starting_level, allow_ingest_behind => "cf_allow_ingest_behind", comparator,
        merge_operator, prefix_extractor, memtable_prefix_bloom_size_ratio,
        max_sequential_skip_in_iterations, max_successive_merges, strict_max_successive_merges,
        paranoid_file_checks, report_bg_io_stats, enable_blob_direct_write, blob_direct_write_partitions, arena_block_size,
        max_write_buffer_size_to_maintain,
        ; without
        // In no OPTIONS file of RocksDB's either.
        cf_paths,
        // Options of tables have rows of their own.
        table,
        // Options that are only kept have rows of their own in `kept.rs`.
        kept,
    );
}

#[test]
fn options_of_tables() {
    every_field_has_its_row!(BlockBasedTableOptions, TABLE_ROWS;
        block_size, block_size_deviation, block_restart_interval, index_block_restart_interval,
        format_version, checksum, index_type, metadata_block_size, partition_filters,
        enable_index_compression, index_shortening, data_block_index_type, data_block_hash_table_util_ratio,
        use_delta_encoding, separate_key_value_in_data_block, verify_compression, block_align,
        filter_policy, whole_key_filtering, cache_index_and_filter_blocks,
        pin_l0_filter_and_index_blocks_in_cache, prepopulate_block_cache, read_amp_bytes_per_bit,
        no_block_cache,
        ; without
        // `block_cache` is parsed in `file.rs`: an object, of which only the capacity is an option.
        block_cache_bytes,
        // Options that are only kept have rows of their own in `kept.rs`.
        kept,
    );
}

#[test]
fn options_of_universal_compaction() {
    every_field_has_its_row!(UniversalCompactionOptions, UNIVERSAL_ROWS;
        size_ratio, min_merge_width, max_merge_width, max_size_amplification_percent,
        compression_size_percent, max_read_amp, stop_style, allow_trivial_move, incremental,
        reduce_file_locking,
        ; without
    );
}

#[test]
fn options_of_fifo_compaction() {
    every_field_has_its_row!(FifoCompactionOptions, FIFO_ROWS;
        max_table_files_size, allow_compaction, max_data_files_size, age_for_warm,
        allow_trivial_copy_when_change_temperature, trivial_copy_buffer_size, use_kv_ratio_compaction,
        ; without
    );
}

#[test]
fn options_of_compression() {
    every_field_has_its_row!(CompressionOptions, COMPRESSION_ROWS;
        window_bits, level, max_dict_bytes, zstd_max_train_bytes, max_dict_buffer_bytes,
        max_compressed_bytes_per_kb, checksum, strategy, parallel_threads, enabled, use_zstd_dict_trainer,
        ; without
    );
}
