//! The binary as a user runs it.

mod browser;
mod builds;
mod db_bench;
mod disk;
mod lab;
mod ldb;
mod look;
mod pages;
mod paths;
mod shipped;
mod targets;
mod terminal;
mod wal_dir;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn outcrop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outcrop")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn ldb(dir: &Path, arguments: &[&str]) -> Output {
    let db = format!("--db={}", dir.display());
    outcrop(&[&["ldb", db.as_str()], arguments].concat())
}

#[test]
fn who_reads_only_the_beginning_gets_it_and_no_panic() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = format!("--db={}", dir.display());
    let filled = outcrop(&["db_bench", &db, "--benchmarks=fillseq", "--num=2000", "--value_size=400"]);
    assert!(filled.status.success(), "{}", text(&filled));
    let mut child = Command::new(env!("CARGO_BIN_EXE_outcrop"))
        .args(["ldb", &db, "scan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 20];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first[16..], b" ==>", "after a key of 16 bytes");
    let ended = child.wait_with_output().unwrap();
    assert!(!ended.status.success(), "800 kB do not fit into a pipe");
    assert_eq!(text(&ended), "");
}

#[test]
fn ldb_writes_reads_and_looks_around() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let missing = ldb(&dir, &["get", "a"]);
    assert!(!missing.status.success());
    assert_eq!(text(&ldb(&dir, &["--create_if_missing", "put", "a", "1"])), "OK\n");
    assert_eq!(text(&ldb(&dir, &["--hex", "put", "0x62", "0x32"])), "OK\n");
    assert_eq!(text(&ldb(&dir, &["get", "b"])), "2\n");
    assert_eq!(text(&ldb(&dir, &["scan"])), "a ==> 1\nb ==> 2\n");
    assert_eq!(text(&ldb(&dir, &["--from=0x62", "--hex", "dump"])).lines().count(), 2);
    assert_eq!(text(&ldb(&dir, &["delete", "a"])), "OK\n");
    let gone = ldb(&dir, &["get", "a"]);
    assert_eq!((gone.status.success(), text(&gone)), (true, "Key not found\n".to_string()));
    assert!(text(&ldb(&dir, &["list_column_families"])).contains("{default}"));
    assert_eq!(text(&ldb(&dir, &["checkconsistency"])), "OK\n");
    let manifest = text(&ldb(&dir, &["manifest_dump"]));
    assert!(
        manifest.contains("Column family \"default\"") && manifest.contains("next_file_number"),
        "{manifest}"
    );
    assert!(!ldb(&dir, &["no_such_verb"]).status.success());

    let table = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .expect("reopening flushed the WAL to a table");
    let file = format!("--file={}", table.display());
    let scan = text(&outcrop(&["sst_dump", &file, "--command=scan", "--show_properties"]));
    assert!(scan.contains("num_entries") && scan.contains("seq:"), "{scan}");
    assert!(outcrop(&["sst_dump", &file, "--command=check"]).status.success());
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let broken = outcrop(&["sst_dump", &file, "--command=check"]);
    assert!(!broken.status.success() && text(&broken).contains("checksum"), "{}", text(&broken));
}

#[test]
fn db_bench_prints_rocksdbs_result_lines() {
    let temp = tempfile::tempdir().unwrap();
    let db = format!("--db={}", temp.path().join("db").display());
    let output = outcrop(&[
        "db_bench",
        "--benchmarks=fillseq,readrandom,readmissing,seekrandom,readwhilewriting,overwriteandwait,stats",
        "--num=2000",
        "--seek_nexts=10",
        "--histogram=1",
        &db,
    ]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.starts_with("readrandom")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words[1], words[3], words[5]), (":", "micros/op", "ops/sec"), "{line}");
    assert!(line.contains("(2000 of 2000 found)"), "{line}");
    assert!(text.contains("(0 of 2000 found)"), "readmissing finds nothing: {text}");
    assert!(text.contains("Percentiles: P50:") && text.contains("Cumulative writes"), "{text}");
}

