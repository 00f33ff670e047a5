//! One row per option: its name, how it reads and how it prints. Parsing, printing, `set_options` and the
//! OPTIONS file all go through these rows.

use crate::file::each_pair;
use crate::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompactionPri, CompactionStopStyle, CompactionStyle,
    CompressionOptions, CompressionType, DataBlockIndexType, DbOptions, FifoCompactionOptions,
    FileChecksumGenFactory, FilterPolicy, IndexShortening, IndexType, Prepopulate,
    UniversalCompactionOptions, WalRecoveryMode,
};
use outcrop_base::checksum::ChecksumType;
use outcrop_base::{Error, PrefixExtractor, Result};
use std::path::PathBuf;

/// One option of `T`.
pub struct Row<T: 'static> {
    /// RocksDB's name.
    pub name: &'static str,
    /// `set_options` may change it.
    pub mutable: bool,
    /// Its value as text.
    pub get: fn(&T) -> String,
    /// Sets it from text.
    pub set: fn(&mut T, &str) -> Result<()>,
}

/// A value that an option can have.
pub trait OptionValue: Sized {
    /// As in an OPTIONS file.
    fn print(&self) -> String;
    /// From an OPTIONS file; `None` if it does not parse.
    fn parse(text: &str) -> Option<Self>;
    /// Changes what `text` names; `None` if it does not parse.
    fn update(&mut self, text: &str) -> Option<()> {
        *self = Self::parse(text)?;
        Some(())
    }
}

impl OptionValue for bool {
    fn print(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Option<bool> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }
}

/// An integer with an optional suffix K, M, G or T, which a B may follow.
///
/// Source: RocksDB `util/string_util.cc`, which passes over whatever follows; here only what a person means by it is taken.
fn parse_integer(text: &str) -> Option<i128> {
    let lower = text.to_ascii_lowercase();
    let suffixes =
        [("k", 10), ("m", 20), ("g", 30), ("t", 40), ("kb", 10), ("mb", 20), ("gb", 30), ("tb", 40)];
    match suffixes.iter().find_map(|(suffix, shift)| Some((lower.strip_suffix(suffix)?, *shift))) {
        // 64 bits at most, so that nothing is shifted out.
        Some((number, shift)) => Some(i128::from(number.parse::<i64>().ok()?) << shift),
        None => text.parse().ok(),
    }
}

