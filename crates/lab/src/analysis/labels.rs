//! The remarks that a reader must know before believing a measurement.
//!
//! A label that invalidates keeps the measurement out of verdicts; the others stand beside it.

use crate::analysis::judge;
use crate::experiment::WorkloadKind;
use crate::experiment::steps::PlannedStep;
use crate::probe::derive::Metrics;
use crate::report::text::amount;
use outcrop_lab_load::steps::OpenLoopResult;
use outcrop_lab_load::{StepKind, StepResult};
use outcrop_lab_stats::steady::Shape;
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
/// Share of the operations that are due that must be done.
const ARRIVALS: f64 = 0.95;
/// Keys that a background writer has rewritten within a moment: what it wrote of them never leaves the memtable.
const NARROW: u64 = 512;
/// Processors' worth of work by others that is too much.
const OTHER_CPU: f64 = 0.1;
/// Per cent of the processor time that others may take of a virtual machine.
const STEAL_PERCENT: f64 = 1.0;
/// Share by which memory may grow while a step only reads.
const MEMORY_GROWTH: f64 = 0.01;
/// Share of what it may hold, or of the data if they are fewer, that the block cache must have when a step begins to read.
const CACHE_FILL: f64 = 0.95;
/// Share by which page faults of an operation may fall from a step's first half to its second, and the least worth a word.
const FAULTS_FALL: f64 = 0.2;
const FAULTS: f64 = 0.01;
/// Seconds below which a step is short: change points of a minute are found.
const ENOUGH_SECONDS: usize = 60;
/// Share by which a step may end early, or its operations miss the time its threads had.
const TIME: f64 = 0.05;
/// Device reads per operation above which a step is not cached.
const CACHED_READS: f64 = 0.001;

/// Share by which fewer keys may be there than chance should leave.
const CHANCE: f64 = 0.02;

/// Name of the label of a step that the engine does not have.
pub const NOT_OFFERED: &str = "not offered";

/// The label in place of a step that the engine does not have.
pub fn not_offered(why: &str) -> Label {
    label(NOT_OFFERED, true, format!("not offered by this target: {why}"))
}

/// Operations fell due faster than they were done: response times then say how long the step was, not how fast. Those that
/// were due count, and not the rate: at random times a short step has more or fewer of them by chance.
fn rate_not_kept(open: &OpenLoopResult) -> Option<Label> {
    let OpenLoopResult { rate, unserved, served, due, .. } = open;
    ((*served as f64) < *due as f64 * ARRIVALS).then(|| {
        let text = format!(
            "{served} of {due} operations that were due, at {rate:.0} a second, were done; {unserved} never started"
        );
        label("rate not kept", true, text)
    })
}

