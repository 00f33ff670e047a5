//! Situations a report must get right, each told by a few numbers.

use outcrop_lab_stats::explain::{Cause, Counters, Explanation, Movement, Observed, explain};
use outcrop_lab_stats::histogram::{merge, percentile, percentiles};
use outcrop_lab_stats::history::{History, Version, judge_history};
use outcrop_lab_stats::open_loop::{Arrivals, Recorder, Spacing, longest_queue};
use outcrop_lab_stats::paired::{KnownNoise, PairedRatio, Settings, estimate};
use outcrop_lab_stats::power::{Design, Simulation};
use outcrop_lab_stats::rng::Rng;
use outcrop_lab_stats::stalls::{
    StallPairs, compare_relative_spread, compare_stalls, compare_tails, find_stalls, judge_stalls,
};
use outcrop_lab_stats::steady::{Shape, across_sessions, classify};
use outcrop_lab_stats::table::{Cell, Policy, judge_table};
use outcrop_lab_stats::verdict::{Better, Judgement, Margin, Reason, Verdict, judge};
use std::collections::BTreeMap;

/// A fixed, symmetric pattern of noise of about 1 in every 8 values, scaled.
const NOISE: [f64; 8] = [0.9, -1.2, 0.3, -0.4, 1.3, -0.8, -0.6, 0.5];

fn pairs(log_ratio: f64, noise: f64, count: usize) -> Vec<f64> {
    NOISE.iter().cycle().take(count).map(|unit| log_ratio + noise * unit).collect()
}

fn ratio(log_ratios: &[f64]) -> PairedRatio {
    estimate(log_ratios, &Settings::default()).unwrap()
}

fn judged(log_ratios: &[f64], better: Better) -> Judgement {
    judge(&ratio(log_ratios), better, 0.02).unwrap()
}

fn verdict(log_ratios: &[f64]) -> Verdict {
    judged(log_ratios, Better::Higher).verdict
}

#[test]
fn the_four_verdicts() {
    assert_eq!(verdict(&pairs(-0.05, 0.005, 8)), Verdict::Regression);
    assert_eq!(verdict(&pairs(0.05, 0.005, 8)), Verdict::Improvement);
    assert_eq!(verdict(&pairs(0.003, 0.005, 8)), Verdict::Same);
    assert_eq!(verdict(&pairs(-0.02, 0.02, 8)), Verdict::Unknown);
}

#[test]
fn for_costs_up_is_worse() {
    assert_eq!(judged(&pairs(0.05, 0.005, 8), Better::Lower).verdict, Verdict::Regression);
    assert_eq!(judged(&pairs(-0.05, 0.005, 8), Better::Lower).verdict, Verdict::Improvement);
}

#[test]
fn the_whole_interval_must_lie_beyond_the_margin() {
    let near = pairs(-0.025, 0.01, 8);
    assert_eq!(
        judged(&near, Better::Higher),
        Judgement { verdict: Verdict::Unknown, reason: Reason::IntervalTooWide }
    );
    // Certainly slower, but by less than matters, and not certainly by so little.
    let small = pairs(-0.015, 0.01, 8);
    assert!(ratio(&small).interval.high < 1.0);
    assert_eq!(judged(&small, Better::Higher).verdict, Verdict::Unknown);
}

#[test]
fn four_pairs_are_too_few_however_clear() {
    let judgement = judged(&pairs(-0.2, 0.001, 4), Better::Higher);
    assert_eq!(judgement, Judgement { verdict: Verdict::Unknown, reason: Reason::TooFewPairs });
    assert_eq!(verdict(&pairs(-0.2, 0.001, 5)), Verdict::Regression);
}

#[test]
fn one_wild_session_does_not_make_a_verdict_that_the_ranks_deny() {
    // Two sessions of twelve in a slow state: a mean of -4 %, a median of nothing.
    let mut x = pairs(0.0, 0.001, 12);
    x[3] = -0.3;
    x[8] = -0.31;
    let ratio = ratio(&x);
    assert!(ratio.ratio < 0.96 && (ratio.hodges_lehmann - 1.0).abs() < 0.01, "{ratio:?}");
    assert_eq!(judge(&ratio, Better::Higher, 0.02).unwrap().verdict, Verdict::Unknown);
    // An interval of another kind that excludes 1 is not believed either.
    let narrow = PairedRatio {
        interval: outcrop_lab_stats::interval::Interval { low: 0.93, high: 0.975, level: 0.95 },
        ..ratio
    };
    assert_eq!(judge(&narrow, Better::Higher, 0.02).unwrap().reason, Reason::MethodsDisagree);
}

