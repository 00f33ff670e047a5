//! The WAL being written, and those closed but not yet needed to be durable.
//!
//! Invariant: when an append returns, the group's record is the operating system's: by a store into the page cache where
//! the file has space ahead (`env`), else by one write(2), or several for a record over 1 MiB. With `manual_wal_flush`
//! it may still be in the file's buffer. After a failed append or sync the file's tail is unknown: the
//! database refuses writes until resumed, and resuming starts a new file.

use crate::context::DbContext;
use crate::info_log::log_line;
use crate::version_set::VersionSet;
use crate::wal_archive;
use outcrop_base::{CfId, Result, SeqNum};
use outcrop_env::{DirectIo, OpenWrite, RetiredWindow, WriteFile};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_monitor::{HistogramKind, Watch};
use outcrop_options::{CompressionType, DbOptions, WalRecoveryMode};
use outcrop_record::{LogWriter, Predecessor};
use parking_lot::Mutex;

/// Largest WAL that is kept to be recycled though nobody asked for it, in bytes.
const LARGEST_KEPT: u64 = 128 << 20;

/// How many WAL files wait to be recycled, if their number was asked for. None where recovery takes what lies after the
/// end of a WAL, or after a loss of power in its middle, for damage of its own.
pub fn recycled_wals(options: &DbOptions) -> u64 {
    match options.wal_recovery_mode {
        WalRecoveryMode::PointInTimeRecovery | WalRecoveryMode::SkipAnyCorruptedRecords => {
            options.recycle_log_file_num
        }
        _ => 0,
    }
}

/// Whether a WAL of `bytes` that is not needed any more is kept to be recycled, with `kept` others. One is in any case, if
/// WALs have space ahead: its blocks are there, and the writer need not make them. It goes once nobody writes.
pub fn keeps_wal(options: &DbOptions, kept: usize, bytes: u64) -> bool {
    if wal_archive::is_on(options) {
        return false;
    }
    (kept as u64) < recycled_wals(options) || (kept == 0 && bytes <= LARGEST_KEPT && has_space_ahead(options))
}

/// Whether WALs are longer than their records while they are written.
fn has_space_ahead(options: &DbOptions) -> bool {
    // Not where damage is skipped: RocksDB 6 and 7 never come to the end of such a file in that mode, nor of a recycled
    // one of their own, and whoever asks for it here has asked for it there.
    options.allow_fallocate
        && !options.manual_wal_flush
        && options.wal_recovery_mode == WalRecoveryMode::PointInTimeRecovery
}

/// The open WAL.
pub struct Wal {
    writer: LogWriter,
    number: FileNumber,
    /// The directory entry was made durable.
    dir_synced: bool,
    /// Everything appended so far is durable.
    synced: bool,
    /// Other things may lie after its end until it is cut.
    cut_at_end: bool,
    /// Nothing was asked of the file yet but to be there: nothing of it can have failed.
    untouched: bool,
    /// An operation of the file failed: what its end is nobody knows.
    failed: bool,
    /// Where the last record begins, which was to be appended at least, and its sequence number.
    last_record: (u64, SeqNum),
    /// The next WAL is to name the last record's number (`track_and_verify_wals`).
    is_named: bool,
}

