//! From an experiment to a plan: every target, step and session decided before the first runs.
//!
//! ```text
//! block -1: one session that is thrown away
//! block  0: B A' C A     each block holds every target once, in orders that are balanced (`balanced.rs`);
//! block  1: A C A' B     A' is the base under a second name (A/A)
//! ```
//! Whether the targets of a block work one after the other or take turns step by step is `order.rs`'s.
//! Invariants: the plan holds everything a resumed run needs, so that it does the same as the run it resumes;
//! all targets of a block get the same seed of keys.
//! Next: `order.rs`, `run/`.

use crate::experiment::compaction::open_options;
use crate::experiment::sql::embedded;
use crate::experiment::steps::{PlannedStep, Sizes};
use crate::experiment::{Config, DataSource, Experiment, Order, TargetSet, WorkloadKind};
use crate::planning::balanced;
use crate::planning::memory;
use crate::planning::order::{self, Whole};
use crate::planning::scale::{Machine, Scale, Scaled};
use crate::run::child::{self, Source};
use crate::targets::build::{self, Recipe, Wanted};
use crate::targets::builds::Built;
use crate::targets::engines;
use crate::targets::maven::{self, ReferenceError};
use crate::targets::servers::ServerLocation;
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::rng::Mt19937_64;
use outcrop_lab_load::{OpenOptions, StepKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything about an experiment that is decided before it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Title of the experiment.
    pub title: String,
    /// Its question.
    pub question: String,
    /// Index of the target that others are divided by.
    pub base: usize,
    /// Kind of data set.
    pub kind: WorkloadKind,
    /// Sizes.
    pub sizes: Sizes,
    /// Steps of each session.
    pub steps: Vec<PlannedStep>,
    /// The targets to compare.
    pub targets: Vec<PlannedTarget>,
    /// Targets of the file that cannot be had here, and why.
    pub left_out: Vec<(String, String)>,
    /// Seed of orders and keys.
    pub seed: u64,
    /// Blocks at least.
    pub rounds: usize,
    /// Half width of an interval, as a share, below which no more blocks are needed.
    pub width: f64,
    /// Smallest change worth a verdict, as a share.
    pub delta: f64,
    /// Seconds after which no further block begins.
    pub budget_seconds: Option<u64>,
    /// Seconds in which nothing runs before each session but the first, or by steps before each block.
    #[serde(default)]
    pub rest_seconds: f64,
    /// Where sessions get their data.
    pub data: DataSource,
    /// Whether a session is thrown away first.
    pub warmup: bool,
    /// In what order the targets of a block work.
    #[serde(default)]
    pub order: Order,
    /// Why that is not the usual order, if it was not asked for.
    #[serde(default)]
    pub order_reason: Option<String>,
    /// Seconds that a reading step runs unmeasured first.
    #[serde(default)]
    pub run_in: f64,
    /// Seconds of a slice, in which targets that take turns do steps that may be sliced; 0: those are done whole.
    #[serde(default)]
    pub slice_seconds: f64,
    /// Whether more threads than cores were forced.
    pub oversubscribed: bool,
    /// Bytes of the machine's memory; 0 in records that do not say.
    #[serde(default)]
    pub memory: u64,
    /// How the experiment was made smaller than its file says, if it was.
    #[serde(default)]
    pub scaled: Option<Scaled>,
    /// Orders are balanced: each target is as often at each place. Not so in old records, where each was drawn alone.
    #[serde(default)]
    pub balanced: bool,
    /// The order of targets in each block, as many blocks as there may be.
    pub blocks: Vec<Vec<usize>>,
    /// Of a view of some targets: the plan of all that ran, as far as orders need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Whole>,
}

/// One target, resolved on this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// Name in tables.
    pub name: String,
    /// Engine.
    pub engine: String,
    /// Version, if it is of the catalogue.
    pub version: Option<String>,
    /// Everything of the name but the version: targets that share it form one line in charts over versions.
    pub line: String,
    /// Where the engine's functions come from.
    pub source: Source,
    /// SHA-256 of the library.
    pub sha256: Option<String>,
    /// How it was built, or this program if the engine is linked into it.
    #[serde(default)]
    pub built: Built,
    /// Name of the allocator.
    pub allocator: String,
    /// Library to preload for it.
    pub preload: Option<PathBuf>,
    /// Name of the configuration; empty for the defaults.
    pub config: String,
    /// How the database is opened.
    pub open: OpenOptions,
    /// Further options as text.
    pub options: String,
    /// Set for the base's second entry: the index of the base.
    pub twin_of: Option<usize>,
    /// Share of each operation's time that is burnt in addition.
    #[serde(default)]
    pub planted: f64,
    /// Of an embedded engine in an experiment on servers: how durable its writes are when they are answered.
    #[serde(default)]
    pub beside_servers: Option<Durability>,
}