#[test]
fn a_noisy_history_widens_what_must_be_exceeded_and_never_what_is_the_same() {
    assert_eq!(Margin::with_history(0.02, None), 0.02.into());
    assert_eq!(Margin::with_history(0.02, Some(0.001)), 0.02.into());
    let noisy = Margin::with_history(0.02, Some(0.12));
    assert!(noisy.asked == 0.02 && (noisy.call - 0.113).abs() < 0.001, "{noisy:?}");
    let of = |log: f64| judge(&ratio(&pairs(log, 0.005, 8)), Better::Higher, noisy).unwrap();
    // A tenth slower, for certain: a history of noisy runs must not make that "the same".
    assert_eq!(of(-0.1), Judgement { verdict: Verdict::Unknown, reason: Reason::WithinStray });
    assert_eq!(of(0.1), Judgement { verdict: Verdict::Unknown, reason: Reason::WithinStray });
    assert_eq!((of(-0.15).verdict, of(0.002).verdict), (Verdict::Regression, Verdict::Same));
    let narrower = Margin { asked: 0.02, call: 0.01 };
    assert!(judge(&ratio(&pairs(0.0, 0.005, 8)), Better::Higher, narrower).is_err());
}

fn cell(test: &str, log_ratios: Vec<f64>) -> Cell {
    Cell {
        test: test.to_string(),
        target: "9.0".to_string(),
        metric: "ops_sec".to_string(),
        better: Better::Higher,
        control: false,
        steady: true,
        margin: 0.02.into(),
        noise: None,
        log_ratios,
    }
}

#[test]
fn a_weak_cell_is_called_alone_and_not_among_many() {
    // p is about 0.02: enough alone, not as the smallest of twenty.
    let weak = cell("weak", vec![-0.002, -0.05, -0.03, -0.004, -0.045, -0.06, -0.01]);
    let weak = Cell { margin: 0.001.into(), ..weak };
    let policy = Policy::default();
    let alone = judge_table(std::slice::from_ref(&weak), &policy).unwrap();
    assert_eq!(alone.cells[0].judgement.verdict, Verdict::Regression);
    assert_eq!((alone.false_calls, alone.false_calls_uncorrected), (None, None));
    let mut cells = vec![weak];
    cells.extend((0..40).map(|index| cell(&index.to_string(), pairs(0.0005, 0.004, 8))));
    let among = judge_table(&cells, &policy).unwrap();
    assert_eq!(among.cells[0].alone, Verdict::Regression);
    assert_eq!(
        among.cells[0].judgement,
        Judgement { verdict: Verdict::Unknown, reason: Reason::ManyComparisons }
    );
    // Another metric is another family.
    cells[1..].iter_mut().for_each(|cell| cell.metric = "p99".to_string());
    assert_eq!(judge_table(&cells, &policy).unwrap().cells[0].judgement.verdict, Verdict::Regression);
}

#[test]
fn false_calls_of_the_twin_are_counted_with_their_interval() {
    let mut cells: Vec<Cell> = (0..20).map(|index| cell(&index.to_string(), pairs(0.0, 0.004, 8))).collect();
    cells[7].log_ratios = pairs(-0.08, 0.004, 8);
    cells.iter_mut().for_each(|cell| cell.control = true);
    let rate = judge_table(&cells, &Policy::default()).unwrap().false_calls.unwrap();
    assert_eq!((rate.events, rate.trials, rate.rate), (1, 20, 0.05));
    assert!(rate.interval.low > 0.0 && rate.interval.high > 0.2, "{rate:?}");
}

#[test]
fn unsteady_cells_and_single_runs_are_not_called_unless_history_tells_the_noise() {
    let unsteady = Cell { steady: false, ..cell("unsteady", pairs(-0.2, 0.001, 8)) };
    let single = cell("single", vec![-0.2]);
    let known = Cell { noise: Some(KnownNoise { log_sd: 0.01, count: 30 }), ..cell("known", vec![-0.2]) };
    let cells = judge_table(&[unsteady, single, known], &Policy::default()).unwrap().cells;
    assert_eq!(cells[0].judgement.reason, Reason::NotSteady);
    assert_eq!(
        (cells[1].judgement.reason, cells[1].estimate, cells[1].q_value),
        (Reason::TooFewPairs, None, None)
    );
    assert_eq!(cells[2].judgement.verdict, Verdict::Regression);
    assert!(judge_table(&[cell("nan", vec![f64::NAN])], &Policy::default()).is_err());
    assert!(judge_table(&[cell("empty", vec![])], &Policy::default()).is_err());
}

fn sees(pairs: usize, cells: usize, margin: impl Into<Margin>) -> Simulation {
    Simulation::new(Design { pairs, cells, margin: margin.into(), policy: Policy::default() }).unwrap()
}