macro_rules! integer_values {
    ($($type:ty),*) => {$(
        impl OptionValue for $type {
            fn print(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Option<$type> {
                parse_integer(text)?.try_into().ok()
            }
        }
    )*};
}
integer_values!(u32, u64, i32, i64);

impl OptionValue for f64 {
    fn print(&self) -> String {
        format!("{self:.6}")
    }

    fn parse(text: &str) -> Option<f64> {
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

impl OptionValue for Option<PathBuf> {
    fn print(&self) -> String {
        self.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }

    fn parse(text: &str) -> Option<Option<PathBuf>> {
        Some((!text.is_empty()).then(|| PathBuf::from(text)))
    }
}

impl OptionValue for Option<PrefixExtractor> {
    fn print(&self) -> String {
        self.as_ref().map_or_else(|| "nullptr".to_string(), |extractor| extractor.name().into_owned())
    }

    fn parse(text: &str) -> Option<Option<PrefixExtractor>> {
        match text {
            "" | "nullptr" => Some(None),
            name => PrefixExtractor::parse(name).map(Some),
        }
    }
}

/// The name of an object: `NAME`, or `id=NAME;property=value;` as newer versions print it, kept as `NAME:value`.
impl OptionValue for Option<String> {
    fn print(&self) -> String {
        self.clone().unwrap_or_else(|| "nullptr".to_string())
    }

    fn parse(text: &str) -> Option<Option<String>> {
        if matches!(text, "" | "nullptr") {
            return Some(None);
        }
        let Some(properties) = text.strip_prefix("id=") else { return Some(Some(text.to_string())) };
        let mut parts = properties.split(';').filter(|part| !part.is_empty());
        let mut name = parts.next()?.to_string();
        for part in parts {
            name.push(':');
            name.push_str(part.split_once('=')?.1);
        }
        Some(Some(name))
    }
}

impl OptionValue for Option<FileChecksumGenFactory> {
    fn print(&self) -> String {
        self.map_or_else(|| "nullptr".to_string(), |factory| factory.name().to_string())
    }

    fn parse(text: &str) -> Option<Option<FileChecksumGenFactory>> {
        let factory = FileChecksumGenFactory::Crc32c;
        match Option::<String>::parse(text)? {
            None => Some(None),
            Some(name) => (name == factory.name()).then_some(Some(factory)),
        }
    }
}

/// Enumerations by name.
macro_rules! named_values {
    ($type:ty { $($name:literal => $value:expr),* $(,)? }) => {
        impl OptionValue for $type {
            fn print(&self) -> String {
                $(if *self == $value { return $name.to_string(); })*
                unreachable!("every value has a name")
            }

            fn parse(text: &str) -> Option<$type> {
                match text {
                    $($name => Some($value),)*
                    _ => None,
                }
            }
        }
    };
}

named_values!(CompressionType {
    "kNoCompression" => CompressionType::None,
    "kSnappyCompression" => CompressionType::Snappy,
    "kZlibCompression" => CompressionType::Zlib,
    "kBZip2Compression" => CompressionType::BZip2,
    "kLZ4Compression" => CompressionType::Lz4,
    "kLZ4HCCompression" => CompressionType::Lz4hc,
    "kZSTD" => CompressionType::Zstd,
});
named_values!(WalRecoveryMode {
    "kTolerateCorruptedTailRecords" => WalRecoveryMode::TolerateCorruptedTailRecords,
    "kAbsoluteConsistency" => WalRecoveryMode::AbsoluteConsistency,
    "kPointInTimeRecovery" => WalRecoveryMode::PointInTimeRecovery,
    "kSkipAnyCorruptedRecords" => WalRecoveryMode::SkipAnyCorruptedRecords,
});
named_values!(CompactionStyle {
    "kCompactionStyleLevel" => CompactionStyle::Level,
    "kCompactionStyleUniversal" => CompactionStyle::Universal,
    "kCompactionStyleFIFO" => CompactionStyle::Fifo,
    "kCompactionStyleNone" => CompactionStyle::None,
});
named_values!(CompactionStopStyle {
    "kCompactionStopStyleSimilarSize" => CompactionStopStyle::SimilarSize,
    "kCompactionStopStyleTotalSize" => CompactionStopStyle::TotalSize,
});
named_values!(CompactionPri {
    "kByCompensatedSize" => CompactionPri::ByCompensatedSize,
    "kOldestLargestSeqFirst" => CompactionPri::OldestLargestSeqFirst,
    "kOldestSmallestSeqFirst" => CompactionPri::OldestSmallestSeqFirst,
    "kMinOverlappingRatio" => CompactionPri::MinOverlappingRatio,
    "kRoundRobin" => CompactionPri::RoundRobin,
});
named_values!(Prepopulate {
    "kDisable" => Prepopulate::Disable,
    "kFlushOnly" => Prepopulate::FlushOnly,
    "kFlushAndCompaction" => Prepopulate::FlushAndCompaction,
});
named_values!(IndexType {
    "kBinarySearch" => IndexType::BinarySearch,
    "kHashSearch" => IndexType::HashSearch,
    "kTwoLevelIndexSearch" => IndexType::TwoLevel,
    "kBinarySearchWithFirstKey" => IndexType::BinarySearchWithFirstKey,
});
named_values!(IndexShortening {
    "kNoShortening" => IndexShortening::None,
    "kShortenSeparators" => IndexShortening::Separators,
    "kShortenSeparatorsAndSuccessor" => IndexShortening::SeparatorsAndSuccessor,
});
named_values!(DataBlockIndexType {
    "kDataBlockBinarySearch" => DataBlockIndexType::BinarySearch,
    "kDataBlockBinaryAndHash" => DataBlockIndexType::BinaryAndHash,
});
named_values!(ChecksumType {
    "kNoChecksum" => ChecksumType::None,
    "kCRC32c" => ChecksumType::Crc32c,
    "kxxHash" => ChecksumType::XxHash,
    "kxxHash64" => ChecksumType::XxHash64,
    "kXXH3" => ChecksumType::Xxh3,
});

impl OptionValue for Option<CompressionType> {
    fn print(&self) -> String {
        self.as_ref().map_or_else(|| "kDisableCompressionOption".to_string(), OptionValue::print)
    }

    fn parse(text: &str) -> Option<Option<CompressionType>> {
        match text {
            "kDisableCompressionOption" => Some(None),
            other => CompressionType::parse(other).map(Some),
        }
    }
}

impl OptionValue for Vec<CompressionType> {
    fn print(&self) -> String {
        self.iter().map(OptionValue::print).collect::<Vec<_>>().join(":")
    }

    fn parse(text: &str) -> Option<Vec<CompressionType>> {
        text.split(':').filter(|name| !name.is_empty()).map(CompressionType::parse).collect()
    }
}

impl OptionValue for FilterPolicy {
    fn print(&self) -> String {
        match self {
            FilterPolicy::None => "nullptr".to_string(),
            FilterPolicy::Bloom { bits_per_key } => format!("bloomfilter:{bits_per_key}:false"),
            FilterPolicy::LegacyBloom { bits_per_key } => {
                format!("rocksdb.internal.LegacyBloomFilter:{bits_per_key}")
            }
            FilterPolicy::Ribbon { bits_per_key, bloom_before_level } => {
                format!("ribbonfilter:{bits_per_key}:{bloom_before_level}")
            }
        }
    }

    fn parse(text: &str) -> Option<FilterPolicy> {
        // Older versions print the name alone: it reads filters and writes none.
        if matches!(text, "nullptr" | "" | "rocksdb.BuiltinBloomFilter") {
            return Some(FilterPolicy::None);
        }
        let (name, rest) = text.split_once(':')?;
        let (bits, rest) = rest.split_once(':').map_or((rest, None), |(bits, rest)| (bits, Some(rest)));
        // Source: RocksDB `filter_policy.cc`, `BloomLikeFilterPolicy`: less than a half is no filter.
        let bits_per_key = match bits.parse::<f64>().ok()? {
            bits if bits < 0.5 => 0.0,
            bits if bits < 1.0 => 1.0,
            bits if bits < 100.0 => bits,
            _ => 100.0,
        };
        match name {
            // A third part, if any, asked for filters of single blocks, which RocksDB itself gave up in
            // version 7.
            "bloomfilter" | "rocksdb.BloomFilter" => Some(FilterPolicy::Bloom { bits_per_key }),
            "rocksdb.internal.LegacyBloomFilter" => Some(FilterPolicy::LegacyBloom { bits_per_key }),
            "ribbonfilter" | "rocksdb.RibbonFilter" => {
                let bloom_before_level = rest.map_or(Some(0), i32::parse)?;
                Some(FilterPolicy::Ribbon { bits_per_key, bloom_before_level })
            }
            _ => None,
        }
    }
}

/// Names of the older form of `compression_opts`, values joined by colons.
const COMPRESSION_OPTS_IN_ORDER: [&str; 9] = [
    "window_bits",
    "level",
    "strategy",
    "max_dict_bytes",
    "zstd_max_train_bytes",
    "parallel_threads",
    "enabled",
    "max_dict_buffer_bytes",
    "use_zstd_dict_trainer",
];

impl OptionValue for CompressionOptions {
    fn print(&self) -> String {
        print_nested(COMPRESSION_ROWS, self)
    }

    fn parse(text: &str) -> Option<CompressionOptions> {
        let mut options = CompressionOptions::default();
        options.update(text)?;
        Some(options)
    }

    fn update(&mut self, text: &str) -> Option<()> {
        let mut options = self.clone();
        if text.contains('=') {
            each_pair(text, &mut |name, value| set_compression(&mut options, name, value)).ok()?;
        } else {
            for (at, value) in text.split(':').filter(|value| !value.is_empty()).enumerate() {
                set_compression(&mut options, COMPRESSION_OPTS_IN_ORDER.get(at)?, value.trim()).ok()?;
            }
        }
        *self = options;
        Some(())
    }
}

/// Options in braces: fields that are not named keep their values.
macro_rules! nested_options {
    ($type:ty, $rows:ident, $set:ident) => {
        impl OptionValue for $type {
            fn print(&self) -> String {
                print_nested($rows, self)
            }

            fn parse(text: &str) -> Option<$type> {
                let mut options = <$type>::default();
                options.update(text)?;
                Some(options)
            }

            fn update(&mut self, text: &str) -> Option<()> {
                let mut changed = self.clone();
                each_pair(text, &mut |name, value| $set(&mut changed, name, value)).ok()?;
                *self = changed;
                Some(())
            }
        }
    };
}
nested_options!(UniversalCompactionOptions, UNIVERSAL_ROWS, set_universal);
nested_options!(FifoCompactionOptions, FIFO_ROWS, set_fifo);

/// Sets a field of `compaction_options_universal`.
fn set_universal(options: &mut UniversalCompactionOptions, name: &str, text: &str) -> Result<()> {
    known_field(set(UNIVERSAL_ROWS, options, name, text)?, name, text)
}

/// Sets a field of `compaction_options_fifo`. Files have no temperature here: ages for one are refused.
fn set_fifo(options: &mut FifoCompactionOptions, name: &str, text: &str) -> Result<()> {
    let agrees = match name {
        "file_temperature_age_thresholds" => text.is_empty(),
        // Deprecated: it is an option of the column family.
        "ttl" => true,
        _ => set(FIFO_ROWS, options, name, text)?,
    };
    known_field(agrees, name, text)
}

/// Sets a field of `compression_opts`.
fn set_compression(options: &mut CompressionOptions, name: &str, text: &str) -> Result<()> {
    // RocksDB reads these with a sign.
    if matches!(name, "max_dict_bytes" | "max_compressed_bytes_per_kb") && i32::parse(text).is_none() {
        return Err(bad_value(name, text));
    }
    known_field(set(COMPRESSION_ROWS, options, name, text)?, name, text)
}

fn known_field(known: bool, name: &str, text: &str) -> Result<()> {
    if known { Ok(()) } else { Err(bad_value(name, text)) }
}

macro_rules! rows {
    ($type:ty: $($mutable:ident $name:literal => $($field:ident).+),* $(,)?) => {
        &[$(Row {
            name: $name,
            mutable: rows!(@mutable $mutable),
            get: |options: &$type| OptionValue::print(&options.$($field).+),
            set: |options: &mut $type, text: &str| {
                options.$($field).+.update(text).ok_or_else(|| bad_value($name, text))
            },
        }),*]
    };
    (@mutable mutable) => { true };
    (@mutable fixed) => { false };
}

pub(crate) fn bad_value(name: &str, text: &str) -> Error {
    Error::invalid_argument(format!("option {name} cannot be {text:?}"))
}

/// Options of the database.
pub const DB_ROWS: &[Row<DbOptions>] = rows!(DbOptions:
    fixed "create_if_missing" => create_if_missing,
    fixed "create_missing_column_families" => create_missing_column_families,
    fixed "error_if_exists" => error_if_exists,
    fixed "paranoid_checks" => paranoid_checks,
    mutable "max_open_files" => max_open_files,
    mutable "max_total_wal_size" => max_total_wal_size,
    mutable "max_background_jobs" => max_background_jobs,
    fixed "max_bgerror_resume_count" => max_bgerror_resume_count,
    fixed "bgerror_resume_retry_interval" => bgerror_resume_retry_interval,
    mutable "max_subcompactions" => max_subcompactions,
    fixed "wal_dir" => wal_dir,
    fixed "track_and_verify_wals_in_manifest" => track_and_verify_wals_in_manifest,
    fixed "track_and_verify_wals" => track_and_verify_wals,
    fixed "wal_recovery_mode" => wal_recovery_mode,
    mutable "bytes_per_sync" => bytes_per_sync,
    mutable "wal_bytes_per_sync" => wal_bytes_per_sync,
    fixed "use_fsync" => use_fsync,
    fixed "allow_fallocate" => allow_fallocate,
    fixed "use_direct_reads" => use_direct_reads,
    fixed "allow_mmap_reads" => allow_mmap_reads,
    fixed "use_direct_io_for_flush_and_compaction" => use_direct_io_for_flush_and_compaction,
    mutable "delayed_write_rate" => delayed_write_rate,
    fixed "manual_wal_flush" => manual_wal_flush,
    fixed "recycle_log_file_num" => recycle_log_file_num,
    fixed "WAL_ttl_seconds" => wal_ttl_seconds,
    fixed "WAL_size_limit_MB" => wal_size_limit_mb,
    fixed "wal_compression" => wal_compression,
    mutable "avoid_flush_during_shutdown" => avoid_flush_during_shutdown,
    mutable "max_manifest_file_size" => max_manifest_file_size,
    mutable "stats_dump_period_sec" => stats_dump_period_sec,
    fixed "keep_log_file_num" => keep_log_file_num,
    mutable "compaction_readahead_size" => compaction_readahead_size,
    mutable "writable_file_max_buffer_size" => writable_file_max_buffer_size,
    fixed "atomic_flush" => atomic_flush,
    fixed "db_write_buffer_size" => db_write_buffer_size,
    fixed "allow_ingest_behind" => allow_ingest_behind,
    fixed "write_dbid_to_manifest" => write_dbid_to_manifest,
    fixed "write_identity_file" => write_identity_file,
    fixed "file_checksum_gen_factory" => file_checksum_gen_factory,
);

/// Options of a column family.
pub const CF_ROWS: &[Row<ColumnFamilyOptions>] = rows!(ColumnFamilyOptions:
    mutable "write_buffer_size" => write_buffer_size,
    mutable "max_write_buffer_number" => max_write_buffer_number,
    fixed "min_write_buffer_number_to_merge" => min_write_buffer_number_to_merge,
    mutable "compression" => compression,
    mutable "compression_per_level" => compression_per_level,
    mutable "bottommost_compression" => bottommost_compression,
    mutable "compression_opts" => compression_opts,
    mutable "bottommost_compression_opts" => bottommost_compression_opts,
    mutable "blob_compression_opts" => blob_compression_opts,
    fixed "num_levels" => num_levels,
    mutable "level0_file_num_compaction_trigger" => level0_file_num_compaction_trigger,
    mutable "level0_slowdown_writes_trigger" => level0_slowdown_writes_trigger,
    mutable "level0_stop_writes_trigger" => level0_stop_writes_trigger,
    mutable "target_file_size_base" => target_file_size_base,
    mutable "target_file_size_multiplier" => target_file_size_multiplier,
    mutable "max_bytes_for_level_base" => max_bytes_for_level_base,
    mutable "max_bytes_for_level_multiplier" => max_bytes_for_level_multiplier,
    fixed "level_compaction_dynamic_level_bytes" => level_compaction_dynamic_level_bytes,
    mutable "max_compaction_bytes" => max_compaction_bytes,
    mutable "soft_pending_compaction_bytes_limit" => soft_pending_compaction_bytes_limit,
    mutable "hard_pending_compaction_bytes_limit" => hard_pending_compaction_bytes_limit,
    mutable "disable_auto_compactions" => disable_auto_compactions,
    fixed "compaction_style" => compaction_style,
    fixed "compaction_pri" => compaction_pri,
    mutable "compaction_options_universal" => compaction_options_universal,
    mutable "compaction_options_fifo" => compaction_options_fifo,
    mutable "ttl" => ttl,
    mutable "periodic_compaction_seconds" => periodic_compaction_seconds,
    mutable "bottommost_file_compaction_delay" => bottommost_file_compaction_delay,
    fixed "optimize_filters_for_hits" => optimize_filters_for_hits,
    fixed "force_consistency_checks" => force_consistency_checks,
    mutable "enable_blob_files" => enable_blob_files,
    mutable "min_blob_size" => min_blob_size,
    mutable "blob_file_size" => blob_file_size,
    mutable "blob_compression_type" => blob_compression_type,
    mutable "enable_blob_garbage_collection" => enable_blob_garbage_collection,
    mutable "blob_garbage_collection_age_cutoff" => blob_garbage_collection_age_cutoff,
    mutable "blob_garbage_collection_force_threshold" => blob_garbage_collection_force_threshold,
    mutable "blob_compaction_readahead_size" => blob_compaction_readahead_size,
    mutable "prepopulate_blob_cache" => prepopulate_blob_cache,
    mutable "blob_file_starting_level" => blob_file_starting_level,
    fixed "cf_allow_ingest_behind" => allow_ingest_behind,
    fixed "enable_blob_direct_write" => enable_blob_direct_write,
    fixed "blob_direct_write_partitions" => blob_direct_write_partitions,
    mutable "arena_block_size" => arena_block_size,
    fixed "max_write_buffer_size_to_maintain" => max_write_buffer_size_to_maintain,
    fixed "comparator" => comparator,
    fixed "merge_operator" => merge_operator,
    mutable "prefix_extractor" => prefix_extractor,
    mutable "memtable_prefix_bloom_size_ratio" => memtable_prefix_bloom_size_ratio,
    mutable "max_sequential_skip_in_iterations" => max_sequential_skip_in_iterations,
    mutable "max_successive_merges" => max_successive_merges,
    mutable "strict_max_successive_merges" => strict_max_successive_merges,
    mutable "paranoid_file_checks" => paranoid_file_checks,
    mutable "report_bg_io_stats" => report_bg_io_stats,
);

/// Fields of `compression_opts`.
const COMPRESSION_ROWS: &[Row<CompressionOptions>] = rows!(CompressionOptions:
    mutable "window_bits" => window_bits,
    mutable "level" => level,
    mutable "max_dict_bytes" => max_dict_bytes,
    mutable "zstd_max_train_bytes" => zstd_max_train_bytes,
    mutable "max_dict_buffer_bytes" => max_dict_buffer_bytes,
    mutable "max_compressed_bytes_per_kb" => max_compressed_bytes_per_kb,
    mutable "checksum" => checksum,
    mutable "strategy" => strategy,
    mutable "parallel_threads" => parallel_threads,
    mutable "enabled" => enabled,
    mutable "use_zstd_dict_trainer" => use_zstd_dict_trainer,
);

/// Fields of `compaction_options_universal`.
const UNIVERSAL_ROWS: &[Row<UniversalCompactionOptions>] = rows!(UniversalCompactionOptions:
    mutable "size_ratio" => size_ratio,
    mutable "min_merge_width" => min_merge_width,
    mutable "max_merge_width" => max_merge_width,
    mutable "max_size_amplification_percent" => max_size_amplification_percent,
    mutable "compression_size_percent" => compression_size_percent,
    mutable "max_read_amp" => max_read_amp,
    mutable "stop_style" => stop_style,
    mutable "allow_trivial_move" => allow_trivial_move,
    mutable "incremental" => incremental,
    mutable "reduce_file_locking" => reduce_file_locking,
);

/// Fields of `compaction_options_fifo`.
const FIFO_ROWS: &[Row<FifoCompactionOptions>] = rows!(FifoCompactionOptions:
    mutable "max_table_files_size" => max_table_files_size,
    mutable "allow_compaction" => allow_compaction,
    mutable "age_for_warm" => age_for_warm,
    mutable "max_data_files_size" => max_data_files_size,
    mutable "allow_trivial_copy_when_change_temperature" => allow_trivial_copy_when_change_temperature,
    mutable "trivial_copy_buffer_size" => trivial_copy_buffer_size,
    mutable "use_kv_ratio_compaction" => use_kv_ratio_compaction,
);

/// Options of a column family's tables.
pub const TABLE_ROWS: &[Row<BlockBasedTableOptions>] = rows!(BlockBasedTableOptions:
    mutable "block_size" => block_size,
    mutable "block_size_deviation" => block_size_deviation,
    mutable "block_restart_interval" => block_restart_interval,
    mutable "index_block_restart_interval" => index_block_restart_interval,
    mutable "format_version" => format_version,
    mutable "checksum" => checksum,
    mutable "index_type" => index_type,
    mutable "metadata_block_size" => metadata_block_size,
    mutable "partition_filters" => partition_filters,
    mutable "enable_index_compression" => enable_index_compression,
    mutable "index_shortening" => index_shortening,
    mutable "data_block_index_type" => data_block_index_type,
    mutable "data_block_hash_table_util_ratio" => data_block_hash_table_util_ratio,
    mutable "use_delta_encoding" => use_delta_encoding,
    mutable "separate_key_value_in_data_block" => separate_key_value_in_data_block,
    mutable "verify_compression" => verify_compression,
    mutable "block_align" => block_align,
    mutable "filter_policy" => filter_policy,
    mutable "whole_key_filtering" => whole_key_filtering,
    mutable "cache_index_and_filter_blocks" => cache_index_and_filter_blocks,
    mutable "pin_l0_filter_and_index_blocks_in_cache" => pin_l0_filter_and_index_blocks_in_cache,
    mutable "prepopulate_block_cache" => prepopulate_block_cache,
    mutable "read_amp_bytes_per_bit" => read_amp_bytes_per_bit,
    fixed "no_block_cache" => no_block_cache,
);

/// Options that RocksDB 6.29, and so versions up to 10, refuse to load an OPTIONS file with, because they came later.
/// They are written only where they say something: where they are not at their defaults.
///
/// Source: `rocksdb_get_options_from_string` of 6.29.5 to 11.8.1, asked for each name.
pub const NEWER_THAN_6_29: &[&str] = &[
    // Of the database.
    "track_and_verify_wals",
    "wal_compression",
    "write_identity_file",
    // Of a column family.
    "blob_compression_opts",
    "blob_direct_write_partitions",
    "cf_allow_ingest_behind",
    "enable_blob_direct_write",
    "blob_file_starting_level",
    "bottommost_file_compaction_delay",
    "prepopulate_blob_cache",
    "strict_max_successive_merges",
    // Of tables.
    "separate_key_value_in_data_block",
    "use_delta_encoding",
    // In braces.
    "compression_opts.checksum",
    "compression_opts.max_compressed_bytes_per_kb",
    "compression_opts.use_zstd_dict_trainer",
    "compaction_options_universal.max_read_amp",
    "compaction_options_universal.reduce_file_locking",
    "compaction_options_fifo.allow_trivial_copy_when_change_temperature",
    "compaction_options_fifo.max_data_files_size",
    "compaction_options_fifo.trivial_copy_buffer_size",
    "compaction_options_fifo.use_kv_ratio_compaction",
];

/// Name and text of each option of `options` that an OPTIONS file has. `within` is the name before the braces that they
/// stand in, with a dot.
pub fn printed<T: Default>(rows: &[Row<T>], options: &T, within: &str) -> Vec<(&'static str, String)> {
    let default = T::default();
    let says_something = |row: &&Row<T>| {
        let is_newer = |name: &str| name.strip_prefix(within) == Some(row.name);
        !NEWER_THAN_6_29.iter().any(|name| is_newer(name)) || (row.get)(options) != (row.get)(&default)
    };
    let all = rows.iter().filter(says_something).map(|row| (row.name, (row.get)(options)));
    // RocksDB writes no empty texts either.
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// Options in braces.
fn print_nested<T: Nested>(rows: &[Row<T>], options: &T) -> String {
    let pairs = printed(rows, options, T::WITHIN).into_iter();
    format!("{{{}}}", pairs.map(|(name, text)| format!("{name}={text};")).collect::<String>())
}

/// Options that stand in braces.
trait Nested: Default {
    /// The name before the braces, with a dot.
    const WITHIN: &'static str;
}

impl Nested for CompressionOptions {
    const WITHIN: &'static str = "compression_opts.";
}

impl Nested for UniversalCompactionOptions {
    const WITHIN: &'static str = "compaction_options_universal.";
}

impl Nested for FifoCompactionOptions {
    const WITHIN: &'static str = "compaction_options_fifo.";
}

/// Sets the option `name` of `target` from `text`; false if there is no such option.
pub fn set<T>(rows: &[Row<T>], target: &mut T, name: &str, text: &str) -> Result<bool> {
    match rows.iter().find(|row| row.name == name) {
        Some(row) => (row.set)(target, text).map(|()| true),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests;
