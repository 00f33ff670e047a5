//! Where an engine's C++ sources are: carried by a crate, fetched by `cargo fetch`, or a directory of the user's own.
//!
//! ```text
//! rocksdb-sources.toml: RocksDB version -> crate and its version
//! manifest that depends on it -> cargo fetch -> cargo metadata says where it was unpacked -> files, checksum
//! ```
//! Two layouts are understood: a crate's (`rocksdb_lib_sources.txt` beside `rocksdb/`), and a checkout's (`src.mk`).
//! Invariant: the checksum covers names and bytes of all sources and headers, so equal checksums are equal sources.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DATA: &str = include_str!("../../../rocksdb-sources.toml");

#[derive(Deserialize)]
struct Data {
    sources: Vec<Row>,
    leave_out: LeaveOut,
}

#[derive(Deserialize)]
struct Row {
    rocksdb: String,
    #[serde(default = "usual_crate", rename = "crate")]
    name: String,
    version: String,
    standard: Option<u32>,
}

#[derive(Deserialize)]
struct LeaveOut {
    prefixes: Vec<String>,
}

fn usual_crate() -> String {
    "librocksdb-sys".to_string()
}

fn data() -> Data {
    toml::from_str(DATA).expect("a test reads it")
}

/// Sources that can be compiled.
#[derive(Clone, Debug)]
pub struct Sources {
    /// In what directory the compiler runs.
    pub root: PathBuf,
    /// Coordinates, or the directory.
    pub origin: String,
    /// Files to compile, relative to `root`.
    pub files: Vec<PathBuf>,
    /// Text of a further file: which version it is, where sources have only a template of it.
    pub generated: Option<String>,
    /// Directories of headers, relative to `root`.
    pub includes: Vec<PathBuf>,
    /// C++ standard, such as 17.
    pub standard: u32,
    /// SHA-256 of everything that is compiled or included, in hexadecimal.
    pub sha256: String,
}

/// Versions of RocksDB whose sources can be had, oldest first.
pub fn versions() -> Vec<String> {
    data().sources.into_iter().map(|row| row.rocksdb).collect()
}

/// Sources of RocksDB in `version`, fetched if needed.
///
/// # Errors
/// A sentence with the versions there are, or what Cargo said.
pub fn fetched(version: &str, cache: &Path) -> Result<Sources, String> {
    let row = data().sources.into_iter().find(|row| row.rocksdb == version).ok_or_else(|| {
        format!(
            "no crate is known to carry the sources of RocksDB {version}; give them with --source DIR, or take one of {}",
            versions().join(", ")
        )
    })?;
    let manifest = manifest(&row, cache)?;
    let root = unpacked(&row, &manifest).or_else(|_| {
        eprintln!("fetching the crate {} {} with cargo", row.name, row.version);
        cargo(&["fetch", "--manifest-path", &manifest.display().to_string()]).map(|_| ())?;
        unpacked(&row, &manifest)
    })?;
    let mut sources = at(&root)?;
    sources.origin = format!("{} {}", row.name, row.version);
    sources.standard = row.standard.unwrap_or(sources.standard);
    Ok(sources)
}

/// A manifest whose one dependency carries the sources; nothing of it is ever compiled.
fn manifest(row: &Row, cache: &Path) -> Result<PathBuf, String> {
    let exact = row.version.split('+').next().unwrap_or(&row.version);
    let dir = cache.join("sources").join(format!("{}-{exact}", row.name));
    let text = format!(
        "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
         [dependencies.sources]\npackage = \"{}\"\nversion = \"={exact}\"\ndefault-features = false\n",
        row.name
    );
    let written = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(dir.join("lib.rs"), ""))
        .and_then(|()| std::fs::write(dir.join("Cargo.toml"), text));
    written.map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir.join("Cargo.toml"))
}

/// Where Cargo has unpacked the crate.
fn unpacked(row: &Row, manifest: &Path) -> Result<PathBuf, String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
    }
    let path = manifest.display().to_string();
    let printed = cargo(&["metadata", "--offline", "--format-version", "1", "--manifest-path", &path])?;
    let metadata: Metadata =
        serde_json::from_str(&printed).map_err(|error| format!("cargo metadata: {error}"))?;
    let package = metadata.packages.into_iter().find(|package| package.name == row.name);
    let dir = package.and_then(|package| package.manifest_path.parent().map(Path::to_path_buf));
    dir.ok_or_else(|| format!("cargo metadata does not name {}", row.name))
}

/// The output of Cargo.
pub(super) fn cargo(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| {
        format!("cannot run cargo ({error}); install Rust, or give sources with --source DIR")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("cargo {} failed: {}", arguments[0], super::last_lines(&said, 4)))
}

