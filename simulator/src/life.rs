//! One history: a database is opened, used by several threads, and ends, again and again; what is there afterwards is judged.
//!
//! ```text
//! cycle: open -> threads write keys of their own, read them, scan, hold snapshots; flush, compact, move clocks
//!        end: closed | the process dies | the power goes, at a drawn step or when all are done
//!        opened on a disk without faults: `history::judge`, then on
//! ```
//! Each thread knows its own rows exactly, so a read is right or wrong; a snapshot of the whole database has to be a state that all
//! threads went through, whole batches included. An error is right only if it comes from a fault of the disk (`blame.rs`).
//! What a history has besides hangs on the same writes, so that the judge of these says what of it has to be there: keys that all
//! threads write (`registers.rs`), column families that come and go (`coming.rs`), transactions that are prepared (`prepared.rs`).

use crate::application::{Application, Shared, lock};
use crate::blame::Told;
use crate::coming::Coming;
use crate::counts::{Count, Counts};
use crate::disk::Trouble;
use crate::opened::{DATABASE, Opened, Surroundings, rows_of};
use crate::plan::{self, Cycle, End, Limits, Transactions};
use crate::prepared::{AllPrepared, Waiting};
use crate::races;
use crate::registers::{self, Registers, Try};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_pingpong::history::{Lasting, Log, Rows, judge};
use parking_lot::world;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Steps after which a history is taken for one without an end.
const MOST_STEPS: u64 = 30_000_000;
/// Nanoseconds since the epoch at which histories begin: in November 2023.
const BEGINS: u64 = 1_700_000_000_000_000_000;
/// How long faults come, by the simulation's clock, and a database whose power is gone goes on until it is told to stop.
const TROUBLED: Duration = Duration::from_secs(600);

/// Seconds in which no table comes or goes, after which a database is at rest; so it is looked at by several timed checks.
const AT_REST: u64 = 6;
/// Seconds after which it must be.
const RESTLESS: u64 = 120;

/// The environment variable that has a failing history print the database's LOGs.
const LOG: &str = "OUTCROP_SIMULATED_LOG";

/// What a history came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Faults of the disk.
    pub faults: u64,
    /// Openings that were judged.
    pub cycles: u64,
    /// Steps of all threads.
    pub steps: u64,
    /// Sums up the whole history.
    pub trace: u64,
    /// How often it did what.
    pub counts: Counts,
}

/// Lives through the history of `limits`.
///
/// # Errors
/// Something is not as it has to be.
pub fn live(limits: &Limits) -> std::result::Result<Tally, String> {
    let rules = world::Rules {
        seed: limits.schedule.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ limits.schedule,
        switch_one_in: plan::switch_one_in(limits),
        begins: BEGINS,
        most_steps: MOST_STEPS,
    };
    let mut life = Life::new(limits);
    let outcome = world::run(rules, || {
        (0..plan::cycles(limits))
            .try_for_each(|number| life.cycle(number).map_err(|why| format!("cycle {number}: {why}")))
    });
    let (steps, trace, faults) = (world::steps(), world::trace(), life.surroundings.disk.all_faults());
    if outcome.is_err() && std::env::var_os(LOG).is_some() {
        println!("{}", life.log());
    }
    outcome.map(|()| Tally { steps, trace, faults, ..life.tally })
}

struct Life<'l> {
    limits: &'l Limits,
    surroundings: Surroundings,
    /// All rows of threads.
    rows: Rows,
    registers: Registers,
    prepared: AllPrepared,
    coming: Coming,
    tally: Tally,
}

