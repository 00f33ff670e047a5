//! Directories of a run: removed when it ends, and by the next run in the same place if it was killed.
//!
//! A run holds a lock on a file in its directory. The system lets go of it with the process, however that ends, so that a directory
//! whose lock is free is nobody's.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Begins the name of each such directory.
const PREFIX: &str = "outcrop-scratch-";
/// The file in it that is locked.
const LOCK: &str = "in-use";

/// A directory that is removed with this.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    _lock: File,
}

impl Scratch {
    /// A new directory in `root`, for `what`. Removes those that killed runs left there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(root: &Path, what: &str) -> Result<Scratch, String> {
        let named = |error: std::io::Error| format!("{}: {error}", root.display());
        remove_abandoned(root);
        // It gets the name by which others find it once it is locked.
        let made = tempfile::Builder::new().prefix(".outcrop-new-").tempdir_in(root).map_err(named)?;
        let lock = File::create_new(made.path().join(LOCK)).map_err(named)?;
        lock.lock().map_err(named)?;
        let name = made.path().file_name().unwrap_or_default().to_string_lossy();
        let unique = name.rsplit('-').next().unwrap_or_default();
        let dir = root.join(format!("{PREFIX}{what}-{unique}"));
        std::fs::rename(made.path(), &dir).map_err(named)?;
        // The name it has is gone.
        let _ = made.keep();
        Ok(Scratch { dir, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that cannot be removed now is removed by the next run.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Removes the directories in `root` whose runs are over. One that cannot be removed stays: it may be another user's.
fn remove_abandoned(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let killed = root.path().join(format!("{PREFIX}stress-abc"));
        std::fs::create_dir_all(killed.join("db")).unwrap();
        File::create(killed.join(LOCK)).unwrap();
        let other = root.path().join("somebody-elses");
        std::fs::create_dir(&other).unwrap();
        File::create(other.join(LOCK)).unwrap();
        let first = Scratch::new(root.path(), "stress").unwrap();
        assert!(!killed.exists() && other.exists());
        std::fs::write(first.path().join("file"), "x").unwrap();
        let second = Scratch::new(root.path(), "stress").unwrap();
        assert!(first.path().join("file").exists(), "it is in use");
        assert!(first.path() != second.path());
        let path = first.path().to_path_buf();
        drop(first);
        assert!(!path.exists());
        drop(second);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "nothing but what is somebody else's");
    }
}
