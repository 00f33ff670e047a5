//! Importing db_bench's files: each format, each repair, on files written for the purpose.

use crate::imported::{fixtures, import, number, only, rejected, repaired, rows};
use outcrop_lab::import::{Repair, Report, Value};
use std::path::Path;

const LOAD: &str = "fillseq.wal_disabled.v400";
const WAIT: &str = "overwriteandwait.t1.s0";

#[test]
fn summary_lines_carry_every_column_with_file_and_line() {
    let report = fixtures("db_bench");
    let file = "iobuf/summary.tsv";
    let row = only(&report, file, WAIT, "8.0.0", "ops_sec");
    assert_eq!((row.number(), row.unit, row.line), (Some(100_000.0), "ops/s", 14));
    assert_eq!(&*row.target.name, "8.0.0 gcc");
    let load = only(&report, file, LOAD, "10.3.4", "ops_sec");
    assert_eq!((&*load.target.build, &*load.target.configuration), ("clang.lto", "iobuf bm.lc.nt1.d0"));
    for (metric, value) in [
        ("mb_sec", 400.0),
        ("lsm_sz", 88.0),
        ("blob_sz", 0.0),
        ("c_wgb", 40.0),
        ("c_mbps", 409.6),
        ("c_wsecs", 500.0),
        ("c_csecs", 450.0),
        ("b_rgb", 0.0),
        ("b_wgb", 0.0),
        ("usec_op", 0.7),
        ("p50", 0.5),
        ("p99", 1.0),
        ("p99.9", 4.0),
        ("p99.99", 1135.0),
        ("pmax", 55_766_559.0),
        ("uptime", 100.0),
        ("stall%", 38.7),
        ("Nstall", 12.0),
        ("u_cpu", 0.4),
        ("s_cpu", 0.0),
        ("rss", 1.5),
        ("w_amp_legacy", 1.1),
    ] {
        assert_eq!(number(&report, file, WAIT, "8.0.0", metric), value, "{metric}");
    }
    let date = only(&report, file, WAIT, "8.0.0", "date");
    assert_eq!(date.value, Value::Word("2025-11-25T01:32:39".into()));
    assert_eq!(only(&report, file, WAIT, "8.0.0", "githash").value, Value::Word("0123456789".into()));
}

#[test]
fn shifted_compaction_columns_are_moved_back_from_10_3_on() {
    let report = fixtures("db_bench");
    let file = "iobuf/summary.tsv";
    let seconds = only(&report, file, WAIT, "10.3.4", "c_wsecs");
    assert_eq!((seconds.number(), seconds.published), (Some(5295.0), Some(162.0)));
    assert!(rows(&report, file, WAIT, "10.3.4", "c_csecs").is_empty());
    assert!(rows(&report, file, WAIT, "10.3.4", "b_wgb").is_empty());
    let blobs = only(&report, file, LOAD, "10.3.4", "b_rgb");
    assert_eq!((blobs.number(), blobs.published), (Some(3.0), Some(178.0)));
    assert_eq!(number(&report, file, WAIT, "10.2.3", "c_wsecs"), 5303.0);
    assert_eq!(number(&report, file, WAIT, "10.2.3", "c_csecs"), 2836.0);
    assert_eq!(repaired(&report, file, Repair::ShiftedCompactionColumns), [8, 16]);
}

#[test]
fn compaction_columns_that_cannot_be_shifted_stay() {
    let report = fixtures("db_bench");
    let file = "sum.iobuf.repaired.txt";
    assert_eq!(number(&report, file, WAIT, "10.4.2", "c_wsecs"), 5303.0);
    assert_eq!(number(&report, file, WAIT, "10.4.2", "c_csecs"), 2836.0);
    assert!(repaired(&report, file, Repair::ShiftedCompactionColumns).is_empty());
}

#[test]
fn counters_that_were_lost_are_unknown_and_not_zero() {
    let report = fixtures("db_bench");
    let file = "iobuf/summary.tsv";
    for metric in ["Nstall", "rss"] {
        assert!(rows(&report, file, WAIT, "10.2.3", metric).is_empty(), "{metric}");
    }
    assert_eq!(repaired(&report, file, Repair::StallCountMissing), [7, 8, 15, 16]);
    assert_eq!(repaired(&report, file, Repair::ResidentSizeMissing), [7, 8, 15, 16]);
}

