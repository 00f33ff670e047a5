//! The effect on the database of an error that no caller can answer for: how severe it is, and how the database
//! recovers from it. Pure.
//!
//! | error | in a compaction | elsewhere (flush, WAL, MANIFEST, memtable) |
//! |---|---|---|
//! | the space that is allowed is used | hard, as no space elsewhere | hard |
//! | no space, IO error | soft: tried again later, writes go on | hard: writes stop, the database resumes by itself |
//! | a file is missing, anything else | fatal: writes stop until [`crate::Db::resume`] | fatal |
//! | corruption | unrecoverable: writes stop until it is opened again | unrecoverable |
//!
//! Without `paranoid_checks` every error of a compaction is soft.
//!
//! A failed append or sync is final for its file, whose tail is unknown: resuming writes everything in memory to tables and
//! goes on with a new WAL and MANIFEST. So any IO error may pass, and none of a caller's writes depends on the file that failed.
//! RocksDB calls an IO error of a POSIX file system fatal if it is not about space, and resumes by itself from those that other
//! file systems call retryable.
//!
//! Source: RocksDB `db/error_handler.cc`, the maps at its top and `SetBGError`.

use crate::events::reasons::BackgroundErrorReason;
use outcrop_base::{Error, ErrorKind};
use std::time::Duration;

/// Where an error was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Writing memtables to tables.
    Flush,
    /// A compaction, all but its edit of the MANIFEST.
    Compaction,
    /// The WAL, the MANIFEST, a memtable.
    Write,
}

/// How much an error stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Compactions, for a while.
    Soft,
    /// Writes and background work, until the database resumes by itself or is resumed.
    Hard,
    /// As `Hard`, until it is resumed.
    Fatal,
    /// As `Hard`, until it is opened again.
    Unrecoverable,
}

impl From<Reason> for BackgroundErrorReason {
    fn from(reason: Reason) -> BackgroundErrorReason {
        match reason {
            Reason::Flush => BackgroundErrorReason::Flush,
            Reason::Compaction => BackgroundErrorReason::Compaction,
            Reason::Write => BackgroundErrorReason::MemTable,
        }
    }
}

/// An error that stops writes, and what is left to tell of it.
pub struct StoppedWrites {
    /// Where it was met.
    pub reason: BackgroundErrorReason,
    /// The error.
    pub error: Error,
    /// Listeners were not told of it.
    pub is_new: bool,
    /// LOG was not.
    pub latched: Option<Severity>,
}

/// How bad `error` is. Without `paranoid` nothing that a compaction meets stops writes.
pub fn severity(reason: Reason, error: &Error, paranoid: bool) -> Severity {
    let passes = matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::IoError) && !error.is_missing_file();
    match (reason, error.kind()) {
        (Reason::Compaction, _) if passes || !paranoid => Severity::Soft,
        (_, ErrorKind::SpaceLimit) => Severity::Hard,
        (_, ErrorKind::Corruption) => Severity::Unrecoverable,
        _ if passes => Severity::Hard,
        _ => Severity::Fatal,
    }
}

/// True if the error passes once there is space.
fn is_about_space(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::SpaceLimit | ErrorKind::CompactionTooLarge)
}

/// How long until a failed compaction is tried again. Source: RocksDB `BackgroundCallCompaction`.
pub const COMPACTION_PAUSE: Duration = Duration::from_secs(1);

/// How often a full device is looked at. Source: RocksDB `file/sst_file_manager_impl.cc`, `ClearError`.
pub const SPACE_POLL: Duration = Duration::from_secs(5);

/// A database about to resume by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoResume {
    /// When, by the monotonic clock.
    pub due_nanos: u64,
    /// Attempts that are left, this one included.
    pub attempts: u32,
    /// It waits for space: looked at before, and no attempt is spent if there is too little.
    pub for_space: bool,
    /// It is being tried.
    pub running: bool,
    /// Where the error was met.
    pub reason: BackgroundErrorReason,
    /// Listeners know that it is tried.
    pub told: bool,
}

impl AutoResume {
    /// For an error that was met at `now`: the first attempt is at once. `None` if `max_attempts` are none.
    pub fn first(
        reason: BackgroundErrorReason,
        error: &Error,
        now: u64,
        max_attempts: i32,
    ) -> Option<AutoResume> {
        let attempts = u32::try_from(max_attempts).ok().filter(|attempts| *attempts > 0)?;
        let for_space = is_about_space(error);
        Some(AutoResume { due_nanos: now, attempts, for_space, running: false, reason, told: false })
    }

