//! A write that is made as a transaction, with keys of its thread's own and, if its history has them, keys that all threads write.
//!
//! ```text
//! begin > (a save point, writes that are taken back) > shared keys: read for update, written > own changes > own reads
//!       > commit | name, prepare, then commit | roll back and again | leave it so
//! ```
//! Others may come in the way only where keys are shared: with own keys alone nothing is ever locked or written by another.

use crate::application::{Application, Made, Outcome, Stop, lock, told};
use crate::counts::Count;
use crate::opened::Opened;
use crate::plan::Plant;
use crate::prepared::State;
use crate::registers::{self, KEYS, Seen, Try};
use outcrop::*;
use outcrop_pingpong::history::{self, Change};

/// A transaction that is prepared and not decided.
pub struct Undecided {
    /// The transaction.
    pub transaction: Transaction,
    of: Try,
    commits: bool,
    read: Vec<Seen>,
}

type Tried<T> = std::result::Result<T, Stop>;

/// Whether another came in the way.
enum Met<T> {
    Nobody(T),
    Another,
}

impl Application<'_> {
    /// Makes a write as a transaction.
    pub fn transact(&mut self, made: &Made) -> Tried<Outcome> {
        if let Some(undecided) = self.undecided.take() {
            return self.decide(undecided);
        }
        if self.more.one_in(10) {
            self.abandon(made)?;
        }
        let mut transaction = self.begin(made);
        if self.more.one_in(3) {
            self.take_back(&mut transaction, made)?;
        }
        let mut read = Vec::new();
        let mut written = Vec::new();
        if made.may_share {
            match self.share(&mut transaction, made.of)? {
                Met::Nobody((seen, writes)) => (read, written) = (seen, writes),
                Met::Another => return Ok(Outcome::Conflict),
            }
        }
        self.change(&mut transaction, made)?;
        if self.more.one_in(2) {
            self.check(&transaction, made)?;
        }
        lock(&self.shared.registers).begin_commit(made.of, &written);
        let is_locking = matches!(self.shared.opened, Opened::Locking(_));
        if is_locking && self.more.one_in(3) {
            return self.prepare(transaction, made, read);
        }
        let newest = self.newest(&read);
        match transaction.commit() {
            Ok(()) => self.committed(made.of, &read, &newest),
            Err(error) if self.is_conflict(&error, &read) => {
                lock(&self.shared.registers).gone(made.of);
                Ok(Outcome::Conflict)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn committed(&self, of: Try, read: &[Seen], newest: &[u64]) -> Tried<Outcome> {
        lock(&self.shared.registers).committed(of, read, newest)?;
        self.shared.count(Count::Transactions);
        if !read.is_empty() {
            self.shared.count(Count::Shared);
        }
        Ok(Outcome::Done)
    }

    fn newest(&self, read: &[Seen]) -> Vec<u64> {
        let registers = lock(&self.shared.registers);
        read.iter().map(|seen| registers.newest(seen.key)).collect()
    }

    fn begin(&mut self, made: &Made) -> Transaction {
        let write_options = WriteOptions { sync: made.write.sync, ..WriteOptions::default() };
        match &self.shared.opened {
            Opened::Locking(db) => {
                let options = TransactionOptions {
                    set_snapshot: self.more.one_in(4),
                    deadlock_detect: self.more.one_in(2),
                    lock_timeout: self.more.pick(&[-1, 0, 1, 50]),
                    skip_concurrency_control: self.shared.limits.plant == Some(Plant::Locks),
                    ..TransactionOptions::default()
                };
                db.begin_with(&write_options, &options)
            }
            Opened::Optimistic(db) => {
                let snapshot = self.more.pick(&[TakeSnapshot::No, TakeSnapshot::AtBegin]);
                db.begin_with(&write_options, snapshot)
            }
            Opened::Plain(_) => unreachable!("its writes are no transactions"),
        }
    }

    /// A key of its own that the write may change or not.
    fn own_place(&mut self) -> history::Place {
        let family = self.more.index(self.shared.families.len());
        (family, history::key(self.thread, self.more.below(self.shared.cycle.shape.keys)))
    }

    /// Writes that are taken back: nobody may ever see them.
    fn waste(&mut self, transaction: &mut Transaction) -> Tried<()> {
        for _ in 0..=self.more.below(2) {
            let (family, key) = self.own_place();
            let cf = &self.shared.families[family];
            match self.more.below(3) {
                0 => transaction.put_cf(cf, &key, "taken back")?,
                1 => transaction.merge_cf(cf, &key, "taken back")?,
                _ => transaction.delete_cf(cf, &key)?,
            }
        }
        if self.shared.cycle.drawn.shared {
            let (family, key) = registers::place(self.more.index(KEYS));
            let cf = &self.shared.families[family];
            match transaction.put_cf(cf, &key, "taken back") {
                // Another has it; that takes nothing away from this.
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut) => {}
                put => put?,
            }
        }
        Ok(())
    }

    /// A transaction that is not committed.
    fn abandon(&mut self, made: &Made) -> Tried<()> {
        let mut transaction = self.begin(made);
        self.waste(&mut transaction)?;
        if self.more.one_in(2) {
            transaction.rollback()?;
        }
        Ok(())
    }

    fn take_back(&mut self, transaction: &mut Transaction, _: &Made) -> Tried<()> {
        transaction.set_save_point();
        self.waste(transaction)?;
        Ok(transaction.rollback_to_save_point()?)
    }

    /// Reads shared keys and writes most of them. Gives what was read, and what is written.
    fn share(&mut self, transaction: &mut Transaction, of: Try) -> Tried<Met<(Vec<Seen>, Vec<Seen>)>> {
        let mut keys: Vec<usize> = (0..KEYS).collect();
        let count = self.more.index(KEYS);
        let (mut read, mut written) = (Vec::new(), Vec::new());
        let plant = self.shared.limits.plant == Some(Plant::Locks);
        for _ in 0..count {
            let key = keys.swap_remove(self.more.index(keys.len()));
            let (family, name) = registers::place(key);
            let cf = &self.shared.families[family];
            let writes = !self.more.one_in(4);
            let mode = if writes && self.more.one_in(2) { LockMode::Exclusive } else { LockMode::Shared };
            let newest = lock(&self.shared.registers).newest(key);
            let found = match plant {
                true => transaction.get_cf(cf, &name),
                false => transaction.get_for_update_cf(cf, &name, mode),
            };
            let found = match found {
                Err(error) if self.is_in_the_way(&error) => return Ok(Met::Another),
                found => found?,
            };
            let version = lock(&self.shared.registers).read(key, found.as_deref(), newest)?;
            read.push(Seen { key, version });
            if !writes {
                continue;
            }
            let value = lock(&self.shared.registers).value(of, version + 1);
            let put = match plant {
                true => transaction.put_untracked_cf(cf, &name, &value),
                false => transaction.put_cf(cf, &name, &value),
            };
            match put {
                Err(error) if self.is_in_the_way(&error) => return Ok(Met::Another),
                put => put?,
            }
            written.push(Seen { key, version: version + 1 });
        }
        Ok(Met::Nobody((read, written)))
    }

    /// Whether an error says that another has a shared key, or had it.
    fn is_in_the_way(&self, error: &Error) -> bool {
        match self.shared.opened {
            Opened::Locking(_) => matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut),
            // Until it is committed nobody is in its way.
            Opened::Optimistic(_) | Opened::Plain(_) => false,
        }
    }

    /// Whether an error of a commit says that another came first, as may be if these keys were read.
    fn is_conflict(&self, error: &Error, read: &[Seen]) -> bool {
        match self.shared.opened {
            // Memory may not reach back far enough, whoever writes.
            Opened::Optimistic(_) => {
                error.kind() == ErrorKind::TryAgain || (error.kind() == ErrorKind::Busy && !read.is_empty())
            }
            Opened::Locking(_) | Opened::Plain(_) => false,
        }
    }

    fn change(&self, transaction: &mut Transaction, made: &Made) -> Tried<()> {
        for change in &made.write.changes {
            match change {
                Change::Put(family, key, value) => {
                    transaction.put_cf(&self.shared.families[*family], key, value)?;
                }
                Change::Merge(family, key, operand) => {
                    transaction.merge_cf(&self.shared.families[*family], key, operand)?;
                }
                Change::Delete(family, key) => transaction.delete_cf(&self.shared.families[*family], key)?,
                Change::DeleteRange(..) => unreachable!("such writes are no transactions"),
            }
        }
        if let Some((cf, key, value)) = &made.row {
            transaction.put_cf(cf, key, value)?;
        }
        Ok(())
    }

    /// The transaction sees its writes, and nobody else does.
    fn check(&self, transaction: &Transaction, made: &Made) -> Tried<()> {
        let mut after = self.rows.clone();
        history::apply(&mut after, &made.write);
        for change in &made.write.changes {
            let (Change::Put(family, key, _) | Change::Merge(family, key, _) | Change::Delete(family, key)) =
                change
            else {
                continue;
            };
            let (cf, place) = (&self.shared.families[*family], (*family, key.clone()));
            let (inside, outside) = (transaction.get_cf(cf, key)?, self.shared.opened.db().get_cf(cf, key)?);
            for (found, rows, side) in [(inside, &after, "inside"), (outside, &self.rows, "outside")] {
                let expected = rows.get(&place).map(Vec::as_slice);
                if found.as_deref() != expected {
                    return Err(Stop::Wrong(format!(
                        "{side} of the transaction {} is {:?}, should be {:?}",
                        String::from_utf8_lossy(key),
                        told(found.as_deref()),
                        told(expected)
                    )));
                }
            }
        }
        self.compared();
        Ok(())
    }

    fn prepare(&mut self, mut transaction: Transaction, made: &Made, read: Vec<Seen>) -> Tried<Outcome> {
        let of = made.of;
        let name = lock(&self.shared.prepared).name(of);
        transaction.set_name(&name)?;
        lock(&self.shared.prepared).add(of, made.write.sync);
        transaction.prepare()?;
        lock(&self.shared.prepared).set(of, State::Prepared);
        self.shared.count(Count::Prepared);
        if self.more.one_in(3) {
            self.check(&transaction, made)?;
        }
        if self.more.one_in(20) {
            // With its locks, until the end.
            lock(&self.shared.left).push(transaction);
            return Ok(Outcome::Left);
        }
        let commits = !self.more.one_in(4);
        self.decide(Undecided { transaction, of, commits, read })
    }

    fn decide(&mut self, mut undecided: Undecided) -> Tried<Outcome> {
        let of = undecided.of;
        let state = if undecided.commits { State::Committing } else { State::RollingBack };
        lock(&self.shared.prepared).set(of, state);
        let newest = self.newest(&undecided.read);
        let done = match undecided.commits {
            true => undecided.transaction.commit(),
            false => undecided.transaction.rollback(),
        };
        if let Err(error) = done {
            // It is prepared as before, and has to be decided first.
            self.undecided = Some(undecided);
            return Err(error.into());
        }
        lock(&self.shared.prepared).set(of, State::Over);
        if undecided.commits {
            return self.committed(of, &undecided.read, &newest);
        }
        lock(&self.shared.registers).gone(of);
        Ok(Outcome::Conflict)
    }
}
