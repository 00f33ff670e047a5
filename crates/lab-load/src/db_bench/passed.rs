//! Flags that are options of the engine under another name: handed to it as text, in RocksDB's words.
//!
//! ```text
//! --subcompactions=4 --compaction_style=1 --universal_size_ratio=10
//!     max_subcompactions=4;compaction_style=kCompactionStyleUniversal;compaction_options_universal={size_ratio=10}
//! ```
//! A flag that is not given says nothing. One that is given at RocksDB's default is said if the library knows the option, so that
//! one without it, LevelDB's say, works all the same: a library of another version may have another default.
//! Next: `flags.rs`.

/// The type of a flag's value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Text that the engine takes as it is.
    Text,
    /// The same, but the default leaves the option alone.
    Unset,
    /// A switch.
    Switch,
    /// One of these, by number.
    Named(&'static [&'static str]),
    /// A codec, by the tool's name for it.
    Codec,
    /// A switch that chooses between two words.
    Either(&'static str, &'static str),
}

impl Kind {
    /// Whether the flag is on or off.
    pub fn is_switch(self) -> bool {
        matches!(self, Kind::Switch | Kind::Either(..))
    }
}

/// One flag: name, default, the option's group if it is within braces, the option, and what values it has.
pub(super) struct Passed(
    pub &'static str,
    pub &'static str,
    pub Option<&'static str>,
    pub &'static str,
    pub Kind,
);

const TABLE: Option<&str> = Some("block_based_table_factory");
const UNIVERSAL: Option<&str> = Some("compaction_options_universal");
const CODEC: Option<&str> = Some("compression_opts");
const STYLES: &[&str] = &["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO"];

const PRIORITIES: &[&str] = &[
    "kByCompensatedSize",
    "kOldestLargestSeqFirst",
    "kOldestSmallestSeqFirst",
    "kMinOverlappingRatio",
    "kRoundRobin",
];
const STOP_STYLES: &[&str] = &["kCompactionStopStyleSimilarSize", "kCompactionStopStyleTotalSize"];
const CHECKSUMS: &[&str] = &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];

const SHORTENINGS: &[&str] = &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"];
const PREPOPULATE: &[&str] = &["kDisable", "kFlushOnly"];

