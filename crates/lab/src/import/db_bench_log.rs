//! Output of db_bench itself: `benchmark_*.log`, its times `*.time`, throughput per second `*.r.csv`.
//!
//! ```text
//! readrandom : 2.1 micros/op 476190 ops/sec 60.0 seconds 28571428 operations; 190.7 MB/s   result
//! Percentiles: P50: 1.9 ... P99.99: 41.2                                                    of that step
//!  Sum 9/0 1.2 GB 0.0 ...                                 row of the compaction statistics, by header names
//! ```
//! A step has the name that `benchmark.sh` gave the log, or else that of the benchmark. It ends at the next result or at the end of the file; the last of each kind of line counts, because
//! statistics are cumulative. Write amplification is what was written per byte ingested: exact here.

use super::benchmark_sh::{stem, step_of};
use super::model::{Target, gigabytes, number};
use super::names::Names;
use super::repair::Repair;
use super::sink::{CellOrigin, Sink};
use super::source::Source;
use super::target::rocksdb;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The text that every result line contains.
pub(super) const RESULT_MARK: &str = " micros/op ";
/// Header of a throughput file.
pub(super) const RATES_HEADER: &str = "secs_elapsed,interval_qps";

/// Percentiles kept, by their names in the log and in the summary line.
const PERCENTILES: [(&str, &str); 4] =
    [("P50:", "p50"), ("P99:", "p99"), ("P99.9:", "p99.9"), ("P99.99:", "p99.99")];

/// Columns of the Sum row kept.
const SUM_COLUMNS: [(&str, &str, &str); 4] = [
    ("Comp(sec)", "c_wsecs", "s"),
    ("CompMergeCPU(sec)", "c_csecs", "s"),
    ("Rblob(GB)", "b_rgb", "GB"),
    ("Wblob(GB)", "b_wgb", "GB"),
];

/// Reads a log.
pub(super) fn parse_log(source: &Source, sink: &mut Sink) {
    let version = source.lines().find_map(|(_, text)| version_banner(text)).unwrap_or_default();
    let mut names = Names::default();
    let mut step: Option<Step> = None;
    let mut header: Vec<&str> = Vec::new();
    for (line, text) in source.lines() {
        if text.contains(RESULT_MARK) {
            if let Some(done) = step.take() {
                done.emit(sink);
            }
            match result(text) {
                Some((name, values)) => {
                    let step_name = step_of(&source.name, name).unwrap_or(name);
                    let target = names.unique(step_name, target_of(version, source), line, sink);
                    let place = CellOrigin { target, step: step_name.into(), line };
                    for (metric, unit, value) in values {
                        sink.number(&place, metric, unit, value);
                    }
                    step = Some(Step { place, values: BTreeMap::new() });
                }
                None => sink.reject(line, "a result line that does not parse"),
            }
        } else if text.starts_with("Set seed to ") && text.contains("because") {
            sink.repair(Repair::SeedsDiffer, line, text.trim());
        } else if text.starts_with("Level ") && text.contains("Comp(sec)") {
            header = text.split_whitespace().collect();
        } else if let Some(step) = &mut step {
            step.take(line, text.trim(), &header);
        }
    }
    if let Some(done) = step {
        done.emit(sink);
    }
    if sink.rows.iter().any(|row| row.metric.starts_with("p9")) {
        sink.repair(Repair::CoarsePercentiles, 1, "p50 to p99.99");
    }
}

/// The target of a file: a version in a directory. Where the file does not say which, the directory has to.
fn target_of(version: &str, source: &Source) -> Target {
    let mut target = rocksdb(version, "", &source.directory);
    if version.is_empty() {
        target.name = target.configuration.clone();
    }
    target
}

/// `RocksDB:    version 8.6.7`.
fn version_banner(text: &str) -> Option<&str> {
    text.strip_prefix("RocksDB:")?.trim().strip_prefix("version")?.split_whitespace().next()
}

type Values = Vec<(&'static str, &'static str, f64)>;

