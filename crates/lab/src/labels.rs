//! What a reader must know about a measurement before believing it.
//!
//! A label that invalidates keeps the measurement out of verdicts; the others stand beside it.

use crate::experiment::WorkloadKind;
use crate::experiment::steps::PlannedStep;
use crate::probe::derive::Metrics;
use outcrop_lab_load::{StepKind, StepResult};
use serde::{Deserialize, Serialize};

/// One remark on one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// A short name, for counting.
    pub name: String,
    /// A sentence with the figures.
    pub text: String,
    /// Whether the measurement must not be compared.
    pub invalid: bool,
}

fn label(name: &str, invalid: bool, text: String) -> Label {
    Label { name: name.to_string(), text, invalid }
}

/// Share of its rate that a background writer must keep.
const WRITER_RATE: f64 = 0.95;
/// Processors' worth of work by others that is too much.
const OTHER_CPU: f64 = 0.1;
/// Device reads per operation above which a step is not cached.
const CACHED_READS: f64 = 0.001;
/// Seconds below which steadiness cannot be judged.
const SHORT: usize = 20;

/// Everything there is to say about a measured step.
pub fn labels(kind: WorkloadKind, step: &PlannedStep, result: &StepResult, metrics: &Metrics) -> Vec<Label> {
    let mut labels = Vec::new();
    let metric = |name: &str| metrics.get(name).copied();
    if result.ops == 0 {
        labels.push(label("no operations", true, "no operation was completed".into()));
    }
    if result.writer_achieved < WRITER_RATE {
        let percent = result.writer_achieved * 100.0;
        let text = format!("the background writer kept {percent:.0} % of its rate");
        labels.push(label("writer behind", true, text));
    }
    let must_find = step.step.kind == StepKind::ReadRandom;
    if must_find && result.found < result.ops {
        let text = format!("{} of {} keys were not found", result.ops - result.found, result.ops);
        labels.push(label("keys missing", true, text));
    }
    if step.step.kind == StepKind::ReadMissing && result.found > 0 {
        labels.push(label(
            "keys found",
            true,
            format!("{} keys that no load wrote were found", result.found),
        ));
    }
    if kind == WorkloadKind::Byrx
        && step.only_reads()
        && step.report
        && let Some(reads) = metric("r/o").filter(|reads| *reads > CACHED_READS)
    {
        let text = format!("{reads:.4} device reads per operation in a step that should be cached");
        labels.push(label("not cached", false, text));
    }
    if let Some(other) = metric("other_cpu").filter(|other| *other > OTHER_CPU) {
        let text = format!("other programs used {other:.2} processors meanwhile");
        labels.push(label("other load", false, text));
    }
    if step.writes()
        && result.counters.ingest_gb > 0.5
        && let Some(amplification) = metric("write_amp_device").filter(|value| *value < 0.5)
    {
        let text = format!("the device got {amplification:.2} bytes for each byte of users");
        labels.push(label("not durable", false, text));
    }
    if step.step.ops.is_none() {
        labels.extend(steadiness(&result.per_second));
    }
    labels
}

/// Compares the first and the last third of a step, each second being one measurement.
fn steadiness(per_second: &[u64]) -> Option<Label> {
    if per_second.len() < SHORT {
        let text = format!("{} s are too short to tell whether it was steady", per_second.len());
        return Some(label("short", false, text));
    }
    let third = per_second.len() / 3;
    let (head, tail) = (&per_second[..third], &per_second[per_second.len() - third..]);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
    let change = mean(tail) / mean(head) - 1.0;
    // Seconds of one step depend on each other: twice the standard error of independent ones is not enough.
    let spread = |part: &[u64]| {
        let m = mean(part);
        let squares: f64 = part.iter().map(|&ops| (ops as f64 - m).powi(2)).sum();
        (squares / (part.len() as f64 - 1.0)).sqrt() / m
    };
    let error = 4.0 * (spread(head).powi(2) + spread(tail).powi(2)).sqrt() / (third as f64).sqrt();
    if change.abs() < error.max(0.03) {
        return None;
    }
    let (name, word) = if change > 0.0 { ("warm-up", "faster") } else { ("slow-down", "slower") };
    Some(label(
        name,
        false,
        format!("the last third was {:.0} % {word} than the first", change.abs() * 100.0),
    ))
}

/// Operations per second of the part of a step that is left when its first third is dropped, if the step was
/// long enough and its first third differs; else of all of it.
pub fn steady_rate(per_second: &[u64]) -> Option<f64> {
    let differs = per_second.len() >= SHORT && steadiness(per_second).is_some();
    let part = if differs { &per_second[per_second.len() / 3..] } else { per_second };
    (!part.is_empty()).then(|| part.iter().sum::<u64>() as f64 / part.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_and_result;

    fn names(kind: WorkloadKind, step: &PlannedStep, result: &StepResult, metrics: &Metrics) -> Vec<String> {
        labels(kind, step, result, metrics).into_iter().map(|label| label.name).collect()
    }

    #[test]
    fn a_good_measurement_has_no_labels() {
        let (step, mut result) = step_and_result("readrandom", 1000, 30.0);
        result.per_second = vec![100; 30];
        assert_eq!(names(WorkloadKind::Byrx, &step, &result, &Metrics::new()), Vec::<String>::new());
    }

    #[test]
    fn what_makes_a_measurement_worthless_is_named() {
        let (step, mut result) = step_and_result("readrandom", 1000, 30.0);
        result.per_second = vec![100; 30];
        result.found = 632;
        let all = labels(WorkloadKind::Byrx, &step, &result, &Metrics::new());
        assert!(all[0].invalid && all[0].text.starts_with("368 of 1000"), "{all:?}");
        let (step, mut result) = step_and_result("readwhilewriting", 1000, 30.0);
        result.writer_achieved = 0.5;
        assert!(
            names(WorkloadKind::Byrx, &step, &result, &Metrics::new()).contains(&"writer behind".to_string())
        );
    }

    #[test]
    fn cached_steps_that_read_the_device_and_other_load_are_named() {
        let (step, mut result) = step_and_result("readrandom", 1000, 30.0);
        result.per_second = vec![100; 30];
        let metrics = Metrics::from([("r/o".to_string(), 0.2), ("other_cpu".to_string(), 0.5)]);
        assert_eq!(names(WorkloadKind::Byrx, &step, &result, &metrics), ["not cached", "other load"]);
        assert_eq!(names(WorkloadKind::Iobuf, &step, &result, &metrics), ["other load"]);
    }

    #[test]
    fn steps_that_change_while_they_run_are_named() {
        let rising: Vec<u64> = (0..30).map(|second| 100 + second * 5).collect();
        assert_eq!(steadiness(&rising).unwrap().name, "warm-up");
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert_eq!(steadiness(&falling).unwrap().name, "slow-down");
        let noisy: Vec<u64> = (0..30).map(|second| 100 + (second * 7919 % 13)).collect();
        assert_eq!(steadiness(&noisy), None);
        assert_eq!(steadiness(&[5; 3]).unwrap().name, "short");
        assert!(steady_rate(&rising).unwrap() > steady_rate(&noisy).unwrap());
    }
}
