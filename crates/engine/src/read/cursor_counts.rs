//! The counts of a cursor, if somebody watches when it is made or when it seeks.
//!
//! Moves are added to the tickers when the cursor is dropped, so that each costs an addition to memory that is its own; a step asks
//! its thread for nothing but the perf level.
//! Source: RocksDB `db/db_iter.cc`.

use outcrop_monitor::{Asked, HistogramKind, Monitor, PerfContext, PerfMetric, Ticker, Watch};

/// Counts of one cursor.
#[derive(Default)]
pub(super) struct Tally {
    /// Threads counted for themselves when the cursor was made: each move is told to its thread.
    tells_threads: bool,
    /// Steps to a next row that needed nothing else to be counted, beside `nexts`.
    plain_nexts: u64,
    /// The same, to a row before.
    plain_prevs: u64,
    nexts: u64,
    nexts_found: u64,
    prevs: u64,
    prevs_found: u64,
    bytes: u64,
    skipped: u64,
    /// Since the last move that was told.
    pub(super) entries_skipped: u64,
    /// The same, newer than the snapshot.
    pub(super) recent_skipped: u64,
    /// Since the last move that was told.
    pub(super) deletes_skipped: u64,
    /// Since the last move that was told.
    pub(super) operands: u64,
}

/// How a cursor was moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Next,
    Prev,
    Seek {
        /// Nanoseconds on the clock when it began; 0 if nobody asks.
        began: u64,
        /// Sources, and how many of them are memtables.
        sources: (u64, u64),
    },
}

/// A seek has ended, which began at `began`, went to so many sources and memtables, and shows an entry of so many bytes, if any.
fn seek_ended(monitor: &Monitor, began: u64, sources: (u64, u64), shown: Option<usize>) {
    let bytes = shown.unwrap_or(0) as u64;
    let tickers = [
        (Ticker::NumberDbSeek, 1),
        (Ticker::NumberDbSeekFound, u64::from(shown.is_some())),
        (Ticker::IterBytesRead, bytes),
    ];
    if let Asked::Counts(stats) | Asked::Times(stats) = monitor.asked() {
        stats.count_all(tickers);
        if began > 0 {
            let nanos = monitor.clock.monotonic_nanos().saturating_sub(began);
            stats.record_time(HistogramKind::DbSeek, nanos / 1000);
        }
        return;
    }
    let watching = monitor.begin();
    let watch = Watch::from(&watching);
    if let Some(stats) = watch.stats() {
        stats.count_all(tickers);
    }
    watch.perf(PerfMetric::IterSeekCount, 1);
    watch.perf(PerfMetric::SeekChildSeekCount, sources.0);
    watch.perf(PerfMetric::SeekOnMemtableCount, sources.1);
    watch.perf(PerfMetric::IterReadBytes, bytes);
    if began > 0
        && let Some(stats) = watch.stats()
    {
        let nanos = monitor.clock.monotonic_nanos().saturating_sub(began);
        stats.record_time(HistogramKind::DbSeek, nanos / 1000);
    }
}

impl Tally {
    /// The tally of a cursor that is being made; `None` if nobody watches.
    pub(super) fn begin(monitor: &Monitor) -> Option<Box<Tally>> {
        match monitor.asked() {
            Asked::Nobody => return None,
            Asked::Counts(stats) | Asked::Times(stats) => stats.count_all([(Ticker::NoIteratorCreated, 1)]),
            Asked::More => {
                let watching = monitor.begin()?;
                Watch::from(&Some(watching)).count(Ticker::NoIteratorCreated, 1);
            }
        }
        Some(Box::new(Tally { tells_threads: PerfContext::is_in_use(), ..Tally::default() }))
    }

    /// A step to a next row of so many bytes has ended. False if there is more to do for it: [`Tally::moved`].
    #[inline(always)]
    pub(super) fn stepped(&mut self, bytes: impl FnOnce() -> usize) -> bool {
        if self.tells_threads {
            return false;
        }
        self.plain_nexts += 1;
        self.bytes += bytes() as u64;
        true
    }

