//! A request of a caller of `compact_range`: its options, and the steps that wait to be run.

use outcrop_base::{CfId, Error, ErrorKind, Result, Timestamp};
use outcrop_manifest::FileNumber;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How `compact_range` treats the last level that holds data of the range.
///
/// ```
/// # use outcrop::BottommostLevelCompaction;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// // Rewrites everything, for instance after a change of the compression.
/// db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into())?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BottommostLevelCompaction {
    /// Its tables are rewritten only where something is merged into them: RocksDB's default without a
    /// compaction filter.
    #[default]
    Skip,
    /// Its tables are rewritten in any case.
    Force,
}

/// Whether `compact_range` moves values out of the oldest blob files, so that the files can go.
///
/// ```
/// use outcrop::{BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions};
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// // Leaves no garbage in any blob file, whatever the options of the column family say.
/// let clean = CompactRangeOptions {
///     bottommost_level_compaction: BottommostLevelCompaction::Force,
///     blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
///     blob_garbage_collection_age_cutoff: Some(1.0),
///     ..CompactRangeOptions::default()
/// };
/// db.compact_range_with(None, None, &clean)?;
/// # outcrop::Result::Ok(())
/// ```
///
/// Source: RocksDB `BlobGarbageCollectionPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlobGarbageCollectionPolicy {
    /// As `enable_blob_garbage_collection` says.
    #[default]
    UseDefault,
    /// In any case.
    Force,
    /// In no case.
    Disable,
}

/// Which values a compaction moves out of their blob files, where the column family's options do not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlobCollection {
    /// Whether any.
    pub policy: BlobGarbageCollectionPolicy,
    /// Share of the blob files, the oldest first, that values move out of.
    pub age_cutoff: Option<f64>,
}

/// How `compact_range` works.
///
/// ```
/// # use outcrop::CompactRangeOptions;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let alone = CompactRangeOptions { exclusive_manual_compaction: true, ..CompactRangeOptions::default() };
/// db.compact_range_with(Some(b"a"), Some(b"f"), &alone)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactRangeOptions {
    /// Whether the last level with data of the range is compacted. Default `Skip`.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// Afterwards move all tables of the level the range ended in to `target_level`, without rewriting them. Leveled
    /// only. Default false.
    pub change_level: bool,
    /// Where to; `None`: the smallest level that the size fits. The levels up to it must be empty. Default `None`.
    pub target_level: Option<usize>,
    /// No other compaction of the database runs at the same time. Default false.
    pub exclusive_manual_compaction: bool,
    /// Threads each step may be split over; `None`: as `max_subcompactions` of the database says. Default `None`.
    pub max_subcompactions: Option<u32>,
    /// Which of `cf_paths`, or `db_paths`, the new tables go to. Default 0: the first.
    pub target_path_id: u32,
    /// Raises the column family's `full_history_ts_low` to this before, as [`crate::Db::increase_full_history_low`] does: of versions
    /// with older timestamps only the newest of each key stays. The range must then be unbounded. Default `None`.
    pub full_history_low: Option<Timestamp>,
    /// Whether values move out of old blob files. Default `UseDefault`.
    pub blob_garbage_collection_policy: BlobGarbageCollectionPolicy,
    /// Share of the blob files, the oldest first, that they move out of, 0 to 1; `None`: as the option of that name says. Default `None`.
    pub blob_garbage_collection_age_cutoff: Option<f64>,
}

impl From<BottommostLevelCompaction> for CompactRangeOptions {
    /// Default options but for this.
    fn from(bottommost_level_compaction: BottommostLevelCompaction) -> CompactRangeOptions {
        CompactRangeOptions { bottommost_level_compaction, ..CompactRangeOptions::default() }
    }
}

/// The tables of one step.
#[derive(Clone)]
pub enum Scope {
    /// Those of a level that overlap the range, with what must come along, into another.
    Level {
        /// From here.
        start: usize,
        /// To here.
        output: usize,
        /// First user key; `None`: unbounded.
        begin: Option<Vec<u8>>,
        /// Last user key; `None`: unbounded.
        end: Option<Vec<u8>>,
        /// Only tables whose numbers are below this: those that were there when the request came. `None`: all.
        below: Option<FileNumber>,
    },
    /// All sorted runs.
    Everything,
}

/// One step of a manual compaction.
pub struct ManualCompaction {
    /// The column family.
    pub cf_id: CfId,
    /// Which tables.
    pub scope: Scope,
    /// No other compaction of the database runs at the same time.
    pub exclusive: bool,
    /// Which path the tables go to.
    pub path_id: u32,
    /// Threads it may be split over, if the caller says.
    pub max_subcompactions: Option<u32>,
    /// Which values move out of their blob files.
    pub blob_collection: BlobCollection,
    /// Set by `disable_manual_compaction`, and by the caller if it is the caller's.
    pub canceled: Arc<AtomicBool>,
    /// Versions with timestamps above this are dropped.
    pub trim: Option<Timestamp>,
    outcome: Mutex<Outcome>,
}

