//! Statistics of several threads, levels and resets.

use crate::{HistogramKind, PerfContext, PerfLevel, PerfMetric, Statistics, StatsLevel, Ticker};
use std::sync::Barrier;

/// Runs `work` on `threads` threads at once, more than have shards of their own: each holds its place from before the first of them
/// works until the last has.
fn on_threads(threads: usize, statistics: &Statistics, work: impl Fn() + Sync) {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Takes the place.
                statistics.count(Ticker::NoFileOpens, 1);
                barrier.wait();
                work();
                barrier.wait();
            });
        }
    });
    assert!(statistics.shared_shard_is_used(), "{threads} threads are more than have places");
}

#[test]
fn nothing_is_lost_with_more_threads_than_shards() {
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
