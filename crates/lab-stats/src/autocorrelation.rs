//! Dependence within a series: autocorrelation, long-run variance, and a trend that allows for both.
//!
//! Seconds of a run depend on each other (compaction, cache filling), so the variance of their mean is not variance
//! over count. The long-run variance counts what neighbours share (Newey and West, Bartlett weights).
//!
//! Next: `warm_up.rs` and `steady.rs` use these; no verdict does, because the unit there is the session.

use crate::distributions::t_two_sided;
use crate::error::{Result, check};
use crate::summary::mean;
use serde::{Deserialize, Serialize};

/// Autocorrelation at lags 0 to `max_lag`; all 0 but the first for a constant series.
///
/// # Errors
/// No more than `max_lag` values, or one that is not finite.
pub fn autocorrelation(values: &[f64], max_lag: usize) -> Result<Vec<f64>> {
    check("values", values, max_lag + 1)?;
    let centred = centred(values);
    let variance = autocovariance(&centred, 0);
    Ok((0..=max_lag)
        .map(|lag| match (lag, variance) {
            (0, _) => 1.0,
            (_, 0.0) => 0.0,
            _ => autocovariance(&centred, lag) / variance,
        })
        .collect())
}

/// The usual number of lags for `count` values: 4 (count / 100)^(2/9), rounded down.
pub fn usual_lags(count: usize) -> usize {
    (4.0 * (count as f64 / 100.0).powf(2.0 / 9.0)).floor() as usize
}

/// Variance of the series as its mean sees it: divided by the count it is the squared standard error of the mean.
///
/// # Errors
/// No more than `lags` values, fewer than 2, or one that is not finite.
pub fn long_run_variance(values: &[f64], lags: usize) -> Result<f64> {
    check("values", values, (lags + 1).max(2))?;
    Ok(bartlett_sum(&centred(values), lags))
}

/// How many independent values carry as much as this series: between 1 and its length.
///
/// # Errors
/// Fewer than 2 values, or one that is not finite.
pub fn effective_count(values: &[f64]) -> Result<f64> {
    let count = values.len() as f64;
    let lags = usual_lags(values.len()).min(values.len().saturating_sub(1));
    let long_run = long_run_variance(values, lags)?;
    let plain = autocovariance(&centred(values), 0);
    Ok(if plain == 0.0 { count } else { (count * plain / long_run).clamp(1.0, count) })
}

/// A straight line through a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Change from one value to the next.
    pub slope: f64,
    /// Standard error of the slope, with neighbours allowed to depend on each other.
    pub standard_error: f64,
    /// Two-sided p-value of a slope of 0.
    pub p_value: f64,
}

/// Least-squares slope with a Newey-West standard error over `lags`.
///
/// # Errors
/// Fewer than 3 values, no more than `lags`, or one that is not finite.
pub fn trend(values: &[f64], lags: usize) -> Result<Trend> {
    check("values", values, (lags + 1).max(3))?;
    let count = values.len() as f64;
    let x: Vec<f64> = (0..values.len()).map(|index| index as f64 - (count - 1.0) / 2.0).collect();
    let y = centred(values);
    let x_squares: f64 = x.iter().map(|x| x * x).sum();
    let slope = x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>() / x_squares;
    let scores: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x * (y - slope * x)).collect();
    // The scores sum to 0 by construction; n / (n - 2) pays for the two fitted parameters.
    let spread = bartlett_sum(&scores, lags) * count * count / (count - 2.0);
    let standard_error = spread.sqrt() / x_squares;
    let p_value = if slope == 0.0 { 1.0 } else { t_two_sided(slope / standard_error, count - 2.0) };
    Ok(Trend { slope, standard_error, p_value })
}

/// Autocorrelation of lag 1 judged from differences, so that steps in the level do not look like dependence.
///
/// For a first-order autoregression the differences have lag-1 autocorrelation (phi - 1) / 2.
pub(crate) fn phi_from_differences(values: &[f64]) -> f64 {
    let differences: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if differences.len() < 3 {
        return 0.0;
    }
    let variance = autocovariance(&differences, 0);
    if variance == 0.0 {
        0.0
    } else {
        (1.0 + 2.0 * autocovariance(&differences, 1) / variance).clamp(0.0, 0.95)
    }
}

fn centred(values: &[f64]) -> Vec<f64> {
    let centre = mean(values);
    values.iter().map(|value| value - centre).collect()
}

fn autocovariance(centred: &[f64], lag: usize) -> f64 {
    centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / centred.len() as f64
}

fn bartlett_sum(centred: &[f64], lags: usize) -> f64 {
    let weighted = |lag: usize| {
        let weight = 1.0 - lag as f64 / (lags + 1) as f64;
        2.0 * weight * autocovariance(centred, lag)
    };
    autocovariance(centred, 0) + (1..=lags).map(weighted).sum::<f64>()
}
