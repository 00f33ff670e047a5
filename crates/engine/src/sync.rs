//! Locks and atomics of the files that `models/` compiles against loom, which replaces this module.

pub use parking_lot::{Condvar, Mutex};
pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU32, Ordering};

/// Looks at something that changes soon, before a thread falls asleep: some microseconds.
pub const SPINS: u32 = 200;
