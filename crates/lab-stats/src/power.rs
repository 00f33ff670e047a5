//! What an experiment can see: the power of its test and the smallest detectable effect.
//!
//! Effects are log ratios of a pair, noise is their standard deviation ([`crate::paired::PairedRatio::log_sd`]).

use crate::distributions::t_test_power;
use crate::error::{ErrorKind, Result, check_above_zero, check_probability, error};

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

fn power_at(effect: f64, pairs: usize, alpha: f64) -> f64 {
    t_test_power(effect * (pairs as f64).sqrt(), (pairs - 1) as f64, alpha)
}

fn check_pairs(pairs: usize) -> Result<()> {
    if pairs >= 2 {
        return Ok(());
    }
    Err(error(ErrorKind::TooFewValues, format!("{pairs} pairs, 2 are needed")))
}
