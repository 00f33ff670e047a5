//! The LOG file, or an object of the application's in its place: the events of the database, for people, and for scripts that read
//! RocksDB's. Each line of the file is a time, the number of the thread and a text; `RocksDB version: V` and `Git sha H` are among the
//! first (`tools/benchmark.sh`).
//!
//! Writing to it never fails an operation: a line that cannot be written is dropped.
//! Source: RocksDB `logging/auto_roll_logger.cc`, `file/filename.cc` (`InfoLogFileName`).

use crate::panic::caught;
use outcrop_base::{Error, Result};
use outcrop_env::{Clock, Env, FileSystem, OpenWrite, WriteFile, absolute};
use outcrop_options::DbOptions;
use parking_lot::Mutex;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much a line of LOG matters. The numbers are RocksDB's.
///
/// ```
/// use outcrop::LogLevel;
///
/// assert!(LogLevel::Warn > LogLevel::Info);
/// assert_eq!(LogLevel::from_number(3), Some(LogLevel::Error));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// For those who look for an error in the database.
    Debug = 0,
    /// Events of normal operation.
    #[default]
    Info = 1,
    /// Something could not be done, and the database works without it.
    Warn = 2,
    /// An error that stops writes or a job.
    Error = 3,
    /// An error that ends the process.
    Fatal = 4,
    /// A line that every file of LOG begins with.
    Header = 5,
}

impl LogLevel {
    /// The level of that number.
    pub fn from_number(number: i64) -> Option<LogLevel> {
        use LogLevel::{Debug, Error, Fatal, Header, Info, Warn};
        [Debug, Info, Warn, Error, Fatal, Header].into_iter().find(|level| *level as i64 == number)
    }

    /// The mark before a line of that level in the file.
    fn mark(self) -> &'static str {
        match self {
            LogLevel::Debug => "[DEBUG] ",
            LogLevel::Info | LogLevel::Header => "",
            LogLevel::Warn => "[WARN] ",
            LogLevel::Error => "[ERROR] ",
            LogLevel::Fatal => "[FATAL] ",
        }
    }
}

/// Takes what would be written to LOG. Called by writers and jobs, with locks held: it must not call the database, and what it does delays
/// who calls. A panic of it loses the line.
///
/// ```
/// use outcrop::{Db, DbObjects, Env, LogLevel, Logger};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Lines(Mutex<Vec<String>>);
///
/// impl Logger for Lines {
///     fn log(&self, level: LogLevel, text: &str) {
///         self.0.lock().unwrap().push(format!("{level:?} {text}"));
///     }
/// }
///
/// let lines = Arc::new(Lines::default());
/// let objects = DbObjects { logger: Some(lines.clone()), ..Default::default() };
/// let db = Db::builder("/db").env(Env::memory()).objects(objects).create_if_missing(true).open()?;
/// assert!(lines.0.lock().unwrap().iter().any(|line| line.contains("Options.create_if_missing: 1")));
/// # outcrop::Result::Ok(())
/// ```
pub trait Logger: Send + Sync {
    /// Lines below it are not handed over. `info_log_level` says nothing to such an object.
    fn level(&self) -> LogLevel {
        LogLevel::Info
    }

    /// Takes a line, without time and without an end. The header of LOG comes as [`LogLevel::Header`], whatever
    /// [`Logger::level`] says.
    fn log(&self, level: LogLevel, text: &str);
}

/// How soon another LOG is begun after one could not be written. Microseconds.
const BEGIN_AGAIN: u64 = 1_000_000;

/// Where lines go.
pub struct InfoLog {
    sink: Sink,
    level: LogLevel,
    clock: Arc<dyn Clock>,
}

enum Sink {
    None,
    Object(Arc<dyn Logger>),
    File(LogFile),
}

/// The file, and its lock.
struct LogFile {
    file: Mutex<Rolling>,
}

