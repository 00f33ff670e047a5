//! A checkpoint: a second database with the same contents, made of hard links.
//!
//! ```text
//! exclude writers -> flush, or note how far the WALs go -> take down versions -> let writers on
//! link tables, copy WALs, write a MANIFEST -> rename the directory into place
//! ```
//! Invariant: the checkpoint holds exactly the writes that were acknowledged when writers were excluded, over all
//! column families alike. Nothing appears under the target's name before it is complete.
//!
//! Concurrency: file deletions are on hold meanwhile, so every table taken down stays there to be linked.
//! Source: RocksDB `utilities/checkpoint/checkpoint_impl.cc`.

use crate::copy_file::{copy_file, link_or_copy};
use crate::core::Core;
use crate::events::reasons::FlushReason;
use crate::info_log::log_line;
use crate::jobs::JobContext;
use crate::manifest_file::snapshot_edits;
use crate::obsolete_files::purge_obsolete_files;
use crate::options_file;
use outcrop_base::{Error, Result};
use outcrop_env::file_system::parent_of;
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, file_name};
use std::path::{Path, PathBuf};

/// What a checkpoint consists of.
struct Contents {
    tables: Vec<FileNumber>,
    blob_files: Vec<FileNumber>,
    /// WALs and how many of their bytes belong to it.
    wals: Vec<(u64, u64)>,
    edits: Vec<VersionEdit>,
}

/// Holds file deletions back while it lives.
struct DeletionsOnHold<'d>(&'d JobContext);

impl<'d> DeletionsOnHold<'d> {
    fn new(jobs: &'d JobContext) -> DeletionsOnHold<'d> {
        jobs.versions.state.lock().deletions_disabled += 1;
        DeletionsOnHold(jobs)
    }
}

impl Drop for DeletionsOnHold<'_> {
    fn drop(&mut self) {
        let mut state = self.0.versions.state.lock();
        state.deletions_disabled -= 1;
        drop(state);
        purge_obsolete_files(self.0);
    }
}

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
    let contents = freeze(core, log_size_for_flush)?;
    let building = with_suffix(target, ".tmp");
    let built = build_checkpoint(core, &building, &contents);
    let placed = built.and_then(|()| fs.rename(&building, target));
    if let Err(error) = placed {
        remove_dir(core, &building);
        return Err(error);
    }
    fs.sync_dir(parent)?;
    log_line!(core.ctx, "checkpoint of {} tables at {}", contents.tables.len(), target.display());
    Ok(())
}

/// Takes down what the database is, with writers excluded.
fn freeze(core: &Core, log_size_for_flush: u64) -> Result<Contents> {
    let mut writing = core.commit.exclude_writers();
    core.commit.check_no_error()?;
    writing.wal.flush().map_err(|error| core.versions.fail_writes(error))?;
    let live_bytes = {
        let state = core.versions.state.lock();
        state.live_wals.iter().map(|wal| wal.size_bytes).sum::<u64>() + writing.wal.len()
    };
    // Data that is in no WAL can only be had by a flush.
    let copy_wals = !writing.unlogged && live_bytes < log_size_for_flush;
    if !copy_wals {
        let ids = writing.targets.ids();
        core.commit.flush_excluded(&mut writing, &ids, FlushReason::GetLiveFiles)?;
    }
    // HOLDS manifest: no job may install its result between the versions and the log numbers taken here.
    let _manifest = core.versions.manifest.lock();
    let state = core.versions.state.lock();
    let last_seq = core.versions.visible_seq();
    let min_wal = state.min_wal_needed(writing.wal.number());
    // After a flush the WAL being written is part of it, empty: as in RocksDB's checkpoints, there is always one.
    let current = writing.wal.number();
    // What was prepared and not decided is in WALs alone.
    let with_prepared = !state.prepared.is_empty();
    let wals = state.live_wals.iter().filter(|wal| wal.number >= min_wal).filter_map(|wal| match copy_wals {
        true if wal.number == current => Some((current, writing.wal.len())),
        true => Some((wal.number, wal.size_bytes)),
        false if with_prepared && wal.number == current => Some((current, writing.wal.len())),
        false if with_prepared => Some((wal.number, wal.size_bytes)),
        false => (wal.number == current).then_some((current, 0)),
    });
    let tables = state
        .column_families
        .values()
        .flat_map(|cf| cf.version.files().map(|(_, file)| file.number).collect::<Vec<_>>());
    let blob_files = state.column_families.values().flat_map(|cf| cf.version.blob_files.keys().copied());
    Ok(Contents {
        blob_files: blob_files.collect(),
        wals: wals.collect(),
        tables: tables.collect(),
        edits: snapshot_edits(&core.ctx, &state, last_seq, min_wal),
    })
}

fn build_checkpoint(core: &Core, dir: &Path, contents: &Contents) -> Result<()> {
    let fs = &core.ctx.env.fs;
    remove_dir(core, dir);
    fs.create_dir_all(dir)?;
    for number in &contents.tables {
        let name = |dir: &Path| file_name::table(dir, *number);
        link_or_copy(&**fs, &name(&core.ctx.path), &name(dir))?;
    }
    for number in &contents.blob_files {
        let name = |dir: &Path| file_name::blob(dir, *number);
        link_or_copy(&**fs, &name(&core.ctx.path), &name(dir))?;
    }
    for (number, len) in &contents.wals {
        let name = |dir: &Path| file_name::wal(dir, FileNumber(*number));
        copy_file(&**fs, &name(&core.ctx.wal_dir), &name(dir), *len)?;
    }
    // No IDENTITY: unless the MANIFEST has the database's, the checkpoint gets one of its own when it is opened.
    options_file::write_to(core, dir)?;
    let manifest_number = FileNumber(core.ctx.new_file_number());
    ManifestWriter::create(&**fs, dir, manifest_number, &contents.edits).map(|_| ())
}

/// Removes a directory of ours with the files in it, as far as that goes.
fn remove_dir(core: &Core, dir: &Path) {
    let fs = &core.ctx.env.fs;
    for name in fs.list(dir).unwrap_or_default() {
        // What stays is in the way of the next attempt, which will say so.
        let _ = fs.remove_file(&dir.join(name));
    }
    let _ = fs.remove_dir(dir);
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
