//! Programs that are built on the installed tree as those of others are: by pkg-config, by cmake, by cgo, from the tarball and
//! from the Debian package, which is installed into a root of its own and removed again.

use super::{MAJOR, Made, command, debian, write};
use crate::packages::{self, Install};
use crate::sources::make_dir;
use crate::{declarations, root};
use std::path::{Path, PathBuf};
use std::process::Command;

const CMAKE: [(&str, &str); 2] = [
    ("CMakeLists.txt", include_str!("tests/cmake/CMakeLists.txt")),
    ("user.cpp", include_str!("tests/cmake/user.cpp")),
];
const CGO: [(&str, &str); 3] = [
    ("go.mod", include_str!("tests/cgo/go.mod")),
    ("main.go", include_str!("tests/cgo/main.go")),
    ("callbacks.h", include_str!("tests/cgo/callbacks.h")),
];

/// Runs them all; `dir` is for what they build.
///
/// # Errors
/// The words of the first that does not build or run.
pub fn run(made: &Made, dir: &Path) -> Result<(), String> {
    let place = dir.join("test");
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    make_dir(&place)?;
    for (program, package) in [("pkg-config", "pkg-config"), ("cmake", "cmake"), ("go", "golang-go")] {
        packages::program(&[program], package, Install::IfMissing)?;
    }
    // The tarball, unpacked where nobody said it would be.
    command(Command::new("tar").arg("-xzf").arg(&made.tarball).arg("-C").arg(&place))?;
    let tree = place.join(made.tree.file_name().expect("a tree has a name"));
    pkg_config(&tree, &place)?;
    cmake(&tree, &place)?;
    cgo(&tree, &place)?;
    package(&made.package, &place)
}

/// A run ends with "all good", in a directory of its own.
fn expect_good(program: &Path, tree: &Path, place: &Path) -> Result<(), String> {
    let data = place.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    }
    make_dir(&data)?;
    let said = command(Command::new(program).arg(&data).env("LD_LIBRARY_PATH", tree.join("lib")))?;
    match said.ends_with("all good\n") {
        true => Ok(()),
        false => Err(format!("{}: {said}", program.display())),
    }
}

/// A program in C.
fn pkg_config(tree: &Path, place: &Path) -> Result<(), String> {
    let said = command(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "rocksdb"])
            .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")),
    )?;
    let program = place.join("example");
    let source = root().join("crates/capi/tests/example.c");
    command(Command::new("cc").arg("-o").args([&program, &source]).args(said.split_whitespace()))?;
    let needed = command(Command::new("readelf").arg("-d").arg(&program))?;
    if !needed.contains(&format!("[librocksdb.so.{MAJOR}]")) {
        return Err(format!("{}: not linked with librocksdb.so.{MAJOR}: {needed}", program.display()));
    }
    expect_good(&program, tree, place)?;
    println!("a C program, by pkg-config: good");
    Ok(())
}

/// A program in C++, linked with either library.
fn cmake(tree: &Path, place: &Path) -> Result<(), String> {
    let sources = place.join("cmake");
    for (name, text) in CMAKE {
        write(&sources.join(name), text)?;
    }
    let build = place.join("cmake-build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&sources).arg("-B").arg(&build);
    command(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", tree.display())))?;
    command(Command::new("cmake").arg("--build").arg(&build))?;
    for name in ["user-rocksdb", "user-rocksdb-shared"] {
        expect_good(&build.join(name), tree, place)?;
    }
    println!("a C++ program, by cmake, with the static and the shared library: good");
    Ok(())
}

/// A program in Go; it uses every area that the header has.
fn cgo(tree: &Path, place: &Path) -> Result<(), String> {
    let sources = place.join("cgo");
    for (name, text) in CGO {
        write(&sources.join(name), text)?;
    }
    let header = declarations::read(&tree.join("include/rocksdb/c.h"))?;
    let unused = unused_areas(&header, &CGO.map(|(_, text)| text).concat());
    if !unused.is_empty() {
        return Err(format!("the program in Go uses nothing of: {}", unused.join(", ")));
    }
    let program = place.join("cgo-program");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".").current_dir(&sources);
    go.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig"))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod");
    command(go.env("GOCACHE", place.with_file_name("go-cache")))?;
    expect_good(&program, tree, place)?;
    println!("a Go program, by cgo, every area of the API: good");
    Ok(())
}

/// Areas of the header, each below its comment, of which `program` calls no function.
fn unused_areas(header: &str, program: &str) -> Vec<String> {
    let areas = header.split("\n/* ").skip(1).filter_map(|area| area.split_once(" */\n"));
    let calls = |functions: &str| {
        let words = functions.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut names = words.filter(|word| word.starts_with("rocksdb_") && !word.ends_with("_t"));
        names.any(|name| program.contains(&format!("{name}(")))
    };
    areas.filter(|(_, functions)| !calls(functions)).map(|(name, _)| name.to_string()).collect()
}

/// Installs the package into a root of its own, builds a program on it, and removes it.
fn package(file: &Path, place: &Path) -> Result<(), String> {
    let scratch = place.join("root");
    make_dir(&scratch.join("var/lib/dpkg/updates"))?;
    make_dir(&scratch.join("var/lib/dpkg/info"))?;
    write(&scratch.join("var/lib/dpkg/status"), "")?;
    let dpkg = |arguments: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", scratch.display()));
        dpkg.arg(format!("--log={}", scratch.join("dpkg.log").display()));
        // Its libc is the machine's, and it has no program to run.
        dpkg.args(["--force-depends", "--force-not-root", "--force-bad-path"]).args(arguments);
        command(&mut dpkg)
    };
    let shown = file.display().to_string();
    dpkg(&["--install", &shown])?;
    let state = dpkg(&["--status", debian::NAME])?;
    if !state.contains("Status: install ok installed") {
        return Err(format!("dpkg --install: {state}"));
    }
    let installed = scratch.join("usr");
    pkg_config(&installed, place)?;
    dpkg(&["--purge", debian::NAME])?;
    let left = files_in(&installed);
    if !left.is_empty() {
        return Err(format!("dpkg --purge leaves {left:?}"));
    }
    println!("the Debian package, installed and removed: good");
    Ok(())
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}
