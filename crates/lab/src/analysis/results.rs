//! The results of an experiment: every cell of step and target against a base, judged.
//!
//! ```text
//! Store -> Results (measurements that count) -> Cell (values by block, verdict) -> show, site
//! ```
//! Any target can be the base, and any metric be compared, without running anything again.

use crate::analysis::cpu::Profile;
use crate::analysis::judge::{self, Better, Question, Verdict};
use crate::analysis::labels::NOT_OFFERED;
use crate::analysis::names;
use crate::analysis::noise::{NoiseModel, TestNoise};
use crate::experiment::parse::nearest;
use crate::probe::derive::metric;
use crate::store::{ExperimentRow, SessionRow, StepRow, Store, StoreError};
use outcrop_lab_stats::explain::{Counters, Explanation};
use outcrop_lab_stats::offset::remove_session_offset;
use outcrop_lab_stats::paired::{self, Settings, log_ratios, relative};
use outcrop_lab_stats::steady::Shape;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counters of a session's process that can explain a change of throughput; those of the device that its own reads wait for.
const COSTS: [&str; 11] = [
    "proc_cpu_us/o",
    "vcs/o",
    "ivcs/o",
    "fault/o",
    "proc_rKB/o",
    "proc_wKB/o",
    AWAIT,
    "instr/o",
    "cycles/o",
    "cachemiss/o",
    "tlbmiss/o",
];

/// The wait for a read of the device, which operations have where nothing is written.
const AWAIT: &str = "read_await";

/// Where there are no more steps than these, a message about an unknown one names them all.
const FEW: usize = 8;

/// The columns in place of the first of [`COSTS`] where threads that do the counted operations are told from all others.
const THREADS: [&str; 2] = ["load_cpu_us/o", "back_cpu_us/o"];

/// The columns in place of the first of [`COSTS`] where clients and their server are counted apart.
const APART: [&str; 5] = ["server_cpu_us/o", "client_cpu_us/o", "redo_KB/o", "server_vcs/o", "server_ivcs/o"];

/// An experiment with its measurements.
pub struct Results {
    /// The experiment.
    pub experiment: ExperimentRow,
    /// Sessions that count, those thrown away included.
    pub sessions: Vec<SessionRow>,
    /// Measured steps in reports; none of a session that was thrown away.
    pub measured: Vec<StepRow>,
    /// Steps of the same sessions that are not in reports.
    pub unreported: Vec<StepRow>,
    /// Events of the run.
    pub events: Vec<(String, String)>,
    /// Options of targets as their engines wrote them.
    pub options: Vec<(usize, String)>,
    /// Sessions whose engine's log was kept, with the bytes it wrote.
    pub engine_logs: BTreeMap<i64, u64>,
    /// Names of the steps in reports, in order.
    pub steps: Vec<String>,
    /// Where processor time went, where that was sampled.
    pub profiles: Vec<Profile>,
    /// The noise of this machine that was known when the experiment began.
    pub noise: NoiseModel,
}

/// One step of one target, for one metric.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Median over blocks.
    pub median: f64,
    /// Blocks measured.
    pub blocks: usize,
    /// Against the base; absent for the base itself, or if no block has both.
    pub verdict: Option<Verdict>,
    /// Why the cell must not be compared.
    pub invalid: Option<String>,
}

impl Cell {
    /// A cell that is only its verdict.
    pub fn of(verdict: Verdict) -> Cell {
        Cell { median: verdict.ratio, blocks: verdict.pairs, verdict: Some(verdict), invalid: None }
    }
}

impl Results {
    /// Loads experiment `id`.
    pub fn load(store: &Store, id: i64) -> Result<Results, StoreError> {
        let experiment = store.experiment(id)?;
        let steps = experiment.plan.reported();
        let of_blocks = store.steps(id)?.into_iter().filter(|row| row.block >= 0);
        let (measured, unreported) = of_blocks.partition(|row| steps.contains(&row.name));
        Ok(Results {
            sessions: store.sessions(id)?,
            noise: NoiseModel::load(store, &experiment.host.facts.id, Some(&experiment.created))?,
            events: store.events(id)?,
            options: store.options(id)?,
            profiles: store.profiles(id)?,
            engine_logs: store.engine_logs(id)?,
            experiment,
            measured,
            unreported,
            steps,
        })
    }

