//! Live attempts to fool the lab: one library against itself on this machine, with what can be done to a machine.
//!
//! ```text
//! RocksDB's library, copied twice  ->  outcrop lab run, beside a burner of processor time  ->  outcrop lab compare --json
//! with --server NAME@VERSION: a SQL server, twice; what is planted is the client's
//! ```
//! Simulated attacks are in `crates/lab/src/analysis/attacks.rs`; this prints the same columns for real runs. It needs a machine
//! on which nothing else works, and takes four to five minutes for each run at the usual size. How long a run takes is measured
//! by one before all others, which is not counted: loads that depend on the time go by that of the run before.

use crate::cargo;
use crate::programs;
use outcrop_lab::targets::maven;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Version of RocksDB that is compared with itself.
const VERSION: &str = "11.8.1";
/// Steps that are timed; the load is not.
const STEPS: [&str; 3] = ["readrandom", "fwdrange", "overwriteandwait"];
/// The same of a SQL server.
const SQL_STEPS: [&str; 3] = ["point-query_range=100", "read-only_range=100", "update-index_range=100"];

/// The time that a run is to take, and how often it is done.
struct Size {
    runs: usize,
    /// Blocks of a run.
    rounds: usize,
    seconds: f64,
    keys: u64,
}

/// The two that are equal.
enum Equals {
    /// One library, copied twice.
    Library([PathBuf; 2]),
    /// A server, `NAME@VERSION`.
    Server(String),
}

impl Equals {
    fn steps(&self) -> [&'static str; 3] {
        match self {
            Equals::Library(_) => STEPS,
            Equals::Server(_) => SQL_STEPS,
        }
    }

    /// Whether the burner can tell when the attacked target is at work.
    fn allows(&self, load: Load) -> bool {
        load != Load::BesideTarget || matches!(self, Equals::Library(_))
    }
}

/// When the burner works.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Never,
    /// A larger part of each second, from none at the begin to all at the end.
    Growing,
    /// Five seconds of fifteen, at times that are drawn.
    ComesAndGoes,
    /// The tenth of the run in its middle.
    OneTenth,
    /// While the attacked target is at work.
    BesideTarget,
}

/// Name, planted share, load.
const ATTACKS: [(&str, f64, Load); 10] = [
    ("none: equals", 0.0, Load::Never),
    ("planted 1 %", 0.01, Load::Never),
    ("planted 2 %", 0.02, Load::Never),
    ("planted 3 %", 0.03, Load::Never),
    ("planted 5 %", 0.05, Load::Never),
    // More than blocks scatter by on a noisy machine.
    ("planted 30 %", 0.3, Load::Never),
    ("load that grows over the run", 0.0, Load::Growing),
    ("load that comes and goes", 0.0, Load::ComesAndGoes),
    ("load for a tenth of the run", 0.0, Load::OneTenth),
    ("load beside one target", 0.0, Load::BesideTarget),
];

/// The cells of the attacked target and of the twin, by what the report says of them.
#[derive(Default)]
struct Tally {
    attacked: BTreeMap<String, usize>,
    twin: BTreeMap<String, usize>,
    /// Half the width of each interval of either, in per cent of its ratio.
    half_widths: Vec<f64>,
}

impl Tally {
    const HEAD: &str = "| attack | slower | faster | the same | unknown | twin called | half width |\n\
                        |---|---:|---:|---:|---:|---:|---:|";

    /// Takes in what `outcrop lab compare --json` says of these steps.
    fn add(&mut self, report: &serde_json::Value, steps: &[&str]) {
        for cell in report["cells"].as_array().into_iter().flatten() {
            let (target, step) = (cell["target"].as_str().unwrap_or(""), cell["step"].as_str().unwrap_or(""));
            let verdict = &cell["verdict"];
            let Some(word) = verdict["word"].as_str().filter(|_| steps.contains(&step)) else { continue };
            let cells = if target.ends_with("(A/A)") { &mut self.twin } else { &mut self.attacked };
            *cells.entry(word.to_string()).or_default() += 1;
            if let (Some(low), Some(high)) = (verdict["low"].as_f64(), verdict["high"].as_f64()) {
                self.half_widths.push(((high / low).sqrt() - 1.0) * 100.0);
            }
        }
    }

