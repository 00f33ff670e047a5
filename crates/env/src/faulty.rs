//! A file system that fails on command: the Nth change, or every change once it is full.
//!
//! Wraps [`MemoryFs`]. Every operation that changes something is counted; tests run a history once to learn
//! how many there are, then once for each of them with a failure there.

use crate::file_system::{FileLock, FileSystem, OpenRead, OpenWrite, ReadFile, WriteFile};
use crate::memory::MemoryFs;
use crate::write_times::WriteTimes;
use outcrop_base::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of change that an operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes appended to a file.
    Append,
    /// A file made durable.
    Sync,
    /// A directory made durable.
    SyncDir,
    /// A file created.
    Create,
    /// A file renamed or linked.
    Rename,
    /// A file removed.
    Remove,
}

/// Decides which changes fail. All orderings are relaxed: a test sets it up before it acts.
#[derive(Debug)]
pub struct Faults {
    changes: AtomicU64,
    syncs: AtomicU64,
    fail_from: AtomicU64,
    /// Exclusive.
    fail_until: AtomicU64,
    opens_to_fail: AtomicU64,
    errno: AtomicI32,
    only: Mutex<Option<String>>,
    space_left: AtomicU64,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            changes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            fail_from: AtomicU64::new(u64::MAX),
            fail_until: AtomicU64::new(u64::MAX),
            opens_to_fail: AtomicU64::new(0),
            errno: AtomicI32::new(EIO),
            only: Mutex::new(None),
            space_left: AtomicU64::new(u64::MAX),
        }
    }
}

/// Input/output error.
pub const EIO: i32 = 5;
/// No space left on device.
pub const ENOSPC: i32 = 28;
/// Too many open files.
pub const EMFILE: i32 = 24;

impl Faults {
    /// Changes counted so far, failed ones included.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// File and directory syncs counted so far.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// The change with this number (counting from 0, as [`Faults::changes`] counts) fails with `errno`; if
    /// `and_after`, so do all later ones.
    pub fn fail_at(&self, change: u64, errno: i32, and_after: bool) {
        self.fail_range(change, if and_after { u64::MAX } else { 1 }, errno);
    }

    /// The change with this number and the next, `count` in all, fail with `errno`.
    pub fn fail_range(&self, change: u64, count: u64, errno: i32) {
        self.errno.store(errno, Ordering::Relaxed);
        self.fail_until.store(change.saturating_add(count), Ordering::Relaxed);
        self.fail_from.store(change, Ordering::Relaxed);
    }

    /// The next `count` files that are opened for reading fail with `errno`.
    pub fn fail_opens(&self, count: u64, errno: i32) {
        self.errno.store(errno, Ordering::Relaxed);
        self.opens_to_fail.store(count, Ordering::Relaxed);
    }

    /// How many of [`Faults::fail_opens`] are left.
    pub fn opens_to_fail(&self) -> u64 {
        self.opens_to_fail.load(Ordering::Relaxed)
    }

    /// Only changes to paths that contain `text` are counted and fail; `None`: all.
    pub fn only(&self, text: Option<&str>) {
        *self.only.lock().unwrap_or_else(PoisonError::into_inner) = text.map(str::to_string);
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.fail_from.store(u64::MAX, Ordering::Relaxed);
        self.opens_to_fail.store(0, Ordering::Relaxed);
        self.space_left.store(u64::MAX, Ordering::Relaxed);
    }

    /// After `bytes` more appended bytes the device is full.
    pub fn limit_space(&self, bytes: u64) {
        self.space_left.store(bytes, Ordering::Relaxed);
    }

