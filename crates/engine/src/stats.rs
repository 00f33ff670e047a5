//! Counters behind the properties and the statistics text.
//!
//! All are monotonic and relaxed: they order nothing. Those on the put path are written only by the
//! leader of the write group, so they cost plain stores.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A monotonic counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`; any thread.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds `n` without a locked instruction. Only for counters with one writer at a time.
    #[inline]
    pub fn add_single_writer(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Counts from 0 again. For one with a single writer: while that does not count.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The value now.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of the whole database.
#[derive(Debug, Default)]
pub struct DbStats {
    /// Write calls.
    pub writes: Counter,
    /// Records written by them.
    pub keys_written: Counter,
    /// Bytes of user writes, in batch form.
    pub bytes_written: Counter,
    /// Write groups, each of which is one WAL record.
    pub groups: Counter,
    /// WAL bytes appended.
    pub wal_bytes: Counter,
    /// WAL syncs.
    pub wal_syncs: Counter,
    /// Microseconds that writers were held back.
    pub stall_micros: Counter,
    /// Write groups that a shared write buffer manager had no memory for, whether they waited or were refused.
    pub memory_stops: Counter,
    /// When the counters were last reset, microseconds since the epoch; 0: never.
    pub reset_micros: AtomicU64,
    /// When statistics were last written to LOG, microseconds since the epoch.
    pub dumped_micros: AtomicU64,
    /// The figures that `rocksdb.dbstats` reported last: intervals are counted from there.
    pub reported: Mutex<ReportedWrites>,
}

impl DbStats {
    /// Counts from 0 again, at `now` in microseconds since the epoch. While nobody writes.
    pub fn reset(&self, now: u64) {
        for counter in [
            &self.writes,
            &self.keys_written,
            &self.bytes_written,
            &self.groups,
            &self.wal_bytes,
            &self.wal_syncs,
            &self.stall_micros,
            &self.memory_stops,
        ] {
            counter.reset();
        }
        self.reset_micros.store(now, Ordering::Relaxed);
        *self.reported.lock() = ReportedWrites::default();
    }
}

/// Counters of writes at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedWrites {
    /// Seconds since the database was opened.
    pub uptime: f64,
    /// As the counters of [`DbStats`] with these names.
    pub writes: u64,
    pub keys_written: u64,
    pub bytes_written: u64,
    pub groups: u64,
    pub wal_bytes: u64,
    pub wal_syncs: u64,
    pub stall_micros: u64,
}

/// Files that were ingested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ingested {
    /// Their bytes.
    pub bytes: u64,
    /// How many.
    pub files: u64,
    /// Of them, those in L0.
    pub l0_files: u64,
    /// Their entries.
    pub keys: u64,
}

impl Ingested {
    /// Adds what came.
    pub fn add(&mut self, more: &Ingested) {
        self.bytes += more.bytes;
        self.files += more.files;
        self.l0_files += more.l0_files;
        self.keys += more.keys;
    }
}

/// The work that a column family had done when `rocksdb.cfstats` was last asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedWork {
    /// Seconds since the database was opened.
    pub uptime: f64,
    /// All levels.
    pub levels: LevelStats,
    /// Of `levels`, by flushes.
    pub flushes: LevelStats,
    /// As [`ColumnFamilyStats::ingested`].
    pub ingested: Ingested,
    /// Stalls of all causes.
    pub stalls: u64,
}

/// Work done by flushes and compactions into one level.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelStats {
    /// Jobs.
    pub count: u64,
    /// Wall time of the jobs, microseconds.
    pub micros: u64,
    /// CPU time of the jobs, microseconds.
    pub cpu_micros: u64,
    /// Bytes read from the start level.
    pub bytes_read: u64,
    /// Bytes read from the output level.
    pub bytes_read_output_level: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes moved down without rewriting.
    pub bytes_moved: u64,
    /// Records read.
    pub records_in: u64,
    /// Records dropped.
    pub records_dropped: u64,
}

impl LevelStats {
    /// The work since `earlier`.
    pub fn since(&self, earlier: &LevelStats) -> LevelStats {
        LevelStats {
            count: self.count - earlier.count,
            micros: self.micros - earlier.micros,
            cpu_micros: self.cpu_micros - earlier.cpu_micros,
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_read_output_level: self.bytes_read_output_level - earlier.bytes_read_output_level,
            bytes_written: self.bytes_written - earlier.bytes_written,
            bytes_moved: self.bytes_moved - earlier.bytes_moved,
            records_in: self.records_in - earlier.records_in,
            records_dropped: self.records_dropped - earlier.records_dropped,
        }
    }

