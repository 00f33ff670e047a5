//! The scheduler without any database: which jobs run, on which lane, and when its threads end.

use super::*;
use crate::threads::SystemThreads;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A worker that gives the jobs it was told to, by lane.
#[derive(Default)]
struct ScriptedWorker {
    jobs: Mutex<[VecDeque<Job>; LANES.len()]>,
    checks: AtomicUsize,
    check_now: AtomicBool,
}

impl ScriptedWorker {
    fn add(&self, lane: Lane, job: impl FnOnce() + Send + 'static) {
        lock(&self.jobs)[lane as usize].push_back(Box::new(job));
    }
}

impl Worker for ScriptedWorker {
    fn next_job(self: Arc<Self>, lane: Lane) -> Option<Job> {
        if lane == Lane::Upkeep && self.check_now.swap(false, Ordering::Relaxed) {
            self.checks.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.jobs)[lane as usize].pop_front()
    }

    fn next_check(&self) -> Duration {
        if self.check_now.load(Ordering::Relaxed) { Duration::ZERO } else { Duration::from_millis(1) }
    }
}

fn member(scheduler: &Scheduler, flushes: usize, compactions: usize) -> (Arc<ScriptedWorker>, Membership) {
    let told = Arc::new(ScriptedWorker::default());
    let worker: Arc<dyn Worker> = told.clone();
    let wanted = WantedThreads { flushes, compactions };
    (told, scheduler.join(Arc::downgrade(&worker), Arc::new(SystemThreads), wanted).unwrap())
}

/// A job that says that it began, and ends when told to.
fn held(told: &ScriptedWorker, lane: Lane, began: &Sender<()>) -> Sender<()> {
    let (end, ended): (Sender<()>, Receiver<()>) = channel();
    let began = began.clone();
    told.add(lane, move || {
        began.send(()).unwrap();
        ended.recv().unwrap();
    });
    end
}

#[test]
fn many_share_the_threads_of_one() {
    let scheduler = Scheduler::default();
    let (done, finished) = channel();
    let members: Vec<_> = (0..50).map(|_| member(&scheduler, 1, 1)).collect();
    for lane in [Lane::Flush, Lane::Compaction, Lane::Upkeep] {
        for (told, membership) in &members {
            let done = done.clone();
            told.add(lane, move || done.send(()).unwrap());
            membership.wake(lane);
        }
    }
    for _ in 0..150 {
        finished.recv().unwrap();
    }
    assert_eq!((scheduler.threads(Lane::Flush), scheduler.threads(Lane::Compaction)), (1, 1));
    assert!(scheduler.threads(Lane::Upkeep) <= UPKEEP_THREADS);
    assert_eq!(scheduler.threads(Lane::Resume), 0);
    for (_, membership) in &members {
        membership.leave();
    }
    assert!(LANES.iter().all(|lane| scheduler.threads(*lane) == 0), "threads end with the last database");
}

#[test]
fn threads_say_what_they_do_and_how_many_wait_for_them() {
    let scheduler = Scheduler::default();
    assert!(scheduler.thread_list().is_empty());
    let (told, membership) = member(&scheduler, 1, 1);
    let lanes = |busy: bool| {
        let threads =
            scheduler.thread_list().into_iter().filter(|thread| thread.busy_micros.is_some() == busy);
        threads.map(|thread| thread.lane).collect::<Vec<_>>()
    };
    assert!(scheduler.thread_list().iter().any(|thread| thread.lane == Lane::Flush));
    let (began, begun) = channel();
    let end = held(&told, Lane::Flush, &began);
    membership.wake(Lane::Flush);
    begun.recv().unwrap();
    assert_eq!(lanes(true).iter().filter(|lane| **lane == Lane::Flush).count(), 1);
    assert!(lanes(false).contains(&Lane::Compaction));
    let busy = scheduler.thread_list().into_iter().find(|thread| thread.lane == Lane::Flush).unwrap();
    assert!(busy.id > 0 && busy.busy_micros.is_some());
    // The only thread of the lane is held: whoever is woken waits.
    let (_, other) = member(&scheduler, 1, 1);
    other.wake(Lane::Flush);
    assert!(scheduler.waiting(Lane::Flush) > 0);
    assert_eq!(scheduler.waiting(Lane::Compaction), 0);
    end.send(()).unwrap();
    membership.leave();
    other.leave();
    assert!(scheduler.thread_list().is_empty() && scheduler.waiting(Lane::Flush) == 0);
}

