//! The files that a database consists of at one moment, for checkpoints, backups and programs that copy it by other means.
//!
//! ```text
//! exclude writers -> flush, or note how far the WALs go -> take down versions and the length of the MANIFEST -> let writers on
//! ```
//! Invariant: the list holds exactly the writes that were acknowledged when writers were excluded, over all column
//! families alike. The files stay where they are for as long as deletions are on hold.
//! Source: RocksDB `db/db_filesnapshot.cc`, `DBImpl::GetLiveFilesStorageInfo`.

use crate::core::Core;
use crate::jobs::JobContext;
use crate::manifest_file::snapshot_edits;
use crate::obsolete_files::purge_obsolete_files_now;
use crate::paths::in_one_directory;
use outcrop_base::{Result, SeqNum};
use outcrop_env::Env;
use outcrop_env::file_system::parent_of;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{FileNumber, ManifestWriter, Version, VersionEdit};
use outcrop_table::blob;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files to list.
///
/// ```
/// # use outcrop::{Db, Env, LiveFilesOptions};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("a", "1")?;
/// // Memtables stay where they are: their writes are in WALs, which are files too.
/// let options = LiveFilesOptions { wal_size_for_flush: u64::MAX, ..LiveFilesOptions::default() };
/// assert!(db.live_files_storage_info(&options)?.files.iter().any(|file| file.name.ends_with(".log")));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveFilesOptions {
    /// Memtables are flushed first, unless all live WALs together are smaller than this, in bytes: then those are files of the list.
    /// Default 0: always flushed. `u64::MAX`: only what is in no WAL is flushed.
    pub wal_size_for_flush: u64,
    /// Give the checksums of whole files that the MANIFEST has; RocksDB writes them if it is told to. Default false.
    pub include_checksum_info: bool,
}

/// The files of a database at one moment: [`crate::Db::live_files_storage_info`].
///
/// ```
/// # use outcrop::{Db, Env, LiveFilesOptions};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// assert_eq!(db.live_files_storage_info(&LiveFilesOptions::default())?.sequence_number, 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LiveFiles {
    /// Tables, blob files, MANIFEST, CURRENT, OPTIONS, WALs, in this order.
    pub files: Vec<LiveFileStorage>,
    /// Of the last write that they hold.
    pub sequence_number: u64,
}

/// The kind of a [`LiveFileStorage`].
///
/// ```
/// # use outcrop::{Db, Env, LiveFilesOptions, StorageFileKind};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let live = db.live_files_storage_info(&LiveFilesOptions::default())?;
/// assert_eq!(live.files[0].kind, StorageFileKind::Manifest);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StorageFileKind {
    /// A write-ahead log.
    Wal,
    /// A table.
    Table,
    /// The MANIFEST.
    Manifest,
    /// CURRENT, which names the MANIFEST.
    Current,
    /// The OPTIONS file.
    Options,
    /// A blob file.
    Blob,
}

/// One file of [`LiveFiles`].
///
/// ```
/// # use outcrop::{Db, Env, LiveFilesOptions, StorageFileKind};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let live = db.live_files_storage_info(&LiveFilesOptions::default())?;
/// let current = live.files.iter().find(|file| file.kind == StorageFileKind::Current).expect("there is one");
/// assert!(current.replacement_contents.starts_with(b"MANIFEST-"));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFileStorage {
    /// Its name within `directory`.
    pub name: String,
    /// Where it is.
    pub directory: PathBuf,
    /// Its number; 0 for CURRENT, which has none.
    pub number: u64,
    /// The kind of the file.
    pub kind: StorageFileKind,
    /// Bytes of it that belong to the moment.
    pub size: u64,
    /// It may be longer, now or later: only the first `size` bytes are to be copied, and it must not be linked.
    pub trim_to_size: bool,
    /// If it is not empty, what the file must hold, whatever is in it by now.
    pub replacement_contents: Vec<u8>,
    /// RocksDB's number for the kind of storage it is meant for; 0 unknown.
    pub temperature: u8,
    /// Name of the function its checksum was made by; empty unless asked for, `Unknown` if there is none.
    pub checksum_function: String,
    /// The checksum of the whole file; empty if there is none.
    pub checksum: Vec<u8>,
}

impl LiveFileStorage {
    fn new(path: &Path, number: u64, kind: StorageFileKind, size: u64) -> LiveFileStorage {
        LiveFileStorage {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            directory: parent_of(path).to_path_buf(),
            number,
            kind,
            size,
            trim_to_size: false,
            replacement_contents: Vec::new(),
            temperature: 0,
            checksum_function: String::new(),
            checksum: Vec::new(),
        }
    }

