//! Attempts to fool the verdict: worlds in which something else than the targets moves the numbers, or the targets do.
//!
//! ```text
//! plan (orders, slices) -> every second of every step of a simulated host -> Results -> the report's own verdicts
//! ```
//! Nothing between the made-up seconds and the verdicts is simulated: orders are the plan's, steadiness, intervals, margins,
//! corrections, stalls and doubts are those of reports. The table in `docs/lab-attacks.md` is made here;
//! `REWRITE=1 cargo test -p outcrop-lab attacks` writes it anew.

use crate::analysis::judge::Word;
use crate::analysis::noise::NoiseModel;
use crate::analysis::results::Results;
use crate::experiment::parse;
use crate::host::canary::Canary;
use crate::host::{Facts, Host};
use crate::planning::plan::{Plan, block_orders};
use crate::store::{ExperimentRow, SessionRow, Status, StepRow};
use outcrop_lab_load::StepResult;
use outcrop_lab_stats::rng::Rng;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Simulated runs of each attack.
const RUNS: u64 = 100;
const BLOCKS: usize = 10;
const STEPS: [&str; 4] = ["fillseq", "readrandom", "overwriteandwait", "readwhilewriting"];
const SECONDS: f64 = 30.0;
/// The step that a change is planted in.
const PLANTED: &str = "readrandom";

/// Where and when a second is.
struct Moment<'a> {
    step: &'a str,
    target: usize,
    block: usize,
    /// Place in the turn or slice, and who was there before.
    place: usize,
    before: Option<usize>,
    /// Share of the run that is over, and of this step of this target.
    run: f64,
    within: f64,
    /// Seconds since the run began.
    at: f64,
}

/// Something done to a run.
struct Attack {
    name: &'static str,
    /// How the second's rate changes.
    factor: fn(&Moment<'_>, &Surroundings) -> f64,
    /// The change is of the target itself, and larger than what was asked for.
    is_real: bool,
    /// Steps on which the lab is known to be fooled: they are in the table, and in what the docs admit.
    fooled_on: &'static [&'static str],
}

/// The changes that the simulated host makes by itself.
struct Surroundings {
    /// Slow stretches of a host of two states, in seconds since the run began.
    slow: Vec<(f64, f64)>,
    /// The block that goes wrong, and the session's step whose clock is set.
    bad_block: usize,
}

impl Surroundings {
    fn is_slow(&self, at: f64) -> bool {
        self.slow.iter().any(|(from, to)| *from <= at && at < *to)
    }
}

const fn attack(name: &'static str, factor: fn(&Moment<'_>, &Surroundings) -> f64) -> Attack {
    Attack { name, factor, is_real: false, fooled_on: &[] }
}

fn planted(moment: &Moment<'_>, share: f64) -> f64 {
    if moment.target == 1 && moment.step == PLANTED { 1.0 - share } else { 1.0 }
}

const ATTACKS: [Attack; 15] = [
    attack("none: equals", |_, _| 1.0),
    attack("planted 1 %", |moment, _| planted(moment, 0.01)),
    attack("planted 2 %", |moment, _| planted(moment, 0.02)),
    Attack { is_real: true, ..attack("planted 3 %", |moment, _| planted(moment, 0.03)) },
    Attack { is_real: true, ..attack("planted 5 %", |moment, _| planted(moment, 0.05)) },
    attack("drift: 5 % over the run", |moment, _| 1.0 - 0.05 * moment.run),
    attack("host of two states, 10 % apart", |moment, host| if host.is_slow(moment.at) { 0.9 } else { 1.0 }),
    Attack {
        fooled_on: &["fillseq", "overwriteandwait", "readwhilewriting"],
        ..attack("load beside one target: 5 %", |moment, _| if moment.target == 1 { 0.95 } else { 1.0 })
    },
    attack("load in phase with the turns: who is first loses 5 %", |moment, _| {
        if moment.place == 0 { 0.95 } else { 1.0 }
    }),
    attack(
        "debris: who follows the target loses 4 %",
        |moment, _| if moment.before == Some(1) { 0.96 } else { 1.0 },
    ),
    Attack {
        fooled_on: &["fillseq"],
        ..attack("the target warms up: 30 % slower for a fifth of each step", |moment, _| {
            if moment.target == 1 && moment.within < 0.2 { 0.7 } else { 1.0 }
        })
    },
    attack("the clock is set in one session: 40 % off", |moment, host| {
        if moment.target == 1 && moment.block == host.bad_block { 0.6 } else { 1.0 }
    }),
    attack(
        "one bad block, for all: 30 %",
        |moment, host| if moment.block == host.bad_block { 0.7 } else { 1.0 },
    ),
    attack("one bad block, for the target: 15 %", |moment, host| {
        if moment.target == 1 && moment.block == host.bad_block { 0.85 } else { 1.0 }
    }),
    attack("two bad blocks, for the target: 15 %", |moment, host| {
        if moment.target == 1 && [host.bad_block, (host.bad_block + 3) % BLOCKS].contains(&moment.block) {
            0.85
        } else {
            1.0
        }
    }),
];

