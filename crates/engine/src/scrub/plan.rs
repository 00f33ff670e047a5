//! Which file is verified next, and how much may be read now. Pure.

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

/// The next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one, now.
    File(FileNumber),
    /// None is due before so many nanoseconds have passed; `None`: there is no file.
    In(Option<u64>),
}

impl Plan {
    /// The file to verify at `now`: of those that were never verified the oldest, then the one whose verification is longest ago, if that is
    /// a `period`. Files that are not among `candidates` are forgotten. Gives also how many were never verified.
    pub fn next(&mut self, candidates: &[Candidate], now: u64, period: Duration) -> (Next, u64) {
        let live: BTreeMap<FileNumber, u64> = candidates
            .iter()
            .filter_map(|file| self.verified.get(&file.number).map(|at| (file.number, *at)))
            .collect();
        self.verified = live;
        let never = || candidates.iter().filter(|file| !self.verified.contains_key(&file.number));
        let missing = never().count() as u64;
        if let Some(file) = never().min() {
            return (Next::File(file.number), missing);
        }
        let oldest = self.verified.iter().min_by_key(|(number, at)| (**at, **number));
        let Some((number, at)) = oldest else { return (Next::In(None), 0) };
        let due = at.saturating_add(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        match due <= now {
            true => (Next::File(*number), 0),
            false => (Next::In(Some(due - now)), 0),
        }
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

    #[test]
    fn every_file_has_its_turn_the_oldest_first() {
        let mut plan = Plan::default();
        let files = [file(9, 50), file(4, 70), file(7, 50)];
        let mut order = Vec::new();
        for second in 1..=3 {
            let (Next::File(number), missing) = plan.next(&files, second * SECOND, PERIOD) else { panic!() };
            assert_eq!(missing, 4 - second);
            plan.verified(number, second * SECOND);
            order.push(number.0);
        }
        assert_eq!(order, [7, 9, 4]);
        assert_eq!(plan.next(&files, 4 * SECOND, PERIOD), (Next::In(Some(97 * SECOND)), 0));
        assert_eq!(plan.next(&files, 101 * SECOND, PERIOD), (Next::File(FileNumber(7)), 0));
        plan.verified(FileNumber(7), 101 * SECOND);
        assert_eq!(plan.next(&files, 101 * SECOND, PERIOD).0, Next::In(Some(SECOND)));
    }

    #[test]
    fn new_files_come_before_a_second_turn_and_removed_ones_are_forgotten() {
        let mut plan = Plan::default();
        plan.verified(FileNumber(1), 0);
        plan.verified(FileNumber(2), SECOND);
        let (late, files) = (1000 * SECOND, [file(2, 5), file(3, 900)]);
        assert_eq!(plan.next(&files, late, PERIOD), (Next::File(FileNumber(3)), 1));
        plan.verified(FileNumber(3), late);
        assert_eq!(plan.next(&files, late, PERIOD), (Next::File(FileNumber(2)), 0));
        assert!(!plan.verified.contains_key(&FileNumber(1)));
        assert_eq!(plan.next(&[], late, PERIOD), (Next::In(None), 0));
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
