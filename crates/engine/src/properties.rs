//! Properties: facts about the database, under RocksDB's names.
//!
//! The statistics text has RocksDB's shape, so that tools that parse it by its header words work unchanged.
//! Source: RocksDB `include/rocksdb/db.h` (`struct Properties`), `db/internal_stats.cc`.

use crate::column_family::{ColumnFamily, DEFAULT_COLUMN_FAMILY};
use crate::compaction::level_shape::LevelShape;
use crate::core::Core;
use crate::file_properties::{blob_stats, file_property_int, six_digits, table_property};
use crate::info_log::log_line;
use crate::state::{CfState, DbState};
use crate::stats_text::{MB, cf_stats, db_stall_line, db_stats, human_size, sstables, stall_line};
use crate::write::stall_condition::StallCondition;
use outcrop_base::CfId;
use outcrop_cache::{Freshness, Kind};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PREFIX: &str = "rocksdb.";

/// See [`crate::Db::property`].
pub fn property(core: &Core, cf: &ColumnFamily, name: &str) -> Option<String> {
    if let Some(number) = property_int(core, cf, name) {
        return Some(number.to_string());
    }
    let name = name.strip_prefix(PREFIX).filter(|_| core.ctx.owns(cf))?;
    if name == "options-statistics" {
        return core.ctx.monitor.statistics.as_ref().map(|statistics| statistics.text());
    }
    if let Some(text) = table_property(core, cf, name) {
        return Some(text);
    }
    // Before the state is locked: it may look at all descriptors of the cache.
    let cache = match name {
        "block-cache-entry-stats" => return cache_entry_stats(core, cf, Freshness::Asked),
        "fast-block-cache-entry-stats" => return cache_entry_stats(core, cf, Freshness::Alongside),
        "cfstats" | "cfstats-no-file-histogram" | "stats" => {
            cache_entry_stats(core, cf, Freshness::Alongside)
        }
        _ => None,
    };
    let state = core.versions.state.lock();
    let cf_state = state.column_families.get(&cf.id())?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let level: usize = level.parse().ok()?;
        return Some(cf_state.version.levels.get(level)?.files.len().to_string());
    }
    match name {
        "levelstats" => Some(level_table(cf_state)),
        "sstables" => Some(sstables(cf_state)),
        "cfstats" => Some(with_cache(core, cf_state, true, cache) + &file_histogram(cf)),
        "cfstats-no-file-histogram" => Some(with_cache(core, cf_state, false, cache)),
        "cf-write-stall-stats" | "cfwritestallstats" => Some(stall_line(cf_state)),
        "cf-file-histogram" => Some(file_histogram(cf)),
        "blob-stats" => Some(blob_stats(&cf_state.version)),
        "db-write-stall-stats" => Some(db_stall_line(core)),
        "dbstats" => Some(db_stats(core)),
        "stats" => Some(with_cache(core, cf_state, true, cache) + &file_histogram(cf) + &db_stats(core)),
        _ => None,
    }
}

/// See [`crate::Db::property_int`].
pub fn property_int(core: &Core, cf: &ColumnFamily, name: &str) -> Option<u64> {
    let name = name.strip_prefix(PREFIX).filter(|_| core.ctx.owns(cf))?;
    if let Some(number) = cache_property(cf, name) {
        return Some(number);
    }
    let state = core.versions.state.lock();
    if name == "background-errors" && cf.name() != DEFAULT_COLUMN_FAMILY {
        // Counted with the default column family, as in RocksDB: a sum over all of them counts each error once.
        return Some(0);
    }
    if let Some(number) = db_property_int(core, &state, name) {
        return Some(number);
    }
    let cf_state = state.column_families.get(&cf.id())?;
    cf_property_int(cf_state, name).or_else(|| file_property_int(&state, cf_state, name))
}

/// The text of `rocksdb.cfstats-no-file-histogram`.
fn with_cache(core: &Core, state: &CfState, starts_interval: bool, cache: Option<String>) -> String {
    cf_stats(core, state, starts_interval) + &cache.unwrap_or_default()
}

/// The text of `rocksdb.block-cache-entry-stats`; that of the fast one may be older.
fn cache_entry_stats(core: &Core, cf: &ColumnFamily, freshness: Freshness) -> Option<String> {
    let cache = cf.block_cache.as_ref()?;
    let clock = &*core.ctx.env.clock;
    let survey = cache.survey(clock, freshness);
    let mut text = format!(
        "Block cache Outcrop@{:p}#{} capacity: {} seed: 0 usage: {} table_size: {} occupancy: {} \
         collections: {} last_copies: {} last_secs: {} secs_since: {}\n\
         Block cache entry stats(count,size,portion):",
        Arc::as_ptr(cache),
        std::process::id(),
        human_size(survey.capacity),
        human_size(survey.usage),
        cache.table_size(),
        survey.entries,
        survey.number,
        survey.copies,
        six_digits(survey.ended_micros.saturating_sub(survey.began_micros) as f64 / 1e6),
        clock.now_micros().saturating_sub(survey.ended_micros) / 1_000_000,
    );
    // Roles in RocksDB's order.
    for (role, kind) in [
        ("DataBlock", Kind::Data),
        ("FilterBlock", Kind::Filter),
        ("IndexBlock", Kind::Index),
        ("BlobValue", Kind::Blob),
    ] {
        let (count, bytes) = survey.by_kind[kind as usize];
        if count > 0 {
            let share = six_digits(100.0 * bytes as f64 / survey.capacity as f64);
            let _ = write!(text, " {role}({count},{},{share}%)", human_size(bytes));
        }
    }
    Some(text + "\n")
}

