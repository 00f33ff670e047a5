//! Writes that failed, since the database was opened, and after which it was resumed: their sequence numbers, which nobody sees, and their
//! records, which WALs may have none the less.
//!
//! No replay comes to such a record: resuming flushes what stands before it. Readers of updates pass over it, and the copy of its WAL in the
//! archive ends before it.
//!
//! Limits: a process that is killed while it resumes leaves a WAL that the next opening archives with the record.

use outcrop_base::SeqNum;
use outcrop_manifest::FileNumber;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// See the module.
#[derive(Default)]
pub struct FailedWrites {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The last number of each write, by its first.
    numbers: BTreeMap<SeqNum, SeqNum>,
    /// Where the records begin, bytes from the start of their WALs.
    records: BTreeMap<FileNumber, u64>,
}

impl FailedWrites {
    /// Adds the write of the numbers from `first` to `last`, unless it is known. Its record may be in the WAL of that number, at that offset.
    pub fn add(&self, first: SeqNum, last: SeqNum, record: Option<(FileNumber, u64)>) {
        let mut known = self.known.lock();
        if known.numbers.insert(first, last).is_none() {
            known.records.extend(record);
        }
    }

    /// True if there was one of these numbers.
    pub fn has(&self, first: SeqNum, last: SeqNum) -> bool {
        self.known.lock().numbers.get(&first) == Some(&last)
    }

    /// The first number from `seq` on that no failed write has.
    pub fn after(&self, mut seq: SeqNum) -> SeqNum {
        let known = self.known.lock();
        while let Some((_, last)) = known.numbers.range(..=seq).next_back()
            && *last >= seq
        {
            seq = last.plus(1);
        }
        seq
    }

    /// Where WAL `number` has the record of a failed write, if it has.
    pub fn record_in(&self, number: FileNumber) -> Option<u64> {
        self.known.lock().records.get(&number).copied()
    }

    /// WAL `number` is gone.
    pub fn forget_record(&self, number: FileNumber) {
        self.known.lock().records.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_failed_writes_are_passed_over() {
        let failed = FailedWrites::default();
        assert_eq!(failed.after(SeqNum(5)), SeqNum(5));
        failed.add(SeqNum(5), SeqNum(7), Some((FileNumber(9), 100)));
        failed.add(SeqNum(8), SeqNum(8), None);
        // A second attempt to resume knows nothing better.
        failed.add(SeqNum(5), SeqNum(7), Some((FileNumber(10), 0)));
        let after: Vec<u64> = (4..11).map(|seq| failed.after(SeqNum(seq)).0).collect();
        assert_eq!(after, [4, 9, 9, 9, 9, 9, 10]);
        let has = |first, last| failed.has(SeqNum(first), SeqNum(last));
        assert!(has(5, 7) && has(8, 8) && !has(5, 6) && !has(6, 7) && !has(9, 9));
        assert_eq!([9, 10].map(|number| failed.record_in(FileNumber(number))), [Some(100), None]);
        failed.forget_record(FileNumber(9));
        assert_eq!(failed.record_in(FileNumber(9)), None);
        assert_eq!(failed.after(SeqNum(5)), SeqNum(9));
    }
}
