//! The only place that decides what runs next in the background, and on which thread.
//!
//! Three kinds of threads wait for work: flush threads, so that a long compaction never delays a flush, compaction
//! threads, and one for upkeep: what is slow and nobody waits for. A quarter of `max_background_jobs`, at least one,
//! are flush threads; upkeep does not count.
//!
//! Order for compaction threads: manual requests, then what the compaction style of any column family wants most.
//! Upkeep lets go of replaced views and dead files, then makes memory ready: for the caches that grow, which readers wait
//! for, ahead of writers in memtables whose memory is not there, and for the memtables to come.
//! Once a second it looks for what time alone makes due: statistics, tables that have come of age or
//! that released snapshots let go, dead files that a reader has let go, and memory that no memtable came for or uses.
//! After a background error nothing starts until it is cleared.

use crate::compaction::job::CompactionJob;
use crate::compaction::manual::{self, ManualCompaction, ManualPick};
use crate::compaction::pick;
use crate::db::DbInner;
use crate::flush::job::{self as flush_job, FlushJob};
use crate::info_log::log_line;
use crate::obsolete_files::block_caches;
use crate::state::{CfState, DbState};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_cache::{Cache, Keeper};
use outcrop_env::PassedMemory;
use outcrop_env::threads::JoinHandle;
use outcrop_memtable::{Ahead, MemTable};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a thread looks for what time alone makes due.
const TIMED_CHECK: Duration = Duration::from_secs(1);

/// The background threads of one database.
#[derive(Default)]
pub struct Background {
    /// Signalled, with the state lock, when there may be work for flush and compaction threads.
    work: Condvar,
    requests: Arc<Requests>,
    /// What tells of the growth of each cache in use.
    keepers: Mutex<Vec<(Weak<Cache>, Arc<Keeper>)>>,
    threads: Mutex<Vec<Box<dyn JoinHandle>>>,
    /// When the next timed check is due, by the monotonic clock. Set under the state lock.
    next_check_nanos: AtomicU64,
}

/// What readers and writers ask of the upkeep thread, without the state lock.
#[derive(Default)]
struct Requests {
    /// Signalled, for waiters with the state lock, when there may be work for upkeep.
    wake: Condvar,
    /// Those that want memory to grow by.
    caches: Mutex<Vec<Arc<Cache>>>,
    /// Memory to drop.
    passed: Mutex<Vec<PassedMemory>>,
}

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Flush,
    Compaction,
    Upkeep,
}

enum Job {
    Flush(FlushJob),
    Compaction(CompactionJob, Option<Arc<ManualCompaction>>),
    /// Views and files that nobody needs any more.
    Purge,
    /// Memory that writers are done with.
    DropPassed,
    /// Memory for the cache to grow by.
    PrepareSlabs(Arc<Cache>),
    /// Memory that writers of this memtable come to next.
    MakeResident(Arc<MemTable>, Ahead),
    /// Memory for a memtable of this write buffer size.
    PrepareMemtable(u64),
}

impl Background {
    /// Lets the threads look for work. Takes the state to show that it is locked: a wake-up cannot be lost.
    pub fn wake(&self, state: &mut DbState) {
        self.work.notify_all();
        self.wake_upkeep(state);
    }

    /// As [`Background::wake`], for what only upkeep does.
    pub fn wake_upkeep(&self, _state: &mut DbState) {
        self.requests.wake.notify_all();
    }

    /// Has upkeep drop `memory`.
    #[inline]
    pub fn let_go(&self, memory: Option<PassedMemory>) {
        if let Some(memory) = memory {
            self.requests.passed.lock().push(memory);
            // Without the state lock: upkeep may miss it until it looks for work again.
            self.requests.wake.notify_all();
        }
    }

    /// Has upkeep make the memory ready by which `cache` will grow.
    pub fn keep(&self, cache: &Arc<Cache>) {
        let mut keepers = self.keepers.lock();
        keepers.retain(|(cache, _)| cache.strong_count() > 0);
        if keepers.iter().any(|(known, _)| known.as_ptr() == Arc::as_ptr(cache)) {
            return;
        }
        let (requests, growing) = (self.requests.clone(), Arc::downgrade(cache));
        let keeper: Arc<Keeper> = Arc::new(move || {
            let Some(cache) = growing.upgrade() else { return };
            let mut caches = requests.caches.lock();
            if !caches.iter().any(|waiting| Arc::ptr_eq(waiting, &cache)) {
                caches.push(cache);
            }
            drop(caches);
            // Without the state lock, which readers do not take: upkeep may miss it, until the cache has grown once more.
            requests.wake.notify_all();
        });
        cache.add_keeper(&keeper);
        keepers.push((Arc::downgrade(cache), keeper));
    }

    /// Drops what [`Background::let_go`] was given.
    pub fn drop_passed(&self) {
        let passed = std::mem::take(&mut *self.requests.passed.lock());
        drop(passed);
    }

