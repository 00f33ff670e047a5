//! The differences that the lab must find, and those it must not, on records of known truth. The noise is that of a
//! quiet small host: 0.75 % in each session, and 0.3 % that all steps of a session share, so that pairs of equals
//! differ by 0.8 % in the median, as those of published point releases do on eight cores.

use crate::analysis::judge::Word;
use crate::analysis::results::Results;
use crate::analysis::stalls;
use crate::testing::{Fake, Noise, fake_record};

/// Sessions that differ by noise alone, with costs that follow the speed.
fn honest(noise: &mut Noise, session: &Fake<'_>) -> Vec<(&'static str, f64)> {
    let speed = noise.around(1.0, 0.0075) * session.offset;
    vec![
        ("ops_sec", 100_000.0 * speed),
        ("proc_cpu_us/o", 10.0 / speed),
        ("vcs/o", noise.around(0.01, 0.05)),
        ("proc_rKB/o", 0.0),
    ]
}

fn word(results: &Results, step: &str, target: usize) -> Word {
    let row = results.steps.iter().position(|known| known == step).unwrap();
    results.table(0, "ops_sec")[row][target].as_ref().unwrap().verdict.unwrap().word
}

#[test]
fn three_percent_of_processor_time_are_found_within_twenty_pairs_and_named() {
    let mut found = 0;
    for seed in 0..5 {
        let mut noise = Noise::new(seed);
        let (_temp, store) = fake_record(20, &["fillseq", "readrandom"], seed, &mut |session| {
            let mut metrics = honest(&mut noise, session);
            if session.target == 1 && session.step == "readrandom" {
                metrics[0].1 /= 1.03;
                metrics[1].1 *= 1.03;
            }
            metrics
        });
        let results = Results::load(&store, 1).unwrap();
        assert_ne!(word(&results, "readrandom", 1), Word::Same, "seed {seed}");
        assert!(!word(&results, "fillseq", 1).is_call(), "seed {seed}");
        if word(&results, "readrandom", 1) == Word::Regression {
            found += 1;
            let sentence = results.explain("readrandom", 1, 0).unwrap().sentence;
            assert!(sentence.contains("by more processor time (proc_cpu_us/o "), "{sentence}");
        }
    }
    // Power, not luck: an interval of half a per cent beside a margin of 2 and a change of 3.
    assert!(found >= 4, "{found} of 5");
}

/// A cached read-only step that is 3.4 times as fast, on a host that writes 200 KB and switches 40 times a second whatever
/// is measured.
fn cached_reads(with_processor_time: bool) -> String {
    let mut noise = Noise::new(21);
    let (_temp, store) = fake_record(6, &["fillseq", "readrandom"], 21, &mut |session| {
        let speed = if session.target == 1 { 3.4 } else { 1.0 };
        let rate = noise.around(300_000.0, 0.01) * speed;
        let mut metrics = vec![
            ("ops_sec", rate),
            ("wKB/o", noise.around(200.0, 0.02) / rate),
            ("proc_wKB/o", noise.around(2.0, 0.02) / rate),
            ("vcs/o", noise.around(40.0, 0.02) / rate),
            ("cs/o", noise.around(900.0, 0.02) / rate),
        ];
        if with_processor_time {
            metrics.push(("proc_cpu_us/o", noise.around(0.99e6, 0.002) / rate));
        }
        metrics
    });
    Results::load(&store, 1).unwrap().explain("readrandom", 1, 0).unwrap().sentence
}

#[test]
fn a_background_rate_divided_by_operations_explains_nothing() {
    let sentence = cached_reads(true);
    assert!(sentence.contains("less processor time (proc_cpu_us/o"), "{sentence}");
    assert!(!sentence.contains("writing") && !sentence.contains("switches"), "{sentence}");
    let sentence = cached_reads(false);
    assert!(
        sentence.contains("not explained by what was counted; vcs/o, proc_wKB/o moved with operations"),
        "{sentence}"
    );
}

