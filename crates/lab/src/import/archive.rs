//! The tables that the record keeps of an import, and that pages are made of: numbers by step and target.
//!
//! ```text
//! Report (rows in the order of files) -> Group (a file, or the files of one target each) -> MetricTable: step x target
//! ```
//! Invariants: numbers are those of the rows, nothing is averaged; a cell without a number is `None`; the same files give
//! the same archive. The changes made by repairs stay beside them.
//! Next: `tails.rs` for what can be judged, `site/archive.rs` for the pages.

use super::classic::Pivot;
use super::model::{Row, Text};
use super::names::{KROWS, is_scan};
use super::report::Report;
use super::tails::{Standstill, TailChange, standstill, tail_changes};
use super::target::version_numbers;
use super::{Effect, Repair};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An imported experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    /// The title in pages.
    pub title: String,
    /// Name, format and number of values of each file.
    pub files: Vec<(String, String, usize)>,
    /// Tables.
    pub groups: Vec<Group>,
    /// Defects that were met.
    pub notes: Vec<Note>,
    /// Files and lines that could not be read, and why.
    pub rejects: Vec<(String, u32, String)>,
    /// Stalls in series of rates.
    pub standstills: Vec<Standstill>,
}

/// A kind of defect that was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Its name in `docs/lab-import.md`.
    pub name: String,
    /// Whether numbers were changed, or only labelled.
    pub changed: bool,
    /// A description in one sentence.
    pub sentence: String,
    /// How often it was met.
    pub count: usize,
    /// Where first: file, line, and what was there.
    pub first: (String, u32, String),
}

/// Numbers of one file, or of the files of one target each that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The file, or the directory and the format.
    pub title: String,
    /// Targets, in the order of the files.
    pub targets: Vec<ArchiveTarget>,
    /// Steps, in the order of the files; those that only prepare the database are left out.
    pub steps: Vec<String>,
    /// Target that ratios are to; the first unless another was asked for.
    pub base: usize,
    /// Metrics, in the order of the files.
    pub metrics: Vec<MetricTable>,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveTarget {
    /// Name in tables.
    pub name: String,
    /// Engine or DBMS.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// Build.
    pub build: String,
    /// Configuration.
    pub configuration: String,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricTable {
    /// Its name in the files.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// The base that the numbers are ratios to, where the files have only ratios; all of them, if there are several.
    pub relative_to: Option<String>,
    /// Of ratios to several bases, that of each target of the group; empty if there is one at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<Option<String>>,
    /// For each step, the number of each target.
    pub values: Vec<Vec<Option<f64>>>,
}

impl MetricTable {
    /// The unit of a step's numbers: published rates of scans are thousands of rows a second, whatever the rest of the table is.
    pub fn unit_of(&self, step: &str) -> &str {
        let is_rate = self.relative_to.is_none() && self.name.split(", ").any(|name| name == "qps");
        if is_rate && is_scan(step) { KROWS } else { &self.unit }
    }

    /// The base that a target's numbers are ratios to, where the files have only ratios.
    pub fn base_of(&self, target: usize) -> Option<&str> {
        match self.bases.get(target) {
            Some(own) => own.as_deref(),
            None => self.relative_to.as_deref(),
        }
    }

    /// A target's number over that of `base`; the number itself where the files have only ratios.
    pub fn ratio(&self, step: usize, target: usize, base: usize) -> Option<f64> {
        let value = self.values[step][target]?;
        match self.relative_to {
            Some(_) => Some(value),
            None => self.values[step][base].filter(|base| *base != 0.0).map(|base| value / base),
        }
    }
}

impl Group {
    /// A metric by name.
    pub fn metric(&self, name: &str) -> Option<&MetricTable> {
        self.metrics.iter().find(|table| table.name == name)
    }

    /// The main metric of the table: throughput where there is one. A step has the first rate that is not 0 in it: loads of the
    /// Insert Benchmark have a column of queries, and no queries. Where steps have different ones, a table of both.
    pub fn main_metric(&self) -> Cow<'_, MetricTable> {
        const RATES: [&str; 3] = ["ops_sec", "qps", "ips"];
        const COSTS: [&str; 2] = ["cpu_us/o", "cpu/o"];
        let known: Vec<&MetricTable> = RATES.iter().filter_map(|name| self.metric(name)).collect();
        let has_any =
            |table: &MetricTable, step: usize| table.values[step].iter().flatten().any(|value| *value != 0.0);
        let of_step = |step: usize| known.iter().copied().find(|table| has_any(table, step));
        let of_steps: Vec<Option<&MetricTable>> = (0..self.steps.len()).map(of_step).collect();
        let mut used: Vec<&MetricTable> = Vec::new();
        for table in of_steps.iter().flatten() {
            if !used.iter().any(|known| known.name == table.name) {
                used.push(table);
            }
        }
        match used.as_slice() {
            [] => {
                let costs = COSTS.iter().find_map(|name| self.metric(name));
                Cow::Borrowed(known.first().copied().or(costs).unwrap_or(&self.metrics[0]))
            }
            [one] => Cow::Borrowed(one),
            [first, ..] => {
                let names: Vec<&str> = used.iter().map(|table| table.name.as_str()).collect();
                let values = of_steps
                    .iter()
                    .enumerate()
                    .map(|(step, table)| table.unwrap_or(first).values[step].clone());
                Cow::Owned(MetricTable {
                    name: names.join(", "),
                    values: values.collect(),
                    ..(*first).clone()
                })
            }
        }
    }

    /// Targets that differ in their version alone, in release order: what a line of a chart connects.
    pub fn lines(&self) -> Vec<Vec<usize>> {
        let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, target) in
            self.targets.iter().enumerate().filter(|(_, target)| !target.version.is_empty())
        {
            let name = target.line();
            match lines.iter_mut().find(|(known, _)| *known == name) {
                Some((_, members)) => members.push(index),
                None => lines.push((name, vec![index])),
            }
        }
        let sorted = lines.into_iter().map(|(_, mut members)| {
            members.sort_by_key(|member| version_numbers(&self.targets[*member].version));
            members
        });
        sorted.collect()
    }
}

