//! Compaction: merging tables into the next level, dropping what no reader can see.
//!
//! ```text
//! pick (pure) -> job -> merging_iter -> stream (what may be dropped) -> output (tables) -> install
//! ```
//! Flush uses the same stream and output with memtables as the input.

pub mod blobs;
pub mod job;
pub mod level_shape;
pub mod manual;
pub mod output;
pub mod pick;
pub mod stream;

use outcrop_manifest::FileMetaData;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many L0 files.
    L0Files,
    /// A level is over its target size.
    LevelSize,
    /// Asked for by `compact_range`.
    Manual,
}

/// A compaction that was decided: which tables go where. Creating it marks its inputs as taken; the mark
/// is released when it is dropped.
pub struct Compaction {
    /// Column family.
    pub cf_id: u32,
    /// Why.
    pub reason: Reason,
    /// Level of `inputs[0]`.
    pub start_level: usize,
    /// Level of `inputs[1]` and of the output.
    pub output_level: usize,
    /// Tables of the start level, and those of the output level they overlap.
    pub inputs: [Vec<Arc<FileMetaData>>; 2],
    /// Tables of the level below the output that overlap it: outputs are cut along their boundaries.
    pub grandparents: Vec<Arc<FileMetaData>>,
    /// No older data for the key range exists below the output level.
    pub bottommost: bool,
    /// The inputs can be relinked into the output level as they are.
    pub trivial_move: bool,
    /// Size at which outputs are cut, in bytes.
    pub target_file_size: u64,
    /// Overlap with grandparents at which outputs are cut, in bytes.
    pub max_grandparent_overlap: u64,
}

impl Compaction {
    /// All input tables.
    pub fn input_files(&self) -> impl Iterator<Item = &Arc<FileMetaData>> {
        self.inputs.iter().flatten()
    }

    /// Marks the inputs as taken, so that no other compaction picks them.
    pub fn mark(&self) {
        for file in self.input_files() {
            // Relaxed: the mark is set and read under the state lock.
            let was_taken = file.being_compacted.swap(true, Ordering::Relaxed);
            assert!(!was_taken, "table {:?} is already being compacted", file.number);
        }
    }

    /// Releases the inputs.
    pub fn unmark(&self) {
        for file in self.input_files() {
            file.being_compacted.store(false, Ordering::Relaxed);
        }
    }

    /// Bytes of all inputs.
    pub fn input_bytes(&self) -> u64 {
        self.input_files().map(|file| file.size).sum()
    }
}

impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{} -> L{}: inputs", self.start_level, self.output_level)?;
        for file in &self.inputs[0] {
            write!(f, " {}", file.number.0)?;
        }
        if !self.inputs[1].is_empty() {
            f.write_str(" +")?;
            for file in &self.inputs[1] {
                write!(f, " {}", file.number.0)?;
            }
        }
        write!(f, " [{:?}]", self.reason)?;
        if self.trivial_move {
            f.write_str(" (move)")?;
        }
        if self.bottommost {
            f.write_str(" (bottommost)")?;
        }
        Ok(())
    }
}
