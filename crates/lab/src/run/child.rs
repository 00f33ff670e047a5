//! The child process: does the steps of one assignment, each when it is told to, and says how it went on standard output.
//!
//! ```text
//! parent                      child
//!   lab-session JSON  ----->  load library, or start a server
//!                     <-----  Alive, now and then, while a server comes up
//!                     <-----  Ready
//!   "3 0 1\n" on its stdin -> run-in if the step is one of reading; do step 3, database opened as it wants
//!                     <-----  Started, Progress..., Done or NotOffered
//!   "4 0 2\n"         ----->  the first of two slices of step 4
//!                     <-----  Started, Progress..., Interrupted
//!   "4 1 2\n"         ----->  the second: Started, Progress..., Done, or whatever ends the step
//!   ...                       waits for the next line, and may be stopped meanwhile
//!   end of its stdin  ----->  close database, or stop the server (Alive, now and then); exit
//! ```
//! Invariants: a child dies with its parent, so no session outlives the run that recorded it. It is tied to the parent
//! before it says `Ready`, and the parent stops nobody before that: so also a stopped child dies.

use crate::experiment::compaction::open_options;
use crate::experiment::steps::{PlannedStep, Sizes};
use crate::experiment::{Config, WorkloadKind};
use crate::planning::memory;
use crate::run::{data_dir, sql_child};
use crate::targets::servers::ServerSpec;
use outcrop_lab_load::process::interleave_memory;
use outcrop_lab_load::processor;
use outcrop_lab_load::steps::wait_for_compaction;
use outcrop_lab_load::transactions::{Refusal, TransactionDatabase};
use outcrop_lab_load::{
    Database, OpenOptions, Progress, RocksApi, Step, StepResult, check_options, is_loaded, preloaded,
    run_slice, run_step, run_transactions,
};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where an engine's functions come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// Linked into this program.
    InProcess,
    /// A shared library with RocksDB's C API.
    Library(PathBuf),
    /// A server that speaks SQL.
    Server(Box<ServerSpec>),
}

/// The work of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The engine.
    pub source: Source,
    /// A library that must have been loaded before all others.
    pub preload: Option<PathBuf>,
    /// The database's directory.
    pub dir: PathBuf,
    /// How it is opened.
    pub open: OpenOptions,
    /// Further options as text.
    pub options: String,
    /// Steps, with their seeds.
    pub steps: Vec<PlannedStep>,
    /// Sizes, if the host takes free memory back between steps.
    pub keep_present: Option<Sizes>,
    /// Seconds that a step of reading runs unmeasured first; 0: not at all.
    pub run_in: f64,
    /// Options that the engine must understand before anything else is done: settings, and text on top.
    #[serde(default)]
    pub understood: Vec<(OpenOptions, String)>,
}

/// A part of a step, between which others do theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number, from 0.
    pub number: usize,
    /// How many the step has.
    pub of: usize,
}

impl Slice {
    /// The step as a whole.
    pub const WHOLE: Slice = Slice { number: 0, of: 1 };

    /// Whether the step begins with it.
    pub fn is_first(self) -> bool {
        self.number == 0
    }

    /// Whether the step ends with it.
    pub fn is_last(self) -> bool {
        self.number + 1 >= self.of
    }
}

/// A message of a child, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// A server is waited for, and makes progress.
    Alive,
    /// The library is loaded and the child is tied to its parent's life: it waits for a step's number.
    Ready,
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
    /// The operations of a slice on a server are done; questions for the record and writes to devices follow.
    Worked {
        /// Number of the step.
        step: usize,
    },
    /// A slice is done, and not the last of its step.
    Interrupted {
        /// Number of the step.
        step: usize,
    },
    /// A step is done.
    Done {
        /// Number of the step.
        step: usize,
        /// Its result.
        result: Box<StepResult>,
        /// Latencies: nanoseconds and how often.
        histogram: Vec<(u64, u64)>,
        /// Response times of an open loop, likewise.
        responses: Vec<(u64, u64)>,
    },
    /// The engine cannot do a step by design: nothing failed.
    NotOffered {
        /// Number of the step.
        step: usize,
        /// The reason: the feature that it lacks.
        why: String,
    },
    /// The session failed, for this reason.
    Failed(String),
}

