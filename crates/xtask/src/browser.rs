//! The browser that tests of the lab's pages run in: the one that is installed, or Debian's, installed by its client.
//!
//! Without one the tests of pages say that they are skipped; CI says here why it has none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What Debian and its relatives call it.
const PACKAGE: &str = "chromium";

/// Programs that will do.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
];

/// A browser, or why there is none; `may_install` if it may be fetched.
pub fn obtain(may_install: bool) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("OUTCROP_BROWSER") {
        return Ok(PathBuf::from(named));
    }
    if let Some(found) = installed() {
        return Ok(found);
    }
    if !may_install {
        return Err("no Chromium is installed, and --offline fetches none".to_string());
    }
    install()?;
    installed().ok_or_else(|| format!("{PACKAGE} was installed, and no program of it is on the path"))
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|dir| NAMES.iter().map(move |name| dir.join(name)))
        .find(|program| program.is_file())
}

/// Installs it where that asks nobody for anything: as root, on a system with `apt-get`.
fn install() -> Result<(), String> {
    let by_hand = format!("install it with: apt-get install {PACKAGE}");
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(
            "no Chromium is installed, and there is no apt-get; set OUTCROP_BROWSER to one".to_string()
        );
    }
    // Only root may, and only root could do it unasked.
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        return Err(format!("no Chromium is installed; {by_hand}"));
    }
    eprintln!("xtask: installing {PACKAGE} for the tests of the lab's pages (once)");
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends", PACKAGE]] {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("apt-get: {error}; {by_hand}"))?;
        if !status.success() {
            return Err(format!("apt-get {} failed ({status}); {by_hand}", arguments[0]));
        }
    }
    Ok(())
}
