//! Rejects combinations of options with which no database is opened.
//!
//! They are looked at as given, before `sanitize` corrects what can be corrected.
//! Source: RocksDB `db/db_impl/db_impl_open.cc` and `db/column_family.cc`, `ValidateOptions`;
//! `table/block_based/block_based_table_factory.cc`, `BlockBasedTableFactory::ValidateOptions`.

use crate::kept::{CF_KEPT, DB_KEPT, Fate, Kept, KeptRow, TABLE_KEPT};
use crate::offpeak;
use crate::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompactionStyle, CompressionType, DataBlockIndexType,
    DbOptions, IndexType, Prepopulate,
};
use outcrop_base::{Error, Result};

/// Most levels: each costs memory in every version. RocksDB takes any number that it has memory for.
const MOST_LEVELS: i32 = 1024;

/// Most paths: the MANIFEST's number of one is below that.
const MOST_PATHS: usize = 4;

fn invalid(what: impl Into<String>) -> Result<()> {
    Err(Error::invalid_argument(what.into()))
}

fn not_supported(what: impl Into<String>) -> Result<()> {
    Err(Error::not_supported(what.into()))
}

/// Refuses settings of a database, whatever its column families.
///
/// # Errors
/// InvalidArgument, NotSupported where RocksDB says so or where the engine lacks what is asked for.
pub fn db(options: &DbOptions) -> Result<()> {
    refuse_kept(DB_KEPT, &options.kept)?;
    if options.keep_log_file_num == 0 {
        return invalid("keep_log_file_num must be greater than 0");
    }
    let flag = |name: &str| options.kept.flag(name, false);
    let concurrent = options.kept.flag("allow_concurrent_memtable_write", true);
    if options.kept.get("read_io_executor_threads").is_some_and(|n| n.starts_with('-') || n == "0") {
        return invalid("read_io_executor_threads must be greater than zero");
    }
    if options.db_paths.len() > MOST_PATHS {
        return not_supported("More than four DB paths are not supported yet. ");
    }
    mapped_and_direct(options)?;
    if flag("unordered_write") && !concurrent {
        return invalid("unordered_write is incompatible with !allow_concurrent_memtable_write");
    }
    if flag("unordered_write") && flag("enable_pipelined_write") {
        return invalid("unordered_write is incompatible with enable_pipelined_write");
    }
    if options.atomic_flush && flag("enable_pipelined_write") {
        return invalid("atomic_flush is incompatible with enable_pipelined_write");
    }
    if options.use_direct_io_for_flush_and_compaction && options.writable_file_max_buffer_size == 0 {
        return invalid("writes in direct IO require writable_file_max_buffer_size > 0");
    }
    if options.kept.get("daily_offpeak_time_utc").is_some_and(|times| offpeak::parse(times).is_none()) {
        return invalid("daily_offpeak_time_utc is two different times, as in 04:30-07:30");
    }
    if !options.write_dbid_to_manifest && !options.write_identity_file {
        return invalid("write_dbid_to_manifest and write_identity_file cannot both be false");
    }
    Ok(())
}

/// Files are mapped or read and written past the page cache, not both.
fn mapped_and_direct(options: &DbOptions) -> Result<()> {
    let flag = |name: &str| options.kept.flag(name, false);
    if options.allow_mmap_reads && options.use_direct_reads {
        return not_supported(
            "If memory mapped reads (allow_mmap_reads) are enabled then direct I/O reads (use_direct_reads) must be \
             disabled. ",
        );
    }
    if options.allow_mmap_reads && flag("use_direct_io_for_compaction_reads") {
        return not_supported(
            "If memory mapped reads (allow_mmap_reads) are enabled then compaction-only direct I/O reads \
             (use_direct_io_for_compaction_reads) must be disabled. ",
        );
    }
    if flag("allow_mmap_writes") && options.use_direct_io_for_flush_and_compaction {
        return not_supported(
            "If memory mapped writes (allow_mmap_writes) are enabled then direct I/O writes \
             (use_direct_io_for_flush_and_compaction) must be disabled. ",
        );
    }
    Ok(())
}

/// Numbers that an OPTIONS file could not hold: RocksDB finds out when it reads its own again, and opens nothing.
fn finite(options: &ColumnFamilyOptions) -> Result<()> {
    let numbers = [
        ("max_bytes_for_level_multiplier", options.max_bytes_for_level_multiplier),
        ("memtable_prefix_bloom_size_ratio", options.memtable_prefix_bloom_size_ratio),
        ("blob_garbage_collection_age_cutoff", options.blob_garbage_collection_age_cutoff),
        ("blob_garbage_collection_force_threshold", options.blob_garbage_collection_force_threshold),
        ("data_block_hash_table_util_ratio", options.table.data_block_hash_table_util_ratio),
    ];
    match numbers.iter().find(|(_, number)| !number.is_finite()) {
        Some((name, number)) => invalid(format!("{name} is {number}")),
        None => Ok(()),
    }
}

