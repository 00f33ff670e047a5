//! The same calls on Outcrop and on one RocksDB, compared to the letter.
//!
//! ```text
//! draw(seed) -> calls --+--> play on RocksDB --+--> told: one line per answer, the latest sequence number after it,
//!                       +--> play on Outcrop --+    every batch that the WALs still have, every error's text
//! ```
//! Beside the turns on one directory (`run.rs`), where only classes of errors are compared, this finds what a program
//! sees that logs or parses what the library says, or that follows sequence numbers. Each engine has a directory of its
//! own; what names it, and the numbers of files, are taken out of texts.
//!
//! Both libraries are loaded into this process: nothing is drawn here that RocksDB does not survive.

mod draw;
mod judge;
mod play;
mod updates;

use crate::features::OUTCROP;
use crate::library::Api;
use crate::scratch::Scratch;
use outcrop_base::random::SplitMix as Random;
use play::Player;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use judge::ON_PURPOSE;

/// The comparison to make.
pub struct Campaign {
    /// RocksDB's library and Outcrop's, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases go.
    pub scratch: PathBuf,
    /// Seed of the first case.
    pub seed: u64,
    /// So many cases, of seeds from 1 on, come first: the same each time.
    pub fixed: u64,
    /// So many cases after these; without it as many as the time lets.
    pub cases: Option<u64>,
    /// How long cases are drawn.
    pub time: Duration,
    /// Each call is printed before it is made: the last one is what an engine did not survive.
    pub trace: bool,
}

/// Compares cases; false if anything differs that does not differ on purpose.
///
/// # Errors
/// A library is missing, or a directory cannot be made.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let (mut ours, mut theirs) = (None, None);
    for (name, path) in &campaign.libraries {
        let api = Api::load(path)?;
        if name == OUTCROP { ours = Some(api) } else { theirs = Some(api) }
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Err(format!("needs {OUTCROP} and a RocksDB"));
    };
    let start = Instant::now();
    let (mut calls, mut errors, mut numbers, mut failed) = (0, BTreeSet::new(), 0, BTreeMap::new());
    let mut cases = 0;
    for seed in (1..=campaign.fixed).chain(campaign.seed..) {
        let drawn =
            campaign.cases.map_or(start.elapsed() >= campaign.time, |most| cases >= campaign.fixed + most);
        if cases >= campaign.fixed && drawn {
            break;
        }
        cases += 1;
        let (mut before, mut opened_at) = (None, 0);
        let dir = Scratch::new(&campaign.scratch, "calls")?;
        let case = draw::case(&mut Random::new(seed));
        let mut reference = Player::new(&theirs, &case, dir.path(), "theirs")?;
        let mut outcrop = Player::new(&ours, &case, dir.path(), "ours")?;
        for (number, call) in case.calls.iter().enumerate() {
            if campaign.trace {
                eprintln!("seed {seed}, call {number}: {call:?}");
            }
            let their = reference.told(call);
            let our = outcrop.told(call);
            calls += 1;
            numbers += u64::from(their.number.is_some());
            errors.extend(
                their.answers.iter().filter_map(|answer| answer.strip_prefix("error: ")).map(judge::shape),
            );
            let mut differences = judge::differences(&case, call, &their, &our);
            // RocksDB forgets numbers that only dropped column families had: nothing after it can be compared.
            let forgot = call.opens() && their.number < before && their.number < our.number;
            before = their.number;
            let lost = judge::is_lost_to_a_merge(&their, &our);
            if forgot || lost {
                differences.clear();
            }
            if our.number.is_some_and(|now| now < opened_at) {
                let told =
                    format!("Outcrop's sequence number went back: {:?} after {}", our.number, opened_at);
                differences.push(judge::Difference { told, lasting: true });
            }
            if call.opens() {
                opened_at = our.number.unwrap_or(0);
            }
            for difference in &differences {
                let first = failed.entry(judge::shape(&difference.told)).or_insert(0);
                *first += 1;
                if *first == 1 {
                    println!("DIFFERS (seed {seed}, call {number}, {call:?}): {}", difference.told);
                    println!("again: cargo xtask calls --seed {seed} --cases 1");
                }
            }
            // Later answers would differ because of it.
            if differences.iter().any(|difference| difference.lasting) {
                println!("    after {:?} and {:?}", case.options, &case.calls[..number]);
            }
            let parted = differences.iter().any(|difference| difference.lasting) || judge::part(&their, &our);
            if parted || forgot || lost {
                break;
            }
        }
    }
    eprintln!(
        "calls: {cases} cases, {calls} calls, {numbers} sequence numbers and histories, {} texts of errors, {} differences",
        errors.len(),
        failed.len()
    );
    Ok(failed.is_empty())
}
