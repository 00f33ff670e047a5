//! Options of RocksDB without a field of their own: taken, kept, and written back to the OPTIONS file.
//!
//! Some act through their texts: those of LOG (`info_log_level`, `max_log_file_size`, `log_file_time_to_roll`, `db_log_dir`), `max_background_flushes`
//! and `max_background_compactions`, `daily_offpeak_time_utc`, `max_bytes_for_level_multiplier_additional`, `rate_limiter_bytes_per_sec`,
//! `metadata_cache_options`, `sst_partitioner_factory`, `blob_cache`, `max_file_opening_threads`, `max_write_batch_group_size_bytes`,
//! `memtable_max_range_deletions`, `verify_output_flags`, `db_host_id`, `flush_verify_memtable_count`,
//! `compaction_verify_record_count`, `verify_manifest_content_on_close`, and those of automatic readahead. On the others nothing acts.
//!
//! A program that goes back to RocksDB finds in its OPTIONS file what it had set. Each row says why it may be left without
//! effect; what would change results or durability is [`Fate::Refused`]: read, kept, and refused when a database is opened with
//! it. `docs/capi.md` lists them under "accepted" and "checked".
//!
//! Source: RocksDB 11.8.1, `db_options.cc`, `cf_options.cc`, `block_based_table_factory.cc`: names, types and defaults.

use crate::rows::{OptionValue, bad_value};
use outcrop_base::{PrefixExtractor, Result};
use std::collections::BTreeMap;

/// The fate of a value that is not the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Kept and written to the OPTIONS file.
    Written,
    /// Kept; RocksDB writes it to no OPTIONS file either.
    Unwritten,
    /// Kept and written, and nothing is opened with it.
    Refused,
}

/// The kind of values of an option.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// 8 bits.
    Byte,
    /// 32 bits.
    Number32,
    /// 32 bits with a sign.
    Signed32,
    /// 64 bits.
    Number64,
    /// 64 bits with a sign.
    Signed64,
    /// A number with a fraction.
    Real,
    /// Any text.
    Text,
    /// One of these.
    Words(&'static [&'static str]),
    /// Numbers, joined by colons.
    Numbers,
    /// A kind of memtable, by any of the names that RocksDB knows it by.
    MemTable,
    /// A prefix extractor.
    Prefix,
    /// An object that can be named here only where there is none: its default.
    Object,
    /// An object by any name, of which there is none here.
    Name,
    /// A cache: none, or its capacity in bytes, by itself or among options of RocksDB's caches.
    Cache,
    /// A partitioner: none, or the one that RocksDB has.
    Partitioner,
    /// Fields in braces, each one of the same words.
    Fields(&'static [&'static str], &'static [&'static str]),
}

/// One such option.
pub struct KeptRow {
    /// RocksDB's name.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Its value where nobody sets it, as RocksDB prints it.
    pub default: &'static str,
    /// `set_options` may change it.
    pub mutable: bool,
    /// RocksDB 6.29 does not know it.
    pub newer: bool,
    /// The fate of such a value.
    pub fate: Fate,
}

/// Values of such options that are not the defaults, as RocksDB prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(BTreeMap<&'static str, String>);

impl Kept {
    /// Keeps the value of an option; false if there is none of that name in `rows`.
    ///
    /// # Errors
    /// InvalidArgument if it has no such value.
    pub fn set(&mut self, rows: &'static [KeptRow], name: &str, text: &str) -> Result<bool> {
        let Some(row) = rows.iter().find(|row| row.name == name) else { return Ok(false) };
        let current = self.0.get(row.name).map_or(row.default, String::as_str);
        let value = row.kind.canonical(row.default, current, text).ok_or_else(|| bad_value(name, text))?;
        if value == row.default {
            self.0.remove(row.name);
        } else {
            self.0.insert(row.name, value);
        }
        Ok(true)
    }

    /// A value that is not the default.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A flag, given its default.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |text| text == "true")
    }

    /// A number that is not the default.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// The length of the prefixes of which each has tables of its own, if `sst_partitioner_factory` asks for that.
    pub fn partition_prefix(&self) -> Option<usize> {
        let fields = self.get(PARTITIONER)?.strip_prefix(FIXED_PREFIX_FIELDS)?;
        fields.strip_suffix(";}")?.parse().ok()
    }

    /// Keeps the name and the settings of the partitioner that is given as an object, by whatever name.
    pub fn note_partitioner(&mut self, text: String) {
        self.0.insert(PARTITIONER, text);
    }

    /// Everything that is not at its default.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str()))
    }
}

