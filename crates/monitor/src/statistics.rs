//! [`Statistics`]: tickers and histograms of the databases that were opened with it, in one shard for each thread.
//!
//! A thread takes a slot when it first counts and gives it back when it ends; the next thread to get it goes on in the same shard.
//! Concurrency: a slot has one thread at a time, so its shard is written by loads and stores. Readers add all shards up.
//! [`Statistics::reset`] begins a new generation: shards of an older one are not read, and are cleared by their thread before
//! it writes again.

use crate::histogram::{Cells, HistogramData};
use crate::{HistogramKind, Ticker};
use std::cell::Cell;
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Threads with a shard of their own.
const SLOTS: usize = 64;
/// The shard of all other threads.
const SHARED: usize = SLOTS;

/// One bit for each slot that a thread has.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// In place of a slot's number: the thread has not counted yet.
const NONE: usize = usize::MAX;

thread_local! {
    /// The number of the thread's slot. Apart from the slot, so that reading it takes one load.
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    static SLOT: Slot = Slot::take();
}

/// The calling thread's place in every [`Statistics`].
struct Slot(usize);

impl Slot {
    fn take() -> Slot {
        let free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        // Acquire: pairs with the Release in drop; the last owner's counts are seen before this one adds to them.
        let before = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, free);
        Slot(before.map_or(SHARED, |taken| (!taken).trailing_zeros() as usize))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // For all that is counted while the thread ends.
        NUMBER.set(SHARED);
        if self.0 != SHARED {
            // Release: pairs with the Acquire in take.
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

/// How much is counted.
///
/// Source: RocksDB `include/rocksdb/statistics.h`, `enum StatsLevel`.
///
/// ```
/// use outcrop_monitor::{Statistics, StatsLevel, Ticker};
///
/// let statistics = Statistics::new();
/// statistics.set_level(StatsLevel::DisableAll);
/// statistics.count(Ticker::BytesWritten, 1);
/// assert_eq!(statistics.ticker(Ticker::BytesWritten), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsLevel {
    /// Nothing.
    DisableAll,
    /// Tickers.
    ExceptHistogramOrTimers,
    /// Histograms too, but for those of times.
    ExceptTimers,
    /// Times too, but for those of compression.
    #[default]
    ExceptDetailedTimers,
    /// All but waits for locks.
    ExceptTimeForMutex,
    /// All.
    All,
}

impl StatsLevel {
    /// The level with RocksDB's number; beyond both ends the nearest.
    pub fn from_number(number: i64) -> StatsLevel {
        use StatsLevel::*;
        let levels = [
            DisableAll,
            ExceptHistogramOrTimers,
            ExceptTimers,
            ExceptDetailedTimers,
            ExceptTimeForMutex,
            All,
        ];
        levels[number.clamp(0, 5) as usize]
    }
}

/// Of one thread. Shards share no line of a processor's cache: counting in one thread would slow down another.
#[repr(align(64))]
struct Shard {
    generation: AtomicU64,
    tickers: [AtomicU64; Ticker::COUNT],
    histograms: [OnceLock<Box<Cells>>; HistogramKind::COUNT],
}

impl Shard {
    fn new(generation: u64) -> Box<Shard> {
        Box::new(Shard {
            generation: AtomicU64::new(generation),
            tickers: [const { AtomicU64::new(0) }; Ticker::COUNT],
            histograms: [const { OnceLock::new() }; HistogramKind::COUNT],
        })
    }

    fn clear(&self) {
        // Relaxed: counters order nothing.
        self.tickers.iter().for_each(|ticker| ticker.store(0, Ordering::Relaxed));
        self.histograms.iter().filter_map(OnceLock::get).for_each(|cells| cells.clear());
    }

