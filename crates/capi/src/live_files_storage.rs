//! `rocksdb_livefiles_storage_info_*`: the files that a database consists of at one moment.

use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, hand_out, report};
use crate::settings::{Flag, Settings};
use libc::{c_char, c_int, size_t};
use outcrop::{LiveFileStorage, LiveFilesOptions, StorageFileKind};
use std::ffi::CString;

#[derive(Default)]
pub struct rocksdb_livefiles_storage_info_options_t {
    options: LiveFilesOptions,
    settings: Settings,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_storage_info_options_create()
-> *mut rocksdb_livefiles_storage_info_options_t {
    boundary!(hand_out(rocksdb_livefiles_storage_info_options_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_options_destroy(
    options: *mut rocksdb_livefiles_storage_info_options_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_livefiles_storage_info_options_t:
    "include_checksum_info" [options.include_checksum_info]
        set rocksdb_livefiles_storage_info_options_set_include_checksum_info(Flag)
        get rocksdb_livefiles_storage_info_options_get_include_checksum_info -> Flag;
    "wal_size_for_flush" [options.wal_size_for_flush]
        set rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(u64)
        get rocksdb_livefiles_storage_info_options_get_wal_size_for_flush -> u64;
}

kept_settings! { rocksdb_livefiles_storage_info_options_t, LIVEFILES_STORAGE_INFO_OPTIONS_NOTES:
    Accepted "the flush is at one moment over all column families in any case" {
        "atomic_flush" Flag = Flag(0);
            set rocksdb_livefiles_storage_info_options_set_atomic_flush
            get rocksdb_livefiles_storage_info_options_get_atomic_flush -> Flag;
    }
}

struct File {
    file: LiveFileStorage,
    name: CString,
    directory: CString,
    checksum: CString,
    checksum_function: CString,
}

pub struct rocksdb_livefiles_storage_info_t(Vec<File>);

impl From<LiveFileStorage> for File {
    fn from(file: LiveFileStorage) -> File {
        let c_text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            CString::new(&bytes[..end]).unwrap_or_default()
        };
        File {
            name: c_text(file.name.as_bytes()),
            directory: c_text(file.directory.display().to_string().as_bytes()),
            // Up to a NUL in it, as RocksDB's function gives it.
            checksum: c_text(&file.checksum),
            checksum_function: c_text(file.checksum_function.as_bytes()),
            file,
        }
    }
}

/// RocksDB's number.
fn kind_number(kind: StorageFileKind) -> c_int {
    match kind {
        StorageFileKind::Wal => 0,
        StorageFileKind::Table => 2,
        StorageFileKind::Manifest => 3,
        StorageFileKind::Current => 4,
        StorageFileKind::Options => 9,
        StorageFileKind::Blob => 10,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_livefiles_storage_info(
    db: *mut rocksdb_t,
    options: *const rocksdb_livefiles_storage_info_options_t,
    errptr: Errptr,
) -> *mut rocksdb_livefiles_storage_info_t {
    boundary!(errptr, {
        let options = options.as_ref().map_or_else(LiveFilesOptions::default, |options| options.options);
        let live = report(errptr, (*db).0.live_files_storage_info(&options));
        live.map_or(std::ptr::null_mut(), |live| {
            hand_out(rocksdb_livefiles_storage_info_t(live.files.into_iter().map(Into::into).collect()))
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_destroy(info: *mut rocksdb_livefiles_storage_info_t) {
    boundary!(give_back(info))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_count(
    info: *const rocksdb_livefiles_storage_info_t,
) -> size_t {
    boundary!((*info).0.len())
}

/// Reads a field of the file at an index the caller keeps within the count. Texts belong to the info.
macro_rules! storage_fields {
    ($($name:ident -> $type:ty |$file:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            info: *const rocksdb_livefiles_storage_info_t,
            index: size_t,
        ) -> $type {
            boundary!({
                let $file = &(&(*info).0)[index];
                $body
            })
        }
    )*};
}

storage_fields! {
    rocksdb_livefiles_storage_info_relative_filename -> *const c_char |file| file.name.as_ptr();
    rocksdb_livefiles_storage_info_directory -> *const c_char |file| file.directory.as_ptr();
    rocksdb_livefiles_storage_info_file_number -> u64 |file| file.file.number;
    rocksdb_livefiles_storage_info_file_type -> c_int |file| kind_number(file.file.kind);
    rocksdb_livefiles_storage_info_size -> u64 |file| file.file.size;
    rocksdb_livefiles_storage_info_temperature -> c_int |file| c_int::from(file.file.temperature);
    rocksdb_livefiles_storage_info_file_checksum -> *const c_char |file| file.checksum.as_ptr();
    rocksdb_livefiles_storage_info_file_checksum_func_name -> *const c_char
        |file| file.checksum_function.as_ptr();
    rocksdb_livefiles_storage_info_trim_to_size -> Flag |file| file.file.trim_to_size.into();
}

/// Belongs to the info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_replacement_contents(
    info: *const rocksdb_livefiles_storage_info_t,
    index: size_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!({
        let contents = &(&(*info).0)[index].file.replacement_contents;
        if let Some(size) = size.as_mut() {
            *size = contents.len();
        }
        contents.as_ptr().cast::<c_char>()
    })
}
