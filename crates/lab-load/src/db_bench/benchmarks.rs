//! The benchmarks of RocksDB's own tool: those that this one does, and those that it refuses by name.
//!
//! ```text
//! --benchmarks=fillseq,readrandom[X3-W1]      three runs of readrandom after one that only warms up
//! ```
//! `docs/db_bench.md` lists all of them: a test makes it.
//!
//! Source: the names that RocksDB 11.8.1's `tools/db_bench_tool.cc` compares with; `[X..]` and `[W..]` are its too.

/// Names of benchmarks, with what they do.
pub(super) const BENCHMARKS: &[(&str, &str)] = &[
    ("fillseq", "writes the keys in order"),
    ("fillbatch", "the same, 1000 keys in a write, as many whole ones as num or writes have"),
    ("fillrandom", "writes random keys"),
    ("filluniquerandom", "writes every key once, in random order"),
    ("fillsync", "writes random keys of a thousandth of num, each synced"),
    ("overwrite", "writes random keys of a database that is there"),
    (
        "overwriteandwait",
        "the same, then flushes and waits for compaction outside the measured time (not RocksDB's)",
    ),
    ("readrandom", "looks up random keys"),
    ("readrandomsmall", "the same, a thousandth of reads"),
    ("readmissing", "looks up keys that are not there"),
    ("readseq", "reads rows in order, at most reads"),
    ("readtocache", "reads num rows in order with one thread"),
    ("readreverse", "reads rows in the reverse order, at most reads"),
    ("multireadrandom", "looks up batch_size random keys in a call"),
    ("newiterator", "makes iterators"),
    ("seekrandom", "seeks to random keys and moves on by seek_nexts"),
    ("readwhilewriting", "readrandom beside a writer"),
    ("readwhilescanning", "readrandom beside a thread that scans, whose rows are not counted"),
    ("multireadwhilewriting", "multireadrandom beside a writer"),
    ("newiteratorwhilewriting", "newiterator beside a writer"),
    ("seekrandomwhilewriting", "seekrandom beside a writer"),
    ("readwhilemerging", "readrandom beside a writer that merges"),
    ("seekrandomwhilemerging", "seekrandom beside a writer that merges"),
    ("readrandomwriterandom", "of a hundred operations readwritepercent lookups, then writes"),
    ("readrandommergerandom", "of a hundred operations mergereadpercent merges, the others lookups"),
    ("updaterandom", "looks up a random key, then writes it"),
    ("appendrandom", "looks up a random key, then writes it with a value after what it had"),
    ("mergerandom", "merges into random keys"),
    ("deleteseq", "deletes num keys in order, batch_size in a write"),
    ("deleterandom", "deletes num random keys, batch_size in a write"),
    ("mixgraph", "gets, puts and scans of hot and cold keys"),
    ("randomtransaction", "transactions that increment counters"),
    ("verifychecksum", "reads all tables and verifies their checksums"),
    ("compact", "compacts everything"),
    ("compactall", "compacts everything"),
    ("compact0", "compacts L0 into the next level that has tables"),
    ("compact1", "compacts the first level below L0 into the next that has tables"),
    ("flush", "flushes memtables"),
    ("waitforcompaction", "waits until no compaction runs or is due"),
    ("stats", "prints rocksdb.stats"),
    ("levelstats", "prints rocksdb.levelstats"),
    ("memstats", "prints sizes of memtables"),
    ("sstables", "prints rocksdb.sstables"),
    ("block_cache_entry_stats", "prints rocksdb.block-cache-entry-stats"),
];

/// Names of benchmarks that are refused.
#[rustfmt::skip]
pub(super) const MISSING: &[&str] = &[
    "acquireload", "approximatememtablestats", "approximatesizerandom", "backup", "cache_report_problems",
    "compress", "compressreject", "crc32c", "fill100K", "fillanddeleteuniquerandom", "fillembeddedblob",
    "fillembeddedentity", "fillseekseq", "fillseqdeterministic", "filluniquerandomdeterministic",
    "getmergeoperands", "ingestexternalfile", "multireadentity", "multireadrandomcoroutine", "multiscan",
    "multiscanrandom", "openandcompact", "randomreplacekeys", "randomwithverify", "readrandomcoroutine",
    "readrandomentity", "readrandomfast", "readrandomoperands", "readtorowcache", "replay",
    "resetstats", "restore", "stats_history", "timeseries", "uncompress", "verify", "verifyfilechecksums",
    "xorupdaterandom", "xxh3", "xxhash", "xxhash64",
];

/// One word of `--benchmarks`: a name, and how often it is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub name: &'a str,
    /// Runs that are printed.
    pub runs: u32,
    /// Runs before them, to warm up.
    pub warm_ups: u32,
}

impl<'a> Asked<'a> {
    /// Reads `name`, `name[X3]`, `name[W1]` or `name[X3-W1]`.
    ///
    /// # Errors
    /// One sentence that names the word.
    pub fn parse(word: &'a str) -> Result<Asked<'a>, String> {
        let Some(inner) = word.strip_suffix(']') else {
            return Ok(Asked { name: word, runs: 1, warm_ups: 0 });
        };
        let unknown = || format!("unknown benchmark arguments {word}: [X3] repeats it, [W1] warms up before");
        let (name, arguments) = inner.split_once('[').ok_or_else(unknown)?;
        let mut asked = Asked { name, runs: 1, warm_ups: 0 };
        for argument in arguments.split('-').filter(|argument| !argument.is_empty()) {
            let (kind, count) = argument.split_at_checked(1).ok_or_else(unknown)?;
            let count: u32 = count.parse().map_err(|_| unknown())?;
            match kind {
                "X" => asked.runs = count,
                "W" => asked.warm_ups = count,
                _ => return Err(unknown()),
            }
        }
        Ok(asked)
    }
}

/// The answer to a name that is not in [`BENCHMARKS`].
pub(super) fn refusal(name: &str) -> String {
    match MISSING.contains(&name) {
        true => format!("{name} is a benchmark of RocksDB's db_bench that this one does not have"),
        false => format!("unknown benchmark {name}; --help lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_say_how_often() {
        let asked = |word: &'static str| Asked::parse(word).unwrap();
        assert_eq!(asked("fillseq"), Asked { name: "fillseq", runs: 1, warm_ups: 0 });
        assert_eq!(asked("readrandom[X3]"), Asked { name: "readrandom", runs: 3, warm_ups: 0 });
        assert_eq!(asked("readrandom[W2-X3]"), Asked { name: "readrandom", runs: 3, warm_ups: 2 });
        assert_eq!(asked("readrandom[]").runs, 1);
        for word in
            ["readrandom]", "readrandom[X]", "readrandom[X-1]", "readrandom[Y3]", "a[é]", "a[X9999999999]"]
        {
            assert!(Asked::parse(word).unwrap_err().contains("unknown benchmark arguments"), "{word}");
        }
    }

    #[test]
    fn a_benchmark_that_is_missing_is_told_from_a_misspelt_one() {
        assert!(refusal("xxh3").contains("is a benchmark of RocksDB's"));
        assert!(refusal("readrandm").contains("unknown benchmark readrandm"));
        assert!(BENCHMARKS.iter().all(|(name, _)| !MISSING.contains(name)));
    }
}