/// Names that RocksDB passes over without a word, as options that it no longer has.
pub const DEPRECATED: &[&str] = &[
    "access_hint_on_compaction_start",
    "allow_os_buffer",
    "base_background_compactions",
    "concurrent_prepare",
    "disableDataSync",
    "disable_data_sync",
    "experimental_allow_mempurge",
    "experimental_mempurge_policy",
    // Also one of column families; by its name alone the database's is meant.
    "experimental_mempurge_threshold",
    "fail_if_options_file_error",
    "new_table_reader_for_compaction_inputs",
    "preserve_deletes",
    "random_access_max_buffer_size",
    "rate_limiter",
    "seq_per_batch",
    "skip_checking_sst_file_sizes_on_db_open",
    "skip_log_error_on_recovery",
    "use_direct_writes",
    "bottommost_temperature",
    "check_flush_compaction_key_order",
    "compaction_measure_io_stats",
    "expanded_compaction_factor",
    "filter_deletes",
    "hard_rate_limit",
    "ignore_max_compaction_bytes_for_input",
    "level_compaction_dynamic_file_size",
    "max_grandparent_overlap_factor",
    "max_mem_compaction_level",
    "max_write_buffer_number_to_maintain",
    "memtable_prefix_bloom_bits",
    "memtable_prefix_bloom_huge_page_tlb_size",
    "memtable_prefix_bloom_probes",
    "min_partial_merge_operands",
    "purge_redundant_kvs_while_flush",
    "rate_limit_delay_max_milliseconds",
    "snap_refresh_nanos",
    "soft_rate_limit",
    "source_compaction_factor",
    "verify_checksums_in_compaction",
];

/// The same, of tables.
pub const DEPRECATED_OF_TABLES: &[&str] = &[
    "block_cache_compressed",
    "hash_index_allow_collision",
    "index_per_partition",
    "reserve_table_builder_memory",
    "reserve_table_reader_memory",
    "skip_table_builder_flush",
];

/// Those deprecated names that `set_options` takes. Source: `cf_mutable_options_type_info`.
pub fn is_deprecated_and_mutable(name: &str) -> bool {
    const FIXED: &[&str] = &[
        "compaction_measure_io_stats",
        "level_compaction_dynamic_file_size",
        "max_mem_compaction_level",
        "max_write_buffer_number_to_maintain",
        "purge_redundant_kvs_while_flush",
        "rate_limit_delay_max_milliseconds",
    ];
    let first_of_families = DEPRECATED.iter().position(|known| *known == "bottommost_temperature");
    let families = &DEPRECATED[first_of_families.unwrap_or(DEPRECATED.len())..];
    families.contains(&name) && !FIXED.contains(&name)
}

/// An option that goes by a second name. Source: `OptionVerificationType::kAlias`.
pub fn without_alias(name: &str) -> &str {
    match name {
        "memtable" => "memtable_factory",
        // A slip of RocksDB's that it still reads.
        "memtable_veirfy_per_key_checksum_on_seek" => "memtable_verify_per_key_checksum_on_seek",
        other => other,
    }
}

impl Kind {
    /// `text` as RocksDB would print it; `None` if it is no value. Fields in braces that are not named stay as in `current`.
    fn canonical(self, default: &str, current: &str, text: &str) -> Option<String> {
        let number = |bits: Option<String>| bits;
        match self {
            Kind::Flag => bool::parse(text).map(|value| value.print()),
            Kind::Byte => number(u64::parse(text).filter(|value| *value < 256).map(|value| value.print())),
            Kind::Number32 => u32::parse(text).map(|value| value.print()),
            Kind::Signed32 => i32::parse(text).map(|value| value.print()),
            Kind::Number64 => u64::parse(text).map(|value| value.print()),
            Kind::Signed64 => i64::parse(text).map(|value| value.print()),
            Kind::Real => f64::parse(text).map(|value| value.print()),
            Kind::Text => Some(text.to_string()),
            Kind::Words(words) => words.contains(&text).then(|| text.to_string()),
            Kind::Numbers => {
                let all: Option<Vec<String>> =
                    text.split(':').map(|part| i32::parse(part).map(|value| value.print())).collect();
                if text.is_empty() { Some(String::new()) } else { all.map(|all| all.join(":")) }
            }
            Kind::MemTable => memtable(text),
            Kind::Prefix => Option::<PrefixExtractor>::parse(text).map(|value| value.print()),
            Kind::Object => {
                let none = text.is_empty() || text == "nullptr" || text == default;
                none.then(|| default.to_string())
            }
            // Where one is given as an object, it counts; by a name none is made.
            Kind::Name => Some(default.to_string()),
            Kind::Cache if text.is_empty() || text == "nullptr" => Some(default.to_string()),
            Kind::Cache => {
                let mut fields = text.trim_matches(['{', '}']).split(';');
                let capacity =
                    fields.find_map(|field| field.trim().strip_prefix("capacity=")).unwrap_or(text);
                u64::parse(capacity).map(|bytes| bytes.print())
            }
            Kind::Partitioner => partitioner(current, text),
            Kind::Fields(fields, words) => of_fields(fields, words, current, text),
        }
    }
}