/// One session of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Block; -1 for what is thrown away.
    pub block: i64,
    /// Place in the block.
    pub position: usize,
    /// Target.
    pub target: usize,
}

/// The cost of a plan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Sessions, without optional blocks.
    pub sessions: usize,
    /// Seconds, roughly.
    pub seconds: f64,
    /// Bytes of disk needed at once.
    pub disk_bytes: u64,
    /// Bytes of memory needed at once, the page cache's part included.
    pub memory_bytes: u64,
}

/// Standard deviation of the logarithm of a pair's ratio where nothing better is known: 1.5 %, between what
/// point releases that should be equal show on quiet small hosts (1 %) and on large ones (2 %).
pub const ASSUMED_NOISE: f64 = 0.015;

/// Plans `experiment` for a machine with `memory` bytes and `cores`. May fetch engines.
///
/// # Errors
/// One sentence that says what to change.
pub fn plan(experiment: &Experiment, seed: u64, memory: u64, cores: usize) -> Result<Plan, String> {
    let mut plan = unsettled(experiment, seed, Machine { memory, cores })?;
    order::decide_order(&mut plan, experiment)?;
    Ok(plan)
}

/// The plan in the order that is tried first, with keys that fit it where they are left to the machine.
fn unsettled(experiment: &Experiment, seed: u64, machine: Machine) -> Result<Plan, String> {
    let Machine { memory, cores } = machine;
    let sizes = experiment.sizes(memory, cores);
    let design = &experiment.design;
    let steps = steps_on(experiment, &sizes, cores);
    let oversubscribed = steps.iter().any(|step| step.oversubscribed);
    // A step of one thread beside its writer is the smallest there is: on two cores it is marked, not refused.
    if let Some(step) = steps.iter().find(|step| step.oversubscribed && step.step.threads > 1)
        && !design.allow_oversubscription
    {
        let threads = step.in_flight();
        return Err(format!(
            "step {}: {threads} threads on {cores} cores, a background writer included, leave none for background \
             work; use fewer than {cores}, or set allow_oversubscription = true in [design]",
            step.step.name
        ));
    }
    if !steps.first().is_some_and(PlannedStep::is_load) {
        return Err("the first step must load: begin steps with fillseq, fillseq_wal, fillrandom or \
                    filluniquerandom"
            .to_string());
    }
    let (mut targets, left_out) = resolve_targets(experiment, &sizes)?;
    let base = base_of(experiment.base.as_deref(), &targets, &left_out)?;
    if design.aa {
        let mut twin = targets[base].clone();
        twin.name += " (A/A)";
        twin.twin_of = Some(base);
        targets.push(twin);
    }
    let seed = design.seed.unwrap_or(seed);
    let rounds = design.max_rounds.unwrap_or(design.rounds);
    let blocks = block_orders(targets.len(), rounds, seed);
    let (order, run_in, slice_seconds) = order::tried(design);
    let mut plan = Plan {
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        base,
        kind: experiment.workload.kind.place(),
        sizes,
        steps,
        targets,
        left_out,
        seed,
        rounds: design.rounds,
        width: design.width,
        delta: design.delta,
        budget_seconds: design.budget_seconds,
        rest_seconds: design.rest_seconds,
        data: design.data,
        warmup: design.warmup,
        order,
        order_reason: None,
        run_in,
        slice_seconds,
        oversubscribed,
        memory,
        scaled: None,
        balanced: true,
        blocks,
        whole: None,
    };
    order::fit_keys(&mut plan, experiment, machine);
    Ok(plan)
}

/// The steps of `experiment` on a machine with `cores`.
pub(crate) fn steps_on(experiment: &Experiment, sizes: &Sizes, cores: usize) -> Vec<PlannedStep> {
    let mut steps = experiment.planned_steps(sizes);
    steps.iter_mut().for_each(|step| step.oversubscribed = step.in_flight() as usize >= cores.max(2));
    steps
}