    /// Starts the threads of `db`.
    pub fn start(db: &Arc<DbInner>) -> Result<()> {
        let jobs = db.ctx.options.max_background_jobs.max(1) as usize;
        let flushes = (jobs / 4).max(1);
        let compactions = jobs.saturating_sub(flushes).max(1);
        let lanes = std::iter::repeat_n(Lane::Flush, flushes)
            .chain(std::iter::repeat_n(Lane::Compaction, compactions))
            .chain([Lane::Upkeep]);
        for lane in lanes {
            let name = match lane {
                Lane::Flush => "outcrop:high",
                Lane::Compaction => "outcrop:low",
                Lane::Upkeep => "outcrop:upkeep",
            };
            let db_of_thread = db.clone();
            let thread = db.ctx.env.threads.spawn(name, Box::new(move || db_of_thread.work(lane)))?;
            db.background.threads.lock().push(thread);
        }
        let caches = block_caches(&db.state.lock());
        caches.iter().for_each(|cache| db.background.keep(cache));
        Ok(())
    }

    /// True from [`Background::start`] to [`Background::join`].
    pub fn is_running(&self) -> bool {
        !self.threads.lock().is_empty()
    }

    /// Waits for the threads to end; the state must say that the database shuts down.
    pub fn join(&self) {
        self.keepers.lock().clear();
        for thread in self.threads.lock().drain(..) {
            // A panic there was already reported by the panic hook; closing goes on.
            let _ = thread.join();
        }
    }
}

impl DbInner {
    /// The life of a background thread. A panic outside of a job, as of a comparator that is asked what to compact, stops
    /// writes as a failed job does; the thread goes on, or nobody would do its work after `resume`.
    fn work(self: Arc<Self>, lane: Lane) {
        let mut running = true;
        while running {
            running = caught("background work", || Ok(self.work_once(lane))).unwrap_or_else(|error| {
                let mut state = self.state.lock();
                self.job_failed(&mut state, "background work", &error);
                self.job_ended(&mut state);
                true
            });
        }
    }

    /// Waits for a job and does it; false once the database shuts down.
    fn work_once(&self, lane: Lane) -> bool {
        let Some(job) = self.wait_for_job(lane) else { return false };
        match job {
            Job::Flush(job) => self.do_flush(job),
            Job::Compaction(job, manual) => self.do_compaction(job, manual),
            Job::Purge => self.purge_obsolete_files(),
            Job::DropPassed => self.background.drop_passed(),
            Job::PrepareSlabs(cache) => while cache.prepare_slab() {},
            Job::MakeResident(memtable, ahead) => memtable.make_resident(&ahead),
            Job::PrepareMemtable(size) => self.ctx.memtable_pool.prepare(size),
        }
        true
    }

