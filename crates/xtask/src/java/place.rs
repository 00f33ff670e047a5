//! Directories of programs in Java while they run: in memory where it can be. None stays of a run that was killed.
//!
//! ```text
//! MEMORY/outcrop-java/PID-NAME     removed on drop; if the process was killed, by the next that makes one
//! ```

use crate::pingpong;
use crate::sources::make_dir;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// An empty directory of this process; removed with what is in it on drop.
pub struct Place(PathBuf);

impl Place {
    /// Makes one in memory, or below `otherwise`, and removes those of processes that are gone.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(name: &str, otherwise: &Path) -> Result<Place, String> {
        let memory = pingpong::memory_dir().unwrap_or_else(|| otherwise.to_path_buf());
        Place::below(&memory.join("outcrop-java"), name)
    }

    fn below(parent: &Path, name: &str) -> Result<Place, String> {
        for sibling in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let owner =
                sibling.file_name().to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
            if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
                let _ = std::fs::remove_dir_all(sibling.path());
            }
        }
        let path = parent.join(format!("{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        make_dir(&path)?;
        Ok(Place(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves it to be looked at until another process makes one.
    pub fn keep(self) -> PathBuf {
        ManuallyDrop::new(self).0.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn nothing_stays_but_what_is_kept_and_that_until_its_process_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let [killed, others] =
            [format!("{}-x", gone.id()), "notes-x".to_string()].map(|name| temp.path().join(name));
        [&killed, &others].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let place = Place::below(temp.path(), "a").unwrap();
        std::fs::write(place.path().join("file"), "x").unwrap();
        assert!(!killed.exists() && others.exists());
        let kept = Place::below(temp.path(), "b").unwrap().keep();
        let path = place.path().to_path_buf();
        assert!(path.exists() && kept.exists());
        drop(place);
        assert!(!path.exists() && kept.exists());
    }
}
