//! The vocabulary of steps, and the options each kind of workload opens a database with.
//!
//! A step of the vocabulary is one row of [`STEPS`]. Source: RocksDB `tools/benchmark.sh`.

use super::{Config, Experiment, StepChange, WorkloadKind};
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::{OpenOptions, Step, StepKind};
use serde::{Deserialize, Serialize};

/// One step of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub struct StepRow {
    /// Name in experiments.
    pub name: &'static str,
    /// What it does.
    pub kind: StepKind,
    /// A rate-limited writer runs beside it.
    pub while_writing: bool,
    /// In reports unless the experiment says otherwise.
    pub report: bool,
    /// Writes without the WAL.
    pub no_wal: bool,
    /// What it is, for people.
    pub meaning: &'static str,
}

const fn row(name: &'static str, kind: StepKind, report: bool, meaning: &'static str) -> StepRow {
    StepRow { name, kind, while_writing: false, report, no_wal: false, meaning }
}

const fn beside_writer(name: &'static str, kind: StepKind, meaning: &'static str) -> StepRow {
    StepRow { while_writing: true, ..row(name, kind, true, meaning) }
}

/// All steps.
pub const STEPS: &[StepRow] = &[
    StepRow { no_wal: true, ..row("fillseq", StepKind::FillSeq, true, "load in key order, no WAL") },
    row("fillseq_wal", StepKind::FillSeq, true, "load in key order, with WAL"),
    row("warm", StepKind::ReadSeq, false, "read everything once, to fill caches"),
    row("readseq", StepKind::ReadSeq, true, "read everything once, in key order"),
    row("readrandom", StepKind::ReadRandom, true, "point lookups of random keys"),
    row("readmissing", StepKind::ReadMissing, true, "point lookups of keys that are not there"),
    row("fwdrange", StepKind::Range { reverse: false }, true, "seek to a random key, move forward"),
    row("revrange", StepKind::Range { reverse: true }, true, "seek to a random key, move backward"),
    row("overwritesome", StepKind::Overwrite, false, "overwrite a tenth of the keys"),
    row("flush_mt_l0", StepKind::Settle, false, "flush, compact L0 away, wait: a known shape"),
    row("flush", StepKind::Flush, false, "flush memtables"),
    row("compact", StepKind::Compact, false, "compact everything"),
    row("waitforcompaction", StepKind::WaitForCompaction, false, "wait until no compaction is due"),
    beside_writer("revrangewhilewriting", StepKind::Range { reverse: true }, "revrange beside a writer"),
    beside_writer("fwdrangewhilewriting", StepKind::Range { reverse: false }, "fwdrange beside a writer"),
    beside_writer("readwhilewriting", StepKind::ReadRandom, "readrandom beside a writer"),
    row("overwrite", StepKind::Overwrite, true, "overwrite random keys; leaves compaction debt"),
    row("overwriteandwait", StepKind::OverwriteAndWait, true, "overwrite, then wait for compaction"),
    row("updaterandom", StepKind::Update, true, "look up a random key, then write it"),
    row("deleterandom", StepKind::Delete, true, "delete random keys"),
];

/// The sequence of an experiment that names no steps.
pub const STANDARD: &[&str] = &[
    "fillseq",
    "warm",
    "readrandom",
    "fwdrange",
    "revrange",
    "overwritesome",
    "flush_mt_l0",
    "revrangewhilewriting",
    "fwdrangewhilewriting",
    "readwhilewriting",
    "overwriteandwait",
];

/// The row of a name.
pub fn find(name: &str) -> Option<&'static StepRow> {
    STEPS.iter().find(|row| row.name == name)
}

/// RocksDB's number of a codec.
pub fn compression_number(name: &str) -> Option<i32> {
    Some(match name {
        "none" => 0,
        "snappy" => 1,
        "lz4" => 4,
        "zstd" => 7,
        _ => return None,
    })
}

/// Sizes with the machine's part filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Keys loaded.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Bytes of block cache.
    pub cache: usize,
    /// Seconds of each timed step.
    pub seconds: f64,
    /// Reading or writing threads.
    pub threads: u32,
    /// Background threads of the engine.
    pub background_jobs: i32,
}

impl Sizes {
    /// Key and value bytes of everything loaded.
    pub fn data_bytes(&self) -> u64 {
        self.keys * (self.key_size + self.value_size) as u64
    }
}

/// A step with everything decided but its seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedStep {
    /// What the load generator is told.
    pub step: Step,
    /// Whether it is in reports.
    pub report: bool,
}

impl PlannedStep {
    /// Whether the step only makes sense on a database at rest.
    pub fn wants_rest(&self) -> bool {
        !self.step.while_writing
            && matches!(self.step.kind, StepKind::ReadRandom | StepKind::ReadMissing | StepKind::Range { .. })
    }

    /// Whether the step writes keys in order into an empty database.
    pub fn is_load(&self) -> bool {
        self.step.kind == StepKind::FillSeq
    }

