//! The posts' display: one metric by test and target, relative to a base, coloured by a fixed band.
//!
//! ```text
//! base   : x.my8044_rel_o2nofp.z12a_c8r32.pk1
//! col-1  : x.my8044_rel_o2nofp.z12a_gtid_c8r32.pk1
//!
//! test                  base   col-1
//! insert_range=100     1.00=   0.95-
//! ```
//! A sign stands beside every coloured number, so that colour is never the only carrier: `-` red, `+` green or
//! blue, `=` inside the band. One run per target is no verdict, and the text says so.
//!
//! Next: `tables.rs` of the crate for the lab's own ratios, which pair rounds.

use super::colours::{Better, Colour, meets_sla, page_absolute_colours, page_colour, post_colour};
use super::model::{Row, Target, Text};
use super::repair::Repair;
use crate::tables::align;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Columns of text output.
const WIDTH: usize = 80;
/// Longest target name that heads a column; longer ones get a number and a legend.
const LONGEST_HEAD: usize = 10;

/// What the numbers are and how they are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Ratios to the base; red up to 0.95, green from 1.05, grey between.
    Posts,
    /// Ratios to the base as on the Insert Benchmark's page: yellow below 95 %, blue above 105 %.
    Page,
    /// Absolute values as on that page: the best quarter of the gap green, the worst red, grey below the SLA.
    PageAbsolute,
}

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Aligned, at most 80 columns, with signs.
    Text,
    /// Test first, versions in the header.
    Csv,
    /// Versions first, test last.
    Tsv,
}

/// A table asked for.
#[derive(Clone, Debug)]
pub struct Classic {
    /// The metric: `ops_sec`, `qps`, `cpu/o`, `ips`, `pmax`.
    pub metric: String,
    /// The target to divide by; the first by default.
    pub base: Option<String>,
    /// Numbers and colours.
    pub view: View,
    /// Layout.
    pub output: Output,
    /// Colour text output for a terminal.
    pub colours: bool,
}

/// Steps that only settle the database; tables leave them out.
fn settles(step: &str) -> bool {
    step.starts_with("revrange.") || step.starts_with("overwritesome")
}

/// Renders the table of one file's rows. Absolute rows are divided by the base; where there are only ratios,
/// they are shown as they are.
///
/// # Errors
/// A clause, where the rows have no such metric or base.
pub fn classic(rows: &[Row], request: &Classic) -> Result<String, String> {
    let table = Table::of(rows, request)?;
    Ok(match request.output {
        Output::Text => table.text(request.colours),
        Output::Csv => table.separated(','),
        Output::Tsv => table.separated('\t'),
    })
}

struct Cell {
    value: f64,
    colour: Colour,
}

struct Table {
    /// Name of the base where no column shows it.
    outside_base: Option<Text>,
    targets: Vec<Arc<Target>>,
    lines: Vec<(Text, Vec<Option<Cell>>)>,
    relative: bool,
    repeated: bool,
}

impl Table {
    fn of(rows: &[Row], request: &Classic) -> Result<Table, String> {
        let of_metric = || rows.iter().filter(|row| *row.metric == request.metric && !settles(&row.step));
        let absolute = of_metric().any(|row| row.relative_to.is_none());
        let mut targets: Vec<Arc<Target>> = Vec::new();
        let mut steps: Vec<Text> = Vec::new();
        let mut values: HashMap<(Text, Text), f64> = HashMap::new();
        let mut outside_base = None;
        for row in of_metric().filter(|row| row.relative_to.is_none() == absolute) {
            let Some(value) = row.number() else { continue };
            if !targets.iter().any(|target| target.name == row.target.name) {
                targets.push(Arc::clone(&row.target));
            }
            if !steps.contains(&row.step) {
                steps.push(row.step.clone());
            }
            outside_base.clone_from(&row.relative_to);
            values.entry((row.step.clone(), row.target.name.clone())).or_insert(value);
        }
        let base = match (&request.base, targets.first()) {
            (_, None) => return Err(format!("no numbers of the metric {}", request.metric)),
            (Some(base), _) if !absolute => return Err(format!("ratios cannot be taken to {base} again")),
            (Some(base), _) => targets
                .iter()
                .find(|target| *target.name == **base || *target.version == **base)
                .ok_or_else(|| format!("no target {base}"))?
                .name
                .clone(),
            (None, Some(first)) => first.name.clone(),
        };
        if !absolute && request.view == View::PageAbsolute {
            return Err(format!("{} is given as ratios only", request.metric));
        }
        if targets.iter().any(|target| Some(&target.name) == outside_base.as_ref()) {
            outside_base = None;
        }
        let repeated = targets.iter().any(|target| target.name.contains('#'));
        let relative = request.view != View::PageAbsolute;
        let mut table = Table { outside_base, targets, lines: Vec::new(), relative, repeated };
        for step in steps {
            let of = |target: &Text| values.get(&(step.clone(), target.clone())).copied();
            let divisor = if absolute && relative { of(&base) } else { Some(1.0) };
            let numbers: Vec<Option<f64>> = table
                .targets
                .iter()
                .map(|target| Some(of(&target.name)? / divisor.filter(|divisor| *divisor != 0.0)?))
                .collect();
            let cells = table.coloured(rows, &step, &numbers, &base, request);
            table.lines.push((step, cells));
        }
        Ok(table)
    }

