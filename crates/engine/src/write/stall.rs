//! Holding writers back when flushes and compactions fall behind.
//!
//! ```text
//! normal --- L0 files, memtables or debt over a soft limit ---> delayed (bytes per second)
//!        --- over a hard limit -------------------------------> stopped (until it falls)
//! ```
//! The condition is recomputed whenever the structure changes, and read by the write leader as one atomic.
//! Source: RocksDB `db/column_family.cc`, `GetWriteStallConditionAndCause` and `SetupDelay`.

use super::stall_condition::StallCondition;
use crate::state::{CfState, DbState};
use crate::stats::StallCause;
use outcrop_env::{Clock, RateLimiter, RateLimiterOptions};
use outcrop_manifest::Level;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Rate of slowed writes when `delayed_write_rate` is 0, in bytes per second.
const DEFAULT_DELAYED_RATE: u64 = 16 << 20;
/// Slowed writes never fall below this, in bytes per second, unless `delayed_write_rate` is below it.
const MIN_DELAYED_RATE: u64 = 16 << 10;
/// A slowed write waits no longer than this, whatever the rate: by then it may not have to wait any more. Nanoseconds.
const LONGEST_DELAY: u64 = 1_000_000_000;

/// The current condition and the rate of slowed writes.
pub struct WriteStall {
    condition: AtomicU8,
    pacer: Mutex<Pacer>,
    full_rate: AtomicU64,
    /// Set while writers are held back, for those that pace IO.
    held_back: Arc<AtomicBool>,
    /// Compactions fall behind, though not so far that writes are slowed.
    behind: AtomicBool,
    /// Paces writes of low priority.
    low_priority: OnceLock<RateLimiter>,
    /// At so many bytes per second.
    low_priority_rate: AtomicU64,
}

/// Writes of low priority while compactions fall behind, in bytes per second, before writes were ever slowed. Source: RocksDB
/// `db/write_controller.h`.
const LOW_PRIORITY_RATE: u64 = 1 << 20;

/// Spreads slowed writes evenly over time.
struct Pacer {
    /// Bytes per second.
    rate: u64,
    /// Debt at the last change, to see whether things get better or worse.
    last_debt: u64,
    /// Time at which the next write may go, nanoseconds.
    next_nanos: u64,
}

impl WriteStall {
    /// Not stalled; slowed writes will start at `delayed_write_rate` bytes per second.
    pub fn new(delayed_write_rate: u64, held_back: Arc<AtomicBool>) -> WriteStall {
        let full_rate = if delayed_write_rate == 0 { DEFAULT_DELAYED_RATE } else { delayed_write_rate };
        WriteStall {
            condition: AtomicU8::new(StallCondition::Normal as u8),
            pacer: Mutex::new(Pacer { rate: full_rate, last_debt: 0, next_nanos: 0 }),
            full_rate: AtomicU64::new(full_rate),
            held_back,
            behind: AtomicBool::new(false),
            low_priority: OnceLock::new(),
            low_priority_rate: AtomicU64::new(LOW_PRIORITY_RATE),
        }
    }

    /// Changes the rate that slowed writes start at; 0 is 1.
    pub fn set_full_rate(&self, bytes_per_second: u64) {
        let rate = bytes_per_second.max(1);
        let mut pacer = self.pacer.lock();
        // Relaxed: a number that orders nothing.
        let before = self.full_rate.swap(rate, Ordering::Relaxed);
        pacer.rate = if pacer.rate == before { rate } else { pacer.rate.min(rate) };
    }

    fn full_rate(&self) -> u64 {
        // Relaxed: as above.
        self.full_rate.load(Ordering::Relaxed)
    }

    /// The condition now. Relaxed: a leader that reads it one write late is harmless.
    #[inline]
    pub fn condition(&self) -> StallCondition {
        match self.condition.load(Ordering::Relaxed) {
            0 => StallCondition::Normal,
            1 => StallCondition::Delayed,
            _ => StallCondition::Stopped,
        }
    }

    /// True if compactions fall behind: writes of low priority wait before others do. Source: RocksDB
    /// `WriteController::NeedSpeedupCompaction`.
    pub fn falls_behind(&self) -> bool {
        // Relaxed: as in `condition`.
        self.behind.load(Ordering::Relaxed) || self.condition() != StallCondition::Normal
    }

