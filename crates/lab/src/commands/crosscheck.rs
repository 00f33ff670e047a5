//! `outcrop lab crosscheck`: this load generator beside RocksDB's own db_bench, on one and the same library.
//!
//! ```text
//! each round, in random order:   db_bench            fillseq, readrandom, seekrandom, overwrite
//!                                outcrop db_bench    the same flags, --library = the library db_bench is linked to
//! judged:   operations per second within 3 %
//! exact:    keys found, bytes on disk within 1 %, keys byte by byte, options as the engine resolved them
//! ```
//! A generator that is slower than the tool people know would hide differences between fast engines; one that writes
//! other keys would measure something else.

use crate::analysis::judge::{self, Better, Question, Verdict, Word};
use crate::analysis::options_diff::{self, Difference};
use crate::commands::crosscheck_sql;
use crate::report::text::{align, amount};
use crate::run::{newest_options, unix_seconds};
use outcrop_lab_load::rng::Mt19937_64;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags of `lab crosscheck`.
#[derive(Clone, Debug, clap::Args)]
pub struct CrosscheckArguments {
    /// RocksDB's tool; on Debian: apt-get install rocksdb-tools.
    #[arg(long, default_value = "db_bench")]
    pub db_bench: PathBuf,
    /// The library that tool is linked to.
    #[arg(long, default_value = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8")]
    pub library: PathBuf,
    /// Compares with sysbench on this server instead, such as postgres@18.x; --keys are then its rows.
    #[arg(long, value_name = "NAME@VERSION")]
    pub server: Option<String>,
    /// sysbench; on Debian: apt-get install sysbench.
    #[arg(long, default_value = "sysbench")]
    pub sysbench: PathBuf,
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Seconds of each timed step.
    #[arg(long, default_value_t = 20)]
    pub seconds: u32,
    /// Rounds; both tools run once in each.
    #[arg(long, default_value_t = 8)]
    pub rounds: usize,
    /// Directory for databases; removed afterwards.
    #[arg(long, default_value = "outcrop-lab-crosscheck")]
    pub data: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Steps that both tools do.
const STEPS: [&str; 4] = ["fillseq", "readrandom", "seekrandom", "overwrite"];

/// Share by which the tools may differ.
pub(super) const WITHIN: f64 = 0.03;
/// Share by which their databases may differ.
const SIZE_WITHIN: f64 = 0.01;

/// Flags of both: what RocksDB's tool would choose otherwise than its C API does is said.
const BOTH: [&str; 26] = [
    "--key_size=20",
    "--value_size=400",
    "--threads=1",
    "--compression_type=none",
    "--compression_ratio=0.5",
    "--block_size=8192",
    "--bloom_bits=10",
    "--cache_type=lru_cache",
    "--cache_high_pri_pool_ratio=0.5",
    "--cache_index_and_filter_blocks=1",
    "--pin_l0_filter_and_index_blocks_in_cache=1",
    "--bytes_per_sync=1048576",
    "--level_compaction_dynamic_level_bytes=1",
    "--write_buffer_size=16777216",
    "--max_write_buffer_number=8",
    "--target_file_size_base=16777216",
    "--max_bytes_for_level_base=67108864",
    "--max_bytes_for_level_multiplier=8",
    "--num_levels=8",
    "--level0_file_num_compaction_trigger=4",
    "--level0_slowdown_writes_trigger=20",
    "--level0_stop_writes_trigger=30",
    "--max_background_jobs=3",
    "--seek_nexts=10",
    "--histogram=1",
    "--open_files=-1",
];

/// Flags of RocksDB's tool alone: it has defaults of its own for what its C API leaves as the library has it.
const THEIRS: [&str; 10] = [
    "--stats_interval_seconds=0",
    "--enable_pipelined_write=0",
    "--delayed_write_rate=16777216",
    "--hard_pending_compaction_bytes_limit=274877906944",
    "--table_cache_numshardbits=6",
    "--index_shortening_mode=1",
    "--pin_top_level_index_and_filter=1",
    "--dump_malloc_stats=0",
    "--fifo_compaction_max_table_files_size_mb=1024",
    "--fifo_compaction_allow_compaction=0",
];

/// Options that differ between the tools and change no operation: RocksDB's listens for errors and would make column
/// families that nobody asks for; the filter is the same one, whose bits are not told behind the C API.
const HARMLESS: [&str; 3] =
    ["DBOptions.listeners", "DBOptions.create_missing_column_families", "TableOptions.filter_policy"];

/// One step of both tools.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Step.
    pub step: &'static str,
    /// Operations per second of RocksDB's tool and of this one, round by round.
    pub rounds: Vec<(f64, f64)>,
    /// Ours over theirs.
    pub verdict: Option<Verdict>,
    /// Share of lookups of RocksDB's tool and of this one that found their key.
    pub found: Option<(f64, f64)>,
}

