//! Reading the WALs as a stream of batches: what was written since a sequence number.
//!
//! It reads the WAL files that are still there. A batch is what one write group was: its records have consecutive
//! sequence numbers. Reaching the end of what is written is not the end for ever: calling
//! [`UpdatesSince::next_batch`] again later goes on.
//! Source: RocksDB `db/transaction_log_impl.cc`.

use crate::db::DbInner;
use crate::write::WriteBatch;
use crate::write::batch::{self, HEADER_LEN};
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The batches written since a sequence number, in order.
pub struct UpdatesSince {
    db: Arc<DbInner>,
    /// The sequence number the next batch should begin with, or contain.
    next: SeqNum,
    /// The WAL being read, and how many of its records were given or passed over.
    place: Option<(u64, u64)>,
    reader: Option<LogReader>,
}

impl DbInner {
    /// See [`crate::Db::updates_since`].
    pub(crate) fn updates_since(self: &Arc<Self>, since: SeqNum) -> Result<UpdatesSince> {
        if since > self.visible_seq() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("sequence number {since} is not yet written; the last is {}", self.visible_seq()),
            ));
        }
        // Before it looks which WALs there are.
        self.wal_readers.fetch_add(1, Ordering::Relaxed);
        // The first write has number 1: 0 asks for everything.
        let since = since.max(SeqNum(1));
        let mut updates = UpdatesSince { db: self.clone(), next: since, place: None, reader: None };
        updates.place = updates.wal_with(since)?.map(|wal| (wal, 0));
        Ok(updates)
    }
}

impl Drop for UpdatesSince {
    fn drop(&mut self) {
        self.db.wal_readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UpdatesSince {
    /// The next batch and the sequence number of its first record; `None` at the end of what is written now.
    ///
    /// # Errors
    /// Incomplete if the WAL with the next batch is gone; Corruption naming file and offset.
    pub fn next_batch(&mut self) -> Result<Option<(SeqNum, WriteBatch)>> {
        loop {
            let Some((wal, passed)) = self.place else {
                // Nothing was written when this was made, or the WAL was not there yet.
                match self.wal_with(self.next)? {
                    Some(wal) => self.place = Some((wal, 0)),
                    None => return Ok(None),
                }
                continue;
            };
            if let Some(batch) = self.read(wal, passed)? {
                if let Some(given) = self.take(batch)? {
                    return Ok(Some(given));
                }
                continue;
            }
            // The end of this WAL as it is now.
            self.reader = None;
            match self.following(wal)? {
                Some(next) => self.place = Some((next, 0)),
                None => return Ok(None),
            }
        }
    }

    /// Passes over a batch that was asked not to be given; checks that none is missing before one that is.
    fn take(&mut self, bytes: Vec<u8>) -> Result<Option<(SeqNum, WriteBatch)>> {
        let first = batch::sequence_of(&bytes);
        let after = first.plus(u64::from(batch::count_of(&bytes)));
        if after <= self.next {
            return Ok(None);
        }
        // What is not acknowledged yet may still fail.
        if after.0 > self.db.visible_seq().0 + 1 {
            self.place = self.place.map(|(wal, passed)| (wal, passed - 1));
            self.reader = None;
            return Ok(None);
        }
        if first > self.next {
            return Err(Error::new(
                ErrorKind::Incomplete,
                format!("sequence numbers {} to {} are in no WAL any more", self.next, first.0 - 1),
            ));
        }
        self.next = after;
        Ok(Some((first, WriteBatch::from_bytes(&bytes)?)))
    }

    /// Record number `passed` of the WAL; `None` at its present end.
    fn read(&mut self, wal: u64, passed: u64) -> Result<Option<Vec<u8>>> {
        let mut skip = 0;
        if self.reader.is_none() {
            self.reader = Some(self.open(wal)?);
            skip = passed;
        }
        let reader = self.reader.as_mut().expect("opened above");
        loop {
            match reader.next()? {
                ReadOutcome::Record(..) if skip > 0 => skip -= 1,
                ReadOutcome::Record(bytes, _) if bytes.len() < HEADER_LEN => {
                    return Err(Error::corruption(format!("WAL {wal:06}: a record is no write batch")));
                }
                ReadOutcome::Record(bytes, _) => {
                    let bytes = bytes.to_vec();
                    self.place = Some((wal, passed + 1));
                    return Ok(Some(bytes));
                }
                ReadOutcome::End => return Ok(None),
                ReadOutcome::Damaged(damage) => return Err(damage.error),
            }
        }
    }

    fn open(&self, wal: u64) -> Result<LogReader> {
        let path = file_name::wal(&self.db.ctx.wal_dir, FileNumber(wal));
        let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let file =
            self.db.ctx.env.fs.open_read(&path, read).map_err(|error| match error.is_missing_file() {
                true => {
                    Error::new(ErrorKind::Incomplete, format!("{} was removed meanwhile", path.display()))
                }
                false => error,
            })?;
        // A record that is being written looks like one cut short: it is read the next time.
        Ok(LogReader::new(file, wal, WalRecoveryMode::TolerateCorruptedTailRecords))
    }

    /// Numbers of the WALs there are, ascending.
    fn wals(&self) -> Vec<u64> {
        self.db.state.lock().live_wals.iter().map(|wal| wal.number).collect()
    }

    fn following(&self, wal: u64) -> Result<Option<u64>> {
        Ok(self.wals().into_iter().find(|number| *number > wal))
    }

    /// The last WAL that begins at or before `seq`; the first one if all begin later.
    fn wal_with(&self, seq: SeqNum) -> Result<Option<u64>> {
        let mut found = None;
        for wal in self.wals() {
            let mut reader = self.open(wal)?;
            if let ReadOutcome::Record(bytes, _) = reader.next()?
                && bytes.len() >= HEADER_LEN
                && (batch::sequence_of(bytes) <= seq || found.is_none())
            {
                found = Some(wal);
            }
        }
        Ok(found)
    }
}
