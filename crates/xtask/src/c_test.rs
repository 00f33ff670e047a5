//! RocksDB's own test of its C API, `db/c_test.c`, phase by phase: on our shared library, and on RocksDB's as the control.
//!
//! The test is one `main` that aborts at the first check that fails. No check is touched: the text is compiled with a label
//! before each `StartPhase`, and with a jump over those phases that are to be skipped. A run that fails in a phase is repeated
//! from the start without that phase, until one gets to the end: so each phase is tried after all others that pass.
//!
//! `c_test/phases.txt` lists the phases that fail on ours, why, and what has to be done instead of a phase so that the next
//! ones find what they expect. A phase that fails and is not listed is an error, and so is one that is listed and passes. The
//! control passes all phases, and all others with the listed ones skipped: what is done instead is enough.

use crate::pingpong;
use crate::programs;
use crate::sources::{make_dir, sources};
use outcrop_lab::targets::maven;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The release whose test is used, and the version of RocksDB that it is.
const SOURCES: (&str, &str) = ("=0.19.0", "11.8.1");
const LIST: &str = include_str!("c_test/phases.txt");
/// How long a run may take before it counts as hanging. It takes 2 s.
const LIMIT_SECONDS: u32 = 300;
/// Decides which phases are skipped: those that the environment names, each between newlines.
const SKIPS: &str = "#include <stdlib.h>
#include <string.h>
static int outcrop_skips(const char* between_newlines) {
  const char* skipped = getenv(\"OUTCROP_SKIP\");
  return skipped != NULL && strstr(skipped, between_newlines) != NULL;
}
#line 1 \"c_test.c\"
";

/// A row of the list.
struct Exception {
    why: &'static str,
    /// Statements in C.
    instead: &'static str,
}

type Exceptions = BTreeMap<&'static str, Exception>;

/// See the module.
///
/// # Errors
/// Which phases disagree with the list, or what could not be built or fetched.
pub fn run() -> Result<(), String> {
    let test = Test::prepare()?;
    let reference = maven::obtain("rocksdb", SOURCES.1).map_err(|error| error.to_string())?;
    let control = test.compile("control", &reference)?;
    let ours = test.compile("outcrop", &programs::built("liboutcrop_capi.so")?)?;

    let all_listed: Vec<&str> = test.exceptions.keys().copied().collect();
    for skipped in [&[][..], &all_listed] {
        let failed = failures(&control, skipped)?;
        if !failed.is_empty() {
            return Err(format!("RocksDB itself, with {skipped:?} skipped, fails: {failed:?}"));
        }
    }
    report(&test.phases, &failures(&ours, &[])?, &test.exceptions)
}

/// Runs the phases that pass, with our library `library`, below the command `checker`; gives what it and they said.
///
/// # Errors
/// The test does not build, or does not end well.
pub fn run_below(checker: &Command, library: &Path) -> Result<String, String> {
    let test = Test::prepare()?;
    let program = test.compile("outcrop", library)?;
    let skipped: Vec<String> = test.exceptions.keys().map(ToString::to_string).collect();
    let mut command = Command::new(checker.get_program());
    command.args(checker.get_args()).arg(&program);
    let output = play(command, &program, &skipped)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() && text.contains("\nPASS\n") {
        true => Ok(text),
        false => Err(format!("c_test.c: {}: {text}", output.status)),
    }
}

/// The test, made ready to be compiled.
struct Test {
    dir: PathBuf,
    rocksdb: PathBuf,
    source: PathBuf,
    phases: Vec<String>,
    exceptions: Exceptions,
}

impl Test {
    fn prepare() -> Result<Test, String> {
        let dir = programs::target_dir().join("c_test");
        make_dir(&dir)?;
        let rocksdb = sources(SOURCES.0, &dir)?.join("rocksdb");
        let text = read(&rocksdb.join("db/c_test.c"))?;
        let exceptions = exceptions()?;
        let (program, phases) = with_labels(&text, &exceptions)?;
        let source = dir.join("c_test_labels.c");
        std::fs::write(&source, program).map_err(|error| format!("{}: {error}", source.display()))?;
        Ok(Test { dir, rocksdb, source, phases, exceptions })
    }

    /// Builds the program of one side.
    fn compile(&self, side: &str, library: &Path) -> Result<PathBuf, String> {
        compile(&self.rocksdb, &self.source, &self.dir, side, library)
    }
}

/// Says what became of each phase, and compares it with the list.
fn report(
    phases: &[String],
    failed: &BTreeMap<String, String>,
    exceptions: &Exceptions,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for phase in phases {
        match (failed.get(phase), exceptions.get(phase.as_str())) {
            (None, None) => {}
            (Some(_), Some(exception)) => println!("fails as listed: {phase}: {}", exception.why),
            (Some(said), None) => wrong.push(format!("{phase} fails: {said}")),
            (None, Some(_)) => {
                wrong.push(format!("{phase} passes: take it off crates/xtask/src/c_test/phases.txt"))
            }
        }
    }
    let unknown = exceptions.keys().filter(|listed| !phases.iter().any(|phase| phase == *listed));
    wrong.extend(unknown.map(|listed| format!("{listed} is listed, but no phase of the test")));
    println!(
        "c_test.c of RocksDB {}: {} of {} phases pass",
        SOURCES.1,
        phases.len() - failed.len(),
        phases.len()
    );
    if wrong.is_empty() { Ok(()) } else { Err(format!("c_test.c:\n  {}", wrong.join("\n  "))) }
}

/// The list: phase, why, and what to do instead, between bars.
fn exceptions() -> Result<Exceptions, String> {
    let rows = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let (Some(phase), Some(why), instead, None) =
            (cells.next(), cells.next(), cells.next(), cells.next())
        else {
            return Err(format!("phases.txt: {row}: phase | why | what to do instead"));
        };
        Ok((phase, Exception { why, instead: instead.unwrap_or_default() }))
    })
    .collect()
}

