//! Stalls, which averages and most percentiles do not show.
//!
//! In a closed loop a stall of 60 seconds is one latency sample per thread; versions with stalls of four minutes and
//! versions without differ by 3 % in mean throughput. Stalls are therefore measured from the rate per second.

use crate::error::{
    Result, check_above_zero, check_not_negative, check_pair, check_positive, check_probability,
};
use crate::multiple::benjamini_hochberg;
use crate::rank::{differences, dominance, rank_sum_test, sign_flip_test};
use crate::spread::{SpreadChange, compare_spread};
use crate::summary::{mean, median};
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Share of the median rate below which a second counts as stalled.
pub const STALLED_BELOW: f64 = 0.1;

/// The stalls of one step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// Rate below which an interval counts as stalled.
    pub threshold: f64,
    /// Seconds below the threshold.
    pub stalled_seconds: f64,
    /// Stalled seconds over all seconds.
    pub stalled_share: f64,
    /// Number of separate stalls.
    pub stalls: usize,
    /// Seconds of the longest stall.
    pub longest_seconds: f64,
    /// When the longest began, in seconds from the start of the step; `None` without stalls.
    pub longest_at_seconds: Option<f64>,
}

/// Finds the stalls in `rates`, one rate per `interval_seconds`.
///
/// If at least half of the intervals did nothing, the mean takes the place of the median.
///
/// # Errors
/// No rates, one that is not finite or below 0, or an interval not above 0.
pub fn find_stalls(rates: &[f64], interval_seconds: f64) -> Result<Stalls> {
    check_not_negative("rates", rates, 1)?;
    check_above_zero("interval_seconds", interval_seconds)?;
    let usual = if median(rates) > 0.0 { median(rates) } else { mean(rates) };
    let threshold = STALLED_BELOW * usual;
    let stalled = |rate: &f64| *rate < threshold || usual == 0.0;
    let (mut index, mut longest, mut stalls, mut total) = (0, (0, None), 0, 0);
    for stretch in rates.chunk_by(|a, b| stalled(a) == stalled(b)) {
        if stalled(&stretch[0]) {
            stalls += 1;
            total += stretch.len();
            if stretch.len() > longest.0 {
                longest = (stretch.len(), Some(index));
            }
        }
        index += stretch.len();
    }
    Ok(Stalls {
        threshold,
        stalled_seconds: total as f64 * interval_seconds,
        stalled_share: total as f64 / rates.len() as f64,
        stalls,
        longest_seconds: longest.0 as f64 * interval_seconds,
        longest_at_seconds: longest.1.map(|start| start as f64 * interval_seconds),
    })
}

/// A stall measure of a target against the base, paired by block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallComparison {
    /// Mean of the base, in the unit of the measure.
    pub base: f64,
    /// Mean of the target.
    pub target: f64,
    /// Exact two-sided p-value of no difference. It cannot fall below 2 / 2^pairs.
    pub p_value: f64,
    /// Adjusted for the cells of the report that could be called at all; `None` for those that could not.
    pub q_value: Option<f64>,
    /// Less stalling is an improvement.
    pub verdict: Verdict,
}

/// Compares a stall measure (longest gap, stalled seconds, longest response time), one value per session and block.
///
/// A difference is called if its p-value is at most `alpha` and it is at least `least_difference`. "Same" means that
/// no pair differs by as much as that, over at least 5 pairs; anything else is unknown.
///
/// # Errors
/// Different lengths, no pairs, a value that is not finite or below 0, `least_difference` not above 0, or `alpha`
/// outside (0, 1).
pub fn compare_stalls(
    base: &[f64],
    target: &[f64],
    least_difference: f64,
    alpha: f64,
    seed: u64,
) -> Result<StallComparison> {
    check_pair("base and target", base, target)?;
    check_not_negative("base", base, 1)?;
    check_not_negative("target", target, 1)?;
    check_above_zero("least_difference", least_difference)?;
    check_probability("alpha", alpha)?;
    let change = differences(target, base)?;
    let p_value = sign_flip_test(&change, seed)?;
    let matters = |difference: f64| difference.abs() >= least_difference;
    let verdict = if p_value <= alpha && matters(mean(&change)) {
        if mean(&change) > 0.0 { Verdict::Regression } else { Verdict::Improvement }
    } else if change.len() >= crate::verdict::MIN_PAIRS && !change.iter().any(|change| matters(*change)) {
        Verdict::Same
    } else {
        Verdict::Unknown
    };
    Ok(StallComparison { base: mean(base), target: mean(target), p_value, q_value: None, verdict })
}

