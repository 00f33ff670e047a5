//! Programs of the system that a step of the automation needs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The path of `name`, installing Debian's `package` with the ordinary client if it is not there.
///
/// # Errors
/// It is not there and cannot be installed: what to do.
pub fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(path) = find(name) {
        return Ok(path);
    }
    eprintln!("xtask: {name} is missing: apt-get install {package}");
    let run = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .stdout(Stdio::null())
            .stdin(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    if !run(&install) {
        // An old list of packages names files that are gone.
        run(&["update"]);
        run(&install);
    }
    find(name)
        .ok_or_else(|| format!("{name} is needed and could not be installed: apt-get install {package}"))
}

/// Where `name` is in the search path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}
