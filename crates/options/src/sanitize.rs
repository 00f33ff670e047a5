//! Values that RocksDB corrects when a database is opened: one row a rule, in RocksDB's order.
//!
//! ```text
//! options as given --validate--> refused, or --sanitize--> options in force: what engine and OPTIONS file see
//! ```
//! The rows are applied when a database is opened, when a column family is created, and by `set_options`, where RocksDB
//! leaves a value that it would correct at the next opening. Getters of an options object show what was given.
//! The caller is told of each change that a rule makes, and logs it.
//!
//! Invariant: sanitizing what was sanitized changes nothing.

use crate::column_family::AGE_BY_STYLE;
use crate::rows::{CF_ROWS, DB_ROWS, Row, TABLE_ROWS};
use crate::styles::{self, stricter};
use crate::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompactionStyle, CompressionType, DbOptions, IndexType,
    WalRecoveryMode,
};
use std::path::{Component, Path, PathBuf};

const THIRTY_DAYS: u64 = 30 * 24 * 60 * 60;

/// A value that was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The option.
    pub option: &'static str,
    /// Its value as given.
    pub from: String,
    /// Its value in force.
    pub to: String,
}

impl std::fmt::Display for Correction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "option {}={} is taken as {}", self.option, self.from, self.to)
    }
}

/// The facts besides the options that rules for a database look at.
#[derive(Clone, Debug)]
pub struct DbContext {
    /// Its directory.
    pub path: PathBuf,
    /// Files that the process may hold open; `None`: nobody knows.
    pub file_limit: Option<u64>,
}

/// The facts besides the options that rules for a column family look at.
#[derive(Clone, Copy, Debug)]
pub struct CfContext {
    /// `atomic_flush` of its database.
    pub atomic_flush: bool,
    /// `allow_ingest_behind` of its database.
    pub ingest_behind: bool,
    /// It has a compaction filter, or a factory of one.
    pub has_filter: bool,
}

/// One rule.
struct Rule<T, C> {
    /// The option that it corrects.
    option: &'static str,
    apply: fn(&mut T, &C),
}

macro_rules! rules {
    ($($option:literal => $apply:expr;)*) => { &[$(Rule { option: $option, apply: $apply }),*] };
}

/// Source: RocksDB `db/db_impl/db_impl_open.cc`, `SanitizeOptions`.
const DB_RULES: &[Rule<DbOptions, DbContext>] = rules! {
    "max_open_files" => |o, context| {
        /// RocksDB's answer where the system has none.
        const NO_LIMIT: u64 = 0x40_0000;
        if o.max_open_files != -1 {
            let most = context.file_limit.unwrap_or(NO_LIMIT).min(i32::MAX as u64) as i32;
            o.max_open_files = o.max_open_files.max(20).min(most.max(20));
        }
    };
    "bytes_per_sync" => |o, _| {
        if o.kept.number("rate_limiter_bytes_per_sec").is_some() && o.bytes_per_sync == 0 {
            o.bytes_per_sync = 1 << 20;
        }
    };
    "delayed_write_rate" => |o, _| {
        if o.delayed_write_rate == 0 {
            o.delayed_write_rate = o.kept.number("rate_limiter_bytes_per_sec").unwrap_or(16 << 20);
        }
    };
    "recycle_log_file_num" => |o, _| {
        // Such a mode cannot tell the rest of an older log from damage.
        let strict = matches!(
            o.wal_recovery_mode,
            WalRecoveryMode::TolerateCorruptedTailRecords | WalRecoveryMode::AbsoluteConsistency
        );
        if strict || o.wal_ttl_seconds > 0 || o.wal_size_limit_mb > 0 {
            o.recycle_log_file_num = 0;
        }
    };
    "async_wal_precreate" => |o, _| {
        if o.recycle_log_file_num != 0 {
            // Parsed before: it takes this value.
            let _ = o.kept.set(crate::kept::DB_KEPT, "async_wal_precreate", "false");
        }
    };
    "avoid_flush_during_recovery" => |o, _| {
        if o.kept.flag("allow_2pc", false) {
            let _ = o.kept.set(crate::kept::DB_KEPT, "avoid_flush_during_recovery", "false");
        }
    };
    "wal_dir" => |o, context| {
        let same = |dir: &PathBuf| normalized(dir) == normalized(&context.path);
        if o.wal_dir.as_ref().is_some_and(same) {
            o.wal_dir = None;
        }
        let Some(dir) = o.wal_dir.as_ref().and_then(|dir| dir.to_str()) else { return };
        if let Some(dir) = dir.strip_suffix('/').filter(|dir| !dir.is_empty()) {
            o.wal_dir = Some(dir.into());
        }
    };
    "wal_compression" => |o, _| {
        if o.wal_compression != CompressionType::Zstd {
            o.wal_compression = CompressionType::None;
        }
    };
};

