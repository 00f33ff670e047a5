//! A few calls on every supported jar, on our library: RocksJava's own tests are of one version.

use crate::java::place::Place;
use crate::sources::make_dir;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = include_str!("Smoke.java");

/// Compiles the program against `jar` and runs it on `library`.
///
/// # Errors
/// What the compiler or the program said, or that it ran on another library.
pub fn run(name: &str, jar: &Path, library: &Path, dir: &Path) -> Result<(), String> {
    let place = dir.join(format!("smoke-{name}"));
    let _ = std::fs::remove_dir_all(&place);
    make_dir(&place)?;
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    std::fs::copy(library, place.join("librocksdbjni.so")).map_err(failed)?;
    let source = place.join("Smoke.java");
    std::fs::write(&source, PROGRAM).map_err(failed)?;
    let compiler = Command::new("javac").arg("-cp").arg(jar).arg("-d").args([&place, &source]).output();
    succeeded("javac", name, compiler)?;
    let memory = Place::make(&format!("smoke-{name}"), &place)?;
    let program = Command::new("java")
        .arg(format!("-Djava.library.path={}", place.display()))
        .arg("-cp")
        .arg(format!("{}:{}", place.display(), jar.display()))
        .arg("Smoke")
        .arg(memory.path().join("database"))
        .output();
    drop(memory);
    let said = succeeded("java", name, program)?;
    let mapped = said.lines().find_map(|line| line.strip_prefix("@library ")).unwrap_or("no library");
    if Path::new(mapped).starts_with(&place) {
        Ok(())
    } else {
        Err(format!("jar {name}: the program ran on {mapped}, and not on the library in {}", place.display()))
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
