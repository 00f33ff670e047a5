//! The only place that decides what runs next in the background, and on which thread.
//!
//! The threads are those of the environment, which all its databases share (`outcrop_env::scheduler`), in lanes: flushes, so
//! that a long compaction never delays one, compactions, upkeep, which is slow and nobody waits for, and resuming. A quarter
//! of `max_background_jobs`, at least one, may be flushes at once, the others compactions.
//!
//! Order for compaction threads: manual requests, then what the compaction style of any column family wants most.
//! Upkeep lets go of replaced views and dead files, then makes memory ready: for the caches that grow, which readers wait
//! for, ahead of writers in memtables whose memory is not there, and for the memtables to come.
//! Once a second it looks for what time alone makes due: statistics, tables that have come of age or
//! that released snapshots let go, dead files that a reader has let go, and memory that no memtable came for or uses.
//! After a background error nothing starts until it is cleared (`stopping.rs`).

use crate::background_errors::{CompactionPause, Reason, SPACE_POLL, Severity};
use crate::compaction::job::CompactionJob;
use crate::compaction::manual::{self, ManualCompaction, ManualPick};
use crate::compaction::pick;
use crate::db::DbInner;
use crate::flush::job::{self as flush_job, FlushJob};
use crate::obsolete_files::block_caches;
use crate::state::{CfState, DbState};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_cache::{Cache, Keeper};
use outcrop_env::PassedMemory;
use outcrop_env::scheduler::{self, Lane, Membership, WantedThreads, Worker};
use outcrop_memtable::{Ahead, MemTable};
use parking_lot::Mutex;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How often a thread looks for what time alone makes due.
const TIMED_CHECK: Duration = Duration::from_secs(1);

/// What one database has to do with the background threads.
#[derive(Default)]
pub struct Background {
    membership: Arc<OnceLock<Membership>>,
    requests: Arc<Requests>,
    /// What tells of the growth of each cache in use.
    keepers: Mutex<Vec<(Weak<Cache>, Arc<Keeper>)>>,
    /// When the next timed check is due, by the monotonic clock. Set under the state lock.
    next_check_nanos: AtomicU64,
    /// When something that failed is to be tried again, by the monotonic clock; 0: nothing. Set under the state lock.
    next_retry_nanos: AtomicU64,
}

/// What readers and writers ask of upkeep, without the state lock.
#[derive(Default)]
struct Requests {
    /// Those that want memory to grow by.
    caches: Mutex<Vec<Arc<Cache>>>,
    /// Memory to drop.
    passed: Mutex<Vec<PassedMemory>>,
}

/// Threads at most, whatever `max_background_jobs` says: more would wait for each other, and the system has others to
/// run.
const MOST_THREADS: i32 = 256;

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
    /// What time alone makes due.
    TimedCheck,
    /// Whether what failed can be tried again.
    LookForRetry,
    /// Bringing the database back after an error.
    Resume,
}

impl Background {
    /// Lets the threads look for work. Takes the state to show that it is locked.
    pub fn wake(&self, _state: &mut DbState) {
        if let Some(membership) = self.membership.get() {
            membership.wake(Lane::Flush);
            membership.wake(Lane::Compaction);
            membership.wake(Lane::Upkeep);
        }
    }

    /// As [`Background::wake`], for what only upkeep does.
    pub fn wake_upkeep(&self, _state: &mut DbState) {
        self.wake_lane(Lane::Upkeep);
    }

    fn wake_lane(&self, lane: Lane) {
        if let Some(membership) = self.membership.get() {
            membership.wake(lane);
        }
    }