/// As [`plan`], with the experiment changed as `scale` says.
///
/// # Errors
/// One sentence that says what to change.
pub fn plan_scaled(
    experiment: &Experiment,
    seed: u64,
    machine: Machine,
    scale: &Scale,
) -> Result<Plan, String> {
    let scaled = scale.apply(experiment)?;
    let mut plan = unsettled(&scaled, seed, machine)?;
    scale.fit(&mut plan, &scaled, experiment, machine)?;
    order::decide_order(&mut plan, &scaled)?;
    Ok(plan)
}

/// A balanced order of `targets` for each of `blocks`.
pub(crate) fn block_orders(targets: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    (0..blocks).map(|block| balanced::order(targets, block, seed)).collect()
}

/// An order of `targets` for each of `blocks`, each drawn alone, by Fisher and Yates: as old records have them.
pub(crate) fn drawn_orders(targets: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = Mt19937_64::new(seed);
    let block = |_| {
        let mut order: Vec<usize> = (0..targets).collect();
        for last in (1..targets).rev() {
            order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
        }
        order
    };
    (0..blocks).map(block).collect()
}

type Resolved = (Vec<PlannedTarget>, Vec<(String, String)>);

/// Engine and version of every library that the experiment has made of sources.
fn builds_of(experiment: &Experiment) -> Vec<(&str, Option<&str>)> {
    let mut all = Vec::new();
    for set in &experiment.target {
        let made = set.builds.iter().filter(|name| experiment.build.contains_key(*name)).count();
        let versions: Vec<Option<&str>> = match set.versions.as_slice() {
            [] => vec![None],
            versions => versions.iter().map(|version| Some(version.as_str())).collect(),
        };
        for version in versions {
            all.extend(std::iter::repeat_n((set.engine.as_str(), version), made));
        }
    }
    all
}

fn resolve_targets(experiment: &Experiment, sizes: &Sizes) -> Result<Resolved, String> {
    let mut resolving = Resolving::of(experiment, sizes);
    if let Some(notice) = build::notice(&builds_of(experiment), build::cores()) {
        eprintln!("{notice}");
    }
    for set in &experiment.target {
        let versions: Vec<Option<&String>> =
            if set.versions.is_empty() { vec![None] } else { set.versions.iter().map(Some).collect() };
        let builds = Build::all_of(set, experiment);
        for (version, build) in
            versions.into_iter().flat_map(|version| builds.iter().map(move |b| (version, b)))
        {
            let entry = Entry { set, version, build };
            let found = match entry.library() {
                Ok(found) => found,
                Err(ReferenceError::Unavailable(why)) => {
                    resolving.left_out.push((entry.name(), why));
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            };
            resolving.add(entry, &found);
        }
    }
    let Resolving { targets, left_out, refused, .. } = resolving;
    // An option that some versions lack leaves those out; one that nobody knows is misspelt.
    let taken = |config: &str| targets.iter().any(|target| target.config == config);
    if let Some((_, why)) = refused.iter().find(|(config, _)| !taken(config)) {
        return Err(why.clone());
    }
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].iter().any(|other| other.name == target.name) {
            return Err(format!("two targets are called {}; tell them apart with build", target.name));
        }
    }
    match left_out.first() {
        Some((name, why)) if targets.is_empty() => {
            Err(format!("no target is left to measure; {name}: {why}"))
        }
        _ => Ok((targets, left_out)),
    }
}

/// Which build of an engine is meant.
enum Build<'a> {
    /// The published one, this program, or `library`.
    Given,
    /// One that is made of sources, by its name.
    Made(&'a str, Option<&'a Wanted>),
}

impl<'a> Build<'a> {
    fn all_of(set: &'a TargetSet, experiment: &'a Experiment) -> Vec<Build<'a>> {
        if set.builds.is_empty() {
            return vec![Build::Given];
        }
        set.builds.iter().map(|name| Build::Made(name, experiment.build.get(name))).collect()
    }
}

/// One engine in one version and one build.
#[derive(Clone, Copy)]
struct Entry<'a> {
    set: &'a TargetSet,
    version: Option<&'a String>,
    build: &'a Build<'a>,
}

