//! The metrics rows of published Insert Benchmark pages: of each step one table with all of its columns, and the rates of its tenths.
//!
//! | column | formula |
//! |---|---|
//! | ips, qps | rows inserted, queries, a second |
//! | rps, wps, rmbps, wmbps | device reads and writes a second, MB of them |
//! | rpq, rkbpq | reads and KB read, per query, of loads per row |
//! | wpi, wkbpi | writes and KB written, per row inserted |
//! | csps, cspq | context switches of the host a second, per query or row |
//! | cpups, cpupq | processor time of the host in percent of all of it, in microseconds per query or row |
//! | dbgb1, dbgb2, rss | GB of the database, of all files, of the server's memory |
//! | maxop | the slowest query, of loads the slowest insert, in seconds |
//! | p50, p99 | the rate that so many of a hundred seconds reached |
//!
//! Three differ from published ones: cpups is a share of the processors that the lab may use, rss is that of all processes of the
//! server, where what they share counts once, and p50 and p99 are rates of all clients together.
//!
//! Each is the median over blocks of what its own session has.

use super::insert_benchmark::steps;
use super::text::amount;
use crate::analysis::results::Results;
use crate::probe::derive::Metrics;
use crate::report::summary_line::median;
use crate::store::StepRow;
use maud::{Markup, html};
use outcrop_lab_sql::insert_benchmark::Phase;
use std::fmt::Write;

/// The published columns, in their order, but for the tag.
const COLUMNS: [&str; 20] = [
    "ips", "qps", "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wpi", "wkbpi", "csps", "cpups", "cspq",
    "cpupq", "dbgb1", "dbgb2", "rss", "maxop", "p50", "p99",
];

/// Parts of a step whose rates are shown each.
const TENTHS: usize = 10;

/// A step with a row of numbers for each target that did it.
struct StepTable {
    step: String,
    /// Name of a target, the columns, and the rates of tenths; nothing of a step with fewer seconds than tenths.
    rows: Vec<(String, Vec<Option<f64>>, Vec<f64>)>,
}

/// The columns of one measurement of a step of `phase`, on a host of so many processors.
fn columns(metrics: &Metrics, phase: Phase, processors: usize) -> [Option<f64>; COLUMNS.len()] {
    let of = |name: &str| metrics.get(name).copied();
    let queries = matches!(phase, Phase::Query(..));
    let rate = of("ops_sec");
    let a_second = |name: &str| Some(of(name)? * rate?);
    let inserted = if queries { of("insert_sec") } else { rate };
    [
        inserted,
        if queries { rate } else { Some(0.0) },
        a_second("r/o"),
        a_second("rKB/o").map(|kilobytes| kilobytes / 1024.0),
        a_second("w/o"),
        a_second("wKB/o").map(|kilobytes| kilobytes / 1024.0),
        of("r/o"),
        of("rKB/o"),
        // The operations of a load are its rows. One that builds indexes inserts few: its rows are those that it indexes.
        of(if queries { "w/i" } else { "w/o" }),
        of(if queries { "wKB/i" } else { "wKB/o" }),
        a_second("cs/o"),
        a_second("cpu_us/o").map(|micros| micros / 1e6 / processors.max(1) as f64 * 100.0),
        of("cs/o"),
        of("cpu_us/o"),
        of("dbgb1"),
        of("dbgb2"),
        of("rss").map(|megabytes| megabytes * f64::from(1 << 20) / 1e9),
        of("pmax").map(|micros| micros / 1e6),
        of("rate_p50_floor"),
        of("rate_p99_floor"),
    ]
}

/// The mean rate of each tenth of a step's whole seconds; nothing of fewer seconds than tenths.
fn tenths(per_second: &[u64]) -> Vec<f64> {
    let seconds = per_second.len();
    if seconds < TENTHS {
        return Vec::new();
    }
    let part = |number: usize| &per_second[number * seconds / TENTHS..(number + 1) * seconds / TENTHS];
    (0..TENTHS).map(part).map(|part| part.iter().sum::<u64>() as f64 / part.len() as f64).collect()
}

