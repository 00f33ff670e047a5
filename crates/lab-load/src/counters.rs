//! The engine's counters of its own work, read from its statistics text by the names in it, never by
//! position.

use crate::Database;
use serde::{Deserialize, Serialize};

/// Counters of an open database, cumulative since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// GB written by flush and compaction together.
    pub compaction_write_gb: f64,
    /// GB written by flush.
    pub flush_gb: f64,
    /// GB that users wrote.
    pub ingest_gb: f64,
    /// Wall seconds of all compaction and flush jobs.
    pub compaction_seconds: f64,
    /// CPU seconds of them; absent in old versions.
    pub compaction_cpu_seconds: f64,
    /// Percent of the time that writes were stalled.
    pub stall_percent: f64,
    /// How often writes were slowed or stopped.
    pub stalls: u64,
    /// Seconds since opening.
    pub uptime: f64,
    /// Bytes of all live tables.
    pub table_bytes: u64,
    /// GB that compaction read from blob files.
    #[serde(default)]
    pub blob_read_gb: f64,
    /// GB that flush and compaction wrote to them.
    #[serde(default)]
    pub blob_write_gb: f64,
    /// Bytes of all live blob files.
    #[serde(default)]
    pub blob_bytes: u64,
    /// Times that the WAL was synced, as engines print it: above ten thousand in thousands.
    #[serde(default)]
    pub wal_syncs: u64,
    /// By how much `wal_syncs` may be off for that; 0: exact.
    #[serde(default)]
    pub wal_syncs_unit: u64,
    /// Bytes in the block cache; over a step the fewer of those at its edges.
    #[serde(default)]
    pub cache_used: u64,
    /// Bytes that it may hold; 0: not known.
    #[serde(default)]
    pub cache_capacity: u64,
}

impl Counters {
    /// Reads the counters of `db`.
    pub fn read(db: &Database) -> Counters {
        let text = db.property("rocksdb.stats").unwrap_or_default();
        let mut counters = Counters::parse(&text);
        counters.table_bytes = db.property_int("rocksdb.total-sst-files-size").unwrap_or(0);
        counters.blob_bytes = db.property_int("rocksdb.total-blob-file-size").unwrap_or(0);
        counters.cache_used = db.property_int("rocksdb.block-cache-usage").unwrap_or(0);
        counters.cache_capacity = db.property_int("rocksdb.block-cache-capacity").unwrap_or(0);
        counters
    }

    /// The counts since `before`. Sizes and percentages are those of now.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            compaction_write_gb: self.compaction_write_gb - before.compaction_write_gb,
            flush_gb: self.flush_gb - before.flush_gb,
            ingest_gb: self.ingest_gb - before.ingest_gb,
            compaction_seconds: self.compaction_seconds - before.compaction_seconds,
            compaction_cpu_seconds: self.compaction_cpu_seconds - before.compaction_cpu_seconds,
            blob_read_gb: self.blob_read_gb - before.blob_read_gb,
            blob_write_gb: self.blob_write_gb - before.blob_write_gb,
            stalls: self.stalls.saturating_sub(before.stalls),
            wal_syncs: self.wal_syncs.saturating_sub(before.wal_syncs),
            uptime: self.uptime - before.uptime,
            cache_used: self.cache_used.min(before.cache_used),
            ..*self
        }
    }

    /// The counts of this time and of `later`, which went on where it ended. Sizes and percentages are those of the
    /// later.
    pub fn followed_by(&self, later: &Counters) -> Counters {
        Counters {
            compaction_write_gb: self.compaction_write_gb + later.compaction_write_gb,
            flush_gb: self.flush_gb + later.flush_gb,
            ingest_gb: self.ingest_gb + later.ingest_gb,
            compaction_seconds: self.compaction_seconds + later.compaction_seconds,
            compaction_cpu_seconds: self.compaction_cpu_seconds + later.compaction_cpu_seconds,
            blob_read_gb: self.blob_read_gb + later.blob_read_gb,
            blob_write_gb: self.blob_write_gb + later.blob_write_gb,
            stalls: self.stalls + later.stalls,
            wal_syncs: self.wal_syncs + later.wal_syncs,
            wal_syncs_unit: self.wal_syncs_unit + later.wal_syncs_unit,
            uptime: self.uptime + later.uptime,
            cache_used: self.cache_used.min(later.cache_used),
            ..*later
        }
    }

    /// Times that the WAL was synced, if that is known well enough: not where the unit of the text is more than 2 % of them.
    pub fn known_wal_syncs(&self) -> Option<u64> {
        (self.wal_syncs_unit <= self.wal_syncs / 50).then_some(self.wal_syncs)
    }

    /// Reads the text of `rocksdb.stats`.
    pub fn parse(text: &str) -> Counters {
        let number_after = |label: &str| -> f64 {
            let after = text.split_once(label).map_or("", |(_, rest)| rest).trim_start();
            let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
            after[..end].parse().unwrap_or(0.0)
        };
        let compaction = text.split_once("Cumulative compaction:").map_or("", |(_, rest)| rest);
        let writes = text.split_once("Cumulative writes:").map_or("", |(_, rest)| rest);
        let ingest = writes.split_once("ingest: ").map_or("", |(_, rest)| rest);
        let percent = text.split_once("Cumulative stall:").map_or("", |(_, rest)| rest);
        let percent = percent.split_once("H:M:S,").map_or("", |(_, rest)| rest);
        let (wal_syncs, wal_syncs_unit) = wal_syncs(text);
        Counters {
            compaction_write_gb: gigabytes(compaction),
            flush_gb: number_after("Flush(GB): cumulative"),
            ingest_gb: gigabytes(ingest),
            compaction_seconds: sum_column(text, "Comp(sec)").unwrap_or(0.0),
            compaction_cpu_seconds: sum_column(text, "CompMergeCPU(sec)").unwrap_or(0.0),
            stall_percent: percent.trim().split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
            stalls: stall_count(text),
            uptime: number_after("Uptime(secs):"),
            table_bytes: 0,
            blob_read_gb: sum_column(text, "Rblob(GB)").unwrap_or(0.0),
            blob_write_gb: sum_column(text, "Wblob(GB)").unwrap_or(0.0),
            blob_bytes: 0,
            wal_syncs,
            wal_syncs_unit,
            cache_used: 0,
            cache_capacity: 0,
        }
    }
}

