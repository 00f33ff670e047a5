//! LOG: times, rolling, and what it does without.

use super::*;
use crate::testing::parts::Lines;
use outcrop_env::clock::ManualClock;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;

#[test]
fn timestamps_are_calendar_dates() {
    assert_eq!(timestamp(0), "1970/01/01-00:00:00.000000");
    assert_eq!(timestamp(951_782_400_000_001), "2000/02/29-00:00:00.000001");
    assert_eq!(timestamp(1_795_235_645_123_456), "2026/11/21-04:34:05.123456");
}

/// A LOG of which two files are kept, each of at most 100 bytes and a line, and the file system that can be made to fail.
struct Logged {
    log: InfoLog,
    fs: Arc<FaultyFs>,
    clock: Arc<ManualClock>,
}

impl Logged {
    fn new() -> Logged {
        let fs = Arc::new(FaultyFs::new(MemoryFs::new()));
        let clock = Arc::new(ManualClock::at(1_000_000));
        let env = Env { clock: clock.clone(), ..Env::with_file_system(fs.clone()) };
        let mut options = DbOptions { keep_log_file_num: 2, ..DbOptions::default() };
        let rows = outcrop_options::kept::DB_KEPT;
        assert!(options.kept.set(rows, "max_log_file_size", "100").unwrap());
        let log = InfoLog::create(&env, Path::new("/db"), &options, None).unwrap();
        Logged { log, fs, clock }
    }

    /// Writes so many lines that fill a file each.
    fn write(&self, count: usize) {
        for _ in 0..count {
            self.clock.advance(std::time::Duration::from_secs(1));
            self.log.line(format_args!("{}", "x".repeat(100)));
        }
    }

    fn files(&self) -> Vec<String> {
        let mut names = self.fs.list(Path::new("/db")).unwrap();
        names.sort();
        names
    }

    fn text(&self) -> String {
        let bytes = self.fs.read_all(Path::new("/db/LOG")).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

#[test]
fn old_files_go_and_one_that_cannot_be_removed_ends_nothing() {
    let logged = Logged::new();
    logged.write(4);
    assert_eq!(logged.files(), ["LOG", "LOG.old.5000000"]);
    logged.fs.faults().only(Some("LOG.old.5000000"));
    logged.fs.faults().fail_at(logged.fs.faults().changes(), EIO, true);
    logged.write(3);
    assert_eq!(logged.files(), ["LOG", "LOG.old.5000000", "LOG.old.8000000"]);
    let text = logged.text();
    assert!(text.contains("[WARN] could not remove an old file of LOG: "), "{text}");
    logged.fs.faults().heal();
    logged.write(1);
    assert_eq!(logged.files(), ["LOG", "LOG.old.9000000"]);
}

#[test]
fn a_file_that_cannot_be_begun_is_tried_again() {
    let logged = Logged::new();
    logged.write(1);
    logged.fs.faults().fail_at(logged.fs.faults().changes(), EIO, false);
    // Written on, as it cannot be given another name.
    logged.write(1);
    assert_eq!(logged.files(), ["LOG"]);
    assert_eq!(logged.text().lines().count(), 2);
    logged.write(1);
    assert_eq!(logged.files(), ["LOG", "LOG.old.4000000"]);
    assert_eq!(logged.text().lines().count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_followed_by_another() {
    let logged = Logged::new();
    logged.write(1);
    logged.fs.faults().limit_space(0);
    logged.write(5);
    assert_eq!(logged.files(), ["LOG", "LOG.old.3000000"], "those without a line are written over");
    let old = logged.fs.read_all(Path::new("/db/LOG.old.3000000")).unwrap();
    assert!(old.len() > 100, "what was written stays");
    logged.fs.faults().heal();
    logged.log.line(format_args!("too soon"));
    logged.clock.advance(std::time::Duration::from_secs(1));
    logged.log.line(format_args!("again"));
    let text = logged.text();
    assert!(text.contains("[WARN] lines are missing, as LOG could not be written: "), "{text}");
    assert!(text.contains("again") && !text.contains("too soon"), "{text}");
    logged.log.line(format_args!("and again"));
    assert!(logged.text().contains("and again"));
}

/// Panics at each line that says so.
struct Panicking(Lines);

impl Logger for Panicking {
    fn log(&self, level: LogLevel, text: &str) {
        assert!(!text.contains("panic"), "as told");
        self.0.log(level, text);
    }
}

#[test]
fn a_logger_that_panics_loses_the_line_and_fails_nobody() {
    let logger = Arc::new(Panicking(Lines::default()));
    let object: Arc<dyn Logger> = logger.clone();
    let log =
        InfoLog::create(&Env::memory(), Path::new("/db"), &DbOptions::default(), Some(&object)).unwrap();
    log.headers(&["one".into(), "panic".into(), "two".into()]);
    log.line(format_args!("panic"));
    log.line(format_args!("three"));
    assert_eq!(*logger.0.0.lock(), ["one", "two", "three"]);
}
