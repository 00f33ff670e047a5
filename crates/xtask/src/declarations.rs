//! Makes the Rust declarations of `packages/librocksdb-sys` from our C header, so that nobody who builds them needs libclang.
//!
//! ```text
//! declarations/types.rs, constants.rs, functions_*.rs   what is the same in every version
//! 0.19/differs.rs, 0.17/differs.rs, ...                 what that version declares in another way
//! 0.19/Cargo.toml, ...                                  the same manifest but for the version and its features
//! capi/Cargo.toml                                       `crates/capi` as a Rust library alone
//! ```
//!
//! One directory per version of `librocksdb-sys`, since a patch is used only where its version is asked for. The declarations of an older
//! version are read from the header in that crate's sources. Functions that only older versions have are
//! declared where `crates/capi` defines them.

mod c_header;
mod manifests;
mod rust_text;

use crate::programs;
use crate::root;
use crate::sources::sources_of;
use c_header::{Header, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How large a file may become: about 80 KB.
const FUNCTIONS_PER_FILE: usize = 600;

/// A version of `librocksdb-sys`.
pub struct Release {
    /// Of the directory.
    pub name: &'static str,
    /// As its manifest says it.
    pub version: &'static str,
    /// The release of `tikv-jemalloc-sys` that it takes: two of them cannot be linked together.
    pub jemalloc: &'static str,
    /// Whether the features of version 0.17 are there.
    pub newer_features: bool,
}

/// All that there are directories for, the newest first.
pub const RELEASES: [Release; 5] = [
    Release { name: "0.19", version: "0.19.0+11.8.1", jemalloc: "0.7", newer_features: true },
    Release { name: "0.17", version: "0.17.3+10.4.2", jemalloc: "0.6", newer_features: true },
    Release { name: "0.16", version: "0.16.0+8.10.0", jemalloc: "0.5", newer_features: false },
    Release { name: "0.11", version: "0.11.0+8.1.1", jemalloc: "0.5", newer_features: false },
    Release { name: "0.8", version: "0.8.3+7.4.4", jemalloc: "0.5", newer_features: false },
];

/// The directory that has one directory per version.
pub fn packages() -> PathBuf {
    root().join("packages/librocksdb-sys")
}

/// Compares the files with what the headers say, or writes them if `REWRITE` is set.
///
/// # Errors
/// Which file differs, which declaration cannot be read, or what cargo says when it fetches older headers.
pub fn run() -> Result<(), String> {
    let rewrite = std::env::var_os("REWRITE").is_some();
    let mut wrong = Vec::new();
    for (path, text) in files()? {
        let path = packages().join(path);
        if rewrite {
            std::fs::create_dir_all(path.parent().expect("a file is in a directory"))
                .and_then(|()| std::fs::write(&path, &text))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            wrong.push(path.display().to_string());
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("not what the headers say (REWRITE=1 writes them): {}", wrong.join(", "))),
    }
}

/// Every file and its text.
fn files() -> Result<Vec<(PathBuf, String)>, String> {
    let ours = our_header()?;
    let target = programs::target_dir();
    let defined = words_of(&root().join("crates/capi/src"))?;
    let mut theirs = Vec::new();
    for release in &RELEASES {
        let number = release.version.split('+').next().unwrap_or_default();
        let dir = target.join("declarations").join(release.name);
        let sources = sources_of("librocksdb-sys", &format!("={number}"), &dir)?;
        let mut header = c_header::parse(&read(&sources.join("rocksdb/include/rocksdb/c.h"))?)?;
        header.functions.retain(|name, _| ours.functions.contains_key(name) || defined.contains(name));
        theirs.push(header);
    }
    let differing = Differing::of(&ours, &theirs);
    let mut files = shared_files(&ours, &differing);
    files.push((Path::new("capi/Cargo.toml").into(), manifests::CAPI.to_string()));
    for (release, header) in RELEASES.iter().zip(&theirs) {
        let dir = Path::new(release.name);
        files.push((dir.join("Cargo.toml"), manifests::manifest(release)));
        files.push((dir.join("differs.rs"), differing.text(header, &ours)));
    }
    Ok(files)
}

/// Names that are not the same in all versions.
struct Differing {
    functions: BTreeSet<String>,
    constants: BTreeSet<String>,
    callbacks: BTreeSet<String>,
}

impl Differing {
    fn of(ours: &Header, theirs: &[Header]) -> Differing {
        Differing {
            functions: differing(&ours.functions, theirs.iter().map(|header| &header.functions)),
            constants: differing(&ours.constants, theirs.iter().map(|header| &header.constants)),
            callbacks: differing(&ours.callbacks, theirs.iter().map(|header| &header.callbacks)),
        }
    }

    /// The declarations of one version; those it does not have, as ours are. Types of its own, too.
    fn text(&self, header: &Header, ours: &Header) -> String {
        let chosen = Header {
            callbacks: chosen(&self.callbacks, &header.callbacks, &ours.callbacks),
            opaque: header.opaque.iter().filter(|name| !has_type(ours, name)).cloned().collect(),
            ..Header::default()
        };
        let functions = chosen_functions(&self.functions, header, ours);
        let constants = chosen_constants(&self.constants, header, ours);
        [
            rust_text::TOP.to_string(),
            rust_text::constants(&constants),
            rust_text::types(&chosen),
            rust_text::block(&functions),
        ]
        .concat()
    }
}

fn chosen_functions(names: &BTreeSet<String>, header: &Header, ours: &Header) -> BTreeMap<String, Signature> {
    chosen(names, &header.functions, &ours.functions)
}

fn chosen_constants(names: &BTreeSet<String>, header: &Header, ours: &Header) -> BTreeMap<String, u32> {
    chosen(names, &header.constants, &ours.constants)
}

fn has_type(ours: &Header, name: &String) -> bool {
    ours.opaque.contains(name) || ours.structs.contains_key(name) || ours.callbacks.contains_key(name)
}

/// Names that another version declares in another way, or that only another version has.
fn differing<'a, T: PartialEq + 'a>(
    ours: &BTreeMap<String, T>,
    theirs: impl Iterator<Item = &'a BTreeMap<String, T>>,
) -> BTreeSet<String> {
    let all = theirs.flat_map(|header| header.iter());
    all.filter(|(name, what)| ours.get(*name) != Some(*what)).map(|(name, _)| name.clone()).collect()
}

fn chosen<T: Clone>(
    names: &BTreeSet<String>,
    theirs: &BTreeMap<String, T>,
    ours: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let find = |name: &String| theirs.get(name).or_else(|| ours.get(name)).cloned();
    names.iter().filter_map(|name| Some((name.clone(), find(name)?))).collect()
}

fn shared_files(ours: &Header, differing: &Differing) -> Vec<(PathBuf, String)> {
    let dir = Path::new("declarations");
    let same = |all: &BTreeMap<String, Signature>, names: &BTreeSet<String>| -> BTreeMap<String, Signature> {
        all.iter().filter(|(name, _)| !names.contains(*name)).map(|(a, b)| (a.clone(), b.clone())).collect()
    };
    let constants: BTreeMap<String, u32> = ours
        .constants
        .iter()
        .filter(|(name, _)| !differing.constants.contains(*name))
        .map(|(name, value)| (name.clone(), *value))
        .collect();
    let types = Header {
        callbacks: same(&ours.callbacks, &differing.callbacks),
        opaque: ours.opaque.clone(),
        structs: ours.structs.clone(),
        ..Header::default()
    };
    let with_top = |text: String| format!("{}{text}", rust_text::TOP);
    let mut files = vec![
        (dir.join("types.rs"), with_top(rust_text::types(&types))),
        (dir.join("constants.rs"), with_top(rust_text::constants(&constants))),
    ];
    let functions: Vec<_> = same(&ours.functions, &differing.functions).into_iter().collect();
    let mut all = rust_text::TOP.to_string();
    for (number, part) in functions.chunks(FUNCTIONS_PER_FILE).enumerate() {
        let name = format!("functions_{}.rs", number + 1);
        let part = part.iter().cloned().collect();
        files.push((dir.join(&name), with_top(rust_text::block(&part))));
        all.push_str(&format!("include!(\"{name}\");\n"));
    }
    files.push((dir.join("functions.rs"), all));
    files
}

/// Every word of the Rust files in `dir`: functions that macros define, too.
fn words_of(dir: &Path) -> Result<BTreeSet<String>, String> {
    let mut files = Vec::new();
    crate::tidy::rust_files(dir, &mut files)?;
    let mut words = BTreeSet::new();
    for file in files {
        let text = read(&file)?;
        let found = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.extend(found.filter(|word| word.starts_with("rocksdb_")).map(str::to_string));
    }
    Ok(words)
}

/// The functions that our header declares.
///
/// # Errors
/// The header cannot be read.
pub fn names_in_our_header() -> Result<BTreeSet<String>, String> {
    Ok(our_header()?.functions.into_keys().collect())
}

/// The functions of the header with those that RocksDB has not.
///
/// # Errors
/// The header cannot be read.
pub fn names_in_own_header() -> Result<BTreeSet<String>, String> {
    let header = c_header::parse(&read(&root().join("crates/capi/include/outcrop/c.h"))?)?;
    Ok(header.functions.into_keys().collect())
}

fn our_header() -> Result<Header, String> {
    c_header::parse(&read(&root().join("crates/capi/include/rocksdb/c.h"))?)
}

/// The text of a file.
///
/// # Errors
/// As of reading, with the path.
pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