    /// With the name of a function, which may be empty, and what it made.
    fn with_checksum(mut self, (function, checksum): (&[u8], &[u8])) -> LiveFileStorage {
        if !function.is_empty() {
            self.checksum_function = String::from_utf8_lossy(function).into_owned();
            self.checksum = checksum.to_vec();
        }
        self
    }

    /// For a file that grows.
    fn trimmed(mut self) -> LiveFileStorage {
        self.trim_to_size = true;
        self
    }
}

/// Holds file deletions back while it lives. When the last one is dropped, and deletions are not disabled, files that became obsolete
/// meanwhile are gone on return.
pub struct DeletionsOnHold<'d>(&'d JobContext);

impl<'d> DeletionsOnHold<'d> {
    /// From here on.
    pub fn new(jobs: &'d JobContext) -> DeletionsOnHold<'d> {
        jobs.versions.state.lock().deletion_holds += 1;
        // Nobody need wait for files that stay.
        jobs.versions.state_changed.notify_all();
        DeletionsOnHold(jobs)
    }
}

impl Drop for DeletionsOnHold<'_> {
    fn drop(&mut self) {
        let mut state = self.0.versions.state.lock();
        state.deletion_holds -= 1;
        drop(state);
        purge_obsolete_files_now(self.0);
    }
}

/// A database at one moment.
pub struct Frozen {
    /// The tables and blob files of each column family.
    pub versions: Vec<Arc<Version>>,
    /// WALs and how many of their bytes belong to it.
    pub wals: Vec<(FileNumber, u64)>,
    /// Number of the MANIFEST and how many of its bytes belong to it.
    pub manifest: (FileNumber, u64),
    /// The edits that a new MANIFEST would begin with.
    pub edits: Vec<VersionEdit>,
    /// The last write it holds.
    pub last_seq: SeqNum,
}

impl Frozen {
    /// The edits of a database that has all these files in its own directory.
    pub fn edits_of_one_directory(&self) -> Vec<VersionEdit> {
        let mut edits = self.edits.clone();
        for (_, file) in edits.iter_mut().flat_map(|edit| &mut edit.new_files) {
            *file = in_one_directory(file);
        }
        edits
    }

    /// The bytes of a MANIFEST with these edits.
    fn manifest_of_one_directory(&self) -> Result<Vec<u8>> {
        let (fs, dir, number) = (Env::memory().fs, Path::new("/copy"), self.manifest.0);
        fs.create_dir_all(dir)?;
        ManifestWriter::create(&*fs, dir, number, &self.edits_of_one_directory())?;
        fs.read_all(&file_name::manifest(dir, number))
    }
}

/// Takes down what the database is, with writers excluded. For a caller that holds deletions back.
///
/// # Errors
/// Those of a flush; the error that keeps the database from being written.
pub fn freeze(core: &Core, wal_size_for_flush: u64) -> Result<Frozen> {
    let mut writing = core.commit.exclude_writers();
    core.commit.check_no_error()?;
    writing.wal.flush().map_err(|error| core.versions.fail_writes(error))?;
    let live_bytes = {
        let state = core.versions.state.lock();
        state.live_wals.iter().map(|wal| wal.size_bytes).sum::<u64>() + writing.wal.len()
    };
    // Data that is in no WAL can only be had by a flush.
    let copy_wals = !writing.unlogged && live_bytes < wal_size_for_flush;
    if !copy_wals {
        let ids = writing.targets.ids();
        core.commit.flush_excluded(&mut writing, &ids, crate::events::reasons::FlushReason::GetLiveFiles)?;
    }
    // HOLDS manifest: no job may install its result between the versions and the log numbers taken here.
    let mut manifest = core.versions.manifest.lock();
    if let Some(error) = &manifest.failed {
        return Err(error.clone());
    }
    // WALs that the flush has made needless are in no copy, so the MANIFEST that is copied must not miss them.
    // The MANIFEST may say so of more WALs than the state does, and not have forgotten them: its deletion and the list of WALs go by one number,
    // or the MANIFEST of the copy would track a WAL that the copy does not have.
    let needed = core.versions.state.lock().min_wal_needed(writing.wal.number()).max(manifest.wals_kept_from);
    if let Err(failure) = core.versions.log_deletion_in(&mut manifest, needed) {
        drop(manifest);
        return Err(core.versions.report_unchanged(failure));
    }
    let state = core.versions.state.lock();
    let last_seq = core.versions.visible_seq();
    // After a flush the WAL being written is part of it, empty: as in RocksDB's checkpoints, there is always one.
    let current = writing.wal.number();
    // Batches that were prepared and not decided are in WALs alone; other WALs that are still needed may be tracked, and a copy without them
    // would not open.
    let with_wals = !state.prepared.is_empty() || needed < current;
    let wals = state.live_wals.iter().filter(|wal| wal.number >= needed).filter_map(|wal| match copy_wals {
        true if wal.number == current => Some((current, writing.wal.len())),
        true => Some((wal.number, wal.size_bytes)),
        false if with_wals && wal.number == current => Some((current, writing.wal.len())),
        false if with_wals => Some((wal.number, wal.size_bytes)),
        false => (wal.number == current).then_some((current, 0)),
    });
    Ok(Frozen {
        wals: wals.collect(),
        versions: state.column_families.values().map(|cf| cf.version.clone()).collect(),
        manifest: (manifest.writer.number(), manifest.writer.size()),
        edits: snapshot_edits(&core.ctx, &state, last_seq, needed),
        last_seq,
    })
}

