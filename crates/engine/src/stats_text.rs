//! The texts of statistics: `rocksdb.cfstats`, `rocksdb.dbstats`, `rocksdb.sstables` and what belongs to them, line by line in
//! RocksDB's form, so that tools that parse it work unchanged.
//!
//! Intervals go from one question to the next, as in RocksDB: `cfstats`, `dbstats` and `stats` begin a new one.
//! Source: RocksDB `db/internal_stats.cc`, `Version::DebugString`.

use crate::compaction::level_shape::LevelShape;
use crate::core::Core;
use crate::file_properties::blob_bytes;
use crate::state::CfState;
use crate::stats::{LevelStats, ReportedWork, ReportedWrites, StallCause, Work};
use outcrop_base::keys::{split, user_key};
use std::fmt::Write;
use std::sync::atomic::Ordering;

pub const MB: f64 = (1 << 20) as f64;
const GB: f64 = (1 << 30) as f64;

/// The text of `rocksdb.db-write-stall-stats`.
pub fn db_stall_line(core: &Core) -> String {
    let stops = core.commit.stats.memory_stops.get();
    format!("Write Stall (count): write-buffer-manager-limit-stops: {stops}\n")
}

/// The text of `rocksdb.cfstats` without the histogram of file reads. With `starts_interval`, the next interval begins here.
pub fn cf_stats(core: &Core, state: &CfState, starts_interval: bool) -> String {
    let uptime = uptime_seconds(core);
    let stats = &state.cf.stats;
    let mut text = String::new();
    let (levels, now) = work_until_now(state, uptime);
    let last = if starts_interval {
        std::mem::replace(&mut *stats.reported.lock(), now)
    } else {
        *stats.reported.lock()
    };
    write_levels(&mut text, state, &levels, &now, &last);
    write_priorities(&mut text, state, &now);
    let (blobs, garbage) = blob_bytes(&state.version);
    let _ = writeln!(
        text,
        "\nBlob file count: {}, total size: {:.1} GB, garbage size: {:.1} GB, space amp: {:.1}\n",
        state.version.blob_files.len(),
        blobs as f64 / GB,
        garbage as f64 / GB,
        if blobs > garbage { blobs as f64 / (blobs - garbage) as f64 } else { 0.0 }
    );
    let _ = writeln!(text, "Uptime(secs): {uptime:.1} total, {:.1} interval", uptime - last.uptime);
    let gb = |bytes: u64| bytes as f64 / GB;
    let (flushed, told) = (now.flushes.bytes_written, last.flushes.bytes_written);
    let since = flushed - told;
    let _ = writeln!(text, "Flush(GB): cumulative {:.3}, interval {:.3}", gb(flushed), gb(since));
    let (all, told) = (now.ingested, last.ingested);
    let since = gb(all.bytes - told.bytes);
    let _ = writeln!(text, "AddFile(GB): cumulative {:.3}, interval {since:.3}", gb(all.bytes));
    for (what, all, told) in [
        ("Total Files", all.files, told.files),
        ("L0 Files", all.l0_files, told.l0_files),
        ("Keys", all.keys, told.keys),
    ] {
        let _ = writeln!(text, "AddFile({what}): cumulative {all}, interval {}", all - told);
    }
    write_compaction(&mut text, "Cumulative", &now.levels, uptime);
    write_compaction(&mut text, "Interval", &now.levels.since(&last.levels), uptime - last.uptime);
    let _ = writeln!(text, "Estimated pending compaction bytes: {}", state.debt.pending_bytes);
    text += &stall_line(state);
    if now.stalls > 0 {
        let _ = writeln!(text, "interval: {} total count", now.stalls - last.stalls);
    }
    text
}

/// The work of each level, and all of it.
pub fn work_until_now(state: &CfState, uptime: f64) -> (Vec<LevelStats>, ReportedWork) {
    let stats = &state.cf.stats;
    let Work { levels, flushes } = stats.work.lock().clone();
    let mut sum = LevelStats::default();
    levels.iter().for_each(|level| sum.add(level));
    let now = ReportedWork {
        uptime,
        levels: sum,
        flushes,
        ingested: *stats.ingested.lock(),
        stalls: stall_counts(state).iter().rev().take(2).map(|(_, total)| total).sum(),
    };
    (levels, now)
}

