//! `cargo xtask fuzz --guided`: the targets under libFuzzer, which keeps the inputs that reach what no other has reached.
//!
//! ```text
//! fuzz/                  the program: our crates and libFuzzer, with a counter at each branch (a pass of LLVM's that stable
//!                        Rust may be asked for)
//! DIR/guided/found/T     inputs that reached something new, of this run and those before
//! DIR/guided/whole/T     the fixtures that target T takes as they are
//! fuzz/artifacts/T       inputs that failed
//! fuzz/corpus/T          is only read; `--merge` takes into it what is worth it
//! ```
//! DIR is where cargo builds. libFuzzer is C++: without a compiler for it nothing is guided, and all else builds.
//! Next: `session.rs` runs a target, `merge.rs` keeps the corpus small; `fuzz/src/main.rs` is the program.

mod merge;
mod session;

use crate::{programs, root};
use session::{Session, Told};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// How it is called.
pub const USAGE: &str = "fuzz --guided [--target T] [--seconds N] [--seed S] [--jobs N] [--compare] | fuzz --merge [--target T] [--largest BYTES]";

/// The fuzzer's program.
pub const PROGRAM: &str = "outcrop-fuzz-guided";

/// The platform is named so that build scripts and macros, which run while it is built, get no counters.
const PLATFORMS: [(&str, &str); 2] =
    [("x86_64", "x86_64-unknown-linux-gnu"), ("aarch64", "aarch64-unknown-linux-gnu")];

/// A counter at each edge, a table of where they are, and calls with the operands of comparisons.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// The sessions that were asked for.
struct Plan {
    targets: Vec<String>,
    seconds: u64,
    seed: u32,
    jobs: usize,
    compare: bool,
    /// Of merging.
    largest: u64,
}

/// Whether these arguments of `cargo xtask fuzz` are meant for this fuzzer.
pub fn is_meant(arguments: &[&str]) -> bool {
    arguments.iter().any(|argument| ["--guided", "--merge"].contains(argument))
}

/// Runs the verb.
///
/// # Errors
/// The arguments, that it does not build, or the targets that failed.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let plan = parse(arguments)?;
    let program = match (programs::kept(PROGRAM), compiler()) {
        (Some(kept), _) => kept,
        (None, Ok(())) => build()?,
        (None, Err(why)) => {
            // In words that `cargo xtask campaign` looks for.
            println!("guided: SKIPPED, {why}");
            return Ok(());
        }
    };
    if arguments.contains(&"--merge") {
        return plan.targets.iter().try_for_each(|target| merge::run(&program, target, plan.largest));
    }
    fuzz(&plan, &program)
}

fn parse(arguments: &[&str]) -> Result<Plan, String> {
    let mut plan =
        Plan { targets: targets()?, seconds: 60, seed: 1, jobs: 1, compare: false, largest: merge::LARGEST };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match *name {
            "--guided" | "--merge" => continue,
            "--compare" => {
                plan.compare = true;
                continue;
            }
            _ => {}
        }
        let value = rest.next().ok_or_else(|| format!("{name} needs a value; usage: {USAGE}"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match *name {
            "--target" => {
                if !plan.targets.iter().any(|target| target == value) {
                    return Err(format!("no such target; there are {}", plan.targets.join(", ")));
                }
                plan.targets = vec![value.to_string()];
            }
            "--seconds" => plan.seconds = number()?.max(1),
            // libFuzzer's seeds have 32 bits, and 0 is none.
            "--seed" => plan.seed = (number()? as u32).max(1),
            "--largest" => plan.largest = number()?,
            "--jobs" => plan.jobs = (number()? as usize).clamp(1, 64),
            _ => return Err(format!("{name}: no such option; usage: {USAGE}")),
        }
    }
    Ok(plan)
}

/// The targets: each has a corpus.
fn targets() -> Result<Vec<String>, String> {
    let dir = root().join("fuzz/corpus");
    let entries = std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Looks for the compiler of libFuzzer.
///
/// # Errors
/// There is none.
pub fn compiler() -> Result<(), String> {
    let name = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let version = Command::new(&name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match version {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("libFuzzer needs a C++ compiler: no {}", name.to_string_lossy())),
    }
}

/// Builds the fuzzer; gives its path.
///
/// # Errors
/// It does not build.
pub fn build() -> Result<PathBuf, String> {
    let platform = PLATFORMS.iter().find(|(architecture, _)| *architecture == std::env::consts::ARCH);
    let (_, platform) = platform.ok_or_else(|| format!("no counters on {}", std::env::consts::ARCH))?;
    let dir = dir();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--quiet", "--target", platform]);
    command.current_dir(root().join("fuzz")).env("CARGO_TARGET_DIR", &dir);
    command.env("RUSTFLAGS", format!("{} {FLAGS}", std::env::var("RUSTFLAGS").unwrap_or_default()));
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    match status.success() {
        true => Ok(dir.join(platform).join("release").join(PROGRAM)),
        false => Err("the guided fuzzer does not build".to_string()),
    }
}

/// Where the program, and all it finds, is.
fn dir() -> PathBuf {
    programs::target_dir().join("guided")
}

/// An empty directory, or one with what it had.
fn make_dir(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))
}

