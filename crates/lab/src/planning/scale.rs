//! Experiments made smaller, or larger, than their files say: to fit a time, or by plain numbers.
//!
//! ```text
//! --budget 10m   seconds first, then keys, then rounds; never fewer than 5 rounds, below which nothing is decided, even if those
//!                take half as long again as was thought
//! --keys --seconds --rounds   exactly that, and with --budget: what must not be changed
//! ```
//! The changes are part of the plan, and so of every report: numbers of a scaled run never pass for the file's.
//! Invariant: scaling looks at the file and the machine only, never at results.
//! Next: `plan.rs`, whose estimate is what a budget is held against.

use crate::experiment::Experiment;
use crate::experiment::compaction::open_options;
use crate::planning::order;
use crate::planning::plan::{Plan, block_orders, steps_on};
use crate::report::text::{duration, thousands};
use serde::{Deserialize, Serialize};

/// Flags that change an experiment's size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Scale {
    /// Make it fit this time, such as 90s, 10m or 2h: fewer seconds a step, fewer keys, fewer rounds; marked in reports.
    #[arg(long, value_name = "TIME", value_parser = seconds_of)]
    pub budget: Option<u64>,
    /// Keys to load, instead of the file's.
    #[arg(long)]
    pub keys: Option<u64>,
    /// Seconds of each timed step, instead of the file's.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Blocks, instead of the file's rounds and max_rounds.
    #[arg(long)]
    pub rounds: Option<usize>,
}

/// The changes against the file, for reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// Seconds the run was to fit, if that was asked for.
    pub budget_seconds: Option<u64>,
    /// Each change in words, such as `seconds of a step 30 -> 2.5`.
    pub changes: Vec<String>,
    /// The flags that asked for it; none in records that do not say.
    #[serde(default)]
    pub asked: Scale,
}

impl Scaled {
    /// One sentence for people.
    pub fn sentence(&self) -> String {
        let to = self.budget_seconds.map_or(String::new(), |s| format!(" to fit {}", duration(s as f64)));
        // More blocks, or fewer, are no other size.
        if self.changes.iter().all(|change| change.starts_with(MOST)) {
            let but = self.changes.first().map_or(String::new(), |change| format!(" but for {change}"));
            return format!("run as the file says{but}; it ends after {}", to.trim_start_matches(" to fit "));
        }
        format!("scaled{to}: {}; results hold for this size only", self.changes.join(", "))
    }
}

/// The name of a change of the number of blocks that there may be.
const MOST: &str = "blocks at most";

/// Rounds below which no cell is ever decided.
const LEAST_ROUNDS: usize = outcrop_lab_stats::verdict::MIN_PAIRS;

/// The reductions, in order: the first row whose seconds and keys can be kept within the budget is taken.
const LADDER: [(f64, u64); 6] =
    [(10.0, u64::MAX), (4.0, 1_000_000), (2.0, 400_000), (1.0, 100_000), (0.5, 25_000), (0.2, 5_000)];

/// A time such as `90s`, `10m` or `2h`; a bare number is seconds.
///
/// # Errors
/// A sentence with the forms there are.
pub fn seconds_of(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.trim().char_indices().last() {
        Some((at, 's')) => (&text.trim()[..at], 1),
        Some((at, 'm')) => (&text.trim()[..at], 60),
        Some((at, 'h')) => (&text.trim()[..at], 3600),
        _ => (text.trim(), 1),
    };
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "use a time such as 90s, 10m or 2h".to_string())
}

impl Scale {
    /// Whether anything is to be changed.
    pub fn is_none(&self) -> bool {
        self.budget.is_none() && self.keys.is_none() && self.seconds.is_none() && self.rounds.is_none()
    }

