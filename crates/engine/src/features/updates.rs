//! Reads the WALs as a stream of batches: the writes since a sequence number.
//!
//! It reads the WAL files that are still there, those of the archive included. A batch is what one write group was: its records have consecutive
//! sequence numbers. Reaching the end of what is written is not the end for ever: calling
//! [`UpdatesSince::next_batch`] again later goes on.
//!
//! ```text
//! asked for 3:   (gone)  [7 8] [9]  gap  [12]      gives 7 and 9, then NotFound: a gap after the first is an error
//! ```
//! A write that failed has taken numbers, and its record may be in a WAL. It is passed over, and its numbers are no gap, until the
//! database is closed (`write/failed_writes.rs`); after that they are one.
//!
//! A batch without records has the number of the batch after it, and is given where that one is asked for from before it: in
//! the middle, or from 0 on.
//!
//! Source: RocksDB `db/transaction_log_impl.cc`.

use crate::batch::codec::{self, HEADER_LEN, WriteBatch};
use crate::context::DbContext;
use crate::version_set::VersionSet;
use crate::wal_archive;
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_monitor::{Ticker, Watch};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The batches written since a sequence number, in order.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let before = db.latest_sequence_number();
/// db.put("a", "1")?;
/// db.delete("b")?;
/// let mut updates = db.updates_since(before.plus(1))?;
/// while let Some((seq, batch)) = updates.next_batch()? {
///     println!("from {seq} on: {} writes", batch.count());
/// }
/// // Later, more may come.
/// assert!(updates.next_batch()?.is_none());
/// # outcrop::Result::Ok(())
/// ```
pub struct UpdatesSince {
    versions: Arc<VersionSet>,
    /// The first batch given is the first that ends here or later.
    since: SeqNum,
    /// The last number of the batch given last.
    last: SeqNum,
    /// The WAL being read, and how many of its records were given or passed over.
    place: Option<(FileNumber, u64)>,
    reader: Option<LogReader>,
    /// A batch was given: from then on none may be missing.
    started: bool,
    /// Why there is no more.
    failed: Option<Error>,
}

/// See [`crate::Db::updates_since`].
pub fn updates_since(versions: &Arc<VersionSet>, since: SeqNum) -> Result<UpdatesSince> {
    Watch::from(&versions.ctx.monitor.begin()).count(Ticker::GetUpdatesSinceCalls, 1);
    if since > versions.visible_seq() {
        return Err(Error::new(ErrorKind::NotFound, "Requested sequence not yet written in the db"));
    }
    // Before it looks which WALs there are.
    versions.wal_readers.fetch_add(1, Ordering::Relaxed);
    let mut updates = UpdatesSince {
        versions: versions.clone(),
        since,
        last: SeqNum::ZERO,
        place: None,
        reader: None,
        started: false,
        failed: None,
    };
    updates.place = updates.wal_with(since)?.map(|wal| (wal, 0));
    Ok(updates)
}

/// The result of looking at one record.
enum Taken {
    Given(SeqNum, WriteBatch),
    /// It was not asked for.
    Passed,
    /// Nobody may see it yet.
    Unpublished,
}

