//! Threads that all databases of one [`crate::Env`] share.
//!
//! ```text
//! worker (a database) -- wake(lane) --> ready queue of the lane --> a thread asks it for its next job, and runs that
//! ```
//! A lane is a kind of work with threads of its own, so that a flush never waits for a compaction, of whatever database.
//! Threads are started when there is more to look at than threads that wait, up to the limit of the lane; the first of each
//! lane but that for resuming is there as soon as a database is, and all end with the last. Databases that are ready take turns.
//!
//! A worker is in the queue of a lane once at most. After it gave a job it is put at the end again: it may have more, for
//! another thread.
//!
//! Concurrency: one lock for everything here, never held while a worker is asked or works. [`Membership::wake`] takes it only
//! if the worker is not in the queue. A worker may hold its own locks while it wakes.
//!
//! A process that was forked has none of these threads: it starts with an empty set, and what the parent had there is left
//! alone, as its locks may be held by threads that are not here.

use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::sys;
use crate::threads::{JoinHandle, Threads};
use outcrop_base::Result;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// A kind of work.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::scheduler::Lane;
/// # use outcrop::Env;
///
/// let env = Env::memory();
/// env.scheduler.set_limit(Lane::Compaction, 4);
/// assert_eq!(env.scheduler.limit(Lane::Compaction), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Lane {
    /// Writing memtables to tables. RocksDB's pool of high priority.
    Flush,
    /// Merging tables. RocksDB's pool of low priority.
    Compaction,
    /// Slow work that nobody waits for, and what time alone makes due.
    Upkeep,
    /// Bringing databases back after errors. Has no thread before there is something to do.
    Resume,
}

const LANES: [Lane; 4] = [Lane::Flush, Lane::Compaction, Lane::Upkeep, Lane::Resume];
/// Threads for upkeep, however many databases there are.
const UPKEEP_THREADS: usize = 2;
/// Databases that are brought back at the same time.
const RESUME_THREADS: usize = 4;

impl Lane {
    fn thread_name(self) -> &'static str {
        match self {
            Lane::Flush => "outcrop:high",
            Lane::Compaction => "outcrop:low",
            Lane::Upkeep => "outcrop:upkeep",
            Lane::Resume => "outcrop:resume",
        }
    }
}

/// A job that a worker has taken and a thread is to run.
pub type Job = Box<dyn FnOnce() + Send>;

/// A source of work for the threads: a database.
pub trait Worker: Send + Sync {
    /// Takes the next job of `lane`; `None` if there is none, or as many run as may.
    fn next_job(self: Arc<Self>, lane: Lane) -> Option<Job>;

    /// How long until [`Lane::Upkeep`] has something to look at though nobody wakes it. Takes no locks.
    fn next_check(&self) -> Duration;
}

/// How many threads a worker would use at once.
#[derive(Clone, Copy, Debug)]
pub struct WantedThreads {
    /// For [`Lane::Flush`].
    pub flushes: usize,
    /// For [`Lane::Compaction`].
    pub compactions: usize,
}

/// The background threads that the databases of an [`Env`](crate::Env) share, in lanes.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::{Env, Scheduler};
/// # use outcrop::scheduler::Lane;
///
/// let env = Env::memory();
/// let threads: &Scheduler = &env.scheduler;
/// threads.set_limit(Lane::Flush, 2);
/// assert_eq!(threads.limit(Lane::Flush), 2);
/// ```
pub struct Scheduler {
    first: PerProcess,
}

/// The pools of threads of one process.
struct PerProcess {
    process: u32,
    pools: Arc<Pools>,
    /// That of a process forked from this one.
    child: OnceLock<Box<PerProcess>>,
}

#[derive(Default)]
struct Pools {
    inner: Mutex<Inner>,
    /// Signalled when a worker is put into the queue of a lane, or threads are to end.
    ready: [Condvar; LANES.len()],
    /// Signalled when a thread is done with a worker that leaves.
    done: Condvar,
}

#[derive(Default)]
struct Inner {
    lanes: [Threadlist; LANES.len()],
    members: Vec<Arc<Member>>,
    /// Threads of an earlier generation end.
    generation: u64,
    handles: Vec<Box<dyn JoinHandle>>,
}

/// The threads of a lane.
#[derive(Default)]
struct Threadlist {
    /// As many as may run.
    limit: usize,
    running: usize,
    /// Of them, those that wait.
    idle: usize,
    lowered: Lowered,
    queue: VecDeque<Arc<Member>>,
    /// Those that run.
    threads: Vec<Arc<Thread>>,
}

