//! Many histories, each in a process of its own, one on each processor at a time.
//!
//! A history stays on its processor: one of its threads runs at a time, and handing over to another processor takes several times as long.

use crate::plan::Limits;
use crate::races::Met;
use crate::settings::Settings;
use crate::shrink;
use crate::{number, pairs, plant, without};
use outcrop_pingpong::progress::{Patience, Watchdog};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The patience with a history: one of which nothing runs waits for something that is no step. The longest have thirty million steps, at more
/// than a hundred thousand for a second of processor time.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(120), work: Duration::from_secs(1800) };
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// One history in so many is lived twice: the same steps, or a seed replays nothing.
const TWICE: u64 = 8;
/// Seconds to make a failing history smaller, unless `--shrink` says another number.
const SHRINKING: u64 = 90;
/// So many pairs of activities that never met are named.
const NAMED: usize = 12;

/// Keeps this thread, and those that it makes, on one processor.
///
/// # Errors
/// There is no such processor.
pub fn stay_on(processor: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(format!("--processor {processor}: there are fewer than {}", CpuSet::MAX_CPU));
    }
    only.set(processor);
    sched_setaffinity(None, &only).map_err(|error| format!("--processor {processor}: {error}"))
}

/// The processors that this process may use; none if the system does not say.
fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None);
    allowed.map_or_else(|_| Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&at| set.is_set(at)).collect())
}

/// How the process of a history ended: the line that sums it up, or all that it said.
fn live(limits: &Limits, processor: Option<usize>) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let mut command = Command::new(program);
    command.arg("one").args(limits.arguments());
    if let Some(processor) = processor {
        command.args(["--processor", &processor.to_string()]);
    }
    let mut child = command
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("a process for a history: {error}"))?;
    let reading =
        [read(child.stdout.take().expect("piped above")), read(child.stderr.take().expect("piped above"))];
    let mut dog = Watchdog::new(child.id(), PATIENCE);
    let mut looked = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break Ok(status),
            None if looked.elapsed() >= LOOK => {
                looked = Instant::now();
                if let Some(how) = dog.look(0) {
                    let _ = child.kill();
                    let _ = child.wait();
                    break Err(how);
                }
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let [said, errors] = reading.map(|reading| reading.join().unwrap_or_default());
    match status {
        Ok(status) if status.success() => Ok(said.trim().to_string()),
        Ok(status) => Err(format!("{said}{errors}({status})")),
        Err(how) => Err(format!("{said}{errors}({how})")),
    }
}

