//! From an experiment's words to steps and sizes: everything decided but seeds.
//!
//! Next: `vocabulary.rs` for the steps there are, `compaction.rs` for what a database is opened with.

use super::profiles::{self, Profile};
use super::vocabulary::{STANDARD, StepRow, find};
use super::{Experiment, StepChange, Workload, WorkloadKind};
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::keys::KeyLayout;
use outcrop_lab_load::mixgraph::MixParameters;
use outcrop_lab_load::steps::{Arrival, Spacing};
use outcrop_lab_load::transactions::Concurrency;
use outcrop_lab_load::values::{Redundancy, ValueSizes};
use outcrop_lab_load::{Step, StepKind};
use outcrop_lab_sql::SqlStep;
use serde::{Deserialize, Serialize};

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
    /// Threads of one universal compaction.
    #[serde(default = "one")]
    pub subcompactions: u32,
    /// How numbers become keys.
    #[serde(default)]
    pub layout: KeyLayout,
    /// How far values can be compressed.
    #[serde(default)]
    pub redundancy: Redundancy,
    /// RocksDB's numbers of the codecs that the workload says: of all levels, and of the last.
    #[serde(default)]
    pub codecs: [Option<i32>; 2],
    /// The machine they were taken from, if the experiment names one.
    #[serde(default)]
    pub profile: Option<Profile>,
}

fn one() -> u32 {
    1
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
    /// The step as the load generator gets it.
    pub step: Step,
    /// Whether it is in reports.
    pub report: bool,
    /// Options of the engine for this step alone.
    #[serde(default)]
    pub options: String,
    /// Share of the keys that the load wrote; `None`: a step has deleted some since, and nobody knows how many.
    #[serde(default = "all_of_them")]
    pub loaded: Option<f64>,
    /// It has as many threads as there are cores, or more.
    #[serde(default)]
    pub oversubscribed: bool,
    /// A vector memtable, where the library has one.
    #[serde(default)]
    pub vector_memtable: bool,
    /// Its load on a server, if it is a step of one.
    #[serde(default)]
    pub sql: Option<SqlStep>,
}

fn all_of_them() -> Option<f64> {
    Some(1.0)
}

impl PlannedStep {
    /// Whether the step only makes sense on a database without background work.
    pub fn wants_rest(&self) -> bool {
        self.only_reads() && self.step.kind != StepKind::ReadSeq
    }

    /// Operations under way at once: a background writer or scan counts as a thread.
    pub fn in_flight(&self) -> u32 {
        self.step.threads + self.step.threads_beside()
    }

    /// Whether the step may run for a moment unmeasured first: it changes nothing and time ends it.
    pub fn takes_run_in(&self) -> bool {
        self.only_reads() && self.step.ops.is_none()
    }

    /// Whether the step only warms caches for the next one.
    pub fn warms_up(&self) -> bool {
        match &self.sql {
            Some(sql) => sql.test().is_some() && !self.report,
            None => self.step.kind == StepKind::ReadSeq && !self.report,
        }
    }

    /// Whether the step fills an empty database.
    pub fn is_load(&self) -> bool {
        if let Some(sql) = &self.sql {
            return sql.is_load();
        }
        matches!(self.step.kind, StepKind::FillSeq | StepKind::FillRandom | StepKind::FillUniqueRandom)
    }

    /// Whether a vector memtable fits the step.
    pub fn wants_vector_memtable(&self) -> bool {
        // Records of old plans do not say it.
        self.vector_memtable || self.step.kind == StepKind::FillSeq
    }

    /// Whether a lookup that finds nothing is a fault.
    pub fn must_find(&self) -> bool {
        /// Keys among which chance leaves about the share that it should.
        const MANY: u64 = 10_000;
        let Some(loaded) = self.loaded else { return false };
        let chance = loaded < 1.0 && (self.step.exp_range > 0.0 || self.step.num < MANY);
        self.step.kind.is_lookup() && self.step.kind != StepKind::ReadMissing && !chance
    }

    /// Whether its operations read and never write.
    pub fn only_reads(&self) -> bool {
        if let Some(sql) = &self.sql {
            return sql.only_reads();
        }
        !self.step.while_writing && self.step.kind.only_reads()
    }

    /// Whether the step may be done in slices: its counted operations read, one as the other, until time ends them. Where
    /// operations are due at their times, who is stopped is late.
    pub fn may_be_sliced(&self) -> bool {
        let reads = self.sql.as_ref().map_or(self.step.kind.only_reads(), SqlStep::only_reads);
        reads && self.step.ops.is_none() && self.step.arrival.is_none()
    }

    /// Whether its counted operations write.
    pub fn writes(&self) -> bool {
        if let Some(sql) = &self.sql {
            return !sql.only_reads();
        }
        use StepKind::{
            Append, Compact, Compact0, Compact1, CompactLevels, Delete, DeleteSeq, FillRandom, FillSeq,
            FillUniqueRandom, Flush, FlushAndPause, FlushAndWait, Merge, MixGraph, MultiRead, NewIterator,
            Overwrite, OverwriteAndWait, OverwriteLocked, RandomTransaction, Range, ReadMissing, ReadOrMerge,
            ReadOrWrite, ReadRandom, ReadReverse, ReadRows, ReadSeq, ReadWhileScanning, Settle, Statements,
            Update, VerifyChecksums, WaitForCompaction,
        };
        // Every kind by its name: a new one has to choose.
        match self.step.kind {
            FillSeq | FillRandom | FillUniqueRandom | Overwrite | OverwriteAndWait | OverwriteLocked
            | RandomTransaction | Update | Append | Merge | Delete | DeleteSeq => true,
            MixGraph => self.step.mix.mix_put_ratio > 0.0,
            ReadOrMerge => self.step.merge_percent > 0,
            ReadOrWrite => self.step.read_percent < 100,
            ReadRandom
            | ReadMissing
            | ReadWhileScanning
            | MultiRead
            | Range { .. }
            | ReadSeq
            | ReadRows
            | ReadReverse
            | NewIterator
            | VerifyChecksums => false,
            // They bring the tree into a shape, and write nothing of users.
            Settle | Flush | FlushAndWait | FlushAndPause | Compact | Compact0 | Compact1 | CompactLevels
            | WaitForCompaction => false,
            // Steps on servers are told apart above.
            Statements => false,
        }
    }

