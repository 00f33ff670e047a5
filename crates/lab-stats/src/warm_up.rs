//! Where the warm-up of a series ends, by two independent rules.
//!
//! - [`mser`] cuts where the rest has the smallest standard error: what is lost by dropping values against what is
//!   gained by dropping unlike ones.
//! - [`compare_thirds`] asks whether the first third differs from the last by more than their dependence explains.

use crate::autocorrelation::{long_run_variance, usual_lags};
use crate::distributions::normal_cdf;
use crate::error::{Result, check, check_range};
use crate::summary::mean;
use serde::{Deserialize, Serialize};

/// Batches a cut leaves: fewer can agree by luck, and then have the smallest error of all.
const LEAST_LEFT: usize = 5;

/// Index of the first value after the warm-up, a multiple of `batch`; `None` if it lies beyond the middle, where the
/// rule is known to be unreliable: the series then never settled.
///
/// `batch` is 5 in the usual MSER-5. A remainder shorter than a batch is left out.
///
/// # Errors
/// Fewer than 4 batches, a `batch` of 0, or a value that is not finite.
///
/// Source: White, "An effective truncation heuristic for bias reduction in simulation output" (1997).
pub fn mser(values: &[f64], batch: usize) -> Result<Option<usize>> {
    check_range("batch", batch as f64, batch > 0, "at least 1")?;
    check("values", values, 4 * batch)?;
    let means: Vec<f64> = values.chunks_exact(batch).map(mean).collect();
    let squared_error = |cut: usize| {
        let rest = &means[cut..];
        let centre = mean(rest);
        rest.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let last_cut = means.len().saturating_sub(LEAST_LEFT);
    let best = (0..=last_cut).min_by(|a, b| squared_error(*a).total_cmp(&squared_error(*b))).unwrap_or(0);
    Ok((best <= means.len() / 2).then_some(best * batch))
}

/// The first third of a series against its last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thirds {
    /// Mean of the last third over that of the first, minus 1; `None` if the first is 0.
    pub change: Option<f64>,
    /// Two-sided p-value that both have one mean.
    pub p_value: f64,
}

/// Compares the first third with the last, each with its Newey-West variance.
///
/// # Errors
/// Fewer than 9 values, or one that is not finite.
pub fn compare_thirds(values: &[f64]) -> Result<Thirds> {
    check("values", values, 9)?;
    let third = values.len() / 3;
    let (first, last) = (&values[..third], &values[values.len() - third..]);
    let lags = usual_lags(third).min(third - 1);
    let squared_error = (long_run_variance(first, lags)? + long_run_variance(last, lags)?) / third as f64;
    let (first, last) = (mean(first), mean(last));
    let p_value =
        if first == last { 1.0 } else { 2.0 * normal_cdf(-(last - first).abs() / squared_error.sqrt()) };
    Ok(Thirds { change: (first != 0.0).then(|| last / first - 1.0), p_value })
}
