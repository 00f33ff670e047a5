//! Whether it mattered who worked first, step by step: the lab's own orders under test.
//!
//! Only steps in which each target has one place in a block are asked; slices change places many times a block.
//! Next: `planning/balanced.rs` for the orders, `outcrop_lab_stats::position` for the test.

use crate::analysis::results::Results;
use outcrop_lab_stats::multiple::benjamini_hochberg;
use outcrop_lab_stats::paired::Settings;
use outcrop_lab_stats::position::{PositionEffect, position_effect};
use serde::Serialize;

/// Rate of false findings over all steps and targets of a report: what is said of a host should not be said by chance.
const ALPHA: f64 = 0.01;

/// The effect of place on one step, between a target and the base.
#[derive(Clone, Debug, Serialize)]
pub struct PlaceRow {
    /// Step.
    pub step: String,
    /// Number of the target.
    pub target: usize,
    /// What it was worth to be earlier.
    pub effect: PositionEffect,
    /// p-value adjusted for all rows.
    pub q_value: f64,
}

impl PlaceRow {
    /// Whether place mattered.
    pub fn is_finding(&self) -> bool {
        self.q_value <= ALPHA
    }
}

/// Every step and target of which it can be told, against `base`.
pub fn table(results: &Results, base: usize) -> Vec<PlaceRow> {
    let plan = &results.experiment.plan;
    let mut rows = Vec::new();
    for step in &results.steps {
        let Some(number) = plan.steps.iter().position(|planned| planned.step.name == *step) else { continue };
        for target in (0..plan.targets.len()).filter(|target| *target != base) {
            let (own, of_base) =
                (results.values(step, target, "ops_sec"), results.values(step, base, "ops_sec"));
            let pairs = own.iter().filter_map(|(block, value)| {
                let base_value = of_base.get(block).filter(|base| **base > 0.0 && *value > 0.0)?;
                let earlier = plan.place(number, target, *block)? < plan.place(number, base, *block)?;
                Some(((value / base_value).ln(), earlier))
            });
            let (logs, earlier): (Vec<f64>, Vec<bool>) = pairs.unzip();
            if let Ok(Some(effect)) = position_effect(&logs, &earlier, &Settings::default()) {
                rows.push(PlaceRow { step: step.clone(), target, effect, q_value: 1.0 });
            }
        }
    }
    let p_values: Vec<f64> = rows.iter().map(|row| row.effect.p_value).collect();
    for (row, q_value) in rows.iter_mut().zip(benjamini_hochberg(&p_values).unwrap_or_default()) {
        row.q_value = q_value;
    }
    rows
}

/// What is to be said of place, in sentences; nothing where it cannot be told.
pub fn sentences(results: &Results, base: usize) -> Vec<String> {
    let rows = table(results, base);
    let findings: Vec<&PlaceRow> = rows.iter().filter(|row| row.is_finding()).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    if findings.is_empty() {
        return vec![format!("order: in none of {} comparisons did it matter who worked first", rows.len())];
    }
    let names = results.labels();
    let said = |row: &&PlaceRow| {
        let PositionEffect { ratio, interval, .. } = row.effect;
        format!(
            "order: on {} who worked before the other of {} and {} was {:.3} times as fast [{:.3}, {:.3}]; orders are \
             balanced, so ratios hold, but this host treats the first and the second differently",
            row.step, names[row.target], names[base], ratio, interval.low, interval.high
        )
    };
    findings.iter().map(said).collect()
}
