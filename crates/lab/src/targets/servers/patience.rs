//! How long the lab waits for a server: as long as it makes progress, whatever the clock says.
//!
//! ```text
//! look, look, look ...   each compares processor time, log and data with the last look
//!     something changed -> wait on          nothing for STANDSTILL, or FAR since the beginning -> give up, with the reason
//! ```
//! A busy machine or a slow disk makes a server late, and that is no failure: it still works, or still writes. Only a server that
//! stands still is given up: threads that wake up now and then, and do nothing, are no work. `FAR` ends what works for ever.

use super::tree;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Time without any sign of life after which a server is given up.
const STANDSTILL: Duration = Duration::from_secs(300);
/// Time after which a server is given up even if it still works.
const FAR: Duration = Duration::from_secs(3600);
/// Between two looks: one goes over all processes and all files of a server.
const LOOK: Duration = Duration::from_secs(1);

/// Seconds of processor time that are work: threads of a server that hangs take less than that in [`STANDSTILL`], and one that
/// shares a busy machine takes more.
const WORK: f64 = 3.0;

/// The signs by which a server shows progress.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Signs {
    /// Processor time of its processes, in seconds.
    processor: f64,
    files: Files,
}

/// The state of its log and its files from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Files {
    bytes: u64,
    /// When the last of them was written to: some are written without growing.
    written: SystemTime,
}

impl Signs {
    fn of(guard: u32, dir: &Path) -> Signs {
        let used = tree::usage(guard);
        Signs { processor: used.user_seconds + used.system_seconds, files: Files::of(dir) }
    }
}

impl Files {
    /// All files in `dir`; those that are removed meanwhile count nothing.
    fn of(dir: &Path) -> Files {
        let mut all = Files { bytes: 0, written: SystemTime::UNIX_EPOCH };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let one = if metadata.is_dir() {
                Files::of(&entry.path())
            } else {
                Files { bytes: metadata.len(), written: metadata.modified().unwrap_or(all.written) }
            };
            all = Files { bytes: all.bytes + one.bytes, written: all.written.max(one.written) };
        }
        all
    }
}

/// Waits for one server, and looks at it once a second.
pub(super) struct Patience {
    guard: u32,
    /// Directory of its log and of its files.
    dir: PathBuf,
    begun: Instant,
    looked: Option<Instant>,
    record: Record,
}

/// The last signs that were progress, and when they were seen, from the beginning on.
#[derive(Default)]
struct Record {
    last: Option<(Signs, Duration)>,
}

impl Record {
    /// Notes what was seen at `at`.
    ///
    /// # Errors
    /// A sentence that says why the wait is over.
    fn note(&mut self, at: Duration, signs: Signs) -> Result<(), String> {
        let got_on =
            |last: Signs| signs.files != last.files || (signs.processor - last.processor).abs() >= WORK;
        let since = match self.last {
            Some((last, since)) if !got_on(last) => since,
            _ => self.last.insert((signs, at)).1,
        };
        if at.saturating_sub(since) >= STANDSTILL {
            return Err(format!("it has stood still for {} s", STANDSTILL.as_secs()));
        }
        if at >= FAR {
            return Err(format!("it still works after {} s", FAR.as_secs()));
        }
        Ok(())
    }
}

impl Patience {
    /// Begins to wait for the server below `guard`, whose log and files are in `dir`.
    pub fn new(guard: u32, dir: &Path) -> Patience {
        Patience {
            guard,
            dir: dir.to_path_buf(),
            begun: Instant::now(),
            looked: None,
            record: Record::default(),
        }
    }

    /// Looks at the server, unless the last look is less than a second ago; true if it looked.
    ///
    /// # Errors
    /// A sentence that says why the wait is over: the server stands still, or works for ever.
    pub fn look(&mut self) -> Result<bool, String> {
        if self.looked.is_some_and(|last| last.elapsed() < LOOK) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        self.record.note(self.begun.elapsed(), Signs::of(self.guard, &self.dir)).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_slow_server_is_waited_for_and_one_that_stands_still_is_not() {
        let signs = |processor: f64, bytes: u64| Signs {
            processor,
            files: Files { bytes, written: SystemTime::UNIX_EPOCH },
        };
        let mut record = Record::default();
        // Ten minutes, with one hundredth of a processor.
        (0..20).for_each(|half| record.note(seconds(30 * half), signs(half as f64, 5)).unwrap());
        // Nothing but its files grows.
        record.note(seconds(800), signs(19.0, 6)).unwrap();
        // Threads that wake up and do nothing.
        record.note(seconds(1099), signs(21.9, 6)).unwrap();
        let why = record.note(seconds(1100), signs(21.9, 6)).unwrap_err();
        assert!(why.contains("stood still for 300 s"), "{why}");
        let why = Record::default().note(FAR, signs(1.0, 1)).unwrap_err();
        assert!(why.contains("still works after 3600 s"), "{why}");
    }

    #[test]
    fn whatever_a_server_writes_is_a_sign_of_life() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(Signs::of(u32::MAX, temp.path()).processor, 0.0, "a guard without processes");
        std::fs::create_dir(temp.path().join("data")).unwrap();
        std::fs::write(temp.path().join("server.log"), "starting\n").unwrap();
        let log = Files::of(temp.path());
        let file = temp.path().join("data/ib_logfile0");
        std::fs::write(&file, "12").unwrap();
        let grown = Files::of(temp.path());
        assert_eq!((log.bytes, grown.bytes), (9, 11));
        // Written without growing.
        let later = grown.written + seconds(1);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(Files::of(temp.path()), Files { bytes: 11, written: later });
    }
}
