//! `rocksdb_eventlistener_*`: listeners written in C.
//!
//! Ownership as in RocksDB: options take a listener over, for as long as they, copies of them or a database opened under them live; the
//! state's destructor runs when the last of them is gone. A callback that is null is not called, where RocksDB would crash.

use crate::compaction_infos::{rocksdb_compactionjobinfo_t, rocksdb_subcompactionjobinfo_t};
use crate::db::rocksdb_t;
use crate::event_infos::{
    rocksdb_externalfileingestioninfo_t, rocksdb_flushjobinfo_t, rocksdb_memtableinfo_t,
    rocksdb_status_ptr_t, rocksdb_writestallinfo_t,
};
use crate::memory::{give_back, hand_out};
use crate::options::rocksdb_options_t;
use libc::c_void;
use outcrop::{
    BackgroundErrorReason, CompactionJobInfo, Db, Error, EventListener, ExternalFileIngestionInfo,
    FlushJobInfo, MemTableInfo, SubcompactionJobInfo, WriteStallInfo,
};
use std::sync::Arc;

/// A callback that also gets the database.
type OfDb<T> = Option<unsafe extern "C-unwind" fn(*mut c_void, *mut rocksdb_t, *const T)>;
/// A callback that gets the event alone.
type Of<T> = Option<unsafe extern "C-unwind" fn(*mut c_void, *const T)>;

/// The functions of a listener, and what they are called with.
struct CListener {
    state: *mut c_void,
    destructor: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    flush_begin: OfDb<rocksdb_flushjobinfo_t>,
    flush_completed: OfDb<rocksdb_flushjobinfo_t>,
    compaction_begin: OfDb<rocksdb_compactionjobinfo_t>,
    compaction_completed: OfDb<rocksdb_compactionjobinfo_t>,
    subcompaction_begin: Of<rocksdb_subcompactionjobinfo_t>,
    subcompaction_completed: Of<rocksdb_subcompactionjobinfo_t>,
    external_file_ingested: OfDb<rocksdb_externalfileingestioninfo_t>,
    background_error: Option<unsafe extern "C-unwind" fn(*mut c_void, u32, *mut rocksdb_status_ptr_t)>,
    stall_conditions_changed: Of<rocksdb_writestallinfo_t>,
    memtable_sealed: Of<rocksdb_memtableinfo_t>,
}

// SAFETY: RocksDB's contract: callbacks may be called from any thread, several at once.
unsafe impl Send for CListener {}
// SAFETY: as above.
unsafe impl Sync for CListener {}

impl Drop for CListener {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: called once, with the state it was given with.
            unsafe { destructor(self.state) };
        }
    }
}

impl CListener {
    fn call_with_db<T>(&self, callback: OfDb<T>, db: &Arc<Db>, info: impl FnOnce() -> T) {
        if let Some(callback) = callback {
            let (mut db, info) = (rocksdb_t::from(db.clone()), info());
            // SAFETY: the contract of the C API: the callback keeps neither object.
            unsafe { callback(self.state, &raw mut db, &raw const info) };
        }
    }

    fn call<T>(&self, callback: Of<T>, info: impl FnOnce() -> T) {
        if let Some(callback) = callback {
            let info = info();
            // SAFETY: as above.
            unsafe { callback(self.state, &raw const info) };
        }
    }
}

impl EventListener for CListener {
    fn flush_begin(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        self.call_with_db(self.flush_begin, db, || rocksdb_flushjobinfo_t::new(flush, false));
    }

    fn flush_completed(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        self.call_with_db(self.flush_completed, db, || rocksdb_flushjobinfo_t::new(flush, true));
    }

    fn compaction_begin(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        self.call_with_db(self.compaction_begin, db, || rocksdb_compactionjobinfo_t::new(compaction));
    }

    fn compaction_completed(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        self.call_with_db(self.compaction_completed, db, || rocksdb_compactionjobinfo_t::new(compaction));
    }

    fn subcompaction_begin(&self, part: &SubcompactionJobInfo) {
        self.call(self.subcompaction_begin, || rocksdb_subcompactionjobinfo_t::new(part));
    }

    fn subcompaction_completed(&self, part: &SubcompactionJobInfo) {
        self.call(self.subcompaction_completed, || rocksdb_subcompactionjobinfo_t::new(part));
    }

    fn external_file_ingested(&self, db: &Arc<Db>, file: &ExternalFileIngestionInfo) {
        self.call_with_db(self.external_file_ingested, db, || rocksdb_externalfileingestioninfo_t::new(file));
    }

