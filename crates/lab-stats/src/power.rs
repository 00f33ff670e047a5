//! What an experiment can see: smallest detectable effect, pairs needed, repetitions per level.
//!
//! Effects are log ratios of a pair, noise is their standard deviation ([`crate::paired::PairedRatio::log_sd`]).

use crate::distributions::t_test_power;
use crate::error::{ErrorKind, Result, check, check_above_zero, check_probability, error};
use crate::summary::mean;
use serde::{Deserialize, Serialize};

/// Most pairs [`pairs_needed`] looks at.
pub const MAX_PAIRS: usize = 10_000;

/// Probability that the paired t test at level `alpha` sees a true ratio.
///
/// # Errors
/// `ratio` or `log_sd` not above 0, fewer than 2 `pairs`, or `alpha` outside (0, 1).
pub fn power(ratio: f64, log_sd: f64, pairs: usize, alpha: f64) -> Result<f64> {
    check_above_zero("ratio", ratio)?;
    check_above_zero("log_sd", log_sd)?;
    check_probability("alpha", alpha)?;
    check_pairs(pairs)?;
    Ok(power_at(ratio.ln().abs() / log_sd, pairs, alpha))
}

/// The smallest relative change, as in 0.024 for 2.4 %, that is seen with probability `power`.
///
/// It is that of a slowdown: a ratio of 1 - result. The verdict asks in addition that the change exceeds its margin.
///
/// # Errors
/// `log_sd` not above 0, fewer than 2 `pairs`, or `alpha` or `power` outside (0, 1).
pub fn smallest_detectable(log_sd: f64, pairs: usize, alpha: f64, power: f64) -> Result<f64> {
    check_above_zero("log_sd", log_sd)?;
    check_probability("alpha", alpha)?;
    check_probability("power", power)?;
    check_pairs(pairs)?;
    if power <= alpha {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while power_at(high, pairs, alpha) < power {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if power_at(middle, pairs, alpha) < power { low = middle } else { high = middle }
    }
    Ok(-(-high * log_sd).exp_m1())
}

/// The fewest pairs that see a true `ratio` with probability `power`.
///
/// # Errors
/// `ratio` or `log_sd` not above 0, `ratio` 1, `alpha` or `power` outside (0, 1), or more than [`MAX_PAIRS`] needed.
pub fn pairs_needed(ratio: f64, log_sd: f64, alpha: f64, power: f64) -> Result<usize> {
    check_above_zero("ratio", ratio)?;
    check_above_zero("log_sd", log_sd)?;
    check_probability("alpha", alpha)?;
    check_probability("power", power)?;
    let effect = ratio.ln().abs() / log_sd;
    if power_at(effect, MAX_PAIRS, alpha) < power {
        let context = format!("a ratio of {ratio} under noise of {log_sd} takes more than {MAX_PAIRS} pairs");
        return Err(error(ErrorKind::OutOfDomain, context));
    }
    // Power grows with the number of pairs.
    let (mut too_few, mut enough) = (1, MAX_PAIRS);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if power_at(effect, middle, alpha) < power { too_few = middle } else { enough = middle }
    }
    Ok(enough)
}

/// Variances of two nested levels, such as sessions and the repetitions within them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// Between values of one group.
    pub within: f64,
    /// Between groups, on top of that; 0 if the groups differ by less than their values explain.
    pub between: f64,
}

/// Unbiased variances within and between groups, by the method of moments; groups may differ in size.
///
/// # Errors
/// Fewer than 2 groups, an empty one, none with 2 values, or a value that is not finite.
pub fn variance_components(groups: &[Vec<f64>]) -> Result<Components> {
    groups.iter().enumerate().try_for_each(|(index, group)| check(&format!("groups[{index}]"), group, 1))?;
    let all = groups.concat();
    let (count, values) = (groups.len() as f64, all.len() as f64);
    if groups.len() < 2 || all.len() == groups.len() {
        let context =
            format!("{} groups of {} values; 2 groups and a repetition are needed", groups.len(), all.len());
        return Err(error(ErrorKind::TooFewValues, context));
    }
    let sum = |of: &dyn Fn(&Vec<f64>) -> f64| groups.iter().map(of).sum::<f64>();
    let centre = mean(&all);
    let inner = sum(&|group| group.iter().map(|value| (value - mean(group)).powi(2)).sum());
    let outer = sum(&|group| group.len() as f64 * (mean(group) - centre).powi(2));
    let within = inner / (values - count);
    // The size of equal groups that would weigh as much.
    let size = (values - sum(&|group| (group.len() as f64).powi(2)) / values) / (count - 1.0);
    Ok(Components { within, between: ((outer / (count - 1.0) - within) / size).max(0.0) })
}

/// How often to repeat a level within one unit of the level above, for the least total cost.
///
/// `inner_variance` and `outer_variance` are those of [`variance_components`], `inner_cost` the cost of one
/// repetition and `outer_cost` what a new outer unit costs on top, in the same unit (seconds). Never below 1.
///
/// # Errors
/// A cost or `outer_variance` not above 0, or a negative `inner_variance`.
///
/// Source: Kalibera and Jones, "Rigorous benchmarking in reasonable time" (2013).
pub fn optimal_repetitions(
    inner_variance: f64,
    outer_variance: f64,
    inner_cost: f64,
    outer_cost: f64,
) -> Result<usize> {
    check_above_zero("outer_variance", outer_variance)?;
    check_above_zero("inner_cost", inner_cost)?;
    check_above_zero("outer_cost", outer_cost)?;
    if inner_variance < 0.0 || !inner_variance.is_finite() {
        return Err(error(ErrorKind::OutOfDomain, format!("inner_variance is {inner_variance}")));
    }
    Ok(((outer_cost / inner_cost * inner_variance / outer_variance).sqrt().ceil() as usize).max(1))
}

fn power_at(effect: f64, pairs: usize, alpha: f64) -> f64 {
    t_test_power(effect * (pairs as f64).sqrt(), (pairs - 1) as f64, alpha)
}

fn check_pairs(pairs: usize) -> Result<()> {
    if pairs >= 2 {
        return Ok(());
    }
    Err(error(ErrorKind::TooFewValues, format!("{pairs} pairs, 2 are needed")))
}
