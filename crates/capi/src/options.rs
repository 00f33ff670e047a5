//! `rocksdb_options_*`: settings of database and column family in one object, as in RocksDB.

use crate::env::rocksdb_env_t;
use crate::memory::{give_back, hand_out, report, text};
use crate::table_options::rocksdb_block_based_table_options_t;
use libc::{c_char, c_double, c_int, c_uchar, c_uint, size_t};
use outcrop::options::{self, CompressionType, DbOptions, WalRecoveryMode};
use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, ColumnFamilyParts, Env};

#[derive(Clone, Default)]
pub struct rocksdb_options_t {
    pub(crate) db: DbOptions,
    pub(crate) cf: ColumnFamilyOptions,
    pub(crate) parts: ColumnFamilyParts,
    pub(crate) env: Option<Env>,
}

impl rocksdb_options_t {
    /// The environment to open in.
    pub(crate) fn env(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::posix)
    }

    /// A column family under these options.
    pub(crate) fn descriptor(&self, name: &str) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor { name: name.to_string(), options: self.cf.clone(), parts: self.parts.clone() }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    hand_out(rocksdb_options_t::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_create_copy(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_options_t {
    // SAFETY: the contract of the C API.
    hand_out(unsafe { &*options }.clone())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(options) }
}

/// Setters: C name, C type, and what it does to the options.
macro_rules! setters {
    ($($name:ident($value:ident: $type:ty) |$options:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_options_t, $value: $type) {
            // SAFETY: the contract of the C API.
            let $options = unsafe { &mut *options };
            $body;
        }
    )*};
}

setters! {
    rocksdb_options_set_create_if_missing(value: c_uchar) |o| o.db.create_if_missing = value != 0;
    rocksdb_options_set_create_missing_column_families(value: c_uchar)
        |o| o.db.create_missing_column_families = value != 0;
    rocksdb_options_set_error_if_exists(value: c_uchar) |o| o.db.error_if_exists = value != 0;
    rocksdb_options_set_paranoid_checks(value: c_uchar) |o| o.db.paranoid_checks = value != 0;
    rocksdb_options_set_max_open_files(value: c_int) |o| o.db.max_open_files = value;
    rocksdb_options_set_allow_ingest_behind(value: c_uchar) |o| o.cf.allow_ingest_behind = value != 0;
    rocksdb_options_set_stats_dump_period_sec(value: c_uint) |o| o.db.stats_dump_period_sec = value;
    rocksdb_options_set_max_manifest_file_size(value: usize) |o| o.db.max_manifest_file_size = value as u64;
    rocksdb_options_set_max_total_wal_size(value: u64) |o| o.db.max_total_wal_size = value;
    rocksdb_options_set_max_background_jobs(value: c_int) |o| o.db.max_background_jobs = value;
    rocksdb_options_increase_parallelism(value: c_int) |o| o.db.max_background_jobs = value.max(1);
    rocksdb_options_set_bytes_per_sync(value: u64) |o| o.db.bytes_per_sync = value;
    rocksdb_options_set_wal_bytes_per_sync(value: u64) |o| o.db.wal_bytes_per_sync = value;
    rocksdb_options_set_use_fsync(value: c_int) |o| o.db.use_fsync = value != 0;
    rocksdb_options_set_use_direct_reads(value: c_uchar) |o| o.db.use_direct_reads = value != 0;
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(value: c_uchar)
        |o| o.db.use_direct_io_for_flush_and_compaction = value != 0;
    rocksdb_options_set_delayed_write_rate(value: u64) |o| o.db.delayed_write_rate = value;
    rocksdb_options_set_manual_wal_flush(value: c_uchar) |o| o.db.manual_wal_flush = value != 0;
    rocksdb_options_set_keep_log_file_num(value: size_t) |o| o.db.keep_log_file_num = value as u64;
    rocksdb_options_set_db_write_buffer_size(value: size_t) |o| o.db.db_write_buffer_size = value as u64;
    rocksdb_options_compaction_readahead_size(value: size_t)
        |o| o.db.compaction_readahead_size = value as u64;
    rocksdb_options_set_writable_file_max_buffer_size(value: u64)
        |o| o.db.writable_file_max_buffer_size = value;
    rocksdb_options_set_avoid_flush_during_shutdown(value: c_uchar)
        |o| o.db.avoid_flush_during_shutdown = value != 0;
    rocksdb_options_set_wal_recovery_mode(value: c_int) |o| o.db.wal_recovery_mode = match value {
        0 => WalRecoveryMode::TolerateCorruptedTailRecords,
        1 => WalRecoveryMode::AbsoluteConsistency,
        3 => WalRecoveryMode::SkipAnyCorruptedRecords,
        _ => WalRecoveryMode::PointInTimeRecovery,
    };
    rocksdb_options_set_write_buffer_size(value: size_t) |o| o.cf.write_buffer_size = value as u64;
    rocksdb_options_set_max_write_buffer_number(value: c_int) |o| o.cf.max_write_buffer_number = value;
    rocksdb_options_set_min_write_buffer_number_to_merge(value: c_int)
        |o| o.cf.min_write_buffer_number_to_merge = value;
    rocksdb_options_set_num_levels(value: c_int) |o| o.cf.num_levels = value;
    rocksdb_options_set_level0_file_num_compaction_trigger(value: c_int)
        |o| o.cf.level0_file_num_compaction_trigger = value;
    rocksdb_options_set_level0_slowdown_writes_trigger(value: c_int)
        |o| o.cf.level0_slowdown_writes_trigger = value;
    rocksdb_options_set_level0_stop_writes_trigger(value: c_int)
        |o| o.cf.level0_stop_writes_trigger = value;
    rocksdb_options_set_target_file_size_base(value: u64) |o| o.cf.target_file_size_base = value;
    rocksdb_options_set_target_file_size_multiplier(value: c_int)
        |o| o.cf.target_file_size_multiplier = value;
    rocksdb_options_set_max_bytes_for_level_base(value: u64) |o| o.cf.max_bytes_for_level_base = value;
    rocksdb_options_set_max_bytes_for_level_multiplier(value: c_double)
        |o| o.cf.max_bytes_for_level_multiplier = value;
    rocksdb_options_set_level_compaction_dynamic_level_bytes(value: c_uchar)
        |o| o.cf.level_compaction_dynamic_level_bytes = value != 0;
    rocksdb_options_set_max_compaction_bytes(value: u64) |o| o.cf.max_compaction_bytes = value;
    rocksdb_options_set_soft_pending_compaction_bytes_limit(value: size_t)
        |o| o.cf.soft_pending_compaction_bytes_limit = value as u64;
    rocksdb_options_set_hard_pending_compaction_bytes_limit(value: size_t)
        |o| o.cf.hard_pending_compaction_bytes_limit = value as u64;
    rocksdb_options_set_disable_auto_compactions(value: c_int)
        |o| o.cf.disable_auto_compactions = value != 0;
    rocksdb_options_set_optimize_filters_for_hits(value: c_int)
        |o| o.cf.optimize_filters_for_hits = value != 0;
    rocksdb_options_set_compression(value: c_int) |o| if let Some(codec) = codec(value) {
        o.cf.compression = codec;
    };
    rocksdb_options_set_bottommost_compression(value: c_int)
        |o| o.cf.bottommost_compression = codec(value);
    rocksdb_options_set_env(value: *mut rocksdb_env_t)
        // SAFETY: the contract of the C API; the environment is shared.
        |o| o.env = unsafe { value.as_ref() }.map(|env| env.0.clone());
}

