//! Refused: write batches with an index.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others
//! say so on standard error, once each. Iterators are made, never valid, and keep the error.

use crate::iterator::rocksdb_iterator_t;
use crate::settings::Flag;
use libc::{c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

refused! { WRITEBATCH_WI_REFUSED:
    "write batches with an index are not supported" {
        rocksdb_write_writebatch_wi(Ptr, Ptr, Ptr) @ errptr;
        rocksdb_writebatch_wi_clear(Ptr);
        rocksdb_writebatch_wi_count(Ptr) -> c_int;
        rocksdb_writebatch_wi_create(size_t, Flag) -> Ptr;
        rocksdb_writebatch_wi_create_with_params(Ptr, size_t, Flag, size_t, size_t) -> Ptr;
        rocksdb_writebatch_wi_data(Ptr, Ptr) -> Ptr;
        rocksdb_writebatch_wi_delete(Ptr, Ptr, size_t);
        rocksdb_writebatch_wi_delete_cf(Ptr, Ptr, Ptr, size_t);
        rocksdb_writebatch_wi_delete_range(Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_delete_range_cf(Ptr, Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_delete_rangev(Ptr, c_int, Ptr, Ptr, Ptr, Ptr);
        rocksdb_writebatch_wi_delete_rangev_cf(Ptr, Ptr, c_int, Ptr, Ptr, Ptr, Ptr);
        rocksdb_writebatch_wi_deletev(Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_deletev_cf(Ptr, Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_destroy(Ptr);
        rocksdb_writebatch_wi_get_from_batch(Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_writebatch_wi_get_from_batch_and_db(Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_writebatch_wi_get_from_batch_and_db_cf(Ptr, Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_writebatch_wi_get_from_batch_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_writebatch_wi_get_pinned_from_batch_and_db(Ptr, Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
            Ptr, Ptr, Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_writebatch_wi_iterate(Ptr, Ptr, Ptr, Ptr);
        rocksdb_writebatch_wi_merge(Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_merge_cf(Ptr, Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_mergev(Ptr, c_int, Ptr, Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_mergev_cf(Ptr, Ptr, c_int, Ptr, Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_put(Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_put_cf(Ptr, Ptr, Ptr, size_t, Ptr, size_t);
        rocksdb_writebatch_wi_put_log_data(Ptr, Ptr, size_t);
        rocksdb_writebatch_wi_putv(Ptr, c_int, Ptr, Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_putv_cf(Ptr, Ptr, c_int, Ptr, Ptr, c_int, Ptr, Ptr);
        rocksdb_writebatch_wi_rollback_to_save_point(Ptr) @ errptr;
        rocksdb_writebatch_wi_set_save_point(Ptr);
        rocksdb_writebatch_wi_singledelete(Ptr, Ptr, size_t);
        rocksdb_writebatch_wi_singledelete_cf(Ptr, Ptr, Ptr, size_t);
        rocksdb_writebatch_wi_update_timestamps(Ptr, Ptr, size_t, Ptr, Ptr) @ errptr;
    }
}

refused_iterators! { WRITEBATCH_WI_ITERATORS: "write batches with an index are not supported";
    // The iterator that is given belongs to the one that is made.
    rocksdb_writebatch_wi_create_iterator_with_base(_batch: Ptr, base: *mut rocksdb_iterator_t) ends base;
    rocksdb_writebatch_wi_create_iterator_with_base_cf(_batch: Ptr, base: *mut rocksdb_iterator_t, _cf: Ptr) ends base;
    rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        _batch: Ptr, base: *mut rocksdb_iterator_t, _cf: Ptr, _options: Ptr) ends base;
    rocksdb_writebatch_wi_create_iterator_with_base_readopts(
        _batch: Ptr, base: *mut rocksdb_iterator_t, _options: Ptr) ends base;
}
