//! A C program, compiled against the header and linked with the shared library.

use crate::library::outcrop_library;
use std::path::Path;
use std::process::Command;

#[test]
fn a_c_program_uses_the_shared_library() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("example");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(crate_dir.join("tests/example.c"))
        .arg("-I")
        .arg(crate_dir.join("include"))
        .arg(outcrop_library())
        .status()
        .expect("a C compiler is installed");
    assert!(compiled.success());
    let output = Command::new(&program)
        .arg(dir.path().join("db"))
        .env("LD_LIBRARY_PATH", outcrop_library().parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("all good\n"), "{text}");
}

#[test]
fn the_header_declares_exactly_what_the_library_exports() {
    let header =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rocksdb/c.h")).unwrap();
    let mut declared: Vec<&str> = header
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '('))
        .filter_map(|word| word.split_once('(').map(|(name, _)| name))
        .filter(|name| name.starts_with("rocksdb_"))
        .collect();
    declared.sort_unstable();
    let library = std::fs::read(outcrop_library()).unwrap();
    let contains = |name: &str| {
        let needle: Vec<u8> = [b"\0", name.as_bytes(), b"\0"].concat();
        library.windows(needle.len()).any(|window| window == needle)
    };
    for name in &declared {
        assert!(contains(name), "{name} is declared but not exported");
    }
    assert!(declared.len() > 150, "only {} declarations", declared.len());
}