/// A step that writes and waits for the device: compaction takes a quarter of a processor whatever is done, the load's own
/// threads half a microsecond an operation. The target does 1.5 times as many.
fn writes_beside_compaction(threads_apart: bool) -> String {
    let mut noise = Noise::new(23);
    let (_temp, store) = fake_record(8, &["fillseq", "overwrite"], 23, &mut |session| {
        let rate = noise.around(100_000.0, 0.01) * if session.target == 1 { 1.5 } else { 1.0 };
        let (own, background) = (noise.around(0.5, 0.002), noise.around(0.25e6, 0.01) / rate);
        let mut metrics = vec![("ops_sec", rate), ("proc_cpu_us/o", own + background)];
        if threads_apart {
            metrics.extend([("load_cpu_us/o", own), ("back_cpu_us/o", background)]);
        }
        metrics
    });
    Results::load(&store, 1).unwrap().explain("overwrite", 1, 0).unwrap().sentence
}

#[test]
fn processor_time_of_compaction_at_its_own_rate_explains_nothing() {
    let sentence = writes_beside_compaction(true);
    let wanted = "not explained by what was counted; back_cpu_us/o moved with operations";
    assert!(sentence.contains(wanted), "{sentence}");
    // A record from before they were told apart.
    let sentence = writes_beside_compaction(false);
    assert!(sentence.ends_with("not explained by what was counted."), "{sentence}");
}

#[test]
fn reads_and_waits_of_compaction_explain_no_writes() {
    // Compaction reads 400 MB/s in both; operations take a quarter more processor time, and reads of the device wait longer.
    let explained = |step: &'static str| {
        let mut noise = Noise::new(25);
        let (_temp, store) = fake_record(8, &["fillseq", step], 25, &mut |session| {
            let dearer = session.target == 1;
            let rate = noise.around(if dearer { 80_000.0 } else { 100_000.0 }, 0.003);
            vec![
                ("ops_sec", rate),
                ("load_cpu_us/o", 0.99e6 / rate),
                ("proc_rKB/o", noise.around(409_600.0, 0.003) / rate),
                ("r/o", 0.016),
                ("rKB/o", 4.0),
                ("read_await", noise.around(if dearer { 1.5 } else { 1.0 }, 0.003)),
            ]
        });
        Results::load(&store, 1).unwrap().explain(step, 1, 0).unwrap().sentence
    };
    let sentence = explained("overwrite");
    assert!(sentence.contains("more processor time (load_cpu_us/o"), "{sentence}");
    assert!(!sentence.contains("reading") && !sentence.contains("waiting"), "{sentence}");
    let sentence = explained("readrandom");
    assert!(
        sentence.contains("reading from the device") && sentence.contains("waiting for each read"),
        "{sentence}"
    );
}

#[test]
fn a_scan_of_everything_is_not_explained_by_seconds_before_its_end() {
    // 10 million rows in 4.5 s and in 9.2 s; a record in which all whole seconds count as stalled, since rows are told at the end.
    let mut noise = Noise::new(24);
    let (_temp, store) = fake_record(6, &["fillseq", "readseq"], 24, &mut |session| {
        let (seconds, whole) = if session.target == 1 { (9.2, 9.0) } else { (4.5, 4.0) };
        let rate = noise.around(1e7 / seconds, 0.005);
        vec![("ops_sec", rate), ("load_cpu_us/o", 1e6 / rate), ("stalled_seconds", whole)]
    });
    let explained = Results::load(&store, 1).unwrap().explain("readseq", 1, 0).unwrap();
    assert!(explained.sentence.contains("more processor time (load_cpu_us/o"), "{}", explained.sentence);
    assert!(!explained.sentence.contains("stall"), "{}", explained.sentence);
}

