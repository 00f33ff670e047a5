//! Optimal partition: the exact best cut of a series into stretches of constant mean.
//!
//! Cost of a cut = weighted squared distance to each stretch's mean, in units of the noise, + a penalty per change.
//! Dynamic programming over all cuts, quadratic in the length: histories have tens of versions, steps 20 batches.
//!
//! Source: Jackson et al., "An algorithm for optimal partitioning of data on an interval" (2005).

use crate::distributions::t_critical;
use crate::error::{
    ErrorKind, Result, check, check_above_zero, check_pair, check_positive, check_range, error,
};
use serde::{Deserialize, Serialize};

/// Longest series that is partitioned.
pub const MAX_LENGTH: usize = 10_000;

/// A stretch of constant mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Index of its first value.
    pub start: usize,
    /// Index after its last value.
    pub end: usize,
    /// Weighted mean.
    pub mean: f64,
}

impl Segment {
    /// Number of values.
    pub fn count(&self) -> usize {
        self.end - self.start
    }
}

/// How a series is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// Standard deviation of one value of weight 1.
    pub sd: f64,
    /// Price of a change, in squared standard deviations; see [`penalty`].
    pub penalty: f64,
    /// Fewest values of a segment.
    pub least: usize,
}

/// The penalty at which pure noise is cut anywhere with a probability of at most about `false_rate`.
///
/// The squared t quantile for `length - 1` places at once; `noise_df` says how well the noise is known.
///
/// # Errors
/// `length` below 2, `false_rate` outside (0, 1) or `noise_df` not above 0.
pub fn penalty(length: usize, false_rate: f64, noise_df: f64) -> Result<f64> {
    check_above_zero("noise_df", noise_df)?;
    check_range("length", length as f64, length > 1, "at least 2")?;
    check_range("false_rate", false_rate, false_rate > 0.0 && false_rate < 1.0, "strictly between 0 and 1")?;
    Ok(t_critical(1.0 - false_rate / (length - 1) as f64, noise_df).powi(2))
}

/// Cuts `values` into segments; `weights` say how many standard values each stands for (sessions of a version).
///
/// # Errors
/// Fewer values than `least`, more than [`MAX_LENGTH`], a value that is not finite, weights not above 0 or of another
/// length, `sd` not above 0, a negative penalty, or `least` 0.
pub fn partition(values: &[f64], weights: &[f64], settings: &Partition) -> Result<Vec<Segment>> {
    check_range("least", settings.least as f64, settings.least > 0, "at least 1")?;
    check("values", values, settings.least)?;
    check_pair("values and weights", values, weights)?;
    check_positive("weights", weights, 1)?;
    check_above_zero("sd", settings.sd)?;
    check_range("penalty", settings.penalty, settings.penalty >= 0.0, "at least 0")?;
    if values.len() > MAX_LENGTH {
        return Err(error(ErrorKind::OutOfDomain, format!("{} values, at most {MAX_LENGTH}", values.len())));
    }
    let sums = Sums::new(values, weights);
    let starts = best_starts(values.len(), settings, &sums);
    let mut segments = Vec::new();
    let mut end = values.len();
    while end > 0 {
        let start = starts[end];
        segments.push(Segment { start, end, mean: sums.mean(start, end) });
        end = start;
    }
    segments.reverse();
    Ok(segments)
}

/// For each end, where the last segment of the cheapest cut up to there starts.
fn best_starts(length: usize, settings: &Partition, sums: &Sums) -> Vec<usize> {
    let variance = settings.sd * settings.sd;
    let mut cost = vec![f64::INFINITY; length + 1];
    let mut starts = vec![0; length + 1];
    cost[0] = -settings.penalty;
    for end in settings.least..=length {
        for start in 0..=end - settings.least {
            let candidate = cost[start] + settings.penalty + sums.squares(start, end) / variance;
            if candidate < cost[end] {
                (cost[end], starts[end]) = (candidate, start);
            }
        }
    }
    starts
}

/// Running sums of weight, value and square, so that any stretch costs two subtractions.
struct Sums {
    centre: f64,
    running: Vec<[f64; 3]>,
}

impl Sums {
    fn new(values: &[f64], weights: &[f64]) -> Sums {
        // Centring keeps the squares small against the sums they are subtracted from.
        let centre = crate::summary::median(values);
        let mut sums = [0.0; 3];
        let mut running = vec![sums];
        for (value, weight) in values.iter().zip(weights) {
            let x = value - centre;
            sums = [sums[0] + weight, sums[1] + weight * x, sums[2] + weight * x * x];
            running.push(sums);
        }
        Sums { centre, running }
    }

    fn between(&self, start: usize, end: usize) -> [f64; 3] {
        std::array::from_fn(|sum| self.running[end][sum] - self.running[start][sum])
    }

    fn mean(&self, start: usize, end: usize) -> f64 {
        let [weight, sum, _] = self.between(start, end);
        self.centre + sum / weight
    }

    fn squares(&self, start: usize, end: usize) -> f64 {
        let [weight, sum, squares] = self.between(start, end);
        (squares - sum * sum / weight).max(0.0)
    }
}
