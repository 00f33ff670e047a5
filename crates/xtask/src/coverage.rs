//! `cargo xtask coverage`: which lines of the engine's crates ran, in its tests and in the simulator's histories.
//!
//! ```text
//! cargo xtask coverage tests       the tests of the engine's crates
//! cargo xtask coverage simulate    histories of the simulator; all options of `cargo xtask simulate` may follow
//! ```
//! Both are compiled with `-C instrument-coverage`, each in a directory of its own, so that nothing else is built again. A run is added to those
//! before it: what is printed is of all runs since `target/coverage` was removed, and a line counts if either ran it. Tests that stand beside code are
//! no part of it.

use crate::simulate;
use crate::{programs, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How it is called.
pub const USAGE: &str = "coverage tests | coverage simulate [--histories N] [--seconds N] [--seed S]";

/// The directories whose lines are counted, and the packages whose tests run.
const CRATES: [(&str, &str); 10] = [
    ("engine", "outcrop"),
    ("table", "outcrop-table"),
    ("manifest", "outcrop-manifest"),
    ("memtable", "outcrop-memtable"),
    ("cache", "outcrop-cache"),
    ("record", "outcrop-record"),
    ("options", "outcrop-options"),
    ("env", "outcrop-env"),
    ("monitor", "outcrop-monitor"),
    ("base", "outcrop-base"),
];
/// So many files are named, those with the most lines that did not run.
const NAMED: usize = 15;

/// How often each line of each file ran.
type Lines = BTreeMap<PathBuf, BTreeMap<u32, u64>>;

/// Runs the verb.
///
/// # Errors
/// Something does not build or fails, or LLVM's tools are not there.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let tools = Tools::obtain()?;
    match arguments {
        ["tests"] => of_tests(&tools)?,
        ["simulate", rest @ ..] => of_histories(&tools, rest)?,
        _ => return Err(format!("usage: cargo xtask {USAGE}")),
    }
    let mut lines = Lines::new();
    for scope in ["tests", "simulate"] {
        if let Ok(text) = std::fs::read_to_string(dir(scope).join("lines.info")) {
            add(&mut lines, &text);
        }
    }
    let text = report(&lines)?;
    print!("{text}");
    Ok(())
}

fn dir(scope: &str) -> PathBuf {
    programs::target_dir().join("coverage").join(scope)
}

/// Where processes leave what they counted: at most four files for each program, into which those that end later add theirs.
fn profiles(scope: &str) -> PathBuf {
    dir(scope).join("profiles/%4m.profraw")
}

fn flags(more: &str) -> String {
    format!("{} -Cinstrument-coverage{more}", std::env::var("RUSTFLAGS").unwrap_or_default())
}

fn of_tests(tools: &Tools) -> Result<(), String> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("test").args(CRATES.iter().flat_map(|(_, package)| ["--package", package]));
        command.args(["--lib", "--tests"]).args(arguments).current_dir(root());
        command.env("RUSTFLAGS", flags("")).env("CARGO_TARGET_DIR", dir("tests"));
        command.env("LLVM_PROFILE_FILE", profiles("tests"));
        command
    };
    let mut build = cargo(&["--quiet", "--no-run", "--message-format", "json-render-diagnostics"]);
    let built = build.stderr(std::process::Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo: {error}"))?;
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let binaries: Vec<PathBuf> = messages
        .lines()
        .filter_map(|line| Some(line.split_once("\"executable\":\"")?.1.split_once('"')?.0.into()))
        .collect();
    if !built.status.success() || binaries.is_empty() {
        return Err("the tests do not build".to_string());
    }
    let ran = cargo(&["--quiet"]).status().map_err(|error| format!("cargo: {error}"))?;
    if !ran.success() {
        return Err("a test fails; nothing is counted".to_string());
    }
    tools.export("tests", &binaries)
}

fn of_histories(tools: &Tools, arguments: &[&str]) -> Result<(), String> {
    let program = simulate::build_in(&dir("simulate"), &flags(" --cfg simulated"))?;
    let mut command = Command::new(&program);
    command.arg("run").args(arguments).current_dir(root());
    command.env("LLVM_PROFILE_FILE", profiles("simulate"));
    let ran = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    if !ran.success() {
        return Err("the simulation found something; nothing is counted".to_string());
    }
    tools.export("simulate", &[program])
}

/// LLVM's tools of the compiler in use: others do not read what it counts.
struct Tools(PathBuf);

impl Tools {
    fn obtain() -> Result<Tools, String> {
        let output = Command::new("rustc").args(["--print", "target-libdir"]).output();
        let output = output.map_err(|error| format!("rustc: {error}"))?;
        let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let tools = Tools(libraries.with_file_name("bin"));
        if !tools.path("llvm-profdata").exists() {
            let added = Command::new("rustup").args(["component", "add", "llvm-tools"]).status();
            if !added.is_ok_and(|status| status.success()) || !tools.path("llvm-profdata").exists() {
                return Err(
                    "llvm-profdata of this compiler is missing: rustup component add llvm-tools".to_string()
                );
            }
        }
        Ok(tools)
    }

    fn path(&self, tool: &str) -> PathBuf {
        self.0.join(tool)
    }

