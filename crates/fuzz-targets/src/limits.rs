//! The limits of one run: an allocator that counts, and a watch on the time.
//!
//! Concurrency: one thread runs targets; the watching thread only reads which run it is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A run that takes longer is taken to hang. Generous: the machine may be busy and the build unoptimised.
const MOST_TIME: Duration = Duration::from_secs(20);

/// Bytes in use by the process.
static IN_USE: AtomicIsize = AtomicIsize::new(0);
/// Bytes that may be in use now.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Number of the current run; 0 between runs.
static CURRENT: AtomicU64 = AtomicU64::new(0);
/// Number of runs so far.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with a limit while a target runs.
pub struct Counting;

impl Counting {
    fn take(bytes: usize) {
        // Relaxed: a sum; nothing is published through it.
        let now = IN_USE.fetch_add(bytes as isize, Ordering::Relaxed) + bytes as isize;
        if now > LIMIT.load(Ordering::Relaxed) {
            LIMIT.store(isize::MAX, Ordering::Relaxed);
            eprintln!("fuzz: an allocation of {bytes} bytes exceeds what a run may hold");
            std::process::abort();
        }
    }

    fn give(bytes: usize) {
        IN_USE.fetch_sub(bytes as isize, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        Counting::give(layout.size());
        // SAFETY: the caller's promise; the memory came from the system's allocator.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Counting::take(new_size);
        Counting::give(layout.size());
        // SAFETY: the caller's promise; the memory came from the system's allocator.
        unsafe { System.realloc(address, layout, new_size) }
    }
}

/// A run begins that may hold `memory` bytes more than are in use.
pub fn enter(memory: usize) {
    LIMIT.store(IN_USE.load(Ordering::Relaxed) + memory as isize, Ordering::Relaxed);
    CURRENT.store(RUNS.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The run is over.
pub fn leave() {
    CURRENT.store(0, Ordering::Relaxed);
    LIMIT.store(isize::MAX, Ordering::Relaxed);
}

/// Watches, from now on, that no run takes too long.
pub fn watch() {
    std::thread::spawn(|| {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let current = CURRENT.load(Ordering::Relaxed);
            if current != seen || current == 0 {
                (seen, since) = (current, Instant::now());
            } else if since.elapsed() > MOST_TIME {
                eprintln!("fuzz: a run takes longer than {} s", MOST_TIME.as_secs());
                std::process::abort();
            }
        }
    });
}
