//! A mutex.

use crate::world;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// As `parking_lot::Mutex`; taking it is a step.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through guards, of which there is one at a time.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// The locked value.
pub struct MutexGuard<'a, T: ?Sized> {
    pub(crate) mutex: &'a Mutex<T>,
    _not_send: std::marker::PhantomData<*const ()>,
}

// SAFETY: a shared guard gives a shared value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// Free.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until it is free, and takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        world::step();
        self.lock_now()
    }

    /// The same, without a step before.
    #[track_caller]
    pub(crate) fn lock_now(&self) -> MutexGuard<'_, T> {
        while self.locked.swap(true, Ordering::Acquire) {
            world::wait(self.key(), None);
        }
        MutexGuard { mutex: self, _not_send: std::marker::PhantomData }
    }

    /// Takes it if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        world::step();
        (!self.locked.swap(true, Ordering::Acquire))
            .then(|| MutexGuard { mutex: self, _not_send: std::marker::PhantomData })
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.locked) as usize
    }

    pub(crate) fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
        world::wake_all(self.key());
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Frees the lock while `act` runs.
    #[track_caller]
    pub fn unlocked<R>(guard: &mut MutexGuard<'a, T>, act: impl FnOnce() -> R) -> R {
        guard.mutex.unlock();
        let result = act();
        std::mem::forget(guard.mutex.lock());
        result
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
