//! The LOG file: what the database did, for people, and for scripts that read RocksDB's: each line is a time, the number of
//! the thread and a text; `RocksDB version: V` and `Git sha H` are among the first (`tools/benchmark.sh`).
//!
//! Writing to it never fails an operation: a line that cannot be written is dropped.

use outcrop_base::Result;
use outcrop_env::{Clock, Env, FileSystem, OpenWrite, WriteFile};
use outcrop_manifest::file_name::{self, FileKind};
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The open LOG file.
pub struct InfoLog {
    file: Mutex<Option<Box<dyn WriteFile>>>,
    clock: Arc<dyn Clock>,
}

impl InfoLog {
    /// Renames an existing LOG out of the way, removes those beyond `keep`, and starts a new one.
    pub fn create(env: &Env, dir: &Path, keep: u64) -> Result<InfoLog> {
        let path = dir.join("LOG");
        if env.fs.exists(&path)? {
            let old = dir.join(format!("LOG.old.{}", env.clock.now_micros()));
            env.fs.rename(&path, &old)?;
        }
        remove_old(&*env.fs, dir, keep.max(1) as usize - 1)?;
        let options = OpenWrite { buffer_size: 4096, ..OpenWrite::default() };
        let file = env.fs.create(&path, options)?;
        Ok(InfoLog { file: Mutex::new(Some(file)), clock: env.clock.clone() })
    }

    /// A log that drops everything, for read-only opens.
    pub fn none(env: &Env) -> InfoLog {
        InfoLog { file: Mutex::new(None), clock: env.clock.clone() }
    }

    /// Writes one line.
    pub fn line(&self, text: fmt::Arguments<'_>) {
        let now = self.clock.now_micros();
        // HOLDS info_log.file across the write: lines must not interleave; nobody waits on a hot path.
        let mut file = self.file.lock();
        if let Some(open) = file.as_mut() {
            let line = format!("{} {} {text}\n", timestamp(now), outcrop_env::thread_id());
            if open.append(line.as_bytes()).and_then(|()| open.flush()).is_err() {
                *file = None;
            }
        }
    }
}

/// Removes the oldest `LOG.old.*` files beyond `keep`.
fn remove_old(fs: &dyn FileSystem, dir: &Path, keep: usize) -> Result<()> {
    let mut old: Vec<String> = fs
        .list(dir)?
        .into_iter()
        .filter(|name| matches!(file_name::parse(name), Some(FileKind::OldInfoLog(..))))
        .collect();
    old.sort();
    for name in &old[..old.len().saturating_sub(keep)] {
        fs.remove_file(&dir.join(name))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_calendar_dates() {
        assert_eq!(timestamp(0), "1970/01/01-00:00:00.000000");
        assert_eq!(timestamp(951_782_400_000_001), "2000/02/29-00:00:00.000001");
        assert_eq!(timestamp(1_795_235_645_123_456), "2026/11/21-04:34:05.123456");
    }
}