impl Wal {
    /// Creates the WAL file `number`, over the file of WAL `recycled` if there is one that can be recycled.
    pub fn create(ctx: &DbContext, number: FileNumber, recycled: Option<FileNumber>) -> Result<Wal> {
        let ahead = has_space_ahead(&ctx.options);
        let options = OpenWrite {
            io: DirectIo::Buffered,
            // A record reaches the operating system in one write when it is appended, unless the user
            // asked to buffer it here until `flush_wal`.
            buffer_size: if ctx.options.manual_wal_flush { 1 << 20 } else { 0 },
            bytes_per_sync: ctx.live.load().wal_bytes_per_sync,
            ahead: ahead.then_some(outcrop_record::FILLER),
        };
        let path = |number: FileNumber| file_name::wal(&ctx.wal_dir, number);
        let reused = recycled.and_then(|old| {
            let reused = ctx.env.fs.reuse(&path(old), &path(number), options);
            if let Err(error) = &reused {
                log_line!(ctx, "WAL {old:06} is not used again: {error}");
                // Best effort: the scan at the next open finds a file that stays.
                let _ = ctx.env.fs.remove_file(&path(old));
            }
            reused.ok()
        });
        let file = match reused {
            Some(file) => file,
            None => ctx.env.fs.create(&path(number), options)?,
        };
        let cut_at_end = ahead || recycled_wals(&ctx.options) > 0;
        let mut writer = LogWriter::new(file, number.0, cut_at_end);
        if ctx.options.wal_compression != CompressionType::None {
            writer = writer.compressed()?;
        }
        Ok(Wal {
            writer,
            number,
            dir_synced: false,
            synced: true,
            cut_at_end,
            untouched: true,
            failed: false,
            last_record: (0, SeqNum::ZERO),
            is_named: ctx.options.track_and_verify_wals,
        })
    }

    /// The WAL of a database that is only read: every append to `file` fails.
    pub fn nowhere(file: Box<dyn WriteFile>) -> Wal {
        Wal {
            writer: LogWriter::new(file, 0, false),
            number: FileNumber::NONE,
            dir_synced: true,
            synced: true,
            cut_at_end: false,
            untouched: true,
            failed: false,
            last_record: (0, SeqNum::ZERO),
            is_named: false,
        }
    }

    /// Its file number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Bytes appended.
    pub fn len(&self) -> u64 {
        self.writer.len()
    }

    /// True if nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.writer.len() == 0
    }

    /// True if nothing was appended, nor tried to be, nor anything else.
    pub fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// True if everything appended is durable.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Has the file say, before its next record, that keys of these column families end with timestamps of so many bytes.
    pub fn name_timestamps(&mut self, families: &[(CfId, u16)]) {
        self.writer.name_timestamp_sizes(families);
    }

    /// Has the file say, before its first record, which WAL was ended before it, if WALs are to say so.
    pub fn name_predecessor(&mut self, ended: &Wal) {
        if ended.is_named {
            let (number, size_bytes) = (ended.number, ended.len());
            let last_sequence = ended.last_record.1.0;
            self.writer.name_predecessor(Predecessor { number, size_bytes, last_sequence });
        }
    }

    /// Appends one group's record, whose first part begins with its sequence number; it then survives a crash of the process.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.synced = false;
        self.untouched = false;
        let first = parts.first().and_then(|part| part.first_chunk()).copied().unwrap_or_default();
        self.last_record = (self.writer.len(), SeqNum(u64::from_le_bytes(first)));
        self.writer.append_parts(parts).map(|_| ()).inspect_err(|_| self.failed = true)
    }

    /// Where the record of the batch that begins with `first` is, if it is the last that was appended, or was to be.
    pub fn record_of(&self, first: SeqNum) -> Option<u64> {
        let (offset, seq) = self.last_record;
        (seq == first).then_some(offset)
    }

    /// See [`WriteFile::retired_window`].
    pub fn retired_window(&mut self) -> Option<RetiredWindow> {
        self.writer.retired_window()
    }

    /// Hands buffered records to the operating system.
    pub fn flush(&mut self) -> Result<()> {
        self.untouched = false;
        self.writer.flush().inspect_err(|_| self.failed = true)
    }

    /// Makes everything appended durable, and the file's name with it.
    pub fn sync(&mut self, ctx: &DbContext) -> Result<()> {
        self.untouched = false;
        let watching = ctx.monitor.begin();
        let timer = Watch::from(&watching).stats_timer();
        self.writer.sync().inspect_err(|_| self.failed = true)?;
        timer.micros(HistogramKind::WalFileSyncMicros);
        if !self.dir_synced {
            ctx.env.fs.sync_dir(&ctx.wal_dir)?;
            self.dir_synced = true;
        }
        self.synced = true;
        Ok(())
    }

    /// Ends the file: everything is handed to the operating system, and the bytes after the end are cut off. It can still be
    /// synced, and if it was cut must be before a later WAL is durable.
    pub fn end(&mut self) -> Result<()> {
        self.untouched = false;
        self.synced &= !self.cut_at_end;
        self.writer.close().inspect_err(|_| self.failed = true)
    }

    /// [`Wal::end`], unless an operation of the file has failed: after that nothing is appended. Another WAL takes its place, and what fails now
    /// is a line of LOG.
    pub fn end_if_whole(&mut self, ctx: &DbContext) {
        if !self.failed
            && let Err(error) = self.end()
        {
            log_line!(ctx, "WAL {:06} is not whole: {error}", self.number.0);
        }
    }
}

