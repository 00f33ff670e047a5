//! The vocabulary of steps, and the options each kind of workload opens a database with.
//!
//! A step of the vocabulary is one row of [`STEPS`]. Source: RocksDB `tools/benchmark.sh`.

use super::profiles::{self, Profile};
use super::{Config, Experiment, StepChange, WorkloadKind};
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::mixgraph::MixParameters;
use outcrop_lab_load::steps::{Arrival, Spacing};
use outcrop_lab_load::transactions::Concurrency;
use outcrop_lab_load::values::ValueSizes;
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
    /// That writer merges instead of putting.
    pub writer_merges: bool,
    /// In reports unless the experiment says otherwise.
    pub report: bool,
    /// Writes without the WAL.
    pub no_wal: bool,
    /// Syncs every write.
    pub sync: bool,
    /// Options the engine gets for this step alone.
    pub options: &'static str,
    /// What it is, for people.
    pub meaning: &'static str,
}

const fn row(name: &'static str, kind: StepKind, report: bool, meaning: &'static str) -> StepRow {
    let (while_writing, writer_merges, no_wal, sync) = (false, false, false, false);
    StepRow { name, kind, while_writing, writer_merges, report, no_wal, sync, options: "", meaning }
}

/// Filters of the last level are not used: every key that is asked for is there.
const NO_LAST_FILTER: &str = "optimize_filters_for_hits=true";

const fn beside_writer(name: &'static str, kind: StepKind, meaning: &'static str) -> StepRow {
    StepRow { while_writing: true, ..row(name, kind, true, meaning) }
}

const fn beside_merger(name: &'static str, kind: StepKind, meaning: &'static str) -> StepRow {
    StepRow { writer_merges: true, ..beside_writer(name, kind, meaning) }
}

/// All steps.
pub const STEPS: &[StepRow] = &[
    StepRow { no_wal: true, ..row("fillseq", StepKind::FillSeq, true, "load in key order, no WAL") },
    row("fillseq_wal", StepKind::FillSeq, true, "load in key order, with WAL"),
    row("fillrandom", StepKind::FillRandom, true, "load random keys: 63.2 % of them get written"),
    row("filluniquerandom", StepKind::FillUniqueRandom, true, "load every key once, in random order"),
    row("warm", StepKind::ReadSeq, false, "read everything once, to fill caches"),
    row("readseq", StepKind::ReadSeq, true, "read everything once, in key order"),
    row("readrandom", StepKind::ReadRandom, true, "point lookups of random keys"),
    row("readrandom2", StepKind::ReadRandom, true, "readrandom on another shape of the tree"),
    StepRow {
        options: NO_LAST_FILTER,
        ..row("readrandom3", StepKind::ReadRandom, true, "readrandom without the last level's filters")
    },
    row("multireadrandom", StepKind::MultiRead, true, "lookups of ten random keys in one call"),
    StepRow {
        options: NO_LAST_FILTER,
        ..row("multireadrandom3", StepKind::MultiRead, true, "the same without the last level's filters")
    },
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
    StepRow {
        sync: true,
        ..row("overwritesync", StepKind::Overwrite, true, "overwrite, every write synced")
    },
    row("mixgraph", StepKind::MixGraph, true, "gets, puts and scans of hot and cold keys"),
    row("randomtransaction", StepKind::RandomTransaction, true, "counters incremented under transactions"),
    row("updaterandom", StepKind::Update, true, "look up a random key, then write it"),
    row("appendrandom", StepKind::Append, true, "look up a random key, then write it longer"),
    row("mergerandom", StepKind::Merge, true, "add an operand to a random key"),
    row(
        "readrandommergerandom",
        StepKind::ReadOrMerge,
        true,
        "add an operand to a random key, or look it up",
    ),
    beside_merger(
        "revrangewhilemerging",
        StepKind::Range { reverse: true },
        "revrange beside a merging writer",
    ),
    beside_merger(
        "fwdrangewhilemerging",
        StepKind::Range { reverse: false },
        "fwdrange beside a merging writer",
    ),
    beside_merger("readwhilemerging", StepKind::ReadRandom, "readrandom beside a merging writer"),
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
    /// Bytes of a value; the mean if sizes are drawn.
    pub value_size: usize,
    /// How sizes of values scatter; `None`: not at all.
    #[serde(default)]
    pub value_sizes: Option<ValueSizes>,
    /// Bytes of block cache.
    pub cache: usize,
    /// Seconds of each timed step.
    pub seconds: f64,
    /// Reading or writing threads.
    pub threads: u32,
    /// Background threads of the engine.
    pub background_jobs: i32,
    /// The machine they were taken from, if the experiment names one.
    #[serde(default)]
    pub profile: Option<Profile>,
}

