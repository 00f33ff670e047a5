//! The power goes while a database is written on a real file system: what the disk may have then is mounted, and opened by Outcrop
//! and by RocksDB.
//!
//! ```text
//! writer process -> ext4, XFS, btrfs -> loop device -> a file served by this process (fuse.rs) -> Disk and its log (disk.rs)
//!       '------------ what it has done (told.rs) ----------------------------------------------------------^
//! then, for many cuts of the log: the disk that the cut leaves -> mounted: the file system recovers -> the database copied
//!       -> Outcrop opens a copy: judged by what stands in the log before the cut (`history::judge`)
//!       -> RocksDB opens another; and at times each opens what the other has recovered
//! ```
//! Kernel, file systems, their journals and mapped memory are the real ones; only the disk is not. Acknowledgements stand in the
//! same log as writes and flushes, so that each state is known to be one that the power may leave at this moment.
//!
//! A second cycle of a history goes on from one of the states, so that file system and engine recover from a recovery.
//! Threads and the system's own moments are not repeated by a seed; plan and cuts are, and the disk of a state that fails is kept.
//!
//! Read next: `disk.rs`, `scenarios.rs` (the histories), `writer.rs`, `state.rs` (one state, judged).

mod disk;
mod fuse;
mod mounts;
mod scenarios;
mod state;
mod told;
mod writer;

pub use writer::serve;

use crate::features::OUTCROP;
use crate::history::Rows;
use crate::library::Api;
use crate::scratch::Scratch;
use disk::{Cut, Disk};
use fuse::Served;
use mounts::{KINDS, Kind};
use outcrop_base::random::SplitMix as Random;
use scenarios::{SCENARIOS, Scenario};
use state::{Seen, Tally};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Cycles of a history.
const CYCLES: u64 = 2;
/// One history in so many is written by RocksDB.
const BY_REFERENCE: u64 = 8;
/// Flushes that a disk with a planted fault ignores.
const IGNORED: usize = 6;

/// The histories to play.
pub struct Campaign {
    /// This program, for the writers.
    pub program: PathBuf,
    /// Outcrop's library and RocksDB's, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where what fails is kept.
    pub dir: PathBuf,
    /// Where databases are copied to: best in memory.
    pub scratch: PathBuf,
    /// Seed of the first history; each adds one. It decides scenario and file system, too.
    pub seed: u64,
    /// So many histories, instead of as many as the time lets.
    pub histories: Option<u64>,
    /// How long.
    pub time: Duration,
    /// States of each cycle; 0: two of every prefix of its log.
    pub states: u64,
    /// Plants a fault that has to be found: the disk ignores the last flushes before the power goes.
    pub ignore_flushes: bool,
}

/// Plays; false if a database is not what it has to be. Where file systems cannot be mounted over this process's disk, that is said,
/// and nothing is played.
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
    let named = |error: std::io::Error| format!("{}: {error}", campaign.scratch.display());
    let scratch = Scratch::new(&campaign.scratch, "block-crashes")?;
    for name in ["disks", "mounted"] {
        std::fs::create_dir(scratch.path().join(name)).map_err(named)?;
    }
    let served = match Served::start(&scratch.path().join("disks")) {
        Ok(served) => served,
        Err(why) => {
            println!("block-crashes: 0 cases: SKIPPED, no disk can be recorded here: {why}");
            return Ok(true);
        }
    };
    let mut kinds: Vec<(&Kind, Disk)> = Vec::new();
    for kind in &KINDS {
        match kind.make(&served).and_then(|disk| tried(kind, disk, &served, scratch.path())) {
            Ok(disk) => kinds.push((kind, disk)),
            Err(why) => println!("block-crashes: NOT on {}: {why}", kind.name),
        }
    }
    if kinds.is_empty() {
        println!("block-crashes: 0 cases: SKIPPED, no file system can be mounted here");
        return Ok(true);
    }
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut failures = 0;
    for seed in campaign.seed.. {
        let played = seed - campaign.seed;
        let enough = campaign.histories.map_or(start.elapsed() >= campaign.time, |wanted| played >= wanted);
        if enough || failures > 0 {
            break;
        }
        let place = seed as usize;
        let (kind, empty) = &kinds[(place + place / SCENARIOS.len()) % kinds.len()];
        let history = History {
            campaign,
            engines: &engines,
            served: &served,
            scratch: scratch.path(),
            scenario: &SCENARIOS[place % SCENARIOS.len()],
            kind,
            seed,
        };
        if let Err(why) = history.play(empty, &mut tally) {
            failures += 1;
            println!("FAILS (history {seed}: {} on {}): {why}", history.scenario.name, kind.name);
            let states = campaign.states;
            println!("again: cargo xtask block-crashes --seed {seed} --histories 1 --states {states}");
        }
    }
    tally.report(start.elapsed());
    if let Err(why) = tally.check() {
        failures += 1;
        println!("FAILS: {why}");
        let (seed, states) = (campaign.seed, campaign.states);
        println!("again: cargo xtask block-crashes --seed {seed} --states {states}");
    }
    Ok(failures == 0)
}

