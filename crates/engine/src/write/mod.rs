//! The write path: one path for put, delete, merge and batch, and one failure rule (`pipeline.rs`).

pub mod contention;
mod counts;
mod early_merge;
pub mod failed_writes;
pub mod group;
pub mod options;
pub mod pipeline;
mod rollback;
mod room;
pub mod stall;
pub mod stall_condition;
mod switch;
pub mod targets;
pub mod two_phase;
pub mod wal;
