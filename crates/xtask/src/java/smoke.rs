//! A few calls on every supported jar, on our library: RocksJava's own tests are of one version.

use crate::java::place::Place;
use crate::sources::make_dir;
use std::path::Path;
use std::process::{Command, Output};

/// The programs: main class, and source.
const PROGRAMS: [(&str, &str); 3] = [
    ("Smoke", include_str!("Smoke.java")),
    ("Ended", include_str!("Ended.java")),
    ("Seldom", include_str!("Seldom.java")),
];

/// The one for the jar of Flink, which has classes of its own.
const FLINK: (&str, &str) = ("Flink", include_str!("Flink.java"));

/// Compiles the programs against `jar` and runs each on `library`.
///
/// # Errors
/// What the compiler or a program said, or that it ran on another library.
pub fn run(name: &str, jar: &Path, library: &Path, dir: &Path) -> Result<(), String> {
    let place = dir.join(format!("smoke-{name}"));
    let _ = std::fs::remove_dir_all(&place);
    make_dir(&place)?;
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    std::fs::copy(library, place.join("librocksdbjni.so")).map_err(failed)?;
    let mut programs = PROGRAMS.to_vec();
    if name.starts_with("frocksdb") {
        programs.push(FLINK);
    }
    let mut sources = Vec::new();
    for (class, text) in &programs {
        let source = place.join(format!("{class}.java"));
        std::fs::write(&source, text).map_err(failed)?;
        sources.push(source);
    }
    let compiler = Command::new("javac").arg("-cp").arg(jar).arg("-d").arg(&place).args(&sources).output();
    succeeded("javac", name, compiler)?;
    programs.iter().try_for_each(|(class, _)| run_one(class, name, jar, &place, &[]))?;
    // The first program knows of the variable, and what becomes of its cache.
    run_one(programs[0].0, name, jar, &place, &[("OUTCROP_MEMORY_BUDGET", "64M")])
}

/// Runs the compiled program `class` with these variables in its environment.
fn run_one(
    class: &str,
    name: &str,
    jar: &Path,
    place: &Path,
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let memory = Place::make(&format!("smoke-{name}"), place)?;
    let program = Command::new("java")
        .arg(format!("-Djava.library.path={}", place.display()))
        .arg("-cp")
        .arg(format!("{}:{}", place.display(), jar.display()))
        .arg(class)
        .arg(memory.path().join("database"))
        .env_remove("OUTCROP_MEMORY_BUDGET")
        .envs(environment.iter().copied())
        .output();
    drop(memory);
    let said = succeeded(&format!("java {class}"), name, program)?;
    let mapped = said.lines().find_map(|line| line.strip_prefix("@library ")).unwrap_or("no library");
    match Path::new(mapped).starts_with(place) {
        true => Ok(()),
        false => {
            Err(format!("jar {name}: {class} ran on {mapped}, and not on the library in {}", place.display()))
        }
    }
}

/// The output of the program.
fn succeeded(program: &str, name: &str, output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| format!("{program}: {error}: a JDK is needed"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}, jar {name}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