/// Refuses settings of a column family in a database.
///
/// # Errors
/// As [`db`].
pub fn column_family(options: &ColumnFamilyOptions, db: &DbOptions) -> Result<()> {
    refuse_kept(CF_KEPT, &options.kept)?;
    refuse_kept(TABLE_KEPT, &options.table.kept)?;
    finite(options)?;
    compression(options)?;
    with_database(options, db)?;
    blobs(options)?;
    let threshold = options.kept.get("read_triggered_compaction_threshold").map(str::parse::<f64>);
    if threshold.is_some_and(|value| !value.is_ok_and(|value| value >= 0.0 && value.is_finite())) {
        return invalid("read_triggered_compaction_threshold must be >= 0.0 and finite. Use 0.0 to disable.");
    }
    for name in ["memtable_protection_bytes_per_key", "block_protection_bytes_per_key"] {
        if options.kept.number(name).is_some_and(|bytes| !matches!(bytes, 1 | 2 | 4 | 8)) {
            return not_supported(format!("{name} can be 0, 1, 2, 4 or 8"));
        }
    }
    compaction(options)?;
    table(&options.table)?;
    if options.table.index_type == IndexType::HashSearch && options.prefix_extractor.is_none() {
        return invalid("Hash index is specified for block-based table, but prefix_extractor is not given");
    }
    if options.table.kept.get("index_block_search_type") == Some("kInterpolation")
        && options.comparator.as_deref().is_some_and(|name| name != "leveldb.BytewiseComparator")
    {
        return invalid("Interpolation search requires BytewiseComparator");
    }
    Ok(())
}

fn compression(options: &ColumnFamilyOptions) -> Result<()> {
    if options.compression_opts.zstd_max_train_bytes > 0 && options.compression_opts.max_dict_bytes == 0 {
        return invalid(
            "The dictionary size limit (`CompressionOptions::max_dict_bytes`) should be nonzero if we're using \
             zstd's dictionary generator.",
        );
    }
    if !options.table.block_align {
        return Ok(());
    }
    if !options.table.block_size.is_power_of_two() && options.table.block_size != 0 {
        return invalid("Block alignment requested but block size is not a power of 2");
    }
    let codecs = options.compression_per_level.iter().chain(&options.bottommost_compression);
    if codecs.chain([&options.compression]).any(|codec| *codec != CompressionType::None) {
        return invalid("block_align is for tables without compression");
    }
    Ok(())
}

/// Source: RocksDB `CheckCFPathsSupported`.
fn paths(options: &ColumnFamilyOptions, db: &DbOptions) -> Result<()> {
    if options.cf_paths.len() > MOST_PATHS {
        return not_supported("More than four CF paths are not supported yet. ");
    }
    if matches!(options.compaction_style, CompactionStyle::Level | CompactionStyle::Universal) {
        return Ok(());
    }
    let of = match (options.cf_paths.len(), db.db_paths.len()) {
        (2.., _) => "CF",
        (0, 2..) => "DB",
        _ => return Ok(()),
    };
    not_supported(format!(
        "More than one {of} paths are only supported in universal and level compaction styles. "
    ))
}

/// The rules about database and column family together.
fn with_database(options: &ColumnFamilyOptions, db: &DbOptions) -> Result<()> {
    paths(options, db)?;
    let concurrent = db.kept.flag("allow_concurrent_memtable_write", true);
    let unordered = db.kept.flag("unordered_write", false);
    if concurrent && options.kept.flag("inplace_update_support", false) {
        return invalid(
            "In-place memtable updates (inplace_update_support) is not compatible with concurrent writes \
             (allow_concurrent_memtable_write)",
        );
    }
    let one_writer = |name: &str| matches!(name, "HashSkipListRepFactory" | "HashLinkListRepFactory");
    if concurrent && options.kept.get("memtable_factory").is_some_and(one_writer) {
        return invalid("Memtable doesn't allow concurrent writes (allow_concurrent_memtable_write)");
    }
    if unordered && options.max_successive_merges != 0 {
        return invalid("max_successive_merges > 0 is incompatible with unordered_write");
    }
    if options.enable_blob_direct_write {
        let others = ["enable_pipelined_write", "two_write_queues", "unordered_write"];
        let mempurge = options.kept.get("experimental_mempurge_threshold").map(str::parse::<f64>);
        if concurrent
            || others.iter().any(|name| db.kept.flag(name, false))
            || mempurge.is_some_and(|threshold| threshold.is_ok_and(|value| value > 0.0))
        {
            return not_supported("enable_blob_direct_write needs one writer at a time, and no mempurge");
        }
    }
    if options.compaction_style == CompactionStyle::Fifo && db.max_open_files != -1 && options.ttl > 0 {
        return not_supported("FIFO compaction only supported with max_open_files = -1.");
    }
    if db.kept.flag("open_files_async", false) {
        if options.compaction_style == CompactionStyle::Fifo {
            return not_supported("FIFO compaction is not supported with open_files_async = true.");
        }
        if !db.kept.flag("skip_stats_update_on_db_open", false) {
            return invalid("open_files_async requires skip_stats_update_on_db_open = true.");
        }
    }
    Ok(())
}

