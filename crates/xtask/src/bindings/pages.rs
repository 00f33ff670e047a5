//! Does what docs/rust.md and docs/migration.md say: their manifests, programs and commands are read from the pages.

use super::{bindings_dir, suites};
use crate::sources::make_dir;
use crate::{declarations, root};
use outcrop_lab::targets::maven;
use std::path::Path;
use std::process::Command;

/// The name of our repository in the pages, and a checkout of it.
const REPOSITORY: &str = "https://github.com/outcrop-db/outcrop";
const CHECKOUT: &str = "../outcrop/";

/// A block of a page: its language, and its text without the indentation of a list.
struct Block {
    language: String,
    text: String,
}

/// Runs both pages.
///
/// # Errors
/// The program or command that does not do what the page says.
pub fn run() -> Result<(), String> {
    switch_and_back()?;
    migrate()
}

fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let text = declarations::read(&root().join(page))?;
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        let indentation = line.len() - line.trim_start().len();
        let inside = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let inside: Vec<&str> = inside.map(|line| line.get(indentation..).unwrap_or_default()).collect();
        blocks.push(Block { language: language.to_string(), text: format!("{}\n", inside.join("\n")) });
    }
    Ok(blocks)
}

fn texts<'a>(blocks: &'a [Block], language: &str) -> Vec<&'a str> {
    let chosen = blocks.iter().filter(|block| block.language == language);
    chosen.map(|block| block.text.as_str()).collect()
}

/// docs/rust.md.
fn switch_and_back() -> Result<(), String> {
    let page = blocks("docs/rust.md")?;
    let ([dependencies, path, git], [program], [update, run, back]) =
        (&texts(&page, "toml")[..], &texts(&page, "rust")[..], &texts(&page, "sh")[..])
    else {
        return Err("docs/rust.md: other blocks than its test knows".into());
    };
    let dir = bindings_dir().join("page-rust");
    write(&dir.join("src/main.rs"), program)?;
    let original = format!("{}{dependencies}\n[workspace]\n", package("page-rust"));
    write(&dir.join("Cargo.toml"), &original)?;
    shell("cargo generate-lockfile", &dir)?;
    let here = root().display().to_string();
    // As committed; a manifest alone is looked at.
    write(
        &dir.join("Cargo.toml"),
        &format!("{original}\n{}", git.replace(REPOSITORY, &format!("file://{here}"))),
    )?;
    expect(&shell(update, &dir)?, "librocksdb-sys v0.19.0+11.8.1 (file://", git)?;
    let patched = format!("{original}\n{}", path.replace(CHECKOUT, &format!("{here}/")));
    write(&dir.join("Cargo.toml"), &patched)?;
    expect(&shell(update, &dir)?, &format!("librocksdb-sys v0.19.0+11.8.1 ({here}"), path)?;
    let _ = std::fs::remove_dir_all(dir.join("data"));
    expect(&shell(run, &dir)?, "world\n", run)?;
    with_rocksdb(&dir)?;
    write(&dir.join("Cargo.toml"), &original)?;
    expect(&shell(back, &dir)?, "librocksdb-sys v0.19.0+11.8.1\n", back)?;
    println!("docs/rust.md: switched, run, and back");
    Ok(())
}

/// The program of the page once more, linked with RocksDB by `ROCKSDB_LIB_DIR`, on what Outcrop wrote.
fn with_rocksdb(dir: &Path) -> Result<(), String> {
    let library = maven::obtain("rocksdb", "11.8.1").map_err(|error| error.to_string())?;
    let lib = dir.join("lib");
    make_dir(&lib)?;
    std::fs::copy(&library, lib.join("librocksdb.so"))
        .map_err(|error| format!("{}: {error}", library.display()))?;
    // The library finds what it depends on when it is loaded.
    let build = "cargo rustc --quiet -- -Clink-arg=-Wl,--allow-shlib-undefined";
    let run = "LD_LIBRARY_PATH=lib $CARGO_TARGET_DIR/debug/page-rust data";
    let said = shell(&format!("ROCKSDB_LIB_DIR=$PWD/lib {build}\n{run}\n"), dir)?;
    expect(&said, "world\n", "the program with RocksDB")?;
    let log = declarations::read(&dir.join("data/LOG"))?;
    expect(&log, "RocksDB version: 11.8.1", "LOG of the program with RocksDB")
}

/// docs/migration.md: all programs in one package, as one build.
fn migrate() -> Result<(), String> {
    let page = blocks("docs/migration.md")?;
    let [wanted] = texts(&page, "text")[..] else {
        return Err("docs/migration.md: one text says what is printed".into());
    };
    let (manifests, programs) = (texts(&page, "toml"), texts(&page, "rust"));
    let name =
        |manifest: &&str| manifest.lines().nth(1).and_then(|row| row.split(' ').next()).map(str::to_string);
    let names: Vec<String> = manifests.iter().filter_map(name).collect();
    if names != ["rocksdb", "redb", "sled", "fjall", "outcrop"] || programs.len() != names.len() {
        return Err(format!("docs/migration.md has programs on {names:?}"));
    }
    let dir = bindings_dir().join("page-migration");
    let here = root().display().to_string();
    let rows: String =
        manifests.iter().flat_map(|manifest| manifest.lines().skip(1)).fold(String::new(), |rows, row| {
            rows + &row
                .replace(&format!("git = \"{REPOSITORY}\""), &format!("path = \"{here}/crates/engine\""))
                + "\n"
        });
    let patch = format!("librocksdb-sys = {{ path = \"{here}/packages/librocksdb-sys/0.19\" }}");
    write(
        &dir.join("Cargo.toml"),
        &format!(
            "{}\n[dependencies]\n{rows}\n[workspace]\n\n[patch.crates-io]\n{patch}\n",
            package("page-migration")
        ),
    )?;
    for (name, program) in names.iter().zip(&programs) {
        write(&dir.join("src/bin").join(format!("{name}.rs")), program)?;
        let data = dir.join("data").join(name);
        let _ = std::fs::remove_dir_all(&data);
        make_dir(data.parent().expect("it is in a directory"))?;
    }
    for name in &names {
        let said = shell(&format!("cargo run --quiet --bin {name} -- data/{name}"), &dir)?;
        if said != wanted {
            return Err(format!("docs/migration.md: the program on {name} prints:\n{said}"));
        }
    }
    println!("docs/migration.md: the programs on {} print the same", names.join(", "));
    Ok(())
}

fn package(name: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n")
}

fn expect(said: &str, wanted: &str, what: &str) -> Result<(), String> {
    match said.contains(wanted) {
        true => Ok(()),
        false => Err(format!("docs/rust.md: {what}\nprints {said:?}, without {wanted:?}")),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    make_dir(path.parent().expect("a file is in a directory"))?;
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a block of commands, until one fails; gives what they print.
fn shell(commands: &str, dir: &Path) -> Result<String, String> {
    let mut shell = Command::new("sh");
    shell.args(["-euc", commands]);
    suites::environment(&mut shell, dir, &bindings_dir().join("target"));
    let output = shell.output().map_err(|error| format!("sh: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{commands}: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}
