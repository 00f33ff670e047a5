//! Rank and permutation methods: exact at the sample sizes of benchmarks, and deaf to outliers.
//!
//! All null distributions are counted, not approximated: sums of (doubled mid-)ranks are whole numbers, so dynamic
//! programming counts the sign patterns or subsets behind each sum. Ties and zeros need no correction.
//!
//! Cost: cubic in the number of values for the signed-rank test, up to quartic for the rank sum; below a
//! millisecond for 50 pairs. More than [`MAX_EXACT`] values are refused, which no experiment reaches.

use crate::error::{ErrorKind, Result, check, check_pair, check_probability, error};
use crate::interval::Interval;
use crate::rng::Rng;
use crate::summary::{mean, median_of_sorted, sorted};

/// Most values the exact rank methods take.
pub const MAX_EXACT: usize = 200;

/// Most pairs of the sign-flip test of which all patterns are counted; above, patterns are drawn.
const MAX_ENUMERATED: usize = 16;

/// Patterns drawn above [`MAX_ENUMERATED`].
const DRAWN: u32 = 100_000;

/// The Hodges-Lehmann estimate: the median of all pairwise means, each value with itself included.
///
/// As efficient as the mean on normal data (95 %), and unmoved by a quarter of the sessions being in another state.
///
/// # Errors
/// No value, one that is not finite, or more than [`MAX_EXACT`].
pub fn hodges_lehmann(values: &[f64]) -> Result<f64> {
    check_exact("values", values, 1)?;
    Ok(median_of_sorted(&walsh_averages(values)))
}

/// The interval that belongs to [`hodges_lehmann`] and [`signed_rank_test`].
///
/// `None` if no interval of this level exists: 95 % takes 6 values. Conservative: it covers at least `level`.
///
/// # Errors
/// As [`hodges_lehmann`], or a `level` outside (0, 1).
pub fn hodges_lehmann_interval(values: &[f64], level: f64) -> Result<Option<Interval>> {
    check_exact("values", values, 1)?;
    check_probability("level", level)?;
    let ranks: Vec<usize> = (1..=values.len()).collect();
    let counts = sign_pattern_counts(&ranks);
    let allowed = (1.0 - level) / 2.0 * 2f64.powi(values.len() as i32);
    let mut below = 0.0;
    // How many of the smallest and largest averages lie outside.
    let outside = counts
        .iter()
        .take_while(|count| {
            below += **count;
            below <= allowed
        })
        .count();
    let averages = walsh_averages(values);
    Ok((outside > 0).then(|| Interval {
        low: averages[outside - 1],
        high: averages[averages.len() - outside],
        level,
    }))
}

/// Two-sided exact p-value of Wilcoxon's signed-rank test that the values are symmetric around 0.
///
/// Zeros are dropped; if nothing is left the p-value is 1. It cannot fall below 2 / 2^n: 0.0625 for 5 values.
///
/// # Errors
/// No value, one that is not finite, or more than [`MAX_EXACT`].
pub fn signed_rank_test(values: &[f64]) -> Result<f64> {
    check_exact("values", values, 1)?;
    let moved: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    if moved.is_empty() {
        return Ok(1.0);
    }
    let ranks = doubled_ranks(&moved.iter().map(|value| value.abs()).collect::<Vec<_>>());
    let positive: usize =
        ranks.iter().zip(&moved).filter(|(_, value)| **value > 0.0).map(|(rank, _)| rank).sum();
    Ok(two_sided(&sign_pattern_counts(&ranks), positive))
}

