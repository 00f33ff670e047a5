//! The flags of the tool, one item each: name, default, meaning.
//!
//! A flag that is an option of the engine is in [`PASSED`]; one of RocksDB's tool that changes nothing here is in
//! [`ACCEPTED`]; any other is answered with the nearest name.

use super::benchmarks::BENCHMARKS;
use super::passed::{self, PASSED};
use super::rocksdb_flags;

/// One flag: name, default, meaning.
pub(super) struct Flag(pub &'static str, pub &'static str, pub &'static str);

/// The flags that do something.
pub(super) const FLAGS: &[Flag] = &[
    Flag("benchmarks", "fillseq,readrandom", "steps, in order, separated by commas"),
    Flag("num", "1000000", "keys in the database"),
    Flag("reads", "-1", "operations per thread of reading steps; -1: num"),
    Flag("writes", "-1", "operations per thread of writing steps; -1: num"),
    Flag("threads", "1", "threads of a step"),
    Flag("duration", "0", "seconds of a step; 0: operations decide"),
    Flag("key_size", "16", "bytes of a key"),
    Flag("prefix_size", "0", "bytes of the prefix of keys, which the engine is told of; 0: none"),
    Flag("keys_per_prefix", "0", "keys that share a prefix; 0: keys have none of their own"),
    Flag(
        "read_random_exp_range",
        "0",
        "how much more often lookups ask for some keys than for others; 0: not at all",
    ),
    Flag("value_size", "100", "bytes of a value"),
    Flag("compression_ratio", "0.5", "share that is left of a compressed value"),
    Flag("same_value_percentage", "0", "of a hundred values, those that are the same"),
    Flag("value_size_distribution_type", "fixed", "fixed, uniform or normal: how sizes of values scatter"),
    Flag("value_size_min", "100", "smallest value, unless sizes are fixed"),
    Flag("value_size_max", "102400", "largest value, unless sizes are fixed"),
    Flag("merge_operator", "", "merge operator of the database by its name, such as put or uint64add"),
    Flag("merge_keys", "-1", "keys that merging steps choose from; -1: num"),
    Flag("mergereadpercent", "70", "of a hundred operations of readrandommergerandom, those that merge"),
    Flag("readwritepercent", "90", "of a hundred operations of readrandomwriterandom, those that look up"),
    Flag("confidence_interval_only", "false", "intervals in place of means between runs of NAME[X3]"),
    Flag("block_size", "4096", "bytes of a block"),
    Flag("cache_size", "33554432", "bytes of block cache"),
    Flag(
        "cache_type",
        "auto_hyper_clock_cache",
        "lru_cache, or hyper_clock_cache or auto_hyper_clock_cache where the library has it",
    ),
    Flag("bloom_bits", "-1", "bits of bloom filter per key; below 1: none"),
    Flag("db", "", "directory of the database; empty: dbbench in /tmp or $TMPDIR"),
    Flag(
        "use_existing_db",
        "false",
        "keep what is there, and skip loads (fill..); false: it is removed first",
    ),
    Flag("seed", "0", "base of the threads' seeds; 0: the time"),
    Flag("histogram", "false", "print latencies"),
    Flag("stats_interval_seconds", "0", "seconds between lines of progress per thread; 0: none"),
    Flag("stats_per_interval", "0", "1: the engine's statistics with each of those lines"),
    Flag("progress_reports", "true", "false: no progress at all"),
    Flag("disable_wal", "false", "writes skip the WAL"),
    Flag("sync", "false", "writes are synced"),
    Flag(
        "benchmark_write_rate_limit",
        "0",
        "bytes per second of writes, or of a background writer; 0: no limit",
    ),
    Flag(
        "report_file",
        "",
        "operations in each whole interval of the last step, not per second and without a background writer's; empty: report.csv",
    ),
    Flag("report_interval_seconds", "0", "seconds of such an interval; 0: no file"),
    Flag("bgwriter_num", "0", "keys the background writer chooses from; 0: num"),
    Flag("compression_type", "snappy", "none, snappy, lz4 or zstd"),
    Flag("bottommost_compression_type", "disable", "codec of the last level; disable: as the others"),
    Flag("min_level_to_compress", "-1", "levels above it are not compressed; -1: all are"),
    Flag("cache_index_and_filter_blocks", "false", "indexes and filters are in the block cache"),
    Flag("pin_l0_filter_and_index_blocks_in_cache", "false", "those of L0 stay there"),
    Flag("partition_index_and_filters", "false", "indexes and filters are split in parts"),
    Flag("metadata_block_size", "4096", "bytes of such a part"),
    Flag("prepopulate_block_cache", "0", "1: blocks of a flush go into the cache, where the library can"),
    Flag("use_blob_cache", "false", "values in blob files are cached, in the block cache"),
    Flag("level_compaction_dynamic_level_bytes", "false", "sizes of levels follow that of the last"),
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
    Flag("use_direct_reads", "false", "O_DIRECT for reads"),
    Flag("use_direct_io_for_flush_and_compaction", "false", "O_DIRECT for flushes and compactions"),
    Flag("memtablerep", "skip_list", "skip_list, or vector: asks RocksDB for its vector memtable"),
    Flag(
        "batch_size",
        "1",
        "keys of one write or deletion, or of one lookup of multireadrandom; a last one that would be shorter is left out",
    ),
    Flag("multiread_batched", "false", "multireadrandom pins values, where the library can"),
    Flag(
        "arrival_rate",
        "0",
        "operations per second that are due, over all threads; 0: each follows the last",
    ),
    Flag("arrival_spacing", "fixed", "fixed or poisson: how operations that are due are spread"),
    Flag("optimistic_transaction_db", "false", "transactions find conflicts at commit, not by locks"),
    Flag("transaction_sets", "2", "sets of counters that a transaction increments"),
    Flag("mix_get_ratio", "1.0", "weight of gets in mixgraph"),
    Flag("mix_put_ratio", "0.0", "weight of puts in mixgraph"),
    Flag("mix_seek_ratio", "0.0", "weight of scans in mixgraph"),
    Flag("mix_max_scan_len", "10000", "rows of a scan are reduced modulo this"),
    Flag("mix_max_value_size", "1024", "bytes of a value above this are reduced modulo it"),
    Flag("key_dist_a", "0.0", "how hot keys are, a * x^b; 0: uniform"),
    Flag("key_dist_b", "0.0", "as key_dist_a"),
    Flag("keyrange_dist_a", "0.0", "how hot ranges of keys are, a * e^(b x) + c * e^(d x)"),
    Flag("keyrange_dist_b", "0.0", "as keyrange_dist_a"),
    Flag("keyrange_dist_c", "0.0", "as keyrange_dist_a"),
    Flag("keyrange_dist_d", "0.0", "as keyrange_dist_a"),
    Flag("keyrange_num", "1", "ranges of keys"),
    Flag("value_theta", "0.0", "bytes of a value, generalised Pareto distribution"),
    Flag("value_k", "0.2615", "as value_theta"),
    Flag("value_sigma", "25.45", "as value_theta"),
    Flag("iter_theta", "0.0", "rows of a scan, generalised Pareto distribution"),
    Flag("iter_k", "2.517", "as iter_theta"),
    Flag("iter_sigma", "14.236", "as iter_theta"),
    Flag("sine_mix_rate", "false", "mixgraph does a * sin(b * seconds + c) + d operations per second"),
    Flag("sine_a", "1", "as sine_mix_rate"),
    Flag("sine_b", "1", "as sine_mix_rate"),
    Flag("sine_c", "0", "as sine_mix_rate"),
    Flag("sine_d", "1", "as sine_mix_rate"),
    Flag("sine_mix_rate_interval_milliseconds", "10000", "time for which a rate is kept"),
    Flag("seek_nexts", "0", "moves of a range query"),
    Flag("reverse_iterator", "false", "range queries move backward"),
    Flag("build_info", "false", "say what the tool was built from, and run nothing"),
    Flag("library", "", "shared library of the engine; empty: this program's own"),
];

/// Flags of RocksDB's tool that have one meaning here, or none, whatever their value.
pub(super) const ACCEPTED: &[&str] = &[
    "cache_numshardbits",
    "cache_high_pri_pool_ratio",
    "cache_low_pri_pool_ratio",
    "pin_top_level_index_and_filter",
    "statistics",
    "undefok",
    "verify_checksum",
    // Both caches are one here, and parts of a split index always hang on one that stays in the cache.
    "use_shared_block_and_blob_cache",
    // One database serves both kinds of steps here.
    "transaction_db",
    // Without effect in RocksDB 6 already, whose benchmark.sh gives them.
    "hard_rate_limit",
    "soft_rate_limit",
    "rate_limit_delay_max_milliseconds",
];

/// Values of the flags, and of those that are passed on and were given.
pub(super) struct Flags(Vec<String>, Vec<Option<String>>);

impl Flags {
    pub fn parse(arguments: &[String]) -> Result<Flags, String> {
        let mut values: Vec<String> = FLAGS.iter().map(|flag| flag.1.to_string()).collect();
        let mut passed: Vec<Option<String>> = vec![None; PASSED.len()];
        let undefok =
            arguments.iter().filter_map(|argument| argument.trim_start_matches('-').strip_prefix("undefok="));
        let undefok: Vec<&str> = undefok.flat_map(|names| names.split(',')).collect();
        let is_excused = |name: &str| {
            undefok.contains(&name) || name.strip_prefix("no").is_some_and(|name| undefok.contains(&name))
        };
        for argument in arguments {
            let stripped = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(stripped) = stripped else {
                return Err(format!("{argument} is no flag; flags are --name=value"));
            };
            let (name, value) = stripped.split_once('=').unwrap_or((stripped, "true"));
            let (name, value) = negated(name)?.map_or((name, value), |name| (name, "false"));
            if is_switch(name) == Some(true) && switch(value).is_none() {
                return Err(format!("--{name}={value}: use true or false"));
            }
            if let Some(index) = FLAGS.iter().position(|flag| flag.0 == name) {
                values[index] = value.to_string();
            } else if let Some(index) = PASSED.iter().position(|flag| flag.0 == name) {
                passed[index] = Some(value.to_string());
            } else if !ACCEPTED.contains(&name) && !is_excused(name) {
                return Err(match rocksdb_flags::is_known(name) {
                    true => format!("--{name} is a flag of RocksDB's db_bench that this one does not have"),
                    false => format!("unknown flag --{name}; the nearest is --{}", nearest(name)),
                });
            }
        }
        Ok(Flags(values, passed))
    }

    pub fn text(&self, name: &str) -> &str {
        let index = FLAGS.iter().position(|flag| flag.0 == name).expect("the flag is in the table");
        &self.0[index]
    }

    pub fn number(&self, name: &str) -> Result<f64, String> {
        self.text(name).parse().map_err(|_| format!("--{name}={} is no number", self.text(name)))
    }

    pub fn on(&self, name: &str) -> bool {
        is_on(self.text(name))
    }

    /// The one of `words` that the flag has, in any case.
    ///
    /// # Errors
    /// One sentence that names the flag and the words.
    pub fn one_of<'w>(&self, name: &str, words: &[&'w str]) -> Result<&'w str, String> {
        let word = self.text(name);
        let known = words.iter().find(|known| known.eq_ignore_ascii_case(word));
        known.copied().ok_or_else(|| format!("--{name}={word}: use {}", words.join(" or ")))
    }

    /// The engine's options that flags stand for.
    ///
    /// # Errors
    /// One sentence that names the flag.
    pub fn passed(&self) -> Result<passed::Options, String> {
        passed::options(&self.1)
    }
}

