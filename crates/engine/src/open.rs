//! Opening, creating and destroying a database.
//!
//! ```text
//! lock -> (create) -> recover MANIFEST and WALs in memory -> check everything -> first write
//! ```
//! Invariant: a database that is refused is left as it was. Only the LOCK file may be new.

use crate::background::Background;
use crate::column_family::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY};
use crate::context::DbContext;
use crate::db::{CacheLine, DbInner};
use crate::info_log::{InfoLog, log_line};
use crate::obsolete_files::remove_leftovers;
use crate::recovery::{self, Recovered};
use crate::snapshots::SnapshotList;
use crate::state::{DbState, LiveWal};
use crate::stats::DbStats;
use crate::versions::Manifest;
use crate::write::group::WriteQueue;
use crate::write::stall::WriteStall;
use crate::write::wal::{ClosedWals, Wal};
use crate::write::{Target, Targets, WriteCore};
use arc_swap::ArcSwap;
use outcrop_base::{Comparator, Error, Result, SeqNum, builtin_merge};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_env::Env;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, WalSet};
use outcrop_memtable::MemTablePool;
use outcrop_options::{DbOptions, sanitize, validate};
use outcrop_table::unique_id;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// Capacity of a block cache that nobody asked for, in bytes. Source: RocksDB's default.
const DEFAULT_CACHE_BYTES: usize = 32 << 20;

/// See [`crate::Db::open`].
pub fn open(
    path: &Path,
    options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
) -> Result<Arc<DbInner>> {
    let OptionsInForce { db: options, descriptors, corrections } = in_force(path, options, column_families)?;
    if options.create_if_missing {
        env.fs.create_dir_all(path)?;
        if let Some(wal_dir) = &options.wal_dir {
            env.fs.create_dir_all(wal_dir)?;
        }
    }
    if !env.fs.exists(path)? {
        return Err(Error::invalid_argument(format!(
            "{}: does not exist (create_if_missing is false)",
            path.display()
        )));
    }
    let lock = env.fs.lock(&file_name::lock(path))?;
    create_if_missing(path, &options, &env)?;

    let pool = memtable_pool(&descriptors);
    let recovered = recovery::recover(path, &options, &env, &descriptors, &pool, recovery::Families::All)?;
    let info_log = InfoLog::create(&env, path, options.keep_log_file_num)?;
    let session_id = unique_id::session_id(env.random.next_u64(), env.random.next_u64() | 1);
    let identity = (recovered.db_id.clone(), session_id);
    let next_file = recovered.next_file_number;
    let ctx = Arc::new(DbContext::new(env, path.to_path_buf(), options, identity, info_log, pool, next_file));
    log_line!(ctx, "outcrop {}: opening {}", env!("CARGO_PKG_VERSION"), path.display());
    // As RocksDB's, for tools that read it; only who builds a release knows that the source is what a commit says.
    if let Some(hash) = option_env!("OUTCROP_GIT_SHA") {
        log_line!(ctx, "Git sha {hash}");
    }
    log_line!(ctx, "batches of reads go by {}", outcrop_env::batch_reads_by());
    for correction in corrections {
        log_line!(ctx, "{correction}");
    }
    let inner = start(ctx, recovered, lock)?;
    Background::start(&inner)?;
    Ok(inner)
}

/// What a database is opened with.
pub struct OptionsInForce {
    /// Its own options.
    pub db: DbOptions,
    /// The column families to open, "default" first, each with a block cache.
    pub descriptors: Vec<ColumnFamilyDescriptor>,
    /// What is not as it was given, in words.
    pub corrections: Vec<String>,
}

/// Checks options as given, and corrects what RocksDB corrects.
///
/// # Errors
/// InvalidArgument or NotSupported for what no database is opened with.
pub fn in_force(
    path: &Path,
    mut db: DbOptions,
    column_families: Vec<ColumnFamilyDescriptor>,
) -> Result<OptionsInForce> {
    let mut descriptors = complete_descriptors(column_families)?;
    for descriptor in &descriptors {
        check_column_family_options(descriptor, &db)?;
    }
    validate::db(&db)?;
    let context =
        sanitize::DbContext { path: path.to_path_buf(), file_limit: outcrop_env::open_files_limit() };
    let mut corrections: Vec<String> =
        sanitize::db(&mut db, &context).iter().map(ToString::to_string).collect();
    for descriptor in &mut descriptors {
        corrections.extend(sanitize_column_family(descriptor, &db));
    }
    Ok(OptionsInForce { db, descriptors, corrections })
}

/// Corrects options of a column family; gives what was corrected, in words.
pub fn sanitize_column_family(descriptor: &mut ColumnFamilyDescriptor, db: &DbOptions) -> Vec<String> {
    let parts = &descriptor.parts;
    let context = sanitize::CfContext {
        atomic_flush: db.atomic_flush,
        ingest_behind: db.allow_ingest_behind,
        has_filter: parts.compaction_filter.is_some() || parts.compaction_filter_factory.is_some(),
    };
    let corrections = sanitize::column_family(&mut descriptor.options, &context);
    corrections.iter().map(|correction| format!("[{}] {correction}", descriptor.name)).collect()
}

