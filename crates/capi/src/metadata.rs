//! `rocksdb_livefiles_*`, `rocksdb_column_family_metadata_*` and what hangs below: which tables there are.
//!
//! All of them are copies of one moment, owned by the caller.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{copy_out, copy_out_text, give_back, hand_out, slice, text};
use libc::{c_char, c_int, size_t};
use outcrop::{ColumnFamilyHandle, Db, ExportedFile, LiveFile};
use std::ffi::CString;

/// One file: of a database, or described by the caller for an import.
#[derive(Clone, Default)]
pub struct rocksdb_livefile_t {
    column_family: CString,
    name: CString,
    directory: CString,
    level: c_int,
    size: size_t,
    smallest_key: Vec<u8>,
    largest_key: Vec<u8>,
    smallest_seqno: u64,
    largest_seqno: u64,
    num_entries: u64,
    num_deletions: u64,
}

impl From<LiveFile> for rocksdb_livefile_t {
    fn from(file: LiveFile) -> Self {
        let c_text = |text: String| CString::new(text).unwrap_or_default();
        rocksdb_livefile_t {
            column_family: c_text(file.column_family),
            // With a slash in front, as RocksDB names them here.
            name: c_text(format!("/{}", file.name)),
            directory: c_text(file.directory.display().to_string()),
            level: file.level as c_int,
            size: file.size as size_t,
            smallest_key: file.smallest_key,
            largest_key: file.largest_key,
            smallest_seqno: file.smallest_seq,
            largest_seqno: file.largest_seq,
            num_entries: file.num_entries,
            num_deletions: file.num_deletions,
        }
    }
}

/// Without the column family's name and entries, as RocksDB gives them of an export.
impl From<&ExportedFile> for rocksdb_livefile_t {
    fn from(file: &ExportedFile) -> Self {
        let c_text = |text: String| CString::new(text).unwrap_or_default();
        rocksdb_livefile_t {
            name: c_text(format!("/{}", file.name)),
            directory: c_text(file.directory.display().to_string()),
            level: file.level as c_int,
            size: file.size as size_t,
            smallest_key: file.smallest_key.clone(),
            largest_key: file.largest_key.clone(),
            smallest_seqno: file.smallest_seq,
            largest_seqno: file.largest_seq,
            ..rocksdb_livefile_t::default()
        }
    }
}

impl From<&rocksdb_livefile_t> for ExportedFile {
    fn from(file: &rocksdb_livefile_t) -> Self {
        ExportedFile {
            name: file.name.to_string_lossy().into_owned(),
            directory: file.directory.to_string_lossy().into_owned().into(),
            // A level below 0 is none.
            level: usize::try_from(file.level).unwrap_or(usize::MAX),
            size: file.size as u64,
            smallest_key: file.smallest_key.clone(),
            largest_key: file.largest_key.clone(),
            smallest_seq: file.smallest_seqno,
            largest_seq: file.largest_seqno,
            ..ExportedFile::default()
        }
    }
}

