//! The directory sessions write to: refused if it is not ours, checked for space, removed when done.
//!
//! ```text
//! outcrop-lab-data/
//!   OUTCROP-LAB        the mark, locked while a run uses the directory
//!   session-0 ...      one database each; removed when its session ends
//!   session-0.perf     samples of a step, removed when it ends
//! ```
//! Invariants: nothing is written into a directory that holds anything and lacks the mark. Only the mark,
//! `session-N` and `session-N.perf` are ever deleted, and the directory itself if this run created it and nothing else is in it.
//! The next run removes whatever a killed run left, also in another directory: `abandoned.rs`.

use super::abandoned;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Marks a directory as the lab's own.
pub(super) const MARKER: &str = "OUTCROP-LAB";
/// The start of the names of session directories.
const SESSION: &str = "session-";
/// The end of the names of files that `profile.rs` samples sessions into.
const SAMPLES: &str = ".perf";
/// How long the end of another run is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// A data directory of the lab. Files that the lab created in it are removed on drop; nothing else ever is.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    created: bool,
    /// Where it is remembered.
    entry: Option<abandoned::Entry>,
    /// Keeps the lock.
    _marker: File,
}

impl DataDir {
    /// Takes `root`, creating it if needed, and removes sessions that killed runs of this user left in it and elsewhere.
    ///
    /// # Errors
    /// A sentence if it is no directory, holds anything and lacks the lab's mark, is used by another run, or
    /// cannot be written.
    pub fn take(root: &Path) -> Result<DataDir, String> {
        DataDir::take_with(root, abandoned::registry().as_deref(), PATIENCE)
    }

    /// As [`DataDir::take`], with the registry of directories in use, waiting so long for the end of another run.
    pub(super) fn take_with(
        root: &Path,
        registry: Option<&Path>,
        patience: Duration,
    ) -> Result<DataDir, String> {
        let start = Instant::now();
        let mut created = false;
        let (marker, is_new) = loop {
            created |= !root.exists();
            if let Some(taken) = mark(root, start + patience)? {
                break taken;
            }
        };
        // A run that goes on where a killed one stopped finds the directory that the killed one made.
        created |= !is_new && registry.is_some_and(|registry| abandoned::was_made(registry, root));
        let entry = registry.and_then(|registry| abandoned::remember(registry, root, created));
        remove_sessions(root)?;
        if let Some(registry) = registry {
            abandoned::clear(registry, root).iter().for_each(|line| eprintln!("{line}"));
        }
        Ok(DataDir { root: root.to_path_buf(), created, entry, _marker: marker })
    }

    /// An empty directory for session number `number`.
    ///
    /// # Errors
    /// A sentence naming the directory.
    pub fn session(&self, number: usize) -> Result<PathBuf, String> {
        self.remove(number)?;
        let dir = self.session_path(number);
        std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(dir)
    }

    /// Removes a session's directory.
    ///
    /// # Errors
    /// A sentence naming the directory.
    pub fn remove(&self, number: usize) -> Result<(), String> {
        let dir = self.session_path(number);
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", dir.display())),
            _ => Ok(()),
        }
    }

    /// Refuses a run that would fill the device.
    ///
    /// # Errors
    /// A sentence with both numbers if fewer than `needed` bytes are free.
    pub fn check_space(&self, needed: u64) -> Result<(), String> {
        let free = self.free().map_err(|error| format!("{}: {error}", self.root.display()))?;
        if free < needed {
            return Err(format!(
                "no space: {} has {} MB free, the run needs {} MB; use fewer --keys or another --data",
                self.root.display(),
                free >> 20,
                needed >> 20
            ));
        }
        Ok(())
    }

    /// Bytes that are free on the device.
    ///
    /// # Errors
    /// The system's, if it does not say.
    pub fn free(&self) -> std::io::Result<u64> {
        free(&self.root)
    }

    fn session_path(&self, number: usize) -> PathBuf {
        self.root.join(format!("{SESSION}{number}"))
    }
}