/// The test with a label and a jump at each phase, and the names of the phases. The last one cannot be skipped: it ends the
/// program.
fn with_labels(text: &str, exceptions: &Exceptions) -> Result<(String, Vec<String>), String> {
    let name_in = |line: &str| {
        let name = line.strip_prefix("  StartPhase(\"")?.strip_suffix("\");")?;
        Some(name.to_string())
    };
    let phases: Vec<String> = text.lines().filter_map(name_in).collect();
    if phases.len() + 1 != text.matches("StartPhase(").count() {
        return Err("c_test.c starts phases in lines of another form".into());
    }
    let mut program = SKIPS.to_string();
    let mut started = 0;
    for line in text.lines() {
        if let Some(name) = name_in(line) {
            let instead = exceptions.get(name.as_str()).map_or("", |exception| exception.instead);
            let _ = writeln!(program, "phase_{started}:");
            started += 1;
            if started < phases.len() {
                let _ = write!(
                    program,
                    "  if (outcrop_skips(\"\\n{name}\\n\")) {{ {instead} goto phase_{started}; }}"
                );
            }
        }
        program.push_str(line);
        program.push('\n');
    }
    Ok((program, phases))
}

/// Builds the program of one side. Variables begin as zeros, so that one a skipped phase would have set is null.
fn compile(rocksdb: &Path, source: &Path, dir: &Path, side: &str, library: &Path) -> Result<PathBuf, String> {
    let place = dir.join(side);
    make_dir(&place)?;
    let copy = place.join("librocksdb.so");
    std::fs::copy(library, &copy).map_err(|error| format!("{}: {error}", library.display()))?;
    let program = dir.join(format!("c_test_{side}"));
    let output = Command::new("cc")
        .args(["-O0", "-w", "-ftrivial-auto-var-init=zero", "-I"])
        .arg(rocksdb.join("include"))
        .arg("-I")
        .arg(rocksdb)
        .arg("-o")
        .args([&program, source, &copy])
        // A reference library finds what it depends on when it is loaded.
        .args(["-Wl,--allow-shlib-undefined", &format!("-Wl,-rpath,{}", place.display())])
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    match output.status.success() {
        true => Ok(program),
        false => Err(format!("c_test.c: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The phases that fail and what was said, with those of `skipped` left out.
fn failures(program: &Path, skipped: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let mut skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
    let mut failed = BTreeMap::new();
    while let Some((phase, said)) = failure(program, &skipped)? {
        if skipped.contains(&phase) {
            return Err(format!("{phase} cannot be skipped, and fails: {said}; failed before: {failed:#?}"));
        }
        skipped.push(phase.clone());
        failed.insert(phase, said);
    }
    Ok(failed)
}

/// Runs `command`, which runs `program`, without the phases `skipped`.
fn play(mut command: Command, program: &Path, skipped: &[String]) -> Result<Output, String> {
    let parent = program.with_extension("db");
    let place =
        pingpong::memory_dir().map_or(parent, |memory| memory.join(format!("c_test-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&place);
    make_dir(&place)?;
    let output = command
        .env("TEST_TMPDIR", &place)
        .env("OUTCROP_SKIP", format!("\n{}\n", skipped.join("\n\n")))
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()));
    let _ = std::fs::remove_dir_all(&place);
    output
}

/// The phase that ends the program before its end, if one does, and the last that was said.
fn failure(program: &Path, skipped: &[String]) -> Result<Option<(String, String)>, String> {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &LIMIT_SECONDS.to_string()]).arg(program);
    let output = play(command, program, skipped)?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() && text.ends_with("PASS\n") {
        return Ok(None);
    }
    let (phase, said) = text
        .rsplit_once("=== Test ")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .ok_or_else(|| format!("{}: {}: {text}", program.display(), output.status))?;
    let last = said.lines().last().unwrap_or_default();
    Ok(Some((phase.to_string(), format!("{} ({})", last.trim(), output.status))))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
