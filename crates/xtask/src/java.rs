//! Outcrop under RocksJava: the jar `org.rocksdb:rocksdbjni` as it is, with our library on `java.library.path`.
//!
//! ```text
//! cargo xtask java              all of it
//! cargo xtask java --short      the lists of native methods are the jars'; a few calls on each jar
//! cargo xtask java --only X     tests of classes whose names contain X, one line each
//! cargo xtask java --bench      what calls cost, beside RocksDB's own library
//! cargo xtask java --write      writes the lists, crates/jni-api/natives
//! ```

mod bench;
mod classes;
mod junit;
pub mod place;
pub mod runs;
mod smoke;

use crate::programs;
use crate::root;
use outcrop_lab::targets::maven;
use std::path::Path;

/// The jars whose natives the library answers: the name of the list, and where Maven has the jar.
const JARS: [(&str, &str); 4] = [
    ("11.8.1", "org.rocksdb:rocksdbjni:11.8.1"),
    ("10.4.2", "org.rocksdb:rocksdbjni:10.4.2"),
    ("10.1.3", "org.rocksdb:rocksdbjni:10.1.3"),
    ("frocksdb-8.10.0", "com.ververica:frocksdbjni:8.10.0-ververica-1.0"),
];

/// See the module.
///
/// # Errors
/// What differs, or could not be fetched.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] => {
            short()?;
            junit::run(None)
        }
        ["--short"] => short(),
        ["--write"] => lists(true),
        ["--bench"] => bench::run(),
        ["--only", class] => junit::run(Some(class)),
        _ => Err("usage: cargo xtask java [--short | --write | --bench | --only CLASS]".into()),
    }
}

/// The library, as cargo builds it.
pub const LIBRARY: &str = "librocksdbjni.so";

/// The part that takes seconds.
fn short() -> Result<(), String> {
    lists(false)?;
    let library = programs::built(LIBRARY)?;
    for (name, artifact) in JARS {
        let jar = maven::fetch(artifact).map_err(|error| error.to_string())?;
        smoke::run(name, &jar, &library, &programs::target_dir().join("java"))?;
    }
    Ok(())
}

/// Compares the lists with the jars, or writes them.
fn lists(write: bool) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, artifact) in JARS {
        let list = root().join(format!("crates/jni-api/natives/{name}.txt"));
        let jar = maven::fetch(artifact).map_err(|error| error.to_string())?;
        let natives = classes::natives_of(&jar)?;
        if write {
            std::fs::write(&list, natives).map_err(|error| format!("{}: {error}", list.display()))?;
        } else if read(&list)? != natives {
            wrong.push(format!(
                "{} is not what {artifact} declares: cargo xtask java --write",
                list.display()
            ));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