/// The open LOG file, and when another begins.
struct Rolling {
    fs: Arc<dyn FileSystem>,
    /// `None` while it cannot be written.
    file: Option<Box<dyn WriteFile>>,
    /// Why lines are lost, if there is no file, and when another is to be begun, in microseconds of the clock.
    lost: Option<(Error, u64)>,
    /// The current file was begun and has no line.
    empty: bool,
    place: LogLocation,
    /// Size from which on the next line begins another file, in bytes; 0: none.
    max_bytes: u64,
    /// Age of that, in seconds; 0: none.
    max_seconds: u64,
    /// Files kept, this one included.
    keep: usize,
    created_micros: u64,
    /// The lines that each file begins with.
    headers: Vec<String>,
}

/// Where LOG is: `LOG` in the database's directory, or a name made of the database's path in `db_log_dir`.
pub struct LogLocation {
    dir: PathBuf,
    name: String,
}

impl LogLocation {
    /// Of the database at `path`.
    pub fn of(path: &Path, log_dir: Option<&str>) -> LogLocation {
        match log_dir.filter(|dir| !dir.is_empty() && Path::new(dir) != path) {
            None => LogLocation { dir: path.to_path_buf(), name: "LOG".to_string() },
            Some(dir) => {
                let path = absolute(path).display().to_string();
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
                let path = path.trim_start_matches('/');
                let prefix: String = path.chars().map(|c| if plain(c) { c } else { '_' }).collect();
                LogLocation { dir: PathBuf::from(dir), name: format!("{prefix}_LOG") }
            }
        }
    }

    /// The current file.
    fn current(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// Names of the files before, oldest first.
    fn old(&self, fs: &dyn FileSystem) -> Result<Vec<String>> {
        let prefix = format!("{}.old.", self.name);
        let mut old: Vec<String> = fs
            .list(&self.dir)?
            .into_iter()
            .filter(|name| name.strip_prefix(&prefix).is_some_and(|end| end.parse::<u64>().is_ok()))
            .collect();
        old.sort();
        Ok(old)
    }

    /// Gives the current file, if there is one, the name of an old one.
    fn retire(&self, fs: &dyn FileSystem, now_micros: u64) -> Result<()> {
        if !fs.exists(&self.current())? {
            return Ok(());
        }
        let mut stamp = now_micros;
        loop {
            let old = self.dir.join(format!("{}.old.{stamp}", self.name));
            if !fs.exists(&old)? {
                return fs.rename(&self.current(), &old);
            }
            stamp += 1;
        }
    }

    /// Removes the oldest files, so that `keep` are left with the current one. Fails with what the first met that cannot be removed,
    /// after the others are.
    fn trim(&self, fs: &dyn FileSystem, keep: usize) -> Result<()> {
        let old = self.old(fs)?;
        let surplus = (old.len() + 1).saturating_sub(keep.max(1)).min(old.len());
        let removed: Vec<Result<()>> =
            old[..surplus].iter().map(|name| fs.remove_file(&self.dir.join(name))).collect();
        removed.into_iter().collect()
    }

    /// Removes all files of it.
    pub fn remove(&self, fs: &dyn FileSystem) -> Result<()> {
        if !fs.exists(&self.dir)? {
            return Ok(());
        }
        for name in self.old(fs)? {
            fs.remove_file(&self.dir.join(name))?;
        }
        if fs.exists(&self.current())? { fs.remove_file(&self.current()) } else { Ok(()) }
    }
}

impl InfoLog {
    /// Lines go to `logger`, or to a new LOG file; the one there is gets another name, and of the old ones those beyond
    /// `keep_log_file_num` are removed.
    pub fn create(
        env: &Env,
        path: &Path,
        options: &DbOptions,
        logger: Option<&Arc<dyn Logger>>,
    ) -> Result<InfoLog> {
        if let Some(logger) = logger {
            let (sink, level) = (Sink::Object(logger.clone()), logger.level());
            return Ok(InfoLog { sink, level, clock: env.clock.clone() });
        }
        let place = LogLocation::of(path, options.kept.get("db_log_dir"));
        env.fs.create_dir_all(&place.dir)?;
        let mut rolling = Rolling {
            fs: env.fs.clone(),
            file: None,
            lost: None,
            empty: false,
            place,
            max_bytes: options.kept.number("max_log_file_size").unwrap_or(0),
            max_seconds: options.kept.number("log_file_time_to_roll").unwrap_or(0),
            keep: usize::try_from(options.keep_log_file_num).unwrap_or(usize::MAX),
            created_micros: 0,
            headers: Vec::new(),
        };
        rolling.begin(env.clock.now_micros())?;
        let level = level_of(options.kept.get("info_log_level").unwrap_or_default());
        Ok(InfoLog {
            sink: Sink::File(LogFile { file: Mutex::new(rolling) }),
            level,
            clock: env.clock.clone(),
        })
    }

