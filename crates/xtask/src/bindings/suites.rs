//! Builds the tests of a package and runs them, each program by itself, so that one that dies takes no others with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How long one program of tests may take before it counts as hanging. They take seconds.
const LIMIT_SECONDS: u32 = 300;

/// The outcome of a test.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Ignored,
    /// And the last that was said.
    Failed(String),
}

/// A program of tests.
pub struct Program {
    /// `test_db`, or the package's own name for its unit tests.
    target: String,
    path: PathBuf,
    /// Of cargo: some tests start it, for programs that must not compile.
    target_dir: PathBuf,
}

/// Builds the tests of the package in `dir` into `target`; which, `targets` says to cargo.
///
/// # Errors
/// The words of the compiler.
pub fn build(dir: &Path, target: &Path, targets: &[&str]) -> Result<Vec<Program>, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--no-run", "--quiet", "--message-format=json"]).args(targets);
    environment(&mut command, dir, target);
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() {
        let rendered = messages.iter().filter(|message| message["message"]["level"] == "error");
        let said: Vec<&str> =
            rendered.filter_map(|message| message["message"]["rendered"].as_str()).collect();
        return Err(format!("{}{}", said.join("\n"), String::from_utf8_lossy(&output.stderr)));
    }
    let programs = messages.iter().filter_map(|message| {
        let path = message["executable"].as_str()?;
        message["profile"]["test"].as_bool()?.then(|| Program {
            target: message["target"]["name"].as_str().unwrap_or_default().to_string(),
            path: path.into(),
            target_dir: target.to_path_buf(),
        })
    });
    Ok(programs.collect())
}

/// Runs one program; gives its tests by `target::name`.
///
/// # Errors
/// The program cannot be started.
pub fn run(program: &Program, dir: &Path) -> Result<BTreeMap<String, Outcome>, String> {
    let listed = start(program, dir, &["--list", "--format", "terse"])?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let together = start(program, dir, &["--test-threads=2"])?;
    let mut outcomes = BTreeMap::new();
    for name in names {
        let mut outcome = outcome_in(&together, name);
        if outcome.is_none() {
            // The program died before this test ended, or in it.
            let alone = start(program, dir, &["--exact", name, "--test-threads=2"])?;
            outcome = outcome_in(&alone, name);
            outcome =
                outcome.or_else(|| Some(Outcome::Failed(format!("{}: {}", alone.status, last(&alone)))));
        }
        outcomes.insert(format!("{}::{name}", program.target), outcome.expect("set above"));
    }
    Ok(outcomes)
}

/// The environment of cargo, and of the tests that start it.
pub fn environment(command: &mut Command, dir: &Path, target: &Path) {
    command.current_dir(dir).env("CARGO_MANIFEST_DIR", dir).env("CARGO_TARGET_DIR", target);
    // Nobody debugs these programs; without the symbols twenty of them are linked in a fraction of the time.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0").env("RUST_BACKTRACE", "0");
}

fn start(program: &Program, dir: &Path, arguments: &[&str]) -> Result<Output, String> {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &LIMIT_SECONDS.to_string()]).arg(&program.path).args(arguments);
    environment(&mut command, dir, &program.target_dir);
    command.output().map_err(|error| format!("{}: {error}", program.path.display()))
}

/// The words of the harness about how the test ended, if it had any.
fn outcome_in(output: &Output, name: &str) -> Option<Outcome> {
    let text = String::from_utf8_lossy(&output.stdout);
    match ending(&text, name)?.split([',', ' ']).next()? {
        "ok" => Some(Outcome::Passed),
        "ignored" => Some(Outcome::Ignored),
        "FAILED" => Some(Outcome::Failed(panic_of(&text, name))),
        _ => None,
    }
}

/// Of `test a ... ok`, and `test a - should panic ... ok`: the end. A slow test has a line before, `test a has been running for over 60
/// seconds`, which does not say how it ended.
fn ending<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let row = format!("test {name} ");
    let rows = text.lines().filter(|line| line.starts_with(&row));
    rows.filter_map(|line| Some(line.rsplit_once(" ... ")?.1)).next_back()
}

/// The lines of a panic: where, and its message's first.
fn panic_of(text: &str, name: &str) -> String {
    let section = text.split(&format!("---- {name} stdout ----\n")).nth(1).unwrap_or_default();
    let section = section.split("\n---- ").next().unwrap_or_default();
    let panicked = section.lines().skip_while(|line| !line.contains("panicked at"));
    panicked.take(4).map(str::trim).collect::<Vec<_>>().join(" / ")
}

fn last(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_test_ended_is_told_from_what_was_said_before() {
        let said = "running 4 tests\ntest slow has been running for over 60 seconds\ntest quick - should panic ... ok\n\
                    test slow ... ok\ntest slower ... FAILED\ntest slowest has been running for over 60 seconds\n";
        assert_eq!(ending(said, "slow"), Some("ok"));
        assert_eq!(ending(said, "quick"), Some("ok"));
        assert_eq!(ending(said, "slower"), Some("FAILED"));
        assert_eq!(ending(said, "slowest"), None);
    }
}
