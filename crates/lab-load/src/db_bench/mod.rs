//! `db_bench`: RocksDB's benchmark tool by flags, steps and output lines.
//!
//! Scripts that parse the result lines of RocksDB's own tool work on these.
//! Next: `flags.rs` and `passed.rs` for its flags, `step.rs` for what they make of a step, `print.rs` for its lines,
//! `steps/mod.rs` for what steps do.

mod benchmarks;
mod flags;
mod passed;
mod print;
mod progress;
mod repeated;
mod rocksdb_flags;
mod stats_text;
mod step;

pub use flags::help;

use crate::ffi::RocksApi;
use crate::open::{IndexBlocks, table_option};
use crate::process::{is_loaded, start_again_with};
use crate::transactions::{Refusal, TransactionDatabase};
use crate::{Database, OpenOptions, Progress, Step, StepResult, run_step, run_transactions};
use benchmarks::Asked;
use flags::Flags;
use print::{print_environment, print_header, print_properties, print_result, write_report};
use progress::{Form, Reporter};
use repeated::Repeated;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use step::step_of;

/// Runs the tool with `arguments`, on `in_process` unless a library is named; then the program starts again, with the library
/// loaded from the start.
///
/// # Errors
/// One sentence.
pub fn run(arguments: &[String], in_process: RocksApi) -> Result<(), String> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print!("{}", help());
        return Ok(());
    }
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--version" | "-version")) {
        println!("db_bench version {}", crate::VERSION);
        return Ok(());
    }
    let flags = Flags::parse(arguments)?;
    if flags.on("build_info") {
        print!("{}", print::build_info());
        return Ok(());
    }
    let api = match flags.text("library") {
        "" => in_process,
        path => {
            start_again_with(Path::new(path));
            if !is_loaded(Path::new(path))? {
                eprintln!("{path} is loaded later than the program: it may be slower than if it were linked");
            }
            RocksApi::load(&PathBuf::from(path))?
        }
    };
    let dir = match flags.text("db") {
        "" => std::env::temp_dir().join("dbbench"),
        path => PathBuf::from(path),
    };
    let mut options = open_options(&flags)?;
    let passed = flags.passed()?;
    options.wanted.extend(passed.wanted);
    print_environment(flags.text("library"));
    print_header(&flags)?;
    let seed = match flags.number("seed")? {
        0.0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64),
        seed => seed as u64,
    };
    let interval = flags.number("report_interval_seconds")?.max(0.0) as u64;
    let progress = Form::chosen(
        flags.number("stats_interval_seconds")?.max(0.0) as u64,
        flags.number("stats_per_interval")? > 0.0,
        flags.on("progress_reports"),
    );
    let mut tool = Tool { api, dir, options, text: passed.text, threads: 0, db: None, progress };
    if !flags.on("use_existing_db") {
        Database::destroy(api, &tool.dir)?;
    }
    std::fs::create_dir_all(&tool.dir).map_err(|error| format!("{}: {error}", tool.dir.display()))?;
    for (index, word) in flags.text("benchmarks").split(',').filter(|name| !name.is_empty()).enumerate() {
        let Asked { name, runs, warm_ups } = Asked::parse(word)?;
        let properties = properties_of(name);
        if !properties.is_empty() {
            print_properties(tool.open()?, properties);
            continue;
        }
        // A load begins with nothing, as in RocksDB's tool.
        if name.starts_with("fill") {
            if flags.on("use_existing_db") {
                println!("{name:<12} : skipped (--use_existing_db is true)");
                continue;
            }
            if index > 0 {
                tool.db = None;
                Database::destroy(api, &tool.dir)?;
            }
        }
        let step = step_of(name, &flags, seed)?;
        let mut repeated = Repeated::new(name, runs, warm_ups, flags.on("confidence_interval_only"));
        for _ in 0..warm_ups {
            print_result(name, &step, &tool.run(&step)?, flags.on("histogram"));
        }
        let mut last = None;
        for _ in 0..runs {
            let result = tool.run(&step)?;
            print_result(name, &step, &result, flags.on("histogram"));
            repeated.add(&result);
            last = Some(result);
        }
        repeated.end();
        let Some(result) = last else { continue };
        if interval > 0 && !step.kind.is_upkeep() {
            write_report(flags.text("report_file"), &result.per_second, interval)?;
        }
    }
    Ok(())
}

/// Runs steps, and keeps the database open between them.
struct Tool {
    api: RocksApi,
    dir: PathBuf,
    options: OpenOptions,
    /// Further options as text.
    text: String,
    threads: u64,
    db: Option<Database>,
    progress: Form,
}

impl Tool {
    fn open(&mut self) -> Result<&Database, String> {
        if self.db.is_none() {
            self.db = Some(Database::open_with(self.api, &self.dir, &self.options, &self.text)?);
        }
        Ok(self.db.as_ref().expect("opened above"))
    }