/// The result of the comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Crosscheck {
    /// Steps.
    pub steps: Vec<Compared>,
    /// Bytes after the load: theirs and ours, of the last round.
    pub bytes: (u64, u64),
    /// Keys of RocksDB's tool that this one found, of how many it looked for.
    pub keys: (u64, u64),
    /// Options that differ, theirs before ours, without those that change no operation.
    pub options: Vec<Difference>,
}

/// The figures that a tool printed of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Printed {
    ops_per_second: f64,
    found: Option<(u64, u64)>,
}

/// Runs both tools and prints how they compare.
///
/// # Errors
/// If a tool fails, or the two differ.
pub fn run(arguments: &CrosscheckArguments) -> Result<(), String> {
    if arguments.keys == 0 || arguments.rounds == 0 || arguments.seconds == 0 {
        return Err("--keys, --rounds and --seconds must be above zero".to_string());
    }
    if let Some(server) = &arguments.server {
        return crosscheck_sql::run(arguments, server);
    }
    let result = measure(arguments);
    // The databases are ours; a directory that is not there is fine.
    let _ = std::fs::remove_dir_all(arguments.data.join("theirs"));
    let _ = std::fs::remove_dir_all(arguments.data.join("ours"));
    let _ = std::fs::remove_dir(&arguments.data);
    let result = result?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&result).expect("plain data serialises"));
    } else {
        print!("{}", text(&result));
    }
    let faults = faults(&result);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

fn measure(arguments: &CrosscheckArguments) -> Result<Crosscheck, String> {
    let mut rng = Mt19937_64::new(unix_seconds());
    let mut rounds: Vec<[Vec<Printed>; 2]> = Vec::new();
    let mut bytes = (0, 0);
    for round in 0..arguments.rounds {
        let seed = rng.next_u64() >> 33;
        let ours_first = rng.next_u64() & 1 == 1;
        let mut printed = [Vec::new(), Vec::new()];
        for turn in 0..2 {
            let ours = (turn == 0) == ours_first;
            let tool = Tool { arguments, ours, seed };
            for step in STEPS {
                eprintln!("round {} of {}: {} {step}", round + 1, arguments.rounds, tool.name());
                printed[usize::from(ours)].push(tool.run(step)?);
                if step == "fillseq" {
                    *(if ours { &mut bytes.1 } else { &mut bytes.0 }) = size(&tool.dir())?;
                }
            }
        }
        rounds.push(printed);
    }
    // Before ours opens what theirs wrote, and leaves an OPTIONS file there.
    let options = options(&arguments.data.join("theirs"), &arguments.data.join("ours"))?;
    // Ours looks for its keys in what theirs wrote.
    let found = Tool { arguments, ours: true, seed: 1 }.read_theirs()?;
    let keys = found.ok_or("readrandom did not say what it found")?;
    Ok(Crosscheck { steps: compare(&rounds), bytes, keys, options })
}

/// Options that differ between the databases in two directories.
fn options(theirs: &Path, ours: &Path) -> Result<Vec<Difference>, String> {
    let read = |dir: &Path| newest_options(dir).ok_or(format!("{}: no OPTIONS file", dir.display()));
    let mut differences = options_diff::between(&read(theirs)?, &read(ours)?);
    differences.retain(|difference| !HARMLESS.contains(&difference.name.as_str()));
    Ok(differences)
}

