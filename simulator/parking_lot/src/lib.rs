//! Locks, threads and time of a simulation: one thread runs at a time, and a seed decides which is next.
//!
//! The engine takes its locks from the crate `parking_lot`; the simulator's workspace patches this one in for it, so that the
//! engine is compiled unchanged. `world.rs` is the scheduler, the rest is the part of `parking_lot` that the engine uses, and in
//! `poisoning` the same under the interface of the standard library.
//!
//! Invariant: the state of a lock changes only in the thread that runs, so that plain loads and stores do. Threads outside of the
//! simulation, before it begins, have the locks to themselves.

mod condvar;
mod mutex;
pub mod poisoning;
mod rwlock;
pub mod world;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