/// How far a step is.
enum Outcome {
    /// Not begun.
    Waiting,
    /// A thread works on it.
    Running,
    /// Ended.
    Done(Result<()>),
}

impl ManualCompaction {
    /// A step of `cf_id` that waits to be run.
    pub fn new(cf_id: CfId, scope: Scope, options: &CompactRangeOptions) -> ManualCompaction {
        ManualCompaction {
            cf_id,
            scope,
            exclusive: options.exclusive_manual_compaction,
            path_id: options.target_path_id,
            max_subcompactions: options.max_subcompactions,
            blob_collection: BlobCollection {
                policy: options.blob_garbage_collection_policy,
                age_cutoff: options.blob_garbage_collection_age_cutoff,
            },
            canceled: Arc::default(),
            trim: None,
            outcome: Mutex::new(Outcome::Waiting),
        }
    }

    /// The same, which drops versions with timestamps above `trim`.
    pub fn trimming(self, trim: Option<Timestamp>) -> ManualCompaction {
        ManualCompaction { trim, ..self }
    }

    /// The same, which ends once `canceled` is set; disabling manual compactions sets it, as in RocksDB.
    pub fn canceled_by(self, canceled: Option<&Arc<AtomicBool>>) -> ManualCompaction {
        match canceled {
            Some(canceled) => ManualCompaction { canceled: canceled.clone(), ..self },
            None => self,
        }
    }

    /// A thread begins with it.
    pub fn start(&self) {
        *self.outcome.lock() = Outcome::Running;
    }

    /// Records how the step ended.
    pub fn finish(&self, result: Result<()>) {
        *self.outcome.lock() = Outcome::Done(result);
    }

    /// True if no automatic compaction of column family `cf_id` may start while this waits or runs.
    pub fn holds_back(&self, cf_id: CfId) -> bool {
        self.exclusive
            || (self.cf_id == cf_id && matches!(self.scope, Scope::Everything) && self.is_waiting())
    }

    /// True if `error` is that the step is no longer wanted.
    pub fn was_canceled(&self, error: &Error) -> bool {
        // Relaxed: the job that failed has read it.
        error.kind() == ErrorKind::Incomplete && self.canceled.load(Ordering::Relaxed)
    }

    /// True until it begins or ends.
    pub fn is_waiting(&self) -> bool {
        matches!(&*self.outcome.lock(), Outcome::Waiting)
    }

    /// How it ended, once it has.
    pub fn result(&self) -> Option<Result<()>> {
        match &*self.outcome.lock() {
            Outcome::Done(result) => Some(result.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(scope: Scope, exclusive: bool) -> ManualCompaction {
        let options = CompactRangeOptions { exclusive_manual_compaction: exclusive, ..Default::default() };
        ManualCompaction::new(CfId(3), scope, &options)
    }

    fn level() -> Scope {
        Scope::Level { start: 0, output: 1, begin: None, end: None, below: None }
    }

    #[test]
    fn a_step_waits_runs_and_ends() {
        let step = request(level(), false);
        assert!(step.is_waiting() && step.result().is_none());
        step.start();
        assert!(!step.is_waiting() && step.result().is_none());
        step.finish(Ok(()));
        assert!(step.result().is_some_and(|result| result.is_ok()));
        assert!(step.result().is_some(), "whoever asks is told, however often");
    }

    #[test]
    fn only_an_end_that_was_asked_for_is_a_cancellation() {
        let step = request(level(), false);
        let ended = Error::new(ErrorKind::Incomplete, "paused");
        assert!(!step.was_canceled(&ended));
        step.canceled.store(true, Ordering::Relaxed);
        assert!(step.was_canceled(&ended));
        assert!(!step.was_canceled(&Error::corruption("a table")));
    }

    #[test]
    fn one_that_takes_everything_holds_back_its_column_family_while_it_waits() {
        let step = request(Scope::Everything, false);
        assert!(step.holds_back(CfId(3)) && !step.holds_back(CfId(4)));
        step.start();
        assert!(!step.holds_back(CfId(3)), "its tables are taken now");
        assert!(!request(level(), false).holds_back(CfId(3)));
    }

    #[test]
    fn an_exclusive_one_holds_back_all_until_it_is_gone() {
        let step = request(level(), true);
        assert!(step.holds_back(CfId(3)) && step.holds_back(CfId(4)));
        step.start();
        assert!(step.holds_back(CfId(4)));
    }
}
