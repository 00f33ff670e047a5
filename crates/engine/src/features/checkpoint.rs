//! A checkpoint: a second database with the same contents, made of hard links.
//!
//! ```text
//! freeze (live_files.rs): what the database is, taken down while writers are excluded
//! link tables, copy WALs, write a MANIFEST -> rename the directory into place
//! ```
//! Invariant: the checkpoint holds exactly the writes that were acknowledged when writers were excluded, over all
//! column families alike. Nothing appears under the target's name before it is complete.
//!
//! Concurrency: file deletions are on hold meanwhile, so every table taken down stays there to be linked.
//! Source: RocksDB `utilities/checkpoint/checkpoint_impl.cc`.

use super::staging::Staging;
use crate::copy_file::{copy_file, link_or_copy};
use crate::core::Core;
use crate::info_log::log_line;
use crate::live_files::{DeletionsOnHold, Frozen, freeze};
use crate::options_file;
use outcrop_base::{Error, Result};
use outcrop_env::file_system::parent_of;
use outcrop_manifest::{ManifestWriter, file_name};
use outcrop_monitor::Ticker;
use std::path::{Path, PathBuf};

/// See [`crate::Db::create_checkpoint`].
pub fn create(core: &Core, target: &Path, log_size_for_flush: u64) -> Result<()> {
    let fs = &core.ctx.env.fs;
    if target.file_name().is_none() {
        return Err(Error::invalid_argument(format!(
            "{:?} is no name of a directory to make",
            target.display().to_string()
        )));
    }
    // Without the slashes that may end it.
    let target = &target.components().collect::<PathBuf>();
    let parent = parent_of(target);
    if !fs.exists(parent)? {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io(format!("create directory {}", target.display()), missing));
    }
    if fs.exists(target)? {
        return Err(Error::invalid_argument(format!("{}: Directory exists", target.display())));
    }
    let _hold = DeletionsOnHold::new(&core.jobs);
    let frozen = freeze(core, log_size_for_flush)?;
    let staging = Staging::new(&**fs, target)?;
    build_checkpoint(core, staging.dir(), &frozen)?;
    staging.install()?;
    let tables: usize = frozen.versions.iter().map(|version| version.num_files()).sum();
    log_line!(core.ctx, "checkpoint of {tables} tables at {}", target.display());
    Ok(())
}

fn build_checkpoint(core: &Core, dir: &Path, frozen: &Frozen) -> Result<()> {
    let fs = &core.ctx.env.fs;
    let mut copied = 0;
    for version in &frozen.versions {
        for (_, table) in version.files() {
            copied += link_or_copy(&**fs, &table.path(&core.ctx.path), &file_name::table(dir, table.number))?;
        }
        for blob in version.blob_files.values().map(|blob| &blob.file) {
            copied += link_or_copy(&**fs, &blob.path(&core.ctx.path), &file_name::blob(dir, blob.number))?;
        }
    }
    for (number, len) in &frozen.wals {
        let name = |dir: &Path| file_name::wal(dir, *number);
        copy_file(&**fs, &name(&core.ctx.wal_dir), &name(dir), *len)?;
    }
    // Of WALs RocksDB counts nothing.
    core.ctx.count(Ticker::CheckpointReadBytes, copied);
    core.ctx.count(Ticker::CheckpointWriteBytes, copied);
    // No IDENTITY: unless the MANIFEST has the database's, the checkpoint gets one of its own when it is opened.
    options_file::write_to(core, dir)?;
    let manifest_number = core.ctx.new_file_number();
    ManifestWriter::create(&**fs, dir, manifest_number, &frozen.edits_of_one_directory()).map(|_| ())
}
