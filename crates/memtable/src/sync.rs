//! Atomics and the lock of the files that `models/` compiles against loom, which replaces this module.

use arc_swap::ArcSwap;
use std::ops::Deref;
pub use std::sync::MutexGuard;
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// A lock that stays usable after a panic under it: the data inside is consistent at each step.
#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value inside the lock, which nobody else can hold.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that is replaced as a whole, and read without a lock.
#[derive(Default)]
pub struct Published<T>(ArcSwap<T>);

impl<T> Published<T> {
    /// The value published last, for as long as it is looked at.
    pub fn load(&self) -> impl Deref<Target = Arc<T>> {
        self.0.load()
    }

    /// Replaces the value; the last who looks at the old one frees it.
    pub fn publish(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}
