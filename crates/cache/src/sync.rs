//! Atomics of the files that `models/` compiles against loom, which replaces this module.

pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
