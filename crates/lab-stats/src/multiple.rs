//! Many comparisons in one report: the false discovery rate, and the rate of false calls among A/A cells.
//!
//! A report of 32 tests and 10 versions has 320 cells; at 5 % each, 16 would be called by chance.

use crate::distributions::beta_quantile;
use crate::error::{ErrorKind, Result, check, check_probability, error};
use crate::interval::Interval;
use serde::{Deserialize, Serialize};

/// Benjamini-Hochberg adjusted p-values, in the order given: a cell may be called at rate q if its value is <= q.
///
/// # Errors
/// A value that is not finite or lies outside \[0, 1\].
pub fn benjamini_hochberg(p_values: &[f64]) -> Result<Vec<f64>> {
    check("p_values", p_values, 0)?;
    if let Some(p) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(error(ErrorKind::OutOfDomain, format!("{p} is no p-value")));
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*b].total_cmp(&p_values[*a]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest = 1.0f64;
    for (place, index) in order.iter().enumerate() {
        let rank = p_values.len() - place;
        smallest = smallest.min(p_values[*index] * p_values.len() as f64 / rank as f64);
        adjusted[*index] = smallest;
    }
    Ok(adjusted)
}

/// How often something happened in a number of trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// How often.
    pub events: usize,
    /// Out of how many.
    pub trials: usize,
    /// Events over trials.
    pub rate: f64,
    /// Exact (Clopper-Pearson) interval of the rate.
    pub interval: Interval,
}

/// The rate of `events` in `trials`; for A/A cells: the false-call rate of a report.
///
/// Cells of one session are not independent, so the interval is a lower bound of the doubt.
///
/// # Errors
/// No trials, more events than trials, or a `level` outside (0, 1).
pub fn rate(events: usize, trials: usize, level: f64) -> Result<Rate> {
    check_probability("level", level)?;
    if trials == 0 || events > trials {
        return Err(error(ErrorKind::OutOfDomain, format!("{events} events in {trials} trials")));
    }
    let tail = (1.0 - level) / 2.0;
    let (e, t) = (events as f64, trials as f64);
    let low = if events == 0 { 0.0 } else { beta_quantile(tail, e, t - e + 1.0) };
    let high = if events == trials { 1.0 } else { beta_quantile(1.0 - tail, e + 1.0, t - e) };
    Ok(Rate { events, trials, rate: e / t, interval: Interval { low, high, level } })
}
