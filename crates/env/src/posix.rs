//! The real file system, through the page cache. Direct IO is in `direct.rs`, reads of mapped files in `mapped.rs`.
//!
//! Reads are `pread`, writes go through a user-space buffer of the size asked for (0: each append is one
//! `write`). The failure rule of writing is in `output.rs`.

use crate::ahead::PreallocatedFile;
use crate::direct::{DirectReadFile, DirectWriteFile};
use crate::file_system::{
    Access, Descriptor, DirectIo, FileLock, FileSystem, OpenRead, OpenWrite, ReadFile, WriteFile,
};
use crate::mapped::MappedReadFile;
use crate::output::Output;
use crate::sys;
use crate::write_times::WriteTimes;
use outcrop_base::{Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixFs;

/// The error of writing over a file that is known under another name as well.
pub(crate) fn several_names(path: &Path) -> Error {
    Error::invalid_argument(format!("{}: has several names, and is not written over", path.display()))
}

/// An IO error about `path`.
pub(crate) fn io_error(what: &str, path: &Path, source: io::Error) -> Error {
    Error::io(format!("{what} {}", path.display()), source)
}

struct PosixReadFile {
    file: File,
    path: PathBuf,
    size: u64,
}

impl ReadFile for PosixReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        read_fully(&self.file, offset, buf).map_err(|source| io_error("read", &self.path, source))
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(Descriptor { fd: self.file.as_raw_fd(), direct: None })
    }

    fn prefetch(&self, offset: u64, len: usize) {
        sys::advise_will_need(&self.file, offset, len as u64);
    }
}

/// Reads until `buf` is full or the file ends.
pub(crate) fn read_fully(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Largest buffer: a larger one has left the processor's nearer caches by the time it is written.
const MAX_BUFFER: usize = 256 << 10;

struct PosixWriteFile {
    output: Output,
    buffer: Vec<u8>,
    buffer_size: usize,
    len: u64,
    /// Bytes handed to the operating system.
    written: u64,
    /// Bytes the file had when it was reused.
    reused_len: u64,
}

impl PosixWriteFile {
    fn new(file: File, path: &Path, options: &OpenWrite) -> PosixWriteFile {
        let buffer_size = options.buffer_size.min(MAX_BUFFER);
        PosixWriteFile {
            output: Output::new(file, path, options.bytes_per_sync),
            buffer: Vec::with_capacity(buffer_size),
            buffer_size,
            len: 0,
            written: 0,
            reused_len: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write(|file| file.write_all(bytes))?;
        self.written += bytes.len() as u64;
        self.output.push_range(self.written);
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }
}

impl WriteFile for PosixWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.check()?;
        self.len += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > self.buffer_size && !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        if bytes.len() >= self.buffer_size {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.output.check()?;
        if self.buffer.is_empty() { Ok(()) } else { self.write_buffer() }
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.output.sync_data()
    }

    fn sync_all(&mut self) -> Result<()> {
        self.flush()?;
        self.output.sync_all()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        self.output.path()
    }

    fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.output.measure(times);
    }

    fn close(&mut self) -> Result<()> {
        self.flush()?;
        if self.reused_len > self.len { self.output.set_len(self.len) } else { Ok(()) }
    }
}

/// Lock files this process holds, by name and by identity: a record lock of a process does not stop the process itself, and
/// is released with the first descriptor of the file that the process closes. Locked while a lock is taken and until it is released.
static HELD: Mutex<BTreeMap<PathBuf, FileId>> = Mutex::new(BTreeMap::new());

/// Device and inode.
type FileId = (u64, u64);

