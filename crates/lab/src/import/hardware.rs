//! Hardware cost per operation: `sb.met.*` of one test and target, `o.met.*` comparing targets.
//!
//! ```text
//! samp r/s rMB/s w/s wMB/s r/o rKB/o wKB/o o/s      o.met:  sb.met.insert.range100.pk1.dop1
//! 935  1.1 0.0   ...                                        --- absolute
//!                                                           cpu/o cs/o r/o rKB/o wKB/o o/s dbms
//! samp cs/s cpu/s cs/o cpu/o                                0.0016 ...              x.my8044_...
//! 979  ...                                                  --- relative to first result
//! ```
//! The sample counts of a `sb.met` file tell how many header lines vmstat's averages contain, so its cs and
//! cpu can be put right; an `o.met` file has no counts and is only labelled.

use super::model::{Target, Text, number};
use super::names::{rate_unit, repaired_step};
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::{dbms, sysbench};
use std::sync::Arc;

/// First line of a `sb.met` file.
pub(super) const TITLE: &str = "iostat, vmstat normalized by operation rate";
/// Lines of an `o.met` file that start its tables.
pub(super) const ABSOLUTE: &str = "--- absolute";
const RELATIVE: &str = "--- relative to first result";

/// Largest share of header lines believed; more means that the two samplers did not run together.
const MOST_BIAS: f64 = 1.2;

fn unit(column: &str) -> &'static str {
    match column {
        "samp" => "count",
        "r/s" | "w/s" | "cs/s" => "1/s",
        "rMB/s" | "wMB/s" => "MB/s",
        "r/o" | "cs/o" => "1/op",
        "rKB/o" | "wKB/o" => "KB/op",
        "cpu/s" => "% of host",
        "cpu/o" => "% of host per op/s",
        _ => "",
    }
}

/// Step of `sb.met.TEST...` or `sb.prepare.met.TEST...`; the load is the step `prepare`.
fn step_of(name: &str) -> Option<Text> {
    if name.starts_with("sb.prepare.met.") {
        return Some("prepare".into());
    }
    Some(sysbench(name.strip_prefix("sb.met.")?)?.step)
}

/// Reads one `sb.met` file.
pub(super) fn parse_test(source: &Source, sink: &mut Sink) {
    let Some(step) = step_of(&source.name) else {
        return sink.reject(0, "the file name names no test (sb.met.TEST.rangeN...)");
    };
    let step = repaired_step(&step, 1, sink);
    let target = Arc::new(dbms(&source.directory));
    let mut tables: Vec<(u32, Vec<(&str, f64)>)> = Vec::new();
    let mut header: Option<Vec<&str>> = None;
    for (line, text) in source.lines() {
        if text.starts_with("samp") {
            header = Some(text.split('\t').collect());
        } else if let Some(names) = header.take() {
            let values: Vec<Option<f64>> = text.split('\t').map(number).collect();
            if values.len() != names.len() || values.contains(&None) {
                sink.reject(line, "the values do not fit their header");
            } else {
                tables.push((line, names.into_iter().zip(values.into_iter().flatten()).collect()));
            }
        }
    }
    if tables.is_empty() {
        return sink.reject(0, "no table of samples");
    }
    let bias = bias(&tables);
    for (line, cells) in &tables {
        let place = CellOrigin { target: Arc::clone(&target), step: step.clone(), line: *line };
        emit_table(&place, cells, bias, cpus(source), sink);
    }
}

/// How many lines vmstat's reduction averaged per real sample, if believable.
fn bias(tables: &[(u32, Vec<(&str, f64)>)]) -> Option<f64> {
    let samples_with = |column: &str| {
        let (_, cells) = tables.iter().find(|(_, cells)| cells.iter().any(|(name, _)| *name == column))?;
        Some(cells.iter().find(|(name, _)| *name == "samp")?.1)
    };
    let factor = samples_with("cs/s")? / samples_with("r/s")?;
    (1.0 < factor && factor <= MOST_BIAS).then_some(factor)
}

/// CPUs of the host, from sysbench's output in the same directory.
fn cpus(source: &Source) -> Option<f64> {
    let own = source.name.replacen("sb.met.", "sb.o.", 1);
    let names = source.sibling_names();
    let any = names.iter().find(|name| name.starts_with("sb.o."));
    let from = |name: &str| {
        let output = source.sibling(name)?;
        output.lines().take(4).find_map(|(_, line)| number(line.strip_suffix(" CPUs")?))
    };
    from(&own).or_else(|| from(any?)).filter(|cpus| *cpus > 0.0)
}

