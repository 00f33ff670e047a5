//! `rocksdb_compact_files*` and `rocksdb_compaction_options_*`: compactions of tables that the caller names.
//!
//! The results of the compaction are stored in `compaction_job_info`, if the caller gives one.

use crate::compaction_infos::rocksdb_compactionjobinfo_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, copy_out_texts, give_back, give_back_texts, hand_out, report, text};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_int, c_uchar, size_t};
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
            output_path_id: None,
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
    boundary!(hand_out(rocksdb_compaction_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_destroy(options: *mut rocksdb_compaction_options_t) {
    boundary!(give_back(options))
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
    boundary!(Arc::into_raw(Arc::new(AtomicBool::new(false))).cast_mut().cast())
}

/// Options that were given the sign keep it alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut c_uchar) {
    boundary!({
        if !canceled.is_null() {
            drop(Arc::from_raw(canceled.cast::<AtomicBool>()));
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut c_uchar, value: c_uchar) {
    boundary!({
        // Relaxed: it is looked at again and again, and publishes nothing.
        if let Some(canceled) = canceled.cast::<AtomicBool>().as_ref() {
            canceled.store(value != 0, Ordering::Relaxed);
        }
    })
}

/// Null takes a sign away that was set before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut rocksdb_compaction_options_t,
    canceled: *mut c_uchar,
) {
    boundary!({
        // The sign came from `Arc::into_raw` and gets one more owner.
        (*options).canceled = (!canceled.is_null()).then(|| {
            let canceled = canceled.cast::<AtomicBool>().cast_const();
            Arc::increment_strong_count(canceled);
            Arc::from_raw(canceled)
        });
    })
}

/// The number in the name of a table, with or without directories before it; 0, which no table has, if there is none.
fn table_number(name: &str) -> u64 {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let digits = stem.len() - stem.bytes().rev().take_while(u8::is_ascii_digit).count();
    stem[digits..].parse().unwrap_or(0)
}

/// Compacts the tables named `files`; gives the paths of the new ones, and tells `info` of it if there is one.
unsafe fn compact_files(
    db: &Db,
    cf: &ColumnFamilyHandle,
    options: *const rocksdb_compaction_options_t,
    (names, count): (*const *const c_char, size_t),
    (output_level, output_path_id): (c_int, c_int),
    info: *mut rocksdb_compactionjobinfo_t,
) -> Result<Vec<PathBuf>> {
    // SAFETY: the caller's contract: live options and `count` names.
    let (options, files): (_, Vec<u64>) =
        unsafe { (&*options, (0..count).map(|i| table_number(&text(*names.add(i)))).collect()) };
    options.settings.check()?;
    let output_level = usize::try_from(output_level)
        .map_err(|_| Error::invalid_argument(format!("there is no level {output_level} to compact to")))?;
    // Below 0 the path is to be chosen.
    let how = CompactFilesOptions { output_path_id: u32::try_from(output_path_id).ok(), ..options.get() };
    // SAFETY: null, or a live object.
    if let Some(info) = unsafe { info.as_mut() } {
        let told = db.compact_files_cf_telling(cf, &files, output_level, &how)?;
        *info = rocksdb_compactionjobinfo_t::new(&told);
        return Ok(told.output_files);
    }
    let written = db.compact_files_cf_with(cf, &files, output_level, &how)?;
    Ok(written.into_iter().map(|number| db.table_path(number)).collect())
}

/// The paths of the new tables go where the caller asked for them, if it did: nothing, and no list to destroy, after a failure.
unsafe fn compact_and_tell(
    (db, cf): (&Db, &ColumnFamilyHandle),
    options: *const rocksdb_compaction_options_t,
    inputs: (*const *const c_char, size_t),
    output: (c_int, c_int),
    (names, count): (*mut *mut *mut c_char, *mut size_t),
    info: *mut rocksdb_compactionjobinfo_t,
    errptr: Errptr,
) {
    // SAFETY: the caller's contract: that of the C API.
    unsafe {
        let paths = report(errptr, compact_files(db, cf, options, inputs, output, info));
        if names.is_null() || count.is_null() {
            return;
        }
        let paths: Option<Vec<String>> =
            paths.map(|paths| paths.iter().map(|path| path.display().to_string()).collect());
        *count = paths.as_ref().map_or(0, Vec::len);
        *names = paths.map_or(std::ptr::null_mut(), |paths| copy_out_texts(&paths));
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
    compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let db = &(*db).0;
        let (inputs, output) = ((input_file_names, num_input_file_names), (output_level, output_path_id));
        let names = (output_file_names, num_output_file_names);
        compact_and_tell(
            (db, db.default_column_family()),
            options,
            inputs,
            output,
            names,
            compaction_job_info,
            errptr,
        );
    })
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
    compaction_job_info: *mut rocksdb_compactionjobinfo_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let (inputs, output) = ((input_file_names, num_input_file_names), (output_level, output_path_id));
        let names = (output_file_names, num_output_file_names);
        compact_and_tell((&(*db).0, &(*cf).0), options, inputs, output, names, compaction_job_info, errptr);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    names: *mut *mut c_char,
    count: size_t,
) {
    boundary!(give_back_texts(names, count))
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
