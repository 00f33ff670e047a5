//! A C program, compiled against the header and linked with the shared library, and with a reference library where there
//! is one: it must print the same.

use crate::library::{compile, outcrop_library, reference};
use std::path::Path;
use std::process::Command;

/// The output of the program `source` when it is linked with `library`.
fn run_with(source: &str, library: &Path) -> String {
    run_in(source, library, &[])
}

/// The same with these variables in its environment.
fn run_in(source: &str, library: &Path, environment: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    compile(source, library, &program);
    let output = Command::new(&program)
        .arg(dir.path())
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .env_remove("OUTCROP_MEMORY_BUDGET")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("all good\n"), "{text}");
    text.into_owned()
}

#[test]
fn a_c_program_finds_the_same_with_either_library() {
    let ours = run_with("example.c", &outcrop_library());
    // The header is that of this version; older libraries lack some of the functions.
    if let Some(path) = reference() {
        let theirs = run_with("example.c", &path);
        let differs = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        assert!(ours == theirs, "differs from RocksDB at (ours, theirs) {differs:?}");
    }
}

#[test]
fn databases_of_a_c_program_share_a_budget_of_memory() {
    run_with("budget.c", &outcrop_library());
}

#[test]
fn a_program_with_functions_of_the_same_names_is_not_called_by_the_library() {
    run_with("own_names.c", &outcrop_library());
}

#[test]
fn a_variable_gives_the_databases_of_any_program_one_budget() {
    for value in ["33554432", "32M", "32 MiB", "a lot"] {
        run_in("process_budget.c", &outcrop_library(), &[("OUTCROP_MEMORY_BUDGET", value)]);
    }
    run_in("process_budget.c", &outcrop_library(), &[]);
}
