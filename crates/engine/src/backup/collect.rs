//! Deleting backups, and removing what none of them needs.
//!
//! A backup ceases to exist with its meta file; its files go after it. Only files that can be of a backup are
//! removed: others in the directory are somebody else's.

use super::directory::{Backups, backup_id, remove_if_there};
use super::meta::{SHARED_DIRS, database_name};
use super::store::Store;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_manifest::file_name::{self, FileKind};
use std::collections::HashSet;

/// See [`crate::BackupEngine::delete_backup`].
pub fn delete(store: &Store, backups: &mut Backups, id: u32) -> Result<()> {
    forget(store, backups, id)?;
    collect_garbage(store, backups)
}

/// See [`crate::BackupEngine::purge_old_backups`].
pub fn purge(store: &Store, backups: &mut Backups, keep: usize) -> Result<()> {
    let too_many = backups.valid.len().saturating_sub(keep);
    let old: Vec<u32> = backups.valid.keys().copied().take(too_many).collect();
    let mut failed = Ok(());
    for id in old {
        failed = failed.and(forget(store, backups, id));
    }
    failed.and(collect_garbage(store, backups))
}

/// Deletes every backup, damaged ones too; ids begin at 1 again.
pub fn destroy_all(store: &Store, backups: &mut Backups) -> Result<()> {
    *backups = Backups::load(&store.layout, usize::MAX)?;
    let all: Vec<u32> = backups.valid.keys().chain(backups.corrupt.keys()).copied().collect();
    for id in all {
        forget(store, backups, id)?;
    }
    backups.latest = 0;
    collect_garbage(store, backups)
}

/// Removes the meta file: the backup is no more.
fn forget(store: &Store, backups: &mut Backups, id: u32) -> Result<()> {
    if !backups.valid.contains_key(&id) && !backups.corrupt.contains_key(&id) {
        return Err(Error::not_found("Backup not found"));
    }
    remove_meta(store, id)?;
    backups.valid.remove(&id);
    backups.corrupt.remove(&id);
    Ok(())
}

/// Removes a meta file, durably before the backup's files go: a loss of power must not bring it back without them.
pub fn remove_meta(store: &Store, id: u32) -> Result<()> {
    remove_if_there(&*store.layout.fs, &store.layout.meta(id))?;
    if store.options.sync { store.layout.fs.sync_dir(&store.layout.path("meta")) } else { Ok(()) }
}

/// See [`crate::BackupEngine::garbage_collect`].
pub fn collect_garbage(store: &Store, backups: &Backups) -> Result<()> {
    let layout = &store.layout;
    let needed = backups.referenced();
    // The names in a damaged meta file are not known: then shared files stay.
    let unknown = backups.corrupt.values().any(|backup| backup.names.is_empty());
    let mut garbage: Vec<String> = Vec::new();
    for dir in SHARED_DIRS {
        for file in layout.list(dir)? {
            let name = format!("{dir}/{file}");
            let removable = is_temporary(&file) || (!unknown && is_shared_file(&name));
            if removable && !needed.contains_key(name.as_str()) {
                garbage.push(name);
            }
        }
    }
    let meta = layout.list("meta")?;
    garbage.extend(meta.iter().filter(|name| is_temporary(name)).map(|name| format!("meta/{name}")));
    let mut failed = Ok(());
    for name in garbage {
        failed = failed.and(remove_if_there(&*layout.fs, &layout.path(&name)));
    }
    let exist: HashSet<String> = meta.into_iter().collect();
    for dir in layout.list("private")? {
        let id = dir.strip_suffix(".tmp").unwrap_or(&dir);
        if backup_id(id).is_some() && (id != dir || !exist.contains(&dir)) {
            failed = failed.and(remove_private(store, &format!("private/{dir}")));
        }
    }
    failed
}

/// Removes a directory of private files, and the files that can be of a backup.
fn remove_private(store: &Store, dir: &str) -> Result<()> {
    let layout = &store.layout;
    let mut left = false;
    for file in layout.list(dir)? {
        if file_name::parse(&file).is_some() || is_temporary(&file) {
            remove_if_there(&*layout.fs, &layout.path(&format!("{dir}/{file}")))?;
        } else {
            left = true;
        }
    }
    match layout.fs.remove_dir(&layout.path(dir)) {
        // Another engine's, or what is somebody else's is still in it.
        Err(error) if error.is_missing_file() || (left && error.kind() == ErrorKind::IoError) => Ok(()),
        removed => removed,
    }
}

/// `.NAME.tmp`: a file that was not completed.
fn is_temporary(file: &str) -> bool {
    file.starts_with('.') && file.ends_with(".tmp")
}

/// True for the name of a table or a blob file among shared ones.
fn is_shared_file(name: &str) -> bool {
    matches!(file_name::parse(&database_name(name)), Some(FileKind::Table(_) | FileKind::Blob(_)))
}