    /// Writes how often each line ran to `lines.info`.
    fn export(&self, scope: &str, binaries: &[PathBuf]) -> Result<(), String> {
        let (dir, merged) = (dir(scope), dir(scope).join("merged.profdata"));
        let profiles: Vec<PathBuf> = std::fs::read_dir(dir.join("profiles"))
            .map_err(|error| format!("{}: {error}", dir.join("profiles").display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        // Of processes that were killed while they wrote.
        let mut merge = Command::new(self.path("llvm-profdata"));
        merge.args(["merge", "--sparse", "--failure-mode=all", "-o"]).arg(&merged).args(&profiles);
        output(merge)?;
        let mut export = Command::new(self.path("llvm-cov"));
        export.args(["export", "--format=lcov", "--instr-profile"]).arg(&merged);
        export.args(binaries.iter().flat_map(|binary| [Path::new("--object"), binary]));
        std::fs::write(dir.join("lines.info"), output(export)?).map_err(|error| error.to_string())
    }
}

fn output(mut command: Command) -> Result<Vec<u8>, String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Adds the counts of a text in lcov's form.
fn add(lines: &mut Lines, text: &str) {
    let mut file = PathBuf::new();
    for line in text.lines() {
        match line.split_once(':') {
            Some(("SF", path)) => file = PathBuf::from(path),
            Some(("DA", counted)) => {
                let mut numbers = counted.split(',');
                if let Some(Ok(number)) = numbers.next().map(str::parse::<u32>)
                    && let Some(Ok(count)) = numbers.next().map(str::parse::<u64>)
                {
                    let known = lines.entry(file.clone()).or_default().entry(number).or_default();
                    *known = known.saturating_add(count);
                }
            }
            _ => {}
        }
    }
}

/// The line at which tests beside code begin.
fn tests_begin(source: &str) -> u32 {
    let at = source.lines().position(|line| line.trim_end() == "#[cfg(test)]");
    at.map_or(u32::MAX, |at| at as u32 + 1)
}

/// The lines of a crate or a file.
#[derive(Clone, Copy, Default)]
struct Sum {
    all: usize,
    ran: usize,
}

impl Sum {
    fn share(self) -> f64 {
        100.0 * self.ran as f64 / self.all.max(1) as f64
    }
}

fn report(lines: &Lines) -> Result<String, String> {
    let mut crates: BTreeMap<usize, Sum> = BTreeMap::new();
    let mut files: Vec<(String, Sum)> = Vec::new();
    let mut gaps = String::new();
    for (path, counts) in lines {
        let Some((at, name)) = CRATES.iter().enumerate().find_map(|(at, (directory, _))| {
            let source = root().join("crates").join(directory).join("src");
            let name = path.strip_prefix(source).ok()?;
            Some((at, format!("{directory}/src/{}", name.display())))
        }) else {
            continue;
        };
        let is_test = name.ends_with("/tests.rs") || name.contains("/tests/") || name.contains("/testing/");
        let Ok(source) = std::fs::read_to_string(path) else { continue };
        if is_test {
            continue;
        }
        let end = tests_begin(&source);
        let counted: Vec<(u32, bool)> =
            counts.range(..end).map(|(number, count)| (*number, *count > 0)).collect();
        let sum = Sum { all: counted.len(), ran: counted.iter().filter(|(_, ran)| *ran).count() };
        let of_crate = crates.entry(at).or_default();
        *of_crate = Sum { all: of_crate.all + sum.all, ran: of_crate.ran + sum.ran };
        gaps += &format!("{name}: {}\n", ranges(&counted));
        files.push((name, sum));
    }
    let list = programs::target_dir().join("coverage/not-run.txt");
    std::fs::write(&list, gaps).map_err(|error| format!("{}: {error}", list.display()))?;
    let mut text = format!("{:<12}{:>8}{:>8}{:>9}\n", "crate", "lines", "ran", "share");
    for (at, sum) in crates {
        text += &format!("{:<12}{:>8}{:>8}{:>8.1}%\n", CRATES[at].0, sum.all, sum.ran, sum.share());
    }
    files.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.all - sum.ran));
    text += "\nmost lines that did not run:\n";
    for (name, sum) in files.iter().take(NAMED) {
        text += &format!("{:>6} of {:>5}  {name}\n", sum.all - sum.ran, sum.all);
    }
    text += &format!("each of them: {}\n", list.display());
    Ok(text)
}

/// The lines that did not run: `3-7, 12`.
fn ranges(counted: &[(u32, bool)]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let mut after_gap = false;
    for &(number, ran) in counted {
        match ranges.last_mut() {
            Some(last) if !ran && after_gap => last.1 = number,
            _ if !ran => ranges.push((number, number)),
            _ => {}
        }
        after_gap = !ran;
    }
    let told = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_runs_are_added() {
        let mut lines = Lines::new();
        add(&mut lines, "SF:/a.rs\nDA:1,0\nDA:2,3\nend_of_record\nSF:/b.rs\nDA:7,1\nend_of_record\n");
        add(&mut lines, "SF:/a.rs\nDA:1,2\nDA:9,0\nLF:3\nend_of_record\n");
        let a: Vec<_> = lines[Path::new("/a.rs")].iter().map(|(line, count)| (*line, *count)).collect();
        assert_eq!(a, [(1, 2), (2, 3), (9, 0)]);
        assert_eq!(lines[Path::new("/b.rs")].len(), 1);
    }

    #[test]
    fn lines_that_did_not_run_are_named_by_range() {
        let counted = [(1, true), (2, false), (3, false), (5, false), (6, true), (9, false)];
        assert_eq!(ranges(&counted), "2-5, 9");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn tests_beside_code_are_left_out() {
        assert_eq!(tests_begin("fn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), 3);
        assert_eq!(tests_begin("fn a() {}\n    #[cfg(test)] inner\n"), u32::MAX);
    }
}
