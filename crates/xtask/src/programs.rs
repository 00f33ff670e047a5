//! The workspace's programs and libraries, for the steps that run them.
//!
//! They are built as the whole workspace: a package built by itself has its dependencies with fewer features, and each step would
//! compile the engine again. Where they were put aside, these are run whatever is built meanwhile.

use crate::{cargo, root};
use std::path::{Path, PathBuf};

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

/// Where cargo builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