impl Sizes {
    /// Bytes of a value, for people.
    pub fn value_text(&self) -> String {
        match self.value_sizes {
            None => self.value_size.to_string(),
            Some(sizes) => format!("{}..{} ({})", sizes.min, sizes.max, sizes.name()),
        }
    }

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
    /// Options of the engine for this step alone.
    #[serde(default)]
    pub options: String,
    /// Share of the keys that the load wrote.
    #[serde(default = "all_of_them")]
    pub loaded: f64,
    /// It has as many threads as there are cores, or more.
    #[serde(default)]
    pub oversubscribed: bool,
}

fn all_of_them() -> f64 {
    1.0
}

impl PlannedStep {
    /// Whether the step only makes sense on a database at rest.
    pub fn wants_rest(&self) -> bool {
        self.only_reads() && self.step.kind != StepKind::ReadSeq
    }

    /// Operations under way at once: the background writer counts as a thread.
    pub fn in_flight(&self) -> u32 {
        self.step.threads + u32::from(self.step.while_writing)
    }

    /// Whether the step may run for a moment unmeasured first: it changes nothing and time ends it.
    pub fn takes_run_in(&self) -> bool {
        self.only_reads() && self.step.ops.is_none()
    }

    /// Whether the step only warms caches for the next one.
    pub fn warms_up(&self) -> bool {
        self.step.kind == StepKind::ReadSeq && !self.report
    }

    /// Whether the step fills an empty database.
    pub fn is_load(&self) -> bool {
        matches!(self.step.kind, StepKind::FillSeq | StepKind::FillRandom | StepKind::FillUniqueRandom)
    }

    /// Whether a memtable for ascending keys fits the step.
    pub fn is_ascending(&self) -> bool {
        self.step.kind == StepKind::FillSeq
    }

    /// Whether a lookup that finds nothing is a fault.
    pub fn must_find(&self) -> bool {
        matches!(self.step.kind, StepKind::ReadRandom | StepKind::MultiRead)
    }

    /// Whether its operations read and never write.
    pub fn only_reads(&self) -> bool {
        !self.step.while_writing
            && matches!(
                self.step.kind,
                StepKind::ReadRandom
                    | StepKind::ReadMissing
                    | StepKind::MultiRead
                    | StepKind::Range { .. }
                    | StepKind::ReadSeq
            )
    }

