//! Whether two samples scatter differently: the Brown-Forsythe test.

use crate::distributions::f_upper_tail;
use crate::error::{Result, check};
use crate::summary::{mean, median, variance};
use serde::{Deserialize, Serialize};

/// The spread of two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadChange {
    /// Standard deviation before.
    pub before: f64,
    /// Standard deviation after.
    pub after: f64,
    /// Two-sided p-value of equal spread.
    pub p_value: f64,
}

/// Compares spreads by the distances to each sample's median, which makes it deaf to the shape of the distribution.
///
/// # Errors
/// A side with fewer than 2 values, or a value that is not finite.
///
/// Source: Brown and Forsythe, "Robust tests for the equality of variances" (1974).
pub fn compare_spread(before: &[f64], after: &[f64]) -> Result<SpreadChange> {
    check("before", before, 2)?;
    check("after", after, 2)?;
    let distances = |values: &[f64]| {
        let centre = median(values);
        values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>()
    };
    let (a, b) = (distances(before), distances(after));
    let (n, m) = (a.len() as f64, b.len() as f64);
    let all = (mean(&a) * n + mean(&b) * m) / (n + m);
    let between = n * (mean(&a) - all).powi(2) + m * (mean(&b) - all).powi(2);
    let within = variance(&a) * (n - 1.0) + variance(&b) * (m - 1.0);
    let df = n + m - 2.0;
    let p_value = if between == 0.0 { 1.0 } else { f_upper_tail(between / (within / df), 1.0, df) };
    Ok(SpreadChange { before: variance(before).sqrt(), after: variance(after).sqrt(), p_value })
}
