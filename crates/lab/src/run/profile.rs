//! `outcrop lab profile`: where processor time goes, by a short run of its own.
//!
//! ```text
//! an experiment of the record -> its plan, steps cut short -> for each target one child
//!     perf record on the child -> Started .. step .. Done -> perf script between the two -> stacks -> record
//! ```
//! Apart from the experiment, since sampling costs time: nothing measured here is compared. Samples are of processor time by
//! the kernel's clock, which every machine has; where the processor also counts instructions, cycles and cache misses,
//! those are counted with it.
//! Invariant: only samples between a step's beginning and its end count, of all threads of the child, its own background
//! work included; of a server those of all its processes, also such as begin meanwhile, and none of its client's.
//! Next: `analysis/cpu.rs` for what is made of them.

use super::killed::KilledOnDrop;
use super::now;
use super::process::{Heard, Process};
use super::session::{Setting, assignment};
use crate::analysis::cpu::{self, CLOCK, Profile, Samples};
use crate::analysis::results::Results;
use crate::planning::memory;
use crate::planning::plan::{Plan, PlannedTarget, Slot};
use crate::run::child::{Message, Slice, Source};
use crate::run::data_dir::DataDir;
use crate::store::Store;
use crate::targets::servers::{ServerLocation, tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Flags of `lab profile`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProfileArguments {
    /// Number of the experiment.
    pub id: i64,
    /// Steps to sample, with commas between [default: those of its reports].
    #[arg(long, value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Targets to sample [default: all but the A/A twin].
    #[arg(long, value_delimiter = ',')]
    pub targets: Vec<String>,
    /// Seconds of each timed step, at most those of the experiment.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Directory for databases; the run removes its files there afterwards.
    #[arg(long, default_value = "outcrop-lab-data")]
    pub data: PathBuf,
}

/// Samples a second: no multiple of what timers tick at.
const FREQUENCY: u32 = 499;

/// How long perf may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The events that processors count, by perf's names, and how many events there are to a sample of each.
const EVENTS: [(&str, u64); 3] =
    [("instructions", 10_000_000), ("cycles", 10_000_000), ("cache-misses", 10_000)];

/// Samples the steps of an experiment, keeps what was found, and prints it.
///
/// # Errors
/// One sentence; samples until then are recorded.
pub fn run(store: &Path, arguments: &ProfileArguments) -> Result<(), String> {
    let store = Store::open_existing(store)?;
    let results = Results::load(&store, arguments.id)?;
    let wanted = wanted(&results, arguments)?;
    let targets = targets(&results, &arguments.targets)?;
    targets.iter().try_for_each(|target| own(&results.experiment.plan.targets[*target]))?;
    let events = events()?;
    let plan = shortened(&results.experiment.plan, &wanted, arguments.seconds);
    let data = DataDir::take(&arguments.data)?;
    data.check_space(plan.sizes.data_bytes() * 3)?;
    let setting = Setting {
        plan: &plan,
        device: "",
        interval: Duration::from_secs(1),
        keep_present: memory::is_taken_back(),
    };
    for (number, target) in targets.iter().enumerate() {
        let name = &plan.targets[*target].name;
        let dir = data.session(number)?;
        let sampled = session(setting, *target, &wanted, &dir, &events, &mut |profile| {
            eprintln!("{name}, {}: {} samples", profile.step, profile.samples.count());
            Ok(store.record_profile(arguments.id, &profile)?)
        });
        data.remove(number)?;
        sampled.map_err(|error| format!("target {name}: {error}"))?;
    }
    let results = Results::load(&store, arguments.id)?;
    for step in &wanted {
        let text = cpu::text(&results, step, &targets);
        let text = if text.is_empty() { "no samples: too short, or not offered\n".to_string() } else { text };
        print!("\n{step}\n{text}");
    }
    println!("\noutcrop lab report {} -o DIRECTORY  puts it into the pages", arguments.id);
    Ok(())
}

/// Refuses a server that is somebody else's: its processes may be on another machine.
fn own(target: &PlannedTarget) -> Result<(), String> {
    match &target.source {
        Source::Server(spec) if matches!(spec.place, ServerLocation::Remote(_)) => {
            Err(format!("{} is a server by url: only servers that the lab starts are sampled", target.name))
        }
        _ => Ok(()),
    }
}

fn wanted(results: &Results, arguments: &ProfileArguments) -> Result<Vec<String>, String> {
    if arguments.steps.is_empty() {
        return Ok(results.steps.clone());
    }
    let all = &results.experiment.plan.steps;
    // Steps that are in no report can be sampled, too.
    let known = |word: &String| match all.iter().any(|planned| planned.step.name == *word) {
        true => Ok(word.clone()),
        false => results.step(word).map(str::to_string),
    };
    arguments.steps.iter().map(known).collect()
}

fn targets(results: &Results, names: &[String]) -> Result<Vec<usize>, String> {
    if names.is_empty() {
        return Ok(crate::report::classic::real_targets(results));
    }
    names.iter().map(|name| results.target(name)).collect()
}

/// The plan up to the last of the `wanted` steps, none longer than `seconds`.
fn shortened(plan: &Plan, wanted: &[String], seconds: f64) -> Plan {
    let mut plan = plan.clone();
    let last = plan.steps.iter().rposition(|planned| wanted.contains(&planned.step.name));
    plan.steps.truncate(last.map_or(0, |last| last + 1));
    plan.steps.iter_mut().for_each(|planned| planned.step.seconds = planned.step.seconds.min(seconds));
    plan
}

/// One child of `target` that does all steps of the plan; hands on what was sampled of each of the `wanted`.
fn session(
    setting: Setting<'_>,
    target: usize,
    wanted: &[String],
    dir: &Path,
    events: &[(&str, u64)],
    keep: &mut dyn FnMut(Profile) -> Result<(), String>,
) -> Result<(), String> {
    let plan = setting.plan;
    let slot = Slot { block: 0, position: 0, target };
    let steps = 0..plan.steps.len();
    let mut process = Process::spawn(&assignment(setting, slot, &steps, dir))?;
    process.wait_until_ready()?;
    for (number, planned) in plan.steps.iter().enumerate() {
        let name = &planned.step.name;
        // Outlives the sampler, which writes to it until it is gone.
        let file = Recording(dir.with_extension("perf"));
        let ids = || sampled(&plan.targets[target], process.id());
        let perf = if wanted.contains(name) { Some(Perf::start(&ids(), &file.0, events)?) } else { None };
        process.tell(number, Slice::WHOLE);
        let done = finished(&process, planned.step.seconds).map_err(|unfinished| unfinished.words(name))?;
        let Some(perf) = perf else { continue };
        let text = perf.end(&file.0, done.map(|done| (done.began, done.ended)))?;
        if let Some(done) = done {
            let samples = Samples::parse(&text);
            keep(Profile { target, step: name.clone(), date: now(), ops: done.ops, samples })?;
        }
    }
    process.end().map(|_| ())
}

/// The processes that do the work of `target` in the session of process `child`.
fn sampled(target: &PlannedTarget, child: u32) -> Vec<u32> {
    match &target.source {
        Source::Server(_) => tree::descendants(child),
        Source::InProcess | Source::Library(_) => vec![child],
    }
}

/// A step that ran.
#[derive(Clone, Copy)]
struct Done {
    ops: u64,
    /// Seconds of the monotonic clock.
    began: f64,
    ended: f64,
}

/// Why a step did not end.
enum Unfinished {
    /// The child says why, and in which step.
    Failed(String),
    /// The child says nothing.
    Unsaid(&'static str),
}

impl Unfinished {
    /// A sentence that names `step` once.
    fn words(self, step: &str) -> String {
        match self {
            Unfinished::Failed(why) => why,
            Unfinished::Unsaid(why) => format!("step {step}: {why}"),
        }
    }
}

/// Waits for the end of a step of `seconds`; `None` if the engine does not offer it.
fn finished(process: &Process, seconds: f64) -> Result<Option<Done>, Unfinished> {
    let (mut began, mut worked) = (monotonic(), None);
    loop {
        let patience = Duration::from_secs_f64(seconds) + 10 * PATIENCE;
        match process.hear(patience) {
            Heard::Message(Message::Started { .. }) => began = monotonic(),
            Heard::Message(Message::Done { result, .. }) => {
                return Ok(Some(Done { ops: result.ops, began, ended: worked.unwrap_or_else(monotonic) }));
            }
            // A server is asked for the record after its work.
            Heard::Message(Message::Worked { .. }) => worked = Some(monotonic()),
            Heard::Message(Message::NotOffered { .. }) => return Ok(None),
            Heard::Message(Message::Failed(why)) => return Err(Unfinished::Failed(why)),
            Heard::Message(
                Message::Alive | Message::Ready | Message::Progress { .. } | Message::Interrupted { .. },
            ) => {}
            Heard::Silence => return Err(Unfinished::Unsaid("nothing happened for too long")),
            Heard::Nothing => return Err(Unfinished::Unsaid("the process ended")),
        }
    }
}

/// Seconds of the clock that perf is told to stamp samples by.
fn monotonic() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The events that this machine's processors count.
///
/// # Errors
/// If perf is not here.
fn events() -> Result<Vec<(&'static str, u64)>, String> {
    let names: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).collect();
    let output = perf().args(["stat", "-x,", "-e", &names.join(","), "true"]).output().map_err(no_perf)?;
    Ok(supported(&String::from_utf8_lossy(&output.stderr)))
}

/// Events of which `perf stat -x,` printed a number: `1234,,instructions,...`.
fn supported(printed: &str) -> Vec<(&'static str, u64)> {
    let counted = |name: &str| {
        printed.lines().any(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let event = fields.get(2).map(|event| event.split(':').next().unwrap_or(event));
            event == Some(name) && fields[0].parse::<u64>().is_ok()
        })
    };
    EVENTS.into_iter().filter(|(name, _)| counted(name)).collect()
}

