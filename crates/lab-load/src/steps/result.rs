//! The results of a step: sums over its threads, and percentiles of all samples.

use super::OpenLoopResult;
use super::beside::BesideResult;
use super::kinds::KindCounts;
use super::limit::RateReport;
use super::measure::ThreadResult;
use crate::counters::Counters;
use crate::process::ProcessUsage;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    /// Operations of the counted threads.
    pub ops: u64,
    /// Seconds from the first start to the last finish.
    pub seconds: f64,
    /// Mean microseconds one thread spends per operation.
    pub micros_per_op: f64,
    /// Key and value bytes of the operations.
    pub bytes: u64,
    /// Lookups that found something.
    pub found: u64,
    /// p50, p99, p99.9, p99.99 and the maximum, microseconds of service time.
    pub percentiles: [f64; 5],
    /// Operations in each second.
    pub per_second: Vec<u64>,
    /// The longest operation that ended in each second, in microseconds, from when it was due where operations are; 0:
    /// none ended. The last second may be cut short.
    #[serde(default)]
    pub longest_per_second: Vec<u64>,
    /// Longest time without a completion in any one thread, milliseconds.
    pub longest_gap_ms: f64,
    /// The rate of the background writer, or of counted writes with a limit, over what was asked; 1 without one.
    pub writer_achieved: f64,
    /// The longest time such writes were behind a line of that rate, milliseconds.
    #[serde(default)]
    pub writer_lag_ms: f64,
    /// Response times, if operations were due at their times.
    #[serde(default)]
    pub open: Option<OpenLoopResult>,
    /// How the step differs from the one that was asked for.
    #[serde(default)]
    pub note: Option<String>,
    /// The engine's counts meanwhile.
    pub counters: Counters,
    /// CPU time used meanwhile, and memory at the end.
    pub usage: ProcessUsage,
    /// Processor seconds of the threads that did the counted operations, a part of `usage`: what is not in it is that of the
    /// engine's own threads and of a writer beside them. Absent in old records.
    #[serde(default)]
    pub load_cpu_seconds: Option<f64>,
    /// The usage of a server's processes meanwhile, if there is one.
    #[serde(default)]
    pub server: Option<ProcessUsage>,
    /// Bytes that a server put into its redo log meanwhile, if there is one and it says so.
    #[serde(default)]
    pub redo_bytes: Option<u64>,
    /// Times that a server brought its redo log to its device meanwhile, if there is one and it says so.
    #[serde(default)]
    pub log_syncs: Option<u64>,
    /// The states of a server's connections, looked at ten times a second: how often each was seen.
    #[serde(default)]
    pub waits: BTreeMap<String, u64>,
    /// How a server would execute the statements, at the start and at the end, if there is one.
    #[serde(default)]
    pub plans: Option<[Vec<StatementPlan>; 2]>,
    /// Rows that were inserted and deleted meanwhile, counted or beside the counted operations, if a step does such a thing.
    #[serde(default)]
    pub rows: Option<[u64; 2]>,
    /// Seconds that inserting and deleting those rows took, which are more than `seconds` where it was done beside the counted
    /// operations.
    #[serde(default)]
    pub row_seconds: Option<[f64; 2]>,
    /// The statements of those that insert and of those that delete beside the counted operations, if a step has such.
    #[serde(default)]
    pub beside: Option<[BesideResult; 2]>,
    /// Seconds that deleters of oldest rows spent looking for the oldest, if a step does such a thing.
    #[serde(default)]
    pub search_seconds: Option<f64>,
    /// Rows that a scan beside the counted operations read, if a step has such.
    #[serde(default)]
    pub scanned_rows: Option<u64>,
    /// Operations of each kind, if a step has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<KindCounts>,
    /// Bytes of a server's database at the end, and of all its files, if it says so.
    #[serde(default)]
    pub database_bytes: Option<[u64; 2]>,
    /// Operations and seconds of each part, of a step that was done in parts; empty of one that was done at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(u64, f64)>,
    /// All samples, nanoseconds.
    #[serde(skip, default = "new_histogram")]
    pub samples: Histogram<u64>,
    /// All response times of an open loop, nanoseconds.
    #[serde(skip, default = "new_histogram")]
    pub responses: Histogram<u64>,
}

