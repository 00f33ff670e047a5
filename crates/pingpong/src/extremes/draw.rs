//! The options that are tried: the names of RocksDB's own OPTIONS file, and for each the values at the ends of its
//! type and where RocksDB's rules begin to apply.

use super::Case;
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;

/// A place in an OPTIONS file: the first word of its section, and the name; in braces `outer.inner`.
pub type OptionKey = (String, String);

/// Every option of a RocksDB, with its value in a database that nobody gave options.
pub struct Known {
    /// By place.
    pub defaults: BTreeMap<OptionKey, String>,
}

/// The kind of values of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Flag,
    /// A number below 0 is one.
    Signed,
    Unsigned,
    Share,
    /// One of these texts.
    Words(&'static [&'static str]),
}

/// Integers that can be negative. A negative number for another one wraps round in RocksDB, which nobody can mean.
const SIGNED: &[&str] = &[
    "max_background_jobs",
    "max_background_compactions",
    "max_background_flushes",
    "max_open_files",
    "max_manifest_space_amp_pct",
    "max_file_opening_threads",
    "read_io_executor_threads",
    "table_cache_numshardbits",
    "max_bgerror_resume_count",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "target_file_size_multiplier",
    "max_write_buffer_number",
    "min_write_buffer_number_to_merge",
    "max_write_buffer_size_to_maintain",
    "num_levels",
    "blob_file_starting_level",
    "window_bits",
    "level",
    "strategy",
    "max_compressed_bytes_per_kb",
    "compression_size_percent",
    "max_read_amp",
    "block_size_deviation",
    "block_restart_interval",
    "index_block_restart_interval",
];

const CODECS: &[&str] = &[
    "kNoCompression",
    "kSnappyCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kZSTD",
    "kDisableCompressionOption",
    "kNope",
];
const TEMPERATURES: &[&str] = &["kUnknown", "kHot", "kWarm", "kCool", "kCold", "kIce", "kNope"];
const PARTITIONERS: &[&str] =
    &["nullptr", "SstPartitionerFixedPrefixFactory", "{id=SstPartitionerFixedPrefixFactory;length=3;}"];
const MEMTABLES: &[&str] = &[
    "SkipListFactory",
    "skip_list",
    "skip_list:5",
    "{id=skip_list;lookahead=3;}",
    "vector",
    "VectorRepFactory",
    "vector:1024",
    "prefix_hash",
    "prefix_hash:1000",
    "HashSkipListRepFactory",
    "hash_linkedlist",
    "hash_linkedlist:1000",
    "cuckoo",
    "nope",
];
const PINNING: &[&str] = &["kFallback", "kNone", "kFlushedAndSimilar", "kAll", "kNope"];

