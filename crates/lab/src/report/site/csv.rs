//! The numbers of the pages for other programs.

use super::Table;
use crate::analysis::results::Results;
use crate::import::OWN_START;
use crate::report::summary_line::{COLUMNS, Measured, summary_line};
use std::fmt::Write;

/// A field, quoted if it needs to be.
pub(super) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.4}"))
}

/// Ratios to `base`.
pub(super) fn relative(results: &Results, base: usize, table: &Table) -> String {
    let names = results.target_names();
    let mut text = String::from("step,target,base,ops_sec,ratio,low,high,pairs,q,verdict,invalid\n");
    for (step, cells) in results.steps.iter().zip(table) {
        for (name, cell) in names.iter().zip(cells) {
            let Some(cell) = cell else { continue };
            let verdict = cell.verdict.as_ref();
            let _ = writeln!(
                text,
                "{},{},{},{:.1},{},{},{},{},{},{},{}",
                field(step),
                field(name),
                field(names[base]),
                cell.median,
                optional(verdict.map(|verdict| verdict.ratio)),
                optional(verdict.and_then(|verdict| verdict.low)),
                optional(verdict.and_then(|verdict| verdict.high)),
                verdict.map_or(0, |verdict| verdict.pairs),
                optional(verdict.and_then(|verdict| verdict.q)),
                verdict.map_or("", |verdict| verdict.word.word()),
                field(cell.invalid.as_deref().unwrap_or(""))
            );
        }
    }
    text
}

/// Every metric of every measurement.
pub(super) fn metrics(results: &Results) -> String {
    let names = results.target_names();
    let mut text = String::from("step,target,block,metric,value\n");
    for row in &results.measured {
        for (metric, value) in &row.metrics {
            let (step, target, block) = (field(&row.name), field(names[row.target]), row.block + 1);
            let _ = writeln!(text, "{step},{target},{block},{metric},{value}");
        }
    }
    text
}

/// Every second of every session of a step: operations, and the longest of them in microseconds.
pub(super) fn seconds(results: &Results, step: &str) -> String {
    let names = results.target_names();
    let mut text = String::from("target,block,second,operations,longest_us\n");
    for row in results.measured.iter().filter(|row| row.name == step) {
        for (second, operations) in row.result.per_second.iter().enumerate() {
            let longest = row.result.longest_per_second.get(second).map_or(String::new(), u64::to_string);
            let (target, block) = (field(names[row.target]), row.block + 1);
            let _ = writeln!(text, "{target},{block},{},{operations},{longest}", second + 1);
        }
    }
    text
}

/// The 28 columns of RocksDB's benchmark scripts, a block of lines for each step.
pub(super) fn summary(results: &Results) -> String {
    let mut text = format!("{OWN_START}\n");
    results.target_names().iter().for_each(|name| _ = writeln!(text, "# {name}"));
    for step in &results.steps {
        let _ = writeln!(text, "{}", COLUMNS.join("\t"));
        for (target, name) in results.target_names().into_iter().enumerate() {
            for row in results.rows(step, target) {
                let measured = Measured::of(results, row);
                let job = format!("block{}", row.block + 1);
                let _ = writeln!(text, "{}", summary_line(&measured, name, &job).join("\t"));
            }
        }
        text.push('\n');
    }
    text
}
