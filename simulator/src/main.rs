//! One seed, one history of the whole engine: threads, locks, waits, clocks, files and their faults are decided by a seed.
//!
//! ```text
//! outcrop-simulator run [--seconds N] [--histories N] [--jobs N] [--seed S] [--without A,B] [--shrink N]
//!     histories of S, S+1, ..., each in a process of its own, one on each processor at a time; N seconds to make one that fails smaller
//! outcrop-simulator one --seed S [--schedule N] [--cycles N] [--threads N] [--writes N] [--without A,B] [--processor N]
//!     one of them; all of its threads on processor N, which is faster: one runs at a time
//! ```
//! With `--plant syncs` the disk lies about syncs, with `--plant locks` transactions neither lock nor check the keys that several threads
//! write: histories have to fail.
//!
//! The engine is compiled as it is; its locks are those of `parking_lot/` here, its environment is in `disk.rs` and `surroundings.rs`.
//! A process of its own, because statics of the engine (file ids of the cache) go on counting: a seed replays from the start.
//!
//! Read on: `parking_lot/src/world.rs` (which thread runs), `plan.rs` (what is drawn), `life.rs` (what happens and what is right), `application.rs` (what its
//! threads do), `many.rs` (many histories), `races.rs` and `settings.rs` (what they covered).

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
mod many;
mod opened;
mod plan;
mod prepared;
mod races;
mod registers;
mod settings;
mod shrink;
mod surroundings;
mod transacting;

use plan::{FEATURES, Limits, Plant};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("one") => one(&arguments[1..]),
        Some("run") => many::run(&arguments[1..]),
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
    let (limits, processor) = limits(arguments)?;
    if let Some(processor) = processor {
        many::stay_on(processor)?;
    }
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
        "lived trace {:016x} steps {} cycles {} writes {} faults {} {} met {}",
        tally.trace,
        tally.steps,
        tally.cycles,
        tally.writes,
        tally.faults,
        tally.counts,
        races::met()
    );
    Ok(())
}

/// A history, and the processor that it stays on.
fn limits(arguments: &[String]) -> Result<(Limits, Option<usize>), String> {
    let mut processor = None;
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
            "--processor" => processor = Some(number(name, value)? as usize),
            "--plant" => limits.plant = Some(plant(value)?),
            "--without" => limits.without = without(value)?,
            other => return Err(format!("{other}: no such option")),
        }
    }
    Ok((limits, processor))
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
