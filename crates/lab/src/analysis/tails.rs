//! Tails of service times as a verdict of their own: the mean may stay while one operation in a hundred gets slower.
//!
//! They scatter more than means, so more is asked of them; all of a report are corrected together. An unknown tail is no
//! finding: only a call counts, for the exit code as for readers.

use crate::analysis::judge::{self, Better, Question, Verdict};
use crate::analysis::results::Results;
use crate::analysis::stalls;
use serde::Serialize;

/// The percentiles that are judged, and the smallest change worth a verdict, as a share.
const TAILS: [(&str, f64); 2] = [("p99", 0.1), ("p99.9", 0.25)];

/// One percentile of one step, for every target.
#[derive(Clone, Debug, Serialize)]
pub struct TailRow {
    /// Step.
    pub step: String,
    /// Metric.
    pub measure: &'static str,
    /// Each target's verdict; nothing for the base, and for what cannot be compared.
    pub cells: Vec<Option<Verdict>>,
}

impl TailRow {
    /// Whether a difference was called.
    pub fn is_worth_a_line(&self) -> bool {
        self.cells.iter().flatten().any(|verdict| verdict.word.is_call())
    }
}

/// The tails of every step whose operations are many, beside those of `base`.
pub fn table(results: &Results, base: usize) -> Vec<TailRow> {
    let plan = &results.experiment.plan;
    let (mut rows, mut questions, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for step in results.steps.iter().filter(|step| stalls::has_many_operations(results, step)) {
        let doubts = results.doubts(step, base);
        for (measure, delta) in TAILS {
            for target in (0..plan.targets.len()).filter(|target| *target != base) {
                if !results.is_comparable(step, target, base) {
                    continue;
                }
                places.push((rows.len(), target));
                questions.push(Question {
                    name: (format!("{step} {measure}"), plan.targets[target].name.clone()),
                    pairs: results.pairs(step, target, base, measure),
                    control: results.are_twins(target, base),
                    doubt: doubts[target],
                    delta,
                    noise: None,
                });
            }
            rows.push(TailRow { step: step.clone(), measure, cells: vec![None; plan.targets.len()] });
        }
    }
    for ((row, target), verdict) in places.into_iter().zip(judge::judge("tails", Better::Lower, &questions)) {
        rows[row].cells[target] = verdict;
    }
    rows
}