    /// Names of the targets.
    pub fn target_names(&self) -> Vec<&str> {
        self.experiment.plan.targets.iter().map(|target| target.name.as_str()).collect()
    }

    /// Short names of the targets, the same on all pages.
    pub fn labels(&self) -> Vec<String> {
        names::short(&self.experiment.plan.targets)
    }

    /// The text above a target's column in a table of the terminal: its short name, or its number where some are too
    /// long.
    pub fn headers(&self) -> Vec<String> {
        let labels = self.labels();
        if labels.iter().all(|label| label.chars().count() <= names::COLUMN) {
            return labels;
        }
        (1..=labels.len()).map(|column| format!("col-{column}")).collect()
    }

    /// Number of a target by its name, or its short one.
    ///
    /// # Errors
    /// Names the targets there are.
    pub fn target(&self, name: &str) -> Result<usize, String> {
        let names = self.target_names();
        let short = self.labels();
        let known = names.iter().position(|known| *known == name);
        known
            .or_else(|| short.iter().position(|known| known == name))
            .ok_or_else(|| format!("there is no target {name}; there are {}", names.join(", ")))
    }

    /// A step by its name, or by the part of it before `_range=` where only one step has that.
    ///
    /// # Errors
    /// Names the nearest of the steps there are, and all of them if they are few.
    pub fn step(&self, word: &str) -> Result<&str, String> {
        find_step(&self.steps, word)
    }

    /// The measurements of a step and target, by block.
    pub fn rows(&self, step: &str, target: usize) -> impl Iterator<Item = &StepRow> {
        self.measured.iter().filter(move |row| row.target == target && row.name == step)
    }

    /// The metric's value in each block.
    pub fn values(&self, step: &str, target: usize, metric: &str) -> BTreeMap<i64, f64> {
        self.rows(step, target).filter_map(|row| Some((row.block, *row.metrics.get(metric)?))).collect()
    }

    /// Median of a metric over blocks.
    pub fn median(&self, step: &str, target: usize, metric: &str) -> Option<f64> {
        let mut values: Vec<f64> = self.values(step, target, metric).into_values().collect();
        values.sort_by(f64::total_cmp);
        crate::report::summary_line::median(&values)
    }

    /// The first reason not to compare a step of a target.
    pub fn invalid(&self, step: &str, target: usize) -> Option<String> {
        self.rows(step, target).find_map(|row| {
            let label = row.labels.iter().find(|label| label.invalid)?;
            Some(format!("block {}: {}", row.block + 1, label.text))
        })
    }

    /// Whether a step of a target may be compared with that of `base`: neither has a measurement that is not valid.
    pub fn is_comparable(&self, step: &str, target: usize, base: usize) -> bool {
        self.invalid(step, target).is_none() && self.invalid(step, base).is_none()
    }

    /// The metric's values of a step of a target and of `base` in the blocks that have both.
    pub fn pairs(&self, step: &str, target: usize, base: usize, metric: &str) -> Vec<(f64, f64)> {
        let base_values = self.values(step, base, metric);
        let values = self.values(step, target, metric).into_iter();
        let both = values.filter_map(|(block, value)| Some((value, *base_values.get(&block)?)));
        both.filter(|(value, base)| *value > 0.0 && *base > 0.0).collect()
    }

