//! Stalls in published results, judged by the same statistics as the lab's own.
//!
//! ```text
//! one target, rates by interval     find_stalls: seconds below a tenth of the usual        told, never a verdict
//! one step, pmax of many versions   judge_history finds where the level changes, then
//!                                   compare_tails of the versions before and after it       a verdict
//!                                   compare_relative_spread of their rates                  how much they scatter
//! ```
//! Each version ran once, so neither its rate nor its tail can be judged beside one other version. Several versions before
//! a change and several after it can: a stall of minutes in all of the first and none of the second is no accident. The
//! place of the change was searched for, which cuts a history without a change in one of twenty; as many series are searched,
//! probabilities are corrected over all series of an archive.
//! Next: `archive.rs` for the tables these are computed from.

use super::archive::Group;
use super::model::Series;
use super::target::version_numbers;
use crate::analysis::judge::Word;
use outcrop_lab_stats::history::{History, MIN_VERSIONS, Version, judge_history};
use outcrop_lab_stats::multiple::benjamini_hochberg;
use outcrop_lab_stats::paired::Settings;
use outcrop_lab_stats::stalls::{compare_relative_spread, compare_tails, find_stalls};
use serde::{Deserialize, Serialize};

/// Metrics that hold the longest operation of a step.
const TAILS: [&str; 3] = ["pmax", "rt_max", "maxop"];
/// Metrics that hold the rate of a step.
const RATES: [&str; 3] = ["ops_sec", "qps", "ips"];
/// Smallest change of a tail that matters, as a factor.
const LEAST_FACTOR: f64 = 2.0;
/// Smallest change of a longest operation that is one of stalls, in milliseconds; the same as of the lab's own runs.
const LEAST_MS: f64 = 100.0;
/// Share of histories without a change in which one is found.
const FALSE_RATE: f64 = 0.05;
/// Probability below which a difference is not attributed to chance.
const ALPHA: f64 = 0.05;

/// A place in the order of versions where the longest operations of a step change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailChange {
    /// Step.
    pub step: String,
    /// The part that the versions share: engine, build, configuration.
    pub line: String,
    /// The metric that changes.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Last version before the change, and how many there are.
    pub before: (String, usize),
    /// First version after it, and how many there are.
    pub after: (String, usize),
    /// Medians of the metric before and after.
    pub medians: (f64, f64),
    /// Probability of such a difference without a cause, of this series alone.
    pub p_value: f64,
    /// The same, adjusted for all series that were searched.
    pub q_value: f64,
    /// The verdict; less is an improvement.
    pub word: Word,
    /// How the rates of the same versions changed, where they are known.
    pub rates: Option<RateChange>,
}

/// Rates before and after a change of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateChange {
    /// Mean after over mean before.
    pub ratio: f64,
    /// Relative spread between versions, before and after.
    pub spread: (f64, f64),
    /// Probability of such a difference of the spreads without a cause.
    pub p_value: f64,
}

/// How one target stood still in one step, from its rates by interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standstill {
    /// Target, or the file where it has no name.
    pub target: String,
    /// Step.
    pub step: String,
    /// The rate that was looked at.
    pub metric: String,
    /// Seconds looked at.
    pub seconds: f64,
    /// Those below a tenth of the usual rate.
    pub stalled_seconds: f64,
    /// Seconds of the longest stall.
    pub longest_seconds: f64,
    /// When it began, in seconds from the start.
    pub longest_at_seconds: Option<f64>,
}

/// The changes of longest operations over the versions of each table, one line of versions at a time.
pub fn tail_changes(groups: &[Group]) -> Vec<Vec<TailChange>> {
    let mut searched = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let Some(metric) = TAILS.into_iter().find(|name| group.metric(name).is_some()) else { continue };
        for step in 0..group.steps.len() {
            let lines = group.lines().into_iter();
            searched.extend(lines.filter_map(|line| Some((number, changes_of(group, metric, step, &line)?))));
        }
    }
    corrected(&mut searched);
    let mut found = vec![Vec::new(); groups.len()];
    for (number, changes) in searched {
        found[number].extend(changes);
    }
    found
}

