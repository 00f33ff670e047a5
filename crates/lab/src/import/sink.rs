//! Where parsers put what they read from one file.

use super::model::{Reject, Row, Series, Target, Text, Value};
use super::repair::{Repair, Repaired};
use std::sync::Arc;

/// Rows, repairs and rejects of one file.
pub(super) struct Sink {
    file: Text,
    /// Measurements.
    pub rows: Vec<Row>,
    /// Samples.
    pub series: Vec<Series>,
    /// Repairs.
    pub repairs: Vec<Repaired>,
    /// Lines that did not parse.
    pub rejects: Vec<Reject>,
}

/// The fields that the cells of one line share.
#[derive(Clone)]
pub(super) struct CellOrigin {
    /// The target.
    pub target: Arc<Target>,
    /// The step.
    pub step: Text,
    /// The line.
    pub line: u32,
}

impl Sink {
    pub fn new(file: Text) -> Sink {
        Sink { file, rows: Vec::new(), series: Vec::new(), repairs: Vec::new(), rejects: Vec::new() }
    }

    /// Adds an absolute number; the returned row may be amended.
    pub fn number(&mut self, place: &CellOrigin, metric: &str, unit: &'static str, value: f64) -> &mut Row {
        self.push(place, metric, unit, Value::Number(value))
    }

    /// Adds a ratio to `base`.
    pub fn ratio(&mut self, place: &CellOrigin, metric: &str, base: &Text, value: f64) {
        self.push(place, metric, "ratio", Value::Number(value)).relative_to = Some(base.clone());
    }

    /// Adds a word; empty ones are left out.
    pub fn word(&mut self, place: &CellOrigin, metric: &str, word: &str) {
        if !word.is_empty() {
            self.push(place, metric, "", Value::Word(word.into()));
        }
    }

    fn push(&mut self, place: &CellOrigin, metric: &str, unit: &'static str, value: Value) -> &mut Row {
        self.rows.push(Row {
            target: Arc::clone(&place.target),
            step: place.step.clone(),
            metric: metric.into(),
            value,
            published: None,
            unit,
            relative_to: None,
            file: self.file.clone(),
            line: place.line,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Adds samples and their mean as a row. Nothing is added without samples.
    pub fn series(
        &mut self,
        place: &CellOrigin,
        metric: &str,
        unit: &'static str,
        at: &[f64],
        values: Vec<f64>,
    ) {
        let series = Series {
            target: Arc::clone(&place.target),
            step: place.step.clone(),
            metric: metric.into(),
            unit,
            file: self.file.clone(),
            line: place.line,
            at: at.to_vec(),
            values,
        };
        if let Some(mean) = series.mean() {
            self.number(place, metric, unit, mean);
            self.series.push(series);
        }
    }

    /// Notes that a repair applied.
    pub fn repair(&mut self, repair: Repair, line: u32, what: impl Into<String>) {
        self.repairs.push(Repaired { repair, file: self.file.clone(), line, what: what.into() });
    }

    /// Notes a line that did not parse.
    pub fn reject(&mut self, line: u32, reason: impl Into<String>) {
        self.rejects.push(Reject { file: self.file.clone(), line, reason: reason.into() });
    }
}
