//! The project's automation.
//!
//! ```text
//! cargo xtask ci [--all | --offline]
//!                              everything: fmt, clippy, tidy, tests, and the steps of ci.rs; --all: also those that other trees run
//! cargo xtask ci --step NAME   one of these steps, as `ci` runs it
//! cargo xtask check            fmt, tidy, clippy, unit tests: before each commit; needs Rust and a C compiler
//! cargo xtask campaign ...     every generator in turn, for hours; findings are kept; docs/reliability.md
//! cargo xtask crashes ...      the engine's draws of power losses and failed operations, seed after seed
//! cargo xtask kills ...        a writer on the real file system is killed, and opened by Outcrop and by RocksDB
//! cargo xtask simulate ...     the whole engine under a scheduler, a clock and a disk that a seed decides
//! cargo xtask coverage ...     which lines of the engine's crates ran, in tests and in the simulator's histories
//! cargo xtask doc              the documentation, without a warning
//! cargo xtask examples         the programs of crates/engine/examples print what they say
//! cargo xtask tidy             layers, forbidden calls, module docs, import circles, the table of locks, examples of public types
//! cargo xtask circles          prints the import circles of the engine's files
//! cargo xtask fetch            the reference libraries
//! cargo xtask fuzz [--seconds N] [--target T] [--seed S] [--case N] [--input FILE] [--write-corpus]
//!                              mutates the corpus of every decoder, or of one; docs/testing.md
//! cargo xtask fuzz --guided [--target T] [--seconds N] [--seed S] [--jobs N] [--compare]
//!                              the same under libFuzzer, guided by coverage; --merge takes what it found into the corpus
//! cargo xtask instructions [--bless]
//!                              instructions per operation under callgrind, beside what is recorded
//! cargo xtask loom             the protocols between threads in every order of steps: models/
//! cargo xtask miri [--seed N]  tests of the lock-free structures under Miri; needs nightly Rust
//! cargo xtask memcheck         calls of the C API under valgrind's memcheck; RocksDB's own test of it, too
//! cargo xtask sanitize address tests of the C API and the stress of it, compiled with AddressSanitizer
//! cargo xtask sanitize thread  the same with ThreadSanitizer, and the standard library compiled along
//! cargo xtask pingpong ...     Outcrop and RocksDB versions take turns on one directory
//! cargo xtask fixtures         makes the databases of fixtures/made
//! cargo xtask compatibility    writes docs/compatibility.md from trials with the real libraries
//! cargo xtask options ...      every option at its extremes, on RocksDB and on Outcrop
//! cargo xtask calls ...        the same calls on RocksDB and on Outcrop, compared to the letter
//! cargo xtask timestamps ...   Outcrop and RocksDB versions take turns on a directory with user-defined timestamps
//! cargo xtask expiry ...       they take turns on directories whose values expire
//! cargo xtask tools            RocksDB's own ldb and sst_dump look at our databases
//! cargo xtask scripts          RocksDB's benchmark scripts, unmodified, on our db_bench and on Debian's
//! cargo xtask ldb-test         RocksDB's own test of its tool ldb, unmodified, on `outcrop ldb`
//! cargo xtask sql [--short]    the lab on PostgreSQL and MySQL, fetched: every test and step at a tiny size
//! cargo xtask c-test           RocksDB's own test of its C API, phase by phase, on our shared library and on RocksDB's
//! cargo xtask attacks ...      live attempts to fool the lab's verdict; docs/lab-attacks.md; needs a quiet machine
//! cargo xtask twins ...        records live experiments of a library against itself, for a test; needs a quiet machine
//! cargo xtask declarations     packages/librocksdb-sys is what our C header and those of older versions say
//! cargo xtask dist [--test]    an installable tree, a tarball and a Debian package; with --test programs built on them
//! cargo xtask bindings [--all | PACKAGE-VERSION | docs]
//!                              the crate `rocksdb` and its own tests on Outcrop, and crates that use it
//! cargo xtask python           the wheel, in an environment of its own; its tests, beside RocksDB's for Python
//! cargo xtask java [--short]   RocksJava and its own tests on our library
//! cargo xtask streams ...      Kafka Streams and Flink, as they are, on our library
//! ```

