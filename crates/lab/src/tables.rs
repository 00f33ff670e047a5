//! From step results to numbers in tables: the summary line's 28 columns, and paired ratios.

use outcrop_lab_load::StepResult;
use serde::Serialize;

/// One measured step of one session.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Index of the target.
    pub target: usize,
    /// Round.
    pub round: usize,
    /// Step name.
    pub step: String,
    /// What was measured.
    pub result: StepResult,
    /// When the step ended, RFC 3339 in UTC.
    pub date: String,
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
        "0GB".to_string(),
        format!("{:.2}", counters.compaction_write_gb),
        w_amp,
        format!("{c_mbps:.1}"),
        format!("{:.1}", counters.compaction_seconds),
        format!("{:.1}", counters.compaction_cpu_seconds),
        "0.0".to_string(),
        "0.0".to_string(),
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
        format!("{:.2}", result.usage.rss_bytes as f64 / (1u64 << 30) as f64),
        measured.step.clone(),
        measured.date.clone(),
        version.to_string(),
        job.to_string(),
        String::new(),
    ]
}

fn size_text(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{}GB", bytes >> 30) } else { format!("{}MB", bytes >> 20) }
}

/// A ratio over paired rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Median over rounds.
    pub median: f64,
    /// Smallest of any round.
    pub min: f64,
    /// Largest of any round.
    pub max: f64,
    /// Rounds.
    pub rounds: usize,
}

/// Throughput of `target` over that of `base` on `step`, round by round. `None` if no round has both.
pub fn paired_ratio(measured: &[Measured], step: &str, target: usize, base: usize) -> Option<Ratio> {
    let of = |wanted: usize, round: usize| {
        measured
            .iter()
            .find(|m| m.target == wanted && m.round == round && m.step == step)
            .map(|m| ops_per_second(&m.result))
    };
    let rounds = measured.iter().map(|m| m.round + 1).max().unwrap_or(0);
    let mut ratios: Vec<f64> =
        (0..rounds).filter_map(|round| Some(of(target, round)? / of(base, round)?)).collect();
    ratios.sort_by(f64::total_cmp);
    Some(Ratio {
        median: median(&ratios)?,
        min: *ratios.first()?,
        max: *ratios.last()?,
        rounds: ratios.len(),
    })
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

/// Why results of `step` must not be compared, if any round of `targets` says so.
pub fn invalid(measured: &[Measured], step: &str, targets: &[usize]) -> Option<String> {
    /// Share of its rate that a background writer must have kept.
    const WRITER_RATE: f64 = 0.95;
    let of_step = measured.iter().filter(|m| m.step == step && targets.contains(&m.target));
    of_step.into_iter().find_map(|m| {
        let (round, result) = (m.round + 1, &m.result);
        if result.ops == 0 {
            Some(format!("round {round}: no operation was completed"))
        } else if result.writer_achieved < WRITER_RATE {
            let percent = result.writer_achieved * 100.0;
            Some(format!("round {round}: the background writer kept {percent:.0} % of its rate"))
        } else if step.starts_with("readrandom") && result.found < result.ops {
            Some(format!(
                "round {round}: {} of {} keys were not found",
                result.ops - result.found,
                result.ops
            ))
        } else {
            None
        }
    })
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

/// Text in columns, the first left-aligned, the others right-aligned.
pub fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column == 0 {
                text.push_str(&format!("{cell:<w$}", w = widths[column]));
            } else {
                text.push_str(&format!("  {cell:>w$}", w = widths[column]));
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_load::counters::Counters;
    use outcrop_lab_load::process::ProcessUsage;

    fn measured(target: usize, round: usize, ops: u64) -> Measured {
        let result = StepResult {
            ops,
            seconds: 2.0,
            micros_per_op: 1.0,
            bytes: ops * 420,
            found: ops,
            percentiles: [1.0, 2.0, 3.0, 4.0, 5.0],
            per_second: vec![],
            longest_gap_ms: 0.0,
            writer_achieved: 1.0,
            counters: Counters { compaction_write_gb: 3.0, ingest_gb: 2.0, ..Counters::default() },
            usage: ProcessUsage::default(),
            samples: outcrop_lab_load::steps::new_histogram(),
        };
        Measured { target, round, step: "readrandom".into(), result, date: String::new() }
    }

    #[test]
    fn ratios_pair_rounds_and_give_their_spread() {
        let all = [
            measured(0, 0, 100),
            measured(1, 0, 50),
            measured(0, 1, 90),
            measured(1, 1, 100),
            measured(0, 2, 300),
            measured(1, 2, 100),
        ];
        let ratio = paired_ratio(&all, "readrandom", 0, 1).unwrap();
        assert_eq!(ratio, Ratio { median: 2.0, min: 0.9, max: 3.0, rounds: 3 });
        assert!(paired_ratio(&all, "fillseq", 0, 1).is_none());
    }

    #[test]
    fn the_summary_line_has_a_cell_for_each_column() {
        let line = summary_line(&measured(0, 0, 200), "1", "job");
        assert_eq!(line.len(), COLUMNS.len());
        assert_eq!((line[0].as_str(), line[5].as_str(), line[23].as_str()), ("100", "1.5", "readrandom"));
    }

    #[test]
    fn numbers_that_mean_nothing_are_named() {
        let mut slow = measured(1, 2, 100);
        slow.result.writer_achieved = 0.8;
        let mut missing = measured(0, 0, 100);
        missing.result.found = 63;
        let all = [missing, slow, measured(0, 1, 100)];
        assert!(invalid(&all, "readrandom", &[0]).unwrap().contains("37 of 100 keys"));
        assert!(
            invalid(&all, "readrandom", &[1]).unwrap().contains("round 3: the background writer kept 80 %")
        );
        assert!(invalid(&all[2..], "readrandom", &[0]).is_none());
    }

    #[test]
    fn blocks_of_summary_lines_fit_eighty_columns() {
        let mut m = measured(0, 0, 123_456_789);
        m.step = "fwdrangewhilewriting".into();
        m.date = "2026-11-21T04:34:05Z".into();
        let text = summary_blocks(&[summary_line(&m, "rocksdb@10.10.1.1", "round1")]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(COLUMNS.iter().all(|column| text.contains(column)));
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".into(), "10".into()], vec!["long".into(), "9".into()]];
        assert_eq!(align(&rows), "a     10\nlong   9\n");
    }
}
