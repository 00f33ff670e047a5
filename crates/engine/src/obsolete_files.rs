//! Removes files that are provably ours and obsolete.
//!
//! A table or blob file is obsolete when a version without it is installed, and removed once its last holder (a view, a
//! job, an iterator) lets go of it: the object in `at_end` of its metadata then tells [`Background`] and wakes upkeep.
//! A WAL is obsolete when every column family's data in it is in tables and the
//! MANIFEST says so. Files of other names are never touched.

#[cfg(doc)]
use crate::background::Background;
use crate::context::DbContext;
use crate::event_log::LogEvent;
use crate::events::table_files;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::jobs::{JobContext, OnJob, is_on_job};
use crate::space::Removal;
use crate::state::{CfState, DbState};
use crate::version_set::VersionSet;
use crate::wal_archive;
use crate::write::wal::{keeps_wal, recycled_wals};
use outcrop_base::Result;
use outcrop_cache::Cache;
use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name::{self, FileKind};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A removal of files that runs: a caller that waits for the end of background work waits for it. It is a job, whichever thread does
/// it: a listener that it calls cannot wait for it.
struct Purging<'d> {
    versions: &'d VersionSet,
    number: u64,
    _on_job: OnJob,
}

impl<'d> Purging<'d> {
    fn new(jobs: &'d JobContext) -> Purging<'d> {
        let versions = &jobs.versions;
        let mut state = versions.state.lock();
        let number = state.next_purge;
        state.next_purge += 1;
        state.purges.insert(number);
        drop(state);
        Purging { versions, number, _on_job: OnJob::of(&jobs.ctx) }
    }
}

impl Drop for Purging<'_> {
    fn drop(&mut self) {
        let mut state = self.versions.state.lock();
        state.purges.remove(&self.number);
        self.versions.state_changed.notify_all();
    }
}

/// As [`purge_obsolete_files`], for a caller that may look afterwards which files there are: those that another thread is removing are
/// gone, too. A listener on the thread of a job does not wait.
pub fn purge_obsolete_files_now(jobs: &JobContext) {
    purge_obsolete_files(jobs);
    if is_on_job(&jobs.ctx) {
        return;
    }
    let mut state = jobs.versions.state.lock();
    let later = state.next_purge;
    while state.purges.first().is_some_and(|number| *number < later) {
        jobs.versions.state_changed.wait(&mut state);
    }
}

/// True if upkeep has obsolete files to look at.
pub fn may_purge(ctx: &DbContext, state: &DbState) -> bool {
    // Replaced views may be the last to hold some.
    let retired = state.column_families.values().any(|cf| !cf.retired.is_empty());
    let wanted = (state.purge_wanted || ctx.background.has_released_files()) && !state.keeps_files();
    retired || ctx.background.has_views() || wanted
}

