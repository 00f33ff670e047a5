//! Making a backup.
//!
//! ```text
//! deletions on hold -> live files -> plan.rs (copy, or share what is there and intact) -> copy, rename -> sync
//!   -> meta file -> it exists
//! ```
//! Invariant: everything a meta file lists is durable, names and all, before it gets its name. Shared files are
//! copied under a temporary name, so that a name in a shared directory is a whole file.

use super::collect;
use super::copy::{Mover, ProgressMeter};
use super::directory::{Backup, Backups, Layout, StoredFile};
use super::meta::{BackupMeta, MetaFile, is_shared};
use super::options::CreateBackupOptions;
use super::parallel;
use super::plan::{Copying, Plan, Planner};
use super::store::Store;
use crate::db::Db;
use crate::live_files::{
    DeletionsOnHold, LiveFileStorage, LiveFiles, LiveFilesOptions, StorageFileKind,
    storage_info_of_one_directory,
};
use crate::panic::caught;
use outcrop_base::{Error, Result};
use outcrop_env::OpenWrite;
use std::sync::Arc;

/// Bytes of app metadata at most.
const MAX_APP_METADATA: usize = 1 << 20;

/// See [`crate::BackupEngine::create_backup_with`].
pub fn create(store: &Store, backups: &mut Backups, db: &Db, options: &CreateBackupOptions) -> Result<u32> {
    store.mover(None).check_stop()?;
    if options.app_metadata.len() > MAX_APP_METADATA {
        return Err(Error::invalid_argument("App metadata too large"));
    }
    if options.exclude_file.is_some() && store.options.schema_version < 2 {
        return Err(Error::invalid_argument("exclude_files_callback requires schema_version >= 2"));
    }
    let id = backups.latest.checked_add(1).ok_or_else(|| Error::corruption("no id is left for a backup"))?;
    let fs = &*store.layout.fs;
    if fs.exists(&store.layout.private(id))? {
        // Left by a backup that was not completed.
        collect::collect_garbage(store, backups)?;
    }
    match write_backup(store, backups, db, options, id) {
        Ok((backup, mended)) => {
            backups.latest = id;
            backups.valid.insert(id, backup);
            if mended || !backups.corrupt.is_empty() {
                // Older backups may be whole again, or have files of other sizes.
                *backups = Backups::load(&store.layout, usize::MAX)?;
            }
            Ok(id)
        }
        Err(error) => {
            // Best effort: a file that stays is garbage, or part of a whole backup that was not acknowledged.
            if collect::remove_meta(store, id).is_ok() {
                let _ = collect::collect_garbage(store, backups);
            } else {
                backups.latest = id;
            }
            Err(error)
        }
    }
}

/// Writes backup `id`; true if files of older ones were mended.
fn write_backup(
    store: &Store,
    backups: &Backups,
    db: &Db,
    options: &CreateBackupOptions,
    id: u32,
) -> Result<(Backup, bool)> {
    store.layout.fs.create_dir_all(&store.layout.private(id))?;
    let held = DeletionsOnHold::new(&db.core().jobs);
    let wal_size_for_flush = if options.flush_before_backup { 0 } else { u64::MAX };
    let live = LiveFilesOptions { wal_size_for_flush, include_checksum_info: true };
    let LiveFiles { mut files, sequence_number } = storage_info_of_one_directory(db.core(), &live)?;
    files.retain(|file| store.options.backup_log_files || file.kind != StorageFileKind::Wal);
    let mut plans = plan(store, backups, files, id)?;
    let excluded = exclude(&mut plans, options)?;
    let mended = plans.iter().any(|plan| matches!(plan, Plan::Copy(copying) if copying.mends));
    let meter = options
        .progress
        .clone()
        .map(|progress| Arc::new(ProgressMeter::new(progress, store.options.callback_trigger_interval_size)));
    let statistics = db.core().ctx.monitor.statistics.clone();
    let (layout, mover) = (store.layout.clone(), Mover { statistics, ..store.mover(meter) });
    let work = move |plan| match plan {
        Plan::Share(file) => {
            if mover.sync {
                // The backup that wrote it may not have been told to.
                layout.fs.sync_file(&layout.path(&file.meta.name))?;
            }
            Ok(file)
        }
        Plan::Copy(copying) => copy(&layout, &mover, copying),
    };
    let threads = store.options.max_background_operations;
    let files = parallel::for_each(&*store.env.threads, threads, plans, work)?;
    drop(held);
    let meta = BackupMeta {
        timestamp: (store.env.clock.now_micros() / 1_000_000).cast_signed(),
        sequence_number,
        app_metadata: options.app_metadata.clone(),
        files: files.iter().map(|file| file.meta.clone()).collect(),
        excluded,
    };
    complete(store, id, &meta)?;
    let BackupMeta { timestamp, app_metadata, excluded, .. } = meta;
    Ok((Backup { timestamp, sequence_number, app_metadata, files, excluded }, mended))
}

