//! RocksJava's own JUnit tests, as the sources carry them, on our library and on the jar's own as the control.
//!
//! `failures.txt` lists the tests that fail on ours and why; how it is judged is in `runs`.

use super::runs::{Tests, judge, tally};
use crate::programs;
use crate::sources::{make_dir, sources};
use outcrop_lab::targets::maven;
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
/// How long a JVM may run before it counts as hanging, in seconds. All tests together take a minute or two, and ten where others work, too.
const LIMIT_SECONDS: u32 = 1800;

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
    let tests = Tests {
        dir: &dir,
        class_path: &suite.class_path,
        runner: "Runner",
        // Closed objects are found by assertions, as where RocksJava runs these tests.
        flags: &["-ea", "-Xmx512m"],
        limit_seconds: LIMIT_SECONDS,
    };
    let ours = tests.run("outcrop", Some(&library), &classes)?;
    let took = started.elapsed();
    if only.is_some() {
        for (test, outcome) in &ours {
            println!("{test}: {outcome:?}");
        }
    }
    let control = tests.run("rocksdb", None, &classes)?;
    println!(
        "RocksJava's tests of 10.4.2: {} on Outcrop in {:.0} s; {} on RocksDB in {:.0} s",
        tally(&ours),
        took.as_secs_f64(),
        tally(&control),
        (started.elapsed() - took).as_secs_f64()
    );
    if only.is_some() { Ok(()) } else { judge("java/failures.txt", LIST, &ours, &control) }
}

/// The compiled tests.
struct Suite {
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
        let suite = Suite { sources, class_path: path.join(":") };
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
            let own = name.rsplit('.').next().unwrap_or_default();
            if name.ends_with("Test")
                && !text.contains(&format!("abstract class {own}"))
                && only.is_none_or(|only| name.contains(only))
            {
                classes.push(name);
            }
        }
        Ok(classes)
    }
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
