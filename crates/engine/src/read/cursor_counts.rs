//! The counts of a cursor, if somebody watches when it is made or when it seeks.
//!
//! Moves are added to the tickers when the cursor is dropped, so that each costs an addition to memory that is its own; a step asks
//! its thread for nothing but the perf level.
//! Source: RocksDB `db/db_iter.cc`.

use outcrop_monitor::{HistogramKind, Monitor, PerfContext, PerfMetric, Ticker, Watch};

/// Counts of one cursor.
#[derive(Default)]
pub(super) struct Tally {
    nexts: u64,
    nexts_found: u64,
    prevs: u64,
    prevs_found: u64,
    bytes: u64,
    skipped: u64,
    /// Since the move began.
    pub(super) entries_skipped: u64,
    /// Since the move began, newer than the snapshot.
    pub(super) recent_skipped: u64,
    /// Since the move began.
    pub(super) deletes_skipped: u64,
    /// Since the move began.
    pub(super) operands: u64,
    /// Since the move began.
    pub(super) reseeks: u64,
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
    let watching = monitor.begin();
    let watch = Watch::from(&watching);
    watch.count(Ticker::NumberDbSeek, 1);
    watch.count(Ticker::NumberDbSeekFound, u64::from(shown.is_some()));
    watch.count(Ticker::IterBytesRead, bytes);
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
        let watching = monitor.begin()?;
        Watch::from(&Some(watching)).count(Ticker::NoIteratorCreated, 1);
        Some(Box::default())
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
        let entries = std::mem::take(&mut self.entries_skipped);
        let recent = std::mem::take(&mut self.recent_skipped);
        let deletes = std::mem::take(&mut self.deletes_skipped);
        let operands = std::mem::take(&mut self.operands);
        let reseeks = std::mem::take(&mut self.reseeks);
        self.skipped = self.skipped.wrapping_add(entries + recent + deletes);
        if PerfContext::counts() {
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
        // Rare enough to be told at once, as RocksDB does.
        if reseeks > 0
            && let Some(statistics) = &monitor.statistics
        {
            statistics.count(Ticker::NumberOfReseeksInIteration, reseeks);
        }
    }

    /// The cursor goes.
    pub(super) fn end(self, monitor: &Monitor) {
        let watching = monitor.begin();
        Watch::from(&watching).perf(PerfMetric::IterReadBytes, self.bytes);
        let Some(stats) = Watch::from(&watching).stats() else { return };
        for (ticker, n) in [
            (Ticker::NumberDbNext, self.nexts),
            (Ticker::NumberDbNextFound, self.nexts_found),
            (Ticker::NumberDbPrev, self.prevs),
            (Ticker::NumberDbPrevFound, self.prevs_found),
            (Ticker::IterBytesRead, self.bytes),
            (Ticker::NumberIterSkip, self.skipped),
            (Ticker::NoIteratorDeleted, 1),
        ] {
            stats.count(ticker, n);
        }
    }
}
