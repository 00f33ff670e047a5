//! Thread creation.

use outcrop_base::{Error, ErrorKind, Result};

/// The function that a spawned thread runs.
pub type Task = Box<dyn FnOnce() + Send + 'static>;

/// A running thread.
pub trait JoinHandle: Send {
    /// Waits for the thread to end. A panic in it is an error naming the thread. In a forked child, where the thread is not,
    /// returns at once.
    fn join(self: Box<Self>) -> Result<()>;
}

/// Creates threads.
pub trait Threads: Send + Sync {
    /// Runs `task` on a new thread called `name` (cut to 15 bytes by Linux).
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>>;

    /// Processors this process may use.
    fn parallelism(&self) -> usize;
}

/// The operating system's threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemThreads;

struct SystemJoinHandle {
    thread: std::thread::JoinHandle<()>,
    /// The process it runs in.
    process: u32,
}

impl JoinHandle for SystemJoinHandle {
    fn join(self: Box<Self>) -> Result<()> {
        if self.process != std::process::id() {
            // In a child that was forked since there is no such thread, and joining or detaching it is undefined.
            std::mem::forget(self);
            return Ok(());
        }
        let name = self.thread.thread().name().unwrap_or("unnamed").to_string();
        self.thread.join().map_err(|_| Error::new(ErrorKind::Aborted, format!("thread {name} panicked")))
    }
}

impl Threads for SystemThreads {
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        let spawned = std::thread::Builder::new().name(name.to_string()).spawn(task);
        let handle = spawned.map_err(|source| Error::io(format!("spawn thread {name}"), source))?;
        Ok(Box::new(SystemJoinHandle { thread: handle, process: std::process::id() }))
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}