    /// Has upkeep drop `memory`.
    #[inline]
    pub fn let_go(&self, memory: Option<PassedMemory>) {
        if let Some(memory) = memory {
            self.requests.passed.lock().push(memory);
            self.wake_lane(Lane::Upkeep);
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
        let membership = self.membership.clone();
        let keeper: Arc<Keeper> = Arc::new(move || {
            let Some(cache) = growing.upgrade() else { return };
            let mut caches = requests.caches.lock();
            if !caches.iter().any(|waiting| Arc::ptr_eq(waiting, &cache)) {
                caches.push(cache);
            }
            drop(caches);
            if let Some(membership) = membership.get() {
                membership.wake(Lane::Upkeep);
            }
        });
        cache.add_keeper(&keeper);
        keepers.push((Arc::downgrade(cache), keeper));
    }

    /// Drops what [`Background::let_go`] was given.
    pub fn drop_passed(&self) {
        let passed = std::mem::take(&mut *self.requests.passed.lock());
        drop(passed);
    }

    /// Has the threads of the environment work for `db`.
    pub fn start(db: &Arc<DbInner>) -> Result<()> {
        let worker: Arc<dyn Worker> = db.clone();
        let env = &db.ctx.env;
        let wanted = wanted_threads(db.ctx.options.max_background_jobs);
        let membership = env.scheduler.join(Arc::downgrade(&worker), env.threads.clone(), wanted)?;
        // It is started once.
        let _ = db.background.membership.set(membership);
        let caches = block_caches(&db.state.lock());
        caches.iter().for_each(|cache| db.background.keep(cache));
        db.background.wake(&mut db.state.lock());
        Ok(())
    }

    /// True from [`Background::start`] to [`Background::join`].
    pub fn is_running(&self) -> bool {
        self.membership.get().is_some_and(Membership::is_member)
    }

    /// Waits for the jobs to end, and has none start again; the state must say that the database shuts down.
    pub fn join(&self) {
        self.keepers.lock().clear();
        if let Some(membership) = self.membership.get() {
            membership.leave();
        }
    }

    /// Has upkeep look at what failed when time has come. Takes the state to show that it is locked.
    pub fn set_retry(&self, state: &mut DbState) {
        let resume = state.auto_resume.filter(|resume| !resume.running).map(|resume| resume.due_nanos);
        let pause = state.compaction_pause.map(|pause| pause.until_nanos);
        let next = resume.into_iter().chain(pause).min().map_or(0, |nanos| nanos.max(1));
        // Relaxed: set under the state lock; a thread that waits is woken to read it.
        self.next_retry_nanos.store(next, Ordering::Relaxed);
        self.wake_upkeep(state);
    }
}

/// How the jobs of one database are divided. Source: RocksDB `DBImpl::GetBGJobLimits`.
fn wanted_threads(max_background_jobs: i32) -> WantedThreads {
    let jobs = max_background_jobs.clamp(1, MOST_THREADS) as usize;
    let flushes = (jobs / 4).max(1);
    WantedThreads { flushes, compactions: jobs.saturating_sub(flushes).max(1) }
}

impl Worker for DbInner {
    /// A panic outside of a job, as of a comparator that is asked what to compact, stops writes as a failed job does.
    fn next_job(self: Arc<Self>, lane: Lane) -> Option<scheduler::Job> {
        let picked = caught("background work", || Ok(self.pick_job(lane)));
        let job = picked.unwrap_or_else(|error| {
            self.background_work_failed(&error);
            None
        })?;
        Some(Box::new(move || {
            if let Err(error) = caught("background work", || {
                self.do_job(job);
                Ok(())
            }) {
                self.background_work_failed(&error);
            }
        }))
    }

    fn next_check(&self) -> Duration {
        let now = self.ctx.env.clock.monotonic_nanos();
        // Relaxed: whoever changes them wakes upkeep.
        let check = self.background.next_check_nanos.load(Ordering::Relaxed);
        let retry = self.background.next_retry_nanos.load(Ordering::Relaxed);
        let next = if retry == 0 { check } else { check.min(retry) };
        Duration::from_nanos(next.saturating_sub(now))
    }
}

impl DbInner {
    fn do_job(&self, job: Job) {
        match job {
            Job::Flush(job) => self.do_flush(job),
            Job::Compaction(job, manual) => self.do_compaction(job, manual),
            Job::Purge => self.purge_obsolete_files(),
            Job::DropPassed => self.background.drop_passed(),
            Job::PrepareSlabs(cache) => while cache.prepare_slab() {},
            Job::MakeResident(memtable, ahead) => memtable.make_resident(&ahead),
            Job::PrepareMemtable(size) => self.ctx.memtable_pool.prepare(size),
            Job::TimedCheck => self.do_timed_check(),
            Job::LookForRetry => self.look_for_retry(),
            Job::Resume => self.resume_by_itself(),
        }
    }

    fn background_work_failed(&self, error: &Error) {
        self.report_failure(Reason::Write, "background work", error);
        self.job_ended(&mut self.state.lock());
    }

    /// The next job; `None` if there is none now.
    fn pick_job(&self, lane: Lane) -> Option<Job> {
        let mut state = self.state.lock();
        if state.shutting_down {
            return None;
        }
        match lane {
            Lane::Upkeep => self.next_upkeep(&mut state).or_else(|| self.next_timed(&mut state)),
            Lane::Resume => self.next_resume(&mut state).then_some(Job::Resume),
            _ if state.background_error.is_some() => None,
            Lane::Flush if state.running_flushes >= self.wanted_threads().flushes => None,
            Lane::Flush => {
                let atomic = self.ctx.options.atomic_flush || state.resuming;
                flush_job::pick(&mut state, atomic).map(Job::Flush)
            }
            Lane::Compaction if state.pool_compactions >= self.wanted_threads().compactions => None,
            Lane::Compaction if state.paused > 0 => None,
            Lane::Compaction => self.next_compaction(&mut state),
        }
    }