fn compare(rounds: &[[Vec<Printed>; 2]]) -> Vec<Compared> {
    let questions: Vec<Question> = (0..STEPS.len())
        .map(|step| Question {
            name: (STEPS[step].to_string(), "ours".to_string()),
            pairs: rounds
                .iter()
                .map(|[theirs, ours]| (ours[step].ops_per_second, theirs[step].ops_per_second))
                .collect(),
            control: false,
            doubt: None,
            delta: WITHIN,
            noise: None,
        })
        .collect();
    let verdicts = judge::judge("ops_sec", Better::Higher, &questions);
    let share = |printed: &Printed| printed.found.map(|(found, all)| found as f64 / all.max(1) as f64);
    let last = rounds.last();
    (0..STEPS.len())
        .map(|step| Compared {
            step: STEPS[step],
            rounds: questions[step].pairs.iter().map(|(ours, theirs)| (*theirs, *ours)).collect(),
            verdict: verdicts[step],
            found: last.and_then(|[theirs, ours]| share(&theirs[step]).zip(share(&ours[step]))),
        })
        .collect()
}

/// One of the two tools in one round.
struct Tool<'a> {
    arguments: &'a CrosscheckArguments,
    ours: bool,
    seed: u64,
}

impl Tool<'_> {
    fn name(&self) -> &'static str {
        if self.ours { "outcrop" } else { "db_bench" }
    }

    fn dir(&self) -> PathBuf {
        self.arguments.data.join(if self.ours { "ours" } else { "theirs" })
    }

    fn run(&self, step: &str) -> Result<Printed, String> {
        let mut command = self.command(step, &self.dir())?;
        if step == "fillseq" {
            command.arg("--use_existing_db=0");
        } else {
            command.args(["--use_existing_db=1", &format!("--duration={}", self.arguments.seconds)]);
        }
        self.printed(step, command)
    }

    fn read_theirs(&self) -> Result<Option<(u64, u64)>, String> {
        let mut command = self.command("readrandom", &self.arguments.data.join("theirs"))?;
        command.args(["--use_existing_db=1", "--reads=10000"]);
        self.printed("readrandom", command).map(|printed| printed.found)
    }

    fn command(&self, step: &str, dir: &Path) -> Result<Command, String> {
        let arguments = self.arguments;
        let mut command = if self.ours {
            let exe = std::env::current_exe().map_err(|error| format!("own program: {error}"))?;
            let mut command = Command::new(exe);
            command.arg("db_bench").arg(format!("--library={}", arguments.library.display()));
            command
        } else {
            let mut command = Command::new(&arguments.db_bench);
            command.args(THEIRS);
            command
        };
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        // Everything fits the cache: only the tools are compared.
        let cache = arguments.keys * 420 * 3 / 2 + (256 << 20);
        command.args(BOTH).args([
            format!("--benchmarks={step}"),
            format!("--db={}", dir.display()),
            format!("--num={}", arguments.keys),
            format!("--seed={}", self.seed),
            format!("--cache_size={cache}"),
        ]);
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn printed(&self, step: &str, mut command: Command) -> Result<Printed, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.output().map_err(|error| format!("{program}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = parse(step, &text).filter(|_| output.status.success());
        found.ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            let last = error.lines().last().unwrap_or("it printed no result");
            format!("{} {step} failed: {last}", self.name())
        })
    }
}

/// The result line of `step`.
fn parse(step: &str, text: &str) -> Option<Printed> {
    let line = text.lines().find(|line| line.starts_with(step) && line.contains("ops/sec"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("ops/sec"))?;
    let found = line.split_once('(').and_then(|(_, rest)| {
        let (found, rest) = rest.split_once(" of ")?;
        Some((found.trim().parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    });
    Some(Printed { ops_per_second: words.get(at.checked_sub(1)?)?.parse().ok()?, found })
}

/// Bytes of the tables in a directory.
fn size(dir: &Path) -> Result<u64, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let tables = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|name| name == "sst"));
    Ok(tables.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum())
}

/// Results that must not be.
fn faults(result: &Crosscheck) -> Vec<String> {
    let mut faults: Vec<String> = result
        .steps
        .iter()
        .filter(|compared| compared.verdict.is_some_and(|verdict| verdict.word.is_call()))
        .map(|compared| format!("{} differs by more than {:.0} %", compared.step, WITHIN * 100.0))
        .collect();
    let different = |compared: &&Compared| compared.found.is_some_and(|(theirs, ours)| theirs != ours);
    faults.extend(
        result.steps.iter().filter(different).map(|compared| format!("{} found other keys", compared.step)),
    );
    if (result.bytes.1 as f64 / result.bytes.0.max(1) as f64 - 1.0).abs() > SIZE_WITHIN {
        faults.push("the databases have different sizes".to_string());
    }
    if !result.options.is_empty() {
        faults.push("the databases have different options".to_string());
    }
    if result.keys.0 != result.keys.1 {
        faults.push("keys that db_bench wrote were not found".to_string());
    }
    faults
}

