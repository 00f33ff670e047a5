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
//! Next: `colours.rs` for the rules, `layout.rs` for the text; `report/summary_line.rs` for the lab's own
//! ratios, which pair rounds.

use super::colours::{Better, Colour, meets_sla, page_absolute_colours, page_colour, post_colour};
use super::model::{Row, Target, Text};
use std::collections::HashMap;
use std::sync::Arc;

/// The kind of numbers and their colours.
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

/// Steps that only prepare the database; tables leave them out.
fn only_prepares(step: &str) -> bool {
    step.starts_with("revrange.") || step.starts_with("overwritesome")
}

/// Renders the table of one file's rows. Absolute rows are divided by the base; where there are only ratios,
/// they are shown as they are.
///
/// # Errors
/// A clause, where the rows have no such metric or base.
pub fn classic(rows: &[Row], request: &Classic) -> Result<String, String> {
    classic_with(rows, request, None)
}

/// As [`classic`], with `runs` in place of the sentence that says how often each target ran.
///
/// # Errors
/// As there.
pub fn classic_with(rows: &[Row], request: &Classic, runs: Option<&str>) -> Result<String, String> {
    let table = Table::of(rows, request)?;
    Ok(match request.output {
        Output::Text => table.text(request.colours, runs),
        Output::Csv => table.separated(','),
        Output::Tsv => table.separated('\t'),
    })
}

/// One number of a table.
pub(super) struct Cell {
    pub value: f64,
    pub colour: Colour,
}

/// A table, ready to be laid out.
pub(super) struct Table {
    /// Bases with the targets that are relative to each, of ratios whose base no column shows, or that have several.
    pub bases: Vec<(Text, Vec<Text>)>,
    /// The columns.
    pub targets: Vec<Arc<Target>>,
    /// Step and cells of each line.
    pub lines: Vec<(Text, Vec<Option<Cell>>)>,
    /// Whether the numbers are ratios.
    pub relative: bool,
}

/// Each base with its targets, both in the order of the targets; pairs are a base and a target.
pub(crate) fn by_base<N: PartialEq>(pairs: impl Iterator<Item = (N, N)>) -> Vec<(N, Vec<N>)> {
    let mut groups: Vec<(N, Vec<N>)> = Vec::new();
    for (base, target) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == base) {
            Some((_, targets)) => targets.push(target),
            None => groups.push((base, vec![target])),
        }
    }
    groups
}

/// The numbers of one metric by step and target.
pub(super) struct Pivot {
    pub targets: Vec<Arc<Target>>,
    pub steps: Vec<Text>,
    pub values: HashMap<(Text, Text), f64>,
    /// The target that each target's numbers are ratios to; empty for absolute numbers.
    pub bases: HashMap<Text, Text>,
}

impl Pivot {
    /// Absolute rows if there are any, or else ratios.
    pub fn of(rows: &[Row], metric: &str) -> Pivot {
        let of_metric = || rows.iter().filter(|row| &*row.metric == metric && !only_prepares(&row.step));
        let absolute = of_metric().any(|row| row.relative_to.is_none());
        let mut pivot =
            Pivot { targets: Vec::new(), steps: Vec::new(), values: HashMap::new(), bases: HashMap::new() };
        for row in of_metric().filter(|row| row.relative_to.is_none() == absolute) {
            let Some(value) = row.number() else { continue };
            if !pivot.targets.iter().any(|target| target.name == row.target.name) {
                pivot.targets.push(Arc::clone(&row.target));
            }
            if !pivot.steps.contains(&row.step) {
                pivot.steps.push(row.step.clone());
            }
            if let Some(base) = &row.relative_to {
                pivot.bases.entry(row.target.name.clone()).or_insert_with(|| base.clone());
            }
            pivot.values.entry((row.step.clone(), row.target.name.clone())).or_insert(value);
        }
        pivot
    }

    /// Whether the numbers are ratios.
    fn is_relative(&self) -> bool {
        !self.bases.is_empty()
    }

    /// The bases of ratios, each with its targets, in the order of the targets.
    pub fn base_names(&self) -> Vec<(Text, Vec<Text>)> {
        let of = |target: &Arc<Target>| Some((self.bases.get(&target.name)?.clone(), target.name.clone()));
        by_base(self.targets.iter().filter_map(of))
    }