/// The disk, if it can be mounted.
fn tried(kind: &Kind, disk: Disk, served: &Served, scratch: &Path) -> Result<Disk, String> {
    let file = served.add(disk.clone());
    kind.mount(&file, &scratch.join("mounted")).map(drop)?;
    served.take(&file);
    Ok(disk)
}

/// One history and the states it leaves.
struct History<'h> {
    campaign: &'h Campaign,
    engines: &'h BTreeMap<&'h str, Api>,
    served: &'h Served,
    scratch: &'h Path,
    scenario: &'h Scenario,
    kind: &'h Kind,
    seed: u64,
}

impl History<'_> {
    fn play(&self, empty: &Disk, tally: &mut Tally) -> Result<(), String> {
        let ours = !(self.seed / SCENARIOS.len() as u64 + self.seed).is_multiple_of(BY_REFERENCE);
        let engine =
            self.engines.keys().copied().find(|name| (*name == OUTCROP) == ours).expect("two engines");
        let mounted_at = self.scratch.join("mounted");
        let (mut disk, mut rows) = (empty.clone(), Rows::new());
        for cycle in 0..CYCLES {
            let plan = self.scenario.plan(self.seed, cycle);
            let file = self.served.record(disk.clone());
            {
                let mounted = self.kind.mount(&file, &mounted_at)?;
                let library = &self.campaign.libraries[engine];
                let place = (mounted_at.as_path(), &mounted);
                let marks = self.served.marks();
                let asked = || self.served.records(&file);
                writer::run(&self.campaign.program, library, &plan, place, (&marks, &asked))
                    .map_err(|why| format!("cycle {cycle}, written by {engine}: {why}"))?;
            }
            let (_, log) = self.served.take(&file);
            tally.recorded(&log);
            let mut random = Random::new(self.seed ^ cycle << 32);
            let mut next = None;
            for cut in cuts(self.campaign.states, &log, &mut random) {
                let draw = random.next();
                let ignored = if self.campaign.ignore_flushes { IGNORED } else { 0 };
                let left = cut.leave(&disk, &log, ignored, draw);
                let seen = Seen {
                    engines: self.engines,
                    served: self.served,
                    scratch: self.scratch,
                    kind: self.kind,
                    plan: &plan,
                    ours,
                    before: &rows,
                    log: &log[..cut.point],
                    whole: cut.keep == disk::Keep::All && !cut.torn && ignored == 0,
                    random: Random::new(draw),
                };
                match seen.judge(&left, tally) {
                    // Of one that the file system itself cannot mount, nothing goes on.
                    Ok(None) => {}
                    Ok(Some(found)) => next = Some((left, found)),
                    Err(why) => {
                        let kept = self.keep(&left);
                        return Err(format!(
                            "cycle {cycle}, written by {engine}, {cut:?} of {}: {why}\n    {kept}; {plan:?}",
                            log.len()
                        ));
                    }
                }
            }
            tally.cycle(self.kind.name, self.scenario.name);
            match next {
                Some(next) => (disk, rows) = next,
                None => break,
            }
        }
        Ok(())
    }

    /// Keeps the disk that was left; says where.
    fn keep(&self, left: &Disk) -> String {
        let image = self.campaign.dir.join(format!("failed-{}.img", self.seed));
        let saved = std::fs::create_dir_all(&self.campaign.dir).and_then(|()| left.save(&image));
        match saved {
            Ok(()) => format!("{} is the disk that was left", image.display()),
            Err(error) => format!("{}: {error}", image.display()),
        }
    }
}

/// The cuts of a log: drawn, most of them just after something that matters; or with 0 two at every prefix.
fn cuts(states: u64, log: &[disk::Record], random: &mut Random) -> Vec<Cut> {
    if states == 0 {
        let whole = |point| Cut { point, keep: disk::Keep::All, torn: false };
        let points: Vec<usize> = (0..=log.len()).collect();
        return points
            .into_iter()
            .flat_map(|point| [whole(point), Cut { point, ..Cut::draw(random, log.len()) }])
            .collect();
    }
    let matters = |record: &disk::Record| !matches!(record, disk::Record::Write(..));
    (0..states)
        .map(|_| {
            let cut = Cut::draw(random, log.len());
            let next = log[cut.point..].iter().position(matters).filter(|_| random.one_in(2));
            // Before the flush or the mark, or after it.
            let point = next.map_or(cut.point, |further| cut.point + further + random.index(2));
            Cut { point, ..cut }
        })
        .collect()
}
