//! From two readings and a result to metrics: totals over the step divided by totals, never a mean of ratios.

use super::Reading;
use super::sources::{TICKS_PER_SECOND, processors};
use crate::analysis::judge::{self, Better};
use crate::experiment::steps::PlannedStep;
use outcrop_lab_load::StepResult;
use outcrop_lab_load::database::Durability;
use outcrop_lab_load::process::ProcessUsage;
use outcrop_lab_stats::histogram::events_needed;
use std::collections::BTreeMap;

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow {
    /// Name in the store and in tables.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// How it is computed.
    pub formula: &'static str,
}

const fn higher(name: &'static str, unit: &'static str, formula: &'static str) -> MetricRow {
    MetricRow { name, unit, better: Better::Higher, formula }
}

const fn lower(name: &'static str, unit: &'static str, formula: &'static str) -> MetricRow {
    MetricRow { name, unit, better: Better::Lower, formula }
}

/// Every metric. The name of the first is what targets are compared by unless asked otherwise.
pub const METRICS: &[MetricRow] = &[
    higher("ops_sec", "1/s", "operations of the counted threads / seconds from first start to last finish"),
    higher("steady_ops_sec", "1/s", "operations per second of the last flat part of the step"),
    higher("krows_sec", "1000/s", "of a scan: thousands of rows / seconds of one client's scans"),
    higher("scan_rows_sec", "1/s", "rows that a scan beside the counted operations read / seconds"),
    higher("insert_sec", "1/s", "rows inserted, by counted operations or beside them / seconds of doing so"),
    higher("delete_sec", "1/s", "rows deleted / seconds of doing so"),
    lower("delete_search", "s", "seconds that deleters of the oldest rows spent looking for the oldest"),
    lower("dbgb1", "GB", "bytes of the database of a server at the end / 10^9"),
    lower("dbgb2", "GB", "bytes of all files of a server at the end / 10^9"),
    higher("rate_p50_floor", "1/s", "operations per second that half of the whole seconds reached"),
    higher("rate_p99_floor", "1/s", "operations per second that 99 of 100 whole seconds reached"),
    higher("mb_sec", "MB/s", "key and value bytes of the operations / 2^20 / seconds"),
    lower("usec_op", "us", "thread seconds * 1e6 / operations"),
    lower("p50", "us", "median of service times"),
    lower("p99", "us", "99th percentile of service times, of 1000 or more"),
    lower("p99.9", "us", "99.9th percentile of service times, of 10,000 or more"),
    lower("p99.99", "us", "99.99th percentile of service times, of 100,000 or more"),
    lower("pmax", "us", "longest service time"),
    lower("response_p50", "us", "median of the times from when operations were due to their ends"),
    lower(
        "response_p99",
        "us",
        "99th percentile of the times from when operations were due, of 1000 or more",
    ),
    lower(
        "response_p99.9",
        "us",
        "99.9th percentile of the times from when operations were due, of 10,000 or more",
    ),
    lower(
        "response_p99.99",
        "us",
        "99.99th percentile of the times from when operations were due, of 100,000 or more",
    ),
    lower("response_max", "us", "longest time from when an operation was due"),
    lower("late", "1", "operations that started late or never / operations that were due"),
    higher("rate_kept", "1", "operations that were done / operations that were due"),
    lower("longest_gap", "ms", "longest time without a completion in any one thread"),
    lower(
        "longest_op",
        "ms",
        "median over seconds of the longest operation that ended in the second, from when it was due in an open loop",
    ),
    lower(
        "slow_seconds",
        "s",
        "seconds in which an operation ended that took 100 ms or more, from when it was due in an open loop",
    ),
    lower("zero_seconds", "s", "longest run of whole seconds without an operation, of steps with many"),
    lower(
        "stalled_seconds",
        "s",
        "seconds with less than a tenth of the median second's operations, of steps with many",
    ),
    lower("cv", "1", "standard deviation / mean of operations per second, second by second"),
    lower("cpu_us/o", "us", "user and system time of the whole host / operations"),
    lower("proc_cpu_us/o", "us", "user and system time of the session's processes / operations"),
    lower(
        "load_cpu_us/o",
        "us",
        "user and system time of the threads that do the counted operations / operations",
    ),
    lower(
        "back_cpu_us/o",
        "us",
        "user and system time of the process's other threads, the engine's and a writer's or a scan's / operations",
    ),
    lower("server_cpu_us/o", "us", "user and system time of the server's processes / operations"),
    lower("redo_KB/o", "KB", "KB that a server put into its redo log / operations"),
    lower(
        "sync/o",
        "1",
        "times a server or an engine brought its log to the device, by its own count / operations; of writes in groups less than one",
    ),
    lower("client_cpu_us/o", "us", "user and system time of the clients of a server / operations"),
    lower("cs/o", "1", "context switches of the host / operations"),
    lower("vcs/o", "1", "times a thread of the process went to wait / operations"),
    lower("ivcs/o", "1", "times a thread of the process was made to wait / operations"),
    lower("server_vcs/o", "1", "times a living thread of the server's processes went to wait / operations"),
    lower(
        "server_ivcs/o",
        "1",
        "times a living thread of the server's processes was made to wait / operations",
    ),
    lower("net_KB/o", "KB", "KB over the loopback device / operations"),
    lower("busiest_cpu", "%", "busy time of the busiest processor / time"),
    lower("r/o", "1", "device reads / operations"),
    lower("w/o", "1", "device writes / operations"),
    lower("w/i", "1", "device writes / rows inserted"),
    lower("wKB/i", "KB", "device KB written / rows inserted"),
    lower("rKB/o", "KB", "device KB read / operations"),
    lower("wKB/o", "KB", "device KB written / operations"),
    lower("d/o", "1", "device discards / operations"),
    lower("flush/o", "1", "device flushes / operations"),
    lower("fault/o", "1", "minor and major faults of the process / operations"),
    lower("fault_fall", "1", "1 - faults per operation in the second half of the step / in the first"),
    lower("read_await", "ms", "device milliseconds in reads / device reads"),
    lower("write_await", "ms", "device milliseconds in writes / device writes"),
    lower("device_util", "%", "device busy time / time"),
    lower("write_amp_device", "1", "device bytes written / bytes of users"),
    lower("write_amp", "1", "bytes written by flush and compaction / bytes of users, by the engine's count"),
    lower("compaction_s", "s", "seconds in compaction and flush jobs"),
    lower("compaction_cpu_s", "s", "processor seconds in them"),
    lower("stall", "%", "share of the time writes were stalled, by the engine's count"),
    lower("stalls", "1", "times writes were slowed or stopped, by the engine's count"),
    lower(
        "proc_rKB/o",
        "KB",
        "bytes that the session's process, or its server's processes, read from devices / operations",
    ),
    lower(
        "proc_wKB/o",
        "KB",
        "bytes that the session's process, or its server's processes, gave to devices, less what was taken back / operations",
    ),
    lower(
        "instr/o",
        "1",
        "instructions of the process in user mode / operations, where the machine counts them",
    ),
    lower(
        "cycles/o",
        "1",
        "processor cycles of the process in user mode / operations, where the machine counts them",
    ),
    lower(
        "cachemiss/o",
        "1",
        "last-level cache misses of the process / operations, where the machine counts them",
    ),
    lower(
        "tlbmiss/o",
        "1",
        "data TLB misses of loads of the process / operations, where the machine counts them",
    ),
    lower(
        "rss",
        "MB",
        "resident memory of the process at the end; of a server that of its processes, what they share counted once",
    ),
    lower(
        "rss_max",
        "MB",
        "largest resident memory of the process during the step, second by second and at the end",
    ),
    lower("rss_growth", "1", "resident memory of the process at the end / at the start - 1"),
    higher(
        "cache_fill",
        "1",
        "bytes in the block cache, at the edge of the step where they are fewer / what it may hold, or the data if fewer",
    ),
    lower("tables", "MB", "bytes of live tables at the end"),
    lower("space_amp", "1", "bytes of live tables / bytes of all pairs"),
    higher("writer_rate", "1", "rate of the background writer / its target"),
    lower("writer_lag", "ms", "longest time the background writer was behind its schedule"),
    lower("other_cpu", "cores", "processor time of the host outside the session's process / time"),
    lower(
        "steal",
        "%",
        "processor time that the host of a virtual machine gave to others / all processor time",
    ),
    lower("throttled", "1", "times the control group ran out of its processor time"),
    lower("waited", "s", "wait for compaction before the step"),
];

