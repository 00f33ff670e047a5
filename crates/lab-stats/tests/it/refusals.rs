//! The inputs that are refused, and the results at the edges: nothing comes out of a NaN, and nothing
//! panics.

use outcrop_lab_stats::error::{ErrorKind, Result};
use outcrop_lab_stats::paired::{self, Settings};
use outcrop_lab_stats::segments::Partition;
use outcrop_lab_stats::verdict::{Better, Verdict, judge};
use outcrop_lab_stats::{
    autocorrelation, histogram, history, interval, multiple, offset, open_loop, power, rank, segments,
    spread, stalls, steady, summary, warm_up,
};

const NAN: [f64; 40] = [f64::NAN; 40];
const INFINITE: [f64; 40] = [f64::INFINITY; 40];

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    let error = result.expect_err("must be refused");
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.to_string().contains(": "), "{error}");
}

/// All routines on one series, by the kind of error each gives.
fn all_of_one_series(x: &[f64]) -> Vec<(&'static str, ErrorKind)> {
    let settings = Settings::default();
    let partition = Partition { sd: 1.0, penalty: 1.0, least: 1 };
    let versions: Vec<history::Version> =
        x.iter().map(|v| history::Version { name: "v".into(), values: vec![Some(*v)] }).collect();
    let table: Vec<Vec<Option<f64>>> = x.iter().map(|v| vec![Some(*v)]).collect();
    [
        ("summarize", summary::summarize(x).err()),
        ("quantile", summary::quantile(x, 0.5).err()),
        ("noise_floor", summary::noise_floor(x, 0.05).err()),
        ("t_interval", interval::t_interval(x, 0.95).err()),
        ("t_test", interval::t_test(x).err()),
        ("hodges_lehmann", rank::hodges_lehmann(x).err()),
        ("hodges_lehmann_interval", rank::hodges_lehmann_interval(x, 0.95).err()),
        ("signed_rank_test", rank::signed_rank_test(x).err()),
        ("sign_flip_test", rank::sign_flip_test(x, 0).err()),
        ("rank_sum_test", rank::rank_sum_test(x, &[1.0]).err()),
        ("dominance", rank::dominance(&[1.0], x).err()),
        ("differences", rank::differences(x, x).err()),
        ("compare_spread", spread::compare_spread(x, &[1.0, 2.0]).err()),
        ("log_ratios", paired::log_ratios(x, x).err()),
        ("estimate", paired::estimate(x, &settings).err()),
        ("autocorrelation", autocorrelation::autocorrelation(x, 1).err()),
        ("long_run_variance", autocorrelation::long_run_variance(x, 1).err()),
        ("effective_count", autocorrelation::effective_count(x).err()),
        ("trend", autocorrelation::trend(x, 1).err()),
        ("mser", warm_up::mser(x, 5).err()),
        ("compare_thirds", warm_up::compare_thirds(x).err()),
        ("partition", segments::partition(x, &vec![1.0; x.len()], &partition).err()),
        ("classify", steady::classify(x, 1.0, 0.02).err()),
        ("find_stalls", stalls::find_stalls(x, 1.0).err()),
        ("compare_stalls", stalls::compare_stalls(x, x, 1.0, 0.05, 0).err()),
        ("compare_tails", stalls::compare_tails(x, x, 2.0, 0.05).err()),
        ("judge_history", history::judge_history(&versions, 0.02, 0.05, &settings).err()),
        ("remove_session_offset", offset::remove_session_offset(&table, &settings).err()),
        ("benjamini_hochberg", multiple::benjamini_hochberg(if x.is_empty() { &[2.0] } else { x }).err()),
    ]
    .into_iter()
    .map(|(name, error)| (name, error.unwrap_or_else(|| panic!("{name} accepted {x:?}")).kind))
    .collect()
}

#[test]
fn nan_and_infinity_are_refused_everywhere() {
    for values in [&NAN, &INFINITE] {
        for (name, kind) in all_of_one_series(values) {
            assert_eq!(kind, ErrorKind::NotFinite, "{name}");
        }
    }
}

#[test]
fn nothing_is_refused_everywhere() {
    for (name, kind) in all_of_one_series(&[]) {
        let expected =
            if name == "benjamini_hochberg" { ErrorKind::OutOfDomain } else { ErrorKind::TooFewValues };
        assert_eq!(kind, expected, "{name}");
    }
}

#[test]
fn a_refusal_names_the_value() {
    let error = paired::log_ratios(&[1.0, 0.0], &[1.0, 1.0]).unwrap_err();
    assert_eq!(error.to_string(), "Out of domain: target[1] is 0, which has no logarithm");
    let error = summary::summarize(&[1.0, f64::NAN]).unwrap_err();
    assert_eq!(error.to_string(), "Not finite: values[1] is NaN");
}