    /// As it is written on a command line; empty for nothing.
    pub fn flags(&self) -> String {
        let flag = |name: &str, value: Option<String>| value.map(|value| format!("--{name} {value}"));
        let all = [
            flag("budget", self.budget.map(|seconds| format!("{seconds}s"))),
            flag("keys", self.keys.map(|keys| keys.to_string())),
            flag("seconds", self.seconds.map(|seconds| seconds.to_string())),
            flag("rounds", self.rounds.map(|rounds| rounds.to_string())),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Whether a run that was begun as `plan` can go on under these flags: none, or the same.
    ///
    /// # Errors
    /// A sentence with the flags it was begun with.
    pub fn check_resumed(&self, plan: &Plan) -> Result<(), String> {
        let begun = plan.scaled.as_ref().map(|scaled| &scaled.asked);
        if self.is_none() || begun == Some(self) {
            return Ok(());
        }
        let begun = begun.map_or(String::new(), Scale::flags);
        let begun = if begun.is_empty() { "without such flags".to_string() } else { format!("with {begun}") };
        Err(format!(
            "--resume goes on with the plan as it was begun, {begun}: {} would be another; leave the flags out, or \
             give the same",
            self.flags()
        ))
    }

    /// `experiment` with the plain numbers in place of the file's.
    ///
    /// # Errors
    /// A sentence that names the flag.
    pub fn apply(&self, experiment: &Experiment) -> Result<Experiment, String> {
        let mut scaled = experiment.clone();
        if self.keys == Some(0) || self.rounds == Some(0) {
            return Err("--keys and --rounds must be above zero".to_string());
        }
        if self.seconds.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
            return Err("--seconds must be above zero".to_string());
        }
        if self.rounds.is_some_and(|rounds| rounds > outcrop_lab_stats::rank::MAX_EXACT) {
            return Err(format!("--rounds: at most {} can be judged", outcrop_lab_stats::rank::MAX_EXACT));
        }
        if let Some(keys) = self.keys {
            set_keys(&mut scaled, keys);
        }
        if let Some(seconds) = self.seconds {
            set_seconds(&mut scaled, seconds);
        }
        if let Some(rounds) = self.rounds {
            scaled.design.rounds = rounds;
            scaled.design.max_rounds = None;
        }
        Ok(scaled)
    }

    /// Makes `plan`, which is that of `experiment` after [`Scale::apply`], fit the budget, and notes what differs from
    /// `file`, the experiment as it was read.
    ///
    /// # Errors
    /// A sentence with the time that is needed, if the budget is too small for anything.
    pub fn fit(
        &self,
        plan: &mut Plan,
        experiment: &Experiment,
        file: &Experiment,
        machine: Machine,
    ) -> Result<(), String> {
        if self.is_none() {
            return Ok(());
        }
        let mut original = plan.clone();
        resize(&mut original, file, machine);
        order::fit_keys(&mut original, file, machine);
        if let Some(budget) = self.budget {
            self.shrink(plan, experiment, budget as f64, machine).map_err(|least| {
                format!(
                    "{} targets do not fit {}: the least is about {}; leave targets or steps out",
                    plan.targets.len(),
                    duration(budget as f64),
                    duration(least)
                )
            })?;
            plan.budget_seconds = Some(budget);
            // Time that is left goes into further blocks: what decides more cells than longer steps would.
            let most = (plan.rounds * 2).clamp(plan.blocks.len(), outcrop_lab_stats::rank::MAX_EXACT);
            if self.rounds.is_none() {
                plan.blocks = block_orders(plan.targets.len(), most, plan.seed);
            }
        }
        plan.scaled = Some(Scaled {
            budget_seconds: self.budget,
            changes: changes(plan, file, &original),
            asked: self.clone(),
        });
        Ok(())
    }

    /// Takes the largest sizes whose estimate is within `budget` seconds.
    ///
    /// # Errors
    /// Seconds of the smallest plan there is.
    fn shrink(
        &self,
        plan: &mut Plan,
        experiment: &Experiment,
        budget: f64,
        machine: Machine,
    ) -> Result<(), f64> {
        let (keys, seconds) = (plan.sizes.keys, plan.sizes.seconds);
        let mut least = f64::INFINITY;
        let with = |rounds: usize, keys: u64, seconds: f64| {
            let mut smaller = experiment.clone();
            set_keys(&mut smaller, keys);
            set_seconds(&mut smaller, seconds);
            let mut planned = plan.clone();
            planned.rounds = rounds;
            resize(&mut planned, &smaller, machine);
            // Its time is that of the order it will have: by sessions there are more rests. An order that was asked for and
            // cannot be had is refused when all sizes are known.
            let _ = order::decide_order(&mut planned, experiment);
            planned
        };
        let fewer = [plan.rounds, LEAST_ROUNDS.min(plan.rounds)];
        let rounds = |row: usize| if self.rounds.is_some() || row < 2 { fewer[0] } else { fewer[1] };
        for (row, (least_seconds, least_keys)) in LADDER.into_iter().enumerate() {
            let least_seconds = if self.seconds.is_some() { seconds } else { least_seconds.min(seconds) };
            let least_keys = if self.keys.is_some() { keys } else { least_keys.min(keys) };
            let mut fewer_keys = keys;
            loop {
                let smallest = with(rounds(row), fewer_keys, least_seconds).estimate().seconds;
                least = least.min(smallest);
                if smallest <= budget {
                    // The estimate is linear in the seconds of a step, but for the pauses between slices.
                    let slope =
                        with(rounds(row), fewer_keys, least_seconds + 1.0).estimate().seconds - smallest;
                    let longest = least_seconds + (budget - smallest) / slope.max(1e-9);
                    let mut tenths = (longest.min(seconds) * 10.0).floor();
                    let chosen = |tenths: f64| (tenths / 10.0).clamp(least_seconds, seconds);
                    let fits = |seconds| with(rounds(row), fewer_keys, seconds).estimate().seconds <= budget;
                    while chosen(tenths) > least_seconds && !fits(chosen(tenths)) {
                        tenths -= 1.0;
                    }
                    *plan = with(rounds(row), fewer_keys, chosen(tenths));
                    let kept = plan.rounds;
                    plan.blocks.truncate(kept.max(1));
                    return Ok(());
                }
                if fewer_keys / 2 < least_keys {
                    break;
                }
                fewer_keys /= 2;
            }
        }
        Err(least)
    }
}

/// The machine that sizes depend on.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes of memory.
    pub memory: u64,
    /// Processors.
    pub cores: usize,
}