    #[cold]
    fn begin(&self, generation: u64) {
        self.clear();
        // Release: pairs with the Acquire of readers, who see it cleared.
        self.generation.store(generation, Ordering::Release);
    }
}

/// Counters of one or several databases, shared as `Arc<Statistics>`. Each of the first 64 threads that count takes 4 KiB, and 1 KiB for each
/// histogram it adds to.
///
/// ```
/// use outcrop_monitor::{Statistics, Ticker};
///
/// let statistics = Statistics::new();
/// statistics.count(Ticker::NumberKeysRead, 2);
/// assert_eq!(statistics.ticker(Ticker::NumberKeysRead), 2);
/// assert!(statistics.text().starts_with("rocksdb.block.cache.miss COUNT : 0\n"));
/// ```
pub struct Statistics {
    level: AtomicU8,
    generation: AtomicU64,
    shards: [OnceLock<Box<Shard>>; SLOTS + 1],
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics::new()
    }
}

impl std::fmt::Debug for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statistics").field("level", &self.level()).finish_non_exhaustive()
    }
}

impl Statistics {
    /// All counters 0, at [`StatsLevel::ExceptDetailedTimers`].
    pub fn new() -> Statistics {
        Statistics {
            level: AtomicU8::new(StatsLevel::default() as u8),
            generation: AtomicU64::new(0),
            shards: [const { OnceLock::new() }; SLOTS + 1],
        }
    }

    /// How much is counted.
    #[inline]
    pub fn level(&self) -> StatsLevel {
        // Relaxed: an operation under way may go by the level before.
        StatsLevel::from_number(i64::from(self.level.load(Ordering::Relaxed)))
    }

    /// True if anything is counted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: as in `level`.
        self.level.load(Ordering::Relaxed) != StatsLevel::DisableAll as u8
    }

    /// Changes how much is counted from the next operations on. Earlier counts stay.
    pub fn set_level(&self, level: StatsLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// The calling thread's part; `None` if nothing is counted.
    #[inline]
    pub fn local(&self) -> Option<Local<'_>> {
        // Relaxed: as in `level`.
        let level = self.level.load(Ordering::Relaxed);
        if level == StatsLevel::DisableAll as u8 {
            return None;
        }
        let slot = NUMBER.get();
        // Relaxed: counts made during a reset may be lost.
        let generation = self.generation.load(Ordering::Relaxed);
        match self.shards.get(slot).and_then(OnceLock::get) {
            Some(shard) if shard.generation.load(Ordering::Relaxed) == generation => {
                Some(Local { shard, alone: slot != SHARED, level })
            }
            _ => Some(self.begin_local(generation, level)),
        }
    }

    /// The calling thread's part, with a shard that is ready to be written.
    #[cold]
    fn begin_local(&self, generation: u64, level: u8) -> Local<'_> {
        if NUMBER.get() == NONE {
            // A thread that ends has given its slot back.
            NUMBER.set(SLOT.try_with(|slot| slot.0).unwrap_or(SHARED));
        }
        let slot = NUMBER.get();
        let shard = self.shards[slot].get_or_init(|| Shard::new(generation));
        let alone = slot != SHARED;
        if alone && shard.generation.load(Ordering::Relaxed) != generation {
            shard.begin(generation);
        }
        Local { shard, alone, level }
    }

    /// Adds `n` to a ticker. For single events; operations take [`Statistics::local`] once.
    pub fn count(&self, ticker: Ticker, n: u64) {
        if let Some(local) = self.local() {
            local.count(ticker, n);
        }
    }

    /// Adds one value to a histogram of anything but times.
    pub fn record(&self, kind: HistogramKind, value: u64) {
        if let Some(local) = self.local() {
            local.record(kind, value);
        }
    }

    /// Adds one value to a histogram of times.
    pub fn record_time(&self, kind: HistogramKind, time: u64) {
        if let Some(local) = self.local() {
            local.record_time(kind, time);
        }
    }

    /// True if times are measured.
    pub fn has_timers(&self) -> bool {
        self.level() > StatsLevel::ExceptTimers
    }

    fn current(&self) -> impl Iterator<Item = &Shard> {
        let generation = self.generation.load(Ordering::Relaxed);
        let shards = self.shards.iter().enumerate().filter_map(|(slot, shard)| Some((slot, shard.get()?)));
        // Acquire: pairs with the Release in `begin`.
        shards
            .filter(move |(slot, shard)| {
                *slot == SHARED || shard.generation.load(Ordering::Acquire) == generation
            })
            .map(|(_, shard)| &**shard)
    }

    /// The ticker's count.
    pub fn ticker(&self, ticker: Ticker) -> u64 {
        self.current().map(|shard| shard.tickers[ticker as usize].load(Ordering::Relaxed)).sum()
    }

    /// The ticker's count, which begins anew at 0. Counts of operations that are under way may be lost or not.
    ///
    /// ```
    /// use outcrop_monitor::{Statistics, StatsLevel, Ticker};
    ///
    /// let statistics = Statistics::new();
    /// statistics.set_level(StatsLevel::All);
    /// statistics.count(Ticker::ALL[0], 3);
    /// assert_eq!((statistics.take_ticker(Ticker::ALL[0]), statistics.ticker(Ticker::ALL[0])), (3, 0));
    /// ```
    pub fn take_ticker(&self, ticker: Ticker) -> u64 {
        // Relaxed: counters order nothing.
        self.current().map(|shard| shard.tickers[ticker as usize].swap(0, Ordering::Relaxed)).sum()
    }

    /// The histogram's values.
    pub fn histogram(&self, kind: HistogramKind) -> HistogramData {
        let mut data = HistogramData::default();
        self.current()
            .filter_map(|shard| shard.histograms[kind as usize].get())
            .for_each(|cells| data.add(cells));
        data
    }

    /// True if a thread without a shard of its own has counted.
    #[cfg(test)]
    pub(crate) fn shared_shard_is_used(&self) -> bool {
        self.shards[SHARED].get().is_some()
    }

    /// Sets all counters to 0. Counts of operations that are under way may be lost or not.
    pub fn reset(&self) {
        // Relaxed: as in `local`.
        let generation = self.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if let Some(shared) = self.shards[SHARED].get() {
            shared.begin(generation);
        }
    }

    /// All tickers and histograms, one a line. Source: RocksDB `Statistics::ToString`.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(20_000);
        for ticker in Ticker::ALL {
            let _ = writeln!(text, "{} COUNT : {}", ticker.name(), self.ticker(*ticker));
        }
        for kind in HistogramKind::ALL {
            let data = self.histogram(*kind);
            let _ = writeln!(
                text,
                "{} P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}",
                kind.name(),
                data.percentile(50.0),
                data.percentile(95.0),
                data.percentile(99.0),
                data.max() as f64,
                data.count(),
                data.sum()
            );
        }
        text
    }
}

