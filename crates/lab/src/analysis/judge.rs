//! Whether two targets differ, and whether a step was steady: the places where the lab asks statistics.
//!
//! A cell is a step of a target against the same step of the base, paired by block. All cells of a metric are judged
//! together, so that a table of a hundred does not call five by chance.
//! Next: `outcrop_lab_stats::table` for the rule.

use crate::analysis::noise::TestNoise;
use outcrop_lab_stats::explain::{Counters, Explanation, Observed};
use outcrop_lab_stats::interval::t_test;
use outcrop_lab_stats::paired::{Settings, estimate, log_ratios};
use outcrop_lab_stats::power::{Design, Simulation};
use outcrop_lab_stats::rank;
use outcrop_lab_stats::stalls::find_stalls;
use outcrop_lab_stats::steady::{self, BATCHES, Shape, Steadiness};
use outcrop_lab_stats::table::{Cell, JudgedCell, Policy, judge_table};
use outcrop_lab_stats::verdict::{Margin, Reason};
use serde::Serialize;
use std::collections::BTreeMap;

pub use outcrop_lab_stats::verdict::Better;
/// The verdict of a cell.
pub use outcrop_lab_stats::verdict::Verdict as Word;

/// Doubt about a step that reached no steady state, or whose sessions differ in theirs.
pub const NOT_STEADY: &str = "the step was not steady";

/// A judged ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Target over base: the geometric mean over pairs.
    pub ratio: f64,
    /// Lower end of the 95 % interval; absent with one pair.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Pairs.
    pub pairs: usize,
    /// Probability of such a ratio without a difference, adjusted for the number of cells.
    pub q: Option<f64>,
    /// The verdict.
    pub word: Word,
    /// Why it is unknown; empty if it is not.
    pub why: &'static str,
}

impl Verdict {
    /// Half the interval's width, in per cent of the ratio.
    pub fn half_width_percent(&self) -> Option<f64> {
        Some(((self.high? / self.low?).sqrt() - 1.0) * 100.0)
    }
}

/// One cell to be judged.
#[derive(Clone, Debug)]
pub struct Question {
    /// Step and target, for telling cells apart.
    pub name: (String, String),
    /// The target's value and the base's, block by block; all above 0.
    pub pairs: Vec<(f64, f64)>,
    /// The target is the base under another name.
    pub control: bool,
    /// Why the two cannot be told apart whatever their numbers, such as that a step was not steady.
    pub doubt: Option<&'static str>,
    /// The smallest change worth a verdict, as a share.
    pub delta: f64,
    /// The noise of the step in the machine's history.
    pub noise: Option<TestNoise>,
}

/// Judges all cells of a report's metric together. A cell without a pair has no verdict.
pub fn judge(metric: &str, better: Better, questions: &[Question]) -> Vec<Option<Verdict>> {
    let asked: Vec<Cell> = questions
        .iter()
        .filter(|question| !question.pairs.is_empty())
        .map(|question| {
            let (values, base): (Vec<f64>, Vec<f64>) = question.pairs.iter().copied().unzip();
            Cell {
                test: question.name.0.clone(),
                target: question.name.1.clone(),
                metric: metric.to_string(),
                better,
                control: question.control,
                steady: question.doubt.is_none(),
                margin: question.noise.map_or(question.delta.into(), |noise| noise.margin(question.delta)),
                noise: question.noise.map(|noise| noise.known),
                log_ratios: log_ratios(&values, &base).expect("pairs are above 0 and of equal number"),
            }
        })
        .collect();
    let judged = judge_table(&asked, &Policy::default()).expect("cells have finite pairs, delta is a share");
    let doubts =
        questions.iter().filter(|question| !question.pairs.is_empty()).map(|question| question.doubt);
    let mut answers = judged
        .cells
        .iter()
        .zip(&asked)
        .zip(doubts)
        .map(|((judged, asked), doubt)| verdict(judged, asked, doubt));
    questions.iter().map(|question| (!question.pairs.is_empty()).then(|| answers.next()).flatten()).collect()
}

fn verdict(judged: &JudgedCell, asked: &Cell, doubt: Option<&'static str>) -> Verdict {
    let estimate = judged.estimate.as_ref();
    Verdict {
        ratio: estimate.map_or_else(|| asked.log_ratios[0].exp(), |estimate| estimate.ratio),
        low: estimate.map(|estimate| estimate.interval.low),
        high: estimate.map(|estimate| estimate.interval.high),
        pairs: asked.log_ratios.len(),
        q: judged.q_value,
        word: judged.judgement.verdict,
        why: match judged.judgement.reason {
            Reason::Shown => "",
            Reason::TooFewPairs => "too few pairs",
            Reason::IntervalTooWide => "the interval crosses the margin",
            Reason::WithinStray => "equals have strayed as far on this machine",
            Reason::MethodsDisagree => "outliers, or two states",
            Reason::NotSteady => doubt.unwrap_or(NOT_STEADY),
            Reason::ManyComparisons => "by chance among so many cells",
        },
    }
}

