//! Outcrop itself as a library, from a checkout: by Cargo, with flags of its compiler.

use super::{Made, Recipe, Wanted, cache, in_cache, inputs, last_lines, tree_checksum};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package whose library has RocksDB's C API.
const PACKAGE: &str = "outcrop-capi";
const LIBRARY: &str = "liboutcrop_capi.so";

/// Makes Outcrop's library as `wanted`, from the checkout it names.
pub(super) fn make(wanted: &Wanted) -> Result<Made, String> {
    make_in(&cache()?, wanted)
}

fn make_in(cache: &Path, wanted: &Wanted) -> Result<Made, String> {
    let source =
        wanted.source.as_ref().ok_or("outcrop is built from a checkout: give it with --source DIR")?;
    let root = source.canonicalize().map_err(|error| format!("{}: {error}", source.display()))?;
    if !root.join("crates/capi/Cargo.toml").is_file() {
        return Err(format!("{} is no checkout of Outcrop: it has no crates/capi", root.display()));
    }
    let toolchain = wanted.compiler.as_ref().map(|name| format!("+{name}"));
    let flags = flags(wanted)?;
    let recipe = Recipe {
        engine: "outcrop".to_string(),
        version: None,
        sources: root.display().to_string(),
        sources_sha256: checksum(&root)?,
        compiler: identity(&root, toolchain.as_deref())?,
        inputs: inputs::of(&flags)?,
        flags,
        link: lto(wanted)?.map(|lto| format!("lto={lto}")).into_iter().collect(),
    };
    in_cache(cache, recipe, |dir, recipe| {
        cargo(&root, toolchain.as_deref(), recipe, wanted, dir)?;
        let made = dir.join("target/release").join(LIBRARY);
        let library = dir.join(LIBRARY);
        std::fs::copy(&made, &library).map_err(|error| format!("{}: {error}", made.display()))?;
        Ok(library)
    })
}

/// The words of RUSTFLAGS.
fn flags(wanted: &Wanted) -> Result<Vec<String>, String> {
    let march = wanted.march.iter().map(|march| format!("-Ctarget-cpu={march}"));
    let more = wanted.flags.iter().flat_map(|flags| flags.split_whitespace().map(str::to_string));
    // Cargo splits RUSTFLAGS at spaces, and so does the lab.
    let flags: Vec<String> = march.chain(more).collect();
    match flags.iter().find(|flag| flag.contains('\u{1f}')) {
        Some(flag) => Err(format!("{flag:?} cannot be a flag")),
        None => Ok(flags),
    }
}

fn lto(wanted: &Wanted) -> Result<Option<&'static str>, String> {
    match wanted.lto.as_deref() {
        None => Ok(None),
        Some("none") => Ok(Some("off")),
        Some("thin") => Ok(Some("thin")),
        Some("full") => Ok(Some("fat")),
        Some(other) => Err(format!("lto is none, thin or full, not {other}")),
    }
}

