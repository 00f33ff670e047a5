//! One distribution: counts by bucket, and what is made of them.
//!
//! Buckets have inclusive upper limits 1, 2, then each half as large again as the one before, cut to its leading digits.
//! Source: RocksDB `monitoring/histogram.cc`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of a histogram.
pub const BUCKETS: usize = 109;

const LIMITS: [u64; BUCKETS] = limits();

/// For each number of significant bits, the bucket of the smallest value that has so many.
const FIRST: [u8; 65] = first_buckets();

const fn limits() -> [u64; BUCKETS] {
    let mut limits = [0; BUCKETS];
    (limits[0], limits[1]) = (1, 2);
    let mut exact = 2.0f64;
    let mut at = 2;
    while at < BUCKETS {
        exact *= 1.5;
        let (mut digits, mut ten) = (exact as u64, 1);
        while digits / 10 > 10 {
            digits /= 10;
            ten *= 10;
        }
        limits[at] = digits * ten;
        at += 1;
    }
    limits
}

const fn first_buckets() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let smallest = 1u64 << (bits - 1);
        let mut bucket = 0;
        while bucket + 1 < BUCKETS && LIMITS[bucket] < smallest {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
}

/// The bucket of `value`.
#[inline]
fn bucket_of(value: u64) -> usize {
    let mut bucket = FIRST[64 - value.leading_zeros() as usize] as usize;
    // At most twice: limits grow by half, numbers of as many bits differ by less than two.
    while bucket + 1 < BUCKETS && LIMITS[bucket] < value {
        bucket += 1;
    }
    bucket
}

/// The counts of one histogram in one shard; aligned as that.
#[repr(align(64))]
pub struct Cells {
    buckets: [AtomicU64; BUCKETS],
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
    squares: AtomicU64,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            squares: AtomicU64::new(0),
        }
    }
}

