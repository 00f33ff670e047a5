//! [`Statistics`]: tickers and histograms of the databases that were opened with it, in one shard for each thread.
//!
//! A thread takes a slot when it first counts and gives it back when it ends; the next thread to get it goes on in the same shard.
//! Concurrency: a slot has one thread at a time, so its shard is written by loads and stores. Readers add all shards up.
//! [`Statistics::reset`] begins a new generation: shards of an older one are not read, and are cleared by their thread before
//! it writes again.

use crate::histogram::{Cells, Exact, HistogramData};
use crate::read_counts::{ReadCount, ReadCounts};
use crate::{HistogramKind, Ticker};
use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Threads with a shard of their own.
const SLOTS: usize = 64;
/// The shard of all other threads.
const SHARED: usize = SLOTS;

/// One bit for each slot that a thread has.
static TAKEN: AtomicU64 = AtomicU64::new(0);

fn level_of(state: u64) -> u8 {
    state as u8
}

fn generation_of(state: u64) -> u64 {
    state >> 8
}

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
pub(crate) struct Shard {
    /// The [`Statistics::state`] it was made ready for.
    state: AtomicU64,
    /// Of lookups, for a thread that writes alone; told to `tickers` by all others.
    pub(crate) reads: ReadCounts,
    tickers: [AtomicU64; Ticker::COUNT],
    /// [`HistogramKind::BytesPerRead`] and [`HistogramKind::BytesPerWrite`], of a thread that writes alone.
    small: [Exact; 2],
    histograms: [OnceLock<Box<Cells>>; HistogramKind::COUNT],
}

impl Shard {
    fn new(state: u64) -> Box<Shard> {
        Box::new(Shard {
            state: AtomicU64::new(state),
            reads: ReadCounts::new(),
            tickers: [const { AtomicU64::new(0) }; Ticker::COUNT],
            small: [const { Exact::new() }; 2],
            histograms: [const { OnceLock::new() }; HistogramKind::COUNT],
        })
    }

    fn clear(&self) {
        // Relaxed: counters order nothing.
        self.reads.clear();
        self.tickers.iter().for_each(|ticker| ticker.store(0, Ordering::Relaxed));
        self.small.iter().for_each(Exact::clear);
        self.histograms.iter().filter_map(OnceLock::get).for_each(|cells| cells.clear());
    }

    /// The small values of a histogram, if they are apart.
    fn small(&self, kind: HistogramKind) -> Option<&Exact> {
        match kind {
            HistogramKind::BytesPerRead => Some(&self.small[0]),
            HistogramKind::BytesPerWrite => Some(&self.small[1]),
            _ => None,
        }
    }

    #[inline]
    fn record(&self, alone: bool, kind: HistogramKind, value: u64) {
        let cells = self.histograms[kind as usize].get_or_init(Box::default);
        if alone { cells.add_alone(value) } else { cells.add_shared(value) }
    }

    #[inline(never)]
    fn record_large(&self, kind: HistogramKind, value: u64) {
        self.record(true, kind, value);
    }

    /// The ticker's count, which is also counted as `of_reads`.
    fn ticker(&self, ticker: Ticker, of_reads: &[ReadCount]) -> u64 {
        let own = self.tickers[ticker as usize].load(Ordering::Relaxed);
        of_reads.iter().fold(own, |sum, what| sum.wrapping_add(self.reads.get(*what)))
    }

    /// Makes it ready for `state`.
    #[cold]
    fn begin(&self, state: u64) {
        if generation_of(self.state.load(Ordering::Relaxed)) != generation_of(state) {
            self.clear();
        }
        // Release: pairs with the Acquire of readers, who see it cleared.
        self.state.store(state, Ordering::Release);
    }
}

