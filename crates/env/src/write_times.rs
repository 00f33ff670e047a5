//! How long the calls take by which files are written, for jobs that report it.
//!
//! Source: RocksDB `file/writable_file_writer.cc`, where the timers of `write_nanos`, `range_sync_nanos` and `fsync_nanos` stand.

use crate::sys;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over all files that were [told](crate::WriteFile::measure) to add to them.
///
/// ```
/// # use outcrop_env::{Env, WriteTimes};
/// use std::sync::Arc;
///
/// let times = Arc::new(WriteTimes::default());
/// let fs = Env::memory().fs;
/// fs.create_dir_all_durably("/d".as_ref())?;
/// let mut file = fs.create("/d/f".as_ref(), Default::default())?;
/// file.measure(&times);
/// file.append(b"abc")?;
/// file.sync()?;
/// assert!(times.nanos().sync > 0);
/// # outcrop_base::Result::Ok(())
/// ```
#[derive(Debug, Default)]
pub struct WriteTimes {
    write: AtomicU64,
    range_sync: AtomicU64,
    sync: AtomicU64,
}

/// Nanoseconds in calls that write files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteNanos {
    /// Bytes handed to the operating system.
    pub write: u64,
    /// Writeback begun, see [`crate::OpenWrite::bytes_per_sync`].
    pub range_sync: u64,
    /// fdatasync and fsync.
    pub sync: u64,
}

impl WriteTimes {
    /// So far.
    pub fn nanos(&self) -> WriteNanos {
        // Relaxed: asked for after the files were written.
        let get = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        WriteNanos { write: get(&self.write), range_sync: get(&self.range_sync), sync: get(&self.sync) }
    }
}

impl WriteNanos {
    /// Adds those of other files.
    pub fn add(&mut self, more: WriteNanos) {
        self.write += more.write;
        self.range_sync += more.range_sync;
        self.sync += more.sync;
    }
}

/// The kinds of calls that are measured.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Write,
    RangeSync,
    Sync,
}

/// Does `work`, and adds its time to `times` if somebody wants it.
pub(crate) fn timed<T>(times: Option<&WriteTimes>, call: Call, work: impl FnOnce() -> T) -> T {
    let Some(times) = times else { return work() };
    let start = sys::monotonic_nanos();
    let done = work();
    let sum = match call {
        Call::Write => &times.write,
        Call::RangeSync => &times.range_sync,
        Call::Sync => &times.sync,
    };
    // At least one: a call that was made is to be seen. Relaxed: a sum.
    sum.fetch_add(sys::monotonic_nanos().saturating_sub(start).max(1), Ordering::Relaxed);
    done
}
