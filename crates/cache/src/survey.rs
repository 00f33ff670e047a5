//! [`Survey`]: the contents of a cache by kind of block.
//!
//! To know it all descriptors are looked at, a millisecond for each gigabyte of blocks. The cache therefore keeps the last survey, and all
//! column families and databases that share it are given that one until it is old. Source: RocksDB `cache/cache_entry_stats.h`.
//!
//! Concurrency: one thread looks, others that want a survey meanwhile wait for it.

use crate::{Cache, Kind};
use outcrop_env::Clock;
use std::sync::PoisonError;

/// The contents of a cache when all its descriptors were looked at last.
///
/// ```
/// # use outcrop_cache as outcrop;
/// use outcrop::{Cache, CacheOptions, Freshness};
/// use outcrop_env::SystemClock;
///
/// let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
/// let survey = cache.survey(&SystemClock::default(), Freshness::Asked);
/// assert_eq!((survey.number, survey.entries), (1, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Blocks of each kind, and their bytes; by the number of the [`Kind`].
    pub by_kind: [(u64, u64); Kind::ALL.len()],
    /// Bytes that the cache could hold then.
    pub capacity: u64,
    /// Bytes that it held.
    pub usage: u64,
    /// Blocks that it held.
    pub entries: u64,
    /// Surveys of the cache so far, with this one.
    pub number: u64,
    /// How often it was given again without a look.
    pub copies: u64,
    /// When it began and ended, microseconds since the epoch.
    pub began_micros: u64,
    /// As above.
    pub ended_micros: u64,
}

/// How old a survey may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Somebody asks for it: 10 seconds, or ten times as long as looking took.
    Asked,
    /// It goes along with something else: three minutes, or 500 times as long.
    Alongside,
}

impl Freshness {
    fn max_age_micros(self, look_micros: u64) -> u64 {
        let (seconds, factor) = match self {
            Freshness::Asked => (10, 10),
            Freshness::Alongside => (180, 500),
        };
        (seconds * 1_000_000).max(factor * look_micros)
    }
}

impl Cache {
    /// Its contents, now or a while ago, by the system time of `clock`.
    pub fn survey(&self, clock: &dyn Clock, freshness: Freshness) -> Survey {
        let mut last = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now_micros();
        let max_age = freshness.max_age_micros(last.ended_micros.saturating_sub(last.began_micros));
        // A clock that was set back makes it old.
        let age = now.checked_sub(last.ended_micros);
        if last.number > 0 && age.is_some_and(|age| age <= max_age) {
            last.copies += 1;
        } else {
            *last = Survey {
                by_kind: self.usage_by_kind(),
                capacity: self.capacity() as u64,
                usage: self.usage() as u64,
                entries: self.entry_count() as u64,
                number: last.number + 1,
                copies: 0,
                began_micros: now,
                ended_micros: clock.now_micros(),
            };
        }
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CacheKey, CacheOptions, Priority};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// A clock that stands still until it is moved, and moves by so much whenever it is asked.
    #[derive(Default)]
    struct ByHand {
        now: AtomicU64,
        step: AtomicU64,
    }

    impl Clock for ByHand {
        fn now_micros(&self) -> u64 {
            self.now.fetch_add(self.step.load(Ordering::Relaxed), Ordering::Relaxed)
        }
        fn monotonic_nanos(&self) -> u64 {
            unreachable!("databases that share a cache have clocks with other origins")
        }
        fn thread_cpu_nanos(&self) -> u64 {
            0
        }
        fn sleep(&self, _: Duration) {}
    }

    #[test]
    fn a_survey_is_kept_until_it_is_old() {
        let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        let clock = ByHand::default();
        let at = |seconds: u64| clock.now.store(seconds * 1_000_000, Ordering::Relaxed);
        let add = |offset| {
            cache.insert(CacheKey { file: 1, offset }, Priority::Low, 100, |bytes| bytes.fill(1));
        };
        let seen = |freshness| {
            let survey = cache.survey(&clock, freshness);
            (survey.number, survey.copies, survey.by_kind[Kind::Data as usize].0)
        };
        at(1000);
        add(1);
        assert_eq!(seen(Freshness::Asked), (1, 0, 1));
        add(2);
        at(1010);
        assert_eq!(seen(Freshness::Asked), (1, 1, 1));
        at(1011);
        assert_eq!(seen(Freshness::Alongside), (1, 2, 1), "whoever wants it only along waits for longer");
        assert_eq!(seen(Freshness::Asked), (2, 0, 2));
        at(1000);
        add(3);
        assert_eq!(seen(Freshness::Asked), (3, 0, 3), "after the clock was set back");
        clock.step.store(2_000_000, Ordering::Relaxed);
        at(2000);
        assert_eq!(seen(Freshness::Asked), (4, 0, 3), "from 2000 to 2002");
        clock.step.store(0, Ordering::Relaxed);
        at(2022);
        assert_eq!(seen(Freshness::Asked), (4, 1, 3), "looking took so long that twenty seconds are recent");
        at(2023);
        assert_eq!(seen(Freshness::Asked), (5, 0, 3));
    }
}
