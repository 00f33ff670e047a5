//! Objects that options share between databases: limits, paths, loggers, factories.
//!
//! A write buffer manager limits the memtables of each database that is opened with it. The others have no
//! counterpart: those that only tune are accepted, those that change what is stored make an open fail.

use crate::cache::rocksdb_cache_t;
use crate::env::rocksdb_env_t;
use crate::memory::{give_back, hand_out, text};
use crate::options::rocksdb_options_t;
use crate::refused::rocksdb_cuckoo_table_options_t;
use crate::settings::{Fate, Note};
use libc::{c_char, c_int, c_uint, c_void, size_t};
use outcrop::CompactionStyle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// Objects without contents.
macro_rules! inert {
    ($($type:ident, destroy $destroy:ident $(, create $create:ident($($arg:ty),*))*;)*) => {$(
        pub struct $type;

        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $create($(_: $arg),*) -> *mut $type {
                boundary!(hand_out($type))
            }
        )*

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(object: *mut $type) {
            boundary!(give_back(object))
        }
    )*};
}

type Log = Option<unsafe extern "C-unwind" fn(*mut c_void, c_uint, *mut c_char, size_t)>;
type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;
/// A callback that is never called.
type Callback = Option<unsafe extern "C-unwind" fn()>;

inert! {
    rocksdb_ratelimiter_t, destroy rocksdb_ratelimiter_destroy,
        create rocksdb_ratelimiter_create(i64, i64, i32),
        create rocksdb_ratelimiter_create_auto_tuned(i64, i64, i32),
        create rocksdb_ratelimiter_create_with_mode(i64, i64, i32, c_int, bool);
    rocksdb_logger_t, destroy rocksdb_logger_destroy,
        create rocksdb_logger_create_stderr_logger(c_int, *const c_char),
        create rocksdb_logger_create_callback_logger(c_int, Log, *mut c_void);
    rocksdb_file_checksum_gen_factory_t, destroy rocksdb_file_checksum_gen_factory_destroy,
        create rocksdb_file_checksum_gen_crc32c_factory_create();
    rocksdb_sst_partitioner_factory_t, destroy rocksdb_sst_partitioner_factory_destroy,
        create rocksdb_sst_partitioner_fixed_prefix_factory_create(size_t);
    rocksdb_table_properties_collector_factory_t, destroy rocksdb_table_properties_collector_factory_destroy;
    rocksdb_memory_allocator_t, destroy rocksdb_memory_allocator_destroy;
}

refused! { RESOURCE_NOTES:
    "the engine's memory comes from mappings of its own" {
        rocksdb_jemalloc_nodump_allocator_create() @ errptr -> *mut rocksdb_memory_allocator_t;
    }
}

/// Setters of options that take an object.
macro_rules! objects {
    ($($fate:ident $how:ident $why:literal { $($name:ident($($type:ty),*) $option:literal;)* })*) => {
        pub(crate) const OBJECT_NOTES: &[Note] = &[$($(
            Note { function: stringify!($name), fate: Fate::$fate, why: $why },
        )*)*];

        $($(objects!(@function $how $name($($type),*) $option);)*)*
    };
    (@function Accepted $name:ident($($type:ty),*) $option:literal) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(_: *mut rocksdb_options_t $(, _: $type)*) {}
    };
    (@function Checked $name:ident($first:ty $(, $type:ty)*) $option:literal) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_options_t, _: $first $(, _: $type)*) {
            boundary!((*options).settings.refuse($option, "an object"))
        }
    };
    (@function Object $name:ident($object:ty) $option:literal) => {
        /// Null takes one away that was set before.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut rocksdb_options_t, object: $object) {
            boundary!(match options.as_mut() {
                Some(options) if object.is_null() => options.settings.allow($option),
                Some(options) => options.settings.refuse($option, "an object"),
                None => {}
            })
        }
    };
}

