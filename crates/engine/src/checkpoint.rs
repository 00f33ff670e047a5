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

use crate::db::DbInner;
use crate::info_log::log_line;
use crate::open::snapshot_edits;
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_env::file_system::parent_of;
use outcrop_env::{Access, OpenRead, OpenWrite};
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, file_name};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// What a checkpoint consists of.
struct Contents {
    tables: Vec<FileNumber>,
    blob_files: Vec<FileNumber>,
    /// WALs and how many of their bytes belong to it.
    wals: Vec<(u64, u64)>,
    edits: Vec<VersionEdit>,
}

/// Holds file deletions back while it lives.
struct DeletionsOnHold<'d>(&'d DbInner);

impl<'d> DeletionsOnHold<'d> {
    fn new(db: &'d DbInner) -> DeletionsOnHold<'d> {
        db.state.lock().deletions_disabled += 1;
        DeletionsOnHold(db)
    }
}

impl Drop for DeletionsOnHold<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.deletions_disabled -= 1;
        drop(state);
        self.0.purge_obsolete_files();
    }
}

impl DbInner {
    /// See [`crate::Db::create_checkpoint`].
    pub(crate) fn create_checkpoint(&self, target: &Path, log_size_for_flush: u64) -> Result<()> {
        let fs = &self.ctx.env.fs;
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
            return Err(Error::invalid_argument(format!("{}: directory exists", target.display())));
        }
        let _hold = DeletionsOnHold::new(self);
        let contents = self.freeze(log_size_for_flush)?;
        let building = with_suffix(target, ".tmp");
        let built = self.build_checkpoint(&building, &contents);
        let placed = built.and_then(|()| fs.rename(&building, target));
        if let Err(error) = placed {
            remove_dir(self, &building);
            return Err(error);
        }
        fs.sync_dir(parent)?;
        log_line!(self.ctx, "checkpoint of {} tables at {}", contents.tables.len(), target.display());
        Ok(())
    }

    /// Takes down what the database is, with writers excluded.
    fn freeze(&self, log_size_for_flush: u64) -> Result<Contents> {
        let mut core = self.write_core.lock();
        if self.write_refused.load(Ordering::Relaxed)
            && let Some(error) = &self.state.lock().background_error
        {
            return Err(error.clone());
        }
        core.wal.flush().map_err(|error| self.fail_writes(error))?;
        let live_bytes = {
            let state = self.state.lock();
            state.live_wals.iter().map(|wal| wal.size_bytes).sum::<u64>() + core.wal.len()
        };
        // Data that is in no WAL can only be had by a flush.
        let copy_wals = !core.unlogged && live_bytes < log_size_for_flush;
        if !copy_wals {
            let ids = core.targets.ids();
            self.seal(&mut core, &ids)?;
            self.request_flush(&ids);
            self.wait_for_flush(&ids)?;
        }
        // HOLDS manifest: no job may install its result between the versions and the log numbers taken here.
        let _manifest = self.manifest.lock();
        let state = self.state.lock();
        let last_seq = SeqNum(self.visible_seq.load(Ordering::Acquire));
        let min_wal = state.min_wal_needed(core.wal.number());
        // After a flush the WAL being written is part of it, empty: as in RocksDB's checkpoints, there is always one.
        let current = core.wal.number();
        let wals =
            state.live_wals.iter().filter(|wal| wal.number >= min_wal).filter_map(|wal| match copy_wals {
                true if wal.number == current => Some((current, core.wal.len())),
                true => Some((wal.number, wal.size_bytes)),
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
            edits: snapshot_edits(&self.ctx, &state, last_seq, min_wal),
        })
    }

    fn build_checkpoint(&self, dir: &Path, contents: &Contents) -> Result<()> {
        let fs = &self.ctx.env.fs;
        remove_dir(self, dir);
        fs.create_dir_all(dir)?;
        for number in &contents.tables {
            let name = |dir: &Path| file_name::table(dir, *number);
            self.link_or_copy(&name(&self.ctx.path), &name(dir))?;
        }
        for number in &contents.blob_files {
            let name = |dir: &Path| file_name::blob(dir, *number);
            self.link_or_copy(&name(&self.ctx.path), &name(dir))?;
        }
        for (number, len) in &contents.wals {
            let name = |dir: &Path| file_name::wal(dir, FileNumber(*number));
            self.copy_file(&name(&self.ctx.wal_dir), &name(dir), *len)?;
        }
        let identity = file_name::identity(dir);
        fs.replace(&identity, &file_name::temp(dir, FileNumber(0)), self.ctx.db_id.as_bytes())?;
        self.write_options_to(dir)?;
        let manifest_number = FileNumber(self.ctx.new_file_number());
        ManifestWriter::create(&**fs, dir, manifest_number, &contents.edits).map(|_| ())
    }

    /// Another name for a file that never changes; a copy where the file system has no such thing.
    pub(crate) fn link_or_copy(&self, source: &Path, target: &Path) -> Result<()> {
        match self.ctx.env.fs.hard_link(source, target) {
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                self.copy_file(source, target, self.ctx.env.fs.file_size(source)?)
            }
            result => result,
        }
    }

    /// Copies the first `len` bytes, durably.
    pub(crate) fn copy_file(&self, source: &Path, target: &Path, len: u64) -> Result<()> {
        let fs = &self.ctx.env.fs;
        let input = fs.open_read(source, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        let mut output = fs.create(target, OpenWrite::default())?;
        let mut buffer = vec![0; COPY_BYTES.min(len.max(1) as usize)];
        let mut done = 0;
        while done < len {
            let part = buffer.len().min((len - done) as usize);
            input.read_exact_at(done, &mut buffer[..part])?;
            output.append(&buffer[..part])?;
            done += part as u64;
        }
        output.sync()?;
        output.close()
    }
}

/// Removes a directory of ours with the files in it, as far as that goes.
fn remove_dir(db: &DbInner, dir: &Path) {
    let fs = &db.ctx.env.fs;
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