/// Adjusts p-values for all series that were searched: one without a change counts as one of which nothing is shown. Takes
/// back what does not stand among them.
fn corrected(searched: &mut [(usize, Vec<TailChange>)]) {
    let empty = searched.iter().filter(|(_, changes)| changes.is_empty()).count();
    let mut p_values: Vec<f64> =
        searched.iter().flat_map(|(_, changes)| changes).map(|change| change.p_value).collect();
    p_values.extend(std::iter::repeat_n(1.0, empty));
    let adjusted = benjamini_hochberg(&p_values).unwrap_or_default();
    let changes = searched.iter_mut().flat_map(|(_, changes)| changes);
    for (change, q_value) in changes.zip(adjusted) {
        change.q_value = q_value;
        if change.word.is_call() && q_value > ALPHA {
            change.word = Word::Unknown;
        }
    }
}

/// The changes of one step along the targets of one line, in release order; `None` where there is nothing to search.
fn changes_of(group: &Group, metric: &str, step: usize, line: &[usize]) -> Option<Vec<TailChange>> {
    let table = group.metric(metric).filter(|table| table.relative_to.is_none())?;
    let value = |target: &usize| table.values[step][*target].filter(|value| *value > 0.0);
    let mut targets: Vec<usize> = line.iter().copied().filter(|target| value(target).is_some()).collect();
    targets.sort_by_key(|target| version_numbers(&group.targets[*target].version));
    if targets.len() < MIN_VERSIONS {
        return None;
    }
    let versions: Vec<Version> = targets
        .iter()
        .map(|target| Version { name: group.targets[*target].version.clone(), values: vec![value(target)] })
        .collect();
    let history =
        judge_history(&versions, LEAST_FACTOR - 1.0 - 1e-9, FALSE_RATE, &Settings::default()).ok()?;
    let members = |level: usize| -> Vec<usize> {
        let inside = history.levels[level].versions.clone();
        inside.filter(|index| !history.outliers.contains(index)).map(|index| targets[index]).collect()
    };
    let changes = (1..history.levels.len()).filter_map(|level| {
        change(group, metric, step, &history, level, &members(level - 1), &members(level))
    });
    Some(changes.collect())
}

fn change(
    group: &Group,
    metric: &str,
    step: usize,
    history: &History,
    level: usize,
    before: &[usize],
    after: &[usize],
) -> Option<TailChange> {
    let values = |name: &str, targets: &[usize]| -> Option<Vec<f64>> {
        let table = group.metric(name)?;
        targets.iter().map(|target| table.values[step][*target]).collect()
    };
    let compared =
        compare_tails(&values(metric, before)?, &values(metric, after)?, LEAST_FACTOR, ALPHA).ok()?;
    let unit = &group.metric(metric)?.unit;
    if (compared.after - compared.before).abs() * milliseconds(unit)? < LEAST_MS {
        return None;
    }
    let rates = RATES.into_iter().find_map(|name| {
        let (old, new) = (values(name, before)?, values(name, after)?);
        let spread = compare_relative_spread(&old, &new).ok()?;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ratio = mean(&new) / mean(&old);
        Some(RateChange { ratio, spread: (spread.before, spread.after), p_value: spread.p_value })
    });
    Some(TailChange {
        step: group.steps[step].clone(),
        line: group.targets[before[0]].line(),
        metric: metric.to_string(),
        unit: unit.clone(),
        before: (history.levels[level - 1].last.clone(), before.len()),
        after: (history.levels[level].first.clone(), after.len()),
        medians: (compared.before, compared.after),
        p_value: compared.p_value,
        q_value: 1.0,
        word: compared.verdict,
        rates,
    })
}

