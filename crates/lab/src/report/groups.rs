//! Relative throughput by group of tests: of each target the least, the median and the greatest ratio of a group, as the tables of
//! published sysbench results have them.

use crate::analysis::results::Results;
use crate::report::text::align;
use maud::{Markup, html};
use outcrop_lab_sql::sysbench::Group;
use std::fmt::Write;

/// The range of a target's tests of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    fn of(mut ratios: Vec<f64>) -> Option<Spread> {
        ratios.sort_by(f64::total_cmp);
        let median = crate::report::summary_line::median(&ratios)?;
        Some(Spread { least: *ratios.first()?, median, greatest: *ratios.last()? })
    }

    fn cells(spread: Option<Spread>) -> [String; 3] {
        match spread {
            Some(spread) => [spread.least, spread.median, spread.greatest].map(|ratio| format!("{ratio:.2}")),
            None => ["NA"; 3].map(str::to_string),
        }
    }
}

/// A group, and of each target its tests' ratios.
struct Row {
    group: Group,
    tests: usize,
    spreads: Vec<Option<Spread>>,
}

/// The groups that the experiment has tests of; none if it has no tests of sysbench.
fn rows(results: &Results, base: usize) -> Vec<Row> {
    let plan = &results.experiment.plan;
    let group_of = |name: &str| {
        let step = plan.steps.iter().find(|step| step.step.name == name)?;
        Some(step.sql.as_ref()?.test()?.shape.group())
    };
    let row = |group: Group| {
        // Steps that are done before anything was written are not among the tests of published groups.
        let counts = |step: &&String| !step.contains(".pre_") && group_of(step) == Some(group);
        let steps: Vec<&String> = results.steps.iter().filter(counts).collect();
        let spread = |target: usize| {
            let ratio = |step: &&String| {
                let valid = results.invalid(step, target).is_none() && results.invalid(step, base).is_none();
                results.ratio(step, target, base, "ops_sec").filter(|_| valid)
            };
            Spread::of(steps.iter().filter_map(ratio).collect())
        };
        let spreads = (0..plan.targets.len()).map(spread).collect();
        (!steps.is_empty()).then_some(Row { group, tests: steps.len(), spreads })
    };
    Group::ALL.into_iter().filter_map(row).collect()
}

/// The groups for a terminal; nothing without tests of sysbench.
pub fn text(results: &Results, base: usize) -> String {
    if results.target_names().len() < 2 {
        // Nothing to be relative to.
        return String::new();
    }
    let (rows, headers) = (rows(results, base), results.headers());
    let mut text = String::new();
    for row in &rows {
        let _ = write!(text, "\n{}: {} tests, relative to {}\n", row.group.title(), row.tests, headers[base]);
        let mut lines = vec![["", "min", "median", "max"].map(str::to_string).to_vec()];
        for (target, spread) in row.spreads.iter().enumerate().filter(|(target, _)| *target != base) {
            let [least, median, greatest] = Spread::cells(*spread);
            lines.push(vec![headers[target].clone(), least, median, greatest]);
        }
        text.push_str(&align(&lines));
    }
    text
}

/// The groups as tables of a page; nothing without tests of sysbench.
pub fn tables(results: &Results, base: usize) -> Markup {
    let (rows, names) = (rows(results, base), results.labels());
    html! {
        @if !rows.is_empty() && names.len() > 1 {
            h3 { "By group of tests" }
            p.small { "Ratios to " (names[base]) ", as in the table above: the least, the median and the greatest of a group's tests." }
            div.scroll { table {
                thead { tr {
                    th { "target" }
                    @for row in &rows { th { (row.group.title()) " (" (row.tests) ")" } }
                } }
                tbody {
                    @for (target, name) in names.iter().enumerate() {
                        @if target != base { tr {
                            td { (name) }
                            @for row in &rows {
                                @let [least, median, greatest] = Spread::cells(row.spreads[target]);
                                td { (least) " " b { (median) } " " (greatest) }
                            }
                        } }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_ends_and_its_middle() {
        let spread = Spread::of(vec![1.1, 0.9, 1.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest), (0.9, 1.0, 1.1));
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::cells(Some(spread)), ["0.90", "1.00", "1.10"]);
    }
}
