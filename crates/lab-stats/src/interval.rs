//! Intervals of one sample: Student's t, and one value under noise that is known.
//!
//! The sample is always one value per session or per pair of sessions. Seconds within a run are not independent,
//! and an interval over them is wrong however narrow (with a run offset of 1 % it misses in 88 of 100 cases).
//!
//! Next: `paired.rs`, which picks between the two.

use crate::distributions::{t_critical, t_two_sided};
use crate::error::{ErrorKind, Result, check, check_probability, error};
use crate::summary::{mean, variance};
use serde::{Deserialize, Serialize};

/// A two-sided confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level it was built for, such as 0.95.
    pub level: f64,
}

impl Interval {
    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// High minus low.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// The interval of exp(x), from one of x.
    pub fn exp(&self) -> Interval {
        Interval { low: self.low.exp(), high: self.high.exp(), level: self.level }
    }

    /// The interval of ln(x), from one of x > 0.
    pub fn ln(&self) -> Interval {
        Interval { low: self.low.ln(), high: self.high.ln(), level: self.level }
    }

    /// Distance from 0 to the nearest point: what is certain of an effect. 0 if the interval contains 0.
    pub fn certain_distance(&self) -> f64 {
        if self.contains(0.0) { 0.0 } else { self.low.abs().min(self.high.abs()) }
    }
}

/// Student's t interval of the mean. Without spread it is the point itself.
///
/// # Errors
/// Fewer than 2 values, a value that is not finite, or a `level` outside (0, 1).
pub fn t_interval(values: &[f64], level: f64) -> Result<Interval> {
    check("values", values, 2)?;
    check_probability("level", level)?;
    let standard_error = (variance(values) / values.len() as f64).sqrt();
    let reach = t_critical(level, (values.len() - 1) as f64) * standard_error;
    let centre = mean(values);
    Ok(Interval { low: centre - reach, high: centre + reach, level })
}

/// Two-sided p-value of the hypothesis that the mean is 0, by the one-sample t test.
///
/// Without spread it is 1 for a mean of 0 and 0 otherwise: the limits of a vanishing spread.
///
/// # Errors
/// Fewer than 2 values or a value that is not finite.
pub fn t_test(values: &[f64]) -> Result<f64> {
    check("values", values, 2)?;
    let centre = mean(values);
    let standard_error = (variance(values) / values.len() as f64).sqrt();
    if centre == 0.0 {
        return Ok(1.0);
    }
    Ok(t_two_sided(centre / standard_error, (values.len() - 1) as f64))
}

/// Interval around one measurement when the standard deviation is known from history on the same host and test.
///
/// `history` is how many values that standard deviation came from; the interval widens for a short one.
///
/// # Errors
/// `history` below 2, a `value` or `sd` that is not finite, a negative `sd`, or a `level` outside (0, 1).
pub fn known_noise_interval(value: f64, sd: f64, history: usize, level: f64) -> Result<Interval> {
    check("value, sd", &[value, sd], 2)?;
    check_probability("level", level)?;
    if history < 2 || sd < 0.0 {
        let context = format!("a noise model needs 2 values and sd >= 0, got {history} and {sd}");
        return Err(error(ErrorKind::OutOfDomain, context));
    }
    let reach = t_critical(level, (history - 1) as f64) * sd;
    Ok(Interval { low: value - reach, high: value + reach, level })
}