/// Reads all of `from`, in a thread of its own.
fn read(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The end of a process that was killed is the end of what it said.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What many histories came to.
struct Sums {
    histories: u64,
    twice: u64,
    by_name: BTreeMap<String, u64>,
    met: Met,
    settings: Settings,
}

impl Sums {
    /// Adds a history and its line: names and numbers.
    fn add(&mut self, limits: &Limits, line: &str) {
        self.histories += 1;
        self.settings.add(limits);
        let words: Vec<&str> = line.split(' ').collect();
        for pair in words.windows(2) {
            if pair[0] == "met" {
                self.met.add(&Met::parse(pair[1]).unwrap_or_default());
            } else if let Ok(number) = pair[1].parse::<u64>() {
                *self.by_name.entry(pair[0].to_string()).or_default() += number;
            }
        }
    }

    fn tell(&self, took: Duration) {
        let told: Vec<String> = self.by_name.iter().map(|(name, sum)| format!("{sum} {name}")).collect();
        println!(
            "simulate: {} cases in {:.0} s, {:.1} a second; {} lived twice; {}",
            self.histories,
            took.as_secs_f64(),
            self.histories as f64 / took.as_secs_f64(),
            self.twice,
            told.join(", ")
        );
        let (pairs, all, names) = self.settings.summary();
        println!("simulate: {pairs} of {all} pairs of values of {names} options and features");
        let (met, all, missing) = self.met.summary();
        let more = if missing.len() > NAMED { ", ..." } else { "" };
        let missing = missing.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
        let missing = if missing.is_empty() { String::new() } else { format!("; not {missing}{more}") };
        println!("simulate: {met} of {all} pairs of activities met{missing}");
    }
}

/// What the workers share.
struct Work {
    next: u64,
    sums: Sums,
    /// A seed that fails, and why.
    failed: Option<(u64, String)>,
}

/// Histories until one fails or time is over.
///
/// # Errors
/// A history fails, which was told; or the command line is wrong.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let (mut seconds, mut histories, mut first) = (60, u64::MAX, 1);
    let mut shrinking = SHRINKING;
    let mut whole = Limits::of(first);
    let mut places: Vec<Option<usize>> = processors().into_iter().map(Some).collect();
    for (name, value) in pairs(arguments)? {
        match name {
            "--seconds" => seconds = number(name, value)?,
            "--histories" => (histories, seconds) = (number(name, value)?, u64::MAX >> 32),
            "--jobs" => {
                let jobs = number(name, value)?.max(1) as usize;
                let processors = places.clone();
                places = (0..jobs).map(|job| *processors.get(job % processors.len().max(1))?).collect();
            }
            "--seed" => first = number(name, value)?,
            "--shrink" => shrinking = number(name, value)?,
            "--plant" => whole.plant = Some(plant(value)?),
            "--without" => whole.without = without(value)?,
            other => return Err(format!("{other}: no such option")),
        }
    }
    if places.is_empty() {
        places.push(None);
    }
    let start = Instant::now();
    let sums = Sums {
        histories: 0,
        twice: 0,
        by_name: BTreeMap::new(),
        met: Met::default(),
        settings: Settings::drawn(),
    };
    let work = Mutex::new(Work { next: first, sums, failed: None });
    let lock = || -> MutexGuard<'_, Work> { work.lock().unwrap_or_else(PoisonError::into_inner) };
    let take = || {
        let mut work = lock();
        let over = work.failed.is_some() || start.elapsed() >= Duration::from_secs(seconds);
        if over || work.next >= first.saturating_add(histories) {
            return None;
        }
        work.next += 1;
        Some(Limits { seed: work.next - 1, schedule: work.next - 1, ..whole.clone() })
    };
    std::thread::scope(|scope| {
        for &place in &places {
            scope.spawn(move || {
                while let Some(limits) = take() {
                    let lived = live(&limits, place);
                    let again = (limits.seed % TWICE == 0).then(|| live(&limits, place));
                    let mut work = lock();
                    work.sums.twice += u64::from(again.is_some());
                    let failure = match (&lived, again) {
                        (lived, Some(again)) if again != *lived => {
                            Some(format!("it is not the same twice:\n{lived:?}\n{again:?}"))
                        }
                        (Err(why), _) => Some(why.clone()),
                        (Ok(line), _) => {
                            work.sums.add(&limits, line);
                            None
                        }
                    };
                    // Of several that fail, the first.
                    if let Some(why) = failure
                        && work.failed.as_ref().is_none_or(|(seed, _)| limits.seed < *seed)
                    {
                        work.failed = Some((limits.seed, why));
                    }
                }
            });
        }
    });
    let Work { sums, failed, .. } = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    sums.tell(start.elapsed());
    match failed {
        None => Ok(()),
        Some((seed, why)) => {
            let limits = Limits { seed, schedule: seed, ..whole };
            Err(told(&limits, &why, places[0], Duration::from_secs(shrinking)))
        }
    }
}

/// A failing history: what is wrong with it, and with a smaller one that is looked for so long.
fn told(limits: &Limits, why: &str, processor: Option<usize>, shrinking: Duration) -> String {
    println!("FAILS (seed {}): {why}", limits.seed);
    let start = Instant::now();
    let fails = |limits: &Limits| live(limits, processor).is_err();
    let small = shrink::shrink(limits, fails, || start.elapsed() >= shrinking);
    if small != *limits
        && let Err(why) = live(&small, processor)
    {
        println!("smaller: {why}\nagain: cargo xtask simulate one {}", small.arguments().join(" "));
    }
    format!("seed {} fails; again: cargo xtask simulate one {}", limits.seed, limits.arguments().join(" "))
}
