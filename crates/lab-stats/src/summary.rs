//! Location and spread of one sample: mean, median, quantiles, deviations.
//!
//! Next: `interval.rs` for how well they are known.

use crate::error::{Result, check, check_probability};
use serde::{Deserialize, Serialize};

/// The description of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median, the mean of the middle two for an even count.
    pub median: f64,
    /// Sample standard deviation (n - 1); `None` for one value.
    pub sd: Option<f64>,
    /// Median absolute deviation times 1.4826: the standard deviation of normal data, deaf to outliers.
    pub mad_sd: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

/// Describes `values`.
///
/// # Errors
/// No values, or one that is not finite.
pub fn summarize(values: &[f64]) -> Result<Summary> {
    check("values", values, 1)?;
    Ok(Summary {
        count: values.len(),
        mean: mean(values),
        median: median(values),
        sd: (values.len() > 1).then(|| variance(values).sqrt()),
        mad_sd: mad_sd(values),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// The quantile `q` by linear interpolation between order statistics (Hyndman and Fan's type 7, NumPy's default).
///
/// # Errors
/// No values, one that is not finite, or `q` outside (0, 1).
pub fn quantile(values: &[f64], q: f64) -> Result<f64> {
    check("values", values, 1)?;
    check_probability("q", q)?;
    Ok(quantile_of_sorted(&sorted(values), q))
}

/// The noise floor of one kind of test: how far log ratios stray where nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Number of log ratios.
    pub count: usize,
    /// Median of the absolute log ratios.
    pub median: f64,
    /// 90th percentile, nearest rank.
    pub p90: f64,
    /// 95th percentile, nearest rank: what a verdict's margin is raised to.
    pub p95: f64,
    /// Largest.
    pub max: f64,
    /// Share of ratios at or outside 1 - band and 1 + band.
    pub beyond: f64,
}

/// Noise floor of `log_ratios` between targets that should be equal; `band` is 0.05 in the classic tables.
///
/// # Errors
/// No values, one that is not finite, or `band` outside (0, 1).
pub fn noise_floor(log_ratios: &[f64], band: f64) -> Result<NoiseFloor> {
    check("log_ratios", log_ratios, 1)?;
    check_probability("band", band)?;
    let count = log_ratios.len();
    let absolute = sorted(&log_ratios.iter().map(|value| value.abs()).collect::<Vec<_>>());
    let nearest_rank = |q: f64| absolute[((q * count as f64).ceil() as usize).clamp(1, count) - 1];
    let beyond = log_ratios.iter().filter(|log| (log.exp() - 1.0).abs() >= band).count();
    Ok(NoiseFloor {
        count,
        median: median_of_sorted(&absolute),
        p90: nearest_rank(0.9),
        p95: nearest_rank(0.95),
        max: absolute[count - 1],
        beyond: beyond as f64 / count as f64,
    })
}

/// Mean of a checked, non-empty sample.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let rough = values.iter().sum::<f64>() / values.len() as f64;
    // A second pass takes out the rounding of the first sum, so equal values have exactly their own mean.
    rough + values.iter().map(|value| value - rough).sum::<f64>() / values.len() as f64
}

/// Sample variance (n - 1) of a checked sample of two or more.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Median of a checked, non-empty sample.
pub(crate) fn median(values: &[f64]) -> f64 {
    median_of_sorted(&sorted(values))
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

pub(crate) fn mad_sd(values: &[f64]) -> f64 {
    let centre = median(values);
    1.482_602_218_505_602 * median(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>())
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let position = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}
