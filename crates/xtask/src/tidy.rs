//! Rules of the house that the compiler does not know.
//!
//! - A crate imports only crates above it in [`LAYERS`] or [`LAB`]; the lab imports no engine crate.
//! - In the engine only `env` calls files, clocks, randomness or thread creation.
//! - Every file starts with a module doc.
//! - No more files of the engine import each other in a circle than `circles.rs` allows.
//! - The tables of locks and of unsafe code in ARCHITECTURE.md are complete (`locks.rs`, `unsafe_column.rs`).
//! - Every public type of the engine has an example (`public_types.rs`).
//! - No sentence begins with "What" or "Who", but for questions (`sentences.rs`).

use std::path::{Path, PathBuf};

/// Engine crates, each of which may import those before it.
pub(crate) const LAYERS: [&str; 12] = [
    "base", "env", "monitor", "options", "record", "memtable", "cache", "table", "manifest", "engine",
    "capi", "jni-api",
];

/// The lab's crates, likewise.
const LAB: [&str; 4] = ["lab-stats", "lab-load", "lab-sql", "lab"];

/// Calls that only `env` may make, and how to do it instead.
const FORBIDDEN: [(&str, &str); 7] = [
    ("std::fs", "go through outcrop_env::FileSystem"),
    ("std::time::Instant", "go through outcrop_env::Clock"),
    ("std::time::SystemTime", "go through outcrop_env::Clock"),
    ("Instant::now", "go through outcrop_env::Clock"),
    ("SystemTime::now", "go through outcrop_env::Clock"),
    ("thread::spawn", "go through outcrop_env::Threads"),
    ("thread::sleep", "go through outcrop_env::Clock"),
];

/// Checks the whole tree; the error lists every violation.
pub fn check(root: &Path) -> Result<(), String> {
    let mut violations = Vec::new();
    for entry in read_dir(&root.join("crates"))? {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        check_arrows(&entry, &name, &mut violations)?;
        let mut files = Vec::new();
        rust_files(&entry, &mut files)?;
        for file in files {
            check_file(root, &file, &name, &mut violations)?;
        }
    }
    let mut files = Vec::new();
    rust_files(&root.join("packages/python/src"), &mut files)?;
    for file in files {
        check_file(root, &file, "python", &mut violations)?;
    }
    violations.extend(crate::circles::violations(root)?);
    violations.extend(crate::locks::violations(root)?);
    violations.extend(crate::unsafe_column::violations(root)?);
    violations.extend(crate::public_types::violations(root)?);
    violations.extend(crate::sentences::violations(root)?);
    if violations.is_empty() { Ok(()) } else { Err(format!("tidy:\n  {}", violations.join("\n  "))) }
}

fn read_dir(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

pub(crate) fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in read_dir(dir)? {
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks which workspace crates a crate's manifest names.
fn check_arrows(dir: &Path, name: &str, violations: &mut Vec<String>) -> Result<(), String> {
    let manifest = read(&dir.join("Cargo.toml"))?;
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    let place = LAYERS.iter().position(|layer| *layer == name);
    let lab_place = |name: &str| LAB.iter().position(|layer| *layer == name);
    for line in dependencies.lines().filter(|line| line.starts_with("outcrop")) {
        let package = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let imported = if package == "outcrop" { "engine" } else { package.trim_start_matches("outcrop-") };
        let imported_place = LAYERS.iter().position(|layer| *layer == imported);
        let allowed = match (place, imported_place) {
            (Some(place), Some(imported)) => imported < place,
            (None, Some(_)) => !name.starts_with("lab"),
            (Some(_), None) => false,
            (None, None) => match (lab_place(name), lab_place(imported)) {
                (Some(place), Some(imported)) => imported < place,
                (Some(_), None) => false,
                (None, _) => true,
            },
        };
        if !allowed {
            violations.push(format!("crates/{name} must not import {package}"));
        }
    }
    Ok(())
}

fn check_file(root: &Path, path: &Path, name: &str, violations: &mut Vec<String>) -> Result<(), String> {
    let text = read(path)?;
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if !text.starts_with("//!") {
        violations.push(format!("{shown}: the first line must be a module doc (//!)"));
    }
    let inside = path.strip_prefix(root.join("crates").join(name)).unwrap_or(path);
    let product = inside.starts_with("src")
        && !inside.starts_with("src/testing")
        && path.file_name().is_none_or(|file| file != "tests.rs");
    if !product || name == "env" || !LAYERS.contains(&name) {
        return Ok(());
    }
    // Unit tests at the end of a file may do as they like.
    let product_text = text.split("#[cfg(test)]").next().unwrap_or_default();
    for (number, line) in product_text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for (call, instead) in FORBIDDEN {
            if code.contains(call) {
                violations.push(format!("{shown}:{}: {call}: {instead}", number + 1));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_is_tidy() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    }
}