impl Drop for UpdatesSince {
    fn drop(&mut self) {
        self.versions.wal_readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UpdatesSince {
    /// The next batch and the sequence number of its first record; `None` at the end of what is written now. The first is
    /// the oldest there is that ends at or after the number asked for: batches that are gone before it are no error.
    ///
    /// # Errors
    /// NotFound if numbers after a batch that was given are in no WAL, TryAgain if these are the last that were written
    /// (past the WAL); Corruption naming file and offset; NotSupported at the record of a transaction that was prepared, which is no
    /// batch. Each ends it: the next call says the same.
    pub fn next_batch(&mut self) -> Result<Option<(SeqNum, WriteBatch)>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let found = self.find_batch();
        self.failed = found.as_ref().err().cloned();
        found
    }

    fn find_batch(&mut self) -> Result<Option<(SeqNum, WriteBatch)>> {
        // Before it reads: batches written meanwhile may be missed.
        let written = self.versions.visible_seq();
        // A reader from before may have met an end that is none any more.
        let mut is_fresh = self.reader.is_none();
        loop {
            if self.last >= written {
                return Ok(None);
            }
            let Some((wal, passed)) = self.place else {
                // Nothing was written when this was made, or the WAL was not there yet.
                match self.wal_with(self.since)? {
                    Some(wal) => self.place = Some((wal, 0)),
                    None => return self.end(written),
                }
                continue;
            };
            let read = match self.read(wal, passed) {
                // It was not needed any more. Batches of it that were not given make a gap before the next batch,
                // which the check there finds.
                Err(error) if error.is_missing_file() => None,
                read => read?,
            };
            if let Some(batch) = read {
                match self.take(batch)? {
                    Taken::Given(seq, batch) => return Ok(Some((seq, batch))),
                    Taken::Unpublished => return Ok(None),
                    Taken::Passed => continue,
                }
            }
            // The end of this WAL as it is now.
            self.reader = None;
            if !std::mem::replace(&mut is_fresh, true) {
                continue;
            }
            match self.following(wal)? {
                Some(next) => self.place = Some((next, 0)),
                None => return self.end(written),
            }
        }
    }

    /// Nothing more is in the WALs, after all up to `written` was published.
    fn end(&self, written: SeqNum) -> Result<Option<(SeqNum, WriteBatch)>> {
        if self.started && self.last < written {
            let message = "Create a new iterator to fetch the new tail.";
            return Err(Error::new(ErrorKind::TryAgain, message));
        }
        Ok(None)
    }

    /// Passes over a batch that was asked not to be given; checks that none is missing before one that is.
    fn take(&mut self, bytes: Vec<u8>) -> Result<Taken> {
        let first = codec::sequence_of(&bytes);
        let last = SeqNum((first.0 + u64::from(codec::count_of(&bytes))).saturating_sub(1));
        if !self.started && last < self.since {
            self.last = last;
            return Ok(Taken::Passed);
        }
        // A batch that is not acknowledged yet may still fail.
        if last > self.versions.visible_seq() {
            self.place = self.place.map(|(wal, passed)| (wal, passed - 1));
            self.reader = None;
            return Ok(Taken::Unpublished);
        }
        let failed = &self.versions.ctx.failed_writes;
        if failed.has(first, last) {
            return Ok(Taken::Passed);
        }
        if self.started && first != failed.after(self.last.plus(1)) {
            return Err(Error::new(ErrorKind::NotFound, "Gap in sequence numbers"));
        }
        let batch = WriteBatch::from_bytes(&bytes)?;
        (self.last, self.started) = (last, true);
        Ok(Taken::Given(first, batch))
    }

    /// Record number `passed` of the WAL; `None` at its present end.
    fn read(&mut self, wal: FileNumber, passed: u64) -> Result<Option<Vec<u8>>> {
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

    fn open(&self, wal: FileNumber) -> Result<LogReader> {
        open_wal(&self.versions.ctx, wal)
    }

    /// Numbers of the WALs there are, ascending.
    fn wals(&self) -> Result<Vec<FileNumber>> {
        // First those in use: one that is archived meanwhile is found in the archive.
        let live: Vec<FileNumber> =
            self.versions.state.lock().live_wals.iter().map(|wal| wal.number).collect();
        let mut wals = wal_archive::numbers(&self.versions.ctx, &live)?;
        wals.extend(live);
        wals.sort_unstable();
        wals.dedup();
        Ok(wals)
    }

    fn following(&self, wal: FileNumber) -> Result<Option<FileNumber>> {
        Ok(self.wals()?.into_iter().find(|number| *number > wal))
    }

    /// The last WAL that begins at or before `seq`; the first one if all begin later.
    fn wal_with(&self, seq: SeqNum) -> Result<Option<FileNumber>> {
        let mut found = None;
        for wal in self.wals()?.into_iter().rev() {
            let mut reader = match self.open(wal) {
                // It was not needed any more, and nothing of it was asked for yet.
                Err(error) if error.is_missing_file() => continue,
                opened => opened?,
            };
            if let ReadOutcome::Record(bytes, _) = reader.next()?
                && bytes.len() >= HEADER_LEN
            {
                found = Some(wal);
                if codec::sequence_of(bytes) <= seq {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// Reads WAL `number`, wherever it is.
///
/// # Errors
/// IoError of a missing file if it is in neither directory.
pub fn open_wal(ctx: &DbContext, number: FileNumber) -> Result<LogReader> {
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let open = |dir: &Path| ctx.env.fs.open_read(&file_name::wal(dir, number), read);
    let file = match open(&ctx.wal_dir) {
        Err(error) if error.is_missing_file() => open(&wal_archive::dir(&ctx.wal_dir))?,
        opened => opened?,
    };
    // A record that is being written looks like one cut short: it is read the next time.
    Ok(LogReader::new(file, number.0, WalRecoveryMode::TolerateCorruptedTailRecords))
}
