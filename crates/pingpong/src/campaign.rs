//! Many cases, on several threads; the first failure is shrunk and written down.
//!
//! Either as many as fit into a time, or a number of them: then every run of a tree plays the same cases, and the
//! time is a limit that fails.

use crate::again::copy_dir;
use crate::case::Case;
use crate::features::{Engines, OUTCROP, all};
use crate::generate::generate;
use crate::known::Known;
use crate::run::{Failure, Kind, Pool, Tally, play};
use crate::scratch::Scratch;
use crate::shrink::shrink;
use crate::trials;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The cases to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// This crate's binary.
    pub program: PathBuf,
    /// Engines by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases live while they are played; a directory of its own is made in it.
    pub scratch: PathBuf,
    /// Where failing cases are written.
    pub out: PathBuf,
    /// So many cases, of seeds from 1 on, come first.
    pub fixed: u64,
    /// Seed of the first case after them; each case adds one.
    pub seed: u64,
    /// How long; if the number of cases is given, the time in which they must be over.
    pub time: Duration,
    /// How many cases; none: as many as fit into the time.
    pub cases: Option<u64>,
    /// So many swaps there must be.
    pub swaps: u64,
    /// Cases played at the same time.
    pub jobs: usize,
    /// Failures after which it ends.
    pub failures: usize,
    /// Time to shrink one failure.
    pub shrinking: Duration,
}

struct Progress {
    next: AtomicU64,
    deadline: Instant,
    found: Mutex<CampaignCounts>,
}

#[derive(Default)]
struct CampaignCounts {
    tally: Tally,
    cases: u64,
    failures: usize,
    /// Cases in which a RocksDB stopped answering, once and not again.
    hung: Vec<u64>,
    /// Cases in which a RocksDB fails, and fails in the same way where it plays Outcrop's phases as well or Outcrop has none.
    not_ours: Vec<String>,
}

/// One case in so many may be RocksDB's own fault; more of them are looked into.
const CASES_FOR_A_FAULT: u64 = 50;

impl CampaignCounts {
    /// The part of the wanted cases that is missing, if no case failed.
    fn shortfall(&self, campaign: &Campaign) -> Option<String> {
        let seconds = campaign.time.as_secs();
        let faults = self.not_ours.len() as u64;
        match campaign.cases {
            _ if self.failures > 0 => None,
            _ if faults > 1 + self.cases / CASES_FOR_A_FAULT => {
                Some(format!("{faults} of {} cases ended by faults of RocksDB", self.cases))
            }
            Some(wanted) if self.cases < wanted => {
                Some(format!("{seconds} s were over after {} of {wanted} cases", self.cases))
            }
            _ if self.tally.swaps < campaign.swaps => {
                Some(format!("{} swaps, {} wanted", self.tally.swaps, campaign.swaps))
            }
            _ => None,
        }
    }
}

/// Runs it; gives whether nothing was found. Progress and findings go to standard error.
///
/// # Errors
/// The harness itself cannot work: a library or a directory is missing.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let scratch = Scratch::new(&campaign.scratch, "pingpong")?;
    let start = Instant::now();
    let names: Vec<&str> = campaign.libraries.keys().map(String::as_str).collect();
    eprintln!("pingpong: {}; seed {}", names.join(", "), campaign.seed);
    let known = Known::of_program()?.engines(&campaign.libraries)?;
    let trials = trials::run(&campaign.program, &campaign.libraries, known.as_ref(), scratch.path())?;
    eprint!("{}", describe(&trials, start.elapsed()));
    for (case, failure) in &trials.findings {
        let title = format!("a feature trial fails without refusing: {failure}");
        write_down(&free_path(campaign, "trial")?, case, &title)?;
    }
    let progress = Progress {
        next: AtomicU64::new(0),
        deadline: start + campaign.time,
        found: Mutex::new(CampaignCounts { failures: trials.findings.len(), ..CampaignCounts::default() }),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..campaign.jobs)
            .map(|job| {
                let dir = scratch.path().join(format!("job-{job}"));
                let (progress, engines) = (&progress, &trials.engines);
                scope.spawn(move || play_many(campaign, engines, progress, &dir))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a job does not panic"))
    })?;
    let found = progress.found.into_inner().expect("no job panics");
    eprintln!("{}", summary(&found, start.elapsed()));
    let shortfall = found.shortfall(campaign);
    if let Some(what) = &shortfall {
        eprintln!("pingpong: too little was played: {what}");
    }
    Ok(found.failures == 0 && shortfall.is_none())
}

