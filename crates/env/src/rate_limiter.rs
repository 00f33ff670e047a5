//! A limit on bytes of IO per second that databases share.
//!
//! ```text
//! request(bytes, priority) -> tokens are left: go
//!                          -> else wait in the line of the priority; the first to come sleeps until the next refill,
//!                             which serves the lines: User, then High, Mid, Low, with exceptions drawn by `fairness`
//! ```
//! Invariants: a request that waits is in exactly one line; at most one thread sleeps for the next refill, the others are woken
//! when they are served or when that thread has to be replaced. Tokens that nobody used do not add up over periods.
//! Source: RocksDB `util/rate_limiter.cc`, `GenericRateLimiter`.

use crate::clock::{Clock, SystemClock};
use crate::file_system::WriteFile;
use crate::observed::observed;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Which of the threads that wait for a [`RateLimiter`] is served first.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::IoPriority;
///
/// assert!(IoPriority::User > IoPriority::High && IoPriority::Mid > IoPriority::Low);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum IoPriority {
    /// Compactions.
    Low = 0,
    /// In between.
    Mid = 1,
    /// Flushes.
    High = 2,
    /// Requests that a user waits for; also flushes and compactions while writers are held back.
    User = 3,
}

/// The operations that a [`RateLimiter`] limits.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::{IoKind, RateLimiter, RateLimiterMode, RateLimiterOptions};
///
/// let both = RateLimiterOptions { mode: RateLimiterMode::All, ..Default::default() };
/// assert!(RateLimiter::new(both).limits(IoKind::Read));
/// assert!(!RateLimiter::new(RateLimiterOptions::default()).limits(IoKind::Read));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimiterMode {
    /// Reads alone.
    ReadsOnly,
    /// Writes alone: the default.
    #[default]
    WritesOnly,
    /// Both, from one account.
    All,
}

/// Whether bytes are read or written.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::{IoKind, RateLimiter, RateLimiterOptions};
///
/// assert!(RateLimiter::new(RateLimiterOptions::default()).limits(IoKind::Write));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// Read.
    Read,
    /// Written.
    Write,
}

/// How a [`RateLimiter`] works.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::{RateLimiter, RateLimiterOptions};
///
/// let options = RateLimiterOptions { bytes_per_second: 64 << 20, auto_tuned: true, ..Default::default() };
/// assert_eq!(RateLimiter::new(options).bytes_per_second(), 32 << 20, "tuning begins at half of it");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimiterOptions {
    /// Bytes per second; at least 1. With `auto_tuned` the most there will be. Default 10 MiB.
    pub bytes_per_second: u64,
    /// How often tokens come, microseconds; at least 1. Shorter is smoother, and costs more wake-ups. Default 100,000.
    pub refill_period_micros: u64,
    /// A line of lower priority is served before a higher one once in so many refills, so that it never starves; 1 to 100. Default 10.
    pub fairness: u32,
    /// The operations that are limited. Default writes.
    pub mode: RateLimiterMode,
    /// Adjusts the rate to demand, between a twentieth of `bytes_per_second` and all of it. Default false.
    pub auto_tuned: bool,
}

impl Default for RateLimiterOptions {
    fn default() -> Self {
        RateLimiterOptions {
            bytes_per_second: 10 << 20,
            refill_period_micros: 100_000,
            fairness: 10,
            mode: RateLimiterMode::default(),
            auto_tuned: false,
        }
    }
}

const PRIORITIES: usize = 4;
/// Refills between two adjustments.
const REFILLS_PER_TUNE: u64 = 100;
/// The rate is never tuned below this part of the highest.
const RANGE: u64 = 20;

/// A limit on bytes per second, by priority, for all databases that are opened with it.
///
/// Flushes ask with [`IoPriority::High`], compactions with [`IoPriority::Low`], both with [`IoPriority::User`] while writers are held
/// back. The WAL is not limited but for writes that ask for it.
///
/// ```
/// # use outcrop_env as outcrop;
/// use outcrop::{IoKind, IoPriority, RateLimiter, RateLimiterOptions};
///
/// let limiter = RateLimiter::new(RateLimiterOptions { bytes_per_second: 1 << 30, ..Default::default() });
/// limiter.request(4096, IoPriority::Low, IoKind::Write);
/// limiter.request(4096, IoPriority::Low, IoKind::Read); // Not limited, not counted.
/// assert_eq!(limiter.bytes_through(IoPriority::Low), 4096);
/// ```
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    mode: RateLimiterMode,
    refill_period_nanos: u64,
    fairness: u32,
    auto_tuned: bool,
    most_per_second: u64,
    /// Bytes per second now.
    rate: AtomicU64,
    state: Mutex<State>,
}

/// A request that waits.
struct Waiting {
    /// Bytes still to get; 0: served. Touched with the state locked.
    left: AtomicU64,
    served: Condvar,
}