    /// After an attempt that ended with `error` at `now`. `None` if it was the last.
    pub fn next(self, error: &Error, now: u64, interval_micros: u64) -> Option<AutoResume> {
        let for_space = is_about_space(error);
        // As long as space is short, it is no failure of resuming. RocksDB polls without end, too.
        let attempts = if for_space { self.attempts } else { self.attempts - 1 };
        let wait = match for_space {
            true => SPACE_POLL.as_nanos() as u64,
            false => interval_micros.saturating_mul(1000),
        };
        (attempts > 0).then(|| AutoResume {
            due_nanos: now.saturating_add(wait),
            attempts,
            for_space,
            running: false,
            ..self
        })
    }

    /// Without an attempt, as space is short at `now`.
    pub fn later(self, now: u64) -> AutoResume {
        AutoResume { due_nanos: now + SPACE_POLL.as_nanos() as u64, running: false, ..self }
    }
}

/// Automatic compactions rest after one has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionPause {
    /// Until when, by the monotonic clock.
    pub until_nanos: u64,
    /// Bytes that must be free by then, or it goes on; 0: none.
    pub needed_bytes: u64,
    /// Those that somebody asked for rest as well: picking one fails.
    pub of_picking: bool,
}

impl CompactionPause {
    /// After `error`, which a compaction of `input_bytes` met at `now`.
    pub fn after(error: &Error, input_bytes: u64, now: u64) -> CompactionPause {
        let full = is_about_space(error);
        let wait = if full { SPACE_POLL } else { COMPACTION_PAUSE };
        CompactionPause {
            until_nanos: now + wait.as_nanos() as u64,
            needed_bytes: if error.kind() == ErrorKind::NoSpace { input_bytes } else { 0 },
            of_picking: false,
        }
    }

    /// After picking one failed at `now`.
    pub fn after_picking(now: u64) -> CompactionPause {
        let until_nanos = now + COMPACTION_PAUSE.as_nanos() as u64;
        CompactionPause { until_nanos, needed_bytes: 0, of_picking: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(errno: i32) -> Error {
        Error::io("test", std::io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn severity_by_reason_and_error() {
        let (eio, enospc, emfile, enoent) = (io(5), io(28), io(24), io(2));
        let corruption = Error::corruption("test");
        let panic = Error::new(ErrorKind::Aborted, "test");
        for error in [&eio, &enospc, &emfile] {
            assert_eq!(severity(Reason::Compaction, error, true), Severity::Soft);
            assert_eq!(severity(Reason::Flush, error, true), Severity::Hard);
            assert_eq!(severity(Reason::Write, error, true), Severity::Hard);
        }
        for reason in [Reason::Compaction, Reason::Flush, Reason::Write] {
            assert_eq!(severity(reason, &corruption, true), Severity::Unrecoverable);
            assert_eq!(severity(reason, &panic, true), Severity::Fatal);
            assert_eq!(severity(reason, &enoent, true), Severity::Fatal);
        }
        assert_eq!(severity(Reason::Compaction, &corruption, false), Severity::Soft);
        assert_eq!(severity(Reason::Flush, &corruption, false), Severity::Unrecoverable);
    }

    #[test]
    fn attempts_are_counted_but_not_while_space_is_short() {
        assert_eq!(AutoResume::first(BackgroundErrorReason::Flush, &io(5), 7, 0), None);
        let first = AutoResume::first(BackgroundErrorReason::Flush, &io(5), 7, 2).unwrap();
        let first = AutoResume { told: true, ..first };
        assert_eq!((first.due_nanos, first.attempts, first.for_space), (7, 2, false));
        let second = first.next(&io(28), 10, 3).unwrap();
        assert_eq!((second.due_nanos, second.attempts, second.for_space), (5_000_000_010, 2, true));
        let third = second.next(&io(5), 20, 3).unwrap();
        assert_eq!((third.due_nanos, third.attempts, third.for_space), (3020, 1, false));
        assert_eq!((third.reason, third.told), (BackgroundErrorReason::Flush, true), "once for all attempts");
        assert_eq!(third.next(&io(5), 30, 3), None);
    }
}
