//! `outcrop lab quick`: the standard sequence on Outcrop and RocksDB, interleaved, with a report.

use crate::data_dir::DataDir;
use crate::memory;
use crate::reference;
use crate::report;
use crate::session::{Message, PAIR, Session, Sizes, Source, Target, Workload};
use crate::tables::{self, Measured, align, ops_per_second, paired_ratio, summary_line};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Flags of `lab quick`.
#[derive(Clone, Debug, clap::Args)]
pub struct QuickArguments {
    /// Keys to load [default: from memory, at most 2000000].
    #[arg(long)]
    pub keys: Option<u64>,
    /// Seconds of each timed step.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Reading and writing threads.
    #[arg(long, default_value_t = 1)]
    pub threads: u32,
    /// Rounds; every engine runs once in each.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Engines: outcrop, rocksdb@VERSION or NAME=LIBRARY, the last being the base.
    #[arg(long, value_delimiter = ',', default_value = "outcrop,rocksdb@11.8.1")]
    pub engines: Vec<String>,
    /// Kind of data set.
    #[arg(long, value_enum, default_value = "byrx")]
    pub workload: Workload,
    /// Base of all seeds [default: the time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Directory for databases; removed afterwards.
    #[arg(long, default_value = "outcrop-lab-data")]
    pub data: PathBuf,
    /// Directory for report.html, results.tsv and results.json.
    #[arg(long, default_value = "outcrop-lab-report")]
    pub output: PathBuf,
    /// Print the results as JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// Time between lines of progress where they cannot be overwritten.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Runs everything.
///
/// # Errors
/// One sentence that says what to do.
pub fn run(arguments: &QuickArguments) -> Result<(), String> {
    if arguments.rounds == 0 || arguments.threads == 0 || arguments.seconds <= 0.0 {
        return Err("--rounds, --threads and --seconds must be above zero".to_string());
    }
    let targets = resolve_targets(&arguments.engines)?;
    let sizes = choose_sizes(arguments);
    let data = DataDir::take(&arguments.data)?;
    data.check_space(4 * sizes.keys * (PAIR.0 + PAIR.1) as u64)?;
    let seed = arguments.seed.unwrap_or_else(unix_seconds);
    let mut run = Run {
        arguments,
        targets: &targets,
        sizes,
        data: &data,
        seed,
        measured: Vec::new(),
        start: Instant::now(),
        said: Instant::now(),
    };
    run.all_rounds()?;
    let measured = run.measured;
    let files = report::write(&arguments.output, arguments, &targets, &measured, seed)?;
    if arguments.json {
        println!("{}", report::json(arguments, &targets, &measured, seed));
    } else {
        print_results(arguments, &targets, &measured);
        let [html, tsv, json] = files;
        println!("report: {}\nrounds: {}, {}", html.display(), tsv.display(), json.display());
    }
    Ok(())
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

/// The engines named, in order. A reference that cannot be had by default is left out, with a word.
fn resolve_targets(names: &[String]) -> Result<Vec<Target>, String> {
    let mut targets = Vec::new();
    for name in names {
        let source = if name == "outcrop" {
            Source::InProcess
        } else if let Some((_, path)) = name.split_once('=') {
            let path = PathBuf::from(path);
            if !path.exists() {
                return Err(format!("{}: no such library", path.display()));
            }
            Source::Library(path)
        } else if let Some((engine, version)) = name.split_once('@') {
            match reference::obtain(engine, version) {
                Ok(path) => Source::Library(path),
                Err(reference::ReferenceError::Unavailable(why)) => {
                    eprintln!("going on without {name}: {why}");
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            }
        } else {
            return Err(format!("unknown engine {name}; use outcrop, rocksdb@VERSION or NAME=LIBRARY"));
        };
        let name = name.split_once('=').map_or(name.as_str(), |(name, _)| name);
        targets.push(Target { name: name.to_string(), source });
    }
    if targets.is_empty() { Err("no engine is left to measure".to_string()) } else { Ok(targets) }
}

/// Sizes that fit the machine: the data in a quarter of memory at most, the cache around it for `byrx` and a
/// fifth of it otherwise.
fn choose_sizes(arguments: &QuickArguments) -> Sizes {
    let pair = (PAIR.0 + PAIR.1) as u64;
    let keys = arguments.keys.unwrap_or((memory::total_bytes() / 4 / pair).min(2_000_000));
    let data = (keys * pair) as usize;
    let cache_bytes =
        if arguments.workload == Workload::Byrx { data * 3 / 2 + (256 << 20) } else { data / 5 };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let background_jobs = (cores / 2).clamp(3, 12) as i32;
    Sizes { keys, cache_bytes, seconds: arguments.seconds, threads: arguments.threads, background_jobs }
}

struct Run<'a> {
    arguments: &'a QuickArguments,
    targets: &'a [Target],
    sizes: Sizes,
    data: &'a DataDir,
    seed: u64,
    measured: Vec<Measured>,
    start: Instant,
    /// When progress was last written to something that is no terminal.
    said: Instant,
}

/// A child that is killed if it is still running when it is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run<'_> {
    fn all_rounds(&mut self) -> Result<(), String> {
        let count = self.targets.len();
        for round in 0..self.arguments.rounds {
            for place in 0..count {
                // Every engine is first in turn.
                let target = (place + round) % count;
                let done = round * count + place;
                self.session(round, target, done)?;
            }
        }
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        Ok(())
    }

    fn session(&mut self, round: usize, target: usize, done: usize) -> Result<(), String> {
        let session = Session {
            target: self.targets[target].clone(),
            dir: self.data.session(done)?,
            workload: self.arguments.workload,
            sizes: self.sizes.clone(),
            seed: self.seed + round as u64 * 1000,
        };
        // Its cache and memtables, and its files in the page cache.
        let data = self.sizes.keys * (PAIR.0 + PAIR.1) as u64;
        self.progress("making memory present", 0.0, done, 0, 1);
        memory::make_present(self.sizes.cache_bytes as u64 + 2 * data);
        let outcome = self.watch(&session, round, target, done);
        let removed = self.data.remove(done);
        outcome.and(removed)
    }

    /// Runs the child and takes down what it says.
    fn watch(&mut self, session: &Session, round: usize, target: usize, done: usize) -> Result<(), String> {
        let who = format!("{} in round {}", session.target.name, round + 1);
        let json = serde_json::to_string(session).map_err(|error| error.to_string())?;
        let exe = std::env::current_exe().map_err(|error| format!("own program: {error}"))?;
        let spawned = Command::new(exe)
            .args(["lab-worker", &json])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a session: {error}"))?;
        let mut child = KillOnDrop(spawned);
        let out = child.0.stdout.take().expect("its output is piped");
        let steps = session.steps();
        let mut finished = 0;
        for line in BufReader::new(out).lines() {
            let line = line.map_err(|error| format!("{who}: {error}"))?;
            // Libraries may print lines of their own.
            let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
            match message {
                Message::Progress { step, ops, seconds } => {
                    let rate = ops as f64 / seconds.max(1e-9);
                    self.progress(&format!("{} {}", who, steps[step].0.name), rate, done, step, steps.len());
                }
                Message::Done { step, result } => {
                    finished = step + 1;
                    if steps[step].1 {
                        let date = report::rfc3339(unix_seconds());
                        let step = steps[step].0.name.clone();
                        self.measured.push(Measured { target, round, step, result: *result, date });
                    }
                }
                Message::Failed(error) => return Err(format!("{who}: {error}")),
            }
        }
        let status = child.0.wait().map_err(|error| format!("{who}: {error}"))?;
        if !status.success() || finished < steps.len() {
            let step = steps.get(finished).map_or("the end", |(step, _)| step.name.as_str());
            return Err(format!("{who}: the session ended during {step} ({status})"));
        }
        Ok(())
    }

    /// One line on standard error: what runs, how fast, how long still.
    fn progress(&mut self, what: &str, rate: f64, done: usize, step: usize, steps: usize) {
        let total = (self.arguments.rounds * self.targets.len()) as f64;
        let share = (done as f64 + step as f64 / steps as f64) / total;
        let elapsed = self.start.elapsed().as_secs_f64();
        let left =
            if share > 0.02 { format!("{:.0} s left", elapsed / share - elapsed) } else { "...".to_string() };
        let rate = if rate > 0.0 { format!("  {}/s", report::thousands(rate)) } else { String::new() };
        let line = format!("{:>3.0} %  {what}{rate}  {left}", share * 100.0);
        let mut err = std::io::stderr().lock();
        let _ = if err.is_terminal() {
            write!(err, "\r\x1b[K{line}").and_then(|()| err.flush())
        } else if self.said.elapsed() >= BETWEEN_LINES {
            self.said = Instant::now();
            writeln!(err, "{line}")
        } else {
            Ok(())
        };
    }
}

/// Steps in the order they ran, once each.
pub fn step_names(measured: &[Measured]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for m in measured {
        if !names.contains(&m.step) {
            names.push(m.step.clone());
        }
    }
    names
}

/// Median throughput of a target on a step.
pub fn median_ops(measured: &[Measured], step: &str, target: usize) -> Option<f64> {
    let mut ops: Vec<f64> = measured
        .iter()
        .filter(|m| m.target == target && m.step == step)
        .map(|m| ops_per_second(&m.result))
        .collect();
    ops.sort_by(f64::total_cmp);
    tables::median(&ops)
}

/// What the terminal shows: the 28 columns of each engine's median rounds, then the comparison.
fn print_results(arguments: &QuickArguments, targets: &[Target], measured: &[Measured]) {
    for (index, target) in targets.iter().enumerate() {
        let rows: Vec<_> = step_names(measured)
            .iter()
            .filter_map(|step| median_round(measured, step, index))
            .map(|m| summary_line(m, &target.name, &format!("round{}", m.round + 1)))
            .collect();
        println!("\n{}: the round with the median throughput of each step\n", target.name);
        print!("{}", tables::summary_blocks(&rows));
    }
    println!("\n{}", relative_table(arguments, targets, measured));
}

/// The measurement whose throughput is the median of its step, or the lower of the middle two.
fn median_round<'m>(measured: &'m [Measured], step: &str, target: usize) -> Option<&'m Measured> {
    let mut rounds: Vec<_> = measured.iter().filter(|m| m.target == target && m.step == step).collect();
    rounds.sort_by(|a, b| ops_per_second(&a.result).total_cmp(&ops_per_second(&b.result)));
    rounds.get(rounds.len().saturating_sub(1) / 2).copied()
}

