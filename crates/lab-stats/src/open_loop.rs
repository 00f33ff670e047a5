//! Open loop: operations arrive on schedule, whether or not the engine keeps up, and latency counts from the arrival.
//!
//! ```text
//! intended   |    |    |    |    |
//! start      |    |         ||||           a stall: three operations wait
//! end          |       stall  |||| |
//!            intended latency = end - intended (what a user waits); service time = end - start
//! ```
//! A closed loop sends nothing during a stall and so records one bad operation instead of all that would have waited:
//! coordinated omission. Both histograms are kept; the service time is what closed-loop tools print.
//!
//! Times are nanoseconds on any clock; this module reads none.

use crate::error::{ErrorKind, Result, check_above_zero, check_range, error};
use crate::histogram::{Percentiles, percentiles};
use crate::rng::Rng;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const NANOS_PER_SECOND: f64 = 1e9;

/// How arrivals are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal distances.
    Grid,
    /// Independent arrivals: exponential distances.
    Poisson,
}

/// Intended starts, in nanoseconds from the start of the step; endless.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spacing: Spacing,
    mean_nanos: f64,
    rng: Rng,
    arrived: u64,
    clock_nanos: f64,
}

impl Arrivals {
    /// A schedule of `per_second` operations. Threads take schedules of their own, with seeds of their own.
    ///
    /// # Errors
    /// A rate that is not above 0.
    pub fn new(spacing: Spacing, per_second: f64, seed: u64) -> Result<Arrivals> {
        check_above_zero("per_second", per_second)?;
        let mean_nanos = NANOS_PER_SECOND / per_second;
        Ok(Arrivals { spacing, mean_nanos, rng: Rng::new(seed), arrived: 0, clock_nanos: 0.0 })
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.arrived += 1;
        match self.spacing {
            // From the count, not by adding up: rounding must not shift the rate.
            Spacing::Grid => self.clock_nanos = (self.arrived - 1) as f64 * self.mean_nanos,
            Spacing::Poisson => self.clock_nanos -= self.rng.unit().ln() * self.mean_nanos,
        }
        Some(self.clock_nanos as u64)
    }
}

/// Records operations of an open loop.
#[derive(Clone, Debug)]
pub struct Recorder {
    intended: Histogram<u64>,
    service: Histogram<u64>,
    late_starts: u64,
    longest_wait_nanos: u64,
}

/// The latencies of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// End minus intended start, nanoseconds.
    pub intended: Percentiles,
    /// End minus actual start, nanoseconds.
    pub service: Percentiles,
    /// Operations that started later than intended.
    pub late_starts: u64,
    /// Longest wait for a start, nanoseconds.
    pub longest_wait_nanos: u64,
}

impl Recorder {
    /// A recorder for latencies up to `longest_nanos`; longer ones count as that long.
    ///
    /// # Errors
    /// `longest_nanos` below 2.
    pub fn new(longest_nanos: u64) -> Result<Recorder> {
        let bounded = || {
            Histogram::new_with_bounds(1, longest_nanos, 3)
                .map_err(|refused| error(ErrorKind::OutOfDomain, format!("longest_nanos: {refused:?}")))
        };
        Ok(Recorder { intended: bounded()?, service: bounded()?, late_starts: 0, longest_wait_nanos: 0 })
    }

    /// Records one operation by its three times.
    ///
    /// # Errors
    /// An end before the start. A start before the intended one is a caller that does not keep its schedule: refused
    /// too.
    pub fn record(&mut self, intended: u64, start: u64, end: u64) -> Result<()> {
        if intended > start || start > end {
            let context = format!("intended {intended}, start {start}, end {end} are out of order");
            return Err(error(ErrorKind::OutOfDomain, context));
        }
        self.intended.saturating_record(end - intended);
        self.service.saturating_record(end - start);
        self.late_starts += u64::from(start > intended);
        self.longest_wait_nanos = self.longest_wait_nanos.max(start - intended);
        Ok(())
    }

    /// Takes in what another thread recorded.
    ///
    /// # Errors
    /// The other recorder holds values beyond the bounds of this one.
    pub fn merge(&mut self, other: &Recorder) -> Result<()> {
        for (own, others) in [(&mut self.intended, &other.intended), (&mut self.service, &other.service)] {
            own.add(others).map_err(|refused| {
                error(ErrorKind::OutOfDomain, format!("recorders do not merge: {refused:?}"))
            })?;
        }
        self.late_starts += other.late_starts;
        self.longest_wait_nanos = self.longest_wait_nanos.max(other.longest_wait_nanos);
        Ok(())
    }

    /// The latencies so far.
    pub fn summary(&self) -> OpenLoop {
        OpenLoop {
            intended: percentiles(&self.intended),
            service: percentiles(&self.service),
            late_starts: self.late_starts,
            longest_wait_nanos: self.longest_wait_nanos,
        }
    }

    /// The histogram of intended latencies, to be stored and merged.
    pub fn intended(&self) -> &Histogram<u64> {
        &self.intended
    }

    /// The histogram of service times, to be stored and merged.
    pub fn service(&self) -> &Histogram<u64> {
        &self.service
    }
}

/// Longest queue: the most operations that had arrived and not ended at one moment.
///
/// # Errors
/// An operation that ends before it was to start.
pub fn longest_queue(intended_and_end: &[(u64, u64)]) -> Result<usize> {
    if let Some((intended, end)) = intended_and_end.iter().find(|(intended, end)| end < intended) {
        check_range("end", *end as f64, false, &format!("at least the intended start {intended}"))?;
    }
    // An operation that ends as another arrives has left: ends sort first.
    let mut events: Vec<(u64, i64)> =
        intended_and_end.iter().flat_map(|(intended, end)| [(*intended, 1), (*end, -1)]).collect();
    events.sort_unstable();
    let (mut waiting, mut longest) = (0i64, 0i64);
    for (_, change) in events {
        waiting += change;
        longest = longest.max(waiting);
    }
    Ok(longest.max(0) as usize)
}
