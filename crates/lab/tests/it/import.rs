//! Each format and each repair on small files written for the purpose.

use crate::imported::{import, number, only, rejected, repaired, rows};
use outcrop_lab::import::{Classic, Format, Output, Repair, Report, Row, Value, View, classic};
use std::path::Path;

fn fixtures(directory: &str) -> Report {
    import(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import").join(directory))
}

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

#[test]
fn query_tables_have_targets_units_and_repaired_names() {
    let report = fixtures("sysbench");
    for file in ["qps.abs.all.tsv", "qps.abs.all.csv"] {
        let row = only(&report, file, "insert_range=100", "9.5.0", "qps");
        assert_eq!((row.number(), row.unit), (Some(7779.0), "1/s"), "{file}");
        assert_eq!(&*row.target.configuration, "z12a_gtid_c8r32.pk1");
        assert_eq!(only(&report, file, "scan_range=100", "8.4.7", "qps").unit, "krows/s");
        assert_eq!(number(&report, file, "update-inlist_range=10", "8.0.44", "qps"), 500.0);
        assert_eq!(repaired(&report, file, Repair::ScanInRows).len(), 1);
        assert_eq!(repaired(&report, file, Repair::InlistRange).len(), 1);
        assert_eq!(repaired(&report, file, Repair::MeasuredOnce).len(), 1);
    }
    for file in ["qps.rel.all.tsv", "qps.rel.all.csv"] {
        let row = only(&report, file, "insert_range=100", "9.5.0", "qps");
        assert_eq!((row.number(), row.unit), (Some(0.95), "ratio"), "{file}");
        assert_eq!(row.relative_to.as_deref(), Some("x.my8044_rel_o2nofp.z12a_c8r32.pk1"));
        assert!(repaired(&report, file, Repair::ScanInRows).is_empty());
    }
    assert_eq!(rejected(&report, "qps.rel.all.csv"), [(2, "3 values for 2 targets".to_string())]);
}

#[test]
fn client_output_tells_clients_seed_and_response_times() {
    let report = fixtures("sysbench");
    let file = "sb.o.update-index.range100.pk1.dop12";
    let of = |metric| number(&report, file, "update-index_range=100", "17.7", metric);
    for (metric, value) in [
        ("clients", 40.0),
        ("tables", 8.0),
        ("rows_per_table", 1e7),
        ("seconds", 930.0),
        ("cpus", 48.0),
        ("trx", 10.5),
        ("qps", 31.5),
        ("rt_min", 0.05),
        ("rt_avg", 0.11),
        ("rt_max", 234.17),
        ("rt_p95", 0.19),
        ("elapsed", 930.0119),
    ] {
        assert_eq!(of(metric), value, "{metric}");
    }
    assert_eq!(repaired(&report, file, Repair::ClientsDiffer), [1]);
    assert_eq!(repaired(&report, file, Repair::SeedsDiffer), [7]);
    let flags = only(&report, file, "update-index_range=100", "17.7", "flags");
    let Value::Word(flags) = &flags.value else { panic!("flags are words") };
    assert!(flags.contains("--threads=40") && !flags.contains("secret"), "{flags}");
    let scan = "sb.o.scan.range100.pk1.dop1";
    let rate = number(&report, scan, "scan_range=100", "8.0.44", "scan_rate");
    assert!((rate - 50e6 / 7629.8).abs() < 1e-6);
    assert!(repaired(&report, scan, Repair::SeedsDiffer).is_empty());
    assert_eq!(
        rejected(&report, "sb.o.insert.range100.pk1.dop1"),
        [(0, "the client printed no result".to_string())]
    );
}

#[test]
fn results_take_their_metric_from_the_name_and_their_unit_from_the_test() {
    let report = fixtures("sysbench");
    let my = "8.0.44";
    let scan = only(&report, "sb.r.qps.scan.range100.pk1", "scan_range=100", my, "qps");
    assert_eq!((scan.number(), scan.unit), (Some(6.553), "krows/s"));
    let file = "sb.r.qps.update-index.range100.pk1";
    assert_eq!(number(&report, file, "update-index_range=100", my, "qps#2"), 1900.0);
    let file = "sb.r.rt95.update-index.range100.pk1";
    assert_eq!(only(&report, file, "update-index_range=100", my, "rt_p95").unit, "ms");
    let file = "sb.r.trx.update-inlist.range100.pk1";
    assert_eq!(number(&report, file, "update-inlist_range=10", my, "trx"), 55.0);
}

#[test]
fn hardware_costs_lose_the_header_lines_of_vmstat_and_gain_time() {
    let report = fixtures("sysbench");
    let file = "sb.met.update-index.range100.pk1.dop12";
    let step = "update-index_range=100";
    let switches = only(&report, file, step, "17.7", "cs/s");
    assert_eq!(switches.published, Some(460_967.0));
    assert_eq!(switches.number().unwrap().round(), 483_049.0);
    let cpu = number(&report, file, step, "17.7", "cpu/s");
    assert_eq!((cpu * 100.0).round() / 100.0, 84.15);
    // Without a correction 0.000243 % of 48 CPUs are 116.6 us.
    let time = only(&report, file, step, "17.7", "cpu_us/o");
    assert!((time.published.unwrap() - 116.64).abs() < 1e-9);
    assert!((time.number().unwrap() - 116.64 * 350.0 / 334.0).abs() < 1e-9);
    assert_eq!(only(&report, file, step, "17.7", "wKB/o").published, None);
    assert_eq!(number(&report, file, step, "17.7", "o/s"), 331_124.76);
    assert_eq!(repaired(&report, file, Repair::VmstatHeaderBias), [6]);
    // Equal counts need no correction.
    let file = "sb.met.update-inlist.range100.pk1.dop1";
    assert!(repaired(&report, file, Repair::VmstatHeaderBias).is_empty());
    assert_eq!(repaired(&report, file, Repair::InlistRange), [1]);
    let scan = only(&report, "sb.met.scan.range100.pk1.dop1", "scan_range=100", "8.0.44", "o/s");
    assert_eq!(scan.unit, "krows/s");
    let file = "sb.prepare.met.point-query.warm.range100.pk1";
    assert_eq!(only(&report, file, "prepare", "8.0.44", "o/s").unit, "rows/s");
    assert_eq!(repaired(&report, file, Repair::WholeSecondRates), [3]);
}

#[test]
fn hardware_comparisons_carry_both_tables() {
    let report = fixtures("sysbench");
    let file = "o.met.all";
    let both = rows(&report, file, "insert_range=100", "9.5.0", "cs/o");
    assert_eq!(both.len(), 2);
    assert_eq!((both[0].number(), both[0].relative_to.as_deref()), (Some(5.715), None));
    assert_eq!(both[1].number(), Some(1.45));
    assert_eq!(both[1].relative_to.as_deref(), Some("x.my8044_rel_o2nofp.z12a_c8r32.pk1"));
    let reads = rows(&report, file, "prepare", "9.5.0", "rKB/o");
    assert_eq!(reads[1].number(), Some(f64::INFINITY));
    assert_eq!(repaired(&report, file, Repair::CpuShareOfHost), [1]);
    assert_eq!(rejected(&report, file).len(), 1);
}

#[test]
fn insert_benchmark_rows_have_a_base_in_each_group() {
    let report = fixtures("insert");
    let row = only(&report, "mrg.qr100", "qr100", "5.7.31", "qps");
    assert_eq!((row.number(), row.line), (Some(7228.0), 3));
    assert_eq!(number(&report, "mrg.qr100", "qr100", "13.1", "rate_p99_floor"), 2525.0);
    assert_eq!(only(&report, "mrg.l.i0", "l.i0", "5.6.49", "rkbps").unit, "kB/s");
    assert!(rows(&report, "mrg.l.i0", "l.i0", "5.6.49", "rate_p50_floor").is_empty());
    let ratio = only(&report, "rel.qr100", "qr100", "8.0.22", "ips");
    assert_eq!((ratio.number(), ratio.relative_to.as_deref()), (Some(0.8), Some("my5649.cx6d")));
    let second = only(&report, "rel.qr100", "qr100", "13.1", "qps");
    assert_eq!(second.relative_to.as_deref(), Some("pg124.cx5"));
    let run = "o.sum.t.20m.rx80.cx6a";
    assert_eq!(number(&report, run, "l.x", "8.0", "ips"), 999.0);
    assert_eq!(number(&report, run, "qp1000", "20m.rx80", "qps"), 90.0);
    assert_eq!(repaired(&report, run, Repair::WholeSecondRates), [1]);
}

#[test]
fn insert_benchmark_clients_and_results_are_read() {
    let report = fixtures("insert");
    let client = "o.ib.dop1.1";
    assert_eq!(number(&report, client, client, "", "i_ips"), 150.0);
    assert_eq!(number(&report, client, client, "", "max_i"), 1400.0);
    assert_eq!(number(&report, client, client, "", "insert_rt_max"), 0.532);
    assert_eq!(number(&report, client, client, "", "insert_rt_gt"), 1.0);
    assert_eq!(rejected(&report, client), [(5, "a sample that does not fit the header".to_string())]);
    let result = "o.res.dop1";
    for (metric, value) in [
        ("clients", 8.0),
        ("seconds", 12.0),
        ("ips", 666.6),
        ("qps", 200.0),
        ("dbgb1", 1.25),
        ("dbgb2", 2.5),
        ("insert_rt_max", 0.265),
        ("insert_rate_p50_floor", 700.0),
        ("delete_rate_p99_floor", 590.0),
        ("client_user", 10.5),
        ("client_system", 2.25),
        ("dbms_cpu", 33.0),
    ] {
        assert_eq!(number(&report, result, "dop1", "", metric), value, "{metric}");
    }
    assert!(rows(&report, result, "dop1", "", "query_rate_p99_floor").is_empty());
    assert_eq!(repaired(&report, result, Repair::CpuOfOneProcess).len(), 2);
}

#[test]
fn samplers_count_samples_and_not_headers() {
    let report = fixtures("sampler");
    let vmstat = "sb.vm.update-index.range100.pk1.dop1";
    assert_eq!(number(&report, vmstat, "update-index_range=100", "", "vmstat cs"), 200.0);
    assert_eq!(number(&report, vmstat, "update-index_range=100", "", "vmstat us"), 45.0);
    assert_eq!(repaired(&report, vmstat, Repair::VmstatHeaderBias), [1]);
    assert_eq!(rejected(&report, vmstat)[0].0, 8);
    for layout in ["ubuntu16", "ubuntu18", "ubuntu20", "ubuntu22"] {
        let file = if layout == "ubuntu22" { "ubuntu22.io.gz".to_string() } else { format!("{layout}.io") };
        // The first report, 9 times as busy, is left out.
        assert_eq!(number(&report, &file, layout, "", "nvme0n1 r/s"), 200.0, "{layout}");
        assert_eq!(number(&report, &file, layout, "", "md0 wkB/s"), 4000.0, "{layout}");
        assert_eq!(number(&report, &file, layout, "", "cpus"), 8.0, "{layout}");
    }
}

#[test]
fn fio_lines_keep_repetitions_apart() {
    let report = fixtures("fio");
    let syncs = rows(&report, "sum.1.ext4.host.csv", "fsync=1_16K", "", "sync_us");
    assert_eq!(syncs.iter().map(|row| row.number().unwrap()).collect::<Vec<_>>(), [891.1, 889.2]);
    assert_eq!(&*syncs[1].target.name, "1.ext4.host#2");
    assert_eq!(rejected(&report, "sum.1.ext4.host.csv")[0].0, 4);
}

#[test]
fn what_does_not_parse_is_listed_and_the_rest_goes_on() {
    let report = fixtures("broken");
    let file = "sum.byrx.x.txt";
    assert_eq!(number(&report, file, LOAD, "8.0.0", "ops_sec"), 1000.0);
    let lines: Vec<u32> = rejected(&report, file).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 4, 5, 6, 7]);
    let reason = |file: &str| rejected(&report, file)[0].1.clone();
    assert_eq!(reason("notes.txt"), "no format that is known");
    assert_eq!(reason("binary"), "not a text file");
    assert_eq!(reason("qps.abs.lost.csv"), "no qps.abs.lost.tsv beside it names the targets");
    assert!(reason("sb.met.nothing").contains("names no test"));
    assert!(outcrop_lab::import::run(&["/nonexistent/path".into()]).unwrap_err().contains("nonexistent"));
}

