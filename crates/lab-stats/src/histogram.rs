//! Latency histograms: percentiles that exist.
//!
//! Histograms are merged inside a session; each session then has one p99, and sessions are compared like any other
//! metric. Percentiles are never averaged over seconds.
//!
//! Next: `open_loop.rs` measures without coordinated omission.

use crate::error::{ErrorKind, Result, check_range, error};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The latencies of one session and operation, in the unit of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Recorded values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median; `None`, like every percentile, if the session has too few events: see [`percentile`].
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile; takes 10 000 events.
    pub p999: Option<u64>,
    /// 99.99th percentile; takes 100 000 events.
    pub p9999: Option<u64>,
    /// Largest value, `None` without events.
    pub max: Option<u64>,
}

/// The percentiles of a report.
pub fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let at = |per_myriad| percentile(histogram, f64::from(per_myriad) / 10_000.0).unwrap_or(None);
    Percentiles {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: at(5_000),
        p90: at(9_000),
        p99: at(9_900),
        p999: at(9_990),
        p9999: at(9_999),
        max: (!histogram.is_empty()).then(|| histogram.max()),
    }
}

/// The quantile `q`: the largest value equivalent to the one `q` of the events do not exceed, never above the maximum.
///
/// `None` if fewer than 10 / (1 - q) events were recorded: then fewer than ten lie above it, and its value is luck.
///
/// # Errors
/// `q` outside \[0, 1).
pub fn percentile(histogram: &Histogram<u64>, q: f64) -> Result<Option<u64>> {
    check_range("q", q, (0.0..1.0).contains(&q), "at least 0 and below 1")?;
    Ok((histogram.len() >= events_needed(q)).then(|| histogram.value_at_quantile(q).min(histogram.max())))
}

/// The events of which ten lie above the quantile `q`, which is below 1.
pub fn events_needed(q: f64) -> u64 {
    // 1 - 0.9999 is a little above 0.0001; rounding keeps 100 000 events enough.
    (10.0 / (1.0 - q)).round() as u64
}

/// All of `parts` in one histogram with the bounds of the first; `None` without parts.
///
/// # Errors
/// A value of a later part lies beyond the bounds of the first and it does not grow.
pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Histogram<u64>>) -> Result<Option<Histogram<u64>>> {
    let mut parts = parts.into_iter();
    let Some(mut merged) = parts.next().cloned() else {
        return Ok(None);
    };
    for part in parts {
        merged.add(part).map_err(|refused| {
            error(ErrorKind::OutOfDomain, format!("histograms do not merge: {refused:?}"))
        })?;
    }
    Ok(Some(merged))
}
