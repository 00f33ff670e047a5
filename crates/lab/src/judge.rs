//! Whether two targets differ: the one place where the lab asks statistics.
//!
//! A cell is a step of a target against the same step of the base, paired by block.

use serde::Serialize;

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Worse than the base by more than the tolerance.
    Regression,
    /// Better than the base by more than the tolerance.
    Improvement,
    /// Within the tolerance.
    Same,
    /// Too few or too scattered measurements.
    Unknown,
}

impl Word {
    /// As in reports.
    pub fn text(self) -> &'static str {
        match self {
            Word::Regression => "regression",
            Word::Improvement => "improvement",
            Word::Same => "same",
            Word::Unknown => "unknown",
        }
    }

    /// A sign that carries it without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Word::Regression => "-",
            Word::Improvement => "+",
            Word::Same => "=",
            Word::Unknown => "?",
        }
    }
}

/// A judged ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Target over base.
    pub ratio: f64,
    /// Lower end of the 95 % interval; absent with one pair.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Pairs.
    pub pairs: usize,
    /// Probability of such a ratio without a difference.
    pub p: Option<f64>,
    /// What it means.
    pub word: Word,
}

/// Smallest change found with probability 0.8 by `pairs` pairs whose log ratios have the standard deviation `sd`.
pub fn detectable(sd: f64, pairs: usize) -> f64 {
    // Quantiles of the normal distribution for 97.5 % and 80 %, widened for few pairs.
    let n = pairs.max(2) as f64;
    (1.96 + 0.84) * (1.0 + 1.5 / n) * sd / n.sqrt()
}
