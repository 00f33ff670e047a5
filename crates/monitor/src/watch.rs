//! [`Watch`]: whether one operation is counted, and where; passed down through the layers of the engine.

use crate::read_counts::ReadCounts;
use crate::statistics::Quick;
use crate::{
    Counter, Counting, HistogramKind, Local, PerfContext, PerfLevel, PerfMetric, Statistics, Ticker,
};
use outcrop_env::{Clock, SystemClock};
use std::sync::Arc;

/// The counters that watch the operations of a database, and the clock that measures them.
///
/// ```standalone_crate
/// // By itself: other examples of the process count for themselves.
/// use outcrop_monitor::{Monitor, Watch};
///
/// let watching = Monitor::none().begin().is_some();
/// assert!(!watching, "unless a thread of the process counts for itself");
/// ```
#[derive(Clone)]
pub struct Monitor {
    /// Counts all of them.
    pub statistics: Option<Arc<Statistics>>,
    /// Measures them.
    pub clock: Arc<dyn Clock>,
}

impl Monitor {
    /// Nobody but threads that count for themselves.
    pub fn none() -> Monitor {
        Monitor { statistics: None, clock: Arc::new(SystemClock::default()) }
    }

    /// False if nobody can want operations counted: nearly always the case, and cheap to know.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.statistics.as_ref().is_some_and(|statistics| statistics.is_on()) || PerfContext::is_in_use()
    }

    /// An operation begins that is to cost next to nothing where no times are measured. Its rare events ask [`Monitor::begin`].
    #[inline(always)]
    pub fn asked(&self) -> Asked<'_> {
        if PerfContext::is_in_use() {
            return Asked::More;
        }
        match self.statistics.as_deref().map(Statistics::quick_local) {
            None | Some(Quick::Off) => Asked::Nobody,
            Some(Quick::Ready(stats)) => Asked::Counts(stats),
            Some(Quick::Timed(stats)) => Asked::Times(stats),
            Some(Quick::No) => Asked::More,
        }
    }

    /// Lets `read` count what it looks up, where that is wanted.
    #[inline(always)]
    pub fn counted<T>(&self, read: impl FnOnce(Counting<'_>) -> T) -> T {
        let stats = match self.asked() {
            Asked::Nobody => None,
            Asked::Counts(stats) | Asked::Times(stats) => Some(stats),
            Asked::More => return self.counted_for_all(read),
        };
        Counting::of(stats, read)
    }

    #[cold]
    fn counted_for_all<T>(&self, read: impl FnOnce(Counting<'_>) -> T) -> T {
        Watch::from(&self.begin()).counted(read)
    }

    /// An operation begins.
    #[inline]
    pub fn begin(&self) -> Option<Watching<'_>> {
        if !self.is_asked() {
            return None;
        }
        Watching::begin(self.statistics.as_deref(), &*self.clock)
    }
}

/// The watchers of an operation: the answer of [`Monitor::asked`].
pub enum Asked<'m> {
    /// Nobody.
    Nobody,
    /// Statistics alone, and no times.
    Counts(Counter<'m>),
    /// Statistics alone, and times of operations.
    Times(Counter<'m>),
    /// [`Monitor::begin`] tells.
    More,
}

/// One operation that is counted.
pub struct Watching<'w> {
    stats: Option<Local<'w>>,
    perf: PerfLevel,
    clock: &'w dyn Clock,
}

impl<'w> Watching<'w> {
    #[inline(never)]
    fn begin(statistics: Option<&'w Statistics>, clock: &'w dyn Clock) -> Option<Watching<'w>> {
        let stats = statistics.and_then(Statistics::local);
        let perf = if PerfContext::is_in_use() { PerfContext::level() } else { PerfLevel::OFF };
        (stats.is_some() || perf > PerfLevel::OFF).then_some(Watching { stats, perf, clock })
    }
}