/// Two-sided p-value that the mean of paired differences is 0, by flipping their signs.
///
/// The test of stall measures, whose values are mostly 0 with a few large ones: no distribution is assumed. All
/// patterns are counted up to 16 pairs that differ, above that 100 000 are drawn from `seed`.
///
/// # Errors
/// No value or one that is not finite.
pub fn sign_flip_test(differences: &[f64], seed: u64) -> Result<f64> {
    check("differences", differences, 1)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    let total: f64 = moved.iter().sum();
    // Sums of the same numbers in another order differ in the last bits.
    let tolerance = 1e-12 * moved.iter().map(|value| value.abs()).sum::<f64>();
    let as_far = |sum: f64| sum.abs() >= total.abs() - tolerance;
    let flipped = |pattern: u64| -> f64 {
        moved
            .iter()
            .enumerate()
            .map(|(bit, value)| if pattern >> bit & 1 == 1 { -value } else { *value })
            .sum()
    };
    if moved.len() <= MAX_ENUMERATED {
        let patterns = 1u64 << moved.len();
        let count = (0..patterns).filter(|pattern| as_far(flipped(*pattern))).count();
        return Ok(count as f64 / patterns as f64);
    }
    let mut rng = Rng::new(seed);
    let count = (0..DRAWN)
        .filter(|_| as_far(moved.iter().map(|value| if rng.below(2) == 1 { -value } else { *value }).sum()))
        .count();
    // The observed pattern is one of those possible, which keeps the level honest.
    Ok((count as f64 + 1.0) / (f64::from(DRAWN) + 1.0))
}

/// Two-sided exact p-value of the rank-sum (Mann-Whitney) test that two unpaired samples are alike.
///
/// For archives, where versions were not measured in pairs.
///
/// # Errors
/// A sample without values, a value that is not finite, or more than [`MAX_EXACT`] together.
pub fn rank_sum_test(a: &[f64], b: &[f64]) -> Result<f64> {
    check("a", a, 1)?;
    check("b", b, 1)?;
    let all = [a, b].concat();
    check_exact("a and b", &all, 2)?;
    let ranks = doubled_ranks(&all);
    let observed = ranks[..a.len()].iter().sum();
    Ok(two_sided(&subset_counts(&ranks, a.len()), observed))
}

/// Paired differences `a - b`.
///
/// # Errors
/// Different lengths, no values, or one that is not finite.
pub fn differences(a: &[f64], b: &[f64]) -> Result<Vec<f64>> {
    check_pair("differences", a, b)?;
    check("a", a, 1)?;
    check("b", b, 1)?;
    Ok(a.iter().zip(b).map(|(a, b)| a - b).collect())
}

/// Cliff's delta: how often a value of `a` exceeds one of `b`, minus how often it falls below. From -1 to 1.
///
/// # Errors
/// A sample without values or a value that is not finite.
pub fn dominance(a: &[f64], b: &[f64]) -> Result<f64> {
    check("a", a, 1)?;
    check("b", b, 1)?;
    let signs: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| sign(a - b))).collect();
    Ok(mean(&signs))
}

fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

fn check_exact(name: &str, values: &[f64], least: usize) -> Result<()> {
    check(name, values, least)?;
    if values.len() > MAX_EXACT {
        let context = format!("{name} has {} values, exact methods take {MAX_EXACT}", values.len());
        return Err(error(ErrorKind::OutOfDomain, context));
    }
    Ok(())
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, a) in values.iter().enumerate() {
        averages.extend(values[index..].iter().map(|b| (a + b) / 2.0));
    }
    sorted(&averages)
}

/// Twice the mid-ranks: whole numbers also where values tie.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let start = order.partition_point(|index| values[*index] < values[tied[0]]);
        for index in tied {
            ranks[*index] = 2 * start + tied.len() + 1;
        }
    }
    ranks
}

/// For each sum, how many of the 2^n choices of `ranks` have it.
fn sign_pattern_counts(ranks: &[usize]) -> Vec<f64> {
    let mut counts = vec![0.0; ranks.iter().sum::<usize>() + 1];
    counts[0] = 1.0;
    for rank in ranks {
        for sum in (*rank..counts.len()).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

/// For each sum, how many choices of exactly `size` of `ranks` have it.
fn subset_counts(ranks: &[usize], size: usize) -> Vec<f64> {
    let sums = ranks.iter().sum::<usize>() + 1;
    let mut counts = vec![vec![0.0; sums]; size + 1];
    counts[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=size).rev() {
            let (fewer, these) = counts.split_at_mut(chosen);
            for sum in *rank..sums {
                these[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    counts.pop().expect("size + 1 rows")
}

fn two_sided(counts: &[f64], observed: usize) -> f64 {
    let all: f64 = counts.iter().sum();
    let below: f64 = counts[..=observed].iter().sum();
    let above: f64 = counts[observed..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}
