//! `rocksdb_options_*`: settings of database and column family in one object, as in RocksDB.

use crate::cache::rocksdb_cache_t;
use crate::env::rocksdb_env_t;
use crate::memory::{Errptr, copy_out_text, give_back, hand_out, report, text};
use crate::memory_budget;
use crate::resources::rocksdb_dbpath_t;
use crate::settings::{Field, Flag, Settings};
use crate::slice_transform::rocksdb_slicetransform_t;
use crate::table_options::rocksdb_block_based_table_options_t;
use libc::{c_char, c_double, c_int, c_uint, size_t};
use outcrop::options::LoadedOptions;
use outcrop::options::{CompressionType, DataBlockIndexType, DbOptions, DbPath, FilterPolicy};
use outcrop::{
    Cache, CacheOptions, ColumnFamilyDescriptor, ColumnFamilyOptions, ColumnFamilyParts, Db, DbBuilder,
    DbObjects, Env, EventListener, RateLimiter, RateLimiterOptions, Result, Statistics,
};
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

/// The public fields are for other libraries above the engine that share these objects (`jni-api`).
#[derive(Clone, Default)]
pub struct rocksdb_options_t {
    pub db: DbOptions,
    pub cf: ColumnFamilyOptions,
    pub parts: ColumnFamilyParts,
    pub env: Option<Env>,
    /// Objects that databases opened under these options share.
    pub(crate) objects: DbObjects,
    pub(crate) settings: Settings,
    /// Listeners to the events of databases opened under these options.
    pub listeners: Vec<Arc<dyn EventListener>>,
    /// Texts that only their getters want, by name.
    pub texts: std::collections::BTreeMap<&'static str, CString>,
    /// Given by `enable_statistics`, shared with the databases opened under these options.
    pub statistics: Option<Arc<Statistics>>,
}

impl rocksdb_options_t {
    /// The database's options of `self` with the column family's of `family`; it gets the refusals of both.
    pub fn combined(&self, family: &rocksdb_options_t) -> rocksdb_options_t {
        let mut both =
            rocksdb_options_t { cf: family.cf.clone(), parts: family.parts.clone(), ..self.clone() };
        both.settings.adopt(&family.settings);
        both
    }

