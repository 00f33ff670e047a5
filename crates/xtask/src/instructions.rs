//! `cargo xtask instructions`: how many instructions each operation of a database takes, beside what is recorded.
//!
//! Wall time on a shared machine shows a slowdown of 30 %; counted instructions show one of 3 %. The benchmark
//! `operations` runs under callgrind, which counts what the calling thread does for the operations alone. The work of
//! background threads is counted where it is the point (`fill_and_compact`): two runs of different length are
//! compared then. Instructions are not time: cache misses and system calls are not in them.
//!
//! The record belongs to one compiler; with another the figures are shown and not judged.

use crate::packages::{Install, program};
use crate::root;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// How far above the record an operation may come.
const TOLERANCE_PERCENT: f64 = 3.0;
/// Operations of a run.
const TIMES: u64 = 3000;
/// The operation whose work is in background threads.
const IN_BACKGROUND: &str = "fill_and_compact";
/// The function of the benchmark that does nothing but the operations.
const MEASURED: &str = "operations::measured";
/// Where the record is, from the workspace.
const RECORD: &str = "crates/engine/benches/instructions.tsv";

/// Counts, and compares with the record or replaces it. Where nothing may be installed and valgrind is missing, says so.
///
/// # Errors
/// Which operations became more expensive, and what to do.
pub fn run(bless: bool, install: Install) -> Result<(), String> {
    let valgrind = match program(&["valgrind"], "valgrind", install) {
        Err(why) if install == Install::Never => {
            eprintln!("xtask: instructions are NOT counted: {why}");
            return Ok(());
        }
        found => found?,
    };
    let benchmark = build()?;
    let compiler = output(Command::new("rustc").arg("--version"))?.0.trim().to_string();
    let path = root().join(RECORD);
    let record = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (recorded_compiler, recorded) = parse(&record);
    let judged = recorded_compiler == compiler && !bless;
    println!("{:<20} {:>12} {:>12} {:>8}", "operation", "instructions", "recorded", "change");
    let (mut grown, mut measured) = (Vec::new(), format!("compiler\t{compiler}\n"));
    for name in output(Command::new(&benchmark).arg("--list"))?.0.lines() {
        let count = |times: u64, collected_in: Option<&str>| -> Result<u64, String> {
            let mut command = Command::new(&valgrind);
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            command.args(collected_in.map(|function| format!("--toggle-collect={function}*")));
            command.arg(&benchmark).args(["--only", name, "--times", &times.to_string()]);
            collected(&output(&mut command)?.1)
        };
        let each = if name == IN_BACKGROUND {
            count(9 * TIMES, None)?.saturating_sub(count(TIMES, None)?) as f64 / (8 * TIMES) as f64
        } else {
            count(TIMES, Some(MEASURED))? as f64 / TIMES as f64
        };
        let known = recorded.get(name).copied();
        let change = known.map(|known| (each / known - 1.0) * 100.0);
        println!(
            "{name:<20} {each:>12.0} {:>12} {:>8}",
            known.map_or("-".to_string(), |known| format!("{known:.0}")),
            change.map_or("new".to_string(), |change| format!("{change:+.1} %"))
        );
        let _ = writeln!(measured, "{name}\t{each:.0}");
        if judged && change.is_none_or(|change| change > TOLERANCE_PERCENT) {
            grown.push(name.to_string());
        }
    }
    if bless {
        return std::fs::write(&path, measured).map_err(|error| format!("{}: {error}", path.display()));
    }
    if !judged {
        println!("recorded with {recorded_compiler}; this is {compiler}: not judged");
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more than {TOLERANCE_PERCENT} % above {RECORD}: {}; if the change is worth it, cargo xtask instructions --bless",
        grown.join(", ")
    ))
}

/// Builds the benchmark; gives its path.
fn build() -> Result<PathBuf, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--package", "outcrop", "--bench", "operations", "--quiet"]);
    command.args(["--message-format", "json-render-diagnostics"]).current_dir(root());
    let messages = output(&mut command)?.0;
    messages
        .lines()
        .filter(|line| line.contains("\"name\":\"operations\""))
        .find_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'))
        .map(|(path, _)| PathBuf::from(path))
        .ok_or_else(|| "cargo did not say where it put the benchmark `operations`".to_string())
}

/// The output of a command, on standard output and standard error.
fn output(command: &mut Command) -> Result<(String, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        return Err(format!("{name}: {}: {}", output.status, text(&output.stderr)));
    }
    Ok((text(&output.stdout), text(&output.stderr)))
}

/// The count in callgrind's closing words, such as `==42== Collected : 123456`.
fn collected(text: &str) -> Result<u64, String> {
    let count = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    count.ok_or_else(|| format!("callgrind gave no count: {text}"))
}

/// The compiler and the figures of a record.
fn parse(record: &str) -> (String, BTreeMap<String, f64>) {
    let mut rows: BTreeMap<String, String> = record
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let compiler = rows.remove("compiler").unwrap_or_default();
    let figures = rows.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
    (compiler, figures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_counts_are_read() {
        let (compiler, figures) = parse("compiler\trustc 1.90\nget\t812\nput\t1500\n");
        assert_eq!((compiler.as_str(), figures.len(), figures["get"]), ("rustc 1.90", 2, 812.0));
        assert_eq!(collected("==7== \n==7== Collected : 123\n"), Ok(123));
        assert!(collected("nothing").is_err());
    }
}