impl Entry<'_> {
    /// The name of the build, if it has one.
    fn build_name(&self) -> Option<&str> {
        match self.build {
            Build::Given => self.set.build.as_deref(),
            Build::Made(name, _) => Some(name),
        }
    }

    fn name(&self) -> String {
        let own_build = self.set.library.is_some() || matches!(self.build, Build::Made(..));
        match (self.version, self.build_name()) {
            (Some(version), Some(build)) if own_build => format!("{}@{version}-{build}", self.set.engine),
            (Some(version), _) => format!("{}@{version}", self.set.engine),
            (None, Some(build)) => format!("{}@{build}", self.set.engine),
            (None, None) => self.set.engine.clone(),
        }
    }

    /// Where the engine's functions come from, and what they were made of if that was done here.
    fn library(&self) -> Result<(Source, Option<Recipe>), ReferenceError> {
        if let Build::Made(name, wanted) = self.build {
            let made = match wanted {
                Some(wanted) => build::make(&self.set.engine, self.version.map(String::as_str), wanted),
                None => build::named(&self.set.engine, self.version.map(String::as_str), name)
                    .ok_or_else(|| "it was removed from the cache".to_string()),
            };
            let made = made.map_err(ReferenceError::Unavailable)?;
            return Ok((Source::Library(made.library), Some(made.recipe)));
        }
        if let Some(path) = &self.set.library {
            return if path.exists() {
                let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Ok((Source::Library(absolute), None))
            } else {
                Err(ReferenceError::Unavailable(format!("{}: no such library", path.display())))
            };
        }
        match self.version {
            Some(version) => {
                maven::obtain(&self.set.engine, version).map(|path| (Source::Library(path), None))
            }
            None => Ok((Source::InProcess, None)),
        }
    }
}

/// Targets as far as they are resolved.
struct Resolving<'a> {
    experiment: &'a Experiment,
    sizes: &'a Sizes,
    /// Texts of options of steps, each once; empty for none.
    step_options: Vec<String>,
    targets: Vec<PlannedTarget>,
    left_out: Vec<(String, String)>,
    /// Configurations that some engine does not understand, and why.
    refused: Vec<(String, String)>,
}

impl<'a> Resolving<'a> {
    fn of(experiment: &'a Experiment, sizes: &'a Sizes) -> Resolving<'a> {
        let mut step_options: Vec<String> =
            experiment.planned_steps(sizes).into_iter().map(|step| step.options).collect();
        step_options.sort();
        step_options.dedup();
        let (targets, left_out, refused) = (Vec::new(), Vec::new(), Vec::new());
        Resolving { experiment, sizes, step_options, targets, left_out, refused }
    }

    /// Adds the targets of one library: with each allocator in each configuration.
    fn add(&mut self, entry: Entry<'_>, (source, recipe): &(Source, Option<Recipe>)) {
        let set = entry.set;
        let sha256 = match source {
            Source::Library(path) => match checked(path) {
                Ok(sum) => Some(sum),
                Err(why) => {
                    self.left_out.push((entry.name(), why));
                    return;
                }
            },
            Source::InProcess | Source::Server(_) => None,
        };
        let mut built = Built::read(match source {
            Source::Library(path) => path,
            Source::InProcess | Source::Server(_) => Path::new("/proc/self/exe"),
        });
        built.recipe.clone_from(recipe);
        let configs: Vec<&str> =
            if set.configs.is_empty() { vec![""] } else { set.configs.iter().map(String::as_str).collect() };
        for allocator in &set.allocators {
            let suffix = match allocator.as_str() {
                "system" => String::new(),
                path => format!("+{}", path.rsplit('/').next().unwrap_or(path)),
            };
            let preload = engines::allocator(allocator).and_then(|preload| {
                child::try_load(source, preload.as_deref())?;
                Ok(preload)
            });
            let preload = match preload {
                Ok(preload) => preload,
                Err(why) => {
                    self.left_out.push((format!("{}{suffix}", entry.name()), why));
                    continue;
                }
            };
            for config in &configs {
                let tail = if config.is_empty() { suffix.clone() } else { format!("{suffix}/{config}") };
                let build = entry.build_name().map_or(String::new(), |build| format!("@{build}"));
                let line = format!("{}{build}{tail}", set.engine);
                let target = PlannedTarget {
                    name: format!("{}{tail}", entry.name()),
                    engine: set.engine.clone(),
                    version: entry.version.cloned(),
                    line,
                    source: source.clone(),
                    sha256: sha256.clone(),
                    built: built.clone(),
                    allocator: allocator.clone(),
                    preload: preload.clone(),
                    config: config.to_string(),
                    ..self.configured(config)
                };
                self.add_if_understood(target);
            }
        }
    }

    /// The target with the settings of a configuration.
    fn configured(&self, name: &str) -> PlannedTarget {
        let defaults = Config::default();
        let config = self.experiment.config.get(name).unwrap_or(&defaults);
        PlannedTarget {
            name: String::new(),
            engine: String::new(),
            version: None,
            line: String::new(),
            source: Source::InProcess,
            sha256: None,
            built: Built::default(),
            allocator: String::new(),
            preload: None,
            config: String::new(),
            open: open_options(self.experiment.workload.kind.place(), self.sizes, config),
            options: config.text(self.sizes),
            twin_of: None,
            planted: config.planted.unwrap_or(0.0),
            beside_servers: None,
        }
    }

    /// Adds `target` unless its engine does not understand its options, or those of a step.
    fn add_if_understood(&mut self, target: PlannedTarget) {
        let texts = self.step_options.iter().map(|step| child::joined(&target.options, step));
        let texts: Vec<_> =
            texts.filter(|text| !text.is_empty()).map(|text| (target.open.clone(), text)).collect();
        let understood = if texts.is_empty() { Ok(()) } else { child::try_options(&target.source, texts) };
        match understood {
            Ok(()) => self.targets.push(target),
            Err(why) => {
                self.refused.push((target.config.clone(), format!("{}: {why}", target.name)));
                self.left_out.push((target.name, why));
            }
        }
    }
}

