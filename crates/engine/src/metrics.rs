//! The metrics of a database as OpenMetrics text: for Prometheus and other readers of that form.
//!
//! ```text
//! properties, by column family   gauges      outcrop_sst_files_bytes{column_family="default"} 4096
//! counters of all databases      counters    outcrop_stall_seconds_total 0
//! statistics, if there are any   counters    rocksdb_block_cache_data_hit_total 17
//!                                histograms  rocksdb_db_get_seconds_bucket{le="1e-05"} 12
//! ```
//! Names of statistics are RocksDB's, with the unit moved to the end: microseconds and nanoseconds become seconds. Tickers and
//! histograms that this engine never changes are left out.

use crate::column_family::ColumnFamily;
use crate::core::Core;
use crate::memory_budget::MemoryBudget;
use crate::properties::property_int;
use crate::quarantine::find as quarantine;
use crate::state::CfState;
use outcrop_base::CfId;
use outcrop_cache::Cache;
use outcrop_monitor::{HistogramKind, Statistics, Ticker};
use std::fmt::Write;
use std::sync::Arc;

/// A property of a column family: its RocksDB name, the metric's name, its unit, and what it says.
type Gauge = (&'static str, &'static str, &'static str, &'static str);

const BY_FAMILY: [Gauge; 16] = [
    ("num-immutable-mem-table", "sealed_memtables", "", "Memtables that wait for flush"),
    ("cur-size-active-mem-table", "active_memtable_bytes", "bytes", "Memory of the memtable being written"),
    ("cur-size-all-mem-tables", "memtables_bytes", "bytes", "Memory of memtables that are not flushed"),
    ("num-entries-active-mem-table", "active_memtable_entries", "", "Entries in the memtable being written"),
    ("mem-table-flush-pending", "flush_pending", "", "1 if a flush is due"),
    ("compaction-pending", "compaction_pending", "", "1 if a compaction is due"),
    (
        "estimate-pending-compaction-bytes",
        "compaction_debt_bytes",
        "bytes",
        "Bytes that compactions have to rewrite",
    ),
    ("estimate-num-keys", "keys", "", "Keys, estimated from entries and deletions"),
    (
        "estimate-table-readers-mem",
        "table_readers_bytes",
        "bytes",
        "Memory of indexes and filters outside the block cache",
    ),
    ("estimate-live-data-size", "live_data_bytes", "bytes", "Bytes of tables that readers see"),
    ("total-sst-files-size", "sst_files_bytes", "bytes", "Bytes of all tables"),
    ("num-blob-files", "blob_files", "", "Blob files"),
    ("total-blob-file-size", "blob_files_bytes", "bytes", "Bytes of all blob files"),
    (
        "live-blob-file-garbage-size",
        "blob_garbage_bytes",
        "bytes",
        "Bytes of blob files that nothing refers to",
    ),
    (
        "block-cache-capacity",
        "block_cache_capacity_bytes",
        "bytes",
        "Capacity of the column family's block cache",
    ),
    (
        "block-cache-usage",
        "block_cache_usage_bytes",
        "bytes",
        "Bytes of blocks in the column family's block cache",
    ),
];

const OF_DATABASE: [Gauge; 8] = [
    ("num-running-flushes", "running_flushes", "", "Flushes that run"),
    ("num-running-compactions", "running_compactions", "", "Compactions that run"),
    ("background-errors", "background_errors", "", "Errors of flushes and compactions"),
    ("num-snapshots", "snapshots", "", "Snapshots that are held"),
    (
        "oldest-snapshot-time",
        "oldest_snapshot_timestamp_seconds",
        "seconds",
        "When the oldest snapshot was taken, since 1970; 0 if there is none",
    ),
    (
        "actual-delayed-write-rate",
        "delayed_write_bytes",
        "bytes",
        "Bytes per second that writes are slowed to; 0 if they are not",
    ),
    ("is-write-stopped", "write_stopped", "", "1 if writes wait for flushes or compactions"),
    ("is-file-deletions-enabled", "file_deletions_enabled", "", "1 if obsolete files are removed"),
];

