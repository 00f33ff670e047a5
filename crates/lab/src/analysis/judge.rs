//! Whether two targets differ, and whether a step was steady: the places where the lab asks statistics.
//!
//! A cell is a step of a target against the same step of the base, paired by block. All cells of a metric are judged
//! together, so that a table of a hundred does not call five by chance.
//! Next: `outcrop_lab_stats::table` for the rule.

use crate::analysis::noise::TestNoise;
use outcrop_lab_stats::explain::{Counters, Explanation};
use outcrop_lab_stats::paired::{Settings, estimate, log_ratios};
use outcrop_lab_stats::power;
use outcrop_lab_stats::stalls::find_stalls;
use outcrop_lab_stats::steady::{self, BATCHES, Shape, Steadiness};
use outcrop_lab_stats::table::{Cell, JudgedCell, Policy, judge_table};
use outcrop_lab_stats::verdict::Reason;
use serde::Serialize;

pub use outcrop_lab_stats::verdict::Better;
/// What a cell says.
pub use outcrop_lab_stats::verdict::Verdict as Word;

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
    /// What it means.
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
    /// Every session was steady in the same way, or too short to tell.
    pub steady: bool,
    /// What the machine's history says of the step.
    pub noise: Option<TestNoise>,
}

/// Judges all cells of a report's metric together. `delta` is the smallest change worth a verdict, as a share. A cell
/// without a pair has no verdict.
pub fn judge(metric: &str, better: Better, delta: f64, questions: &[Question]) -> Vec<Option<Verdict>> {
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
                steady: question.steady,
                margin: question.noise.map_or(delta, |noise| noise.margin(delta)),
                noise: question.noise.map(|noise| noise.known),
                log_ratios: log_ratios(&values, &base).expect("pairs are above 0 and of equal number"),
            }
        })
        .collect();
    let judged = judge_table(&asked, &Policy::default()).expect("cells have finite pairs, delta is a share");
    let mut answers = judged.cells.iter().zip(&asked).map(|(judged, asked)| verdict(judged, asked));
    questions.iter().map(|question| (!question.pairs.is_empty()).then(|| answers.next()).flatten()).collect()
}

fn verdict(judged: &JudgedCell, asked: &Cell) -> Verdict {
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
            Reason::MethodsDisagree => "outliers, or two states",
            Reason::NotSteady => "the step was not steady",
            Reason::ManyComparisons => "by chance among so many cells",
        },
    }
}

/// Which costs per operation moved with a metric. `pairs` are as in [`Question`]; the counters hold a value for each
/// pair. `None` with fewer than two pairs.
pub fn explain(
    metric: &str,
    better: Better,
    pairs: &[(f64, f64)],
    base: &Counters,
    target: &Counters,
) -> Option<Explanation> {
    let (values, base_values): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let settings = Settings::default();
    let change = estimate(&log_ratios(&values, &base_values).ok()?, &settings).ok()?;
    outcrop_lab_stats::explain(metric, &change, better, base, target, &settings).ok()
}

/// Smallest change found with probability 0.8 by `pairs` pairs whose log ratios have the standard deviation `sd`, as
/// a share; `None` below two pairs.
pub fn detectable(sd: f64, pairs: usize) -> Option<f64> {
    power::smallest_detectable(sd, pairs, 0.05, 0.8).ok()
}

/// How a step went, second by second. `None` if it was too short to tell, or did nothing.
pub fn steadiness(per_second: &[u64], delta: f64) -> Option<Steadiness> {
    let rates: Vec<f64> = per_second.iter().map(|ops| *ops as f64).collect();
    if rates.len() < BATCHES {
        return None;
    }
    steady::classify(&rates, 1.0, delta).ok()
}

/// Seconds in which less than a tenth of the usual was done. `None` without a whole second.
pub fn stalled_seconds(per_second: &[u64]) -> Option<f64> {
    let rates: Vec<f64> = per_second.iter().map(|ops| *ops as f64).collect();
    find_stalls(&rates, 1.0).ok().map(|stalls| stalls.stalled_seconds)
}

/// Whether sessions of these shapes may be compared. Those too short to tell are not among them.
pub fn allows_verdict(shapes: &[Shape]) -> bool {
    steady::across_sessions(shapes).is_none_or(Shape::allows_verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_stats::paired::KnownNoise;

    fn question(ratios: &[f64]) -> Question {
        let pairs = ratios.iter().map(|ratio| (100.0 * ratio, 100.0)).collect();
        Question { name: ("s".into(), "t".into()), pairs, control: false, steady: true, noise: None }
    }

    #[test]
    fn cells_keep_their_places_and_get_the_right_words() {
        let answers = judge(
            "ops_sec",
            Better::Higher,
            0.02,
            &[
                question(&[]),
                question(&[1.2, 1.21, 1.19, 1.2, 1.21, 1.2]),
                question(&[0.8]),
                question(&[1.0, 1.001, 0.999, 1.0, 1.001, 0.999]),
                Question { steady: false, ..question(&[0.8, 0.81, 0.79, 0.8, 0.81, 0.8]) },
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
    fn history_judges_one_pair_and_widens_a_margin_that_equals_have_crossed() {
        let noise = |stray| {
            let known = KnownNoise { log_sd: 0.004, count: 60 };
            Some(TestNoise { known, experiments: 6, stray })
        };
        let word = |ratios: &[f64], noise| {
            judge("ops_sec", Better::Higher, 0.02, &[Question { noise, ..question(ratios) }])[0].unwrap().word
        };
        assert_eq!(word(&[0.9], None), Word::Unknown);
        assert_eq!(word(&[0.9], noise(None)), Word::Regression);
        assert_eq!(word(&[0.999], noise(None)), Word::Same);
        let slower = [0.95, 0.951, 0.949, 0.95, 0.951, 0.95];
        assert_eq!(word(&slower, noise(Some(0.01))), Word::Regression, "never below what was asked for");
        assert_eq!(word(&slower, noise(Some(0.08))), Word::Same);
    }

    #[test]
    fn more_is_worse_where_less_is_better() {
        let dearer = question(&[1.2, 1.21, 1.19, 1.2, 1.21, 1.2]);
        assert_eq!(judge("p99", Better::Lower, 0.02, &[dearer])[0].unwrap().word, Word::Regression);
    }

    #[test]
    fn equal_values_in_every_block_are_the_same() {
        assert_eq!(judge("p99", Better::Lower, 0.02, &[question(&[1.0; 6])])[0].unwrap().word, Word::Same);
    }

    #[test]
    fn more_pairs_see_smaller_changes() {
        assert!(detectable(0.015, 10).unwrap() < detectable(0.015, 5).unwrap());
        assert_eq!(detectable(0.015, 1), None);
    }

    #[test]
    fn short_steps_are_not_judged_for_steadiness() {
        assert!(steadiness(&[5; 5], 0.02).is_none());
        assert_eq!(steadiness(&[500; 60], 0.02).unwrap().shape, Shape::Flat);
        assert_eq!((stalled_seconds(&[100, 3, 0, 99]), stalled_seconds(&[])), (Some(2.0), None));
        assert!(allows_verdict(&[]));
        assert!(!allows_verdict(&[Shape::NoSteadyState]));
    }
}
