//! The noise of a machine in its own history: how far the base strayed from itself in earlier experiments.
//!
//! ```text
//! every session of a base and of its A/A twin, on this host, that ended before a given time
//!     -> ln(twin / base) of each block, by everything that noise depends on: see `test`
//!     -> scatter of one pair (for one pair alone, and for plans), strays of whole experiments (for margins)
//! ```
//! Invariants: the record keeps what was measured, and this is derived from it each time. An experiment is judged by what
//! ended before it began, so later runs change no report. Machines are told apart by their digest; none is not a machine.

use crate::analysis::judge;
use crate::experiment::steps::PlannedStep;
use crate::planning::plan::{ASSUMED_NOISE, Plan};
use crate::store::{Store, StoreError};
use outcrop_lab_stats::paired::KnownNoise;
use outcrop_lab_stats::power::Simulation;
use outcrop_lab_stats::summary::noise_floor;
use outcrop_lab_stats::verdict::{MIN_PAIRS, Margin};
use std::collections::BTreeMap;

/// Pairs below which history says nothing.
const LEAST_PAIRS: usize = 10;
/// Whole experiments below which it says nothing of margins: of fewer none is the one in twenty.
const LEAST_EXPERIMENTS: usize = 20;

/// Everything that noise depends on, as text: two tests are one if nothing but the seed differs.
type Test = String;

/// Noise of a machine, by test.
#[derive(Clone, Debug, Default)]
pub struct NoiseModel {
    /// For each test, for each experiment, ln(twin / base) of its blocks.
    tests: BTreeMap<Test, Vec<Vec<f64>>>,
}

/// Noise of one test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestNoise {
    /// Scatter of one pair of equals, and of how many pairs that is known.
    pub known: KnownNoise,
    /// Experiments they come from.
    pub experiments: usize,
    /// Those of them that were whole enough for a verdict.
    pub whole: usize,
    /// The most that whole experiments strayed in 19 of 20 cases, a log ratio; `None` with too few of them.
    pub stray: Option<f64>,
}

impl TestNoise {
    /// The limits of small and large where `asked` was asked for: a call must exceed a difference that equals seldom
    /// reach.
    pub fn margin(&self, asked: f64) -> Margin {
        Margin::with_history(asked, self.stray)
    }
}

/// The differences that a plan can see on one of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// Name of the step.
    pub step: String,
    /// Scatter of a pair.
    pub log_sd: f64,
    /// Smallest slowdown that the rule of the verdict calls with probability 0.8, as a share; `None` if there is none.
    pub change: Option<f64>,
    /// Pairs that the scatter is known from; `None`: it is assumed.
    pub pairs: Option<usize>,
}

