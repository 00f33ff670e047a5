//! `cargo xtask crashes`: the engine's draws of power losses and failed operations, seed after seed.
//!
//! The draws are tests of the engine (`crates/engine/tests/it`) that take their seed from `OUTCROP_SEED`; in CI they have one
//! seed each. Here they are run with one seed after the other until the time is over.

use crate::{programs, root};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How it is called.
pub const USAGE: &str = "crashes [--seconds N] [--seed S] [--seeds N]";

/// The program of the tests, where it is put aside.
pub const PROGRAM: &str = "engine-it";

/// The tests: those of these modules that have a seed.
const TESTS: [&str; 5] = ["crash::", "crash_features::", "model::", "backup::", "repair::"];

/// Runs the verb.
///
/// # Errors
/// A test fails; the command that repeats it was printed.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut seconds, mut seed, mut seeds) = (60, 1, u64::MAX);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{}: needs a value; usage: {USAGE}", pair[0])) };
        let number = value.parse::<u64>().map_err(|_| format!("{name} {value}: not a number"))?;
        match *name {
            "--seconds" => seconds = number,
            "--seed" => seed = number,
            "--seeds" => seeds = number,
            _ => return Err(format!("{name}: no such option; usage: {USAGE}")),
        }
    }
    let program = match programs::kept(PROGRAM) {
        Some(kept) => kept,
        None => build()?,
    };
    let start = Instant::now();
    let mut played = 0;
    for seed in seed..seed.saturating_add(seeds) {
        for tests in TESTS {
            // Each module by itself: one that fails names itself, and the time is kept.
            if played > 0 && start.elapsed() >= Duration::from_secs(seconds) {
                println!("crashes: {played} cases");
                return Ok(());
            }
            let again = format!("OUTCROP_SEED={seed} cargo test -p outcrop --test it {tests}");
            let output = Command::new(&program)
                .args([tests, "--nocapture"])
                .env("OUTCROP_SEED", seed.to_string())
                .current_dir(root().join("crates/engine"))
                .output()
                .map_err(|error| format!("{}: {error}", program.display()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                println!("{text}{errors}crashes: {played} cases\ncrashes: again: {again}");
                return Err(format!("{tests} fails with seed {seed}"));
            }
            played += cases(&text);
        }
    }
    println!("crashes: {played} cases");
    Ok(())
}

/// The tests' program, built with the whole workspace (`programs.rs` says why).
///
/// # Errors
/// The engine's tests do not build.
pub fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--workspace", "--all-targets", "--message-format=json", "--quiet"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let main = root().join("crates/engine/tests/it/main.rs");
    let program = messages
        .filter(|message| message["target"]["src_path"].as_str().is_some_and(|path| Path::new(path) == main))
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    program.filter(|_| output.status.success()).ok_or_else(|| {
        format!("the engine's tests do not build:\n{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Cases that the tests say they had, as `N cases`; a test that does not say counts as one.
fn cases(output: &str) -> u64 {
    let said: u64 = output
        .lines()
        .filter_map(|line| line.strip_suffix(" cases")?.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    said + output.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_those_that_tests_name_and_the_tests() {
        let output = "running 2 tests\nfault: 240 cases\ntest crash::one ... ok\ntest crash::two ... ok\n\
            test result: ok. 2 passed\n";
        assert_eq!(cases(output), 242);
    }
}
