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
const LOCK: &str = include_str!("../../../../benchmarks/engines.lock.toml");

/// One locked engine.
#[derive(Clone, Debug, Deserialize)]
pub struct LockedEngine {
    /// Engine name, such as `rocksdb`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Maven coordinates, `group:artifact:version` or `group:artifact:version:classifier`.
    pub artifact: String,
    /// Path of the library inside the artefact.
    pub member: String,
    /// SHA-256 of the library, in hexadecimal.
    pub sha256: String,
}

/// A library that a package of the system installs.
#[derive(Clone, Debug, Deserialize)]
pub struct InstalledEngine {
    /// Engine name, such as `leveldb`.
    pub name: String,
    /// Version it is known by, such as `1.23`.
    pub version: String,
    /// Where packages put it; the first that exists is taken.
    pub paths: Vec<PathBuf>,
    /// The command that installs it.
    pub install: String,
}

#[derive(Deserialize)]
struct Lock {
    engine: Vec<LockedEngine>,
    installed: Vec<InstalledEngine>,
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
    lock().engine
}

/// The engines that packages of the system install.
pub fn installed_engines() -> Vec<InstalledEngine> {
    lock().installed
}

fn lock() -> Lock {
    toml::from_str::<Lock>(LOCK).expect("the lock file in the tree parses")
}

/// The native library of `name` in `version`, fetching it if it is not cached. May take minutes and use the
/// network; says on standard error what it does.
///
/// # Errors
/// See [`ReferenceError`].
pub fn obtain(name: &str, version: &str) -> Result<PathBuf, ReferenceError> {
    let Lock { engine: engines, installed } = lock();
    if let Some(engine) = installed.iter().find(|engine| engine.name == name && engine.version == version) {
        let found = engine.paths.iter().find(|path| path.exists());
        return found.cloned().ok_or_else(|| {
            unavailable(format!("{name}@{version} is not installed; install it with: {}", engine.install))
        });
    }
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

/// What Maven calls an artefact.
struct Coordinates<'a> {
    group: &'a str,
    artifact: &'a str,
    version: &'a str,
    classifier: Option<&'a str>,
}

impl<'a> Coordinates<'a> {
    fn parse(text: &'a str) -> Result<Coordinates<'a>, ReferenceError> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [group, artifact, version] => Ok(Coordinates { group, artifact, version, classifier: None }),
            [group, artifact, version, classifier] => {
                Ok(Coordinates { group, artifact, version, classifier: Some(classifier) })
            }
            _ => Err(ReferenceError::Unknown(format!("{text} are not Maven coordinates"))),
        }
    }

    /// As `dependency:get` takes them.
    fn for_client(&self) -> String {
        let classifier = self.classifier.map_or(String::new(), |classifier| format!(":jar:{classifier}"));
        format!("{}:{}:{}{classifier}", self.group, self.artifact, self.version)
    }

    /// Where the local repository keeps the artefact.
    fn path(&self) -> PathBuf {
        let classifier = self.classifier.map_or(String::new(), |classifier| format!("-{classifier}"));
        Path::new(&self.group.replace('.', "/"))
            .join(self.artifact)
            .join(self.version)
            .join(format!("{}-{}{classifier}.jar", self.artifact, self.version))
    }
}

/// Runs the client; gives the artefact's path in its local repository.
fn fetch(engine: &LockedEngine) -> Result<PathBuf, ReferenceError> {
    let coordinates = Coordinates::parse(&engine.artifact)?;
    eprintln!("fetching {} with mvn (10 to 90 MB, once)", engine.artifact);
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
        format!("-Dartifact={}", coordinates.for_client()),
    ])?;
    if !get.status.success() {
        let text = String::from_utf8_lossy(&get.stdout).into_owned() + &String::from_utf8_lossy(&get.stderr);
        let reason =
            text.lines().find(|line| line.contains("ERROR")).unwrap_or("no message").trim().to_string();
        return Err(unavailable(format!("mvn could not fetch {}: {reason}", engine.artifact)));
    }
    let jar = local_repository()?.join(coordinates.path());
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

/// SHA-256 of a file, in hexadecimal.
pub fn checksum(path: &Path) -> Result<String, ReferenceError> {
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
    fn coordinates_become_arguments_and_paths() {
        let with = Coordinates::parse("org.a:b:1.2:linux64").unwrap();
        assert_eq!(with.for_client(), "org.a:b:1.2:jar:linux64");
        assert_eq!(with.path(), Path::new("org/a/b/1.2/b-1.2-linux64.jar"));
        let without = Coordinates::parse("org.a:b:1.2").unwrap();
        assert_eq!(
            (without.for_client().as_str(), without.path()),
            ("org.a:b:1.2", "org/a/b/1.2/b-1.2.jar".into())
        );
        assert!(Coordinates::parse("b:1.2").is_err());
    }

    #[test]
    fn checksums_are_sha256() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checksum(file.path()).unwrap(), expected);
    }
}
