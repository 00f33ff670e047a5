//! The three tables of published Insert Benchmark pages: rates, rates relative to the base, and the rates of the writers beside
//! queries with what was asked of them.
//!
//! Marks are those of the published pages, each with a sign beside its colour. Rates: the lowest quarter of a column `-`, the
//! highest `+`, no `-` where the lowest is within 20 % of the highest; a step that missed its write rate is marked so, and counts for neither.
//! Relative: `-` below 0.95, `+` above 1.05. Intervals and verdicts stand in the table of all experiments.

use crate::analysis::results::Results;
use crate::report::text::{align_within, amount};
use maud::{Markup, html};
use outcrop_lab_sql::Load;
use outcrop_lab_sql::insert_benchmark::{Phase, SLA};

/// How a cell is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    Low,
    High,
    /// The write rate beside the queries was missed.
    Missed,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::None => "",
            Mark::Low => " -",
            Mark::High => " +",
            Mark::Missed => " SLA",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Mark::None => "",
            Mark::Low => "low",
            Mark::High => "high",
            Mark::Missed => "missed",
        }
    }
}

/// A number as it is shown, and its mark.
type Marked = (String, Mark);

/// A table: its title, what its marks mean, its columns, and rows with a name each.
struct Table {
    title: &'static str,
    legend: &'static str,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Marked>)>,
}

/// Steps of the benchmark that are in reports.
pub(super) fn steps(results: &Results) -> Vec<(String, Phase)> {
    let phase = |name: &String| {
        let planned = results.experiment.plan.steps.iter().find(|planned| planned.step.name == *name)?;
        match &planned.sql.as_ref()?.load {
            Load::Insert(insert) => Some((name.clone(), insert.phase)),
            _ => None,
        }
    };
    results.steps.iter().filter_map(phase).collect()
}

/// Whether an experiment has steps of the Insert Benchmark.
pub fn is_one(results: &Results) -> bool {
    !steps(results).is_empty()
}

fn missed(results: &Results, step: &str, target: usize) -> bool {
    results.rows(step, target).any(|row| row.labels.iter().any(|label| label.name == "writer behind"))
}

/// Marks of a column of rates; `None` has no rate.
fn quartiles(column: &[Option<(f64, bool)>]) -> Vec<Mark> {
    let kept = column.iter().flatten().filter(|(_, missed)| !missed).map(|(value, _)| *value);
    let (least, most) = kept
        .clone()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    let (gap, alike) = (most - least, least >= 0.8 * most);
    let mark = |cell: &Option<(f64, bool)>| match *cell {
        None => Mark::None,
        Some((_, true)) => Mark::Missed,
        Some((value, false)) if value <= least + 0.25 * gap && !alike => Mark::Low,
        // The published rule marks every cell of a column of equals: that says nothing.
        Some((value, false)) if value >= most - 0.25 * gap && gap > 0.0 => Mark::High,
        Some(_) => Mark::None,
    };
    column.iter().map(mark).collect()
}

fn relative_mark(ratio: f64) -> Mark {
    match (ratio * 100.0).round() {
        percent if percent < 95.0 => Mark::Low,
        percent if percent > 105.0 => Mark::High,
        _ => Mark::None,
    }
}

/// The tables of an experiment; none if it is no Insert Benchmark.
fn tables_of(results: &Results, base: usize) -> Vec<Table> {
    let (steps, names) = (steps(results), results.headers());
    if steps.is_empty() {
        return Vec::new();
    }
    let columns: Vec<String> = steps.iter().map(|(name, _)| name.clone()).collect();
    let rate = |target: usize, step: &str| results.median(step, target, "ops_sec");
    let by_column: Vec<Vec<Mark>> = columns
        .iter()
        .map(|step| {
            let cell = |target| Some((rate(target, step)?, missed(results, step, target)));
            quartiles(&(0..names.len()).map(cell).collect::<Vec<_>>())
        })
        .collect();
    let row = |target: usize, cell: &dyn Fn(usize, usize) -> Marked, columns: usize| {
        (names[target].clone(), (0..columns).map(|column| cell(target, column)).collect::<Vec<Marked>>())
    };
    let absolute = |target: usize, column: usize| {
        (rate(target, &columns[column]).map_or("NA".to_string(), amount), by_column[column][target])
    };
    let relative = |target: usize, column: usize| {
        let step = &columns[column];
        match results.ratio(step, target, base, "ops_sec") {
            _ if missed(results, step, target) => ("NA".to_string(), Mark::Missed),
            // Less was written beside its queries: nothing is compared with that.
            _ if missed(results, step, base) => ("NA".to_string(), Mark::None),
            Some(_) if target == base => ("1.00".to_string(), Mark::None),
            Some(ratio) => (format!("{ratio:.2}"), relative_mark(ratio)),
            None => ("NA".to_string(), Mark::None),
        }
    };
    let targets = 0..names.len();
    let mut tables = vec![
        Table {
            title: "Rates of the Insert Benchmark",
            legend: "Rows a second of l.*, queries a second of q*, medians over blocks. Of each column the highest quarter of its \
                     span is marked +, the lowest - unless it is within 20 % of the highest; SLA: the inserts beside the queries \
                     missed 95 % of their rate, so that less was written than elsewhere.",
            rows: targets.clone().map(|target| row(target, &absolute, columns.len())).collect(),
            columns: columns.clone(),
        },
        Table {
            title: "The same relative to the base",
            legend: "Below 0.95 marked -, above 1.05 +. Which of them are certain is said by the verdicts above.",
            rows: targets.clone().map(|target| row(target, &relative, columns.len())).collect(),
            columns: columns.clone(),
        },
    ];
    let asked: Vec<(&String, f64)> = steps
        .iter()
        .filter_map(|(name, phase)| match phase {
            Phase::Query(_, rate) => {
                let planned =
                    results.experiment.plan.steps.iter().find(|planned| planned.step.name == *name)?;
                Some((name, f64::from(*rate) * f64::from(planned.step.threads)))
            }
            _ => None,
        })
        .collect();
    if !asked.is_empty() {
        let kept = |target: usize, column: usize| {
            let (step, wanted) = asked[column];
            match results.median(step, target, "insert_sec") {
                Some(rate) if rate < SLA * wanted => (amount(rate), Mark::Low),
                Some(rate) => (amount(rate), Mark::None),
                None => ("NA".to_string(), Mark::None),
            }
        };
        let mut rows: Vec<_> = targets.map(|target| row(target, &kept, asked.len())).collect();
        rows.push((
            "asked for".to_string(),
            asked.iter().map(|(_, rate)| (amount(*rate), Mark::None)).collect(),
        ));
        tables.push(Table {
            title: "Rows inserted a second beside the queries",
            legend: "Below 95 % of what was asked for marked -. A second's rows are inserted at its beginning: steps of a few seconds have \
                     more than was asked for.",
            columns: asked.iter().map(|(name, _)| name.to_string()).collect(),
            rows,
        });
    }
    tables
}

