//! Databases whose values expire within the run go from one engine to another.
//!
//! ```text
//! many databases:   turn 0   (wait)   turn 1   turn 2   (wait)   turn 3     a turn: opened with some TTL by some engine, compared,
//!                                                                           written, flushed, compacted, compared, closed or SIGKILLed
//! ```
//! The other games open DBWithTTL with a TTL that is never reached. RocksDB takes the wall clock's seconds, so here the clock decides what must be
//! there (`model.rs`), and nothing is raced against: a wait ends when the clock is past, all databases wait together, and rows whose fate was open
//! when a compaction met them may be there or not. Only compactions that are asked for run: so it is known what met which rows.

mod model;

use crate::again::{Before, is_excused, live};
use crate::case::{Access, Family, Merge};
use crate::child::Lost;
use crate::features::OUTCROP;
use crate::operation::{Durability, Key, Operation, Record, Value};
use crate::run::Pool;
use crate::scratch::Scratch;
use crate::trials::{by_age, version as numbers};
use crate::worker::{Answer, OpenRequest, Request};
use model::{Fates, Moment, Rows, surely_past};
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The databases to play with.
pub struct Campaign {
    /// This program, for the workers.
    pub program: PathBuf,
    /// Outcrop's library and those of RocksDB, by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Where databases go.
    pub scratch: PathBuf,
    /// Seed of the first database.
    pub seed: u64,
    /// So many databases, all at the same time; without it 30 again and again.
    pub cases: Option<u64>,
    /// How long, without a number.
    pub time: Duration,
}

/// Databases that wait together.
const TOGETHER: u64 = 30;
/// The TTLs that are drawn, in seconds; never is 0 or less.
const TTLS: &[i32] = &[1, 1, 2, 3, 10_000_000, 0, -1];
/// After a wait values are surely older than the TTLs of seconds: so a seed alone mostly says what expired.
const WAITED: i64 = 3;
/// The first version that plays. 6.29.5 loses values that are seconds old and shows others that must be gone, in databases that it alone
/// wrote, too.
const FIRST: [u32; 2] = [7, 10];
/// From so many databases on, some rows must surely have expired, some surely not, and some been merged by compactions.
const ENOUGH: u64 = 10;

/// A step of a turn.
#[derive(Clone, Debug)]
enum Step {
    Put(usize, Vec<String>),
    Merge(usize, Vec<String>),
    Delete(usize, String),
    Flush(usize),
    Compact(usize),
    Compare(usize),
}

/// One engine's turn.
#[derive(Clone, Debug)]
struct Turn {
    engine: String,
    ttls: Vec<i32>,
    options: Vec<String>,
    steps: Vec<Step>,
    kill: bool,
    /// Rows are left to expire after it.
    wait: bool,
}

const FAMILIES: [&str; 2] = ["default", "second"];

fn draw(seed: u64, others: &[String]) -> Vec<Turn> {
    let mut random = Random::new(seed);
    let newest = others.last().expect("there is one");
    let other = if random.one_in(2) { newest.clone() } else { random.pick(others) };
    let first = random.below(2);
    let turn = |number: u64| {
        let engine = if number % 2 == first { OUTCROP.to_string() } else { other.clone() };
        let ttls = FAMILIES.iter().map(|_| random.pick(TTLS)).collect();
        let mut options = vec!["disable_auto_compactions=true".to_string()];
        for option in
            ["compression=kLZ4Compression", "avoid_flush_during_shutdown=true", "enable_blob_files=true"]
        {
            if random.one_in(3) {
                options.push(option.to_string());
            }
        }
        let mut steps: Vec<Step> = (0..6 + random.below(8)).map(|_| step(&mut random)).collect();
        // The compactions that rows were left to expire for.
        for family in 0..FAMILIES.len() {
            let place = random.index(steps.len() + 1);
            steps.splice(place..place, [Step::Compact(family), Step::Compare(family)]);
            steps.push(Step::Compare(family));
        }
        Turn { engine, ttls, options, steps, kill: random.one_in(3), wait: number.is_multiple_of(2) }
    };
    (0..4).map(turn).collect()
}

fn step(random: &mut Random) -> Step {
    let family = random.index(FAMILIES.len());
    let mut key = || format!("key{:02}", random.below(25));
    let keys = [key(), key(), key()];
    match random.below(12) {
        0..5 => Step::Put(family, keys.to_vec()),
        10 | 11 => Step::Merge(family, keys.to_vec()),
        5 => Step::Delete(family, keys[0].clone()),
        6 | 7 => Step::Flush(family),
        8 => Step::Compact(family),
        _ => Step::Compare(family),
    }
}

