//! Reference engines: native libraries inside Maven artefacts, fetched by coordinates with the `mvn` client.
//!
//! ```text
//! engines.lock.toml -> mvn dependency:get -> jar in Maven's own cache -> library in our cache -> SHA-256
//! any other version: by the same coordinates; its checksum goes into the user's own lock file when it is first fetched
//! ```
//! Invariant: a library is used only if its checksum is the one in a lock file: the shipped one, or engines.lock.toml in the
//! cache. Nothing is stored in the source tree; the cache is `$OUTCROP_CACHE`, or `outcrop` in the user's cache directory.

use super::own_lock::OwnLock;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The lock file, as built into this program.
const LOCK: &str = include_str!("../../../../benchmarks/engines.lock.toml");

/// One locked engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
    /// The fetched file differs from the lock file.
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

/// The engines of the shipped catalogue that are fetched.
pub fn locked_engines() -> Vec<LockedEngine> {
    lock().engine
}

/// The engines of the user's own lock file, in the order in which they were first fetched.
///
/// # Errors
/// If the file cannot be read.
pub fn own_engines() -> Result<Vec<LockedEngine>, ReferenceError> {
    own_lock(&cache_dir()?).rows()
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
    let Lock { installed, .. } = lock();
    if let Some(engine) = installed.iter().find(|engine| engine.name == name && engine.version == version) {
        let found = engine.paths.iter().find(|path| path.exists());
        return found.cloned().ok_or_else(|| {
            unavailable(format!("{name}@{version} is not installed; install it with: {}", engine.install))
        });
    }
    Client { program: "mvn".into(), cache: cache_dir()? }.obtain(name, version)
}

/// The user's own lock file, beside the libraries.
const OWN_LOCK: &str = "engines.lock.toml";

fn own_lock(cache: &Path) -> OwnLock {
    OwnLock::new(cache, OWN_LOCK, "engine")
}

/// How RocksDB's releases are called: digits, with dots between.
fn is_release(version: &str) -> bool {
    version.contains('.') && version.split('.').all(|part| part.parse::<u32>().is_ok())
}

/// RocksDB's library for this kind of processor, inside its artefact.
fn member() -> &'static str {
    if cfg!(target_arch = "aarch64") { "librocksdbjni-linux-aarch64.so" } else { "librocksdbjni-linux64.so" }
}

/// The artefacts that may have a release of RocksDB: small ones for one system came with version 7.
fn candidates(version: &str) -> [String; 2] {
    let kind = if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux64" };
    let all = format!("org.rocksdb:rocksdbjni:{version}");
    [format!("{all}:{kind}"), all]
}

/// The client, and where libraries go.
struct Client {
    program: PathBuf,
    cache: PathBuf,
}

/// The artefact's path in the local repository of Maven's client, which fetches it if it is not there.
///
/// # Errors
/// See [`ReferenceError`].
pub fn fetch(artifact: &str) -> Result<PathBuf, ReferenceError> {
    Client { program: "mvn".into(), cache: cache_dir()? }.fetch(artifact)
}

impl Client {
    fn obtain(&self, name: &str, version: &str) -> Result<PathBuf, ReferenceError> {
        let here = |engine: &LockedEngine| engine.name == name && engine.version == version;
        let shipped = lock().engine;
        if let Some(engine) = shipped.iter().find(|engine| here(engine)) {
            return self.checked(engine, "the shipped lock file");
        }
        let own = own_lock(&self.cache);
        if let Some(engine) = own.rows()?.iter().find(|engine| here(engine)) {
            return self.checked(engine, &own.to_string());
        }
        if name == "rocksdb" && is_release(version) {
            return self.first(version);
        }
        let known: Vec<String> = shipped.iter().map(|e| format!("{}@{}", e.name, e.version)).collect();
        Err(ReferenceError::Unknown(format!(
            "{name}@{version} is in no lock file; there are {}, and any other release of RocksDB that Maven has, as \
             rocksdb@8.6.7",
            known.join(", ")
        )))
    }