    /// Whether its counted operations write.
    pub fn writes(&self) -> bool {
        matches!(
            self.step.kind,
            StepKind::FillSeq
                | StepKind::FillRandom
                | StepKind::FillUniqueRandom
                | StepKind::Overwrite
                | StepKind::OverwriteAndWait
                | StepKind::Update
                | StepKind::Append
                | StepKind::Merge
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
        let value_size = workload.mean_value_size();
        let pair = (workload.key_size + value_size) as u64;
        let profile = workload.profile.as_ref().and_then(|name| profiles::find(name, memory, cores));
        let keys = workload.keys.unwrap_or(match (&profile, workload.kind) {
            (None, _) => (memory / 4 / pair).clamp(1000, 2_000_000),
            (Some(profile), WorkloadKind::Byrx | WorkloadKind::Byos) => profile.cached_keys(),
            (Some(profile), WorkloadKind::Iobuf | WorkloadKind::Iodir) => profile.uncached_keys(),
        });
        let data = (keys * pair) as usize;
        let cache = workload.cache.unwrap_or(match (&profile, workload.kind) {
            // Cached by the operating system: the block cache of such a profile has 1 GB, unless it says otherwise.
            (Some(profile), WorkloadKind::Byos) if !profile.name.contains("bc") => 1 << 30,
            (Some(profile), _) => profile.cache as usize,
            (None, WorkloadKind::Byrx) => data * 3 / 2 + (256 << 20),
            (None, WorkloadKind::Byos) => (data / 20).max(8 << 20),
            (None, WorkloadKind::Iobuf | WorkloadKind::Iodir) => (data / 5).max(8 << 20),
        });
        let jobs =
            profile.as_ref().map_or((cores / 2).clamp(3, 12) as i32, |profile| profile.background_jobs);
        Sizes {
            keys,
            key_size: workload.key_size,
            value_size,
            value_sizes: workload.value_sizes().unwrap_or_default(),
            cache,
            seconds: workload.seconds,
            threads: workload.threads,
            background_jobs: workload.background_jobs.unwrap_or(jobs),
            profile,
        }
    }

    /// The steps, with `sizes`. Seeds are 0: a session sets its own.
    pub fn planned_steps(&self, sizes: &Sizes) -> Vec<PlannedStep> {
        let none = StepChange::default();
        let steps: Vec<_> = self
            .step_names()
            .into_iter()
            .filter_map(|name| {
                let change = self.step.get(&name).unwrap_or(&none);
                Some((find(change.kind.as_ref().unwrap_or(&name))?, name, change))
            })
            .collect();
        let mut loaded = all_of_them();
        let rate = self.workload.writer_rate;
        let planned = |(row, name, change): (&StepRow, String, &StepChange)| {
            // Each load begins with an empty database, so the last one before a step decides.
            loaded = match row.kind {
                // As many random keys as there are keys leave 1/e of them unwritten.
                StepKind::FillRandom => 1.0 - (-1.0f64).exp(),
                StepKind::FillSeq | StepKind::FillUniqueRandom => all_of_them(),
                _ => loaded,
            };
            planned_step(name, row, change, sizes, rate, loaded)
        };
        let mut planned: Vec<PlannedStep> = steps.into_iter().map(planned).collect();
        // Operands that a step left must be understood by all later ones: one operator for the whole session.
        let merging = planned.iter().any(|planned| planned.step.merges());
        let usual = if merging { USUAL_MERGE_OPERATOR } else { "" };
        let operator = self.workload.merge_operator.as_deref().unwrap_or(usual);
        planned.iter_mut().for_each(|planned| planned.step.merge_operator = operator.to_string());
        planned
    }
}

/// The operator of published merge benchmarks: an operand replaces what was there.
const USUAL_MERGE_OPERATOR: &str = "put";

fn planned_step(
    name: String,
    row: &StepRow,
    change: &StepChange,
    sizes: &Sizes,
    writer_rate: u64,
    loaded: f64,
) -> PlannedStep {
    use StepKind::{
        Compact, FillRandom, FillSeq, FillUniqueRandom, Flush, Overwrite, ReadSeq, Settle, WaitForCompaction,
    };
    let load = matches!(row.kind, FillSeq | FillRandom | FillUniqueRandom);
    let once = matches!(row.kind, ReadSeq | Settle | Flush | Compact | WaitForCompaction);
    let threads = if load || once { 1 } else { change.threads.unwrap_or(sizes.threads) };
    let some = row.kind == Overwrite && row.name == "overwritesome";
    let ops = match row.kind {
        _ if load => Some(sizes.keys),
        _ if once => Some(1),
        _ if some => Some(((sizes.keys as f64 / f64::from(threads) / 10.0).round() as u64).max(1)),
        _ => None,
    };
    let durability = match (row.no_wal, change.sync.unwrap_or(row.sync)) {
        (_, true) => Durability::Sync,
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
        value_sizes: sizes.value_sizes,
        seed: 0,
        writer_rate,
        writer_num: sizes.keys,
        writer_merges: row.writer_merges,
        merge_operator: String::new(),
        merge_percent: change.merge_percent.unwrap_or(70),
        batch_size: change.batch_size.unwrap_or(if row.kind == StepKind::MultiRead { 10 } else { 1 }),
        batched: true,
        arrival: arrival(change),
        mix: mix(change),
        transaction_sets: change.transaction_sets.unwrap_or(5),
        concurrency: change.transactions.unwrap_or(Concurrency::Pessimistic),
        planted: 0.0,
    };
    PlannedStep {
        step,
        report: change.report.unwrap_or(row.report),
        options: change.options.clone().unwrap_or_else(|| row.options.to_string()),
        loaded,
        oversubscribed: false,
    }
}

/// When operations of a step are due, if it says so.
fn arrival(change: &StepChange) -> Option<Arrival> {
    let spacing = match change.arrival_spacing.as_deref() {
        Some("poisson") => Spacing::Poisson,
        _ => Spacing::Grid,
    };
    change.arrival_rate.map(|rate| Arrival { rate, spacing })
}

/// The mix of a step: its own, one by name, or the one with hot ranges and hot keys.
fn mix(change: &StepChange) -> MixParameters {
    /// Every key of the published mix has 48 bytes; here the workload decides.
    const USUAL: &str = "prefix_dist";
    let named = || MixParameters::preset(change.mix_preset.as_deref().unwrap_or(USUAL));
    change.mix.clone().or_else(named).unwrap_or_default()
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
        lru_cache: false,
        merge_operator: String::new(),
    }
}
