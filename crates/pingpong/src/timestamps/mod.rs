//! Databases with user-defined timestamps go from one engine to another, and keep every version.
//!
//! ```text
//! draw(seed) -> turns: Outcrop, RocksDB, Outcrop ...    opened, everything compared at several timestamps, requests compared,
//!                                                       closed or SIGKILLed, some while they write
//! ```
//! Three column families: one without timestamps, one with those of RocksDB's comparator, one with those of an application's. The model
//! (`model.rs`) has all versions, and knows how far the past may be gone. It is a game of its own beside `run.rs`: there a read means now or a
//! snapshot, here a moment of the application's, and no operation of the one is one of the other.
//!
//! Merges and range deletions have no place here: Outcrop refuses them where keys have timestamps.
//!
//! Next: `language.rs`, `draw.rs`, `model.rs`; `session.rs` is the worker's side.

mod draw;
mod language;
mod model;
mod session;

pub use language::{Entry, Request};
pub use session::Session;

use crate::again::{Before, is_excused, live};
use crate::case::End;
use crate::child::Lost;
use crate::features::OUTCROP;
use crate::run::Pool;
use crate::scratch::Scratch;
use crate::trials::{by_age, version as numbers};
use crate::worker::{self, Answer};
use draw::{Abilities, Case, Turn};
use language::{COMPACT_FILES, Change, FAMILIES, How, LATE, Lookup, NEEDED, PLAIN, TRIM, View, Write};
use model::Model;
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lives to play.
pub struct Campaign {
    /// This program, for the workers.
    pub program: PathBuf,
    /// Outcrop's library and those of RocksDB, by name.
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
}

/// The first version whose WALs say which keys have timestamps. Of those before, 7.10.2 does not read blobs backward ("Key mismatch when
/// reading blob"), its own neither.
const STAMPED_WALS: [u32; 2] = [8, 4];

#[derive(Default)]
struct Tally {
    cases: u64,
    turns: BTreeMap<String, u64>,
    requests: u64,
    kills: u64,
    /// Reads of a past that may be gone, and ways back to it.
    refused: u64,
    /// Openings that drop what is newer than a timestamp.
    trims: u64,
    /// Turns played again because a process of RocksDB had died of itself.
    again: u64,
}

/// Plays; false if an answer is wrong.
///
/// # Errors
/// A library is missing, or nobody can play.
pub fn run(campaign: &Campaign) -> Result<bool, String> {
    let mut pool = Pool::new(&campaign.program, &campaign.libraries);
    let others = others(&mut pool, &campaign.libraries)?;
    let newest = others.last().ok_or("no RocksDB here has timestamps")?.clone();
    replaced_values_come_back(&mut pool, &others, &campaign.scratch)?;
    let start = Instant::now();
    let (mut tally, mut failures) = (Tally::default(), 0);
    for (number, seed) in (1..=campaign.fixed).chain(campaign.seed..).enumerate() {
        let drawn = (number as u64).saturating_sub(campaign.fixed);
        let enough = campaign.cases.map_or(start.elapsed() >= campaign.time, |cases| drawn >= cases);
        if failures > 0 || (number as u64 >= campaign.fixed && enough) {
            break;
        }
        let mut random = Random::new(seed);
        // Half of them with the newest, whose files and errors are the measure.
        let other = if random.one_in(2) { newest.clone() } else { random.pick(&others) };
        let case = draw::case(&mut random, OUTCROP, (&other, abilities(&mut pool, &other)?));
        let dir = Scratch::new(&campaign.scratch, "timestamps")?;
        let mut game = Game {
            pool: &mut pool,
            model: Model::default(),
            unsure: vec![Model::default()],
            tally: &mut tally,
            died: None,
        };
        if let Err(why) = game.play(&case, &dir.path().join("db")) {
            failures += 1;
            println!("FAILS (seed {seed}, with {other}): {why}");
            println!("again: cargo xtask timestamps --seed {seed} --cases 1");
        }
        tally.cases += 1;
    }
    let turns: Vec<_> = tally.turns.iter().map(|(engine, turns)| format!("{engine} {turns}")).collect();
    println!(
        "timestamps: {} cases, {} requests, {} SIGKILLs, {} trimmed, {} refused as they must be, {} turns played again because RocksDB died of std::system_error, \
         {failures} failures in {:.0} s; turns: {}",
        tally.cases,
        tally.requests,
        tally.kills,
        tally.trims,
        tally.refused,
        tally.again,
        start.elapsed().as_secs_f64(),
        turns.join(", ")
    );
    Ok(failures == 0)
}

/// The versions of RocksDB whose C API has timestamps, the oldest first.
fn others(pool: &mut Pool, libraries: &BTreeMap<String, PathBuf>) -> Result<Vec<String>, String> {
    let mut others = Vec::new();
    for version in by_age(libraries) {
        let functions = &pool.child(&version)?.functions;
        match NEEDED.iter().find(|name| !functions.iter().any(|function| function == *name)) {
            Some(missing) => println!("timestamps: {version} has no {missing}"),
            None => others.push(version),
        }
    }
    Ok(others)
}

