//! A condition variable.

use crate::mutex::MutexGuard;
use crate::world;
use std::time::Duration;

/// As `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar {
    // An address of its own.
    place: u8,
}

/// Whether a wait ended because its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// True if it did.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar { place: 0 }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.place) as usize
    }

    /// Frees the lock, waits to be woken, and takes it again.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_until_nanos(guard, None);
    }

    /// The same, for as long at most.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        let until = world::after(timeout);
        WaitTimeoutResult(self.wait_until_nanos(guard, Some(until)))
    }

    #[track_caller]
    fn wait_until_nanos<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, until: Option<u64>) -> bool {
        guard.mutex.unlock();
        // Nobody runs between the two: there is no step.
        let timed_out = world::wait(self.key(), until);
        std::mem::forget(guard.mutex.lock_now());
        timed_out
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) -> bool {
        world::wake_one(self.key());
        true
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) -> usize {
        world::wake_all(self.key());
        0
    }
}