/// The checksum of a library that can be driven.
pub(crate) fn checked(path: &Path) -> Result<String, String> {
    let capabilities = engines::Capabilities::probe(path)?;
    if !capabilities.can_be_driven() {
        return Err(format!("{} {}", path.display(), capabilities.words()));
    }
    maven::checksum(path).map_err(|error| error.to_string())
}

pub(crate) fn base_of(
    wanted: Option<&str>,
    targets: &[PlannedTarget],
    left_out: &[(String, String)],
) -> Result<usize, String> {
    let Some(wanted) = wanted else { return Ok(0) };
    if let Some(index) = targets.iter().position(|target| target.name == wanted) {
        return Ok(index);
    }
    if let Some((_, why)) = left_out.iter().find(|(name, _)| wanted.starts_with(name)) {
        return Err(format!("the base {wanted} cannot be had: {why}"));
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    Err(format!("there is no target {wanted} to be the base; there are {}", names.join(", ")))
}

impl Plan {
    /// Sessions in the order they run, as many as there may be.
    pub fn slots(&self) -> Vec<Slot> {
        let warmup = self.warmup.then_some(Slot { block: -1, position: 0, target: self.base });
        let blocks = self.blocks.iter().enumerate().flat_map(|(block, order)| {
            let slot = move |(position, &target)| Slot { block: block as i64, position, target };
            order.iter().enumerate().map(slot)
        });
        warmup.into_iter().chain(blocks).collect()
    }

    /// The seed of keys in a block; steps add their own number times 1000.
    pub fn block_seed(&self, block: i64) -> u64 {
        self.seed.wrapping_add(((block + 2) as u64).wrapping_mul(1_000_000))
    }

    /// Number of steps that make up a data set which sessions copy: those before the first reported one that
    /// does not load.
    pub fn shared_steps(&self) -> usize {
        match self.data {
            DataSource::Fresh => 0,
            DataSource::Restored => {
                self.steps.iter().position(|step| step.report && !step.is_load()).unwrap_or(self.steps.len())
            }
        }
    }

    /// Names of the steps in reports, in order.
    pub fn reported(&self) -> Vec<String> {
        let measured = &self.steps[self.shared_steps()..];
        measured.iter().filter(|step| step.report).map(|step| step.step.name.clone()).collect()
    }

    /// Step `number` as `target` does it: an embedded engine in an experiment on servers has operations in place of statements. Of a
    /// step that it has no operation for it gets the server's.
    pub fn step_of(&self, number: usize, target: usize) -> PlannedStep {
        let planned = &self.steps[number];
        let durability = self.targets[target].beside_servers;
        let own = durability.and_then(|durability| embedded::on_engine(planned, &self.sizes, durability));
        own.unwrap_or_else(|| planned.clone())
    }

    /// The weaknesses that come from the plan itself, in sentences.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = self.scaled.iter().map(Scaled::sentence).collect();
        cautions.extend(self.order_reason.as_ref().map(|_| self.order_sentence()));
        if self.oversubscribed {
            let text = "as many threads as cores, or more: background work competes with the load";
            cautions.push(text.to_string());
        }
        if self.kind == WorkloadKind::Iobuf && self.sizes.data_bytes() < self.memory / 2 {
            cautions.push(format!(
                "the data ({} MB) fit into memory ({} GB): reads that miss the block cache come from the page cache, \
                 not from the device",
                self.sizes.data_bytes() >> 20,
                self.memory >> 30
            ));
        }
        cautions
    }

    /// Time and space.
    pub fn estimate(&self) -> Estimate {
        /// Keys per second of a load that nothing compresses, as two cores of 2025 do it.
        const LOAD: f64 = 700_000.0;
        /// Seconds that stopping, continuing and running in take.
        const BETWEEN_SLICES: f64 = 0.03;
        /// Seconds in which a server's data directory is made, and it starts and stops.
        const SERVER: f64 = 4.0;
        /// Bytes of a server's data directory beside its tables: catalogues, and the log of what is written.
        const SERVER_BYTES: u64 = 400 << 20;
        let compresses = matches!(self.kind, WorkloadKind::Iobuf | WorkloadKind::Iodir);
        // Times of a load: how long it takes to do something with all the data.
        let load = self.sizes.keys as f64 / LOAD * if compresses { 2.5 } else { 1.0 };
        let run_in = |step: &PlannedStep| if step.takes_run_in() { self.run_in } else { 0.0 };
        let seconds = |step: &PlannedStep| match step.step.kind {
            StepKind::FillSeq => load,
            StepKind::FillRandom | StepKind::FillUniqueRandom => load * 2.0,
            StepKind::ReadSeq => load / 3.0,
            StepKind::Settle | StepKind::Compact0 | StepKind::Compact1 | StepKind::Compact => load + 1.0,
            StepKind::CompactLevels => 2.0 * load + 1.0,
            StepKind::FlushAndPause => 11.0,
            StepKind::Flush | StepKind::FlushAndWait | StepKind::WaitForCompaction => 1.0,
            StepKind::Overwrite if step.step.ops.is_some() => load / 2.0,
            StepKind::OverwriteAndWait => step.step.seconds * 1.5,
            _ => step.step.seconds + run_in(step),
        };
        let seconds = |(number, step): (usize, &PlannedStep)| {
            seconds(step) + (self.slices(number) - 1) as f64 * BETWEEN_SLICES
        };
        let shared = &self.steps[..self.shared_steps()];
        let sessions = self.targets.len() * self.rounds + usize::from(self.warmup);
        let datasets = if shared.is_empty() { 0 } else { self.targets.len() };
        let numbered = || self.steps.iter().enumerate().map(seconds);
        let is_server = |target: &&PlannedTarget| match &target.source {
            Source::Server(spec) => matches!(spec.place, ServerLocation::Own { .. }),
            Source::InProcess | Source::Library(_) => false,
        };
        let servers = self.targets.iter().filter(is_server).count();
        let around = if servers > 0 { SERVER } else { 1.0 };
        let own_seconds: f64 = numbered().skip(shared.len()).sum::<f64>() + around;
        let shared_seconds: f64 = numbered().take(shared.len()).sum();
        let turns = match self.order {
            Order::Steps => self.rounds + usize::from(self.warmup),
            Order::Sessions => sessions,
        };
        let together = match self.order {
            Order::Steps => self.targets.len(),
            Order::Sessions => 1,
        };
        let present = turns as f64 * memory::seconds_to_make_present(&self.sizes, together);
        let rests = self.rest_seconds * turns.saturating_sub(1) as f64;
        // A database without background work is about as large as its data; the one that is in its turn, and compacts, needs as much
        // again and more.
        let databases = match self.order {
            Order::Steps => self.targets.len() as u64 + 2,
            Order::Sessions => 3,
        };
        Estimate {
            sessions,
            seconds: own_seconds * sessions as f64 + shared_seconds * datasets as f64 + present + rests,
            disk_bytes: self.sizes.data_bytes() * (databases + datasets as u64)
                + SERVER_BYTES * servers as u64,
            memory_bytes: self.memory_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;

    const TINY: &str = "title = 't'\n[workload]\nkind = 'byrx'\nkeys = 1000\nseconds = 1\n\
        [design]\nrounds = 3\nseed = 7\n[[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n\
        [config.a]\n[config.b]\nblock_size = 4096\n";

    fn planned(text: &str) -> Result<Plan, String> {
        plan(&parse("t.toml", text).unwrap(), 1, 8 << 30, 4)
    }

    #[test]
    fn rests_are_part_of_the_time() {
        let with = |more: &str| planned(&TINY.replace("seed = 7", &format!("seed = 7\n{more}"))).unwrap();
        let rests = |order: &str| {
            let rest = with(&format!("{order}rest_seconds = 60")).estimate().seconds;
            (rest - with(order).estimate().seconds).round()
        };
        assert_eq!(rests("order = 'steps'\n"), 3.0 * 60.0, "the session thrown away and three blocks");
        assert_eq!(rests("order = 'sessions'\n"), 9.0 * 60.0, "it and nine sessions");
    }

    #[test]
    fn blocks_hold_every_target_once_and_depend_on_the_seed_alone() {
        let plan = planned(TINY).unwrap();
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["outcrop/a", "outcrop/b", "outcrop/a (A/A)"]);
        assert_eq!(plan.targets[2].twin_of, Some(0));
        assert_eq!(plan.targets[1].open.block_size, 4096);
        assert!(plan.targets[1].built.compilers[0].contains(' '), "{:?}", plan.targets[1].built);
        for block in &plan.blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert_eq!(plan.blocks, planned(TINY).unwrap().blocks);
        let firsts = |target| plan.blocks.iter().filter(|block| block[0] == target).count();
        assert_eq!([firsts(0), firsts(1), firsts(2)], [1; 3], "three blocks of three targets");
        assert_eq!(plan.slots().len(), 10);
        assert_eq!(plan.slots()[0].block, -1);
    }

    #[test]
    fn oversubscription_is_refused_unless_forced() {
        let text = TINY.replace("seconds = 1\n", "seconds = 1\nthreads = 4\n");
        assert!(planned(&text).unwrap_err().contains("4 threads on 4 cores"));
        let forced = text.replace("rounds = 3", "rounds = 3\nallow_oversubscription = true");
        assert!(planned(&forced).unwrap().oversubscribed);
        let text = TINY.replace("seconds = 1\n", "seconds = 1\nthreads = 3\n");
        let error = planned(&text).unwrap_err();
        assert!(error.contains("whilewriting: 4 threads on 4 cores"), "the writer is a thread: {error}");
        let reads = format!("steps = ['fillseq', 'readrandom']\n{text}");
        assert!(!planned(&reads).unwrap().oversubscribed);
        let smallest = plan(&parse("t.toml", TINY).unwrap(), 1, 8 << 30, 2).unwrap();
        assert!(smallest.oversubscribed, "one thread and a writer on two cores are marked");
    }

    #[test]
    fn what_cannot_be_had_is_left_out_unless_it_is_the_base() {
        let more = "[[target]]\nengine = 'other'\nlibrary = '/no/such.so'\n";
        let plan = planned(&format!("{TINY}{more}")).unwrap();
        assert_eq!(plan.left_out[0].0, "other");
        let text = format!("base = 'other'\n{TINY}{more}");
        assert!(planned(&text).unwrap_err().contains("/no/such.so"));
        let text = format!("base = 'x'\n{TINY}");
        assert!(planned(&text).unwrap_err().contains("outcrop/a"));
    }

    #[test]
    fn builds_of_one_version_have_names_and_lines_of_their_own() {
        let more =
            "[[target]]\nengine = 'rocksdb'\nversions = ['6.29.5']\nlibrary = '/no/gcc.so'\nbuild = 'gcc'\n";
        let left = planned(&format!("{TINY}{more}")).unwrap().left_out;
        assert_eq!(left[0].0, "rocksdb@6.29.5-gcc");
        let unnamed = more.replace("build = 'gcc'\n", "");
        assert!(parse("t.toml", &format!("{TINY}{unnamed}")).unwrap_err().contains("takes a build's name"));
        let two = more.replace("['6.29.5']", "['6.29.5', '7.10.2']");
        assert!(parse("t.toml", &format!("{TINY}{two}")).is_err());
    }

    #[test]
    fn restored_sessions_share_the_steps_before_the_first_measured_one() {
        let text = TINY.replace("seed = 7", "seed = 7\ndata = 'restored'");
        let plan = planned(&text).unwrap();
        assert_eq!(plan.shared_steps(), 2, "the load and the warm-up");
        assert!(!plan.reported().contains(&"fillseq".to_string()));
        assert!(plan.estimate().seconds > 60.0);
    }
}
