//! Reports the tables and blob files of a database to its [`crate::SstFileManager`], if it has one.

use crate::context::DbContext;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::sst_file_manager::{SstFileManager, TRASH, limit_reached};
use outcrop_base::Result;
use outcrop_env::FileSystem;
use outcrop_manifest::file_name::{FileKind, parse};
use outcrop_monitor::{Ticker, Watch};
use std::path::{Path, PathBuf};

impl DbContext {
    /// A table or blob file of so many bytes is complete.
    pub fn file_added(&self, path: PathBuf, bytes: u64) {
        if let Some(manager) = &self.objects.sst_file_manager {
            manager.added(&self.env.fs, path, bytes);
        }
    }

    /// A table or blob file was removed.
    pub fn file_removed(&self, path: &Path) {
        if let Some(manager) = &self.objects.sst_file_manager {
            manager.forget(&self.env.fs, path);
        }
    }

    /// Fails once tables and blob files take all the space they may.
    pub fn check_space(&self) -> Result<()> {
        match &self.objects.sst_file_manager {
            Some(manager) if manager.is_max_allowed_space_reached() => Err(limit_reached()),
            _ => Ok(()),
        }
    }

    /// Removes an obsolete table or blob file, or renames it to be removed later. One that cannot be renamed is removed at once.
    /// Source: RocksDB `DeleteScheduler::DeleteFile`.
    pub fn remove_dead_file(&self, path: &Path) -> Result<Removal> {
        let manager = self.objects.sst_file_manager.as_ref();
        if let Some(manager) = manager.filter(|manager| manager.delays_removal()) {
            match self.move_to_trash(manager, path) {
                Ok(trash) => {
                    self.count_file(Ticker::FilesMarkedTrash);
                    return Ok(Removal::Later(trash));
                }
                Err(error) => {
                    log_at!(self, LogLevel::Error, "could not mark {} as trash: {error}", path.display());
                }
            }
        }
        self.env.fs.remove_file(path)?;
        self.file_removed(path);
        self.count_file(Ticker::FilesDeletedImmediately);
        Ok(Removal::Done)
    }

    fn count_file(&self, ticker: Ticker) {
        Watch::from(&self.monitor.begin()).count(ticker, 1);
    }

    fn move_to_trash(&self, manager: &SstFileManager, path: &Path) -> Result<PathBuf> {
        let fs = &self.env.fs;
        let bytes = fs.file_size(path)?;
        let mut trash = path.as_os_str().to_owned();
        trash.push(TRASH);
        let trash = PathBuf::from(trash);
        fs.rename(path, &trash)?;
        manager.forget(fs, path);
        manager.add_trash(fs, trash.clone(), bytes);
        Ok(trash)
    }

    /// Has the manager know of the files that there are, and takes up removals that an earlier opening left. A file
    /// that cannot be removed or asked about stays, with a line in LOG: it harms nobody.
    pub fn track_files(&self) -> Result<()> {
        for dir in self.data_dirs.load().iter() {
            for name in self.env.fs.list(dir)? {
                if let Err(error) = self.track_file(dir, &name) {
                    log_at!(self, LogLevel::Warn, "could not take care of {name}: {error}");
                }
            }
        }
        Ok(())
    }

    fn track_file(&self, dir: &Path, name: &str) -> Result<()> {
        let (fs, path) = (&self.env.fs, dir.join(name));
        let is_trash = name.ends_with(TRASH);
        match &self.objects.sst_file_manager {
            None if is_trash => fs.remove_file(&path)?,
            Some(manager) if is_trash => manager.add_trash(fs, path.clone(), fs.file_size(&path)?),
            Some(manager) if is_data(name) => manager.added(fs, path.clone(), fs.file_size(&path)?),
            _ => {}
        }
        Ok(())
    }

    /// Removes what waits for it, as far as the rate allows: also files of other databases that share the manager.
    pub fn empty_trash(&self) {
        let Some(manager) = &self.objects.sst_file_manager else { return };
        let remove = |fs: &dyn FileSystem, path: &Path| match fs.remove_file(path) {
            Ok(()) => {
                self.count_file(Ticker::FilesDeletedFromTrashQueue);
                log_line!(self, "removed {}", path.display());
            }
            // By whoever opened its database without the manager, or destroyed it.
            Err(error) if error.is_missing_file() => {}
            Err(error) => log_at!(self, LogLevel::Error, "could not remove {}: {error}", path.display()),
        };
        manager.empty_trash(self.env.clock.monotonic_nanos(), remove);
    }
}

/// The outcome of removing an obsolete file.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Done,
    /// It has this name, and waits.
    Later(PathBuf),
}

fn is_data(name: &str) -> bool {
    matches!(parse(name), Some(FileKind::Table(_) | FileKind::Blob(_)))
}
