//! `rocksdb_compact_files*` and `rocksdb_compaction_options_*`: compactions of tables that the caller names.
//!
//! Where the result goes is said with `compaction_job_info` in RocksDB too; such an object cannot be made here, so it is
//! always null.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, copy_out_text, give_back, hand_out, report, text};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop::options::CompressionType;
use outcrop::{ColumnFamilyHandle, CompactFilesOptions, Db, Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How tables are compacted. Defaults are RocksDB's, which are not all those of the engine.
pub struct rocksdb_compaction_options_t {
    compression: Option<CompressionType>,
    output_file_size_limit: u64,
    /// 0: as the database says.
    max_subcompactions: u32,
    allow_trivial_move: bool,
    canceled: Option<Arc<AtomicBool>>,
    settings: Settings,
}

impl Default for rocksdb_compaction_options_t {
    fn default() -> Self {
        rocksdb_compaction_options_t {
            compression: None,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            allow_trivial_move: false,
            canceled: None,
            settings: Settings::default(),
        }
    }
}

impl rocksdb_compaction_options_t {
    fn get(&self) -> CompactFilesOptions {
        CompactFilesOptions {
            compression: self.compression,
            output_file_size_limit: Some(self.output_file_size_limit),
            max_subcompactions: (self.max_subcompactions > 0).then_some(self.max_subcompactions),
            allow_trivial_move: self.allow_trivial_move,
            canceled: self.canceled.clone(),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_create() -> *mut rocksdb_compaction_options_t {
    hand_out(rocksdb_compaction_options_t::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_destroy(options: *mut rocksdb_compaction_options_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(options) }
}

engine_settings! { rocksdb_compaction_options_t:
    "compression" [compression]
        set rocksdb_compaction_options_set_compression(c_int)
        get rocksdb_compaction_options_get_compression -> c_int;
    "output_file_size_limit" [output_file_size_limit]
        set rocksdb_compaction_options_set_output_file_size_limit(u64)
        get rocksdb_compaction_options_get_output_file_size_limit -> u64;
    "max_subcompactions" [max_subcompactions]
        set rocksdb_compaction_options_set_max_subcompactions(u32)
        get rocksdb_compaction_options_get_max_subcompactions -> u32;
    "allow_trivial_move" [allow_trivial_move]
        set rocksdb_compaction_options_set_allow_trivial_move(Flag)
        get rocksdb_compaction_options_get_allow_trivial_move -> Flag;
}

kept_settings! { rocksdb_compaction_options_t, COMPACTION_OPTIONS_NOTES:
    Accepted "a hint for storage that has tiers" {
        "output_temperature_override" c_int = 0;
            set rocksdb_compaction_options_set_output_temperature_override get rocksdb_compaction_options_get_output_temperature_override -> c_int;
    }
}

/// A sign that a running compaction looks at, not set.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut c_uchar {
    Arc::into_raw(Arc::new(AtomicBool::new(false))).cast_mut().cast()
}

/// Options that were given the sign keep it alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut c_uchar) {
    if !canceled.is_null() {
        // SAFETY: the contract of the C API: made by `rocksdb_compaction_options_canceled_create`, destroyed once.
        drop(unsafe { Arc::from_raw(canceled.cast::<AtomicBool>()) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut c_uchar, value: c_uchar) {
    // SAFETY: the contract of the C API: a live sign.
    let canceled = unsafe { &*canceled.cast::<AtomicBool>() };
    // Relaxed: it is looked at again and again, and publishes nothing.
    canceled.store(value != 0, Ordering::Relaxed);
}

/// Null takes a sign away that was set before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut rocksdb_compaction_options_t,
    canceled: *mut c_uchar,
) {
    // SAFETY: the contract of the C API: live objects; the sign came from `Arc::into_raw` and gets one more owner.
    unsafe {
        (*options).canceled = (!canceled.is_null()).then(|| {
            let canceled = canceled.cast::<AtomicBool>().cast_const();
            Arc::increment_strong_count(canceled);
            Arc::from_raw(canceled)
        });
    }
}

/// The number in the name of a table, with or without directories before it; 0, which no table has, if there is none.
fn table_number(name: &str) -> u64 {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let digits = stem.len() - stem.bytes().rev().take_while(u8::is_ascii_digit).count();
    stem[digits..].parse().unwrap_or(0)
}

/// Compacts the tables named `files`; gives the paths of the new ones.
unsafe fn compact_files(
    db: &Db,
    cf: &ColumnFamilyHandle,
    options: *const rocksdb_compaction_options_t,
    (names, count): (*const *const c_char, size_t),
    (output_level, output_path_id): (c_int, c_int),
) -> Result<Vec<PathBuf>> {
    // SAFETY: the caller's contract: live options and `count` names.
    let (options, files): (_, Vec<u64>) =
        unsafe { (&*options, (0..count).map(|i| table_number(&text(*names.add(i)))).collect()) };
    options.settings.check()?;
    let output_level = usize::try_from(output_level)
        .map_err(|_| Error::invalid_argument(format!("there is no level {output_level} to compact to")))?;
    // Below 0 the path is chosen, among one.
    if output_path_id > 0 {
        return Err(Error::invalid_argument(format!("there is no path {output_path_id}, only one")));
    }
    let written = db.compact_files_with(cf, &files, output_level, &options.get())?;
    Ok(written.into_iter().map(|number| db.table_path(number)).collect())
}

/// Hands the paths out as the caller asked, if it did: nothing, and no list to destroy, after a failure.
unsafe fn hand_out_names(paths: Option<&[PathBuf]>, names: *mut *mut *mut c_char, count: *mut size_t) {
    if names.is_null() || count.is_null() {
        return;
    }
    // SAFETY: the caller's contract: both can be written; the list has room for all of them.
    unsafe {
        (*names, *count) = (std::ptr::null_mut(), 0);
        let Some(paths) = paths else { return };
        let list = libc::malloc(paths.len().max(1) * size_of::<*mut c_char>()).cast::<*mut c_char>();
        for (i, path) in paths.iter().enumerate() {
            *list.add(i) = copy_out_text(&path.display().to_string());
        }
        (*names, *count) = (list, paths.len());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files(
    db: *mut rocksdb_t,
    options: *const rocksdb_compaction_options_t,
    input_file_names: *const *const c_char,
    num_input_file_names: size_t,
    output_level: c_int,
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut size_t,
    _compaction_job_info: *mut c_void,
    errptr: Errptr,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let db = &(*db).0;
        let inputs = (input_file_names, num_input_file_names);
        let output = (output_level, output_path_id);
        let compacted = compact_files(db, db.default_column_family(), options, inputs, output);
        let paths = report(errptr, compacted);
        hand_out_names(paths.as_deref(), output_file_names, num_output_file_names);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_compaction_options_t,
    input_file_names: *const *const c_char,
    num_input_file_names: size_t,
    output_level: c_int,
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut size_t,
    _compaction_job_info: *mut c_void,
    errptr: Errptr,
) {
    // SAFETY: the contract of the C API.
    unsafe {
        let inputs = (input_file_names, num_input_file_names);
        let output = (output_level, output_path_id);
        let compacted = compact_files(&(*db).0, &(*cf).0, options, inputs, output);
        let paths = report(errptr, compacted);
        hand_out_names(paths.as_deref(), output_file_names, num_output_file_names);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    names: *mut *mut c_char,
    count: size_t,
) {
    if names.is_null() {
        return;
    }
    // SAFETY: the contract of the C API: `count` names from `rocksdb_compact_files`.
    unsafe {
        for i in 0..count {
            libc::free((*names.add(i)).cast());
        }
        libc::free(names.cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_the_numbers_in_their_names() {
        for name in ["000012.sst", "/000012.sst", "/a/7/000012.sst", "12.ldb", "x9y12.sst"] {
            assert_eq!(table_number(name), 12, "{name}");
        }
        for name in ["", "x.sst", "12x.sst", "99999999999999999999.sst", "."] {
            assert_eq!(table_number(name), 0, "{name}");
        }
    }
}
