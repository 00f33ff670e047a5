//! Stalls as a verdict of their own: means and most percentiles do not move when an engine stands still.
//!
//! ```text
//! per session   longest gap [ms], seconds with an operation of 100 ms, seconds below a tenth of the median second   (metrics)
//! per pair      target - base: differences, since most sessions have none at all
//! verdict       exact sign-flip test of the differences, and a least difference that matters
//! ```
//! Next: `outcrop_lab_stats::stalls` for the test.

use crate::analysis::judge::Word;
use crate::analysis::results::Results;
use crate::report::text::{align, amount};
use outcrop_lab_load::StepKind;
use outcrop_lab_stats::stalls::compare_stalls;
use serde::Serialize;
use std::fmt::Write;

/// What is measured of stalls: metric, unit, and the least difference that matters.
const MEASURES: [(&str, &str, f64); 3] =
    [("longest_gap", "ms", 100.0), ("slow_seconds", "s", 1.0), ("stalled_seconds", "s", 1.0)];

/// Probability below which a difference is not put down to chance.
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
    /// Probability of such a difference without a cause.
    pub p_value: Option<f64>,
}

impl StallRow {
    /// Whether there is anything to tell: somebody stood still, or a difference was called.
    pub fn is_worth_a_line(&self) -> bool {
        let least =
            MEASURES.iter().find(|measure| measure.0 == self.measure).map_or(0.0, |measure| measure.2);
        self.cells.iter().flatten().any(|cell| cell.mean >= least || cell.word.is_some_and(Word::is_call))
    }
}

/// The stalls of every step whose operations are many, beside those of `base`.
pub fn table(results: &Results, base: usize) -> Vec<StallRow> {
    let plan = &results.experiment.plan;
    let many = |name: &&String| {
        plan.steps
            .iter()
            .find(|step| step.step.name == **name)
            .is_some_and(|step| step.step.kind != StepKind::ReadSeq && !step.step.kind.is_upkeep())
    };
    let steps = results.steps.iter().filter(many);
    steps
        .flat_map(|step| {
            MEASURES.map(|(measure, unit, least)| row(results, base, step, (measure, unit, least)))
        })
        .collect()
}

fn row(
    results: &Results,
    base: usize,
    step: &str,
    (measure, unit, least): (&'static str, &'static str, f64),
) -> StallRow {
    let of_base = results.values(step, base, measure);
    let cell = |target: usize| {
        let own = results.values(step, target, measure);
        if own.is_empty() {
            return None;
        }
        let mean = own.values().sum::<f64>() / own.len() as f64;
        let (theirs, ours): (Vec<f64>, Vec<f64>) =
            own.iter().filter_map(|(block, value)| Some((*of_base.get(block)?, *value))).unzip();
        let seed = results.experiment.plan.seed;
        let compared = (target != base && !ours.is_empty())
            .then(|| compare_stalls(&theirs, &ours, least, ALPHA, seed).ok())
            .flatten();
        Some(StallCell {
            mean,
            word: compared.map(|compared| compared.verdict),
            p_value: compared.map(|compared| compared.p_value),
        })
    };
    let targets = 0..results.target_names().len();
    StallRow { step: step.to_string(), measure, unit, cells: targets.map(cell).collect() }
}

/// The rows worth a line, for the terminal; targets in columns by number.
pub fn text(results: &Results, base: usize) -> String {
    let rows: Vec<StallRow> = table(results, base).into_iter().filter(StallRow::is_worth_a_line).collect();
    if rows.is_empty() {
        return "\nstalls: none; no gap or operation of 100 ms, no second below a tenth of usual\n"
            .to_string();
    }
    let columns = results.target_names().len();
    let mut lines = vec![vec!["step".to_string(), "stalls".to_string()]];
    lines[0].extend((1..=columns).map(|column| format!("col-{column}")));
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
    let mut text = format!("\n{}", align(&lines));
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