/// `name : 2.1 micros/op 476190 ops/sec [60.0 seconds 28571428 operations]; [190.7 MB/s]`.
fn result(text: &str) -> Option<(&str, Values)> {
    let (name, rest) = text.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_end_matches(';')).collect();
    let mut values = Vec::new();
    for pair in words.windows(2) {
        let (metric, unit) = match pair[1] {
            "micros/op" => ("usec_op", "us"),
            "ops/sec" => ("ops_sec", "ops/s"),
            "seconds" => ("seconds", "s"),
            "operations" => ("operations", "count"),
            "MB/s" => ("mb_sec", "MB/s"),
            _ => continue,
        };
        values.push((metric, unit, number(pair[0])?));
    }
    let complete = ["usec_op", "ops_sec"].iter().all(|m| values.iter().any(|(name, ..)| name == m));
    (complete && !name.trim().is_empty()).then(|| (name.trim(), values))
}

/// The numbers of one step in the log so far: metric to unit, value and line.
struct Step {
    place: CellOrigin,
    values: BTreeMap<&'static str, (&'static str, f64, u32)>,
}

impl Step {
    fn set(&mut self, metric: &'static str, unit: &'static str, value: Option<f64>, line: u32) {
        if let Some(value) = value {
            self.values.insert(metric, (unit, value, line));
        }
    }

    fn take(&mut self, line: u32, text: &str, header: &[&str]) {
        if text.starts_with("Percentiles:") {
            for (name, metric) in PERCENTILES {
                self.set(metric, "us", word_after(text, name), line);
            }
        } else if text.starts_with("Min:") {
            self.set("pmax", "us", word_after(text, "Max:"), line);
        } else if text.starts_with("Sum ") {
            self.sum_row(line, text, header);
        } else if text.starts_with("Uptime(secs):") {
            self.set("uptime", "s", word_after(text, "Uptime(secs):"), line);
        } else if text.starts_with("Flush(GB):") {
            self.set("flush_gb", "GB", word_after(text, "cumulative"), line);
        } else if text.starts_with("Cumulative compaction:") {
            self.set("c_wgb", "GB", sized(text, "Cumulative compaction:"), line);
        } else if text.starts_with("Cumulative writes:") {
            self.set("ingest_gb", "GB", sized(text, "ingest:"), line);
        } else if text.starts_with("Cumulative stall:") {
            self.set("stall%", "%", text.split(',').nth(1).and_then(first_number), line);
        } else if text.starts_with("Blob file count:") {
            self.set("blob_sz", "GB", sized(text, "total size:"), line);
        } else if let Some(count) = stalls(text) {
            self.set("Nstall", "count", Some(count), line);
        }
    }

    /// The Sum row of the compaction statistics. Its size takes two words where the header has one.
    fn sum_row(&mut self, line: u32, text: &str, header: &[&str]) {
        let cells: Vec<&str> = text.split_whitespace().collect();
        if header.is_empty() || cells.len() != header.len() + 1 {
            return;
        }
        let size_at = header.iter().position(|name| *name == "Size").unwrap_or(usize::MAX);
        let cell = |name: &str| {
            let at = header.iter().position(|column| *column == name)?;
            cells.get(if at > size_at { at + 1 } else { at }).copied()
        };
        for (name, metric, unit) in SUM_COLUMNS {
            self.set(metric, unit, cell(name).and_then(number), line);
        }
        let size = cell("Size").and_then(number).zip(cells.get(size_at.saturating_add(1)));
        self.set("lsm_sz", "GB", size.and_then(|(size, unit)| gigabytes(size, unit)), line);
    }

    fn emit(self, sink: &mut Sink) {
        for (metric, (unit, value, line)) in &self.values {
            sink.number(&CellOrigin { line: *line, ..self.place.clone() }, metric, unit, *value);
        }
        let value = |metric: &str| self.values.get(metric);
        if let (Some((_, written, line)), Some((_, ingested, _))) = (value("c_wgb"), value("ingest_gb"))
            && *ingested > 0.0
        {
            let place = CellOrigin { line: *line, ..self.place.clone() };
            sink.number(&place, "w_amp", "ratio", written / ingested);
        }
    }
}

