//! RocksJava's own JUnit tests, as the sources carry them, on our library and on the jar's own as the control.
//!
//! `failures.txt` lists the tests that fail on ours and why. A test that fails and is not listed is an error, and so is one that
//! is listed and passes: the list only shrinks. A test that fails on the control, too, does not count.
//!
//! All classes run in one JVM. If it ends in a test, that test has failed, and another goes on behind it.

use crate::bindings::suites::Outcome;
use crate::pingpong;
use crate::programs;
use crate::sources::{make_dir, sources};
use outcrop_lab::targets::maven;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The crate that carries RocksDB with RocksJava's tests, and the jar of that version.
const SOURCES: &str = "=0.17.3";
const JAR: &str = "org.rocksdb:rocksdbjni:10.4.2:linux64";
/// The libraries that the tests are written with: RocksJava's Makefile has these versions.
const TOOLS: [&str; 5] = [
    "junit:junit:4.13.1",
    "org.hamcrest:hamcrest:2.2",
    "org.hamcrest:hamcrest-core:1.3",
    "org.assertj:assertj-core:2.9.0",
    "org.mockito:mockito-all:1.10.19",
];
const RUNNER: &str = include_str!("Runner.java");
const LIST: &str = include_str!("failures.txt");
/// How long a JVM may run before it counts as hanging, in seconds. All tests together take a minute or two.
const LIMIT_SECONDS: u32 = 600;

/// By name, `Class.test`.
type Outcomes = BTreeMap<String, Outcome>;

/// See the module. `only`: classes whose names contain it; the list is not judged then.
///
/// # Errors
/// Which tests disagree with the list.
pub fn run(only: Option<&str>) -> Result<(), String> {
    let dir = programs::target_dir().join("java");
    make_dir(&dir)?;
    let suite = Suite::build(&dir)?;
    let library = programs::built(super::LIBRARY)?;
    let classes = suite.classes(only)?;
    let started = Instant::now();
    let ours = suite.run("outcrop", Some(&library), &classes)?;
    let took = started.elapsed();
    if only.is_some() {
        for (test, outcome) in &ours {
            println!("{test}: {outcome:?}");
        }
    }
    let control = suite.run("rocksdb", None, &classes)?;
    let passed =
        |outcomes: &Outcomes| outcomes.values().filter(|outcome| **outcome == Outcome::Passed).count();
    println!(
        "RocksJava's tests of 10.4.2: {} pass on Outcrop in {:.0} s, {} on RocksDB in {:.0} s",
        passed(&ours),
        took.as_secs_f64(),
        passed(&control),
        (started.elapsed() - took).as_secs_f64()
    );
    if only.is_some() { Ok(()) } else { judge(&ours, &control) }
}

/// Compares with the list.
fn judge(ours: &Outcomes, control: &Outcomes) -> Result<(), String> {
    let mut listed = BTreeMap::new();
    for row in LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (test, why) = row.split_once(" | ").ok_or_else(|| format!("failures.txt: {row}: test | why"))?;
        if why.trim().is_empty() || listed.insert(test.trim(), why).is_some() {
            return Err(format!("failures.txt: {row}: no reason, or the second row of this test"));
        }
    }
    let mut wrong = Vec::new();
    for (test, outcome) in ours {
        let fails_there = !matches!(control.get(test), Some(Outcome::Passed));
        match (outcome, listed.get(test.as_str())) {
            (Outcome::Failed(said), None) if !fails_there => wrong.push(format!("{test} | fails: {said}")),
            (Outcome::Passed, Some(why)) if !why.starts_with("at times: ") => {
                wrong.push(format!("{test} passes: take it off java/failures.txt"));
            }
            _ => {}
        }
    }
    let gone = listed.keys().filter(|test| !ours.contains_key(**test));
    wrong.extend(gone.map(|test| format!("{test} is listed, but no test")));
    wrong.extend(
        control.keys().filter(|test| !ours.contains_key(*test)).map(|test| format!("{test} did not run")),
    );
    if wrong.is_empty() { Ok(()) } else { Err(format!("java:\n{}", wrong.join("\n"))) }
}

/// The compiled tests.
struct Suite {
    dir: PathBuf,
    sources: PathBuf,
    class_path: String,
}

