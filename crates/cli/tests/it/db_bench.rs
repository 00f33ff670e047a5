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
    assert!(seconds >= 2.3, "{printed}");
    let text = std::fs::read_to_string(&report).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("secs_elapsed,interval_qps"));
    assert!(lines.next().unwrap().starts_with("1,") && lines.next().unwrap().starts_with("2,"), "{text}");
}

/// Both outputs of the tool in the order in which they were written, as `2>&1` merges them.
fn merged(dir: &Path, flags: &[&str]) -> String {
    let path = dir.join("merged.txt");
    let file = std::fs::File::create(&path).unwrap();
    let db = format!("--db={}", dir.join("db").display());
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_outcrop"))
        .args(["db_bench", db.as_str(), "--seed=7", "--compression_type=none", "--num=2000"])
        .args(flags)
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(status.success(), "{text}");
    text
}

#[test]
fn steps_begin_lines_of_merged_output_however_long_they_take() {
    let temp = tempfile::tempdir().unwrap();
    let steps = ["--benchmarks=fillseq,readrandom,stats", "--duration=3", "--threads=2", "--histogram=1"];
    let begins = |text: &str, start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    let silent = merged(temp.path(), &steps);
    assert!(!silent.contains('\r') && !silent.contains("..."), "{silent}");
    assert_eq!((begins(&silent, "fillseq "), begins(&silent, "readrandom ")), (1, 1), "{silent}");
    assert_eq!(begins(&silent, "Date:       "), 1, "{silent}");
    assert_eq!((begins(&silent, " Sum"), begins(&silent, "Stalls(count):")), (1, 1), "{silent}");
    let intervals = ["--stats_interval_seconds=1", "--stats_per_interval=1"];
    let told = merged(temp.path(), &[&steps[..], &intervals[..]].concat());
    assert!(!told.contains('\r'), "{told}");
    assert_eq!((begins(&told, "fillseq "), begins(&told, "readrandom ")), (1, 1), "{told}");
    for thread in ["0", "1"] {
        let line = format!(" ... thread {thread}: (");
        assert!(told.lines().any(|text| text.contains(&line) && text.ends_with(" seconds")), "{told}");
    }
    assert!(begins(&told, "Uptime(secs)") > begins(&silent, "Uptime(secs)"), "{told}");
}

#[test]
fn a_scan_has_a_sample_of_each_row() {
    let temp = tempfile::tempdir().unwrap();
    let text = merged(temp.path(), &["--benchmarks=fillseq,readseq,readseq,flush", "--histogram=1"]);
    let counts = text.lines().filter(|line| line.starts_with("Count: 2000 ")).count();
    assert_eq!(counts, 3, "no samples of the flush: {text}");
    let some =
        merged(temp.path(), &["--benchmarks=readseq", "--use_existing_db=1", "--reads=10", "--histogram=1"]);
    assert!(some.contains(" 10 operations;") && some.contains("Count: 10 "), "{some}");
}

#[test]
fn a_version_and_flags_that_are_missing_are_said() {
    let version = text(&outcrop(&["db_bench", "--version"]));
    assert!(version.starts_with("db_bench version outcrop-"), "{version}");
    let refused = text(&outcrop(&["db_bench", "--rate_limiter_bytes_per_sec=5"]));
    assert!(
        refused.contains("--rate_limiter_bytes_per_sec is a flag of RocksDB's db_bench that"),
        "{refused}"
    );
    let misspelt = text(&outcrop(&["db_bench", "--valuesize=5"]));
    assert!(misspelt.contains("the nearest is --value_size"), "{misspelt}");
}