/// Everything there is to say about a measured step.
pub fn labels(
    kind: WorkloadKind,
    delta: f64,
    step: &PlannedStep,
    result: &StepResult,
    metrics: &Metrics,
) -> Vec<Label> {
    let mut labels = Vec::new();
    let metric = |name: &str| metrics.get(name).copied();
    if result.ops == 0 {
        labels.push(label("no operations", true, "no operation was completed".into()));
    }
    if step.step.while_writing && result.writer_achieved < WRITER_RATE {
        let percent = result.writer_achieved * 100.0;
        let text = match step.sql {
            None => format!("the background writer kept {percent:.1} % of its rate"),
            Some(_) => format!(
                "the inserts beside the queries reached {percent:.1} % of their rate, and {:.0} % are asked for: less was \
                 written than elsewhere, so its queries are not comparable",
                WRITER_RATE * 100.0
            ),
        };
        labels.push(label("writer behind", true, text));
    }
    if step.step.while_writing && step.step.writer_num <= NARROW {
        let text = format!(
            "the writer beside it writes {} keys only: reads of those are served by the memtable",
            step.step.writer_num
        );
        labels.push(label("not meaningful", true, text));
    }
    // After a load of random keys chance decides how many are there.
    let slack = |loaded: f64| if loaded < 1.0 { CHANCE } else { 0.0 };
    if step.must_find()
        && let Some(loaded) = step.loaded
        && (result.found as f64) < result.ops as f64 * (loaded - slack(loaded))
    {
        let text = format!("{} of {} keys were not found", result.ops - result.found, result.ops);
        labels.push(label("keys missing", true, text));
    }
    if let Some(note) = &result.note {
        labels.push(label("note", false, note.clone()));
    }
    if let Some(open) = &result.open {
        labels.extend(rate_not_kept(open));
    }
    if step.oversubscribed {
        let text = format!("{} threads leave no core for background work", step.in_flight());
        labels.push(label("oversubscribed", false, text));
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
    if reads_everything(step)
        && let Some(fill) = metric("cache_fill").filter(|fill| *fill < CACHE_FILL)
    {
        let text = format!(
            "the block cache had {:.0} % of what it may hold or of the data: it was still filling",
            fill * 100.0
        );
        labels.push(label("cache filling", false, text));
    }
    if step.only_reads()
        && step.report
        && let Some(growth) = metric("rss_growth").filter(|growth| *growth > MEMORY_GROWTH)
    {
        let text = format!("memory grew by {:.1} % while it read: caches were still filling", growth * 100.0);
        labels.push(label("memory grew", false, text));
    }
    if step.only_reads()
        && step.report
        && metric("fault/o").is_some_and(|faults| faults > FAULTS)
        && let Some(fall) = metric("fault_fall").filter(|fall| *fall > FAULTS_FALL)
    {
        let text = format!(
            "page faults per operation fell by {:.0} %: memory was still being fetched",
            fall * 100.0
        );
        labels.push(label("faults fell", false, text));
    }
    labels.extend(time_lost(step, result));
    if let Some(other) = metric("other_cpu").filter(|other| *other > OTHER_CPU) {
        let text = format!("other programs used {other:.2} processors meanwhile");
        labels.push(label("other load", false, text));
    }
    if let Some(times) = metric("throttled").filter(|times| *times > 0.0) {
        let text = format!("the control group ran out of processor time {times:.0} times");
        labels.push(label("throttled", true, text));
    }
    if let Some(steal) = metric("steal").filter(|steal| *steal > STEAL_PERCENT) {
        let text = format!("{steal:.1} % of the processor time went to other virtual machines");
        labels.push(label("steal", false, text));
    }
    if step.writes()
        && result.counters.ingest_gb > 0.5
        && let Some(amplification) = metric("write_amp_device").filter(|value| *value < 0.5)
    {
        let text = format!("the device got {amplification:.2} bytes for each byte of users");
        labels.push(label("not durable", false, text));
    }
    if step.step.ops.is_none() {
        labels.extend(steadiness(&result.per_second, delta));
    }
    labels
}

/// Whether a step in reports reads all keys there are, about equally often: what it reads fills the block cache.
fn reads_everything(step: &PlannedStep) -> bool {
    let chosen = &step.step;
    let all = chosen.num >= chosen.writer_num && chosen.exp_range == 0.0;
    step.only_reads() && step.report && all && chosen.kind != StepKind::ReadMissing
}

/// Whether a timed step of a closed loop ended early, or its operations do not fill the time of its threads.
fn time_lost(step: &PlannedStep, result: &StepResult) -> Option<Label> {
    if step.step.ops.is_some() || step.step.arrival.is_some() || result.ops == 0 {
        return None;
    }
    if result.seconds < step.step.seconds * (1.0 - TIME) {
        let text =
            format!("it ended after {} of {} seconds", amount(result.seconds), amount(step.step.seconds));
        return Some(label("ended early", false, text));
    }
    let (had, used) =
        (result.seconds * f64::from(step.step.threads), result.micros_per_op * result.ops as f64 / 1e6);
    ((used / had - 1.0).abs() > TIME).then(|| {
        let text =
            format!("operations took {} seconds of the {} that threads had", amount(used), amount(had));
        label("counts do not fit", false, text)
    })
}

fn steadiness(per_second: &[u64], delta: f64) -> Option<Label> {
    let Some(found) = judge::steadiness(per_second, delta) else {
        let text = format!("{} whole seconds are too few to tell whether it was steady", per_second.len());
        return Some(label("short", false, text));
    };
    let name = match found.shape {
        Shape::Flat if per_second.len() < ENOUGH_SECONDS => {
            let text = format!("{} seconds: what changes within a minute was not seen", per_second.len());
            return Some(label("short", false, text));
        }
        Shape::Flat => return None,
        Shape::WarmUp => "warm-up",
        Shape::SlowDown => "slow-down",
        Shape::NoSteadyState | Shape::Inconsistent => "no steady state",
    };
    let text = format!(
        "the last {:.0} % of the step ran at {:.2} of the whole step's rate",
        found.steady_share * 100.0,
        found.steady_rate / found.whole_rate
    );
    Some(label(name, false, text))
}

/// Operations per second of the last flat part of a step, if it was long enough to have parts.
pub fn steady_rate(per_second: &[u64], delta: f64) -> Option<f64> {
    judge::steadiness(per_second, delta).map(|found| found.steady_rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_and_result;

    fn names(kind: WorkloadKind, step: &PlannedStep, result: &StepResult, metrics: &Metrics) -> Vec<String> {
        labels(kind, 0.02, step, result, metrics).into_iter().map(|label| label.name).collect()
    }

    #[test]
    fn a_good_measurement_has_no_labels() {
        let (step, mut result) = step_and_result("readrandom", 1000, 60.0);
        result.per_second = vec![100; 60];
        assert_eq!(names(WorkloadKind::Byrx, &step, &result, &Metrics::new()), Vec::<String>::new());
    }

    #[test]
    fn what_makes_a_measurement_worthless_is_named() {
        let (step, mut result) = step_and_result("readrandom", 1000, 60.0);
        result.per_second = vec![100; 60];
        result.found = 632;
        let all = labels(WorkloadKind::Byrx, 0.02, &step, &result, &Metrics::new());
        assert!(all[0].invalid && all[0].text.starts_with("368 of 1000"), "{all:?}");
        let (step, mut result) = step_and_result("readwhilewriting", 1000, 30.0);
        result.writer_achieved = 0.5;
        assert!(
            names(WorkloadKind::Byrx, &step, &result, &Metrics::new()).contains(&"writer behind".to_string())
        );
    }

    #[test]
    fn cached_steps_that_read_the_device_and_other_load_are_named() {
        let (step, mut result) = step_and_result("readrandom", 1000, 60.0);
        result.per_second = vec![100; 60];
        let found = [("r/o", 0.2), ("other_cpu", 0.5), ("rss_growth", 0.05)];
        let metrics: Metrics = found.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let cached = names(WorkloadKind::Byrx, &step, &result, &metrics);
        assert_eq!(cached, ["not cached", "memory grew", "other load"]);
        assert_eq!(names(WorkloadKind::Iobuf, &step, &result, &metrics), ["memory grew", "other load"]);
        let metrics = Metrics::from([("throttled".to_string(), 2.0), ("steal".to_string(), 1.5)]);
        let found = labels(WorkloadKind::Byrx, 0.02, &step, &result, &metrics);
        assert!(found[0].invalid && found[0].name == "throttled" && found[1].name == "steal", "{found:?}");
    }

    #[test]
    fn a_cache_that_is_not_full_when_everything_is_read_is_named() {
        let (mut step, mut result) = step_and_result("readrandom", 1000, 60.0);
        result.per_second = vec![100; 60];
        let of = |step: &PlannedStep, fill: f64| {
            let metrics = Metrics::from([("cache_fill".to_string(), fill)]);
            labels(WorkloadKind::Byrx, 0.02, step, &result, &metrics)
        };
        let found = of(&step, 0.8);
        assert!(found[0].name == "cache filling" && !found[0].invalid, "{found:?}");
        assert!(found[0].text.contains("80 %"), "{found:?}");
        assert!(of(&step, 0.95).is_empty() && of(&step, 1.2).is_empty());
        step.step.num = 64;
        assert!(of(&step, 0.01).is_empty(), "few keys fill no cache");
        let (missing, _) = step_and_result("readmissing", 1000, 60.0);
        let (writing, _) = step_and_result("readwhilewriting", 1000, 60.0);
        for step in [missing, writing] {
            assert!(of(&step, 0.01).iter().all(|label| label.name != "cache filling"));
        }
    }

    #[test]
    fn a_rate_is_kept_if_what_was_due_was_done_however_much_that_was() {
        let (step, mut result) = step_and_result("readrandom", 9_000, 60.0);
        let mut label = |served: u64, unserved: u64, passed: u64| {
            result.open = Some(OpenLoopResult {
                rate: 200.0,
                percentiles: [0.0; 5],
                late: 0,
                unserved,
                served,
                due: served + unserved + passed,
            });
            let mut all = labels(WorkloadKind::Byrx, 0.02, &step, &result, &Metrics::new());
            all.retain(|label| label.name == "rate not kept");
            all.pop()
        };
        assert_eq!(label(9_000, 0, 0), None, "fewer than the rate came, by chance, and all were served");
        assert_eq!(label(11_500, 500, 0), None);
        let found = label(11_300, 700, 0).unwrap();
        assert!(found.invalid, "{found:?}");
        assert_eq!(
            found.text,
            "11300 of 12000 operations that were due, at 200 a second, were done; 700 never started"
        );
        assert!(label(1_000, 0, 500).is_some(), "their number ended the step, later than it should");
    }

    #[test]
    fn reads_beside_a_writer_of_few_keys_are_not_meaningful_and_limits_of_others_are_nobodys_fault() {
        let (mut step, mut result) = step_and_result("readwhilewriting", 1000, 30.0);
        let found = |step: &PlannedStep, result: &StepResult, name: &str| {
            names(WorkloadKind::Byrx, step, result, &Metrics::new()).contains(&name.to_string())
        };
        step.step.num = 64;
        assert!(!found(&step, &result, "not meaningful"), "the writer has all keys");
        step.step.writer_num = 64;
        assert!(found(&step, &result, "not meaningful"));
        result.writer_achieved = 0.5;
        assert!(found(&step, &result, "writer behind"));
        let (mut step, _) = step_and_result("overwrite", 1000, 30.0);
        step.step.write_rate = 5;
        assert!(!found(&step, &result, "writer behind"), "no writer runs beside it");
    }

    #[test]
    fn steps_that_change_while_they_run_are_named() {
        let rising: Vec<u64> = (0..60).map(|second| if second < 20 { 50 } else { 100 }).collect();
        assert_eq!(steadiness(&rising, 0.02).unwrap().name, "warm-up");
        let falling: Vec<u64> = (0..60).map(|second| if second < 20 { 100 } else { 50 }).collect();
        assert_eq!(steadiness(&falling, 0.02).unwrap().name, "slow-down");
        assert_eq!(steadiness(&[100; 60], 0.02), None);
        assert_eq!(steadiness(&[5; 3], 0.02).unwrap().name, "short");
        assert_eq!(steadiness(&[100; 59], 0.02).unwrap().name, "short");
        assert_eq!(steady_rate(&rising, 0.02), Some(100.0));
    }

    #[test]
    fn faults_that_fall_and_time_that_is_missing_are_named() {
        let (mut step, mut result) = step_and_result("readrandom", 1000, 60.0);
        result.per_second = vec![100; 60];
        step.step.seconds = 60.0;
        let faults = |fall: f64, each: f64| {
            let found = [("fault/o", each), ("fault_fall", fall)];
            Metrics::from(found.map(|(name, value)| (name.to_string(), value)))
        };
        let of = |result: &StepResult, metrics: &Metrics| names(WorkloadKind::Byrx, &step, result, metrics);
        assert_eq!(of(&result, &faults(0.5, 0.2)), ["faults fell"]);
        assert!(of(&result, &faults(0.1, 0.2)).is_empty() && of(&result, &faults(0.5, 0.001)).is_empty());
        let early = StepResult { seconds: 40.0, ..result_like(&result) };
        assert_eq!(of(&early, &Metrics::new()), ["ended early"]);
        let lost = StepResult { micros_per_op: result.micros_per_op / 2.0, ..result_like(&result) };
        assert_eq!(of(&lost, &Metrics::new()), ["counts do not fit"]);
        let labels = labels(WorkloadKind::Byrx, 0.02, &step, &lost, &Metrics::new());
        assert!(labels[0].text.contains("30.0 seconds of the 60.0"), "{labels:?}");
        // Of a step of less than a second, too, the two numbers differ as they are shown.
        step.step.seconds = 0.6;
        let seconds = 0.6;
        let short = StepResult { seconds, micros_per_op: 560.0, ..result_like(&result) };
        let text = time_lost(&step, &short).unwrap().text;
        assert_eq!(text, "operations took 0.560 seconds of the 0.600 that threads had");
    }

    fn result_like(result: &StepResult) -> StepResult {
        let (_, mut like) = step_and_result("readrandom", 1000, 60.0);
        like.per_second.clone_from(&result.per_second);
        like
    }
}