/// An operation as the layers of the engine see it: [`Watch::OFF`] if nobody counts it.
#[derive(Clone, Copy)]
pub struct Watch<'w>(Option<&'w Watching<'w>>);

impl<'w> From<&'w Option<Watching<'w>>> for Watch<'w> {
    #[inline]
    fn from(watching: &'w Option<Watching<'w>>) -> Watch<'w> {
        Watch(watching.as_ref())
    }
}

impl<'w> Watch<'w> {
    /// Nobody counts.
    pub const OFF: Watch<'static> = Watch(None);

    /// True if somebody counts.
    #[inline]
    pub fn is_on(self) -> bool {
        self.0.is_some()
    }

    /// The calling thread's part of the statistics, if the operation is counted there.
    #[inline]
    pub fn stats(self) -> Option<Local<'w>> {
        self.0?.stats
    }

    /// Lets `read` count what it looks up.
    #[inline]
    pub fn counted<T>(self, read: impl FnOnce(Counting<'_>) -> T) -> T {
        let Some(watching) = self.0 else { return Counting::off(read) };
        let counts_perf = watching.perf >= PerfLevel::COUNTS;
        if watching.stats.is_none() && counts_perf {
            return PerfContext::counted(read);
        }
        if !counts_perf && let Some(own) = watching.stats.and_then(Local::reads) {
            return read(Counting(own));
        }
        let counts = ReadCounts::new();
        let answer = read(Counting(&counts));
        if counts_perf {
            PerfContext::add_reads(&counts);
        }
        if let Some(stats) = watching.stats {
            stats.add_reads(&counts);
        }
        answer
    }

    /// Adds `n` to a ticker.
    #[inline]
    pub fn count(self, ticker: Ticker, n: u64) {
        if let Some(stats) = self.stats() {
            stats.count(ticker, n);
        }
    }

    /// Adds one value to a histogram of anything but times.
    #[inline]
    pub fn record(self, kind: HistogramKind, value: u64) {
        if let Some(stats) = self.stats() {
            stats.record(kind, value);
        }
    }

    /// Adds to a counter of the thread.
    #[inline]
    pub fn perf(self, metric: PerfMetric, n: u64) {
        if self.0.is_some_and(|watching| watching.perf >= PerfLevel::COUNTS) {
            PerfContext::add(metric, n);
        }
    }

    /// Begins to measure for a histogram and for a counter of the thread: [`Timer::micros`], [`Timer::perf_nanos`]. Where only one of them
    /// is told, [`Watch::stats_timer`] and [`Watch::perf_timer`] spare the clock those who want the other.
    #[inline]
    pub fn timer(self) -> Timer<'w> {
        Timer(Begun::if_wanted(self, |watching| {
            watching.perf >= PerfLevel::WAITS || watching.stats.is_some_and(Local::has_timers)
        }))
    }

    /// Begins to measure for a histogram.
    #[inline]
    pub fn stats_timer(self) -> StatsTimer<'w> {
        StatsTimer(Begun::if_wanted(self, |watching| watching.stats.is_some_and(Local::has_timers)))
    }

    /// Begins to measure for a counter of the thread.
    #[inline]
    pub fn perf_timer(self) -> PerfTimer<'w> {
        PerfTimer(Begun::if_wanted(self, |watching| watching.perf >= PerfLevel::TIMES_EXCEPT_MUTEX))
    }

    /// As [`Watch::perf_timer`], of what is left without `parts`, which have counters of their own.
    #[inline]
    pub fn perf_timer_without(self, parts: &'static [PerfMetric]) -> RestTimer<'w> {
        let timer = self.perf_timer();
        let before = if timer.0.watching.is_some() { PerfContext::sum(parts) } else { 0 };
        RestTimer { timer, parts, before }
    }

    /// Begins to measure for a histogram of detailed times, and for a counter of the thread.
    #[inline]
    pub fn detailed_timer(self) -> DetailedTimer<'w> {
        DetailedTimer(Begun::if_wanted(self, |watching| {
            watching.perf >= PerfLevel::TIMES_EXCEPT_MUTEX
                || watching.stats.is_some_and(Local::has_detailed_timers)
        }))
    }
}

