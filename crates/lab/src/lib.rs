//! The performance laboratory.
//!
//! ```text
//! experiment (TOML) -> plan -> run: a child per session, sampled by probe -> store (SQLite)
//! store -> results, judged by lab-stats -> show (terminal), site (pages)
//! ```
//! It meets every engine through RocksDB's C API, in a child process, and imports no engine crate.
//! Next: `experiment/mod.rs` for what is asked, `run/mod.rs` for how it is answered, `reference.rs` for where other
//! engines come from.
#![forbid(unsafe_code)]

#[cfg(test)]
mod acceptance;
pub mod adapters;
pub mod built;
pub mod child;
pub mod commands;
pub mod cpu;
pub mod crosscheck;
pub mod data_dir;
pub mod engines;
pub mod experiment;
pub mod fio;
pub mod host;
pub mod import;
pub mod judge;
pub mod labels;
pub mod memory;
pub mod noise;
pub mod options_diff;
pub mod order;
pub mod plan;
pub mod posts;
pub mod probe;
pub mod quick;
pub mod reference;
pub mod restore;
pub mod results;
pub mod run;
pub mod scale;
pub mod show;
pub mod site;
pub mod stalls;
pub mod store;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod text;
pub mod view;
