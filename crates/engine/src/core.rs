//! The core of an open database: it owns the parts, and each part owns what it works on.
//!
//! ```text
//! Db -> features, stopping, scheduler -> Core { commit, versions, jobs }
//!        commit: what is written (write/)      versions: memtables, tables, MANIFEST (version_set.rs)
//!        jobs: flushes, compactions (jobs.rs)  ctx: files, options, table cache, threads (context.rs)
//! ```
//! The parts do not know the core.

use crate::column_family::ColumnFamilyHandle;
use crate::context::DbContext;
use crate::jobs::{JobContext, JobObserver};
use crate::manifest_file::Manifest;
use crate::snapshots::{Snapshot, SnapshotList};
use crate::state::DbState;
use crate::version_set::VersionSet;
use crate::write::pipeline::{CommitPipeline, WriteCore};
use crate::write::targets::{Target, Targets};
use crate::write::wal::{ClosedWals, Wal};
use arc_swap::ArcSwap;
use outcrop_base::{CfId, SeqNum};
use outcrop_env::FileLock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The column families of an open database, by id.
pub type Registry = BTreeMap<CfId, ColumnFamilyHandle>;

/// The owners of one open database. Locks and their order are listed in ARCHITECTURE.md.
pub struct Core {
    /// The parts that never change.
    pub ctx: Arc<DbContext>,
    /// The structure.
    pub versions: Arc<VersionSet>,
    /// The way in.
    pub commit: CommitPipeline,
    /// The parts that jobs work with.
    pub jobs: JobContext,
    /// Live snapshots.
    pub snapshots: Arc<SnapshotList>,
    /// The column families.
    pub registry: ArcSwap<Registry>,
    /// Held while options are changed and the OPTIONS file is written.
    pub options_file: Mutex<()>,
    /// The OPTIONS file could not be written after a change of the column families.
    pub options_outdated: AtomicBool,
    /// When it was opened, microseconds since the epoch.
    pub opened_micros: u64,
    /// Released last: another process may open the database from then on. None of one that is only read, or closed.
    pub lock: Mutex<Option<Box<dyn FileLock>>>,
}

impl Core {
    /// Puts a database together; `lock` is `None` for one that is only read.
    pub fn new(
        ctx: Arc<DbContext>,
        state: DbState,
        last_seq: SeqNum,
        mut wal: Wal,
        manifest: Manifest,
        observer: Arc<dyn JobObserver>,
        lock: Option<Box<dyn FileLock>>,
    ) -> Core {
        let targets =
            state.column_families.values().map(|cf| Target::new(cf.cf.clone(), cf.memtable.clone()));
        let targets = Targets::new(targets.collect());
        wal.name_timestamps(&targets.stamped());
        let registry = state.column_families.iter().map(|(id, cf)| (*id, cf.cf.clone())).collect();
        let versions = Arc::new(VersionSet::new(ctx.clone(), state, manifest, last_seq, wal.number()));
        let closed_wals = Arc::new(ClosedWals::default());
        let snapshots = Arc::new(SnapshotList::default());
        let core = WriteCore {
            wal,
            last_seq,
            targets,
            seal_wanted: false,
            unlogged: false,
            replaced_wals: Vec::new(),
        };
        Core {
            commit: CommitPipeline::new(versions.clone(), closed_wals.clone(), core),
            jobs: JobContext {
                ctx: ctx.clone(),
                versions: versions.clone(),
                closed_wals,
                snapshots: snapshots.clone(),
                observer,
            },
            versions,
            snapshots,
            registry: ArcSwap::from_pointee(registry),
            options_file: Mutex::new(()),
            options_outdated: AtomicBool::new(false),
            opened_micros: ctx.env.clock.now_micros(),
            lock: Mutex::new(lock),
            ctx,
        }
    }

    /// The open column family of that id.
    pub fn column_family(&self, id: CfId) -> Option<ColumnFamilyHandle> {
        self.registry.load().get(&id).cloned()
    }

    /// The ids of all column families.
    pub fn column_family_ids(&self) -> Vec<CfId> {
        self.registry.load().keys().copied().collect()
    }

    /// Changes the list of column families. With writers excluded.
    pub fn change_registry(&self, change: impl FnOnce(&mut Registry)) {
        let mut registry = (**self.registry.load()).clone();
        change(&mut registry);
        self.registry.store(Arc::new(registry));
    }

    /// The same for a transaction, which compares the newest version of keys with it.
    pub fn conflict_snapshot(&self) -> Snapshot {
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        self.snapshots.take_boundary(now, || self.versions.visible_seq())
    }

    /// Takes a snapshot of what is visible now.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        self.snapshots.take(now, || self.versions.visible_seq())
    }
}