    /// A line under [`Tally::HEAD`].
    fn row(&mut self, name: &str) -> String {
        let of = |cells: &BTreeMap<String, usize>, word: &str| cells.get(word).copied().unwrap_or(0);
        let called = |cells: &BTreeMap<String, usize>| of(cells, "regression") + of(cells, "improvement");
        let (attacked, twin) = (&self.attacked, &self.twin);
        let all: usize = attacked.values().sum();
        self.half_widths.sort_by(f64::total_cmp);
        let middle = self.half_widths.get(self.half_widths.len() / 2);
        format!(
            "| {name} | {} | {} | {} | {} | {} of {} | {} |",
            of(attacked, "regression"),
            of(attacked, "improvement"),
            of(attacked, "same"),
            all - called(attacked) - of(attacked, "same"),
            called(twin),
            twin.values().sum::<usize>(),
            middle.map_or("-".to_string(), |width| format!("{width:.1} %"))
        )
    }
}

/// See the module. `--runs N` (5), `--rounds N` blocks of each (6), `--seconds S` of a step (4), `--keys N` (200000), `--attack N` for some lines alone,
/// `--server NAME@VERSION` for a SQL server in place of RocksDB.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let mut size = Size { runs: 5, rounds: 6, seconds: 4.0, keys: 200_000 };
    let (mut only, mut server) = (Vec::new(), None);
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return Err(format!("{} takes a value", pair[0])) };
        if *flag == "--server" {
            server = Some(value.to_string());
            continue;
        }
        let number: f64 = value.parse().map_err(|_| format!("{flag} {value}: not a number"))?;
        match *flag {
            "--runs" => size.runs = number as usize,
            "--rounds" => size.rounds = number as usize,
            "--seconds" => size.seconds = number,
            "--keys" => size.keys = number as u64,
            "--attack" => match value.parse() {
                Ok(attack) if (1..=ATTACKS.len()).contains(&attack) => only.push(attack),
                _ => return Err(format!("--attack {value}: there are attacks 1 to {}", ATTACKS.len())),
            },
            _ => {
                return Err(format!(
                    "unknown flag {flag}; there are --runs, --rounds, --seconds, --keys, --attack, --server"
                ));
            }
        }
    }
    cargo(&["build", "--quiet", "--release", "-p", "outcrop-cli"], None)?;
    let target = programs::target_dir();
    let dir: PathBuf = target.join("attacks");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let equals = match server {
        Some(server) => Equals::Server(server),
        None => Equals::Library(copies(&dir)?),
    };
    let bench = Bench { dir, program: target.join("release/outcrop"), equals, size };
    // The length of a run; what it says is not counted.
    let mut whole = bench.one(0.0, Load::Never, 0, f64::INFINITY, &mut Tally::default())?;
    println!("{}", Tally::HEAD);
    for (number, (name, planted, load)) in ATTACKS.iter().enumerate() {
        let is_wanted = only.is_empty() || only.contains(&(number + 1));
        if !is_wanted || !bench.equals.allows(*load) {
            continue;
        }
        let mut tally = Tally::default();
        for run in 0..bench.size.runs {
            whole = bench.one(*planted, *load, run, whole, &mut tally)?;
        }
        println!("{}", tally.row(name));
    }
    Ok(())
}