/// Removes tables and WALs that died since the last call, and the blocks of those tables from the cache.
pub fn purge_obsolete_files(jobs: &JobContext) {
    if jobs.ctx.check_not_closed().is_err() {
        return;
    }
    let background = &jobs.ctx.background;
    let _purging = Purging::new(jobs);
    let retired: Vec<_> = {
        let mut state = jobs.versions.state.lock();
        let retired = state.column_families.values_mut().flat_map(|cf| std::mem::take(&mut cf.retired));
        retired.chain(background.take_views()).collect()
    };
    drop(retired);
    let needed = {
        let mut state = jobs.versions.state.lock();
        let wanted = std::mem::take(&mut state.purge_wanted);
        if state.keeps_files() {
            state.purge_wanted = wanted;
            return;
        }
        if !wanted && !background.has_released_files() {
            return;
        }
        state.min_wal_needed(jobs.versions.current_wal())
    };
    let untracked = jobs.versions.untrack_wals(needed);
    let (files, wals, caches, manifests) = {
        let mut state = jobs.versions.state.lock();
        if state.keeps_files() {
            state.purge_wanted = true;
            return;
        }
        // A WAL that the MANIFEST asks for must stay.
        let wals = untracked.map_or_else(|_| Vec::new(), |()| dead_wals(&jobs.versions, &mut state, needed));
        let manifests = std::mem::take(&mut state.obsolete_manifests);
        (background.take_released_files(), wals, caches(&state), manifests)
    };
    // After the state is unlocked: one that syncs them need not be waited for.
    jobs.closed_wals.forget_before(needed);
    for number in wals {
        jobs.ctx.background.drop_windows();
        wal_archive::discard(&jobs.ctx, number);
    }
    wal_archive::purge(&jobs.ctx);
    let manifests = manifests.into_iter().map(|number| file_name::manifest(&jobs.ctx.path, number));
    let mut obsolete: Vec<_> = manifests.map(|path| (path, false)).collect();
    for file in &files {
        obsolete.push((file.path(&jobs.ctx.path), file.table_size.is_some()));
        if file.table_size.is_some() {
            jobs.ctx.tables.remove(file.number);
            LogEvent::new(&jobs.ctx, 0, "table_file_deletion")
                .number("file_number", file.number.0)
                .write(&jobs.ctx);
        }
    }
    if !files.is_empty() {
        // After the tables are closed: the blocks they pinned are removed too.
        let cached: HashSet<u64> = files.iter().map(|file| file.cache_file_id).collect();
        caches.iter().for_each(|cache| cache.erase_files(&cached));
    }
    for (path, is_table) in obsolete {
        // Each file takes milliseconds: short work does not wait for all of them.
        jobs.ctx.background.drop_windows();
        let removed = remove(&jobs.ctx, &path);
        if is_table {
            table_files::removed(&jobs.ctx, path, removed.err());
        }
    }
}

/// Removes the WAL that is kept to be recycled though nobody asked for it.
pub fn drop_kept_wals(jobs: &JobContext) {
    let asked = recycled_wals(&jobs.ctx.options) as usize;
    let kept = {
        let mut state = jobs.versions.state.lock();
        if state.keeps_files() {
            return;
        }
        let asked = asked.min(state.recyclable_wals.len());
        state.recyclable_wals.split_off(asked)
    };
    for number in kept {
        // LOG has the error.
        let _ = remove(&jobs.ctx, &file_name::wal(&jobs.ctx.wal_dir, number));
    }
}

/// Removes complete files that no version has, once a new MANIFEST is in charge.
pub fn remove_doubtful_outputs(versions: &VersionSet) {
    let numbers = std::mem::take(&mut *versions.ctx.doubtful_outputs.lock());
    if numbers.is_empty() {
        return;
    }
    let live: HashSet<FileNumber> = {
        let state = versions.state.lock();
        let of = |cf: &CfState| {
            let tables = cf.version.files().map(|(_, file)| file.number);
            tables.chain(cf.version.blob_files.keys().copied()).collect::<Vec<_>>()
        };
        state.column_families.values().flat_map(of).collect()
    };
    // A number is of a table or of a blob file.
    let dirs = versions.ctx.data_dirs.load_full();
    let names = |number| {
        let dirs = dirs.iter();
        dirs.flat_map(move |dir| [file_name::table(dir, number), file_name::blob(dir, number)])
    };
    for path in numbers.into_iter().filter(|number| !live.contains(number)).flat_map(names) {
        if versions.ctx.env.fs.exists(&path).unwrap_or(false) {
            let _ = remove(&versions.ctx, &path);
        }
    }
}

/// Gives the error that it has written to LOG.
fn remove(ctx: &DbContext, path: &Path) -> Result<()> {
    let is_data = path.extension().is_some_and(|end| end == "sst" || end == "blob");
    let removed = match is_data {
        true => ctx.remove_dead_file(path),
        false => ctx.env.fs.remove_file(path).map(|()| Removal::Done),
    };
    match &removed {
        Ok(Removal::Done) => log_line!(ctx, "removed {}", path.display()),
        Ok(Removal::Later(trash)) => log_line!(ctx, "to be removed: {}", trash.display()),
        Err(error) => log_at!(ctx, LogLevel::Error, "could not remove {}: {error}", path.display()),
    }
    removed.map(|_| ())
}