    /// The account of writes of low priority.
    pub fn low_priority(&self, clock: &Arc<dyn Clock>) -> &RateLimiter {
        // Relaxed: a number that orders nothing.
        let bytes_per_second = self.low_priority_rate.load(Ordering::Relaxed);
        let options = RateLimiterOptions { bytes_per_second, ..Default::default() };
        let limiter = self.low_priority.get_or_init(|| RateLimiter::with_clock(options, clock.clone()));
        if limiter.bytes_per_second() != bytes_per_second {
            limiter.set_bytes_per_second(bytes_per_second);
        }
        limiter
    }

    /// Bytes per second that slowed writes are held to; 0 while they are not slowed.
    pub fn delayed_rate(&self) -> u64 {
        if self.condition() == StallCondition::Delayed { self.pacer.lock().rate } else { 0 }
    }

    /// Recomputes the condition after the structure changed.
    pub fn update(&self, state: &DbState) {
        let mut worst = StallCondition::Normal;
        let mut debt = 0;
        for cf in state.column_families.values() {
            let (condition, cause) = condition_of(cf);
            if let Some(cause) = cause {
                let compacts_l0 =
                    cf.version.levels[0].files.iter().any(|file| cf.busy.contains(&file.number));
                match condition {
                    StallCondition::Delayed if self.condition() < condition => {
                        cf.cf.stats.stalls.delayed(cause, compacts_l0)
                    }
                    StallCondition::Stopped if self.condition() < condition => {
                        cf.cf.stats.stalls.stopped(cause, compacts_l0)
                    }
                    _ => {}
                }
            }
            worst = worst.max(condition);
            debt = cf.debt.pending_bytes.saturating_add(debt);
        }
        if worst == StallCondition::Delayed {
            self.adjust_rate(debt);
        } else if worst == StallCondition::Normal {
            let slowed = std::mem::replace(&mut self.pacer.lock().rate, self.full_rate());
            if self.condition() == StallCondition::Delayed {
                // It stays: if compactions fall behind once more, writes were too fast. Source: RocksDB
                // `RecalculateWriteStallConditions`.
                self.low_priority_rate.store((slowed / 4).max(1), Ordering::Relaxed);
            }
        }
        self.behind.store(state.column_families.values().any(falls_behind), Ordering::Relaxed);
        self.held_back.store(worst != StallCondition::Normal, Ordering::Relaxed);
        self.condition.store(worst as u8, Ordering::Relaxed);
    }

    /// Slower while debt grows, faster while it shrinks.
    fn adjust_rate(&self, debt: u64) {
        let mut pacer = self.pacer.lock();
        // A rate below the least one is what the application wants. Source: RocksDB `SetupDelay`.
        let full_rate = self.full_rate();
        if full_rate > MIN_DELAYED_RATE {
            let faster = (pacer.rate / 4).saturating_mul(5);
            let scaled = if debt > pacer.last_debt { pacer.rate / 5 * 4 } else { faster };
            pacer.rate = scaled.clamp(MIN_DELAYED_RATE, full_rate);
        }
        pacer.last_debt = debt;
    }

    /// Nanoseconds that a slowed write of `bytes` must wait, given the time `now`.
    pub fn delay_nanos(&self, bytes: u64, now: u64) -> u64 {
        let mut pacer = self.pacer.lock();
        let start = pacer.next_nanos.clamp(now, now.saturating_add(LONGEST_DELAY));
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(pacer.rate);
        pacer.next_nanos = start.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
        start - now
    }
}

/// The condition one column family asks for.
pub fn condition_of(state: &CfState) -> (StallCondition, Option<StallCause>) {
    use StallCondition::{Delayed, Normal, Stopped};
    let options = state.cf.options.load();
    let memtables = state.unflushed_memtables() as i32;
    if memtables > options.max_write_buffer_number {
        return (Stopped, Some(StallCause::Memtables));
    }
    let automatic = !options.disable_auto_compactions;
    let l0_files = state.debt.stall_runs as i32;
    // If their number starts no compaction, nobody waits for one. RocksDB does, for ever.
    let counts_files = automatic && options.level0_file_num_compaction_trigger >= 0;
    if counts_files && l0_files >= options.level0_stop_writes_trigger {
        return (Stopped, Some(StallCause::L0Files));
    }
    let (soft, hard) =
        (options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit);
    if automatic && hard > 0 && state.debt.pending_bytes >= hard {
        return (Stopped, Some(StallCause::PendingCompactionBytes));
    }
    // Not those that only wait for enough others to be flushed with them.
    let sealed = memtables - 1;
    if options.max_write_buffer_number > 3
        && sealed >= options.max_write_buffer_number - 1
        && sealed > options.min_write_buffer_number_to_merge
    {
        return (Delayed, Some(StallCause::Memtables));
    }
    if counts_files
        && options.level0_slowdown_writes_trigger >= 0
        && l0_files >= options.level0_slowdown_writes_trigger
    {
        return (Delayed, Some(StallCause::L0Files));
    }
    if automatic && soft > 0 && state.debt.pending_bytes >= soft {
        return (Delayed, Some(StallCause::PendingCompactionBytes));
    }
    (Normal, None)
}

