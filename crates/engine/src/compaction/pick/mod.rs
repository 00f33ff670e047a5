//! Deciding what to compact: pure functions from a `Version` and the options to a `Compaction`.

pub mod leveled;
