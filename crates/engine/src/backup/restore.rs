//! Restoring a backup.
//!
//! ```text
//! look for every file of the backup -> lock the database -> remove what it was -> copy, comparing checksums
//!   -> sync -> CURRENT gets its name
//! ```
//! Invariant: without CURRENT there is no database, and CURRENT comes after everything else is durable: a restore that did not end
//! cannot be opened. Only files of a database are removed, and nothing before the backup was found whole.

use super::directory::{Backup, Backups, Layout, StoredFile, create_dir, list_if_there, remove_if_there};
use super::options::{RestoreMode, RestoreOptions};
use super::plan::default_name;
use super::store::Store;
use super::{copy::Source, parallel};
use crate::wal_archive;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::FileSystem;
use outcrop_manifest::file_name::{self, FileKind};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where a database is restored to.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Its directory.
    pub db_dir: &'a Path,
    /// That of its WALs.
    pub wal_dir: &'a Path,
}

/// Another engine's files.
pub struct Alternate {
    layout: Layout,
    files: HashMap<String, StoredFile>,
}

impl Alternate {
    /// The files that whole backups in `layout` have.
    pub fn new(layout: Layout, backups: &Backups) -> Alternate {
        let files = backups.referenced().into_values().flatten().cloned();
        Alternate { layout, files: files.map(|file| (file.meta.name.clone(), file)).collect() }
    }
}

/// A file to restore.
struct Restored {
    layout: Layout,
    file: StoredFile,
    kind: FileKind,
    /// Its name in the database.
    name: String,
}

/// See [`crate::BackupEngine::restore_backup_with`].
pub fn restore(
    store: &Store,
    backup: &Backup,
    target: Target<'_>,
    options: &RestoreOptions,
    others: &[Alternate],
) -> Result<()> {
    let fs = &*store.db_env.fs;
    create_dir(fs, target.db_dir, store.options.sync)?;
    create_dir(fs, target.wal_dir, store.options.sync)?;
    let lock = fs.lock(&file_name::lock(target.db_dir))?;
    let (files, mut missing) = find_files(store, backup, options, others)?;
    let kept = files_to_keep(store, &files, &mut missing, target, options.mode)?;
    if let Some(name) = missing.iter().next() {
        return Err(not_found_anywhere(name, others.len()));
    }
    remove_old(fs, target, options, &kept, store.options.sync)?;
    let files: Vec<Restored> = files.into_iter().filter(|file| !kept.contains(&file.name)).collect();
    copy_files(store, files, target)?;
    drop(lock);
    Ok(())
}

fn not_found_anywhere(name: &str, others: usize) -> Error {
    Error::invalid_argument(format!("Excluded file {name} not found in any of {others} backup directories"))
}

/// Where each file comes from, and the names of those that are nowhere.
fn find_files(
    store: &Store,
    backup: &Backup,
    options: &RestoreOptions,
    others: &[Alternate],
) -> Result<(Vec<Restored>, HashSet<String>)> {
    let mut files = Vec::new();
    for file in &backup.files {
        files.push(restored(&store.layout, file)?);
    }
    let mut missing = HashSet::new();
    for name in &backup.excluded {
        match others.iter().find_map(|other| Some((other, other.files.get(name)?))) {
            Some((other, file)) => files.push(restored(&other.layout, file)?),
            None if options.mode == RestoreMode::KeepLatestDbSessionIdFiles => {
                missing.insert(name.clone());
            }
            None => return Err(not_found_anywhere(name, others.len())),
        }
    }
    check_complete(&files)?;
    Ok((files, missing))
}

/// That the files make a database: one CURRENT, one MANIFEST, and no two of one name.
fn check_complete(files: &[Restored]) -> Result<()> {
    let count = |wanted: fn(FileKind) -> bool| files.iter().filter(|file| wanted(file.kind)).count();
    let current = count(|kind| kind == FileKind::Current);
    let manifests = count(|kind| matches!(kind, FileKind::Manifest(_)));
    if (current, manifests) != (1, 1) {
        return Err(Error::corruption(format!(
            "Backup corrupted: it has {current} CURRENT and {manifests} MANIFEST files, and a database has one of each"
        )));
    }
    let mut names = HashSet::new();
    match files.iter().find(|file| !names.insert(file.name.as_str())) {
        Some(twice) => {
            Err(Error::corruption(format!("Backup corrupted: two of its files would be {}", twice.name)))
        }
        None => Ok(()),
    }
}

/// A file that is there, and what it will be.
fn restored(layout: &Layout, file: &StoredFile) -> Result<Restored> {
    layout.check_size(file)?;
    let name = file.meta.database_name();
    match file_name::parse(&name) {
        Some(
            kind @ (FileKind::Current
            | FileKind::Manifest(_)
            | FileKind::Options(_)
            | FileKind::Table(_)
            | FileKind::Blob(_)
            | FileKind::Wal(_)),
        ) => Ok(Restored { layout: layout.clone(), file: file.clone(), kind, name }),
        _ => Err(Error::corruption(format!("Backup corrupted: Fail to parse filename {name}"))),
    }
}