const PARTITIONER: &str = "sst_partitioner_factory";
const FIXED_PREFIX: &str = "SstPartitionerFixedPrefixFactory";
/// The fixed-prefix partitioner as RocksDB prints it, up to its length.
const FIXED_PREFIX_FIELDS: &str = "{id=SstPartitionerFixedPrefixFactory;length=";

/// The partitioner of so many bytes as RocksDB prints it.
pub fn fixed_prefix_partitioner(length: usize) -> String {
    format!("{FIXED_PREFIX_FIELDS}{length};}}")
}

/// None, or the fixed-prefix partitioner; without an id `current` is changed.
///
/// Source: RocksDB `db/compaction/sst_partitioner.cc`, `Customizable::GetOptionsMap`.
fn partitioner(current: &str, text: &str) -> Option<String> {
    let inner = text.trim();
    let inner = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(inner);
    let fields: Vec<&str> = inner.split(';').map(str::trim).filter(|field| !field.is_empty()).collect();
    let (mut id, mut length) = (None, None);
    for field in fields {
        match field.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            None => id = Some(field),
            Some(("id", value)) => id = Some(value),
            Some(("length", value)) => length = Some(u64::parse(value)?),
            Some(_) => return None,
        }
    }
    match (id, length) {
        (None | Some("nullptr"), None) => Some("nullptr".to_string()),
        (None, Some(_)) if !current.starts_with(FIXED_PREFIX_FIELDS) => None,
        (None | Some(FIXED_PREFIX), length) => {
            Some(fixed_prefix_partitioner(usize::try_from(length.unwrap_or(0)).ok()?))
        }
        (Some(_), _) => None,
    }
}

/// Fields in braces, all of them, in their order.
fn of_fields(fields: &[&str], words: &[&str], current: &str, text: &str) -> Option<String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut read = |text: &str| {
        crate::file::each_pair(text, &mut |name, value| {
            if !fields.contains(&name) || !words.contains(&value) {
                return Err(bad_value(name, value));
            }
            values.insert(name.to_string(), value.to_string());
            Ok(())
        })
        .ok()
    };
    read(current)?;
    read(text)?;
    let each = |field: &&str| format!("{field}={};", values.get(*field).map_or(words[0], String::as_str));
    Some(format!("{{{}}}", fields.iter().map(each).collect::<String>()))
}

/// A kind of memtable under the name that RocksDB prints it by.
///
/// Source: RocksDB `memtable_factory.cc`: names, nicknames, and what may follow a colon.
fn memtable(text: &str) -> Option<String> {
    const KINDS: &[(&str, &str)] = &[
        ("SkipListFactory", "skip_list"),
        ("VectorRepFactory", "vector"),
        ("HashSkipListRepFactory", "prefix_hash"),
        ("HashLinkListRepFactory", "hash_linkedlist"),
    ];
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let fields: Vec<&str> = text.split(';').map(str::trim).filter(|field| !field.is_empty()).collect();
    let named = fields.iter().find_map(|field| field.strip_prefix("id=")).unwrap_or(text);
    let (name, argument) = named.split_once(':').map_or((named, None), |(name, n)| (name, Some(n)));
    let (id, _) = KINDS.iter().find(|(id, nickname)| name == *id || name == *nickname)?;
    let field = |wanted: &str| fields.iter().find_map(|field| field.strip_prefix(wanted)?.strip_prefix('='));
    let number = |wanted: &str| argument.or_else(|| field(wanted)).map_or(Some(0), u64::parse);
    Some(match *id {
        "SkipListFactory" => match number("lookahead")? {
            0 => (*id).to_string(),
            lookahead => format!("{id}:{lookahead}"),
        },
        "VectorRepFactory" => format!("{{id={id};count={};}}", number("count")?),
        _ => {
            number("bucket_count")?;
            (*id).to_string()
        }
    })
}

