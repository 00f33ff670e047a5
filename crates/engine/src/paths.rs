//! The directories that tables and blob files are in, where `db_paths` or `cf_paths` name some.
//!
//! New tables of flushes, ingestions and imports go to the first one, as do all blob files; those of compactions go where
//! `outcrop_options::paths` says, or the caller. The MANIFEST has the number of the path, and every [`TableFile`] in memory where that is.
//! Invariant: a directory that may hold files of the database is in [`DbContext::data_dirs`] before a file is made in it.

use crate::column_family::ColumnFamily;
use crate::compaction::Compaction;
use crate::context::DbContext;
use outcrop_base::{Error, Result};
use outcrop_manifest::{TableFile, TableMeta};
use outcrop_options::{ColumnFamilyOptions, DbPath, paths};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of a path; `None`: the database's own.
pub fn directory(options: &ColumnFamilyOptions, path_id: u32) -> Option<Arc<Path>> {
    options.cf_paths.get(path_id as usize).map(|path| Arc::from(path.path.as_path()))
}

/// The same for a job that writes there.
pub fn directory_of(ctx: &DbContext, cf: &ColumnFamily, path_id: u32) -> PathBuf {
    directory(&cf.options.load(), path_id).map_or_else(|| ctx.path.clone(), |dir| dir.to_path_buf())
}

/// All directories of a column family.
pub fn directories(options: &ColumnFamilyOptions) -> Vec<Arc<Path>> {
    options.cf_paths.iter().map(|path| Arc::from(path.path.as_path())).collect()
}

/// Which path the outputs of `compaction` go to.
pub fn output_path(options: &ColumnFamilyOptions, compaction: &Compaction) -> u32 {
    compaction
        .path_id
        .unwrap_or_else(|| paths::path_for(options, compaction.output_level, compaction.input_bytes()))
}

/// InvalidArgument if there is no such path.
pub fn check_path(options: &ColumnFamilyOptions, path_id: u32) -> Result<()> {
    match (path_id as usize) < options.cf_paths.len().max(1) {
        true => Ok(()),
        false => Err(Error::invalid_argument("Invalid target path ID")),
    }
}

/// A table as a database in one directory has it.
pub fn in_one_directory(file: &Arc<TableFile>) -> Arc<TableFile> {
    match file.path_id {
        0 => file.clone(),
        _ => Arc::new(TableMeta { path_id: 0, dir: None, ..file.meta.clone() }.into()),
    }
}

impl DbContext {
    /// Makes the directories of `paths` that are missing, claims them, and has them looked at from here on.
    ///
    /// # Errors
    /// InvalidArgument if one belongs to another database.
    pub fn add_data_dirs(&self, paths: &[DbPath]) -> Result<()> {
        for DbPath { path, .. } in paths {
            if self.data_dirs.load().contains(path) {
                continue;
            }
            if !self.env.fs.exists(path)? {
                self.env.fs.create_dir_all_durably(path)?;
            }
            self.claim(path)?;
            self.data_dirs.rcu(|known| {
                let mut dirs = (**known).clone();
                dirs.push(path.clone());
                dirs
            });
        }
        Ok(())
    }
}