    fn wanted_threads(&self) -> WantedThreads {
        wanted_threads(self.ctx.options.max_background_jobs)
    }

    /// What time has made due.
    fn next_timed(&self, _state: &mut DbState) -> Option<Job> {
        let now = self.ctx.env.clock.monotonic_nanos();
        // Relaxed: set under the state lock, which is held here.
        let retry = self.background.next_retry_nanos.load(Ordering::Relaxed);
        if retry != 0 && retry <= now {
            self.background.next_retry_nanos.store(0, Ordering::Relaxed);
            return Some(Job::LookForRetry);
        }
        if self.background.next_check_nanos.load(Ordering::Relaxed) > now {
            return None;
        }
        let following = now + TIMED_CHECK.as_nanos() as u64;
        self.background.next_check_nanos.store(following, Ordering::Relaxed);
        Some(Job::TimedCheck)
    }

    fn do_timed_check(&self) {
        self.check_marks(&mut self.state.lock());
        self.rest_memory();
        self.dump_stats_if_due();
        self.note_options_if_outdated();
    }

    /// Lets what failed be tried again, if time has come and there is the space for it.
    fn look_for_retry(&self) {
        let now = self.ctx.env.clock.monotonic_nanos();
        let pause = self.state.lock().compaction_pause.filter(|pause| pause.until_nanos <= now);
        let may_go_on = pause.is_some_and(|pause| self.has_space(pause.needed_bytes));
        let mut state = self.state.lock();
        if let Some(pause) = pause.filter(|pause| state.compaction_pause == Some(*pause)) {
            state.compaction_pause = match may_go_on {
                true => None,
                false => Some(CompactionPause { until_nanos: now + SPACE_POLL.as_nanos() as u64, ..pause }),
            };
            self.background.wake(&mut state);
        }
        self.background.set_retry(&mut state);
        if state.auto_resume.is_some_and(|resume| !resume.running && resume.due_nanos <= now) {
            // Set again by whoever takes it; if no thread could be started, it is tried once more.
            let again = now + TIMED_CHECK.as_nanos() as u64;
            self.background.next_retry_nanos.store(again, Ordering::Relaxed);
            self.background.wake_lane(Lane::Resume);
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
                    state.pool_compactions += 1;
                    return Some(Job::Compaction(job, Some(request)));
                }
                ManualPick::Finished => {
                    self.state_changed.notify_all();
                }
                ManualPick::Nothing => break,
            }
        }
        if state.compaction_pause.is_some() {
            return None;
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
        state.pool_compactions += 1;
        Some(Job::Compaction(job, None))
    }

    fn do_flush(&self, job: FlushJob) {
        let result = caught("flush", || self.run_flush(&job));
        // Without the column family that was dropped under them, the others are flushed all the same.
        let again = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::ColumnFamilyDropped);
        if let Err(error) = result {
            self.report_failure(Reason::Flush, "flush", &error);
        }
        let mut state = self.state.lock();
        state.running_flushes -= 1;
        for part in &job.parts {
            if let Some(cf) = state.column_families.get_mut(&part.cf.id()) {
                cf.flush_running = false;
                cf.flush_requested |= again && !cf.sealed.is_empty();
            }
        }
        self.job_ended(&mut state);
    }

    fn do_compaction(&self, job: CompactionJob, manual: Option<Arc<ManualCompaction>>) {
        let result = caught("compaction", || self.run_compaction(&job).map(drop));
        if let Err(error) = &result {
            let severity = self.report_failure(Reason::Compaction, "compaction", error);
            if severity == Some(Severity::Soft) {
                self.pause_compactions(error, job.compaction.input_bytes());
            }
        }
        let mut state = self.state.lock();
        state.pool_compactions -= 1;
        if let Some(request) = manual {
            request.finish(result);
        }
        self.end_compaction(&mut state, &job);
    }

    fn pause_compactions(&self, error: &Error, input_bytes: u64) {
        let now = self.ctx.env.clock.monotonic_nanos();
        let mut state = self.state.lock();
        state.compaction_pause = Some(CompactionPause::after(error, input_bytes, now));
        self.background.set_retry(&mut state);
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