#[test]
fn db_bench_mixes_batches_and_keeps_arrivals() {
    let temp = tempfile::tempdir().unwrap();
    let db = format!("--db={}", temp.path().join("db").display());
    let run = |flags: &[&str]| {
        let output = outcrop(&[&["db_bench", db.as_str(), "--num=2000", "--histogram=1"], flags].concat());
        (output.status.success(), text(&output))
    };
    let benchmarks = "--benchmarks=filluniquerandom,multireadrandom,mixgraph,overwrite";
    let (done, printed) = run(&[
        benchmarks,
        "--batch_size=10",
        "--mix_get_ratio=0.5",
        "--mix_put_ratio=0.3",
        "--mix_seek_ratio=0.2",
    ]);
    assert!(done, "{printed}");
    let line = |name: &str| printed.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("multireadrandom").contains("(2000 of 2000 found)"), "every key was written: {printed}");
    assert!(line("mixgraph").contains("2000 operations"), "{printed}");
    let (done, printed) = run(&[
        "--use_existing_db=1",
        "--benchmarks=readrandom",
        "--duration=0.5",
        "--arrival_rate=400",
        "--arrival_spacing=poisson",
    ]);
    assert!(done && printed.contains("response time at 400 ops/sec due: P50:"), "{printed}");
    assert!(printed.contains("Microseconds from the time an operation was due:"), "{printed}");
    let (done, printed) = run(&["--benchmarks=randomtransaction"]);
    let line = printed.lines().find(|line| line.starts_with("randomtransaction"));
    assert!(done && line.is_some_and(|line| line.contains("ops/sec")), "{printed}");
}

#[test]
fn db_bench_merges_by_operators_of_any_name() {
    let temp = tempfile::tempdir().unwrap();
    let db = format!("--db={}", temp.path().join("db").display());
    let run = |flags: &[&str]| {
        let output = outcrop(&[&["db_bench", db.as_str(), "--num=500", "--seed=1"], flags].concat());
        (output.status.success(), text(&output))
    };
    let (done, printed) = run(&[
        "--benchmarks=fillseq,mergerandom,readrandommergerandom,readwhilemerging,readrandom,updaterandom,appendrandom",
        "--merge_operator=stringappend",
        "--value_size_distribution_type=uniform",
        "--value_size_min=10",
        "--value_size_max=50",
    ]);
    assert!(done, "{printed}");
    let line = |name: &str| printed.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("mergerandom").ends_with("( updates:500)"), "{printed}");
    assert!(line("readrandom ").contains("(500 of 500 found)"), "operands are understood: {printed}");
    assert!(line("appendrandom").contains("( updates:500 found:500)"), "{printed}");
    let (done, printed) = run(&["--benchmarks=fillseq,mergerandom", "--merge_operator=no_such"]);
    assert!(
        !done && printed.contains("mergerandom is not offered by this engine: no merge operator no_such"),
        "{printed}"
    );
}

#[test]
fn lab_quick_measures_reports_and_leaves_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let (data, output) = (temp.path().join("data"), temp.path().join("report"));
    let result = outcrop(&[
        "lab",
        "quick",
        "--engines=outcrop,outcrop",
        "--keys=3000",
        "--seconds=0.2",
        "--rounds=2",
        "--data",
        data.to_str().unwrap(),
        "--output",
        output.to_str().unwrap(),
    ]);
    let printed = text(&result);
    assert!(result.status.success(), "{printed}");
    assert!(printed.contains("overwriteandwait") && printed.contains("relative to outcrop"), "{printed}");
    let html = std::fs::read_to_string(output.join("index.html")).unwrap();
    assert!(html.contains("<svg") && !html.contains("http"), "the page needs nothing from outside");
    let tsv = std::fs::read_to_string(output.join("csv/summary.tsv")).unwrap();
    let lines = tsv.lines().filter(|line| line.contains("\tblock")).count();
    assert_eq!(lines, 2 * 2 * 8, "8 steps of 2 engines in 2 rounds");
    assert!(!data.exists(), "the data directory is gone");
}

#[test]
fn lab_quick_says_in_one_sentence_what_is_wrong() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("precious"), "x").unwrap();
    let data = temp.path().to_str().unwrap();
    for (arguments, expected) in [
        (vec!["--engines=outcrop", "--data", data], "not empty"),
        (vec!["--engines=other=/no/such/library.so"], "no such library"),
        (vec!["--engines=nonsense"], "unknown engine"),
        (vec!["--rounds=0"], "above zero"),
    ] {
        let result = outcrop(&[&["lab", "quick"], arguments.as_slice()].concat());
        let printed = text(&result);
        assert!(!result.status.success() && printed.contains(expected), "{printed}");
        assert_eq!(printed.trim_end().lines().count(), 1, "{printed}");
    }
    assert!(temp.path().join("precious").exists());
}

