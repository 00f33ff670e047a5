//! Whether a step reached a steady state, and which part of it counts.
//!
//! ```text
//! ------------  flat        __/-------  warm-up       ----\_______  slow-down      /\__/\/\_/  no steady state
//! ```
//! The step is cut into 20 batches, the batches into segments; segments that differ by less than the tolerance are
//! one. The last segment is the steady part: it counts, and the whole step is kept beside it. Sessions that differ in
//! their shape are inconsistent. "No steady state" and "inconsistent" block a verdict.
//!
//! Source: the five shapes are those of Barrett et al., "Virtual machine warmup blows hot and cold" (2017).

use crate::autocorrelation::{
    Trend, autocorrelation, effective_count, phi_from_differences, trend, usual_lags,
};
use crate::error::{ErrorKind, Result, check_not_negative, check_probability, error};
use crate::segments::{Partition, Segment, partition};
use crate::summary::{mean, median};
use crate::warm_up::{Thirds, compare_thirds, mser};
use serde::{Deserialize, Serialize};

/// Batches a step is cut into.
pub const BATCHES: usize = 20;

/// Seconds below which a step is flagged as short.
pub const SHORT_SECONDS: f64 = 60.0;

/// Fewest batches of a segment.
const LEAST_BATCHES: usize = 2;

/// Share of the step the last segment needs for there to be a steady state at all.
const LEAST_SHARE: f64 = 0.25;

/// Price of a change in squared standard deviations of a batch; the noise is estimated from 19 differences, so it is
/// higher than for known noise. Measured: `tests/it/simulation.rs`.
const PENALTY: f64 = 15.0;

/// p-value below which the steady part is taken to drift.
const DRIFT_P: f64 = 0.001;

/// The course of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One level.
    Flat,
    /// Ends at its fastest level.
    WarmUp,
    /// Ends at a slower level than it had.
    SlowDown,
    /// Ends in a level that is too short, or drifts to its end.
    NoSteadyState,
    /// Sessions of one target have different shapes; see [`across_sessions`].
    Inconsistent,
}

impl Shape {
    /// Whether a verdict may be based on it.
    pub fn allows_verdict(self) -> bool {
        !matches!(self, Shape::NoSteadyState | Shape::Inconsistent)
    }
}

/// The shape of a step with the numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// The label.
    pub shape: Shape,
    /// Mean rate of the whole step: the number the classic tables print.
    pub whole_rate: f64,
    /// Mean rate of the last segment.
    pub steady_rate: f64,
    /// Index of the first sample of the last segment.
    pub steady_from: usize,
    /// Share of the step that the last segment takes.
    pub steady_share: f64,
    /// All segments, in samples.
    pub segments: Vec<Segment>,
    /// The step is shorter than [`SHORT_SECONDS`].
    pub short: bool,
    /// The last segment is less than half of the step.
    pub minority: bool,
    /// Straight line through the last segment, per sample.
    pub drift: Trend,
    /// End of the warm-up by MSER-5, in samples; `None` if it finds none in the first half.
    pub mser_cut: Option<usize>,
    /// First against last third.
    pub thirds: Thirds,
    /// Autocorrelation at lag 1.
    pub lag_1: f64,
    /// How many independent samples carry as much.
    pub effective_samples: f64,
}

/// Labels a step by its `rates`, one per `interval_seconds`; `tolerance` is the relative change that does not matter,
/// at most the margin of the verdict.
///
/// # Errors
/// Fewer than [`BATCHES`] samples, a rate that is not finite or below 0, rates that are all 0, a `tolerance` outside
/// (0, 1) or an interval not above 0.
pub fn classify(rates: &[f64], interval_seconds: f64, tolerance: f64) -> Result<Steadiness> {
    check_not_negative("rates", rates, BATCHES)?;
    check_probability("tolerance", tolerance)?;
    crate::error::check_above_zero("interval_seconds", interval_seconds)?;
    let whole_rate = mean(rates);
    if whole_rate == 0.0 {
        return Err(error(ErrorKind::OutOfDomain, "all rates are 0: the step did nothing"));
    }
    let (segments, slopes) = segment(rates, whole_rate, tolerance)?;
    let last = segments[segments.len() - 1];
    let steady = &rates[last.start..];
    let drift = trend(steady, drift_lags(steady))?;
    let steady_share = last.count() as f64 / rates.len() as f64;
    let rise = (drift.slope * steady.len() as f64).abs();
    // A step by the tolerance, which does not matter, is fitted by a line that rises half as much again.
    let drifts = drift.p_value < DRIFT_P && rise > 1.5 * tolerance * last.mean;
    let fastest = segments.iter().map(|segment| segment.mean).fold(0.0, f64::max);
    let shape = if steady_share < LEAST_SHARE || drifts || slopes {
        Shape::NoSteadyState
    } else if segments.len() == 1 {
        Shape::Flat
    } else if last.mean >= fastest * (1.0 - tolerance) {
        Shape::WarmUp
    } else {
        Shape::SlowDown
    };
    Ok(Steadiness {
        shape,
        whole_rate,
        steady_rate: last.mean,
        steady_from: last.start,
        steady_share,
        short: (rates.len() as f64) * interval_seconds < SHORT_SECONDS,
        minority: steady_share < 0.5,
        drift,
        mser_cut: mser(rates, 5)?,
        thirds: compare_thirds(rates)?,
        lag_1: autocorrelation(rates, 1)?[1],
        effective_samples: effective_count(rates)?,
        segments,
    })
}

