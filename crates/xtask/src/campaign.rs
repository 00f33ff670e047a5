//! `cargo xtask campaign`: every generator in turn, for hours, each time with a seed that nobody has played.
//!
//! ```text
//! the campaign that had least time -> a slice: `cargo xtask VERB --seconds N --seed S` in a process of its own
//!     DIR/programs/         what it plays with, built and put aside when it begins
//!     DIR/ledger.jsonl      a line before each slice, with its seed, and one after it
//!     DIR/findings/         of a slice that failed: seed, command that plays it again, last lines of its output
//!     DIR/report.json       the table that is printed at the end
//! ```
//! A slice that fails is a finding, and the campaign goes on with the next seed. A campaign whose slice ends well without a case
//! cannot be played on this machine: it is left alone until the run is resumed, and the table says why. One that says nothing about its end for
//! [`slice::PATIENCE`] beyond its time is ended, and is a finding too. With `--resume` the slice that was under way when the run was
//! killed is played again with its seed; times and findings of before count.
//!
//! Next: `slice.rs` runs one, `ledger.rs` remembers, `table.rs` tells.

mod ledger;
mod slice;
mod table;

use crate::{crashes, fuzz, guided, pingpong, programs, root, simulate, tidy};
use ledger::{Begun, Ledger};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How it is called.
pub const USAGE: &str = "campaign --hours N | --minutes N [--only A,B] [--dir DIR] [--resume]";

/// Every campaign: a verb (`guided`: `fuzz --guided`) that takes `--seconds` and `--seed`, says `VERB: N cases` and fails if it finds something.
const CAMPAIGNS: [&str; 12] = [
    "calls",
    "options",
    "pingpong",
    "timestamps",
    "expiry",
    "fuzz",
    "guided",
    "crashes",
    "kills",
    "block-crashes",
    "stress",
    "simulate",
];
/// Seconds of a slice at most: so much is lost when a run is killed.
const LONGEST_SLICE: u64 = 300;
/// Slices of each campaign, if the time lets.
const SLICES: u32 = 4;
/// Findings in a row after which a campaign is left alone: it fails whatever the seed is.
const HOPELESS: u32 = 10;

/// One campaign: its name, and the command that plays a seed for so many seconds.
struct Campaign {
    name: String,
    command: Box<dyn Fn(u64, u64) -> Command>,
}

/// The run that was asked for.
struct Plan {
    time: Duration,
    dir: PathBuf,
    resume: bool,
}

/// Runs the verb.
///
/// # Errors
/// The arguments, the building of programs, or that something was found.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (plan, names) = parse(arguments)?;
    let kept = plan.dir.join("programs");
    let mut ledger = Ledger::open(&plan.dir, plan.resume)?;
    if !plan.resume || !kept.exists() {
        put_programs_aside(&kept, &names)?;
    }
    let xtask = kept.join("xtask");
    let campaigns: Vec<Campaign> = names
        .into_iter()
        .map(|name| {
            let (xtask, kept, verb) = (xtask.clone(), kept.clone(), name.clone());
            let command = move |seed: u64, seconds: u64| {
                let mut command = Command::new(&xtask);
                command.env(programs::VARIABLE, &kept).current_dir(root());
                command.args(slice_arguments(&verb, seed, seconds));
                command
            };
            Campaign { name, command: Box::new(command) }
        })
        .collect();
    let findings = play(&plan, &campaigns, &mut ledger)?;
    if campaigns.iter().all(|campaign| ledger.skipped(&campaign.name).is_some()) {
        return Err("no case of any campaign was played".to_string());
    }
    if findings == 0 {
        return Ok(());
    }
    Err(format!("{findings} findings, in {}", plan.dir.join("findings").display()))
}

fn parse(arguments: &[&str]) -> Result<(Plan, Vec<String>), String> {
    let (mut time, mut dir, mut resume) = (None, None, false);
    let mut names = CAMPAIGNS.map(String::from).to_vec();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value =
            || rest.next().copied().ok_or_else(|| format!("{argument} needs a value; usage: {USAGE}"));
        match *argument {
            "--hours" => time = Some(length(value()?, 3600.0)?),
            "--minutes" => time = Some(length(value()?, 60.0)?),
            "--dir" => dir = Some(PathBuf::from(value()?)),
            "--resume" => resume = true,
            "--only" => names = chosen(value()?)?,
            other => return Err(format!("{other}: no such option; usage: {USAGE}")),
        }
    }
    let time = time.ok_or_else(|| format!("for how long? usage: {USAGE}"))?;
    let dir = dir.unwrap_or_else(|| programs::target_dir().join("campaign"));
    let dir = std::path::absolute(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok((Plan { time, dir, resume }, names))
}

fn length(text: &str, unit: f64) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let number = number.ok_or_else(|| format!("{text}: no length of time; usage: {USAGE}"))?;
    Ok(Duration::from_secs_f64(number * unit))
}

