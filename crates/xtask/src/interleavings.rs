//! `cargo xtask loom` and `cargo xtask miri`: the lock-free structures in every order of steps, and in an interpreter that
//! sees data races and accesses to what a pointer may not reach.
//!
//! loom runs models (`models/`, a workspace of its own: everything in it is built for loom), Miri runs unit tests. Which
//! structure has which is in `docs/testing.md`.

use crate::packages::Install;
use crate::programs;
use crate::root;
use std::path::PathBuf;
use std::process::Command;

/// Tests that Miri runs, by package and by parts of their names. The others fill megabytes and take hours there.
const UNDER_MIRI: [(&str, &[&str]); 3] = [
    ("outcrop-cache", &["threads_", "pins_", "erasing_", "second_"]),
    (
        "outcrop-memtable",
        &["tests::concurrent", "tests::empty", "tests::all_versions", "lookups_answer_like"],
    ),
    ("outcrop", &["superversion::", "write::group::"]),
];

/// The message where Miri is not there.
const HOW_TO_INSTALL: &str = "rustup toolchain install nightly --component miri,rust-src";

/// Runs the models. Where nothing may be downloaded and loom is not there, says so.
///
/// # Errors
/// A model fails.
pub fn loom(install: Install) -> Result<(), String> {
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(root().join("models"));
        command
    };
    if install == Install::Never {
        let fetched = cargo().args(["fetch", "--locked", "--offline", "--quiet"]).status();
        if !fetched.is_ok_and(|status| status.success()) {
            eprintln!("xtask: the models are NOT run: loom is not downloaded");
            return Ok(());
        }
    }
    let flags = format!("{} --cfg loom", std::env::var("RUSTFLAGS").unwrap_or_default());
    let mut command = cargo();
    command.args(["test", "--locked"]).env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", target().join("loom"));
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a model failed".to_string()) }
}

/// As [`miri`]; where there is no Miri, says so.
///
/// # Errors
/// As [`miri`].
pub fn miri_if_there(seed: u32) -> Result<(), String> {
    let version = rustup_cargo().args(["miri", "--version"]).output();
    if version.is_ok_and(|output| output.status.success()) {
        return miri(seed);
    }
    eprintln!("xtask: nothing is run under Miri: it is NOT there ({HOW_TO_INSTALL})");
    Ok(())
}

/// Runs the tests of lock-free structures under Miri, in the order of steps that belongs to `seed`.
///
/// # Errors
/// A test fails, or a part of a name no longer finds one.
pub fn miri(seed: u32) -> Result<(), String> {
    eprintln!("miri: seed {seed} (cargo xtask miri --seed {seed})");
    for (package, names) in UNDER_MIRI {
        let mut command = rustup_cargo();
        command.args(["miri", "test", "--package", package, "--lib", "--"]).args(names);
        command.env("CARGO_TARGET_DIR", target().join("miri"));
        // Memory that a cache leaves to pins that outlive it counts as a leak.
        let flags = format!("-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-seed={seed}");
        let output = command.env("MIRIFLAGS", flags).output().map_err(|error| format!("rustup: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{package} under Miri ({HOW_TO_INSTALL}):\n{text}{errors}"));
        }
        let passed: Vec<&str> = text.lines().filter(|line| line.ends_with("... ok")).collect();
        if let Some(name) = names.iter().find(|name| !passed.iter().any(|line| line.contains(**name))) {
            return Err(format!("{package}: no test is called {name}"));
        }
        println!("{package}: {} tests under Miri", passed.len());
    }
    Ok(())
}

/// The cargo of nightly Rust: inside of `cargo xtask` a `+nightly` is not understood.
fn rustup_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(root());
    command
}

fn target() -> PathBuf {
    programs::target_dir()
}