/// The flags.
pub(super) const PASSED: &[Passed] = &[
    Passed("compaction_style", "0", None, "compaction_style", Kind::Named(STYLES)),
    Passed("universal_size_ratio", "0", UNIVERSAL, "size_ratio", Kind::Unset),
    Passed("universal_min_merge_width", "0", UNIVERSAL, "min_merge_width", Kind::Unset),
    Passed("universal_max_merge_width", "0", UNIVERSAL, "max_merge_width", Kind::Unset),
    Passed(
        "universal_max_size_amplification_percent",
        "0",
        UNIVERSAL,
        "max_size_amplification_percent",
        Kind::Unset,
    ),
    Passed("universal_compression_size_percent", "-1", UNIVERSAL, "compression_size_percent", Kind::Unset),
    Passed("universal_allow_trivial_move", "0", UNIVERSAL, "allow_trivial_move", Kind::Switch),
    Passed("subcompactions", "1", None, "max_subcompactions", Kind::Text),
    Passed("max_background_compactions", "-1", None, "max_background_compactions", Kind::Text),
    Passed("max_background_flushes", "-1", None, "max_background_flushes", Kind::Text),
    Passed("disable_auto_compactions", "0", None, "disable_auto_compactions", Kind::Switch),
    Passed("optimize_filters_for_hits", "0", None, "optimize_filters_for_hits", Kind::Switch),
    Passed("allow_concurrent_memtable_write", "1", None, "allow_concurrent_memtable_write", Kind::Switch),
    Passed("bytes_per_sync", "1048576", None, "bytes_per_sync", Kind::Text),
    Passed("wal_bytes_per_sync", "0", None, "wal_bytes_per_sync", Kind::Text),
    Passed("open_files", "-1", None, "max_open_files", Kind::Text),
    Passed("wal_dir", "", None, "wal_dir", Kind::Unset),
    Passed(
        "delete_obsolete_files_period_micros",
        "0",
        None,
        "delete_obsolete_files_period_micros",
        Kind::Unset,
    ),
    Passed("compression_max_dict_bytes", "0", CODEC, "max_dict_bytes", Kind::Text),
    Passed("compression_parallel_threads", "1", CODEC, "parallel_threads", Kind::Text),
    Passed("block_align", "0", TABLE, "block_align", Kind::Switch),
    Passed("enable_blob_files", "0", None, "enable_blob_files", Kind::Switch),
    Passed("min_blob_size", "0", None, "min_blob_size", Kind::Text),
    Passed("blob_file_size", "268435456", None, "blob_file_size", Kind::Text),
    Passed("enable_blob_garbage_collection", "0", None, "enable_blob_garbage_collection", Kind::Switch),
    Passed(
        "blob_garbage_collection_age_cutoff",
        "0.25",
        None,
        "blob_garbage_collection_age_cutoff",
        Kind::Text,
    ),
    Passed(
        "blob_garbage_collection_force_threshold",
        "1.0",
        None,
        "blob_garbage_collection_force_threshold",
        Kind::Text,
    ),
    Passed("blob_file_starting_level", "0", None, "blob_file_starting_level", Kind::Text),
    Passed("blob_compression_type", "none", None, "blob_compression_type", Kind::Codec),
    Passed("wal_compression", "none", None, "wal_compression", Kind::Codec),
    Passed(
        "soft_pending_compaction_bytes_limit",
        "68719476736",
        None,
        "soft_pending_compaction_bytes_limit",
        Kind::Text,
    ),
    Passed(
        "hard_pending_compaction_bytes_limit",
        "274877906944",
        None,
        "hard_pending_compaction_bytes_limit",
        Kind::Text,
    ),
    Passed("max_total_wal_size", "0", None, "max_total_wal_size", Kind::Text),
    Passed("db_write_buffer_size", "0", None, "db_write_buffer_size", Kind::Text),
    Passed("min_write_buffer_number_to_merge", "1", None, "min_write_buffer_number_to_merge", Kind::Text),
    Passed("compaction_pri", "3", None, "compaction_pri", Kind::Named(PRIORITIES)),
    Passed("compaction_readahead_size", "2097152", None, "compaction_readahead_size", Kind::Text),
    Passed("delayed_write_rate", "8388608", None, "delayed_write_rate", Kind::Text),
    Passed("max_compaction_bytes", "0", None, "max_compaction_bytes", Kind::Text),
    Passed("max_successive_merges", "0", None, "max_successive_merges", Kind::Text),
    Passed("memtable_bloom_size_ratio", "0", None, "memtable_prefix_bloom_size_ratio", Kind::Text),
    Passed("memtable_whole_key_filtering", "0", None, "memtable_whole_key_filtering", Kind::Switch),
    Passed("paranoid_checks", "1", None, "paranoid_checks", Kind::Switch),
    Passed("force_consistency_checks", "1", None, "force_consistency_checks", Kind::Switch),
    Passed("periodic_compaction_seconds", "0", None, "periodic_compaction_seconds", Kind::Text),
    Passed("target_file_size_multiplier", "1", None, "target_file_size_multiplier", Kind::Text),
    Passed("writable_file_max_buffer_size", "1048576", None, "writable_file_max_buffer_size", Kind::Text),
    Passed("manual_wal_flush", "0", None, "manual_wal_flush", Kind::Switch),
    Passed("avoid_flush_during_recovery", "0", None, "avoid_flush_during_recovery", Kind::Switch),
    Passed("avoid_flush_during_shutdown", "0", None, "avoid_flush_during_shutdown", Kind::Switch),
    Passed("track_and_verify_wals", "0", None, "track_and_verify_wals", Kind::Switch),
    Passed("track_and_verify_wals_in_manifest", "0", None, "track_and_verify_wals_in_manifest", Kind::Switch),
    Passed("report_bg_io_stats", "0", None, "report_bg_io_stats", Kind::Switch),
    Passed("inplace_update_support", "0", None, "inplace_update_support", Kind::Switch),
    Passed("universal_stop_style", "1", UNIVERSAL, "stop_style", Kind::Named(STOP_STYLES)),
    Passed("universal_incremental", "0", UNIVERSAL, "incremental", Kind::Switch),
    Passed("compression_level", "32767", CODEC, "level", Kind::Text),
    Passed("compression_zstd_max_train_bytes", "0", CODEC, "zstd_max_train_bytes", Kind::Text),
    Passed("block_restart_interval", "16", TABLE, "block_restart_interval", Kind::Text),
    Passed("index_block_restart_interval", "1", TABLE, "index_block_restart_interval", Kind::Text),
    Passed("whole_key_filtering", "1", TABLE, "whole_key_filtering", Kind::Switch),
    Passed("optimize_filters_for_memory", "1", TABLE, "optimize_filters_for_memory", Kind::Switch),
    Passed("checksum_type", "4", TABLE, "checksum", Kind::Named(CHECKSUMS)),
    Passed("mmap_read", "0", None, "allow_mmap_reads", Kind::Switch),
    Passed("use_fsync", "0", None, "use_fsync", Kind::Switch),
    Passed("max_manifest_file_size", "1073741824", None, "max_manifest_file_size", Kind::Text),
    Passed("stats_dump_period_sec", "600", None, "stats_dump_period_sec", Kind::Text),
    Passed("wal_size_limit_MB", "0", None, "WAL_size_limit_MB", Kind::Text),
    Passed("wal_ttl_seconds", "0", None, "WAL_ttl_seconds", Kind::Text),
    Passed("max_write_buffer_size_to_maintain", "0", None, "max_write_buffer_size_to_maintain", Kind::Text),
    Passed("strict_max_successive_merges", "0", None, "strict_max_successive_merges", Kind::Switch),
    Passed("ttl_seconds", "", None, "ttl", Kind::Unset),
    Passed("universal_max_read_amp", "-1", UNIVERSAL, "max_read_amp", Kind::Text),
    Passed("compression_max_dict_buffer_bytes", "0", CODEC, "max_dict_buffer_bytes", Kind::Text),
    Passed("compression_use_zstd_dict_trainer", "1", CODEC, "use_zstd_dict_trainer", Kind::Switch),
    Passed("blob_compaction_readahead_size", "0", None, "blob_compaction_readahead_size", Kind::Text),
    Passed("prepopulate_blob_cache", "0", None, "prepopulate_blob_cache", Kind::Named(PREPOPULATE)),
    Passed("format_version", "", TABLE, "format_version", Kind::Unset),
    Passed("enable_index_compression", "1", TABLE, "enable_index_compression", Kind::Switch),
    Passed("verify_compression", "0", TABLE, "verify_compression", Kind::Switch),
    Passed("read_amp_bytes_per_bit", "0", TABLE, "read_amp_bytes_per_bit", Kind::Text),
    Passed(
        "use_data_block_hash_index",
        "0",
        TABLE,
        "data_block_index_type",
        Kind::Either("kDataBlockBinarySearch", "kDataBlockBinaryAndHash"),
    ),
    Passed("data_block_hash_table_util_ratio", "0.75", TABLE, "data_block_hash_table_util_ratio", Kind::Text),
    // RocksDB's tool sets 2 where nothing is said; here the library keeps its own default.
    Passed("index_shortening_mode", "1", TABLE, "index_shortening", Kind::Named(SHORTENINGS)),
    Passed("separate_key_value_in_data_block", "0", TABLE, "separate_key_value_in_data_block", Kind::Switch),
];