fn set_keys(experiment: &mut Experiment, keys: u64) {
    experiment.workload.keys = Some(keys);
    // A step must not look for keys that are no longer loaded.
    let fit = |num: &mut Option<u64>| *num = num.map(|num| num.min(keys));
    experiment
        .step
        .values_mut()
        .for_each(|step| [&mut step.num, &mut step.writer_num].into_iter().for_each(fit));
}

/// Steps with seconds of their own keep their share.
fn set_seconds(experiment: &mut Experiment, seconds: f64) {
    let share = seconds / experiment.workload.seconds;
    experiment.say_own_seconds();
    experiment.workload.seconds = seconds;
    experiment.step.values_mut().for_each(|step| step.seconds = step.seconds.map(|own| own * share));
}

/// Gives `plan` the sizes of `experiment`.
fn resize(plan: &mut Plan, experiment: &Experiment, machine: Machine) {
    let sizes = experiment.sizes(machine.memory, machine.cores);
    plan.steps = steps_on(experiment, &sizes, machine.cores);
    let none = crate::experiment::Config::default();
    for target in &mut plan.targets {
        let config = experiment.config.get(&target.config).unwrap_or(&none);
        target.open = open_options(plan.kind, &sizes, config);
    }
    plan.sizes = sizes;
}

/// Gives `plan`, which is that of `experiment`, another number of keys.
pub(crate) fn set_keys_of(plan: &mut Plan, experiment: &Experiment, keys: u64, machine: Machine) {
    let mut other = experiment.clone();
    set_keys(&mut other, keys);
    resize(plan, &other, machine);
}

