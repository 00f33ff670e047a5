//! Properties: what the database says of itself, under RocksDB's names.
//!
//! The statistics text has RocksDB's shape, so that tools that parse it by its header words work unchanged.
//! Source: RocksDB `include/rocksdb/db.h` (`struct Properties`), `db/internal_stats.cc`.

use crate::column_family::ColumnFamily;
use crate::compaction::level_shape::LevelShape;
use crate::core::Core;
use crate::file_properties::{blob_bytes, blob_stats, file_property_int, six_digits, table_property};
use crate::info_log::log_line;
use crate::state::{CfState, DbState};
use crate::stats::{LevelStats, StallCause};
use crate::write::stall::StallCondition;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const MB: f64 = (1 << 20) as f64;
const GB: f64 = (1 << 30) as f64;
const PREFIX: &str = "rocksdb.";

/// See [`crate::Db::property`].
pub fn property(core: &Core, cf: &ColumnFamily, name: &str) -> Option<String> {
    if let Some(number) = property_int(core, cf, name) {
        return Some(number.to_string());
    }
    let name = name.strip_prefix(PREFIX)?;
    if let Some(text) = table_property(core, cf, name).or_else(|| cache_entry_stats(cf, name)) {
        return Some(text);
    }
    let state = core.versions.state.lock();
    let cf_state = state.column_families.get(&cf.id())?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let level: usize = level.parse().ok()?;
        return Some(cf_state.version.levels.get(level)?.files.len().to_string());
    }
    match name {
        "levelstats" => Some(level_table(cf_state)),
        "sstables" => Some(cf_state.version.to_string()),
        "cfstats" | "cfstats-no-file-histogram" => Some(cf_stats(core, cf_state)),
        "cf-write-stall-stats" | "cfwritestallstats" => Some(stall_line(cf_state)),
        "cf-file-histogram" => Some(file_histogram(cf)),
        "blob-stats" => Some(blob_stats(&cf_state.version)),
        "db-write-stall-stats" => Some(DB_STALL_LINE.to_string()),
        "dbstats" => Some(db_stats(core)),
        "stats" => Some(cf_stats(core, cf_state) + &db_stats(core)),
        _ => None,
    }
}

/// See [`crate::Db::property_int`].
pub fn property_int(core: &Core, cf: &ColumnFamily, name: &str) -> Option<u64> {
    let name = name.strip_prefix(PREFIX)?;
    if let Some(number) = cache_property(cf, name) {
        return Some(number);
    }
    let state = core.versions.state.lock();
    if let Some(number) = db_property_int(core, &state, name) {
        return Some(number);
    }
    let cf_state = state.column_families.get(&cf.id())?;
    cf_property_int(cf_state, name).or_else(|| file_property_int(&state, cf_state, name))
}

/// The text of `rocksdb.block-cache-entry-stats`: nothing is collected, so the fast one is the same. Blocks of all
/// kinds count as data blocks: the cache does not know them apart.
fn cache_entry_stats(cf: &ColumnFamily, name: &str) -> Option<String> {
    if !matches!(name, "block-cache-entry-stats" | "fast-block-cache-entry-stats") {
        return None;
    }
    let cache = cf.block_cache.as_ref()?;
    let (capacity, usage, entries) = (cache.capacity() as u64, cache.usage() as u64, cache.entry_count());
    let mut text = format!(
        "Block cache Outcrop@{:p}#{} capacity: {} seed: 0 usage: {} table_size: {} occupancy: {entries} \
         collections: 1 last_copies: 0 last_secs: 0 secs_since: 0\n\
         Block cache entry stats(count,size,portion):",
        Arc::as_ptr(cache),
        std::process::id(),
        human_size(capacity),
        human_size(usage),
        cache.table_size(),
    );
    if entries > 0 {
        let share = six_digits(100.0 * usage as f64 / capacity as f64);
        let _ = write!(text, " DataBlock({entries},{},{share}%)", human_size(usage));
    }
    Some(text + "\n")
}

fn db_property_int(core: &Core, state: &DbState, name: &str) -> Option<u64> {
    Some(match name {
        "num-running-compactions" => state.running_compactions as u64,
        "num-running-flushes" => state.running_flushes as u64,
        "background-errors" => state.background_errors.max(u64::from(state.severity.is_some())),
        "num-snapshots" => core.snapshots.count() as u64,
        "oldest-snapshot-time" => core.snapshots.oldest_seconds().unwrap_or(0),
        "oldest-snapshot-sequence" => core.snapshots.oldest().map_or(0, |seq| seq.0),
        "actual-delayed-write-rate" => core.versions.stall.delayed_rate(),
        "is-write-stopped" => u64::from(core.versions.stall.condition() == StallCondition::Stopped),
        "is-file-deletions-enabled" => u64::from(state.deletions_disabled == 0),
        "min-log-number-to-keep" => state.min_wal_needed(core.versions.current_wal()),
        _ => return None,
    })
}

