//! Listeners: the trait by which an application learns of events in a database, and the thread that calls it.
//!
//! Stands above `Db`, which the callbacks are given; the parts of the engine know `events::EventSink` alone.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `EventListener`.

use crate::core::Core;
use crate::db::Db;
use crate::events::info::{
    BackgroundErrorRecoveryInfo, CompactionJobInfo, ExternalFileIngestionInfo, FlushJobInfo, MemTableInfo,
    SubcompactionJobInfo, TableFileCreationInfo, TableFileCreationStartedInfo, TableFileDeletionInfo,
    WriteStallInfo,
};
use crate::events::reasons::BackgroundErrorReason;
use crate::events::{Event, EventSink};
use crate::info_log::log_line;
use crate::panic::caught;
use crate::scrub::options::DamageInfo;
use outcrop_base::Error;
use std::sync::{Arc, Weak};

/// Receives the events of the databases opened with it: [`crate::DbBuilder::listener`]. Every callback does nothing by default.
///
/// A callback runs on the thread that does what it is told of, and delays that. Every callback may read, and use snapshots and iterators.
/// Its other rights depend on whether the line of writers is held meanwhile:
///
/// | callback | the line of writers |
/// |---|---|
/// | compactions and their parts, ingested files, removed tables, damage, begin and end of recovery | free |
/// | flushes, and tables as they are written | free, or held by a caller that waits for this flush: a checkpoint, a backup or another freeze of the files that flushes first, an ingestion over keys in memory, [`Db::resume`] and the attempts to resume |
/// | [`EventListener::memtable_sealed`] | held |
/// | [`EventListener::stall_conditions_changed`], [`EventListener::background_error`] | as of flushes where a flush or a compaction ends, mostly held elsewhere: in writes, syncs, ingestions, attempts to resume |
///
/// While it is held, nobody writes: a callback that writes, flushes and waits, ingests or changes column families waits for
/// itself for ever. So a callback of a flush may write only where none of those calls is made; else it hands such work to a
/// thread of its own, and does not wait for it. While the line is free, a callback may do
/// all of that with `db`, but must not wait for work that waits for its own thread (a flush for another flush). [`Db::resume`] waits for
/// all jobs: on the thread of one it is refused with [`crate::ErrorKind::Busy`].
/// None is called while a database is opened, nor once it closes. One that panics leaves a line in LOG and harms nobody.
///
/// Several listeners are called in the order in which they were given.
///
/// ```
/// use outcrop::{Db, Env, EventListener, FlushJobInfo};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
///
/// impl EventListener for Flushed {
///     fn flush_begin(&self, _db: &Arc<Db>, flush: &FlushJobInfo) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         assert_eq!(flush.cf_name, "default");
///     }
/// }
///
/// let flushed = Arc::new(Flushed::default());
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).listener(flushed.clone()).open()?;
/// db.put("apple", "red")?;
/// db.flush()?;
/// assert_eq!(flushed.0.load(Ordering::Relaxed), 1);
/// # outcrop::Result::Ok(())
/// ```
pub trait EventListener: Send + Sync {
    /// The memtables of one column family are about to be written. With `atomic_flush` one call for each column family.
    fn flush_begin(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        let _ = (db, flush);
    }

    /// Its table is installed. A caller that waits for the flush may have gone on.
    fn flush_completed(&self, db: &Arc<Db>, flush: &FlushJobInfo) {
        let _ = (db, flush);
    }

    /// A compaction begins, also one whose tables are only moved or dropped. Not called for one that was canceled before, nor for
    /// [`Db::compact_files`], which tells its caller ([`Db::compact_files_cf_telling`]) and listeners of its parts.
    fn compaction_begin(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        let _ = (db, compaction);
    }

    /// A compaction that was told to begin has ended: its outputs are installed, or `status` says why not.
    fn compaction_completed(&self, db: &Arc<Db>, compaction: &CompactionJobInfo) {
        let _ = (db, compaction);
    }

    /// A part of a compaction begins, on its own thread.
    fn subcompaction_begin(&self, part: &SubcompactionJobInfo) {
        let _ = part;
    }

    /// It has ended; nothing is installed before all parts have.
    fn subcompaction_completed(&self, part: &SubcompactionJobInfo) {
        let _ = part;
    }

    /// A flush or a compaction begins a table, on its thread. Not called for the tables that opening, repairing or ingesting makes.
    fn table_file_creation_started(&self, table: &TableFileCreationStartedInfo) {
        let _ = table;
    }

    /// The table is written, or `status` says why not. Nobody reads it yet: the job installs it later, or removes it if it fails.
    fn table_file_created(&self, table: &TableFileCreationInfo) {
        let _ = table;
    }

    /// A table that was part of the database, and that nobody holds any more, is removed, or `status` says why not. With an
    /// [`SstFileManager`](crate::SstFileManager) that removes slowly: it is renamed, to be removed.
    fn table_file_deleted(&self, table: &TableFileDeletionInfo) {
        let _ = table;
    }

    /// A file was ingested and is visible. On the thread that ingests.
    fn external_file_ingested(&self, db: &Arc<Db>, file: &ExternalFileIngestionInfo) {
        let _ = (db, file);
    }

    /// An error that no caller can answer for. One of a flush or a compaction stops nothing yet, and nothing at all if `status` is set to
    /// `None`: it is tried again after a second. One of the WAL or of the MANIFEST, whose tail is unknown then, stops writes already, and
    /// counts all the same.
    fn background_error(&self, reason: BackgroundErrorReason, status: &mut Option<Error>) {
        let _ = (reason, status);
    }

