//! Moving files into `lost/`, so that a failure on the way leaves each under its old name or under both.
//!
//! ```text
//! link lost/NAME to NAME -> (the new MANIFEST is in charge) -> remove NAME
//! ```
//! Before the new MANIFEST is in charge the database is as it was but for the links; afterwards an opening that removes what it does
//! not know removes no last name. A file system without links has its files renamed afterwards. No name in `lost/` is ever replaced.

use super::report::MovedFile;
use outcrop_base::Result;
use outcrop_env::FileSystem;
use outcrop_env::file_system::parent_of;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Name of the directory. Source: RocksDB `db/repair.cc`, `ArchiveFile`.
pub const LOST: &str = "lost";

/// Files on their way into `lost/`.
#[derive(Default)]
pub struct Moves {
    files: Vec<Move>,
    /// The files are copies in this directory.
    copies: Option<PathBuf>,
}

struct Move {
    file: MovedFile,
    linked: bool,
}

impl Moves {
    /// Of a database that is made in `dir` of copies: one that it does not use is removed, and files elsewhere stay as they are.
    pub fn of_copies(dir: PathBuf) -> Moves {
        Moves { files: Vec::new(), copies: Some(dir) }
    }

    /// True if so.
    pub fn are_of_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// `path` is to be moved.
    pub fn add(&mut self, path: PathBuf, reason: impl Into<String>, held_data: bool) {
        if self.copies.as_ref().is_some_and(|copies| !path.starts_with(copies)) {
            return;
        }
        let file = MovedFile { now: PathBuf::new(), path, reason: reason.into(), held_data };
        self.files.push(Move { file, linked: false });
    }

    /// Gives each file its second name, durably.
    ///
    /// # Errors
    /// Of the file system: names given so far were taken away again as far as possible.
    pub fn link(&mut self, fs: &dyn FileSystem) -> Result<()> {
        let linked = self.link_all(fs);
        if linked.is_err() {
            self.unlink(fs);
        }
        linked
    }

    fn link_all(&mut self, fs: &dyn FileSystem) -> Result<()> {
        if self.are_of_copies() {
            return Ok(());
        }
        let mut dirs = BTreeSet::new();
        for entry in &mut self.files {
            let dir = parent_of(&entry.file.path).join(LOST);
            if dirs.insert(dir.clone()) {
                fs.create_dir_all_durably(&dir)?;
            }
            entry.file.now = free_name(fs, &dir, &entry.file.path)?;
            // Without links it is renamed later.
            entry.linked = fs.hard_link(&entry.file.path, &entry.file.now).is_ok();
        }
        dirs.iter().try_for_each(|dir| fs.sync_dir(dir))
    }

    /// Takes the second names away again.
    pub fn unlink(&mut self, fs: &dyn FileSystem) {
        for entry in self.files.iter_mut().filter(|entry| entry.linked) {
            // Best effort: a second name is in nobody's way.
            let _ = fs.remove_file(&entry.file.now);
            entry.linked = false;
        }
    }

    /// Takes the first names away.
    ///
    /// # Errors
    /// Of the file system: some files have both names.
    pub fn finish(self, fs: &dyn FileSystem) -> Result<Vec<MovedFile>> {
        if self.are_of_copies() {
            self.files.iter().try_for_each(|entry| fs.remove_file(&entry.file.path))?;
            return Ok(Vec::new());
        }
        let mut dirs = BTreeSet::new();
        for entry in &self.files {
            let (path, now) = (&entry.file.path, &entry.file.now);
            if entry.linked {
                fs.remove_file(path)?
            } else {
                fs.rename(path, now)?
            }
            dirs.insert(parent_of(path).to_path_buf());
            dirs.insert(parent_of(now).to_path_buf());
        }
        dirs.iter().try_for_each(|dir| fs.sync_dir(dir))?;
        let mut moved: Vec<MovedFile> = self.files.into_iter().map(|entry| entry.file).collect();
        moved.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(moved)
    }
}

/// A name in `dir` that no file has: that of `path`, or that with a number.
fn free_name(fs: &dyn FileSystem, dir: &Path, path: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut free = dir.join(&name);
    let mut number = 1;
    while fs.exists(&free)? {
        free = dir.join(format!("{name}.{number}"));
        number += 1;
    }
    Ok(free)
}
