//! The summary line of RocksDB's benchmark scripts: 28 columns of one step.

use crate::analysis::results::Results;
use crate::report::text::align;
use crate::store::StepRow;
use outcrop_lab_load::StepResult;
use serde::Serialize;

/// One measured step of one session.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Step name.
    pub step: String,
    /// The result that was measured.
    pub result: StepResult,
    /// When the step ended, RFC 3339 in UTC.
    pub date: String,
    /// The largest resident memory meanwhile, MB.
    pub rss_mb: f64,
    /// The hash of the engine's source, if it said one.
    pub git_sha: String,
}

impl Measured {
    /// The measurements of `row` of `results`. In old records memory is known at the step's end alone.
    pub fn of(results: &Results, row: &StepRow) -> Measured {
        let session = results.sessions.iter().find(|session| session.id == row.session);
        let largest = ["rss_max", "rss"].into_iter().find_map(|name| row.metrics.get(name).copied());
        Measured {
            step: row.name.clone(),
            result: row.result.clone(),
            date: row.date.clone(),
            rss_mb: largest.unwrap_or(0.0),
            git_sha: session.and_then(|session| session.engine_git_sha.clone()).unwrap_or_default(),
        }
    }
}

/// Names of the 28 columns, in order.
pub const COLUMNS: [&str; 28] = [
    "ops_sec", "mb_sec", "lsm_sz", "blob_sz", "c_wgb", "w_amp", "c_mbps", "c_wsecs", "c_csecs", "b_rgb",
    "b_wgb", "usec_op", "p50", "p99", "p99.9", "p99.99", "pmax", "uptime", "stall%", "Nstall", "u_cpu",
    "s_cpu", "rss", "test", "date", "version", "job_id", "githash",
];

/// Operations per second of the counted threads.
pub fn ops_per_second(result: &StepResult) -> f64 {
    result.ops as f64 / result.seconds.max(1e-9)
}

/// The 28 columns of one step. Write amplification counts flush once: what the engine wrote over what users
/// wrote.
pub fn summary_line(measured: &Measured, version: &str, job: &str) -> [String; 28] {
    let (result, counters) = (&measured.result, &measured.result.counters);
    let [p50, p99, p999, p9999, max] = result.percentiles;
    let w_amp = if counters.ingest_gb > 0.0 {
        format!("{:.1}", counters.compaction_write_gb / counters.ingest_gb)
    } else {
        "NA".to_string()
    };
    let megabytes = (1u64 << 20) as f64;
    let c_mbps =
        if counters.uptime > 0.0 { counters.compaction_write_gb * 1024.0 / counters.uptime } else { 0.0 };
    [
        format!("{:.0}", ops_per_second(result).floor()),
        format!("{:.1}", result.bytes as f64 / megabytes / result.seconds.max(1e-9)),
        size_text(counters.table_bytes),
        size_text(counters.blob_bytes),
        format!("{:.2}", counters.compaction_write_gb),
        w_amp,
        format!("{c_mbps:.1}"),
        format!("{:.1}", counters.compaction_seconds),
        format!("{:.1}", counters.compaction_cpu_seconds),
        format!("{:.1}", counters.blob_read_gb),
        format!("{:.1}", counters.blob_write_gb),
        format!("{:.1}", result.micros_per_op),
        format!("{p50:.1}"),
        format!("{p99:.0}"),
        format!("{p999:.0}"),
        format!("{p9999:.0}"),
        format!("{max:.0}"),
        format!("{:.0}", counters.uptime),
        format!("{:.1}", counters.stall_percent),
        counters.stalls.to_string(),
        format!("{:.4}", result.usage.user_seconds / 1000.0),
        format!("{:.4}", result.usage.system_seconds / 1000.0),
        format!("{:.2}", measured.rss_mb / 1024.0),
        measured.step.clone(),
        measured.date.clone(),
        version.to_string(),
        job.to_string(),
        measured.git_sha.clone(),
    ]
}

fn size_text(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{}GB", bytes >> 30) } else { format!("{}MB", bytes >> 20) }
}

/// The middle of sorted numbers.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Summary lines in blocks that fit 80 columns, each row starting with its test.
pub fn summary_blocks(lines: &[[String; 28]]) -> String {
    const TEST: usize = 23;
    const BLOCKS: [&[usize]; 5] = [
        &[0, 1, 2, 3, 4, 5, 6],
        &[7, 8, 9, 10, 11, 12, 13],
        &[14, 15, 16, 17, 18, 19],
        &[20, 21, 22, 24],
        &[25, 26, 27],
    ];
    let mut text = String::new();
    for block in BLOCKS {
        let columns = || std::iter::once(TEST).chain(block.iter().copied());
        let mut rows = vec![columns().map(|column| COLUMNS[column].to_string()).collect::<Vec<_>>()];
        rows.extend(lines.iter().map(|line| columns().map(|column| line[column].clone()).collect()));
        text.push_str(&align(&rows));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_load::counters::Counters;

    fn measured(ops: u64) -> Measured {
        let (_, mut result) = crate::testing::step_and_result("readrandom", ops, 2.0);
        result.counters = Counters { compaction_write_gb: 3.0, ingest_gb: 2.0, ..Counters::default() };
        let (date, git_sha) = (String::new(), "0123456789".to_string());
        Measured { step: "readrandom".into(), result, date, rss_mb: 1536.0, git_sha }
    }

    #[test]
    fn the_summary_line_has_a_cell_for_each_column() {
        let line = summary_line(&measured(200), "1", "job");
        assert_eq!(line.len(), COLUMNS.len());
        let mut blobs = measured(200);
        let counters = &mut blobs.result.counters;
        (counters.blob_bytes, counters.blob_read_gb, counters.blob_write_gb) = (3 << 20, 1.25, 2.5);
        let of_blobs = summary_line(&blobs, "1", "job");
        assert_eq!([3, 9, 10].map(|column| of_blobs[column].as_str()), ["3MB", "1.2", "2.5"]);
        assert_eq!((line[22].as_str(), line[27].as_str()), ("1.50", "0123456789"));
        assert_eq!((line[0].as_str(), line[5].as_str(), line[23].as_str()), ("100", "1.5", "readrandom"));
    }

    #[test]
    fn blocks_of_summary_lines_fit_eighty_columns() {
        let mut m = measured(123_456_789);
        m.step = "fwdrangewhilewriting".into();
        m.date = "2026-11-21T04:34:05Z".into();
        let text = summary_blocks(&[summary_line(&m, "rocksdb@10.10.1.1", "block1")]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(COLUMNS.iter().all(|column| text.contains(column)));
    }
}