/// The calling thread's part of a [`Statistics`], for one operation.
#[derive(Clone, Copy)]
pub struct Local<'s> {
    shard: &'s Shard,
    alone: bool,
    level: u8,
}

impl Local<'_> {
    /// Adds `n` to a ticker.
    #[inline]
    pub fn count(self, ticker: Ticker, n: u64) {
        let cell = &self.shard.tickers[ticker as usize];
        if self.alone {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        } else {
            cell.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Adds one value to a histogram of anything but times.
    #[inline]
    pub fn record(self, kind: HistogramKind, value: u64) {
        if self.level > StatsLevel::ExceptHistogramOrTimers as u8 {
            let cells = self.shard.histograms[kind as usize].get_or_init(Box::default);
            if self.alone { cells.add_alone(value) } else { cells.add_shared(value) }
        }
    }

    /// Adds one value to a histogram of times.
    #[inline]
    pub fn record_time(self, kind: HistogramKind, time: u64) {
        if self.has_timers() {
            self.record(kind, time);
        }
    }

    /// True if times are measured.
    #[inline]
    pub fn has_timers(self) -> bool {
        self.level > StatsLevel::ExceptTimers as u8
    }

    /// True if the times of compression are measured.
    #[inline]
    pub fn has_detailed_timers(self) -> bool {
        self.level > StatsLevel::ExceptDetailedTimers as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_no_line_of_a_cache() {
        const LINE: usize = 64;
        let statistics = Statistics::new();
        let place = |_| {
            std::thread::scope(|scope| {
                let at =
                    scope.spawn(|| statistics.local().map(|local| std::ptr::from_ref(local.shard).addr()));
                at.join().unwrap().unwrap()
            })
        };
        assert!((0..4).map(place).all(|at| at % LINE == 0));
        assert_eq!((size_of::<Shard>() % LINE, size_of::<Cells>() % LINE, align_of::<Cells>()), (0, 0, LINE));
    }
}