fn play_many(campaign: &Campaign, engines: &Engines, progress: &Progress, dir: &Path) -> Result<(), String> {
    let mut pool = Pool::new(&campaign.program, &campaign.libraries);
    loop {
        let number = progress.next.fetch_add(1, Ordering::Relaxed);
        let enough = progress.found.lock().expect("no job panics").failures >= campaign.failures;
        if enough
            || campaign.cases.is_some_and(|cases| number >= cases)
            || Instant::now() >= progress.deadline
        {
            return Ok(());
        }
        let seed = match number.checked_sub(campaign.fixed) {
            None => 1 + number,
            Some(later) => campaign.seed + later,
        };
        let case = generate(seed, engines);
        let _ = std::fs::remove_dir_all(dir);
        let mut result = play(&case, &mut pool, dir);
        let hung = result.as_ref().is_err_and(hangs_in_rocksdb);
        for again in 0..if hung { REPLAYS_OF_A_HANG } else { 0 } {
            if again > 0 && result.is_err() {
                break;
            }
            let _ = std::fs::remove_dir_all(dir);
            result = play(&case, &mut pool, dir);
        }
        let alone = match &result {
            Err(failure) => fails_alone(&case, failure, &mut pool, &dir.with_extension("alone")),
            Ok(_) => false,
        };
        let mut found = progress.found.lock().expect("no job panics");
        found.cases += 1;
        match result {
            Ok(tally) => {
                found.tally.add(&tally);
                found.hung.extend(hung.then_some(seed));
            }
            Err(failure) if alone => found.not_ours.push(format!("seed {seed}: {failure}")),
            Err(failure) => {
                drop(found);
                let without_outcrop = report(campaign, &case, &failure, &mut pool, dir)?;
                let mut found = progress.found.lock().expect("no job panics");
                if without_outcrop {
                    found.not_ours.push(format!("seed {seed}: {failure}"));
                } else {
                    found.failures += 1;
                }
            }
        }
    }
}

/// A case in which a RocksDB hangs is played so often again; a database of ours that makes it hang does so each time.
const REPLAYS_OF_A_HANG: usize = 3;

/// RocksDB's threads can wait for each other for ever: seen once in some thousand manual compactions of 10.10.1.1.
fn hangs_in_rocksdb(failure: &Failure) -> bool {
    failure.kind == Kind::Hangs && failure.engine != OUTCROP
}

/// True if the RocksDB that fails does so without Outcrop: in the same case, with Outcrop's phases played by itself.
fn fails_alone(case: &Case, failure: &Failure, pool: &mut Pool, dir: &Path) -> bool {
    if failure.engine == OUTCROP {
        return false;
    }
    let mut alone = case.clone();
    for phase in alone.phases.iter_mut().filter(|phase| phase.engine == OUTCROP) {
        phase.engine.clone_from(&failure.engine);
    }
    let _ = std::fs::remove_dir_all(dir);
    let again = play(&alone, pool, dir);
    let _ = std::fs::remove_dir_all(dir);
    again.is_err_and(|again| again.engine == failure.engine && again.signature() == failure.signature())
}

/// Shrinks a failing case and writes it down, with the database as it was before the phase that failed. True if in what is left of it
/// Outcrop has no turn: then it is a fault of RocksDB.
fn report(
    campaign: &Campaign,
    case: &Case,
    failure: &Failure,
    pool: &mut Pool,
    dir: &Path,
) -> Result<bool, String> {
    eprintln!("pingpong: seed {} fails: {failure}", case.seed);
    let kept = dir.with_extension("kept");
    let _ = std::fs::remove_dir_all(&kept);
    let evidence = std::fs::rename(dir.join("before"), &kept).is_ok().then_some(&*kept);
    let path = free_path(campaign, &case.seed.to_string())?;
    if let Some(evidence) = evidence {
        keep(evidence, &path.with_extension("before"))?;
    }
    // The whole case is there even if shrinking is interrupted.
    write_down(&path, case, &failure.to_string())?;
    let (small, why) = shrink(case, failure, pool, &dir.with_extension("shrink"), campaign.shrinking);
    write_down(&path, &small, &format!("{why}\nseed {}; before shrinking: {failure}", case.seed))?;
    Ok(small.phases.iter().all(|phase| phase.engine != OUTCROP))
}