    /// The same of a step to a row before.
    #[inline(always)]
    pub(super) fn stepped_back(&mut self, bytes: impl FnOnce() -> usize) -> bool {
        if self.tells_threads {
            return false;
        }
        self.plain_prevs += 1;
        self.bytes += bytes() as u64;
        true
    }

    /// Nanoseconds on the clock, if the time of a seek is wanted.
    pub(super) fn clock(monitor: &Monitor) -> u64 {
        let wanted = monitor.statistics.as_ref().is_some_and(|statistics| statistics.has_timers());
        if wanted { monitor.clock.monotonic_nanos() } else { 0 }
    }

    /// A move has ended, on an entry of `shown` bytes if on any.
    #[cold]
    pub(super) fn moved(&mut self, monitor: &Monitor, how: Moved, shown: Option<usize>) {
        let (found, bytes) = (u64::from(shown.is_some()), shown.unwrap_or(0) as u64);
        match how {
            Moved::Next => {
                (self.nexts, self.nexts_found, self.bytes) =
                    (self.nexts + 1, self.nexts_found + found, self.bytes + bytes);
                self.entries_skipped += 1;
                // The entry that was shown is passed, and not skipped.
                self.skipped = self.skipped.wrapping_sub(1);
            }
            Moved::Prev => {
                (self.prevs, self.prevs_found, self.bytes) =
                    (self.prevs + 1, self.prevs_found + found, self.bytes + bytes);
            }
            Moved::Seek { began, sources } => seek_ended(monitor, began, sources, shown),
        }
        self.tell_skipped(how);
    }

    /// Adds what was passed over since this was called last to what the cursor has skipped, and tells the thread.
    fn tell_skipped(&mut self, how: Moved) {
        let entries = std::mem::take(&mut self.entries_skipped);
        let recent = std::mem::take(&mut self.recent_skipped);
        let deletes = std::mem::take(&mut self.deletes_skipped);
        let operands = std::mem::take(&mut self.operands);
        self.skipped = self.skipped.wrapping_add(entries + recent + deletes);
        if self.tells_threads && PerfContext::counts() {
            match how {
                Moved::Next => PerfContext::add(PerfMetric::IterNextCount, 1),
                Moved::Prev => PerfContext::add(PerfMetric::IterPrevCount, 1),
                Moved::Seek { .. } => {}
            }
            for (metric, n) in [
                (PerfMetric::InternalKeySkippedCount, entries),
                (PerfMetric::InternalRecentSkippedCount, recent),
                (PerfMetric::InternalDeleteSkippedCount, deletes),
                (PerfMetric::InternalMergeCount, operands),
            ] {
                PerfContext::add(metric, n);
            }
        }
    }

    /// The cursor goes.
    pub(super) fn end(self, monitor: &Monitor) {
        // Of steps that were not told.
        let passed = self.entries_skipped + self.recent_skipped + self.deletes_skipped;
        let tickers = [
            (Ticker::NumberDbNext, self.plain_nexts + self.nexts),
            (Ticker::NumberDbNextFound, self.plain_nexts + self.nexts_found),
            (Ticker::NumberDbPrev, self.plain_prevs + self.prevs),
            (Ticker::NumberDbPrevFound, self.plain_prevs + self.prevs_found),
            (Ticker::IterBytesRead, self.bytes),
            (Ticker::NumberIterSkip, self.skipped.wrapping_add(passed)),
            (Ticker::NoIteratorDeleted, 1),
        ];
        if let Asked::Counts(stats) | Asked::Times(stats) = monitor.asked() {
            return stats.count_all(tickers);
        }
        let watching = monitor.begin();
        Watch::from(&watching).perf(PerfMetric::IterReadBytes, self.bytes);
        if let Some(stats) = Watch::from(&watching).stats() {
            stats.count_all(tickers);
        }
    }
}