objects! {
    Accepted Accepted "it only limits or tunes; what is read and kept is the same" {
        rocksdb_options_set_ratelimiter(*mut rocksdb_ratelimiter_t) "rate_limiter";
        rocksdb_options_set_row_cache(*mut rocksdb_cache_t) "row_cache";
        rocksdb_options_set_blob_cache(*mut rocksdb_cache_t) "blob_cache";
        rocksdb_options_set_sst_partitioner_factory(*mut rocksdb_sst_partitioner_factory_t)
            "sst_partitioner_factory";
        rocksdb_options_set_max_bytes_for_level_multiplier_additional(*mut c_int, size_t)
            "max_bytes_for_level_multiplier_additional";
        rocksdb_options_add_compact_on_deletion_collector_factory(size_t, size_t) "collector";
        rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(size_t, size_t, f64) "collector";
        rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(size_t, size_t, f64, u64)
            "collector";
        rocksdb_options_add_table_properties_collector_factory(
            *mut rocksdb_table_properties_collector_factory_t) "collector";
    }
    Accepted Accepted "there is one memtable, in total order, and it appends ascending keys without a search" {
        rocksdb_options_set_memtable_vector_rep() "memtable_factory";
        rocksdb_options_set_hash_skip_list_rep(size_t, i32, i32) "memtable_factory";
        rocksdb_options_set_hash_link_list_rep(size_t) "memtable_factory";
    }
    Checked Checked "there are no plain tables" {
        rocksdb_options_set_plain_table_factory(u32, c_int, f64, size_t, size_t, c_char, u8, u8)
            "table_factory";
    }
    Checked Object "the object it takes has no counterpart; null takes it away" {
        rocksdb_options_set_file_checksum_gen_factory(*mut rocksdb_file_checksum_gen_factory_t)
            "file_checksum_gen_factory";
        rocksdb_options_set_cuckoo_table_factory(*mut rocksdb_cuckoo_table_options_t) "table_factory";
        rocksdb_options_set_wal_filter(*mut rocksdb_walfilter_t) "wal_filter";
    }
}

/// Undoes `rocksdb_options_set_wal_filter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_clear_wal_filter(options: *mut rocksdb_options_t) {
    boundary!((*options).settings.allow("wal_filter"))
}