    /// Writes have stopped with `error`, and the database is about to try to resume by itself, at once and then as often as
    /// `max_bgerror_resume_count` says. Called before the first attempt, on the thread that makes it. If `auto_recovery` is set to false, no
    /// attempt is made: writes are refused until [`Db::resume`]. Not called for errors from which the database does not resume by itself.
    fn error_recovery_begin(
        &self,
        db: &Arc<Db>,
        reason: BackgroundErrorReason,
        error: &Error,
        auto_recovery: &mut bool,
    ) {
        let _ = (db, reason, error, auto_recovery);
    }

    /// The database has resumed, by itself or by [`Db::resume`], and takes writes; or it makes no more attempts by itself, and
    /// `new_bg_error` says with what writes are refused. On the thread that resumed or tried to. An attempt that fails and is not the last is
    /// not told, nor is a [`Db::resume`] that fails: its caller has the error.
    fn error_recovery_end(&self, db: &Arc<Db>, recovery: &BackgroundErrorRecoveryInfo) {
        let _ = (db, recovery);
    }

    /// Writers of a column family are held back otherwise than before. Often with the line of writers held: see above.
    fn stall_conditions_changed(&self, stall: &WriteStallInfo) {
        let _ = stall;
    }

    /// The scrubber ([`crate::DbBuilder::scrub`]) found a file to be damaged: once each time that it reads the file. On its thread, with the line
    /// of writers free.
    fn damage_found(&self, db: &Arc<Db>, damage: &DamageInfo) {
        let _ = (db, damage);
    }

    /// The scrubber could not read a file, though there was a second try: the device failed, or the file is gone. Whether it is damaged is
    /// not known. Otherwise as [`EventListener::damage_found`], with an error of another kind than Corruption.
    fn unreadable_file_found(&self, db: &Arc<Db>, file: &DamageInfo) {
        let _ = (db, file);
    }

    /// A memtable is about to take no more writes. On the thread that writes, or asked for a flush.
    fn memtable_sealed(&self, memtable: &MemTableInfo) {
        let _ = memtable;
    }
}

/// Calls the listeners of one database.
struct Dispatch {
    /// Weak: the core has this.
    core: Weak<Core>,
    listeners: Vec<Arc<dyn EventListener>>,
}

/// Has `listeners` told what happens in `core` from here on.
pub fn attach(core: &Arc<Core>, listeners: Vec<Arc<dyn EventListener>>) {
    if !listeners.is_empty() {
        core.ctx.set_event_sink(Arc::new(Dispatch { core: Arc::downgrade(core), listeners }));
    }
}

impl EventSink for Dispatch {
    fn tell(&self, mut event: Event<'_>) {
        let Some(core) = self.core.upgrade() else { return };
        let db = Arc::new(Db::borrowed(core.clone()));
        for listener in &self.listeners {
            let told = caught("listener", || {
                call(&**listener, &db, &mut event);
                Ok(())
            });
            if let Err(error) = told {
                log_line!(core.ctx, "{error}");
            }
        }
    }
}

fn call(listener: &dyn EventListener, db: &Arc<Db>, event: &mut Event<'_>) {
    match event {
        Event::FlushBegin(info) => listener.flush_begin(db, info),
        Event::FlushCompleted(info) => listener.flush_completed(db, info),
        Event::CompactionBegin(info) => listener.compaction_begin(db, info),
        Event::CompactionCompleted(info) => listener.compaction_completed(db, info),
        Event::SubcompactionBegin(info) => listener.subcompaction_begin(info),
        Event::SubcompactionCompleted(info) => listener.subcompaction_completed(info),
        Event::TableFileCreationStarted(info) => listener.table_file_creation_started(info),
        Event::TableFileCreated(info) => listener.table_file_created(info),
        Event::TableFileDeleted(info) => listener.table_file_deleted(info),
        Event::FileIngested(info) => listener.external_file_ingested(db, info),
        Event::BackgroundError(reason, status) => listener.background_error(*reason, status),
        Event::ErrorRecoveryBegin(reason, error, auto) => {
            listener.error_recovery_begin(db, *reason, error, auto);
        }
        Event::ErrorRecoveryEnd(info) => listener.error_recovery_end(db, info),
        Event::StallChanged(info) => listener.stall_conditions_changed(info),
        Event::MemTableSealed(info) => listener.memtable_sealed(info),
        Event::DamageFound(info) => listener.damage_found(db, info),
        Event::UnreadableFound(info) => listener.unreadable_file_found(db, info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::ErrorKind;
    use outcrop_env::Env;
    use parking_lot::Mutex;

    /// Resumes when a flush begins.
    #[derive(Default)]
    struct Resumer(Mutex<Vec<Option<ErrorKind>>>);

    impl EventListener for Resumer {
        fn flush_begin(&self, db: &Arc<Db>, _: &FlushJobInfo) {
            self.0.lock().push(db.resume().err().map(|error| error.kind()));
        }
    }

    #[test]
    fn a_listener_cannot_resume_on_the_thread_of_a_job() {
        let resumer = Arc::new(Resumer::default());
        let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
        let db = builder.listener(resumer.clone()).open().unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        assert_eq!(*resumer.0.lock(), [Some(ErrorKind::Busy)]);
        db.resume().unwrap();
    }
}