/// The relative-throughput table, for people.
pub fn relative_table(arguments: &QuickArguments, targets: &[Target], measured: &[Measured]) -> String {
    let base = targets.len() - 1;
    let mut rows = vec![vec!["step".to_string()]];
    rows[0].extend(targets.iter().map(|target| target.name.clone()));
    for _ in &targets[..base] {
        rows[0].extend(["ratio".to_string(), "min..max".to_string()]);
    }
    let mut notes = String::new();
    for step in step_names(measured) {
        let mut row = vec![step.clone()];
        for index in 0..targets.len() {
            row.push(median_ops(measured, &step, index).map_or("NA".into(), report::thousands));
        }
        for index in 0..base {
            match paired_ratio(measured, &step, index, base) {
                Some(_) if tables::invalid(measured, &step, &[index, base]).is_some() => {
                    row.extend(["INVALID".to_string(), String::new()]);
                }
                Some(ratio) => {
                    row.push(format!("{:.2}", ratio.median));
                    row.push(format!("{:.2}..{:.2}", ratio.min, ratio.max));
                }
                None => row.extend(["NA".to_string(), "NA".to_string()]),
            }
        }
        for (index, target) in targets.iter().enumerate() {
            if let Some(why) = tables::invalid(measured, &step, &[index]) {
                notes.push_str(&format!("INVALID {step}, {}: {why}\n", target.name));
            }
        }
        rows.push(row);
    }
    format!(
        "Operations per second, median of {} rounds, {} thread(s).\nRatios are paired by round; base: {}.\n\n{}{notes}",
        arguments.rounds,
        arguments.threads,
        targets[base].name,
        align(&rows)
    )
}
