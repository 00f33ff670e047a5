//! A compaction style: what it compacts, and when. Facts of it that options and files need are its row in
//! `outcrop_options::styles`.

use super::input::PickInput;
use crate::compaction::Compaction;

/// One per style; `pick::style_of` names them.
pub trait Style: Sync {
    /// The most urgent compaction that can run beside those already running, if any is due.
    fn pick(&self, input: &PickInput<'_>) -> Option<Compaction>;

    /// How far the column family is from the shape the style wants.
    fn debt(&self, input: &PickInput<'_>) -> Debt {
        // A number of runs alone does not make a compaction: only the picker knows whether one is due.
        Debt {
            needs_compaction: self.pick(input).is_some(),
            pending_bytes: 0,
            stall_runs: self.stall_runs(input),
        }
    }

    /// The number that `level0_slowdown_writes_trigger` and `level0_stop_writes_trigger` are compared with.
    fn stall_runs(&self, input: &PickInput<'_>) -> usize {
        input.version.levels[0].files.len()
    }

    /// The meaning of `compact_range`.
    fn manual(&self) -> Manual;
}

/// The part of a column family that `compact_range` compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manual {
    /// The range, level by level, down to the last that has data of it.
    Range,
    /// Everything, whatever the range.
    Everything,
    /// Nothing.
    Nothing,
}

/// How far a column family is from the shape its style wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Some compaction should run.
    pub needs_compaction: bool,
    /// Bytes that compactions must still write, where the style can tell.
    pub pending_bytes: u64,
    /// See [`Style::stall_runs`].
    pub stall_runs: usize,
}
