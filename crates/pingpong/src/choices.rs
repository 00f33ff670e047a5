//! The options that are drawn, in RocksDB's spelling.
//!
//! One [`Choice`] is a question with several answers, each a list of options that go together; options that
//! RocksDB refuses to combine are answers to the same question. `table.` marks an option of the block-based table.
//!
//! Whether an engine takes an answer, and whether the others read what it then writes, is tried out by
//! `trials.rs`, so a new option of the engine needs a line here and nothing else.

use std::collections::BTreeSet;

/// The owner of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of the database, for one phase.
    Database,
    /// Of a column family, for one phase.
    Family,
    /// Of a column family, the same for every engine of a case.
    Case,
}

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Its owner.
    pub scope: Scope,
    /// It changes bytes on disk, so every engine of the case must read them.
    pub format: bool,
    /// Answered once in so many times.
    pub one_in: u64,
    /// Each: options that are set together.
    pub answers: &'static [&'static [&'static str]],
}

const fn database(one_in: u64, answers: &'static [&'static [&'static str]]) -> Choice {
    Choice { scope: Scope::Database, format: false, one_in, answers }
}

const fn family(one_in: u64, answers: &'static [&'static [&'static str]]) -> Choice {
    Choice { scope: Scope::Family, format: false, one_in, answers }
}

const fn format(scope: Scope, one_in: u64, answers: &'static [&'static [&'static str]]) -> Choice {
    Choice { scope, format: true, one_in, answers }
}

/// Set wherever the engine takes it: checks, and what keeps opening fast.
pub const ALWAYS: &[&str] = &[
    "paranoid_checks=true",
    "force_consistency_checks=true",
    "max_file_opening_threads=1",
    "stats_dump_period_sec=0",
    "stats_persist_period_sec=0",
    "keep_log_file_num=2",
    "check_flush_compaction_key_order=true",
];

/// The database options of [`ALWAYS`] that an engine takes.
pub fn always(accepted: &BTreeSet<String>) -> Vec<String> {
    ALWAYS.iter().filter(|option| accepted.contains(**option)).map(ToString::to_string).collect()
}

/// All questions. An answer with an option that an earlier answer has set is not taken.
pub const CHOICES: &[Choice] = &[
    database(2, &[&["max_background_jobs=1"], &["max_background_jobs=4"]]),
    database(3, &[&["max_open_files=20"], &["max_open_files=-1"]]),
    database(
        3,
        &[
            &["wal_recovery_mode=kTolerateCorruptedTailRecords"],
            &["wal_recovery_mode=kAbsoluteConsistency"],
            &["wal_recovery_mode=kSkipAnyCorruptedRecords"],
        ],
    ),
    database(
        5,
        &[
            &["use_direct_reads=true"],
            &["use_direct_reads=true", "use_direct_io_for_flush_and_compaction=true"],
            &["allow_mmap_reads=true"],
        ],
    ),
    database(
        4,
        &[
            &["atomic_flush=true"],
            &["enable_pipelined_write=true"],
            &["allow_concurrent_memtable_write=false"],
            &["unordered_write=true"],
            &["two_write_queues=true"],
        ],
    ),
    // Whether Outcrop's WAL has space ahead of its end, and RocksDB's files too.
    database(2, &[&["allow_fallocate=false"]]),
    database(5, &[&["manual_wal_flush=true"]]),
    database(5, &[&["avoid_flush_during_shutdown=true"]]),
    database(4, &[&["avoid_flush_during_recovery=true"]]),
    database(5, &[&["max_manifest_file_size=2000"]]),
    database(6, &[&["max_total_wal_size=30000"]]),
    database(6, &[&["db_write_buffer_size=100000"]]),
    database(8, &[&["use_fsync=true"]]),
    database(8, &[&["bytes_per_sync=4096", "wal_bytes_per_sync=4096"]]),
    database(8, &[&["writable_file_max_buffer_size=4096"]]),
    database(8, &[&["compaction_readahead_size=4096"]]),
    database(5, &[&["max_subcompactions=3"]]),
    database(8, &[&["write_dbid_to_manifest=true"], &["write_dbid_to_manifest=false"]]),
    database(8, &[&["delayed_write_rate=1000000"]]),
    database(6, &[&["optimize_manifest_for_recovery=true"], &["reuse_manifest_on_open=true"]]),
    format(
        Scope::Database,
        4,
        &[
            &["recycle_log_file_num=2"],
            &["wal_compression=kZSTD"],
            &["track_and_verify_wals_in_manifest=true"],
            &["track_and_verify_wals=true"],
        ],
    ),
    Choice {
        scope: Scope::Case,
        format: false,
        one_in: 4,
        answers: &[&["num_levels=3"], &["num_levels=12"]],
    },
    Choice {
        scope: Scope::Case,
        format: true,
        one_in: 12,
        answers: &[&[
            "compaction_style=kCompactionStyleFIFO",
            "compaction_options_fifo={max_table_files_size=1073741824;allow_compaction=true;}",
            "ttl=0",
        ]],
    },
    format(
        Scope::Family,
        4,
        &[
            &["compaction_style=kCompactionStyleUniversal"],
            &[
                "compaction_style=kCompactionStyleUniversal",
                "compaction_options_universal={min_merge_width=2;size_ratio=10;allow_trivial_move=true;}",
            ],
        ],
    ),
    family(1, &[&["write_buffer_size=65536"], &["write_buffer_size=131072"]]),
    family(
        4,
        &[
            &["max_write_buffer_number=4", "min_write_buffer_number_to_merge=2"],
            &["max_write_buffer_number=3"],
        ],
    ),
    family(2, &[&["target_file_size_base=8192"], &["target_file_size_base=40000"]]),
    family(2, &[&["max_bytes_for_level_base=30000"], &["max_bytes_for_level_base=100000"]]),
    family(4, &[&["max_bytes_for_level_multiplier=2"], &["max_bytes_for_level_multiplier=4"]]),
    family(
        2,
        &[&["level_compaction_dynamic_level_bytes=true"], &["level_compaction_dynamic_level_bytes=false"]],
    ),
    family(
        2,
        &[
            &["level0_file_num_compaction_trigger=1"],
            &["level0_file_num_compaction_trigger=2"],
            &["level0_file_num_compaction_trigger=3"],
        ],
    ),
    family(6, &[&["disable_auto_compactions=true"]]),
    family(
        4,
        &[
            &["compaction_pri=kByCompensatedSize"],
            &["compaction_pri=kOldestLargestSeqFirst"],
            &["compaction_pri=kOldestSmallestSeqFirst"],
            &["compaction_pri=kMinOverlappingRatio"],
            &["compaction_pri=kRoundRobin"],
        ],
    ),
    family(5, &[&["max_compaction_bytes=50000"]]),
    family(5, &[&["max_sequential_skip_in_iterations=0"], &["max_sequential_skip_in_iterations=2"]]),
    family(
        5,
        &[&["max_successive_merges=2"], &["max_successive_merges=1", "strict_max_successive_merges=true"]],
    ),
    family(5, &[&["memtable_prefix_bloom_size_ratio=0.1"], &["memtable_whole_key_filtering=true"]]),
    family(6, &[&["max_write_buffer_size_to_maintain=1000000"]]),
    family(6, &[&["paranoid_file_checks=true"]]),
    family(6, &[&["optimize_filters_for_hits=true"]]),
    family(8, &[&["ttl=0"], &["periodic_compaction_seconds=0"]]),
    format(
        Scope::Family,
        2,
        &[
            &["compression=kNoCompression"],
            &["compression=kNoCompression", "table.block_align=true", "table.block_size=512"],
            &["compression=kSnappyCompression"],
            &["compression=kLZ4Compression"],
            &["compression=kLZ4HCCompression"],
            &["compression=kZSTD"],
            &["compression=kZlibCompression"],
            &["compression=kBZip2Compression"],
            &["compression=kZSTD", "compression_opts={max_dict_bytes=1024;}"],
            &["compression=kZSTD", "compression_opts={max_dict_bytes=1024;zstd_max_train_bytes=20000;}"],
            &["compression=kLZ4Compression", "compression_opts={max_dict_bytes=1024;}"],
            &["compression=kZlibCompression", "compression_opts={max_dict_bytes=1024;}"],
            &["compression=kSnappyCompression", "bottommost_compression=kZSTD"],
            &["compression_per_level=kNoCompression:kLZ4Compression:kZSTD"],
        ],
    ),
    format(
        Scope::Family,
        5,
        &[
            &["enable_blob_files=true", "min_blob_size=50"],
            &[
                "enable_blob_files=true",
                "min_blob_size=10",
                "blob_file_size=4096",
                "blob_compression_type=kLZ4Compression",
                "enable_blob_garbage_collection=true",
                "blob_garbage_collection_age_cutoff=0.5",
                "blob_garbage_collection_force_threshold=0.2",
            ],
            &[
                "enable_blob_files=true",
                "min_blob_size=30",
                "enable_blob_garbage_collection=true",
                "blob_garbage_collection_age_cutoff=1.0",
                "blob_garbage_collection_force_threshold=0.05",
                "blob_compaction_readahead_size=3000",
                "blob_file_starting_level=1",
                "prepopulate_blob_cache=kFlushOnly",
            ],
        ],
    ),
    format(Scope::Family, 8, &[&["table.separate_key_value_in_data_block=true", "table.format_version=7"]]),
    format(
        Scope::Family,
        1,
        &[
            &["table.format_version=2"],
            &["table.format_version=3"],
            &["table.format_version=4"],
            &["table.format_version=5"],
            &["table.format_version=6"],
            &["table.format_version=7"],
        ],
    ),
    format(
        Scope::Family,
        3,
        &[
            &["table.checksum=kCRC32c"],
            &["table.checksum=kxxHash"],
            &["table.checksum=kxxHash64"],
            &["table.checksum=kXXH3"],
            &["table.checksum=kNoChecksum"],
        ],
    ),
    format(
        Scope::Family,
        2,
        &[
            &["table.filter_policy=bloomfilter:10:false"],
            &["table.filter_policy=bloomfilter:2.5:false"],
            &["table.filter_policy=ribbonfilter:10"],
            &["table.filter_policy=rocksdb.internal.LegacyBloomFilter:10:false"],
            &["table.filter_policy=rocksdb.internal.LegacyBloomFilter:7"],
            &["table.filter_policy=ribbonfilter:8:2"],
            &["table.filter_policy=bloomfilter:10:true"],
        ],
    ),
    format(
        Scope::Family,
        3,
        &[
            &["table.index_type=kTwoLevelIndexSearch", "table.metadata_block_size=128"],
            &[
                "table.index_type=kTwoLevelIndexSearch",
                "table.partition_filters=true",
                "table.metadata_block_size=128",
            ],
            &["table.index_type=kBinarySearchWithFirstKey"],
            &["table.index_type=kHashSearch"],
        ],
    ),
    format(
        Scope::Family,
        5,
        &[&[
            "table.data_block_index_type=kDataBlockBinaryAndHash",
            "table.data_block_hash_table_util_ratio=0.75",
        ]],
    ),
    format(
        Scope::Family,
        5,
        &[
            &["table.index_shortening=kNoShortening"],
            &["table.index_shortening=kShortenSeparatorsAndSuccessor"],
        ],
    ),
    format(Scope::Family, 6, &[&["table.use_delta_encoding=false"]]),
    format(Scope::Family, 6, &[&["table.enable_index_compression=false"]]),
    family(2, &[&["table.block_size=128"], &["table.block_size=512"], &["table.block_size=2000"]]),
    family(3, &[&["table.block_restart_interval=1"], &["table.block_restart_interval=3"]]),
    family(4, &[&["table.index_block_restart_interval=3"], &["table.index_block_restart_interval=16"]]),
    family(6, &[&["table.whole_key_filtering=false"]]),
    family(
        3,
        &[
            &["table.cache_index_and_filter_blocks=true"],
            &[
                "table.cache_index_and_filter_blocks=true",
                "table.pin_l0_filter_and_index_blocks_in_cache=true",
            ],
            &["table.no_block_cache=true"],
        ],
    ),
    family(6, &[&["table.block_size_deviation=50"]]),
    family(8, &[&["table.verify_compression=true"]]),
    family(8, &[&["table.optimize_filters_for_memory=true"]]),
    family(8, &[&["table.prepopulate_block_cache=kFlushOnly"]]),
];

/// Options that are changed while the database is open.
pub const MUTABLE: &[(&str, &[&str])] = &[
    ("write_buffer_size", &["65536", "200000"]),
    ("disable_auto_compactions", &["true", "false"]),
    ("level0_file_num_compaction_trigger", &["1", "3"]),
    ("target_file_size_base", &["10000", "60000"]),
    ("max_bytes_for_level_base", &["40000", "150000"]),
];

/// Options that RocksDB takes together and then fails with: beginnings of their texts, and what happens.
const CONFLICTS: &[(&str, &str)] = &[
    // 7.10.2 dies at the first flush.
    ("recycle_log_file_num", "wal_recovery_mode"),
    // Its own tables are corrupt to it (8.11.4: "bad entry in block").
    ("table.index_type=kHashSearch", "table.index_block_restart_interval"),
    // RocksDB refuses to open: "currently inconsistent".
    ("unordered_write", "max_successive_merges"),
    // 6.29.5 refuses to open: "FIFO compaction only supported with max_open_files = -1".
    ("compaction_style=kCompactionStyleFIFO", "max_open_files=20"),
];

/// Options that are drawn for Outcrop alone: RocksDB takes them and then stops answering. Every version waits for ever in a
/// write that is to switch memtables.
pub const OURS_ALONE: &[&str] = &["unordered_write=true"];

/// No DBWithTTL for it: with merges it does not read back the OPTIONS file that it has written, of a database of its own either
/// ("Missing configurable object: user_operator").
pub const REFUSES_TTL: &str = "7.10.2";

/// No entities for it where there is a merge operator: its compaction writes an operand over a deleted range with an entity in it as an entity, which no
/// version reads then. It does so by itself.
pub const MISTAKES_OPERANDS: &str = "7.10.2";

/// The same in a TransactionDB. 8.11.4, killed, does not find again what it had prepared with pipelined writes.
pub const OURS_ALONE_IN_TRANSACTIONS: &[&str] = &["enable_pipelined_write=true"];

/// Whether two options must not be set together.
pub fn conflict(a: &str, b: &str) -> bool {
    CONFLICTS
        .iter()
        .any(|(x, y)| (a.starts_with(x) && b.starts_with(y)) || (a.starts_with(y) && b.starts_with(x)))
}

/// The option's name.
pub fn name(option: &str) -> &str {
    option.split('=').next().unwrap_or(option)
}

/// How an answer is called in reports.
pub fn title(answer: &[&str]) -> String {
    answer.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_own_title_and_all_are_name_value() {
        let mut titles = BTreeSet::new();
        for answer in CHOICES.iter().flat_map(|choice| choice.answers) {
            assert!(!answer.is_empty() && answer.iter().all(|option| option.contains('=')), "{answer:?}");
            assert!(titles.insert(title(answer)) || title(answer) == "ttl=0", "{answer:?}");
        }
    }
}
