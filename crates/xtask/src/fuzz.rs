//! `cargo xtask fuzz`: the fuzzer of `crates/fuzz-targets`, in a process of its own.
//!
//! The fuzzer may be ended by what it finds: too much memory, too much time, an overflown stack. A file
//! that it keeps up to date then says which input it had. With `--guided` or `--merge`: `guided.rs`.

use crate::{cargo, guided, programs, root, tree_seed};
use std::path::PathBuf;
use std::process::Command;

/// The share of a target in `cargo xtask ci`, for each of two seeds: so many cases, unless time is up before.
const CI_CASES: &str = "200000";
const CI_SECONDS: &str = "1";

/// Runs every target with the same seed as always, and with one that belongs to this state of the tree:
/// new for every change, and the same wherever the change is proven.
pub fn ci() -> Result<(), String> {
    for seed in [1, tree_seed()?] {
        run_built(DEBUG, &["--cases", CI_CASES, "--seconds", CI_SECONDS, "--seed", &seed.to_string()])?;
    }
    Ok(())
}

/// A profile, and the directory Cargo puts what it builds with it into.
type Profile = (&'static str, &'static str);

/// The profile that tests are built with: already there in CI.
const DEBUG: Profile = ("dev", "debug");
/// As fast as a release, with a debug build's assertions: several times the cases per second.
const FUZZ: Profile = ("fuzz", "fuzz");

/// Runs the fuzzer with these arguments.
///
/// # Errors
/// The target that failed, and the arguments that repeat it.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    if guided::is_meant(arguments) {
        return guided::run(arguments);
    }
    run_built(FUZZ, arguments)
}

/// The fuzzer's program.
pub const PROGRAM: &str = "outcrop-fuzz";

/// Builds the fuzzer as `cargo xtask fuzz` runs it; gives its path.
///
/// # Errors
/// It does not build.
pub fn build() -> Result<PathBuf, String> {
    build_as(FUZZ)
}

/// How many targets the fuzzer has: as many as there are corpora.
pub fn targets() -> usize {
    std::fs::read_dir(root().join("fuzz/corpus")).map_or(1, |entries| entries.count().max(1))
}

fn build_as((profile, directory): Profile) -> Result<PathBuf, String> {
    let package = ["--package", "outcrop-fuzz-targets", "--bin", PROGRAM];
    cargo(&[&["build", "--quiet", "--profile", profile], &package[..]].concat(), None)?;
    Ok(programs::target_dir().join(directory).join(PROGRAM))
}

fn run_built(profile: Profile, arguments: &[&str]) -> Result<(), String> {
    let program = match programs::kept(PROGRAM) {
        Some(kept) => kept,
        None => build_as(profile)?,
    };
    let state = programs::target_dir().join(format!("fuzz-case-{}", std::process::id()));
    eprintln!("fuzz: cargo xtask fuzz {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .arg("--state")
        .arg(&state)
        .current_dir(root())
        .status()
        .map_err(|error| format!("outcrop-fuzz: {error}"))?;
    let case = std::fs::read_to_string(&state).unwrap_or_default();
    // Best effort: a leftover is harmless.
    let _ = std::fs::remove_file(&state);
    match status.code() {
        Some(0) => Ok(()),
        Some(_) => {
            Err("fuzzing found failures; they are listed above and kept in fuzz/artifacts".to_string())
        }
        None => Err(format!("the fuzzer was ended ({status}); again: cargo xtask fuzz {}", case.trim())),
    }
}
