//! A database's own history: the latest sequence number, and the batches in its WALs.

use crate::batch::Batch;
use crate::call::{Outcome, call, with_error};
use crate::database::Database;
use std::fmt::Write as _;
use std::ptr::null_mut;

impl Database<'_> {
    /// The number of the last write.
    pub fn latest_sequence_number(&self) -> Outcome<u64> {
        // SAFETY: a live database.
        Ok(unsafe { call!(self.api, rocksdb_get_latest_sequence_number(self.object)) })
    }

    /// Waits until no flush and no compaction runs, and their inputs are removed.
    pub fn wait_for_background_work(&self) -> Outcome<()> {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(self.api, rocksdb_wait_for_compact_options_create());
            let waited = with_error(self.api, |e| {
                call!(self.api, rocksdb_wait_for_compact(self.object, options, e));
                Ok(())
            });
            call!(self.api, rocksdb_wait_for_compact_options_destroy(options));
            waited
        }
    }

    /// Every batch since a sequence number, with its number and bytes, and what ends them.
    pub fn updates_since(&self, number: u64) -> Outcome<String> {
        let mut told = String::new();
        let end = self.each_update(number, |first, bytes| {
            let _ = writeln!(told, "{first}: {}", bytes.escape_ascii());
        })?;
        Ok(told + &end.unwrap_or_else(|| "end".into()))
    }

    /// Shows every batch since a sequence number, with its number and bytes; gives the error that ends them, if one does.
    pub fn each_update(&self, number: u64, mut seen: impl FnMut(u64, &[u8])) -> Outcome<Option<String>> {
        let api = self.api;
        // SAFETY: live objects; a batch's bytes are read before it is destroyed.
        unsafe {
            let updates = with_error(api, |e| {
                Ok(call!(api, rocksdb_get_updates_since(self.object, number, null_mut(), e)))
            })?;
            while call!(api, rocksdb_wal_iter_valid(updates)) != 0 {
                let (mut first, mut len) = (0, 0);
                let batch = call!(api, rocksdb_wal_iter_get_batch(updates, &raw mut first));
                let bytes = call!(api, rocksdb_writebatch_data(batch, &raw mut len));
                seen(first, std::slice::from_raw_parts(bytes.cast::<u8>(), len));
                call!(api, rocksdb_writebatch_destroy(batch));
                call!(api, rocksdb_wal_iter_next(updates));
            }
            let end = with_error(api, |e| {
                call!(api, rocksdb_wal_iter_status(updates, e));
                Ok(())
            });
            call!(api, rocksdb_wal_iter_destroy(updates));
            Ok(end.err())
        }
    }
}

impl Batch<'_> {
    /// Remembers the batch as it is.
    pub fn set_save_point(&mut self) -> Outcome<()> {
        // SAFETY: a live batch.
        unsafe { call!(self.api, rocksdb_writebatch_set_save_point(self.object)) };
        Ok(())
    }

    /// Back to the last save point, which is gone then.
    pub fn rollback(&mut self) -> Outcome<()> {
        // SAFETY: a live batch.
        with_error(self.api, |e| unsafe {
            call!(self.api, rocksdb_writebatch_rollback_to_save_point(self.object, e));
            Ok(())
        })
    }

    /// Forgets the last save point.
    pub fn pop_save_point(&mut self) -> Outcome<()> {
        // SAFETY: a live batch.
        with_error(self.api, |e| unsafe {
            call!(self.api, rocksdb_writebatch_pop_save_point(self.object, e));
            Ok(())
        })
    }

    /// Makes it empty.
    pub fn clear(&mut self) -> Outcome<()> {
        // SAFETY: a live batch.
        unsafe { call!(self.api, rocksdb_writebatch_clear(self.object)) };
        Ok(())
    }

    /// Copies its bytes.
    pub fn bytes(&self) -> Outcome<Vec<u8>> {
        let mut len = 0;
        // SAFETY: a live batch, whose bytes are copied.
        unsafe {
            let bytes = call!(self.api, rocksdb_writebatch_data(self.object, &raw mut len));
            Ok(std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec())
        }
    }
}