fn emit_table(
    place: &CellOrigin,
    cells: &[(&str, f64)],
    bias: Option<f64>,
    cpus: Option<f64>,
    sink: &mut Sink,
) {
    let sampler = if cells.iter().any(|(name, _)| *name == "cs/s") { "vmstat" } else { "iostat" };
    for (column, printed) in cells {
        let biased = matches!(*column, "cs/s" | "cpu/s" | "cs/o" | "cpu/o");
        let factor = bias.filter(|_| biased).unwrap_or(1.0);
        let published = (factor > 1.0).then_some(*printed);
        match *column {
            "samp" => {
                sink.number(place, &format!("{sampler} samples"), "count", *printed);
            }
            "o/s" => rate(place, *printed, sink),
            column => {
                sink.number(place, column, unit(column), printed * factor).published = published;
            }
        }
        if *column == "cpu/o" {
            cpu_time(place, *printed, factor, cpus, sink);
        }
    }
    if let Some(factor) = bias.filter(|_| sampler == "vmstat") {
        sink.repair(Repair::VmstatHeaderBias, place.line, format!("cs and cpu times {factor:.4}"));
    }
}

fn rate(place: &CellOrigin, value: f64, sink: &mut Sink) {
    if &*place.step == "prepare" {
        sink.number(place, "o/s", "rows/s", value);
        sink.repair(Repair::WholeSecondRates, place.line, "o/s of the load");
    } else {
        let unit = rate_unit(&place.step, place.line, sink);
        sink.number(place, "o/s", unit, value);
    }
}

/// CPU microseconds per operation, where the number of CPUs is known.
fn cpu_time(place: &CellOrigin, printed: f64, factor: f64, cpus: Option<f64>, sink: &mut Sink) {
    let Some(cpus) = cpus else {
        return sink.repair(Repair::CpuShareOfHost, place.line, "number of CPUs unknown");
    };
    let micros = |share: f64| share / 100.0 * cpus * 1e6;
    let row = sink.number(place, "cpu_us/o", "us/op", micros(printed * factor));
    row.published = (factor > 1.0).then(|| micros(printed));
    sink.repair(Repair::CpuShareOfHost, place.line, format!("cpu_us/o from {cpus} CPUs"));
}

/// Reads one `o.met` file.
pub(super) fn parse_comparison(source: &Source, sink: &mut Sink) {
    let mut block = Comparison::default();
    for (line, text) in source.lines() {
        if text.trim().is_empty() {
            continue;
        } else if let Some(step) = step_of(text) {
            block = Comparison { step: repaired_step(&step, line, sink), ..Comparison::default() };
        } else if text.starts_with(ABSOLUTE) {
            block.base = None;
        } else if text.starts_with(RELATIVE) {
            block.base.clone_from(&block.first);
        } else {
            block.take(line, text, sink);
        }
    }
    if !sink.rows.is_empty() {
        sink.repair(Repair::VmstatHeaderBias, 1, "no sample counts: cs/o and cpu/o kept as printed");
        sink.repair(Repair::CpuShareOfHost, 1, "number of CPUs unknown");
    }
}

/// The two tables of one test.
#[derive(Default)]
struct Comparison {
    step: Text,
    header: Vec<String>,
    /// First target of the absolute table.
    first: Option<Text>,
    /// That target, once inside the relative table.
    base: Option<Text>,
}

impl Comparison {
    fn take(&mut self, line: u32, text: &str, sink: &mut Sink) {
        // Some cells are followed by two tabs, so that columns line up.
        let cells: Vec<&str> = text.split('\t').filter(|cell| !cell.is_empty()).collect();
        if cells.last() == Some(&"dbms") {
            self.header = cells.iter().map(ToString::to_string).collect();
            return;
        }
        if cells.len() != self.header.len() || cells.is_empty() {
            return sink.reject(line, "neither a title, a header nor a line that fits the header");
        }
        let target: Arc<Target> = Arc::new(dbms(cells[cells.len() - 1]));
        self.first.get_or_insert_with(|| target.name.clone());
        let place = CellOrigin { target, step: self.step.clone(), line };
        for (column, cell) in self.header.iter().zip(&cells[..cells.len() - 1]) {
            match (number(cell), &self.base) {
                (None, _) => sink.reject(line, format!("{column}: '{cell}' is not a number")),
                (Some(value), Some(base)) => sink.ratio(&place, column, base, value),
                (Some(value), None) if column == "o/s" => rate(&place, value, sink),
                (Some(value), None) => {
                    sink.number(&place, column, unit(column), value);
                }
            }
        }
    }
}