    /// A log that drops everything, for read-only opens.
    pub fn none(env: &Env) -> InfoLog {
        InfoLog { sink: Sink::None, level: LogLevel::Header, clock: env.clock.clone() }
    }

    /// Writes one line.
    pub fn line(&self, text: fmt::Arguments<'_>) {
        self.line_at(LogLevel::Info, text);
    }

    /// Writes what each file of LOG begins with.
    pub fn headers(&self, lines: &[String]) {
        match &self.sink {
            Sink::None => {}
            Sink::Object(logger) => {
                lines.iter().for_each(|line| hand_over(&**logger, LogLevel::Header, line))
            }
            // HOLDS LogFile::file across the write: as in `line_at`.
            Sink::File(log) => {
                let mut file = log.file.lock();
                if self.level <= LogLevel::Info || file.rolls() {
                    file.begin_with(lines, self.clock.now_micros());
                }
            }
        }
    }

    /// Writes one line of that level.
    pub fn line_at(&self, level: LogLevel, text: fmt::Arguments<'_>) {
        if level < self.level {
            return;
        }
        match &self.sink {
            Sink::None => {}
            Sink::Object(logger) => hand_over(&**logger, level, &text.to_string()),
            // HOLDS LogFile::file across the write: lines must not interleave; nobody waits on a hot path.
            Sink::File(log) => {
                let mut file = log.file.lock();
                // As in RocksDB: a file that is not rolled has headers only with information.
                if level < LogLevel::Header || self.level <= LogLevel::Info || file.rolls() {
                    file.line(level, text, self.clock.now_micros());
                }
            }
        }
    }
}

/// Gives a line to the application's logger. One that panics loses the line, and fails no operation.
pub fn hand_over(logger: &dyn Logger, level: LogLevel, text: &str) {
    let _ = caught("logger", || {
        logger.log(level, text);
        Ok(())
    });
}

/// The level of that name in an OPTIONS file.
fn level_of(name: &str) -> LogLevel {
    match name {
        "DEBUG_LEVEL" => LogLevel::Debug,
        "WARN_LEVEL" => LogLevel::Warn,
        "ERROR_LEVEL" => LogLevel::Error,
        "FATAL_LEVEL" => LogLevel::Fatal,
        "HEADER_LEVEL" => LogLevel::Header,
        _ => LogLevel::Info,
    }
}

impl Rolling {
    fn rolls(&self) -> bool {
        self.max_bytes > 0 || self.max_seconds > 0
    }

    /// Begins a file. The one before is written on if there is no other; old ones that cannot be removed stay.
    fn begin(&mut self, now_micros: u64) -> Result<()> {
        self.created_micros = now_micros;
        if !self.empty {
            self.place.retire(&*self.fs, now_micros)?;
        }
        let options = OpenWrite { buffer_size: 4096, ..OpenWrite::default() };
        self.file = Some(self.fs.create(&self.place.current(), options)?);
        self.empty = true;
        let headers = std::mem::take(&mut self.headers);
        self.write(&headers, now_micros);
        self.headers = headers;
        if let Err(error) = self.place.trim(&*self.fs, self.keep) {
            let text = format!("could not remove an old file of LOG: {error}");
            self.append(&line_of(LogLevel::Warn, &text, now_micros), now_micros);
        }
        Ok(())
    }

