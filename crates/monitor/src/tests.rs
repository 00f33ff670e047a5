//! Statistics of several threads, levels and resets.

use crate::statistics::Quick;
use crate::{
    Counting, HistogramKind, Monitor, PerfContext, PerfLevel, PerfMetric, ReadCount, Statistics, StatsLevel,
    Ticker, Watch,
};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

/// Places of threads are those of the process: held by whoever takes all of them, and by whoever needs one.
static PLACES: Mutex<()> = Mutex::new(());

fn places() -> MutexGuard<'static, ()> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on `threads` threads at once, more than have shards of their own: each holds its place from before the first of them
/// works until the last has.
fn on_threads(threads: usize, statistics: &Statistics, work: impl Fn() + Sync) {
    let barrier = Barrier::new(threads);
    let one = || {
        // Takes the place.
        statistics.count(Ticker::NoFileOpens, 1);
        barrier.wait();
        work();
        barrier.wait();
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        // Joined one by one: that waits until they have given their places back.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(statistics.shared_shard_is_used(), "{threads} threads are more than have places");
}

#[test]
fn nothing_is_lost_with_more_threads_than_shards() {
    let _all = places();
    let statistics = Statistics::new();
    on_threads(80, &statistics, || {
        for value in 0..1000 {
            statistics.count(Ticker::BytesRead, 3);
            statistics.record(HistogramKind::BytesPerRead, value);
        }
    });
    assert_eq!(statistics.ticker(Ticker::NoFileOpens), 80);
    assert_eq!(statistics.ticker(Ticker::BytesRead), 240_000);
    let data = statistics.histogram(HistogramKind::BytesPerRead);
    assert_eq!((data.count(), data.min(), data.max(), data.sum()), (80_000, 0, 999, 80 * 499_500));
}

#[test]
fn levels_leave_out_histograms_and_times() {
    let counts = |level| {
        let statistics = Statistics::new();
        statistics.set_level(level);
        statistics.count(Ticker::BytesRead, 1);
        statistics.record(HistogramKind::BytesPerRead, 1);
        statistics.record_time(HistogramKind::DbGet, 1);
        let of = |kind| statistics.histogram(kind).count();
        (statistics.ticker(Ticker::BytesRead), of(HistogramKind::BytesPerRead), of(HistogramKind::DbGet))
    };
    assert_eq!(counts(StatsLevel::DisableAll), (0, 0, 0));
    assert_eq!(counts(StatsLevel::ExceptHistogramOrTimers), (1, 0, 0));
    assert_eq!(counts(StatsLevel::ExceptTimers), (1, 1, 0));
    assert_eq!(counts(StatsLevel::ExceptDetailedTimers), (1, 1, 1));
    assert_eq!(counts(StatsLevel::All), (1, 1, 1));
}

#[test]
fn a_thread_without_a_place_and_one_that_ends_count_too() {
    /// Counts when its thread ends, after the place was given back or before.
    struct AtEnd(std::sync::Arc<Statistics>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.count(Ticker::BytesRead, 5);
        }
    }
    thread_local!(static AT_END: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) });
    let statistics = std::sync::Arc::new(Statistics::new());
    for first in [true, false] {
        let shared = statistics.clone();
        let ended = std::thread::spawn(move || {
            if first {
                shared.count(Ticker::BytesRead, 1);
            }
            AT_END.set(Some(AtEnd(shared.clone())));
            shared.count(Ticker::BytesRead, 1);
        });
        ended.join().unwrap();
    }
    assert_eq!(statistics.ticker(Ticker::BytesRead), 13);
}

#[test]
fn nothing_is_on_at_the_lowest_level_alone() {
    let statistics = Statistics::new();
    assert!(statistics.is_on());
    statistics.set_level(StatsLevel::DisableAll);
    assert!(!statistics.is_on());
    statistics.set_level(StatsLevel::ExceptHistogramOrTimers);
    assert!(statistics.is_on());
}

#[test]
fn a_reset_forgets_what_every_thread_counted() {
    let _all = places();
    let statistics = Statistics::new();
    let count = |n| {
        on_threads(70, &statistics, || {
            statistics.count(Ticker::BytesRead, n);
            statistics.record(HistogramKind::BytesPerRead, n);
        });
    };
    count(5);
    statistics.reset();
    assert_eq!(statistics.ticker(Ticker::BytesRead), 0);
    assert_eq!(statistics.histogram(HistogramKind::BytesPerRead).count(), 0);
    count(2);
    assert_eq!(statistics.ticker(Ticker::BytesRead), 140);
    let data = statistics.histogram(HistogramKind::BytesPerRead);
    assert_eq!((data.count(), data.sum(), data.max()), (70, 140, 2));
}

#[test]
fn the_text_has_every_name_once_in_order() {
    let text = Statistics::new().text();
    assert_eq!(text.lines().count(), Ticker::COUNT + HistogramKind::COUNT);
    assert_eq!((Ticker::COUNT, HistogramKind::COUNT), (263, 80));
    assert!(text.ends_with(
        "rocksdb.open.and.compact.db.open.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0\n"
    ));
}

#[test]
fn each_thread_has_its_own_context_and_level() {
    std::thread::spawn(|| {
        PerfContext::set_level(PerfLevel::OFF);
        PerfContext::add(PerfMetric::BlockReadCount, 2);
        std::thread::spawn(|| {
            assert_eq!(PerfContext::level(), PerfLevel::COUNTS);
            assert_eq!(PerfContext::get(PerfMetric::BlockReadCount), 0);
        })
        .join()
        .unwrap();
        assert_eq!(PerfContext::text(true), "block_read_count = 2");
        assert!(
            PerfContext::text(false)
                .starts_with("user_key_comparison_count = 0, block_cache_hit_count = 0, ")
        );
        PerfContext::reset();
        assert_eq!(PerfContext::text(true), "");
    })
    .join()
    .unwrap();
}