/// The child of `assignment`, not yet started. Its standard input is empty unless the caller pipes it.
///
/// # Errors
/// If the assignment cannot be written as JSON.
pub fn command(assignment: &Assignment) -> Result<Command, String> {
    let json = serde_json::to_string(assignment).map_err(|error| error.to_string())?;
    // The kernel's link: it leads to this program even if its file was replaced since the run began.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("outcrop").arg("lab-session").arg(json).stdin(Stdio::null());
    // A terminal's stop and continue are for the run: they must not wake a child that is stopped out of turn.
    command.process_group(0);
    let engine = match &assignment.source {
        Source::InProcess | Source::Server(_) => None,
        Source::Library(path) => Some(path.as_path()),
    };
    let at_start = preloaded(assignment.preload.iter().map(PathBuf::as_path).chain(engine));
    if !at_start.is_empty() {
        command.env("LD_PRELOAD", at_start);
    }
    Ok(command)
}

/// Whether the library of `source` can be loaded here, tried in a child: initialisers of a library may crash.
///
/// # Errors
/// A sentence that says why not.
pub fn try_load(source: &Source, preload: Option<&Path>) -> Result<(), String> {
    try_in_child(source, preload, Vec::new())
}

/// Whether the engine of `source` understands each text on top of its settings, tried in a child.
///
/// # Errors
/// The engine's words about the first that it does not.
pub fn try_options(source: &Source, understood: Vec<(OpenOptions, String)>) -> Result<(), String> {
    try_in_child(source, None, understood)
}

fn try_in_child(
    source: &Source,
    preload: Option<&Path>,
    understood: Vec<(OpenOptions, String)>,
) -> Result<(), String> {
    let assignment = Assignment {
        source: source.clone(),
        preload: preload.map(Path::to_path_buf),
        dir: PathBuf::new(),
        // Nothing is opened.
        open: open_options(WorkloadKind::Byrx, &Sizes::default(), &Config::default()),
        options: String::new(),
        steps: Vec::new(),
        keep_present: None,
        run_in: 0.0,
        understood,
    };
    let output = command(&assignment)?.output().map_err(|error| format!("cannot start a child: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = said.lines().find_map(|line| match serde_json::from_str(line) {
        Ok(Message::Failed(why)) => Some(why),
        _ => None,
    });
    match failed {
        Some(why) => Err(why),
        None if output.status.success() => Ok(()),
        None => Err(format!("loading it ended the process ({})", output.status)),
    }
}

/// Whether the dynamic linker took `library`: one that it cannot load it only warns about, and goes on without.
fn check_preloaded(library: &Path) -> Result<(), String> {
    if is_loaded(library)? {
        return Ok(());
    }
    let why = "was not loaded by LD_PRELOAD, in which a path has no colon and no space";
    Err(format!("{} {why}", library.display()))
}

/// Does the assignment given as JSON.
///
/// # Errors
/// Only if it does not parse or the parent is gone; an error of the engine is a message to the parent.
pub fn run(json: &str, in_process: RocksApi) -> Result<(), String> {
    let assignment: Assignment =
        serde_json::from_str(json).map_err(|error| format!("lab-session: {error}"))?;
    let tied = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("the session cannot be made to end with the run: {error}"));
    // If the parent was gone before that, its end of the pipe is closed, and this child ends at the first wait.
    match tied.and_then(|()| work(&assignment, in_process)) {
        Ok(()) => Ok(()),
        Err(error) => say(&Message::Failed(error)),
    }
}

pub(super) fn say(message: &Message) -> Result<(), String> {
    let line = serde_json::to_string(message).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("lab-session: {error}"))
}

