//! The Python package, `packages/python`: built as a wheel, installed into a fresh environment, and tested there beside RocksDB's.
//!
//! ```text
//! fmt, clippy      the package is a workspace of its own, which the root's checks do not see
//! venv, pip        maturin, pytest, mypy, rocksdict: tests/requirements.txt
//! maturin          the wheel; without optimization beyond the dev profile's
//! pytest, stubtest the tests, and the types against what the module really has
//! ```

use crate::packages::{Install, program};
use crate::programs;
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// See the module. Everything is made in `target/python`.
///
/// # Errors
/// The words of the step that failed.
pub fn run(install: Install) -> Result<(), String> {
    let package = root().join("packages/python");
    let target = programs::target_dir();
    let dir = target.join("python");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let in_package = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&package).env("CARGO_TARGET_DIR", &target);
        run_it(command)
    };
    in_package(Path::new(&cargo), &["fmt", "--check"])?;
    in_package(Path::new(&cargo), &["clippy", "--locked", "--quiet", "--", "-D", "warnings"])?;

    let python = program(&["python3"], "python3-venv", install)?;
    let (venv, wheels) = (dir.join("venv"), dir.join("wheels"));
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    in_package(&python, &["-m", "venv", "--clear", text(&venv)?])?;
    let python = venv.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    in_package(&python, &[&pip[..], &["-r", "tests/requirements.txt"]].concat())?;
    let maturin = venv.join("bin/maturin");
    in_package(&maturin, &["build", "--quiet", "--locked", "--profile", "dev", "--out", text(&wheels)?])?;
    let wheel = wheel(&wheels)?;
    in_package(&python, &[&pip[..], &["--no-deps", text(&wheel)?]].concat())?;
    in_package(&python, &["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])?;
    in_package(&python, &["-m", "mypy", "--cache-dir=/dev/null", "--strict", "tests/typed.py"])?;
    // Outside of the package, whose sources have no compiled module.
    let mut stubtest = Command::new(&python);
    stubtest.args(["-m", "mypy.stubtest", "outcrop"]).current_dir(&dir);
    run_it(stubtest)
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: not UTF-8", path.display()))
}

fn run_it(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// The one wheel in `dir`.
fn wheel(dir: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .ok_or_else(|| format!("{}: no wheel", dir.display()))
}
