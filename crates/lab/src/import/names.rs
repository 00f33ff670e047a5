//! Names that are unique, and steps whose labels are right.

use super::model::{Target, Text};
use super::repair::Repair;
use super::sink::Sink;
use std::collections::HashMap;
use std::sync::Arc;

/// Gives targets that recur in a step names of their own: `8.7.3`, `8.7.3#2`.
#[derive(Default)]
pub(super) struct Names {
    seen: HashMap<(String, Text), usize>,
}

impl Names {
    /// `target` under a name not used in `step` before; a second use is reported at `line`.
    pub fn unique(&mut self, step: &str, mut target: Target, line: u32, sink: &mut Sink) -> Arc<Target> {
        let count = self.seen.entry((step.to_string(), target.name.clone())).or_default();
        *count += 1;
        if *count > 1 {
            let name = format!("{}#{count}", target.name);
            sink.repair(Repair::RepeatedTarget, line, format!("named {name}"));
            target.name = name.into();
        }
        Arc::new(target)
    }
}

/// The label of update-inlist, and the number of ids it really takes.
const INLIST: (&str, &str) = ("update-inlist_range=100", "update-inlist_range=10");

/// The step's name, with a wrong label repaired.
pub(super) fn repaired_step(step: &str, line: u32, sink: &mut Sink) -> Text {
    if step == INLIST.0 {
        sink.repair(Repair::InlistRange, line, format!("{step} -> {}", INLIST.1));
        INLIST.1.into()
    } else {
        step.into()
    }
}

/// Unit of a scan's published rate: thousands of rows a second, of one client.
pub(super) const KROWS: &str = "krows/s";

/// Whether a sysbench test scans.
pub(super) fn is_scan(step: &str) -> bool {
    step.starts_with("scan")
}

/// Unit of a sysbench test's rate: scans count rows.
pub(super) fn rate_unit(step: &str, line: u32, sink: &mut Sink) -> &'static str {
    if is_scan(step) {
        sink.repair(Repair::ScanInRows, line, step);
        KROWS
    } else {
        "1/s"
    }
}
