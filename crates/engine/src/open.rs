//! Opening, creating and destroying a database.
//!
//! ```text
//! lock -> (create) -> recover MANIFEST and WALs in memory -> check everything -> first write
//! ```
//! Invariant: a database that is refused is left as it was. Only the LOCK file may be new; where a directory of `db_paths` or
//! `cf_paths` cannot be claimed, LOG and such directories too.

use crate::batch::codec;
use crate::column_family::ColumnFamilyDescriptor;
use crate::context::DbContext;
use crate::core::Core;
use crate::event_log;
use crate::features::column_families;
use crate::identity::{new_db_id, write_identity};
use crate::in_force::{OptionsInForce, in_force, memtable_pool};
use crate::info_log::{InfoLog, LogLevel, LogLocation, log_at, log_line};
use crate::jobs::LogObserver;
use crate::listener::{self, EventListener};
use crate::manifest_file::{Manifest, snapshot_edits};
use crate::objects::DbObjects;
use crate::obsolete_files::remove_leftovers;
use crate::options_file;
use crate::path_owners;
use crate::recovery::{self, RecoverOptions, Recovered};
use crate::scheduler::threads;
use crate::sst_file_manager;
use crate::state::LiveWal;
use crate::wal_archive;
use crate::write::wal::Wal;
use outcrop_base::{Error, Result, SeqNum};
use outcrop_env::Env;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, WalSet};
use outcrop_monitor::Statistics;
use outcrop_options::{DbOptions, DbPath};
use outcrop_table::unique_id;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The listeners of a database, and its counters.
pub type Watched = (Vec<Arc<dyn EventListener>>, Option<Arc<Statistics>>);

/// See [`crate::DbBuilder::open`].
pub fn open(
    path: &Path,
    mut options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
    objects: DbObjects,
    watched: Watched,
) -> Result<Arc<Core>> {
    objects.tell(&mut options);
    let opened = open_with(path, options.clone(), env, column_families, objects.clone(), watched);
    if let Err(error) = &opened {
        event_log::refused(&objects, &options, error);
    }
    opened
}

fn open_with(
    path: &Path,
    options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
    objects: DbObjects,
    (listeners, statistics): Watched,
) -> Result<Arc<Core>> {
    let OptionsInForce { db: options, descriptors, corrections } = in_force(path, options, column_families)?;
    if options.create_if_missing {
        let is_new = !env.fs.exists(&file_name::current(path))?;
        for dir in std::iter::once(path).chain(options.wal_dir.as_deref()) {
            if is_new || !env.fs.exists(dir)? {
                env.fs.create_dir_all_durably(dir)?;
            }
        }
    }
    if !env.fs.exists(path)? {
        return Err(Error::invalid_argument(format!(
            "{}: does not exist (create_if_missing is false)",
            path.display()
        )));
    }
    let lock = env.fs.lock(&file_name::lock(path))?;
    for DbPath { path: dir, .. } in descriptors.iter().flat_map(|family| &family.options.cf_paths) {
        if env.fs.exists(dir)? {
            path_owners::check_owned(&env, path, dir)?;
        }
    }
    create_if_missing(path, &options, &env)?;

    let objects = objects.complete(&options, &env.clock);
    let pool = memtable_pool(&descriptors, &objects);
    let how = RecoverOptions {
        families: recovery::Families::All,
        objects: &objects,
        statistics: statistics.as_ref(),
        open: &BTreeMap::new(),
    };
    let recovered = recovery::recover(path, &options, &env, &descriptors, &pool, how)?;
    let info_log = InfoLog::create(&env, path, &options, objects.logger.as_ref())?;
    let session_id = unique_id::session_id(env.random.next_u64(), env.random.next_u64() | 1);
    let identity = (recovered.db_id.clone(), session_id);
    let next_file = recovered.next_file_number;
    let ctx = DbContext::new(env, path.to_path_buf(), options, identity, info_log, pool, next_file);
    let ctx = Arc::new(ctx.with_objects(objects).counted_by(statistics));
    event_log::opened(&ctx, &descriptors);
    for correction in corrections {
        log_line!(ctx, "{correction}");
    }
    for descriptor in &descriptors {
        ctx.add_data_dirs(&descriptor.options.cf_paths)?;
    }
    let core = start(ctx, recovered, lock)?;
    listener::attach(&core, listeners);
    threads::start(&core)?;
    log_at!(core.ctx, LogLevel::Header, "DB pointer {:p}", Arc::as_ptr(&core));
    Ok(core)
}