    /// The bases of ratios in words; `None` for absolute numbers.
    pub fn said_bases(&self) -> Option<String> {
        let names: Vec<String> = self.base_names().iter().map(|(base, _)| base.to_string()).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    }

    /// Name of the target to divide by.
    fn base(&self, request: &Classic) -> Result<Text, String> {
        let metric = &request.metric;
        let first = self.targets.first().ok_or_else(|| format!("no numbers of the metric {metric}"))?;
        let is = |target: &&Arc<Target>, name: &str| &*target.name == name || &*target.version == name;
        match (&request.base, self.said_bases()) {
            (_, Some(_)) if request.view == View::PageAbsolute => {
                Err(format!("{metric} is given as ratios only"))
            }
            (Some(_), Some(base)) => Err(format!("{metric} is given as ratios to {base} only")),
            (Some(name), None) => match self.targets.iter().find(|target| is(target, name)) {
                Some(target) => Ok(target.name.clone()),
                None => Err(format!("no target {name}")),
            },
            (None, _) => Ok(first.name.clone()),
        }
    }

    /// Numbers of a step by target, divided by `base` if there is one.
    fn line(&self, step: &Text, base: Option<&Text>) -> Vec<Option<f64>> {
        let of = |target: &Text| self.values.get(&(step.clone(), target.clone())).copied();
        let divisor = base.map_or(Some(1.0), of).filter(|divisor| *divisor != 0.0);
        self.targets.iter().map(|target| Some(of(&target.name)? / divisor?)).collect()
    }
}

impl Table {
    fn of(rows: &[Row], request: &Classic) -> Result<Table, String> {
        let pivot = Pivot::of(rows, &request.metric);
        let base = pivot.base(request)?;
        let relative = request.view != View::PageAbsolute;
        let divisor = Some(&base).filter(|_| relative && !pivot.is_relative());
        let lines = pivot.steps.iter().map(|step| {
            let numbers = pivot.line(step, divisor);
            let colours = colours(rows, &pivot, step, &numbers, &base, request);
            let cells = numbers.into_iter().zip(colours);
            let cells = cells.map(|(value, colour)| Some(Cell { value: value?, colour }));
            (step.clone(), cells.collect())
        });
        let lines = lines.collect();
        let shown = |base: &Text| pivot.targets.iter().any(|target| target.name == *base);
        let bases = match pivot.base_names() {
            names if matches!(&names[..], [(base, _)] if shown(base)) => Vec::new(),
            names => names,
        };
        Ok(Table { bases, lines, relative, targets: pivot.targets })
    }
}

/// Colours of a line. Metrics that are better when low are coloured the other way round.
fn colours(
    rows: &[Row],
    pivot: &Pivot,
    step: &Text,
    numbers: &[Option<f64>],
    base: &Text,
    request: &Classic,
) -> Vec<Colour> {
    let better = Better::of(&request.metric);
    let by_ratio = |colour: fn(f64) -> Colour| -> Vec<Colour> {
        let of = |number: &Option<f64>| number.map_or(Colour::Plain, |ratio| better.turn(colour(ratio)));
        numbers.iter().map(of).collect()
    };
    match request.view {
        View::Posts => by_ratio(post_colour),
        View::Page => {
            let mut colours = by_ratio(page_colour);
            for (colour, target) in colours.iter_mut().zip(&pivot.targets) {
                if target.name == *base && !pivot.is_relative() {
                    *colour = Colour::Plain;
                }
            }
            colours
        }
        View::PageAbsolute => {
            let met = |(number, target): (&Option<f64>, &Arc<Target>)| {
                number.filter(|_| meets_sla(step, inserts(rows, step, &target.name)))
            };
            let values: Vec<Option<f64>> = numbers.iter().zip(&pivot.targets).map(met).collect();
            page_absolute_colours(&values, better)
        }
    }
}

/// Insert rate of a target in a step; infinite where the file has none, as nothing was asked then.
fn inserts(rows: &[Row], step: &Text, target: &Text) -> f64 {
    let of = |row: &&Row| &*row.metric == "ips" && row.step == *step && row.target.name == *target;
    rows.iter().find(of).and_then(Row::number).unwrap_or(f64::INFINITY)
}
