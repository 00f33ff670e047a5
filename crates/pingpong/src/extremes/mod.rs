//! Every option at its extremes: one list of settings is given to RocksDB and to Outcrop, each in a child process.
//!
//! ```text
//! RocksDB's own OPTIONS file --draw--> names and values --+--> child: RocksDB --+--> judge: the same refusal,
//!                                                         +--> child: Outcrop --+    or the same OPTIONS file
//! ```
//! A case is opened or refused; then options change while it is open, a megabyte is written with several flushes, read
//! back, flushed, compacted, closed, opened again and read again. Both must refuse the same with the same class of error,
//! write the same values to their OPTIONS files (which are options as they are in force, after RocksDB's corrections), read what
//! was written, and end.
//!
//! A child says what it is about to do before it does it. Only `HANG` without a word is a hang: between two words lie at
//! most 4 KiB of writes, one flush or one compaction of a megabyte, which take a fraction of a second of processor time; slowed
//! writes go at 16 KiB a second at least. A machine would have to be two hundred times too busy to be taken for a hang.
//! Where RocksDB itself hangs or dies, Outcrop only has to open or to refuse.

mod child;
mod draw;
mod judge;

pub use child::serve;

use crate::features::OUTCROP;
use crate::scratch::Scratch;
use child::{End, Runner};
use draw::Known;
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer without a word is a hang; of RocksDB, whose hangs are passed over, a sixth of it.
const HANG: Duration = Duration::from_secs(60);

/// The cases to try.
pub struct Campaign {
    /// This program, for the children.
    pub program: PathBuf,
    /// RocksDB's library and Outcrop's, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases go.
    pub scratch: PathBuf,
    /// Seed of the first random case.
    pub seed: u64,
    /// Random cases; without it as many as the time lets.
    pub cases: Option<u64>,
    /// How long random cases are drawn.
    pub time: Duration,
    /// Each option by itself at each value first, and what once failed.
    pub singles: bool,
    /// These settings and nothing else.
    pub only: Vec<String>,
}

/// One list of settings, as `name=value`, those of tables as `table.name=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Case {
    /// Given one after the other before the database is opened.
    pub options: Vec<String>,
    /// Changed while it is open.
    pub changes: Vec<(String, String)>,
    /// Whether anything is written.
    pub script: bool,
}

/// How many cases of a kind there were.
#[derive(Default)]
struct Tally {
    cases: u64,
    opened: u64,
    refused: u64,
    without_reference: u64,
    failures: u64,
}

/// Tries everything; false if anything differs.
///
/// # Errors
/// A library is missing, or cannot open a database at all.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let dir = Scratch::new(&campaign.scratch, "options")?;
    let mut outcrop = None;
    let mut reference = None;
    for (name, library) in &campaign.libraries {
        let hang = if name == OUTCROP { HANG } else { HANG / 6 };
        let runner = Runner::new(&campaign.program, library, hang);
        if name == OUTCROP { outcrop = Some(runner) } else { reference = Some(runner) }
    }
    let (Some(mut outcrop), Some(mut reference)) = (outcrop, reference) else {
        return Err(format!("needs {OUTCROP} and a RocksDB"));
    };
    let plain = match reference.run(&Case::default(), &dir.path().join("plain")) {
        End::Said(report) => report.options_file.ok_or("RocksDB opens no database")?,
        other => return Err(format!("RocksDB opens no database: {other:?}")),
    };
    let known = Known::from_options_file(&plain);
    let mut tally = Tally::default();
    let mut engines =
        Engines { reference: &mut reference, outcrop: &mut outcrop, known: &known, dir: dir.path() };
    if !campaign.only.is_empty() {
        let case = Case { options: campaign.only.clone(), changes: Vec::new(), script: true };
        engines.attempt("as given", &case, &mut tally);
        return Ok(report(&tally));
    }
    if campaign.singles {
        for case in draw::once_failed() {
            engines.attempt("once failed", &case, &mut tally);
        }
        for case in known.singles() {
            engines.attempt("single", &case, &mut tally);
        }
    }
    let start = Instant::now();
    for seed in campaign.seed.. {
        let played = seed - campaign.seed;
        if campaign.cases.map_or(start.elapsed() >= campaign.time, |cases| played >= cases) {
            break;
        }
        let case = known.random(&mut Random::new(seed));
        engines.attempt(&format!("seed {seed}"), &case, &mut tally);
    }
    Ok(report(&tally))
}

fn report(tally: &Tally) -> bool {
    eprintln!(
        "options: {} cases, {} opened and {} refused alike, {} without RocksDB, {} failures",
        tally.cases, tally.opened, tally.refused, tally.without_reference, tally.failures
    );
    tally.failures == 0
}

struct Engines<'a> {
    reference: &'a mut Runner,
    outcrop: &'a mut Runner,
    known: &'a Known,
    dir: &'a Path,
}

impl Engines<'_> {
    fn attempt(&mut self, title: &str, case: &Case, tally: &mut Tally) {
        // Nobody is asked to start a million threads: that Outcrop does not is tested where threads are counted.
        if draw::harms_the_machine(case) {
            return;
        }
        tally.cases += 1;
        let theirs = self.reference.run(case, &self.dir.join("reference"));
        // Where RocksDB is lost, Outcrop opens or refuses.
        let ours = match &theirs {
            End::Said(_) => self.outcrop.run(case, &self.dir.join("outcrop")),
            _ => self.outcrop.run(&Case { script: false, ..case.clone() }, &self.dir.join("outcrop")),
        };
        match &theirs {
            End::Said(report) if report.refused.is_none() => tally.opened += 1,
            End::Said(_) => tally.refused += 1,
            _ => tally.without_reference += 1,
        }
        for difference in judge::differences(case, &theirs, &ours, self.known) {
            tally.failures += 1;
            let settings: Vec<String> =
                case.options.iter().map(|option| format!("--set '{option}'")).collect();
            let changes: Vec<String> =
                case.changes.iter().map(|(name, value)| format!("then {name}={value}")).collect();
            println!("FAILS ({title}): {difference}\n    {} {}", settings.join(" "), changes.join(" "));
            if let Some(seed) = title.strip_prefix("seed ") {
                println!("again: cargo xtask options --random-only --cases 1 --seed {seed}");
            }
        }
    }
}
