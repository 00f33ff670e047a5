//! One seed, one history of the whole engine: threads, locks, waits, clocks, files and their faults are decided by a seed.
//!
//! ```text
//! outcrop-simulator run [--seconds N] [--histories N] [--seed S] [--without A,B]    histories of S, S+1, ..., each in a process of its own
//! outcrop-simulator one --seed S [--schedule N] [--cycles N] [--threads N] [--writes N] [--without A,B]    one of them
//! ```
//! With `--plant syncs` the disk lies about syncs, with `--plant locks` transactions neither lock nor check the keys that several threads
//! write: histories have to fail.
//!
//! The engine is compiled as it is; its locks are those of `parking_lot/` here, its environment is in `disk.rs` and `surroundings.rs`.
//! A process of its own, because statics of the engine (file ids of the cache) go on counting: a seed replays from the start.
//!
//! Read on: `parking_lot/src/world.rs` (who runs), `plan.rs` (what is drawn), `life.rs` (what happens and what is right), `application.rs` (what its
//! threads do).

mod application;
mod blame;
mod coming;
mod copies;
mod counts;
mod disk;
#[allow(dead_code, reason = "a file of the engine's tests, of which a part is used")]
#[path = "../../crates/engine/tests/it/harness.rs"]
mod harness;
mod ingesting;
mod life;
mod opened;
mod plan;
mod prepared;
mod registers;
mod shrink;
mod surroundings;
mod transacting;

use outcrop_pingpong::progress::{Patience, Watchdog};
use plan::{FEATURES, Limits, Plant};
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The patience with a history: one of which nothing runs waits for something that is no step. The longest have thirty million steps, at more
/// than a hundred thousand for a second of processor time.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(120), work: Duration::from_secs(1800) };
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// One history in so many is lived twice: the same steps, or a seed replays nothing.
const TWICE: u64 = 8;
/// Time to make a failing history smaller.
const SHRINKING: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("one") => one(&arguments[1..]),
        Some("run") => run(&arguments[1..]),
        _ => Err("usage: outcrop-simulator run|one; see the first lines of main.rs".to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("simulate: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Options of the command line, in pairs.
fn pairs(arguments: &[String]) -> Result<Vec<(&str, &str)>, String> {
    arguments
        .chunks(2)
        .map(|pair| match pair {
            [name, value] => Ok((name.as_str(), value.as_str())),
            _ => Err(format!("{}: needs a value", pair[0])),
        })
        .collect()
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value}: not a number"))
}

/// One history in this process.
fn one(arguments: &[String]) -> Result<(), String> {
    let limits = limits(arguments)?;
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        hook(panic);
    }));
    let tally = life::live(&limits)?;
    if PANICKED.load(Ordering::Relaxed) {
        return Err("a thread panicked".to_string());
    }
    println!(
        "lived trace {:016x} steps {} cycles {} writes {} faults {} {}",
        tally.trace, tally.steps, tally.cycles, tally.writes, tally.faults, tally.counts
    );
    Ok(())
}

fn limits(arguments: &[String]) -> Result<Limits, String> {
    let pairs = pairs(arguments)?;
    let seed = pairs.iter().find(|(name, _)| *name == "--seed").ok_or("--seed is missing")?;
    let mut limits = Limits::of(number("--seed", seed.1)?);
    for (name, value) in pairs {
        match name {
            "--seed" => {}
            "--schedule" => limits.schedule = number(name, value)?,
            "--cycles" => limits.cycles = number(name, value)?,
            "--threads" => limits.threads = number(name, value)? as usize,
            "--writes" => limits.writes = number(name, value)?,
            "--plant" => limits.plant = Some(plant(value)?),
            "--without" => limits.without = without(value)?,
            other => return Err(format!("{other}: no such option")),
        }
    }
    Ok(limits)
}

fn plant(name: &str) -> Result<Plant, String> {
    Plant::of(name).ok_or_else(|| format!("--plant {name}: no such mistake"))
}

fn without(names: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = names.split(',').map(String::from).collect();
    match names.iter().find(|name| !FEATURES.contains(&name.as_str())) {
        Some(unknown) => Err(format!("--without {unknown}: there are {}", FEATURES.join(", "))),
        None => Ok(names),
    }
}

/// How the process of a history ended: the line that sums it up, or all that it said.
fn live(limits: &Limits) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let mut child = Command::new(program)
        .arg("one")
        .args(limits.arguments())
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

/// The sums of many histories.
#[derive(Default)]
struct Sums {
    histories: u64,
    twice: u64,
    by_name: std::collections::BTreeMap<String, u64>,
}

impl Sums {
    /// Adds the line of a history: names and numbers.
    fn add(&mut self, line: &str) {
        self.histories += 1;
        let words: Vec<&str> = line.split(' ').collect();
        for pair in words.windows(2) {
            if let Ok(number) = pair[1].parse::<u64>() {
                *self.by_name.entry(pair[0].to_string()).or_default() += number;
            }
        }
    }
}

/// Histories one after the other, until one fails or time is over.
fn run(arguments: &[String]) -> Result<(), String> {
    let (mut seconds, mut histories, mut first) = (60, u64::MAX, 1);
    let mut whole = Limits::of(first);
    for (name, value) in pairs(arguments)? {
        match name {
            "--seconds" => seconds = number(name, value)?,
            "--histories" => (histories, seconds) = (number(name, value)?, u64::MAX >> 32),
            "--seed" => first = number(name, value)?,
            "--plant" => whole.plant = Some(plant(value)?),
            "--without" => whole.without = without(value)?,
            other => return Err(format!("{other}: no such option")),
        }
    }
    let start = Instant::now();
    let mut sums = Sums::default();
    let mut failure = None;
    for seed in first..first.saturating_add(histories) {
        if start.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        let limits = Limits { seed, schedule: seed, ..whole.clone() };
        let lived = live(&limits);
        if let Ok(line) = &lived {
            sums.add(line);
        }
        if seed % TWICE == 0 {
            sums.twice += 1;
            let again = live(&limits);
            if again != lived {
                failure = Some(format!("seed {seed} is not the same twice:\n{lived:?}\n{again:?}"));
                break;
            }
        }
        if let Err(why) = lived {
            failure = Some(told(&limits, &why));
            break;
        }
    }
    let took = start.elapsed().as_secs_f64();
    let sums_told: Vec<String> = sums.by_name.iter().map(|(name, sum)| format!("{sum} {name}")).collect();
    println!(
        "simulate: {} cases in {took:.0} s, {:.1} a second; {} lived twice; {}",
        sums.histories,
        sums.histories as f64 / took,
        sums.twice,
        sums_told.join(", ")
    );
    failure.map_or(Ok(()), Err)
}

/// A failing history: what is wrong with it, and with a smaller one.
fn told(limits: &Limits, why: &str) -> String {
    println!("FAILS (seed {}): {why}", limits.seed);
    let start = Instant::now();
    let small = shrink::shrink(limits, |limits| live(limits).is_err(), || start.elapsed() >= SHRINKING);
    if small != *limits
        && let Err(why) = live(&small)
    {
        println!("smaller: {why}\nagain: cargo xtask simulate one {}", small.arguments().join(" "));
    }
    format!("seed {} fails; again: cargo xtask simulate one {}", limits.seed, limits.arguments().join(" "))
}
