//! `db_bench`: RocksDB's benchmark tool by flags, steps and output lines.
//!
//! Scripts that parse the result lines of RocksDB's own tool work on these. Flags are one item each in
//! [`FLAGS`]; flags of RocksDB's tool that change nothing here are accepted if they are in [`ACCEPTED`].

use crate::coarse_histogram::percentile;
use crate::database::Durability;
use crate::ffi::RocksApi;
use crate::{Database, OpenOptions, Progress, Step, StepKind, StepResult, run_step};
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One flag: name, default, meaning.
struct Flag(&'static str, &'static str, &'static str);

/// The flags that do something.
const FLAGS: &[Flag] = &[
    Flag("benchmarks", "fillseq,readrandom", "steps, in order, separated by commas"),
    Flag("num", "1000000", "keys in the database"),
    Flag("reads", "-1", "operations per thread of reading steps; -1: num"),
    Flag("writes", "-1", "operations per thread of writing steps; -1: num"),
    Flag("threads", "1", "threads of a step"),
    Flag("duration", "0", "seconds of a step; 0: operations decide"),
    Flag("key_size", "16", "bytes of a key"),
    Flag("value_size", "100", "bytes of a value"),
    Flag("block_size", "4096", "bytes of a block"),
    Flag("cache_size", "33554432", "bytes of block cache"),
    Flag("bloom_bits", "-1", "bits of bloom filter per key; below 1: none"),
    Flag("db", "", "directory of the database"),
    Flag("use_existing_db", "false", "keep what is there"),
    Flag("seed", "0", "base of the threads' seeds; 0: the time"),
    Flag("histogram", "false", "print latencies"),
    Flag("disable_wal", "false", "writes skip the WAL"),
    Flag("sync", "false", "writes are synced"),
    Flag("benchmark_write_rate_limit", "0", "bytes per second of a background writer; 0: 2 MiB/s"),
    Flag("bgwriter_num", "0", "keys the background writer chooses from; 0: num"),
    Flag("compression_type", "snappy", "none, snappy, lz4 or zstd"),
    Flag("write_buffer_size", "67108864", "bytes of a memtable"),
    Flag("max_write_buffer_number", "2", "memtables at most"),
    Flag("target_file_size_base", "67108864", "bytes of a table"),
    Flag("max_bytes_for_level_base", "268435456", "bytes of the base level"),
    Flag("max_bytes_for_level_multiplier", "10", "growth per level"),
    Flag("num_levels", "7", "levels"),
    Flag("level0_file_num_compaction_trigger", "4", "L0 tables that start a compaction"),
    Flag("level0_slowdown_writes_trigger", "20", "L0 tables that slow writes"),
    Flag("level0_stop_writes_trigger", "36", "L0 tables that stop writes"),
    Flag("max_background_jobs", "2", "background threads"),
    Flag("use_direct_reads", "false", "O_DIRECT; with use_direct_io_for_flush_and_compaction"),
    Flag("memtablerep", "skip_list", "vector asks RocksDB for its vector memtable"),
    Flag("seek_nexts", "0", "moves of a range query"),
    Flag("reverse_iterator", "false", "range queries move backward"),
    Flag("library", "", "shared library of the engine; empty: this program's own"),
];

/// Flags of RocksDB's tool that have one meaning here, or none, whatever their value.
const ACCEPTED: &[&str] = &[
    "cache_numshardbits",
    "compression_max_dict_bytes",
    "compression_ratio",
    "bytes_per_sync",
    "cache_index_and_filter_blocks",
    "cache_high_pri_pool_ratio",
    "cache_low_pri_pool_ratio",
    "cache_type",
    "level_compaction_dynamic_level_bytes",
    "metadata_block_size",
    "min_level_to_compress",
    "open_files",
    "partition_index_and_filters",
    "pin_l0_filter_and_index_blocks_in_cache",
    "pin_top_level_index_and_filter",
    "report_interval_seconds",
    "statistics",
    "stats_interval_seconds",
    "stats_per_interval",
    "subcompactions",
    "undefok",
    "use_direct_io_for_flush_and_compaction",
    "verify_checksum",
    "wal_dir",
    "allow_concurrent_memtable_write",
    "delete_obsolete_files_period_micros",
    "merge_operator",
    "compaction_style",
    "report_file",
    "compression_parallel_threads",
];

/// Values of the flags.
struct Flags(Vec<String>);

impl Flags {
    fn parse(arguments: &[String]) -> Result<Flags, String> {
        let mut values: Vec<String> = FLAGS.iter().map(|flag| flag.1.to_string()).collect();
        let undefok =
            arguments.iter().filter_map(|argument| argument.trim_start_matches('-').strip_prefix("undefok="));
        let undefok: Vec<&str> = undefok.flat_map(|names| names.split(',')).collect();
        for argument in arguments {
            let stripped = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(stripped) = stripped else {
                return Err(format!("{argument} is no flag; flags are --name=value"));
            };
            let (name, value) = stripped.split_once('=').unwrap_or((stripped, "true"));
            if let Some(index) = FLAGS.iter().position(|flag| flag.0 == name) {
                values[index] = value.to_string();
            } else if !ACCEPTED.contains(&name) && !undefok.contains(&name) {
                return Err(format!("unknown flag --{name}; the nearest is --{}", nearest(name)));
            }
        }
        Ok(Flags(values))
    }

    fn text(&self, name: &str) -> &str {
        let index = FLAGS.iter().position(|flag| flag.0 == name).expect("the flag is in the table");
        &self.0[index]
    }

    fn number(&self, name: &str) -> Result<f64, String> {
        self.text(name).parse().map_err(|_| format!("--{name}={} is no number", self.text(name)))
    }

    fn on(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1" | "t" | "yes")
    }
}

/// The flag whose name shares most with `name`.
fn nearest(name: &str) -> &'static str {
    let shared = |known: &str| {
        let letters = |text: &str| text.split('_').map(str::to_string).collect::<Vec<_>>();
        let words = letters(name);
        letters(known).iter().filter(|word| words.contains(word)).count() * 10
            + known.chars().zip(name.chars()).take_while(|(a, b)| a == b).count()
    };
    FLAGS.iter().max_by_key(|flag| shared(flag.0)).map_or("benchmarks", |flag| flag.0)
}

