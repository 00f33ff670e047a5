//! Objects that options share between databases: paths, factories, allocators.
//!
//! These have no counterpart: those that only tune are accepted, those that change what is stored make an open fail.

use crate::cache::rocksdb_cache_t;
use crate::memory::{give_back, hand_out, text};
use crate::options::rocksdb_options_t;
use crate::refused::rocksdb_cuckoo_table_options_t;
use crate::settings::{Fate, Note};
use libc::{c_char, c_int, c_void, size_t};
use outcrop::{CompactionStyle, DbPath};

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

type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;
/// A callback that is never called.
type Callback = Option<unsafe extern "C-unwind" fn()>;

inert! {
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
    Accepted Accepted "rows are found in cached blocks and nowhere else: less memory is taken than is allowed, and tickers of a row cache stay 0" {
        rocksdb_options_set_row_cache(*mut rocksdb_cache_t) "row_cache";
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

pub struct rocksdb_dbpath_t(pub(crate) DbPath);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_create(
    path: *const c_char,
    target_size: u64,
) -> *mut rocksdb_dbpath_t {
    boundary!(hand_out(rocksdb_dbpath_t(DbPath::new(text(path), target_size))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_dbpath_destroy(path: *mut rocksdb_dbpath_t) {
    boundary!(give_back(path))
}

/// The settings that are only kept among the functions above, and those of other files that are like them.
pub(crate) const KEPT_NOTES: &[Note] = &[
    accepted(
        "rocksdb_envoptions_set_rate_limiter",
        "RocksDB, too, limits no file of its SstFileWriter: its writes have no priority",
    ),
    kept("rocksdb_memory_allocator_destroy", "the engine's memory comes from mappings of its own"),
    kept("rocksdb_walfilter_create", "options that it is given to do not open"),
    kept("rocksdb_walfilter_destroy", "options that it is given to do not open"),
    kept("rocksdb_options_checksum_handoff_file_types_contains", HINT),
    kept("rocksdb_options_checksum_handoff_file_types_count", HINT),
    kept("rocksdb_options_calculate_sst_write_lifetime_hint_set_contains", HINT),
    kept("rocksdb_options_calculate_sst_write_lifetime_hint_set_count", HINT),
    kept("rocksdb_readoptions_set_request_id", "requests are not traced"),
    kept("rocksdb_readoptions_get_request_id", "requests are not traced"),
    kept("rocksdb_readoptions_clear_request_id", "requests are not traced"),
];
const HINT: &str = "a hint to file systems that the engine does not use";

const fn kept(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Kept, why }
}

const fn accepted(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Accepted, why }
}

/// The accepted settings among the functions above.
pub(crate) const LIMIT_NOTES: &[Note] = &[];
