//! Values: windows of one buffer of compressible bytes, the same in every process, of one size or of sizes drawn.

use crate::rng::{MinimalStandard, Mt19937_64};
use serde::{Deserialize, Serialize};

/// Bytes of one fragment of the buffer.
const FRAGMENT: usize = 100;
/// db_bench's seed for value bytes.
const SEED: u32 = 301;
/// Tells the seed of sizes from that of keys: with sizes drawn or not, a thread meets the same keys.
const SIZES: u64 = 0x7369_7a65;

/// How sizes of values scatter between `min` and `max`, both included.
///
/// Source: RocksDB `tools/db_bench_tool.cc`, `UniformDistribution` and `NormalDistribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueSizes {
    /// Their distribution.
    pub distribution: Distribution,
    /// Smallest value, in bytes.
    pub min: usize,
    /// Largest value, in bytes.
    pub max: usize,
}

/// A distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every size is as likely as any other.
    Uniform,
    /// Normal around the middle; a sixth of the range is the standard deviation, and what falls outside moves to
    /// the nearer end.
    Normal,
}

impl ValueSizes {
    /// Mean size, in bytes.
    pub fn mean(self) -> usize {
        usize::midpoint(self.min, self.max)
    }

    /// The distribution's name, as flags and experiments say it.
    pub fn name(self) -> &'static str {
        match self.distribution {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
        }
    }

    /// The mistake in it, if there is one.
    ///
    /// # Errors
    /// A clause.
    pub fn check(self) -> Result<(), String> {
        /// A value must fit RocksDB's 32-bit lengths, and the buffer of each thread.
        const MOST: usize = 1 << 30;
        match self {
            ValueSizes { min, max, .. } if min > max => Err("value_size_min is above value_size_max".into()),
            ValueSizes { max, .. } if max > MOST => Err(format!("value_size_max is above {MOST}")),
            _ => Ok(()),
        }
    }

    fn draw(self, rng: &mut Mt19937_64) -> usize {
        let (min, max) = (self.min as f64, self.max as f64);
        match self.distribution {
            Distribution::Uniform => self.min + (rng.next_u64() % (self.max - self.min + 1) as u64) as usize,
            Distribution::Normal => {
                let size = f64::midpoint(min, max) + (max - min) / 6.0 * standard_normal(rng);
                size.clamp(min, max) as usize
            }
        }
    }
}

/// How far values can be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Redundancy {
    /// Share that is left of a compressed value.
    pub compression_ratio: f64,
    /// Of a hundred values, those that are the same as each other.
    pub same_percent: u32,
}

impl Default for Redundancy {
    fn default() -> Redundancy {
        Redundancy { compression_ratio: 0.5, same_percent: 0 }
    }
}

impl Redundancy {
    /// The mistake in it, if there is one.
    ///
    /// # Errors
    /// A clause.
    pub fn check(self) -> Result<(), String> {
        if !(self.compression_ratio > 0.0 && self.compression_ratio <= 1.0) {
            return Err("compression_ratio is a share: above 0 and at most 1".to_string());
        }
        if self.same_percent > 100 {
            return Err("same_value_percentage is at most 100".to_string());
        }
        Ok(())
    }
}

/// A number of the standard normal distribution, by Box and Muller.
fn standard_normal(rng: &mut Mt19937_64) -> f64 {
    // Above 0, so that the logarithm is finite.
    let mut unit = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
}

/// Gives values one after the other.
pub struct Values {
    buffer: Vec<u8>,
    at: usize,
    /// Size of a value unless sizes are drawn.
    size: usize,
    drawn: Option<(ValueSizes, Mt19937_64)>,
    same_percent: u32,
    /// Goes on where the buffer ends: which values are the same.
    rng: MinimalStandard,
}

impl Values {
    /// Values of `value_size` bytes.
    pub fn new(redundancy: Redundancy, value_size: usize) -> Values {
        let mut rng = MinimalStandard::new(SEED);
        let buffer = buffer(&mut rng, redundancy.compression_ratio, value_size);
        Values { size: value_size, drawn: None, buffer, at: 0, same_percent: redundancy.same_percent, rng }
    }

    /// No values, for who only reads: it is not to wait for megabytes to be made.
    pub fn none() -> Values {
        Values {
            size: 0,
            drawn: None,
            buffer: Vec::new(),
            at: 0,
            same_percent: 0,
            rng: MinimalStandard::new(SEED),
        }
    }

    /// Values whose sizes are drawn, in the order that `seed` decides.
    pub fn drawn(redundancy: Redundancy, sizes: ValueSizes, seed: u64) -> Values {
        let rng = Mt19937_64::new(seed ^ SIZES);
        Values { drawn: Some((sizes, rng)), ..Values::new(redundancy, sizes.max) }
    }