    fn run(&mut self, step: &Step) -> Result<StepResult, String> {
        let mut threads = self.threads;
        let mut reporter = Reporter::new(self.progress);
        let result = if step.kind.needs_transactions() {
            // One directory, one handle.
            self.db = None;
            let db = transactions(self.api, &self.dir, (&self.options, &self.text), step)?;
            let mut observe = |progress: Progress| reporter.observe(&progress, None);
            run_transactions(&db, step, &mut threads, &mut observe)
        } else {
            let db = self.open()?;
            if step.merges() {
                db.can_merge()
                    .map_err(|why| format!("{} is not offered by this engine: {why}", step.name))?;
            }
            let mut observe = |progress: Progress| reporter.observe(&progress, Some(db));
            run_step(db, step, &mut threads, &mut observe)
        };
        reporter.end();
        self.threads = threads;
        result
    }
}

fn transactions(
    api: RocksApi,
    dir: &Path,
    (options, text): (&OpenOptions, &str),
    step: &Step,
) -> Result<TransactionDatabase, String> {
    let opened = TransactionDatabase::open(api, dir, options, text, step.concurrency, step.durability);
    opened.map_err(|refusal| match refusal {
        Refusal::NotOffered(why) => format!("randomtransaction is not offered by this engine: {why}"),
        Refusal::Failed(why) => why,
    })
}

/// The properties that the steps of this name print.
fn properties_of(name: &str) -> &'static [&'static str] {
    match name {
        "stats" => &["rocksdb.stats"],
        "sstables" => &["rocksdb.sstables"],
        "block_cache_entry_stats" => &["rocksdb.block-cache-entry-stats"],
        "levelstats" => &["rocksdb.levelstats"],
        "memstats" => &[
            "rocksdb.num-immutable-mem-table",
            "rocksdb.cur-size-active-mem-table",
            "rocksdb.cur-size-all-mem-tables",
            "rocksdb.size-all-mem-tables",
            "rocksdb.num-entries-active-mem-table",
            "rocksdb.num-entries-imm-mem-tables",
        ],
        _ => &[],
    }
}

/// RocksDB's number of the codec that `flag` names.
fn codec(flags: &Flags, flag: &str) -> Result<i32, String> {
    match flags.text(flag) {
        "none" => Ok(0),
        "snappy" => Ok(1),
        "lz4" => Ok(4),
        "zstd" => Ok(7),
        other => Err(format!("--{flag}={other}: use none, snappy, lz4 or zstd")),
    }
}

/// The block caches that a flag may ask for; but for the first they are the library's best, which old ones do not have.
const CACHES: [&str; 3] = ["lru_cache", "hyper_clock_cache", "auto_hyper_clock_cache"];

fn open_options(flags: &Flags) -> Result<OpenOptions, String> {
    let partitions = flags.on("partition_index_and_filters");
    let min_level = flags.number("min_level_to_compress")?;
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
        compression: codec(flags, "compression_type")?,
        bottommost_compression: match flags.text("bottommost_compression_type") {
            "disable" => None,
            _ => Some(codec(flags, "bottommost_compression_type")?),
        },
        min_level_to_compress: (min_level >= 0.0).then_some(min_level as i32),
        dynamic_levels: flags.on("level_compaction_dynamic_level_bytes"),
        index: IndexBlocks {
            cached: flags.on("cache_index_and_filter_blocks"),
            pin_l0: flags.on("pin_l0_filter_and_index_blocks_in_cache"),
            partition_bytes: partitions.then_some(flags.number("metadata_block_size")? as u64),
        },
        prefix_size: flags.number("prefix_size")?.max(0.0) as usize,
        blob_cache: flags.on("use_blob_cache"),
        wanted: match flags.text("prepopulate_block_cache") {
            "0" => Vec::new(),
            "1" => vec![table_option("prepopulate_block_cache", "kFlushOnly")],
            other => return Err(format!("--prepopulate_block_cache={other}: use 0 or 1")),
        },
        direct_io: flags.on("use_direct_reads"),
        direct_writes: Some(flags.on("use_direct_io_for_flush_and_compaction")),
        vector_memtable: flags.one_of("memtablerep", &["skip_list", "vector"])? == "vector",
        merge_operator: flags.text("merge_operator").to_string(),
        lru_cache: flags.one_of("cache_type", &CACHES)? == CACHES[0],
        defaults: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<OpenOptions, String> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_string).collect();
        open_options(&Flags::parse(&arguments).unwrap())
    }

    #[test]
    fn direct_io_is_asked_for_by_two_flags() {
        let direct =
            |text: &str| options(text).map(|options| (options.direct_io, options.writes_directly())).unwrap();
        assert_eq!(direct(""), (false, false));
        assert_eq!(direct("--use_direct_reads"), (true, false));
        assert_eq!(direct("--use_direct_io_for_flush_and_compaction=1"), (false, true));
    }

    #[test]
    fn memtables_and_caches_that_are_not_there_are_refused() {
        assert!(options("--memtablerep=Vector").unwrap().vector_memtable);
        assert!(!options("--memtablerep=skip_list").unwrap().vector_memtable);
        let error = options("--memtablerep=prefix_hash").unwrap_err();
        assert_eq!(error, "--memtablerep=prefix_hash: use skip_list or vector");
        let is_lru = |word: &str| options(&format!("--cache_type={word}")).map(|options| options.lru_cache);
        assert_eq!((is_lru("lru_cache"), is_lru("hyper_clock_cache")), (Ok(true), Ok(false)));
        assert!(is_lru("clock_cache").is_err() && is_lru("fixed_hyper_clock_cache").is_err());
    }
}
