//! What an experiment says: every cell of step and target against a base, judged.
//!
//! ```text
//! Store -> Results (measurements that count) -> Cell (values by block, verdict) -> show, site
//! ```
//! Any target can be the base, and any metric be compared, without running anything again.

use crate::analysis::cpu::Profile;
use crate::analysis::judge::{self, Better, Question, Verdict};
use crate::analysis::labels::NOT_OFFERED;
use crate::analysis::noise::{NoiseModel, TestNoise};
use crate::probe::derive::metric;
use crate::store::{ExperimentRow, SessionRow, StepRow, Store, StoreError};
use outcrop_lab_stats::explain::{Counters, Explanation};
use outcrop_lab_stats::offset::remove_session_offset;
use outcrop_lab_stats::paired::Settings;
use serde::Serialize;
use std::collections::BTreeMap;

/// Costs that can explain a change of throughput.
const COSTS: [&str; 13] = [
    "cpu_us/o",
    "cs/o",
    "vcs/o",
    "ivcs/o",
    "r/o",
    "rKB/o",
    "w/o",
    "wKB/o",
    "flush/o",
    "fault/o",
    "read_await",
    "write_await",
    "stalled_seconds",
];

/// An experiment with its measurements.
pub struct Results {
    /// The experiment.
    pub experiment: ExperimentRow,
    /// Sessions that count, those thrown away included.
    pub sessions: Vec<SessionRow>,
    /// Measured steps in reports; none of a session that was thrown away.
    pub measured: Vec<StepRow>,
    /// What happened.
    pub events: Vec<(String, String)>,
    /// Options of targets as their engines wrote them.
    pub options: Vec<(usize, String)>,
    /// Sessions whose engine's log was kept, with the bytes it wrote.
    pub engine_logs: BTreeMap<i64, u64>,
    /// Names of the steps in reports, in order.
    pub steps: Vec<String>,
    /// Where processor time went, where that was sampled.
    pub profiles: Vec<Profile>,
    /// What was known of this machine's noise when the experiment began.
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
        let mut measured = store.steps(id)?;
        measured.retain(|row| row.block >= 0 && steps.contains(&row.name));
        Ok(Results {
            sessions: store.sessions(id)?,
            noise: NoiseModel::load(store, &experiment.host.facts.id, Some(&experiment.created))?,
            events: store.events(id)?,
            options: store.options(id)?,
            profiles: store.profiles(id)?,
            engine_logs: store.engine_logs(id)?,
            experiment,
            measured,
            steps,
        })
    }

    /// Names of the targets.
    pub fn target_names(&self) -> Vec<&str> {
        self.experiment.plan.targets.iter().map(|target| target.name.as_str()).collect()
    }

    /// Number of a target by name.
    ///
    /// # Errors
    /// Names the targets there are.
    pub fn target(&self, name: &str) -> Result<usize, String> {
        let names = self.target_names();
        names
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| format!("there is no target {name}; there are {}", names.join(", ")))
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

    /// The metric's values of a step of a target and of `base` in the blocks that have both.
    pub fn pairs(&self, step: &str, target: usize, base: usize, metric: &str) -> Vec<(f64, f64)> {
        let base_values = self.values(step, base, metric);
        let values = self.values(step, target, metric).into_iter();
        let both = values.filter_map(|(block, value)| Some((value, *base_values.get(&block)?)));
        both.filter(|(value, base)| *value > 0.0 && *base > 0.0).collect()
    }

    /// All cells of a metric against `base`: for each step, for each target. Verdicts hold for the table as a
    /// whole: chance calls are kept to a rate over all of its cells.
    pub fn table(&self, base: usize, name: &str) -> Vec<Vec<Option<Cell>>> {
        let plan = &self.experiment.plan;
        let (mut questions, mut places) = (Vec::new(), Vec::new());
        let mut table = Vec::new();
        for (row, step) in self.steps.iter().enumerate() {
            let mut cells = Vec::new();
            for (column, target) in plan.targets.iter().enumerate() {
                let invalid = self.invalid(step, column).or_else(|| self.invalid(step, base));
                if column != base && invalid.is_none() {
                    places.push((row, column));
                    questions.push(Question {
                        name: (step.clone(), target.name.clone()),
                        pairs: self.pairs(step, column, base, name),
                        control: self.are_twins(column, base),
                        steady: self.is_steady(step, column) && self.is_steady(step, base),
                        noise: self.noise_of(step, name),
                    });
                }
                let blocks = self.values(step, column, name).len();
                let median = self.median(step, column, name);
                cells.push(median.map(|median| Cell { median, blocks, verdict: None, invalid }));
            }
            table.push(cells);
        }
        let better = metric(name).map_or(Better::Higher, |row| row.better);
        let verdicts = judge::judge(name, better, plan.delta, &questions);
        for ((row, column), verdict) in places.into_iter().zip(verdicts) {
            if let Some(cell) = &mut table[row][column] {
                cell.verdict = verdict;
            }
        }
        table
    }

    /// What this machine's history says of a step; it is of throughput alone.
    pub fn noise_of(&self, step: &str, metric: &str) -> Option<TestNoise> {
        let planned = self.experiment.plan.steps.iter().find(|planned| planned.step.name == step)?;
        if metric == "ops_sec" { self.noise.of(&self.experiment.plan, planned) } else { None }
    }

    /// What all steps of a target have in common against `base`: throughput that a whole session gains or loses. A
    /// verdict for each target; `None` with too few steps or blocks to tell it from a change of single steps.
    pub fn offset(&self, base: usize) -> Vec<Option<Verdict>> {
        let targets = 0..self.experiment.plan.targets.len();
        targets.map(|target| if target == base { None } else { self.offset_of(target, base) }).collect()
    }

    fn offset_of(&self, target: usize, base: usize) -> Option<Verdict> {
        let compared =
            |step: &&String| self.invalid(step, target).is_none() && self.invalid(step, base).is_none();
        let columns: Vec<_> = self
            .steps
            .iter()
            .filter(compared)
            .map(|step| (self.values(step, target, "ops_sec"), self.values(step, base, "ops_sec")))
            .collect();
        let blocks: Vec<i64> = (0..self.blocks() as i64)
            .filter(|block| {
                columns.iter().any(|(ours, theirs)| ours.contains_key(block) && theirs.contains_key(block))
            })
            .collect();
        let ratio = |ours: &BTreeMap<i64, f64>, theirs: &BTreeMap<i64, f64>, block: &i64| {
            let (own, base) = (ours.get(block)?, theirs.get(block)?);
            (*own > 0.0 && *base > 0.0).then(|| (own / base).ln())
        };
        let table: Vec<Vec<Option<f64>>> = columns
            .iter()
            .map(|(ours, theirs)| blocks.iter().map(|block| ratio(ours, theirs, block)).collect())
            .collect();
        let offset = remove_session_offset(&table, &Settings::default()).ok()?;
        let question = Question {
            name: ("all steps".to_string(), self.experiment.plan.targets[target].name.clone()),
            pairs: offset.blocks.iter().map(|offset| (offset.exp(), 1.0)).collect(),
            control: self.are_twins(target, base),
            steady: true,
            noise: None,
        };
        judge::judge("offset", Better::Higher, self.experiment.plan.delta, &[question]).remove(0)
    }

    /// Why a target does not have a step, if it does not.
    pub fn not_offered(&self, step: &str, target: usize) -> Option<&str> {
        let labels = self.rows(step, target).flat_map(|row| &row.labels);
        labels.into_iter().find(|label| label.name == NOT_OFFERED).map(|label| label.text.as_str())
    }

    /// Which costs per operation moved with a step's throughput against `base`. `None` with fewer than two blocks
    /// that have both.
    pub fn explain(&self, step: &str, target: usize, base: usize) -> Option<Explanation> {
        let (theirs, ours) = (self.values(step, base, "ops_sec"), self.values(step, target, "ops_sec"));
        let blocks: Vec<i64> = ours.keys().filter(|block| theirs.contains_key(block)).copied().collect();
        // A cost counts if every block of both has it.
        let counters = |of: usize| -> Counters {
            let known = COSTS.iter().filter_map(|name| {
                let values = self.values(step, of, name);
                let column: Option<Vec<f64>> =
                    blocks.iter().map(|block| values.get(block).copied()).collect();
                Some((name.to_string(), column?))
            });
            known.collect()
        };
        let pairs = self.pairs(step, target, base, "ops_sec");
        judge::explain("ops_sec", Better::Higher, &pairs, &counters(base), &counters(target))
    }

    /// Whether all sessions of a step of a target went alike and came to rest, as far as can be told. Steps of a
    /// fixed number of operations end when they end.
    fn is_steady(&self, step: &str, target: usize) -> bool {
        let plan = &self.experiment.plan;
        let timed = plan.steps.iter().any(|planned| planned.step.name == *step && planned.step.ops.is_none());
        let shapes: Vec<_> = self
            .rows(step, target)
            .filter_map(|row| Some(judge::steadiness(&row.result.per_second, plan.delta)?.shape))
            .collect();
        !timed || judge::allows_verdict(&shapes)
    }

    /// Whether two targets are one under two names.
    fn are_twins(&self, a: usize, b: usize) -> bool {
        let targets = &self.experiment.plan.targets;
        targets[a].twin_of == Some(b) || targets[b].twin_of == Some(a)
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
