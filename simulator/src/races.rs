//! Which activities of a history went on at the same time as which others.
//!
//! Threads of the application say what they do by [`during`]. What background threads do is told by a listener, which histories have by a lot. An
//! activity without length ([`at`]) meets those that go on.
//!
//! A history is a process, so its activities are a static. One thread of it runs at a time, and none gives up its turn in here.

use outcrop::{
    BackgroundErrorReason, CompactionJobInfo, Db, Error, EventListener, MemTableInfo, SubcompactionJobInfo,
    TableFileCreationInfo, TableFileCreationReason, TableFileCreationStartedInfo, TableFileDeletionInfo,
    WriteStallInfo,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What goes on. Those from [`Activity::Sealed`] on have no length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A batch is written.
    Batch,
    /// A transaction, from its begin to its end or until it is prepared.
    Transaction,
    /// A table is made and ingested.
    Ingestion,
    /// A lookup.
    Get,
    /// Rows are read in both directions.
    Scan,
    /// All rows of the database are read at a snapshot.
    Everything,
    /// The application flushes.
    Flush,
    /// The application compacts.
    CompactRange,
    /// A checkpoint.
    Checkpoint,
    /// A backup.
    Backup,
    /// A column family is created.
    Create,
    /// One is dropped.
    Drop,
    /// A flush writes a table.
    FlushJob,
    /// A compaction.
    Compaction,
    /// One of several parts of a compaction.
    Part,
    /// A memtable takes no more writes.
    Sealed,
    /// Writers are held back otherwise than before.
    Stall,
    /// A background thread fails.
    Failure,
    /// An obsolete table is removed.
    Removed,
    /// The wall clock is set.
    Clock,
    /// The process dies, or the power goes.
    End,
}

/// Their names, in their order.
const NAMES: [&str; 21] = [
    "batch",
    "transaction",
    "ingestion",
    "get",
    "scan",
    "everything",
    "flush",
    "compact_range",
    "checkpoint",
    "backup",
    "create",
    "drop",
    "flush_job",
    "compaction",
    "part",
    "sealed",
    "stall",
    "failure",
    "removed",
    "clock",
    "end",
];

/// Which pairs of activities met: for each, a bit for each that went on when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met([u32; NAMES.len()]);

impl Met {
    /// Of the text that [`fmt::Display`] makes.
    pub fn parse(text: &str) -> Option<Met> {
        let mut met = Met::default();
        let mut numbers = text.split(',').map(|number| u32::from_str_radix(number, 16));
        met.0.iter_mut().try_for_each(|row| numbers.next()?.ok().map(|number| *row = number))?;
        numbers.next().is_none().then_some(met)
    }

    /// Those of `others` as well.
    pub fn add(&mut self, others: &Met) {
        self.0.iter_mut().zip(&others.0).for_each(|(row, more)| *row |= more);
    }

    fn has(&self, one: usize, other: usize) -> bool {
        self.0[one] & 1 << other != 0 || self.0[other] & 1 << one != 0
    }

    /// How many pairs met, of how many there are, and those that did not.
    pub fn summary(&self) -> (usize, usize, Vec<String>) {
        let first_without_length = Activity::Sealed as usize;
        let pairs =
            (0..first_without_length).flat_map(|one| (one..NAMES.len()).map(move |other| (one, other)));
        let all = pairs.clone().count();
        let missing: Vec<String> = pairs
            .filter(|&(one, other)| !self.has(one, other))
            .map(|(one, other)| format!("{}+{}", NAMES[one], NAMES[other]))
            .collect();
        (all - missing.len(), all, missing)
    }
}

impl fmt::Display for Met {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<String> = self.0.iter().map(|row| format!("{row:x}")).collect();
        out.write_str(&rows.join(","))
    }
}

#[derive(Default)]
struct Races {
    /// How many of each activity go on.
    open: [u32; NAMES.len()],
    met: Met,
}

static RACES: Mutex<Races> = Mutex::new(Races { open: [0; NAMES.len()], met: Met([0; NAMES.len()]) });

fn races() -> MutexGuard<'static, Races> {
    RACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What met so far.
pub fn met() -> Met {
    races().met
}

/// Forgets what goes on: a cycle begins.
pub fn begin() {
    races().open = Default::default();
}

/// An activity without length.
pub fn at(activity: Activity) {
    let mut races = races();
    let open =
        (0..NAMES.len()).filter(|&other| races.open[other] > 0).fold(0, |bits, other| bits | 1 << other);
    races.met.0[activity as usize] |= open;
}

fn enter(activity: Activity) {
    at(activity);
    races().open[activity as usize] += 1;
}

fn leave(activity: Activity) {
    let open = &mut races().open[activity as usize];
    *open = open.saturating_sub(1);
}

/// Ends an activity when it is dropped.
pub struct During(Activity);

impl Drop for During {
    fn drop(&mut self) {
        leave(self.0);
    }
}

/// Says that an activity goes on until the guard is dropped.
#[must_use]
pub fn during(activity: Activity) -> During {
    enter(activity);
    During(activity)
}

/// Tells of background threads.
pub struct Background;

impl EventListener for Background {
    fn compaction_begin(&self, _: &Arc<Db>, _: &CompactionJobInfo) {
        enter(Activity::Compaction);
    }

    fn compaction_completed(&self, _: &Arc<Db>, _: &CompactionJobInfo) {
        leave(Activity::Compaction);
    }

    fn subcompaction_begin(&self, _: &SubcompactionJobInfo) {
        enter(Activity::Part);
    }

    fn subcompaction_completed(&self, _: &SubcompactionJobInfo) {
        leave(Activity::Part);
    }

    fn table_file_creation_started(&self, table: &TableFileCreationStartedInfo) {
        if table.reason == TableFileCreationReason::Flush {
            enter(Activity::FlushJob);
        }
    }

    fn table_file_created(&self, table: &TableFileCreationInfo) {
        if table.started.reason == TableFileCreationReason::Flush {
            leave(Activity::FlushJob);
        }
    }

    fn table_file_deleted(&self, _: &TableFileDeletionInfo) {
        at(Activity::Removed);
    }

    fn background_error(&self, _: BackgroundErrorReason, _: &mut Option<Error>) {
        at(Activity::Failure);
    }

    fn stall_conditions_changed(&self, _: &WriteStallInfo) {
        at(Activity::Stall);
    }

    fn memtable_sealed(&self, _: &MemTableInfo) {
        at(Activity::Sealed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_meets_what_begins() {
        begin();
        let scan = during(Activity::Scan);
        at(Activity::Clock);
        let flush = during(Activity::Flush);
        drop(scan);
        let other_flush = during(Activity::Flush);
        drop((flush, other_flush));
        let get = during(Activity::Get);
        drop(get);
        let met = met();
        let pair = |one: Activity, other: Activity| met.has(one as usize, other as usize);
        assert!(pair(Activity::Clock, Activity::Scan) && pair(Activity::Scan, Activity::Flush));
        assert!(pair(Activity::Flush, Activity::Flush));
        assert!(!pair(Activity::Scan, Activity::Scan) && !pair(Activity::Get, Activity::Flush));
        assert_eq!(Met::parse(&met.to_string()), Some(met));
        assert_eq!(Met::parse("1,2"), None);
        let (count, all, missing) = met.summary();
        // Fifteen with a length, each with itself and those after it.
        assert_eq!((count, all, missing.len()), (3, 15 * 16 / 2 + 15 * 6, 207));
        assert!(missing.contains(&"batch+batch".to_string()) && !missing.contains(&"scan+flush".to_string()));
    }
}
