//! The verdict on one cell: improvement, regression, same, or unknown.
//!
//! ```text
//!      1-delta    1    1+delta
//! |--|    :       |       :            regression   the interval lies entirely below the margin
//!         :    |--|--|    :            same         entirely inside: equivalence is shown, not assumed
//!         :       |       :   |---|    improvement
//!      |--:----|  |       :            unknown      more pairs are needed, or the estimators disagree
//! ```
//! "Same" is a claim that needs data like the other two; the absence of a difference is "unknown".
//!
//! Next: `table.rs` applies this to a report and corrects for the number of cells.

use crate::error::{Result, check_probability};
use crate::paired::PairedRatio;
use serde::{Deserialize, Serialize};

/// Fewest pairs on which a cell is judged.
pub const MIN_PAIRS: usize = 5;

/// Smallest relative change that matters, where the history of a test does not ask for more.
pub const DEFAULT_MARGIN: f64 = 0.02;

/// What is known of a target relative to the base.
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

/// When a difference is claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The whole interval lies beyond the margin: "at least 2 % slower" holds at the level of the interval.
    #[default]
    Strict,
    /// The interval excludes 1 and the estimate reaches the margin: "slower, and by about 2 %". Finds changes near the
    /// margin with fewer pairs.
    Estimate,
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

/// The margin of a test: `least` or what the test strays by in 19 of 20 comparisons of equals, whichever is larger.
///
/// `aa_p95` is [`crate::summary::NoiseFloor::p95`] of the test's history, a log ratio.
pub fn margin(least: f64, aa_p95: Option<f64>) -> f64 {
    aa_p95.map_or(least, |log| least.max(-(-log).exp_m1()))
}

/// Judges one ratio by its interval and second opinion, as if it were the only cell.
///
/// # Errors
/// `margin` outside (0, 1).
pub fn judge(ratio: &PairedRatio, better: Better, margin: f64, rule: Rule) -> Result<Judgement> {
    check_probability("margin", margin)?;
    if !ratio.has_noise_model() && ratio.pairs < MIN_PAIRS {
        return Ok(Judgement::unknown(Reason::TooFewPairs));
    }
    let (floor, ceiling) = (1.0 - margin, 1.0 + margin);
    let interval = &ratio.interval;
    let (below, above) = match rule {
        Rule::Strict => (interval.high < floor, interval.low > ceiling),
        Rule::Estimate => {
            (interval.high < 1.0 && ratio.ratio <= floor, interval.low > 1.0 && ratio.ratio >= ceiling)
        }
    };
    let inside = interval.low > floor && interval.high < ceiling;
    let (verdict, agreed) = if below {
        (
            if better == Better::Higher { Verdict::Regression } else { Verdict::Improvement },
            ratio.confirms(-1.0),
        )
    } else if above {
        (
            if better == Better::Higher { Verdict::Improvement } else { Verdict::Regression },
            ratio.confirms(1.0),
        )
    } else if inside {
        (Verdict::Same, floor < ratio.hodges_lehmann && ratio.hodges_lehmann < ceiling)
    } else {
        return Ok(Judgement::unknown(Reason::IntervalTooWide));
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
