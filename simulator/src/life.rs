//! One history: a database is opened, used by several threads, and ends, again and again; what is there afterwards is judged.
//!
//! ```text
//! cycle: open -> threads write keys of their own, read them, scan, hold snapshots; flush, compact, move clocks
//!        end: closed | the process dies | the power goes, at a drawn step or when all are done
//!        opened on a disk without faults: `history::judge`, then on
//! ```
//! Each thread knows its own rows exactly, so a read is right or wrong; a snapshot of the whole database has to be a state that all
//! threads went through, whole batches included. An error is right only if it comes from a fault of the disk (`blame.rs`). A write that is
//! refused is tried again until the database has come back, or for some seconds; then its thread ends.

use crate::blame::{Moment, Told};
use crate::disk::{Disk, Trouble};
use crate::harness::{Rng, descriptor};
use crate::plan::{self, Cycle, End, Limits};
use crate::surroundings::{SimulatedClock, SimulatedThreads};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_env::random::SeededRandom;
use outcrop_pingpong::history::{self, Change, Event, FAMILIES, Lasting, Log, Rows, judge};
use parking_lot::world;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Steps after which a history is taken for one without an end.
const MOST_STEPS: u64 = 30_000_000;
/// Nanoseconds since the epoch at which histories begin: in November 2023.
const BEGINS: u64 = 1_700_000_000_000_000_000;
/// How often a refused write is tried again, a simulated second after the last time.
const TRIES: u32 = 6;
/// How long faults come, by the simulation's clock, and a database whose power is gone goes on until it is told to stop.
const TROUBLED: Duration = Duration::from_secs(600);

/// The environment variable that has a failing history print the database's LOGs.
const LOG: &str = "OUTCROP_SIMULATED_LOG";

/// What a history came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Reads that were compared.
    pub reads: u64,
    /// Faults of the disk.
    pub faults: u64,
    /// Openings that were judged.
    pub cycles: u64,
    /// Steps of all threads.
    pub steps: u64,
    /// Sums up the whole history.
    pub trace: u64,
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
    let (steps, trace, faults) = (world::steps(), world::trace(), life.disk.all_faults());
    if outcome.is_err() && std::env::var_os(LOG).is_some() {
        println!("{}", life.log());
    }
    outcome.map(|()| Tally { steps, trace, faults, ..life.tally })
}

struct Life<'l> {
    limits: &'l Limits,
    disk: Disk,
    clock: Arc<SimulatedClock>,
    random: Arc<SeededRandom>,
    rows: Rows,
    tally: Tally,
}

