//! Outcrop under RocksJava: the jar `org.rocksdb:rocksdbjni` as it is, with our library on `java.library.path`.
//!
//! ```text
//! cargo xtask java              the lists of native methods are the jars'; RocksJava's own tests
//! cargo xtask java --write      writes the lists, crates/jni-api/natives
//! ```

mod classes;

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
        [] => lists(false),
        ["--write"] => lists(true),
        _ => Err("usage: cargo xtask java [--write]".into()),
    }
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
