//! Classic tables as text of at most 80 columns, as csv and as tsv.

use super::classic::{Cell, Table};
use super::repair::Repair;
use super::report::wrap;
use crate::report::text::align;
use std::collections::HashSet;

/// Columns of text output.
const WIDTH: usize = 80;
/// Longest target name that heads a column; longer ones get a number and a legend.
const LONGEST_HEAD: usize = 10;

impl Table {
    fn cell_text(&self, cell: &Cell) -> String {
        match cell.value.abs() {
            _ if self.relative => format!("{:.2}", cell.value),
            size if size >= 10.0 => format!("{:.0}", cell.value),
            size if size >= 0.1 || size == 0.0 => format!("{:.2}", cell.value),
            _ => format!("{:.6}", cell.value),
        }
    }

    /// Aligned text with signs, in blocks of columns; coloured for a terminal if asked.
    pub(super) fn text(&self, colours: bool, runs: Option<&str>) -> String {
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
        text.push_str(&self.footer(runs));
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
        match &self.bases[..] {
            [] => {}
            [(base, _)] => text.push_str(&format!("relative to: {base}\n")),
            several => {
                for (base, targets) in several {
                    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
                    text.push_str(&wrap(&format!("relative to {base}: {}", names.join(", ")), "", "  "));
                    text.push('\n');
                }
            }
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
        let mut painted = String::new();
        for (index, line) in plain.lines().enumerate() {
            match index.checked_sub(1) {
                None => painted.push_str(line),
                Some(row) => {
                    painted.push_str(&paint(line, &rows[index], &self.lines[row].1[columns.clone()]))
                }
            }
            painted.push('\n');
        }
        painted
    }

    fn footer(&self, said: Option<&str>) -> String {
        let repeated = self.targets.iter().any(|target| target.name.contains('#'));
        let runs = said.unwrap_or(if repeated { "" } else { "One run per target: no verdict. " });
        let band = if self.relative { Repair::FixedThreshold.sentence() } else { "" };
        let mut text = String::new();
        for part in [runs, band].into_iter().filter(|part| !part.is_empty()) {
            for line in wrap(part, "", "").lines() {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    /// One line a step: the test first and commas, or the test last and tabs.
    pub(super) fn separated(&self, separator: char) -> String {
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

/// Colours the cells of an aligned line. Colour codes have no width, so they go in after the alignment.
fn paint(line: &str, texts: &[String], cells: &[Option<Cell>]) -> String {
    let (test, mut rest) = line.split_at(texts[0].len());
    let mut painted = test.to_string();
    for (cell, text) in cells.iter().zip(&texts[1..]) {
        let text = text.trim_end();
        if let (Some(cell), Some((gap, after))) = (cell, rest.split_once(text)) {
            painted.push_str(gap);
            painted.push_str(&cell.colour.paint(text));
            rest = after;
        }
    }
    painted + rest
}