/// Numbers of the WALs that are not needed any more, but for those that are kept to be recycled.
fn dead_wals(versions: &VersionSet, state: &mut DbState, needed: FileNumber) -> Vec<FileNumber> {
    let mut obsolete = Vec::new();
    while state.live_wals.front().is_some_and(|wal| wal.number < needed) {
        let wal = state.live_wals.pop_front().expect("front exists");
        // Relaxed: a reader of WALs says so before the state is locked to look which there are.
        let is_read = versions.wal_readers.load(Ordering::Relaxed) > 0;
        if wal.is_own
            && !is_read
            && keeps_wal(&versions.ctx.options, state.recyclable_wals.len(), wal.size_bytes)
        {
            state.recyclable_wals.push(wal.number);
            continue;
        }
        obsolete.push(wal.number);
    }
    obsolete
}

/// The caches of all column families, each once.
pub fn caches(state: &DbState) -> Vec<Arc<Cache>> {
    let mut caches: Vec<Arc<Cache>> = Vec::new();
    for cache in state.column_families.values().flat_map(|cf| cf.cf.caches()) {
        if !caches.iter().any(|known| Arc::ptr_eq(known, cache)) {
            caches.push(cache.clone());
        }
    }
    caches
}

/// Removes what earlier openings left behind: called once at open, when nothing runs.
///
/// `live` are the tables and blob files of all versions, `min_wal` the oldest WAL needed, `manifest` the current MANIFEST,
/// `limit` the first file number this opening may have given out.
pub fn remove_leftovers(
    ctx: &DbContext,
    live: &BTreeSet<FileNumber>,
    min_wal: FileNumber,
    manifest: FileNumber,
    limit: FileNumber,
) -> Result<()> {
    let names = ctx.env.fs.list(&ctx.path)?;
    let mut options: Vec<FileNumber> = names
        .iter()
        .filter_map(|name| match file_name::parse(name) {
            Some(FileKind::Options(number)) => Some(number),
            _ => None,
        })
        .collect();
    options.sort_unstable();
    let oldest_options = options.len().checked_sub(2).map(|index| options[index]);
    for name in names {
        let obsolete = match file_name::parse(&name) {
            Some(FileKind::Table(number) | FileKind::Blob(number)) => {
                number < limit && !live.contains(&number)
            }
            Some(FileKind::Manifest(number)) => number < manifest,
            Some(FileKind::Options(number)) => oldest_options.is_some_and(|oldest| number < oldest),
            Some(FileKind::Temp(_)) => true,
            _ => false,
        };
        if obsolete {
            ctx.env.fs.remove_file(&ctx.path.join(&name))?;
            log_line!(ctx, "removed leftover {name}");
        }
    }
    for dir in ctx.data_dirs.load().iter().skip(1) {
        let (owned, mut left_alone) = (ctx.owned_from(dir)..limit, 0);
        for name in ctx.env.fs.list(dir)? {
            let (FileKind::Table(number) | FileKind::Blob(number)) = (match file_name::parse(&name) {
                Some(kind) => kind,
                None => continue,
            }) else {
                continue;
            };
            if live.contains(&number) {
                continue;
            }
            if owned.contains(&number) {
                ctx.env.fs.remove_file(&dir.join(&name))?;
                log_line!(ctx, "removed leftover {}", dir.join(&name).display());
            } else {
                left_alone += 1;
            }
        }
        ctx.log_left_alone(dir, left_alone);
    }
    for name in ctx.env.fs.list(&ctx.wal_dir)? {
        let Some(FileKind::Wal(number)) = file_name::parse(&name) else { continue };
        if number < min_wal && wal_archive::is_on(&ctx.options) {
            wal_archive::discard(ctx, number);
        } else if number < min_wal {
            ctx.env.fs.remove_file(&ctx.wal_dir.join(&name))?;
            log_line!(ctx, "removed leftover {name}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
