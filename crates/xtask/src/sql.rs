//! The lab on real SQL servers: fetched, and every test and step run on each at a tiny size.

use crate::packages::{self, Install};
use crate::{cargo, run_cargo};
use outcrop_lab::targets::servers::catalogue;
use std::path::Path;

/// The oldest and the newest PostgreSQL, and a MySQL.
const SERVERS: [(&str, &str); 3] = [("postgres", "12.x"), ("postgres", "18.x"), ("mysql", "8.0.15")];

/// Fetches what is missing, and runs the tests of `crates/cli/tests/sql` on it.
///
/// # Errors
/// A program that cannot be had, or a test that failed.
pub fn run(install: Install) -> Result<(), String> {
    // The archive of MySQL lacks it.
    packages::library("libaio", &["libaio1", "libaio1t64"], install)?;
    let mut names = Vec::new();
    for (name, version) in SERVERS {
        let server = catalogue::find(name, version)?;
        catalogue::obtain(&server).map_err(|error| error.to_string())?;
        names.push(format!("{name}@{}", server.archive.version));
    }
    let names = names.join(" ");
    eprintln!("xtask: on {names}");
    cargo(&["build", "--quiet", "-p", "outcrop-cli"], None)?;
    run_cargo(
        &["test", "-p", "outcrop-cli", "--test", "sql"],
        &[("OUTCROP_SERVERS", Some(Path::new(&names)))],
    )
}
