//! The loop of one thread: an operation after the other, each measured, until the step is over.
//!
//! Next: `worker.rs` for what an operation does, `pace.rs` for when it starts.

use super::pace::Schedule;
use super::{Board, Step, new_histogram};
use hdrhistogram::Histogram;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The result of one call.
pub struct Done {
    /// Operations it counts as.
    pub ops: u64,
    /// Lookups that found something.
    pub found: u64,
    /// Key and value bytes.
    pub bytes: u64,
}

/// Does operations, one call after the other.
pub trait Operate {
    /// Waits before an operation if a rate asks for it; true if it waited. `ops` are done so far.
    fn pause(&mut self, _ops: u64) -> bool {
        false
    }

    /// Does one call's operations; `ops` are done so far.
    ///
    /// # Errors
    /// The words that end the step.
    fn operate(&mut self, ops: u64) -> Result<Done, String>;

    /// True once there is nothing left to do, whatever was asked for.
    fn is_over(&self) -> bool {
        false
    }
}

/// The measurements of one thread.
pub(super) struct ThreadResult {
    pub ops: u64,
    pub found: u64,
    pub bytes: u64,
    /// When its first operation began and its last one ended, from the start of the step.
    pub span: [Duration; 2],
    pub histogram: Histogram<u64>,
    pub longest_gap: Duration,
    /// The longest operation that ended in each second, nanoseconds.
    pub longest_by_second: Vec<u64>,
    pub schedule: Option<Schedule>,
    /// Processor time that this thread took for its operations.
    pub cpu: Duration,
}

/// Repeats operations until the step is over.
pub(super) fn measure<O: Operate>(
    mut operations: O,
    step: &Step,
    board: &Board,
    thread: u32,
    mut schedule: Option<Schedule>,
) -> ThreadResult {
    /// Operations, and nanoseconds, after which the others are told how many were done.
    const TELL: (u64, u64) = (128, 10_000_000);
    let mut planted = Planted::new(step.planted);
    let (mut ops, mut found, mut bytes) = (0, 0, 0);
    let (mut histogram, mut longest_gap) = (new_histogram(), 0);
    let mut longest_by_second = Vec::new();
    let limit = step.ops.unwrap_or(u64::MAX);
    let end = if step.ops.is_none() { nanos(Duration::from_secs_f64(step.seconds)) } else { u64::MAX };
    let cpu = thread_cpu();
    let start = Instant::now();
    let before = nanos(board.before.time);
    let told_ops = &board.ops[thread as usize];
    // Nanoseconds since `start`, like every time below: one difference of clocks per operation.
    let (mut last, mut told) = (0, (0, 0));
    while ops < limit {
        let due = match &mut schedule {
            None => None,
            Some(schedule) => match schedule.wait() {
                Some(due) => Some(due),
                None => break,
            },
        };
        // A wait is not the operation's.
        let begun = if due.is_some() || operations.pause(ops) { nanos(start.elapsed()) } else { last };
        match operations.operate(ops) {
            Ok(done) => {
                ops += done.ops;
                found += done.found;
                bytes += done.bytes;
            }
            Err(error) => {
                board.fail(error);
                break;
            }
        }
        if operations.is_over() {
            break;
        }
        let mut at = Instant::now();
        let mut now = nanos(at - start);
        if step.planted > 0.0
            && let Some(time) = planted.due(now - begun)
        {
            let burnt_from = now;
            at = burn(at, Duration::from_nanos(time));
            now = nanos(at - start);
            planted.burnt(now - burnt_from);
        }
        let took = now - begun;
        histogram.saturating_record(took);
        // A request waits from the time it was due; without work to do nothing stands still.
        let (waited, gap) = match (&mut schedule, due) {
            (Some(schedule), Some(due)) => {
                let waited = nanos(at - due);
                schedule.response.saturating_record(waited);
                (waited, waited.min(now - last))
            }
            _ => (took, took),
        };
        longest_gap = longest_gap.max(gap);
        note_longest(&mut longest_by_second, before + now, waited);
        last = now;
        if ops - told.0 >= TELL.0 || now - told.1 >= TELL.1 {
            told_ops.store(ops, Ordering::Relaxed);
            told = (ops, now);
        }
        if now >= end {
            break;
        }
    }
    told_ops.store(ops, Ordering::Relaxed);
    let span = [start - board.start, start - board.start + Duration::from_nanos(last)];
    let longest_gap = Duration::from_nanos(longest_gap);
    let cpu = thread_cpu().saturating_sub(cpu);
    if let Some(schedule) = &mut schedule {
        schedule.finish();
    }
    ThreadResult { ops, found, bytes, span, histogram, longest_gap, longest_by_second, schedule, cpu }
}