/// Names of tables and blob files that are there and stay; takes those that are out of `missing`.
fn files_to_keep(
    store: &Store,
    files: &[Restored],
    missing: &mut HashSet<String>,
    target: Target<'_>,
    mode: RestoreMode,
) -> Result<HashSet<String>> {
    let mut kept = HashSet::new();
    if mode == RestoreMode::PurgeAllFiles {
        return Ok(kept);
    }
    let fs = &*store.db_env.fs;
    let wanted: HashMap<&str, &Restored> = files.iter().map(|file| (file.name.as_str(), file)).collect();
    let reader = store.restorer();
    for name in fs.list(target.db_dir)? {
        let path = target.db_dir.join(&name);
        let file = wanted.get(name.as_str());
        let same = match (mode, file_name::parse(&name)) {
            (RestoreMode::KeepLatestDbSessionIdFiles, Some(FileKind::Table(_))) => {
                // A file that cannot be read is not kept.
                let stored_as = fs.file_size(&path).and_then(|size| default_name(fs, &path, size));
                let stored_as = stored_as.ok().flatten().unwrap_or_default();
                missing.remove(&stored_as) || file.is_some_and(|file| file.file.meta.name == stored_as)
            }
            (RestoreMode::VerifyChecksum, Some(FileKind::Table(_) | FileKind::Blob(_))) => {
                file.is_some_and(|file| {
                    let size = file.file.size;
                    let same_size = fs.file_size(&path).is_ok_and(|found| found == size);
                    let crc = file.file.meta.crc;
                    same_size
                        && crc.is_some()
                        && reader.checksum(fs, &path, size).is_ok_and(|found| Some(found.crc) == crc)
                })
            }
            _ => false,
        };
        if same {
            kept.insert(name);
        }
    }
    Ok(kept)
}

/// Removes what a database was in the directories before.
fn remove_old(
    fs: &dyn FileSystem,
    target: Target<'_>,
    options: &RestoreOptions,
    kept: &HashSet<String>,
    sync: bool,
) -> Result<()> {
    // CURRENT first: the rest of the old database cannot be opened, even after a loss of power.
    remove_if_there(fs, &file_name::current(target.db_dir))?;
    if sync {
        fs.sync_dir(target.db_dir)?;
    }
    remove_if_there(fs, &temporary_current(target.db_dir))?;
    let archive = wal_archive::dir(target.wal_dir);
    let is_wal = |kind| matches!(kind, FileKind::Wal(_));
    remove_files(fs, target.db_dir, |name, kind| {
        !(kept.contains(name) || options.keep_log_files && is_wal(kind))
    })?;
    if options.keep_log_files {
        for name in list_if_there(fs, &archive)? {
            if file_name::parse(&name).is_some_and(is_wal) {
                fs.rename(&archive.join(&name), &target.wal_dir.join(&name))?;
            }
        }
        return Ok(());
    }
    // Only WALs: the directory may be another database's as well, or this one's under another name.
    remove_files(fs, target.wal_dir, |_, kind| is_wal(kind))?;
    remove_files(fs, &archive, |_, kind| is_wal(kind))
}

/// Removes the files of a database in `dir` that `goes` says; its lock stays.
fn remove_files(fs: &dyn FileSystem, dir: &Path, goes: impl Fn(&str, FileKind) -> bool) -> Result<()> {
    for name in list_if_there(fs, dir)? {
        match file_name::parse(&name) {
            Some(kind) if kind != FileKind::Lock && goes(&name, kind) => {
                remove_if_there(fs, &dir.join(&name))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of CURRENT until everything else is there.
fn temporary_current(dir: &Path) -> PathBuf {
    dir.join("CURRENT.tmp")
}

/// Copies the files, and gives CURRENT its name last.
fn copy_files(store: &Store, files: Vec<Restored>, target: Target<'_>) -> Result<()> {
    let fs = store.db_env.fs.clone();
    let mover = store.restorer();
    let (db_dir, wal_dir) = (target.db_dir.to_path_buf(), target.wal_dir.to_path_buf());
    let (to, threads) = (fs.clone(), store.options.max_background_operations);
    let copy = move |file: Restored| {
        let path = match file.kind {
            FileKind::Wal(_) => wal_dir.join(&file.name),
            FileKind::Current => temporary_current(&db_dir),
            _ => db_dir.join(&file.name),
        };
        let from = file.layout.path(&file.file.meta.name);
        let source = Source::File(file.layout.fs.clone(), from.clone(), file.file.size);
        let copied = mover.copy(&source, &*to, &path)?;
        match file.file.meta.crc {
            Some(expected) if expected != copied.crc => Err(Error::new(
                ErrorKind::Corruption,
                format!(
                    "While restoring {} -> {}: expected checksum is {expected:08X} while computed checksum is {:08X}",
                    file.file.meta.name,
                    path.display(),
                    copied.crc
                ),
            )),
            _ => Ok(()),
        }
    };
    parallel::for_each(&*store.db_env.threads, threads, files, copy)?;
    let sync_dirs = || match store.options.sync {
        true => fs.sync_dir(target.db_dir).and_then(|()| fs.sync_dir(target.wal_dir)),
        false => Ok(()),
    };
    sync_dirs()?;
    fs.rename(&temporary_current(target.db_dir), &file_name::current(target.db_dir))?;
    sync_dirs()
}
