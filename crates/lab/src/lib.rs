//! The performance laboratory.
//!
//! ```text
//! quick.rs: plan -> sessions in alternating order -> tables, report
//! worker.rs: one session = one engine, one child process, one sequence of steps
//! ```
//! It meets every engine through RocksDB's C API, in a child process, and imports no engine crate.
//! Next: `session.rs` for what a session is, `reference.rs` for where other engines come from.
#![forbid(unsafe_code)]

pub mod data_dir;
pub mod engines;
pub mod experiment;
pub mod judge;
pub mod import;
pub mod memory;
pub mod plan;
pub mod quick;
pub mod reference;
pub mod report;
pub mod session;
pub mod tables;
pub mod worker;
