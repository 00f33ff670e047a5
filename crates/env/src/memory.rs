//! A file system in memory that can lose bytes and names as a crash of the machine would.
//!
//! ```text
//! name -> file        bytes, what is durable of them, and what may be found of the rest: `contents.rs`
//! durable names       what `sync_dir` has made permanent
//! pending names       what was created, renamed and removed since; a crash may leave the first of these changes
//! ```
//! [`MemoryFs::crash`] goes back to what is durable; [`MemoryFs::crash_torn`] also keeps a random part of
//! what was not. Files are found by path text; directories exist once created.

mod contents;

use crate::file_system::{FileLock, FileSystem, OpenRead, OpenWrite, ReadFile, WriteFile, parent_of};
use crate::posix::several_names;
use crate::write_times::{Call, WriteTimes, timed};
use contents::{FileBytes, Loss};
use outcrop_base::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Shared = Arc<Mutex<FileBytes>>;

/// A name, and the file it is given or `None`.
type NameChange = (PathBuf, Option<Shared>);

/// One that is not durable. The directory is [`plain`]: it is compared at each sync of any.
#[derive(Debug)]
struct Pending {
    dir: PathBuf,
    path: PathBuf,
    file: Option<Shared>,
}

impl Pending {
    fn new((path, file): NameChange) -> Pending {
        Pending { dir: plain(parent_of(&path)), path, file }
    }
}

/// The path without double separators and `.`: equal paths have equal bytes then.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Shared>,
    /// Names that would exist after a crash, and the files they name.
    durable: BTreeMap<PathBuf, Shared>,
    /// Changes of names since, in their order; each is made as a whole.
    pending: Vec<Vec<Pending>>,
    /// Files created so far.
    created: u64,
    dirs: BTreeSet<PathBuf>,
    /// Those of which no directory above them was synced since: a crash takes them away, with what is in them.
    unsynced_dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
}

impl Tree {
    /// Changes names, as one change.
    fn change(&mut self, changes: Vec<NameChange>) {
        for (path, file) in &changes {
            match file {
                Some(file) => drop(self.files.insert(path.clone(), file.clone())),
                None => drop(self.files.remove(path)),
            }
        }
        self.pending.push(changes.into_iter().map(Pending::new).collect());
    }

    /// The number of the next file.
    fn next_order(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// Moves everything below `source` to `target`. Survives a crash as the files in it would have.
    fn rename_dir(&mut self, source: &Path, target: &Path) {
        let moved = |files: &mut BTreeMap<PathBuf, Shared>| {
            let inside: Vec<PathBuf> =
                files.keys().filter(|path| path.starts_with(source)).cloned().collect();
            for path in inside {
                let file = files.remove(&path).expect("just listed");
                let rest = path.strip_prefix(source).expect("just compared");
                files.insert(target.join(rest), file);
            }
        };
        moved(&mut self.files);
        moved(&mut self.durable);
        for change in self.pending.iter_mut().flatten() {
            if let Ok(rest) = change.path.strip_prefix(source) {
                *change = Pending::new((target.join(rest), change.file.take()));
            }
        }
        for dirs in [&mut self.dirs, &mut self.unsynced_dirs] {
            let inside: Vec<PathBuf> = dirs.iter().filter(|dir| dir.starts_with(source)).cloned().collect();
            for dir in inside {
                dirs.remove(&dir);
                let rest = dir.strip_prefix(source).expect("just compared");
                dirs.insert(if rest.as_os_str().is_empty() {
                    target.to_path_buf()
                } else {
                    target.join(rest)
                });
            }
        }
    }

    /// A crash: directories without a durable name are gone, but for those that `stays` says.
    fn lose_dirs(&mut self, mut stays: impl FnMut() -> bool) {
        for lost in std::mem::take(&mut self.unsynced_dirs) {
            if !stays() {
                self.dirs.retain(|dir| !dir.starts_with(&lost));
                self.files.retain(|path, _| !path.starts_with(&lost));
                self.durable.retain(|path, _| !path.starts_with(&lost));
            }
        }
    }
}

/// An in-memory file system. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct MemoryFs {
    tree: Arc<Mutex<Tree>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(path: &Path) -> Error {
    Error::io(path.display().to_string(), io::Error::from(io::ErrorKind::NotFound))
}

impl MemoryFs {
    /// An empty file system.
    pub fn new() -> MemoryFs {
        MemoryFs::default()
    }

    /// The machine loses power: unsynced bytes and unsynced names, of directories too, are gone, locks are free.
    pub fn crash(&self) {
        self.crash_with(&mut Loss::everything(), 0);
    }