/// How a server would execute a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementPlan {
    /// The statement, without its parameters.
    pub statement: String,
    /// The server's plan, without what differs from one parameter to the next.
    pub plan: String,
}

impl StepResult {
    /// The result of a step that did nothing.
    pub fn nothing() -> StepResult {
        summarize(&[])
    }

    /// The result of a step that another program did: `ops` operations in `seconds` by `threads`, and nanoseconds of events with how many
    /// there were of each.
    pub fn of_events(ops: u64, seconds: f64, threads: u32, events: &[(u64, u64)]) -> StepResult {
        let mut samples = new_histogram();
        // Beyond the longest that a histogram holds: it counts as that.
        events.iter().for_each(|(nanos, count)| samples.saturating_record_n(*nanos, *count));
        StepResult {
            ops,
            seconds,
            micros_per_op: seconds * f64::from(threads) * 1e6 / ops.max(1) as f64,
            percentiles: percentiles(&samples),
            load_cpu_seconds: None,
            samples,
            ..StepResult::nothing()
        }
    }

    /// The result of a step of which this is the first part, and `later` what was done after a pause. Not of an open loop, in
    /// which operations become due in a pause.
    ///
    /// `later` counted its seconds on from the end of this one: see [`super::run_slice`].
    pub(super) fn followed_by(mut self, later: StepResult) -> StepResult {
        let mean = |weights: [f64; 2], values: [f64; 2]| {
            let sum = weights[0] + weights[1];
            if sum > 0.0 { (weights[0] * values[0] + weights[1] * values[1]) / sum } else { values[1] }
        };
        let (ops, seconds) = ([self.ops as f64, later.ops as f64], [self.seconds, later.seconds]);
        self.samples.add(&later.samples).expect("histograms are alike");
        self.responses.add(&later.responses).expect("histograms are alike");
        let longest = later.longest_per_second;
        self.longest_per_second.resize(longest.len().max(self.longest_per_second.len()), 0);
        self.longest_per_second.iter_mut().zip(longest).for_each(|(us, later)| *us = later.max(*us));
        self.per_second.extend(later.per_second);
        if self.parts.is_empty() {
            self.parts.push((self.ops, self.seconds));
        }
        self.parts.push((later.ops, later.seconds));
        StepResult {
            ops: self.ops + later.ops,
            seconds: self.seconds + later.seconds,
            micros_per_op: mean(ops, [self.micros_per_op, later.micros_per_op]),
            bytes: self.bytes + later.bytes,
            found: self.found + later.found,
            percentiles: percentiles(&self.samples),
            per_second: self.per_second,
            longest_per_second: self.longest_per_second,
            longest_gap_ms: self.longest_gap_ms.max(later.longest_gap_ms),
            writer_achieved: mean(seconds, [self.writer_achieved, later.writer_achieved]),
            writer_lag_ms: self.writer_lag_ms.max(later.writer_lag_ms),
            open: None,
            note: self.note.or(later.note),
            counters: self.counters.followed_by(&later.counters),
            usage: self.usage.followed_by(&later.usage),
            load_cpu_seconds: match (self.load_cpu_seconds, later.load_cpu_seconds) {
                (Some(so_far), Some(later)) => Some(so_far + later),
                (so_far, later) => so_far.or(later),
            },
            server: match (self.server, later.server) {
                (Some(so_far), Some(later)) => Some(so_far.followed_by(&later)),
                (so_far, later) => so_far.or(later),
            },
            redo_bytes: match (self.redo_bytes, later.redo_bytes) {
                (Some(so_far), Some(later)) => Some(so_far + later),
                (so_far, later) => so_far.or(later),
            },
            log_syncs: match (self.log_syncs, later.log_syncs) {
                (Some(so_far), Some(later)) => Some(so_far + later),
                (so_far, later) => so_far.or(later),
            },
            waits: later.waits.into_iter().fold(self.waits, |mut waits, (what, count)| {
                *waits.entry(what).or_default() += count;
                waits
            }),
            plans: match (self.plans, later.plans) {
                (Some([first, _]), Some([_, last])) => Some([first, last]),
                (so_far, later) => so_far.or(later),
            },
            rows: later
                .rows
                .map(|[i, d]| self.rows.map_or([i, d], |so_far| [so_far[0] + i, so_far[1] + d]))
                .or(self.rows),
            row_seconds: later
                .row_seconds
                .map(|[i, d]| self.row_seconds.map_or([i, d], |so_far| [so_far[0] + i, so_far[1] + d]))
                .or(self.row_seconds),
            beside: later.beside.or(self.beside),
            search_seconds: match (self.search_seconds, later.search_seconds) {
                (Some(so_far), Some(later)) => Some(so_far + later),
                (so_far, later) => so_far.or(later),
            },
            scanned_rows: match (self.scanned_rows, later.scanned_rows) {
                (Some(so_far), Some(later)) => Some(so_far + later),
                (so_far, later) => so_far.or(later),
            },
            kinds: match (self.kinds, later.kinds) {
                (Some(mut so_far), Some(later)) => {
                    so_far.add(&later);
                    Some(so_far)
                }
                (so_far, later) => so_far.or(later),
            },
            database_bytes: later.database_bytes.or(self.database_bytes),
            parts: self.parts,
            samples: self.samples,
            responses: self.responses,
        }
    }

