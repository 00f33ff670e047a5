//! Importing db_bench's files: each format, each repair, on files written for the purpose.

use crate::imported::{fixtures, number, only, rejected, repaired, rows};
use outcrop_lab::import::{Repair, Value};

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
    let of = |metric| number(&report, new, "overwrite", "10.3.4", metric);
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
