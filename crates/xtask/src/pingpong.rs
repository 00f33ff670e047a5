//! `cargo xtask pingpong`: builds the harness and Outcrop's shared library, fetches RocksDB, lets them play.
//!
//! The harness itself is `crates/pingpong`; this file knows where libraries come from.

use crate::packages::{self, Install};
use crate::{programs, root};
use outcrop_lab::targets::maven;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How it is called.
pub const USAGE: &str = "pingpong [--seconds N] [--seed S] [--cases N] [--versions A,B] [--replay FILE]";

/// Debian's package of RocksDB's tools.
const TOOLS_PACKAGE: &str = "rocksdb-tools";

/// One version for each way RocksDB's files have changed.
const VERSIONS: [&str; 6] = ["6.29.5", "7.10.2", "8.11.4", "9.11.2", "10.10.1.1", "11.8.1"];

/// Those of them whose C API has timestamps, and whose compactions expire values as all do since.
const LATER: [&str; 5] = ["7.10.2", "8.11.4", "9.11.2", "10.10.1.1", "11.8.1"];

/// Runs the verb; options that are not ours are the harness's.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut versions, mut replay, mut passed) = (VERSIONS.join(","), None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value =
            || rest.next().copied().ok_or_else(|| format!("{argument} needs a value; usage: {USAGE}"));
        match *argument {
            "--versions" => versions = value()?.to_string(),
            "--replay" => {
                let file = value()?;
                let path = std::fs::canonicalize(file).map_err(|error| format!("{file}: {error}"))?;
                replay = Some(path.display().to_string());
            }
            other => {
                passed.push(other.to_string());
                passed.push(value()?.to_string());
            }
        }
    }
    let mut command = vec![if replay.is_some() { "replay" } else { "run" }.to_string()];
    command.extend(replay.clone());
    command.extend(passed);
    if replay.is_none() {
        command.extend([
            "--out".to_string(),
            programs::target_dir().join("debug/pingpong").display().to_string(),
        ]);
    }
    play(&versions.split(',').collect::<Vec<_>>(), &command)
}

/// `cargo xtask fixtures`: small databases of every version, one per feature, in `fixtures/made`.
pub fn fixtures() -> Result<(), String> {
    let out = root().join("fixtures/made").display().to_string();
    play(&VERSIONS, &["fixtures".to_string(), "--out".to_string(), out])
}

/// The run that is part of `cargo xtask ci`. Its cases depend on the committed tree alone: cases that are the
/// same for every tree, then cases of seeds that are the tree's own. The time is a limit, not a measure of work.
pub fn of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    run(&["--fixed", "80", "--cases", "140", "--swaps", "900", "--seconds", "600", "--seed", &seed])
}

/// Has the harness play one of its games with these versions of RocksDB.
fn play_game(verb: &str, versions: &[&str], arguments: &[&str]) -> Result<(), String> {
    let command: Vec<String> = [&[verb], arguments].concat().into_iter().map(str::to_string).collect();
    play(versions, &command)
}

/// `cargo xtask options`: every option at its extremes, on RocksDB 11.8.1 and on Outcrop.
pub fn options(arguments: &[&str]) -> Result<(), String> {
    play_game("options", &["11.8.1"], arguments)
}

/// The same as part of `cargo xtask ci`: each option by itself, what once failed, and a few cases that are the tree's own.
pub fn options_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    options(&["--cases", "12", "--seed", &seed])
}

/// `cargo xtask calls`: the same calls on RocksDB 11.8.1 and on Outcrop, compared to the letter.
pub fn calls(arguments: &[&str]) -> Result<(), String> {
    play_game("calls", &["11.8.1"], arguments)
}

/// The same as part of `cargo xtask ci`: cases that are the same for every tree, then some that are the tree's own.
pub fn calls_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    calls(&["--fixed", "150", "--cases", "50", "--seed", &seed])
}

/// `cargo xtask timestamps`: databases with user-defined timestamps go from Outcrop to the versions of RocksDB that have them, and back.
pub fn timestamps(arguments: &[&str]) -> Result<(), String> {
    play_game("timestamps", &LATER, arguments)
}

/// The same as part of `cargo xtask ci`: cases that are the same for every tree, then some that are the tree's own.
pub fn timestamps_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    timestamps(&["--fixed", "40", "--cases", "20", "--seed", &seed])
}

/// `cargo xtask expiry`: databases whose values expire go from Outcrop to the versions of RocksDB that open such, and back.
pub fn expiry(arguments: &[&str]) -> Result<(), String> {
    play_game("expiry", &LATER, arguments)
}

/// The same as part of `cargo xtask ci`: all databases wait for their values together, some eight seconds.
pub fn expiry_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    expiry(&["--cases", "40", "--seed", &seed])
}

/// `cargo xtask kills`: a writer on the real file system is killed again and again, and what is left is opened by Outcrop and by
/// RocksDB 11.8.1. The databases are where cargo builds: on a disk, where there is one.
pub fn kills(arguments: &[&str]) -> Result<(), String> {
    let dir = programs::target_dir().join("kills");
    let mut command = ["kills".to_string(), "--dir".to_string(), dir.display().to_string()].to_vec();
    command.extend(arguments.iter().map(ToString::to_string));
    play(&["11.8.1"], &command)
}

/// The same as part of `cargo xtask ci`.
pub fn kills_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    kills(&["--histories", "4", "--seed", &seed])
}

