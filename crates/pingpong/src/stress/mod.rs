//! Many threads of one process do everything at once to a database, through the C API: it is opened, written, read by every call,
//! flushed, compacted, copied, reconfigured and closed, again and again.
//!
//! ```text
//! parent: a seed, an engine --> child: cycles of   open -> writers, readers, upkeep, others that open -> all read -> close
//!         a line for each cycle <--                 then memory, threads and descriptors are counted, which may not grow
//! ```
//! The parent lets RocksDB live through one seed in four, as a control of the harness. A child that does not get
//! on hangs (`progress.rs`). Writes, and how reads are judged: `shape.rs`. The schedule of threads is the system's: a seed repeats
//! what is drawn, not what happens.

mod plan;
mod readers;
mod resources;
mod shape;
mod upkeep;
mod worker;

pub use worker::serve;

use crate::features::OUTCROP;
use crate::progress::{Patience, Watchdog};
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The patience with a child for a cycle: a second or two of processor time is usual.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(120), work: Duration::from_secs(1200) };
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// One seed in so many is RocksDB's.
const CONTROL: u64 = 4;
/// Openings of one process.
const CYCLES: u64 = 8;

/// The seeds to live through.
pub struct Campaign {
    /// This program, for the children.
    pub program: PathBuf,
    /// Outcrop's library and RocksDB's, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases are.
    pub scratch: PathBuf,
    /// The first seed; each process adds one.
    pub seed: u64,
    /// So many processes, instead of as many as the time lets.
    pub processes: Option<u64>,
    /// How long.
    pub time: Duration,
}

/// Lives through them; false if a promise is broken.
///
/// # Errors
/// A library is missing, or a child cannot be started.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    if campaign.libraries.len() != 2 || !campaign.libraries.contains_key(OUTCROP) {
        return Err(format!("needs {OUTCROP} and a RocksDB"));
    }
    let start = Instant::now();
    let (mut cycles, mut operations, mut reads) = (0, 0, 0);
    let mut passed = true;
    for seed in campaign.seed.. {
        let played = seed - campaign.seed;
        let enough = campaign.processes.map_or(start.elapsed() >= campaign.time, |wanted| played >= wanted);
        if enough || !passed {
            break;
        }
        let ours = seed % CONTROL != CONTROL - 1;
        let (name, library) =
            campaign.libraries.iter().find(|(name, _)| (*name == OUTCROP) == ours).expect("two engines");
        match live(campaign, library, seed) {
            Ok(lived) => {
                cycles += lived.cycles;
                operations += lived.writes;
                reads += lived.reads;
            }
            Err(why) => {
                println!("FAILS (seed {seed}, {name}): {why}");
                println!("again: cargo xtask stress --seed {seed} --processes 1");
                passed = false;
            }
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "stress: {cycles} cases in {took:.0} s, {:.1} a second; each opened, written and read by many threads, and closed: {operations} \
         batches, {reads} moments judged",
        f64::from(u32::try_from(cycles).unwrap_or(u32::MAX)) / took
    );
    Ok(passed)
}

#[derive(Default)]
struct Lived {
    cycles: u64,
    writes: u64,
    reads: u64,
}

/// One child, to its end.
fn live(campaign: &Campaign, library: &Path, seed: u64) -> Result<Lived, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", campaign.program.display());
    let scratch = Scratch::new(&campaign.scratch, "stress")?;
    let mut errors = tempfile::tempfile().map_err(failed)?;
    let mut child = Command::new(&campaign.program)
        .args([Path::new("stress-worker"), Path::new("--library"), library])
        .args([Path::new("--dir"), scratch.path()])
        .args(["--seed", &seed.to_string(), "--cycles", &CYCLES.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let output = child.stdout.take().expect("piped above");
    let (tell, told) = channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
    });
    let mut lived = Lived::default();
    let mut last = String::new();
    let mut dog = Watchdog::new(child.id(), PATIENCE);
    let hangs = loop {
        match told.recv_timeout(LOOK) {
            Ok(line) => {
                let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
                if let [writes, reads] = numbers[..] {
                    lived.cycles += 1;
                    lived.writes += writes;
                    lived.reads += reads;
                }
                last = line;
            }
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                let hangs = dog.look(lived.cycles);
                if hangs.is_some() {
                    break hangs;
                }
            }
        }
    };
    if hangs.is_some() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    let _ = reader.join();
    let mut printed = String::new();
    let _ = errors.seek(SeekFrom::Start(0)).and_then(|_| errors.read_to_string(&mut printed));
    if let Some(how) = hangs {
        return Err(format!("{how}, after {last:?}; {printed}"));
    }
    if !status.success() || printed.contains("panicked at") {
        return Err(format!("{status}; {printed}"));
    }
    Ok(lived)
}