impl ArchiveTarget {
    /// The part of the name that stays the same along a line of versions. The series that a file was of (`6x` in
    /// `iobuf.6x`) says the version once more, and is no part of the configuration.
    pub fn line(&self) -> String {
        let words = self
            .configuration
            .split(' ')
            .map(|word| word.split('.').filter(|part| !is_series(part)).collect::<Vec<_>>().join("."));
        let configuration = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let parts = [&self.engine, &self.build, &configuration].into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl Archive {
    /// Where the longest operations of a step change from one version to the next, for each table; corrected for all series
    /// of all tables that were searched.
    pub fn tail_changes(&self) -> Vec<Vec<TailChange>> {
        tail_changes(&self.groups)
    }

    /// Makes an archive of a report. `base` names the target or version that ratios are to, where a table has it.
    ///
    /// # Errors
    /// A clause, if there is nothing to show, or no table has the base.
    pub fn of(report: &Report, title: &str, base: Option<&str>) -> Result<Archive, String> {
        let shared = shared_directory(report);
        let own = |path: &str| path.get(shared..).unwrap_or(path).to_string();
        let tables = joined(report.grouped());
        let groups: Vec<Group> =
            tables.iter().filter_map(|(title, rows)| group(&own(title), rows, base)).collect();
        if groups.is_empty() {
            return Err("none of the files has numbers".to_string());
        }
        if let Some(base) = base
            && !groups.iter().any(|group| is_base(&group.targets[group.base], base))
        {
            return Err(format!("no table has a target {base}"));
        }
        let rejects = report.rejects.iter();
        Ok(Archive {
            title: title.to_string(),
            files: report
                .files
                .iter()
                .map(|file| (own(&file.file), file.format.name().to_string(), file.rows))
                .collect(),
            groups,
            notes: notes(report, &own),
            rejects: rejects.map(|r| (own(&r.file), r.line, r.reason.clone())).collect(),
            standstills: report.series.iter().filter_map(standstill).collect(),
        })
    }
}

/// Tables with those made one that hold a series of versions each: `sum.iobuf.6x.txt` and `sum.iobuf.7x.txt` are parts of
/// one history.
fn joined(tables: Vec<(String, Vec<Row>)>) -> Vec<(String, Vec<Row>)> {
    let mut joined: Vec<(String, Vec<Row>)> = Vec::new();
    let whole: Vec<Option<String>> = tables.iter().map(|(title, _)| without_series(title)).collect();
    for ((title, rows), name) in tables.into_iter().zip(&whole) {
        let siblings = whole.iter().filter(|other| name.is_some() && *other == name).count();
        let title = name.clone().filter(|_| siblings > 1).unwrap_or(title);
        match joined.iter_mut().find(|(known, _)| *known == title) {
            Some((_, all)) => all.extend(rows),
            None => joined.push((title, rows)),
        }
    }
    joined
}

/// Whether a part of a name is a series of versions, such as `6x`.
fn is_series(part: &str) -> bool {
    part.strip_suffix('x')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of a summary file with `*` in place of the series of versions it holds, if it says so.
fn without_series(title: &str) -> Option<String> {
    let name = title.rsplit('/').next().unwrap_or(title);
    let parts: Vec<&str> = name.split('.').collect();
    let series = parts.iter().find(|part| is_series(part)).filter(|_| parts[0].starts_with("sum"))?;
    let parts: Vec<&str> = parts.iter().map(|part| if part == series { "*" } else { part }).collect();
    Some(format!("{}{}", &title[..title.len() - name.len()], parts.join(".")))
}

fn is_base(target: &ArchiveTarget, name: &str) -> bool {
    target.name == name || target.version == name
}

fn group(title: &str, rows: &[Row], base: Option<&str>) -> Option<Group> {
    let mut names: Vec<&Text> = Vec::new();
    for row in rows.iter().filter(|row| row.number().is_some()) {
        if !names.contains(&&row.metric) {
            names.push(&row.metric);
        }
    }
    let pivots: Vec<(&Text, Pivot)> = names.into_iter().map(|name| (name, Pivot::of(rows, name))).collect();
    let (mut targets, mut steps): (Vec<ArchiveTarget>, Vec<Text>) = (Vec::new(), Vec::new());
    for (_, pivot) in &pivots {
        for target in &pivot.targets {
            if !targets.iter().any(|known| known.name == *target.name) {
                targets.push(ArchiveTarget {
                    name: target.name.to_string(),
                    engine: target.engine.to_string(),
                    version: target.version.to_string(),
                    build: target.build.to_string(),
                    configuration: target.configuration.to_string(),
                });
            }
        }
        for step in &pivot.steps {
            if !steps.contains(step) {
                steps.push(step.clone());
            }
        }
    }
    let metrics: Vec<MetricTable> = pivots
        .iter()
        .filter(|(_, pivot)| !pivot.targets.is_empty())
        .map(|(name, pivot)| {
            let unit = rows.iter().find(|row| row.metric == **name).map_or("", |row| row.unit);
            let number = |step: &Text, target: &ArchiveTarget| {
                let value = pivot.values.get(&(step.clone(), Text::from(target.name.as_str())));
                value.copied().filter(|value| value.is_finite())
            };
            let of_step = |step| targets.iter().map(|target| number(step, target)).collect();
            let base = |target: &ArchiveTarget| {
                pivot.bases.get(&Text::from(target.name.as_str())).map(ToString::to_string)
            };
            let several = pivot.base_names().len() > 1;
            MetricTable {
                name: name.to_string(),
                unit: unit.to_string(),
                relative_to: pivot.said_bases(),
                bases: targets.iter().filter(|_| several).map(base).collect(),
                values: steps.iter().map(of_step).collect(),
            }
        })
        .collect();
    let base = base.and_then(|base| targets.iter().position(|target| is_base(target, base))).unwrap_or(0);
    let steps = steps.iter().map(ToString::to_string).collect();
    (!metrics.is_empty()).then(|| Group { title: title.to_string(), targets, steps, base, metrics })
}

/// Bytes of the directory that all files lie in: where it was on the machine of the importer is nobody's business.
fn shared_directory(report: &Report) -> usize {
    let read = report.files.iter().map(|file| &*file.file);
    let all: Vec<&str> = read.chain(report.rejects.iter().map(|reject| &*reject.file)).collect();
    let first = all.first().copied().unwrap_or_default();
    let ends = first.match_indices('/').map(|(at, _)| at + 1);
    ends.take_while(|end| all.iter().all(|path| path.starts_with(&first[..*end]))).last().unwrap_or(0)
}

fn notes(report: &Report, own: &dyn Fn(&str) -> String) -> Vec<Note> {
    let mut places: BTreeMap<Repair, Vec<_>> = BTreeMap::new();
    for repaired in &report.repairs {
        places.entry(repaired.repair).or_default().push(repaired);
    }
    let mut notes: Vec<Note> = places
        .into_iter()
        .map(|(repair, places)| Note {
            name: repair.name(),
            changed: repair.effect() == Effect::Changed,
            sentence: repair.sentence().to_string(),
            count: places.len(),
            first: (own(&places[0].file), places[0].line, places[0].what.clone()),
        })
        .collect();
    notes.sort_by_key(|note| !note.changed);
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_series_are_parts_of_one_history() {
        assert_eq!(without_series("a/sum.iobuf.6x.txt").as_deref(), Some("a/sum.iobuf.*.txt"));
        assert_eq!(without_series("/sum.10x.txt").as_deref(), Some("/sum.*.txt"));
        for title in ["a/sum.iobuf.gcc.txt", "a/abs.iobuf.6x.tsv", "6x/sum.txt", "sum.x.txt", ""] {
            assert_eq!(without_series(title), None, "{title}");
        }
        let titles = |names: &[&str]| -> Vec<String> {
            let tables = names.iter().map(|name| (name.to_string(), Vec::new())).collect();
            joined(tables).into_iter().map(|(title, _)| title).collect()
        };
        assert_eq!(titles(&["d/sum.a.6x.txt", "e", "d/sum.a.7x.txt"]), ["d/sum.a.*.txt", "e"]);
        assert_eq!(titles(&["d/sum.a.6x.txt", "d/sum.b.7x.txt"]), ["d/sum.a.6x.txt", "d/sum.b.7x.txt"]);
    }

    #[test]
    fn loads_have_the_rate_of_their_rows_and_queries_that_of_queries() {
        let target = |name: &str| ArchiveTarget {
            name: name.to_string(),
            engine: String::new(),
            version: String::new(),
            build: String::new(),
            configuration: String::new(),
        };
        let metric = |name: &str, values: [[f64; 2]; 2]| MetricTable {
            name: name.to_string(),
            unit: "1/s".to_string(),
            relative_to: None,
            bases: Vec::new(),
            values: values.map(|row| row.map(Some).to_vec()).to_vec(),
        };
        let mut group = Group {
            title: "t".to_string(),
            targets: vec![target("a"), target("b")],
            steps: vec!["l.i0".to_string(), "qr100".to_string()],
            base: 0,
            metrics: vec![
                metric("ips", [[100.0, 150.0], [10.0, 10.0]]),
                metric("qps", [[0.0, 0.0], [50.0, 40.0]]),
            ],
        };
        let main = group.main_metric().into_owned();
        assert_eq!(
            (main.name.as_str(), main.ratio(0, 1, 0), main.ratio(1, 1, 0)),
            ("ips, qps", Some(1.5), Some(0.8))
        );
        group.steps.pop();
        group.metrics.iter_mut().for_each(|metric| _ = metric.values.pop());
        assert_eq!(group.main_metric().name, "ips", "a file of one load alone");
        group.metrics.remove(0);
        assert_eq!(group.main_metric().name, "qps", "nothing else is there");
        let units = ["scan_range=100", "point-query_range=100"].map(|step| group.metrics[0].unit_of(step));
        assert_eq!(units, ["krows/s", "1/s"]);
    }

    #[test]
    fn versions_of_several_series_are_one_line_and_configurations_are_not() {
        let line = |configuration: &str, build: &str| {
            ArchiveTarget {
                name: String::new(),
                engine: "rocksdb".to_string(),
                version: "1".to_string(),
                build: build.to_string(),
                configuration: configuration.to_string(),
            }
            .line()
        };
        assert_eq!(line("iobuf.6x bm.lc.nt1", ""), line("iobuf.7x bm.lc.nt1", ""));
        assert_eq!(line("6x", "gcc"), "rocksdb gcc");
        assert_ne!(line("iobuf.6x", ""), line("byrx.6x", ""));
        assert_ne!(line("iobuf.6x", "gcc"), line("iobuf.6x", "clang"));
        assert_ne!(line("iobuf.x", ""), line("iobuf", ""), "no number, no series");
    }
}
