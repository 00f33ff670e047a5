//! The Insert Benchmark: metrics rows `mrg.*`, `rel.*`, `o.sum.t.*`, client output `o.ib.*`, results `o.res.*`.
//!
//! ```text
//! mrg.l.i0   ips qps rps ... p50 p99 tag      one line per target; "-" starts a group with a base of its own
//! rel.l.i0   the same columns as ratios to the first line of the group in mrg.l.i0
//! o.ib.*     i_sec t_sec i_ips ...            one line per second and client, then histograms
//! o.res.*    free text with totals, sizes, slowest operations, percentiles of the rates, CPU seconds
//! ```
//! p50 and p99 are rates exceeded in 50 % and 99 % of the seconds, so p99 is a low rate: they are imported as
//! `rate_p50_floor` and `rate_p99_floor`.

use super::model::{Target, Text, number};
use super::names::Names;
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::dbms;
use std::sync::Arc;

/// How the header of metrics rows starts.
pub(super) const METRICS_START: &str = "ips\tqps\t";
/// How the header of client output starts.
pub(super) const INTERVALS_START: &str = "i_sec\tt_sec\t";
/// The text that the first line of a result file contains.
pub(super) const RESULT_MARK: &str = " rows-per-second-per-user";

/// Steps of a whole run, by their number, in order. `o.sum.t` names none.
const STEPS: [&[&str]; 2] = [
    &["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"],
    &[
        "l.i0", "l.x", "l.i1", "q100.1", "q100.2", "q200.1", "q200.2", "q400.1", "q400.2", "q600.1",
        "q600.2", "q800.1", "q800.2", "q1000.1", "q1000.2",
    ],
];

fn metric(column: &str) -> (&str, &'static str) {
    match column {
        "p50" => ("rate_p50_floor", "1/s"),
        "p99" => ("rate_p99_floor", "1/s"),
        "ips" | "qps" | "rps" | "wps" | "csps" => (column, "1/s"),
        "rmbps" | "wmbps" => (column, "MB/s"),
        "rkbps" | "wkbps" => (column, "kB/s"),
        "rpq" | "wpi" | "cspq" => (column, "1/op"),
        "rkbpq" | "wkbpi" => (column, "kB/op"),
        "cpups" => (column, "% of host"),
        "cpupq" | "ccpupq" => (column, "us/op"),
        "dbgb" | "dbgb1" | "dbgb2" | "vsz" | "rss" => (column, "GB"),
        "maxop" => (column, "s"),
        _ => (column, ""),
    }
}

/// Lines of a metrics file by group. A torn line keeps its place, so that the others keep theirs.
struct Groups<'a> {
    header: Vec<&'a str>,
    groups: Vec<Vec<MetricLine<'a>>>,
}

/// A line with its number; `None`: its cells do not fit the header. Its last cell names the target all the same.
struct MetricLine<'a> {
    line: u32,
    cells: Option<Vec<&'a str>>,
    tag: &'a str,
}

fn groups<'a>(source: &'a Source, sink: &mut Sink) -> Groups<'a> {
    let mut all = Groups { header: Vec::new(), groups: vec![Vec::new()] };
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        if text.starts_with(METRICS_START) {
            all.header = text.split('\t').collect();
        } else if text.trim() == "-" {
            all.groups.push(Vec::new());
        } else {
            let cells: Vec<&str> = text.split('\t').collect();
            let (got, want, tag) = (cells.len(), all.header.len(), cells[cells.len() - 1]);
            let cells = Some(cells).filter(|_| got == want);
            if cells.is_none() {
                sink.reject(line, format!("{got} cells under a header of {want}"));
            }
            all.groups.last_mut().expect("starts with one group").push(MetricLine { line, cells, tag });
        }
    }
    all
}