/// The plan of all runs but for its seed.
fn plan() -> Plan {
    let names: Vec<String> = STEPS.iter().map(|step| format!("'{step}'")).collect();
    let text = format!(
        "title = 'Attacks'\nsteps = [{}]\n[workload]\nkind = 'byrx'\nkeys = 1000\nseconds = {SECONDS}\n[design]\nseed = 1\n\
         rounds = {BLOCKS}\nslice_seconds = 1.0\n[[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\n",
        names.join(", ")
    );
    crate::planning::plan::plan(&parse("t.toml", &text).unwrap(), 1, 8 << 30, 4).unwrap()
}

/// The same with the orders of another seed.
fn seeded(plan: &Plan, seed: u64) -> Plan {
    let blocks = block_orders(plan.targets.len(), BLOCKS, seed);
    Plan { seed, blocks, ..plan.clone() }
}

struct World {
    rng: Rng,
}

impl World {
    fn normal(&mut self) -> f64 {
        (-2.0 * self.rng.unit().ln()).sqrt() * (std::f64::consts::TAU * self.rng.unit()).cos()
    }

    /// Stretches of slowness, on average 20 s long and 40 s apart.
    fn host(&mut self, seconds: f64) -> Surroundings {
        let (mut at, mut slow) = (0.0, Vec::new());
        while at < seconds {
            at += -40.0 * self.rng.unit().ln();
            let length = -20.0 * self.rng.unit().ln();
            slow.push((at, at + length));
            at += length;
        }
        Surroundings { slow, bad_block: self.rng.below(BLOCKS) }
    }

    /// A whole run under `attack`.
    fn run(&mut self, plan: &Plan, attack: &Attack) -> Results {
        let targets = plan.targets.len();
        let all = BLOCKS as f64 * STEPS.len() as f64 * targets as f64 * SECONDS;
        let host = self.host(all);
        let (mut at, mut measured, mut sessions) = (0.0, Vec::new(), Vec::new());
        for block in 0..BLOCKS {
            // Noise that the steps of a session share, and noise of each step.
            let shared: Vec<f64> = (0..targets).map(|_| 0.003 * self.normal()).collect();
            for (target, _) in shared.iter().enumerate() {
                sessions.push(session((block * targets + target) as i64, block as i64, target));
            }
            for turn in plan.turns() {
                let number = turn.end - 1;
                let step = plan.steps[number].step.name.clone();
                let own: Vec<f64> = shared.iter().map(|shared| shared + 0.0075 * self.normal()).collect();
                let orders = plan.turn_orders(block as i64, &turn);
                let slices = orders.len();
                let each = SECONDS as usize / slices;
                let mut rates = vec![Vec::<f64>::new(); targets];
                for order in orders {
                    for (place, target) in order.iter().copied().enumerate() {
                        let before = place.checked_sub(1).map(|place| order[place]);
                        for _ in 0..each {
                            let within = rates[target].len() as f64 / SECONDS;
                            let moment = Moment {
                                step: &step,
                                target,
                                block,
                                place,
                                before,
                                run: at / all,
                                within,
                                at,
                            };
                            let factor = (attack.factor)(&moment, &host);
                            let noise = own[target] + 0.02 * self.normal();
                            rates[target].push(100_000.0 * noise.exp() * factor);
                            at += 1.0;
                        }
                    }
                }
                for (target, rates) in rates.into_iter().enumerate() {
                    let others =
                        if attack.name.starts_with("load beside") && target == 1 { 0.6 } else { 0.02 };
                    measured.push(row(
                        (block * targets + target) as i64,
                        block,
                        target,
                        &step,
                        (&rates, slices),
                        others,
                    ));
                }
            }
        }
        results(plan, sessions, measured)
    }
}

fn session(id: i64, block: i64, target: usize) -> SessionRow {
    SessionRow {
        id,
        block,
        position: 0,
        target,
        outcome: "done".to_string(),
        error: None,
        seconds: None,
        canary: Canary::default(),
        engine_version: None,
        engine_git_sha: None,
    }
}

fn row(
    session: i64,
    block: usize,
    target: usize,
    step: &str,
    (rates, slices): (&[f64], usize),
    others: f64,
) -> StepRow {
    let nothing = || hdrhistogram::Histogram::new(1).unwrap();
    let parts = rates.chunks(rates.len() / slices);
    let parts = parts.map(|part| (part.iter().sum::<f64>() as u64, part.len() as f64)).collect();
    let result = StepResult {
        seconds: rates.len() as f64,
        per_second: rates.iter().map(|rate| *rate as u64).collect(),
        parts: if slices == 1 { Vec::new() } else { parts },
        samples: nothing(),
        responses: nothing(),
        ..StepResult::nothing()
    };
    let rate = rates.iter().sum::<f64>() / rates.len() as f64;
    let metrics = [
        ("ops_sec", rate),
        ("other_cpu", others),
        ("longest_gap", 5.0),
        ("stalled_seconds", 0.0),
        ("p99", 1e6 / rate),
    ];
    StepRow {
        id: 0,
        session,
        block: block as i64,
        target,
        name: step.to_string(),
        date: String::new(),
        result,
        metrics: metrics.map(|(name, value)| (name.to_string(), value)).into(),
        labels: Vec::new(),
    }
}

