//! A whole report judged at once: every cell, corrected for their number, with the A/A cells as its own control.
//!
//! Benjamini-Hochberg runs per metric over all cells that can be called at all, A/A cells included: they go through
//! exactly what the others go through, so their false calls are the false-call rate of this report.

use crate::error::{Result, check, check_probability};
use crate::multiple::{Rate, benjamini_hochberg, rate};
use crate::paired::{KnownNoise, PairedRatio, Settings, estimate, estimate_single};
use crate::verdict::{Better, Judgement, Margin, Reason, Verdict, judge};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One cell to be judged: a test, a target, a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the test.
    pub test: String,
    /// Name of the target.
    pub target: String,
    /// Name of the metric; cells of one metric are corrected together.
    pub metric: String,
    /// Which way the metric should go.
    pub better: Better,
    /// The target is the base under another name.
    pub control: bool,
    /// Every session was steady in the same way; see [`crate::steady`].
    pub steady: bool,
    /// The difference that was asked for, and what a call must exceed.
    pub margin: Margin,
    /// Noise of this test from history, used if there is only one pair.
    pub noise: Option<KnownNoise>,
    /// ln(target / base) per block, without the session offset.
    pub log_ratios: Vec<f64>,
}

/// How a report is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// How intervals are built.
    pub settings: Settings,
    /// False discovery rate per metric. Default 0.05.
    pub false_discovery_rate: f64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { settings: Settings::default(), false_discovery_rate: 0.05 }
    }
}

/// The verdict on a cell, with everything needed to print it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedCell {
    /// Test, as in [`Cell`].
    pub test: String,
    /// Target, as in [`Cell`].
    pub target: String,
    /// Metric, as in [`Cell`].
    pub metric: String,
    /// The target is the base under another name.
    pub control: bool,
    /// Margin the cell was judged by.
    pub margin: Margin,
    /// Ratio and interval; `None` for a single pair without a noise model.
    pub estimate: Option<PairedRatio>,
    /// Adjusted p-value; `None` if the cell could not be called.
    pub q_value: Option<f64>,
    /// The verdict if it were the only cell.
    pub alone: Verdict,
    /// The verdict.
    pub judgement: Judgement,
}

/// A judged report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedTable {
    /// In the order given.
    pub cells: Vec<JudgedCell>,
    /// Share of A/A cells that were called a difference; `None` without such cells.
    pub false_calls: Option<Rate>,
    /// Share of A/A cells that would be called one by one, without the correction.
    pub false_calls_uncorrected: Option<Rate>,
}

/// Judges all `cells` of a report.
///
/// # Errors
/// A cell without pairs, a value that is not finite, a margin or setting outside its domain.
pub fn judge_table(cells: &[Cell], policy: &Policy) -> Result<JudgedTable> {
    check_probability("false_discovery_rate", policy.false_discovery_rate)?;
    let mut judged = cells.iter().map(|cell| judge_alone(cell, policy)).collect::<Result<Vec<_>>>()?;
    correct(&mut judged, policy.false_discovery_rate)?;
    let controls: Vec<&JudgedCell> = judged.iter().filter(|cell| cell.control).collect();
    let share = |is_call: &dyn Fn(&JudgedCell) -> bool| -> Result<Option<Rate>> {
        let calls = controls.iter().filter(|cell| is_call(cell)).count();
        if controls.is_empty() {
            return Ok(None);
        }
        rate(calls, controls.len(), policy.settings.level).map(Some)
    };
    let false_calls = share(&|cell| cell.judgement.verdict.is_call())?;
    let false_calls_uncorrected = share(&|cell| cell.alone.is_call())?;
    Ok(JudgedTable { cells: judged, false_calls, false_calls_uncorrected })
}

fn judge_alone(cell: &Cell, policy: &Policy) -> Result<JudgedCell> {
    let estimate = match (cell.log_ratios.as_slice(), &cell.noise) {
        ([single], Some(noise)) => Some(estimate_single(*single, noise, policy.settings.level)?),
        ([single], None) => {
            check("log_ratios", &[*single], 1)?;
            None
        }
        (pairs, _) => Some(estimate(pairs, &policy.settings)?),
    };
    let judgement = match &estimate {
        None => Judgement::unknown(Reason::TooFewPairs),
        Some(_) if !cell.steady => Judgement::unknown(Reason::NotSteady),
        Some(ratio) => judge(ratio, cell.better, cell.margin)?,
    };
    Ok(JudgedCell {
        test: cell.test.clone(),
        target: cell.target.clone(),
        metric: cell.metric.clone(),
        control: cell.control,
        margin: cell.margin,
        estimate,
        q_value: None,
        alone: judgement.verdict,
        judgement,
    })
}

/// Takes back the calls that do not stand among all cells of their metric.
fn correct(cells: &mut [JudgedCell], false_discovery_rate: f64) -> Result<()> {
    let mut families: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        // Which cells can be called does not depend on their p-values, so leaving the others out is fair.
        if !matches!(cell.judgement.reason, Reason::TooFewPairs | Reason::NotSteady) {
            families.entry(&cell.metric).or_default().push(index);
        }
    }
    let families: Vec<Vec<usize>> = families.into_values().collect();
    for family in families {
        let p_values: Vec<f64> = family.iter().filter_map(|i| Some(cells[*i].estimate?.p_value)).collect();
        for (index, (q_value, stands)) in family.iter().zip(stands_among(&p_values, false_discovery_rate)?) {
            let cell = &mut cells[*index];
            cell.q_value = Some(q_value);
            if cell.judgement.verdict.is_call() && !stands {
                cell.judgement = Judgement::unknown(Reason::ManyComparisons);
            }
        }
    }
    Ok(())
}

/// The adjusted p-value of each cell of a metric, and whether a call of it stands among them all.
pub(crate) fn stands_among(p_values: &[f64], false_discovery_rate: f64) -> Result<Vec<(f64, bool)>> {
    let adjusted = benjamini_hochberg(p_values)?.into_iter();
    Ok(adjusted.map(|q_value| (q_value, q_value <= false_discovery_rate)).collect())
}