/// A difference to be explained; see [`outcrop_lab_stats::explain::Observed`].
pub struct Difference<'a> {
    /// Name of the metric.
    pub metric: &'a str,
    /// Which way it should go.
    pub better: Better,
    /// As in [`Question`].
    pub pairs: &'a [(f64, f64)],
    /// Nanoseconds of an operation in each pair, of the base and of the target.
    pub time_ns: (&'a [f64], &'a [f64]),
    /// A value of each counter for each pair.
    pub base: &'a Counters,
    /// The target's.
    pub target: &'a Counters,
    /// Prices measured here.
    pub prices: &'a BTreeMap<String, f64>,
    /// Nothing is written meanwhile.
    pub only_reads: bool,
}

/// The parts of a difference of a metric. `None` with fewer than two pairs.
pub fn explain(difference: &Difference<'_>) -> Option<Explanation> {
    let (values, base_values): (Vec<f64>, Vec<f64>) = difference.pairs.iter().copied().unzip();
    let settings = Settings::default();
    let change = estimate(&log_ratios(&values, &base_values).ok()?, &settings).ok()?;
    let observed = Observed {
        metric: difference.metric,
        change: &change,
        better: difference.better,
        time_ns: difference.time_ns,
        base: difference.base,
        target: difference.target,
        prices: difference.prices,
        only_reads: difference.only_reads,
    };
    outcrop_lab_stats::explain(&observed, &settings).ok()
}

/// The differences that a report can see whose `cells` of a metric have `pairs` pairs each; `None` below
/// two pairs.
pub fn sight(pairs: usize, cells: usize, margin: Margin) -> Option<Simulation> {
    let design =
        Design { pairs: pairs.min(rank::MAX_EXACT), cells: cells.max(1), margin, policy: Policy::default() };
    Simulation::new(design).ok()
}

/// How a step went, second by second. `None` if it was too short to tell, or did nothing.
pub fn steadiness(per_second: &[u64], delta: f64) -> Option<Steadiness> {
    let rates: Vec<f64> = per_second.iter().map(|ops| *ops as f64).collect();
    if rates.len() < BATCHES {
        return None;
    }
    steady::classify(&rates, 1.0, delta).ok()
}

/// Seconds in which less than a tenth of the usual was done. `None` without a whole second, and where none of them has an
/// operation: then nothing is usual.
pub fn stalled_seconds(per_second: &[u64]) -> Option<f64> {
    let rates: Vec<f64> = per_second.iter().map(|ops| *ops as f64).collect();
    let stalls = find_stalls(&rates, 1.0).ok()?;
    (stalls.threshold > 0.0).then_some(stalls.stalled_seconds)
}

/// Whether one of two had more work of other programs beside it, by the difference in processors of each block: not by chance,
/// and by as much as matters.
pub fn differ_in_company(more: &[f64]) -> bool {
    const PROCESSORS: f64 = 0.1;
    const ALPHA: f64 = 0.01;
    let mean = more.iter().sum::<f64>() / more.len() as f64;
    mean.abs() > PROCESSORS && t_test(more).is_ok_and(|p_value| p_value <= ALPHA)
}

/// Share of sessions that one of the two may warm up in more than the other.
const WARM_UPS: f64 = 0.2;

