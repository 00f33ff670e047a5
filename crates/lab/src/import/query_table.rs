//! Tables of sysbench throughput by target: `qps.{abs,rel}.TAG.{csv,tsv}`.
//!
//! ```text
//! tsv  Relative to: x.my8044_...              csv  hot-points_range=100,0.99,0.98
//!      col-1 : x.my8407_...
//!      (blank)
//!      col-1 col-2
//!      0.99  0.98  hot-points_range=100
//! ```
//! A csv names no targets: they come from the tsv of the same name beside it.

use super::model::{Target, Text, number};
use super::names::{rate_unit, repaired_step};
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::dbms;
use std::sync::Arc;

/// The text that a test's name contains in these tables.
pub(super) const TEST_MARK: &str = "_range=";

/// Targets by column, and the base of relative tables.
#[derive(Default)]
struct Columns {
    targets: Vec<Arc<Target>>,
    base: Option<Text>,
}

impl Columns {
    /// Takes a line that names a target. `false` if it does not.
    fn take(&mut self, text: &str) -> bool {
        if let Some(base) = text.strip_prefix("Relative to:") {
            self.base = Some(base.trim().into());
        } else if let Some((column, target)) = text.split_once(" : ")
            && column.starts_with("col-")
        {
            self.targets.push(Arc::new(dbms(target.trim())));
        } else {
            return false;
        }
        true
    }
}

/// Reads a tsv.
pub(super) fn parse_tsv(source: &Source, sink: &mut Sink) {
    let mut columns = Columns::default();
    for (line, text) in source.lines() {
        let header = text.starts_with("col-1") && !text.contains(" : ");
        if header || text.trim().is_empty() || columns.take(text) {
            continue;
        }
        let mut cells: Vec<&str> = text.split('\t').collect();
        let test = cells.pop().unwrap_or_default();
        emit(&columns, test, &cells, line, sink);
    }
    label(&columns, sink);
}

/// Reads a csv.
pub(super) fn parse_csv(source: &Source, sink: &mut Sink) {
    let mut columns = Columns::default();
    let sibling = format!("{}.tsv", source.name.trim_end_matches(".csv"));
    match source.sibling(&sibling) {
        Some(tsv) => tsv.lines().for_each(|(_, text)| {
            columns.take(text);
        }),
        None => return sink.reject(0, format!("no {sibling} beside it names the targets")),
    }
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let mut cells = text.split(',');
        let test = cells.next().unwrap_or_default();
        emit(&columns, test, &cells.collect::<Vec<_>>(), line, sink);
    }
    label(&columns, sink);
}

fn emit(columns: &Columns, test: &str, cells: &[&str], line: u32, sink: &mut Sink) {
    if !test.contains(TEST_MARK) {
        return sink.reject(line, "a line without a test name");
    }
    if cells.len() != columns.targets.len() {
        let (got, want) = (cells.len(), columns.targets.len());
        return sink.reject(line, format!("{got} values for {want} targets"));
    }
    let step = repaired_step(test, line, sink);
    let unit = if columns.base.is_none() { rate_unit(&step, line, sink) } else { "ratio" };
    for (target, cell) in columns.targets.iter().zip(cells) {
        let place = CellOrigin { target: Arc::clone(target), step: step.clone(), line };
        match (number(cell), &columns.base) {
            (Some(value), Some(base)) => sink.ratio(&place, "qps", base, value),
            (Some(value), None) => {
                sink.number(&place, "qps", unit, value);
            }
            (None, _) => sink.reject(line, format!("'{cell}' is not a number")),
        }
    }
}

fn label(columns: &Columns, sink: &mut Sink) {
    if !sink.rows.is_empty() {
        sink.repair(Repair::MeasuredOnce, 1, format!("{} targets", columns.targets.len()));
    }
}
