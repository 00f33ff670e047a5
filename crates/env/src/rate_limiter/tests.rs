//! By a clock that moves only when somebody sleeps.

use super::*;
use crate::clock::ManualClock;

fn limiter(options: RateLimiterOptions) -> (RateLimiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1_000_000));
    (RateLimiter::with_clock(options, clock.clone()), clock)
}

fn seconds(clock: &ManualClock) -> f64 {
    (clock.monotonic_nanos() - 1_000_000_000) as f64 / 1e9
}

const MIB: u64 = 1 << 20;

#[test]
fn bytes_go_through_at_the_rate() {
    let (limiter, clock) = limiter(RateLimiterOptions { bytes_per_second: 4 * MIB, ..Default::default() });
    for _ in 0..16 * MIB / 4096 {
        limiter.request(4096, IoPriority::High, IoKind::Write);
    }
    let took = seconds(&clock);
    assert!((3.8..=4.0).contains(&took), "16 MiB at 4 MiB/s took {took} s");
    assert_eq!(limiter.bytes_through(IoPriority::High), 16 * MIB);
    assert_eq!(limiter.requests(IoPriority::High), 4096);
}

#[test]
fn a_request_larger_than_a_refill_takes_its_time() {
    let (limiter, clock) = limiter(RateLimiterOptions { bytes_per_second: 10, ..Default::default() });
    limiter.request(30, IoPriority::Low, IoKind::Write);
    assert!((2.8..=3.0).contains(&seconds(&clock)), "{}", seconds(&clock));
}

#[test]
fn modes_choose_what_is_limited() {
    for (mode, reads, writes) in [
        (RateLimiterMode::ReadsOnly, true, false),
        (RateLimiterMode::WritesOnly, false, true),
        (RateLimiterMode::All, true, true),
    ] {
        let (limiter, clock) =
            limiter(RateLimiterOptions { bytes_per_second: 100, mode, ..Default::default() });
        limiter.request(100, IoPriority::Low, IoKind::Read);
        assert_eq!(seconds(&clock) > 0.5, reads, "{mode:?}");
        let before = seconds(&clock);
        limiter.request(100, IoPriority::Low, IoKind::Write);
        assert_eq!(seconds(&clock) - before > 0.5, writes, "{mode:?}");
    }
}

#[test]
fn what_nobody_asked_for_does_not_add_up() {
    let (limiter, clock) = limiter(RateLimiterOptions { bytes_per_second: 1000, ..Default::default() });
    limiter.request(1, IoPriority::Low, IoKind::Write);
    clock.advance(Duration::from_secs(100));
    let before = seconds(&clock);
    limiter.request(1000, IoPriority::Low, IoKind::Write);
    assert!(seconds(&clock) - before > 0.7, "the pause is not caught up on");
}

#[test]
fn tuning_follows_demand_within_its_range() {
    let options = RateLimiterOptions { bytes_per_second: 1000, auto_tuned: true, ..Default::default() };
    let (limiter, clock) = limiter(options);
    assert_eq!(limiter.bytes_per_second(), 500);
    for _ in 0..1000 {
        limiter.request(limiter.burst_bytes(), IoPriority::Low, IoKind::Write);
    }
    assert!(limiter.bytes_per_second() > 700, "always drained: {}", limiter.bytes_per_second());
    for _ in 0..5 {
        clock.advance(Duration::from_secs(11));
        limiter.request(1, IoPriority::Low, IoKind::Write);
    }
    assert_eq!(limiter.bytes_per_second(), 50, "a twentieth, when nobody asks");
}

#[test]
fn lines_are_served_by_priority_and_no_line_starves() {
    let (limiter, _) = limiter(RateLimiterOptions { fairness: 10, ..Default::default() });
    let mut first = [0; PRIORITIES];
    let mut second = [0; PRIORITIES];
    let mut state = limiter.state.lock();
    for _ in 0..10_000 {
        let order = limiter.order(&mut state);
        first[order[0] as usize] += 1;
        second[order[1] as usize] += 1;
        let mut all = order;
        all.sort();
        assert_eq!(all, [IoPriority::Low, IoPriority::Mid, IoPriority::High, IoPriority::User]);
    }
    assert_eq!(first, [0, 0, 0, 10_000]);
    assert!((8_500..9_500).contains(&second[IoPriority::High as usize]), "{second:?}");
    assert!(second[IoPriority::Low as usize] > 30, "{second:?}");
}

#[test]
fn threads_share_one_account_and_all_are_served() {
    let options =
        RateLimiterOptions { bytes_per_second: 1 << 20, refill_period_micros: 1000, ..Default::default() };
    let (limiter, clock) = limiter(options);
    std::thread::scope(|scope| {
        for priority in [IoPriority::Low, IoPriority::Mid, IoPriority::High, IoPriority::User] {
            let limiter = &limiter;
            scope.spawn(move || (0..256).for_each(|_| limiter.request(1024, priority, IoKind::Write)));
        }
    });
    // Not less: a thread that is not woken hangs, one that is served twice is too fast.
    assert!(seconds(&clock) > 0.99, "{}", seconds(&clock));
    for priority in [IoPriority::Low, IoPriority::Mid, IoPriority::High, IoPriority::User] {
        assert_eq!(limiter.bytes_through(priority), 256 * 1024);
    }
}