fn text(result: &Crosscheck) -> String {
    let mut rows =
        vec![["step", "db_bench/s", "outcrop/s", "ratio", "95 % interval", ""].map(String::from).to_vec()];
    for compared in &result.steps {
        let median = |of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = compared.rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            crate::report::summary_line::median(&values).map_or("NA".to_string(), amount)
        };
        let (ratio, interval, word) = match compared.verdict {
            None => ("NA".to_string(), String::new(), String::new()),
            Some(verdict) => (
                format!("{:.3}", verdict.ratio),
                verdict
                    .low
                    .zip(verdict.high)
                    .map_or("?".into(), |(low, high)| format!("{low:.3}..{high:.3}")),
                match verdict.word {
                    Word::Same => "within 3 %".to_string(),
                    Word::Unknown => format!("unknown: {}", verdict.why),
                    _ => "differs".to_string(),
                },
            ),
        };
        rows.push(vec![
            compared.step.to_string(),
            median(|pair| pair.0),
            median(|pair| pair.1),
            ratio,
            interval,
            word,
        ]);
    }
    let (theirs, ours) = result.bytes;
    let mut text = format!(
        "{}\ndatabase after fillseq: {theirs} and {ours} bytes\nkeys of db_bench found: {} of {}\n",
        align(&rows),
        result.keys.0,
        result.keys.1
    );
    for difference in &result.options {
        text.push_str(&format!("option {difference}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_of_both_tools_are_read() {
        let theirs = "DB path: [/x]\nreadrandom   :       2.581 micros/op 387404 ops/sec 5.163 seconds 2000 operations;  \
                      155.2 MB/s (1999 of 2000 found)\n";
        let printed = Printed { ops_per_second: 387_404.0, found: Some((1999, 2000)) };
        assert_eq!(parse("readrandom", theirs), Some(printed));
        let load =
            "fillseq      :       1.5 micros/op 666666 ops/sec 1.5 seconds 1000000 operations;  266.0 MB/s\n";
        assert_eq!(parse("fillseq", load).unwrap().found, None);
        assert_eq!(parse("overwrite", load), None);
    }

    #[test]
    fn what_differs_is_a_fault() {
        let printed = |ops_per_second| vec![Printed { ops_per_second, found: Some((5, 5)) }; 4];
        let rounds = |ours: f64| -> Vec<[Vec<Printed>; 2]> {
            (0..6)
                .map(|round| 100.0 + f64::from(round))
                .map(|base| [printed(base), printed(base * ours)])
                .collect()
        };
        let result = |ours| Crosscheck {
            steps: compare(&rounds(ours)),
            bytes: (1000, 1005),
            keys: (7, 7),
            options: Vec::new(),
        };
        assert!(faults(&result(1.0)).is_empty());
        assert!(text(&result(1.0)).contains("within 3 %"));
        assert_eq!(faults(&result(0.9)).len(), 4);
        let options = options_diff::between("[DBOptions]\na=1\n", "[DBOptions]\na=2\n");
        let other = Crosscheck { bytes: (1000, 1100), keys: (6, 7), options, ..result(1.0) };
        assert_eq!(faults(&other).len(), 3);
        assert!(text(&other).ends_with("option DBOptions.a: 1 -> 2\n"));
    }

    #[test]
    fn options_that_change_something_are_compared() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let dir = temp.path().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("OPTIONS-000007"), text).unwrap();
            dir
        };
        let theirs = write("theirs", "[DBOptions]\n  listeners={x}\n  max_open_files=5\n");
        let ours = write("ours", "[DBOptions]\n  listeners=\n  max_open_files=-1\n");
        let differences = options(&theirs, &ours).unwrap();
        assert_eq!(
            differences.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(),
            ["DBOptions.max_open_files"]
        );
        assert!(options(&theirs, temp.path()).is_err());
    }
}
