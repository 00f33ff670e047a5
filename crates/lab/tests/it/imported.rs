//! Questions that tests ask of an import.

use outcrop_lab::import::{Repair, Report, Row, run};
use std::path::Path;

/// Imports one path.
pub fn import(path: &Path) -> Report {
    run(&[path.to_path_buf()]).unwrap()
}

/// Imports a directory of the fixtures; all of them if it is empty.
pub fn fixtures(directory: &str) -> Report {
    import(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import").join(directory))
}

/// Rows of a metric in files whose path ends with `file`, by step and start of the target's name or version.
pub fn rows<'a>(report: &'a Report, file: &str, step: &str, target: &str, metric: &str) -> Vec<&'a Row> {
    let matches = |row: &&Row| {
        row.file.ends_with(file)
            && &*row.step == step
            && (row.target.name.starts_with(target) || &*row.target.version == target)
            && &*row.metric == metric
    };
    report.rows.iter().filter(matches).collect()
}

/// The only row there.
pub fn only<'a>(report: &'a Report, file: &str, step: &str, target: &str, metric: &str) -> &'a Row {
    let found = rows(report, file, step, target, metric);
    assert_eq!(found.len(), 1, "{file} {step} {target} {metric}");
    found[0]
}

/// Its number.
pub fn number(report: &Report, file: &str, step: &str, target: &str, metric: &str) -> f64 {
    only(report, file, step, target, metric).number().unwrap()
}

/// Lines of a file where a repair applied.
pub fn repaired(report: &Report, file: &str, repair: Repair) -> Vec<u32> {
    let places = report.repairs.iter().filter(|r| r.file.ends_with(file) && r.repair == repair);
    places.map(|repaired| repaired.line).collect()
}

/// Lines and reasons of what was rejected in a file.
pub fn rejected(report: &Report, file: &str) -> Vec<(u32, String)> {
    let rejects = report.rejects.iter().filter(|reject| reject.file.ends_with(file));
    rejects.map(|reject| (reject.line, reject.reason.clone())).collect()
}
