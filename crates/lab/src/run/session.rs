//! One session: a child on its own directory, sampled while it works, each step handed on when it ends.
//!
//! ```text
//! start -> turn ... turn -> end          between turns the child may be stopped
//! ```
//! Invariant: readings are taken during turns only, so what they say of the host belongs to the child at work.

use super::now;
use super::process::{Heard, Process};
use super::progress::{At, Progress};
use crate::analysis::labels;
use crate::planning::plan::{Plan, Slot};
use crate::probe::derive::{Metrics, derive, fault_fall, keep_certain, rss_max};
use crate::probe::{Reading, Sampler, joined};
use crate::run::child::{Assignment, Message, Slice};
use crate::store::{StepRecord, StoreError};
use outcrop_lab_load::StepResult;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// The parts that sessions of a run share.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub plan: &'a Plan,
    pub device: &'a str,
    pub interval: Duration,
    /// The host takes free memory back: it is asked for again before each step.
    pub keep_present: bool,
}

/// A session whose child runs.
pub(super) struct Session<'a> {
    setting: Setting<'a>,
    slot: Slot,
    /// Steps of the plan that this session does.
    steps: Range<usize>,
    /// The first of them that is not done.
    next: usize,
    process: Process,
    /// Readings during the slices of a step that are done, and how long the first was waited for.
    so_far: Option<(Vec<Reading>, f64)>,
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

/// Block of what loads data for sessions to copy; it is no session of the plan.
pub(super) const DATASET: i64 = -2;

/// Seconds without a word after which a child is taken for dead, beyond the time its step should take.
const PATIENCE: f64 = 600.0;

/// Service and response times of a step: nanoseconds and how often.
type Latencies<'l> = (&'l [(u64, u64)], &'l [(u64, u64)]);

