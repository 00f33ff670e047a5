//! An experiment: one question, as data. The file a person writes, and what its keys mean.
//!
//! ```text
//! FILE.toml -> parse.rs (unknown keys named) -> Experiment -> check.rs -> plan.rs: targets x steps x blocks
//! ```
//! Invariant: a file means the same on every machine, except for what it leaves to the machine on purpose
//! (`keys`, `cache`, `background_jobs`); the plan records what those became.
//! Next: `vocabulary.rs` and `steps.rs` for steps, `compaction.rs` for what a database is opened with, `profiles.rs` for
//! machines by name, `planning/plan.rs` for what is made of an experiment.

mod check;
pub mod compaction;
pub(crate) mod parse;
pub mod profiles;
pub mod sql;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod vocabulary;

pub use parse::parse;

use crate::targets::build::Wanted;
use outcrop_lab_load::StepKind;
use outcrop_lab_load::keys::{Generator, KeyLayout, KeyPrefix};
use outcrop_lab_load::mixgraph::MixParameters;
use outcrop_lab_load::transactions::Concurrency;
use outcrop_lab_load::values::{Distribution, Redundancy, ValueSizes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The title in reports.
    pub title: String,
    /// The question it answers, in a sentence or two.
    #[serde(default)]
    pub question: String,
    /// Name of the target everything is divided by; the first target if absent.
    pub base: Option<String>,
    /// Names of steps, in order; the standard sequence if absent.
    pub steps: Option<Vec<String>>,
    /// Data and load.
    pub workload: Workload,
    /// How often and in what order.
    #[serde(default)]
    pub design: Design,
    /// The targets to compare.
    pub target: Vec<TargetSet>,
    /// Named sets of options, chosen by targets.
    #[serde(default)]
    pub config: BTreeMap<String, Config>,
    /// Builds that are made of sources, chosen by targets.
    #[serde(default)]
    pub build: BTreeMap<String, Wanted>,
    /// Changes to single steps, by name.
    #[serde(default)]
    pub step: BTreeMap<String, StepChange>,
}

/// Data and load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// `byrx`: fits the engine's cache; `byos`: fits the operating system's; `iobuf`, `iodir` and the names that begin
    /// so: fits neither.
    pub kind: WorkloadName,
    /// Keys to load; by default a quarter of memory, at most 2 million.
    pub keys: Option<u64>,
    /// Bytes of a key.
    #[serde(default = "default_key_size")]
    pub key_size: usize,
    /// The generator of the keys; RocksDB's by default.
    pub generator: Option<Generator>,
    /// Bytes of the prefix that keys of a group share.
    pub prefix_size: Option<usize>,
    /// Keys of a group.
    pub keys_per_prefix: Option<u64>,
    /// `64.512` or `8.64`: keys that lookups choose from, and range queries.
    pub skew: Option<String>,
    /// Bytes of a value, if all have one size; 400 by default.
    pub value_size: Option<usize>,
    /// `uniform` or `normal`: how sizes of values scatter between the next two.
    pub value_size_distribution: Option<Distribution>,
    /// Smallest value, in bytes.
    pub value_size_min: Option<usize>,
    /// Largest value, in bytes.
    pub value_size_max: Option<usize>,
    /// Share that is left of a compressed value; 0.5 by default.
    pub compression_ratio: Option<f64>,
    /// Of a hundred values, those that are the same; none by default.
    pub same_value_percentage: Option<u32>,
    /// `none`, `snappy`, `lz4` or `zstd`; by default what the kind has.
    pub compression: Option<String>,
    /// Codec of the last level; by default that of the others.
    pub bottommost_compression: Option<String>,
    /// Whether writes go to the WAL; by default they do, but for loads that say otherwise.
    pub wal: Option<bool>,
    /// Merge operator of the database, by RocksDB's name; `put` if a step merges.
    pub merge_operator: Option<String>,
    /// Bytes of block cache; by default as the kind needs.
    pub cache: Option<usize>,
    /// Seconds of each timed step.
    #[serde(default = "default_seconds")]
    pub seconds: f64,
    /// Reading and writing threads.
    #[serde(default = "default_threads")]
    pub threads: u32,
    /// Background threads of the engine; by default half the cores, 3 to 12.
    pub background_jobs: Option<i32>,
    /// Bytes per second of the background writer of the whilewriting steps; 0: as fast as it can.
    #[serde(default = "default_writer_rate")]
    pub writer_rate: u64,
    /// Name of a hardware profile, or `derived`: where keys, cache and background threads come from if they are absent.
    pub profile: Option<String>,
}

