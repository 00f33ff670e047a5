//! How often a history did each thing.

use std::fmt;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Reads that were compared.
    Reads,
    /// Transactions that were committed.
    Transactions,
    /// Of them, those that had written keys of several threads.
    Shared,
    /// Transactions that came in another's way.
    Conflicts,
    /// Transactions that were prepared.
    Prepared,
    /// Transactions that were prepared before an end and found after it.
    Decided,
    /// Checkpoints and restored backups that were judged.
    Copies,
    /// Column families that were dropped.
    Dropped,
    /// Tables that were ingested.
    Ingested,
}

const NAMES: [&str; 9] =
    ["reads", "transactions", "shared", "conflicts", "prepared", "decided", "copies", "dropped", "ingested"];

/// The counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; NAMES.len()]);

impl Counts {
    /// One more.
    pub fn add(&mut self, what: Count) {
        self.0[what as usize] += 1;
    }

    /// So many more of each.
    pub fn add_all(&mut self, others: &Counts) {
        self.0.iter_mut().zip(&others.0).for_each(|(count, more)| *count += more);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> =
            NAMES.iter().zip(&self.0).map(|(name, count)| format!("{name} {count}")).collect();
        out.write_str(&told.join(" "))
    }
}
