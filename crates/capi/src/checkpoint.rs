//! `rocksdb_checkpoint_*`.

use crate::db::rocksdb_t;
use crate::memory::{give_back, hand_out, report, text};
use libc::c_char;

/// Refers to its database, which must outlive it.
pub struct rocksdb_checkpoint_t(pub(crate) *mut rocksdb_t);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_object_create(
    db: *mut rocksdb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_checkpoint_t {
    boundary!(errptr, hand_out(rocksdb_checkpoint_t(db)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_create(
    checkpoint: *mut rocksdb_checkpoint_t,
    checkpoint_dir: *const c_char,
    log_size_for_flush: u64,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let db = &(*(*checkpoint).0).0;
        report(errptr, db.create_checkpoint_with(text(checkpoint_dir), log_size_for_flush));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_object_destroy(checkpoint: *mut rocksdb_checkpoint_t) {
    boundary!(give_back(checkpoint))
}