/// The size that `text` begins with, a number and a unit, in GB; 0 if it does not.
fn gigabytes(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let number: f64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let unit = words.next().unwrap_or("").trim_end_matches(',');
    let share = [("KB", 1.0 / 1_048_576.0), ("MB", 1.0 / 1024.0), ("GB", 1.0), ("TB", 1024.0)];
    share.iter().find(|(name, _)| *name == unit).map_or(0.0, |(_, share)| number * share)
}

/// The count of `Cumulative WAL: 12K writes, 3456 syncs, ..` and the unit it is rounded to, 0 if it is exact; 0 without one.
fn wal_syncs(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("Cumulative WAL:")).unwrap_or("");
    let count = line.split(',').find_map(|part| part.trim().strip_suffix("syncs")).unwrap_or("").trim();
    let end = count.find(|c: char| !c.is_ascii_digit()).unwrap_or(count.len());
    let unit = match count[end..].trim() {
        "K" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return (count[..end].parse().unwrap_or(0), 0),
    };
    (count[..end].parse::<u64>().unwrap_or(0) * unit, unit)
}

/// The value of `column` in the last "Sum" row of the compaction table.
fn sum_column(text: &str, column: &str) -> Option<f64> {
    let mut header: Vec<&str> = Vec::new();
    let mut found = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"Level") {
            header = words;
        } else if words.first() == Some(&"Sum") {
            // A size is two words, number and unit; the header has one word for it.
            let place = header.iter().position(|name| *name == column)?;
            let size = header.iter().position(|name| *name == "Size")?;
            let place = if place > size { place + 1 } else { place };
            found = words.get(place).and_then(|word| word.parse().ok());
        }
    }
    found
}

