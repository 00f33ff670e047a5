//! The space that the tables and blob files of databases take on disk together: counted, limited, and freed slowly
//! where that is asked for.
//!
//! ```text
//! written, ingested, found at opening -> counted -> over the limit: writes stop with "Space limit reached" until there is room
//! obsolete -> removed at once, or with a deletion rate: renamed to NAME.trash, and removed as the rate allows (upkeep)
//! ```
//! Source: RocksDB `file/sst_file_manager_impl.cc`, `file/delete_scheduler.cc`.

use outcrop_base::{Error, ErrorKind};
use outcrop_env::FileSystem;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The end of names of files that wait for their removal.
pub const TRASH: &str = ".trash";

/// Counts and limits the space of tables and blob files of all databases that are opened with it.
///
/// ```
/// use outcrop::{Db, DbObjects, Env, ErrorKind, SstFileManager};
/// use std::sync::Arc;
///
/// let manager = Arc::new(SstFileManager::default());
/// let objects = DbObjects { sst_file_manager: Some(manager.clone()), ..Default::default() };
/// let db = Db::builder("/db").env(Env::memory()).objects(objects).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// db.flush()?;
/// assert!(manager.total_size() > 0);
///
/// manager.set_max_allowed_space(1);
/// db.put("b", "2")?;
/// db.flush().ok();
/// assert_eq!(db.put("c", "3").unwrap_err().kind(), ErrorKind::SpaceLimit);
/// # outcrop::Result::Ok(())
/// ```
pub struct SstFileManager {
    /// Sizes, by file system and path.
    files: Mutex<HashMap<(FsId, PathBuf), u64>>,
    total: AtomicU64,
    max_allowed_space: AtomicU64,
    compaction_buffer: AtomicU64,
    /// Bytes that running compactions read, and may write.
    reserved: AtomicU64,
    delete_rate: AtomicI64,
    trash_ratio_bits: AtomicU64,
    trash_total: AtomicU64,
    trash: Mutex<Trash>,
}

/// Databases of several file systems may share a manager, and have files of the same path: which one it is. An address, right as long
/// as a database holds the file system.
type FsId = usize;

fn id_of(fs: &Arc<dyn FileSystem>) -> FsId {
    Arc::as_ptr(fs).cast::<()>() as usize
}

/// A file that waits for its removal, from the file system that it is on: whichever database's upkeep comes to it.
struct TrashFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    bytes: u64,
}

/// Files that wait for their removal.
#[derive(Default)]
struct Trash {
    files: VecDeque<TrashFile>,
    /// Until when the rate is used up, by the monotonic clock; 0: nothing was removed yet, or the rate is another one since.
    free_nanos: u64,
    /// When it was last looked what may be removed; 0: never.
    checked_nanos: u64,
}

impl Default for SstFileManager {
    fn default() -> SstFileManager {
        SstFileManager {
            files: Mutex::default(),
            total: AtomicU64::new(0),
            max_allowed_space: AtomicU64::new(0),
            compaction_buffer: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            delete_rate: AtomicI64::new(0),
            trash_ratio_bits: AtomicU64::new(0.25_f64.to_bits()),
            trash_total: AtomicU64::new(0),
            trash: Mutex::default(),
        }
    }
}

/// Numbers that order nothing.
const RELAXED: Ordering = Ordering::Relaxed;

/// The time without removals that is made up for at most: a check may come late.
const MOST_CREDIT_NANOS: u64 = 2_000_000_000;

impl SstFileManager {
    /// The files and their sizes in bytes, in no order.
    pub fn tracked_files(&self) -> Vec<(PathBuf, u64)> {
        let files = self.files.lock();
        files.iter().map(|((_, path), bytes)| (path.clone(), *bytes)).collect()
    }

    /// Bytes of all files.
    pub fn total_size(&self) -> u64 {
        self.total.load(RELAXED)
    }

    /// Limits the total: once it is reached, writes fail with [`ErrorKind::SpaceLimit`]. Bytes; 0: no limit, the default.
    pub fn set_max_allowed_space(&self, bytes: u64) {
        self.max_allowed_space.store(bytes, RELAXED);
    }

    /// The part of the limit that compactions leave free. Bytes, default 0.
    pub fn set_compaction_buffer(&self, bytes: u64) {
        self.compaction_buffer.store(bytes, RELAXED);
    }

    /// True if there is a limit and it is reached.
    pub fn is_max_allowed_space_reached(&self) -> bool {
        self.reaches(0)
    }

    /// The same, with what running compactions may write.
    pub fn is_max_allowed_space_reached_including_compactions(&self) -> bool {
        self.reaches(self.reserved.load(RELAXED))
    }

    fn reaches(&self, beside: u64) -> bool {
        let limit = self.max_allowed_space.load(RELAXED);
        limit > 0 && self.total_size().saturating_add(beside) >= limit
    }

    /// Bytes per second that obsolete files are removed at; 0 or less: at once, the default.
    pub fn delete_rate(&self) -> i64 {
        self.delete_rate.load(RELAXED)
    }

