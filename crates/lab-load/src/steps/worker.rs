//! The operations of each kind of step.
//!
//! Next: `measure.rs` for the loop around it, `upkeep.rs` for steps that do one thing once.

use super::limit::Limiter;
use super::measure::{Done, Operate};
use super::pace::Throttle;
use super::{KindCounts, Step, StepKind, upkeep};
use crate::Database;
use crate::database::{Batch, Rows};
use crate::keys::exponential;
use crate::mixgraph::{Action, Mix, MixParameters};
use crate::multi_get::MultiGet;
use crate::rng::Mt19937_64;
use crate::transactions::TransactionDatabase;
use crate::values::Values;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The state that the threads of a step share.
pub(super) struct Common {
    pub start: Instant,
    /// The rate that writes are held to, if they are.
    pub limiter: Option<Limiter>,
    /// Notes for the reader about the step as it was done.
    pub notes: Mutex<Vec<String>>,
    /// Operations of each kind, of the threads that have ended.
    pub kinds: Mutex<KindCounts>,
}

/// One counted thread on a database.
pub(super) struct Worker<'a> {
    db: &'a Database,
    step: &'a Step,
    common: &'a Common,
    rng: Mt19937_64,
    values: Values,
    /// The batch that is written next, used again and again, as RocksDB's tool does.
    batch: Batch<'a>,
    /// A value that is read to be written again.
    appended: Vec<u8>,
    key: Vec<u8>,
    /// Bytes of a key and a value.
    pair: u64,
    multi_get: Option<MultiGet<'a>>,
    /// Every key once, in random order.
    permutation: Vec<u64>,
    mixed: Option<Mixed<'a>>,
    /// The scan of a step that reads row by row.
    rows: Option<Rows<'a>>,
    rows_over: bool,
    /// Its operations of each kind, of a step that has several.
    kinds: KindCounts,
}