/// The median of each place of `rows`, of those that have it.
fn medians(rows: &[Vec<Option<f64>>], places: usize) -> Vec<Option<f64>> {
    let place = |place: usize| {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| *row.get(place)?).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    (0..places).map(place).collect()
}

/// The tables of an experiment; none if it is no Insert Benchmark.
fn tables_of(results: &Results) -> Vec<StepTable> {
    let processors = results.experiment.host.facts.cores;
    let names = results.labels();
    let table = |(step, phase): (String, Phase)| {
        let row = |target: usize| {
            let measured: Vec<&StepRow> = results.rows(&step, target).collect();
            if measured.is_empty() {
                return None;
            }
            let numbers: Vec<Vec<Option<f64>>> =
                measured.iter().map(|row| columns(&row.metrics, phase, processors).to_vec()).collect();
            let parts: Vec<Vec<Option<f64>>> = measured
                .iter()
                .map(|row| tenths(&row.result.per_second).into_iter().map(Some).collect())
                .collect();
            let parts = medians(&parts, TENTHS).into_iter().flatten().collect();
            Some((names[target].clone(), medians(&numbers, COLUMNS.len()), parts))
        };
        StepTable { rows: (0..names.len()).filter_map(row).collect(), step }
    };
    steps(results).into_iter().map(table).collect()
}

fn shown(value: Option<f64>) -> String {
    value.map_or("NA".to_string(), amount)
}

/// The tables as a page's body; nothing of other benchmarks.
pub fn page(results: &Results) -> Option<Markup> {
    let tables = tables_of(results);
    if tables.is_empty() {
        return None;
    }
    Some(html! {
        p {
            "All columns of published metrics rows, medians over blocks. ips, qps: rows inserted and queries a second. rps, wps, rmbps, \
             wmbps: reads and writes of the device a second, and MB. rpq, rkbpq: reads and KB per query, of loads per row. wpi, wkbpi: \
             writes and KB per row inserted. csps, cspq: context switches of the host a second, per query or row. cpups, cpupq: its \
             processor time in percent of all processors, and in microseconds per query or row. dbgb1, dbgb2, rss: GB of the database, \
             of all files, and of the server's memory. maxop: seconds of the slowest query, of loads of the slowest insert. p50, p99: \
             the rate that so many of a hundred seconds reached, which is a low one for p99. Three differ from published ones: cpups is \
             a share of the processors that the lab may use, rss is that of all processes of the server, where what they share counts \
             once, and p50 and p99 are rates of all clients together."
        }
        @for table in &tables {
            h2 { (table.step) }
            div.scroll { table {
                thead { tr { th { "target" } @for name in COLUMNS { th { (name) } } } }
                tbody {
                    @for (name, numbers, _) in &table.rows {
                        tr { td { (name) } @for value in numbers { td { (shown(*value)) } } }
                    }
                }
            } }
            @if table.rows.iter().any(|(_, _, parts)| !parts.is_empty()) {
                p.small { "Operations a second in each tenth of the step" }
                div.scroll { table {
                    thead { tr { th { "target" } @for number in 1..=TENTHS { th { (number) } } } }
                    tbody {
                        @for (name, _, parts) in &table.rows {
                            tr { td { (name) } @for value in parts { td { (amount(*value)) } } }
                        }
                    }
                } }
            }
        }
    })
}