/// The help text.
pub fn help() -> String {
    let mut text = String::from("db_bench: RocksDB's benchmark by its flags\n\n");
    for Flag(name, default, meaning) in FLAGS {
        text.push_str(&format!("  --{name}={default}\n        {meaning}\n"));
    }
    text + "\nsteps: fillseq fillrandom overwrite overwriteandwait readrandom readmissing readseq seekrandom\n  \
            readwhilewriting seekrandomwhilewriting updaterandom deleterandom compact compact0 compact1 flush\n  \
            waitforcompaction levelstats memstats stats\n"
}

/// Runs the tool with `arguments`, on `in_process` unless a library is named.
///
/// # Errors
/// One sentence.
pub fn run(arguments: &[String], in_process: RocksApi) -> Result<(), String> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print!("{}", help());
        return Ok(());
    }
    let flags = Flags::parse(arguments)?;
    let api = match flags.text("library") {
        "" => in_process,
        path => RocksApi::load(&PathBuf::from(path))?,
    };
    let dir = match flags.text("db") {
        "" => std::env::temp_dir().join("dbbench"),
        path => PathBuf::from(path),
    };
    let options = open_options(&flags)?;
    print_banner(&flags)?;
    let seed = match flags.number("seed")? {
        0.0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64),
        seed => seed as u64,
    };
    if !flags.on("use_existing_db") {
        Database::destroy(api, &dir)?;
    }
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let db = Database::open(api, &dir, &options)?;
    let mut threads = 0;
    for name in flags.text("benchmarks").split(',').filter(|name| !name.is_empty()) {
        if let Some(property) = property_of(name) {
            println!("\n{}", db.property(property).unwrap_or_else(|| format!("{property}: not available\n")));
            continue;
        }
        let step = step_of(name, &flags, seed)?;
        let mut said = Instant::now();
        let mut observe = |progress: Progress| {
            if said.elapsed().as_secs() >= 2 {
                said = Instant::now();
                eprint!("... finished {} ops in {:.0} seconds\r", progress.ops, progress.seconds);
            }
        };
        let result = run_step(&db, &step, &mut threads, &mut observe)?;
        print_result(name, &step, &result, flags.on("histogram"));
    }
    Ok(())
}