fn changes(plan: &Plan, file: &Experiment, original: &Plan) -> Vec<String> {
    let mut changes = Vec::new();
    let mut note = |name: &str, from: String, to: String| {
        if from != to {
            changes.push(format!("{name} {from} -> {to}"));
        }
    };
    note("seconds of a step", original.sizes.seconds.to_string(), plan.sizes.seconds.to_string());
    note("keys", thousands(original.sizes.keys as f64), thousands(plan.sizes.keys as f64));
    note("rounds", file.design.rounds.to_string(), plan.rounds.to_string());
    note(MOST, original.blocks.len().to_string(), plan.blocks.len().to_string());
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::planning::plan::plan_scaled;

    const MACHINE: Machine = Machine { memory: 24 << 30, cores: 2 };

    fn experiment() -> Experiment {
        let text = include_str!("../../../../benchmarks/outcrop-vs-rocksdb.toml");
        let mut experiment = parse("t.toml", text).unwrap();
        // The programs on this machine do not matter here.
        experiment.base = None;
        experiment.target.truncate(1);
        experiment
    }

    fn planned(scale: &Scale) -> Result<Plan, String> {
        plan_scaled(&experiment(), 1, MACHINE, scale)
    }

    #[test]
    fn a_run_goes_on_under_no_flags_or_the_same() {
        let asked = Scale { keys: Some(5000), rounds: Some(5), ..Scale::default() };
        let plan = planned(&asked).unwrap();
        assert_eq!(asked.check_resumed(&plan), Ok(()));
        assert_eq!(Scale::default().check_resumed(&plan), Ok(()));
        let other = Scale { budget: Some(60), ..asked.clone() };
        let error = other.check_resumed(&plan).unwrap_err();
        assert!(error.contains("begun, with --keys 5000 --rounds 5: --budget 60s --keys 5000"), "{error}");
        let error = asked.check_resumed(&planned(&Scale::default()).unwrap()).unwrap_err();
        assert!(error.contains("begun, without such flags: --keys 5000"), "{error}");
        // A record that does not say what it was begun with.
        let mut old = serde_json::to_value(&plan).unwrap();
        old["scaled"].as_object_mut().unwrap().remove("asked");
        let old: Plan = serde_json::from_value(old).unwrap();
        assert!(asked.check_resumed(&old).is_err() && Scale::default().check_resumed(&old).is_ok());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(["90s", "10m", "2h", "45"].map(|text| seconds_of(text).unwrap()), [90, 600, 7200, 45]);
        for wrong in ["", "m", "0", "-3m", "1.5h", "ten", "9999999999999999999h", "5ü"] {
            assert!(seconds_of(wrong).unwrap_err().contains("10m"), "{wrong}");
        }
    }

    #[test]
    fn a_budget_is_kept_and_its_cost_is_named() {
        let whole = planned(&Scale::default()).unwrap();
        assert_eq!((whole.scaled.as_ref(), whole.sizes.seconds), (None, 30.0));
        let mut last = f64::INFINITY;
        for budget in [1800, 1200, 600, 300, 120] {
            let plan = planned(&Scale { budget: Some(budget), ..Scale::default() }).unwrap();
            let estimate = plan.estimate().seconds;
            assert!(estimate <= budget as f64, "{budget}: {estimate}");
            assert!(estimate >= budget.min(1200) as f64 * 0.4, "{budget} is not wasted: {estimate}");
            assert!(plan.rounds >= LEAST_ROUNDS && plan.blocks.len() >= plan.rounds);
            assert!(plan.sizes.seconds <= last, "less time never gives longer steps");
            last = plan.sizes.seconds;
            assert_eq!(plan.targets[0].open.cache_size, plan.sizes.cache, "the cache follows the data");
            let scaled = plan.scaled.unwrap();
            assert!(scaled.sentence().contains("seconds of a step 30 -> "), "{}", scaled.sentence());
        }
        let error = planned(&Scale { budget: Some(1), ..Scale::default() }).unwrap_err();
        assert!(error.contains("do not fit 1 s: the least is about"), "{error}");
    }

    #[test]
    fn a_budget_has_room_for_the_rests_of_the_order_that_results() {
        let text = "title = 't'\nsteps = ['fillseq', 'readrandom']\n[workload]\nkind = 'iobuf'\nkeys = 100000\n\
            [design]\nrest_seconds = 60\n[[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\n";
        let planned = |budget: u64| {
            let scale = Scale { budget: Some(budget), ..Scale::default() };
            plan_scaled(&parse("t.toml", text).unwrap(), 1, MACHINE, &scale)
        };
        // Sixteen sessions, and the rests between them.
        let error = planned(600).unwrap_err();
        assert!(error.contains("3 targets do not fit 10 min: the least is about 15 min"), "{error}");
        let plan = planned(1500).unwrap();
        assert_eq!(plan.order, crate::experiment::Order::Sessions);
        assert!((900.0..=1500.0).contains(&plan.estimate().seconds), "{}", plan.estimate().seconds);
    }

    #[test]
    fn a_budget_that_is_large_enough_changes_nothing_but_the_end() {
        let plan = planned(&Scale { budget: Some(100_000), ..Scale::default() }).unwrap();
        assert_eq!((plan.sizes.seconds, plan.sizes.keys, plan.rounds), (30.0, 2_000_000, 6));
        assert_eq!(plan.scaled.unwrap().sentence(), "run as the file says; it ends after 27.8 h");
    }

    #[test]
    fn more_blocks_than_the_file_has_are_noted() {
        let mut file = experiment();
        file.design.max_rounds = None;
        let scale = Scale { budget: Some(100_000), ..Scale::default() };
        let plan = plan_scaled(&file, 1, MACHINE, &scale).unwrap();
        assert_eq!((plan.rounds, plan.blocks.len()), (6, 12));
        let scaled = plan.scaled.unwrap();
        let sentence = "run as the file says but for blocks at most 6 -> 12; it ends after 27.8 h";
        assert_eq!(scaled.sentence(), sentence);
    }

    #[test]
    fn plain_numbers_are_taken_as_they_are() {
        let flags = Scale { keys: Some(5000), seconds: Some(0.5), rounds: Some(2), budget: None };
        let plan = planned(&flags).unwrap();
        assert_eq!((plan.sizes.keys, plan.sizes.seconds, plan.rounds, plan.blocks.len()), (5000, 0.5, 2, 2));
        let words = plan.scaled.unwrap().sentence();
        assert!(
            words.starts_with("scaled: seconds of a step 30 -> 0.5, keys 2,000,000 -> 5,000, rounds 6 -> 2;")
        );
        let fixed = Scale { budget: Some(300), keys: Some(1_000_000), ..Scale::default() };
        assert_eq!(planned(&fixed).unwrap().sizes.keys, 1_000_000);
        for wrong in [
            Scale { keys: Some(0), ..Scale::default() },
            Scale { seconds: Some(f64::NAN), ..Scale::default() },
            Scale { rounds: Some(10_000), ..Scale::default() },
        ] {
            assert!(planned(&wrong).unwrap_err().starts_with("--"));
        }
    }
}