/// Why sessions of a target and of the base whose steps had these shapes cannot be compared, if they cannot. Those too short
/// to tell are not among them.
pub fn doubt_of_shapes(target: &[Shape], base: &[Shape]) -> Option<&'static str> {
    let both = [target, base].map(steady::across_sessions);
    if both.iter().flatten().any(|shape| !shape.allows_verdict()) {
        return Some(NOT_STEADY);
    }
    // The share of warm-up in a step is that of its length, which the posts' steps of hours do not have.
    let share = |shapes: &[Shape]| {
        let warm = shapes.iter().filter(|shape| **shape == Shape::WarmUp).count();
        warm as f64 / shapes.len().max(1) as f64
    };
    let differ = (share(target) - share(base)).abs() >= WARM_UPS;
    differ.then_some("one of the two warmed up while it was measured")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_stats::paired::KnownNoise;

    fn question(ratios: &[f64]) -> Question {
        let pairs = ratios.iter().map(|ratio| (100.0 * ratio, 100.0)).collect();
        Question {
            name: ("s".into(), "t".into()),
            pairs,
            control: false,
            doubt: None,
            delta: 0.02,
            noise: None,
        }
    }

    #[test]
    fn cells_keep_their_places_and_get_the_right_words() {
        let answers = judge(
            "ops_sec",
            Better::Higher,
            &[
                question(&[]),
                question(&[1.2, 1.21, 1.19, 1.2, 1.21, 1.2]),
                question(&[0.8]),
                question(&[1.0, 1.001, 0.999, 1.0, 1.001, 0.999]),
                Question { doubt: Some(NOT_STEADY), ..question(&[0.8, 0.81, 0.79, 0.8, 0.81, 0.8]) },
            ],
        );
        assert!(answers[0].is_none());
        let word = |index: usize| answers[index].unwrap().word;
        assert_eq!(
            [word(1), word(2), word(3), word(4)],
            [Word::Improvement, Word::Unknown, Word::Same, Word::Unknown]
        );
        let single = answers[2].unwrap();
        assert!((single.ratio - 0.8).abs() < 1e-9 && single.low.is_none() && single.why == "too few pairs");
        assert!(answers[1].unwrap().half_width_percent().unwrap() < 2.0);
    }

    #[test]
    fn history_judges_one_pair_and_asks_more_of_a_call_where_equals_have_strayed() {
        let noise = |stray| {
            let known = KnownNoise { log_sd: 0.004, count: 60 };
            Some(TestNoise { known, experiments: 6, whole: 6, stray })
        };
        let word = |ratios: &[f64], noise| {
            judge("ops_sec", Better::Higher, &[Question { noise, ..question(ratios) }])[0].unwrap().word
        };
        assert_eq!(word(&[0.9], None), Word::Unknown);
        assert_eq!(word(&[0.9], noise(None)), Word::Regression);
        assert_eq!(word(&[0.999], noise(None)), Word::Same);
        let slower = [0.95, 0.951, 0.949, 0.95, 0.951, 0.95];
        assert_eq!(word(&slower, noise(Some(0.01))), Word::Regression, "never below what was asked for");
        assert_eq!(
            word(&slower, noise(Some(0.08))),
            Word::Unknown,
            "5 % are not the same where 2 % were asked for"
        );
    }

    #[test]
    fn more_is_worse_where_less_is_better() {
        let dearer = question(&[1.2, 1.21, 1.19, 1.2, 1.21, 1.2]);
        assert_eq!(judge("p99", Better::Lower, &[dearer])[0].unwrap().word, Word::Regression);
    }

    #[test]
    fn equal_values_in_every_block_are_the_same() {
        assert_eq!(judge("p99", Better::Lower, &[question(&[1.0; 6])])[0].unwrap().word, Word::Same);
    }

    #[test]
    fn short_steps_are_not_judged_for_steadiness() {
        assert!(steadiness(&[5; 5], 0.02).is_none());
        assert_eq!(steadiness(&[500; 60], 0.02).unwrap().shape, Shape::Flat);
        assert_eq!((stalled_seconds(&[100, 3, 0, 99]), stalled_seconds(&[])), (Some(2.0), None));
        assert_eq!(stalled_seconds(&[0; 4]), None, "told when all was done");
        assert!(
            differ_in_company(&[0.5, 0.6, 0.4, 0.5, 0.6]) && differ_in_company(&[-0.5, -0.6, -0.4, -0.5])
        );
        assert!(!differ_in_company(&[0.5, -0.6, 0.9, -0.5, 0.6]), "a busy machine, for both alike");
        assert!(
            !differ_in_company(&[0.05, 0.06, 0.05, 0.06])
                && !differ_in_company(&[0.9])
                && !differ_in_company(&[])
        );
        assert_eq!(doubt_of_shapes(&[], &[]), None);
        assert_eq!(doubt_of_shapes(&[Shape::NoSteadyState], &[Shape::Flat]), Some(NOT_STEADY));
        assert_eq!(doubt_of_shapes(&[Shape::WarmUp], &[Shape::WarmUp]), None);
        assert!(doubt_of_shapes(&[Shape::WarmUp], &[Shape::Flat]).unwrap().contains("warmed up"));
        assert_eq!(
            doubt_of_shapes(&[Shape::SlowDown], &[Shape::Flat]),
            None,
            "to become slow is a difference"
        );
    }
}