#[test]
fn every_format_is_told_by_its_contents() {
    let report = fixtures("");
    let mut formats: Vec<Format> = report.files.iter().map(|file| file.format).collect();
    formats.sort();
    formats.dedup();
    assert_eq!(formats.len(), 18, "{formats:?}");
}

#[test]
fn the_summary_fits_eighty_columns_and_the_data_is_json() {
    let report = fixtures("");
    let text = report.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("db_bench summary lines") && text.contains("rejected: "), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), report.rows.len());
    let repair = &json["repairs"][0];
    assert!(repair["repair"].is_string() && repair["line"].is_u64() && repair["file"].is_string());
    let moved = json["rows"].as_array().unwrap().iter().find(|row| row["published"] == 162.0).unwrap();
    assert_eq!(
        (&moved["metric"], &moved["value"], &moved["unit"]),
        (&"c_wsecs".into(), &5295.0.into(), &"s".into())
    );
    assert_eq!(moved["target"]["version"], "10.3.4");
}

fn table(directory: &str, file: &str, request: &Classic) -> String {
    let report = fixtures(directory);
    let rows: Vec<_> = report.rows.iter().filter(|row| row.file.ends_with(file)).cloned().collect();
    classic(&rows, request).unwrap()
}

fn request(metric: &str, base: Option<&str>, view: View, output: Output) -> Classic {
    Classic { metric: metric.into(), base: base.map(String::from), view, output, colours: false }
}

