//! The page of one step: every second of every session, latencies, and every metric.

use super::{charts, page};
use crate::analysis::results::Results;
use crate::probe::derive::METRICS;
use crate::report::text::amount;
use crate::store::{Store, StoreError};
use maud::{Markup, PreEscaped, html};

pub(super) fn step_page(store: &Store, results: &Results, number: usize) -> Result<String, StoreError> {
    let step = &results.steps[number];
    let body = html! {
        (seconds(results, step))
        p.small { a href=(page::seconds_file(number)) { "CSV of every second" } }
        (longest(results, step))
        (super::writers::seconds(results, step))
        (super::writers::times(store, results, step)?)
        (device(store, results, step)?)
        (super::iostat::table(store, results, step)?)
        (super::plans::waits(results, step))
        (super::plans::table(results, step))
        h2 { "Each block" }
        (blocks(results, step))
        h2 { "Every metric" }
        (metrics(results, step))
    };
    Ok(page::page(results, step, &page::step_file(number), &body))
}

fn seconds(results: &Results, step: &str) -> Markup {
    let all = results.measured.iter().filter(|row| row.name == *step);
    let most = all.flat_map(|row| row.result.per_second.iter().copied()).max().unwrap_or(0);
    let top = format!("{}/s", charts::short_count(most));
    html! {
        @let scans = results.throughput(step).1.is_some();
        h2 { @if scans { "Rows in each second" } @else { "Operations in each second" } }
        @if most == 0 {
            p { (without_seconds(results, step)) }
        } @else {
            p.small {
                @if scans { "Rows per second of all clients" } @else { "Operations per second" }
                ", one line for each session; all charts have the same axes, from 0."
            }
            div.grid {
                @for (target, name) in results.labels().into_iter().enumerate() {
                    @let sessions = results.rows(step, target).map(|row| row.result.per_second.as_slice()).collect::<Vec<_>>();
                    (lines(&name, &top, &sessions, most, &|ops| format!("{}/s", charts::short_count(ops))))
                }
            }
        }
    }
}

/// Why there is nothing to draw of any second.
fn without_seconds(results: &Results, step: &str) -> &'static str {
    let mut all = results.measured.iter().filter(|row| row.name == *step);
    if all.clone().all(|row| row.result.seconds < 1.0) {
        return "The step took less than a second.";
    }
    if all.all(|row| row.result.per_second.is_empty()) {
        return "Operations of single seconds were not counted.";
    }
    "No whole second has an operation. They are counted as they end, those of a scan of everything and of upkeep when all is done."
}

/// The chart of a target's sessions; in words if none lasted two whole seconds, as one point is no line.
fn lines(name: &str, top: &str, sessions: &[&[u64]], most: u64, words: &dyn Fn(u64) -> String) -> Markup {
    let alone: Vec<u64> =
        sessions.iter().filter(|seconds| seconds.len() == 1).map(|seconds| seconds[0]).collect();
    html! {
        @if sessions.iter().any(|seconds| seconds.len() > 1) {
            (PreEscaped(charts::by_second(name, top, sessions, &[], most)))
        } @else if let (Some(least), Some(greatest)) = (alone.iter().min(), alone.iter().max()) {
            p.small {
                (name) ": one whole second in "
                @if alone.len() == sessions.len() { "each session, " } @else { (alone.len()) " of " (sessions.len()) " sessions, " }
                (words(*least)) @if least != greatest { " to " (words(*greatest)) } "."
            }
        }
    }
}

/// The longest operation that ended in each second.
fn longest(results: &Results, step: &str) -> Markup {
    let all = results.measured.iter().filter(|row| row.name == *step);
    let most = all.flat_map(|row| row.result.longest_per_second.iter().copied()).max().unwrap_or(0);
    html! {
        @if most > 0 {
            h2 { "Longest operation in each second" }
            p.small {
                "How long the longest operation took that ended in the second (from when it was due, in an open loop), one line for "
                "each session; all charts have the same axes, from 0."
            }
            div.grid {
                @for (target, name) in results.labels().into_iter().enumerate() {
                    @let sessions = results.rows(step, target).map(|row| row.result.longest_per_second.as_slice()).collect::<Vec<_>>();
                    (lines(&name, &duration(most), &sessions, most, &duration))
                }
            }
        }
    }
}

