//! The constants that every job of one open database needs: where it is, its identity, its environment and
//! options, and the counter that numbers files.

use crate::background::Background;
use crate::claim::Claim;
use crate::column_family::ColumnFamily;
use crate::events::sink::Events;
use crate::info_log::InfoLog;
use crate::limiter_counts::LimiterCounts;
use crate::objects::{DbObjects, Pacing};
use crate::scrub::scrubber::Scrubber;
use crate::table_cache::TableCache;
use crate::write::failed_writes::FailedWrites;
use arc_swap::ArcSwap;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::{Env, process_id, trim_heap};
use outcrop_manifest::FileNumber;
use outcrop_memtable::MemTablePool;
use outcrop_monitor::{Monitor, Statistics, Ticker};
use outcrop_options::DbOptions;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The error of calls that come, or still wait, once the database closes.
pub fn closing_error() -> Error {
    Error::new(ErrorKind::ShutdownInProgress, "the database is closing")
}

/// The error of calls with a handle that another database gave, or an earlier opening of this one.
#[cold]
pub fn foreign_error(cf: &ColumnFamily) -> Error {
    Error::invalid_argument(format!("column family {} is of another database", cf.name()))
}

/// The fixed surroundings of one open database.
pub struct DbContext {
    /// Files, time, randomness, threads.
    pub env: Env,
    /// Directory of the database.
    pub path: PathBuf,
    /// Every directory that may hold its tables and blob files, the database's first. Changed as column families with paths are opened.
    pub data_dirs: ArcSwap<Vec<PathBuf>>,
    /// Of those, the ones besides the database's own, which it has claimed.
    pub claims: Mutex<Vec<Claim>>,
    /// Directory of its WALs.
    pub wal_dir: PathBuf,
    /// Settings of the whole database, as it was opened. Those that can change are in [`DbContext::live`].
    pub options: DbOptions,
    /// The same, as they are now. Not for hot paths.
    pub live: ArcSwap<DbOptions>,
    /// The identity in MANIFEST, IDENTITY and every table.
    pub db_id: String,
    /// The identity of this opening, in every table it writes.
    pub session_id: String,
    /// The LOG file.
    pub info_log: InfoLog,
    /// Opens its tables.
    pub tables: Arc<TableCache>,
    /// Objects that it shares with other databases.
    pub objects: DbObjects,
    /// Paces its IO.
    pub pacing: Pacing,
    /// Its ties to the background threads.
    pub background: Background,
    /// Counts the operations on it.
    pub monitor: Monitor,
    /// Memory of memtables. One for each opening: handles know their database by it.
    pub memtable_pool: Arc<MemTablePool>,
    /// The sink of events, if somebody listens.
    pub events: Events,
    /// Verifies its files from time to time.
    pub scrub: Scrubber,
    /// Writes that failed and never were seen.
    pub failed_writes: FailedWrites,
    /// When the archive of WALs was looked at last, seconds since the epoch.
    pub archive_purged: AtomicU64,
    /// Something was written without a WAL.
    pub has_unlogged: AtomicBool,
    /// The database closes: compactions end.
    pub closing: AtomicBool,
    /// The database is closed: its directory may be another's. Set with `Core::options_file`, `CommitPipeline::core` and
    /// `VersionSet::manifest` locked, so that a holder of one of them finds it as it stays.
    pub closed: AtomicBool,
    /// Complete files that were not installed, but may be named by a MANIFEST whose tail is unknown. Removed once another is in
    /// charge.
    pub doubtful_outputs: Mutex<Vec<FileNumber>>,
    next_file: AtomicU64,
    /// The process that opened the database.
    process: u32,
}