#[test]
fn the_classic_table_divides_by_the_base_and_signs_its_colours() {
    let posts = request("ops_sec", None, View::Posts, Output::Text);
    let text = table("db_bench", "iobuf/summary.tsv", &posts);
    let expected = "\
8.0.0  : 8.0.0 gcc
10.2.3 : 10.2.3 gcc
10.3.4 : 10.3.4 clang.lto

test                       8.0.0  10.2.3  10.3.4
fillseq.wal_disabled.v400  1.00=   1.02=   0.98=
overwriteandwait.t1.s0     1.00=   0.95-   1.05+

One run per target: no verdict.
";
    assert!(text.starts_with(expected), "{text}");
    let csv = request("ops_sec", Some("10.2.3"), View::Posts, Output::Csv);
    assert_eq!(
        table("db_bench", "iobuf/summary.tsv", &csv),
        "test,8.0.0 gcc,10.2.3 gcc,10.3.4 clang.lto\n\
         fillseq.wal_disabled.v400,0.98,1.00,0.96\n\
         overwriteandwait.t1.s0,1.05,1.00,1.11\n"
    );
}

#[test]
fn published_ratios_are_shown_with_their_base() {
    let posts = request("qps", None, View::Posts, Output::Text);
    let text = table("sysbench", "qps.rel.all.tsv", &posts);
    assert!(text.starts_with("relative to: x.my8044_rel_o2nofp.z12a_c8r32.pk1\n8.4.7 : x.my8407"), "{text}");
    assert!(text.contains("insert_range=100  0.98=  0.95-\n"), "{text}");
    let tsv = request("qps", None, View::Posts, Output::Tsv);
    let text = table("sysbench", "qps.rel.all.tsv", &tsv);
    assert!(text.ends_with("0.98\t0.95\tinsert_range=100\n1.01\t0.99\tscan_range=100\n"), "{text}");
}

