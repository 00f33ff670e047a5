//! Time.

use crate::sys;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Wall time, monotonic time, CPU time and sleeping.
pub trait Clock: Send + Sync {
    /// Microseconds since the Unix epoch. May jump.
    fn now_micros(&self) -> u64;

    /// Nanoseconds since an arbitrary fixed point. Never goes back.
    fn monotonic_nanos(&self) -> u64;

    /// Nanoseconds of CPU time the calling thread has used.
    fn thread_cpu_nanos(&self) -> u64;

    /// Blocks the calling thread for `duration`.
    fn sleep(&self, duration: Duration);
}

/// The operating system's clocks.
#[derive(Debug, Default)]
pub struct SystemClock(());

impl Clock for SystemClock {
    fn now_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }

    fn monotonic_nanos(&self) -> u64 {
        sys::monotonic_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        sys::thread_cpu_nanos()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that moves only when told to, or when somebody sleeps. For tests.
#[derive(Debug)]
pub struct ManualClock {
    nanos: AtomicU64,
}

impl ManualClock {
    /// A clock standing at `micros` microseconds since the epoch.
    pub fn at(micros: u64) -> ManualClock {
        ManualClock { nanos: AtomicU64::new(micros * 1000) }
    }

    /// Moves on by `duration`.
    pub fn advance(&self, duration: Duration) {
        self.nanos.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed) / 1000
    }

    fn monotonic_nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}