/// `cargo xtask stress`: many threads do everything at once to one database, through the C API; Outcrop, and RocksDB 11.8.1 as a control.
pub fn stress(arguments: &[&str]) -> Result<(), String> {
    play_game("stress", &["11.8.1"], arguments)
}

/// The same as part of `cargo xtask ci`.
pub fn stress_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    stress(&["--seconds", "20", "--seed", &seed])
}

/// `cargo xtask block-crashes`: real file systems over a recorded disk lose power, and what they leave is opened by Outcrop and by
/// RocksDB 11.8.1. In a namespace of its own: what is mounted is seen by nobody else, and gone with the process.
pub fn block_crashes(arguments: &[&str]) -> Result<(), String> {
    let allowed = Command::new("unshare").args(["--mount", "true"]).output();
    if !allowed.as_ref().is_ok_and(|output| output.status.success()) {
        let why = allowed.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stderr).trim().to_string(),
        );
        println!("block-crashes: 0 cases: SKIPPED, nothing can be mounted here (unshare --mount): {why}");
        return Ok(());
    }
    let dir = programs::target_dir().join("block-crashes");
    let mut command = ["block-crashes".to_string(), "--dir".to_string(), dir.display().to_string()].to_vec();
    command.extend(arguments.iter().map(ToString::to_string));
    let inside = harness()?;
    let mut unshared = Command::new("unshare");
    unshared.args(["--mount", "--propagation", "private"]).arg(inside.get_program()).current_dir(root());
    inside.get_envs().for_each(|(name, value)| {
        unshared.env(name, value.unwrap_or_default());
    });
    play_by(unshared, &["11.8.1"], &command)
}

/// The same as part of `cargo xtask ci`: each file system that the machine has is met.
pub fn block_crashes_of_tree() -> Result<(), String> {
    let seed = crate::tree_seed()?.to_string();
    block_crashes(&["--histories", "12", "--states", "8", "--seed", &seed])
}

/// `cargo xtask compatibility`: the table of `docs/compatibility.md`, written, or compared with the one that is there. Where it is written,
/// what the versions of RocksDB write and read is found out again, too, which takes minutes.
pub fn compatibility(check: bool) -> Result<(), String> {
    let document = root().join("docs/compatibility.md").display().to_string();
    let known = root().join("crates/pingpong/src/known.json").display().to_string();
    let outcrop = program("outcrop")?;
    let mut arguments = ["compatibility", "--document", &document, "--known", &known, "--outcrop", &outcrop]
        .map(String::from)
        .to_vec();
    arguments.extend(check.then(|| "--check".to_string()));
    play(&VERSIONS, &arguments)
}

/// `cargo xtask tools`: RocksDB's own `ldb` and `sst_dump`, from the system's package, look at our databases.
pub fn tools() -> Result<(), String> {
    let find = |tool: &&str| packages::program(&[tool], TOOLS_PACKAGE, Install::IfMissing).map(|_| ());
    if let Err(why) = ["ldb", "sst_dump"].iter().try_for_each(find) {
        eprintln!("tools: skipped: {why}");
        return Ok(());
    }
    let Some(version) = tools_version() else {
        eprintln!("tools: skipped: ldb does not say its version; apt-get install {TOOLS_PACKAGE}");
        return Ok(());
    };
    let mut command = harness()?;
    command.args(["tools", "--version", &version, "--outcrop", &program("outcrop")?]);
    command.arg("--library").arg(program(LIBRARY)?);
    finish(command)
}

/// The version of the installed tools; none if they do not say.
fn tools_version() -> Option<String> {
    let output = Command::new("ldb").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(String::from)
}

/// The path of one of [`PROGRAMS`], for an argument.
fn program(name: &str) -> Result<String, String> {
    programs::built(name).map(|path| path.display().to_string())
}

/// The programs and the library that the harness plays with, and is.
pub const PROGRAMS: [&str; 3] = [HARNESS, LIBRARY, "outcrop"];
const HARNESS: &str = "outcrop-pingpong";
const LIBRARY: &str = "liboutcrop_capi.so";

/// The harness's program, to be given arguments.
fn harness() -> Result<Command, String> {
    let mut command = Command::new(programs::built(HARNESS)?);
    command.current_dir(root());
    if let Some(memory) = memory_dir() {
        command.env("TMPDIR", memory);
    }
    Ok(command)
}

fn play(versions: &[&str], arguments: &[String]) -> Result<(), String> {
    play_by(harness()?, versions, arguments)
}

fn play_by(mut command: Command, versions: &[&str], arguments: &[String]) -> Result<(), String> {
    command.args(arguments);
    command.arg("--library").arg(format!("outcrop={}", program(LIBRARY)?));
    for version in versions {
        let library = maven::obtain("rocksdb", version).map_err(|error| error.to_string())?;
        command.arg("--library").arg(format!("{version}={}", library.display()));
    }
    finish(command)
}

fn finish(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("outcrop-pingpong: {error}"))?;
    if status.success() { Ok(()) } else { Err("ping-pong failed".into()) }
}

/// A directory in memory, if the user has not chosen one: databases are opened and synced thousands of times.
pub fn memory_dir() -> Option<PathBuf> {
    let memory = Path::new("/dev/shm");
    (std::env::var_os("TMPDIR").is_none() && memory.is_dir()).then(|| memory.to_path_buf())
}
