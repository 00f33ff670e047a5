//! [`Watch`]: whether one operation is counted, and where; passed down through the layers of the engine.

use crate::{HistogramKind, Local, PerfContext, PerfLevel, PerfMetric, Statistics, Ticker};
use outcrop_env::{Clock, SystemClock};
use std::sync::Arc;

/// Who watches the operations of a database, and the clock that measures them.
///
/// ```
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

    /// False if nobody can want operations counted: what nearly always is, and cheap to know.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.statistics.is_some() || PerfContext::is_in_use()
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

    /// Begins to measure; see [`Timer::micros`], [`Timer::perf_nanos`].
    #[inline]
    pub fn timer(self) -> Timer<'w> {
        let timed = |watching: &&Watching<'_>| {
            watching.perf >= PerfLevel::WAITS || watching.stats.is_some_and(Local::has_timers)
        };
        let watching = self.0.filter(timed);
        Timer { watching, began: watching.map_or(0, |watching| watching.clock.monotonic_nanos()) }
    }
}

/// Time since [`Watch::timer`], if anybody wants it.
#[derive(Clone, Copy)]
pub struct Timer<'w> {
    watching: Option<&'w Watching<'w>>,
    began: u64,
}

impl Timer<'_> {
    fn nanos(self, watching: &Watching<'_>) -> u64 {
        watching.clock.monotonic_nanos().saturating_sub(self.began)
    }

    /// Adds the microseconds so far to a histogram.
    #[inline]
    pub fn micros(self, kind: HistogramKind) {
        if let Some(watching) = self.watching
            && let Some(stats) = watching.stats
            && stats.has_timers()
        {
            stats.record_time(kind, self.nanos(watching) / 1000);
        }
    }

    /// Adds the nanoseconds so far to a histogram of detailed times.
    #[inline]
    pub fn detailed_nanos(self, kind: HistogramKind) {
        if let Some(watching) = self.watching
            && let Some(stats) = watching.stats
            && stats.has_detailed_timers()
        {
            stats.record_time(kind, self.nanos(watching));
        }
    }

    /// Adds the nanoseconds so far to a counter of the thread.
    #[inline]
    pub fn perf_nanos(self, metric: PerfMetric) {
        self.perf_from(metric, PerfLevel::TIMES_EXCEPT_MUTEX);
    }

    /// As [`Timer::perf_nanos`], of a wait.
    #[inline]
    pub fn perf_wait(self, metric: PerfMetric) {
        self.perf_from(metric, PerfLevel::WAITS);
    }

    #[inline]
    fn perf_from(self, metric: PerfMetric, level: PerfLevel) {
        if let Some(watching) = self.watching
            && watching.perf >= level
        {
            PerfContext::add(metric, self.nanos(watching));
        }
    }
}
