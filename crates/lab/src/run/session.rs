//! One session: a child on its own directory, sampled while it works, each step handed on when it ends.

use super::now;
use super::progress::Progress;
use crate::child::{self, Assignment, Message};
use crate::plan::{Plan, Slot};
use crate::probe::derive::{Metrics, derive};
use crate::probe::{Reading, Sampler};
use crate::store::{StepRecord, StoreError};
use crate::{judge, labels};
use outcrop_lab_load::StepResult;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What one session is made of.
pub(super) struct Session<'a> {
    pub plan: &'a Plan,
    pub slot: Slot,
    /// First step of the plan that this session does.
    pub first: usize,
    /// One past its last.
    pub last: usize,
    pub dir: &'a Path,
    pub device: &'a str,
    pub interval: Duration,
    /// The host takes free memory back: it is asked for again before each step.
    pub keep_present: bool,
    pub progress: &'a mut Progress,
}

/// How a session ended.
pub(super) enum Ended {
    /// Every step was measured.
    Done,
    /// The engine failed, or its process did.
    Failed(String),
    /// A step could not be recorded.
    Store(StoreError),
    /// No process could be started: nothing that the target did.
    NotStarted(String),
}

/// A child that is killed if it is still running when it is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Block of what loads data for sessions to copy; it is no session of the plan.
pub(super) const DATASET: i64 = -2;

/// Seconds without a word after which a child is taken for dead, beyond the time its step should take.
const PATIENCE: f64 = 600.0;

/// Service and response times of a step: nanoseconds and how often.
type Latencies<'l> = (&'l [(u64, u64)], &'l [(u64, u64)]);

