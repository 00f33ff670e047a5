//! A step as data: the operation it repeats, and everything that can be set about it.
//!
//! Next: `worker.rs` and `upkeep.rs` for what the kinds do.

use super::Arrival;
use crate::database::Durability;
use crate::keys::KeyLayout;
use crate::mixgraph::MixParameters;
use crate::transactions::Concurrency;
use crate::values::{Redundancy, ValueSizes, Values};
use serde::{Deserialize, Serialize};

/// The operation that a step repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Writes the next key in order.
    FillSeq,
    /// Writes a random key; as many as there are keys leave 63.2 % of them written.
    FillRandom,
    /// Writes every key once, in random order.
    FillUniqueRandom,
    /// Writes a random key of a loaded database.
    Overwrite,
    /// Writes random keys, then flushes and waits for compaction, outside the measured time.
    OverwriteAndWait,
    /// Looks up a random key.
    ReadRandom,
    /// Looks up a random key that no load wrote.
    ReadMissing,
    /// Looks up a random key, while one more thread reads everything in key order, again and again.
    ReadWhileScanning,
    /// Looks up several random keys in one call.
    MultiRead,
    /// Gets, puts and scans, of hot and cold keys.
    MixGraph,
    /// Increments counters of several sets under transactions.
    RandomTransaction,
    /// Writes a random key of a loaded database that is open for transactions, and so locks it for the time of the write.
    OverwriteLocked,
    /// Seeks to a random key and moves on.
    Range {
        /// Moves backward.
        reverse: bool,
    },
    /// Looks up a random key, then writes it.
    Update,
    /// Adds an operand to a random key.
    Merge,
    /// Adds an operand to a random key, or looks one up.
    ReadOrMerge,
    /// Looks up a random key and writes its value with another one after it.
    Append,
    /// Looks up random keys, then writes random keys, so many of each hundred.
    ReadOrWrite,
    /// Deletes a random key.
    Delete,
    /// Deletes the next key in order.
    DeleteSeq,
    /// Reads everything once, in key order: the first `num` rows.
    ReadSeq,
    /// Reads everything once in key order; each row is an operation with a sample of its own.
    ReadRows,
    /// As [`StepKind::ReadRows`], in the reverse order.
    ReadReverse,
    /// Makes an iterator.
    NewIterator,
    /// Verifies the checksums of all tables.
    VerifyChecksums,
    /// Flushes, compacts L0 into the level below and waits for compaction.
    Settle,
    /// Flushes memtables.
    Flush,
    /// Flushes memtables and waits for compaction.
    FlushAndWait,
    /// Flushes memtables and sleeps ten seconds.
    FlushAndPause,
    /// Compacts everything.
    Compact,
    /// Compacts L0 into the first level below it that has tables.
    Compact0,
    /// Compacts the first level below L0 that has tables into the next one that has.
    Compact1,
    /// Flushes, compacts L0, the first level below and then everything, with quiet between.
    CompactLevels,
    /// Waits until no compaction runs or is due.
    WaitForCompaction,
    /// Statements on a server: what they are is not this crate's.
    Statements,
}

impl StepKind {
    /// Whether it brings the tree into a shape, once, and measures nothing but the time that takes.
    pub fn is_upkeep(self) -> bool {
        use StepKind::{
            Compact, Compact0, Compact1, CompactLevels, Flush, FlushAndPause, FlushAndWait, Settle,
            WaitForCompaction,
        };
        matches!(
            self,
            Settle
                | Flush
                | FlushAndWait
                | FlushAndPause
                | Compact
                | Compact0
                | Compact1
                | CompactLevels
                | WaitForCompaction
        )
    }

    /// Whether its operations are many and short, so that the longest of them, and seconds without one, say something: what
    /// reads everything at once is told when all is read.
    pub fn has_many_operations(self) -> bool {
        !self.is_upkeep() && !matches!(self, StepKind::ReadSeq | StepKind::VerifyChecksums)
    }

    /// Whether its operations are writes of whole batches, which a rate can limit.
    pub fn is_put(self) -> bool {
        use StepKind::{FillRandom, FillSeq, FillUniqueRandom, Overwrite, OverwriteAndWait};
        matches!(self, FillSeq | FillRandom | FillUniqueRandom | Overwrite | OverwriteAndWait)
    }

    /// Whether it needs a database that is open for transactions.
    pub fn needs_transactions(self) -> bool {
        matches!(self, StepKind::RandomTransaction | StepKind::OverwriteLocked)
    }

    /// Whether it has operations of several kinds, which are counted apart.
    pub fn has_several(self) -> bool {
        use StepKind::{MixGraph, RandomTransaction, ReadOrMerge, ReadOrWrite};
        matches!(self, MixGraph | ReadOrWrite | ReadOrMerge | RandomTransaction)
    }

    /// Whether its operations read and never write.
    pub fn only_reads(self) -> bool {
        use StepKind::{NewIterator, Range, ReadReverse, ReadRows, ReadSeq, VerifyChecksums};
        self.is_lookup()
            || matches!(self, Range { .. } | ReadSeq | ReadRows | ReadReverse | NewIterator | VerifyChecksums)
    }