    fn place(&self, name: &str, version: &str) -> PathBuf {
        self.cache.join(format!("lib{name}-{version}.so"))
    }

    /// A library that a lock file knows.
    fn checked(&self, engine: &LockedEngine, whose: &str) -> Result<PathBuf, ReferenceError> {
        let path = self.place(&engine.name, &engine.version);
        if path.exists() && checksum(&path)? == engine.sha256 {
            return Ok(path);
        }
        let jar = self.fetch(&engine.artifact)?;
        extract(&jar, &engine.member, &path)?;
        let found = checksum(&path)?;
        if found != engine.sha256 {
            let _ = std::fs::remove_file(&path);
            return Err(ReferenceError::Mismatch(format!(
                "{} inside {}: SHA-256 is {found}, {whose} says {}",
                engine.member, engine.artifact, engine.sha256
            )));
        }
        Ok(path)
    }

    /// A release of RocksDB that no lock file knows: fetched, and from now on in the user's own.
    fn first(&self, version: &str) -> Result<PathBuf, ReferenceError> {
        let path = self.place("rocksdb", version);
        let mut refused = None;
        for artifact in candidates(version) {
            let jar = match self.fetch(&artifact) {
                Ok(jar) => jar,
                Err(error) => {
                    refused.get_or_insert(error);
                    continue;
                }
            };
            extract(&jar, member(), &path)?;
            let engine = LockedEngine {
                name: "rocksdb".to_string(),
                version: version.to_string(),
                artifact,
                member: member().to_string(),
                sha256: checksum(&path)?,
            };
            own_lock(&self.cache).record(&engine)?;
            eprintln!("rocksdb@{version}: SHA-256 {}, recorded in {OWN_LOCK}", engine.sha256);
            return Ok(path);
        }
        Err(refused.expect("there are candidates"))
    }
}

fn unavailable(what: impl fmt::Display) -> ReferenceError {
    ReferenceError::Unavailable(what.to_string())
}

/// Where libraries are kept, created if needed.
pub fn cache_dir() -> Result<PathBuf, ReferenceError> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = from("OUTCROP_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|dir| dir.join("outcrop")))
        .or_else(|| from("HOME").map(|dir| dir.join(".cache/outcrop")))
        .ok_or_else(|| unavailable("no cache directory: set OUTCROP_CACHE or HOME"))?;
    std::fs::create_dir_all(&dir).map_err(|error| unavailable(format!("{}: {error}", dir.display())))?;
    Ok(dir)
}

/// Maven's name of an artefact.
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