    /// Whether its operations read and never write.
    pub fn only_reads(&self) -> bool {
        !self.step.while_writing
            && matches!(
                self.step.kind,
                StepKind::ReadRandom | StepKind::ReadMissing | StepKind::Range { .. } | StepKind::ReadSeq
            )
    }

    /// Whether its counted operations write.
    pub fn writes(&self) -> bool {
        matches!(
            self.step.kind,
            StepKind::FillSeq
                | StepKind::Overwrite
                | StepKind::OverwriteAndWait
                | StepKind::Update
                | StepKind::Delete
        )
    }
}

impl Experiment {
    /// Names of the steps, in order.
    pub fn step_names(&self) -> Vec<String> {
        match &self.steps {
            Some(names) => names.clone(),
            None => STANDARD.iter().map(ToString::to_string).collect(),
        }
    }

    /// Sizes on a machine with `memory` bytes and `cores`.
    pub fn sizes(&self, memory: u64, cores: usize) -> Sizes {
        let workload = &self.workload;
        let pair = (workload.key_size + workload.value_size) as u64;
        let keys = workload.keys.unwrap_or((memory / 4 / pair).clamp(1000, 2_000_000));
        let data = (keys * pair) as usize;
        let cache = workload.cache.unwrap_or(match workload.kind {
            WorkloadKind::Byrx => data * 3 / 2 + (256 << 20),
            WorkloadKind::Byos => (data / 20).max(8 << 20),
            WorkloadKind::Iobuf | WorkloadKind::Iodir => (data / 5).max(8 << 20),
        });
        Sizes {
            keys,
            key_size: workload.key_size,
            value_size: workload.value_size,
            cache,
            seconds: workload.seconds,
            threads: workload.threads,
            background_jobs: workload.background_jobs.unwrap_or((cores / 2).clamp(3, 12) as i32),
        }
    }

    /// The steps, with `sizes`. Seeds are 0: a session sets its own.
    pub fn planned_steps(&self, sizes: &Sizes) -> Vec<PlannedStep> {
        let none = StepChange::default();
        let planned = self.step_names().into_iter().filter_map(|name| {
            let change = self.step.get(&name).unwrap_or(&none);
            let row = find(change.kind.as_ref().unwrap_or(&name))?;
            Some(planned_step(name, row, change, sizes, self.workload.writer_rate))
        });
        planned.collect()
    }
}

fn planned_step(name: String, row: &StepRow, change: &StepChange, sizes: &Sizes, rate: u64) -> PlannedStep {
    use StepKind::{Compact, FillSeq, Flush, Overwrite, ReadSeq, Settle, WaitForCompaction};
    let single = matches!(row.kind, FillSeq | ReadSeq | Settle | Flush | Compact | WaitForCompaction);
    let threads = if single { 1 } else { change.threads.unwrap_or(sizes.threads) };
    let some = row.kind == Overwrite && row.name == "overwritesome";
    let ops = match row.kind {
        FillSeq => Some(sizes.keys),
        _ if single => Some(1),
        _ if some => Some(((sizes.keys as f64 / f64::from(threads) / 10.0).round() as u64).max(1)),
        _ => None,
    };
    let durability = match (row.no_wal, change.sync) {
        (_, Some(true)) => Durability::Sync,
        (true, _) => Durability::NoWal,
        _ => Durability::Wal,
    };
    let step = Step {
        name,
        kind: row.kind,
        while_writing: row.while_writing,
        threads,
        ops,
        seconds: change.seconds.unwrap_or(sizes.seconds),
        durability,
        seek_nexts: change.seek_nexts.unwrap_or(10),
        num: change.num.unwrap_or(sizes.keys),
        key_size: sizes.key_size,
        value_size: sizes.value_size,
        seed: 0,
        writer_rate: rate,
        writer_num: sizes.keys,
    };
    PlannedStep { step, report: change.report.unwrap_or(row.report) }
}

/// How a database of `kind` is opened with `config`.
pub fn open_options(kind: WorkloadKind, sizes: &Sizes, config: &Config) -> OpenOptions {
    let codec = match kind {
        WorkloadKind::Byrx | WorkloadKind::Byos => 0,
        WorkloadKind::Iobuf | WorkloadKind::Iodir => 4,
    };
    OpenOptions {
        cache_size: config.cache.unwrap_or(sizes.cache),
        block_size: config.block_size.unwrap_or(8192),
        bloom_bits: config.bloom_bits.unwrap_or(10.0),
        write_buffer_size: config.write_buffer_size.unwrap_or(16 << 20),
        max_write_buffer_number: 8,
        target_file_size_base: 16 << 20,
        max_bytes_for_level_base: 64 << 20,
        max_bytes_for_level_multiplier: 8.0,
        num_levels: config.num_levels.unwrap_or(8),
        level0_triggers: config.level0_triggers.unwrap_or([4, 20, 30]),
        max_background_jobs: config.background_jobs.unwrap_or(sizes.background_jobs),
        compression: config.compression.as_deref().and_then(compression_number).unwrap_or(codec),
        direct_io: kind == WorkloadKind::Iodir,
        vector_memtable: false,
    }
}
