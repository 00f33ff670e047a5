//! Opens a database only to read it, while another process may write it.
//!
//! Nothing is written and no lock is taken. Entries in WALs are replayed into memtables and stay there. A secondary
//! can follow the primary: it reads MANIFEST and WALs again and shows readers the newer state.
//!
//! Invariant: every write is refused by the background error set here, before it touches WAL or MANIFEST.
//! Source: RocksDB `db/db_impl/db_impl_readonly.cc`, `db_impl_secondary.cc`.

use crate::column_family::ColumnFamilyDescriptor;
use crate::context::DbContext;
use crate::core::Core;
use crate::in_force::{OptionsInForce, in_force, memtable_pool};
use crate::info_log::InfoLog;
use crate::jobs::LogObserver;
use crate::manifest_file::Manifest;
use crate::objects::DbObjects;
use crate::recovery::{self, Families, ManifestStamp, RecoverOptions, Recovered};
use crate::write::wal::Wal;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::{Env, RateLimiter, WriteFile};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{ManifestWriter, WalSet};
use outcrop_memtable::MemTablePool;
use outcrop_monitor::Statistics;
use outcrop_options::DbOptions;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often everything is read again if a writer changed the structure meanwhile: beside one that flushes every few
/// milliseconds about every third attempt finds a file gone, or a WAL recycled.
const ATTEMPTS: usize = 100;

/// The state with which a secondary reads its primary's files again.
pub struct Secondary {
    descriptors: Vec<ColumnFamilyDescriptor>,
    /// Of several threads that catch up, the one that has read the older state must not install it last.
    catching_up: Mutex<()>,
}

fn refusal() -> Error {
    Error::not_supported("Not supported operation in read only mode.")
}

/// Stands where a writable database has its WAL and MANIFEST.
struct NoFile;

impl WriteFile for NoFile {
    fn append(&mut self, _bytes: &[u8]) -> Result<()> {
        Err(refusal())
    }

    fn flush(&mut self) -> Result<()> {
        Err(refusal())
    }

    fn sync(&mut self) -> Result<()> {
        Err(refusal())
    }

    fn len(&self) -> u64 {
        0
    }