fn db_property_int(core: &Core, state: &DbState, name: &str) -> Option<u64> {
    Some(match name {
        "num-running-compactions" => state.running_compactions as u64,
        "num-running-flushes" => state.running_flushes as u64,
        "background-errors" => state.background_errors.max(u64::from(state.severity.is_some())),
        "obsolete-sst-files-size" => core.ctx.background.obsolete_table_bytes(),
        "num-snapshots" => core.snapshots.count() as u64,
        "oldest-snapshot-time" => core.snapshots.oldest_seconds().unwrap_or(0),
        "oldest-snapshot-sequence" => core.snapshots.oldest().map_or(0, |seq| seq.0),
        "actual-delayed-write-rate" => core.versions.stall.delayed_rate(),
        "is-write-stopped" => u64::from(core.versions.stall.condition() == StallCondition::Stopped),
        "is-file-deletions-enabled" => u64::from(!state.keeps_files()),
        "min-log-number-to-keep" => state.min_wal_needed(core.versions.current_wal()).0,
        _ => return None,
    })
}

/// Writes the statistics to LOG if `stats_dump_period_sec` have passed since the last time.
pub fn dump_stats_if_due(core: &Core) {
    let period = u64::from(core.ctx.live.load().stats_dump_period_sec) * 1_000_000;
    let now = core.ctx.env.clock.now_micros();
    let last = core.commit.stats.dumped_micros.load(Ordering::Relaxed);
    if period == 0 || now < last.max(core.opened_micros).saturating_add(period) {
        return;
    }
    // Relaxed: the thread that changes it writes the text, no other does.
    let claimed = core
        .commit
        .stats
        .dumped_micros
        .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok();
    if claimed {
        // Before the state is locked, as in `property`.
        let of_cache = |cf: &Arc<ColumnFamily>| cache_entry_stats(core, cf, Freshness::Alongside);
        let mut caches: HashMap<CfId, _> =
            core.registry.load().iter().map(|(id, cf)| (*id, of_cache(cf))).collect();
        let text = {
            let state = core.versions.state.lock();
            let of_family = |(id, cf)| with_cache(core, cf, true, caches.remove(id).flatten());
            state.column_families.iter().map(of_family).collect::<String>()
        };
        log_line!(core.ctx, "------- DUMPING STATS -------{text}{}", db_stats(core));
        if let Some(statistics) = &core.ctx.monitor.statistics {
            log_line!(core.ctx, "STATISTICS:\n{}", statistics.text());
        }
    }
}

fn cache_property(cf: &ColumnFamily, name: &str) -> Option<u64> {
    let (cache, name) = match name.strip_prefix("block-cache-") {
        Some(name) => (cf.block_cache.as_ref(), name),
        // Of one of its own, as in RocksDB.
        None => (Some(cf.blob_cache.as_ref()?), name.strip_prefix("blob-cache-")?),
    };
    Some(match name {
        "capacity" => cache.map_or(0, |cache| cache.capacity() as u64),
        "usage" => cache.map_or(0, |cache| cache.usage() as u64),
        "pinned-usage" => cache.map_or(0, |cache| cache.pinned_usage() as u64),
        _ => return None,
    })
}

fn cf_property_int(state: &CfState, name: &str) -> Option<u64> {
    let sealed = || state.sealed.iter().map(|sealed| &sealed.memtable);
    let tables = || state.version.files().filter_map(|(_, file)| file.runtime.table.get());
    Some(match name {
        "num-immutable-mem-table" => state.sealed.len() as u64,
        "num-immutable-mem-table-flushed" => 0,
        "mem-table-flush-pending" => u64::from(state.wants_flush()),
        "compaction-pending" => u64::from(state.debt.needs_compaction),
        "cur-size-active-mem-table" => state.memtable.memory_usage() as u64,
        "cur-size-all-mem-tables" | "size-all-mem-tables" => {
            (state.memtable.memory_usage() + sealed().map(|m| m.memory_usage()).sum::<usize>()) as u64
        }
        "num-entries-active-mem-table" => state.memtable.num_entries(),
        "num-entries-imm-mem-tables" => sealed().map(|m| m.num_entries()).sum(),
        "num-deletes-active-mem-table" => state.memtable.num_deletes(),
        "num-deletes-imm-mem-tables" => sealed().map(|m| m.num_deletes()).sum(),
        "estimate-num-keys" => {
            // Deletions in memory count against entries in tables.
            let in_memory = || std::iter::once(&state.memtable).chain(sealed());
            let of_tables = || tables().map(|table| table.properties());
            let deletions = of_tables().map(|p| p.num_deletions).sum::<u64>();
            let entries = of_tables().map(|p| p.num_entries).sum::<u64>();
            let entries =
                entries.saturating_sub(2 * deletions) + in_memory().map(|m| m.num_entries()).sum::<u64>();
            entries.saturating_sub(2 * in_memory().map(|m| m.num_deletes()).sum::<u64>())
        }
        "estimate-table-readers-mem" => tables().map(|table| table.memory_usage() as u64).sum(),
        "estimate-pending-compaction-bytes" => state.debt.pending_bytes,
        "base-level" => LevelShape::of(&state.version, &state.cf.options.load()).base_level as u64,
        "total-sst-files-size" | "live-sst-files-size" | "estimate-live-data-size" => {
            state.version.total_bytes()
        }
        _ => return None,
    })
}

/// The text of `rocksdb.cf-file-histogram`: its header alone, for reads of files are not timed.
fn file_histogram(cf: &ColumnFamily) -> String {
    format!("\n** File Read Latency Histogram By Level [{}] **\n", cf.name())
}

/// The text of `rocksdb.levelstats`.
fn level_table(state: &CfState) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for (number, level) in state.version.levels.iter().enumerate() {
        let _ = writeln!(text, "{number:>3} {:>8} {:>8.0}", level.files.len(), level.size as f64 / MB);
    }
    text
}