impl NoiseModel {
    /// The noise in the sessions on `host` that ended before `before`, or in all of them.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn load(store: &Store, host: &str, before: Option<&str>) -> Result<NoiseModel, StoreError> {
        let mut tests = BTreeMap::<Test, Vec<Vec<f64>>>::new();
        if host.is_empty() {
            return Ok(NoiseModel::default());
        }
        for id in store.experiments()? {
            let experiment = store.experiment(id)?;
            let plan = &experiment.plan;
            let twin =
                plan.targets.iter().enumerate().find_map(|(index, target)| Some((index, target.twin_of?)));
            let Some((twin, base)) = twin.filter(|_| experiment.host.facts.id == host) else { continue };
            let rates = store.rates(id, before)?;
            for step in plan.steps.iter().filter(|step| step.report) {
                let of =
                    |target: usize, block: i64| rates.get(&(step.step.name.clone(), target, block)).copied();
                let pair = |block: i64| Some((of(twin, block)? / of(base, block)?).ln());
                let logs: Vec<f64> = (0..plan.blocks.len() as i64).filter_map(pair).collect();
                if !logs.is_empty() {
                    tests.entry(test(plan, step)).or_default().push(logs);
                }
            }
        }
        Ok(NoiseModel { tests })
    }

    /// Noise of a step of `plan`, if it is known well enough.
    pub fn of(&self, plan: &Plan, step: &PlannedStep) -> Option<TestNoise> {
        let experiments = self.tests.get(&test(plan, step))?;
        let all: Vec<f64> = experiments.iter().flatten().copied().collect();
        if all.len() < LEAST_PAIRS {
            return None;
        }
        // Around 0, which is where equals are: the stray of a whole experiment is noise as well.
        let log_sd = (all.iter().map(|log| log * log).sum::<f64>() / all.len() as f64).sqrt();
        let whole = experiments.iter().filter(|logs| logs.len() >= MIN_PAIRS);
        let strays: Vec<f64> = whole.map(|logs| logs.iter().sum::<f64>() / logs.len() as f64).collect();
        let floor = noise_floor(&strays, 0.05).ok().filter(|floor| floor.count >= LEAST_EXPERIMENTS);
        (log_sd > 0.0).then(|| TestNoise {
            known: KnownNoise { log_sd, count: all.len() },
            experiments: experiments.len(),
            whole: strays.len(),
            stray: floor.map(|floor| floor.p95),
        })
    }

    /// The differences that `plan` can see on each of its reported steps with `pairs` pairs; empty with
    /// fewer than two.
    pub fn sights(&self, plan: &Plan, pairs: usize) -> Vec<Sight> {
        let reported = plan.reported();
        let steps: Vec<_> = plan.steps.iter().filter(|step| reported.contains(&step.step.name)).collect();
        let cells = steps.len() * (plan.targets.len() - 1);
        // Worlds depend on the margin alone, and most steps have the one that was asked for.
        let mut simulations = BTreeMap::<u64, Option<Simulation>>::new();
        let mut seen = BTreeMap::<(u64, u64), Option<f64>>::new();
        let mut sights = Vec::new();
        for step in steps {
            let noise = self.of(plan, step);
            let margin = noise.map_or(plan.delta.into(), |noise| noise.margin(plan.delta));
            let log_sd = noise.map_or(ASSUMED_NOISE, |noise| noise.known.log_sd);
            let simulation = simulations
                .entry(margin.call.to_bits())
                .or_insert_with(|| judge::sight(pairs, cells, margin));
            let Some(simulation) = simulation else { continue };
            let change = *seen
                .entry((margin.call.to_bits(), log_sd.to_bits()))
                .or_insert_with(|| simulation.smallest_detectable(log_sd, 0.8).ok().flatten());
            let pairs = noise.map(|noise| noise.known.count);
            sights.push(Sight { step: step.step.name.clone(), log_sd, change, pairs });
        }
        sights
    }
}