impl Workload {
    /// How sizes of values scatter, if they do.
    ///
    /// # Errors
    /// A clause, if the keys contradict each other.
    pub fn value_sizes(&self) -> Result<Option<ValueSizes>, String> {
        let bounds = (self.value_size_min, self.value_size_max);
        match (self.value_size_distribution, bounds) {
            (Some(_), _) if self.value_size.is_some() => {
                Err("give value_size or value_size_distribution, not both".to_string())
            }
            (Some(distribution), (Some(min), Some(max))) => {
                let sizes = ValueSizes { distribution, min, max };
                sizes.check().map(|()| Some(sizes))
            }
            (None, (None, None)) => Ok(None),
            _ => Err("value_size_distribution, value_size_min and value_size_max go together".to_string()),
        }
    }

    /// How numbers become keys, of which there are `keys`.
    pub fn layout(&self, keys: u64) -> KeyLayout {
        let prefix =
            |size| KeyPrefix { size, count: (keys / self.keys_per_prefix.unwrap_or(1).max(1)).max(1) };
        KeyLayout { generator: self.generator.unwrap_or_default(), prefix: self.prefix_size.map(prefix) }
    }

    /// How far values can be compressed.
    pub fn redundancy(&self) -> Redundancy {
        let usual = Redundancy::default();
        Redundancy {
            compression_ratio: self.compression_ratio.unwrap_or(usual.compression_ratio),
            same_percent: self.same_value_percentage.unwrap_or(usual.same_percent),
        }
    }

    /// RocksDB's numbers of the codecs: of all levels, and of the last.
    pub fn codecs(&self) -> [Option<i32>; 2] {
        let [all, last] = self.kind.codecs();
        let number = |own: &Option<String>, usual: Option<&str>| {
            own.as_deref().or(usual).and_then(compaction::compression_number)
        };
        [number(&self.compression, all), number(&self.bottommost_compression, last)]
    }

    /// Keys that a step chooses from under [`Workload::skew`], if that is for it.
    pub fn skewed_num(&self, row: &vocabulary::StepRow) -> Option<u64> {
        let (_, lookups, ranges) = *SKEWS.iter().find(|skew| Some(skew.0) == self.skew.as_deref())?;
        match row.kind {
            StepKind::ReadRandom | StepKind::ReadWhileScanning | StepKind::MultiRead => Some(lookups),
            StepKind::Range { .. } => Some(ranges),
            _ => None,
        }
    }

    /// Bytes of a value, in the mean.
    pub fn mean_value_size(&self) -> usize {
        let drawn = self.value_sizes().unwrap_or_default().map(ValueSizes::mean);
        drawn.or(self.value_size).unwrap_or(DEFAULT_VALUE_SIZE)
    }
}

/// Kinds of skew: name, keys that lookups choose from, and range queries. The writer beside them chooses from all.
pub const SKEWS: [(&str, u64, u64); 2] = [("64.512", 64, 512), ("8.64", 8, 64)];

/// A kind of data set as experiments name it: where it lies, and with some names which codecs it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of the published reports; methods say what they mean")]
pub enum WorkloadName {
    Byrx,
    Byos,
    Iobuf,
    Iodir,
    IodirNone,
    IodirLz4,
    IodirZstd,
    IodirNnl,
    IodirNnz,
    IodirNlz,
}

impl WorkloadName {
    /// Where the data lies.
    pub fn place(self) -> WorkloadKind {
        match self {
            WorkloadName::Byrx => WorkloadKind::Byrx,
            WorkloadName::Byos => WorkloadKind::Byos,
            WorkloadName::Iobuf => WorkloadKind::Iobuf,
            _ => WorkloadKind::Iodir,
        }
    }

