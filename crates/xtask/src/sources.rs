//! RocksDB's sources, as the crate `librocksdb-sys` carries them: scripts and tests of its own that we run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates `dir` and what leads to it.
pub fn make_dir(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))
}

/// The directory of the sources of `librocksdb-sys`: see [`sources_of`].
///
/// # Errors
/// The words of cargo.
pub fn sources(version: &str, dir: &Path) -> Result<PathBuf, String> {
    sources_of("librocksdb-sys", version, dir)
}

/// The directory of the crate `name` whose version is `version`, a requirement, fetched by cargo for a package below `dir` that
/// is never built.
///
/// # Errors
/// The words of cargo.
pub fn sources_of(name: &str, version: &str, dir: &Path) -> Result<PathBuf, String> {
    let package = dir.join("sources");
    make_dir(&package.join("src"))?;
    let write = |name: &str, text: &str| {
        std::fs::write(package.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n\
             {name} = {{ version = \"{version}\", default-features = false }}\n\n[workspace]\n"
        ),
    )?;
    write("src/lib.rs", "")?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1"])
        .current_dir(&package)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let manifests = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let start = format!("{name}-");
    let is_of_it = |dir: &&Path| dir.file_name().is_some_and(|own| own.to_string_lossy().starts_with(&start));
    manifests
        .filter_map(|path| Path::new(path).parent().filter(is_of_it))
        .map(Path::to_path_buf)
        .next()
        .ok_or_else(|| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))
}