/// Words for where bytes are kept.
const TEMPERATURES: &[&str] = &["kUnknown", "kHot", "kWarm", "kCool", "kCold", "kIce"];
/// The parts of tables that can be pinned.
const PINNED: &[&str] = &["unpartitioned_pinning", "partition_pinning", "top_level_index_pinning"];
const TIERS: &[&str] = &["kFallback", "kNone", "kFlushedAndSimilar", "kAll"];

macro_rules! kept_rows {
    ($($mutable:ident $age:ident $fate:ident $name:literal $kind:expr, $default:literal;)*) => {
        &[$(KeptRow {
            name: $name,
            kind: $kind,
            default: $default,
            mutable: kept_rows!(@mutable $mutable),
            newer: kept_rows!(@newer $age),
            fate: Fate::$fate,
        }),*]
    };
    (@mutable mutable) => { true };
    (@mutable fixed) => { false };
    (@newer newer) => { true };
    (@newer old) => { false };
}

/// Of the database.
pub static DB_KEPT: &[KeptRow] = kept_rows! {
    fixed old Written "advise_random_on_open" Kind::Flag, "true";
    fixed old Written "allow_2pc" Kind::Flag, "false";
    fixed old Written "allow_concurrent_memtable_write" Kind::Flag, "true";
    fixed old Written "allow_data_in_errors" Kind::Flag, "false";
    fixed old Written "allow_mmap_writes" Kind::Flag, "false";
    fixed newer Written "async_wal_precreate" Kind::Flag, "false";
    fixed old Written "avoid_flush_during_recovery" Kind::Flag, "false";
    fixed old Written "avoid_unnecessary_blocking_io" Kind::Flag, "false";
    fixed newer Written "background_close_inactive_wals" Kind::Flag, "false";
    fixed old Refused "best_efforts_recovery" Kind::Flag, "false";
    fixed old Written "bgerror_resume_retry_interval" Kind::Number64, "1000000";
    fixed newer Written "compaction_verify_record_count" Kind::Flag, "true";
    mutable newer Written "daily_offpeak_time_utc" Kind::Text, "";
    fixed old Written "db_host_id" Kind::Text, "__hostname__";
    fixed old Written "db_log_dir" Kind::Text, "";
    mutable old Written "delete_obsolete_files_period_micros" Kind::Number64, "21600000000";
    fixed old Written "dump_malloc_stats" Kind::Flag, "false";
    fixed old Written "enable_pipelined_write" Kind::Flag, "false";
    fixed old Written "enable_thread_tracking" Kind::Flag, "false";
    fixed old Written "enable_write_thread_adaptive_yield" Kind::Flag, "true";
    fixed newer Written "enforce_single_del_contracts" Kind::Flag, "true";
    fixed newer Written "enforce_write_buffer_manager_during_recovery" Kind::Flag, "true";
    mutable newer Written "fast_sst_open" Kind::Flag, "false";
    fixed old Written "flush_verify_memtable_count" Kind::Flag, "true";
    fixed newer Written "follower_catchup_retry_count" Kind::Number64, "10";
    fixed newer Written "follower_catchup_retry_wait_ms" Kind::Number64, "100";
    fixed newer Written "follower_refresh_catchup_period_ms" Kind::Number64, "10000";
    fixed old Written "info_log_level" Kind::Words(&["DEBUG_LEVEL", "INFO_LEVEL", "WARN_LEVEL", "ERROR_LEVEL", "FATAL_LEVEL", "HEADER_LEVEL"]), "INFO_LEVEL";
    fixed old Written "is_fd_close_on_exec" Kind::Flag, "true";
    fixed old Written "log_file_time_to_roll" Kind::Number64, "0";
    fixed old Written "log_readahead_size" Kind::Number64, "0";
    fixed old Written "lowest_used_cache_tier" Kind::Words(&["kVolatileTier", "kVolatileCompressedTier", "kNonVolatileBlockTier"]), "kNonVolatileBlockTier";
    mutable old Written "manifest_preallocation_size" Kind::Number64, "4194304";
    mutable old Written "max_background_compactions" Kind::Signed32, "-1";
    mutable old Written "max_background_flushes" Kind::Signed32, "-1";
    fixed old Written "max_bgerror_resume_count" Kind::Signed32, "2147483647";
    mutable newer Written "max_compaction_trigger_wakeup_seconds" Kind::Number64, "43200";
    fixed old Written "max_file_opening_threads" Kind::Signed32, "16";
    fixed old Written "max_log_file_size" Kind::Number64, "0";
    mutable newer Written "max_manifest_space_amp_pct" Kind::Signed32, "500";
    fixed old Written "max_write_batch_group_size_bytes" Kind::Number64, "1048576";
    fixed newer Written "metadata_write_temperature" Kind::Words(TEMPERATURES), "kUnknown";
    fixed newer Written "open_files_async" Kind::Flag, "false";
    mutable newer Written "optimize_manifest_for_recovery" Kind::Flag, "false";
    fixed old Written "persist_stats_to_disk" Kind::Flag, "false";
    fixed newer Written "prefix_seek_opt_in_only" Kind::Flag, "false";
    fixed old Unwritten "rate_limiter_bytes_per_sec" Kind::Number64, "0";
    fixed newer Written "read_io_executor_threads" Kind::Signed32, "1";
    fixed newer Written "reuse_manifest_on_open" Kind::Flag, "false";
    fixed old Written "skip_stats_update_on_db_open" Kind::Flag, "false";
    fixed old Unwritten "statistics" Kind::Name, "nullptr";
    mutable old Written "stats_history_buffer_size" Kind::Number64, "1048576";
    mutable old Written "stats_persist_period_sec" Kind::Number32, "600";
    mutable old Written "strict_bytes_per_sync" Kind::Flag, "false";
    fixed old Written "table_cache_numshardbits" Kind::Signed32, "6";
    fixed old Written "two_write_queues" Kind::Flag, "false";
    fixed old Written "unordered_write" Kind::Flag, "false";
    fixed old Written "use_adaptive_mutex" Kind::Flag, "false";
    fixed newer Written "use_direct_io_for_compaction_reads" Kind::Flag, "false";
    mutable newer Written "verify_manifest_content_on_close" Kind::Flag, "false";
    fixed newer Written "verify_sst_unique_id_in_manifest" Kind::Flag, "true";
    fixed old Written "wal_filter" Kind::Object, "nullptr";
    fixed newer Written "wal_write_temperature" Kind::Words(TEMPERATURES), "kUnknown";
    fixed old Written "write_thread_max_yield_usec" Kind::Number64, "100";
    fixed old Written "write_thread_slow_yield_usec" Kind::Number64, "3";
};