fn id_of(metadata: &fs::Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

struct PosixLock {
    /// Closing it releases the lock, if no child that was forked has it too.
    file: Option<File>,
    path: PathBuf,
    /// The process that took it.
    process: u32,
}

impl FileLock for PosixLock {}

impl Drop for PosixLock {
    fn drop(&mut self) {
        // Until the file is closed nobody may take the lock again: closing it would release that one too.
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = self.file.take()
            && self.process == std::process::id()
        {
            // A child that was forked meanwhile may live on. If this fails the lock is released with the last of them.
            let _ = sys::unlock_whole_file(&file);
        }
        held.remove(&self.path);
    }
}

impl FileSystem for PosixFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        if options.io == DirectIo::Direct {
            return Ok(Arc::new(DirectReadFile::open(path)?));
        }
        let file = File::open(path).map_err(|source| io_error("open", path, source))?;
        let size = file.metadata().map_err(|source| io_error("stat", path, source))?.len();
        if options.mapped
            && !cfg!(miri)
            && let Some(mapped) = MappedReadFile::map(&file, path, size, options.access)
        {
            return Ok(Arc::new(mapped));
        }
        match options.access {
            Access::Random => sys::advise_random(&file),
            Access::Sequential => sys::advise_sequential(&file),
        }
        Ok(Arc::new(PosixReadFile { file, path: path.to_path_buf(), size }))
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        if options.io == DirectIo::Direct {
            return Ok(Box::new(DirectWriteFile::create(path, options.buffer_size)?));
        }
        if let Some(filler) = options.ahead {
            return Ok(Box::new(PreallocatedFile::create(path, &options, filler)?));
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|source| io_error("create", path, source))?;
        Ok(Box::new(PosixWriteFile::new(file, path, &options)))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let names = fs::metadata(old).map_err(|source| io_error("stat", old, source))?.nlink();
        if names > 1 {
            return Err(several_names(old));
        }
        self.rename(old, path)?;
        if let Some(filler) = options.ahead {
            return Ok(Box::new(PreallocatedFile::over(path, &options, filler)?));
        }
        let file = OpenOptions::new().write(true).open(path);
        let file = file.map_err(|source| io_error("open", path, source))?;
        let reused_len = file.metadata().map_err(|source| io_error("stat", path, source))?.len();
        let new = PosixWriteFile::new(file, path, &options);
        Ok(Box::new(PosixWriteFile { reused_len, ..new }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|source| io_error("stat", path, source))
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        Ok(fs::metadata(path).map_err(|source| io_error("stat", path, source))?.len())
    }

    fn modified_seconds(&self, path: &Path) -> Result<Option<u64>> {
        let metadata = fs::metadata(path).map_err(|source| io_error("stat", path, source))?;
        let since_epoch =
            metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Ok(since_epoch.map(|duration| duration.as_secs()))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let entries = fs::read_dir(dir).map_err(|source| io_error("list", dir, source))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| io_error("list", dir, source))?;
            // A name that is not UTF-8 cannot be one of ours.
            names.extend(entry.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).map_err(|source| io_error("create directory", dir, source))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|source| io_error("remove", path, source))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        fs::remove_dir(dir).map_err(|source| io_error("remove directory", dir, source))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        fs::rename(source, target).map_err(|error| io_error("rename to", target, error))
    }

    fn hard_link(&self, source: &Path, target: &Path) -> Result<()> {
        fs::hard_link(source, target).map_err(|error| match error.kind() {
            io::ErrorKind::CrossesDevices => Error::not_supported(format!(
                "link {}: {} is on another file system",
                source.display(),
                target.display()
            )),
            _ => io_error("link to", target, error),
        })
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(|source| io_error("open", path, source))?;
        file.sync_all().map_err(|source| io_error("sync", path, source))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let file = File::open(dir).map_err(|source| io_error("open directory", dir, source))?;
        file.sync_all().map_err(|source| io_error("sync directory", dir, source))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let canonical = canonical_lock_path(path)?;
        let refused = |who: &str| {
            let source = io::Error::from(io::ErrorKind::WouldBlock);
            Error::io(format!("lock {}: the database is open in {who}", path.display()), source)
        };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        // Not opened before the check: closing any descriptor of the file would release a record lock. Under another name, such
        // as a bind mount's, it is the same file.
        let there = fs::metadata(path).ok().map(|metadata| id_of(&metadata));
        if held.contains_key(&canonical) || there.is_some_and(|id| held.values().any(|other| *other == id)) {
            return Err(refused("this process"));
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| io_error("open lock", path, source))?;
        match sys::try_lock_whole_file(&file) {
            Ok(()) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
                return Err(refused("another process"));
            }
            Err(error) => return Err(io_error("lock", path, error)),
        }
        let id = file.metadata().map_err(|source| io_error("stat", path, source))?;
        held.insert(canonical.clone(), id_of(&id));
        Ok(Box::new(PosixLock { file: Some(file), path: canonical, process: std::process::id() }))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| crate::absolute(path))
    }

    fn identity(&self, path: &Path) -> Option<(u64, u64)> {
        fs::metadata(path).ok().map(|metadata| id_of(&metadata))
    }

    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        sys::free_space(dir).map(Some).map_err(|source| io_error("statvfs", dir, source))
    }
}

/// One spelling for each lock file, whether or not it exists yet.
fn canonical_lock_path(path: &Path) -> Result<PathBuf> {
    let dir = crate::file_system::parent_of(path);
    let dir = fs::canonicalize(dir).map_err(|source| io_error("open directory", dir, source))?;
    Ok(dir.join(path.file_name().unwrap_or_default()))
}