/// The text of `rocksdb.dbstats`. The next interval begins here.
pub fn db_stats(core: &Core) -> String {
    let (stats, uptime) = (&core.commit.stats, uptime_seconds(core));
    let now = ReportedWrites {
        uptime,
        writes: stats.writes.get(),
        keys_written: stats.keys_written.get(),
        bytes_written: stats.bytes_written.get(),
        groups: stats.groups.get(),
        wal_bytes: stats.wal_bytes.get(),
        wal_syncs: stats.wal_syncs.get(),
        stall_micros: stats.stall_micros.get(),
    };
    let last = std::mem::replace(&mut *stats.reported.lock(), now);
    // One that counted later may have told before.
    let less = u64::saturating_sub;
    let since = ReportedWrites {
        uptime: uptime - last.uptime,
        writes: less(now.writes, last.writes),
        keys_written: less(now.keys_written, last.keys_written),
        bytes_written: less(now.bytes_written, last.bytes_written),
        groups: less(now.groups, last.groups),
        wal_bytes: less(now.wal_bytes, last.wal_bytes),
        wal_syncs: less(now.wal_syncs, last.wal_syncs),
        stall_micros: less(now.stall_micros, last.stall_micros),
    };
    let mut text = String::from("\n** DB Stats **\n");
    let _ = writeln!(text, "Uptime(secs): {uptime:.1} total, {:.1} interval", since.uptime);
    write_writes(&mut text, "Cumulative", &now, (GB, "GB"));
    write_writes(&mut text, "Interval", &since, (MB, "MB"));
    text + &db_stall_line(core)
}

/// Seconds since the database was opened.
pub fn uptime_seconds(core: &Core) -> f64 {
    let since = core.opened_micros.max(core.commit.stats.reset_micros.load(Ordering::Relaxed));
    core.ctx.env.clock.now_micros().saturating_sub(since) as f64 / 1e6
}

/// The text of `rocksdb.sstables`.
pub fn sstables(state: &CfState) -> String {
    let mut text = String::new();
    let version = state.superversion_number;
    for (number, level) in state.version.levels.iter().enumerate() {
        let _ = write!(text, "--- level {number} --- version# {version}");
        if let Some(cursor) = state.version.compact_cursors.get(&(number as u32)) {
            let _ = write!(text, " --- compact_cursor: {}", shown_key(cursor));
        }
        text += " ---\n";
        for file in level.files.iter() {
            let _ = write!(
                text,
                " {}:{}[{} .. {}][{} .. {}]",
                file.number.0,
                file.size,
                file.smallest_seq,
                file.largest_seq,
                shown_key(&file.smallest),
                shown_key(&file.largest)
            );
            if let Some(blob) = file.oldest_blob_file {
                let _ = write!(text, " blob_file:{}", blob.0);
            }
            // Reads of a table are not sampled.
            text += "(0)\n";
        }
    }
    write_blob_files(&mut text, state);
    text
}

