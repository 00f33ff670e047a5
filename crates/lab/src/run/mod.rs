//! `outcrop lab run`: a plan carried out, one block after the other, each step recorded when it ends.
//!
//! ```text
//! for each block: its slots without a session that counts, together or one after the other (blocks.rs):
//!     data -> session.rs: turns of a child (process.rs), sampler -> store: step by step -> outcome
//! after each block past the least: stop if every interval is narrow enough
//! ```
//! Invariants: a run may be killed at any moment; `--resume` carries out the rest of the same plan, and a
//! session that was cut short is done again whole. An engine that fails ends its session, not the run. A full
//! disk ends the run, and counts against nobody.
//! Next: `blocks.rs`; `profile.rs` for a run that only samples.

mod abandoned;
mod blocks;
pub mod child;
pub mod data_dir;
mod engine_files;
mod killed;
mod process;
pub mod profile;
mod progress;
pub mod restore;
mod session;
mod sql_child;
pub mod sysbench;

use crate::experiment;
use crate::host::Host;
use crate::planning::memory;
use crate::planning::plan::Plan;
use crate::planning::scale::{Machine, Scale};
use crate::report::text::rfc3339;
use crate::run::data_dir::DataDir;
use crate::store::{ExperimentRow, Store, StoreError};
use blocks::Run;
pub(crate) use engine_files::newest_options;
pub use progress::ProgressForm;
use session::Setting;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Flags of `lab run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    /// The experiment's file.
    pub file: PathBuf,
    /// Go on with the latest unfinished run of this file.
    #[arg(long)]
    pub resume: bool,
    /// Directory for databases; the run removes its files there afterwards.
    #[arg(long, default_value = "outcrop-lab-data")]
    pub data: PathBuf,
    /// Another size than the file says.
    #[command(flatten)]
    pub scale: Scale,
    /// Seconds between samples of the operating system.
    #[arg(long, default_value_t = 1.0)]
    pub interval: f64,
    /// How to say on standard error how far the run is.
    #[arg(long, value_enum, default_value_t)]
    pub progress: ProgressForm,
}

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
    let text = text_of(file)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let machine = Machine { memory: memory::total_bytes(), cores };
    let plan = if experiment::sql::is_sql(&text) {
        crate::planning::sql::plan(file, &text, unix_seconds(), machine, scale)?
    } else {
        let experiment = experiment::parse(&file.display().to_string(), &text)?;
        crate::planning::plan::plan_scaled(&experiment, unix_seconds(), machine, scale)?
    };
    Ok((plan, text))
}

/// The text of an experiment's file.
fn text_of(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
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
        /// Flags that must be those it was begun with, if there are any.
        scale: Scale,
    },
}

/// Runs an experiment, or the rest of one; gives its number.
///
/// # Errors
/// One sentence that says what to do. Measurements until then are recorded.
pub fn run(store: &Path, arguments: &RunArguments) -> Result<i64, String> {
    let interval = Duration::try_from_secs_f64(arguments.interval)
        .ok()
        .filter(|interval| *interval >= Duration::from_millis(50))
        .ok_or("--interval must be 0.05 or more")?;
    let file = arguments.file.display().to_string();
    let start = if arguments.resume {
        let text = text_of(&arguments.file)?;
        Start::Rest { file: file.clone(), text, scale: arguments.scale.clone() }
    } else {
        let (plan, text) = plan_file(&arguments.file, &arguments.scale)?;
        Start::New { file: file.clone(), text, plan: Box::new(plan) }
    };
    carry_out(store, &arguments.data, interval, arguments.progress, start).map_err(|error| match error {
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

/// Runs what `start` says, with databases in `data`, and says in the form `progress` how far it is; gives the experiment's number.
///
/// # Errors
/// One sentence that says what to do. Measurements until then are recorded.
pub fn carry_out(
    store: &Path,
    data: &Path,
    interval: Duration,
    progress: ProgressForm,
    start: Start,
) -> Result<i64, RunError> {
    // Nothing is created for a file with a mistake in it, nor where there is no room for data.
    let place = data;
    let data = DataDir::take(place)?;
    let (mut store, experiment) = match start {
        Start::New { file, text, plan } => {
            data.check_space(plan.estimate().disk_bytes)?;
            begun(store, place, &file, &text, &plan)?
        }
        Start::Rest { file, text, scale } => resumed(store, &file, &text, &scale)?,
    };
    let estimate = experiment.plan.estimate();
    let setting = Setting {
        plan: &experiment.plan,
        device: &experiment.host.facts.device,
        interval,
        keep_present: memory::is_taken_back(),
    };
    let mut run = Run::new(setting, experiment.id, &data, progress);
    run.progress().begin(estimate.seconds);
    let outcome = run.all(&mut store);
    run.progress().end();
    match outcome {
        Ok(()) => {
            store.finish(experiment.id)?;
            Ok(experiment.id)
        }
        Err(stop) => Err(RunError::Stopped(format!("{stop}; what was measured is kept"))),
    }
}

/// The experiment to go on with.
fn resumed(path: &Path, file: &str, text: &str, scale: &Scale) -> Result<(Store, ExperimentRow), String> {
    let store = Store::open_existing(path)?;
    let found = store.unfinished(text)?.ok_or_else(|| {
        format!("no unfinished run of {file} as it is now; without --resume a new one begins")
    })?;
    scale.check_resumed(&found.plan)?;
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
