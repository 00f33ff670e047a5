//! Runs a program that uses the crate `rocksdb` against Outcrop's shared library, as its users would: nothing of
//! theirs changes, only the library that is linked.
//!
//! Once for each version that other crates ask for. The newest makes its declarations from our header, the older ones from
//! the headers of older RocksDB versions that they carry. That needs libclang: `LIBCLANG_PATH`, one that is installed, or
//! Debian's. No C++ is compiled.

use crate::packages::{Install, library};
use crate::{cargo, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Versions of the crate, the newest last.
const VERSIONS: [&str; 5] = ["0.19.0", "0.21.0", "0.22.0", "0.24.0", "0.25.0"];

/// The program; the end of its output is checked.
const PROGRAM: &str = include_str!("bindings/program.rs");

/// See the module. Where nothing may be installed and libclang is missing, says so.
///
/// # Errors
/// Which version does not compile, link or run, and what the compiler or the program said.
pub fn run(install: Install) -> Result<(), String> {
    let libclang = match libclang(install) {
        Err(why) if install == Install::Never => {
            eprintln!("xtask: the crate rocksdb is NOT linked with Outcrop: {why}");
            return Ok(());
        }
        found => found?,
    };
    // As the step `build` of the automation, which has built all of it then.
    cargo(&["build", "--workspace", "--all-targets", "--quiet"], None)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let dir = target.join("bindings");
    let library_dir = dir.join("lib");
    std::fs::create_dir_all(&library_dir).map_err(|error| format!("{}: {error}", library_dir.display()))?;
    std::fs::copy(target.join("debug/liboutcrop_capi.so"), library_dir.join("librocksdb.so"))
        .map_err(|error| format!("liboutcrop_capi.so: {error}"))?;
    for version in VERSIONS {
        run_version(version, &dir, &library_dir, &libclang)?;
        eprintln!("xtask: the crate rocksdb {version} runs on Outcrop");
    }
    Ok(())
}

fn run_version(version: &str, dir: &Path, library_dir: &Path, libclang: &Path) -> Result<(), String> {
    let package = dir.join(version);
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(package.join("src"))
        .map_err(|error| format!("{}: {error}", package.display()))?;
    write(&package.join("Cargo.toml"), &manifest(version))?;
    write(&package.join("src/main.rs"), PROGRAM)?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--quiet", "--"]).arg(package.join("db")).current_dir(&package);
    command.env("CARGO_TARGET_DIR", dir.join("target"));
    command.env("ROCKSDB_LIB_DIR", library_dir).env("LD_LIBRARY_PATH", library_dir);
    command.env("LIBCLANG_PATH", libclang);
    if let Some(headers) = compiler_headers() {
        command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{headers}"));
    }
    if VERSIONS.last() == Some(&version) {
        command.env("ROCKSDB_INCLUDE_DIR", root().join("crates/capi/include"));
    }
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.ends_with("all good\n") {
        return Ok(());
    }
    Err(format!("the crate rocksdb {version} on Outcrop: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn manifest(version: &str) -> String {
    // Older versions always look for libclang when they run.
    let features = if version == "0.25.0" || version == "0.24.0" { "\"bindgen-runtime\"" } else { "" };
    format!(
        "[package]\nname = \"outcrop-bindings\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n\
         rocksdb = {{ version = \"={version}\", default-features = false, features = [{features}] }}\n\n[workspace]\n"
    )
}

/// The directory of libclang.
fn libclang(install: Install) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        return Ok(path.into());
    }
    library("libclang", &["libclang1", "libclang1-14", "libclang1-19"], install)
}

/// Where gcc keeps `stddef.h`, which libclang alone does not bring.
fn compiler_headers() -> Option<String> {
    let output = Command::new("gcc").arg("-print-file-name=include").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string()).filter(|path| !path.is_empty())
}