fn write_blob_files(text: &mut String, state: &CfState) {
    if !state.version.blob_files.is_empty() {
        let _ = writeln!(text, "--- blob files --- version# {} ---", state.superversion_number);
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    for (number, blobs) in &state.version.blob_files {
        let file = &blobs.file;
        let linked = state.version.files().filter(|(_, table)| table.oldest_blob_file == Some(*number));
        let linked: String = linked.map(|(_, table)| format!(" {}", table.number.0)).collect();
        let _ = writeln!(
            text,
            "blob_file_number: {} total_blob_count: {} total_blob_bytes: {} checksum_method: {} checksum_value: {} \
             linked_ssts: {{{linked} }} garbage_blob_count: {} garbage_blob_bytes: {}",
            number.0,
            file.total_count,
            file.total_bytes,
            String::from_utf8_lossy(&file.checksum.0),
            hex(&file.checksum.1),
            blobs.garbage.count,
            blobs.garbage.bytes
        );
    }
}

/// An internal key for people.
fn shown_key(key: &[u8]) -> String {
    let hex: String = user_key(key).iter().map(|byte| format!("{byte:02X}")).collect();
    let (_, trailer) = split(key);
    format!("'{hex}' seq:{}, type:{}", trailer.seq().0, trailer.type_byte())
}

/// The counts of `rocksdb.cf-write-stall-stats` in its order; the last two are sums of those after the first two.
pub fn stall_counts(state: &CfState) -> Vec<(String, u64)> {
    let stalls = &state.cf.stats.stalls;
    let causes = [
        (StallCause::L0Files, "l0-file-count-limit"),
        (StallCause::Memtables, "memtable-limit"),
        (StallCause::PendingCompactionBytes, "pending-compaction-bytes"),
    ];
    let (delays, stops) = stalls.while_compacting();
    let count = |kind: &str| format!("cf-l0-file-count-limit-{kind}-with-ongoing-compaction");
    let mut counts = vec![(count("delays"), delays), (count("stops"), stops)];
    let (mut total_delays, mut total_stops) = (0, 0);
    for (cause, name) in causes {
        let (delays, stops) = (stalls.delays(cause), stalls.stops(cause));
        counts.extend([(format!("{name}-delays"), delays), (format!("{name}-stops"), stops)]);
        total_delays += delays;
        total_stops += stops;
    }
    counts.extend([("total-delays".to_string(), total_delays), ("total-stops".to_string(), total_stops)]);
    counts
}

pub fn stall_line(state: &CfState) -> String {
    let counts: Vec<String> =
        stall_counts(state).into_iter().map(|(name, count)| format!("{name}: {count}")).collect();
    format!("Write Stall (count): {}\n", counts.join(", "))
}

/// The head of a compaction table; `first` names the first column.
fn write_head(text: &mut String, state: &CfState, first: &str) {
    let header = format!(
        "{first}    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) \
         Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)\n"
    );
    let _ = writeln!(text, "\n** Compaction Stats [{}] **", state.cf.name());
    let _ = writeln!(text, "{header}{}", "-".repeat(header.len()));
}

/// The table of levels, with their sum and what came since the last time.
fn write_levels(
    text: &mut String,
    state: &CfState,
    levels: &[LevelStats],
    now: &ReportedWork,
    last: &ReportedWork,
) {
    write_head(text, state, "Level");
    for (name, row) in level_rows(state, levels, now) {
        row.write(text, &name);
    }
    let flushed = now.flushes.bytes_written - last.flushes.bytes_written;
    let ingested = flushed + now.ingested.bytes - last.ingested.bytes;
    StatsRow::of_work(now.levels.since(&last.levels), ingested).write(text, "Int");
}

/// Every level that has tables or work, then their sum.
pub fn level_rows(state: &CfState, levels: &[LevelStats], now: &ReportedWork) -> Vec<(String, StatsRow)> {
    let options = state.cf.options.load();
    let scores = LevelShape::of(&state.version, &options).scores(&state.version, &options, &state.busy);
    let mut rows = Vec::new();
    for (number, level) in state.version.levels.iter().enumerate() {
        let stats = levels.get(number).copied().unwrap_or_default();
        if level.files.is_empty() && stats.count == 0 {
            continue;
        }
        let score = scores.iter().find(|(_, of)| *of == number).map_or(0.0, |(score, _)| *score);
        let taken = level.files.iter().filter(|f| state.busy.contains(&f.number));
        // Of L0: its flushes put out what came in.
        let divisor = if number == 0 { stats.bytes_written } else { stats.bytes_read };
        let files = (level.files.len(), taken.count());
        rows.push((format!("L{number}"), StatsRow { files, bytes: level.size, score, stats, divisor }));
    }
    let sum = StatsRow {
        files: (state.version.num_files(), 0),
        bytes: state.version.total_bytes(),
        ..StatsRow::of_work(now.levels, now.flushes.bytes_written + now.ingested.bytes)
    };
    rows.push(("Sum".to_string(), sum));
    rows
}

/// The table of kinds of threads: compactions, then flushes.
fn write_priorities(text: &mut String, state: &CfState, now: &ReportedWork) {
    write_head(text, state, "Priority");
    for (name, stats) in [("Low", now.levels.since(&now.flushes)), ("High", now.flushes)] {
        if stats.count > 0 {
            StatsRow::of_work(stats, 0).write(text, name);
        }
    }
}

fn write_compaction(text: &mut String, what: &str, stats: &LevelStats, seconds: f64) {
    let read = stats.bytes_read + stats.bytes_read_output_level;
    let per_second = |bytes: u64| bytes as f64 / MB / seconds.max(0.001);
    let _ = writeln!(
        text,
        "{what} compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds",
        stats.bytes_written as f64 / GB,
        per_second(stats.bytes_written),
        read as f64 / GB,
        per_second(read),
        stats.micros as f64 / 1e6
    );
}

/// Three lines about writes; sizes are in `unit`.
fn write_writes(text: &mut String, what: &str, stats: &ReportedWrites, unit: (f64, &str)) {
    let per_second = |bytes: u64| bytes as f64 / MB / stats.uptime.max(0.001);
    let _ = writeln!(
        text,
        "{what} writes: {} writes, {} keys, {} commit groups, {:.1} writes per commit group, ingest: {:.2} {}, {:.2} MB/s",
        human_count(stats.writes),
        human_count(stats.keys_written),
        human_count(stats.groups),
        stats.writes as f64 / stats.groups.max(1) as f64,
        stats.bytes_written as f64 / unit.0,
        unit.1,
        per_second(stats.bytes_written)
    );
    let _ = writeln!(
        text,
        "{what} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
        human_count(stats.groups),
        human_count(stats.wal_syncs),
        stats.groups as f64 / stats.wal_syncs.max(1) as f64,
        stats.wal_bytes as f64 / GB,
        per_second(stats.wal_bytes)
    );
    let (stalled, seconds) = (stats.stall_micros, stats.stall_micros as f64 / 1e6);
    let _ = writeln!(
        text,
        "{what} stall: {:02}:{:02}:{:.3} H:M:S, {:.1} percent",
        stalled / 3_600_000_000,
        stalled / 60_000_000 % 60,
        seconds % 60.0,
        100.0 * seconds / stats.uptime.max(0.001)
    );
}

/// One row of the compaction table.
pub struct StatsRow {
    /// Tables, and how many of them are being compacted.
    files: (usize, usize),
    bytes: u64,
    score: f64,
    stats: LevelStats,
    /// Bytes that came in: what was written is divided by them.
    divisor: u64,
}

/// How a figure is printed in its column.
#[derive(Clone, Copy)]
enum Shown {
    /// As wide, with so many decimals.
    Number(usize, usize),
    /// As wide, with a unit if it is large.
    Count(usize),
}

/// The columns of the compaction table after files and sizes, by their names in maps.
const COLUMNS: [(&str, Shown); 19] = [
    ("Score", Shown::Number(5, 1)),
    ("ReadGB", Shown::Number(8, 1)),
    ("RnGB", Shown::Number(7, 1)),
    ("Rnp1GB", Shown::Number(8, 1)),
    ("WriteGB", Shown::Number(9, 1)),
    ("WPreCompGB", Shown::Number(9, 1)),
    ("WnewGB", Shown::Number(8, 1)),
    ("MovedGB", Shown::Number(9, 1)),
    ("WriteAmp", Shown::Number(5, 1)),
    ("ReadMBps", Shown::Number(8, 1)),
    ("WriteMBps", Shown::Number(8, 1)),
    ("CompSec", Shown::Number(9, 2)),
    ("CompMergeCPU", Shown::Number(17, 2)),
    ("CompCount", Shown::Number(9, 0)),
    ("AvgSec", Shown::Number(8, 3)),
    ("KeyIn", Shown::Count(7)),
    ("KeyDrop", Shown::Count(6)),
    ("RblobGB", Shown::Number(9, 1)),
    ("WblobGB", Shown::Number(9, 1)),
];

impl StatsRow {
    /// Work alone, without files.
    fn of_work(stats: LevelStats, divisor: u64) -> StatsRow {
        StatsRow { files: (0, 0), bytes: 0, score: 0.0, stats, divisor }
    }

    /// The figures of [`COLUMNS`].
    fn columns(&self) -> [f64; COLUMNS.len()] {
        let stats = &self.stats;
        let read = stats.bytes_read + stats.bytes_read_output_level;
        let seconds = stats.micros as f64 / 1e6;
        let rate = |bytes: u64| bytes as f64 / MB / ((stats.micros + 1) as f64 / 1e6);
        let (written, divisor) = (stats.bytes_written as f64, self.divisor as f64);
        let gb = |bytes: u64| bytes as f64 / GB;
        let new = stats.bytes_written as i64 - stats.bytes_read_output_level as i64;
        [
            self.score,
            gb(read),
            gb(stats.bytes_read),
            gb(stats.bytes_read_output_level),
            gb(stats.bytes_written),
            gb(stats.bytes_written),
            new as f64 / GB,
            gb(stats.bytes_moved),
            if self.divisor == 0 { 0.0 } else { written / divisor },
            rate(read),
            rate(stats.bytes_written),
            seconds,
            stats.cpu_micros as f64 / 1e6,
            stats.count as f64,
            if stats.count == 0 { 0.0 } else { seconds / stats.count as f64 },
            stats.records_in as f64,
            stats.records_dropped as f64,
            0.0,
            0.0,
        ]
    }

    /// All figures, by their names in maps.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let (files, taken) = self.files;
        let sizes =
            [("NumFiles", files as f64), ("CompactedFiles", taken as f64), ("SizeBytes", self.bytes as f64)];
        let columns = COLUMNS.iter().zip(self.columns()).map(|((name, _), figure)| (*name, figure));
        sizes.into_iter().chain(columns).collect()
    }

    /// Writes the row.
    fn write(&self, text: &mut String, name: &str) {
        let (files, taken) = self.files;
        let _ = write!(text, "{name:>4} {files:>6}/{taken:<3} {:>10}", human_size(self.bytes));
        for ((_, shown), figure) in COLUMNS.iter().zip(self.columns()) {
            let _ = match *shown {
                Shown::Number(width, decimals) => write!(text, " {figure:>width$.decimals$}"),
                Shown::Count(width) => write!(text, " {:>width$}", human_count(figure as u64)),
            };
        }
        text.push('\n');
    }
}

/// A size with its unit as a second word.
pub fn human_size(bytes: u64) -> String {
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