#[test]
fn what_an_experiment_can_see_is_what_its_verdict_calls() {
    // The promise of a t test for 5 pairs that scatter by 1.5 %: a change of 2.5 % in 4 of 5 cases.
    let five = sees(5, 1, 0.02);
    let promised = five.power(0.025, 0.015).unwrap();
    assert!((0.05..0.15).contains(&promised), "{promised}");
    let seen = five.smallest_detectable(0.015, 0.8).unwrap().unwrap();
    assert!((0.04..0.06).contains(&seen), "{seen}");
    assert!((five.power(seen, 0.015).unwrap() - 0.8).abs() < 0.03);
    let more = sees(20, 1, 0.02).smallest_detectable(0.015, 0.8).unwrap().unwrap();
    assert!(more > 0.02 && more < seen * 0.7, "{more}: nothing within the margin is ever called");
    let among = sees(5, 40, 0.02).smallest_detectable(0.015, 0.8).unwrap().unwrap();
    assert!(among > seen, "{among} among forty cells, {seen} alone");
    let noisy =
        sees(5, 1, Margin { asked: 0.02, call: 0.08 }).smallest_detectable(0.015, 0.8).unwrap().unwrap();
    assert!(noisy > 0.08, "{noisy}");
    assert_eq!(five.smallest_detectable(9.0, 0.8).unwrap(), None, "noise in which nothing can be seen");
    assert_eq!(
        sees(4, 1, 0.02).smallest_detectable(0.015, 0.8).unwrap(),
        None,
        "four pairs are never judged"
    );
}

