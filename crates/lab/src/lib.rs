//! The performance laboratory.
//!
//! ```text
//! experiment/ (TOML) -> planning/ -> run/: a child per session, sampled by probe/ -> store/ (SQLite)
//! store/ and import/ -> analysis/, judged by lab-stats -> report/: terminal, pages
//! ```
//! The lab meets every engine through RocksDB's C API, in a child process, and imports no engine crate.
//! Next: `commands/mod.rs` for the verbs, `experiment/mod.rs` for what is asked, `run/mod.rs` for how it is answered,
//! `targets/` for where engines come from.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod commands;
pub mod experiment;
pub mod host;
pub mod import;
pub mod planning;
pub mod probe;
pub mod report;
pub mod run;
pub mod store;
pub mod targets;
#[cfg(test)]
mod testing;
