//! Reference engines: native libraries inside Maven artefacts, fetched by coordinates with the `mvn` client.
//!
//! ```text
//! engines.lock.toml -> mvn dependency:get -> jar in Maven's own cache -> library in our cache -> SHA-256
//! ```
//! Invariant: a library is used only if its checksum is the one in the lock file. Nothing is stored in the
//! source tree; the cache is `$OUTCROP_CACHE`, or `outcrop` in the user's cache directory.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The lock file, as built into this program.
const LOCK: &str = include_str!("../../../benchmarks/engines.lock.toml");

/// One locked engine.
#[derive(Clone, Debug, Deserialize)]
pub struct LockedEngine {
    /// Engine name, such as `rocksdb`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Maven coordinates, `group:artifact:version`.
    pub artifact: String,
    /// Path of the library inside the artefact.
    pub member: String,
    /// SHA-256 of the library, in hexadecimal.
    pub sha256: String,
}

#[derive(Deserialize)]
struct Lock {
    engine: Vec<LockedEngine>,
}

/// Why a reference engine cannot be had; the text says what to do.
#[derive(Debug)]
pub enum ReferenceError {
    /// The lock file does not name it.
    Unknown(String),
    /// The client is missing, or could not fetch the artefact.
    Unavailable(String),
    /// What was fetched is not what the lock file says.
    Mismatch(String),
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceError::Unknown(text)
            | ReferenceError::Unavailable(text)
            | ReferenceError::Mismatch(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ReferenceError {}

/// The engines that can be fetched.
pub fn locked_engines() -> Vec<LockedEngine> {
    toml::from_str::<Lock>(LOCK).expect("the lock file in the tree parses").engine
}

/// The native library of `name` in `version`, fetching it if it is not cached. May take minutes and use the
/// network; says on standard error what it does.
///
/// # Errors
/// See [`ReferenceError`].
pub fn obtain(name: &str, version: &str) -> Result<PathBuf, ReferenceError> {
    let engines = locked_engines();
    let Some(engine) = engines.iter().find(|engine| engine.name == name && engine.version == version) else {
        let known: Vec<String> = engines.iter().map(|e| format!("{}@{}", e.name, e.version)).collect();
        return Err(ReferenceError::Unknown(format!(
            "{name}@{version} is not in benchmarks/engines.lock.toml, which has {}",
            known.join(", ")
        )));
    };
    let path = cache_dir()?.join(format!("lib{name}-{version}.so"));
    if path.exists() && checksum(&path)? == engine.sha256 {
        return Ok(path);
    }
    let jar = fetch(engine)?;
    extract(&jar, &engine.member, &path)?;
    let found = checksum(&path)?;
    if found != engine.sha256 {
        let _ = std::fs::remove_file(&path);
        return Err(ReferenceError::Mismatch(format!(
            "{} inside {}: SHA-256 is {found}, the lock file says {}",
            engine.member, engine.artifact, engine.sha256
        )));
    }
    Ok(path)
}

fn unavailable(what: impl fmt::Display) -> ReferenceError {
    ReferenceError::Unavailable(what.to_string())
}

/// Where libraries are kept, created if need be.
pub fn cache_dir() -> Result<PathBuf, ReferenceError> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = from("OUTCROP_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|dir| dir.join("outcrop")))
        .or_else(|| from("HOME").map(|dir| dir.join(".cache/outcrop")))
        .ok_or_else(|| unavailable("no cache directory: set OUTCROP_CACHE or HOME"))?;
    std::fs::create_dir_all(&dir).map_err(|error| unavailable(format!("{}: {error}", dir.display())))?;
    Ok(dir)
}

/// Runs the client; gives the artefact's path in its local repository.
fn fetch(engine: &LockedEngine) -> Result<PathBuf, ReferenceError> {
    eprintln!("fetching {} with mvn (50 to 90 MB, once)", engine.artifact);
    let run = |arguments: &[String]| {
        Command::new("mvn").args(arguments).stdin(Stdio::null()).output().map_err(|error| {
            unavailable(format!(
                "cannot run mvn to fetch {} ({error}); install Maven, or pass a library by path as NAME=PATH",
                engine.artifact
            ))
        })
    };
    let get = run(&[
        "-q".into(),
        "-B".into(),
        "dependency:get".into(),
        "-Dtransitive=false".into(),
        format!("-Dartifact={}", engine.artifact),
    ])?;
    if !get.status.success() {
        let text = String::from_utf8_lossy(&get.stdout).into_owned() + &String::from_utf8_lossy(&get.stderr);
        let reason =
            text.lines().find(|line| line.contains("ERROR")).unwrap_or("no message").trim().to_string();
        return Err(unavailable(format!("mvn could not fetch {}: {reason}", engine.artifact)));
    }
    let mut parts = engine.artifact.split(':');
    let (Some(group), Some(artifact), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ReferenceError::Unknown(format!("{} are not Maven coordinates", engine.artifact)));
    };
    let jar = local_repository()?
        .join(group.replace('.', "/"))
        .join(artifact)
        .join(version)
        .join(format!("{artifact}-{version}.jar"));
    if jar.exists() { Ok(jar) } else { Err(unavailable(format!("mvn left no {}", jar.display()))) }
}

/// Maven's local repository.
fn local_repository() -> Result<PathBuf, ReferenceError> {
    let output = Command::new("mvn")
        .args(["-q", "-B", "help:evaluate", "-Dexpression=settings.localRepository", "-DforceStdout"])
        .stdin(Stdio::null())
        .output();
    let answer = output.ok().filter(|output| output.status.success()).map(|output| {
        String::from_utf8_lossy(&output.stdout).trim().trim_matches(|c: char| c.is_control()).to_string()
    });
    if let Some(path) = answer.map(PathBuf::from).filter(|path| path.is_dir()) {
        return Ok(path);
    }
    let home = std::env::var_os("HOME").ok_or_else(|| unavailable("HOME is not set"))?;
    Ok(PathBuf::from(home).join(".m2/repository"))
}

fn extract(jar: &Path, member: &str, target: &Path) -> Result<(), ReferenceError> {
    let broken = |error: &dyn fmt::Display| unavailable(format!("{}: {error}", jar.display()));
    let file = std::fs::File::open(jar).map_err(|error| broken(&error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| broken(&error))?;
    let mut entry = archive.by_name(member).map_err(|error| broken(&format!("{member}: {error}")))?;
    // Written under another name first: a run that is stopped here leaves no half library behind.
    let partial = target.with_extension(format!("part{}", std::process::id()));
    let written = std::fs::File::create(&partial)
        .and_then(|mut out| std::io::copy(&mut entry, &mut out))
        .and_then(|_| std::fs::rename(&partial, target));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        unavailable(format!("{}: {error}", target.display()))
    })
}

fn checksum(path: &Path) -> Result<String, ReferenceError> {
    let failed = |error: std::io::Error| unavailable(format!("{}: {error}", path.display()));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let got = file.read(&mut buffer).map_err(failed)?;
        if got == 0 {
            break;
        }
        hasher.update(&buffer[..got]);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_every_engine_once() {
        let engines = locked_engines();
        let mut names: Vec<_> = engines.iter().map(|e| (&e.name, &e.version)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), engines.len());
        assert!(engines.iter().all(|engine| engine.sha256.len() == 64));
    }

    #[test]
    fn an_engine_that_is_not_locked_is_refused_with_those_that_are() {
        let error = obtain("rocksdb", "0.0.1").unwrap_err().to_string();
        assert!(error.contains("rocksdb@11.8.1"), "{error}");
    }

    #[test]
    fn checksums_are_sha256() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checksum(file.path()).unwrap(), expected);
    }
}