    /// Changes it.
    pub fn set_delete_rate(&self, bytes_per_second: i64) {
        if self.delete_rate.swap(bytes_per_second, RELAXED) != bytes_per_second {
            self.trash.lock().free_nanos = 0;
        }
    }

    /// Files are removed at once while more of the total than this waits for removal. Default 0.25.
    pub fn max_trash_ratio(&self) -> f64 {
        f64::from_bits(self.trash_ratio_bits.load(RELAXED))
    }

    /// Changes it.
    pub fn set_max_trash_ratio(&self, ratio: f64) {
        self.trash_ratio_bits.store(ratio.to_bits(), RELAXED);
    }

    /// Bytes of files that wait for their removal.
    pub fn trash_size(&self) -> u64 {
        self.trash_total.load(RELAXED)
    }

    /// A file is there.
    pub(crate) fn added(&self, fs: &Arc<dyn FileSystem>, path: PathBuf, bytes: u64) {
        let replaced = self.files.lock().insert((id_of(fs), path), bytes).unwrap_or(0);
        self.total.fetch_add(bytes.wrapping_sub(replaced), RELAXED);
    }

    /// A file is not there, or is no longer looked after.
    pub(crate) fn forget(&self, fs: &Arc<dyn FileSystem>, path: &Path) {
        let bytes = self.files.lock().remove(&(id_of(fs), path.to_path_buf())).unwrap_or(0);
        self.total.fetch_sub(bytes, RELAXED);
    }

    /// The files below `dir` are no longer looked after: their database closes.
    pub(crate) fn forget_all(&self, fs: &Arc<dyn FileSystem>, dir: &Path) {
        let mut bytes = 0;
        self.files.lock().retain(|(of, path), size| {
            let gone = *of == id_of(fs) && path.parent() == Some(dir);
            bytes += if gone { *size } else { 0 };
            !gone
        });
        self.total.fetch_sub(bytes, RELAXED);
    }

    /// Room for a compaction of so many bytes; `None` if the limit does not leave it.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<Room<'_>> {
        let limit = self.max_allowed_space.load(RELAXED);
        let before = self.reserved.fetch_add(bytes, RELAXED);
        let room = Room { manager: self, bytes };
        let needed = [before, bytes, self.compaction_buffer.load(RELAXED), self.total_size()];
        let needed = needed.into_iter().fold(0u64, u64::saturating_add);
        (limit == 0 || needed <= limit).then_some(room)
    }

    /// True if obsolete files wait for their removal now.
    pub(crate) fn delays_removal(&self) -> bool {
        let most = self.total_size() as f64 * self.max_trash_ratio();
        self.delete_rate() > 0 && self.trash_size() as f64 <= most
    }

    /// Has `remove` remove what the rate allows by `now`, a time of the monotonic clock: files for the time since the last call, and
    /// one whose time is not used up before the next.
    pub(crate) fn empty_trash(&self, now: u64, remove: impl Fn(&dyn FileSystem, &Path)) {
        self.trash.lock().begin_check(now);
        while let Some(file) = self.next_trash(now) {
            remove(&*file.fs, &file.path);
            self.forget(&file.fs, &file.path);
            self.trash_total.fetch_sub(file.bytes, RELAXED);
        }
    }

    /// The file of so many bytes is at `path` now, to be removed later. Of an earlier opening's it may be known.
    pub(crate) fn add_trash(&self, fs: &Arc<dyn FileSystem>, path: PathBuf, bytes: u64) {
        self.added(fs, path.clone(), bytes);
        let mut waiting = self.trash.lock();
        if !waiting.files.iter().any(|known| Arc::ptr_eq(&known.fs, fs) && known.path == path) {
            self.trash_total.fetch_add(bytes, RELAXED);
            waiting.files.push_back(TrashFile { fs: fs.clone(), path, bytes });
        }
    }

    fn next_trash(&self, now: u64) -> Option<TrashFile> {
        let mut trash = self.trash.lock();
        let rate = u64::try_from(self.delete_rate()).unwrap_or(0);
        if rate > 0 && trash.free_nanos > now {
            return None;
        }
        let file = trash.files.pop_front()?;
        let cost = u128::from(file.bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let cost = if rate == 0 { 0 } else { u64::try_from(cost).unwrap_or(u64::MAX) };
        trash.free_nanos = trash.free_nanos.saturating_add(cost);
        Some(file)
    }
}

impl Trash {
    /// The rate is free to be used from the last check on, but from no time that is long gone.
    fn begin_check(&mut self, now: u64) {
        let last = if self.checked_nanos == 0 { now } else { self.checked_nanos };
        self.free_nanos = self.free_nanos.max(last.max(now.saturating_sub(MOST_CREDIT_NANOS)));
        self.checked_nanos = now;
    }
}

/// Space that a running compaction may use.
pub struct Room<'m> {
    manager: &'m SstFileManager,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.manager.reserved.fetch_sub(self.bytes, RELAXED);
    }
}