/// Options whose values are words.
const WORDS: &[(&str, &[&str])] = &[
    ("compression", CODECS),
    ("bottommost_compression", CODECS),
    ("blob_compression_type", CODECS),
    ("wal_compression", &["kNoCompression", "kZSTD"]),
    ("last_level_temperature", TEMPERATURES),
    ("default_write_temperature", TEMPERATURES),
    ("default_temperature", TEMPERATURES),
    ("metadata_write_temperature", TEMPERATURES),
    ("wal_write_temperature", TEMPERATURES),
    (
        "wal_recovery_mode",
        &[
            "kTolerateCorruptedTailRecords",
            "kAbsoluteConsistency",
            "kPointInTimeRecovery",
            "kSkipAnyCorruptedRecords",
            "kNope",
        ],
    ),
    (
        "info_log_level",
        &["DEBUG_LEVEL", "INFO_LEVEL", "WARN_LEVEL", "ERROR_LEVEL", "FATAL_LEVEL", "HEADER_LEVEL", "NOPE"],
    ),
    (
        "lowest_used_cache_tier",
        &["kVolatileTier", "kVolatileCompressedTier", "kNonVolatileBlockTier", "kNope"],
    ),
    (
        "compaction_style",
        &[
            "kCompactionStyleLevel",
            "kCompactionStyleUniversal",
            "kCompactionStyleFIFO",
            "kCompactionStyleNone",
            "kNope",
        ],
    ),
    (
        "compaction_pri",
        &[
            "kByCompensatedSize",
            "kOldestLargestSeqFirst",
            "kOldestSmallestSeqFirst",
            "kMinOverlappingRatio",
            "kRoundRobin",
            "kNope",
        ],
    ),
    ("stop_style", &["kCompactionStopStyleSimilarSize", "kCompactionStopStyleTotalSize", "kNope"]),
    ("prepopulate_blob_cache", &["kDisable", "kFlushOnly", "kNope"]),
    ("prepopulate_block_cache", &["kDisable", "kFlushOnly", "kFlushAndCompaction", "kNope"]),
    (
        "index_type",
        &["kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey", "kNope"],
    ),
    ("index_block_search_type", &["kBinary", "kInterpolation", "kAuto", "kNope"]),
    ("data_block_index_type", &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash", "kNope"]),
    ("index_shortening", &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor", "kNope"]),
    ("checksum", &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3", "kNope"]),
    ("unpartitioned_pinning", PINNING),
    ("partition_pinning", PINNING),
    ("top_level_index_pinning", PINNING),
    ("memtable_factory", MEMTABLES),
    ("memtable", MEMTABLES),
    ("table_factory", &["BlockBasedTable"]),
    ("comparator", &["leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator"]),
    ("merge_operator", &["nullptr", "uint64add", "put", "max", "bytesxor", "sortlist"]),
    ("compaction_filter", &["nullptr"]),
    ("compaction_filter_factory", &["nullptr"]),
    ("sst_partitioner_factory", PARTITIONERS),
    ("compression_manager", &["nullptr"]),
    ("file_checksum_gen_factory", &["nullptr", "FileChecksumGenCrc32cFactory"]),
    ("wal_filter", &["nullptr"]),
    ("user_defined_index_factory", &["nullptr"]),
    ("flush_block_policy_factory", &["FlushBlockBySizePolicyFactory"]),
    (
        "prefix_extractor",
        &[
            "nullptr",
            "rocksdb.FixedPrefix.4",
            "rocksdb.CappedPrefix.4",
            "fixed:3",
            "capped:3",
            "rocksdb.Noop",
        ],
    ),
    ("memtable_insert_with_hint_prefix_extractor", &["nullptr", "rocksdb.FixedPrefix.4"]),
    (
        "filter_policy",
        &[
            "nullptr",
            "bloomfilter:10:false",
            "bloomfilter:0.1",
            "bloomfilter:0.5",
            "bloomfilter:1",
            "bloomfilter:100",
            "bloomfilter:1000",
            "bloomfilter:-3",
            "ribbonfilter:10",
            "ribbonfilter:10:-1",
            "ribbonfilter:1000:2147483647",
            "rocksdb.internal.LegacyBloomFilter:10",
        ],
    ),
    ("db_host_id", &["", "here"]),
    ("daily_offpeak_time_utc", &["", "04:30-07:30", "23:00-01:00", "04:30-04:30", "noon"]),
    ("compression_per_level", &["", "kNoCompression:kZSTD", "kLZ4Compression", "kNope"]),
    (
        "max_bytes_for_level_multiplier_additional",
        &["", "1", "1:2:3", "0:0", "-1:2147483647:1:1:1:1:1:1:1", "x"],
    ),
    ("file_temperature_age_thresholds", &[""]),
    // Of no place in an OPTIONS file.
    ("rate_limiter_bytes_per_sec", &["1000000", "0", "many"]),
    ("block_cache", &["1M", "nope"]),
    ("blob_cache", &["1M"]),
    ("statistics", &["nullptr"]),
    // Deprecated: RocksDB reads them and forgets them.
    ("skip_log_error_on_recovery", &["true"]),
    ("purge_redundant_kvs_while_flush", &["true"]),
    ("max_mem_compaction_level", &["2"]),
    ("hard_rate_limit", &["1.5"]),
    ("rate_limit_delay_max_milliseconds", &["100"]),
    ("table.hash_index_allow_collision", &["true"]),
    ("table.skip_table_builder_flush", &["true"]),
];

/// Names that are no lines of the file.
const UNWRITTEN: &[&str] = &[
    "memtable",
    "rate_limiter_bytes_per_sec",
    "table.block_cache",
    "blob_cache",
    "statistics",
    "compression_per_level",
    "skip_log_error_on_recovery",
    "purge_redundant_kvs_while_flush",
    "max_mem_compaction_level",
    "hard_rate_limit",
    "rate_limit_delay_max_milliseconds",
    "table.hash_index_allow_collision",
    "table.skip_table_builder_flush",
];

/// Places on the machine or what no two processes agree about.
const LEFT_ALONE: &[&str] = &["wal_dir", "db_log_dir", "create_if_missing", "error_if_exists"];

const UNSIGNED_VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "100",
    "1000",
    "4096",
    "65537",
    "1000000",
    "64MB",
    "64k",
    "1G",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551613",
    "18446744073709551614",
    "18446744073709551615",
    "18446744073709551616",
    "many",
    "",
];
const SIGNED_VALUES: &[&str] = &[
    "-2147483648",
    "-1000",
    "-5",
    "-2",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "16",
    "36",
    "40",
    "64",
    "100",
    "1k",
    "1000000",
    "2147483647",
    "2147483648",
    "many",
    "",
];
const SHARES: &[&str] = &[
    "-1e300", "-1", "-0.5", "0", "0.01", "0.25", "0.5", "1", "1.5", "2", "10", "1e9", "1e300", "inf", "nan",
    "x",
];

fn kind(name: &str, default: &str) -> Kind {
    let last = name.rsplit('.').next().unwrap_or(name);
    let words = WORDS.iter().find(|(of, _)| *of == last || *of == name);
    match words {
        Some((_, words)) => Kind::Words(words),
        None if matches!(default, "true" | "false") => Kind::Flag,
        None if SIGNED.contains(&last) => Kind::Signed,
        None if default.contains('.') => Kind::Share,
        None => Kind::Unsigned,
    }
}

fn values(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Flag => &["true", "false", "1", "0", "maybe"],
        Kind::Signed => SIGNED_VALUES,
        Kind::Unsigned => UNSIGNED_VALUES,
        Kind::Share => SHARES,
        Kind::Words(words) => words,
    }
}

/// As a text of options: `name=value`, `outer={inner=value;}`, and `table.` before what is of tables.
fn setting((section, name): &OptionKey, value: &str) -> String {
    let prefix =
        if section.starts_with("TableOptions") && !name.starts_with("table.") { "table." } else { "" };
    match name.split_once('.').filter(|(outer, _)| *outer != "table") {
        Some((outer, inner)) => format!("{prefix}{outer}={{{inner}={value};}}"),
        None => format!("{prefix}{name}={value}"),
    }
}

/// The lines of an OPTIONS file by place; settings in braces by their own names.
pub fn lines(text: &str) -> BTreeMap<OptionKey, String> {
    let mut section = String::new();
    let mut places = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix('[') {
            // Of column families the default one: RocksDB makes others for itself.
            let other = title.contains('"') && !title.contains("\"default\"");
            section = if other { "Version" } else { title.split([' ', ']', '/']).next().unwrap_or_default() }
                .to_string();
        } else if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            match value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
                Some(inner) => {
                    for (field, value) in inner.split(';').filter_map(|pair| pair.split_once('=')) {
                        places.insert((section.clone(), format!("{name}.{field}")), value.to_string());
                    }
                }
                None => {
                    places.insert((section.clone(), name.to_string()), value.to_string());
                }
            }
        }
    }
    places.retain(|(section, _), _| section != "Version");
    places
}

