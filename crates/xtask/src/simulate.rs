//! `cargo xtask simulate`: the whole engine under a scheduler, a clock and a disk that a seed decides (`simulator/`).
//!
//! The simulator is a workspace of its own, as the models are: the engine is built in it with other locks.

use crate::{programs, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How it is called.
pub const USAGE: &str =
    "simulate [one] [--seconds N] [--histories N] [--jobs N] [--seed S] [--without A,B] [--shrink N]";

/// The simulator's program.
pub const PROGRAM: &str = "outcrop-simulator";

/// Histories that once failed: several threads compact by hand while the base level changes; a writer waits for room when the power goes; a
/// database resumes while a writer is being refused; each compaction meets a fault; a WAL is replaced while records wait in its buffer.
const ONCE_FAILED: [u64; 5] = [669_574_938, 2_461_689_835, 364_832_512, 900_030, 900_320];
/// The features that these did not have.
const LATER: &str = "merges,transactions,shared,checkpoints,backups,families,ingestion,listener";

/// Mistakes that have to be found, and the seconds to make the history that finds one smaller. One of the two shows that this works.
const PLANTED: [(&str, &str); 2] = [("syncs", "15"), ("locks", "0")];

/// Runs the verb: many histories, or `one`.
///
/// # Errors
/// A history fails; it was told how to repeat it.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    run_program(&program()?, arguments)
}

fn run_program(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    if arguments.first() != Some(&"one") {
        command.arg("run");
    }
    let status = command.args(arguments).current_dir(root()).status();
    let status = status.map_err(|error| format!("{PROGRAM}: {error}"))?;
    if status.success() { Ok(()) } else { Err("the simulation found something".to_string()) }
}

/// The part of it in `cargo xtask ci`: its own tests, histories of the tree's seed, and planted mistakes that have to be found.
pub fn of_tree() -> Result<(), String> {
    let tested = cargo(&["test", "--quiet"], &target(), &flags(), Speed::Built)?;
    if !tested.success() {
        return Err("the simulator's own tests fail".to_string());
    }
    let program = build_at(&target(), &flags(), Speed::Built)?;
    let run = |arguments: &[&str]| run_program(&program, arguments);
    ONCE_FAILED
        .iter()
        .try_for_each(|seed| run(&["--histories", "1", "--seed", &seed.to_string(), "--without", LATER]))?;
    run(&["--histories", "60", "--seed", &crate::tree_seed()?.to_string()])?;
    PLANTED.iter().try_for_each(|(mistake, shrink)| {
        let found = Command::new(&program)
            .args(["run", "--histories", "40", "--seed", "1", "--plant", mistake, "--shrink", shrink])
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("{PROGRAM}: {error}"))?;
        match found.success() {
            true => Err(format!("the simulation does not see the planted mistake {mistake}")),
            false => Ok(()),
        }
    })
}

fn program() -> Result<PathBuf, String> {
    match programs::kept(PROGRAM) {
        Some(kept) => Ok(kept),
        None => build(),
    }
}

/// Builds it; gives its path.
///
/// # Errors
/// It does not build.
pub fn build() -> Result<PathBuf, String> {
    build_in(&target(), &flags())
}

/// Builds it elsewhere, with flags of the compiler that say `--cfg simulated`.
///
/// # Errors
/// It does not build.
pub fn build_in(target: &Path, flags: &str) -> Result<PathBuf, String> {
    build_at(target, flags, Speed::Run)
}

fn build_at(target: &Path, flags: &str, speed: Speed) -> Result<PathBuf, String> {
    if !cargo(&["build", "--quiet"], target, flags, speed)?.success() {
        return Err("the simulator does not build".to_string());
    }
    Ok(target.join("debug").join(PROGRAM))
}

/// For which of the two the compiler optimizes: 140 s of processors less to build, or 15 % more histories in the same time.
#[derive(Clone, Copy, PartialEq)]
enum Speed {
    Built,
    Run,
}

fn cargo(
    arguments: &[&str],
    target: &Path,
    flags: &str,
    speed: Speed,
) -> Result<std::process::ExitStatus, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if speed == Speed::Built {
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    }
    let workspace = root().join("simulator");
    command
        .args(arguments)
        .args(programs::zstd_of_the_build(&workspace))
        .arg("--locked")
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target)
        // Where flags ask for coverage, build scripts and macros count, too.
        .env("LLVM_PROFILE_FILE", target.join("build-%m.profraw"))
        .current_dir(workspace)
        .status()
        .map_err(|error| format!("cargo: {error}"))
}

fn flags() -> String {
    format!("{} --cfg simulated", std::env::var("RUSTFLAGS").unwrap_or_default())
}

fn target() -> PathBuf {
    programs::target_dir().join("simulator")
}
