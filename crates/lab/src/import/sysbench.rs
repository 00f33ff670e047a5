//! sysbench: client output `sb.o.*` and results `sb.r.{qps,trx,rtavg,rtmax,rt95}.*`.
//!
//! ```text
//! sb.o  line 1: the command, the truth about clients, tables, rows and time; then "48 CPUs", then the report
//! sb.r  212345<TAB>innodb update-index range=100
//! ```

use super::model::{Target, Text, number};
use super::names::{rate_unit, repaired_step};
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::{dbms, sysbench};
use std::sync::Arc;

/// Lines of the report, the metric each gives and its unit. The second word or the one in brackets counts.
const REPORT: [(&str, &str, &str); 7] = [
    ("transactions:", "trx", "1/s"),
    ("queries:", "qps", "1/s"),
    ("min:", "rt_min", "ms"),
    ("avg:", "rt_avg", "ms"),
    ("max:", "rt_max", "ms"),
    ("95th percentile:", "rt_p95", "ms"),
    ("time elapsed:", "elapsed", "s"),
];

/// Reads one client output.
pub(super) fn parse_output(source: &Source, sink: &mut Sink) {
    let name = source.name.strip_prefix("sb.o.").and_then(sysbench);
    let Some(name) = name else {
        return sink.reject(0, "the file name names no test (sb.o.TEST.rangeN...)");
    };
    let step = repaired_step(&name.step, 1, sink);
    let target: Arc<Target> = Arc::new(dbms(&source.directory));
    let mut command = Command::default();
    let mut average_ms = None;
    for (line, text) in source.lines() {
        let place = CellOrigin { target: Arc::clone(&target), step: step.clone(), line };
        let trimmed = text.trim();
        if line == 1 {
            command = Command::parse(text);
            command.emit(&place, name.clients, sink);
        } else if let Some(cpus) = trimmed.strip_suffix(" CPUs").and_then(number) {
            sink.number(&place, "cpus", "count", cpus);
        } else if trimmed.ends_with("from current time") {
            sink.repair(Repair::SeedsDiffer, line, trimmed);
        } else if let Some((metric, unit, value)) = report_line(trimmed) {
            if metric == "rt_avg" {
                average_ms = Some(value);
            }
            sink.number(&place, metric, unit, value);
            scan_rate(&place, metric, &command, average_ms, sink);
        }
    }
    if !sink.rows.iter().any(|row| &*row.metric == "qps") {
        sink.reject(0, "the client printed no result");
    }
}

fn report_line(text: &str) -> Option<(&'static str, &'static str, f64)> {
    let (start, metric, unit) = REPORT.iter().find(|(start, ..)| text.starts_with(start))?;
    let rest = &text[start.len()..];
    let value = match rest.split_once('(') {
        Some((_, rate)) => rate.split_whitespace().next()?,
        None => rest.split_whitespace().next()?.trim_end_matches('s'),
    };
    Some((metric, unit, number(value)?))
}

/// A scan reads a whole table per query: its rate in rows follows from its average time.
fn scan_rate(place: &CellOrigin, metric: &str, command: &Command, average_ms: Option<f64>, sink: &mut Sink) {
    if let (true, "rt_avg", Some(rows), Some(average)) =
        (place.step.starts_with("scan"), metric, command.flag("--table-size"), average_ms)
        && average > 0.0
    {
        sink.number(place, "scan_rate", "krows/s", rows / average);
    }
}

/// The flags of a client.
#[derive(Default)]
struct Command {
    flags: Vec<(String, String)>,
}

impl Command {
    fn parse(text: &str) -> Command {
        let flags = text.split_whitespace().filter_map(|word| {
            let (flag, value) = word.split_once('=')?;
            flag.starts_with("--").then(|| (flag.to_string(), value.to_string()))
        });
        Command { flags: flags.collect() }
    }

    fn flag(&self, name: &str) -> Option<f64> {
        self.flags.iter().find(|(flag, _)| flag == name).and_then(|(_, value)| number(value))
    }