/// Options that shape levels, buffers and files: most of what goes wrong goes wrong among them.
const SHAPE: &[&str] = &[
    "write_buffer_size",
    "max_write_buffer_number",
    "min_write_buffer_number_to_merge",
    "num_levels",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "target_file_size_base",
    "target_file_size_multiplier",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "level_compaction_dynamic_level_bytes",
    "max_compaction_bytes",
    "soft_pending_compaction_bytes_limit",
    "hard_pending_compaction_bytes_limit",
    "compaction_style",
    "compaction_pri",
    "ttl",
    "periodic_compaction_seconds",
    "delayed_write_rate",
    "max_background_jobs",
    "max_subcompactions",
    "max_open_files",
    "db_write_buffer_size",
    "max_total_wal_size",
    "enable_blob_files",
    "min_blob_size",
    "blob_file_size",
    "enable_blob_garbage_collection",
    "blob_garbage_collection_age_cutoff",
    "blob_file_starting_level",
    "memtable_prefix_bloom_size_ratio",
    "prefix_extractor",
    "block_size",
    "block_size_deviation",
    "block_restart_interval",
    "index_block_restart_interval",
    "metadata_block_size",
    "partition_filters",
    "index_type",
    "filter_policy",
    "data_block_index_type",
    "data_block_hash_table_util_ratio",
    "cf_allow_ingest_behind",
];

