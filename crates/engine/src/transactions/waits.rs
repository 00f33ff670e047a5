//! Transactions that wait for locks of others, and the circles they make.
//!
//! ```text
//! 1 waits for 2, 2 for 3: when 3 is about to wait for 1, the path 1, 2, 3 is the deadlock
//! ```
//! Only transactions that asked for it are here while they wait. A search that grows beyond its depth is taken for a deadlock.
//! Source: RocksDB `utilities/transactions/lock/point/point_lock_manager.cc`, `IncrementWaiters`.

use outcrop_base::CfId;
use std::collections::{HashMap, VecDeque};

/// One transaction of a deadlock, and the lock that it waits for.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// for deadlock in db.deadlocks() {
///     let path: Vec<&DeadlockStep> = deadlock.steps.iter().collect();
///     println!("{} transactions in a circle", path.len());
/// }
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockStep {
    /// The transaction's number.
    pub transaction: u64,
    /// Column family of the key.
    pub column_family: CfId,
    /// The key.
    pub key: Vec<u8>,
    /// Whether it wants the key for itself.
    pub exclusive: bool,
}

/// A deadlock that was found.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let last: Vec<Deadlock> = db.deadlocks();
/// assert!(last.is_empty());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for the next, and the last for the first. Empty if the search grew beyond its depth.
    pub steps: Vec<DeadlockStep>,
    /// The search grew beyond its depth: a deadlock was assumed.
    pub limit_exceeded: bool,
    /// When it was found, in seconds since the epoch.
    pub found_seconds: u64,
}

struct Wait {
    on: Vec<u64>,
    step: DeadlockStep,
}

/// Which transactions wait for which.
#[derive(Default)]
pub struct Waits {
    waiting: HashMap<u64, Wait>,
    /// How many wait for each.
    waited_for: HashMap<u64, usize>,
    /// Found last first.
    deadlocks: VecDeque<Deadlock>,
    /// How many of them are remembered.
    kept: usize,
}

impl Waits {
    /// Nobody waits; `kept` deadlocks will be remembered.
    pub fn new(kept: usize) -> Waits {
        Waits { kept, ..Waits::default() }
    }

    /// Takes note that the transaction of `step` waits for the holders `on`; true, and nothing is noted but the deadlock, if
    /// that would be one. `depth` limits the search.
    pub fn begin(&mut self, step: DeadlockStep, on: &[u64], depth: usize, now_seconds: u64) -> bool {
        let own = step.transaction;
        self.waiting.insert(own, Wait { on: on.to_vec(), step });
        for holder in on {
            *self.waited_for.entry(*holder).or_default() += 1;
        }
        if !self.waited_for.contains_key(&own) {
            return false;
        }
        let Some(steps) = self.search(own, depth) else { return false };
        self.deadlocks.push_front(Deadlock {
            limit_exceeded: steps.is_empty(),
            steps,
            found_seconds: now_seconds,
        });
        self.deadlocks.truncate(self.kept);
        self.end(own);
        true
    }

    /// The transaction does not wait any more.
    pub fn end(&mut self, transaction: u64) {
        let Some(wait) = self.waiting.remove(&transaction) else { return };
        for holder in wait.on {
            if let Some(count) = self.waited_for.get_mut(&holder) {
                *count -= 1;
                if *count == 0 {
                    self.waited_for.remove(&holder);
                }
            }
        }
    }

    /// Remembers `count` deadlocks from here on; the oldest beyond that are forgotten.
    pub fn keep(&mut self, count: usize) {
        self.kept = count;
        self.deadlocks.truncate(count);
    }

    /// The deadlocks that are remembered, the last one first.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.deadlocks.iter().cloned().collect()
    }

    /// The path from `own` back to itself, breadth first; empty if there are more than `depth` to look at, `None` if none.
    fn search(&self, own: u64, depth: usize) -> Option<Vec<DeadlockStep>> {
        // (transaction, where its waiter is in the queue)
        let mut queue: Vec<(u64, Option<usize>)> = Vec::new();
        let push = |queue: &mut Vec<_>, on: &[u64], parent| {
            let room = depth.saturating_sub(queue.len());
            queue.extend(on.iter().take(room).map(|next| (*next, parent)));
        };
        push(&mut queue, &self.waiting[&own].on, None);
        for head in 0..depth {
            let &(next, _) = queue.get(head)?;
            if next == own {
                return Some(self.path(&queue, head));
            }
            if let Some(wait) = self.waiting.get(&next) {
                push(&mut queue, &wait.on, Some(head));
            }
        }
        Some(Vec::new())
    }

    fn path(&self, queue: &[(u64, Option<usize>)], last: usize) -> Vec<DeadlockStep> {
        let places = std::iter::successors(Some(last), |place| queue[*place].1);
        let mut steps: Vec<DeadlockStep> =
            places.map(|place| self.waiting[&queue[place].0].step.clone()).collect();
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(waits: &mut Waits, who: u64, on: &[u64], depth: usize) -> bool {
        let step =
            DeadlockStep { transaction: who, column_family: CfId(0), key: vec![who as u8], exclusive: true };
        waits.begin(step, on, depth, 7)
    }

    fn found(waits: &Waits) -> Vec<u64> {
        waits.deadlocks()[0].steps.iter().map(|step| step.transaction).collect()
    }

    #[test]
    fn rings_of_any_length_are_found_with_their_path() {
        for length in 2..10 {
            let mut waits = Waits::new(2);
            for who in 1..length {
                assert!(!begin(&mut waits, who, &[who + 1], 50));
            }
            assert!(begin(&mut waits, length, &[1], 50));
            assert_eq!(found(&waits), (1..=length).collect::<Vec<_>>());
            // The one that was told does not wait, so another way round is free.
            assert!(!begin(&mut waits, length, &[length + 1], 50));
        }
    }

    #[test]
    fn shared_holders_are_all_looked_at() {
        let mut waits = Waits::new(2);
        assert!(!begin(&mut waits, 1, &[2, 3], 50));
        assert!(!begin(&mut waits, 3, &[4, 5], 50));
        assert!(begin(&mut waits, 5, &[9, 1], 50));
        assert_eq!(found(&waits), [1, 3, 5]);
    }

    #[test]
    fn a_search_beyond_its_depth_is_taken_for_a_deadlock() {
        let mut waits = Waits::new(2);
        for who in 1..8 {
            begin(&mut waits, who, &[who + 1], 50);
        }
        assert!(begin(&mut waits, 8, &[1], 5));
        assert!(waits.deadlocks()[0].limit_exceeded && waits.deadlocks()[0].steps.is_empty());
        assert!(begin(&mut waits, 8, &[1], 50));
        assert!(begin(&mut waits, 8, &[1], 50));
        assert_eq!(waits.deadlocks().len(), 2, "only so many are remembered");
        waits.keep(1);
        assert_eq!(waits.deadlocks().len(), 1, "fewer at once");
        waits.keep(3);
        (0..4).for_each(|_| assert!(begin(&mut waits, 8, &[1], 50)));
        assert_eq!(waits.deadlocks().len(), 3, "and more as they are found");
    }

    #[test]
    fn whoever_ended_waiting_is_in_no_circle() {
        let mut waits = Waits::new(2);
        begin(&mut waits, 1, &[2], 50);
        waits.end(1);
        assert!(!begin(&mut waits, 2, &[1], 50));
        assert_eq!(waits.waited_for.len(), 1);
    }
}