fn codec(value: c_int) -> Option<CompressionType> {
    CompressionType::from_byte(u8::try_from(value).ok()?).ok()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compression_per_level(
    options: *mut rocksdb_options_t,
    levels: *const c_int,
    count: size_t,
) {
    // SAFETY: the contract of the C API: `count` readable numbers.
    unsafe {
        let levels = if count == 0 { &[] } else { std::slice::from_raw_parts(levels, count) };
        (*options).cf.compression_per_level = levels.iter().filter_map(|&level| codec(level)).collect();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_dir(options: *mut rocksdb_options_t, dir: *const c_char) {
    // SAFETY: the contract of the C API.
    unsafe { (*options).db.wal_dir = Some(text(dir)).filter(|dir| !dir.is_empty()).map(Into::into) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_block_based_table_factory(
    options: *mut rocksdb_options_t,
    table: *mut rocksdb_block_based_table_options_t,
) {
    // SAFETY: the contract of the C API; the table options are copied.
    unsafe {
        (*options).cf.table = (*table).options.clone();
        (*options).parts.block_cache.clone_from(&(*table).cache);
    }
}

/// RocksDB's memtable for bulk loads. The one memtable of this engine appends ascending keys without a search,
/// so there is nothing to choose; the call is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_memtable_vector_rep(_options: *mut rocksdb_options_t) {}

/// Writers always may insert at once; the call is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_allow_concurrent_memtable_write(
    _options: *mut rocksdb_options_t,
    _value: c_uchar,
) {
}

/// There is one write path; the call is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_enable_pipelined_write(
    _options: *mut rocksdb_options_t,
    _value: c_uchar,
) {
}

/// LOG lines are few; every level is written. The call is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_info_log_level(_options: *mut rocksdb_options_t, _value: c_int) {
}

/// The operator that adds unsigned 64-bit numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_uint64add_merge_operator(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the C API.
    unsafe { (*options).cf.merge_operator = Some("uint64add".to_string()) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_options_from_string(
    base: *const rocksdb_options_t,
    string: *const c_char,
    new_options: *mut rocksdb_options_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let mut changed = (*base).clone();
        let result = options::file::set_from_string(&mut changed.db, &mut changed.cf, &text(string));
        if report(errptr, result).is_some() {
            *new_options = changed;
        }
    }
}