/// RocksDB's library twice in `dir`.
fn copies(dir: &Path) -> Result<[PathBuf; 2], String> {
    let library = maven::obtain("rocksdb", VERSION).map_err(|error| error.to_string())?;
    let copies = ["base", "other"].map(|name| dir.join(format!("librocksdb-{name}.so")));
    for copy in &copies {
        std::fs::copy(&library, copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    Ok(copies)
}

/// The parts that all runs share.
struct Bench {
    dir: PathBuf,
    program: PathBuf,
    equals: Equals,
    size: Size,
}

impl Bench {
    /// One experiment, with its verdicts added to `tally`; `whole` is about how many seconds it will take. Gives how many it took.
    fn one(
        &self,
        planted: f64,
        load: Load,
        number: usize,
        whole: f64,
        tally: &mut Tally,
    ) -> Result<f64, String> {
        let Bench { dir, program, equals, size } = self;
        let (file, store, data) = (dir.join("attack.toml"), dir.join("record.sqlite"), dir.join("data"));
        let _ = std::fs::remove_file(&store);
        std::fs::write(&file, experiment(equals, planted, size))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let lab = |words: &[&str]| {
            let mut command = Command::new(program);
            command.arg("lab").args(words).arg("--store").arg(&store).current_dir(dir);
            command
        };
        let done = AtomicBool::new(false);
        let begun = Instant::now();
        let (output, burnt) = std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let burners: Vec<_> = (0..threads)
                .map(|thread| {
                    let done = &done;
                    let other = match equals {
                        Equals::Library([_, other]) => other.as_path(),
                        Equals::Server(_) => Path::new(""),
                    };
                    scope.spawn(move || burn(load, other, whole, number as u64 * 64 + thread as u64, done))
                })
                .collect();
            let output = lab(&["run", &file.to_string_lossy(), "--data", &data.to_string_lossy()]).output();
            done.store(true, Ordering::Relaxed);
            let burnt = burners.into_iter().map(|burner| burner.join().unwrap_or_default()).sum::<Duration>();
            output.map(|output| (output, burnt))
        })
        .map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            return Err(format!("lab run: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let took = begun.elapsed().as_secs_f64();
        if load != Load::Never && burnt.is_zero() {
            return Err(format!(
                "the load never worked in a run of {took:.0} s of which {whole:.0} s were expected"
            ));
        }
        let compared = lab(&["compare", "1", "--json"]).output().map_err(|error| error.to_string())?;
        let report: serde_json::Value =
            serde_json::from_slice(&compared.stdout).map_err(|error| format!("lab compare: {error}"))?;
        tally.add(&report, &equals.steps());
        Ok(took)
    }
}

/// The experiment: two equal targets, the second with what is planted, and the twin of the first.
fn experiment(equals: &Equals, planted: f64, size: &Size) -> String {
    let steps: Vec<String> = equals.steps().iter().map(|step| format!("'{step}'")).collect();
    let Size { rounds, seconds, keys, .. } = size;
    let (load, base, workload, targets) = match equals {
        Equals::Library([first, second]) => {
            let target = |build: &str, copy: &Path, config: &str| {
                let library = copy.display();
                format!(
                    "\n[[target]]\nengine = 'rocksdb'\nlibrary = '{library}'\nbuild = '{build}'\n{config}"
                )
            };
            let config = if planted > 0.0 { "configs = ['slower']\n" } else { "" };
            let targets = target("base", first, "") + &target("other", second, config);
            ("fillseq", "rocksdb@base".to_string(), format!("kind = 'byrx'\nkeys = {keys}\n"), targets)
        }
        Equals::Server(server) => {
            let targets =
                format!("\n[[target]]\nserver = '{server}'\nconfigs = ['base', 'slower']\n[config.base]\n");
            // Most of the machine's memory is free for either.
            let workload =
                format!("kind = 'sysbench'\nrows = {keys}\npostwrite_seconds = 0\nmemory_share = 0.3\n");
            ("load", format!("{server}/base"), workload, targets)
        }
    };
    let slower = match (equals, planted > 0.0) {
        (Equals::Library(_), false) => String::new(),
        _ => format!("\n[config.slower]\nplanted = {planted:?}\n"),
    };
    format!(
        "title = 'Attack'\nbase = '{base}'\nsteps = ['{load}', {}]\n[workload]\n{workload}seconds = {seconds:?}\n\
         [design]\nrounds = {rounds}\naa = true\nallow_oversubscription = true\n{targets}{slower}",
        steps.join(", ")
    )
}

/// Whether a load that goes by the time alone works `at` seconds after the begin of a run of about `whole`; `None` for others.
fn works_by_time(load: Load, at: f64, whole: f64) -> Option<bool> {
    match load {
        Load::Never => Some(false),
        Load::Growing => Some(at.fract() < at / whole),
        Load::OneTenth => Some((0.45..0.55).contains(&(at / whole))),
        Load::ComesAndGoes | Load::BesideTarget => None,
    }
}

/// Burns processor time as `load` says until `done`; `whole` is about how many seconds that will be. Gives how much.
fn burn(load: Load, other: &Path, whole: f64, seed: u64, done: &AtomicBool) -> Duration {
    /// Decisions are taken so often.
    const SLICE: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (mut on, mut until) = (false, 0.0);
    let mut burnt = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let at = begun.elapsed().as_secs_f64();
        let works = match (works_by_time(load, at, whole), load) {
            (Some(works), _) => works,
            (None, Load::BesideTarget) => is_at_work(other),
            (None, _) => {
                if at > until {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    on = !on;
                    let mean = if on { 5.0 } else { 10.0 };
                    until = at - mean * ((state >> 11) as f64 / (1u64 << 53) as f64).max(1e-9).ln();
                }
                on
            }
        };
        if works {
            let slice = Instant::now();
            while slice.elapsed() < SLICE {
                std::hint::spin_loop();
            }
            burnt += SLICE;
        } else {
            std::thread::sleep(SLICE);
        }
    }
    burnt
}

/// Whether a process that was started with `library` is not stopped.
fn is_at_work(library: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).any(|entry| {
        let text = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let environment = text("environ");
        let wanted = library.as_os_str().as_encoded_bytes();
        if !environment.windows(wanted.len()).any(|window| window == wanted) {
            return false;
        }
        let stat = String::from_utf8_lossy(&text("stat")).into_owned();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('T'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_told_by_target_and_verdict_and_only_of_the_steps() {
        let cell = |step: &str, target: &str, word: &str| serde_json::json!({ "step": step, "target": target, "verdict": { "word": word, "low": 0.9, "high": 1.1 } });
        let base = serde_json::json!({ "step": "readrandom", "target": "a", "verdict": null });
        let cells = [
            base,
            cell("fillseq", "b", "regression"),
            cell("readrandom", "b", "regression"),
            cell("fwdrange", "b", "improvement"),
            cell("fwdrange", "b", "same"),
            cell("readrandom", "b", "unknown"),
            cell("readrandom", "a (A/A)", "regression"),
            cell("fwdrange", "a (A/A)", "same"),
        ];
        let mut tally = Tally::default();
        tally.add(&serde_json::json!({ "cells": cells }), &STEPS);
        assert_eq!(tally.row("x"), "| x | 1 | 1 | 1 | 1 | 1 of 2 | 10.6 % |");
        assert_eq!(Tally::default().row("y"), "| y | 0 | 0 | 0 | 0 | 0 of 0 | - |");
        assert_eq!(Tally::HEAD.lines().map(|line| line.matches('|').count()).collect::<Vec<_>>(), [8, 8]);
    }

    #[test]
    fn a_load_for_a_tenth_of_the_run_is_in_its_middle_however_long_it_takes() {
        for whole in [90.0, 335.0] {
            let works = |tenths: f64| works_by_time(Load::OneTenth, whole * tenths / 10.0, whole).unwrap();
            assert!(!works(0.1) && !works(4.4) && works(5.0) && !works(5.6) && !works(9.9), "{whole}");
        }
        // The run that measures how long one takes has no such load.
        assert_eq!(works_by_time(Load::Never, 5.0, f64::INFINITY), Some(false));
    }
}
