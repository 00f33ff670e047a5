//! The owners of a database, put together in memory: no open, no threads, no recovery.

use crate::batch::codec::WriteBatch;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyParts};
use crate::context::DbContext;
use crate::events::reasons::FlushReason;
use crate::events::{Event, EventSink};
use crate::flush::job as flush;
use crate::in_force::memtable_pool;
use crate::info_log::{InfoLog, LogLevel, Logger};
use crate::jobs::{JobContext, JobInfo, JobObserver};
use crate::manifest_file::{Manifest, snapshot_edits};
use crate::objects::DbObjects;
use crate::read::cursor::Cursor;
use crate::read::get::get;
use crate::read::options::ReadOptions;
use crate::read::view::ReadView;
use crate::snapshots::SnapshotList;
use crate::state::{CfState, DbState, LiveWal};
use crate::version_set::VersionSet;
use crate::write::options::WriteOptions;
use crate::write::pipeline::{CommitPipeline, WriteCore};
use crate::write::targets::{Target, Targets};
use crate::write::wal::{ClosedWals, Wal};
use outcrop_base::{CfId, Result, SeqNum};
use outcrop_env::Env;
use outcrop_env::faulty::{Faults, FaultyFs};
use outcrop_env::memory::MemoryFs;
use outcrop_manifest::{FileNumber, ManifestWriter, Version, WalSet};
use outcrop_options::{ColumnFamilyOptions, CompressionType, DbOptions};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Where the files are.
pub const DIR: &str = "/db";
/// The first WAL.
pub const FIRST_WAL: FileNumber = FileNumber(2);

/// Column families `0` "default", `1` "cf1" and so on, over files in memory that can be made to fail.
pub struct Parts {
    pub fs: Arc<FaultyFs>,
    pub ctx: Arc<DbContext>,
    pub versions: Arc<VersionSet>,
    pub commit: CommitPipeline,
    pub jobs: JobContext,
    pub seen: Arc<Seen>,
}

/// An observer that takes down what it is told.
#[derive(Default)]
pub struct Seen(pub Mutex<Vec<String>>);

impl JobObserver for Seen {
    fn began(&self, job: &JobInfo) {
        self.0.lock().push(format!("began {:?} {}", job.kind, job.what));
    }

    fn ended(&self, job: &JobInfo, result: &Result<()>) {
        let how = if result.is_ok() { "well" } else { "with an error" };
        self.0.lock().push(format!("ended {:?} {how}", job.kind));
    }
}

/// Background errors as listeners are told them. A listener may do here all that it may do in a database: no lock
/// that it would need is held.
pub struct ReportedErrors {
    versions: Weak<VersionSet>,
    take_away: bool,
    told: Mutex<Vec<String>>,
}

impl ReportedErrors {
    /// Reasons and texts, in order, since it was asked last.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock())
    }
}

impl EventSink for ReportedErrors {
    fn tell(&self, event: Event<'_>) {
        let Event::BackgroundError(reason, status) = event else { return };
        let versions = self.versions.upgrade().expect("it tells");
        assert!(versions.manifest.try_lock().is_some(), "the MANIFEST is locked");
        assert!(versions.state.try_lock().is_some(), "the state is locked");
        self.told.lock().push(format!("{reason:?} {}", status.as_ref().expect("an error")));
        if self.take_away {
            *status = None;
        }
    }
}

/// A logger that takes down its lines.
#[derive(Default)]
pub struct Lines(pub Mutex<Vec<String>>);

