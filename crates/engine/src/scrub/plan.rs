//! The order in which files are verified, and how much may be read now. Pure.

use outcrop_manifest::FileNumber;
use std::collections::BTreeMap;
use std::time::Duration;

/// A table or blob file that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// When it was written, seconds since the epoch; 0: nobody knows.
    pub written: u64,
    /// Its number: the older of two has the lower.
    pub number: FileNumber,
}

/// When each file was verified last.
#[derive(Debug, Default)]
pub struct Plan {
    /// By the monotonic clock, in nanoseconds.
    verified: BTreeMap<FileNumber, u64>,
}

/// The turns of all files, as of one look at them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Those that are due, in their order.
    pub due: Vec<FileNumber>,
    /// How many of them, the first ones, were never verified.
    pub never: usize,
    /// Nanoseconds until one of the others is due; `None`: there are none.
    pub next_in: Option<u64>,
}

impl Plan {
    /// The turns at `now`: of the files that were never verified the oldest first, then those whose verification is a `period` ago, the longest
    /// first. Files that are not among `candidates` are forgotten.
    pub fn turns(&mut self, candidates: &[Candidate], now: u64, period: Duration) -> Turns {
        let live: BTreeMap<FileNumber, u64> = candidates
            .iter()
            .filter_map(|file| self.verified.get(&file.number).map(|at| (file.number, *at)))
            .collect();
        self.verified = live;
        let mut never: Vec<&Candidate> =
            candidates.iter().filter(|file| !self.verified.contains_key(&file.number)).collect();
        never.sort_unstable();
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let mut again: Vec<(u64, FileNumber)> =
            self.verified.iter().map(|(number, at)| (at.saturating_add(period), *number)).collect();
        again.sort_unstable();
        let next_in = again.iter().find(|(due, _)| *due > now).map(|(due, _)| due - now);
        let numbers = never.iter().map(|file| file.number);
        let due =
            numbers.chain(again.into_iter().take_while(|(due, _)| *due <= now).map(|(_, number)| number));
        Turns { due: due.collect(), never: never.len(), next_in }
    }

    /// A file was read at `now`, to its end or as far as it could be.
    pub fn verified(&mut self, number: FileNumber, now: u64) {
        self.verified.insert(number, now);
    }
}

/// Bytes that may be read: a second's worth at most is saved up, and what was read too much is paid first.
#[derive(Debug, Default)]
pub struct Budget {
    at: u64,
    bytes: i64,
}

impl Budget {
    /// The clock shows `now`.
    pub fn accrue(&mut self, now: u64, bytes_per_second: u64) {
        let rate = i64::try_from(bytes_per_second).unwrap_or(i64::MAX);
        let nanos = now.saturating_sub(self.at).min(1_000_000_000);
        self.at = now;
        let earned = i64::try_from(u128::from(bytes_per_second) * u128::from(nanos) / 1_000_000_000);
        self.bytes = self.bytes.saturating_add(earned.unwrap_or(i64::MAX)).min(rate);
    }

    /// So much was read.
    pub fn spend(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub_unsigned(bytes);
    }

    /// True if something is left.
    pub fn is_left(&self) -> bool {
        self.bytes > 0
    }

    /// Nanoseconds until something is left.
    pub fn left_in(&self, bytes_per_second: u64) -> u64 {
        if self.is_left() {
            return 0;
        }
        let missing = u128::from(self.bytes.unsigned_abs()) + 1;
        u64::try_from(missing * 1_000_000_000 / u128::from(bytes_per_second.max(1))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(100);
    const SECOND: u64 = 1_000_000_000;

    fn file(number: u64, written: u64) -> Candidate {
        Candidate { written, number: FileNumber(number) }
    }

    fn numbers(turns: &Turns) -> Vec<u64> {
        turns.due.iter().map(|number| number.0).collect()
    }

    #[test]
    fn every_file_has_its_turn_the_oldest_first() {
        let mut plan = Plan::default();
        let files = [file(9, 50), file(4, 70), file(7, 50)];
        let turns = plan.turns(&files, 0, PERIOD);
        assert_eq!((numbers(&turns), turns.never, turns.next_in), (vec![7, 9, 4], 3, None));
        for (second, number) in (1..).zip(turns.due) {
            plan.verified(number, second * SECOND);
        }
        let turns = plan.turns(&files, 4 * SECOND, PERIOD);
        assert_eq!(turns, Turns { due: vec![], never: 0, next_in: Some(97 * SECOND) });
        let turns = plan.turns(&files, 102 * SECOND, PERIOD);
        assert_eq!((numbers(&turns), turns.never, turns.next_in), (vec![7, 9], 0, Some(SECOND)));
        plan.verified(FileNumber(7), 102 * SECOND);
        assert_eq!(numbers(&plan.turns(&files, 102 * SECOND, PERIOD)), [9]);
    }

    #[test]
    fn new_files_come_before_a_second_turn_and_removed_ones_are_forgotten() {
        let mut plan = Plan::default();
        plan.verified(FileNumber(1), 0);
        plan.verified(FileNumber(2), SECOND);
        let (late, files) = (1000 * SECOND, [file(2, 5), file(3, 900)]);
        let turns = plan.turns(&files, late, PERIOD);
        assert_eq!((numbers(&turns), turns.never), (vec![3, 2], 1));
        assert!(!plan.verified.contains_key(&FileNumber(1)));
        assert_eq!(plan.turns(&[], late, PERIOD), Turns::default());
        assert!(plan.verified.is_empty());
    }

    #[test]
    fn no_more_is_read_than_the_rate_allows() {
        let mut budget = Budget::default();
        budget.accrue(1000 * SECOND, 1000);
        assert!(budget.is_left());
        // However long nothing was read, it is a second's worth.
        budget.spend(1000);
        assert!(!budget.is_left());
        budget.spend(4000);
        assert_eq!(budget.left_in(1000), 4001 * SECOND / 1000);
        let mut read = 0;
        for tenth in 1..=1000 {
            budget.accrue(1000 * SECOND + tenth * SECOND / 10, 1000);
            while budget.is_left() {
                budget.spend(300);
                read += 300;
            }
        }
        // A hundred seconds, of which four went to what was read before.
        assert!((95_400..=96_300).contains(&read), "{read}");
    }
}
