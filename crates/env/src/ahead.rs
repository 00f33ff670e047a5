//! A file whose space is made ahead of what is appended, so that an append is a store into mapped memory.
//!
//! ```text
//! | appended ............ | end mark | filler (or what a reused file held) |
//! 0                      len                                          filled
//!          | window: mapped, at most WINDOW bytes                  |
//! ```
//! A `write` of one short record costs some 0.6 us, a store into the page cache 0.03 us, and both survive a crash of the
//! process alike. Space is made by writing the filler, not by making the file longer: a page that a loss of power keeps
//! from the disk then never reads as zeros, and syncs that follow find their blocks allocated.
//!
//! Invariants: the mapped bytes lie below `filled`, so a store meets no end of file; the first bytes of an append are
//! stored last, so that a process killed in the middle of one leaves the end mark before it in place. After a sync the
//! kernel has write-protected the pages: the next append is a `write`, which costs less than the fault.
//! Unmapping takes 30 us for each MiB that was used: windows that were passed wait for another thread to drop them, see
//! [`WriteFile::retired_window`].
//! Only where a file keeps its blocks (ext2 to ext4, tmpfs, XFS made without reflinks): elsewhere, as on btrfs, ZFS, overlays and
//! network file systems, a store may need new blocks, and one that finds none ends the process by SIGBUS. There every append is
//! a `write`, which returns an error.
//! Limits: another process that cuts the file, or a device that fails under a page that must be read back, ends this
//! process by SIGBUS. `allow_fallocate=false` avoids all of this.

use crate::file_system::{OpenWrite, RetiredWindow, WriteFile};
use crate::output::Output;
use crate::posix::io_error;
use crate::sys;
use outcrop_base::Result;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{Ordering, compiler_fence};

/// Bytes of space made at a time: a pause of 8 us once in 75 records of 440 bytes. `docs/design/0006-wal.md` has others.
const CHUNK: usize = 32 << 10;
/// Bytes mapped at a time, of which as many are resident as were used.
const WINDOW: usize = 4 << 20;
/// Bytes that are stored last, at once.
const HEAD: usize = 8;

pub struct PreallocatedFile {
    output: Output,
    len: u64,
    /// Bytes the file has.
    filled: u64,
    /// A chunk of filler.
    space: Box<[u8]>,
    window: Option<Window>,
    /// Windows that are not used any more.
    passed: Vec<Window>,
    /// The last call was a sync.
    just_synced: bool,
    /// Stores may need space, or space was refused or a mapping was: every append is a `write` of its own.
    plain: bool,
    scratch: Vec<u8>,
}

impl PreallocatedFile {
    /// Creates a file, or truncates the one there is.
    pub fn create(path: &Path, options: &OpenWrite, filler: u8) -> Result<PreallocatedFile> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|source| io_error("create", path, source))?;
        Ok(PreallocatedFile::new(file, path, options, filler, 0))
    }

    /// Writes from the start of the file that `path` is.
    pub fn over(path: &Path, options: &OpenWrite, filler: u8) -> Result<PreallocatedFile> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|source| io_error("open", path, source))?;
        let filled = file.metadata().map_err(|source| io_error("stat", path, source))?.len();
        Ok(PreallocatedFile::new(file, path, options, filler, filled))
    }

    fn new(file: File, path: &Path, options: &OpenWrite, filler: u8, filled: u64) -> PreallocatedFile {
        let plain = cfg!(miri) || !sys::blocks_stay(&file);
        PreallocatedFile {
            output: Output::new(file, path, options.bytes_per_sync),
            len: 0,
            filled,
            space: vec![filler; CHUNK].into_boxed_slice(),
            window: None,
            passed: Vec::new(),
            just_synced: false,
            plain,
            scratch: Vec::new(),
        }
    }

    /// The window, if `total` bytes from `len` can be stored there; makes space and moves it as needed.
    fn room(&mut self, total: usize) -> Option<&mut Window> {
        let covered = |window: &Window, len: u64| window.covers(len, total);
        if self.len + total as u64 > self.filled
            || !self.window.as_ref().is_some_and(|w| covered(w, self.len))
        {
            if total > CHUNK || self.plain {
                return None;
            }
            self.make_room(total);
        }
        if self.plain { None } else { self.window.as_mut() }
    }

    #[cold]
    fn make_room(&mut self, total: usize) {
        if self.len + total as u64 > self.filled {
            if self.output.file().write_all_at(&self.space, self.filled).is_err() {
                // As on a nearly full disk: the record alone may still fit. Of the chunk there may be a part, to be cut.
                self.plain = true;
                self.filled += CHUNK as u64;
                return;
            }
            self.filled += CHUNK as u64;
        }
        if !self.window.as_ref().is_some_and(|window| window.covers(self.len, total)) {
            self.passed.extend(self.window.take());
            self.window = Window::map(self.output.file(), self.len);
            self.plain = self.window.is_none();
        }
    }

    /// One `write` of `bytes` and `end`.
    fn write(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        self.scratch.extend_from_slice(end);
        self.output.attempt("write", |file| file.write_all_at(&self.scratch, self.len))?;
        self.filled = self.filled.max(self.len + self.scratch.len() as u64);
        // One large record does not keep its memory.
        self.scratch.shrink_to(CHUNK);
        Ok(())
    }
}