fn perf() -> Command {
    let mut command = Command::new(std::env::var_os("OUTCROP_PERF").unwrap_or_else(|| "perf".into()));
    command.stdin(Stdio::null());
    command
}

fn no_perf(error: std::io::Error) -> String {
    format!("cannot run perf ({error}); install it, on Debian: apt-get install linux-perf")
}

/// A file of samples, removed on drop: it lies beside the session's directory, in which the engine has the say.
struct Recording(PathBuf);

impl Drop for Recording {
    fn drop(&mut self) {
        // Of a step that is not sampled there is none.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A sampler of processes.
struct Perf {
    child: KilledOnDrop,
    /// Our ends of its control; it ends with an error when they are closed.
    control: (PipeWriter, PipeReader),
}

impl Perf {
    /// Samples all threads of processes `ids`, and the processes that they make, into `file`; returns when it does.
    fn start(ids: &[u32], file: &Path, events: &[(&str, u64)]) -> Result<Perf, String> {
        let _ = std::fs::remove_file(file);
        let mut command = perf();
        command.args(["record", "-q", "-g", "-k", "CLOCK_MONOTONIC", "-e"]);
        command.arg(format!("{CLOCK}/freq={FREQUENCY}/"));
        for (event, period) in events {
            command.args(["-e", &format!("{event}/period={period},call-graph=no/")]);
        }
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        command.args(["-p", &ids.join(","), "-o"]).arg(file);
        // It samples nothing until it is told to, and says so when it does: on a busy machine that takes its time.
        let (told, tell) = pipe()?;
        let (heard, answers) = pipe()?;
        command.args(["-D", "-1", "--control", &format!("fd:{},{}", told.as_raw_fd(), answers.as_raw_fd())]);
        for end in [told.as_fd(), answers.as_fd()] {
            fcntl_setfd(end, FdFlags::empty()).map_err(|error| format!("a pipe for perf: {error}"))?;
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(no_perf)?;
        drop((told, answers));
        let mut perf = Perf { child: KilledOnDrop(child), control: (tell, heard) };
        let (tell, heard) = &mut perf.control;
        match tell.write_all(b"enable\n").is_ok() && answered(heard)? {
            true => Ok(perf),
            false => Err(perf.complaint()),
        }
    }

    /// Why it ended by itself.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(error) = &mut self.child.stderr {
            let _ = error.read_to_string(&mut text);
        }
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
        format!(
            "perf cannot sample ({line}); it may need to run as root, or sysctl kernel.perf_event_paranoid=1"
        )
    }

    /// Ends it; gives what it sampled between two times as text, and nothing without them.
    fn end(mut self, file: &Path, between: Option<(f64, f64)>) -> Result<String, String> {
        // A program that a script starts in the background ignores SIGINT, and so do its children.
        let stopped = kill_process(Pid::from_child(&self.child), Signal::TERM);
        stopped.map_err(|error| format!("stopping perf: {error}"))?;
        let ended = self.child.wait().map_err(|error| format!("waiting for perf: {error}"))?;
        if !ended.success() && ended.signal() != Some(Signal::TERM.as_raw()) {
            return Err(self.complaint());
        }
        let Some((began, ended)) = between else { return Ok(String::new()) };
        let output = perf()
            .args(["script", "--no-inline", "-F", "period,event,ip,sym,dso", "--time"])
            .arg(format!("{began:.6},{ended:.6}"))
            .arg("-i")
            .arg(file)
            .stderr(Stdio::null())
            .output()
            .map_err(no_perf)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A pipe of which a child may inherit one end.
fn pipe() -> Result<(PipeReader, PipeWriter), String> {
    std::io::pipe().map_err(|error| format!("a pipe for perf: {error}"))
}

/// Whether perf answered, and not ended instead.
fn answered(heard: &mut PipeReader) -> Result<bool, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|error| format!("waiting for perf: {error}"))?;
        match poll(&mut [PollFd::new(heard, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err("perf did not begin in time".to_string()),
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("waiting for perf: {error}")),
        }
    }
    let mut answer = [0; 8];
    let length = heard.read(&mut answer).map_err(|error| format!("waiting for perf: {error}"))?;
    Ok(answer[..length].starts_with(b"ack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_step_did_not_end_names_it_once() {
        let said = Unfinished::Failed("step t5: Corruption: x".to_string());
        assert_eq!(said.words("t5"), "step t5: Corruption: x", "as the child says it");
        assert_eq!(Unfinished::Unsaid("the process ended").words("t5"), "step t5: the process ended");
    }

    #[test]
    fn what_a_processor_does_not_count_is_left_out() {
        let printed =
            "1234,,instructions:u,99,100.00,,\n<not supported>,,cycles,0,100.00,,\n,,cache-misses,,,,\n";
        assert_eq!(supported(printed), [EVENTS[0]]);
        assert!(supported("").is_empty());
    }

    #[test]
    fn a_plan_is_cut_to_what_is_sampled_and_short() {
        let (_temp, store) =
            crate::testing::fake_record(1, &["fillseq", "readrandom", "overwrite"], 1, &mut |_| {
                vec![("ops_sec", 1.0)]
            });
        let results = Results::load(&store, 1).unwrap();
        let plan = shortened(&results.experiment.plan, &["readrandom".to_string()], 0.5);
        let steps: Vec<_> =
            plan.steps.iter().map(|step| (step.step.name.as_str(), step.step.seconds)).collect();
        assert_eq!(steps, [("fillseq", 0.5), ("readrandom", 0.5)]);
        let arguments = |steps: &[&str]| ProfileArguments {
            id: 1,
            steps: steps.iter().map(ToString::to_string).collect(),
            targets: vec![],
            seconds: 1.0,
            data: PathBuf::new(),
        };
        assert_eq!(wanted(&results, &arguments(&[])).unwrap().len(), 3);
        assert!(wanted(&results, &arguments(&["x"])).unwrap_err().contains("there is no step x"));
        assert_eq!(targets(&results, &[]).unwrap(), [0, 1], "the twin is the base again");
    }
}
