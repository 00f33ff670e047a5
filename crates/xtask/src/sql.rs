//! The lab on real SQL servers: fetched, and every test and step run on each at a tiny size.
//!
//! ```text
//! cargo xtask sql             all of crates/cli/tests/sql
//! a step of cargo xtask ci    of those what is in `SHORT`: every test and step, statements counted, a killed server
//! ```

use crate::packages::{self, Install};
use crate::{root, run_cargo};
use outcrop_lab::targets::servers::catalogue;
use std::path::Path;
use std::process::Command;

/// The oldest and the newest PostgreSQL, and a MySQL.
const SERVERS: [(&str, &str); 3] = [("postgres", "12.x"), ("postgres", "18.x"), ("mysql", "8.0.15")];

/// Tests that `cargo xtask ci` runs too.
const SHORT: [&str; 5] = [
    "sysbench::every_test_runs_on_every_server",
    "insert_benchmark::every_step_runs_on_every_server",
    "statements::every_server_counts_the_statements",
    "lifetime::a_server_that_is_killed",
    "refused::a_setting_that_the_version_does_not_know",
];

/// Fetches what is missing, and runs the tests of `crates/cli/tests/sql` on it.
///
/// # Errors
/// A program that cannot be had, or a test that failed.
pub fn run(install: Install) -> Result<(), String> {
    run_tests(install, &[])
}

/// As [`run`], with the tests that prove most in the least time.
///
/// # Errors
/// As [`run`]; a test that is no longer there.
pub fn run_short(install: Install) -> Result<(), String> {
    run_tests(install, &SHORT)
}

/// Runs the tests whose names begin as `only` says; all of them if it says nothing.
fn run_tests(install: Install, only: &[&str]) -> Result<(), String> {
    // The archive of MySQL lacks it.
    packages::library("libaio", &["libaio1", "libaio1t64"], install)?;
    let mut names = Vec::new();
    for (name, version) in SERVERS {
        let server = catalogue::find(name, version)?;
        catalogue::obtain(&server).map_err(|error| error.to_string())?;
        names.push(format!("{name}@{}", server.archive.version));
    }
    let names = names.join(" ");
    eprintln!("xtask: on {names}");
    let tests = ["test", "--workspace", "--test", "sql", "--"];
    // A name that no test has would run none, and succeed.
    let listed = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(tests)
        .arg("--list")
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    if let Some(gone) = only.iter().find(|name| !listed.lines().any(|line| line.starts_with(**name))) {
        return Err(format!("there is no test {gone} in crates/cli/tests/sql"));
    }
    run_cargo(&[&tests[..], only].concat(), &[("OUTCROP_SERVERS", Some(Path::new(&names)))])
}