/// Flags at whose default RocksDB's tool sets the option, where the library itself has another value.
const ALWAYS: &[&str] = &["delayed_write_rate"];

/// Options of the engine that flags stand for, as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Those that the engine must know.
    pub text: String,
    /// Those that it may not know, each by itself.
    pub wanted: Vec<String>,
}

/// The options that `values`, one for each of [`PASSED`] that was given, stand for.
///
/// # Errors
/// One sentence that names the flag.
pub(super) fn options(values: &[Option<String>]) -> Result<Options, String> {
    let mut groups: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    let mut wanted = Vec::new();
    for (flag, value) in PASSED.iter().zip(values) {
        let Passed(name, default, group, option, kind) = *flag;
        let value = match value {
            Some(value) => said(flag, value)?,
            None if ALWAYS.contains(&name) => default.to_string(),
            None => continue,
        };
        let text = format!("{option}={value}");
        if value != said(flag, default).expect("defaults are values") {
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, options)) => options.push(text),
                None => groups.push((group, vec![text])),
            }
        } else if !matches!(kind, Kind::Unset) {
            wanted.push(within(group, &text));
        }
    }
    let words = groups.into_iter().map(|(group, options)| within(group, &options.join(";")));
    Ok(Options { text: words.collect::<Vec<_>>().join(";"), wanted })
}

/// Options as text, within the braces of their group.
fn within(group: Option<&str>, options: &str) -> String {
    group.map_or_else(|| options.to_string(), |group| format!("{group}={{{options}}}"))
}

/// A flag's value in the words of options.
fn said(Passed(flag, _, _, _, kind): &Passed, value: &str) -> Result<String, String> {
    Ok(match kind {
        Kind::Text | Kind::Unset => value.to_string(),
        Kind::Switch => super::flags::is_on(value).to_string(),
        Kind::Named(names) => {
            let number = value.parse::<usize>().ok().and_then(|number| names.get(number));
            let known = || format!("--{flag}={value}: use 0 to {}", names.len() - 1);
            (*number.ok_or_else(known)?).to_string()
        }
        Kind::Either(off, on) => if super::flags::is_on(value) { on } else { off }.to_string(),
        Kind::Codec => codec_option(value)
            .ok_or_else(|| format!("--{flag}={value}: use none, snappy, zlib, lz4, lz4hc or zstd"))?
            .to_string(),
    })
}

/// The codec `name` of the tool in the words of options.
fn codec_option(name: &str) -> Option<&'static str> {
    Some(match name {
        "none" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "zlib" => "kZlibCompression",
        "lz4" => "kLZ4Compression",
        "lz4hc" => "kLZ4HCCompression",
        "zstd" => "kZSTD",
        _ => return None,
    })
}