/// The error of writes once the limit is reached, in RocksDB's words.
pub fn limit_reached() -> Error {
    Error::new(ErrorKind::SpaceLimit, "Max allowed space was reached")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::memory::MemoryFs;

    fn fs() -> Arc<dyn FileSystem> {
        Arc::new(MemoryFs::new())
    }

    #[test]
    fn files_count_once_and_until_they_are_gone() {
        let (manager, fs, other) = (SstFileManager::default(), fs(), fs());
        manager.added(&fs, "/a/1.sst".into(), 10);
        manager.added(&fs, "/a/1.sst".into(), 30);
        manager.added(&fs, "/b/1.sst".into(), 5);
        manager.added(&other, "/a/1.sst".into(), 7);
        assert_eq!(manager.total_size(), 42);
        manager.forget_all(&fs, Path::new("/a"));
        manager.forget(&fs, Path::new("/c/9.sst"));
        manager.forget(&other, Path::new("/b/1.sst"));
        assert_eq!(manager.total_size(), 12);
    }

    #[test]
    fn each_file_is_removed_from_its_own_file_system() {
        let (manager, one, two) = (SstFileManager::default(), fs(), fs());
        let path = Path::new("/a/1.sst.trash");
        for fs in [&one, &two] {
            fs.create_dir_all(Path::new("/a")).unwrap();
            fs.create(path, Default::default()).unwrap();
            manager.add_trash(fs, path.to_path_buf(), 10);
            manager.add_trash(fs, path.to_path_buf(), 10);
        }
        assert_eq!((manager.total_size(), manager.trash_size()), (20, 20));
        manager.empty_trash(0, |fs, path| fs.remove_file(path).unwrap());
        assert!(!one.exists(path).unwrap() && !two.exists(path).unwrap());
        assert_eq!((manager.total_size(), manager.trash_size()), (0, 0));
    }

    #[test]
    fn a_compaction_needs_its_inputs_and_the_buffer_beside_what_is_there() {
        let (manager, fs) = (SstFileManager::default(), fs());
        manager.added(&fs, "/a/1.sst".into(), 50);
        let unlimited = manager.reserve(1 << 40);
        assert!(unlimited.is_some());
        drop(unlimited);
        manager.set_max_allowed_space(100);
        let room = manager.reserve(30).expect("80 of 100");
        assert!(manager.reserve(30).is_none());
        assert!(manager.reserve(20).is_some());
        manager.set_compaction_buffer(21);
        assert!(manager.reserve(0).is_none());
        assert!(!manager.is_max_allowed_space_reached_including_compactions());
        manager.added(&fs, "/a/2.sst".into(), 20);
        assert!(manager.is_max_allowed_space_reached_including_compactions());
        drop(room);
        assert!(!manager.is_max_allowed_space_reached_including_compactions());
    }

    /// Checks at `millis`, and says how many files went.
    fn removed_at(manager: &SstFileManager, millis: u64) -> usize {
        let removed = std::cell::Cell::new(0);
        manager.empty_trash(millis * 1_000_000, |_, _| removed.set(removed.get() + 1));
        removed.get()
    }

    fn add_trash(manager: &SstFileManager, fs: &Arc<dyn FileSystem>, files: u64, bytes: u64) {
        for i in 0..files {
            manager.add_trash(fs, format!("/a/{i}.sst.trash").into(), bytes);
        }
    }

    #[test]
    fn trash_goes_at_its_rate() {
        let (manager, fs) = (SstFileManager::default(), fs());
        manager.set_delete_rate(100);
        add_trash(&manager, &fs, 5, 100);
        assert_eq!(removed_at(&manager, 1000), 1);
        assert_eq!(removed_at(&manager, 1500), 0, "a second's worth is gone");
        assert_eq!(removed_at(&manager, 2000), 1);
        assert_eq!(removed_at(&manager, 2999), 0);
        manager.set_delete_rate(50);
        assert_eq!(removed_at(&manager, 3000), 1, "counted anew");
        assert_eq!(removed_at(&manager, 4000), 0);
        manager.set_delete_rate(0);
        assert_eq!(removed_at(&manager, 4001), 2, "at once");
    }

    #[test]
    fn one_check_removes_what_the_rate_allows_since_the_last() {
        let (manager, fs) = (SstFileManager::default(), fs());
        manager.set_delete_rate(1 << 30);
        assert_eq!(removed_at(&manager, 1000), 0);
        add_trash(&manager, &fs, 2000, 2 << 20);
        // 512 files of 2 MiB are 1 GiB, and one more begins.
        assert_eq!(removed_at(&manager, 2000), 513);
        assert_eq!(removed_at(&manager, 3000), 512);
        // A check that comes an hour late makes up for two seconds.
        assert_eq!(removed_at(&manager, 3_600_000), 975);
        assert_eq!(manager.trash_size(), 0);
    }

    #[test]
    fn a_reopened_database_finds_its_trash_counted() {
        let manager = SstFileManager::default();
        for _ in 0..2 {
            let fs = outcrop_env::Env::posix().fs;
            manager.add_trash(&fs, "/a/1.sst.trash".into(), 10);
        }
        assert_eq!((manager.total_size(), manager.trash_size()), (10, 10));
    }
}
