//! The scrubber of one database: its options, its figures, and the work it is at.
//!
//! Concurrency: one step at a time, on a thread of the lane for compactions. The scheduler asks with the state locked, by atomics alone.

use super::file::KnownFile;
use super::options::{ScrubOptions, ScrubProgress};
use super::plan::{Budget, Plan};
use outcrop_manifest::FileNumber;
use outcrop_table::BlockWalk;
use outcrop_table::blob::BlobReader;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The time of a step that never comes.
const NEVER: u64 = u64::MAX;

/// The scrubber.
pub struct Scrubber {
    options: Mutex<Option<ScrubOptions>>,
    /// When the next step is due, by the monotonic clock; [`NEVER`]: it is off.
    next_step_nanos: AtomicU64,
    /// A step runs.
    running: AtomicBool,
    /// Which file it is at. Held across the reads of a step.
    pub work: Mutex<Work>,
    /// Its figures.
    pub figures: Figures,
}

impl Default for Scrubber {
    fn default() -> Scrubber {
        Scrubber {
            options: Mutex::new(None),
            next_step_nanos: AtomicU64::new(NEVER),
            running: AtomicBool::new(false),
            work: Mutex::default(),
            figures: Figures::default(),
        }
    }
}

/// The work that goes on from step to step.
#[derive(Default)]
pub struct Work {
    /// When each file had its turn.
    pub plan: Plan,
    /// The files whose turns come next, as of the last look at all files.
    pub turns: VecDeque<KnownFile>,
    /// How many of them, the first ones, were never verified.
    pub never: usize,
    /// When another will be due, by the monotonic clock.
    pub next_nanos: Option<u64>,
    /// When all files were looked at last; `None`: anew before the next choice.
    pub listed_nanos: Option<u64>,
    /// The bytes that may be read.
    pub budget: Budget,
    /// The file that is being read.
    pub current: Option<Current>,
    /// When it was looked last whether that file is still one of the database.
    pub looked_nanos: u64,
}

/// A file that is being read. It may be removed meanwhile: it is open.
pub struct Current {
    /// Its number.
    pub number: FileNumber,
    /// How far it was read.
    pub rest: Rest,
}

/// The part of a file that is yet to be read.
pub enum Rest {
    /// Blocks of a table.
    Table(BlockWalk),
    /// A blob file from an offset on.
    Blobs(BlobReader, u64),
}

/// Sums since the database was opened.
#[derive(Default)]
pub struct Figures {
    /// See [`ScrubProgress`], as of the others.
    pub files: AtomicU64,
    /// Bytes read.
    pub bytes: AtomicU64,
    /// Damaged files.
    pub damaged: AtomicU64,
    /// Files that could not be read.
    pub failed: AtomicU64,
    /// Files that were not read yet.
    pub missing: AtomicU64,
}

impl Figures {
    /// Now.
    pub fn progress(&self) -> ScrubProgress {
        // Relaxed: sums for people.
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        ScrubProgress {
            files_verified: of(&self.files),
            bytes_verified: of(&self.bytes),
            damaged_files: of(&self.damaged),
            failed_files: of(&self.failed),
            files_to_verify: of(&self.missing),
        }
    }
}

impl Scrubber {
    /// How it works; none: it is off.
    pub fn options(&self) -> Option<ScrubOptions> {
        *self.options.lock()
    }

    /// From here on it works so. The caller wakes the lane.
    pub fn set(&self, options: Option<ScrubOptions>) {
        let mut current = self.options.lock();
        *current = options;
        // Relaxed: a thread that misses it is asked again within a second. Set with the options locked, as a step's end does.
        self.next_step_nanos.store(if options.is_some() { 0 } else { NEVER }, Ordering::Relaxed);
        drop(current);
        if options.is_none() {
            self.close_file();
        } else if let Some(mut work) = self.work.try_lock() {
            // Another period makes others due.
            work.listed_nanos = None;
        }
    }

    /// Closes the file that is being read, unless a step runs, which then does.
    pub fn close_file(&self) {
        if let Some(mut work) = self.work.try_lock() {
            work.current = None;
            work.listed_nanos = None;
        }
    }

    /// True if a step is due at `now` and none runs.
    pub fn is_due(&self, now: impl FnOnce() -> u64) -> bool {
        // Relaxed: as where it is set.
        let next = self.next_step_nanos.load(Ordering::Relaxed);
        next != NEVER && !self.running.load(Ordering::Relaxed) && next <= now()
    }

    /// Takes the step that is due at `now`; it runs until [`Scrubber::end_step`].
    pub fn take_step(&self, now: impl FnOnce() -> u64) -> bool {
        // Relaxed: taken with the state locked, which orders those who take.
        let due = self.is_due(now);
        if due {
            self.running.store(true, Ordering::Relaxed);
        }
        due
    }

    /// The step has ended; the next is due at `nanos`, unless it was switched off or on meanwhile.
    pub fn end_step(&self, worked_by: ScrubOptions, nanos: u64) {
        let options = self.options.lock();
        if *options == Some(worked_by) {
            self.next_step_nanos.store(nanos, Ordering::Relaxed);
        }
        drop(options);
        self.running.store(false, Ordering::Relaxed);
    }

    /// A step found it switched off.
    pub fn end_without_step(&self) {
        self.running.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_it_is_never_due_and_one_step_runs_at_a_time() {
        let scrubber = Scrubber::default();
        assert!(!scrubber.is_due(|| panic!("nobody looks at the clock while it is off")));
        let options = ScrubOptions::default();
        scrubber.set(Some(options));
        assert!(scrubber.take_step(|| 5) && !scrubber.take_step(|| 5));
        scrubber.end_step(options, 100);
        assert!(!scrubber.take_step(|| 99) && scrubber.take_step(|| 100));
        // Switched off during a step, it stays off.
        scrubber.set(None);
        scrubber.end_step(options, 0);
        assert!(!scrubber.take_step(|| u64::MAX));
        scrubber.set(Some(options));
        assert!(scrubber.take_step(|| 0));
    }
}