/// Microseconds in few characters.
pub(super) fn duration(micros: u64) -> String {
    match micros as f64 {
        us if us < 1e3 => format!("{us} us"),
        us if us < 1e4 => format!("{:.1} ms", us / 1e3),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// Device traffic second by second, in the first block.
fn device(store: &Store, results: &Results, step: &str) -> Result<Markup, StoreError> {
    let mut drawn = Vec::new();
    for (target, name) in results.labels().into_iter().enumerate() {
        let Some(row) = results.rows(step, target).next() else { continue };
        let read = rates(&store.series(row.id, "time_ms")?, &store.series(row.id, "device.read_sectors")?);
        let written =
            rates(&store.series(row.id, "time_ms")?, &store.series(row.id, "device.write_sectors")?);
        drawn.push((name, read, written));
    }
    let most =
        drawn.iter().flat_map(|(_, read, written)| read.iter().chain(written)).copied().max().unwrap_or(0);
    let top = if most >= 1000 { format!("{:.0} MB/s", most as f64 / 1000.0) } else { format!("{most} KB/s") };
    Ok(html! {
        @if most > 0 {
            h2 { "Device traffic" }
            p.small { "Read (solid) and written (dashed) in each second of the first block; all charts have the same axis." }
            div.grid {
                @for (name, read, written) in &drawn {
                    @if read.len() > 1 { (PreEscaped(charts::by_second(name, &top, &[read], &[written], most))) }
                }
            }
        }
    })
}

/// KB per second between samples of a counter of sectors.
fn rates(times: &[i64], sectors: &[i64]) -> Vec<u64> {
    let pairs = times.windows(2).zip(sectors.windows(2));
    let rate = |(time, count): (&[i64], &[i64])| {
        let milliseconds = (time[1] - time[0]).max(1);
        ((count[1] - count[0]).max(0) / 2 * 1000 / milliseconds) as u64
    };
    pairs.map(rate).collect()
}

fn blocks(results: &Results, step: &str) -> Markup {
    let targets = results.labels();
    let (metric, unit) = results.throughput(step);
    let values: Vec<_> = (0..targets.len()).map(|target| results.values(step, target, metric)).collect();
    html! {
        p.small {
            @if unit.is_some() { "Thousands of rows a second, of one client" } @else { "Operations per second" }
            "; targets of a block took turns, in balanced orders."
        }
        div.scroll { table {
            thead { tr { th { "block" } @for name in &targets { th { (page::breakable(name)) } } } }
            tbody {
                @for block in 0..results.blocks() as i64 {
                    tr {
                        td { (block + 1) }
                        @for target in &values { td { (target.get(&block).map_or("NA".to_string(), |value| amount(*value))) } }
                    }
                }
            }
        } }
    }
}

fn metrics(results: &Results, step: &str) -> Markup {
    let targets = results.labels();
    html! {
        p.small { "Medians over blocks." }
        div.scroll { table {
            thead { tr { th { "metric" } @for name in &targets { th { (page::breakable(name)) } } } }
            tbody {
                @for row in METRICS {
                    @let values = (0..targets.len()).map(|target| results.median(step, target, row.name)).collect::<Vec<_>>();
                    @if values.iter().any(Option::is_some) {
                        tr {
                            td title=(row.formula) { (super::sections::with_unit(row.name)) }
                            @for value in values { td { (value.map_or("NA".to_string(), amount)) } }
                        }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_second_are_a_sentence() {
        let words = |ops: u64| format!("{ops}/s");
        let of = |sessions: &[&[u64]]| lines("a", "9/s", sessions, 9, &words).into_string();
        assert_eq!(
            of(&[&[7], &[5]]),
            "<p class=\"small\">a: one whole second in each session, 5/s to 7/s.</p>"
        );
        assert_eq!(
            of(&[&[7], &[5], &[]]),
            "<p class=\"small\">a: one whole second in 2 of 3 sessions, 5/s to 7/s.</p>"
        );
        assert!(of(&[&[7], &[5, 6]]).starts_with("<svg"));
        assert_eq!(of(&[&[], &[]]), "");
    }

    #[test]
    fn a_step_without_operations_of_seconds_says_why() {
        let (_temp, store) =
            crate::testing::fake_record(1, &["fillseq", "readseq"], 1, &mut |_| vec![("ops_sec", 1e6)]);
        let mut results = Results::load(&store, 1).unwrap();
        let mut said = |length: f64, per_second: &[u64]| {
            for row in results.measured.iter_mut() {
                (row.result.seconds, row.result.per_second) = (length, per_second.to_vec());
            }
            seconds(&results, "readseq").into_string()
        };
        assert!(said(0.5, &[]).contains("<p>The step took less than a second.</p>"));
        // A scan of four and a half seconds, whose rows are told at its end.
        assert!(said(4.5, &[0; 4]).contains("<p>No whole second has an operation. "));
        assert!(said(4.5, &[]).contains("<p>Operations of single seconds were not counted.</p>"));
        assert!(said(2.0, &[9, 8]).contains("<svg"));
    }
}
