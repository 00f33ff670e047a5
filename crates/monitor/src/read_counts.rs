//! The counts of a lookup: a few cells that stand together, each of which stands for all tickers and counters of the thread that change
//! with it.
//!
//! ```text
//! lookup --Counting--> ReadCounts of the thread's shard                      statistics alone: one addition an event
//!                 `--> ReadCounts of its own --Watch::counted--> the rest    also for the thread's perf context, or shards that are shared
//! ```
//! A ticker is the sum of its own cell and of these: added up when somebody reads it.

use crate::{Counter, PerfMetric, Ticker};
use std::sync::atomic::{AtomicU64, Ordering};

/// An event of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCount {
    /// Nothing that counts: the place of a table without a filter.
    Nothing,
    /// A memtable decided the key.
    MemtableHit,
    /// None did.
    MemtableMiss,
    /// Memtables asked.
    MemtablesAsked,
    /// A filter did not rule the table out.
    FilterPositive,
    /// A filter ruled the table out.
    FilterUseful,
    /// A filter let a lookup through that found its key.
    FilterRight,
    /// As the three above, of a filter of prefixes.
    PrefixPositive,
    /// A filter of prefixes ruled the table out.
    PrefixUseful,
    /// A filter of prefixes let a lookup through that found its key.
    PrefixRight,
    /// A filter was asked for a seek, and did not rule the table out.
    SeekPositive,
    /// A filter was asked for a seek, and ruled the table out.
    SeekUseful,
    /// As [`ReadCount::SeekPositive`], of a table in the last level.
    LastLevelSeekPositive,
    /// As [`ReadCount::SeekUseful`], of a table in the last level.
    LastLevelSeekUseful,
    /// A value was in a table of L0.
    HitL0,
    /// A value was in a table of L1.
    HitL1,
    /// A value was in a table below L1.
    HitL2AndUp,
    /// A data block was in the cache.
    DataHit,
    /// Bytes of data blocks that were in the cache.
    DataHitBytes,
    /// As for data blocks, of indexes.
    IndexHit,
    /// Bytes of indexes that were in the cache.
    IndexHitBytes,
    /// As for data blocks, of filters.
    FilterHit,
    /// Bytes of filters that were in the cache.
    FilterHitBytes,
}

impl ReadCount {
    /// All, in the order of their numbers.
    pub(crate) const ALL: &[ReadCount] = {
        use ReadCount::*;
        &[
            Nothing,
            MemtableHit,
            MemtableMiss,
            MemtablesAsked,
            FilterPositive,
            FilterUseful,
            FilterRight,
            PrefixPositive,
            PrefixUseful,
            PrefixRight,
            SeekPositive,
            SeekUseful,
            LastLevelSeekPositive,
            LastLevelSeekUseful,
            HitL0,
            HitL1,
            HitL2AndUp,
            DataHit,
            DataHitBytes,
            IndexHit,
            IndexHitBytes,
            FilterHit,
            FilterHitBytes,
        ]
    };