impl<'a> Worker<'a> {
    /// A worker for the calling thread.
    pub fn new(db: &'a Database, step: &'a Step, seed: u64, common: &'a Common) -> Worker<'a> {
        db.api.count_nothing_in_this_thread();
        let mut rng = Mt19937_64::new(seed);
        let many = step.batch_size.max(1) as usize;
        let multi = step.kind == StepKind::MultiRead;
        let permutation = if step.kind == StepKind::FillUniqueRandom {
            permutation(step.num, &mut rng)
        } else {
            Vec::new()
        };
        Worker {
            db,
            step,
            common,
            rng,
            values: if step.kind.only_reads() { Values::none() } else { step.values(seed) },
            batch: db.batch(),
            appended: Vec::new(),
            // A key that is longer by one was never loaded.
            key: vec![b'0'; step.key_size + usize::from(step.kind == StepKind::ReadMissing)],
            pair: (step.key_size + step.value_size) as u64,
            multi_get: multi.then(|| MultiGet::new(db, step.batched, many, step.key_size)),
            permutation,
            mixed: (step.kind == StepKind::MixGraph).then(|| Mixed::new(step, common.start)),
            rows: match step.kind {
                StepKind::ReadRows => Some(db.rows()),
                StepKind::ReadReverse => db.rows_backward(),
                _ => None,
            },
            rows_over: false,
            kinds: KindCounts::default(),
        }
    }

    fn random(&mut self) -> u64 {
        self.rng.next_u64() % self.step.num
    }

    fn draw(&mut self) {
        let number = self.random();
        self.write_key(number);
    }

    /// A key to look up: some come more often than others, if the step says so.
    fn draw_lookup(&mut self) {
        let number = number_to_look_up(self.step, &mut self.rng);
        self.write_key(number);
    }

    fn write_key(&mut self, number: u64) {
        self.step.layout.write(number, &mut self.key[..self.step.key_size]);
    }

    /// Writes `batch_size` keys, whose numbers `number` gives by what was done before.
    fn write(&mut self, ops: u64, number: impl Fn(&mut Worker<'a>, u64) -> u64) -> Result<Done, String> {
        let (step, count) = (self.step, u64::from(self.step.batch_size.max(1)));
        let mut bytes = count * self.key.len() as u64;
        for index in 0..count {
            let number = number(self, ops + index);
            self.write_key(number);
            let value = self.values.next_value();
            bytes += value.len() as u64;
            self.batch.put(&self.key, value);
        }
        self.db.write(step.durability, &mut self.batch)?;
        Ok(Done { ops: count, found: count, bytes })
    }

    /// Deletes `batch_size` keys, random ones or the next in order; `ops` were deleted before.
    fn delete(&mut self, ops: u64) -> Result<Done, String> {
        let (step, count) = (self.step, u64::from(self.step.batch_size.max(1)));
        for index in 0..count {
            let number = if step.kind == StepKind::Delete { self.random() } else { ops + index };
            self.write_key(number);
            if count == 1 {
                self.db.delete(step.durability, &self.key)?;
            } else {
                self.batch.delete(&self.key)?;
            }
        }
        if count > 1 {
            self.db.write(step.durability, &mut self.batch)?;
        }
        Ok(Done { ops: count, found: count, bytes: count * self.pair })
    }

    /// Adds an operand to a random key.
    fn merge(&mut self) -> Result<Done, String> {
        self.draw();
        let operand = self.values.next_value();
        let bytes = (self.key.len() + operand.len()) as u64;
        self.db.merge(self.step.durability, &self.key, operand)?;
        Ok(Done { ops: 1, found: 0, bytes })
    }

    /// Looks up a random key; writes it with another value after what it had, a comma between, which is what the
    /// operator stringappend does of itself.
    fn append(&mut self) -> Result<Done, String> {
        self.draw();
        let found = self.db.get_into(&self.key, &mut self.appended)?;
        if found {
            self.appended.push(b',');
        }
        self.appended.extend_from_slice(self.values.next_value());
        self.batch.put(&self.key, &self.appended);
        self.db.write(self.step.durability, &mut self.batch)?;
        let bytes = (self.key.len() + self.appended.len()) as u64;
        Ok(Done { ops: 1, found: u64::from(found), bytes })
    }

    /// Looks up a random key.
    #[inline]
    fn get(&mut self) -> Result<Done, String> {
        self.draw_lookup();
        let len = self.db.get(&self.key)?;
        let bytes = len.map_or(0, |len| (self.key.len() + len) as u64);
        Ok(Done { ops: 1, found: u64::from(len.is_some()), bytes })
    }

    /// Looks up a random key, then writes it.
    fn update(&mut self) -> Result<Done, String> {
        self.draw();
        let len = self.db.get(&self.key)?;
        let value = self.values.next_value();
        self.batch.put(&self.key, value);
        self.db.write(self.step.durability, &mut self.batch)?;
        let read = len.map_or(0, |len| self.key.len() + len);
        let bytes = (read + self.key.len() + value.len()) as u64;
        Ok(Done { ops: 1, found: u64::from(len.is_some()), bytes })
    }

    fn many(&mut self) -> Result<Done, String> {
        let Worker { multi_get, rng, step, pair, .. } = self;
        let lookup = multi_get.as_mut().expect("made for this kind");
        let mut count = 0;
        for key in lookup.keys() {
            step.layout.write(number_to_look_up(step, rng), key);
            count += 1;
        }
        let found = lookup.get()?;
        Ok(Done { ops: count, found, bytes: found * *pair })
    }

    fn mix(&mut self) -> Result<Done, String> {
        let number = self.random();
        let mixed = self.mixed.as_mut().expect("made for this kind");
        let (key, action) = mixed.mix.query(number);
        self.step.layout.write(key, &mut self.key);
        let key_size = self.key.len() as u64;
        let (found, bytes) = match action {
            Action::Get => {
                self.kinds.gets += 1;
                let len = self.db.get(&self.key)?;
                (u64::from(len.is_some()), len.map_or(0, |len| key_size + len as u64))
            }
            Action::Put(size) => {
                self.batch.put(&self.key, self.values.of(size));
                self.db.write(self.step.durability, &mut self.batch)?;
                self.kinds.puts += 1;
                self.kinds.put_bytes += size as u64;
                (0, key_size + size as u64)
            }
            Action::Seek(rows) => {
                let (found, rows, bytes) = self.db.scan_from(&self.key, rows, &mut mixed.copy)?;
                self.kinds.seeks += 1;
                self.kinds.rows += rows;
                (u64::from(found), bytes)
            }
        };
        Ok(Done { ops: 1, found, bytes })
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.common.kinds.lock().expect("no thread panics with it").add(&self.kinds);
    }
}

impl Operate for Worker<'_> {
    fn is_over(&self) -> bool {
        self.rows_over
    }

    fn pause(&mut self, ops: u64) -> bool {
        if let Some(limiter) = &self.common.limiter {
            let end = Duration::try_from_secs_f64(self.step.seconds).unwrap_or(Duration::MAX);
            let over = || self.step.ops.is_none() && self.common.start.elapsed() >= end;
            limiter.take(self.pair * u64::from(self.step.batch_size.max(1)), over);
            return true;
        }
        self.mixed.as_mut().is_some_and(|mixed| mixed.pause(ops))
    }

    #[inline]
    fn operate(&mut self, ops: u64) -> Result<Done, String> {
        let (db, step) = (self.db, self.step);
        match step.kind {
            StepKind::FillSeq => self.write(ops, |_, ops| ops),
            StepKind::FillUniqueRandom => {
                self.write(ops, |own, ops| own.permutation[ops as usize % own.permutation.len()])
            }
            StepKind::FillRandom | StepKind::Overwrite | StepKind::OverwriteAndWait => {
                self.write(ops, |own, _| own.random())
            }
            StepKind::Merge => self.merge(),
            StepKind::ReadOrMerge => {
                if self.rng.next_u64() % 100 < u64::from(step.merge_percent) {
                    self.kinds.merges += 1;
                    return self.merge();
                }
                let done = self.get()?;
                self.kinds.gets += 1;
                self.kinds.longest = self.kinds.longest.max(done.bytes.saturating_sub(self.key.len() as u64));
                Ok(done)
            }
            StepKind::ReadOrWrite if ops % 100 < u64::from(step.read_percent) => {
                self.draw();
                self.kinds.gets += 1;
                let len = db.get(&self.key)?;
                let bytes = len.map_or(0, |len| (self.key.len() + len) as u64);
                Ok(Done { ops: 1, found: u64::from(len.is_some()), bytes })
            }
            StepKind::ReadOrWrite => {
                self.draw();
                self.kinds.puts += 1;
                let value = self.values.next_value();
                let bytes = (self.key.len() + value.len()) as u64;
                self.batch.put(&self.key, value);
                db.write(step.durability, &mut self.batch)?;
                Ok(Done { ops: 1, found: 0, bytes })
            }
            StepKind::Append => self.append(),
            StepKind::MultiRead => self.many(),
            StepKind::MixGraph => self.mix(),
            StepKind::ReadRandom | StepKind::ReadMissing | StepKind::ReadWhileScanning => self.get(),
            StepKind::Range { reverse } => {
                self.draw();
                let (found, bytes) = db.range(&self.key, step.seek_nexts, reverse)?;
                Ok(Done { ops: 1, found: u64::from(found), bytes })
            }
            StepKind::Update => self.update(),
            StepKind::Delete | StepKind::DeleteSeq => self.delete(ops),
            StepKind::ReadSeq => {
                // One operation per row; the sample is that of the whole scan.
                let (rows, bytes) = db.scan(step.num)?;
                // Nothing is there: another scan would find no more.
                self.rows_over = rows == 0;
                Ok(Done { ops: rows, found: rows, bytes })
            }
            StepKind::NewIterator => {
                db.make_iterator();
                Ok(Done { ops: 1, found: 0, bytes: 0 })
            }
            StepKind::VerifyChecksums => {
                db.verify_checksums()?;
                Ok(Done { ops: 1, found: 0, bytes: 0 })
            }
            StepKind::ReadRows | StepKind::ReadReverse => {
                let rows = self.rows.as_mut().ok_or("this engine cannot seek to its last row")?;
                let row = rows.next_row()?;
                self.rows_over = row.is_none();
                let rows = u64::from(row.is_some());
                Ok(Done { ops: rows, found: rows, bytes: row.unwrap_or(0) })
            }
            kind if kind.needs_transactions() => Err("transactions need a database opened for them".into()),
            kind => {
                let note = upkeep::run(db, kind)?;
                self.common.notes.lock().expect("no thread panics with it").extend(note);
                Ok(Done { ops: 1, found: 1, bytes: self.pair })
            }
        }
    }
}

/// The number of a key to look up.
#[inline]
fn number_to_look_up(step: &Step, rng: &mut Mt19937_64) -> u64 {
    let random = rng.next_u64();
    if step.exp_range > 0.0 { exponential(random, step.exp_range, step.num) } else { random % step.num }
}

/// The state that mixgraph needs beside a worker.
struct Mixed<'a> {
    parameters: &'a MixParameters,
    mix: Mix,
    /// Where rows of scans are copied to.
    copy: Vec<u8>,
    throttle: Throttle,
    threads: f64,
}