/// One thread. Relaxed: for those who want to know.
#[derive(Default)]
struct Thread {
    /// The system's number of it; 0 until it runs.
    id: AtomicU64,
    /// When it began the job that it works on, in nanoseconds of the system's monotonic clock; 0: on none.
    since: AtomicU64,
}

/// A background thread, and whether it works.
///
/// ```
/// # use outcrop_env as outcrop;
/// # use outcrop::Env;
/// use outcrop::scheduler::ThreadStatus;
///
/// // There are none as long as nobody needs them.
/// let threads: Vec<ThreadStatus> = Env::memory().scheduler.thread_list();
/// assert!(threads.is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStatus {
    /// The system's number of it; 0 if it was started just now.
    pub id: u64,
    /// The kind of its work.
    pub lane: Lane,
    /// How long it has worked on its job, in microseconds; `None`: it waits for one.
    pub busy_micros: Option<u64>,
}

/// Which priorities of a lane's threads are lowered. They are never raised again, which the system does not allow.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Lowered {
    cpu: bool,
    io: bool,
}

impl Lowered {
    /// Lowers the priorities of the calling thread that are not as low `as_yet`.
    fn apply(self, as_yet: Lowered) {
        if self.cpu && !as_yet.cpu {
            sys::lower_cpu_priority();
        }
        if self.io && !as_yet.io {
            sys::lower_io_priority();
        }
    }
}

struct Member {
    worker: Weak<dyn Worker>,
    threads: Arc<dyn Threads>,
    /// By lane: it is in the queue. Acquire and release: a thread clears it before it asks the worker, so that whoever finds it
    /// set knows that what he did before will be seen.
    queued: [AtomicBool; LANES.len()],
    state: Mutex<MemberState>,
}

#[derive(Default)]
struct MemberState {
    /// Threads that ask it or work for it.
    busy: usize,
    left: bool,
}

/// A worker's place among others.
pub struct Membership {
    process: u32,
    pools: Arc<Pools>,
    member: Arc<Member>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Panics of workers are caught with nothing locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler { first: PerProcess::new() }
    }
}

impl PerProcess {
    fn new() -> PerProcess {
        PerProcess { process: std::process::id(), pools: Arc::default(), child: OnceLock::new() }
    }
}

impl Scheduler {
    fn here(&self) -> &PerProcess {
        let process = std::process::id();
        let mut of = &self.first;
        while of.process != process {
            of = of.child.get_or_init(|| Box::new(PerProcess::new()));
        }
        of
    }

    /// Takes `worker` in: from now on it can be woken. `threads` starts threads for it, of which there may be as many as
    /// `wanted` from now on.
    ///
    /// # Errors
    /// The error of starting the first thread of a lane; `worker` is not taken in then.
    #[doc(hidden)]
    pub fn join(
        &self,
        worker: Weak<dyn Worker>,
        threads: Arc<dyn Threads>,
        wanted: WantedThreads,
    ) -> Result<Membership> {
        let here = self.here();
        let member =
            Arc::new(Member { worker, threads, queued: Default::default(), state: Mutex::default() });
        let mut inner = lock(&here.pools.inner);
        for (lane, wanted) in [
            (Lane::Flush, wanted.flushes),
            (Lane::Compaction, wanted.compactions),
            (Lane::Upkeep, UPKEEP_THREADS.min(inner.members.len() + 1)),
            (Lane::Resume, RESUME_THREADS),
        ] {
            let list = &mut inner.lanes[lane as usize];
            list.limit = list.limit.max(wanted).max(1);
            if list.running == 0 && lane != Lane::Resume {
                here.pools.start_thread(&mut inner, lane, &*member.threads)?;
            }
        }
        inner.members.push(member.clone());
        drop(inner);
        let membership = Membership { process: here.process, pools: here.pools.clone(), member };
        // Upkeep learns when to look at it.
        membership.wake(Lane::Upkeep);
        Ok(membership)
    }

    /// How many threads `lane` may have.
    pub fn limit(&self, lane: Lane) -> usize {
        lock(&self.here().pools.inner).lanes[lane as usize].limit.max(1)
    }