#[test]
fn the_power_is_that_of_whole_reports_judged() {
    const REPORTS: u64 = 1_000;
    let (pairs, cells, log_sd, change) = (6, 12, 0.012, 0.035);
    let mut rng = Rng::new(99);
    let mut normal = || (-2.0 * rng.unit().ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
    let mut called = 0;
    for _ in 0..REPORTS {
        let mut draw = |shift: f64| (0..pairs).map(|_| shift + log_sd * normal()).collect::<Vec<f64>>();
        let report: Vec<Cell> = (0..cells)
            .map(|index| cell(&index.to_string(), draw(if index == 0 { f64::ln(1.0 - change) } else { 0.0 })))
            .collect();
        let verdict = judge_table(&report, &Policy::default()).unwrap().cells[0].judgement.verdict;
        called += u32::from(verdict == Verdict::Regression);
    }
    let (of_reports, said) =
        (f64::from(called) / 1000.0, sees(pairs, cells, 0.02).power(change, log_sd).unwrap());
    // Two samples of 1000: three standard deviations of their difference are at most 0.067.
    assert!((of_reports - said).abs() < 0.067, "{of_reports} of reports, {said} by the simulation");
    assert!((0.2..0.95).contains(&said), "where it can differ: {said}");
}

fn around(value: f64, noise: f64) -> Vec<f64> {
    NOISE.iter().map(|unit| value * (1.0 + noise * unit)).collect()
}

fn counters(values: &[(&str, f64, f64)]) -> Counters {
    values.iter().map(|(name, value, noise)| (name.to_string(), around(*value, *noise))).collect()
}

/// An operation of the base takes 1 us, one of the target `target_ns`.
fn explained(target_ns: f64, base: &Counters, target: &Counters) -> Explanation {
    let prices = BTreeMap::new();
    // The other order of noise, so that pairs differ.
    let mut times = around(target_ns, 0.003);
    times.reverse();
    explained_by(&around(1_000.0, 0.003), &times, base, target, &prices)
}

fn explained_by(
    base_ns: &[f64],
    target_ns: &[f64],
    base: &Counters,
    target: &Counters,
    prices: &BTreeMap<String, f64>,
) -> Explanation {
    explained_of(true, base_ns, target_ns, base, target, prices)
}

fn explained_of(
    only_reads: bool,
    base_ns: &[f64],
    target_ns: &[f64],
    base: &Counters,
    target: &Counters,
    prices: &BTreeMap<String, f64>,
) -> Explanation {
    let log = |(base, target): (&f64, &f64)| (base / target).ln();
    let change = ratio(&base_ns.iter().zip(target_ns).map(log).collect::<Vec<_>>());
    let observed = Observed {
        metric: "ops_sec",
        change: &change,
        better: Better::Higher,
        time_ns: (base_ns, target_ns),
        base,
        target,
        prices,
        only_reads,
    };
    explain(&observed, &Settings::default()).unwrap()
}

#[test]
fn three_percent_of_cpu_are_named_with_what_they_cost() {
    let base = counters(&[("proc_cpu_us/o", 1.0, 0.003), ("vcs/o", 0.0005, 0.1), ("fault/o", 2e-4, 0.3)]);
    let mut target = counters(&[("proc_cpu_us/o", 1.03, 0.003), ("vcs/o", 0.0005, 0.1)]);
    target.values_mut().for_each(|values| values.reverse());
    // Ten times as many page faults, but two in a thousand operations: 1 ns.
    target.insert("fault/o".to_string(), vec![2e-3; 8]);
    let found = explained(1_031.0, &base, &target);
    assert_eq!(found.cause, Some(Cause::Cpu));
    let cpu = &found.counters[0];
    assert_eq!((cpu.name.as_str(), cpu.movement, cpu.explains), ("proc_cpu_us/o", Movement::Up, true));
    assert!((cpu.cost_ns - 30.0).abs() < 1.5 && (cpu.share.unwrap() - 1.0).abs() < 0.1, "{cpu:?}");
    let faults = found.counters.iter().find(|counter| counter.name == "fault/o").unwrap();
    assert!(faults.movement == Movement::Up && !faults.explains, "{faults:?}");
    assert!(
        found.sentence.starts_with("ops_sec 0.970x [0.96")
            && found.sentence.contains(
                "31 ns more per operation: 30 ns by more processor time (proc_cpu_us/o 1.00 to 1.03)."
            ),
        "{}",
        found.sentence
    );
}

#[test]
fn instructions_and_misses_are_said_beside_processor_time_and_explain_nothing_alone() {
    let base = counters(&[
        ("proc_cpu_us/o", 1.0, 0.003),
        ("instr/o", 3_000.0, 0.0001),
        ("cachemiss/o", 2.0, 0.003),
        ("cycles/o", 3_000.0, 0.003),
    ]);
    let mut target = counters(&[
        ("proc_cpu_us/o", 1.2, 0.003),
        ("instr/o", 3_000.0, 0.0001),
        ("cachemiss/o", 4.0, 0.003),
        ("cycles/o", 3_600.0, 0.003),
    ]);
    target.values_mut().for_each(|values| values.reverse());
    let found = explained(1_200.0, &base, &target);
    assert!(
        found.sentence.contains("(proc_cpu_us/o 1.00 to 1.20; instr/o unchanged; cachemiss/o 2.00x)"),
        "{}",
        found.sentence
    );
    let without = |mut counters: Counters| {
        counters.remove("proc_cpu_us/o");
        counters
    };
    let found = explained(1_200.0, &without(base), &without(target));
    assert_eq!(found.cause, None);
    assert!(
        found.sentence.ends_with("200 ns more per operation, not explained by what was counted."),
        "{}",
        found.sentence
    );
}

#[test]
fn what_goes_on_at_its_own_rate_restates_speed_and_explains_nothing() {
    // 3.4 times as fast; writes, switches and faults per second are what they were.
    let of = |ns: f64| {
        let each = ns / 1_000.0;
        counters(&[("proc_wKB/o", 0.9 * each, 0.01), ("vcs/o", 0.4 * each, 0.01), ("fault/o", each, 0.01)])
    };
    let found = explained(1_000.0 / 3.4, &of(1_000.0), &of(1_000.0 / 3.4));
    assert_eq!(found.cause, None);
    assert!(found.counters.iter().all(|counter| counter.restates_speed && !counter.explains), "{found:?}");
    assert!(
        found.sentence.ends_with(
            "706 ns less per operation, not explained by what was counted; vcs/o, fault/o, proc_wKB/o moved with \
             operations: no change of the rate per second is shown."
        ),
        "{}",
        found.sentence
    );
    // The same change per operation where the rate did change is a reason.
    let found = explained(1_000.0 / 3.4, &of(1_000.0), &of(100.0));
    assert_eq!(found.cause, Some(Cause::Contention), "{}", found.sentence);
}

#[test]
fn processor_time_of_other_threads_counts_if_its_rate_changed() {
    let of = |own: f64, background: f64| {
        counters(&[("load_cpu_us/o", own, 0.003), ("back_cpu_us/o", background, 0.003)])
    };
    // Compaction takes half a processor before and after; the operations themselves got dearer.
    let found = explained(1_300.0, &of(0.9, 0.5), &of(1.2, 0.65));
    let of_name = |name: &str| found.counters.iter().find(|counter| counter.name == name).unwrap();
    assert!(of_name("load_cpu_us/o").explains && !of_name("load_cpu_us/o").restates_speed, "{found:?}");
    assert!(of_name("back_cpu_us/o").restates_speed && !of_name("back_cpu_us/o").explains, "{found:?}");
    // It takes a fiftieth more of a processor, surely: of what it takes per operation all else is that there are fewer operations.
    let found = explained(1_300.0, &of(0.9, 0.5), &of(1.2, 0.65 * 1.02));
    let background = found.counters.iter().find(|counter| counter.name == "back_cpu_us/o").unwrap();
    assert!(!background.restates_speed && !background.explains, "{found:?}");
    assert!((10.0..16.0).contains(&background.cost_ns), "{background:?}");
    // A filter that compaction now pays for.
    let found = explained(1_300.0, &of(0.9, 0.5), &of(0.9, 1.3));
    assert!(
        found.sentence.contains("more processor time in the background (back_cpu_us/o 0.50"),
        "{found:?}"
    );
}

#[test]
fn what_compaction_reads_at_its_own_rate_explains_no_writes() {
    // 100 MB/s of compaction before and after; the operations themselves got dearer.
    let of = |own: f64, read: f64| {
        counters(&[
            ("load_cpu_us/o", own, 0.003),
            ("proc_rKB/o", read, 0.005),
            ("server_cpu_us/o", own, 0.003),
        ])
    };
    let (mut times, mut target) = ((around(10_000.0, 0.003), around(12_500.0, 0.003)), of(11.5, 1.28));
    // The other order of noise, so that pairs differ.
    times.1.reverse();
    target.values_mut().for_each(|values| values.reverse());
    let base = of(9.0, 1.024);
    let explained =
        |only_reads: bool| explained_of(only_reads, &times.0, &times.1, &base, &target, &BTreeMap::new());
    let reads = |found: &Explanation| {
        let counter = found.counters.iter().find(|counter| counter.name == "proc_rKB/o").unwrap();
        (counter.restates_speed, counter.explains)
    };
    let found = explained(false);
    assert_eq!(reads(&found), (true, false), "{}", found.sentence);
    assert!(found.sentence.contains("more processor time (load_cpu_us/o"), "{}", found.sentence);
    let of_server = "more processor time of the server, work in the background included (server_cpu_us/o";
    assert!(found.sentence.contains(of_server), "{}", found.sentence);
    // Where nothing is written, operations wait for what is read.
    let found = explained(true);
    assert_eq!(reads(&found), (false, true), "{}", found.sentence);
    assert!(!found.sentence.contains("background"), "{}", found.sentence);
}

#[test]
fn a_rate_of_which_no_change_is_shown_is_not_said_to_be_the_same() {
    // Rates per second that rise by 22 % in the mean, p = 0.086, and operations that become half as many.
    let (before, after) = ([100.0, 90.0, 110.0, 100.0, 100.0], [130.0, 80.0, 150.0, 140.0, 110.0]);
    let times = ([1_000.0, 1_001.0, 999.0, 1_000.0, 1_002.0], [2_000.0, 2_001.0, 1_999.0, 2_002.0, 2_000.0]);
    let of = |rates: [f64; 5], times: [f64; 5]| {
        let each = rates.iter().zip(times).map(|(rate, time)| rate * time / 1e6).collect();
        Counters::from([("proc_wKB/o".to_string(), each)])
    };
    let found =
        explained_of(false, &times.0, &times.1, &of(before, times.0), &of(after, times.1), &BTreeMap::new());
    assert!(
        found
            .sentence
            .ends_with("; proc_wKB/o moved with operations: no change of the rate per second is shown."),
        "{}",
        found.sentence
    );
}

#[test]
fn causes_that_are_not_mentioned_explain_their_part_too() {
    // Four causes of 160 ns each, of a difference of 1000 ns; three are mentioned.
    let names = [
        ("load_cpu_us/o", 0.16),
        ("client_cpu_us/o", 0.16),
        ("server_cpu_us/o", 0.16),
        ("stalled_us/o", 0.16),
    ];
    let of = |sign: f64| counters(&names.map(|(name, more)| (name, 0.1 + sign * more, 0.002)));
    let found = explained(2_000.0, &of(0.0), &of(1.0));
    assert_eq!(found.counters.iter().filter(|counter| counter.explains).count(), 4, "{found:?}");
    assert!(!found.sentence.contains("not explained"), "64 % are explained: {}", found.sentence);
}

#[test]
fn the_rank_is_by_cost_and_not_by_ratio() {
    // Switches rise tenfold and cost 18 ns; reads rise by a half and cost 100 us.
    let base = counters(&[("vcs/o", 0.001, 0.01), ("proc_rKB/o", 8.0, 0.001)]);
    let target = counters(&[("vcs/o", 0.01, 0.01), ("proc_rKB/o", 12.0, 0.002)]);
    let times = (around(200_000.0, 0.002), around(300_000.0, 0.003));
    let found = explained_by(&times.0, &times.1, &base, &target, &BTreeMap::new());
    assert_eq!(found.cause, Some(Cause::Reads), "{}", found.sentence);
    assert_eq!(found.counters.iter().filter(|counter| counter.explains).count(), 1);
    assert!(found.sentence.contains("100.0 us by more reading from the device"), "{}", found.sentence);
    // A device that was measured to answer in a tenth of the time: most of the difference is something else.
    let prices = BTreeMap::from([("proc_rKB/o".to_string(), 2_500.0)]);
    let found = explained_by(&times.0, &times.1, &base, &target, &prices);
    assert!(found.cause == Some(Cause::Reads) || found.cause.is_none(), "{}", found.sentence);
    assert!(found.sentence.contains("not explained by what was counted"), "{}", found.sentence);
}

#[test]
fn what_moves_the_wrong_way_explains_nothing() {
    let (ten, eight) =
        (counters(&[("proc_cpu_us/o", 1.0, 0.003)]), counters(&[("proc_cpu_us/o", 0.8, 0.003)]));
    let found = explained(1_100.0, &ten, &eight);
    assert_eq!(found.cause, None);
    assert!(found.sentence.ends_with("not explained by what was counted."), "{}", found.sentence);
    let found = explained(800.0, &ten, &eight);
    assert_eq!(found.cause, Some(Cause::Cpu));
    assert!(
        found.sentence.contains("200 ns less per operation: 200 ns by less processor time"),
        "{}",
        found.sentence
    );
    let found = explained(1_000.0, &ten, &eight);
    assert!(found.sentence.ends_with("no difference to explain."), "{}", found.sentence);
}

#[test]
fn counters_that_appear_are_compared_and_those_of_one_side_are_named() {
    let base = Counters::from([("proc_rKB/o".to_string(), vec![0.0; 8]), ("old".to_string(), vec![1.0; 8])]);
    let target =
        Counters::from([("proc_rKB/o".to_string(), around(0.02, 0.01)), ("new".to_string(), vec![1.0; 8])]);
    let found = explained(1_500.0, &base, &target);
    assert_eq!(found.not_compared, ["old", "new"]);
    assert_eq!((found.counters[0].movement, found.counters[0].ratio), (Movement::Up, None));
    assert!(found.sentence.contains("(proc_rKB/o 0 to 0.0200)"), "{}", found.sentence);
    let broken = Counters::from([("proc_rKB/o".to_string(), vec![f64::NAN; 8])]);
    let change = ratio(&pairs(0.1, 0.01, 8));
    let observed = Observed {
        metric: "ops_sec",
        change: &change,
        better: Better::Higher,
        time_ns: (&[1.0; 8], &[0.9; 8]),
        base: &base,
        target: &broken,
        prices: &BTreeMap::new(),
        only_reads: true,
    };
    let error = explain(&observed, &Settings::default()).unwrap_err();
    assert!(error.to_string().starts_with("Not finite: proc_rKB/o: target[0]"), "{error}");
    let times = Observed { time_ns: (&[1.0; 8], &[0.0; 8]), ..observed };
    assert!(explain(&times, &Settings::default()).is_err());
}

#[test]
fn a_stall_of_twenty_seconds_is_red_while_throughput_is_grey() {
    let mut rates = vec![1_000.0; 600];
    rates[100..120].fill(20.0);
    rates[400] = 0.0;
    let stalls = find_stalls(&rates, 1.0).unwrap();
    assert_eq!((stalls.stalls, stalls.longest_seconds, stalls.stalled_seconds), (2, 20.0, 21.0));
    assert_eq!(stalls.longest_at_seconds, Some(100.0));
    let base = [0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0];
    let target = [20.0, 21.0, 20.0, 19.0, 22.0, 20.0, 20.0];
    let compared = compare_stalls(&base, &target, 1.0, 0.05, 0).unwrap();
    assert_eq!((compared.verdict, compared.p_value), (Verdict::Regression, 2.0 / 128.0));
    assert_eq!(compare_stalls(&target, &base, 1.0, 0.05, 0).unwrap().verdict, Verdict::Improvement);
    assert_eq!(compare_stalls(&base, &base, 1.0, 0.05, 0).unwrap().verdict, Verdict::Same);
    // Five pairs cannot show it.
    assert_eq!(compare_stalls(&base[..5], &target[..5], 1.0, 0.05, 0).unwrap().verdict, Verdict::Unknown);
    let nothing = find_stalls(&[0.0; 5], 1.0).unwrap();
    assert_eq!((nothing.stalled_share, nothing.longest_seconds), (1.0, 5.0));
    let mostly_idle = find_stalls(&[0.0, 0.0, 0.0, 500.0], 1.0).unwrap();
    assert_eq!(mostly_idle.stalled_seconds, 3.0);
}

#[test]
fn stalls_are_corrected_for_those_that_could_be_called() {
    let pairs =
        |target: [f64; 6]| StallPairs { base: vec![0.0; 6], target: target.to_vec(), least_difference: 1.0 };
    let stalls = pairs([20.0, 21.0, 19.0, 20.0, 22.0, 18.0]);
    // Stands still in one block of six: could be called, and is not.
    let once = pairs([0.0, 0.0, 30.0, 0.0, 0.0, 0.0]);
    let never = pairs([0.1, 0.0, 0.0, 0.2, 0.0, 0.0]);
    let words = |cells: &[StallPairs]| {
        judge_stalls(cells, 0.05, 0).unwrap().iter().map(|cell| cell.verdict).collect::<Vec<_>>()
    };
    let mut many = vec![never.clone(); 50];
    many.insert(0, stalls.clone());
    let judged = words(&many);
    assert_eq!(
        (judged[0], judged[1]),
        (Verdict::Regression, Verdict::Same),
        "who never stalls does not hide it"
    );
    // One in sixteen by chance is nothing among ten that could be.
    let mut noisy = vec![once; 10];
    noisy.insert(0, stalls.clone());
    assert_eq!(words(&noisy)[0], Verdict::Unknown);
    assert_eq!(words(&[stalls.clone(), stalls])[0], Verdict::Regression);
}

/// Longest stalls and rates of 16 versions before and 16 after a cure, in the ranges of a published history.
fn cured() -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(16);
    let mut between = |low: f64, high: f64| -> Vec<f64> {
        (0..16).map(|_| (low.ln() + (high / low).ln() * rng.unit()).exp()).collect()
    };
    (between(237.0, 418.0), between(0.04, 0.46), between(140e3, 195e3), between(169e3, 176e3))
}

