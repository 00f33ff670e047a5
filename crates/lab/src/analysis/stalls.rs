//! Stalls as a verdict of their own: means and most percentiles do not move when an engine stands still.
//!
//! ```text
//! per session   longest gap [ms], seconds with an operation of 100 ms, seconds below a tenth of the median second   (metrics)
//! per pair      target - base: differences, since most sessions have none at all
//! verdict       exact sign-flip test of the differences, corrected for the cells of the report, and a least difference
//! ```
//! Tails of service times stand beside them: `tails.rs`.
//! Next: `outcrop_lab_stats::stalls` for the test.

use crate::analysis::judge::Word;
use crate::analysis::results::Results;
use crate::report::text::{align_within, amount};
use outcrop_lab_load::StepKind;
use outcrop_lab_stats::stalls::{StallPairs, judge_stalls};
use serde::Serialize;
use std::fmt::Write;

/// The measures of stalls: metric, unit, and the least difference that matters.
const MEASURES: [(&str, &str, f64); 3] =
    [("longest_gap", "ms", 100.0), ("slow_seconds", "s", 1.0), ("stalled_seconds", "s", 1.0)];

/// Probability below which a difference is not attributed to chance.
const ALPHA: f64 = 0.05;

/// One measure of one step, for every target.
#[derive(Clone, Debug, Serialize)]
pub struct StallRow {
    /// Step.
    pub step: String,
    /// Metric.
    pub measure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Each target's mean over blocks, and what it means beside the base; nothing for a target without measurements.
    pub cells: Vec<Option<StallCell>>,
}

/// One target's stalls.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StallCell {
    /// Mean over blocks.
    pub mean: f64,
    /// Beside the base; absent for the base itself.
    pub word: Option<Word>,
    /// Probability of such a difference without a cause, alone.
    pub p_value: Option<f64>,
    /// Adjusted for the cells of the report; absent where nothing could be called.
    pub q_value: Option<f64>,
}

impl StallRow {
    /// Whether there is anything to tell: somebody stood still, or a difference was called.
    pub fn is_worth_a_line(&self) -> bool {
        let least =
            MEASURES.iter().find(|measure| measure.0 == self.measure).map_or(0.0, |measure| measure.2);
        self.cells.iter().flatten().any(|cell| cell.mean >= least || cell.word.is_some_and(Word::is_call))
    }
}

/// Whether a step's operations are many, so that the longest of them say something.
pub(crate) fn has_many_operations(results: &Results, name: &str) -> bool {
    let steps = &results.experiment.plan.steps;
    let step = steps.iter().find(|step| step.step.name == name);
    step.is_some_and(|step| step.step.kind != StepKind::ReadSeq && !step.step.kind.is_upkeep())
}

/// The stalls of every step whose operations are many, beside those of `base`.
pub fn table(results: &Results, base: usize) -> Vec<StallRow> {
    let plan = &results.experiment.plan;
    let many = |name: &&String| has_many_operations(results, name);
    let mut rows: Vec<StallRow> = results
        .steps
        .iter()
        .filter(many)
        .flat_map(|step| MEASURES.map(|(measure, unit, _)| row(results, step, measure, unit)))
        .collect();
    let (mut asked, mut places) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        for target in (0..row.cells.len()).filter(|target| *target != base) {
            let pairs = pairs(results, base, row, target);
            if !pairs.base.is_empty() {
                places.push((at, target));
                asked.push(pairs);
            }
        }
    }
    let judged = judge_stalls(&asked, ALPHA, plan.seed).unwrap_or_default();
    for ((row, target), judged) in places.into_iter().zip(judged) {
        if let Some(cell) = &mut rows[row].cells[target] {
            cell.word = Some(judged.verdict);
            (cell.p_value, cell.q_value) = (Some(judged.p_value), judged.q_value);
        }
    }
    rows
}

/// A measure of a step, with the mean of each target.
fn row(results: &Results, step: &str, measure: &'static str, unit: &'static str) -> StallRow {
    let cell = |target: usize| {
        let own = results.values(step, target, measure);
        let mean = own.values().sum::<f64>() / own.len() as f64;
        (!own.is_empty()).then_some(StallCell { mean, word: None, p_value: None, q_value: None })
    };
    let targets = 0..results.target_names().len();
    StallRow { step: step.to_string(), measure, unit, cells: targets.map(cell).collect() }
}

/// The blocks that both have.
fn pairs(results: &Results, base: usize, row: &StallRow, target: usize) -> StallPairs {
    let of_base = results.values(&row.step, base, row.measure);
    let own = results.values(&row.step, target, row.measure);
    let both = own.iter().filter_map(|(block, value)| Some((*of_base.get(block)?, *value)));
    let (base, target) = both.unzip();
    let least =
        MEASURES.iter().find(|measure| measure.0 == row.measure).map_or(f64::MAX, |measure| measure.2);
    StallPairs { base, target, least_difference: least }
}

/// The rows worth a line, for the terminal; targets in columns by number.
pub fn text(results: &Results, base: usize) -> String {
    let rows: Vec<StallRow> = table(results, base).into_iter().filter(StallRow::is_worth_a_line).collect();
    if rows.is_empty() {
        return "\nstalls: none; no gap or operation of 100 ms, no second below a tenth of usual\n"
            .to_string();
    }
    let mut lines = vec![vec!["step".to_string(), "stalls".to_string()]];
    lines[0].extend(results.headers());
    for row in &rows {
        let name = match row.measure {
            "longest_gap" => "gap",
            "slow_seconds" => "slow",
            _ => "stalled",
        };
        let mut line = vec![row.step.clone(), format!("{name} [{}]", row.unit)];
        line.extend(row.cells.iter().map(cell_text));
        lines.push(line);
    }
    let mut text = format!("\n{}", align_within(&lines, 2));
    let _ = writeln!(text, "gap: longest time without a completion; stalled: seconds below a tenth of usual");
    let _ = writeln!(text, "slow: seconds in which an operation took 100 ms or more");
    text
}

fn cell_text(cell: &Option<StallCell>) -> String {
    match cell {
        None => "NA".to_string(),
        Some(StallCell { mean, word: None, .. }) => format!("{}  ", amount(*mean)),
        Some(StallCell { mean, word: Some(word), .. }) => format!("{} {}", amount(*mean), word.sign()),
    }
}