#[derive(Default)]
struct Tally {
    cases: u64,
    turns: BTreeMap<String, u64>,
    kills: u64,
    fates: Fates,
    waited: Duration,
    /// Turns played again because a process of RocksDB had died of itself.
    again: u64,
}

/// Plays; false if a row is not as it must be, or too little was shown.
///
/// # Errors
/// A library is missing, or nobody can play.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let pool = Pool::new(&campaign.program, &campaign.libraries);
    let mut game = Game { campaign, pool, tally: Tally::default(), died: false };
    let mut others = Vec::new();
    for version in by_age(&campaign.libraries) {
        if numbers(&version)[..] >= FIRST[..] {
            others.push(version);
        } else {
            println!("expiry: {version} expires values in another way");
        }
    }
    if others.is_empty() {
        return Err("no RocksDB here is new enough".into());
    }
    let start = Instant::now();
    let (mut seed, mut failures) = (campaign.seed, 0);
    loop {
        let count = campaign.cases.unwrap_or(TOGETHER);
        failures += game.together(seed..seed + count, &others)?;
        seed += count;
        if failures > 0 || campaign.cases.is_some() || start.elapsed() >= campaign.time {
            break;
        }
    }
    let Tally { cases, turns, kills, fates, waited, again } = &game.tally;
    let turns: Vec<_> = turns.iter().map(|(engine, turns)| format!("{engine} {turns}")).collect();
    println!(
        "expiry: {cases} cases, {kills} SIGKILLs, {failures} failures in {:.0} s, {:.0} of them waited; rows that compactions met: {} expired, \
         {} not, {} either, {} merged then; {again} turns played again because RocksDB died of std::system_error; turns: {}",
        start.elapsed().as_secs_f64(),
        waited.as_secs_f64(),
        fates.gone,
        fates.there,
        fates.either,
        fates.merged,
        turns.join(", ")
    );
    let too_little = *cases >= ENOUGH && (fates.gone == 0 || fates.there == 0 || fates.merged == 0);
    if too_little {
        println!(
            "expiry: too little was shown: no row surely expired, none surely did not, or none was merged"
        );
    }
    Ok(failures == 0 && !too_little)
}

/// A database of a game.
struct Case {
    seed: u64,
    turns: Vec<Turn>,
    dir: Scratch,
    rows: Vec<Rows>,
}

struct Game<'c> {
    campaign: &'c Campaign,
    pool: Pool,
    tally: Tally,
    /// The process that died last may have died of itself.
    died: bool,
}