/// Counters of one or several databases, shared as `Arc<Statistics>`. Each of the first 64 threads that count takes 20 KiB, and 1 KiB for each
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
    /// The level in the lowest byte, and above it how often all was reset. Changed with `taken` locked.
    state: AtomicU64,
    shards: [OnceLock<Box<Shard>>; SLOTS + 1],
    /// The part of each ticker that [`Statistics::take_ticker`] has given out since the last reset.
    taken: Mutex<[u64; Ticker::COUNT]>,
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
            state: AtomicU64::new(StatsLevel::default() as u64),
            shards: [const { OnceLock::new() }; SLOTS + 1],
            taken: Mutex::new([0; Ticker::COUNT]),
        }
    }

    /// How much is counted.
    #[inline]
    pub fn level(&self) -> StatsLevel {
        // Relaxed: an operation under way may go by the level before.
        StatsLevel::from_number(i64::from(level_of(self.state.load(Ordering::Relaxed))))
    }

    /// True if anything is counted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: as in `level`.
        level_of(self.state.load(Ordering::Relaxed)) != StatsLevel::DisableAll as u8
    }

    /// Changes how much is counted from the next operations on. Earlier counts stay.
    pub fn set_level(&self, level: StatsLevel) {
        let _changing = self.taken();
        // Relaxed: as in `level`.
        let generation = generation_of(self.state.load(Ordering::Relaxed));
        self.begin(generation << 8 | level as u64);
    }

    /// The calling thread's part, if the thread has a shard of its own that is ready: what most operations need to know, without a call.
    #[inline(always)]
    pub(crate) fn quick_local(&self) -> Quick<'_> {
        // Relaxed: as in `level`; counts made during a reset may be lost.
        let state = self.state.load(Ordering::Relaxed);
        let level = level_of(state);
        // One comparison for both ends.
        let is_between = level.wrapping_sub(1) < StatsLevel::ExceptTimers as u8;
        if !is_between && level == StatsLevel::DisableAll as u8 {
            return Quick::Off;
        }
        // Neither the shared shard nor the number of a thread without a slot is in there.
        match self.shards[..SLOTS].get(NUMBER.get()).and_then(OnceLock::get) {
            Some(shard) if shard.state.load(Ordering::Relaxed) == state => {
                let counter = Counter { shard, level };
                if is_between { Quick::Ready(counter) } else { Quick::Timed(counter) }
            }
            _ => Quick::No,
        }
    }

    /// The calling thread's part; `None` if nothing is counted.
    #[inline]
    pub fn local(&self) -> Option<Local<'_>> {
        // Relaxed: as in `quick_local`.
        let state = self.state.load(Ordering::Relaxed);
        let level = level_of(state);
        if level == StatsLevel::DisableAll as u8 {
            return None;
        }
        let slot = NUMBER.get();
        match self.shards.get(slot).and_then(OnceLock::get) {
            Some(shard) if shard.state.load(Ordering::Relaxed) == state => {
                Some(Local { shard, alone: slot != SHARED, level })
            }
            _ => Some(self.begin_local(state)),
        }
    }

    /// The calling thread's part, with a shard that is ready to be written.
    #[cold]
    fn begin_local(&self, state: u64) -> Local<'_> {
        if NUMBER.get() == NONE {
            // A thread that ends has given its slot back.
            NUMBER.set(SLOT.try_with(|slot| slot.0).unwrap_or(SHARED));
        }
        let slot = NUMBER.get();
        let shard = self.shards[slot].get_or_init(|| Shard::new(state));
        let alone = slot != SHARED;
        if alone {
            shard.begin(state);
        }
        Local { shard, alone, level: level_of(state) }
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
        let generation = generation_of(self.state.load(Ordering::Relaxed));
        let shards = self.shards.iter().enumerate().filter_map(|(slot, shard)| Some((slot, shard.get()?)));
        // Acquire: pairs with the Release in `begin`.
        shards
            .filter(move |(slot, shard)| {
                *slot == SHARED || generation_of(shard.state.load(Ordering::Acquire)) == generation
            })
            .map(|(_, shard)| &**shard)
    }

    /// Goes over to `state`, with `taken` locked.
    fn begin(&self, state: u64) {
        self.state.store(state, Ordering::Relaxed);
        // It has no thread of its own to make it ready.
        if let Some(shared) = self.shards[SHARED].get() {
            shared.begin(state);
        }
    }

    fn taken(&self) -> MutexGuard<'_, [u64; Ticker::COUNT]> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that was counted since the last reset.
    fn whole(&self, ticker: Ticker) -> u64 {
        let of_reads: Vec<ReadCount> =
            ReadCount::ALL.iter().copied().filter(|what| what.tickers().contains(&ticker)).collect();
        self.current().map(|shard| shard.ticker(ticker, &of_reads)).fold(0, u64::wrapping_add)
    }

    /// The ticker's count.
    pub fn ticker(&self, ticker: Ticker) -> u64 {
        let taken = self.taken();
        self.whole(ticker).wrapping_sub(taken[ticker as usize])
    }

    /// The ticker's count, which begins anew at 0.
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
        let mut taken = self.taken();
        let whole = self.whole(ticker);
        whole.wrapping_sub(std::mem::replace(&mut taken[ticker as usize], whole))
    }

    /// The histogram's values.
    pub fn histogram(&self, kind: HistogramKind) -> HistogramData {
        let mut data = HistogramData::default();
        for shard in self.current() {
            shard.histograms[kind as usize].get().into_iter().for_each(|cells| data.add(cells));
            shard.small(kind).into_iter().for_each(|small| data.add_exact(small));
        }
        data
    }

    /// True if a thread without a shard of its own has counted.
    #[cfg(test)]
    pub(crate) fn shared_shard_is_used(&self) -> bool {
        self.shards[SHARED].get().is_some()
    }

    /// Sets all counters to 0. Counts of operations that are under way may be lost or not.
    pub fn reset(&self) {
        // Held to the end: what is counted from now on is not taken for what was given out.
        let mut taken = self.taken();
        *taken = [0; Ticker::COUNT];
        // Relaxed: as in `quick_local`.
        self.begin(self.state.load(Ordering::Relaxed) + (1 << 8));
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

/// The answer of [`Statistics::quick_local`].
pub(crate) enum Quick<'s> {
    /// Nothing is counted.
    Off,
    /// It counts there.
    Ready(Counter<'s>),
    /// The same, and times are wanted.
    Timed(Counter<'s>),
    /// Ask [`Statistics::local`].
    No,
}

/// As [`Local`], of a thread that writes alone: adding to a ticker is one instruction, and adding a small size to its histogram three.
#[derive(Clone, Copy)]
pub struct Counter<'s> {
    shard: &'s Shard,
    level: u8,
}

impl<'s> Counter<'s> {
    /// Adds to several tickers.
    #[inline(always)]
    pub fn count_all<const N: usize>(self, tickers: [(Ticker, u64); N]) {
        for (ticker, n) in tickers {
            let cell = &self.shard.tickers[ticker as usize];
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// Where a lookup counts.
    #[inline(always)]
    pub(crate) fn reads(self) -> &'s ReadCounts {
        &self.shard.reads
    }

    /// Adds the bytes of a value that was read to their histogram.
    #[inline(always)]
    pub fn record_read(self, bytes: u64) {
        self.record_small(&self.shard.small[0], HistogramKind::BytesPerRead, bytes);
    }

    /// Adds the bytes of a batch that was written to their histogram.
    #[inline(always)]
    pub fn record_write(self, bytes: u64) {
        self.record_small(&self.shard.small[1], HistogramKind::BytesPerWrite, bytes);
    }

    #[inline(always)]
    fn record_small(self, small: &Exact, kind: HistogramKind, value: u64) {
        if self.level > StatsLevel::ExceptHistogramOrTimers as u8 && !small.add_alone(value) {
            self.shard.record_large(kind, value);
        }
    }

    /// Adds one value to a histogram of times.
    pub fn record_time(self, kind: HistogramKind, time: u64) {
        if self.level > StatsLevel::ExceptTimers as u8 {
            self.shard.record_large(kind, time);
        }
    }
}

/// The calling thread's part of a [`Statistics`], for one operation.
#[derive(Clone, Copy)]
pub struct Local<'s> {
    shard: &'s Shard,
    alone: bool,
    level: u8,
}

impl<'s> Local<'s> {
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

    /// Adds to several tickers.
    pub fn count_all<const N: usize>(self, tickers: [(Ticker, u64); N]) {
        tickers.into_iter().for_each(|(ticker, n)| self.count(ticker, n));
    }

    /// Where a lookup counts: none if other threads write there, too.
    #[inline(always)]
    pub(crate) fn reads(self) -> Option<&'s ReadCounts> {
        self.alone.then_some(&self.shard.reads)
    }

    /// Adds what a lookup counted.
    pub(crate) fn add_reads(self, counts: &ReadCounts) {
        match self.reads() {
            Some(own) => own.add_all(counts),
            None => {
                for what in ReadCount::ALL.iter().filter(|what| counts.get(**what) != 0) {
                    what.tickers().iter().for_each(|ticker| self.count(*ticker, counts.get(*what)));
                }
            }
        }
    }

    /// Adds one value to a histogram of anything but times.
    #[inline]
    pub fn record(self, kind: HistogramKind, value: u64) {
        if self.level > StatsLevel::ExceptHistogramOrTimers as u8 {
            self.shard.record(self.alone, kind, value);
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
