//! `rocksdb_get_updates_since` and `rocksdb_wal_iter_*`: the batches in the WALs, for replication.

use crate::batch::rocksdb_writebatch_t;
use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, hand_out, report};
use crate::settings::Flag;
use outcrop::{Error, SeqNum, UpdatesSince, WriteBatch};

kept_object! {
    rocksdb_wal_readoptions_t, WAL_READOPTIONS_OBJECT:
    rocksdb_wal_readoptions_create, rocksdb_wal_readoptions_destroy,
    "records of the WAL are always verified"
}

kept_settings! { rocksdb_wal_readoptions_t, WAL_READOPTIONS_NOTES:
    Accepted "records of the WAL are always verified" {
        "verify_checksums" Flag = Flag(1);
            set rocksdb_wal_readoptions_set_verify_checksums get rocksdb_wal_readoptions_get_verify_checksums -> Flag;
    }
}

pub struct rocksdb_wal_iterator_t {
    updates: UpdatesSince,
    current: Option<(SeqNum, WriteBatch)>,
    status: Option<Error>,
}

impl rocksdb_wal_iterator_t {
    fn advance(&mut self) {
        (self.current, self.status) = match self.updates.next_batch() {
            Ok(current) => (current, None),
            Err(error) => (None, Some(error)),
        };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_updates_since(
    db: *mut rocksdb_t,
    seq_number: u64,
    _options: *const rocksdb_wal_readoptions_t,
    errptr: Errptr,
) -> *mut rocksdb_wal_iterator_t {
    boundary!(errptr, {
        let updates = report(errptr, (*db).0.updates_since(SeqNum(seq_number)));
        updates.map_or(std::ptr::null_mut(), |updates| {
            let mut iter = rocksdb_wal_iterator_t { updates, current: None, status: None };
            iter.advance();
            hand_out(iter)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_next(iter: *mut rocksdb_wal_iterator_t) {
    boundary!((*iter).advance())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_valid(iter: *const rocksdb_wal_iterator_t) -> Flag {
    boundary!(Flag::from((*iter).current.is_some()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_status(iter: *const rocksdb_wal_iterator_t, errptr: Errptr) {
    boundary!(errptr, {
        report(errptr, (*iter).status.clone().map_or(Ok(()), Err));
    })
}

/// A copy of the batch the iterator is at, and the sequence number of its first record; null if it is not valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_get_batch(
    iter: *const rocksdb_wal_iterator_t,
    seq: *mut u64,
) -> *mut rocksdb_writebatch_t {
    boundary!({
        let Some((first, batch)) = &(*iter).current else { return std::ptr::null_mut() };
        if let Some(seq) = seq.as_mut() {
            *seq = first.0;
        }
        hand_out(rocksdb_writebatch_t::of(batch.clone()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_wal_iter_destroy(iter: *const rocksdb_wal_iterator_t) {
    boundary!(give_back(iter.cast_mut()))
}