/// Reads metrics rows, absolute or relative.
pub(super) fn parse_metrics(source: &Source, sink: &mut Sink) {
    let all = groups(source, sink);
    let relative = source.name.starts_with("rel.");
    let bases = if relative { bases(source) } else { Vec::new() };
    if relative && bases.len() < all.groups.len() {
        let (sibling, want) = (absolute_name(source), all.groups.len());
        return sink.reject(0, format!("{sibling} beside it does not name the bases of {want} groups"));
    }
    let rows = all.groups.iter().map(Vec::len).sum();
    let mut names = Names::default();
    for (group, lines) in all.groups.iter().enumerate() {
        for (index, MetricLine { line, cells, tag }) in lines.iter().enumerate() {
            let Some(cells) = cells else { continue };
            let step = step(source, index, rows);
            let target = names.unique(&step, tagged(tag), *line, sink);
            let place = CellOrigin { target, step, line: *line };
            for (column, cell) in all.header.iter().zip(cells).filter(|(column, _)| **column != "tag") {
                let (name, unit) = metric(column);
                match (number(cell), bases.get(group)) {
                    (Some(value), Some(base)) => sink.ratio(&place, name, base, value),
                    (Some(value), None) => {
                        sink.number(&place, name, unit, value);
                    }
                    (None, _) if matches!(*cell, "" | "NA") => {}
                    (None, _) => sink.reject(*line, format!("{column}: '{cell}' is not a number")),
                }
            }
        }
    }
    if rows > 0 {
        sink.repair(Repair::WholeSecondRates, 1, "ips and qps");
    }
}

/// A target from a tag; `20m.rx80.cx6a` starts with the table's size.
fn tagged(tag: &str) -> Target {
    let target = dbms(tag);
    match tag.split_once('.') {
        Some((_, rest)) if target.engine.is_empty() && !dbms(rest).engine.is_empty() => {
            Target { name: tag.into(), ..dbms(rest) }
        }
        _ => target,
    }
}

fn absolute_name(source: &Source) -> String {
    source.name.replacen("rel.", "mrg.", 1)
}

/// First target of each group of the absolute file.
fn bases(source: &Source) -> Vec<Text> {
    let Some(absolute) = source.sibling(&absolute_name(source)) else { return Vec::new() };
    let mut ignored = Sink::new(source.shown.clone());
    let all = groups(&absolute, &mut ignored);
    let first = all.groups.iter().filter_map(|group| group.first());
    first.map(|line| Text::from(line.tag)).collect()
}

/// The step of the `index`th row of `rows`.
fn step(source: &Source, index: usize, rows: usize) -> Text {
    let named = ["mrg.", "rel."].iter().find_map(|start| source.name.strip_prefix(start));
    match named {
        Some(step) => step.into(),
        None => match STEPS.iter().find(|steps| steps.len() == rows) {
            Some(steps) => steps[index].into(),
            None => format!("step {}", index + 1).into(),
        },
    }
}

fn interval_unit(column: &str) -> &'static str {
    match column {
        "max_i" | "max_d" | "max_q" => "us",
        "t_ins" | "t_del" | "t_query" | "retry_i" | "retry_d" | "retry_q" => "count",
        "i_sec" | "t_sec" => "s",
        _ => "1/s",
    }
}

/// Reads a client's output.
pub(super) fn parse_intervals(source: &Source, sink: &mut Sink) {
    let target = Arc::new(dbms(&source.directory));
    let mut place = CellOrigin { target, step: source.name.as_str().into(), line: 0 };
    let mut header: Vec<&str> = Vec::new();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut first = 0;
    for (line, text) in source.lines() {
        place.line = line;
        let values: Option<Vec<f64>> = text.split('\t').map(number).collect();
        match values {
            _ if text.starts_with(INTERVALS_START) && header.is_empty() => {
                header = text.split('\t').collect();
            }
            Some(values) if values.len() == header.len() => {
                if rows.is_empty() {
                    first = line;
                }
                rows.push(values);
            }
            Some(_) if !header.is_empty() => sink.reject(line, "a sample that does not fit the header"),
            _ => {
                histogram(&place, text, sink);
            }
        }
    }
    place.line = first;
    let seconds = header.iter().position(|column| *column == "t_sec").unwrap_or(0);
    let at: Vec<f64> = rows.iter().map(|row| row[seconds]).collect();
    for (index, column) in header.iter().enumerate() {
        // Totals and rates since the start follow from the others.
        if column.starts_with("i_") && *column != "i_sec" || column.starts_with("max_") {
            let values = rows.iter().map(|row| row[index]).collect();
            sink.series(&place, column, interval_unit(column), &at, values);
        }
    }
}

