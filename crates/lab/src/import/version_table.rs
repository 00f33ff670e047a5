//! Tables of db_bench throughput by version: `csum*.csv`, `fmt.*`, `sum.abs*`, `abs.*.tsv`, `rel2.*.csv`.
//!
//! ```text
//! csv  test,6.29.5,7.0.4,            tsv  6.29.5 7.0.4 test
//!      fillseq,1.00,1.02,                 1.00   1.02  fillseq
//! ```
//! Files of 2023 have no header; their columns are the targets of `sum.TAG.txt` beside them, without the
//! base in a relative table. A table whose first column is 1.00 throughout is relative to that column.

use super::model::{Target, Text, number};
use super::names::Names;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::summary_line::{first_targets, table_tag};
use super::target::rocksdb;
use std::sync::Arc;

/// Values of one test.
struct Line<'a> {
    line: u32,
    test: &'a str,
    cells: Vec<&'a str>,
}

/// Reads a whole file; `separator` is a comma (test first) or a tab (test last).
pub(super) fn parse(source: &Source, separator: char, sink: &mut Sink) {
    let mut header: Option<(u32, Vec<&str>)> = None;
    let mut lines = Vec::new();
    for (number, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        match cells(text, separator) {
            Some(("test", versions)) if header.is_none() => header = Some((number, versions)),
            Some((test, cells)) if !test.is_empty() => lines.push(Line { line: number, test, cells }),
            _ => sink.reject(number, "a line without a test name"),
        }
    }
    let Some(table) = columns(source, header, &lines, sink) else { return };
    for line in &lines {
        emit(&table, line, sink);
    }
}

/// Test name and values of a line; the comma some lines end with is dropped.
fn cells(text: &str, separator: char) -> Option<(&str, Vec<&str>)> {
    let mut cells: Vec<&str> = text.split(separator).map(str::trim).collect();
    if cells.last().is_some_and(|cell| cell.is_empty()) {
        cells.pop();
    }
    if cells.len() < 2 {
        return None;
    }
    let test = if separator == ',' { cells.remove(0) } else { cells.pop()? };
    Some((test, cells))
}

/// The columns, and what they are relative to.
struct Table {
    targets: Vec<Arc<Target>>,
    base: Option<Text>,
}

fn columns(
    source: &Source,
    header: Option<(u32, Vec<&str>)>,
    lines: &[Line<'_>],
    sink: &mut Sink,
) -> Option<Table> {
    let tag = table_tag(&source.name);
    if let Some((line, versions)) = header {
        let mut names = Names::default();
        let targets: Vec<Arc<Target>> =
            versions.iter().map(|version| names.unique("", rocksdb(version, "", &tag), line, sink)).collect();
        // A torn line is no evidence.
        let whole = || lines.iter().filter(|line| line.cells.len() == versions.len());
        let relative = whole().count() > 0 && whole().all(|line| line.cells.first() == Some(&"1.00"));
        let base = targets.first().filter(|_| relative).map(|target| target.name.clone());
        return Some(Table { targets, base });
    }
    let sibling = format!("sum.{tag}.txt");
    let mut targets = source.sibling(&sibling).map(|sum| first_targets(&sum)).unwrap_or_default();
    let width = usual_width(lines);
    if width > 0 && targets.len() == width {
        Some(Table { targets, base: None })
    } else if width > 0 && targets.len() == width + 1 {
        let base = targets.remove(0).name.clone();
        Some(Table { targets, base: Some(base) })
    } else {
        let found = targets.len();
        sink.reject(
            0,
            format!("no header, and {sibling} beside it names {found} targets for {width} columns"),
        );
        None
    }
}

/// How many cells most lines have; the larger number of two that are equally frequent.
fn usual_width(lines: &[Line<'_>]) -> usize {
    let with = |width: usize| lines.iter().filter(|line| line.cells.len() == width).count();
    lines.iter().map(|line| line.cells.len()).max_by_key(|width| (with(*width), *width)).unwrap_or(0)
}

fn emit(table: &Table, line: &Line<'_>, sink: &mut Sink) {
    if line.cells.len() != table.targets.len() {
        let (got, want) = (line.cells.len(), table.targets.len());
        return sink.reject(line.line, format!("{got} values under {want} columns"));
    }
    for (target, cell) in table.targets.iter().zip(&line.cells) {
        let place = CellOrigin { target: Arc::clone(target), step: line.test.into(), line: line.line };
        match (number(cell), &table.base) {
            (Some(value), Some(base)) => sink.ratio(&place, "ops_sec", base, value),
            (Some(value), None) => {
                sink.number(&place, "ops_sec", "ops/s", value);
            }
            (None, _) if cell.is_empty() || *cell == "NA" => {}
            (None, _) => sink.reject(line.line, format!("'{cell}' is not a number")),
        }
    }
}
