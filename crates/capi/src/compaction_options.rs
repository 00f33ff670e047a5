//! Compaction styles and their options, and compactions a caller asks for.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::kept_texts::fields_to_engine;
use crate::memory::{give_back, hand_out, report, slice};
use crate::options::rocksdb_options_t;
use crate::settings::Settings;
use crate::write_options::rocksdb_compactoptions_t;
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::options::{CompactionStopStyle, FifoCompactionOptions, UniversalCompactionOptions};
use outcrop::{ColumnFamilyHandle, CompactionStyle, RangeEnd};

#[derive(Default)]
pub struct rocksdb_universal_compaction_options_t {
    options: UniversalCompactionOptions,
    pub(crate) settings: Settings,
}
#[derive(Default)]
pub struct rocksdb_fifo_compaction_options_t {
    options: FifoCompactionOptions,
    pub(crate) settings: Settings,
}

macro_rules! lifecycle {
    ($($type:ty: $create:ident $destroy:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $type {
            boundary!(hand_out(<$type>::default()))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $type) {
            boundary!(give_back(options))
        }
    )*};
}

lifecycle! {
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_create
        rocksdb_universal_compaction_options_destroy;
    rocksdb_fifo_compaction_options_t: rocksdb_fifo_compaction_options_create
        rocksdb_fifo_compaction_options_destroy;
}