#[test]
fn a_cure_of_stalls_is_found_where_throughput_shows_nothing() {
    let (stalls_before, stalls_after, rates_before, rates_after) = cured();
    let tails = compare_tails(&stalls_before, &stalls_after, 2.0, 0.05).unwrap();
    assert_eq!((tails.verdict, tails.dominance), (Verdict::Improvement, -1.0));
    assert!(tails.p_value < 1e-8 && tails.ratio < 0.01, "{tails:?}");
    assert_eq!(compare_tails(&stalls_after, &stalls_before, 2.0, 0.05).unwrap().verdict, Verdict::Regression);
    assert_eq!(compare_tails(&rates_before, &rates_after, 2.0, 0.05).unwrap().verdict, Verdict::Unknown);
    let spread = compare_relative_spread(&rates_before, &rates_after).unwrap();
    assert!(spread.after < spread.before / 3.0 && spread.p_value < 0.001, "{spread:?}");
    let history = history_of(&[stalls_before, stalls_after].concat());
    assert_eq!(history.levels.len(), 2, "{:?}", history.levels);
    assert_eq!(history.levels[1].first, "v16");
}

fn history_of(values: &[f64]) -> History {
    let version =
        |(index, value): (usize, &f64)| Version { name: format!("v{index}"), values: vec![Some(*value)] };
    let versions: Vec<Version> = values.iter().enumerate().map(version).collect();
    judge_history(&versions, 0.02, 0.05, &Settings::default()).unwrap()
}