impl<'a> Mixed<'a> {
    fn new(step: &'a Step, start: Instant) -> Mixed<'a> {
        let mix = Mix::new(&step.mix, step.num);
        Mixed {
            parameters: &step.mix,
            mix,
            copy: vec![0; 1 << 20],
            throttle: Throttle::new(start),
            threads: f64::from(step.threads),
        }
    }

    /// Once for every hundred operations, as RocksDB's tool asks its limiter.
    fn pause(&mut self, ops: u64) -> bool {
        let Some(rate) = self.parameters.rate_at(self.throttle.seconds()) else { return false };
        let interval = Duration::from_millis(self.parameters.sine_mix_rate_interval_milliseconds);
        if ops == 0 || self.throttle.age() >= interval {
            self.throttle.set(rate / self.threads);
        }
        let asks = ops.is_multiple_of(100);
        if asks {
            self.throttle.wait(ops);
        }
        asks
    }
}

/// All numbers below `num` in random order, by Fisher and Yates.
fn permutation(num: u64, rng: &mut Mt19937_64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..num).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    numbers
}

/// One counted thread on a database of transactions.
pub(super) struct Transactions<'a> {
    db: &'a TransactionDatabase,
    step: &'a Step,
    rng: Mt19937_64,
    /// For single writes.
    values: Values,
    key: Vec<u8>,
    conflicts: &'a AtomicU64,
}

