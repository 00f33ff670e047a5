//! The verdict on one cell: improvement, regression, same, or unknown.
//!
//! ```text
//!      1-delta    1    1+delta
//! |--|    :       |       :            regression   the interval lies entirely below the margin
//!         :    |--|--|    :            same         entirely inside: equivalence is shown, not assumed
//!         :       |       :   |---|    improvement
//!      |--:----|  |       :            unknown      more pairs are needed, or the estimators disagree
//! ```
//! "Same" is a claim that needs data like the other two; the absence of a difference is "unknown". Where equals stray by
//! more than the delta, a call must exceed that; a difference between the two is unknown, never the same.
//!
//! Next: `table.rs` applies this to a report and corrects for the number of cells.

use crate::error::{Result, check_probability, check_range};
use crate::paired::PairedRatio;
use serde::{Deserialize, Serialize};

/// Fewest pairs on which a cell is judged.
pub const MIN_PAIRS: usize = 5;

/// Smallest relative change that matters, where the history of a test does not ask for more.
pub const DEFAULT_MARGIN: f64 = 0.02;

/// The verdict on a target relative to the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than the margin.
    Improvement,
    /// Worse by more than the margin.
    Regression,
    /// Within the margin.
    Same,
    /// The data do not tell.
    Unknown,
}

impl Verdict {
    /// The word of tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Improvement => "improvement",
            Verdict::Regression => "regression",
            Verdict::Same => "same",
            Verdict::Unknown => "unknown",
        }
    }

    /// The sign printed beside a colour, so that the colour is not the only carrier.
    pub fn sign(self) -> char {
        match self {
            Verdict::Improvement => '+',
            Verdict::Regression => '-',
            Verdict::Same => '=',
            Verdict::Unknown => '?',
        }
    }

    /// Whether a difference is claimed.
    pub fn is_call(self) -> bool {
        matches!(self, Verdict::Improvement | Verdict::Regression)
    }
}

/// Which way a metric should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Throughput.
    Higher,
    /// Latency, cost per operation.
    Lower,
}

/// Why a verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Interval and second opinion agree.
    Shown,
    /// Fewer than [`MIN_PAIRS`] pairs and no noise model from history.
    TooFewPairs,
    /// The interval crosses an end of the margin.
    IntervalTooWide,
    /// It lies beyond the difference that was asked for, and within what equals have strayed by.
    WithinStray,
    /// Mean and Hodges-Lehmann estimate, or their tests, contradict each other: outliers or two states.
    MethodsDisagree,
    /// A step reached no steady state, or sessions differ in theirs.
    NotSteady,
    /// It would be called alone, but not among so many cells.
    ManyComparisons,
}

/// A verdict with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

impl Judgement {
    pub(crate) fn unknown(reason: Reason) -> Judgement {
        Judgement { verdict: Verdict::Unknown, reason }
    }
}

/// The limits of small and large for a cell, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The difference that was asked for: "same" is shown within it, and only there.
    pub asked: f64,
    /// The limit that a difference must exceed to be called; at least [`Margin::asked`].
    pub call: f64,
}

impl From<f64> for Margin {
    fn from(asked: f64) -> Margin {
        Margin { asked, call: asked }
    }
}

impl Margin {
    /// The margin of a test of which history knows what equals stray by in 19 of 20 experiments.
    ///
    /// `aa_p95` is [`crate::summary::NoiseFloor::p95`] of the test's history, a log ratio. It widens what must be
    /// exceeded for a call and never what counts as the same: noise is no evidence of equality.
    pub fn with_history(asked: f64, aa_p95: Option<f64>) -> Margin {
        Margin { asked, call: aa_p95.map_or(asked, |log| asked.max(-(-log).exp_m1())) }
    }

    /// # Errors
    /// A share outside (0, 1), or a call within what was asked for.
    pub(crate) fn check(&self) -> Result<()> {
        check_probability("margin", self.asked)?;
        check_probability("margin of a call", self.call)?;
        check_range("margin of a call", self.call, self.call >= self.asked, "at least what was asked for")
    }
}

/// Judges one ratio by its interval and second opinion, as if it were the only cell.
///
/// # Errors
/// A margin outside (0, 1), or one for calls that is smaller than the difference asked for.
pub fn judge(ratio: &PairedRatio, better: Better, margin: impl Into<Margin>) -> Result<Judgement> {
    let margin = margin.into();
    margin.check()?;
    if !ratio.has_noise_model() && ratio.pairs < MIN_PAIRS {
        return Ok(Judgement::unknown(Reason::TooFewPairs));
    }
    let interval = &ratio.interval;
    let is_beyond = |share: f64| (interval.high < 1.0 - share, interval.low > 1.0 + share);
    let (floor, ceiling) = (1.0 - margin.asked, 1.0 + margin.asked);
    let inside = interval.low > floor && interval.high < ceiling;
    let (verdict, agreed) = match is_beyond(margin.call) {
        (true, _) => (
            if better == Better::Higher { Verdict::Regression } else { Verdict::Improvement },
            ratio.confirms(-1.0),
        ),
        (_, true) => (
            if better == Better::Higher { Verdict::Improvement } else { Verdict::Regression },
            ratio.confirms(1.0),
        ),
        _ if inside => (Verdict::Same, floor < ratio.hodges_lehmann && ratio.hodges_lehmann < ceiling),
        _ if is_beyond(margin.asked) != (false, false) => return Ok(Judgement::unknown(Reason::WithinStray)),
        _ => return Ok(Judgement::unknown(Reason::IntervalTooWide)),
    };
    Ok(if agreed {
        Judgement { verdict, reason: Reason::Shown }
    } else {
        Judgement::unknown(Reason::MethodsDisagree)
    })
}

impl PairedRatio {
    /// Whether the second opinion also sees a difference in this direction. Where no exact test can reach the level,
    /// only the direction counts.
    fn confirms(&self, direction: f64) -> bool {
        let significant =
            self.hodges_lehmann_interval.is_none() || self.signed_rank_p <= 1.0 - self.interval.level;
        significant && (self.hodges_lehmann - 1.0) * direction > 0.0
    }
}
