//! Thread creation.

use outcrop_base::Result;

/// What a spawned thread runs.
pub type Task = Box<dyn FnOnce() + Send + 'static>;

/// A running thread.
pub trait JoinHandle: Send {
    /// Waits for the thread to end. A panic in it is an error naming the thread.
    fn join(self: Box<Self>) -> Result<()>;
}

/// Creates threads.
pub trait Threads: Send + Sync {
    /// Runs `task` on a new thread called `name` (cut to 15 bytes by Linux).
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>>;

    /// Processors this process may use.
    fn parallelism(&self) -> usize;
}