#[test]
fn a_drift_over_the_session_is_nobodys_fault() {
    for seed in 0..5 {
        let mut noise = Noise::new(100 + seed);
        let steps = ["fillseq", "readrandom", "fwdrange", "revrange", "overwrite"];
        let (_temp, store) = fake_record(6, &steps, seed, &mut |session| {
            let mut metrics = honest(&mut noise, session);
            // Everything gets slower by 2 % from the first session to the last.
            metrics[0].1 *= 1.0 - 0.02 * session.progress;
            metrics
        });
        let results = Results::load(&store, 1).unwrap();
        for step in steps {
            for target in [1, 2] {
                assert!(!word(&results, step, target).is_call(), "seed {seed}, {step}, {target}");
            }
        }
        let offset = results.offset(0)[1].expect("five steps tell an offset");
        assert!(!offset.word.is_call() && (offset.ratio - 1.0).abs() < 0.02, "{offset:?}");
    }
}

#[test]
fn a_build_that_is_slower_on_everything_has_one_row_for_it() {
    let mut noise = Noise::new(7);
    let steps = ["fillseq", "readrandom", "fwdrange", "revrange", "overwrite"];
    let (_temp, store) = fake_record(8, &steps, 7, &mut |session| {
        let mut metrics = honest(&mut noise, session);
        metrics[0].1 *= if session.target == 1 { 0.93 } else { 1.0 };
        metrics
    });
    let results = Results::load(&store, 1).unwrap();
    let offsets = results.offset(0);
    assert!(offsets[0].is_none());
    assert_eq!(offsets[1].unwrap().word, Word::Regression);
    assert!(!offsets[2].unwrap().word.is_call(), "the twin");
    // Of two targets that could be called the surer one is half as sure as alone, if the other is not called.
    let q_values = [1, 2].map(|target| offsets[target].unwrap().q.unwrap());
    let mut alone = Results::load(&store, 1).unwrap();
    alone.measured.retain(|row| row.target != 2);
    let alone = alone.offset(0)[1].unwrap().q.unwrap();
    assert!(alone < q_values[0] && q_values[0] < q_values[1], "{alone}, {q_values:?}");
    let text = crate::report::show::compare(&results, 0, "ops_sec");
    assert!(text.contains("all steps") && text.contains("offset"), "{text}");
}

#[test]
fn stalls_are_a_verdict_though_the_mean_hides_them() {
    let mut noise = Noise::new(11);
    let (temp, store) = fake_record(8, &["fillseq", "overwrite"], 11, &mut |session| {
        let mut metrics = honest(&mut noise, session);
        let stands_still = session.target == 1 && session.step == "overwrite";
        metrics.push((
            "longest_gap",
            if stands_still { noise.around(4000.0, 0.1) } else { noise.around(9.0, 0.3) },
        ));
        metrics.push(("slow_seconds", if stands_still { 2.0 } else { 0.0 }));
        metrics.push(("stalled_seconds", if stands_still { 4.0 } else { 0.0 }));
        metrics
    });
    let results = Results::load(&store, 1).unwrap();
    assert!(!word(&results, "overwrite", 1).is_call());
    let rows = stalls::table(&results, 0);
    let words = |target: usize, step: &str| -> Vec<Word> {
        rows.iter()
            .filter(|row| row.step == step)
            .map(|row| row.cells[target].unwrap().word.unwrap())
            .collect()
    };
    assert_eq!(words(1, "overwrite"), [Word::Regression; 3]);
    assert_eq!(words(2, "overwrite"), [Word::Same; 3]);
    assert_eq!(words(1, "fillseq"), [Word::Same; 3]);
    let text = crate::report::show::compare(&results, 0, "ops_sec");
    assert!(text.contains("gap [ms]") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page =
        crate::report::site::write(&store, 1, &temp.path().join("site"), crate::report::site::Form::Full)
            .unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("overwrite, longest_gap [ms]") && !page.contains("fillseq, longest_gap [ms]"));
    assert_eq!(
        crate::report::show::exit_code(&results, 0, "ops_sec"),
        2,
        "who stands still fails the comparison"
    );
}