/// The stalls of a series of rates; `None` for series of anything else, and of fewer than three intervals.
pub fn standstill(series: &Series) -> Option<Standstill> {
    if !matches!(&*series.metric, "interval_qps" | "i_ips" | "i_qps") || series.values.len() < 3 {
        return None;
    }
    let times = series.at.first().zip(series.at.last());
    let interval = times.map(|(first, last)| (last - first) / (series.at.len() - 1) as f64);
    let interval = interval.filter(|seconds| *seconds > 0.0).unwrap_or(1.0);
    let stalls = find_stalls(&series.values, interval).ok()?;
    let named = [&series.target.name, &series.target.configuration, &series.file];
    Some(Standstill {
        target: named.into_iter().find(|name| !name.is_empty()).map_or(String::new(), ToString::to_string),
        step: series.step.to_string(),
        metric: series.metric.to_string(),
        seconds: interval * series.values.len() as f64,
        stalled_seconds: stalls.stalled_seconds,
        longest_seconds: stalls.longest_seconds,
        longest_at_seconds: stalls.longest_at_seconds,
    })
}

impl TailChange {
    /// A value of the metric for people.
    pub fn amount(&self, value: f64) -> String {
        milliseconds(&self.unit)
            .map_or_else(|| crate::report::text::amount(value), |factor| seconds(value * factor / 1e3))
    }
}

/// Milliseconds in a unit of time.
fn milliseconds(unit: &str) -> Option<f64> {
    match unit {
        "us" => Some(1e-3),
        "ms" => Some(1.0),
        "s" => Some(1e3),
        _ => None,
    }
}

fn seconds(value: f64) -> String {
    match value {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::{ArchiveTarget, MetricTable};
    use super::*;

    fn found(p_value: f64) -> TailChange {
        TailChange {
            step: "overwrite".to_string(),
            line: "rocksdb".to_string(),
            metric: "pmax".to_string(),
            unit: "us".to_string(),
            before: ("7.5".to_string(), 4),
            after: ("7.6".to_string(), 4),
            medians: (1e6, 1e3),
            p_value,
            q_value: 1.0,
            word: Word::Improvement,
            rates: None,
        }
    }

    #[test]
    fn longest_responses_of_sysbench_are_searched() {
        let of = |values: [f64; 8]| {
            let target = |minor: usize| ArchiveTarget {
                name: format!("x.my80{minor}"),
                engine: "mysql".to_string(),
                version: format!("8.0.{minor}"),
                build: String::new(),
                configuration: String::new(),
            };
            let metric = MetricTable {
                name: "rt_max".to_string(),
                unit: "ms".to_string(),
                relative_to: None,
                bases: Vec::new(),
                values: vec![values.map(Some).to_vec()],
            };
            let group = Group {
                title: "t".to_string(),
                targets: (30..38).map(target).collect(),
                steps: vec!["update-index_range=100".to_string()],
                base: 0,
                metrics: vec![metric],
            };
            tail_changes(&[group]).remove(0)
        };
        let found = of([50.0, 52.0, 49.0, 51.0, 5000.0, 5200.0, 4900.0, 5100.0]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].metric.as_str(), found[0].word), ("rt_max", Word::Regression));
        assert_eq!(found[0].after, ("8.0.34".to_string(), 4));
        // Half a second more is less than twice: nothing is said to have changed, nor that nothing did.
        assert!(of([1000.0, 1010.0, 990.0, 1005.0, 1500.0, 1510.0, 1490.0, 1505.0]).is_empty());
    }

    #[test]
    fn a_change_is_taken_back_for_the_series_of_other_tables() {
        // Four versions before and four after, all beyond: the least probability that eight versions can have.
        let p_value = 2.0 / 70.0;
        let mut alone = vec![(0, vec![found(p_value)])];
        corrected(&mut alone);
        assert_eq!((alone[0].1[0].word, alone[0].1[0].q_value), (Word::Improvement, p_value));
        // Another table has a series in which nothing was found.
        let mut two = vec![(0, vec![found(p_value)]), (1, vec![])];
        corrected(&mut two);
        assert_eq!(two[0].1[0].word, Word::Unknown);
        assert!((two[0].1[0].q_value - 2.0 * p_value).abs() < 1e-12, "{:?}", two[0].1[0]);
        // A change that is certain enough stands among them.
        let mut certain = vec![(0, vec![found(1e-4)]), (1, vec![]), (2, vec![found(p_value)])];
        corrected(&mut certain);
        assert_eq!((certain[0].1[0].word, certain[2].1[0].word), (Word::Improvement, Word::Improvement));
    }
}