impl Suite {
    fn build(dir: &Path) -> Result<Suite, String> {
        let sources = sources(SOURCES, dir)?.join("rocksdb/java/src/test/java");
        let mut jars = vec![maven::fetch(JAR).map_err(|error| error.to_string())?];
        for tool in TOOLS {
            jars.push(maven::fetch(tool).map_err(|error| error.to_string())?);
        }
        let classes = dir.join("classes");
        let _ = std::fs::remove_dir_all(&classes);
        make_dir(&classes)?;
        let runner = dir.join("Runner.java");
        std::fs::write(&runner, RUNNER).map_err(|error| format!("{}: {error}", runner.display()))?;
        let mut path: Vec<String> = jars.iter().map(|jar| jar.display().to_string()).collect();
        path.insert(0, classes.display().to_string());
        let suite = Suite { dir: dir.to_path_buf(), sources, class_path: path.join(":") };
        let mut files = Vec::new();
        java_files(&suite.sources, &mut files)?;
        let output = Command::new("javac")
            .args(["-nowarn", "-encoding", "UTF-8", "-cp", &suite.class_path, "-d"])
            .arg(&classes)
            .arg(&runner)
            .args(&files)
            .output()
            .map_err(|error| format!("javac: {error}: a JDK is needed"))?;
        match output.status.success() {
            true => Ok(suite),
            false => Err(format!("javac: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// The classes with tests.
    fn classes(&self, only: Option<&str>) -> Result<Vec<String>, String> {
        let mut files = Vec::new();
        java_files(&self.sources, &mut files)?;
        let mut classes = Vec::new();
        for file in files {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let name = file.strip_prefix(&self.sources).unwrap_or(&file).with_extension("");
            let name = name.display().to_string().replace('/', ".");
            if name.ends_with("Test")
                && !text.contains("abstract class")
                && only.is_none_or(|only| name.contains(only))
            {
                classes.push(name);
            }
        }
        Ok(classes)
    }

    /// Runs classes on a library, the jar's own for `None`.
    fn run(&self, side: &str, library: Option<&Path>, classes: &[String]) -> Result<Outcomes, String> {
        let place = self.dir.join(side);
        let _ = std::fs::remove_dir_all(&place);
        make_dir(&place)?;
        if let Some(library) = library {
            let copy = place.join("librocksdbjni.so");
            std::fs::copy(library, copy).map_err(|error| format!("{}: {error}", library.display()))?;
        }
        let mut outcomes = Outcomes::new();
        let mut rest = classes;
        loop {
            let said = self.jvm(side, &place, rest, &outcomes)?;
            let running = heard(&said, &mut outcomes);
            let done = said.lines().filter(|line| line.starts_with("@done ")).count();
            rest = &rest[done..];
            let mapped = said.lines().find_map(|line| line.strip_prefix("@library "));
            let is_ours = |mapped: &str| mapped.contains(&place.display().to_string());
            if let Some(mapped) = mapped.filter(|mapped| library.is_some() != is_ours(mapped)) {
                return Err(format!("the tests of {side} ran on {mapped}"));
            }
            match running {
                None if said.contains("@end") => return Ok(outcomes),
                None => {
                    return Err(format!("{side}: the JVM ended outside of a test, in {:?}", rest.first()));
                }
                Some(test) => {
                    outcomes.insert(test, Outcome::Failed("the JVM ended".into()));
                }
            }
        }
    }

    /// The words of one JVM about classes, without the tests whose outcomes are known.
    fn jvm(&self, side: &str, place: &Path, classes: &[String], known: &Outcomes) -> Result<String, String> {
        let skipped = place.join("skipped");
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        std::fs::write(&skipped, names.join("\n"))
            .map_err(|error| format!("{}: {error}", skipped.display()))?;
        let temporary = pingpong::memory_dir()
            .map_or_else(|| place.join("tmp"), |dir| dir.join(format!("java-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&temporary);
        make_dir(&temporary)?;
        let log =
            std::fs::File::create(place.join("log.txt")).map_err(|error| format!("log.txt: {error}"))?;
        let output = Command::new("timeout")
            .args([
                "--signal=KILL",
                &LIMIT_SECONDS.to_string(),
                "java",
                // Closed objects are found by assertions, as where RocksJava runs these tests.
                "-ea",
                "-Xmx512m",
                "-XX:-CreateCoredumpOnCrash",
            ])
            .arg(format!("-XX:ErrorFile={}", place.join("crash.txt").display()))
            .arg(format!("-Djava.io.tmpdir={}", temporary.display()))
            .arg(format!("-Djava.library.path={}", place.display()))
            .args(["-cp", &self.class_path, "Runner"])
            .arg(&skipped)
            .args(classes)
            .current_dir(&temporary)
            .stderr(log)
            .output()
            .map_err(|error| format!("timeout: {error}"));
        let _ = std::fs::remove_dir_all(&temporary);
        let said = String::from_utf8_lossy(&output?.stdout).into_owned();
        if said.is_empty() {
            Err(format!("{side}: no word of the JVM; see {}", place.join("log.txt").display()))
        } else {
            Ok(said)
        }
    }
}

/// Takes what a JVM said into `outcomes`; gives the test that was running when it ended, if one was.
fn heard(said: &str, outcomes: &mut Outcomes) -> Option<String> {
    let mut running = None;
    for line in said.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(word), Some(test)) = (words.next(), words.next()) else { continue };
        let outcome = match word {
            "@start" => {
                running = Some(test.to_string());
                continue;
            }
            "@pass" => Outcome::Passed,
            "@ignored" => Outcome::Ignored,
            "@fail" => Outcome::Failed(words.next().unwrap_or_default().to_string()),
            _ => continue,
        };
        // A class that fails as a whole does so between tests.
        if running.as_deref() == Some(test) {
            running = None;
        }
        outcomes.insert(test.to_string(), outcome);
    }
    running
}

fn java_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            java_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_ends_the_jvm_is_told_from_those_before() {
        let mut outcomes = Outcomes::new();
        let said =
            "@start A.one\n@pass A.one\n@start A.two\n@fail A.two java.lang.Error: no\n@done A\n@start B.x\n";
        assert_eq!(heard(said, &mut outcomes).as_deref(), Some("B.x"));
        assert_eq!(outcomes["A.one"], Outcome::Passed);
        assert_eq!(outcomes["A.two"], Outcome::Failed("java.lang.Error: no".into()));
        assert_eq!(heard("@start A.one\n@ignored A.one\n@end\n", &mut outcomes), None);
        assert_eq!(outcomes["A.one"], Outcome::Ignored);
    }
}
