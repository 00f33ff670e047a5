//! The device during a step, in the columns that iostat has and posts print.
//!
//! ```text
//! samples (counters, once a second) of every session -> last - first -> sums over sessions -> rates, sizes, waits
//! ```
//! Invariant: sums over sums, never a mean of rates: a session counts as long as it was.

use super::page;
use crate::analysis::results::Results;
use crate::report::text::amount;
use crate::store::{Store, StoreError};
use maud::{Markup, html};

/// Counters that the columns are made of, by their places in [`Totals::counts`].
const COUNTERS: [&str; 8] = [
    "device.reads",
    "device.read_sectors",
    "device.read_merges",
    "device.read_ms",
    "device.writes",
    "device.write_sectors",
    "device.write_merges",
    "device.write_ms",
];

/// Names of the columns after the number of samples.
const COLUMNS: [&str; 10] =
    ["rps", "rmbps", "rrqmps", "rawait", "rareqsz", "wps", "wmbps", "wrqmps", "wawait", "wareqsz"];

/// The device's totals over all sessions of a target's step.
#[derive(Clone, Debug, Default, PartialEq)]
struct Totals {
    samples: usize,
    seconds: f64,
    /// `None`: not sampled.
    counts: [Option<f64>; COUNTERS.len()],
}

impl Totals {
    fn of(store: &Store, results: &Results, step: &str, target: usize) -> Result<Totals, StoreError> {
        let mut totals = Totals::default();
        for row in results.rows(step, target) {
            let times = store.series(row.id, "time_ms")?;
            let columns = COUNTERS.map(|name| store.series(row.id, name));
            let mut deltas = [None; COUNTERS.len()];
            for (delta, column) in deltas.iter_mut().zip(columns) {
                *delta = change(&column?);
            }
            if let Some(milliseconds) = change(&times) {
                totals.add(times.len() - 1, milliseconds / 1000.0, deltas);
            }
        }
        Ok(totals)
    }

    fn add(&mut self, samples: usize, seconds: f64, deltas: [Option<f64>; COUNTERS.len()]) {
        let first = self.samples == 0;
        self.samples += samples;
        self.seconds += seconds;
        for (sum, delta) in self.counts.iter_mut().zip(deltas) {
            // A counter that one session lacks is missing in the sum.
            *sum = if first { delta } else { sum.zip(delta).map(|(sum, delta)| sum + delta) };
        }
    }

    /// The cells of [`COLUMNS`].
    fn cells(&self) -> [Option<f64>; COLUMNS.len()] {
        let [reads, read_sectors, read_merges, read_ms, writes, write_sectors, write_merges, write_ms] =
            self.counts;
        let rate = |count: Option<f64>| Some(count? / self.seconds).filter(|rate| rate.is_finite());
        let each = |sum: Option<f64>, count: Option<f64>| Some(sum? / count.filter(|count| *count > 0.0)?);
        let kb = |sectors: Option<f64>| sectors.map(|sectors| sectors / 2.0);
        let mb = |sectors: Option<f64>| sectors.map(|sectors| sectors / 2048.0);
        [
            rate(reads),
            rate(mb(read_sectors)),
            rate(read_merges),
            each(read_ms, reads),
            each(kb(read_sectors), reads),
            rate(writes),
            rate(mb(write_sectors)),
            rate(write_merges),
            each(write_ms, writes),
            each(kb(write_sectors), writes),
        ]
    }
}

/// Last minus first of a counter; `None` with fewer than two samples.
fn change(column: &[i64]) -> Option<f64> {
    match column {
        [first, .., last] => Some((last - first) as f64),
        _ => None,
    }
}

/// The table of a step; nothing if the device was not sampled.
pub(super) fn table(store: &Store, results: &Results, step: &str) -> Result<Markup, StoreError> {
    let mut rows = Vec::new();
    for (target, name) in results.labels().into_iter().enumerate() {
        let totals = Totals::of(store, results, step, target)?;
        if totals.counts[0].is_some() {
            rows.push((name, totals.samples, totals.cells()));
        }
    }
    Ok(html! {
        @if !rows.is_empty() {
            h2 { "Device, as iostat has it" }
            p.small {
                "Device " (results.experiment.host.facts.device_name()) ", means over all sessions of " (step) ". c: samples, one a second; "
                "per second: r and w reads and writes (rps, wps), MB (mbps), merged requests (rqmps); ms of a request (await); KB of a "
                "request (areqsz)."
            }
            div.scroll { table {
                thead { tr { th { "ver" } th { "c" } @for column in COLUMNS { th { (column) } } } }
                tbody { @for (name, samples, cells) in &rows {
                    tr {
                        td { (page::breakable(name)) } td { (samples) }
                        @for cell in cells { td { (cell.map_or("-".to_string(), amount)) } }
                    }
                } }
            } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_divided_by_sums() {
        let mut totals = Totals::default();
        let of = |reads: f64, sectors: f64| {
            [Some(reads), Some(sectors), None, Some(reads), Some(0.0), Some(0.0), Some(0.0), Some(0.0)]
        };
        totals.add(2, 2.0, of(100.0, 1600.0));
        totals.add(8, 8.0, of(900.0, 39360.0));
        let [rps, rmbps, rrqmps, rawait, rareqsz, wps, .., wareqsz] = totals.cells();
        assert_eq!((totals.samples, rps, rmbps), (10, Some(100.0), Some(2.0)));
        assert_eq!((rrqmps, rawait, rareqsz), (None, Some(1.0), Some(20.48)));
        assert_eq!((wps, wareqsz), (Some(0.0), None));
        assert_eq!((change(&[5]), change(&[5, 9, 7])), (None, Some(2.0)));
    }
}