impl<'a> Transactions<'a> {
    /// A worker for the calling thread.
    pub fn new(
        db: &'a TransactionDatabase,
        step: &'a Step,
        seed: u64,
        conflicts: &'a AtomicU64,
    ) -> Transactions<'a> {
        db.api.count_nothing_in_this_thread();
        let values = if step.kind == StepKind::OverwriteLocked { step.values(seed) } else { Values::none() };
        let key = vec![b'0'; step.key_size];
        Transactions { db, step, rng: Mt19937_64::new(seed), values, key, conflicts }
    }

    fn overwrite(&mut self) -> Result<Done, String> {
        self.step.layout.write(self.rng.next_u64() % self.step.num, &mut self.key);
        let value = self.values.next_value();
        self.db.put(&self.key, value)?;
        Ok(Done { ops: 1, found: 1, bytes: (self.key.len() + value.len()) as u64 })
    }

    fn increment(&mut self) -> Result<Done, String> {
        let sets = self.step.transaction_sets;
        let committed = u64::from(self.db.increment(sets, self.step.num, &mut self.rng)?);
        self.conflicts.fetch_add(1 - committed, Ordering::Relaxed);
        // A key has 15 bytes, a counter some digits.
        Ok(Done { ops: committed, found: committed, bytes: committed * u64::from(sets) * 20 })
    }
}

impl Operate for Transactions<'_> {
    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        match self.step.kind {
            StepKind::OverwriteLocked => self.overwrite(),
            _ => self.increment(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut numbers = permutation(100, &mut Mt19937_64::new(1));
        assert_ne!(numbers[..5], [0, 1, 2, 3, 4]);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..100));
    }
}