    fn path(&self) -> &Path {
        Path::new("(read only)")
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// See [`crate::DbBuilder::open_read_only`].
pub fn open(
    path: &Path,
    options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
    limiter: Option<Arc<RateLimiter>>,
    (error_if_wal_file_exists, statistics): (bool, Option<Arc<Statistics>>),
) -> Result<(Arc<Core>, Secondary)> {
    let OptionsInForce { db: options, descriptors, .. } = in_force(path, options, column_families)?;
    let current = file_name::current(path);
    if !env.fs.exists(&current)? {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io(format!("open {}", current.display()), missing));
    }
    if error_if_wal_file_exists {
        refuse_wals(path, &options, &env)?;
    }
    // Nothing is written: of the objects that databases share no other is of use.
    let objects = DbObjects { rate_limiter: limiter, ..DbObjects::default() };
    let pool = memtable_pool(&descriptors, &objects);
    let how = RecoverOptions {
        families: Families::Some,
        objects: &objects,
        statistics: statistics.as_ref(),
        open: &BTreeMap::new(),
    };
    let recovered = recover(path, &options, &env, &descriptors, &pool, how)?;
    // Nothing is created here, whatever `create_missing_column_families` says.
    if let Some(missing) = recovered.to_create.first() {
        return Err(Error::invalid_argument(format!("Column family not found: {}", missing.name)));
    }
    let identity = (recovered.db_id.clone(), String::new());
    let log = InfoLog::none(&env);
    let next_file = recovered.next_file_number;
    let ctx = DbContext::new(env, path.to_path_buf(), options, identity, log, pool, next_file);
    let ctx = Arc::new(ctx.with_objects(objects).counted_by(statistics));
    let Recovered { mut state, last_seq, .. } = recovered;
    for cf in state.column_families.values_mut() {
        cf.install_superversion();
        cf.retired.clear();
    }
    state.background_error = Some(refusal());
    let wal = Wal::nowhere(Box::new(NoFile));
    let writer = ManifestWriter::nowhere(Box::new(NoFile));
    let manifest = Manifest::new(writer, last_seq, WalSet::default());
    let observer = Arc::new(LogObserver(ctx.clone()));
    let core = Core::new(ctx, state, last_seq, wal, manifest, observer, None);
    core.versions.refuse_writes(true);
    Ok((Arc::new(core), Secondary { descriptors, catching_up: Mutex::new(()) }))
}

/// Reads everything, again if a writer removed a file between the reading of its name and of its contents.
fn recover(
    path: &Path,
    options: &DbOptions,
    env: &Env,
    descriptors: &[ColumnFamilyDescriptor],
    pool: &Arc<MemTablePool>,
    how: RecoverOptions<'_>,
) -> Result<Recovered> {
    let mut attempt = 1;
    loop {
        let before = ManifestStamp::of(path, env)?;
        let recovered = recovery::recover(path, options, env, descriptors, pool, how);
        // A file goes only after the MANIFEST has changed. A WAL may be ended before that.
        match recovered {
            Err(error)
                if attempt < ATTEMPTS
                    && (error.kind() == ErrorKind::TryAgain
                        || may_pass(&error) && ManifestStamp::of(path, env)? != before) =>
            {
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn refuse_wals(path: &Path, options: &DbOptions, env: &Env) -> Result<()> {
    let wal_dir: PathBuf = options.wal_dir.clone().unwrap_or_else(|| path.to_path_buf());
    for name in env.fs.list(&wal_dir)? {
        if let Some(FileKind::Wal(number)) = file_name::parse(&name)
            && env.fs.file_size(&file_name::wal(&wal_dir, number))? > 0
        {
            return Err(Error::corruption(format!(
                "{}: a WAL with data exists and error_if_wal_file_exists is set",
                file_name::wal(&wal_dir, number).display()
            )));
        }
    }
    Ok(())
}

/// See [`crate::Db::try_catch_up_with_primary`].
pub fn catch_up(core: &Core, secondary: &Secondary) -> Result<()> {
    let ctx = &core.ctx;
    // HOLDS catching_up across IO, and before the state.
    let _alone = secondary.catching_up.lock();
    // Open files stay open, and their blocks in the cache: only new tables are opened.
    let open =
        core.versions.state.lock().column_families.iter().map(|(id, cf)| (*id, cf.version.clone())).collect();
    let how = RecoverOptions {
        families: Families::Some,
        objects: &ctx.objects,
        statistics: ctx.monitor.statistics.as_ref(),
        open: &open,
    };
    let recovered =
        recover(&ctx.path, &ctx.options, &ctx.env, &secondary.descriptors, &ctx.memtable_pool, how)?;
    let mut state = core.versions.state.lock();
    // Before the views: readers load a view before the number, and a newer view may no
    // longer have what an older number saw. An older view has nothing the newer number shows besides.
    core.versions.publish(recovered.last_seq);
    let mut retired = Vec::new();
    for (id, newer) in recovered.state.column_families {
        let Some(cf) = state.column_families.get_mut(&id) else { continue };
        cf.memtable = newer.memtable;
        cf.version = newer.version;
        (cf.log_number, cf.manifest_log_number) = (newer.log_number, newer.log_number);
        cf.cf.full_history_low.store(newer.cf.full_history_low.load_full());
        cf.install_superversion();
        retired.append(&mut cf.retired);
    }
    drop(state);
    drop(retired);
    Ok(())
}

/// True of what a file that is gone, or half of a newer one, may look like.
fn may_pass(error: &Error) -> bool {
    error.is_missing_file() || error.kind() == ErrorKind::Corruption
}