#[test]
fn lengths_and_domains_are_checked() {
    refused(paired::log_ratios(&[1.0], &[1.0, 2.0]), ErrorKind::LengthMismatch);
    refused(rank::differences(&[1.0], &[1.0, 2.0]), ErrorKind::LengthMismatch);
    let offset =
        |table: &[Vec<Option<f64>>]| offset::remove_session_offset(table, &paired::Settings::default());
    refused(offset(&[vec![Some(1.0)], vec![]]), ErrorKind::LengthMismatch);
    refused(offset(&[vec![Some(1.0), None]]), ErrorKind::TooFewValues);
    refused(offset(&vec![vec![Some(1.0), Some(2.0)]; 4]), ErrorKind::TooFewValues);
    refused(interval::t_interval(&[1.0, 2.0], 1.0), ErrorKind::OutOfDomain);
    refused(interval::t_interval(&[1.0], 0.95), ErrorKind::TooFewValues);
    refused(interval::known_noise_interval(0.0, -1.0, 5, 0.95), ErrorKind::OutOfDomain);
    refused(rank::signed_rank_test(&[1.0; rank::MAX_EXACT + 1]), ErrorKind::OutOfDomain);
    refused(multiple::rate(3, 2, 0.95), ErrorKind::OutOfDomain);
    refused(multiple::rate(0, 0, 0.95), ErrorKind::OutOfDomain);
    let design = |pairs, cells| power::Design {
        pairs,
        cells,
        margin: 0.02.into(),
        policy: outcrop_lab_stats::Policy::default(),
    };
    refused(power::Simulation::new(design(1, 1)).map(|_| ()), ErrorKind::TooFewValues);
    refused(power::Simulation::new(design(5, 0)).map(|_| ()), ErrorKind::TooFewValues);
    let simulation = power::Simulation::new(design(5, 1)).unwrap();
    refused(simulation.power(1.0, 0.01), ErrorKind::OutOfDomain);
    refused(simulation.power(0.1, 0.0), ErrorKind::OutOfDomain);
    refused(warm_up::mser(&[1.0; 40], 0), ErrorKind::OutOfDomain);
    refused(segments::penalty(1, 0.05, 3.0), ErrorKind::OutOfDomain);
    refused(steady::classify(&[0.0; 60], 1.0, 0.02), ErrorKind::OutOfDomain);
    refused(steady::classify(&[1.0; 19], 1.0, 0.02), ErrorKind::TooFewValues);
    refused(stalls::find_stalls(&[-1.0], 1.0), ErrorKind::OutOfDomain);
    refused(open_loop::Arrivals::new(open_loop::Spacing::Grid, 0.0, 1), ErrorKind::OutOfDomain);
    refused(open_loop::Recorder::new(1), ErrorKind::OutOfDomain);
    refused(open_loop::longest_queue(&[(5, 4)]), ErrorKind::OutOfDomain);
    let empty = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    refused(histogram::percentile(&empty, 1.0), ErrorKind::OutOfDomain);
}

#[test]
fn without_spread_the_interval_is_the_point() {
    let settings = Settings::default();
    let up = paired::estimate(&[0.05; 8], &settings).unwrap();
    assert!((up.interval.low - 0.05f64.exp()).abs() < 1e-12 && up.interval.width() < 1e-12);
    assert_eq!((up.p_value, up.log_sd), (0.0, 0.0));
    assert_eq!(judge(&up, Better::Higher, 0.02).unwrap().verdict, Verdict::Improvement);
    let none = paired::estimate(&[0.0; 8], &settings).unwrap();
    assert_eq!((none.p_value, none.signed_rank_p, none.ratio), (1.0, 1.0, 1.0));
    assert_eq!(judge(&none, Better::Higher, 0.02).unwrap().verdict, Verdict::Same);
    assert_eq!(spread::compare_spread(&[1.0, 1.0], &[2.0, 2.0]).unwrap().p_value, 1.0);
    let flat = steady::classify(&[5.0; 60], 1.0, 0.02).unwrap();
    assert_eq!((flat.shape, flat.steady_rate, flat.lag_1), (steady::Shape::Flat, 5.0, 0.0));
}

#[test]
fn exact_tests_cannot_be_more_certain_than_their_patterns() {
    for count in 1..=8 {
        let all_down: Vec<f64> = (1..=count).map(|value| -f64::from(value)).collect();
        let least = 2.0 / 2f64.powi(count);
        assert!((rank::signed_rank_test(&all_down).unwrap() - least.min(1.0)).abs() < 1e-12);
        assert!((rank::sign_flip_test(&all_down, 0).unwrap() - least.min(1.0)).abs() < 1e-12);
        assert_eq!(rank::hodges_lehmann_interval(&all_down, 0.95).unwrap().is_some(), count >= 6);
    }
}

#[test]
fn what_was_judged_survives_a_report() {
    let estimate =
        paired::estimate(&[-0.03, -0.031, -0.028, -0.035, -0.03, -0.026], &Settings::default()).unwrap();
    let text = serde_json::to_string(&estimate).unwrap();
    assert_eq!(serde_json::from_str::<paired::PairedRatio>(&text).unwrap(), estimate);
    assert_eq!(serde_json::to_string(&Verdict::Regression).unwrap(), "\"regression\"");
}