fn first_number(text: &str) -> Option<f64> {
    number(text.split_whitespace().next()?)
}

/// The number after `name`, which must be a whole word: `P99:` is not found in `P99.9:`.
fn word_after(text: &str, name: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    words.find(|word| *word == name)?;
    number(words.next()?.trim_end_matches(','))
}

/// The size after `name`, two words: `ingest: 0.16 GB`.
fn sized(text: &str, name: &str) -> Option<f64> {
    let mut words = text.split_once(name)?.1.split_whitespace();
    let size = number(words.next()?)?;
    gigabytes(size, words.next()?.trim_end_matches(','))
}

/// Stalls of both forms of the line: `Stalls(count): 3 level0_slowdown, ...` and
/// `Write Stall (count): name: 3, ...`. Totals in the second are not added again.
fn stalls(text: &str) -> Option<f64> {
    if let Some(old) = text.strip_prefix("Stalls(count):") {
        // Those "with_compaction" are counted in their plain sisters too.
        let own =
            old.split(',').filter(|part| !part.contains("interval") && !part.contains("with_compaction"));
        return Some(own.filter_map(first_number).sum());
    }
    let new = text.strip_prefix("Write Stall (count):")?;
    // The line of the whole database has one counter of its own and follows that of the column family.
    if new.contains("write-buffer-manager-limit-stops") {
        return None;
    }
    let parts = new.split(',').filter_map(|part| part.trim().split_once(": "));
    let own = parts.filter(|(name, _)| !name.starts_with("total-") && !name.starts_with("cf-"));
    Some(own.filter_map(|(_, count)| number(count)).sum())
}

/// Reads the wall, user and system seconds of a step.
pub(super) fn parse_times(source: &Source, sink: &mut Sink) {
    let (step, target) = (stem(&source.name), Arc::new(target_of("", source)));
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let Some([wall, user, system]) = times(text) else {
            sink.reject(line, "not 'wall user system' in seconds");
            continue;
        };
        let place = CellOrigin { target: Arc::clone(&target), step: step.into(), line };
        sink.number(&place, "elapsed", "s", wall);
        sink.number(&place, "u_cpu", "ks", user / 1000.0);
        sink.number(&place, "s_cpu", "ks", system / 1000.0);
    }
}

/// Three numbers of seconds.
pub(super) fn times(text: &str) -> Option<[f64; 3]> {
    let words: Option<Vec<f64>> = text.split_whitespace().map(number).collect();
    words?.try_into().ok()
}

/// Whole seconds between times that were rounded to such.
fn interval(at: &[f64]) -> f64 {
    let seconds = match at {
        [first, .., last] => (last - first) / (at.len() - 1) as f64,
        [only] => *only,
        [] => 1.0,
    };
    seconds.round().max(1.0)
}

/// Reads throughput by intervals, which are of one second in `benchmark.sh`.
pub(super) fn parse_rates(source: &Source, sink: &mut Sink) {
    let step = stem(&source.name);
    let (mut at, mut rates) = (Vec::new(), Vec::new());
    for (line, text) in source.lines().filter(|(_, text)| !text.trim().is_empty()) {
        let mut cells = text.split(',').map(number);
        match (cells.next().flatten(), cells.next().flatten()) {
            _ if text.starts_with(RATES_HEADER) => {}
            (Some(second), Some(rate)) => {
                at.push(second);
                rates.push(rate);
            }
            _ => sink.reject(line, "not 'second,operations'"),
        }
    }
    // Each number is the operations of an interval.
    let seconds = interval(&at);
    rates.iter_mut().for_each(|rate| *rate /= seconds);
    let place = CellOrigin { target: Arc::new(target_of("", source)), step: step.into(), line: 2 };
    sink.series(&place, "interval_qps", "ops/s", &at, rates);
    if step.contains("whilewriting") {
        sink.repair(Repair::WriterInThroughput, 1, step);
    }
}
