//! The style that compacts nothing but on request.

use super::input::PickInput;
use super::style::{Manual, Style};
use crate::compaction::Compaction;

/// `CompactionStyle::None`.
pub struct Uncompacted;

impl Style for Uncompacted {
    fn pick(&self, _input: &PickInput<'_>) -> Option<Compaction> {
        None
    }

    fn manual(&self) -> Manual {
        Manual::Nothing
    }
}
