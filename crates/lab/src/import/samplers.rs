//! Output of vmstat and iostat.
//!
//! ```text
//! vmstat  procs ---memory--- ...                 two header lines, again every 21 samples or so
//!          r  b   swpd   free   buff ...         first sample: averages since boot
//! iostat  Device  r/s  rkB/s ...                 a report of one line per device, blank line between
//! ```
//! Columns are found by the header's names: four layouts of iostat are in use, and more will come.
//! Invariants: header lines are no samples, and the first report, which may cover the time since boot, is none.

use super::model::{Target, Text, number};
use super::names::repaired_step;
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::{dbms, sysbench};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether `line` is vmstat's second header line.
pub(super) fn is_vmstat_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("r") && words.next() == Some("b") && line.contains("swpd")
}

/// Whether `line` is iostat's header of devices.
pub(super) fn is_iostat_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    matches!(words.next(), Some("Device" | "Device:")) && words.any(|word| word == "r/s")
}

/// Step and target of `sb.vm.TEST...`, `sb.io.TEST...` or of any other sampler file by its name.
fn identity(source: &Source, sink: &mut Sink) -> (Arc<Target>, Text) {
    let of_sysbench = ["sb.vm.", "sb.io.", "sb.prepare.vm.", "sb.prepare.io."];
    let named = of_sysbench.iter().find_map(|start| sysbench(source.name.strip_prefix(start)?));
    let step = match named {
        Some(name) => repaired_step(&name.step, 1, sink),
        None => source.name.trim_end_matches(".vm").trim_end_matches(".io").into(),
    };
    (Arc::new(dbms(&source.directory)), step)
}

fn vmstat_unit(column: &str) -> &'static str {
    match column {
        "us" | "sy" | "id" | "wa" | "st" | "gu" => "% of host",
        "in" | "cs" => "1/s",
        "si" | "so" => "KB/s",
        "bi" | "bo" => "blocks/s",
        "swpd" | "free" | "buff" | "cache" => "KB",
        _ => "count",
    }
}

fn iostat_unit(column: &str) -> &'static str {
    match column {
        _ if column.ends_with("kB/s") => "kB/s",
        _ if column.ends_with("MB/s") => "MB/s",
        _ if column.ends_with("/s") => "1/s",
        _ if column.starts_with('%') => "%",
        "await" | "svctm" => "ms",
        _ if column.ends_with("_await") => "ms",
        _ if column.ends_with("-sz") => "kB",
        _ => "",
    }
}

/// Samples by column. Without samples nothing is emitted.
#[derive(Default)]
struct Table {
    first_line: u32,
    header: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Table {
    fn emit(self, place: &CellOrigin, prefix: &str, unit: fn(&str) -> &'static str, sink: &mut Sink) {
        let place = CellOrigin { line: self.first_line, ..place.clone() };
        let at: Vec<f64> = (1..=self.rows.len()).map(|sample| sample as f64).collect();
        for (index, column) in self.header.iter().enumerate() {
            let values = self.rows.iter().map(|row| row[index]).collect();
            sink.series(&place, &format!("{prefix}{column}"), unit(column), &at, values);
        }
    }
}

/// Reads vmstat's output.
pub(super) fn parse_vmstat(source: &Source, sink: &mut Sink) {
    let (target, step) = identity(source, sink);
    let mut table = Table::default();
    let (mut headers, mut since_boot) = (0, true);
    for (line, text) in source.lines() {
        if is_vmstat_header(text) {
            headers += 1;
            let names: Vec<String> = text.split_whitespace().map(ToString::to_string).collect();
            if table.header.is_empty() {
                table.header = names;
            } else if table.header != names {
                sink.reject(line, "the columns change inside the file");
                break;
            }
        } else if !text.trim().is_empty() && !text.starts_with("procs") {
            let values: Option<Vec<f64>> = text.split_whitespace().map(number).collect();
            match values.filter(|values| values.len() == table.header.len()) {
                None => sink.reject(line, "neither a header of vmstat nor a sample"),
                Some(_) if since_boot => since_boot = false,
                Some(values) => {
                    if table.rows.is_empty() {
                        table.first_line = line;
                    }
                    table.rows.push(values);
                }
            }
        }
    }
    let place = CellOrigin { target, step, line: 1 };
    let what = format!("left out: {headers} header lines and the since-boot line");
    sink.repair(Repair::VmstatHeaderBias, 1, what);
    table.emit(&place, "vmstat ", vmstat_unit, sink);
}

/// Reads iostat's output.
pub(super) fn parse_iostat(source: &Source, sink: &mut Sink) {
    let (target, step) = identity(source, sink);
    let mut devices: BTreeMap<String, Table> = BTreeMap::new();
    let mut header: Vec<String> = Vec::new();
    let mut report = 0;
    let mut inside = false;
    for (line, text) in source.lines() {
        if is_iostat_header(text) {
            let names: Vec<String> = text.split_whitespace().skip(1).map(ToString::to_string).collect();
            if !header.is_empty() && header != names {
                sink.reject(line, "the columns change inside the file");
                break;
            }
            header = names;
            report += 1;
            inside = true;
        } else if text.trim().is_empty() {
            inside = false;
        } else if inside {
            let mut words = text.split_whitespace();
            let device = words.next().unwrap_or_default().trim_end_matches(':');
            let values: Option<Vec<f64>> = words.map(number).collect();
            match values.filter(|values| values.len() == header.len()) {
                None => sink.reject(line, "a device's line that does not fit the header"),
                Some(_) if report == 1 => {}
                Some(values) => {
                    let table = devices.entry(device.to_string()).or_insert_with(|| Table {
                        first_line: line,
                        header: header.clone(),
                        rows: Vec::new(),
                    });
                    table.rows.push(values);
                }
            }
        } else if let Some(cpus) = banner_cpus(text) {
            let place = CellOrigin { target: Arc::clone(&target), step: step.clone(), line };
            sink.number(&place, "cpus", "count", cpus);
        }
    }
    if report < 2 {
        sink.reject(0, "no report of iostat after the first");
    }
    let place = CellOrigin { target, step, line: 1 };
    for (device, table) in devices {
        table.emit(&place, &format!("{device} "), iostat_unit, sink);
    }
}

/// CPUs in iostat's first line: `Linux 6.8 (host) 11/24/2025 _x86_64_ (8 CPU)`.
fn banner_cpus(line: &str) -> Option<f64> {
    let inside = line.strip_prefix("Linux ")?.rsplit_once('(')?.1;
    number(inside.strip_suffix(" CPU)")?)
}
