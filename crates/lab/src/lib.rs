//! The performance laboratory.
//!
//! It meets every engine through RocksDB's C API, in a child process, and imports no engine crate.
//! Next: `reference.rs` for where other engines come from.
#![forbid(unsafe_code)]

pub mod reference;
