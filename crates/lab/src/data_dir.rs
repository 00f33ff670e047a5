//! The directory sessions write to: refused if it is not ours, checked for space, removed when done.

use std::path::{Path, PathBuf};

/// Marks a directory as the lab's own.
const MARKER: &str = "OUTCROP-LAB";

/// A data directory of the lab. What the lab created in it is removed on drop; nothing else ever is.
pub struct DataDir {
    root: PathBuf,
    created: bool,
}

impl DataDir {
    /// Takes `root`, creating it if need be.
    ///
    /// # Errors
    /// A sentence if it holds anything and lacks the lab's mark, or cannot be written.
    pub fn take(root: &Path) -> Result<DataDir, String> {
        let failed = |error: std::io::Error| format!("data directory {}: {error}", root.display());
        let created = !root.exists();
        std::fs::create_dir_all(root).map_err(failed)?;
        let marker = root.join(MARKER);
        let empty = std::fs::read_dir(root).map_err(failed)?.next().is_none();
        if !empty && !marker.exists() {
            return Err(format!(
                "data directory {} is not empty and not the lab's; name another with --data",
                root.display()
            ));
        }
        std::fs::write(&marker, "Data of the lab's sessions. Safe to delete.\n").map_err(failed)?;
        Ok(DataDir { root: root.to_path_buf(), created })
    }

    /// An empty directory for one session.
    pub fn session(&self, name: &str) -> Result<PathBuf, String> {
        let dir = self.root.join(name);
        self.remove(name)?;
        std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(dir)
    }

    /// Removes a session's directory.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        let dir = self.root.join(name);
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", dir.display()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a run that would fill the device.
    pub fn check_space(&self, needed: u64) -> Result<(), String> {
        let stat =
            rustix::fs::statvfs(&self.root).map_err(|error| format!("{}: {error}", self.root.display()))?;
        let free = stat.f_bavail * stat.f_frsize;
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
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.root.join(MARKER));
        if self.created {
            // Fails, as it should, if somebody else put something there.
            let _ = std::fs::remove_dir(&self.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_somebody_else_is_refused_and_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("precious"), "data").unwrap();
        let error = DataDir::take(temp.path()).err().unwrap();
        assert!(error.contains("not empty") && error.contains("--data"), "{error}");
        assert!(temp.path().join("precious").exists());
        assert!(!temp.path().join(MARKER).exists());
    }

    #[test]
    fn what_was_created_goes_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("data");
        let data = DataDir::take(&root).unwrap();
        let session = data.session("a").unwrap();
        std::fs::write(session.join("x"), "y").unwrap();
        data.remove("a").unwrap();
        drop(data);
        assert!(!root.exists());
    }

    #[test]
    fn too_little_space_is_refused_before_anything_is_written() {
        let temp = tempfile::tempdir().unwrap();
        let data = DataDir::take(&temp.path().join("d")).unwrap();
        assert!(data.check_space(u64::MAX).unwrap_err().contains("no space"));
        data.check_space(1).unwrap();
    }
}
