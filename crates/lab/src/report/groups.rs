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

/// A part of a table of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its heading; none where a table is not divided.
    pub title: Option<&'static str>,
    /// Numbers of its steps, in their order.
    pub steps: Vec<usize>,
}

/// A line of a table of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    /// A heading.
    Title(&'static str),
    /// The step of this number.
    Step(usize),
}

impl Section {
    /// Its heading, if it has one, and its steps.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.title.map(Line::Title).into_iter().chain(self.steps.iter().map(|step| Line::Step(*step)))
    }
}

/// The group of a step that is a test of sysbench. Tests that are done before anything was written are in none.
fn group_of(results: &Results, name: &str) -> Option<Group> {
    let step = results.experiment.plan.steps.iter().find(|step| step.step.name == name)?;
    let test = step.sql.as_ref()?.test()?;
    (!test.name.contains(".pre_")).then(|| test.shape.group())
}

/// The parts of a table of all steps: with tests of sysbench the groups of published tables, and what is in none of them first;
/// else one part.
pub fn sections(results: &Results) -> Vec<Section> {
    let of = |wanted: Option<Group>| -> Vec<usize> {
        let is_of = |number: &usize| group_of(results, &results.steps[*number]) == wanted;
        (0..results.steps.len()).filter(is_of).collect()
    };
    let others = of(None);
    if others.len() == results.steps.len() {
        return vec![Section { title: None, steps: others }];
    }
    let first = Section { title: Some("loads, and tests before any write"), steps: others };
    let groups = Group::ALL.map(|group| Section { title: Some(group.title()), steps: of(Some(group)) });
    std::iter::once(first).chain(groups).filter(|section| !section.steps.is_empty()).collect()
}

/// The groups that the experiment has tests of; none if it has no tests of sysbench.
fn rows(results: &Results, base: usize) -> Vec<Row> {
    let plan = &results.experiment.plan;
    let row = |group: Group| {
        let counts = |step: &&String| group_of(results, step) == Some(group);
        let steps: Vec<&String> = results.steps.iter().filter(counts).collect();
        let spread = |target: usize| {
            let ratio = |step: &&String| results.ratio(step, target, base, "ops_sec");
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
    use crate::testing::fake_record;
    use outcrop_lab_sql::{Load, SqlStep, sysbench};

    #[test]
    fn tables_are_divided_into_the_published_groups_and_scans_have_their_unit() {
        let (_temp, store) =
            fake_record(2, &["fillseq", "overwrite", "readrandom", "fwdrange"], 1, &mut |_| {
                vec![("ops_sec", 1000.0), ("krows_sec", 7.0)]
            });
        let mut results = Results::load(&store, 1).unwrap();
        assert_eq!(sections(&results), [Section { title: None, steps: vec![0, 1, 2, 3] }]);
        // The same record as if it were of a server.
        let tests = ["insert_range=100", "point-query.pre_range=100", "scan_range=100"];
        for (index, name) in tests.into_iter().enumerate() {
            let test = sysbench::find(name).unwrap().name.to_string();
            results.experiment.plan.steps[index + 1].sql =
                Some(SqlStep { load: Load::Sysbench(test), tables: 1, rows: 10, engine: String::new() });
        }
        let divided: Vec<(&str, Vec<usize>)> =
            sections(&results).into_iter().map(|section| (section.title.unwrap(), section.steps)).collect();
        let wanted = [
            ("loads, and tests before any write", vec![0, 2]),
            ("range queries without aggregation", vec![3]),
            ("writes", vec![1]),
        ];
        assert_eq!(divided, wanted);
        let text = crate::report::show::compare(&results, 0, "ops_sec");
        let place = |start: &str| text.lines().position(|line| line.starts_with(start)).unwrap();
        assert!(place("readrandom") < place("range queries without") && place("writes") < place("overwrite"));
        let scan = text.lines().find(|line| line.starts_with("fwdrange [krows/s]")).unwrap();
        assert_eq!(scan.split_whitespace().nth(2), Some("7.000"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_spread_has_its_ends_and_its_middle() {
        let spread = Spread::of(vec![1.1, 0.9, 1.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest), (0.9, 1.0, 1.1));
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::cells(Some(spread)), ["0.90", "1.00", "1.10"]);
    }
}
