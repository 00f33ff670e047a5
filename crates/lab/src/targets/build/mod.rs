//! Libraries made here from sources: by which compiler and flags, and a record of what each is made of.
//!
//! ```text
//! Wanted (flags of the verb, or [build.NAME] of an experiment) + sources
//!     -> compiler asked for its version and macros -> Recipe -> key = checksum of it
//!     -> builds/KEY/objects/*.o, those that are there stay -> builds/KEY/lib.so, builds/KEY/recipe.json
//! ```
//! Invariants: a library is in place only when it is whole, and its recipe beside it; the same sources, compiler and flags
//! are compiled once.
//! Next: `sources.rs`, `compiler.rs`, `compile.rs`, `outcrop.rs`.

mod compile;
mod compiler;
mod inputs;
mod outcrop;
pub mod sources;

use crate::report::text::duration;
use crate::targets::maven;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The settings of a build: `[build.NAME]` of an experiment, and flags of `lab engines build`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    /// The compiler: gcc, gcc-13, clang-19, or the path of a C++ compiler; of Outcrop a toolchain, such as nightly.
    #[arg(long)]
    pub compiler: Option<String>,
    /// Optimise when linking: thin or full.
    #[arg(long)]
    pub lto: Option<String>,
    /// For which processors, such as native or x86-64-v3 [default: any with SSE 4.2].
    #[arg(long)]
    pub march: Option<String>,
    /// Further flags of the compiler, such as "-O3 -fno-plt"; of Outcrop RUSTFLAGS.
    #[arg(long, allow_hyphen_values = true)]
    pub flags: Option<String>,
    /// Directory of sources [default: RocksDB's are fetched].
    #[arg(long)]
    pub source: Option<PathBuf>,
    /// Processors to compile on [default: all].
    #[arg(long)]
    pub jobs: Option<usize>,
}

/// Flags of `lab engines build`.
#[derive(Clone, Debug, clap::Args)]
pub struct BuildArguments {
    /// The engine: rocksdb@VERSION, or outcrop.
    pub engine: String,
    /// The settings of the build.
    #[command(flatten)]
    pub wanted: Wanted,
    /// The name in lists.
    #[arg(long)]
    pub name: Option<String>,
}

/// The ingredients of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The engine.
    pub engine: String,
    /// Its version, if it was asked for by one.
    pub version: Option<String>,
    /// Coordinates of the sources, or their directory.
    pub sources: String,
    /// SHA-256 of all that is compiled.
    pub sources_sha256: String,
    /// The compiler's version text.
    pub compiler: String,
    /// Flags of the compiler, directories of sources left out.
    pub flags: Vec<String>,
    /// Flags of the linker.
    pub link: Vec<String>,
    /// The inputs that the flags only point to: files with their checksums, and the processor that `native` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

impl Recipe {
    /// Its checksum: the key that a build is cached by.
    pub fn key(&self) -> String {
        let text = serde_json::to_string(self).expect("plain data serialises");
        hexadecimal(&Sha256::digest(text))
    }

    /// In a line.
    pub fn words(&self) -> String {
        let flags = self.flags.iter().filter(|flag| !flag.starts_with("-D") && !flag.starts_with("-I"));
        let flags: Vec<&str> = flags.map(String::as_str).collect();
        format!("{} with {}, of {}", self.compiler, flags.join(" "), self.sources)
    }
}

/// A library that was made here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made {
    /// Where it is.
    pub library: PathBuf,
    /// SHA-256 of the library, in hexadecimal.
    pub sha256: String,
    /// The ingredients of the build.
    pub recipe: Recipe,
    /// The name that `lab engines build` gave it.
    #[serde(default)]
    pub name: Option<String>,
}

/// Makes the library of `engine` as `wanted`, unless it is there already; says on standard error what it does. May take an hour.
///
/// # Errors
/// A sentence, with the compiler's last lines if it refused.
pub fn make(engine: &str, version: Option<&str>, wanted: &Wanted) -> Result<Made, String> {
    match engine {
        "rocksdb" => rocksdb(version, wanted),
        "outcrop" => outcrop::make(wanted),
        other => Err(format!("{other} cannot be built here: rocksdb and outcrop can")),
    }
}

fn rocksdb(version: Option<&str>, wanted: &Wanted) -> Result<Made, String> {
    let cache = cache()?;
    let sources = match (&wanted.source, version) {
        (Some(dir), _) => sources::at(dir)?,
        (None, Some(version)) => sources::fetched(version, &cache)?,
        (None, None) => return Err("say which version: rocksdb@VERSION, or give --source DIR".to_string()),
    };
    let compiler = compiler::Compiler::find(wanted)?;
    let flags = compiler.flags(&sources);
    let recipe = Recipe {
        engine: "rocksdb".to_string(),
        version: version.map(str::to_string),
        sources: sources.origin.clone(),
        sources_sha256: sources.sha256.clone(),
        compiler: compiler.identity.clone(),
        // Directories of headers are in the checksum of the sources.
        inputs: inputs::of(
            &flags.iter().filter(|flag| !flag.starts_with("-I")).cloned().collect::<Vec<_>>(),
        )?,
        flags,
        link: compiler.link_flags(),
    };
    in_cache(&cache, recipe, |dir, recipe| compile::library(&compiler, &sources, recipe, dir, wanted.jobs))
}