/// Whether a switch of this value is on; nothing but these words is a value of one.
pub(super) fn is_on(value: &str) -> bool {
    switch(value) == Some(true)
}

/// The value of a switch, in the words that gflags takes, which RocksDB's tool reads its flags with.
fn switch(value: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match value {
        _ if is(&["1", "t", "true", "y", "yes"]) => Some(true),
        _ if is(&["0", "f", "false", "n", "no"]) => Some(false),
        _ => None,
    }
}

/// Whether the flag `name` is a switch; `None`: there is no such flag, or none whose value matters.
fn is_switch(name: &str) -> Option<bool> {
    let own = || FLAGS.iter().find(|flag| flag.0 == name).map(|flag| matches!(flag.1, "true" | "false"));
    let passed = || PASSED.iter().find(|flag| flag.0 == name).map(|flag| flag.4.is_switch());
    own().or_else(passed)
}

/// The switch that `word` negates: `--nosync` is `--sync=false`, as in gflags.
fn negated(word: &str) -> Result<Option<&str>, String> {
    let Some(name) = word.strip_prefix("no").filter(|_| is_switch(word).is_none()) else { return Ok(None) };
    match is_switch(name) {
        Some(false) => Err(format!("--{word}: --{name} is no switch")),
        Some(true) => Ok(Some(name)),
        None => Ok((ACCEPTED.contains(&name) || rocksdb_flags::is_known(name)).then_some(name)),
    }
}

/// The flag whose name is most like `name`.
fn nearest(name: &str) -> &'static str {
    let names = FLAGS.iter().map(|flag| flag.0).chain(PASSED.iter().map(|flag| flag.0));
    let likeness = |known: &str| strsim::jaro_winkler(known, name);
    names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or("benchmarks")
}

/// The help text.
pub fn help() -> String {
    let mut text = String::from("db_bench: RocksDB's benchmark by its flags\n\n");
    for Flag(name, default, meaning) in FLAGS {
        text.push_str(&format!("  --{name}={default}\n        {meaning}\n"));
    }
    text.push_str("\nflags that are options of the engine, as RocksDB names them:\n");
    for flag in PASSED {
        text.push_str(&format!("  --{}={}\n", flag.0, flag.1));
    }
    text.push_str("\nbenchmarks; NAME[X3-W1] runs three times after one that warms up:\n");
    for (name, meaning) in BENCHMARKS {
        text.push_str(&format!("  {name}\n        {meaning}\n"));
    }
    text
}
