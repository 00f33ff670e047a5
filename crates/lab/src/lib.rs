//! The performance laboratory.
//!
//! ```text
//! quick.rs: plan -> sessions in alternating order -> tables, report
//! worker.rs: one session = one engine, one child process, one sequence of steps
//! ```
//! It meets every engine through RocksDB's C API, in a child process, and imports no engine crate.
//! Next: `session.rs` for what a session is, `reference.rs` for where other engines come from.
#![forbid(unsafe_code)]

pub mod child;
pub mod commands;
pub mod data_dir;
pub mod engines;
pub mod experiment;
pub mod fio;
pub mod host;
pub mod judge;
pub mod labels;
pub mod import;
pub mod memory;
pub mod options_diff;
pub mod plan;
pub mod probe;
pub mod quick;
pub mod reference;
pub mod report;
pub mod restore;
pub mod results;
pub mod run;
pub mod session;
pub mod show;
pub mod site;
pub mod store;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod worker;