    /// Lets `lane` have so many threads, at least one. Those that are too many end after what they do. A database that joins
    /// later can raise it.
    pub fn set_limit(&self, lane: Lane, threads: usize) {
        let pools = &self.here().pools;
        lock(&pools.inner).lanes[lane as usize].limit = threads.max(1);
        pools.ready[lane as usize].notify_all();
    }

    /// Lets `lane` have so many threads, if it may not have more already.
    pub fn raise_limit(&self, lane: Lane, threads: usize) {
        let pools = &self.here().pools;
        let list = &mut lock(&pools.inner).lanes[lane as usize];
        list.limit = list.limit.max(threads);
    }

    /// Lets threads of other priorities have the processor before those of `lane`, from their next jobs on. There is no way
    /// back: it holds as long as the environment lives. Source: RocksDB `Env::LowerThreadPoolCPUPriority`.
    pub fn lower_cpu_priority(&self, lane: Lane) {
        lock(&self.here().pools.inner).lanes[lane as usize].lowered.cpu = true;
    }

    /// The same of reads and writes: they wait until nobody else uses the device, where the system's scheduler of IO knows priorities.
    /// Source: RocksDB `Env::LowerThreadPoolIOPriority`.
    pub fn lower_io_priority(&self, lane: Lane) {
        lock(&self.here().pools.inner).lanes[lane as usize].lowered.io = true;
    }

    /// The threads that there are, lane by lane. Source: RocksDB `Env::GetThreadList`.
    pub fn thread_list(&self) -> Vec<ThreadStatus> {
        let now = sys::monotonic_nanos();
        let inner = lock(&self.here().pools.inner);
        let busy = |thread: &Thread| match thread.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(now.saturating_sub(since) / 1000),
        };
        let of = |lane: Lane| {
            let threads = inner.lanes[lane as usize].threads.iter();
            threads.map(move |thread| {
                let id = thread.id.load(Ordering::Relaxed);
                ThreadStatus { id, lane, busy_micros: busy(thread) }
            })
        };
        LANES.into_iter().flat_map(of).collect()
    }

    /// Databases that wait for a thread of `lane`. Source: RocksDB `Env::GetThreadPoolQueueLen`, which counts jobs.
    pub fn waiting(&self, lane: Lane) -> usize {
        lock(&self.here().pools.inner).lanes[lane as usize].queue.len()
    }

    /// Threads that there are in `lane`.
    pub fn threads(&self, lane: Lane) -> usize {
        lock(&self.here().pools.inner).lanes[lane as usize].running
    }
}

impl Membership {
    /// Has a thread of `lane` ask for the next job. The thread sees everything that the caller did before.
    #[inline]
    pub fn wake(&self, lane: Lane) {
        // AcqRel: see the field.
        if !self.member.queued[lane as usize].swap(true, Ordering::AcqRel) {
            self.enqueue(lane);
        }
    }

    fn enqueue(&self, lane: Lane) {
        if self.process == std::process::id() {
            self.pools.enqueue(&self.member, lane);
        }
    }

    /// Ends the membership: returns when no thread works for the worker any more, and none will again. After the last one
    /// all threads are gone. Not to be called by a job.
    pub fn leave(&self) {
        if self.process != std::process::id() {
            return;
        }
        let mut inner = lock(&self.pools.inner);
        lock(&self.member.state).left = true;
        inner.members.retain(|member| !Arc::ptr_eq(member, &self.member));
        for list in &mut inner.lanes {
            list.queue.retain(|member| !Arc::ptr_eq(member, &self.member));
        }
        while lock(&self.member.state).busy > 0 {
            inner = self.pools.done.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if !inner.members.is_empty() {
            return;
        }
        inner.generation += 1;
        for list in &mut inner.lanes {
            (list.running, list.idle) = (0, 0);
            list.threads.clear();
        }
        let handles = std::mem::take(&mut inner.handles);
        drop(inner);
        self.pools.ready.iter().for_each(Condvar::notify_all);
        for handle in handles {
            // A panic there was already reported by the panic hook.
            let _ = handle.join();
        }
    }

    /// True until [`Membership::leave`].
    pub fn is_member(&self) -> bool {
        !lock(&self.member.state).left
    }
}

impl Pools {
    fn enqueue(self: &Arc<Self>, member: &Arc<Member>, lane: Lane) {
        let mut inner = lock(&self.inner);
        if lock(&member.state).left {
            return;
        }
        let list = &mut inner.lanes[lane as usize];
        list.queue.push_back(member.clone());
        if list.queue.len() > list.idle && list.running < list.limit {
            let started = self.start_thread(&mut inner, lane, &*member.threads);
            let list = &mut inner.lanes[lane as usize];
            if started.is_err() && list.running == 0 {
                // Nobody would come for it; the next to wake it tries again.
                list.queue.pop_back();
                member.queued[lane as usize].store(false, Ordering::Release);
            }
        }
        drop(inner);
        self.ready[lane as usize].notify_one();
    }