    /// The environment to open in.
    pub(crate) fn env(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::posix)
    }

    /// A database at `path` under these options, with the column families still to be named.
    ///
    /// # Errors
    /// InvalidArgument: the process is to have a budget of memory, and it cannot be.
    pub(crate) fn builder(&self, path: impl AsRef<Path>) -> Result<DbBuilder> {
        let (mut options, mut objects) = (self.database(), self.objects.clone());
        memory_budget::govern(&mut options, &mut objects)?;
        let builder = Db::builder(path)
            .options(options)
            .env(self.env())
            .objects(objects)
            .statistics(self.statistics.clone());
        Ok(self.listeners.iter().fold(builder, |builder, listener| builder.listener(listener.clone())))
    }

    /// A column family under these options.
    ///
    /// # Errors
    /// NotSupported naming an option that was set to what the engine cannot do; InvalidArgument as of `builder`.
    pub fn descriptor(&self, name: &str) -> Result<ColumnFamilyDescriptor> {
        self.settings.check()?;
        let (options, parts) = (self.family(), self.parts.clone());
        let mut family = ColumnFamilyDescriptor { name: name.to_string(), options, parts };
        memory_budget::govern_family(&mut family)?;
        Ok(family)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    boundary!(hand_out(rocksdb_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_create_copy(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_options_t {
    boundary!(hand_out((*options).clone()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_options_t:
    "create_if_missing" [db.create_if_missing]
        set rocksdb_options_set_create_if_missing(Flag)
        get rocksdb_options_get_create_if_missing -> Flag;
    "create_missing_column_families" [db.create_missing_column_families]
        set rocksdb_options_set_create_missing_column_families(Flag)
        get rocksdb_options_get_create_missing_column_families -> Flag;
    "error_if_exists" [db.error_if_exists]
        set rocksdb_options_set_error_if_exists(Flag)
        get rocksdb_options_get_error_if_exists -> Flag;
    "paranoid_checks" [db.paranoid_checks]
        set rocksdb_options_set_paranoid_checks(Flag)
        get rocksdb_options_get_paranoid_checks -> Flag;
    "max_open_files" [db.max_open_files]
        set rocksdb_options_set_max_open_files(c_int)
        get rocksdb_options_get_max_open_files -> c_int;
    "max_total_wal_size" [db.max_total_wal_size]
        set rocksdb_options_set_max_total_wal_size(u64)
        get rocksdb_options_get_max_total_wal_size -> u64;
    "max_background_jobs" [db.max_background_jobs]
        set rocksdb_options_set_max_background_jobs(c_int)
        get rocksdb_options_get_max_background_jobs -> c_int;
    "max_bgerror_resume_count" [db.max_bgerror_resume_count]
        set rocksdb_options_set_max_bgerror_resume_count(c_int)
        get rocksdb_options_get_max_bgerror_resume_count -> c_int;
    "bgerror_resume_retry_interval" [db.bgerror_resume_retry_interval]
        set rocksdb_options_set_bgerror_resume_retry_interval(u64)
        get rocksdb_options_get_bgerror_resume_retry_interval -> u64;
    "wal_recovery_mode" [db.wal_recovery_mode]
        set rocksdb_options_set_wal_recovery_mode(c_int)
        get rocksdb_options_get_wal_recovery_mode -> c_int;
    "bytes_per_sync" [db.bytes_per_sync]
        set rocksdb_options_set_bytes_per_sync(u64)
        get rocksdb_options_get_bytes_per_sync -> u64;
    "wal_bytes_per_sync" [db.wal_bytes_per_sync]
        set rocksdb_options_set_wal_bytes_per_sync(u64)
        get rocksdb_options_get_wal_bytes_per_sync -> u64;
    "atomic_flush" [db.atomic_flush]
        set rocksdb_options_set_atomic_flush(Flag)
        get rocksdb_options_get_atomic_flush -> Flag;
    "use_fsync" [db.use_fsync]
        set rocksdb_options_set_use_fsync(c_int)
        get rocksdb_options_get_use_fsync -> c_int;
    "use_direct_reads" [db.use_direct_reads]
        set rocksdb_options_set_use_direct_reads(Flag)
        get rocksdb_options_get_use_direct_reads -> Flag;
    "allow_mmap_reads" [db.allow_mmap_reads]
        set rocksdb_options_set_allow_mmap_reads(Flag)
        get rocksdb_options_get_allow_mmap_reads -> Flag;
    "use_direct_io_for_flush_and_compaction" [db.use_direct_io_for_flush_and_compaction]
        set rocksdb_options_set_use_direct_io_for_flush_and_compaction(Flag)
        get rocksdb_options_get_use_direct_io_for_flush_and_compaction -> Flag;
    "delayed_write_rate" [db.delayed_write_rate]
        set rocksdb_options_set_delayed_write_rate(u64)
        get rocksdb_options_get_delayed_write_rate -> u64;
    "track_and_verify_wals_in_manifest" [db.track_and_verify_wals_in_manifest]
        set rocksdb_options_set_track_and_verify_wals_in_manifest(Flag)
        get rocksdb_options_get_track_and_verify_wals_in_manifest -> Flag;
    "track_and_verify_wals" [db.track_and_verify_wals]
        set rocksdb_options_set_track_and_verify_wals(Flag)
        get rocksdb_options_get_track_and_verify_wals -> Flag;
    "allow_fallocate" [db.allow_fallocate]
        set rocksdb_options_set_allow_fallocate(Flag)
        get rocksdb_options_get_allow_fallocate -> Flag;
    "manual_wal_flush" [db.manual_wal_flush]
        set rocksdb_options_set_manual_wal_flush(Flag)
        get rocksdb_options_get_manual_wal_flush -> Flag;
    "avoid_flush_during_shutdown" [db.avoid_flush_during_shutdown]
        set rocksdb_options_set_avoid_flush_during_shutdown(Flag)
        get rocksdb_options_get_avoid_flush_during_shutdown -> Flag;
    "max_manifest_file_size" [db.max_manifest_file_size]
        set rocksdb_options_set_max_manifest_file_size(size_t)
        get rocksdb_options_get_max_manifest_file_size -> size_t;
    "keep_log_file_num" [db.keep_log_file_num]
        set rocksdb_options_set_keep_log_file_num(size_t)
        get rocksdb_options_get_keep_log_file_num -> size_t;
    "writable_file_max_buffer_size" [db.writable_file_max_buffer_size]
        set rocksdb_options_set_writable_file_max_buffer_size(u64)
        get rocksdb_options_get_writable_file_max_buffer_size -> u64;
    "db_write_buffer_size" [db.db_write_buffer_size]
        set rocksdb_options_set_db_write_buffer_size(size_t)
        get rocksdb_options_get_db_write_buffer_size -> size_t;
    "stats_dump_period_sec" [db.stats_dump_period_sec]
        set rocksdb_options_set_stats_dump_period_sec(c_uint)
        get rocksdb_options_get_stats_dump_period_sec -> c_uint;
    "max_write_buffer_size_to_maintain" [cf.max_write_buffer_size_to_maintain]
        set rocksdb_options_set_max_write_buffer_size_to_maintain(i64)
        get rocksdb_options_get_max_write_buffer_size_to_maintain -> i64;
    "write_buffer_size" [cf.write_buffer_size]
        set rocksdb_options_set_write_buffer_size(size_t)
        get rocksdb_options_get_write_buffer_size -> size_t;
    "max_write_buffer_number" [cf.max_write_buffer_number]
        set rocksdb_options_set_max_write_buffer_number(c_int)
        get rocksdb_options_get_max_write_buffer_number -> c_int;
    "min_write_buffer_number_to_merge" [cf.min_write_buffer_number_to_merge]
        set rocksdb_options_set_min_write_buffer_number_to_merge(c_int)
        get rocksdb_options_get_min_write_buffer_number_to_merge -> c_int;
    "compression" [cf.compression]
        set rocksdb_options_set_compression(c_int)
        get rocksdb_options_get_compression -> c_int;
    "bottommost_compression" [cf.bottommost_compression]
        set rocksdb_options_set_bottommost_compression(c_int)
        get rocksdb_options_get_bottommost_compression -> c_int;
    "num_levels" [cf.num_levels]
        set rocksdb_options_set_num_levels(c_int)
        get rocksdb_options_get_num_levels -> c_int;
    "level0_file_num_compaction_trigger" [cf.level0_file_num_compaction_trigger]
        set rocksdb_options_set_level0_file_num_compaction_trigger(c_int)
        get rocksdb_options_get_level0_file_num_compaction_trigger -> c_int;
    "level0_slowdown_writes_trigger" [cf.level0_slowdown_writes_trigger]
        set rocksdb_options_set_level0_slowdown_writes_trigger(c_int)
        get rocksdb_options_get_level0_slowdown_writes_trigger -> c_int;
    "level0_stop_writes_trigger" [cf.level0_stop_writes_trigger]
        set rocksdb_options_set_level0_stop_writes_trigger(c_int)
        get rocksdb_options_get_level0_stop_writes_trigger -> c_int;
    "target_file_size_base" [cf.target_file_size_base]
        set rocksdb_options_set_target_file_size_base(u64)
        get rocksdb_options_get_target_file_size_base -> u64;
    "target_file_size_multiplier" [cf.target_file_size_multiplier]
        set rocksdb_options_set_target_file_size_multiplier(c_int)
        get rocksdb_options_get_target_file_size_multiplier -> c_int;
    "max_bytes_for_level_base" [cf.max_bytes_for_level_base]
        set rocksdb_options_set_max_bytes_for_level_base(u64)
        get rocksdb_options_get_max_bytes_for_level_base -> u64;
    "max_bytes_for_level_multiplier" [cf.max_bytes_for_level_multiplier]
        set rocksdb_options_set_max_bytes_for_level_multiplier(c_double)
        get rocksdb_options_get_max_bytes_for_level_multiplier -> c_double;
    "level_compaction_dynamic_level_bytes" [cf.level_compaction_dynamic_level_bytes]
        set rocksdb_options_set_level_compaction_dynamic_level_bytes(Flag)
        get rocksdb_options_get_level_compaction_dynamic_level_bytes -> Flag;
    "max_compaction_bytes" [cf.max_compaction_bytes]
        set rocksdb_options_set_max_compaction_bytes(u64)
        get rocksdb_options_get_max_compaction_bytes -> u64;
    "soft_pending_compaction_bytes_limit" [cf.soft_pending_compaction_bytes_limit]
        set rocksdb_options_set_soft_pending_compaction_bytes_limit(size_t)
        get rocksdb_options_get_soft_pending_compaction_bytes_limit -> size_t;
    "hard_pending_compaction_bytes_limit" [cf.hard_pending_compaction_bytes_limit]
        set rocksdb_options_set_hard_pending_compaction_bytes_limit(size_t)
        get rocksdb_options_get_hard_pending_compaction_bytes_limit -> size_t;
    "disable_auto_compactions" [cf.disable_auto_compactions]
        set rocksdb_options_set_disable_auto_compactions(c_int)
        get rocksdb_options_get_disable_auto_compactions -> Flag;
    "compaction_pri" [cf.compaction_pri]
        set rocksdb_options_set_compaction_pri(c_int)
        get rocksdb_options_get_compaction_pri -> c_int;
    "optimize_filters_for_hits" [cf.optimize_filters_for_hits]
        set rocksdb_options_set_optimize_filters_for_hits(c_int)
        get rocksdb_options_get_optimize_filters_for_hits -> Flag;
    "force_consistency_checks" [cf.force_consistency_checks]
        set rocksdb_options_set_force_consistency_checks(Flag)
        get rocksdb_options_get_force_consistency_checks -> Flag;
    "allow_ingest_behind" [db.allow_ingest_behind]
        set rocksdb_options_set_allow_ingest_behind(Flag)
        get rocksdb_options_get_allow_ingest_behind -> Flag;
    "enable_blob_files" [cf.enable_blob_files]
        set rocksdb_options_set_enable_blob_files(Flag)
        get rocksdb_options_get_enable_blob_files -> Flag;
    "min_blob_size" [cf.min_blob_size]
        set rocksdb_options_set_min_blob_size(u64)
        get rocksdb_options_get_min_blob_size -> u64;
    "blob_file_size" [cf.blob_file_size]
        set rocksdb_options_set_blob_file_size(u64)
        get rocksdb_options_get_blob_file_size -> u64;
    "blob_compression_type" [cf.blob_compression_type]
        set rocksdb_options_set_blob_compression_type(c_int)
        get rocksdb_options_get_blob_compression_type -> c_int;
    "enable_blob_garbage_collection" [cf.enable_blob_garbage_collection]
        set rocksdb_options_set_enable_blob_gc(Flag)
        get rocksdb_options_get_enable_blob_gc -> Flag;
    "blob_garbage_collection_age_cutoff" [cf.blob_garbage_collection_age_cutoff]
        set rocksdb_options_set_blob_gc_age_cutoff(c_double)
        get rocksdb_options_get_blob_gc_age_cutoff -> c_double;
    "blob_file_starting_level" [cf.blob_file_starting_level]
        set rocksdb_options_set_blob_file_starting_level(c_int)
        get rocksdb_options_get_blob_file_starting_level -> c_int;
    "blob_gc_force_threshold" [cf.blob_garbage_collection_force_threshold]
        set rocksdb_options_set_blob_gc_force_threshold(c_double)
        get rocksdb_options_get_blob_gc_force_threshold -> c_double;
    "blob_compaction_readahead_size" [cf.blob_compaction_readahead_size]
        set rocksdb_options_set_blob_compaction_readahead_size(u64)
        get rocksdb_options_get_blob_compaction_readahead_size -> u64;
    "prepopulate_blob_cache" [cf.prepopulate_blob_cache]
        set rocksdb_options_set_prepopulate_blob_cache(c_int)
        get rocksdb_options_get_prepopulate_blob_cache -> c_int;
    "memtable_prefix_bloom_size_ratio" [cf.memtable_prefix_bloom_size_ratio]
        set rocksdb_options_set_memtable_prefix_bloom_size_ratio(c_double)
        get rocksdb_options_get_memtable_prefix_bloom_size_ratio -> c_double;
    "max_sequential_skip_in_iterations" [cf.max_sequential_skip_in_iterations]
        set rocksdb_options_set_max_sequential_skip_in_iterations(u64)
        get rocksdb_options_get_max_sequential_skip_in_iterations -> u64;
    "max_successive_merges" [cf.max_successive_merges]
        set rocksdb_options_set_max_successive_merges(size_t)
        get rocksdb_options_get_max_successive_merges -> size_t;
    "strict_max_successive_merges" [cf.strict_max_successive_merges]
        set rocksdb_options_set_strict_max_successive_merges(Flag)
        get rocksdb_options_get_strict_max_successive_merges -> Flag;
    "paranoid_file_checks" [cf.paranoid_file_checks]
        set rocksdb_options_set_paranoid_file_checks(Flag)
        get rocksdb_options_get_paranoid_file_checks -> Flag;
    "report_bg_io_stats" [cf.report_bg_io_stats]
        set rocksdb_options_set_report_bg_io_stats(c_int)
        get rocksdb_options_get_report_bg_io_stats -> Flag;
    "bottommost_file_compaction_delay" [cf.bottommost_file_compaction_delay]
        set rocksdb_options_set_bottommost_file_compaction_delay(u32)
        get rocksdb_options_get_bottommost_file_compaction_delay -> u32;
    "recycle_log_file_num" [db.recycle_log_file_num]
        set rocksdb_options_set_recycle_log_file_num(size_t)
        get rocksdb_options_get_recycle_log_file_num -> size_t;
    "WAL_ttl_seconds" [db.wal_ttl_seconds]
        set rocksdb_options_set_WAL_ttl_seconds(u64)
        get rocksdb_options_get_WAL_ttl_seconds -> u64;
    "WAL_size_limit_MB" [db.wal_size_limit_mb]
        set rocksdb_options_set_WAL_size_limit_MB(u64)
        get rocksdb_options_get_WAL_size_limit_MB -> u64;
    "wal_compression" [db.wal_compression]
        set rocksdb_options_set_wal_compression(c_int)
        get rocksdb_options_get_wal_compression -> c_int;
    "write_dbid_to_manifest" [db.write_dbid_to_manifest]
        set rocksdb_options_set_write_dbid_to_manifest(Flag)
        get rocksdb_options_get_write_dbid_to_manifest -> Flag;
    "write_identity_file" [db.write_identity_file]
        set rocksdb_options_set_write_identity_file(Flag)
        get rocksdb_options_get_write_identity_file -> Flag;
    "cf_allow_ingest_behind" [cf.allow_ingest_behind]
        set rocksdb_options_set_cf_allow_ingest_behind(Flag)
        get rocksdb_options_get_cf_allow_ingest_behind -> Flag;
    "compaction_readahead_size" [db.compaction_readahead_size]
        set rocksdb_options_compaction_readahead_size(size_t)
        get rocksdb_options_get_compaction_readahead_size -> size_t;
    "zstd_max_train_bytes" [cf.compression_opts.zstd_max_train_bytes]
        set rocksdb_options_set_compression_options_zstd_max_train_bytes(c_int)
        get rocksdb_options_get_compression_options_zstd_max_train_bytes -> c_int;
    "max_dict_buffer_bytes" [cf.compression_opts.max_dict_buffer_bytes]
        set rocksdb_options_set_compression_options_max_dict_buffer_bytes(u64)
        get rocksdb_options_get_compression_options_max_dict_buffer_bytes -> u64;
}

/// Levels that a list is made for, whatever `num_levels` says: nothing is opened with more.
const MOST_LEVELS: c_int = 1024;

/// Functions over the options with other arguments than one number.
macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) |$options:ident| $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_options_t $(, $arg: $type)*) {
            boundary!({
                let $options = &mut *options;
                $body
            })
        }
    )*};
}

functions! {
    rocksdb_options_increase_parallelism(threads: c_int) |o| { o.db.max_background_jobs = threads.max(1) }

    rocksdb_options_set_env(env: *mut rocksdb_env_t) |o| { o.env = env.as_ref().map(|env| env.0.clone()) }

    rocksdb_options_set_compression_per_level(levels: *const c_int, count: size_t) |o| {
        let levels = if count == 0 { &[] } else { std::slice::from_raw_parts(levels, count) };
        match levels.iter().map(|&level| CompressionType::from_c(level)).collect() {
            Some(codecs) => {
                o.cf.compression_per_level = codecs;
                o.settings.allow("compression_per_level");
            }
            None => o.settings.refuse("compression_per_level", format!("{levels:?}")),
        }
    }

    rocksdb_options_set_max_bytes_for_level_multiplier_additional(levels: *mut c_int, count: size_t) |o| {
        let levels = if count == 0 { &[] } else { std::slice::from_raw_parts(levels, count) };
        let text = levels.iter().map(ToString::to_string).collect::<Vec<_>>().join(":");
        let name = "max_bytes_for_level_multiplier_additional";
        match o.cf.kept.set(outcrop_options::kept::CF_KEPT, name, &text) {
            Ok(_) => o.settings.allow(name),
            Err(_) => o.settings.refuse(name, text),
        }
    }

    rocksdb_options_set_min_level_to_compress(level: c_int) |o| {
        if let Ok(level) = usize::try_from(level) {
            let levels = o.cf.num_levels.clamp(0, MOST_LEVELS) as usize;
            let codec = |at| if at < level { CompressionType::None } else { o.cf.compression };
            o.cf.compression_per_level = (0..levels).map(codec).collect();
        }
    }

    rocksdb_options_set_compression_options(
        window_bits: c_int, level: c_int, strategy: c_int, max_dict_bytes: c_int
    ) |o| {
        o.cf.compression_opts.window_bits = window_bits;
        o.cf.compression_opts.level = level;
        o.cf.compression_opts.max_dict_bytes = max_dict_bytes.max(0) as u32;
        o.cf.compression_opts.strategy = strategy;
    }

    rocksdb_options_set_bottommost_compression_options(
        window_bits: c_int, level: c_int, strategy: c_int, max_dict_bytes: c_int, enabled: Flag
    ) |o| {
        let opts = &mut o.cf.bottommost_compression_opts;
        (opts.window_bits, opts.level, opts.strategy) = (window_bits, level, strategy);
        opts.max_dict_bytes = max_dict_bytes.max(0) as u32;
        opts.enabled = enabled.is_set();
    }

    rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(bytes: c_int, enabled: Flag) |o| {
        o.cf.bottommost_compression_opts.zstd_max_train_bytes = bytes.max(0) as u32;
        o.cf.bottommost_compression_opts.enabled = enabled.is_set();
    }

    rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(trained: Flag, enabled: Flag) |o| {
        o.cf.bottommost_compression_opts.use_zstd_dict_trainer = trained.is_set();
        o.cf.bottommost_compression_opts.enabled = enabled.is_set();
    }

    rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(bytes: u64, enabled: Flag) |o| {
        o.cf.bottommost_compression_opts.max_dict_buffer_bytes = bytes;
        o.cf.bottommost_compression_opts.enabled = enabled.is_set();
    }

    rocksdb_options_set_prefix_extractor(extractor: *mut rocksdb_slicetransform_t) |o| {
        o.cf.prefix_extractor = None;
        if !extractor.is_null() {
            o.cf.prefix_extractor = Some((*extractor).0.clone());
            give_back(extractor);
        }
    }

    rocksdb_options_set_block_based_table_factory(table: *mut rocksdb_block_based_table_options_t) |o| {
        // Null changes nothing, as in RocksDB.
        if let Some(table) = table.as_ref() {
            o.cf.table = table.options.clone();
            crate::kept_texts::table_to_engine(&table.settings, &mut o.cf.table);
            o.parts.block_cache.clone_from(&table.cache);
            o.settings.adopt(&table.settings);
            o.settings.allow("table_factory");
        }
    }

    // Null takes a cache away: values in blob files are then in the block cache.
    rocksdb_options_set_blob_cache(cache: *mut rocksdb_cache_t) |o| {
        o.parts.blob_cache = cache.as_ref().map(|cache| cache.0.clone())
    }

    rocksdb_options_set_uint64add_merge_operator() |o| { o.cf.merge_operator = Some("uint64add".to_string()) }

    rocksdb_options_optimize_for_point_lookup(block_cache_size_mb: u64) |o| {
        o.cf.table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        o.cf.table.filter_policy = FilterPolicy::Bloom { bits_per_key: 10.0 };
        let capacity = (block_cache_size_mb as usize) << 20;
        o.parts.block_cache = Some(Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 }));
    }

    rocksdb_options_optimize_level_style_compaction(memtable_memory_budget: u64) |o| {
        o.cf.write_buffer_size = memtable_memory_budget / 4;
        o.cf.min_write_buffer_number_to_merge = 2;
        o.cf.max_write_buffer_number = 6;
        o.cf.level0_file_num_compaction_trigger = 2;
        o.cf.target_file_size_base = memtable_memory_budget / 8;
        o.cf.max_bytes_for_level_base = memtable_memory_budget;
        let codec = |level| if level < 2 { CompressionType::None } else { CompressionType::Lz4 };
        o.cf.compression_per_level = (0..o.cf.num_levels.clamp(0, MOST_LEVELS)).map(codec).collect();
    }

    rocksdb_options_prepare_for_bulk_load() |o| {
        o.cf.level0_file_num_compaction_trigger = 1 << 30;
        o.cf.level0_slowdown_writes_trigger = 1 << 30;
        o.cf.level0_stop_writes_trigger = 1 << 30;
        o.cf.soft_pending_compaction_bytes_limit = 0;
        o.cf.hard_pending_compaction_bytes_limit = 0;
        o.cf.disable_auto_compactions = true;
        o.cf.max_compaction_bytes = 1 << 60;
        o.cf.num_levels = 2;
        o.cf.max_write_buffer_number = 6;
        o.cf.min_write_buffer_number_to_merge = 1;
        o.cf.target_file_size_base = 256 << 20;
    }

    rocksdb_options_set_db_paths(paths: *const *const rocksdb_dbpath_t, count: size_t) |o| {
        o.db.db_paths = path_list(paths, count);
    }

    rocksdb_options_set_cf_paths(paths: *const *const rocksdb_dbpath_t, count: size_t) |o| {
        o.cf.cf_paths = path_list(paths, count);
    }
}