    fn coloured(
        &self,
        rows: &[Row],
        step: &Text,
        numbers: &[Option<f64>],
        base: &Text,
        request: &Classic,
    ) -> Vec<Option<Cell>> {
        let colours: Vec<Colour> = match request.view {
            View::Posts => numbers.iter().map(|n| n.map_or(Colour::Plain, post_colour)).collect(),
            View::Page => {
                let of = |(number, target): (&Option<f64>, &Arc<Target>)| match number {
                    Some(number) if target.name != *base => page_colour(*number),
                    _ => Colour::Plain,
                };
                numbers.iter().zip(&self.targets).map(of).collect()
            }
            View::PageAbsolute => {
                let met = |(number, target): (&Option<f64>, &Arc<Target>)| {
                    number.filter(|_| meets_sla(step, inserts(rows, step, &target.name)))
                };
                let values: Vec<Option<f64>> = numbers.iter().zip(&self.targets).map(met).collect();
                page_absolute_colours(&values, Better::of(&request.metric))
            }
        };
        let cells = numbers.iter().zip(colours);
        cells.map(|(number, colour)| Some(Cell { value: (*number)?, colour })).collect()
    }

    fn cell_text(&self, cell: &Cell) -> String {
        if self.relative || cell.value.abs() < 10.0 {
            format!("{:.2}", cell.value)
        } else {
            format!("{:.0}", cell.value)
        }
    }

    fn text(&self, colours: bool) -> String {
        let heads = self.heads();
        let mut text = self.legend(&heads);
        let test_width = self.lines.iter().map(|(step, _)| step.chars().count()).max().unwrap_or(0).max(4);
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|(_, cells)| cells[column].as_ref());
            let widest = cells.map(|cell| self.cell_text(cell).chars().count() + 1).max().unwrap_or(0);
            widest.max(heads[column].chars().count()) + 2
        };
        let mut start = 0;
        while start < self.targets.len() {
            let (mut end, mut used) = (start, test_width);
            while end < self.targets.len() && (end == start || used + width(end) <= WIDTH) {
                used += width(end);
                end += 1;
            }
            text.push_str(&self.block(&heads, start..end, colours));
            text.push('\n');
            start = end;
        }
        text.push_str(&self.footer());
        text
    }

    /// Column heads: names, or else versions where they tell the targets apart, or else numbers.
    fn heads(&self) -> Vec<String> {
        let fits = |heads: &[String]| {
            let mut seen = HashSet::new();
            heads.iter().all(|head| {
                !head.is_empty() && head.chars().count() <= LONGEST_HEAD && seen.insert(head.as_str())
            })
        };
        let names: Vec<String> = self.targets.iter().map(|target| target.name.to_string()).collect();
        let versions: Vec<String> = self.targets.iter().map(|target| target.version.to_string()).collect();
        if fits(&names) {
            names
        } else if fits(&versions) {
            versions
        } else {
            (1..=self.targets.len()).map(|index| format!("col-{index}")).collect()
        }
    }

    fn legend(&self, heads: &[String]) -> String {
        let mut text = String::new();
        if let Some(base) = &self.outside_base {
            text.push_str(&format!("relative to: {base}\n"));
        }
        let width = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
        for (head, target) in heads.iter().zip(&self.targets) {
            if **head != *target.name {
                text.push_str(&format!("{head:<width$} : {}\n", target.name));
            }
        }
        if text.is_empty() { text } else { text + "\n" }
    }

    fn block(&self, heads: &[String], columns: std::ops::Range<usize>, colours: bool) -> String {
        let mut rows = vec![[vec!["test".to_string()], heads[columns.clone()].to_vec()].concat()];
        for (step, cells) in &self.lines {
            let texts = cells[columns.clone()].iter().map(|cell| match cell {
                Some(cell) => format!("{}{}", self.cell_text(cell), cell.colour.sign()),
                None => String::new(),
            });
            rows.push(std::iter::once(step.to_string()).chain(texts).collect());
        }
        let plain = align(&rows);
        if !colours {
            return plain;
        }
        // Colour codes have no width, so they go in after the columns are aligned.
        let mut painted = String::new();
        for (index, line) in plain.lines().enumerate() {
            let mut rest = line;
            if let Some(row) = index.checked_sub(1) {
                let cells = self.lines[row].1[columns.clone()].iter();
                for (cell, text) in cells.zip(&rows[index][1..]).filter(|(_, text)| !text.is_empty()) {
                    let Some((before, after)) = rest.split_once(text.trim_end()) else { continue };
                    painted.push_str(before);
                    painted.push_str(
                        &cell.as_ref().map_or(Colour::Plain, |cell| cell.colour).paint(text.trim_end()),
                    );
                    rest = after;
                }
            }
            painted.push_str(rest);
            painted.push('\n');
        }
        painted
    }

    fn footer(&self) -> String {
        let runs = if self.repeated { "" } else { "One run per target: no verdict. " };
        let band = if self.relative { Repair::FixedThreshold.sentence() } else { "" };
        let mut text = String::new();
        for part in [runs, band].into_iter().filter(|part| !part.is_empty()) {
            for line in super::report::wrap(part, "", "").lines() {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    fn separated(&self, separator: char) -> String {
        let test_first = separator == ',';
        let join = |test: &str, mut cells: Vec<String>| {
            cells.insert(if test_first { 0 } else { cells.len() }, test.to_string());
            cells.join(&separator.to_string()) + "\n"
        };
        let mut text = join("test", self.targets.iter().map(|target| target.name.to_string()).collect());
        for (step, cells) in &self.lines {
            let cells =
                cells.iter().map(|cell| cell.as_ref().map_or("NA".to_string(), |c| self.cell_text(c)));
            text.push_str(&join(step, cells.collect()));
        }
        text
    }
}

/// Insert rate of a target in a step; infinite where the file has none, as nothing was asked then.
fn inserts(rows: &[Row], step: &Text, target: &Text) -> f64 {
    let of = |row: &&Row| &*row.metric == "ips" && row.step == *step && row.target.name == *target;
    rows.iter().find(of).and_then(Row::number).unwrap_or(f64::INFINITY)
}
