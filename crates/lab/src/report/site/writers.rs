//! The parts of a step's page that published pages of the Insert Benchmark have: rows inserted and deleted second by second, the
//! longest statement of each second, and response times by class.

use super::{charts, page};
use crate::analysis::results::Results;
use crate::store::{Store, StoreError};
use maud::{Markup, PreEscaped, html};
use outcrop_lab_load::StepResult;
use outcrop_lab_load::steps::beside::{BesideResult, TIME_BOUNDS_US, time_class};
use outcrop_lab_sql::Load;
use outcrop_lab_sql::insert_benchmark::Phase;

/// Classes of times, with the one above the last bound.
const CLASSES: usize = TIME_BOUNDS_US.len() + 1;

/// The work of a step, if it is one of the benchmark's.
fn phase(results: &Results, step: &str) -> Option<Phase> {
    let planned = results.experiment.plan.steps.iter().find(|planned| planned.step.name == step)?;
    match &planned.sql.as_ref()?.load {
        Load::Insert(insert) => Some(insert.phase),
        _ => None,
    }
}

/// Something counted in each second of a session.
type Series = fn(&BesideResult) -> &[u64];

/// Rows inserted and deleted beside the counted operations in each second, and the longest statements; nothing of steps
/// without such.
pub(super) fn seconds(results: &Results, step: &str) -> Markup {
    html! {
        (chart(
            results,
            step,
            "Rows inserted and deleted in each second",
            "Inserted (solid) and deleted (dashed) beside the counted operations",
            |done| &done.rows_per_second,
            |most| format!("{}/s", charts::short_count(most)),
        ))
        (chart(
            results,
            step,
            "Longest insert and delete in each second",
            "The longest statement that inserted (solid) or deleted (dashed) and ended in the second",
            |done| &done.longest_per_second,
            super::steps::duration,
        ))
    }
}

fn chart(
    results: &Results,
    step: &str,
    title: &str,
    what: &str,
    series: Series,
    top: impl Fn(u64) -> String,
) -> Markup {
    let lines = |target: usize, kind: usize| -> Vec<&[u64]> {
        let all = results.rows(step, target).filter_map(|row| row.result.beside.as_ref());
        all.map(|beside| series(&beside[kind])).filter(|line| line.len() > 1).collect()
    };
    let targets = 0..results.labels().len();
    let values = targets.clone().flat_map(|target| [lines(target, 0), lines(target, 1)].concat());
    let most = values.flatten().copied().max().unwrap_or(0);
    html! {
        @if most > 0 {
            h2 { (title) }
            p.small { (what) ", one line for each session; all charts have the same axes, from 0." }
            div.grid {
                @for (target, name) in targets.zip(results.labels()) {
                    (PreEscaped(charts::by_second(&name, &top(most), &lines(target, 0), &lines(target, 1), most)))
                }
            }
        }
    }
}

/// Statements of one kind of a target in all blocks: how many in each class of times, and the longest in microseconds.
#[derive(Clone, Debug, PartialEq)]
struct Times {
    kind: &'static str,
    classes: [u64; CLASSES],
    longest: f64,
}

impl Times {
    fn none(kind: &'static str) -> Times {
        Times { kind, classes: [0; CLASSES], longest: 0.0 }
    }

    /// Adds the counted operations of a session.
    fn add_counted(&mut self, result: &StepResult, histogram: &[(u64, u64)]) {
        for (nanos, count) in histogram {
            self.classes[time_class(nanos / 1000)] += count;
        }
        self.longest = self.longest.max(result.percentiles[4]);
    }

    fn add(&mut self, done: &BesideResult) {
        self.classes.iter_mut().zip(done.by_time).for_each(|(sum, count)| *sum += count);
        let longest = done.longest_per_second.iter().copied().max().unwrap_or(0);
        self.longest = self.longest.max(longest as f64);
    }

    /// Shares of the classes, and the longest in seconds.
    fn cells(&self) -> Vec<String> {
        let all: u64 = self.classes.iter().sum();
        let share = |count: &u64| match (*count, *count as f64 * 100.0 / all.max(1) as f64) {
            (0, _) => String::new(),
            (_, share) if share < 0.001 => "<0.001".to_string(),
            (_, share) => format!("{share:.3}"),
        };
        self.classes.iter().map(share).chain([format!("{:.3}", self.longest / 1e6)]).collect()
    }
}

/// Response times of a step of the benchmark by the published classes; nothing of other steps.
///
/// # Errors
/// If the record cannot be read.
pub(super) fn times(store: &Store, results: &Results, step: &str) -> Result<Markup, StoreError> {
    let Some(phase) = phase(results, step) else { return Ok(html! {}) };
    let counted = match phase {
        Phase::Query(..) => "query",
        Phase::Index => "index",
        Phase::Fill | Phase::Churn => "insert",
    };
    let mut rows: Vec<(usize, Times)> = Vec::new();
    for target in 0..results.labels().len() {
        let mut of_kind = [Times::none(counted), Times::none("insert"), Times::none("delete")];
        for row in results.rows(step, target) {
            of_kind[0].add_counted(&row.result, &store.histogram(row.id)?);
            for (times, done) in of_kind[1..].iter_mut().zip(row.result.beside.iter().flatten()) {
                times.add(done);
            }
        }
        let known = of_kind.into_iter().filter(|times| times.classes.iter().sum::<u64>() > 0);
        rows.extend(known.map(|times| (target, times)));
    }
    let bounds = ["256 us", "1 ms", "4 ms", "16 ms", "64 ms", "256 ms", "1 s", "4 s", "16 s", "longer"];
    Ok(html! {
        @if !rows.is_empty() {
            h2 { "Response times by class" }
            p.small {
                "Percent of the statements of all blocks that took no longer than the head of the column, and longer than that of the one before; "
                "the longest of all in seconds."
            }
            div.scroll { table {
                thead { tr { th { "target" } th { "statement" } @for bound in bounds { th { (bound) } } th { "max [s]" } } }
                tbody {
                    @for (target, times) in &rows { tr {
                        td { (page::breakable(&results.labels()[*target])) }
                        td { (times.kind) }
                        @for cell in times.cells() { td { (cell) } }
                    } }
                }
            } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn shares_of_the_classes_are_those_of_all_blocks() {
        let (_, mut result) = crate::testing::step_and_result("overwrite", 1000, 2.0);
        result.percentiles[4] = 2_500_000.0;
        let mut query = Times::none("query");
        query.add_counted(&result, &[(100_000, 299_999), (2_500_000_000, 1)]);
        let cells = query.cells();
        assert_eq!((cells[0].as_str(), cells[1].as_str(), cells[7].as_str()), ("100.000", "", "<0.001"));
        assert_eq!((cells.len(), cells[10].as_str()), (CLASSES + 1, "2.500"));
        let mut done = BesideResult::default();
        (0..3).for_each(|at| done.note(Duration::from_secs(at), 50, Duration::from_micros(900)));
        done.note(Duration::from_secs(1), 50, Duration::from_millis(20));
        let mut deleted = Times::none("delete");
        deleted.add(&done);
        assert_eq!(deleted.cells()[..5].join("|"), "|75.000|||25.000");
        assert_eq!(deleted.longest, 20_000.0);
    }
}