impl Game<'_> {
    /// Plays with the databases of these seeds; gives the number of failures.
    fn together(&mut self, seeds: std::ops::Range<u64>, others: &[String]) -> Result<u64, String> {
        let mut cases = Vec::new();
        for seed in seeds {
            let dir = Scratch::new(&self.campaign.scratch, "expiry")?;
            let rows = vec![Rows::default(); FAMILIES.len()];
            cases.push(Case { seed, turns: draw(seed, others), dir, rows });
        }
        self.tally.cases += cases.len() as u64;
        let turns = cases.first().map_or(0, |case| case.turns.len());
        for number in 0..turns {
            for case in &mut cases {
                let turn = case.turns[number].clone();
                if let Err(why) = self.turn_or_again(&turn, &case.dir.path().join("db"), &mut case.rows) {
                    println!("FAILS (seed {}): turn {number} of {turn:?}: {why}", case.seed);
                    println!("again: cargo xtask expiry --seed {} --cases 1", case.seed);
                    return Ok(1);
                }
            }
            if cases.iter().any(|case| case.turns[number].wait) {
                let newest = cases.iter().flat_map(|case| &case.rows).map(Rows::newest).max().unwrap_or(0);
                self.wait_past(newest + WAITED);
            }
        }
        Ok(0)
    }

    /// Waits until every engine's clock is past this second.
    fn wait_past(&mut self, second: i64) {
        let start = Instant::now();
        while surely_past() <= second {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.tally.waited += start.elapsed();
    }

    /// Plays a turn, and again if a process of RocksDB dies of itself.
    fn turn_or_again(&mut self, turn: &Turn, db: &Path, rows: &mut Vec<Rows>) -> Result<(), String> {
        let (first_rows, first_fates) = (rows.clone(), self.tally.fates);
        let before = Before::of(db, &db.with_extension("before"))?;
        let again = live(
            &mut (&mut *self, rows),
            |(game, rows)| game.turn(turn, db, rows),
            |(game, _), why| {
                if game.died {
                    println!("expiry: played again: {why}");
                }
                game.died
            },
            |(game, rows)| {
                (**rows, game.tally.fates, game.died) = (first_rows.clone(), first_fates, false);
                before.restore()
            },
        )?;
        self.tally.again += again;
        Ok(())
    }

    fn turn(&mut self, turn: &Turn, db: &Path, rows: &mut [Rows]) -> Result<(), String> {
        let families = FAMILIES
            .iter()
            .map(|name| (Family { merge: Merge::Append, ..Family::plain(name) }, turn.options.clone()));
        let open = OpenRequest {
            path: db.display().to_string(),
            access: Access::Ttl,
            ttls: turn.ttls.clone(),
            options: Vec::new(),
            families: families.collect(),
            existing: (0..FAMILIES.len()).collect(),
        };
        self.ask(&turn.engine, &Request::Open(open))?;
        let compare_all = (0..FAMILIES.len()).map(Step::Compare);
        for (number, step) in compare_all.chain(turn.steps.iter().cloned()).enumerate() {
            self.step(turn, &step, number, rows)
                .map_err(|why| format!("{step:?} (number {number}): {why}"))?;
        }
        *self.tally.turns.entry(turn.engine.clone()).or_insert(0) += 1;
        if turn.kill {
            self.tally.kills += 1;
            self.pool.kill(&turn.engine);
            return Ok(());
        }
        self.ask(&turn.engine, &Request::Close).map(drop)
    }

    fn step(&mut self, turn: &Turn, step: &Step, number: usize, rows: &mut [Rows]) -> Result<(), String> {
        let ask = |game: &mut Self, operation| game.ask(&turn.engine, &Request::Do(operation)).map(drop);
        match step {
            Step::Put(family, keys) | Step::Merge(family, keys) => {
                let merges = matches!(step, Step::Merge(..));
                if merges && keys.iter().any(|key| rows[*family].is_unsure(key)) {
                    self.step(turn, &Step::Compare(*family), number, rows)?;
                }
                let value = format!("{} in step {number}", turn.engine);
                let of = if merges { Record::Merge } else { Record::Put };
                let record = |key: &String| {
                    of(*family, Key(key.clone().into()), Value::Text(Key(value.clone().into())))
                };
                let records = keys.iter().map(record).collect();
                let write = Operation::Write { records, durability: Durability::Logged, direct: false };
                let (written, when) = Moment::of(|| ask(self, write));
                written?;
                for key in keys {
                    match merges {
                        true => rows[*family].merge(key, &value, when),
                        false => rows[*family].put(key, &value, when),
                    }
                }
            }
            Step::Delete(family, key) => {
                let records = vec![Record::Delete(*family, Key(key.clone().into()))];
                ask(self, Operation::Write { records, durability: Durability::Logged, direct: true })?;
                rows[*family].delete(key);
            }
            Step::Flush(family) => {
                let flush = Operation::Flush { family: *family, wait: true };
                let (done, when) = Moment::of(|| ask(self, flush));
                done?;
                rows[*family].flushed(when.ended);
            }
            Step::Compact(family) => {
                let (begin, end) = (None, None);
                let compact =
                    Operation::CompactRange { family: *family, begin, end, bottommost: 2, exclusive: false };
                let (done, when) = Moment::of(|| ask(self, compact));
                done?;
                self.tally.fates.add(rows[*family].compacted(turn.ttls[*family], when));
            }
            Step::Compare(family) => {
                let keys = rows[*family].keys().into_iter().map(|key| Key(key.into())).collect();
                // The worker has compared scans with lookups.
                match self.ask(&turn.engine, &Request::Rows { family: *family, keys })? {
                    Answer::Rows(found, _) => rows[*family].compare(&found)?,
                    other => return Err(format!("no rows: {other:?}")),
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, engine: &str, request: &Request) -> Result<Answer, String> {
        match self.pool.child(engine)?.ask(request) {
            Ok(Answer::Error(error)) => Err(error),
            Ok(answer) => Ok(answer),
            Err(lost) => {
                self.pool.kill(engine);
                self.died = matches!(&lost, Lost::Died(how) if is_excused(engine, how));
                Err(match lost {
                    Lost::Died(why) => format!("it died: {why}"),
                    Lost::Hangs(why) => format!("it hangs: {why}"),
                })
            }
        }
    }
}
