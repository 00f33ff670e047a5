//! Which fault of the disk an error comes from.
//!
//! A failure of the disk has its number in its text, and an error of the database that comes from it hands the text on; a bit that was
//! flipped has no text, but the error names its file. So an error is excused by the fault that it comes from, and by no other: of that
//! kind, of that file, and
//! - of a read, only if the fault came after the read began;
//! - of a change, until the database has resumed: once a write was told of the fault and a later one was acknowledged, nothing that
//!   begins after that may be told of it again.
//!
//! Pure: `disk.rs` notes faults here, `life.rs` asks.

use outcrop_base::{Error, ErrorKind};
use std::path::Path;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An operation fails with EIO.
    Io,
    /// An operation fails with ENOSPC.
    NoSpace,
    /// A bit of what is read is another.
    Flip,
}

#[derive(Clone, Debug)]
struct Fault {
    kind: FaultKind,
    file: String,
    /// When a write was told of it.
    told: Option<u64>,
    /// When the database had resumed from it.
    over: Option<u64>,
}

/// When an operation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    step: u64,
    faults: usize,
}

/// What kind of operation is told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It reads.
    Reading,
    /// It writes, or waits for background work.
    Changing,
}

/// Words of a failure after the power went.
pub const NO_POWER: &str = "(no power)";

/// The faults of a cycle.
#[derive(Debug, Default)]
pub struct Faults {
    all: Vec<Fault>,
    power_went: bool,
    /// The database was told to stop after that.
    given_up: bool,
}

impl Faults {
    /// Notes a fault; gives the words that name it in its failure.
    pub fn add(&mut self, kind: FaultKind, path: &Path) -> String {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.all.push(Fault { kind, file, told: None, over: None });
        name(self.all.len() - 1)
    }

    /// From here on all changes fail.
    pub fn power_goes(&mut self) {
        self.power_went = true;
    }

    /// The database is told to stop.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Now.
    pub fn moment(&self, step: u64) -> Moment {
        Moment { step, faults: self.all.len() }
    }

    /// A write that began at `began` was acknowledged.
    pub fn acknowledged(&mut self, began: Moment, now: u64) {
        for fault in &mut self.all {
            if fault.told.is_some_and(|told| told < began.step) {
                fault.over.get_or_insert(now);
            }
        }
    }

    /// Looks for the fault that an operation, begun at `began`, is told of by `error`.
    ///
    /// # Errors
    /// There is none: why not.
    pub fn excuse(&mut self, error: &Error, how: Told, began: Moment, now: u64) -> Result<(), String> {
        let text = error.to_string();
        if self.power_went && error.kind() == ErrorKind::IoError && text.contains(NO_POWER) {
            return Ok(());
        }
        if self.given_up && error.kind() == ErrorKind::ShutdownInProgress {
            return Ok(());
        }
        let of_error = |number: &usize| {
            let fault = &self.all[*number];
            match fault.kind {
                FaultKind::Io => error.kind() == ErrorKind::IoError && text.contains(&name(*number)),
                FaultKind::NoSpace => error.kind() == ErrorKind::NoSpace && text.contains(&name(*number)),
                // In a footer the version of the format has no checksum: with another bit it is one that nobody knows yet.
                FaultKind::Flip => {
                    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported)
                        && text.contains(&fault.file)
                }
            }
        };
        let possible = |number: &usize| match how {
            Told::Reading => *number >= began.faults,
            Told::Changing => self.all[*number].over.is_none_or(|over| over >= began.step),
        };
        let of_error: Vec<usize> = (0..self.all.len()).filter(of_error).collect();
        match of_error.iter().copied().find(possible) {
            Some(number) => {
                if how == Told::Changing {
                    self.all[number].told.get_or_insert(now);
                }
                Ok(())
            }
            None if of_error.is_empty() => Err(format!("no fault of the disk causes it: {text}")),
            None => Err(format!("the fault that it names was over, or before the read: {text}")),
        }
    }
}

/// How failures name a fault.
fn name(number: usize) -> String {
    format!("(fault {number})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(errno: i32, words: &str) -> Error {
        Error::io(format!("append /db/000007.log {words}"), std::io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn an_error_is_excused_by_its_own_fault_alone() {
        let mut faults = Faults::default();
        let begin = faults.moment(0);
        let words = faults.add(FaultKind::Io, Path::new("/db/000007.log"));
        let mut excuse = |error: Error| faults.excuse(&error, Told::Changing, begin, 5);
        assert_eq!(excuse(failure(5, &words)), Ok(()));
        assert!(excuse(failure(28, &words)).is_err(), "of another kind");
        assert!(excuse(failure(5, "(fault 1)")).is_err(), "there was none such");
        assert!(excuse(failure(5, NO_POWER)).is_err(), "the power is there");
        assert!(excuse(Error::corruption("block of 000007.sst")).is_err());
        assert!(excuse(Error::new(ErrorKind::Aborted, "a panic")).is_err());
    }

    #[test]
    fn a_database_may_say_that_it_stops_only_once_it_was_told_to() {
        let mut faults = Faults::default();
        let begin = faults.moment(0);
        let stops = Error::new(ErrorKind::ShutdownInProgress, "closing");
        faults.power_goes();
        assert!(faults.excuse(&stops, Told::Changing, begin, 5).is_err());
        faults.give_up();
        assert_eq!(faults.excuse(&stops, Told::Changing, begin, 5), Ok(()));
    }

    #[test]
    fn a_flip_excuses_corruption_of_its_file() {
        let mut faults = Faults::default();
        let begin = faults.moment(0);
        faults.add(FaultKind::Flip, Path::new("/db/000012.sst"));
        let of = |file: &str| Error::corruption(format!("checksum of a block in /db/{file}"));
        assert_eq!(faults.excuse(&of("000012.sst"), Told::Reading, begin, 9), Ok(()));
        assert!(faults.excuse(&of("000013.sst"), Told::Reading, begin, 9).is_err());
        let later = faults.moment(10);
        assert!(faults.excuse(&of("000012.sst"), Told::Reading, later, 12).is_err(), "before the read");
    }

    #[test]
    fn a_fault_is_over_once_the_database_has_resumed() {
        let mut faults = Faults::default();
        let words = faults.add(FaultKind::NoSpace, Path::new("/db/000007.log"));
        let error = failure(28, &words);
        let before = faults.moment(1);
        assert_eq!(faults.excuse(&error, Told::Changing, before, 4), Ok(()));
        // It began before the other was told: it may have gone through before the fault.
        faults.acknowledged(before, 6);
        let (during, again) = (faults.moment(7), faults.moment(8));
        assert_eq!(faults.excuse(&error, Told::Changing, during, 9), Ok(()));
        faults.acknowledged(again, 10);
        assert_eq!(faults.excuse(&error, Told::Changing, during, 11), Ok(()), "it began before that");
        let later = faults.moment(12);
        assert!(faults.excuse(&error, Told::Changing, later, 13).unwrap_err().contains("was over"));
    }
}