#[test]
fn write_amplification_counts_flushes_once_where_the_file_tells() {
    let report = fixtures("db_bench");
    let file = "iobuf/summary.tsv";
    // 40 GB written, 400 MB/s for 100 s ingested.
    let load = only(&report, file, LOAD, "8.0.0", "w_amp");
    assert!((load.number().unwrap() - 40.0 / (400.0 * 100.0 / 1024.0)).abs() < 1e-9);
    assert_eq!(load.published, Some(1.1));
    assert!(rows(&report, file, WAIT, "8.0.0", "w_amp").is_empty());
    assert_eq!(repaired(&report, file, Repair::FlushCountedTwice).len(), 7);
}

#[test]
fn a_file_that_the_lab_wrote_itself_has_no_defects_of_others() {
    let temp = tempfile::tempdir().unwrap();
    let columns = outcrop_lab::report::summary_line::COLUMNS;
    let line = |version: &str| {
        columns.map(|column| match column {
            "test" => "readrandom".to_string(),
            "version" => version.to_string(),
            "date" | "job_id" | "githash" => "x".to_string(),
            "lsm_sz" | "blob_sz" => "5MB".to_string(),
            _ => "1.5".to_string(),
        })
    };
    let lines =
        [columns.map(str::to_string), line("outcrop"), line("rocksdb@11.8.1")].map(|line| line.join("\t"));
    let file = temp.path().join("summary.tsv");
    std::fs::write(&file, format!("# targets:\n# outcrop\n# rocksdb@11.8.1\n{}\n", lines.join("\n")))
        .unwrap();
    let report = import(&file);
    assert_eq!(number(&report, "summary.tsv", "readrandom", "outcrop", "w_amp"), 1.5);
    assert!(report.repairs.is_empty() && report.rejects.is_empty(), "{:?}", report.repairs);
}

#[test]
fn whole_files_are_labelled_once() {
    let report = fixtures("db_bench");
    assert_eq!(repaired(&report, "iobuf/summary.tsv", Repair::MeasuredOnce), [5]);
    assert_eq!(repaired(&report, "iobuf/summary.tsv", Repair::CoarsePercentiles), [5]);
    // A target measured twice is no single measurement.
    assert!(repaired(&report, "sum.iobuf.8x.txt", Repair::MeasuredOnce).is_empty());
    assert_eq!(repaired(&report, "sum.iobuf.8x.txt", Repair::UniversalWaitSkipped), [8, 9]);
}

#[test]
fn a_target_measured_twice_is_kept_twice() {
    let report = fixtures("db_bench");
    assert_eq!(repaired(&report, "sum.iobuf.8x.txt", Repair::RepeatedTarget), [9]);
    let names: Vec<String> = rows(&report, "sum.iobuf.8x.txt", WAIT, "8.7.3", "ops_sec")
        .iter()
        .map(|row| row.target.name.to_string())
        .collect();
    assert_eq!(names, ["8.7.3 fb.gcc", "8.7.3 fb.gcc#2"]);
}

#[test]
fn tables_without_a_header_take_their_targets_from_the_summary_beside_them() {
    let report = fixtures("db_bench");
    assert_eq!(number(&report, "abs.iobuf.8x.tsv", WAIT, "8.6.7", "ops_sec"), 1000.0);
    assert_eq!(number(&report, "abs.iobuf.8x.tsv", WAIT, "8.7.3 fb.gcc#2", "ops_sec"), 910.0);
    let ratio = only(&report, "rel2.iobuf.8x.csv", WAIT, "8.7.3 fb.gcc#2", "ops_sec");
    assert_eq!((ratio.number(), ratio.unit), (Some(0.91), "ratio"));
    assert_eq!(ratio.relative_to.as_deref(), Some("8.6.7 fb.gcc"));
    let orphan = rejected(&report, "abs.orphan.tsv");
    assert!(orphan[0].1.contains("sum.orphan.txt beside it names 0 targets for 2 columns"), "{orphan:?}");
}

#[test]
fn tables_with_a_header_are_relative_when_their_first_column_is_one() {
    let report = fixtures("db_bench");
    let csv = only(&report, "csum.iobuf.gcc.csv", WAIT, "7.10.2", "ops_sec");
    assert_eq!((csv.number(), csv.relative_to.as_deref()), (Some(0.95), Some("6.29.5")));
    let tsv = only(&report, "fmt.iobuf.lru.abs0.tsv", LOAD, "7.10.2", "ops_sec");
    assert_eq!((tsv.number(), tsv.relative_to.as_deref(), tsv.line), (Some(1.07), Some("6.29.5"), 2));
    let absolute = only(&report, "fmt.iobuf.lru.abs1.csv", LOAD, "7.10.2", "ops_sec");
    assert_eq!((absolute.number(), absolute.relative_to.as_deref()), (Some(1070.0), None));
}

