//! The line of writers.

#[path = "../../crates/engine/src/write/options.rs"]
pub mod options;

#[path = "../../crates/engine/src/write/group.rs"]
pub mod group;
