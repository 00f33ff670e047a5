//! A writer on the real file system is killed at a random moment, again and again; what is left is opened by Outcrop and by
//! RocksDB in turn, in the four modes of WAL recovery.
//!
//! ```text
//! plan(seed, cycle) -> writer process: opens, 1 to 32 threads write ----SIGKILL
//!                        | events: begun, done (a pipe: what was written stays readable)
//!                        v
//!                   [a process that recovers, SIGKILL]   one cycle in four
//!                   opened by one engine, and in one cycle in three then by the other: `history::judge`
//! ```
//! A death of the process loses no byte that was handed to the system: all that was acknowledged is there, in every mode, unless
//! the WAL is flushed by hand, where what was synced is, and nothing behind a gap. The mode that wants every record whole may refuse
//! a WAL whose last record is half written; then the next mode opens it, and refusals are counted.
//!
//! Threads are not repeated by a seed; the plan is, and what is left is kept beside the finding.

mod plan;
mod writer;

pub use plan::{Plan, plan};
pub use writer::serve;

use crate::features::OUTCROP;
use crate::history::{Lasting, Rows, judge};
use crate::library::Api;
use crate::rows::{copy, read};
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use writer::Killed;

/// The modes of WAL recovery, by RocksDB's names.
const MODES: [&str; 4] = [
    "kTolerateCorruptedTailRecords",
    "kAbsoluteConsistency",
    "kPointInTimeRecovery",
    "kSkipAnyCorruptedRecords",
];

/// The cycles to play.
pub struct Campaign {
    /// This program, for the writers.
    pub program: PathBuf,
    /// Outcrop's library and RocksDB's, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases are, and what is left of one that fails.
    pub dir: PathBuf,
    /// Seed of the first history; each adds one.
    pub seed: u64,
    /// So many histories, instead of as many as the time lets.
    pub histories: Option<u64>,
    /// How long.
    pub time: Duration,
    /// Kills of one directory.
    pub cycles: u64,
}

#[derive(Default)]
struct Tally {
    cycles: u64,
    acknowledged: u64,
    during_opening: u64,
    during_recovery: u64,
    refused: u64,
    lost: u64,
    opened_by: BTreeMap<String, u64>,
    by_mode: BTreeMap<&'static str, u64>,
}

/// Plays; false if what is left of a database is not what it has to be.
///
/// # Errors
/// A library is missing, or a directory cannot be made.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let engines: BTreeMap<&str, Api> = campaign
        .libraries
        .iter()
        .map(|(name, path)| Ok((name.as_str(), Api::load(path)?)))
        .collect::<Result<_, String>>()?;
    if engines.len() != 2 || !engines.contains_key(OUTCROP) {
        return Err(format!("needs {OUTCROP} and a RocksDB"));
    }
    let named = |error: std::io::Error| format!("{}: {error}", campaign.dir.display());
    std::fs::create_dir_all(&campaign.dir).map_err(named)?;
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut failures = 0;
    for seed in campaign.seed.. {
        let played = seed - campaign.seed;
        if campaign.histories.map_or(start.elapsed() >= campaign.time, |wanted| played >= wanted)
            || failures > 0
        {
            break;
        }
        let scratch = Scratch::new(&campaign.dir, "kills")?;
        let mut history = History { campaign, engines: &engines, dir: scratch.path(), rows: Rows::new() };
        for cycle in 0..campaign.cycles {
            let enough = campaign.histories.is_none() && start.elapsed() >= campaign.time;
            if enough {
                break;
            }
            let plan = plan(seed, cycle, &campaign.libraries.keys().map(String::as_str).collect::<Vec<_>>());
            if let Err(why) = history.cycle(&plan, &mut tally) {
                failures += 1;
                println!("FAILS (seed {seed}, cycle {cycle}, {plan:?}): {why}");
                let kept = campaign.dir.join(format!("failed-{seed}-{cycle}"));
                let _ = std::fs::remove_dir_all(&kept);
                std::fs::rename(scratch.path(), &kept).map_err(named)?;
                println!(
                    "    {} is what the writer left, {} what is there now",
                    kept.join("before").display(),
                    kept.join("db").display()
                );
                println!("again: cargo xtask kills --seed {seed} --histories 1 --cycles {}", campaign.cycles);
                break;
            }
            tally.cycles += 1;
        }
    }
    report(&tally, start.elapsed());
    Ok(failures == 0)
}