    /// The codecs it names: of all levels, and of the last.
    pub fn codecs(self) -> [Option<&'static str>; 2] {
        match self {
            WorkloadName::Byrx | WorkloadName::Byos | WorkloadName::Iobuf | WorkloadName::Iodir => {
                [None, None]
            }
            WorkloadName::IodirNone => [Some("none"), None],
            WorkloadName::IodirLz4 => [Some("lz4"), None],
            WorkloadName::IodirZstd => [Some("zstd"), None],
            WorkloadName::IodirNnl => [Some("none"), Some("lz4")],
            WorkloadName::IodirNnz => [Some("none"), Some("zstd")],
            WorkloadName::IodirNlz => [Some("lz4"), Some("zstd")],
        }
    }
}

/// Where the data lies relative to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Cached by the engine; no compression.
    Byrx,
    /// Cached by the operating system, small block cache; no compression.
    Byos,
    /// Larger than memory for caching, through the page cache; LZ4.
    Iobuf,
    /// As `Iobuf`, with O_DIRECT.
    Iodir,
}

impl WorkloadKind {
    /// As experiments say it.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Byrx => "byrx",
            WorkloadKind::Byos => "byos",
            WorkloadKind::Iobuf => "iobuf",
            WorkloadKind::Iodir => "iodir",
        }
    }
}

/// How often and in what order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Design {
    /// Blocks at least; each holds every target once, in balanced orders.
    pub rounds: usize,
    /// Blocks at most; more than `rounds` are run while some interval is wider than `width`.
    pub max_rounds: Option<usize>,
    /// Stop once every interval's half width is below this share of the ratio.
    pub width: f64,
    /// The smallest change worth a verdict, as a share.
    pub delta: f64,
    /// Seconds in which blocks must end: one that would take longer is not begun, the first excepted.
    pub budget_seconds: Option<u64>,
    /// Seconds in which nothing runs before each session but the first, or by steps before each block: what a device does
    /// after what was written.
    pub rest_seconds: f64,
    /// In what order the targets of a block work; by default by steps where all of them fit into memory at once.
    pub order: Option<Order>,
    /// Seconds of the slices in which targets take turns at steps that read, by default a fifth of a second; 0: such steps are
    /// done whole, too.
    pub slice_seconds: Option<f64>,
    /// Seed of orders and keys; by default the time, and recorded.
    pub seed: Option<u64>,
    /// Enter the base twice under two names: any difference between the two is noise.
    pub aa: bool,
    /// Run one session that is thrown away first.
    pub warmup: bool,
    /// Whether each session loads its own data or starts from a copy of the target's.
    pub data: DataSource,
    /// Allow more threads than cores.
    pub allow_oversubscription: bool,
}

impl Default for Design {
    fn default() -> Design {
        Design {
            rounds: 5,
            max_rounds: None,
            width: 0.02,
            delta: 0.02,
            budget_seconds: None,
            rest_seconds: 0.0,
            order: None,
            slice_seconds: None,
            seed: None,
            aa: true,
            warmup: true,
            data: DataSource::Fresh,
            allow_oversubscription: false,
        }
    }
}

/// In what order the targets of a block work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// A target does all its steps before the next one begins.
    // The order of records that name none.
    #[default]
    Sessions,
    /// All targets do a step, one after the other, before any does the next; a target that is not at work is stopped.
    Steps,
}

impl Order {
    /// In a line.
    pub fn meaning(self) -> &'static str {
        match self {
            Order::Sessions => "by sessions: a target does all steps before the next begins",
            Order::Steps => "by steps: all targets do a step before any does the next",
        }
    }
}

/// Where a session's data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataSource {
    /// Loaded by the session itself; the load is measured.
    Fresh,
    /// Loaded once for each target and copied; the steps before the first measured read are not measured.
    Restored,
}