fn identity(root: &Path, toolchain: Option<&str>) -> Result<String, String> {
    let output = Command::new("rustc").args(toolchain).arg("--version").current_dir(root).output();
    let output = output.map_err(|error| format!("cannot run rustc ({error}); install Rust"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    Err(last_lines(&String::from_utf8_lossy(&output.stderr), 3))
}

fn cargo(
    root: &Path,
    toolchain: Option<&str>,
    recipe: &Recipe,
    wanted: &Wanted,
    dir: &Path,
) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(toolchain)
        .args(["build", "--release", "-p", PACKAGE, "--target-dir"])
        .arg(dir.join("target"));
    command.args(wanted.jobs.map(|jobs| format!("--jobs={jobs}")));
    command
        .current_dir(root)
        .stdin(Stdio::null())
        .env("CARGO_ENCODED_RUSTFLAGS", recipe.flags.join("\u{1f}"));
    command.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR").env_remove("CARGO");
    if let Some(lto) = lto(wanted)? {
        command.env("CARGO_PROFILE_RELEASE_LTO", lto);
    }
    eprintln!("building {PACKAGE} with cargo, of {}", root.display());
    let output = command.output().map_err(|error| format!("cannot run cargo ({error}); install Rust"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("cargo refused {}:\n  {}", root.display(), last_lines(&said, 12)))
}

/// SHA-256 over names and bytes of what a checkout is compiled from.
fn checksum(root: &Path) -> Result<String, String> {
    let mut files: Vec<PathBuf> = ["Cargo.toml", "Cargo.lock"].iter().map(|name| root.join(name)).collect();
    collect(&root.join("crates"), &mut files)?;
    tree_checksum(root, files)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests" && name != "target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs" || end == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Cargo writes it: what it would change is in the checksum of the sources.
    const LOCK: &str = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n\
                        version = 4\n\n[[package]]\nname = \"outcrop-capi\"\nversion = \"0.0.0\"\n";

    /// A checkout that is as small as can be: a library of one function.
    fn checkout(dir: &Path) {
        let own = dir.join("crates/capi");
        std::fs::create_dir_all(own.join("src")).unwrap();
        std::fs::create_dir_all(own.join("tests")).unwrap();
        let package = "[package]\nname = 'outcrop-capi'\nversion = '0.0.0'\nedition = '2021'\n[lib]\ncrate-type = ['cdylib']\n";
        for (name, text) in [
            ("Cargo.toml", "[workspace]\nmembers = ['crates/capi']\nresolver = '2'\n"),
            ("Cargo.lock", LOCK),
            ("crates/capi/Cargo.toml", package),
            ("crates/capi/src/lib.rs", "#[no_mangle] pub extern \"C\" fn one() -> i32 { 1 }\n"),
        ] {
            std::fs::write(dir.join(name), text).unwrap();
        }
    }

    #[test]
    fn a_checkout_is_compiled_once_and_again_when_anything_of_it_changed() {
        let temp = tempfile::tempdir().unwrap();
        let (root, cache) = (temp.path().join("checkout"), temp.path().join("cache"));
        checkout(&root);
        let wanted = Wanted { source: Some(root.clone()), ..Wanted::default() };
        let key = |wanted: &Wanted| make_in(&cache, wanted).map(|made| made.recipe.key());
        let made = make_in(&cache, &wanted).unwrap();
        assert!(made.library.is_file() && made.recipe.inputs.is_empty(), "{made:?}");
        std::fs::remove_dir_all(made.library.parent().unwrap().join("target")).unwrap();
        let again = make_in(&cache, &wanted).unwrap();
        assert_eq!((again.recipe.key(), again.sha256), (made.recipe.key(), made.sha256.clone()));
        assert!(
            !made.library.parent().unwrap().join("target").exists(),
            "it was there and was not made again"
        );
        // Tests are not compiled into it; what is compiled is in its key.
        std::fs::write(root.join("crates/capi/tests/t.rs"), "fn f() {}").unwrap();
        assert_eq!(key(&wanted).unwrap(), made.recipe.key());
        let fast =
            Wanted { march: Some("native".to_string()), lto: Some("thin".to_string()), ..wanted.clone() };
        let fast = make_in(&cache, &fast).unwrap();
        assert_eq!(
            (fast.recipe.flags.as_slice(), fast.recipe.link.as_slice()),
            (["-Ctarget-cpu=native".to_string()].as_slice(), ["lto=thin".to_string()].as_slice())
        );
        assert!(fast.recipe.inputs[0].starts_with("native ") && fast.recipe.key() != made.recipe.key());
        std::fs::write(
            root.join("crates/capi/src/lib.rs"),
            "#[no_mangle] pub extern \"C\" fn two() -> i32 { 2 }\n",
        )
        .unwrap();
        let changed = make_in(&cache, &wanted).unwrap();
        assert!(changed.recipe.key() != made.recipe.key() && changed.sha256 != made.sha256);
    }

    #[test]
    fn what_cannot_be_built_is_said() {
        let temp = tempfile::tempdir().unwrap();
        let make = |wanted: Wanted| make_in(temp.path(), &wanted).unwrap_err();
        assert!(make(Wanted::default()).contains("--source DIR"));
        let source = Some(temp.path().to_path_buf());
        assert!(
            make(Wanted { source: source.clone(), ..Wanted::default() }).contains("no checkout of Outcrop")
        );
        checkout(temp.path());
        let error =
            make(Wanted { source: source.clone(), lto: Some("fat".to_string()), ..Wanted::default() });
        assert!(error.contains("lto is none, thin or full"), "{error}");
        let error = make(Wanted {
            source,
            flags: Some("-Cprofile-use=/no/such/file".to_string()),
            ..Wanted::default()
        });
        assert!(error.contains("cargo refused") && error.contains("/no/such/file"), "{error}");
    }
}
