//! What a database tells its [`crate::SstFileManager`], if it has one, of its tables and blob files.

use crate::context::DbContext;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::sst_file_manager::{TRASH, limit_reached};
use outcrop_base::Result;
use outcrop_manifest::file_name::{FileKind, parse};
use std::path::{Path, PathBuf};

impl DbContext {
    /// A table or blob file of so many bytes is complete.
    pub fn file_added(&self, path: PathBuf, bytes: u64) {
        if let Some(manager) = &self.objects.sst_file_manager {
            manager.added(path, bytes);
        }
    }

    /// A table or blob file was removed by its own job.
    pub fn file_removed(&self, path: &Path) {
        if let Some(manager) = &self.objects.sst_file_manager {
            manager.forget(path);
        }
    }

    /// Fails once tables and blob files take all the space they may.
    pub fn check_space(&self) -> Result<()> {
        match &self.objects.sst_file_manager {
            Some(manager) if manager.is_max_allowed_space_reached() => Err(limit_reached()),
            _ => Ok(()),
        }
    }

    /// Removes a dead table or blob file, or renames it to be removed later.
    pub fn remove_dead_file(&self, path: &Path) -> Result<()> {
        let Some(manager) = &self.objects.sst_file_manager else { return self.env.fs.remove_file(path) };
        if manager.delays_removal() {
            let bytes = self.env.fs.file_size(path)?;
            let trash = PathBuf::from(format!("{}{TRASH}", path.display()));
            self.env.fs.rename(path, &trash)?;
            manager.forget(path);
            manager.add_trash(trash, bytes);
            return Ok(());
        }
        let removed = self.env.fs.remove_file(path);
        if removed.is_ok() {
            manager.forget(path);
        }
        removed
    }

    /// Has the manager know of the files that there are, and takes up removals that an earlier opening left.
    pub fn track_files(&self) -> Result<()> {
        let names = self.env.fs.list(&self.path)?;
        let manager = self.objects.sst_file_manager.as_ref();
        for name in names {
            let path = self.path.join(&name);
            let is_trash = name.ends_with(TRASH);
            match manager {
                None if is_trash => self.env.fs.remove_file(&path)?,
                None => {}
                Some(manager) if is_trash => manager.add_trash(path.clone(), self.env.fs.file_size(&path)?),
                Some(manager) if is_data(&name) => {
                    manager.added(path.clone(), self.env.fs.file_size(&path)?);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Removes what waits for it, as far as the rate allows.
    pub fn empty_trash(&self) {
        let Some(manager) = &self.objects.sst_file_manager else { return };
        let remove = |path: &Path| match self.env.fs.remove_file(path) {
            Ok(()) => log_line!(self, "removed {}", path.display()),
            Err(error) => log_at!(self, LogLevel::Error, "could not remove {}: {error}", path.display()),
        };
        manager.empty_trash(self.env.clock.monotonic_nanos(), remove);
    }
}

fn is_data(name: &str) -> bool {
    matches!(parse(name), Some(FileKind::Table(_) | FileKind::Blob(_)))
}