/// The sum of the stall counters, in both shapes RocksDB has printed them in.
fn stall_count(text: &str) -> u64 {
    if let Some(line) = text.lines().find(|line| line.starts_with("Write Stall (count):")) {
        return line
            .split(',')
            .filter_map(|part| part.rsplit_once(": "))
            .filter(|(name, _)| name.contains("total-delays") || name.contains("total-stops"))
            .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
            .sum();
    }
    let line = text.lines().rfind(|line| line.starts_with("Stalls(count):")).unwrap_or("");
    // Those "with_compaction" are counted in their plain sisters too.
    let own = line.split([':', ',']).filter(|part| !part.contains("with_compaction"));
    own.filter_map(|part| part.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)
----------
  L0      1/0   16.00 MB   0.2      0.0     0.0      0.0       0.1       0.1       0.1       0.0   1.0      0.0    300.0      0.50              0.45         8    0.060       0      0       0.0       0.0
 Sum      9/0    1.20 GB   0.0      0.5     0.1      0.4       0.9       0.9       0.1       0.3   9.0    120.0    220.0      4.25              3.75        20    0.200     10M    20K       0.0       0.0

Uptime(secs): 12.5 total, 3.0 interval
Flush(GB): cumulative 0.123, interval 0.010
Cumulative compaction: 0.91 GB write, 74.60 MB/s write, 0.52 GB read, 42.00 MB/s read, 4.2 seconds
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 0, l0-file-count-limit-delays: 2, total-delays: 2, total-stops: 1, interval: 0 total count
** DB Stats **
Uptime(secs): 12.5 total, 3.0 interval
Cumulative writes: 1000K writes, 1000K keys, 1000K commit groups, 1.0 writes per commit group, ingest: 0.40 GB, 32.00 MB/s
Cumulative WAL: 12K writes, 3456 syncs, 3.47 writes per sync, written: 0.40 GB, 32.00 MB/s
Cumulative stall: 00:00:1.250 H:M:S, 10.0 percent
";

    #[test]
    fn syncs_are_counted_and_in_thousands_once_they_are_many() {
        assert_eq!(Counters::parse(SAMPLE).wal_syncs, 3456);
        assert_eq!(wal_syncs("Cumulative WAL: 12K writes, 34K syncs, 0.35 writes per sync"), (34_000, 1000));
        assert_eq!(wal_syncs("Interval WAL: 1 writes, 2 syncs\n"), (0, 0));
    }

    #[test]
    fn syncs_in_a_coarse_unit_are_not_known() {
        let at = |syncs: &str| Counters::parse(&format!("Cumulative WAL: 1 writes, {syncs} syncs, x"));
        let (begin, exact, middle, end) = (at("9000"), at("9001"), at("40K"), at("95K"));
        assert_eq!(exact.since(&begin).known_wal_syncs(), Some(1));
        assert_eq!(begin.since(&begin).known_wal_syncs(), Some(0));
        assert_eq!(middle.since(&begin).known_wal_syncs(), None, "a thousand of 31,000");
        let (first, second) = (middle.since(&at("0")), end.since(&middle));
        assert_eq!(second.known_wal_syncs(), Some(55_000));
        assert_eq!(first.followed_by(&second).known_wal_syncs(), None, "two thousand of 95,000");
    }

    #[test]
    fn numbers_are_found_by_their_names() {
        let counters = Counters::parse(SAMPLE);
        assert_eq!(counters.compaction_write_gb, 0.91);
        assert_eq!((counters.flush_gb, counters.ingest_gb, counters.uptime), (0.123, 0.40, 12.5));
        assert_eq!((counters.compaction_seconds, counters.compaction_cpu_seconds), (4.25, 3.75));
        assert_eq!((counters.stall_percent, counters.stalls), (10.0, 3));
    }

    #[test]
    fn sizes_have_units_and_blob_files_columns_of_their_own() {
        assert_eq!((gigabytes(" 512.0 MB write, 1"), gigabytes("2.5 TB, x")), (0.5, 2560.0));
        assert_eq!((gigabytes("0.91 GB write"), gigabytes(""), gigabytes("5 apples")), (0.91, 0.0, 0.0));
        let blobs = SAMPLE.replace("20K       0.0       0.0", "20K       1.5       2.5");
        let counters = Counters::parse(&blobs);
        assert_eq!((counters.blob_read_gb, counters.blob_write_gb), (1.5, 2.5));
        let counters = Counters { cache_used: 7, cache_capacity: 8, ..counters };
        let later =
            Counters { blob_read_gb: 2.0, blob_write_gb: 4.0, blob_bytes: 9, cache_used: 8, ..counters };
        let between = later.since(&counters);
        assert_eq!((between.cache_used, between.cache_capacity), (7, 8));
        assert_eq!((between.blob_read_gb, between.blob_write_gb, between.blob_bytes), (0.5, 1.5, 9));
    }

    #[test]
    fn stalls_that_older_versions_name_twice_are_counted_once() {
        let line = "Stalls(count): 12 level0_slowdown, 10 level0_slowdown_with_compaction, 3 level0_numfiles, \
                    3 level0_numfiles_with_compaction, 1 stop for pending_compaction_bytes, 2 slowdown for \
                    pending_compaction_bytes, 4 memtable_compaction, 0 memtable_slowdown, interval 9 total count";
        assert_eq!(stall_count(line), 22);
    }

    #[test]
    fn a_missing_column_moves_nothing() {
        let older = SAMPLE.replace(" WPreComp(GB)", "").replace("0.9       0.9       0.1", "0.9       0.1");
        assert_eq!(Counters::parse(&older).compaction_seconds, 4.25);
    }
}
