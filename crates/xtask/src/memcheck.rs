//! `cargo xtask memcheck`: calls of the C API under valgrind's memcheck, which sees accesses to freed or unallocated memory,
//! decisions on memory that nobody wrote, and, in `c_test.c`, memory that nobody can free any more.
//!
//! ```text
//! planted.c                   uses a batch that was freed, as the control: it must be reported
//! RocksDB's c_test.c          the phases that pass; as a C program uses the library
//! tests of crates/capi        those whose callbacks, errors and handles cross the boundary most: TESTS
//! ```
//! `suppressions.supp` has what is reported and is no fault, each with its reason. Memory that the engine maps itself (arenas of
//! memtables, frames of the cache) has no blocks that memcheck would know: it
//! is left to Miri.
//!
//! Races are not looked for: helgrind and drd know the locks of pthreads, and Rust's wait on futexes, so that a counter below
//! a `std::sync::Mutex` is a race to them. loom and Miri look at the lock-free structures (`interleavings.rs`).

use crate::packages::{Install, program};
use crate::{c_test, programs, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Parts of the names of tests in `crates/capi/tests/it`.
const TESTS: [&str; 8] = [
    "boundary::",
    "listeners::",
    "collectors::",
    "prefix_extractors::",
    "snapshots::",
    "file_checksums::",
    "tailing::",
    "refusals::",
];
/// Of them, those that read the library's text or compare with RocksDB at length.
const LEFT_OUT: [&str; 3] =
    ["every_exported_function_stands_in_the_boundary", "the_check_sees_what_it_must", "stalls_begin_and_end"];

/// Memory to which no pointer is left counts. Tests of ours leave handles behind; RocksDB's destroys its own.
const LEAKS: [&str; 3] =
    ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"];
/// The exit code of a program that memcheck reports.
const REPORTED: i32 = 99;

/// Runs all parts.
///
/// # Errors
/// Memcheck reports something, a test fails, or a program is missing.
pub fn run(install: Install) -> Result<(), String> {
    let valgrind = program(&["valgrind"], "valgrind", install)?;
    let (tests, library) = build()?;
    let dir = programs::target_dir().join("memcheck");
    crate::sources::make_dir(&dir)?;
    let below = |name: &str, leaks: &[&str]| -> (Command, PathBuf) {
        let log = dir.join(format!("{name}.txt"));
        let mut command = Command::new(&valgrind);
        command.args(leaks);
        // One thread at a time runs: without turns one that waits in a loop would have all of them.
        command.args([&format!("--error-exitcode={REPORTED}"), "--num-callers=30", "--fair-sched=yes"]);
        command.arg(format!("--suppressions={}", suppressions().display()));
        command.arg(format!("--log-file={}", log.display()));
        (command, log)
    };
    let (mut command, log) = below("planted", &[]);
    let planted = planted(&dir, &library)?;
    let status = command.arg(&planted).output().map_err(|error| format!("valgrind: {error}"))?.status;
    if status.code() != Some(REPORTED) {
        return Err(format!("memcheck does not see planted.c use freed memory: {status}, {}", log.display()));
    }
    let (command, log) = below("c_test", &LEAKS);
    tell("c_test.c", &log, |_| c_test::run_below(&command, &library).map(|_| ()))?;
    let (mut command, log) = below("it", &[]);
    command.arg(&tests).args(["--test-threads=1"]).args(TESTS);
    LEFT_OUT.iter().for_each(|name| {
        command.args(["--skip", name]);
    });
    // Beside RocksDB's library its errors would count.
    command.env_remove("OUTCROP_REFERENCE_DIR").current_dir(root().join("crates/capi"));
    tell("crates/capi", &log, |_| {
        let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stdout))),
        }
    })
}

/// The control, linked with `library`.
fn planted(dir: &Path, library: &Path) -> Result<PathBuf, String> {
    let (source, program) = (root().join("crates/xtask/src/memcheck/planted.c"), dir.join("planted"));
    let place = library.parent().unwrap_or(dir);
    let mut command = Command::new("cc");
    command.args(["-g", "-O0", "-o"]).arg(&program).arg(&source).arg(library);
    command.arg(format!("-Wl,-rpath,{}", place.display()));
    let output = command.output().map_err(|error| format!("cc: {error}"))?;
    match output.status.success() {
        true => Ok(program),
        false => Err(format!("planted.c: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn suppressions() -> PathBuf {
    root().join("crates/xtask/src/memcheck/suppressions.supp")
}

/// Runs a part, and says what memcheck found in it.
fn tell(name: &str, log: &Path, run: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    let outcome = run(log);
    let said = std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors =
        summary(&said).ok_or_else(|| format!("{name}: no summary in {}: {outcome:?}", log.display()))?;
    println!("memcheck: {name}: {errors}; {:.0} s", start.elapsed().as_secs_f64());
    match (outcome, errors.starts_with("0 errors")) {
        (Ok(()), true) => Ok(()),
        (Err(why), true) => Err(format!("{name}: {why}")),
        (_, false) => Err(format!("{name}: {said}")),
    }
}

/// The last words of valgrind.
fn summary(said: &str) -> Option<&str> {
    said.lines().rev().find_map(|line| line.split_once("ERROR SUMMARY: ")).map(|(_, errors)| errors)
}

/// The tests of the C API, and the library they load.
fn build() -> Result<(PathBuf, PathBuf), String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--package", "outcrop-capi", "--test", "it", "--no-run", "--quiet"]);
    command.args(["--message-format", "json-render-diagnostics"]).current_dir(root());
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests of the C API do not build".to_string());
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let tests = messages
        .lines()
        .filter(|line| line.contains("\"name\":\"it\""))
        .find_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'))
        .map(|(path, _)| PathBuf::from(path));
    let library = messages.split('"').find(|text| text.ends_with("/liboutcrop_capi.so")).map(PathBuf::from);
    tests.zip(library).ok_or_else(|| "cargo did not say where it put the tests of the C API".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_summary_counts() {
        let said =
            "==7== Invalid read\n==7== ERROR SUMMARY: 3 errors from 2 contexts (suppressed: 1 from 1)\n";
        assert_eq!(summary(said), Some("3 errors from 2 contexts (suppressed: 1 from 1)"));
        assert_eq!(summary("==7== Memcheck\n"), None);
    }

    #[test]
    fn each_suppression_has_a_reason_before_it() {
        let text = std::fs::read_to_string(suppressions()).unwrap();
        let mut last = "";
        for line in text.lines() {
            assert!(line != "{" || last.starts_with("# "), "a suppression without a reason: {last}");
            last = line;
        }
    }
}