/// Has each engine that compacts single files show again, at timestamp 0, a value that was replaced at its own timestamp: its table alone
/// is compacted. That they all do is why the model allows it.
///
/// # Errors
/// One does not.
fn replaced_values_come_back(pool: &mut Pool, others: &[String], scratch: &Path) -> Result<(), String> {
    const FAMILY: usize = 1;
    let put = |value: &str| Request::Write {
        writes: vec![Write { family: FAMILY, key: "k".into(), at: 48, change: Change::Put(value.into()) }],
        how: How::Direct,
    };
    let entry = |at, value: &str| Some(Entry { key: "k".into(), at: Some(at), value: Some(value.into()) });
    for engine in others.iter().map(String::as_str).chain([OUTCROP]) {
        if !abilities(pool, engine)?.compacts_files {
            continue;
        }
        let dir = Scratch::new(scratch, "timestamps")?;
        let path = dir.path().join("db").display().to_string();
        let steps = [
            Request::Open { path, options: vec![draw::CALM.to_string()], trim: None },
            put("replaced"),
            Request::Flush(FAMILY),
            Request::Compact(FAMILY, Some(25)),
            put("newer"),
            Request::Flush(FAMILY),
            Request::Raise(FAMILY, 54),
            Request::CompactLast(FAMILY),
        ];
        let all = Request::Versions { family: FAMILY, at: u64::MAX, from: 0 };
        let shown = Answer::Entries(vec![entry(48, "newer"), entry(0, "replaced")]);
        let expected = steps.into_iter().map(|step| (step, Answer::Done)).chain([(all, shown)]);
        for (request, expected) in expected {
            let asked = pool.child(engine)?.ask(&worker::Request::Stamped(request.clone()));
            let answer = asked.map_err(|lost| format!("{engine}: {}: {lost:?}", told(&request)))?;
            if answer != expected {
                return Err(format!("{engine}: {}: {answer:?}, not {expected:?}", told(&request)));
            }
        }
        pool.kill(engine);
    }
    Ok(())
}

/// The abilities of a version.
fn abilities(pool: &mut Pool, version: &str) -> Result<Abilities, String> {
    let functions = &pool.child(version)?.functions;
    let has = |name| functions.iter().any(|function| function == name);
    let (has_late, trims) = (has(LATE), has(TRIM));
    let ways: &[How] =
        if has_late { &[How::Direct, How::Batch, How::Late] } else { &[How::Direct, How::Batch] };
    let is_later = numbers(version)[..] >= STAMPED_WALS[..];
    Ok(Abilities {
        ways,
        stamped_wals: is_later,
        blobs_backward: is_later,
        trims,
        compacts_files: has(COMPACT_FILES),
    })
}

/// A database and what must be in it.
struct Game<'g> {
    pool: &'g mut Pool,
    model: Model,
    /// States in which the database may be when it is opened next: after each prefix of the writes that were not waited for.
    unsure: Vec<Model>,
    tally: &'g mut Tally,
    /// How an engine's process died, if that may have been of itself.
    died: Option<String>,
}