/// Universal compaction, with memtables of a quarter of the budget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_optimize_universal_style_compaction(
    options: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    boundary!({
        let options = &mut (*options).cf;
        options.write_buffer_size = memtable_memory_budget / 4;
        options.max_write_buffer_number = 6;
        options.min_write_buffer_number_to_merge = 2;
        options.compaction_style = CompactionStyle::Universal;
        options.compaction_options_universal.compression_size_percent = 80;
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_info_log(_: *mut rocksdb_options_t, _: *mut rocksdb_logger_t) {}

/// A logger to be destroyed by the caller, never null.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_info_log(_options: *mut rocksdb_options_t) -> *mut rocksdb_logger_t {
    boundary!(hand_out(rocksdb_logger_t))
}

pub struct rocksdb_walfilter_t {
    state: *mut c_void,
    destructor: Destructor,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_walfilter_create(
    state: *mut c_void,
    destructor: Destructor,
    _log_numbers: Callback,
    _record_found: Callback,
    _name: Name,
) -> *mut rocksdb_walfilter_t {
    boundary!(hand_out(rocksdb_walfilter_t { state, destructor }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_walfilter_destroy(filter: *mut rocksdb_walfilter_t) {
    boundary!({
        if let Some(filter) = filter.as_ref()
            && let Some(destructor) = filter.destructor
        {
            destructor(filter.state);
        }
        give_back(filter);
    })
}

pub struct rocksdb_dbpath_t {
    pub(crate) path: String,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_create(
    path: *const c_char,
    _target_size: u64,
) -> *mut rocksdb_dbpath_t {
    boundary!(hand_out(rocksdb_dbpath_t { path: text(path) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_destroy(path: *mut rocksdb_dbpath_t) {
    boundary!(give_back(path))
}

/// Limits the memtables of each database opened with it. The memory it names is that of memtables alone.
pub struct rocksdb_write_buffer_manager_t {
    buffer_size: AtomicUsize,
    costs_to_cache: bool,
}

impl rocksdb_write_buffer_manager_t {
    pub(crate) fn buffer_size(&self) -> usize {
        // Relaxed: a number that orders nothing.
        self.buffer_size.load(Ordering::Relaxed)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create(
    buffer_size: size_t,
    _allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    boundary!(hand_out(rocksdb_write_buffer_manager_t {
        buffer_size: AtomicUsize::new(buffer_size),
        costs_to_cache: false,
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    buffer_size: size_t,
    cache: *const rocksdb_cache_t,
    _allow_stall: bool,
) -> *mut rocksdb_write_buffer_manager_t {
    boundary!(hand_out(rocksdb_write_buffer_manager_t {
        buffer_size: AtomicUsize::new(buffer_size),
        costs_to_cache: !cache.is_null(),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_destroy(manager: *mut rocksdb_write_buffer_manager_t) {
    boundary!(give_back(manager))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_enabled(
    manager: *mut rocksdb_write_buffer_manager_t,
) -> bool {
    boundary!((*manager).buffer_size() > 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_cost_to_cache(
    manager: *mut rocksdb_write_buffer_manager_t,
) -> bool {
    boundary!((*manager).costs_to_cache)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_buffer_size(
    manager: *mut rocksdb_write_buffer_manager_t,
) -> size_t {
    boundary!((*manager).buffer_size())
}

/// For databases that are opened later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_buffer_manager_set_buffer_size(
    manager: *mut rocksdb_write_buffer_manager_t,
    new_size: size_t,
) {
    boundary!({
        // Relaxed: a number that orders nothing.
        (*manager).buffer_size.store(new_size, Ordering::Relaxed);
    })
}

/// Writers never wait for a manager; the call is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_write_buffer_manager_set_allow_stall(
    _manager: *mut rocksdb_write_buffer_manager_t,
    _allow_stall: bool,
) {
}

/// Databases count their memory themselves, see the property `rocksdb.cur-size-all-mem-tables`.
macro_rules! uncounted {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(_manager: *mut rocksdb_write_buffer_manager_t) -> size_t {
            boundary!(0)
        }
    )*};
}

uncounted! {
    rocksdb_write_buffer_manager_memory_usage
    rocksdb_write_buffer_manager_mutable_memtable_memory_usage
    rocksdb_write_buffer_manager_dummy_entries_in_cache_usage
}

/// Keeps its settings; a limit of space makes the open of a database that uses it fail.
#[derive(Clone)]
pub struct rocksdb_sst_file_manager_t(Arc<SstFileManager>);

#[derive(Default)]
struct SstFileManager {
    max_allowed_space: AtomicU64,
    delete_rate: AtomicI64,
    max_trash_ratio_bits: AtomicU64,
    limited: AtomicBool,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_create(
    _env: *mut rocksdb_env_t,
) -> *mut rocksdb_sst_file_manager_t {
    boundary!({
        let manager = SstFileManager::default();
        // Relaxed, here and below: numbers that order nothing.
        manager.max_trash_ratio_bits.store(0.25_f64.to_bits(), Ordering::Relaxed);
        hand_out(rocksdb_sst_file_manager_t(Arc::new(manager)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_manager_destroy(manager: *mut rocksdb_sst_file_manager_t) {
    boundary!(give_back(manager))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_sst_file_manager(
    options: *mut rocksdb_options_t,
    manager: *mut rocksdb_sst_file_manager_t,
) {
    boundary!({
        let (options, manager) = (&mut *options, manager.as_ref());
        options.settings.allow("sst_file_manager.max_allowed_space_usage");
        if let Some(manager) = manager
            && manager.0.limited.load(Ordering::Relaxed)
        {
            let limit = manager.0.max_allowed_space.load(Ordering::Relaxed);
            options.settings.refuse("sst_file_manager.max_allowed_space_usage", limit);
        }
    })
}

/// Functions over the manager.
macro_rules! sst_file_manager {
    ($($name:ident($($arg:ident: $type:ty)?) $(-> $ret:ty)? |$manager:ident| $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(manager: *mut rocksdb_sst_file_manager_t $(, $arg: $type)?) $(-> $ret)? {
            boundary!({
                let $manager = &*(*manager).0;
                $body
            })
        }
    )*};
}

sst_file_manager! {
    rocksdb_sst_file_manager_set_max_allowed_space_usage(max_allowed_space: u64) |m| {
        m.max_allowed_space.store(max_allowed_space, Ordering::Relaxed);
        m.limited.store(max_allowed_space > 0, Ordering::Relaxed);
    }
    rocksdb_sst_file_manager_set_compaction_buffer_size(_size: u64) |_m| {}
    rocksdb_sst_file_manager_is_max_allowed_space_reached() -> bool |_m| { false }
    rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions() -> bool |_m| { false }
    rocksdb_sst_file_manager_get_total_size() -> u64 |_m| { 0 }
    rocksdb_sst_file_manager_get_total_trash_size() -> u64 |_m| { 0 }
    rocksdb_sst_file_manager_get_delete_rate_bytes_per_second() -> i64 |m| {
        m.delete_rate.load(Ordering::Relaxed)
    }
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(delete_rate: i64) |m| {
        m.delete_rate.store(delete_rate, Ordering::Relaxed);
    }
    rocksdb_sst_file_manager_get_max_trash_db_ratio() -> f64 |m| {
        f64::from_bits(m.max_trash_ratio_bits.load(Ordering::Relaxed))
    }
    rocksdb_sst_file_manager_set_max_trash_db_ratio(ratio: f64) |m| {
        m.max_trash_ratio_bits.store(ratio.to_bits(), Ordering::Relaxed);
    }
}

/// What is only kept among the functions above, and those of other files that are like them.
pub(crate) const KEPT_NOTES: &[Note] = &[
    kept("rocksdb_ratelimiter_create", UNLIMITED),
    kept("rocksdb_ratelimiter_create_auto_tuned", UNLIMITED),
    kept("rocksdb_ratelimiter_create_with_mode", UNLIMITED),
    kept("rocksdb_ratelimiter_destroy", UNLIMITED),
    kept("rocksdb_envoptions_set_rate_limiter", UNLIMITED),
    kept("rocksdb_logger_create_stderr_logger", UNLOGGED),
    kept("rocksdb_logger_create_callback_logger", UNLOGGED),
    kept("rocksdb_logger_destroy", UNLOGGED),
    kept("rocksdb_options_set_info_log", UNLOGGED),
    kept("rocksdb_options_get_info_log", UNLOGGED),
    kept("rocksdb_options_set_db_log_dir", "LOG stays in the database's directory"),
    kept("rocksdb_options_get_db_log_dir", "LOG stays in the database's directory"),
    kept("rocksdb_options_set_db_host_id", "tables do not name a host"),
    kept("rocksdb_options_get_db_host_id", "tables do not name a host"),
    kept("rocksdb_options_set_daily_offpeak_time_utc", "compactions are the same at all hours"),
    kept("rocksdb_options_get_daily_offpeak_time_utc", "compactions are the same at all hours"),
    kept("rocksdb_dbpath_create", "one path alone is supported, and its target size limits nothing"),
    kept("rocksdb_dbpath_destroy", "one path alone is supported, and its target size limits nothing"),
    kept("rocksdb_sst_file_manager_get_total_size", "always 0: files are not counted"),
    kept("rocksdb_sst_file_manager_get_total_trash_size", "always 0: obsolete files go at once"),
    kept("rocksdb_sst_file_manager_is_max_allowed_space_reached", NO_LIMIT),
    kept("rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions", NO_LIMIT),
    kept("rocksdb_sst_file_manager_get_delete_rate_bytes_per_second", "obsolete files go at once"),
    kept("rocksdb_sst_file_manager_get_max_trash_db_ratio", "obsolete files go at once"),
    kept("rocksdb_file_checksum_gen_crc32c_factory_create", "options that it is given to do not open"),
    kept("rocksdb_file_checksum_gen_factory_destroy", "options that it is given to do not open"),
    kept("rocksdb_sst_partitioner_fixed_prefix_factory_create", "tables are cut by size alone"),
    kept("rocksdb_sst_partitioner_factory_destroy", "tables are cut by size alone"),
    kept("rocksdb_table_properties_collector_factory_destroy", "there are no collectors"),
    kept("rocksdb_memory_allocator_destroy", "the engine's memory comes from mappings of its own"),
    kept("rocksdb_walfilter_create", "options that it is given to do not open"),
    kept("rocksdb_walfilter_destroy", "options that it is given to do not open"),
    kept("rocksdb_write_buffer_manager_cost_to_cache", "memtables are not counted in a cache"),
    kept("rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer", "always 1"),
    kept("rocksdb_options_checksum_handoff_file_types_contains", HINT),
    kept("rocksdb_options_checksum_handoff_file_types_count", HINT),
    kept("rocksdb_options_calculate_sst_write_lifetime_hint_set_contains", HINT),
    kept("rocksdb_options_calculate_sst_write_lifetime_hint_set_count", HINT),
    kept("rocksdb_readoptions_set_request_id", "requests are not traced"),
    kept("rocksdb_readoptions_get_request_id", "requests are not traced"),
    kept("rocksdb_readoptions_clear_request_id", "requests are not traced"),
];
const UNLIMITED: &str = "reads and writes are not limited";
const UNLOGGED: &str = "messages go to LOG in the database's directory";
const NO_LIMIT: &str = "always false: a limit of space makes an open fail";
const HINT: &str = "a hint to file systems that the engine does not use";

const fn kept(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Kept, why }
}

const fn accepted(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Accepted, why }
}

/// What is accepted among the functions above.
pub(crate) const LIMIT_NOTES: &[Note] = &[
    accepted("rocksdb_write_buffer_manager_set_allow_stall", "writers never wait for a manager"),
    accepted("rocksdb_write_buffer_manager_memory_usage", UNCOUNTED),
    accepted("rocksdb_write_buffer_manager_mutable_memtable_memory_usage", UNCOUNTED),
    accepted("rocksdb_write_buffer_manager_dummy_entries_in_cache_usage", UNCOUNTED),
    accepted("rocksdb_sst_file_manager_set_compaction_buffer_size", "it matters only with a limit of space"),
    accepted("rocksdb_sst_file_manager_set_delete_rate_bytes_per_second", "obsolete files go at once"),
    accepted("rocksdb_sst_file_manager_set_max_trash_db_ratio", "obsolete files go at once"),
    Note {
        function: "rocksdb_sst_file_manager_set_max_allowed_space_usage",
        fate: Fate::Checked,
        why: "a limit of space would not be kept",
    },
];
const UNCOUNTED: &str = "always 0: databases count their memory themselves";