/// What the threads of the application share.
struct Shared {
    db: Db,
    families: Vec<ColumnFamilyHandle>,
    disk: Disk,
    clock: Arc<SimulatedClock>,
    cycle: Cycle,
    limits: Limits,
    /// As they were when the cycle began.
    base: Rows,
    log: Mutex<Log>,
    reads: Mutex<u64>,
    failure: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Life<'_> {
    fn new(limits: &Limits) -> Life<'_> {
        Life {
            limits,
            disk: Disk::default(),
            clock: Arc::default(),
            random: Arc::new(SeededRandom::new(limits.seed)),
            rows: Rows::new(),
            tally: Tally::default(),
        }
    }

    /// The database's LOGs.
    fn log(&self) -> String {
        let fs = self.disk.memory();
        let names = fs.list(Path::new("/db")).unwrap_or_default();
        let mut logs: Vec<&String> = names.iter().filter(|name| name.starts_with("LOG")).collect();
        // The newest has no number.
        logs.sort_by_key(|name| (name.len() == 3, (*name).clone()));
        let texts = logs.iter().map(|name| fs.read_all(&Path::new("/db").join(name)).unwrap_or_default());
        texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }

    fn open(&self, cycle: &Cycle) -> Result<Db> {
        let env = Env {
            fs: Arc::new(self.disk.clone()),
            clock: self.clock.clone(),
            random: self.random.clone(),
            threads: Arc::new(SimulatedThreads),
            scheduler: Arc::default(),
        };
        let families = FAMILIES.iter().zip(&cycle.families).map(|(name, options)| descriptor(name, options));
        Db::builder("/db").options(cycle.db.clone()).env(env).column_families(families).open()
    }

    fn cycle(&mut self, number: u64) -> std::result::Result<(), String> {
        let cycle = plan::cycle(self.limits, number);
        let power_until = cycle.ends_after.map(|steps| world::steps() + steps);
        self.disk.begin(Trouble { power_until, ..cycle.trouble });
        let mut log = Log::new(cycle.threads);
        let began = self.disk.moment();
        match self.open(&cycle) {
            Ok(db) => log = self.use_database(db, &cycle)?,
            Err(error) => {
                let excused = self.disk.excuse(&error, Told::Changing, began);
                excused.map_err(|why| format!("opening: {why}"))?;
            }
        }
        match cycle.end {
            End::Closed => {}
            End::Killed => self.disk.memory().kill(),
            End::PowerLost => self.disk.memory().crash_torn(cycle.torn),
        }
        self.disk.begin(Trouble::default());
        let db = self.open(&cycle).map_err(|error| format!("opening after {:?}: {error}", cycle.end))?;
        let found = rows_of(&db, &handles(&db), &ReadOptions::default());
        let found = found.map_err(|error| format!("reading after {:?}: {error}", cycle.end))?;
        judge(&cycle.shape, &log, &self.rows, &found, cycle.lasting())
            .map_err(|why| format!("after {:?}, with {:?}: {why}", cycle.end, cycle.trouble))?;
        drop(db);
        found.iter().for_each(|((family, key), value)| {
            world::note(*family as u64);
            key.iter().chain(value).for_each(|byte| world::note(u64::from(*byte)));
        });
        self.rows = found;
        self.tally.writes += log.acknowledged();
        self.tally.cycles += 1;
        Ok(())
    }

    /// Lets threads use the database, and ends it. Gives their events.
    fn use_database(&mut self, db: Db, cycle: &Cycle) -> std::result::Result<Log, String> {
        let families = handles(&db);
        let shared = Arc::new(Shared {
            db,
            families,
            disk: self.disk.clone(),
            clock: self.clock.clone(),
            cycle: cycle.clone(),
            limits: self.limits.clone(),
            base: self.rows.clone(),
            log: Mutex::new(Log::new(cycle.threads)),
            reads: Mutex::default(),
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
            self.disk.calm();
            let is_off = self.disk.is_off();
            if is_off {
                self.disk.give_up();
                shared.db.cancel_all_background_work(Wait::No);
            }
            cycle.ends_after.is_some() && !is_off
        };
        for thread in threads {
            let joined = thread.join_while(Some(TROUBLED), may_lose_power);
            joined.map_err(|_| "a thread of the application panicked".to_string())?;
        }
        let shared = Arc::into_inner(shared).expect("all threads ended");
        if cycle.end != End::Closed {
            self.disk.switch_off();
        }
        drop(shared.families);
        drop(shared.db);
        self.tally.reads += *lock(&shared.reads);
        match lock(&shared.failure).take() {
            Some(failure) => Err(failure),
            None => Ok(lock(&shared.log).clone()),
        }
    }
}

fn handles(db: &Db) -> Vec<ColumnFamilyHandle> {
    FAMILIES.iter().map(|name| db.column_family(name).expect("it was opened with them")).collect()
}

/// All rows, forward.
fn rows_of(db: &Db, families: &[ColumnFamilyHandle], options: &ReadOptions) -> Result<Rows> {
    let mut rows = Rows::new();
    for (family, cf) in families.iter().enumerate() {
        let mut cursor = db.cursor_cf_with(cf, options)?;
        cursor.seek_to_first();
        while cursor.valid() {
            rows.insert((family, cursor.key().to_vec()), cursor.value().to_vec());
            cursor.next();
        }
        cursor.status()?;
    }
    Ok(rows)
}

/// A thread of the application.
struct Application<'s> {
    shared: &'s Shared,
    thread: usize,
    random: Rng,
    /// Its own rows, as they must be.
    rows: Rows,
    held: Option<(Snapshot, Rows)>,
}

/// Whether a thread goes on.
type Step = std::result::Result<bool, String>;