mod attacks;
mod bindings;
mod browser;
mod c_test;
mod campaign;
mod ci;
mod circles;
mod coverage;
mod crashes;
mod declarations;
mod dist;
mod examples;
mod fuzz;
mod guided;
mod instructions;
mod interleavings;
mod java;
mod ldb_test;
mod locks;
mod memcheck;
mod packages;
mod pingpong;
mod programs;
mod public_types;
mod python;
mod sanitize;
mod scripts;
mod sentences;
mod simulate;
mod sources;
mod spent;
mod sql;
mod streams;
mod tidy;
mod twins;
mod unsafe_column;
mod watched;

use outcrop_lab::targets::maven;
use packages::Install;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Versions of RocksDB that must read what we write, and whose files we must read.
const REFERENCE_VERSIONS: [&str; 2] = ["11.8.1", "6.29.5"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["ci"] => ci::run(Install::IfMissing, ci::Turns::OfTree),
        ["ci", "--all"] => ci::run(Install::IfMissing, ci::Turns::All),
        ["ci", "--offline"] => ci::run(Install::Never, ci::Turns::All),
        ["ci", "--step", name] => ci::step(name, Install::IfMissing),
        ["ci", "--step", name, "--offline"] => ci::step(name, Install::Never),
        ["check"] => check(),
        ["doc"] => doc(),
        ["examples"] => examples::run(),
        ["tidy"] => tidy::check(&root()),
        ["circles"] => circles::print(&root()),
        ["fuzz", arguments @ ..] => fuzz::run(arguments),
        ["loom"] => interleavings::loom(Install::IfMissing),
        ["miri"] => tree_seed().and_then(interleavings::miri),
        ["miri", "--seed", seed] => {
            seed.parse().map_err(|_| format!("--seed {seed}: not a number")).and_then(interleavings::miri)
        }
        ["memcheck"] => memcheck::run(Install::IfMissing),
        ["sanitize", "address"] => sanitize::run(&sanitize::ADDRESS, Install::IfMissing),
        ["sanitize", "thread"] => sanitize::run(&sanitize::THREAD, Install::IfMissing),
        ["fetch"] => fetch().map(|dir| println!("{}", dir.display())),
        ["pingpong", rest @ ..] => pingpong::run(rest),
        ["options", rest @ ..] => pingpong::options(rest),
        ["calls", rest @ ..] => pingpong::calls(rest),
        ["campaign", rest @ ..] => campaign::run(rest),
        ["coverage", rest @ ..] => coverage::run(rest),
        ["crashes", rest @ ..] => crashes::run(rest),
        ["timestamps", rest @ ..] => pingpong::timestamps(rest),
        ["expiry", rest @ ..] => pingpong::expiry(rest),
        ["kills", rest @ ..] => pingpong::kills(rest),
        ["stress", rest @ ..] => pingpong::stress(rest),
        ["block-crashes", rest @ ..] => pingpong::block_crashes(rest),
        ["simulate", rest @ ..] => simulate::run(rest),
        ["fixtures"] => pingpong::fixtures(),
        ["compatibility"] => pingpong::compatibility(false),
        ["tools"] => pingpong::tools(),
        ["attacks", rest @ ..] => attacks::run(rest),
        ["twins", rest @ ..] => twins::run(rest),
        ["scripts"] => scripts::run(Install::IfMissing),
        ["ldb-test"] => ldb_test::run(Install::IfMissing),
        ["sql"] => sql::run(Install::IfMissing),
        ["sql", "--short"] => sql::run_short(Install::IfMissing),
        ["instructions"] => instructions::run(false, Install::IfMissing),
        ["instructions", "--bless"] => instructions::run(true, Install::IfMissing),
        ["c-test"] => c_test::run(),
        ["declarations"] => declarations::run(),
        ["dist", rest @ ..] => dist::run(rest),
        ["java", rest @ ..] => java::run(rest),
        ["streams", rest @ ..] => streams::run(rest),
        ["bindings", rest @ ..] => bindings::run(rest),
        ["python"] => python::run(Install::IfMissing),
        _ => Err(format!(
            "usage: cargo xtask check | ci [--offline] [--step NAME] | doc | examples | tidy | circles | fuzz | loom | miri [--seed N] | memcheck | fetch | fixtures | compatibility | tools | \
             scripts | sql [--short] | attacks [--runs N] [--seconds S] [--keys N] [--attack N] | twins [--experiments N] [--seconds S] [--keys N] | options [--seconds N] [--seed S] [--set NAME=VALUE] | calls [--seconds N] [--cases N] [--seed S] [--fixed N] [--trace] | timestamps [--seconds N] [--cases N] [--seed S] [--fixed N] | expiry [--seconds N] [--cases N] [--seed S] | \
             bindings [--all | PACKAGE-VERSION | docs] | java [--short] | declarations | dist [--test] | python | c-test | ldb-test | instructions [--bless] | kills [--seconds N] [--histories N] [--seed S] [--cycles N] | stress [--seconds N] [--processes N] [--seed S] | block-crashes [--seconds N] [--histories N] [--seed S] [--states N] | {} | {} | {} | {} | {} | {} | {} | {}",
            streams::USAGE,
            sanitize::USAGE,
            guided::USAGE,
            campaign::USAGE,
            crashes::USAGE,
            simulate::USAGE,
            coverage::USAGE,
            pingpong::USAGE
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// The checks before each commit.
fn check() -> Result<(), String> {
    style()?;
    timed("unit tests", || cargo(&["test", "--workspace", "--lib", "--bins", "--quiet"], None))
}

/// The checks that need no program to run.
fn style() -> Result<(), String> {
    timed("fmt", || cargo(&["fmt", "--all", "--check"], None))?;
    timed("tidy", || tidy::check(&root()))?;
    timed("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], None)
    })
}

/// Builds the documentation; a warning is an error.
fn doc() -> Result<(), String> {
    let flags = Path::new("-D warnings");
    run_cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", Some(flags))])
}

/// A number drawn from what is committed: a run of the same tree elsewhere draws the same.
///
/// # Errors
/// There is no git, or no commit.
pub fn tree_seed() -> Result<u32, String> {
    let output = Command::new("git").args(["rev-parse", "HEAD^{tree}"]).current_dir(root()).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    let hash = String::from_utf8_lossy(&output.stdout).into_owned();
    hash.get(..8)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| format!("git rev-parse HEAD^{{tree}} gave {hash:?}: is this a git checkout?"))
}

/// Runs `run`, and says how long it took, and how much of the processors.
fn timed(name: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    eprintln!("== {name}");
    let (start, before) = (Instant::now(), spent::seconds());
    run()?;
    let worked = spent::seconds() - before;
    eprintln!("== {name}: {:.1} s, {worked:.1} s of processors", start.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(arguments: &[&str], references: Option<&Path>) -> Result<(), String> {
    run_cargo(arguments, &[("OUTCROP_REFERENCE_DIR", references)])
}

fn test(references: Option<&Path>, browser: Option<&Path>) -> Result<(), String> {
    let places = [("OUTCROP_REFERENCE_DIR", references), ("OUTCROP_BROWSER", browser)];
    let mut command = cargo_command(&["test", "--workspace"], &places);
    // Half of the time of a test goes into waiting: for devices, for timers, for processes that it starts.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    command.env("RUST_TEST_THREADS", (2 * processors).to_string());
    watched::run(&mut command)
}

/// Runs cargo; what is not there is not in its environment either.
fn run_cargo(arguments: &[&str], places: &[(&str, Option<&Path>)]) -> Result<(), String> {
    let status = cargo_command(arguments, places).status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} failed", arguments.join(" "))) }
}

fn cargo_command(arguments: &[&str], places: &[(&str, Option<&Path>)]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    for (name, place) in places {
        match place {
            Some(place) => command.env(name, place),
            None => command.env_remove(name),
        };
    }
    command
}

/// Fetches the reference libraries; gives a directory that holds exactly them.
fn fetch() -> Result<PathBuf, String> {
    let describe =
        |error: &dyn std::fmt::Display| format!("{error} (cargo xtask ci --offline goes on without)");
    let dir = maven::cache_dir().map_err(|error| describe(&error))?.join("reference");
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for version in REFERENCE_VERSIONS {
        let library = maven::obtain("rocksdb", version).map_err(|error| describe(&error))?;
        let link = dir.join(format!("librocksdb-{version}.so"));
        if !link.exists() {
            std::fs::hard_link(&library, &link)
                .or_else(|_| std::fs::copy(&library, &link).map(|_| ()))
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
    }
    Ok(dir)
}