#[derive(Clone, Default)]
pub struct rocksdb_livefiles_t(pub(crate) Vec<rocksdb_livefile_t>);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles(db: *mut rocksdb_t) -> *const rocksdb_livefiles_t {
    boundary!({
        let files = (*db).0.live_files();
        hand_out(rocksdb_livefiles_t(files.into_iter().map(Into::into).collect()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_create() -> *mut rocksdb_livefiles_t {
    boundary!(hand_out(rocksdb_livefiles_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_destroy(files: *const rocksdb_livefiles_t) {
    boundary!(give_back(files.cast_mut()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_count(files: *const rocksdb_livefiles_t) -> c_int {
    boundary!((*files).0.len() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_add(
    files: *mut rocksdb_livefiles_t,
    file: *mut rocksdb_livefile_t,
) {
    boundary!({
        // The file is copied.
        (*files).0.push((*file).clone());
    })
}

/// Reads a field of the file at an index the caller keeps within the count.
macro_rules! file_fields {
    ($($name:ident -> $type:ty |$file:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(files: *const rocksdb_livefiles_t, index: c_int) -> $type {
            boundary!({
                let $file = &(&(*files).0)[index as usize];
                $body
            })
        }
    )*};
}

file_fields! {
    rocksdb_livefiles_column_family_name -> *const c_char |file| file.column_family.as_ptr();
    rocksdb_livefiles_name -> *const c_char |file| file.name.as_ptr();
    rocksdb_livefiles_directory -> *const c_char |file| file.directory.as_ptr();
    rocksdb_livefiles_level -> c_int |file| file.level;
    rocksdb_livefiles_size -> size_t |file| file.size;
    rocksdb_livefiles_smallest_seqno -> u64 |file| file.smallest_seqno;
    rocksdb_livefiles_largest_seqno -> u64 |file| file.largest_seqno;
    rocksdb_livefiles_entries -> u64 |file| file.num_entries;
    rocksdb_livefiles_deletions -> u64 |file| file.num_deletions;
}

macro_rules! file_keys {
    ($($name:ident $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            files: *const rocksdb_livefiles_t,
            index: c_int,
            size: *mut size_t,
        ) -> *const c_char {
            boundary!({
                let key = &(&(*files).0)[index as usize].$field;
                *size = key.len();
                key.as_ptr().cast()
            })
        }
    )*};
}

file_keys! {
    rocksdb_livefiles_smallestkey smallest_key;
    rocksdb_livefiles_largestkey largest_key;
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_create() -> *mut rocksdb_livefile_t {
    boundary!(hand_out(rocksdb_livefile_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefile_destroy(file: *mut rocksdb_livefile_t) {
    boundary!(give_back(file))
}

macro_rules! describe {
    ($($name:ident($($arg:ident: $type:ty),*) $field:ident = $value:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: *mut rocksdb_livefile_t $(, $arg: $type)*) {
            boundary!((*file).$field = $value)
        }
    )*};
}

describe! {
    rocksdb_livefile_set_column_family_name(name: *const c_char)
        column_family = CString::new(text(name)).unwrap_or_default();
    rocksdb_livefile_set_name(name: *const c_char) name = CString::new(text(name)).unwrap_or_default();
    rocksdb_livefile_set_directory(name: *const c_char)
        directory = CString::new(text(name)).unwrap_or_default();
    rocksdb_livefile_set_level(level: c_int) level = level;
    rocksdb_livefile_set_size(size: size_t) size = size;
    rocksdb_livefile_set_smallest_key(key: *const c_char, len: size_t) smallest_key = slice(key, len).to_vec();
    rocksdb_livefile_set_largest_key(key: *const c_char, len: size_t) largest_key = slice(key, len).to_vec();
    rocksdb_livefile_set_smallest_seqno(seqno: u64) smallest_seqno = seqno;
    rocksdb_livefile_set_largest_seqno(seqno: u64) largest_seqno = seqno;
    rocksdb_livefile_set_num_entries(count: u64) num_entries = count;
    rocksdb_livefile_set_num_deletions(count: u64) num_deletions = count;
}

// ---- column families

pub struct rocksdb_column_family_metadata_t {
    name: String,
    levels: Vec<rocksdb_level_metadata_t>,
}

#[derive(Clone)]
pub struct rocksdb_level_metadata_t {
    level: c_int,
    files: Vec<LiveFile>,
}

pub struct rocksdb_sst_file_metadata_t(LiveFile);

/// Which tables to tell of.
pub struct rocksdb_column_family_metadata_options_t {
    /// -1: all.
    level: c_int,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl rocksdb_column_family_metadata_options_t {
    const ALL: rocksdb_column_family_metadata_options_t =
        rocksdb_column_family_metadata_options_t { level: -1, start: None, end: None };

    fn wants(&self, cf: &ColumnFamilyHandle, file: &LiveFile) -> bool {
        let before = |a: &[u8], b: &[u8]| cf.comparator.compare(a, b).is_lt();
        (self.level < 0 || self.level as usize == file.level)
            && self.start.as_ref().is_none_or(|start| !before(&file.largest_key, start))
            && self.end.as_ref().is_none_or(|end| !before(end, &file.smallest_key))
    }
}

fn metadata(
    db: &Db,
    cf: &ColumnFamilyHandle,
    options: &rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    let mut levels: Vec<_> = (0..db.num_levels_cf(cf))
        .map(|level| rocksdb_level_metadata_t { level: level as c_int, files: Vec::new() })
        .collect();
    for file in db.live_files_cf(cf).into_iter().filter(|file| options.wants(cf, file)) {
        if let Some(level) = levels.get_mut(file.level) {
            level.files.push(file);
        }
    }
    if let Ok(level) = usize::try_from(options.level) {
        levels.retain(|kept| kept.level as usize == level);
    }
    hand_out(rocksdb_column_family_metadata_t { name: cf.name().to_string(), levels })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_metadata_t {
    boundary!({
        let db = &(*db).0;
        metadata(db, db.default_column_family(), &rocksdb_column_family_metadata_options_t::ALL)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_cf(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_column_family_metadata_t {
    boundary!(metadata(&(*db).0, &(*cf).0, &rocksdb_column_family_metadata_options_t::ALL))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    boundary!({
        let (db, options) =
            (&(*db).0, options.as_ref().unwrap_or(&rocksdb_column_family_metadata_options_t::ALL));
        metadata(db, db.default_column_family(), options)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_cf_with_options(
    db: *mut rocksdb_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    boundary!(metadata(
        &(*db).0,
        &(*cf).0,
        options.as_ref().unwrap_or(&rocksdb_column_family_metadata_options_t::ALL)
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_column_family_metadata_options_create()
-> *mut rocksdb_column_family_metadata_options_t {
    boundary!(hand_out(rocksdb_column_family_metadata_options_t::ALL))
}

macro_rules! metadata_options_keys {
    ($($set:ident $get:ident $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(
            options: *mut rocksdb_column_family_metadata_options_t,
            key: *const c_char,
            len: size_t,
        ) {
            boundary!((*options).$field = (!key.is_null()).then(|| slice(key, len).to_vec()))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            options: *const rocksdb_column_family_metadata_options_t,
            len: *mut size_t,
        ) -> *const c_char {
            boundary!({
                // The key stays valid until it is set anew.
                let key = (&(*options).$field).as_deref();
                if let Some(len) = len.as_mut() {
                    *len = key.map_or(0, <[u8]>::len);
                }
                key.map_or(std::ptr::null(), |key| key.as_ptr().cast())
            })
        }
    )*};
}

metadata_options_keys! {
    rocksdb_column_family_metadata_options_set_start_key
        rocksdb_column_family_metadata_options_get_start_key start;
    rocksdb_column_family_metadata_options_set_end_key
        rocksdb_column_family_metadata_options_get_end_key end;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_options_set_level(
    options: *mut rocksdb_column_family_metadata_options_t,
    level: c_int,
) {
    boundary!((*options).level = level)
}

macro_rules! destroys {
    ($($name:ident $type:ty;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *mut $type) {
            boundary!(give_back(object))
        }
    )*};
}

destroys! {
    rocksdb_column_family_metadata_destroy rocksdb_column_family_metadata_t;
    rocksdb_column_family_metadata_options_destroy rocksdb_column_family_metadata_options_t;
    rocksdb_level_metadata_destroy rocksdb_level_metadata_t;
    rocksdb_sst_file_metadata_destroy rocksdb_sst_file_metadata_t;
}

/// Reads something of an object.
macro_rules! getters {
    ($($name:ident($type:ty) -> $ret:ty |$object:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *mut $type) -> $ret {
            boundary!({
                let $object = &*object;
                $body
            })
        }
    )*};
}

fn total_size(files: &[LiveFile]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

getters! {
    rocksdb_column_family_metadata_options_get_level(rocksdb_column_family_metadata_options_t) -> c_int
        |options| options.level;
    rocksdb_column_family_metadata_get_size(rocksdb_column_family_metadata_t) -> u64
        |cf| cf.levels.iter().map(|level| total_size(&level.files)).sum();
    rocksdb_column_family_metadata_get_file_count(rocksdb_column_family_metadata_t) -> size_t
        |cf| cf.levels.iter().map(|level| level.files.len()).sum();
    rocksdb_column_family_metadata_get_name(rocksdb_column_family_metadata_t) -> *mut c_char
        |cf| copy_out_text(&cf.name);
    rocksdb_column_family_metadata_get_level_count(rocksdb_column_family_metadata_t) -> size_t
        |cf| cf.levels.len();
    rocksdb_level_metadata_get_level(rocksdb_level_metadata_t) -> c_int |level| level.level;
    rocksdb_level_metadata_get_size(rocksdb_level_metadata_t) -> u64 |level| total_size(&level.files);
    rocksdb_level_metadata_get_file_count(rocksdb_level_metadata_t) -> size_t |level| level.files.len();
    rocksdb_sst_file_metadata_get_relative_filename(rocksdb_sst_file_metadata_t) -> *mut c_char
        |file| copy_out_text(&file.0.name);
    rocksdb_sst_file_metadata_get_directory(rocksdb_sst_file_metadata_t) -> *mut c_char
        |file| copy_out_text(&file.0.directory.display().to_string());
    rocksdb_sst_file_metadata_get_size(rocksdb_sst_file_metadata_t) -> u64 |file| file.0.size;
}

/// Null past the last level.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_level_metadata(
    cf: *mut rocksdb_column_family_metadata_t,
    index: size_t,
) -> *mut rocksdb_level_metadata_t {
    boundary!({
        let levels = &(*cf).levels;
        let level = levels.get(index);
        level.map_or(std::ptr::null_mut(), |level| hand_out(level.clone()))
    })
}

/// Null past the last file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_get_sst_file_metadata(
    level: *mut rocksdb_level_metadata_t,
    index: size_t,
) -> *mut rocksdb_sst_file_metadata_t {
    boundary!({
        let files = &(*level).files;
        let file = files.get(index);
        file.map_or(std::ptr::null_mut(), |file| hand_out(rocksdb_sst_file_metadata_t(file.clone())))
    })
}

macro_rules! sst_file_keys {
    ($($name:ident $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            file: *mut rocksdb_sst_file_metadata_t,
            len: *mut size_t,
        ) -> *mut c_char {
            boundary!({
                let key = &(*file).0.$field;
                *len = key.len();
                copy_out(key)
            })
        }
    )*};
}

sst_file_keys! {
    rocksdb_sst_file_metadata_get_smallestkey smallest_key;
    rocksdb_sst_file_metadata_get_largestkey largest_key;
}