impl<'s> Application<'s> {
    fn new(thread: usize, shared: &'s Shared) -> Application<'s> {
        let mut application = Application {
            shared,
            thread,
            random: Rng::new(shared.cycle.shape.seed ^ (thread as u64 + 1)),
            rows: Rows::new(),
            held: None,
        };
        application.rows = application.own(&shared.base);
        application
    }

    fn prefix(&self) -> Vec<u8> {
        history::prefix_of(self.thread)
    }

    /// The rows of this thread among all.
    fn own(&self, all: &Rows) -> Rows {
        let prefix = self.prefix();
        all.iter()
            .filter(|((_, key), _)| key.starts_with(&prefix))
            .map(|(place, value)| (place.clone(), value.clone()))
            .collect()
    }

    /// An error of the database that a fault of the disk is to blame for, and the thread ends.
    fn excuse(&self, what: &str, error: &Error, how: Told, began: Moment) -> Step {
        self.shared.disk.excuse(error, how, began).map_err(|why| format!("{what}: {why}"))?;
        Ok(false)
    }

    fn work(&mut self) -> std::result::Result<(), String> {
        for index in 0..self.shared.cycle.writes {
            if !self.write(index)? {
                break;
            }
            for _ in 0..self.random.below(3) {
                if !self.read_or_work()? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, index: u64) -> Step {
        let write = self.shared.cycle.shape.draw(self.thread, index);
        let options = WriteOptions { sync: write.sync, ..WriteOptions::default() };
        lock(&self.shared.log).add(self.thread, Event::Begun);
        for attempt in 0.. {
            let mut batch = WriteBatch::new();
            for change in &write.changes {
                match change {
                    Change::Put(family, key, value) => {
                        batch.put_cf(&self.shared.families[*family], key, value)
                    }
                    Change::Delete(family, key) => batch.delete_cf(&self.shared.families[*family], key),
                    Change::DeleteRange(family, begin, end) => {
                        batch.delete_range_cf(&self.shared.families[*family], begin, end);
                    }
                }
            }
            let began = self.shared.disk.moment();
            match self.shared.db.write_with(&mut batch, &options) {
                Ok(()) => {
                    self.shared.disk.acknowledged(began);
                    break;
                }
                Err(error) => {
                    self.excuse("write", &error, Told::Changing, began)?;
                    if attempt == TRIES {
                        return Ok(false);
                    }
                    // The same again: whether it is there already or not, it is the same afterwards.
                    world::sleep(Duration::from_secs(1));
                }
            }
        }
        lock(&self.shared.log).add(self.thread, Event::Done);
        history::apply(&mut self.rows, &write);
        Ok(true)
    }

    fn read_or_work(&mut self) -> Step {
        let limits = &self.shared.limits;
        match self.random.below(40) {
            0..20 if limits.has("reads") => self.get(),
            20..28 if limits.has("reads") => self.scan(),
            28..32 if limits.has("reads") => self.hold_or_check(),
            32..34 if limits.has("reads") => self.check_everything(),
            34..36 if limits.has("work") => self.flush(),
            36 if limits.has("work") => self.compact(),
            37 if limits.has("pauses") => {
                world::sleep(Duration::from_millis(self.random.pick(&[1, 100, 3000])));
                Ok(true)
            }
            38 if limits.has("clock") => {
                match self.random.one_in(2) {
                    true => world::jump(Duration::from_secs(self.random.below(100))),
                    false => self.shared.clock.set_by(self.random.below(200) as i64 - 100),
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn compared(&self) {
        *lock(&self.shared.reads) += 1;
    }

    fn get(&mut self) -> Step {
        let family = self.random.index(FAMILIES.len());
        let number = self.random.below(self.shared.cycle.shape.keys);
        let key = history::key(self.thread, number);
        let began = self.shared.disk.moment();
        match self.shared.db.get_cf(&self.shared.families[family], &key) {
            Err(error) => self.excuse("get", &error, Told::Reading, began),
            Ok(found) => {
                let expected = self.rows.get(&(family, key));
                self.compared();
                match found.as_deref() == expected.map(Vec::as_slice) {
                    true => Ok(true),
                    false => Err(format!(
                        "get of key {number} in {}: {:?}, should be {:?}",
                        FAMILIES[family],
                        told(found.as_deref()),
                        told(expected.map(Vec::as_slice))
                    )),
                }
            }
        }
    }

    fn scan(&mut self) -> Step {
        let rows = self.rows.clone();
        self.compare("scan", &rows, &ReadOptions::default())
    }

    /// Compares this thread's rows, forward and back.
    fn compare(&self, what: &str, expected: &Rows, options: &ReadOptions) -> Step {
        let prefix = self.prefix();
        for (family, cf) in self.shared.families.iter().enumerate() {
            let began = self.shared.disk.moment();
            let mut cursor = match self.shared.db.cursor_cf_with(cf, options) {
                Ok(cursor) => cursor,
                Err(error) => return self.excuse(what, &error, Told::Reading, began),
            };
            let mut forward = Vec::new();
            cursor.seek(&prefix);
            while cursor.valid() && cursor.key().starts_with(&prefix) {
                forward.push((cursor.key().to_vec(), cursor.value().to_vec()));
                cursor.next();
            }
            if let Err(error) = cursor.status() {
                return self.excuse(what, &error, Told::Reading, began);
            }
            let mut back = Vec::new();
            cursor.seek_for_prev(&history::prefix_end(self.thread));
            while cursor.valid() && cursor.key().starts_with(&prefix) {
                back.push((cursor.key().to_vec(), cursor.value().to_vec()));
                cursor.prev();
            }
            if let Err(error) = cursor.status() {
                return self.excuse(what, &error, Told::Reading, began);
            }
            back.reverse();
            let of_family = expected.iter().filter(|((of, _), _)| *of == family);
            let expected: Vec<_> = of_family.map(|((_, key), value)| (key.clone(), value.clone())).collect();
            for (way, found) in [("forward", &forward), ("back", &back)] {
                if *found != expected {
                    return Err(format!(
                        "{what} {way} in {}: {} rows, should be {}; {:?}, should be {:?}",
                        FAMILIES[family],
                        found.len(),
                        expected.len(),
                        different(found, &expected),
                        different(&expected, found)
                    ));
                }
            }
        }
        self.compared();
        Ok(true)
    }

    fn hold_or_check(&mut self) -> Step {
        match self.held.take() {
            None => {
                self.held = Some((self.shared.db.snapshot(), self.rows.clone()));
                Ok(true)
            }
            Some((snapshot, rows)) => self.compare("snapshot", &rows, &ReadOptions::at(&snapshot)),
        }
    }

    /// The whole database at one moment: for each thread the rows after some write, none that was acknowledged missing.
    fn check_everything(&mut self) -> Step {
        let before = lock(&self.shared.log).clone();
        let snapshot = self.shared.db.snapshot();
        let after = lock(&self.shared.log).clone();
        let began = self.shared.disk.moment();
        let found = match rows_of(&self.shared.db, &self.shared.families, &ReadOptions::at(&snapshot)) {
            Ok(found) => found,
            Err(error) => return self.excuse("reading everything", &error, Told::Reading, began),
        };
        let seen = after.acknowledged_by(&before);
        judge(&self.shared.cycle.shape, &seen, &self.shared.base, &found, Lasting::Acknowledged)
            .map_err(|why| format!("at a snapshot: {why}"))?;
        self.compared();
        Ok(true)
    }

    fn flush(&mut self) -> Step {
        let began = self.shared.disk.moment();
        let wait = if self.random.one_in(2) { Wait::UntilDone } else { Wait::No };
        let flushed = match self.random.one_in(3) {
            true => self.shared.db.flush_cfs(&self.shared.families, wait),
            false => {
                let cf = self.random.pick(&self.shared.families);
                self.shared.db.flush_cfs(&[cf], wait)
            }
        };
        flushed.map_or_else(
            |error| self.excuse("flush", &error, Told::Changing, began).map(|_| true),
            |()| Ok(true),
        )
    }

    fn compact(&mut self) -> Step {
        let cf = self.random.pick(&self.shared.families);
        let options = CompactRangeOptions {
            bottommost_level_compaction: self
                .random
                .pick(&[BottommostLevelCompaction::Skip, BottommostLevelCompaction::Force]),
            exclusive_manual_compaction: self.random.one_in(4),
            ..CompactRangeOptions::default()
        };
        let began = self.shared.disk.moment();
        let compacted = self.shared.db.compact_range_cf_with(&cf, None, None, &options);
        compacted.map_or_else(
            |error| self.excuse("compact_range", &error, Told::Changing, began).map(|_| true),
            |()| Ok(true),
        )
    }
}

fn told(value: Option<&[u8]>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value[..value.len().min(16)]).into_owned())
}

/// The first row of `rows` that is not in `others`.
fn different(rows: &[(Vec<u8>, Vec<u8>)], others: &[(Vec<u8>, Vec<u8>)]) -> Option<(String, Option<String>)> {
    let row = rows.iter().find(|row| !others.contains(row))?;
    Some((String::from_utf8_lossy(&row.0).into_owned(), told(Some(&row.1))))
}
