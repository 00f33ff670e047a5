//! The same locks under the interface of the standard library, which poisons; these never are.

use std::ops::{Deref, DerefMut};
use std::sync::LockResult;
use std::time::Duration;

/// As `std::sync::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(crate::Mutex<T>);

/// As `std::sync::MutexGuard`.
pub struct MutexGuard<'a, T>(crate::MutexGuard<'a, T>);

/// As `std::sync::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(crate::Condvar);

impl<T> Mutex<T> {
    /// Free.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(crate::Mutex::new(value))
    }

    /// Waits until it is free, and takes it.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(MutexGuard(self.0.lock()))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl Condvar {
    /// Frees the lock, waits to be woken, and takes it again.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(&mut guard.0);
        Ok(guard)
    }

    /// The same, for as long at most.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, crate::WaitTimeoutResult)> {
        let result = self.0.wait_for(&mut guard.0, timeout);
        Ok((guard, result))
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
