//! RocksDB's own `benchmark_compare.sh` and `benchmark.sh`, unmodified, on our `db_bench` and on Debian's beside it.
//!
//! The scripts come with the sources that the crate `librocksdb-sys` carries; cargo fetches them. Each side runs the same
//! sequence at a small size, and what the scripts leave is compared: the same files, the same rows, and every column that
//! the control fills is filled. The figures themselves are not compared.
//!
//! `benchmark_compare.sh` runs 13 of the jobs of `benchmark.sh`; those that it leaves out are run by `benchmark.sh` itself, as are
//! loads and writes with universal compaction and with blob files. Not run: `debug`, and `universal_compaction`, which gives its
//! db_bench a flag that no version has.
//!
//! Before that, every flag that the db_bench of some releases defines, and every benchmark that it knows, must be in `docs/db_bench.md`, which a test makes from
//! our tables: what another version has is told from what is misspelt.

use crate::packages::{self, Install};
use crate::programs;
use crate::root;
use crate::sources::{make_dir, sources};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The release whose scripts are used.
const SOURCES: &str = "=0.17.3";
/// Releases whose flags db_bench must know.
const FLAGS_OF: [&str; 3] = ["=0.6.1", SOURCES, "=0.19.0"];
/// Names of the two sides, as `benchmark_compare.sh` knows them.
const SIDES: [&str; 2] = ["control", "outcrop"];
/// Jobs of `benchmark.sh` in one directory: its name, the compaction style, the jobs in order.
const JOBS: [(&str, &str, &str); 3] = [
    (
        "other-jobs",
        "leveled",
        "bulkload,fillseq_enable_wal,updaterandom,mergerandom,readwhilemerging,fwdrangewhilemerging,\
         revrangewhilemerging,filluniquerandom,randomtransaction",
    ),
    ("universal", "universal", "fillseq_disable_wal,overwrite,readrandom"),
    ("blob", "blob", "fillseq_disable_wal,overwrite,readrandom"),
];
/// Columns of the report that neither side fills by itself.
const IDENTITY: [&str; 2] = ["date", "job_id"];
/// Sampled by `ps` once a second or so: a row whose step was over before has none.
const SAMPLED: &str = "rss";