/// Writes the statistics to LOG if `stats_dump_period_sec` have passed since the last time.
pub fn dump_stats_if_due(core: &Core) {
    let period = u64::from(core.ctx.options.stats_dump_period_sec) * 1_000_000;
    let now = core.ctx.env.clock.now_micros();
    let last = core.commit.stats.dumped_micros.load(Ordering::Relaxed);
    if period == 0 || now < last.max(core.opened_micros).saturating_add(period) {
        return;
    }
    // Relaxed: whoever changes it writes the text, nobody else does.
    let claimed = core
        .commit
        .stats
        .dumped_micros
        .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok();
    if claimed {
        let text = {
            let state = core.versions.state.lock();
            state.column_families.values().map(|cf| cf_stats(core, cf)).collect::<String>()
        };
        log_line!(core.ctx, "------- DUMPING STATS -------{text}{}", db_stats(core));
    }
}

/// The text of `rocksdb.cfstats`.
fn cf_stats(core: &Core, state: &CfState) -> String {
    let uptime = uptime_seconds(core);
    let mut text = String::new();
    let _ = writeln!(text, "\n** Compaction Stats [{}] **", state.cf.name());
    let header = "Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB)  Wnew(GB) Moved(GB) \
                  W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)";
    let _ = writeln!(text, "{header}\n{}", "-".repeat(200));
    let levels = state.cf.stats.levels.lock().clone();
    let mut sum = LevelStats::default();
    levels.iter().for_each(|level| sum.add(level));
    let options = state.cf.options.load();
    let shape = LevelShape::of(&state.version, &options);
    let scores = shape.scores(&state.version, &options, &state.busy);
    for (number, level) in state.version.levels.iter().enumerate() {
        let stats = levels.get(number).copied().unwrap_or_default();
        if level.files.is_empty() && stats.count == 0 {
            continue;
        }
        let score = scores.iter().find(|(_, of)| *of == number).map_or(0.0, |(score, _)| *score);
        let taken = level.files.iter().filter(|f| state.busy.contains(&f.number));
        let row = StatsRow { files: (level.files.len(), taken.count()), bytes: level.size, score };
        row.write(&mut text, &format!("L{number}"), &stats, None);
    }
    let flushed = state.cf.stats.flush_bytes.get();
    let total =
        StatsRow { files: (state.version.num_files(), 0), bytes: state.version.total_bytes(), score: 0.0 };
    total.write(&mut text, "Sum", &sum, Some(flushed));
    let (blobs, garbage) = blob_bytes(&state.version);
    let _ = writeln!(
        text,
        "\nBlob file count: {}, total size: {:.1} GB, garbage size: {:.1} GB, space amp: {:.1}\n",
        state.version.blob_files.len(),
        blobs as f64 / GB,
        garbage as f64 / GB,
        if blobs > garbage { blobs as f64 / (blobs - garbage) as f64 } else { 0.0 }
    );
    let _ = writeln!(text, "Uptime(secs): {uptime:.1} total, {uptime:.1} interval");
    let _ = writeln!(
        text,
        "Flush(GB): cumulative {:.3}, interval {:.3}",
        flushed as f64 / GB,
        flushed as f64 / GB
    );
    let read = sum.bytes_read + sum.bytes_read_output_level;
    let _ = writeln!(
        text,
        "Cumulative compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds",
        sum.bytes_written as f64 / GB,
        sum.bytes_written as f64 / MB / uptime.max(0.001),
        read as f64 / GB,
        read as f64 / MB / uptime.max(0.001),
        sum.micros as f64 / 1e6
    );
    let _ = writeln!(text, "Estimated pending compaction bytes: {}", state.debt.pending_bytes);
    text + &stall_line(state)
}

/// The text of `rocksdb.dbstats`.
fn db_stats(core: &Core) -> String {
    let (stats, uptime) = (&core.commit.stats, uptime_seconds(core));
    let mut text = String::from("\n** DB Stats **\n");
    let _ = writeln!(text, "Uptime(secs): {uptime:.1} total, {uptime:.1} interval");
    let (writes, keys, groups) = (stats.writes.get(), stats.keys_written.get(), stats.groups.get());
    let ingest = stats.bytes_written.get() as f64;
    let _ = writeln!(
        text,
        "Cumulative writes: {writes} writes, {keys} keys, {groups} commit groups, {:.1} writes per commit group, \
         ingest: {:.2} GB, {:.2} MB/s",
        writes as f64 / groups.max(1) as f64,
        ingest / GB,
        ingest / MB / uptime.max(0.001)
    );
    let wal = stats.wal_bytes.get() as f64;
    let _ = writeln!(
        text,
        "Cumulative WAL: {groups} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
        stats.wal_syncs.get(),
        groups as f64 / stats.wal_syncs.get().max(1) as f64,
        wal / GB,
        wal / MB / uptime.max(0.001)
    );
    let stalled = stats.stall_micros.get();
    let seconds = stalled as f64 / 1e6;
    let _ = writeln!(
        text,
        "Cumulative stall: {:02}:{:02}:{:06.3} H:M:S, {:.1} percent",
        stalled / 3_600_000_000,
        stalled / 60_000_000 % 60,
        seconds % 60.0,
        100.0 * seconds / uptime.max(0.001)
    );
    text
}

