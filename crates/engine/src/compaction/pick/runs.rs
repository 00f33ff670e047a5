//! The sorted runs that universal compaction merges.

use super::input::{Files, PickInput};
use crate::compaction::level_shape::usable_levels;

/// Tables that are sorted and do not overlap: one of L0, or a whole level below.
pub struct SortedRun {
    /// Their level.
    pub level: usize,
    /// The tables.
    pub files: Files,
    /// Bytes of all of them.
    pub size: u64,
    /// Another job has one of them.
    pub busy: bool,
}

impl SortedRun {
    fn new(input: &PickInput<'_>, level: usize, files: Files) -> SortedRun {
        let size = files.iter().map(|file| file.size).sum();
        SortedRun { level, busy: input.any_busy(&files), size, files }
    }
}

/// All sorted runs, newest first. A last level kept for what is ingested behind is none of them.
pub fn sorted_runs(input: &PickInput<'_>) -> Vec<SortedRun> {
    let version = input.version;
    let usable = &version.levels[..usable_levels(version, input.options)];
    let newest = version.levels[0].files.iter().map(|file| SortedRun::new(input, 0, vec![file.clone()]));
    let levels = usable.iter().enumerate().skip(1).filter(|(_, level)| !level.files.is_empty());
    newest.chain(levels.map(|(number, level)| SortedRun::new(input, number, level.files.to_vec()))).collect()
}
