//! The workspace's programs and libraries, for the steps that run them.
//!
//! They are built as the whole workspace: a package built by itself has its dependencies with fewer features, and each step would
//! compile the engine again. Where they were put aside, these are run whatever is built meanwhile.

use crate::{cargo, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that names the directory they were put aside in; `cargo xtask campaign` and `cargo xtask ci` set it
/// for what they run.
pub const VARIABLE: &str = "OUTCROP_PROGRAMS";

/// The file called `name`, if it was put aside.
pub fn kept(name: &str) -> Option<PathBuf> {
    let file = PathBuf::from(std::env::var_os(VARIABLE)?).join(name);
    file.exists().then_some(file)
}

/// The file called `name`: the one that was put aside, or built now.
///
/// # Errors
/// The workspace does not build.
pub fn built(name: &str) -> Result<PathBuf, String> {
    if let Some(kept) = kept(name) {
        return Ok(kept);
    }
    cargo(&["build", "--workspace", "--all-targets", "--quiet"], None)?;
    Ok(target_dir().join("debug").join(name))
}

/// Copies the built files `names` into `dir`, which [`VARIABLE`] may then name.
///
/// # Errors
/// The file that cannot be copied, or is not built.
pub fn put_aside(names: &[&str], dir: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(dir);
    crate::sources::make_dir(dir)?;
    for name in names {
        let from = built(name)?;
        std::fs::copy(&from, dir.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

/// Arguments that give cargo, in a workspace of its own, the C library of zstd as the build of this one made it: compiling it takes half
/// a minute of processors. None if this one has not been built, or has another version.
pub fn zstd_of_the_build(workspace: &Path) -> Vec<String> {
    let version = |dir: &Path| {
        let lock = std::fs::read_to_string(dir.join("Cargo.lock")).ok()?;
        Some(lock.split_once("name = \"zstd-sys\"\nversion = ")?.1.lines().next()?.to_string())
    };
    let built = std::fs::read_dir(target_dir().join("debug/build")).into_iter().flatten().flatten();
    let built = built.filter(|entry| entry.file_name().to_string_lossy().starts_with("zstd-sys-"));
    // Older ones may be of other versions.
    let libraries = built.filter_map(|entry| {
        let path = entry.path().join("out/libzstd.a");
        Some((path.metadata().ok()?.modified().ok()?, path))
    });
    let library = libraries.max().map(|(_, path)| path);
    let (Some(library), Some(host)) = (library, host()) else { return Vec::new() };
    match (version(&root()), version(workspace)) {
        (Some(ours), Some(theirs)) if ours == theirs => {}
        _ => return Vec::new(),
    }
    let dir = library.parent().unwrap_or(Path::new("")).display();
    // In the place of what the build script of the package `zstd-sys` says.
    let config = [
        format!("target.{host}.zstd.rustc-link-lib=['static=zstd']"),
        format!("target.{host}.zstd.rustc-link-search=['native={dir}']"),
    ];
    config.into_iter().flat_map(|text| ["--config".to_string(), text]).collect()
}

/// The machine that is compiled on and for, as the compiler calls it.
fn host() -> Option<String> {
    let said = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_string)
}

/// Where cargo builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