impl WriteFile for PreallocatedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_marked(bytes, &[])
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.output.check()?;
        let offset = self.len;
        let after_sync = std::mem::take(&mut self.just_synced);
        match self.room(bytes.len() + end.len()) {
            Some(window) if !after_sync && bytes.len() >= HEAD => window.store(offset, bytes, end),
            _ => self.write(bytes, end)?,
        }
        self.len += bytes.len() as u64;
        self.output.push_range(self.len);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.output.check()
    }

    fn sync(&mut self) -> Result<()> {
        self.output.check()?;
        self.just_synced = true;
        self.output.sync_data()
    }

    fn sync_all(&mut self) -> Result<()> {
        self.output.check()?;
        self.just_synced = true;
        self.output.sync_all()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        self.output.path()
    }

    fn retired_window(&mut self) -> Option<RetiredWindow> {
        let passed = (!self.passed.is_empty()).then(|| std::mem::take(&mut self.passed));
        passed.map(|windows| RetiredWindow(Box::new(windows)))
    }

    fn close(&mut self) -> Result<()> {
        self.output.check()?;
        self.passed.extend(self.window.take());
        // It would be mapped again, and what is stored after the end be lost.
        self.plain = true;
        if self.filled > self.len {
            self.output.set_len(self.len)?;
            self.filled = self.len;
        }
        Ok(())
    }
}

/// A mapped part of a file. It may reach beyond the file's end, where nobody may touch it.
struct Window {
    start: *mut u8,
    /// Offset of `start` in the file.
    offset: u64,
}

// SAFETY: the mapping belongs to this value alone; a thread that owns it may use it.
unsafe impl Send for Window {}

impl Window {
    /// Maps from the page of `offset` on.
    fn map(file: &File, offset: u64) -> Option<Window> {
        /// A multiple of every size of page there is.
        const PAGE: u64 = 64 << 10;
        let offset = offset & !(PAGE - 1);
        let start = sys::map_shared(file, offset, WINDOW).ok()?;
        Some(Window { start, offset })
    }

    fn covers(&self, offset: u64, len: usize) -> bool {
        offset >= self.offset && offset + len as u64 <= self.offset + WINDOW as u64
    }

    /// Stores `bytes` and `end` at `offset` of the file, the first of `bytes` last.
    ///
    /// The caller has seen that the window [covers](Window::covers) both, that the file has space for them, and that
    /// there are at least [`HEAD`] bytes.
    #[inline]
    fn store(&mut self, offset: u64, bytes: &[u8], end: &[u8]) {
        debug_assert!(self.covers(offset, bytes.len() + end.len()) && bytes.len() >= HEAD);
        let (head, rest) = bytes.split_at(HEAD);
        let head = u64::from_ne_bytes(head.try_into().expect("split there"));
        // SAFETY: the range lies in the mapping and in the file, says the caller; only this value writes there, and
        // readers of the file go through the kernel.
        unsafe {
            let at = self.start.add((offset - self.offset) as usize);
            at.add(bytes.len()).copy_from_nonoverlapping(end.as_ptr(), end.len());
            at.add(HEAD).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            // A killed process stops between two instructions: their order is all that matters.
            compiler_fence(Ordering::Release);
            at.cast::<u64>().write_unaligned(head);
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        sys::unmap(self.start, WINDOW);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    fn path_of(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("outcrop-ahead-{}-{name}", std::process::id()))
    }

    #[test]
    fn passed_windows_are_handed_over_and_the_file_is_whole() {
        let path = path_of("windows");
        let mut file = PreallocatedFile::create(&path, &OpenWrite::default(), 5).unwrap();
        let record: Vec<u8> = (0..20_000u32).map(|i| (i ^ (i >> 8)) as u8).collect();
        let (mut handed, records) = (0, 5 * WINDOW / 2 / record.len());
        for _ in 0..records {
            file.append_marked(&record, &[7; 11]).unwrap();
            handed += usize::from(file.retired_window().is_some());
        }
        assert_eq!(handed, 2, "the third window is in use");
        file.close().unwrap();
        assert!(file.retired_window().is_some() && file.retired_window().is_none());
        assert!(std::fs::read(&path).unwrap() == record.repeat(records));
        std::fs::remove_file(&path).unwrap();
    }

    /// Runs the next test where files cannot become longer than 40 KiB.
    #[test]
    fn a_chunk_that_found_no_room_leaves_nothing_behind() {
        let limited = "ulimit -f 40; trap '' XFSZ; exec \"$0\" --exact --ignored ahead::tests::in_40_kib";
        let test = std::env::current_exe().unwrap();
        let output = Command::new("bash").args(["-c", limited]).arg(test).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "run by a_chunk_that_found_no_room_leaves_nothing_behind"]
    fn in_40_kib() {
        let path = path_of("limited");
        let mut file = PreallocatedFile::create(&path, &OpenWrite::default(), 5).unwrap();
        for _ in 0..CHUNK / 400 + 2 {
            file.append_marked(&[1; 400], &[]).unwrap();
        }
        assert!(file.plain, "the second chunk does not fit");
        file.close().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), file.len());
        std::fs::remove_file(&path).unwrap();
    }
}