fn property_of(name: &str) -> Option<&'static str> {
    match name {
        "stats" => Some("rocksdb.stats"),
        "levelstats" => Some("rocksdb.levelstats"),
        "memstats" => Some("rocksdb.cur-size-all-mem-tables"),
        _ => None,
    }
}

fn step_of(name: &str, flags: &Flags, seed: u64) -> Result<Step, String> {
    let reverse = flags.on("reverse_iterator");
    let (kind, while_writing) = match name {
        "fillseq" => (StepKind::FillSeq, false),
        "fillrandom" | "overwrite" => (StepKind::Overwrite, false),
        "overwriteandwait" => (StepKind::OverwriteAndWait, false),
        "readrandom" => (StepKind::ReadRandom, false),
        "readmissing" => (StepKind::ReadMissing, false),
        "readseq" => (StepKind::ReadSeq, false),
        "seekrandom" => (StepKind::Range { reverse }, false),
        "readwhilewriting" => (StepKind::ReadRandom, true),
        "seekrandomwhilewriting" => (StepKind::Range { reverse }, true),
        "updaterandom" => (StepKind::Update, false),
        "deleterandom" => (StepKind::Delete, false),
        "compact" | "compact0" | "compact1" => (StepKind::Compact, false),
        "flush" => (StepKind::Flush, false),
        "waitforcompaction" => (StepKind::WaitForCompaction, false),
        other => return Err(format!("unknown benchmark {other}; --help lists them")),
    };
    let num = flags.number("num")?.max(1.0) as u64;
    let (reads, writes, duration) =
        (flags.number("reads")?, flags.number("writes")?, flags.number("duration")?);
    let count = |asked: f64| if asked < 0.0 { num } else { asked as u64 };
    let ops = match kind {
        StepKind::FillSeq => Some(count(writes)),
        StepKind::ReadSeq | StepKind::Compact | StepKind::Flush | StepKind::WaitForCompaction => Some(1),
        _ if duration > 0.0 => None,
        StepKind::Overwrite | StepKind::OverwriteAndWait | StepKind::Delete => Some(count(writes)),
        _ => Some(count(reads)),
    };
    let durability = match (flags.on("disable_wal"), flags.on("sync")) {
        (true, true) => return Err("--sync needs the WAL; drop --disable_wal".to_string()),
        (true, false) => Durability::NoWal,
        (false, true) => Durability::Sync,
        (false, false) => Durability::Wal,
    };
    let rate = flags.number("benchmark_write_rate_limit")? as u64;
    Ok(Step {
        name: name.to_string(),
        kind,
        while_writing,
        threads: flags.number("threads")?.max(1.0) as u32,
        ops,
        seconds: duration,
        durability,
        seek_nexts: flags.number("seek_nexts")? as u32,
        num,
        key_size: flags.number("key_size")?.max(1.0) as usize,
        value_size: flags.number("value_size")? as usize,
        seed,
        writer_rate: if rate == 0 { 2 << 20 } else { rate },
        writer_num: match flags.number("bgwriter_num")? {
            keys if keys > 0.0 => keys as u64,
            _ => num,
        },
    })
}

fn open_options(flags: &Flags) -> Result<OpenOptions, String> {
    let compression = match flags.text("compression_type") {
        "none" => 0,
        "snappy" => 1,
        "lz4" => 4,
        "zstd" => 7,
        other => return Err(format!("--compression_type={other}: use none, snappy, lz4 or zstd")),
    };
    Ok(OpenOptions {
        cache_size: flags.number("cache_size")?.max(0.0) as usize,
        block_size: flags.number("block_size")? as usize,
        bloom_bits: flags.number("bloom_bits")?.max(0.0),
        write_buffer_size: flags.number("write_buffer_size")? as usize,
        max_write_buffer_number: flags.number("max_write_buffer_number")? as i32,
        target_file_size_base: flags.number("target_file_size_base")? as u64,
        max_bytes_for_level_base: flags.number("max_bytes_for_level_base")? as u64,
        max_bytes_for_level_multiplier: flags.number("max_bytes_for_level_multiplier")?,
        num_levels: flags.number("num_levels")? as i32,
        level0_triggers: [
            flags.number("level0_file_num_compaction_trigger")? as i32,
            flags.number("level0_slowdown_writes_trigger")? as i32,
            flags.number("level0_stop_writes_trigger")? as i32,
        ],
        max_background_jobs: flags.number("max_background_jobs")? as i32,
        compression,
        direct_io: flags.on("use_direct_reads"),
        vector_memtable: flags.text("memtablerep") == "vector",
    })
}