/// A path without `.` and doubled separators.
fn normalized(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Source: RocksDB `db/column_family.cc`, `SanitizeCfOptions`.
const CF_RULES: &[Rule<ColumnFamilyOptions, CfContext>] = rules! {
    "write_buffer_size" => |o, _| o.write_buffer_size = o.write_buffer_size.clamp(64 << 10, 64 << 30);
    "arena_block_size" => |o, _| {
        if o.arena_block_size == 0 {
            o.arena_block_size = (o.write_buffer_size / 8).min(1 << 20).next_multiple_of(4 << 10);
        }
    };
    "min_write_buffer_number_to_merge" => |o, context| {
        let others = o.max_write_buffer_number.saturating_sub(1);
        let number = o.min_write_buffer_number_to_merge.min(others).max(1);
        // Column families that are flushed together cannot wait for each other.
        o.min_write_buffer_number_to_merge = if context.atomic_flush { 1 } else { number };
    };
    "num_levels" => |o, context| {
        let least = match context.ingest_behind || o.allow_ingest_behind {
            true => styles::of(o).least_levels_ingest_behind,
            false => styles::of(o).least_levels,
        };
        o.num_levels = o.num_levels.max(least);
    };
    "max_write_buffer_number" => |o, _| o.max_write_buffer_number = o.max_write_buffer_number.max(2);
    "max_write_buffer_size_to_maintain" => |o, _| {
        if o.max_write_buffer_size_to_maintain < 0 {
            let all = i64::from(o.max_write_buffer_number).saturating_mul(o.write_buffer_size as i64);
            o.max_write_buffer_size_to_maintain = all;
        }
    };
    "memtable_prefix_bloom_size_ratio" => |o, _| {
        o.memtable_prefix_bloom_size_ratio = o.memtable_prefix_bloom_size_ratio.clamp(0.0, 0.25);
    };
    "memtable_factory" => |o, _| {
        let hashes = |name: &str| name.starts_with("HashSkipList") || name.starts_with("HashLinkList");
        if o.prefix_extractor.is_none() && o.kept.get("memtable_factory").is_some_and(hashes) {
            // Parsed before: it takes this value.
            let _ = o.kept.set(crate::kept::CF_KEPT, "memtable_factory", "SkipListFactory");
        }
    };
    "level0_slowdown_writes_trigger" => |o, _| {
        if o.compaction_style == CompactionStyle::Fifo {
            o.level0_slowdown_writes_trigger = i32::MAX;
        }
    };
    "level0_stop_writes_trigger" => |o, _| {
        if o.compaction_style == CompactionStyle::Fifo {
            o.level0_stop_writes_trigger = i32::MAX;
        }
    };
    "max_bytes_for_level_multiplier" => |o, _| {
        if o.max_bytes_for_level_multiplier <= 0.0 {
            o.max_bytes_for_level_multiplier = 1.0;
        }
    };
    "level0_file_num_compaction_trigger" => |o, _| {
        if o.level0_file_num_compaction_trigger == 0 {
            o.level0_file_num_compaction_trigger = 1;
        }
    };
    // Writers are not slowed before a compaction is due, nor stopped before they are slowed.
    "level0_slowdown_writes_trigger" => |o, _| {
        o.level0_slowdown_writes_trigger =
            o.level0_slowdown_writes_trigger.max(o.level0_file_num_compaction_trigger);
    };
    "level0_stop_writes_trigger" => |o, _| {
        o.level0_stop_writes_trigger = o.level0_stop_writes_trigger.max(o.level0_slowdown_writes_trigger);
    };
    "soft_pending_compaction_bytes_limit" => |o, _| {
        let (soft, hard) = (o.soft_pending_compaction_bytes_limit, o.hard_pending_compaction_bytes_limit);
        if soft == 0 || (hard > 0 && soft > hard) {
            o.soft_pending_compaction_bytes_limit = hard;
        }
    };
    "level_compaction_dynamic_level_bytes" => |o, _| {
        // Which path a level fits into is known from its target size alone.
        o.level_compaction_dynamic_level_bytes &= styles::of(o).sized_levels && o.cf_paths.len() < 2;
    };
    "max_compaction_bytes" => |o, _| {
        let fifo_decides =
            o.compaction_style == CompactionStyle::Fifo && o.compaction_options_fifo.use_kv_ratio_compaction;
        if o.max_compaction_bytes == 0 && !fifo_decides {
            o.max_compaction_bytes = o.target_file_size_base.wrapping_mul(25);
        }
    };
    "ttl" => |o, _| {
        if o.ttl == AGE_BY_STYLE {
            o.ttl = THIRTY_DAYS;
        }
    };
    "periodic_compaction_seconds" => |o, context| {
        if o.periodic_compaction_seconds == AGE_BY_STYLE {
            let by_style = styles::of(o).default_period.unwrap_or_default();
            o.periodic_compaction_seconds = by_style[usize::from(context.has_filter)];
        }
        if styles::of(o).ttl_is_period {
            o.periodic_compaction_seconds = stricter(o.periodic_compaction_seconds, o.ttl);
        }
    };
    "last_level_temperature" => |o, _| {
        if o.compaction_style == CompactionStyle::Fifo {
            // Parsed before: it takes this value.
            let _ = o.kept.set(crate::kept::CF_KEPT, "last_level_temperature", "kUnknown");
        }
    };
    "enable_blob_direct_write" => |o, _| o.enable_blob_direct_write &= o.enable_blob_files;
    "blob_direct_write_partitions" => |o, _| {
        o.blob_direct_write_partitions = o.blob_direct_write_partitions.max(1);
    };
};

/// Source: RocksDB `table/block_based/block_based_table_factory.cc`, `InitializeOptions`.
const TABLE_RULES: &[Rule<BlockBasedTableOptions, ()>] = rules! {
    "block_size_deviation" => |o, _| {
        if !(0..=100).contains(&o.block_size_deviation) {
            o.block_size_deviation = 0;
        }
    };
    "block_restart_interval" => |o, _| o.block_restart_interval = o.block_restart_interval.max(1);
    "index_block_restart_interval" => |o, _| {
        let hashed = o.index_type == IndexType::HashSearch;
        o.index_block_restart_interval = if hashed { 1 } else { o.index_block_restart_interval.max(1) };
    };
    "partition_filters" => |o, _| o.partition_filters &= o.index_type == IndexType::TwoLevel;
    "format_version" => |o, _| o.format_version = o.format_version.max(2);
};

/// Applies rules, and says what they changed.
fn apply<T: Clone, C>(
    rules: &[Rule<T, C>],
    rows: &[Row<T>],
    kept: fn(&T) -> &crate::kept::Kept,
    options: &mut T,
    context: &C,
) -> Vec<Correction> {
    let shown = |options: &T, name: &str| match rows.iter().find(|row| row.name == name) {
        Some(row) => (row.get)(options),
        None => kept(options).get(name).unwrap_or("the default").to_string(),
    };
    let before = options.clone();
    rules.iter().for_each(|rule| (rule.apply)(options, context));
    let mut corrections: Vec<Correction> = Vec::new();
    for rule in rules {
        let (from, to) = (shown(&before, rule.option), shown(options, rule.option));
        if from != to && corrections.iter().all(|known| known.option != rule.option) {
            corrections.push(Correction { option: rule.option, from, to });
        }
    }
    corrections
}

/// Corrects settings of a database.
pub fn db(options: &mut DbOptions, context: &DbContext) -> Vec<Correction> {
    apply(DB_RULES, DB_ROWS, |o| &o.kept, options, context)
}

/// Corrects settings of a column family and of its tables.
pub fn column_family(options: &mut ColumnFamilyOptions, context: &CfContext) -> Vec<Correction> {
    let mut corrections = apply(CF_RULES, CF_ROWS, |o| &o.kept, options, context);
    // With it every column family has it.
    options.allow_ingest_behind |= context.ingest_behind;
    corrections.extend(table(&mut options.table));
    corrections
}

/// Corrects settings of tables.
pub fn table(options: &mut BlockBasedTableOptions) -> Vec<Correction> {
    apply(TABLE_RULES, TABLE_ROWS, |o| &o.kept, options, &())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::set_from_string;

    const PLAIN: CfContext = CfContext { atomic_flush: false, ingest_behind: false, has_filter: false };

    /// The options of `text` in force, and the names that were corrected.
    fn in_force(text: &str, context: CfContext) -> (ColumnFamilyOptions, Vec<&'static str>) {
        let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
        set_from_string(&mut db, &mut cf, text).unwrap();
        let corrections = column_family(&mut cf, &context);
        let again = cf.clone();
        assert_eq!(column_family(&mut cf, &context), [], "{text}: sanitizing twice");
        assert_eq!(cf, again);
        // The corrections that every default gets.
        let usual = ["arena_block_size", "max_compaction_bytes", "ttl", "periodic_compaction_seconds"];
        let names = corrections.into_iter().map(|correction| correction.option);
        (cf, names.filter(|name| !usual.contains(name)).collect())
    }

    #[test]
    fn writers_are_held_back_no_sooner_than_a_compaction_is_due() {
        for trigger in [1, 4, 20, 21, 36, 40, 100, 1_000_000] {
            for stop in [-1, 0, 1, 3, 36, 50] {
                let text =
                    format!("level0_file_num_compaction_trigger={trigger};level0_stop_writes_trigger={stop}");
                let (o, _) = in_force(&text, PLAIN);
                let order = [
                    o.level0_file_num_compaction_trigger,
                    o.level0_slowdown_writes_trigger,
                    o.level0_stop_writes_trigger,
                ];
                assert!(order.is_sorted() && order[0] == trigger, "{text}: {order:?}");
            }
        }
        let (o, names) = in_force("level0_file_num_compaction_trigger=40", PLAIN);
        assert_eq!((o.level0_slowdown_writes_trigger, o.level0_stop_writes_trigger), (40, 40));
        assert_eq!(names, ["level0_slowdown_writes_trigger", "level0_stop_writes_trigger"]);
        assert_eq!(
            in_force("level0_file_num_compaction_trigger=0", PLAIN).0.level0_file_num_compaction_trigger,
            1
        );
        let (o, _) = in_force("compaction_style=kCompactionStyleFIFO", PLAIN);
        assert_eq!((o.level0_slowdown_writes_trigger, o.level0_stop_writes_trigger), (i32::MAX, i32::MAX));
    }

    #[test]
    fn a_style_has_the_levels_it_needs() {
        let levels = |text: &str, context| in_force(text, context).0.num_levels;
        let behind = CfContext { ingest_behind: true, ..PLAIN };
        assert_eq!(levels("num_levels=1", PLAIN), 2);
        assert_eq!(levels("num_levels=-3", PLAIN), 2);
        assert_eq!(levels("num_levels=0;compaction_style=kCompactionStyleUniversal", PLAIN), 1);
        assert_eq!(levels("num_levels=1;compaction_style=kCompactionStyleUniversal", behind), 3);
        assert_eq!(levels("num_levels=1;compaction_style=kCompactionStyleFIFO", PLAIN), 1);
    }

    #[test]
    fn memtables_are_of_a_size_and_number_that_work() {
        let (o, names) = in_force("write_buffer_size=0;max_write_buffer_number=-7", PLAIN);
        assert_eq!((o.write_buffer_size, o.arena_block_size, o.max_write_buffer_number), (65536, 8192, 2));
        assert_eq!(names, ["write_buffer_size", "max_write_buffer_number"]);
        let merged = |text: &str, context| in_force(text, context).0.min_write_buffer_number_to_merge;
        assert_eq!(merged("min_write_buffer_number_to_merge=9;max_write_buffer_number=4", PLAIN), 3);
        assert_eq!(merged("min_write_buffer_number_to_merge=-2147483648", PLAIN), 1);
        assert_eq!(merged("max_write_buffer_number=-2147483648", PLAIN), 1);
        let atomic = CfContext { atomic_flush: true, ..PLAIN };
        assert_eq!(merged("min_write_buffer_number_to_merge=2;max_write_buffer_number=4", atomic), 1);
        let kept = |text: &str| in_force(text, PLAIN).0.max_write_buffer_size_to_maintain;
        assert_eq!(kept("max_write_buffer_size_to_maintain=-5"), 2 * (64 << 20));
        assert_eq!(
            kept(
                "max_write_buffer_size_to_maintain=-1;max_write_buffer_number=2147483647;write_buffer_size=64G"
            ),
            i64::MAX
        );
    }

    #[test]
    fn ages_follow_the_style() {
        let filtered = CfContext { has_filter: true, ..PLAIN };
        let ages = |text: &str, context| {
            let o = in_force(text, context).0;
            (o.ttl, o.periodic_compaction_seconds)
        };
        assert_eq!(ages("", PLAIN), (THIRTY_DAYS, 0));
        assert_eq!(ages("", filtered), (THIRTY_DAYS, THIRTY_DAYS));
        assert_eq!(ages("compaction_style=kCompactionStyleUniversal", PLAIN), (THIRTY_DAYS, THIRTY_DAYS));
        assert_eq!(ages("compaction_style=kCompactionStyleUniversal;ttl=60", PLAIN), (60, 60));
        assert_eq!(ages("compaction_style=kCompactionStyleUniversal;ttl=0", PLAIN), (0, THIRTY_DAYS));
    }

    #[test]
    fn tables_are_given_what_they_can_be_built_with() {
        let (o, names) = in_force(
            "block_based_table_factory={block_restart_interval=0;index_block_restart_interval=-5;\
             block_size_deviation=101;partition_filters=true;format_version=1;}",
            PLAIN,
        );
        let table = &o.table;
        assert_eq!((table.block_restart_interval, table.index_block_restart_interval), (1, 1));
        assert_eq!(
            (table.block_size_deviation, table.partition_filters, table.format_version),
            (0, false, 2)
        );
        assert_eq!(names.len(), 5);
    }

    #[test]
    fn a_database_has_files_and_a_rate() {
        let in_force = |text: &str| {
            let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
            set_from_string(&mut db, &mut cf, text).unwrap();
            super::db(&mut db, &DbContext { path: "/db".into(), file_limit: Some(1000) });
            db
        };
        let files = |text: &str| in_force(text).max_open_files;
        assert_eq!(
            ["-1", "-5", "0", "500", "5000"].map(|n| files(&format!("max_open_files={n}"))),
            [-1, 20, 20, 500, 1000]
        );
        assert_eq!(in_force("").delayed_write_rate, 16 << 20);
        let limited = in_force("rate_limiter_bytes_per_sec=5M");
        assert_eq!((limited.delayed_write_rate, limited.bytes_per_sync), (5 << 20, 1 << 20));
        let modes = "recycle_log_file_num=3;wal_recovery_mode=";
        assert_eq!(in_force(&format!("{modes}kAbsoluteConsistency")).recycle_log_file_num, 0);
        assert_eq!(in_force(&format!("{modes}kPointInTimeRecovery")).recycle_log_file_num, 3);
        assert_eq!(in_force("wal_dir=/db/./").wal_dir, None);
        assert_eq!(in_force("wal_dir=/other/").wal_dir.unwrap().as_os_str(), "/other");
        let flushes = in_force("avoid_flush_during_recovery=true;allow_2pc=true");
        assert!(!flushes.kept.flag("avoid_flush_during_recovery", false));
        assert_eq!(in_force("wal_compression=kLZ4Compression").wal_compression, CompressionType::None);
    }
}
