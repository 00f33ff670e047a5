//! A lock for one writer or many readers.

use crate::world;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicIsize, Ordering};

/// As `parking_lot::RwLock`; taking it is a step.
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    /// Readers; -1: a writer.
    held: AtomicIsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through guards.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers share the value, a writer has it alone.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// A reader's share.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    _not_send: std::marker::PhantomData<*const ()>,
}

/// The writer's.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    _not_send: std::marker::PhantomData<*const ()>,
}

impl<T> RwLock<T> {
    /// Free.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { held: AtomicIsize::new(0), value: UnsafeCell::new(value) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes, and reads.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        world::step();
        while self
            .held
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |held| (held >= 0).then_some(held + 1))
            .is_err()
        {
            world::wait(self.key(), None);
        }
        RwLockReadGuard { lock: self, _not_send: std::marker::PhantomData }
    }

    /// Waits until nobody else has it, and writes.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        world::step();
        while self.held.compare_exchange(0, -1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            world::wait(self.key(), None);
        }
        RwLockWriteGuard { lock: self, _not_send: std::marker::PhantomData }
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.held) as usize
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: nobody writes.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: nobody else has it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: nobody else has it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        if self.lock.held.fetch_sub(1, Ordering::Release) == 1 {
            world::wake_all(self.lock.key());
        }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(0, Ordering::Release);
        world::wake_all(self.lock.key());
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock")
    }
}