    /// The tickers that change with it.
    pub(crate) fn tickers(self) -> &'static [Ticker] {
        match self {
            ReadCount::MemtableHit => &[Ticker::MemtableHit],
            ReadCount::MemtableMiss => &[Ticker::MemtableMiss],
            ReadCount::FilterPositive => &[Ticker::BloomFilterFullPositive],
            ReadCount::FilterUseful => &[Ticker::BloomFilterUseful],
            ReadCount::FilterRight => &[Ticker::BloomFilterFullTruePositive],
            ReadCount::PrefixPositive => &[Ticker::BloomFilterPrefixChecked],
            ReadCount::PrefixUseful => &[Ticker::BloomFilterPrefixChecked, Ticker::BloomFilterPrefixUseful],
            ReadCount::PrefixRight => &[Ticker::BloomFilterPrefixTruePositive],
            ReadCount::HitL0 => &[Ticker::GetHitL0],
            ReadCount::HitL1 => &[Ticker::GetHitL1],
            ReadCount::HitL2AndUp => &[Ticker::GetHitL2AndUp],
            ReadCount::DataHit => &[Ticker::BlockCacheHit, Ticker::BlockCacheDataHit],
            ReadCount::IndexHit => &[Ticker::BlockCacheHit, Ticker::BlockCacheIndexHit],
            ReadCount::FilterHit => &[Ticker::BlockCacheHit, Ticker::BlockCacheFilterHit],
            ReadCount::DataHitBytes | ReadCount::IndexHitBytes | ReadCount::FilterHitBytes => {
                &[Ticker::BlockCacheBytesRead]
            }
            ReadCount::SeekPositive => &[Ticker::NonLastLevelSeekFilterMatch],
            ReadCount::SeekUseful => &[Ticker::NonLastLevelSeekFiltered],
            ReadCount::LastLevelSeekPositive => &[Ticker::LastLevelSeekFilterMatch],
            ReadCount::LastLevelSeekUseful => &[Ticker::LastLevelSeekFiltered],
            ReadCount::MemtablesAsked | ReadCount::Nothing => &[],
        }
    }

    /// The counters of the thread that change with it.
    pub(crate) fn metrics(self) -> &'static [PerfMetric] {
        match self {
            ReadCount::MemtablesAsked => &[PerfMetric::GetFromMemtableCount],
            ReadCount::FilterPositive
            | ReadCount::PrefixPositive
            | ReadCount::SeekPositive
            | ReadCount::LastLevelSeekPositive => &[PerfMetric::BloomSstHitCount],
            ReadCount::FilterUseful
            | ReadCount::PrefixUseful
            | ReadCount::SeekUseful
            | ReadCount::LastLevelSeekUseful => &[PerfMetric::BloomSstMissCount],
            ReadCount::DataHit => &[PerfMetric::BlockCacheHitCount],
            ReadCount::DataHitBytes => &[PerfMetric::BlockCacheReadByte],
            ReadCount::IndexHit => &[PerfMetric::BlockCacheHitCount, PerfMetric::BlockCacheIndexHitCount],
            ReadCount::IndexHitBytes => {
                &[PerfMetric::BlockCacheReadByte, PerfMetric::BlockCacheIndexReadByte]
            }
            ReadCount::FilterHit => &[PerfMetric::BlockCacheHitCount, PerfMetric::BlockCacheFilterHitCount],
            ReadCount::FilterHitBytes => {
                &[PerfMetric::BlockCacheReadByte, PerfMetric::BlockCacheFilterReadByte]
            }
            _ => &[],
        }
    }
}

/// How often each happened. Written by one thread. In lines of its own: what nobody reads may not slow down others.
#[repr(align(64))]
pub(crate) struct ReadCounts([AtomicU64; ReadCount::ALL.len()]);

impl ReadCounts {
    pub(crate) const fn new() -> ReadCounts {
        ReadCounts([const { AtomicU64::new(0) }; ReadCount::ALL.len()])
    }

    // All relaxed: counters order nothing.
    #[inline(always)]
    fn add(&self, what: ReadCount, n: u64) {
        let cell = &self.0[what as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds each of `counts` to its own.
    pub(crate) fn add_all(&self, counts: &ReadCounts) {
        ReadCount::ALL.iter().for_each(|what| self.add(*what, counts.get(*what)));
    }

    #[inline]
    pub(crate) fn get(&self, what: ReadCount) -> u64 {
        self.0[what as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
    }
}

/// For lookups that nobody counts, where nothing is there to be faster.
static UNREAD: ReadCounts = ReadCounts::new();

thread_local! {
    /// For all other lookups that nobody counts: they add to it without asking, which takes an instruction an event, and nobody reads it.
    static UNREAD_OF_THREAD: ReadCounts = const { ReadCounts::new() };
}

/// Where a lookup counts what happens, passed down through the layers of the engine.
#[derive(Clone, Copy)]
pub struct Counting<'c>(pub(crate) &'c ReadCounts);

impl Counting<'_> {
    /// Nobody counts. All threads that use it write the same memory: where many of them may look up at once, [`Counting::off`] is better.
    pub const OFF: Counting<'static> = Counting(&UNREAD);

    /// Runs a lookup that nobody counts.
    #[inline(always)]
    pub fn off<T>(look_up: impl FnOnce(Counting<'_>) -> T) -> T {
        Counting::of(None, look_up)
    }

    /// Runs a lookup that `stats` counts, if they are there.
    #[inline(always)]
    pub fn of<T>(stats: Option<Counter<'_>>, look_up: impl FnOnce(Counting<'_>) -> T) -> T {
        UNREAD_OF_THREAD.with(|unread| look_up(Counting(stats.map_or(unread, Counter::reads))))
    }

    /// True if somebody counts. Not for what happens often: to add is cheaper than to ask.
    #[cold]
    pub fn is_on(self) -> bool {
        let is_own = UNREAD_OF_THREAD.try_with(|unread| std::ptr::eq(unread, self.0)).unwrap_or(false);
        !is_own && !std::ptr::eq(&raw const UNREAD, self.0)
    }

    /// It happened `n` times.
    #[inline(always)]
    pub fn add(self, what: ReadCount, n: u64) {
        self.0.add(what, n);
    }
}