#[test]
fn a_longer_tail_fails_the_comparison_though_the_mean_is_the_same() {
    let code = |factor: f64| {
        let mut noise = Noise::new(12);
        let (_temp, store) = fake_record(8, &["fillseq", "readrandom"], 12, &mut |session| {
            let mut metrics = vec![("ops_sec", noise.around(1e5, 0.002)), ("p99", noise.around(20.0, 0.02))];
            if session.target == 1 && session.step == "readrandom" {
                metrics[1].1 *= factor;
            }
            metrics
        });
        let results = Results::load(&store, 1).unwrap();
        let text = crate::report::show::compare(&results, 0, "ops_sec");
        assert_eq!(text.contains("p99 [us]"), factor != 1.0, "{text}");
        crate::report::show::exit_code(&results, 0, "ops_sec")
    };
    assert_eq!((code(1.0), code(1.5), code(0.5)), (0, 2, 0));
}

/// Throughput of the base and its twin in live experiments: `experiment step block base twin`, as `cargo xtask twins` writes it.
const LIVE: &str = include_str!("../../tests/fixtures/aa/live.tsv");

#[test]
fn live_experiments_of_the_base_against_itself_make_few_false_calls() {
    use crate::analysis::judge::{Better, Question, judge};
    use std::collections::BTreeMap;
    let mut experiments = BTreeMap::<&str, BTreeMap<&str, Vec<(f64, f64)>>>::new();
    for line in LIVE.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let [experiment, step, _block, base, twin] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}: five columns")
        };
        let pair = (twin.parse().unwrap(), base.parse().unwrap());
        experiments.entry(experiment).or_default().entry(step).or_default().push(pair);
    }
    assert!(experiments.len() >= 20, "{} experiments", experiments.len());
    let steady = steady_steps(experiments.values());
    assert!(steady.len() >= 2, "a false call is seen where pairs do not scatter: {steady:?}");
    let (mut calls, mut cells, mut steady_calls) = (0, 0, 0);
    for steps in experiments.values() {
        let question = |(step, pairs): (&&str, &Vec<(f64, f64)>)| Question {
            name: (step.to_string(), "twin".to_string()),
            pairs: pairs.clone(),
            control: true,
            doubt: None,
            delta: 0.02,
            noise: None,
        };
        let questions: Vec<Question> = steps.iter().map(question).collect();
        let verdicts = judge("ops_sec", Better::Higher, &questions);
        cells += verdicts.len();
        for (step, verdict) in steps.keys().zip(&verdicts) {
            let called = usize::from(verdict.as_ref().is_some_and(|verdict| verdict.word.is_call()));
            calls += called;
            steady_calls += called * usize::from(steady.contains(step));
        }
    }
    assert!(cells >= 60 && calls * 20 <= cells, "{calls} of {cells} cells were called");
    let steady_cells = steady.len() * experiments.len();
    assert!(
        steady_calls * 20 <= steady_cells,
        "{steady_calls} of {steady_cells} cells of steady steps were called"
    );
}

/// The steps whose pairs scatter by less than a tenth, as root mean square of their log ratios over all experiments.
fn steady_steps<'a>(
    experiments: impl Iterator<Item = &'a std::collections::BTreeMap<&'a str, Vec<(f64, f64)>>>,
) -> Vec<&'a str> {
    let mut logs = std::collections::BTreeMap::<&str, Vec<f64>>::new();
    for (step, pairs) in experiments.flatten() {
        logs.entry(step).or_default().extend(pairs.iter().map(|(twin, base)| (twin / base).ln()));
    }
    let rms = |logs: &[f64]| (logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64).sqrt();
    logs.into_iter().filter(|(_, logs)| rms(logs) < 0.1).map(|(step, _)| step).collect()
}