/// A database of two tables, `a` in the first and `b` in the second, and `c` in the WAL.
fn two_tables(dir: &Path) -> outcrop::Db {
    let options = outcrop::DbOptions { create_if_missing: true, ..Default::default() };
    let db = outcrop::Db::builder(dir).options(options).env(outcrop::Env::posix()).open().unwrap();
    for key in ["a", "b"] {
        db.put(key.as_bytes(), key.as_bytes()).unwrap();
        db.flush_cfs(&[db.column_family("default").unwrap()], outcrop::Wait::UntilDone).unwrap();
    }
    db.put(b"c", b"c").unwrap();
    db
}

#[test]
fn ldb_makes_backups_and_checkpoints_and_restores_them() {
    let dir = tempfile::tempdir().unwrap();
    let (db, other) = (dir.path().join("db"), dir.path().join("other"));
    let backups = format!("--backup_dir={}", dir.path().join("backups").display());
    let missing = ldb(&db, &[&backups, "backup"]);
    assert!(!missing.status.success() && text(&missing).contains("CURRENT"), "{}", text(&missing));
    assert!(!dir.path().join("backups").exists(), "nothing is made for a database that is not there");
    assert_eq!(text(&ldb(&db, &["--create_if_missing", "put", "a", "1"])), "OK\n");
    let unnamed = ldb(&db, &["backup"]);
    assert!(!unnamed.status.success() && text(&unnamed).contains("--backup_dir"), "{}", text(&unnamed));
    let made = text(&ldb(&db, &[&backups, "backup"]));
    assert_eq!(made, "open db OK\nopen backup engine OK\ncreate new backup OK\n");
    assert_eq!(text(&ldb(&db, &["put", "a", "2"])), "OK\n");
    ldb(&db, &[&backups, "--num_threads=3", "backup"]);
    assert_eq!(text(&ldb(&db, &[&backups, "list_backups"])).lines().count(), 2);
    assert_eq!(text(&ldb(&db, &[&backups, "verify_backup"])), "backup 1: OK\nbackup 2: OK\n");
    assert_eq!(text(&ldb(&db, &[&backups, "--backup_id=2", "verify_backup"])), "backup 2: OK\n");
    let restored = text(&ldb(&other, &[&backups, "restore"]));
    assert_eq!(restored, "open restore engine OK\nrestore from backup OK\n");
    assert_eq!(text(&ldb(&other, &["get", "a"])), "2\n");
    ldb(&db, &[&backups, "--backup_id=1", "restore"]);
    assert_eq!(text(&ldb(&db, &["get", "a"])), "1\n");
    assert!(!ldb(&db, &[&backups, "--backup_id=7", "restore"]).status.success());
    assert_eq!(text(&ldb(&db, &[&backups, "purge_backups", "1"])), "OK\n");
    assert_eq!(text(&ldb(&db, &[&backups, "list_backups"])).lines().count(), 1);
    let checkpoint = dir.path().join("checkpoint");
    let flag = format!("--checkpoint_dir={}", checkpoint.display());
    assert_eq!(text(&ldb(&db, &[&flag, "checkpoint"])), "OK\n");
    assert_eq!(text(&ldb(&checkpoint, &["get", "a"])), "1\n");
    assert_eq!(
        text(&ldb(&checkpoint, &["get_property", "rocksdb.num-snapshots"])),
        "rocksdb.num-snapshots: 0\n"
    );
    let refused = ldb(&db, &["reduce_levels"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not supported"));
}

#[test]
fn ldb_passes_over_no_backup_that_is_damaged_or_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (db, other) = (dir.path().join("db"), dir.path().join("other"));
    let flag = |name: &str| format!("--backup_dir={}", dir.path().join(name).display());
    let backups = flag("backups");
    for value in ["1", "2", "3"] {
        assert_eq!(text(&ldb(&db, &["--create_if_missing", "put", "a", value])), "OK\n");
        assert!(ldb(&db, &[&backups, "backup"]).status.success());
    }
    // The third is found to be damaged on opening, the second only by reading it.
    let private = |id: u32, start: &str| {
        let files = std::fs::read_dir(dir.path().join(format!("backups/private/{id}"))).unwrap().flatten();
        files.map(|file| file.path()).find(|path| path.to_string_lossy().contains(start)).unwrap()
    };
    std::fs::remove_file(private(3, "MANIFEST")).unwrap();
    let mut bytes = std::fs::read(private(2, "MANIFEST")).unwrap();
    bytes[20] ^= 1;
    std::fs::write(private(2, "MANIFEST"), bytes).unwrap();
    let verified = ldb(&db, &[&backups, "verify_backup"]);
    let lines = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        !verified.status.success() && lines.starts_with("backup 1: OK\nbackup 2: Corruption: "),
        "{lines}"
    );
    assert!(lines.lines().count() == 3 && lines.contains("\nbackup 3: "), "{lines}");
    assert!(ldb(&db, &[&backups, "--backup_id=1", "verify_backup"]).status.success());
    assert!(!ldb(&db, &[&backups, "--backup_id=3", "verify_backup"]).status.success());
    let restored = text(&ldb(&other, &[&backups, "restore"]));
    assert!(restored.contains("backup 3 is damaged"), "{restored}");

    let mistyped = ldb(&db, &[&flag("backup"), "purge_backups", "1"]);
    assert!(!mistyped.status.success() && !dir.path().join("backup").exists(), "{}", text(&mistyped));
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(!ldb(&db, &[&flag("empty"), "purge_backups", "1"]).status.success());
    assert!(std::fs::read_dir(dir.path().join("empty")).unwrap().next().is_none());
    assert!(!ldb(&db, &[&flag("empty"), "verify_backup"]).status.success());
}

