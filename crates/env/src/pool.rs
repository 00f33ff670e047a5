//! Threads that read, where io_uring is refused: results are sent through a channel.
//!
//! A process that was forked has none of these threads: it starts its own, and leaves alone what the parent had asked for.

use crate::file_system::ReadFile;
use crate::process_id;
use outcrop_base::Result;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// How many.
const POOL_THREADS: usize = 8;

/// A read that a thread of the pool does.
struct Job {
    file: Arc<dyn ReadFile>,
    offset: u64,
    buf: Vec<u8>,
    done: Sender<(Vec<u8>, Result<()>)>,
}

/// The pool of a process.
struct PerProcess {
    process: u32,
    /// `None` if no thread could be started.
    pool: Option<Arc<Pool>>,
    /// That of a process forked from this one.
    child: OnceLock<Box<PerProcess>>,
}

impl PerProcess {
    fn new() -> PerProcess {
        PerProcess { process: process_id(), pool: Pool::started(), child: OnceLock::new() }
    }
}

/// Threads that read, for the life of the process.
#[derive(Default)]
pub struct Pool {
    jobs: Mutex<VecDeque<Job>>,
    changed: Condvar,
}

impl Pool {
    /// The pool of this process; `None` if no thread could be started.
    pub fn get() -> Option<&'static Arc<Pool>> {
        static FIRST: OnceLock<PerProcess> = OnceLock::new();
        let process = process_id();
        let mut of = FIRST.get_or_init(PerProcess::new);
        while of.process != process {
            of = of.child.get_or_init(|| Box::new(PerProcess::new()));
        }
        of.pool.as_ref()
    }

    /// A pool with its threads.
    fn started() -> Option<Arc<Pool>> {
        let pool: Arc<Pool> = Arc::default();
        let started = (0..POOL_THREADS).filter(|_| {
            let pool = pool.clone();
            std::thread::Builder::new().name("outcrop:read".into()).spawn(move || pool.work()).is_ok()
        });
        (started.count() > 0).then_some(pool)
    }

    /// Lets a thread fill `buf` from `offset`; it sends the buffer back with how it went.
    pub fn read(
        &self,
        file: Arc<dyn ReadFile>,
        offset: u64,
        buf: Vec<u8>,
    ) -> Receiver<(Vec<u8>, Result<()>)> {
        let (done, receiver) = channel();
        let job = Job { file, offset, buf, done };
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
        self.changed.notify_one();
        receiver
    }

    fn work(&self) {
        loop {
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let Job { file, offset, mut buf, done } = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            let result = file.read_exact_at(offset, &mut buf);
            // A caller that does not wait any more does not want it.
            let _ = done.send((buf, result));
        }
    }
}