/// See [`crate::Db::live_files_storage_info`].
pub fn storage_info(core: &Core, options: &LiveFilesOptions) -> Result<LiveFiles> {
    listed(core, options, &freeze(core, options.wal_size_for_flush)?)
}

/// The same for a copy that has all files in one directory: the MANIFEST says so.
pub fn storage_info_of_one_directory(core: &Core, options: &LiveFilesOptions) -> Result<LiveFiles> {
    let frozen = freeze(core, options.wal_size_for_flush)?;
    let mut live = listed(core, options, &frozen)?;
    let mut tables = frozen.versions.iter().flat_map(|version| version.files());
    if tables.any(|(_, table)| table.path_id != 0) {
        for file in live.files.iter_mut().filter(|file| file.kind == StorageFileKind::Manifest) {
            file.replacement_contents = frozen.manifest_of_one_directory()?;
            file.size = file.replacement_contents.len() as u64;
            file.trim_to_size = false;
        }
    }
    Ok(live)
}

fn listed(core: &Core, options: &LiveFilesOptions, frozen: &Frozen) -> Result<LiveFiles> {
    let mut files = Vec::new();
    for version in &frozen.versions {
        tables_and_blobs(core, version, &mut files);
    }
    let dir = &core.ctx.path;
    let (manifest, manifest_size) = frozen.manifest;
    let kind = StorageFileKind::Manifest;
    let file = LiveFileStorage::new(&file_name::manifest(dir, manifest), manifest.0, kind, manifest_size);
    files.push(file.trimmed());
    let contents = format!("{}\n", file_name::manifest_name(manifest)).into_bytes();
    let kind = StorageFileKind::Current;
    let mut file = LiveFileStorage::new(&file_name::current(dir), 0, kind, contents.len() as u64);
    file.replacement_contents = contents;
    files.push(file);
    files.extend(newest_options(core)?);
    for (number, size) in &frozen.wals {
        let path = file_name::wal(&core.ctx.wal_dir, *number);
        files.push(LiveFileStorage::new(&path, number.0, StorageFileKind::Wal, *size).trimmed());
    }
    let without = |file: &LiveFileStorage| file.checksum_function.is_empty();
    for file in files.iter_mut().filter(|file| without(file)) {
        file.checksum_function = "Unknown".to_string();
    }
    if !options.include_checksum_info {
        files.iter_mut().for_each(|file| (file.checksum, file.checksum_function) = Default::default());
    }
    Ok(LiveFiles { files, sequence_number: frozen.last_seq.0 })
}

fn tables_and_blobs(core: &Core, version: &Version, files: &mut Vec<LiveFileStorage>) {
    let dir = &core.ctx.path;
    for (_, table) in version.files() {
        let (path, kind) = (table.path(dir), StorageFileKind::Table);
        let mut file = LiveFileStorage::new(&path, table.number.0, kind, table.size);
        file.temperature = table.temperature();
        files.push(file.with_checksum(table.checksum()));
    }
    for blob in version.blob_files.values().map(|blob| &blob.file) {
        let (path, size) = (blob.path(dir), blob::file_len(blob.total_bytes));
        let file = LiveFileStorage::new(&path, blob.number.0, StorageFileKind::Blob, size);
        files.push(file.with_checksum((&blob.checksum.0, &blob.checksum.1)));
    }
}

/// The OPTIONS file with the highest number, if there is one.
fn newest_options(core: &Core) -> Result<Option<LiveFileStorage>> {
    let fs = &core.ctx.env.fs;
    let numbers = fs.list(&core.ctx.path)?.into_iter().filter_map(|name| match file_name::parse(&name) {
        Some(FileKind::Options(number)) => Some(number),
        _ => None,
    });
    let Some(number) = numbers.max() else { return Ok(None) };
    let path = file_name::options(&core.ctx.path, number);
    let size = fs.file_size(&path)?;
    Ok(Some(LiveFileStorage::new(&path, number.0, StorageFileKind::Options, size)))
}