/// Counts a lookup with few instructions, if the thread may.
fn quick_lookup(statistics: &Statistics, bytes: u64) -> bool {
    let Quick::Ready(stats) = statistics.quick_local() else { return false };
    Counting::of(Some(stats), |counting| {
        counting.add(ReadCount::DataHit, 1);
        counting.add(ReadCount::DataHitBytes, bytes);
    });
    stats.count_all([(Ticker::NumberKeysRead, 1)]);
    stats.record_read(bytes);
    true
}

#[test]
fn few_instructions_are_for_threads_with_a_shard_and_levels_without_times() {
    let _one = places();
    let statistics = Statistics::new();
    let ways = |level| {
        statistics.set_level(level);
        let first = quick_lookup(&statistics, 1);
        // Makes the shard ready, whatever it was ready for.
        statistics.count(Ticker::BytesRead, 1);
        (first, quick_lookup(&statistics, 1))
    };
    assert_eq!(ways(StatsLevel::DisableAll), (false, false));
    assert_eq!(ways(StatsLevel::ExceptHistogramOrTimers), (false, true));
    assert_eq!(ways(StatsLevel::ExceptTimers), (false, true));
    assert_eq!(ways(StatsLevel::ExceptDetailedTimers), (false, false), "they are told that times are wanted");
    assert!(matches!(statistics.quick_local(), Quick::Timed(_)));
    assert_eq!(ways(StatsLevel::ExceptTimers), (false, true));
    statistics.reset();
    assert!(!quick_lookup(&statistics, 1), "counts of before would stay");
    statistics.count(Ticker::BytesRead, 1);
    assert!(quick_lookup(&statistics, 5));
    assert_eq!(statistics.ticker(Ticker::BlockCacheHit), 1);
    assert_eq!(statistics.histogram(HistogramKind::BytesPerRead).sum(), 5);
}

#[test]
fn sizes_that_are_counted_one_by_one_make_the_same_histogram() {
    let _one = places();
    let (quick, plain) = (Statistics::new(), Statistics::new());
    quick.set_level(StatsLevel::ExceptTimers);
    quick.count(Ticker::BytesRead, 0);
    for value in (0..3000).chain([1023, 1024, 1 << 20]).map(|value| value * value % 4099) {
        assert!(quick_lookup(&quick, value));
        plain.record(HistogramKind::BytesPerRead, value);
    }
    let of = |statistics: &Statistics| statistics.histogram(HistogramKind::BytesPerRead).to_string();
    assert_eq!(of(&quick), of(&plain));
}

#[test]
fn a_ticker_that_is_taken_leaves_others_that_count_the_same() {
    let _one = places();
    let statistics = Statistics::new();
    statistics.set_level(StatsLevel::ExceptTimers);
    statistics.count(Ticker::BlockCacheHit, 10);
    (0..3).for_each(|_| assert!(quick_lookup(&statistics, 100)));
    let both = || [Ticker::BlockCacheHit, Ticker::BlockCacheDataHit].map(|ticker| statistics.ticker(ticker));
    assert_eq!(both(), [13, 3]);
    assert_eq!(statistics.take_ticker(Ticker::BlockCacheHit), 13);
    assert_eq!(both(), [0, 3]);
    assert!(quick_lookup(&statistics, 100));
    assert_eq!(both(), [1, 4]);
    statistics.reset();
    assert_eq!(both(), [0, 0]);
}

#[test]
fn what_nobody_counts_goes_nowhere() {
    let _one = places();
    assert!(!Counting::OFF.is_on());
    Counting::off(|counting| {
        counting.add(ReadCount::HitL0, 1);
        assert!(!counting.is_on());
    });
    let statistics = Statistics::new();
    statistics.set_level(StatsLevel::ExceptTimers);
    statistics.count(Ticker::BytesRead, 1);
    assert!(quick_lookup(&statistics, 1));
    assert_eq!(statistics.ticker(Ticker::GetHitL0), 0);
}

#[test]
fn lookups_are_counted_for_the_thread_for_statistics_or_for_both() {
    let look_up = |monitor: &Monitor| {
        Watch::from(&monitor.begin()).counted(|counting| {
            counting.add(ReadCount::DataHit, 1);
            counting.add(ReadCount::DataHitBytes, 10);
        });
    };
    std::thread::spawn(move || {
        let statistics = Arc::new(Statistics::new());
        let nobody_else = Monitor::none();
        let both = Monitor { statistics: Some(statistics.clone()), ..Monitor::none() };
        let of_statistics =
            || (statistics.ticker(Ticker::BlockCacheDataHit), statistics.ticker(Ticker::BlockCacheBytesRead));
        PerfContext::set_level(PerfLevel::COUNTS);
        PerfContext::reset();
        look_up(&nobody_else);
        assert_eq!(PerfContext::text(true), "block_cache_hit_count = 1, block_cache_read_byte = 10");
        look_up(&both);
        assert_eq!(PerfContext::text(true), "block_cache_hit_count = 2, block_cache_read_byte = 20");
        assert_eq!(of_statistics(), (1, 10));
        PerfContext::set_level(PerfLevel::OFF);
        look_up(&both);
        look_up(&nobody_else);
        assert_eq!((PerfContext::get(PerfMetric::BlockCacheHitCount), of_statistics()), (2, (2, 20)));
        PerfContext::reset();
        assert_eq!(PerfContext::text(true), "");
    })
    .join()
    .unwrap();
}
