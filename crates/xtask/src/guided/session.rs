//! One session: a target under libFuzzer for so many seconds, and what it says on the way.

use super::{dir, make_dir};
use crate::root;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Lines of what it said that are shown if it fails.
const LAST_LINES: usize = 40;
/// A run that takes longer hangs; the same as the fuzzer that is not guided.
const MOST_SECONDS: u32 = 20;
/// Megabytes that the process may hold. Runs have limits of their own, in the target; this one counts what C code takes, too.
const MOST_MEGABYTES: u32 = 4096;

/// A target, and how it is run.
pub struct Session {
    pub program: PathBuf,
    pub target: String,
    pub seconds: u64,
    pub seed: u32,
    /// Others run the same target: what they find is taken over.
    pub shared: bool,
}

/// The end of a session.
#[derive(Debug)]
pub struct Told {
    pub target: String,
    pub cases: u64,
    pub seconds: f64,
    /// Counters that the inputs reach that were there, and that were reached in the end.
    pub counters: (u64, u64),
    /// Counters that as much time reaches without being guided, where that was asked for.
    pub blind: Option<u64>,
    /// Inputs that reached something new.
    pub new: u64,
    pub failed: bool,
}

impl Told {
    /// Executions a second.
    pub fn a_second(&self) -> u64 {
        (self.cases as f64 / self.seconds.max(0.001)) as u64
    }

    /// The end of its line.
    pub fn summary(&self) -> String {
        let (before, after) = self.counters;
        format!("{} a second, counters {before} -> {after}, {} new inputs", self.a_second(), self.new)
    }
}

