//! Locks of the threads that databases share: the standard library's, which a forked child finds as they were. The simulator
//! (`simulator/`), which decides who gets a lock, replaces them as it does those of `parking_lot`.

#[cfg(not(simulated))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(simulated)]
pub use parking_lot::poisoning::{Condvar, Mutex, MutexGuard};