/// Creates the files of an empty database if there is none.
fn create_if_missing(path: &Path, options: &DbOptions, env: &Env) -> Result<()> {
    let exists = env.fs.exists(&file_name::current(path))?;
    if exists && options.error_if_exists {
        return Err(Error::invalid_argument(format!("{}: exists (error_if_exists is true)", path.display())));
    }
    if exists {
        return Ok(());
    }
    if !options.create_if_missing {
        return Err(Error::invalid_argument(format!(
            "{}: does not exist (create_if_missing is false)",
            file_name::current(path).display()
        )));
    }
    for name in env.fs.list(path)? {
        if matches!(file_name::parse(&name), Some(FileKind::Wal(_) | FileKind::Table(_))) {
            return Err(Error::corruption(format!(
                "{}: CURRENT is missing but {name} exists; refusing to create a database over another",
                path.display()
            )));
        }
    }
    let db_id = new_db_id(env);
    if options.write_identity_file {
        write_identity(path, env, &db_id)?;
    }
    let edit = VersionEdit {
        db_id: options.write_dbid_to_manifest.then_some(db_id),
        log_number: Some(FileNumber::NONE),
        next_file_number: Some(FileNumber(2)),
        last_sequence: Some(SeqNum::ZERO),
        ..VersionEdit::default()
    };
    ManifestWriter::create(&*env.fs, path, FileNumber(1), &[edit]).map(|_| ())
}

/// Makes what was recovered durable under a new MANIFEST and WAL, and puts the database together.
fn start(
    ctx: Arc<DbContext>,
    mut recovered: Recovered,
    lock: Box<dyn outcrop_env::FileLock>,
) -> Result<Arc<Core>> {
    let wal_number = ctx.new_file_number();
    if !ctx.options.write_identity_file {
        // One that is not kept up would be a stale one. Source: RocksDB `DBImpl::SetupDBId`.
        let _ = ctx.env.fs.remove_file(&file_name::identity(&ctx.path));
    } else if recovered.identity_missing {
        write_identity(&ctx.path, &ctx.env, &ctx.db_id)?;
    }
    recovery::flush_recovered(&ctx, &mut recovered, wal_number)?;
    let Recovered { mut state, last_seq, to_create, mut wals, wal_files, goes_on_at, .. } = recovered;
    let mut wal = Wal::create(&ctx, wal_number, None)?;
    let stays = state.column_families.values().any(|cf| !cf.memtable.is_empty());
    if let Some(next) = goes_on_at.filter(|_| stays) {
        // The next write may have a higher number: writes past the WAL and ingestions take some.
        let mut nothing = [0; codec::HEADER_LEN];
        nothing[..8].copy_from_slice(&next.0.to_le_bytes());
        wal.append(&[&nothing])?;
    }
    let manifest_number = ctx.new_file_number();
    let needed = state.column_families.values().map(|cf| cf.log_number).chain(state.prepared.oldest_wal());
    let min_wal = needed.fold(wal_number, FileNumber::min);
    let kept = wal_files.into_iter().filter(|(number, _)| *number >= min_wal);
    state.live_wals.extend(kept.map(|(number, size_bytes)| LiveWal { number, size_bytes, is_own: false }));
    if !state.live_wals.is_empty() {
        // Perhaps they never were synced. A later write that is synced would be there and theirs not, and a decision without what was
        // prepared.
        for wal in &state.live_wals {
            ctx.env.fs.sync_file(&file_name::wal(&ctx.wal_dir, wal.number))?;
        }
        ctx.env.fs.sync_dir(&ctx.wal_dir)?;
    }
    state.live_wals.push_back(LiveWal { number: wal_number, size_bytes: 0, is_own: true });
    for name in state.prepared.names() {
        let name = String::from_utf8_lossy(name);
        log_line!(ctx, "transaction {name} is prepared and not decided; its WAL is kept");
    }
    if ctx.options.track_and_verify_wals_in_manifest {
        wals.delete_before(min_wal);
    } else {
        wals = WalSet::default();
    }
    let mut snapshot = snapshot_edits(&ctx, &state, last_seq, min_wal);
    snapshot.extend(wals.snapshot());
    let writer = ManifestWriter::create(&*ctx.env.fs, &ctx.path, manifest_number, &snapshot)?;
    let live: BTreeSet<FileNumber> = state
        .column_families
        .values()
        .flat_map(|cf| {
            let tables = cf.version.files().map(|(_, file)| file.number);
            tables.chain(cf.version.blob_files.keys().copied()).collect::<Vec<_>>()
        })
        .collect();
    wal_archive::prepare(&ctx)?;
    remove_leftovers(&ctx, &live, min_wal, manifest_number, ctx.next_file_number())?;
    ctx.track_files()?;
    wal_archive::purge(&ctx);
    for cf in state.column_families.values_mut() {
        cf.memtable.set_born(last_seq);
        cf.refresh_debt();
        cf.install_superversion();
    }
    let manifest = Manifest::new(writer, last_seq, wals).keeping_wals_from(min_wal);
    let observer = Arc::new(LogObserver(ctx.clone()));
    let core = Arc::new(Core::new(ctx, state, last_seq, wal, manifest, observer, Some(lock)));
    for descriptor in &to_create {
        column_families::create(&core, descriptor)?;
    }
    options_file::write(&core)?;
    Ok(core)
}