fn uptime_seconds(core: &Core) -> f64 {
    core.ctx.env.clock.now_micros().saturating_sub(core.opened_micros) as f64 / 1e6
}

fn cache_property(cf: &ColumnFamily, name: &str) -> Option<u64> {
    if !name.starts_with("block-cache-") {
        return None;
    }
    let cache = cf.block_cache.as_ref();
    Some(match name {
        "block-cache-capacity" => cache.map_or(0, |cache| cache.capacity() as u64),
        "block-cache-usage" => cache.map_or(0, |cache| cache.usage() as u64),
        "block-cache-pinned-usage" => cache.map_or(0, |cache| cache.pinned_usage() as u64),
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
            let in_memory =
                |m: &outcrop_memtable::MemTable| m.num_entries().saturating_sub(2 * m.num_deletes());
            let in_tables: u64 = tables()
                .map(|table| table.properties())
                .map(|p| p.num_entries.saturating_sub(2 * p.num_deletions))
                .sum();
            in_tables + in_memory(&state.memtable) + sealed().map(|m| in_memory(m)).sum::<u64>()
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

/// The text of `rocksdb.db-write-stall-stats`: nothing stops writers of all column families for memory's sake.
const DB_STALL_LINE: &str = "Write Stall (count): write-buffer-manager-limit-stops: 0\n";

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

fn stall_line(state: &CfState) -> String {
    let stalls = &state.cf.stats.stalls;
    let causes = [
        (StallCause::L0Files, "l0-file-count-limit"),
        (StallCause::Memtables, "memtable-limit"),
        (StallCause::PendingCompactionBytes, "pending-compaction-bytes"),
    ];
    let mut text = String::from("Write Stall (count): ");
    let mut total = 0;
    for (cause, name) in causes {
        let (delays, stops) = (stalls.delays(cause), stalls.stops(cause));
        let _ = write!(text, "{name}-delays: {delays}, {name}-stops: {stops}, ");
        total += delays + stops;
    }
    let _ = writeln!(
        text,
        "total-delays: {}, total-stops: {}, interval: 0 total count",
        total - stops(stalls),
        stops(stalls)
    );
    text
}

fn stops(stalls: &crate::stats::StallCounters) -> u64 {
    [StallCause::L0Files, StallCause::Memtables, StallCause::PendingCompactionBytes]
        .into_iter()
        .map(|cause| stalls.stops(cause))
        .sum()
}

/// One row of the compaction table.
struct StatsRow {
    /// Tables, and how many of them are being compacted.
    files: (usize, usize),
    bytes: u64,
    score: f64,
}

impl StatsRow {
    /// Writes the row; `ingested` makes the write amplification that of the whole tree.
    fn write(&self, text: &mut String, name: &str, stats: &LevelStats, ingested: Option<u64>) {
        let read = stats.bytes_read + stats.bytes_read_output_level;
        let seconds = stats.micros as f64 / 1e6;
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 / MB / seconds } else { 0.0 };
        let divisor = ingested.unwrap_or(stats.bytes_read);
        let amplification = if divisor == 0 { 1.0 } else { stats.bytes_written as f64 / divisor as f64 };
        let gb = |bytes: u64| bytes as f64 / GB;
        let new = stats.bytes_written as i64 - stats.bytes_read_output_level as i64;
        let average = if stats.count == 0 { 0.0 } else { seconds / stats.count as f64 };
        let _ = writeln!(
            text,
            "{name:>4} {:>6}/{:<3} {:>8} {:>5.1} {:>8.1} {:>7.1} {:>8.1} {:>9.1} {:>12.1} {:>9.1} {:>9.1} \
             {amplification:>5.1} {:>8.1} {:>8.1} {seconds:>9.2} {:>17.2} {:>9} {average:>8.3} {:>7} {:>6} {:>9.1} {:>9.1}",
            self.files.0,
            self.files.1,
            human_size(self.bytes),
            self.score,
            gb(read),
            gb(stats.bytes_read),
            gb(stats.bytes_read_output_level),
            gb(stats.bytes_written),
            gb(stats.bytes_written),
            new as f64 / GB,
            gb(stats.bytes_moved),
            rate(read),
            rate(stats.bytes_written),
            stats.cpu_micros as f64 / 1e6,
            stats.count,
            human_count(stats.records_in),
            human_count(stats.records_dropped),
            0.0,
            0.0
        );
    }
}

/// A size with its unit as a second word.
fn human_size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        b if b >= 1024.0 * GB => format!("{:.2} TB", b / GB / 1024.0),
        b if b >= GB => format!("{:.2} GB", b / GB),
        b if b >= MB => format!("{:.2} MB", b / MB),
        b => format!("{:.2} KB", b / 1024.0),
    }
}

fn human_count(count: u64) -> String {
    match count {
        n if n >= 10_000_000_000 => format!("{}G", n / 1_000_000_000),
        n if n >= 10_000_000 => format!("{}M", n / 1_000_000),
        n if n >= 10_000 => format!("{}K", n / 1000),
        n => n.to_string(),
    }
}
