//! The result of an import: everything as data, and a summary at 80 columns for people.

use super::classic::{Classic, classic};
use super::format::Format;
use super::model::{Reject, Row, Series, Target, Text};
use super::repair::{Effect, Repair, Repaired};
use crate::report::text::align;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{Display, Formatter, Result as FmtResult};
use std::path::Path;
use std::sync::Arc;

/// Columns of the summary.
const WIDTH: usize = 80;
/// Rejects printed before the rest is only counted.
const REJECTS_SHOWN: usize = 20;

/// One imported file.
#[derive(Clone, Debug, Serialize)]
pub struct FileSummary {
    /// The file.
    pub file: Text,
    /// Its format.
    pub format: Format,
    /// Rows it gave.
    pub rows: usize,
    /// Series it gave.
    pub series: usize,
}

/// Everything an import gave, in the order of the files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Files whose format is known.
    pub files: Vec<FileSummary>,
    /// Measurements.
    pub rows: Vec<Row>,
    /// Samples.
    pub series: Vec<Series>,
    /// Repairs, where they applied.
    pub repairs: Vec<Repaired>,
    /// Files and lines that could not be read.
    pub rejects: Vec<Reject>,
}

impl FileSummary {
    /// The title of the table that its rows are in.
    fn table(&self) -> String {
        match Path::new(&*self.file).ancestors().nth(2) {
            Some(above) if self.format.has_one_target() => {
                format!("{}/*: {}", above.display(), self.format.name())
            }
            _ => self.file.to_string(),
        }
    }
}

impl Report {
    /// Gives targets of files of one target each that recur in a step of a table names of their own: files of one directory, and of
    /// directories side by side, may be of the same version, and those of one server of several numbers of clients.
    pub(super) fn tell_repeated_targets_apart(&mut self) {
        let mut used: HashSet<(String, Text, Text, Text)> = HashSet::new();
        let (mut rows, mut series) = (self.rows.as_mut_slice(), self.series.as_mut_slice());
        for file in &self.files {
            let (of_file, other_rows) = rows.split_at_mut(file.rows);
            let (series_of_file, other_series) = series.split_at_mut(file.series);
            (rows, series) = (other_rows, other_series);
            if !file.format.has_one_target() {
                continue;
            }
            let table = file.table();
            // One target's results of sysbench are files of a number each.
            let by_metric = file.format == Format::SysbenchResult;
            let kind = |row: &Row| if by_metric { row.metric.clone() } else { Text::default() };
            let mut kinds: HashMap<(Text, Text), HashSet<Text>> = HashMap::new();
            for row in of_file.iter() {
                kinds.entry((row.step.clone(), row.target.name.clone())).or_default().insert(kind(row));
            }
            let mut renamed: HashMap<(Text, Text), Arc<Target>> = HashMap::new();
            for row in of_file {
                let cell = (row.step.clone(), row.target.name.clone());
                if !renamed.contains_key(&cell) {
                    let is_new = |name: &Text| {
                        let of = |kind: &Text| (table.clone(), cell.0.clone(), name.clone(), kind.clone());
                        let own: Vec<_> = kinds[&cell].iter().map(of).collect();
                        let is_new = own.iter().all(|cell| !used.contains(cell));
                        if is_new {
                            used.extend(own);
                        }
                        is_new
                    };
                    let target = with_new_name(&row.target, is_new);
                    if target.name != cell.1 {
                        let (repair, line) = (Repair::RepeatedTarget, row.line);
                        let what = format!("named {}", target.name);
                        self.repairs.push(Repaired { repair, file: file.file.clone(), line, what });
                    }
                    renamed.insert(cell.clone(), target);
                }
                row.target = Arc::clone(&renamed[&cell]);
            }
            for series in series_of_file {
                if let Some(target) = renamed.get(&(series.step.clone(), series.target.name.clone())) {
                    series.target = Arc::clone(target);
                }
            }
        }
    }

    /// The classic tables of a metric: one for each file with several targets, and one for the files of one
    /// target each that have the same format and lie in sibling directories.
    ///
    /// # Errors
    /// No file has the metric, or none has the base.
    pub fn tables(&self, request: &Classic) -> Result<Vec<String>, String> {
        let mut tables = Vec::new();
        let mut refusal = None;
        for (title, rows) in self.groups(&request.metric) {
            match classic(&rows, request) {
                Ok(table) => tables.push(format!("{}\n{table}", shorten(&title, WIDTH))),
                Err(why) => refusal = Some(why),
            }
        }
        match (tables.is_empty(), refusal) {
            (false, _) => Ok(tables),
            (true, Some(why)) => Err(why),
            (true, None) => Err(format!("no file has the metric {}", request.metric)),
        }
    }

    /// Titles and rows of the tables that have the metric, in the order of their first files.
    fn groups(&self, metric: &str) -> Vec<(String, Vec<Row>)> {
        self.groups_of(|row| &*row.metric == metric)
    }

    /// Titles and rows of all tables, in the order of their first files.
    pub(super) fn grouped(&self) -> Vec<(String, Vec<Row>)> {
        self.groups_of(|_| true)
    }