type Record<'r> = &'r mut dyn FnMut(&StepRecord<'_>) -> Result<(), StoreError>;

impl Session<'_> {
    /// Runs the child; hands each step to `record`.
    pub fn run(&mut self, record: Record<'_>) -> Ended {
        let (mut child, messages) = match self.spawn() {
            Ok(spawned) => spawned,
            Err(error) => return Ended::NotStarted(error),
        };
        let sampler = Sampler::start(self.device, child.0.id(), self.interval);
        let mut begun: Option<(usize, f64, Reading)> = None;
        let mut finished = self.first;
        loop {
            let message = match messages.recv_timeout(self.patience(finished)) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    return Ended::Failed(format!(
                        "{}: nothing happened for too long",
                        self.step_name(finished)
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match message {
                Message::Started { step, waited } => begun = Some((step, waited, sampler.edge())),
                Message::Progress { step, progress } => {
                    let rate = progress.ops as f64 / progress.seconds.max(1e-9);
                    self.show(self.first + step, rate);
                }
                Message::NotOffered { step, why } => {
                    begun = None;
                    if let Err(error) = self.not_offered(self.first + step, &why, record) {
                        return Ended::Store(error);
                    }
                    finished = self.first + step + 1;
                }
                Message::Done { step, result, histogram, responses } => {
                    let Some((_, waited, first)) = begun.take().filter(|(number, ..)| *number == step) else {
                        return Ended::Failed("the child ended a step that it had not begun".to_string());
                    };
                    let readings = sampler.between(&first, &sampler.edge());
                    let latencies = (histogram.as_slice(), responses.as_slice());
                    let number = self.first + step;
                    if let Err(error) = self.measured(number, &result, latencies, &readings, waited, record) {
                        return Ended::Store(error);
                    }
                    finished = self.first + step + 1;
                }
                Message::Failed(error) => return Ended::Failed(error),
            }
        }
        drop(sampler);
        self.ending(&mut child, finished)
    }

    fn spawn(&self) -> Result<(KillOnDrop, Receiver<Message>), String> {
        let mut command = child::command(&self.assignment())?;
        command.stdout(Stdio::piped());
        let mut child =
            KillOnDrop(command.spawn().map_err(|error| format!("cannot start a session: {error}"))?);
        let out = child.0.stdout.take().expect("its output is piped");
        let (sender, messages) = channel();
        // Ends with the child's output, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // Libraries may print lines of their own.
                if let Ok(message) = serde_json::from_str(&line)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        });
        Ok((child, messages))
    }

    fn assignment(&self) -> Assignment {
        let target = &self.plan.targets[self.slot.target];
        let seed = self.plan.block_seed(self.slot.block);
        let steps = self.plan.steps[self.first..self.last].iter().enumerate().map(|(index, step)| {
            let mut step = step.clone();
            // Threads of a step take the numbers after its seed.
            step.step.seed = seed.wrapping_add((self.first + index) as u64 * 1000);
            step.step.planted = target.planted;
            step
        });
        Assignment {
            source: target.source.clone(),
            preload: target.preload.clone(),
            dir: self.dir.to_path_buf(),
            open: target.open.clone(),
            options: target.options.clone(),
            steps: steps.collect(),
            keep_present: self.keep_present.then(|| self.plan.sizes.clone()),
        }
    }

    /// How long to wait for the next message while step `number` runs.
    fn patience(&self, number: usize) -> Duration {
        let seconds = self.plan.steps.get(number).map_or(0.0, |step| step.step.seconds);
        Duration::from_secs_f64(seconds + PATIENCE)
    }

    fn step_name(&self, number: usize) -> &str {
        self.plan.steps.get(number).map_or("the end", |step| step.step.name.as_str())
    }

    fn show(&mut self, number: usize, rate: f64) {
        let target = &self.plan.targets[self.slot.target].name;
        let block = match self.slot.block {
            DATASET => "data set".to_string(),
            block if block < 0 => "warm-up".to_string(),
            block => format!("block {}", block + 1),
        };
        let what = format!("{block} {target} {}", self.plan.steps[number].step.name);
        let share = (number - self.first) as f64 / (self.last - self.first) as f64;
        self.progress.show(&what, rate, share);
    }

    fn measured(
        &self,
        number: usize,
        result: &StepResult,
        (histogram, responses): Latencies<'_>,
        readings: &[Reading],
        waited: f64,
        record: Record<'_>,
    ) -> Result<(), StoreError> {
        let step = &self.plan.steps[number];
        let (first, last) = (&readings[0], &readings[readings.len() - 1]);
        let mut metrics = derive(step, result, first, last, waited);
        if let Some(rate) = labels::steady_rate(&result.per_second, self.plan.delta) {
            metrics.insert("steady_ops_sec".to_string(), rate);
        }
        if let Some(seconds) = judge::stalled_seconds(&result.per_second) {
            metrics.insert("stalled_seconds".to_string(), seconds);
        }
        let labels = labels::labels(self.plan.kind, self.plan.delta, step, result, &metrics);
        record(&StepRecord {
            number,
            name: &step.step.name,
            date: &now(),
            result,
            metrics: &metrics,
            labels: &labels,
            readings,
            histogram,
            responses,
        })
    }

    /// Records that a step was not run since the engine has no such thing.
    fn not_offered(&self, number: usize, why: &str, record: Record<'_>) -> Result<(), StoreError> {
        record(&StepRecord {
            number,
            name: &self.plan.steps[number].step.name,
            date: &now(),
            result: &StepResult::nothing(),
            metrics: &Metrics::new(),
            labels: &[labels::not_offered(why)],
            readings: &[],
            histogram: &[],
            responses: &[],
        })
    }

    /// The child has closed its output: how did it end?
    fn ending(&self, child: &mut KillOnDrop, finished: usize) -> Ended {
        let deadline = Instant::now() + Duration::from_secs_f64(PATIENCE);
        let status = loop {
            match child.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => return Ended::Failed("the child closed its output and did not end".to_string()),
                Err(error) => return Ended::Failed(format!("waiting for the child: {error}")),
            }
        };
        if status.success() && finished == self.last {
            Ended::Done
        } else {
            Ended::Failed(format!("the process ended during {} ({status})", self.step_name(finished)))
        }
    }
}

/// What the engine wrote about itself into its directory.
#[derive(Debug, Default)]
pub(super) struct EngineFacts {
    pub version: Option<String>,
    /// The newest OPTIONS file.
    pub options: Option<String>,
}

/// Reads the engine's log and OPTIONS file, if it has any.
pub(super) fn engine_facts(dir: &Path) -> EngineFacts {
    /// More of a log than its banner takes.
    const BANNER: u64 = 1 << 16;
    let banner = std::fs::File::open(dir.join("LOG")).ok().and_then(|file| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, BANNER), &mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    let version = banner.and_then(|text| {
        let (_, rest) = text.split_once("RocksDB version:")?;
        rest.split_whitespace().next().map(str::to_string)
    });
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp"))
        .collect();
    files.sort();
    let options = files.last().and_then(|name| std::fs::read_to_string(dir.join(name)).ok());
    EngineFacts { version, options }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_asked_by_its_files() {
        let temp = tempfile::tempdir().unwrap();
        assert!(engine_facts(temp.path()).version.is_none());
        std::fs::write(temp.path().join("LOG"), b"2026 1 RocksDB version: 8.11.4\nGit sha x\n\xff").unwrap();
        std::fs::write(temp.path().join("OPTIONS-000007"), "old").unwrap();
        std::fs::write(temp.path().join("OPTIONS-000012"), "new").unwrap();
        let facts = engine_facts(temp.path());
        assert_eq!((facts.version.as_deref(), facts.options.as_deref()), (Some("8.11.4"), Some("new")));
    }
}