    /// The next job; `None` once the database shuts down.
    fn wait_for_job(&self, lane: Lane) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.shutting_down {
                return None;
            }
            if let Some(job) = self.next_job(&mut state, lane) {
                return Some(job);
            }
            if lane == Lane::Upkeep {
                let wait = self.time_to_check();
                if wait > Duration::ZERO {
                    self.background.requests.wake.wait_for(&mut state, wait);
                } else {
                    self.check_marks(&mut state);
                    drop(state);
                    self.rest_memory();
                    self.dump_stats_if_due();
                    self.note_options_if_outdated();
                    state = self.state.lock();
                }
                continue;
            }
            self.background.work.wait(&mut state);
        }
    }

    /// Gives back memory that no writer comes for, and the WAL that none writes over.
    fn rest_memory(&self) {
        if self.ctx.memtable_pool.rest(self.visible_seq().0) {
            self.drop_kept_wals();
            let active: Vec<Arc<MemTable>> = {
                let state = self.state.lock();
                state.column_families.values().map(|cf| cf.memtable.clone()).collect()
            };
            active.iter().for_each(|memtable| memtable.give_back_unused());
        }
    }

    /// How long until the next timed check; zero once in each period.
    fn time_to_check(&self) -> Duration {
        let now = self.ctx.env.clock.monotonic_nanos();
        // Relaxed: read and set under the state lock.
        let next = self.background.next_check_nanos.load(Ordering::Relaxed);
        if now < next {
            return Duration::from_nanos(next - now);
        }
        let following = now + TIMED_CHECK.as_nanos() as u64;
        self.background.next_check_nanos.store(following, Ordering::Relaxed);
        Duration::ZERO
    }

    /// Looks which tables have come of age, or hold garbage that no snapshot keeps any more, and whether readers have
    /// let go of dead files.
    fn check_marks(&self, state: &mut DbState) {
        state.purge_wanted |= !state.obsolete_tables.is_empty() || !state.obsolete_blobs.is_empty();
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        let oldest_snapshot = self.snapshots.oldest().unwrap_or_else(|| self.visible_seq());
        let mut found = false;
        for cf in state.column_families.values_mut() {
            cf.refresh_marks(now, oldest_snapshot);
            found |= cf.debt.due;
        }
        if found {
            self.background.wake(state);
        }
    }

    fn next_job(&self, state: &mut DbState, lane: Lane) -> Option<Job> {
        if lane == Lane::Upkeep {
            return self.next_upkeep(state);
        }
        if state.background_error.is_some() {
            return None;
        }
        match lane {
            Lane::Upkeep => None,
            Lane::Flush => flush_job::pick(state, self.ctx.options.atomic_flush).map(Job::Flush),
            Lane::Compaction if state.paused > 0 => None,
            Lane::Compaction => self.next_compaction(state),
        }
    }

    /// Short work comes first. Purging is ahead of making memory ready: the memory of memtables that are gone is what those to
    /// come get.
    fn next_upkeep(&self, state: &mut DbState) -> Option<Job> {
        if !self.background.requests.passed.lock().is_empty() {
            return Some(Job::DropPassed);
        }
        let may_purge = state.purge_wanted && state.deletions_disabled == 0;
        if may_purge
            || state.column_families.values().any(|cf| !cf.retired.is_empty())
            || !state.released.is_empty()
        {
            return Some(Job::Purge);
        }
        if let Some(cache) = self.background.requests.caches.lock().pop() {
            return Some(Job::PrepareSlabs(cache));
        }
        while let Some((memtable, ahead)) = state.memory_wanted.pop() {
            if let Some(memtable) = memtable.upgrade() {
                return Some(Job::MakeResident(memtable, ahead));
            }
        }
        state.memtables_wanted.pop().map(Job::PrepareMemtable)
    }

    fn next_compaction(&self, state: &mut DbState) -> Option<Job> {
        loop {
            match manual::pick(state, self.ctx.options.max_subcompactions) {
                ManualPick::Run(request, job) => {
                    start_compaction(state, &job);
                    return Some(Job::Compaction(job, Some(request)));
                }
                ManualPick::Finished => {
                    self.state_changed.notify_all();
                }
                ManualPick::Nothing => break,
            }
        }
        let may_start = |cf: &&CfState| {
            let held_back = || state.manual.iter().any(|request| request.holds_back(cf.cf.id()));
            cf.debt.due && cf.ingesting == 0 && !held_back()
        };
        let job = state.column_families.values().filter(may_start).find_map(|cf| {
            let options = cf.cf.options.load();
            let compaction = pick::pick(&cf.pick_input(&options))?;
            Some(CompactionJob::new(compaction, cf, self.ctx.options.max_subcompactions))
        })?;
        start_compaction(state, &job);
        Some(Job::Compaction(job, None))
    }

    fn do_flush(&self, job: FlushJob) {
        let result = caught("flush", || self.run_flush(&job));
        let mut state = self.state.lock();
        state.running_flushes -= 1;
        // Without the column family that was dropped under them, the others are flushed all the same.
        let again = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::ColumnFamilyDropped);
        for part in &job.parts {
            if let Some(cf) = state.column_families.get_mut(&part.cf.id()) {
                cf.flush_running = false;
                cf.flush_requested |= again && !cf.sealed.is_empty();
            }
        }
        if let Err(error) = result {
            self.job_failed(&mut state, "flush", &error);
        }
        self.job_ended(&mut state);
    }

    fn do_compaction(&self, job: CompactionJob, manual: Option<Arc<ManualCompaction>>) {
        let result = caught("compaction", || self.run_compaction(&job).map(drop));
        let mut state = self.state.lock();
        if let Err(error) = &result {
            self.job_failed(&mut state, "compaction", error);
        }
        if let Some(request) = manual {
            request.finish(result);
        }
        self.end_compaction(&mut state, &job);
    }

    /// Undoes [`start_compaction`]: other jobs may have the tables that are left.
    pub fn end_compaction(&self, state: &mut DbState, job: &CompactionJob) {
        state.running_compactions -= 1;
        job.compaction.unmark();
        if let Some(cf) = state.column_families.get_mut(&job.cf.id()) {
            if let Some(index) = cf.running.iter().position(|running| *running == job.running) {
                cf.running.swap_remove(index);
            }
            cf.refresh_debt();
        }
        self.job_ended(state);
    }

    /// A failed job stops writes: going on would let memtables or L0 grow without end, or build on a table
    /// that is corrupt.
    pub fn job_failed(&self, state: &mut DbState, what: &str, error: &Error) {
        log_line!(self.ctx, "{what} failed: {error}");
        if error.kind() != ErrorKind::ShutdownInProgress && error.kind() != ErrorKind::ColumnFamilyDropped {
            self.set_background_error(state, error.clone());
        }
    }

    fn job_ended(&self, state: &mut DbState) {
        self.stall.update(state);
        self.background.wake(state);
        self.state_changed.notify_all();
    }
}

/// Runs a job; a panic in it becomes its error, so that nobody waits for ever for its end.
pub fn caught<T>(what: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the job shares is behind locks that do not poison, and is left consistent between their holds.
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| Err(panicked(what, &*panic)))
}

/// The error of `what`, which ended by `panic`.
#[cold]
pub fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::new(ErrorKind::Aborted, format!("{what} panicked: {text}"))
}

/// Takes the inputs of `job`, which the caller runs and hands to `end_compaction`.
pub fn start_compaction(state: &mut DbState, job: &CompactionJob) {
    job.compaction.mark();
    state.running_compactions += 1;
    if let Some(cf) = state.column_families.get_mut(&job.cf.id()) {
        cf.running.push(job.running.clone());
        cf.refresh_debt();
    }
}
