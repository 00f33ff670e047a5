//! Puts Outcrop under the crate `rocksdb` as its users do, with the one line `[patch.crates-io]`, and runs that crate's own tests,
//! unchanged, and those of crates that use it.
//!
//! ```text
//! cargo xtask bindings            rocksdb 0.25, and what docs/rust.md and docs/migration.md say
//! cargo xtask bindings --all      0.24 and 0.23, too, and the crates of others
//! cargo xtask bindings NAME       one of them, rocksdb-0.24.0; or the pages: docs
//! ```
//!
//! `bindings/failures.txt` lists the tests that fail and why. A test that fails and is not listed is an error, and so is one
//! that is listed and passes: the list only shrinks. Everything is built in one target directory.

mod pages;
pub mod suites;

use crate::declarations;
use crate::programs;
use crate::sources::{make_dir, sources_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use suites::Outcome;

/// How the reason of a test begins that depends on when background work runs: it may pass.
const AT_TIMES: &str = "at times: ";

/// Tests that somebody else wrote, and the directory of `packages/librocksdb-sys` that they are linked with.
struct Suite {
    package: &'static str,
    version: &'static str,
    release: &'static str,
}

/// The first is what CI runs.
const SUITES: [Suite; 7] = [
    Suite { package: "rocksdb", version: "0.25.0", release: "0.19" },
    Suite { package: "rocksdb", version: "0.24.0", release: "0.17" },
    Suite { package: "rocksdb", version: "0.23.0", release: "0.17" },
    Suite { package: "kvdb-rocksdb", version: "0.21.0", release: "0.17" },
    Suite { package: "openraft-rocksstore", version: "0.9.21", release: "0.16" },
    Suite { package: "sov-schema-db", version: "0.3.0", release: "0.11" },
    Suite { package: "typed-store", version: "0.4.0", release: "0.8" },
];

const LIST: &str = include_str!("bindings/failures.txt");

/// See the module.
///
/// # Errors
/// Which suite does not build, and which tests disagree with the list.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    configure()?;
    if arguments == ["docs"] {
        return pages::run();
    }
    declarations::run()?;
    let all: Vec<&Suite> = SUITES.iter().collect();
    let chosen = match arguments {
        [] => all[..1].to_vec(),
        ["--all"] => all,
        [name] => all.into_iter().filter(|suite| suite.name() == *name).collect(),
        _ => Vec::new(),
    };
    if chosen.is_empty() {
        return Err("usage: cargo xtask bindings [--all | PACKAGE-VERSION | docs]".into());
    }
    let failures = failures()?;
    let mut wrong = Vec::new();
    for suite in chosen {
        wrong.extend(suite.judge(&failures)?);
    }
    if matches!(arguments, [] | ["--all"]) {
        pages::run()?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("bindings:\n  {}", wrong.join("\n  "))) }
}

/// The list: suite, test and why, between bars.
fn failures() -> Result<BTreeMap<(&'static str, &'static str), &'static str>, String> {
    let rows = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut listed = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [suite, test, why] = cells[..] else {
            return Err(format!("failures.txt: {row}: suite | test | why"));
        };
        if !SUITES.iter().any(|known| known.name() == suite) {
            return Err(format!("failures.txt: {row}: there is no suite {suite}"));
        }
        if why.is_empty() || listed.insert((suite, test), why).is_some() {
            return Err(format!("failures.txt: {row}: no reason, or the second row of this test"));
        }
    }
    Ok(listed)
}

impl Suite {
    fn name(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }

