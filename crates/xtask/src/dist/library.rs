//! The shared and the static library, out of one object.
//!
//! In that object, which is made of the archive that `crates/capi` is compiled to, only the functions of the C API have names: its Rust and its
//! zstd stay out of the way of those that a program has already.

use super::{API, MAJOR, Profile, command};
use crate::sources::make_dir;
use crate::{declarations, programs, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that cargo gives the archive.
pub const ARCHIVE: &str = "liboutcrop_capi.a";

/// Compiles, and installs into `tree/lib`; `dir` is for what lies between.
pub fn install(tree: &Path, dir: &Path, profile: Profile) -> Result<(), String> {
    let lib = tree.join("lib");
    make_dir(&lib)?;
    let built = compile(profile)?;
    let own = declarations::names_in_own_header()?;
    let mut names = exported(&built, &["-g"])?;
    names.retain(|name| name.starts_with("rocksdb_") || own.contains(name));
    let object = one_object(&built, dir, &names)?;
    command(Command::new("ar").arg("rcsD").args([&lib.join("librocksdb.a"), &object]))?;
    shared(&object, dir, &lib)?;
    check(&lib, &names)
}

/// Gives the archive of all that the C API needs.
fn compile(profile: Profile) -> Result<PathBuf, String> {
    if profile == Profile::Dev {
        return programs::built(ARCHIVE);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // As this kind alone it is optimized over its crates, too.
    cargo.args(["rustc", "--quiet", "--release", "--package", "outcrop-capi", "--lib"]);
    cargo.args(["--crate-type=staticlib", "--message-format=json"]).current_dir(root());
    let said = command(&mut cargo)?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let files: Vec<String> = files.filter_map(|file| file.as_str().map(str::to_string)).collect();
    let found = files.iter().rev().find(|file| file.ends_with(ARCHIVE));
    found.map(PathBuf::from).ok_or_else(|| format!("cargo rustc made no {ARCHIVE}: {files:?}"))
}

/// Takes from the archive all that these functions need, directly or not. Nothing else has a name that could collide.
fn one_object(archive: &Path, dir: &Path, names: &BTreeSet<String>) -> Result<PathBuf, String> {
    let list = dir.join("names.txt");
    let write =
        |text: String| std::fs::write(&list, text).map_err(|error| format!("{}: {error}", list.display()));
    let object = dir.join("rocksdb.o");
    write(names.iter().map(|name| format!("--undefined={name}\n")).collect())?;
    command(
        Command::new("ld")
            .args(["-r", "--gc-sections", "-o"])
            .arg(&object)
            .arg(format!("@{}", list.display()))
            .arg(archive),
    )?;
    write(names.iter().map(|name| format!("{name}\n")).collect())?;
    command(
        Command::new("objcopy")
            .arg(format!("--keep-global-symbols={}", list.display()))
            .arg("--strip-debug")
            // Rust's own libraries bring bitcode along, of which archivers would ask an LLVM as new as that one.
            .args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"])
            .arg(&object),
    )?;
    Ok(object)
}

fn shared(object: &Path, dir: &Path, lib: &Path) -> Result<(), String> {
    let file = format!("librocksdb.so.{API}");
    let whole = dir.join(&file);
    command(
        Command::new("cc")
            .args(["-shared", "-o"])
            .args([&whole, object])
            .arg(format!("-Wl,-soname,librocksdb.so.{MAJOR}"))
            // Calls inside of the library stay inside: see `crates/capi/build.rs`.
            .args(["-Wl,-Bsymbolic-functions", "-Wl,-O1", "-Wl,-z,relro,-z,now", "-Wl,--gc-sections"])
            .args(["-Wl,--no-undefined", "-Wl,--as-needed"])
            .args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]),
    )?;
    command(Command::new("strip").arg("-o").arg(lib.join(&file)).arg(&whole))?;
    for (link, to) in
        [(format!("librocksdb.so.{MAJOR}"), file), ("librocksdb.so".into(), format!("librocksdb.so.{MAJOR}"))]
    {
        std::os::unix::fs::symlink(&to, lib.join(&link)).map_err(|error| format!("{link}: {error}"))?;
    }
    Ok(())
}

/// Both libraries define the functions of the headers and those that only older headers have, and nothing else.
fn check(lib: &Path, names: &BTreeSet<String>) -> Result<(), String> {
    let so = lib.join(format!("librocksdb.so.{API}"));
    let dynamic = command(Command::new("readelf").arg("-d").arg(&so))?;
    if !dynamic.contains(&format!("soname: [librocksdb.so.{MAJOR}]")) {
        return Err(format!("{}: no soname: {dynamic}", so.display()));
    }
    let (header, own) = (declarations::names_in_our_header()?, declarations::names_in_own_header()?);
    let foreign = names.iter().filter(|name| !name.starts_with("rocksdb_") && !own.contains(*name));
    let foreign: Vec<_> = foreign.collect();
    let missing: Vec<_> = header.union(&own).filter(|name| !names.contains(*name)).collect();
    if !foreign.is_empty() || !missing.is_empty() {
        return Err(format!("{}: exports {foreign:?}, lacks {missing:?}", so.display()));
    }
    if exported(&so, &["-D"])? != *names || exported(&lib.join("librocksdb.a"), &["-g"])? != *names {
        return Err("librocksdb.so and librocksdb.a do not export the same functions".into());
    }
    Ok(())
}

fn exported(library: &Path, arguments: &[&str]) -> Result<BTreeSet<String>, String> {
    let said =
        command(Command::new("nm").args(arguments).args(["--defined-only", "--format=posix"]).arg(library))?;
    // `name type value size`; the line of an archive's member ends with a colon.
    let rows = said.lines().filter(|line| !line.ends_with(':')).filter_map(|line| line.split(' ').next());
    Ok(rows.filter(|name| !name.is_empty()).map(str::to_string).collect())
}
