//! The history of versions: which release changed a test, by how much, and what it adds up to.
//!
//! ```text
//! version   8.0  8.1  8.5  8.6.7  8.7  9.8  9.9       neighbours: paired ratios, corrected for their number
//! rate      100  101  100   51     94   95  131       segments:   100 | 94 | 131
//!                           ^ outlier: both sides     total:      9.9 / 8.0 with its own interval
//!                             of it are one level
//! ```
//! Searching a series for change points is the wrong tool where each version has sessions: the noise is known. It is
//! estimated from the sessions, or for archives of single runs from differences of neighbours.

use crate::error::{
    ErrorKind, Result, check_above_zero, check_pair, check_positive, check_probability, error,
};
use crate::multiple::benjamini_hochberg;
use crate::paired::{PairedRatio, Settings, estimate};
use crate::segments::{Partition, Segment, partition, penalty};
use crate::summary::{mad_sd, mean};
use serde::{Deserialize, Serialize};

/// Fewest versions of a history.
pub const MIN_VERSIONS: usize = 4;

/// One version: a value per block, `None` where it was not measured in that block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Positive values such as rates, one per block, blocks in one order for all versions.
    pub values: Vec<Option<f64>>,
}

/// A stretch of versions of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Name of its first version.
    pub first: String,
    /// Name of its last version.
    pub last: String,
    /// Indices of the versions, outliers included.
    pub versions: std::ops::Range<usize>,
    /// Geometric mean of the values, in their unit, outliers left out.
    pub value: f64,
    /// Value over that of the level before, `None` for the first level.
    pub change: Option<f64>,
    /// A single version at the end of the history: the next one tells whether it is a change or an outlier.
    pub provisional: bool,
}

/// A version next to its predecessor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Index of the later version.
    pub version: usize,
    /// Later over earlier, paired by block.
    pub ratio: PairedRatio,
    /// p-value adjusted for the number of neighbours.
    pub q_value: f64,
}

/// A judged history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Stretches of one level, in order.
    pub levels: Vec<Level>,
    /// Versions that stand alone between two stretches of one level.
    pub outliers: Vec<usize>,
    /// Each version next to its predecessor, where they share 2 blocks or more.
    pub neighbours: Vec<Neighbour>,
    /// Last over first version, paired by block: small steps that add up. `None` if they share fewer than 2 blocks.
    pub total: Option<PairedRatio>,
    /// Standard deviation of one value around its version, a log ratio.
    pub log_sd: f64,
}

/// Judges a history; versions in release order. `false_rate` is the probability with which a history without any
/// change is cut anyway, `least_change` the smallest relative change that matters.
///
/// # Errors
/// Fewer than [`MIN_VERSIONS`] versions, one without values, different numbers of blocks, a value that is not finite
/// and above 0, or settings outside their domain.
pub fn judge_history(
    versions: &[Version],
    least_change: f64,
    false_rate: f64,
    settings: &Settings,
) -> Result<History> {
    check_probability("least_change", least_change)?;
    check_probability("false_rate", false_rate)?;
    let logs = logs(versions)?;
    let Noise { log_sd, df, weights } = noise(&logs);
    let centres: Vec<f64> = block_free_means(&logs);
    // A noise-free history is cut at whatever changes by more than does not matter.
    let floor = least_change.ln_1p() / 4.0;
    let cut =
        Partition { sd: log_sd.max(floor), penalty: penalty(versions.len(), false_rate, df)?, least: 1 };
    check_above_zero("sd", cut.sd)?;
    let segments = partition(&centres, &weights, &cut)?;
    let (segments, outliers) = absorb_outliers(segments, &centres, &weights, &cut, least_change.ln_1p());
    Ok(History {
        levels: levels(versions, &segments, &outliers, &centres),
        outliers,
        neighbours: neighbours(&logs, settings)?,
        total: compare(&logs[0], &logs[logs.len() - 1], settings)?,
        log_sd,
    })
}

type Logs = Vec<Vec<Option<f64>>>;

fn logs(versions: &[Version]) -> Result<Logs> {
    if versions.len() < MIN_VERSIONS {
        let context = format!("{} versions, {MIN_VERSIONS} are needed", versions.len());
        return Err(error(ErrorKind::TooFewValues, context));
    }
    for version in versions {
        let blocks = |version: &Version| vec![0.0; version.values.len()];
        check_pair(&format!("blocks of {}", version.name), &blocks(version), &blocks(&versions[0]))?;
        check_positive(&version.name, &version.values.iter().flatten().copied().collect::<Vec<_>>(), 1)?;
    }
    Ok(versions
        .iter()
        .map(|version| version.values.iter().map(|value| value.map(f64::ln)).collect())
        .collect())
}

struct Noise {
    log_sd: f64,
    df: f64,
    weights: Vec<f64>,
}