/// The shape of a target over its sessions: the one that three quarters of them have, else inconsistent. `None`
/// without sessions.
///
/// Not all of them: a label of noisy samples is wrong a few times in a hundred, and one wrong label in ten sessions
/// must not block a verdict.
pub fn across_sessions(shapes: &[Shape]) -> Option<Shape> {
    let of = |shape: Shape| shapes.iter().filter(|other| **other == shape).count();
    let most = *shapes.iter().max_by_key(|shape| of(**shape))?;
    Some(if 4 * of(most) >= 3 * shapes.len() { most } else { Shape::Inconsistent })
}

/// Lags over which samples depend on each other: three correlation times, but no more than the series can bear.
fn drift_lags(steady: &[f64]) -> usize {
    let correlated = (3.0 / (1.0 - phi_from_differences(steady))).ceil() as usize;
    correlated.max(usual_lags(steady.len())).min(steady.len() / 4)
}

/// Standard deviation of a batch of `samples` of `rates` around its level, from what levels cannot disturb.
///
/// Differences of batches miss what neighbouring batches share. The samples themselves tell, as a first-order
/// autoregression: the long-run variance over the length of a batch. The larger of both is taken.
fn batch_noise(rates: &[f64], batches: &[f64]) -> f64 {
    let jumps = |values: &[f64]| {
        let jumps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        1.482_602_218_505_602 * median(&jumps)
    };
    let phi = phi_from_differences(rates);
    let samples = rates.len() as f64 / batches.len() as f64;
    let variance = jumps(rates).powi(2) / (2.0 * (1.0 - phi));
    let long_run = (variance * (1.0 + phi) / (1.0 - phi) / samples).sqrt();
    long_run.max(jumps(batches) / std::f64::consts::SQRT_2)
}

/// Segments in samples, neighbours within the tolerance merged; and whether one slope describes the step better.
fn segment(rates: &[f64], whole_rate: f64, tolerance: f64) -> Result<(Vec<Segment>, bool)> {
    let edge = |batch: usize| batch * rates.len() / BATCHES;
    let batches: Vec<f64> = (0..BATCHES).map(|batch| mean(&rates[edge(batch)..edge(batch + 1)])).collect();
    // The floor keeps a very quiet step from being cut into changes that would be merged again.
    let noise = batch_noise(rates, &batches);
    let settings =
        Partition { sd: noise.max(tolerance * whole_rate / 4.0), penalty: PENALTY, least: LEAST_BATCHES };
    let cut = partition(&batches, &[1.0; BATCHES], &settings)?;
    let in_samples = |segment: &Segment| {
        let (start, end) = (edge(segment.start), edge(segment.end));
        Segment { start, end, mean: mean(&rates[start..end]) }
    };
    let segments = merge_alike(cut.iter().map(in_samples).collect(), tolerance);
    let slopes = segments.len() > 1 && line_is_cheaper(&batches, &cut, &settings)?;
    Ok((segments, slopes))
}

/// Whether a straight line, at the price of one change, fits the batches better than the segments do.
///
/// A drift from start to end is cut into stairs like any other course, and its last stair is no steady state.
fn line_is_cheaper(batches: &[f64], cut: &[Segment], settings: &Partition) -> Result<bool> {
    let squares =
        |distances: &mut dyn Iterator<Item = f64>| distances.map(|distance| distance * distance).sum();
    let stairs: f64 = cut
        .iter()
        .map(|step| -> f64 {
            squares(&mut batches[step.start..step.end].iter().map(|rate| rate - step.mean))
        })
        .sum();
    let slope = trend(batches, 0)?.slope;
    let (centre, middle) = (mean(batches), (batches.len() as f64 - 1.0) / 2.0);
    let on_line = |batch: usize| centre + slope * (batch as f64 - middle);
    let line: f64 = squares(&mut batches.iter().enumerate().map(|(batch, rate)| rate - on_line(batch)));
    let more_changes = cut.len() as f64 - 2.0;
    Ok(line < stairs + settings.penalty * more_changes * settings.sd * settings.sd)
}

fn merge_alike(mut segments: Vec<Segment>, tolerance: f64) -> Vec<Segment> {
    let difference = |pair: &[Segment]| {
        let larger = pair[0].mean.max(pair[1].mean);
        if larger == 0.0 { 0.0 } else { (pair[0].mean - pair[1].mean).abs() / larger }
    };
    while segments.len() > 1 {
        let (index, closest) = segments
            .windows(2)
            .map(difference)
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("two segments have a difference");
        if closest >= tolerance {
            break;
        }
        let after = segments.remove(index + 1);
        let before = &mut segments[index];
        let (a, b) = (before.count() as f64, after.count() as f64);
        *before = Segment {
            start: before.start,
            end: after.end,
            mean: (before.mean * a + after.mean * b) / (a + b),
        };
    }
    segments
}