impl Game<'_> {
    fn play(&mut self, case: &Case, db: &Path) -> Result<(), String> {
        for (number, (turn, newest)) in case.turns.iter().zip(&case.newest).enumerate() {
            let unsure = self.unsure.clone();
            let before = Before::of(db, &db.with_extension("before"))?;
            let again = live(
                self,
                |game| game.turn(number, turn, *newest, db),
                |game, why| {
                    let died = game.died.is_some();
                    if died {
                        println!("timestamps: played again: {why}");
                    }
                    died
                },
                |game| {
                    (game.unsure, game.died) = (unsure.clone(), None);
                    before.restore()
                },
            )?;
            self.tally.again += again;
            *self.tally.turns.entry(turn.engine.clone()).or_insert(0) += 1;
        }
        Ok(())
    }

    fn turn(&mut self, number: usize, turn: &Turn, newest: u64, db: &Path) -> Result<(), String> {
        let named = |why: String| {
            format!(
                "turn {number}, {}, trimmed to {:?}: {why}\n    with {:?}",
                turn.engine, turn.trim, turn.options
            )
        };
        let unsure = std::mem::take(&mut self.unsure);
        self.open(turn, db, unsure).map_err(named)?;
        let compared = self.comparisons(turn, newest);
        for request in &compared {
            self.ask(&turn.engine, request).map_err(|why| named(format!("after the opening, {why}")))?;
        }
        let in_flight = match turn.end {
            End::KillWriting { writes, .. } => writes,
            _ => 0,
        };
        let (steps, last) = turn.steps.split_at(turn.steps.len() - in_flight);
        for (place, request) in steps.iter().enumerate() {
            self.ask(&turn.engine, request).map_err(|why| {
                let before: Vec<_> = steps[place.saturating_sub(16)..place].iter().map(told).collect();
                named(format!("step {place}: {why}\n    after {}", before.join("\n    after ")))
            })?;
        }
        self.unsure = self.end(turn, last).map_err(named)?;
        Ok(())
    }

    /// Opens the database, and finds out in which of the states it is.
    fn open(&mut self, turn: &Turn, db: &Path, unsure: Vec<Model>) -> Result<(), String> {
        let open =
            Request::Open { path: db.display().to_string(), options: turn.options.clone(), trim: turn.trim };
        match self.answer(&turn.engine, &open)? {
            Answer::Done => {}
            other => return Err(format!("opening: {other:?}")),
        }
        self.tally.trims += u64::from(turn.trim.is_some());
        let whole = (0..FAMILIES.len()).map(|family| match family {
            PLAIN => Request::Plain,
            family => Request::Versions { family, at: u64::MAX, from: 0 },
        });
        let whole: Vec<(Request, Answer)> = whole
            .map(|request| Ok((request.clone(), self.answer(&turn.engine, &request)?)))
            .collect::<Result<_, String>>()?;
        let mut whys = Vec::new();
        for (writes, mut model) in unsure.into_iter().enumerate().rev() {
            if let Some(newest) = turn.trim {
                model.trim(newest);
            }
            model.opened();
            match whole.iter().try_for_each(|(request, answer)| {
                model.judge(request, answer).map_err(|why| format!("{}: {why}", told(request)))
            }) {
                Ok(()) => {
                    self.model = model;
                    return Ok(());
                }
                Err(why) => {
                    whys.push(format!("\n    with {writes} of the writes that nobody waited for: {why}"))
                }
            }
        }
        Err(format!("is in no state that it may be in:{}", whys.concat()))
    }

    /// Everything there is, at several timestamps.
    fn comparisons(&self, turn: &Turn, newest: u64) -> Vec<Request> {
        let mut requests = Vec::new();
        for family in (0..FAMILIES.len()).filter(|family| *family != PLAIN) {
            let low = self.model.low(family);
            requests.push(Request::Low(family));
            let mut at: Vec<u64> =
                turn.looks.iter().map(|ago| newest.saturating_sub(*ago).max(low)).collect();
            at.extend([low, u64::MAX]);
            // This one is refused.
            at.extend(low.checked_sub(1));
            for (number, at) in at.into_iter().enumerate() {
                let view = View { family, at, ..View::default() };
                requests.push(Request::Forward(view.clone()));
                requests.push(Request::Backward(view));
                let by = [Lookup::Get, Lookup::GetWithTs, Lookup::MultiGetWithTs][number % 3];
                let keys = self.model.keys(family);
                // No key is no read, which nothing refuses.
                if !keys.is_empty() {
                    requests.push(Request::Get { family, keys, at, by });
                }
                requests.push(Request::Versions { family, at, from: low });
            }
        }
        requests
    }

    /// Asks, and compares the answer.
    fn ask(&mut self, engine: &str, request: &Request) -> Result<(), String> {
        let answer = self.answer(engine, request)?;
        self.tally.requests += 1;
        self.tally.refused += u64::from(matches!(answer, Answer::Error(_)));
        self.model.judge(request, &answer).map_err(|why| format!("{}: {why}", told(request)))
    }

    fn answer(&mut self, engine: &str, request: &Request) -> Result<Answer, String> {
        let asked = self.pool.child(engine)?.ask(&worker::Request::Stamped(request.clone()));
        asked.map_err(|lost| {
            self.pool.kill(engine);
            if let Lost::Died(how) = &lost {
                self.died = is_excused(engine, how).then(|| how.clone());
            }
            match lost {
                Lost::Died(why) => format!("{} ended it: {why}", told(request)),
                Lost::Hangs(why) => format!("{} hangs: {why}", told(request)),
            }
        })
    }

    /// Ends the turn; gives the states in which the database may be.
    fn end(&mut self, turn: &Turn, last: &[Request]) -> Result<Vec<Model>, String> {
        let mut states = vec![self.model.clone()];
        match turn.end {
            End::Close => self.ask(&turn.engine, &Request::Close)?,
            End::Kill => {
                self.pool.kill(&turn.engine);
                self.tally.kills += 1;
            }
            End::KillWriting { after_micros, .. } => {
                let child = self.pool.child(&turn.engine)?;
                last.iter().for_each(|write| child.send(&worker::Request::Stamped(write.clone())));
                std::thread::sleep(Duration::from_micros(after_micros));
                let acknowledged = self.pool.kill(&turn.engine);
                self.tally.kills += 1;
                if let Some(error) = acknowledged.iter().find(|answer| **answer != Answer::Done) {
                    return Err(format!("a write that was not waited for: {error:?}"));
                }
                for write in last {
                    let mut next = states.last().expect("there is one").clone();
                    next.judge(write, &Answer::Done)?;
                    states.push(next);
                }
                states.drain(..acknowledged.len());
            }
        }
        Ok(states)
    }
}

/// A request in words that fit a line.
fn told(request: &Request) -> String {
    let text = format!("{request:?}");
    let mut short: String = text.chars().take(400).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
