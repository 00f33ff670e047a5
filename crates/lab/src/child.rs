//! The child process: does the steps of one assignment and says how each went on standard output.
//!
//! ```text
//! parent                      child
//!   lab-session JSON  ----->  load library, open database
//!                     <-----  Started, Progress..., Done   for each step
//!                             close database, exit
//! ```
//! Invariant: a child dies with its parent, so no session outlives the run that recorded it.

use crate::experiment::steps::PlannedStep;
use outcrop_lab_load::steps::wait_for_compaction;
use outcrop_lab_load::{Database, OpenOptions, Progress, RocksApi, StepResult, run_step};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where an engine's functions come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// Linked into this program.
    InProcess,
    /// A shared library with RocksDB's C API.
    Library(PathBuf),
}

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The engine.
    pub source: Source,
    /// The database's directory.
    pub dir: PathBuf,
    /// How it is opened.
    pub open: OpenOptions,
    /// Further options as text.
    pub options: String,
    /// Steps, with their seeds.
    pub steps: Vec<PlannedStep>,
}

/// What a child says, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// A step begins.
    Started {
        /// Number of the step in the assignment.
        step: usize,
        /// Seconds waited before it for compaction.
        waited: f64,
    },
    /// A step runs.
    Progress {
        /// Number of the step.
        step: usize,
        /// How far it is.
        progress: Progress,
    },
    /// A step is done.
    Done {
        /// Number of the step.
        step: usize,
        /// What it gave.
        result: Box<StepResult>,
        /// Latencies: nanoseconds and how often.
        histogram: Vec<(u64, u64)>,
    },
    /// The session failed, for this reason.
    Failed(String),
}

/// Does the assignment given as JSON.
///
/// # Errors
/// Only if it does not parse or the parent is gone; what the engine says is a message to the parent.
pub fn run(json: &str, in_process: RocksApi) -> Result<(), String> {
    // Best effort: where the kernel refuses, the first message to nobody ends the child.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let assignment: Assignment =
        serde_json::from_str(json).map_err(|error| format!("lab-session: {error}"))?;
    match work(&assignment, in_process) {
        Ok(()) => Ok(()),
        Err(error) => say(&Message::Failed(error)),
    }
}

fn say(message: &Message) -> Result<(), String> {
    let line = serde_json::to_string(message).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("lab-session: {error}"))
}

fn work(assignment: &Assignment, in_process: RocksApi) -> Result<(), String> {
    let api = match &assignment.source {
        Source::InProcess => in_process,
        Source::Library(path) => RocksApi::load(path)?,
    };
    let mut threads = 0;
    let mut open: Option<(bool, Database)> = None;
    for (number, planned) in assignment.steps.iter().enumerate() {
        let step = &planned.step;
        // Loads ask for the vector memtable, as RocksDB's own scripts do: the database is opened anew after them.
        let loading = planned.is_load();
        if open.as_ref().is_none_or(|(was_loading, _)| *was_loading != loading) {
            drop(open.take());
            let settings = OpenOptions { vector_memtable: loading, ..assignment.open.clone() };
            let db = Database::open_with(api, &assignment.dir, &settings, &assignment.options)?;
            open = Some((loading, db));
        }
        let (_, db) = open.as_ref().expect("opened above");
        let before = Instant::now();
        if planned.wants_rest() {
            wait_for_compaction(db)?;
        }
        say(&Message::Started { step: number, waited: before.elapsed().as_secs_f64() })?;
        let mut said = Instant::now();
        let mut observe = |progress: Progress| {
            if said.elapsed() >= Duration::from_millis(250) {
                said = Instant::now();
                if say(&Message::Progress { step: number, progress }).is_err() {
                    std::process::exit(1);
                }
            }
        };
        let result = run_step(db, step, &mut threads, &mut observe)
            .map_err(|error| format!("step {}: {error}", step.name))?;
        let recorded = result.samples.iter_recorded();
        let histogram = recorded.map(|entry| (entry.value_iterated_to(), entry.count_at_value())).collect();
        say(&Message::Done { step: number, result: Box::new(result), histogram })?;
    }
    Ok(())
}
