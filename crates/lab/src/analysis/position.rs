//! Whether it mattered who worked first, step by step: the lab's own orders under test.
//!
//! A step that is done at once gives one place and one log ratio a block. One that is done in slices gives both for each slice, and
//! one effect a block.
//! Next: `planning/balanced.rs` for the orders, `outcrop_lab_stats::position` for the test.

use crate::analysis::results::Results;
use crate::store::StepRow;
use outcrop_lab_stats::multiple::benjamini_hochberg;
use outcrop_lab_stats::paired::Settings;
use outcrop_lab_stats::position::{PositionEffect, position_effect, position_effect_of_slices};
use serde::Serialize;

/// Rate of false findings over all steps and targets of a report: a remark on a host should not be due to chance.
const ALPHA: f64 = 0.01;

/// The effect of place on one step, between a target and the base.
#[derive(Clone, Debug, Serialize)]
pub struct PlaceRow {
    /// Step.
    pub step: String,
    /// Number of the target.
    pub target: usize,
    /// The gain of an earlier place.
    pub effect: PositionEffect,
    /// Whether places are those of slices, and not of blocks.
    pub in_slices: bool,
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
            let (effect, in_slices) = match of_blocks(results, number, target, base) {
                Some(effect) => (effect, false),
                None => match of_slices(results, number, target, base) {
                    Some(effect) => (effect, true),
                    None => continue,
                },
            };
            rows.push(PlaceRow { step: step.clone(), target, effect, in_slices, q_value: 1.0 });
        }
    }
    let p_values: Vec<f64> = rows.iter().map(|row| row.effect.p_value).collect();
    for (row, q_value) in rows.iter_mut().zip(benjamini_hochberg(&p_values).unwrap_or_default()) {
        row.q_value = q_value;
    }
    rows
}

/// The effect on a step in which each target has one place in a block.
fn of_blocks(results: &Results, number: usize, target: usize, base: usize) -> Option<PositionEffect> {
    let plan = &results.experiment.plan;
    let step = &plan.steps[number].step.name;
    let (own, of_base) = (results.values(step, target, "ops_sec"), results.values(step, base, "ops_sec"));
    let pairs = own.iter().filter_map(|(block, value)| {
        let base_value = of_base.get(block).filter(|base| **base > 0.0 && *value > 0.0)?;
        let earlier = plan.place(number, target, *block)? < plan.place(number, base, *block)?;
        Some(((value / base_value).ln(), earlier))
    });
    let (logs, earlier): (Vec<f64>, Vec<bool>) = pairs.unzip();
    position_effect(&logs, &earlier, &Settings::default()).ok()?
}

/// The effect on a step that is done in slices; `None` also where the record is of a time when slices were not kept apart.
fn of_slices(results: &Results, number: usize, target: usize, base: usize) -> Option<PositionEffect> {
    let plan = &results.experiment.plan;
    let step = &plan.steps[number].step.name;
    let turn = plan.turns().into_iter().find(|turn| turn.contains(&number))?;
    let of_block = |own: &StepRow| {
        let other = results.rows(step, base).find(|other| other.block == own.block)?;
        let orders = plan.turn_orders(own.block, &turn);
        let (own_parts, parts) = (&own.result.parts, &other.result.parts);
        if own_parts.len() != orders.len() || parts.len() != orders.len() {
            return None;
        }
        let slices = orders.iter().zip(own_parts.iter().zip(parts)).filter_map(|(order, (own, other))| {
            let log = (rate(own)? / rate(other)?).ln();
            let place = |wanted| order.iter().position(|target| *target == wanted);
            Some((log, place(target)? < place(base)?))
        });
        Some(slices.unzip())
    };
    let blocks: Vec<(Vec<f64>, Vec<bool>)> = results.rows(step, target).filter_map(of_block).collect();
    position_effect_of_slices(&blocks, &Settings::default()).ok()?
}

/// Operations per second of a slice in which anything was done.
fn rate((ops, seconds): &(u64, f64)) -> Option<f64> {
    (*ops > 0 && *seconds > 0.0).then(|| *ops as f64 / seconds)
}

/// Where place mattered, in sentences.
pub fn sentences(results: &Results, base: usize) -> Vec<String> {
    let names = results.labels();
    let said = |row: PlaceRow| {
        let PositionEffect { ratio, interval, .. } = row.effect;
        format!(
            "{}: of {} and {} who worked first was {ratio:.3} times as fast as it would have been second [{:.3}, {:.3}]; \
             orders are balanced, so ratios hold, but this host treats first and second differently",
            row.step, names[row.target], names[base], interval.low, interval.high
        )
    };
    table(results, base).into_iter().filter(PlaceRow::is_finding).map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, fake_record};

    #[test]
    fn a_host_that_treats_the_first_differently_is_told_of_and_ratios_hold() {
        let told = |loss: f64| {
            let mut noise = Noise::new(31);
            let mut measured = [0usize; 3];
            let plan = {
                let (_temp, store) = fake_record(12, &["fillseq"], 31, &mut |_| vec![("ops_sec", 1.0)]);
                store.experiment(1).unwrap().plan
            };
            let (_temp, store) = fake_record(12, &["fillseq"], 31, &mut |session| {
                let block = measured[session.target] as i64;
                measured[session.target] += 1;
                // The loss of the first of two; the last of three loses it twice.
                let place = plan.place(0, session.target, block).unwrap() as f64;
                vec![("ops_sec", noise.around(1000.0, 0.002) * (1.0 - loss * place))]
            });
            let results = Results::load(&store, 1).unwrap();
            let verdict = results.table(0, "ops_sec")[0][1].as_ref().unwrap().verdict.unwrap();
            assert!(!verdict.word.is_call(), "{verdict:?}");
            (sentences(&results, 0), crate::report::show::remarks(&results))
        };
        let (found, remarks) = told(0.03);
        assert!(
            !found.is_empty() && found.iter().all(|said| remarks.contains(said)),
            "{found:?} {remarks:?}"
        );
        assert_eq!(told(0.0).0, Vec::<String>::new());
    }
}
