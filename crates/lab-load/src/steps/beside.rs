//! The work of threads beside the counted ones: second by second, and by how long their statements took.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Upper ends of the classes of times, microseconds; there is one more class above the last.
///
/// Source: the published client of the Insert Benchmark.
pub const TIME_BOUNDS_US: [u64; 9] =
    [256, 1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 16_000_000];

/// The class of a time.
pub fn time_class(micros: u64) -> usize {
    TIME_BOUNDS_US.iter().position(|bound| micros <= *bound).unwrap_or(TIME_BOUNDS_US.len())
}

/// The work of one kind of thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BesideResult {
    /// Rows of the statements that ended in each second of the step.
    pub rows_per_second: Vec<u64>,
    /// The longest statement that ended in each second, microseconds.
    pub longest_per_second: Vec<u64>,
    /// Statements in each class of times; see [`time_class`].
    pub by_time: [u64; TIME_BOUNDS_US.len() + 1],
}

impl BesideResult {
    /// Notes a statement on `rows` rows that ended `at` after the step's begin and `took` so long.
    pub fn note(&mut self, at: Duration, rows: u64, took: Duration) {
        let (second, micros) = (at.as_secs() as usize, took.as_micros() as u64);
        let seconds = self.rows_per_second.len().max(second + 1);
        self.rows_per_second.resize(seconds, 0);
        self.longest_per_second.resize(seconds, 0);
        self.rows_per_second[second] += rows;
        self.longest_per_second[second] = self.longest_per_second[second].max(micros);
        self.by_time[time_class(micros)] += 1;
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.rows_per_second.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_in_their_second_and_their_class() {
        let mut done = BesideResult::default();
        assert!(done.is_empty());
        let statements = [(100, 50, 256), (900, 50, 257), (2500, 5, 20_000_000), (2600, 5, 3)];
        for (at, rows, took) in statements {
            done.note(Duration::from_millis(at), rows, Duration::from_micros(took));
        }
        assert_eq!(done.rows_per_second, [100, 0, 10]);
        assert_eq!(done.longest_per_second, [257, 0, 20_000_000]);
        assert_eq!(done.by_time, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!([1_000, 1_001, 16_000_000, 16_000_001].map(time_class), [1, 2, 8, 9]);
    }
}