    /// Runs the tests; gives what disagrees with the list.
    fn judge(&self, failures: &BTreeMap<(&str, &str), &str>) -> Result<Vec<String>, String> {
        let name = self.name();
        let started = Instant::now();
        let dir = bindings_dir();
        let package = self.copy(&dir)?;
        // Its other tests need a package that the registry's copy does not name.
        let targets: &[&str] = if self.package == "typed-store" { &["--lib"] } else { &["--lib", "--tests"] };
        let programs =
            suites::build(&package, &dir.join("target"), targets).map_err(|why| format!("{name}: {why}"))?;
        let built = started.elapsed();
        let mut outcomes = BTreeMap::new();
        for program in &programs {
            outcomes.extend(suites::run(program, &package)?);
        }
        if outcomes.is_empty() {
            return Err(format!("{name} has no tests: {}", package.display()));
        }
        let count =
            |wanted: fn(&Outcome) -> bool| outcomes.values().filter(|outcome| wanted(outcome)).count();
        println!(
            "{name} on Outcrop: {} of {} tests pass; built in {:.0} s, ran in {:.0} s",
            count(|outcome| *outcome == Outcome::Passed),
            count(|outcome| *outcome != Outcome::Ignored),
            built.as_secs_f64(),
            (started.elapsed() - built).as_secs_f64()
        );
        let mut wrong = Vec::new();
        for (test, outcome) in &outcomes {
            match (outcome, failures.get(&(name.as_str(), test.as_str()))) {
                (Outcome::Failed(_), Some(why)) => println!("fails as listed: {test}: {why}"),
                (Outcome::Failed(said), None) => wrong.push(format!("{name} | {test} fails: {said}")),
                (Outcome::Passed, Some(why)) if why.starts_with(AT_TIMES) => {
                    println!("passes, and is listed: {test}: {why}");
                }
                (_, Some(_)) => {
                    wrong.push(format!("{name} | {test} passes: take it off bindings/failures.txt"));
                }
                (_, None) => {}
            }
        }
        let listed = failures.keys().filter(|(suite, _)| *suite == name);
        let gone = listed.filter(|(_, test)| !outcomes.contains_key(*test));
        wrong.extend(gone.map(|(_, test)| format!("{name} | {test} is listed, but no test")));
        Ok(wrong)
    }

    /// The package as the registry has it, with the line that its users would add.
    fn copy(&self, dir: &Path) -> Result<PathBuf, String> {
        let name = self.name();
        let sources =
            sources_of(self.package, &format!("={}", self.version), &dir.join("fetched").join(&name))?;
        let package = dir.join(&name);
        let failed = |error: std::io::Error| format!("{}: {error}", package.display());
        if package.exists() {
            std::fs::remove_dir_all(&package).map_err(failed)?;
        }
        copy_dir(&sources, &package)?;
        let manifest = package.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).map_err(failed)?;
        let patch = declarations::packages().join(self.release);
        // A dependency of its tests that the registry's manifest leaves out.
        let shared = match self.package {
            "kvdb-rocksdb" => "\n[dev-dependencies.kvdb-shared-tests]\nversion = \"0.11\"\n",
            _ => "",
        };
        let workspace = if text.contains("\n[workspace]\n") { "" } else { "\n[workspace]\n" };
        let patched = format!(
            "{text}{shared}{workspace}\n[patch.crates-io]\nlibrocksdb-sys = {{ path = \"{}\" }}\n",
            patch.display()
        );
        std::fs::write(&manifest, patched).map_err(failed)?;
        Ok(package)
    }
}

/// Packages that are optimized, because some tests write gigabytes. The others are not: compiling them takes longer than the tests gain.
const OPTIMIZED: [&str; 8] = [
    "outcrop-base",
    "outcrop-env",
    "outcrop-memtable",
    "outcrop-record",
    "outcrop-table",
    "crc32c",
    "xxhash-rust",
    "zstd-sys",
];

/// Writes what cargo reads for each package below.
fn configure() -> Result<(), String> {
    let dir = bindings_dir().join(".cargo");
    make_dir(&dir)?;
    let rows = OPTIMIZED.map(|name| format!("{name} = {{ opt-level = 1 }}\n")).concat();
    let path = dir.join("config.toml");
    std::fs::write(&path, format!("[profile.dev]\nlto = \"off\"\n[profile.dev.package]\n{rows}"))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn bindings_dir() -> PathBuf {
    programs::target_dir().join("bindings")
}

/// Copies files and directories, but for the list of versions and the toolchain: all suites shall use the same ones. Files keep
/// their times, so that cargo builds again only what changed.
fn copy_dir(from: &Path, to: &Path) -> Result<(), String> {
    make_dir(to)?;
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().expect("an entry has a name");
        if path.is_dir() {
            copy_dir(&path, &to.join(name))?;
        } else if name != "Cargo.lock" && name != "rust-toolchain.toml" {
            let modified = path.metadata().and_then(|data| data.modified()).map_err(failed)?;
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
            let copy = std::fs::File::options().append(true).open(to.join(name)).map_err(failed)?;
            copy.set_modified(modified).map_err(failed)?;
        }
    }
    Ok(())
}
