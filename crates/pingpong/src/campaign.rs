//! Many cases, on several threads, until the time is over; the first failure is shrunk and written down.

use crate::case::Case;
use crate::features::{Engines, all};
use crate::generate::generate;
use crate::run::{Failure, Pool, Tally, play};
use crate::shrink::shrink;
use crate::trials;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is wanted.
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
    /// How long.
    pub time: Duration,
    /// How many cases at most.
    pub cases: u64,
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
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    tally: Tally,
    cases: u64,
    failures: usize,
}

/// Runs it; gives whether nothing was found. Progress and findings go to standard error.
///
/// # Errors
/// The harness itself cannot work: a library or a directory is missing.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let scratch = tempfile::Builder::new()
        .prefix("pingpong-")
        .tempdir_in(&campaign.scratch)
        .map_err(|error| format!("{}: {error}", campaign.scratch.display()))?;
    let start = Instant::now();
    let names: Vec<&str> = campaign.libraries.keys().map(String::as_str).collect();
    eprintln!("pingpong: {}; seed {}", names.join(", "), campaign.seed);
    let trials = trials::run(&campaign.program, &campaign.libraries, scratch.path())?;
    eprint!("{}", describe(&trials, start.elapsed()));
    for (case, failure) in &trials.findings {
        let title = format!("a feature trial fails without refusing: {failure}");
        write_down(&free_path(campaign, "trial")?, case, &title)?;
    }
    let progress = Progress {
        next: AtomicU64::new(0),
        deadline: start + campaign.time,
        found: Mutex::new(Found { failures: trials.findings.len(), ..Found::default() }),
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
    Ok(found.failures == 0)
}

fn play_many(campaign: &Campaign, engines: &Engines, progress: &Progress, dir: &Path) -> Result<(), String> {
    let mut pool = Pool::new(&campaign.program, &campaign.libraries);
    loop {
        let number = progress.next.fetch_add(1, Ordering::Relaxed);
        let enough = progress.found.lock().expect("no job panics").failures >= campaign.failures;
        if enough || number >= campaign.cases || Instant::now() >= progress.deadline {
            return Ok(());
        }
        let seed = match number.checked_sub(campaign.fixed) {
            None => 1 + number,
            Some(later) => campaign.seed + later,
        };
        let case = generate(seed, engines);
        let _ = std::fs::remove_dir_all(dir);
        let result = play(&case, &mut pool, dir);
        let mut found = progress.found.lock().expect("no job panics");
        found.cases += 1;
        match result {
            Ok(tally) => found.tally.add(&tally),
            Err(failure) => {
                found.failures += 1;
                drop(found);
                report(campaign, &case, &failure, &mut pool, dir)?;
            }
        }
    }
}

/// Shrinks a failing case and writes it down, with the database as it was before the phase that failed.
fn report(
    campaign: &Campaign,
    case: &Case,
    failure: &Failure,
    pool: &mut Pool,
    dir: &Path,
) -> Result<(), String> {
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
    write_down(&path, &small, &format!("{why}\nseed {}; before shrinking: {failure}", case.seed))
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
        "pingpong: {} operations in {} phases: cargo xtask pingpong --replay {}\n{comment}",
        case.operations(),
        case.phases.len(),
        path.display()
    );
    Ok(())
}

/// Moves the directory of evidence next to the case; they may be on different file systems.
fn keep(evidence: &Path, target: &Path) -> Result<(), String> {
    let copied = std::fs::create_dir_all(target).and_then(|()| {
        std::fs::read_dir(evidence)?.try_for_each(|entry| {
            let entry = entry?;
            std::fs::copy(entry.path(), target.join(entry.file_name())).map(|_| ())
        })
    });
    copied
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

fn summary(found: &Found, took: Duration) -> String {
    let tally = &found.tally;
    let mut text = format!(
        "pingpong: {} failures; {} cases, {} swaps, {} operations, {} SIGKILLs in {:.0} s\n ",
        found.failures,
        found.cases,
        tally.swaps,
        tally.operations,
        tally.kills,
        took.as_secs_f64()
    );
    for (name, count) in &tally.by_name {
        let _ = write!(text, " {name} {count},");
    }
    text
}
