//! `rocksdb_get_sorted_wal_files`, `rocksdb_wal_file_*`: which WAL files there are.

use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, hand_out, report};
use libc::{c_char, c_int, size_t};
use outcrop::WalFile;
use std::ffi::CString;

/// One WAL file.
pub struct rocksdb_wal_file_t {
    file: WalFile,
    /// From the WAL directory on, with a slash before it.
    path: CString,
}

/// Several, ascending.
pub struct rocksdb_wal_files_t(Vec<rocksdb_wal_file_t>);

impl rocksdb_wal_file_t {
    fn new(file: WalFile) -> rocksdb_wal_file_t {
        let directory = if file.is_archived { "/archive" } else { "" };
        let name = file.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let path = CString::new(format!("{directory}/{name}")).unwrap_or_default();
        rocksdb_wal_file_t { file, path }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_sorted_wal_files(
    db: *mut rocksdb_t,
    errptr: Errptr,
) -> *mut rocksdb_wal_files_t {
    boundary!(errptr, {
        let files = report(errptr, (*db).0.wal_files());
        files.map_or(std::ptr::null_mut(), |files| {
            hand_out(rocksdb_wal_files_t(files.into_iter().map(rocksdb_wal_file_t::new).collect()))
        })
    })
}

/// Its first sequence number is 0: it is not looked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_current_wal_file(
    db: *mut rocksdb_t,
    errptr: Errptr,
) -> *mut rocksdb_wal_file_t {
    boundary!(errptr, {
        let file = report(errptr, (*db).0.current_wal_file());
        file.map_or(std::ptr::null_mut(), |file| hand_out(rocksdb_wal_file_t::new(file)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_destroy(file: *mut rocksdb_wal_file_t) {
    boundary!(give_back(file))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_destroy(files: *mut rocksdb_wal_files_t) {
    boundary!(give_back(files))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_count(files: *const rocksdb_wal_files_t) -> size_t {
    boundary!((*files).0.len())
}

/// Lives as long as the list; null past its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_files_get_wal_file(
    files: *const rocksdb_wal_files_t,
    place: size_t,
) -> *const rocksdb_wal_file_t {
    boundary!({
        let files = &*files;
        files.0.get(place).map_or(std::ptr::null(), std::ptr::from_ref)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_path_name(file: *const rocksdb_wal_file_t) -> *const c_char {
    boundary!((*file).path.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_log_number(file: *const rocksdb_wal_file_t) -> u64 {
    boundary!((*file).file.number)
}

/// 0 archived, 1 in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_type(file: *const rocksdb_wal_file_t) -> c_int {
    boundary!(c_int::from(!(*file).file.is_archived))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_start_sequence(file: *const rocksdb_wal_file_t) -> u64 {
    boundary!((*file).file.start_sequence.0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_file_size_file_bytes(file: *const rocksdb_wal_file_t) -> u64 {
    boundary!((*file).file.size_bytes)
}