/// The tables as published files: `mrg.STEP`, columns with tabs between, the target last.
pub fn files(results: &Results) -> Vec<(String, String)> {
    let file = |table: StepTable| {
        let mut text = COLUMNS.join("\t") + "\ttag\n";
        for (name, numbers, _) in table.rows {
            for value in numbers {
                let _ = write!(text, "{}\t", value.map_or("NA".to_string(), |value| format!("{value:.3}")));
            }
            let _ = writeln!(text, "{name}");
        }
        (format!("csv/mrg.{}", table.step), text)
    };
    tables_of(results).into_iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake_record;
    use outcrop_lab_sql::insert_benchmark::{Queries, run::InsertStep};
    use outcrop_lab_sql::{Load, SqlStep};

    fn results(phase: Phase) -> Results {
        let numbers = [
            ("ops_sec", 200.0),
            ("insert_sec", 100.0),
            ("r/o", 0.5),
            ("rKB/o", 8.0),
            ("w/o", 0.25),
            ("wKB/o", 4.0),
            ("w/i", 0.5),
            ("wKB/i", 8.0),
            ("cs/o", 3.0),
            ("cpu_us/o", 50.0),
            ("dbgb1", 1.5),
            ("dbgb2", 2.5),
            ("rss", 953.674_316),
            ("pmax", 2e6),
            ("rate_p50_floor", 190.0),
            ("rate_p99_floor", 150.0),
        ];
        let (_temp, store) = fake_record(1, &["fillseq"], 3, &mut |_| numbers.to_vec());
        let mut results = Results::load(&store, 1).unwrap();
        results.experiment.host.facts.cores = 2;
        let load = Load::Insert(InsertStep { phase, batch: 50 });
        results.experiment.plan.steps[0].sql =
            Some(SqlStep { load, tables: 1, rows: 9, engine: String::new() });
        results
    }

    fn of(results: &Results) -> Vec<(&'static str, f64)> {
        let table = tables_of(results).remove(0);
        COLUMNS
            .into_iter()
            .zip(table.rows[0].1.iter().map(|value| (value.unwrap() * 1000.0).round() / 1000.0))
            .collect()
    }

    #[test]
    fn every_column_has_its_published_formula() {
        assert_eq!(
            of(&results(Phase::Query(Queries::Point, 100))),
            [
                ("ips", 100.0),
                ("qps", 200.0),
                ("rps", 100.0),
                ("rmbps", 1.563),
                ("wps", 50.0),
                ("wmbps", 0.781),
                ("rpq", 0.5),
                ("rkbpq", 8.0),
                ("wpi", 0.5),
                ("wkbpi", 8.0),
                ("csps", 600.0),
                ("cpups", 0.5),
                ("cspq", 3.0),
                ("cpupq", 50.0),
                ("dbgb1", 1.5),
                ("dbgb2", 2.5),
                ("rss", 1.0),
                ("maxop", 2.0),
                ("p50", 190.0),
                ("p99", 150.0),
            ]
        );
        for phase in [Phase::Fill, Phase::Index, Phase::Churn] {
            let load = of(&results(phase));
            assert_eq!(load[..2], [("ips", 200.0), ("qps", 0.0)], "a load inserts and asks nothing");
            assert_eq!(load[8..10], [("wpi", 0.25), ("wkbpi", 4.0)], "its operations are rows");
        }
    }

    #[test]
    fn published_files_are_read_back_by_the_importer() {
        let results = results(Phase::Query(Queries::Point, 100));
        let files = files(&results);
        let (name, text) = &files[0];
        assert_eq!(name, "csv/mrg.fillseq");
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap().split('\t').count(), 21);
        assert!(lines.all(|line| line.split('\t').count() == 21), "{text}");
        assert!(text.starts_with("ips\tqps\trps\trmbps\twps\twmbps\trpq\trkbpq\twpi\twkbpi\tcsps\tcpups\tcspq\tcpupq\tdbgb1\tdbgb2\trss\tmaxop\tp50\tp99\ttag\n"));
        let page = page(&results).unwrap().into_string();
        assert!(page.contains("cpupq") && page.contains("190"), "{page}");
    }

    #[test]
    fn tenths_have_all_seconds() {
        let seconds: Vec<u64> = (1..=25).collect();
        let parts = tenths(&seconds);
        assert_eq!((parts.len(), parts[0], parts[9]), (10, 1.5, 24.0));
        assert!(tenths(&seconds[..9]).is_empty());
    }
}