#[test]
fn logs_are_read_by_header_names_in_every_layout() {
    let report = fixtures("db_bench");
    let new = "benchmark_overwrite.t1.s0.log";
    let of = |metric| number(&report, new, "overwrite.t1.s0", "10.3.4", metric);
    for (metric, value) in [
        ("ops_sec", 476_190.0),
        ("usec_op", 2.1),
        ("seconds", 60.0),
        ("operations", 28_571_428.0),
        ("mb_sec", 190.7),
        ("p50", 1.9),
        ("p99", 12.0),
        ("p99.9", 30.0),
        ("p99.99", 410.0),
        ("pmax", 41234.0),
        ("c_wsecs", 44.1),
        ("c_csecs", 40.2),
        ("b_rgb", 0.5),
        ("b_wgb", 0.7),
        ("lsm_sz", 0.5),
        ("uptime", 181.9),
        ("flush_gb", 2.0),
        ("c_wgb", 6.0),
        ("ingest_gb", 4.0),
        ("stall%", 10.0),
        ("w_amp", 1.5),
        ("Nstall", 33.0),
        ("blob_sz", 0.0),
    ] {
        assert_eq!(of(metric), value, "{metric}");
    }
    let two = "benchmark_two.t1.log";
    assert_eq!(number(&report, two, "fillseq", "6.29", "c_csecs"), 40.2);
    assert_eq!(number(&report, two, "fillseq", "6.29", "lsm_sz"), 1228.8);
    assert_eq!(number(&report, two, "fillseq", "6.29", "Nstall"), 33.0);
    assert_eq!(number(&report, two, "fillseq", "6.29", "p50"), 1.9);
    assert_eq!(number(&report, two, "readrandom", "6.29", "p50"), 4.9);
    assert!(rows(&report, two, "readrandom", "6.29", "c_wsecs").is_empty());
    let old = "benchmark_old.t1.log";
    assert_eq!(number(&report, old, "fillseq", "5.18", "c_wsecs"), 44.0);
    assert!(rows(&report, old, "fillseq", "5.18", "c_csecs").is_empty());
    assert_eq!(repaired(&report, new, Repair::SeedsDiffer), [1]);
    let torn = rejected(&report, "benchmark_torn.t1.log");
    assert_eq!(torn, [(2, "a result line that does not parse".to_string())]);
    assert_eq!(number(&report, "benchmark_torn.t1.log", "readseq", "8.0", "ops_sec"), 9e6);
}

/// Writes a log of each `benchmark` that took so many operations per second.
fn write_log(path: &Path, version: &str, results: &[(&str, u32)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut text = format!("RocksDB:    version {version}\n");
    for (benchmark, rate) in results {
        let line =
            format!("{benchmark:<12} :       2.000 micros/op {rate} ops/sec 60.000 seconds 99 operations;\n");
        text += &line;
    }
    std::fs::write(path, text).unwrap();
}

/// Step, target and rate of each result, in order.
fn rates(report: &Report) -> Vec<(String, String, f64)> {
    let rates = report.rows.iter().filter(|row| &*row.metric == "ops_sec");
    rates.map(|row| (row.step.to_string(), row.target.name.to_string(), row.number().unwrap())).collect()
}

#[test]
fn logs_of_a_directory_have_the_steps_that_benchmark_sh_named_them_by() {
    let temp = tempfile::tempdir().unwrap();
    for (name, benchmark, rate) in [
        ("fwdrange.t1", "seekrandom", 1),
        ("readrandom.t1", "readrandom", 2),
        ("readrandom.t8", "readrandom", 3),
        ("revrange.t1", "seekrandom", 4),
    ] {
        write_log(&temp.path().join(format!("out/benchmark_{name}.log")), "8.6.7", &[(benchmark, rate)]);
    }
    let report = import(temp.path());
    let steps: Vec<(String, f64)> =
        rates(&report).into_iter().map(|(step, target, rate)| (format!("{step} {target}"), rate)).collect();
    let expected = ["fwdrange.t1 8.6.7", "readrandom.t1 8.6.7", "readrandom.t8 8.6.7", "revrange.t1 8.6.7"];
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0].map(|rate| (expected[rate as usize - 1].to_string(), rate)));
    assert!(report.repairs.is_empty() && report.rejects.is_empty(), "{:?}", report.repairs);
    let waits = temp.path().join("other/benchmark_overwriteandwait.t4.s0.log");
    write_log(&waits, "8.6.7", &[("overwrite", 5), ("waitforcompaction", 6)]);
    let load = temp.path().join("other/benchmark_fillseq.wal_disabled.v400.log");
    write_log(&load, "8.6.7", &[("fillseq", 7)]);
    let other = import(&temp.path().join("other"));
    let steps: Vec<String> = rates(&other).into_iter().map(|(step, ..)| step).collect();
    assert_eq!(steps, ["fillseq.wal_disabled.v400", "overwriteandwait.t4.s0", "waitforcompaction"]);
}