/// The library of `recipe` in the cache, made by `make` into the directory it is given if it is not there, or not as it was.
fn in_cache(
    cache: &Path,
    recipe: Recipe,
    make: impl FnOnce(&Path, &Recipe) -> Result<PathBuf, String>,
) -> Result<Made, String> {
    let dir = cache.join("builds").join(&recipe.key()[..16]);
    if let Some(made) = read(&dir).filter(|made| made.recipe == recipe)
        && maven::checksum(&made.library).is_ok_and(|sum| sum == made.sha256)
    {
        return Ok(made);
    }
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let library = make(&dir, &recipe)?;
    let sha256 = maven::checksum(&library).map_err(|error| error.to_string())?;
    let made = Made { library, sha256, recipe, name: None };
    write(&dir, &made)?;
    Ok(made)
}

const RECIPE: &str = "recipe.json";

fn read(dir: &Path) -> Option<Made> {
    serde_json::from_slice(&std::fs::read(dir.join(RECIPE)).ok()?).ok()
}

fn write(dir: &Path, made: &Made) -> Result<(), String> {
    let text = serde_json::to_string_pretty(made).expect("plain data serialises");
    let partial = dir.join(format!("{RECIPE}.{}", std::process::id()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, dir.join(RECIPE)))
        .map_err(|error| format!("{}: {error}", dir.display()))
}

/// Libraries that were made here, by engine, version and name.
pub fn list() -> Vec<Made> {
    let Ok(entries) =
        cache().and_then(|cache| std::fs::read_dir(cache.join("builds")).map_err(|e| e.to_string()))
    else {
        return Vec::new();
    };
    let mut made: Vec<Made> = entries.filter_map(|entry| read(&entry.ok()?.path())).collect();
    made.sort_by_key(|made| (made.recipe.engine.clone(), made.recipe.version.clone(), made.name.clone()));
    made
}

/// The library made here under `name` for an engine and a version.
pub fn named(engine: &str, version: Option<&str>, name: &str) -> Option<Made> {
    list().into_iter().find(|made| {
        made.recipe.engine == engine
            && made.recipe.version.as_deref() == version
            && made.name.as_deref() == Some(name)
    })
}

/// Processors that compile unless somebody says how many.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A sentence about `builds`, engines with their versions, that an experiment has made: how many they are and how long that takes on
/// `cores` where none is there yet; nothing without any.
pub fn notice(builds: &[(&str, Option<&str>)], cores: usize) -> Option<String> {
    /// Processor time of RocksDB's files by gcc, before and from version 7 on; `docs/design/0011`.
    const OLD: f64 = 30.0 * 60.0;
    const NEW: f64 = 60.0 * 60.0;
    /// This workspace with the flags of a release.
    const OUTCROP: f64 = 10.0 * 60.0;
    let seconds = |(engine, version): &(&str, Option<&str>)| {
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        match (*engine, major) {
            ("outcrop", _) => OUTCROP,
            (_, Some(..7)) => OLD,
            _ => NEW,
        }
    };
    let all: f64 = builds.iter().map(seconds).sum();
    (!builds.is_empty()).then(|| {
        format!(
            "libraries to be made here of sources: {}, each once; about {} on {cores} processors if none is in the cache, and a build that \
             is stopped goes on where it was",
            builds.len(),
            duration(all / cores.max(1) as f64)
        )
    })
}

/// `lab engines build`: makes a library and gives it its name.
///
/// # Errors
/// As [`make`].
pub fn run(arguments: &BuildArguments) -> Result<Made, String> {
    let (engine, version) = match arguments.engine.split_once('@') {
        Some((engine, version)) => (engine, Some(version)),
        None => (arguments.engine.as_str(), None),
    };
    let mut made = make(engine, version, &arguments.wanted)?;
    let dir = made.library.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    if let Some(name) = &arguments.name {
        if let Some(mut other) = named(engine, version, name).filter(|other| other.library != made.library) {
            // A name is the newest build's.
            other.name = None;
            write(other.library.parent().unwrap_or(&dir), &other)?;
        }
        made.name = Some(name.clone());
        write(&dir, &made)?;
    }
    Ok(made)
}

fn cache() -> Result<PathBuf, String> {
    maven::cache_dir().map_err(|error| error.to_string())
}

/// SHA-256 over names below `root` and bytes of `files`, in the order of their names.
fn tree_checksum(root: &Path, mut files: Vec<PathBuf>) -> Result<String, String> {
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    Ok(hexadecimal(&hasher.finalize()))
}

/// Bytes as hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last `most` lines that say something, as one.
fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(most)..];
    if last.is_empty() { "it said nothing".to_string() } else { last.join("\n  ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_builds_is_said_before_they_begin() {
        let builds = [("rocksdb", Some("6.28.2")), ("rocksdb", Some("11.8.1"))];
        let said = notice(&builds, 2).unwrap();
        assert!(said.contains("of sources: 2, each once; about 45 min on 2 processors"), "{said}");
        assert_eq!(notice(&[], 2), None);
        assert!(notice(&[("outcrop", None)], 1).unwrap().contains("about 10 min"));
    }
}