    fn start_thread(self: &Arc<Self>, inner: &mut Inner, lane: Lane, threads: &dyn Threads) -> Result<()> {
        let (pools, generation) = (self.clone(), inner.generation);
        let own = Arc::new(Thread::default());
        let thread = own.clone();
        let work = move || pools.work(lane, generation, &own);
        let handle = threads.spawn(lane.thread_name(), Box::new(work))?;
        inner.handles.push(handle);
        inner.lanes[lane as usize].threads.push(thread);
        inner.lanes[lane as usize].running += 1;
        Ok(())
    }

    /// The life of a thread.
    fn work(self: Arc<Self>, lane: Lane, generation: u64, own: &Arc<Thread>) {
        own.id.store(sys::thread_id(), Ordering::Relaxed);
        let mut inner = lock(&self.inner);
        let mut as_yet = Lowered::default();
        loop {
            if inner.generation != generation {
                return;
            }
            let list = &mut inner.lanes[lane as usize];
            if let Some(member) = list.queue.pop_front() {
                lock(&member.state).busy += 1;
                let lowered = list.lowered;
                drop(inner);
                lowered.apply(as_yet);
                as_yet = lowered;
                self.work_for(&member, lane, own);
                inner = lock(&self.inner);
                lock(&member.state).busy -= 1;
                self.done.notify_all();
                continue;
            }
            if list.running > list.limit {
                list.running -= 1;
                list.threads.retain(|thread| !Arc::ptr_eq(thread, own));
                return;
            }
            inner = self.wait(inner, lane);
        }
    }

    /// Runs the next job of `member`, if it has one.
    fn work_for(self: &Arc<Self>, member: &Arc<Member>, lane: Lane, own: &Thread) {
        // AcqRel: see the field.
        member.queued[lane as usize].swap(false, Ordering::AcqRel);
        let Some(worker) = member.worker.upgrade() else { return };
        // A worker deals with the panics of its jobs; one that does not takes no thread from others.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let Some(job) = worker.next_job(lane) else { return };
            if !member.queued[lane as usize].swap(true, Ordering::AcqRel) {
                self.enqueue(member, lane);
            }
            own.since.store(sys::monotonic_nanos().max(1), Ordering::Relaxed);
            job();
        }));
        own.since.store(0, Ordering::Relaxed);
    }

    /// Waits until there may be something to do.
    fn wait<'i>(&self, mut inner: MutexGuard<'i, Inner>, lane: Lane) -> MutexGuard<'i, Inner> {
        let ready = &self.ready[lane as usize];
        let longest = if lane == Lane::Upkeep { put_due_in_queue(&mut inner) } else { None };
        if longest == Some(Duration::ZERO) {
            return inner;
        }
        let generation = inner.generation;
        inner.lanes[lane as usize].idle += 1;
        inner = match longest {
            None => ready.wait(inner).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => ready.wait_timeout(inner, longest).unwrap_or_else(PoisonError::into_inner).0,
        };
        if inner.generation == generation {
            inner.lanes[lane as usize].idle -= 1;
        }
        inner
    }
}

/// Puts those for which time has come into the queue for upkeep; gives how long until the next is due, zero if one is.
fn put_due_in_queue(inner: &mut Inner) -> Option<Duration> {
    let mut shortest = None;
    for member in &inner.members {
        let Some(worker) = member.worker.upgrade() else { continue };
        let wait = worker.next_check();
        if wait.is_zero() {
            if member.queued[Lane::Upkeep as usize].swap(true, Ordering::AcqRel) {
                // The thread that set it puts it there and tells, once it gets the lock; or a thread is about to
                // ask it.
                continue;
            }
            inner.lanes[Lane::Upkeep as usize].queue.push_back(member.clone());
        }
        shortest = Some(shortest.map_or(wait, |shortest: Duration| shortest.min(wait)));
    }
    shortest
}

#[cfg(test)]
mod tests;
