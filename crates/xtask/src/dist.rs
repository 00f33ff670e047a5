//! The installable tree: what a program that is built for RocksDB finds in the place of RocksDB.
//!
//! ```text
//! include/rocksdb/c.h
//! include/outcrop/c.h
//! lib/librocksdb.so > librocksdb.so.11 > librocksdb.so.11.8.1     soname librocksdb.so.11; exports rocksdb_* alone
//! lib/librocksdb.a                                                one object; nothing but rocksdb_* can collide
//! lib/pkgconfig/rocksdb.pc
//! lib/cmake/rocksdb/RocksDBConfig.cmake, RocksDBConfigVersion.cmake
//! share/doc/rocksdb/                                              licences
//! ```
//!
//! ```text
//! cargo xtask dist           the tree, a tarball and a Debian package, in target/dist
//! cargo xtask dist --test    the same without optimization, in target/dist-test, and programs built on it: `dist/test.rs`
//! ```
//!
//! Neither library has symbol versions: RocksDB's have none.

mod debian;
pub mod library;
mod test;

use crate::programs;
use crate::sources::make_dir;
use crate::{declarations, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of RocksDB whose API this is, as the header says.
pub const API: &str = "11.8.1";
/// The part of it that a shared library's name has.
pub const MAJOR: &str = "11";

/// How the libraries are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Release,
    Dev,
}

/// See the module.
///
/// # Errors
/// The words of a compiler, linker, archiver or packager; in tests, which program found what.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let target = programs::target_dir();
    match arguments {
        [] => {
            let made = make(&target.join("dist"), Profile::Release)?;
            println!("{}\n{}\n{}", made.tree.display(), made.tarball.display(), made.package.display());
            Ok(())
        }
        ["--test"] => {
            let dir = target.join("dist-test");
            let made = make(&dir, Profile::Dev)?;
            test::run(&made, &dir)
        }
        _ => Err("usage: cargo xtask dist [--test]".into()),
    }
}

/// The files that were made.
pub struct Made {
    pub tree: PathBuf,
    pub tarball: PathBuf,
    pub package: PathBuf,
}

fn make(dir: &Path, profile: Profile) -> Result<Made, String> {
    let name = format!("outcrop-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let tree = dir.join(&name);
    if tree.exists() {
        std::fs::remove_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    }
    make_dir(&tree)?;
    library::install(&tree, dir, profile)?;
    texts(&tree)?;
    let tarball = dir.join(format!("{name}.tar.gz"));
    // The same bytes from the same tree: sorted, without the owner and the time.
    command(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"])
            .arg(&tarball)
            .arg("-C")
            .args([dir, Path::new(&name)]),
    )?;
    let package = debian::package(&tree, dir)?;
    Ok(Made { tree, tarball, package })
}

/// Header, licences, and what tells builds where things are.
fn texts(tree: &Path) -> Result<(), String> {
    let copies = [
        ("crates/capi/include/rocksdb/c.h", "include/rocksdb/c.h"),
        ("crates/capi/include/outcrop/c.h", "include/outcrop/c.h"),
        ("LICENSE-APACHE", "share/doc/rocksdb/LICENSE-APACHE"),
        ("LICENSE-MIT", "share/doc/rocksdb/LICENSE-MIT"),
    ];
    for (from, to) in copies {
        write(&tree.join(to), &declarations::read(&root().join(from))?)?;
    }
    for (name, text) in [
        ("lib/pkgconfig/rocksdb.pc", include_str!("dist/rocksdb.pc")),
        ("lib/cmake/rocksdb/RocksDBConfig.cmake", include_str!("dist/RocksDBConfig.cmake")),
        ("lib/cmake/rocksdb/RocksDBConfigVersion.cmake", include_str!("dist/RocksDBConfigVersion.cmake")),
    ] {
        write(&tree.join(name), &text.replace("@API@", API).replace("@MAJOR@", MAJOR))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    make_dir(path.parent().expect("a file is in a directory"))?;
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs it; gives what it printed.
fn command(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            Err(format!("{shown}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }
}