// All relaxed: counters order nothing.
impl Cells {
    /// Adds one value; for the one thread that writes.
    #[inline]
    pub fn add_alone(&self, value: u64) {
        let add = |cell: &AtomicU64, n: u64| {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        add(&self.buckets[bucket_of(value)], 1);
        add(&self.sum, value);
        add(&self.squares, value.wrapping_mul(value));
        if value < self.min.load(Ordering::Relaxed) {
            self.min.store(value, Ordering::Relaxed);
        }
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Adds one value; any thread.
    pub fn add_shared(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.squares.fetch_add(value.wrapping_mul(value), Ordering::Relaxed);
        self.min.fetch_min(value, Ordering::Relaxed);
        self.max.fetch_max(value, Ordering::Relaxed);
    }

    /// Forgets all values.
    pub fn clear(&self) {
        self.buckets.iter().chain([&self.max, &self.sum, &self.squares]).for_each(|cell| {
            cell.store(0, Ordering::Relaxed);
        });
        self.min.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Values below this are counted one by one, in an [`Exact`].
pub const EXACT: usize = 1024;

/// Small values of one histogram in one shard, each with a cell of its own: adding one is one addition, and the rest of the histogram is
/// made of it when somebody reads it.
#[repr(align(64))]
pub struct Exact([AtomicU64; EXACT]);

impl Exact {
    pub const fn new() -> Exact {
        Exact([const { AtomicU64::new(0) }; EXACT])
    }

    /// Adds one value, for the one thread that writes; false if it is too large.
    #[inline(always)]
    pub fn add_alone(&self, value: u64) -> bool {
        let Some(cell) = usize::try_from(value).ok().and_then(|value| self.0.get(value)) else {
            return false;
        };
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        true
    }

    /// Forgets all values.
    pub fn clear(&self) {
        self.0.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
    }
}

/// The values of one histogram at one moment.
///
/// ```
/// use outcrop_monitor::{HistogramKind, Statistics};
///
/// let statistics = Statistics::new();
/// statistics.record(HistogramKind::BytesPerRead, 100);
/// let data = statistics.histogram(HistogramKind::BytesPerRead);
/// assert_eq!((data.count(), data.sum(), data.max()), (1, 100, 100));
/// assert_eq!(data.percentile(50.0), 100.0);
/// ```
#[derive(Clone, Debug)]
pub struct HistogramData {
    buckets: [u64; BUCKETS],
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    squares: u64,
}

impl Default for HistogramData {
    fn default() -> HistogramData {
        // The least value of none is the last limit. Source: RocksDB `HistogramStat::Clear`.
        let min = LIMITS[BUCKETS - 1];
        HistogramData { buckets: [0; BUCKETS], count: 0, min, max: 0, sum: 0, squares: 0 }
    }
}

impl HistogramData {
    /// Adds what one shard has.
    pub(crate) fn add(&mut self, cells: &Cells) {
        for (mine, cell) in self.buckets.iter_mut().zip(&cells.buckets) {
            let more = cell.load(Ordering::Relaxed);
            *mine += more;
            self.count += more;
        }
        self.min = self.min.min(cells.min.load(Ordering::Relaxed));
        self.max = self.max.max(cells.max.load(Ordering::Relaxed));
        self.sum = self.sum.wrapping_add(cells.sum.load(Ordering::Relaxed));
        self.squares = self.squares.wrapping_add(cells.squares.load(Ordering::Relaxed));
    }

    /// Adds what one shard has of small values.
    pub(crate) fn add_exact(&mut self, exact: &Exact) {
        for (value, cell) in exact.0.iter().enumerate() {
            let (value, count) = (value as u64, cell.load(Ordering::Relaxed));
            if count > 0 {
                self.buckets[bucket_of(value)] += count;
                self.count += count;
                self.min = self.min.min(value);
                self.max = self.max.max(value);
                self.sum = self.sum.wrapping_add(count.wrapping_mul(value));
                self.squares = self.squares.wrapping_add(count.wrapping_mul(value * value));
            }
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The least; of none the largest bucket's limit, as RocksDB has it.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest; of none 0.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; of none 0.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation; of none 0.
    pub fn standard_deviation(&self) -> f64 {
        let (count, sum) = (self.count as f64, self.sum as f64);
        if self.count == 0 {
            return 0.0;
        }
        ((self.squares as f64 * count - sum * sum) / (count * count)).max(0.0).sqrt()
    }

    /// The value that `percent` of the values do not exceed, 0 to 100: exact to the bucket, within it as if values were spread
    /// evenly. Of none 0.
    pub fn percentile(&self, percent: f64) -> f64 {
        let threshold = self.count as f64 * (percent / 100.0);
        let mut seen = 0;
        for (bucket, &here) in self.buckets.iter().enumerate() {
            seen += here;
            if seen as f64 >= threshold {
                let left = if bucket == 0 { 0 } else { LIMITS[bucket - 1] };
                let share = if here == 0 { 0.0 } else { (threshold - (seen - here) as f64) / here as f64 };
                let value = left as f64 + (LIMITS[bucket] - left) as f64 * share;
                return value.max(self.min as f64).min(self.max as f64);
            }
        }
        self.max as f64
    }

    /// How many values do not exceed each of 18 limits, which are always the same, from 1 to 10^9.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut seen = 0;
        let mut limits = Vec::new();
        for (bucket, here) in
            self.buckets.iter().enumerate().take_while(|(bucket, _)| LIMITS[*bucket] <= 1_000_000_000)
        {
            seen += here;
            if bucket % 3 == 0 {
                limits.push((LIMITS[bucket], seen));
            }
        }
        limits
    }
}

/// As RocksDB prints a histogram: numbers first, then a row for each bucket that is not empty.
/// Source: RocksDB `monitoring/histogram.cc`, `HistogramStat::ToString`.
impl fmt::Display for HistogramData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, at) = (self.count, |percent: f64| self.percentile(percent));
        writeln!(
            f,
            "Count: {count} Average: {:.4}  StdDev: {:.2}",
            self.average(),
            self.standard_deviation()
        )?;
        let min = if count == 0 { 0 } else { self.min };
        writeln!(f, "Min: {min}  Median: {:.4}  Max: {}", at(50.0), self.max)?;
        writeln!(
            f,
            "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
            at(50.0),
            at(75.0),
            at(99.0),
            at(99.9),
            at(99.99)
        )?;
        writeln!(f, "{}", "-".repeat(54))?;
        let (mut seen, mut left) = (0, 0);
        for (bucket, &here) in self.buckets.iter().enumerate() {
            if here > 0 {
                seen += here;
                let (share, sum) = (100.0 * here as f64 / count as f64, 100.0 * seen as f64 / count as f64);
                let (open, limit) = (if bucket == 0 { '[' } else { '(' }, LIMITS[bucket]);
                // 20 for all.
                let marks = "#".repeat((share / 5.0 + 0.5) as usize);
                writeln!(f, "{open} {left:>7}, {limit:>7} ] {here:>8} {share:>7.3}% {sum:>7.3}% {marks}")?;
            }
            left = LIMITS[bucket];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_printed_as_rocksdb_prints_them() {
        let cells = Cells::default();
        [1, 3, 3, 100].into_iter().for_each(|value| cells.add_shared(value));
        let mut data = HistogramData::default();
        data.add(&cells);
        let text = data.to_string();
        assert!(
            text.starts_with("Count: 4 Average: 26.7500  StdDev: 42.30\nMin: 1  Median: 2.5000  Max: 100\n")
        );
        assert!(text.contains("\n(       2,       3 ]        2  50.000%  75.000% ##########\n"), "{text}");
        assert!(
            HistogramData::default()
                .to_string()
                .starts_with("Count: 0 Average: 0.0000  StdDev: 0.00\nMin: 0 ")
        );
    }

    #[test]
    fn every_value_is_in_the_first_bucket_whose_limit_it_does_not_exceed() {
        let by_search = |value: u64| LIMITS.partition_point(|limit| *limit < value).min(BUCKETS - 1);
        for limit in LIMITS {
            for value in [limit - 1, limit, limit.saturating_add(1)] {
                assert_eq!(bucket_of(value), by_search(value), "{value}");
            }
        }
        for bits in 0..64 {
            assert_eq!(bucket_of(1 << bits), by_search(1 << bits));
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn limits_are_those_of_rocksdb() {
        assert_eq!(&LIMITS[..12], &[1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110]);
        assert!(LIMITS.is_sorted());
        assert!(LIMITS[BUCKETS - 1] > 1 << 62);
    }
}
