//! Values for tests.

use crate::experiment::parse;
use crate::experiment::steps::PlannedStep;
use outcrop_lab_load::StepResult;
use outcrop_lab_load::counters::Counters;
use outcrop_lab_load::process::ProcessUsage;

/// The step `name` of the vocabulary on 1000 keys, and a result of it.
pub fn step_and_result(name: &str, ops: u64, seconds: f64) -> (PlannedStep, StepResult) {
    let text = format!(
        "title = 't'\nsteps = ['{name}']\n[workload]\nkind = 'byrx'\nkeys = 1000\n[[target]]\nengine = 'outcrop'\n"
    );
    let experiment = parse("t.toml", &text).unwrap();
    let step = experiment.planned_steps(&experiment.sizes(1 << 30, 4)).remove(0);
    let result = StepResult {
        ops,
        seconds,
        micros_per_op: seconds * 1e6 / ops as f64,
        bytes: ops * 420,
        found: ops,
        percentiles: [1.0, 2.0, 3.0, 4.0, 5.0],
        per_second: vec![(ops as f64 / seconds) as u64; seconds as usize],
        longest_gap_ms: 1.0,
        writer_achieved: 1.0,
        writer_lag_ms: 0.0,
        open: None,
        note: None,
        counters: Counters::default(),
        usage: ProcessUsage::default(),
        samples: outcrop_lab_load::steps::new_histogram(),
        responses: outcrop_lab_load::steps::new_histogram(),
    };
    (step, result)
}
