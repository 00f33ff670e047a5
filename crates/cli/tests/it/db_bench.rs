//! `db_bench` as scripts run it: levels compacted one by one, keys laid out and chosen as asked, rates kept, reports written.

use crate::{outcrop, text};
use std::path::Path;

/// Output of the tool on a new database in `dir`.
fn bench(dir: &Path, flags: &[&str]) -> String {
    let db = format!("--db={}", dir.join("db").display());
    let output =
        outcrop(&[&["db_bench", db.as_str(), "--seed=7", "--compression_type=none"], flags].concat());
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// Tables of each level, in the order in which `levelstats` printed them.
fn levels(output: &str) -> Vec<Vec<u32>> {
    let tables = |block: &str| {
        let rows = block.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.take_while(|row| row.len() == 3).map(|row| row[1].parse().unwrap()).collect()
    };
    // A line of dashes stands below the head.
    output
        .split("Level Files Size(MB)")
        .skip(1)
        .map(|block| tables(block.trim_start_matches(['\n', '-'])))
        .collect()
}

fn used(levels: &[u32]) -> Vec<usize> {
    (0..levels.len()).filter(|level| levels[*level] > 0).collect()
}

#[test]
fn levels_are_compacted_into_the_next_that_has_tables() {
    let temp = tempfile::tempdir().unwrap();
    let steps =
        "--benchmarks=fillrandom,compact,overwrite,flush,levelstats,compact0,levelstats,compact1,levelstats";
    let small = ["--num=60000", "--write_buffer_size=400000", "--target_file_size_base=400000"];
    let shape = [
        "--max_bytes_for_level_base=100000000",
        "--level_compaction_dynamic_level_bytes=0",
        "--num_levels=5",
    ];
    let printed =
        bench(temp.path(), &[&[steps, "--disable_auto_compactions=1"], &small[..], &shape[..]].concat());
    let levels = levels(&printed);
    assert_eq!(levels.len(), 3, "{printed}");
    let (before, without_zero, after) = (used(&levels[0]), used(&levels[1]), used(&levels[2]));
    assert!(before.len() == 2 && before[0] == 0, "L0 over what the compaction left: {printed}");
    assert!(!without_zero.contains(&0), "{printed}");
    assert!(after.len() == 1, "{printed}");
    assert!(printed.contains("\ncompact0: ") && printed.contains("tables before: L0 "), "{printed}");
    assert!(printed.contains(" tables of L0 into L") && !printed.contains("compact0: compact0"), "{printed}");
}

#[test]
fn keys_have_prefixes_and_lookups_a_range() {
    let temp = tempfile::tempdir().unwrap();
    let layout = ["--num=2000", "--prefix_size=4", "--keys_per_prefix=10"];
    let found = |printed: &str| printed.matches("(2000 of 2000 found)").count();
    let printed = bench(
        temp.path(),
        &[
            &["--benchmarks=fillseq,readrandom,seekrandom,multireadrandom", "--read_random_exp_range=8"],
            &layout[..],
        ]
        .concat(),
    );
    assert_eq!(found(&printed), 3, "{printed}");
    let db = format!("--db={}", temp.path().join("db").display());
    let scan = text(&outcrop(&["ldb", db.as_str(), "--hex", "--max_keys=2", "scan"]));
    // Number 0 and number 200 share the first of 200 prefixes.
    assert!(scan.starts_with("0x000000000000000000000000303030"), "{scan}");
    assert!(scan.lines().nth(1).unwrap().starts_with("0x0000000000000000000000C8303030"), "{scan}");
    let other =
        bench(temp.path(), &["--benchmarks=readrandom", "--use_existing_db=1", "--num=2000", "--reads=500"]);
    assert!(other.contains("(0 of 500 found)"), "keys of another layout are not there: {other}");
}

#[test]
fn writes_keep_a_rate_and_every_second_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let report = temp.path().join("report.csv");
    let file = format!("--report_file={}", report.display());
    let limited = ["--num=1000", "--value_size=984", "--benchmark_write_rate_limit=400000"];
    let printed = bench(
        temp.path(),
        &[&["--benchmarks=fillseq", "--report_interval_seconds=1", file.as_str()], &limited[..]].concat(),
    );
    // A million bytes at 400 kB/s, of which the first 40 kB are there at once.
    let seconds: f64 =
        printed.split(" ops/sec ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!((2.3..4.0).contains(&seconds), "{printed}");
    let text = std::fs::read_to_string(&report).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("secs_elapsed,interval_qps"));
    assert!(lines.next().unwrap().starts_with("1,") && lines.next().unwrap().starts_with("2,"), "{text}");
}