#[derive(Default)]
struct State {
    available: u64,
    next_refill_nanos: u64,
    lines: [VecDeque<Arc<Waiting>>; PRIORITIES],
    /// Somebody sleeps until the next refill.
    sleeping: bool,
    requests: [u64; PRIORITIES],
    bytes: [u64; PRIORITIES],
    /// Times that somebody had to sleep, since the last adjustment.
    drains: u64,
    tuned_nanos: u64,
    random: u64,
}

impl RateLimiter {
    /// A limiter by the system's clock.
    pub fn new(options: RateLimiterOptions) -> RateLimiter {
        RateLimiter::with_clock(options, Arc::new(SystemClock::default()))
    }

    /// A limiter by `clock`, on which it also sleeps.
    pub fn with_clock(options: RateLimiterOptions, clock: Arc<dyn Clock>) -> RateLimiter {
        let most = options.bytes_per_second.max(1);
        let now = clock.monotonic_nanos();
        let state = State {
            next_refill_nanos: now,
            tuned_nanos: now,
            random: clock.now_micros() | 1,
            ..State::default()
        };
        RateLimiter {
            clock,
            mode: options.mode,
            refill_period_nanos: options.refill_period_micros.max(1).saturating_mul(1000),
            fairness: options.fairness.clamp(1, 100),
            auto_tuned: options.auto_tuned,
            most_per_second: most,
            rate: AtomicU64::new(if options.auto_tuned { (most / 2).max(1) } else { most }),
            state: Mutex::new(state),
        }
    }

    /// Bytes per second now.
    pub fn bytes_per_second(&self) -> u64 {
        // Relaxed: a number that orders nothing.
        self.rate.load(Ordering::Relaxed)
    }

    /// Changes the rate, from the next refill on. At least 1.
    pub fn set_bytes_per_second(&self, rate: u64) {
        // Relaxed: as above.
        self.rate.store(rate.max(1), Ordering::Relaxed);
    }

    /// Bytes that one refill brings, and that one request asks for at most.
    pub fn burst_bytes(&self) -> u64 {
        let bytes =
            u128::from(self.bytes_per_second()) * u128::from(self.refill_period_nanos) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }

    /// True if bytes of this kind are limited.
    pub fn limits(&self, kind: IoKind) -> bool {
        match self.mode {
            RateLimiterMode::All => true,
            RateLimiterMode::ReadsOnly => kind == IoKind::Read,
            RateLimiterMode::WritesOnly => kind == IoKind::Write,
        }
    }

    /// Requests of that priority so far.
    pub fn requests(&self, priority: IoPriority) -> u64 {
        self.state.lock().requests[priority as usize]
    }

    /// Bytes that requests of that priority were given so far.
    pub fn bytes_through(&self, priority: IoPriority) -> u64 {
        self.state.lock().bytes[priority as usize]
    }

    /// Waits until `bytes` may be read or written. Returns at once if that kind is not limited.
    pub fn request(&self, bytes: u64, priority: IoPriority, kind: IoKind) {
        self.request_observed(bytes, priority, kind, &|_| {});
    }

    /// The same, and `granted` is told of each part, of [`RateLimiter::burst_bytes`] at most, with nothing locked.
    pub fn request_observed(
        &self,
        bytes: u64,
        priority: IoPriority,
        kind: IoKind,
        granted: &dyn Fn(Granted),
    ) {
        if !self.limits(kind) {
            return;
        }
        let mut left = bytes;
        while left > 0 {
            let part = left.min(self.burst_bytes());
            let mut grant = Granted { bytes: part, kind, waited_micros: None, drains: 0 };
            self.request_part(&mut grant, priority);
            granted(grant);
            left -= part;
        }
    }

    fn request_part(&self, grant: &mut Granted, priority: IoPriority) {
        let bytes = grant.bytes;
        let mut state = self.state.lock();
        if self.auto_tuned {
            self.tune_if_due(&mut state);
        }
        state.requests[priority as usize] += 1;
        state.bytes[priority as usize] += bytes;
        let at_once = bytes.min(state.available);
        state.available -= at_once;
        if at_once == bytes {
            return;
        }
        let own = Arc::new(Waiting { left: AtomicU64::new(bytes - at_once), served: Condvar::new() });
        state.lines[priority as usize].push_back(own.clone());
        self.wait(state, &own, grant);
    }

