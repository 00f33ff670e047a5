//! Refused: the list of WAL files.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use libc::{c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

refused! { WAL_FILES_REFUSED:
    "WAL files are not listed" {
        rocksdb_get_current_wal_file(Ptr) @ errptr -> Ptr;
        rocksdb_get_sorted_wal_files(Ptr) @ errptr -> Ptr;
        rocksdb_wal_file_destroy(Ptr);
        rocksdb_wal_file_log_number(Ptr) -> u64;
        rocksdb_wal_file_path_name(Ptr) -> Ptr;
        rocksdb_wal_file_size_file_bytes(Ptr) -> u64;
        rocksdb_wal_file_start_sequence(Ptr) -> u64;
        rocksdb_wal_file_type(Ptr) -> c_int;
        rocksdb_wal_files_count(Ptr) -> size_t;
        rocksdb_wal_files_destroy(Ptr);
        rocksdb_wal_files_get_wal_file(Ptr, size_t) -> Ptr;
    }
}