    /// As [`MemoryFs::crash`], but of what was not synced a part drawn from `seed` survives, as on a real file system: sizes
    /// without data, which then reads as zeros; later pages without earlier ones; the first changes of names.
    pub fn crash_torn(&self, seed: u64) {
        self.crash_drawn(|created| Loss::drawn(seed, created));
    }

    /// As [`MemoryFs::crash_torn`] on a file system that allocates space when data is written back (ext4 with delayed allocation,
    /// XFS): each file ends where it will, with its data up to there. A newer file may be whole, and an older one empty.
    pub fn crash_apart(&self, seed: u64) {
        self.crash_drawn(|created| Loss::apart(seed, created));
    }

    fn crash_drawn(&self, drawn: impl FnOnce(u64) -> Loss) {
        let (created, pending) = {
            let tree = lock(&self.tree);
            (tree.created, tree.pending.len())
        };
        let mut loss = drawn(created);
        let names = if loss.draw(1) == 0 { pending } else { loss.draw(pending) };
        self.crash_with(&mut loss, names);
    }

    /// The process dies: nothing handed to the file system is lost, locks are free.
    pub fn kill(&self) {
        lock(&self.tree).locked.clear();
    }

    /// Leaves of file contents what `loss` says, and the first `names` changes of names.
    fn crash_with(&self, loss: &mut Loss, names: usize) {
        let mut tree = lock(&self.tree);
        tree.locked.clear();
        let mut durable = std::mem::take(&mut tree.durable);
        for Pending { path, file, .. } in std::mem::take(&mut tree.pending).into_iter().take(names).flatten()
        {
            match file {
                Some(file) => drop(durable.insert(path, file)),
                None => drop(durable.remove(&path)),
            }
        }
        // New files: handles from before the crash write into the void. Names of one file stay names of one file.
        let mut survivors: Vec<(Shared, Shared)> = Vec::new();
        for file in durable.values_mut() {
            let known = survivors.iter().find(|(old, _)| Arc::ptr_eq(old, file)).map(|(_, new)| new.clone());
            let survivor = known.unwrap_or_else(|| {
                let new = Arc::new(Mutex::new(lock(file).survivor(loss)));
                survivors.push((file.clone(), new.clone()));
                new
            });
            *file = survivor;
        }
        tree.files = durable.clone();
        tree.durable = durable;
        tree.lose_dirs(|| names > 0 && loss.draw(1) == 0);
    }

    /// All files and their sizes, for tests.
    pub fn files(&self) -> Vec<(PathBuf, usize)> {
        lock(&self.tree).files.iter().map(|(path, file)| (path.clone(), lock(file).bytes.len())).collect()
    }

    /// Changes one byte of a file in place, for corruption tests.
    pub fn flip_byte(&self, path: &Path, offset: usize, mask: u8) {
        let file = self.find(path).expect("the file exists");
        lock(&file).bytes[offset] ^= mask;
    }

    /// Cuts a file, for corruption tests.
    pub fn truncate(&self, path: &Path, len: usize) {
        let file = self.find(path).expect("the file exists");
        lock(&file).damage_end(len);
    }

    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.files().iter().map(|(_, size)| *size as u64).sum()
    }

    fn find(&self, path: &Path) -> Result<Shared> {
        lock(&self.tree).files.get(path).cloned().ok_or_else(|| missing(path))
    }
}

struct MemoryReadFile {
    path: PathBuf,
    contents: Shared,
    size: u64,
}

impl ReadFile for MemoryReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let contents = lock(&self.contents);
        let start = (offset as usize).min(contents.bytes.len());
        let len = buf.len().min(contents.bytes.len() - start);
        buf[..len].copy_from_slice(&contents.bytes[start..start + len]);
        Ok(len)
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct MemoryWriteFile {
    path: PathBuf,
    contents: Shared,
    buffer: Vec<u8>,
    buffer_size: usize,
    len: u64,
    /// Where the time of its calls goes.
    times: Option<Arc<WriteTimes>>,
}

impl MemoryWriteFile {
    fn new(path: &Path, contents: Shared, options: &OpenWrite) -> MemoryWriteFile {
        let buffer_size = if options.ahead.is_some() { 0 } else { options.buffer_size };
        MemoryWriteFile {
            path: path.to_path_buf(),
            contents,
            buffer: Vec::new(),
            buffer_size,
            len: 0,
            times: None,
        }
    }
}

impl WriteFile for MemoryWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_marked(bytes, &[])
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        if self.buffer_size > 0 && self.buffer.len() + bytes.len() <= self.buffer_size {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        timed(self.times.as_deref(), Call::Write, || lock(&self.contents).append(bytes, end));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        timed(self.times.as_deref(), Call::Write, || lock(&self.contents).append(&self.buffer, &[]));
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        timed(self.times.as_deref(), Call::Sync, || lock(&self.contents).sync());
        Ok(())
    }

    fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.times = Some(times.clone());
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn close(&mut self) -> Result<()> {
        self.flush()?;
        lock(&self.contents).cut();
        Ok(())
    }
}