    /// Writes `headers`, now and at the beginning of files to come.
    fn begin_with(&mut self, headers: &[String], now_micros: u64) {
        self.write(headers, now_micros);
        if self.rolls() {
            self.headers.extend_from_slice(headers);
        }
    }

    /// All at once.
    fn write(&mut self, headers: &[String], now_micros: u64) {
        let lines: String = headers.iter().map(|text| line_of(LogLevel::Header, text, now_micros)).collect();
        self.append(&lines, now_micros);
    }

    /// Begins another file after one that could not be written; lines between are missing. Not with each line, as on a device that is full
    /// each would cost changes of the directory; one without a line is written over, so that no old file goes for it.
    fn begin_again(&mut self, now_micros: u64) {
        let Some((error, due)) = self.lost.take() else { return };
        if now_micros < due || self.begin(now_micros).is_err() {
            let due = if now_micros < due { due } else { now_micros.saturating_add(BEGIN_AGAIN) };
            self.lost.get_or_insert((error, due));
            return;
        }
        let text = format!("lines are missing, as LOG could not be written: {error}");
        self.append(&line_of(LogLevel::Warn, &text, now_micros), now_micros);
    }

    fn line(&mut self, level: LogLevel, text: fmt::Arguments<'_>, now_micros: u64) {
        let full = |file: &dyn WriteFile| self.max_bytes > 0 && file.len() >= self.max_bytes;
        let age = now_micros.saturating_sub(self.created_micros) / 1_000_000;
        let old = self.max_seconds > 0 && age >= self.max_seconds;
        if self.file.as_deref().is_some_and(|file| full(file) || old) {
            // Tried again with the next line, or when this file is too old once more.
            let _ = self.begin(now_micros);
        }
        self.begin_again(now_micros);
        if level == LogLevel::Header {
            return self.begin_with(&[text.to_string()], now_micros);
        }
        self.append(&line_of(level, &text.to_string(), now_micros), now_micros);
    }

    fn append(&mut self, lines: &str, now_micros: u64) {
        let Some(open) = &mut self.file else { return };
        match open.append(lines.as_bytes()).and_then(|()| open.flush()) {
            Ok(()) => self.empty &= lines.is_empty(),
            Err(error) => {
                self.file = None;
                self.lost = Some((error, now_micros.saturating_add(BEGIN_AGAIN)));
            }
        }
    }
}

/// A line of the file.
fn line_of(level: LogLevel, text: &str, now_micros: u64) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{} {} {}{text}{end}", timestamp(now_micros), outcrop_env::thread_id(), level.mark())
}
/// `2026/11/21-04:33:00.123456`, in UTC.
fn timestamp(micros: u64) -> String {
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}/{month:02}/{day:02}-{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// Year, month and day of the day `days` after 1970-01-01, in the proleptic Gregorian calendar.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Counted in eras of 400 years that begin on 1 March, so that the leap day comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// Writes one formatted line to the LOG of a [`crate::context::DbContext`].
macro_rules! log_line {
    ($ctx:expr, $($format:tt)+) => { $ctx.info_log.line(format_args!($($format)+)) };
}
pub(crate) use log_line;

/// The same at a level.
macro_rules! log_at {
    ($ctx:expr, $level:expr, $($format:tt)+) => { $ctx.info_log.line_at($level, format_args!($($format)+)) };
}
pub(crate) use log_at;

/// Time and thread, as a line of LOG begins with them: for loggers that write such lines.
pub fn log_stamp() -> String {
    timestamp(outcrop_env::clock::SystemClock::default().now_micros())
        + " "
        + &outcrop_env::thread_id().to_string()
}

#[cfg(test)]
mod tests;