fn results(plan: &Plan, sessions: Vec<SessionRow>, measured: Vec<StepRow>) -> Results {
    let host = Host { facts: Facts::default(), checks: vec![], canary: Canary::default() };
    let experiment = ExperimentRow {
        id: 1,
        created: String::new(),
        file: String::new(),
        text: String::new(),
        plan: plan.clone(),
        host,
        lab_version: String::new(),
        status: Status::Done,
    };
    Results {
        steps: plan.reported(),
        experiment,
        sessions,
        measured,
        unreported: Vec::new(),
        events: Vec::new(),
        options: Vec::new(),
        engine_logs: BTreeMap::new(),
        profiles: Vec::new(),
        noise: NoiseModel::default(),
    }
}

/// The verdicts over all runs of an attack.
#[derive(Default)]
struct Tally {
    /// Cells of the attacked target, in the step that changed or in all of them: called, the same, not decided.
    attacked: [usize; 3],
    /// Cells of the twin and of steps that did not change: called, and all.
    others: [usize; 2],
    /// Runs with a call that is not true, and those of them on a step on which the lab should see through it.
    wrong_runs: usize,
    surprising_runs: usize,
    /// Runs in which it was told that place matters.
    places: usize,
}

fn tally(attack: &Attack, plan: &Plan) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..RUNS {
        let plan = seeded(plan, seed + 1);
        let results = World { rng: Rng::new(seed + 7_000) }.run(&plan, attack);
        let is_planted = attack.name.starts_with("planted");
        let (mut wrong, mut surprising) = (0, 0);
        for (step, cells) in results.steps.iter().zip(results.table(0, "ops_sec")) {
            for target in [1, 2] {
                let word = cells[target].as_ref().unwrap().verdict.unwrap().word;
                let is_attacked = target == 1 && (!is_planted || step == PLANTED);
                let called = usize::from(word.is_call());
                if is_attacked {
                    let place = match word {
                        Word::Same => 1,
                        Word::Unknown => 2,
                        _ => 0,
                    };
                    tally.attacked[place] += 1;
                } else {
                    tally.others[0] += called;
                    tally.others[1] += 1;
                }
                let is_wrong =
                    if is_attacked && attack.is_real { word == Word::Improvement } else { word.is_call() };
                wrong += usize::from(is_wrong);
                let is_known = target == 1 && attack.fooled_on.contains(&step.as_str());
                surprising += usize::from(is_wrong && !is_known);
            }
        }
        tally.wrong_runs += usize::from(wrong > 0);
        tally.surprising_runs += usize::from(surprising > 0);
        tally.places +=
            usize::from(crate::analysis::position::table(&results, 0).iter().any(|row| row.is_finding()));
    }
    tally
}

#[test]
fn attacks_do_not_fool_the_verdict_and_the_table_in_the_docs_says_how_often() {
    let plan = &plan();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = ATTACKS.iter().map(|attack| scope.spawn(move || tally(attack, plan))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut table = String::from(
        "| attack | called | the same | unknown | others called | runs with a false call | place told |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (attack, tally) in ATTACKS.iter().zip(&tallies) {
        let all: usize = tally.attacked.iter().sum();
        let percent = |part: usize| format!("{:.1} %", part as f64 / all as f64 * 100.0);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} of {} | {} of {RUNS} | {} of {RUNS} |",
            attack.name,
            percent(tally.attacked[0]),
            percent(tally.attacked[1]),
            percent(tally.attacked[2]),
            tally.others[0],
            tally.others[1],
            tally.wrong_runs,
            tally.places
        );
    }
    println!("{table}");
    for (attack, tally) in ATTACKS.iter().zip(&tallies) {
        // 5 % of runs and three standard deviations of a binomial.
        assert!(
            tally.surprising_runs <= 11,
            "{}: {} of {RUNS} runs call what is not so\n{table}",
            attack.name,
            tally.surprising_runs
        );
        // Nothing that is 3 % slower or more may be called the same, in more than 1 of 100.
        assert!(!attack.is_real || tally.attacked[1] <= 1, "{}: called the same\n{table}", attack.name);
    }
    let found =
        |name: &str| tallies[ATTACKS.iter().position(|attack| attack.name == name).unwrap()].attacked[0];
    assert!(found("planted 5 %") >= 95, "a planted 5 % is called\n{table}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab-attacks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once("<!-- table -->\n").expect("a mark where the table begins");
    let (_, tail) = rest.split_once("<!-- end -->").expect("a mark where it ends");
    let wanted = format!("{head}<!-- table -->\n{table}<!-- end -->{tail}");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "REWRITE=1 writes the table anew");
    }
}