struct MemoryLock {
    path: PathBuf,
    tree: Arc<Mutex<Tree>>,
}

impl FileLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        lock(&self.tree).locked.remove(&self.path);
    }
}

impl FileSystem for MemoryFs {
    fn open_read(&self, path: &Path, _options: OpenRead) -> Result<Arc<dyn ReadFile>> {
        let contents = self.find(path)?;
        let size = lock(&contents).bytes.len() as u64;
        Ok(Arc::new(MemoryReadFile { path: path.to_path_buf(), contents, size }))
    }

    fn create(&self, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let mut tree = lock(&self.tree);
        if !tree.dirs.contains(parent_of(path)) {
            return Err(missing(path));
        }
        let order = tree.next_order();
        let contents = Arc::new(Mutex::new(FileBytes::new(order, options.ahead)));
        tree.change(vec![(path.to_path_buf(), Some(contents.clone()))]);
        Ok(Box::new(MemoryWriteFile::new(path, contents, &options)))
    }

    fn reuse(&self, old: &Path, path: &Path, options: OpenWrite) -> Result<Box<dyn WriteFile>> {
        let contents = self.find(old)?;
        if lock(&self.tree).files.values().filter(|file| Arc::ptr_eq(file, &contents)).count() > 1 {
            return Err(several_names(old));
        }
        self.rename(old, path)?;
        let order = lock(&self.tree).next_order();
        lock(&contents).write_over(order, options.ahead);
        Ok(Box::new(MemoryWriteFile::new(path, contents, &options)))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let tree = lock(&self.tree);
        Ok(tree.files.contains_key(path) || tree.dirs.contains(path))
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        let file = self.find(path)?;
        let contents = lock(&file);
        Ok(contents.bytes.len() as u64)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let tree = lock(&self.tree);
        if !tree.dirs.contains(dir) {
            return Err(missing(dir));
        }
        let entries = tree.files.keys().chain(tree.dirs.iter());
        let inside = entries.filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_string())).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let mut tree = lock(&self.tree);
        for dir in dir.ancestors().filter(|path| *path != Path::new("")) {
            if tree.dirs.insert(dir.to_path_buf()) && dir.parent().is_some() {
                tree.unsynced_dirs.insert(dir.to_path_buf());
            }
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut tree = lock(&self.tree);
        if !tree.files.contains_key(path) {
            return Err(missing(path));
        }
        tree.change(vec![(path.to_path_buf(), None)]);
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let mut tree = lock(&self.tree);
        if tree.files.keys().any(|path| path.parent() == Some(dir)) {
            let source = io::Error::from(io::ErrorKind::DirectoryNotEmpty);
            return Err(Error::io(dir.display().to_string(), source));
        }
        tree.unsynced_dirs.remove(dir);
        if tree.dirs.remove(dir) { Ok(()) } else { Err(missing(dir)) }
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        let mut tree = lock(&self.tree);
        if tree.dirs.contains(source) {
            tree.rename_dir(source, target);
            return Ok(());
        }
        let file = tree.files.get(source).cloned().ok_or_else(|| missing(source))?;
        tree.change(vec![(source.to_path_buf(), None), (target.to_path_buf(), Some(file))]);
        Ok(())
    }

    fn hard_link(&self, source: &Path, target: &Path) -> Result<()> {
        let file = self.find(source)?;
        lock(&self.tree).change(vec![(target.to_path_buf(), Some(file))]);
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        lock(&*self.find(path)?).sync();
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut guard = lock(&self.tree);
        let tree = &mut *guard;
        let plain_dir = plain(dir);
        // Names without a pending change are durable as they are: a directory may hold many, of which few change.
        tree.pending.retain_mut(|changes| {
            changes.retain(|change| {
                let stays = change.dir.as_os_str() != plain_dir.as_os_str();
                if !stays {
                    match tree.files.get(&change.path) {
                        Some(file) => drop(tree.durable.insert(change.path.clone(), file.clone())),
                        None => drop(tree.durable.remove(&change.path)),
                    }
                }
                stays
            });
            !changes.is_empty()
        });
        tree.unsynced_dirs.retain(|path| parent_of(path) != dir);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut tree = lock(&self.tree);
        if !tree.locked.insert(path.to_path_buf()) {
            let source = io::Error::from(io::ErrorKind::WouldBlock);
            return Err(Error::io(format!("lock {}: already held by this process", path.display()), source));
        }
        if !tree.files.contains_key(path) {
            let order = tree.next_order();
            let file = Arc::new(Mutex::new(FileBytes::new(order, None)));
            tree.change(vec![(path.to_path_buf(), Some(file))]);
        }
        Ok(Box::new(MemoryLock { path: path.to_path_buf(), tree: self.tree.clone() }))
    }

    fn free_space(&self, _dir: &Path) -> Result<Option<u64>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(fs: &MemoryFs, path: &str, bytes: &[u8], sync: bool) {
        let mut file = fs.create(Path::new(path), OpenWrite::default()).unwrap();
        file.append(bytes).unwrap();
        if sync {
            file.sync().unwrap();
        }
        file.close().unwrap();
    }

    #[test]
    fn a_crash_keeps_only_synced_bytes_under_synced_names() {
        let fs = MemoryFs::new();
        fs.create_dir_all_durably(Path::new("/db")).unwrap();
        write(&fs, "/db/synced", b"abc", true);
        write(&fs, "/db/unsynced", b"abc", false);
        fs.sync_dir(Path::new("/db")).unwrap();
        write(&fs, "/db/unnamed", b"abc", true);
        fs.crash();
        assert_eq!(fs.files(), [(PathBuf::from("/db/synced"), 3), (PathBuf::from("/db/unsynced"), 0)]);
    }

    #[test]
    fn a_crash_takes_a_directory_whose_name_was_not_synced() {
        let fs = MemoryFs::new();
        fs.create_dir_all_durably(Path::new("/far/away")).unwrap();
        fs.create_dir_all(Path::new("/far/off/db")).unwrap();
        for dir in ["/far/away", "/far/off/db"] {
            write(&fs, &format!("{dir}/file"), b"abc", true);
            fs.sync_dir(Path::new(dir)).unwrap();
        }
        fs.sync_dir(Path::new("/far/off")).unwrap();
        fs.crash();
        assert_eq!(fs.files(), [(PathBuf::from("/far/away/file"), 3)]);
        assert!(!fs.exists(Path::new("/far/off")).unwrap());
    }

    #[test]
    fn an_unsynced_rename_is_undone_by_a_crash() {
        let fs = MemoryFs::new();
        fs.create_dir_all_durably(Path::new("/db")).unwrap();
        write(&fs, "/db/old", b"abc", true);
        fs.sync_dir(Path::new("/db")).unwrap();
        fs.rename(Path::new("/db/old"), Path::new("/db/new")).unwrap();
        fs.crash();
        assert_eq!(fs.files(), [(PathBuf::from("/db/old"), 3)]);
    }

    /// Every kind of state that a loss of power may leave of two files that were appended to, with names that last.
    #[test]
    fn crashes_leave_sizes_without_data_and_files_apart() {
        let left = |apart: bool, seed: u64| {
            let fs = MemoryFs::new();
            fs.create_dir_all_durably(Path::new("/db")).unwrap();
            for name in ["/db/older", "/db/newer"] {
                write(&fs, name, &[b'x'; 9000], false);
            }
            fs.sync_dir(Path::new("/db")).unwrap();
            if apart {
                fs.crash_apart(seed)
            } else {
                fs.crash_torn(seed)
            }
            ["/db/older", "/db/newer"].map(|name| fs.read_all(Path::new(name)).unwrap())
        };
        let states: Vec<[Vec<u8>; 2]> = (0..400).map(|seed| left(seed % 4 == 0, seed)).collect();
        let any =
            |holds: &dyn Fn(&[u8], &[u8]) -> bool| states.iter().any(|[older, newer]| holds(older, newer));
        let whole = |bytes: &[u8]| bytes == [b'x'; 9000];
        assert!(any(&|older, newer| older.is_empty() && newer.is_empty()));
        assert!(any(&|older, newer| whole(older) && whole(newer)));
        assert!(any(&|older, newer| whole(older) && newer.is_empty()));
        assert!(any(&|older, newer| older.is_empty() && whole(newer)), "each by itself");
        assert!(
            any(&|older, _| !older.is_empty() && older.len() < 9000 && !older.contains(&0)),
            "an early end"
        );
        assert!(
            any(&|older, _| older.len() == 9000 && older.iter().all(|byte| *byte == 0)),
            "a size without data"
        );
        assert!(
            any(&|older, _| older.len() == 9000 && older[0] == 0 && older[8999] == b'x'),
            "a later page alone"
        );
        assert!(states.iter().flatten().flatten().all(|byte| [0, b'x'].contains(byte)));
    }

    #[test]
    fn a_second_lock_is_refused_until_the_first_is_dropped() {
        let fs = MemoryFs::new();
        let first = fs.lock(Path::new("/db/LOCK")).unwrap();
        let refused = fs.lock(Path::new("/db/LOCK")).err().unwrap().to_string();
        assert!(refused.contains("/db/LOCK"), "{refused}");
        drop(first);
        assert!(fs.lock(Path::new("/db/LOCK")).is_ok());
    }
}
