//! `outcrop lab run`: a plan carried out, one session after the other, each step recorded when it ends.
//!
//! ```text
//! for each slot of the plan without a session that counts:
//!     data -> session.rs: child, sampler -> store: step by step -> outcome
//! after each block past the least: stop if every interval is narrow enough
//! ```
//! Invariants: a run may be killed at any moment; `--resume` carries out the rest of the same plan, and a
//! session that was cut short is done again whole. An engine that fails ends its session, not the run. A full
//! disk ends the run, and counts against nobody.
//! Next: `session.rs`.

mod progress;
mod session;

use crate::data_dir::DataDir;
use crate::experiment;
use crate::host::Host;
use crate::host::canary::{self, Canary};
use crate::memory;
use crate::plan::{Plan, Slot};
use crate::restore;
use crate::results::Results;
use crate::scale::{Machine, Scale};
use crate::store::{ExperimentRow, Outcome, Store, StoreError};
use crate::text::{duration, rfc3339};
use progress::Progress;
use session::{Ended, Session};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Flags of `lab run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    /// The experiment's file.
    pub file: PathBuf,
    /// Go on with the latest unfinished run of this file.
    #[arg(long)]
    pub resume: bool,
    /// Directory for databases; what the run put there is removed afterwards.
    #[arg(long, default_value = "outcrop-lab-data")]
    pub data: PathBuf,
    /// Another size than the file says.
    #[command(flatten)]
    pub scale: Scale,
    /// Seconds between samples of the operating system.
    #[arg(long, default_value_t = 1.0)]
    pub interval: f64,
}

/// Sessions in a row that may fail before a target's others are skipped.
const FAILURES: usize = 2;
/// Free bytes below which a failure is put down to the disk.
const DISK_FULL: u64 = 64 << 20;
/// Number of the directory of target 0's data set; sessions have lower ones.
const DATASETS: usize = 1_000_000;

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

/// The time as the store keeps it.
fn now() -> String {
    rfc3339(unix_seconds())
}

/// Plans the experiment of `file` for this machine, changed as `scale` says; gives it with its text.
///
/// # Errors
/// One sentence.
pub fn plan_file(file: &Path, scale: &Scale) -> Result<(Plan, String), String> {
    let (experiment, text) = experiment::read(file)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let machine = Machine { memory: memory::total_bytes(), cores };
    Ok((crate::plan::plan_scaled(&experiment, unix_seconds(), machine, scale)?, text))
}

/// Where a run begins.
pub enum Start {
    /// With a new experiment.
    New {
        /// Name of its file.
        file: String,
        /// Text of its file.
        text: String,
        /// Its plan.
        plan: Box<Plan>,
    },
    /// Where the latest unfinished run of a file stopped.
    Rest {
        /// Name of the file.
        file: String,
        /// Its text.
        text: String,
    },
}

/// Runs an experiment, or the rest of one; gives its number.
///
/// # Errors
/// One sentence that says what to do. What was measured until then is recorded.
pub fn run(store: &Path, arguments: &RunArguments) -> Result<i64, String> {
    let interval = Duration::try_from_secs_f64(arguments.interval)
        .ok()
        .filter(|interval| *interval >= Duration::from_millis(50))
        .ok_or("--interval must be 0.05 or more")?;
    let file = arguments.file.display().to_string();
    let start = if arguments.resume {
        if !arguments.scale.is_none() {
            return Err(
                "--resume goes on with the plan as it was begun: leave out --budget, --keys, --seconds \
                        and --rounds"
                    .to_string(),
            );
        }
        let (_, text) = experiment::read(&arguments.file)?;
        Start::Rest { file: file.clone(), text }
    } else {
        let (plan, text) = plan_file(&arguments.file, &arguments.scale)?;
        Start::New { file: file.clone(), text, plan: Box::new(plan) }
    };
    carry_out(store, &arguments.data, interval, start).map_err(|error| match error {
        RunError::Refused(why) => why,
        RunError::Stopped(why) => format!("{why}: go on with outcrop lab run {file} --resume"),
    })
}

/// Why an experiment has no end.
#[derive(Debug)]
pub enum RunError {
    /// It did not begin.
    Refused(String),
    /// It was stopped, and can go on.
    Stopped(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Refused(why) | RunError::Stopped(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RunError {}

impl From<String> for RunError {
    fn from(why: String) -> RunError {
        RunError::Refused(why)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> RunError {
        RunError::Refused(error.to_string())
    }
}

/// Runs what `start` says, with databases in `data`; gives the experiment's number.
///
/// # Errors
/// One sentence that says what to do. What was measured until then is recorded.
pub fn carry_out(store: &Path, data: &Path, interval: Duration, start: Start) -> Result<i64, RunError> {
    // Nothing is created for a file with a mistake in it, nor where there is no room for data.
    let place = data;
    let data = DataDir::take(place)?;
    let (mut store, experiment) = match start {
        Start::New { file, text, plan } => {
            data.check_space(plan.estimate().disk_bytes)?;
            begun(store, place, &file, &text, &plan)?
        }
        Start::Rest { file, text } => resumed(store, &file, &text)?,
    };
    let estimate = experiment.plan.estimate();
    eprintln!(
        "experiment {}: {} sessions, about {}",
        experiment.id,
        estimate.sessions,
        duration(estimate.seconds)
    );
    let mut run = Run {
        plan: &experiment.plan,
        id: experiment.id,
        device: experiment.host.facts.device.clone(),
        data: &data,
        interval,
        keep_present: memory::is_taken_back(),
        datasets: HashMap::new(),
        failures: HashMap::new(),
        progress: Progress::new(estimate.sessions),
        usual: None,
    };
    let outcome = run.all(&mut store);
    run.progress.clear();
    match outcome {
        Ok(()) => {
            store.finish(experiment.id)?;
            Ok(experiment.id)
        }
        Err(stop) => Err(RunError::Stopped(format!("{stop}; what was measured is kept"))),
    }
}

/// The experiment to go on with.
fn resumed(path: &Path, file: &str, text: &str) -> Result<(Store, ExperimentRow), String> {
    let store = Store::open_existing(path)?;
    let found = store.unfinished(text)?.ok_or_else(|| {
        format!("no unfinished run of {file} as it is now; without --resume a new one begins")
    })?;
    Ok((store, found))
}

/// A new experiment, recorded with the machine it runs on.
fn begun(
    path: &Path,
    data: &Path,
    file: &str,
    text: &str,
    plan: &Plan,
) -> Result<(Store, ExperimentRow), String> {
    for (name, why) in &plan.left_out {
        eprintln!("going on without {name}: {why}");
    }
    let store = Store::open(path)?;
    let id = store.begin(&now(), file, text, plan, &Host::read(data))?;
    for (name, why) in &plan.left_out {
        store.event(id, &now(), &format!("{name} was left out: {why}"))?;
    }
    let experiment = store.experiment(id)?;
    Ok((store, experiment))
}

/// Why a run ends before its plan does.
fn disk_full(what: &str) -> String {
    format!("the disk is full ({what}); free space")
}

struct Run<'a> {
    plan: &'a Plan,
    id: i64,
    device: String,
    data: &'a DataDir,
    interval: Duration,
    /// Whether the host takes free memory back.
    keep_present: bool,
    /// Directories of the data sets that sessions copy.
    datasets: HashMap<usize, PathBuf>,
    /// Sessions in a row that failed, by target.
    failures: HashMap<usize, usize>,
    progress: Progress,
    /// The canary of the first session.
    usual: Option<Canary>,
}

impl Run<'_> {
    fn all(&mut self, store: &mut Store) -> Result<(), String> {
        let begun = Instant::now();
        let sessions = store.sessions(self.id)?;
        self.usual = sessions.first().map(|session| session.canary);
        let counted: HashSet<(i64, usize)> =
            sessions.iter().map(|session| (session.block, session.position)).collect();
        let mut last_block = -1;
        let mut block_began = Duration::ZERO;
        for slot in self.plan.slots() {
            if slot.block > last_block {
                // As long as the last one: a block that was done before a resume takes no time and says nothing.
                let end = begun.elapsed() + (begun.elapsed() - block_began);
                if let Some(why) = self.enough(store, slot.block as usize, end)? {
                    store.event(self.id, &now(), &why)?;
                    return Ok(());
                }
                (last_block, block_began) = (slot.block, begun.elapsed());
            }
            if counted.contains(&(slot.block, slot.position)) {
                self.progress.done += 1;
                continue;
            }
            self.slot(store, slot)?;
            self.progress.done += 1;
        }
        Ok(())
    }

    /// Why no further block is needed after `blocks` of them, if none is; the next would end at `end`.
    fn enough(&self, store: &Store, blocks: usize, end: Duration) -> Result<Option<String>, String> {
        // Half a block is worth nothing: one that would end too late is not begun, the first excepted.
        if let Some(budget) = self.plan.budget_seconds.filter(|budget| blocks > 0 && end.as_secs() >= *budget)
        {
            let budget = duration(budget as f64);
            return Ok(Some(format!("the budget of {budget} had no room for another block after {blocks}")));
        }
        if blocks < self.plan.rounds {
            return Ok(None);
        }
        let results = Results::load(store, self.id)?;
        let widest = results.widest_interval();
        Ok(match widest {
            Some(width) if width <= self.plan.width => Some(format!(
                "after {blocks} blocks every interval was within {:.1} %",
                self.plan.width * 100.0
            )),
            _ => None,
        })
    }

    fn slot(&mut self, store: &mut Store, slot: Slot) -> Result<(), String> {
        let target = &self.plan.targets[slot.target];
        if self.failures.get(&slot.target).is_some_and(|failures| *failures >= FAILURES) {
            let id = store.begin_session(self.id, slot, &now(), &Canary::default())?;
            let why = format!("{} failed {FAILURES} times in a row", target.name);
            return Ok(store.end_session(id, Outcome::Skipped, &now(), Some(&why), None)?);
        }
        // Its cache and memtables, and its files in the page cache.
        memory::make_present(self.plan.sizes.cache as u64 + 2 * self.plan.sizes.data_bytes());
        let canary = canary::run();
        self.notice_slowness(store, &canary)?;
        let number = self.progress.done;
        let dir = self.data.session(number)?;
        let prepared = self.prepare(store, slot, &dir);
        let id = store.begin_session(self.id, slot, &now(), &canary)?;
        let ended = match prepared {
            Ok(()) => {
                let mut session = Session {
                    plan: self.plan,
                    slot,
                    first: self.plan.shared_steps(),
                    last: self.plan.steps.len(),
                    dir: &dir,
                    device: &self.device,
                    interval: self.interval,
                    keep_present: self.keep_present,
                    progress: &mut self.progress,
                };
                session.run(&mut |record| store.record_step(id, record))
            }
            Err(ended) => ended,
        };
        let facts = session::engine_facts(&dir);
        let outcome = self.conclude(store, slot, id, ended, &facts);
        self.data.remove(number)?;
        outcome
    }

    /// Puts the target's data into `dir`, if sessions of this plan do not load their own.
    fn prepare(&mut self, store: &mut Store, slot: Slot, dir: &Path) -> Result<(), Ended> {
        if self.plan.shared_steps() == 0 {
            return Ok(());
        }
        // The A/A twin starts from the base's own data: the two then differ in nothing.
        let owner = self.plan.targets[slot.target].twin_of.unwrap_or(slot.target);
        if !self.datasets.contains_key(&owner) {
            let home = self.data.session(DATASETS + owner).map_err(Ended::Failed)?;
            let mut session = Session {
                plan: self.plan,
                slot: Slot { block: session::DATASET, position: 0, target: owner },
                first: 0,
                last: self.plan.shared_steps(),
                dir: &home,
                device: &self.device,
                interval: self.interval,
                keep_present: self.keep_present,
                progress: &mut self.progress,
            };
            match session.run(&mut |_| Ok(())) {
                Ended::Done => {}
                Ended::Failed(error) => return Err(Ended::Failed(format!("loading the data set: {error}"))),
                ended => return Err(ended),
            }
            let name = &self.plan.targets[owner].name;
            let text = format!("the data set of {name} was loaded");
            store.event(self.id, &now(), &text).map_err(Ended::Store)?;
            self.datasets.insert(owner, home);
        }
        restore::restore(&self.datasets[&owner], dir).map(|_| ()).map_err(Ended::Failed)
    }

    fn conclude(
        &mut self,
        store: &Store,
        slot: Slot,
        id: i64,
        ended: Ended,
        facts: &session::EngineFacts,
    ) -> Result<(), String> {
        let version = facts.version.as_deref();
        match ended {
            Ended::Done => {
                self.failures.remove(&slot.target);
                if let Some(options) = &facts.options {
                    store.record_options(self.id, slot.target, options)?;
                }
                Ok(store.end_session(id, Outcome::Done, &now(), None, version)?)
            }
            Ended::Store(StoreError::Full(text)) => Err(disk_full(&text)),
            Ended::Store(error) => Err(error.to_string()),
            Ended::NotStarted(error) => Err(error),
            Ended::Failed(error) => {
                if self.data.check_space(DISK_FULL).is_err() {
                    return Err(disk_full(&error));
                }
                *self.failures.entry(slot.target).or_default() += 1;
                let name = &self.plan.targets[slot.target].name;
                self.progress.clear();
                // Blocks have numbers from 1 for people.
                let text = match slot.block {
                    block if block < 0 => format!("{name}, warm-up: {error}"),
                    block => format!("{name}, block {}: {error}", block + 1),
                };
                eprintln!("{text}");
                store.event(self.id, &now(), &text)?;
                Ok(store.end_session(id, Outcome::Failed, &now(), Some(&error), version)?)
            }
        }
    }

    fn notice_slowness(&mut self, store: &Store, canary: &Canary) -> Result<(), String> {
        /// Share by which a machine may be slower than at the first session.
        const SLOWER: f64 = 0.25;
        let usual = *self.usual.get_or_insert(*canary);
        let slower = canary.slower_than(&usual);
        if slower > SLOWER {
            let text = format!("the machine was {:.0} % slower than at the start", slower * 100.0);
            store.event(self.id, &now(), &text)?;
        }
        Ok(())
    }
}
