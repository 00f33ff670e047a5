//! `cargo xtask ci`: proves the tree.
//!
//! ```text
//! style, doc, build                            one after the other, each on all processors
//! the steps of STEPS                           two more at once than there are processors, four at most: each uses about one,
//!                                              and most wait now and then
//! ```
//! Long suites whose subjects change rarely take turns: a tree runs one third of them, drawn from its hash, and `--all` runs all.
//!
//! A step is a process of its own (`cargo xtask ci --step NAME`). Its output is in `ci/NAME.txt` where cargo builds, and is
//! printed when it has ended. The steps run programs that were put aside after the build: one that compiles another form of the
//! same library takes nothing away under them.

use crate::packages::{self, Install};
use crate::{
    bindings, browser, c_test, cargo, dist, doc, examples, fetch, fuzz, instructions, interleavings, java,
    ldb_test, pingpong, programs, python, root, scripts, simulate, sources, spent, sql, streams, style, test,
    timed, tree_seed,
};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// A step that needs nothing of the others.
struct Step {
    name: &'static str,
    /// Nothing of it can be done without the registries.
    needs_network: bool,
    run: fn(Install) -> Result<(), String>,
}

const fn step_here(name: &'static str, run: fn(Install) -> Result<(), String>) -> Step {
    Step { name, needs_network: false, run }
}

const fn step_with_network(name: &'static str, run: fn(Install) -> Result<(), String>) -> Step {
    Step { name, needs_network: true, run }
}

/// Long ones first: so the last two end at about the same time.
const STEPS: [Step; 26] = [
    step_here("test", tests),
    step_with_network("streams", |_| streams::short()),
    step_with_network("java", |_| java::run(&["--short"])),
    step_here("simulate", |_| simulate::of_tree()),
    step_with_network("bindings", |_| bindings::run(&[])),
    step_with_network("scripts", scripts::run),
    step_here("instructions", |install| instructions::run(false, install)),
    step_with_network("pingpong", |_| pingpong::of_tree()),
    step_with_network("c-test", |_| c_test::run()),
    step_with_network("options", |_| pingpong::options_of_tree()),
    step_with_network("python", python::run),
    step_with_network("sql", sql::run_short),
    step_here("loom", interleavings::loom),
    step_here("fuzz", |_| fuzz::ci()),
    step_here("miri", |_| interleavings::miri_if_there(tree_seed()?)),
    step_with_network("dist", |_| dist::run(&["--test"])),
    step_with_network("block-crashes", |_| pingpong::block_crashes_of_tree()),
    step_with_network("stress", |_| pingpong::stress_of_tree()),
    step_with_network("calls", |_| pingpong::calls_of_tree()),
    step_with_network("timestamps", |_| pingpong::timestamps_of_tree()),
    step_with_network("expiry", |_| pingpong::expiry_of_tree()),
    step_with_network("kills", |_| pingpong::kills_of_tree()),
    step_with_network("compatibility", |_| pingpong::compatibility(true)),
    step_with_network("ldb-test", ldb_test::run),
    step_here("examples", |_| examples::run()),
    step_with_network("tools", |_| pingpong::tools()),
];

/// Long suites that take turns, in thirds that take about as long: of bindings and programs that others wrote, and those that compile
/// the engine in another form.
const TURNS: [&[&str]; 3] =
    [&["bindings", "sql"], &["python", "java", "streams", "scripts"], &["instructions", "loom", "dist"]];

/// Which of the suites that take turns run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// The third that the tree's hash draws.
    OfTree,
    /// All.
    All,
}

/// The program that runs, also after the build has put another in its place, where `current_exe` names a file that is gone.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The files that steps run or load.
const PROGRAMS: [&str; 6] = [
    "outcrop",
    "outcrop-pingpong",
    fuzz::PROGRAM,
    "liboutcrop_capi.so",
    dist::library::ARCHIVE,
    java::LIBRARY,
];

/// Every step must pass; after the first that does not, no other begins.
///
/// # Errors
/// The step that failed, and why.
pub fn run(install: Install, turns: Turns) -> Result<(), String> {
    let offline = install == Install::Never;
    style()?;
    timed("doc", doc)?;
    if offline {
        eprintln!("xtask: --offline: the tests against the reference RocksDB are skipped");
    } else {
        fetch()?;
    }
    timed("build", || cargo(&["build", "--workspace", "--all-targets", "--quiet"], None))?;
    // Without a browser the tests of the lab's pages skip themselves: said here, where it is not lost among them.
    if let Err(why) = browser::obtain(install) {
        eprintln!("xtask: the lab's pages are NOT tested: {why}");
    }
    for (program, package) in [("mkfs.btrfs", "btrfs-progs"), ("mkfs.xfs", "xfsprogs")] {
        if let Err(why) = packages::program(&[program], package, install) {
            eprintln!("xtask: full disks of that kind are NOT tested: {why}");
        }
    }
    if offline {
        let left_out: Vec<_> = STEPS.iter().filter(|step| step.needs_network).map(|step| step.name).collect();
        eprintln!("xtask: --offline: left out: {}", left_out.join(", "));
    }
    let left_to_others = match turns {
        Turns::All => Vec::new(),
        Turns::OfTree => left_to_others(tree_seed()?),
    };
    if !left_to_others.is_empty() {
        eprintln!("xtask: other trees run {}; --all runs them here", left_to_others.join(", "));
    }
    let dir = programs::target_dir().join("ci");
    let kept = dir.join("programs");
    programs::put_aside(&PROGRAMS, &kept)?;
    let steps = STEPS.iter().filter(|step| !(offline && step.needs_network)).map(|step| step.name);
    let steps = steps.filter(|name| !left_to_others.contains(name));
    let at_once = std::thread::available_parallelism().map_or(1, |processors| processors.get().min(2) + 2);
    side_by_side(steps, at_once, &|name| in_a_process(name, install, &dir, &kept))
}

