//! What one session does: an engine, a directory, a sequence of steps. It travels to the child as JSON.

use outcrop_lab_load::database::Durability;
use outcrop_lab_load::{OpenOptions, Step, StepKind, StepResult};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where an engine's functions come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// Linked into this program.
    InProcess,
    /// A shared library with RocksDB's C API.
    Library(PathBuf),
}

/// An engine under test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Name in tables.
    pub name: String,
    /// Where it is.
    pub source: Source,
}

/// What kind of data set is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Workload {
    /// Everything fits in the engine's cache; no compression.
    Byrx,
    /// More data than cache, through the page cache; LZ4.
    Iobuf,
    /// More data than cache, with O_DIRECT; LZ4.
    Iodir,
}

/// Sizes of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sizes {
    /// Keys loaded.
    pub keys: u64,
    /// Bytes of block cache.
    pub cache_bytes: usize,
    /// Seconds of each timed step.
    pub seconds: f64,
    /// Reading or writing threads.
    pub threads: u32,
    /// Background threads of the engine.
    pub background_jobs: i32,
}

/// One session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// The engine.
    pub target: Target,
    /// The database's directory: empty, and the session's own.
    pub dir: PathBuf,
    /// Kind of data set.
    pub workload: Workload,
    /// Sizes.
    pub sizes: Sizes,
    /// Base of all seeds.
    pub seed: u64,
}

/// What a session says while it runs, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// A step runs.
    Progress {
        /// Number of the step.
        step: usize,
        /// Operations so far.
        ops: u64,
        /// Seconds so far.
        seconds: f64,
    },
    /// A step is done.
    Done {
        /// Number of the step.
        step: usize,
        /// What it gave.
        result: Box<StepResult>,
    },
    /// The session failed.
    Failed(String),
}

/// Bytes of a key and of a value.
pub const PAIR: (usize, usize) = (20, 400);

impl Session {
    /// How the database is opened; loads ask RocksDB for its vector memtable.
    pub fn open_options(&self, loading: bool) -> OpenOptions {
        OpenOptions {
            cache_size: self.sizes.cache_bytes,
            block_size: 8192,
            bloom_bits: 10.0,
            write_buffer_size: 16 << 20,
            max_write_buffer_number: 8,
            target_file_size_base: 16 << 20,
            max_bytes_for_level_base: 64 << 20,
            max_bytes_for_level_multiplier: 8.0,
            num_levels: 8,
            level0_triggers: [4, 20, 30],
            max_background_jobs: self.sizes.background_jobs,
            compression: if self.workload == Workload::Byrx { 0 } else { 4 },
            direct_io: self.workload == Workload::Iodir,
            vector_memtable: loading,
        }
    }

    /// The sequence, and which steps are reported.
    pub fn steps(&self) -> Vec<(Step, bool)> {
        use StepKind::{FillSeq, Overwrite, OverwriteAndWait, Range, ReadRandom, ReadSeq, Settle};
        let step = |name: &str, kind, while_writing| Step {
            name: name.to_string(),
            kind,
            while_writing,
            threads: match kind {
                FillSeq | ReadSeq | Settle => 1,
                _ => self.sizes.threads,
            },
            ops: match kind {
                FillSeq => Some(self.sizes.keys),
                Overwrite => {
                    Some((self.sizes.keys as f64 / f64::from(self.sizes.threads) / 10.0).round() as u64)
                }
                ReadSeq | Settle => Some(1),
                _ => None,
            },
            seconds: self.sizes.seconds,
            durability: if kind == FillSeq { Durability::NoWal } else { Durability::Wal },
            seek_nexts: 10,
            num: self.sizes.keys,
            key_size: PAIR.0,
            value_size: PAIR.1,
            seed: self.seed,
            writer_rate: 2 << 20,
        };
        vec![
            (step("fillseq", FillSeq, false), true),
            (step("warm", ReadSeq, false), false),
            (step("readrandom", ReadRandom, false), true),
            (step("fwdrange", Range { reverse: false }, false), true),
            (step("revrange", Range { reverse: true }, false), true),
            (step("overwritesome", Overwrite, false), false),
            (step("flush_mt_l0", Settle, false), false),
            (step("revrangewhilewriting", Range { reverse: true }, true), true),
            (step("fwdrangewhilewriting", Range { reverse: false }, true), true),
            (step("readwhilewriting", ReadRandom, true), true),
            (step("overwriteandwait", OverwriteAndWait, false), true),
        ]
    }
}
