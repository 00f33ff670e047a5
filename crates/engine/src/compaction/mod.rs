//! Compaction: merging tables into a deeper level, dropping what no reader can see.
//!
//! ```text
//! pick (pure, one file per style) -> run -> inputs: merging_iter -> stream (what may be dropped) -> output (tables) -> install
//!                                     \-> subcompaction: the same for parts of the key range, on threads
//! ```
//! Flush uses the same stream and output with memtables as the input. Callers ask for work of their own in `manual.rs`
//! (`compact_range`) and `requests.rs` (everything else).

pub mod blobs;
mod counts;
pub mod inputs;
pub mod job;
pub mod level_shape;
pub mod manual;
pub mod manual_request;
pub mod marks;
pub mod outcome;
pub mod output;
pub mod pick;
pub mod requests;
pub mod run;
pub mod stamps;
pub mod stream;
pub mod subcompaction;

use outcrop_base::{CfId, Comparator};
use outcrop_manifest::TableFile;
use outcrop_options::CompressionType;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many L0 files.
    L0Files,
    /// A level is over its target size.
    LevelSize,
    /// The newer sorted runs are large against the oldest.
    SizeAmplification,
    /// Neighbouring sorted runs have similar sizes.
    SizeRatio,
    /// Too many sorted runs.
    SortedRuns,
    /// The tables are larger than allowed.
    TotalSize,
    /// The data has reached its `ttl`, and moves on.
    Ttl,
    /// The data has reached its `ttl`, and is deleted.
    DataAge,
    /// Tables that are small enough to be merged before they are deleted.
    SmallTables,
    /// A table has reached its `periodic_compaction_seconds`.
    Periodic,
    /// Snapshots that kept garbage in a table of the last level are gone.
    Bottommost,
    /// A table asked for it, or a caller by `suggest_compact_range`.
    Marked,
    /// The table keeps blob files of which too much is garbage.
    BlobGarbage,
    /// A caller asked for it, and waits.
    Manual,
    /// Moved to another level as they are, for a caller who waits.
    Refit,
}

/// How the inputs are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// They are merged into new tables.
    Merge,
    /// They are relinked into the output level as they are.
    Move,
    /// They are deleted, with the data in them.
    Drop,
}

/// Input tables of one level.
#[derive(Clone)]
pub struct LevelFiles {
    /// Their level.
    pub level: usize,
    /// The tables in the level's order.
    pub files: Vec<Arc<TableFile>>,
}

/// A compaction that was decided: which tables go where.
pub struct Compaction {
    /// Column family.
    pub cf_id: CfId,
    /// Why.
    pub reason: Reason,
    /// Its tables by level, in ascending order; no entry is empty, and there is at least one.
    pub inputs: Vec<LevelFiles>,
    /// Where the outputs go.
    pub output_level: usize,
    /// Tables of the level below the output that overlap it: outputs are cut along their boundaries.
    pub grandparents: Vec<Arc<TableFile>>,
    /// No older data for the key range exists outside the inputs.
    pub bottommost: bool,
    /// How the inputs are processed.
    pub work: Work,
    /// Which path they go to, if the caller says.
    pub path_id: Option<u32>,
    /// Codec of the outputs.
    pub compression: CompressionType,
    /// Size at which outputs are cut, in bytes.
    pub target_file_size: u64,
    /// Overlap with grandparents at which outputs are cut, in bytes.
    pub max_grandparent_overlap: u64,
    /// Where the next round-robin compaction of the start level begins: an internal key.
    pub next_cursor: Option<Vec<u8>>,
}

impl Compaction {
    /// The newest level it takes tables from.
    pub fn start_level(&self) -> usize {
        self.inputs[0].level
    }

    /// All input tables.
    pub fn input_files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.inputs.iter().flat_map(|level| &level.files)
    }

    /// Bytes of all inputs.
    pub fn input_bytes(&self) -> u64 {
        self.input_files().map(|file| file.size).sum()
    }
}

/// The key range that a running compaction writes to a level: tables of it are there once it ends, also between the keys of its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCompaction {
    /// Where its outputs go.
    pub output_level: usize,
    /// Its first user key.
    pub begin: Vec<u8>,
    /// Its last user key.
    pub end: Vec<u8>,
}

impl RunningCompaction {
    /// True if it may write keys from `begin` to `end`, both inclusive, to one of `levels`. False for L0, where tables may overlap.
    pub fn writes(
        &self,
        comparator: &Comparator,
        levels: RangeInclusive<usize>,
        begin: &[u8],
        end: &[u8],
    ) -> bool {
        self.output_level > 0
            && levels.contains(&self.output_level)
            && comparator.compare(&self.begin, end).is_le()
            && comparator.compare(&self.end, begin).is_ge()
    }
}

impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{} -> L{}: inputs", self.start_level(), self.output_level)?;
        for (index, level) in self.inputs.iter().enumerate() {
            if index > 0 {
                f.write_str(" +")?;
            }
            for file in &level.files {
                write!(f, " {}", file.number.0)?;
            }
        }
        write!(f, " [{:?}]", self.reason)?;
        match self.work {
            Work::Merge => {}
            Work::Move => f.write_str(" (move)")?,
            Work::Drop => f.write_str(" (drop)")?,
        }
        if self.bottommost {
            f.write_str(" (bottommost)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_compaction_writes_the_range_of_its_inputs_both_ends_inclusive() {
        let running = RunningCompaction { output_level: 2, begin: b"c".to_vec(), end: b"f".to_vec() };
        let writes = |levels, begin: &str, end: &str| {
            running.writes(&Comparator::Bytewise, levels, begin.as_bytes(), end.as_bytes())
        };
        let all = 0..=6;
        assert!(writes(all.clone(), "a", "c") && writes(all.clone(), "f", "z"));
        assert!(writes(all.clone(), "d", "e") && writes(all.clone(), "a", "z"));
        assert!(!writes(all.clone(), "a", "b") && !writes(all.clone(), "g", "z"));
        assert!(writes(2..=2, "d", "e") && !writes(0..=1, "d", "e") && !writes(3..=6, "d", "e"));
        let within_l0 = RunningCompaction { output_level: 0, ..running.clone() };
        assert!(!within_l0.writes(&Comparator::Bytewise, all, b"d", b"e"));
    }
}