/// Spread of a value around its version, blocks taken out; from neighbours where no version has two values.
fn noise(logs: &Logs) -> Noise {
    let blocks = block_means(logs);
    let weights: Vec<f64> = logs.iter().map(|version| version.iter().flatten().count() as f64).collect();
    let rest = |version: &Vec<Option<f64>>| -> Vec<f64> {
        version.iter().zip(&blocks).filter_map(|(value, block)| Some((*value)? - block)).collect()
    };
    let (mut squares, mut values) = (0.0, 0.0);
    for rest in logs.iter().map(rest).filter(|rest| rest.len() > 1) {
        let centre = mean(&rest);
        squares += rest.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        values += rest.len() as f64 - 1.0;
    }
    // Block means were fitted too.
    let df = values - (blocks.len() as f64 - 1.0);
    if df >= 1.0 {
        return Noise { log_sd: (squares / df).sqrt(), df, weights };
    }
    let centres = block_free_means(logs);
    let jumps: Vec<f64> = centres.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The median absolute deviation of n differences is worth about a third of n degrees of freedom.
    let df = (jumps.len() as f64 / 3.0).max(1.0);
    let log_sd = mad_sd(&jumps) / std::f64::consts::SQRT_2;
    Noise { log_sd, df, weights: vec![1.0; logs.len()] }
}

/// Deviation of each block from the versions' own levels.
fn block_means(logs: &Logs) -> Vec<f64> {
    let own = |version: &Vec<Option<f64>>| mean(&version.iter().flatten().copied().collect::<Vec<_>>());
    let levels: Vec<f64> = logs.iter().map(own).collect();
    (0..logs[0].len())
        .map(|block| {
            let rest: Vec<f64> = logs
                .iter()
                .zip(&levels)
                .filter_map(|(version, level)| Some(version[block]? - level))
                .collect();
            if rest.is_empty() { 0.0 } else { mean(&rest) }
        })
        .collect()
}

/// Mean of each version after the blocks' deviations are taken out.
fn block_free_means(logs: &Logs) -> Vec<f64> {
    let blocks = block_means(logs);
    logs.iter()
        .map(|version| {
            let values = version.iter().zip(&blocks).filter_map(|(value, block)| Some((*value)? - block));
            mean(&values.collect::<Vec<_>>())
        })
        .collect()
}

/// Takes single versions out of the segments if the stretches on both sides of them are one level.
fn absorb_outliers(
    mut segments: Vec<Segment>,
    centres: &[f64],
    weights: &[f64],
    cut: &Partition,
    least_change: f64,
) -> (Vec<Segment>, Vec<usize>) {
    let mut outliers = Vec::new();
    let mut index = 1;
    while index + 1 < segments.len() {
        let (before, alone, after) = (segments[index - 1], segments[index], segments[index + 1]);
        let weight = |segment: &Segment| weights[segment.start..segment.end].iter().sum::<f64>();
        let precision = 1.0 / weight(&before) + 1.0 / weight(&after);
        let jump = (before.mean - after.mean).powi(2);
        // The penalty's demand on a change, made of the two sides without the version between them.
        let one_level = jump <= cut.penalty * cut.sd * cut.sd * precision || jump.sqrt() < least_change;
        // Three versions alone are three levels: which of them is odd cannot be told.
        if alone.count() == 1 && one_level && before.count() + after.count() > 2 {
            outliers.push(alone.start);
            let kept: Vec<f64> =
                (before.start..after.end).filter(|i| !outliers.contains(i)).map(|i| centres[i]).collect();
            segments[index - 1] = Segment { start: before.start, end: after.end, mean: mean(&kept) };
            segments.drain(index..=index + 1);
        } else {
            index += 1;
        }
    }
    (segments, outliers)
}

fn levels(versions: &[Version], segments: &[Segment], outliers: &[usize], centres: &[f64]) -> Vec<Level> {
    let value = |segment: &Segment| {
        let kept = (segment.start..segment.end).filter(|index| !outliers.contains(index));
        mean(&kept.map(|index| centres[index]).collect::<Vec<_>>()).exp()
    };
    let level = |index: usize| {
        let segment = &segments[index];
        Level {
            first: versions[segment.start].name.clone(),
            last: versions[segment.end - 1].name.clone(),
            versions: segment.start..segment.end,
            value: value(segment),
            change: (index > 0).then(|| value(segment) / value(&segments[index - 1])),
            provisional: index > 0 && segment.end == versions.len() && segment.count() == 1,
        }
    };
    (0..segments.len()).map(level).collect()
}

fn neighbours(logs: &Logs, settings: &Settings) -> Result<Vec<Neighbour>> {
    let mut neighbours = Vec::new();
    for (earlier, pair) in logs.windows(2).enumerate() {
        if let Some(ratio) = compare(&pair[0], &pair[1], settings)? {
            neighbours.push(Neighbour { version: earlier + 1, ratio, q_value: 1.0 });
        }
    }
    let p_values: Vec<f64> = neighbours.iter().map(|neighbour| neighbour.ratio.p_value).collect();
    for (neighbour, q_value) in neighbours.iter_mut().zip(benjamini_hochberg(&p_values)?) {
        neighbour.q_value = q_value;
    }
    Ok(neighbours)
}

/// Later over earlier in the blocks that have both; `None` if those are fewer than 2.
fn compare(
    earlier: &[Option<f64>],
    later: &[Option<f64>],
    settings: &Settings,
) -> Result<Option<PairedRatio>> {
    let shared: Vec<f64> =
        earlier.iter().zip(later).filter_map(|(earlier, later)| Some((*later)? - (*earlier)?)).collect();
    if shared.len() < 2 {
        return Ok(None);
    }
    estimate(&shared, settings).map(Some)
}