/// Targets: one engine in versions, builds and configurations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSet {
    /// `outcrop`, a name of the catalogue, or any name with `library`.
    pub engine: String,
    /// Versions of the catalogue, oldest first.
    #[serde(default)]
    pub versions: Vec<String>,
    /// A shared library with RocksDB's C API, instead of versions; with `build` one version may say which it is.
    pub library: Option<std::path::PathBuf>,
    /// The name of that library's build, or of the group of targets in charts over versions.
    pub build: Option<String>,
    /// Names of builds: of `[build.NAME]`, made when the experiment is planned, or of `lab engines build`.
    #[serde(default)]
    pub builds: Vec<String>,
    /// Allocators: `system`, `jemalloc`, `tcmalloc`, or the path of a library to preload.
    #[serde(default = "default_allocators")]
    pub allocators: Vec<String>,
    /// Names of configurations; the defaults if empty.
    #[serde(default)]
    pub configs: Vec<String>,
}

/// A named set of options. An absent setting is the workload's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Everything but the block cache as each engine has it by itself, codec and memtables included.
    #[serde(default)]
    pub defaults: bool,
    /// `leveled`, `universal`, `universal_tm` or `blob`: a published configuration, changed by what follows.
    pub compaction: Option<String>,
    /// Options of the engine as text, `name=value;name=value`, in RocksDB's words.
    #[serde(default)]
    pub options: String,
    /// Bytes of block cache.
    pub cache: Option<usize>,
    /// Bytes of uncompressed data per block.
    pub block_size: Option<usize>,
    /// Bits of bloom filter per key; 0: none.
    pub bloom_bits: Option<f64>,
    /// Share of each operation's time that is burnt in addition: a regression of known size, for testing the lab.
    pub planted: Option<f64>,
    /// `none`, `snappy`, `lz4` or `zstd`.
    pub compression: Option<String>,
    /// Codec of the last level.
    pub bottommost_compression: Option<String>,
    /// Bytes of a memtable.
    pub write_buffer_size: Option<usize>,
    /// L0 tables that start a compaction, slow writes, stop writes.
    pub level0_triggers: Option<[i32; 3]>,
    /// Levels.
    pub num_levels: Option<i32>,
    /// Background threads.
    pub background_jobs: Option<i32>,
}

/// Changes to one step. An absent setting is the workload's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepChange {
    /// Which step of the vocabulary it is, if its name is its own.
    pub kind: Option<String>,
    /// Threads.
    pub threads: Option<u32>,
    /// Seconds.
    pub seconds: Option<f64>,
    /// Keys the step chooses from.
    pub num: Option<u64>,
    /// Moves of a range query.
    pub seek_nexts: Option<u32>,
    /// How much more often lookups ask for some keys than for others.
    pub read_random_exp_range: Option<f64>,
    /// Sync every write.
    pub sync: Option<bool>,
    /// Whether writes go to the WAL.
    pub wal: Option<bool>,
    /// Bytes per second that writes are held to, over all threads.
    pub write_rate: Option<u64>,
    /// Bytes per second of the background writer; 0: as fast as it can.
    pub writer_rate: Option<u64>,
    /// Keys the background writer chooses from.
    pub writer_num: Option<u64>,
    /// Keys of one write or one lookup of several.
    pub batch_size: Option<u32>,
    /// Operations per second that are due, over all threads: an open loop.
    pub arrival_rate: Option<f64>,
    /// `fixed` or `poisson`: how they are spread.
    pub arrival_spacing: Option<String>,
    /// Options of the engine for this step alone, as text; the database is opened anew with them.
    pub options: Option<String>,
    /// Name of a set of parameters of mixgraph.
    pub mix_preset: Option<String>,
    /// Parameters of mixgraph, under db_bench's names; an absent one has db_bench's default.
    pub mix: Option<MixParameters>,
    /// Of a hundred operations of readrandommergerandom, those that merge.
    pub merge_percent: Option<u32>,
    /// How transactions find conflicts.
    pub transactions: Option<Concurrency>,
    /// Sets of counters that a transaction increments.
    pub transaction_sets: Option<u32>,
    /// Whether it is in reports.
    pub report: Option<bool>,
}

/// Bytes of a value in the posts.
const DEFAULT_VALUE_SIZE: usize = 400;

fn default_key_size() -> usize {
    20
}
fn default_seconds() -> f64 {
    60.0
}
fn default_threads() -> u32 {
    1
}
fn default_writer_rate() -> u64 {
    2 << 20
}
fn default_allocators() -> Vec<String> {
    vec!["system".to_string()]
}