/// Upper bounds of the response time histograms; the last bucket is open.
const BOUNDS: [&str; 10] = ["256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt"];

/// Takes `Insert rt: n n ... max`. `false` if the line is something else.
fn histogram(place: &CellOrigin, text: &str, sink: &mut Sink) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [kind @ ("Insert" | "Delete" | "Query"), "rt:", rest @ ..] = words.as_slice() else { return false };
    let values: Option<Vec<f64>> = rest.iter().map(|word| number(word)).collect();
    let Some(values) = values.filter(|values| values.len() == BOUNDS.len() + 1) else {
        // The line that names the bounds starts in the same way.
        return true;
    };
    let kind = kind.to_lowercase();
    for (bound, count) in BOUNDS.iter().zip(&values) {
        sink.number(place, &format!("{kind}_rt_{bound}"), "count", *count);
    }
    sink.number(place, &format!("{kind}_rt_max"), "s", values[BOUNDS.len()]);
    true
}

/// Reads a result file. Unknown lines are text for people and left alone.
pub(super) fn parse_result(source: &Source, sink: &mut Sink) {
    let target = Arc::new(dbms(&source.directory));
    let mut place = CellOrigin { target, step: source.name.trim_start_matches("o.res.").into(), line: 0 };
    for (line, text) in source.lines() {
        place.line = line;
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            _ if text.contains(RESULT_MARK) => totals(&place, text, sink),
            ["dbGB", size, ..] => gigabytes(&place, "dbgb1", size, sink),
            ["dbdirGB", size, ..] => gigabytes(&place, "dbgb2", size, sink),
            [percentile, _, "/", _, "=", ins, "insert,", del, "delete,", que, "query"] => {
                let percentile = percentile.trim_end_matches("th,");
                for (kind, rate) in [("insert", ins), ("delete", del), ("query", que)] {
                    if let Some(rate) = number(rate) {
                        sink.number(&place, &format!("{kind}_rate_p{percentile}_floor"), "1/s", rate);
                    }
                }
            }
            ["client:", user, "user,", system, "system,", ..] => {
                cpu_seconds(&place, &[("client_user", user), ("client_system", system)], sink);
            }
            ["dbms:", seconds] => cpu_seconds(&place, &[("dbms_cpu", seconds)], sink),
            _ => {
                histogram(&place, text, sink);
            }
        }
    }
}

/// `8 processes, 100 rows-per-process, 12 seconds, 66.6 rows-per-second, ...`
fn totals(place: &CellOrigin, text: &str, sink: &mut Sink) {
    for part in text.split(',') {
        let mut words = part.split_whitespace();
        let (Some(value), Some(name), None) = (words.next(), words.next(), words.next()) else {
            sink.reject(place.line, format!("'{}' is not a number and a name", part.trim()));
            continue;
        };
        let (metric, unit) = match name {
            "processes" => ("clients", "count"),
            "seconds" => ("seconds", "s"),
            "rows-per-second" => ("ips", "1/s"),
            "queries" => ("queries", "count"),
            "queries-per-second" => ("qps", "1/s"),
            _ => continue,
        };
        match number(value) {
            Some(value) => {
                sink.number(place, metric, unit, value);
            }
            None => sink.reject(place.line, format!("{name}: '{value}' is not a number")),
        }
    }
    sink.repair(Repair::WholeSecondRates, place.line, "rows and queries per second");
}

fn gigabytes(place: &CellOrigin, metric: &str, size: &str, sink: &mut Sink) {
    match number(size) {
        Some(size) => {
            sink.number(place, metric, "GB", size);
        }
        None => sink.reject(place.line, format!("'{size}' is not a size")),
    }
}

fn cpu_seconds(place: &CellOrigin, parts: &[(&str, &str)], sink: &mut Sink) {
    for (metric, seconds) in parts {
        if let Some(seconds) = number(seconds) {
            sink.number(place, metric, "s", seconds);
        }
    }
    sink.repair(Repair::CpuOfOneProcess, place.line, parts[0].0);
}
