//! When operations start: as soon as the last has ended, on a schedule of arrivals, or at a rate.
//!
//! ```text
//! closed loop   |--op--||--op--||----op----|       latency = time since the last completion
//! open loop     |--op--|   |--op--|                an operation is due at its time, whether or not the engine is ready
//!               ^due       ^due                    response = end - due; service = end - start
//! ```
//! A thread sleeps until shortly before an operation is due and waits the rest of the time awake: a late wake-up would be
//! counted as the engine's. That costs processor time, so costs per operation of an open loop are not those of a closed one.

use hdrhistogram::Histogram;
use outcrop_lab_stats::open_loop::{Arrivals, Spacing};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A rate of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// Operations per second, over all threads.
    pub rate: f64,
    /// How they are spread.
    pub spacing: Spacing,
}

/// The results of an open loop beside its service times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenLoopResult {
    /// Operations per second that were asked for.
    pub rate: f64,
    /// p50, p99, p99.9, p99.99 and the maximum of response times, microseconds. Operations that were due and never
    /// started count with the time they had waited when the step ended.
    pub percentiles: [f64; 5],
    /// Operations that started later than they were due by more than 100 microseconds.
    pub late: u64,
    /// Operations that were due and never started.
    pub unserved: u64,
    /// Operations that were done, each of which may count for several in a result: lookups of many keys in one call.
    #[serde(default)]
    pub served: u64,
    /// Operations that were due by the end: those that were done, those that never started, and where their number ended the
    /// step and not its time, those that would have been due by then.
    #[serde(default)]
    pub due: u64,
}

/// The part of an open loop that one thread has.
pub(super) struct Schedule {
    arrivals: Arrivals,
    start: Instant,
    /// The thread's first arrival, so that threads on a grid take turns.
    phase: Duration,
    end: Duration,
    pub response: Histogram<u64>,
    pub late: u64,
    pub unserved: u64,
    /// Operations that would have been due before others ended the thread's work.
    pub passed: u64,
}

impl Schedule {
    /// A start later than this is late.
    const LATE: Duration = Duration::from_micros(100);

    pub fn new(
        arrival: Arrival,
        thread: u32,
        threads: u32,
        seconds: f64,
        seed: u64,
        start: Instant,
    ) -> Schedule {
        // Sleeps end within a microsecond of their time, not within the usual 50. Best effort.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let rate = arrival.rate / f64::from(threads);
        let phase = match arrival.spacing {
            Spacing::Grid => f64::from(thread) / arrival.rate,
            Spacing::Poisson => 0.0,
        };
        Schedule {
            arrivals: Arrivals::new(arrival.spacing, rate, seed).expect("the rate was checked"),
            start,
            phase: Duration::from_secs_f64(phase),
            end: Duration::from_secs_f64(seconds),
            response: super::new_histogram(),
            late: 0,
            unserved: 0,
            passed: 0,
        }
    }

    /// Waits for the next operation; gives when it was due, or nothing if the step is over.
    pub fn wait(&mut self) -> Option<Instant> {
        let due = self.next_due()?;
        let now = Instant::now();
        if now.duration_since(self.start) >= self.end {
            self.abandon(due, now);
            return None;
        }
        wait_until(due);
        self.late += u64::from(now > due + Self::LATE);
        Some(due)
    }

    fn next_due(&mut self) -> Option<Instant> {
        let nanos = self.arrivals.next().expect("arrivals are endless");
        let due = self.phase + Duration::from_nanos(nanos);
        (due < self.end).then(|| self.start + due)
    }

    /// The thread does no further operation. Also where one that was late ends after the step, none that is due is left out.
    pub fn finish(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.start) >= self.end {
            if let Some(due) = self.next_due() {
                self.abandon(due, now);
            }
            return;
        }
        while let Some(due) = self.next_due()
            && due < now
        {
            self.passed += 1;
        }
    }

    /// The step ends while operations are due: they count with the time they have waited.
    fn abandon(&mut self, first: Instant, now: Instant) {
        let mut next = Some(first);
        while let Some(due) = next {
            self.unserved += 1;
            self.response.saturating_record(now.saturating_duration_since(due).as_nanos() as u64);
            next = self.next_due();
        }
    }
}

fn wait_until(due: Instant) {
    /// The time that a wake-up may take.
    const AWAKE: Duration = Duration::from_micros(50);
    let left = due.saturating_duration_since(Instant::now());
    if left > AWAKE {
        std::thread::sleep(left - AWAKE);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

/// Holds a closed loop to a rate, as RocksDB's tool does for mixgraph, once for every hundred operations.
pub(super) struct Throttle {
    start: Instant,
    /// Operations that may have started at `since`.
    granted: f64,
    since: Duration,
    rate: f64,
}

impl Throttle {
    pub fn new(start: Instant) -> Throttle {
        Throttle { start, granted: 0.0, since: Duration::ZERO, rate: 0.0 }
    }

    /// Sets the rate from now on.
    pub fn set(&mut self, rate: f64) {
        let now = self.start.elapsed();
        self.granted += (now - self.since).as_secs_f64() * self.rate;
        (self.since, self.rate) = (now, rate);
    }

    /// Seconds since the rate was set.
    pub fn age(&self) -> Duration {
        self.start.elapsed() - self.since
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Waits until `ops` operations may have started.
    pub fn wait(&self, ops: u64) {
        let due = self.since.as_secs_f64() + (ops as f64 - self.granted) / self.rate;
        let left = due - self.start.elapsed().as_secs_f64();
        if left > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_keeps_its_times_and_counts_what_was_never_served() {
        let start = Instant::now();
        let arrival = Arrival { rate: 1000.0, spacing: Spacing::Grid };
        let mut schedule = Schedule::new(arrival, 0, 1, 0.02, 1, start);
        let mut served = 0;
        while let Some(due) = schedule.wait() {
            assert!(Instant::now() >= due);
            served += 1;
            if served == 5 {
                // A stall until the step is over.
                std::thread::sleep(Duration::from_millis(30));
            }
        }
        // A busy machine may lose the thread before that; all twenty operations count in any case.
        assert!(served <= 5, "{served}");
        assert_eq!(schedule.unserved, 20 - served);
        assert!(schedule.response.max() > 10_000_000, "{}", schedule.response.max());
    }

    #[test]
    fn threads_on_a_grid_take_turns() {
        let start = Instant::now();
        let arrival = Arrival { rate: 100.0, spacing: Spacing::Grid };
        let due = |thread| {
            let mut schedule = Schedule::new(arrival, thread, 2, 1.0, 1, start);
            (schedule.next_due().unwrap() - start, schedule.next_due().unwrap() - start)
        };
        assert_eq!(due(0), (Duration::ZERO, Duration::from_millis(20)));
        assert_eq!(due(1), (Duration::from_millis(10), Duration::from_millis(30)));
    }

    #[test]
    fn a_throttle_keeps_its_rate() {
        let start = Instant::now();
        let mut throttle = Throttle::new(start);
        throttle.set(10_000.0);
        throttle.wait(300);
        assert!(start.elapsed() >= Duration::from_millis(29));
        assert!(throttle.seconds() >= 0.029 && throttle.age() >= Duration::from_millis(29));
    }
}