/// The locked mark of `root`, and whether it is new; `None` if another run removed what was there meanwhile.
fn mark(root: &Path, until: Instant) -> Result<Option<(File, bool)>, String> {
    let failed = |error: std::io::Error| format!("data directory {}: {error}", root.display());
    std::fs::create_dir_all(root).map_err(failed)?;
    let path = root.join(MARKER);
    let is_new = !path.exists();
    if is_new {
        let is_empty = match std::fs::read_dir(root) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !is_empty {
            // Another run may have begun between the two looks.
            return if path.exists() {
                Ok(None)
            } else {
                Err(format!(
                    "data directory {} is not empty and not the lab's; name another with --data",
                    root.display()
                ))
            };
        }
    }
    let mut marker = match OpenOptions::new().create_new(is_new).append(true).open(&path) {
        Ok(marker) => marker,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    loop {
        match marker.try_lock() {
            Ok(()) => break,
            // One that starts locks it to clear it away, and one that ends until it is gone.
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "data directory {} is used by another run; wait for it or name another with --data",
                    root.display()
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    if !is_at(&marker, &path) {
        return Ok(None);
    }
    if is_new {
        marker.write_all(b"Data of the lab's sessions. Safe to delete.\n").map_err(failed)?;
    }
    Ok(Some((marker, is_new)))
}

/// Whether the open file is the one at `path`: another run may have removed it, and a third made a new one.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    let [open, there] = [file.metadata(), std::fs::metadata(path)].map(|found| found.ok().map(number));
    open.is_some() && open == there
}

/// Removes the sessions in `root`, whose lock the caller holds, and what was sampled of them; gives the bytes of their files.
///
/// # Errors
/// A sentence naming what cannot be removed.
pub(super) fn remove_sessions(root: &Path) -> Result<u64, String> {
    let failed = |path: &Path, error: std::io::Error| format!("data directory {}: {error}", path.display());
    let mut bytes = 0;
    for entry in std::fs::read_dir(root).map_err(|error| failed(root, error))? {
        let entry = entry.map_err(|error| failed(root, error))?;
        let name = entry.file_name();
        let Some(of_session) = name.to_str().and_then(|name| name.strip_prefix(SESSION)) else { continue };
        let path = entry.path();
        let samples = of_session.strip_suffix(SAMPLES);
        if samples.unwrap_or(of_session).parse::<usize>().is_err() {
            continue;
        }
        if samples.is_some() {
            bytes += entry.metadata().map_or(0, |found| found.len());
            std::fs::remove_file(&path)
        } else {
            bytes += bytes_below(&path);
            std::fs::remove_dir_all(&path)
        }
        .map_err(|error| failed(&path, error))?;
    }
    Ok(bytes)
}

/// Bytes of the files below `dir`, of those that are there when they are looked at.
pub(crate) fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Bytes that are free where `path` is.
///
/// # Errors
/// The system's, if it does not say.
pub fn free(path: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Writes to the device what the page cache holds of the files in `dir`: else the kernel does it some time later, while
/// another target is at work.
///
/// Of many files, as servers have them, all of the file system is written at once: a sync of each waits for the journal, or for a flush of
/// the device even where the file is clean. Of 900 new files that took 5 s each by itself, and 0.15 s together.
///
/// # Errors
/// A sentence naming the file.
pub fn write_out(dir: &Path) -> Result<(), String> {
    /// Files beyond which all together are cheaper.
    const MANY: usize = 64;
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let files = files_below(dir).map_err(|error| failed(dir, error))?;
    if files.len() > MANY {
        let all = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
        return all.map_err(|error| failed(dir, error));
    }
    for path in files {
        match File::open(&path).and_then(|file| file.sync_data()) {
            // The engine may remove files meanwhile.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&path, error)),
            _ => {}
        }
    }
    Ok(())
}

/// The files below `dir`.
fn files_below(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Nobody is left to tell; the next run removes a file that stays.
        if remove_sessions(&self.root).is_ok() {
            // Before the mark: behind it another run may take the directory and remember it.
            if let Some(entry) = &self.entry {
                entry.remove();
            }
            let _ = std::fs::remove_file(self.root.join(MARKER));
            if self.created {
                // Fails, as it should, if somebody else put something there.
                let _ = std::fs::remove_dir(&self.root);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers nothing.
    fn take(root: &Path) -> Result<DataDir, String> {
        DataDir::take_with(root, None, Duration::ZERO)
    }

    fn error_of(root: &Path) -> String {
        take(root).expect_err("the directory must be refused")
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused_and_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("precious"), "data").unwrap();
        let error = error_of(temp.path());
        assert!(error.contains("not empty") && error.contains("--data"), "{error}");
        assert!(temp.path().join("precious").exists());
        assert!(!temp.path().join(MARKER).exists());
    }

    #[test]
    fn a_file_is_refused() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        assert!(error_of(temp.path()).contains("data directory"));
        assert!(temp.path().exists());
    }

    #[test]
    fn what_was_created_goes_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("data");
        let data = take(&root).unwrap();
        std::fs::write(data.session(0).unwrap().join("x"), "y").unwrap();
        drop(data);
        assert!(!root.exists());

        let data = take(&root).unwrap();
        std::fs::write(root.join("note"), "mine").unwrap();
        std::fs::create_dir(root.join("session-notes")).unwrap();
        drop(data);
        assert!(root.join("note").exists() && root.join("session-notes").exists());
        assert!(!root.join(MARKER).exists());
    }

    #[test]
    fn sessions_of_a_killed_run_are_removed_by_the_next() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(MARKER), "").unwrap();
        std::fs::create_dir(temp.path().join("session-4")).unwrap();
        std::fs::write(temp.path().join("session-4/CURRENT"), "").unwrap();
        // Of one that was sampled; and a file of somebody's.
        std::fs::write(temp.path().join("session-4.perf"), "PERFILE2").unwrap();
        std::fs::write(temp.path().join("session-notes.perf"), "mine").unwrap();
        let _data = take(temp.path()).unwrap();
        assert!(!temp.path().join("session-4").exists() && !temp.path().join("session-4.perf").exists());
        assert!(temp.path().join("session-notes.perf").exists());
    }

    #[test]
    fn files_are_written_out_wherever_they_are() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("archive")).unwrap();
        std::fs::write(temp.path().join("archive/1.log"), "x").unwrap();
        write_out(temp.path()).unwrap();
        // So many that they are written together.
        (0..100).for_each(|number| std::fs::write(temp.path().join(number.to_string()), "x").unwrap());
        write_out(temp.path()).unwrap();
        let error = write_out(&temp.path().join("none")).unwrap_err();
        assert!(error.contains("none"), "{error}");
    }

    #[test]
    fn two_runs_do_not_share_a_directory() {
        let temp = tempfile::tempdir().unwrap();
        let _first = take(temp.path()).unwrap();
        assert!(error_of(temp.path()).contains("another run"));
    }

    #[test]
    fn the_end_of_another_run_is_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("data");
        let first = take(&root).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| DataDir::take_with(&root, None, Duration::from_secs(600)));
            // It waits for this one, or finds it gone; the mark that it locks is the one at its path in any case.
            drop(first);
            let second = second.join().unwrap().unwrap();
            assert!(is_at(&second._marker, &root.join(MARKER)));
            drop(second);
        });
    }

    #[test]
    fn a_directory_that_a_killed_run_made_stays_made() {
        let temp = tempfile::tempdir().unwrap();
        let [root, registry] = ["data", "registry"].map(|name| temp.path().join(name));
        let take = || DataDir::take_with(&root, Some(&registry), Duration::ZERO).unwrap();
        // Killed: the lock goes, the files stay.
        let killed = std::mem::ManuallyDrop::new(take());
        killed._marker.unlock().unwrap();
        let again = take();
        assert!(again.created && abandoned::was_made(&registry, &root));
        drop(again);
        assert!(!root.exists() && !abandoned::was_made(&registry, &root));
        // One that is somebody's is not, whatever is remembered of an earlier one there.
        abandoned::remember(&registry, &root, true).unwrap();
        std::fs::create_dir(&root).unwrap();
        drop(take());
        assert!(root.exists());
    }

    #[test]
    fn more_than_the_device_holds_is_refused_with_both_numbers() {
        let temp = tempfile::tempdir().unwrap();
        let error = take(temp.path()).unwrap().check_space(u64::MAX).unwrap_err();
        assert!(error.contains("MB free") && error.contains("needs"), "{error}");
        assert!(free(temp.path()).unwrap() < u64::MAX);
        assert!(free(&temp.path().join("gone")).is_err(), "that is no full disk");
    }
}
