//! The programs of `crates/engine/examples` print what the first text block of their module doc says.

use crate::programs;
use crate::root;
use crate::tidy;
use std::path::Path;
use std::process::Command;

const EXAMPLES: &str = "crates/engine/examples";

/// Runs each of them.
///
/// # Errors
/// Which program failed, or what it printed instead.
pub fn run() -> Result<(), String> {
    let mut files = Vec::new();
    tidy::rust_files(&root().join(EXAMPLES), &mut files)?;
    if files.is_empty() {
        return Err(format!("{EXAMPLES}: no example"));
    }
    let programs = programs::built("examples")?;
    files.iter().try_for_each(|file| check(file, &programs))
}

/// `programs` is the directory of the built examples.
fn check(file: &Path, programs: &Path) -> Result<(), String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let expected = expected_output(&tidy::read(file)?)
        .ok_or_else(|| format!("{EXAMPLES}/{name}.rs: its first lines do not say what it prints"))?;
    let output = Command::new(programs.join(&name)).current_dir(root()).output();
    let output = output.map_err(|error| format!("{EXAMPLES}/{name}.rs: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{EXAMPLES}/{name}.rs failed: {}\n{said}", output.status));
    }
    if printed != expected {
        return Err(format!("{EXAMPLES}/{name}.rs printed\n{printed}where its first lines say\n{expected}"));
    }
    Ok(())
}

/// The lines of the first text block of a module doc.
fn expected_output(source: &str) -> Option<String> {
    let doc = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = doc.map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.find(|line| *line == "```text")?;
    Some(lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_the_first_text_block() {
        let source = "//! Adds.\n//!\n//! ```text\n//! a 1\n//!\n//! b\n//! ```\nfn main() {}\n// ```text";
        assert_eq!(expected_output(source).as_deref(), Some("a 1\n\nb\n"));
        assert_eq!(expected_output("//! Adds.\nfn main() {}\n//! ```text"), None);
    }
}