    fn groups_of(&self, wanted: impl Fn(&Row) -> bool) -> Vec<(String, Vec<Row>)> {
        let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
        let mut start = 0;
        for file in &self.files {
            let rows = &self.rows[start..start + file.rows];
            start += file.rows;
            if !rows.iter().any(&wanted) {
                continue;
            }
            let title = file.table();
            match groups.iter_mut().find(|(other, _)| *other == title) {
                Some((_, group)) => group.extend_from_slice(rows),
                None => groups.push((title, rows.to_vec())),
            }
        }
        groups
    }

    fn formats(&self) -> BTreeMap<Format, (usize, usize, usize)> {
        let mut formats = BTreeMap::new();
        for file in &self.files {
            let (files, rows, series) = formats.entry(file.format).or_default();
            *files += 1;
            *rows += file.rows;
            *series += file.series;
        }
        formats
    }

    fn write_repairs(&self, to: &mut Formatter<'_>) -> FmtResult {
        let mut places: BTreeMap<Repair, Vec<&Repaired>> = BTreeMap::new();
        for repaired in &self.repairs {
            places.entry(repaired.repair).or_default().push(repaired);
        }
        for (effect, title) in
            [(Effect::Changed, "repaired"), (Effect::Labelled, "labelled: unchanged, but read with care")]
        {
            let of_effect: Vec<_> = places.iter().filter(|(repair, _)| repair.effect() == effect).collect();
            if of_effect.is_empty() {
                continue;
            }
            writeln!(to, "\n{title}")?;
            for (repair, places) in of_effect {
                let count = places.len();
                let first = places[0];
                writeln!(to, "{}", wrap(&format!("{count} x {}", repair.sentence()), "  ", "    "))?;
                writeln!(to, "    first {}", location(&first.file, first.line, WIDTH - 10))?;
                writeln!(to, "{}", wrap(&first.what, "      ", "      "))?;
            }
        }
        Ok(())
    }

    fn write_rejects(&self, to: &mut Formatter<'_>) -> FmtResult {
        if self.rejects.is_empty() {
            return writeln!(to, "\nnothing was rejected");
        }
        writeln!(to, "\nrejected: {}", self.rejects.len())?;
        for reject in self.rejects.iter().take(REJECTS_SHOWN) {
            writeln!(to, "  {}", location(&reject.file, reject.line, WIDTH - 2))?;
            writeln!(to, "{}", wrap(&reject.reason, "    ", "    "))?;
        }
        match self.rejects.len().checked_sub(REJECTS_SHOWN) {
            Some(more) if more > 0 => writeln!(to, "  and {more} more; --json lists all"),
            _ => Ok(()),
        }
    }
}

impl Display for Report {
    fn fmt(&self, to: &mut Formatter<'_>) -> FmtResult {
        let head = ["format", "files", "rows", "series"].map(ToString::to_string).to_vec();
        let mut rows = vec![head];
        for (format, (files, count, series)) in self.formats() {
            let numbers = [files, count, series].map(|n| n.to_string());
            rows.push([vec![format.name().to_string()], numbers.to_vec()].concat());
        }
        let totals = [self.files.len(), self.rows.len(), self.series.len()].map(|n| n.to_string());
        rows.push([vec!["all".to_string()], totals.to_vec()].concat());
        write!(to, "{}", align(&rows))?;
        self.write_repairs(to)?;
        self.write_rejects(to)
    }
}

/// `target`, or the same under the first of `8.7.3#2`, `8.7.3#3` .. that is new.
fn with_new_name(target: &Arc<Target>, mut is_new: impl FnMut(&Text) -> bool) -> Arc<Target> {
    if is_new(&target.name) {
        return Arc::clone(target);
    }
    let own = target.name.split('#').next().unwrap_or_default();
    let mut names = (2..).map(|count: usize| Text::from(format!("{own}#{count}")));
    let name = names.find(|name| is_new(name)).expect("there are more numbers than targets");
    Arc::new(Target { name, ..Target::clone(target) })
}

/// `file:line` in at most `width` columns, cut at the left.
fn location(file: &str, line: u32, width: usize) -> String {
    let line = if line == 0 { String::new() } else { format!(":{line}") };
    format!("{}{line}", shorten(file, width.saturating_sub(line.len())))
}

/// The end of `text` where it is too wide.
fn shorten(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_string();
    }
    let kept: String = text.chars().skip(count - width.saturating_sub(3)).collect();
    format!("...{kept}")
}

/// Words in lines of at most 80 columns; a longer word stands alone.
pub(super) fn wrap(text: &str, first: &str, others: &str) -> String {
    let mut lines = vec![first.to_string()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if !empty && line + 1 + word.chars().count() > WIDTH {
            lines.push(others.to_string());
            empty = true;
        }
        if let Some(line) = lines.last_mut() {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        empty = false;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_things_fit_the_line() {
        let path = "a/".repeat(60) + "file";
        assert_eq!(location(&path, 12345, 40).chars().count(), 40);
        assert!(location(&path, 12345, 40).ends_with("a/file:12345"));
        let text = wrap(&"word ".repeat(40), "  ", "    ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH) && text.lines().count() == 3);
    }
}