fn print_banner(flags: &Flags) -> Result<(), String> {
    let (key, value, num) = (flags.number("key_size")?, flags.number("value_size")?, flags.number("num")?);
    println!("Keys:       {key} bytes each");
    println!("Values:     {value} bytes each ({} bytes after compression)", (value * 0.5) as u64);
    println!("Entries:    {num}");
    println!("RawSize:    {:.1} MB (estimated)", (key + value) * num / 1_048_576.0);
    println!("FileSize:   {:.1} MB (estimated)", (key + value * 0.5) * num / 1_048_576.0);
    println!("Write rate: {} bytes/second", flags.text("benchmark_write_rate_limit"));
    println!("Compression: {}", flags.text("compression_type"));
    println!("------------------------------------------------");
    Ok(())
}

fn print_result(name: &str, step: &Step, result: &StepResult, histogram: bool) {
    let found = match step.kind {
        StepKind::ReadRandom | StepKind::ReadMissing | StepKind::Range { .. } => {
            format!(" ({} of {} found)", result.found, result.ops)
        }
        _ => String::new(),
    };
    println!(
        "{name:<12} : {:>11.3} micros/op {} ops/sec {:.3} seconds {} operations; {:>6.1} MB/s{found}",
        result.micros_per_op,
        (result.ops as f64 / result.seconds.max(1e-9)) as u64,
        result.seconds,
        result.ops,
        result.bytes as f64 / 1_048_576.0 / result.seconds.max(1e-9)
    );
    if !histogram {
        return;
    }
    let what = match step.kind {
        StepKind::FillSeq | StepKind::Overwrite | StepKind::OverwriteAndWait | StepKind::Delete => "write",
        StepKind::Range { .. } => "seek",
        _ => "read",
    };
    let samples = &result.samples;
    println!("Microseconds per {what}:");
    println!(
        "Count: {} Average: {:.4}  StdDev: {:.2}",
        samples.len(),
        samples.mean() / 1000.0,
        samples.stdev() / 1000.0
    );
    println!(
        "Min: {}  Median: {:.4}  Max: {}",
        samples.min() / 1000,
        percentile(samples, 50.0),
        samples.max() / 1000
    );
    let at = |p: f64| percentile(samples, p);
    println!(
        "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
        at(50.0),
        at(75.0),
        at(99.0),
        at(99.9),
        at(99.99)
    );
    println!("------------------------------------------------------");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn flags_are_rocksdbs_and_typos_are_named() {
        let flags = Flags::parse(&arguments("--num=5 --cache_numshardbits=6 --sync=1")).unwrap();
        assert_eq!(flags.number("num").unwrap(), 5.0);
        assert!(flags.on("sync"));
        let error = Flags::parse(&arguments("--write_bufer_size=5")).err().unwrap();
        assert!(error.contains("--write_buffer_size"), "{error}");
        assert!(Flags::parse(&arguments("--new_flag=1 --undefok=new_flag,other")).is_ok());
    }

    #[test]
    fn operation_counts_follow_num_reads_writes_and_duration() {
        let step =
            |name: &str, text: &str| step_of(name, &Flags::parse(&arguments(text)).unwrap(), 1).unwrap();
        assert_eq!(step("fillseq", "--num=7 --duration=9").ops, Some(7), "loads ignore the duration");
        assert_eq!(step("readrandom", "--num=7").ops, Some(7));
        assert_eq!(step("readrandom", "--num=7 --reads=3").ops, Some(3));
        assert_eq!(step("overwrite", "--num=7 --duration=9").ops, None);
        assert_eq!(step("fillseq", "--disable_wal=1").durability, Durability::NoWal);
    }
}