    /// The ratio of a metric between two targets, the same wherever it is shown: the geometric mean of the ratios of the blocks
    /// that both have, which is what verdicts are about. Where zeros leave no logarithm, the ratio of the means of those
    /// blocks; `None` without such blocks, of anything to nothing, and of what must not be compared.
    pub fn ratio(&self, step: &str, target: usize, base: usize, metric: &str) -> Option<f64> {
        if !self.is_comparable(step, target, base) {
            return None;
        }
        let base_values = self.values(step, base, metric);
        let values = self.values(step, target, metric).into_iter();
        let (own, theirs): (Vec<f64>, Vec<f64>) =
            values.filter_map(|(block, value)| Some((value, *base_values.get(&block)?))).unzip();
        match log_ratios(&own, &theirs) {
            Ok(logs) => Some(paired::geometric(&logs)),
            Err(_) if own.is_empty() => None,
            Err(_) => relative(own.iter().sum(), theirs.iter().sum()),
        }
    }

    /// All cells of a metric against `base`: for each step, for each target. Verdicts hold for the table as a
    /// whole: chance calls are kept to a rate over all of its cells.
    pub fn table(&self, base: usize, name: &str) -> Vec<Vec<Option<Cell>>> {
        let plan = &self.experiment.plan;
        let (mut questions, mut places) = (Vec::new(), Vec::new());
        let mut table = Vec::new();
        for (row, step) in self.steps.iter().enumerate() {
            let doubts = self.doubts(step, base);
            let mut cells = Vec::new();
            for (column, target) in plan.targets.iter().enumerate() {
                let invalid = self.invalid(step, column).or_else(|| self.invalid(step, base));
                if column != base && invalid.is_none() {
                    places.push((row, column));
                    questions.push(Question {
                        name: (step.clone(), target.name.clone()),
                        pairs: self.pairs(step, column, base, name),
                        control: self.are_twins(column, base),
                        doubt: doubts[column],
                        delta: plan.delta,
                        noise: self.noise_of(step, name, base),
                    });
                }
                let blocks = self.values(step, column, name).len();
                let median = self.median(step, column, name);
                cells.push(median.map(|median| Cell { median, blocks, verdict: None, invalid }));
            }
            table.push(cells);
        }
        let better = metric(name).map_or(Better::Higher, |row| row.better);
        let verdicts = judge::judge(name, better, &questions);
        for ((row, column), verdict) in places.into_iter().zip(verdicts) {
            if let Some(cell) = &mut table[row][column] {
                cell.verdict = verdict;
            }
        }
        table
    }

    /// The metric in which tables show a step's throughput, and its unit unless that is operations per second: of a scan
    /// published tables have thousands of rows a second, of one client.
    pub fn throughput(&self, step: &str) -> (&'static str, Option<&'static str>) {
        let planned = self.experiment.plan.steps.iter().find(|planned| planned.step.name == step);
        let scans = planned.and_then(|planned| planned.sql.as_ref()).is_some_and(|sql| sql.scans());
        if scans { ("krows_sec", Some("krows/s")) } else { ("ops_sec", None) }
    }

    /// A step's name as tables of throughput have it: with the unit, where that is not operations per second.
    pub fn with_throughput_unit(&self, step: &str) -> String {
        self.throughput(step).1.map_or(step.to_string(), |unit| format!("{step} [{unit}]"))
    }

    /// The noise of a step in this machine's history, for ratios to `base`; it is of throughput alone, and of the engine that the
    /// experiment has as its base.
    pub fn noise_of(&self, step: &str, metric: &str, base: usize) -> Option<TestNoise> {
        let plan = &self.experiment.plan;
        let planned = plan.steps.iter().find(|planned| planned.step.name == step)?;
        let is_base = base == plan.base || self.are_twins(base, plan.base);
        if metric == "ops_sec" && is_base { self.noise.of(plan, planned) } else { None }
    }

    /// The difference that all steps of a target share against `base`: throughput that a whole session gains or
    /// loses. A verdict for each target; `None` with too few steps or blocks to tell it from a change of single
    /// steps.
    pub fn offset(&self, base: usize) -> Vec<Option<Verdict>> {
        let targets = 0..self.experiment.plan.targets.len();
        let question = |target| if target == base { None } else { self.question_of_offset(target, base) };
        let questions: Vec<Option<Question>> = targets.map(question).collect();
        // All targets together: they are one row of a table.
        let asked: Vec<Question> = questions.iter().flatten().cloned().collect();
        let mut verdicts = judge::judge("offset", Better::Higher, &asked).into_iter();
        questions.iter().map(|question| question.as_ref().and_then(|_| verdicts.next().flatten())).collect()
    }