/// The suites that a tree of this seed does not run.
fn left_to_others(seed: u32) -> Vec<&'static str> {
    let turn = seed as usize % TURNS.len();
    TURNS
        .iter()
        .enumerate()
        .filter(|(third, _)| *third != turn)
        .flat_map(|(_, names)| *names)
        .copied()
        .collect()
}

/// The tests of the workspace, with what has been fetched and installed.
fn tests(install: Install) -> Result<(), String> {
    let references = if install == Install::Never { None } else { Some(fetch()?) };
    test(references.as_deref(), browser::obtain(install).ok().as_deref())
}

/// `cargo xtask ci --step NAME`.
///
/// # Errors
/// There is no such step, or it failed.
pub fn step(name: &str, install: Install) -> Result<(), String> {
    let Some(step) = STEPS.iter().find(|step| step.name == name) else {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("{name}: no such step; there are {}", names.join(", ")));
    };
    let outcome = (step.run)(install);
    eprintln!("== {name}: {:.1} s of processors", spent::seconds());
    outcome
}

/// Runs `run` for each name, `at_once` at a time, in order; none begins after one that failed.
fn side_by_side(
    names: impl Iterator<Item = &'static str> + Send,
    at_once: usize,
    run: &(impl Fn(&str) -> Result<(), String> + Sync),
) -> Result<(), String> {
    let left = Mutex::new((names, Vec::new()));
    let lock = || left.lock().expect("no step panics with the lock held");
    let next = || {
        let mut left = lock();
        if left.1.is_empty() { left.0.next() } else { None }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(name) = next() {
                    if let Err(why) = run(name) {
                        lock().1.push(why);
                    }
                }
            });
        }
    });
    let (_, failures) = left.into_inner().expect("no step panics with the lock held");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Runs a step by itself, and prints its output when it has ended.
fn in_a_process(name: &str, install: Install, dir: &Path, kept: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{name}: {error}");
    sources::make_dir(dir)?;
    let path = dir.join(format!("{name}.txt"));
    let output = std::fs::File::create(&path).map_err(said)?;
    let mut command = Command::new(THIS_PROGRAM);
    command.args(["ci", "--step", name]).args((install == Install::Never).then_some("--offline"));
    command.env(programs::VARIABLE, kept).current_dir(root());
    command.stdout(output.try_clone().map_err(said)?).stderr(output);
    eprintln!("== {name} begins");
    let start = Instant::now();
    let status = command.status().map_err(said)?;
    let text = String::from_utf8_lossy(&std::fs::read(&path).map_err(said)?).into_owned();
    // In one piece: another step may end at the same moment.
    eprintln!("{text}== {name}: {:.1} s, {status}", start.elapsed().as_secs_f64());
    if status.success() {
        Ok(())
    } else {
        // Once more: the output of the steps that ran beside it may be long.
        let end = last_lines(&text, 30);
        Err(format!("{name} failed; its output is above and in {}. It ends so:\n{end}", path.display()))
    }
}

/// The last `count` lines of `text`, or all.
fn last_lines(text: &str, count: usize) -> &str {
    let text = text.trim_end();
    text.rmatch_indices('\n').nth(count - 1).map_or(text, |(at, _)| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_runs_once_and_none_after_a_failure() {
        let ran = Mutex::new(Vec::new());
        let run = |name: &str| {
            ran.lock().unwrap().push(name.to_string());
            if name == "bad" { Err("bad".to_string()) } else { Ok(()) }
        };
        for at_once in [1, 2, 5] {
            side_by_side(["a", "b", "c"].into_iter(), at_once, &run).unwrap();
            let mut names = std::mem::take(&mut *ran.lock().unwrap());
            names.sort();
            assert_eq!(names, ["a", "b", "c"]);
        }
        assert_eq!(side_by_side(["a", "bad", "c"].into_iter(), 1, &run), Err("bad".to_string()));
        assert_eq!(*ran.lock().unwrap(), ["a", "bad"]);
    }

    #[test]
    fn every_suite_that_takes_turns_has_its_turn() {
        let taking: Vec<&str> = TURNS.concat();
        for name in &taking {
            assert!(STEPS.iter().any(|step| step.name == *name), "{name}");
            let ran = (7..10).filter(|seed| !left_to_others(*seed).contains(name));
            assert_eq!(ran.count(), 1, "{name}");
        }
        assert_eq!(
            left_to_others(7).len() + left_to_others(8).len() + left_to_others(9).len(),
            2 * taking.len()
        );
    }

    #[test]
    fn all_steps_that_fail_are_told_with_the_end_of_what_they_printed() {
        let together = std::sync::Barrier::new(2);
        let run = |name: &str| {
            together.wait();
            Err(name.to_string())
        };
        let error = side_by_side(["a", "b"].into_iter(), 2, &run).unwrap_err();
        assert!(["a\nb", "b\na"].contains(&error.as_str()), "{error}");
        assert_eq!(last_lines("one\ntwo\nthree\n", 2), "two\nthree");
        assert_eq!(last_lines("one\ntwo\n", 2), "one\ntwo");
        assert_eq!(last_lines("", 2), "");
    }

    #[test]
    fn a_step_that_is_not_there_is_named_with_those_that_are() {
        let error = step("tst", Install::Never).unwrap_err();
        assert!(error.contains("tst: no such step") && error.contains("test, streams, java"), "{error}");
    }
}
