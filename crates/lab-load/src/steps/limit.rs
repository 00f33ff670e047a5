//! A rate that writers are held to: a bucket that gets a tenth of a second's bytes ten times a second.
//!
//! ```text
//! bytes   |#####    |#####    |         ######    |       writers take what is there and wait for the next filling;
//! time    0        0.1       0.2   (stalled)              what a stall let pass is not made up for
//! ```
//! Concurrency: one bucket for all threads of a step, behind a lock that is held for some additions only.
//! Source: RocksDB `util/rate_limiter.cc`, `GenericRateLimiter`.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two fillings.
const PERIOD: Duration = Duration::from_millis(100);
/// Longest sleep, so that who waits soon sees that the step is over.
const SLICE: Duration = Duration::from_millis(10);

/// A limit of bytes per second.
pub(super) struct Limiter {
    rate: f64,
    start: Instant,
    bucket: Mutex<Bucket>,
}

struct Bucket {
    available: f64,
    filled_next: Duration,
    granted: f64,
    longest_lag: Duration,
}

/// How writers at a rate did.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateReport {
    /// Achieved over asked.
    pub achieved: f64,
    /// The longest time writers were behind a line of constant rate.
    pub longest_lag: Duration,
}

impl RateReport {
    /// No rate was asked for.
    pub const NONE: RateReport = RateReport { achieved: 1.0, longest_lag: Duration::ZERO };
}

impl Limiter {
    /// A limit of `rate` bytes per second; none if it is 0.
    pub fn new(rate: u64) -> Option<Limiter> {
        let bucket =
            Bucket { available: 0.0, filled_next: Duration::ZERO, granted: 0.0, longest_lag: Duration::ZERO };
        (rate > 0).then(|| Limiter { rate: rate as f64, start: Instant::now(), bucket: Mutex::new(bucket) })
    }

    /// Waits until `bytes` may be written, or until `over`.
    pub fn take(&self, bytes: u64, over: impl Fn() -> bool) {
        let mut left = bytes as f64;
        loop {
            let wait = {
                let mut bucket = self.bucket.lock().expect("no thread panics with it");
                let now = self.start.elapsed();
                if bucket.available < left && now >= bucket.filled_next {
                    // A late wake-up costs nothing; a missed filling is gone.
                    let on_time = bucket.filled_next + PERIOD > now;
                    bucket.filled_next = if on_time { bucket.filled_next } else { now } + PERIOD;
                    bucket.available += self.rate * PERIOD.as_secs_f64();
                }
                let taken = bucket.available.min(left);
                bucket.available -= taken;
                bucket.granted += taken;
                left -= taken;
                let due = Duration::from_secs_f64(bucket.granted / self.rate);
                bucket.longest_lag = bucket.longest_lag.max(now.saturating_sub(due));
                bucket.filled_next.saturating_sub(now)
            };
            if left <= 0.0 || over() {
                return;
            }
            std::thread::sleep(wait.min(SLICE));
        }
    }

    /// How it went until now, with writes of `pair` bytes.
    pub fn report(&self, pair: f64) -> RateReport {
        let bucket = self.bucket.lock().expect("no thread panics with it");
        let asked = self.start.elapsed().as_secs_f64() * self.rate;
        RateReport {
            // What is too short for one write was kept. The first filling is there at once, so the share may pass 1.
            achieved: if asked < pair { 1.0 } else { (bucket.granted / asked).min(1.0) },
            longest_lag: bucket.longest_lag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_seconds_bytes_is_there_at_once_and_the_rest_in_time() {
        let limiter = Limiter::new(10_000).unwrap();
        (0..10).for_each(|_| limiter.take(100, || false));
        assert!(limiter.start.elapsed() < Duration::from_millis(90), "the first filling");
        (0..10).for_each(|_| limiter.take(100, || false));
        let elapsed = limiter.start.elapsed();
        assert!(elapsed >= Duration::from_millis(100), "{elapsed:?}: the second");
        limiter.take(2_500, || false);
        let elapsed = limiter.start.elapsed();
        assert!(elapsed >= Duration::from_millis(400), "{elapsed:?}: more than a filling takes several");
        assert!(Limiter::new(0).is_none());
    }

    #[test]
    fn what_a_stall_lets_pass_is_not_made_up_for() {
        let limiter = Limiter::new(10_000).unwrap();
        limiter.take(1_000, || false);
        std::thread::sleep(Duration::from_millis(350));
        limiter.take(1_000, || false);
        limiter.take(1, || false);
        let report = limiter.report(1.0);
        let elapsed = limiter.start.elapsed();
        assert!(elapsed >= Duration::from_millis(440), "{elapsed:?}: one filling for the stall, not three");
        assert!(report.achieved < 0.6, "{report:?}");
        assert!(report.longest_lag >= Duration::from_millis(150), "{report:?}");
    }

    #[test]
    fn who_waits_sees_the_end() {
        let limiter = Limiter::new(1).unwrap();
        limiter.take(1_000_000, || limiter.start.elapsed() > Duration::from_millis(30));
        assert!(limiter.start.elapsed() < Duration::from_secs(5));
    }
}
