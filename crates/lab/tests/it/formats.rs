//! Importing the other formats; telling formats; rejects, the summary, and damaged files.

use crate::imported::{fixtures, import, number, only, rejected, repaired, rows};
use clap::Parser;
use outcrop_lab::import::{
    Archive, Classic, Format, ImportArguments, Output, Repair, View, classic, run_command, run_to,
};
use std::path::Path;

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
fn a_table_of_ratios_to_several_bases_says_which_target_has_which() {
    let report = fixtures("insert");
    let archive = Archive::of(&report, "t", None).unwrap();
    let group = archive.groups.iter().find(|group| group.title.ends_with("rel.qr100")).unwrap();
    let base = |name: &str| {
        let target = group.targets.iter().position(|target| target.name == name).unwrap();
        group.metric("ips").unwrap().base_of(target).map(str::to_string)
    };
    assert_eq!(base("my8022.cx6d").as_deref(), Some("my5649.cx6d"));
    assert_eq!(base("pg131.cx5").as_deref(), Some("pg124.cx5"));
    assert_eq!(group.metric("ips").unwrap().relative_to.as_deref(), Some("my5649.cx6d and pg124.cx5"));
    let posts =
        Classic { metric: "ips".into(), base: None, view: View::Posts, output: Output::Text, colours: false };
    let rows: Vec<_> = report.rows.iter().filter(|row| row.file.ends_with("rel.qr100")).cloned().collect();
    let text = classic(&rows, &posts).unwrap();
    assert!(
        text.starts_with(
            "relative to my5649.cx6d: my5731.cx6d, my8022.cx6d\nrelative to pg124.cx5: pg131.cx5\n"
        ),
        "{text}"
    );
    let refused = classic(&rows, &Classic { base: Some("8.0.22".into()), ..posts }).unwrap_err();
    assert_eq!(refused, "ips is given as ratios to my5649.cx6d and pg124.cx5 only");
}

#[test]
fn files_of_several_numbers_of_clients_are_targets_of_their_own() {
    let temp = tempfile::tempdir().unwrap();
    let name = "x.my8044_rel_o2nofp.z12a_c8r32.pk1";
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import/sysbench").join(name);
    let to = temp.path().join(name);
    std::fs::create_dir(&to).unwrap();
    for (file, clients) in
        [("sb.met.scan.range100.pk1", [".dop1", ".dop40"]), ("sb.o.scan.range100.pk1", [".dop1", ".dop40"])]
    {
        for dop in clients {
            std::fs::copy(from.join(format!("{file}.dop1")), to.join(format!("{file}{dop}"))).unwrap();
        }
    }
    for file in ["sb.r.qps.update-index.range100.pk1", "sb.r.rt95.update-index.range100.pk1"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let report = import(temp.path());
    let second = format!("{name}#2");
    for (file, metric) in
        [("sb.met.scan.range100.pk1.dop40", "cs/o"), ("sb.o.scan.range100.pk1.dop40", "qps")]
    {
        let found = only(&report, file, "scan_range=100", name, metric);
        assert_eq!(&*found.target.name, second, "{file}");
        assert_eq!(repaired(&report, file, Repair::RepeatedTarget).len(), 1, "{file}");
    }
    // Files of one number each are of one target.
    assert!(report.rows.iter().filter(|row| row.file.contains("sb.r.")).all(|row| *row.target.name == *name));
}

#[test]
fn a_tag_that_recurs_in_a_file_of_metrics_is_kept_twice() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("mrg.qr100");
    std::fs::write(&file, "ips\tqps\ttag\n100\t7000\tmy8022.cx6d\n90\t6000\tmy8022.cx6d\n").unwrap();
    let report = import(&file);
    let names: Vec<_> = rows(&report, "mrg.qr100", "qr100", "my8022", "qps")
        .iter()
        .map(|row| row.target.name.to_string())
        .collect();
    assert_eq!(names, ["my8022.cx6d", "my8022.cx6d#2"]);
    assert_eq!(repaired(&report, "mrg.qr100", Repair::RepeatedTarget), [3]);
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
    assert_eq!(number(&report, file, "fillseq.wal_disabled.v400", "8.0.0", "ops_sec"), 1000.0);
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

#[test]
fn the_command_takes_paths_and_says_what_is_wrong() {
    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        arguments: ImportArguments,
    }
    let parse = |words: &[&str]| {
        let words = std::iter::once("import").chain(words.iter().copied());
        Program::try_parse_from(words).map(|program| program.arguments)
    };
    assert!(parse(&[]).is_err());
    assert!(parse(&["a", "--view", "page"]).is_err(), "a view needs a table");
    assert!(parse(&["a", "--json", "--table", "qps"]).is_err());
    assert!(parse(&["a", "--record", "--json"]).is_err() && parse(&["a", "--title", "t"]).is_err());
    let arguments = parse(&["a", "b", "--table", "qps", "--base", "8.0.44"]).unwrap();
    assert_eq!((arguments.paths.len(), arguments.base.as_deref()), (2, Some("8.0.44")));
    let missing = parse(&["/nonexistent/archive"]).unwrap();
    assert!(run_command(Path::new("none"), &missing).unwrap_err().starts_with("/nonexistent/archive: "));
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/import/fio");
    let output = |flags: &[&str]| {
        let mut out = Vec::new();
        run_to(&parse(flags).unwrap(), false, &mut out).map(|()| String::from_utf8(out).unwrap())
    };
    assert!(output(&[fixtures, "--base", "1"]).unwrap_err().contains("--base needs"));
    assert_eq!(output(&[fixtures, "--table", "nothing"]).unwrap_err(), "no file has the metric nothing");
    assert!(output(&[fixtures]).unwrap().starts_with("format       files  rows  series\n"));
    assert!(output(&[fixtures, "--json"]).unwrap().starts_with("{\"files\":[{"));
    let table = output(&[fixtures, "--table", "sync_us", "--output", "tsv"]).unwrap();
    assert!(table.ends_with("test\nNA\tNA\tfsync=0_16K\n1.00\t1.00\tfsync=1_16K\n\n"), "{table}");
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