/// The time by the clock, if anybody wants to know how long it takes from there.
#[derive(Clone, Copy)]
struct Begun<'w> {
    watching: Option<&'w Watching<'w>>,
    began: u64,
}

impl<'w> Begun<'w> {
    #[inline]
    fn if_wanted(watch: Watch<'w>, wanted: impl FnOnce(&Watching<'_>) -> bool) -> Begun<'w> {
        let watching = watch.0.filter(|watching| wanted(watching));
        Begun { watching, began: watching.map_or(0, |watching| watching.clock.monotonic_nanos()) }
    }

    /// Tells nanoseconds so far to the statistics, if they are wanted `there`.
    #[inline]
    fn stats(self, there: impl FnOnce(Local<'_>) -> bool, tell: impl FnOnce(Local<'_>, u64)) {
        if let Some(watching) = self.watching
            && let Some(stats) = watching.stats
            && there(stats)
        {
            tell(stats, watching.clock.monotonic_nanos().saturating_sub(self.began));
        }
    }

    #[inline]
    fn perf(self, metric: PerfMetric, level: PerfLevel) {
        if let Some(watching) = self.watching
            && watching.perf >= level
        {
            PerfContext::add(metric, watching.clock.monotonic_nanos().saturating_sub(self.began));
        }
    }
}

/// Time since [`Watch::timer`], if anybody wants it.
#[derive(Clone, Copy)]
pub struct Timer<'w>(Begun<'w>);

impl Timer<'_> {
    /// Adds the microseconds so far to a histogram.
    #[inline]
    pub fn micros(self, kind: HistogramKind) {
        StatsTimer(self.0).micros(kind);
    }

    /// Adds the microseconds so far to several histograms.
    pub fn micros_of<const N: usize>(self, kinds: [HistogramKind; N]) {
        let tell = |stats: Local<'_>, nanos| {
            kinds.into_iter().for_each(|kind| stats.record_time(kind, nanos / 1000))
        };
        self.0.stats(|stats| stats.has_timers(), tell);
    }

    /// Adds the nanoseconds so far to a ticker, at a level that measures times.
    #[inline]
    pub fn count_nanos(self, ticker: Ticker) {
        self.0.stats(|stats| stats.has_timers(), |stats, nanos| stats.count(ticker, nanos));
    }

    /// Adds the nanoseconds so far to a counter of the thread.
    #[inline]
    pub fn perf_nanos(self, metric: PerfMetric) {
        PerfTimer(self.0).nanos(metric);
    }

    /// As [`Timer::perf_nanos`], of a wait.
    #[inline]
    pub fn perf_wait(self, metric: PerfMetric) {
        self.0.perf(metric, PerfLevel::WAITS);
    }
}

/// Time since [`Watch::stats_timer`].
#[derive(Clone, Copy)]
pub struct StatsTimer<'w>(Begun<'w>);

impl StatsTimer<'_> {
    /// Adds the microseconds so far to a histogram.
    #[inline]
    pub fn micros(self, kind: HistogramKind) {
        self.0.stats(|stats| stats.has_timers(), |stats, nanos| stats.record_time(kind, nanos / 1000));
    }
}

/// Time since [`Watch::perf_timer`].
#[derive(Clone, Copy)]
pub struct PerfTimer<'w>(Begun<'w>);

impl PerfTimer<'_> {
    /// Adds the nanoseconds so far to a counter of the thread.
    #[inline]
    pub fn nanos(self, metric: PerfMetric) {
        self.0.perf(metric, PerfLevel::TIMES_EXCEPT_MUTEX);
    }
}