pub(super) type Record<'r> = &'r mut dyn FnMut(&StepRecord<'_>) -> Result<(), StoreError>;

/// A child's message about a step.
enum Said {
    Measured {
        result: Box<StepResult>,
        histogram: Vec<(u64, u64)>,
        responses: Vec<(u64, u64)>,
        readings: Vec<Reading>,
        waited: f64,
    },
    NotOffered(String),
}

impl<'a> Session<'a> {
    /// Starts the child for `steps` of the plan on the database in `dir`; it waits for its first turn.
    ///
    /// # Errors
    /// How the session ended.
    pub fn start(
        setting: Setting<'a>,
        slot: Slot,
        steps: Range<usize>,
        dir: &Path,
    ) -> Result<Session<'a>, Ended> {
        let assignment = assignment(setting, slot, &steps, dir);
        let process = Process::spawn(&assignment).map_err(Ended::NotStarted)?;
        process.wait_until_ready().map_err(Ended::Failed)?;
        Ok(Session { setting, slot, next: steps.start, steps, process, so_far: None })
    }

    /// Does `slice` of the last of `steps`, which are the next ones, and before the first slice the others; hands each that is
    /// done to `record`. With `pauses` the child is continued before and stopped after that.
    ///
    /// # Errors
    /// How the session ended.
    pub fn turn(
        &mut self,
        steps: Range<usize>,
        slice: Slice,
        pauses: bool,
        progress: &mut Progress,
        record: Record<'_>,
    ) -> Result<(), Ended> {
        let last = steps.end - 1;
        if self.next > last {
            // The engine has no such step, and said so at its first slice.
            return Ok(());
        }
        if pauses {
            self.process.go_on().map_err(Ended::Failed)?;
        }
        let sampler = Sampler::start(self.setting.device, self.process.id(), self.setting.interval);
        for number in self.next..steps.end {
            let part = if number == last { slice } else { Slice::WHOLE };
            self.process.tell(number - self.steps.start, part);
            let said = self.listen(number, &sampler, progress)?;
            // Before anything else: the work of its background threads from here on counts for no step.
            if pauses && number == last {
                self.process.pause().map_err(Ended::Failed)?;
            }
            let Some(said) = said else { return Ok(()) };
            self.record(number, &said, record).map_err(Ended::Store)?;
            self.next = number + 1;
        }
        Ok(())
    }

    /// Lets the child close its database and end. `paused` says whether it is stopped.
    pub fn end(mut self, paused: bool) -> Ended {
        if paused && let Err(error) = self.process.go_on() {
            return Ended::Failed(error);
        }
        match self.process.end() {
            Ok(status) if status.success() && self.next == self.steps.end => Ended::Done,
            Ok(status) => self.died(self.next, &status.to_string()),
            Err(error) => Ended::Failed(error),
        }
    }

    /// Stops the child, which was just started.
    ///
    /// # Errors
    /// How the session ended.
    pub fn pause(&self) -> Result<(), Ended> {
        self.process.pause().map_err(Ended::Failed)
    }

    /// The child's message about step `number`, once it is done; nothing after a slice that is not its
    /// last.
    fn listen(
        &mut self,
        number: usize,
        sampler: &Sampler,
        progress: &mut Progress,
    ) -> Result<Option<Said>, Ended> {
        let mut begun: Option<(f64, Reading)> = None;
        let mut worked = None;
        let mut deadline = None;
        loop {
            // An engine that hangs is no silence: its threads are still reported on.
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(Ended::Failed(format!("{}: it did not end in time", self.step_name(number))));
            }
            let message = match self.process.hear(self.patience(number)) {
                Heard::Message(message) => message,
                Heard::Silence => {
                    let name = self.step_name(number);
                    return Err(Ended::Failed(format!("{name}: nothing happened for too long")));
                }
                Heard::Nothing => {
                    return Err(match self.process.end() {
                        Ok(status) => self.died(number, &status.to_string()),
                        Err(error) => Ended::Failed(error),
                    });
                }
            };
            match message {
                Message::Ready | Message::Alive => {}
                Message::Started { waited, .. } => {
                    deadline = self.is_timed(number).then(|| Instant::now() + self.patience(number));
                    begun = Some((waited, sampler.edge()));
                }
                Message::Progress { progress: far, .. } => {
                    let rate = far.ops as f64 / far.seconds.max(1e-9);
                    progress.show(&self.at(number, rate));
                }
                Message::NotOffered { why, .. } => return Ok(Some(Said::NotOffered(why))),
                Message::Worked { .. } => worked = Some(sampler.edge()),
                Message::Interrupted { step } => {
                    self.so_far = Some(self.read(step, number, (begun, worked), sampler)?);
                    return Ok(None);
                }
                Message::Done { step, result, histogram, responses } => {
                    let (readings, waited) = self.read(step, number, (begun, worked), sampler)?;
                    return Ok(Some(Said::Measured { result, histogram, responses, readings, waited }));
                }
                Message::Failed(error) => return Err(Ended::Failed(error)),
            }
        }
    }

    /// The readings of the slices of step `number` that are done, the one included that has just ended, and how long the first was
    /// waited for. The child says that it ended `step` of its own. The reading at the end of its work counts for all
    /// but devices, which had to take what was written.
    fn read(
        &mut self,
        step: usize,
        number: usize,
        (begun, worked): (Option<(f64, Reading)>, Option<Reading>),
        sampler: &Sampler,
    ) -> Result<(Vec<Reading>, f64), Ended> {
        let Some((waited, first)) = begun.filter(|_| step + self.steps.start == number) else {
            return Err(Ended::Failed("the child ended a step that it had not begun".to_string()));
        };
        let last = sampler.edge();
        let last = worked.map_or_else(|| last.clone(), |worked| worked.with_devices_of(&last));
        let readings = sampler.between(&first, &last);
        Ok(match self.so_far.take() {
            None => (readings, waited),
            Some((earlier, waited)) => (joined(earlier, &readings), waited),
        })
    }

    fn died(&self, step: usize, status: &str) -> Ended {
        Ended::Failed(format!("the process ended during {} ({status})", self.step_name(step)))
    }

    /// Whether time ends a step, and not what it has done.
    fn is_timed(&self, number: usize) -> bool {
        self.setting.plan.steps.get(number).is_some_and(|step| step.step.ops.is_none())
    }

    /// How long step `number` may take if it is timed, and may be silent in any case.
    fn patience(&self, number: usize) -> Duration {
        let seconds = self.setting.plan.steps.get(number).map_or(0.0, |step| step.step.seconds);
        Duration::from_secs_f64(seconds + PATIENCE)
    }

    fn step_name(&self, number: usize) -> &str {
        self.setting.plan.steps.get(number).map_or("the end", |step| step.step.name.as_str())
    }

    /// Where the run is at step `number`.
    fn at(&self, number: usize, rate: f64) -> At<'_> {
        let target = &self.setting.plan.targets[self.slot.target].name;
        let (phase, block) = match self.slot.block {
            DATASET => ("load", None),
            block if block < 0 => ("warm-up", None),
            block => ("block", Some(block + 1)),
        };
        At { phase, block, step: self.step_name(number), target, rate }
    }

    fn record(&self, number: usize, said: &Said, record: Record<'_>) -> Result<(), StoreError> {
        match said {
            Said::Measured { result, histogram, responses, readings, waited } => {
                self.measured(number, result, (histogram, responses), readings, *waited, record)
            }
            Said::NotOffered(why) => self.not_offered(number, why, record),
        }
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
        let step = &self.setting.plan.step_of(number, self.slot.target);
        let (first, last) = (&readings[0], &readings[readings.len() - 1]);
        let mut metrics = derive(step, result, first, last, waited);
        let events = |latencies: &[(u64, u64)]| latencies.iter().map(|(_, count)| count).sum::<u64>();
        keep_certain(&mut metrics, events(histogram), events(responses));
        if let Some(most) = rss_max(step, readings, result) {
            metrics.insert("rss_max".to_string(), most);
        }
        if let Some(rate) = labels::steady_rate(&result.per_second, self.setting.plan.delta) {
            metrics.insert("steady_ops_sec".to_string(), rate);
        }
        if let Some(fall) = fault_fall(readings, &result.per_second) {
            metrics.insert("fault_fall".to_string(), fall);
        }
        let labels = labels::labels(self.setting.plan.kind, self.setting.plan.delta, step, result, &metrics);
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
            name: &self.setting.plan.steps[number].step.name,
            date: &now(),
            result: &StepResult::nothing(),
            metrics: &Metrics::new(),
            labels: &[labels::not_offered(why)],
            readings: &[],
            histogram: &[],
            responses: &[],
        })
    }
}

/// The assignment for the child of `slot`.
pub(super) fn assignment(setting: Setting<'_>, slot: Slot, steps: &Range<usize>, dir: &Path) -> Assignment {
    let plan = setting.plan;
    let target = &plan.targets[slot.target];
    let seed = plan.block_seed(slot.block);
    let planned = steps.clone().map(|number| {
        let mut step = plan.step_of(number, slot.target);
        // Threads of a step take the numbers after its seed.
        step.step.seed = seed.wrapping_add(number as u64 * 1000);
        step.step.planted = target.planted;
        step
    });
    Assignment {
        source: target.source.clone(),
        preload: target.preload.clone(),
        dir: dir.to_path_buf(),
        open: target.open.clone(),
        options: target.options.clone(),
        steps: planned.collect(),
        keep_present: setting.keep_present.then(|| plan.sizes.clone()),
        run_in: plan.run_in,
        understood: Vec::new(),
    }
}