fn work(assignment: &Assignment, in_process: RocksApi) -> Result<(), String> {
    if let Source::Server(spec) = &assignment.source {
        return sql_child::work(assignment, spec);
    }
    if let Some(library) = &assignment.preload {
        check_preloaded(library)?;
    }
    // As published runs on machines of several nodes do. Without it the session is still one.
    if let Err(error) = interleave_memory() {
        eprintln!("memory is not spread over NUMA nodes: {error}");
    }
    // Before the engine has threads: they inherit the counters.
    processor::start();
    let api = match &assignment.source {
        Source::InProcess | Source::Server(_) => in_process,
        Source::Library(path) => {
            let from_the_start = check_preloaded(path);
            // First what is wrong with the library itself.
            let api = RocksApi::load(path)?;
            from_the_start?;
            api
        }
    };
    for (settings, text) in &assignment.understood {
        check_options(api, settings, text)?;
    }
    let mut worker = Worker { assignment, api, threads: 0, open: None, so_far: None };
    say(&Message::Ready)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("what to do next: {error}"))?;
        let (number, slice) = order(&line).ok_or_else(|| format!("what to do next: {line:?}"))?;
        let planned = assignment.steps.get(number).ok_or_else(|| format!("there is no step {number}"))?;
        worker
            .step(number, planned, slice)
            .map_err(|error| format!("step {}: {error}", planned.step.name))?;
    }
    Ok(())
}

/// A step's number and its slice, from a line of the parent's.
pub(super) fn order(line: &str) -> Option<(usize, Slice)> {
    let numbers: Vec<usize> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [step, number, of] if number < of => Some((step, Slice { number, of })),
        _ => None,
    }
}

/// The parts that steps share: the engine, and the database as it is open.
struct Worker<'a> {
    assignment: &'a Assignment,
    api: RocksApi,
    threads: u64,
    /// The database, and what it was opened for: ascending keys, and options of a step.
    open: Option<((bool, &'a str), Database)>,
    /// The slices of the current step that are done.
    so_far: Option<StepResult>,
}

impl<'a> Worker<'a> {
    /// Half way to the seed of the next step.
    const RUN_IN_SEED: u64 = 500;
    /// Seconds of a run-in between two slices of a step: the scheduler favours a process that has waited for a moment.
    const RUN_IN_AGAIN: f64 = 0.02;

    fn step(&mut self, number: usize, planned: &'a PlannedStep, slice: Slice) -> Result<(), String> {
        if let Some(sql) = &planned.sql {
            say(&Message::Started { step: number, waited: 0.0 })?;
            let test = sql.test().map_or(planned.step.name.as_str(), |test| test.name);
            let why = format!("an embedded engine has no operation that does what {test} does");
            return say(&Message::NotOffered { step: number, why });
        }
        if planned.step.kind.needs_transactions() {
            return self.transactions(number, planned);
        }
        let Assignment { keep_present, run_in, .. } = self.assignment;
        let mut threads = self.threads;
        let so_far = self.so_far.take();
        if planned.is_load() {
            self.begin_anew()?;
        }
        let db = self.database(planned)?;
        if planned.step.merges()
            && let Err(why) = db.can_merge()
        {
            say(&Message::Started { step: number, waited: 0.0 })?;
            return say(&Message::NotOffered { step: number, why });
        }
        let before = Instant::now();
        if planned.wants_rest() && slice.is_first() {
            wait_for_compaction(db)?;
        }
        let waited = before.elapsed().as_secs_f64();
        if let Some(sizes) = keep_present.as_ref().filter(|_| slice.is_first()) {
            memory::make_growth_present(sizes, planned);
        }
        if *run_in > 0.0 && planned.takes_run_in() {
            // The threads' numbers give them their seeds: the measured ones keep those they would have without this.
            // But other keys: a run-in must not fetch just those that are asked for next.
            let seed = planned.step.seed.wrapping_add(Self::RUN_IN_SEED);
            let seconds = if slice.is_first() { *run_in } else { run_in.min(Self::RUN_IN_AGAIN) };
            let step = Step { seconds, seed, ..planned.step.clone() };
            run_step(db, &step, &mut threads.clone(), &mut |_| ())?;
        }
        let step = Step { seconds: planned.step.seconds / slice.of as f64, ..planned.step.clone() };
        say(&Message::Started { step: number, waited })?;
        let result = run_slice(db, &step, so_far, &mut threads, &mut observer(number))?;
        self.threads = threads;
        // Writes that the device is charged for must have reached it, for an engine that syncs little as for one
        // that does.
        if planned.writes() || planned.step.while_writing {
            data_dir::write_out(&self.assignment.dir)?;
        }
        if slice.is_last() {
            return say_done(number, result);
        }
        self.so_far = Some(result);
        say(&Message::Interrupted { step: number })
    }

    fn transactions(&mut self, number: usize, planned: &'a PlannedStep) -> Result<(), String> {
        // One directory, one handle.
        self.open = None;
        let Assignment { dir, open, .. } = self.assignment;
        let open = &OpenOptions { merge_operator: planned.step.merge_operator.clone(), ..open.clone() };
        let options = self.options(planned);
        say(&Message::Started { step: number, waited: 0.0 })?;
        let (concurrency, durability) = (planned.step.concurrency, planned.step.durability);
        let db = match TransactionDatabase::open(self.api, dir, open, &options, concurrency, durability) {
            Ok(db) => db,
            Err(Refusal::NotOffered(why)) => return say(&Message::NotOffered { step: number, why }),
            Err(Refusal::Failed(why)) => return Err(why),
        };
        let result = run_transactions(&db, &planned.step, &mut self.threads, &mut observer(number))?;
        data_dir::write_out(dir)?;
        say_done(number, result)
    }

    /// Removes what an earlier load left, in this session or in the one that its data are a copy of: as in db_bench, each
    /// begins with an empty database.
    fn begin_anew(&mut self) -> Result<(), String> {
        self.open = None;
        if has_files(&self.assignment.dir)? {
            Database::destroy(self.api, &self.assignment.dir)?;
        }
        Ok(())
    }

    /// The database as a step wants it, opened anew if it is not.
    fn database(&mut self, planned: &'a PlannedStep) -> Result<&Database, String> {
        // Loads in key order ask for the vector memtable, as RocksDB's own scripts do.
        let wanted = (planned.wants_vector_memtable(), planned.options.as_str());
        if self.open.as_ref().is_none_or(|(was, _)| *was != wanted) {
            drop(self.open.take());
            let settings = OpenOptions {
                vector_memtable: wanted.0,
                // Tables that a load in key order leaves are moved down as they are: they must be compressed at once.
                min_level_to_compress: self.assignment.open.min_level_to_compress.filter(|_| !wanted.0),
                merge_operator: planned.step.merge_operator.clone(),
                ..self.assignment.open.clone()
            };
            let options = self.options(planned);
            let db = Database::open_with(self.api, &self.assignment.dir, &settings, &options)?;
            self.open = Some((wanted, db));
        }
        Ok(&self.open.as_ref().expect("opened above").1)
    }

    /// The target's options, then the step's.
    fn options(&self, planned: &PlannedStep) -> String {
        joined(&self.assignment.options, &planned.options)
    }
}

/// Whether there is anything in `dir`, if it is there.
fn has_files(dir: &Path) -> Result<bool, String> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", dir.display())),
    }
}

