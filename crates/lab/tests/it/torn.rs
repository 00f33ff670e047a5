//! Files that are torn, empty or hold no numbers: their whole rows count, and their defects are named.

use crate::imported::{import, number, rejected};
use outcrop_lab::import::{Archive, Format, Report};
use std::path::Path;

fn of(files: &[(&str, &str)]) -> Report {
    let temp = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(temp.path().join(name), text).unwrap();
    }
    import(temp.path())
}

fn lines(report: &Report, file: &str) -> Vec<u32> {
    rejected(report, file).iter().map(|(line, _)| *line).collect()
}

#[test]
fn a_torn_row_costs_itself_and_no_other() {
    // With a header, and the torn row first: it is not what tells whether the table is relative.
    let report = of(&[(
        "csum.a.csv",
        "test,6.29.5,7.0.4,\nfillseq,0.5\nreadrandom,1.00,1.02,\nfwdrange,1.00,0.97,\n",
    )]);
    assert_eq!(number(&report, "csum.a.csv", "fwdrange", "7.0.4", "ops_sec"), 0.97);
    assert!(report.rows.iter().all(|row| row.relative_to.is_some()), "a table of ratios stays one");
    assert_eq!(lines(&report, "csum.a.csv"), [2]);

    // Without one, where widths tell the columns.
    let sum =
        "ops_sec\tmb_sec\ttest\tversion\n1\t1\tfillseq\t7.0.0\n2\t1\tfillseq\t7.1.0\n3\t1\tfillseq\t7.2.0\n";
    let report =
        of(&[("sum.b.txt", sum), ("rel2.b.csv", "fillseq,0.9\noverwrite,0.90,0.91\nfwdrange,0.95,0.96\n")]);
    let found: Vec<_> = report.files.iter().filter(|file| file.file.ends_with("rel2.b.csv")).collect();
    assert_eq!(found.len(), 1, "{:?}", report.rejects);

    // The first line is torn so that it is no table at all.
    let report = of(&[("fmt.c.tsv", "6.29\n1.00\t1.02\tfillseq\n1.00\t0.97\tfwdrange\n")]);
    assert!(report.files.iter().any(|file| file.format == Format::VersionTsv), "{:?}", report.rejects);
}

#[test]
fn a_torn_base_row_stays_the_base_of_its_group() {
    let header = "ips\tqps\ttag";
    let report = of(&[
        ("mrg.l.i0", &format!("{header}\n100\tmy5649.cx\n200\t2\tmy5731.cx\n")),
        ("rel.l.i0", &format!("{header}\n1.00\t1.00\tmy5649.cx\n2.00\t1.10\tmy5731.cx\n")),
    ]);
    let row = report
        .rows
        .iter()
        .find(|row| row.file.ends_with("rel.l.i0") && &*row.target.version == "5.7.31")
        .unwrap();
    assert_eq!(row.relative_to.as_deref(), Some("my5649.cx"));
    assert_eq!(lines(&report, "mrg.l.i0"), [2]);
}

#[test]
fn empty_files_are_called_empty() {
    let report = of(&[("sb.r.qps.x", ""), ("notes", " \n\n"), ("words", "one\ntwo\n")]);
    let reason = |file: &str| rejected(&report, file)[0].1.clone();
    assert_eq!(
        (reason("sb.r.qps.x"), reason("notes")),
        ("the file is empty".into(), "the file is empty".into())
    );
    assert_eq!(reason("words"), "no format that is known");
}

#[test]
fn logs_of_vacuum_and_other_text_of_sysbench_are_recognised_and_give_no_numbers() {
    let report = of(&[
        (
            "sb.o.pw.insert.range100.pk1",
            "sleepSecs is 540\nVacuum analyze table sbtest1\nVACUUM\nCHECKPOINT\n",
        ),
        ("sb.o.pw.insert.range100.pk1.a1", "0.00user 0.00system 0:01.20elapsed 0%CPU\n"),
        ("pg.vac.log", "INFO:  vacuuming \"public.sbtest1\"\nDETAIL:  CPU: user: 0.1 s\n"),
        ("sb.sz.insert.range100.pk1", "4.2G\t/data/m\n"),
    ]);
    assert_eq!(report.rejects, [], "{:?}", report.rejects);
    assert!(
        report.files.iter().all(|file| file.format == Format::SysbenchText && file.rows == 0),
        "{:?}",
        report.files
    );
    // A client's output is still read as one, and says what is wrong with it.
    let report = of(&[("sb.o.insert.range100.pk1", "sysbench 1.0.20\nkilled\n")]);
    assert!(rejected(&report, "pk1")[0].1.contains("printed no result"));
}

/// Two files of one series of versions, made of the fixture of one.
#[test]
fn a_history_goes_on_from_one_file_of_a_series_to_the_next() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import/stalls/sum.iobuf.7x.txt");
    let text = std::fs::read_to_string(fixture).unwrap();
    let eight = text.replace("\t7.", "\t8.").replace("/7.", "/8.");
    let report = of(&[("sum.iobuf.7x.txt", &text), ("sum.iobuf.8x.txt", &eight)]);
    let archive = Archive::of(&report, "t", None).unwrap();
    let group = archive.groups.iter().find(|group| group.title.contains('*')).unwrap();
    let lines = group.lines();
    assert_eq!(lines.len(), 1, "one configuration is one line: {:?}", group.targets);
    assert_eq!(lines[0].len(), group.targets.len());
    let versions: Vec<&str> = lines[0].iter().map(|target| group.targets[*target].version.as_str()).collect();
    assert!(
        versions.first().unwrap().starts_with("7.") && versions.last().unwrap().starts_with("8."),
        "{versions:?}"
    );
}
