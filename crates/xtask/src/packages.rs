//! Programs of the system that a step of the automation needs: the one that is installed, or Debian's, installed by
//! its ordinary client where that asks nobody for anything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether what is missing may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// As root, on a system with `apt-get`.
    IfMissing,
    /// `--offline`.
    Never,
}

/// The path of the first of `names` that is installed; Debian's `package` has one of them.
///
/// # Errors
/// Why there is none, and what to do.
pub fn program(names: &[&str], package: &str, install: Install) -> Result<PathBuf, String> {
    if let Some(path) = find(names) {
        return Ok(path);
    }
    let by_hand = format!("no {} is installed: apt-get install {package}", names[0]);
    if install == Install::Never {
        return Err(format!("{by_hand} (--offline fetches none)"));
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!("no {} is installed, and there is no apt-get", names[0]));
    }
    // Only root may, and only root could do it unasked.
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        return Err(by_hand);
    }
    eprintln!("xtask: installing {package} (once)");
    let install = ["install", "--yes", "--no-install-recommends", package];
    if !apt_get(&install) {
        // An old list of packages names files that are gone.
        apt_get(&["update"]);
        apt_get(&install);
    }
    find(names).ok_or_else(|| format!("{package} could not be installed; by hand: apt-get install {package}"))
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Where one of `names` is in the search path.
fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
        .find(|path| path.is_file())
}
