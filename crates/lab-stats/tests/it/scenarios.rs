//! Situations a report must get right, each told by a few numbers.

use outcrop_lab_stats::explain::{Cause, Counters, Explanation, Movement, explain};
use outcrop_lab_stats::histogram::{merge, percentile, percentiles};
use outcrop_lab_stats::history::{History, Version, judge_history};
use outcrop_lab_stats::open_loop::{Arrivals, Recorder, Spacing, longest_queue};
use outcrop_lab_stats::paired::{KnownNoise, PairedRatio, Settings, estimate};
use outcrop_lab_stats::power::smallest_detectable;
use outcrop_lab_stats::rng::Rng;
use outcrop_lab_stats::stalls::{compare_relative_spread, compare_stalls, compare_tails, find_stalls};
use outcrop_lab_stats::steady::{Shape, across_sessions, classify};
use outcrop_lab_stats::table::{Cell, Policy, judge_table};
use outcrop_lab_stats::verdict::{Better, Judgement, Reason, Rule, Verdict, judge, margin};

/// A fixed, symmetric pattern of noise of about 1 in every 8 values, scaled.
const NOISE: [f64; 8] = [0.9, -1.2, 0.3, -0.4, 1.3, -0.8, -0.6, 0.5];

fn pairs(log_ratio: f64, noise: f64, count: usize) -> Vec<f64> {
    NOISE.iter().cycle().take(count).map(|unit| log_ratio + noise * unit).collect()
}

fn ratio(log_ratios: &[f64]) -> PairedRatio {
    estimate(log_ratios, &Settings::default()).unwrap()
}

fn judged(log_ratios: &[f64], better: Better, rule: Rule) -> Judgement {
    judge(&ratio(log_ratios), better, 0.02, rule).unwrap()
}

fn verdict(log_ratios: &[f64]) -> Verdict {
    judged(log_ratios, Better::Higher, Rule::Strict).verdict
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
    assert_eq!(judged(&pairs(0.05, 0.005, 8), Better::Lower, Rule::Strict).verdict, Verdict::Regression);
    assert_eq!(judged(&pairs(-0.05, 0.005, 8), Better::Lower, Rule::Strict).verdict, Verdict::Improvement);
}

#[test]
fn strict_wants_the_interval_beyond_the_margin_and_estimate_the_estimate() {
    let near = pairs(-0.025, 0.01, 8);
    assert_eq!(
        judged(&near, Better::Higher, Rule::Strict),
        Judgement { verdict: Verdict::Unknown, reason: Reason::IntervalTooWide }
    );
    assert_eq!(judged(&near, Better::Higher, Rule::Estimate).verdict, Verdict::Regression);
    // Certainly slower, but by less than matters, and not certainly by so little.
    let small = pairs(-0.015, 0.01, 8);
    assert!(ratio(&small).interval.high < 1.0);
    assert_eq!(judged(&small, Better::Higher, Rule::Estimate).verdict, Verdict::Unknown);
}

#[test]
fn four_pairs_are_too_few_however_clear() {
    let judgement = judged(&pairs(-0.2, 0.001, 4), Better::Higher, Rule::Strict);
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
    assert_eq!(judge(&ratio, Better::Higher, 0.02, Rule::Estimate).unwrap().verdict, Verdict::Unknown);
    // An interval of another kind that excludes 1 is not believed either.
    let narrow = PairedRatio {
        interval: outcrop_lab_stats::interval::Interval { low: 0.93, high: 0.975, level: 0.95 },
        ..ratio
    };
    assert_eq!(judge(&narrow, Better::Higher, 0.02, Rule::Strict).unwrap().reason, Reason::MethodsDisagree);
}

#[test]
fn a_test_known_to_be_noisy_gets_a_wider_margin() {
    assert_eq!(margin(0.02, None), 0.02);
    assert_eq!(margin(0.02, Some(0.001)), 0.02);
    assert!((margin(0.02, Some(0.12)) - 0.113).abs() < 0.001);
}

fn cell(test: &str, log_ratios: Vec<f64>) -> Cell {
    Cell {
        test: test.to_string(),
        target: "9.0".to_string(),
        metric: "ops_sec".to_string(),
        better: Better::Higher,
        control: false,
        steady: true,
        margin: 0.02,
        noise: None,
        log_ratios,
    }
}