/// The test that `step` of `plan` is: the step with its keys, sizes, seconds and threads, the data it works on, the base's
/// engine, configuration and allocator, and the order in which targets take turns. Short runs of small data scatter
/// more than long ones of large data, and must not speak for them.
fn test(plan: &Plan, step: &PlannedStep) -> Test {
    let base = &plan.targets[plan.base];
    let mut step = step.clone();
    step.step.seed = 0;
    let engine = (&base.engine, &base.version, &base.sha256, &base.allocator);
    let configuration = (&base.open, &base.options, base.planted.to_bits());
    let order = (plan.order, plan.run_in.to_bits(), plan.slice_seconds.to_bits(), plan.data, plan.balanced);
    let before: Vec<&str> = plan
        .steps
        .iter()
        .map(|other| other.step.name.as_str())
        .take_while(|name| *name != step.step.name)
        .collect();
    let all = (plan.kind, &plan.sizes, &step, before, engine, configuration, order);
    serde_json::to_string(&all).expect("plain data serialises")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::results::Results;
    use crate::testing::{Noise, fake_record_on};

    const STEPS: [&str; 2] = ["fillseq", "readrandom"];

    /// A record of `experiments` experiments on host "one" whose twins scatter by `deviation` in each session.
    fn history(experiments: usize, deviation: f64) -> (tempfile::TempDir, Store) {
        let mut noise = Noise::new(5);
        let temp = tempfile::tempdir().unwrap();
        let mut store = Store::open(&temp.path().join("lab.sqlite")).unwrap();
        for _ in 0..experiments {
            fake_record_on(&mut store, "one", 5, &STEPS, 3, &mut |_| {
                vec![("ops_sec", noise.around(1000.0, deviation))]
            });
        }
        (temp, store)
    }

    #[test]
    fn scatter_and_strays_of_twins_are_learnt_from_earlier_experiments_on_the_same_machine() {
        let (_temp, store) = history(21, 0.01);
        let plan = store.experiment(1).unwrap().plan;
        let model = NoiseModel::load(&store, "one", None).unwrap();
        let known = model.of(&plan, &plan.steps[1]).unwrap();
        assert_eq!((known.known.count, known.experiments), (105, 21));
        // Two sessions of 1 % each.
        assert!((known.known.log_sd - 0.0141).abs() < 0.004, "{known:?}");
        let stray = known.stray.unwrap();
        assert!(stray > 0.001 && stray < 0.014, "a mean of five pairs strays less than one: {stray}");
        assert!(
            known.margin(0.02).call == 0.02 && (known.margin(0.0001).call - stray).abs() < 1e-4,
            "{known:?}"
        );
        assert_eq!(known.margin(0.0001).asked, 0.0001);
        for host in ["two", ""] {
            assert!(NoiseModel::load(&store, host, None).unwrap().of(&plan, &plan.steps[1]).is_none());
        }
        let before = NoiseModel::load(&store, "one", Some("2025-01-01T00:00:00Z")).unwrap();
        assert!(before.of(&plan, &plan.steps[1]).is_none(), "what ended later does not count");
    }

    #[test]
    fn only_what_is_equal_in_all_that_matters_speaks_for_a_step() {
        let (_temp, store) = history(21, 0.2);
        let plan = store.experiment(1).unwrap().plan;
        let model = NoiseModel::load(&store, "one", None).unwrap();
        assert!(model.of(&plan, &plan.steps[1]).unwrap().stray.is_some());
        let mut reseeded = plan.clone();
        reseeded.seed += 1;
        reseeded.steps[1].step.seed += 1;
        assert!(model.of(&reseeded, &reseeded.steps[1]).is_some(), "a seed changes no noise");
        type Change = (&'static str, fn(&mut Plan));
        let changes: [Change; 9] = [
            ("keys", |plan| plan.sizes.keys *= 40_000),
            ("seconds", |plan| plan.steps[1].step.seconds += 300.0),
            ("threads", |plan| plan.steps[1].step.threads += 1),
            ("cache", |plan| plan.targets[plan.base].open.cache_size *= 2),
            ("engine", |plan| plan.targets[plan.base].engine = "rocksdb".to_string()),
            ("version", |plan| plan.targets[plan.base].version = Some("11.8.1".to_string())),
            ("options", |plan| plan.targets[plan.base].options = "max_open_files=3".to_string()),
            ("order", |plan| plan.order = crate::experiment::Order::Sessions),
            ("steps before", |plan| plan.steps[0].step.name = "fillrandom".to_string()),
        ];
        for (what, change) in changes {
            let mut other = plan.clone();
            change(&mut other);
            assert!(model.of(&other, &other.steps[1]).is_none(), "another {what} is another test");
        }
    }

    #[test]
    fn a_plan_is_told_what_it_can_see_from_history_or_by_assumption() {
        let (_temp, store) = history(2, 0.004);
        let plan = store.experiment(1).unwrap().plan;
        let assumed = NoiseModel::default().sights(&plan, 6);
        assert!(assumed.iter().all(|sight| sight.pairs.is_none() && sight.log_sd == ASSUMED_NOISE));
        let known = NoiseModel::load(&store, "one", None).unwrap().sights(&plan, 6);
        assert_eq!(known.iter().map(|sight| sight.step.as_str()).collect::<Vec<_>>(), STEPS);
        assert!(
            known.iter().all(|sight| sight.pairs == Some(10) && sight.change < assumed[0].change),
            "{known:?}"
        );
        assert!(NoiseModel::default().sights(&plan, 1).is_empty());
        let single = history(1, 0.004).1;
        let model = NoiseModel::load(&single, "one", None).unwrap();
        assert!(model.of(&plan, &plan.steps[1]).is_none(), "five pairs are too few");
    }

    #[test]
    fn pages_and_terminal_say_what_is_known_and_where_margins_are_wider() {
        let (temp, store) = history(21, 0.2);
        let page = |id: i64| {
            let site = temp.path().join(id.to_string());
            crate::report::site::write(&store, id, &site, crate::report::site::Form::Full).unwrap();
            std::fs::read_to_string(site.join("host.html")).unwrap()
        };
        assert!(page(1).contains("Not known: no experiment") && page(21).contains("<td>100</td><td>20</td>"));
        let text = |id: i64| crate::report::show::compare(&Results::load(&store, id).unwrap(), 0, "ops_sec");
        assert!(
            !text(20).contains("must exceed") && text(21).contains("readrandom: a change must exceed"),
            "{}",
            text(21)
        );
        assert!(text(21).lines().all(|line| line.chars().count() <= 80), "{}", text(21));
        let results = Results::load(&store, 21).unwrap();
        let plan = crate::report::show::plan(&results.experiment.plan, &results.noise);
        assert!(plan.contains("pairs of equals scattered"), "{plan}");
        let unknown = crate::report::show::plan(&results.experiment.plan, &NoiseModel::default());
        assert!(unknown.contains("if pairs scatter by 1.5 %"), "{unknown}");
    }

    #[test]
    fn of_experiments_those_that_were_whole_are_told_to_have_strayed() {
        let (_temp, mut store) = history(21, 0.2);
        let mut noise = Noise::new(6);
        for rounds in [1, 1, 1, 5] {
            fake_record_on(&mut store, "one", rounds, &STEPS, 3, &mut |_| {
                vec![("ops_sec", noise.around(1000.0, 0.2))]
            });
        }
        let results = Results::load(&store, 25).unwrap();
        let known = results.noise_of("readrandom", "ops_sec", 0).unwrap();
        assert_eq!((known.experiments, known.whole), (24, 21));
        let text = crate::report::show::compare(&results, 0, "ops_sec");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("of 21 earlier experiments here one in twenty strayed as far"), "{text}");
    }

    #[test]
    fn history_of_the_base_says_nothing_of_other_pairs() {
        let (_temp, store) = history(21, 0.2);
        let results = Results::load(&store, 21).unwrap();
        // The base of the plan, and the base again.
        let known = |base: usize| results.noise_of("readrandom", "ops_sec", base).is_some();
        assert_eq!([known(0), known(1), known(2)], [true, false, true]);
        let text = crate::report::show::compare(&results, 1, "ops_sec");
        assert!(!text.contains("must exceed"), "{text}");
        // One pair of one experiment: judged against the base, and not against another target.
        let mut single = Results::load(&store, 21).unwrap();
        single.measured.retain(|row| row.block == 0);
        let has_interval = |base: usize, target: usize| {
            single.table(base, "ops_sec")[1][target].as_ref().unwrap().verdict.unwrap().low.is_some()
        };
        assert_eq!((has_interval(0, 1), has_interval(1, 0)), (true, false));
    }

    #[test]
    fn an_experiment_is_judged_by_what_ended_before_it_began() {
        let (_temp, store) = history(7, 0.01);
        let noise = |id| Results::load(&store, id).unwrap().noise_of("readrandom", "ops_sec", 0);
        assert_eq!(noise(1), None);
        let last = noise(7).unwrap();
        assert_eq!(
            (last.experiments, last.known.count, last.stray),
            (6, 30, None),
            "too few experiments for a margin"
        );
        assert_eq!(Results::load(&store, 7).unwrap().noise_of("readrandom", "p99", 0), None);
    }
}