    fn question_of_offset(&self, target: usize, base: usize) -> Option<Question> {
        let compared = |step: &&String| self.is_comparable(step, target, base);
        let columns: Vec<_> = self
            .steps
            .iter()
            .filter(compared)
            .map(|step| (self.values(step, target, "ops_sec"), self.values(step, base, "ops_sec")))
            .collect();
        // A block that was broken off has not the steps that the others are compared by.
        let has_most = |block: &i64| {
            let has = |(ours, theirs): &&(BTreeMap<i64, f64>, BTreeMap<i64, f64>)| {
                ours.contains_key(block) && theirs.contains_key(block)
            };
            2 * columns.iter().filter(has).count() > columns.len()
        };
        let blocks: Vec<i64> = (0..self.blocks() as i64).filter(has_most).collect();
        let ratio = |ours: &BTreeMap<i64, f64>, theirs: &BTreeMap<i64, f64>, block: &i64| {
            let (own, base) = (ours.get(block)?, theirs.get(block)?);
            (*own > 0.0 && *base > 0.0).then(|| (own / base).ln())
        };
        let table: Vec<Vec<Option<f64>>> = columns
            .iter()
            .map(|(ours, theirs)| blocks.iter().map(|block| ratio(ours, theirs, block)).collect())
            .collect();
        let offset = remove_session_offset(&table, &Settings::default()).ok()?;
        Some(Question {
            name: ("all steps".to_string(), self.experiment.plan.targets[target].name.clone()),
            pairs: offset.blocks.iter().map(|offset| (offset.exp(), 1.0)).collect(),
            control: self.are_twins(target, base),
            doubt: None,
            delta: self.experiment.plan.delta,
            noise: None,
        })
    }

    /// Why a target does not have a step, if it does not.
    pub fn not_offered(&self, step: &str, target: usize) -> Option<&str> {
        let labels = self.rows(step, target).flat_map(|row| &row.labels);
        labels.into_iter().find(|label| label.name == NOT_OFFERED).map(|label| label.text.as_str())
    }

    /// The parts of a step's difference in throughput against `base`. `None` with fewer than two blocks that have
    /// both.
    pub fn explain(&self, step: &str, target: usize, base: usize) -> Option<Explanation> {
        let (theirs, ours) = (self.values(step, base, "ops_sec"), self.values(step, target, "ops_sec"));
        let rates: Vec<(i64, f64, f64)> = ours
            .iter()
            .filter_map(|(block, value)| Some((*block, *value, *theirs.get(block)?)))
            .filter(|(_, value, base)| *value > 0.0 && *base > 0.0)
            .collect();
        let planned = self.experiment.plan.steps.iter().find(|planned| planned.step.name == step)?;
        // A closed loop: a thread does one operation after the other.
        let time = |rate: f64| 1e9 * f64::from(planned.step.threads) / rate;
        // A cost counts if every block of both has it.
        let counters = |of: usize| -> Counters {
            let column = |name: &str| -> Option<Vec<f64>> {
                let values = self.values(step, of, name);
                rates.iter().map(|(block, ..)| values.get(block).copied()).collect()
            };
            let named = |name: &&str| Some((name.to_string(), column(name)?));
            let mut known: Counters = COSTS.iter().filter_map(&named).collect();
            if column(APART[0]).is_some() {
                known.remove(COSTS[0]);
                known.extend(APART.iter().filter_map(named));
            } else if column(THREADS[0]).is_some() {
                known.remove(COSTS[0]);
                known.extend(THREADS.iter().filter_map(named));
            } else if !planned.only_reads() {
                // A record that does not tell them apart: what of it the operations waited for cannot be known.
                known.remove(COSTS[0]);
            }
            if !planned.only_reads() {
                // Of the device's reads that have this wait most may be compaction's.
                known.remove(AWAIT);
            }
            // Of one operation that takes the step's time, seconds without one are that time again.
            let stalled = column("stalled_seconds").filter(|_| planned.step.kind.has_many_operations());
            let stalled = stalled.zip(column("ops_sec"));
            if let Some((stalled, own)) = stalled {
                // Of all threads, over what they did in the step.
                let seconds = self.rows(step, of).map(|row| (row.block, row.result.seconds));
                let seconds: BTreeMap<i64, f64> = seconds.collect();
                let each = rates.iter().zip(stalled).zip(own).map(|(((block, ..), stalled), rate)| {
                    stalled / seconds.get(block).copied().unwrap_or(1.0).max(1e-9) * time(rate) / 1e3
                });
                known.insert("stalled_us/o".to_string(), each.collect());
            }
            known
        };
        let pairs: Vec<(f64, f64)> = rates.iter().map(|(_, value, base)| (*value, *base)).collect();
        let times: (Vec<f64>, Vec<f64>) =
            rates.iter().map(|(_, value, base)| (time(*base), time(*value))).unzip();
        let (of_base, of_target) = (counters(base), counters(target));
        judge::explain(&judge::Difference {
            metric: "ops_sec",
            better: Better::Higher,
            pairs: &pairs,
            time_ns: (&times.0, &times.1),
            base: &of_base,
            target: &of_target,
            prices: &self.prices(step, base),
            only_reads: planned.only_reads(),
        })
    }

