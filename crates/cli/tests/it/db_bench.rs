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

/// The number after `name`.
fn number_after(text: &str, name: &str) -> u64 {
    let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("{name}: {text}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn steps_of_several_operations_say_how_many_of_each() {
    let temp = tempfile::tempdir().unwrap();
    merged(temp.path(), &["--benchmarks=fillseq", "--value_size=70"]);
    let merges = ["--merge_operator=put", "--threads=2", "--value_size=70", "--use_existing_db=1"];
    let text = merged(temp.path(), &[&["--benchmarks=readrandommergerandom"], &merges[..]].concat());
    let line = text.lines().find(|line| line.starts_with("readrandommergerandom ")).expect(&text);
    let [reads, merged_in] = ["(reads:", " merges:"].map(|name| number_after(line, name));
    assert!(reads > 800 && merged_in > 2000 && reads + merged_in == 4000, "{line}");
    assert!(line.ends_with(&format!(" total:4000 hits:{reads} maxlength:70)")), "{line}");
    let mix = ["--mix_get_ratio=0.5", "--mix_put_ratio=0.3", "--mix_seek_ratio=0.2", "--use_existing_db=1"];
    let text = merged(temp.path(), &[&["--benchmarks=mixgraph", merges[0]], &mix[..]].concat());
    let line = text.lines().find(|line| line.starts_with("mixgraph ")).expect(&text);
    let [gets, puts, seeks] = ["( Gets:", " Puts:", " Seek:"].map(|name| number_after(line, name));
    assert!(gets > puts && puts > seeks && seeks > 0 && gets + puts + seeks == 2000, "{line}");
    let read = gets + seeks;
    assert!(
        line.contains(&format!(", reads {read} in {read} found, avg size: ")),
        "every key is there: {line}"
    );
    let text = merged(temp.path(), &["--benchmarks=randomtransaction", "--reads=300", "--threads=2"]);
    let line = text.lines().find(|line| line.starts_with("randomtransaction ")).expect(&text);
    assert_eq!(number_after(line, "( transactions:") - number_after(line, " aborts:"), 600, "{line}");
}

#[test]
fn deletions_are_done_in_batches() {
    let temp = tempfile::tempdir().unwrap();
    let text = merged(temp.path(), &["--benchmarks=fillseq,deleteseq,readseq", "--batch_size=300"]);
    let operations = text.lines().filter_map(|line| line.split(" seconds ").nth(1)?.split(' ').next());
    // Of 2000 keys 1800 are written and deleted.
    assert_eq!(operations.collect::<Vec<_>>(), ["1800", "1800", "0"], "{text}");
    let random = ["--benchmarks=fillseq,deleterandom,stats", "--writes=100", "--histogram=1"];
    let text = merged(temp.path(), &[&random[..], &["--batch_size=50"]].concat());
    let line = text.lines().find(|line| line.starts_with("deleterandom ")).expect(&text);
    assert!(line.contains(" 2000 operations;"), "num of them: {text}");
    assert!(text.contains("Microseconds per delete:\nCount: 40 "), "50 with a write: {text}");
}

#[test]
fn loads_leave_a_database_that_is_to_be_kept_alone() {
    let temp = tempfile::tempdir().unwrap();
    merged(temp.path(), &["--benchmarks=fillseq"]);
    let loads = ["fillseq", "fillbatch", "fillrandom", "filluniquerandom[X2]", "fillsync"];
    let all = format!("--benchmarks={},readseq", loads.join(","));
    let text = merged(temp.path(), &[&all, "--use_existing_db=1", "--num=5000", "--writes=5000"]);
    for name in loads.map(|word| word.trim_end_matches("[X2]")) {
        let line = format!("{name:<12} : skipped (--use_existing_db is true)");
        assert_eq!(text.lines().filter(|printed| **printed == line).count(), 1, "{name}: {text}");
    }
    assert_eq!(text.matches(" micros/op ").count(), 1, "{text}");
    assert!(text.contains(" 2000 operations;"), "nothing was written: {text}");
    let written = merged(temp.path(), &["--benchmarks=overwrite,updaterandom", "--use_existing_db=1"]);
    assert_eq!(written.matches(" 2000 operations;").count(), 2, "these are no loads: {written}");
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
    let newer = text(&outcrop(&["db_bench", "--use_multiscan=1"]));
    assert!(newer.contains("--use_multiscan is a flag of RocksDB's db_bench that"), "{newer}");
    let built = text(&outcrop(&["db_bench", "--build_info"]));
    assert!(built.starts_with("db_bench (RocksDB) outcrop-") && !built.contains("fillseq"), "{built}");
    let misspelt = text(&outcrop(&["db_bench", "--valuesize=5"]));
    assert!(misspelt.contains("the nearest is --value_size"), "{misspelt}");
}

#[test]
fn scans_end_after_reads_rows_in_both_orders_with_samples_and_without() {
    let temp = tempfile::tempdir().unwrap();
    let text = merged(temp.path(), &["--benchmarks=fillseq,readseq,readreverse,readtocache", "--reads=10"]);
    assert_eq!(text.matches(" 10 operations;").count(), 2, "{text}");
    assert!(text.contains("readtocache ") && text.matches(" 2000 operations;").count() == 2, "{text}");
    let all = merged(temp.path(), &["--benchmarks=readreverse", "--use_existing_db=1", "--histogram=1"]);
    assert!(all.contains(" 2000 operations;") && all.contains("Microseconds per read:"), "{all}");
}

#[test]
fn a_benchmark_runs_as_often_as_its_name_says() {
    let temp = tempfile::tempdir().unwrap();
    let text = merged(temp.path(), &["--benchmarks=fillseq,readrandom[X3-W1]"]);
    let begins = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert!(text.contains("Warming up benchmark by running 1 times\n"), "{text}");
    assert!(text.contains("Running benchmark for 3 times\n"), "{text}");
    assert_eq!((begins("readrandom   : "), begins("readrandom [AVG ")), (4, 3), "{text}");
    assert_eq!(begins("readrandom [MEDIAN 3 runs] : "), 1, "{text}");
}

#[test]
fn the_other_benchmarks_of_rocksdbs_tool_do_what_they_say() {
    let temp = tempfile::tempdir().unwrap();
    let steps = "--benchmarks=fillbatch,flush,verifychecksum,newiterator,readrandomsmall,deleteseq,readseq,sstables,compactall";
    let text = merged(temp.path(), &[steps]);
    let begins = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for name in ["fillbatch", "verifychecksum", "newiterator", "readrandomsmall", "deleteseq"] {
        assert_eq!(begins(&format!("{name:<12} : ")), 1, "{name}: {text}");
    }
    let readseq = text.lines().find(|line| line.starts_with("readseq ")).unwrap();
    assert!(readseq.contains(" 0 operations;"), "everything was deleted: {text}");
    assert!(text.contains("--- level 0 ---"), "sstables: {text}");
    let mixed = merged(temp.path(), &["--benchmarks=fillseq,readrandomwriterandom", "--readwritepercent=60"]);
    // Of 2000 operations 1200 look up keys that are all there.
    assert!(mixed.contains("( reads:1200 writes:800 total:2000 found:1200)"), "{mixed}");
    let scanned = merged(temp.path(), &["--benchmarks=fillseq,readwhilescanning", "--threads=2"]);
    // The lookups of both threads alone are counted.
    assert!(scanned.contains("4000 operations;") && scanned.contains("(4000 of 4000 found)"), "{scanned}");
    let rows = scanned.lines().find_map(|line| line.strip_prefix("readwhilescanning: ")).expect(&scanned);
    let rows: u64 = rows.split_whitespace().next().unwrap().parse().unwrap();
    assert!(rows > 0, "{scanned}");
    let beside = ["--duration=2", "--stats_interval_seconds=1", "--benchmark_write_rate_limit=20000"];
    let told = merged(
        temp.path(),
        &[&["--benchmarks=fillseq,multireadwhilewriting", "--batch_size=4"], &beside[..]].concat(),
    );
    assert!(told.contains(" ... thread 0: (") && told.contains(" ... thread 1: ("), "{told}");
    let db = format!("--db={}", temp.path().join("db").display());
    let refused = text_of(&["db_bench", db.as_str(), "--benchmarks=xxh3"]);
    assert!(
        refused.contains("xxh3 is a benchmark of RocksDB's db_bench that this one does not have"),
        "{refused}"
    );
}

fn text_of(arguments: &[&str]) -> String {
    text(&outcrop(arguments))
}
