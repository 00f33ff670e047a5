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
use outcrop_lab_stats::stalls::{StallPairs, judge_stalls};
use serde::Serialize;
use std::fmt::Write;

/// The measures of stalls: metric, unit, and the least difference that matters.
pub const MEASURES: [(&str, &str, f64); 3] =
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
    /// The largest of the blocks.
    pub most: f64,
    /// Beside the base; absent for the base itself, and where one of the two cannot be compared.
    pub word: Option<Word>,
    /// Probability of such a difference without a cause, alone.
    pub p_value: Option<f64>,
    /// Adjusted for the cells of the report; absent where nothing could be called.
    pub q_value: Option<f64>,
}

impl StallRow {
    /// Whether there is anything to tell: somebody stood still in some block, or a difference was called.
    pub fn is_worth_a_line(&self) -> bool {
        let least =
            MEASURES.iter().find(|measure| measure.0 == self.measure).map_or(0.0, |measure| measure.2);
        self.cells.iter().flatten().any(|cell| cell.most >= least || cell.word.is_some_and(Word::is_call))
    }

    /// Whether anybody has the measure in this step.
    fn is_known(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

/// The rows worth a line; `None` where no step has a measure, and so nothing is known of stalls.
pub fn worth_a_line(results: &Results, base: usize) -> Option<Vec<StallRow>> {
    let rows = table(results, base);
    let is_known = rows.iter().any(StallRow::is_known);
    is_known.then(|| rows.into_iter().filter(StallRow::is_worth_a_line).collect())
}

/// Whether a step's operations are many, so that the longest of them say something.
pub(crate) fn has_many_operations(results: &Results, name: &str) -> bool {
    let steps = &results.experiment.plan.steps;
    let step = steps.iter().find(|step| step.step.name == name);
    step.is_some_and(|step| step.step.kind.has_many_operations())
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
        let comparable = |target: &usize| results.is_comparable(&row.step, *target, base);
        for target in (0..row.cells.len()).filter(|target| *target != base).filter(comparable) {
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

/// A measure of a step, with the mean and the most of each target.
fn row(results: &Results, step: &str, measure: &'static str, unit: &'static str) -> StallRow {
    let cell = |target: usize| {
        let own = results.values(step, target, measure);
        let mean = own.values().sum::<f64>() / own.len() as f64;
        let most = own.values().copied().fold(0.0, f64::max);
        (!own.is_empty()).then_some(StallCell { mean, most, word: None, p_value: None, q_value: None })
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
    let Some(rows) = worth_a_line(results, base) else { return String::new() };
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
    let _ = writeln!(text, "means over blocks; shown where one block has a gap of 100 ms, or such a second");
    let _ = writeln!(text, "gap: longest time without a completion; stalled: seconds below a tenth of usual");
    let _ = writeln!(text, "slow: seconds with an operation of 100 ms (from when it was due in open loops)");
    text
}

fn cell_text(cell: &Option<StallCell>) -> String {
    match cell {
        None => "NA".to_string(),
        Some(StallCell { mean, word: None, .. }) => format!("{}  ", amount(*mean)),
        Some(StallCell { mean, word: Some(word), .. }) => format!("{} {}", amount(*mean), word.sign()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::labels::Label;
    use crate::testing::fake_record;

    #[test]
    fn one_block_that_stood_still_is_shown_though_the_mean_is_small() {
        // The first session has a gap of half a second, and a second below a tenth; the mean of six is below what matters.
        let (_temp, store) = fake_record(6, &["fillseq", "overwrite"], 1, &mut |session| {
            let stands_still = session.target == 1 && session.step == "overwrite" && session.progress < 0.17;
            let (gap, seconds) = if stands_still { (500.0, 1.0) } else { (10.0, 0.0) };
            vec![("ops_sec", 1e5), ("longest_gap", gap), ("slow_seconds", 0.0), ("stalled_seconds", seconds)]
        });
        let results = Results::load(&store, 1).unwrap();
        let rows = worth_a_line(&results, 0).unwrap();
        let names: Vec<_> = rows.iter().map(|row| (row.step.as_str(), row.measure)).collect();
        assert_eq!(names, [("overwrite", "longest_gap"), ("overwrite", "stalled_seconds")]);
        let cell = rows[0].cells[1].unwrap();
        assert!(cell.mean < 100.0 && cell.most == 500.0, "{cell:?}");
        let said = text(&results, 0);
        assert!(
            !said.contains("stalls: none") && said.lines().all(|line| line.chars().count() <= 80),
            "{said}"
        );
    }

    #[test]
    fn nothing_is_said_of_stalls_where_nothing_is_known_of_them() {
        let (_temp, store) = fake_record(6, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1e5)]);
        let results = Results::load(&store, 1).unwrap();
        assert!(worth_a_line(&results, 0).is_none());
        assert_eq!(text(&results, 0), "");
        let (_temp, store) =
            fake_record(6, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1e5), ("longest_gap", 1.0)]);
        assert!(text(&Results::load(&store, 1).unwrap(), 0).contains("stalls: none"));
    }

    #[test]
    fn invalid_measurements_are_not_judged_and_have_no_ratio() {
        let (_temp, store) = fake_record(8, &["fillseq", "readwhilewriting"], 1, &mut |session| {
            let gap = if session.target == 1 && session.step == "readwhilewriting" { 900.0 } else { 10.0 };
            vec![("ops_sec", 1e5), ("longest_gap", gap)]
        });
        let mut results = Results::load(&store, 1).unwrap();
        let word = |results: &Results, target: usize| {
            let rows = table(results, 0);
            let row = rows.iter().find(|row| row.step == "readwhilewriting" && row.measure == "longest_gap");
            row.unwrap().cells[target].unwrap().word
        };
        assert_eq!(word(&results, 1), Some(Word::Regression));
        assert_eq!(results.ratio("readwhilewriting", 1, 0, "ops_sec"), Some(1.0));
        let behind = Label { name: "writer".to_string(), text: String::new(), invalid: true };
        for row in results.measured.iter_mut().filter(|row| row.target == 1 && row.name == "readwhilewriting")
        {
            row.labels.push(behind.clone());
        }
        assert_eq!((word(&results, 1), word(&results, 2)), (None, Some(Word::Same)));
        assert_eq!(results.ratio("readwhilewriting", 1, 0, "ops_sec"), None);
        assert_eq!(results.ratio("fillseq", 1, 0, "ops_sec"), Some(1.0));
        assert_eq!(crate::report::show::exit_code(&results, 0, "ops_sec"), 3, "unknown, and no regression");
    }
}