/// The paths that a caller lists.
unsafe fn path_list(paths: *const *const rocksdb_dbpath_t, count: size_t) -> Vec<DbPath> {
    // SAFETY: the caller passes `count` live paths.
    (0..count).map(|i| unsafe { (**paths.add(i)).0.clone() }).collect()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_dir(options: *mut rocksdb_options_t, dir: *const c_char) {
    boundary!({
        let dir = text(dir);
        (*options).texts.insert("wal_dir", CString::new(dir.clone()).unwrap_or_default());
        (*options).db.wal_dir = Some(dir).filter(|dir| !dir.is_empty()).map(Into::into);
    })
}

/// Texts that are kept for their getters.
macro_rules! texts {
    ($($name:literal: $(set $set:ident)? get $get:ident;)*) => {$(
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(options: *mut rocksdb_options_t, value: *const c_char) {
            boundary!({
                (*options).texts.insert($name, CString::new(text(value)).unwrap_or_default());
            })
        })?

        /// The text stays valid until it is set anew.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(options: *mut rocksdb_options_t, size: *mut size_t) -> *const c_char {
            boundary!({
                let value = (*options).texts.entry($name).or_default();
                *size = value.as_bytes().len();
                value.as_ptr()
            })
        }
    )*};
}

texts! {
    "wal_dir": get rocksdb_options_get_wal_dir;
    "db_log_dir": set rocksdb_options_set_db_log_dir get rocksdb_options_get_db_log_dir;
    "db_host_id": set rocksdb_options_set_db_host_id get rocksdb_options_get_db_host_id;
    "daily_offpeak_time_utc": set rocksdb_options_set_daily_offpeak_time_utc
        get rocksdb_options_get_daily_offpeak_time_utc;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_options_from_string(
    base: *const rocksdb_options_t,
    string: *const c_char,
    new_options: *mut rocksdb_options_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let mut changed = (*base).clone();
        // Texts that setters kept become the engine's options, and are returned with the changes that the
        // string makes.
        (changed.db, changed.cf) = (changed.database(), changed.family());
        let (cache, blob_cache) = (changed.cf.table.block_cache_bytes, changed.cf.blob_cache_bytes());
        let result = outcrop_options::file::set_from_string(&mut changed.db, &mut changed.cf, &text(string));
        if changed.cf.table.block_cache_bytes != cache {
            changed.parts.block_cache = None;
        }
        if changed.cf.blob_cache_bytes() != blob_cache {
            changed.parts.blob_cache = None;
        }
        changed.make_objects(&(*base).db);
        changed.take_texts();
        if report(errptr, result).is_some() {
            *new_options = changed;
        }
    })
}