#[test]
fn a_weak_cell_is_called_alone_and_not_among_many() {
    // p is about 0.02: enough alone, not as the smallest of twenty.
    let weak = cell("weak", vec![-0.002, -0.05, -0.03, -0.004, -0.045, -0.06, -0.01]);
    let policy = Policy { rule: Rule::Estimate, ..Policy::default() };
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

#[test]
fn what_an_experiment_can_see() {
    // 1.7 % of noise per pair and 10 pairs: about 1.7 %.
    let seen = smallest_detectable(0.017, 10, 0.05, 0.8).unwrap();
    assert!((0.015..0.019).contains(&seen), "{seen}");
    assert!(smallest_detectable(0.017, 40, 0.05, 0.8).unwrap() < seen / 1.9);
}

fn counters(cpu: f64, switches: f64, reads: f64) -> Counters {
    let around = |value: f64, noise: f64| NOISE.iter().map(|unit| value * (1.0 + noise * unit)).collect();
    Counters::from([
        ("cpu_us/o".to_string(), around(cpu, 0.003)),
        ("cs/o".to_string(), around(switches, 0.01)),
        ("r/o".to_string(), around(reads, 0.002)),
        ("fault/o".to_string(), NOISE.iter().map(|unit| 1e-4 * (2.0 + unit)).collect()),
    ])
}

fn explained(log_ratio: f64, base: &Counters, target: &Counters) -> Explanation {
    let change = ratio(&pairs(log_ratio, 0.004, 8));
    explain("ops_sec", &change, Better::Higher, base, target, &Settings::default()).unwrap()
}

#[test]
fn three_percent_of_cpu_are_named() {
    let base = counters(10.0, 0.5, 0.0);
    let mut target = counters(10.3, 0.5, 0.0);
    // The other order of noise, so that pairs differ.
    target.values_mut().for_each(|values| values.reverse());
    target.insert("fault/o".to_string(), vec![1e-3; 8]);
    let found = explained(-0.03, &base, &target);
    assert_eq!(found.cause, Some(Cause::Cpu));
    assert_eq!((found.counters[0].name.as_str(), found.counters[0].movement), ("cpu_us/o", Movement::Up));
    assert!((found.counters[0].share.unwrap() - 1.0).abs() < 0.1, "{:?}", found.counters[0]);
    // Ten times as many page faults, but one in a thousand operations.
    let faults = found.counters.iter().find(|counter| counter.name == "fault/o").unwrap();
    assert_eq!(faults.movement, Movement::Unchanged);
    assert!(
        found.sentence.starts_with("ops_sec 0.970x [0.96")
            && found
                .sentence
                .ends_with("cpu_us/o 1.03x, cs/o unchanged, r/o unchanged: more CPU per operation."),
        "{}",
        found.sentence
    );
}

#[test]
fn switches_beside_reads_are_not_contention() {
    let found = explained(-0.4, &counters(10.0, 0.2, 0.1), &counters(10.0, 1.0, 0.4));
    assert_eq!(found.cause, Some(Cause::Reads), "{}", found.sentence);
    let found = explained(-0.4, &counters(10.0, 0.2, 0.1), &counters(10.0, 1.0, 0.1));
    assert_eq!(found.cause, Some(Cause::Contention), "{}", found.sentence);
}

#[test]
fn what_moves_the_wrong_way_explains_nothing() {
    let found = explained(-0.1, &counters(10.0, 0.5, 0.1), &counters(8.0, 0.5, 0.1));
    assert_eq!(found.cause, None);
    assert!(found.sentence.ends_with("no counter moved with it."), "{}", found.sentence);
    let found = explained(0.1, &counters(10.0, 0.5, 0.1), &counters(8.0, 0.5, 0.1));
    assert_eq!(found.cause, Some(Cause::Cpu));
    assert!(found.sentence.ends_with("less CPU per operation."), "{}", found.sentence);
    let found = explained(0.0, &counters(10.0, 0.5, 0.1), &counters(12.0, 0.5, 0.1));
    assert!(found.sentence.ends_with("no difference to explain."), "{}", found.sentence);
}

#[test]
fn counters_that_appear_are_compared_by_differences() {
    let base = Counters::from([("r/o".to_string(), vec![0.0; 8]), ("old".to_string(), vec![1.0; 8])]);
    let target = Counters::from([("r/o".to_string(), vec![0.5; 8]), ("new".to_string(), vec![1.0; 8])]);
    let found = explained(-0.3, &base, &target);
    assert_eq!(found.not_compared, ["old", "new"]);
    assert_eq!((found.counters[0].movement, found.counters[0].ratio), (Movement::Up, None));
    assert!(found.sentence.contains("r/o from 0 to 0.500"), "{}", found.sentence);
    let broken = Counters::from([("r/o".to_string(), vec![f64::NAN; 8])]);
    let change = ratio(&pairs(0.1, 0.01, 8));
    let error =
        explain("ops_sec", &change, Better::Higher, &base, &broken, &Settings::default()).unwrap_err();
    assert!(error.to_string().starts_with("Not finite: r/o: target[0]"), "{error}");
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
        let judgement = judge(&neighbour.ratio, Better::Higher, 0.02, Rule::Estimate).unwrap();
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