    /// Whether the bytes of its operations are mostly bytes that they wrote: not of mixes, which count what they read, too.
    pub fn counts_written_bytes(&self) -> bool {
        use StepKind::{MixGraph, ReadOrMerge, ReadOrWrite};
        let mixed = matches!(self.step.kind, MixGraph | ReadOrMerge | ReadOrWrite);
        // Bytes of a step on a server are those that statements returned.
        self.writes() && self.sql.is_none() && !mixed
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

    /// Writes seconds that steps have by their kind into the changes to those steps.
    pub fn say_own_seconds(&mut self) {
        for name in self.step_names() {
            let change = self.step.get(&name);
            let kind = change.and_then(|change| change.kind.as_ref()).unwrap_or(&name);
            if let Some(seconds) = find(kind).and_then(|row| row.own.seconds) {
                self.step.entry(name).or_default().seconds.get_or_insert(seconds);
            }
        }
    }

    /// Sizes on a machine with `memory` bytes and `cores`.
    pub fn sizes(&self, memory: u64, cores: usize) -> Sizes {
        let workload = &self.workload;
        let value_size = workload.mean_value_size();
        let pair = (workload.key_size + value_size) as u64;
        let profile = workload.profile.as_ref().and_then(|name| profiles::find(name, memory, cores));
        let keys = workload.keys.unwrap_or(match (&profile, workload.kind.place()) {
            (None, _) => (memory / 4 / pair).clamp(1000, 2_000_000),
            (Some(profile), WorkloadKind::Byrx | WorkloadKind::Byos) => profile.cached_keys,
            (Some(profile), WorkloadKind::Iobuf | WorkloadKind::Iodir) => profile.uncached_keys,
        });
        let data = (keys * pair) as usize;
        let cache = workload.cache.unwrap_or(match (&profile, workload.kind.place()) {
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
            subcompactions: profile
                .as_ref()
                .map_or(profiles::subcompactions(cores), |profile| profile.subcompactions),
            layout: workload.layout(keys),
            redundancy: workload.redundancy(),
            codecs: workload.codecs(),
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
        let workload = &self.workload;
        let planned = |(row, name, change): (&StepRow, String, &StepChange)| {
            // Each load begins with an empty database, so the last one before a step decides.
            loaded = match row.kind {
                // As many random keys as there are keys leave 1/e of them unwritten.
                StepKind::FillRandom => Some(1.0 - (-1.0f64).exp()),
                StepKind::FillSeq | StepKind::FillUniqueRandom => all_of_them(),
                StepKind::Delete | StepKind::DeleteSeq => None,
                _ => loaded,
            };
            planned_step(name, row, change, sizes, workload, loaded)
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
    workload: &Workload,
    loaded: Option<f64>,
) -> PlannedStep {
    use StepKind::{FillRandom, FillSeq, FillUniqueRandom, Overwrite, ReadSeq};
    let load = matches!(row.kind, FillSeq | FillRandom | FillUniqueRandom);
    let once = row.kind == ReadSeq || row.kind.is_upkeep();
    let usual = row.own.threads.unwrap_or(sizes.threads);
    let threads = match row.kind {
        // Random keys can be written by many; loads in an order of keys, and each key once, by one.
        FillRandom => change.threads.unwrap_or(1),
        _ if load || once => 1,
        _ => change.threads.unwrap_or(usual),
    };
    let some = row.kind == Overwrite && row.name == "overwritesome";
    let ops = match row.kind {
        _ if load => Some(sizes.keys.div_ceil(u64::from(threads))),
        _ if once => Some(1),
        _ if some => Some(((sizes.keys as f64 / f64::from(threads) / 10.0).round() as u64).max(1)),
        _ => None,
    };
    let wal = change.wal.or(workload.wal).unwrap_or(!row.no_wal);
    let durability = match (wal, change.sync.unwrap_or(row.sync)) {
        (true, true) => Durability::Sync,
        (true, false) => Durability::Wal,
        (false, _) => Durability::NoWal,
    };
    // Loads write every key, whatever later steps choose from.
    let own_num = row.own.num.or_else(|| workload.skewed_num(row)).map(|num| num.min(sizes.keys));
    let step = Step {
        name,
        kind: row.kind,
        while_writing: row.while_writing,
        threads,
        ops,
        seconds: change.seconds.or(row.own.seconds).unwrap_or(sizes.seconds),
        durability,
        seek_nexts: change.seek_nexts.unwrap_or(10),
        num: change.num.or(own_num).unwrap_or(sizes.keys),
        key_size: sizes.key_size,
        layout: sizes.layout,
        exp_range: change.read_random_exp_range.unwrap_or(0.0),
        value_size: sizes.value_size,
        value_sizes: sizes.value_sizes,
        redundancy: sizes.redundancy,
        seed: 0,
        writer_rate: change.writer_rate.unwrap_or(workload.writer_rate),
        write_rate: change.write_rate.unwrap_or(0),
        writer_num: change.writer_num.unwrap_or(sizes.keys),
        writer_merges: row.writer_merges,
        merge_operator: String::new(),
        // A step of db_bench alone.
        read_percent: 90,
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
        vector_memtable: row.vector,
        sql: None,
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
