//! Java programs from sources in this tree: what a pom.xml names is fetched by Maven's own client, and javac compiles.

use crate::sources::make_dir;
use std::path::Path;
use std::process::Command;

/// Compiles `sources` (name and text) into `dir`, against what `pom` names; gives the class path of all of it. `resources`, name
/// and text, are put beside the classes.
///
/// # Errors
/// What Maven or the compiler said.
pub fn build(
    dir: &Path,
    pom: &str,
    sources: &[(&str, &str)],
    resources: &[(&str, &str)],
) -> Result<String, String> {
    let libraries = class_path(dir, pom)?;
    let classes = dir.join("classes");
    let _ = std::fs::remove_dir_all(&classes);
    make_dir(&classes)?;
    for (name, text) in resources {
        write(&classes.join(name), text)?;
    }
    let mut compiler = Command::new("javac");
    compiler.args(["-nowarn", "-encoding", "UTF-8", "-cp", &libraries, "-d"]).arg(&classes);
    for (name, text) in sources {
        let file = dir.join(name);
        write(&file, text)?;
        compiler.arg(file);
    }
    let output = compiler.output().map_err(|error| format!("javac: {error}: a JDK is needed"))?;
    if output.status.success() {
        Ok(format!("{}:{libraries}", classes.display()))
    } else {
        Err(format!("javac: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// The class path of the dependencies of `pom`. Maven is asked once: the answer is kept for as long as the pom stays the same
/// and every file is there.
fn class_path(dir: &Path, pom: &str) -> Result<String, String> {
    make_dir(dir)?;
    let (project, answer) = (dir.join("pom.xml"), dir.join("class_path.txt"));
    if std::fs::read_to_string(&project).is_ok_and(|old| old == pom)
        && let Ok(path) = std::fs::read_to_string(&answer)
        && path.split(':').all(|jar| Path::new(jar).exists())
    {
        return Ok(path);
    }
    let _ = std::fs::remove_file(&answer);
    write(&project, pom)?;
    let output = Command::new("mvn")
        .args(["-B", "-q", "-f"])
        .arg(&project)
        .arg("dependency:build-classpath")
        .arg(format!("-Dmdep.outputFile={}", answer.display()))
        .output()
        .map_err(|error| format!("mvn: {error}: Maven is needed"))?;
    if !output.status.success() {
        return Err(format!("mvn, {}: {}", project.display(), String::from_utf8_lossy(&output.stdout)));
    }
    std::fs::read_to_string(&answer).map_err(|error| format!("{}: {error}", answer.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
