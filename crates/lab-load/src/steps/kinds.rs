//! How often a step of several kinds of operations did each: a mix, reads with writes between, transactions.

use serde::{Deserialize, Serialize};

/// Counts of the operations of each kind; what a step does not do is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindCounts {
    /// Lookups.
    pub gets: u64,
    /// Puts.
    pub puts: u64,
    /// Bytes of the values that were put.
    pub put_bytes: u64,
    /// Merges.
    pub merges: u64,
    /// Seeks.
    pub seeks: u64,
    /// Rows that were read from where seeks led.
    pub rows: u64,
    /// Bytes of the longest value that a lookup found.
    pub longest: u64,
    /// Transactions that met another one and were rolled back.
    pub aborts: u64,
}

impl KindCounts {
    /// Adds what another thread or a later part of the step did.
    pub(super) fn add(&mut self, other: &KindCounts) {
        let KindCounts { gets, puts, put_bytes, merges, seeks, rows, longest, aborts } = *other;
        self.gets += gets;
        self.puts += puts;
        self.put_bytes += put_bytes;
        self.merges += merges;
        self.seeks += seeks;
        self.rows += rows;
        self.longest = self.longest.max(longest);
        self.aborts += aborts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_add_up_but_for_the_longest_value() {
        let one = |gets, longest| KindCounts {
            gets,
            puts: 1,
            put_bytes: 2,
            merges: 3,
            seeks: 4,
            rows: 5,
            longest,
            aborts: 6,
        };
        let mut both = one(10, 70);
        both.add(&one(20, 60));
        let twice = KindCounts {
            gets: 30,
            puts: 2,
            put_bytes: 4,
            merges: 6,
            seeks: 8,
            rows: 10,
            longest: 70,
            aborts: 12,
        };
        assert_eq!(both, twice);
    }
}
