//! Programs that were built once and put aside, so that a run of days plays one state of the tree whatever is built meanwhile.

use std::path::PathBuf;

/// The environment variable that names their directory; `cargo xtask campaign` sets it for the verbs it runs.
pub const VARIABLE: &str = "OUTCROP_PROGRAMS";

/// The directory; none: programs are built, and run from where they were built.
pub fn kept() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}
