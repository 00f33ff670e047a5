//! A fuzzer for stable Rust: mutates the corpus and runs the targets. `cargo xtask fuzz` starts it.
//!
//! There is no feedback from coverage, which stable Rust does not give: what makes up for it is a corpus that
//! reaches every decoder, and checksums that are repaired. `fuzz/` has the same targets for cargo-fuzz.
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
            "--state" => arguments.state = Some(value.into()),
            _ => {
                return Err(format!(
                    "{name}: expected --seconds, --cases, --target, --seed, --case or --write-corpus"
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
    let fixtures = fixtures(&arguments.root)?;
    let mut failed = Vec::new();
    for target in chosen {
        if !run_target(target, arguments, &fixtures)? {
            failed.push(target.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs one target; false if it failed.
fn run_target(
    target: &Target,
    arguments: &Arguments,
    fixtures: &[(String, String, Vec<u8>)],
) -> Result<bool, String> {
    let inputs = inputs(target, &arguments.root, fixtures)?;
    let state = match &arguments.state {
        Some(path) => {
            Some(std::fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => None,
    };
    for input in &inputs {
        if !passes(target, input) {
            report(target, arguments, "an input of the corpus", input)?;
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
            report(target, arguments, &format!("case {case}"), &input)?;
            return Ok(false);
        }
        cases += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("fuzz: {}: {cases} cases in {seconds:.1} s from {} inputs", target.name, inputs.len());
    Ok(true)
}

/// The corpus of a target, and the fixtures it takes as they are.
fn inputs(
    target: &Target,
    root: &Path,
    fixtures: &[(String, String, Vec<u8>)],
) -> Result<Vec<Vec<u8>>, String> {
    let dir = root.join("fuzz/corpus").join(target.name);
    let describe = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .map_err(describe)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(describe)?;
    paths.sort();
    let mut inputs: Vec<Vec<u8>> =
        paths.iter().map(std::fs::read).collect::<Result<_, _>>().map_err(describe)?;
    let whole = fixtures.iter().filter(|(_, name, _)| target.fixtures.iter().any(|e| name.ends_with(e)));
    inputs.extend(
        whole.map(|(_, _, bytes)| bytes.clone()).filter(|bytes| !inputs.contains(bytes)).collect::<Vec<_>>(),
    );
    if inputs.is_empty() { Err(format!("{}: no inputs", dir.display())) } else { Ok(inputs) }
}

fn passes(target: &Target, input: &[u8]) -> bool {
    limits::enter(target.memory);
    let outcome = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    limits::leave();
    outcome.is_ok()
}

/// Says what failed, and keeps a small input that fails.
fn report(target: &Target, arguments: &Arguments, what: &str, input: &[u8]) -> Result<(), String> {
    let seed = arguments.seed;
    let panic = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone();
    eprintln!("fuzz: {}: {what} of seed {seed} fails: {panic}", target.name);
    let small = reduce(input.to_vec(), 3000, |bytes| !passes(target, bytes));
    let dir = arguments.root.join("fuzz/artifacts").join(target.name);
    let path = dir.join(format!("crash-{seed}-{}", what.replace(' ', "-")));
    let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, &small));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    let hex: String = small.iter().take(400).map(|byte| format!("{byte:02x}")).collect();
    eprintln!("fuzz: {}: {} bytes, in {}: {hex}", target.name, small.len(), path.display());
    let case = what.strip_prefix("case ").map_or(String::new(), |case| format!(" --case {case}"));
    eprintln!("fuzz: again: cargo xtask fuzz --target {} --seed {seed}{case}", target.name);
    Ok(())
}