#[test]
fn a_single_bogus_version_is_an_outlier_and_a_step_is_a_change() {
    let rates = [
        200.0, 201.0, 199.0, 200.5, 199.5, 200.2, 94.0, 200.9, 199.1, 188.0, 188.9, 187.2, 188.4, 187.9,
        259.0, 260.1, 259.3, 258.8,
    ];
    let history = history_of(&rates);
    assert_eq!(history.outliers, [6]);
    let starts: Vec<usize> = history.levels.iter().map(|level| level.versions.start).collect();
    assert_eq!(starts, [0, 9, 14]);
    assert!((history.levels[0].value - 200.0).abs() < 0.5, "{:?}", history.levels[0]);
    assert!((history.levels[1].change.unwrap() - 0.94).abs() < 0.005);
    assert!((history.levels[2].change.unwrap() - 1.38).abs() < 0.005);
    assert!(history.levels.iter().all(|level| !level.provisional));
    assert!(history.neighbours.is_empty() && history.total.is_none(), "single runs have no pairs");
    // Sides that differ by less than matters are one level, however little noise there is.
    let quiet = [[200.0; 6].as_slice(), &[94.0], &[202.8; 6]].concat();
    let quiet = history_of(&quiet);
    assert_eq!((quiet.outliers, quiet.levels.len()), (vec![6], 1));
    // The second version may be the odd one too.
    let early = history_of(&[200.0, 94.0, 201.0, 199.0, 200.5, 199.5, 200.2, 200.9, 199.1]);
    assert_eq!((early.outliers, early.levels.len()), (vec![1], 1));
}