#[test]
fn a_flush_does_not_wait_for_the_compaction_of_another() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 1, 1);
    let (other, of_other) = member(&scheduler, 1, 1);
    let (began, begins) = channel();
    let end = held(&one, Lane::Compaction, &began);
    of_one.wake(Lane::Compaction);
    begins.recv().unwrap();
    let (done, finished) = channel();
    other.add(Lane::Flush, move || done.send(()).unwrap());
    of_other.wake(Lane::Flush);
    finished.recv().unwrap();
    end.send(()).unwrap();
    of_one.leave();
    of_other.leave();
}

#[test]
fn a_lane_has_as_many_threads_as_its_databases_ask_for() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 1, 1);
    let (_, of_other) = member(&scheduler, 1, 3);
    let (began, begins) = channel();
    let ends: Vec<_> = (0..4).map(|_| held(&one, Lane::Compaction, &began)).collect();
    of_one.wake(Lane::Compaction);
    for _ in 0..3 {
        begins.recv().unwrap();
    }
    assert_eq!(scheduler.threads(Lane::Compaction), 3);
    assert!(begins.try_recv().is_err());
    scheduler.raise_limit(Lane::Compaction, 4);
    of_other.wake(Lane::Compaction);
    // The fourth starts, though another one was woken: the first is in the queue.
    begins.recv().unwrap();
    scheduler.set_limit(Lane::Compaction, 1);
    ends.iter().for_each(|end| end.send(()).unwrap());
    of_one.leave();
    of_other.leave();
    assert_eq!(scheduler.limit(Lane::Compaction), 1);
}

#[test]
fn who_leaves_has_no_job_left_running_and_gets_none() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 1, 1);
    let (_other, of_other) = member(&scheduler, 1, 1);
    let (began, begins) = channel();
    let end = held(&one, Lane::Flush, &began);
    of_one.wake(Lane::Flush);
    begins.recv().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| {
            of_one.leave();
            assert!(ended.load(Ordering::Relaxed), "left while a job ran");
        });
        ended.store(true, Ordering::Relaxed);
        end.send(()).unwrap();
        leaving.join().unwrap();
    });
    one.add(Lane::Flush, || panic!("it has left"));
    of_one.wake(Lane::Flush);
    of_other.leave();
    assert!(!of_one.is_member());
}

#[test]
fn a_panic_takes_no_thread() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 1, 1);
    let (done, finished) = channel();
    one.add(Lane::Flush, || panic!("of a worker, expected"));
    one.add(Lane::Flush, move || done.send(()).unwrap());
    of_one.wake(Lane::Flush);
    finished.recv().unwrap();
    of_one.leave();
}

#[test]
fn upkeep_looks_when_time_has_come() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 1, 1);
    for round in 1..4 {
        one.check_now.store(true, Ordering::Relaxed);
        while one.checks.load(Ordering::Relaxed) < round {
            std::thread::yield_now();
        }
    }
    of_one.leave();
}

#[test]
fn wake_ups_are_never_lost() {
    let scheduler = Scheduler::default();
    let (one, of_one) = member(&scheduler, 2, 2);
    let count = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let count = count.clone();
                    one.add(Lane::Flush, move || {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                    of_one.wake(Lane::Flush);
                }
            });
        }
    });
    while count.load(Ordering::Relaxed) < 2000 {
        std::thread::yield_now();
    }
    of_one.leave();
}

/// The nice value of the calling thread, and its class and level of IO.
fn priorities() -> (libc::c_int, libc::c_long) {
    // SAFETY: plain numbers; 0 is the calling thread.
    unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::syscall(libc::SYS_ioprio_get, 1, 0)) }
}

#[test]
fn threads_of_a_lane_can_be_given_a_lower_priority() {
    let scheduler = Scheduler::default();
    let (told, membership) = member(&scheduler, 1, 1);
    let (say, said) = channel();
    let asked = |lane| {
        let say = say.clone();
        told.add(lane, move || say.send(priorities()).unwrap());
        membership.wake(lane);
        said.recv().unwrap()
    };
    let ordinary = priorities();
    assert_eq!(asked(Lane::Compaction), ordinary);
    scheduler.lower_cpu_priority(Lane::Compaction);
    assert_eq!(asked(Lane::Compaction).0, 19, "a thread that there was before");
    scheduler.lower_io_priority(Lane::Compaction);
    assert_eq!(asked(Lane::Compaction), (19, 3 << 13));
    assert_eq!(asked(Lane::Flush), ordinary, "another lane's");
    membership.leave();
    let (told, membership) = member(&scheduler, 1, 1);
    let say = say.clone();
    told.add(Lane::Compaction, move || say.send(priorities()).unwrap());
    membership.wake(Lane::Compaction);
    assert_eq!(said.recv().unwrap(), (19, 3 << 13), "a new thread");
}