/// Of a column family.
pub static CF_KEPT: &[KeptRow] = kept_rows! {
    fixed newer Unwritten "blob_cache" Kind::Cache, "";
    mutable newer Written "block_protection_bytes_per_key" Kind::Byte, "0";
    fixed old Written "bloom_locality" Kind::Number32, "0";
    fixed old Written "compaction_filter" Kind::Object, "nullptr";
    fixed old Written "compaction_filter_factory" Kind::Object, "nullptr";
    mutable newer Written "compression_manager" Kind::Object, "nullptr";
    fixed newer Written "default_temperature" Kind::Words(TEMPERATURES), "kUnknown";
    mutable newer Written "default_write_temperature" Kind::Words(TEMPERATURES), "kUnknown";
    fixed newer Refused "disallow_memtable_writes" Kind::Flag, "false";
    mutable newer Written "experimental_mempurge_threshold" Kind::Real, "0.000000";
    mutable old Written "inplace_update_num_locks" Kind::Number64, "10000";
    fixed old Written "inplace_update_support" Kind::Flag, "false";
    mutable newer Written "last_level_temperature" Kind::Words(TEMPERATURES), "kUnknown";
    mutable old Written "max_bytes_for_level_multiplier_additional" Kind::Numbers, "1:1:1:1:1:1:1";
    mutable newer Written "memtable_avg_op_scan_flush_trigger" Kind::Number32, "0";
    fixed newer Written "memtable_batch_lookup_optimization" Kind::Flag, "false";
    fixed old Written "memtable_factory" Kind::MemTable, "SkipListFactory";
    mutable old Written "memtable_huge_page_size" Kind::Number64, "0";
    fixed old Written "memtable_insert_with_hint_prefix_extractor" Kind::Prefix, "nullptr";
    mutable newer Written "memtable_max_range_deletions" Kind::Number32, "0";
    mutable newer Written "memtable_op_scan_flush_trigger" Kind::Number32, "0";
    mutable newer Written "memtable_protection_bytes_per_key" Kind::Number32, "0";
    mutable newer Written "memtable_verify_per_key_checksum_on_seek" Kind::Flag, "false";
    mutable old Written "memtable_whole_key_filtering" Kind::Flag, "false";
    mutable newer Written "min_tombstones_for_range_conversion" Kind::Number32, "0";
    mutable newer Written "paranoid_memory_checks" Kind::Flag, "false";
    fixed newer Written "persist_user_defined_timestamps" Kind::Flag, "true";
    mutable newer Written "preclude_last_level_data_seconds" Kind::Number64, "0";
    mutable newer Written "preserve_internal_time_seconds" Kind::Number64, "0";
    mutable newer Written "read_triggered_compaction_threshold" Kind::Real, "0.000000";
    mutable old Written "sample_for_compression" Kind::Number64, "0";
    fixed old Written "sst_partitioner_factory" Kind::Partitioner, "nullptr";
    mutable newer Written "target_file_size_is_upper_bound" Kind::Flag, "false";
    mutable newer Written "uncache_aggressiveness" Kind::Number32, "0";
    mutable newer Written "verify_output_flags" Kind::Number32, "0";
};