/// The sources in the directory `root`: a crate that carries RocksDB, or a checkout of it.
///
/// # Errors
/// A sentence that says what was looked for.
pub fn at(root: &Path) -> Result<Sources, String> {
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let crate_list = root.join("rocksdb_lib_sources.txt");
    let (inner, listed) = if crate_list.is_file() {
        (PathBuf::from("rocksdb"), read(&crate_list)?.split_whitespace().map(str::to_string).collect())
    } else if root.join("src.mk").is_file() {
        (PathBuf::new(), makefile_list(&read(&root.join("src.mk"))?))
    } else {
        return Err(format!(
            "{} has neither rocksdb_lib_sources.txt nor src.mk: it is no directory of RocksDB's sources",
            root.display()
        ));
    };
    let left_out = data().leave_out.prefixes;
    let mut files: Vec<PathBuf> = listed
        .iter()
        .filter(|file| !left_out.iter().any(|prefix| file.starts_with(prefix.as_str())))
        .map(|file| inner.join(file))
        .collect();
    let mut generated = None;
    if root.join("build_version.cc").is_file() {
        files.push(PathBuf::from("build_version.cc"));
    } else if let Ok(template) = std::fs::read_to_string(root.join("util/build_version.cc.in")) {
        generated = Some(filled(&template));
    }
    if files.is_empty() {
        return Err(format!("{} lists no sources", root.display()));
    }
    let includes = vec![inner.join("include"), inner.clone(), PathBuf::from(".")];
    let standard = std::fs::read_to_string(root.join(&inner).join("CMakeLists.txt"))
        .ok()
        .and_then(|text| declared_standard(&text))
        .map_or(17, |declared| declared.max(17));
    let sha256 = checksum(&root)?;
    Ok(Sources { origin: root.display().to_string(), root, files, generated, includes, standard, sha256 })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files of `LIB_SOURCES = a.cc b.cc ...`, whose lines go on after a backslash.
fn makefile_list(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let line = joined.lines().find(|line| line.trim_start().starts_with("LIB_SOURCES"));
    let words = line.and_then(|line| line.split_once('=')).map_or("", |(_, words)| words);
    words.split_whitespace().filter(|word| word.ends_with(".cc")).map(str::to_string).collect()
}

/// A template with nothing in the places of revision, date and plugins.
fn filled(template: &str) -> String {
    let mut parts = template.split('@');
    let mut text = parts.next().unwrap_or_default().to_string();
    let mut named = true;
    for part in parts {
        let is_name = named && !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        match (named, is_name) {
            (true, true) => text.push_str(if part == "GIT_MOD" { "0" } else { "" }),
            (true, false) => {
                text.push('@');
                text.push_str(part);
                continue;
            }
            (false, _) => text.push_str(part),
        }
        named = !named;
    }
    text
}

/// The first `set(CMAKE_CXX_STANDARD N)`.
fn declared_standard(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("set(CMAKE_CXX_STANDARD ")?;
    rest.split(')').next()?.trim().parse().ok()
}

/// SHA-256 over names and bytes of all C and C++ files below `root`, in the order of their names.
fn checksum(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    super::tree_checksum(root, files)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    const KINDS: [&str; 6] = ["cc", "c", "h", "hpp", "inc", "cpp"];
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && !name.starts_with('.') {
            collect(&path, files)?;
        } else if kind.is_file() && KINDS.iter().any(|end| path.extension().is_some_and(|has| has == *end)) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_one_row() {
        let mut names = versions();
        assert!(names.iter().any(|name| name == "11.8.1"));
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        let error = fetched("1.2.3", Path::new("/no/such")).unwrap_err();
        assert!(error.contains("--source") && error.contains("8.6.7"), "{error}");
    }

    #[test]
    fn a_template_is_filled_and_other_text_stays() {
        let text = "a = \"x:@GIT_SHA@\"; if (@GIT_MOD@ == 0) at \"@:\" { @ROCKSDB_PLUGIN_BUILTINS@ };";
        assert_eq!(filled(text), "a = \"x:\"; if (0 == 0) at \"@:\" {  };");
        assert_eq!(filled("none"), "none");
    }

    #[test]
    fn both_layouts_are_read_and_every_byte_counts() {
        let temp = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(at(temp.path()).unwrap_err().contains("src.mk"));
        file("src.mk", "X = 1\nLIB_SOURCES =      \\\n  db/c.cc     \\\n  tools/ldb.cc\nY = 2\n");
        file("db/c.cc", "int a;");
        let checkout = at(temp.path()).unwrap();
        assert_eq!((checkout.files, checkout.standard), (vec![PathBuf::from("db/c.cc")], 17));
        file("CMakeLists.txt", "if(NOT DEFINED CMAKE_CXX_STANDARD)\n  set(CMAKE_CXX_STANDARD 20)\nendif()\n");
        let again = at(temp.path()).unwrap();
        assert_eq!((again.standard, &again.sha256), (20, &checkout.sha256));
        file("db/c.h", "int b;");
        assert_ne!(at(temp.path()).unwrap().sha256, checkout.sha256, "headers count");

        file("rocksdb_lib_sources.txt", "db/c.cc utilities/debug.cc\ndb/d.cc");
        file("build_version.cc", "");
        let carried = at(temp.path()).unwrap();
        let names: Vec<_> = carried.files.iter().map(|file| file.display().to_string()).collect();
        assert_eq!(names, ["rocksdb/db/c.cc", "rocksdb/db/d.cc", "build_version.cc"]);
        assert_eq!(carried.includes[0], PathBuf::from("rocksdb/include"));
    }
}