impl Lines {
    /// Those that have `text` in them.
    pub fn with(&self, text: &str) -> Vec<String> {
        self.0.lock().iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl Logger for Lines {
    fn log(&self, _: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

/// Options under which tests know what to expect: tables without compression, no block cache of their own.
pub fn plain_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions { compression: CompressionType::None, ..ColumnFamilyOptions::default() }
}

impl Parts {
    /// One column family under [`plain_options`].
    pub fn new() -> Parts {
        Parts::with(DbOptions::default(), vec![(plain_options(), ColumnFamilyParts::default())])
    }

    /// As [`Parts::new`], with another thing than the default for the database.
    pub fn of_db(options: DbOptions) -> Parts {
        Parts::with(options, vec![(plain_options(), ColumnFamilyParts::default())])
    }

    /// One column family under `options`.
    pub fn of(options: ColumnFamilyOptions) -> Parts {
        Parts::with(DbOptions::default(), vec![(options, ColumnFamilyParts::default())])
    }

    /// These column families.
    pub fn with(options: DbOptions, families: Vec<(ColumnFamilyOptions, ColumnFamilyParts)>) -> Parts {
        Parts::with_objects(options, families, DbObjects::default())
    }

    /// The same, with `objects`. Without a logger there is no LOG.
    pub fn with_objects(
        options: DbOptions,
        families: Vec<(ColumnFamilyOptions, ColumnFamilyParts)>,
        objects: DbObjects,
    ) -> Parts {
        let fs = Arc::new(FaultyFs::new(MemoryFs::new()));
        let env = Env::with_file_system(fs.clone());
        let dir = Path::new(DIR);
        env.fs.create_dir_all(dir).unwrap();
        let descriptors: Vec<ColumnFamilyDescriptor> = families
            .into_iter()
            .enumerate()
            .map(|(id, (options, parts))| {
                let name = if id == 0 { "default".to_string() } else { format!("cf{id}") };
                ColumnFamilyDescriptor { name, options, parts }
            })
            .collect();
        let objects = objects.complete(&options, &env.clock);
        let pool = memtable_pool(&descriptors, &objects);
        let log = match &objects.logger {
            None => InfoLog::none(&env),
            logger => InfoLog::create(&env, dir, &options, logger.as_ref()).unwrap(),
        };
        let identity = ("id".to_string(), "session".to_string());
        let ctx =
            DbContext::new(env, PathBuf::from(DIR), options, identity, log, pool.clone(), FileNumber(100));
        let ctx = Arc::new(ctx.with_objects(objects));
        let mut state = DbState::empty();
        for (id, descriptor) in descriptors.iter().enumerate() {
            let version = Arc::new(Version::empty(descriptor.options.num_levels as usize));
            let cf = CfState::new(CfId(id as u32), descriptor, version, FIRST_WAL, 1, &pool);
            state.column_families.insert(CfId(id as u32), cf);
            state.max_column_family = CfId(id as u32);
        }
        let wal = Wal::create(&ctx, FIRST_WAL, None).unwrap();
        state.live_wals.push_back(LiveWal { number: FIRST_WAL, size_bytes: 0, is_own: true });
        let edits = snapshot_edits(&ctx, &state, SeqNum::ZERO, FIRST_WAL);
        let writer = ManifestWriter::create(&*ctx.env.fs, dir, FileNumber(1), &edits).unwrap();
        let manifest = Manifest::new(writer, SeqNum::ZERO, WalSet::default());
        let targets =
            state.column_families.values().map(|cf| Target::new(cf.cf.clone(), cf.memtable.clone()));
        let core = WriteCore {
            wal,
            last_seq: SeqNum::ZERO,
            targets: Targets::new(targets.collect()),
            seal_wanted: false,
            unlogged: false,
            replaced_wals: Vec::new(),
        };
        let versions = Arc::new(VersionSet::new(ctx.clone(), state, manifest, SeqNum::ZERO, FIRST_WAL));
        let closed_wals = Arc::new(ClosedWals::default());
        let seen = Arc::new(Seen::default());
        Parts {
            fs,
            commit: CommitPipeline::new(versions.clone(), closed_wals.clone(), core),
            jobs: JobContext {
                ctx: ctx.clone(),
                versions: versions.clone(),
                closed_wals,
                snapshots: Arc::new(SnapshotList::default()),
                observer: seen.clone(),
            },
            versions,
            ctx,
            seen,
        }
    }

    /// Takes down the background errors that listeners are told from here on, and takes them away if that is asked for.
    pub fn listen_for_errors(&self, take_away: bool) -> Arc<ReportedErrors> {
        let versions = Arc::downgrade(&self.versions);
        let told = Arc::new(ReportedErrors { versions, take_away, told: Mutex::default() });
        self.ctx.set_event_sink(told.clone());
        told
    }

    /// The faults that can be injected.
    pub fn faults(&self) -> &Faults {
        self.fs.faults()
    }

    /// The column family `id`.
    pub fn cf(&self, id: CfId) -> ColumnFamilyHandle {
        self.versions.state.lock().column_families[&id].cf.clone()
    }

    /// Sets `key` to `value` in the default column family.
    pub fn put(&self, key: &str, value: &str) {
        self.write(|batch| batch.put_id(CfId::DEFAULT, key.as_bytes(), value.as_bytes())).unwrap();
    }

    /// Deletes `key` from the default column family.
    pub fn delete(&self, key: &str) {
        self.write(|batch| batch.delete_id(CfId::DEFAULT, key.as_bytes())).unwrap();
    }

    /// Commits what `fill` puts into a batch.
    pub fn write(&self, fill: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        self.write_with(&WriteOptions::default(), fill)
    }

    /// The same under `options`.
    pub fn write_with(&self, options: &WriteOptions, fill: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let mut batch = WriteBatch::new();
        fill(&mut batch);
        self.commit.write(options, &mut batch)
    }

    /// The value of `key` in the default column family now.
    pub fn get(&self, key: &str) -> Option<String> {
        self.get_at(key, self.versions.visible_seq())
    }

    /// Its value at `seq`.
    pub fn get_at(&self, key: &str, seq: SeqNum) -> Option<String> {
        let cf = self.cf(CfId::DEFAULT);
        let sources = cf.superversion.load();
        let view = ReadView {
            tables: &self.ctx.tables,
            cf: &cf,
            sources: &sources,
            seq,
            options: crate::read::options::ReadOptions::by_default(),
            counting: outcrop_monitor::Counting::OFF,
            watch: outcrop_monitor::Watch::OFF,
        };
        let value = get(&view, key.as_bytes()).unwrap();
        value.map(|value| String::from_utf8(value.into_vec()).unwrap())
    }

    /// An iterator over the default column family as it is now.
    pub fn iter(&self, options: &ReadOptions) -> Cursor {
        let cf = self.cf(CfId::DEFAULT);
        let view = cf.superversion.load_full();
        let seq = options.seq(&self.jobs.snapshots, || self.versions.visible_seq()).unwrap();
        Cursor::new(&self.ctx, view, seq, &cf, options).unwrap()
    }

    /// All rows of the default column family, as `key=value`.
    pub fn rows(&self) -> String {
        let mut iter = self.iter(&ReadOptions::default());
        let mut rows = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            rows.push(format!("{}={}", text(iter.key()), text(iter.value())));
            iter.next();
        }
        iter.status().unwrap();
        rows.join(" ")
    }

    /// Seals the memtables of `ids`.
    pub fn seal(&self, ids: &[CfId]) {
        let mut core = self.commit.exclude_writers();
        self.commit.seal(&mut core, ids, FlushReason::ManualFlush).unwrap();
        drop(core);
        self.versions.request_flush(ids);
    }

    /// Flushes the default column family on this thread.
    pub fn flush(&self) {
        self.seal(&[CfId::DEFAULT]);
        let job = flush::pick(&mut self.versions.state.lock(), false);
        if let Some(job) = job {
            flush::run(&self.jobs, &job).unwrap();
            self.end_flush(&job);
        }
    }

    /// Undoes in the state what picking `job` did there.
    pub fn end_flush(&self, job: &crate::flush::decided::FlushJob) {
        let mut state = self.versions.state.lock();
        state.running_flushes -= 1;
        for part in &job.parts {
            if let Some(cf) = state.column_families.get_mut(&part.cf.id()) {
                cf.flush_running = false;
            }
        }
    }

    /// The tables of the default column family by level, as `L0: 11 9`.
    pub fn tables(&self) -> String {
        let state = self.versions.state.lock();
        let levels = state.column_families[&CfId(0)].version.levels.iter().enumerate();
        let lines = levels.filter(|(_, level)| !level.files.is_empty()).map(|(number, level)| {
            let files: Vec<String> = level.files.iter().map(|file| file.number.0.to_string()).collect();
            format!("L{number}: {}", files.join(" "))
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// The names of the files there are that end in `suffix`.
    pub fn files(&self, suffix: &str) -> Vec<String> {
        let mut names = self.ctx.env.fs.list(Path::new(DIR)).unwrap();
        names.retain(|name| name.ends_with(suffix));
        names.sort();
        names
    }
}