    fn check(&self, change: Change, path: &Path, bytes: u64) -> Result<()> {
        {
            let only = self.only.lock().unwrap_or_else(PoisonError::into_inner);
            if only.as_ref().is_some_and(|text| !path.to_string_lossy().contains(text.as_str())) {
                return Ok(());
            }
        }
        let number = self.changes.fetch_add(1, Ordering::Relaxed);
        if matches!(change, Change::Sync | Change::SyncDir) {
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        let from = self.fail_from.load(Ordering::Relaxed);
        if number >= from && number < self.fail_until.load(Ordering::Relaxed) {
            return Err(failure(change, path, self.errno.load(Ordering::Relaxed)));
        }
        let left = self.space_left.load(Ordering::Relaxed);
        if left != u64::MAX {
            if bytes > left {
                return Err(failure(change, path, ENOSPC));
            }
            self.space_left.store(left - bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn failure(change: Change, path: &Path, errno: i32) -> Error {
    Error::io(format!("{change:?} {}", path.display()), io::Error::from_raw_os_error(errno))
}

/// A [`MemoryFs`] whose changes can fail. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct FaultyFs {
    inner: MemoryFs,
    faults: Arc<Faults>,
}

impl FaultyFs {
    /// Wraps `inner`; nothing fails yet.
    pub fn new(inner: MemoryFs) -> FaultyFs {
        FaultyFs { inner, faults: Arc::default() }
    }

    /// The faults that are planned.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The file system below.
    pub fn memory(&self) -> &MemoryFs {
        &self.inner
    }
}

struct FaultyWriteFile {
    inner: Box<dyn WriteFile>,
    faults: Arc<Faults>,
    path: PathBuf,
    failed: Option<Error>,
}

impl FaultyWriteFile {
    fn attempt(&mut self, change: Change, bytes: u64) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.faults.check(change, &self.path, bytes).inspect_err(|error| self.failed = Some(error.clone()))
    }
}

impl WriteFile for FaultyWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_marked(bytes, &[])
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.attempt(Change::Append, bytes.len() as u64)?;
        self.inner.append_marked(bytes, end)
    }

    fn flush(&mut self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.inner.flush(),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.attempt(Change::Sync, 0).inspect_err(|_| {
            // How far a sync that fails has come by then is unknown: its data may be on the way to the disk.
            let _ = self.inner.flush();
        })?;
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.inner.measure(times);
    }

    fn close(&mut self) -> Result<()> {
        self.flush()?;
        self.inner.close()
    }
}

impl FileSystem for FaultyFs {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        let left = &self.faults.opens_to_fail;
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let errno = self.faults.errno.load(Ordering::Relaxed);
            return Err(Error::io(format!("open {}", path.display()), io::Error::from_raw_os_error(errno)));
        }
        self.inner.open_read(path, options)
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.faults.check(Change::Create, path, 0)?;
        let inner = self.inner.create(path, options)?;
        Ok(Box::new(FaultyWriteFile {
            inner,
            faults: self.faults.clone(),
            path: path.to_path_buf(),
            failed: None,
        }))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.faults.check(Change::Rename, path, 0)?;
        let inner = self.inner.reuse(old, path, options)?;
        Ok(Box::new(FaultyWriteFile {
            inner,
            faults: self.faults.clone(),
            path: path.to_path_buf(),
            failed: None,
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.inner.file_size(path)
    }

    fn modified_seconds(&self, path: &Path) -> Result<Option<u64>> {
        self.inner.modified_seconds(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.faults.check(Change::Create, dir, 0)?;
        self.inner.create_dir_all(dir)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.faults.check(Change::Remove, path, 0)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.faults.check(Change::Remove, dir, 0)?;
        self.inner.remove_dir(dir)
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.faults.check(Change::Rename, target, 0)?;
        self.inner.rename(source, target)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> Result<()> {
        self.faults.check(Change::Rename, target, 0)?;
        self.inner.hard_link(source, target)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.faults.check(Change::Sync, path, 0)?;
        self.inner.sync_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.faults.check(Change::SyncDir, dir, 0)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }

    fn free_space(&self, _dir: &Path) -> Result<Option<u64>> {
        Ok(Some(self.faults.space_left.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::ErrorKind;

    #[test]
    fn a_failed_sync_is_final_for_its_file() {
        let fs = FaultyFs::new(MemoryFs::new());
        fs.create_dir_all(Path::new("/db")).unwrap();
        let mut file = fs.create(Path::new("/db/f"), OpenWrite::default()).unwrap();
        file.append(b"abc").unwrap();
        fs.faults().fail_at(fs.faults().changes(), EIO, false);
        assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::IoError);
        assert!(file.append(b"d").is_err());
        assert!(file.sync().is_err());
    }

    #[test]
    fn a_full_device_refuses_what_does_not_fit() {
        let fs = FaultyFs::new(MemoryFs::new());
        fs.create_dir_all(Path::new("/db")).unwrap();
        let mut file = fs.create(Path::new("/db/f"), OpenWrite::default()).unwrap();
        fs.faults().limit_space(4);
        file.append(b"abc").unwrap();
        assert_eq!(file.append(b"de").unwrap_err().kind(), ErrorKind::NoSpace);
    }
}
