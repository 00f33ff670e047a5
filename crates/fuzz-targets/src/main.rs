//! A fuzzer for stable Rust: mutates the corpus and runs the targets. `cargo xtask fuzz` starts it.
//!
//! Nothing guides it, so it needs no build of its own: what makes up for that is a corpus that reaches every decoder, and
//! checksums that are repaired. `fuzz/` is the program that coverage guides, which fills the corpus.
//!
//! ```text
//! seed, target, case number -> one input     so a failure is replayed by --seed, --target and --case
//! ```
//! A run fails if it panics, holds more memory than its target may, or takes too long. The last two end the
//! process; which case it was in is in the file `--state` names.

mod limits;

use outcrop_fuzz_targets::mutate::{Rng, mutate, reduce};
use outcrop_fuzz_targets::{TARGETS, Target, seeds};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: limits::Counting = limits::Counting;

/// The options of the command line.
struct Arguments {
    /// The workspace.
    root: PathBuf,
    /// For each target.
    time: Duration,
    /// For each target, if it comes so far in its time.
    cases: u64,
    target: Option<String>,
    seed: u64,
    /// Only this case.
    case: Option<u64>,
    /// Only this file.
    input: Option<PathBuf>,
    state: Option<PathBuf>,
    write_corpus: bool,
}

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1)).and_then(|arguments| match arguments.write_corpus {
        true => write_corpus(&arguments.root),
        false => fuzz(&arguments),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fuzz: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        time: Duration::from_secs(10),
        cases: u64::MAX,
        target: None,
        seed: 1,
        case: None,
        input: None,
        state: None,
        write_corpus: false,
    };
    while let Some(name) = given.next() {
        if name == "--write-corpus" {
            arguments.write_corpus = true;
            continue;
        }
        let value = given.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--seconds" => arguments.time = Duration::from_secs(number()?),
            "--cases" => arguments.cases = number()?,
            "--target" => arguments.target = Some(value),
            "--seed" => arguments.seed = number()?,
            "--case" => arguments.case = Some(number()?),
            "--input" => arguments.input = Some(value.into()),
            "--state" => arguments.state = Some(value.into()),
            _ => {
                return Err(format!(
                    "{name}: expected --seconds, --cases, --target, --seed, --case, --input or --write-corpus"
                ));
            }
        }
    }
    Ok(arguments)
}

fn fixtures(root: &Path) -> Result<Vec<(String, String, Vec<u8>)>, String> {
    seeds::fixtures(&root.join("fixtures")).map_err(|error| format!("fixtures: {error}"))
}

fn write_corpus(root: &Path) -> Result<(), String> {
    let made =
        seeds::made_seeds(&root.join("fixtures/made")).map_err(|error| format!("fixtures: {error}"))?;
    for ((target, name), bytes) in seeds::seeds(&fixtures(root)?).into_iter().chain(made) {
        let dir = root.join("fuzz/corpus").join(target);
        let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(dir.join(&name), bytes));
        written.map_err(|error| format!("{}: {error}", dir.join(&name).display()))?;
    }
    Ok(())
}

fn fuzz(arguments: &Arguments) -> Result<(), String> {
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| arguments.target.as_deref().is_none_or(|name| name == target.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("no such target; there are {}", names.join(", ")));
    }
    std::panic::set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    limits::watch();
    if let Some(path) = &arguments.input {
        return match chosen[..] {
            [target] => run_input(target, arguments, path),
            _ => Err("--input goes with --target".to_string()),
        };
    }
    let mut failed = Vec::new();
    for target in chosen {
        if !run_target(target, arguments)? {
            failed.push(target.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs `target` on one file, as often as a fault needs that threads have their part in.
fn run_input(target: &Target, arguments: &Arguments, path: &Path) -> Result<(), String> {
    let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = Instant::now();
    let mut cases = 0_u64;
    while cases == 0 || start.elapsed() < arguments.time.min(Duration::from_secs(3)) {
        if !passes(target, &input) {
            report(target, arguments, &Failing::File(path), &input)?;
            return Err(format!("failed: {}", target.name));
        }
        cases += 1;
    }
    eprintln!("fuzz: {}: {cases} runs of {} bytes pass", target.name, input.len());
    Ok(())
}

/// Runs one target; false if it failed.
fn run_target(target: &Target, arguments: &Arguments) -> Result<bool, String> {
    let inputs = seeds::inputs(target, &arguments.root)?;
    let state = match &arguments.state {
        Some(path) => {
            Some(std::fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => None,
    };
    for input in &inputs {
        if !passes(target, input) {
            report(target, arguments, &Failing::OfCorpus, input)?;
            return Ok(false);
        }
    }
    let start = Instant::now();
    let first = arguments.case.unwrap_or(0);
    let end = arguments.case.map_or(arguments.cases, |case| case + 1);
    let mut cases = 0;
    for case in first..end {
        if arguments.case.is_none() && start.elapsed() >= arguments.time {
            break;
        }
        if let Some(state) = &state {
            let text = format!("--target {} --seed {} --case {case:<20}", target.name, arguments.seed);
            state.write_all_at(text.as_bytes(), 0).map_err(|error| format!("--state: {error}"))?;
        }
        let input = mutate(&inputs, &mut Rng::of_case(arguments.seed, target.name, case));
        if !passes(target, &input) {
            report(target, arguments, &Failing::Case(case), &input)?;
            return Ok(false);
        }
        cases += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("fuzz: {}: {cases} cases in {seconds:.1} s from {} inputs", target.name, inputs.len());
    Ok(true)
}

fn passes(target: &Target, input: &[u8]) -> bool {
    limits::enter(target.memory);
    let outcome = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    limits::leave();
    outcome.is_ok()
}

/// Where an input that fails is from.
enum Failing<'p> {
    OfCorpus,
    Case(u64),
    File(&'p Path),
}

/// Says what failed, and keeps a small input that fails.
fn report(target: &Target, arguments: &Arguments, failing: &Failing<'_>, input: &[u8]) -> Result<(), String> {
    let (name, seed) = (target.name, arguments.seed);
    let (what, file, again) = match failing {
        Failing::OfCorpus => (
            format!("an input of the corpus of seed {seed}"),
            format!("crash-{seed}-an-input-of-the-corpus"),
            format!("--seed {seed}"),
        ),
        Failing::Case(case) => (
            format!("case {case} of seed {seed}"),
            format!("crash-{seed}-case-{case}"),
            format!("--seed {seed} --case {case}"),
        ),
        Failing::File(path) => (
            path.display().to_string(),
            format!("{}-small", path.file_name().unwrap_or_default().to_string_lossy()),
            format!("--input {}", path.display()),
        ),
    };
    let panic = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone();
    eprintln!("fuzz: {name}: {what} fails: {panic}");
    let small = reduce(input.to_vec(), 3000, |bytes| !passes(target, bytes));
    let dir = arguments.root.join("fuzz/artifacts").join(name);
    let path = dir.join(file);
    let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, &small));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    let hex: String = small.iter().take(400).map(|byte| format!("{byte:02x}")).collect();
    eprintln!("fuzz: {name}: {} bytes, in {}: {hex}", small.len(), path.display());
    eprintln!("fuzz: again: cargo xtask fuzz --target {name} {again}");
    Ok(())
}