/// See the module.
pub fn run(install: Install) -> Result<(), String> {
    let control = packages::program(&["db_bench"], "rocksdb-tools", install)?;
    packages::program(&["iostat"], "sysstat", install)?;
    packages::program(&["killall"], "psmisc", install)?;
    packages::program(&["bc"], "bc", install)?;
    packages::program(&["time"], "time", install)?;
    let dir = programs::target_dir().join("scripts");
    let _ = std::fs::remove_dir_all(&dir);
    make_dir(&dir.join("db"))?;
    flags_are_known(&dir)?;
    for script in ["benchmark.sh", "benchmark_compare.sh"] {
        let from = sources(SOURCES, &dir)?.join("rocksdb/tools").join(script);
        std::fs::copy(&from, dir.join(script)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    wrapper(&dir, "control", &control)?;
    wrapper(&dir, "outcrop", &programs::built("outcrop")?)?;
    let log = dir.join("output.txt");
    let output = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let status = Command::new("bash")
        .args(["./benchmark_compare.sh", "db", "out", SIDES[0], SIDES[1]])
        .current_dir(&dir)
        // Longer than two seconds, after which a tool reports its progress.
        .envs([("DURATION_RW", "3"), ("DURATION_RO", "3"), ("STATS_INTERVAL_SECONDS", "2")])
        .envs([("NUM_KEYS", "200000"), ("NUM_THREADS", "2"), ("CACHE_SIZE_MB", "64")])
        .envs([
            ("WRITE_BUFFER_SIZE_MB", "4"),
            ("TARGET_FILE_SIZE_BASE_MB", "4"),
            ("COMPRESSION_TYPE", "none"),
        ])
        .stdin(std::process::Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    if !status.success() {
        return Err(format!("benchmark_compare.sh failed: {}", log.display()));
    }
    let out = dir.join("out");
    let [control, ours] = SIDES.map(|side| out.join(side));
    let mut differences = [compare_files(&control, &ours)?, compare_reports(&control, &ours)?].concat();
    for (name, style, jobs) in JOBS {
        let [control, ours] = SIDES.map(|side| dir.join(name).join(side));
        for (side, output) in SIDES.iter().zip([&control, &ours]) {
            benchmark(&dir, side, style, jobs, output)?;
        }
        let found = [compare_files(&control, &ours)?, compare_reports(&control, &ours)?].concat();
        differences.extend(found.into_iter().map(|difference| format!("{name}: {difference}")));
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\nthe scripts' output is {}", differences.join("\n"), log.display())),
    }
}

/// Runs `jobs` of `benchmark.sh` on the db_bench of `side`; what they leave is in `output`.
fn benchmark(dir: &Path, side: &str, style: &str, jobs: &str, output: &Path) -> Result<(), String> {
    let program = dir.join("db_bench");
    let _ = std::fs::remove_file(&program);
    std::os::unix::fs::symlink(format!("db_bench.{side}"), &program)
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let db = dir.join("db-of-jobs");
    let _ = std::fs::remove_dir_all(&db);
    make_dir(&db)?;
    make_dir(output)?;
    let log = output.with_extension("txt");
    let file = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let status = Command::new("bash")
        .args(["./benchmark.sh", jobs])
        .current_dir(dir)
        .env("OUTPUT_DIR", output)
        .envs([("DB_DIR", &db), ("WAL_DIR", &db)])
        .envs([("COMPACTION_STYLE", style), ("DB_BENCH_NO_SYNC", "1"), ("DURATION", "3")])
        .envs([("NUM_KEYS", "50000"), ("NUM_THREADS", "2"), ("CACHE_SIZE", "67108864")])
        .envs([
            ("WRITE_BUFFER_SIZE_MB", "4"),
            ("TARGET_FILE_SIZE_BASE_MB", "4"),
            ("COMPRESSION_TYPE", "none"),
        ])
        .envs([("STATS_INTERVAL_SECONDS", "2"), ("MB_WRITE_PER_SEC", "2")])
        .stdin(std::process::Stdio::null())
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    let _ = std::fs::remove_dir_all(&db);
    if status.success() { Ok(()) } else { Err(format!("benchmark.sh failed: {}", log.display())) }
}

/// Whether the page of flags has every flag of RocksDB's own tool.
fn flags_are_known(dir: &Path) -> Result<(), String> {
    let path = root().join("docs/db_bench.md");
    let page = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let known: BTreeSet<&str> = page.split(|c| !is_part(c)).collect();
    let mut unknown = Vec::new();
    for release in FLAGS_OF {
        let path = sources(release, dir)?.join("rocksdb/tools/db_bench_tool.cc");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let flags = flags_of(&text);
        println!("{} flags of librocksdb-sys {release}", flags.len());
        unknown.extend(flags.difference(&known).map(|flag| format!("{release} has --{flag}")));
        let benchmarks = benchmarks_of(&text);
        unknown
            .extend(benchmarks.difference(&known).map(|name| format!("{release} has the benchmark {name}")));
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(format!("flags and benchmarks that db_bench does not know:\n{}", unknown.join("\n"))),
    }
}

/// The flags that a source of gflags defines: `DEFINE_bool(name, ..`.
fn flags_of(text: &str) -> BTreeSet<&str> {
    text.split("\nDEFINE_").skip(1).filter_map(name_of).collect()
}

/// The benchmarks that its names are compared with: `name == "fillseq"`.
fn benchmarks_of(text: &str) -> BTreeSet<&str> {
    text.split("name == \"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn name_of(definition: &str) -> Option<&str> {
    let (_, arguments) = definition.split_once('(')?;
    arguments.trim_start().split([',', '\n']).next().map(str::trim)
}

/// `db_bench.SIDE` runs `program` under the name db_bench. A step that only waits for compaction, five minutes in the
/// script whatever the size, is cut short.
fn wrapper(dir: &Path, side: &str, program: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(format!("db_bench.{side}"));
    let text = format!(
        "#!/usr/bin/env bash\nexec -a db_bench {} \"${{@/--duration=300/--duration=3}}\"\n",
        program.display()
    );
    std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Files that one side has and the other lacks. Old LOG files are as many as openings, which differ by nothing the scripts see.
fn compare_files(control: &Path, ours: &Path) -> Result<Vec<String>, String> {
    let names = |dir: &Path| -> Result<BTreeSet<String>, String> {
        let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| !name.starts_with("LOG.old")).collect())
    };
    let (control, ours) = (names(control)?, names(ours)?);
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>, side: &str| {
        a.difference(b).map(|name| format!("only the {side} has {name}")).collect::<Vec<_>>()
    };
    Ok([only(&control, &ours, "control"), only(&ours, &control, "other side")].concat())
}

/// Rows and columns of `report.tsv` that only one side fills.
fn compare_reports(control: &Path, ours: &Path) -> Result<Vec<String>, String> {
    let read = |dir: &Path| {
        let path = dir.join("report.tsv");
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (control, ours) = (read(control)?, read(ours)?);
    let rows = |text: &str| -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('\t').map(str::to_string).collect()).collect()
    };
    let (control, ours) = (rows(&control), rows(&ours));
    let (Some(header), true) =
        (control.first(), control.first() == ours.first() && control.len() == ours.len())
    else {
        return Ok(vec![format!("rows: {} of the control, {} of ours", control.len(), ours.len())]);
    };
    let is_filled = |cell: &String| !matches!(cell.as_str(), "" | "NA" | "failed");
    let mut differences = Vec::new();
    for (theirs, own) in control.iter().zip(&ours).skip(1) {
        let test = header.iter().position(|name| name == "test").and_then(|at| theirs.get(at));
        for (index, name) in header.iter().enumerate().filter(|(_, name)| !IDENTITY.contains(&name.as_str()))
        {
            let (theirs, own) = (theirs.get(index), own.get(index));
            if name != SAMPLED && theirs.is_some_and(is_filled) && !own.is_some_and(is_filled) {
                differences.push(format!("{test:?}: {name} is {theirs:?} of the control, {own:?} of ours"));
            }
            if name == "test" && theirs != own {
                differences.push(format!("a row is {theirs:?} of the control and {own:?} of ours"));
            }
        }
    }
    let sampled = header.iter().position(|name| name == SAMPLED);
    let has_samples = |rows: &[Vec<String>]| {
        sampled.is_some_and(|at| rows.iter().skip(1).filter_map(|row| row.get(at)).any(is_filled))
    };
    if has_samples(&control) && !has_samples(&ours) {
        differences.push(format!("{SAMPLED} is in no row of ours"));
    }
    println!("{} rows of {} columns filled alike", control.len() - 1, header.len());
    Ok(differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_on_one_line_and_on_two() {
        let text =
            "x\nDEFINE_bool(use_it, false, \"a, (b)\");\nDEFINE_string(\n    name_of_it,\n  \"\", \"\");\n";
        assert_eq!(flags_of(text), BTreeSet::from(["name_of_it", "use_it"]));
        let text = "if (name == \"fillseq\" ||\n  name == \"xxh3\") {";
        assert_eq!(benchmarks_of(text), BTreeSet::from(["fillseq", "xxh3"]));
    }
}
