//! Data directories of runs that were killed: found by the next run of the same user, wherever it keeps its own data.
//!
//! ```text
//! CACHE/data-dirs/NAME      the path of a directory that a run uses, and whether it or a killed one before made it; removed with
//!                           the run's data. OUTCROP_DATA_DIRS names another place than CACHE/data-dirs: tests have their own
//! next start: each entry -> its directory's mark is there and nobody's -> sessions and mark removed, and said so
//! ```
//! Invariant: nothing is removed but what [`DataDir`] would remove itself, while its lock is held. An entry is removed under that
//! lock, before the mark; that of a directory without the mark under a lock on the registry, which writers of entries take, too.
//!
//! [`DataDir`]: super::data_dir::DataDir

use super::data_dir::{self, MARKER};
use crate::targets::maven;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An entry of a directory in use.
#[derive(Debug)]
pub(super) struct Entry(PathBuf);

impl Entry {
    /// Forgets the directory: nothing of the lab is in it any more.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where entries are; nothing if this user has no cache.
pub(super) fn registry() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("OUTCROP_DATA_DIRS").filter(|dir| !dir.is_empty()) {
        return Some(PathBuf::from(dir));
    }
    Some(maven::cache_dir().ok()?.join("data-dirs"))
}

/// Remembers that `root` is in use, and whether it was `created`; nothing where that cannot be kept.
pub(super) fn remember(registry: &Path, root: &Path, created: bool) -> Option<Entry> {
    let root = std::path::absolute(root).ok()?;
    std::fs::create_dir_all(registry).ok()?;
    let _one = locked(registry)?;
    let entry = registry.join(name(&root));
    let text = format!("{}\n{}", if created { "made" } else { "found" }, root.to_str()?);
    std::fs::write(&entry, text).ok()?;
    Some(Entry(entry))
}

/// The registry, locked until this is dropped.
fn locked(registry: &Path) -> Option<File> {
    let dir = File::open(registry).ok()?;
    dir.lock().ok()?;
    Some(dir)
}

/// Whether `root` is remembered as made by the lab.
pub(super) fn was_made(registry: &Path, root: &Path) -> bool {
    let Ok(root) = std::path::absolute(root) else { return false };
    read(&registry.join(name(&root))).is_some_and(|(made, path)| made && path == root)
}

/// A name for a path: its own characters, as far as a file's name takes them, and a hash for the rest.
fn name(root: &Path) -> String {
    let text = root.display().to_string();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).rev().take(40).collect();
    format!("{}-{hash:016x}", plain.chars().rev().collect::<String>())
}

/// Removes what killed runs left in directories other than `own`; a sentence about each in which there was something.
pub(super) fn clear(registry: &Path, own: &Path) -> Vec<String> {
    let own = std::path::absolute(own).unwrap_or_else(|_| own.to_path_buf());
    let entries = std::fs::read_dir(registry).into_iter().flatten().flatten();
    let mut said = Vec::new();
    for entry in entries.map(|entry| entry.path()) {
        let Some((created, root)) = read(&entry) else { continue };
        if root == own {
            continue;
        }
        match clear_one(&root, created, &entry) {
            // Its mark is gone, or a run uses it, or it cannot be seen now.
            Ok(None) => forget(registry, &root, &entry),
            Ok(Some(0)) => {}
            Ok(Some(bytes)) => {
                said.push(format!(
                    "removed {} MB that a killed run had left in {}",
                    bytes.div_ceil(1 << 20),
                    root.display()
                ));
            }
            Err(why) => {
                said.push(format!(
                    "a killed run left data that cannot be removed: {why}; remove them yourself"
                ));
            }
        }
    }
    said
}

/// Removes an entry if its directory is there and has no mark: one that is not there may be on a device that will be back.
fn forget(registry: &Path, root: &Path, entry: &Path) {
    let Some(_one) = locked(registry) else { return };
    // A run that takes the directory makes its mark first, and then waits here to write its entry.
    if std::fs::read_dir(root).is_ok() && matches!(root.join(MARKER).try_exists(), Ok(false)) {
        let _ = std::fs::remove_file(entry);
    }
}

fn read(entry: &Path) -> Option<(bool, PathBuf)> {
    let text = std::fs::read_to_string(entry).ok()?;
    let (how, path) = text.split_once('\n')?;
    Some((how == "made", PathBuf::from(path)))
}

/// The bytes that were removed from `root`, which is forgotten with them; `None` if it has no mark or a run uses it.
fn clear_one(root: &Path, created: bool, entry: &Path) -> Result<Option<u64>, String> {
    let marker = root.join(MARKER);
    if !marker.exists() {
        return Ok(None);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", root.display());
    let file = match OpenOptions::new().append(true).open(&marker) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    if file.try_lock().is_err() || !data_dir::is_at(&file, &marker) {
        return Ok(None);
    }
    let bytes = data_dir::remove_sessions(root)?;
    std::fs::remove_file(entry).map_err(failed)?;
    std::fs::remove_file(&marker).map_err(failed)?;
    if created {
        // Fails, as it should, if somebody else put something there.
        let _ = std::fs::remove_dir(root);
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::DataDir;
    use super::*;
    use std::time::Duration;

    /// A directory as a killed run leaves it.
    fn abandoned(registry: &Path, root: &Path, created: bool) {
        std::fs::create_dir_all(root.join("session-3/data")).unwrap();
        std::fs::write(root.join("session-3/data/x"), vec![0; 3 << 20]).unwrap();
        std::fs::write(root.join(MARKER), "").unwrap();
        remember(registry, root, created).unwrap();
    }

    #[test]
    fn what_a_killed_run_left_elsewhere_is_removed_and_told() {
        let temp = tempfile::tempdir().unwrap();
        let registry = temp.path().join("registry");
        let [made, found] = ["made", "found"].map(|name| temp.path().join(name));
        abandoned(&registry, &made, true);
        abandoned(&registry, &found, false);
        std::fs::write(found.join("precious"), "mine").unwrap();
        let said = clear(&registry, &temp.path().join("own"));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|line| line.contains("removed 3 MB")), "{said:?}");
        assert!(!made.exists());
        assert_eq!(std::fs::read_dir(&found).unwrap().count(), 1, "what is not the lab's stays");
        assert!(clear(&registry, &temp.path().join("own")).is_empty());
        assert_eq!(std::fs::read_dir(&registry).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_in_use_is_left_alone_and_so_is_one_without_the_mark() {
        let temp = tempfile::tempdir().unwrap();
        let registry = temp.path().join("registry");
        let [used, unmarked] = ["used", "unmarked"].map(|name| temp.path().join(name));
        let data = DataDir::take_with(&used, Some(&registry), Duration::ZERO).unwrap();
        let session = data.session(1).unwrap();
        std::fs::create_dir_all(unmarked.join("session-1")).unwrap();
        remember(&registry, &unmarked, true).unwrap();
        assert!(clear(&registry, &temp.path().join("own")).is_empty());
        assert!(session.exists() && unmarked.join("session-1").exists());
        let remembered = || std::fs::read_dir(&registry).unwrap().count();
        assert_eq!(remembered(), 1, "the one in use");
        remember(&registry, &temp.path().join("unmounted"), true).unwrap();
        assert!(clear(&registry, &temp.path().join("own")).is_empty());
        assert_eq!(remembered(), 2, "one that is not there may come back");
    }

    #[test]
    fn names_tell_paths_apart() {
        let long = format!("/{}", "a/".repeat(300));
        assert_ne!(name(Path::new(&long)), name(Path::new(&format!("{long}b"))));
        assert!(name(Path::new(&long)).len() < 64);
    }
}
