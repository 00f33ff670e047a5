//! The file system as the engine uses it.
//!
//! Durability rule, the same on every implementation: appended bytes survive a crash of the machine
//! only after [`WriteFile::sync`] returned; a created, renamed or linked name survives only after
//! [`FileSystem::sync_dir`] of its directory returned. Bytes handed to the operating system
//! ([`WriteFile::flush`]) survive a crash of the process.

use crate::write_times::WriteTimes;
use outcrop_base::{Error, Result};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a file will be read; a hint for the operating system's readahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Point lookups: readahead off.
    #[default]
    Random,
    /// Front to back: readahead on.
    Sequential,
}

/// Whether IO goes through the operating system's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectIo {
    /// Through the page cache.
    #[default]
    Buffered,
    /// O_DIRECT: to the device, aligned internally. Callers need not align anything.
    Direct,
}

/// How to open a file for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenRead {
    /// Buffered or direct.
    pub io: DirectIo,
    /// Expected access pattern.
    pub access: Access,
    /// A buffered file is mapped, and read from there without calls, if the file system can map it. A page that the device fails to read
    /// then ends the process by SIGBUS, and so does one that was cut from the file after it was opened.
    pub mapped: bool,
}

/// How to create a file for writing.
#[derive(Clone, Copy, Debug)]
pub struct OpenWrite {
    /// Buffered or direct.
    pub io: DirectIo,
    /// Appends are gathered in a user-space buffer of this many bytes; 0: each append is one write.
    pub buffer_size: usize,
    /// Written bytes are pushed towards the device each time this many have gathered; 0: only at sync.
    pub bytes_per_sync: u64,
    /// The file may have space ahead of what is appended, filled with this byte, or with what a
    /// [reused](FileSystem::reuse) file held, until it is [closed](WriteFile::close). Such a file has no buffer.
    pub ahead: Option<u8>,
}

impl Default for OpenWrite {
    fn default() -> Self {
        OpenWrite { io: DirectIo::Buffered, buffer_size: 64 << 10, bytes_per_sync: 0, ahead: None }
    }
}

/// A file as the operating system knows it, open for as long as the [`ReadFile`] it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Its number.
    pub fd: RawFd,
    /// It is read past the page cache: offset and length must be multiples of this, memory aligned to a page.
    pub direct: Option<usize>,
}

/// A file opened for positioned reads. Shared freely between threads.
pub trait ReadFile: Send + Sync {
    /// Reads into `buf` from `offset`, returning fewer bytes than asked only at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// The file's size when it was opened, in bytes.
    fn size(&self) -> u64;

    /// The path it was opened under, for error messages.
    fn path(&self) -> &Path;

    /// Hints that `len` bytes from `offset` will be read soon. Never fails, may do nothing.
    fn prefetch(&self, offset: u64, len: usize) {
        let _ = (offset, len);
    }

    /// The operating system's handle, if the file is one of its own: for [`crate::read_batch`].
    fn descriptor(&self) -> Option<Descriptor> {
        None
    }

    /// True if reads go to the device, past the operating system's cache.
    fn is_direct(&self) -> bool {
        self.descriptor().is_some_and(|descriptor| descriptor.direct.is_some())
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// Corruption naming file and offset if the file ends before, besides IO errors.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let got = self.read_at(offset, buf)?;
        if got == buf.len() {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "{}: truncated: wanted {} bytes at offset {offset}, file has {got}",
            self.path().display(),
            buf.len()
        )))
    }
}

/// A file being written front to back by one owner.
///
/// After any error its tail is unknown: every later call fails with the first error again.
pub trait WriteFile: Send {
    /// Appends `bytes`.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Appends `bytes`. In a file with space [ahead](OpenWrite::ahead) `end` is put after them, where it is no part of
    /// the file's length and the next append overwrites it: it keeps readers from the bytes after it. A crash of the
    /// process then leaves either the `end` before or the whole of both. In other files `end` is left out.
    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        let _ = end;
        self.append(bytes)
    }

    /// Hands everything appended to the operating system.
    fn flush(&mut self) -> Result<()>;

    /// Makes everything appended durable (fdatasync; includes [`WriteFile::flush`]).
    fn sync(&mut self) -> Result<()>;

    /// As [`WriteFile::sync`], with metadata too (fsync).
    fn sync_all(&mut self) -> Result<()> {
        self.sync()
    }

    /// Bytes appended so far.
    fn len(&self) -> u64;

    /// True before the first append.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path it was created under, for error messages.
    fn path(&self) -> &Path;

    /// From here on the time of its calls is added to `times`. A file that does not know how does nothing.
    fn measure(&mut self, times: &Arc<WriteTimes>) {
        let _ = times;
    }

    /// Memory that this file no longer uses and that takes long to unmap, for another thread to drop. Asked for after an
    /// append, and after [`WriteFile::close`]; otherwise it is dropped with the file.
    fn retired_window(&mut self) -> Option<RetiredWindow> {
        None
    }

    /// Flushes and gives the file its exact length. Does not sync, not even that. Dropping without it flushes nothing.
    fn close(&mut self) -> Result<()>;
}

