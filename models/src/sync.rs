//! The product files' `crate::sync`, made of loom's parts.

pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Looks before a thread falls asleep: one, and others may run before it.
pub const SPINS: u32 = 1;

/// Small puts of a turn: two, and another's turn may come before its wait in line is over.
pub const TURN: u32 = 2;

/// Lets others run.
pub fn spin_loop() {
    loom::thread::yield_now();
}

/// A lock with the interface of `parking_lot`, which the memtable's has too.
#[derive(Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// A held lock. Empty only while it waits.
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    held: Option<loom::sync::MutexGuard<'m, T>>,
}

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(self.0.lock().expect("no thread of a model panics")) }
    }

    /// The value inside the lock, which nobody else can hold.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect("no thread of a model panics")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held")
    }
}

/// How a wait ended that [`Condvar::wait_for`] bounds.
pub struct TimedOut;

impl TimedOut {
    /// Always.
    pub fn timed_out(&self) -> bool {
        true
    }
}

/// A condition with the interface of `parking_lot`.
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// A condition.
    #[expect(clippy::new_without_default, reason = "as in parking_lot's use here")]
    pub fn new() -> Condvar {
        Condvar(loom::sync::Condvar::new())
    }

    /// Lets go of the lock until notified.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("held");
        guard.held = Some(self.0.wait(held).expect("no thread of a model panics"));
    }

    /// Lets go of the lock for a time that is over at any moment, whatever its length.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> TimedOut {
        drop(guard.held.take());
        spin_loop();
        guard.held = Some(guard.mutex.0.lock().expect("no thread of a model panics"));
        TimedOut
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// A value that is replaced as a whole: `arc_swap`'s in the product, here a pointer with the orderings it promises. When a
/// value is freed is its own affair, and no part of the models.
pub struct Published<T>(AtomicPtr<T>);

impl<T: Default> Default for Published<T> {
    fn default() -> Published<T> {
        Published(AtomicPtr::new(Box::into_raw(Box::default())))
    }
}

impl<T> Published<T> {
    /// The value published last.
    pub fn load(&self) -> &T {
        // SAFETY: values are freed by nobody.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Replaces the value.
    pub fn publish(&self, value: T) {
        self.0.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel);
    }
}