    fn background_error(&self, reason: BackgroundErrorReason, status: &mut Option<Error>) {
        if let Some(callback) = self.background_error {
            // A copy: if the callback unwinds, the error is as it was.
            let mut told = rocksdb_status_ptr_t(status.clone());
            // SAFETY: as above.
            unsafe { callback(self.state, reason as u32, &raw mut told) };
            *status = told.0;
        }
    }

    fn stall_conditions_changed(&self, stall: &WriteStallInfo) {
        self.call(self.stall_conditions_changed, || rocksdb_writestallinfo_t::new(stall));
    }

    fn memtable_sealed(&self, memtable: &MemTableInfo) {
        self.call(self.memtable_sealed, || rocksdb_memtableinfo_t(memtable.clone()));
    }
}

pub struct rocksdb_eventlistener_t(Arc<CListener>);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    flush_begin: OfDb<rocksdb_flushjobinfo_t>,
    flush_completed: OfDb<rocksdb_flushjobinfo_t>,
    compaction_begin: OfDb<rocksdb_compactionjobinfo_t>,
    compaction_completed: OfDb<rocksdb_compactionjobinfo_t>,
    subcompaction_begin: Of<rocksdb_subcompactionjobinfo_t>,
    subcompaction_completed: Of<rocksdb_subcompactionjobinfo_t>,
    external_file_ingested: OfDb<rocksdb_externalfileingestioninfo_t>,
    background_error: Option<unsafe extern "C-unwind" fn(*mut c_void, u32, *mut rocksdb_status_ptr_t)>,
    stall_conditions_changed: Of<rocksdb_writestallinfo_t>,
    memtable_sealed: Of<rocksdb_memtableinfo_t>,
) -> *mut rocksdb_eventlistener_t {
    boundary!(hand_out(rocksdb_eventlistener_t(Arc::new(CListener {
        state,
        destructor,
        flush_begin,
        flush_completed,
        compaction_begin,
        compaction_completed,
        subcompaction_begin,
        subcompaction_completed,
        external_file_ingested,
        background_error,
        stall_conditions_changed,
        memtable_sealed,
    }))))
}

/// Only of one that no options were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_eventlistener_destroy(listener: *mut rocksdb_eventlistener_t) {
    boundary!(give_back(listener))
}

/// Takes the listener over; null is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_eventlistener(
    options: *mut rocksdb_options_t,
    listener: *mut rocksdb_eventlistener_t,
) {
    boundary!({
        if let Some(given) = listener.as_ref() {
            (*options).listeners.push(given.0.clone());
            give_back(listener);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_infos::rocksdb_reset_status;
    use outcrop::ErrorKind;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::ptr::null_mut;

    type BackgroundError = unsafe extern "C-unwind" fn(*mut c_void, u32, *mut rocksdb_status_ptr_t);

    unsafe extern "C-unwind" fn looks(_: *mut c_void, _: u32, _: *mut rocksdb_status_ptr_t) {}

    unsafe extern "C-unwind" fn takes_away(_: *mut c_void, _: u32, status: *mut rocksdb_status_ptr_t) {
        // SAFETY: it lives as long as the call.
        unsafe { rocksdb_reset_status(status) };
    }

    unsafe extern "C-unwind" fn unwinds(_: *mut c_void, _: u32, status: *mut rocksdb_status_ptr_t) {
        // SAFETY: as above.
        unsafe { rocksdb_reset_status(status) };
        resume_unwind(Box::new("sprung"));
    }

    /// The error that remains after a listener with that callback was told of one.
    fn left(callback: BackgroundError) -> Option<ErrorKind> {
        let listener = CListener {
            state: null_mut(),
            destructor: None,
            flush_begin: None,
            flush_completed: None,
            compaction_begin: None,
            compaction_completed: None,
            subcompaction_begin: None,
            subcompaction_completed: None,
            external_file_ingested: None,
            background_error: Some(callback),
            stall_conditions_changed: None,
            memtable_sealed: None,
        };
        let mut status = Some(Error::corruption("000012.sst"));
        // The engine catches it, too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            listener.background_error(BackgroundErrorReason::Flush, &mut status);
        }));
        status.map(|error| error.kind())
    }

    #[test]
    fn only_a_callback_that_resets_the_status_and_returns_takes_an_error_away() {
        assert_eq!(left(looks), Some(ErrorKind::Corruption));
        assert_eq!(left(unwinds), Some(ErrorKind::Corruption));
        assert_eq!(left(takes_away), None);
    }
}