/// The column families to open, "default" first, each with a block cache.
pub fn complete_descriptors(
    mut descriptors: Vec<ColumnFamilyDescriptor>,
) -> Result<Vec<ColumnFamilyDescriptor>> {
    if !descriptors.iter().any(|descriptor| descriptor.name == DEFAULT_COLUMN_FAMILY) {
        descriptors.push(ColumnFamilyDescriptor::default_with(Default::default(), Default::default()));
    }
    descriptors.sort_by_key(|descriptor| descriptor.name != DEFAULT_COLUMN_FAMILY);
    let mut names = BTreeSet::new();
    for descriptor in &mut descriptors {
        if !names.insert(descriptor.name.clone()) {
            return Err(Error::invalid_argument(format!("column family {} is named twice", descriptor.name)));
        }
        add_default_cache(descriptor);
        resolve_objects(descriptor)?;
    }
    Ok(descriptors)
}

/// Gives a column family a private block cache if it has none and wants one.
pub fn add_default_cache(descriptor: &mut ColumnFamilyDescriptor) {
    if descriptor.options.table.no_block_cache {
        descriptor.parts.block_cache = None;
    } else if descriptor.parts.block_cache.is_none() {
        let asked = descriptor.options.table.block_cache_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let capacity = asked.unwrap_or(DEFAULT_CACHE_BYTES);
        descriptor.parts.block_cache = Some(Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 }));
    }
}

/// Makes names and objects of comparator and merge operator agree.
pub fn resolve_objects(descriptor: &mut ColumnFamilyDescriptor) -> Result<()> {
    let (name, object) = (&mut descriptor.options.comparator, &mut descriptor.parts.comparator);
    if let (Comparator::Bytewise, Some(given)) = (&*object, name.as_deref()) {
        *object = Comparator::by_name(given).ok_or_else(|| {
            Error::invalid_argument(format!(
                "column family {}: there is no built-in comparator {given}; give the object",
                descriptor.name
            ))
        })?;
    }
    *name = Some(object.name().to_string());
    let (name, object) = (&mut descriptor.options.merge_operator, &mut descriptor.parts.merge_operator);
    match (object.as_ref(), name.as_deref()) {
        (Some(operator), _) => *name = Some(operator.name().to_string()),
        (None, Some(given)) => {
            let found = builtin_merge::by_name(given).ok_or_else(|| {
                Error::invalid_argument(format!(
                    "column family {}: there is no built-in merge operator {given}; give the object",
                    descriptor.name
                ))
            })?;
            // Under its full name, as RocksDB writes it.
            *name = Some(found.name().to_string());
            *object = Some(found);
        }
        (None, None) => {}
    }
    Ok(())
}

/// Memory for memtables: what the largest column family may use beside its active one, at most two of them.
pub fn memtable_pool(descriptors: &[ColumnFamilyDescriptor]) -> Arc<MemTablePool> {
    let largest =
        descriptors.iter().map(|descriptor| &descriptor.options).max_by_key(|o| o.write_buffer_size);
    let (size, beside) = largest.map_or((0, 0), |o| (o.write_buffer_size, o.max_write_buffer_number - 1));
    Arc::new(MemTablePool::for_memtables(size, beside.clamp(1, 2) as usize))
}

/// Refuses settings that no table or level could be built with.
pub fn check_column_family_options(descriptor: &ColumnFamilyDescriptor, db: &DbOptions) -> Result<()> {
    validate::column_family(&descriptor.options, db)
        .map_err(|error| error.within(format!("column family {}", descriptor.name)))
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
        log_number: Some(0),
        next_file_number: Some(2),
        last_sequence: Some(SeqNum::ZERO),
        ..VersionEdit::default()
    };
    ManifestWriter::create(&*env.fs, path, FileNumber(1), &[edit]).map(|_| ())
}

/// A random UUID, version 4.
pub fn new_db_id(env: &Env) -> String {
    let (a, b) = (env.random.next_u64(), env.random.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xFFFF,
        a & 0xFFF,
        0x8000 | ((b >> 48) & 0x3FFF),
        b & 0xFFFF_FFFF_FFFF
    )
}

/// Writes the IDENTITY file.
pub fn write_identity(path: &Path, env: &Env, db_id: &str) -> Result<()> {
    env.fs.replace(&file_name::identity(path), &file_name::temp(path, FileNumber(0)), db_id.as_bytes())
}