impl DbContext {
    /// `next_file` is the first number no file of the database has had.
    pub fn new(
        env: Env,
        path: PathBuf,
        options: DbOptions,
        identity: (String, String),
        info_log: InfoLog,
        memtable_pool: Arc<MemTablePool>,
        next_file: FileNumber,
    ) -> DbContext {
        let wal_dir = options.wal_dir.clone().unwrap_or_else(|| path.clone());
        let (db_id, session_id) = identity;
        let tables = TableCache::new(env.fs.clone(), &path, &options);
        let monitor = Monitor { statistics: None, clock: env.clock.clone() };
        DbContext {
            env,
            data_dirs: ArcSwap::from_pointee(vec![path.clone()]),
            claims: Mutex::default(),
            path,
            wal_dir,
            tables: Arc::new(tables),
            objects: DbObjects::default(),
            pacing: Pacing::default(),
            background: Background::default(),
            live: ArcSwap::from_pointee(options.clone()),
            events: Events::default(),
            options,
            db_id,
            session_id,
            monitor,
            info_log,
            memtable_pool,
            scrub: Scrubber::default(),
            failed_writes: FailedWrites::default(),
            archive_purged: AtomicU64::new(0),
            has_unlogged: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            doubtful_outputs: Mutex::default(),
            next_file: AtomicU64::new(next_file.0),
            process: process_id(),
        }
    }

    /// With `objects`, or what the options ask for in their place.
    pub fn with_objects(mut self, objects: DbObjects) -> DbContext {
        self.objects = objects;
        self.pacing.limiter.clone_from(&self.objects.rate_limiter);
        self
    }

    /// The same, counted by `statistics`.
    pub fn counted_by(mut self, statistics: Option<Arc<Statistics>>) -> DbContext {
        self.monitor.statistics = statistics;
        if self.monitor.statistics.is_some() {
            self.pacing.observer = Some(Arc::new(LimiterCounts(self.monitor.clone())));
        }
        let tables = Arc::into_inner(self.tables).expect("nobody has opened a table yet");
        self.tables = Arc::new(tables.watched_by(self.monitor.clone()).paced_by(self.pacing.reads()));
        self
    }

    /// Within a memory budget, returns what the allocator keeps to the operating system: after each job, and from time to time.
    pub fn trim_heap(&self) {
        if self.objects.memory_budget.is_some() {
            trim_heap();
        }
    }

    /// Counts an event, if there are statistics.
    pub fn count(&self, ticker: Ticker, n: u64) {
        if let Some(statistics) = &self.monitor.statistics {
            statistics.count(ticker, n);
        }
    }

    /// True in a process that was forked from the one that opened the database.
    pub fn is_forked(&self) -> bool {
        self.process != process_id()
    }

    /// True if `cf` is of this opening of this database.
    #[inline]
    pub fn owns(&self, cf: &ColumnFamily) -> bool {
        Arc::ptr_eq(&cf.memtable_pool, &self.memtable_pool)
    }

    /// InvalidArgument if `cf` is of another database: its ids, sequence numbers and files mean something else there.
    #[inline]
    pub fn check_owns(&self, cf: &ColumnFamily) -> Result<()> {
        if self.owns(cf) { Ok(()) } else { Err(foreign_error(cf)) }
    }

    /// ShutdownInProgress once the database closes.
    pub fn check_open(&self) -> Result<()> {
        // Relaxed: asked again and again.
        if self.closing.load(Ordering::Relaxed) { Err(closing_error()) } else { Ok(()) }
    }

    /// ShutdownInProgress once the database is closed: nothing in its directory may be changed any more.
    pub fn check_not_closed(&self) -> Result<()> {
        // Relaxed: the locks that it is set with order it.
        match self.closed.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::ShutdownInProgress, "the database is closed")),
            false => Ok(()),
        }
    }

    /// A number no file has had.
    pub fn new_file_number(&self) -> FileNumber {
        // Relaxed: uniqueness is all that is asked.
        FileNumber(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// Gives no file a number up to `highest` from here on; the number that the next one gets at least.
    pub fn number_files_above(&self, highest: FileNumber) -> FileNumber {
        self.next_file.fetch_max(highest.next().0, Ordering::Relaxed);
        self.next_file_number()
    }

    /// The number the next file will get: above every file in existence.
    pub fn next_file_number(&self) -> FileNumber {
        FileNumber(self.next_file.load(Ordering::Relaxed))
    }
}