impl Known {
    /// From the OPTIONS file that RocksDB writes where nobody gave options.
    pub fn from_options_file(text: &str) -> Known {
        Known { defaults: lines(text) }
    }

    /// Every name that is tried, with its default.
    fn names(&self) -> Vec<(OptionKey, &str)> {
        let written = self.defaults.iter().map(|(place, default)| (place.clone(), default.as_str()));
        let unwritten = UNWRITTEN.iter().map(|name| ((String::new(), (*name).to_string()), ""));
        written.chain(unwritten).filter(|((_, name), _)| !LEFT_ALONE.contains(&name.as_str())).collect()
    }

    /// Each option by itself, at each of its values.
    pub fn singles(&self) -> Vec<Case> {
        let single = |(place, default): (OptionKey, &str)| {
            let all = values(kind(&place.1, default));
            all.iter().map(move |value| Case { options: vec![setting(&place, value)], ..Case::default() })
        };
        let opened = self.names().into_iter().flat_map(single);
        // A value of each that is legal, set while the database is open.
        let changed = self.names().into_iter().filter_map(|(place, default)| {
            let default = match kind(&place.1, default) {
                Kind::Words(words) => words.first().copied().unwrap_or_default().to_string(),
                _ => default.to_string(),
            };
            let name = if place.0 == "DBOptions" {
                Some((place.1.clone(), default))
            } else {
                change(&place, &default)
            };
            Some(Case { changes: vec![name?], ..Case::default() })
        });
        opened.chain(changed).collect()
    }

    /// Several at once, some of them changed while the database is open.
    pub fn random(&self, random: &mut Random) -> Case {
        let names = self.names();
        let shape: Vec<&(OptionKey, &str)> =
            names.iter().filter(|((_, name), _)| SHAPE.contains(&name.as_str())).collect();
        let draw = |random: &mut Random| {
            let (place, default) = if random.one_in(3) {
                &names[random.index(names.len())]
            } else {
                shape[random.index(shape.len())]
            };
            let all = values(kind(&place.1, default));
            // Values that do not parse are for single options: one refusal hides all the others.
            let legal: Vec<&str> = all
                .iter()
                .copied()
                .filter(|value| !["many", "", "maybe", "x", "kNope"].contains(value))
                .collect();
            let value = if legal.is_empty() { "" } else { random.pick(&legal) };
            (place.clone(), value)
        };
        let mut options = vec!["write_buffer_size=65536".to_string()];
        for _ in 0..1 + random.below(6) {
            let (place, value) = draw(random);
            options.push(setting(&place, value));
        }
        let mut changes = Vec::new();
        for _ in 0..random.below(3) {
            let (place, value) = draw(random);
            changes.extend(change(&place, value));
        }
        Case { options, changes, script: true }
    }
}

/// An option of a column family or of its tables, as `set_options` takes it.
fn change(place: &OptionKey, value: &str) -> Option<(String, String)> {
    match (place.0.as_str(), place.1.split_once('.')) {
        ("CFOptions", None) => Some((place.1.clone(), value.to_string())),
        ("CFOptions", Some((outer, inner))) => Some((outer.to_string(), format!("{{{inner}={value};}}"))),
        ("TableOptions", None) => {
            Some(("block_based_table_factory".to_string(), format!("{{{}={value};}}", place.1)))
        }
        _ => None,
    }
}