impl Life<'_> {
    fn new(limits: &Limits) -> Life<'_> {
        Life {
            limits,
            surroundings: Surroundings::new(limits.seed),
            rows: Rows::new(),
            registers: Registers::default(),
            prepared: AllPrepared::default(),
            coming: Coming::default(),
            tally: Tally::default(),
        }
    }

    /// The database's LOGs.
    fn log(&self) -> String {
        let fs = self.surroundings.disk.memory();
        let names = fs.list(Path::new("/db")).unwrap_or_default();
        let mut logs: Vec<&String> = names.iter().filter(|name| name.starts_with("LOG")).collect();
        // The newest has no number.
        logs.sort_by_key(|name| (name.len() == 3, (*name).clone()));
        let texts = logs.iter().map(|name| fs.read_all(&Path::new("/db").join(name)).unwrap_or_default());
        texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }

    fn cycle(&mut self, number: u64) -> std::result::Result<(), String> {
        let cycle = plan::cycle(self.limits, number);
        let disk = self.surroundings.disk.clone();
        let power_until = cycle.ends_after.map(|steps| world::steps() + steps);
        disk.begin(Trouble { power_until, ..cycle.trouble });
        races::begin();
        self.prepared.begin(number);
        let (mut log, mut lasting) = (Log::new(cycle.threads), cycle.lasting());
        let began = disk.moment();
        match self.surroundings.open(&cycle) {
            Ok(opened) => (log, lasting) = self.use_database(opened, &cycle)?,
            Err(error) => {
                let excused = disk.excuse(&error, Told::Changing, began);
                excused.map_err(|why| format!("opening: {why}"))?;
            }
        }
        match cycle.end {
            End::Closed => {}
            End::Killed => disk.memory().kill(),
            End::PowerLost => disk.memory().crash_torn(cycle.torn),
        }
        disk.begin(Trouble::default());
        self.judge(&cycle, number, &log, lasting)
            .map_err(|why| format!("after {:?}, with {:?}: {why}", cycle.end, cycle.trouble))?;
        self.tally.writes += log.acknowledged();
        self.tally.cycles += 1;
        Ok(())
    }

    /// Looks at what is there after an end, and decides transactions that were prepared.
    fn judge(
        &mut self,
        cycle: &Cycle,
        number: u64,
        log: &Log,
        lasting: Lasting,
    ) -> std::result::Result<(), String> {
        if cycle.drawn.transactions == Transactions::Locking && cycle.torn % 3 == 0 {
            // A database that is opened without transactions keeps those that are prepared.
            let builder = self.surroundings.builder(Path::new(DATABASE), self.surroundings.env(), cycle);
            let opened = builder.and_then(DbBuilder::open);
            opened.and_then(Db::close).map_err(|error| format!("opening without transactions: {error}"))?;
        }
        let opened = self.surroundings.open(cycle).map_err(|error| format!("opening: {error}"))?;
        let decided = match &opened {
            Opened::Locking(db) => self.decide(db, cycle, log, lasting)?,
            Opened::Plain(_) | Opened::Optimistic(_) => Decided::default(),
        };
        let found = rows_of(opened.db(), &opened.families(), &ReadOptions::default());
        let mut found = found.map_err(|error| format!("reading: {error}"))?;
        let registers = registers::split(&mut found);
        let there = judge(&cycle.shape, log, &self.rows, &found, lasting).map_err(|why| why.to_string())?;
        decided.judge(&self.prepared, &there, lasting == Lasting::Acknowledged)?;
        self.registers.judge(&registers, &there)?;
        if cycle.drawn.families {
            let more = opened.more_families().map_err(|error| format!("reading: {error}"))?;
            self.coming.judge(number, &more, &there)?;
            self.coming.begin(more)?;
        }
        if number + 1 == plan::cycles(self.limits) {
            comes_to_rest(&opened)?;
        }
        drop(opened);
        found.iter().for_each(|((family, key), value)| {
            world::note(*family as u64);
            key.iter().chain(value).for_each(|byte| world::note(u64::from(*byte)));
        });
        registers.values().flatten().for_each(|byte| world::note(u64::from(*byte)));
        self.rows = found;
        self.registers.begin(number + 1, registers);
        Ok(())
    }

    /// Decides the transactions that an end left prepared.
    fn decide(
        &mut self,
        db: &TransactionDb,
        cycle: &Cycle,
        log: &Log,
        lasting: Lasting,
    ) -> std::result::Result<Decided, String> {
        let mut decided = Decided::default();
        let waiting =
            db.prepared_transactions().map_err(|error| format!("prepared transactions: {error}"))?;
        let all_last = lasting == Lasting::Acknowledged;
        for (number, mut transaction) in waiting.into_iter().enumerate() {
            let waiting = self.prepared.waits(transaction.name(), &log.begun(), all_last)?;
            let commits = waiting.may_commit && (cycle.torn >> number) % 2 == 0;
            let done = if commits { transaction.commit() } else { transaction.rollback() };
            done.map_err(|error| format!("deciding {:?}: {error}", waiting.of))?;
            match commits {
                true => self.registers.decided(waiting.of),
                false => self.registers.gone(waiting.of),
            }
            decided.add(&waiting, commits);
            self.tally.counts.add(Count::Decided);
        }
        Ok(decided)
    }

    /// Lets threads use the database, and ends it. Gives their events, and the writes that have to be there afterwards.
    fn use_database(&mut self, opened: Opened, cycle: &Cycle) -> std::result::Result<(Log, Lasting), String> {
        let families = opened.families();
        let disk = self.surroundings.disk.clone();
        let shared = Arc::new(Shared {
            opened,
            families,
            surroundings: self.surroundings.clone(),
            cycle: cycle.clone(),
            limits: self.limits.clone(),
            base: self.rows.clone(),
            log: Mutex::new(Log::new(cycle.threads)),
            registers: Mutex::new(self.registers.clone()),
            prepared: Mutex::new(self.prepared.clone()),
            left: Mutex::default(),
            coming: Mutex::new(self.coming.clone()),
            counts: Mutex::default(),
            copies: Mutex::default(),
            failure: Mutex::default(),
        });
        let threads: Vec<_> = (0..cycle.threads)
            .map(|thread| {
                let shared = shared.clone();
                let task = move || {
                    let mut application = Application::new(thread, &shared);
                    if let Err(why) = application.work() {
                        lock(&shared.failure).get_or_insert(format!("thread {thread}: {why}"));
                    }
                };
                world::spawn(&format!("application {thread}"), task).map_err(|error| error.to_string())
            })
            .collect::<std::result::Result<_, String>>()?;
        // A writer may wait for room that no compaction can make: because each meets a fault, or since the power is gone.
        let may_lose_power = || {
            disk.calm();
            let is_off = disk.is_off();
            if is_off {
                disk.give_up();
                shared.opened.db().cancel_all_background_work(Wait::No);
            }
            cycle.ends_after.is_some() && !is_off
        };
        for thread in threads {
            let joined = thread.join_while(Some(TROUBLED), may_lose_power);
            joined.map_err(|_| "a thread of the application panicked".to_string())?;
        }
        let shared = Arc::into_inner(shared).expect("all threads ended");
        if cycle.end != End::Closed {
            disk.switch_off();
        }
        drop(shared.families);
        drop(shared.left);
        let began = disk.moment();
        let closed = shared.opened.close();
        self.tally.counts.add_all(&lock(&shared.counts));
        self.registers = lock(&shared.registers).clone();
        self.prepared = lock(&shared.prepared).clone();
        self.coming = lock(&shared.coming).clone();
        if let Some(failure) = lock(&shared.failure).take() {
            return Err(failure);
        }
        let lasting = match closed {
            Err(error) if cycle.end == End::Closed => {
                disk.excuse(&error, Told::Changing, began).map_err(|why| format!("closing: {why}"))?;
                cycle.lasting_after_failed_close()
            }
            // It is not asked for in the other cases: the power is gone, or the process.
            _ => cycle.lasting(),
        };
        Ok((lock(&shared.log).clone(), lasting))
    }
}

