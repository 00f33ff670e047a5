//! The line of writers.

/// What of the options decides who can be in one group.
#[derive(Clone, Copy, Default)]
pub struct WriteOptions {
    /// Synced before it returns.
    pub sync: bool,
    /// Past the WAL.
    pub disable_wal: bool,
    /// Fails rather than waits.
    pub no_slowdown: bool,
}

#[path = "../../crates/engine/src/write/group.rs"]
pub mod group;
