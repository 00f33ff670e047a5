//! Locks of the files that `models/` compiles against loom, which replaces this module.

pub use parking_lot::{Condvar, Mutex};