impl Session {
    /// Runs the target.
    ///
    /// # Errors
    /// The program does not run; that an input failed is no error, but told.
    pub fn run(&self, compare: bool) -> Result<Told, String> {
        let blind = if compare { Some(self.blind()?) } else { None };
        let found = dir().join("found").join(&self.target);
        make_dir(&found)?;
        let artifacts = root().join("fuzz/artifacts").join(&self.target);
        make_dir(&artifacts)?;
        let mut command = command(&self.program, &self.target);
        command.args([
            format!("-max_total_time={}", self.seconds),
            format!("-seed={}", self.seed),
            format!("-timeout={MOST_SECONDS}"),
            format!("-report_slow_units={MOST_SECONDS}"),
            format!("-rss_limit_mb={MOST_MEGABYTES}"),
            format!("-reload={}", u8::from(self.shared)),
            format!("-artifact_prefix={}/", artifacts.display()),
            // Changes are not piled up on an input: 20,000 runs of `table` reached 2,902 counters so, and 2,784 with five.
            "-mutate_depth=1".to_string(),
            "-print_final_stats=1".to_string(),
        ]);
        command.arg(&found).arg(root().join("fuzz/corpus").join(&self.target));
        command.arg(whole_fixtures(&self.program, &self.target)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let named = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let start = Instant::now();
        let mut child = command.spawn().map_err(named)?;
        let mut heard = Heard::default();
        if let Some(errors) = child.stderr.take() {
            for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
                heard.hear(&String::from_utf8_lossy(&line));
                progress(&format!("guided: {}: {} cases, {} counters", self.target, heard.cases, heard.last));
            }
        }
        progress("");
        let status = child.wait().map_err(named)?;
        if !status.success() {
            let last = &heard.lines[heard.lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("{}\nguided: {}: ended with {status}", last.join("\n"), self.target);
            if let Some(file) = &heard.artifact {
                let file = Path::new(file);
                let file = file.strip_prefix(root()).unwrap_or(file);
                eprintln!("again: cargo xtask fuzz --target {} --input {}", self.target, file.display());
            }
        }
        Ok(Told {
            target: self.target.clone(),
            cases: heard.cases,
            seconds: start.elapsed().as_secs_f64(),
            counters: (heard.first.unwrap_or(heard.last), heard.last),
            blind,
            new: heard.new,
            failed: !status.success(),
        })
    }

    /// Counters that are reached without being guided.
    fn blind(&self) -> Result<u64, String> {
        let mut command = command(&self.program, &self.target);
        let output = command.args(["--blind", &self.seconds.to_string(), &self.seed.to_string()]).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let counters = text.split(", ").find_map(|part| part.split_once(" counters")?.0.parse().ok());
        counters.ok_or_else(|| format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// The program with its target.
pub fn command(program: &Path, target: &str) -> Command {
    let mut command = Command::new(program);
    command.env("OUTCROP_FUZZ_TARGET", target).current_dir(root());
    command
}

/// A directory with the fixtures that `target` takes as they are.
pub fn whole_fixtures(program: &Path, target: &str) -> Result<PathBuf, String> {
    let dir = dir().join("whole").join(target);
    // Best effort: a fixture that is left of an older tree does no harm.
    let _ = std::fs::remove_dir_all(&dir);
    make_dir(&dir)?;
    let status = command(program, target).arg("--fixtures").arg(&dir).status();
    match status {
        Ok(status) if status.success() => Ok(dir),
        Ok(status) => Err(format!("{target}: its fixtures: {status}")),
        Err(error) => Err(format!("{}: {error}", program.display())),
    }
}

/// The words of libFuzzer so far.
#[derive(Default)]
struct Heard {
    cases: u64,
    /// Counters when all inputs were read.
    first: Option<u64>,
    /// Counters now.
    last: u64,
    new: u64,
    artifact: Option<String>,
    /// All but reports of progress.
    lines: Vec<String>,
}

impl Heard {
    /// Takes a line, such as `#2048 NEW    cov: 301 ft: 700 corp: 33/1234b exec/s: 1024 rss: 40Mb`.
    fn hear(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let number =
            words.next().and_then(|word| word.strip_prefix('#')).and_then(|number| number.parse().ok());
        let (Some(cases), Some(event)) = (number, words.next()) else {
            if let Some(artifact) = line.split_once("Test unit written to ") {
                self.artifact = Some(artifact.1.trim().to_string());
            } else if let Some(cases) = line.strip_prefix("stat::number_of_executed_units:") {
                self.cases = cases.trim().parse().unwrap_or(self.cases);
            }
            self.lines.push(line.to_string());
            return;
        };
        self.cases = cases;
        if let Some(counters) = line.split_once("cov: ").and_then(|(_, rest)| rest.split(' ').next()) {
            self.last = counters.parse().unwrap_or(self.last);
        }
        match event {
            "INITED" => self.first = Some(self.last),
            "NEW" => self.new += 1,
            _ => {}
        }
    }
}

/// One line that is written over, on a terminal alone.
fn progress(line: &str) {
    let mut errors = std::io::stderr();
    if errors.is_terminal() {
        // A terminal that is gone is no reason to end.
        let _ = write!(errors, "\r\x1b[K{line}").and_then(|()| errors.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfuzzer_says_is_understood() {
        let mut heard = Heard::default();
        for line in [
            "INFO: Seed: 1",
            "#41\tINITED cov: 300 ft: 512 corp: 38/30Kb exec/s: 0 rss: 44Mb",
            "#2048\tpulse  cov: 300 ft: 700 corp: 39/31Kb lim: 4096 exec/s: 1024 rss: 44Mb",
            "#2100\tNEW    cov: 304 ft: 700 corp: 39/31Kb lim: 4096 exec/s: 1024 rss: 44Mb L: 7/9 MS: 1 ChangeBit-",
            "#2101\tREDUCE cov: 304 ft: 700 corp: 39/31Kb lim: 4096 exec/s: 1024 rss: 44Mb L: 7/9 MS: 1 EraseBytes-",
            "thread 'main' panicked at crates/table/src/block.rs:1:1: index out of bounds",
            "artifact_prefix='/x/'; Test unit written to /x/crash-0123",
            "stat::number_of_executed_units: 2107",
        ] {
            heard.hear(line);
        }
        assert_eq!((heard.cases, heard.first, heard.last, heard.new), (2107, Some(300), 304, 1));
        assert_eq!(heard.artifact.as_deref(), Some("/x/crash-0123"));
        assert_eq!(heard.lines.len(), 4);
    }
}