#[test]
fn ldb_shows_properties_that_are_maps_line_by_line() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    two_tables(&dir).close().unwrap();
    let property = |name: &str| text(&ldb(&dir, &["get_property", name]));
    let tables = property("rocksdb.aggregated-table-properties");
    assert!(tables.contains("rocksdb.aggregated-table-properties.num_entries: 2\n"), "{tables}");
    assert_eq!(tables.lines().count(), 19, "{tables}");
    let stats = property("rocksdb.cfstats");
    let files = "rocksdb.cfstats.compaction.L0.NumFiles: 2.000000\n";
    assert!(stats.contains(files) && stats.contains("rocksdb.cfstats.total-stops: 0\n"), "{stats}");
    assert!(property("rocksdb.block-cache-entry-stats").contains(".percent.data-block: 0.000000\n"));
    assert!(property("rocksdb.dbstats").contains("rocksdb.dbstats.db.user_keys_written: 0\n"));
    assert!(
        property("rocksdb.levelstats").starts_with("rocksdb.levelstats: Level Files"),
        "a text stays one"
    );
    assert!(!ldb(&dir, &["get_property", "rocksdb.no-such"]).status.success());
}

#[test]
fn ldb_reads_beside_a_process_that_writes_and_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = two_tables(&dir);
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    assert_eq!(text(&ldb(&dir, &["scan"])), "a ==> a\nb ==> b\nc ==> c\n");
    assert_eq!(text(&ldb(&dir, &["get", "c"])), "c\n");
    assert_eq!(text(&ldb(&dir, &["checkconsistency"])), "OK\n");
    assert!(ldb(&dir, &["checkcompat", "--with=6.29,11.8.1"]).status.success());
    assert!(!ldb(&dir, &["put", "d", "d"]).status.success(), "the lock is held");
    // The writer itself may still remove a log that it flushed.
    assert!(names().iter().all(|name| before.contains(name)), "{:?}, before {before:?}", names());
    db.close().unwrap();
}

#[test]
fn a_damaged_table_hides_no_other_from_ldb() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    two_tables(&dir).close().unwrap();
    let tables = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let first = tables.filter(|path| path.extension().is_some_and(|e| e == "sst")).min().unwrap();
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[2] ^= 0xFF;
    std::fs::write(&first, bytes).unwrap();
    assert_eq!(text(&ldb(&dir, &["get", "b"])), "b\n");
    let damaged = ldb(&dir, &["get", "a"]);
    assert!(!damaged.status.success() && text(&damaged).contains("checksum mismatch"), "{}", text(&damaged));
    assert!(!ldb(&dir, &["checkconsistency"]).status.success());
    let report = text(&ldb(&dir, &["checkcompat", "--with=6.29"]));
    assert!(report.contains("UNKNOWN  not readable by Outcrop"), "{report}");
}

#[test]
fn tables_in_reverse_order_are_walked_in_it() {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/made/11.8.1-reverse-order");
    let temp = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&made).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, temp.path().join(path.file_name().unwrap())).unwrap();
    }
    std::fs::remove_file(temp.path().join("rows.txt")).unwrap();
    let db = temp.path().display().to_string();
    assert!(outcrop(&["sst_dump", &format!("--file={db}"), "--command=check"]).status.success());
    let compatible = outcrop(&["ldb", &format!("--db={db}"), "checkcompat", "--with=11.8"]);
    assert!(compatible.status.success(), "{}", text(&compatible));
}