/// See [`crate::Db::metrics`].
pub fn metrics(core: &Core) -> String {
    let mut text = Text(String::with_capacity(16 << 10));
    let families = core.registry.load();
    for (property, name, unit, help) in BY_FAMILY {
        text.head("gauge", &format!("outcrop_{name}"), unit, help);
        for cf in families.values() {
            if let Some(value) = property_int(core, cf, &format!("rocksdb.{property}")) {
                text.of_family(name, cf, value);
            }
        }
    }
    of_pinned_blocks(&mut text, families.values().map(|cf| &**cf));
    let levels: Vec<(String, usize, u64)> = {
        let state = core.versions.state.lock();
        let of = |cf: &CfState| {
            let name = escaped(cf.cf.name());
            let label = move |number| format!("column_family=\"{name}\",level=\"{number}\"");
            let levels = cf.version.levels.iter().enumerate();
            levels.map(|(number, level)| (label(number), level.files.len(), level.size)).collect::<Vec<_>>()
        };
        state.column_families.values().flat_map(of).collect()
    };
    text.head("gauge", "outcrop_level_files", "", "Tables of each level");
    levels.iter().for_each(|(label, files, _)| text.sample("outcrop_level_files", label, *files as f64));
    text.head("gauge", "outcrop_level_bytes", "bytes", "Bytes of the tables of each level");
    levels.iter().for_each(|(label, _, bytes)| text.sample("outcrop_level_bytes", label, *bytes as f64));
    if let Some(default) = families.get(&CfId::DEFAULT) {
        for (property, name, unit, help) in OF_DATABASE {
            if let Some(value) = property_int(core, default, &format!("rocksdb.{property}")) {
                text.head("gauge", &format!("outcrop_{name}"), unit, help);
                text.sample(&format!("outcrop_{name}"), "", value as f64);
            }
        }
    }
    let scrub = core.ctx.scrub.figures.progress();
    for (name, unit, value, help) in [
        ("scrubbed_files", "", scrub.files_verified, "Files that were verified in the background"),
        ("scrubbed_bytes", "bytes", scrub.bytes_verified, "Bytes that were verified in the background"),
        ("scrub_damaged_files", "", scrub.damaged_files, "Damaged files that were found in the background"),
        ("scrub_failed_files", "", scrub.failed_files, "Files that could not be read in the background"),
    ] {
        text.counter(&format!("outcrop_{name}"), unit, help, value as f64);
    }
    text.head("gauge", "outcrop_scrub_waiting_files", "", "Files that were not verified since the opening");
    text.sample("outcrop_scrub_waiting_files", "", scrub.files_to_verify as f64);
    text.head("gauge", "outcrop_quarantined_tables", "", "Damaged tables that compactions leave alone");
    text.sample("outcrop_quarantined_tables", "", quarantine::tables(core).len() as f64);
    if let Some(budget) = &core.ctx.objects.memory_budget {
        of_budget(&mut text, budget);
    }
    let stats = &core.commit.stats;
    for (name, unit, value, help) in [
        ("writes", "", stats.writes.get() as f64, "Calls that wrote"),
        ("keys_written", "", stats.keys_written.get() as f64, "Records written"),
        ("written_bytes", "bytes", stats.bytes_written.get() as f64, "Bytes of batches written"),
        ("wal_bytes", "bytes", stats.wal_bytes.get() as f64, "Bytes appended to WALs"),
        ("wal_syncs", "", stats.wal_syncs.get() as f64, "Syncs of WALs that writes asked for"),
        (
            "stall_seconds",
            "seconds",
            stats.stall_micros.get() as f64 / 1e6,
            "Time that writers were held back",
        ),
    ] {
        text.counter(&format!("outcrop_{name}"), unit, help, value);
    }
    if let Some(statistics) = &core.ctx.monitor.statistics {
        of_statistics(&mut text, statistics);
    }
    text.0 += "# EOF\n";
    text.0
}

