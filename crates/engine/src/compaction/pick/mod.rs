//! Deciding what to compact: pure functions from a `Version` and the options to a `Compaction`.
//!
//! One file per compaction style; `input.rs` has what they share, this one the dispatch.

pub mod fifo;
pub mod input;
pub mod leveled;
pub mod round_robin;
pub mod universal;

#[cfg(test)]
mod tests;

pub use input::{
    Files, PickInput, clean_cut, is_bottommost, key_range, level_files, overlapping, overlapping_range,
    same_codec, sorted_without_overlap,
};

use super::level_shape::LevelShape;
use super::{Compaction, Reason};
use outcrop_options::CompactionStyle;

/// The most urgent compaction that can run beside those already running, if any is due.
pub fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    match input.options.compaction_style {
        CompactionStyle::Level => leveled::pick(input),
        CompactionStyle::Universal => universal::pick(input),
        CompactionStyle::Fifo => fifo::pick(input),
        CompactionStyle::None => None,
    }
}

/// How far a column family is from the shape its style wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Some compaction should run.
    pub needs_compaction: bool,
    /// Bytes that compactions must still write, where the style can tell.
    pub pending_bytes: u64,
    /// The number that `level0_slowdown_writes_trigger` and `level0_stop_writes_trigger` are compared with: L0
    /// tables, or for universal all sorted runs. FIFO never slows writes.
    pub stall_runs: usize,
}

/// See [`Debt`].
pub fn debt(input: &PickInput<'_>) -> Debt {
    let (version, options) = (input.version, input.options);
    let l0_files = version.levels[0].files.len();
    match options.compaction_style {
        CompactionStyle::Level => {
            let shape = LevelShape::of(version, options);
            let urgent =
                shape.scores(version, options, input.busy).first().is_some_and(|(score, _)| *score >= 1.0);
            Debt {
                needs_compaction: urgent || leveled::pick_marked(input, &shape).is_some(),
                pending_bytes: shape.pending_bytes(version, options),
                stall_runs: l0_files,
            }
        }
        // A number of runs alone does not make a compaction: only the picker knows whether one is due.
        CompactionStyle::Universal => Debt {
            needs_compaction: universal::pick(input).is_some(),
            pending_bytes: 0,
            stall_runs: universal::sorted_runs(input).len(),
        },
        CompactionStyle::Fifo => {
            Debt { needs_compaction: fifo::pick(input).is_some(), pending_bytes: 0, stall_runs: 0 }
        }
        CompactionStyle::None => Debt { needs_compaction: false, pending_bytes: 0, stall_runs: l0_files },
    }
}

/// Everything of the column family into the last level, or back into it: what `compact_range` means where levels are
/// sorted runs. `None` if there is nothing, or a table is busy.
pub fn everything(input: &PickInput<'_>) -> Option<Compaction> {
    let runs = universal::sorted_runs(input);
    if runs.is_empty() { None } else { universal::merge(input, &runs, 0..runs.len(), Reason::Manual) }
}
