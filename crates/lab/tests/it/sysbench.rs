//! Importing sysbench's files and hardware costs, with their repairs.

use crate::imported::{fixtures, number, only, rejected, repaired, rows};
use outcrop_lab::import::{Repair, Value};

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
