//! Files that are mapped and read from memory: no call for a read whose pages the operating system has.
//!
//! Bytes are copied out before anyone looks at them: pages of a mapped file change if the file does, which memory that Rust
//! lends out must not.
//!
//! Invariant: no page past the size that the file had at opening is touched. One that is gone all the same, as the file was cut since, or that the
//! device fails to read, ends the process by SIGBUS: there is no other way to be told.

use crate::file_system::{Access, ReadFile};
use crate::mapping::PAGE;
use crate::sys;
use outcrop_base::Result;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file read from its mapping.
pub struct MappedReadFile {
    start: *mut u8,
    /// Also of the mapping.
    len: usize,
    path: PathBuf,
}

// SAFETY: the mapping is only read, and ends with this value.
unsafe impl Send for MappedReadFile {}
// SAFETY: as above.
unsafe impl Sync for MappedReadFile {}

impl MappedReadFile {
    /// Maps `file`, which has `size` bytes; `None` if that cannot be done: it is empty, its file system maps nothing, or the process has as many
    /// mappings as it may have. The descriptor is not needed any more.
    pub fn map(file: &File, path: &Path, size: u64, access: Access) -> Option<MappedReadFile> {
        let len = usize::try_from(size).ok().filter(|len| *len > 0)?;
        let start = sys::map_for_reading(file, len, access).ok()?;
        Some(MappedReadFile { start, len, path: path.to_path_buf() })
    }
}

impl Drop for MappedReadFile {
    fn drop(&mut self) {
        sys::unmap(self.start, self.len);
    }
}

impl ReadFile for MappedReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let from = usize::try_from(offset).map_or(self.len, |offset| offset.min(self.len));
        let len = buf.len().min(self.len - from);
        // SAFETY: within the mapping, which lives as long as `self`; `buf` is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(self.start.add(from), buf.as_mut_ptr(), len) };
        Ok(len)
    }

    fn size(&self) -> u64 {
        self.len as u64
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn prefetch(&self, offset: u64, len: usize) {
        let from = usize::try_from(offset).map_or(self.len, |offset| offset.min(self.len));
        let end = from.saturating_add(len).min(self.len);
        let page = from / PAGE * PAGE;
        if page < end {
            // SAFETY: `page` is within the mapping.
            sys::advise_mapping_will_need(unsafe { self.start.add(page) }, end - page);
        }
    }
}
