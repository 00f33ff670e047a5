//! A thread of the application: it writes keys of its own, reads them, holds snapshots, flushes, compacts, and does whatever else its
//! history has.
//!
//! Each write is made until it is acknowledged, or the database does not come back for some seconds; then the thread ends. How it is made
//! is drawn: as a batch, as a transaction (`transacting.rs`), as a table (`ingesting.rs`).

use crate::blame::{Moment, Told};
use crate::coming::{self, State};
use crate::counts::{Count, Counts};
use crate::harness::{Rng, descriptor};
use crate::opened::{Opened, Surroundings, rows_of, rows_of_family};
use crate::plan::{Cycle, Limits, Transactions};
use crate::prepared::AllPrepared;
use crate::races::{self, Activity, during};
use crate::registers::{self, Registers, Try};
use crate::transacting::Undecided;
use outcrop::*;
use outcrop_pingpong::history::{self, Change, Event, FAMILIES, Lasting, Log, Rows, Write, judge};
use parking_lot::world;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a refused write is tried again, a simulated second after the last time.
const TRIES: u32 = 6;
/// How often a write may come in another's way before it leaves shared keys alone.
const CONFLICTS: u32 = 6;

/// What the threads of the application share.
pub struct Shared {
    /// The database.
    pub opened: Opened,
    /// Its column families that are always there.
    pub families: Vec<ColumnFamilyHandle>,
    /// What it runs in.
    pub surroundings: Surroundings,
    /// What is drawn.
    pub cycle: Cycle,
    /// What a history is limited to.
    pub limits: Limits,
    /// All rows of threads as they were when the cycle began.
    pub base: Rows,
    /// What threads wrote, and when.
    pub log: Mutex<Log>,
    /// Keys that all threads write.
    pub registers: Mutex<Registers>,
    /// Transactions that were prepared.
    pub prepared: Mutex<AllPrepared>,
    /// Transactions that stay prepared, and hold their locks.
    pub left: Mutex<Vec<Transaction>>,
    /// Column families that come and go.
    pub coming: Mutex<coming::Coming>,
    /// Counts.
    pub counts: Mutex<Counts>,
    /// The number of the next copy.
    pub copies: Mutex<u64>,
    /// The first thing that is wrong.
    pub failure: Mutex<Option<String>>,
}

impl Shared {
    /// One more.
    pub fn count(&self, what: Count) {
        lock(&self.counts).add(what);
    }
}

/// The contents of `mutex`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a try to make a write ended.
pub enum Outcome {
    /// It is acknowledged.
    Done,
    /// Another came in the way; nothing is changed.
    Conflict,
    /// The thread ends here, and leaves the write as it is.
    Left,
}

/// Why a try did not end well.
pub enum Stop {
    /// The database says so.
    Error(Error),
    /// Something is not as it has to be.
    Wrong(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

impl From<String> for Stop {
    fn from(wrong: String) -> Stop {
        Stop::Wrong(wrong)
    }
}

/// A write that is to be made.
pub struct Made {
    /// The write.
    pub write: Write,
    /// The try that it is.
    pub of: Try,
    /// Shared keys may be written with it.
    pub may_share: bool,
    /// A row of the thread's own column family.
    pub row: Option<(ColumnFamilyHandle, Vec<u8>, Vec<u8>)>,
    /// When it was begun for the first time.
    pub way: Way,
}

/// How a write is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a batch.
    Batch,
    /// As a transaction.
    Transaction,
    /// As a table.
    Table,
}

/// A thread of the application.
pub struct Application<'s> {
    pub(crate) shared: &'s Shared,
    pub(crate) thread: usize,
    random: Rng,
    /// For what not all histories have, so that the rest does not depend on it.
    pub(crate) more: Rng,
    /// Its own rows, as they must be.
    pub(crate) rows: Rows,
    held: Option<(Snapshot, Rows)>,
    /// Its own column family, if it has one, and what its next one is called.
    family: Option<ColumnFamilyHandle>,
    next_family: u64,
    /// A transaction that is prepared, and has to be decided before anything else.
    pub(crate) undecided: Option<Undecided>,
}

/// Whether a thread goes on.
pub type Step = std::result::Result<bool, String>;

