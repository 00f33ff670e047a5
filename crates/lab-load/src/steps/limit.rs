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

impl Bucket {
    fn new() -> Bucket {
        Bucket { available: 0.0, filled_next: Duration::ZERO, granted: 0.0, longest_lag: Duration::ZERO }
    }

    /// At the time `now`, takes what is there off `left`; gives the time until the next filling.
    fn take(&mut self, rate: f64, now: Duration, left: &mut f64) -> Duration {
        if self.available < *left && now >= self.filled_next {
            // A late wake-up costs nothing; a missed filling is gone.
            let on_time = self.filled_next + PERIOD > now;
            self.filled_next = if on_time { self.filled_next } else { now } + PERIOD;
            self.available += rate * PERIOD.as_secs_f64();
        }
        let taken = self.available.min(*left);
        self.available -= taken;
        self.granted += taken;
        *left -= taken;
        let due = Duration::from_secs_f64(self.granted / rate);
        self.longest_lag = self.longest_lag.max(now.saturating_sub(due));
        self.filled_next.saturating_sub(now)
    }
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
        (rate > 0).then(|| Limiter {
            rate: rate as f64,
            start: Instant::now(),
            bucket: Mutex::new(Bucket::new()),
        })
    }

    /// Waits until `bytes` may be written, or until `over`.
    pub fn take(&self, bytes: u64, over: impl Fn() -> bool) {
        let mut left = bytes as f64;
        loop {
            let wait = {
                let mut bucket = self.bucket.lock().expect("no thread panics with it");
                bucket.take(self.rate, self.start.elapsed(), &mut left)
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
            // A time too short for one write counts as kept. The first filling is there at once, so the share may
            // pass 1.
            achieved: if asked < pair { 1.0 } else { (bucket.granted / asked).min(1.0) },
            longest_lag: bucket.longest_lag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 10_000.0;

    /// Takes `bytes` from the time `now` on, asleep from filling to filling; gives the time at the end.
    fn taken(bucket: &mut Bucket, bytes: f64, mut now: Duration) -> Duration {
        let mut left = bytes;
        loop {
            let wait = bucket.take(RATE, now, &mut left);
            if left <= 0.0 {
                return now;
            }
            now += wait;
        }
    }

    #[test]
    fn a_tenth_of_a_seconds_bytes_is_there_at_once_and_the_rest_in_time() {
        let mut bucket = Bucket::new();
        let ms = Duration::from_millis;
        let now = (0..10).fold(ms(0), |now, _| taken(&mut bucket, 100.0, now));
        assert_eq!(now, ms(0), "the first filling");
        let now = (0..10).fold(now, |now, _| taken(&mut bucket, 100.0, now));
        assert_eq!(now, ms(100), "the second");
        assert_eq!(taken(&mut bucket, 2_500.0, now), ms(400), "more than a filling takes several");
        assert!(Limiter::new(0).is_none());
    }

    #[test]
    fn what_a_stall_lets_pass_is_not_made_up_for() {
        let mut bucket = Bucket::new();
        let ms = Duration::from_millis;
        assert_eq!(taken(&mut bucket, 1_000.0, ms(0)), ms(0));
        assert_eq!(taken(&mut bucket, 1_000.0, ms(350)), ms(350));
        assert_eq!(taken(&mut bucket, 1.0, ms(350)), ms(450), "one filling for the stall, not three");
        assert!((ms(249)..=ms(250)).contains(&bucket.longest_lag), "{:?}", bucket.longest_lag);
    }

    #[test]
    fn a_writer_sleeps_for_what_is_not_there() {
        let limiter = Limiter::new(10_000).unwrap();
        limiter.take(2_500, || false);
        let elapsed = limiter.start.elapsed();
        assert!(elapsed >= Duration::from_millis(200), "{elapsed:?}: three fillings");
        let report = limiter.report(1.0);
        assert!(report.achieved > 0.0 && report.achieved <= 1.0, "{report:?}");
    }

    #[test]
    fn who_waits_sees_the_end() {
        let limiter = Limiter::new(1).unwrap();
        let asked = std::cell::Cell::new(0);
        limiter.take(1_000_000, || asked.replace(asked.get() + 1) == 3);
        assert_eq!(asked.get(), 4);
    }
}
