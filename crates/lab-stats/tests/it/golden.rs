//! Golden vectors: `golden/make.py` wrote what SciPy, statsmodels and enumeration say.

use outcrop_lab_stats::{
    autocorrelation, histogram, interval, multiple, offset, paired, rank, rng, segments, spread, summary,
    warm_up,
};
use serde_json::Value;
use std::sync::LazyLock;

static GOLDEN: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../golden/golden.json")).unwrap());

fn rows(section: &Value) -> &Vec<Value> {
    let rows = section.as_array().unwrap();
    assert!(!rows.is_empty());
    rows
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// Equal to a relative error of 1e-9, or to 1e-12 of 1 near 0.
#[track_caller]
fn assert_close(what: &str, ours: f64, golden: f64) {
    assert_within(what, ours, golden, 1e-9);
}

#[track_caller]
fn assert_within(what: &str, ours: f64, golden: f64, relative: f64) {
    let allowed = relative * golden.abs() + 1e-12;
    assert!((ours - golden).abs() <= allowed, "{what}: ours {ours}, golden {golden}");
}

#[track_caller]
fn assert_interval(what: &str, ours: &interval::Interval, golden: &Value) {
    assert_close(&format!("{what}, low"), ours.low, number(&golden[0]));
    assert_close(&format!("{what}, high"), ours.high, number(&golden[1]));
}

#[test]
fn versions_are_named() {
    for library in ["numpy", "scipy", "statsmodels", "hdrhistogram"] {
        assert!(
            GOLDEN["versions"][library].as_str().is_some_and(|version| version.contains('.')),
            "{library}"
        );
    }
}

#[test]
fn generator_draws_the_sequence_of_the_script() {
    for (seed, first) in [0, 1, 42].into_iter().zip(rows(&GOLDEN["rng"])) {
        assert_eq!(rng::Rng::new(seed).next_u64(), first.as_u64().unwrap());
    }
}

#[test]
fn descriptions_of_a_sample() {
    for row in rows(&GOLDEN["paired"]) {
        let (name, values) = (row["name"].as_str().unwrap(), numbers(&row["values"]));
        let ours = summary::summarize(&values).unwrap();
        assert_close(name, ours.mean, number(&row["mean"]));
        assert_close(name, ours.median, number(&row["median"]));
        assert_close(name, ours.sd.unwrap(), number(&row["sd"]));
        assert_close(name, ours.mad_sd, number(&row["mad_sd"]));
        for pair in rows(&row["quantiles"]) {
            assert_close(name, summary::quantile(&values, number(&pair[0])).unwrap(), number(&pair[1]));
        }
    }
}

#[test]
fn t_test_and_t_intervals() {
    for row in rows(&GOLDEN["paired"]) {
        let (name, values) = (row["name"].as_str().unwrap(), numbers(&row["values"]));
        assert_close(name, interval::t_test(&values).unwrap(), number(&row["t_p"]));
        assert_interval(name, &interval::t_interval(&values, 0.95).unwrap(), &row["t_95"]);
        assert_interval(name, &interval::t_interval(&values, 0.99).unwrap(), &row["t_99"]);
    }
}

#[test]
fn hodges_lehmann_signed_rank_and_sign_flip() {
    for row in rows(&GOLDEN["paired"]) {
        let (name, values) = (row["name"].as_str().unwrap(), numbers(&row["values"]));
        assert_close(name, rank::hodges_lehmann(&values).unwrap(), number(&row["hodges_lehmann"]));
        let ours = rank::hodges_lehmann_interval(&values, 0.95).unwrap();
        match &row["hodges_lehmann_95"] {
            Value::Null => assert_eq!(ours, None, "{name}"),
            golden => assert_interval(name, &ours.unwrap(), golden),
        }
        assert_close(name, rank::signed_rank_test(&values).unwrap(), number(&row["signed_rank_p"]));
        if !row["sign_flip_p"].is_null() {
            assert_close(name, rank::sign_flip_test(&values, 1).unwrap(), number(&row["sign_flip_p"]));
        }
    }
}

#[test]
fn drawn_sign_flips_approach_the_counted_ones() {
    let values =
        numbers(&rows(&GOLDEN["paired"]).iter().find(|row| row["name"] == "twenty").unwrap()["values"]);
    let patterns = 1u32 << values.len();
    let total: f64 = values.iter().sum();
    let flipped = |pattern: u32| -> f64 {
        values.iter().enumerate().map(|(bit, v)| if pattern >> bit & 1 == 1 { -v } else { *v }).sum()
    };
    let counted = (0..patterns).filter(|pattern| flipped(*pattern).abs() >= total.abs() - 1e-12).count();
    let exact = counted as f64 / f64::from(patterns);
    let drawn = rank::sign_flip_test(&values, 9).unwrap();
    // Five standard errors of a share of 100 000.
    let allowed = 5.0 * (exact * (1.0 - exact) / 1e5).sqrt();
    assert!((drawn - exact).abs() < allowed, "{drawn} against {exact}");
}

#[test]
fn two_samples() {
    for row in rows(&GOLDEN["two_samples"]) {
        let (name, a, b) = (row["name"].as_str().unwrap(), numbers(&row["a"]), numbers(&row["b"]));
        assert_close(name, rank::rank_sum_test(&a, &b).unwrap(), number(&row["rank_sum_p"]));
        assert_close(name, rank::dominance(&a, &b).unwrap(), number(&row["dominance"]));
        assert_close(name, spread::compare_spread(&a, &b).unwrap().p_value, number(&row["brown_forsythe_p"]));
    }
}

#[test]
fn benjamini_hochberg() {
    for row in rows(&GOLDEN["multiple"]) {
        let ours = multiple::benjamini_hochberg(&numbers(&row["p"])).unwrap();
        for (ours, golden) in ours.iter().zip(numbers(&row["q"])) {
            assert_close("q", *ours, golden);
        }
    }
    assert_eq!(multiple::benjamini_hochberg(&[]).unwrap(), Vec::<f64>::new());
}

#[test]
fn intervals_of_rates() {
    for row in rows(&GOLDEN["rates"]) {
        let ours = multiple::rate(count(&row[0]), count(&row[1]), 0.95).unwrap();
        assert_close("low", ours.interval.low, number(&row[2]));
        assert_close("high", ours.interval.high, number(&row[3]));
    }
}

#[test]
fn series() {
    for row in rows(&GOLDEN["series"]) {
        let (name, values, lags) =
            (row["name"].as_str().unwrap(), numbers(&row["values"]), count(&row["lags"]));
        for (ours, golden) in
            autocorrelation::autocorrelation(&values, 5).unwrap().iter().zip(numbers(&row["acf"]))
        {
            assert_close(name, *ours, golden);
        }
        let long_run = autocorrelation::long_run_variance(&values, lags).unwrap();
        assert_close(name, long_run, number(&row["long_run_variance"]));
        let line = autocorrelation::trend(&values, lags).unwrap();
        assert_close(name, line.slope, number(&row["slope"]));
        assert_close(name, line.standard_error, number(&row["slope_se"]));
        assert_close(name, line.p_value, number(&row["slope_p"]));
        let thirds = warm_up::compare_thirds(&values).unwrap();
        assert_close(name, thirds.change.unwrap(), number(&row["thirds"][0]));
        assert_within(name, thirds.p_value, number(&row["thirds"][1]), 1e-8);
        if values.len() >= 20 {
            let cut = warm_up::mser(&values, 5).unwrap();
            assert_eq!(cut.map(|cut| cut as u64), row["mser_5"].as_u64(), "{name}");
        }
    }
}

#[test]
fn optimal_partitions() {
    for row in rows(&GOLDEN["partitions"]) {
        let settings = segments::Partition {
            sd: number(&row["sd"]),
            penalty: number(&row["penalty"]),
            least: count(&row["least"]),
        };
        let ours =
            segments::partition(&numbers(&row["values"]), &numbers(&row["weights"]), &settings).unwrap();
        let mut edges = vec![0];
        edges.extend(ours.iter().map(|segment| segment.end));
        let golden: Vec<usize> = rows(&row["edges"]).iter().map(count).collect();
        assert_eq!(edges, golden);
    }
}

fn table(value: &Value) -> Vec<Vec<Option<f64>>> {
    rows(value).iter().map(|row| row.as_array().unwrap().iter().map(Value::as_f64).collect()).collect()
}

#[test]
fn session_offsets() {
    let golden = &GOLDEN["offsets"];
    let ours = offset::remove_session_offset(&table(&golden["table"]), &paired::Settings::default()).unwrap();
    let theirs = numbers(&golden["blocks"]);
    assert_eq!(ours.blocks.len(), theirs.len());
    ours.blocks.iter().zip(theirs).for_each(|(ours, golden)| assert_close("offset", *ours, golden));
}

#[test]
fn histograms() {
    let golden = &GOLDEN["histograms"];
    let mut plain = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for value in rows(&golden["values"]) {
        plain.record(value.as_u64().unwrap()).unwrap();
    }
    for row in rows(&golden["plain"]) {
        let (q, golden) = (number(&row[0]), row[1].as_u64().unwrap());
        match histogram::percentile(&plain, q).unwrap() {
            Some(ours) => assert_within("plain", ours as f64, golden as f64, 1e-3),
            None => assert!(q > 0.99, "3 000 events are enough for {q}"),
        }
    }
}

#[test]
fn noise_floor_and_single_runs() {
    let golden = &GOLDEN["noise"];
    let ours = summary::noise_floor(&numbers(&golden["values"]), 0.05).unwrap();
    for (ours, name) in [
        (ours.median, "median"),
        (ours.p90, "p90"),
        (ours.p95, "p95"),
        (ours.max, "max"),
        (ours.beyond, "beyond"),
    ] {
        assert_close(name, ours, number(&golden[name]));
    }
    for row in rows(&GOLDEN["single"]) {
        let [value, sd, level] = [&row[0], &row[1], &row[3]].map(number);
        let noise = paired::KnownNoise { log_sd: sd, count: count(&row[2]) };
        let ours = paired::estimate_single(value, &noise, level).unwrap();
        assert_close("low", ours.interval.low.ln(), number(&row[4]));
        assert_close("high", ours.interval.high.ln(), number(&row[5]));
    }
}
