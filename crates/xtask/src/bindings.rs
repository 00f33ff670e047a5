//! Runs a program that uses the crate `rocksdb` against Outcrop's shared library, as its users would: nothing of
//! theirs changes, only the library that is linked.
//!
//! It needs libclang, from which the crate makes its declarations of our header (`LIBCLANG_PATH` where it is not found
//! by itself; `BINDGEN_EXTRA_CLANG_ARGS=-I...` where it finds no `stddef.h`). No C++ is compiled.

use crate::{cargo, root};
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "[package]\nname = \"outcrop-bindings\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
    [dependencies]\nrocksdb = { version = \"=0.25.0\", default-features = false, features = [\"bindgen-runtime\"] }\n\n\
    [workspace]\n";

/// The program; the end of its output is checked.
const PROGRAM: &str = include_str!("bindings/program.rs");

/// See the module.
pub fn run() -> Result<(), String> {
    cargo(&["build", "-p", "outcrop-capi", "--quiet"], None)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let dir = target.join("bindings");
    let library_dir = dir.join("lib");
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    for made in [&library_dir, &dir.join("src")] {
        std::fs::create_dir_all(made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    write(&dir.join("Cargo.toml"), MANIFEST)?;
    write(&dir.join("src/main.rs"), PROGRAM)?;
    std::fs::copy(target.join("debug/liboutcrop_capi.so"), library_dir.join("librocksdb.so"))
        .map_err(|error| format!("liboutcrop_capi.so: {error}"))?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--"])
        .arg(dir.join("db"))
        .current_dir(&dir)
        .env("CARGO_TARGET_DIR", dir.join("target"))
        .env("ROCKSDB_LIB_DIR", &library_dir)
        .env("ROCKSDB_INCLUDE_DIR", root().join("crates/capi/include"))
        .env("LD_LIBRARY_PATH", &library_dir)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if output.status.success() && text.ends_with("all good\n") {
        Ok(())
    } else {
        Err(format!("the crate rocksdb on Outcrop: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
