//! Locks and atomics of the files that `models/` compiles against loom, which replaces this module.

pub use parking_lot::{Condvar, Mutex};
pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU32, Ordering};

/// Looks at something that changes soon, before a thread falls asleep: some microseconds.
pub const SPINS: u32 = 200;

/// Small writes of a writer's turn, while others wait patiently. Longer turns move the memtable's memory between processors
/// less often; so few as one in a hundred writes should have to wait.
pub const TURN: u32 = 200;