    pub(super) fn set_rate(&mut self, report: RateReport) {
        self.writer_achieved = report.achieved;
        self.writer_lag_ms = report.longest_lag.as_secs_f64() * 1e3;
    }
}

pub(super) fn summarize(threads: &[ThreadResult]) -> StepResult {
    let mut histogram = new_histogram();
    threads.iter().for_each(|thread| histogram.add(&thread.histogram).expect("histograms are alike"));
    let ops: u64 = threads.iter().map(|thread| thread.ops).sum();
    let thread_seconds: f64 =
        threads.iter().map(|thread| (thread.span[1] - thread.span[0]).as_secs_f64()).sum();
    let first = threads.iter().map(|thread| thread.span[0]).min().unwrap_or_default();
    let last = threads.iter().map(|thread| thread.span[1]).max().unwrap_or_default();
    StepResult {
        ops,
        seconds: (last - first).as_secs_f64(),
        micros_per_op: thread_seconds * 1e6 / ops.max(1) as f64,
        bytes: threads.iter().map(|thread| thread.bytes).sum(),
        found: threads.iter().map(|thread| thread.found).sum(),
        percentiles: percentiles(&histogram),
        per_second: Vec::new(),
        longest_per_second: longest_per_second(threads),
        longest_gap_ms: threads.iter().map(|t| t.longest_gap.as_secs_f64() * 1e3).fold(0.0, f64::max),
        writer_achieved: 1.0,
        writer_lag_ms: 0.0,
        open: None,
        note: None,
        counters: Counters::default(),
        usage: ProcessUsage::default(),
        load_cpu_seconds: Some(threads.iter().map(|thread| thread.cpu.as_secs_f64()).sum()),
        server: None,
        redo_bytes: None,
        log_syncs: None,
        waits: BTreeMap::new(),
        plans: None,
        rows: None,
        row_seconds: None,
        beside: None,
        search_seconds: None,
        scanned_rows: None,
        kinds: None,
        database_bytes: None,
        parts: Vec::new(),
        samples: histogram,
        responses: new_histogram(),
    }
}

