//! O_DIRECT files. The alignment the device asks for is kept here: callers read and append as they like.
//!
//! A write file holds its last partial block in memory. `sync` writes that block padded with zeros, so that
//! everything appended is durable, and later appends overwrite the padding; `close` cuts the file to its
//! length. A crash before `close` can leave up to one block of zeros after the data.

use crate::file_system::{Descriptor, ReadFile, WriteFile};
use crate::output::Output;
use crate::posix::{io_error, read_fully};
use crate::sys;
use crate::write_times::WriteTimes;
use outcrop_base::{Error, Result};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::{File, OpenOptions};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment of memory, and of what is written: covers devices with 512-byte and 4 KiB sectors.
pub(crate) const ALIGNMENT: usize = 4096;

/// Bytes aligned for direct IO.
pub(crate) struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory exclusively.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `len` zero bytes, rounded up to the alignment; at least one block.
    pub(crate) fn new(len: usize) -> AlignedBuffer {
        let size = AlignedBuffer::padded(len);
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("size fits in memory");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => AlignedBuffer { start, layout },
            None => handle_alloc_error(layout),
        }
    }
}

impl AlignedBuffer {
    /// The size of a buffer for `len` bytes.
    pub(crate) fn padded(len: usize) -> usize {
        len.max(1).next_multiple_of(ALIGNMENT)
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `size` initialised bytes owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

fn open_direct(options: &mut OpenOptions, path: &Path) -> Result<File> {
    options.custom_flags(libc::O_DIRECT).open(path).map_err(|source| {
        if source.raw_os_error() == Some(libc::EINVAL) {
            return Error::invalid_argument(format!(
                "{}: its file system has no direct IO; turn off use_direct_reads and \
                 use_direct_io_for_flush_and_compaction",
                path.display()
            ));
        }
        io_error("open for direct IO", path, source)
    })
}

/// A file read past the page cache.
pub struct DirectReadFile {
    file: File,
    path: PathBuf,
    size: u64,
    /// Of offsets and lengths. Where the device has sectors of 512 bytes, a block is read with 0.5 KiB around it, not 4.
    alignment: usize,
}

impl DirectReadFile {
    /// Opens `path`.
    pub fn open(path: &Path) -> Result<DirectReadFile> {
        let file = open_direct(OpenOptions::new().read(true), path)?;
        let size = file.metadata().map_err(|source| io_error("stat", path, source))?.len();
        let alignment = sys::direct_read_alignment(&file).unwrap_or(ALIGNMENT);
        Ok(DirectReadFile { file, path: path.to_path_buf(), size, alignment })
    }
}

/// The bytes to read, in whole units of `alignment`, for `len` bytes from `offset`: where from, how many, and how many of
/// them come before the first one wanted.
pub(crate) fn aligned_span(offset: u64, len: usize, alignment: usize) -> (u64, usize, usize) {
    let skip = (offset % alignment as u64) as usize;
    (offset - skip as u64, (skip + len).next_multiple_of(alignment), skip)
}

std::thread_local! {
    /// One bounce buffer for each reading thread, as large as its largest read.
    static BOUNCE: std::cell::RefCell<Option<AlignedBuffer>> = const { std::cell::RefCell::new(None) };
}

impl ReadFile for DirectReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let (from, len, skip) = aligned_span(offset, buf.len(), self.alignment);
        BOUNCE.with(|bounce| {
            let mut bounce = bounce.borrow_mut();
            if bounce.as_ref().is_none_or(|b| b.len() < len) {
                *bounce = Some(AlignedBuffer::new(len));
            }
            let aligned = &mut bounce.as_mut().expect("just filled")[..len];
            let got = read_fully(&self.file, from, aligned)
                .map_err(|source| io_error("read", &self.path, source))?;
            let usable = got.saturating_sub(skip).min(buf.len());
            buf[..usable].copy_from_slice(&aligned[skip..skip + usable]);
            Ok(usable)
        })
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(Descriptor { fd: self.file.as_raw_fd(), direct: Some(self.alignment) })
    }
}

/// A file written past the page cache.
pub struct DirectWriteFile {
    output: Output,
    buffer: AlignedBuffer,
    /// Bytes in `buffer`.
    filled: usize,
    /// File offset of the start of `buffer`; aligned.
    start: u64,
    /// Bytes in `buffer` are not in the file.
    is_behind: bool,
    /// The file is longer than what was appended: its last block is padded.
    is_padded: bool,
}

impl DirectWriteFile {
    /// Creates `path`, gathering writes of `buffer_size` bytes.
    pub fn create(path: &Path, buffer_size: usize) -> Result<DirectWriteFile> {
        let file = open_direct(OpenOptions::new().write(true).create(true).truncate(true), path)?;
        let buffer = AlignedBuffer::new(buffer_size.clamp(64 << 10, 16 << 20));
        let output = Output::new(file, path, 0);
        Ok(DirectWriteFile { output, buffer, filled: 0, start: 0, is_behind: false, is_padded: false })
    }

    /// Writes the first `len` bytes of the buffer, which are whole blocks, at their place.
    fn write_blocks(&mut self, len: usize) -> Result<()> {
        self.output.write(|file| file.write_all_at(&self.buffer[..len], self.start))
    }

    /// Writes what is buffered, the last block padded with zeros. The partial block stays buffered.
    fn write_padded(&mut self) -> Result<()> {
        let padded = self.filled.next_multiple_of(ALIGNMENT);
        self.buffer[self.filled..padded].fill(0);
        self.write_blocks(padded)?;
        (self.is_behind, self.is_padded) = (false, padded > self.filled);
        let whole = self.filled / ALIGNMENT * ALIGNMENT;
        self.buffer.copy_within(whole..self.filled, 0);
        self.start += whole as u64;
        self.filled -= whole;
        Ok(())
    }

    /// Writes what is buffered and cuts the padding off, so that a sync makes the length durable, too.
    fn write_exactly(&mut self) -> Result<()> {
        self.flush()?;
        if self.is_padded {
            self.output.set_len(self.start + self.filled as u64)?;
            self.is_padded = false;
        }
        Ok(())
    }
}

impl WriteFile for DirectWriteFile {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.output.check()?;
        while !bytes.is_empty() {
            let room = self.buffer.len() - self.filled;
            let now = room.min(bytes.len());
            self.buffer[self.filled..self.filled + now].copy_from_slice(&bytes[..now]);
            self.filled += now;
            bytes = &bytes[now..];
            self.is_behind = true;
            if self.filled == self.buffer.len() {
                self.write_blocks(self.filled)?;
                self.start += self.filled as u64;
                self.filled = 0;
                (self.is_behind, self.is_padded) = (false, false);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.output.check()?;
        if self.is_behind { self.write_padded() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<()> {
        self.write_exactly()?;
        self.output.sync_data()
    }

    fn sync_all(&mut self) -> Result<()> {
        self.write_exactly()?;
        self.output.sync_all()
    }

    fn len(&self) -> u64 {
        self.start + self.filled as u64
    }

    fn path(&self) -> &Path {
        self.output.path()
    }

    fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.output.measure(times);
    }

    fn close(&mut self) -> Result<()> {
        self.write_exactly()
    }
}
