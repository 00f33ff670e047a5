//! Time.

use std::time::Duration;

/// Wall time, monotonic time and sleeping.
pub trait Clock: Send + Sync {
    /// Microseconds since the Unix epoch. May jump.
    fn now_micros(&self) -> u64;

    /// Nanoseconds since an arbitrary fixed point. Never goes back.
    fn monotonic_nanos(&self) -> u64;

    /// Blocks the calling thread for `duration`.
    fn sleep(&self, duration: Duration);
}
