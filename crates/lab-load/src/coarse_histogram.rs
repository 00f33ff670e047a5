//! Percentiles as db_bench prints them: from buckets that grow by half, interpolated.
//!
//! Coarse on purpose: people compare these lines with those of RocksDB's own tool. The precise histogram is
//! kept beside it.
//! Source: RocksDB `monitoring/histogram.cc`.

use hdrhistogram::Histogram;

/// Upper limits of the buckets, in microseconds: 1, 2, then powers of 1.5 from there, each cut to two digits or so. The uncut one is
/// carried on, so that 6 is followed by 10 and not by 9.
fn limits() -> Vec<u64> {
    let mut limits = vec![1u64, 2];
    let mut exact = 3.0f64;
    while exact <= u64::MAX as f64 {
        let (mut digits, mut power) = (exact as u64, 1);
        while digits / 10 > 10 {
            digits /= 10;
            power *= 10;
        }
        limits.push(digits * power);
        exact *= 1.5;
    }
    limits
}

/// The percentile `p` (0 to 100) of `histogram`, which holds nanoseconds, in microseconds.
pub fn percentile(histogram: &Histogram<u64>, p: f64) -> f64 {
    let limits = limits();
    let mut counts = vec![0u64; limits.len()];
    for bucket in histogram.iter_recorded() {
        let micros = bucket.value_iterated_to() / 1000;
        let index = limits.partition_point(|&limit| limit < micros).min(limits.len() - 1);
        counts[index] += bucket.count_at_value();
    }
    let total: u64 = counts.iter().sum();
    let threshold = total as f64 * p / 100.0;
    let (min, max) = (histogram.min() as f64 / 1000.0, histogram.max() as f64 / 1000.0);
    let mut cumulative = 0.0;
    for (index, &count) in counts.iter().enumerate() {
        let before = cumulative;
        cumulative += count as f64;
        if cumulative >= threshold && count > 0 {
            let left = if index == 0 { 0.0 } else { limits[index - 1] as f64 };
            let position = (threshold - before) / count as f64;
            return (left + (limits[index] as f64 - left) * position).clamp(min, max);
        }
    }
    max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_rocksdb() {
        let limits = limits();
        assert_eq!(limits[..15], [1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380]);
        // As many as there, up to what 64 bits hold.
        assert_eq!((limits.len(), limits[limits.len() - 1]), (109, 13_000_000_000_000_000_000));
    }

    #[test]
    fn percentiles_lie_in_their_bucket() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        (0..1000u64).for_each(|i| histogram.record(10_000 + i).unwrap());
        let median = percentile(&histogram, 50.0);
        assert!((10.0..=11.0).contains(&median), "{median}");
    }
}