    /// Makes room for values of `len` bytes asked for by [`Values::of`].
    #[must_use]
    pub fn with_room_for(self, redundancy: Redundancy, len: usize) -> Values {
        if len <= self.buffer.len() {
            return self;
        }
        let Values { size, drawn, .. } = self;
        Values { size, drawn, ..Values::new(redundancy, len) }
    }

    /// The next value.
    #[inline]
    pub fn next_value(&mut self) -> &[u8] {
        let len = match &mut self.drawn {
            None => self.size,
            Some((sizes, rng)) => sizes.draw(rng),
        };
        self.of(len)
    }

    /// The next value, of `len` bytes.
    #[inline]
    pub fn of(&mut self, len: usize) -> &[u8] {
        if self.same_percent > 0 && self.rng.next_u31() % 100 < self.same_percent {
            return &self.buffer[..len];
        }
        if self.at + len > self.buffer.len() {
            self.at = 0;
        }
        self.at += len;
        &self.buffer[self.at - len..self.at]
    }
}

fn buffer(rng: &mut MinimalStandard, compression_ratio: f64, value_size: usize) -> Vec<u8> {
    let wanted = value_size.max(1 << 20);
    let mut buffer = Vec::with_capacity(wanted + FRAGMENT);
    while buffer.len() < wanted {
        let raw_len = ((FRAGMENT as f64 * compression_ratio) as usize).max(1);
        let raw: Vec<u8> = (0..raw_len).map(|_| (rng.next_u31() % 127) as u8).collect();
        buffer.extend(raw.iter().cycle().take(FRAGMENT));
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_each_fragment_repeats() {
        let mut values = Values::new(Redundancy::default(), 400);
        let first = values.next_value().to_vec();
        assert_eq!(first[..50], first[50..100]);
        assert_ne!(first[..50], first[100..150]);
        assert_ne!(first, values.next_value());
        assert!(first.iter().all(|byte| *byte < 127));
    }

    #[test]
    fn values_compress_and_repeat_as_they_are_asked_to() {
        let mut quarter = Values::new(Redundancy { compression_ratio: 0.25, same_percent: 0 }, 100);
        let first = quarter.next_value().to_vec();
        assert!(first[..25] == first[25..50] && first[..25] == first[75..] && first[..10] != first[10..20]);
        let mut half = Values::new(Redundancy { same_percent: 50, ..Redundancy::default() }, 400);
        let beginning = half.buffer[..400].to_vec();
        let same = (0..10_000).filter(|_| half.next_value() == beginning).count();
        assert!((4_800..5_300).contains(&same), "{same}: half, and the windows that begin the buffer");
        let wrong = |compression_ratio, same_percent| Redundancy { compression_ratio, same_percent }.check();
        assert!(wrong(0.0, 0).is_err() && wrong(f64::NAN, 0).is_err() && wrong(1.0, 101).is_err());
        assert!(wrong(1.0, 100).is_ok());
    }

    fn sizes(distribution: Distribution, seed: u64) -> Vec<usize> {
        let mut values =
            Values::drawn(Redundancy::default(), ValueSizes { distribution, min: 100, max: 400 }, seed);
        (0..20_000).map(|_| values.next_value().len()).collect()
    }

    #[test]
    fn sizes_have_the_mean_and_the_scatter_of_their_distribution() {
        for (distribution, deviation) in
            [(Distribution::Uniform, 300.0 / 12f64.sqrt()), (Distribution::Normal, 50.0)]
        {
            let drawn = sizes(distribution, 7);
            let mean = drawn.iter().sum::<usize>() as f64 / drawn.len() as f64;
            let squares: f64 = drawn.iter().map(|size| (*size as f64 - mean).powi(2)).sum();
            let found = (squares / drawn.len() as f64).sqrt();
            assert!((mean - 250.0).abs() < 3.0, "{distribution:?}: mean {mean}");
            assert!((found / deviation - 1.0).abs() < 0.03, "{distribution:?}: deviation {found}");
            assert!(drawn.iter().all(|size| (100..=400).contains(size)));
            assert_eq!(drawn, sizes(distribution, 7));
            assert_ne!(drawn, sizes(distribution, 8));
        }
        assert!(sizes(Distribution::Uniform, 7).contains(&400), "both ends belong to it");
    }

    #[test]
    fn impossible_sizes_are_named() {
        let sizes = |min, max| ValueSizes { distribution: Distribution::Normal, min, max };
        assert!(sizes(5, 4).check().is_err() && sizes(0, 1 << 31).check().is_err());
        assert_eq!((sizes(100, 100).check(), sizes(100, 400).mean()), (Ok(()), 250));
    }
}
