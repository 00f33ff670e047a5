//! Copying a file and computing its checksum on the way, at the pace that is allowed.

use super::options::Progress;
use crate::panic::caught;
use outcrop_base::checksum::crc32c_extend;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::{Access, FileSystem, IoKind, IoPriority, OpenRead, OpenWrite, RateLimiter};
use outcrop_monitor::{Statistics, Ticker};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes copied at a time unless something else is asked for.
const COPY_BYTES: u64 = 1 << 20;

/// The origin of the bytes.
#[derive(Clone)]
pub enum Source {
    /// The first so many bytes of a file.
    File(Arc<dyn FileSystem>, PathBuf, u64),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// The result of one copy, or of reading a file whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bytes.
    pub size: u64,
    /// Their CRC-32C; 0 if there are none.
    pub crc: u32,
}

/// How bytes are moved.
#[derive(Clone)]
pub struct Mover {
    /// Paces the copying.
    pub limit: Option<Arc<RateLimiter>>,
    /// Bytes at a time; 0: as many as suit.
    pub buffer_bytes: usize,
    /// Set: stop.
    pub stop: Option<Arc<AtomicBool>>,
    /// Receives the progress.
    pub meter: Option<Arc<ProgressMeter>>,
    /// Make what is written durable.
    pub sync: bool,
    /// Counts what is copied.
    pub statistics: Option<Arc<Statistics>>,
}

/// Calls the application's callback each time so many bytes were copied.
pub struct ProgressMeter {
    progress: Progress,
    interval: u64,
    /// Bytes since the last call. Held during the call: one at a time.
    bytes: Mutex<u64>,
}

impl ProgressMeter {
    /// Calls `progress` each time `interval` bytes were copied.
    pub fn new(progress: Progress, interval: u64) -> ProgressMeter {
        ProgressMeter { progress, interval, bytes: Mutex::new(0) }
    }

