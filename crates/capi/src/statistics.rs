//! Statistics of options with `enable_statistics`, and the per-thread counters of RocksDB.
//!
//! The engine counts less than RocksDB: the tickers below are what it has, others are 0. Histograms and per-thread
//! counters are empty.

use crate::memory::{copy_out_text, give_back, hand_out};
use crate::options::rocksdb_options_t;
use crate::settings::{Fate, Note};
use libc::{c_char, c_double, c_int, c_uchar};
use outcrop::{CounterSource, Counters, Db};
use std::sync::Mutex;

/// The counters of all databases that were opened under one options object; they go when a database is closed.
#[derive(Default)]
pub(crate) struct Statistics {
    sources: Mutex<Vec<CounterSource>>,
}

/// A ticker: its number in RocksDB 11, its name, and what it counts.
type Ticker = (u32, &'static str, fn(&Counters) -> u64);

/// Source: RocksDB `include/rocksdb/statistics.h`, `enum Tickers`.
const TICKERS: &[Ticker] = &[
    (58, "rocksdb.number.keys.written", |c| c.keys_written),
    (61, "rocksdb.bytes.written", |c| c.bytes_written),
    (76, "rocksdb.stall.micros", |c| c.stall_micros),
    (84, "rocksdb.wal.synced", |c| c.wal_syncs),
    (85, "rocksdb.wal.bytes", |c| c.wal_bytes),
    (91, "rocksdb.write.self", |c| c.write_groups),
    (92, "rocksdb.write.other", |c| c.writes.saturating_sub(c.write_groups)),
    (94, "rocksdb.compact.read.bytes", |c| c.compaction_bytes_read),
    (95, "rocksdb.compact.write.bytes", |c| c.compaction_bytes_written),
    (96, "rocksdb.flush.write.bytes", |c| c.flush_bytes),
];

impl Statistics {
    /// Counts `db` from now on.
    pub(crate) fn add(&self, db: &Db) {
        self.lock().push(db.counter_source());
    }

    /// The ticker with RocksDB's number `number`; 0 for one the engine does not count.
    pub(crate) fn ticker(&self, number: u32) -> u64 {
        TICKERS.iter().find(|(known, ..)| *known == number).map_or(0, |(_, _, count)| self.total(*count))
    }

    fn total(&self, count: fn(&Counters) -> u64) -> u64 {
        let mut sources = self.lock();
        let mut total = 0;
        sources.retain(|source| {
            source.read().is_some_and(|counters| {
                total += count(&counters);
                true
            })
        });
        total
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<CounterSource>> {
        // A panic while it was held leaves a list that is as good as before.
        self.sources.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl std::fmt::Display for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        TICKERS.iter().try_for_each(|(_, name, count)| writeln!(f, "{name} COUNT : {}", self.total(*count)))
    }
}

/// Empty: the engine keeps no histograms.
pub struct rocksdb_statistics_histogram_data_t;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_statistics_histogram_data_create() -> *mut rocksdb_statistics_histogram_data_t {
    boundary!(hand_out(rocksdb_statistics_histogram_data_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_statistics_histogram_data_destroy(
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    boundary!(give_back(data))
}

/// Leaves `data` as it is: empty.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_statistics_get_histogram_data(
    _options: *mut rocksdb_options_t,
    _histogram_type: u32,
    _data: *mut rocksdb_statistics_histogram_data_t,
) {
}

macro_rules! empty {
    ($($name:ident -> $type:ty = $value:expr;)*) => {
        pub(crate) const HISTOGRAM_NOTES: &[Note] = &[$(Note {
            function: stringify!($name), fate: Fate::Accepted, why: "histograms are not kept: always 0",
        }),*];

        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(_data: *mut rocksdb_statistics_histogram_data_t) -> $type {
                boundary!($value)
            }
        )*
    };
}

empty! {
    rocksdb_statistics_histogram_data_get_median -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_p95 -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_p99 -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_average -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_std_dev -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_max -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_min -> c_double = 0.0;
    rocksdb_statistics_histogram_data_get_count -> u64 = 0;
    rocksdb_statistics_histogram_data_get_sum -> u64 = 0;
}

/// Empty: the engine does not count per thread.
pub struct rocksdb_perfcontext_t;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_create() -> *mut rocksdb_perfcontext_t {
    boundary!(hand_out(rocksdb_perfcontext_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_perfcontext_destroy(context: *mut rocksdb_perfcontext_t) {
    boundary!(give_back(context))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_perf_level(_level: c_int) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_reset(_context: *mut rocksdb_perfcontext_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_report(
    _context: *mut rocksdb_perfcontext_t,
    _exclude_zero_counters: c_uchar,
) -> *mut c_char {
    boundary!(copy_out_text(""))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_metric(_context: *mut rocksdb_perfcontext_t, _metric: c_int) -> u64 {
    boundary!(0)
}

/// The level of statistics that are enabled: all but detailed timers.
///
/// Source: RocksDB `include/rocksdb/statistics.h`, `enum StatsLevel`.
const DEFAULT_LEVEL: c_int = 3;

/// Without statistics it does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_statistics_level(options: *mut rocksdb_options_t, level: c_int) {
    boundary!({
        let options = &mut *options;
        if options.statistics.is_some() {
            options.settings.keep(Fate::Accepted, "statistics_level", DEFAULT_LEVEL, level.clamp(0, 5));
        }
    })
}

/// 0, which is nothing, without statistics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_statistics_level(options: *mut rocksdb_options_t) -> c_int {
    boundary!({
        let options = &*options;
        options.statistics.as_ref().map_or(0, |_| options.settings.kept("statistics_level", DEFAULT_LEVEL))
    })
}

const fn accepted(function: &'static str, why: &'static str) -> Note {
    Note { function, fate: Fate::Accepted, why }
}

pub(crate) const STATISTICS_NOTES: &[Note] = &[
    accepted("rocksdb_options_statistics_get_ticker_count", "ten tickers are counted, others are 0"),
    accepted("rocksdb_options_statistics_get_histogram_data", "histograms are not kept"),
    accepted("rocksdb_options_set_statistics_level", "the tickers that there are cost nothing"),
    accepted("rocksdb_options_get_statistics_level", "the tickers that there are cost nothing"),
    accepted("rocksdb_set_perf_level", "nothing is counted per thread"),
    accepted("rocksdb_perfcontext_reset", "nothing is counted per thread"),
    accepted("rocksdb_perfcontext_report", "nothing is counted per thread: empty"),
    accepted("rocksdb_perfcontext_metric", "nothing is counted per thread: always 0"),
];