fn chosen(list: &str) -> Result<Vec<String>, String> {
    list.split(',')
        .map(|name| match CAMPAIGNS.contains(&name) {
            true => Ok(name.to_string()),
            false => Err(format!("--only {name}: no such campaign; there are {}", CAMPAIGNS.join(", "))),
        })
        .collect()
}

/// The command line of a slice, after `cargo xtask`.
fn slice_arguments(verb: &str, seed: u64, seconds: u64) -> Vec<String> {
    // The fuzzers take seconds for each of their targets.
    let fuzzes = ["fuzz", "guided"].contains(&verb);
    let seconds = if fuzzes { (seconds / fuzz::targets() as u64).max(1) } else { seconds };
    let mut arguments: Vec<String> = match verb {
        "guided" => ["fuzz", "--guided"].map(String::from).to_vec(),
        _ => vec![verb.to_string()],
    };
    arguments.extend(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()].map(String::from));
    if verb == "options" {
        arguments.push("--random-only".to_string());
    }
    arguments
}

/// Builds what these campaigns need, and copies it.
fn put_programs_aside(kept: &Path, names: &[String]) -> Result<(), String> {
    let wants = |verbs: &[&str]| names.iter().any(|name| verbs.contains(&name.as_str()));
    let mut files = Vec::new();
    let this = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    files.push(("xtask".to_string(), this));
    if wants(&["calls", "options", "pingpong", "timestamps", "expiry", "kills", "block-crashes", "stress"]) {
        for name in pingpong::PROGRAMS {
            files.push((name.to_string(), programs::built(name)?));
        }
    }
    if wants(&["fuzz"]) {
        files.push((fuzz::PROGRAM.to_string(), fuzz::build()?));
    }
    if wants(&["guided"]) && guided::compiler().is_ok() {
        files.push((guided::PROGRAM.to_string(), guided::build()?));
    }
    if wants(&["crashes"]) {
        files.push((crashes::PROGRAM.to_string(), crashes::build()?));
    }
    if wants(&["simulate"]) {
        files.push((simulate::PROGRAM.to_string(), simulate::build()?));
    }
    std::fs::create_dir_all(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    for (name, path) in files {
        std::fs::copy(&path, kept.join(name)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Plays slices until the time is over; gives the number of findings, of earlier parts of the run too.
fn play(plan: &Plan, campaigns: &[Campaign], ledger: &mut Ledger) -> Result<usize, String> {
    let longest =
        (plan.time.as_secs() / (campaigns.len() as u64 * u64::from(SLICES))).clamp(1, LONGEST_SLICE);
    loop {
        let left = plan.time.saturating_sub(ledger.time());
        let Some(campaign) = next(campaigns, ledger).filter(|_| !left.is_zero()) else { break };
        let begun = ledger.left_over(&campaign.name).unwrap_or_else(|| Begun {
            campaign: campaign.name.clone(),
            seed: fresh_seed(ledger),
            seconds: longest.min(left.as_secs().max(1)),
        });
        ledger.begin(&begun)?;
        progress(&format!(
            "campaign: {} of {} s, {} findings; {} with seed {}",
            ledger.time().as_secs(),
            plan.time.as_secs(),
            ledger.findings(),
            begun.campaign,
            begun.seed
        ));
        let ended = slice::play(&plan.dir, &begun, (campaign.command)(begun.seed, begun.seconds))?;
        ledger.end(ended)?;
    }
    progress("");
    let rows = table::rows(campaigns.iter().map(|campaign| campaign.name.as_str()), ledger);
    print!("{}", table::print(&rows));
    let path = plan.dir.join("report.json");
    let report = table::json(&rows, ledger, tree().as_deref());
    std::fs::write(&path, report).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(ledger.findings())
}

/// The campaign whose turn it is: a slice that was under way first, then the one that had least time. None: each fails with every seed,
/// or plays nothing on this machine.
fn next<'c>(campaigns: &'c [Campaign], ledger: &Ledger) -> Option<&'c Campaign> {
    let under_way = campaigns.iter().find(|campaign| ledger.left_over(&campaign.name).is_some());
    let hopeful = campaigns.iter().filter(|campaign| {
        ledger.failures_in_a_row(&campaign.name) < HOPELESS && !ledger.is_impossible(&campaign.name)
    });
    under_way.or_else(|| hopeful.min_by_key(|campaign| ledger.time_of(&campaign.name)))
}

/// A seed that is not in the ledger, small enough to type.
fn fresh_seed(ledger: &Ledger) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seed = now.as_micros() as u64 % 1_000_000_000;
    while ledger.has_seed(seed) {
        seed += 1;
    }
    seed
}

/// The tree that is played, for the report.
fn tree() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "HEAD^{tree}"]).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// One line that is written over, on a terminal alone.
fn progress(line: &str) {
    let mut errors = std::io::stderr();
    if errors.is_terminal() {
        // A terminal that is gone is no reason to end.
        let _ = write!(errors, "\r\x1b[K{line}").and_then(|()| errors.flush());
    }
}

/// Reads a file of a campaign.
fn read(path: &Path) -> Result<String, String> {
    tidy::read(path)
}

#[cfg(test)]
mod tests;
