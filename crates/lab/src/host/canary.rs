//! How fast the machine is right now, without any engine: a session whose canary is slow says nothing about its
//! target.
//!
//! Three figures of about 20 ms each, the best of a few tries: arithmetic that waits for itself, loads that each
//! wait for the last in memory far beyond the caches, and copying.

use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// How fast the machine was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// Nanoseconds of a shift, an exclusive or and a multiplication that wait for each other.
    pub arithmetic_ns: f64,
    /// Nanoseconds of one dependent load from 64 MiB.
    pub miss_ns: f64,
    /// GB copied per second.
    pub copy_gb_per_second: f64,
}

impl Canary {
    /// How much slower than `usual` the worst of the three is, as a share; 0 if none is.
    pub fn slower_than(&self, usual: &Canary) -> f64 {
        let ratios = [
            self.arithmetic_ns / usual.arithmetic_ns,
            self.miss_ns / usual.miss_ns,
            usual.copy_gb_per_second / self.copy_gb_per_second,
        ];
        ratios.into_iter().filter(|ratio| ratio.is_finite()).fold(1.0, f64::max) - 1.0
    }
}

/// Bytes walked and copied: beyond the last-level cache of most machines.
const BYTES: usize = 64 << 20;
/// One line of the cache in words of 8 bytes.
const LINE: usize = 8;
const TRIES: usize = 3;

/// Measures.
pub fn run() -> Canary {
    let mut words = vec![0u64; BYTES / 8];
    make_cycle(&mut words);
    let best = |measure: &mut dyn FnMut() -> f64| (0..TRIES).map(|_| measure()).fold(f64::MAX, f64::min);
    let arithmetic_ns = best(&mut || arithmetic(5_000_000));
    let miss_ns = best(&mut || chase(&words, 100_000));
    let (from, to) = words.split_at_mut(BYTES / 16);
    let copy_seconds = best(&mut || {
        let start = Instant::now();
        to.copy_from_slice(black_box(from));
        black_box(&*to);
        start.elapsed().as_secs_f64()
    });
    Canary { arithmetic_ns, miss_ns, copy_gb_per_second: (BYTES / 2) as f64 / copy_seconds / 1e9 }
}

fn arithmetic(count: u64) -> f64 {
    let start = Instant::now();
    let mut x = black_box(1u64);
    for _ in 0..count {
        // Not linear, so that no compiler folds several steps into one.
        x = (x ^ (x >> 29)).wrapping_mul(6_364_136_223_846_793_005);
    }
    black_box(x);
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Links the lines of `words` into one cycle in an order no prefetcher follows: a full-period generator over a
/// power of two.
fn make_cycle(words: &mut [u64]) {
    let lines = words.len() / LINE;
    let next = |line: usize| (line.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)) % lines;
    for line in 0..lines {
        words[line * LINE] = (next(line) * LINE) as u64;
    }
}

fn chase(words: &[u64], count: u64) -> f64 {
    let start = Instant::now();
    let mut at = 0usize;
    for _ in 0..count {
        at = words[at] as usize;
    }
    black_box(at);
    start.elapsed().as_nanos() as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_visits_every_line_once() {
        let mut words = vec![0u64; 1024 * LINE];
        make_cycle(&mut words);
        let (mut at, mut steps) = (0usize, 0);
        loop {
            at = words[at] as usize;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1024);
    }

    #[test]
    fn slowness_is_that_of_the_worst_figure() {
        let usual = Canary { arithmetic_ns: 1.0, miss_ns: 100.0, copy_gb_per_second: 10.0 };
        let slow = Canary { copy_gb_per_second: 8.0, ..usual };
        assert!((slow.slower_than(&usual) - 0.25).abs() < 1e-9);
        assert_eq!(usual.slower_than(&slow), 0.0);
    }
}
