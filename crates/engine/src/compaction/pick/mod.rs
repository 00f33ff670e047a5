//! Deciding what to compact: pure functions from a `Version` and the options to a `Compaction`.
//!
//! One file per compaction style, each a `Style`; `input.rs` has what they share, this one their list.

pub mod fifo;
mod incremental;
pub mod input;
pub mod leveled;
mod none;
pub mod round_robin;
mod runs;
mod style;
pub mod universal;

#[cfg(test)]
mod tests;

pub use input::{
    Files, PickInput, clean_cut, is_bottommost, key_range, level_files, overlapping, overlapping_range,
    passed, same_codec, sorted_without_overlap,
};

pub use style::{Debt, Manual, Style};

use super::Compaction;
use outcrop_options::CompactionStyle;

/// The style called `style`.
pub fn style_of(style: CompactionStyle) -> &'static dyn Style {
    match style {
        CompactionStyle::Level => &leveled::Leveled,
        CompactionStyle::Universal => &universal::Universal,
        CompactionStyle::Fifo => &fifo::Fifo,
        CompactionStyle::None => &none::Uncompacted,
    }
}

/// See [`Style::pick`].
pub fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    style_of(input.options.compaction_style).pick(input)
}

/// See [`Style::debt`].
pub fn debt(input: &PickInput<'_>) -> Debt {
    style_of(input.options.compaction_style).debt(input)
}