fn report(tally: &Tally, took: Duration) {
    let rate = tally.cycles as f64 / took.as_secs_f64();
    println!(
        "kills: {} cases in {:.0} s, {rate:.1} a second; {} writes acknowledged, {} of them lost as their mode allows, \
         {} killed while opening, {} while recovering, {} refused by kAbsoluteConsistency",
        tally.cycles,
        took.as_secs_f64(),
        tally.acknowledged,
        tally.lost,
        tally.during_opening,
        tally.during_recovery,
        tally.refused
    );
    let list = |counts: Vec<(String, u64)>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let opened = tally.opened_by.iter().map(|(name, count)| (name.clone(), *count)).collect();
    let modes = tally.by_mode.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
    println!("  opened by: {}; in the modes: {}", list(opened), list(modes));
}

/// One directory and the kills it lives through.
struct History<'h> {
    campaign: &'h Campaign,
    engines: &'h BTreeMap<&'h str, Api>,
    dir: &'h Path,
    /// As they were after the last cycle.
    rows: Rows,
}

impl History<'_> {
    fn cycle(&mut self, plan: &Plan, tally: &mut Tally) -> Result<(), String> {
        let db = self.dir.join("db");
        let Killed { log, opened } = self.kill_writer(plan, &db)?;
        tally.during_opening += u64::from(!opened);
        tally.acknowledged += log.acknowledged();
        if let Some(recovering) = &plan.recovering {
            let killed = self.kill_writer(recovering, &db)?;
            tally.during_recovery += u64::from(!killed.opened);
        }
        copy(&db, &self.dir.join("before"))?;
        for (place, engine) in plan.openers.iter().enumerate() {
            let found = self.open_and_read(plan, engine, &db, tally)?;
            let there = judge(&plan.shape, &log, &self.rows, &found, plan.lasting())
                .map_err(|why| format!("opened by {engine} (number {}): {why}", place + 1))?;
            if place == 0 {
                let all: u64 = there.iter().sum();
                tally.lost += log.acknowledged().saturating_sub(all);
                if plan.lasting() == Lasting::Acknowledged && all < log.acknowledged() {
                    return Err(format!("{all} writes of {} are there", log.acknowledged()));
                }
            }
            *tally.opened_by.entry(engine.clone()).or_insert(0) += 1;
            *tally.by_mode.entry(MODES[plan.mode]).or_insert(0) += 1;
            if place + 1 == plan.openers.len() {
                self.rows = found;
            }
        }
        Ok(())
    }

    fn kill_writer(&self, plan: &Plan, db: &Path) -> Result<Killed, String> {
        let library = &self.campaign.libraries[&plan.writer];
        writer::kill(&self.campaign.program, library, db, plan)
    }

    /// Opens in the mode of the plan; where that refuses a record that is half written, in the one that ends there.
    fn open_and_read(&self, plan: &Plan, engine: &str, db: &Path, tally: &mut Tally) -> Result<Rows, String> {
        let api = &self.engines[engine];
        match read(api, &plan.options, MODES[plan.mode], db) {
            Err(why) if plan.mode == 1 && why.starts_with("Corruption") => {
                tally.refused += 1;
                read(api, &plan.options, MODES[2], db)
                    .map_err(|error| format!("{engine}, after {why}: {error}"))
            }
            other => other.map_err(|error| format!("{engine} with {}: {error}", MODES[plan.mode])),
        }
    }
}
