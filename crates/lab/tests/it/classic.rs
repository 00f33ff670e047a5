//! The posts' tables from imported rows.

use crate::imported::fixtures;
use outcrop_lab::import::{Classic, Output, Repair, Row, View, classic};

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
    let footer = text[expected.len()..].replace('\n', " ");
    assert_eq!(footer.trim_end(), Repair::FixedThreshold.sentence());
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
    let text = table("insert", "mrg.qr100", &relative);
    assert!(text.contains("qr100   1.00    1.02    1.30+  0.85-  0.93-\n"), "{text}");
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

#[test]
fn files_of_one_target_each_make_one_table() {
    let report = fixtures("sysbench");
    let tables = report.tables(&request("trx", None, View::PageAbsolute, Output::Csv)).unwrap();
    assert_eq!(tables.len(), 2, "outputs and results: {tables:?}");
    let outputs = tables.iter().find(|table| table.contains("/*: sysbench output\n")).unwrap();
    let header = "test,x.my8044_rel_o2nofp.z12a_c8r32.pk1,x.pg177_o2nofp.x10a_c32r128.pk1\n";
    assert!(outputs.contains(header), "{outputs}");
    assert!(outputs.contains("scan_range=100,10,NA\n") && outputs.contains("update-index_range=100,NA,10\n"));
}

#[test]
fn costs_are_red_when_they_rise() {
    let posts = request("cs/o", None, View::Posts, Output::Text);
    let text = table("sysbench", "o.met.all", &posts);
    assert!(text.contains("insert_range=100   1.00=  1.45-\n"), "{text}");
    let page = request("cpu/o", None, View::PageAbsolute, Output::Text);
    let text = table("sysbench", "o.met.all", &page);
    assert!(text.contains("insert_range=100  0.001593+  0.001755\n"), "{text}");
}