#[test]
fn the_page_greys_targets_that_missed_the_insert_rate() {
    let page = request("qps", None, View::PageAbsolute, Output::Text);
    let text = table("insert", "mrg.qr100", &page);
    // 8.0.22 has the most queries, at 80 of 100 inserts per second.
    assert!(text.contains("qr100   7084+   7228+   9186=  6000   6600\n"), "{text}");
    let relative = request("qps", None, View::Page, Output::Text);
    assert!(
        table("insert", "mrg.qr100", &relative).contains("qr100    1.00    1.02   1.30+  0.85-  0.93-\n")
    );
}

#[test]
fn wide_tables_are_split_and_colours_have_no_width() {
    let mut posts = request("ops_sec", None, View::Posts, Output::Text);
    let report = fixtures("db_bench");
    let rows: Vec<_> =
        report.rows.iter().filter(|row| row.file.ends_with("iobuf/summary.tsv")).cloned().collect();
    let mut wide = Vec::new();
    for copy in 0..30 {
        for row in &rows {
            let mut target = (*row.target).clone();
            target.name = format!("{}.{copy}", target.version).as_str().into();
            wide.push(Row { target: target.into(), ..row.clone() });
        }
    }
    let plain = classic(&wide, &posts).unwrap();
    assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
    assert_eq!(plain.matches("overwriteandwait.t1.s0").count(), plain.matches("test ").count());
    posts.colours = true;
    let painted = classic(&wide, &posts).unwrap();
    assert_eq!(painted.matches("\x1b[0m").count(), 30 * 3 * 2);
    let mut stripped = painted;
    for code in ["\x1b[31m", "\x1b[32m", "\x1b[90m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn tables_that_cannot_be_made_say_why() {
    let report = fixtures("sysbench");
    let refused = |request: &Classic| report.tables(request).unwrap_err();
    assert_eq!(
        refused(&request("nothing", None, View::Posts, Output::Text)),
        "no file has the metric nothing"
    );
    assert_eq!(refused(&request("qps", Some("1.0"), View::Posts, Output::Text)), "no target 1.0");
}

/// Cuts and garbles every fixture: a file is read or rejected, never a panic.
#[test]
fn damaged_files_are_rejected_and_never_panic() {
    const SEED: u64 = 20_251_121;
    let mut state = SEED;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import");
    let files: Vec<_> = fixtures("").files.iter().map(|file| file.file.to_string()).collect();
    assert!(files.len() > 30);
    println!("seed {SEED}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let relative = Path::new(&file).strip_prefix(&base).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join(relative);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        for round in 0..60 {
            let mut damaged = bytes.clone();
            if round % 2 == 0 {
                damaged.truncate(random(bytes.len()));
            } else {
                for _ in 0..4 {
                    let at = random(bytes.len());
                    damaged[at] = *b"\t\n,9.-:x= "[..].get(random(10)).unwrap();
                }
            }
            std::fs::write(&target, damaged).unwrap();
            let report = import(directory.path());
            assert_eq!(report.files.len() + usize::from(report.files.is_empty()), 1, "{file} round {round}");
        }
    }
}
