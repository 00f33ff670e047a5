//! Which format a file has, told by its contents.
//!
//! The name decides only where the contents cannot: a sysbench result does not say what its number is, and
//! three numbers are times only in a `.time` file. Order matters: marks that cannot occur elsewhere come first.

use super::model::number;
use super::sink::Sink;
use super::source::Source;
use super::{
    db_bench_log, fio, hardware, insert_benchmark, query_table, samplers, summary_line, sysbench,
    version_table,
};
use serde::Serialize;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// 28 columns a step.
    SummaryLines,
    /// Throughput by version, test first.
    VersionCsv,
    /// Throughput by version, test last.
    VersionTsv,
    /// Output of db_bench.
    DbBenchLog,
    /// Wall, user and system seconds of a step.
    DbBenchTimes,
    /// Throughput per second.
    DbBenchRates,
    /// Throughput by target, test last.
    QueryTsv,
    /// Throughput by target, test first.
    QueryCsv,
    /// Output of sysbench.
    SysbenchOutput,
    /// One number of sysbench.
    SysbenchResult,
    /// Hardware cost of one test.
    TestHardware,
    /// Hardware cost compared.
    HardwareComparison,
    /// Samples of vmstat.
    Vmstat,
    /// Samples of iostat.
    Iostat,
    /// Insert Benchmark, a line per target.
    InsertMetrics,
    /// Insert Benchmark, a line per second.
    InsertIntervals,
    /// Insert Benchmark, one step.
    InsertResult,
    /// fio's sync latency.
    FioSummary,
    /// Texts that sysbench's drivers keep for people: vacuum and postwrite logs, sizes, status of the
    /// server.
    SysbenchText,
}

/// Lines looked at before a file counts as unknown: summary files start with a list of inputs.
const LINES_LOOKED_AT: usize = 2000;

