//! Paired ratios: the rate of a target relative to the base of the same block.
//!
//! ```text
//! block 1:  base 100   target  97   ln(97/100)   \
//! block 2:  base 104   target 102   ln(102/104)   > mean, interval, second opinion  ->  ratio = exp(mean)
//! block 3:  base  99   target  96   ln(96/99)    /
//! ```
//! The logarithm makes faster and slower symmetric and the mean a geometric mean of ratios. Pairing removes whatever
//! the block shares: drift, host state, the day. The pair is the unit; nothing inside a run is resampled.
//!
//! Next: `verdict.rs`.

use crate::distributions::t_two_sided;
use crate::error::{Result, check, check_above_zero, check_pair, check_positive};
use crate::interval::{Interval, known_noise_interval, t_interval, t_test};
use crate::rank::{hodges_lehmann, hodges_lehmann_interval, signed_rank_test};
use crate::summary::{mean, median, variance};
use serde::{Deserialize, Serialize};

/// How intervals are built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Confidence level. Default 0.95.
    pub level: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { level: 0.95 }
    }
}

/// How an interval was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Student's t on log ratios.
    StudentT,
    /// One pair, with the noise of the test's history.
    KnownNoise,
}

/// The noise of a test on a host, from its history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownNoise {
    /// Standard deviation of a log ratio between equals.
    pub log_sd: f64,
    /// Number of log ratios it was estimated from, 2 or more.
    pub count: usize,
}

/// A ratio of target to base, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Number of pairs.
    pub pairs: usize,
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: Interval,
    /// How the interval was built.
    pub method: Method,
    /// Standard deviation of the log ratios: about the relative noise of one pair.
    pub log_sd: f64,
    /// Two-sided p-value of ratio 1 by the t test.
    pub p_value: f64,
    /// Median of the ratios.
    pub median: f64,
    /// Hodges-Lehmann estimate of the ratio: the second opinion.
    pub hodges_lehmann: f64,
    /// Its interval; `None` below 6 pairs (at 95 %).
    pub hodges_lehmann_interval: Option<Interval>,
    /// Exact p-value of ratio 1 by Wilcoxon's signed-rank test.
    pub signed_rank_p: f64,
}

/// ln(target / base) per block, in block order.
///
/// # Errors
/// Different lengths, no blocks, or a value that is not finite and above 0.
pub fn log_ratios(target: &[f64], base: &[f64]) -> Result<Vec<f64>> {
    check_pair("target and base", target, base)?;
    check_positive("target", target, 1)?;
    check_positive("base", base, 1)?;
    Ok(target.iter().zip(base).map(|(target, base)| target.ln() - base.ln()).collect())
}

/// The ratio that log ratios stand for: the one of verdicts, tables and charts. Not a number without pairs.
pub fn geometric(log_ratios: &[f64]) -> f64 {
    mean(log_ratios).exp()
}

/// Estimates the ratio from the log ratios of its pairs.
///
/// # Errors
/// Fewer than 2 pairs, more than [`crate::rank::MAX_EXACT`], a value that is not finite, or settings outside their
/// domain.
pub fn estimate(log_ratios: &[f64], settings: &Settings) -> Result<PairedRatio> {
    check("log_ratios", log_ratios, 2)?;
    let level = settings.level;
    Ok(PairedRatio {
        pairs: log_ratios.len(),
        ratio: geometric(log_ratios),
        interval: t_interval(log_ratios, level)?.exp(),
        method: Method::StudentT,
        log_sd: variance(log_ratios).sqrt(),
        p_value: t_test(log_ratios)?,
        median: median(log_ratios).exp(),
        hodges_lehmann: hodges_lehmann(log_ratios)?.exp(),
        hodges_lehmann_interval: hodges_lehmann_interval(log_ratios, level)?.map(|interval| interval.exp()),
        signed_rank_p: signed_rank_test(log_ratios)?,
    })
}

/// Estimates the ratio of a single pair, whose noise is known from history.
///
/// # Errors
/// A value that is not finite, a `log_sd` not above 0, a history below 2 values, or a `level` outside (0, 1).
pub fn estimate_single(log_ratio: f64, noise: &KnownNoise, level: f64) -> Result<PairedRatio> {
    check_above_zero("log_sd", noise.log_sd)?;
    let interval = known_noise_interval(log_ratio, noise.log_sd, noise.count, level)?.exp();
    let ratio = log_ratio.exp();
    Ok(PairedRatio {
        pairs: 1,
        ratio,
        interval,
        method: Method::KnownNoise,
        log_sd: noise.log_sd,
        p_value: t_two_sided(log_ratio / noise.log_sd, (noise.count - 1) as f64),
        median: ratio,
        hodges_lehmann: ratio,
        hodges_lehmann_interval: None,
        signed_rank_p: 1.0,
    })
}

impl PairedRatio {
    /// Whether the noise comes from history rather than from the pairs themselves.
    pub fn has_noise_model(&self) -> bool {
        self.method == Method::KnownNoise
    }
}

/// The ratio of totals, and what the old tables print where it does not exist: 0/0 is 1.
///
/// `None` for x/0, which the old tables print as `inf`.
///
pub fn relative(target: f64, base: f64) -> Option<f64> {
    match (target, base) {
        (0.0, 0.0) => Some(1.0),
        (_, 0.0) => None,
        _ => Some(target / base),
    }
}
