//! The disk of a simulation: files in memory that take time, fail, and lose power.
//!
//! Every operation is a step at which another thread may go on. Faults are drawn from the simulation's own stream: an operation
//! fails with EIO or ENOSPC, an append after a part of its bytes; a read of a table or blob file has a bit flipped, which its checksum
//! has to catch. Without power no change reaches the disk any more; reads go on, as nothing that is read then counts.

use crate::blame::{FaultKind, Faults, Moment, NO_POWER, Told};
use crate::races::{self, Activity};
use outcrop_base::{Error, Result};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileLock, FileSystem, OpenRead, OpenWrite, ReadFile, WriteFile};
use parking_lot::world;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The trouble of a cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// One change of a file or a name in so many fails; 0: none.
    pub change_fails_one_in: u64,
    /// One read in so many fails; 0: none.
    pub read_fails_one_in: u64,
    /// One read of a table or blob file in so many has a bit flipped; 0: none.
    pub bit_flips_one_in: u64,
    /// The step at which power goes.
    pub power_until: Option<u64>,
    /// The longest that a slow operation takes.
    pub slowest: Duration,
    /// A planted mistake: WALs are not made durable, though it is said that they are.
    pub syncs_lie: bool,
}

#[derive(Default)]
struct State {
    trouble: Mutex<Trouble>,
    off: AtomicBool,
    /// Faults in this cycle, and the number of all.
    faults: Mutex<Faults>,
    all_faults: AtomicU64,
}

/// The disk. Cloning shares it.
#[derive(Clone, Default)]
pub struct Disk {
    memory: MemoryFs,
    state: Arc<State>,
}

impl Disk {
    /// The files.
    pub fn memory(&self) -> &MemoryFs {
        &self.memory
    }

    /// Power is there, and from now on this may happen.
    pub fn begin(&self, trouble: Trouble) {
        *self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        self.state.off.store(false, Ordering::Relaxed);
        *self.faults() = Faults::default();
    }

    /// Nothing is changed any more.
    pub fn switch_off(&self) {
        if !self.state.off.swap(true, Ordering::Relaxed) {
            races::at(Activity::End);
        }
        self.faults().power_goes();
    }

    /// No faults come from now on; the power may still go.
    pub fn calm(&self) {
        let mut trouble = self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Trouble { change_fails_one_in: 0, read_fails_one_in: 0, bit_flips_one_in: 0, ..*trouble };
    }

    /// True once the power is gone.
    pub fn is_off(&self) -> bool {
        self.state.off.load(Ordering::Relaxed)
    }