/// The longest operation of any thread in each second, in microseconds.
fn longest_per_second(threads: &[ThreadResult]) -> Vec<u64> {
    let seconds = threads.iter().map(|thread| thread.longest_by_second.len()).max().unwrap_or(0);
    let longest = |second: usize| {
        let all = threads.iter().filter_map(|thread| thread.longest_by_second.get(second));
        all.max().map_or(0, |nanos| nanos.div_ceil(1000))
    };
    (0..seconds).map(longest).collect()
}

/// p50, p99, p99.9, p99.99 and the maximum of a histogram of nanoseconds, in microseconds.
pub(super) fn percentiles(histogram: &Histogram<u64>) -> [f64; 5] {
    // A walk over all buckets finds nothing in one that is empty.
    if histogram.is_empty() {
        return [0.0; 5];
    }
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
    [at(0.5), at(0.99), at(0.999), at(0.9999), micros(histogram.max())]
}

/// An empty histogram of nanoseconds up to an hour, exact to three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_of_a_step_add_up_to_it() {
        let part = |ops: u64, seconds: f64, micros: f64, nanos: u64| {
            let mut result = StepResult { ops, seconds, micros_per_op: micros, ..StepResult::nothing() };
            result.samples.record_n(nanos, ops).unwrap();
            result.longest_gap_ms = nanos as f64 / 1e6;
            (result.per_second, result.longest_per_second) = (vec![ops], vec![0, nanos / 1000]);
            result.writer_achieved = 1.0 / seconds;
            result.counters.stalls = ops;
            result.usage.user_seconds = seconds;
            result.load_cpu_seconds = Some(seconds / 2.0);
            result.scanned_rows = Some(ops * 10);
            result.kinds = Some(KindCounts { gets: ops, ..KindCounts::default() });
            result
        };
        let both = part(30, 1.0, 10.0, 5_000).followed_by(part(10, 2.0, 20.0, 9_000));
        assert_eq!((both.ops, both.seconds, both.micros_per_op), (40, 3.0, 12.5));
        assert_eq!(both.parts, [(30, 1.0), (10, 2.0)]);
        assert_eq!((both.per_second, both.longest_per_second), (vec![30, 10], vec![0, 9]));
        assert_eq!((both.percentiles[0].round(), both.percentiles[4].round()), (5.0, 9.0));
        assert_eq!((both.longest_gap_ms, both.counters.stalls), (0.009, 40));
        assert_eq!((both.load_cpu_seconds, both.scanned_rows), (Some(1.5), Some(400)));
        assert_eq!(both.kinds, Some(KindCounts { gets: 40, ..KindCounts::default() }));
        assert_eq!((both.usage.user_seconds, (both.writer_achieved * 6.0).round()), (3.0, 4.0));
    }

    #[test]
    fn percentiles_of_nothing_are_those_of_an_empty_histogram() {
        let mut histogram = new_histogram();
        let quantiles = [0.5, 0.99, 0.999, 0.9999].map(|at| histogram.value_at_quantile(at));
        assert_eq!((quantiles, histogram.max(), percentiles(&histogram)), ([0; 4], 0, [0.0; 5]));
        histogram.record(5_000).unwrap();
        assert_eq!(percentiles(&histogram).map(f64::round), [5.0; 5]);
    }

    #[test]
    fn a_step_lasts_from_the_first_start_to_the_last_finish() {
        let thread = |from: u64, to: u64, ops| ThreadResult {
            ops,
            found: 0,
            bytes: 0,
            span: [from, to].map(Duration::from_millis),
            histogram: new_histogram(),
            longest_gap: Duration::ZERO,
            longest_by_second: Vec::new(),
            schedule: None,
            cpu: Duration::from_millis(ops),
        };
        let result = summarize(&[thread(0, 1000, 10), thread(500, 2000, 15)]);
        assert_eq!((result.ops, result.seconds), (25, 2.0));
        assert_eq!(result.load_cpu_seconds, Some(0.025));
        assert_eq!(result.micros_per_op, 100_000.0, "a second and a half-longer one, over 25 operations");
    }
}