/// Time since [`Watch::perf_timer_without`].
#[derive(Clone, Copy)]
pub struct RestTimer<'w> {
    timer: PerfTimer<'w>,
    parts: &'static [PerfMetric],
    before: u64,
}

impl RestTimer<'_> {
    /// Adds the nanoseconds so far, without those of the parts, to a counter of the thread.
    #[inline]
    pub fn nanos(self, metric: PerfMetric) {
        let Begun { watching, began } = self.timer.0;
        if let Some(watching) = watching {
            let whole = watching.clock.monotonic_nanos().saturating_sub(began);
            let parts = PerfContext::sum(self.parts).wrapping_sub(self.before);
            PerfContext::add(metric, whole.saturating_sub(parts));
        }
    }
}

/// Time since [`Watch::detailed_timer`].
#[derive(Clone, Copy)]
pub struct DetailedTimer<'w>(Begun<'w>);

impl DetailedTimer<'_> {
    /// Adds the nanoseconds so far to a histogram of detailed times.
    #[inline]
    pub fn stats_nanos(self, kind: HistogramKind) {
        self.0.stats(|stats| stats.has_detailed_timers(), |stats, nanos| stats.record_time(kind, nanos));
    }

    /// As [`PerfTimer::nanos`].
    #[inline]
    pub fn perf_nanos(self, metric: PerfMetric) {
        PerfTimer(self.0).nanos(metric);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatsLevel;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// A clock that counts how often it is asked.
    #[derive(Default)]
    struct Asked(AtomicU64);

    impl Clock for Asked {
        fn now_micros(&self) -> u64 {
            0
        }
        fn monotonic_nanos(&self) -> u64 {
            5000 * self.0.fetch_add(1, Ordering::Relaxed)
        }
        fn thread_cpu_nanos(&self) -> u64 {
            0
        }
        fn sleep(&self, _: Duration) {}
    }

    /// How often each of the four timers asks the clock, from begin to end.
    fn asked(stats: Option<StatsLevel>, perf: PerfLevel) -> [u64; 4] {
        let statistics = stats.map(|level| {
            let statistics = Statistics::new();
            statistics.set_level(level);
            statistics
        });
        let clock = Asked::default();
        let times = |work: &dyn Fn(Watch<'_>)| {
            let stats = statistics.as_ref().and_then(Statistics::local);
            let watching = Some(Watching { stats, perf, clock: &clock });
            let before = clock.0.load(Ordering::Relaxed);
            work(Watch::from(&watching));
            clock.0.load(Ordering::Relaxed) - before
        };
        [
            times(&|watch| watch.stats_timer().micros(HistogramKind::DbGet)),
            times(&|watch| watch.perf_timer().nanos(PerfMetric::GetFromMemtableTime)),
            times(&|watch| {
                let timer = watch.timer();
                timer.micros(HistogramKind::SstReadMicros);
                timer.perf_nanos(PerfMetric::BlockReadTime);
            }),
            times(&|watch| {
                let timer = watch.detailed_timer();
                timer.stats_nanos(HistogramKind::DecompressionTimesNanos);
                timer.perf_nanos(PerfMetric::BlockDecompressTime);
            }),
        ]
    }

    #[test]
    fn the_clock_is_asked_only_for_those_who_want_the_time() {
        use StatsLevel::*;
        assert_eq!(asked(None, PerfLevel::COUNTS), [0; 4]);
        assert_eq!(asked(Some(ExceptTimers), PerfLevel::COUNTS), [0; 4]);
        assert_eq!(asked(Some(ExceptDetailedTimers), PerfLevel::COUNTS), [2, 0, 2, 0]);
        assert_eq!(asked(Some(All), PerfLevel::OFF), [2, 0, 2, 2]);
        assert_eq!(asked(None, PerfLevel::TIMES_EXCEPT_MUTEX), [0, 2, 2, 2]);
        assert_eq!(asked(Some(All), PerfLevel::ALL), [2, 2, 3, 3]);
    }
}