/// The bytes in use of each column family's cache. To know it all descriptors of a cache are looked at: once, however
/// many share it.
fn of_pinned_blocks<'f>(text: &mut Text, families: impl Iterator<Item = &'f ColumnFamily>) {
    let name = "block_cache_pinned_bytes";
    text.head("gauge", &format!("outcrop_{name}"), "bytes", "Bytes of blocks in use in that cache");
    let mut known: Vec<(*const Cache, usize)> = Vec::new();
    for cf in families {
        let cache = cf.block_cache.as_ref();
        let place = cache.map_or(std::ptr::null(), Arc::as_ptr);
        let pinned = known.iter().find(|(cache, _)| *cache == place).map(|(_, pinned)| *pinned);
        let pinned = pinned.unwrap_or_else(|| {
            let pinned = cache.map_or(0, |cache| cache.pinned_usage());
            known.push((place, pinned));
            pinned
        });
        text.of_family(name, cf, pinned as u64);
    }
}

/// The memory that counts against a budget: of all databases that share it.
fn of_budget(text: &mut Text, budget: &MemoryBudget) {
    text.head("gauge", "outcrop_memory_budget_bytes", "bytes", "Limit of memory");
    text.sample("outcrop_memory_budget_bytes", "", budget.bytes() as f64);
    let name = "outcrop_memory_used_bytes";
    text.head("gauge", name, "bytes", "Memory that counts against the limit");
    for (part, bytes) in budget.usage().parts() {
        text.sample(name, &format!("part=\"{part}\""), bytes as f64);
    }
}

fn of_statistics(text: &mut Text, statistics: &Statistics) {
    for ticker in Ticker::ALL.iter().filter(|ticker| ticker.is_counted()) {
        let (name, unit, scale) = with_unit(ticker.name(), "");
        text.counter(
            &name,
            unit,
            &format!("RocksDB's ticker {}", ticker.name()),
            statistics.ticker(*ticker) as f64 * scale,
        );
    }
    for kind in HistogramKind::ALL.iter().filter(|kind| kind.is_counted()) {
        let unit = if kind.name().contains("bytes") { "bytes" } else { "" };
        let (name, unit, scale) = with_unit(kind.name(), unit);
        let data = statistics.histogram(*kind);
        text.head("histogram", &name, unit, &format!("RocksDB's histogram {}", kind.name()));
        for (limit, seen) in data.cumulative() {
            let le = format!("le=\"{}\"", limit as f64 * scale);
            text.sample(&format!("{name}_bucket"), &le, seen as f64);
        }
        text.sample(&format!("{name}_bucket"), "le=\"+Inf\"", data.count() as f64);
        text.sample(&format!("{name}_sum"), "", data.sum() as f64 * scale);
        text.sample(&format!("{name}_count"), "", data.count() as f64);
    }
}

/// The metric's name for RocksDB's, with its unit at the end, and by what values are multiplied for that.
fn with_unit(name: &str, otherwise: &'static str) -> (String, &'static str, f64) {
    let mut words: Vec<&str> = name.split(['.', '_']).collect();
    let mut take = |unit: &str| {
        let place = words.iter().rposition(|word| *word == unit);
        place.map(|place| words.remove(place)).is_some()
    };
    let (unit, scale) = if take("micros") {
        ("seconds", 1e-6)
    } else if take("nanos") {
        ("seconds", 1e-9)
    } else if take("bytes") {
        ("bytes", 1.0)
    } else {
        (otherwise, 1.0)
    };
    if !unit.is_empty() {
        words.push(unit);
    }
    (words.join("_"), unit, scale)
}

/// The text so far.
struct Text(String);

impl Text {
    fn head(&mut self, kind: &str, name: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}.");
    }

    /// The value of `metric` for a column family.
    fn of_family(&mut self, metric: &str, cf: &ColumnFamily, value: u64) {
        let label = format!("column_family=\"{}\"", escaped(cf.name()));
        self.sample(&format!("outcrop_{metric}"), &label, value as f64);
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn counter(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.head("counter", name, unit, help);
        self.sample(&format!("{name}_total"), "", value);
    }
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
