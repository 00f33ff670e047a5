//! Flush: writing sealed memtables into an L0 table.

pub mod decided;
pub mod job;