    /// Without power, the database is told to stop.
    pub fn give_up(&self) {
        self.faults().give_up();
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.state.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now: an operation of the database begins.
    pub fn moment(&self) -> Moment {
        self.faults().moment(world::steps())
    }

    /// A write that began then was acknowledged.
    pub fn acknowledged(&self, began: Moment) {
        self.faults().acknowledged(began, world::steps());
    }

    /// See [`Faults::excuse`].
    pub fn excuse(&self, error: &Error, how: Told, began: Moment) -> std::result::Result<(), String> {
        self.faults().excuse(error, how, began, world::steps())
    }

    /// Faults so far.
    pub fn all_faults(&self) -> u64 {
        self.state.all_faults.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Trouble {
        *self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault of a file; gives its name.
    fn fault(&self, kind: FaultKind, path: &Path) -> String {
        self.state.all_faults.fetch_add(1, Ordering::Relaxed);
        self.faults().add(kind, path)
    }

    /// Lets an operation take its time; power may go meanwhile.
    fn pass(&self, slow_one_in: u64) -> Trouble {
        let trouble = self.trouble();
        if world::draw(slow_one_in) == 0 {
            world::sleep(Duration::from_nanos(1000 + world::draw(trouble.slowest.as_nanos() as u64)));
        } else {
            world::step();
        }
        if trouble.power_until.is_some_and(|until| world::steps() >= until) {
            self.switch_off();
        }
        trouble
    }

    /// A change of `path`: passes, or fails.
    fn change(&self, what: &str, path: &Path) -> Result<()> {
        let trouble = self.pass(if what == "sync" { 2 } else { 30 });
        if self.is_off() {
            return Err(failure(what, path, NO_POWER, EIO));
        }
        if drawn(trouble.change_fails_one_in) {
            let (kind, errno) = if drawn(2) { (FaultKind::Io, EIO) } else { (FaultKind::NoSpace, ENOSPC) };
            return Err(failure(what, path, &self.fault(kind, path), errno));
        }
        Ok(())
    }

    fn wrap(&self, path: &Path, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        Box::new(Writing { inner, disk: self.clone(), path: path.to_path_buf(), failed: None })
    }
}

fn drawn(one_in: u64) -> bool {
    one_in > 0 && world::draw(one_in) == 0
}

fn failure(what: &str, path: &Path, fault: &str, errno: i32) -> Error {
    Error::io(format!("{what} {} {fault}", path.display()), io::Error::from_raw_os_error(errno))
}

struct Reading {
    inner: Arc<dyn ReadFile>,
    disk: Disk,
}

impl ReadFile for Reading {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let trouble = self.disk.pass(20);
        if drawn(trouble.read_fails_one_in) {
            let fault = self.disk.fault(FaultKind::Io, self.path());
            return Err(failure("read", self.path(), &fault, EIO));
        }
        let got = self.inner.read_at(offset, buf)?;
        let checked = self.path().extension().is_some_and(|kind| kind == "sst" || kind == "blob");
        if checked && got > 0 && drawn(trouble.bit_flips_one_in) {
            self.disk.fault(FaultKind::Flip, self.path());
            buf[world::draw(got as u64) as usize] ^= 1 << world::draw(8);
        }
        Ok(got)
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

struct Writing {
    inner: Box<dyn WriteFile>,
    disk: Disk,
    path: PathBuf,
    /// A failure is final for its file.
    failed: Option<Error>,
}

impl Writing {
    fn attempt(&mut self, what: &str) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.disk.change(what, &self.path).inspect_err(|error| self.failed = Some(error.clone()))
    }
}

impl WriteFile for Writing {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_marked(bytes, &[])
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        let before = self.failed.is_some();
        self.attempt("append").inspect_err(|_| {
            // A write that fails may have written a part.
            if !before {
                let part = world::draw(bytes.len() as u64 + 1) as usize;
                let _ = self.inner.append(&bytes[..part]);
                let _ = self.inner.flush();
            }
        })?;
        self.inner.append_marked(bytes, end)
    }

    fn flush(&mut self) -> Result<()> {
        self.attempt("flush")?;
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        let before = self.failed.is_some();
        self.attempt("sync").inspect_err(|_| {
            // How far a sync that fails has come is unknown.
            if !before && drawn(2) {
                let _ = self.inner.flush();
            }
        })?;
        let lies = self.disk.trouble().syncs_lie && self.path.extension().is_some_and(|kind| kind == "log");
        if lies { self.inner.flush() } else { self.inner.sync() }
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn close(&mut self) -> Result<()> {
        self.attempt("close")?;
        self.inner.close()
    }
}

impl FileSystem for Disk {
    fn open_read(&self, path: &Path, options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        let trouble = self.pass(30);
        if drawn(trouble.read_fails_one_in) {
            return Err(failure("open", path, &self.fault(FaultKind::Io, path), EIO));
        }
        Ok(Arc::new(Reading { inner: self.memory.open_read(path, options)?, disk: self.clone() }))
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.change("create", path)?;
        Ok(self.wrap(path, self.memory.create(path, options)?))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        self.change("rename", path)?;
        Ok(self.wrap(path, self.memory.reuse(old, path, options)?))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.memory.exists(path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.memory.file_size(path)
    }

    fn modified_seconds(&self, path: &Path) -> Result<Option<u64>> {
        self.memory.modified_seconds(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.memory.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.change("create", dir)?;
        self.memory.create_dir_all(dir)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.change("remove", path)?;
        self.memory.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.change("remove", dir)?;
        self.memory.remove_dir(dir)
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.change("rename", target)?;
        self.memory.rename(source, target)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> Result<()> {
        self.change("link", target)?;
        self.memory.hard_link(source, target)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.change("sync", path)?;
        self.memory.sync_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.change("sync", dir)?;
        self.memory.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.memory.lock(path)
    }

    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        self.memory.free_space(dir)
    }
}