    /// The prices of reads on this machine, by the device's own latency, where the step reads at all.
    fn prices(&self, step: &str, base: usize) -> BTreeMap<String, f64> {
        /// Reads of an operation below which their latency is that of somebody else.
        const READS: f64 = 0.001;
        let of = |name: &str| self.median(step, base, name);
        let known = || {
            let reads = of("r/o").filter(|reads| *reads > READS)?;
            let nanoseconds = of("read_await")? * 1e6;
            let kilobytes = of("rKB/o")? / reads;
            Some([("proc_rKB/o".to_string(), nanoseconds / kilobytes), (AWAIT.to_string(), reads * 1e6)])
        };
        known().into_iter().flatten().filter(|(_, price)| price.is_finite()).collect()
    }

    /// For each target, why a step of it and of `base` cannot be told apart whatever the numbers, if they cannot.
    pub(crate) fn doubts(&self, step: &str, base: usize) -> Vec<Option<&'static str>> {
        let targets = 0..self.experiment.plan.targets.len();
        let planned = self.experiment.plan.steps.iter().find(|planned| planned.step.name == step);
        let Some(planned) = planned else { return targets.map(|_| None).collect() };
        // Steps of a fixed number of operations end when they end.
        let timed = planned.step.ops.is_none();
        let of_base = if timed { self.shapes(step, base) } else { Vec::new() };
        let others_of_base = self.values(step, base, "other_cpu");
        let doubt = |target: usize| {
            let shapes = timed.then(|| judge::doubt_of_shapes(&self.shapes(step, target), &of_base));
            // Where a step writes, the kernel's own threads work for the engine.
            let others = planned.only_reads().then(|| {
                let values = self.values(step, target, "other_cpu").into_iter();
                let more: Vec<f64> =
                    values.filter_map(|(block, value)| Some(value - others_of_base.get(&block)?)).collect();
                judge::differ_in_company(&more).then_some("other programs worked beside one of the two")
            });
            shapes.flatten().or(others.flatten())
        };
        targets.map(|target| if target == base { None } else { doubt(target) }).collect()
    }

    /// How each session of a step of a target went, where it was long enough to tell.
    fn shapes(&self, step: &str, target: usize) -> Vec<Shape> {
        let delta = self.experiment.plan.delta;
        self.rows(step, target)
            .filter_map(|row| Some(judge::steadiness(&row.result.per_second, delta)?.shape))
            .collect()
    }

    /// Whether two targets are one under two names.
    pub(crate) fn are_twins(&self, a: usize, b: usize) -> bool {
        let targets = &self.experiment.plan.targets;
        targets[a].twin_of == Some(b) || targets[b].twin_of == Some(a)
    }

    /// How many steps of the base against itself are called different, and of how many; `None` without a twin.
    pub fn false_calls(&self) -> Option<(usize, usize)> {
        let plan = &self.experiment.plan;
        let twin = plan.targets.iter().position(|target| target.twin_of.is_some())?;
        let table = self.table(plan.base, "ops_sec");
        let verdicts = table.iter().filter_map(|cells| cells[twin].as_ref()?.verdict);
        let called: Vec<bool> = verdicts.map(|verdict| verdict.word.is_call()).collect();
        Some((called.iter().filter(|called| **called).count(), called.len()))
    }

    /// Half width of the widest interval of throughput, as a share of its ratio. `None` if one is not known yet.
    pub fn widest_interval(&self) -> Option<f64> {
        let plan = &self.experiment.plan;
        let mut widest: f64 = 0.0;
        for verdict in
            self.table(plan.base, "ops_sec").iter().flatten().flatten().filter_map(|cell| cell.verdict)
        {
            widest = widest.max(verdict.half_width_percent()? / 100.0);
        }
        Some(widest)
    }

    /// Sessions of the plan that count and were not thrown away.
    pub fn counted_sessions(&self) -> usize {
        self.sessions.iter().filter(|session| session.block >= 0 && session.outcome == "done").count()
    }

    /// Blocks that were run, whole or in part.
    pub fn blocks(&self) -> usize {
        self.sessions.iter().map(|session| session.block + 1).max().unwrap_or(0) as usize
    }
}