#[test]
fn a_change_at_the_last_version_is_provisional() {
    let mut rates = vec![200.0, 201.0, 199.0, 200.5, 199.5, 200.2, 200.9, 199.1];
    rates.push(120.0);
    let history = history_of(&rates);
    assert_eq!(history.levels.len(), 2);
    assert!(history.levels[1].provisional && !history.levels[0].provisional);
    assert_eq!(history.outliers, Vec::<usize>::new());
}

#[test]
fn small_steps_add_up_though_no_neighbour_is_called() {
    let version = |index: usize| Version {
        name: index.to_string(),
        values: (0..6)
            .map(|block| {
                let noise = 0.008 * NOISE[(3 * index + 5 * block + index * block) % 8];
                Some(1e5 * (-0.006 * index as f64 + noise).exp())
            })
            .collect(),
    };
    let versions: Vec<Version> = (0..10).map(version).collect();
    let history = judge_history(&versions, 0.02, 0.05, &Settings::default()).unwrap();
    assert!(history.total.unwrap().interval.high < 0.98, "{:?}", history.total);
    assert_eq!(history.neighbours.len(), 9);
    for neighbour in &history.neighbours {
        let judgement = judge(&neighbour.ratio, Better::Higher, 0.02).unwrap();
        assert!(!judgement.verdict.is_call(), "{neighbour:?}");
    }
}