    fn copied(&self, bytes: u64) -> Result<()> {
        let mut since = self.bytes.lock();
        *since += bytes;
        while self.interval > 0 && *since >= self.interval {
            *since -= self.interval;
            caught("progress callback", || {
                (self.progress)();
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Mover {
    /// Copies to a new file. It is complete and, if asked for, durable on return; its name is not yet.
    pub fn copy(&self, source: &Source, fs: &dyn FileSystem, target: &Path) -> Result<Copied> {
        let mut output = fs.create(target, OpenWrite { buffer_size: 0, ..OpenWrite::default() })?;
        let mut write = |bytes: &[u8]| {
            output.append(bytes)?;
            self.meter.as_ref().map_or(Ok(()), |meter| meter.copied(bytes.len() as u64))
        };
        let copied = match source {
            Source::File(from, path, len) => self.walk(&**from, path, *len, &mut write)?,
            Source::Bytes(bytes) => {
                self.check_stop()?;
                write(bytes)?;
                Copied { size: bytes.len() as u64, crc: crc32c_extend(0, bytes) }
            }
        };
        if self.sync {
            output.sync()?;
        }
        output.close()?;
        if let Some(statistics) = &self.statistics {
            if matches!(source, Source::File(..)) {
                statistics.count(Ticker::BackupReadBytes, copied.size);
            }
            statistics.count(Ticker::BackupWriteBytes, copied.size);
        }
        Ok(copied)
    }

    /// Reads the first `len` bytes.
    pub fn checksum(&self, fs: &dyn FileSystem, path: &Path, len: u64) -> Result<Copied> {
        self.walk(fs, path, len, &mut |_| Ok(()))
    }

    fn walk(
        &self,
        fs: &dyn FileSystem,
        path: &Path,
        len: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Copied> {
        self.check_stop()?;
        let input = fs.open_read(path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        let mut buffer = vec![0; self.step().min(len.max(1)) as usize];
        let (mut done, mut crc) = (0, 0);
        while done < len {
            self.check_stop()?;
            let part = (buffer.len() as u64).min(len - done);
            if let Some(limit) = &self.limit {
                // A limiter of reads alone holds back what is read of them.
                let kind = if limit.limits(IoKind::Write) { IoKind::Write } else { IoKind::Read };
                limit.request(part, IoPriority::Low, kind);
            }
            let part = &mut buffer[..part as usize];
            input.read_exact_at(done, part)?;
            crc = crc32c_extend(crc, part);
            each(part)?;
            done += part.len() as u64;
        }
        Ok(Copied { size: len, crc })
    }

    /// Bytes at a time.
    fn step(&self) -> u64 {
        let wanted = if self.buffer_bytes == 0 { COPY_BYTES } else { self.buffer_bytes as u64 };
        let burst = self.limit.as_ref().map_or(u64::MAX, |limit| limit.burst_bytes());
        wanted.min(burst).max(1)
    }

    /// Incomplete once it is to stop.
    pub fn check_stop(&self) -> Result<()> {
        // Relaxed: looked at again and again, and publishes nothing.
        match &self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(stopped()),
            _ => Ok(()),
        }
    }
}

/// The error of a backup that was stopped.
pub fn stopped() -> Error {
    Error::new(ErrorKind::Incomplete, "Backup stopped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::checksum::crc32c;
    use outcrop_env::clock::ManualClock;
    use outcrop_env::{Clock, Env, RateLimiterOptions};
    use std::sync::atomic::AtomicU64;

    const BYTES: usize = 3_000_000;

    fn mover() -> Mover {
        Mover { limit: None, buffer_bytes: 0, stop: None, meter: None, sync: true, statistics: None }
    }

    fn source(env: &Env) -> (Source, Vec<u8>) {
        let bytes: Vec<u8> = (0..BYTES).map(|i| (i / 3) as u8).collect();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        let mut file = env.fs.create(Path::new("/d/a"), OpenWrite::default()).unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
        (Source::File(env.fs.clone(), PathBuf::from("/d/a"), bytes.len() as u64), bytes)
    }

    #[test]
    fn a_copy_is_what_was_asked_for_and_told_of() {
        let env = Env::memory();
        let (_, bytes) = source(&env);
        for (len, buffer_bytes) in [(0, 0), (1, 0), (BYTES, 0), (BYTES, 4096), (1234, 100)] {
            let source = Source::File(env.fs.clone(), PathBuf::from("/d/a"), len as u64);
            let calls = Arc::new(AtomicU64::new(0));
            let counted = calls.clone();
            let progress = Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let meter = Some(Arc::new(ProgressMeter::new(progress, 1000)));
            let copied =
                Mover { buffer_bytes, meter, ..mover() }.copy(&source, &*env.fs, Path::new("/d/b")).unwrap();
            assert_eq!(
                copied,
                Copied { size: len as u64, crc: if len == 0 { 0 } else { crc32c(&bytes[..len]) } }
            );
            assert_eq!(env.fs.read_all(Path::new("/d/b")).unwrap(), bytes[..len]);
            assert_eq!(calls.load(Ordering::Relaxed), len as u64 / 1000);
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_it_should_be_is_damage() {
        let env = Env::memory();
        source(&env);
        let longer = Source::File(env.fs.clone(), PathBuf::from("/d/a"), BYTES as u64 + 1);
        let error = mover().copy(&longer, &*env.fs, Path::new("/d/b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn a_limit_takes_its_time_over_all_copies() {
        let env = Env::memory();
        let (source, _) = source(&env);
        let clock = Arc::new(ManualClock::at(5_000_000));
        let options = RateLimiterOptions { bytes_per_second: 1_000_000, ..RateLimiterOptions::default() };
        let limit = Some(Arc::new(RateLimiter::with_clock(options, clock.clone())));
        let limited = Mover { limit, ..mover() };
        let before = clock.monotonic_nanos();
        for _ in 0..2 {
            limited.copy(&source, &*env.fs, Path::new("/d/b")).unwrap();
        }
        let millis = (clock.monotonic_nanos() - before) / 1_000_000;
        // One refill, a tenth of a second's, is there at once.
        assert!((5_900..=6_000).contains(&millis), "{millis} milliseconds for 6 MB");
    }

    #[test]
    fn who_stops_it_and_who_panics_is_told() {
        let env = Env::memory();
        let (source, _) = source(&env);
        let stop = Some(Arc::new(AtomicBool::new(true)));
        let stopped = Mover { stop, ..mover() }.copy(&source, &*env.fs, Path::new("/d/b")).unwrap_err();
        assert_eq!(stopped.to_string(), "Result incomplete: Backup stopped");
        let meter = Some(Arc::new(ProgressMeter::new(Arc::new(|| panic!("no more")), 1)));
        let error = Mover { meter, ..mover() }.copy(&source, &*env.fs, Path::new("/d/b")).unwrap_err();
        assert_eq!(error.to_string(), "Operation aborted: progress callback panicked: no more");
    }
}