/// Decides on each file.
fn plan(store: &Store, backups: &Backups, files: Vec<LiveFileStorage>, id: u32) -> Result<Vec<Plan>> {
    let stored = backups.referenced().into_iter();
    let planner = Planner {
        layout: store.layout.clone(),
        db_fs: store.db_env.fs.clone(),
        id,
        shared_dir: store.shared_dir(),
        naming: store.options.naming,
        check: store.options.shared_file_check,
        stored: stored.filter_map(|(name, file)| Some((name.to_string(), file?.clone()))).collect(),
        reader: store.mover(None),
    };
    let threads = store.options.max_background_operations;
    let plans = parallel::for_each(&*store.env.threads, threads, files, move |file| planner.plan(&file))?;
    let mut names: Vec<&str> = plans.iter().map(Plan::name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::corruption(format!("two files of the database would be {}", pair[0]))),
        None => Ok(plans),
    }
}

/// Takes out what the application wants to be left out.
fn exclude(plans: &mut Vec<Plan>, options: &CreateBackupOptions) -> Result<Vec<String>> {
    let Some(asked) = &options.exclude_file else { return Ok(Vec::new()) };
    let (mut kept, mut excluded) = (Vec::new(), Vec::new());
    for plan in plans.drain(..) {
        let out = match &plan {
            Plan::Copy(copying) if is_shared(&copying.name) && !copying.mends => {
                caught("exclude_files callback", || Ok(asked(&copying.name)))?
            }
            _ => false,
        };
        if out {
            excluded.push(plan.name().to_string());
        } else {
            kept.push(plan);
        }
    }
    *plans = kept;
    Ok(excluded)
}

/// Copies one file and gives it its name.
fn copy(layout: &Layout, mover: &Mover, copying: Copying) -> Result<StoredFile> {
    let target = layout.path(&copying.name);
    let shared = is_shared(&copying.name);
    let written = if shared { layout.shared_temporary(&copying.name) } else { target.clone() };
    let copied = mover.copy(&copying.source, &*layout.fs, &written)?;
    if let Some(expected) = copying.expected.filter(|expected| expected.crc != copied.crc) {
        return Err(Error::corruption(format!(
            "{}: its checksum is {:08X}, but {} has {:08X} for it",
            copying.name, copied.crc, expected.by, expected.crc
        )));
    }
    if shared {
        layout.fs.rename(&written, &target)?;
    }
    let meta =
        MetaFile { name: copying.name, crc: Some(copied.crc), size: None, temperature: copying.temperature };
    Ok(StoredFile { meta, size: copied.size })
}

/// Makes the files durable, then the backup exist.
fn complete(store: &Store, id: u32, meta: &BackupMeta) -> Result<()> {
    let (layout, fs) = (&store.layout, &*store.layout.fs);
    let sync_dir = |name: &str| match store.options.sync {
        true => fs.sync_dir(&layout.path(name)),
        false => Ok(()),
    };
    sync_dir(&format!("private/{id}"))?;
    sync_dir("private")?;
    if let Some(shared) = store.shared_dir() {
        sync_dir(shared)?;
    }
    let temporary = layout.meta_temporary(id);
    let mut file = fs.create(&temporary, OpenWrite::default())?;
    file.append(&meta.print(store.options.schema_version))?;
    if store.options.sync {
        file.sync()?;
    }
    file.close()?;
    drop(file);
    store.mover(None).check_stop()?;
    sync_dir("")?;
    fs.rename(&temporary, &layout.meta(id))?;
    sync_dir("meta")
}