/// Runs the targets, so many at once; tells of each as it ends, and of all in the end.
fn fuzz(plan: &Plan, program: &Path) -> Result<(), String> {
    // One target on several processors: sessions that take over what the others find.
    let copies = if plan.targets.len() == 1 { plan.jobs } else { 1 };
    let sessions = plan.targets.iter().flat_map(|target| {
        (0..copies as u32).map(move |copy| Session {
            program: program.to_path_buf(),
            target: target.clone(),
            seconds: plan.seconds,
            seed: plan.seed.wrapping_add(copy).max(1),
            shared: copies > 1,
        })
    });
    let (queue, told) = (Mutex::new(sessions), Mutex::new(Vec::new()));
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| {
                while let Some(session) = next() {
                    let outcome = session.run(plan.compare);
                    if let Ok(row) = &outcome {
                        println!("guided: {}: {} cases, {}", row.target, row.cases, row.summary());
                    }
                    told.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    let told = told.into_inner().unwrap_or_default();
    let mut rows: Vec<Told> = told.into_iter().collect::<Result<_, _>>()?;
    rows.sort_by(|one, other| one.target.cmp(&other.target));
    print!("{}", table(&rows));
    let failed: Vec<&str> = rows.iter().filter(|row| row.failed).map(|row| row.target.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// All sessions, 80 columns wide.
fn table(rows: &[Told]) -> String {
    let mut text = format!(
        "{:<14} {:>11} {:>8} {:>9} {:>9} {:>9} {:>5}  {}\n",
        "target", "executions", "per s", "corpus", "blind", "guided", "new", "faults"
    );
    for row in rows {
        let blind = row.blind.map_or("-".to_string(), |blind| blind.to_string());
        text += &format!(
            "{:<14} {:>11} {:>8} {:>9} {:>9} {:>9} {:>5}  {}\n",
            row.target,
            row.cases,
            row.a_second(),
            row.counters.0,
            blind,
            row.counters.1,
            row.new,
            u8::from(row.failed)
        );
    }
    text + "corpus, blind, guided: counters that were reached.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_80_columns_and_says_what_was_not_compared() {
        let row = Told {
            target: "damaged_table".into(),
            cases: 41_234_567,
            seconds: 120.0,
            counters: (10_123, 12_345),
            blind: None,
            new: 1234,
            failed: true,
        };
        let text = table(&[row]);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(
            text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
            ["damaged_table", "41234567", "343621", "10123", "-", "12345", "1234", "1"]
        );
    }

    #[test]
    fn arguments_are_read_and_refused() {
        let plan = parse(&["--guided", "--target", "wal", "--seconds", "7", "--jobs", "2", "--seed", "0"]);
        let plan = plan.unwrap();
        assert_eq!((plan.targets, plan.seconds, plan.jobs, plan.seed), (vec!["wal".to_string()], 7, 2, 1));
        assert!(parse(&["--guided", "--target", "none"]).is_err_and(|why| why.contains("write_batch")));
        assert!(parse(&["--guided", "--cases", "7"]).is_err_and(|why| why.contains("no such option")));
        assert!(is_meant(&["--target", "wal", "--merge"]) && !is_meant(&["--target", "wal"]));
    }
}