/// Of tables.
pub static TABLE_KEPT: &[KeptRow] = kept_rows! {
    mutable old Written "cache_index_and_filter_blocks_with_high_priority" Kind::Flag, "true";
    mutable newer Written "decouple_partitioned_filters" Kind::Flag, "true";
    mutable newer Written "detect_filter_construct_corruption" Kind::Flag, "false";
    mutable newer Written "fail_if_no_udi_on_open" Kind::Flag, "false";
    mutable old Written "flush_block_policy_factory" Kind::Object, "FlushBlockBySizePolicyFactory";
    mutable newer Written "index_block_search_type" Kind::Words(&["kBinary", "kInterpolation", "kAuto"]), "kBinary";
    mutable newer Written "initial_auto_readahead_size" Kind::Number64, "8192";
    mutable old Written "max_auto_readahead_size" Kind::Number64, "262144";
    mutable old Written "metadata_cache_options" Kind::Fields(PINNED, TIERS), "{unpartitioned_pinning=kFallback;partition_pinning=kFallback;top_level_index_pinning=kFallback;}";
    mutable newer Written "num_file_reads_for_auto_readahead" Kind::Number64, "2";
    mutable old Written "optimize_filters_for_memory" Kind::Flag, "true";
    mutable old Written "pin_top_level_index_and_filter" Kind::Flag, "true";
    mutable newer Written "super_block_alignment_size" Kind::Number64, "0";
    mutable newer Written "super_block_alignment_space_overhead_ratio" Kind::Number64, "128";
    mutable newer Written "uniform_cv_threshold" Kind::Real, "-1.000000";
    mutable newer Written "use_udi_as_primary_index" Kind::Flag, "false";
    mutable newer Written "user_defined_index_factory" Kind::Object, "nullptr";
};

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(file: &str) -> BTreeMap<(String, String), String> {
        let mut section = String::new();
        let mut lines = BTreeMap::new();
        for line in file.lines().map(str::trim) {
            if let Some(title) = line.strip_prefix('[') {
                section = title.split([' ', ']', '/']).next().unwrap().to_string();
            } else if let Some((name, value)) = line.split_once('=') {
                lines.insert((section.clone(), name.to_string()), value.to_string());
            }
        }
        lines
    }

    #[test]
    fn every_name_of_rocksdbs_file_acts_or_is_kept_with_its_default() {
        let newest = sections(include_str!("../../../fixtures/11.8.1-basic/OPTIONS-000007"));
        let oldest = sections(include_str!("../../../fixtures/6.29.5-basic/OPTIONS-000007"));
        let named = |section: &str| -> (Vec<&str>, &[KeptRow]) {
            match section {
                "DBOptions" => (crate::rows::DB_ROWS.iter().map(|row| row.name).collect(), DB_KEPT),
                "CFOptions" => (crate::rows::CF_ROWS.iter().map(|row| row.name).collect(), CF_KEPT),
                _ => (crate::rows::TABLE_ROWS.iter().map(|row| row.name).collect(), TABLE_KEPT),
            }
        };
        for ((section, name), value) in newest.iter().filter(|((section, _), _)| section.ends_with("Options"))
        {
            let (acting, kept) = named(section);
            if acting.contains(&name.as_str()) || name == "table_factory" {
                continue;
            }
            let row = kept.iter().find(|row| row.name == name);
            let row = row.unwrap_or_else(|| panic!("{section} {name} is nowhere"));
            assert_eq!(row.default, value, "{name}");
            assert_eq!(row.newer, !oldest.contains_key(&(section.clone(), name.clone())), "{name}");
            let mut set = Kept::default();
            assert!(set.set(kept, name, value).unwrap(), "{name}");
            assert_eq!(set, Kept::default(), "{name}: its default is not kept");
        }
    }

    #[test]
    fn values_are_kept_as_rocksdb_prints_them() {
        let mut kept = Kept::default();
        for (name, text, printed) in [
            ("memtable_factory", "vector:1024", "{id=VectorRepFactory;count=1024;}"),
            ("memtable_factory", "{id=VectorRepFactory;count=1024;}", "{id=VectorRepFactory;count=1024;}"),
            ("memtable_factory", "id=skip_list;lookahead=3;", "SkipListFactory:3"),
            ("memtable_factory", "skip_list", "SkipListFactory"),
            ("sample_for_compression", "64MB", "67108864"),
            ("memtable_whole_key_filtering", "1", "true"),
            ("last_level_temperature", "kWarm", "kWarm"),
            ("max_bytes_for_level_multiplier_additional", "1:2k", "1:2048"),
            ("blob_cache", "1M", "1048576"),
            ("blob_cache", "{capacity=2k;num_shard_bits=4;}", "2048"),
            ("blob_cache", "nullptr", ""),
        ] {
            assert!(kept.set(CF_KEPT, name, text).unwrap(), "{name}");
            let row = CF_KEPT.iter().find(|row| row.name == name).unwrap();
            assert_eq!(kept.get(name).unwrap_or(row.default), printed, "{name}");
        }
        for (text, printed) in [
            ("SstPartitionerFixedPrefixFactory", Some("{id=SstPartitionerFixedPrefixFactory;length=0;}")),
            ("{length=7;}", Some("{id=SstPartitionerFixedPrefixFactory;length=7;}")),
            ("nullptr", None),
            (
                "{id=SstPartitionerFixedPrefixFactory; length=10;}",
                Some("{id=SstPartitionerFixedPrefixFactory;length=10;}"),
            ),
            (
                "id=SstPartitionerFixedPrefixFactory;length=1k",
                Some("{id=SstPartitionerFixedPrefixFactory;length=1024;}"),
            ),
            ("", None),
        ] {
            assert!(kept.set(CF_KEPT, PARTITIONER, text).unwrap());
            assert_eq!(kept.get(PARTITIONER), printed, "{text}");
            let length = printed.map(|text| text.rsplit(['=', ';']).nth(1).unwrap().parse().unwrap());
            assert_eq!(kept.partition_prefix(), length, "{text}");
        }
        for text in [
            "SstPartitionerFixedPrefix",
            "{length=7;}",
            "{id=mine;}",
            "{id=SstPartitionerFixedPrefixFactory;unknown=1;}",
        ] {
            let error = kept.set(CF_KEPT, PARTITIONER, text).unwrap_err();
            assert!(error.to_string().contains(PARTITIONER), "{error}");
        }
        kept.set(TABLE_KEPT, "metadata_cache_options", "{partition_pinning=kAll;}").unwrap();
        kept.set(TABLE_KEPT, "metadata_cache_options", "top_level_index_pinning=kNone").unwrap();
        assert_eq!(
            kept.get("metadata_cache_options"),
            Some("{unpartitioned_pinning=kFallback;partition_pinning=kAll;top_level_index_pinning=kNone;}")
        );
        for (name, text) in [("memtable_whole_key_filtering", "perhaps"), ("memtable_factory", "cuckoo")] {
            assert!(kept.set(CF_KEPT, name, text).unwrap_err().to_string().contains(name));
        }
        assert!(!kept.set(CF_KEPT, "no_such_option", "1").unwrap());
    }
}
