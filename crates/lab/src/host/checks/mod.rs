//! How the machine is set up, what was wanted, why, and what would change it.
//!
//! ```text
//! processor.rs  clocks, core types, NUMA    memory.rs  pages, swap, write-back    device.rs  file system, queue, wear
//! system.rs     other load, perf, errors, clock
//! ```
//! Settings that a machine does not have, or that its hypervisor decides, are notes: they are recorded and
//! nobody can mend them.

mod device;
mod memory;
mod processor;
mod system;
#[cfg(test)]
mod tests;

pub(super) use processor::gives_free_pages_back;

use super::facts::{Facts, Root};
use serde::{Deserialize, Serialize};

/// Whether a setting is as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As wanted.
    Pass,
    /// Recorded; nothing is wanted, or nothing can be done.
    Note,
    /// Costs precision.
    Warn,
    /// Makes numbers wrong.
    Fail,
}

impl Status {
    /// Four letters.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pass => "ok  ",
            Status::Note => "note",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        }
    }
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The value found.
    pub value: String,
    /// The value it should be.
    pub wanted: String,
    /// Whether it is.
    pub status: Status,
    /// Why it matters.
    pub why: String,
    /// The command that would change it; empty if there is none.
    pub fix: String,
}

/// Cells of the table are at most this long.
const CELL: usize = 24;

fn checked(
    name: &str,
    value: impl Into<String>,
    wanted: &str,
    status: Status,
    why: &str,
    fix: &str,
) -> Check {
    let mut value: String = value.into();
    if value.chars().count() > CELL {
        value = value.chars().take(CELL - 1).chain(['~']).collect();
    }
    let [name, wanted, why, fix] = [name, wanted, why, fix].map(str::to_string);
    Check { name, value, wanted, status, why, fix }
}

/// Looks at every setting.
pub fn check(root: &Root, facts: &Facts) -> Vec<Check> {
    let mut checks = processor::checks(root, facts);
    checks.extend(memory::checks(root));
    checks.extend(device::checks(root, facts));
    checks.extend(system::checks(root));
    checks
}

/// Value, or "not known" as a note.
fn expect(
    name: &str,
    value: Option<String>,
    wanted: &str,
    good: impl Fn(&str) -> bool,
    bad: Status,
    why_fix: (&str, &str),
) -> Check {
    match value {
        None => checked(name, "not known", wanted, Status::Note, why_fix.0, ""),
        Some(value) => {
            let status = if good(&value) { Status::Pass } else { bad };
            checked(name, value, wanted, status, why_fix.0, why_fix.1)
        }
    }
}

/// A fact that is recorded and not judged.
fn recorded(name: &str, value: Option<String>, why: &str) -> Check {
    checked(name, value.unwrap_or_else(|| "not known".into()), "recorded", Status::Note, why, "")
}

/// The chosen word of a file like `always [madvise] never`.
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(|| text.to_string(), |(word, _)| word.to_string())
}