/// A setter and the getter of the same value.
macro_rules! properties {
    ($($object:ty: $set:ident $get:ident($value:ident: $type:ty) |$options:ident| $write:expr, $read:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(options: *mut $object, $value: $type) {
            boundary!({
                let $options = &mut *options;
                $write;
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(options: *mut $object) -> $type {
            boundary!({
                let $options = &*options;
                $read
            })
        }
    )*};
}

properties! {
    // Unsigned options pass through int, as in RocksDB: their bits are kept.
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_set_size_ratio
        rocksdb_universal_compaction_options_get_size_ratio(value: c_int)
        |o| o.options.size_ratio = value as u32, o.options.size_ratio as c_int;
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_set_min_merge_width
        rocksdb_universal_compaction_options_get_min_merge_width(value: c_int)
        |o| o.options.min_merge_width = value as u32, o.options.min_merge_width as c_int;
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_set_max_merge_width
        rocksdb_universal_compaction_options_get_max_merge_width(value: c_int)
        |o| o.options.max_merge_width = value as u32, o.options.max_merge_width as c_int;
    rocksdb_universal_compaction_options_t:
        rocksdb_universal_compaction_options_set_max_size_amplification_percent
        rocksdb_universal_compaction_options_get_max_size_amplification_percent(value: c_int)
        |o| o.options.max_size_amplification_percent = value as u32, o.options.max_size_amplification_percent as c_int;
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_set_compression_size_percent
        rocksdb_universal_compaction_options_get_compression_size_percent(value: c_int)
        |o| o.options.compression_size_percent = value, o.options.compression_size_percent;
    rocksdb_universal_compaction_options_t: rocksdb_universal_compaction_options_set_stop_style
        rocksdb_universal_compaction_options_get_stop_style(value: c_int)
        |o| o.options.stop_style = match value {
            0 => CompactionStopStyle::SimilarSize,
            _ => CompactionStopStyle::TotalSize,
        }, o.options.stop_style as c_int;
    rocksdb_fifo_compaction_options_t: rocksdb_fifo_compaction_options_set_max_table_files_size
        rocksdb_fifo_compaction_options_get_max_table_files_size(value: u64)
        |o| o.options.max_table_files_size = value, o.options.max_table_files_size;
    rocksdb_fifo_compaction_options_t: rocksdb_fifo_compaction_options_set_allow_compaction
        rocksdb_fifo_compaction_options_get_allow_compaction(value: c_uchar)
        |o| o.options.allow_compaction = value != 0, o.options.allow_compaction.into();
    rocksdb_options_t: rocksdb_options_set_compaction_style rocksdb_options_get_compaction_style(value: c_int)
        |o| o.cf.compaction_style = match value {
            1 => CompactionStyle::Universal,
            2 => CompactionStyle::Fifo,
            3 => CompactionStyle::None,
            _ => CompactionStyle::Level,
        }, o.cf.compaction_style as c_int;
    rocksdb_options_t: rocksdb_options_set_ttl rocksdb_options_get_ttl(value: u64)
        |o| o.cf.ttl = value, o.cf.ttl;
    rocksdb_options_t: rocksdb_options_set_periodic_compaction_seconds
        rocksdb_options_get_periodic_compaction_seconds(value: u64)
        |o| o.cf.periodic_compaction_seconds = value, o.cf.periodic_compaction_seconds;
    rocksdb_options_t: rocksdb_options_set_max_subcompactions rocksdb_options_get_max_subcompactions(value: u32)
        |o| o.db.max_subcompactions = value, o.db.max_subcompactions;
    rocksdb_compactoptions_t: rocksdb_compactoptions_set_exclusive_manual_compaction
        rocksdb_compactoptions_get_exclusive_manual_compaction(value: c_uchar)
        |o| o.options.exclusive_manual_compaction = value != 0, o.options.exclusive_manual_compaction.into();
    rocksdb_compactoptions_t: rocksdb_compactoptions_set_change_level
        rocksdb_compactoptions_get_change_level(value: c_uchar)
        |o| o.options.change_level = value != 0, o.options.change_level.into();
    // A negative level: the smallest that the data fits.
    rocksdb_compactoptions_t: rocksdb_compactoptions_set_target_level
        rocksdb_compactoptions_get_target_level(value: c_int)
        |o| o.options.target_level = usize::try_from(value).ok(),
        o.options.target_level.map_or(-1, |level| c_int::try_from(level).unwrap_or(c_int::MAX));
    // 0: as the database's options say.
    rocksdb_compactoptions_t: rocksdb_compactoptions_set_max_subcompactions
        rocksdb_compactoptions_get_max_subcompactions(value: c_int)
        |o| o.options.max_subcompactions = u32::try_from(value).ok().filter(|threads| *threads > 0),
        o.options.max_subcompactions.map_or(0, |threads| c_int::try_from(threads).unwrap_or(c_int::MAX));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_universal_compaction_options(
    options: *mut rocksdb_options_t,
    universal: *mut rocksdb_universal_compaction_options_t,
) {
    boundary!({
        // The options are copied.
        let own = &mut (*options).cf.compaction_options_universal;
        own.clone_from(&(*universal).options);
        fields_to_engine(&(*universal).settings, own);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_fifo_compaction_options(
    options: *mut rocksdb_options_t,
    fifo: *mut rocksdb_fifo_compaction_options_t,
) {
    boundary!({
        // The options are copied.
        let own = &mut (*options).cf.compaction_options_fifo;
        own.clone_from(&(*fifo).options);
        fields_to_engine(&(*fifo).settings, own);
    })
}

/// A bound of a range: null is unbounded.
unsafe fn bound<'a>(key: *const c_char, len: size_t) -> Option<&'a [u8]> {
    // SAFETY: the caller passes null or `len` readable bytes.
    (!key.is_null()).then(|| unsafe { slice(key, len) })
}

/// The column family, or the default one for null.
unsafe fn family(db: *mut rocksdb_t, cf: *mut rocksdb_column_family_handle_t) -> ColumnFamilyHandle {
    // SAFETY: the contract of the C API: a live database, and null or a live handle of it.
    unsafe { cf.as_ref().map_or_else(|| (*db).0.default_column_family(), |cf| &cf.0).clone() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_file_in_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let default = std::ptr::null_mut();
        rocksdb_delete_file_in_range_cf(db, default, begin, begin_len, end, end_len, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_delete_file_in_range_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let range = (bound(begin, begin_len), bound(end, end_len));
        report(errptr, (*db).0.delete_files_in_ranges_cf(&family(db, cf), &[range], RangeEnd::Inclusive));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_suggest_compact_range(
    db: *mut rocksdb_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let default = std::ptr::null_mut();
        rocksdb_suggest_compact_range_cf(db, default, begin, begin_len, end, end_len, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_suggest_compact_range_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    begin: *const c_char,
    begin_len: size_t,
    end: *const c_char,
    end_len: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let (begin, end) = (bound(begin, begin_len), bound(end, end_len));
        report(errptr, (*db).0.suggest_compact_range_cf(&family(db, cf), begin, end));
    })
}
