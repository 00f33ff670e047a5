//! The browser that tests of the lab's pages run in.
//!
//! Without one the tests of pages say that they are skipped; CI says here why it has none.

use crate::packages::{Install, program};
use std::path::PathBuf;

/// Programs that will do, as the tests look for them.
const NAMES: &str = include_str!("../../cli/tests/it/browsers.txt");

/// A browser, or why there is none; `$OUTCROP_BROWSER` names one.
pub fn obtain(install: Install) -> Result<PathBuf, String> {
    match std::env::var_os("OUTCROP_BROWSER") {
        Some(named) => Ok(PathBuf::from(named)),
        None => program(&NAMES.lines().collect::<Vec<_>>(), "chromium", install),
    }
}
