//! RocksDB's own test of its tool, `tools/ldb_test.py`, unmodified, on `outcrop ldb`.
//!
//! The script comes with the sources that the crate `librocksdb-sys` carries; it runs `./ldb`. `ldb_test/exceptions.txt` lists the tests that
//! fail on ours, and why. A test that fails and is not listed is an error, and so is one that is listed and passes: the list only shrinks.

use crate::packages::{self, Install};
use crate::programs;
use crate::sources::{make_dir, sources};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The release whose test is used.
const SOURCES: &str = "=0.19.0";
const LIST: &str = include_str!("ldb_test/exceptions.txt");
/// How long all tests together may take before they count as hanging. They take half a minute.
const LIMIT_SECONDS: u32 = 900;

/// See the module.
///
/// # Errors
/// Which tests disagree with the list, or what could not be built or fetched.
pub fn run(install: Install) -> Result<(), String> {
    let python = packages::program(&["python3"], "python3", install)?;
    let dir = programs::target_dir().join("ldb_test");
    make_dir(&dir)?;
    let script = sources(SOURCES, &dir)?.join("rocksdb/tools/ldb_test.py");
    std::fs::copy(&script, dir.join("ldb_test.py"))
        .map_err(|error| format!("{}: {error}", script.display()))?;
    wrapper(&dir, &programs::built("outcrop")?)?;
    let output = Command::new("timeout")
        .arg(LIMIT_SECONDS.to_string())
        .arg(python)
        .args(["ldb_test.py", "--verbose"])
        .current_dir(&dir)
        .env("TMPDIR", &dir)
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let log = dir.join("output.txt");
    std::fs::write(&log, &said).map_err(|error| format!("{}: {error}", log.display()))?;
    report(&outcomes(&said)?, &exceptions()?)
        .map_err(|why| format!("ldb_test.py:\n  {why}\nits output is {}", log.display()))
}

/// `./ldb` runs `outcrop ldb`.
fn wrapper(dir: &Path, program: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("ldb");
    let text = format!("#!/bin/sh\nexec {} ldb \"$@\"\n", program.display());
    std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Which tests passed: the lines `testName (...) ... ok` that unittest prints.
fn outcomes(said: &str) -> Result<BTreeMap<String, bool>, String> {
    let outcome = |line: &str| {
        let name = line.strip_prefix("test")?.split(' ').next()?;
        let (_, verdict) = line.rsplit_once(" ... ")?;
        Some((format!("test{name}"), verdict.trim() == "ok"))
    };
    let found: BTreeMap<String, bool> = said.lines().filter_map(outcome).collect();
    let ran: Option<usize> =
        said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse().ok());
    match ran {
        Some(count) if count == found.len() && count > 0 => Ok(found),
        _ => Err(format!("{} of {ran:?} tests said what became of them:\n{said}", found.len())),
    }
}

/// The list: test, and why it fails, between bars.
fn exceptions() -> Result<BTreeMap<&'static str, &'static str>, String> {
    let rows = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |row: &'static str| {
        let cells = row.split_once('|').map(|(test, why)| (test.trim(), why.trim()));
        cells.filter(|(_, why)| !why.is_empty()).ok_or_else(|| format!("exceptions.txt: {row}: test | why"))
    };
    rows.map(row).collect()
}

/// Says what became of the listed tests, and compares all with the list.
fn report(
    outcomes: &BTreeMap<String, bool>,
    exceptions: &BTreeMap<&'static str, &'static str>,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (test, passes) in outcomes {
        match (passes, exceptions.get(test.as_str())) {
            (true, None) => {}
            (false, Some(why)) => println!("fails as listed: {test}: {why}"),
            (false, None) => wrong.push(format!("{test} fails")),
            (true, Some(_)) => {
                wrong.push(format!("{test} passes: take it off crates/xtask/src/ldb_test/exceptions.txt"));
            }
        }
    }
    let unknown = exceptions.keys().filter(|listed| !outcomes.contains_key(**listed));
    wrong.extend(unknown.map(|listed| format!("{listed} is listed, and no test")));
    let passed = outcomes.values().filter(|passes| **passes).count();
    println!("ldb_test.py of RocksDB 11.8.1: {passed} of {} tests pass", outcomes.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_and_compared_with_the_list() {
        let said = "testA (__main__.LDBTestCase.testA) ... ok\ntestB (x) ... FAIL\n\nRan 2 tests in 0.1s\n";
        let found = outcomes(said).unwrap();
        assert_eq!((found["testA"], found["testB"]), (true, false));
        report(&found, &BTreeMap::from([("testB", "why")])).unwrap();
        assert!(report(&found, &BTreeMap::new()).unwrap_err().contains("testB fails"));
        let both = BTreeMap::from([("testA", "why"), ("testB", "why")]);
        assert!(report(&found, &both).unwrap_err().contains("testA passes"));
        assert!(report(&found, &BTreeMap::from([("testB", "w"), ("testC", "w")])).is_err());
        assert!(outcomes("Ran 2 tests in 0.1s\n").is_err() && outcomes("").is_err());
        exceptions().unwrap();
    }
}