/// A file for a failing case that does not exist yet.
fn free_path(campaign: &Campaign, name: &str) -> Result<PathBuf, String> {
    std::fs::create_dir_all(&campaign.out).map_err(|error| format!("{}: {error}", campaign.out.display()))?;
    let mut path = campaign.out.join(format!("case-{name}.jsonl"));
    let mut number = 1;
    while path.exists() {
        number += 1;
        path = campaign.out.join(format!("case-{name}-{number}.jsonl"));
    }
    Ok(path)
}

fn write_down(path: &Path, case: &Case, title: &str) -> Result<(), String> {
    let comment: String = title.lines().map(|line| format!("# {line}\n")).collect();
    std::fs::write(path, format!("{comment}{}", case.print()))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!(
        "pingpong: {} operations in {} phases; again: cargo xtask pingpong --replay {}\n{comment}",
        case.operations(),
        case.phases.len(),
        path.display()
    );
    Ok(())
}

/// Moves the directory of evidence next to the case; they may be on different file systems.
fn keep(evidence: &Path, target: &Path) -> Result<(), String> {
    copy_dir(evidence, target)
        .and_then(|()| std::fs::remove_dir_all(evidence))
        .map_err(|error| format!("{}: {error}", target.display()))
}

fn describe(trials: &trials::Trials, took: Duration) -> String {
    let mut text =
        format!("pingpong: {} features tried in {:.1} s; used by", all().len(), took.as_secs_f64());
    for (engine, abilities) in &trials.engines {
        let _ = write!(text, " {engine}: {} (reads {});", abilities.writes.len(), abilities.reads.len());
    }
    text.push('\n');
    for (feature, why) in &trials.lacking {
        let why = why.lines().next().unwrap_or_default();
        let _ = writeln!(
            text,
            "  not exercised on outcrop: {feature}: {}",
            why.chars().take(150).collect::<String>()
        );
    }
    text
}

fn summary(found: &CampaignCounts, took: Duration) -> String {
    let tally = &found.tally;
    let mut text = format!(
        "pingpong: {} failures; {} cases, {} swaps, {} operations, {} SIGKILLs in {:.0} s",
        found.failures,
        found.cases,
        tally.swaps,
        tally.operations,
        tally.kills,
        took.as_secs_f64()
    );
    let mut list = |title: &str, counts: Vec<(&str, u64)>| {
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = write!(text, "\n  {title}: {}", counts.join(", "));
    };
    list("operations", tally.by_name.iter().map(|(name, count)| (*name, *count)).collect());
    list("swaps to", by_count(&tally.by_engine));
    list("swaps after", by_count(&tally.by_feature));
    if !found.hung.is_empty() {
        let _ = write!(text, "\n  RocksDB hung once and not again in the cases of seeds {:?}", found.hung);
    }
    if tally.again > 0 {
        let _ = write!(
            text,
            "\n  lives played again because RocksDB died of std::system_error, or its flush removed a WAL that it copied: {}",
            tally.again
        );
    }
    for fault in &found.not_ours {
        let _ = write!(text, "\n  RocksDB fails alone in the same way, {fault}");
    }
    text
}

/// The most frequent first.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut sorted: Vec<(&str, u64)> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    sorted.sort_by_key(|(_, count)| Reverse(*count));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_a_failure() {
        let campaign = Campaign {
            program: PathBuf::new(),
            libraries: BTreeMap::new(),
            scratch: PathBuf::new(),
            out: PathBuf::new(),
            fixed: 0,
            seed: 1,
            time: Duration::from_secs(7),
            cases: Some(10),
            swaps: 100,
            jobs: 1,
            failures: 1,
            shrinking: Duration::ZERO,
        };
        let found = |cases, swaps| CampaignCounts {
            cases,
            tally: Tally { swaps, ..Tally::default() },
            ..CampaignCounts::default()
        };
        assert_eq!(found(9, 200).shortfall(&campaign).unwrap(), "7 s were over after 9 of 10 cases");
        assert_eq!(found(10, 99).shortfall(&campaign).unwrap(), "99 swaps, 100 wanted");
        assert_eq!(found(10, 100).shortfall(&campaign), None);
        let faulty =
            |faults: usize| CampaignCounts { not_ours: vec![String::new(); faults], ..found(100, 1000) };
        assert_eq!(faulty(3).shortfall(&campaign), None);
        assert_eq!(faulty(4).shortfall(&campaign).unwrap(), "4 of 100 cases ended by faults of RocksDB");
        assert_eq!(found(9, 99).shortfall(&Campaign { cases: None, swaps: 0, ..campaign }), None);
    }
}