/// The row of a metric.
pub fn metric(name: &str) -> Option<&'static MetricRow> {
    METRICS.iter().find(|row| row.name == name)
}

/// Metrics of a step by name; an unknown one is absent.
pub type Metrics = BTreeMap<String, f64>;

/// Computes the metrics of `step` from its result and the readings at its edges.
pub fn derive(
    step: &PlannedStep,
    result: &StepResult,
    first: &Reading,
    last: &Reading,
    waited: f64,
) -> Metrics {
    let mut metrics = Metrics::new();
    let mut set = |name: &str, value: f64| {
        debug_assert!(metric(name).is_some(), "{name} has a row");
        if value.is_finite() {
            metrics.insert(name.to_string(), value);
        }
    };
    let (ops, seconds) = (result.ops as f64, result.seconds.max(1e-9));
    set("ops_sec", ops / seconds);
    if step.sql.as_ref().is_some_and(|sql| sql.scans()) {
        set("krows_sec", 1e3 / result.micros_per_op);
    }
    if let Some(rows) = result.scanned_rows {
        set("scan_rows_sec", rows as f64 / seconds);
    }
    if let Some([inserted, deleted]) = result.rows {
        // Rows beside the counted operations have seconds of their own.
        let [inserting, deleting] = result.row_seconds.unwrap_or([seconds; 2]);
        set("insert_sec", inserted as f64 / inserting.max(1e-9));
        set("delete_sec", deleted as f64 / deleting.max(1e-9));
    }
    if let Some(seconds) = result.search_seconds {
        set("delete_search", seconds);
    }
    if let Some([database, files]) = result.database_bytes {
        set("dbgb1", database as f64 / 1e9);
        set("dbgb2", files as f64 / 1e9);
    }
    if step.sql.is_some() {
        set("rate_p50_floor", rate_floor(&result.per_second, 0.5));
        set("rate_p99_floor", rate_floor(&result.per_second, 0.99));
    }
    set("mb_sec", result.bytes as f64 / f64::from(1 << 20) / seconds);
    set("usec_op", result.micros_per_op);
    let names = ["p50", "p99", "p99.9", "p99.99", "pmax"];
    names.into_iter().zip(result.percentiles).for_each(|(name, value)| set(name, value));
    set("longest_gap", result.longest_gap_ms);
    let longest: Vec<f64> =
        result.longest_per_second.iter().filter(|us| **us > 0).map(|us| *us as f64 / 1000.0).collect();
    set("longest_op", middle(longest.clone()));
    if !longest.is_empty() {
        set("slow_seconds", longest.iter().filter(|ms| **ms >= SLOW_MS).count() as f64);
    }
    // Operations of a scan of everything and of upkeep are told when all is done: no second before stood still.
    if step.step.kind.has_many_operations() && result.per_second.iter().any(|ops| *ops > 0) {
        set("zero_seconds", longest_zero_run(&result.per_second) as f64);
        set("stalled_seconds", judge::stalled_seconds(&result.per_second).unwrap_or(f64::NAN));
    }
    set("cv", variation(&result.per_second));
    set("waited", waited);
    if step.step.while_writing || step.step.write_rate > 0 {
        set("writer_rate", result.writer_achieved);
        set("writer_lag", result.writer_lag_ms);
    }
    if let Some(open) = &result.open {
        let names = ["response_p50", "response_p99", "response_p99.9", "response_p99.99", "response_max"];
        names.into_iter().zip(open.percentiles).for_each(|(name, value)| set(name, value));
        // Where nothing was due nothing was late. Those that were passed over never started, too.
        set("late", (open.late + open.due - open.served) as f64 / open.due.max(1) as f64);
        set("rate_kept", if open.due == 0 { 1.0 } else { open.served as f64 / open.due as f64 });
    }
    let megabytes = f64::from(1 << 20);
    let counters = &result.counters;
    // Of a step on a server that of the client says nothing.
    let rss = match (&step.sql, &result.server) {
        (None, _) => Some(result.usage.rss_bytes),
        (Some(_), server) => server.map(|server| server.rss_bytes),
    };
    if let Some(bytes) = rss {
        set("rss", bytes as f64 / megabytes);
    }
    if counters.table_bytes > 0 {
        set("tables", counters.table_bytes as f64 / megabytes);
        let pair = (step.step.key_size + step.step.value_size) as u64;
        set(
            "space_amp",
            counters.table_bytes as f64 / (step.step.num.max(step.step.writer_num) * pair) as f64,
        );
    }
    let wanted = counters.cache_capacity.min(counters.table_bytes + counters.blob_bytes);
    if wanted > 0 {
        set("cache_fill", counters.cache_used as f64 / wanted as f64);
    }
    set("compaction_s", counters.compaction_seconds);
    set("compaction_cpu_s", counters.compaction_cpu_seconds);
    set("stall", counters.stall_percent);
    set("stalls", counters.stalls as f64);
    if counters.ingest_gb > 0.0 {
        set("write_amp", counters.compaction_write_gb / counters.ingest_gb);
    }
    from_readings(step, result, first, last, &mut set);
    metrics
}