impl rocksdb_options_t {
    /// Makes the objects that a string asks for: as options that name a limiter have one, all databases opened under them share it.
    fn make_objects(&mut self, before: &DbOptions) {
        let rate =
            |options: &DbOptions| options.kept.number("rate_limiter_bytes_per_sec").filter(|rate| *rate > 0);
        if let Some(bytes_per_second) = rate(&self.db).filter(|_| rate(&self.db) != rate(before)) {
            let options = RateLimiterOptions { bytes_per_second, ..Default::default() };
            self.objects.rate_limiter = Some(Arc::new(RateLimiter::new(options)));
        }
    }
}

/// Options as they were loaded, with what they ask for that the engine cannot do.
/// The options of column family `family` of an OPTIONS file, with those of the database.
pub fn loaded(loaded: &LoadedOptions, family: usize, cache: Option<&Arc<Cache>>) -> rocksdb_options_t {
    let cf = loaded.families[family].1.clone();
    let mut options = rocksdb_options_t { db: loaded.db.clone(), cf, ..Default::default() };
    options.parts.block_cache = cache.cloned();
    options.take_texts();
    options
}

/// The options of the newest OPTIONS file. A column family whose comparator is not one of RocksDB's own opens once the
/// caller has set it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options(
    db_path: *const c_char,
    env: *mut rocksdb_env_t,
    _ignore_unknown_options: bool,
    cache: *mut rocksdb_cache_t,
    db_options: *mut *mut rocksdb_options_t,
    num_column_families: *mut size_t,
    column_family_names: *mut *mut *mut c_char,
    column_family_options: *mut *mut *mut rocksdb_options_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let env = env.as_ref().map_or_else(Env::posix, |env| env.0.clone());
        let Some(file) = report(errptr, Db::load_latest_options_in(text(db_path), &env)) else { return };
        let cache = cache.as_ref().map(|cache| &cache.0);
        let count = file.families.len();
        let names = libc::calloc(count.max(1), size_of::<*mut c_char>()).cast::<*mut c_char>();
        let options =
            libc::calloc(count.max(1), size_of::<*mut rocksdb_options_t>()).cast::<*mut rocksdb_options_t>();
        for (i, (name, _)) in file.families.iter().enumerate() {
            *names.add(i) = copy_out_text(name);
            *options.add(i) = hand_out(loaded(&file, i, cache));
        }
        *db_options = hand_out(loaded(&file, 0, cache));
        *num_column_families = count;
        *column_family_names = names;
        *column_family_options = options;
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options_destroy(
    db_options: *mut rocksdb_options_t,
    names: *mut *mut c_char,
    column_family_options: *mut *mut rocksdb_options_t,
    len: size_t,
) {
    boundary!({
        give_back(db_options);
        for i in 0..len {
            if names.is_null() || column_family_options.is_null() {
                break;
            }
            libc::free((*names.add(i)).cast());
            give_back(*column_family_options.add(i));
        }
        libc::free(names.cast());
        libc::free(column_family_options.cast());
    })
}