#[test]
fn shapes_of_steps() {
    let step = |levels: &[(usize, f64)]| -> Vec<f64> {
        let rates = levels.iter().flat_map(|(seconds, rate)| std::iter::repeat_n(*rate, *seconds));
        rates.enumerate().map(|(second, rate)| rate * (1.0 + 0.01 * NOISE[second * 5 % 8])).collect()
    };
    let label = |rates: &[f64]| classify(rates, 1.0, 0.02).unwrap();
    assert_eq!(label(&step(&[(300, 100.0)])).shape, Shape::Flat);
    let warm = label(&step(&[(60, 50.0), (240, 100.0)]));
    assert_eq!((warm.shape, warm.steady_from, warm.mser_cut), (Shape::WarmUp, 60, Some(60)));
    assert!((warm.steady_rate - 100.0).abs() < 0.5 && warm.whole_rate < 91.0, "{warm:?}");
    assert!(warm.thirds.change.unwrap() > 0.3 && warm.thirds.p_value < 1e-6, "{:?}", warm.thirds);
    assert_eq!(label(&step(&[(90, 100.0), (210, 60.0)])).shape, Shape::SlowDown);
    assert_eq!(label(&step(&[(250, 100.0), (50, 60.0)])).shape, Shape::NoSteadyState);
    let sinking: Vec<f64> = (0..300).map(|second| 100.0 - 0.2 * f64::from(second)).collect();
    assert_eq!(label(&sinking).shape, Shape::NoSteadyState);
    let short = label(&step(&[(30, 50.0), (20, 100.0)]));
    assert!(short.short && short.minority, "{short:?}");
    // A change below the tolerance is none.
    assert_eq!(label(&step(&[(150, 100.0), (150, 101.5)])).shape, Shape::Flat);
}

#[test]
fn sessions_vote_on_their_shape() {
    use Shape::{Flat, Inconsistent, NoSteadyState, WarmUp};
    assert_eq!(across_sessions(&[]), None);
    assert_eq!(across_sessions(&[Flat, Flat, Flat, WarmUp]), Some(Flat));
    assert_eq!(across_sessions(&[Flat, Flat, WarmUp]), Some(Inconsistent));
    assert_eq!(across_sessions(&[NoSteadyState; 3]), Some(NoSteadyState));
    assert!(WarmUp.allows_verdict() && !Inconsistent.allows_verdict() && !NoSteadyState.allows_verdict());
}

#[test]
fn a_percentile_needs_ten_events_above_it() {
    let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000_000, 3).unwrap();
    histogram.record_n(1_000, 999).unwrap();
    assert_eq!(percentile(&histogram, 0.99).unwrap(), None);
    histogram.record(2_000_000).unwrap();
    assert_eq!(percentile(&histogram, 0.99).unwrap(), Some(1_000));
    assert_eq!(percentile(&histogram, 0.999).unwrap(), None);
    let all = percentiles(&histogram);
    assert_eq!((all.count, all.p99, all.p999), (1_000, Some(1_000), None));
    assert!(all.max.unwrap().abs_diff(2_000_000) < 2_000);
    let both = merge([&histogram, &histogram]).unwrap().unwrap();
    assert_eq!((both.len(), merge([]).unwrap()), (2_000, None));
    histogram.record_n(1_000, 99_000).unwrap();
    assert_eq!(percentile(&histogram, 0.9999).unwrap(), Some(1_000));
}

#[test]
fn an_open_loop_sees_the_stall_that_a_closed_loop_hides() {
    // 1 000 operations a second for 60 s; the engine stalls from 10 s to 20 s and then catches up.
    let (stall_from, stall_to) = (10_000_000_000u64, 20_000_000_000u64);
    let mut recorder = Recorder::new(3_600_000_000_000).unwrap();
    let mut other = Recorder::new(3_600_000_000_000).unwrap();
    let (mut free, mut operations) = (0u64, Vec::new());
    for intended in Arrivals::new(Spacing::Grid, 1_000.0, 0).unwrap().take(60_000) {
        let start = intended.max(free);
        let end = if (stall_from..stall_to).contains(&start) { stall_to } else { start + 100_000 };
        free = end;
        operations.push((intended, end));
        let recorder = if operations.len() % 2 == 0 { &mut recorder } else { &mut other };
        recorder.record(intended, start, end).unwrap();
    }
    recorder.merge(&other).unwrap();
    let seen = recorder.summary();
    assert_eq!(seen.intended.count, 60_000);
    assert!(seen.service.p999.unwrap() < 101_000, "one operation in 60 000 was slow: {seen:?}");
    assert!(seen.intended.p90.unwrap() > 4_000_000_000, "one user in ten waited for seconds: {seen:?}");
    assert!(seen.late_starts > 10_000 && seen.longest_wait_nanos > 9_000_000_000, "{seen:?}");
    assert_eq!(recorder.service().max(), recorder.intended().max());
    let queue = longest_queue(&operations).unwrap();
    assert!((9_990..=10_001).contains(&queue), "{queue}");
    assert!(recorder.record(5, 4, 6).is_err() && recorder.record(4, 6, 5).is_err());
}

#[test]
fn arrivals_keep_their_rate() {
    let last = |spacing| Arrivals::new(spacing, 70_000.0, 5).unwrap().nth(70_000).unwrap();
    assert_eq!(last(Spacing::Grid), 1_000_000_000);
    // The sum of 70 001 exponential distances strays by 0.4 %.
    assert!(last(Spacing::Poisson).abs_diff(1_000_000_000) < 16_000_000);
    let two: Vec<u64> = Arrivals::new(Spacing::Poisson, 10.0, 1).unwrap().take(2).collect();
    assert!(two[0] < two[1]);
}