fn from_readings(
    step: &PlannedStep,
    result: &StepResult,
    first: &Reading,
    last: &Reading,
    set: &mut impl FnMut(&str, f64),
) {
    let ops = result.ops as f64;
    let delta = |name: &str| Some((last.get(name)? - first.get(name)?) as f64);
    let mut per_op = |name: &str, total: Option<f64>| {
        if let Some(total) = total {
            set(name, total / ops);
        }
    };
    let busy =
        delta("cpu.user").zip(delta("cpu.system")).map(|(user, system)| (user + system) / TICKS_PER_SECOND);
    let client = result.usage.user_seconds + result.usage.system_seconds;
    let server = result.server.map(|server| server.user_seconds + server.system_seconds);
    let own = client + server.unwrap_or(0.0);
    per_op("cpu_us/o", busy.map(|seconds| seconds * 1e6));
    per_op("proc_cpu_us/o", Some(own * 1e6));
    let load = result.load_cpu_seconds.filter(|_| step.sql.is_none());
    per_op("load_cpu_us/o", load.map(|seconds| seconds * 1e6));
    per_op("back_cpu_us/o", load.map(|seconds| (own - seconds).max(0.0) * 1e6));
    per_op("server_cpu_us/o", server.map(|seconds| seconds * 1e6));
    per_op("client_cpu_us/o", step.sql.as_ref().map(|_| client * 1e6));
    per_op("redo_KB/o", result.redo_bytes.map(|bytes| bytes as f64 / 1024.0));
    let synced =
        (step.step.durability == Durability::Sync).then(|| result.counters.known_wal_syncs()).flatten();
    let syncs = if step.sql.is_some() { result.log_syncs } else { synced };
    per_op("sync/o", syncs.filter(|_| step.writes()).map(|syncs| syncs as f64));
    per_op("cs/o", delta("context_switches"));
    per_op("vcs/o", Some(result.usage.voluntary_switches as f64));
    per_op("ivcs/o", Some(result.usage.involuntary_switches as f64));
    let of_server =
        |count: fn(&ProcessUsage) -> u64| result.server.as_ref().map(|server| count(server) as f64);
    per_op("server_vcs/o", of_server(|server| server.voluntary_switches));
    per_op("server_ivcs/o", of_server(|server| server.involuntary_switches));
    let of_device = |which: usize| Some(result.server?.device_bytes?[which] as f64);
    // Of a step on a server the process that is sampled is the client, which reads and writes nothing.
    let of_process = |name: &str| delta(name).filter(|_| step.sql.is_none());
    let written = of_process("process.write_bytes")
        .map(|written| (written - delta("process.cancelled_bytes").unwrap_or(0.0)).max(0.0));
    let read = of_process("process.read_bytes").or(of_device(0));
    per_op("proc_rKB/o", read.map(|bytes| bytes / 1024.0));
    per_op("proc_wKB/o", written.or(of_device(1)).map(|bytes| bytes / 1024.0));
    let counted = &result.usage.processor;
    for (name, count) in [
        ("instr/o", counted.instructions),
        ("cycles/o", counted.cycles),
        ("cachemiss/o", counted.cache_misses),
        ("tlbmiss/o", counted.tlb_misses),
    ] {
        per_op(name, count.map(|count| count as f64));
    }
    per_op("net_KB/o", delta("loopback.bytes").map(|bytes| bytes / 1024.0));
    per_op("r/o", delta("device.reads"));
    per_op("w/o", delta("device.writes"));
    per_op("rKB/o", delta("device.read_sectors").map(|sectors| sectors / 2.0));
    per_op("wKB/o", delta("device.write_sectors").map(|sectors| sectors / 2.0));
    if let Some([inserted, _]) = result.rows.filter(|rows| rows[0] > 0) {
        let inserted = inserted as f64;
        // `per_op` divides by operations.
        let operations = |total: f64| total * ops / inserted;
        per_op("w/i", delta("device.writes").map(operations));
        per_op("wKB/i", delta("device.write_sectors").map(|sectors| operations(sectors / 2.0)));
    }
    per_op("d/o", delta("device.discards"));
    per_op("flush/o", delta("device.flushes"));
    let faults = delta("process.minor_faults").zip(delta("process.major_faults"));
    // Of a step on a server they would be the client's, and so would its memory.
    let of_engine = faults.filter(|_| step.sql.is_none());
    per_op("fault/o", of_engine.map(|(minor, major)| minor + major));
    for (name, time, count) in [
        ("read_await", "device.read_ms", "device.reads"),
        ("write_await", "device.write_ms", "device.writes"),
    ] {
        if let (Some(time), Some(count)) = (delta(time), delta(count))
            && count > 0.0
        {
            set(name, time / count);
        }
    }
    if let (None, Some(from), Some(to)) =
        (&step.sql, first.get("process.rss").filter(|from| *from > 0), last.get("process.rss"))
    {
        set("rss_growth", to as f64 / from as f64 - 1.0);
    }
    let times = ["cpu.user", "cpu.system", "cpu.idle", "cpu.wait", "cpu.steal"].map(delta);
    let all: Option<f64> = times.into_iter().sum();
    if let (Some(steal), Some(all)) = (times[4], all.filter(|all| *all > 0.0)) {
        set("steal", steal / all * 100.0);
    }
    if let Some(throttled) = delta("cgroup.throttled") {
        set("throttled", throttled);
    }
    let seconds = (last.at - first.at).max(1e-9);
    let busiest =
        (0..processors()).filter_map(|number| delta(&format!("cpu{number}.busy"))).max_by(f64::total_cmp);
    if let Some(ticks) = busiest {
        set("busiest_cpu", (ticks / TICKS_PER_SECOND / seconds * 100.0).min(100.0));
    }
    if let Some(milliseconds) = delta("device.busy_ms") {
        // Of a step on a server it ends a little later than the rest.
        set("device_util", (milliseconds / 10.0 / seconds).min(100.0));
    }
    if let Some(busy) = busy {
        set("other_cpu", ((busy - own) / seconds).max(0.0));
    }
    if step.counts_written_bytes()
        && let Some(sectors) = delta("device.write_sectors")
    {
        set("write_amp_device", sectors * 512.0 / result.bytes as f64);
    }
}