/// Memory to drop where nobody waits for it.
pub struct RetiredWindow(#[expect(dead_code, reason = "held to be dropped")] pub(crate) Box<dyn Send>);

/// A held lock file; dropping it releases the lock.
pub trait FileLock: Send + Sync {}

/// Files and directories. All paths are used as given.
pub trait FileSystem: Send + Sync {
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>>;

    /// Creates a file for writing; an existing one is truncated.
    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>>;

    /// Gives the file `old` the name `path` and opens it for writing from its start, without cutting it: what is not
    /// overwritten stays until [`WriteFile::close`] cuts it. Writing over blocks a file has is cheaper than making it longer,
    /// and cheaper to sync.
    ///
    /// # Errors
    /// InvalidArgument, and nothing is changed, if the file has another name as well: the file under that name would change with it.
    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>>;

    /// True if `path` exists. An error other than "not found" is an error, not `false`.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Size of a file in bytes.
    fn file_size(&self, path: &Path) -> Result<u64>;

    /// When the file was written last, seconds since the epoch; `None` if the file system does not know.
    fn modified_seconds(&self, path: &Path) -> Result<Option<u64>> {
        let _ = path;
        Ok(None)
    }

    /// Names of the entries of a directory, in no particular order.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Creates a directory and its parents; existing ones are fine.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> Result<()>;

    /// Renames a file, replacing `target` if it exists.
    fn rename(&self, source: &Path, target: &Path) -> Result<()>;

    /// Makes `target` another name of the file `source`. NotSupported across file systems.
    fn hard_link(&self, source: &Path, target: &Path) -> Result<()>;

    /// Makes the contents of an existing file durable, as [`WriteFile::sync_all`] does for whoever writes it.
    fn sync_file(&self, path: &Path) -> Result<()>;

    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes the exclusive lock `path`, creating the file if needed.
    ///
    /// # Errors
    /// IoError naming the path if this process or another already holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// One spelling of `path` for all that it may have, as far as the file system knows them.
    fn canonical(&self, path: &Path) -> PathBuf {
        crate::absolute(path)
    }

    /// Device and number of a file or directory: the same under all its names, and another for a copy. `None` if it is not there or the
    /// file system has no such numbers.
    fn identity(&self, path: &Path) -> Option<(u64, u64)> {
        let _ = path;
        None
    }

    /// Bytes an unprivileged process can still write under `dir`, where known.
    fn free_space(&self, dir: &Path) -> Result<Option<u64>>;

    /// As [`FileSystem::create_dir_all`]; the names of directories that it creates are durable on return, and of those that an earlier
    /// call created and failed to make durable.
    fn create_dir_all_durably(&self, dir: &Path) -> Result<()> {
        let mut missing = Vec::new();
        let mut first_there = None;
        for dir in dir.ancestors().filter(|dir| *dir != Path::new("")) {
            if self.exists(dir)? {
                first_there = Some(dir);
                break;
            }
            missing.push(dir);
        }
        let sync_name = |dir: &Path| match self.sync_dir(parent_of(dir)) {
            // It is in a directory that this process cannot have created it in, may not read, or that cannot be synced.
            Err(error) if cannot_be_synced(&error) => Ok(()),
            synced => synced,
        };
        first_there.map_or(Ok(()), sync_name)?;
        for dir in missing.into_iter().rev() {
            self.create_dir_all(dir)?;
            sync_name(dir)?;
        }
        Ok(())
    }

    /// The whole contents of a file.
    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        let file = self.open_read(path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        let mut contents = vec![0; file.size() as usize];
        let got = file.read_at(0, &mut contents)?;
        contents.truncate(got);
        Ok(contents)
    }

    /// Replaces `path` by a file holding `contents`, durably: written to `temporary`, synced, renamed,
    /// directory synced. A crash leaves the old file or the new one.
    fn replace(&self, path: &Path, temporary: &Path, contents: &[u8]) -> Result<()> {
        let mut file = self.create(temporary, OpenWrite::default())?;
        file.append(contents)?;
        file.sync()?;
        file.close()?;
        drop(file);
        self.rename(temporary, path)?;
        self.sync_dir(parent_of(path))
    }
}

/// True if a directory is not this process's to sync: it must not be read, or its file system knows no such thing.
fn cannot_be_synced(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    let kinds = [InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported];
    error.io_source().is_some_and(|error| kinds.contains(&error.kind()))
}

/// The directory of `path`; the current directory for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