/// Processor time that the calling thread has taken.
fn thread_cpu() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Processor time that a step is to take beyond its own, as a share of it: what a regression of known size is made of.
struct Planted {
    share: f64,
    /// Nanoseconds not burnt yet; below zero after more was burnt than was due.
    owed: f64,
}

impl Planted {
    /// The part of an operation's time beyond that is waiting, not processor time.
    const AT_MOST: u64 = 100_000;
    /// Less than this is more to look at the clock for than to burn.
    const AT_ONCE: f64 = 2_000.0;

    fn new(share: f64) -> Planted {
        Planted { share, owed: 0.0 }
    }

    /// The time to burn now, in nanoseconds, after an operation that took `took`. One multiplication for most: a cost
    /// of its own would be a larger share of a short operation.
    #[inline]
    fn due(&mut self, took: u64) -> Option<u64> {
        self.owed += took.min(Planted::AT_MOST) as f64 * self.share;
        (self.owed >= Planted::AT_ONCE).then_some(self.owed as u64)
    }

    fn burnt(&mut self, time: u64) {
        self.owed -= time as f64;
    }
}

/// Nanoseconds of a step's times; five hundred years fit.
#[inline]
fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// Keeps the longest operation of the second in which `nanos` ended, which was at `end`, in nanoseconds.
#[inline]
fn note_longest(by_second: &mut Vec<u64>, end: u64, nanos: u64) {
    let second = (end / 1_000_000_000) as usize;
    if second >= by_second.len() {
        // Seconds in which nothing ended have no longest operation.
        by_second.resize(second + 1, 0);
    }
    by_second[second] = by_second[second].max(nanos);
}

/// Computes nothing from `from` on for as long as `time`; gives when it ended.
fn burn(from: Instant, time: Duration) -> Instant {
    loop {
        let now = Instant::now();
        if now - from >= time {
            return now;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_share_is_burnt_no_more_and_no_less_whatever_the_clock_overshoots() {
        for (took, overshoot) in [(35, 0), (380, 25), (1_000, 60), (40_000, 300), (100_000, 20)] {
            let mut planted = Planted::new(0.03);
            let (mut took_in_all, mut burnt_in_all) = (0, 0);
            for _ in 0..1_000_000 {
                took_in_all += took;
                if let Some(time) = planted.due(took) {
                    planted.burnt(time + overshoot);
                    burnt_in_all += time + overshoot;
                }
            }
            let share = burnt_in_all as f64 / took_in_all as f64;
            assert!((share / 0.03 - 1.0).abs() < 0.01, "{share} of operations of {took} ns");
        }
        let mut planted = Planted::new(0.5);
        assert_eq!(planted.due(10_000_000_000), Some(50_000), "a stall is waiting");
    }

    #[test]
    fn each_second_keeps_its_longest_operation() {
        let mut by_second = Vec::new();
        for (end_ms, nanos) in [(10, 5), (900, 7), (999, 6), (3100, 9), (3200, 2)] {
            note_longest(&mut by_second, end_ms * 1_000_000, nanos);
        }
        assert_eq!(by_second, [7, 0, 0, 9]);
    }
}