/// Options of a target, then those of a step.
pub fn joined(target: &str, step: &str) -> String {
    let both = [target, step].map(|text| text.trim_end_matches(';'));
    both.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(";")
}

pub(super) fn observer(number: usize) -> impl FnMut(Progress) {
    let mut said = Instant::now();
    move |progress| {
        if said.elapsed() >= Duration::from_millis(250) {
            said = Instant::now();
            if say(&Message::Progress { step: number, progress }).is_err() {
                std::process::exit(1);
            }
        }
    }
}

pub(super) fn say_done(number: usize, result: StepResult) -> Result<(), String> {
    let flat = |histogram: &hdrhistogram::Histogram<u64>| {
        let recorded = histogram.iter_recorded();
        recorded.map(|entry| (entry.value_iterated_to(), entry.count_at_value())).collect::<Vec<_>>()
    };
    let (histogram, responses) = (flat(&result.samples), flat(&result.responses));
    say(&Message::Done { step: number, result: Box::new(result), histogram, responses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_database_is_there_before_the_first_load_and_a_new_directory_is_empty() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("session");
        assert_eq!(has_files(&dir), Ok(false), "an engine removed it with the database");
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(has_files(&dir), Ok(false));
        std::fs::write(dir.join("CURRENT"), "MANIFEST-000001\n").unwrap();
        assert_eq!(has_files(&dir), Ok(true));
        assert!(has_files(&dir.join("CURRENT")).unwrap_err().contains("CURRENT: "));
    }
}