/// WALs that were closed before they were synced, so that no synced record can follow a hole.
#[derive(Default)]
pub struct ClosedWals {
    waiting: Mutex<Vec<Wal>>,
    /// Held by whoever syncs them.
    syncing: Mutex<()>,
}

impl ClosedWals {
    /// Adds one.
    pub fn push(&self, wal: Wal) {
        self.waiting.lock().push(wal);
    }

    /// Lets go of those below `needed`, but for those that are being synced.
    pub fn forget_before(&self, needed: FileNumber) {
        let obsolete: Vec<Wal> = self.waiting.lock().extract_if(.., |wal| wal.number() < needed).collect();
        // After the lock: a file is closed.
        drop(obsolete);
    }

    /// Takes all away, but for those that were synced meanwhile.
    pub fn take_all(&self) -> Vec<Wal> {
        let _turn = self.syncing.lock();
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Makes those that are closed now durable, so that no synced record can follow a hole, and writes that down in the
    /// MANIFEST if it keeps track of them.
    pub fn sync_and_track(&self, versions: &VersionSet) -> Result<()> {
        let synced = self.sync(&versions.ctx)?;
        versions.track_synced_wals(&synced)
    }

    /// Makes those that are closed now durable, and gives their numbers and lengths.
    ///
    /// # Errors
    /// The error of the first that cannot be synced; all stay.
    pub fn sync(&self, ctx: &DbContext) -> Result<Vec<(FileNumber, u64)>> {
        // HOLDS syncing across the sync: another thread that has to sync them needs that to be over.
        let _turn = self.syncing.lock();
        let mut closed = std::mem::take(&mut *self.waiting.lock());
        let mut unsynced = closed.iter_mut().filter(|wal| !wal.is_synced());
        let result = unsynced.try_for_each(|wal| wal.sync(ctx));
        if let Err(error) = result {
            let mut waiting = self.waiting.lock();
            closed.append(&mut waiting);
            *waiting = closed;
            return Err(error);
        }
        Ok(closed.iter().map(|wal| (wal.number(), wal.len())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::Parts;
    use outcrop_env::faulty::EIO;

    fn wal(parts: &Parts, number: FileNumber) -> Wal {
        Wal::create(&parts.ctx, number, None).unwrap()
    }

    #[test]
    fn a_wal_knows_what_of_it_is_durable() {
        let parts = Parts::new();
        let mut wal = wal(&parts, FileNumber(50));
        assert!(wal.is_untouched() && wal.is_empty() && wal.is_synced());
        wal.append(&[b"record"]).unwrap();
        assert!(!wal.is_untouched() && !wal.is_empty() && !wal.is_synced());
        wal.sync(&parts.ctx).unwrap();
        assert!(wal.is_synced());
    }

    #[test]
    fn the_directory_is_synced_with_the_first_sync_alone() {
        let parts = Parts::new();
        let mut wal = wal(&parts, FileNumber(50));
        let syncs = |wal: &mut Wal| {
            let before = parts.faults().syncs();
            wal.append(&[b"record"]).unwrap();
            wal.sync(&parts.ctx).unwrap();
            parts.faults().syncs() - before
        };
        let first = syncs(&mut wal);
        assert_eq!(first, syncs(&mut wal) + 1);
    }

    #[test]
    fn a_failed_sync_leaves_it_unsynced() {
        let parts = Parts::new();
        let mut wal = wal(&parts, FileNumber(50));
        wal.append(&[b"record"]).unwrap();
        parts.faults().fail_at(parts.faults().changes(), EIO, true);
        wal.sync(&parts.ctx).unwrap_err();
        assert!(!wal.is_synced());
    }

    #[test]
    fn a_closed_wal_whose_sync_failed_is_never_taken_for_durable() {
        let parts = Parts::new();
        let closed = ClosedWals::default();
        for number in [50, 51] {
            let mut wal = wal(&parts, FileNumber(number));
            wal.append(&[b"record"]).unwrap();
            wal.end().unwrap();
            closed.push(wal);
        }
        parts.faults().fail_at(parts.faults().changes(), EIO, false);
        closed.sync(&parts.ctx).unwrap_err();
        parts.faults().heal();
        closed.sync(&parts.ctx).expect_err("a failed sync is final for its file");
        // Flushed: nobody needs the first any more.
        closed.forget_before(FileNumber(51));
        let synced = closed.sync(&parts.ctx).unwrap();
        assert_eq!(synced.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), [FileNumber(51)]);
        assert!(closed.sync(&parts.ctx).unwrap().is_empty(), "once");
    }

    #[test]
    fn wals_that_nobody_needs_are_forgotten() {
        let parts = Parts::new();
        let closed = ClosedWals::default();
        for number in [50, 51, 52] {
            closed.push(wal(&parts, FileNumber(number)));
        }
        closed.forget_before(FileNumber(52));
        assert_eq!(closed.sync(&parts.ctx).unwrap().len(), 1);
        closed.push(wal(&parts, FileNumber(53)));
        assert_eq!(closed.take_all().len(), 1);
        assert!(closed.sync(&parts.ctx).unwrap().is_empty());
    }

    #[test]
    fn a_wal_is_written_over_another_or_begun_anew() {
        let parts = Parts::new();
        let mut old = wal(&parts, FileNumber(50));
        old.append(&[b"record"]).unwrap();
        old.end().unwrap();
        drop(old);
        let reused = Wal::create(&parts.ctx, FileNumber(60), Some(FileNumber(50))).unwrap();
        assert_eq!((reused.number(), reused.is_empty()), (FileNumber(60), true));
        assert!(!parts.files(".log").contains(&"000050.log".to_string()));
        Wal::create(&parts.ctx, FileNumber(61), Some(FileNumber(59))).unwrap();
        assert!(parts.files(".log").contains(&"000061.log".to_string()), "there was none of that number");
    }

    #[test]
    fn which_wals_are_recycled_follows_from_the_options() {
        let of = |recycle_log_file_num, wal_recovery_mode| DbOptions {
            recycle_log_file_num,
            wal_recovery_mode,
            ..DbOptions::default()
        };
        assert_eq!(recycled_wals(&of(3, WalRecoveryMode::PointInTimeRecovery)), 3);
        assert_eq!(recycled_wals(&of(3, WalRecoveryMode::SkipAnyCorruptedRecords)), 3);
        assert_eq!(recycled_wals(&of(3, WalRecoveryMode::AbsoluteConsistency)), 0);
        assert_eq!(recycled_wals(&of(3, WalRecoveryMode::TolerateCorruptedTailRecords)), 0);
        let kept = |options: &DbOptions, kept, bytes| keeps_wal(options, kept, bytes);
        let point = of(0, WalRecoveryMode::PointInTimeRecovery);
        assert!(kept(&point, 0, 1 << 20), "one, whose blocks are there");
        assert!(!kept(&point, 1, 1 << 20) && !kept(&point, 0, LARGEST_KEPT + 1));
        assert!(!kept(&of(0, WalRecoveryMode::AbsoluteConsistency), 0, 1));
        assert!(kept(&of(2, WalRecoveryMode::PointInTimeRecovery), 1, u64::MAX));
    }
}