/// See [`crate::Db::destroy`].
pub fn destroy(path: &Path, options: &DbOptions, env: &Env) -> Result<()> {
    if !env.fs.exists(path)? {
        return Ok(());
    }
    let lock = env.fs.lock(&file_name::lock(path))?;
    let wal_dir = options.wal_dir.as_deref().unwrap_or(path);
    let archive = wal_archive::dir(wal_dir);
    let has_archive = env.fs.exists(&archive)?;
    let own = env.fs.canonical(path);
    let others = || options.db_paths.iter().map(|dir| &dir.path).filter(|dir| env.fs.canonical(dir) != own);
    for dir in others() {
        if env.fs.exists(dir)? {
            path_owners::check_owned(env, path, dir)?;
        }
    }
    let is_trash = |name: &str| name.ends_with(sst_file_manager::TRASH);
    let kind = |name: &str| file_name::parse(name);
    let data_only =
        |name: &str| matches!(kind(name), Some(FileKind::Table(_) | FileKind::Blob(_))) || is_trash(name);
    let everything = |name: &str| kind(name).is_some_and(|kind| kind != FileKind::Lock) || is_trash(name);
    // All other files there are another's. Source: RocksDB `DestroyDB`.
    let wals_only = |name: &str| {
        let name = name.strip_suffix(sst_file_manager::TRASH).unwrap_or(name);
        matches!(kind(name), Some(FileKind::Wal(_)))
    };
    if has_archive {
        remove_files(env, &archive, &wals_only)?;
    }
    if env.fs.canonical(wal_dir) != own && env.fs.exists(wal_dir)? {
        remove_files(env, wal_dir, &wals_only)?;
    }
    remove_files(env, path, &everything)?;
    for dir in others() {
        if env.fs.exists(dir)? {
            remove_files(env, dir, &data_only)?;
            path_owners::disown(env, dir)?;
            if env.fs.list(dir)?.is_empty() {
                env.fs.remove_dir(dir)?;
            }
        }
    }
    LogLocation::of(path, options.kept.get("db_log_dir")).remove(&*env.fs)?;
    if has_archive && env.fs.list(&archive)?.is_empty() {
        env.fs.remove_dir(&archive)?;
    }
    drop(lock);
    env.fs.remove_file(&file_name::lock(path))?;
    if env.fs.list(path)?.is_empty() {
        env.fs.remove_dir(path)?;
    }
    Ok(())
}

/// Removes the files in `dir` that have such names.
fn remove_files(env: &Env, dir: &Path, of: &dyn Fn(&str) -> bool) -> Result<()> {
    for name in env.fs.list(dir)? {
        if of(&name) {
            env.fs.remove_file(&dir.join(&name))?;
        }
    }
    Ok(())
}
