//! Load for embedded key-value engines: db_bench's keys, values, operations and rules, on a table of RocksDB's
//! C functions that any library can fill.
//!
//! ```text
//! ffi.rs (functions) -> database.rs, open.rs, tree.rs, multi_get.rs, transactions.rs (safe calls)
//!     -> steps (what threads do) -> StepResult
//! keys.rs, values.rs, rng.rs, mixgraph.rs: which bytes        counters.rs: what the engine says of itself
//! ```
//! The same code drives every engine: an operation costs one indirect call whichever library it goes to.
#![deny(unsafe_code)]

pub mod coarse_histogram;
pub mod counters;
pub mod database;
pub mod db_bench;
#[allow(unsafe_code, reason = "calling C functions is what it is for")]
pub mod ffi;
pub mod keys;
#[allow(unsafe_code, reason = "calling C functions is what it is for")]
mod leveldb;
pub mod mixgraph;
pub mod multi_get;
pub mod open;
pub mod process;
pub mod processor;
pub mod rng;
pub mod steps;
pub mod transactions;
pub mod tree;
pub mod values;

/// The load generator's name where RocksDB's tool prints its version.
pub const VERSION: &str = concat!("outcrop-", env!("CARGO_PKG_VERSION"));

pub use database::Database;
pub use ffi::RocksApi;
pub use open::{OpenOptions, check_options};
pub use process::{is_loaded, preloaded};
pub use steps::{Progress, Step, StepKind, StepResult, run_slice, run_step, run_transactions};
