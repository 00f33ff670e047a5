//! Refused: user-defined timestamps.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use libc::{c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

refused! { TIMESTAMPS_REFUSED:
    "user-defined timestamps are not supported" {
        rocksdb_delete_cf_with_ts(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_delete_with_ts(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_get_cf_with_ts(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_get_full_history_ts_low(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_get_with_ts(Ptr, Ptr, Ptr, size_t, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_increase_full_history_ts_low(Ptr, Ptr, Ptr, size_t) @ errptr;
        rocksdb_multi_get_cf_with_ts(Ptr, Ptr, Ptr, size_t, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr);
        rocksdb_multi_get_with_ts(Ptr, Ptr, size_t, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr);
        rocksdb_open_and_trim_history(Ptr, Ptr, c_int, Ptr, Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_put_cf_with_ts(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_put_with_ts(Ptr, Ptr, Ptr, size_t, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_singledelete_cf_with_ts(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_singledelete_with_ts(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_sstfilewriter_delete_with_ts(Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_sstfilewriter_put_with_ts(Ptr, Ptr, size_t, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_writebatch_update_timestamps(Ptr, Ptr, size_t, Ptr, Ptr) @ errptr;
    }
}