    fn emit(&self, place: &CellOrigin, clients: Option<u32>, sink: &mut Sink) {
        for (flag, metric, unit) in [
            ("--threads", "clients", "count"),
            ("--tables", "tables", "count"),
            ("--table-size", "rows_per_table", "count"),
            ("--time", "seconds", "s"),
        ] {
            if let Some(value) = self.flag(flag) {
                sink.number(place, metric, unit, value);
            }
        }
        // A password in a command line is nobody's result.
        let shown = self.flags.iter().filter(|(flag, _)| !flag.contains("password"));
        let words: Vec<String> = shown.map(|(flag, value)| format!("{flag}={value}")).collect();
        sink.word(place, "flags", &words.join(" "));
        if let (Some(threads), Some(clients)) = (self.flag("--threads"), clients)
            && threads != f64::from(clients)
        {
            let what = format!("dop{clients} in the name, --threads={threads}");
            sink.repair(Repair::ClientsDiffer, place.line, what);
        }
    }
}

/// Kinds of files, by the word after `sb.`, that the drivers write for people and that hold no result of a test.
const TEXTS: [&str; 14] =
    ["es", "is", "gv", "gs", "ts", "sz", "time", "pg", "pgs", "pgi", "perf", "prepare", "o", "vac"];

/// Beginnings of lines that only such a file has.
const TEXT_MARKS: [&str; 5] =
    ["sleepSecs is ", "Vacuum analyze table ", "INFO:  vacuuming ", "INFO:  analyzing ", "Analyze table "];

/// Whether a file is text for people: logs of vacuum and of what is done after writes, sizes, status of the server.
pub(super) fn is_text(lines: &[&str], name: &str) -> bool {
    let by_name = name.strip_prefix("sb.").and_then(|rest| rest.split('.').next());
    by_name.is_some_and(|kind| TEXTS.contains(&kind))
        || lines.iter().any(|line| TEXT_MARKS.iter().any(|mark| line.starts_with(mark)))
}

/// Reads one result file.
pub(super) fn parse_result(source: &Source, sink: &mut Sink) {
    let kind = source.name.strip_prefix("sb.r.").and_then(|rest| rest.split('.').next());
    let (metric, unit) = match kind {
        Some("qps") => ("qps", "1/s"),
        Some("trx") => ("trx", "1/s"),
        Some("rtavg") => ("rt_avg", "ms"),
        Some("rtmax") => ("rt_max", "ms"),
        Some("rt95") => ("rt_p95", "ms"),
        _ => return sink.reject(0, "the file name names no metric (sb.r.qps..., trx, rtavg, rtmax, rt95)"),
    };
    let target: Arc<Target> = Arc::new(dbms(&source.directory));
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let Some((values, step)) = result_line(text) else {
            sink.reject(line, "not 'value<TAB>engine test range=N'");
            continue;
        };
        let step = repaired_step(&step, line, sink);
        let unit = if metric == "qps" { rate_unit(&step, line, sink) } else { unit };
        let place = CellOrigin { target: Arc::clone(&target), step, line };
        for (index, value) in (1..).zip(&values) {
            // One value per number of clients; the file does not say which.
            let metric = if values.len() > 1 { format!("{metric}#{index}") } else { metric.to_string() };
            sink.number(&place, &metric, unit, *value);
        }
    }
}

/// Values and step of `v<TAB>[v<TAB>...]engine test range=N`.
pub(super) fn result_line(text: &str) -> Option<(Vec<f64>, Text)> {
    let mut cells: Vec<&str> = text.split('\t').collect();
    let label: Vec<&str> = cells.pop()?.split_whitespace().collect();
    let [_, test, range] = label.as_slice() else { return None };
    let values: Option<Vec<f64>> = cells.into_iter().map(number).collect();
    let values = values.filter(|values| !values.is_empty() && range.starts_with("range="))?;
    Some((values, format!("{test}_{range}").into()))
}