/// The rate that this share of the whole seconds reached; not a number without any.
///
/// Source: the published scripts' p50 and p99 of interval rates: sorted from the highest, entry round(share * n).
fn rate_floor(per_second: &[u64], share: f64) -> f64 {
    let mut rates = per_second.to_vec();
    rates.sort_unstable_by(|one, other| other.cmp(one));
    let at = (share * rates.len() as f64).round() as usize;
    rates.get(at.min(rates.len().saturating_sub(1))).map_or(f64::NAN, |rate| *rate as f64)
}

/// The largest resident memory of the process, in MB: of samples, and of what the step ended with. `None` of a step on a server,
/// whose memory is not sampled.
pub fn rss_max(step: &PlannedStep, readings: &[Reading], result: &StepResult) -> Option<f64> {
    if step.sql.is_some() {
        return None;
    }
    let samples = readings.iter().filter_map(|reading| reading.get("process.rss"));
    let largest = samples.max().unwrap_or(0) as f64 / 1024.0;
    Some(largest.max(result.usage.rss_bytes as f64 / f64::from(1 << 20)))
}

/// Percentiles far out, by the ends of their names.
const FAR: [(&str, f64); 3] = [("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Takes away percentiles with fewer than ten operations beyond them, of so many whose service and whose response times are known: they
/// are the longest of a few.
pub fn keep_certain(metrics: &mut Metrics, served: u64, responded: u64) {
    for (name, quantile) in FAR {
        let needed = events_needed(quantile);
        for (name, events) in [(name.to_string(), served), (format!("response_{name}"), responded)] {
            if events < needed {
                metrics.remove(&name);
            }
        }
    }
}

/// By what share page faults of an operation fell from the first half of a step to the second; `None` without samples
/// within.
pub fn fault_fall(readings: &[Reading], per_second: &[u64]) -> Option<f64> {
    let faults =
        |reading: &Reading| Some(reading.get("process.minor_faults")? + reading.get("process.major_faults")?);
    let (first, last) = (readings.first()?, readings.last()?);
    let inside = readings.get(1..readings.len() - 1)?;
    // The sample nearest the middle; operations are those of the seconds before and after it.
    let half = first.at.midpoint(last.at);
    let middle = inside.iter().min_by(|a, b| (a.at - half).abs().total_cmp(&(b.at - half).abs()))?;
    let cut = ((middle.at - first.at).round() as usize).min(per_second.len());
    let (before, after) = per_second.split_at(cut);
    let each = |from: &Reading, to: &Reading, ops: &[u64]| {
        Some((faults(to)? - faults(from)?) as f64 / ops.iter().sum::<u64>() as f64)
    };
    let (early, late) = (each(first, middle, before)?, each(middle, last, after)?);
    Some(1.0 - late / early).filter(|fall| fall.is_finite())
}

/// Milliseconds from which an operation is one that somebody notices.
const SLOW_MS: f64 = 100.0;

/// The middle; not a number of nothing.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    crate::report::summary_line::median(&values).unwrap_or(f64::NAN)
}

fn longest_zero_run(per_second: &[u64]) -> usize {
    let mut longest = 0;
    let mut current = 0;
    for &ops in per_second {
        current = if ops == 0 { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}

/// Coefficient of variation; not a number below two seconds.
fn variation(per_second: &[u64]) -> f64 {
    let n = per_second.len() as f64;
    let mean = per_second.iter().sum::<u64>() as f64 / n;
    let squares: f64 = per_second.iter().map(|&ops| (ops as f64 - mean).powi(2)).sum();
    (squares / (n - 1.0)).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{SERIES, series_index, sources};
    use outcrop_lab_load::steps::OpenLoopResult;
    use outcrop_lab_sql::insert_benchmark::{Phase, Queries, run::InsertStep};
    use outcrop_lab_sql::{Load, SqlStep};

    fn reading(at: f64, numbers: &[(&str, i64)]) -> Reading {
        let mut values = vec![sources::ABSENT; SERIES.len()];
        for (name, value) in numbers {
            values[series_index(name).unwrap()] = *value;
        }
        Reading { at, values }
    }

    #[test]
    fn a_rate_s_floor_is_what_most_seconds_reached() {
        let rates: Vec<u64> = (1..=100).collect();
        assert_eq!((rate_floor(&rates, 0.5), rate_floor(&rates, 0.99)), (50.0, 1.0));
        assert_eq!(rate_floor(&[7], 0.99), 7.0);
        assert!(rate_floor(&[], 0.5).is_nan());
    }

    #[test]
    fn totals_are_divided_by_operations_and_what_is_absent_stays_so() {
        let (step, result) = crate::testing::step_and_result("overwrite", 1000, 2.0);
        let first = reading(
            0.0,
            &[
                ("cpu.user", 100),
                ("cpu.system", 10),
                ("device.writes", 5),
                ("device.write_ms", 0),
                ("device.write_sectors", 0),
            ],
        );
        let last = reading(
            2.0,
            &[
                ("cpu.user", 250),
                ("cpu.system", 60),
                ("device.writes", 105),
                ("device.write_ms", 50),
                ("device.write_sectors", 1640),
            ],
        );
        let metrics = derive(&step, &result, &first, &last, 0.5);
        assert_eq!(metrics["ops_sec"], 500.0);
        assert_eq!(metrics["cpu_us/o"], 2000.0);
        assert_eq!((metrics["w/o"], metrics["wKB/o"], metrics["write_await"]), (0.1, 0.82, 0.5));
        assert!((metrics["write_amp_device"] - 1640.0 * 512.0 / 420_000.0).abs() < 1e-9);
        assert!(!metrics.contains_key("r/o") && !metrics.contains_key("read_await"));
        assert_eq!(metrics["waited"], 0.5);
        assert!(!metrics.contains_key("scan_rows_sec"), "nothing was scanned beside it");
        let (step, mut result) = crate::testing::step_and_result("readwhilescanning", 1000, 2.0);
        result.scanned_rows = Some(9000);
        assert_eq!(derive(&step, &result, &first, &last, 0.0)["scan_rows_sec"], 4500.0);
    }

    #[test]
    fn what_the_process_reads_and_writes_is_told_from_what_the_host_does() {
        let (step, mut result) = crate::testing::step_and_result("overwrite", 1024, 2.0);
        result.usage.processor.instructions = Some(2048);
        let of = |read: i64, written: i64, cancelled: i64| {
            [
                ("process.read_bytes", read),
                ("process.write_bytes", written),
                ("process.cancelled_bytes", cancelled),
                ("device.writes", written),
            ]
        };
        let metrics = derive(
            &step,
            &result,
            &reading(0.0, &of(0, 0, 0)),
            &reading(2.0, &of(1 << 20, 3 << 20, 1 << 20)),
            0.0,
        );
        assert_eq!((metrics["proc_rKB/o"], metrics["proc_wKB/o"], metrics["instr/o"]), (1.0, 2.0, 2.0));
        assert!(!metrics.contains_key("cycles/o"), "what is not counted is absent");
    }

    #[test]
    fn switches_loopback_and_the_busiest_processor_are_told() {
        let (step, mut result) = crate::testing::step_and_result("readrandom", 1000, 2.0);
        result.usage.voluntary_switches = 250;
        result.usage.involuntary_switches = 10;
        let first = reading(1.0, &[("loopback.bytes", 0), ("cpu0.busy", 100)]);
        let last = reading(3.0, &[("loopback.bytes", 2048), ("cpu0.busy", 150)]);
        let metrics = derive(&step, &result, &first, &last, 0.0);
        assert_eq!((metrics["vcs/o"], metrics["ivcs/o"], metrics["net_KB/o"]), (0.25, 0.01, 0.002));
        assert_eq!(metrics["busiest_cpu"], 25.0);
    }

    #[test]
    fn the_longest_operation_of_each_second_is_counted() {
        let (step, mut result) = crate::testing::step_and_result("overwrite", 1000, 2.0);
        let edge = reading(0.0, &[]);
        let of = |result: &StepResult| derive(&step, result, &edge, &edge, 0.0);
        result.longest_per_second = vec![2_000, 100_000, 0, 4_000, 3_000];
        let metrics = of(&result);
        assert_eq!((metrics["longest_op"], metrics["slow_seconds"]), (3.5, 1.0));
        result.longest_per_second.clear();
        assert!(!of(&result).contains_key("slow_seconds") && !of(&result).contains_key("longest_op"));
    }

    #[test]
    fn percentiles_of_too_few_operations_are_not_told() {
        let (step, result) = crate::testing::step_and_result("overwrite", 400, 2.0);
        let edge = reading(0.0, &[]);
        let kept = |served: u64, responded: u64| {
            let mut metrics = derive(&step, &result, &edge, &edge, 0.0);
            metrics.insert("response_p99".to_string(), 7.0);
            keep_certain(&mut metrics, served, responded);
            let all = ["p50", "p99", "p99.9", "p99.99", "pmax", "response_p99"];
            all.map(|name| metrics.contains_key(name))
        };
        assert_eq!(kept(400, 0), [true, false, false, false, true, false]);
        assert_eq!(kept(9_999, 1_000), [true, true, false, false, true, true]);
        assert_eq!(kept(10_000, 999), [true, true, true, false, true, false]);
        assert_eq!(kept(100_000, 100_000), [true; 6]);
    }

    #[test]
    fn operations_that_were_due_and_never_started_are_late() {
        let (step, mut result) = crate::testing::step_and_result("readrandom", 1000, 2.0);
        // A thousand operations at half the rate that was asked for: as many were due by the end.
        let percentiles = [1.0; 5];
        let mut late = |late: u64, unserved: u64, served: u64, due: u64| {
            result.open = Some(OpenLoopResult { rate: 1.0, percentiles, late, unserved, served, due });
            let edge = reading(0.0, &[]);
            derive(&step, &result, &edge, &edge, 0.0)["late"]
        };
        assert_eq!(late(900, 0, 1000, 2000), 0.95);
        assert_eq!((late(100, 50, 950, 1000), late(0, 0, 0, 0)), (0.15, 0.0));
    }

    #[test]
    fn seconds_before_a_step_tells_its_operations_are_not_those_of_a_stall() {
        let still = |name: &str, per_second: &[u64]| {
            let (step, mut result) = crate::testing::step_and_result(name, 1000, 4.5);
            result.per_second = per_second.to_vec();
            let edge = reading(0.0, &[]);
            let metrics = derive(&step, &result, &edge, &edge, 0.0);
            ["zero_seconds", "stalled_seconds"].map(|name| metrics.get(name).copied())
        };
        assert_eq!(still("readseq", &[0, 0, 0, 0]), [None; 2]);
        assert_eq!(still("readseq", &[0, 0, 900, 0]), [None; 2], "two scans");
        assert_eq!(still("readrandom", &[0, 0, 900, 0, 900, 900]), [Some(2.0), Some(3.0)]);
        assert_eq!(still("readrandom", &[0; 4]), [None; 2], "when they were done is not known");
    }

    #[test]
    fn of_a_server_nothing_is_said_that_was_read_of_its_client() {
        let (mut step, mut result) = crate::testing::step_and_result("overwrite", 1000, 2.0);
        let numbers = |count: i64| {
            ["device.write_sectors", "process.read_bytes", "process.write_bytes", "process.rss"]
                .map(|name| (name, count << 20))
        };
        let edges = [reading(0.0, &numbers(1)), reading(2.0, &numbers(2))];
        result.usage.rss_bytes = 7 << 20;
        let of_client = ["write_amp_device", "proc_rKB/o", "proc_wKB/o", "rss"];
        let engine = derive(&step, &result, &edges[0], &edges[1], 0.0);
        assert!(of_client.iter().all(|name| engine.contains_key(*name)), "{engine:?}");
        assert_eq!(rss_max(&step, &edges, &result), Some(2048.0));

        let insert = InsertStep { phase: Phase::Query(Queries::Point, 100), batch: 50 };
        let load = Load::Insert(insert);
        step.sql = Some(SqlStep { load, tables: 1, rows: 1000, engine: String::new() });
        // A server that belongs to somebody else: nothing is known of its memory.
        let foreign = derive(&step, &result, &edges[0], &edges[1], 0.0);
        assert!(of_client.iter().all(|name| !foreign.contains_key(*name)), "{foreign:?}");
        assert_eq!(rss_max(&step, &edges, &result), None);
        result.server = Some(ProcessUsage { rss_bytes: 90 << 20, ..ProcessUsage::default() });
        let own = derive(&step, &result, &edges[0], &edges[1], 0.0);
        assert_eq!(own["rss"], 90.0);
        assert!(!own.contains_key("proc_wKB/o"), "it was not told");
        let server = result.server.as_mut().unwrap();
        (server.device_bytes, server.voluntary_switches) = (Some([1000 << 10, 2000 << 10]), 3000);
        let own = derive(&step, &result, &edges[0], &edges[1], 0.0);
        assert_eq!((own["proc_rKB/o"], own["proc_wKB/o"], own["server_vcs/o"]), (1.0, 2.0, 3.0));
    }

    #[test]
    fn rows_beside_queries_are_divided_by_the_seconds_of_those_who_wrote_them() {
        let (step, mut result) = crate::testing::step_and_result("overwrite", 1000, 2.0);
        (result.rows, result.row_seconds) = (Some([300, 80]), None);
        let rates = |result: &StepResult| {
            let metrics = derive(&step, result, &reading(0.0, &[]), &reading(2.0, &[]), 0.0);
            (metrics["insert_sec"], metrics["delete_sec"])
        };
        assert_eq!(rates(&result), (150.0, 40.0));
        result.row_seconds = Some([3.0, 4.0]);
        assert_eq!(rates(&result), (100.0, 20.0));
    }

    #[test]
    fn memory_is_known_at_its_largest_and_the_cache_by_what_it_could_hold() {
        let (step, mut result) = crate::testing::step_and_result("readrandom", 1000, 2.0);
        let at = |at: f64, kilobytes: i64| reading(at, &[("process.rss", kilobytes)]);
        result.usage.rss_bytes = 3 << 20;
        assert_eq!(rss_max(&step, &[at(0.0, 1024), at(1.0, 5 << 10), at(2.0, 2048)], &result), Some(5.0));
        assert_eq!(
            rss_max(&step, &[reading(0.0, &[])], &result),
            Some(3.0),
            "without samples the end is known"
        );
        let mut fill = |used, capacity, tables, blobs| {
            let counters = &mut result.counters;
            (counters.cache_used, counters.cache_capacity) = (used, capacity);
            (counters.table_bytes, counters.blob_bytes) = (tables, blobs);
            let edge = reading(0.0, &[]);
            derive(&step, &result, &edge, &edge, 0.0).get("cache_fill").copied()
        };
        assert_eq!(fill(50, 100, 1000, 0), Some(0.5), "a cache smaller than the data");
        assert_eq!(fill(50, 100, 20, 30), Some(1.0), "a cache that holds all of them");
        assert_eq!((fill(0, 0, 20, 0), fill(0, 100, 0, 0)), (None, None), "not known, and nothing to hold");
    }

    #[test]
    fn faults_are_held_against_the_operations_of_their_half() {
        let at = |at: f64, faults: i64| {
            reading(at, &[("process.minor_faults", faults), ("process.major_faults", 0)])
        };
        let readings = [at(0.0, 0), at(1.0, 90), at(2.0, 100), at(4.0, 110)];
        // 100 faults in 10 operations, then 10 in 20.
        assert_eq!(fault_fall(&readings, &[5, 5, 10, 10]), Some(0.95));
        assert_eq!(fault_fall(&readings[..1], &[5]), None);
        assert_eq!(fault_fall(&[at(0.0, 0), at(1.0, 9)], &[5]), None);
        assert_eq!(fault_fall(&[at(0.0, 0), at(1.0, 0), at(2.0, 5)], &[5, 5]), None, "nothing to fall from");
    }

    #[test]
    fn names_of_metrics_are_unique() {
        let mut names: Vec<_> = METRICS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn runs_without_operations_and_scatter_are_seen() {
        assert_eq!(longest_zero_run(&[5, 0, 0, 3, 0]), 2);
        assert!(variation(&[10]).is_nan());
        assert!((variation(&[8, 12]) - 0.282_842_712).abs() < 1e-6);
    }
}