fn blobs(options: &ColumnFamilyOptions) -> Result<()> {
    if options.enable_blob_garbage_collection {
        if !(0.0..=1.0).contains(&options.blob_garbage_collection_age_cutoff) {
            return invalid("The age cutoff for blob garbage collection should be in the range [0.0, 1.0].");
        }
        if !(0.0..=1.0).contains(&options.blob_garbage_collection_force_threshold) {
            return invalid(
                "The garbage ratio threshold for forcing blob garbage collection should be in the range [0.0, 1.0].",
            );
        }
    }
    if options.prepopulate_blob_cache == Prepopulate::FlushAndCompaction {
        return invalid("prepopulate_blob_cache can be kDisable or kFlushOnly");
    }
    Ok(())
}

fn compaction(options: &ColumnFamilyOptions) -> Result<()> {
    if options.num_levels > MOST_LEVELS {
        return invalid(format!("num_levels is {}, at most {MOST_LEVELS} can be", options.num_levels));
    }
    if options.compaction_style != CompactionStyle::Universal {
        return Ok(());
    }
    let most = options.compaction_options_universal.max_read_amp;
    if most < -1 {
        return not_supported("CompactionOptionsUniversal::max_read_amp should be at least -1.");
    }
    if most > 0 && most < options.level0_file_num_compaction_trigger {
        return not_supported(
            "CompactionOptionsUniversal::max_read_amp limits the number of sorted runs but is smaller than the \
             compaction trigger level0_file_num_compaction_trigger.",
        );
    }
    Ok(())
}

/// Refuses settings of tables, of those that no column family is needed for.
///
/// # Errors
/// As [`db`].
pub fn table(options: &BlockBasedTableOptions) -> Result<()> {
    let cached = [
        ("cache_index_and_filter_blocks", options.cache_index_and_filter_blocks),
        ("pin_l0_filter_and_index_blocks_in_cache", options.pin_l0_filter_and_index_blocks_in_cache),
    ];
    if let Some((name, _)) = cached.iter().find(|(_, set)| *set && options.no_block_cache) {
        return invalid(format!("Enable {name}, , but block cache is disabled"));
    }
    if options.format_version > 7 {
        return invalid(
            "Unsupported BlockBasedTable format_version. Please check include/rocksdb/table.h for more info",
        );
    }
    if options.block_size > u64::from(u32::MAX) {
        return invalid("block size exceeds maximum number (4GiB) allowed");
    }
    let alignment = options.kept.number("super_block_alignment_size").unwrap_or(0);
    if alignment & alignment.wrapping_sub(1) != 0 {
        return invalid("Super Block alignment requested but super block alignment size is not a power of 2");
    }
    if alignment > u64::from(u32::MAX) {
        return invalid("Super block alignment size exceeds maximum number (4GiB) allowed");
    }
    if options.kept.number("super_block_alignment_space_overhead_ratio").is_some_and(|n| (1..4).contains(&n))
    {
        return invalid("Super block alignment space overhead is too high");
    }
    let ratio = options.data_block_hash_table_util_ratio;
    if options.data_block_index_type == DataBlockIndexType::BinaryAndHash && ratio <= 0.0 {
        return invalid(
            "data_block_hash_table_util_ratio should be greater than 0 when data_block_index_type is set to \
             kDataBlockBinaryAndHash",
        );
    }
    if options.kept.flag("use_udi_as_primary_index", false) {
        return invalid("use_udi_as_primary_index requires user_defined_index_factory");
    }
    Ok(())
}

/// Refuses what the engine lacks and cannot do without a word.
fn refuse_kept(rows: &[KeptRow], kept: &Kept) -> Result<()> {
    let refused = |name: &str| rows.iter().any(|row| row.name == name && row.fate == Fate::Refused);
    match kept.iter().find(|(name, _)| refused(name)) {
        Some((name, value)) => not_supported(format!("option {name}={value}")),
        None => Ok(()),
    }
}