    /// Adds another job's work.
    pub fn add(&mut self, other: &LevelStats) {
        self.count += other.count;
        self.micros += other.micros;
        self.cpu_micros += other.cpu_micros;
        self.bytes_read += other.bytes_read;
        self.bytes_read_output_level += other.bytes_read_output_level;
        self.bytes_written += other.bytes_written;
        self.bytes_moved += other.bytes_moved;
        self.records_in += other.records_in;
        self.records_dropped += other.records_dropped;
    }
}

/// Why writers were held back; the order is RocksDB's in its stall line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// Too many L0 files.
    L0Files,
    /// Too many memtables wait for flush.
    Memtables,
    /// Too much compaction debt.
    PendingCompactionBytes,
}

/// How many times writers were slowed or stopped, by cause.
#[derive(Debug, Default)]
pub struct StallCounters {
    delays: [Counter; 3],
    stops: [Counter; 3],
    /// Of those for L0 files, the ones while L0 was being compacted.
    delays_while_compacting: Counter,
    stops_while_compacting: Counter,
}

impl StallCounters {
    /// Counts one change into the slowed state.
    pub fn delayed(&self, cause: StallCause, compacts_l0: bool) {
        self.delays[cause as usize].add(1);
        self.delays_while_compacting.add(u64::from(compacts_l0 && cause == StallCause::L0Files));
    }

    /// Counts one change into the stopped state.
    pub fn stopped(&self, cause: StallCause, compacts_l0: bool) {
        self.stops[cause as usize].add(1);
        self.stops_while_compacting.add(u64::from(compacts_l0 && cause == StallCause::L0Files));
    }

    /// Times slowed and stopped for L0 files while L0 was being compacted.
    pub fn while_compacting(&self) -> (u64, u64) {
        (self.delays_while_compacting.get(), self.stops_while_compacting.get())
    }

    /// Counts from 0 again.
    fn reset(&self) {
        self.delays.iter().chain(&self.stops).for_each(Counter::reset);
        self.delays_while_compacting.reset();
        self.stops_while_compacting.reset();
    }

    /// Times slowed for `cause`.
    pub fn delays(&self, cause: StallCause) -> u64 {
        self.delays[cause as usize].get()
    }

    /// Times stopped for `cause`.
    pub fn stops(&self, cause: StallCause) -> u64 {
        self.stops[cause as usize].get()
    }
}

/// The work that flushes and compactions of one column family have done, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// By level written to; flushes count in level 0.
    pub levels: Vec<LevelStats>,
    /// Of `levels`, by flushes.
    pub flushes: LevelStats,
}

/// Counters of one column family.
#[derive(Debug)]
pub struct ColumnFamilyStats {
    /// Of flushes and compactions.
    pub work: Mutex<Work>,
    /// Stalls.
    pub stalls: StallCounters,
    /// Files that were ingested.
    pub ingested: Mutex<Ingested>,
    /// The figures that `rocksdb.cfstats` reported last: intervals are counted from there.
    pub reported: Mutex<ReportedWork>,
}

impl ColumnFamilyStats {
    pub(crate) fn new(num_levels: usize) -> ColumnFamilyStats {
        ColumnFamilyStats {
            work: Mutex::new(Work {
                levels: vec![LevelStats::default(); num_levels.max(1)],
                flushes: LevelStats::default(),
            }),
            stalls: StallCounters::default(),
            ingested: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// Counts from 0 again.
    pub fn reset(&self) {
        let mut reported = self.reported.lock();
        let mut work = self.work.lock();
        work.levels.iter_mut().for_each(|level| *level = LevelStats::default());
        work.flushes = LevelStats::default();
        drop(work);
        *self.ingested.lock() = Ingested::default();
        self.stalls.reset();
        *reported = ReportedWork::default();
    }

    /// Adds one flush.
    pub fn record_flush(&self, job: &LevelStats) {
        let mut work = self.work.lock();
        work.levels[0].add(job);
        work.flushes.add(job);
    }

    /// Adds one job's work to `level`.
    pub fn record(&self, level: usize, job: &LevelStats) {
        let mut work = self.work.lock();
        if let Some(level) = work.levels.get_mut(level) {
            level.add(job);
        }
    }
}