/// One measure of one step and target of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct StallPairs {
    /// The base's value in each block.
    pub base: Vec<f64>,
    /// The target's.
    pub target: Vec<f64>,
    /// The least difference that matters.
    pub least_difference: f64,
}

/// Compares all `cells` of a report, corrected for their number by Benjamini and Hochberg at the rate `alpha`.
///
/// Only cells in which some pair differs by as much as matters can be called, so only they are counted. Which they are does
/// not depend on the signs of the differences, which is all that the test looks at, so leaving the others out is fair: else a
/// report of fifty steps in which nobody stands still would hide the one stall there is.
///
/// # Errors
/// As [`compare_stalls`].
pub fn judge_stalls(cells: &[StallPairs], alpha: f64, seed: u64) -> Result<Vec<StallComparison>> {
    let alone =
        |cell: &StallPairs| compare_stalls(&cell.base, &cell.target, cell.least_difference, alpha, seed);
    let mut judged = cells.iter().map(alone).collect::<Result<Vec<_>>>()?;
    let could = |cell: &StallPairs| {
        cell.base
            .iter()
            .zip(&cell.target)
            .any(|(base, target)| (target - base).abs() >= cell.least_difference)
    };
    let family: Vec<usize> = (0..cells.len()).filter(|index| could(&cells[*index])).collect();
    let p_values: Vec<f64> = family.iter().map(|index| judged[*index].p_value).collect();
    for (index, q_value) in family.into_iter().zip(benjamini_hochberg(&p_values)?) {
        let cell = &mut judged[index];
        cell.q_value = Some(q_value);
        if cell.verdict.is_call() && q_value > alpha {
            cell.verdict = Verdict::Unknown;
        }
    }
    Ok(judged)
}

/// A tail measure before and after a point of a history, unpaired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailChange {
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// Median after over median before.
    pub ratio: f64,
    /// Exact two-sided p-value of the rank-sum test.
    pub p_value: f64,
    /// -1: every value after lies below every value before; 1: above.
    pub dominance: f64,
    /// Less is an improvement.
    pub verdict: Verdict,
}

/// Compares a tail measure of the runs before and after a change, as found in an archive of single runs.
///
/// A difference is called if its p-value is at most `alpha` and the medians differ by at least `least_factor`, such as
/// 2. "Same" does not exist here: single runs of an archive cannot show it.
///
/// # Errors
/// A side without values, a value that is not finite and above 0, `least_factor` not above 1, or `alpha` outside
/// (0, 1).
pub fn compare_tails(before: &[f64], after: &[f64], least_factor: f64, alpha: f64) -> Result<TailChange> {
    check_positive("before", before, 1)?;
    check_positive("after", after, 1)?;
    check_above_zero("least_factor - 1", least_factor - 1.0)?;
    check_probability("alpha", alpha)?;
    let ratio = median(after) / median(before);
    let p_value = rank_sum_test(after, before)?;
    let matters = ratio.ln().abs() >= least_factor.ln();
    let verdict = match (p_value <= alpha && matters, ratio > 1.0) {
        (true, true) => Verdict::Regression,
        (true, false) => Verdict::Improvement,
        (false, _) => Verdict::Unknown,
    };
    let dominance = dominance(after, before)?;
    Ok(TailChange { before: median(before), after: median(after), ratio, p_value, dominance, verdict })
}

/// How the relative spread of a measure changed: [`compare_spread`] of the logarithms.
///
/// # Errors
/// A side with fewer than 2 values, or a value that is not finite and above 0.
pub fn compare_relative_spread(before: &[f64], after: &[f64]) -> Result<SpreadChange> {
    check_positive("before", before, 2)?;
    check_positive("after", after, 2)?;
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    compare_spread(&logs(before), &logs(after))
}