/// Nobody uses it any more: sooner or later its tables stay as they are.
fn comes_to_rest(opened: &Opened) -> std::result::Result<(), String> {
    let tables = || -> Vec<String> {
        let of = |cf| opened.db().property_cf(cf, "rocksdb.sstables").expect("a property");
        opened.db().column_families().iter().map(of).collect()
    };
    let mut last = tables();
    let (mut seconds, mut at_rest) = (0, 0);
    while at_rest < AT_REST {
        if seconds == RESTLESS {
            return Err(format!("still compacts, {seconds} s after all work:\n{}", last.join("\n")));
        }
        world::sleep(Duration::from_secs(1));
        let now = tables();
        at_rest = if now == last { at_rest + 1 } else { 0 };
        (last, seconds) = (now, seconds + 1);
    }
    Ok(())
}

/// The transactions that were decided after an end.
#[derive(Default)]
struct Decided {
    all: Vec<Try>,
    committed: Vec<Try>,
    /// Rolled back, and nobody else made the same write.
    undone: Vec<Try>,
}

impl Decided {
    fn add(&mut self, waiting: &Waiting, committed: bool) {
        self.all.push(waiting.of);
        match committed {
            true => self.committed.push(waiting.of),
            false if waiting.may_commit => self.undone.push(waiting.of),
            false => {}
        }
    }

    /// Whether the writes that are there agree with the decisions, and none was lost that had to wait.
    fn judge(
        &self,
        prepared: &AllPrepared,
        there: &[u64],
        all_last: bool,
    ) -> std::result::Result<(), String> {
        let is_there = |of: &Try| there.get(of.thread).is_some_and(|there| of.index < *there);
        if let Some(of) = self.committed.iter().find(|of| !is_there(of)) {
            return Err(format!("{of:?} was committed, and is not there"));
        }
        if let Some(of) = self.undone.iter().find(|of| is_there(of)) {
            return Err(format!("{of:?} was rolled back, and is there"));
        }
        match prepared.lasting(all_last).find(|of| !is_there(of) && !self.all.contains(of)) {
            None => Ok(()),
            Some(of) => Err(format!("{of:?} was prepared, and neither waits nor is there")),
        }
    }
}
