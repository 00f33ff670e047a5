//! The perf context: the operations of the calling thread, counted for itself alone.
//!
//! Nothing is counted before some thread of the process has asked for its context or set its level: then every thread counts, at
//! [`PerfLevel::COUNTS`] unless it set another. Source: RocksDB `monitoring/perf_context.cc`, `include/rocksdb/perf_level.h`.

use crate::read_counts::{ReadCount, ReadCounts};
use crate::{Counting, PerfMetric};
use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Some thread of the process counts. Every operation reads it: nothing that is written often may be in its line.
static IN_USE: Apart<AtomicBool> = Apart(AtomicBool::new(false));

/// Alone in a line of the processor's cache.
#[repr(align(64))]
struct Apart<T>(T);

thread_local! {
    static LEVEL: Cell<u8> = const { Cell::new(PerfLevel::COUNTS.0) };
    static METRICS: [Cell<u64>; PerfMetric::COUNT] = const { [const { Cell::new(0) }; PerfMetric::COUNT] };
    /// Of lookups; beside `METRICS`, as in a shard of the statistics.
    static READS: ReadCounts = const { ReadCounts::new() };
}

/// How much a thread counts for itself.
///
/// ```
/// use outcrop_monitor::{PerfContext, PerfLevel};
///
/// PerfContext::set_level(PerfLevel::ALL);
/// assert_eq!(PerfContext::level(), PerfLevel::ALL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerfLevel(pub u8);

impl PerfLevel {
    /// Nothing.
    pub const OFF: PerfLevel = PerfLevel(1);
    /// Counts: the level of a thread that set none.
    pub const COUNTS: PerfLevel = PerfLevel(2);
    /// Times of waiting too.
    pub const WAITS: PerfLevel = PerfLevel(3);
    /// All times but those of waits for locks.
    pub const TIMES_EXCEPT_MUTEX: PerfLevel = PerfLevel(4);
    /// Times of processors too.
    pub const CPU_TIMES: PerfLevel = PerfLevel(5);
    /// All.
    pub const ALL: PerfLevel = PerfLevel(6);
}

/// The calling thread's counters.
///
/// ```
/// use outcrop_monitor::{PerfContext, PerfMetric};
///
/// PerfContext::reset();
/// assert_eq!(PerfContext::get(PerfMetric::BloomSstHitCount), 0);
/// assert_eq!(PerfContext::text(true), "");
/// ```
pub struct PerfContext;

impl PerfContext {
    /// Has every thread of the process count from now on.
    pub fn enable() {
        // Relaxed: an operation under way may not be counted.
        IN_USE.0.store(true, Ordering::Relaxed);
    }

    /// True if threads count.
    #[inline]
    pub fn is_in_use() -> bool {
        IN_USE.0.load(Ordering::Relaxed)
    }

    /// How much the calling thread counts.
    #[inline]
    pub fn level() -> PerfLevel {
        PerfLevel(LEVEL.get())
    }

    /// Changes how much the calling thread counts.
    pub fn set_level(level: PerfLevel) {
        LEVEL.set(level.0);
        PerfContext::enable();
    }

    /// One counter. Times are nanoseconds.
    pub fn get(metric: PerfMetric) -> u64 {
        PerfContext::enable();
        let own = METRICS.with(|metrics| metrics[metric as usize].get());
        let of_reads = ReadCount::ALL.iter().filter(|what| what.metrics().contains(&metric));
        READS.with(|reads| of_reads.fold(own, |sum, what| sum.wrapping_add(reads.get(*what))))
    }

    /// True if the calling thread counts for itself.
    #[inline]
    pub fn counts() -> bool {
        PerfContext::is_in_use() && PerfContext::level() >= PerfLevel::COUNTS
    }

    /// Adds to one, if the calling thread counts for itself.
    #[inline]
    pub fn count(metric: PerfMetric, n: u64) {
        if PerfContext::counts() {
            PerfContext::add(metric, n);
        }
    }

    /// Adds to one, whatever the level.
    #[inline]
    pub fn add(metric: PerfMetric, n: u64) {
        METRICS.with(|metrics| {
            let cell = &metrics[metric as usize];
            cell.set(cell.get().wrapping_add(n));
        });
    }

    /// Runs a lookup that the calling thread counts for itself, and nobody else.
    #[inline(always)]
    pub(crate) fn counted<T>(look_up: impl FnOnce(Counting<'_>) -> T) -> T {
        READS.with(|reads| look_up(Counting(reads)))
    }

    /// Adds what a lookup counted.
    pub(crate) fn add_reads(counts: &ReadCounts) {
        READS.with(|reads| reads.add_all(counts));
    }

    /// Of the calling thread's counters `metrics`, which no lookup changes, the sum.
    pub(crate) fn sum(metrics: &[PerfMetric]) -> u64 {
        METRICS.with(|cells| {
            metrics.iter().map(|metric| cells[*metric as usize].get()).fold(0, u64::wrapping_add)
        })
    }

    /// Sets all to 0.
    pub fn reset() {
        PerfContext::enable();
        METRICS.with(|metrics| metrics.iter().for_each(|cell| cell.set(0)));
        READS.with(ReadCounts::clear);
    }

    /// `name = value` of all, or of those that are not 0, with commas between.
    pub fn text(without_zeros: bool) -> String {
        let mut text = String::new();
        for metric in PerfMetric::ALL {
            let value = PerfContext::get(*metric);
            if value > 0 || !without_zeros {
                let separator = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{separator}{} = {value}", metric.name());
            }
        }
        text
    }
}