/// Cases that once failed.
pub fn once_failed() -> Vec<Case> {
    let lists: &[&[&str]] = &[
        // Writers stopped before a compaction was due.
        &["level0_file_num_compaction_trigger=40"],
        &["level0_file_num_compaction_trigger=100"],
        &["level0_file_num_compaction_trigger=1000000"],
        &["level0_stop_writes_trigger=-1"],
        &["level0_stop_writes_trigger=0"],
        &["level0_stop_writes_trigger=1"],
        &["level0_stop_writes_trigger=2"],
        &["level0_stop_writes_trigger=3"],
        &["compaction_style=kCompactionStyleUniversal", "level0_file_num_compaction_trigger=40"],
        &["compaction_style=kCompactionStyleUniversal", "level0_stop_writes_trigger=3"],
        // Panics.
        &["num_levels=1"],
        &["num_levels=1", "level0_file_num_compaction_trigger=1"],
        &["delayed_write_rate=1", "level0_slowdown_writes_trigger=1", "level0_file_num_compaction_trigger=1"],
        &[
            "delayed_write_rate=16383",
            "level0_slowdown_writes_trigger=1",
            "level0_file_num_compaction_trigger=1",
        ],
        &["compaction_pri=kRoundRobin", "target_file_size_base=8192", "max_bytes_for_level_base=16384"],
        // No level below L0 to compact into.
        &["num_levels=2", "cf_allow_ingest_behind=true"],
        &["num_levels=2", "cf_allow_ingest_behind=true", "level0_file_num_compaction_trigger=1"],
    ];
    let case = |list: &&[&str]| {
        let buffers = ["write_buffer_size=65536", "level0_file_num_compaction_trigger=2"];
        // A small trigger only where the case has none.
        let named = list.iter().any(|option| option.starts_with("level0_file_num"));
        let before = &buffers[..if named { 1 } else { 2 }];
        let options = before.iter().chain(list.iter()).map(|option| (*option).to_string()).collect();
        Case { options, changes: Vec::new(), script: true }
    };
    // RocksDB looks at options of tables when it opens a database, and not in set_options.
    let tables = [
        "block_size=5000000000",
        "super_block_alignment_size=3",
        "super_block_alignment_size=8589934592",
        "super_block_alignment_space_overhead_ratio=2",
        "data_block_index_type=kDataBlockBinaryAndHash;data_block_hash_table_util_ratio=0",
        "use_udi_as_primary_index=true",
    ];
    let changed = tables.iter().map(|table| Case {
        options: vec!["write_buffer_size=65536".to_string()],
        changes: vec![("block_based_table_factory".to_string(), format!("{{{table};}}"))],
        script: false,
    });
    lists.iter().map(case).chain(changed).collect()
}

/// RocksDB starts as many threads as it is told to, at once. The lowest number of jobs wraps round to the highest.
const THREADS: &[&str] = &[
    "max_background_jobs",
    "max_background_compactions",
    "max_background_flushes",
    "max_file_opening_threads",
    "read_io_executor_threads",
    "max_subcompactions",
    "parallel_threads",
];

/// Whether RocksDB would take the machine with it.
pub fn harms_the_machine(case: &Case) -> bool {
    let changes = case.changes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let options = case.options.iter().filter_map(|option| option.rsplit_once('='));
    changes.chain(options).any(|(name, value)| {
        let size = value.strip_prefix('-').unwrap_or(value);
        let digits: String = size.chars().take_while(char::is_ascii_digit).collect();
        let many = digits.parse::<u64>().is_ok_and(|n| n > 100)
            || value.starts_with("1k")
            || value.starts_with("64k");
        THREADS.iter().any(|threads| name.ends_with(threads)) && many
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_case_starts_more_threads_than_a_machine_has() {
        let harms = |option: &str| {
            let options = vec![option.to_string()];
            harms_the_machine(&Case { options, changes: Vec::new(), script: false })
        };
        for many in
            ["max_background_jobs=-2147483648", "max_background_jobs=2147483647", "max_subcompactions=64k"]
        {
            assert!(harms(many), "{many}");
        }
        for few in ["max_background_jobs=-1", "max_background_jobs=100", "write_buffer_size=2147483647"] {
            assert!(!harms(few), "{few}");
        }
        let change = ("max_background_jobs".to_string(), "1000".to_string());
        assert!(harms_the_machine(&Case { options: Vec::new(), changes: vec![change], script: false }));
    }
}