#[test]
fn results_of_logs_that_recur_are_all_kept() {
    let temp = tempfile::tempdir().unwrap();
    let log = |path: &str, results: &[(&str, u32)]| write_log(&temp.path().join(path), "8.6.7", results);
    // Three runs of one, other names than the script's, and the same version in another directory.
    log("a/benchmark_readrandom.t1.log", &[("readrandom", 1), ("readrandom", 2), ("readrandom", 3)]);
    log("a/mine.log", &[("readrandom", 4), ("seekrandom", 5)]);
    log("a/other.log", &[("readrandom", 6)]);
    log("b/benchmark_readrandom.t1.log", &[("readrandom", 7)]);
    let report = import(temp.path());
    let named = |step: &str, target: &str, rate: f64| (step.to_string(), target.to_string(), rate);
    assert_eq!(
        rates(&report),
        [
            named("readrandom.t1", "8.6.7", 1.0),
            named("readrandom.t1", "8.6.7#2", 2.0),
            named("readrandom.t1", "8.6.7#3", 3.0),
            named("readrandom", "8.6.7", 4.0),
            named("seekrandom", "8.6.7", 5.0),
            named("readrandom", "8.6.7#2", 6.0),
            named("readrandom.t1", "8.6.7#4", 7.0),
        ]
    );
    assert_eq!(repaired(&report, "a/benchmark_readrandom.t1.log", Repair::RepeatedTarget), [3, 4]);
    assert_eq!(repaired(&report, "a/other.log", Repair::RepeatedTarget), [2]);
    assert_eq!(repaired(&report, "b/benchmark_readrandom.t1.log", Repair::RepeatedTarget), [2]);
    // All metrics of a result go with it.
    let seconds = rows(&report, "b/benchmark_readrandom.t1.log", "readrandom.t1", "8.6.7#4", "seconds");
    assert_eq!(seconds.len(), 1);
}

#[test]
fn times_and_rates_of_directories_stand_side_by_side() {
    let temp = tempfile::tempdir().unwrap();
    for (version, rate) in [("8.6", 10), ("8.7", 20)] {
        let file = temp.path().join(version).join("benchmark_readrandom.t1.log.r.csv");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("secs_elapsed,interval_qps\n1,{rate}\n2,{rate}\n")).unwrap();
        std::fs::write(file.with_file_name("benchmark_readrandom.t1.log.time"), "61 8 0.5\n").unwrap();
    }
    let report = import(temp.path());
    for metric in ["interval_qps", "elapsed"] {
        let of_metric = report.rows.iter().filter(|row| &*row.metric == metric);
        let names: Vec<&str> = of_metric.map(|row| &*row.target.name).collect();
        assert_eq!(names, ["8.6", "8.7"], "{metric}");
    }
    // RocksDB's tool writes the operations of an interval.
    let slow = temp.path().join("benchmark_readrandom.t1.log.r.csv");
    std::fs::write(&slow, "secs_elapsed,interval_qps\n10,1000\n20,1200\n").unwrap();
    assert_eq!(number(&import(&slow), "r.csv", "readrandom.t1", "", "interval_qps"), 110.0);
}

#[test]
fn times_and_rates_of_a_step_are_read() {
    let report = fixtures("db_bench");
    let times = "benchmark_overwrite.t1.s0.log.time";
    assert_eq!(number(&report, times, "overwrite.t1.s0", "", "elapsed"), 61.25);
    assert_eq!(number(&report, times, "overwrite.t1.s0", "", "u_cpu"), 0.1305);
    let rates = "benchmark_readwhilewriting.t1.log.r.csv";
    assert_eq!(number(&report, rates, "readwhilewriting.t1", "", "interval_qps"), 1000.0);
    assert_eq!(repaired(&report, rates, Repair::WriterInThroughput), [1]);
    assert_eq!(rejected(&report, rates)[0].0, 5);
    let series = report.series.iter().find(|series| series.file.ends_with(rates)).unwrap();
    assert_eq!(
        (series.at.as_slice(), series.values.as_slice()),
        ([1., 2., 3.].as_slice(), [1000., 1200., 800.].as_slice())
    );
}