/// So many tables that asked to be compacted are work that compactions fall behind with. Source: RocksDB
/// `GetMarkedFileCountForCompactionSpeedup`.
const MARKED_TABLES: usize = 2;

/// True if compactions of a column family fall behind. Source: RocksDB `GetL0FileCountForCompactionSpeedup` and
/// `GetPendingCompactionBytesForCompactionSpeedup`.
fn falls_behind(state: &CfState) -> bool {
    let options = state.cf.options.load();
    let (trigger, slowdown) = (
        i64::from(options.level0_file_num_compaction_trigger),
        i64::from(options.level0_slowdown_writes_trigger),
    );
    let runs = (trigger * 2).min(trigger + (slowdown - trigger) / 4);
    if trigger >= 0 && state.debt.stall_runs as i64 >= runs {
        return true;
    }
    if state.marks.requested.len() >= MARKED_TABLES {
        return true;
    }
    let bytes_of = |level: &Level| level.files.iter().map(|file| file.size).sum::<u64>();
    let of_slowdown = options.soft_pending_compaction_bytes_limit / 4;
    let bottom = state.version.levels.iter().rev().map(bytes_of).find(|bytes| *bytes > 0);
    let of_bottom = bottom.map(|bytes| (bytes / 8).max(options.max_bytes_for_level_base.saturating_mul(2)));
    state.debt.pending_bytes >= of_bottom.map_or(of_slowdown, |bytes| bytes.min(of_slowdown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_rate_can_be_asked_for() {
        for rate in [0, 1, 2, 16_383, 16_384, 16_385, 1 << 62, u64::MAX - 1, u64::MAX] {
            let stall = WriteStall::new(rate, Arc::default());
            for debt in [0, 1, u64::MAX, 5, u64::MAX, 0] {
                stall.adjust_rate(debt);
                let asked = if rate == 0 { DEFAULT_DELAYED_RATE } else { rate };
                let now = stall.pacer.lock().rate;
                assert!(now <= asked && now >= asked.min(MIN_DELAYED_RATE), "{rate}: {now}");
            }
            for bytes in [0, 1, u64::MAX] {
                assert!(stall.delay_nanos(bytes, 7) <= LONGEST_DELAY);
            }
        }
    }

    #[test]
    fn delays_space_writes_at_the_rate() {
        let stall = WriteStall::new(1_000_000, Arc::default());
        assert_eq!(stall.delay_nanos(1000, 0), 0);
        assert_eq!(stall.delay_nanos(1000, 0), 1_000_000);
        assert_eq!(stall.delay_nanos(1000, 5_000_000), 0);
    }

    fn condition(
        change: impl FnOnce(&mut CfState),
        options: outcrop_options::ColumnFamilyOptions,
    ) -> StallCondition {
        let parts = crate::testing::parts::Parts::of(options);
        let mut state = parts.versions.state.lock();
        change(state.column_families.get_mut(&CfId(0)).unwrap());
        parts.versions.stall.update(&state);
        parts.versions.stall.condition()
    }

    fn options() -> outcrop_options::ColumnFamilyOptions {
        outcrop_options::ColumnFamilyOptions {
            level0_slowdown_writes_trigger: 4,
            level0_stop_writes_trigger: 8,
            soft_pending_compaction_bytes_limit: 100,
            hard_pending_compaction_bytes_limit: 200,
            ..crate::testing::parts::plain_options()
        }
    }

    #[test]
    fn each_limit_slows_or_stops_by_itself() {
        use StallCondition::{Delayed, Normal, Stopped};
        for (runs, expected) in [(3, Normal), (4, Delayed), (7, Delayed), (8, Stopped)] {
            assert_eq!(condition(|cf| cf.debt.stall_runs = runs, options()), expected, "{runs} in L0");
        }
        for (bytes, expected) in [(99, Normal), (100, Delayed), (199, Delayed), (200, Stopped)] {
            assert_eq!(condition(|cf| cf.debt.pending_bytes = bytes, options()), expected, "{bytes} pending");
        }
    }

    #[test]
    fn without_automatic_compactions_only_memtables_stop_writers() {
        let manual = || outcrop_options::ColumnFamilyOptions { disable_auto_compactions: true, ..options() };
        let pending = |cf: &mut CfState| (cf.debt.stall_runs, cf.debt.pending_bytes) = (99, u64::MAX);
        assert_eq!(condition(pending, manual()), StallCondition::Normal);
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        let none = outcrop_options::ColumnFamilyOptions {
            soft_pending_compaction_bytes_limit: 0,
            hard_pending_compaction_bytes_limit: 0,
            ..options()
        };
        assert_eq!(condition(|cf| cf.debt.pending_bytes = u64::MAX, none), StallCondition::Normal);
    }

    #[test]
    fn the_last_memtable_but_one_slows_where_there_are_more_than_three() {
        let sealed_of = |max: i32, min: i32, count: usize| {
            let options = outcrop_options::ColumnFamilyOptions {
                max_write_buffer_number: max,
                min_write_buffer_number_to_merge: min,
                ..options()
            };
            condition(
                |cf| {
                    let memtable = cf.memtable.clone();
                    let sealed = crate::state::SealedMemTable {
                        memtable,
                        next_wal: outcrop_base::FileNumber(9),
                        last_seq: outcrop_base::SeqNum(0),
                        reason: Default::default(),
                    };
                    cf.sealed = vec![sealed; count];
                },
                options,
            )
        };
        let sealed = |max, count| sealed_of(max, 1, count);
        assert_eq!(sealed(2, 1), StallCondition::Normal);
        assert_eq!(sealed(2, 2), StallCondition::Stopped);
        assert_eq!(sealed(5, 3), StallCondition::Normal);
        assert_eq!(sealed(5, 4), StallCondition::Delayed);
        assert_eq!(sealed(5, 5), StallCondition::Stopped);
        // Four are only just enough to be flushed together.
        assert_eq!(sealed_of(5, 3, 4), StallCondition::Delayed);
        assert_eq!(sealed_of(5, 4, 4), StallCondition::Normal);
        assert_eq!(sealed_of(5, 4, 5), StallCondition::Stopped);
    }

    #[test]
    fn two_tables_that_ask_to_be_compacted_hold_back_writes_of_low_priority() {
        let calm = outcrop_options::ColumnFamilyOptions {
            level0_slowdown_writes_trigger: 20,
            soft_pending_compaction_bytes_limit: 1 << 30,
            ..options()
        };
        let parts = crate::testing::parts::Parts::of(calm);
        let mut state = parts.versions.state.lock();
        for (marked, expected) in [(0, false), (1, false), (2, true)] {
            let numbers = (0..marked).map(outcrop_manifest::FileNumber);
            state.column_families.get_mut(&CfId(0)).unwrap().marks.requested = numbers.collect();
            parts.versions.stall.update(&state);
            assert_eq!(parts.versions.stall.falls_behind(), expected, "{marked}");
        }
    }

    #[test]
    fn writes_of_low_priority_go_on_at_a_quarter_of_the_rate_that_writes_were_slowed_to() {
        let parts = crate::testing::parts::Parts::of(options());
        let stall = &parts.versions.stall;
        let rate = || stall.low_priority(&parts.ctx.env.clock).bytes_per_second();
        let set_runs = |runs| {
            let mut state = parts.versions.state.lock();
            state.column_families.get_mut(&CfId(0)).unwrap().debt.stall_runs = runs;
            stall.update(&state);
        };
        assert_eq!(rate(), LOW_PRIORITY_RATE);
        set_runs(4);
        let slowed = stall.delayed_rate();
        assert!(slowed > 0);
        assert_eq!(rate(), LOW_PRIORITY_RATE, "while it lasts");
        set_runs(0);
        assert_eq!(rate(), slowed / 4);
        set_runs(0);
        assert_eq!(rate(), slowed / 4, "it stays");
    }

    #[test]
    fn stalls_are_counted_by_cause_when_they_begin() {
        let parts = crate::testing::parts::Parts::of(options());
        let mut state = parts.versions.state.lock();
        for runs in [4, 5, 8, 9, 0, 4] {
            state.column_families.get_mut(&CfId(0)).unwrap().debt.stall_runs = runs;
            parts.versions.stall.update(&state);
        }
        let stalls = &state.column_families[&CfId(0)].cf.stats.stalls;
        assert_eq!((stalls.delays(StallCause::L0Files), stalls.stops(StallCause::L0Files)), (2, 1));
        assert_eq!(stalls.delays(StallCause::Memtables), 0);
        assert!(parts.versions.stall.delayed_rate() > 0);
    }
}
