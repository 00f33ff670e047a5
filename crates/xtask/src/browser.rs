//! The browser that tests of the lab's pages run in.
//!
//! Without one the tests of pages say that they are skipped; CI says here why it has none.

use crate::packages::{Install, program};
use std::path::PathBuf;

/// Programs that will do.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
];

/// A browser, or why there is none; `$OUTCROP_BROWSER` names one.
pub fn obtain(install: Install) -> Result<PathBuf, String> {
    match std::env::var_os("OUTCROP_BROWSER") {
        Some(named) => Ok(PathBuf::from(named)),
        None => program(&NAMES, "chromium", install),
    }
}