    /// Whether it looks up keys that a load wrote, or tries to, and nothing else.
    pub fn is_lookup(self) -> bool {
        use StepKind::{MultiRead, ReadMissing, ReadRandom, ReadWhileScanning};
        matches!(self, ReadRandom | ReadMissing | ReadWhileScanning | MultiRead)
    }
}

/// One step of a sequence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Name in reports.
    pub name: String,
    /// The operation.
    pub kind: StepKind,
    /// A rate-limited writer runs beside it.
    pub while_writing: bool,
    /// Readers or writers.
    pub threads: u32,
    /// Operations of each thread; `None`: the time decides.
    pub ops: Option<u64>,
    /// Seconds, if the time decides.
    pub seconds: f64,
    /// How writes are made durable.
    pub durability: Durability,
    /// Moves of a range query.
    pub seek_nexts: u32,
    /// Keys in the database.
    pub num: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// How numbers become keys.
    #[serde(default)]
    pub layout: KeyLayout,
    /// How much more often lookups ask for some keys than for others, [`crate::keys::exponential`]; 0: not at all.
    #[serde(default)]
    pub exp_range: f64,
    /// Bytes of a value; the mean if sizes are drawn.
    pub value_size: usize,
    /// How sizes scatter; `None`: not at all.
    #[serde(default)]
    pub value_sizes: Option<ValueSizes>,
    /// How far values can be compressed.
    #[serde(default)]
    pub redundancy: Redundancy,
    /// Base of the threads' seeds.
    pub seed: u64,
    /// Bytes per second of the background writer; 0: as fast as it can.
    pub writer_rate: u64,
    /// Bytes per second that the counted threads write at most, all together, if they put; 0: no limit.
    #[serde(default)]
    pub write_rate: u64,
    /// Keys the background writer chooses from.
    pub writer_num: u64,
    /// The background writer merges instead of putting.
    #[serde(default)]
    pub writer_merges: bool,
    /// Merge operator the database is opened with; empty: none.
    #[serde(default)]
    pub merge_operator: String,
    /// Of a hundred operations of [`StepKind::ReadOrWrite`], those that look up.
    #[serde(default = "ninety")]
    pub read_percent: u32,
    /// Of a hundred operations of [`StepKind::ReadOrMerge`], those that merge.
    #[serde(default = "seventy")]
    pub merge_percent: u32,
    /// Keys of one call, for steps that write or look up several.
    #[serde(default = "one")]
    pub batch_size: u32,
    /// Whether several keys are looked up in the way that pins values, if the library has it.
    #[serde(default)]
    pub batched: bool,
    /// When operations are due; `None`: as soon as the last has ended.
    #[serde(default)]
    pub arrival: Option<Arrival>,
    /// The mix, if the step is one.
    #[serde(default)]
    pub mix: MixParameters,
    /// Sets of counters that a transaction increments.
    #[serde(default = "five")]
    pub transaction_sets: u32,
    /// How transactions find conflicts.
    #[serde(default = "pessimistic")]
    pub concurrency: Concurrency,
    /// Share of each operation's time that is burnt in addition, to see whether it is found.
    #[serde(default)]
    pub planted: f64,
}

impl Step {
    /// A step of statements on a server, in a closed loop.
    pub fn of_statements(name: &str, threads: u32, ops: Option<u64>, seconds: f64) -> Step {
        Step {
            name: name.to_string(),
            kind: StepKind::Statements,
            while_writing: false,
            threads,
            ops,
            seconds,
            durability: Durability::Wal,
            seek_nexts: 0,
            num: 0,
            key_size: 0,
            layout: KeyLayout::default(),
            exp_range: 0.0,
            value_size: 0,
            value_sizes: None,
            redundancy: Redundancy::default(),
            seed: 0,
            writer_rate: 0,
            write_rate: 0,
            writer_num: 0,
            writer_merges: false,
            merge_operator: String::new(),
            read_percent: ninety(),
            merge_percent: seventy(),
            batch_size: one(),
            batched: false,
            arrival: None,
            mix: MixParameters::default(),
            transaction_sets: five(),
            concurrency: pessimistic(),
            planted: 0.0,
        }
    }

    /// Threads that work beside the counted ones: a writer, or a scan.
    pub fn threads_beside(&self) -> u32 {
        u32::from(self.while_writing || self.kind == StepKind::ReadWhileScanning)
    }

    /// Whether it needs a merge operator.
    pub fn merges(&self) -> bool {
        self.writer_merges || matches!(self.kind, StepKind::Merge | StepKind::ReadOrMerge)
    }

    /// Values for one thread.
    pub(super) fn values(&self, seed: u64) -> Values {
        let redundancy = self.redundancy;
        match self.value_sizes {
            None => Values::new(redundancy, self.value_size),
            Some(sizes) => Values::drawn(redundancy, sizes, seed),
        }
        .with_room_for(redundancy, self.mix.mix_max_value_size as usize)
    }
}

fn ninety() -> u32 {
    90
}
fn seventy() -> u32 {
    70
}
fn one() -> u32 {
    1
}
fn five() -> u32 {
    5
}
fn pessimistic() -> Concurrency {
    Concurrency::Pessimistic
}
