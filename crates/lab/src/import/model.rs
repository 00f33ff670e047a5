//! The form that every format is converted to: rows of one measurement each, and series where a file holds
//! samples.
//!
//! ```text
//! Row = target x step x metric -> value, unit; optionally a ratio to a base; file and line it came from
//! ```
//! Invariants: `value` is what to compute with; `published` holds the printed number where a repair changed
//! it; nothing is invented: a cell that is empty, `NA` or wrong beyond repair has no row.
//! Next: `repair.rs` for what may change a value, `sink.rs` for how rows are made.

use serde::{Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// Shared text: the same names recur in thousands of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A build of an engine or DBMS with one configuration. Parts that the file does not say are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Target {
    /// Name in tables, unique within its file and step.
    pub name: Text,
    /// Engine or DBMS: `rocksdb`, `mysql`, `postgres`, `mariadb`, `myrocks`, `fio`.
    pub engine: Text,
    /// Version as its makers write it: `8.0.44`.
    pub version: Text,
    /// Compiler or build name: `clang.lto`, `rel_o2nofp`.
    pub build: Text,
    /// Options, host profile, workload: `z12a_c8r32`, `iobuf.clang.lto`.
    pub configuration: Text,
}

/// Writes what a shared pointer points to.
fn shared<S: Serializer>(target: &Arc<Target>, serializer: S) -> Result<S::Ok, S::Error> {
    target.as_ref().serialize(serializer)
}

/// A number or a word.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A measurement. Infinite where the file prints `inf` (a ratio to zero).
    Number(f64),
    /// A date, a git hash, a command line.
    Word(Text),
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The target that was measured.
    #[serde(serialize_with = "shared")]
    pub target: Arc<Target>,
    /// The benchmark step or test, as the file names it, repaired names included.
    pub step: Text,
    /// Column or counter, by the file's own name.
    pub metric: Text,
    /// The value to compute with.
    pub value: Value,
    /// The number as printed, where a repair replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Unit of `value`: `ops/s`, `us`, `ratio`, ...; empty for words.
    pub unit: &'static str,
    /// Name of the target this is a ratio to. `None` for absolute values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<Text>,
    /// The file, as reached from the paths given.
    pub file: Text,
    /// Its line, from 1.
    pub line: u32,
}

impl Row {
    /// The value, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(number) => Some(*number),
            Value::Word(_) => None,
        }
    }
}

/// Samples of one metric inside one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The target that was measured.
    #[serde(serialize_with = "shared")]
    pub target: Arc<Target>,
    /// The step or test.
    pub step: Text,
    /// Column of the sampler, with its device where there are several: `nvme0n1 r/s`.
    pub metric: Text,
    /// Unit of the samples.
    pub unit: &'static str,
    /// The file.
    pub file: Text,
    /// Line of the first sample, from 1.
    pub line: u32,
    /// Seconds since the start of the file at the end of each sample, or the sample's number where the file has
    /// no time.
    pub at: Vec<f64>,
    /// The samples.
    pub values: Vec<f64>,
}

impl Series {
    /// Mean of the samples; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.values.iter().sum();
        (!self.values.is_empty()).then(|| sum / self.values.len() as f64)
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reject {
    /// The file.
    pub file: Text,
    /// Its line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// Why, in one clause.
    pub reason: String,
}

/// A number from a table cell. `None` for empty cells, `NA`, `nan` and words.
pub(super) fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    if cell == "inf" {
        return Some(f64::INFINITY);
    }
    let plain = !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    cell.parse().ok().filter(|value: &f64| plain && value.is_finite())
}

/// Units of sizes in RocksDB's texts, in GB.
pub(super) fn gigabytes(size: f64, unit: &str) -> Option<f64> {
    let power = match unit {
        "KB" => -2,
        "MB" => -1,
        "GB" => 0,
        "TB" => 1,
        "B" => -3,
        _ => return None,
    };
    Some(size * 1024f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_numbers_only_when_they_look_like_numbers() {
        assert_eq!(number(" 1.50 "), Some(1.5));
        assert_eq!(number("inf"), Some(f64::INFINITY));
        for word in ["", "NA", "nan", "infinity", "1e999", "0x10", "12 s", "-"] {
            assert_eq!(number(word), None, "{word}");
        }
    }

    #[test]
    fn sizes_are_normalised_to_gigabytes() {
        assert_eq!(gigabytes(2.0, "TB"), Some(2048.0));
        assert_eq!(gigabytes(512.0, "MB"), Some(0.5));
        assert_eq!(gigabytes(1.0, "furlong"), None);
    }
}