/// Makes what was recovered durable under a new MANIFEST and WAL, and puts the database together.
fn start(
    ctx: Arc<DbContext>,
    recovered: Recovered,
    lock: Box<dyn outcrop_env::FileLock>,
) -> Result<Arc<DbInner>> {
    let wal_number = ctx.new_file_number();
    let Recovered { mut state, last_seq, to_create, identity_missing, mut wals, .. } = recovered;
    if !ctx.options.write_identity_file {
        // One that is not kept up would be a stale one. Source: RocksDB `DBImpl::SetupDBId`.
        let _ = ctx.env.fs.remove_file(&file_name::identity(&ctx.path));
    } else if identity_missing {
        write_identity(&ctx.path, &ctx.env, &ctx.db_id)?;
    }
    recovery::flush_recovered(&ctx, &mut state, wal_number)?;
    let wal = Wal::create(&ctx, wal_number, None)?;
    state.live_wals.push_back(LiveWal { number: wal_number, size_bytes: 0 });
    let manifest_number = FileNumber(ctx.new_file_number());
    let min_wal = wal_number.min(state.prepared.oldest_wal().unwrap_or(u64::MAX));
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
    remove_leftovers(&ctx, &live, min_wal, manifest_number, ctx.next_file_number())?;
    for cf in state.column_families.values_mut() {
        cf.refresh_debt();
        cf.install_superversion();
    }
    let manifest = Manifest::new(writer, last_seq, wals);
    let inner = Arc::new(assemble(ctx, state, last_seq, wal, manifest, Some(lock)));
    for descriptor in &to_create {
        inner.create_column_family(descriptor)?;
    }
    inner.write_options_file()?;
    Ok(inner)
}

/// Puts a database together; `lock` is `None` for one that is only read.
pub fn assemble(
    ctx: Arc<DbContext>,
    state: DbState,
    last_seq: SeqNum,
    wal: Wal,
    manifest: Manifest,
    lock: Option<Box<dyn outcrop_env::FileLock>>,
) -> DbInner {
    let targets = state.column_families.values().map(|cf| Target::new(cf.cf.clone(), cf.memtable.clone()));
    let targets = Targets::new(targets.collect());
    let registry = state.column_families.iter().map(|(id, cf)| (*id, cf.cf.clone())).collect();
    let stall = WriteStall::new(ctx.options.delayed_write_rate);
    stall.update(&state);
    DbInner {
        visible_seq: CacheLine(AtomicU64::new(last_seq.0)),
        write_queue: WriteQueue::default(),
        current_wal: AtomicU64::new(wal.number()),
        wal_readers: AtomicUsize::new(0),
        write_core: Mutex::new(WriteCore { wal, last_seq, targets, seal_wanted: false, unlogged: false }),
        closed_wals: ClosedWals::default(),
        write_refused: AtomicBool::new(false),
        options_outdated: AtomicBool::new(false),
        stall,
        manifest: Mutex::new(manifest),
        state: Mutex::new(state),
        state_changed: Condvar::new(),
        background: Background::default(),
        snapshots: Arc::new(SnapshotList::default()),
        registry: ArcSwap::from_pointee(registry),
        stats: DbStats::default(),
        opened_micros: ctx.env.clock.now_micros(),
        lock: Mutex::new(lock),
        ctx,
    }
}

/// The edits that describe the whole database, for the start of a MANIFEST.
pub fn snapshot_edits(ctx: &DbContext, state: &DbState, last_seq: SeqNum, min_wal: u64) -> Vec<VersionEdit> {
    let mut edits = Vec::new();
    if ctx.options.write_dbid_to_manifest {
        edits.push(VersionEdit { db_id: Some(ctx.db_id.clone()), ..VersionEdit::default() });
    }
    for (id, cf) in &state.column_families {
        let mut edit = VersionEdit::for_column_family(*id);
        edit.column_family_add = (*id != 0).then(|| cf.cf.name().to_string());
        edit.comparator = Some(cf.cf.comparator.name().to_string());
        edit.persist_timestamps = Some(true);
        edits.push(edit);
        let mut tables = VersionEdit::for_column_family(*id);
        tables.log_number = Some(cf.log_number);
        tables.new_blob_files = cf.version.blob_files.values().map(|blob| blob.file.clone()).collect();
        tables.blob_garbage = cf
            .version
            .blob_files
            .iter()
            .filter(|(_, blob)| blob.garbage.count > 0)
            .map(|(number, blob)| (*number, blob.garbage))
            .collect();
        tables.compact_cursors =
            cf.version.compact_cursors.iter().map(|(level, key)| (*level, key.clone())).collect();
        tables.new_files = cf.version.files().map(|(level, file)| (level as u32, file.clone())).collect();
        if *id == 0 {
            tables.next_file_number = Some(ctx.next_file_number());
            tables.last_sequence = Some(last_seq);
            tables.max_column_family = Some(state.max_column_family);
            tables.min_log_number_to_keep = Some(min_wal);
        }
        edits.push(tables);
    }
    edits
}

/// See [`crate::Db::destroy`].
pub fn destroy(path: &Path, options: &DbOptions, env: &Env) -> Result<()> {
    if !env.fs.exists(path)? {
        return Ok(());
    }
    let lock = env.fs.lock(&file_name::lock(path))?;
    let wal_dir = options.wal_dir.as_deref().unwrap_or(path);
    for dir in [wal_dir, path] {
        for name in env.fs.list(dir)? {
            let ours = file_name::parse(&name).is_some_and(|kind| kind != FileKind::Lock);
            if ours {
                env.fs.remove_file(&dir.join(&name))?;
            }
        }
    }
    drop(lock);
    env.fs.remove_file(&file_name::lock(path))?;
    if env.fs.list(path)?.is_empty() {
        env.fs.remove_dir(path)?;
    }
    Ok(())
}
