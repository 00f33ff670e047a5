//! Everything through which nondeterminism enters the engine: files, clocks, randomness, threads.
//!
//! Invariant: no other engine crate calls `std::fs`, `libc`, a clock, a random source or `thread::spawn`; only `capi` calls
//! `libc` besides, for memory that C callers free.
//! This is what lets the fault-injecting file system tell the truth and a seed replay a run.
//! Next: [`FileSystem`], then `posix.rs` and `memory.rs`, which implement it.

mod ahead;
mod batch;
pub mod clock;
mod direct;
pub mod faulty;
pub mod file_system;
mod mapped;
mod mapping;
pub mod memory;
mod observed;
mod output;
mod pool;
pub mod posix;
pub mod random;
pub mod rate_limiter;
#[cfg(all(target_os = "linux", not(miri)))]
mod ring;
pub mod scheduler;
mod sync;
mod sys;
pub mod threads;
mod under_way;
mod write_times;

pub use batch::{BatchRead, batch_reads_by, read_batch};
pub use clock::{Clock, SystemClock};
pub use file_system::{
    Access, Descriptor, DirectIo, FileLock, FileSystem, OpenRead, OpenWrite, ReadFile, RetiredWindow,
    WriteFile,
};
pub use mapping::{Mapping, PAGE, populate, prefetch};
pub use observed::observed;
pub use random::Random;
pub use rate_limiter::{
    Granted, IoKind, IoPriority, Pace, PaceObserver, RateLimiter, RateLimiterMode, RateLimiterOptions,
};
pub use scheduler::Scheduler;
pub use sys::{open_files_limit, thread_id, trim_heap};
pub use threads::Threads;
pub use under_way::PendingRead;
pub use write_times::{WriteNanos, WriteTimes};

use std::sync::{Arc, OnceLock};

/// Files, clock, threads and random numbers as one database sees them. Cloning shares it. Applications choose one of
/// [`Env::posix`] and [`Env::memory`]; the rest is for the crates of this workspace, which bring their own files and
/// clocks.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::Env;
/// # use outcrop::scheduler::Lane;
///
/// // A test's own: nothing reaches the disk, and it is gone with the last clone.
/// let env = Env::memory();
/// // For all databases that are opened with it.
/// env.scheduler.set_limit(Lane::Compaction, 4);
/// ```
#[derive(Clone)]
pub struct Env {
    /// Files and directories.
    #[doc(hidden)]
    pub fs: Arc<dyn FileSystem>,
    /// Wall and monotonic time, and sleeping.
    #[doc(hidden)]
    pub clock: Arc<dyn Clock>,
    /// Randomness: identities, session ids.
    #[doc(hidden)]
    pub random: Arc<dyn Random>,
    /// Thread creation.
    #[doc(hidden)]
    pub threads: Arc<dyn Threads>,
    /// The background threads that the databases opened with it share.
    pub scheduler: Arc<Scheduler>,
}

/// `path` from the root on. Where the working directory is not known, as it is.
pub fn absolute(path: &std::path::Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The number of this process: another one in a process that was forked.
pub fn process_id() -> u32 {
    std::process::id()
}

impl Env {
    /// The operating system. All databases opened with it share background threads, whoever asked for it, and the file system: objects
    /// that several databases share tell file systems apart by their addresses.
    pub fn posix() -> Env {
        static SCHEDULER: OnceLock<Arc<Scheduler>> = OnceLock::new();
        static FILES: OnceLock<Arc<dyn FileSystem>> = OnceLock::new();
        let scheduler = SCHEDULER.get_or_init(Arc::default).clone();
        let files = FILES.get_or_init(|| Arc::new(posix::PosixFs)).clone();
        Env { scheduler, ..Env::with_file_system(files) }
    }

    /// An empty file system in memory; real time and threads.
    pub fn memory() -> Env {
        Env::with_file_system(Arc::new(memory::MemoryFs::new()))
    }

    /// Real time, randomness and threads over `fs`, with background threads of its own.
    #[doc(hidden)]
    pub fn with_file_system(fs: Arc<dyn FileSystem>) -> Env {
        Env {
            fs,
            clock: Arc::new(clock::SystemClock::default()),
            random: Arc::new(random::SystemRandom),
            threads: Arc::new(threads::SystemThreads),
            scheduler: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests;