/// The tables for a terminal; nothing of other benchmarks.
pub fn text(results: &Results, base: usize) -> String {
    let mut text = String::new();
    for table in tables_of(results, base) {
        let head = std::iter::once(String::new()).chain(table.columns).collect();
        let mut lines: Vec<Vec<String>> = vec![head];
        for (name, cells) in table.rows {
            let cells = cells.into_iter().map(|(value, mark)| value + mark.sign());
            lines.push(std::iter::once(name).chain(cells).collect());
        }
        text.push_str(&format!("\n{}\n{}", table.title, align_within(&lines, 1)));
    }
    text
}

/// The tables for a page; nothing of other benchmarks.
pub fn tables(results: &Results, base: usize) -> Markup {
    html! {
        @for table in tables_of(results, base) {
            h3 { (table.title) }
            p.small { (table.legend) }
            div.scroll { table {
                thead { tr { th { "target" } @for name in &table.columns { th { (name) } } } }
                tbody {
                    @for (name, cells) in &table.rows {
                        tr { td { (name) } @for (value, mark) in cells { td class=(mark.class()) { (value) (mark.sign()) } } }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::labels::Label;
    use crate::testing::fake_record;
    use outcrop_lab_sql::SqlStep;
    use outcrop_lab_sql::insert_benchmark::{Queries, run::InsertStep};

    #[test]
    fn the_ends_of_a_column_are_marked_and_what_missed_its_rate_counts_for_neither() {
        let kept = |value: f64| Some((value, false));
        let marks = quartiles(&[kept(50.0), kept(100.0), kept(75.0), Some((500.0, true)), None]);
        assert_eq!(marks, [Mark::Low, Mark::High, Mark::None, Mark::Missed, Mark::None]);
        // Within 20 %: none is low.
        assert_eq!(quartiles(&[kept(85.0), kept(100.0)]), [Mark::None, Mark::High]);
        assert_eq!(quartiles(&[kept(7.0), kept(7.0)]), [Mark::None, Mark::None]);
    }

    #[test]
    fn nothing_is_compared_with_a_base_that_missed_its_rate_or_did_nothing() {
        let rates = [[("ops_sec", 10.0)], [("ops_sec", 5.0)]];
        let (_temp, store) = fake_record(2, &["fillseq"], 1, &mut |fake| rates[fake.target % 2].to_vec());
        let mut results = Results::load(&store, 1).unwrap();
        let insert = InsertStep { phase: Phase::Query(Queries::Point, 100), batch: 50 };
        let sql = SqlStep { load: Load::Insert(insert), tables: 1, rows: 9, engine: String::new() };
        results.experiment.plan.steps[0].sql = Some(sql);
        let of_second = |results: &Results| tables_of(results, 0)[1].rows[1].1[0].clone();
        assert_eq!(of_second(&results), ("0.50".to_string(), Mark::Low));
        let behind = Label { name: "writer behind".to_string(), text: String::new(), invalid: true };
        for row in results.measured.iter_mut().filter(|row| row.target == 0) {
            row.labels.push(behind.clone());
        }
        assert_eq!(of_second(&results), ("NA".to_string(), Mark::None));
        for row in results.measured.iter_mut().filter(|row| row.target == 0) {
            row.labels.clear();
            row.metrics.insert("ops_sec".to_string(), 0.0);
        }
        assert_eq!(of_second(&results), ("NA".to_string(), Mark::None));
    }

    #[test]
    fn ratios_are_marked_by_whole_percent() {
        assert_eq!(
            [0.944, 0.95, 1.0, 1.054, 1.06].map(relative_mark),
            [Mark::Low, Mark::None, Mark::None, Mark::None, Mark::High]
        );
    }
}