    /// Waits until `own` is served, and does for the others what has to be done meanwhile.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>, own: &Waiting, grant: &mut Granted) {
        let mut began = None;
        // Relaxed: the lock orders it.
        while own.left.load(Ordering::Relaxed) > 0 {
            let now = self.clock.monotonic_nanos();
            let until_refill = state.next_refill_nanos.saturating_sub(now);
            if until_refill == 0 {
                self.refill(&mut state);
                continue;
            }
            began.get_or_insert(now);
            if state.sleeping {
                own.served.wait(&mut state);
            } else {
                state.sleeping = true;
                state.drains += 1;
                grant.drains += 1;
                MutexGuard::unlocked(&mut state, || self.clock.sleep(Duration::from_nanos(until_refill)));
                state.sleeping = false;
            }
        }
        grant.waited_micros = began.map(|began| self.clock.monotonic_nanos().saturating_sub(began) / 1000);
        // One of those that still wait has to be awake to sleep for the next refill.
        let first = state.lines.iter().rev().find_map(VecDeque::front);
        if let Some(first) = first {
            first.served.notify_one();
        }
    }

    fn refill(&self, state: &mut State) {
        state.next_refill_nanos = self.clock.monotonic_nanos().saturating_add(self.refill_period_nanos);
        state.available = self.burst_bytes();
        for priority in self.order(state) {
            let State { available, lines, .. } = state;
            let line = &mut lines[priority as usize];
            while let Some(first) = line.front() {
                // Relaxed: the lock orders it.
                let left = first.left.load(Ordering::Relaxed);
                let given = left.min(*available);
                *available -= given;
                first.left.store(left - given, Ordering::Relaxed);
                if left > given {
                    return;
                }
                first.served.notify_one();
                line.pop_front();
            }
        }
    }

    /// The order in which lines are served this time.
    fn order(&self, state: &mut State) -> [IoPriority; PRIORITIES] {
        use IoPriority::{High, Low, Mid, User};
        let (high_last, mid_last) = (self.draws(state), self.draws(state));
        let (second, third) = if mid_last { (Low, Mid) } else { (Mid, Low) };
        if high_last { [User, second, third, High] } else { [User, High, second, third] }
    }

    /// True once in `fairness`.
    fn draws(&self, state: &mut State) -> bool {
        state.random =
            state.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state.random >> 33).is_multiple_of(u64::from(self.fairness))
    }

    /// A rate that was hardly ever asked for in full goes down, one that nearly always was goes up, by 5 %.
    fn tune_if_due(&self, state: &mut State) {
        let now = self.clock.monotonic_nanos();
        let elapsed = now.saturating_sub(state.tuned_nanos);
        if elapsed < self.refill_period_nanos.saturating_mul(REFILLS_PER_TUNE) {
            return;
        }
        state.tuned_nanos = now;
        let periods = elapsed.div_ceil(self.refill_period_nanos);
        let drained_percent = std::mem::take(&mut state.drains).saturating_mul(100) / periods;
        let (rate, least) = (self.bytes_per_second(), (self.most_per_second / RANGE).max(1));
        let scaled = |by: u128, of: u128| u64::try_from(u128::from(rate) * by / of).unwrap_or(u64::MAX);
        self.set_bytes_per_second(match drained_percent {
            0 => least,
            1..50 => scaled(100, 105).max(least),
            91.. => scaled(105, 100).min(self.most_per_second),
            _ => rate,
        });
    }
}

/// One request to a [`RateLimiter`] that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Bytes.
    pub bytes: u64,
    /// To be read or written.
    pub kind: IoKind,
    /// How long it had to wait for a refill, microseconds; `None` if the tokens were there.
    pub waited_micros: Option<u64>,
    /// Times that its thread slept until a refill.
    pub drains: u64,
}

/// Told of requests to a [`RateLimiter`] that were granted.
pub trait PaceObserver: Send + Sync {
    /// On the thread that asked, with nothing locked.
    fn granted(&self, granted: Granted);
}

/// How one user of a limiter asks for tokens.
#[derive(Clone)]
pub struct Pace {
    /// The limiter.
    pub limiter: Arc<RateLimiter>,
    /// Its priority,
    pub priority: IoPriority,
    /// unless this is set: then it is [`IoPriority::User`].
    pub urgent: Arc<AtomicBool>,
    /// Told of what was granted.
    pub observer: Option<Arc<dyn PaceObserver>>,
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} bytes/s", self.priority, self.limiter.bytes_per_second())
    }
}

impl Pace {
    /// Waits until `bytes` may be read or written.
    pub fn request(&self, bytes: u64, kind: IoKind) {
        // Relaxed: one that is seen late delays one request.
        let urgent = self.urgent.load(Ordering::Relaxed);
        let priority = if urgent { IoPriority::User } else { self.priority };
        let granted = |granted| self.observer.iter().for_each(|observer| observer.granted(granted));
        self.limiter.request_observed(bytes, priority, kind, &granted);
    }

    /// The same user at another priority, which it keeps whatever is urgent.
    pub fn at(&self, priority: IoPriority) -> Pace {
        Pace { priority, urgent: Arc::default(), ..self.clone() }
    }

    /// `file` as it is, or written at a pace.
    pub fn file(pace: Option<Pace>, file: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        match pace.filter(|pace| pace.limiter.limits(IoKind::Write)) {
            Some(pace) => observed(file, move |bytes| pace.request(bytes.len() as u64, IoKind::Write)),
            None => file,
        }
    }
}

#[cfg(test)]
mod tests;
