//! Published results of sysbench by group of tests: of each target the least, the median and the greatest ratio to the table's base,
//! as the posts have them. Nothing is judged: each target ran once.

use super::page::breakable_option;
use crate::import::Group;
use crate::report::summary_line::median;
use maud::{Markup, html};
use outcrop_lab_sql::sysbench;

/// A group of tests, and the numbers of its steps.
type Part = (sysbench::Group, Vec<usize>);

/// The groups that a table has tests of; those that are done before anything was written are in none.
fn parts(group: &Group) -> Vec<Part> {
    let group_of = |step: &String| {
        let test = sysbench::find(step)?;
        (!test.name.contains(".pre_")).then(|| test.shape.group())
    };
    let part = |wanted: sysbench::Group| {
        let numbers = 0..group.steps.len();
        let own: Vec<usize> = numbers.filter(|step| group_of(&group.steps[*step]) == Some(wanted)).collect();
        (!own.is_empty()).then_some((wanted, own))
    };
    sysbench::Group::ALL.into_iter().filter_map(part).collect()
}

/// Least, median and greatest ratio of a target among `steps`.
fn spread(group: &Group, steps: &[usize], target: usize) -> Option<[f64; 3]> {
    let metric = group.main_metric();
    let mut ratios: Vec<f64> =
        steps.iter().filter_map(|step| metric.ratio(*step, target, group.base)).collect();
    ratios.sort_by(f64::total_cmp);
    Some([*ratios.first()?, median(&ratios)?, *ratios.last()?])
}

/// The table; nothing where no step is a test of sysbench.
pub(super) fn table(group: &Group) -> Markup {
    let parts = parts(group);
    let is_base = |target: usize| target == group.base && group.main_metric().relative_to.is_none();
    html! {
        @if !parts.is_empty() && group.targets.len() > 1 {
            h2 { "By group of tests" }
            p.small { "The least, the median and the greatest ratio of a group's tests, each from one run." }
            div.scroll { table {
                thead { tr {
                    th { "target" }
                    @for (part, steps) in &parts { th { (part.title()) " (" (steps.len()) ")" } }
                } }
                tbody { @for (number, target) in group.targets.iter().enumerate() {
                    @if !is_base(number) { tr {
                        td { (breakable_option(&target.name)) }
                        @for (_, steps) in &parts {
                            @match spread(group, steps, number) {
                                Some([least, median, greatest]) => td {
                                    (format!("{least:.2} ")) b { (format!("{median:.2}")) } (format!(" {greatest:.2}"))
                                },
                                None => td.invalid { "NA" },
                            }
                        }
                    } }
                } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{ArchiveTarget, MetricTable};

    fn group(steps: &[(&str, f64)]) -> Group {
        let target = |name: &str| ArchiveTarget {
            name: name.to_string(),
            engine: "postgres".to_string(),
            version: name.to_string(),
            build: String::new(),
            configuration: String::new(),
        };
        let values = steps.iter().map(|(_, ratio)| vec![Some(1000.0), Some(1000.0 * ratio)]).collect();
        Group {
            title: "t".to_string(),
            targets: vec![target("17.0"), target("18.0")],
            steps: steps.iter().map(|(name, _)| name.to_string()).collect(),
            base: 0,
            metrics: vec![MetricTable {
                name: "qps".into(),
                unit: "1/s".into(),
                relative_to: None,
                bases: Vec::new(),
                values,
            }],
        }
    }

    #[test]
    fn tests_of_a_group_are_one_cell_with_its_ends_and_its_middle() {
        let html = table(&group(&[
            ("point-query_range=100", 1.25),
            ("hot-points_range=100", 0.75),
            ("random-points_range=100", 1.0),
            ("point-query.pre_range=100", 9.0),
            ("insert_range=100", 0.5),
            ("something else", 7.0),
        ]))
        .into_string();
        assert!(
            html.contains("<th>point queries (3)</th>") && html.contains("<th>writes (1)</th>"),
            "{html}"
        );
        assert!(html.contains("<td>0.75 <b>1.00</b> 1.25</td>") && html.contains("<b>0.50</b>"), "{html}");
        assert!(!html.contains("range queries") && !html.contains("<td>17.0"), "{html}");
        assert_eq!(table(&group(&[("fillseq", 1.0)])).into_string(), "");
    }
}