impl<'s> Application<'s> {
    /// One of the threads.
    pub fn new(thread: usize, shared: &'s Shared) -> Application<'s> {
        let family = lock(&shared.coming).of(thread).map(|family| family.name.clone());
        let mut application = Application {
            shared,
            thread,
            random: Rng::new(shared.cycle.shape.seed ^ (thread as u64 + 1)),
            more: Rng::new(shared.cycle.shape.seed ^ (thread as u64 + 1) << 32),
            rows: Rows::new(),
            held: None,
            family: family.and_then(|name| shared.opened.db().column_family(&name)),
            next_family: 0,
            undecided: None,
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
    pub(crate) fn excuse(&self, what: &str, error: &Error, how: Told, began: Moment) -> Step {
        self.shared.surroundings.disk.excuse(error, how, began).map_err(|why| format!("{what}: {why}"))?;
        Ok(false)
    }

    /// Lives.
    ///
    /// # Errors
    /// Something is not as it has to be.
    pub fn work(&mut self) -> std::result::Result<(), String> {
        for index in 0..self.shared.cycle.writes {
            if !self.write(index)? {
                break;
            }
            for _ in 0..self.random.below(3) {
                if !self.read_or_work()? {
                    return self.leave();
                }
            }
            if !self.work_more()? {
                break;
            }
        }
        self.leave()
    }

    /// A transaction that is not decided yet stays prepared.
    fn leave(&mut self) -> std::result::Result<(), String> {
        if let Some(undecided) = self.undecided.take() {
            lock(&self.shared.left).push(undecided.transaction);
        }
        Ok(())
    }

    fn write(&mut self, index: u64) -> Step {
        let write = self.shared.cycle.shape.draw(self.thread, index);
        let mut made = Made {
            way: self.way(&write),
            write,
            of: Try { thread: self.thread, index, attempt: 0 },
            may_share: self.shared.cycle.drawn.shared,
            row: None,
        };
        lock(&self.shared.log).add(self.thread, Event::Begun);
        if let Some(family) = lock(&self.shared.coming).of_mut(self.thread)
            && family.state == State::There
            && made.way != Way::Table
            && let Some(cf) = &self.family
        {
            family.write(index);
            let (key, value) = coming::row(self.shared.cycle.shape.cycle, index);
            made.row = Some((cf.clone(), key, value));
        }
        let (mut refused, mut conflicts) = (0, 0);
        loop {
            let began = self.shared.surroundings.disk.moment();
            match self.make(&made) {
                Ok(Outcome::Done) => {
                    // A table that is taken in says nothing of the WAL.
                    if made.way != Way::Table {
                        self.shared.surroundings.disk.acknowledged(began);
                    }
                    break;
                }
                Ok(Outcome::Left) => return Ok(false),
                Ok(Outcome::Conflict) => {
                    self.shared.count(Count::Conflicts);
                    conflicts += 1;
                    made.may_share &= conflicts < CONFLICTS;
                }
                Err(Stop::Wrong(why)) => return Err(format!("write {index}: {why}")),
                Err(Stop::Error(error)) => {
                    self.excuse("write", &error, Told::Changing, began)?;
                    if refused == TRIES {
                        return Ok(false);
                    }
                    refused += 1;
                    // The same again: what was refused is not there, or will be gone.
                    world::sleep(Duration::from_secs(1));
                }
            }
            made.of.attempt += 1;
        }
        lock(&self.shared.log).add(self.thread, Event::Done);
        history::apply(&mut self.rows, &made.write);
        Ok(true)
    }

    fn way(&mut self, write: &Write) -> Way {
        let drawn = self.shared.cycle.drawn;
        if drawn.ingestion && crate::ingesting::can_be_table(write) && self.more.one_in(4) {
            return Way::Table;
        }
        let whole = |change: &Change| !matches!(change, Change::DeleteRange(..));
        let can_be_transaction = drawn.transactions != Transactions::None && write.changes.iter().all(whole);
        if can_be_transaction && !self.more.one_in(4) { Way::Transaction } else { Way::Batch }
    }

    fn make(&mut self, made: &Made) -> std::result::Result<Outcome, Stop> {
        let _during = during(match made.way {
            Way::Batch => Activity::Batch,
            Way::Table => Activity::Ingestion,
            Way::Transaction => Activity::Transaction,
        });
        match made.way {
            Way::Batch => self.write_batch(made).map_err(Stop::Error),
            Way::Table => self.ingest(made).map_err(Stop::Error),
            Way::Transaction => self.transact(made),
        }
    }

    fn write_batch(&self, made: &Made) -> Result<Outcome> {
        let mut batch = WriteBatch::new();
        let mut has_range = false;
        for change in &made.write.changes {
            match change {
                Change::Put(family, key, value) => batch.put_cf(&self.shared.families[*family], key, value),
                Change::Merge(family, key, operand) => {
                    batch.merge_cf(&self.shared.families[*family], key, operand);
                }
                Change::Delete(family, key) => batch.delete_cf(&self.shared.families[*family], key),
                Change::DeleteRange(family, begin, end) => {
                    has_range = true;
                    batch.delete_range_cf(&self.shared.families[*family], begin, end);
                }
            }
        }
        if let Some((cf, key, value)) = &made.row {
            batch.put_cf(cf, key, value);
        }
        let options = WriteOptions { sync: made.write.sync, ..WriteOptions::default() };
        match &self.shared.opened {
            Opened::Locking(db) if !has_range => db.write_with(&mut batch, &options)?,
            opened => opened.db().write_with(&mut batch, &options)?,
        }
        Ok(Outcome::Done)
    }

    /// What not all histories have.
    fn work_more(&mut self) -> Step {
        let drawn = self.shared.cycle.drawn;
        match self.more.below(60) {
            0 if drawn.checkpoints => self.copy(crate::copies::Kind::Checkpoint),
            1 if drawn.backups => self.copy(crate::copies::Kind::Backup),
            2..6 if drawn.families => self.come_or_go(),
            _ => Ok(true),
        }
    }

    /// Creates the thread's own column family, or looks at it and drops it.
    fn come_or_go(&mut self) -> Step {
        let (thread, cycle) = (self.thread, self.shared.cycle.shape.cycle);
        let known = lock(&self.shared.coming).of(thread).cloned();
        let began = self.shared.surroundings.disk.moment();
        let (name, state) = match &known {
            Some(family) => (family.name.clone(), family.state),
            None => {
                self.next_family += 1;
                let name = format!("x{thread}-c{cycle}-{}", self.next_family);
                lock(&self.shared.coming).create(thread, name.clone());
                (name, State::Creating)
            }
        };
        if state == State::Creating {
            let _during = during(Activity::Create);
            return match self.shared.opened.create(&descriptor(&name, &self.shared.cycle.families[1])) {
                Err(error) => {
                    self.excuse("create a column family", &error, Told::Changing, began).map(|_| true)
                }
                Ok(cf) => {
                    self.family = Some(cf);
                    if let Some(family) = lock(&self.shared.coming).of_mut(thread) {
                        family.state = State::There;
                    }
                    Ok(true)
                }
            };
        }
        let Some(cf) = self.family.clone() else { return Err(format!("column family {name} has no handle")) };
        if state == State::There && self.more.one_in(2) {
            return self.check_family(&cf, &name);
        }
        if let Some(family) = lock(&self.shared.coming).of_mut(thread) {
            family.state = State::Dropping;
        }
        let dropping = during(Activity::Drop);
        if let Err(error) = self.shared.opened.drop_family(&cf) {
            return self.excuse("drop a column family", &error, Told::Changing, began).map(|_| true);
        }
        drop(dropping);
        self.shared.count(Count::Dropped);
        // A handle goes on reading.
        let checked = self.check_family(&cf, &name);
        lock(&self.shared.coming).dropped(thread);
        self.family = None;
        checked
    }

    fn check_family(&self, cf: &ColumnFamilyHandle, name: &str) -> Step {
        let cycle = self.shared.cycle.shape.cycle;
        let expected = lock(&self.shared.coming).of(self.thread).map(|family| family.rows(cycle, u64::MAX));
        let began = self.shared.surroundings.disk.moment();
        match rows_of_family(self.shared.opened.db(), cf, &ReadOptions::default()) {
            Err(error) => self.excuse("reading a column family", &error, Told::Reading, began),
            Ok(found) if Some(&found) == expected.as_ref() => {
                self.compared();
                Ok(true)
            }
            Ok(found) => Err(format!("column family {name} has {found:?}, should have {expected:?}")),
        }
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
                races::at(Activity::Clock);
                match self.random.one_in(2) {
                    true => world::jump(Duration::from_secs(self.random.below(100))),
                    false => self.shared.surroundings.clock.set_by(self.random.below(200) as i64 - 100),
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    pub(crate) fn compared(&self) {
        self.shared.count(Count::Reads);
    }

    fn get(&mut self) -> Step {
        let _during = during(Activity::Get);
        let family = self.random.index(FAMILIES.len());
        let number = self.random.below(self.shared.cycle.shape.keys);
        let key = history::key(self.thread, number);
        let began = self.shared.surroundings.disk.moment();
        match self.shared.opened.db().get_cf(&self.shared.families[family], &key) {
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
        let _during = during(Activity::Scan);
        let prefix = self.prefix();
        for (family, cf) in self.shared.families.iter().enumerate() {
            let began = self.shared.surroundings.disk.moment();
            let mut cursor = match self.shared.opened.db().cursor_cf_with(cf, options) {
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
                self.held = Some((self.shared.opened.db().snapshot(), self.rows.clone()));
                Ok(true)
            }
            Some((snapshot, rows)) => self.compare("snapshot", &rows, &ReadOptions::at(&snapshot)),
        }
    }

    /// The whole database at one moment: for each thread the rows after some write, none that was acknowledged missing.
    fn check_everything(&mut self) -> Step {
        let _during = during(Activity::Everything);
        let before = lock(&self.shared.log).clone();
        let snapshot = self.shared.opened.db().snapshot();
        let after = lock(&self.shared.log).clone();
        let began = self.shared.surroundings.disk.moment();
        let found = match rows_of(self.shared.opened.db(), &self.shared.families, &ReadOptions::at(&snapshot))
        {
            Ok(found) => found,
            Err(error) => return self.excuse("reading everything", &error, Told::Reading, began),
        };
        self.judge_moment(found, &before, after).map_err(|why| format!("at a snapshot: {why}"))?;
        self.compared();
        Ok(true)
    }

    /// Judges all rows as of a moment between two: gives how many writes of each thread are there.
    pub(crate) fn judge_moment(
        &self,
        mut found: Rows,
        before: &Log,
        after: Log,
    ) -> std::result::Result<Vec<u64>, String> {
        let shared = registers::split(&mut found);
        let seen = after.acknowledged_by(before);
        let there = judge(&self.shared.cycle.shape, &seen, &self.shared.base, &found, Lasting::Acknowledged)
            .map_err(|why| why.to_string())?;
        lock(&self.shared.registers).judge(&shared, &there)?;
        Ok(there)
    }

    fn flush(&mut self) -> Step {
        let _during = during(Activity::Flush);
        let began = self.shared.surroundings.disk.moment();
        let wait = if self.random.one_in(2) { Wait::UntilDone } else { Wait::No };
        let flushed = match self.random.one_in(3) {
            true => self.shared.opened.db().flush_cfs(&self.shared.families, wait),
            false => {
                let cf = self.random.pick(&self.shared.families);
                self.shared.opened.db().flush_cfs(&[cf], wait)
            }
        };
        flushed.map_or_else(
            |error| self.excuse("flush", &error, Told::Changing, began).map(|_| true),
            |()| Ok(true),
        )
    }

    fn compact(&mut self) -> Step {
        let _during = during(Activity::CompactRange);
        let cf = self.random.pick(&self.shared.families);
        let options = CompactRangeOptions {
            bottommost_level_compaction: self
                .random
                .pick(&[BottommostLevelCompaction::Skip, BottommostLevelCompaction::Force]),
            exclusive_manual_compaction: self.random.one_in(4),
            ..CompactRangeOptions::default()
        };
        let began = self.shared.surroundings.disk.moment();
        let compacted = self.shared.opened.db().compact_range_cf_with(&cf, None, None, &options);
        compacted.map_or_else(
            |error| self.excuse("compact_range", &error, Told::Changing, began).map(|_| true),
            |()| Ok(true),
        )
    }
}

/// The begin of a value.
pub fn told(value: Option<&[u8]>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value[..value.len().min(16)]).into_owned())
}

/// The first row of `rows` that is not in `others`.
fn different(rows: &[(Vec<u8>, Vec<u8>)], others: &[(Vec<u8>, Vec<u8>)]) -> Option<(String, Option<String>)> {
    let row = rows.iter().find(|row| !others.contains(row))?;
    Some((String::from_utf8_lossy(&row.0).into_owned(), told(Some(&row.1))))
}