fn find_step<'a>(steps: &'a [String], word: &str) -> Result<&'a str, String> {
    let names = || steps.iter().map(String::as_str);
    if let Some(name) = names().find(|name| *name == word) {
        return Ok(name);
    }
    let begins = |name: &&str| name.split_once("_range=").is_some_and(|(begin, _)| begin == word);
    match names().filter(begins).collect::<Vec<_>>()[..] {
        [name] => Ok(name),
        [] => {
            let short = names().map(|name| name.split_once("_range=").map_or(name, |(begin, _)| begin));
            let hint = match nearest(word, short) {
                Some(known) if steps.len() > FEW => format!("; did you mean \"{known}\"?"),
                _ => format!("; there are {}", steps.join(", ")),
            };
            Err(format!("there is no step {word}{hint}"))
        }
        ref several => Err(format!("there are several steps {word}: {}", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_by_the_part_before_its_range_where_that_is_one() {
        let find = |steps: &[&str], word: &str| {
            let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
            find_step(&steps, word).map(str::to_string)
        };
        let steps = ["scan_range=100", "read-write_range=10", "read-write_range=100", "load"];
        assert_eq!(find(&steps, "scan").unwrap(), "scan_range=100");
        assert_eq!(find(&steps, "read-write_range=10").unwrap(), "read-write_range=10");
        let error = find(&steps, "read-write").unwrap_err();
        assert_eq!(error, "there are several steps read-write: read-write_range=10, read-write_range=100");
        let error = find(&steps, "scam").unwrap_err();
        assert_eq!(error, format!("there is no step scam; there are {}", steps.join(", ")));
        let many = [
            "fillseq",
            "overwrite",
            "readrandom",
            "readseq",
            "fwdrange",
            "revrange",
            "stats",
            "levelstats",
            "flush",
        ];
        let error = find(&many, "readrandum").unwrap_err();
        assert_eq!(error, "there is no step readrandum; did you mean \"readrandom\"?");
        let tests: Vec<String> = (1..10).map(|range| format!("scan_range={range}")).collect();
        let error = find_step(&tests, "skan").unwrap_err();
        assert_eq!(error, "there is no step skan; did you mean \"scan\"?");
    }
}