impl Format {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::SummaryLines => "db_bench summary lines",
            Format::VersionCsv => "db_bench by version, csv",
            Format::VersionTsv => "db_bench by version, tsv",
            Format::DbBenchLog => "db_bench log",
            Format::DbBenchTimes => "db_bench times",
            Format::DbBenchRates => "db_bench rates per second",
            Format::QueryTsv => "sysbench by target, tsv",
            Format::QueryCsv => "sysbench by target, csv",
            Format::SysbenchOutput => "sysbench output",
            Format::SysbenchResult => "sysbench result",
            Format::TestHardware => "hardware per operation",
            Format::HardwareComparison => "hardware compared",
            Format::Vmstat => "vmstat",
            Format::Iostat => "iostat",
            Format::InsertMetrics => "Insert Benchmark metrics",
            Format::InsertIntervals => "Insert Benchmark intervals",
            Format::InsertResult => "Insert Benchmark result",
            Format::FioSummary => "fio summary",
            Format::SysbenchText => "sysbench text, no numbers",
        }
    }

    /// Whether a file holds one target, so that a table needs several files.
    pub(super) fn has_one_target(self) -> bool {
        match self {
            Format::DbBenchLog
            | Format::DbBenchTimes
            | Format::DbBenchRates
            | Format::SysbenchOutput
            | Format::SysbenchResult
            | Format::TestHardware
            | Format::Vmstat
            | Format::Iostat
            | Format::InsertIntervals
            | Format::InsertResult => true,
            Format::SummaryLines
            | Format::VersionCsv
            | Format::VersionTsv
            | Format::QueryTsv
            | Format::QueryCsv
            | Format::HardwareComparison
            | Format::InsertMetrics
            | Format::FioSummary
            | Format::SysbenchText => false,
        }
    }

    /// Tells the format of a file, if it is one we know.
    pub(super) fn of(source: &Source) -> Option<Format> {
        let lines: Vec<&str> = source.lines().take(LINES_LOOKED_AT).map(|(_, text)| text).collect();
        let first = lines.iter().copied().find(|line| !line.trim().is_empty())?;
        Format::of_marks(&lines)
            .or_else(|| Format::of_first_line(first, &source.name))
            .or_else(|| Format::of_most_lines(&lines))
            .or_else(|| sysbench::is_text(&lines, &source.name).then_some(Format::SysbenchText))
    }

    /// A table whose first line is torn: most of the others tell.
    fn of_most_lines(lines: &[&str]) -> Option<Format> {
        let filled: Vec<&str> = lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
        let is_most = |separator: char| {
            let tables = filled.iter().filter(|line| is_table(line, separator)).count();
            tables >= 2 && 2 * tables > filled.len()
        };
        let of_line = |separator: char| {
            let line = filled.iter().find(|line| is_table(line, separator))?;
            Format::of_first_line(line, "")
        };
        [',', '\t'].into_iter().find(|separator| is_most(*separator)).and_then(of_line)
    }

    /// Formats with a line that occurs nowhere else.
    fn of_marks(lines: &[&str]) -> Option<Format> {
        lines.iter().find_map(|line| {
            Some(match line {
                line if line.starts_with(summary_line::HEADER_START) => Format::SummaryLines,
                line if line.starts_with(hardware::TITLE) => Format::TestHardware,
                line if line.starts_with(hardware::ABSOLUTE) => Format::HardwareComparison,
                line if line.starts_with(insert_benchmark::METRICS_START) => Format::InsertMetrics,
                line if line.starts_with(insert_benchmark::INTERVALS_START) => Format::InsertIntervals,
                line if line.contains(insert_benchmark::RESULT_MARK) => Format::InsertResult,
                line if line.starts_with("Relative to:") || line.starts_with("col-1") => Format::QueryTsv,
                line if line.starts_with("sysbench 1.") || line.starts_with("sysbench 0.") => {
                    Format::SysbenchOutput
                }
                line if line.starts_with(db_bench_log::RATES_HEADER) => Format::DbBenchRates,
                line if samplers::is_vmstat_header(line) => Format::Vmstat,
                line if samplers::is_iostat_header(line) => Format::Iostat,
                line if line.contains(db_bench_log::RESULT_MARK) && line.contains(" ops/sec") => {
                    Format::DbBenchLog
                }
                _ => return None,
            })
        })
    }

    /// Tables without a mark: the shape of the first line decides.
    fn of_first_line(line: &str, name: &str) -> Option<Format> {
        if sysbench::result_line(line).is_some() {
            Some(Format::SysbenchResult)
        } else if fio::cells(line).is_some() {
            Some(Format::FioSummary)
        } else if name.ends_with(".time") && db_bench_log::times(line).is_some() {
            Some(Format::DbBenchTimes)
        } else if is_table(line, ',') {
            let queries = line.split(',').next().is_some_and(|test| test.contains(query_table::TEST_MARK));
            Some(if queries { Format::QueryCsv } else { Format::VersionCsv })
        } else {
            is_table(line, '\t').then_some(Format::VersionTsv)
        }
    }

    /// Reads the file.
    pub(super) fn parse(self, source: &Source, sink: &mut Sink) {
        match self {
            Format::SummaryLines => summary_line::parse(source, sink),
            Format::VersionCsv => version_table::parse(source, ',', sink),
            Format::VersionTsv => version_table::parse(source, '\t', sink),
            Format::DbBenchLog => db_bench_log::parse_log(source, sink),
            Format::DbBenchTimes => db_bench_log::parse_times(source, sink),
            Format::DbBenchRates => db_bench_log::parse_rates(source, sink),
            Format::QueryTsv => query_table::parse_tsv(source, sink),
            Format::QueryCsv => query_table::parse_csv(source, sink),
            Format::SysbenchOutput => sysbench::parse_output(source, sink),
            Format::SysbenchResult => sysbench::parse_result(source, sink),
            Format::TestHardware => hardware::parse_test(source, sink),
            Format::HardwareComparison => hardware::parse_comparison(source, sink),
            Format::Vmstat => samplers::parse_vmstat(source, sink),
            Format::Iostat => samplers::parse_iostat(source, sink),
            Format::InsertMetrics => insert_benchmark::parse_metrics(source, sink),
            Format::InsertIntervals => insert_benchmark::parse_intervals(source, sink),
            Format::InsertResult => insert_benchmark::parse_result(source, sink),
            Format::FioSummary => fio::parse(source, sink),
            // There is nothing to measure in it.
            Format::SysbenchText => {}
        }
    }
}

/// A line of a version table: `test` beside versions, or a word beside numbers; the word first in csv, last in
/// tsv.
fn is_table(line: &str, separator: char) -> bool {
    let mut cells: Vec<&str> = line.split(separator).map(str::trim).collect();
    if cells.last().is_some_and(|cell| cell.is_empty()) {
        cells.pop();
    }
    if cells.len() < 2 {
        return false;
    }
    let test = if separator == ',' { cells.remove(0) } else { cells.pop().unwrap_or_default() };
    let versions = || cells.iter().all(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
    let numbers = || cells.iter().all(|cell| number(cell).is_some());
    if test == "test" { versions() } else { !test.is_empty() && number(test).is_none() && numbers() }
}
