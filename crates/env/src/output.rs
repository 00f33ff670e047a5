//! The parts that every file that is written shares: its name for errors, the failure rule, and writeback.
//!
//! After a failed write or sync a file refuses everything with the same error: the state of the disk is unknown, and a later
//! fsync that succeeds would not say anything about the earlier failure.

use crate::posix::io_error;
use crate::sys;
use crate::write_times::{Call, WriteTimes, timed};
use outcrop_base::{Error, Result};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Output {
    file: File,
    path: PathBuf,
    failed: Option<Error>,
    bytes_per_sync: u64,
    /// Where the last `sync_file_range` ended.
    range_synced: u64,
    /// The process that writes.
    process: u32,
    /// Where the time of its calls goes.
    times: Option<Arc<WriteTimes>>,
}

impl Output {
    /// Writes to `file`, which is `path`; see [`crate::OpenWrite::bytes_per_sync`].
    pub fn new(file: File, path: &Path, bytes_per_sync: u64) -> Output {
        Output {
            file,
            path: path.to_path_buf(),
            failed: None,
            bytes_per_sync,
            range_synced: 0,
            process: std::process::id(),
            times: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, for what cannot fail or whose failure leaves nothing unknown.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The error of an earlier call.
    pub fn check(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Does `work` to the file; an error of it is that of every later [`Output::check`].
    pub fn attempt(&mut self, what: &str, work: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        work(&mut self.file).map_err(|source| {
            let error = io_error(what, &self.path, source);
            self.failed = Some(error.clone());
            error
        })
    }

    /// Adds the time of its calls to `times` from here on.
    pub fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.times = Some(times.clone());
    }

    /// [`Output::attempt`] of a write.
    pub fn write(&mut self, work: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        self.timed(Call::Write, "write", work)
    }

    pub fn sync_data(&mut self) -> Result<()> {
        self.timed(Call::Sync, "sync", |file| file.sync_data())
    }

    pub fn sync_all(&mut self) -> Result<()> {
        self.timed(Call::Sync, "sync", |file| file.sync_all())
    }

    fn timed(
        &mut self,
        call: Call,
        what: &str,
        work: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        match self.times.clone() {
            Some(times) => timed(Some(&times), call, || self.attempt(what, work)),
            None => self.attempt(what, work),
        }
    }

    /// Cuts the file. Not in a forked child: its parent may have gone on writing, and would lose that, or store into pages that
    /// are no more.
    pub fn set_len(&mut self, len: u64) -> Result<()> {
        if self.process != std::process::id() {
            return Ok(());
        }
        self.attempt("truncate", |file| file.set_len(len))
    }

    /// Starts writeback of what gathered of the `written` bytes, so that the final sync finds little to do.
    pub fn push_range(&mut self, written: u64) {
        // The last megabyte is left alone: the next append may change the same page.
        const KEEP_BACK: u64 = 1 << 20;
        if self.bytes_per_sync > 0
            && written.saturating_sub(self.range_synced) >= self.bytes_per_sync.saturating_add(KEEP_BACK)
        {
            let end = (written - KEEP_BACK) & !4095;
            timed(self.times.as_deref(), Call::RangeSync, || {
                sys::start_writeback(&self.file, self.range_synced, end - self.range_synced);
            });
            self.range_synced = end;
        }
    }
}