impl Client {
    /// Runs the client; gives the artefact's path in its local repository.
    fn fetch(&self, artifact: &str) -> Result<PathBuf, ReferenceError> {
        let coordinates = Coordinates::parse(artifact)?;
        eprintln!("fetching {artifact} with mvn (10 to 150 MB, once)");
        let run = |arguments: &[String]| {
            Command::new(&self.program).args(arguments).stdin(Stdio::null()).output().map_err(|error| {
            unavailable(format!(
                "cannot run mvn to fetch {artifact} ({error}); install Maven, or give a library by its path"
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
            let text =
                String::from_utf8_lossy(&get.stdout).into_owned() + &String::from_utf8_lossy(&get.stderr);
            let reason =
                text.lines().find(|line| line.contains("ERROR")).unwrap_or("no message").trim().to_string();
            return Err(unavailable(format!("mvn could not fetch {artifact}: {reason}")));
        }
        let jar = self.local_repository()?.join(coordinates.path());
        if jar.exists() { Ok(jar) } else { Err(unavailable(format!("mvn left no {}", jar.display()))) }
    }

    /// Maven's local repository.
    fn local_repository(&self) -> Result<PathBuf, ReferenceError> {
        let output = Command::new(&self.program)
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
}

pub(super) fn extract(jar: &Path, member: &str, target: &Path) -> Result<(), ReferenceError> {
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
    use std::io::Write;

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
    fn what_is_no_release_is_answered_with_those_there_are() {
        for (name, version) in [("rocksdb", "newest"), ("rocksdb", "8"), ("rocks", "8.6.7")] {
            let error = obtain(name, version).unwrap_err().to_string();
            assert!(error.contains("rocksdb@11.8.1") && error.contains("8.6.7"), "{error}");
        }
    }

    /// A client whose repository is `dir`: it fetches what lies there, and nothing else.
    fn client(dir: &Path) -> Client {
        use std::os::unix::fs::PermissionsExt;
        let script = dir.join("mvn");
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *help:evaluate*) printf %s '{0}'; exit 0;; *:jar:*) exit 0;; esac\n\
             [ -e '{0}/plain' ] || {{ echo '[ERROR] no such artefact'; exit 1; }}\n",
            dir.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let cache = dir.join("cache");
        std::fs::create_dir_all(&cache).unwrap();
        Client { program: script, cache }
    }

    /// Puts a jar with a library of these bytes into the repository.
    fn publish(dir: &Path, artifact: &str, bytes: &[u8]) {
        let path = dir.join(Coordinates::parse(artifact).unwrap().path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut jar = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
        jar.start_file(member(), zip::write::SimpleFileOptions::default()).unwrap();
        jar.write_all(bytes).unwrap();
        jar.finish().unwrap();
    }

    #[test]
    fn a_version_is_recorded_when_it_is_first_fetched_and_verified_after() {
        let temp = tempfile::tempdir().unwrap();
        let client = client(temp.path());
        let [small, _] = candidates("8.6.7");
        publish(temp.path(), &small, b"one");
        let path = client.obtain("rocksdb", "8.6.7").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        let own = own_lock(&client.cache).rows::<LockedEngine>().unwrap();
        assert_eq!((own.len(), own[0].artifact.as_str()), (1, small.as_str()));
        assert_eq!(own[0].sha256, checksum(&path).unwrap());
        // Again: from the cache, and no second row.
        publish(temp.path(), &small, b"two");
        assert_eq!(client.obtain("rocksdb", "8.6.7").unwrap(), path);
        assert_eq!(own_lock(&client.cache).rows::<LockedEngine>().unwrap(), own);
        // A damaged cache is filled anew, and what comes then is not what was recorded.
        std::fs::write(&path, b"damaged").unwrap();
        let error = client.obtain("rocksdb", "8.6.7").unwrap_err().to_string();
        assert!(error.contains("SHA-256") && error.contains(OWN_LOCK), "{error}");
        assert!(!path.exists());
        publish(temp.path(), &small, b"one");
        client.obtain("rocksdb", "8.6.7").unwrap();
    }

    #[test]
    fn what_the_client_does_not_find_is_not_recorded() {
        let temp = tempfile::tempdir().unwrap();
        let client = client(temp.path());
        // The client is content, but there is no jar; and then it is not content.
        let error = client.obtain("rocksdb", "8.6.6").unwrap_err().to_string();
        assert!(error.contains("mvn left no"), "{error}");
        assert!(own_lock(&client.cache).rows::<LockedEngine>().unwrap().is_empty());
        // Only the large artefact of old releases.
        std::fs::write(temp.path().join("plain"), "").unwrap();
        publish(temp.path(), &candidates("6.1.1")[1], b"old");
        client.obtain("rocksdb", "6.1.1").unwrap();
        assert_eq!(
            own_lock(&client.cache).rows::<LockedEngine>().unwrap()[0].artifact,
            "org.rocksdb:rocksdbjni:6.1.1"
        );
        std::fs::write(client.cache.join(OWN_LOCK), "[[engine]]\nname = 1\n").unwrap();
        assert!(client.obtain("rocksdb", "6.1.1").unwrap_err().to_string().contains(OWN_LOCK));
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
